"""Elimination of symmetric matrices in groups of unknowns, each by one function: alike groups share it.

Inside a group it is the elimination of single unknowns, zeros left out; beyond it the same numbers come out in another
order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from parflex.records import Record
from parflex.spatial.alike import alike
from parflex.spatial.elimination import eliminate_first, is_zero

Array = np.ndarray


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


def _each(change: Callable[[Any], Any], values: Array) -> Array:
    result = np.zeros(values.shape, dtype=object)
    for index in np.ndindex(values.shape):
        result[index] = change(values[index])
    return result


def eliminate_groups(A: Array, groups: Sequence[Sequence[int]]) -> list[GroupStep]:
    """L and D of a symmetric matrix, group after group: the one that touches the fewest others comes next."""
    rows: list[dict[int, Any]] = [{} for _ in A]
    for i, j in np.argwhere(np.tril(A != 0)).tolist():
        rows[i][j] = rows[j][i] = A[i, j]
    member = {k: number for number, group in enumerate(groups) for k in group}
    touched = [_others(rows, group) for group in groups]
    queue = [(len(others), number) for number, others in enumerate(touched)]
    heapify(queue)
    steps: list[GroupStep] = []
    done: set[int] = set()
    while queue:
        size, number = heappop(queue)
        if number in done or size != len(touched[number]):
            continue
        done.add(number)
        step, schur = _eliminated(rows, groups[number], sorted(touched[number]))
        steps.append(step)
        for a, i in enumerate(step.others):
            for k in step.unknowns:
                rows[i].pop(k, None)
            for j, value in zip(step.others[: a + 1], schur[a], strict=False):
                if not is_zero(value):
                    rows[i][j] = rows[j][i] = rows[i].get(j, 0.0) + value
        for other in {member[i] for i in step.others}:
            touched[other] = _others(rows, groups[other])
            heappush(queue, (len(touched[other]), other))
    return steps


def _others(rows: list[dict[int, Any]], group: Sequence[int]) -> set[int]:
    """Unknowns outside a group that stand in its rows."""
    return set().union(*(rows[k] for k in group)) - set(group)


def _eliminated(rows: list[dict[int, Any]], group: Sequence[int], others: list[int]) -> tuple[GroupStep, Array]:
    """A step, and what it adds to the rows of the others."""
    own = np.array([[rows[i].get(j, 0.0) for j in group] for i in group], dtype=object).reshape(len(group), -1)
    beside = np.array([[rows[i].get(j, 0.0) for j in group] for i in others], dtype=object)
    parts = alike(_factors, "elimination", own, beside.reshape(len(others), len(group)))
    return GroupStep(tuple(group), tuple(others), *parts[:3]), parts[3]


def _factors(own: Array, beside: Array) -> tuple[Array, Array, Array, Array]:
    """Reciprocals of pivots, columns of L inside and outside, and what is added to the rest (its lower half)."""
    count, more = len(own), len(beside)
    A = np.zeros((count + more, count + more), dtype=object)
    A[:count, :count], A[count:, :count] = own, beside
    steps, rows = eliminate_first(A, count)
    L: Array = np.zeros((count + more, count), dtype=object)
    rest: Array = np.zeros((more, more), dtype=object)
    for step in steps:
        L[list(step.column), step.unknown] = list(step.column.values())
    for i, row in enumerate(rows):
        for j, value in row.items():
            rest[i, j - count] = value
    return np.array([step.inverse for step in steps], dtype=object), L[:count], L[count:], rest


def substitute_groups(steps: Sequence[GroupStep], b: Sequence[Any]) -> list[Any]:
    """The numbers x with L D L^T x = b."""
    x = list(b)
    for step in steps:
        own = np.array([x[k] for k in step.unknowns], dtype=object)
        forward, changes = alike(_forward, "forward substitution", own, step.inside, step.outside)
        for k, value in zip(step.unknowns, forward, strict=True):
            x[k] = value
        for k, value in zip(step.others, changes, strict=True):
            x[k] = x[k] + value
    for step in reversed(steps):
        own, others = (np.array([x[k] for k in part], dtype=object) for part in (step.unknowns, step.others))
        given = (own, others, step.inverse, step.inside, step.outside)
        for k, value in zip(step.unknowns, alike(_backward, "backward substitution", *given)[0], strict=True):
            x[k] = value
    return x


def _forward(own: Array, inside: Array, outside: Array) -> tuple[Array, Array]:
    """What is left of a right side in the rows of a group, and what that adds to those of the others."""
    x = own.copy()
    for k in range(len(x)):
        for i in range(k + 1, len(x)):
            x[i] = x[i] - inside[i, k] * x[k]
    return x, -(outside @ x) if len(outside) else np.zeros(0)


def _backward(own: Array, others: Array, inverse: Array, inside: Array, outside: Array) -> tuple[Array]:
    """Unknowns of a group from those of the others."""
    x = own.copy()
    for k in reversed(range(len(x))):
        x[k] = x[k] * inverse[k]
        for i in range(k + 1, len(x)):
            x[k] = x[k] - inside[i, k] * x[i]
        for j in range(len(others)):
            x[k] = x[k] - outside[j, k] * others[j]
    return (x,)
