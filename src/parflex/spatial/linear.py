"""Linear systems over any scalar: LAPACK for floats, structured elimination for symbols.

Symmetric matrices are eliminated without pivoting, A = L D L^T. Zeros stay zeros, so sparse matrices make short
programs. Every principal part of a positive definite matrix is regular, so any order is safe; for other matrices the
signs of the pivots count the negative eigenvalues.

Unknowns can be eliminated in groups, each by one function that identical groups share. Inside a group zeros are left
out, as for single unknowns; beyond it the result is the same but for rounding. A scalar that supports shared functions
has the method `alike`: symbols then call one function for all identical elements of a robot.
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
NUMBER = 0.4  # of a symbol: what a number costs as a factor, since some of its products vanish or fold


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
    """The first entry that has something by this name, which is not false."""
    entries = (x for values in arrays if values.dtype == object for x in values.flat)
    return next((x for x in entries if getattr(x, name, False)), None)


def eigen_pairs(A: Array, B: Array) -> tuple[Array, Array]:
    """Values, lowest first, and vectors x with A x = value B x and x^T B x = 1, of numbers; B is positive definite."""
    root = np.linalg.cholesky(B)
    values, vectors = np.linalg.eigh(np.linalg.solve(root, np.linalg.solve(root, A).T))
    return values, np.linalg.solve(root.T, vectors)


def _solve_sloped(A: Array, b: Array, kind: type[DualNumber]) -> Array:
    """The same for numbers with slopes: d(A^-1 b) = A^-1 (db - dA x), all slopes as right sides of one system."""
    count, n = slope_count(kind, A, b), len(A)
    block, rhs = without_slopes(A, kind), without_slopes(b, kind).reshape(n, -1)
    x = solve(block, rhs)
    changes = slopes_last(b, kind, count).reshape(n, -1, count) - np.tensordot(
        slopes_last(A, kind, count).transpose(0, 2, 1), x, 1
    ).transpose(0, 2, 1)
    return with_slopes(x, solve(block, changes.reshape(n, -1)).reshape(changes.shape), kind).reshape(b.shape)


def _solve_in_stages(A: Array, b: Array) -> Array:
    """Elimination of a few unknowns at a time, each against the rows that hold them.

    The unknowns of a leg stand in the rows of its own closure alone. They are eliminated there by pivoting over these
    rows; rows that are left hold what the leg asks of the others, and take part in a later stage. A regular matrix has
    independent columns, so those of a stage are independent in their rows: a stage is as safe as the whole.
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
    """Columns that are eliminated from rows, and other columns that stand in these rows.

    Rows are numbered as they are then: those of earlier stages are gone, what was left of them stands behind.
    """

    rows: list[int]
    columns: list[int]
    others: list[int]


def _stages(A: Array) -> list[_Stage]:
    """Stages by the exact zeros: the column that stands in the fewest rows next, with all that stand in no others."""
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
    """Operators of the stages for a number of right sides, all of them full."""
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
    """Operators of pivoted elimination of the first n columns; `rows` (what is not zero) becomes what it leaves."""
    total = 0
    for k in range(n):
        nonzero_rows = [i for i in range(k, len(rows)) if i == k or rows[i, k]]
        rows[nonzero_rows] = rows[nonzero_rows].any(axis=0)
        total += 1 + (len(nonzero_rows) - 1) * (1 + 2 * int(np.sum(rows[k, k + 1 :])))
    back_substitution = sum(2 * int(np.sum(rows[k, k + 1 : n])) + 1 for k in range(n))
    return total + back_substitution * (rows.shape[1] - n)


def _pattern(A: Array) -> Array:
    """Which entries are not zero."""
    return np.array([[not is_zero(entry) for entry in row] for row in A])


def _eliminate_block(A: Array, B: Array) -> Array:
    """The solutions for the pivot rows, then what is left of the other rows; by the pivoted primitive of the scalar."""
    if A.shape == (1, 1):
        return B / A[0, 0]
    symbol = _first_with("solve_system", A, B)
    return symbol.solve_system(A, B) if symbol is not None else _eliminate_constants(A, B)


def _eliminate_constants(A: Array, B: Array) -> Array:
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
    """The x with A x = b, for independent rows of A, of which the sum of weighted squares is least."""
    if not is_symbolic(A, b) and (weights is None or not is_symbolic(weights)):
        units = 1.0 if weights is None else 1 / np.sqrt(weights)
        return units * np.linalg.lstsq(A * units, b, rcond=None)[0]
    weighted_transpose = A.T if weights is None else A.T / weights[:, None]
    return weighted_transpose @ solve_positive(A @ weighted_transpose, b)


def least_squares(A: Array, b: Array, units: Array) -> Array:
    """The x that fits A x = b best: exactly where A is square, else in least squares of rows over their units."""
    if A.shape[0] == A.shape[1]:
        return solve(A, b)
    E = A / units[:, None]
    return solve_positive(E.T @ E, E.T @ (b.T / units).T)


def solve_positive(A: Array, b: Array, sparse: bool = False) -> Array:
    """X with A x = b for a symmetric positive definite A, without pivoting: safe in any order; numbers go to LAPACK.

    `b` is a vector or a matrix of columns. If A is `sparse`, unknowns are eliminated in an order that keeps it so.
    """
    if all(isinstance(x, (int, float)) for values in (A, b) if values.dtype == object for x in values.flat):
        return np.linalg.solve(*(x.astype(float) if x.dtype == object else x for x in (A, b)))
    x = np.zeros(b.shape, dtype=object)
    for k, row in enumerate(substitute(eliminate(A, sparse), b)):
        x[k] = row
    return x


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
    return _eliminate_unknowns(A, sparse, len(A))[0]


def _eliminate_unknowns(A: Array, sparse: bool, count: int) -> tuple[list[EliminationStep], list[dict[int, Any]]]:
    """Steps for so many unknowns, and all rows after them."""
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


@dataclass(frozen=True, eq=False, repr=False)
class GroupStep(Record):
    """Unknowns that are eliminated together, those that they touch, reciprocals of pivots, and columns of L."""

    unknowns: tuple[int, ...]
    others: tuple[int, ...]
    inverse: Array
    inside: Array  # over the unknowns, below the diagonal
    outside: Array  # over the others

    def mapped(self, change: Callable[[Any], Any]) -> GroupStep:
        """With every factor changed."""
        parts = (_each(change, part) for part in (self.inverse, self.inside, self.outside))
        return GroupStep(self.unknowns, self.others, *parts)


def eliminate_groups(A: Array, groups: Sequence[Sequence[int]]) -> list[GroupStep]:
    """L and D of a symmetric matrix, group after group: the one that touches the fewest others comes next."""
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
    """Unknowns outside a group that stand in its rows."""
    return set().union(*(rows[k] for k in group)) - set(group)


def _eliminate_group(rows: list[dict[int, Any]], group: Sequence[int], adjacent: list[int]) -> tuple[GroupStep, Array]:
    """A step, and what it adds to the rows of the others."""
    block = np.array([[rows[i].get(j, 0.0) for j in group] for i in [*group, *adjacent]], dtype=object)
    parts = shared_call(_factors, "elimination", block[: len(group)], block[len(group) :])
    return GroupStep(tuple(group), tuple(adjacent), *parts[:3]), parts[3]


def _factors(diagonal_block: Array, off_diagonal_block: Array) -> tuple[Array, Array, Array, Array]:
    """Reciprocals of pivots, columns of L inside and outside, and what is added to the rest (its lower half)."""
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
    """The numbers x with L D L^T x = b."""
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
    """What is left of a right side in the rows of a group, and what that adds to those of the others."""
    x = rhs.copy()
    for k in range(len(x)):
        for i in range(k + 1, len(x)):
            x[i] = x[i] - inside[i, k] * x[k]
    return x, -(outside @ x) if len(outside) else np.zeros(0)


def _backward(rhs: Array, adjacent_values: Array, inverse: Array, inside: Array, outside: Array) -> tuple[Array]:
    """Unknowns of a group from those of the others."""
    x = rhs.copy()
    for k in reversed(range(len(x))):
        x[k] = x[k] * inverse[k]
        for i in range(k + 1, len(x)):
            x[k] = x[k] - inside[i, k] * x[i]
        for j in range(len(adjacent_values)):
            x[k] = x[k] - outside[j, k] * adjacent_values[j]
    return (x,)


def shared_call(function: Callable[..., tuple[Array, ...]], key: Any, *arrays: Any) -> tuple[Array, ...]:
    """Results of a function of arrays; the function is the same for equal keys, words or things that hold the same.

    Where an array holds pairs, these go through as two parts, and all results are pairs.
    """
    inputs = [np.asarray(values) for values in arrays]
    caller = _first_with("calls_alike", *inputs)
    if caller is None:
        return function(*inputs)
    if not isinstance(caller, ComplexPair) and not any(_has_pairs(values) for values in inputs):
        return caller.alike(function, key, inputs)
    has_pairs = [_has_pairs(values) for values in inputs]

    def apart(*parts: Array) -> tuple[Array, ...]:
        """The function of real and imaginary parts."""
        given = iter(parts)
        outputs = function(*(_joined(next(given), next(given)) if pairs else next(given) for pairs in has_pairs))
        return tuple(part for values in outputs for part in _parts(values))

    parts = [part for a, pairs in zip(inputs, has_pairs, strict=True) for part in (_parts(a) if pairs else [a])]
    symbol = caller.re if isinstance(caller, ComplexPair) else caller
    results = iter(symbol.alike(apart, (key, tuple(has_pairs)), parts))
    return tuple(_joined(re, im) for re, im in zip(results, results, strict=True))


def can_share_call(*arrays: Any) -> bool:
    """Whether entries of an array would call one function for alike things."""
    return _first_with("calls_alike", *map(np.asarray, arrays)) is not None


def _has_pairs(values: Array) -> bool:
    return values.dtype == object and any(isinstance(x, ComplexPair) for x in values.flat)


def _parts(values: Array) -> list[Array]:
    """Real and imaginary parts."""
    return [_each(lambda x: complex_pair(x).re, values), _each(lambda x: complex_pair(x).im, values)]


def _joined(re: Array, im: Array) -> Array:
    """Pairs of both parts; real numbers stay such, so that zeros are seen."""

    def join(x: Any, y: Any) -> Any:
        return x if isinstance(x, (int, float)) and is_zero(y) else ComplexPair(x, y)

    return _each(join, re, im)


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    """A function of numbers or symbols, entry by entry."""
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays), dtype=object)
