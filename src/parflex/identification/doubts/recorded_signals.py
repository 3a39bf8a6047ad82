"""Doubts about single signals of a record: efforts of which nothing was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.signal

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
