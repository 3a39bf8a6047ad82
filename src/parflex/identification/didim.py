"""Identification by simulation under the controller (DIDIM, Gautier, Janot and Vandanjon).

Simulated efforts are fitted to measured ones by Gauss's method. Positions and rates come from the simulation and have
no noise, so only a filter common to both sides is needed. The controller reacts to parameters, so the dependence of
efforts on parameters follows from simulations, each with one parameter changed by about its deviation.

Positions and rates at the start follow from a few noisy samples, and soft controllers keep such an error for long. The
start of each record is a random number with the deviations that these samples leave: its effect on the efforts is part
of their covariance, by which rows are weighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.identification.closed_loop import PlantMembers, Replay
from parflex.identification.diagnostics import Misfit, misfits_of_simulation
from parflex.identification.estimators import (
    EffortRows,
    LeastSquaresFit,
    condition_of,
    fit_rows,
    noise_of,
    solution,
)
from parflex.identification.preprocess import (
    HARDLY,
    FilterChoice,
    butterworth,
    decimate_rows,
    fast_enough,
    kept_instants,
    payload_parameters,
)
from parflex.identification.recordings import ColumnMap, Recording
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import BaseColumns
from parflex.identification.result import Prediction
from parflex.records import Record

Array = np.ndarray
MOST_ROUNDS = 25
SETTLED, NEAR = 1e-6, 0.02  # of the efforts and of what is left of them: what a last round may change
WORSE = 1.02  # times the error before: a round may make it so much larger, as it does not go for the smallest one
SLOW = 0.5  # of the error that a round should take: where it takes less, slopes are found again for the next one
HALVINGS = 6
GAINS_OFF = 0.05  # of the following error: gains that are off by as much change it by as much
UNEXPLAINED = 2.0  # times the share of the efforts that the model misses: so much of the following error it misses, too
EDGE, WIDE = 0.1, 3  # s, or samples that are kept, cut at both ends


@dataclass(frozen=True, eq=False, repr=False)
class SimulationRound(Record):
    """One simulation of all records: efforts along the rows, and all samples."""

    measured: list[Array]  # of each record, decimated
    simulated: list[Array]
    positions: list[Array]  # simulated ones of the motors, at all samples of each record
    left: list[Array]  # measured less simulated efforts along the rows, at samples that are not cut

    @property
    def residual(self) -> Array:
        """Measured less simulated efforts of all records."""
        return np.concatenate([a - b for a, b in zip(self.measured, self.simulated, strict=True)])


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedState(Record):
    """Base parameters, the start of each record in deviations of what its first samples say, and the simulation."""

    values: Array
    starts: list[Array]
    now: SimulationRound
    error: float  # norm of the residuals that are used


class Simulations:
    """Records that are simulated again and again, with other parameters and starts."""

    def __init__(self, members: PlantMembers, replays: Sequence[Replay], choice: FilterChoice) -> None:
        self.members, self.replays, self.choice = members, list(replays), choice
        regressor = members.regressor
        self.carried = [
            payload_parameters(regressor, replay.record.payload) if replay.record.payload else {} for replay in replays
        ]
        self.none = [np.zeros(len(replay.first)) for replay in replays]
        self.count = 0  # simulations so far
        self.used: list[Array] = []  # rows of each record that are fast enough

    def _record(self, number: int, values: Array, start: Array) -> tuple[Array, Array, Array, Array] | None:
        """One record: decimated efforts measured and simulated, positions, residuals; None if it does not follow."""
        replay, choice, regressor = self.replays[number], self.choice, self.members.regressor
        plant = self.members.plant(values, self.carried[number])
        replayed = replay.run(plant, start * replay.unsure)
        if replayed is None:
            return None
        if len(self.used) <= number:
            rate = decimate_rows(choice.inside(replayed.rate), choice)
            self.used.append(fast_enough(regressor, rate, choice, replay.record.effort))
        measured, simulated = choice.inside(replay.record.effort), choice.inside(replayed.effort)
        if regressor.spare:
            acceleration = np.gradient(replayed.rate, replay.record.step, axis=0)
            moving = regressor.moved(*(choice.inside(part) for part in (replayed.q, replayed.rate, acceleration)))
            measured, simulated = (regressor.measured(moving, efforts) for efforts in (measured, simulated))
        thin = [decimate_rows(efforts, choice) for efforts in (measured, simulated)]
        return thin[0], thin[1], replayed.q[:, regressor.motor_q], measured - simulated

    def at(self, values: Array, starts: list[Array]) -> SimulatedState | None:
        """All records with these parameters and starts; None where the robot does not follow."""
        self.count += 1
        parts = []
        for number, start in enumerate(starts):
            part = self._record(number, values, start)
            if part is None:
                return None
            parts.append(part)
        now = SimulationRound(*map(list, zip(*parts, strict=True)))
        return SimulatedState(values, starts, now, float(np.linalg.norm(now.residual * np.concatenate(self.used))))

    def rows(self, W: Array, y: Array) -> EffortRows:
        """Rows of all records."""
        counts = np.cumsum([0, *(len(used) for used in self.used[:-1])])
        return EffortRows(W, y, tuple(map(int, counts)), used=np.concatenate(self.used))

    def by_parameters(self, state: SimulatedState, chosen: Sequence[int], spread: Array) -> Array:
        """How efforts depend on some base parameters: by a simulation of each, with about its deviation."""
        G = np.zeros((*state.now.residual.shape, len(chosen)))
        for place, k in enumerate(chosen):
            width = max(float(spread[place]), 1e-7 * abs(float(state.values[k])), 1e-12)
            trial = state.values.copy()
            trial[k] += width
            end = self.at(trial, state.starts)
            if end is not None:
                G[:, :, place] = (state.now.residual - end.now.residual) / width
        return G

    def by_starts(self, state: SimulatedState) -> list[Array]:
        """How efforts of each record depend on its start: by a simulation of each number, with its deviation."""
        several = []
        for number, (start, before) in enumerate(zip(state.starts, state.now.simulated, strict=True)):
            ends = [self._record(number, state.values, start + unit) for unit in np.eye(len(start))]
            several.append(np.stack([0 * before if end is None else end[1] - before for end in ends], axis=2))
        return several

    def moved(
        self, state: SimulatedState, rows: EffortRows, chosen: Sequence[int], step: Array, C: list[Array],
        weights: Array,
    ) -> tuple[Array, list[Array]]:  # fmt: skip
        """Parameters after a step, and the starts that are best with them."""
        values = state.values.copy()
        values[list(chosen)] += step
        left = rows.y - rows.W @ step
        return values, [
            best_start(column, left[part] + column @ start, weights[part])
            for column, start, part in zip(C, state.starts, rows.parts, strict=True)
        ]

    def forward(self, state: SimulatedState, values: Array, starts: list[Array]) -> SimulatedState | None:
        """A step that does not make efforts worse, halved until it does not."""
        for part in 0.5 ** np.arange(HALVINGS):
            between = [a + part * (b - a) for a, b in zip(state.starts, starts, strict=True)]
            end = self.at(state.values + part * (values - state.values), between)
            if end is not None and end.error <= WORSE * state.error:
                return end
        return None

    def fitted(
        self, begun: Sequence[Array], chosen: list[int], spread: Array
    ) -> tuple[SimulatedState, LeastSquaresFit, EffortRows]:
        """Parameters with which simulated efforts are those measured, from the best of some, and rows about them."""
        tried = [self.at(values, self.none) for values in begun]
        known = [state for state in tried if state is not None]
        if not known:
            raise InputError(
                "the robot does not follow its reference under the controller of the map", key="controller",
                hint="check gains, signs, units, limit and sample time of [controller]",
            )  # fmt: skip
        state, slow, fresh = min(known, key=lambda trial: trial.error), True, True
        for _ in range(MOST_ROUNDS):
            if slow:
                G, C, fresh = self.by_parameters(state, chosen, spread), self.by_starts(state), True
            rows = self.rows(G, state.now.residual)
            weights = solution(rows, "wls")[1]
            step = solution(whitened(rows, C, state.starts, weights), "wls")[0]
            values, starts = self.moved(state, rows, chosen, step, C, weights)
            size = float(np.linalg.norm(np.concatenate(state.now.measured)))
            if np.linalg.norm(G @ step) <= max(SETTLED * size, NEAR * state.error):
                break
            end = self.forward(state, values, starts)
            if end is None:
                break
            expected = float(np.linalg.norm((rows.y - G @ step) * rows.mask))
            slow, fresh, state = state.error - end.error < SLOW * (state.error - expected), False, end
        if not fresh:
            G, C = self.by_parameters(state, chosen, spread), self.by_starts(state)
        rows = self.rows(G, state.now.residual)
        weights = solution(rows, "wls")[1]
        linear = whitened(rows, C, state.starts, weights)
        linear = replace(linear, y=linear.y + linear.W @ state.values[chosen])
        fitted = fit_rows(linear, "wls")
        values, starts = self.moved(state, rows, chosen, fitted.values - state.values[chosen], C, weights)
        end = self.at(values, starts)
        state = state if end is None or end.error > WORSE * state.error else end
        residual = state.now.residual
        fitted = replace(
            fitted, values=state.values[chosen], residuals=residual, condition=condition_of(rows),
            noise=noise_of(rows, residual),
        )  # fmt: skip
        return state, fitted, linear

    def with_best_starts(self, values: Array, noise: Array) -> SimulatedState | None:
        """Known parameters with the starts of records as far as efforts show them."""
        state = self.at(values, self.none)
        if state is None:
            return None
        rows = self.rows(np.zeros((*state.now.residual.shape, 0)), state.now.residual)
        weights = rows.mask / np.maximum(noise, 1e-300)
        starts = self.moved(state, rows, [], np.zeros(0), self.by_starts(state), weights)[1]
        return self.forward(state, values, starts) or state

    def instants(self, number: int) -> Array:
        """Times of a record's rows."""
        record = self.replays[number].record
        return kept_instants(self.choice.inside(record.t), self.choice)


def whitened(rows: EffortRows, C: Sequence[Array], starts: Sequence[Array], weights: Array) -> EffortRows:
    """Rows of which the weighted least squares have the starts of the records as random numbers of deviation one.

    `C` are efforts per unit of each start. Rows times (1 + C C^T)^(-1/2), with weights, are independent.
    """
    W, y = rows.W.copy(), rows.y.copy()
    for column, start, part in zip(C, starts, rows.parts, strict=True):
        weight = weights[part]
        U, size, _ = np.linalg.svd((column * weight[:, :, None]).reshape(-1, column.shape[2]), full_matrices=False)
        both = np.concatenate([W[part], (y[part] + column @ start)[:, :, None]], axis=2) * weight[:, :, None]
        flat = both.reshape(-1, both.shape[2])
        flat = flat - U @ ((1 - 1 / np.sqrt(1 + size**2))[:, None] * (U.T @ flat))
        both = flat.reshape(both.shape) / np.where(weight > 0, weight, 1.0)[:, :, None]
        W[part], y[part] = both[:, :, :-1], both[:, :, -1]
    return replace(rows, W=W, y=y)


def best_start(column: Array, efforts: Array, weights: Array) -> Array:
    """A start from efforts (instants x rows), of deviation one by the first samples."""
    flat = (column * weights[:, :, None]).reshape(-1, column.shape[2])
    return np.linalg.solve(flat.T @ flat + np.eye(flat.shape[1]), flat.T @ (efforts * weights).ravel())


class SimulatedRecords:
    """What `identify` asks of simulations: a fit, and predictions by it."""

    def __init__(
        self, regressor: Regressor, base: BaseColumns, mapped: ColumnMap, choice: FilterChoice, step: float
    ) -> None:
        self.members = PlantMembers(regressor, base)
        # nothing is filtered but by decimation, so that its edges and the first transients are all that is cut
        shortest = max(round(EDGE / step), WIDE * choice.decimate)
        self.mapped, self.choice = mapped, replace(choice, edge=min(choice.edge, shortest))
        self.known: tuple[list[Recording], Simulations, SimulatedState, Array] | None = None  # of the fit, with noise
        self.steps: list[str] = []
        self.diagnostics: list[Diagnostic] = []

    def of(self, records: Sequence[Recording]) -> Simulations:
        """Records with their controller."""
        replays = [Replay(self.members.regressor, self.mapped, record) for record in records]
        return Simulations(self.members, replays, self.choice)

    def fitted(
        self, records: Sequence[Recording], identifiable: list[int], first: LeastSquaresFit, record_base: BaseColumns
    ) -> tuple[LeastSquaresFit, EffortRows]:
        """Parameters, begun with those of the file or the `first` ones, whichever follow the records better.

        Simulated robots keep the values of the file for what recordings do not identify; parameters of `record_base`
        keep a part of them.
        """
        by_file = self.members.base.groups @ self.members.by_file
        part = (record_base.groups @ self.members.by_file - by_file)[identifiable]
        start = by_file.copy()
        start[identifiable] = first.values - part
        simulations = self.of(records)
        spread = np.sqrt(np.maximum(np.diag(first.white), 0.0))
        state, fitted, rows = simulations.fitted([by_file, start], identifiable, spread)
        self.known = list(records), simulations, state, fitted.noise
        self.steps = [
            f"simulated under the controller of the map {simulations.count} times; its positions need no filter, "
            f"{self.choice.cut} samples are cut at both ends"
        ]
        return replace(fitted, values=fitted.values + part), replace(rows, y=rows.y + rows.W @ part)

    def predictions(self, records: Sequence[Recording]) -> list[Prediction]:
        """Efforts of records by simulation, and by that of the robot of the file."""
        if not records:
            return []
        assert self.known is not None  # by a fit before
        used, simulations, state, noise = self.known
        if list(records) != used:
            simulations = self.of(records)
            best = simulations.with_best_starts(state.values, noise)
            if best is None:
                raise InputError(
                    "the robot does not follow the reference of this record under the controller of the map",
                    file=records[0].name, key="controller", hint="check it, or leave the record out",
                )  # fmt: skip
            state = best
        by_file = simulations.at(self.members.base.groups @ self.members.by_file, state.starts)
        now, made, worst = state.now, [], 0.0
        for number, record in enumerate(records):
            simulated, measured = now.simulated[number], now.measured[number]
            other = np.full_like(measured, np.nan) if by_file is None else by_file.now.simulated[number]
            shown = np.where(simulations.used[number], measured, np.nan)
            made.append(Prediction(record.name, simulations.instants(number), shown, simulated, other))
            missed = tracking_errors(record, now.positions[number], self.choice)
            worst = max(worst, float(missed.max()))
            self.diagnostics += self._missed(record, missed, made[-1].relative_error)
        self.steps.append(f"simulated positions miss those recorded by {100 * worst:.3g} % of the following error")
        return made

    def _missed(self, record: Recording, missed: Array, unexplained: float) -> list[Diagnostic]:
        """A diagnostic where a motor does not follow its reference as it did; `unexplained` is the share of efforts.

        Under computed torque what is left to follow is the error of the model: it says nothing of the gains.
        """
        k = int(np.argmax(missed))
        law = self.mapped.controller
        if law is None or law.law == "ctc" or missed[k] <= max(GAINS_OFF, UNEXPLAINED * unexplained):
            return []
        motor = self.members.regressor.robot.actuated_names[k]
        text = (
            f"{Path(record.name).name}: under the controller of the map '{motor}' misses recorded positions by "
            f"{100 * missed[k]:.3g} % of its following error: check gains, sample time and delay of [controller]"
        )
        return [Diagnostic("missed-tracking", text, motor, float(missed[k]))]

    def misfits(self) -> list[Misfit]:
        """Residuals of the records that were used, beside the noise of their efforts."""
        assert self.known is not None  # by a fit before
        records, simulations, state, _ = self.known
        now, names, misfits = state.now, self.members.regressor.rows, []
        for number, record in enumerate(records):
            measured = now.measured[number]
            mask, left = np.broadcast_to(simulations.used[number], measured.shape), measured - now.simulated[number]
            misfits += misfits_of_simulation(
                names, record.name, mask, left, measured, now.left[number], record.step, self.choice
            )
        return misfits


def tracking_errors(record: Recording, simulated: Array, choice: FilterChoice) -> Array:
    """What simulated positions miss as a share of the following error of each motor, beyond noise behind the filter."""
    assert record.reference is not None
    band = 2 * choice.cutoff * record.step

    def power(values: Array) -> Array:
        return np.asarray((choice.inside(butterworth(values, band)) ** 2).mean(axis=0))

    rough = record.position - butterworth(record.position, band)
    noise = HARDLY**2 * choice.inside(rough).var(axis=0) * band / (1 - band)
    off = np.maximum(power(record.position - simulated) - noise, 0.0)
    return np.sqrt(off / np.maximum(power(record.reference - record.position), 1e-300))
