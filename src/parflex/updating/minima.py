"""All sets of numbers that fit what was measured alike: the nearest one to the file need not be that of the robot.

Two springs may change places and leave frequencies as they are. So fits start from the file and from points that are
spread over the priors, first with the deviations that were given: only what no start explains is an error of the
model. Each start counts modes as the model has them there, and is left as soon as its next step would end in a
minimum that is known. The best has the least sum of squares of residuals, priors and shapes; others within the region
of 95 % of that sum are other solutions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.special

from parflex.errors import ParflexError
from parflex.records import Record
from parflex.updating.fitting_steps import FittingSteps
from parflex.updating.mode_fitting import CHANCE, HOPELESS, FittedModes, Fitting
from parflex.updating.pairing import ALONE, Partners, followed_pairs

Array = np.ndarray
NEAREST = 0.2  # of a number: starts do not take it nearer to zero
FARTHEST = 2.5  # deviations of the prior: 99 % of what priors say are nearer
PER_NUMBER, MOST = 4, 8  # starts beside the file
MOST_STEPS = 12  # of a start
COUNTS = 3  # rounds in which modes are counted as the model has them
TOWARDS = 0.3  # of the way to a known minimum, by which a step misses it: it goes there
BETTER = 0.5  # of the cost of the first fit: less is no chance
SHAPES = 0.1  # below 1, a MAC of a measured shape with its own mode
STRAINED = 3.0  # deviations of its prior by which a number may move
DECISIVE = 2 * np.log(20.0)  # of -2 log of likelihoods: odds of 20 to 1
WIDE = 1.0  # of a number, a deviation that does not keep it from what was measured

MOST_NAMED = 3  # other solutions


@dataclass(frozen=True, eq=False, repr=False)
class Minimum(Record):
    """A fit, its pairs, what it costs, and whether what is left may be chance."""

    fit: FittedModes
    partners: Partners
    cost: float
    explains: bool
    precision: Array  # inverse of the covariance of the shares
    counted: bool  # modes as it has them, or followed from the file

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

    # -- without an error of the model -------------------------------------------------------------------------------

    def explained(self) -> tuple[FittedModes, list[Minimum]] | None:
        """The best fit whose residuals may be chance, and other solutions; None where there is none."""
        fitting = self.fitting
        points = spread_points(min(PER_NUMBER * len(fitting.keys), MOST), len(fitting.keys))
        self.steps.expect(1 + len(points))
        first, _ = fitting.paired(self.start, fitting.plain)
        kept = fitting.partners()
        self._keep(first)
        self.goal = self._goal()
        self._recount(first)
        self.steps.step()
        for place in points:
            fitting.starts += 1
            self._from(np.maximum(1 + FARTHEST * self.scale * (2 * place - 1), NEAREST))
            self.goal = self._goal()
            self.steps.step()
        fitting.restore(kept)
        fine = [one for one in self.found if one.explains]
        best = min(fine or self.found, key=lambda one: one.cost)
        others = self._others(best)
        best = self._overruled(best) or best
        return (self._taken(best), others) if best.explains else None

    def order_changed(self, fit: FittedModes) -> bool:
        """Whether modes with numbers are others than those of the file, followed by their shapes."""
        fitting = self.fitting
        for pose, own in fitting.of_pose.items():
            numbered = [k for k in own if fitting.rows[k].mode is not None]
            modes = [int(fitting.rows[k].mode or 0) - 1 for k in numbered]
            now = fit.models[pose]
            followed = followed_pairs(modes, fitting.start[pose], now)[0] if numbered else []
            if any(fit.modes[k] not in now.equal(mode) for k, mode in zip(numbered, followed, strict=True)):
                return True
        return False

    # -- with one ----------------------------------------------------------------------------------------------------

    def beside(self, fit: FittedModes) -> tuple[FittedModes, list[Minimum]]:
        """Other solutions beside a fit with an error of the model; one that is far better is the answer."""
        fitting, error = self.fitting, self.fitting.error
        own, kept, self.found = fit, fitting.partners(), []
        self._keep(fit)
        (answer,) = self.found
        self.goal = answer.cost + self.region
        self.steps.expect(len(self.begun))
        for begun, partners in self.begun:
            fitting.restore(partners)
            fitting.error = error
            self._settle(begun)
            self.steps.step()
        fitting.restore(kept)
        best = min(self.found, key=lambda one: one.cost)
        if best.cost < answer.cost - self.region:
            fitting.restore(best.partners)
            fit, _ = fitting.paired(fitting.at(best.fit.shares))
            if fitting.error[0] <= error[0]:
                return fit, []
            fitting.restore(kept)
        return own, self._others(answer)

    # -- search ------------------------------------------------------------------------------------------------------

    def _goal(self) -> float:
        """What a start must come to, to matter."""
        fine = [one.cost for one in self.found if one.explains]
        return min(fine) + self.region if fine else BETTER * self.found[0].cost

    def _others(self, best: Minimum) -> list[Minimum]:
        """Solutions beside the best one, the next one first, with what they cost more than it."""
        more = [replace(one, cost=one.cost - best.cost) for one in self.found if one is not best]
        return sorted((one for one in more if one.cost < self.region), key=lambda one: one.cost)

    def _from(self, shares: Array) -> None:
        fitting = self.fitting
        fitting.error = np.zeros(2)
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
        self._keep(now, counted=True)

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

    def _keep(self, fit: FittedModes, counted: bool = False) -> None:
        fitting = self.fitting
        S = fitting.information(fit)
        precision = S.T @ S + np.diag(1 / fitting.prior**2)
        one = Minimum(fit, fitting.partners(), self._cost(fit), fitting.explains(fit), precision, counted)
        for k, other in enumerate(self.found):
            if other.near(fit.shares, self.region):
                self.found[k] = min(one, other, key=lambda each: each.cost)
                return
        self.found.append(one)

    def _cost(self, fit: FittedModes) -> float:
        """Sum of squares of residuals, priors and shapes over their deviations, and of modes without a partner."""
        fitting = self.fitting
        found = 2 * fitting.cost(fit, fitting.weights(fit))
        for k, one in enumerate(fitting.rows):
            if fitting.apart[k]:
                continue
            if fit.modes[k] < 0:
                found += ALONE
            elif len(one.shape) > 1:
                found += ((1 - fit.models[one.pose].mac(one.shape, fit.modes[k])) / SHAPES) ** 2
        return found

    def _taken(self, best: Minimum) -> FittedModes:
        """A minimum as the answer, with what was held out, too."""
        fitting = self.fitting
        fitting.restore(best.partners)
        fit = fitting.at(best.fit.shares)
        if best.counted and fitting.recounted(fit):  # what is held out, too
            fit = fitting.at(best.fit.shares)
        fit, self.settled = fitting.paired(fit, fitting.plain)
        return fit

    def _overruled(self, best: Minimum) -> Minimum | None:
        """A fit that explains what was measured, and that priors are against: those of numbers far away count no more.

        There must be more measurements than numbers: else any are explained.
        """
        fitting, given = self.fitting, self.fitting.given_prior
        if best.explains and not self._far(best.fit).any():
            return None
        kept = fitting.partners()
        try:
            fitting.restore(best.partners)
            fitting.prior = np.maximum(given, WIDE)
            fit = fitting.plain(best.fit)
            far = self._far(fit)
            if fitting.explains(fit) and far.any() and fitting.freedoms(fit, 0) + fitting.freedoms(fit, 1) > 0.5:
                fitting.prior = np.where(far, fitting.prior, given)
                fit = fitting.plain(fit)
                if fitting.explains(fit):
                    return replace(best, fit=fit, explains=True)
        except ParflexError:
            pass
        fitting.prior = given
        fitting.restore(kept)
        return None

    def _far(self, fit: FittedModes) -> Array:
        """Numbers that moved by more than their priors have them."""
        return np.asarray(np.abs(fit.shares - 1) > STRAINED * self.fitting.given_prior)


def alternatives(fitting: Fitting, others: Sequence[Minimum], best: FittedModes) -> list[dict[str, Any]]:
    """Numbers of other solutions with their deviations, how much more their sum of squares is, and what is held out."""
    found = []
    for one in others:
        deviations = np.sqrt(np.abs(np.diag(np.linalg.pinv(one.precision))))
        numbers = {
            key: {"value": float(first * share), "deviation": float(abs(first) * deviation)}
            for key, first, share, deviation in zip(
                fitting.keys, fitting.first, one.fit.shares, deviations, strict=True
            )
        }
        found.append({"parameters": numbers, "more": one.cost})
        if fitting.apart.any() and (worse := _predicted_worse(fitting, one, best)) is not None:
            found[-1]["held_out"] = worse
    return found


def _predicted_worse(fitting: Fitting, one: Minimum, best: FittedModes) -> float | None:
    """By how much more than by the best solution another one misses what was held out: -2 log of the likelihoods."""
    kept = fitting.partners()
    try:
        fitting.restore(one.partners)
        fit = fitting.at(one.fit.shares)
        if one.counted and fitting.recounted(fit):
            fit = fitting.at(one.fit.shares)
        fit, _ = fitting.paired(fit, lambda same: same)  # modes without a number by this model
    except ParflexError:
        return None
    finally:
        fitting.restore(kept)
    row = fitting.row_of
    known = [fitting.apart[row] & np.isfinite(each.values) & np.isfinite(each.excess[row]) for each in (fit, best)]
    both = known[0] & known[1]
    alone = ALONE * (int((known[1] & ~both).sum()) - int((known[0] & ~both).sum()))
    missed = [_missed(fitting, each, both) for each in (fit, best)]
    return float(missed[0] - missed[1] + alone) if any(each.any() for each in known) else None


def _missed(fitting: Fitting, fit: FittedModes, which: Array) -> float:
    """Squares of what a fit predicts wrongly over their covariance, with the logarithm of its determinant."""
    S, left = fit.slopes[which], (fitting.y - fit.values)[which]
    C = np.diag(fitting.spread(fit)[which] ** 2) + S @ fitting.covariance(fit) @ S.T
    return float(left @ np.linalg.solve(C, left) + np.linalg.slogdet(C)[1])


def told_of(solutions: Sequence[Mapping[str, Any]]) -> list[str]:
    """A warning for each of the nearest ones."""
    found = []
    for one in solutions[:MOST_NAMED]:
        numbers = ", ".join(f"'{key}' = {number['value']:.4g}" for key, number in one["parameters"].items())
        found.append(
            f"another solution fits as well: {numbers} (sum of squares {one['more']:+.1f}{_of_held_out(one)}); "
            "intervals are of one solution alone: measure shapes or other poses, or narrow a prior"
        )
    if len(solutions) > MOST_NAMED:
        found.append(f"{len(solutions)} other solutions in all fit as well: see alternatives")
    return found


def _of_held_out(one: Mapping[str, Any]) -> str:
    """Which solution predicts what was held out, and whether that decides."""
    if "held_out" not in one:
        return ""
    more = one["held_out"]
    decides = "decisive" if abs(more) > DECISIVE else "not decisive"
    return f", and what is held out is predicted {'worse' if more > 0 else 'better'} by it: {more:+.1f}, {decides}"


def spread_points(count: int, size: int) -> Array:
    """Points that fill a cube of side one evenly: multiples of powers of the root of x^(size + 1) = x + 1 (Roberts)."""
    root = 2.0
    for _ in range(50):
        root = (1 + root) ** (1 / (size + 1))
    return np.asarray((0.5 + np.outer(np.arange(1, count + 1), root ** -np.arange(1.0, size + 1))) % 1.0)
