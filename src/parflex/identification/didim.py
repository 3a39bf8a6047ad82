"""Identification by simulation under the controller (DIDIM, Gautier, Janot and Vandanjon).

Simulated efforts are fitted to measured ones. Positions and rates come from the simulation and have no noise, so only a
filter common to both sides is needed.

The controller reacts to parameters, so the dependence of efforts on parameters follows from linear equations or from
simulations; until then the regressor along the simulated motion may serve. A parameter acts as an effort does, by its
column w of the regressor: M a + D v + K x + w = u. Here x, v and a are the changes of the motion of the motors; M, D
and K the derivatives of efforts by accelerations, rates and positions; u the response of the controller, held for a
sample. Another start has no w, but an initial x or v. One pass over the samples serves all parameters and starts;
simulations need one pass for each.

Positions and rates at the start follow from a few noisy samples, and soft controllers keep such an error for long. The
starts of the records are therefore estimated with the parameters, in all directions that affect efforts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError
from parflex.identification.closed_loop import PlantMembers, Replay, Replayed
from parflex.identification.estimators import EffortRows, LeastSquaresFit, fit_rows, noise_of, solution
from parflex.identification.payloads import payload_parameters
from parflex.identification.preprocess import (
    HARDLY,
    FilterChoice,
    butterworth,
    decimate_rows,
    fast_enough,
    join_rows,
    kept_instants,
)
from parflex.identification.recordings import ColumnMap, FeedbackLaw, Recording
from parflex.identification.regressor import ClosedMotion, Regressor
from parflex.identification.regressor_columns import BaseColumns
from parflex.identification.residual_noise import Misfit, misfits_of_simulation
from parflex.identification.result import Prediction
from parflex.records import Record

Array = np.ndarray

MOST_ROUNDS = 25

SETTLED = 1e-6  # of the efforts, by which a round may still change what is predicted

NEAR = 0.02  # of what is left of them, likewise: the last step is by the dependence of the simulations themselves

WORSE = 1.02  # times the error before: a round may make it so much larger, as it does not go for the smallest one

SLOW = 0.5  # of the error that a round should take: where it takes less, slopes are found again for the next one

HALVINGS = 6

SPAN = 1.0  # deviations: over so much simulations tell how efforts depend on a parameter

CONFIRMED = 2  # simulations that linear equations must agree with

ALIKE = 0.03  # of a change of efforts, by which they may be off there: deviations are then about as much off

EDGE, WIDE = 0.1, 3  # s, or samples that are kept, cut at both ends

STEPS = 3  # of Gauss's method for the start of a record that was not used

GAINS_OFF = 0.05  # of the following error: gains that are off by as much change it by as much

UNEXPLAINED = 2.0  # times the share of the efforts that the model misses: so much of the following error it misses, too

# of the noise of efforts, all rows together, per deviation of a start: less makes no variance of a parameter larger by
# more than the square of it, and of such directions the first samples tell more than efforts do
UNSEEN = 0.1

KNOTS = 1e-2  # s, about: between them M, D and K are straight lines, as positions of robots nearly are

BESIDE = 1e-6  # rad, or typical lengths, and per second: of differences, which leave as much of M, D and K out


@dataclass(frozen=True, eq=False, repr=False)
class SimulationRound(Record):
    """One simulation of all records: rows of measured less simulated efforts."""

    rows: EffortRows
    parts: list[tuple[Array, Array]]  # measured and simulated efforts of each record
    positions: list[Array]  # simulated ones of the motors, at all samples of each record
    left: list[Array]  # measured less simulated efforts along the rows, at samples that are not cut

    @property
    def error(self) -> float:
        """Norm of measured less simulated efforts."""
        return float(np.linalg.norm(self.rows.y * self.rows.mask))


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedFit(Record):
    """Parameters by simulation.

    Attributes
    ----------
    fitted : Fit
        Parameters that the records tell, with covariances.
    rows : EffortRows
        What the last round solved, less what starts of the records explain.
    rounds : int
        Simulations of all records until parameters settled.
    values : Array
        All base parameters, and coordinates of the starts.
    last : Round
        The simulation with these values.
    """

    fitted: LeastSquaresFit
    rows: EffortRows
    rounds: int
    values: Array
    last: SimulationRound


class Simulations:
    """Records that are simulated again and again, with other parameters.

    `values` are base parameters, followed by coordinates of the starts where these are looked for.
    """

    def __init__(self, members: PlantMembers, replays: Sequence[Replay], choice: FilterChoice) -> None:
        self.members, self.replays, self.choice = members, list(replays), choice
        regressor, self.size = members.regressor, len(members.base.kept)
        self.carried = [
            payload_parameters(regressor, replay.record.payload) if replay.record.payload else {} for replay in replays
        ]
        self.count = 0  # simulations so far
        self.response: Array | None = None  # by linear equations, the last one
        self.kept: list[Array] = []  # rows of each record that are fast enough
        self.measured: list[Array] = []  # decimated efforts of each record, where motors are rows
        self.ways = [np.zeros((len(replay.first), 0)) for replay in replays]  # of the starts, that are looked for
        self.started: list[Array] = []  # how efforts of each record depend on its start

    def places(self, identifiable: list[int]) -> list[int]:
        """Where values have the base parameters that are told, and all coordinates of the starts."""
        return [*identifiable, *range(self.size, self.size + sum(basis.shape[1] for basis in self.ways))]

    def _moved(self, number: int, values: Array) -> Replayed | None:
        """One record, simulated."""
        off = start_offsets(self.ways, values[self.size :])[number]
        plant = self.members.plant(values[: self.size], self.carried[number])
        return self.replays[number].run(plant, off if off.any() else None)

    def at(self, values: Array, regressed: bool = True) -> SimulationRound | None:
        """All records with these parameters and starts; None where the robot does not follow."""
        regressor, choice, columns = self.members.regressor, self.choice, self.members.base.kept
        self.count += 1
        rows, parts, positions, left = [], [], [], []
        for number, replay in enumerate(self.replays):
            replayed = self._moved(number, values)
            if replayed is None:
                return None
            inside = slice(choice.edge, len(replay.record.t) - choice.edge)
            # the motion of all joints costs as much as the simulation: only where something asks for it
            moving = replay.moving(replayed).part(inside) if regressed or regressor.spare else None
            simulated = self._rows(moving, replayed.effort)
            rate = decimate_rows(replayed.rate[inside], choice)
            if len(self.kept) <= number:
                self.kept.append(fast_enough(regressor, rate, choice, replay.record.effort))
                self.measured.append(self._rows(moving, replay.record.effort))
            measured = self._rows(moving, replay.record.effort) if regressor.spare else self.measured[number]
            W = (
                decimate_rows(regressor.of(moving, columns)[0], choice)
                if regressed and moving
                else simulated[:, :, None]
            )
            known, used = np.zeros_like(measured), self.kept[number]
            rows.append(EffortRows(W, measured - simulated, rate=rate, known=known, used=used))
            parts.append((measured, simulated))
            positions.append(replayed.q[:, regressor.motor_q])
            left.append(self._along_rows(moving, replay.record.effort - replayed.effort))
        return SimulationRound(join_rows(rows), parts, positions, left)

    def add_observable_starts(self, values: Array, identifiable: list[int], now: SimulationRound) -> Array:
        """Take what efforts show of the starts among the unknowns: values with it, none of it yet."""
        parts = self._linear(values, identifiable)
        if parts is not None:
            slopes, self.started = np.concatenate([part[0] for part in parts]), [part[1] for part in parts]
        else:
            simulated = self.at(values)
            assert simulated is not None  # as it was before
            slopes, self.started = simulated.rows.W[:, :, identifiable], self._by_starts(values, now)
        weights = solution(replace(now.rows, W=slopes), "wls")[1]
        spreads = [replay.unsure for replay in self.replays]
        self.ways = observable_starts(self.started, spreads, [weights[part] for part in now.rows.parts])
        starts = start_effects(self.started, self.ways)
        self.response = None if parts is None else np.concatenate([slopes, starts], axis=2)
        return np.concatenate([values[: self.size], np.zeros(starts.shape[2])])

    def show_starts(self, values: Array, now: SimulationRound, weights: Array) -> Array:
        """How efforts depend on what they show of the starts, where parameters are known."""
        parts = self._linear(values, [])
        self.started = self._by_starts(values, now) if parts is None else [part[1] for part in parts]
        spreads = [replay.unsure for replay in self.replays]
        self.ways = observable_starts(self.started, spreads, [weights[part] for part in now.rows.parts])
        return start_effects(self.started, self.ways)

    def slopes(self, values: Array, identifiable: list[int], again: bool = True) -> Array:
        """How efforts depend on parameters and starts, nearly: by linear equations, or else by the regressor."""
        if self.response is None or again:
            self.response = self.linear(values, identifiable)
        if self.response is not None:
            return self.response
        simulated = self.at(values)
        assert simulated is not None  # as it was before
        return np.concatenate([simulated.rows.W[:, :, identifiable], start_effects(self.started, self.ways)], axis=2)

    def linear(self, values: Array, identifiable: list[int]) -> Array | None:
        """How efforts of all records depend on some base parameters and the starts; None where no equations say it."""
        parts = self._linear(values, identifiable)
        if parts is None:
            return None
        by_starts = start_effects([part[1] for part in parts], self.ways)
        return np.concatenate([np.concatenate([part[0] for part in parts]), by_starts], axis=2)

    def _linear(self, values: Array, identifiable: list[int]) -> list[tuple[Array, Array]] | None:
        """Of each record by linear equations: per unit of base parameters, and of all numbers of its start."""
        members, parts = self.members, []
        columns = [members.base.kept[k] for k in identifiable]
        for number, (replay, carried) in enumerate(zip(self.replays, self.carried, strict=True)):
            replayed = self._moved(number, values)
            theta = members.parameters(values[: self.size], carried)
            answers = None if replayed is None else linear_response(members.regressor, replay, replayed, theta, columns)
            if answers is None:
                return None
            thin = decimate_rows(self.choice.inside(answers), self.choice)
            parts.append((thin[:, :, : len(identifiable)], thin[:, :, len(identifiable) :]))
        return parts

    def _by_starts(self, values: Array, now: SimulationRound) -> list[Array]:
        """How efforts of each record depend on all numbers of its start, by a simulation of each."""
        bases, self.ways = self.ways, [np.diag(replay.unsure) for replay in self.replays]
        numbers = len(self.replays[0].first)
        slopes = np.zeros((*now.rows.y.shape, numbers))
        for k in range(numbers):
            coordinates = np.tile(np.arange(numbers) == k, len(self.replays)).astype(float)
            end = self.at(np.concatenate([values[: self.size], coordinates]), regressed=False)
            slopes[:, :, k] = 0.0 if end is None else now.rows.y - end.rows.y
        self.ways = bases
        return [
            slopes[part] / np.maximum(replay.unsure, 1e-300)
            for part, replay in zip(now.rows.parts, self.replays, strict=True)
        ]

    def _rows(self, moving: ClosedMotion | None, effort: Array) -> Array:
        """Efforts along the rows, decimated."""
        return decimate_rows(self._along_rows(moving, effort), self.choice)

    def _along_rows(self, moving: ClosedMotion | None, effort: Array) -> Array:
        """The same at all samples that are not cut; those of motors need no motion."""
        inside = self.choice.inside(effort)
        return inside if moving is None else self.members.regressor.measured(moving, inside)

    def instants(self, number: int) -> Array:
        """Times of a record's rows."""
        record = self.replays[number].record
        return kept_instants(self.choice.inside(record.t), self.choice)


def didim(simulations: Simulations, identifiable: list[int], starts: Sequence[Array]) -> SimulatedFit:
    """Parameters with which simulated efforts are those measured, from the best of some starts."""
    tried = [(values, simulations.at(values, regressed=False)) for values in starts]
    known = [(values, simulated) for values, simulated in tried if simulated is not None]
    if not known:
        raise InputError(
            "the robot does not follow its reference under the controller of the map", key="controller",
            hint="check gains, signs, units, limit and sample time of [controller]",
        )  # fmt: skip
    values, now = min(known, key=lambda trial: trial[1].error)
    rounds, slow = len(tried), False
    values = simulations.add_observable_starts(values, identifiable, now)
    for _ in range(MOST_ROUNDS):
        slopes = simulations.slopes(values, identifiable, slow)
        step = solution(replace(now.rows, W=slopes), "wls")[0]
        size = np.linalg.norm(np.concatenate([part for part, _ in now.parts]))
        if float(np.linalg.norm(slopes @ step)) <= max(float(SETTLED * size), NEAR * now.error):
            break
        expected = now.error - float(np.linalg.norm((now.rows.y - slopes @ step) * now.rows.mask))
        before = now.error
        values, now, more = _forward(simulations, values, now, identifiable, step)
        rounds, slow = rounds + more, before - now.error < SLOW * expected
        if more > HALVINGS:
            break
    return _judged(simulations, values, now, identifiable, rounds)


def _forward(
    simulations: Simulations, values: Array, now: SimulationRound, identifiable: list[int], step: Array
) -> tuple[Array, SimulationRound, int]:
    """A step that does not make efforts worse, halved until it does not; its simulations."""
    for halved in range(HALVINGS):
        trial = values.copy()
        trial[simulations.places(identifiable)] += step / 2**halved
        simulated = simulations.at(trial, regressed=False)
        if simulated is not None and simulated.error <= WORSE * now.error:
            return trial, simulated, halved + 1
    return values, now, HALVINGS + 1


def _judged(
    simulations: Simulations, values: Array, now: SimulationRound, identifiable: list[int], rounds: int
) -> SimulatedFit:
    """The last step with the dependence of simulated efforts themselves, and covariances with it."""
    before, places, count = simulations.count, simulations.places(identifiable), len(identifiable)
    G = effort_dependence(simulations, values, now.rows, identifiable)
    linear = replace(now.rows, W=G, y=now.rows.y + G @ values[places])
    fitted = fit_rows(linear, "wls")
    moved = values.copy()
    moved[places] = fitted.values
    simulated = simulations.at(moved, regressed=False)
    if simulated is None or simulated.error > WORSE * now.error:
        simulated, moved = now, values
    fitted = _about(fitted, moved, identifiable, simulated, linear)
    # what follows asks for parameters alone: rows without what starts explain of them give the same
    both = np.concatenate([G[:, :, :count], linear.y[:, :, None]], axis=2)
    left = projected_out(G[:, :, count:], both, fitted.weights)
    rows = replace(linear, W=left[:, :, :-1], y=left[:, :, -1])
    return SimulatedFit(fitted, rows, rounds + simulations.count - before, moved, simulated)


def effort_dependence(simulations: Simulations, values: Array, rows: EffortRows, identifiable: list[int]) -> Array:
    """How simulated efforts depend on parameters, as rows: by linear equations if simulations say alike."""
    for again in (False, True):
        G = simulations.linear(values, identifiable) if again else simulations.response
        if G is not None and _confirmed(simulations, values, rows, identifiable, G, _spread(replace(rows, W=G))):
            return G
    regressed = simulations.at(values)
    assert regressed is not None  # as it was before
    W = np.concatenate(
        [regressed.rows.W[:, :, identifiable], start_effects(simulations.started, simulations.ways)], axis=2
    )
    nearly = replace(rows, W=W)
    return by_simulations(simulations, values, nearly, identifiable, _spread(nearly))


def _spread(rows: EffortRows) -> Array:
    """White deviations of the unknowns."""
    return np.sqrt(np.maximum(np.diag(fit_rows(rows, "wls").white), 0.0))


def _confirmed(
    simulations: Simulations, values: Array, rows: EffortRows, identifiable: list[int], G: Array, spread: Array
) -> bool:
    """Whether efforts change as G says where all parameters change, each by a deviation to either side."""
    for signs in np.random.default_rng(0).choice([-SPAN, SPAN], (CONFIRMED, len(spread))):
        trial = values.copy()
        trial[simulations.places(identifiable)] += signs * spread
        end = simulations.at(trial, regressed=False)
        changed = np.zeros_like(rows.y) if end is None else (rows.y - end.rows.y) * rows.mask
        if not np.linalg.norm(changed - (G @ (signs * spread)) * rows.mask) <= ALIKE * np.linalg.norm(changed):
            return False
    return True


def by_simulations(
    simulations: Simulations, values: Array, rows: EffortRows, identifiable: list[int], spread: Array
) -> Array:  # fmt: skip
    """The same by one simulation of each parameter."""
    G = rows.W.copy()
    for place, k in enumerate(simulations.places(identifiable)):
        width = max(SPAN * float(spread[place]), 1e-7 * abs(float(values[k])), 1e-12)
        trial = values.copy()
        trial[k] += width
        end = simulations.at(trial, regressed=False)
        if end is not None:
            G[:, :, place] = (rows.y - end.rows.y) / width
    return G


def _about(
    fitted: LeastSquaresFit, values: Array, identifiable: list[int], simulated: SimulationRound, linear: EffortRows
) -> LeastSquaresFit:
    """The fit of the parameters that are told, with values and residuals of a simulation."""
    count, noise = len(identifiable), noise_of(simulated.rows, simulated.rows.y)
    white, robust = fitted.white[:count, :count], fitted.robust[:count, :count]
    masked_rows = (linear.W[:, :, :count] * linear.mask[:, :, None]).reshape(-1, count)
    condition = float(np.linalg.cond(np.linalg.qr(masked_rows, mode="r")))
    return LeastSquaresFit(
        values[identifiable], white, robust, simulated.rows.y, condition, noise, fitted.lag, fitted.weights
    )


class SimulatedRecords:
    """What `identify` asks of simulations: a fit, and predictions by it."""

    def __init__(
        self, regressor: Regressor, base: BaseColumns, mapped: ColumnMap, choice: FilterChoice, step: float
    ) -> None:
        self.members = PlantMembers(regressor, base)
        # nothing is filtered but by decimation, so that its edges and the first transients are all that is cut
        shortest = max(round(EDGE / step), WIDE * choice.decimate)
        self.mapped, self.choice = mapped, replace(choice, edge=min(choice.edge, shortest))
        self.values = np.zeros(len(base.kept))
        self.known: tuple[list[Recording], Simulations, SimulatedFit] | None = None  # records that were used
        self.steps: list[str] = []
        self.diagnostics: list[Diagnostic] = []

    def of(self, records: Sequence[Recording]) -> Simulations:
        """Records with their controller."""
        return Simulations(
            self.members, [Replay(self.members.regressor, self.mapped, record) for record in records], self.choice
        )

    def fitted(
        self, records: Sequence[Recording], identifiable: list[int], first: Array, record_base: BaseColumns
    ) -> tuple[LeastSquaresFit, EffortRows]:
        """Parameters, begun with those of the file or the `first` ones, whichever follow the records better.

        Simulated robots keep the values of the file for what recordings do not identify; parameters of `record_base`
        keep a part of them.
        """
        by_file = self.members.base.groups @ self.members.by_file
        part = (record_base.groups @ self.members.by_file - by_file)[identifiable]
        start = by_file.copy()
        start[identifiable] = first - part
        simulations = self.of(records)
        fit = didim(simulations, identifiable, [by_file, start])
        self.values, self.known = fit.values[: len(by_file)], (list(records), simulations, fit)
        self.steps = [
            f"simulated under the controller of the map {fit.rounds} times; its positions need no filter, "
            f"{self.choice.cut} samples are cut at both ends"
        ]
        rows = replace(fit.rows, y=fit.rows.y + fit.rows.W @ part)
        return replace(fit.fitted, values=fit.fitted.values + part), rows

    def predictions(self, records: Sequence[Recording]) -> list[Prediction]:
        """Efforts of records by simulation, and by that of the robot of the file."""
        if not records:
            return []
        simulations, starts, simulation = self._simulated(records)
        by_file = self.members.base.groups @ self.members.by_file
        other_robot = simulations.at(np.concatenate([by_file, starts]), regressed=False)
        made = []
        for number, (record, (measured, simulated)) in enumerate(zip(records, simulation.parts, strict=True)):
            other = np.full_like(measured, np.nan) if other_robot is None else other_robot.parts[number][1]
            shown = np.where(simulations.kept[number], measured, np.nan)
            made.append(Prediction(record.name, simulations.instants(number), shown, simulated, other))
        self._check_tracking(records, simulation.positions, made)
        return made

    def misfits(self) -> list[Misfit]:
        """Residuals of the records that were used, beside the noise of their efforts."""
        assert self.known is not None  # by a fit before
        records, simulations, fit = self.known
        names, misfits = self.members.regressor.rows, []
        for number, (record, (measured, made), left) in enumerate(
            zip(records, fit.last.parts, fit.last.left, strict=True)
        ):
            mask = np.broadcast_to(simulations.kept[number], measured.shape)
            misfits += misfits_of_simulation(
                names, record.name, mask, measured - made, measured, left, record.step, self.choice
            )
        return misfits

    def _simulated(self, records: Sequence[Recording]) -> tuple[Simulations, Array, SimulationRound]:
        """Records with the parameters that were found, their starts, and the simulation."""
        assert self.known is not None  # by a fit before
        used, simulations, fit = self.known
        if list(records) == used:
            return simulations, fit.values[len(self.values) :], fit.last
        simulations = self.of(records)
        simulation = simulations.at(self.values, regressed=False)
        if simulation is None:
            raise InputError(
                "the robot does not follow the reference of this record under the controller of the map",
                file=records[0].name, key="controller", hint="check it, or leave the record out",
            )  # fmt: skip
        values, simulation = refined_starts(simulations, self.values, simulation, fit.fitted.noise)
        return simulations, values[len(self.values) :], simulation

    def _check_tracking(self, records: Sequence[Recording], positions: list[Array], made: list[Prediction]) -> None:
        assert self.mapped.controller is not None
        motors = self.members.regressor.robot.actuated_names
        shares = [
            tracking_errors(record, simulated, self.choice)
            for record, simulated in zip(records, positions, strict=True)
        ]
        worst = max(float(share.max()) for share, _ in shares)
        self.steps.append(f"simulated positions miss those recorded by {100 * worst:.3g} % of the following error")
        self.diagnostics += tracking_warnings(motors, self.mapped.controller, records, shares, made)


def refined_starts(
    simulations: Simulations, values: Array, now: SimulationRound, noise: Array
) -> tuple[Array, SimulationRound]:
    """Parameters with the starts of records that were not used, as far as efforts show them, and the simulation.

    First samples say where a record starts, with deviations, and efforts the rest: both count by their noise, so that
    a start is not where parameters would need it.
    """
    weights = now.rows.mask / np.maximum(noise, 1e-300)
    columns = simulations.show_starts(values, now, weights)
    size = columns.shape[2]
    if not size:
        return values, now
    values = np.concatenate([values, np.zeros(size)])
    for _ in range(STEPS):
        trial = values.copy()
        trial[-size:] = shrunk_start(columns, now.rows.y + columns @ values[-size:], weights)
        simulated = simulations.at(trial, regressed=False)
        if simulated is None or not simulated.error < now.error:
            break
        values, now = trial, simulated
    return values, now


def tracking_errors(record: Recording, simulated: Array, choice: FilterChoice) -> tuple[Array, Array]:
    """Of each motor: what simulated positions miss as a share of the following error, and over what noise makes."""
    assert record.reference is not None
    band = 2 * choice.cutoff * record.step

    def smooth(values: Array) -> Array:
        return choice.inside(butterworth(values, band))

    def size(values: Array) -> Array:
        return np.asarray(np.sqrt((values**2).mean(axis=0)))

    noise = (choice.inside(record.position) - smooth(record.position)).std(axis=0) * np.sqrt(band / (1 - band))
    off, behind = size(smooth(record.position - simulated)), size(smooth(record.reference - record.position))
    return off / np.maximum(behind, 1e-300), off / np.maximum(noise, 1e-300)


def tracking_warnings(
    motors: Sequence[str], law: FeedbackLaw, records: Sequence[Recording], shares: Sequence[tuple[Array, Array]],
    predictions: Sequence[Prediction],
) -> list[Diagnostic]:  # fmt: skip
    """Diagnostics of motors that do not follow the reference under the controller of the map as they did.

    Under computed torque what is left to follow is the error of the model: it says nothing of the gains.
    """
    messages: list[Diagnostic] = []
    if law.law == "ctc":
        return messages
    for record, (share, over), prediction in zip(records, shares, predictions, strict=True):
        limit = max(GAINS_OFF, UNEXPLAINED * prediction.relative_error)
        far = [k for k in range(len(motors)) if share[k] > limit and over[k] > HARDLY]
        if far:
            k = max(far, key=lambda index: float(share[index]))
            text = (
                f"{Path(record.name).name}: under the controller of the map '{motors[k]}' misses recorded positions by "
                f"{100 * share[k]:.3g} % of its following error: check gains, sample time and delay of [controller]"
            )
            messages.append(Diagnostic("missed-tracking", text, motors[k], float(share[k])))
    return messages


def observable_starts(responses: Sequence[Array], spreads: Sequence[Array], weights: Sequence[Array]) -> list[Array]:
    """Of each record, the directions of its start (numbers x directions) that efforts show, in deviations of it.

    `responses` (instants x rows x numbers) are efforts per unit of a start, `spreads` its deviations as the first
    samples leave them, `weights` (instants x rows) one over the noise of efforts, or zero where they are not used.
    """
    result = []
    for response, spread, weight in zip(responses, spreads, weights, strict=True):
        shown = (response * spread * weight[:, :, None]).reshape(-1, len(spread))
        _, sizes, directions = np.linalg.svd(shown, full_matrices=False)
        result.append(spread[:, None] * directions[sizes > UNSEEN].T)
    return result


def start_effects(responses: Sequence[Array], bases: Sequence[Array]) -> Array:
    """Efforts of all records (instants x rows x directions) per unit of each direction: a record has its own alone."""
    count, first, parts = sum(basis.shape[1] for basis in bases), 0, []
    for response, basis in zip(responses, bases, strict=True):
        part = np.zeros((*response.shape[:2], count))
        part[:, :, first : first + basis.shape[1]] = response @ basis
        first += basis.shape[1]
        parts.append(part)
    return np.concatenate(parts)


def start_offsets(bases: Sequence[Array], coordinates: Array) -> list[Array]:
    """By how much each start is off, from coordinates along all directions."""
    ends = np.cumsum([basis.shape[1] for basis in bases])[:-1]
    return [basis @ part for basis, part in zip(bases, np.split(coordinates, ends), strict=True)]


def projected_out(columns: Array, values: Array, weights: Array) -> Array:
    """Values (instants x rows x any) less what some columns explain of them, by weighted least squares.

    Least squares of what is left are those with the columns (Frisch, Waugh and Lovell).
    """
    if not columns.shape[2]:
        return values
    flat = (columns * weights[:, :, None]).reshape(-1, columns.shape[2])
    explained = np.linalg.lstsq(flat, (values * weights[:, :, None]).reshape(len(flat), -1), rcond=None)[0]
    return values - (columns @ explained).reshape(values.shape)


def shrunk_start(columns: Array, efforts: Array, weights: Array) -> Array:
    """Coordinates of starts from efforts (instants x rows), each with a deviation of one by the first samples."""
    flat = (columns * weights[:, :, None]).reshape(-1, columns.shape[2])
    return np.linalg.solve(flat.T @ flat + np.eye(flat.shape[1]), flat.T @ (efforts * weights).ravel())


@dataclass(frozen=True, eq=False, repr=False)
class _Along(Record):
    """M, D and K at some samples of a record."""

    at: Array
    M: Array
    D: Array
    K: Array


def linear_response(
    regressor: Regressor, replay: Replay, replayed: Replayed, theta: Array, columns: list[int]
) -> Array | None:
    """Efforts (instants x motors x columns) per unit of some unknowns; None where the controller is not linear.

    Columns of the start come last: of positions of all motors, and of their rates.
    """
    feedback = replay.feedback(replayed.effort)
    if feedback is None or regressor.spare:
        return None
    try:
        along = _along(regressor, replay, replayed, theta)
    except ParflexError:  # beside a singular pose
        return None
    W = regressor.of(replay.moving(replayed), columns)[0]
    return _answers(along, W, replay, *feedback)


def _along(regressor: Regressor, replay: Replay, replayed: Replayed, theta: Array) -> _Along:
    robot, step = regressor.robot, replay.record.step
    count, motors = len(replayed.q), list(robot.actuated)
    at = np.unique(np.append(np.arange(0, count, max(1, round(KNOTS / step))), count - 1))
    moving = replay.moving(replayed)
    position, rate = replayed.q[at][:, regressor.motor_q], replayed.rate[at]
    acceleration = np.gradient(replayed.rate, step, axis=0)[at]
    here = ClosedMotion(moving.q[at], moving.qd[at], moving.qdd[at], moving.J[at])

    # where a joint turns back Coulomb friction changes by a step, which is not a slope
    sliding = np.where([unknown.symbol in ("FS", "FS_back") for unknown in regressor.unknowns], 0.0, theta)

    def efforts(motion: ClosedMotion) -> Array:
        W, known = regressor.of(motion)
        return W @ sliding + known

    now = efforts(here)
    parts = np.zeros((3, len(at), len(motors), len(motors)))
    for k, motor in enumerate(motors):
        increment = BESIDE * float(robot.tree.rate_units[motor])
        displacement = increment * (np.arange(len(motors)) == k)
        faster = ClosedMotion(here.q, here.qd, here.qdd + here.J[:, :, k], here.J)
        parts[0, :, :, k] = efforts(faster) - now
        parts[1, :, :, k] = (efforts(regressor.moved(here.q, rate + displacement, acceleration)) - now) / increment
        there = regressor.moving(position + displacement, rate, acceleration, here.q[0])
        parts[2, :, :, k] = (efforts(there) - now) / increment
    return _Along(at, *parts)


def _answers(along: _Along, W: Array, replay: Replay, stiffness: Array, damping: Array) -> Array:
    """Efforts of the controller at the samples of the record, by a midpoint rule over each of its own samples."""
    h, every, delay = replay.sample, replay.every, replay.settings.delay
    by_differences = replay.settings.rates == "differences"
    inverse = np.linalg.inv(along.M)
    stiff, damp = stiffness[:, None], damping[:, None]
    motors = W.shape[1]
    W = np.concatenate([W, np.zeros((len(W), motors, 2 * motors))], axis=2)
    x, v = np.zeros(W.shape[1:]), np.zeros(W.shape[1:])
    x[:, -2 * motors : -motors] = v[:, -motors:] = np.eye(motors)
    before, answers = x, np.zeros_like(W)
    waiting = [np.zeros_like(x) for _ in range(delay)]
    for k in range((len(W) - 1) * every + 1):
        sensed = (x - before) / h if by_differences and k else v
        waiting.append(-(stiff * x + damp * sensed))
        u, before = waiting.pop(0), x
        if k % every == 0:
            answers[k // every] = u
        middle = min((k + 0.5) / every, len(W) - 1)
        first = int(middle)
        w = W[first] + (middle - first) * (W[min(first + 1, len(W) - 1)] - W[first])
        knot = min(int(np.searchsorted(along.at, middle, "right")) - 1, len(along.at) - 2)
        part = (middle - along.at[knot]) / (along.at[knot + 1] - along.at[knot])
        Mi, D, K = (A[knot] + part * (A[knot + 1] - A[knot]) for A in (inverse, along.D, along.K))
        acted = u - w
        half = v + h / 2 * (Mi @ (acted - D @ v - K @ x))
        v = v + h * (Mi @ (acted - D @ half - K @ (x + h / 2 * v)))
        x = x + h * half
    return answers
