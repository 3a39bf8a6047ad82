"""Parse words of coordinates: each coordinate has one name, for any spelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from parflex.closure.targets import WORDS as AXIS
from parflex.errors import InputError, did_you_mean, nearest
from parflex.tree.tree import Link, Tree

Array = np.ndarray
POSITION = ("x", "y", "z")
QUATERNION = ("qw", "qx", "qy", "qz")
VECTOR = ("rx", "ry", "rz")
COMPONENTS = (*POSITION, *QUATERNION, *VECTOR, "theta", *AXIS)
ANGLES = (*VECTOR, "theta")
DEGREES = "_deg"


class WorldName(str):
    """A word of a frame, `hand.rx`, in world axes, also for frames on a ball joint with this coordinate."""


class Coordinate(NamedTuple):
    """A coordinate of a pose: of a joint or elastic body (`position` and `rate`), or a `component` of a frame.

    `unit` is m or rad per unit of the word. A `relative` rotation is that of a ball joint relative to its parent.
    """

    name: str
    unit: float = 1.0
    position: int = -1
    rate: int = -1
    frame: str | None = None
    component: str = ""
    relative: bool = False


class Reader:
    """Parser of the words of coordinates of a tree; errors name the argument `key` and the `file`."""

    def __init__(self, tree: Tree, key: str = "pose", file: str | None = None) -> None:
        self.tree, self.key, self.file = tree, key, file
        self._used: dict[Any, str] = {}

    def error(self, message: str, value: Any, hint: str) -> InputError:
        """Return the error about a word."""
        return InputError(message, key=self.key, file=self.file, value=value, hint=hint)

    def coordinate(self, word: str) -> Coordinate | None:
        """Return the coordinate of a word, such as `x` of `tip.x` or `theta` of `theta_deg`, or None."""
        tree = self.tree
        if word in elastic_names(tree):
            return Coordinate(word, 1.0, tree.position_names.index(word), tree.rate_names.index(word))
        name = self.without_degrees(word)
        joint = joint_named(tree, name)
        if joint is not None:
            unit = 1.0 if name == word else self.radians(word, joint.joint.unit == "rad")
            return Coordinate(joint.name, unit, joint.q.start, joint.v.start)
        frame, component = self._frame_component(name)
        if frame is None:
            return None
        unit = 1.0 if name == word else self.radians(word, component in ANGLES)
        is_rotation = component in (*VECTOR, *QUATERNION) and name != component
        relative = is_rotation and not isinstance(word, WorldName) and self.is_ball(frame)
        is_end_effector = frame == tree.end_effector and not relative and joint_named(tree, component) is None
        name = component if is_end_effector else f"{frame}.{component}"
        return Coordinate(name, unit, frame=frame, component=component, relative=relative)

    def _frame_component(self, name: str) -> tuple[str | None, str]:
        """Return frame and component of `x` (of the end effector) or `tip.x`."""
        if name in COMPONENTS:
            return self.tree.end_effector, name
        frame, _, component = name.rpartition(".")
        return (frame, component) if component in COMPONENTS and self.tree.has(frame, self.key) else (None, "")

    def is_ball(self, frame: str) -> bool:
        """Return whether pose rotations of a frame are those of its spherical joint, relative to its parent."""
        return any(link.name == frame and link.joint.kind == "spherical" for link in self.tree.links)

    def without_degrees(self, word: str) -> str:
        """Return the word without `_deg`, unless it is the name of a joint."""
        return word if joint_named(self.tree, word) else word.removesuffix(DEGREES)

    def radians(self, word: str, turning: bool) -> float:
        """Return a degree in rad; raise for a length in degrees."""
        if not turning:
            raise self.error(f"'{word}' is a length, not an angle", word, "drop '_deg' and write metres")
        return float(np.pi / 180)

    def once(self, coordinate: Any, word: str) -> None:
        """Raise if a coordinate repeats under another name (`x`, `platform.x`; `theta`, `theta_deg`)."""
        if coordinate in self._used:
            other = self._used[coordinate]
            message = f"'{word}' is given twice" if word == other else f"'{other}' and '{word}' are the same coordinate"
            raise self.error(message, word, "keep one of them")
        self._used[coordinate] = word

    def once_by_name(self, coordinate: Coordinate, word: str) -> None:
        """Raise if a name repeats."""
        component = None if coordinate.frame is None else (coordinate.frame, coordinate.component)
        self.once(component or coordinate.name, word)

    def nearest(self, name: str, words: Sequence[str]) -> str:
        """Return the nearest word; for `tipp.x` with the nearest frame."""
        frame, dot, component = name.rpartition(".")
        suggestion = nearest(frame, self.tree.places) if dot and component in words else None
        return f"did you mean '{suggestion}.{component}'?" if suggestion else did_you_mean(name, words)


def read_columns(tree: Tree, words: Sequence[str], key: str = "pose") -> tuple[tuple[str, ...], Array]:
    """Return names and units of coordinates; other words stay unchanged, repeated ones raise."""
    reader = Reader(tree, key)
    coordinates = [reader.coordinate(word) or Coordinate(word) for word in words]
    for coordinate, word in zip(coordinates, words, strict=True):
        reader.once_by_name(coordinate, word)
    return tuple(coordinate.name for coordinate in coordinates), np.array([c.unit for c in coordinates])


def read_row(tree: Tree, coordinates: Mapping[str, float]) -> dict[str, float]:
    """Return the values of coordinates (m, rad) by name."""
    names, units = read_columns(tree, list(coordinates))
    return {
        name: float(value) * float(unit) for name, value, unit in zip(names, coordinates.values(), units, strict=True)
    }


def elastic_names(tree: Tree) -> set[str]:
    """Return the names of elastic coordinates."""
    return {tree.rate_names[k] for k in tree.elastic}


def pose_names(tree: Tree) -> list[str]:
    """Return the words that a pose may use."""
    ends = ["x", "y", "theta"] if tree.planar else [*POSITION, *QUATERNION, *VECTOR, *AXIS]
    return [link.name for link in tree.links if link.joint.one_axis] + ends


def joint_named(tree: Tree, name: str) -> Link | None:
    """Return the joint with one axis of this name, with or without leading `q`."""
    for candidate in (name, name[1:] if name.startswith("q") else name):
        for link in tree.links:
            if link.name == candidate and link.joint.one_axis:
                return link
    return None
