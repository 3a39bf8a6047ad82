"""Where modes are likely to be: a polynomial of pose and design, fitted to the modes of some poses of a chunk.

Half of what the last modes of a lane were off their guesses is expected of the next ones too. A poor guess costs steps
and nothing else: what is found is proved without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from parflex.codegen.llvm_jit import aligned_zeros
from parflex.codegen.loop_compiler import simd_range
from parflex.codegen.loop_functions import compiled, inner
from parflex.maps.lanes.lane_states import LANES
from parflex.records import Record

Array = np.ndarray
APART = 8  # one of so many poses is solved first
FEWEST = 768  # poses from which a guess pays
SAMPLES = 5  # times the terms of a polynomial: poses that it is fitted to, at least
NEAR = 0.02  # of what coordinates span: where the next pose is nearer than this, the last one is guess enough
RIDGE = 1e-9
HIGHEST = 8  # degree of a polynomial in coordinates; products with numbers of designs are of two
SHARE = 0.5  # of what the last modes of a lane were off their guesses is expected again
BLOCK = 64  # poses whose terms are there at a time, in the nearest cache
FULL = max(LANES, 4)  # of which rows are a multiple
SEEN = 512  # poses that are looked through for that


def fit_pays(features: Array | None, order: Array) -> bool:
    """Whether poses are many, and neighbours in their order far enough from each other."""
    if features is None or len(order) < FEWEST or not features.shape[1]:
        return False
    span = np.maximum(np.ptp(features[:: max(1, len(features) // SEEN)], axis=0), 1e-300)
    some = order[:SEEN]
    return bool(np.median(np.abs(np.diff(features[some], axis=0) / span).max(axis=1)) > NEAR)


@inner
def fill_terms(start: int, features: Array, by: Array, times: Array, terms: Array) -> int:
    """A constant, features, and products of rows above with features: one row each, of some poses."""
    width, count = features.shape[0], min(terms.shape[1], features.shape[1] - start)
    for k in simd_range(count):
        terms[0, k] = 1.0
    for n in range(width):
        for k in simd_range(count):
            terms[1 + n, k] = features[n, start + k]
    for n in range(len(by)):
        one, other = by[n], times[n]
        for k in simd_range(count):
            terms[1 + width + n, k] = terms[one, k] * terms[other, k]
    return count


@compiled
def put_guesses(
    features: Array, by: Array, times: Array, factors: Array, terms: Array, sums: Array, found: Array
) -> None:
    """Polynomials (modes x terms) of poses into `found`; four terms at a time, so that sums are seldom stored.

    Terms and factors are filled up by zeros.
    """
    modes, size = factors.shape[0], factors.shape[1]
    for start in range(0, len(found), terms.shape[1]):
        count = fill_terms(start, features, by, times, terms)
        for m in range(modes):
            for k in simd_range(count):
                sums[m, k] = 0.0
        for t in range(0, size, 4):
            for m in range(modes):
                a, b, c, d = factors[m, t], factors[m, t + 1], factors[m, t + 2], factors[m, t + 3]
                for k in simd_range(count):
                    more = a * terms[t, k] + b * terms[t + 1, k] + c * terms[t + 2, k] + d * terms[t + 3, k]
                    sums[m, k] += more
        for k in range(count):
            for m in range(modes):
                found[start + k, m] = sums[m, k]


@compiled
def solve_squares(
    features: Array, by: Array, times: Array, values: Array, terms: Array, rows: Array, square: Array, right: Array
) -> None:
    """Factors (modes x terms) of least squares into `right`, by elimination: the matrix is positive definite.

    `square` holds what is added to its diagonal; `terms` (terms x poses) and `rows` (the same by poses, of which there
    are a multiple of four) are for work. Rows are filled up by zeros to full lanes, and loops along them begin at
    those: what is left of the diagonal is not used.
    """
    size, wide, modes = square.shape[0], square.shape[1], right.shape[0]
    count = fill_terms(0, features, by, times, terms)
    for s in range(count):
        for i in range(size):
            rows[s, i] = terms[i, s]
        for m in range(modes):
            for i in simd_range(wide):
                right[m, i] += values[s, m] * rows[s, i]
    for i in range(size):
        first = i - i % FULL
        for s in range(0, count, 4):
            a, b, c, d = rows[s, i], rows[s + 1, i], rows[s + 2, i], rows[s + 3, i]
            for n in simd_range(wide - first):
                j = first + n
                square[i, j] += a * rows[s, j] + b * rows[s + 1, j] + c * rows[s + 2, j] + d * rows[s + 3, j]
    for k in range(size):
        for i in range(k + 1, size):
            share, first = square[k, i] / square[k, k], i - i % FULL
            for n in simd_range(wide - first):
                square[i, first + n] -= share * square[k, first + n]
            for m in range(modes):
                right[m, i] -= share * right[m, k]
    for k in range(size - 1, -1, -1):
        for m in range(modes):
            for i in range(k + 1, size):
                right[m, k] -= square[k, i] * right[m, i]
            right[m, k] /= square[k, k]


@dataclass(frozen=True, eq=False, repr=False)
class ModeGuess(Record):
    """A polynomial of pose and design for the logarithm of each mode.

    No library of matrices computes it: these wake threads of their own, and wait longer for them than this takes.
    """

    used: Array  # features that differ
    middle: Array
    half: Array  # of what they span
    by: Array  # rows of terms, of which the others are products with
    times: Array  # rows of features
    factors: Array  # (modes x terms), filled up by zeros to full lanes

    def __call__(self, features: Array) -> Array:
        """Guesses (poses x modes)."""
        found, modes = np.empty((len(features), len(self.factors))), len(self.factors)
        terms, sums = aligned_zeros((self.factors.shape[1], BLOCK)), aligned_zeros((modes, BLOCK))
        put_guesses(self.scaled(features), self.by, self.times, self.factors, terms, sums, found)
        # single precision: rounding must not show in what follows
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
    size, modes = 1 + width + len(by), x.shape[1]
    wide, even = (-(-own // FULL) * FULL for own in (size, samples))
    square, right = aligned_zeros((size, wide)), aligned_zeros((modes, wide))
    square[np.arange(size), np.arange(size)] = RIDGE * samples
    work = np.empty((size, samples)), aligned_zeros((even, wide))
    solve_squares(guess.scaled(features), by, times, np.log(x), *work, square, right)
    return replace(guess, factors=right) if np.isfinite(right).all() else None


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
