"""Where modes are likely to be: a polynomial of pose and design, fitted to the modes of some poses of a chunk.

Only how much the polynomial changes from the last pose of a lane to the next one is used. A poor guess costs steps and
nothing else: what is found is proved without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parflex.records import Record

Array = np.ndarray
APART = 8  # one of so many poses is solved first
FEWEST = 768  # poses from which a guess pays
SAMPLES = 2.5  # times the terms of a polynomial: poses that it is fitted to, at least
NEAR = 0.02  # of what coordinates span: where the next pose is nearer than this, the last one is guess enough
RIDGE = 1e-9
SEEN = 512  # poses that are looked through for that


def fit_pays(features: Array | None, order: Array) -> bool:
    """Whether poses are many, and neighbours in their order far enough from each other."""
    if features is None or len(order) < FEWEST or not features.shape[1]:
        return False
    span = np.maximum(np.ptp(features[:: max(1, len(features) // SEEN)], axis=0), 1e-300)
    some = order[:SEEN]
    return bool(np.median(np.abs(np.diff(features[some], axis=0) / span).max(axis=1)) > NEAR)


@dataclass(frozen=True, eq=False, repr=False)
class ModeGuess(Record):
    """A polynomial of pose and design for the logarithm of each mode."""

    used: Array  # features that differ
    middle: Array
    half: Array  # of what they span
    found: Array  # coefficients (terms x modes)

    def __call__(self, features: Array) -> Array:
        """Guesses (poses x modes)."""
        terms = _terms(self._scaled(features), self.found.shape[0])
        # single precision: how products of matrices are rounded must not show in what follows
        return np.exp((self.found.T @ terms).T.astype(np.float32, order="C")).astype(float)

    def _scaled(self, features: Array) -> Array:
        """Features (features x poses) between -1 and 1."""
        moved = np.ascontiguousarray(features.T[self.used])
        moved -= self.middle[:, None]
        moved *= (1.0 / self.half)[:, None]
        return moved


def fitted(features: Array, x: Array) -> ModeGuess | None:
    """The polynomial for the modes `x` of poses; None where these are too few."""
    samples, low, high = len(x), features.min(axis=0, initial=np.inf), features.max(axis=0, initial=-np.inf)
    used = np.flatnonzero(high > low)
    width = len(used)
    whole = 1 + width + width * (width + 1) // 2
    if samples < SAMPLES * (1 + width):
        return None
    guess = ModeGuess(used, 0.5 * (low + high)[used], 0.5 * (high - low)[used], np.empty((0, 0)))
    terms = _terms(guess._scaled(features), whole if samples >= SAMPLES * whole else 1 + width)
    square = terms @ terms.T
    square[np.diag_indices_from(square)] += RIDGE * samples
    return replace(guess, found=np.linalg.solve(square, terms @ np.log(x)))


def _terms(moved: Array, size: int) -> Array:
    """A constant, coordinates and, where so many are asked for, their products: one row each, of all poses."""
    width, count = moved.shape
    terms = np.empty((size, count))
    terms[0] = 1.0
    terms[1 : 1 + width] = moved
    start = 1 + width
    for k in range(width if size > start else 0):
        np.multiply(moved[k:], moved[k], out=terms[start : start + width - k])
        start += width - k
    return terms
