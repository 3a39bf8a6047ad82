"""Motions of the motors: from the robot file, from a file of knots, from a function, all as piecewise polynomials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.description.motion_tables import MotionTable
from parflex.errors import InputError, did_you_mean
from parflex.models.motor_values import by_motor
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.simulation.inputs.function_samples import Span
from parflex.simulation.inputs.paths import arcs_of, follow
from parflex.simulation.inputs.polynomials import Polynomials, hermite, integral, joined
from parflex.simulation.inputs.poses import PoseMotion, motors_through, pose_motion
from parflex.simulation.inputs.sampling import smooth_parts
from parflex.simulation.inputs.speed import Stretch

Array = np.ndarray
RAMP_KNOTS, KNOT_STEP = 40, 2e-3  # knots in time: so many in a ramp, and not farther apart than this
SAMPLE = 1e-3  # s between samples of a function, or a step if that is shorter
FINE, ROUGH = 1e-6, 1e-4  # of the way of the motors: samples are doubled, and warned of, where quintics are further off
DOUBLED, MOST = 7, 1_000_000  # times at most, and samples


@dataclass(frozen=True, eq=False, repr=False)
class MotorMotion(Record):
    """What the motors do, and all positions of the robot with rigid bodies when it begins."""

    name: str
    pieces: Polynomials
    start: Array

    @property
    def given(self) -> Polynomials:
        """What the time loop gets."""
        return self.pieces

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of the motors."""
        return self.pieces.at(t), self.pieces.at(t, 1), self.pieces.at(t, 2)


def motion_of(robot: Robot, given: Any, span: Span, drive: str = "motors") -> MotorMotion | PoseMotion:
    """A motion by its name in the robot file, a file of knots (.csv, .npz), or a function of time.

    That of the platform (`drive`) goes through poses.
    """
    if isinstance(given, MotorMotion | PoseMotion):
        return given
    if drive == "platform" and given in robot.description.motions:
        return pose_motion(robot, given)
    if drive == "platform":
        known = [name for name, motion in robot.description.motions.items() if motion.poses]
        raise InputError(
            f"the robot has no motion '{given}' through poses",
            key="motion",
            value=str(given),
            hint=did_you_mean(str(given), known) if known else "add [motions.NAME] with poses to its file",
        )
    if callable(given):
        return from_function(robot, given, span)
    if isinstance(given, Mapping):
        return _from_knots(robot, given, "motion")
    if given in robot.description.motions:
        return from_description(robot, given, span.end)
    if str(given).endswith((".csv", ".npz")):
        from parflex.simulation.table_files import read_table

        return _from_knots(robot, read_table(str(given), "motion"), str(given))
    known = list(robot.description.motions)
    raise InputError(
        f"the robot has no motion '{given}'",
        key="motion",
        value=str(given),
        hint=did_you_mean(str(given), known)
        if known
        else "add [motions.NAME] to its file, or name a .csv or .npz file",
    )


def from_description(robot: Robot, name: str, time: float) -> MotorMotion:
    """A motion of the robot file, repeated or held until a time."""
    motion = robot.description.motions[name]
    if not robot.actuated:
        raise InputError("the robot has no motors", key="motion", value=name, hint="mark joints as actuated")
    if motion.poses:
        pieces, start = motors_through(robot, name)
    else:
        pieces, start = _along_path(robot, motion, name, time) if motion.along_path else _moves(robot, motion, name)
    if motion.period is not None:
        pieces = _repeated(pieces, motion.period, time, name)
    return MotorMotion(name, pieces, start)


def _along_path(robot: Robot, motion: MotionTable, name: str, time: float) -> tuple[Polynomials, Array]:
    frame = motion.frame or robot.tree.end_effector
    parts: list[Polynomials] = []
    begin, near, start = 0.0, robot.home, None
    for arc in arcs_of(motion, name):
        along, first, near = follow(robot, frame, arc, near, name)
        start = first if start is None else start
        turns = motion.circle.turns if motion.circle is not None else 1.0
        length = np.inf if turns is None else arc.length * turns
        assert motion.speed is not None
        stretch = Stretch(begin, length, motion.speed, motion.ramp)
        parts.append(_in_time(along, arc.length if arc.closed else None, stretch, time))
        if not np.isfinite(length):
            break
        begin = stretch.end + motion.rest
    assert start is not None
    return joined(parts), start


def _in_time(along: Polynomials, lap: float | None, stretch: Stretch, time: float) -> Polynomials:
    """Functions of the way as functions of time; `lap` is the length once round a closed path."""
    times = stretch.times()
    last = times[-1] if np.isfinite(stretch.length) else max(time, times[-1]) + KNOT_STEP
    knots = [np.array([last])]
    for begin, end in pairwise([*times[: 4 if np.isfinite(stretch.length) else 2], last]):
        if end > begin:
            ramping = end - begin <= stretch.ramp * 1.000001
            count = int(np.ceil(max((end - begin) / KNOT_STEP, RAMP_KNOTS if ramping else 1)))
            knots.append(np.linspace(begin, end, count, endpoint=False))
    t = np.unique(np.concatenate(knots))
    s, speed, push = (values[:, None] for values in stretch.at(t))
    place = s[:, 0] % lap if lap is not None else s[:, 0]
    Q, Q1, Q2 = (along.at(place, order) for order in range(3))
    if lap is not None:  # a joint that turns on and on gains the same angle each lap
        gain = along.coefficients[-1, 0] - along.coefficients[0, 0]
        Q = Q + np.floor(s / lap) * gain
    return hermite(t, Q, Q1 * speed, Q2 * speed**2 + Q1 * push)


def _moves(robot: Robot, motion: MotionTable, name: str) -> tuple[Polynomials, Array]:
    """Trapezoidal velocities, convolved with a box: their derivative is a step function, integrated back exactly."""
    names = robot.actuated_names
    start = robot.locking(robot.tree.elastic).assemble(dict(motion.start) or None)
    positions = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]
    assert motion.duration is not None
    total = motion.duration - motion.ramp  # so much time at full speed goes the whole way
    events: list[tuple[float, Array]] = []
    begin = 0.0
    for index, move in enumerate(motion.moves):
        way = np.zeros(len(names))
        for motor, value in by_motor(names, move, f"motions.{name}.moves.{index}", "move").items():
            way[motor] = value
        events += [(begin + t, change * way / total) for t, change in _trapezoid(motion)]
        begin += motion.duration + motion.smoothing + motion.rest
    order = 1 + bool(motion.ramp) + bool(motion.smoothing)
    times = np.unique(np.round([t for t, _ in events], 12))
    steps = np.zeros((len(times), len(names)))
    for t, change in events:
        steps[int(np.argmin(np.abs(times - t)))] += change
    return integral(times, np.cumsum(steps, axis=0), start[positions], order), start


def _trapezoid(motion: MotionTable) -> list[tuple[float, float]]:
    """Jumps of the highest derivative that is a step function, for a move at unit speed."""
    assert motion.duration is not None
    jumps = [(0.0, 1.0), (motion.duration - motion.ramp, -1.0)]
    for width in (motion.ramp, motion.smoothing):
        if width:
            jumps = [(t + shift, change * sign / width) for t, change in jumps for shift, sign in ((0, 1), (width, -1))]
    return jumps


def _repeated(pieces: Polynomials, period: float, time: float, name: str) -> Polynomials:
    """The motion again and again; it must end where it began, within the period."""
    moved = np.abs(pieces.coefficients[-1, 0] - pieces.coefficients[0, 0]).max(initial=0.0)
    if moved > 1e-9 or pieces.breaks[-1] > period * (1 + 1e-9):
        raise InputError(
            "a motion with a period ends where it began, within the period",
            key=f"motions.{name}.period",
            value=period,
            hint="use a longer period, or moves that return to the start",
        )
    laps = int(np.ceil(time / period)) or 1
    breaks = np.concatenate([pieces.breaks + lap * period for lap in range(laps)])
    return Polynomials(breaks, np.tile(pieces.coefficients, (laps, 1, 1)))


def from_function(robot: Robot, function: Callable[[float], Any], span: Span) -> MotorMotion:
    """A function of time that gives position, velocity and acceleration of all motors; its velocity may jump.

    Samples are compared with the function midway between them, and doubled until quintics through them fit.
    """
    motors = len(robot.actuated)

    def row(moment: float) -> Array:
        values = np.asarray(function(float(moment)), dtype=float)
        values = values[:, None] if motors == 1 and values.shape == (3,) else values
        if values.shape != (3, motors) or not np.isfinite(values).all():
            raise InputError(
                "a motion gives position, velocity and acceleration of every motor",
                key="motion",
                value=str(values.shape),
                hint=f"return three lists of {motors} finite numbers",
            )
        return values

    count = max(1, int(np.ceil(span.end / min(SAMPLE, span.step) * (1 - 1e-12))))
    t = np.linspace(0.0, span.end, count + 1)
    rows = np.array([row(moment) for moment in t])
    for doubled in range(DOUBLED + 1):
        last = doubled == DOUBLED or 2 * len(t) > MOST
        midway = (t[1:] + t[:-1]) / 2
        between = np.array([row(moment) for moment in midway])
        off, when = np.inf, 0.0
        try:
            pieces = joined([hermite(*part) for part in smooth_parts(row, t, rows)])
            off, when = _off(pieces, midway, between, rows)
        except InputError:  # velocities that do not belong to positions, or to a motion between samples
            if last:
                raise
        if off <= FINE or last:
            break
        t = np.insert(t, np.arange(1, len(t)), midway)
        rows = np.insert(rows, np.arange(1, len(rows)), between, axis=0)
    if off > ROUGH:
        span.warnings.append(
            f"the function 'motion' changes too fast to be sampled: about t = {when:.6g} s positions are off by "
            f"{off:.2g} of the way of the motors (use a smaller step, or a smooth function)"
        )
    return _started(robot, "function", pieces)


def _off(pieces: Polynomials, t: Array, exact: Array, rows: Array) -> tuple[float, float]:
    """How far positions are off, in parts of the way of each motor, at most, and when."""
    found = np.abs(pieces.at(t) - exact[:, 0])
    way = np.maximum(np.ptp(rows[:, 0], axis=0), 1e-6 * np.abs(rows[:, 0]).max(axis=0))  # less is rounding
    shares = np.divide(found, way, out=np.zeros_like(found), where=way > 0).max(axis=1, initial=0.0)
    worst = int(np.argmax(shares))
    return float(shares[worst]), float(t[worst])


def _started(robot: Robot, name: str, pieces: Polynomials) -> MotorMotion:
    """All positions follow from those of the motors at the start."""
    values = dict(zip(robot.actuated_names, map(float, pieces.at(0.0)), strict=True))
    return MotorMotion(name, pieces, robot.locking(robot.tree.elastic).assemble(values))


def _from_knots(robot: Robot, table: Mapping[str, Array], file: str) -> MotorMotion:
    """Columns `t`, `JOINT`, `JOINT.velocity`, `JOINT.acceleration`; a spline gives rates that are not there."""
    from scipy.interpolate import make_interp_spline

    columns = {str(key).removeprefix("q."): np.asarray(value, dtype=float) for key, value in table.items()}
    missing = [name for name in ("t", *robot.actuated_names) if name not in columns]
    if missing:
        raise InputError(
            f"the column '{missing[0]}' is missing", file=file, key="motion", value=missing[0],
            hint="give t and a column for every motor",
        )  # fmt: skip
    t = columns["t"]
    twice: Array = np.diff(t) == 0 if t.ndim == 1 else np.zeros(0, dtype=bool)
    if t.ndim != 1 or len(t) < 2 or np.any(np.diff(t) < 0) or t[0] > 0 or np.any(twice[1:] & twice[:-1]):
        raise InputError(
            "'t' does not increase from 0", file=file, key="t", hint="sort the rows by time, starting at t = 0"
        )
    q = np.stack([columns[name] for name in robot.actuated_names], axis=1)
    rates = [[f"{name}.{word}" for name in robot.actuated_names] for word in ("velocity", "acceleration")]
    known = all(name in columns for names in rates for name in names)
    given = [np.stack([columns[name] for name in names], axis=1) for names in rates] if known else []
    if not all(np.isfinite(part).all() for part in (t, q, *given)):
        raise InputError("not all numbers are finite", file=file, key="motion", hint="correct the table")
    parts = []
    for rows in np.split(np.arange(len(t)), np.flatnonzero(twice) + 1):  # two rows at one time: the velocity jumps
        if len(rows) < 2 or t[rows[0]] == t[rows[-1]]:
            raise InputError(
                f"the velocity jumps twice about t = {t[rows[0]]:g} s",
                file=file, key="t", value=float(t[rows[0]]), hint="add rows between the jumps",
            )  # fmt: skip
        spline = None if known else make_interp_spline(t[rows], q[rows], k=min(5, 2 * ((len(rows) - 2) // 2) + 1))
        rest = [part[rows] for part in given] if spline is None else [spline(t[rows], order) for order in (1, 2)]
        parts.append(hermite(t[rows], q[rows], *rest))
    return _started(robot, file, joined(parts))
