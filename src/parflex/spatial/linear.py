"""Linear systems over any scalar: numbers go to LAPACK, symbols are solved by structure."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

Array = np.ndarray


def is_symbolic(*arrays: Any) -> bool:
    """Whether any of the arrays holds symbols."""
    return any(np.asarray(array).dtype == object for array in arrays)


def scalar_type(*arrays: Any) -> type:
    """The entries of an array that is to hold results of these: object for symbols, else float."""
    return object if is_symbolic(*arrays) else float


def solve(A: Array, b: Array) -> Array:
    """X with A x = b for a square, regular A; `b` is a vector or a matrix of columns.

    Symbols: the matrix is brought to block-triangular form by its exact zeros; single entries are divided by, larger
    blocks go to the pivoted primitive of the scalar. So no regular pose meets a zero pivot.
    """
    if not is_symbolic(A, b):
        return np.linalg.solve(A, b)
    x = np.zeros(b.shape, dtype=object)
    for rows, columns in triangular_blocks(A):
        known = [k for k in range(len(b)) if k not in set(columns)]
        right = b[rows] - A[np.ix_(rows, known)] @ x[known] if known else b[rows]
        x[columns] = _solve_block(A[np.ix_(rows, columns)], right)
    return x


def _solve_block(A: Array, b: Array) -> Array:
    if len(b) == 1:
        return b / A[0, 0]
    symbol = next((entry for entry in (*A.flat, *b.flat) if hasattr(entry, "solve_system")), None)
    if symbol is None:
        return np.linalg.solve(A.astype(float), b.astype(float)).astype(object)
    return symbol.solve_system(A, b)


def triangular_blocks(A: Array) -> list[tuple[list[int], list[int]]]:
    """Rows and columns of the diagonal blocks of A, in an order in which each needs only earlier ones."""
    n = len(A)
    pattern = np.array([[not _is_zero(entry) for entry in row] for row in A])
    match = maximum_bipartite_matching(csr_array(pattern), perm_type="column")  # column of each row
    if np.any(match < 0):
        raise np.linalg.LinAlgError("the system is singular by its structure")
    # row i waits for the row that owns each other column it uses
    owner = np.empty(n, dtype=int)
    owner[match] = np.arange(n)
    waits = np.zeros((n, n), dtype=bool)
    for i in range(n):
        for column in np.flatnonzero(pattern[i]):
            waits[i, owner[column]] = True
    count, label = connected_components(csr_array(waits), directed=True, connection="strong")
    done: set[int] = set()
    blocks = []
    while len(done) < count:
        for block in range(count):
            rows = [int(i) for i in np.flatnonzero(label == block)]
            needs = {int(label[j]) for i in rows for j in np.flatnonzero(waits[i])} - {block}
            if block not in done and needs <= done:
                done.add(block)
                blocks.append((rows, [int(match[i]) for i in rows]))
    return blocks


def _is_zero(entry: Any) -> bool:
    return isinstance(entry, (int, float)) and entry == 0


def solve_positive(A: Array, b: Array) -> Array:
    """X with A x = b for a symmetric positive definite A, without pivoting: safe in any order."""
    if not is_symbolic(A, b):
        return np.linalg.solve(A, b)
    n = len(b)
    L = np.zeros((n, n), dtype=object)
    scaled = np.zeros((n, n), dtype=object)  # L D
    inverse = np.zeros(n, dtype=object)
    for i in range(n):
        for j in range(i + 1):
            value = A[i, j]
            for k in range(j):
                value = value - scaled[i, k] * L[j, k]
            scaled[i, j] = value
            if j < i:
                L[i, j] = value * inverse[j]
        inverse[i] = 1.0 / scaled[i, i]
    x = np.array(b, dtype=object)
    for i in range(n):
        for k in range(i):
            x[i] = x[i] - L[i, k] * x[k]
    x = x * inverse
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] = x[i] - L[k, i] * x[k]
    return x
