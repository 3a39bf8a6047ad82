"""Motors that move a frame along lines, circles, splines and waves, as functions of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from parflex.errors import InputError
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.simulation.inputs.paths import Arc, arcs_of, follow
from parflex.simulation.inputs.polynomials import Polynomials, hermite, joined
from parflex.simulation.inputs.prescribed_frames import FrameMotion, channels, joints_of_pose
from parflex.simulation.inputs.roads import Road, joints_along
from parflex.simulation.inputs.speed import Stretch
from parflex.simulation.motions.through_times import blended, splined
from parflex.simulation.motions.unit_laws import unit_law
from parflex.simulation.motions.waves import Waves, waves_of

Array = np.ndarray
Course = Callable[[Array], tuple[Array, Array, Array]]  # way, speed and acceleration at times
RAMP_KNOTS, KNOT_STEP = 40, 2e-3  # knots in time: so many in a ramp, and not farther apart than this
MOST_KNOTS = 20_000  # of a piece of a law, which is smooth however long it takes
ROAD_KNOTS = 60  # of a piece between two points, for the motors: quintics between them err by 1e-9 of the way
WAVE_ANGLE = 0.2  # rad of the fastest wave between knots


def along_path(robot: Robot, motion: MotionTable, name: str, time: float) -> tuple[Polynomials, Array]:
    """Motors along lines (at rest between them) or a circle, by a law of one move or at constant speed."""
    if motion.law_word in ("spline", "blend"):
        return _through_points(robot, motion, name)
    frame = motion.frame or robot.tree.end_effector
    parts: list[Polynomials] = []
    near, start = robot.home, None
    for timed in timed_arcs(motion, name):
        along, first, near = follow(robot, frame, timed.arc, near, name)
        start = first if start is None else start
        stretch = timed.stretch
        t = timed.begin + knots_between(timed.breaks) if stretch is None else _stretch_knots(stretch, time)
        parts.append(in_time(along, timed.arc.length if timed.arc.closed else None, t, timed.course))
    assert start is not None
    return joined(parts), start


@dataclass(frozen=True, eq=False, repr=False)
class TimedArc(Record):
    """A part of a path, the way along it in time, and the times since its begin between which that is smooth."""

    arc: Arc
    course: Course
    begin: float
    breaks: Array
    stretch: Stretch | None = None  # at constant speed, which may have no end


def timed_arcs(motion: MotionTable, name: str) -> list[TimedArc]:
    """The parts of the path of a motion, one after the other, by a law of one move or at constant speed."""
    found: list[TimedArc] = []
    begin = motion.times[0] if motion.times else 0.0
    for index, arc in enumerate(arcs_of(motion, name)):
        turns = motion.circle.turns if motion.circle is not None else 1.0
        length = np.inf if turns is None else arc.length * turns
        if motion.law_word == "constant-speed":
            assert motion.speed is not None
            stretch = Stretch(begin, length, motion.speed, motion.ramp)
            found.append(TimedArc(arc, stretch.at, begin, np.array(stretch.times()) - begin, stretch))
            end = stretch.end
        else:
            found.append(_by_law(motion, arc, index, begin, length, name))
            end = begin + float(found[-1].breaks[-1])
        if not np.isfinite(length):
            break
        begin = motion.times[index + 1] if motion.times else end + motion.rest
    return found


def _by_law(motion: MotionTable, arc: Arc, index: int, begin: float, length: float, name: str) -> TimedArc:
    """An arc that is gone along by a law of one move in its time."""
    if not np.isfinite(length):
        raise InputError(
            f"the law '{motion.law_word}' needs an end", key=f"motions.{name}.circle.turns", hint="add turns = 1"
        )
    duration = motion.duration if motion.duration is not None else motion.times[index + 1] - motion.times[index]
    law = unit_law(motion.law_word, duration, motion.ramp)

    def course(t: Array) -> tuple[Array, Array, Array]:
        return tuple(length * law.at(t - begin, order)[:, 0] for order in range(3))  # type: ignore[return-value]

    return TimedArc(arc, course, begin, law.breaks)


def knots_between(breaks: Array) -> Array:
    """Times between breaks, enough for quintics."""
    counts = [int(np.ceil(np.clip((b - a) / KNOT_STEP, RAMP_KNOTS, MOST_KNOTS))) for a, b in pairwise(breaks)]
    parts = [np.linspace(a, b, n, endpoint=False) for (a, b), n in zip(pairwise(breaks), counts, strict=True)]
    return np.concatenate([*parts, breaks[-1:]])


def _stretch_knots(stretch: Stretch, time: float) -> Array:
    times = stretch.times()
    last = times[-1] if np.isfinite(stretch.length) else max(time, times[-1]) + KNOT_STEP
    knots = [np.array([last])]
    for begin, end in pairwise([*times[: 4 if np.isfinite(stretch.length) else 2], last]):
        if end > begin:
            ramping = end - begin <= stretch.ramp * 1.000001
            count = int(np.ceil(max((end - begin) / KNOT_STEP, RAMP_KNOTS if ramping else 1)))
            knots.append(np.linspace(begin, end, count, endpoint=False))
    return np.unique(np.concatenate(knots))


def in_time(along: Polynomials, lap: float | None, t: Array, course: Course) -> Polynomials:
    """Functions of the way as functions of time; `lap` is the length once round a closed path."""
    s, speed, push = (values[:, None] for values in course(t))
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
    if motion.law_word == "spline":
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
        return channels(*joints_of_pose(rigid, frame, desired, q, driven), robot.actuated)

    for begin, end in pairwise(map(float, breaks)):
        road = Road(begin, end, False, at, lambda t: f"the path is left at t = {t:.4g} s", f"motions.{name}")
        count = max(8, int(np.ceil(knots * (end - begin) / (breaks[-1] - breaks[0]))), ROAD_KNOTS // 2)
        pieces, first, near = joints_along(robot, road, near, count)
        start = first if start is None else start
        parts.append(pieces)
    assert start is not None
    return joined(parts), start


def _with_no_turn(place: tuple[Array, ...]) -> tuple[Array, None, Array, Array]:
    position, velocity, acceleration = place
    return position, None, velocity, acceleration


__all__ = ["Arc", "along_path", "frame_waves", "in_time", "knots_between"]
