"""Piecewise polynomials in time, and laws of motion from rest to rest, through points, and over windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial, polynomial

from parflex.errors import InputError
from parflex.records import Record
from parflex.robot.limits import Violation, check_limits
from parflex.robot.robot import Robot

Array = np.ndarray
NEAR = 1e-12  # of the time: times that are nearer to a break are at the break, whatever the rounding
ROUNDING = 1e-11  # of a value over the length of a piece: jumps that are not larger are rounding
POWERS = 6  # of quintics, by position, velocity and acceleration at both ends of a piece; laws may have more
SAMPLES = (1 - np.cos(np.linspace(0.0, np.pi, 17))) / 2  # of a piece, denser at its ends
NEAREST = 4  # pieces with the largest samples, of which extremes are computed
TINY = 1e-9  # of the time: breaks of an averaged law that are nearer to each other are one
KNOT_STEP, LEAST_KNOTS = 2e-3, 40  # s between knots of a composition at most, and knots in a piece of a law at least
MOST_KNOTS = 20_000  # of a piece of a law on a path, or on each lap: the law is smooth however long it takes


@dataclass(frozen=True, eq=False, repr=False)
class Polynomials(Record):
    """`coefficients` (piece, power, channel) of polynomials in the time since `breaks[piece]`."""

    breaks: Array
    coefficients: Array

    @property
    def channels(self) -> int:
        """Number of functions."""
        return self.coefficients.shape[2]

    @property
    def powers(self) -> int:
        """Coefficients of one polynomial."""
        return self.coefficients.shape[1]

    def at(self, t: Array | float, order: int = 0, behind: bool = False) -> Array:
        """Return values or derivatives at times (rows); before the start and behind the end the outer pieces go on.

        At a break it is the end of the piece before it, with `behind` the begin of the next one.
        """
        if not np.ndim(t):
            return self._at_instant(float(t), order, behind)
        times = np.asarray(t, dtype=float)
        shift = self._near(times) * (1 if behind else -1)
        piece = np.clip(np.searchsorted(self.breaks, times + shift, side="right") - 1, 0, len(self.coefficients) - 1)
        return _horner(self.coefficients[piece], (times - self.breaks[piece])[:, None], order)

    def _at_instant(self, t: float, order: int, behind: bool) -> Array:
        """Return the same at one time, without the overhead of arrays: runs ask for thousands of times one by one."""
        shift = NEAR * max(self._second, abs(t)) * (1 if behind else -1)
        piece = int(self.breaks.searchsorted(t + shift, side="right")) - 1
        piece = min(max(piece, 0), len(self.coefficients) - 1)
        return _horner(self.coefficients[piece], t - float(self.breaks[piece]), order)

    def _near(self, times: Any) -> Array:
        """Return distances within which a break is at these times."""
        return NEAR * np.maximum(self._second, np.abs(times))

    @property
    def _second(self) -> float:
        """A second, or how long the pieces last where that is shorter."""
        return min(1.0, abs(float(self.breaks[-1]))) if len(self.breaks) else 1.0

    def jumps(self, order: int) -> tuple[Array, Array]:
        """Return times of jumps of a derivative, and by how much each channel jumps (rows), without rounding."""
        lengths = np.diff(self.breaks)
        long = lengths > self._near(self.breaks[1:])
        times = self.breaks[1:][long]
        if not len(times) or order >= self.powers:
            return times[:0], np.zeros((0, self.channels))
        sizes = self.at(times, order, behind=True) - self.at(times, order)
        before = lengths[long]
        shorter = np.minimum(before, np.append(before[1:], np.inf))[:, None]  # of the two pieces that meet
        values = np.abs(self.coefficients[:, 0]).max(axis=0)
        slopes = np.abs(math.factorial(order) * self.coefficients[:, order]).max(axis=0)
        sizes[np.abs(sizes) <= ROUNDING * values / shorter**order + 1e-9 * slopes] = 0.0
        significant = sizes.any(axis=1)
        return times[significant], sizes[significant]

    def between(self, begin: float, end: float) -> Polynomials:
        """Return the pieces from one time to another; the outer ones go on."""
        after, before = begin + float(self._near(begin)), end - float(self._near(end))
        first = max(int(np.searchsorted(self.breaks, after, side="right")) - 1, 0)
        selected = slice(first, max(int(np.searchsorted(self.breaks, before)), first + 1))
        return Polynomials(self.breaks[selected], self.coefficients[selected])

    def cut(self, breaks: Array) -> Polynomials:
        """Return the same functions with pieces that end at these times."""
        orders = [self.at(breaks, order, behind=True) / math.factorial(order) for order in range(self.powers)]
        return Polynomials(np.asarray(breaks, dtype=float), np.stack(orders, axis=1))

    def beside(self, other: Polynomials) -> Polynomials:
        """Return the channels of both."""
        breaks = np.union1d(self.breaks, other.breaks)
        both = [part.cut(breaks).with_powers(max(self.powers, other.powers)) for part in (self, other)]
        return Polynomials(breaks, np.concatenate([part.coefficients for part in both], axis=2))

    def with_powers(self, count: int) -> Polynomials:
        """Return the same with as many coefficients, of which the highest may be zero."""
        more = np.zeros((len(self.coefficients), count - self.powers, self.channels))
        return Polynomials(self.breaks, np.concatenate([self.coefficients, more], axis=1))

    def scaled(self, begin: float, first: Array, displacement: Array) -> Polynomials:
        """Return channels that start at `first` at a time and move by this law (one channel, from 0 to 1)."""
        coefficients = self.coefficients * np.asarray(displacement)[None, None, :]
        coefficients[:, 0] += first
        return Polynomials(self.breaks + begin, coefficients)

    def averaged(self, width: float) -> Polynomials:
        """Return the means over the window of a width before each time, of a law at rest before its first break."""
        breaks = np.concatenate([[self.breaks[0] - width], self.breaks])
        rows = np.concatenate([np.zeros_like(self.coefficients[:1]), self.coefficients])
        rows[0, 0] = self.coefficients[0, 0]
        area = np.concatenate([np.zeros_like(rows[:, :1]), rows / np.arange(1, self.powers + 1)[:, None]], axis=1)
        gains = _horner(area[:-1], np.diff(breaks)[:, None], 0)
        area[1:, 0] = np.cumsum(gains, axis=0)
        knots = np.sort(np.concatenate([self.breaks, self.breaks + width]))
        knots = knots[np.concatenate([[True], np.diff(knots) > TINY * knots[-1]])]
        now, before = (Polynomials(breaks + shift, area).cut(knots) for shift in (0.0, width))
        return Polynomials(knots, (now.coefficients - before.coefficients) / width)


def _horner(rows: Array, s: Any, order: int) -> Array:
    """Return values or derivatives of polynomials, whose powers are the last axis but one, at the time of each."""
    total = np.zeros_like(rows[..., 0, :])
    for power in range(rows.shape[-2] - 1, order - 1, -1):
        total = total * s + math.perm(power, order) * rows[..., power, :]
    return total


def constant(values: Array) -> Polynomials:
    """Return the same values at all times."""
    coefficients = np.zeros((1, POWERS, len(values)))
    coefficients[0, 0] = values
    return Polynomials(np.zeros(1), coefficients)


def linear(t: Array, values: Array) -> Polynomials:
    """Return straight lines between rows of values, constant before the first and behind the last.

    Two rows at one time are a jump.
    """
    t, values = np.asarray(t, dtype=float), np.asarray(values, dtype=float)
    begins = np.append(np.diff(t) > 0, True)  # rows from which a line goes on
    lines = np.flatnonzero(begins[:-1])
    coefficients = np.zeros((len(t) + 1, POWERS, values.shape[1]))
    coefficients[0, 0] = values[0]
    coefficients[1:, 0] = values
    coefficients[1 + lines, 1] = (values[lines + 1] - values[lines]) / (t[lines + 1] - t[lines])[:, None]
    selected = np.append(True, begins)
    return Polynomials(np.concatenate([[t[0] - 1.0], t])[selected], coefficients[selected])


def hermite(t: Array, position: Array, velocity: Array, acceleration: Array) -> Polynomials:
    """Return quintics through knots with position, velocity and acceleration; the last position is held.

    Exact for piecewise polynomials up to degree five whose breaks are knots and whose acceleration is continuous.
    """
    rows = position, velocity, acceleration
    return quintics(t, [part[:-1] for part in rows], [part[1:] for part in rows])


def quintics(t: Array, begins: Sequence[Array], ends: Sequence[Array]) -> Polynomials:
    """Return quintics between knots from position and two derivatives at both ends of each; the last value is held."""
    h = np.diff(t)[:, None]
    pairs = [(first * h**order, last * h**order) for order, (first, last) in enumerate(zip(begins, ends, strict=True))]
    coefficients = np.zeros((len(t), POWERS, begins[0].shape[1]))
    for power, values in enumerate(quintic_powers(*pairs)):
        coefficients[:-1, power] = values / h**power
    coefficients[-1, 0] = ends[0][-1]
    return Polynomials(np.array(t, dtype=float), coefficients)


def quintic_powers(position: Any, velocity: Any, acceleration: Any) -> tuple[Any, ...]:
    """Return coefficients of u^0 .. u^5 for values, and derivatives by u, at u = 0 and at u = 1; each is a pair."""
    (p0, p1), (v0, v1), (a0, a1) = position, velocity, acceleration
    displacement, turn, bend = p1 - p0 - v0 - a0 / 2, v1 - v0 - a0, a1 - a0
    high = (
        10 * displacement - 4 * turn + bend / 2,
        -15 * displacement + 7 * turn - bend,
        6 * displacement - 3 * turn + bend / 2,
    )
    return p0, v0, a0 / 2, *high


def composed(along: Polynomials, law: Polynomials, end: float = np.inf, lap: float | None = None) -> Polynomials:
    """Return functions of the way along a path as functions of time, by the way in time (one channel).

    Quintics between knots have the exact values and derivatives at both ends. `lap` is the length of a closed path, on
    which a joint that rotates on gains the same angle in each lap. A law without an end is followed until `end`.
    """
    breaks = law.breaks
    if law.coefficients[-1, 1:].any() and np.isfinite(end):  # the last piece goes on
        breaks = np.append(breaks, max(end, breaks[-1]) + KNOT_STEP)
    knots = [breaks[-1:]]
    for a, b in pairwise(breaks):
        laps = 1.0 if lap is None else max(1.0, float(law.at(b)[0] - law.at(a)[0]) / lap)
        count = int(np.ceil(np.clip((b - a) / KNOT_STEP, LEAST_KNOTS, MOST_KNOTS * laps)))
        knots.append(np.linspace(a, b, count, endpoint=False))
    return through_law(along, law, np.sort(np.concatenate(knots)), lap)


def through_law(along: Polynomials, law: Polynomials, knots: Array, lap: float | None = None) -> Polynomials:
    """Return functions of the way as quintics of time between these knots."""
    gain = along.coefficients[-1, 0] - along.coefficients[0, 0]
    sides = []
    for times, behind in ((knots[:-1], True), (knots[1:], False)):
        s, y, u = (law.at(times, order, behind) for order in range(3))
        place = s[:, 0] % lap if lap is not None else s[:, 0]
        Q, Q1, Q2 = (along.at(place, order) for order in range(3))
        laps = 0.0 if lap is None else np.floor(s / lap)
        sides.append((Q + laps * gain, Q1 * y, Q2 * y**2 + Q1 * u))
    return quintics(knots, *sides)


def joined(parts: list[Polynomials]) -> Polynomials:
    """Return one after the other; each holds its last value until the next begins, the first its first one from 0."""
    if parts[0].breaks[0] > 0:
        parts = [constant(parts[0].coefficients[0, 0]), *parts]
    ends = [*(part.breaks[0] for part in parts[1:]), np.inf]
    masks = [part.breaks < end for part, end in zip(parts, ends, strict=True)]
    powers = max(part.powers for part in parts)
    breaks = [part.breaks[keep] for part, keep in zip(parts, masks, strict=True)]
    coefficients = [part.with_powers(powers).coefficients[keep] for part, keep in zip(parts, masks, strict=True)]
    return Polynomials(np.concatenate(breaks), np.concatenate(coefficients))


def repeated(pieces: Polynomials, period: float, time: float) -> Polynomials:
    """Return the pieces of the first period again and again until a time, then the last positions."""
    once = pieces.breaks < period * (1 - 1e-12)
    count = max(1, int(np.ceil(time / period)))
    breaks = [pieces.breaks[once] + lap * period for lap in range(count)]
    held = constant(pieces.coefficients[-1, 0])
    powers = max(pieces.powers, held.powers)
    laps = np.tile(pieces.with_powers(powers).coefficients[once], (count, 1, 1))
    coefficients = np.concatenate([laps, held.with_powers(powers).coefficients])
    return Polynomials(np.append(np.concatenate(breaks), count * period), coefficients)


STEP = quintic_powers((0.0, 1.0), (0.0, 0.0), (0.0, 0.0))  # from 0 to 1, at rest at both ends
SEPTIC = (0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0)  # also the jerk vanishes at both ends


def unit_law(word: str, duration: float, ramp: float = 0.0) -> Polynomials:
    """Return the share of the way from 0 to 1 in a time that begins at zero; 1 is held behind it."""
    return UNIT_LAWS[word](duration, ramp)


def cruise(speed: float, ramp: float) -> Polynomials:
    """Return the way from rest, by a smooth step of the speed over a ramp, to a speed that has no end."""
    way = speed * ramp * Polynomial(STEP).integ()
    return _pieces([0.0, ramp], [way(Polynomial([0.0, 1 / ramp])), Polynomial([float(way(1.0)), speed])])


def _one_piece(powers: Sequence[float]) -> Callable[[float, float], Polynomials]:
    def law(duration: float, _ramp: float) -> Polynomials:
        return _pieces([0.0, duration], [Polynomial(powers)(Polynomial([0.0, 1 / duration])), Polynomial([1.0])])

    return law


def _ramped(rise: Sequence[float]) -> Callable[[float, float], Polynomials]:
    """Return the law of constant speed between two ramps, on which the speed goes as `rise` from 0 to 1."""

    def law(duration: float, ramp: float) -> Polynomials:
        top, held = 1 / (duration - ramp), Polynomial([1.0])
        if ramp == 0:
            return _pieces([0.0, duration], [Polynomial([0.0, top]), held])
        distance = top * ramp * Polynomial(rise).integ()  # in shares of the ramp
        up = distance(Polynomial([0.0, 1 / ramp]))
        down = 1 - distance(Polynomial([1.0, -1 / ramp]))
        middle = duration - 2 * ramp
        if middle <= 1e-12 * duration:
            return _pieces([0.0, ramp, duration], [up, down, held])
        between = Polynomial([distance(1.0), top])
        return _pieces([0.0, ramp, ramp + middle, duration], [up, between, down, held])

    return law


def _pieces(breaks: Sequence[float], parts: Sequence[Polynomial]) -> Polynomials:
    """Return polynomials of the time since each break, in one channel."""
    coefficients = np.zeros((len(breaks), max(len(part.coef) for part in parts), 1))
    for k, part in enumerate(parts):
        coefficients[k, : len(part.coef), 0] = part.coef
    return Polynomials(np.array(breaks, dtype=float), coefficients)


UNIT_LAWS: dict[str, Callable[[float, float], Polynomials]] = {
    "quintic": _one_piece(STEP),
    "septic": _one_piece(SEPTIC),
    "trapezoid": _ramped((0.0, 1.0)),
    "constant-speed": _ramped(STEP),
}


def splined(times: Sequence[float] | Array, values: Array) -> Polynomials:
    """Return a quintic spline through rows, at rest at both ends: its first four derivatives are continuous."""
    from scipy.interpolate import make_interp_spline

    rest = [(1, np.zeros(values.shape[1])), (2, np.zeros(values.shape[1]))]
    spline = make_interp_spline(times, values, k=5, bc_type=(rest, rest))
    return hermite(np.asarray(times, dtype=float), *(spline(times, order) for order in range(3)))


def blended(times: Sequence[float] | Array, values: Array, blend: float, key: str) -> Polynomials:
    """Return constant speeds between rows, and quintics from `blend` before to `blend` behind each corner.

    The motion rests at both ends: their corners lie `blend` inside, so that quintics begin and end there.
    """
    t = np.array(times, dtype=float)
    t[0] += blend
    t[-1] -= blend
    gaps = np.diff(t)
    if gaps.min() < 2 * blend:
        k = int(np.argmin(gaps))
        raise InputError(
            f"the blends of {blend:g} s overlap between the times {times[k]:g} and {times[k + 1]:g} s",
            key=f"{key}.blend", value=blend, hint="make 'blend' shorter, or the times longer",
        )  # fmt: skip
    slopes = np.diff(values, axis=0) / gaps[:, None]
    still = np.zeros((1, values.shape[1]))
    before, behind = np.concatenate([still, slopes]), np.concatenate([slopes, still])
    knots = np.stack([t - blend, t + blend], axis=1).ravel()
    positions = np.stack([values - blend * before, values + blend * behind], axis=1).reshape(len(knots), -1)
    rates = np.stack([before, behind], axis=1).reshape(len(knots), -1)
    return hermite(knots, positions, rates, np.zeros_like(rates))


def largest_values(pieces: Polynomials, end: float) -> tuple[Array, Array, Array]:
    """Return way, largest velocity and largest acceleration of every channel from t = 0 until a time."""
    extremes = [_range(pieces, end, order)[0] for order in range(3)]
    lowest, highest = extremes[0]
    return highest - lowest, *(np.maximum(-low, high) for low, high in extremes[1:])


def extreme_rows(pieces: Polynomials, end: float) -> tuple[Array, Array, Array]:
    """Return times that include every lowest and highest position and velocity from t = 0 until a time, with both.

    Positions and velocities have a row for each time and a column for each channel; where velocities jump, two rows.
    """
    most = [_range(pieces, end, order)[1].ravel() for order in range(2)] if end > 0 else []
    t = np.unique(np.concatenate([[0.0], *most]))
    sides = [(pieces.at(t, 0, behind), pieces.at(t, 1, behind)) for behind in (False, True)]
    positions, velocities = (np.concatenate(both) for both in zip(*sides, strict=True))
    return np.tile(t, 2), positions, velocities


def check_channels(robot: Robot, names: Sequence[str], pieces: Polynomials, end: float) -> list[Violation]:
    """Return the limits that channels by the names of joints exceed until a time, at any instant."""
    t, positions, velocities = extreme_rows(pieces, end)
    return check_limits(
        robot, dict(zip(names, positions.T, strict=True)), dict(zip(names, velocities.T, strict=True)), times=t
    )


def _range(pieces: Polynomials, end: float, order: int) -> tuple[Array, Array]:
    """Return lowest and highest values of a derivative of every channel, and their times: (2, channel) both."""
    begins = np.maximum(-pieces.breaks, 0.0)  # since the break of a piece
    lengths = np.minimum(np.append(pieces.breaks[1:], np.inf), end) - pieces.breaks - begins
    inside = lengths > 0
    breaks, begins, lengths = pieces.breaks[inside], begins[inside, None], lengths[inside, None]
    factors = np.array([math.perm(power, order) for power in range(order, pieces.powers)])
    rows = pieces.coefficients[inside, order:] * factors[:, None]
    samples = np.array([_horner(rows, begins + part * lengths, 0) for part in SAMPLES])  # (sample, piece, channel)
    values, times = np.empty((2, pieces.channels)), np.empty((2, pieces.channels))
    for channel, side in np.ndindex(pieces.channels, 2):
        sign = (-1.0, 1.0)[side]
        signed = sign * samples[:, :, channel]
        sample, piece = np.unravel_index(signed.argmax(), signed.shape)
        best, when = signed[sample, piece], breaks[piece] + begins[piece, 0] + SAMPLES[sample] * lengths[piece, 0]
        for k in np.argsort(signed.max(axis=0))[-NEAREST:]:
            places = _extremes(rows[k, :, channel], float(begins[k, 0]), float(lengths[k, 0]))
            candidates = sign * polynomial.polyval(places, rows[k, :, channel])
            if candidates.max() > best:
                best, when = candidates.max(), breaks[k] + places[candidates.argmax()]
        values[side, channel], times[side, channel] = sign * best, when
    return values, times


def _extremes(row: Array, begin: float, length: float) -> Array:
    """Return places of zero slope; those that rounding moves are harmless, since they lie on the piece as well."""
    slope = polynomial.polyder(row) * (begin + length) ** np.arange(max(len(row) - 1, 1))  # of shares of the piece
    slope = polynomial.polytrim(slope, 1e-14 * np.abs(slope).max())
    places = np.real(polynomial.polyroots(slope)) * (begin + length) if len(slope) > 1 else np.zeros(0)
    return np.clip(np.append(places, begin), begin, begin + length)
