"""Functions of time as quintics through samples: checked between the samples, refined until they fit, cut at jumps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from parflex.simulation.inputs.polynomials import POWERS, Polynomials

Array = np.ndarray
Sampled = Callable[[float], Array]  # values of all channels
NODES = np.linspace(0.0, 1.0, POWERS)  # of a piece: half a step apart
BETWEEN = np.array([0.083, 0.52, 0.913])  # where quintics are compared: in no even ratio to the nodes
PLACES = np.concatenate([NODES, BETWEEN])
ORDER = np.argsort(PLACES)
TO_POWERS = np.linalg.inv(np.vander(NODES, increasing=True))
CHECKED = np.vander(BETWEEN, POWERS, increasing=True) @ TO_POWERS
PIECE = 2.5  # steps
APART = PIECE * float(np.diff(np.sort(PLACES)).max())  # steps between two samples, at most
FINE = 1e-6  # of the range of a channel: what quintics may be off
LEAST_RANGE = 1e-5  # of the largest value: a range that is smaller is rounding
INSTANT = 1e-10  # s, or of the time where that is shorter: what happens faster is a jump
FACTOR, SPARE = 8, 20_000  # samples at most: so many times those of the first pieces, and so many more


@dataclass(frozen=True)
class Span:
    """How long inputs are needed and the steps in which, and a list of warnings about functions that are too fast.

    Of each function that is sampled, how far its samples are apart (s): what is shorter may lie between them.
    """

    end: float
    step: float = 5e-4
    warnings: list[str] = field(default_factory=list)
    apart: dict[str, float] = field(default_factory=dict)


def through_samples(function: Sampled, end: float, step: float) -> tuple[Polynomials, tuple[float, float] | None]:
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
        seen = np.concatenate([values, *fit_values]).reshape(-1, values.shape[2])
        scale = np.maximum(np.ptp(seen, axis=0), LEAST_RANGE * np.abs(seen).max(axis=0))
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
        found, tried = _jump(function, a, b, rows, scale, instant)
        used += tried
        left, right = found or ((a + b) / 2,) * 2
        halves += [(a, left), (right, b)]
    made = np.array(halves)
    return made[made[:, 1] > made[:, 0]], used


def _jump(
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
