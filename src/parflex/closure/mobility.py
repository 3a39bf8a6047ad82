"""Compute mobility: rank, condition and null space of the closure Jacobian, redundant rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parflex.closure.constraints import Closures
from parflex.recursion.kinematics import jacobians, pose

Array = np.ndarray
Usual = Callable[[], float]
RANK_TOLERANCE = 1e-7  # singular values of regular poses are above 1e-4, those of repeated rows below 1e-12
SINGULAR = 1e7  # Newton finds a double root to eight digits: singular poses show up as 1e8, not as infinity
SMALL = 0.1  # of matrices without units: where all is smaller, it is compared with regular poses
EQUAL = 1e-9  # of a squared pivot: poses are closed to 1e-10, and columns of symmetric legs are equal to so much
TINY = 1e-9  # of matrices without units: what is smaller is zero, also beside other zeros


def scaled_jacobian(closures: Closures, q: Array) -> Array:
    """Return J_tot without units: lengths are divided by the characteristic length."""
    tree = closures.tree
    at = pose(tree, q)
    return scale(closures, closures.jacobian(at, jacobians(tree, at)))


def scale(closures: Closures, J: Array) -> Array:
    """Return rows from metres and rates to quantities without units."""
    return closures.row_units()[:, None] * J * (closures.tree.rate_units / closures.tree.length)[None, :]


def rank(matrix: Array, tolerance: float = RANK_TOLERANCE) -> int:
    """Return the number of nonzero singular values."""
    if 0 in matrix.shape:
        return 0
    values = np.linalg.svd(matrix, compute_uv=False)
    return int(np.sum(values > max(tolerance * values[0], TINY)))


def condition(matrix: Array, size: int | None = None, usual: Usual | None = None) -> float:
    """Return the ratio of the largest to the last (or `size`-th) singular value; infinity for a singular matrix.

    `usual` is the largest value at regular poses. If all values become small together, as the only one of a single
    row does, their own ratio does not show the singularity.
    """
    if 0 in matrix.shape:
        return 1.0
    values = np.linalg.svd(matrix, compute_uv=False)
    last = values[(size or min(matrix.shape)) - 1]
    return largest(values, usual) / float(last) if last > 0 else float("inf")


def largest(values: Array, usual: Usual | None = None) -> float:
    """Return the largest singular value, or the usual one if all are small."""
    largest_value = max(float(values[0]), TINY)
    return largest_value if usual is None or largest_value > SMALL else max(largest_value, usual())


def pivoted_columns(matrix: Array, count: int) -> tuple[Array, Array]:
    """Return columns by pivoting, each with the largest remainder, and these lengths.

    Of columns equal to within rounding the first is chosen: symmetric legs follow the order of the file.
    """
    residual, chosen, lengths = np.array(matrix, dtype=float), np.zeros(count, dtype=int), np.zeros(count)
    for k in range(count):
        squares = np.einsum("ij,ij->j", residual, residual)
        squares[chosen[:k]] = -1.0
        chosen[k] = np.flatnonzero(squares >= (1 - EQUAL) * squares.max())[0]
        lengths[k] = np.sqrt(squares[chosen[k]])
        direction = residual[:, chosen[k]] / max(lengths[k], TINY)
        residual -= np.outer(direction, direction @ residual)
    return chosen, lengths


def null_space(J: Array, generic_rank: int) -> Array:
    """Return orthonormal columns of motions that rows of this general rank allow."""
    return np.linalg.svd(J, full_matrices=True)[2][generic_rank:].T if J.size else np.eye(J.shape[1])


def redundant_rows(J: Array, generic_rank: int) -> list[int]:
    """Return rows that depend on earlier rows."""
    basis: list[Array] = []
    redundant = []
    for index, row in enumerate(J):
        residual = row.copy()
        for _ in range(2):  # twice is enough for orthogonality to rounding
            for direction in basis:
                residual = residual - direction * (direction @ residual)
        size = np.linalg.norm(residual)
        if len(basis) < generic_rank and size > RANK_TOLERANCE * max(float(np.linalg.norm(row)), 1e-300):
            basis.append(residual / size)
        else:
            redundant.append(index)
    return redundant
