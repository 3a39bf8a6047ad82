"""What `identify` asks of simulations: parameters of records, and predictions of these and of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.errors import InputError
from parflex.identification.base_columns import BaseColumns
from parflex.identification.column_map import ColumnMap
from parflex.identification.doubts.lack_of_fit import Misfit, misfits_of_simulation
from parflex.identification.estimates.least_squares import EffortRows, Fit
from parflex.identification.filtering import FilterChoice
from parflex.identification.identified import Prediction
from parflex.identification.measured_files import Measurement
from parflex.identification.regressors import Regressor
from parflex.identification.simulated.didim import Round, SimulatedFit, Simulations, didim
from parflex.identification.simulated.members import PlantMembers
from parflex.identification.simulated.missed_positions import following_doubts, missed
from parflex.identification.simulated.record_starts import shrunk_start
from parflex.identification.simulated.replay import Replay

Array = np.ndarray
EDGE, WIDE = 0.1, 3  # s, or samples that are kept, cut at both ends
STEPS = 3  # of Gauss's method for the start of a record that was not used


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
        self.known: tuple[list[Measurement], Simulations, SimulatedFit] | None = None  # records that were used
        self.steps: list[str] = []
        self.warnings: list[str] = []

    def of(self, records: Sequence[Measurement]) -> Simulations:
        """Records with their controller."""
        return Simulations(
            self.members, [Replay(self.members.regressor, self.mapped, one) for one in records], self.choice
        )

    def fitted(
        self, records: Sequence[Measurement], told: list[int], first: Array, seen: BaseColumns
    ) -> tuple[Fit, EffortRows]:
        """Parameters, begun with those of the file or the `first` ones, whichever follow the records better.

        Robots that are simulated have what records do not tell as the file has it; parameters that are `seen` have a
        part of it.
        """
        by_file = self.members.base.groups @ self.members.by_file
        part = (seen.groups @ self.members.by_file - by_file)[told]
        start = by_file.copy()
        start[told] = first - part
        simulations = self.of(records)
        found = didim(simulations, told, [by_file, start])
        self.values, self.known = found.values[: len(by_file)], (list(records), simulations, found)
        self.steps = [
            f"simulated under the controller of the map {found.rounds} times; its positions need no filter, "
            f"{self.choice.cut} samples are cut at both ends"
        ]
        rows = replace(found.rows, y=found.rows.y + found.rows.W @ part)
        return replace(found.fitted, values=found.fitted.values + part), rows

    def predictions(self, records: Sequence[Measurement]) -> list[Prediction]:
        """Efforts of records by simulation, and by that of the robot of the file."""
        if not records:
            return []
        simulations, starts, found = self._simulated(records)
        by_file = self.members.base.groups @ self.members.by_file
        other_robot = simulations.at(np.concatenate([by_file, starts]), regressed=False)
        made = []
        for number, (record, (measured, simulated)) in enumerate(zip(records, found.parts, strict=True)):
            other = np.full_like(measured, np.nan) if other_robot is None else other_robot.parts[number][1]
            shown = np.where(simulations.kept[number], measured, np.nan)
            made.append(Prediction(record.name, simulations.instants(number), shown, simulated, other))
        self._judge_following(records, found.positions, made)
        return made

    def misfits(self) -> list[Misfit]:
        """Residuals of the records that were used, beside the noise of their efforts."""
        assert self.known is not None  # by a fit before
        records, simulations, fit = self.known
        names, found = self.members.regressor.rows, []
        for number, (record, (measured, made), left) in enumerate(
            zip(records, fit.last.parts, fit.last.left, strict=True)
        ):
            seen = np.broadcast_to(simulations.kept[number], measured.shape)
            found += misfits_of_simulation(
                names, record.name, seen, measured - made, measured, left, record.step, self.choice
            )
        return found

    def _simulated(self, records: Sequence[Measurement]) -> tuple[Simulations, Array, Round]:
        """Records with the parameters that were found, their starts, and the simulation."""
        assert self.known is not None  # by a fit before
        used, simulations, fit = self.known
        if list(records) == used:
            return simulations, fit.values[len(self.values) :], fit.last
        simulations = self.of(records)
        found = simulations.at(self.values, regressed=False)
        if found is None:
            raise InputError(
                "the robot does not follow the reference of this record under the controller of the map",
                file=records[0].name, key="controller", hint="check it, or leave the record out",
            )  # fmt: skip
        values, found = better_starts(simulations, self.values, found, fit.fitted.noise)
        return simulations, values[len(self.values) :], found

    def _judge_following(self, records: Sequence[Measurement], positions: list[Array], made: list[Prediction]) -> None:
        assert self.mapped.controller is not None
        motors = self.members.regressor.robot.actuated_names
        shares = [missed(record, own, self.choice) for record, own in zip(records, positions, strict=True)]
        worst = max(float(share.max()) for share, _ in shares)
        self.steps.append(f"simulated positions miss those recorded by {100 * worst:.3g} % of the following error")
        self.warnings += following_doubts(motors, self.mapped.controller, records, shares, made)


def better_starts(simulations: Simulations, values: Array, now: Round, noise: Array) -> tuple[Array, Round]:
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
        found = simulations.at(trial, regressed=False)
        if found is None or not found.error < now.error:
            break
        values, now = trial, found
    return values, now
