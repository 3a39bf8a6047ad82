"""Functions of time as piecewise polynomials: what every given input becomes before the time loop starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.records import Record
from parflex.simulation.inputs.quintics import quintic_powers

Array = np.ndarray
NEAR = 1e-12  # of the time: what is as near to a break is at it, whatever the rounding
ROUNDING = 1e-11  # of a value over the length of a piece: jumps that are not larger are rounding
POWERS = 6  # of quintics, by position, velocity and acceleration at both ends of a piece; laws may have more


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
        found = sizes.any(axis=1)
        return times[found], sizes[found]

    def between(self, begin: float, end: float) -> Polynomials:
        """The pieces from one time to another; the outer ones go on."""
        after, before = begin + float(self._near(begin)), end - float(self._near(end))
        first = max(int(np.searchsorted(self.breaks, after, side="right")) - 1, 0)
        kept = slice(first, max(int(np.searchsorted(self.breaks, before)), first + 1))
        return Polynomials(self.breaks[kept], self.coefficients[kept])

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
    kept = np.append(True, begins)
    return Polynomials(np.concatenate([[t[0] - 1.0], t])[kept], coefficients[kept])


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
    kept = [part.breaks < end for part, end in zip(parts, ends, strict=True)]
    breaks = [part.breaks[keep] for part, keep in zip(parts, kept, strict=True)]
    powers = max(part.powers for part in parts)
    alike = [part.with_powers(powers).coefficients[keep] for part, keep in zip(parts, kept, strict=True)]
    return Polynomials(np.concatenate(breaks), np.concatenate(alike))
