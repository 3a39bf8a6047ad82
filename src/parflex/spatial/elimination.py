"""Symmetric positive definite systems by elimination in an order that keeps them sparse, over any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.spatial.linear import is_symbolic

Array = np.ndarray
NUMBER = 0.4  # of a symbol: what a number costs as a factor, since some of its products vanish or fold


def solve_sparse(A: Array, b: Array) -> Array:
    """X with A x = b. The order is chosen as it goes: the row whose elimination touches least comes next.

    No pivoting is needed: every principal part of a positive definite matrix is regular.
    """
    if not _has_symbols(A) and not _has_symbols(b):
        return np.linalg.solve(A.astype(float), b.astype(float))
    n = len(b)
    rows = [{j: A[i, j] for j in range(n) if not _is_zero(A[i, j])} for i in range(n)]
    right = list(b)
    left = set(range(n))
    done: list[tuple[int, Any, dict[int, Any]]] = []
    while left:
        k = min(sorted(left), key=lambda i: _cost(rows[i], i))
        left.discard(k)
        if _is_zero(rows[k].get(k, 0.0)):
            raise np.linalg.LinAlgError(f"the unknown with number {k} has no inertia")
        inverse = 1.0 / rows[k][k]
        others = {j: value for j, value in rows[k].items() if j != k}
        scaled = {j: value * inverse for j, value in others.items()}
        keys = sorted(others)
        for a, i in enumerate(keys):
            for j in keys[: a + 1]:
                value = rows[i].get(j, 0.0) - scaled[i] * others[j]
                rows[i][j] = rows[j][i] = value
            right[i] = right[i] - scaled[i] * right[k]
            rows[i].pop(k, None)
        done.append((k, inverse, scaled))
    x = np.zeros(n, dtype=object)
    for k, inverse, scaled in reversed(done):
        value = right[k] * inverse
        for j, factor in scaled.items():
            value = value - factor * x[j]
        x[k] = value
    return x


def _has_symbols(array: Array) -> bool:
    return is_symbolic(array) and any(not isinstance(x, (int, float, np.floating)) for x in array.flat)


def _cost(row: dict[int, Any], pivot: int) -> float:
    """Products that eliminating this row takes, numbers counted less."""
    weight = sum(NUMBER if isinstance(x, (int, float)) else 1.0 for j, x in row.items() if j != pivot)
    return weight * (weight + 1)


def _is_zero(entry: Any) -> bool:
    return isinstance(entry, (int, float)) and entry == 0
