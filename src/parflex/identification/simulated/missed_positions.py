"""Whether the controller of the map is that of the record: simulated positions beside those recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from parflex.identification.column_map import FeedbackLaw
from parflex.identification.filtering import HARDLY, FilterChoice
from parflex.identification.identified import Prediction
from parflex.identification.low_pass import butterworth
from parflex.identification.measured_files import Measurement

Array = np.ndarray
GAINS_OFF = 0.05  # of the following error: gains that are off by as much change it by as much
UNEXPLAINED = 2.0  # times the share of the efforts that the model misses: so much of the following error it misses, too


def missed(record: Measurement, simulated: Array, choice: FilterChoice) -> tuple[Array, Array]:
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


def following_doubts(
    motors: Sequence[str], law: FeedbackLaw, records: Sequence[Measurement], shares: Sequence[tuple[Array, Array]],
    predictions: Sequence[Prediction],
) -> list[str]:  # fmt: skip
    """Warnings about motors that do not follow the reference under the controller of the map as they did.

    Under computed torque what is left to follow is the error of the model: it says nothing of the gains.
    """
    found: list[str] = []
    if law.law == "ctc":
        return found
    for record, (share, over), told in zip(records, shares, predictions, strict=True):
        limit = max(GAINS_OFF, UNEXPLAINED * told.relative_error)
        far = [k for k in range(len(motors)) if share[k] > limit and over[k] > HARDLY]
        if far:
            k = max(far, key=lambda one: float(share[one]))
            found.append(
                f"{Path(record.name).name}: under the controller of the map '{motors[k]}' misses recorded positions by "
                f"{100 * share[k]:.3g} % of its following error: check gains, sample time and delay of [controller]"
            )
    return found
