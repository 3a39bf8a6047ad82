"""Reading conditions of a pose beside coordinates: directions of axes, `zx zy zz`, and distances between frames."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from parflex.closure.targets import WORDS, AxisComponentTarget, AxisTarget, DistanceTarget, FrameRotationRows
from parflex.errors import InputError, did_you_mean, nearest
from parflex.recursion.kinematics import pose
from parflex.tree.tree import Tree

Array = np.ndarray
DISTANCE = "distance."
ROUNDING = 1e-9  # of a component of a unit vector
UPRIGHT = 1e-12  # of one less its cosine: nearer, one component gives the whole direction


def read_axis(
    tree: Tree, frame: str, parts: Mapping[str, float], key: str, file: str | None, q: Array | None
) -> FrameRotationRows | None:
    """What is asked of the z axis of a frame; `q` tells the sign of a third component, None: that it is positive."""
    given = {axis: parts[word] for axis, word in enumerate(WORDS) if word in parts}
    if not given:
        return None
    said = ", ".join(f"{WORDS[axis]} = {value:.6g}" for axis, value in given.items())
    if tree.planar:
        word = WORDS[min(given)]
        raise InputError(f"a planar robot has no '{word}'", key=key, file=file, value=word, hint="give theta")
    place = tree.places[frame]
    size = float(np.linalg.norm(list(given.values())))
    if len(given) == 3:
        if size < UPRIGHT:
            raise InputError(
                f"the direction of '{frame}' is zero", key=key, file=file, value=said, hint="give e.g. zx=0,zy=0,zz=1"
            )
        return AxisTarget(frame, place, np.array([given[axis] for axis in range(3)]) / size)
    if size > 1 + ROUNDING:
        raise InputError(
            f"no direction of '{frame}' has {said}: components of a unit vector are at most 1 together, not {size:.6g}",
            key=key,
            file=file,
            value=said,
            hint="give smaller components, or all three of any vector along it",
        )
    if len(given) == 1 and size < 1 - UPRIGHT:
        axis, value = next(iter(given.items()))
        return AxisComponentTarget(frame, place, axis, value)
    return AxisTarget(frame, place, _completed(tree, frame, given, key, file, q))


def whole_axis(tree: Tree, given: Mapping[str, float], key: str, q: Array) -> Array | None:
    """The direction of the z axis of the end effector in words of a pose, or None; one component is too little."""
    frame = tree.end_effector
    parts = {word.removeprefix(f"{frame}."): value for word, value in given.items()}
    found = read_axis(tree, frame, parts, key, None, q)
    if isinstance(found, AxisComponentTarget):
        raise InputError(
            f"one component does not give the direction of '{frame}'", key=key, value=WORDS[found.number],
            hint="give zx, zy and zz",
        )  # fmt: skip
    return found.direction if isinstance(found, AxisTarget) else None


def _completed(
    tree: Tree, frame: str, given: Mapping[int, float], key: str, file: str | None, q: Array | None
) -> Array:
    """The direction of which the larger components are given: the last one has the sign that it has at a pose."""
    direction = np.array([given.get(axis, 0.0) for axis in range(3)])
    rest = 1.0 - float(direction @ direction)
    missing = [axis for axis in range(3) if axis not in given]
    if len(missing) == 1 and rest > ROUNDING**2:
        there = 1.0 if q is None else float(pose(tree, q).of(tree.places[frame])[0][missing[0], 2])
        if abs(there) < ROUNDING and rest > ROUNDING:
            raise InputError(
                f"the sign of '{WORDS[missing[0]]}' of '{frame}' is open, as it is zero at home",
                key=key,
                file=file,
                value=frame,
                hint="give all three components",
            )
        direction[missing[0]] = np.copysign(np.sqrt(rest), there)
    return direction / np.linalg.norm(direction)


def is_distance(word: str) -> bool:
    """Whether a word asks for a distance: `distance.FRAME.FRAME`, or `distance.FRAME~FRAME`."""
    return word.startswith(DISTANCE)


def read_distance(tree: Tree, word: str, value: float, key: str, file: str | None) -> DistanceTarget:
    """The distance between the origins of two frames."""
    first, second = _ends(tree, word, key, file)
    places = tree.places[first], tree.places[second]
    if places[0].link == places[1].link:
        raise InputError(
            f"'{first}' and '{second}' are fixed to one body, so their distance does not change",
            key=key,
            file=file,
            value=word,
            hint="name frames on two bodies",
        )
    if value <= 0:
        raise InputError(
            f"'{word}' is {value:g}: a distance must be positive",
            key=key,
            file=file,
            value=value,
            hint="for frames that coincide give x, y and z of one of them",
        )
    return DistanceTarget(word, *places, value)


def _ends(tree: Tree, word: str, key: str, file: str | None) -> tuple[str, str]:
    """The two frames of a distance; their names may have dots, so that only one way to part them may fit."""
    rest = word.removeprefix(DISTANCE)
    mark = "~" if "~" in rest else "."
    pieces = rest.split(mark)
    ways = [(mark.join(pieces[:k]), mark.join(pieces[k:])) for k in range(1, len(pieces))]
    known = [way for way in ways if way[0] in tree.places and way[1] in tree.places]
    if len(known) == 1:
        return known[0]
    if known:
        hint = f"write {DISTANCE}{known[0][0]}~{known[0][1]}"
        raise InputError(f"'{word}' names several pairs of frames", key=key, file=file, value=word, hint=hint)
    half = next((way for way in ways if (way[0] in tree.places) != (way[1] in tree.places)), None)
    if half is None:
        hint = "write distance.FRAME.FRAME with frames of the robot"
        raise InputError(f"'{word}' does not name two frames", key=key, file=file, value=word, hint=hint)
    unknown = half[1] if half[0] in tree.places else half[0]
    meant = nearest(unknown, tree.places)
    raise InputError(
        f"'{word}': there is no frame '{unknown}'",
        key=key,
        file=file,
        value=unknown,
        hint=did_you_mean(unknown, tree.places) if meant else "name a frame or point of the robot",
    )
