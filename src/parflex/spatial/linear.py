"""Linear systems over any scalar: numbers go to LAPACK, symbols are solved by structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from parflex.spatial.dual import SlopedNumber, directions_of, plain_values, sloped_kind, slopes_last, with_slopes
from parflex.spatial.elimination import is_zero, solve_symmetric

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
    blocks are eliminated in stages. So no regular pose meets a zero pivot.
    """
    if not is_symbolic(A, b):
        return np.linalg.solve(A, b)
    kind = sloped_kind(A, b)
    if kind is not None:
        return _solve_sloped(A, b, kind)
    entry = next((entry for entry in A.flat if getattr(entry, "solves_whole", False)), None)
    if entry is not None:
        return entry.solve_system(A, b.reshape(len(b), -1)).reshape(b.shape)
    x = np.zeros(b.shape, dtype=object)
    for rows, columns in triangular_blocks(A):
        known = [k for k in range(len(b)) if k not in set(columns)]
        right = b[rows] - A[np.ix_(rows, known)] @ x[known] if known else b[rows]
        x[columns] = _solve_block(A[np.ix_(rows, columns)], right)
    return x


def eigen_pairs(A: Array, B: Array) -> tuple[Array, Array]:
    """Values, lowest first, and vectors x with A x = value B x and x^T B x = 1, of numbers; B is positive definite."""
    root = np.linalg.cholesky(B)
    half = np.linalg.solve(root, A)
    values, vectors = np.linalg.eigh(np.linalg.solve(root, half.T))
    return values, np.linalg.solve(root.T, vectors)


def _solve_sloped(A: Array, b: Array, kind: type[SlopedNumber]) -> Array:
    """The same for numbers with slopes: d(A^-1 b) = A^-1 (db - dA x), all slopes as right sides of one system."""
    count, n = directions_of(kind, A, b), len(A)
    block, right = plain_values(A, kind), plain_values(b, kind).reshape(n, -1)
    x = solve(block, right)
    changes = slopes_last(b, kind, count).reshape(n, -1, count) - np.tensordot(
        slopes_last(A, kind, count).transpose(0, 2, 1), x, 1
    ).transpose(0, 2, 1)
    return with_slopes(x, solve(block, changes.reshape(n, -1)).reshape(changes.shape), kind).reshape(b.shape)


def _solve_block(A: Array, b: Array) -> Array:
    if len(b) == 1:
        return b / A[0, 0]
    return _solve_in_stages(A, b.reshape(len(b), -1)).reshape(b.shape)


def _solve_in_stages(A: Array, B: Array) -> Array:
    """Elimination of a few unknowns at a time, each against the rows that hold them.

    The unknowns of a leg stand in the rows of its own closure alone. They are eliminated there by pivoting over these
    rows; rows that are left hold what the leg asks of the others, and take part in a later stage. A regular matrix has
    independent columns, so those of a stage are independent in their rows: a stage is as safe as the whole.
    """
    n = len(A)
    plan = min([_stages(A), [_Stage(list(range(n)), list(range(n)), [])]], key=lambda plan: _cost(plan, A, B.shape[1]))
    table, results = np.concatenate([A, B], axis=1).astype(object), []
    for stage in plan:
        carried = [*stage.others, *range(n, table.shape[1])]
        result = _eliminated(table[np.ix_(stage.rows, stage.columns)], table[np.ix_(stage.rows, carried)])
        results.append(result[: len(stage.columns)])
        left = np.zeros((len(stage.rows) - len(stage.columns), table.shape[1]), dtype=object)
        left[:, carried] = result[len(stage.columns) :]
        table = np.concatenate([np.delete(table, stage.rows, axis=0), left])
    x = np.zeros(B.shape, dtype=object)
    for stage, result in zip(reversed(plan), reversed(results), strict=True):
        known = len(stage.others)
        x[stage.columns] = result[:, known:] - result[:, :known] @ x[stage.others]
    return x


@dataclass(frozen=True)
class _Stage:
    """Columns that are eliminated from rows, and other columns that stand in these rows.

    Rows are numbered as they are then: those of earlier stages are gone, what was left of them stands behind.
    """

    rows: list[int]
    columns: list[int]
    others: list[int]


def _stages(A: Array) -> list[_Stage]:
    """Stages by the exact zeros: the column that stands in the fewest rows next, with all that stand in no others."""
    table = _pattern(A)
    columns, stages = list(range(A.shape[1])), []
    while columns:
        rows = np.flatnonzero(min((table[:, k] for k in columns), key=np.sum))
        outside = np.delete(table, rows, axis=0)
        group = [k for k in columns if not outside[:, k].any()]
        columns = [k for k in columns if k not in set(group)]
        held: Array = np.logical_or.reduce(table[rows])
        stages.append(_Stage(rows.tolist(), group, [k for k in columns if held[k]]))
        table = np.concatenate([outside, np.tile(held, (len(rows) - len(group), 1))])
    return stages


def _cost(plan: list[_Stage], A: Array, sides: int) -> int:
    """Operators of the stages for a number of right sides, all of them full."""
    n, total = len(A), 0
    table = np.concatenate([_pattern(A), np.ones((n, sides), dtype=bool)], axis=1)
    for stage in plan:
        carried = [*stage.others, *range(n, n + sides)]
        rows = table[np.ix_(stage.rows, [*stage.columns, *carried])]
        total += _gauss(rows, len(stage.columns)) + 2 * len(stage.columns) * len(stage.others) * sides
        left = np.zeros((len(rows) - len(stage.columns), n + sides), dtype=bool)
        left[:, carried] = rows[len(stage.columns) :, len(stage.columns) :]
        table = np.concatenate([np.delete(table, stage.rows, axis=0), left])
    return total


def _gauss(rows: Array, n: int) -> int:
    """Operators of pivoted elimination of the first n columns; `rows` (what is not zero) becomes what it leaves."""
    total = 0
    for k in range(n):
        held = [i for i in range(k, len(rows)) if i == k or rows[i, k]]
        rows[held] = rows[held].any(axis=0)
        total += 1 + (len(held) - 1) * (1 + 2 * int(np.sum(rows[k, k + 1 :])))
    inside = sum(2 * int(np.sum(rows[k, k + 1 : n])) + 1 for k in range(n))
    return total + inside * (rows.shape[1] - n)


def _pattern(A: Array) -> Array:
    """Which entries are not zero."""
    return np.array([[not is_zero(entry) for entry in row] for row in A])


def _eliminated(A: Array, B: Array) -> Array:
    """The solutions for the pivot rows, then what is left of the other rows; by the pivoted primitive of the scalar."""
    if A.shape == (1, 1):
        return B / A[0, 0]
    symbol = next((entry for entry in (*A.flat, *B.flat) if hasattr(entry, "solve_system")), None)
    return symbol.solve_system(A, B) if symbol is not None else _eliminated_numbers(A, B)


def _eliminated_numbers(A: Array, B: Array) -> Array:
    """The same for constants that stand among symbols."""
    order, L, U = scipy.linalg.lu(A.astype(float), p_indices=True)
    n = A.shape[1]
    top = B.astype(float)[np.argsort(order)]
    below = L[n:] @ scipy.linalg.solve_triangular(L[:n], top[:n], lower=True)
    return np.concatenate([np.linalg.solve(L[:n] @ U, top[:n]), top[n:] - below]).astype(object)


def triangular_blocks(A: Array) -> list[tuple[list[int], list[int]]]:
    """Rows and columns of the diagonal blocks of A, in an order in which each needs only earlier ones."""
    n = len(A)
    pattern = _pattern(A)
    match = scipy.sparse.csgraph.maximum_bipartite_matching(
        scipy.sparse.csr_array(pattern), perm_type="column"
    )  # column of each row
    if np.any(match < 0):
        raise np.linalg.LinAlgError("the system is singular by its structure")
    # row i waits for the row that owns each other column it uses
    owner = np.empty(n, dtype=int)
    owner[match] = np.arange(n)
    waits = np.zeros((n, n), dtype=bool)
    for i in range(n):
        for column in np.flatnonzero(pattern[i]):
            waits[i, owner[column]] = True
    count, label = scipy.sparse.csgraph.connected_components(
        scipy.sparse.csr_array(waits), directed=True, connection="strong"
    )
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


def least_norm(A: Array, b: Array, weights: Array | None = None) -> Array:
    """The x with A x = b, for independent rows of A, of which the sum of weighted squares is least."""
    if not is_symbolic(A, b) and (weights is None or not is_symbolic(weights)):
        units = 1.0 if weights is None else 1 / np.sqrt(weights)
        return units * np.linalg.lstsq(A * units, b, rcond=None)[0]
    across = A.T if weights is None else A.T / weights[:, None]
    return across @ solve_positive(A @ across, b)


def best_fit(A: Array, b: Array, units: Array) -> Array:
    """The x that fits A x = b best: exactly where A is square, else in least squares of rows over their units."""
    if A.shape[0] == A.shape[1]:
        return solve(A, b)
    E = A / units[:, None]
    return solve_positive(E.T @ E, E.T @ (b.T / units).T)


def solve_positive(A: Array, b: Array) -> Array:
    """X with A x = b for a symmetric positive definite A, without pivoting: safe in any order.

    `b` is a vector or a matrix of columns.
    """
    return solve_symmetric(A, b) if is_symbolic(A, b) else np.linalg.solve(A, b)
