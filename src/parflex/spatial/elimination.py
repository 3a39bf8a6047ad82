"""Elimination of symmetric matrices without pivoting, A = L D L^T, over any scalar.

Zeros stay zeros, so that sparse matrices make short programs. Every principal part of a positive definite matrix is
regular, so that any order is safe; of other matrices the pivots tell by their signs how many eigenvalues are negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

Array = np.ndarray
NUMBER = 0.4  # of a symbol: what a number costs as a factor, since some of its products vanish or fold


@dataclass(frozen=True)
class EliminationStep:
    """An unknown that is eliminated: its pivot, the reciprocal of it, and its column of L over those that are left."""

    unknown: int
    pivot: Any
    inverse: Any
    column: dict[int, Any]

    def mapped(self, change: Callable[[Any], Any]) -> EliminationStep:
        """With every factor changed."""
        column = {j: change(value) for j, value in self.column.items()}
        return EliminationStep(self.unknown, self.pivot, change(self.inverse), column)


def is_zero(entry: Any) -> bool:
    """Whether an entry is zero whatever the inputs are."""
    return isinstance(entry, (int, float)) and entry == 0


def eliminate(A: Array, sparse: bool = False) -> list[EliminationStep]:
    """L and D of a symmetric matrix, of which the lower half is read, unknown after unknown.

    If it is `sparse`, the order is chosen as it goes: the unknown whose elimination touches least comes next.
    """
    return _eliminated(A, sparse, len(A))[0]


def eliminate_first(A: Array, count: int) -> tuple[list[EliminationStep], list[dict[int, Any]]]:
    """The same of the first unknowns alone, in their order; then the rows of what is left, zeros left out."""
    steps, rows = _eliminated(A, False, count)
    return steps, rows[count:]


def _eliminated(A: Array, sparse: bool, count: int) -> tuple[list[EliminationStep], list[dict[int, Any]]]:
    """Steps for so many unknowns, and all rows after them."""
    rows: list[dict[int, Any]] = [{} for _ in A]
    for i, line in enumerate(A):
        for j, entry in enumerate(line[: i + 1]):
            if not is_zero(entry):
                rows[i][j] = rows[j][i] = entry
    # what is next: costs with the unknowns, of which only the last of each unknown counts
    cost = [_cost(row, i) if sparse else 0.0 for i, row in enumerate(rows)]
    queue = sorted((value, i) for i, value in enumerate(cost))
    steps: list[EliminationStep] = []
    done: set[int] = set()
    while queue and len(steps) < count:
        value, k = heappop(queue)
        if k in done or value != cost[k]:
            continue
        done.add(k)
        own = rows[k]
        pivot = own.pop(k, 0.0)
        if is_zero(pivot):
            raise np.linalg.LinAlgError(f"the unknown with number {k} has no inertia")
        inverse = 1.0 / pivot
        others = sorted(own)
        column = {j: own[j] * inverse for j in others}
        for a, j in enumerate(others):
            del rows[j][k]
            for i in others[a:]:
                rows[i][j] = rows[j][i] = rows[i].get(j, 0.0) - own[i] * column[j]
        for j in others if sparse else ():
            cost[j] = _cost(rows[j], j)
            heappush(queue, (cost[j], j))
        steps.append(EliminationStep(k, pivot, inverse, column))
    return steps, rows


def _cost(row: dict[int, Any], pivot: int) -> float:
    """Products that eliminating this row takes, numbers counted less."""
    weight = sum(NUMBER if isinstance(x, (int, float)) else 1.0 for j, x in row.items() if j != pivot)
    return weight * (weight + 1)


def substitute(steps: list[EliminationStep], b: Any) -> list[Any]:
    """The rows x with L D L^T x = b, for rows b: of one number each, or of one for every right side."""
    x = list(b)
    for step in steps:
        for j, factor in step.column.items():
            x[j] = x[j] - factor * x[step.unknown]
    for step in reversed(steps):
        k = step.unknown
        x[k] = x[k] * step.inverse
        for j, factor in step.column.items():
            x[k] = x[k] - factor * x[j]
    return x


def solve_symmetric(A: Array, b: Array, sparse: bool = False) -> Array:
    """X with A x = b; numbers go to LAPACK. `b` is a vector or a matrix of columns."""
    if not _has_symbols(A) and not _has_symbols(b):
        return np.linalg.solve(A.astype(float), b.astype(float))
    x = np.zeros(b.shape, dtype=object)
    for k, row in enumerate(substitute(eliminate(A, sparse), b)):
        x[k] = row
    return x


def _has_symbols(array: Array) -> bool:
    return array.dtype == object and any(not isinstance(x, (int, float)) for x in array.flat)
