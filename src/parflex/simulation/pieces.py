"""Functions of time as piecewise polynomials: what every given input becomes before the time loop starts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
HOLD_LATER = 1e-6  # of the last piece: at its very end the motion still moves, whatever the rounding of the time
POWERS = 6  # quintics: position, velocity and acceleration at both ends of a piece


@dataclass(frozen=True)
class Pieces:
    """`coefficients` (piece, power, channel) of polynomials in the time since `breaks[piece]`."""

    breaks: Array
    coefficients: Array

    @property
    def channels(self) -> int:
        """Number of functions."""
        return self.coefficients.shape[2]

    def at(self, t: Array | float, order: int = 0) -> Array:
        """Values or derivatives at times (rows); before the start and behind the end the outer pieces go on."""
        times = np.atleast_1d(np.asarray(t, dtype=float))
        piece = np.clip(np.searchsorted(self.breaks, times, side="right") - 1, 0, len(self.coefficients) - 1)
        s = (times - self.breaks[piece])[:, None]
        total = np.zeros((len(times), self.channels))
        for power in range(POWERS - 1, order - 1, -1):
            total = total * s + math.perm(power, order) * self.coefficients[piece, power]
        return total if np.ndim(t) else total[0]

    def cut(self, breaks: Array) -> Pieces:
        """The same functions with pieces that end at these times."""
        orders = [self.at(breaks, order) / math.factorial(order) for order in range(POWERS)]
        return Pieces(np.asarray(breaks, dtype=float), np.stack(orders, axis=1))

    def beside(self, other: Pieces) -> Pieces:
        """The channels of both."""
        breaks = np.union1d(self.breaks, other.breaks)
        both = np.concatenate([self.cut(breaks).coefficients, other.cut(breaks).coefficients], axis=2)
        return Pieces(breaks, both)


def constant(values: Array) -> Pieces:
    """The same values at all times."""
    coefficients = np.zeros((1, POWERS, len(values)))
    coefficients[0, 0] = values
    return Pieces(np.zeros(1), coefficients)


def linear(t: Array, values: Array) -> Pieces:
    """Straight lines between rows of values, which stay as they are before the first and behind the last."""
    t, values = np.asarray(t, dtype=float), np.asarray(values, dtype=float)
    coefficients = np.zeros((len(t) + 1, POWERS, values.shape[1]))
    coefficients[0, 0] = values[0]
    coefficients[1:, 0] = values
    coefficients[1:-1, 1] = np.diff(values, axis=0) / np.diff(t)[:, None]
    return Pieces(np.concatenate([[t[0] - 1.0], t]), coefficients)


def hermite(t: Array, position: Array, velocity: Array, acceleration: Array) -> Pieces:
    """Quintics through knots with position, velocity and acceleration; the last position is held.

    Exact for piecewise polynomials up to degree five whose breaks are knots and whose acceleration is continuous.
    """
    h = np.diff(t)[:, None]
    p0, p1, v0, v1 = position[:-1], position[1:], velocity[:-1] * h, velocity[1:] * h
    a0, a1 = acceleration[:-1] * h * h, acceleration[1:] * h * h
    way, turn, bend = p1 - p0 - v0 - a0 / 2, v1 - v0 - a0, a1 - a0
    high = (10 * way - 4 * turn + bend / 2, -15 * way + 7 * turn - bend, 6 * way - 3 * turn + bend / 2)
    scaled = [p0, v0, a0 / 2, *high]
    coefficients = np.zeros((len(t), POWERS, position.shape[1]))
    for power, values in enumerate(scaled):
        coefficients[:-1, power] = values / h**power
    coefficients[-1, 0] = position[-1]
    breaks = np.array(t, dtype=float)
    breaks[-1] += HOLD_LATER * (breaks[-1] - breaks[-2])
    return Pieces(breaks, coefficients)


def integral(t: Array, rates: Array, start: Array, order: int) -> Pieces:
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
    return Pieces(np.asarray(t, dtype=float), coefficients)


def joined(parts: list[Pieces]) -> Pieces:
    """One after the other; each holds its last value until the next begins."""
    ends = [*(part.breaks[0] for part in parts[1:]), np.inf]
    kept = [part.breaks < end for part, end in zip(parts, ends, strict=True)]
    breaks = [part.breaks[keep] for part, keep in zip(parts, kept, strict=True)]
    return Pieces(
        np.concatenate(breaks),
        np.concatenate([part.coefficients[keep] for part, keep in zip(parts, kept, strict=True)]),
    )
