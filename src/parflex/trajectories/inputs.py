"""Efforts and wrenches in time: constants, tables and functions that are sampled between breaks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.checks import table
from parflex.errors import InputError
from parflex.forces.forces import checked_wrench
from parflex.robot.motor_values import by_motor, motor_effort, read_efforts
from parflex.robot.robot import Robot
from parflex.trajectories.trajectory import POWERS, Trajectory, constant, linear, quintics

Array = np.ndarray
FINE = 1e-6  # of the range of a channel, or of the largest velocity and acceleration: what quintics may be off
LEAST_RANGE = 1e-5  # of the largest value: a range that is smaller is rounding
ROUNDING = 1e-14  # of values over the length of a piece: what their derivatives may be off
INSTANT = 1e-10  # s, or of the time where that is shorter: shorter pieces are not halved
BESIDE = 4  # units in the last place: a function is asked so far before and behind a break
FACTOR, SPARE = 8, 20_000  # samples at most: so many times those of the first pieces, and so many more
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
Function = Callable[[float], Array]


@dataclass(frozen=True)
class InputSpan:
    """How long inputs are needed (s), and the times at which functions of time may jump or bend."""

    end: float
    breaks: Sequence[float] = ()


class Sampling:
    """How a function of time is sampled: `orders` derivatives at `nodes` of pieces, which give quintics, and a check.

    Pieces are `piece` s long before they are halved; nodes and places of the check, `between`, are shares of a piece.
    """

    def __init__(self, piece: float, orders: int, nodes: Any, between: Any) -> None:
        self.piece, self.orders, self.count, self.shares = piece, orders, len(nodes), np.array([*nodes, *between])
        self.to_powers = np.linalg.inv(self._conditions(nodes))
        self.checked = self._conditions(between) @ self.to_powers

    def _conditions(self, shares: Any) -> Array:
        """Return rows that give the derivatives at shares of a piece from the powers of a quintic, order by order."""
        unit = Trajectory(np.zeros(1), np.eye(POWERS)[None])
        return np.array([unit.value(float(u), order) for u in shares for order in range(self.orders)])

    def off(self, lengths: Array, values: Array) -> Array:
        """Return how far quintics through values (piece, share, order, channel) are off where they are checked."""
        h = lengths[:, None, None] ** np.arange(self.orders)[:, None]
        scaled = (values * h[:, None]).reshape(len(values), -1, values.shape[-1])
        nodes, between = np.split(scaled, [self.count * self.orders], axis=1)
        off = np.abs(self.checked @ nodes - between).reshape(len(values), -1, *values.shape[2:]).max(axis=1) / h
        below = np.abs(values[:, : self.count, :-1]).sum(axis=1)
        off[:, 1:] = np.maximum(off[:, 1:] - ROUNDING * below / lengths[:, None, None], 0.0)
        return off


FUNCTION = Sampling(1.25e-3, 1, np.linspace(0.0, 1.0, POWERS), (0.083, 0.52, 0.913))  # no even ratio to the nodes
MOTION = Sampling(1e-3, 3, (0.0, 1.0), (0.5,))


def _sampled(function: Function, span: InputSpan, key: str, sampling: Sampling) -> tuple[Array, Array]:
    """Return ends of pieces and values at their nodes (piece, node, order, channel), whose quintics are fine enough.

    Pieces between breaks are halved until they are. A function that is too fast, or jumps, is refused with the time.
    """
    instant, ends = INSTANT * min(1.0, span.end), _first_pieces(span, sampling.piece)
    inner = np.array([t for t in span.breaks if 0 < t < span.end])
    budget = FACTOR * len(ends) * len(sampling.shares) + SPARE
    done: list[tuple[Array, Array]] = []
    while len(ends):
        values = _values(function, ends, sampling.shares, inner)
        budget -= values.shape[0] * values.shape[1]
        at_nodes = values[:, : sampling.count]
        seen = np.concatenate([rows.reshape(-1, *rows.shape[2:]) for rows in (values, *(part[1] for part in done))])
        lengths = ends[:, 1] - ends[:, 0]
        share = _share(sampling.off(lengths, values), seen, span.end)
        bad = share > FINE
        if bad.any() and (budget < 0 or lengths[bad].min() < instant):
            worst = int(np.argmax(np.where(bad & (lengths <= 1.01 * lengths[bad].min()), share, -1.0)))
            _refuse(
                key, float(ends[worst].mean()), float(share[worst]), at_nodes[worst], float(lengths[worst]), budget >= 0
            )
        done.append((ends[~bad], at_nodes[~bad]))
        middle = ends[bad].mean(axis=1)
        ends = np.sort(
            np.concatenate([np.stack([ends[bad, 0], middle], 1), np.stack([middle, ends[bad, 1]], 1)]), axis=0
        )
    pieces, rows = (np.concatenate([part[k] for part in done]) for k in range(2))
    order = np.argsort(pieces[:, 0])
    return pieces[order], rows[order]


def _first_pieces(span: InputSpan, piece: float) -> Array:
    edges = np.unique(np.clip([0.0, *span.breaks, span.end], 0.0, span.end))
    counts = [max(1, int(np.ceil((b - a) / piece * (1 - 1e-12)))) for a, b in pairwise(edges)]
    begins = [np.linspace(a, b, count, endpoint=False) for (a, b), count in zip(pairwise(edges), counts, strict=True)]
    times = np.append(np.concatenate(begins), edges[-1])
    return np.stack([times[:-1], times[1:]], axis=1)


def _values(function: Function, ends: Array, shares: Array, breaks: Array) -> Array:
    """Return values (piece, share, order, channel); at breaks the function is asked just before or just behind them."""
    a, b = ends.T[:, :, None]
    times = np.where(shares == 1, b, a + (b - a) * shares)
    times += np.where(shares == 1, -BESIDE, BESIDE) * np.spacing(times) * np.isin(times, breaks)
    moments, places = np.unique(times, return_inverse=True)
    rows = np.array([function(float(t)) for t in moments])
    return rows[places.reshape(times.shape)]


def _share(off: Array, seen: Array, end: float) -> Array:
    """Return the largest distance of each piece, (piece, order, channel), in ranges of the channel."""
    scale = np.maximum(np.ptp(seen, axis=0), LEAST_RANGE * np.abs(seen).max(axis=0))
    # rates have the size of their largest value, or of what they should be
    scale[1:] = np.maximum(np.abs(seen[:, 1:]).max(axis=0), np.ptp(seen[:, :-1], axis=0) / end)
    return np.divide(off, scale, out=np.zeros_like(off), where=scale > 0).reshape(len(off), -1).max(axis=1, initial=0.0)


def _refuse(key: str, t: float, off: float, nodes: Array, length: float, jumps: bool) -> None:
    for order, (derivative, of) in enumerate((("velocities", "positions"), ("accelerations", "velocities"))):
        if order + 1 >= nodes.shape[1] or jumps:  # no motion, or wrong at one place alone
            break
        mean, values = (nodes[1, order] - nodes[0, order]) / length, nodes[:, order + 1]
        slack = 0.25 * max(float(np.abs(values).max()), float(np.abs(mean).max()))
        if np.any((mean < values.min(axis=0) - slack) | (mean > values.max(axis=0) + slack)):
            raise InputError(
                f"the {derivative} of the motion are not the derivatives of its {of} at t = {t:.4g} s",
                key="motion", value=t, hint="correct the function, or give a table of positions only",
            )  # fmt: skip
    raise InputError(
        f"the function '{key}' jumps or changes too fast to be sampled about t = {t:.9g} s: quintics are off by "
        f"{off:.2g} of its range",
        key=key, value=t, hint=f"name the times of its jumps and bends, breaks=[{round(t, 9):.9g}], or give a table",
    )  # fmt: skip


def sampled_function(function: Function, span: InputSpan, key: str) -> Trajectory:
    """Return quintics through values of a function of time, held behind the end."""
    ends, values = _sampled(lambda t: function(t)[None], span, key, FUNCTION)
    lengths, values = ends[:, 1] - ends[:, 0], values[:, :, 0]
    powers = (FUNCTION.to_powers @ values) / lengths[:, None, None] ** np.arange(POWERS)[None, :, None]
    held = np.zeros((2, POWERS, values.shape[2]))
    held[0, 0], held[1, 0] = values[0, 0], values[-1, -1]
    return Trajectory(np.concatenate([[-1.0], ends[:, 0], [span.end]]), np.concatenate([held[:1], powers, held[1:]]))


def sampled_motion(function: Function, span: InputSpan) -> Trajectory:
    """Return quintics through positions, velocities and accelerations (3, motor) of a function of time."""
    pieces, values = _sampled(function, span, "motion", MOTION)
    t = np.append(pieces[:, 0], pieces[-1, 1])
    begins, ends = (values[:, k].transpose(1, 0, 2) for k in range(2))
    return quintics(t, list(begins), list(ends))


def specified_efforts(robot: Robot, effort: Any, span: InputSpan) -> Trajectory:
    """Return efforts of all motors, zero if not named. Each, or all, may be a function or a table of time."""
    names = tuple(robot.actuated_names)
    if not isinstance(effort, Mapping):
        return replace(_in_time(effort, functools.partial(read_efforts, robot), span, "effort"), names=names)
    named = by_motor(names, effort, "effort", "effort")
    parts = [
        _in_time(named.get(motor, 0.0), functools.partial(_one_effort, name), span, f"effort.{name}")
        for motor, name in enumerate(names)
    ]
    return replace(functools.reduce(Trajectory.beside, parts) if parts else constant(np.zeros(0)), names=names)


def _one_effort(name: str, effort: Any) -> Array:
    return np.array([motor_effort(name, effort)])


def specified_wrenches(robot: Robot, wrench: Mapping[str, Any] | None, span: InputSpan) -> dict[str, Trajectory]:
    """Return wrenches by frame in world axes: six or three numbers, functions of time, or tables of them."""
    result = {}
    for frame, values in table(wrench, "wrench", "{'platform': [0, 0, -100]}").items():
        checked_wrench(robot.tree, frame, np.zeros(3))  # the frame is there
        read = functools.partial(checked_wrench, robot.tree, frame)
        names = tuple(f"{frame}.{word}" for word in WRENCH)
        result[frame] = replace(_in_time(values, read, span, f"wrench.{frame}"), names=names)
    return result


def _in_time(value: Any, read: Callable[[Any], Array], span: InputSpan, key: str) -> Trajectory:
    """Return a function of time (quintics), times and rows (straight lines), or a constant."""
    is_table = isinstance(value, tuple) and len(value) == 2 and np.ndim(value[0]) == 1
    if not is_table and not callable(value):
        return constant(read(value))
    try:
        if callable(value):
            return sampled_function(lambda t: read(value(t)), span, key)
        t, rows = np.asarray(value[0], dtype=float), np.array([read(row) for row in value[1]])
    except (TypeError, ValueError):
        t, rows = np.full(1, np.nan), np.zeros(0)
    if not len(t) or len(rows) != len(t) or not np.isfinite(t).all():
        raise InputError(f"'{key}' is not a function of time or a table", key=key, hint="give f(t), or (times, rows)")
    if np.any(back := np.diff(t) < 0):
        row = int(np.argmax(back)) + 2
        raise InputError(
            f"'{key}' has times that do not increase: row {row} is at {t[row - 1]:g} s, behind {t[row - 2]:g} s",
            key=key,
            hint="order the rows by time; two rows at one time are a jump",
        )
    return linear(t, rows) if len(t) > 1 else constant(rows[0])
