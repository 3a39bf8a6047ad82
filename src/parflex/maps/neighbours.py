"""Nearest computed poses, where Newton's method starts."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

Array = np.ndarray
FEW = 64  # poses that are compared with all others one by one
SIDE_BY_SIDE = 256  # poses whose distances are there at a time: they stay in the cache


def nearest_point(points: Array, values: Array) -> Array:
    """The nearest of some points to each value, about: by products of single precision, which few points allow."""
    middle = values.mean(axis=0)
    a, b = (points - middle).astype(np.float32), (values - middle).astype(np.float32)
    lengths, ways = (a * a).sum(axis=1), np.ascontiguousarray(-2.0 * a.T)
    found = np.empty(len(b), dtype=np.int64)
    for start in range(0, len(b), SIDE_BY_SIDE):
        far = b[start : start + SIDE_BY_SIDE] @ ways
        far += lengths
        np.argmin(far, axis=1, out=found[start : start + SIDE_BY_SIDE])
    return found


def neighbours(points: Array, values: Array, count: int) -> tuple[Array, Array]:
    """Distances of some of the points to each value, nearest first, and which these are."""
    if len(values) > FEW:
        return cKDTree(points).query(values, k=list(range(1, count + 1)))
    far = np.zeros((len(values), len(points)))
    for own, given in zip(points.T, values.T, strict=True):  # for so few a tree takes longer to grow
        far += (given[:, None] - own) ** 2
    nearest = np.argpartition(far, count - 1, axis=1)[:, :count]
    chosen = np.take_along_axis(far, nearest, axis=1)
    order = np.argsort(chosen, axis=1, kind="stable")
    return np.sqrt(np.take_along_axis(chosen, order, axis=1)), np.take_along_axis(nearest, order, axis=1)
