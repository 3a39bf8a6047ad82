"""Efforts and wrenches in time: constants, tables and sampled functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.checks import table
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.forces.forces import checked_wrench
from parflex.records import count_of
from parflex.robot.motor_values import by_motor, motor_effort, read_efforts
from parflex.robot.robot import Robot
from parflex.trajectories.polynomials import POWERS, Polynomials, constant, linear
from parflex.tree.tree import Tree

Array = np.ndarray

Sampled = Callable[[float], Array]  # values of all channels

NODES = np.linspace(0.0, 1.0, POWERS)  # of a piece: half a step apart

BETWEEN = np.array([0.083, 0.52, 0.913])  # where quintics are compared: in no even ratio to the nodes

PLACES = np.concatenate([NODES, BETWEEN])

ORDER = np.argsort(PLACES)

TO_POWERS = np.linalg.inv(np.vander(NODES, increasing=True))

CHECKED = np.vander(BETWEEN, POWERS, increasing=True) @ TO_POWERS

PIECE = 2.5  # steps

LARGEST_SAMPLE_GAP = PIECE * float(np.diff(np.sort(PLACES)).max())  # steps between two samples, at most

FINE = 1e-6  # of the range of a channel: what quintics may be off

LEAST_RANGE = 1e-5  # of the largest value: a range that is smaller is rounding

INSTANT = 1e-10  # s, or of the time where that is shorter: what happens faster is a jump

FACTOR, SPARE = 8, 20_000  # samples at most: so many times those of the first pieces, and so many more

Row = Callable[[float], Array]  # position, velocity, acceleration of all motors

SUSPICIOUS = 1e-3  # of the largest velocity: what accelerations do not explain between two samples is checked

HALVINGS = 30  # from a millisecond to a picosecond

NEAR_JUMP = 1e-3  # of the time between samples: those nearer to a jump are left out, since short pieces are rough


def sampled_input(value: Any, size: int, span: InputSpan, key: str) -> Polynomials:
    """Numbers, a function of time (quintics through samples), or times and rows (straight lines between them)."""
    try:
        if callable(value):
            return _from_function(value, size, span, key)
        if _is_table(value):
            t = np.asarray(value[0], dtype=float)
            return _checked(t, np.asarray(value[1], dtype=float).reshape(len(t), size), key)
        return _checked(None, _row(value, size)[None], key)
    except (TypeError, ValueError):
        raise InputError(
            f"'{key}' is not {count_of(size, 'number')}, a function of time or a table",
            key=key,
            hint="give numbers, f(t), or (times, rows)",
        ) from None


def _from_function(function: Any, size: int, span: InputSpan, key: str) -> Polynomials:
    pieces, off = interpolate_function(lambda t: _finite(_row(function(t), size), key), span.end, span.step)
    span.apart[key] = LARGEST_SAMPLE_GAP * span.step
    if off is not None:
        text = (
            f"the function '{key}' changes too fast to be sampled: about t = {off[1]:.6g} s the run uses values that "
            f"are off by {off[0]:.2g} of its range (use a smaller step, or a smooth function)"
        )
        span.diagnostics.append(Diagnostic("fast-input", text, key, off[0]))
    return pieces


def _row(values: Any, size: int) -> Array:
    row = np.atleast_1d(np.asarray(values, dtype=float))
    if row.shape != (size,):
        raise ValueError
    return row


def _finite(rows: Array, key: str) -> Array:
    if not np.isfinite(rows).all():
        raise InputError(f"'{key}' has numbers that are not finite", key=key, hint="correct the function")
    return rows


def _checked(t: Array | None, rows: Array, key: str) -> Polynomials:
    if not np.isfinite(rows).all() or (t is not None and not np.isfinite(t).all()):
        raise InputError(f"'{key}' has numbers that are not finite", key=key, hint="correct the table")
    if t is not None and np.any(back := np.diff(t) < 0):
        row = int(np.argmax(back)) + 2
        raise InputError(
            f"'{key}' has times that do not increase: row {row} is at {t[row - 1]:g} s, behind {t[row - 2]:g} s",
            key=key,
            hint="order the rows by time; two rows at one time are a jump",
        )
    return constant(rows[0]) if t is None or len(t) < 2 else linear(t, rows)


def specified_efforts(robot: Robot, effort: Any, span: InputSpan) -> Polynomials:
    """Efforts of all motors; those that are not named have none. Each, or all, may be a function or a table of time."""
    names = robot.actuated_names
    if isinstance(effort, Mapping):
        named = by_motor(names, effort, "effort", "effort")
        parts = [_effort_of(name, named.get(motor, 0.0), span) for motor, name in enumerate(names)]
        return functools.reduce(Polynomials.beside, parts) if parts else constant(np.zeros(0))
    if callable(effort):
        return sampled_input(lambda t: read_efforts(robot, effort(t)), len(names), span, "effort")
    if _is_table(effort):
        return sampled_input(effort, len(names), span, "effort")
    return constant(read_efforts(robot, effort))


def _effort_of(name: str, effort: Any, span: InputSpan) -> Polynomials:
    if callable(effort):
        return sampled_input(lambda t: motor_effort(name, effort(t)), 1, span, f"effort.{name}")
    if _is_table(effort):
        return sampled_input(effort, 1, span, f"effort.{name}")
    return constant(np.array([motor_effort(name, effort)]))


def _is_table(value: Any) -> bool:
    """Times and rows."""
    return isinstance(value, tuple) and len(value) == 2 and np.ndim(value[0]) == 1


def specified_wrenches(robot: Robot, wrench: Mapping[str, Any] | None, span: InputSpan) -> dict[str, Polynomials]:
    """Wrenches by frame in world axes: six or three numbers as everywhere, functions of time, or tables of them."""
    result, tree = {}, robot.tree
    for frame, values in table(wrench, "wrench", "{'platform': [0, 0, -100]}").items():
        if callable(values):
            in_time_of_six = _function(tree, frame, values)
        elif _is_table(values):
            in_time_of_six = _rows(tree, frame, values)
        else:
            in_time_of_six = checked_wrench(tree, frame, values)
        checked_wrench(tree, frame, np.zeros(3))  # the frame is there
        result[frame] = sampled_input(in_time_of_six, 6, span, f"wrench.{frame}")
    return result


def _function(tree: Tree, frame: str, function: Any) -> Any:
    return lambda t: checked_wrench(tree, frame, function(t))


def _rows(tree: Tree, frame: str, samples: tuple[Any, Any]) -> tuple[Any, Any]:
    try:
        rows = np.asarray(samples[1], dtype=float).reshape(len(samples[0]), -1)
    except (TypeError, ValueError):
        return samples  # said by in_time
    if rows.shape[1] in (3, 6) and np.isfinite(rows).all():
        rows = np.array([checked_wrench(tree, frame, row) for row in rows]).reshape(len(rows), 6)
    return samples[0], rows


@dataclass(frozen=True)
class InputSpan:
    """How long inputs are needed and the steps in which, and diagnostics of functions that are too fast.

    Of each function that is sampled, how far its samples are apart (s): what is shorter may lie between them.
    """

    end: float
    step: float = 5e-4
    diagnostics: list[Diagnostic] = field(default_factory=list)
    apart: dict[str, float] = field(default_factory=dict)


def interpolate_function(function: Sampled, end: float, step: float) -> tuple[Polynomials, tuple[float, float] | None]:
    """A function from 0 to a time, held behind it; and how far it is off (of its range) and when, where it is not fit.

    Pieces are 2.5 steps long with samples half a step apart. Those that do not fit end at a jump, if there is one, or
    are halved; all of one length before the shorter ones, so that what is too fast is so everywhere alike.
    """
    instant = INSTANT * min(1.0, end)
    count = max(1, int(np.ceil(end / (PIECE * step) * (1 - 1e-12))))
    edges = np.linspace(0.0, end, count + 1)
    ends = np.stack([edges[:-1], edges[1:]], axis=1)
    values = _sampled(function, ends)
    budget = FACTOR * values.shape[0] * values.shape[1] + SPARE
    fit_ends: list[Array] = []
    fit_values: list[Array] = []
    while True:
        # pieces that fit already have told of the range too: it only grows
        samples = np.concatenate([values, *fit_values]).reshape(-1, values.shape[2])
        scale = np.maximum(np.ptp(samples, axis=0), LEAST_RANGE * np.abs(samples).max(axis=0))
        misfit = _misfit(values, scale)
        bad = (misfit > FINE) & (ends[:, 1] - ends[:, 0] > instant)
        fit_ends.append(ends[~bad])
        fit_values.append(values[~bad])
        if not bad.any() or budget <= 0:
            break
        halves, used = _halves(function, ends[bad], values[bad], scale, instant)
        ends, values = halves, _sampled(function, halves)
        budget -= used + values.shape[0] * values.shape[1]
    off = None
    if bad.any():
        worst = int(np.argmax(np.where(bad, misfit, 0.0)))
        off = float(misfit[worst]), float(ends[worst].mean())
        fit_ends.append(ends[bad])
        fit_values.append(values[bad])
    return _pieces(np.concatenate(fit_ends), np.concatenate(fit_values), end), off


def _sampled(function: Sampled, ends: Array) -> Array:
    """Values (piece, place, channel); ends that pieces share are sampled once."""
    known: dict[float, Array] = {}
    rows = []
    for a, b in ends:
        for t in (*(a + (b - a) * PLACES[: POWERS - 1]), b, *(a + (b - a) * BETWEEN)):
            if t not in known:
                known[t] = function(float(t))
            rows.append(known[t])
        known = {b: known[b]}
    return np.array(rows).reshape(len(ends), len(PLACES), rows[0].size)


def _misfit(values: Array, scale: Array) -> Array:
    """Of each piece: how far quintics are off between their nodes, in ranges."""
    off = np.abs(CHECKED @ values[:, :POWERS] - values[:, POWERS:]).max(axis=1)
    return np.divide(off, scale, out=np.zeros_like(off), where=scale > 0).max(axis=1, initial=0.0)


def _halves(function: Sampled, ends: Array, values: Array, scale: Array, instant: float) -> tuple[Array, int]:
    """Two pieces for each, that meet at its jump or in its middle, and how many samples were taken to find jumps."""
    halves, used = [], 0
    for (a, b), rows in zip(ends, values, strict=True):
        jump, tried = _find_jump(function, a, b, rows, scale, instant)
        used += tried
        left, right = jump or ((a + b) / 2,) * 2
        halves += [(a, left), (right, b)]
    made = np.array(halves)
    return made[made[:, 1] > made[:, 0]], used


def _find_jump(
    function: Sampled, a: float, b: float, rows: Array, scale: Array, instant: float
) -> tuple[tuple[float, float] | None, int]:
    """Times just before and just behind the largest change if it is a jump: it stays in intervals that are halved."""
    moving = scale > 0
    values, times = rows[ORDER][:, moving] / scale[moving], a + (b - a) * PLACES[ORDER]
    change = np.abs(np.diff(values, axis=0)).max(axis=1)
    k = int(np.argmax(change))
    (t, after), (before, behind), size, tried = times[k : k + 2], values[k : k + 2], change[k], 0
    while after - t > instant / 4:
        middle, tried = (t + after) / 2, tried + 1
        here = function(float(middle))[moving] / scale[moving]
        first, second = np.abs(here - before).max(), np.abs(behind - here).max()
        if max(first, second) < 0.6 * size:
            return None, tried
        if first > second:
            after, behind = middle, here
        else:
            t, before = middle, here
    return (float(t), float(after)), tried


def _pieces(ends: Array, values: Array, end: float) -> Polynomials:
    order = np.argsort(ends[:, 0])
    ends, values = ends[order], values[order]
    lengths = ends[:, 1] - ends[:, 0]
    powers = (TO_POWERS @ values[:, :POWERS]) / lengths[:, None, None] ** np.arange(POWERS)[None, :, None]
    held = np.zeros((1, POWERS, values.shape[2]))
    first, last = held.copy(), held
    first[0, 0], last[0, 0] = values[0, 0], values[-1, POWERS - 1]
    return Polynomials(np.concatenate([[-1.0], ends[:, 0], [end]]), np.concatenate([first, powers, last]))


def smooth_segments(row: Row, t: Array, rows: Array) -> list[tuple[Array, Array, Array, Array]]:
    """Times, positions, velocities and accelerations of each part without a jump."""
    speed = float(np.abs(rows[:, 1]).max(initial=0.0))
    apart = NEAR_JUMP * float(np.diff(t).max(initial=0.0))
    parts, begin, first = [], 0, None  # first: what a jump leaves at the begin of a part
    for k in range(len(t) - 1):
        jump = None
        if _unexplained(t[k], rows[k], t[k + 1], rows[k + 1]) > SUSPICIOUS * speed:
            jump = _jump_between(row, t[k], rows[k], t[k + 1], rows[k + 1])
        if jump is None:
            continue
        moment, before, behind = jump
        behind = np.concatenate([before[:1], behind[1:]])  # positions do not jump
        inside = [i for i in range(begin, k + 1) if t[i] < moment - apart]
        part = _part(t[inside], rows[inside], first, (moment, before))
        if part is not None:
            parts.append(part)
        first, begin = (moment, behind), k + 1 if t[k + 1] > moment + apart else k + 2
    last = list(range(begin, len(t)))
    part = _part(t[last], rows[last], first, None)
    if part is not None:
        parts.append(part)
    _check_derivatives(parts, speed)
    return parts


def _part(t: Array, rows: Array, first: tuple | None, last: tuple | None) -> tuple[Array, Array, Array, Array] | None:
    """Samples between two jumps; None where there is no time between them."""
    times = [*([first[0]] if first else []), *t, *([last[0]] if last else [])]
    values = np.array([*([first[1]] if first else []), *rows, *([last[1]] if last else [])])
    return (np.array(times), values[:, 0], values[:, 1], values[:, 2]) if len(times) > 1 else None


def _unexplained(t: float, row: Array, after: float, next_row: Array) -> float:
    """Change of velocity less the integral of the acceleration, at most."""
    return float(np.abs(next_row[1] - row[1] - (after - t) * (row[2] + next_row[2]) / 2).max(initial=0.0))


def _jump_between(row: Row, t: float, before: Array, after: float, behind: Array) -> tuple[float, Array, Array] | None:
    """The time of a jump between two samples with what is before and behind it; None where all is smooth."""
    size = _unexplained(t, before, after, behind)
    for _ in range(HALVINGS):
        middle = (t + after) / 2
        here = row(middle)
        if _unexplained(t, before, middle, here) > _unexplained(middle, here, after, behind):
            after, behind = middle, here
        else:
            t, before = middle, here
        if _unexplained(t, before, after, behind) < 0.3 * size:
            return None
    return after, before, behind


def _check_derivatives(parts: list[tuple[Array, Array, Array, Array]], speed: float) -> None:
    """Refuse velocities that are not the rates of change of positions: motors would shake between the samples."""
    for t, position, velocity, _ in parts:
        h = np.diff(t)[:, None]
        mean = np.diff(position, axis=0) / h
        off = np.abs(mean - (velocity[1:] + velocity[:-1]) / 2) - 1e-11 * np.abs(position[1:]) / h
        scale = max(speed, float(np.abs(mean).max(initial=0.0)))
        if np.any(off > 0.25 * scale):
            k = int(np.argmax(off.max(axis=1)))
            raise InputError(
                f"the velocities of the motion are not the derivatives of its positions at t = {t[k]:.4g} s",
                key="motion",
                value=float(t[k]),
                hint="correct the function, or give a table of positions only",
            )
