"""The simplified Newton iteration of implicit methods: what a miss of the accelerations changes them by.

Stages are taken apart into modes, each a system of its own with coefficients c1 of damping and c2 of stiffness, real or
complex, theory (58). A mode is solved by the programs of the step, whose cost is linear in the robot; where the robot
is small, or its form has no such programs, by the inverse as a whole. Iterations start where the polynomial through the
positions at the stages of the last two steps goes: there what is stiff is in its equilibrium, whose path is smooth. The
accelerations that go there from the ends of steps, which lie beside it, are not; else they are the better start.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, inlined, inner
from parflex.simulation.integrators.loop import BEFORE, CARRIED, JACOBIANS, LATEST, differentiate

Array = np.ndarray
TURN = 2 * math.pi


@inner
def take_state(system: Any, work: Any, row: int) -> None:
    """Take the state in a row of the work, which was evaluated, as that at which modes are made."""
    if system.dense != 0 and system.factor == 0 and system.real_factor == 0:
        differentiate(system, work, row, row + 1)
        return
    x, stepping, width = work.x[row], work.stepping, system.positions + system.rates
    for k in range(width):
        stepping[k] = x[k]
    for k in range(len(system.slack)):
        stepping[width + k] = x[system.gate_x + k]


@inner
def make_modes(system: Any, work: Any) -> None:
    """Factors or inverses of all modes, at the state that was taken, for the coefficients in the work."""
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
    work.counts[JACOBIANS] += 1


@inner
def _columns(address: int, solving: Array, solved: Array, inverse: Array, count: int, real: bool) -> None:
    """The inverse of a mode, one unit miss after the other."""
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
    """1 - c1 d(acceleration)/d(rate) - c2 d(acceleration)/d(position), its real and its imaginary part."""
    for k in range(matrix.shape[1]):
        for m in range(matrix.shape[1]):
            unit = 1.0 if k == m else 0.0
            matrix[0, k, m] = unit - c[0] * jacobian[1, k, m] - c[2] * jacobian[0, k, m]
            matrix[1, k, m] = -c[1] * jacobian[1, k, m] - c[3] * jacobian[0, k, m]


@inner
def _invert(matrix: Array, inverse: Array, n: int) -> None:
    """The inverse, transposed, by elimination with row pivots; the matrix is used up."""
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
                for j in range(k, n):
                    p, q = a[k, j], b[k, j]
                    a[i, j] -= p * re - q * im
                    b[i, j] -= p * im + q * re
                for j in range(n):
                    p, q = u[j, k], v[j, k]
                    u[j, i] -= p * re - q * im
                    v[j, i] -= p * im + q * re


@inner
def _turns(inverse: Array, ways: Array, turning: Array, count: int) -> None:
    """Behind each column of the inverse, how it changes the rates of turning positions."""
    for part in range(2):
        for k in range(count):
            for p in range(len(turning)):
                total = 0.0
                for j in range(count):
                    total += inverse[part, k, j] * ways[j, turning[p]]
                inverse[part, k, count + p] = total


@inlined
def solve_mode(system: Any, work: Any, m: int, real: bool) -> None:
    """From the miss of a mode, in `solving`, to its change and the turning by that, in `solved`."""
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
            for r in range(rows):
                solved[r] += first[r] * re
        else:
            im, second = solving[count + k], work.inverses[m, 1, k]
            for r in range(rows):
                solved[r] += first[r] * re - second[r] * im
                solved[rows + r] += first[r] * im + second[r] * re


@inlined
def costs(system: Any, modes: int, stages: int) -> tuple[int, int]:
    """Operators of an iteration, and of new modes."""
    count = len(system.free)
    if system.dense == 0:
        return stages * system.operators + modes * system.solving, modes * system.factoring
    spent = stages * system.operators + 8 * modes * count**2
    if system.factoring != 0:
        return spent, modes * (system.factoring + count * system.solving)
    return spent, 4 * count * system.operators + 8 * modes * count**3


@inner
def invent_past(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """Two steps that would end at this state, its acceleration the mean of the changes in the work."""
    stages, count, reach, past = len(tableau.c), len(system.free), work.reach, work.past
    y = work.y[stages, system.positions :]
    for k in range(count):
        mean = 0.0
        for i in range(stages):
            mean += tableau.b[i] * work.change[i, k]
        for i in range(stages):
            past[i, k] = mean
    for k in range(len(system.other)):
        for i in range(stages):
            past[i, count + k] = y[system.other[k]]
    for j in range(2 * stages):
        way = h * (tableau.c[j % stages] - (2.0 if j < stages else 1.0))
        for k in range(count):
            reach[j, k] = way * (qd[system.free[k]] + 0.5 * way * past[0, k])
        for k in range(len(system.other)):
            reach[j, count + k] = q[system.other[k]] + way * past[0, count + k]
    work.numbers[BEFORE] = work.numbers[LATEST] = h
    work.counts[CARRIED] = 0


@inner
def _look_ahead(weights: Array, c: Array, twice: Array, latest: float, before: float) -> None:
    """Weights of the known stages at those of the next step, in whose length the others are.

    Of positions of two steps, for positions; of these for accelerations; of accelerations of the last step.
    """
    stages, nodes = len(c), weights[3 * len(c)]
    for j in range(stages):
        nodes[j] = (c[j] - 1.0) * before - latest
        nodes[stages + j] = (c[j] - 1.0) * latest
    for j in range(2 * stages):
        for i in range(stages):
            near, far = 1.0, 1.0
            for m in range(2 * stages):
                if m != j:
                    factor = (c[i] - nodes[m]) / (nodes[j] - nodes[m])
                    near, far = (near * factor, far) if m >= stages else (near, far * factor)
            weights[i, j] = near * far
            if j >= stages:
                weights[2 * stages + i, j - stages] = near
        for i in range(stages):
            total = 0.0
            for m in range(stages):
                total += twice[i, m] * weights[m, j]
            weights[stages + i, j] = total
    weights[3 * stages + 1, 0], weights[3 * stages + 1, 1] = latest, before


@inner
def start_stages(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """Accelerations of the stages of a step, rates of turning positions, and closing ones in the inputs of the model.

    The step may have any length. Accelerations come from positions, or from those of the last step: what was nearer
    there, since without stiff modes the second goes on more exactly. Those that turn positions come from positions as
    these do: where the two are not one motion, what is stiff is stretched by their difference, which a second
    iteration has to take back.
    """
    stages, count, free, weights, carried = len(tableau.c), len(system.free), system.free, work.weights, work.counts
    latest, before = work.numbers[LATEST] / h, work.numbers[BEFORE] / h
    if weights[3 * stages + 1, 0] != latest or weights[3 * stages + 1, 1] != before:
        _look_ahead(weights, tableau.c, tableau.twice, latest, before)
    for i in range(stages):
        by_place, by_past, slope = work.starts[0, i], work.starts[1, i], 0.0
        for j in range(stages):
            slope += tableau.once[i, j] / h
        for k in range(count):
            by_place[k], by_past[k] = -slope * qd[free[k]], 0.0
        for j in range(2 * stages):
            row, weight = work.reach[j], weights[stages + i, j] / (h * h)
            for k in range(count):
                by_place[k] += weight * row[k]
        for j in range(stages):
            row, weight = work.past[j], weights[2 * stages + i, j]
            for k in range(count):
                by_past[k] += weight * row[k]
        row = work.acceleration[i]
        for k in range(count):
            row[k] = by_place[k]
        if carried[CARRIED] != 0:
            for k in range(len(system.simple)):
                row[system.simple[k, 1]] = by_past[system.simple[k, 1]]
        for k in range(len(system.other)):
            p, column, total = system.other[k], count + k, 0.0
            for j in range(2 * stages):
                total += weights[i, j] * work.reach[j, column]
            work.x[i, p] = total
    for k in range(len(system.turning)):
        p = system.turning[k]
        for i in range(stages):
            total = 0.0
            for j in range(stages):
                total += tableau.once[i, j] * (work.x[j, p] - q[p]) / h
            work.rate[i, p] = total


@inner
def note_past(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """Where the stages of a step from this state were; what is free is seen from the end of the step."""
    stages, count, free, reach, last = len(tableau.c), len(system.free), system.free, work.reach, len(tableau.c) - 1
    first, second, third, ends = work.acceleration[0], work.acceleration[1], work.acceleration[last], work.ends
    h2, b = h * h, tableau.second
    u, v, w = h2 * b[0], h2 * b[1], h2 * b[last] if last == 2 else 0.0
    for k in range(count):
        ends[k] = h * qd[free[k]] + (u * first[k] + v * second[k] + w * third[k])
    by_place, by_past = 0.0, 0.0
    for i in range(stages):
        old, new, c, b = reach[i], reach[stages + i], h * tableau.c[i], tableau.AA[i]
        u, v, w = h2 * b[0], h2 * b[1], h2 * b[last] if last == 2 else 0.0
        for k in range(count):
            old[k] = new[k] - ends[k]
            new[k] = (c * qd[free[k]] + (u * first[k] + v * second[k] + w * third[k])) - ends[k]
        row = work.acceleration[i]
        for k in range(count):
            work.past[i, k] = row[k]
        for s in range(len(system.simple)):  # rows of a column are not written in C
            f = system.simple[s, 1]
            by_place = max(by_place, abs(work.starts[0, i, f] - row[f]) / system.units[f])
            by_past = max(by_past, abs(work.starts[1, i, f] - row[f]) / system.units[f])
    work.counts[CARRIED] = 0 if by_place < by_past else 1
    for k in range(len(system.other)):
        p, column = system.other[k], count + k
        here = work.y[last, p]
        turn = TURN * math.floor(
            (here - reach[stages + last, column]) / TURN + 0.5
        )  # angles of closures begin again at -pi
        for i in range(stages):
            work.past[i, column] = work.rate[i, p]
            reach[i, column] = reach[stages + i, column] + turn
            if k >= len(system.turning):
                reach[stages + i, column] = work.y[i, p] + TURN * math.floor((here - work.y[i, p]) / TURN + 0.5)
                continue
            total = 0.0
            for j in range(stages):
                total += tableau.A[i, j] * work.rate[j, p]
            reach[stages + i, column] = q[p] + h * total
    work.numbers[BEFORE], work.numbers[LATEST] = work.numbers[LATEST], h
