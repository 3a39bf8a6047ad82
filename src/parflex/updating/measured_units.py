"""Whether measured frequencies are in another unit than Hz: beside those of the file, before anything is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from parflex.updating.measured_modes import MeasuredMode
from parflex.updating.pairing import ALONE, FREQUENCY_WIDTH, first_pairs
from parflex.updating.pose_modes import PoseModes

UNITS = {"rad/s": 2 * np.pi, "rpm": 60.0, "kHz": 1e-3}  # numbers of each in one Hz
FAR = 2 * FREQUENCY_WIDTH  # numbers that are not known well seldom change frequencies by more; units do it by 6 or more
FEWEST = 2  # measured frequencies: one may be off by any factor


def unit_doubts(
    rows: Sequence[MeasuredMode], models: Mapping[str, PoseModes], of_pose: Mapping[str, Sequence[int]]
) -> list[str]:
    """A warning that names the unit in which frequencies are near those of the file, where they are not in Hz."""
    if len(rows) < FEWEST or _off(rows, models, of_pose, 1.0) <= FAR:
        return []
    for name, factor in UNITS.items():
        if _off(rows, models, of_pose, factor) <= FAR:
            return [
                f"measured frequencies are about {factor:.4g} times those of the file: if they are in {name}, divide "
                f"frequency_hz and deviation_hz by {factor:.6g}"
            ]
    return []


def _off(
    rows: Sequence[MeasuredMode], models: Mapping[str, PoseModes], of_pose: Mapping[str, Sequence[int]], factor: float
) -> float:
    """Median of the distances between measured and computed frequencies, as logarithms of their ratios."""
    found = []
    for pose, own in of_pose.items():
        several = [replace(rows[k], frequency=rows[k].frequency / factor) for k in own]
        for one, mode in zip(several, first_pairs(several, models[pose]).modes, strict=True):
            lost = FREQUENCY_WIDTH * np.sqrt(ALONE)
            found.append(lost if mode < 0 else abs(np.log(one.frequency / models[pose].frequencies[mode])))
    return float(np.median(found))
