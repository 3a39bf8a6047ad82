"""The minima of the sum of squares that are found from the file and from starts spread over the priors.

Each start counts modes as the model has them there, and is left as soon as its next step would end in a minimum that is
known, or as no few steps more would matter; where it ends on a saddle it goes on to both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.special

from parflex.errors import ParflexError
from parflex.records import Record
from parflex.updating.fitting_steps import FittingSteps
from parflex.updating.mode_fitting import CHANCE, HOPELESS, FittedModes, Fitting
from parflex.updating.pairing import ALONE, Partners
from parflex.updating.solved.second_order import downhill

Array = np.ndarray
NEAREST = 0.2  # of a number: starts do not take it nearer to zero
FARTHEST = 2.5  # deviations of the prior: 99 % of what priors say are nearer
PER_NUMBER, MOST = 4, 8  # starts beside the file
MOST_STEPS = 12  # of a start
COUNTS = 3  # rounds in which modes are counted as the model has them
TOWARDS = 0.3  # of the way to a known minimum, by which a step misses it: it goes there
BETTER = 0.5  # of the cost of the first fit: less is no chance
SHAPES = 0.1  # below 1, a MAC of a measured shape with its own mode
SADDLES = 3  # one below the other, that are left


@dataclass(frozen=True, eq=False, repr=False)
class Minimum(Record):
    """A fit, its pairs, what it costs, and whether what is left may be chance."""

    fit: FittedModes
    partners: Partners
    cost: float
    explains: bool
    precision: Array  # inverse of the covariance of the shares
    counted: bool  # modes as it has them, or followed from the file
    prior: Array  # deviations before anything was measured, wider where they are overruled

    def near(self, shares: Array, region: float) -> bool:
        """Whether shares are in the region that the intervals of this fit tell."""
        away = shares - self.fit.shares
        return float(away @ self.precision @ away) < region


class Minima:
    """The minima that are found from the file and from starts spread over the priors."""

    def __init__(self, fitting: Fitting, start: FittedModes, steps: FittingSteps) -> None:
        self.fitting, self.start, self.steps = fitting, start, steps
        self.region = float(scipy.special.chdtri(len(fitting.keys), CHANCE))
        self.scale = np.where(np.isfinite(fitting.prior), fitting.prior, 1.0)
        self.found: list[Minimum] = []
        self.begun: list[tuple[FittedModes, Partners]] = []
        self.goal = np.inf
        self.settled = True

    def _points(self, scale: Array, more: int = 0) -> Array:
        """Starts that are spread over deviations of the numbers; so many more fits are expected."""
        places = spread_points(min(PER_NUMBER * len(scale), MOST), len(scale))
        self.steps.expect(more + len(places))
        return np.maximum(1 + FARTHEST * scale * (2 * places - 1), NEAREST)

    def _goal(self) -> float:
        """What a start must come to, to matter: much less is worth its steps where nothing is explained."""
        least = min(one.cost for one in self.found)
        if self.fitting.error.any() or any(one.explains for one in self.found):
            return least + self.region
        chance = float(scipy.special.chdtri(self.fitting.used(self.start).sum(), CHANCE))
        return max(BETTER * least, min(least, chance) + self.region)

    def _others(self, best: Minimum) -> list[Minimum]:
        """Solutions beside the best one, the next one first, with what they cost more than it."""
        more = [replace(one, cost=one.cost - best.cost) for one in self.found if one is not best]
        return sorted((one for one in more if one.cost < self.region), key=lambda one: one.cost)

    def _from(self, shares: Array) -> None:
        """Keep the minimum below a start."""
        fitting = self.fitting
        fitting.starts += 1
        try:
            begun = fitting.at(shares, every=False, counted=True)
        except ParflexError:
            return
        self.begun.append((begun, fitting.partners()))
        self._settle(begun)

    def _recount(self, fit: FittedModes) -> None:
        """Modes as the first fit has them, in place of those that are followed there from the file."""
        if self.fitting.recounted(fit):
            self._settle(self.fitting.at(fit.shares, every=False), elsewhere=False)

    def _settle(self, fit: FittedModes, elsewhere: bool = True) -> None:
        """Keep the minimum below this, with modes counted as it has them; or only if it is not a known one."""
        now: FittedModes | None = fit
        try:
            for _ in range(COUNTS):
                now = self._down(now, elsewhere) if now is not None else None
                if now is None:
                    return
                if not self.fitting.recounted(now):
                    break
                now, elsewhere = self.fitting.at(now.shares, every=False), False  # other pairs may do better there
        except ParflexError:
            return
        assert now is not None
        self._keep_below(now, counted=True)

    def _down(self, now: FittedModes, elsewhere: bool) -> FittedModes | None:
        """The minimum below; None where it is too high, or known and another one is looked for."""
        cost = self._cost(now)
        for _ in range(MOST_STEPS):
            if elsewhere and self._known(now.shares, self.fitting.gauss_step(now)[0]):
                return None
            now, small = self.fitting.stepped(now)
            before, cost = cost, self._cost(now)
            if small:
                break
            if cost - self.goal > HOPELESS * (before - cost):
                return None
        return now

    def _known(self, shares: Array, step: Array) -> bool:
        """Whether a step goes to a minimum that was found before."""
        for one in self.found:
            away, left = ((x - one.fit.shares) / self.scale for x in (shares, shares + step))
            if np.linalg.norm(left) < TOWARDS * np.linalg.norm(away) or one.near(shares + step, self.region):
                return True
        return False

    def _keep_below(self, fit: FittedModes, counted: bool = False, saddles: int = SADDLES) -> None:
        """Keep a minimum, or those to both sides of a saddle."""
        step, cost, left = downhill(self.fitting, fit) if saddles else None, self._cost(fit), False
        for off in (step, -step) if step is not None else ():
            try:
                now = self._down(self.fitting.at(fit.shares + off, every=False), elsewhere=False)
            except ParflexError:
                continue
            if now is not None and self._cost(now) < cost:
                left = True
                self._keep_below(now, counted, saddles - 1)
        if not left:
            self._keep(fit, counted)

    def _keep(self, fit: FittedModes, counted: bool = False) -> None:
        fitting = self.fitting
        S = fitting.information(fit)
        precision = S.T @ S + np.diag(1 / fitting.prior**2)
        one = Minimum(fit, fitting.partners(), self._cost(fit), fitting.explains(fit), precision, counted,
                      fitting.prior)  # fmt: skip
        for k, other in enumerate(self.found):
            if other.near(fit.shares, self.region):
                self.found[k] = min(one, other, key=lambda each: each.cost)
                return
        self.found.append(one)

    def _taken_up(self, one: Minimum) -> None:
        """Pairs, priors and error of the model of a minimum."""
        self.fitting.restore(one.partners)
        self.fitting.prior = one.prior

    def _cost(self, fit: FittedModes) -> float:
        """Sum of squares of residuals, priors and shapes over their deviations, and of modes without a partner.

        Deviations that are wider than those that were given cost twice the logarithm of that.
        """
        fitting = self.fitting
        found = 2 * fitting.cost(fit, fitting.weights(fit))
        used = fitting.used(fit)
        given = np.hypot(fitting.given, fitting.few(fit))[used]
        found += 2 * float(np.log(fitting.spread(fit)[used] / given).sum())
        over = fitting.prior > fitting.given_prior
        found += 2 * float(np.log(fitting.prior[over] / fitting.given_prior[over]).sum())
        for k, one in enumerate(fitting.rows):
            if fitting.apart[k]:
                continue
            if fit.modes[k] < 0:
                found += ALONE
            elif len(one.shape) > 1:
                found += ((1 - fit.models[one.pose].mac(one.shape, fit.modes[k])) / SHAPES) ** 2
        return found


def spread_points(count: int, size: int) -> Array:
    """Points that fill a cube of side one evenly: multiples of powers of the root of x^(size + 1) = x + 1 (Roberts)."""
    root = 2.0
    for _ in range(50):
        root = (1 + root) ** (1 / (size + 1))
    return np.asarray((0.5 + np.outer(np.arange(1, count + 1), root ** -np.arange(1.0, size + 1))) % 1.0)
