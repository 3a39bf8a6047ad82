"""Words of coordinates: each coordinate has one name, whatever its spelling."""

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
    """A word of a frame, `hand.rx`, that means the world, even if the frame is on a ball whose coordinate it names."""


class Coordinate(NamedTuple):
    """A coordinate of a pose: of a joint or an elastic body (`position` and `rate`), or a `component` of a frame.

    `unit` is m or rad per unit of the word. A `relative` rotation is that of a ball, seen from its parent.
    """

    name: str
    unit: float = 1.0
    position: int = -1
    rate: int = -1
    frame: str | None = None
    component: str = ""
    relative: bool = False

    @property
    def key(self) -> Any:
        """What two words of one coordinate have in common."""
        return self.name if self.frame is None else (self.frame, self.component)


def read_coordinate(tree: Tree, word: str, key: str = "pose", file: str | None = None) -> Coordinate | None:
    """Return the coordinate that a word names; None for words of none.

    Its name is `x` for `tip.x` where the end effector is `tip` and no joint is called `x`, `left` for `qleft`, and
    `theta` for `theta_deg`.
    """
    if word in elastic_names(tree):
        return Coordinate(word, 1.0, tree.position_names.index(word), tree.rate_names.index(word))
    name = without_degrees(tree, word)
    joint = joint_named(tree, name)
    if joint is not None:
        unit = 1.0 if name == word else to_radians(word, joint.joint.unit == "rad", key, file)
        return Coordinate(joint.name, unit, joint.q.start, joint.v.start)
    frame, component = split_frame(tree, name, key)
    if frame is None:
        return None
    unit = 1.0 if name == word else to_radians(word, component in ANGLES, key, file)
    is_rotation = component in (*VECTOR, *QUATERNION) and name != component
    relative = is_rotation and not isinstance(word, WorldName) and has_spherical_rotation(tree, frame)
    is_end_effector = frame == tree.end_effector and not relative and joint_named(tree, component) is None
    name = component if is_end_effector else f"{frame}.{component}"
    return Coordinate(name, unit, frame=frame, component=component, relative=relative)


def read_columns(
    tree: Tree, words: Sequence[str], key: str = "pose", file: str | None = None
) -> tuple[tuple[str, ...], Array]:
    """Return the names of coordinates, and their units; words of none stay as they are.

    Raises `InputError` where two words are the same coordinate.
    """
    used_names: dict[Any, str] = {}
    names, units = [], []
    for word in words:
        coordinate = read_coordinate(tree, word, key, file) or Coordinate(word)
        refuse_duplicates(used_names, coordinate.key, word, key, file)
        names.append(coordinate.name)
        units.append(coordinate.unit)
    return tuple(names), np.array(units)


def read_row(tree: Tree, coordinates: Mapping[str, float], key: str = "pose") -> dict[str, float]:
    """Return the values of coordinates (m, rad) by their names."""
    names, units = read_columns(tree, list(coordinates), key)
    return {
        name: float(value) * float(unit) for name, value, unit in zip(names, coordinates.values(), units, strict=True)
    }


def elastic_names(tree: Tree) -> set[str]:
    """Names of elastic coordinates."""
    return {tree.rate_names[k] for k in tree.elastic}


def pose_names(tree: Tree) -> list[str]:
    """Words that a pose may use."""
    ends = ["x", "y", "theta"] if tree.planar else [*POSITION, *QUATERNION, *VECTOR, *AXIS]
    return [link.name for link in tree.links if link.joint.one_axis] + ends


def nearest_name(tree: Tree, name: str, words: Sequence[str]) -> str:
    """The nearest word; of `tipp.x` the nearest frame."""
    frame, dot, component = name.rpartition(".")
    if dot and component in words:
        suggestion = nearest(frame, tree.places)
        if suggestion:
            return f"did you mean '{suggestion}.{component}'?"
    return did_you_mean(name, words)


def joint_named(tree: Tree, name: str) -> Link | None:
    """The joint with one axis of this name; `q` may stand in front of it."""
    for candidate in (name, name[1:] if name.startswith("q") else name):
        for link in tree.links:
            if link.name == candidate and link.joint.one_axis:
                return link
    return None


def split_frame(tree: Tree, name: str, key: str = "pose") -> tuple[str | None, str]:
    """Frame and component of `x` (the end effector's) or `tip.x`."""
    if name in COMPONENTS:
        return tree.end_effector, name
    frame, _, component = name.rpartition(".")
    if component in COMPONENTS and tree.has(frame, key):
        return frame, component
    return None, ""


def has_spherical_rotation(tree: Tree, frame: str) -> bool:
    """Whether rotations of this frame are in poses those of its spherical joint, relative to what carries it."""
    return any(link.name == frame and link.joint.kind == "spherical" for link in tree.links)


def without_degrees(tree: Tree, word: str) -> str:
    """The word without `_deg`, unless a joint is called so."""
    return word if joint_named(tree, word) else word.removesuffix(DEGREES)


def to_radians(word: str, turning: bool, key: str, file: str | None) -> float:
    """Return a degree in rad; a length in degrees is refused."""
    if not turning:
        raise InputError(
            f"'{word}' is a length, not an angle", key=key, file=file, value=word, hint="drop '_deg' and write metres"
        )
    return float(np.pi / 180)


def refuse_duplicates(used_names: dict[Any, str], coordinate: Any, word: str, key: str, file: str | None) -> None:
    """One coordinate has several names (`x`, `platform.x`; `theta`, `theta_deg`): only one of them may be used."""
    if coordinate in used_names:
        raise InputError(
            f"'{word}' is given twice"
            if word == used_names[coordinate]
            else f"'{used_names[coordinate]}' and '{word}' are the same coordinate",
            key=key,
            file=file,
            value=word,
            hint="keep one of them",
        )
    used_names[coordinate] = word
