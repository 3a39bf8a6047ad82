"""What sensitivities do not see of a fit: saddles between two minima, and valleys of the sum that are curved.

Where two springs stand alike a frequency does not feel their difference at first, and does so by its square. A search
that follows sensitivities stays between both minima, and an interval that follows them forgets what other numbers make
up for that square. So directions of which measurements tell less than the priors are checked beyond first order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from parflex.errors import ParflexError
from parflex.records import Record
from parflex.updating.mode_fitting import FittedModes, Fitting

Array = np.ndarray
OPEN = 0.3  # of a number, its deviation where it has no prior
NEAR = 0.05  # of a deviation, by which a number moves to see how the sum curves
FLAT = 1e-2  # of the curvature that sensitivities tell: less is rounding, and what a fit that ended early is off
STEPS = 3  # of Gauss's method across a direction, down to its valley
MOST = 4  # directions that are checked, those first of which measurements tell least


@dataclass(frozen=True, eq=False, repr=False)
class WeakDirections(Record):
    """Directions of which measurements tell less than priors: columns are shares, as long as a deviation along each.

    `across` are all shares over their scale that do not move along them.
    """

    columns: Array
    scale: Array
    across: Array


def weak_directions(fitting: Fitting, fit: FittedModes) -> WeakDirections:
    """Those of a fit."""
    scale = np.where(np.isfinite(fitting.prior), fitting.prior, OPEN)
    S = fitting.information(fit) * scale
    values, vectors = np.linalg.eigh(S.T @ S)
    count = min(int((values < 1).sum()), MOST)
    columns = scale[:, None] * vectors[:, :count] / np.sqrt(1 + np.maximum(values[:count], 0.0))
    return WeakDirections(columns, scale, vectors[:, count:])


def half_gradient(fitting: Fitting, fit: FittedModes) -> Array:
    """Of half the sum of squares of residuals and priors, along the shares."""
    weights = fitting.weights(fit)
    used = weights > 0
    left = ((fitting.y - fit.values) * weights)[used]
    return np.asarray((fit.shares - 1) / fitting.prior**2 - left @ (fit.slopes * weights[:, None])[used])


def downhill(fitting: Fitting, fit: FittedModes) -> Array | None:
    """A step of half a deviation along which the sum falls to both sides of a fit that is a saddle; None where not."""
    columns = weak_directions(fitting, fit).columns
    if not columns.size:
        return None
    here = half_gradient(fitting, fit)
    try:
        there = [fitting.at(fit.shares + NEAR * one, every=False) for one in columns.T]
    except ParflexError:
        return None
    curved = np.array([columns.T @ (half_gradient(fitting, one) - here) / NEAR for one in there])
    values, vectors = np.linalg.eigh((curved + curved.T) / 2)
    return np.asarray(0.5 * columns @ vectors[:, 0]) if values[0] < -FLAT else None


class CurvedValleys:
    """How far numbers move at the bottom of the sum's valleys where one goes along directions that are not told."""

    def __init__(self, fitting: Fitting, fit: FittedModes) -> None:
        self.fitting, self.fit, self.weights = fitting, fit, fitting.weights(fit)
        self.weak = weak_directions(fitting, fit)

    def covariance(self) -> Array:
        """What that adds to the covariance of the shares: moments of squares of normal deviations."""
        columns = self.weak.columns
        count, size = columns.shape[1], len(self.fit.shares)
        bent = np.zeros((count, count, size))
        if not count or not self.weak.across.size:
            return np.zeros((size, size))
        for i in range(count):
            bent[i, i] = self._bent(columns[:, i])
        for i in range(count):
            for j in range(i):
                both = self._bent((columns[:, i] + columns[:, j]) / np.sqrt(2))
                bent[i, j] = bent[j, i] = both - (bent[i, i] + bent[j, j]) / 2
        middle = np.einsum("iik->k", bent)
        return np.asarray(np.outer(middle, middle) + 2 * np.einsum("ijk,ijl->kl", bent, bent))

    def _bent(self, along: Array) -> Array:
        """By how much shares leave the straight line at a deviation to both sides, in the mean; none where unknown."""
        found, risen = np.zeros(len(along)), 0.0
        here = self.fitting.cost(self.fit, self.weights)
        for side in (1, -1):
            try:
                bottom = self._bottom(self.fit.shares + side * along)
            except ParflexError:
                return np.zeros(len(along))
            found += (bottom.shares - self.fit.shares - side * along) / 2
            risen += self.fitting.cost(bottom, self.weights) - here  # halves of the sum, of two sides
        # it rises by one at a deviation where it is a square, and sooner where it has a fourth power:
        # x^2 + (risen - 1) x^4 = 1
        return np.asarray(found * (2 / (1 + np.sqrt(1 + 4 * max(risen - 1, 0.0)))))

    def _bottom(self, shares: Array) -> FittedModes:
        """The least sum across the weak directions."""
        fitting, weights = self.fitting, self.weights
        free = self.weak.scale[:, None] * self.weak.across
        now = fitting.at(np.maximum(shares, NEAR), every=False)
        for _ in range(STEPS):
            S = (now.slopes * weights[:, None])[weights > 0] @ free
            left = ((fitting.y - now.values) * weights)[weights > 0]
            pull = free.T @ ((now.shares - 1) / fitting.prior**2)
            A = S.T @ S + free.T @ (free / fitting.prior[:, None] ** 2)
            step = free @ scipy.linalg.lstsq(A, S.T @ left - pull)[0]
            trial = fitting.at(now.shares + step, every=False)
            if not fitting.cost(trial, weights) < fitting.cost(now, weights):
                break
            now = trial
        return now
