"""Explicit Runge-Kutta methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.codegen.loop_functions import inner
from parflex.integrators.common import Number, add_work, evaluate, evaluate_at, give_inputs, normalise, place
from parflex.integrators.steps import driver

Array = np.ndarray


@inner
def _solve(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float) -> int:
    """Evaluate all stages of a step; the first one closes the positions."""
    nq = system.positions
    evaluate_at(system, work, t, q, qd, int(tableau.c[0]))  # row 0: a literal number would be compiled on its own
    for i in range(1, len(tableau.c)):
        x = work.x[i]
        place(system, x, q, qd)
        for j in range(i):
            weight = h * tableau.A[i, j]
            if weight != 0.0:
                _add(system, weight, work.y[j], x, x[nq:])
        give_inputs(system, work, t + tableau.c[i] * h, x)
        evaluate(system, work, x, work.y[i])
    return 1


@inner
def _add(system: Any, weight: float, y: Array, q: Array, qd: Array) -> None:
    """Add the rates of change of one stage to a state."""
    nq = system.positions
    for p in range(nq):
        q[p] += weight * y[nq + p]
    for k in system.free:
        qd[k] += weight * y[2 * nq + k]


@inner
def _error(system: Any, work: Any, tableau: Any, h: float) -> float:
    """Estimate the error of positions in a step (m), and of rates times its length, by the embedded method."""
    nq, largest, work.numbers[Number.POWER] = system.positions, 0.0, tableau.order
    for p in range(nq):
        largest = _larger(work, tableau.error, nq + p, h * system.extents[p], largest)
    for k in range(len(system.free)):
        largest = _larger(work, tableau.error, 2 * nq + system.free[k], h * h * system.metres[k], largest)
    return largest


@inner
def _larger(work: Any, weights: Array, column: int, factor: float, largest: float) -> float:
    """Return the size of a weighted sum of stages, if it is larger or not a number."""
    total = 0.0
    for j in range(len(weights)):
        total += weights[j] * work.y[j, column]
    size = factor * abs(total)
    return largest if size <= largest else size


@inner
def _accept(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """Make the end of the step the state."""
    for j in range(len(tableau.b)):
        _add(system, h * tableau.b[j], work.y[j], q, qd)
    normalise(system, q)
    add_work(system, work, tableau.b, h)


explicit_steps = driver("explicit_steps", solve=_solve, error=_error, accept=_accept)
