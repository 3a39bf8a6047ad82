"""Residuals of efforts compared with the noise of their recording.

White noise of positions and efforts is visible above the motion: in positions at the highest frequencies, in efforts
there and just above the low-pass. As much noise is added to the recording once more; the change of the residuals is the
effect of noise behind all filters. Larger residuals are model errors, which confidence intervals do not include.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from parflex.identification.estimators import EffortRows
from parflex.identification.preprocess import (
    LONGEST,
    SEGMENTS,
    FilterChoice,
    butterworth,
    decimate_rows,
    filtered_motion,
    mean_spectrum,
    quantisation_noise,
)
from parflex.identification.recordings import Recording
from parflex.identification.regressor import Regressor
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
    """Residuals of a motor in a record, and what noise leaves of them, as shares of its efforts."""

    record: str
    motor: str
    share: float
    noise: float

    @property
    def over_noise(self) -> float:
        """Residuals as a multiple of the noise level."""
        return self.share / max(self.noise, 1e-300)

    @property
    def significant(self) -> bool:
        """Whether noise does not explain the residuals."""
        return self.share > LEAST and self.over_noise > BEYOND

    @property
    def text(self) -> str:
        """Residuals in words."""
        times = f"{self.over_noise:.2g}" if self.over_noise < 10 else f"{min(self.over_noise, 1e6):.0f}"
        return f"'{self.motor}': {100 * self.share:.3g} % of its efforts, {times} times the noise"


def misfits_of_rows(
    regressor: Regressor, kept: list[int], record: Recording, rows: EffortRows, values: Array, choice: FilterChoice,
    outliers: bool,
) -> list[Misfit]:  # fmt: skip
    """Residuals of a record by rows of some columns, compared with the noise of positions and efforts.

    `outliers`: they are expected, and sizes are those of most residuals. None where all are below the least share.
    """
    assert rows.known is not None

    def noise() -> Array:
        return noise_left(regressor, kept, record, values, choice)

    left, effort = rows.y - rows.W @ values, rows.y + rows.known
    return _sized(record.name, regressor.rows, rows.mask > 0, left, effort, noise, outliers)


def misfits_of_simulation(
    names: list[str], record: str, seen: Array, left: Array, effort: Array, every: Array, step: float,
    choice: FilterChoice,
) -> list[Misfit]:  # fmt: skip
    """Residuals of a simulated record, decimated and at `every` sample: simulated positions have no noise."""

    def noise() -> Array:
        level = effort_noise(every, step, choice)
        made = level * np.random.default_rng(0).standard_normal(every.shape)
        return np.asarray(decimate_rows(made, choice).std(axis=0))

    return _sized(record, names, seen, left, effort, noise, False)


def _sized(
    record: str, names: list[str], seen: Array, left: Array, effort: Array, noise: Callable[[], Array],
    outliers: bool,
) -> list[Misfit]:  # fmt: skip
    """Of each row that is used; noise is asked for where something is missed."""
    rows = np.flatnonzero(seen.any(axis=0))
    left, effort = (np.where(seen, part, np.nan)[:, rows] for part in (left, effort))
    whole = np.sqrt(np.nanmean(effort**2, axis=0))
    whole = np.maximum(whole, max(FAINT * float(whole.max()), 1e-300))
    size = MEDIAN * np.nanmedian(np.abs(left), axis=0) if outliers else np.sqrt(np.nanmean(left**2, axis=0))
    if not (size > LEAST * whole).any():
        return []
    made = noise()[rows]
    return [
        Misfit(record, names[k], float(one), float(by_noise))
        for k, one, by_noise in zip(rows, size / whole, made / whole, strict=True)
    ]


def noise_left(regressor: Regressor, kept: list[int], record: Recording, values: Array, choice: FilterChoice) -> Array:
    """What noise of a record leaves of residuals, of each row: how they move by as much noise again."""
    count = min(len(record.t), SAMPLES + 2 * choice.edge)
    some = slice((len(record.t) - count) // 2, (len(record.t) - count) // 2 + count)
    part = replace(record, t=record.t[some], position=record.position[some], effort=record.effort[some])

    def residuals(position: Array) -> Array:
        smooth = filtered_motion(part, choice, position)
        moving = regressor.moving(smooth.position, smooth.rate, smooth.acceleration)
        return regressor.measured(moving, choice.inside(part.effort)) - regressor.of(moving, kept)[0] @ values

    before = residuals(part.position)
    rng = np.random.default_rng(0)
    q = part.position + position_noise(record) * rng.standard_normal(part.position.shape)
    moved = residuals(q) - before + effort_noise(before, record.step, choice) * rng.standard_normal(before.shape)
    return np.asarray(decimate_rows(moved, choice).std(axis=0))


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


def position_noise(record: Recording) -> Array:
    """Standard deviation of white noise of positions that is as strong as theirs where motions are, of each motor."""
    white = white_noise(np.diff(record.position, axis=0), record.step, differences=True)
    return np.asarray(np.maximum(white, quantisation_noise(record.position)))


def white_noise(values: Array, step: float, differences: bool = False) -> Array:
    """Standard deviation of white noise by the highest frequencies of columns, or of sums of them."""
    size = max(min(len(values), LONGEST, 2 * len(values) // (SEGMENTS + 1)), 16)
    f, power = mean_spectrum(values, step, size)
    upper = f > UPPER * f[-1]
    shape = 4 * np.sin(np.pi * f[upper] * step)[:, None] ** 2 if differences else 1.0
    return np.sqrt(np.median(power[upper] / shape, axis=0) / (2 * step))
