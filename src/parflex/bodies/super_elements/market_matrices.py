"""Matrices in the Matrix Market format: coordinate or array, real or integer, general or symmetric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parflex.bodies.super_elements.reduced_matrices import refuse, refuse_order

Array = np.ndarray


def read_matrix_market(text: str, file: str) -> Array:
    """One matrix in the Matrix Market format: coordinate or array, real or integer, general or symmetric."""
    lines = iter(text.splitlines())
    head = next(lines, "").lower().split()
    if len(head) != 5 or head[1] != "matrix" or head[2] not in ("coordinate", "array"):
        raise refuse(
            file, "has no valid Matrix Market header", "begin with %%MatrixMarket matrix coordinate real symmetric"
        )
    if head[3] not in ("real", "integer", "double") or head[4] not in ("general", "symmetric"):
        raise refuse(
            file, f"holds a {head[3]} {head[4]} matrix", "give a real matrix, general or symmetric", value=head[3]
        )
    rows = (line.split() for line in lines if line.strip() and not line.lstrip().startswith("%"))
    try:
        size = [int(x) for x in next(rows, [])]
        if len(size) != (3 if head[2] == "coordinate" else 2) or size[0] != size[1]:
            raise refuse(
                file, f"is {' x '.join(map(str, size[:2]))}, not a square matrix", "give M and K as they were written"
            )
        refuse_order(size[0], file)
        fill: Callable[..., Array] = _coordinates if head[2] == "coordinate" else _columns
        return fill(rows, size, head[4] == "symmetric", file)
    except (ValueError, IndexError):
        raise refuse(file, "has a line that is not an entry of a matrix", "write the matrix again") from None


def _coordinates(rows: Any, size: list[int], symmetric: bool, file: str) -> Array:
    A, count = np.zeros((size[0], size[0])), 0
    for count, (i, j, value) in enumerate(rows, 1):  # noqa: B007 - the last number is how many
        a, b = int(i) - 1, int(j) - 1
        if a < 0 or b < 0:
            raise ValueError
        A[a, b] = float(value)
        if symmetric:
            A[b, a] = A[a, b]
    if count != size[2]:
        raise refuse(file, f"has {count} of {size[2]} entries", "the file is truncated: write it again", value=count)
    return A


def _columns(rows: Any, size: list[int], symmetric: bool, file: str) -> Array:
    n = size[0]
    values = np.array([float(x) for row in rows for x in row])
    need = n * (n + 1) // 2 if symmetric else n * n
    if len(values) != need:
        raise refuse(
            file, f"has {len(values)} of {need} entries", "the file is truncated: write it again", value=len(values)
        )
    if not symmetric:
        return values.reshape(n, n).T
    A = np.zeros((n, n))
    A.T[np.triu_indices(n)] = values
    return A + np.tril(A, -1).T
