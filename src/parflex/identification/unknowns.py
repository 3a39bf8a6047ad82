"""The unknown parameters: inertial parameters of bodies, terms of joints, springs and dampers.

Efforts are linear in all of them. Names are those of the notation: `ZZ[leg1.1]`, `FV[axis]`, `k[balance]`.

The force of a spring, a damper or an elastic coupling along a stretch s with the rate ds/dt is k s - k_rest + d ds/dt:
k and d are stiffness and damping, k_rest is stiffness times rest length. Slack cables, tables and backlash are not
linear in their numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.forces.base_parameters import PARAMETERS, body_parameters
from parflex.records import Record
from parflex.recursion.energy import line_between, wrenches_on_ends
from parflex.recursion.kinematics import jacobians
from parflex.robot.robot import Robot
from parflex.tree.force_elements import CoupledSpring, PointElement, smooth_sign
from parflex.tree.tree import Link, Tree

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
    "d": ("N s/m", "N m s/rad"),
    "k_rest": ("N", "N m"),  # stiffness times rest
}
SPRINGS = ("k", "d", "k_rest")
NEVER_NEGATIVE = ("IA", "FV", "FS", "FV_back", "FS_back", "k", "d")
ALL = "all"  # what keeps all springs and dampers


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
        Number of its link; of an element or an elastic coupling -1.
    unit : str
        Its unit.
    value : float
        What the robot file says of it.
    element : str
        Name of its element or elastic coupling; of bodies and joints empty.
    """

    name: str
    symbol: str
    link: int
    unit: str
    value: float
    element: str = ""

    @property
    def of_body(self) -> bool:
        """Whether it is an inertial parameter of a body."""
        return self.symbol in PARAMETERS


def unknowns(robot: Robot, friction: str = "file", keep: Collection[str] = ()) -> list[Unknown]:
    """All candidates, bodies first; of friction, motor inertia, springs and dampers those that the file has.

    `friction` says which terms motors have: as in the file, or the same for all motors. `keep` names joints, elements
    and couplings whose springs and dampers are those of the file. Springs and dampers of elements come last, so that
    what bodies and friction explain alike has their names.
    """
    if friction not in FRICTIONS:
        raise InputError(
            f"there is no friction '{friction}'", key="friction", value=friction, hint=did_you_mean(friction, FRICTIONS)
        )
    _check_kept(robot, keep)
    tree, result = robot.tree, []
    for j, link in enumerate(tree.links):
        if link.strut:
            continue
        for symbol, value in zip(PARAMETERS, body_parameters(link.body.as_rigid()), strict=True):
            result.append(Unknown(f"{symbol}[{link.name}]", symbol, j, UNITS.get(symbol, "kg m^2"), float(value)))
    motors = set(robot.actuated)
    written = {frame.name: frame.friction.model_fields_set for frame in robot.description.frame}
    for j, link in enumerate(tree.links):
        if link.joint.one_axis:
            values = _joint_values(link)
            turns = link.joint.unit == "rad"
            symbols = _terms_of(link, link.v.start in motors, friction, written.get(link.name, set()))
            symbols += _late_terms(robot, link)
            for symbol in symbols:
                if symbol not in SPRINGS or not _is_kept(link.name, keep):
                    unit = OF_JOINTS[symbol][turns]
                    result.append(Unknown(f"{symbol}[{link.name}]", symbol, j, unit, float(values[symbol])))
    for element in linear_elements(robot):
        if not _is_kept(element.name, keep):
            result += unknowns_of(element)
    return result


def unknowns_of(element: LinearElement) -> list[Unknown]:
    """Numbers of an element in which its force is linear."""
    units = {symbol: OF_JOINTS[symbol][element.turns] for symbol in element.values}
    return [
        Unknown(f"{symbol}[{element.name}]", symbol, -1, units[symbol], value, element.name)
        for symbol, value in element.values.items()
    ]


def _is_kept(name: str, keep: Collection[str]) -> bool:
    return name in keep or ALL in keep


def _check_kept(robot: Robot, keep: Collection[str]) -> None:
    known = [element.name for element in linear_elements(robot)]
    known += [link.name for link in robot.tree.links if link.terms.stiffness or link.terms.damper]
    for name in keep:
        if name != ALL and name not in known:
            raise InputError(
                f"'{name}' has no spring and no damper that is looked for", key="keep", value=name,
                hint=did_you_mean(name, [*known, ALL]),
            )  # fmt: skip


def has_specified_rest(robot: Robot, link: Link) -> bool:
    """Whether the file says where the spring of a joint rests: else it is zero by construction."""
    specified = {frame.name: frame.spring.model_fields_set for frame in robot.description.frame if frame.spring}
    return bool(link.terms.stiffness) and (link.strut or "rest" in specified.get(link.name, set()))


def _late_terms(robot: Robot, link: Link) -> list[str]:
    """Damper and rest of a joint: behind friction and its offset, with which they may be grouped."""
    return (["d"] if link.terms.damper else []) + (["k_rest"] if has_specified_rest(robot, link) else [])


def taken_from_file(robot: Robot, every: Collection[Unknown]) -> list[str]:
    """What acts on the robot, is not looked for, and must be right in the file, in words."""
    looked_for = {item.name for item in every}
    linear = {item.name: item for item in linear_elements(robot)}
    descriptions = []
    for element in robot.tree.elements:
        matching = linear.get(element.name)
        if matching is None or not all(f"{symbol}[{matching.name}]" in looked_for for symbol in matching.values):
            descriptions.append(f"{element.kind} '{element.name}'")
        elif element.speed_curve is not None or element.curve is not None:
            descriptions.append(f"table of '{element.name}'")
        elif "k" in matching.values and "k_rest" not in matching.values:
            descriptions.append(f"rest of '{element.name}'")
    for spring in robot.tree.springs:
        if spring.name not in linear or f"k[{spring.name}]" not in looked_for:
            descriptions.append(f"coupling '{spring.name}'")
        elif f"k_rest[{spring.name}]" not in looked_for:
            descriptions.append(f"offset of the coupling '{spring.name}'")
    for link in robot.tree.links:
        if link.terms.damper and f"d[{link.name}]" not in looked_for:
            descriptions.append(f"damper of '{link.name}'")
        if link.terms.stiffness and f"k[{link.name}]" not in looked_for:
            descriptions.append(f"spring of '{link.name}'")
        elif link.terms.stiffness and f"k_rest[{link.name}]" not in looked_for:
            descriptions.append(f"rest of the spring of '{link.name}'")
    return descriptions


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
        "d": terms.damper,
        "k_rest": terms.stiffness * terms.rest,
    }


def _terms_of(link: Link, motor: bool, friction: str, written: Collection[str]) -> list[str]:
    """Terms of a joint that are looked for: of friction those that are `written` in the file, be they zero."""
    terms = link.terms
    symbols = [symbol for symbol, there in (("IA", terms.motor_inertia), ("k", terms.stiffness)) if there]
    if motor and friction != "file":
        return symbols + list(TERMS[friction])
    by_direction = bool(terms.more_viscous or terms.more_coulomb) or not {"viscous_back", "coulomb_back"}.isdisjoint(
        written
    )
    named = (("FV", "viscous", terms.viscous), ("FS", "coulomb", terms.coulomb))
    symbols += [symbol for symbol, key, value in named if value or key in written]
    symbols += ["FV_back"] if by_direction and terms.viscous else []
    symbols += ["FS_back"] if by_direction and terms.coulomb else []
    return symbols + (["offset"] if terms.offset or "offset" in written else [])


def characteristic_sizes(every: Sequence[Unknown], columns: Sequence[int]) -> Array:
    """What each number is measured with where numbers change as little as may be: its own size in the file.

    Numbers that are small or zero there count as a twentieth of the largest of all; stiffnesses, which are larger by
    any factor, do not say how large bodies and friction are.
    """
    size = np.abs([unknown.value for unknown in every])
    without_springs = [k for k in columns if every[k].symbol not in SPRINGS]
    return np.maximum(size, 0.05 * size[without_springs].max(initial=1e-3))


def by_direction(every: list[Unknown], link: int) -> bool:
    """Whether friction of a joint differs by direction among the unknowns."""
    return any(unknown.link == link and unknown.symbol in ("FV_back", "FS_back") for unknown in every)


def joint_column(
    unknown: Unknown, every: list[Unknown], link: Link, q: Any, rate: Any, acceleration: Any, width: float = 0.0
) -> Any:
    """What a joint takes per unit of one of its terms, along its rate, over any scalar, theory (7).

    Coulomb friction changes its sign at once, or over rates of this width.
    """
    if unknown.symbol == "IA":
        return acceleration
    if unknown.symbol == "k":
        apart = any(other.link == unknown.link and other.symbol == "k_rest" for other in every)
        return q if apart else q - link.terms.rest
    if unknown.symbol in ("offset", "k_rest"):
        return 1.0 if unknown.symbol == "offset" else -1.0
    if unknown.symbol == "d":
        return rate
    if not by_direction(every, unknown.link):
        return rate if unknown.symbol == "FV" else smooth_sign(rate, width)
    side = smooth_sign(rate, width)
    shares = {"FV": (1 + side) / 2, "FV_back": (1 - side) / 2}
    if unknown.symbol in shares:
        return rate * shares[unknown.symbol]
    return side * ((1 + side) / 2 if unknown.symbol == "FS" else (1 - side) / 2)


@dataclass(frozen=True, eq=False, repr=False)
class LinearElement(Record):
    """An element between points or an elastic coupling, and the numbers in which its force is linear."""

    name: str
    values: dict[str, float]  # by symbol: k, d, k_rest
    turns: bool  # whether its stretch is an angle


def linear_elements(robot: Robot) -> list[LinearElement]:
    """Of a robot, in the order of its file, elements before couplings."""
    offsets = {item.name for item in robot.description.coupling if "offset" in item.model_fields_set}
    result = [LinearElement(item.name, _of_element(item), False) for item in robot.tree.elements]
    for spring in robot.tree.springs:
        turns = robot.tree.links[spring.numbers[0]].joint.unit == "rad"
        result.append(LinearElement(spring.name, _of_coupling(spring, spring.name in offsets), turns))
    return [item for item in result if item.values]


def _of_element(element: PointElement) -> dict[str, float]:
    """A spring that rests where its points meet has no line there, along which a rest could act."""
    if element.pulls_only or not element.acts:
        return {}
    values = {"k": float(element.stiffness)} if element.stiffness and element.curve is None else {}
    values |= {"d": float(element.damping)} if element.damping else {}
    return values | (
        {"k_rest": float(element.stiffness * element.rest)} if "k" in values and not element.smooth_at_zero else {}
    )


def _of_coupling(spring: CoupledSpring, offset: bool) -> dict[str, float]:
    if spring.play or spring.pulls_only or spring.lossy:
        return {}
    values = {"k": float(spring.stiffness)} | ({"d": float(spring.damping)} if spring.damping else {})
    return values | ({"k_rest": float(spring.stiffness * spring.offset)} if offset else {})


class ElementColumns:
    """Forces along all rates, or along independent ones, per unit of the numbers of elements, over any scalar."""

    def __init__(self, tree: Tree, at: Any, moving: Any, J: Array | None) -> None:
        self.tree, self.at, self.moving, self.J = tree, at, moving, J
        self.elements = {item.name: item for item in tree.elements}
        self.springs = {item.name: item for item in tree.springs}
        self.jacobians = jacobians(tree, at) if tree.elements else []

    def of(self, name: str, symbol: str) -> Array:
        """One column."""
        if name in self.springs:
            return self._coupling(self.springs[name], symbol)
        element = self.elements[name]
        ends = (element.first, element.second)
        if element.smooth_at_zero:
            return self._along(ends, self.at.of(ends[1])[1] - self.at.of(ends[0])[1])
        across, length, rate = line_between(self.at, ends, name, self.moving)
        # of a unit of stiffness the tension is the length, which its direction is divided by
        share: Any = {"k": 1.0, "d": rate / length, "k_rest": -1 / length}[symbol]
        return self._along(ends, share * across)

    def _along(self, ends: Any, force: Array) -> Array:
        """What it takes along rates against a force on the first of two places, and its opposite on the second."""
        total: Any = 0.0
        for link, (pulled, turned) in wrenches_on_ends(self.at, ends, force).items():
            J_v, J_w = self.jacobians[link] if self.J is None else (part @ self.J for part in self.jacobians[link])
            total = total - (J_v.T @ pulled + J_w.T @ turned)
        return np.asarray(total)

    def _coupling(self, spring: CoupledSpring, symbol: str) -> Array:
        row = np.zeros(self.tree.n)
        row[list(spring.rates)] = spring.coefficients
        stretch = replace(spring, offset=0.0).stretch(self.at.q)
        share = {"k": stretch, "d": spring.along(self.moving.qd), "k_rest": -1.0}[symbol]
        return (row if self.J is None else self.J.T @ row) * share


def with_element_numbers(tree: Tree, numbers: Mapping[str, Mapping[str, float]]) -> Tree:
    """The tree with elements and couplings that have these numbers, by name and symbol."""

    def changed(element: Any, rest: str) -> Any:
        values = numbers.get(element.name)
        return element if values is None else replace(element, **fields_of(values, rest))

    return replace(
        tree, elements=tuple(changed(item, "rest") for item in tree.elements),
        springs=tuple(changed(item, "offset") for item in tree.springs),
    )  # fmt: skip


def fields_of(numbers: Mapping[str, float], rest: str = "rest", damping: str = "damping") -> dict[str, float]:
    """Numbers of a spring and a damper as files have them."""
    fields = {"stiffness": numbers["k"]} if "k" in numbers else {}
    fields |= {damping: numbers["d"]} if "d" in numbers else {}
    return fields | ({rest: numbers["k_rest"] / numbers["k"] if numbers["k"] else 0.0} if "k_rest" in numbers else {})


def without_elements(tree: Tree, names: Sequence[str]) -> Tree:
    """The tree without what is linear in some elements and couplings; tables of theirs stay."""
    gone = set(names)

    def left(element: PointElement) -> PointElement:
        return replace(element, stiffness=0.0, rest=0.0, damping=0.0) if element.name in gone else element

    elements = [left(item) for item in tree.elements]
    acting = [
        item for item in elements if item.name not in gone or item.curve is not None or item.speed_curve is not None
    ]
    springs = [item for item in tree.springs if item.name not in gone]
    return replace(tree, elements=tuple(acting), springs=tuple(springs))
