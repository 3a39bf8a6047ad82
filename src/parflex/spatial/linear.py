"""Solve linear systems over any scalar: LAPACK for floats, structured elimination for symbols.

Symmetric matrices are eliminated without pivoting, A = L D L^T. Zeros stay zeros, so sparse matrices make short
programs. Every principal submatrix of a positive definite matrix is regular, so any order is safe; for other matrices
the signs of the pivots count the negative eigenvalues.

Unknowns can be eliminated in groups, each by one function that identical groups share. Inside a group zeros are
skipped, as for single unknowns; results agree to rounding. A scalar that supports shared functions has the method
`alike`: symbols then call one function for all identical elements of a robot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import scipy

from parflex.records import Record
from parflex.spatial.dual import (
    ComplexPair,
    DualNumber,
    complex_pair,
    dual_type,
    slope_count,
    slopes_last,
    with_slopes,
    without_slopes,
)

Array = np.ndarray
NUMBER = 0.4  # cost of a number as factor relative to a symbol, because some products vanish or fold


def is_symbolic(*arrays: Any) -> bool:
    """Return whether any of the arrays has symbols."""
    return any(np.asarray(array).dtype == object for array in arrays)


def scalar_type(*arrays: Any) -> type:
    """Return the dtype for results of these arrays: object for symbols, else float."""
    return object if is_symbolic(*arrays) else float


def solve(A: Array, b: Array) -> Array:
    """Return X with A x = b for a square, regular A; `b` is a vector or a matrix of columns.

    Symbolic matrices are permuted to block-triangular form by their exact zeros. Single entries are divided, larger
    blocks are eliminated in stages with pivoting, so no regular pose meets a zero pivot.
    """
    if not is_symbolic(A, b):
        return np.linalg.solve(A, b)
    kind = dual_type(A, b)
    if kind is not None:
        return _solve_sloped(A, b, kind)
    entry = _first_with("solves_whole", A)
    if entry is not None:
        return entry.solve_system(A, b.reshape(len(b), -1)).reshape(b.shape)
    entry, inverse = _first_with("kept_inverse", A), None
    if entry is not None:
        inverse = entry.kept_inverse(A, lambda matrix: _solve_by_blocks(matrix, np.eye(len(matrix), dtype=object)))
    return _solve_by_blocks(A, b) if inverse is None else inverse @ b


def _solve_by_blocks(A: Array, b: Array) -> Array:
    x = np.zeros(b.shape, dtype=object)
    for rows, columns in triangular_blocks(A):
        solved = [k for k in range(len(b)) if k not in set(columns)]
        rhs = b[rows] - A[np.ix_(rows, solved)] @ x[solved] if solved else b[rows]
        block = A[np.ix_(rows, columns)]
        x[columns] = rhs / block[0, 0] if len(rows) == 1 else _solve_in_stages(block, rhs)
    return x


def _first_with(name: str, *arrays: Array) -> Any:
    """Return the first entry whose attribute `name` is not false."""
    entries = (x for values in arrays if values.dtype == object for x in values.flat)
    return next((x for x in entries if getattr(x, name, False)), None)


def eigen_pairs(A: Array, B: Array) -> tuple[Array, Array]:
    """Return eigenvalues in rising order and vectors x with A x = value B x, x^T B x = 1; B is positive definite."""
    root = np.linalg.cholesky(B)
    values, vectors = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, A).T))
    return values, np.linalg.solve(root.T, vectors)


def _solve_sloped(A: Array, b: Array, kind: type[DualNumber]) -> Array:
    """Solve for numbers with slopes by d(A^-1 b) = A^-1 (db - dA x), with all slopes as right-hand sides."""
    count, n = slope_count(kind, A, b), len(A)
    block, rhs = without_slopes(A, kind), without_slopes(b, kind).reshape(n, -1)
    x = solve(block, rhs)
    changes = slopes_last(b, kind, count).reshape(n, -1, count) - np.tensordot(
        slopes_last(A, kind, count).transpose(0, 2, 1), x, 1
    ).transpose(0, 2, 1)
    return with_slopes(x, solve(block, changes.reshape(n, -1)).reshape(changes.shape), kind).reshape(b.shape)


def _solve_in_stages(A: Array, b: Array) -> Array:
    """Eliminate a few unknowns at a time, each stage over the rows that contain them.

    The unknowns of a leg appear in the rows of its own closure only and are eliminated there with pivoting. The
    remaining rows couple the leg with other unknowns and join a later stage. A regular matrix has independent
    columns, so those of a stage are independent in their rows: a stage is as safe as the whole.
    """
    n, B = len(A), b.reshape(len(b), -1)
    plans = _stages(A), [_Stage(list(range(n)), list(range(n)), [])]
    plan = min(plans, key=lambda plan: _plan_cost(plan, A, B.shape[1]))
    augmented, results = np.concatenate([A, B], axis=1).astype(object), []
    for stage in plan:
        behind = [*stage.others, *range(n, augmented.shape[1])]
        result = _eliminate_block(augmented[np.ix_(stage.rows, stage.columns)], augmented[np.ix_(stage.rows, behind)])
        results.append(result[: len(stage.columns)])
        reduced_rows = np.zeros((len(stage.rows) - len(stage.columns), augmented.shape[1]), dtype=object)
        reduced_rows[:, behind] = result[len(stage.columns) :]
        augmented = np.concatenate([np.delete(augmented, stage.rows, axis=0), reduced_rows])
    x = np.zeros(B.shape, dtype=object)
    for stage, result in zip(reversed(plan), reversed(results), strict=True):
        other_count = len(stage.others)
        x[stage.columns] = result[:, other_count:] - result[:, :other_count] @ x[stage.others]
    return x.reshape(b.shape)


@dataclass(frozen=True)
class _Stage:
    """Columns eliminated from rows, and the other columns of these rows.

    Row numbers refer to the remaining rows: eliminated rows are removed, reduced rows are appended.
    """

    rows: list[int]
    columns: list[int]
    others: list[int]


def _stages(A: Array) -> list[_Stage]:
    """Return stages by exact zeros: next the column in the fewest rows, with all columns in no other rows."""
    pattern = _pattern(A)
    columns, stages = list(range(A.shape[1])), []
    while columns:
        rows = np.flatnonzero(min((pattern[:, k] for k in columns), key=np.sum))
        outside = np.delete(pattern, rows, axis=0)
        group = [k for k in columns if not outside[:, k].any()]
        columns = [k for k in columns if k not in set(group)]
        nonzero_columns: Array = np.logical_or.reduce(pattern[rows])
        stages.append(_Stage(rows.tolist(), group, [k for k in columns if nonzero_columns[k]]))
        pattern = np.concatenate([outside, np.tile(nonzero_columns, (len(rows) - len(group), 1))])
    return stages


def _plan_cost(plan: list[_Stage], A: Array, rhs_count: int) -> int:
    """Return the operators of the stages for a number of full right-hand sides."""
    n, total = len(A), 0
    pattern = np.concatenate([_pattern(A), np.ones((n, rhs_count), dtype=bool)], axis=1)
    for stage in plan:
        remaining_columns = [*stage.others, *range(n, n + rhs_count)]
        rows = pattern[np.ix_(stage.rows, [*stage.columns, *remaining_columns])]
        total += _elimination_cost(rows, len(stage.columns)) + 2 * len(stage.columns) * len(stage.others) * rhs_count
        reduced_rows = np.zeros((len(rows) - len(stage.columns), n + rhs_count), dtype=bool)
        reduced_rows[:, remaining_columns] = rows[len(stage.columns) :, len(stage.columns) :]
        pattern = np.concatenate([np.delete(pattern, stage.rows, axis=0), reduced_rows])
    return total


def _elimination_cost(rows: Array, n: int) -> int:
    """Return the operators of pivoted elimination of the first n columns; fill `rows`, the pattern, in place."""
    total = 0
    for k in range(n):
        nonzero_rows = [i for i in range(k, len(rows)) if i == k or rows[i, k]]
        rows[nonzero_rows] = rows[nonzero_rows].any(axis=0)
        total += 1 + (len(nonzero_rows) - 1) * (1 + 2 * int(np.sum(rows[k, k + 1 :])))
    back_substitution = sum(2 * int(np.sum(rows[k, k + 1 : n])) + 1 for k in range(n))
    return total + back_substitution * (rows.shape[1] - n)


def _pattern(A: Array) -> Array:
    """Return which entries are not zero."""
    return np.array([[not is_zero(entry) for entry in row] for row in A])


def _eliminate_block(A: Array, B: Array) -> Array:
    """Return the solutions for the pivot rows, then the reduced other rows, by the scalar's pivoted primitive."""
    if A.shape == (1, 1):
        return B / A[0, 0]
    symbol = _first_with("solve_system", A, B)
    return symbol.solve_system(A, B) if symbol is not None else _eliminate_constants(A, B)


def _eliminate_constants(A: Array, B: Array) -> Array:
    """Eliminate a block of constants inside a symbolic matrix."""
    order, L, U = scipy.linalg.lu(A.astype(float), p_indices=True)
    n = A.shape[1]
    top = B.astype(float)[np.argsort(order)]
    below = L[n:] @ scipy.linalg.solve_triangular(L[:n], top[:n], lower=True)
    return np.concatenate([np.linalg.solve(L[:n] @ U, top[:n]), top[n:] - below]).astype(object)


def triangular_blocks(A: Array) -> list[tuple[list[int], list[int]]]:
    """Return rows and columns of the diagonal blocks of A, each depending on earlier blocks only."""
    n = len(A)
    pattern = _pattern(A)
    # column of each row
    match = scipy.sparse.csgraph.maximum_bipartite_matching(scipy.sparse.csr_array(pattern), perm_type="column")
    if np.any(match < 0):
        raise np.linalg.LinAlgError("the system is singular by its structure")
    # row i waits for the row that owns each other column it uses
    owner = np.empty(n, dtype=int)
    owner[match] = np.arange(n)
    requires = np.zeros((n, n), dtype=bool)
    requires[:, owner] = pattern
    count, label = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(requires), connection="strong")
    done: set[int] = set()
    blocks = []
    while len(done) < count:
        for block in range(count):
            rows = [int(i) for i in np.flatnonzero(label == block)]
            prerequisites = {int(label[j]) for i in rows for j in np.flatnonzero(requires[i])} - {block}
            if block not in done and prerequisites <= done:
                done.add(block)
                blocks.append((rows, [int(match[i]) for i in rows]))
    return blocks


def least_norm(A: Array, b: Array, weights: Array | None = None) -> Array:
    """Return the x with A x = b of least weighted norm, for independent rows of A."""
    if not is_symbolic(A, b) and (weights is None or not is_symbolic(weights)):
        units = 1.0 if weights is None else 1 / np.sqrt(weights)
        return units * np.linalg.lstsq(A * units, b, rcond=None)[0]
    weighted_transpose = A.T if weights is None else A.T / weights[:, None]
    return weighted_transpose @ solve_positive(A @ weighted_transpose, b)


def least_squares(A: Array, b: Array, units: Array) -> Array:
    """Return the x that solves A x = b: exactly for square A, else in least squares of rows over their units."""
    if A.shape[0] == A.shape[1]:
        return solve(A, b)
    E = A / units[:, None]
    return solve_positive(E.T @ E, E.T @ (b.T / units).T)


def solve_positive(A: Array, b: Array, sparse: bool = False) -> Array:
    """Return X with A x = b for a symmetric positive definite A, without pivoting; floats use LAPACK.

    `b` is a vector or a matrix of columns. If A is `sparse`, the order of elimination limits fill-in.
    """
    if all(isinstance(x, (int, float)) for values in (A, b) if values.dtype == object for x in values.flat):
        return np.linalg.solve(*(x.astype(float) if x.dtype == object else x for x in (A, b)))
    x = np.zeros(b.shape, dtype=object)
    for k, row in enumerate(substitute(eliminate(A, sparse), b)):
        x[k] = row
    return x


@dataclass(frozen=True)
class EliminationStep:
    """An eliminated unknown: its pivot, the reciprocal of the pivot, and its column of L."""

    unknown: int
    pivot: Any
    inverse: Any
    column: dict[int, Any]

    def mapped(self, change: Callable[[Any], Any]) -> EliminationStep:
        """Return the step with every factor mapped."""
        column = {j: change(value) for j, value in self.column.items()}
        return EliminationStep(self.unknown, self.pivot, change(self.inverse), column)


def is_zero(entry: Any) -> bool:
    """Return whether an entry is zero for all inputs."""
    return isinstance(entry, (int, float)) and entry == 0


def eliminate(A: Array, sparse: bool = False) -> list[EliminationStep]:
    """Return L and D of a symmetric matrix (lower half), one unknown at a time.

    If the matrix is `sparse`, the next unknown is the one whose elimination affects the fewest entries.
    """
    return _eliminate_unknowns(A, sparse, len(A))[0]


def _eliminate_unknowns(A: Array, sparse: bool, count: int) -> tuple[list[EliminationStep], list[dict[int, Any]]]:
    """Eliminate a number of unknowns; return the steps and all later rows."""
    rows: list[dict[int, Any]] = [{} for _ in A]
    for i, line in enumerate(A):
        for j, entry in enumerate(line[: i + 1]):
            if not is_zero(entry):
                rows[i][j] = rows[j][i] = entry
    # what is next: costs with the unknowns, of which only the last of each unknown counts
    cost = [_pivot_cost(row, i) if sparse else 0.0 for i, row in enumerate(rows)]
    queue = sorted((value, i) for i, value in enumerate(cost))
    steps: list[EliminationStep] = []
    done: set[int] = set()
    while queue and len(steps) < count:
        value, k = heappop(queue)
        if k in done or value != cost[k]:
            continue
        done.add(k)
        pivot_row = rows[k]
        pivot = pivot_row.pop(k, 0.0)
        if is_zero(pivot):
            raise np.linalg.LinAlgError(f"the unknown with number {k} has no inertia")
        inverse = 1.0 / pivot
        neighbours = sorted(pivot_row)
        column = {j: pivot_row[j] * inverse for j in neighbours}
        for a, j in enumerate(neighbours):
            del rows[j][k]
            for i in neighbours[a:]:
                rows[i][j] = rows[j][i] = rows[i].get(j, 0.0) - pivot_row[i] * column[j]
        for j in neighbours if sparse else ():
            cost[j] = _pivot_cost(rows[j], j)
            heappush(queue, (cost[j], j))
        steps.append(EliminationStep(k, pivot, inverse, column))
    return steps, rows


def _pivot_cost(row: dict[int, Any], pivot: int) -> float:
    """Return the number of products for eliminating a row; products with constants count less."""
    weight = sum(NUMBER if isinstance(x, (int, float)) else 1.0 for j, x in row.items() if j != pivot)
    return weight * (weight + 1)


def substitute(steps: list[EliminationStep], b: Any) -> list[Any]:
    """Return the rows x with L D L^T x = b, for rows b of one number each or one per right-hand side."""
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


@dataclass(frozen=True, eq=False, repr=False)
class GroupStep(Record):
    """Unknowns eliminated together, adjacent unknowns, reciprocals of pivots, and columns of L."""

    unknowns: tuple[int, ...]
    others: tuple[int, ...]
    inverse: Array
    inside: Array  # over the unknowns, below the diagonal
    outside: Array  # over the others

    def mapped(self, change: Callable[[Any], Any]) -> GroupStep:
        """Return the step with every factor mapped."""
        parts = (_each(change, part) for part in (self.inverse, self.inside, self.outside))
        return GroupStep(self.unknowns, self.others, *parts)


def eliminate_groups(A: Array, groups: Sequence[Sequence[int]]) -> list[GroupStep]:
    """Return L and D of a symmetric matrix, eliminating next the group with the fewest adjacent unknowns."""
    rows: list[dict[int, Any]] = [{} for _ in A]
    for i, j in np.argwhere(np.tril(A != 0)).tolist():
        rows[i][j] = rows[j][i] = A[i, j]
    group_of = {k: number for number, group in enumerate(groups) for k in group}
    adjacent = [_adjacent_unknowns(rows, group) for group in groups]
    queue = [(len(unknowns), number) for number, unknowns in enumerate(adjacent)]
    heapify(queue)
    steps: list[GroupStep] = []
    done: set[int] = set()
    while queue:
        size, number = heappop(queue)
        if number in done or size != len(adjacent[number]):
            continue
        done.add(number)
        step, schur = _eliminate_group(rows, groups[number], sorted(adjacent[number]))
        steps.append(step)
        for a, i in enumerate(step.others):
            for k in step.unknowns:
                rows[i].pop(k, None)
            for j, value in zip(step.others[: a + 1], schur[a], strict=False):
                if not is_zero(value):
                    rows[i][j] = rows[j][i] = rows[i].get(j, 0.0) + value
        for neighbour in {group_of[i] for i in step.others}:
            adjacent[neighbour] = _adjacent_unknowns(rows, groups[neighbour])
            heappush(queue, (len(adjacent[neighbour]), neighbour))
    return steps


def _adjacent_unknowns(rows: list[dict[int, Any]], group: Sequence[int]) -> set[int]:
    """Return the unknowns outside a group in its rows."""
    return set().union(*(rows[k] for k in group)) - set(group)


def _eliminate_group(rows: list[dict[int, Any]], group: Sequence[int], adjacent: list[int]) -> tuple[GroupStep, Array]:
    """Return an elimination step, and its update of the adjacent rows."""
    block = np.array([[rows[i].get(j, 0.0) for j in group] for i in [*group, *adjacent]], dtype=object)
    parts = shared_call(_factors, "elimination", block[: len(group)], block[len(group) :])
    return GroupStep(tuple(group), tuple(adjacent), *parts[:3]), parts[3]


def _factors(diagonal_block: Array, off_diagonal_block: Array) -> tuple[Array, Array, Array, Array]:
    """Return reciprocals of pivots, columns of L inside and outside, and the update of the lower half."""
    count, adjacent_count = len(diagonal_block), len(off_diagonal_block)
    A = np.zeros((count + adjacent_count, count + adjacent_count), dtype=object)
    A[:count, :count], A[count:, :count] = diagonal_block, off_diagonal_block
    steps, rows = _eliminate_unknowns(A, False, count)
    L: Array = np.zeros((count + adjacent_count, count), dtype=object)
    schur_update: Array = np.zeros((adjacent_count, adjacent_count), dtype=object)
    for step in steps:
        L[list(step.column), step.unknown] = list(step.column.values())
    for i, row in enumerate(rows[count:]):
        for j, value in row.items():
            schur_update[i, j - count] = value
    return np.array([step.inverse for step in steps], dtype=object), L[:count], L[count:], schur_update


def substitute_groups(steps: Sequence[GroupStep], b: Sequence[Any]) -> list[Any]:
    """Return the x with L D L^T x = b."""
    x = list(b)
    for step in steps:
        group_values = np.array([x[k] for k in step.unknowns], dtype=object)
        forward, changes = shared_call(_forward, "forward substitution", group_values, step.inside, step.outside)
        for k, value in zip(step.unknowns, forward, strict=True):
            x[k] = value
        for k, value in zip(step.others, changes, strict=True):
            x[k] = x[k] + value
    for step in reversed(steps):
        values = (np.array([x[k] for k in part], dtype=object) for part in (step.unknowns, step.others))
        arguments = (*values, step.inverse, step.inside, step.outside)
        for k, value in zip(step.unknowns, shared_call(_backward, "backward substitution", *arguments)[0], strict=True):
            x[k] = value
    return x


def _forward(rhs: Array, inside: Array, outside: Array) -> tuple[Array, Array]:
    """Return the reduced right-hand side of a group, and its update of the other rows."""
    x = rhs.copy()
    for k in range(len(x)):
        for i in range(k + 1, len(x)):
            x[i] = x[i] - inside[i, k] * x[k]
    return x, -(outside @ x) if len(outside) else np.zeros(0)


def _backward(rhs: Array, adjacent_values: Array, inverse: Array, inside: Array, outside: Array) -> tuple[Array]:
    """Return the unknowns of a group from the other unknowns."""
    x = rhs.copy()
    for k in reversed(range(len(x))):
        x[k] = x[k] * inverse[k]
        for i in range(k + 1, len(x)):
            x[k] = x[k] - inside[i, k] * x[i]
        for j in range(len(adjacent_values)):
            x[k] = x[k] - outside[j, k] * adjacent_values[j]
    return (x,)


def shared_call(function: Callable[..., tuple[Array, ...]], key: Any, *arrays: Any) -> tuple[Array, ...]:
    """Call a function of arrays that equal keys share.

    Arrays with complex pairs are passed as two parts, and then all results are pairs.
    """
    inputs = [np.asarray(values) for values in arrays]
    caller = _first_with("calls_alike", *inputs)
    if caller is None:
        return function(*inputs)
    if not isinstance(caller, ComplexPair) and not any(_has_pairs(values) for values in inputs):
        return caller.alike(function, key, inputs)
    has_pairs = [_has_pairs(values) for values in inputs]

    def apart(*parts: Array) -> tuple[Array, ...]:
        """Call the function with real and imaginary parts."""
        given = iter(parts)
        outputs = function(*(_joined(next(given), next(given)) if pairs else next(given) for pairs in has_pairs))
        return tuple(part for values in outputs for part in _parts(values))

    parts = [part for a, pairs in zip(inputs, has_pairs, strict=True) for part in (_parts(a) if pairs else [a])]
    symbol = caller.re if isinstance(caller, ComplexPair) else caller
    results = iter(symbol.alike(apart, (key, tuple(has_pairs)), parts))
    return tuple(_joined(re, im) for re, im in zip(results, results, strict=True))


def can_share_call(*arrays: Any) -> bool:
    """Return whether entries of an array support shared functions."""
    return _first_with("calls_alike", *map(np.asarray, arrays)) is not None


def _has_pairs(values: Array) -> bool:
    return values.dtype == object and any(isinstance(x, ComplexPair) for x in values.flat)


def _parts(values: Array) -> list[Array]:
    """Return real and imaginary parts."""
    return [_each(lambda x: complex_pair(x).re, values), _each(lambda x: complex_pair(x).im, values)]


def _joined(re: Array, im: Array) -> Array:
    """Return complex pairs of both parts; real numbers stay real, so zeros remain visible."""

    def join(x: Any, y: Any) -> Any:
        return x if isinstance(x, (int, float)) and is_zero(y) else ComplexPair(x, y)

    return _each(join, re, im)


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """Apply a function to numbers or symbols, entry by entry."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)
