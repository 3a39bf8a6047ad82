"""Weighted least squares of measured modes with priors.

Unknowns are shares of numbers of a robot file. Weights hold the deviations, the discretisation error of elements, and a
model error: a share of all frequencies (of all damping ratios) that makes the weighted residuals as large as expected
(Paule and Mandel), if they are larger than chance.

A number is undetermined if the prior and not the measurements determines most of it. In units of the prior deviations,
the prior has the information 1 along every direction, and the measurements have v^T A v along v, with A = P S^T S P (S:
sensitivities over deviations, P: prior deviations). Along an eigenvector of A whose eigenvalue is below 1 the prior
prevails; a number is undetermined if such directions make up more than half of its variance, since its interval would
be that of the prior.

Two identical springs are an example. Frequencies are stationary in their difference, so S has no part along it, and the
deviations of both springs are those of the prior. Another number may compensate for the square of that difference.
Therefore the part of such a direction in a variance comes from the model a deviation away and not from S.

A wrong mass in the file shifts the same mode of every pose to the same side. As an error of every row it would cancel
over many poses, so it is taken as one error of each mode. The numbers absorb part of it, and residuals show less of it
than it is. If the numbers absorb nearly all, residuals are errors of rows alone, and the shared error is taken to be as
large as these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.special

from parflex.design.design_state import ResponseCase
from parflex.errors import InputError, ParflexError
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.updating.measured import MeasuredMode
from parflex.updating.modes import PoseModes, modes_at
from parflex.updating.pairing import (
    PairingState,
    Pairs,
    first_pairs,
    followed_pairs,
    modes_needed,
    pair_again,
    same_pairs,
)
from parflex.updating.rebound_robots import ReboundRobots

Array = np.ndarray

MOST_STEPS = 12  # of Gauss's method without a model error: it converges in fewer, or hardly at all

MOST_ROUNDS = 30  # of Gauss's method and the model error

SETTLED = 1e-6  # of the numbers, by which a round may still change them

NEAR = 1e-3  # of the deviation of a number: the same

HALVINGS = 8

WIDENINGS = 12  # rounds in which the error of the model is found

STEADY = 0.03  # of it, by which it may still change

PAIRINGS = 4  # rounds in which measured modes find their partners

UNSEEN = 1e-12  # of the largest motion of a mode, at a sensor: rounding

NO_PRIOR = 1e3  # of a number, its deviation without a prior: wider than any answer of use

CHANCE = 0.05  # of sums of squares of residuals that are as large as their deviations say are larger

EQUAL = 1.0  # information of the measurements over that of the prior, where both determine a direction alike


@dataclass(frozen=True, eq=False, repr=False)
class FittedModes(Record):
    """A model with some shares of the first numbers, beside all that was measured.

    Values and slopes are of all frequencies, then of all damping ratios; of each measured mode its number in the model
    now (from 0, -1: none), the MAC with the model it is followed from, the share that is due to few elements, and how
    its frequency feels an error of the damping (Hz per share of it and per square).
    """

    shares: Array
    values: Array
    slopes: Array
    modes: list[int]
    alike: list[float]
    excess: Array
    coupled: Array
    models: dict[str, PoseModes]


class FitProblem:
    """What was measured, how it is paired, and the search for the numbers."""

    def __init__(
        self, robot: Robot, keys: Sequence[str], first: Array, rows: Sequence[MeasuredMode], prior: Array,
        case: ResponseCase,
    ) -> None:  # fmt: skip
        self.robot, self.keys, self.first, self.rows = robot, list(keys), first, list(rows)
        self.prior, self.case = np.minimum(prior, NO_PRIOR), case
        self.designs = ReboundRobots(robot, keys, case)
        self.of_pose: dict[str, list[int]] = {}
        for k, row in enumerate(self.rows):
            self.of_pose.setdefault(row.pose, []).append(k)
        self.damped = [k for k, row in enumerate(self.rows) if row.damping is not None]
        self.row_of = np.array([*range(len(self.rows)), *self.damped])
        self.kind = np.array([0] * len(self.rows) + [1] * len(self.damped))
        self.y = np.array([row.frequency for row in rows] + [float(rows[k].damping or 0) for k in self.damped])
        self.given = np.array([row.deviation for row in rows] + [rows[k].damping_deviation for k in self.damped])
        self.error = np.zeros(2)  # of the model: shares of frequencies and of damping ratios
        self.starts = 1  # from which the numbers were looked for
        self.apart = np.zeros(len(self.rows), dtype=bool)
        self.base: dict[str, PoseModes] = {}
        self.pairs: dict[str, list[int]] = {}
        self.others: dict[str, list[list[int]]] = {}
        self.states: dict[str, str] = {}  # that the model of the file is linearised about
        for pose, indices in self.of_pose.items():
            several = [self.rows[k] for k in indices]
            there = modes_at(robot, pose, case, modes_needed(several))
            self.states[pose], model = there.model.about, there.at_sensors(self._sensors(pose))
            _refuse_more(pose, several, len(model.frequencies))
            self._pair(pose, model, first_pairs(several, model))
        self.start = dict(self.base)

    # -- the model ---------------------------------------------------------------------------------------------------

    def _sensors(self, pose: str) -> list[str]:
        return list(dict.fromkeys(name for k in self.of_pose[pose] for name in self.rows[k].shape))

    def unresponsive_sensors(self) -> list[str]:
        """Sensors that see nothing of any mode of the model at a pose, where none there sees anything."""
        blind = [model.sensors for model in self.start.values() if len(model.sensors) and not _moves(model)]
        return list(dict.fromkeys(f"'{name}'" for several in blind for name in several))

    def numbers(self) -> list[int | None]:
        """Of each measured mode the number of its partner in the model that it is followed from, from 1."""
        numbers: list[int | None] = [None] * len(self.rows)
        for pose, indices in self.of_pose.items():
            for k, mode in zip(indices, self.pairs[pose], strict=True):
                numbers[k] = mode + 1 if mode >= 0 else None
        return numbers

    def _pair(self, pose: str, model: PoseModes, pairs: Pairs) -> None:
        self.base[pose], self.pairs[pose], self.others[pose] = model, pairs.modes, pairs.others

    def partners(self) -> PairingState:
        """How modes are paired now."""
        return PairingState(dict(self.base), dict(self.pairs), dict(self.others), self.error)

    def restore(self, state: PairingState) -> None:
        """Pairs as they were."""
        self.base, self.pairs, self.others = dict(state.base), dict(state.pairs), dict(state.others)
        self.error = state.error

    def at(self, shares: Array, every: bool = True, counted: bool = False) -> FittedModes:
        """The model with these shares of the first numbers; of modes that are held out only if every one is asked.

        Measured modes are followed by shapes from the model that they were paired with, or counted anew in this one.
        """
        design = self.designs.of(self.first * shares)
        values, slopes = np.full(len(self.y), np.nan), np.zeros((len(self.y), len(self.keys)))
        modes, row_macs, excess = [-1] * len(self.rows), [1.0] * len(self.rows), np.zeros(len(self.rows))
        coupled, models = np.zeros((len(self.rows), 2)), {}
        for pose, indices in self.of_pose.items():
            if not every and self.apart[indices].all():
                continue
            there = design.modes(pose, modes_needed([self.rows[k] for k in indices]))
            models[pose] = now = there.at_sensors(self._sensors(pose))
            if counted:
                self._pair(pose, now, first_pairs([self.rows[k] for k in indices], now))
            paired = [(k, mode) for k, mode in zip(indices, self.pairs[pose], strict=True) if mode >= 0]
            partners, macs = followed_pairs([mode for _, mode in paired], self.base[pose], now)
            for (k, _), mode, mac in zip(paired, partners, macs, strict=True):
                modes[k], row_macs[k], excess[k] = mode, mac, now.excess[mode]
                if self.apart[k] and not every:
                    continue
                if k not in self.damped:
                    values[k], slopes[k] = there.frequency(mode)
                    continue
                j = len(self.rows) + self.damped.index(k)
                values[k], values[j], slopes[k], slopes[j] = there.damped(mode)
                coupled[k] = there.coupled(mode)
        shares = np.array(shares, dtype=float)
        return FittedModes(shares, values, slopes * self.first, modes, row_macs, excess, coupled, models)

    # -- weights -----------------------------------------------------------------------------------------------------

    def used(self, fit: FittedModes) -> Array:
        """Entries that are fitted: not held out, with a partner that has enough elements."""
        row = self.row_of
        return ~self.apart[row] & np.isfinite(fit.values) & np.isfinite(fit.excess[row])

    def spread(self, fit: FittedModes) -> Array:
        """Deviations of what the model says and of what was measured: all but that of the numbers."""
        return np.hypot(self.given, self.doubt(fit))

    def few(self, fit: FittedModes) -> Array:
        """Deviations of frequencies (Hz) because elements are too few."""
        return np.where(self.kind == 0, fit.excess[self.row_of] * np.abs(self.y), 0.0)

    def by_damping(self, fit: FittedModes) -> Array:
        """Deviations of frequencies (Hz) because damping has an error, by which it couples modes otherwise."""
        share = self.error[1]
        once, twice = fit.coupled[self.row_of].T
        return np.where(self.kind == 0, share * (once + share * twice), 0.0)

    def by_model(self, fit: FittedModes) -> Array:
        """Deviations of the model from the robot by its error."""
        return np.hypot(self.by_damping(fit), self.error[self.kind] * np.abs(self.y))

    def doubt(self, fit: FittedModes) -> Array:
        """Deviations of the model from the robot: elements that are too few, and its error."""
        return np.hypot(self.few(fit), self.by_model(fit))

    def cost(self, fit: FittedModes, weights: Array) -> float:
        """Half the sum of squares of residuals over deviations, with the prior."""
        left = ((self.y - fit.values) * weights)[weights > 0]
        return 0.5 * float(left @ left + (((fit.shares - 1) / self.prior) ** 2).sum())

    def weights(self, fit: FittedModes) -> Array:
        """One over the deviations of what is used, and zero else."""
        return np.where(self.used(fit), 1 / self.spread(fit), 0.0)

    def information(self, fit: FittedModes) -> Array:
        """Rows of the sensitivities over the deviations: what is used."""
        used = self.used(fit)
        return (fit.slopes / self.spread(fit)[:, None])[used]

    def covariance(self, fit: FittedModes) -> Array:
        """Of the shares, behind the measurements and the prior."""
        rows = np.vstack([self.information(fit) * self.prior, np.eye(len(self.prior))])
        _, sizes, vectors = np.linalg.svd(rows, full_matrices=False)  # no squares: accurate however wide priors are
        half = self.prior[:, None] * vectors.T / sizes
        return np.asarray(half @ half.T)

    def shift_by_elements(self, fit: FittedModes) -> Array:
        """By how much shares are off because elements are too few: frequencies are too high all at once.

        As deviations of their own they would cancel each other over many modes and poses; this does not.
        """
        used = self.used(fit)
        off = (self.few(fit)[used] / self.spread(fit)[used]) @ self.information(fit)
        return -self.covariance(fit) @ off

    # -- search ------------------------------------------------------------------------------------------------------

    def gauss_step(self, fit: FittedModes) -> tuple[Array, Array]:
        """To where the model would fit best if it were linear, and deviations of the numbers there."""
        weights = self.weights(fit)
        used = weights > 0
        S = fit.slopes[used] * weights[used, None]
        left = ((self.y - fit.values) * weights)[used]
        A = S.T @ S + np.diag(1 / self.prior**2)
        step = np.linalg.lstsq(A, S.T @ left - (fit.shares - 1) / self.prior**2, rcond=None)[0]
        return step, np.sqrt(np.abs(np.diag(np.linalg.pinv(A))))

    def stepped(self, fit: FittedModes) -> tuple[FittedModes, bool]:
        """A step of Gauss's method, halved until it is one down; and whether it was too small to matter."""
        weights = self.weights(fit)
        step, sure = self.gauss_step(fit)
        step *= min(1.0, 0.5 / max(float(np.abs(step / fit.shares).max()), 1e-300))  # numbers keep their signs
        if (np.abs(step) < np.maximum(SETTLED, NEAR * sure)).all():
            return fit, True
        cost = self.cost(fit, weights)
        for halved in range(HALVINGS):
            try:
                trial = self.at(fit.shares + step / 2**halved, every=False)
            except ParflexError:
                continue
            if self.cost(trial, weights) < cost:
                return trial, False
        return fit, True

    def freedoms(self, fit: FittedModes, kind: int) -> float:
        """Of frequencies or damping ratios: how many more there are than the numbers take."""
        used = self.used(fit)
        S = self.information(fit)
        taken = np.einsum("ij,jk,ik->i", S, self.covariance(fit), S)
        of_kind = self.kind[used] == kind
        return float(of_kind.sum() - taken[of_kind].sum())

    def _share(self, fit: FittedModes, kind: int, freedoms: float) -> float:
        """The error of the model with which weighted residuals are as many as freedoms."""
        of_kind = self.used(fit) & (self.kind == kind)
        if not freedoms:
            return 0.0
        left, sizes = (self.y - fit.values)[of_kind], np.abs(self.y[of_kind])
        fixed = (self.given**2 + self.few(fit) ** 2 + self.by_damping(fit) ** 2)[of_kind]

        def over(share: float) -> float:
            return float((left**2 / (fixed + (share * sizes) ** 2)).sum()) - freedoms

        high = float(np.sqrt((left**2 / sizes**2).sum() / freedoms)) + 1e-12
        return float(scipy.optimize.brentq(over, 0.0, high)) if over(0.0) > 0 else 0.0

    def plain(self, fit: FittedModes, leads: Callable[[FittedModes, Array], FittedModes | None]) -> FittedModes:
        """Return the best shares without a model error, or the known fit to which the next step leads."""
        self.error = np.zeros(2)
        for _ in range(MOST_STEPS):
            known = leads(fit, self.gauss_step(fit)[0])
            if known is not None:
                return known
            fit, small = self.stepped(fit)
            if small:
                break
        return fit

    def explains(self, fit: FittedModes) -> bool:
        """Whether the residuals of a fit without a model error may be chance."""
        return not any(self._error(fit, kind) for kind in (0, 1))

    def weighed(self, fit: FittedModes) -> FittedModes:
        """The best shares, with the error of the model where residuals are larger than chance makes them.

        The first error is that of the model as it is: steps with too small deviations would go far for little.
        """
        self.error = np.zeros(2)
        self.error = np.array([self._share(fit, kind, self._freedoms(fit, kind)) for kind in (0, 1)])
        for number in range(MOST_ROUNDS):
            fit, small = self.stepped(fit)
            last = self.error
            if number < WIDENINGS:
                self.error = np.array([self._error(fit, kind) for kind in (0, 1)])
            if small and np.abs(self.error - last).max() <= STEADY * self.error.max():
                break
        return fit

    def _error(self, fit: FittedModes, kind: int) -> float:
        """The error of the model, or none where residuals may be chance."""
        freedoms = self._freedoms(fit, kind)
        of_kind = self.used(fit) & (self.kind == kind)
        spread = np.hypot(np.hypot(self.given, self.few(fit)), self.by_damping(fit))
        plain = float((((self.y - fit.values) / spread)[of_kind] ** 2).sum())
        by_chance = not freedoms or plain < scipy.special.chdtri(freedoms, CHANCE)
        return 0.0 if by_chance else self._share(fit, kind, freedoms)

    def _freedoms(self, fit: FittedModes, kind: int) -> float:
        """Freedoms, or none where there are too few to show an error."""
        freedoms = self.freedoms(fit, kind)
        return freedoms if freedoms > 0.5 else 0.0

    def paired(self, fit: FittedModes, search: Callable[[FittedModes], FittedModes]) -> tuple[FittedModes, bool]:
        """The best shares, with partners by the updated model; and whether pairs were settled."""
        for _ in range(PAIRINGS):
            fit = self.at(search(fit).shares)
            changed = False
            for pose, indices in self.of_pose.items():
                several = [self.rows[k] for k in indices]
                if all(row.mode is not None for row in several):
                    continue
                now = fit.models[pose]
                pairs = pair_again(several, [fit.modes[k] for k in indices], now)
                self.others[pose] = pairs.others
                if not same_pairs(pairs.modes, [fit.modes[k] for k in indices], now):
                    changed = True
                    self.base[pose], self.pairs[pose] = now, pairs.modes
            if not changed:
                return fit, True
            fit = self.at(fit.shares, every=False)
        return self.at(search(fit).shares), False

    def before(self, fit: FittedModes, first: FittedModes) -> FittedModes:
        """The model of the file beside all that was measured, with the partners that were found."""
        if all(self.base[pose] is self.start[pose] for pose in self.of_pose):
            return first
        self.base = dict(fit.models)
        self.pairs = {pose: [fit.modes[k] for k in indices] for pose, indices in self.of_pose.items()}
        return self.at(np.ones(len(self.keys)))


def _moves(model: PoseModes) -> bool:
    return bool(np.abs(model.seen).max() > UNSEEN * np.abs(model.shapes).max())


def _refuse_more(pose: str, rows: Sequence[MeasuredMode], count: int) -> None:
    for row in rows:
        if (row.mode or 0) > count:
            raise InputError(f"mode {row.mode} is measured at '{pose}', and the robot has {count}", key="mode",
                             value=row.mode, hint="leave it out")  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Undetermined(Record):
    """Combinations of the numbers that the measurements determine less than the prior, and the numbers in them.

    Rows of `combinations` are directions over the prior deviations, of length 1; `numbers` is true where a number is
    undetermined.
    """

    combinations: Array
    numbers: Array


def undetermined(fitting: FitProblem, fit: FittedModes) -> Undetermined:
    """Return what the measurements leave to the prior."""
    S, prior = fitting.information(fit), fitting.prior
    _, sizes, directions = np.linalg.svd(S * prior)
    values = np.zeros(len(prior))
    values[: len(sizes)] = sizes**2
    weak = values < EQUAL
    steps = directions * prior / np.sqrt(1 + values)[:, None]  # a deviation along each; their squares are variances
    strong = steps[~weak]
    by_prior = sum((_part(fitting, fit, S, step, strong) for step in steps[weak]), np.zeros(len(prior)))
    return Undetermined(directions[weak], by_prior > (strong**2).sum(axis=0))


def _part(fitting: FitProblem, fit: FittedModes, S: Array, step: Array, strong: Array) -> Array:
    """Return the part of a weak direction in all variances, with the strong directions fitted again."""
    variances = step**2
    if not len(strong):
        return variances
    used = fitting.used(fit)
    step = step * min(1.0, 0.5 / float(np.abs(step / fit.shares).max()))  # numbers keep their signs
    for away in (step, -step):
        try:
            there = fitting.at(fit.shares + away, every=False)
        except ParflexError:  # no robot has these numbers
            continue
        left = (there.values - fit.values)[used] / fitting.spread(fit)[used] - S @ away
        variances = np.maximum(variances, (away - strong.T @ (strong @ (S.T @ left))) ** 2)
    return variances


def shared_errors(fitting: FitProblem, fit: FittedModes) -> tuple[Array, float]:
    """Covariance of the shares where the error of the model is one of each mode, and freedoms that tell its size.

    Deviations are not below those of errors of every row for itself, and not above those of the prior.
    """
    used, plain = fitting.used(fit), fitting.covariance(fit)
    if not fitting.error.any():
        return plain, float(max(fitting.freedoms(fit, 0), 1.0))
    S, row, kind = fitting.information(fit), fitting.row_of[used], fitting.kind[used]
    mode = np.array(fit.modes)[row]
    part = (fitting.by_model(fit) / fitting.spread(fit))[used]  # of deviations of the rows
    together = (mode[:, None] == mode) & (kind[:, None] == kind)
    shared = np.outer(part, part) * together
    taken = np.eye(len(S)) - S @ plain @ S.T  # residuals per error
    residual_covariance, alone = taken @ shared @ taken.T, taken @ np.diag(part**2) @ taken.T
    freedoms = np.trace(residual_covariance) ** 2 / max(
        float((residual_covariance * residual_covariance.T).sum()), 1e-300
    )
    # squares of residuals that a shared error leaves, as a part of those that errors of the rows leave: by that weight
    # it is 1/shows times as large as theirs, as residuals ask for, and by the rest just as large
    shows = min(float(np.trace(residual_covariance)) / max(float(np.trace(alone)), 1e-300), 1.0)
    larger = 2 - shows
    middle = S.T @ (np.diag(1 - part**2) + larger * shared) @ S + np.diag(1 / fitting.prior**2)
    # a size that is taken and not seen counts as one freedom
    return _between(plain, plain @ middle @ plain, fitting.prior), float(max(freedoms, 1.0) + (1 - shows))


def _between(least: Array, covariance: Array, most: Array) -> Array:
    """A covariance with deviations between those of another one and given ones."""
    low, deviations = (np.sqrt(np.maximum(np.diag(C), 1e-300)) for C in (least, covariance))
    factor = np.minimum(np.maximum(deviations, low), np.maximum(most, low)) / deviations
    return np.asarray(covariance * np.outer(factor, factor))
