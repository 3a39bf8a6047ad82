"""Units of the columns of a run, for the axes of figures."""

from __future__ import annotations

import re
from collections.abc import Mapping

from parflex.robot.robot import Robot
from parflex.spatial.rotations import ORIENTATION

PLACES = {"x": "m", "y": "m", "z": "m", "theta": "rad", "rx": "rad", "ry": "rad", "rz": "rad"}
BENT = re.compile(r".+\.(chord|tangent)_[yz]@[^@]+")
SECTION = re.compile(r"(.+\.(N|Vy|Vz|T|My|Mz|stress))@([^@:]+)")
INSIDE = {"N": ("N", "section force"), "V": ("N", "section force"), "s": ("Pa", "stress")}
TURNS = ("qw", "qx", "qy", "qz", *ORIENTATION)
MOTIONS = {"v": ("m/s", "velocity"), "w": ("rad/s", "angular velocity"), "a": ("m/s²", "acceleration")}
MOTIONS |= {"al": ("rad/s²", "angular acceleration")}
KINDS = {"rad": "angle", "m": "position", "1": "quaternion", "J": "energy", "W": "power"}


def unit_of(column: str, robot: Robot | None = None) -> tuple[str, str]:
    """Unit and kind of a column; without the robot, that of a joint is not known and both units are given."""
    name = column.removesuffix(".low")
    first, _, rest = name.partition(".")
    last = name.rpartition(".")[2]
    if name == "t":
        return "s", "time"
    if name == "closure_error":
        return "m", "opening of loops"
    if first == "energy":
        return "J", "energy"
    if first == "power":
        return "W", "power"
    if first == "work":
        return "J", "work"
    if first == "effort":
        return {"rad": "N m", "m": "N"}.get(_joint(rest, robot), "N or N m"), "effort"
    if first in ("q", "qd", "qdd") and rest:
        suffix = {"q": "", "qd": "/s", "qdd": "/s²"}[first]
        kind = {"q": "coordinate", "qd": "rate", "qdd": "acceleration"}[first]
        return " or ".join(part + suffix for part in _joint(rest, robot).split(" or ")), kind
    if last in TURNS:
        return "1", "quaternion"
    if last in PLACES:
        return PLACES[last], KINDS[PLACES[last]]
    if BENT.fullmatch(name):
        return "m", "deflection"
    section = SECTION.fullmatch(name)
    if section is not None:
        return INSIDE.get(section[2][0], ("N m", "section moment"))
    word = last.removeprefix("local_").removeprefix("sensor_")
    for start in ("al", "v", "w", "a"):
        if word.startswith(start) and word[len(start) :] in ("x", "y", "z"):
            return MOTIONS[start]
    return "", "value"


def _joint(name: str, robot: Robot | None) -> str:
    """Unit of a coordinate of this name."""
    label = name.rpartition(".")[2]
    if label in ("ux", "uy", "uz"):
        return "m"
    if label in PLACES:
        return PLACES[label]
    if label in TURNS:
        return "1"
    if robot is not None:
        units: Mapping[str, str] = {link.name: link.joint.unit for link in robot.tree.links}
        return units.get(name) or "rad or m"
    return "rad or m"
