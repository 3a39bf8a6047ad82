"""Residuals of efforts beside the noise of their record: whether a model explains what was measured.

White noise of positions and efforts shows above the motion: in positions at the highest frequencies, in efforts there
and just above the low-pass. As much noise is added to the record once more. How that moves residuals is what noise does
to them, behind all filters; what is larger is error of the model, and no interval holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from parflex.identification.doubts.drive_gains_off import gain_trials
from parflex.identification.doubts.elements_off import element_trials
from parflex.identification.doubts.likely_causes import LIKE, RecordedRows, left_by, likely_cause
from parflex.identification.doubts.offsets_left_out import offset_trials
from parflex.identification.doubts.one_record import trials_of_one_record
from parflex.identification.doubts.other_positions import OtherPositions
from parflex.identification.doubts.outliers import outlying
from parflex.identification.doubts.springs_left_out import spring_trials
from parflex.identification.estimates.least_squares import EffortRows
from parflex.identification.estimates.rounded_positions import rounded_away
from parflex.identification.filtering import LONGEST, SEGMENTS, FilterChoice, decimated, smoothed
from parflex.identification.low_pass import butterworth, mean_spectrum
from parflex.identification.measured_files import Measurement
from parflex.identification.prepared import joined
from parflex.identification.regressors import Regressor
from parflex.records import Record

Array = np.ndarray
BEYOND = 2.0  # times noise: of right records 100 instants leave 1.2, and 1.5 where dry friction jerks the robot
LEAST = 2e-3  # of the efforts: filters leave 1.3e-3 of a record without noise in which dry friction jerks the robot
SAMPLES = 2000  # of the middle of a record, to which noise is added
UPPER = 0.6  # of the highest frequency: above, positions and efforts have noise alone
MEDIAN = 1.4826  # a standard deviation over the median of sizes, which jerks of dry friction hardly change
NOTHING = "the model lacks something, or payload, columns or zeros are not those of the record"
OUTLIERS = "outliers: cut them, or let irls count them less"
HINTED = 1.5  # times noise: as large where a zero is surely off by slopes
NEARLY = 1.05  # times what noise and a mistake that explains the rest leave of a motor
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least


@dataclass(frozen=True, eq=False, repr=False)
class Misfit(Record):
    """Residuals of a motor in a record, and what noise leaves of them, as shares of its efforts."""

    record: str
    motor: str
    share: float
    noise: float

    @property
    def over_noise(self) -> float:
        """How many times what noise leaves."""
        return self.share / max(self.noise, 1e-300)


def misfit_doubts(
    misfits: Sequence[Misfit], of_rows: Sequence[Misfit],
    asked: Sequence[tuple[Sequence[Measurement], Sequence[EffortRows]]], other: OtherPositions,
    however_small: Callable[[], Sequence[Misfit]],
) -> list[str]:  # fmt: skip
    """A warning where residuals are larger than noise of the records makes them, with what explains it.

    `of_rows` is the same by rows, and `however_small` those of all motors; `asked` are records and their rows that are
    asked for what explains it, one after the other.
    """
    seen = [one for one in misfits if one.share > LEAST]
    worst = max(seen, key=lambda one: one.over_noise, default=None)
    noise = _share_of_noise(of_rows or misfits)
    gains = gain_trials(other)
    offsets = offset_trials(other)
    zeros, left_by_zero = other.zeros()
    sure = (zeros, gains, element_trials(other), spring_trials(other), offsets)
    if worst is None or not worst.over_noise > BEYOND:  # what parameters follow leaves residuals as small as noise
        told = sorted(one for trials in sure for one in trials if one[0] < left_by(noise) or trials is offsets)
        if left_by_zero is not None:  # a zero that explains a part of what is small stands for something else
            every = however_small()
            explained = all(
                left_by_zero.get(one.motor, 1.0) <= NEARLY * left_by(one.noise / one.share) for one in every
            )
            told = [one for one in told if explained or one not in zeros]
            most = max(every, key=lambda one: one.over_noise)
            if not told and most.over_noise > HINTED:
                return [f"{_missed(most)}, and intervals do not hold it: {NOTHING}"]
        name = Path(other.used[0].name).name
        words = [f"fall by {100 * (1 - left):.2g} % {text}" for left, text in told if left <= LIKE * told[0][0]]
        return [f"{name}: residuals {', or '.join(words)}"] if words else []
    if misfits is not of_rows and not any(one.share > LEAST and one.over_noise > BEYOND for one in of_rows):
        return [
            f"{_missed(worst)}, and noise alone where recorded positions are taken: the simulated controller is "
            "not that of the record; check gains, delay and sample_time of [controller], which is the step of the "
            "record where it is not given"
        ]
    rows_asked = (RecordedRows(other.regressor, used, parts, other.choice) for used, parts in asked)
    found = (likely_cause(rows, noise, other, sure, trials_of_one_record(rows, other)) for rows in rows_asked)
    cause = next((text for text in found if text), None) or _outliers(other)
    return [f"{_missed(worst)}, and intervals do not hold it: {cause or NOTHING}"]


def _outliers(other: OtherPositions) -> str | None:
    """Motors in whose efforts few instants are most of what is missed, in words; None where none is such."""
    parts = dict(zip(other.regressor.rows, outlying(joined(other.parts)), strict=True))
    words = [f"{100 * part:.2g} % of the instants of '{motor}'" for motor, part in parts.items() if part]
    return f"most of it in {' and '.join(words)}, {OUTLIERS}" if words else None


def _share_of_noise(misfits: Sequence[Misfit]) -> float:
    """Of what is missed, all motors together; one where next to nothing is."""
    if not misfits:
        return 1.0
    return float(np.sqrt(sum(one.noise**2 for one in misfits) / sum(one.share**2 for one in misfits)))


def _missed(worst: Misfit) -> str:
    over = worst.over_noise
    times = f"{over:.2g}" if over < 10 else f"{min(over, 1e6):.0f}"
    return (
        f"{Path(worst.record).name}: {100 * worst.share:.3g} % of the efforts of '{worst.motor}' are missed, "
        f"{times} times what noise of the record leaves"
    )


def misfits_of_rows(
    regressor: Regressor, kept: list[int], record: Measurement, rows: EffortRows, values: Array, choice: FilterChoice,
    outliers: bool, least: float = LEAST,
) -> list[Misfit]:  # fmt: skip
    """Residuals of a record by rows of some columns, beside the noise of positions and efforts.

    `outliers`: they are expected, and sizes are those of most residuals. None where all are below the `least` share.
    """
    assert rows.known is not None

    def noise() -> Array:
        return noise_left(regressor, kept, record, values, choice)

    left, effort = rows.y - rows.W @ values, rows.y + rows.known
    return _sized(record.name, regressor.rows, rows.mask > 0, left, effort, noise, outliers, least)


def misfits_of_simulation(
    names: list[str], record: str, seen: Array, left: Array, effort: Array, every: Array, step: float,
    choice: FilterChoice,
) -> list[Misfit]:  # fmt: skip
    """Residuals of a simulated record, decimated and at `every` sample: simulated positions have no noise."""

    def noise() -> Array:
        level = effort_noise(every, step, choice)
        made = level * np.random.default_rng(0).standard_normal(every.shape)
        return np.asarray(decimated(made, choice).std(axis=0))

    return _sized(record, names, seen, left, effort, noise, False)


def _sized(
    record: str, names: list[str], seen: Array, left: Array, effort: Array, noise: Callable[[], Array],
    outliers: bool, least: float = LEAST,
) -> list[Misfit]:  # fmt: skip
    """Of each row that is used; noise is asked for where something is missed."""
    rows = np.flatnonzero(seen.any(axis=0))
    left, effort = (np.where(seen, part, np.nan)[:, rows] for part in (left, effort))
    whole = np.sqrt(np.nanmean(effort**2, axis=0))
    whole = np.maximum(whole, max(FAINT * float(whole.max()), 1e-300))
    size = MEDIAN * np.nanmedian(np.abs(left), axis=0) if outliers else np.sqrt(np.nanmean(left**2, axis=0))
    if not (size > least * whole).any():
        return []
    made = noise()[rows]
    return [
        Misfit(record, names[k], float(one), float(by_noise))
        for k, one, by_noise in zip(rows, size / whole, made / whole, strict=True)
    ]


def noise_left(
    regressor: Regressor, kept: list[int], record: Measurement, values: Array, choice: FilterChoice
) -> Array:
    """What noise of a record leaves of residuals, of each row: how they move by as much noise again."""
    count = min(len(record.t), SAMPLES + 2 * choice.edge)
    some = slice((len(record.t) - count) // 2, (len(record.t) - count) // 2 + count)
    part = replace(record, t=record.t[some], position=record.position[some], effort=record.effort[some])

    def residuals(position: Array) -> Array:
        smooth = smoothed(part, choice, position)
        moving = regressor.moving(smooth.position, smooth.rate, smooth.acceleration)
        return regressor.measured(moving, choice.inside(part.effort)) - regressor.of(moving, kept)[0] @ values

    before = residuals(part.position)
    rng = np.random.default_rng(0)
    q = part.position + position_noise(record) * rng.standard_normal(part.position.shape)
    moved = residuals(q) - before + effort_noise(before, record.step, choice) * rng.standard_normal(before.shape)
    return np.asarray(decimated(moved, choice).std(axis=0))


def effort_noise(left: Array, step: float, choice: FilterChoice) -> Array:
    """Standard deviation of white noise that is as strong as that of residuals at all samples.

    That of the highest frequencies, or that of the octave above the cutoff, where currents are filtered by drives.
    """
    band = 2 * choice.cutoff * step
    upper = min(2 * band, 0.9)
    if not upper > band:
        return white_noise(left, step)
    octave = butterworth(left, upper) - butterworth(left, band)
    near = MEDIAN * np.median(np.abs(octave), axis=0) / np.sqrt(upper - band)
    return np.maximum(near, white_noise(left, step))


def position_noise(record: Measurement) -> Array:
    """Standard deviation of white noise of positions that is as strong as theirs where motions are, of each motor."""
    white = white_noise(np.diff(record.position, axis=0), record.step, differences=True)
    return np.asarray(np.maximum(white, rounded_away(record.position)))


def white_noise(values: Array, step: float, differences: bool = False) -> Array:
    """Standard deviation of white noise by the highest frequencies of columns, or of sums of them."""
    size = max(min(len(values), LONGEST, 2 * len(values) // (SEGMENTS + 1)), 16)
    f, power = mean_spectrum(values, step, size)
    upper = f > UPPER * f[-1]
    shape = 4 * np.sin(np.pi * f[upper] * step)[:, None] ** 2 if differences else 1.0
    return np.sqrt(np.median(power[upper] / shape, axis=0) / (2 * step))
