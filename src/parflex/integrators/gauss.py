"""Implicit Gauss methods with a simplified Newton iteration.

The stages are decoupled into modes, each a system with real or complex coefficients c1 of damping and c2 of stiffness,
theory (58). The programs of the step solve a mode at a cost linear in the robot. The inverse matrix solves it if the
robot is small or its formulation has no such programs.

The iteration starts on the polynomial through the positions at the stages of the last two steps: there stiff
coordinates are in equilibrium, whose path is smooth. Accelerations at the ends of steps lie beside that path and are
used as the start only if they are nearer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, compiled, inlined, inner
from parflex.integrators.common import (
    AIM,
    BEFORE,
    BEST,
    CONTRACTION,
    EXTRA_ITERATIONS,
    INPUT,
    ITERATIONS,
    JACOBIANS,
    LAST,
    LATEST,
    LOSS,
    MATRIX_STEP,
    REJECTED,
    STARTED,
    STEP,
    STEPS,
    UNSEEN,
    USE_LAST_ACCELERATIONS,
    add_work,
    copy,
    differentiate,
    evaluate,
    evaluate_at,
    evaluate_pair,
    give_inputs,
    normalise,
    place,
    record,
    record_stages,
    record_start,
    rows_inside,
)
from parflex.integrators.events import (
    LENGTH,
    MOST_PARTS,
    NOTHING,
    PHASE,
    TRIES,
    WHOLE,
    judge,
    keep,
    restore_state,
    settling,
)
from parflex.integrators.step_size import choose, cut, rows_ahead, shift_history, step_error

Array = np.ndarray

MOST_ITERATIONS = 25

MAX_SINGLE_ITERATIONS = 16  # steps of one iteration, which does not show the contraction, in a row

MAX_SUBDIVISIONS = 7  # each time by four: steps down to 1/4096

TOO_LONG = 5  # status, as in `system`

TURN = 2 * math.pi


@inner
def _new_matrix(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """The modes of 1 - h A (x) Jv - h^2 AA (x) Jq at this state."""
    evaluate_at(system, work, t, q, qd, len(tableau.c))
    _renew(system, work, tableau, h, len(tableau.c))


@inner
def _renew(system: Any, work: Any, tableau: Any, h: float, row: int) -> None:
    """The same at a row of the work that was evaluated, as the last stage of the step before is."""
    take_state(system, work, row)
    _modes_for(system, work, tableau, h)
    work.counts[BEST], work.counts[EXTRA_ITERATIONS] = MOST_ITERATIONS, 0


@inner
def _modes_for(system: Any, work: Any, tableau: Any, h: float) -> None:
    """The same at the state that is known, for any length of the step."""
    for m in range(len(tableau.roots)):
        re, im = h * tableau.roots[m, 0], h * tableau.roots[m, 1]
        c = work.coefficients[m]
        c[0], c[1], c[2], c[3] = re, im, re * re - im * im, 2 * re * im
    make_modes(system, work)
    work.numbers[MATRIX_STEP] = h


@inner
def _restart(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """A new matrix, and stages that start from the state as it is."""
    _new_matrix(system, work, tableau, t, h, q, qd)
    _history_from_state(system, work, tableau, h, q, qd)
    work.numbers[CONTRACTION] = 0.5


@inner
def _history_from_state(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """A past that would end at the state, evaluated in the row behind the stages.

    Its acceleration is taken through the matrix: at the end of a step what is stiff may be far from its equilibrium, at
    stages it is not.
    """
    stages, nq = len(tableau.c), system.positions
    for i in range(stages):
        for k in range(len(system.free)):
            work.miss[i, k] = work.y[stages, 2 * nq + system.free[k]]
    _change(system, work, tableau)
    initialise_history(system, work, tableau, h, q, qd)


@inlined
def _place_stage(system: Any, work: Any, tableau: Any, i: int, h: float, q: Array, qd: Array) -> None:
    """State of a stage from the accelerations of all of them, of which there are two or three."""
    nq, x, free, last = system.positions, work.x[i], system.free, len(tableau.c) - 1
    first, second, third = work.acceleration[0], work.acceleration[1], work.acceleration[last]
    u, v, w = h * tableau.A[i, 0], h * tableau.A[i, 1], h * tableau.A[i, last] if last == 2 else 0.0
    for k in range(len(free)):
        x[nq + free[k]] = qd[free[k]] + (u * first[k] + v * second[k] + w * third[k])
    c, h2 = h * tableau.c[i], h * h
    u, v, w = h2 * tableau.AA[i, 0], h2 * tableau.AA[i, 1], h2 * tableau.AA[i, last] if last == 2 else 0.0
    for k in range(len(system.simple)):
        p, f = system.simple[k, 0], system.simple[k, 1]
        x[p] = q[p] + (c * qd[free[f]] + (u * first[f] + v * second[f] + w * third[f]))
    for p in system.turning:
        total = 0.0
        for j in range(last + 1):
            total += tableau.A[i, j] * work.rate[j, p]
        x[p] = q[p] + h * total


@inlined
def _change(system: Any, work: Any, tableau: Any) -> None:
    """What a step of Newton changes all stages by, mode after mode, and the turning by that."""
    stages, count, turning_count = len(tableau.c), len(system.free), len(system.turning)
    miss, change, turned, solved = work.miss, work.change, work.turned, work.solved
    rows = count + turning_count
    for m in range(len(tableau.roots)):
        real, solving = tableau.roots[m, 1] == 0.0, work.solving[m]
        for part in range(1 if real else 2):
            into, first = tableau.into[m, part], part * count
            for k in range(count):
                solving[first + k] = into[0] * miss[0, k]
            for i in range(1, stages):
                for k in range(count):
                    solving[first + k] += into[i] * miss[i, k]
        solve_mode(system, work, m, real)
        for i in range(stages):
            re, im = tableau.back[m, 0, i], 0.0 if real else -tableau.back[m, 1, i]
            carry, behind = 0.0 if m == 0 else 1.0, 0 if real else rows
            for k in range(count):
                change[i, k] = carry * change[i, k] + (re * solved[k] + im * solved[behind + k])
            for k in range(turning_count):
                r = count + k
                turned[i, k] = carry * turned[i, k] + (re * solved[r] + im * solved[behind + r])


@inlined
def _iterate(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> tuple[float, float]:
    """One step of the simplified Newton iteration; gives the largest change and the largest vibration by it.

    Both are in units of position. What is left of a miss in a stiff mode of frequency w changes its positions at the
    stages by its (h w)^2-th part, and its rate at the end of the step by so much over h, which goes on as a vibration
    h w times as large: between both, as their geometric mean is.
    """
    nq, stages, count, free = system.positions, len(tableau.c), len(system.free), system.free
    change, y, miss = work.change, work.y, work.miss
    for i in range(stages):
        _place_stage(system, work, tableau, i, h, q, qd)
    if system.pair != 0:
        evaluate_pair(system, work)
    for i in range(0 if system.pair == 0 else 2, stages):
        evaluate(system, work, work.x[i], y[i])
    for i in range(stages):
        for p in system.closing:
            work.x[i, p] = y[i, p]
        for k in range(count):
            miss[i, k] = y[i, 2 * nq + free[k]] - work.acceleration[i, k]
    _change(system, work, tableau)
    largest, vibration, total, h2 = 0.0, 0.0, 0.0, h * h
    for i in range(stages):
        for p in system.turning:
            largest = max(largest, h * abs(y[i, nq + p] - work.rate[i, p]))
        for p in system.other:
            work.rate[i, p] = y[i, nq + p]
        for k in range(len(system.turning)):  # positions that lag would stretch stiff beams
            total = 0.0
            for j in range(stages):
                total += tableau.A[i, j] * work.turned[j, k]
            work.rate[i, system.turning[k]] += h * total
        acceleration = work.acceleration[i]
        for k in range(count):
            increment, unit = change[i, k], system.units[k]
            acceleration[k] += increment
            size = h2 * abs(increment) / unit
            if not size <= largest:  # NaN too
                largest = size
            vibration = max(vibration, size * (h2 * abs(miss[i, k]) / unit))
    work.counts[ITERATIONS] += 1
    return largest, max(largest, math.sqrt(vibration))


@inner
def _solve_stages(
    system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float
) -> int:
    """Iterations that were needed, or 0 if they do not converge."""
    for i in range(len(tableau.c)):
        place(system, work.x[i], q, qd)
        give_inputs(system, work, t + tableau.c[i] * h, work.x[i])
    predict_stages(system, work, tableau, h, q, qd)
    contraction, previous_size, previous_vibration, guessed = work.numbers[CONTRACTION], 0.0, 0.0, False
    for iteration in range(1, MOST_ITERATIONS + 1):
        size, vibration = _iterate(system, work, tableau, h, q, qd)
        if not math.isfinite(size):
            return 0
        if iteration > 1 and previous_size > 0.0:
            contraction = vibration / previous_vibration
            # the first change is that of a start, whose square may be the second one
            if iteration > 2 and size > 0.9 * previous_size and size > 100 * tolerance:
                return 0
        share = min(contraction, 0.9)
        rounding = iteration > 2 and contraction > 0.1 and size <= tolerance
        if vibration * share / (1 - share) <= tolerance or size == 0.0 or rounding:
            if iteration == 1 and work.counts[UNSEEN] >= MAX_SINGLE_ITERATIONS and vibration > tolerance:
                guessed = True  # it grows as the robot moves on
            else:
                # a small change is mostly rounding, whose ratio says nothing of the contraction
                less = iteration > 1 and vibration <= 0.1 * tolerance
                contraction = min(contraction, work.numbers[CONTRACTION]) if less else contraction
                work.numbers[CONTRACTION] = max(contraction, 1e-3)
                work.counts[UNSEEN] = work.counts[UNSEEN] + 1 if iteration == 1 else 0
                return 1 if guessed and vibration <= tolerance else iteration
        previous_size, previous_vibration = size, vibration
    return 0


@inlined
def _finish(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """State at the end of the step; dependent positions go on from the last stage, where they were closed."""
    stages, last = len(tableau.c), len(tableau.c) - 1
    store_history(system, work, tableau, h, q, qd)
    for k in range(len(system.simple)):
        p, f = system.simple[k, 0], system.simple[k, 1]
        total = 0.0
        for j in range(stages):
            total += tableau.second[j] * work.acceleration[j, f]
        q[p] += h * (qd[system.free[f]] + h * total)
    for p in system.turning:
        total = 0.0
        for j in range(stages):
            total += tableau.b[j] * work.rate[j, p]
        q[p] += h * total
    for p in system.closing:
        total = 0.0
        for j in range(stages):
            total += (tableau.b[j] - tableau.A[last, j]) * work.rate[j, p]
        q[p] = work.y[last, p] + h * total
    for k in range(len(system.free)):
        total = 0.0
        for j in range(stages):
            total += tableau.b[j] * work.acceleration[j, k]
        qd[system.free[k]] += h * total
    normalise(system, q)
    add_work(system, work, tableau.b, h)


@inner
def _prepare_step(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """The matrix for a step of this length, and what is known at its start where no step was made before."""
    stages, numbers = len(tableau.c), work.numbers
    if numbers[MATRIX_STEP] != h:
        _modes_for(system, work, tableau, h)
    if numbers[LAST] == 0.0:
        evaluate_at(system, work, t, q, qd, stages)
        record_start(system, work, stages)
    if numbers[LAST] < 0.0:
        _history_from_state(system, work, tableau, h, q, qd)


@inner
def _solve_in_substeps(
    system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float
) -> bool:
    """One step as ever more short ones, each with a matrix of its own: where friction turns, or something snaps."""
    copy(q, work.before)
    copy(qd, work.before[system.positions :])
    input_work, lost_work = work.numbers[INPUT], work.numbers[LOSS]
    parts = 1
    for _ in range(MAX_SUBDIVISIONS):
        work.counts[REJECTED] += 1
        small, done = h / parts, 0
        while done < parts:
            _restart(system, work, tableau, t + done * small, small, q, qd)
            if _solve_stages(system, work, tableau, t + done * small, small, q, qd, tolerance) == 0:
                break
            _finish(system, work, tableau, small, q, qd)
            done += 1
        if done == parts:
            _restart(system, work, tableau, t + h, h, q, qd)
            return True
        copy(work.before, q)
        copy(work.before[system.positions :], qd)
        work.numbers[INPUT], work.numbers[LOSS] = input_work, lost_work
        parts *= 4
    return False


@compiled
def gauss_steps(
    system: Any,
    work: Any,
    tableau: Any,
    t: float,
    h: float,
    every: int,
    q: Array,
    qd: Array,
    tolerance: float,
    out_x: Array,
    out_y: Array,
) -> tuple[int, int]:
    """Steps until the rows of output are full; gives the rows that are and a status.

    Where errors choose them, a step is part of the time between two rows, `h` then, or goes over some rows.
    """
    stages, counts = len(tableau.c), work.counts
    iteration_cost, renewal = costs(system, len(tableau.roots), stages)
    gated, numbers = system.gaps != 0, work.numbers
    waiting, again, done = gated, False, 0  # for the gates to settle; a part of a step that is made again, shorter
    judged = work.judging != 0 and numbers[AIM] > 0.0  # steps, by their error
    chosen = judged and numbers[STEP] > 0.0
    row, first_known = 0, 0
    while row < len(out_x):
        span = rows_ahead(numbers[STEP], h, len(out_x) - row) if chosen and not gated else 1
        for _ in range(every):
            begin, left, parts, used, fresh = t + done * h, span * h, 0, 0, False
            while left > 0.0:
                length = cut(left, numbers[STEP]) if chosen else left
                if waiting:
                    length = settling(work.crossing)
                elif again:
                    length = work.crossing[LENGTH]
                elif gated or span > 1:
                    keep(work.kept, work.crossing, numbers, q, qd, length)
                if length > 0.0:
                    if again and fresh:
                        _modes_for(system, work, tableau, length)
                        _history_from_state(system, work, tableau, length, q, qd)
                    elif again or counts[STARTED] == 0:
                        _restart(system, work, tableau, begin, length, q, qd)
                        counts[STARTED], fresh, numbers[LAST] = 1, True, 0.0
                    elif counts[EXTRA_ITERATIONS] * iteration_cost > renewal:
                        if gated:  # the state is asked for where a step is made again
                            _new_matrix(system, work, tableau, begin, length, q, qd)
                        else:
                            _renew(system, work, tableau, length, stages - 1)
                        fresh = True
                    if judged and not again:
                        _prepare_step(system, work, tableau, begin, length, q, qd)
                    used = _solve_stages(system, work, tableau, begin, length, q, qd, tolerance)
                    if used == 0 and chosen and not fresh:  # the matrix may be old
                        _new_matrix(system, work, tableau, begin, length, q, qd)
                        fresh = True
                        continue
                    if judged and not again and (used > 0 or chosen):
                        first_known = record_stages(work, tableau.c, numbers[LAST] / length)
                        error = (
                            step_error(work, first_known, tableau.error * length * length, system.metres)
                            if used > 0
                            else math.inf
                        )
                        verdict = choose(numbers, counts, error, length, 2 * stages - first_known + 1)
                        if verdict != 0 and not chosen:
                            return row, TOO_LONG
                        if verdict > 0:
                            return row, verdict
                        if verdict < 0:
                            if span > 1:
                                span = rows_ahead(numbers[STEP], h, span)
                                left = span * h
                            continue
                    if used > 0:
                        _finish(system, work, tableau, length, q, qd)
                    elif _solve_in_substeps(system, work, tableau, begin, length, q, qd, tolerance):
                        fresh = False
                    else:
                        return row, 1
                again = gated and not judge(system, work, begin, q, qd)
                if again:
                    restore_state(work.kept, numbers, q, qd)
                    continue
                if waiting:
                    waiting = False
                    counts[STARTED] = 0 if work.crossing[TRIES] > 0.0 else counts[STARTED]
                    continue
                begin, left = begin + length, (left - length if left - length > NOTHING * h else 0.0)
                turned = gated and (work.crossing[PHASE] != WHOLE or work.crossing[TRIES] > 0.0)
                parts, fresh = (parts + 1 if turned or not chosen else 0), False
                if (chosen and turned) or (not chosen and (left > 0.0 or parts > 1)):
                    counts[STARTED] = 0
                if parts > MOST_PARTS:
                    return row, 3
                if chosen or left == 0.0:
                    counts[STEPS] += 1
                    if used > 0 and counts[STARTED] != 0:
                        counts[BEST] = min(counts[BEST], used)
                        counts[EXTRA_ITERATIONS] += used - counts[BEST]
                if span > 1 and not rows_inside(
                    system, work, tableau, t, h, done, first_known, span, out_x[row:], out_y[row:]
                ):
                    return row, 2
                if judged:
                    shift_history(work.course, numbers, length if used > 0 else 0.0)
            done += span
        row += span
        if not record(system, work, t + done * h, q, qd, out_x[row - 1], out_y[row - 1]):
            return row - 1, 2
    return len(out_x), 0


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
def _turns(inverse: Array, tangents: Array, turning: Array, count: int) -> None:
    """Behind each column of the inverse, how it changes the rates of turning positions."""
    for part in range(2):
        for k in range(count):
            for p in range(len(turning)):
                total = 0.0
                for j in range(count):
                    total += inverse[part, k, j] * tangents[j, turning[p]]
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
    iteration_cost = stages * system.operators + 8 * modes * count**2
    if system.factoring != 0:
        return iteration_cost, modes * (system.factoring + count * system.solving)
    return iteration_cost, 4 * count * system.operators + 8 * modes * count**3


@inner
def initialise_history(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
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
        offset = h * (tableau.c[j % stages] - (2.0 if j < stages else 1.0))
        for k in range(count):
            reach[j, k] = offset * (qd[system.free[k]] + 0.5 * offset * past[0, k])
        for k in range(len(system.other)):
            reach[j, count + k] = q[system.other[k]] + offset * past[0, count + k]
    work.numbers[BEFORE] = work.numbers[LATEST] = h
    work.counts[USE_LAST_ACCELERATIONS] = 0


@inner
def _extrapolation_weights(weights: Array, c: Array, twice: Array, latest: float, before: float) -> None:
    """Weights of the known stages at those of the next step, in whose length the others are.

    Of positions of two steps, for positions; of these for accelerations; of accelerations of the last step.
    """
    stages, nodes = len(c), weights[3 * len(c)]
    for j in range(stages):
        nodes[j] = (c[j] - 1.0) * before - latest
        nodes[stages + j] = (c[j] - 1.0) * latest
    for j in range(2 * stages):
        for i in range(stages):
            recent, older = 1.0, 1.0
            for m in range(2 * stages):
                if m != j:
                    factor = (c[i] - nodes[m]) / (nodes[j] - nodes[m])
                    recent, older = (recent * factor, older) if m >= stages else (recent, older * factor)
            weights[i, j] = recent * older
            if j >= stages:
                weights[2 * stages + i, j - stages] = recent
        for i in range(stages):
            total = 0.0
            for m in range(stages):
                total += twice[i, m] * weights[m, j]
            weights[stages + i, j] = total
    weights[3 * stages + 1, 0], weights[3 * stages + 1, 1] = latest, before


@inner
def predict_stages(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """Accelerations of the stages of a step, rates of turning positions, and closing ones in the inputs of the model.

    The step may have any length. Accelerations come from positions, or from those of the last step: what was nearer
    there, since without stiff modes the second goes on more exactly. Those that turn positions come from positions as
    these do: where the two are not one motion, what is stiff is stretched by their difference, which a second
    iteration has to take back.
    """
    stages, count, free, weights, carried = len(tableau.c), len(system.free), system.free, work.weights, work.counts
    latest, before = work.numbers[LATEST] / h, work.numbers[BEFORE] / h
    if weights[3 * stages + 1, 0] != latest or weights[3 * stages + 1, 1] != before:
        _extrapolation_weights(weights, tableau.c, tableau.twice, latest, before)
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
        if carried[USE_LAST_ACCELERATIONS] != 0:
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
def store_history(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
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
    work.counts[USE_LAST_ACCELERATIONS] = 0 if by_place < by_past else 1
    for k in range(len(system.other)):
        p, column = system.other[k], count + k
        last_position = work.y[last, p]
        turn = TURN * math.floor(
            (last_position - reach[stages + last, column]) / TURN + 0.5
        )  # angles of closures begin again at -pi
        for i in range(stages):
            work.past[i, column] = work.rate[i, p]
            reach[i, column] = reach[stages + i, column] + turn
            if k >= len(system.turning):
                reach[stages + i, column] = work.y[i, p] + TURN * math.floor(
                    (last_position - work.y[i, p]) / TURN + 0.5
                )
                continue
            total = 0.0
            for j in range(stages):
                total += tableau.A[i, j] * work.rate[j, p]
            reach[stages + i, column] = q[p] + h * total
    work.numbers[BEFORE], work.numbers[LATEST] = work.numbers[LATEST], h
