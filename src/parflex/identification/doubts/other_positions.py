"""What explains efforts that a model misses where positions are others: exchanged motors, the zero of an encoder.

Parameters are found again with each: rows of some instants for motors that are exchanged, of the middle of all records
for zeros, which are felt less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from parflex.errors import ParflexError
from parflex.identification.base_columns import BaseColumns
from parflex.identification.doubts.by_file.file_trial import FileTrial
from parflex.identification.doubts.by_file.hypotheses import as_given, exchanges, turning
from parflex.identification.estimates.least_squares import EffortRows, fit, solution
from parflex.identification.filtering import FilterChoice, decimated, kept_instants, smoothed
from parflex.identification.measured_files import Measurement
from parflex.identification.prepared import joined, rows_of_record
from parflex.identification.regressors import Regressor
from parflex.records import Record

Array = np.ndarray
SAMPLES = 3000  # of the middle of a record, in which the zero of an encoder is followed
BESIDE = 1e-5  # rad, or typical lengths, of differences
SURE = 6.0  # deviations, by which a zero must be off: each of several motors is asked
ROUNDS, HALVINGS = 10, 4  # of Gauss's method
SETTLED = 0.1  # deviations of a last step
TOLD = 1e-3  # of what a zero changes, what parameters must leave of it
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least
NEAREST, FARTHEST = 5e-3, 0.5  # rad, or typical lengths, of what a motor moves: less is calibration, more would be seen
ALIKE = 1.5  # times the best: records do not tell which of two motors it is, and both are named

Trial = tuple[float, str]  # share of what is missed that is left with it, and what it is


@dataclass(frozen=True, eq=False, repr=False)
class OtherPositions(Record):
    """Records, which base parameters they tell, and their rows for these."""

    regressor: Regressor
    base: BaseColumns
    told: list[int]
    used: Sequence[Measurement]
    parts: Sequence[EffortRows]
    choice: FilterChoice

    def exchanged(self) -> list[Trial]:
        """Two motors with all columns of each other, or with the positions: what any parameters leave then."""
        trials = [FileTrial(self.regressor, self.base, record, self.choice) for record in self.used]
        now = np.linalg.norm([one.unexplained(as_given(self.regressor)) for one in trials])
        return [
            (float(np.linalg.norm([one.unexplained(given) for one in trials]) / now), f"{given.words}: {given.cure}")
            for given in exchanges(self.regressor)
            if given.positions_of is not None  # efforts alone need no other rows, and are tried there
        ]

    def zeros(self) -> tuple[list[Trial], dict[str, float] | None]:
        """The encoder whose zero is off by many deviations, and by how much, if there is one; what is left, by row.

        Several where they explain records alike. None is left by row where no zero is off, nothing where none explains.
        """
        if len(self.regressor.motor_q) < 2 or self.regressor.spare:
            return [], None  # parameters follow the zero of one motor alone
        found: dict[int, tuple[float, float, Array]] = {}
        moved = self._moved_zeros()
        for motor in moved:
            try:
                followed = self._followed(motor)
            except ParflexError:
                continue
            if followed is not None:
                found[motor] = followed
        if not found:
            return [], {} if moved else None
        # beside the least of all in each row: a row of much noise hides what others say
        least = np.maximum(np.min([by_row for _, _, by_row in found.values()], axis=0), 1e-300)
        over = sorted((float(np.linalg.norm(by_row / least)), motor) for motor, (_, _, by_row) in found.items())
        alike = [motor for far, motor in over if far < ALIKE * over[0][0]]
        trials = [(found[motor][1], self._told_zero(motor, found[motor][0])) for motor in alike]
        return trials, dict(zip(self.regressor.rows, map(float, found[over[0][1]][2]), strict=True))

    def _told_zero(self, motor: int, offset: float) -> str:
        unit = "rad" if turning(self.regressor)[motor] else "m"
        name = self.regressor.robot.actuated_names[motor]
        return f"with the zero of '{name}' off by {-offset:.3g} {unit}: add {offset:.3g} {unit} to its offset"

    @property
    def units(self) -> Array:
        """Radians and typical lengths, of motors behind gears those of what they move."""
        return np.asarray(self.regressor.robot.gearing.units[list(self.regressor.robot.actuated)])

    @property
    def _sizes(self) -> Array:
        """What is much for a zero: a radian, a typical length, or the way of a motor that turns far behind a gear."""
        return np.maximum(self.units, np.max([np.ptp(record.position, axis=0) for record in self.used], axis=0))

    def _moved_zeros(self) -> list[int]:
        """Motors whose zeros are surely off by slopes at the instants of all rows, each for itself."""
        rows, weights, Q, ways = self._zero_columns
        y, found = (rows.y * weights).ravel(), []
        left = y - Q @ (Q.T @ y)
        for motor, way in enumerate(ways):
            column = (way * weights).ravel()
            rest = column - Q @ (Q.T @ column)
            if motor in self.zeros_not_told:
                continue
            offset = float(rest @ left / (rest @ rest))
            size = float(np.linalg.norm(left - rest * offset))
            spread = size / np.sqrt(max(np.count_nonzero(weights) - Q.shape[1] - 1, 1)) / np.linalg.norm(rest)
            if not abs(offset) > max(SURE * spread, NEAREST * self.units[motor]):
                continue
            judged = fit(replace(rows, W=np.concatenate([rows.W, way[:, :, None]], axis=2)), "wls")
            if abs(judged.values[-1]) > SURE * np.sqrt(judged.robust[-1, -1]):
                found.append(motor)
        return found

    @cached_property
    def _zero_columns(self) -> tuple[EffortRows, Array, Array, list[Array]]:
        """Rows, their weights, an orthonormal basis of what parameters follow, and what each zero changes."""
        rows = replace(joined(self.parts), instruments=None)
        values, weights = solution(rows, "wls")
        flat = (rows.W * weights[:, :, None]).reshape(-1, rows.W.shape[2])
        Q = np.linalg.qr(flat / np.maximum(np.linalg.norm(flat, axis=0), 1e-300))[0]
        return rows, weights, Q, self.slopes(values)

    @cached_property
    def zeros_not_told(self) -> list[int]:
        """Motors whose zeros efforts do not tell: what they change is what parameters change."""
        _, weights, Q, ways = self._zero_columns
        columns = [(way * weights).ravel() for way in ways]
        return [
            motor for motor, column in enumerate(columns)
            if not np.linalg.norm(column - Q @ (Q.T @ column)) > TOLD * np.linalg.norm(column)
        ]  # fmt: skip

    def steps(self) -> list[str]:
        """Which zeros efforts do not tell, in words, of several motors."""
        motors = list(self.regressor.robot.actuated_names)
        names = [f"'{motors[k]}'" for k in self.zeros_not_told] if len(motors) > 1 else []
        if not names:
            return []
        whose = " and ".join(names)
        if len(names) == 1:
            return [
                f"the zero of {whose} is not told by efforts: parameters follow it, and hold for its encoder as it is"
            ]
        return [f"zeros of {whose} are not told by efforts: parameters follow them, and hold for encoders as they are"]

    def slopes(self, values: Array) -> list[Array]:
        """What efforts of all rows change by per unit of each zero; slow as the motion is, no filter changes it."""
        kept = [self.base.kept[k] for k in self.told]
        found: list[list[Array]] = [[] for _ in self.regressor.motor_q]
        for record in self.used:
            smooth = smoothed(record, self.choice)
            q, qd, qdd = (
                kept_instants(one, self.choice) for one in (smooth.position, smooth.rate, smooth.acceleration)
            )
            gain = decimated(np.ones(len(smooth.t)), self.choice)[:, None]  # of all rows at rest

            def efforts(position: Array, rate: Array = qd, acceleration: Array = qdd) -> Array:
                W, known = self.regressor.of(self.regressor.moving(position, rate, acceleration), kept)
                return W @ values + known

            now = efforts(q)
            for motor, unit in enumerate(self.units):
                way = BESIDE * unit * (np.arange(len(found)) == motor)
                found[motor].append(gain * (efforts(q + way) - now) / way[motor])
        return [np.concatenate(parts) for parts in found]

    def _followed(self, motor: int) -> tuple[float, float, Array] | None:
        """Its offset by Gauss's method in the middle of all records, the share of what is missed that is left, by row.

        Steps are halved until less is missed: behind a gear zeros may be far from where slopes hold.
        """
        shift, way = np.zeros(len(self.regressor.motor_q)), np.zeros(len(self.regressor.motor_q))
        way[motor] = BESIDE * self._sizes[motor]
        at = self._rows(shift)
        assert at.known is not None
        effort = np.sqrt((((at.y + at.known) * at.mask) ** 2).sum(axis=0))
        weights = at.mask / np.maximum(effort, FAINT * float(effort.max()))  # all motors count by what they miss

        def missed(rows: EffortRows) -> Array:
            return np.linalg.norm((rows.y - rows.W @ solution(rows, "wls")[0]) * weights, axis=0)

        first = now = missed(at)
        for _ in range(ROUNDS):
            beside, values = self._rows(shift + way), solution(at, "wls")[0]
            column = ((at.y - at.W @ values) - (beside.y - beside.W @ values)) / way[motor]
            judged = fit(replace(at, W=np.concatenate([at.W, column[:, :, None]], axis=2)), "wls")
            step = float(judged.values[-1])
            if abs(step) < SETTLED * np.sqrt(judged.robust[-1, -1]):
                break
            for halved in range(HALVINGS):
                there = shift + step / 2**halved * (np.arange(len(shift)) == motor)
                rows = self._rows(there)
                left = missed(rows)
                if np.linalg.norm(left) < np.linalg.norm(now):
                    break
            else:
                break
            shift, at, now = there, rows, left
            if not abs(shift[motor]) < FARTHEST * self._sizes[motor]:
                return None
        share = float(np.linalg.norm(now)) / max(float(np.linalg.norm(first)), 1e-300)
        return float(shift[motor]), share, now / np.maximum(first, 1e-300)

    def _rows(self, shift: Array) -> EffortRows:
        """Rows of the middle of all records, with encoders whose zeros are elsewhere."""
        parts = []
        for record in self.used:
            count = min(len(record.t), SAMPLES + 2 * self.choice.edge)
            first = (len(record.t) - count) // 2
            some = slice(first, first + count)
            part = replace(
                record, t=record.t[some], position=record.position[some] + shift, effort=record.effort[some],
                reference=None,
            )  # fmt: skip
            parts.append(rows_of_record(self.regressor, self.base, part, self.choice)[1])
        return joined(parts).columns(self.told)
