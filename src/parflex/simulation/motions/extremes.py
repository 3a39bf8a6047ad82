"""The largest values of a motion: extremes of its polynomials, whatever rows a table has."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.polynomial import polynomial

from parflex.robot.limits import Violation, check_limits
from parflex.robot.robot import Robot
from parflex.simulation.inputs.polynomials import Polynomials

Array = np.ndarray
SAMPLES = (1 - np.cos(np.linspace(0.0, np.pi, 17))) / 2  # of a piece, denser at its ends
NEAREST = 4  # pieces with the largest samples, of which extremes are computed


def largest_values(pieces: Polynomials, end: float) -> tuple[Array, Array, Array]:
    """Way, largest velocity and largest acceleration of every channel from t = 0 until a time."""
    ways = [_range(pieces, end, order)[0] for order in range(3)]
    lowest, highest = ways[0]
    return highest - lowest, *(np.maximum(-low, high) for low, high in ways[1:])


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
        own = sign * samples[:, :, channel]
        sample, piece = np.unravel_index(own.argmax(), own.shape)
        best, when = own[sample, piece], breaks[piece] + begins[piece, 0] + SAMPLES[sample] * lengths[piece, 0]
        for k in np.argsort(own.max(axis=0))[-NEAREST:]:
            places = _extremes(rows[k, :, channel], float(begins[k, 0]), float(lengths[k, 0]))
            found = sign * polynomial.polyval(places, rows[k, :, channel])
            if found.max() > best:
                best, when = found.max(), breaks[k] + places[found.argmax()]
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
