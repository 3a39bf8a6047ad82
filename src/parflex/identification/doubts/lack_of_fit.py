"""Residuals of efforts beside the noise of their record: whether a model explains what was measured.

White noise of positions and efforts shows above the motion: in positions at the highest frequencies, in efforts there
and just above the low-pass. As much noise is added to the record once more. How that moves residuals is what noise does
to them, behind all filters; what is larger is error of the model, and no interval holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from parflex.identification.base_columns import BaseColumns
from parflex.identification.doubts.likely_causes import RecordedRows, likely_cause
from parflex.identification.estimates.least_squares import EffortRows
from parflex.identification.filtering import LONGEST, SEGMENTS, FilterChoice, decimated, smoothed
from parflex.identification.low_pass import butterworth, mean_spectrum
from parflex.identification.measured_files import Measurement
from parflex.identification.regressors import Regressor
from parflex.records import Record

Array = np.ndarray
BEYOND = 2.0  # times noise: of right records 100 instants leave 1.2, and 1.5 where dry friction jerks the robot
LEAST = 2e-3  # of the efforts: filters leave 1.3e-3 of a record without noise in which dry friction jerks the robot
SAMPLES = 2000  # of the middle of a record, to which noise is added
UPPER = 0.6  # of the highest frequency: above, positions and efforts have noise alone
MEDIAN = 1.4826  # a standard deviation over the median of sizes, which jerks of dry friction hardly change
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least


@dataclass(frozen=True, eq=False, repr=False)
class Misfit(Record):
    """Residuals of a motor in a record: as share of its efforts, and over what noise leaves."""

    record: str
    motor: str
    share: float
    over_noise: float


def misfit_doubts(
    regressor: Regressor, base: BaseColumns, told: list[int], used: Sequence[Measurement],
    parts: Sequence[EffortRows], values: Array, choice: FilterChoice, outliers: bool = False,
) -> list[str]:  # fmt: skip
    """A warning where residuals are larger than noise of the records makes them, with what explains it.

    `outliers`: they are expected, and sizes are those of most residuals.
    """
    kept = [base.kept[k] for k in told]
    found = [
        one for record, rows in zip(used, parts, strict=True)
        for one in _misfits(regressor, kept, record, rows, values, choice, outliers)
    ]  # fmt: skip
    if not found:
        return []
    worst = max(found, key=lambda one: one.over_noise)
    text = (
        f"{Path(worst.record).name}: {100 * worst.share:.3g} % of the efforts of '{worst.motor}' are missed, "
        f"{_times(worst.over_noise)} times what noise of the record leaves, and intervals do not hold it"
    )
    cause = likely_cause(RecordedRows(regressor, used, parts, choice))
    return [f"{text}: {cause or 'the model lacks something, or payload, columns or zeros are not those of the record'}"]


def _times(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{min(value, 1e6):.0f}"


def _misfits(
    regressor: Regressor, kept: list[int], record: Measurement, rows: EffortRows, values: Array, choice: FilterChoice,
    outliers: bool,
) -> list[Misfit]:  # fmt: skip
    """Motors of a record whose residuals are larger than noise makes them."""
    assert rows.known is not None
    seen = rows.mask > 0
    left = np.where(seen, rows.y - rows.W @ values, np.nan)
    effort = np.where(seen, rows.y + rows.known, np.nan)
    rows_used = np.flatnonzero(seen.any(axis=0))
    left, effort = left[:, rows_used], effort[:, rows_used]
    names = [regressor.rows[k] for k in rows_used]
    whole = np.sqrt(np.nanmean(effort**2, axis=0))
    whole = np.maximum(whole, max(FAINT * float(whole.max()), 1e-300))
    size = MEDIAN * np.nanmedian(np.abs(left), axis=0) if outliers else np.sqrt(np.nanmean(left**2, axis=0))
    if not (size > LEAST * whole).any():
        return []
    noise = noise_left(regressor, kept, record, values, choice)[rows_used]
    over = size / np.maximum(noise, 1e-300)
    return [
        Misfit(record.name, name, float(one), float(times))
        for name, one, times in zip(names, size / whole, over, strict=True) if one > LEAST and times > BEYOND
    ]  # fmt: skip


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
    encoders = white_noise(np.diff(record.position, axis=0), record.step, differences=True)
    q = part.position + encoders * rng.standard_normal(part.position.shape)
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


def white_noise(values: Array, step: float, differences: bool = False) -> Array:
    """Standard deviation of white noise by the highest frequencies of columns, or of sums of them."""
    size = max(min(len(values), LONGEST, 2 * len(values) // (SEGMENTS + 1)), 16)
    f, power = mean_spectrum(values, step, size)
    upper = f > UPPER * f[-1]
    shape = 4 * np.sin(np.pi * f[upper] * step)[:, None] ** 2 if differences else 1.0
    return np.sqrt(np.median(power[upper] / shape, axis=0) / (2 * step))
