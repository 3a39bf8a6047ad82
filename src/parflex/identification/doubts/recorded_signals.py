"""Doubts about signals of records: efforts of which nothing was recorded, samples that are given twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.signal

from parflex.errors import InputError
from parflex.identification.estimates.least_squares import EffortRows
from parflex.identification.filtering import ORDER, FilterChoice, only_noise
from parflex.identification.measured_files import Measurement
from parflex.identification.prepared import dead_efforts
from parflex.identification.regressors import Regressor

Array = np.ndarray


def effort_doubts(
    regressor: Regressor, used: Sequence[Measurement], parts: Sequence[EffortRows], choice: FilterChoice
) -> list[str]:
    """Warnings about motors that move, of whose efforts nothing but a constant or noise was recorded."""
    found = []
    for record, rows in zip(used, parts, strict=True):
        assert rows.rate is not None
        dead = dead_efforts(record.effort, rows.rate)
        band = 2 * choice.cutoff * record.step
        smooth = scipy.signal.sosfiltfilt(scipy.signal.butter(ORDER, band, output="sos"), record.effort, axis=0)
        noise = only_noise(record.effort, smooth, band) & rows.rate.any(axis=0)
        name, motors = Path(record.name).name, regressor.robot.actuated_names
        left_out = "its rows are left out, " if not dead.all() and not regressor.spare else ""
        for motor, value, never, faint in zip(motors, record.effort[0], dead, noise, strict=True):
            if never:
                found.append(
                    f"{name}: the effort of '{motor}' is {value:.4g} all the time though it moves: {left_out}check its "
                    "column"
                )
            elif faint:
                found.append(f"{name}: the effort of '{motor}' has nothing but noise though it moves: check its column")
    return found


def refuse_repeated(used: Sequence[Measurement]) -> None:
    """Refuse a record that is given twice: its noise would count as independent, and deviations would shrink."""
    for k, record in enumerate(used):
        for other in used[:k]:
            if record.same_as(other):
                raise InputError(
                    f"record {k + 1} has the samples of another one, {Path(other.name).name}", file=record.name,
                    key="record", value=record.name, hint="give each record once",
                )  # fmt: skip


def repeated_validation(used: Sequence[Measurement], held_out: Sequence[Measurement]) -> list[str]:
    """Warnings about records for validation that were fitted."""
    return [
        f"{Path(record.name).name}: its samples are those of a record of the fit, and validate nothing"
        for record in held_out
        if any(record.same_as(other) for other in used)
    ]
