"""Weighted least squares of measured modes with priors.

Starts are the file and points of a Sobol sequence over the priors, as frequencies may have several solutions: two
springs may change places, and a symmetric file is a saddle between both. All starts are fitted without a model error
first, and each numbers modes as its model does. Only if the best of these fits leaves more than chance, all are fitted
again with a model error and the mode numbers of the file: with a model error, another order of modes may leave less by
chance. Minima within the 95 % region of a better one are that one; others of a cost within it are reported.

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
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.optimize
import scipy.special

from parflex.design.design_state import ResponseCase
from parflex.errors import InputError, ParflexError
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.updating.measured import MeasuredMode
from parflex.updating.modes import PoseModes, modes_at
from parflex.updating.pairing import ALONE, followed_pairs, modes_needed, paired_modes, same_pairs
from parflex.updating.rebound_robots import ReboundRobots

Array = np.ndarray
Progress = Callable[[int, int], None]
SETTLED = 1e-9  # of the numbers and the cost, by which the last step may change them
WIDENINGS, STEADY = 12, 0.03  # rounds in which the error of the model is found, and what the last may change of it
PAIRINGS = 4  # rounds in which measured modes find their partners
NO_PRIOR = 1e3  # of a number, its deviation without a prior: wider than any answer of use
CHANCE = 0.05  # of sums of squares of residuals that are as large as their deviations say are larger
EQUAL = 1.0  # information of the measurements over that of the prior, where both determine a direction alike
NEAREST, FARTHEST = 0.2, 2.5  # of a number, which starts do not pass, and deviations of the prior: 99 % are nearer
PER_NUMBER, MOST = 4, 8  # starts besides the file: eight fits cost seconds, and no few starts reach all corners
SHAPES = 0.1  # deviation of a MAC of a measured shape with its own mode


@dataclass(frozen=True, eq=False, repr=False)
class FittedModes(Record):
    """A model with some shares of the first numbers, beside all that was measured.

    Values and slopes are of all frequencies, then of all damping ratios; of each measured mode its number in the model
    now (from 0, -1: none), the MAC with the model it is followed from, and the share that is due to few elements.
    """

    shares: Array
    values: Array
    slopes: Array
    modes: list[int]
    alike: list[float]
    excess: Array
    models: dict[str, PoseModes]


@dataclass(frozen=True, eq=False, repr=False)
class Pairing(Record):
    """Models by pose, the mode of each measured one there, from which modes are followed; shares of the model error.

    The error is a share of all frequencies, and one of all damping ratios.
    """

    base: dict[str, PoseModes] = field(default_factory=dict)
    pairs: dict[str, list[int]] = field(default_factory=dict)
    error: Array = field(default_factory=lambda: np.zeros(2))


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
        self.ratio = np.array([rows[k].damping or 0.0 for k in self.row_of])
        self.starts = 1  # from which the numbers were looked for
        self.apart = np.zeros(len(self.rows), dtype=bool)
        self.states: dict[str, str] = {}  # that the model of the file is linearised about
        self.pairing = Pairing()
        for pose, indices in self.of_pose.items():
            several = [self.rows[k] for k in indices]
            there = modes_at(robot, pose, case, modes_needed(several))
            self.states[pose], model = there.model.about, there.at_sensors(self._sensors(pose))
            count = len(model.frequencies)
            for row in several:
                if (row.mode or 0) > count:
                    raise InputError(f"mode {row.mode} is measured at '{pose}', and the robot has {count}", key="mode",
                                     value=row.mode, hint="leave it out")  # fmt: skip
            self._pair(pose, model, paired_modes(several, model))
        self.start = dict(self.pairing.base)

    # -- the model ---------------------------------------------------------------------------------------------------

    def _sensors(self, pose: str) -> list[str]:
        return list(dict.fromkeys(name for k in self.of_pose[pose] for name in self.rows[k].shape))

    def unresponsive_sensors(self) -> list[str]:
        """Sensors that see nothing of any mode of the model at a pose, where none there sees anything."""
        blind = [
            model.sensors
            for model in self.start.values()
            if len(model.sensors) and not np.abs(model.seen).max() > 1e-12 * np.abs(model.shapes).max()
        ]  # rounding
        return list(dict.fromkeys(f"'{name}'" for several in blind for name in several))

    def numbers(self) -> list[int | None]:
        """Of each measured mode the number of its partner in the model that it is followed from, from 1."""
        numbers: list[int | None] = [None] * len(self.rows)
        for pose, indices in self.of_pose.items():
            for k, mode in zip(indices, self.pairing.pairs[pose], strict=True):
                numbers[k] = mode + 1 if mode >= 0 else None
        return numbers

    def _pair(self, pose: str, model: PoseModes, pairs: list[int]) -> None:
        now = self.pairing
        self.pairing = replace(now, base=now.base | {pose: model}, pairs=now.pairs | {pose: pairs})

    @property
    def error(self) -> Array:
        """Error of the model: shares of all frequencies and of all damping ratios."""
        return self.pairing.error

    def _with_error(self, error: Array) -> None:
        self.pairing = replace(self.pairing, error=error)

    def at(self, shares: Array, every: bool = True, counted: bool = False) -> FittedModes:
        """The model with these shares of the first numbers; of modes that are held out only if every one is asked.

        Measured modes are followed by shapes from the model that they were paired with, or counted anew in this one.
        """
        design = self.designs.of(self.first * shares)
        values, slopes = np.full(len(self.y), np.nan), np.zeros((len(self.y), len(self.keys)))
        modes, row_macs, excess = [-1] * len(self.rows), [1.0] * len(self.rows), np.zeros(len(self.rows))
        models: dict[str, PoseModes] = {}
        for pose, indices in self.of_pose.items():
            if not every and self.apart[indices].all():
                continue
            there = design.modes(pose, modes_needed([self.rows[k] for k in indices]))
            models[pose] = now = there.at_sensors(self._sensors(pose))
            if counted:
                self._pair(pose, now, paired_modes([self.rows[k] for k in indices], now))
            paired = [(k, mode) for k, mode in zip(indices, self.pairing.pairs[pose], strict=True) if mode >= 0]
            partners, macs = followed_pairs([mode for _, mode in paired], self.pairing.base[pose], now)
            for (k, _), mode, mac in zip(paired, partners, macs, strict=True):
                modes[k], row_macs[k], excess[k] = mode, mac, now.excess[mode]
                if self.apart[k] and not every:
                    continue
                if k not in self.damped:
                    values[k], slopes[k] = there.frequency(mode)
                    continue
                j = len(self.rows) + self.damped.index(k)
                values[k], values[j], slopes[k], slopes[j] = there.damped(mode)
        shares = np.array(shares, dtype=float)
        return FittedModes(shares, values, slopes * self.first, modes, row_macs, excess, models)

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

    @property
    def by_model(self) -> Array:
        """Deviations of the model from the robot by its error.

        Damping that is wrong moves frequencies in second order: the slope of sqrt(1 - ratio^2) is about -ratio.
        """
        by_damping = np.where(self.kind == 0, self.error[1] * self.ratio**2, 0.0)
        return np.hypot(self.error[self.kind], by_damping) * np.abs(self.y)

    def doubt(self, fit: FittedModes) -> Array:
        """Deviations of the model from the robot: elements that are too few, and its error."""
        return np.hypot(self.few(fit), self.by_model)

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

    def fitted(self, fit: FittedModes) -> FittedModes:
        """The best shares from those of a fit, with its pairs, weights and model error."""
        weights, known = self.weights(fit), {fit.shares.tobytes(): fit}
        used = weights > 0

        def at(shares: Array) -> FittedModes:
            key = shares.tobytes()
            if key not in known:
                known[key] = self.at(shares, every=False)
            return known[key]

        def left(shares: Array) -> Array:
            try:
                residuals = (at(shares).values - self.y) * weights
            except ParflexError:  # no robot has these numbers: the step is shortened
                return np.full(used.sum() + len(shares), np.inf)
            return np.concatenate([np.nan_to_num(residuals[used]), (shares - 1) / self.prior])

        def slopes(shares: Array) -> Array:
            return np.vstack([(at(shares).slopes * weights[:, None])[used], np.diag(1 / self.prior)])

        result = scipy.optimize.least_squares(
            left, fit.shares, slopes, bounds=(0.0, np.inf), x_scale=np.minimum(self.prior, 1.0), xtol=SETTLED,
            ftol=SETTLED**1.5, gtol=SETTLED,
        )  # fmt: skip
        return at(result.x)

    def plain(self, fit: FittedModes) -> FittedModes:
        """The best shares without a model error."""
        self._with_error(np.zeros(2))
        return self.fitted(fit)

    def explains(self, fit: FittedModes) -> bool:
        """Whether the residuals of a fit without a model error may be chance."""
        return not any(self._error(fit, kind) for kind in (0, 1))

    def weighed(self, fit: FittedModes) -> FittedModes:
        """The best shares, with the error of the model where residuals are larger than chance makes them.

        The first error is that of the model as it is: steps with too small deviations would go far for little.
        """
        self._with_error(np.zeros(2))
        self._with_error(np.array([self._error(fit, kind, chance=1.0) for kind in (0, 1)]))
        for _ in range(WIDENINGS):
            fit, last = self.fitted(fit), self.error
            self._with_error(np.array([self._error(fit, kind) for kind in (0, 1)]))
            if np.abs(self.error - last).max() <= STEADY * self.error.max():
                break
        return self.fitted(fit)

    def freedoms(self, fit: FittedModes, kind: int) -> float:
        """Of frequencies or damping ratios: how many more there are than the numbers take."""
        S = self.information(fit)
        taken = np.einsum("ij,jk,ik->i", S, self.covariance(fit), S)
        of_kind = self.kind[self.used(fit)] == kind
        return float(of_kind.sum() - taken[of_kind].sum())

    def _error(self, fit: FittedModes, kind: int, chance: float = CHANCE) -> float:
        """The error of the model with which weighted residuals are as many as freedoms; none where they may be chance.

        Fewer freedoms than a half show no error.
        """
        freedoms = self.freedoms(fit, kind)
        of_kind = self.used(fit) & (self.kind == kind)
        left, sizes = (self.y - fit.values)[of_kind], np.abs(self.y[of_kind])
        fixed = (self.given**2 + self.few(fit) ** 2)[of_kind]

        def over(share: float) -> float:
            return float((left**2 / (fixed + (share * sizes) ** 2)).sum()) - freedoms

        if freedoms <= 0.5 or over(0.0) <= 0 or over(0.0) + freedoms < scipy.special.chdtri(freedoms, chance):
            return 0.0
        high = float(np.sqrt((left**2 / sizes**2).sum() / freedoms)) + 1e-12
        return float(scipy.optimize.brentq(over, 0.0, high))

    def paired(self, fit: FittedModes, search: Callable[[FittedModes], FittedModes]) -> tuple[FittedModes, bool]:
        """The best shares, with partners by the updated model; and whether pairs were settled."""
        for _ in range(PAIRINGS):
            fit = self.at(search(fit).shares)
            changed = False
            for pose, indices in self.of_pose.items():
                several, now, before = (
                    [self.rows[k] for k in indices],
                    fit.models[pose],
                    [fit.modes[k] for k in indices],
                )
                pairs = paired_modes(several, now, before)
                if any(row.mode is None for row in several) and not same_pairs(pairs, before, now):
                    changed = True
                    self._pair(pose, now, pairs)
            if not changed:
                return fit, True
            fit = self.at(fit.shares, every=False)
        return self.at(search(fit).shares), False

    def before(self, fit: FittedModes, first: FittedModes) -> FittedModes:
        """The model of the file beside all that was measured, with the partners that were found."""
        if all(self.pairing.base[pose] is self.start[pose] for pose in self.of_pose):
            return first
        pairs = {pose: [fit.modes[k] for k in indices] for pose, indices in self.of_pose.items()}
        self.pairing = replace(self.pairing, base=dict(fit.models), pairs=pairs)
        return self.at(np.ones(len(self.keys)))

    def cost(self, fit: FittedModes) -> float:
        """Sum of squares of residuals, priors and shapes over their deviations, and of modes without a partner.

        Deviations that the model error widens cost twice the logarithm of that, as in -2 log of the likelihood.
        """
        used, spread = self.used(fit), self.spread(fit)
        total = float(
            (((self.y - fit.values) / spread)[used] ** 2).sum() + (((fit.shares - 1) / self.prior) ** 2).sum()
        )
        total += 2 * float(np.log(spread / np.hypot(self.given, self.few(fit)))[used].sum())
        for k in np.flatnonzero(~self.apart):
            row, mode = self.rows[k], fit.modes[k]
            if mode < 0:
                total += ALONE
            elif len(row.shape) > 1:
                total += ((1 - fit.models[row.pose].mac(row.shape, mode)) / SHAPES) ** 2
        return total


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Record):
    """A fit with its pairs and model error, its cost, and the inverse of the covariance of its shares."""

    fit: FittedModes
    pairing: Pairing
    settled: bool  # pairs of modes without a number
    cost: float
    precision: Array

    def near(self, shares: Array) -> bool:
        """Whether shares are within the 95 % region of this solution."""
        away = shares - self.fit.shares
        return float(away @ self.precision @ away) < region(len(shares))


def region(count: int) -> float:
    """Return the increase of the cost at the border of the 95 % region of so many numbers."""
    return float(scipy.special.chdtri(count, CHANCE))


def solutions(fitting: FitProblem, start: FittedModes, steps: FitProgress) -> list[Solution]:
    """Return the best solution, then others within its 95 % region.

    Pairs and model error of the fitting are those of the best solution.
    """
    import scipy.stats.qmc  # half a second, which the command line does not wait for

    first, size = fitting.pairing, len(fitting.prior)
    count = min(PER_NUMBER * size, MOST)
    places = scipy.stats.qmc.Sobol(size, scramble=False).random(count) + 0.5 / count
    scale = np.where(fitting.prior < NO_PRIOR, fitting.prior, 1.0)
    points = np.maximum(1 + FARTHEST * scale * (2 * places - 1), NEAREST)
    fitting.starts = 1 + len(points)
    steps.expect(fitting.starts)
    result = [_solution(fitting, start, fitting.plain)]
    steps.step()
    for shares in points:
        with suppress(ParflexError):  # a robot with these numbers does not vibrate, or cannot be assembled
            result.append(_solution(fitting, fitting.at(shares, every=False, counted=True), fitting.plain))
        steps.step()
    result = _distinct(result)
    fitting.pairing = result[0].pairing
    if not fitting.explains(result[0].fit):
        steps.expect(1 + len(result))
        begun, result = [start.shares, *(solution.fit.shares for solution in result)], []
        for shares in begun:
            fitting.pairing = first
            result.append(_solution(fitting, fitting.at(shares, every=False), fitting.weighed))
            steps.step()
        result = _distinct(result)
        fitting.pairing = result[0].pairing
    return result


def _distinct(candidates: Sequence[Solution]) -> list[Solution]:
    """Return the solution of the least cost, then those of a cost within its 95 % region that are apart."""
    candidates = sorted(candidates, key=lambda solution: solution.cost)
    distinct: list[Solution] = []
    for solution in candidates:
        likely = solution.cost < candidates[0].cost + region(len(solution.precision))
        if likely and not any(each.near(solution.fit.shares) for each in distinct):
            distinct.append(solution)
    return distinct


def _solution(fitting: FitProblem, start: FittedModes, search: Callable[[FittedModes], FittedModes]) -> Solution:
    fit, settled = fitting.paired(start, search)
    S = fitting.information(fit)
    return Solution(fit, fitting.pairing, settled, fitting.cost(fit), S.T @ S + np.diag(1 / fitting.prior**2))


class FitProgress:
    """Counts steps, and tells how many are done of those that are known; an error of the model makes them more."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress, self.done, self.known = progress, 0, 0

    def expect(self, count: int) -> None:
        """So many more are to come."""
        self.known += count
        if self.progress is not None and self.known:
            self.progress(self.done, self.known)

    def step(self) -> None:
        """One is done."""
        self.done += 1
        self.expect(max(self.done - self.known, 0))


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
    part = (fitting.by_model / fitting.spread(fit))[used]  # of deviations of the rows
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
