"""A frame in time: its pose with derivatives along lines, circles and splines, in waves and through poses.

Along a path the z axis of the frame follows a direction, or its whole rotation is prescribed: a great circle between
two directions, a rotation about one axis between two rotations (slerp), a cone about the axis of a circle, or the
tangent of a circle. Each has a constant angular velocity per path length, so its second derivative is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.closure.targets import AxisTarget, FrameTarget, PoseRows, normal_pair, shortest_rotation
from parflex.errors import InputError, ParflexError
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.spatial.rotations import (
    cross,
    left_jacobian,
    left_jacobian_rate,
    rotation_from_vector,
    vector_from_rotation,
)
from parflex.trajectories.laws import Waves, cruise, law_through, laws_of_moves, waves_of
from parflex.trajectories.trajectory import POWERS, Trajectory, constant, joined

Array = np.ndarray
SAME = 1e-12  # of the largest coordinate: points that are nearer to each other are one
TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")


@dataclass(frozen=True, eq=False, repr=False)
class FrameMotion(Record):
    """Pose, twist and acceleration of a frame in world axes, or rows of them; without a rotation it is free.

    `turn` is the request to a frame that cannot have every rotation: none ("kept"), the direction of its z axis
    ("axis"), or the whole rotation ("whole"), which is refused. "direction" requests the z axis of any frame.
    """

    position: Array
    rotation: Array | None
    twist: Array
    acceleration: Array
    turn: str = "kept"

    def row(self, k: int) -> FrameMotion:
        """Return the motion at one instant."""
        rotation = None if self.rotation is None else self.rotation[k]
        return FrameMotion(self.position[k], rotation, self.twist[k], self.acceleration[k], self.turn)

    def derivatives(self, row: PoseRows) -> tuple[Array, Array]:
        """Return two derivatives of the rows of a condition on the frame."""
        v, a, w, al = self.twist[:3], self.acceleration[:3], self.twist[3:], self.acceleration[3:]
        if isinstance(row, AxisTarget):
            d, e = row.direction, normal_pair(row.direction)
            rate = cross(w, d)
            return e @ rate, e @ (cross(al, d) + cross(w, rate))
        assert isinstance(row, FrameTarget)
        axes = list(row.position)
        turn = [(w, al)] if row.rotation is not None else []
        parts = [(v[axes], a[axes]), *turn]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


@dataclass(frozen=True, eq=False, repr=False)
class PathSegment(Record):
    """A line or a circle with the rotation of a frame along it, by the path coordinate s.

    Position: centre + cosine * cos(s / radius) + sine * sin(s / radius), or centre + sine * s. The frame rotates from
    `rotation` about the axis of `spin` (world axes, rad per unit of s). Between poses s is a share of both, so that the
    frame may rotate in place.
    """

    length: float  # once round, for a circle
    closed: bool
    centre: Array
    cosine: Array
    sine: Array
    radius: float
    unit: str = "m"  # of s; "": a share
    rotation: Array | None = None
    spin: Array = field(default_factory=lambda: np.zeros(3))
    turn: str = "kept"  # as in `FrameMotion`

    def turned(self, rotation: Array, spin: Array, turn: str) -> PathSegment:
        """Return the segment with a rotation of the frame along it."""
        return replace(self, rotation=rotation, spin=spin, turn=turn)

    def at(self, s: Any) -> FrameMotion:
        """Return the pose, and derivatives by the way, at a place, or rows of them."""
        if not np.ndim(s):
            return self.at(np.array([s])).row(0)
        if self.closed:
            c, d = np.cos(s / self.radius)[:, None], np.sin(s / self.radius)[:, None]
            out = self.cosine * c + self.sine * d
            position, direction = self.centre + out, (self.sine * c - self.cosine * d) / self.radius
            curvature = -out / self.radius**2
        else:
            position = self.centre + self.sine * s[:, None]
            direction, curvature = np.broadcast_to(self.sine, position.shape), np.zeros_like(position)
        if self.rotation is None:
            return FrameMotion(position, None, direction, curvature)
        rotation = np.broadcast_to(self.rotation, (len(s), 3, 3))
        if self.spin.any():
            rotation = np.array([rotation_from_vector(place * self.spin) for place in s]) @ self.rotation
        twist = np.concatenate([direction, np.broadcast_to(self.spin, position.shape)], axis=1)
        acceleration = np.concatenate([curvature, np.zeros_like(position)], axis=1)
        return FrameMotion(position, rotation, twist, acceleration, self.turn)


def line_segment(first: tuple[Array, Array], second: tuple[Array, Array], turn: str) -> PathSegment:
    """Return the segment between two poses (position, rotation): straight, with a rotation about one axis."""
    (p, R), (p_next, R_next) = first, second
    segment = PathSegment(1.0, False, p, np.zeros(3), p_next - p, np.inf, "")
    return segment.turned(R, R @ vector_from_rotation(R.T @ R_next), turn)  # a rotation leaves its axis in place


def circle_segment(centre: Array, out: Array, axis: Array) -> PathSegment:
    """Return the circle about a unit axis through its centre, from the point centre + out."""
    radius = float(np.linalg.norm(out))
    return PathSegment(2 * np.pi * radius, True, centre, out, np.cross(axis, out), radius)


@dataclass(frozen=True, eq=False, repr=False)
class PlacePath(Record):
    """Positions, and with six channels rotation vectors (world axes) that count from `base`, as functions of time."""

    channels: Trajectory | Waves
    base: Array | None = None
    turn: str = "kept"

    def at(self, t: Array) -> FrameMotion:
        """Return poses and motions at times."""
        value, rate, change = self.channels.at(t)
        if self.base is None:
            return FrameMotion(value, None, rate, change)
        th, w, al = value[:, 3:], rate[:, 3:], change[:, 3:]
        rotation = np.broadcast_to(self.base, (len(th), 3, 3))
        if th.any() or w.any():
            rotation = np.array([rotation_from_vector(vector) for vector in th]) @ self.base
            L = np.array([left_jacobian(vector) for vector in th])
            more = np.array([left_jacobian_rate(*pair) for pair in zip(th, w, strict=True)])
            w, al = np.einsum("tij,tj->ti", L, w), np.einsum("tij,tj->ti", L, al) + more
        twist, acceleration = np.concatenate([rate[:, :3], w], axis=1), np.concatenate([change[:, :3], al], axis=1)
        return FrameMotion(value[:, :3], rotation, twist, acceleration, self.turn)


@dataclass(frozen=True, eq=False, repr=False)
class FrameSegment(Record):
    """A part of a frame trajectory, smooth between `breaks`: a path, and the way along it in time.

    Without a `law` the path is one of time.
    """

    path: PathSegment | PlacePath
    breaks: Array
    law: Trajectory | None = None

    def at(self, t: Array) -> FrameMotion:
        """Return the motion at times; the frame rests before and behind them."""
        inside = np.clip(t, self.breaks[0], self.breaks[-1])
        moving = (inside == t)[:, None]
        if self.law is None:
            motion = self.path.at(inside)
            return replace(motion, twist=motion.twist * moving, acceleration=motion.acceleration * moving)
        s, speed, push = self.law.at(inside)
        by_way = self.path.at(s[:, 0])
        acceleration = (by_way.acceleration * speed**2 + by_way.twist * push) * moving
        return replace(by_way, twist=by_way.twist * speed * moving, acceleration=acceleration)


@dataclass(frozen=True, eq=False, repr=False)
class FrameTrajectory(Record):
    """A frame in time, segment by segment; it is at rest between them, before the first and after the last.

    `name` is the kind of the path or the name of the motion, `frame` the frame that moves, `planar` whether it moves in
    the plane, and `segments` are the parts of the trajectory. `driven` are the components of the twist that the robot
    follows, `start` is a guess for the initial positions of the rigid robot, and `positions` are those at each pose, if
    poses are specified.
    """

    name: str
    frame: str
    planar: bool
    driven: Sequence[int]
    segments: tuple[FrameSegment, ...]
    start: Array
    positions: tuple[Array, ...] = ()

    @property
    def breaks(self) -> Array:
        """Return the times between which the trajectory is smooth."""
        return np.unique(np.concatenate([segment.breaks for segment in self.segments]))

    @property
    def end(self) -> float:
        """Return the time at which the frame comes to rest."""
        return float(self.segments[-1].breaks[-1])

    def at(self, t: Any) -> FrameMotion:
        """Return the motion at the time `t` in s, or rows of motions at increasing times."""
        times = np.atleast_1d(np.asarray(t, dtype=float))
        begins = [segment.breaks[0] for segment in self.segments[1:]]
        which = np.searchsorted(begins, times, side="right")
        parts = [self.segments[k].at(times[which == k]) for k in np.unique(which)]
        if not np.ndim(t):
            return parts[0].row(0)
        rotation = None if parts[0].rotation is None else np.concatenate([part.rotation for part in parts])
        rows = ([getattr(part, word) for part in parts] for word in ("position", "twist", "acceleration"))
        position, twist, acceleration = map(np.concatenate, rows)
        return FrameMotion(position, rotation, twist, acceleration, parts[0].turn)

    @cached_property
    def accelerations(self) -> Trajectory:
        """Return accelerations of a driven platform in world axes: ax ay az alx aly alz, planar ax ay al."""
        channels = [0, 1, 5] if self.planar else list(range(6))
        parts = [constant(np.zeros(len(channels)))]
        for segment in self.segments:
            assert segment.law is not None and isinstance(segment.path, PathSegment)
            twist = segment.path.at(0.0).twist[channels]  # constant between two poses
            orders = np.arange(2, segment.law.powers)
            powers = segment.law.coefficients[:, 2:] * (orders * (orders - 1))[None, :, None] * twist
            parts.append(Trajectory(segment.law.breaks, powers).with_powers(max(POWERS, len(orders))))
        return joined(parts)


def frame_trajectory(robot: Robot, name: str, motion: MotionTable, time: float = np.inf) -> FrameTrajectory:
    """Return the trajectory of the frame that the table of a motion moves; its law is one of given times."""
    frame, rigid = motion.frame or robot.tree.end_effector, robot.locking(robot.tree.elastic)
    driven: Sequence[int] = range(2 if robot.tree.planar else 3)
    start, positions = rigid.home, list[Array]()
    if motion.kind in ("sines", "chirp"):
        start = rigid.assemble(dict(motion.start) or None)
        waves = waves_of(motion, "xyz", pose(robot.tree, start).of(robot.tree.places[frame])[1])
        segments = [FrameSegment(PlacePath(waves), waves.smooth_until(min(waves.duration, time)))]
    elif motion.law_name in ("spline", "blend"):
        places = law_through(motion, _points(motion, name), name)
        segments = [FrameSegment(PlacePath(places), places.breaks)]
    else:
        paths, driven, positions = paths_of(rigid, motion, name)
        segments = _in_time(motion, paths, name)
        start = positions[0] if positions else start
    return FrameTrajectory(name, frame, robot.tree.planar, driven, tuple(segments), start, tuple(positions))


def platform_trajectory(robot: Robot, name: str, motion: MotionTable | None = None) -> FrameTrajectory:
    """Return the trajectory of the end effector through the poses of a table, by default that of the robot file."""
    motion = robot.description.motions[name] if motion is None else motion
    if not motion.poses:
        raise InputError(
            f"the motion '{name}' has no poses", key="motion", value=name, hint="give it poses, or drive the motors"
        )
    if motion.law_name == "time-optimal":
        raise InputError(
            "a time-optimal motion is one of the motors", key="motion", value=name, hint="drive the motors"
        )
    return frame_trajectory(robot, name, motion)


def _in_time(motion: MotionTable, paths: list[PathSegment], name: str) -> list[FrameSegment]:
    """Return paths one after the other, by a law of one move or at constant speed."""
    lengths = [path_length(motion, path, name) for path in paths]
    if motion.speed is not None and not np.isfinite(lengths[0]):
        law = cruise(motion.speed, motion.ramp)
        return [FrameSegment(paths[0], np.append(law.breaks, np.inf), law)]
    laws = laws_of_moves(motion, lengths)
    return [FrameSegment(path, law.breaks, law) for path, law in zip(paths, laws, strict=True)]


def path_length(motion: MotionTable, path: PathSegment, name: str) -> float:
    """Return the way along a path with all turns of a circle, infinite without `turns` at constant speed."""
    if motion.circle is None:
        return path.length
    if motion.circle.turns is None and motion.speed is None:
        raise InputError(
            f"the law '{motion.law_name}' needs an end", key=f"motions.{name}.circle.turns", hint="add turns = 1"
        )
    return np.inf if motion.circle.turns is None else path.length * motion.circle.turns


def paths_of(rigid: Robot, motion: MotionTable, name: str) -> tuple[list[PathSegment], Sequence[int], list[Array]]:
    """Return the paths of a motion, components of the twist that the robot follows, and all positions at its poses."""
    frame = motion.frame or rigid.tree.end_effector
    if not motion.poses:
        paths = path_segments(rigid, motion, name)
        turns = paths[0].rotation is not None
        return paths, frame_components(rigid, frame) if turns else range(2 if rigid.tree.planar else 3), []
    near, positions, places = rigid.home, [], []
    for index, requested_pose in enumerate(motion.poses):
        try:
            near = rigid.assemble(requested_pose, near)
        except ParflexError as error:
            error.key = f"motions.{name}.poses.{index}"
            raise
        R, p = Configuration(rigid, near).at.of(rigid.tree.places[frame])
        positions.append(near)
        places.append((p, R))
    requested = _requested_rotation(rigid, motion)
    paths = [line_segment(first, second, requested) for first, second in pairwise(places)]
    return paths, frame_components(rigid, frame), positions


def _requested_rotation(rigid: Robot, motion: MotionTable) -> str:
    """Return the request to the rotation of an end effector that cannot have every one: none if poses are places.

    Else its z axis follows the rotation from pose to pose, so that poses with directions are reached.
    """
    frame = rigid.tree.end_effector
    places = {word for axis in "xyz" for word in (axis, f"{frame}.{axis}")}
    entries = [rigid.description.poses.get(entry, {}) if isinstance(entry, str) else entry for entry in motion.poses]
    named = [entry for entry, pose in zip(entries, motion.poses, strict=True) if pose != "home"]
    return "kept" if all(set(entry) <= places for entry in named) else "axis"


def frame_components(rigid: Robot, frame: str) -> list[int]:
    """Return the components of the twist of a frame that determine the motion; all where none are spare."""
    here = Configuration(rigid, rigid.home)
    _, names = here.platform_freedom(frame)
    if len(names) < here.J.shape[1]:
        return [0, 1, 5] if rigid.tree.planar else list(range(6))
    return [TWIST.index(name) for name in names]


def path_segments(rigid: Robot, motion: MotionTable, name: str) -> list[PathSegment]:
    """Return the segments of the path of a motion, with the rotation of the frame; it rests between them."""
    segments = [_circle(motion, name)] if motion.circle is not None else _lines(motion, name)
    if motion.orientation == "tangent":
        return _along_tangents(rigid, motion, segments, name)
    if motion.cone is not None and motion.circle is not None:  # the z axis leans out of the axis, and goes round
        (segment,), axis = segments, np.array(motion.circle.axis) / np.linalg.norm(motion.circle.axis)
        z = np.cos(motion.cone) * axis + np.sin(motion.cone) * segment.cosine / segment.radius
        return [segment.turned(_with_z(z), axis / segment.radius, "direction")]
    vectors = _specified_vectors(motion, 1 if motion.circle is not None else len(segments) + 1, name)
    turned = []
    for segment, first, second in zip(segments, vectors, vectors[1:] if len(vectors) > 1 else vectors, strict=False):
        if motion.direction:  # along the shorter arc
            R, turn = _with_z(first), "direction"
            spin = vector_from_rotation(shortest_rotation(first, second))
        else:
            R, turn = rotation_from_vector(first), "whole"
            spin = vector_from_rotation(rotation_from_vector(second) @ R.T)
        turned.append(segment.turned(R, spin / segment.length, turn))
    return turned or segments


def _points(motion: MotionTable, name: str) -> Array:
    if len(motion.points) < 2:
        raise InputError("a path needs two points", key=f"motions.{name}.points", hint="add points")
    return np.array(motion.points, dtype=float)


def _lines(motion: MotionTable, name: str) -> list[PathSegment]:
    points = _points(motion, name)
    segments = []
    for first, second in pairwise(points):
        length = float(np.linalg.norm(second - first))
        if length <= SAME * float(np.abs(points).max()):
            raise InputError("two points of the path are the same", key=f"motions.{name}.points", hint="remove one")
        segments.append(PathSegment(length, False, first, np.zeros(3), (second - first) / length, np.inf))
    return segments


def _circle(motion: MotionTable, name: str) -> PathSegment:
    assert motion.circle is not None
    centre, axis = np.array(motion.circle.centre), np.array(motion.circle.axis)
    out = np.array(motion.circle.start) - centre
    axis = axis / np.linalg.norm(axis) if np.linalg.norm(axis) else axis
    radius = float(np.linalg.norm(out))
    largest = max(np.abs(centre).max(), np.abs(out + centre).max())
    if radius <= SAME * largest or abs(out @ axis) > 1e-9 * radius or not axis.any():
        text = "the start is not on a circle about the centre that is normal to the axis"
        raise InputError(text, key=f"motions.{name}.circle", hint="give centre and start in one plane normal to axis")
    return circle_segment(centre, out, axis)


def _specified_vectors(motion: MotionTable, count: int, name: str) -> Array:
    """Return the directions of the z axis, or the rotation vectors, of a motion: none, or one for each point."""
    key = "direction" if motion.direction else "orientation"
    vectors = np.array(getattr(motion, key) or np.zeros((0, 3)), dtype=float)
    if len(vectors) not in (0, 1, count):
        kind = "points" if motion.points else "point of the circle"
        hint = "give one for all, or one for each point" if motion.points else "give one, or a cone"
        text = f"there are {len(vectors)} vectors for {count} {kind}"
        raise InputError(text, key=f"motions.{name}.{key}", value=len(vectors), hint=hint)
    if key == "direction":
        sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not sizes.all():
            raise InputError("a direction is zero", key=f"motions.{name}.direction", hint="give e.g. [0, 0, 1]")
        vectors = vectors / sizes
    return np.repeat(vectors, count, axis=0) if len(vectors) == 1 else vectors


def _along_tangents(rigid: Robot, motion: MotionTable, segments: list[PathSegment], name: str) -> list[PathSegment]:
    """Keep the x axis along the path; where it begins, the z axis is as near as can be to the one at home."""
    key = f"motions.{name}.orientation"
    directions = [segment.sine for segment in segments]
    if max(float(np.abs(direction - directions[0]).max()) for direction in directions) > 1e-9:
        raise InputError(
            "along corners the tangent jumps", key=key, value="tangent", hint="give a rotation vector for each point"
        )
    begin = segments[0].at(0.0)
    z = pose(rigid.tree, rigid.home).of(rigid.tree.places[motion.frame or rigid.tree.end_effector])[0][:, 2]
    side = z - (z @ begin.twist) * begin.twist
    if np.linalg.norm(side) < 1e-6:
        raise InputError(
            "the path begins along the z axis that the frame has at home, so its turn about the tangent is open",
            key=key,
            hint="give rotation vectors instead of 'tangent'",
        )
    side = side / np.linalg.norm(side)
    R = np.column_stack([begin.twist, np.cross(side, begin.twist), side])
    return [segment.turned(R, np.cross(begin.twist, begin.acceleration), "whole") for segment in segments]


def _with_z(z: Array) -> Array:
    first, second = normal_pair(z)
    return np.column_stack([first, second, z])
