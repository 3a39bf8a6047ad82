"""Linear conditions in falling priority: what the first leave open the next decide, each as little missed as can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Array = np.ndarray
KEPT = 1e-9  # of the size of a block: what is left of it after the earlier ones, if smaller, says nothing


class Block(NamedTuple):
    """Conditions `rows` x = `values`. Singular values below `zero` are rounding; None: below `KEPT` of the largest."""

    rows: Array
    values: Array
    zero: float | None = None


def solve_in_order(basis: Array, blocks: Sequence[Block]) -> tuple[Array, list[Array]]:
    """The combination x = basis s with the rows of each block nearest to its values in turn, and what each misses.

    Rows of a block are comparable with each other (squares of them are added), blocks need not be. Values may have
    columns, which are solved side by side.
    """
    columns = blocks[0][1].shape[1:] if blocks else ()
    s, null, missed = np.zeros((basis.shape[1], *columns)), np.eye(basis.shape[1]), []
    for rows, values, zero in blocks:
        along = rows @ basis
        if len(values) and null.shape[1]:
            # what is left of a block after the earlier ones is compared with the whole block, not with itself
            size = float(np.linalg.norm(along, 2)) if along.size else 0.0
            U, sizes, Vt = np.linalg.svd(along @ null, full_matrices=True)
            kept = int(np.sum(sizes > (KEPT * max(size, 1e-300) if zero is None else zero)))
            if kept:
                s = s + null @ (Vt[:kept].T @ ((U[:, :kept].T @ (values - along @ s)).T / sizes[:kept]).T)
            null = null @ Vt[kept:].T
        missed.append(along @ s - values)
    return basis @ s, missed


def root_of(matrix: Array) -> Array:
    """Rows whose squares add up to x^T matrix x, for a matrix without negative eigenvalues."""
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))  # entries of kilograms beside those of kg m^2: first made alike
    size[size == 0.0] = 1.0
    values, vectors = np.linalg.eigh(matrix / np.outer(size, size))
    kept = values > 1e-14 * max(float(values.max(initial=0.0)), 1e-300)
    return np.sqrt(values[kept])[:, None] * vectors[:, kept].T * size
