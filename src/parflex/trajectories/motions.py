"""Prescribed motion of the motors, and plans of motions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from parflex.errors import InputError, RobotFileError, did_you_mean
from parflex.io import read_bytes
from parflex.robot.limits import refuse_violations
from parflex.robot.motor_values import by_motor
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import LAW_KEYS, LAWS, LIMIT_KEYS, MotionTable
from parflex.robotfile.read import parse_toml, read_tables
from parflex.trajectories.files import read_table
from parflex.trajectories.follow import as_words, follow
from parflex.trajectories.frames import FrameTrajectory, frame_trajectory, platform_trajectory
from parflex.trajectories.inputs import InputSpan, sampled_motion
from parflex.trajectories.laws import law_through, laws_of_moves, waves_of
from parflex.trajectories.redundant_drive import is_redundant, positions_of_all_motors
from parflex.trajectories.trajectory import Trajectory, hermite, joined

Array = np.ndarray
LONGEST = 1e4  # s
Limits = float | Mapping[str, Any] | None


def plan_motion(
    robot: Robot,
    motion: Any,
    time: float | None = None,
    *,
    effort_limit: Limits = None,
    velocity_limit: Limits = None,
    acceleration_limit: Limits = None,
    breaks: Sequence[float] = (),
    ignore_limits: bool = False,
) -> Trajectory:
    """Plan a motion of the motors, without a run.

    Limits that are given are those of a time-optimal motion; they replace those of its table. A motion in which a motor
    exceeds its `limits` or `velocity_limit` of the robot file is refused.

    Parameters
    ----------
    time : float, default None
        Duration, of motions without an end (s); sines of motors and what has a period go on behind it.
    breaks : Sequence[float], default ()
        Times at which a function of time has velocities that jump (s).
    robot, motion, effort_limit, velocity_limit, acceleration_limit, ignore_limits
        See `parflex.api.WORDS`.

    Returns
    -------
    Trajectory
        Motion for `simulate`; `at(t)` has position, velocity and acceleration of the motors (SI), `table(step)` all of
        them, `timing` how a time-optimal one was found.
    """
    given = dict(zip(LIMIT_KEYS, (effort_limit, velocity_limit, acceleration_limit), strict=True))
    limits = {key: value for key, value in given.items() if value is not None}
    named_table = None if callable(motion) else motion_table(robot, motion)
    if limits and (named_table is None or named_table[1].law_name != "time-optimal"):
        key = min(limits)
        raise InputError(
            f"'{key}' has no effect on this motion", key=key, hint='give a table with law = "time-optimal"'
        )
    if named_table is None:
        if callable(motion) and time is None:
            raise InputError("a function of time has no end", key="time", hint="give time=...")
        plan = motion_of(robot, motion, InputSpan(1.0 if time is None else time, breaks))
        if not isinstance(plan, Trajectory):
            raise InputError("this is a motion of the platform", key="motion", hint="give a motion of the motors")
    else:
        name, table = named_table
        table = _checked(robot, table.model_dump(exclude_unset=True) | limits, "motion") if limits else table
        plan = from_table(robot, name, table, _length(table, time), ignore_limits)
    if not ignore_limits:
        refuse_violations(plan.violations(robot, max(float(plan.breaks[-1]), time or 0.0)))
    return plan


def _length(table: MotionTable, time: float | None) -> float:
    """Return the duration for which a motion without an end is planned."""
    if time is not None:
        if not 0 < time <= LONGEST:
            raise InputError(
                "'time' is not a positive number of seconds, or too long", key="time", value=time,
                hint=f"give e.g. 2, at most {LONGEST:g}",
            )  # fmt: skip
        return time
    if table.circle is not None and table.circle.turns is None and table.law_name == "constant-speed":
        raise InputError("the circle has no end", key="time", hint="give time=..., or turns in the table")
    if table.period is not None:
        return table.period
    if table.duration is not None:
        return table.duration
    if table.kind == "sines":
        if table.frame is not None:
            raise InputError("the sines have no end", key="time", hint="give time=..., or duration in the table")
        return 1 / (table.frequency or min(table.frequencies))
    return 1.0


def motion_table(robot: Robot, motion: Any) -> tuple[str, MotionTable] | None:
    """Return the name and the table of a motion; None if there is no table (knots, functions, trajectories).

    A mapping with `t` is a table of knots. On the command line, `{ moves = [...], duration = 1 }` is a table too.
    """
    if isinstance(motion, MotionTable):
        return "given", motion
    if isinstance(motion, Mapping):
        return None if "t" in motion else ("given", _checked(robot, dict(motion), "motion"))
    if not isinstance(motion, str | Path):
        return None
    text = str(motion)
    if text in robot.description.motions:
        return text, robot.description.motions[text]
    if text.lstrip().startswith("{"):
        with _input_errors("motion"):
            raw = parse_toml(f"motion = {text}".encode(), "motion")["motion"]
        return "given", _checked(robot, raw, "motion")
    if not text.endswith(".toml"):
        return None
    with _input_errors(text):
        raw = parse_toml(read_bytes(text, "motion"), text)
    return Path(text).stem, _checked(robot, raw, text)


def with_time_law(robot: Robot, motion: Any) -> MotionTable:
    """Return the table of a motion with the time-optimal law in place of its own."""
    named_table = motion_table(robot, motion)
    if named_table is None:
        raise InputError(
            "only a table of a motion has a time-optimal law", key="motion", value=str(motion),
            hint="give a name of the robot file, a .toml file or { ... }",
        )  # fmt: skip
    entries = named_table[1].model_dump(exclude_unset=True)
    if "time-optimal" not in LAWS[named_table[1].kind]:
        text = f"a motion with '{named_table[1].kind}' has no path"
        raise InputError(text, key="motion", value=str(motion), hint="give moves or points")
    known = {named_table[1].kind, "frame", "start", *LAW_KEYS["time-optimal"]}  # once: a period would hide its time
    return _checked(robot, {key: entries[key] for key in entries if key in known} | {"law": "time-optimal"}, "motion")


@contextmanager
def _input_errors(file: str) -> Iterator[None]:
    """Raise errors of a table as errors of the argument `motion`, or of the file that it names."""
    try:
        yield
    except RobotFileError as error:
        raise InputError(
            error.message, file=None if file == "motion" else file, key=error.key or "motion", value=error.value,
            hint=error.hint,
        ) from None  # fmt: skip


def _checked(robot: Robot, raw: dict[str, Any], file: str) -> MotionTable:
    """Return the table, with a frame that is there."""
    with _input_errors(file):
        table = read_tables(MotionTable, raw, file, "docs/robot-file.md")
    if table.frame is not None and table.frame not in robot.tree.places:
        raise InputError(
            f"there is no frame '{table.frame}'", file=file if file != "motion" else None, key="frame",
            value=table.frame, hint=did_you_mean(table.frame, list(robot.tree.places)),
        )  # fmt: skip
    return table


def motion_of(robot: Robot, source: Any, span: InputSpan, drive: str = "motors") -> Trajectory | FrameTrajectory:
    """Return a motion: a table by name or as specified, knots (.csv, .npz), or a function of time.

    That of the platform (`drive`) goes through poses.
    """
    if isinstance(source, Trajectory):
        return source.until(span.end)
    if isinstance(source, FrameTrajectory):
        return source
    named_table = None if callable(source) else motion_table(robot, source)
    motions = robot.description.motions
    if drive == "platform":
        if named_table is not None:
            return platform_trajectory(robot, *named_table)
        known, kind, more = (
            [name for name in motions if motions[name].poses],
            " through poses",
            "with poses to its file",
        )
    else:
        known, kind, more = list(motions), "", "to its file, or name a .toml, .csv or .npz file"
        if callable(source):
            return from_function(robot, source, span)
        if named_table is not None:
            return from_table(robot, *named_table, span.end)
        if isinstance(source, Mapping):
            return _from_knots(robot, source, "motion")
        if str(source).endswith((".csv", ".npz")):
            return _from_knots(robot, read_table(str(source), "motion"), str(source))
    raise InputError(
        f"the robot has no motion '{source}'{kind}", key="motion", value=str(source),
        hint=did_you_mean(str(source), known) if known else f"add [motions.NAME] {more}",
    )  # fmt: skip


def from_table(robot: Robot, name: str, motion: MotionTable, time: float, ignore_limits: bool = True) -> Trajectory:
    """Return the motion of a table, repeated or held until a time; time-optimal ones within limits of positions."""
    if not robot.actuated:
        raise InputError("the robot has no motors", key="motion", value=name, hint="mark joints as actuated")
    until, waves = max(time, motion.period or 0.0), motion.kind in ("sines", "chirp")
    if motion.law_name == "time-optimal":
        from parflex.trajectories.time_optimal import fastest_motion

        moved = fastest_motion(robot, motion, name, ignore_limits)
    elif motion.frame is not None or motion.along_path or motion.poses:
        moved = follow(robot, frame_trajectory(robot, name, motion, until), until)
    elif waves:
        moved = joint_waves(robot, motion, name, until)
    else:
        moved = joint_moves(robot, motion, name)
    moved = replace(moved, names=tuple(robot.actuated_names), name=name)
    if motion.period is not None:
        return _repeated(moved, motion.period, name).until(time)
    goes_on = motion.speed is not None and motion.circle is not None and motion.circle.turns is None
    if moved.waves is None and (  # the motion of a frame goes on behind what is planned
        goes_on or (waves and (motion.duration is None or moved.breaks[-1] < motion.duration * (1 - 1e-9)))
    ):
        return replace(moved, planned=float(moved.breaks[-1]))
    return moved


def _repeated(once: Trajectory, period: float, name: str) -> Trajectory:
    """Return the motion again and again; it must end where it began, within the period."""
    moved = np.abs(once.coefficients[-1, 0] - once.coefficients[0, 0]).max(initial=0.0)
    if moved > 1e-9 or once.breaks[-1] > period * (1 + 1e-9):
        text = "a motion with a period ends where it began, within the period"
        hint = "use a longer period, or moves that return to the start"
        raise InputError(text, key=f"motions.{name}.period", value=period, hint=hint)
    return replace(once, period=period, waves=None)


def from_function(robot: Robot, function: Callable[[float], Any], span: InputSpan) -> Trajectory:
    """Return a function of time that gives position, velocity and acceleration of all motors, as quintics."""
    motors = len(robot.actuated)

    def row(moment: float) -> Array:
        values = np.asarray(function(float(moment)), dtype=float)
        values = values[:, None] if motors == 1 and values.shape == (3,) else values
        if values.shape != (3, motors) or not np.isfinite(values).all():
            text = "a motion gives position, velocity and acceleration of every motor"
            hint = f"return three lists of {motors} finite numbers"
            raise InputError(text, key="motion", value=str(values.shape), hint=hint)
        return values

    return replace(_started(robot, "function", sampled_motion(row, span)), planned=span.end)


def _started(robot: Robot, name: str, pieces: Trajectory) -> Trajectory:
    """Return the motion with all positions at the start, which follow from those of the motors."""
    motors, first = tuple(robot.actuated_names), pieces.value(0.0)
    if is_redundant(robot):
        start = positions_of_all_motors(robot, first, robot.home)
    else:
        start = robot.locking(robot.tree.elastic).assemble(as_words(motors, first))
    return replace(pieces, names=motors, name=name, start=start)


def _from_knots(robot: Robot, table: Mapping[str, Array], file: str) -> Trajectory:
    """Return quintics through columns `t`, JOINT, JOINT.velocity, JOINT.acceleration; a spline gives missing rates."""
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
    derivatives = [np.stack([columns[name] for name in names], axis=1) for names in rates] if known else []
    if not all(np.isfinite(part).all() for part in (t, q, *derivatives)):
        raise InputError("not all numbers are finite", file=file, key="motion", hint="correct the table")
    parts = []
    for rows in np.split(np.arange(len(t)), np.flatnonzero(twice) + 1):  # two rows at one time: the velocity jumps
        if len(rows) < 2 or t[rows[0]] == t[rows[-1]]:
            raise InputError(
                f"the velocity jumps twice about t = {t[rows[0]]:g} s",
                file=file, key="t", value=float(t[rows[0]]), hint="add rows between the jumps",
            )  # fmt: skip
        spline = None if known else make_interp_spline(t[rows], q[rows], k=min(5, 2 * ((len(rows) - 2) // 2) + 1))
        rest = [part[rows] for part in derivatives] if spline is None else [spline(t[rows], order) for order in (1, 2)]
        parts.append(hermite(t[rows], q[rows], *rest))
    return _started(robot, file, joined(parts))


def joint_moves(robot: Robot, motion: MotionTable, name: str) -> Trajectory:
    """Return moves one after the other, each by the law, or positions that are gone through."""
    rows, start = positions_of(robot, motion, name)
    if motion.law_name in ("spline", "blend"):
        return replace(law_through(motion, rows, name), start=start)
    laws = zip(pairwise(rows), laws_of_moves(motion, [1.0] * (len(rows) - 1)), strict=True)
    return replace(joined([law.scaled(0.0, first, second - first) for (first, second), law in laws]), start=start)


def positions_of(robot: Robot, motion: MotionTable, name: str) -> tuple[Array, Array]:
    """Return positions of the motors between which moves go, a row each, and all positions at the start."""
    kind, what = ("moves", "move") if motion.moves else ("joints", "position")
    names, tables = robot.actuated_names, getattr(motion, kind)
    steps = [by_motor(names, table, f"motions.{name}.{kind}.{k}", what) for k, table in enumerate(tables)]
    first = {} if motion.moves else {names[motor]: value for motor, value in steps[0].items()}
    start, current = start_of(robot, dict(motion.start) | first)
    rows = [current.copy()] if motion.moves else []
    for values in steps:
        for motor, value in values.items():
            current[motor] = value + (current[motor] if motion.moves else 0.0)
        rows.append(current.copy())
    return np.array(rows), start


def start_of(robot: Robot, joint_positions: dict[str, float]) -> tuple[Array, Array]:
    """Return all positions at specified joint positions (default home), and those of the motors."""
    start = robot.locking(robot.tree.elastic).assemble(joint_positions or None)
    return start, start[[robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]].copy()


def joint_waves(robot: Robot, motion: MotionTable, name: str, time: float) -> Trajectory:
    """Return sines or a chirp of motors, with pieces until a time."""
    start, first = start_of(robot, dict(motion.start))
    names, tables = robot.actuated_names, {}
    for key in ("sines", "cosines", "chirp"):
        amplitudes = by_motor(names, getattr(motion, key), f"motions.{name}.{key}", "amplitude")
        tables[key] = {names[motor]: value for motor, value in amplitudes.items()}
    waves = waves_of(motion.model_copy(update=tables), names, first)
    return replace(waves.quintics(time), start=start, waves=waves)
