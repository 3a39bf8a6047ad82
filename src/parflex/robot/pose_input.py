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
from parflex.errors import did_you_mean, nearest
from parflex.recursion.kinematics import pose
from parflex.robot.coordinate_names import (
    COMPONENTS,
    POSITION,
    QUATERNION,
    VECTOR,
    Reader,
    WorldName,
    joint_named,
    pose_names,
)
from parflex.robotfile.values import short_text
from parflex.spatial.rotations import quaternion_matrix, rotation_about, unit_quaternion, vector_quaternion
from parflex.tree.tree import Link, Tree

Array = np.ndarray
TWIST = {"x": 0, "y": 1, "z": 2, "rx": 3, "ry": 4, "rz": 5, "theta": 5}
LARGEST = 1e9  # largest number in a pose or motion: far above any, and its powers stay finite
DISTANCE = "distance."
ROUNDING = 1e-9  # rounding of a component of a unit vector
UPRIGHT = 1e-12  # 1 - cosine of a direction below which one component determines the direction

TWIST |= {"vx": 0, "vy": 1, "vz": 2, "wx": 3, "wy": 4, "wz": 5, "ax": 0, "ay": 1, "az": 2}


def read_pose(
    tree: Tree, conditions: Mapping[str, float], key: str, file: str | None, near: Array | None = None
) -> Target:
    """Return the target of coordinates and conditions; a third component of a direction has its sign at `near`."""
    return _PoseReader(tree, key, file).target(conditions, near)


def read_end_effector(tree: Tree, coordinates: Mapping[str, float], key: str) -> tuple[dict[int, float], Array | None]:
    """Return positions of the end effector by axis, and its rotation or None; raise for other coordinates."""
    reader, parts = _PoseReader(tree, key), dict[str, float]()
    for word, value in coordinates.items():
        coordinate = reader.coordinate(word)
        if coordinate is None or coordinate.frame != tree.end_effector:
            words = [word for word in pose_names(tree) if word in COMPONENTS]
            name = reader.without_degrees(word)
            joint = f"'{name}' is a joint; write {tree.end_effector}.{name}" if name in words else ""
            message = f"'{word}' is not a coordinate of the end effector"
            raise reader.error(message, word, joint or did_you_mean(name, words))
        reader.once_by_name(coordinate, word)
        parts[coordinate.component] = reader.finite(word, value) * coordinate.unit
    return reader.place(tree.end_effector, parts)


def read_distance(tree: Tree, word: str, value: float, key: str) -> DistanceTarget:
    """Return the distance between the origins of two frames."""
    return _PoseReader(tree, key).distance(word, value)


def complete_axis(tree: Tree, coordinates: Mapping[str, float], key: str, q: Array) -> Array | None:
    """Return the z direction of the end effector from words of a pose, or None; raise for a single component."""
    frame, reader = tree.end_effector, _PoseReader(tree, key)
    parts = {word.removeprefix(f"{frame}."): value for word, value in coordinates.items()}
    target = reader.axis(frame, parts, q)
    if isinstance(target, AxisComponentTarget):
        message = f"one component does not give the direction of '{frame}'"
        raise reader.error(message, WORDS[target.number], "give zx, zy and zz")
    return target.direction if isinstance(target, AxisTarget) else None


class _PoseReader(Reader):
    """Reader of the conditions of a pose."""

    def target(self, conditions: Mapping[str, float], near: Array | None) -> Target:
        """Return the target of conditions."""
        tree, values, fixed = self.tree, dict[int, float](), set[int]()
        frames: dict[str, dict[str, float]] = {}
        relative: set[str] = set()
        targets: list[PoseRows] = []
        for word, value in conditions.items():
            number = self.finite(word, value)
            coordinate = self.coordinate(word)
            if coordinate is None and word.startswith(DISTANCE):
                gap = self.distance(word, number)
                self.once(frozenset(map(id, gap.places)), word)
                targets.append(gap)
                continue
            if coordinate is None:
                hint = self.nearest(self.without_degrees(word), pose_names(tree))
                raise self.error(f"'{word}' is neither a joint nor a coordinate of a frame", word, hint)
            self.once_by_name(coordinate, word)
            if coordinate.frame is None:
                values[coordinate.position] = number * coordinate.unit
                fixed.add(coordinate.rate)
            else:
                frames.setdefault(coordinate.frame, {})[coordinate.component] = number * coordinate.unit
                relative |= {coordinate.frame} if coordinate.relative else set()
        for frame, parts in frames.items():
            targets += self._frame_targets(frame, parts, frame in relative, values, fixed)
            axis = self.axis(frame, parts, near)
            targets += [] if axis is None else [axis]
        return Target(values, frozenset(fixed), tuple(targets))

    def finite(self, word: str, value: Any) -> float:
        """Return a finite number, bounded so that powers stay finite."""
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not abs(value) <= LARGEST:
            text = short_text(value)
            raise self.error(f"'{word}' needs a number up to {LARGEST:g}, not {text}", text, "write e.g. x=0.1")
        return float(value)

    def _frame_targets(
        self, frame: str, parts: dict[str, float], relative: bool, values: dict[int, float], fixed: set[int]
    ) -> list[FrameTarget]:
        """Set the coordinates of a free body on the ground directly, or add rows for another frame.

        Rotations of a spherical joint by its name (`ball.rx`) are its coordinates, relative to its parent.
        Rotations of an end effector without a name (`rx`) are in world axes.
        """
        position, rotation = self.place(frame, parts)
        place = self.tree.places[frame]
        if place.link < 0:
            raise self.error(f"'{frame}' is fixed to the base", frame, "place a moving frame")
        link = self.tree.links[place.link]
        is_ball = link.name == frame and place.inner is None and link.joint.kind == "spherical"
        if is_ball and rotation is not None and (relative or _is_aligned_with_world(link)):
            values.update(zip(range(link.q.start, link.q.stop), _quaternion(parts), strict=True))
            fixed.update(range(link.v.start, link.v.stop))
            rotation = None
        if _coordinates_are_pose(link, frame):
            axes = 2 if self.tree.planar else 3
            if len(position) == axes:
                values.update({link.q.start + axis: value for axis, value in position.items()})
                fixed.update(range(link.v.start, link.v.start + axes))
                position = {}
            if rotation is not None:
                orientation = [parts["theta"]] if self.tree.planar else _quaternion(parts)
                values.update({link.q.start + axes + i: value for i, value in enumerate(orientation)})
                fixed.update(range(link.v.start + axes, link.v.stop))
                rotation = None
        return [FrameTarget(frame, place, position, rotation)] if position or rotation is not None else []

    def place(self, frame: str, parts: Mapping[str, float]) -> tuple[dict[int, float], Array | None]:
        """Return positions by axis, and the rotation matrix or None; rotation vectors are completed with zeros."""
        forms = [form for form in (QUATERNION, VECTOR, ("theta",), WORDS) if any(word in parts for word in form)]
        if len(forms) > 1:  # a direction in addition to a rotation is redundant
            raise self.error(f"the rotation of '{frame}' is given twice", frame, "use one form of it")
        position = {axis: parts[word] for axis, word in enumerate(POSITION) if word in parts}
        if self.tree.planar and 2 in position:
            raise self.error("a planar robot has no 'z'", "z", "give x, y and theta")
        if not forms or forms[0] == WORDS:
            return position, None
        if (forms[0] == ("theta",)) != self.tree.planar:
            fix = "give theta" if self.tree.planar else "give qw, qx, qy, qz or rx, ry, rz"
            word = next(word for word in forms[0] if word in parts)
            raise self.error(f"a {'planar' if self.tree.planar else 'spatial'} robot has no '{word}'", word, fix)
        if self.tree.planar:
            return position, rotation_about(2, parts["theta"])
        if forms[0] == QUATERNION:
            length = float(np.linalg.norm([parts.get(word, 0.0) for word in QUATERNION]))
            if abs(length - 1) > 1e-3:
                raise self.error(f"the quaternion of '{frame}' has length {length:.4g}", length, "make its length 1")
        return position, quaternion_matrix(_quaternion(parts))

    def axis(self, frame: str, parts: Mapping[str, float], q: Array | None) -> FrameRotationRows | None:
        """Return rows on the z axis of a frame; `q` determines the sign of a third component (None: positive)."""
        components = {axis: parts[word] for axis, word in enumerate(WORDS) if word in parts}
        if not components:
            return None
        text = ", ".join(f"{WORDS[axis]} = {value:.6g}" for axis, value in components.items())
        if self.tree.planar:
            word = WORDS[min(components)]
            raise self.error(f"a planar robot has no '{word}'", word, "give theta")
        place = self.tree.places[frame]
        size = float(np.linalg.norm(list(components.values())))
        if len(components) == 3:
            if size < UPRIGHT:
                raise self.error(f"the direction of '{frame}' is zero", text, "give e.g. zx=0,zy=0,zz=1")
            return AxisTarget(frame, place, np.array([components[axis] for axis in range(3)]) / size)
        if size > 1 + ROUNDING:
            message = f"no direction of '{frame}' has {text}: components of a unit vector are at most 1 together"
            hint = "give smaller components, or all three of any vector along it"
            raise self.error(f"{message}, not {size:.6g}", text, hint)
        if len(components) == 1 and size < 1 - UPRIGHT:
            axis, value = next(iter(components.items()))
            return AxisComponentTarget(frame, place, axis, value)
        return AxisTarget(frame, place, self._completed_direction(frame, components, q))

    def _completed_direction(self, frame: str, components: Mapping[int, float], q: Array | None) -> Array:
        """Return the direction of two components; the third has its sign at a pose."""
        direction = np.array([components.get(axis, 0.0) for axis in range(3)])
        remainder = 1.0 - float(direction @ direction)
        missing = [axis for axis in range(3) if axis not in components]
        if len(missing) == 1 and remainder > ROUNDING**2:
            axis = missing[0]
            current = 1.0 if q is None else float(pose(self.tree, q).of(self.tree.places[frame])[0][axis, 2])
            if abs(current) < ROUNDING and remainder > ROUNDING:
                message = f"the sign of '{WORDS[axis]}' of '{frame}' is open, as it is zero at home"
                raise self.error(message, frame, "give all three components")
            direction[axis] = np.copysign(np.sqrt(remainder), current)
        return direction / np.linalg.norm(direction)

    def distance(self, word: str, value: float) -> DistanceTarget:
        """Return the distance between the origins of two frames: `distance.FRAME.FRAME` or `distance.FRAME~FRAME`."""
        first, second = self._ends(word)
        places = self.tree.places[first], self.tree.places[second]
        if places[0].link == places[1].link:
            message = f"'{first}' and '{second}' are fixed to one body, so their distance does not change"
            raise self.error(message, word, "name frames on two bodies")
        if value <= 0:
            hint = "for frames that coincide give x, y and z of one of them"
            raise self.error(f"'{word}' is {value:g}: a distance must be positive", value, hint)
        return DistanceTarget(word, *places, value)

    def _ends(self, word: str) -> tuple[str, str]:
        """Return the two frames of a distance; frame names with dots must split in one way only."""
        places, frame_names = self.tree.places, word.removeprefix(DISTANCE)
        mark = "~" if "~" in frame_names else "."
        pieces = frame_names.split(mark)
        pairs = [(mark.join(pieces[:k]), mark.join(pieces[k:])) for k in range(1, len(pieces))]
        known_pairs = [pair for pair in pairs if pair[0] in places and pair[1] in places]
        if len(known_pairs) == 1:
            return known_pairs[0]
        if known_pairs:
            hint = f"write {DISTANCE}{known_pairs[0][0]}~{known_pairs[0][1]}"
            raise self.error(f"'{word}' names several pairs of frames", word, hint)
        half_known = next((pair for pair in pairs if (pair[0] in places) != (pair[1] in places)), None)
        if half_known is None:
            hint = "write distance.FRAME.FRAME with frames of the robot"
            raise self.error(f"'{word}' does not name two frames", word, hint)
        unknown = half_known[1] if half_known[0] in places else half_known[0]
        hint = did_you_mean(unknown, places) if nearest(unknown, places) else "name a frame or point of the robot"
        raise self.error(f"'{word}': there is no frame '{unknown}'", unknown, hint)


def _coordinates_are_pose(link: Link, frame: str) -> bool:
    """Return whether the coordinates of a free body are its world pose."""
    return _is_aligned_with_world(link) and not link.position.any() and link.name == frame and link.joint.moves_freely


def _is_aligned_with_world(link: Link) -> bool:
    """Return whether the axes of a joint are parallel to those of the world."""
    return link.parent < 0 and np.array_equal(link.rotation, np.eye(3))


def _quaternion(parts: Mapping[str, float]) -> Array:
    if any(word in parts for word in QUATERNION):
        return unit_quaternion(np.array([parts.get(word, 0.0) for word in QUATERNION]))
    return vector_quaternion([parts.get(word, 0.0) for word in VECTOR])


def complete_end_effector(tree: Tree, actuated: tuple[int, ...], target: Target, q: Array) -> Target | None:
    """Return the target completed for the same body, or the motors, by values at `q`; None if it is complete."""
    placed_frames = [frame for frame in target.frames if isinstance(frame, FrameTarget)]
    if len(placed_frames) < len(target.frames):
        return None  # free motions under other conditions have no coordinates
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
            continue
        fixed -= set(range(link.v.start, link.v.stop)) if free else set()
        full_rotation = rotation if free and frame.rotation is None else frame.rotation
        frames.append(FrameTarget(frame.name, frame.place, full_position, full_rotation))
    if not target.frames and not any(tree.links[j].joint.moves_freely for j in given_links):
        fixed.update(actuated)
    if fixed == set(target.fixed) and [f.size for f in frames] == [f.size for f in target.frames]:
        return None
    return Target(values, frozenset(fixed), tuple(frames))


def read_motion(
    tree: Tree, components: Mapping[str, float], key: str
) -> tuple[dict[int, float], dict[str, dict[int, float]]]:
    """Return rates of joints by number, and world components 0 to 5 of the twists of frames."""
    reader, joints, frames = _PoseReader(tree, key), dict[int, float](), dict[str, dict[int, float]]()
    for word, value in components.items():
        number = reader.finite(word, value)
        if word in tree.rate_names:
            reader.once(word, word)
            joints[tree.rate_names.index(word)] = number
            continue
        name = reader.without_degrees(word)
        joint = joint_named(tree, name)
        if joint is not None:
            number *= 1.0 if name == word else reader.radians(word, joint.joint.unit == "rad")
            reader.once(joint.name, word)
            joints[joint.v.start] = number
            continue
        frame, _, component = name.rpartition(".")
        frame = frame or tree.end_effector
        if component not in TWIST or not tree.has(frame, key):
            words = [word for word in pose_names(tree) if word not in (*QUATERNION, *WORDS)]
            message = f"'{word}' is neither a joint nor a component of a frame's motion"
            raise reader.error(message, word, reader.nearest(name, words))
        axis, prefixed = TWIST[component], name != component and not isinstance(word, WorldName)
        if prefixed and axis > 2 and reader.is_ball(frame):
            message = f"'{word}' could be the rate of the joint or the angular velocity in the world"
            hint = f"write {frame}.wx, .wy, .wz: the rate of the joint, along its moving axes"
            raise reader.error(message, word, hint)
        if tree.planar and axis in (2, 3, 4):
            raise reader.error(f"a planar robot cannot move along '{word}'", word, "use x, y, theta")
        number *= 1.0 if name == word else reader.radians(word, axis > 2)
        reader.once((frame, axis), word)
        frames.setdefault(frame, {})[axis] = number
    return joints, frames
