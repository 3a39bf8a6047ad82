"""Read poses and motions: joints, frames, quaternions, directions and distances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.closure.targets import (
    WORDS,
    AxisComponentTarget,
    AxisTarget,
    DistanceTarget,
    FrameRotationRows,
    FrameTarget,
    PoseRows,
    Target,
)
from parflex.errors import InputError, did_you_mean, nearest
from parflex.recursion.kinematics import pose
from parflex.robot.coordinate_names import (
    COMPONENTS,
    POSITION,
    QUATERNION,
    VECTOR,
    WorldName,
    has_spherical_rotation,
    joint_named,
    nearest_name,
    pose_names,
    read_coordinate,
    refuse_duplicates,
    to_radians,
    without_degrees,
)
from parflex.robotfile.values import short_text
from parflex.spatial.rotations import quaternion_matrix, rotation_about, vector_quaternion
from parflex.tree.tree import Link, Tree

Array = np.ndarray

TWIST = {"x": 0, "y": 1, "z": 2, "rx": 3, "ry": 4, "rz": 5, "theta": 5}

LARGEST = 1e9  # no pose or motion comes near; powers of such numbers still fit

DISTANCE = "distance."

ROUNDING = 1e-9  # of a component of a unit vector

UPRIGHT = 1e-12  # of one less its cosine: nearer, one component gives the whole direction

TWIST |= {"vx": 0, "vy": 1, "vz": 2, "wx": 3, "wy": 4, "wz": 5, "ax": 0, "ay": 1, "az": 2}


def read_pose(
    tree: Tree, conditions: Mapping[str, float], key: str, file: str | None, near: Array | None = None
) -> Target:
    """The target that a table of coordinates and other conditions asks for.

    Of a direction with two components the third has the sign that it has at `near`, all positions of a pose.
    """
    values: dict[int, float] = {}
    fixed: set[int] = set()
    frames: dict[str, dict[str, float]] = {}
    relative: set[str] = set()
    targets: list[PoseRows] = []
    used_names: dict[Any, str] = {}
    for word, value in conditions.items():
        number = _finite(word, value, key, file)
        coordinate = read_coordinate(tree, word, key, file)
        if coordinate is None and is_distance(word):
            gap = read_distance(tree, word, number, key, file)
            refuse_duplicates(used_names, frozenset(map(id, (gap.first, gap.second))), word, key, file)
            targets.append(gap)
            continue
        if coordinate is None:
            raise InputError(
                f"'{word}' is neither a joint nor a coordinate of a frame",
                key=key,
                file=file,
                value=word,
                hint=nearest_name(tree, without_degrees(tree, word), pose_names(tree)),
            )
        refuse_duplicates(used_names, coordinate.key, word, key, file)
        if coordinate.frame is None:
            values[coordinate.position] = number * coordinate.unit
            fixed.add(coordinate.rate)
        else:
            frames.setdefault(coordinate.frame, {})[coordinate.component] = number * coordinate.unit
            relative |= {coordinate.frame} if coordinate.relative else set()
    for frame, parts in frames.items():
        _refuse_two_rotations(tree, frame, parts, key, file)
        targets += _place_frame(tree, frame, parts, frame in relative, key, file, values, fixed)
        axis = read_axis(tree, frame, parts, key, file, near)
        targets += [] if axis is None else [axis]
    return Target(values, frozenset(fixed), tuple(targets))


def read_end_effector(tree: Tree, coordinates: Mapping[str, float], key: str) -> tuple[dict[int, float], Array | None]:
    """Coordinates of the end effector alone, in words: positions by axis, and the rotation if one is given."""
    parts: dict[str, float] = {}
    used_names: dict[Any, str] = {}
    for word, value in coordinates.items():
        coordinate = read_coordinate(tree, word, key)
        if coordinate is None or coordinate.frame != tree.end_effector:
            words = [word for word in pose_names(tree) if word in COMPONENTS]
            name = without_degrees(tree, word)
            joint = f"'{name}' is a joint; write {tree.end_effector}.{name}" if name in words else ""
            raise InputError(
                f"'{word}' is not a coordinate of the end effector",
                key=key,
                value=word,
                hint=joint or did_you_mean(name, words),
            )
        refuse_duplicates(used_names, coordinate.key, word, key, None)
        parts[coordinate.component] = _finite(word, value, key, None) * coordinate.unit
    if tree.planar and "z" in parts:
        raise InputError("a planar robot has no 'z'", key=key, value="z", hint="give x, y and theta")
    position = {axis: parts[word] for axis, word in enumerate(POSITION) if word in parts}
    _refuse_two_rotations(tree, tree.end_effector, parts, key, None)
    return position, _rotation(tree, tree.end_effector, parts, key, None)


def _finite(word: str, value: Any, key: str, file: str | None) -> float:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not abs(value) <= LARGEST:
        raise InputError(
            f"'{word}' needs a number up to {LARGEST:g}, not {short_text(value)}",
            key=key,
            file=file,
            value=short_text(value),
            hint="write e.g. x=0.1",
        )
    return float(value)


def _refuse_two_rotations(tree: Tree, frame: str, parts: dict[str, float], key: str, file: str | None) -> None:
    """A rotation is given in one form; a direction beside it would say the same twice."""
    forms = [form for form in (QUATERNION, VECTOR, ("theta",), WORDS) if any(word in parts for word in form)]
    if len(forms) > 1:
        raise InputError(
            f"the rotation of '{frame}' is given twice", key=key, file=file, value=frame, hint="use one form of it"
        )


def _place_frame(
    tree: Tree,
    frame: str,
    parts: dict[str, float],
    relative: bool,
    key: str,
    file: str | None,
    values: dict[int, float],
    fixed: set[int],
) -> list[FrameTarget]:
    """Give the coordinates outright if the frame is a free body on the ground, else place it by rows.

    Rotations of a spherical joint by its name (`ball.rx`) are its coordinates, relative to what carries it; those of
    an end effector without a name (`rx`) are in the world, as those of every end effector.
    """
    place = tree.places[frame]
    rotation = _rotation(tree, frame, parts, key, file)
    position = {axis: parts[word] for axis, word in enumerate(POSITION) if word in parts}
    if tree.planar and 2 in position:
        raise InputError("a planar robot has no 'z'", key=key, file=file, value="z", hint="give x, y and theta")
    link = tree.links[place.link] if place.link >= 0 else None
    if link is None:
        raise InputError(
            f"'{frame}' is fixed to the base", key=key, file=file, value=frame, hint="place a moving frame"
        )
    is_link_frame = link.name == frame and place.inner is None
    if (
        is_link_frame
        and link.joint.kind == "spherical"
        and rotation is not None
        and (relative or _is_aligned_with_world(link))
    ):
        values.update(zip(range(link.q.start, link.q.stop), _quaternion(parts), strict=True))
        fixed.update(range(link.v.start, link.v.stop))
        rotation = None
    if _coordinates_are_pose(link, frame):
        axes = 2 if tree.planar else 3
        if len(position) == axes:
            values.update({link.q.start + axis: value for axis, value in position.items()})
            fixed.update(range(link.v.start, link.v.start + axes))
            position = {}
        if rotation is not None:
            orientation = [parts["theta"]] if tree.planar else _quaternion(parts)
            values.update({link.q.start + axes + i: value for i, value in enumerate(orientation)})
            fixed.update(range(link.v.start + axes, link.v.stop))
            rotation = None
    if not position and rotation is None:
        return []
    return [FrameTarget(frame, place, position, rotation)]


def _coordinates_are_pose(link: Link, frame: str) -> bool:
    """Whether the coordinates of a free body are its pose in the world: it is mounted on the ground without offset."""
    return _is_aligned_with_world(link) and not link.position.any() and link.name == frame and link.joint.moves_freely


def _is_aligned_with_world(link: Link) -> bool:
    """Whether the placed axes of a joint are those of the world."""
    return link.parent < 0 and np.array_equal(link.rotation, np.eye(3))


def _quaternion(parts: dict[str, float]) -> Array:
    if any(word in parts for word in QUATERNION):
        quaternion = np.array([parts.get(word, 0.0) for word in QUATERNION])
        return quaternion / np.linalg.norm(quaternion)
    return vector_quaternion([parts.get(word, 0.0) for word in VECTOR])


def _rotation(tree: Tree, frame: str, parts: dict[str, float], key: str, file: str | None) -> Array | None:
    """The rotation matrix that is asked for, or None. A part of a rotation vector means the whole of it."""
    forms = [form for form in (QUATERNION, VECTOR, ("theta",)) if any(word in parts for word in form)]
    if not forms:
        return None
    if (forms[0] == ("theta",)) != tree.planar:
        fix = "give theta" if tree.planar else "give qw, qx, qy, qz or rx, ry, rz"
        word = next(word for word in forms[0] if word in parts)
        kind = "planar" if tree.planar else "spatial"
        raise InputError(f"a {kind} robot has no '{word}'", key=key, file=file, value=word, hint=fix)
    if tree.planar:
        return rotation_about(2, parts["theta"])
    if forms[0] == QUATERNION:
        length = np.linalg.norm([parts.get(word, 0.0) for word in QUATERNION])
        if abs(length - 1) > 1e-3:
            raise InputError(
                f"the quaternion of '{frame}' has length {length:.4g}",
                key=key,
                file=file,
                value=float(length),
                hint="make its length 1",
            )
    return quaternion_matrix(_quaternion(parts))


def complete_end_effector(tree: Tree, actuated: tuple[int, ...], target: Target, q: Array) -> Target | None:
    """The target with what it leaves open about the same body, or about the motors, kept as it is at `q`.

    None if nothing is open. A pose `x=0.1` of a robot with six freedoms means: only x changes.
    """
    placed_frames = [frame for frame in target.frames if isinstance(frame, FrameTarget)]
    if len(placed_frames) < len(target.frames):
        return None  # other conditions leave open what no coordinates tell
    values, fixed, frames = dict(target.values), set(target.fixed), []
    given_links = {tree.link_of_rate[k] for k in target.fixed} | {frame.place.link for frame in placed_frames}
    for j in given_links:
        if tree.links[j].joint.moves_freely:
            fixed.update(range(tree.links[j].v.start, tree.links[j].v.stop))
    at, placed = pose(tree, q), pose(tree, target.applied(q))
    for frame in placed_frames:
        link = tree.links[frame.place.link]
        free = link.joint.moves_freely
        rotation, position = (placed if free else at).of(frame.place)
        axes = (0, 1) if tree.planar else (0, 1, 2)
        full_position = {axis: frame.position.get(axis, float(position[axis])) for axis in axes}
        if _coordinates_are_pose(link, frame.name):
            values.update({link.q.start + axis: value for axis, value in full_position.items()})
        elif free:
            fixed -= set(range(link.v.start, link.v.stop))
            frame_rotation = rotation if frame.rotation is None else frame.rotation
            frames.append(FrameTarget(frame.name, frame.place, full_position, frame_rotation))
        else:
            frames.append(FrameTarget(frame.name, frame.place, full_position, frame.rotation))
    if not target.frames and not any(tree.links[j].joint.moves_freely for j in given_links):
        fixed.update(actuated)
    if fixed == set(target.fixed) and [f.size for f in frames] == [f.size for f in target.frames]:
        return None
    return Target(values, frozenset(fixed), tuple(frames))


def read_motion(
    tree: Tree, components: Mapping[str, float], key: str
) -> tuple[dict[int, float], dict[str, dict[int, float]]]:
    """Rates of joints by number, and of frames: world components 0..2 of velocity and 3..5 of angular velocity.

    A name of a rate means that rate, as in answers: of joints with several axes along their moving axes.
    """
    joints: dict[int, float] = {}
    frames: dict[str, dict[int, float]] = {}
    used_names: dict[Any, str] = {}
    for word, value in components.items():
        number = _finite(word, value, key, None)
        if word in tree.rate_names:
            refuse_duplicates(used_names, word, word, key, None)
            joints[tree.rate_names.index(word)] = number
            continue
        name = without_degrees(tree, word)
        joint = joint_named(tree, name)
        frame, _, component = name.rpartition(".")
        frame = frame or tree.end_effector
        if joint is None and (component not in TWIST or not tree.has(frame, key)):
            words = [word for word in pose_names(tree) if word not in (*QUATERNION, *WORDS)]
            raise InputError(
                f"'{word}' is neither a joint nor a component of a frame's motion",
                key=key,
                value=word,
                hint=nearest_name(tree, name, words),
            )
        prefixed = name != component and not isinstance(word, WorldName)
        if joint is None and prefixed and TWIST[component] > 2 and has_spherical_rotation(tree, frame):
            raise InputError(
                f"'{word}' could be the rate of the joint or the angular velocity in the world",
                key=key,
                value=word,
                hint=f"write {frame}.wx, .wy, .wz: the rate of the joint, along its moving axes",
            )
        if joint is None and tree.planar and TWIST[component] in (2, 3, 4):
            raise InputError(f"a planar robot cannot move along '{word}'", key=key, value=word, hint="use x, y, theta")
        if name != word:
            turning = joint.joint.unit == "rad" if joint else TWIST[component] > 2
            number *= to_radians(word, turning, key, None)
        refuse_duplicates(used_names, joint.name if joint else (frame, TWIST[component]), word, key, None)
        if joint is not None:
            joints[joint.v.start] = number
        else:
            frames.setdefault(frame, {})[TWIST[component]] = number
    return joints, frames


def read_axis(
    tree: Tree, frame: str, parts: Mapping[str, float], key: str, file: str | None, q: Array | None
) -> FrameRotationRows | None:
    """What is asked of the z axis of a frame; `q` tells the sign of a third component, None: that it is positive."""
    components = {axis: parts[word] for axis, word in enumerate(WORDS) if word in parts}
    if not components:
        return None
    components_text = ", ".join(f"{WORDS[axis]} = {value:.6g}" for axis, value in components.items())
    if tree.planar:
        word = WORDS[min(components)]
        raise InputError(f"a planar robot has no '{word}'", key=key, file=file, value=word, hint="give theta")
    place = tree.places[frame]
    size = float(np.linalg.norm(list(components.values())))
    if len(components) == 3:
        if size < UPRIGHT:
            raise InputError(
                f"the direction of '{frame}' is zero",
                key=key,
                file=file,
                value=components_text,
                hint="give e.g. zx=0,zy=0,zz=1",
            )
        return AxisTarget(frame, place, np.array([components[axis] for axis in range(3)]) / size)
    if size > 1 + ROUNDING:
        raise InputError(
            f"no direction of '{frame}' has {components_text}: components of a unit vector are at most 1 together, "
            f"not {size:.6g}",
            key=key,
            file=file,
            value=components_text,
            hint="give smaller components, or all three of any vector along it",
        )
    if len(components) == 1 and size < 1 - UPRIGHT:
        axis, value = next(iter(components.items()))
        return AxisComponentTarget(frame, place, axis, value)
    return AxisTarget(frame, place, _completed_direction(tree, frame, components, key, file, q))


def complete_axis(tree: Tree, coordinates: Mapping[str, float], key: str, q: Array) -> Array | None:
    """The direction of the z axis of the end effector in words of a pose, or None; one component is too little."""
    frame = tree.end_effector
    parts = {word.removeprefix(f"{frame}."): value for word, value in coordinates.items()}
    target = read_axis(tree, frame, parts, key, None, q)
    if isinstance(target, AxisComponentTarget):
        raise InputError(
            f"one component does not give the direction of '{frame}'", key=key, value=WORDS[target.number],
            hint="give zx, zy and zz",
        )  # fmt: skip
    return target.direction if isinstance(target, AxisTarget) else None


def _completed_direction(
    tree: Tree, frame: str, components: Mapping[int, float], key: str, file: str | None, q: Array | None
) -> Array:
    """The direction of which the larger components are given: the last one has the sign that it has at a pose."""
    direction = np.array([components.get(axis, 0.0) for axis in range(3)])
    remainder = 1.0 - float(direction @ direction)
    missing = [axis for axis in range(3) if axis not in components]
    if len(missing) == 1 and remainder > ROUNDING**2:
        current = 1.0 if q is None else float(pose(tree, q).of(tree.places[frame])[0][missing[0], 2])
        if abs(current) < ROUNDING and remainder > ROUNDING:
            raise InputError(
                f"the sign of '{WORDS[missing[0]]}' of '{frame}' is open, as it is zero at home",
                key=key,
                file=file,
                value=frame,
                hint="give all three components",
            )
        direction[missing[0]] = np.copysign(np.sqrt(remainder), current)
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
    frame_names = word.removeprefix(DISTANCE)
    mark = "~" if "~" in frame_names else "."
    pieces = frame_names.split(mark)
    pairs = [(mark.join(pieces[:k]), mark.join(pieces[k:])) for k in range(1, len(pieces))]
    known_pairs = [pair for pair in pairs if pair[0] in tree.places and pair[1] in tree.places]
    if len(known_pairs) == 1:
        return known_pairs[0]
    if known_pairs:
        hint = f"write {DISTANCE}{known_pairs[0][0]}~{known_pairs[0][1]}"
        raise InputError(f"'{word}' names several pairs of frames", key=key, file=file, value=word, hint=hint)
    half_known = next((pair for pair in pairs if (pair[0] in tree.places) != (pair[1] in tree.places)), None)
    if half_known is None:
        hint = "write distance.FRAME.FRAME with frames of the robot"
        raise InputError(f"'{word}' does not name two frames", key=key, file=file, value=word, hint=hint)
    unknown = half_known[1] if half_known[0] in tree.places else half_known[0]
    suggestion = nearest(unknown, tree.places)
    raise InputError(
        f"'{word}': there is no frame '{unknown}'",
        key=key,
        file=file,
        value=unknown,
        hint=did_you_mean(unknown, tree.places) if suggestion else "name a frame or point of the robot",
    )
