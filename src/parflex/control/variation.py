"""Parameter errors: the numbers of a robot file that may be wrong, and a robot with errors.

A length is the offset from a frame to an element mounted on it: another frame, a point, a mass at the same place.
Offsets on the base are not varied. Inertias are central.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.robot.load import with_numbers
from parflex.robot.robot import Robot
from parflex.robotfile import schema
from parflex.spatial.rotations import mdh_transform
from parflex.tree.build import read_body

Array = np.ndarray
KINDS = ("lengths", "masses", "inertias", "centres")
TENSOR = ("XX", "XY", "XZ", "YY", "YZ", "ZZ")


@dataclass(frozen=True)
class Parameter:
    """One number (or vector, or tensor, with one factor) of a robot file that may be off."""

    kind: str
    name: str  # of the frame, with what is meant behind a colon where that is not all of it

    @property
    def word(self) -> str:
        """Return the name among all parameters."""
        return f"{self.kind}: {self.name}"


def parameters_of(robot: Robot, kinds: Sequence[str] = KINDS) -> list[Parameter]:
    """Return the parameters of a robot, by kind and in the order of the file."""
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(
                f"there is no kind '{kind}' of parameters", key="vary", value=kind, hint=did_you_mean(kind, KINDS)
            )
    seen: dict[Parameter, None] = {}

    def note(kind: str, name: str) -> float:
        seen.setdefault(Parameter(kind, name))
        return 1.0

    _changed(robot.description, note)
    parameters = [parameter for kind in KINDS if kind in kinds for parameter in seen if parameter.kind == kind]
    if not parameters:
        raise InputError(
            "the robot has no such parameters", key="vary", value=", ".join(kinds), hint="vary other kinds"
        )
    return parameters


def perturbed_robot(robot: Robot, factors: Mapping[Parameter, float]) -> Robot:
    """Return the robot with parameters multiplied by factors."""
    changed = _changed(robot.description, lambda kind, name: factors.get(Parameter(kind, name), 1.0))
    return with_numbers(robot, changed)


def _changed(description: schema.RobotFile, factor: Any) -> schema.RobotFile:
    """Return the description with every parameter multiplied by `factor(kind, name)`."""
    lengths, platform = _Lengths(description, factor), description.platform
    frames = tuple(_frame(frame, lengths, factor) for frame in description.frame)
    points = [p.model_copy(update={"position": lengths.of(p.frame, p.position, p.name)}) for p in description.point]
    update: dict[str, Any] = {"frame": frames, "point": tuple(points)}
    if platform is not None:
        changed = _bodies(platform.name, platform.inertia, platform.point_masses, lengths, factor)
        changed["points"] = {name: lengths.of(platform.name, at, name) for name, at in platform.points.items()}
        update["platform"] = platform.model_copy(update=changed)
    return description.model_copy(update=update)


class _Lengths:
    """Factors of ways on a frame: what sits at one place of a frame has one factor."""

    def __init__(self, description: schema.RobotFile, factor: Any) -> None:
        self.factor, self.ground, platform = factor, _grounded(description), description.platform
        places = [(frame.parent, _mount(frame), frame.name) for frame in description.frame]
        places += [(point.frame, point.position, point.name) for point in description.point]
        places += [(platform.name, at, name) for name, at in platform.points.items()] if platform is not None else []
        self.names = {(frame, _rounded(at)): name for frame, at, name in reversed(places)}  # of the first one

    def known(self, frame: str, position: Sequence[float]) -> bool:
        """Return whether an element is mounted at this position."""
        return any(position) and frame not in self.ground and (frame, _rounded(position)) in self.names

    def scale(self, frame: str, position: Sequence[float], name: str) -> float:
        """Return the factor of the offset from a frame to a position on it."""
        if frame in self.ground or not any(position):
            return 1.0
        return self.factor("lengths", f"{frame} to {self.names.get((frame, _rounded(position)), name)}")

    def of(self, frame: str, position: Sequence[float], name: str) -> tuple[float, ...]:
        """Return the position with its factor."""
        scale = self.scale(frame, position, name)
        return tuple(scale * value for value in position)


def _rounded(position: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(float(value), 12) for value in position)


def _grounded(description: schema.RobotFile) -> set[str]:
    """Return the base and all frames fixed to it."""
    grounded = {"base"}
    for _ in description.frame:
        grounded |= {
            f.name for f in description.frame if f.parent in grounded and f.joint == "fixed" and f.beam is None
        }
    return grounded


def _mount(frame: schema.Frame) -> tuple[float, ...]:
    """Return the position of a frame on its parent."""
    if frame.mdh is not None:
        return tuple(mdh_transform(**frame.mdh.model_dump())[1])
    return (frame.place or schema.Placement()).position


def _frame(frame: schema.Frame, lengths: _Lengths, factor: Any) -> schema.Frame:
    scale = lengths.scale(frame.parent, _mount(frame), frame.name)
    update = _bodies(frame.name, frame.inertia, frame.point_masses, lengths, factor)
    if frame.mdh is not None and scale != 1.0:
        update["mdh"] = frame.mdh.model_copy(update={key: scale * getattr(frame.mdh, key) for key in ("b", "d", "r")})
    elif frame.place is not None:
        position = tuple(scale * value for value in frame.place.position)
        update["place"] = frame.place.model_copy(update={"position": position})
    if frame.beam is not None:
        length = factor("lengths", f"{frame.name}: beam") * frame.beam.length
        update["beam"] = frame.beam.model_copy(update={"length": length})
    return frame.model_copy(update=update)


def _bodies(
    name: str, inertia: schema.Inertia, masses: Sequence[schema.PointMass], lengths: _Lengths, factor: Any
) -> dict[str, Any]:
    """Return body and point masses with their factors."""
    points = []
    for number, point in enumerate(masses, start=1):
        label = f"{name}: point mass {number}" if len(masses) > 1 else f"{name}: point mass"
        update = _scaled(factor, label, point.mass, point.about_centre)
        if lengths.known(name, point.position):
            update["position"] = lengths.of(name, point.position, label)
        elif any(point.position):
            update["position"] = tuple(factor("centres", label) * value for value in point.position)
        points.append(point.model_copy(update=update))
    return {"inertia": _body(name, inertia, factor), "point_masses": tuple(points)}


def _body(name: str, inertia: schema.Inertia, factor: Any) -> schema.Inertia:
    """Return a body by mass, centre and central inertia, with factors; a massless one keeps its form."""
    about_centre: Any
    if inertia.mass is not None:
        mass, centre, about_centre = inertia.mass, np.array(inertia.centre), inertia.about_centre
    else:
        body = read_body(inertia)
        if not body.m:
            tensor = {word: getattr(inertia, word) for word in TENSOR}
            scale = factor("inertias", name) if any(tensor.values()) else 1.0
            return inertia.model_copy(update={word: scale * value for word, value in tensor.items()})
        mass, centre = float(body.m), np.asarray(body.S, dtype=float) / float(body.m)
        about_centre = np.asarray(body.I, dtype=float) - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    shift = factor("centres", name) if centre.any() else 1.0
    update = dict.fromkeys(("M", "MX", "MY", "MZ", *TENSOR), 0.0) | {"centre": tuple((shift * centre).tolist())}
    return inertia.model_copy(update=update | _scaled(factor, name, mass, about_centre))


def _scaled(factor: Any, name: str, mass: float, about_centre: Any) -> dict[str, Any]:
    """Return mass and central inertia with their factors; zeros have none."""
    matrix = schema.central_matrix(about_centre)
    scaled = factor("inertias", name) * matrix if matrix.any() else matrix
    return {"mass": factor("masses", name) * mass if mass else mass, "about_centre": tuple(map(tuple, scaled.tolist()))}
