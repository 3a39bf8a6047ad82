"""All sets of numbers that fit what was measured alike: the nearest one to the file need not be that of the robot.

Two springs may change places and leave frequencies as they are. So fits start from the file and from points that are
spread over the priors, first with the deviations that were given: only what no start explains is an error of the
model. The best has the least sum of squares of residuals, priors and shapes; others within the region of 95 % of that
sum are other solutions.

Where none explains all, something that was given is wrong: deviations are too small because the model has an error, or
priors are because numbers are far from the file. Each fit widens what it needs, and pays twice the logarithm of that:
wider ones make just what was seen less likely. So the same sum decides between a large error near the file and a small
one far from it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.errors import ParflexError
from parflex.updating.fitting_steps import FittingSteps
from parflex.updating.mode_fitting import FittedModes, Fitting
from parflex.updating.pairing import followed_pairs
from parflex.updating.solved.minima import MOST_STEPS, Minima, Minimum

Array = np.ndarray
STRAINED = 3.0  # deviations of its prior by which a number may move
WIDE = 1.0  # of a number, a deviation that does not keep it from what was measured
USUAL = 0.3  # of a number: starts are spread over that against priors that are narrower
STEADYINGS = 4  # rounds in which a fit and its error of the model settle
MOST_JUDGED = 3  # minima that may be the answer with an error of the model, or against priors


class Solutions(Minima):
    """The best fit, and those that are as good."""

    def __init__(self, fitting: Fitting, start: FittedModes, steps: FittingSteps) -> None:
        super().__init__(fitting, start, steps)
        self.against: list[Minimum] = []  # with wider priors than given
        self.within = 0  # starts that are spread over the priors as given

    # -- without an error of the model -------------------------------------------------------------------------------

    def explained(self) -> tuple[FittedModes, list[Minimum]] | None:
        """The best fit whose residuals may be chance, and other solutions; None where there is none."""
        fitting = self.fitting
        points = self._points(self.scale, more=1)
        first, _ = fitting.paired(self.start, fitting.plain)
        kept = fitting.partners()
        self._keep_below(first)
        self.goal = self._goal()
        self._recount(first)
        self.steps.step()
        self._from_all(points)
        self.within = len(self.begun)
        best = min(self.found, key=lambda one: one.cost)
        if not best.explains or self._far(best.fit).any():
            plain, self.found = self.found, self._against_priors()
            against = min(self.found, key=lambda one: one.cost, default=best)
            if against.explains and against is not best:
                return self._taken(against), self._others(against)
            self.found, self.against = plain, self.found
        if best.explains:
            return self._taken(best), self._others(best)
        fitting.restore(kept)
        return None

    def _from_all(self, points: Array) -> None:
        """Keep minima below starts, with the error of the model and the priors that there are."""
        error = self.fitting.error
        for shares in points:
            self.fitting.error = error
            self._from(shares)
            self.goal = self._goal()
            self.steps.step()

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

    def judged(self, fit: FittedModes) -> tuple[FittedModes, list[Minimum], bool]:
        """The best of a fit with an error of the model and of all minima, where each may widen what was given.

        With other solutions beside it, and whether it is the fit that was given.
        """
        judged = sorted(self.found, key=lambda one: one.cost)[:MOST_JUDGED] + self.against
        self.found = []
        self._keep_below(fit)
        own = list(self.found)
        for one in judged:
            self._with_error(one)
        self._beside(min(self.found, key=lambda each: each.cost))
        self.found = self._with_best_errors()
        best = min(self.found, key=lambda each: each.cost)
        self._taken_up(best)
        return self._with_held_out(best), self._others(best), any(best.fit is one.fit for one in own)

    def _beside(self, best: Minimum) -> None:
        """Keep minima below all starts with the error and the priors of a fit, each with its own error then."""
        fitting, known = self.fitting, list(self.found)
        self._taken_up(best)
        self.goal = self._goal()
        starts = self.begun if (best.prior > fitting.given_prior).any() else self.begun[: self.within]
        self.steps.expect(len(starts))
        for begun, partners in starts:
            fitting.restore(partners)
            fitting.error = best.partners.error
            self._settle(begun)
            self.steps.step()
        for one in [each for each in self.found if all(each is not other for other in known)]:
            self._with_error(one)

    def _steadied(self, fit: FittedModes) -> FittedModes:
        """The fit below, with the error of the model that it shows, as long as both together cost less.

        An error that is too large lets priors pull, which leaves more, which asks for a larger error.
        """
        fitting, best = self.fitting, None
        for _ in range(STEADYINGS):
            fitting.error = fitting.shown_error(fit)
            for _ in range(MOST_STEPS):
                fit, small = fitting.stepped(fit)
                if small:
                    break
            if best is not None and not self._cost(fit) < best[0]:
                break
            best = self._cost(fit), fit, fitting.error
        assert best is not None
        fitting.error = best[2]
        return best[1]

    def _with_error(self, one: Minimum) -> None:
        """Keep the fit below a minimum with the error of the model that is its own."""
        self.found = [each for each in self.found if each is not one]
        self._taken_up(one)
        try:
            fit, _ = self.fitting.paired(self.fitting.at(one.fit.shares), self._steadied)
            self._keep_below(fit, one.counted)
        except ParflexError:
            self._taken_up(one)
            self._keep(one.fit, one.counted)

    def _with_best_errors(self) -> list[Minimum]:
        """All that were found, each with the cost of the error of the model that suits it best among all of them."""
        errors, found = [np.zeros(2), *(one.partners.error for one in self.found)], []
        for one in self.found:
            self._taken_up(one)
            costs = []
            for error in errors:
                self.fitting.error = error
                costs.append(self._cost(one.fit))
            found.append(replace(one, cost=min(costs)))
        return found

    def _taken(self, best: Minimum) -> FittedModes:
        """A minimum as the answer, with what was held out, too."""
        self._taken_up(best)
        fit, self.settled = self.fitting.paired(self._with_held_out(best), self.fitting.plain)
        return fit

    def _with_held_out(self, best: Minimum) -> FittedModes:
        """A minimum with what was held out, counted as the rest of it is."""
        fitting = self.fitting
        fit = fitting.at(best.fit.shares)
        return fitting.at(best.fit.shares) if best.counted and fitting.recounted(fit) else fit

    # -- against priors ----------------------------------------------------------------------------------------------

    def _against_priors(self) -> list[Minimum]:
        """Minima where priors of numbers far away are as wide as those are away; the best one first.

        There must be more measurements than numbers: else any are explained.
        """
        fitting, given = self.fitting, self.fitting.given_prior
        plain, self.found = sorted(self.found, key=lambda one: one.cost)[:MOST_JUDGED], []
        for one in plain:
            self._loosened(one, np.maximum(given, WIDE))
        if not self.found:
            return []
        fitting.prior, self.goal = np.maximum(given, WIDE), self._goal()
        if (given < USUAL).any():
            self._from_all(self._points(np.maximum(self.scale, USUAL)))
        wide, self.found = sorted(self.found, key=lambda one: one.cost)[:MOST_JUDGED], []
        for one in wide:
            far = self._far(one.fit)
            if far.any() and sum(fitting.freedoms(one.fit, kind) for kind in (0, 1)) > 0.5:
                self._loosened(one, np.where(far, np.abs(one.fit.shares - 1), given))
        fitting.prior = given
        return self.found

    def _loosened(self, one: Minimum, prior: Array) -> None:
        """Keep the minimum below one with other priors."""
        self._taken_up(one)
        self.fitting.prior = prior
        try:
            self._keep_below(self.fitting.plain(one.fit), one.counted)
        except ParflexError:
            return

    def _far(self, fit: FittedModes) -> Array:
        """Numbers that moved by more than their priors have them."""
        return np.asarray(np.abs(fit.shares - 1) > STRAINED * self.fitting.given_prior)
