"""Other fits where one leaves more than its deviations: where modes veer, the nearest minimum need not be the best.

A mode that is followed by its shape from the file's model may be another one where two modes have changed places on
the way. Neighbouring modes are exchanged, and counted anew in the model that this leads to. Where only the exchange
explains what was measured the table may be wrong, and that is told. Starts beside the file, one deviation of the
prior away in the plane of what is told best and next, count modes in the order that they have there. Where a large
error is left, so do the best of some points that are spread over a few deviations of the priors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from parflex.errors import ParflexError
from parflex.records import Record
from parflex.updating.mode_fitting import FittedModes, Fitting
from parflex.updating.pairing import first_pairs
from parflex.updating.pose_modes import PoseModes

Array = np.ndarray
NEAREST = 0.2  # of a number: starts do not take it nearer to zero
FIRST_STEPS = 6  # of Gauss's method, behind which a start must be better to be followed
BETTER = 0.5  # of the cost of the first fit: less is no chance
HOPELESS = 10.0  # times what a step took away, what is still too much: no few steps more take that
MOST_EXCHANGES = 6  # of neighbouring numbers that are tried
LARGE = 0.02  # of the frequencies, an error of the model with which starts are looked for farther out
FARTHEST = 2.5  # deviations of the prior: 99 % of what priors say are nearer
POINTS, FOLLOWED = 20, 3  # that are tried, and those of them with the least cost, from which steps are made


@dataclass(frozen=True, eq=False, repr=False)
class Partners(Record):
    """How measured modes are paired, and with which error of the model."""

    base: dict[str, PoseModes]
    pairs: dict[str, list[int]]
    others: dict[str, list[list[int]]]
    error: Array


class OtherStarts:
    """Trials beside a fit that leaves more than its deviations."""

    def __init__(self, fitting: Fitting, fit: FittedModes) -> None:
        self.fitting, self.fit, self.kept = fitting, fit, _partners(fitting)
        self.cost = self._cost(fit)

    def best(self) -> tuple[FittedModes, list[str]]:
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
        for shares in self._every_start() if not suggested else ():
            self.fitting.starts += 1
            found = self._counted(shares)
            if found is not None:
                return found, [self._said()]
        return self.fit, suggested

    def _every_start(self) -> Iterator[Array]:
        yield from self._starts()
        if self.kept.error[0] > LARGE:
            yield from self._far_starts()

    def _counted(self, shares: Array) -> FittedModes | None:
        """The fit with modes counted as the model with these shares has them, where it is far better."""
        fitting = self.fitting
        try:
            start = fitting.at(shares)
            models, counted = start.models, list(start.modes)
            for pose, own in fitting.of_pose.items():
                found = first_pairs([fitting.rows[k] for k in own], models[pose])
                fitting.base[pose], fitting.pairs[pose], fitting.others[pose] = models[pose], found.modes, found.others
                for k, mode in zip(own, found.modes, strict=True):
                    counted[k] = mode
            if counted == start.modes:  # the same pairs lead to the fit that there is
                self._restore(self.kept)
                return None
            there = self._stepped(shares)
            if there is not None and there[0] < BETTER * self.cost:
                fit, _ = fitting.paired(fitting.at(there[1]))
                if fitting.error[0] < BETTER * self.kept.error[0]:
                    return fit
        except ParflexError:
            pass
        self._restore(self.kept)
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
            self._restore(self.kept)

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

    def _starts(self) -> Iterator[Array]:
        """Shares one deviation of the prior away, along combinations that the measurements tell best."""
        prior = np.where(np.isfinite(self.fitting.prior), self.fitting.prior, 1.0)
        S = self.fitting.information(self.fit) * prior
        ways = np.linalg.svd(S, full_matrices=False)[2][:2]
        both = [ways[0] + ways[1], ways[0] - ways[1]] if len(ways) > 1 else []
        for way in (*both, *ways):
            for side in (1.0, -1.0):
                yield np.maximum(1 + side * prior * way / np.abs(way).max(), NEAREST)

    def _far_starts(self) -> list[Array]:
        """Those of points spread over the priors at which modes, counted there, are nearest to what was measured."""
        fitting, found = self.fitting, []
        prior = np.where(np.isfinite(fitting.prior), fitting.prior, 1.0)
        count = len(fitting.rows)
        weights = np.where(fitting.used(self.fit), 1 / self._spread(self.fit), 0.0)[:count]
        for place in _spread_points(POINTS, len(prior)):
            shares = np.maximum(1 + FARTHEST * prior * (2 * place - 1), NEAREST)
            fitting.starts += 1
            try:
                models = fitting.models_at(shares)
            except ParflexError:
                continue
            left = np.zeros(count)
            for pose, now in models.items():
                own = fitting.of_pose[pose]
                modes = first_pairs([fitting.rows[k] for k in own], now).modes
                left[own] = [fitting.y[k] - now.frequencies[mode] if mode >= 0 else np.inf
                             for k, mode in zip(own, modes, strict=True)]  # fmt: skip
            left = left[weights > 0] * weights[weights > 0]
            found.append((float(left @ left + (((shares - 1) / fitting.prior) ** 2).sum()), tuple(shares)))
        return [np.array(shares) for _, shares in sorted(found)[:FOLLOWED]]

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
        return fitting.cost(fit, np.where(fitting.used(fit), 1 / self._spread(fit), 0.0))

    def _spread(self, fit: FittedModes) -> Array:
        return np.hypot(self.fitting.given, self.fitting.few(fit))

    def _restore(self, kept: Partners) -> None:
        fitting = self.fitting
        fitting.base, fitting.pairs, fitting.others = dict(kept.base), dict(kept.pairs), dict(kept.others)
        fitting.error = kept.error


def _partners(fitting: Fitting) -> Partners:
    return Partners(dict(fitting.base), dict(fitting.pairs), dict(fitting.others), fitting.error)


def _spread_points(count: int, size: int) -> Array:
    """Points that fill a cube of side one evenly: multiples of powers of the root of x^(size + 1) = x + 1 (Roberts)."""
    root = 2.0
    for _ in range(50):
        root = (1 + root) ** (1 / (size + 1))
    return np.asarray((0.5 + np.outer(np.arange(1, count + 1), root ** -np.arange(1.0, size + 1))) % 1.0)
