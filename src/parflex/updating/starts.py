"""Fits from several starts, ranked by one cost.

Starts are the file and points spread over the priors. Frequencies may have several solutions: two springs may change
places, and a symmetric file is a saddle between both. All starts are fitted without a model error first, and each
numbers modes as its model does. Only if the best of these fits leaves more than chance, all are fitted again with a
model error and the mode numbers of the file: with a model error, another order of modes may leave less by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy.special

from parflex.errors import ParflexError
from parflex.records import Record
from parflex.updating.fit import CHANCE, EQUAL, NO_PRIOR, FitProblem, FittedModes
from parflex.updating.pairing import ALONE, PairingState

Array = np.ndarray

NEAREST = 0.2  # of a number: starts do not take it nearer to zero

FARTHEST = 2.5  # deviations of the prior: 99 % of what priors allow is nearer

PER_NUMBER, MOST = 4, 8  # starts besides the file: eight fits cost seconds, and no few starts reach all corners

SHAPES = 0.1  # deviation of a MAC of a measured shape with its own mode

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Record):
    """A fit with its pairs and model error, its cost, and the inverse of the covariance of its shares.

    `determined`: the measurements determine every combination of the numbers.
    """

    fit: FittedModes
    partners: PairingState
    settled: bool  # pairs of modes without a number
    cost: float
    precision: Array
    determined: bool

    def near(self, shares: Array) -> bool:
        """Whether shares are within the 95 % region of this solution."""
        away = shares - self.fit.shares
        return float(away @ self.precision @ away) < region(len(shares))


def solutions(fitting: FitProblem, start: FittedModes, steps: FitProgress) -> tuple[list[Solution], FittedModes]:
    """Return the best solution, then others within its 95 % region, and the best fit without a model error.

    Pairs and model error of the fitting are those of the best solution.
    """
    first = fitting.partners()
    scale = np.where(fitting.prior < NO_PRIOR, fitting.prior, 1.0)
    places = spread_points(min(PER_NUMBER * len(scale), MOST), len(scale))
    points = np.maximum(1 + FARTHEST * scale * (2 * places - 1), NEAREST)
    fitting.starts = 1 + len(points)
    steps.expect(fitting.starts)
    result: list[Solution] = []

    def search(fit: FittedModes) -> FittedModes:
        return fitting.plain(fit, lambda now, step: _known(fitting, result, now, step))

    result.append(_solution(fitting, start, search))
    steps.step()
    for shares in points:
        with suppress(ParflexError):  # a robot with these numbers does not vibrate, or cannot be assembled
            result.append(_solution(fitting, fitting.at(shares, every=False, counted=True), search))
        steps.step()
    result = _distinct(result)
    plain = result[0].fit
    fitting.restore(result[0].partners)
    if not fitting.explains(plain):
        steps.expect(1 + len(result))
        begun, result = [start.shares, *(solution.fit.shares for solution in result)], []
        for shares in begun:
            fitting.restore(first)
            result.append(_solution(fitting, fitting.at(shares, every=False), fitting.weighed))
            steps.step()
        result = _distinct(result)
        fitting.restore(result[0].partners)
    return result, plain


def _known(fitting: FitProblem, known: Sequence[Solution], fit: FittedModes, step: Array) -> FittedModes | None:
    """Return the known fit with the same pairs to which a step leads: both would be merged. A saddle is none."""
    used = ~fitting.apart
    for solution in known:
        same = (np.array(solution.fit.modes) == fit.modes)[used].all()
        if same and solution.determined and solution.near(fit.shares + step):
            return solution.fit
    return None


def _distinct(candidates: Sequence[Solution]) -> list[Solution]:
    """Return the solution of the least cost, then those of a cost within its 95 % region that are apart."""
    candidates = sorted(candidates, key=lambda solution: solution.cost)
    distinct: list[Solution] = []
    for solution in candidates:
        likely = solution.cost < candidates[0].cost + region(len(solution.precision))
        if likely and not any(each.near(solution.fit.shares) for each in distinct):
            distinct.append(solution)
    return distinct


def region(count: int) -> float:
    """Return the increase of the cost at the border of the 95 % region of so many numbers."""
    return float(scipy.special.chdtri(count, CHANCE))


def _solution(fitting: FitProblem, start: FittedModes, search: Callable[[FittedModes], FittedModes]) -> Solution:
    fit, settled = fitting.paired(start, search)
    S = fitting.information(fit)
    precision = S.T @ S + np.diag(1 / fitting.prior**2)
    determined = bool(np.linalg.eigvalsh((S * fitting.prior).T @ (S * fitting.prior))[0] > EQUAL)
    return Solution(fit, fitting.partners(), settled, cost(fitting, fit), precision, determined)


def cost(fitting: FitProblem, fit: FittedModes) -> float:
    """Sum of squares of residuals, priors and shapes over their deviations, and of modes without a partner.

    Deviations that the model error widens cost twice the logarithm of that, as in -2 log of the likelihood.
    """
    total = 2 * fitting.cost(fit, fitting.weights(fit))
    used = fitting.used(fit)
    measured = np.hypot(fitting.given, fitting.few(fit))[used]
    total += 2 * float(np.log(fitting.spread(fit)[used] / measured).sum())
    for k, row in enumerate(fitting.rows):
        if fitting.apart[k]:
            continue
        if fit.modes[k] < 0:
            total += ALONE
        elif len(row.shape) > 1:
            total += ((1 - fit.models[row.pose].mac(row.shape, fit.modes[k])) / SHAPES) ** 2
    return total


def spread_points(count: int, size: int) -> Array:
    """Return points that fill a unit cube evenly: multiples of powers of the root of x^(size+1) = x + 1 (Roberts)."""
    root = 2.0
    for _ in range(50):
        root = (1 + root) ** (1 / (size + 1))
    return np.asarray((0.5 + np.outer(np.arange(1, count + 1), root ** -np.arange(1.0, size + 1))) % 1.0)


class FitProgress:
    """Counts steps, and tells how many are done of those that are known; an error of the model makes them more."""

    def __init__(self, progress: Progress | None = None, known: int = 0) -> None:
        self.progress, self.done, self.known = progress, 0, 0
        self.expect(known)

    def expect(self, count: int) -> None:
        """So many more are to come."""
        self.known += count
        self._tell()

    def step(self) -> None:
        """One is done."""
        self.done += 1
        self.known = max(self.known, self.done)
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None and self.known:
            self.progress(self.done, self.known)
