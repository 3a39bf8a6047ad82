"""Of all numbers that give the base parameters that were found, those nearest to the file's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.identification.base_columns import BaseColumns
from parflex.identification.unknowns import Unknown, usual_sizes

Array = np.ndarray
NEVER_NEGATIVE = ("FV", "FS", "FV_back", "FS_back", "IA", "k", "d")
EXACT = 1e-9  # of the base parameters: what numbers may miss of them


def nearest_parameters(base: BaseColumns, values: Array, every: Sequence[Unknown], told: list[int]) -> dict[str, float]:
    """All parameters, changed as little as the identified ones allow, each measured with its own size.

    Numbers of joints and springs that would become negative are zero where others can take their part.
    """
    theta, size = np.array([one.value for one in every]), usual_sizes(every, base.kept)
    G, wanted = base.groups[told], values[told]
    signed = np.array([one.symbol in NEVER_NEGATIVE for one in every])
    gone = np.zeros(len(every), dtype=bool)
    found = theta
    for _ in range(len(every)):
        start = np.where(gone, 0.0, theta)
        way = np.where(gone, 0.0, size)
        change = np.linalg.lstsq(G * way, wanted - G @ start, rcond=None)[0] * way
        missed = np.abs(G @ (start + change) - wanted)
        if gone.any() and (missed > EXACT * (np.abs(G) @ np.maximum(np.abs(theta), size))).any():
            break  # others cannot: it is negative, and said to be
        found = start + change
        negative = signed & (found < 0)
        if not negative.any():
            break
        gone |= negative
    return {one.name: float(value) for one, value in zip(every, found, strict=True)}
