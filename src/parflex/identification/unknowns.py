"""The numbers of a robot that are looked for: inertial parameters of bodies, and terms of joints.

Efforts are linear in all of them. Names are those of the notation: `ZZ[leg1.1]`, `IA[leg1.1]`, `FV[axis]`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.models.dynamics.base_parameters import PARAMETERS, body_parameters
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.tree.gear_loss import direction
from parflex.tree.link_tree import Link

Array = np.ndarray
FRICTIONS = ("file", "none", "symmetric", "offset", "direction")
TERMS = {  # of the friction of a joint
    "none": (),
    "symmetric": ("FV", "FS"),
    "offset": ("FV", "FS", "offset"),
    "direction": ("FV", "FS", "FV_back", "FS_back"),
}
UNITS = {"M": "kg", "MX": "kg m", "MY": "kg m", "MZ": "kg m"}  # others of bodies: kg m^2
OF_JOINTS = {  # in terms of a joint that slides and one that turns
    "IA": ("kg", "kg m^2"),
    "FV": ("N s/m", "N m s/rad"),
    "FS": ("N", "N m"),
    "FV_back": ("N s/m", "N m s/rad"),
    "FS_back": ("N", "N m"),
    "offset": ("N", "N m"),
    "k": ("N/m", "N m/rad"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Unknown(Record):
    """A number that is looked for.

    Attributes
    ----------
    name : str
        E.g. "ZZ[leg1.1]".
    symbol : str
        E.g. "ZZ".
    link : int
        Number of its link.
    unit : str
        Its unit.
    value : float
        What the robot file says of it.
    """

    name: str
    symbol: str
    link: int
    unit: str
    value: float

    @property
    def of_body(self) -> bool:
        """Whether it is an inertial parameter of a body."""
        return self.symbol in PARAMETERS


def unknowns(robot: Robot, friction: str = "file") -> list[Unknown]:
    """All candidates, bodies first; of friction, motor inertia and springs those that the file has.

    `friction` says which terms motors have: as in the file, or the same for all motors.
    """
    if friction not in FRICTIONS:
        raise InputError(
            f"there is no friction '{friction}'", key="friction", value=friction, hint=did_you_mean(friction, FRICTIONS)
        )
    tree, found = robot.tree, []
    for j, link in enumerate(tree.links):
        if link.strut:
            continue
        for symbol, value in zip(PARAMETERS, body_parameters(link.body.as_rigid()), strict=True):
            found.append(Unknown(f"{symbol}[{link.name}]", symbol, j, UNITS.get(symbol, "kg m^2"), float(value)))
    motors = set(robot.actuated)
    written = {frame.name: frame.friction.model_fields_set for frame in robot.description.frame}
    for j, link in enumerate(tree.links):
        if link.joint.one_axis:
            values = _joint_values(link)
            turns = link.joint.unit == "rad"
            for symbol in _terms_of(link, link.v.start in motors, friction, written.get(link.name, set())):
                unit = OF_JOINTS[symbol][turns]
                found.append(Unknown(f"{symbol}[{link.name}]", symbol, j, unit, float(values[symbol])))
    return found


def taken_from_file(robot: Robot) -> list[str]:
    """What acts on the robot, is not looked for, and must be right in the file, in words."""
    found = [f"{one.kind} '{one.name}'" for one in robot.description.element]
    found += [f"damper of '{link.name}'" for link in robot.tree.links if link.terms.damper]
    found += [f"rest of the spring of '{link.name}'" for link in robot.tree.links if link.terms.stiffness]
    return found


def _joint_values(link: Link) -> dict[str, float]:
    terms = link.terms
    return {
        "IA": terms.motor_inertia,
        "FV": terms.viscous + terms.more_viscous,
        "FS": terms.coulomb + terms.more_coulomb,
        "FV_back": terms.viscous - terms.more_viscous,
        "FS_back": terms.coulomb - terms.more_coulomb,
        "offset": terms.offset,
        "k": terms.stiffness,
    }


def _terms_of(link: Link, motor: bool, friction: str, written: Collection[str]) -> list[str]:
    """Terms of a joint that are looked for: of friction those that are `written` in the file, be they zero."""
    terms = link.terms
    own = [symbol for symbol, there in (("IA", terms.motor_inertia), ("k", terms.stiffness)) if there]
    if motor and friction != "file":
        return own + list(TERMS[friction])
    by_direction = bool(terms.more_viscous or terms.more_coulomb) or not {"viscous_back", "coulomb_back"}.isdisjoint(
        written
    )
    named = (("FV", "viscous", terms.viscous), ("FS", "coulomb", terms.coulomb))
    own += [symbol for symbol, key, value in named if value or key in written]
    own += ["FV_back"] if by_direction and terms.viscous else []
    own += ["FS_back"] if by_direction and terms.coulomb else []
    return own + (["offset"] if terms.offset or "offset" in written else [])


def by_direction(every: list[Unknown], link: int) -> bool:
    """Whether friction of a joint differs by direction among the unknowns."""
    return any(one.link == link and one.symbol in ("FV_back", "FS_back") for one in every)


def joint_column(
    one: Unknown, every: list[Unknown], link: Link, q: Any, rate: Any, acceleration: Any, width: float = 0.0
) -> Any:
    """What a joint takes per unit of one of its terms, along its rate, over any scalar, theory (7).

    Coulomb friction changes its sign at once, or over rates of this width.
    """
    if one.symbol == "IA":
        return acceleration
    if one.symbol == "k":
        return q - link.terms.rest
    if one.symbol == "offset":
        return 1.0
    if not by_direction(every, one.link):
        return rate if one.symbol == "FV" else direction(rate, width)
    side = direction(rate, width)
    shares = {"FV": (1 + side) / 2, "FV_back": (1 - side) / 2}
    if one.symbol in shares:
        return rate * shares[one.symbol]
    return side * ((1 + side) / 2 if one.symbol == "FS" else (1 - side) / 2)
