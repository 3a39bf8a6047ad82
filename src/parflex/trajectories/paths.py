"""Geometric paths of a frame, and the joint motion of a prescribed frame.

Along a path the z axis of the frame follows a direction, or its whole rotation is prescribed: a great circle between
two directions, a rotation about one axis between two rotations (slerp), a cone about the axis of a circle, or the
tangent of a circle. Each has a constant angular velocity per path length, so its second derivative is exact.

The pose and motion of a prescribed frame give positions, rates and accelerations of all joints, with all bodies rigid.
Paths and poses of simulations and references of controllers share this computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from parflex.closure.newton import CLOSED
from parflex.closure.targets import WORDS, AxisTarget, FrameTarget, PoseRows, normal_pair, shortest_rotation
from parflex.errors import InputError
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import WorldName
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.spatial.rotations import cross, matrix_quaternion, rotation_from_vector, vector_from_rotation
from parflex.trajectories.follow import JointTrajectory, cached_joint_trajectory, joint_trajectory
from parflex.trajectories.polynomials import Polynomials

Array = np.ndarray

SAME = 1e-12  # of the largest coordinate: points that are nearer to each other are one

KNOTS = 240  # of a circle's turn or of a straight line: quintics between them err by 1e-12 of the way

TWIST_WORDS = ("x", "y", "z", "rx", "ry", "rz")

TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")


@dataclass(frozen=True, eq=False, repr=False)
class PathSegment(Record):
    """A part of a path: position and its derivatives by the way s along it."""

    length: float  # once round, for a circle
    closed: bool
    centre: Array
    cosine: Array  # position = centre + cosine * cos(s / radius) + sine * sin(s / radius), or centre + sine * s
    sine: Array
    radius: float
    turning: PathRotation | None = None  # of the frame, by the way; None: nothing is asked
    tangent: bool = False  # its x axis goes along the path

    def at(self, s: float) -> tuple[Array, Array, Array]:
        """Position, direction and curvature."""
        if not self.closed:
            return self.centre + self.sine * s, self.sine, np.zeros(3)
        c, d = np.cos(s / self.radius), np.sin(s / self.radius)
        out = self.cosine * c + self.sine * d
        return self.centre + out, (self.sine * c - self.cosine * d) / self.radius, -out / self.radius**2


def path_segments(motion: MotionTable, name: str) -> list[PathSegment]:
    """The parts of the path of a motion; it rests between them."""
    arcs = _bare_arcs(motion, name)
    turns = specified_rotations(motion, 1 if motion.circle is not None else len(arcs) + 1, name)
    if motion.orientation == "tangent":
        return _tangent_arcs(arcs, name)
    if motion.cone is not None and motion.circle is not None:
        axis = np.array(motion.circle.axis) / np.linalg.norm(motion.circle.axis)
        return [replace(arc, turning=along_cone(axis, arc.cosine, motion.cone)) for arc in arcs]
    if turns is None:
        return arcs
    between = {"direction": along_direction, "orientation": along_rotation}
    pairs = pairwise(turns) if len(turns) > 1 else [(turns[0], turns[0])]
    return [
        replace(arc, turning=between[key](first, second, arc.length))
        for arc, ((key, first), (_, second)) in zip(arcs, pairs, strict=True)
    ]


def _tangent_arcs(arcs: list[PathSegment], name: str) -> list[PathSegment]:
    """The x axis of the frame along the path; at a corner it would have to turn while the frame rests."""
    directions = [arc.sine for arc in arcs]
    if len(arcs) > 1 and max(float(np.abs(direction - directions[0]).max()) for direction in directions) > 1e-9:
        raise InputError(
            "along corners the tangent jumps", key=f"motions.{name}.orientation", value="tangent",
            hint="give a rotation vector for each point",
        )  # fmt: skip
    return [replace(arc, tangent=True) for arc in arcs]


def _bare_arcs(motion: MotionTable, name: str) -> list[PathSegment]:
    if motion.circle is not None:
        return [_circle(motion, name)]
    points = np.array(motion.points, dtype=float)
    if len(points) < 2:
        raise InputError("a path needs two points", key=f"motions.{name}.points", hint="add points")
    arcs = []
    for first, second in pairwise(points):
        length = float(np.linalg.norm(second - first))
        if length <= SAME * float(np.abs(points).max()):
            raise InputError("two points of the path are the same", key=f"motions.{name}.points", hint="remove one")
        arcs.append(PathSegment(length, False, first, np.zeros(3), (second - first) / length, np.inf))
    return arcs


def _circle(motion: MotionTable, name: str) -> PathSegment:
    assert motion.circle is not None
    centre, axis = np.array(motion.circle.centre), np.array(motion.circle.axis)
    out = np.array(motion.circle.start) - centre
    axis = axis / np.linalg.norm(axis) if np.linalg.norm(axis) else axis
    radius = float(np.linalg.norm(out))
    if (
        radius <= SAME * max(np.abs(centre).max(), np.abs(out + centre).max())
        or abs(out @ axis) > 1e-9 * radius
        or not axis.any()
    ):
        raise InputError(
            "the start is not on a circle about the centre that is normal to the axis",
            key=f"motions.{name}.circle",
            hint="give centre and start in one plane normal to axis",
        )
    return PathSegment(2 * np.pi * radius, True, centre, out, np.cross(axis, out), radius)


def frame_on_segment(
    rigid: Robot, frame: str, arc: PathSegment, name: str
) -> tuple[Callable[[float], FrameMotion], Sequence[int]]:
    """What is asked of a frame by the way along an arc, and the components of its twist that the robot can follow."""
    turning = arc.turning
    if arc.tangent:
        _, tangent, curvature = arc.at(0.0)
        z = pose(rigid.tree, rigid.home).of(rigid.tree.places[frame])[0][:, 2]
        turning = along_tangent(tangent, np.cross(tangent, curvature), z, name)

    def desired(s: float) -> FrameMotion:
        place, direction, curvature = arc.at(s)
        if turning is None:
            return FrameMotion(place, None, direction, curvature)
        twist, push = np.concatenate([direction, turning.spin]), np.concatenate([curvature, np.zeros(3)])
        return FrameMotion(place, turning.at(s), twist, push, turning.asked)

    return desired, range(2 if rigid.tree.planar else 3) if turning is None else frame_components(rigid, frame)


def follow_segment(
    robot: Robot, frame: str, arc: PathSegment, near: Array, name: str
) -> tuple[Polynomials, Array, Array]:
    """Motors as functions of the way along an arc, and all positions where it begins and where it ends."""
    return cached_joint_trajectory(robot, (frame, arc, near, name), lambda: _followed(robot, frame, arc, near, name))


def _followed(robot: Robot, frame: str, arc: PathSegment, near: Array, name: str) -> tuple[Polynomials, Array, Array]:
    """By the robot with few elements where it has many: bodies are rigid, so that all of them move alike."""
    from parflex.robot.load import with_file_elements  # which builds robots, what a road that is kept does not need
    from parflex.statics.mesh_error import same_positions

    fewer = with_file_elements(robot) if not near[list(_deformations(robot))].any() else None
    if fewer is not None:
        pieces, *ends = _along(fewer, frame, arc, same_positions(robot, fewer, near), name)
        whole = [same_positions(fewer, robot, q) for q in ends]
        if all(_is_same(robot, fewer, frame, *both) for both in zip(whole, ends, strict=True)):
            return pieces, whole[0], whole[1]
    return _along(robot, frame, arc, near, name)


def _deformations(robot: Robot) -> Iterator[int]:
    return (k for link in robot.tree.links for k in range(link.e.start, link.e.stop))


def _is_same(robot: Robot, fewer: Robot, frame: str, q: Array, q_fewer: Array) -> bool:
    """Whether two robots stand alike: one that was changed since it was loaded is not that of its file."""
    at, other = pose(robot.tree, q), pose(fewer.tree, q_fewer)
    apart = np.abs(robot.closures.residual(at)).max(initial=0.0) + np.abs(
        at.of(robot.tree.places[frame])[1] - other.of(fewer.tree.places[frame])[1]
    ).max(initial=0.0)
    return bool(apart <= CLOSED * robot.tree.length)


def _along(robot: Robot, frame: str, arc: PathSegment, near: Array, name: str) -> tuple[Polynomials, Array, Array]:
    rigid = robot.locking(robot.tree.elastic)
    desired, driven = frame_on_segment(rigid, frame, arc, name)

    def at(s: float, q: Array) -> tuple[Array, Array]:
        return motion_channels(*joints_of_pose(rigid, frame, desired(s), q, driven), robot.actuated)

    trajectory = JointTrajectory(
        0.0, arc.length, arc.closed, at, lambda s: f"the path stops {s:.4g} m from its start", f"motions.{name}"
    )
    return joint_trajectory(robot, trajectory, near, KNOTS)


@dataclass(frozen=True, eq=False, repr=False)
class PathRotation(Record):
    """The rotation `begin` where a part of a path begins, and its angular velocity in world axes, rad per metre."""

    begin: Array
    spin: Array
    asked: str  # "direction": of the z axis alone; "whole"

    def at(self, s: float) -> Array:
        """The rotation after a way."""
        return rotation_from_vector(s * self.spin) @ self.begin


def along_direction(first: Array, second: Array, length: float) -> PathRotation:
    """The z axis from one unit vector to another along the shorter arc."""
    turn = vector_from_rotation(shortest_rotation(first, second))
    return PathRotation(_with_z(first), turn / length, "direction")


def along_rotation(first: Array, second: Array, length: float) -> PathRotation:
    """From one rotation vector to another about one axis."""
    R, R_next = rotation_from_vector(first), rotation_from_vector(second)
    return PathRotation(R, vector_from_rotation(R_next @ R.T) / length, "whole")


def along_cone(axis: Array, out: Array, angle: float) -> PathRotation:
    """The z axis leans out of the axis of a circle by an angle, and goes round with the circle."""
    outward = out / np.linalg.norm(out)
    z = np.cos(angle) * axis + np.sin(angle) * outward
    return PathRotation(_with_z(z), axis / np.linalg.norm(out), "direction")


def along_tangent(tangent: Array, spin: Array, z: Array, name: str) -> PathRotation:
    """The x axis along the path; where it begins, the z axis is as near as can be to a given one."""
    side = z - (z @ tangent) * tangent
    if np.linalg.norm(side) < 1e-6:
        raise InputError(
            "the path begins along the z axis that the frame has at home, so its turn about the tangent is open",
            key=f"motions.{name}.orientation",
            hint="give rotation vectors instead of 'tangent'",
        )
    side = side / np.linalg.norm(side)
    return PathRotation(np.column_stack([tangent, np.cross(side, tangent), side]), spin, "whole")


def _with_z(z: Array) -> Array:
    first, second = normal_pair(z)
    return np.column_stack([first, second, z])


def specified_rotations(motion: MotionTable, count: int, name: str) -> list[tuple[str, Array]] | None:
    """The directions or rotations of a motion, one for each point of its path; None if it has none, or the tangent."""
    key = "direction" if motion.direction else "orientation"
    rows = getattr(motion, key)
    if not rows or isinstance(rows, str):
        return None
    vectors = np.array(rows, dtype=float)
    if len(vectors) not in (1, count):
        kind = "points" if motion.points else "point of the circle"
        raise InputError(
            f"there are {len(vectors)} vectors for {count} {kind}",
            key=f"motions.{name}.{key}",
            value=len(vectors),
            hint="give one for all, or one for each point" if motion.points else "give one, or a cone",
        )
    if key == "direction":
        sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not sizes.all():
            raise InputError("a direction is zero", key=f"motions.{name}.direction", hint="give e.g. [0, 0, 1]")
        vectors = vectors / sizes
    return [(key, vector) for vector in (vectors if len(vectors) == count else np.repeat(vectors, count, axis=0))]


@dataclass(frozen=True, eq=False, repr=False)
class FrameMotion(Record):
    """Place, twist and acceleration of a frame in world axes; without a rotation nothing is asked of its turn.

    `turn` says what is asked of a frame that cannot have every rotation: nothing ("kept" where it can be), the
    direction of its z axis ("axis"), or all of it ("whole"), which is refused. "direction" asks it of any frame.
    """

    position: Array
    rotation: Array | None
    twist: Array
    acceleration: Array
    turn: str = "kept"

    def derivatives(self, row: PoseRows) -> tuple[Array, Array]:
        """Of the rows of a condition on the frame, by the way."""
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


def joints_of_pose(
    rigid: Robot, frame: str, desired: FrameMotion, near: Array, driven: Sequence[int]
) -> tuple[Configuration, Array, Array]:
    """The robot with a frame in a place, near positions, and all its rates and accelerations.

    `driven` are the components of the frame's twist that the robot can follow. Where the place leaves motions free,
    or the frame cannot keep its rotation, the rest is that of the nearest pose; its accelerations are then missing
    (nan): they are the slopes of the rates.
    """
    axes = range(2 if rigid.tree.planar else 3)
    place = pose_coordinates(rigid, frame, desired, axes)
    turns = sum(c > 2 for c in driven)
    loose = desired.rotation is not None and desired.turn != "direction" and rigid.pose_finder.loose(place)
    if desired.rotation is not None and turns == 2 and not loose:  # at home the third may rest, elsewhere it follows
        loose = rigid.pose_finder.leaves_free(place)
    if desired.rotation is not None and (desired.turn == "direction" or (desired.turn == "axis" and loose)):
        return _led(rigid, place | axis_coordinates(frame, desired.rotation[:, 2]), desired, near)
    if desired.turn == "whole" and (loose or not turns):
        raise InputError(
            f"'{frame}' cannot have every rotation: its turn has fewer freedoms",
            key="orientation",
            value=frame,
            hint="give the direction of its z axis, or its place alone",
        )
    if loose:
        return _led(rigid, place, desired, near)
    if desired.rotation is None and rigid.pose_finder.leaves_free(place):
        return _led(rigid, place, desired, near)
    components = [c for c in driven if c < 3 or desired.rotation is not None]
    words = pose_coordinates(rigid, frame, desired, components)
    if rigid.pose_finder.leaves_free(words):
        return _led(rigid, words, desired, near)
    here = _at(rigid, words, near)
    velocity = _twist_words(rigid, frame, desired.twist, components)
    qd = here.rates(velocity)
    return here, qd, here.accelerations(_twist_words(rigid, frame, desired.acceleration, components), qd, velocity)


def _led(
    rigid: Robot, words: dict[str, float], desired: FrameMotion, near: Array
) -> tuple[Configuration, Array, Array]:
    here = _at(rigid, words, near)
    return here, *rigid.pose_finder.path_motion(words, here.q, desired.derivatives)


def axis_coordinates(frame: str, direction: Array) -> dict[str, float]:
    """The direction of the z axis of a frame."""
    return {f"{frame}.{word}": float(value) for word, value in zip(WORDS, direction, strict=True)}


def motion_channels(here: Configuration, qd: Array, qdd: Array, rates: Sequence[int]) -> tuple[Array, Array]:
    """All positions, and of joints, by the numbers of their rates, position and two derivatives."""
    tree, rate_indices = here.robot.tree, list(rates)
    return here.q, np.array(
        [here.q[[tree.links[tree.link_of_rate[k]].q.start for k in rate_indices]], qd[rate_indices], qdd[rate_indices]]
    )


def _at(rigid: Robot, words: dict[str, float], near: Array) -> Configuration:
    """The robot at a pose, with angles in the turn in which they were."""
    q = rigid.assemble(words, near).copy()
    angles = [link.q.start for link in rigid.tree.links if link.periodic]
    q[angles] += 2 * np.pi * np.round((near[angles] - q[angles]) / (2 * np.pi))
    return Configuration(rigid, q)


def frame_components(rigid: Robot, frame: str) -> list[int]:
    """Components of the twist of a frame that tell how the robot moves; all where none are spare."""
    here = Configuration(rigid, rigid.home)
    _, names = here.platform_freedom(frame)
    if len(names) < here.J.shape[1]:
        return [0, 1, 5] if rigid.tree.planar else list(range(6))
    return [TWIST.index(name) for name in names]


def pose_coordinates(robot: Robot, frame: str, desired: FrameMotion, driven: Sequence[int]) -> dict[str, float]:
    """The place of a frame; its rotation is included where the robot can prescribe it."""
    words = {f"{frame}.{'xyz'[c]}": float(desired.position[c]) for c in driven if c < 3}
    R = desired.rotation
    if R is None or not any(c > 2 for c in driven):
        return words
    if robot.tree.planar:
        return words | {f"{frame}.theta": float(np.arctan2(R[1, 0], R[0, 0]))}
    return words | {WorldName(f"{frame}.q{a}"): float(v) for a, v in zip("wxyz", matrix_quaternion(R), strict=True)}


def velocity_coordinates(robot: Robot, frame: str, desired: FrameMotion, driven: Sequence[int]) -> dict[str, float]:
    """The velocity of a frame, in the components that the robot can prescribe."""
    return _twist_words(robot, frame, desired.twist, driven)


def _twist_words(robot: Robot, frame: str, values: Array, driven: Sequence[int]) -> dict[str, float]:
    theta = 5 if robot.tree.planar else None
    return {WorldName(f"{frame}.{'theta' if c == theta else TWIST_WORDS[c]}"): float(values[c]) for c in driven}
