"""Identification by simulation under the controller: efforts of simulated records against measured ones.

Positions and rates come from the simulation and have no noise, so nothing is filtered but what both sides share
(DIDIM, Gautier, Janot and Vandanjon). How efforts depend on parameters follows from linear equations, or simulations
say it, because the controller answers to them, too; until then the regressor along the simulated motion may do. Starts
of the records are found with the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parflex.errors import InputError
from parflex.identification.estimates.least_squares import EffortRows, Fit, fit, noise_of, solution
from parflex.identification.filtering import FilterChoice, decimated, kept_instants
from parflex.identification.payloads import payload_parameters
from parflex.identification.prepared import fast_enough, joined
from parflex.identification.regressors import ClosedMotion
from parflex.identification.simulated.linear_response import linear_response
from parflex.identification.simulated.members import PlantMembers
from parflex.identification.simulated.record_starts import along, offsets, seen_starts, without
from parflex.identification.simulated.replay import Replay, Replayed
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


@dataclass(frozen=True, eq=False, repr=False)
class Round(Record):
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

    fitted: Fit
    rows: EffortRows
    rounds: int
    values: Array
    last: Round


class Simulations:
    """Records that are simulated again and again, with other parameters.

    `values` are base parameters, followed by coordinates of the starts where these are looked for.
    """

    def __init__(self, members: PlantMembers, replays: Sequence[Replay], choice: FilterChoice) -> None:
        self.members, self.replays, self.choice = members, list(replays), choice
        regressor, self.size = members.regressor, len(members.base.kept)
        self.carried = [
            payload_parameters(regressor, one.record.payload) if one.record.payload else {} for one in replays
        ]
        self.count = 0  # simulations so far
        self.response: Array | None = None  # by linear equations, the last one
        self.kept: list[Array] = []  # rows of each record that are fast enough
        self.measured: list[Array] = []  # decimated efforts of each record, where motors are rows
        self.ways = [np.zeros((len(one.first), 0)) for one in replays]  # of the starts, that are looked for
        self.started: list[Array] = []  # how efforts of each record depend on its start

    def places(self, told: list[int]) -> list[int]:
        """Where values have the base parameters that are told, and all coordinates of the starts."""
        return [*told, *range(self.size, self.size + sum(way.shape[1] for way in self.ways))]

    def _moved(self, number: int, values: Array) -> Replayed | None:
        """One record, simulated."""
        off = offsets(self.ways, values[self.size :])[number]
        plant = self.members.plant(values[: self.size], self.carried[number])
        return self.replays[number].run(plant, off if off.any() else None)

    def at(self, values: Array, regressed: bool = True) -> Round | None:
        """All records with these parameters and starts; None where the robot does not follow."""
        regressor, choice, kept = self.members.regressor, self.choice, self.members.base.kept
        self.count += 1
        rows, parts, positions, left = [], [], [], []
        for number, replay in enumerate(self.replays):
            found = self._moved(number, values)
            if found is None:
                return None
            inside = slice(choice.edge, len(replay.record.t) - choice.edge)
            # the motion of all joints costs as much as the simulation: only where something asks for it
            moving = replay.moving(found).part(inside) if regressed or regressor.spare else None
            simulated = self._rows(moving, found.effort)
            rate = decimated(found.rate[inside], choice)
            if len(self.kept) <= number:
                self.kept.append(fast_enough(regressor, rate, choice, replay.record.effort))
                self.measured.append(self._rows(moving, replay.record.effort))
            measured = self._rows(moving, replay.record.effort) if regressor.spare else self.measured[number]
            W = decimated(regressor.of(moving, kept)[0], choice) if regressed and moving else simulated[:, :, None]
            known, used = np.zeros_like(measured), self.kept[number]
            rows.append(EffortRows(W, measured - simulated, rate=rate, known=known, used=used))
            parts.append((measured, simulated))
            positions.append(found.q[:, regressor.motor_q])
            left.append(self._along_rows(moving, replay.record.effort - found.effort))
        return Round(joined(rows), parts, positions, left)

    def look_for_starts(self, values: Array, told: list[int], now: Round) -> Array:
        """Take what efforts show of the starts among the unknowns: values with it, none of it yet."""
        parts = self._linear(values, told)
        if parts is not None:
            slopes, self.started = np.concatenate([part[0] for part in parts]), [part[1] for part in parts]
        else:
            found = self.at(values)
            assert found is not None  # as it was before
            slopes, self.started = found.rows.W[:, :, told], self._by_starts(values, now)
        weights = solution(replace(now.rows, W=slopes), "wls")[1]
        spreads = [replay.unsure for replay in self.replays]
        self.ways = seen_starts(self.started, spreads, [weights[part] for part in now.rows.parts])
        starts = along(self.started, self.ways)
        self.response = None if parts is None else np.concatenate([slopes, starts], axis=2)
        return np.concatenate([values[: self.size], np.zeros(starts.shape[2])])

    def show_starts(self, values: Array, now: Round, weights: Array) -> Array:
        """How efforts depend on what they show of the starts, where parameters are known."""
        parts = self._linear(values, [])
        self.started = self._by_starts(values, now) if parts is None else [part[1] for part in parts]
        spreads = [replay.unsure for replay in self.replays]
        self.ways = seen_starts(self.started, spreads, [weights[part] for part in now.rows.parts])
        return along(self.started, self.ways)

    def slopes(self, values: Array, told: list[int], again: bool = True) -> Array:
        """How efforts depend on parameters and starts, nearly: by linear equations, or else by the regressor."""
        if self.response is None or again:
            self.response = self.linear(values, told)
        if self.response is not None:
            return self.response
        found = self.at(values)
        assert found is not None  # as it was before
        return np.concatenate([found.rows.W[:, :, told], along(self.started, self.ways)], axis=2)

    def linear(self, values: Array, told: list[int]) -> Array | None:
        """How efforts of all records depend on some base parameters and the starts; None where no equations say it."""
        parts = self._linear(values, told)
        if parts is None:
            return None
        by_starts = along([part[1] for part in parts], self.ways)
        return np.concatenate([np.concatenate([part[0] for part in parts]), by_starts], axis=2)

    def _linear(self, values: Array, told: list[int]) -> list[tuple[Array, Array]] | None:
        """Of each record by linear equations: per unit of base parameters, and of all numbers of its start."""
        members, parts = self.members, []
        columns = [members.base.kept[k] for k in told]
        for number, (replay, carried) in enumerate(zip(self.replays, self.carried, strict=True)):
            found = self._moved(number, values)
            theta = members.parameters(values[: self.size], carried)
            answers = None if found is None else linear_response(members.regressor, replay, found, theta, columns)
            if answers is None:
                return None
            thin = decimated(self.choice.inside(answers), self.choice)
            parts.append((thin[:, :, : len(told)], thin[:, :, len(told) :]))
        return parts

    def _by_starts(self, values: Array, now: Round) -> list[Array]:
        """How efforts of each record depend on all numbers of its start, by a simulation of each."""
        kept, self.ways = self.ways, [np.diag(replay.unsure) for replay in self.replays]
        numbers = len(self.replays[0].first)
        found = np.zeros((*now.rows.y.shape, numbers))
        for k in range(numbers):
            one = np.tile(np.arange(numbers) == k, len(self.replays)).astype(float)
            end = self.at(np.concatenate([values[: self.size], one]), regressed=False)
            found[:, :, k] = 0.0 if end is None else now.rows.y - end.rows.y
        self.ways = kept
        return [
            found[part] / np.maximum(replay.unsure, 1e-300)
            for part, replay in zip(now.rows.parts, self.replays, strict=True)
        ]

    def _rows(self, moving: ClosedMotion | None, effort: Array) -> Array:
        """Efforts along the rows, decimated."""
        return decimated(self._along_rows(moving, effort), self.choice)

    def _along_rows(self, moving: ClosedMotion | None, effort: Array) -> Array:
        """The same at all samples that are not cut; those of motors need no motion."""
        inside = self.choice.inside(effort)
        return inside if moving is None else self.members.regressor.measured(moving, inside)

    def instants(self, number: int) -> Array:
        """Times of a record's rows."""
        record = self.replays[number].record
        return kept_instants(self.choice.inside(record.t), self.choice)


def didim(simulations: Simulations, told: list[int], starts: Sequence[Array]) -> SimulatedFit:
    """Parameters with which simulated efforts are those measured, from the best of some starts."""
    tried = [(values, simulations.at(values, regressed=False)) for values in starts]
    known = [(values, found) for values, found in tried if found is not None]
    if not known:
        raise InputError(
            "the robot does not follow its reference under the controller of the map", key="controller",
            hint="check gains, signs, units, limit and sample time of [controller]",
        )  # fmt: skip
    values, now = min(known, key=lambda one: one[1].error)
    rounds, slow = len(tried), False
    values = simulations.look_for_starts(values, told, now)
    for _ in range(MOST_ROUNDS):
        slopes = simulations.slopes(values, told, slow)
        step = solution(replace(now.rows, W=slopes), "wls")[0]
        size = np.linalg.norm(np.concatenate([part for part, _ in now.parts]))
        if float(np.linalg.norm(slopes @ step)) <= max(float(SETTLED * size), NEAR * now.error):
            break
        expected = now.error - float(np.linalg.norm((now.rows.y - slopes @ step) * now.rows.mask))
        before = now.error
        values, now, more = _forward(simulations, values, now, told, step)
        rounds, slow = rounds + more, before - now.error < SLOW * expected
        if more > HALVINGS:
            break
    return _judged(simulations, values, now, told, rounds)


def _forward(
    simulations: Simulations, values: Array, now: Round, told: list[int], step: Array
) -> tuple[Array, Round, int]:
    """A step that does not make efforts worse, halved until it does not; its simulations."""
    for halved in range(HALVINGS):
        trial = values.copy()
        trial[simulations.places(told)] += step / 2**halved
        found = simulations.at(trial, regressed=False)
        if found is not None and found.error <= WORSE * now.error:
            return trial, found, halved + 1
    return values, now, HALVINGS + 1


def _judged(simulations: Simulations, values: Array, now: Round, told: list[int], rounds: int) -> SimulatedFit:
    """The last step with the dependence of simulated efforts themselves, and covariances with it."""
    before, places, count = simulations.count, simulations.places(told), len(told)
    G = dependence(simulations, values, now.rows, told)
    linear = replace(now.rows, W=G, y=now.rows.y + G @ values[places])
    fitted = fit(linear, "wls")
    moved = values.copy()
    moved[places] = fitted.values
    found = simulations.at(moved, regressed=False)
    if found is None or found.error > WORSE * now.error:
        found, moved = now, values
    fitted = _about(fitted, moved, told, found, linear)
    # what follows asks for parameters alone: rows without what starts explain of them give the same
    both = np.concatenate([G[:, :, :count], linear.y[:, :, None]], axis=2)
    left = without(G[:, :, count:], both, fitted.weights)
    rows = replace(linear, W=left[:, :, :-1], y=left[:, :, -1])
    return SimulatedFit(fitted, rows, rounds + simulations.count - before, moved, found)


def dependence(simulations: Simulations, values: Array, rows: EffortRows, told: list[int]) -> Array:
    """How simulated efforts depend on parameters, as rows: by linear equations if simulations say alike."""
    for again in (False, True):
        G = simulations.linear(values, told) if again else simulations.response
        if G is not None and _confirmed(simulations, values, rows, told, G, _spread(replace(rows, W=G))):
            return G
    regressed = simulations.at(values)
    assert regressed is not None  # as it was before
    W = np.concatenate([regressed.rows.W[:, :, told], along(simulations.started, simulations.ways)], axis=2)
    nearly = replace(rows, W=W)
    return by_simulations(simulations, values, nearly, told, _spread(nearly))


def _spread(rows: EffortRows) -> Array:
    """White deviations of the unknowns."""
    return np.sqrt(np.maximum(np.diag(fit(rows, "wls").white), 0.0))


def _confirmed(
    simulations: Simulations, values: Array, rows: EffortRows, told: list[int], G: Array, spread: Array
) -> bool:
    """Whether efforts change as G says where all parameters change, each by a deviation to either side."""
    for signs in np.random.default_rng(0).choice([-SPAN, SPAN], (CONFIRMED, len(spread))):
        trial = values.copy()
        trial[simulations.places(told)] += signs * spread
        end = simulations.at(trial, regressed=False)
        changed = np.zeros_like(rows.y) if end is None else (rows.y - end.rows.y) * rows.mask
        if not np.linalg.norm(changed - (G @ (signs * spread)) * rows.mask) <= ALIKE * np.linalg.norm(changed):
            return False
    return True


def by_simulations(
    simulations: Simulations, values: Array, rows: EffortRows, told: list[int], spread: Array
) -> Array:  # fmt: skip
    """The same by one simulation of each parameter."""
    G = rows.W.copy()
    for place, k in enumerate(simulations.places(told)):
        width = max(SPAN * float(spread[place]), 1e-7 * abs(float(values[k])), 1e-12)
        trial = values.copy()
        trial[k] += width
        end = simulations.at(trial, regressed=False)
        if end is not None:
            G[:, :, place] = (rows.y - end.rows.y) / width
    return G


def _about(fitted: Fit, values: Array, told: list[int], found: Round, linear: EffortRows) -> Fit:
    """The fit of the parameters that are told, with values and residuals of a simulation."""
    count, noise = len(told), noise_of(found.rows, found.rows.y)
    white, robust = fitted.white[:count, :count], fitted.robust[:count, :count]
    own = (linear.W[:, :, :count] * linear.mask[:, :, None]).reshape(-1, count)
    condition = float(np.linalg.cond(np.linalg.qr(own, mode="r")))
    return Fit(values[told], white, robust, found.rows.y, condition, noise, fitted.lag, fitted.weights)
