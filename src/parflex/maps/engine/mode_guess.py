"""Where modes are likely to be: a polynomial of pose and design, fitted to the modes of some poses of a chunk.

Only how much the polynomial changes from the last pose of a lane to the next one is used. A poor guess costs steps and
nothing else: what is found is proved without it.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
APART = 8  # one of so many poses is solved first
FEWEST = 768  # poses from which a guess pays
SAMPLES = 2.5  # times the terms of a polynomial: poses that it is fitted to, at least
NEAR = 0.02  # of what coordinates span: where the next pose is nearer than this, the last one is guess enough
RIDGE = 1e-9


def fit_pays(features: Array | None, order: Array) -> bool:
    """Whether poses are many, and neighbours in their order far enough from each other."""
    if features is None or len(order) < FEWEST or not features.shape[1]:
        return False
    span = np.maximum(np.ptp(features, axis=0), 1e-300)
    some = order[: min(len(order), 512)]
    return bool(np.median(np.abs(np.diff(features[some], axis=0) / span).max(axis=1)) > NEAR)


def guessed_changes(features: Array, known: Array, x: Array) -> Array | None:
    """Factors (poses x modes) that modes change by with pose and design; `x` are the modes of the poses `known`."""
    low, high = features.min(axis=0), features.max(axis=0)
    used = high > low
    moved = ((features - 0.5 * (low + high)) / np.where(used, 0.5 * (high - low), 1.0))[:, used]
    terms = _terms(moved, len(known))
    if terms is None:
        return None
    chosen = terms[known]
    square = chosen.T @ chosen
    square[np.diag_indices_from(square)] += RIDGE * len(known)
    found = np.linalg.solve(square, chosen.T @ np.log(x))
    # single precision: how products of matrices are rounded must not show in what follows
    return np.exp((terms @ found).astype(np.float32)).astype(float)


def _terms(moved: Array, samples: int) -> Array | None:
    """A constant, coordinates and their products, as far as the samples allow."""
    count, width = moved.shape
    whole = 1 + width + width * (width + 1) // 2
    if samples < SAMPLES * (1 + width):
        return None
    terms = np.empty((count, whole if samples >= SAMPLES * whole else 1 + width))
    terms[:, 0] = 1.0
    terms[:, 1 : 1 + width] = moved
    if terms.shape[1] == whole:
        start = 1 + width
        for k in range(width):
            np.multiply(moved[:, k:], moved[:, k : k + 1], out=terms[:, start : start + width - k])
            start += width - k
    return terms
