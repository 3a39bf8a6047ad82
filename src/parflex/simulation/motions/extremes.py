"""The largest values of a motion: extremes of its polynomials, whatever rows a table has."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import polynomial

from parflex.simulation.inputs.polynomials import Polynomials

Array = np.ndarray
SAMPLES = (1 - np.cos(np.linspace(0.0, np.pi, 17))) / 2  # of a piece, denser at its ends
NEAREST = 4  # pieces with the largest samples, of which extremes are computed


def largest_values(pieces: Polynomials, end: float) -> tuple[Array, Array, Array]:
    """Way, largest velocity and largest acceleration of every channel from t = 0 until a time."""
    ways = [_range(pieces, end, order) for order in range(3)]
    lowest, highest = ways[0]
    return highest - lowest, *(np.maximum(-low, high) for low, high in ways[1:])


def _range(pieces: Polynomials, end: float, order: int) -> tuple[Array, Array]:
    """Lowest and highest values of a derivative of every channel."""
    begins = np.maximum(-pieces.breaks, 0.0)  # since the break of a piece
    lengths = np.minimum(np.append(pieces.breaks[1:], np.inf), end) - pieces.breaks - begins
    inside = lengths > 0
    begins, lengths = begins[inside, None], lengths[inside, None]
    factors = np.array([math.perm(power, order) for power in range(order, pieces.powers)])
    rows = pieces.coefficients[inside, order:] * factors[:, None]
    samples = [_values(rows, begins + part * lengths) for part in SAMPLES]
    low, high = np.minimum.reduce(samples), np.maximum.reduce(samples)
    lowest, highest = low.min(axis=0), high.max(axis=0)
    for channel in range(pieces.channels):
        near = {*np.argsort(low[:, channel])[:NEAREST], *np.argsort(high[:, channel])[-NEAREST:]}
        for piece in near:
            found = _extremes(rows[piece, :, channel], float(begins[piece, 0]), float(lengths[piece, 0]))
            lowest[channel] = min(lowest[channel], *found)
            highest[channel] = max(highest[channel], *found)
    return lowest, highest


def _values(rows: Array, s: Array) -> Array:
    """Polynomials of all pieces at a time of each."""
    total = np.zeros((len(rows), rows.shape[2]))
    for power in range(rows.shape[1] - 1, -1, -1):
        total = total * s + rows[:, power]
    return total


def _extremes(row: Array, begin: float, length: float) -> Array:
    """Values where the slope is zero; places that rounding moves are harmless, since they are on the way as well."""
    slope = polynomial.polyder(row) * (begin + length) ** np.arange(max(len(row) - 1, 1))  # of shares of the piece
    slope = polynomial.polytrim(slope, 1e-14 * np.abs(slope).max())
    places = np.real(polynomial.polyroots(slope)) * (begin + length) if len(slope) > 1 else np.zeros(0)
    places = np.append(places, begin)
    return polynomial.polyval(np.clip(places, begin, begin + length), row)
