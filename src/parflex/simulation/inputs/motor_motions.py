"""Motions of the motors: from the robot file, from a file of knots, from a function, all as piecewise polynomials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.records import Answer
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.simulation.inputs.function_samples import Span
from parflex.simulation.inputs.polynomials import Polynomials, hermite, joined
from parflex.simulation.inputs.poses import PoseMotion, motors_through, pose_motion
from parflex.simulation.inputs.sampling import smooth_parts
from parflex.simulation.inputs.spare_motions import fitted, is_spare
from parflex.simulation.motions.frame_paths import along_path, frame_waves
from parflex.simulation.motions.given_motions import motion_table, unknown_motion
from parflex.simulation.motions.joint_moves import joint_moves, joint_waves
from parflex.simulation.motions.repeats import goes_on, laps, repeated
from parflex.simulation.motions.waves import Waves

Array = np.ndarray
SAMPLE = 1e-3  # s between samples of a function, or a step if that is shorter
FINE, ROUGH = 1e-6, 1e-4  # of the way of the motors: samples are doubled, and warned of, where quintics are further off
MOST_ROWS = 5_000_000  # of a table
DOUBLED, MOST = 7, 1_000_000  # times at most, and samples


@dataclass(frozen=True, eq=False, repr=False)
class MotorMotion(Answer):
    """A motion of the motors, from `plan_motion`.

    Sines and chirps are `exact`; their `pieces` are quintics through them, for the time loop.

    Attributes
    ----------
    name : str
        Name of the motion.
    motors : tuple[str, ...]
        Names of the motors, in order.
    pieces : Polynomials
        Piecewise polynomials of the positions of the motors (m, rad).
    start : Array
        All positions of the robot with rigid bodies at t = 0 (m, rad).
    exact : Waves | None
        Sines or a chirp.
    period : float | None
        Period after which it repeats (s).
    timing : TimeOptimal | None
        How a time-optimal motion was found.
    planned : float | None
        Until when a motion without an end, or a function, is known (s).
    """

    name: str
    motors: tuple[str, ...]
    pieces: Polynomials
    start: Array
    exact: Waves | None = None
    period: float | None = None
    timing: Any = None
    planned: float | None = None

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings of a time-optimal law."""
        return () if self.timing is None else tuple(self.timing.warnings)

    @property
    def given(self) -> Polynomials:
        """What the time loop gets."""
        return self.pieces

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of the motors at `t` in s; at rest before zero and behind the end."""
        if self.exact is not None:
            return self.exact.at(t)
        self._known(t)
        inside = max(t, 0.0) if self.period is None else float(np.fmod(max(t, 0.0), self.period))
        still = float(t >= 0)
        return self.pieces.at(inside), still * self.pieces.at(inside, 1), still * self.pieces.at(inside, 2)

    @property
    def end(self) -> float:
        """When the last positions are reached, in s; infinite for what is repeated and waves without an end."""
        if self.period is not None:
            return np.inf
        return self.exact.duration if self.exact is not None else float(self.pieces.breaks[-1])

    def until(self, time: float) -> MotorMotion:
        """The same with pieces until `time` in s, for a run: repeated, or more of the exact waves."""
        self._known(time)
        if self.period is not None:
            return replace(self, pieces=laps(self.pieces, self.period, time))
        if self.exact is not None and self.pieces.breaks[-1] < min(time, self.exact.duration):
            return replace(self, pieces=self.exact.quintics(time))
        return self

    def _known(self, t: float) -> None:
        """Refuses times behind what was planned of a motion that goes on."""
        if self.planned is not None and t > self.planned * (1 + 1e-9):
            raise InputError(
                f"the motion is planned until t = {self.planned:g} s only", key="time", value=float(t),
                hint=f"give plan_motion time={t:g} or more",
            )  # fmt: skip

    def table(self, step: float = 1e-3, time: float | None = None) -> dict[str, Array]:
        """Columns `t` (s), JOINT, JOINT.velocity and JOINT.acceleration (SI) every `step` s until its end or `time` s.

        What is repeated ends after a period; other motions without an end need `time`.
        """
        end = (self.period or self.end) if time is None else time
        if not np.isfinite(end):
            raise InputError("the motion has no end", key="time", hint="say until when the table goes")
        if not end / step <= MOST_ROWS:
            raise InputError(
                f"the table would have {end / step:.3g} rows", key="step", value=step, hint=f"at most {MOST_ROWS}"
            )
        t = np.append(np.arange(0.0, end * (1 - 1e-9), step), end)
        rows = self._rows(t)
        columns = {"t": t}
        for order, word in enumerate(("", ".velocity", ".acceleration")):
            columns |= {f"{motor}{word}": rows[:, order, k] for k, motor in enumerate(self.motors)}
        return columns

    def _rows(self, t: Array) -> Array:
        """What `at` gives, at rising times that are not before zero: (time, order, motor)."""
        if self.exact is not None:
            return np.array([self.exact.at(float(moment)) for moment in t])
        self._known(float(t[-1]))
        inside = t if self.period is None else np.fmod(t, self.period)
        return np.stack([self.pieces.at(inside, order) for order in range(3)], axis=1)


def motion_of(robot: Robot, given: Any, span: Span, drive: str = "motors") -> MotorMotion | PoseMotion:
    """A motion: a table by its name in the robot file or as given, knots (.csv, .npz), or a function of time.

    That of the platform (`drive`) goes through poses.
    """
    if isinstance(given, MotorMotion):
        return given.until(span.end)
    if isinstance(given, PoseMotion):
        return given
    found = None if callable(given) else motion_table(robot, given)
    if drive == "platform" and found is not None:
        return pose_motion(robot, *found)
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
    if found is not None:
        return from_table(robot, *found, span.end)
    if isinstance(given, Mapping):
        return _from_knots(robot, given, "motion")
    if str(given).endswith((".csv", ".npz")):
        from parflex.simulation.table_files import read_table

        return _from_knots(robot, read_table(str(given), "motion"), str(given))
    raise unknown_motion(robot, given)


def from_description(robot: Robot, name: str, time: float) -> MotorMotion:
    """A motion of the robot file, repeated or held until a time."""
    return from_table(robot, name, robot.description.motions[name], time)


def from_table(robot: Robot, name: str, motion: MotionTable, time: float) -> MotorMotion:
    """The motion of a table, repeated or held until a time."""
    if not robot.actuated:
        raise InputError("the robot has no motors", key="motion", value=name, hint="mark joints as actuated")
    pieces, start, more = _built(robot, name, motion, max(time, motion.period or 0.0))
    exact, timing = (more, None) if isinstance(more, Waves) else (None, more)
    if motion.period is not None:
        pieces, exact = repeated(pieces, motion.period, time, name), None
    planned = float(pieces.breaks[-1]) if motion.period is None and exact is None and goes_on(motion, pieces) else None
    return MotorMotion(name, tuple(robot.actuated_names), pieces, start, exact, motion.period, timing, planned)


def _built(robot: Robot, name: str, motion: MotionTable, time: float) -> tuple[Polynomials, Array, Any]:
    """Motors in time, all positions at the start, and the exact waves, or the timing of a time-optimal motion."""
    if motion.law_word == "time-optimal":
        from parflex.simulation.time_optimal.fastest import fastest_motion

        return fastest_motion(robot, motion, name)
    if motion.kind in ("sines", "chirp"):
        if motion.frame is not None:
            return (*frame_waves(robot, motion, name, time), None)
        waves, start = joint_waves(robot, motion, name)
        return waves.quintics(time), start, waves
    if motion.poses:
        return (*motors_through(robot, name, motion), None)
    return (*(along_path(robot, motion, name, time) if motion.along_path else joint_moves(robot, motion, name)), None)


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
    span.apart["motion"] = span.end / (2 * count)  # with those midway
    if off > ROUGH:
        span.warnings.append(
            f"the function 'motion' changes too fast to be sampled: about t = {when:.6g} s positions are off by "
            f"{off:.2g} of the way of the motors (use a smaller step, or a smooth function)"
        )
    return replace(_started(robot, "function", pieces), planned=span.end)


def _off(pieces: Polynomials, t: Array, exact: Array, rows: Array) -> tuple[float, float]:
    """How far positions are off, in parts of the way of each motor, at most, and when."""
    found = np.abs(pieces.at(t) - exact[:, 0])
    way = np.maximum(np.ptp(rows[:, 0], axis=0), 1e-6 * np.abs(rows[:, 0]).max(axis=0))  # less is rounding
    shares = np.divide(found, way, out=np.zeros_like(found), where=way > 0).max(axis=1, initial=0.0)
    worst = int(np.argmax(shares))
    return float(shares[worst]), float(t[worst])


def _started(robot: Robot, name: str, pieces: Polynomials) -> MotorMotion:
    """All positions follow from those of the motors at the start."""
    if is_spare(robot):
        return MotorMotion(name, tuple(robot.actuated_names), pieces, fitted(robot, pieces.at(0.0), robot.home))
    values = dict(zip(robot.actuated_names, map(float, pieces.at(0.0)), strict=True))
    return MotorMotion(name, tuple(robot.actuated_names), pieces, robot.locking(robot.tree.elastic).assemble(values))


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
