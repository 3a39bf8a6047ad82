"""Quantities of columns: their units, and with which others they are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from parflex.robot.robot import Robot
from parflex.spatial.rotations import ORIENTATION

Array = np.ndarray


class Quantity(NamedTuple):
    """A quantity of columns; those of the same `name` are measured against the largest of them."""

    name: str
    unit: str
    label: str  # in figures


JOINT = "joint"  # in place of the unit of a joint
FIRST = {  # by the first word of a column
    "t": Quantity("time", "s", "time"),
    "closure_error": Quantity("opening", "m", "opening of loops"),
    "energy": Quantity("energy", "J", "energy"),
    "work": Quantity("work", "J", "work"),
    "power": Quantity("power", "W", "power"),
    "effort": Quantity("effort", f"N of {JOINT}", "effort"),
    "q": Quantity("coordinate", JOINT, "coordinate"),
    "qd": Quantity("rate", f"{JOINT}/s", "rate"),
    "qdd": Quantity("rate of rate", f"{JOINT}/s²", "acceleration"),
}

LAST = {  # by the last word of a column, before the place along a beam
    "[xyz]": Quantity("position", "m", "position"),
    "theta|r[xyz]": Quantity("turn", "rad", "angle"),
    "(q|orientation_)[wxyz]": Quantity("turn", "1", "quaternion"),
    "(chord|tangent)_[yz]|deflection": Quantity("deflection", "m", "deflection"),
    "(local_)?v[xyz]": Quantity("velocity", "m/s", "velocity"),
    "(local_|sensor_)?w[xyz]": Quantity("angular velocity", "rad/s", "angular velocity"),
    "(local_)?a[xyz]": Quantity("acceleration", "m/s²", "acceleration"),
    "sensor(_a[xyz])?": Quantity("acceleration of sensors", "m/s²", "acceleration"),  # with gravity: others are small
    "(local_)?al[xyz]": Quantity("angular acceleration", "rad/s²", "angular acceleration"),
    "N|V[yz]": Quantity("force", "N", "section force"),
    "T|M[yz]": Quantity("moment", "N m", "section moment"),
    "stress": Quantity("stress", "Pa", "stress"),
    "length": Quantity("length", "m", "length"),
    "force": Quantity("force", "N", "force"),
    "f[xyz]": Quantity("force", "N", "force"),
    "m[xyz]": Quantity("moment", "N m", "moment"),
}

LABEL = re.compile(r"(?:^|\.)([A-Za-z_]\w*)(?:@[0-9.eE+-]+)?$")
SECTION = re.compile(r"(.+\.(?:N|Vy|Vz|T|My|Mz|stress))@([^@:]+)")  # a column of a section, and its place
BY_ACCELERATION = ("acceleration", "acceleration of sensors", "angular acceleration", "force", "moment", "stress")


def quantity(column: str) -> Quantity:
    """Return the quantity of a column; of no known one its last word without a unit."""
    name = column.removesuffix(".low")
    first, _, rest = name.partition(".")
    if first in FIRST and (rest or first in ("t", "closure_error")):
        return FIRST[first]
    match = LABEL.search(name)
    label = match[1] if match else name
    return next((known for words, known in LAST.items() if re.fullmatch(words, label)), Quantity(label, "", "value"))


def unit_of(column: str, robot: Robot | None = None) -> tuple[str, str]:
    """Return unit and label of a column; without the robot, both units of a joint."""
    known = quantity(column)
    if JOINT not in known.unit:
        return known.unit, known.label
    units = _joint_units(column.removesuffix(".low").partition(".")[2], robot)
    if known.name == "effort":
        return " or ".join({"m": "N", "rad": "N m"}.get(unit, unit) for unit in reversed(units)), known.label
    return " or ".join(known.unit.replace(JOINT, unit) for unit in units), known.label


def coordinate_rows(robot: Robot, columns: Mapping[str, Array], word: str = "q") -> Array:
    """Return positions of a run in rows, or the columns of another `word`."""
    return np.stack([columns[f"{word}.{name}"] for name in robot.tree.position_names], axis=1)


def frame_difference(
    columns: Mapping[str, Array], other: Mapping[str, Array], frame: str
) -> tuple[float, float, dict[str, Any]]:
    """Return how far a frame differs in another run (m, rad), and the coordinate that differs most, by its range."""
    rows = min(len(other["t"]), len(columns["t"]))

    def apart(name: str) -> float:
        return float(np.abs(other[name][:rows] - columns[name][:rows]).max(initial=0.0))

    metres = max((apart(name) for name in (f"{frame}.{axis}" for axis in "xyz") if name in columns), default=0.0)
    if f"{frame}.theta" in columns:
        radians = apart(f"{frame}.theta")
    else:
        first, second = (
            np.stack([run[f"{frame}.{word}"][:rows] for word in ORIENTATION], axis=1) for run in (columns, other)
        )
        sizes = [np.linalg.norm(first + sign * second, axis=1) for sign in (-1, 1)]  # q and -q are one rotation
        radians = float((4 * np.arcsin(np.clip(np.minimum(*sizes) / 2, 0.0, 1.0))).max(initial=0.0))
    most, share = "", 0.0
    for name in (name for name in columns if name.startswith("q.") and name in other):  # runs may differ in elements
        ranged = float(np.ptp(columns[name][:rows]))
        if not most or (ranged > 0 and apart(name) / ranged > share):
            most, share = name.removeprefix("q."), apart(name) / ranged if ranged > 0 else 0.0
    return metres, radians, {"coordinate": most, "share_of_range": share}


def _joint_units(name: str, robot: Robot | None) -> list[str]:
    """Return the unit of a coordinate, or the units that it may have."""
    units: Mapping[str, str] = {} if robot is None else {link.name: link.joint.unit for link in robot.tree.links}
    if unit := units.get(name):
        return [unit]
    label = name.rpartition(".")[2]
    if label in ("ux", "uy", "uz"):
        return ["m"]
    known = quantity(f".{label}")
    return [known.unit] if known.name in ("position", "turn") else ["rad", "m"]
