"""Identification by simulation under the controller (DIDIM, Gautier, Janot and Vandanjon).

Simulated efforts are fitted to measured ones by Gauss's method. Positions and rates come from the simulation and have
no noise, so only a filter common to both sides is needed. The controller reacts to parameters, so the dependence of
efforts on parameters follows from simulations, each with one parameter changed by about its deviation.

Positions and rates at the start follow from a few noisy samples, and soft controllers keep such an error for long. The
start of each record is a random number with the deviations that these samples leave: its effect on the efforts is part
of their covariance, by which rows are weighted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from parflex.codegen.family import family_model, member_model
from parflex.codegen.model import Model, cached_program
from parflex.codegen.options import Options
from parflex.codegen.outputs import contact_gaps
from parflex.codegen.tracer import Tracer
from parflex.control.control import LoopSettings, SampledRun
from parflex.control.laws import Gains, make_law
from parflex.control.plant import Plant
from parflex.dynamics.contact_state import with_gates_for_run, with_stiction
from parflex.errors import InputError
from parflex.forces.base_parameters import PARAMETERS, body_from_parameters, body_parameters
from parflex.identification.diagnostics import Misfit, misfits_of, noise_of_simulation
from parflex.identification.estimators import (
    EffortRows,
    LeastSquaresFit,
    condition_of,
    fit_rows,
    noise_of,
    solution,
)
from parflex.identification.preprocess import (
    FilterChoice,
    decimate_rows,
    fast_enough,
    kept_instants,
    payload_parameters,
)
from parflex.identification.recordings import ColumnMap, FeedbackLaw, Recording
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import BaseColumns
from parflex.identification.result import Prediction
from parflex.identification.unknowns import SPRINGS, by_direction, fields_of, with_element_numbers
from parflex.integrators.driver import grid_of
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.simulation.problem import Problem
from parflex.tree.force_elements import JointTerms, has_contacts
from parflex.tree.tree import Link

Array = np.ndarray
MOST_ROUNDS = 25
SETTLED, NEAR = 1e-6, 0.02  # of the efforts and of what is left of them: what a last round may change
WORSE = 1.02  # times the error before: a round may make it so much larger, as it does not go for the smallest one
SLOW = 0.5  # of the error that a round should take: where it takes less, slopes are found again for the next one
HALVINGS = 6
EDGE, WIDE = 0.1, 3  # s, or samples that are kept, cut at both ends
START = 20  # samples from which the state at the start follows
MOST_POWERS = 5  # of time, by which they are described; higher ones are taken in while they stand out of noise
SURE = 4.0  # standard deviations: a slower start is at rest
UNEVEN = 1e-3  # of a sample time: what it may miss a whole number of them in a step of the record by
STRAY = 0.5  # of the longest way of a motor: by so much positions may differ from those measured
LONGEST = 1e-3  # s, of an integration step
OFF = 0.37  # kg, N m, ...: by so much numbers of another member differ, so that all of them are inputs
TINY = 1e-12  # N, N s/m: of an element in place of zero, which would leave it out of the program
LEAST = 1e-9  # of the Coulomb friction of the file: less would let the joint slide in another program


@dataclass(frozen=True, eq=False, repr=False)
class SimulationRound(Record):
    """One simulation of all records: efforts along the rows, and all samples."""

    measured: list[Array]  # of each record, decimated
    simulated: list[Array]
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

    def _record(self, number: int, values: Array, start: Array) -> tuple[Array, Array, Array] | None:
        """One record: decimated efforts measured and simulated, residuals; None if it does not follow."""
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
        return thin[0], thin[1], measured - simulated

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
        now, made = state.now, []
        for number, record in enumerate(records):
            simulated, measured = now.simulated[number], now.measured[number]
            other = np.full_like(measured, np.nan) if by_file is None else by_file.now.simulated[number]
            shown = np.where(simulations.used[number], measured, np.nan)
            made.append(Prediction(record.name, simulations.instants(number), shown, simulated, other))
        return made

    def misfits(self) -> list[Misfit]:
        """Residuals of the records that were used, beside the noise of their efforts."""
        assert self.known is not None  # by a fit before
        records, simulations, state, _ = self.known
        now, names, result = state.now, self.members.regressor.rows, list[Misfit]()
        for number, record in enumerate(records):
            measured = now.measured[number]
            used, left = np.broadcast_to(simulations.used[number], measured.shape), measured - now.simulated[number]
            noise = partial(noise_of_simulation, now.left[number], record.step, self.choice)
            result += misfits_of(record.name, names, used, left, measured, noise)
        return result


# -- the closed loop ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class RecordedLaw(Record):
    """The controller of a measured robot for the loop: two programs, and rows of its reference."""

    robot: Robot
    sensed: list[str]
    geometry: Model
    program: Model
    rows: Array

    def reference_rows(self, track: Any, t: Array) -> Array:
        """What the controller is given of the reference."""
        return self.rows


@dataclass(frozen=True, eq=False, repr=False)
class RecordedStart(Record):
    """All positions and rates where a record begins, as the first rows of a track."""

    q: Array
    qd: Array


@dataclass(frozen=True, eq=False, repr=False)
class Replayed(Record):
    """What a simulated record has at the instants of the measured one: positions, rates of the motors and efforts."""

    q: Array
    rate: Array
    effort: Array


class Replay:
    """A record and its controller, ready to be simulated with any plant."""

    def __init__(self, regressor: Regressor, mapped: ColumnMap, record: Recording) -> None:
        self.regressor, self.record = regressor, record
        robot, law = regressor.robot, mapped.controller
        if law is None:
            raise InputError("simulation needs the controller of the robot", key="controller",
                             hint="describe it in [controller] of the map, or use iv")  # fmt: skip
        if record.reference is None:
            raise InputError("simulation needs the reference of the motors", file=record.name, key="reference",
                             hint="name its columns in [reference] of the map")  # fmt: skip
        sample = law.sample_time or record.step
        self.every = round(record.step / sample)
        if self.every < 1 or abs(self.every * sample / record.step - 1) > UNEVEN:
            raise InputError(
                f"a step of the record ({record.step:.4g} s) is not a whole number of sample times ({sample:.4g} s)",
                key="controller.sample_time", value=sample, hint="record at multiples of the sample time",
            )  # fmt: skip
        self.sample = record.step / self.every
        motors = list(robot.actuated_names)
        gains = np.array([mapped.effort[motor].gain for motor in motors])
        offset = np.array([mapped.effort[motor].offset for motor in motors])
        self.law = _law(robot, law, gains, offset, self._reference(law))
        limits = None
        if law.limit < np.inf:
            bound = np.abs(gains) * law.limit
            limits = {m: (o - b, o + b) for m, o, b in zip(motors, offset, bound, strict=True)}
        self.settings = LoopSettings(
            sample_time=self.sample, effort_limit=limits, step=min(LONGEST, self.sample), rates=law.rates,
            delay=law.delay,
        )  # fmt: skip
        self.first, self.unsure = self._start()
        self.posed = self.regressor.first(self.first[: len(motors)])

    def _reference(self, law: FeedbackLaw) -> Array:
        """Rows of the reference at the samples of the controller: positions, and rates and accelerations if it asks."""
        assert self.record.reference is not None
        t = np.arange((len(self.record.t) - 1) * self.every + 1) * self.sample
        known = self.record.t - self.record.t[0]
        rows = np.stack([np.interp(t, known, column) for column in self.record.reference.T], axis=1)
        if law.law == "cascade":
            return rows
        rate = np.gradient(rows, self.sample, axis=0)
        parts = [rows, rate] if law.law == "pd" else [rows, rate, np.gradient(rate, self.sample, axis=0)]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def _start(self) -> tuple[Array, Array]:
        """Where the motors stand at first, and how fast they are unless that is noise; and deviations of both."""
        count = min(START, len(self.record.t))
        u = np.arange(count) / count
        for degree in range(2, MOST_POWERS + 1):
            powers = u[:, None] ** np.arange(degree + 1)
            coefficients = np.linalg.lstsq(powers, self.record.position[:count], rcond=None)[0]
            left = ((self.record.position[:count] - powers @ coefficients) ** 2).sum(axis=0)
            noise = np.sqrt(left / max(count - degree - 1, 1))
            spread = noise * np.sqrt(np.diag(np.linalg.pinv(powers.T @ powers)))[:, None]
            if degree > 2 and not (np.abs(coefficients[-1]) > SURE * spread[-1]).any():
                break
            accepted = coefficients[:2], spread[:2]
        time = np.array([[1.0], [count * self.record.step]])
        first, spread = (part / time for part in accepted)
        first[1] = np.where(np.abs(first[1]) > SURE * spread[1], first[1], 0.0)
        return first.ravel(), spread.ravel()

    def begun(self, off: Array) -> RecordedStart:
        """The start, or another one that is so far off: in positions of the motors, then in their rates."""
        position, rate = np.split(self.first + off, 2)
        q = self.regressor.closed(position[None], self.posed)
        return RecordedStart(q, self.regressor.moved(q, rate[None], np.zeros((1, len(rate)))).qd)

    def run(self, plant: Plant, off: Array) -> Replayed | None:
        """The record moved by this plant, from a start that is so far off; None where it cannot be."""
        count = len(self.record.t)
        grid = grid_of((count - 1) * self.record.step, self.settings.step or LONGEST, self.sample)
        t = np.arange(grid.rows + 1) * self.sample
        law: Any = self.law
        begin: Any = self.begun(off)
        run = SampledRun(law, plant, begin, self.settings, grid, t)
        solution = run.go(begin.q[0], begin.qd[0, plant.problem.places], None)
        if solution.status != "ok" or not np.isfinite(solution.y).all():
            return None
        tree = plant.robot.tree
        q = solution.y[:: self.every, : tree.nq]
        if not self._follows(q[:, self.regressor.motor_q]):
            return None
        rates = solution.y[:: self.every, tree.nq : 2 * tree.nq][:, self.regressor.motor_q]
        return Replayed(q, rates, run.efforts[:: self.every][:count])

    def _follows(self, position: Array) -> bool:
        """Whether the motors stay near to where they were measured."""
        robot, off = self.regressor.robot, position - self.record.position
        links = [robot.tree.links[robot.tree.link_of_rate[k]] for k in robot.actuated]
        turning = np.array([link.periodic for link in links])
        off = np.where(turning, off - 2 * np.pi * np.round(off / (2 * np.pi)), off)
        travel = np.ptp(self.record.position, axis=0)
        return bool((np.abs(off) <= STRAY * travel.max(initial=0.0, where=travel > 0)).all())


def _law(robot: Robot, law: FeedbackLaw, gains: Array, offset: Array, rows: Array) -> RecordedLaw:
    motors = list(robot.actuated_names)
    tree = robot.tree
    places = [tree.links[tree.link_of_rate[k]].q.start for k in robot.actuated]
    first, second = (np.broadcast_to(np.asarray(gain, dtype=float), len(motors)) for gain in law.gains)
    if law.law == "ctc":
        made = make_law(robot, "ctc", Gains(float(first[0]), float(second[0])))
        return RecordedLaw(robot, motors, made.geometry, made.program, rows)

    def found(tracer: Tracer) -> dict[str, Array]:
        guess, measured = tracer.group("guess", tree.nq), tracer.group("measured", len(motors))
        q = guess.copy()
        q[places] = measured
        return {"q": q, "status": np.zeros(1)}

    def efforts(tracer: Tracer) -> dict[str, Array]:
        q, qd = tracer.group("q", tree.nq)[places], tracer.group("qd", len(motors))
        reference = tracer.group("reference", rows.shape[1])
        if law.law == "cascade":
            signal = second * (first * (reference - q) - qd)
        else:
            signal = first * (reference[: len(motors)] - q) + second * (reference[len(motors) :] - qd)
        return {"effort": gains * signal + offset}

    numbers = (law.law, *(tuple(map(float, row)) for row in (first, second, gains, offset)))
    geometry = cached_program(robot, "measured-motors", Options(), found)
    return RecordedLaw(
        robot, motors, geometry, cached_program(robot, "recorded-law", Options(), efforts, numbers), rows
    )


class PlantMembers:
    """Plants of one program, by values of the base parameters."""

    def __init__(self, regressor: Regressor, base: BaseColumns) -> None:
        self.regressor, self.base = regressor, base
        self.by_file = np.array([unknown.value for unknown in regressor.unknowns])
        if not base.kept:
            raise InputError("no motion of the motors identifies a parameter", key="robot", value=regressor.robot.name,
                             hint="give a robot with bodies that move")  # fmt: skip
        first, other = self._robot(self.by_file), self._robot(self.by_file + self._off())
        self.rates = family_model(first, other, "state-rates")
        self.watch: Model = family_model(first, first, "watch")
        # cables and play, whose numbers stay those of the file: when they pull, and when they are slack
        self.gaps = contact_gaps(first) if has_contacts(first.tree) else None

    def _off(self) -> Array:
        """Changes of all numbers that base columns and payloads change, in no simple ratio: these are inputs."""
        regressor = self.regressor
        tree, every = regressor.robot.tree, regressor.unknowns
        links = {every[k].link for k in self.base.kept} | {tree.places[tree.end_effector].link}
        changes = np.array([not unknown.of_body or unknown.link in links for unknown in every])
        return np.where(changes, OFF * np.sqrt(1 + np.arange(len(every))), 0.0)

    def plant(self, values: Array, carried: Mapping[int, float] = {}) -> Plant:
        """The plant with these base parameters: all are those of the file, but for base columns; and a payload."""
        theta = self.by_file.copy()
        theta[self.base.kept] += values - self.base.groups @ self.by_file
        for column, more in carried.items():
            theta[column] += more
        robot = self._robot(theta)
        problem = Problem(robot, member_model(self.rates, robot), "efforts", (), 0.0, gaps=self.gaps)
        return Plant(robot, problem, self.watch)

    def _robot(self, theta: Array) -> Robot:
        """The robot with these parameters, whose joints stick."""
        tree, every = self.regressor.robot.tree, self.regressor.unknowns
        by_link: dict[int, dict[str, float]] = {}
        elements: dict[str, dict[str, float]] = {}
        for unknown, value in zip(every, theta, strict=True):
            if unknown.element:
                elements.setdefault(unknown.element, {})[unknown.symbol] = float(value) or TINY
            else:
                by_link.setdefault(unknown.link, {})[unknown.symbol] = float(value)
        smooth = self.regressor.friction != "file"
        motors = {tree.link_of_rate[k] for k in self.regressor.robot.actuated} if smooth else set()
        links = []
        for j, link in enumerate(tree.links):
            numbers = by_link.get(j, {})
            terms = _terms(link, numbers, by_direction(every, j), j in motors)
            links.append(replace(link, body=_body(link, numbers), terms=terms))
        changed = replace(with_element_numbers(tree, elements), links=tuple(links))
        return with_gates_for_run(with_stiction(self.regressor.robot.on_tree(changed), False))


def _body(link: Link, numbers: Mapping[str, float]) -> Any:
    if not any(symbol in numbers for symbol in PARAMETERS):
        return link.body
    before = body_parameters(link.body.as_rigid())
    values: Sequence[float] = [numbers.get(symbol, value) for symbol, value in zip(PARAMETERS, before, strict=True)]
    return body_from_parameters(np.array(values))


def _terms(link: Link, numbers: Mapping[str, float], both: bool, smooth: bool) -> JointTerms:
    """Terms of a joint with these numbers; a joint that rubs in the file, or among the unknowns, still rubs."""
    terms = link.terms
    words: dict[str, Any] = {}
    if smooth:
        words |= dict.fromkeys(("viscous", "coulomb", "static", "more_viscous", "more_coulomb", "offset"), 0.0)
    if "IA" in numbers:
        words["motor_inertia"] = numbers["IA"]
    words |= fields_of({symbol: numbers[symbol] for symbol in SPRINGS if symbol in numbers}, damping="damper")
    if "offset" in numbers:
        words["offset"] = numbers["offset"]
    for forth, back, plain, more in (
        ("FV", "FV_back", "viscous", "more_viscous"), ("FS", "FS_back", "coulomb", "more_coulomb"),
    ):  # fmt: skip
        if forth not in numbers:
            continue
        forward, backward = numbers[forth], numbers.get(back, numbers[forth]) if both else numbers[forth]
        if plain == "coulomb":
            least = LEAST * max(abs(terms.coulomb), 1e-3)
            forward, backward = max(forward, least), max(backward, least)
        words |= {plain: (forward + backward) / 2, more: (forward - backward) / 2}
    return replace(terms, **words)
