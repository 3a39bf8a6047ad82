"""Other fits where no start explains what was measured: where modes veer, the nearest minimum need not be the best.

A mode that is followed by its shape from the file's model may be another one where two modes have changed places on
the way. Neighbouring modes are exchanged, and counted anew in the model that this leads to. Where only the exchange
explains what was measured the table may be wrong, and that is told. Minima of starts beside the file are followed
where they leave far less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from parflex.errors import ParflexError
from parflex.updating.fitting_steps import FittingSteps
from parflex.updating.mode_fitting import HOPELESS, FittedModes, Fitting
from parflex.updating.solved.minima import BETTER, Minimum

Array = np.ndarray
FIRST_STEPS = 6  # of Gauss's method, behind which a start must be better to be followed
MOST_EXCHANGES = 6  # of neighbouring numbers that are tried
LIKELIEST = 2  # of exchanges at one pose that are tried


class OtherStarts:
    """Trials beside a fit that leaves more than its deviations."""

    def __init__(self, fitting: Fitting, fit: FittedModes, steps: FittingSteps) -> None:
        self.fitting, self.fit, self.steps, self.kept = fitting, fit, steps, fitting.partners()
        self.cost = self._cost(fit)

    def best(self, minima: Sequence[Minimum]) -> tuple[FittedModes, list[str]]:
        """A fit that is far better, if there is one, and what that says; pairs of the fitting are its own."""
        if not self.fitting.error.any():
            return self.fit, []
        suggested: list[str] = []
        neighbours, shift = self._neighbours(), self._shift()
        self.steps.expect(len(neighbours) + bool(shift))
        if shift:
            self.steps.step()
            there = self._after_steps(self.fit.shares, {mode: mode + shift for mode in self._numbers()})
            if there is not None and there[0] < BETTER**2 * self.cost:
                way = "lower" if shift < 0 else "higher"
                return self.fit, [
                    f"numbers of modes that are all {way} by {abs(shift)} would explain what follows: the lowest mode "
                    "that the model has as it is held is number 1"
                ]
        for low, high in neighbours:
            self.steps.step()
            there = self._after_steps(self.fit.shares, {low: high, high: low})
            found = None if there is None else self._counted(there[1])
            if found is not None:
                return found, [self._said()]
            if there is not None and there[0] < BETTER**2 * self.cost and not suggested:
                suggested = [
                    f"numbers {low + 1} and {high + 1} exchanged at every pose would explain what follows: check the "
                    "numbers of modes"
                ]
        suggested = suggested or self._at_one_pose()
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

    def _at_one_pose(self) -> list[str]:
        """What to say where the numbers of two modes exchanged at one pose explain far more than as they are."""
        fitting, found = self.fitting, []
        for pose, own in fitting.of_pose.items():
            numbered = [k for k in own if fitting.rows[k].mode is not None and not fitting.apart[k]]
            found += [(self._linear_cost(a, b), pose, a, b) for a, b in combinations(numbered, 2)]
        for cost, pose, a, b in sorted(found)[:LIKELIEST]:
            if not cost < BETTER * self.cost:
                break
            low, high = (self.kept.pairs[pose][fitting.of_pose[pose].index(k)] for k in (a, b))
            there = self._after_steps(self.fit.shares, {low: high, high: low}, pose)
            if there is not None and there[0] < BETTER**2 * self.cost:
                numbers = sorted(int(fitting.rows[k].mode or 0) for k in (a, b))
                return [
                    f"numbers {numbers[0]} and {numbers[1]} exchanged at '{pose}' alone would leave {there[0]:.3g} of "
                    f"{self.cost:.3g} (half the squares of residuals over deviations): check the numbers of modes"
                ]
        return []

    def _linear_cost(self, a: int, b: int) -> float:
        """The cost with two measured modes exchanged, where the model were linear."""
        fitting, fit = self.fitting, self.fit
        rows = np.arange(len(fitting.rows))
        rows[[a, b]] = b, a
        damped = {k: len(rows) + j for j, k in enumerate(fitting.damped)}
        place = np.array([*rows, *(damped.get(int(rows[k]), damped[k]) for k in fitting.damped)])
        weights = np.where(fitting.used(fit), 1 / np.hypot(fitting.given, fitting.few(fit)), 0.0)
        S = np.vstack([fit.slopes[place] * weights[:, None], np.diag(1 / fitting.prior)])
        left = np.concatenate(
            [np.nan_to_num(fitting.y - fit.values[place]) * weights, (1 - fit.shares) / fitting.prior]
        )
        step = np.linalg.lstsq(S, left, rcond=None)[0]
        return 0.5 * float(np.square(left - S @ step).sum())

    def _shift(self) -> int:
        """By how much all numbers of a table must change to be nearest to the file; 0 where modes have none."""
        rows, near = self.fitting.rows, {}
        if len(rows) < 2 or any(one.mode is None for one in rows):
            return 0
        lowest, most = min(self._numbers()), min(len(one.frequencies) for one in self.kept.base.values())
        for shift in range(-lowest, most - max(self._numbers())):
            near[shift] = np.median([
                abs(np.log(rows[k].frequency / self.kept.base[pose].frequencies[mode + shift]))
                for pose, own in self.fitting.of_pose.items()
                for k, mode in zip(own, self.kept.pairs[pose], strict=True) if mode >= 0
            ])  # fmt: skip
        return min(near, key=lambda shift: (near[shift], abs(shift)))

    def _numbers(self) -> set[int]:
        """Modes of the model that are measured somewhere, from 0."""
        return {mode for modes in self.kept.pairs.values() for mode in modes if mode >= 0}

    def _after_steps(
        self, shares: Array, other: Mapping[int, int], only: str | None = None
    ) -> tuple[float, Array] | None:  # fmt: skip
        """Cost and shares behind a few steps with other modes in place of some, at every pose, or at one only."""
        self.fitting.pairs = {
            pose: [other.get(mode, mode) for mode in modes] if only in (None, pose) else modes
            for pose, modes in self.kept.pairs.items()
        }
        try:
            return self._stepped(shares)
        except ParflexError:
            return None
        finally:
            self.fitting.restore(self.kept)

    def _neighbours(self) -> list[tuple[int, int]]:
        """Modes of the model, one behind the other, that are both measured."""
        numbers = self._numbers()
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
