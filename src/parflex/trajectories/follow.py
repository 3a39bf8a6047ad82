"""Follow a frame: joint motions for prescribed poses, along paths and in time.

The motion of a frame determines positions, rates and accelerations of all joints, with rigid bodies. Geometric paths
are followed along their length, once for all time laws, and cached on disk; other trajectories are followed in time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.cache import cached
from parflex.closure.newton import CLOSED
from parflex.closure.targets import WORDS
from parflex.codegen import cache
from parflex.errors import InputError, ParflexError, SingularError, UnreachableError
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import WorldName
from parflex.robot.limits import POSITION, check_limits, refuse_violations
from parflex.robot.robot import Robot
from parflex.spatial.rotations import matrix_quaternion
from parflex.trajectories.frames import FrameMotion, FrameSegment, FrameTrajectory, PathSegment
from parflex.trajectories.trajectory import Trajectory, composed, hermite, joined

Array = np.ndarray
Moving = tuple[Configuration, Array, Array]  # the robot, all its rates and their derivatives, by a path or by time
Found = tuple[Trajectory, Array, Array]  # motors, and all positions where they begin and end
KNOTS = {"m": 240, "": 60}  # of a circle's turn or of a line, between poses: quintics err by 1e-12, 1e-9 of the way
TIME_KNOTS = 60  # of a trajectory in time, half as many in each part: quintics between them err by 1e-9 of the way
WAVE_ANGLE, MOST_WAVE_KNOTS = 0.2, 20_000  # rad of the fastest wave between knots
TRACK_STEP = 1e-2  # s between knots of a reference; quintics err by 1e-9 rad on a circle of 0.1 m in two seconds
TIMES = 2  # sets of times of references in memory: each may have a million
ARRIVED = 1e-6  # rad or typical lengths from a pose
FINE = 1e-6  # of the fastest motor's rate: knots are doubled where quintics are further off midway between them
COARSE = 1e-3  # of it: what is still further off is refused
ROUNDING = 1e-10  # of the typical length, or a turn: positions are not known better
DOUBLED = 3  # times
TWIST_WORDS = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, eq=False, repr=False)
class RobotPath(Record):
    """The robot from `begin` to `end` of a path or in time, near known positions.

    Accelerations may be missing (nan): they are the derivatives of the rates.
    """

    begin: float
    end: float
    moving: Callable[[float, Array], Moving]
    left: Callable[[float], str]  # "the path stops 0.1 m from its start"
    key: str  # of errors
    closed: bool = False
    unit: str = ""  # "m" along a path, else a share or s

    def at(self, s: float, near: Array) -> Moving:
        """Return the robot at a place; errors state the place."""
        try:
            return self.moving(s, near)
        except ParflexError as error:
            error.message = f"{self.left(s)}: {error.message}"
            error.key = self.key
            raise


@dataclass(frozen=True, eq=False, repr=False)
class Followed(Record):
    """Joints as functions of a path or of time, and all positions and rates at the knots."""

    pieces: Trajectory
    knots: Array
    q: Array
    qd: Array
    values: Array  # (position and two derivatives, knot, joint)


def follow(robot: Robot, trajectory: FrameTrajectory, time: float = np.inf) -> Trajectory:
    """Return the motors in time along the trajectory of a frame until a time."""
    rigid, key = robot.locking(robot.tree.elastic), f"motions.{trajectory.name}"
    moving = moving_frame(rigid, trajectory.frame, trajectory.driven, trajectory.at)
    near, starts, parts = trajectory.start, list(trajectory.positions[:1]), []
    for index, segment in enumerate(trajectory.segments):
        if isinstance(segment.path, PathSegment):
            assert segment.law is not None
            along, first, near = follow_segment(robot, trajectory, segment.path, near)
            parts.append(composed(along, segment.law, time, segment.path.length if segment.path.closed else None))
            if trajectory.positions:
                _refuse_elsewhere(rigid, near, trajectory.positions[index + 1], f"{key}.poses.{index + 1}")
        else:
            count = _knots_in_time(segment, key)
            path = RobotPath(0.0, 0.0, moving, lambda t: f"the path is left at t = {t:.4g} s", key)
            followed = _follow_in_time(rigid, path, segment.breaks, near, count, rigid.actuated)
            first, near = followed[0].q[0], followed[-1].q[-1]
            parts += [part.pieces for part in followed]
        starts.append(first)
    return replace(joined(parts), start=starts[0])


def _knots_in_time(segment: FrameSegment, key: str) -> Callable[[float], int]:
    """Return how many knots a part of a time has: enough for quintics, and for the fastest wave."""
    whole = float(segment.breaks[-1] - segment.breaks[0])
    fastest = getattr(segment.path.channels, "frequencies", np.zeros(1)).max()  # type: ignore[union-attr]
    waves = 2 * np.pi * fastest * whole / WAVE_ANGLE
    if waves > MOST_WAVE_KNOTS:
        raise InputError(
            f"the waves of the frame would have {waves:.3g} knots", key=f"{key}.frequencies", value=float(fastest),
            hint="give a shorter time or lower frequencies",
        )  # fmt: skip
    return lambda time: max(TIME_KNOTS // 2, int(np.ceil(max(TIME_KNOTS, waves) * time / whole)))


def _follow_in_time(
    rigid: Robot, path: RobotPath, breaks: Array, near: Array, count: Callable[[float], int], rates: Sequence[int]
) -> list[Followed]:
    """Follow a path of time from break to break."""
    parts: list[Followed] = []
    for begin, end in pairwise(map(float, breaks)):
        parts.append(follow_path(rigid, replace(path, begin=begin, end=end), near, count(end - begin), rates))
        near = parts[-1].q[-1]
    return parts


@dataclass(frozen=True, eq=False, repr=False)
class Track(Record):
    """Joints along a reference, and all positions and rates of the robot at knots."""

    reference: FrameTrajectory
    joints: Trajectory
    knots: Array  # s
    q: Array
    qd: Array

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Return positions, rates and accelerations of the joints at times, a row for each."""
        return self._sampled(t)[0]

    def path(self, t: Array) -> FrameMotion:
        """Return poses and motions of the end effector at times."""
        return self._sampled(t)[1]

    def _sampled(self, t: Array) -> tuple[tuple[Array, Array, Array], FrameMotion]:
        """Return both; all runs of a study have the same times."""
        times = np.clip(np.asarray(t, dtype=float), 0.0, self.reference.end)
        key = times.shape, times.tobytes()
        build = lambda: (self.joints.at(times), self.reference.at(times))  # noqa: E731
        return cached("references at times", key, build, owners=(self,), limit=TIMES)

    def refuse_violations(self, robot: Robot, end: float, stopped: Collection[str] = ()) -> None:
        """Raise if the reference exceeds a limit of the robot until a time.

        Motors and sensed joints are checked at any time, others at the knots; not the ranges of `stopped` joints.
        """
        rows, tree = self.knots <= end, robot.tree
        positions = dict(zip(tree.position_names, self.q[rows].T, strict=True))
        velocities = dict(zip(tree.rate_names, self.qd[rows].T, strict=True))
        exceeded = check_limits(robot, positions, velocities, times=self.knots[rows])
        exceeded += self.joints.violations(robot, end)
        violations = {(violation.joint, violation.key): violation for violation in exceeded}
        refuse_violations(
            violation for (joint, key), violation in violations.items() if key != POSITION or joint not in stopped
        )


def track(robot: Robot, reference: FrameTrajectory, names: Sequence[str]) -> Track:
    """Return joints of these names along a reference; an impossible pose, or a singularity on the way, is refused."""
    rigid, side = robot.locking(robot.tree.elastic), 0.0
    placed = moving_frame(rigid, reference.frame, reference.driven, reference.at)

    def moving(t: float, near: Array) -> Moving:
        nonlocal side
        here, qd, qdd = placed(t, near)
        now = _orientation(here, reference.driven)
        if side * now < 0:
            text, hint = "it crosses a singularity of the platform", "choose another working mode or another path"
            raise SingularError(text, key="reference", value=reference.name, hint=hint)
        side = now or side
        return here, qd, qdd

    left = lambda t: f"the reference cannot be tracked at t = {t:.4g} s"  # noqa: E731
    path = RobotPath(0.0, 0.0, moving, left, "reference")
    rates = [rigid.tree.links[rigid.tree.number(name)].v.start for name in names]
    count = lambda time: max(8, int(np.ceil(time / TRACK_STEP)))  # noqa: E731
    parts = _follow_in_time(rigid, path, reference.breaks, rigid.home, count, rates)
    knots, q, qd = (np.concatenate([getattr(part, word) for part in parts]) for word in ("knots", "q", "qd"))
    joints = replace(joined([part.pieces for part in parts]), names=tuple(names), start=q[0])
    return Track(reference, joints, knots, q, qd)


def _orientation(here: Configuration, driven: Collection[int]) -> float:
    """Return a number that changes its sign where the motors lose the platform, whatever the choice of coordinates."""
    driven_rows = (here.frame_rows(here.robot.tree.end_effector) @ here.J)[list(driven)]
    motors = here.J_a
    if motors.shape[0] != motors.shape[1] or driven_rows.shape[0] != driven_rows.shape[1]:
        return 0.0  # more motors, or freedoms, than are driven: no sign tells
    return float(np.sign(np.linalg.det(motors)) * np.sign(np.linalg.det(driven_rows)))


def moving_frame(
    rigid: Robot, frame: str, driven: Sequence[int], at: Callable[[float], FrameMotion]
) -> Callable[[float, Array], Moving]:
    """Return the robot with a frame where a function of time or of a path places it."""
    return lambda s, near: joints_of_pose(rigid, frame, at(s), near, driven)


def follow_segment(robot: Robot, trajectory: FrameTrajectory, segment: PathSegment, near: Array) -> Found:
    """Return motors as functions of the way along a segment, and all positions where it begins and where it ends."""
    key = cache.key_of(robot, "road", trajectory.frame, tuple(trajectory.driven), segment, near, trajectory.name)
    key = None if key is None else key.removesuffix(".program") + ".road"
    return cache.stored(key, lambda: followed_segment(robot, trajectory, segment, near))


def followed_segment(robot: Robot, trajectory: FrameTrajectory, segment: PathSegment, near: Array) -> Found:
    """Follow a segment by the robot with few elements where it has many: with rigid bodies all of them move alike."""
    from parflex.robot.load import with_file_elements  # which builds robots, what a cached path does not need
    from parflex.statics.mesh_error import same_positions

    deformed = any(near[link.e].any() for link in robot.tree.links)
    fewer = None if deformed else with_file_elements(robot)
    if fewer is not None:
        pieces, *ends = _followed(fewer, trajectory, segment, same_positions(robot, fewer, near))
        whole = [same_positions(fewer, robot, q) for q in ends]
        if all(_is_same(robot, fewer, trajectory.frame, *both) for both in zip(whole, ends, strict=True)):
            return pieces, whole[0], whole[1]
    return _followed(robot, trajectory, segment, near)


def _followed(robot: Robot, trajectory: FrameTrajectory, segment: PathSegment, near: Array) -> Found:
    left = "the path stops {:.4g} m from its start" if segment.unit else "the motion is left at {:.4g} of its way"
    moving = moving_frame(robot.locking(robot.tree.elastic), trajectory.frame, trajectory.driven, segment.at)
    path = RobotPath(0.0, segment.length, moving, left.format, f"motions.{trajectory.name}", segment.closed)
    followed = follow_path(robot, path, near, KNOTS[segment.unit], robot.actuated)
    return followed.pieces, followed.q[0], followed.q[-1]


def _is_same(robot: Robot, fewer: Robot, frame: str, q: Array, q_fewer: Array) -> bool:
    """Return whether two robots coincide: a robot that was changed after loading differs from that of its file."""
    at, other = pose(robot.tree, q), pose(fewer.tree, q_fewer)
    apart = np.abs(robot.closures.residual(at)).max(initial=0.0) + np.abs(
        at.of(robot.tree.places[frame])[1] - other.of(fewer.tree.places[frame])[1]
    ).max(initial=0.0)
    return bool(apart <= CLOSED * robot.tree.length)


def _refuse_elsewhere(rigid: Robot, q: Array, requested: Array, key: str) -> None:
    """Raise if a move ends elsewhere than in its pose: what the pose gives is not all that the path keeps."""
    away = q - requested
    turning = [link.q.start for link in rigid.tree.links if link.periodic]
    away[turning] = np.arctan2(np.sin(away[turning]), np.cos(away[turning]))
    single = [link for link in rigid.tree.links if link.joint.one_axis]
    far = {link.name: abs(float(away[link.q.start]) / rigid.tree.rate_units[link.v.start]) for link in single}
    worst = max(far, key=lambda joint: far[joint], default="")
    if worst and far[worst] > ARRIVED:
        text = "the motion ends in another configuration than this pose: place and turn of the end effector do not "
        hint = "move the joints, or give poses of the end effector alone"
        raise UnreachableError(f"{text}determine '{worst}'", key=key, value=worst, hint=hint)


def follow_path(robot: Robot, path: RobotPath, near: Array, count: int, rates: Sequence[int]) -> Followed:
    """Return joints, by their rates, along a path; knots are doubled until quintics fit."""
    rates = list(rates)
    for doubled in range(DOUBLED + 1):
        followed = _at_knots(path, near, count * 2**doubled, rates)
        off, allowed, worst, joint = _off(robot.tree.rate_units[rates], rates, path, followed)
        if off <= FINE + allowed:
            break
    if off > COARSE + allowed:
        name, place = robot.tree.rate_names[rates[joint]], path.left(float(followed.knots[worst]))
        hint = "keep away from singular poses, or prescribe whole poses of the end effector"
        text = f"{place}: '{name}' would have to move too suddenly there"
        raise UnreachableError(text, key=path.key, value=name, hint=hint)
    return followed


def _at_knots(path: RobotPath, near: Array, count: int, rates: list[int]) -> Followed:
    knots = np.linspace(path.begin, path.end, count + 1)
    q, qd, values = list[Array](), list[Array](), list[Array]()
    for s in knots:
        here, velocity, acceleration = path.at(float(s), q[-1] if q else near)
        q.append(here.q)
        qd.append(velocity)
        values.append(joint_values(here, velocity, acceleration, rates))
    rows = np.stack(values, axis=1)
    if np.isnan(rows[2]).any():
        rows[2] = _derivatives(knots, rows[1], path.closed)
    return Followed(hermite(knots, *rows), knots, np.array(q), np.array(qd), rows)


def _derivatives(t: Array, rates: Array, closed: bool) -> Array:
    """Return derivatives of rates that are exact at even knots: of a spline of degree seven through them."""
    from scipy.interpolate import make_interp_spline

    if closed:
        rates = np.concatenate([rates[:-1], rates[:1]])
    return make_interp_spline(t, rates, k=7, bc_type="periodic" if closed else None).derivative()(t)


def joint_values(here: Configuration, qd: Array, qdd: Array, rates: Sequence[int]) -> Array:
    """Return position and two derivatives of joints, by the numbers of their rates."""
    tree, chosen = here.robot.tree, list(rates)
    return np.array([here.q[[tree.links[tree.link_of_rate[k]].q.start for k in chosen]], qd[chosen], qdd[chosen]])


def _off(units: Array, rates: list[int], path: RobotPath, followed: Followed) -> tuple[float, float, int, int]:
    """Return the error of quintics midway between knots, its rounding, the worst piece and the worst joint.

    Checked are three pieces on the path, and the one where positions and the integral of exact rates differ most.
    """
    (p, v, a), h = followed.values, float(followed.knots[1] - followed.knots[0])
    fastest = max(_size(units, v), _size(units, np.diff(p, axis=0) / h))  # rates may be wrong, even zero
    if not fastest:
        return 0.0, 0.0, 0, 0
    opened = np.diff(p, axis=0) - h / 2 * (v[1:] + v[:-1]) + h**2 / 12 * np.diff(a, axis=0)
    worst = int(np.argmax(np.abs(opened / units).max(axis=1)))
    count, errors, pieces = len(p) - 1, dict[int, Array](), followed.pieces
    for k in (worst, count // 5, count // 2, 7 * count // 8):
        s = float(followed.knots[k] + h / 2)
        exact = joint_values(*path.at(s, followed.q[k]), rates)
        apart = np.abs((pieces.value(s) - exact[0]) / h), np.abs(pieces.value(s, 1) - exact[1])
        errors[k] = np.maximum(*apart) / units / fastest
    most = max(errors, key=lambda k: float(errors[k].max()))
    return float(errors[most].max()), ROUNDING / (h * fastest), most, int(errors[most].argmax())


def _size(units: Array, step: Array) -> float:
    return float(np.abs(step / units).max(initial=0.0))


def joints_of_pose(rigid: Robot, frame: str, desired: FrameMotion, near: Array, driven: Sequence[int]) -> Moving:
    """Return the robot with a frame at a pose, near positions, and all its rates and accelerations.

    `driven` are the components of the twist that the robot can follow. If the pose leaves motions free, or the frame
    cannot keep its rotation, the nearest pose is taken, and accelerations are missing (nan).
    """
    axes = range(2 if rigid.tree.planar else 3)
    place = pose_coordinates(rigid, frame, desired, axes)
    turns = sum(c > 2 for c in driven)
    loose = desired.rotation is not None and desired.turn != "direction" and rigid.pose_finder.loose(place)
    if desired.rotation is not None and turns == 2 and not loose:  # at home the third may rest, elsewhere it follows
        loose = rigid.pose_finder.leaves_free(place)
    if desired.rotation is not None and (desired.turn == "direction" or (desired.turn == "axis" and loose)):
        direction = zip(WORDS, map(float, desired.rotation[:, 2]), strict=True)
        return _led(rigid, place | {f"{frame}.{word}": value for word, value in direction}, desired, near)
    if desired.turn == "whole" and (loose or not turns):
        text = f"'{frame}' cannot have every rotation: its rotation has fewer degrees of freedom"
        hint = "give the direction of its z axis, or its place alone"
        raise InputError(text, key="orientation", value=frame, hint=hint)
    if loose or (desired.rotation is None and rigid.pose_finder.leaves_free(place)):
        return _led(rigid, place, desired, near)
    components = [c for c in driven if c < 3 or desired.rotation is not None]
    words = pose_coordinates(rigid, frame, desired, components)
    if rigid.pose_finder.leaves_free(words):
        return _led(rigid, words, desired, near)
    here = configuration_near(rigid, words, near)
    velocity = twist_coordinates(rigid, frame, desired.twist, components)
    qd = here.rates(velocity)
    return here, qd, here.accelerations(twist_coordinates(rigid, frame, desired.acceleration, components), qd, velocity)


def _led(rigid: Robot, words: dict[str, float], desired: FrameMotion, near: Array) -> Moving:
    here = configuration_near(rigid, words, near)
    return here, *rigid.pose_finder.path_motion(words, here.q, desired.derivatives)


def configuration_near(rigid: Robot, words: dict[str, float], near: Array) -> Configuration:
    """Return the robot at a pose, with angles in the turn in which they were."""
    q = rigid.assemble(words, near).copy()
    angles = [link.q.start for link in rigid.tree.links if link.periodic]
    q[angles] += 2 * np.pi * np.round((near[angles] - q[angles]) / (2 * np.pi))
    return Configuration(rigid, q)


def pose_coordinates(robot: Robot, frame: str, desired: FrameMotion, driven: Sequence[int]) -> dict[str, float]:
    """Return the place of a frame; its rotation is included where the robot can prescribe it."""
    words = {f"{frame}.{'xyz'[c]}": float(desired.position[c]) for c in driven if c < 3}
    R = desired.rotation
    if R is None or not any(c > 2 for c in driven):
        return words
    if robot.tree.planar:
        return words | {f"{frame}.theta": float(np.arctan2(R[1, 0], R[0, 0]))}
    return words | {WorldName(f"{frame}.q{a}"): float(v) for a, v in zip("wxyz", matrix_quaternion(R), strict=True)}


def twist_coordinates(robot: Robot, frame: str, values: Array, driven: Sequence[int]) -> dict[str, float]:
    """Return components of a twist or acceleration of a frame, in words."""
    theta = 5 if robot.tree.planar else None
    return {WorldName(f"{frame}.{'theta' if c == theta else TWIST_WORDS[c]}"): float(values[c]) for c in driven}


def as_words(names: Sequence[str], values: Sequence[Any] | Array) -> dict[str, float]:
    """Return numbers by the names of joints."""
    return dict(zip(names, map(float, values), strict=True))
