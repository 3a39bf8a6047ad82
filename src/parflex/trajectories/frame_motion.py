"""Motion of a frame: through poses, along lines, circles and splines, with speed profiles.

A motion of the robot file gives place, twist and acceleration of the frame exactly at any time. Motors of simulations
follow knots of it; sensitivities of responses need the values between the knots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.errors import InputError, ParflexError, UnreachableError
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.spatial.rotations import rotation_from_vector, vector_from_rotation
from parflex.trajectories.follow import JointTrajectory, joint_trajectory
from parflex.trajectories.paths import (
    FrameMotion,
    PathSegment,
    follow_segment,
    frame_components,
    frame_on_segment,
    joints_of_pose,
    motion_channels,
    path_segments,
)
from parflex.trajectories.polynomials import (
    POWERS,
    Polynomials,
    blended,
    hermite,
    joined,
    smooth_step,
    smooth_step_integral,
    splined,
    unit_law,
)
from parflex.trajectories.waves import Waves, waves_of

Array = np.ndarray

Course = Callable[[Array], tuple[Array, Array, Array]]  # way, speed and acceleration at times

RAMP_KNOTS, KNOT_STEP = 40, 2e-3  # knots in time: so many in a ramp, and not farther apart than this

MOST_KNOTS = 20_000  # of a piece of a law, which is smooth however long it takes

ROAD_KNOTS = 60  # of a piece between two points, for the motors: quintics between them err by 1e-9 of the way

WAVE_ANGLE = 0.2  # rad of the fastest wave between knots

ARRIVED = 1e-6  # rad or typical lengths from a pose

KNOTS = 60  # of a move, for the motors: quintics between them err by 1e-9 of the way


def motors_along_path(robot: Robot, motion: MotionTable, name: str, time: float) -> tuple[Polynomials, Array]:
    """Motors along lines (at rest between them) or a circle, by a law of one move or at constant speed."""
    if motion.law_name in ("spline", "blend"):
        return _through_points(robot, motion, name)
    frame = motion.frame or robot.tree.end_effector
    parts: list[Polynomials] = []
    near, start = robot.home, None
    for timed in timed_segments(motion, name):
        along, first, near = follow_segment(robot, frame, timed.arc, near, name)
        start = first if start is None else start
        stretch = timed.stretch
        t = timed.begin + knots_between(timed.breaks) if stretch is None else _stretch_knots(stretch, time)
        parts.append(as_function_of_time(along, timed.arc.length if timed.arc.closed else None, t, timed.course))
    assert start is not None
    return joined(parts), start


@dataclass(frozen=True, eq=False, repr=False)
class TimedSegment(Record):
    """A part of a path, the way along it in time, and the times since its begin between which that is smooth."""

    arc: PathSegment
    course: Course
    begin: float
    breaks: Array
    stretch: SpeedProfile | None = None  # at constant speed, which may have no end


def timed_segments(motion: MotionTable, name: str) -> list[TimedSegment]:
    """The parts of the path of a motion, one after the other, by a law of one move or at constant speed."""
    segments: list[TimedSegment] = []
    begin = motion.times[0] if motion.times else 0.0
    for index, arc in enumerate(path_segments(motion, name)):
        turns = motion.circle.turns if motion.circle is not None else 1.0
        length = np.inf if turns is None else arc.length * turns
        if motion.law_name == "constant-speed":
            assert motion.speed is not None
            stretch = SpeedProfile(begin, length, motion.speed, motion.ramp)
            segments.append(TimedSegment(arc, stretch.at, begin, np.array(stretch.times()) - begin, stretch))
            end = stretch.end
        else:
            segments.append(_by_law(motion, arc, index, begin, length, name))
            end = begin + float(segments[-1].breaks[-1])
        if not np.isfinite(length):
            break
        begin = motion.times[index + 1] if motion.times else end + motion.rest
    return segments


def _by_law(motion: MotionTable, arc: PathSegment, index: int, begin: float, length: float, name: str) -> TimedSegment:
    """An arc that is gone along by a law of one move in its time."""
    if not np.isfinite(length):
        raise InputError(
            f"the law '{motion.law_name}' needs an end", key=f"motions.{name}.circle.turns", hint="add turns = 1"
        )
    duration = motion.duration if motion.duration is not None else motion.times[index + 1] - motion.times[index]
    law = unit_law(motion.law_name, duration, motion.ramp)

    def course(t: Array) -> tuple[Array, Array, Array]:
        return tuple(length * law.at(t - begin, order)[:, 0] for order in range(3))  # type: ignore[return-value]

    return TimedSegment(arc, course, begin, law.breaks)


def knots_between(breaks: Array) -> Array:
    """Times between breaks, enough for quintics."""
    counts = [int(np.ceil(np.clip((b - a) / KNOT_STEP, RAMP_KNOTS, MOST_KNOTS))) for a, b in pairwise(breaks)]
    parts = [np.linspace(a, b, n, endpoint=False) for (a, b), n in zip(pairwise(breaks), counts, strict=True)]
    return np.concatenate([*parts, breaks[-1:]])


def _stretch_knots(stretch: SpeedProfile, time: float) -> Array:
    times = stretch.times()
    last = times[-1] if np.isfinite(stretch.length) else max(time, times[-1]) + KNOT_STEP
    knots = [np.array([last])]
    for begin, end in pairwise([*times[: 4 if np.isfinite(stretch.length) else 2], last]):
        if end > begin:
            ramping = end - begin <= stretch.ramp * 1.000001
            count = int(np.ceil(max((end - begin) / KNOT_STEP, RAMP_KNOTS if ramping else 1)))
            knots.append(np.linspace(begin, end, count, endpoint=False))
    return np.unique(np.concatenate(knots))


def as_function_of_time(along: Polynomials, lap: float | None, t: Array, time_law: Course) -> Polynomials:
    """Functions of the way as functions of time; `lap` is the length once round a closed path."""
    s, speed, push = (values[:, None] for values in time_law(t))
    place = s[:, 0] % lap if lap is not None else s[:, 0]
    Q, Q1, Q2 = (along.at(place, order) for order in range(3))
    if lap is not None:  # a joint that turns on and on gains the same angle each lap
        gain = along.coefficients[-1, 0] - along.coefficients[0, 0]
        Q = Q + np.floor(s / lap) * gain
    return hermite(t, Q, Q1 * speed, Q2 * speed**2 + Q1 * push)


def _through_points(robot: Robot, motion: MotionTable, name: str) -> tuple[Polynomials, Array]:
    places = timed_points(motion, name)
    return _frame_in_time(robot, motion, name, lambda t: tuple(places.at(t, k) for k in range(3)), places.breaks)


def timed_points(motion: MotionTable, name: str) -> Polynomials:
    """Positions in time through points, without stops."""
    points = np.array(motion.points, dtype=float)
    if len(points) < 2:
        raise InputError("a path needs two points", key=f"motions.{name}.points", hint="add points")
    if motion.law_name == "spline":
        return splined(motion.times, points)
    return blended(motion.times, points, motion.blend, f"motions.{name}")


def frame_waves(robot: Robot, motion: MotionTable, name: str, time: float) -> tuple[Polynomials, Array]:
    """Motors of a frame that moves in waves about its place at home."""
    waves, near = timed_waves(robot, motion)
    end = min(waves.duration, time)
    breaks = np.append(waves.smooth_until(end), end)
    knots = max(ROAD_KNOTS, int(np.ceil(2 * np.pi * waves.frequencies.max() * end / WAVE_ANGLE)))
    if knots > MOST_KNOTS:
        raise InputError(
            f"the waves of the frame would have {knots:.3g} knots", key=f"motions.{name}.frequencies",
            value=float(waves.frequencies.max()), hint="give a shorter time or lower frequencies",
        )  # fmt: skip
    return _frame_in_time(robot, motion, name, waves.at, breaks, knots, near)


def timed_waves(robot: Robot, motion: MotionTable) -> tuple[Waves, Array]:
    """The place of a frame in waves about where it is at the start, and all positions there."""
    assert motion.frame is not None
    near = robot.locking(robot.tree.elastic).assemble(dict(motion.start) or None)
    place = pose(robot.tree, near).of(robot.tree.places[motion.frame])[1]
    return waves_of(motion, "xyz", place), near


def _frame_in_time(
    robot: Robot, motion: MotionTable, name: str, places: Callable[[float], tuple[Array, ...]], breaks: Array,
    knots: int = ROAD_KNOTS, near: Array | None = None,
) -> tuple[Polynomials, Array]:  # fmt: skip
    """Motors of a frame whose position is a function of time, smooth between breaks."""
    frame, rigid = motion.frame or robot.tree.end_effector, robot.locking(robot.tree.elastic)
    driven, parts, start = range(2 if robot.tree.planar else 3), [], None
    near = robot.home if near is None else near

    def at(t: float, q: Array) -> tuple[Array, Array]:
        desired = FrameMotion(*_with_no_turn(places(t)))
        return motion_channels(*joints_of_pose(rigid, frame, desired, q, driven), robot.actuated)

    for begin, end in pairwise(map(float, breaks)):
        trajectory = JointTrajectory(
            begin, end, False, at, lambda t: f"the path is left at t = {t:.4g} s", f"motions.{name}"
        )
        count = max(8, int(np.ceil(knots * (end - begin) / (breaks[-1] - breaks[0]))), ROAD_KNOTS // 2)
        pieces, first, near = joint_trajectory(robot, trajectory, near, count)
        start = first if start is None else start
        parts.append(pieces)
    assert start is not None
    return joined(parts), start


def _with_no_turn(place: tuple[Array, ...]) -> tuple[Array, None, Array, Array]:
    position, velocity, acceleration = place
    return position, None, velocity, acceleration


@dataclass(frozen=True, eq=False, repr=False)
class FrameSegment(Record):
    """A part of a motion, smooth between its `breaks`; `driven` are components of the twist that the robot follows."""

    breaks: Array
    at: Callable[[float], FrameMotion]
    driven: Sequence[int]


@dataclass(frozen=True, eq=False, repr=False)
class FrameTrajectory(Record):
    """A frame in time, stage by stage; it rests between them, before the first and behind the last."""

    frame: str
    stages: tuple[FrameSegment, ...]

    @property
    def breaks(self) -> Array:
        """Times between which it is smooth."""
        return np.unique(np.concatenate([stage.breaks for stage in self.stages]))

    def at(self, t: float) -> tuple[FrameMotion, Sequence[int]]:
        """What is asked of the frame at a time, and the components of its twist that the robot follows."""
        begun = [stage for stage in self.stages if stage.breaks[0] <= t]
        stage = begun[-1] if begun else self.stages[0]
        inside = float(np.clip(t, stage.breaks[0], stage.breaks[-1]))
        motion = stage.at(inside)
        if inside != t:
            motion = FrameMotion(
                motion.position, motion.rotation, 0 * motion.twist, 0 * motion.acceleration, motion.turn
            )
        return motion, stage.driven


def frame_trajectory(robot: Robot, name: str, motion: MotionTable) -> FrameTrajectory:
    """The course of the frame that a motion of the file moves; its law is one of given times."""
    frame, rigid = motion.frame or robot.tree.end_effector, robot.locking(robot.tree.elastic)
    if motion.poses:
        turn, driven = requested_rotation(rigid, motion), frame_components(rigid, frame)
        moves = pose_motion(robot, name, motion).moves
        return FrameTrajectory(frame, tuple(_moved(move, turn, driven) for move in moves))
    axes = range(2 if rigid.tree.planar else 3)
    if motion.kind in ("sines", "chirp"):
        waves, _ = timed_waves(robot, motion)
        breaks = np.append(waves.smooth_until(waves.duration), waves.duration)
        return FrameTrajectory(frame, (FrameSegment(breaks, lambda t: _place(*waves.at(t)), axes),))
    if motion.law_name in ("spline", "blend"):
        places = timed_points(motion, name)
        return FrameTrajectory(
            frame, (FrameSegment(places.breaks, lambda t: _place(*(places.at(t, k) for k in range(3))), axes),)
        )
    return FrameTrajectory(frame, tuple(_along(rigid, frame, timed, name) for timed in timed_segments(motion, name)))


def _moved(move: PoseMove, turn: str, driven: Sequence[int]) -> FrameSegment:
    """From one pose to the next."""

    def at(t: float) -> FrameMotion:
        position, rotation, twist, acceleration = move.at(t)
        return FrameMotion(position, rotation, twist, acceleration, turn)

    return FrameSegment(move.begin + move.law.breaks, at, driven)


def _along(rigid: Robot, frame: str, timed: TimedSegment, name: str) -> FrameSegment:
    """An arc in time: derivatives by the way, and the way in time."""
    desired, driven = frame_on_segment(rigid, frame, timed.arc, name)
    lap = timed.arc.length if timed.arc.closed else None

    def at(t: float) -> FrameMotion:
        s, speed, push = (float(part[0]) for part in timed.course(np.array([t])))
        by_way = desired(s if lap is None else s % lap)
        acceleration = by_way.acceleration * speed**2 + by_way.twist * push
        return FrameMotion(by_way.position, by_way.rotation, by_way.twist * speed, acceleration, by_way.turn)

    return FrameSegment(timed.begin + timed.breaks, at, driven)


def _place(position: Array, velocity: Array, acceleration: Array) -> FrameMotion:
    return FrameMotion(position, None, velocity, acceleration)


@dataclass(frozen=True, eq=False, repr=False)
class PoseMove(Record):
    """From one pose to the next in a time: position and turn go the same share u of their ways."""

    begin: float
    duration: float
    p: Array
    R: Array
    way: Array
    turn: Array  # rotation vector, in the axes of the frame
    law: Polynomials  # share u of the way in the time since `begin`

    def at(self, t: float) -> tuple[Array, Array, Array, Array]:
        """Position, rotation, twist and acceleration in world axes."""
        since = float(np.clip(t - self.begin, 0.0, self.duration))
        u, rate, push = (float(self.law.at(since, order)[0]) for order in range(3))
        axis = self.R @ self.turn  # a turn leaves its own axis in place
        both = np.concatenate([self.way, axis])
        return self.p + u * self.way, self.R @ rotation_from_vector(u * self.turn), rate * both, push * both


@dataclass(frozen=True, eq=False, repr=False)
class PoseMotion(Record):
    """A frame driven through poses, by its acceleration in world axes, and all initial positions of the rigid robot.

    Channels of `accelerations` are ax ay az alx aly alz, in the plane ax ay al.
    """

    name: str
    frame: str
    moves: tuple[PoseMove, ...]
    accelerations: Polynomials
    start: Array
    positions: tuple[Array, ...] = ()  # all of the rigid robot, at each pose

    @property
    def given(self) -> Polynomials:
        """What the time loop gets."""
        return self.accelerations

    @property
    def end(self) -> float:
        """When the last pose is reached."""
        return self.moves[-1].begin + self.moves[-1].duration

    def at(self, t: float) -> tuple[Array, Array, Array, Array]:
        """Position, rotation, twist and acceleration of the frame in world axes."""
        current = [move for move in self.moves if move.begin <= t]
        return (current[-1] if current else self.moves[0]).at(t)


def pose_motion(robot: Robot, name: str, motion: MotionTable | None = None) -> PoseMotion:
    """The motion of the end effector through the poses of a table, by default that of the robot file."""
    motion = robot.description.motions[name] if motion is None else motion
    if not motion.poses:
        raise InputError(
            f"the motion '{name}' has no poses",
            key="motion",
            value=name,
            hint="give it poses, or drive the motors",
        )
    if motion.law_name == "time-optimal":
        raise InputError(
            "a time-optimal motion is one of the motors", key="motion", value=name, hint="drive the motors"
        )
    rigid, frame = robot.locking(robot.tree.elastic), robot.tree.end_effector
    places = sampled_places(rigid, motion, name)
    moves, positions = _moves(motion, places), tuple(place[0] for place in places)
    return PoseMotion(name, frame, moves, _accelerations(moves, robot.tree.planar), places[0][0], positions)


def sampled_places(rigid: Robot, motion: MotionTable, name: str) -> list[tuple[Array, Array, Array]]:
    """All positions, and position and rotation of the end effector, in each pose of a motion."""
    near, places = rigid.home, []
    for index, requested_pose in enumerate(motion.poses):
        try:
            near = rigid.assemble(requested_pose, near)
        except ParflexError as error:
            error.key = f"motions.{name}.poses.{index}"
            raise
        R, p = Configuration(rigid, near).at.of(rigid.tree.places[rigid.tree.end_effector])
        places.append((near, p, R))
    return places


def _moves(motion: MotionTable, places: list[Any]) -> tuple[PoseMove, ...]:
    """A move from each pose to the next, in one time for all or between the times of the poses."""
    moves, begin = [], motion.rest
    for index, ((_, p, R), (_, p_next, R_next)) in enumerate(pairwise(places)):
        duration = motion.duration
        if duration is None:
            begin, duration = motion.times[index], motion.times[index + 1] - motion.times[index]
        law = unit_law(motion.law_name, duration, motion.ramp)
        moves.append(PoseMove(begin, duration, p, R, p_next - p, vector_from_rotation(R.T @ R_next), law))
        begin += duration + motion.rest
    return tuple(moves)


def _accelerations(moves: tuple[PoseMove, ...], planar: bool) -> Polynomials:
    """The accelerations, the pieces of the law of each move, and zero between them."""
    channels = [0, 1, 5] if planar else list(range(6))
    still = Polynomials(np.zeros(1), np.zeros((1, POWERS, len(channels))))
    parts = [still]
    for move in moves:
        both = np.concatenate([move.way, move.R @ move.turn])[channels]
        law, orders = move.law.coefficients, np.arange(2, move.law.powers)
        powers = law[:, 2:] * (orders * (orders - 1))[None, :, None] * both
        parts.append(Polynomials(move.begin + move.law.breaks, powers).with_powers(max(POWERS, len(orders))))
    return joined(parts)


def motors_through_poses(robot: Robot, name: str, motion: MotionTable | None = None) -> tuple[Polynomials, Array]:
    """Motors that drive the rigid robot through the poses, and all positions at the start."""
    path = pose_motion(robot, name, motion)
    rigid, frame, near = robot.locking(robot.tree.elastic), path.frame, path.start
    driven, parts = frame_components(rigid, frame), []
    turn = requested_rotation(rigid, robot.description.motions[name] if motion is None else motion)
    for index, move in enumerate(path.moves):
        for begin, end in pairwise(map(float, move.begin + move.law.breaks)):
            trajectory = _road(rigid, frame, driven, move, name, begin, end, turn)
            pieces, _, near = joint_trajectory(robot, trajectory, near, KNOTS)
            parts.append(pieces)
        _refuse_elsewhere(rigid, near, path.positions[index + 1], f"motions.{name}.poses.{index + 1}")
    return joined(parts), path.start


def requested_rotation(rigid: Robot, motion: MotionTable) -> str:
    """What poses ask of the turn of an end effector that cannot have every rotation: nothing if they give places alone.

    Else it goes straight, and its z axis with the turn from pose to pose: so it arrives where poses give more.
    """
    frame = rigid.tree.end_effector
    places = {word for axis in "xyz" for word in (axis, f"{frame}.{axis}")}
    entries = [rigid.description.poses.get(entry, {}) if isinstance(entry, str) else entry for entry in motion.poses]
    named = [entry for entry, pose in zip(entries, motion.poses, strict=True) if pose != "home"]
    return "kept" if all(set(entry) <= places for entry in named) else "axis"


def _refuse_elsewhere(rigid: Robot, q: Array, requested: Array, key: str) -> None:
    """Raise if a move ends elsewhere than in its pose: what the pose gives is not all that the path keeps."""
    away = q - requested
    turning = [link.q.start for link in rigid.tree.links if link.periodic]
    away[turning] = np.arctan2(np.sin(away[turning]), np.cos(away[turning]))
    single = [link for link in rigid.tree.links if link.joint.one_axis]
    far = {link.name: abs(float(away[link.q.start]) / rigid.tree.rate_units[link.v.start]) for link in single}
    worst = max(far, key=lambda joint: far[joint], default="")
    if worst and far[worst] > ARRIVED:
        raise UnreachableError(
            f"the motion ends in another configuration than this pose: place and turn of the end effector do not "
            f"determine '{worst}'",
            key=key,
            value=worst,
            hint="move the joints, or give poses of the end effector alone",
        )


def _road(
    rigid: Robot, frame: str, driven: list[int], move: PoseMove, name: str, begin: float, end: float, turn: str
) -> JointTrajectory:  # of one piece of the law
    def at(t: float, near: Array) -> tuple[Array, Array]:
        return motion_channels(
            *joints_of_pose(rigid, frame, FrameMotion(*move.at(t), turn), near, driven), rigid.actuated
        )

    return JointTrajectory(begin, end, False, at, lambda t: f"the motion is left at t = {t:.4g} s", f"motions.{name}")


@dataclass(frozen=True)
class SpeedProfile:
    """From rest at `begin` over a length (infinite: without end) at a speed, with ramps that are smooth steps."""

    begin: float
    length: float
    speed: float
    ramp: float

    @property
    def top(self) -> float:
        """Speed between the ramps; less than asked where the stretch is shorter than they are."""
        return min(self.speed, self.length / self.ramp)

    @property
    def end(self) -> float:
        """When it comes to rest: each ramp covers half the way it would at full speed."""
        return self.begin + self.length / self.top + self.ramp

    def times(self) -> list[float]:
        """Ends of its parts."""
        ramps = [self.begin, self.begin + self.ramp]
        return [*ramps, self.end - self.ramp, self.end] if np.isfinite(self.length) else ramps

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Way, speed and acceleration."""
        distance, speed, acceleration = _ramp(t - self.begin, self.ramp, self.top)
        if not np.isfinite(self.length):
            return distance, speed, acceleration
        back = _ramp(t - (self.end - self.ramp), self.ramp, self.top)
        return distance - back[0], speed - back[1], acceleration - back[2]


def _ramp(t: Array, ramp: float, top: float) -> tuple[Array, Array, Array]:
    """From rest at t = 0 to a speed, which is kept."""
    u = np.clip(t / ramp, 0.0, 1.0)
    share, rate, _ = smooth_step(u, ramp)
    distance = top * ramp * smooth_step_integral(u) + top * np.maximum(t - ramp, 0.0)
    return distance, top * share, top * rate
