"""Piecewise polynomials in time: quintics, unit laws, extremes and repetition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial, polynomial

from parflex.errors import InputError
from parflex.records import Record
from parflex.robot.limits import Violation, check_limits
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable

Array = np.ndarray

NEAR = 1e-12  # of the time: what is as near to a break is at it, whatever the rounding

ROUNDING = 1e-11  # of a value over the length of a piece: jumps that are not larger are rounding

POWERS = 6  # of quintics, by position, velocity and acceleration at both ends of a piece; laws may have more

SEPTIC = (0.0, 0.0, 0.0, 0.0, 35.0, -84.0, 70.0, -20.0)  # also the jerk vanishes at both ends

LINEAR = (0.0, 1.0)

SAMPLES = (1 - np.cos(np.linspace(0.0, np.pi, 17))) / 2  # of a piece, denser at its ends

NEAREST = 4  # pieces with the largest samples, of which extremes are computed


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
        """Values or derivatives at times (rows); before the start and behind the end the outer pieces go on.

        At a break it is the end of the piece before it, with `behind` the begin of the next one.
        """
        if not np.ndim(t):
            return self._at_instant(float(t), order, behind)
        times = np.asarray(t, dtype=float)
        shift = self._near(times) * (1 if behind else -1)
        piece = np.clip(np.searchsorted(self.breaks, times + shift, side="right") - 1, 0, len(self.coefficients) - 1)
        return self._horner(piece, (times - self.breaks[piece])[:, None], order)

    def _at_instant(self, t: float, order: int, behind: bool) -> Array:
        """The same at one time, without what arrays of times cost: runs and roads ask for thousands one by one."""
        shift = NEAR * max(self._second, abs(t)) * (1 if behind else -1)
        piece = int(self.breaks.searchsorted(t + shift, side="right")) - 1
        piece = min(max(piece, 0), len(self.coefficients) - 1)
        return self._horner(piece, t - float(self.breaks[piece]), order)

    def _horner(self, piece: Array | int, s: Array | float, order: int) -> Array:
        total = np.zeros_like(self.coefficients[piece, 0])
        for power in range(self.powers - 1, order - 1, -1):
            total = total * s + math.perm(power, order) * self.coefficients[piece, power]
        return total

    def _near(self, times: Any) -> Array:
        """What is as near to times is at them."""
        return NEAR * np.maximum(self._second, np.abs(times))

    @property
    def _second(self) -> float:
        """A second, or how long the pieces last where that is shorter."""
        return min(1.0, abs(float(self.breaks[-1]))) if len(self.breaks) else 1.0

    def jumps(self, order: int) -> tuple[Array, Array]:
        """Times of jumps of a derivative, and by how much each channel jumps there (rows); rounding is left out."""
        lengths = np.diff(self.breaks)
        long = lengths > self._near(self.breaks[1:])
        times = self.breaks[1:][long]
        if not len(times):
            return times, np.zeros((0, self.channels))
        sizes = self.at(times, order, behind=True) - self.at(times, order)
        before = lengths[long]
        shorter = np.minimum(before, np.append(before[1:], np.inf))[:, None]  # of the two pieces that meet
        values = np.abs(self.coefficients[:, 0]).max(axis=0)
        slopes = np.abs(math.factorial(order) * self.coefficients[:, order]).max(axis=0)
        sizes[np.abs(sizes) <= ROUNDING * values / shorter**order + 1e-9 * slopes] = 0.0
        significant = sizes.any(axis=1)
        return times[significant], sizes[significant]

    def between(self, begin: float, end: float) -> Polynomials:
        """The pieces from one time to another; the outer ones go on."""
        after, before = begin + float(self._near(begin)), end - float(self._near(end))
        first = max(int(np.searchsorted(self.breaks, after, side="right")) - 1, 0)
        selected = slice(first, max(int(np.searchsorted(self.breaks, before)), first + 1))
        return Polynomials(self.breaks[selected], self.coefficients[selected])

    def cut(self, breaks: Array) -> Polynomials:
        """The same functions with pieces that end at these times."""
        orders = [self.at(breaks, order, behind=True) / math.factorial(order) for order in range(self.powers)]
        return Polynomials(np.asarray(breaks, dtype=float), np.stack(orders, axis=1))

    def beside(self, other: Polynomials) -> Polynomials:
        """The channels of both."""
        breaks = np.union1d(self.breaks, other.breaks)
        both = [part.cut(breaks).with_powers(max(self.powers, other.powers)) for part in (self, other)]
        return Polynomials(breaks, np.concatenate([part.coefficients for part in both], axis=2))

    def with_powers(self, count: int) -> Polynomials:
        """The same with as many coefficients, of which the highest may be zero."""
        more = np.zeros((len(self.coefficients), count - self.powers, self.channels))
        return Polynomials(self.breaks, np.concatenate([self.coefficients, more], axis=1))


def constant(values: Array) -> Polynomials:
    """The same values at all times."""
    coefficients = np.zeros((1, POWERS, len(values)))
    coefficients[0, 0] = values
    return Polynomials(np.zeros(1), coefficients)


def linear(t: Array, values: Array) -> Polynomials:
    """Straight lines between rows of values, which stay as they are before the first and behind the last.

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
    """Quintics through knots with position, velocity and acceleration; the last position is held.

    Exact for piecewise polynomials up to degree five whose breaks are knots and whose acceleration is continuous.
    """
    h = np.diff(t)[:, None]
    ends = [
        (part[:-1] * h**order, part[1:] * h**order) for order, part in enumerate((position, velocity, acceleration))
    ]
    coefficients = np.zeros((len(t), POWERS, position.shape[1]))
    for power, values in enumerate(quintic_powers(*ends)):
        coefficients[:-1, power] = values / h**power
    coefficients[-1, 0] = position[-1]
    return Polynomials(np.array(t, dtype=float), coefficients)


def slopes_of(t: Array, rates: Array, closed: bool) -> Array:
    """Derivatives of rates that are exact at even knots: of a spline of degree seven through them."""
    from scipy.interpolate import make_interp_spline

    if closed:
        rates = np.concatenate([rates[:-1], rates[:1]])
    return make_interp_spline(t, rates, k=7, bc_type="periodic" if closed else None).derivative()(t)


def integral(t: Array, rates: Array, start: Array, order: int) -> Polynomials:
    """Repeated integrals of step functions: `rates` hold from each time on, all lower derivatives start at zero."""
    count = len(t)
    coefficients = np.zeros((count, POWERS, rates.shape[1]))
    state = np.zeros((order, rates.shape[1]))  # derivatives 0 .. order - 1 at the start of a piece
    state[0] = start
    for piece in range(count):
        for power in range(order):
            coefficients[piece, power] = state[power] / math.factorial(power)
        coefficients[piece, order] = rates[piece] / math.factorial(order)
        if piece + 1 < count:
            h = t[piece + 1] - t[piece]
            full = np.concatenate([state, rates[piece : piece + 1]])
            for power in range(order):
                higher = range(power, order + 1)
                state[power] = sum(full[k] * h ** (k - power) / math.factorial(k - power) for k in higher)
    return Polynomials(np.asarray(t, dtype=float), coefficients)


def joined(parts: list[Polynomials]) -> Polynomials:
    """One after the other; each holds its last value until the next begins, the first its first one from t = 0 on."""
    if parts[0].breaks[0] > 0:
        first = constant(parts[0].coefficients[0, 0])
        parts = [first, *parts]
    ends = [*(part.breaks[0] for part in parts[1:]), np.inf]
    masks = [part.breaks < end for part, end in zip(parts, ends, strict=True)]
    breaks = [part.breaks[keep] for part, keep in zip(parts, masks, strict=True)]
    powers = max(part.powers for part in parts)
    coefficients = [part.with_powers(powers).coefficients[keep] for part, keep in zip(parts, masks, strict=True)]
    return Polynomials(np.concatenate(breaks), np.concatenate(coefficients))


def quintic_powers(position: Any, velocity: Any, acceleration: Any) -> tuple[Any, ...]:
    """Coefficients of u^0 .. u^5 for values, and derivatives by u, at u = 0 and at u = 1; each is a pair."""
    (p0, p1), (v0, v1), (a0, a1) = position, velocity, acceleration
    displacement, turn, bend = p1 - p0 - v0 - a0 / 2, v1 - v0 - a0, a1 - a0
    high = (
        10 * displacement - 4 * turn + bend / 2,
        -15 * displacement + 7 * turn - bend,
        6 * displacement - 3 * turn + bend / 2,
    )
    return p0, v0, a0 / 2, *high


STEP = quintic_powers((0.0, 1.0), (0.0, 0.0), (0.0, 0.0))  # from 0 to 1, at rest at both ends


def smooth_step(u: Array, time: float = 1.0) -> tuple[Array, Array, Array]:
    """The step from 0 to 1, and its derivatives by a time in which u goes from 0 to 1."""
    return _of_step(u, 0), _of_step(u, 1) / time, _of_step(u, 2) / time**2


def smooth_step_integral(u: Array) -> Array:
    """The way that is gone at the speed of the step."""
    return _horner([0.0, *(value / (power + 1) for power, value in enumerate(STEP))], u)


def step_derivative(order: int) -> list[float]:
    """Coefficients of a derivative of the step."""
    return [math.perm(power, order) * value for power, value in enumerate(STEP)][order:]


def _of_step(u: Array, order: int) -> Array:
    return _horner(step_derivative(order), u)


def _horner(powers: list[float], u: Array) -> Array:
    total: Array = np.zeros_like(u, dtype=float)
    for value in reversed(powers):
        total = total * u + value
    return total


def unit_law(word: str, duration: float, ramp: float = 0.0) -> Polynomials:
    """The share of the way from 0 to 1 in a time that begins at zero; 1 is held behind it."""
    return UNIT_LAWS[word](duration, ramp)


def _one_piece(powers: Sequence[float]) -> Callable[[float, float], Polynomials]:
    def law(duration: float, _ramp: float) -> Polynomials:
        return _pieces([0.0, duration], [Polynomial(powers)(Polynomial([0.0, 1 / duration]))])

    return law


def _ramped(rise: Sequence[float]) -> Callable[[float, float], Polynomials]:
    """Constant speed between two flanks, on which the speed goes as `rise` from 0 to 1."""

    def law(duration: float, ramp: float) -> Polynomials:
        top = 1 / (duration - ramp)
        if ramp == 0:
            return _pieces([0.0, duration], [Polynomial([0.0, top])])
        distance = top * ramp * Polynomial(rise).integ()  # in shares of the flank
        up = distance(Polynomial([0.0, 1 / ramp]))
        down = 1 - distance(Polynomial([1.0, -1 / ramp]))
        middle = duration - 2 * ramp
        if middle <= 1e-12 * duration:
            return _pieces([0.0, ramp, duration], [up, down])
        between = Polynomial([distance(1.0), top])
        return _pieces([0.0, ramp, ramp + middle, duration], [up, between, down])

    return law


def _pieces(breaks: Sequence[float], parts: Sequence[Polynomial]) -> Polynomials:
    """Polynomials of the time since each break, and 1 behind the last."""
    coefficients = np.zeros((len(breaks), max(len(part.coef) for part in parts), 1))
    for k, part in enumerate(parts):
        coefficients[k, : len(part.coef), 0] = part.coef
    coefficients[-1, 0, 0] = 1.0
    return Polynomials(np.array(breaks, dtype=float), coefficients)


UNIT_LAWS: dict[str, Callable[[float, float], Polynomials]] = {
    "quintic": _one_piece(STEP),
    "septic": _one_piece(SEPTIC),
    "trapezoid": _ramped(LINEAR),
    "constant-speed": _ramped(STEP),
}


def scaled(law: Polynomials, begin: float, first: Array, displacement: Array) -> Polynomials:
    """Channels that start somewhere at a time and go their ways by the same law."""
    coefficients = law.coefficients * displacement[None, None, :]
    coefficients[:, 0] += first
    return Polynomials(law.breaks + begin, coefficients)


def splined(times: Sequence[float] | Array, values: Array) -> Polynomials:
    """A quintic spline through rows, at rest at both ends: its first four derivatives are continuous."""
    from scipy.interpolate import make_interp_spline

    rest = [(1, np.zeros(values.shape[1])), (2, np.zeros(values.shape[1]))]
    spline = make_interp_spline(times, values, k=5, bc_type=(rest, rest))
    return hermite(np.asarray(times, dtype=float), *(spline(times, order) for order in range(3)))


def blended(times: Sequence[float] | Array, values: Array, blend: float, key: str) -> Polynomials:
    """Constant speeds between rows, and quintics from `blend` before to `blend` behind each corner.

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


def repeat_motion(pieces: Polynomials, period: float, time: float, name: str) -> Polynomials:
    """The motion again and again; it must end where it began, within the period."""
    moved = np.abs(pieces.coefficients[-1, 0] - pieces.coefficients[0, 0]).max(initial=0.0)
    if moved > 1e-9 or pieces.breaks[-1] > period * (1 + 1e-9):
        raise InputError(
            "a motion with a period ends where it began, within the period",
            key=f"motions.{name}.period",
            value=period,
            hint="use a longer period, or moves that return to the start",
        )
    return repeat_pieces(pieces, period, time)


def repeat_pieces(pieces: Polynomials, period: float, time: float) -> Polynomials:
    """The pieces of the first period again and again until a time, then its last positions."""
    once = pieces.breaks < period * (1 - 1e-12)
    count = max(1, int(np.ceil(time / period)))
    breaks = [pieces.breaks[once] + lap * period for lap in range(count)]
    held = np.zeros((1, pieces.powers, pieces.channels))
    held[0, 0] = pieces.coefficients[-1, 0]
    coefficients = np.concatenate([np.tile(pieces.coefficients[once], (count, 1, 1)), held])
    return Polynomials(np.append(np.concatenate(breaks), count * period), coefficients)


def continues(motion: MotionTable, pieces: Polynomials) -> bool:
    """Whether the motion of a frame goes on behind what was planned of it."""
    if motion.kind in ("sines", "chirp"):
        return motion.duration is None or bool(pieces.breaks[-1] < motion.duration * (1 - 1e-9))
    return motion.law_name == "constant-speed" and motion.circle is not None and motion.circle.turns is None


def largest_values(pieces: Polynomials, end: float) -> tuple[Array, Array, Array]:
    """Way, largest velocity and largest acceleration of every channel from t = 0 until a time."""
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
    """Lowest and highest values of a derivative of every channel, and their times: (2, channel) both."""
    begins = np.maximum(-pieces.breaks, 0.0)  # since the break of a piece
    lengths = np.minimum(np.append(pieces.breaks[1:], np.inf), end) - pieces.breaks - begins
    inside = lengths > 0
    breaks, begins, lengths = pieces.breaks[inside], begins[inside, None], lengths[inside, None]
    factors = np.array([math.perm(power, order) for power in range(order, pieces.powers)])
    rows = pieces.coefficients[inside, order:] * factors[:, None]
    samples = np.array([_values(rows, begins + part * lengths) for part in SAMPLES])  # (sample, piece, channel)
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


def _values(rows: Array, s: Array) -> Array:
    """Polynomials of all pieces at a time of each."""
    total = np.zeros((len(rows), rows.shape[2]))
    for power in range(rows.shape[1] - 1, -1, -1):
        total = total * s + rows[:, power]
    return total


def _extremes(row: Array, begin: float, length: float) -> Array:
    """Places where the slope is zero; those that rounding moves are harmless, since they are on the way as well."""
    slope = polynomial.polyder(row) * (begin + length) ** np.arange(max(len(row) - 1, 1))  # of shares of the piece
    slope = polynomial.polytrim(slope, 1e-14 * np.abs(slope).max())
    places = np.real(polynomial.polyroots(slope)) * (begin + length) if len(slope) > 1 else np.zeros(0)
    return np.clip(np.append(places, begin), begin, begin + length)
