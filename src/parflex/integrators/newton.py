"""Matrix of the simplified Newton iteration of implicit steps: differences, modes, factors or inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.codegen.loop_compiler import simd_range
from parflex.codegen.loop_functions import call_model, inlined, inner
from parflex.integrators.common import POSITION_STEP, RATE_STEP, Count, Number, copy, evaluate

Array = np.ndarray
MOST_ITERATIONS = 25


@inner
def differentiate(system: Any, work: Any, row: int, spare: int) -> None:
    """Differentiate the free accelerations by free positions and rates, by differences about a row of the work.

    A free position moves along the rates of all positions, in both directions: a rotation stretches a stiff beam by its
    square.
    """
    free, nq, count = system.free, system.positions, len(system.free)
    x, y, base = work.x[spare], work.y[spare], work.y[row]
    first = 2 * nq
    for k in range(count):
        position_step, rate_step = system.units[k] * POSITION_STEP, system.units[k] * RATE_STEP
        copy(work.x[row], x)
        for p in range(system.rates):
            x[nq + p] = 0.0
        x[nq + free[k]] = 1.0
        evaluate(system, work, x, y)
        copy(y[nq:], work.ways[k])
        copy(work.x[row], x)
        for side in (-1.0, 1.0):
            for p in range(nq):
                x[p] = base[p] + side * position_step * work.ways[k, p]
            evaluate(system, work, x, y)
            for i in range(count):
                before = 0.0 if side < 0 else work.jacobian[0, i, k]
                work.jacobian[0, i, k] = before + side * y[first + free[i]] / (2 * position_step)
        copy(work.x[row], x)
        x[nq + free[k]] += rate_step
        evaluate(system, work, x, y)
        for i in range(count):
            work.jacobian[1, i, k] = (y[first + free[i]] - base[first + free[i]]) / rate_step


@inner
def take_state(system: Any, work: Any, row: int) -> None:
    """Take the state in a row of the work, which was evaluated, as that at which modes are made."""
    work.counts[Count.BEST], work.counts[Count.EXTRA_ITERATIONS], work.counts[Count.FRESH] = MOST_ITERATIONS, 0, 1
    if system.dense != 0 and system.factor == 0 and system.real_factor == 0:
        differentiate(system, work, row, row + 1)
        return
    x, stepping, width = work.x[row], work.stepping, system.positions + system.rates
    for k in range(width):
        stepping[k] = x[k]
    for k in range(len(system.slack)):
        stepping[width + k] = x[system.gate_x + k]


@inner
def make_modes(system: Any, work: Any, h: float) -> None:
    """Make factors or inverses of all modes, at the linearisation state, for the coefficients of a step."""
    count = len(system.free)
    for m in range(len(work.coefficients)):
        real = work.coefficients[m, 1] == 0.0
        if system.dense != 0 and system.factor == 0 and system.real_factor == 0:
            _matrix(work.matrix, work.jacobian, work.coefficients[m])
            _invert(work.matrix, work.inverses[m], count)
            _turns(work.inverses[m], work.ways, system.turning, count)
            continue
        solving, first = work.solving[m], count if real else 2 * count
        for k in range(4):
            work.stepping[len(work.stepping) - 4 + k] = work.coefficients[m, k]
        factors = solving[first:]
        address = system.real_factor if real else system.factor
        call_model(address, work.stepping.ctypes.data, factors.ctypes.data)
        if system.dense != 0:
            address = system.real_solve if real else system.solve
            _columns(address, solving, work.solved, work.inverses[m], count, real)
    work.counts[Count.JACOBIANS] += 1
    work.numbers[Number.MATRIX_STEP] = h


@inner
def _columns(address: int, solving: Array, solved: Array, inverse: Array, count: int, real: bool) -> None:
    """Fill the inverse of a mode, one unit miss after the other."""
    rows = inverse.shape[2]
    for k in range(count if real else 2 * count):
        solving[k] = 0.0
    for k in range(count):
        solving[k] = 1.0
        call_model(address, solving.ctypes.data, solved.ctypes.data)
        solving[k] = 0.0
        for r in range(rows):
            inverse[0, k, r] = solved[r]
            inverse[1, k, r] = 0.0 if real else solved[rows + r]


@inner
def _matrix(matrix: Array, jacobian: Array, c: Array) -> None:
    """Fill 1 - c1 d(acceleration)/d(rate) - c2 d(acceleration)/d(position), real and imaginary part."""
    for k in range(matrix.shape[1]):
        for m in range(matrix.shape[1]):
            unit = 1.0 if k == m else 0.0
            matrix[0, k, m] = unit - c[0] * jacobian[1, k, m] - c[2] * jacobian[0, k, m]
            matrix[1, k, m] = -c[1] * jacobian[1, k, m] - c[3] * jacobian[0, k, m]


@inner
def _invert(matrix: Array, inverse: Array, n: int) -> None:
    """Fill the transposed inverse by elimination with row pivots; the matrix is overwritten."""
    a, b, u, v = matrix[0], matrix[1], inverse[0], inverse[1]
    for i in range(n):
        for j in range(n):
            u[i, j] = 1.0 if i == j else 0.0
            v[i, j] = 0.0
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(a[i, k]) + abs(b[i, k]) > abs(a[best, k]) + abs(b[best, k]):
                best = i
        square = a[best, k] * a[best, k] + b[best, k] * b[best, k]
        re, im = a[best, k] / square, -b[best, k] / square
        for j in range(n):
            p, q, r, s = a[best, j], b[best, j], u[j, best], v[j, best]
            a[best, j], b[best, j], u[j, best], v[j, best] = a[k, j], b[k, j], u[j, k], v[j, k]
            a[k, j], b[k, j] = p * re - q * im, p * im + q * re
            u[j, k], v[j, k] = r * re - s * im, r * im + s * re
        for i in range(n):
            re, im = a[i, k], b[i, k]
            if i != k and (re != 0.0 or im != 0.0):
                for j in simd_range(n - k):
                    p, q = a[k, k + j], b[k, k + j]
                    a[i, k + j] -= p * re - q * im
                    b[i, k + j] -= p * im + q * re
                for j in range(n):
                    p, q = u[j, k], v[j, k]
                    u[j, i] -= p * re - q * im
                    v[j, i] -= p * im + q * re


@inner
def _turns(inverse: Array, tangents: Array, turning: Array, count: int) -> None:
    """Append to each column of the inverse its effect on the rates of turning positions."""
    for part in range(2):
        for k in range(count):
            for p in range(len(turning)):
                total = 0.0
                for j in range(count):
                    total += inverse[part, k, j] * tangents[j, turning[p]]
                inverse[part, k, count + p] = total


@inlined
def solve_mode(system: Any, work: Any, m: int, real: bool) -> None:
    """Solve a mode: from its miss, in `solving`, to its change and the turning by it, in `solved`."""
    solving, solved = work.solving[m], work.solved
    count = len(system.free)
    if system.dense == 0:
        address = system.real_solve if real else system.solve
        call_model(address, solving.ctypes.data, solved.ctypes.data)
        return
    rows = count + len(system.turning)
    for r in range(2 * rows):
        solved[r] = 0.0
    for k in range(count):
        re, first = solving[k], work.inverses[m, 0, k]
        if real:
            for r in simd_range(rows):
                solved[r] += first[r] * re
        else:
            im, second = solving[count + k], work.inverses[m, 1, k]
            for r in simd_range(rows):
                solved[r] += first[r] * re - second[r] * im
                solved[rows + r] += first[r] * im + second[r] * re


@inlined
def matrix_is_old(system: Any, work: Any, modes: int, stages: int) -> bool:
    """Return whether iterations beyond the fewest have cost as many operators as new modes do."""
    count, extra = len(system.free), work.counts[Count.EXTRA_ITERATIONS]
    if system.dense == 0:
        return extra * (stages * system.operators + modes * system.solving) > modes * system.factoring
    renewal = 4 * count * system.operators + 8 * modes * count**3
    if system.factoring != 0:
        renewal = modes * (system.factoring + count * system.solving)
    return extra * (stages * system.operators + 8 * modes * count**2) > renewal
