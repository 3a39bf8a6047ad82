"""Where modes are likely to be: a polynomial of pose and design, fitted to the modes of some poses of a chunk.

Half of what the last modes of a lane were off their guesses is expected of the next ones too. A poor guess costs steps
and nothing else: what is found is proved without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from parflex.records import Record
from parflex.simulation.integrators.jit import compiled

Array = np.ndarray
APART = 8  # one of so many poses is solved first
FEWEST = 768  # poses from which a guess pays
SAMPLES = 5  # times the terms of a polynomial: poses that it is fitted to, at least
NEAR = 0.02  # of what coordinates span: where the next pose is nearer than this, the last one is guess enough
RIDGE = 1e-9
HIGHEST = 8  # degree of a polynomial in coordinates; products with numbers of designs are of two
SHARE = 0.5  # of what the last modes of a lane were off their guesses is expected again
BLOCK = 696  # poses whose terms are there at a time; rows that are a page long would push each other out of the cache
SEEN = 512  # poses that are looked through for that


def fit_pays(features: Array | None, order: Array) -> bool:
    """Whether poses are many, and neighbours in their order far enough from each other."""
    if features is None or len(order) < FEWEST or not features.shape[1]:
        return False
    span = np.maximum(np.ptp(features[:: max(1, len(features) // SEEN)], axis=0), 1e-300)
    some = order[:SEEN]
    return bool(np.median(np.abs(np.diff(features[some], axis=0) / span).max(axis=1)) > NEAR)


@compiled
def fill_terms(start: int, features: Array, by: Array, times: Array, terms: Array) -> int:
    """A constant, features, and products of rows above with features: one row each, of some poses."""
    width, count = features.shape[0], min(terms.shape[1], features.shape[1] - start)
    for k in range(count):
        terms[0, k] = 1.0
    for n in range(width):
        for k in range(count):
            terms[1 + n, k] = features[n, start + k]
    for n in range(len(by)):
        one, other = by[n], times[n]
        for k in range(count):
            terms[1 + width + n, k] = terms[one, k] * terms[other, k]
    return count


@dataclass(frozen=True, eq=False, repr=False)
class ModeGuess(Record):
    """A polynomial of pose and design for the logarithm of each mode."""

    used: Array  # features that differ
    middle: Array
    half: Array  # of what they span
    by: Array  # rows of terms, of which the others are products with
    times: Array  # rows of features
    factors: Array  # (modes x terms)

    def __call__(self, features: Array) -> Array:
        """Guesses (poses x modes)."""
        count, scaled = len(features), self.scaled(features)
        terms, found = (
            np.zeros((self.factors.shape[1], min(BLOCK, count))),
            np.empty((count, len(self.factors))),
        )
        for start in range(0, count, BLOCK):
            some = fill_terms(start, scaled, self.by, self.times, terms)
            found[start : start + some] = (self.factors @ terms).T[:some]
        # single precision: how products of matrices are rounded must not show in what follows
        return np.exp(found.astype(np.float32)).astype(float)

    def scaled(self, features: Array) -> Array:
        """Features (features x poses) between -1 and 1."""
        moved = np.ascontiguousarray(features.T[self.used])
        moved -= self.middle[:, None]
        moved *= (1.0 / self.half)[:, None]
        return np.clip(moved, -1.0, 1.0, out=moved)


def fitted(features: Array, x: Array, placed: int) -> ModeGuess | None:
    """The polynomial for the modes `x` of poses; None where these are too few.

    The first `placed` features are coordinates: modes change far less linearly with them than along numbers of designs.
    """
    samples, low, high = len(x), features.min(axis=0, initial=np.inf), features.max(axis=0, initial=-np.inf)
    used = np.flatnonzero(high > low)
    width, most = len(used), samples / SAMPLES
    if 1 + width > most:
        return None
    poses = int((used < placed).sum())
    products: list[tuple[int, int]] = []
    for degree in range(2, HIGHEST + 1):
        more = _products(poses, width, degree)
        if 1 + width + len(more) > most:
            break
        products = more
    by, times = np.array(products, dtype=np.int64).reshape(-1, 2).T.copy()
    guess = ModeGuess(used, 0.5 * (low + high)[used], 0.5 * (high - low)[used], by, times, np.empty((0, 0)))
    terms = np.empty((1 + width + len(by), samples))
    fill_terms(0, guess.scaled(features), by, times, terms)
    square = terms @ terms.T
    square[np.diag_indices_from(square)] += RIDGE * samples
    return replace(guess, factors=np.linalg.solve(square, terms @ np.log(x)).T.copy())


@lru_cache(maxsize=64)
def _products(poses: int, width: int, degree: int) -> list[tuple[int, int]]:
    """Products of all features by two, and of the first ones, coordinates, up to a degree: rows of their factors."""
    found: list[tuple[int, int]] = []
    last = [(1 + k, k) for k in range(width)]  # rows, and the last feature of each
    for n in range(2, degree + 1):
        following = []
        stop = width if n == 2 else poses
        for row, k in last:
            for other in range(k, stop):
                following.append((1 + width + len(found), other))
                found.append((row, 1 + other))
        last = [own for own in following if own[1] < poses] if n == 2 else following
    return found
