"""Other fits where no start explains what was measured: where modes veer, the nearest minimum need not be the best.

A mode that is followed by its shape from the file's model may be another one where two modes have changed places on
the way. Neighbouring modes are exchanged, and counted anew in the model that this leads to. Where only the exchange
explains what was measured the table may be wrong, and that is told. Minima of starts beside the file are followed
where they leave far less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.errors import ParflexError
from parflex.updating.minima import BETTER, Minimum
from parflex.updating.mode_fitting import HOPELESS, FittedModes, Fitting

Array = np.ndarray
FIRST_STEPS = 6  # of Gauss's method, behind which a start must be better to be followed
MOST_EXCHANGES = 6  # of neighbouring numbers that are tried


class OtherStarts:
    """Trials beside a fit that leaves more than its deviations."""

    def __init__(self, fitting: Fitting, fit: FittedModes) -> None:
        self.fitting, self.fit, self.kept = fitting, fit, fitting.partners()
        self.cost = self._cost(fit)

    def best(self, minima: Sequence[Minimum]) -> tuple[FittedModes, list[str]]:
        """A fit that is far better, if there is one, and what that says; pairs of the fitting are its own."""
        if not self.fitting.error.any():
            return self.fit, []
        suggested: list[str] = []
        for low, high in self._neighbours():
            there = self._after_steps(self.fit.shares, low, high)
            found = None if there is None else self._counted(there[1])
            if found is not None:
                return found, [self._said()]
            if there is not None and there[0] < BETTER**2 * self.cost and not suggested:
                suggested = [
                    f"numbers {low + 1} and {high + 1} exchanged at every pose would explain what follows: check the "
                    "numbers of modes"
                ]
        for one in sorted(minima, key=lambda each: each.cost) if not suggested else ():
            found = self._followed(one)
            if found is not None:
                return found, [self._said()]
        return self.fit, suggested

    def _followed(self, one: Minimum) -> FittedModes | None:
        """The fit from a minimum of another start, where it is far better."""
        if not self._cost(one.fit) < BETTER * self.cost:
            return None
        self.fitting.restore(one.partners)
        return self._better(one.fit.shares)

    def _better(self, shares: Array) -> FittedModes | None:
        """The fit from there where its error of the model is far less; else pairs are those that were."""
        fitting = self.fitting
        try:
            fit, _ = fitting.paired(fitting.at(shares))
            if fitting.error[0] < BETTER * self.kept.error[0]:
                return fit
        except ParflexError:
            pass
        fitting.restore(self.kept)
        return None

    def _counted(self, shares: Array) -> FittedModes | None:
        """The fit with modes counted as the model with these shares has them, where it is far better."""
        fitting = self.fitting
        try:
            if fitting.recounted(fitting.at(shares)):  # the same pairs lead to the fit that there is
                there = self._stepped(shares)
                if there is not None and there[0] < BETTER * self.cost:
                    return self._better(there[1])
        except ParflexError:
            pass
        fitting.restore(self.kept)
        return None

    def _after_steps(self, shares: Array, low: int, high: int) -> tuple[float, Array] | None:
        """Cost and shares behind a few steps with two modes exchanged at every pose."""
        other = {low: high, high: low}
        self.fitting.pairs = {
            pose: [other.get(mode, mode) for mode in modes] for pose, modes in self.kept.pairs.items()
        }
        try:
            return self._stepped(shares)
        except ParflexError:
            return None
        finally:
            self.fitting.restore(self.kept)

    def _neighbours(self) -> list[tuple[int, int]]:
        """Modes of the model, one behind the other, that are both measured."""
        numbers = {mode for modes in self.kept.pairs.values() for mode in modes if mode >= 0}
        return [(k, k + 1) for k in sorted(numbers) if k + 1 in numbers][:MOST_EXCHANGES]

    def _said(self) -> str:
        before, after = self.kept.error[0], self.fitting.error[0]
        return (
            f"modes change their order between the file and the updated model, and are counted as that has them: the "
            f"error of the model is {after:.2%} so, and {before:.2%} with modes followed by their shapes"
        )

    def _stepped(self, shares: Array) -> tuple[float, Array] | None:
        """Cost and shares behind a few steps, with the error of the first fit; None where fewer modes are used."""
        fitting = self.fitting
        fitting.error = self.kept.error
        now, used = fitting.at(shares, every=False), fitting.used(self.fit).sum()
        cost, goal = self._cost(now), BETTER * self.cost
        for _ in range(FIRST_STEPS):
            now, small = fitting.stepped(now)
            before, cost = cost, self._cost(now)
            if small or cost - goal > HOPELESS * (before - cost):
                break
        return None if fitting.used(now).sum() < used else (self._cost(now), now.shares)

    def _cost(self, fit: FittedModes) -> float:
        """That of what is left over given deviations: the error of the model is what one of the fits may not need."""
        fitting = self.fitting
        spread = np.hypot(fitting.given, fitting.few(fit))
        return fitting.cost(fit, np.where(fitting.used(fit), 1 / spread, 0.0))
