"""Elimination of symmetric matrices over any scalar; zeros stay zeros, so that sparse matrices make short programs."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


def is_zero(entry: Any) -> bool:
    """Whether an entry is zero whatever the inputs are."""
    return isinstance(entry, (int, float)) and entry == 0


def eliminate(A: Array) -> tuple[list[Any], list[dict[int, Any]]]:
    """A = L D L^T without pivoting: the pivots, and below each the entries of its column of L."""
    A, size = A.copy(), len(A)
    pivots, columns = [], []
    for i in range(size):
        pivots.append(A[i, i])
        inverse = 1.0 / A[i, i]
        touched = [j for j in range(i + 1, size) if not is_zero(A[j, i])]
        columns.append({j: A[j, i] * inverse for j in touched})
        for n, j in enumerate(touched):
            for k in touched[n:]:
                A[k, j] = A[k, j] - columns[i][j] * A[k, i]
                A[j, k] = A[k, j]
    return pivots, columns


def substitute(pivots: list[Any], columns: list[dict[int, Any]], b: list[Any]) -> list[Any]:
    """The v with L D L^T v = b."""
    v = list(b)
    for i, column in enumerate(columns):
        for j, factor in column.items():
            v[j] = v[j] - factor * v[i]
    for i in reversed(range(len(v))):
        v[i] = v[i] * (1.0 / pivots[i])
        for j, factor in columns[i].items():
            v[i] = v[i] - factor * v[j]
    return v
