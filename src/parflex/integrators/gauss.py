"""Implicit Gauss methods with a simplified Newton iteration.

The stages are decoupled into modes, each a system with real or complex coefficients c1 of damping and c2 of stiffness,
theory (58). The programs of the step solve a mode at a cost linear in the robot, the inverse matrix that of small
robots and of formulations without such programs.

The predictor extrapolates the positions at the stages of the last two steps, where stiff coordinates are in
equilibrium, or the last accelerations if these were nearer. The error of a step follows from the accelerations at its
stages and at those of the last step, and so do rows inside of the step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import inlined, inner
from parflex.integrators.common import (
    Count,
    Number,
    add_work,
    copy,
    evaluate,
    evaluate_at,
    evaluate_pair,
    find_powers,
    give_inputs,
    normalise,
    place,
    record,
)
from parflex.integrators.newton import MOST_ITERATIONS, make_modes, matrix_is_old, solve_mode, take_state
from parflex.integrators.steps import MOST_GROWTH, driver

Array = np.ndarray
TURN = 2 * math.pi
MAX_SINGLE_ITERATIONS = 16  # steps of one iteration, which does not show the contraction, in a row


# -- history of stages: predictor, error, rows inside of a step --------------------------------------------


@inner
def initialise_history(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """Fill the history with two steps of constant acceleration, the mean of the changes, that end at this state."""
    stages, count, reach, past = len(tableau.c), len(system.free), work.reach, work.past
    rate = work.y[stages, system.positions :]
    for k in range(count):
        mean = 0.0
        for i in range(stages):
            mean += tableau.b[i] * work.change[i, k]
        for i in range(stages):
            past[i, k] = mean
    for j in range(2 * stages):
        offset = h * (tableau.c[j % stages] - (2.0 if j < stages else 1.0))
        for k in range(count):
            reach[j, k] = offset * (qd[system.free[k]] + 0.5 * offset * past[0, k])
        for k in range(len(system.other)):
            reach[j, count + k] = q[system.other[k]] + offset * rate[system.other[k]]
    work.numbers[Number.BEFORE] = work.numbers[Number.LATEST] = h
    work.counts[Count.USE_LAST_ACCELERATIONS] = 0


@inner
def _extrapolation_weights(weights: Array, c: Array, twice: Array, latest: float, before: float) -> None:
    """Compute the weights of the known stages at those of the next step, in units of its length.

    Of positions of two steps, for positions; of these for accelerations; of accelerations of the last step.
    """
    stages, nodes = len(c), weights[3 * len(c)]
    for j in range(stages):
        nodes[j], nodes[stages + j] = (c[j] - 1.0) * before - latest, (c[j] - 1.0) * latest
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
    """Predict accelerations of stages, rates of turning positions, and dependent positions among the model inputs.

    The step may have any length. Accelerations come from positions or from the last accelerations; those that turn
    positions come from positions, so that stiff coordinates are not stretched.
    """
    stages, count, free, weights, carried = len(tableau.c), len(system.free), system.free, work.weights, work.counts
    latest, before = work.numbers[Number.LATEST] / h, work.numbers[Number.BEFORE] / h
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
        if carried[Count.USE_LAST_ACCELERATIONS] != 0:
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
def _turns(angle: float) -> float:
    """Return the whole turns in an angle: angles of closures jump at -pi."""
    return TURN * math.floor(angle / TURN + 0.5)


@inner
def store_history(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """Store the positions of the stages of a step; free ones relative to the end of the step."""
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
    work.counts[Count.USE_LAST_ACCELERATIONS] = 0 if by_place < by_past else 1
    for k in range(len(system.other)):
        p, column = system.other[k], count + k
        last_position = work.y[last, p]
        turn = _turns(last_position - reach[stages + last, column])
        for i in range(stages):
            reach[i, column] = reach[stages + i, column] + turn
            if k >= len(system.turning):
                reach[stages + i, column] = work.y[i, p] + _turns(last_position - work.y[i, p])
                continue
            total = 0.0
            for j in range(stages):
                total += tableau.A[i, j] * work.rate[j, p]
            reach[stages + i, column] = q[p] + h * total
    work.numbers[Number.BEFORE], work.numbers[Number.LATEST] = work.numbers[Number.LATEST], h


@inner
def record_stages(work: Any, c: Array, ratio: float) -> int:
    """Put what the stages of a step have behind that of the last one, which was `ratio` times as long, if positive.

    Gives the first known row of the course: then it is that of the start of this step.
    """
    history, points, acceleration, rate = work.course, work.points, work.acceleration, work.rate
    stages, count, nq = len(c), acceleration.shape[1], rate.shape[1]
    for i in range(stages):
        for k in range(count):
            history[stages + i, k] = acceleration[i, k]
        for p in range(nq):
            history[stages + i, count + p] = rate[i, p]
        points[0, i] = (c[i] - 1.0) * ratio
        points[0, stages + i] = c[i]
    if ratio > 0.0:
        return 0
    points[0, stages - 1] = 0.0
    return stages - 1


@inner
def record_start(system: Any, work: Any, row: int) -> None:
    """Store the evaluated state of a row of the work as the only one that is known before a step."""
    nq, history_row, y = system.positions, work.course[row - 1], work.y[row]
    count = len(system.free)
    for k in range(count):
        history_row[k] = y[2 * nq + system.free[k]]
    for p in range(nq):
        history_row[count + p] = y[nq + p]
    if system.power != 0:
        find_powers(system, work, work.x[row], y)
        copy(work.powers, history_row[count + nq :])
    work.numbers[Number.LAST], work.numbers[Number.LAST_ERROR] = -1.0, 0.0


@inner
def value_at(points: Array, first: int, share: float) -> None:
    """Compute the weights of the polynomial through the known points at a share of the step, which may be beyond it."""
    last = points.shape[1]
    for j in range(first, last):
        weight = 1.0
        for i in range(first, last):
            if i != j:
                weight *= (share - points[0, i]) / (points[0, j] - points[0, i])
        points[1, j] = weight


@inner
def step_error(work: Any, first: int, constant: float, metres: Array) -> float:
    """Estimate the error of positions in a step (m) by the highest derivative of the polynomial of the accelerations.

    What is stiff counts in full: filtered by the matrix, long steps would shake it, and shorter ones follow.
    """
    points, history, last, factorial, largest = work.points, work.course, len(work.course), 1.0, 0.0
    for j in range(first, last):
        factorial *= max(1, j - first)
        weight = constant
        for i in range(first, last):
            if i != j:
                weight /= points[0, j] - points[0, i]
        points[1, j] = weight
    for k in range(len(metres)):
        total = 0.0
        for j in range(first, last):
            total += points[1, j] * history[j, k]
        size = factorial * abs(total) * metres[k]
        if not size <= largest:  # NaN too
            largest = size
    return largest


@inner
def shift_history(work: Any, length: float) -> None:
    """Make the current step the last one."""
    stages = len(work.course) // 2
    for i in range(stages):
        copy(work.course[stages + i], work.course[i])
    work.numbers[Number.LAST] = length


@inner
def _state_inside(
    system: Any, work: Any, b: Array, c: Array, first: int, share: float, length: float, q: Array, qd: Array
) -> None:
    """Compute the state at a share of the last step from its start, by integrating the accelerations as a step does.

    Dependent positions are a guess, which the closures correct; work goes into the numbers.
    """
    history, points, saved, numbers = work.course, work.points, work.kept, work.numbers
    nq, count = system.positions, len(system.free)
    copy(saved, q)
    copy(saved[nq:], qd)
    numbers[Number.INPUT], numbers[Number.LOSS] = saved[len(saved) - 2], saved[len(saved) - 1]
    for k in range(len(system.simple)):
        q[system.simple[k, 0]] += share * length * qd[system.free[system.simple[k, 1]]]
    for i in range(len(c)):
        value_at(points, first, share * c[i])
        weight, lever = share * length * b[i], share * length * (1.0 - c[i])
        for j in range(first, len(history)):
            part = weight * points[1, j]
            for k in range(count):
                qd[system.free[k]] += part * history[j, k]
            for k in range(len(system.simple)):
                q[system.simple[k, 0]] += lever * part * history[j, system.simple[k, 1]]
            for p in system.other:
                q[p] += part * history[j, count + p]
            numbers[Number.INPUT] += part * history[j, count + nq]
            numbers[Number.LOSS] += part * history[j, count + nq + 1]


@inner
def rows_inside(
    system: Any, work: Any, tableau: Any, t: float, h: float, done: int, span: int, out_x: Array, out_y: Array
) -> bool:
    """Record the rows inside of a step over `span` of them, which follow row `done` of this call."""
    nq, numbers = system.positions, work.numbers
    q, qd = work.before[:nq], work.before[nq : nq + system.rates]
    input_work, lost_work, first = numbers[Number.INPUT], numbers[Number.LOSS], work.counts[Count.FIRST_KNOWN]
    for k in range(1, span):
        _state_inside(system, work, tableau.b, tableau.c, first, k / span, span * h, q, qd)
        if not record(system, work, t + (done + k) * h, q, qd, out_x[k - 1], out_y[k - 1]):
            return False
    numbers[Number.INPUT], numbers[Number.LOSS] = input_work, lost_work
    return True


# -- steps -------------------------------------------------------------------------------------------------


@inner
def _modes_for(system: Any, work: Any, tableau: Any, h: float) -> None:
    """Make the modes of 1 - h A (x) Jv - h^2 AA (x) Jq at the linearisation state, for any length of the step."""
    for m in range(len(tableau.roots)):
        re, im = h * tableau.roots[m, 0], h * tableau.roots[m, 1]
        c = work.coefficients[m]
        c[0], c[1], c[2], c[3] = re, im, re * re - im * im, 2 * re * im
    make_modes(system, work, h)


@inner
def _history_from_state(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """Initialise the stage predictor with two fictitious steps that end at the state, in the row behind the stages.

    The acceleration is filtered by the matrix: at the end of a step stiff coordinates may be far from equilibrium.
    """
    stages, nq = len(tableau.c), system.positions
    for i in range(stages):
        for k in range(len(system.free)):
            work.miss[i, k] = work.y[stages, 2 * nq + system.free[k]]
    _change(system, work, tableau)
    initialise_history(system, work, tableau, h, q, qd)


@inlined
def _place_stage(system: Any, work: Any, tableau: Any, i: int, h: float, q: Array, qd: Array) -> None:
    """Compute the state of a stage from the accelerations of all two or three stages."""
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
    """Compute the Newton increment of all stages, mode by mode, and its effect on turning positions."""
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
    """Make one simplified Newton iteration; return the largest change and the largest vibration that it leaves.

    Both are in units of position. A residual in a stiff mode of frequency w changes its positions by the (h w)^2-th
    part, and its rate at the end of the step, whose vibration is h w times as large: the geometric mean of both.
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
    work.counts[Count.ITERATIONS] += 1
    return largest, max(largest, math.sqrt(vibration))


@inner
def _solve_stages(
    system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float
) -> int:
    """Iterate the stages; return the number of iterations, 0 without convergence."""
    for i in range(len(tableau.c)):
        place(system, work.x[i], q, qd)
        give_inputs(system, work, t + tableau.c[i] * h, work.x[i])
    predict_stages(system, work, tableau, h, q, qd)
    contraction, previous_size, previous_vibration, guessed = work.numbers[Number.CONTRACTION], 0.0, 0.0, False
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
            if iteration == 1 and work.counts[Count.UNSEEN] >= MAX_SINGLE_ITERATIONS and vibration > tolerance:
                guessed = True  # it grows as the robot moves on
            else:
                # a small change is mostly rounding, whose ratio says nothing of the contraction
                less = iteration > 1 and vibration <= 0.1 * tolerance
                contraction = min(contraction, work.numbers[Number.CONTRACTION]) if less else contraction
                work.numbers[Number.CONTRACTION] = max(contraction, 1e-3)
                work.counts[Count.UNSEEN] = work.counts[Count.UNSEEN] + 1 if iteration == 1 else 0
                return 1 if guessed and vibration <= tolerance else iteration
        previous_size, previous_vibration = size, vibration
    return 0


@inner
def _new_matrix(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """Make the modes at this state."""
    evaluate_at(system, work, t, q, qd, len(tableau.c))
    take_state(system, work, len(tableau.c))
    _modes_for(system, work, tableau, h)


@inner
def _prepare(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, again: bool) -> None:
    """Make matrix and predictor for a step of this length; much shorter past steps are not extrapolated."""
    stages, counts, numbers = len(tableau.c), work.counts, work.numbers
    if again and counts[Count.FRESH] != 0:
        _modes_for(system, work, tableau, h)
        _history_from_state(system, work, tableau, h, q, qd)
    elif again or counts[Count.STARTED] == 0:
        _new_matrix(system, work, tableau, t, h, q, qd)
        _history_from_state(system, work, tableau, h, q, qd)
        counts[Count.STARTED], numbers[Number.CONTRACTION], numbers[Number.LAST] = 1, 0.5, 0.0
    elif matrix_is_old(system, work, len(tableau.roots), stages):
        if system.gaps != 0:  # the state is asked for where a step is made again
            _new_matrix(system, work, tableau, t, h, q, qd)
        else:  # the last stage of the step before is near enough
            take_state(system, work, stages - 1)
            _modes_for(system, work, tableau, h)
    if again or work.judging == 0 or numbers[Number.AIM] == 0.0:
        return
    if numbers[Number.MATRIX_STEP] != h:
        _modes_for(system, work, tableau, h)
    known = numbers[Number.LATEST] + numbers[Number.BEFORE]
    if numbers[Number.LAST] == 0.0 or (numbers[Number.LAST] > 0.0 and h > MOST_GROWTH * known * (1.0 + 1e-9)):
        evaluate_at(system, work, t, q, qd, stages)
        record_start(system, work, stages)
    if numbers[Number.LAST] < 0.0:
        _history_from_state(system, work, tableau, h, q, qd)


@inner
def _error(system: Any, work: Any, tableau: Any, h: float) -> float:
    """Estimate the error of positions in a step (m) by the accelerations at its stages and those of the last step."""
    first = record_stages(work, tableau.c, work.numbers[Number.LAST] / h)
    work.counts[Count.FIRST_KNOWN], work.numbers[Number.POWER] = first, 2 * len(tableau.c) - first + 1
    return step_error(work, first, tableau.error * h * h, system.metres)


@inlined
def _accept(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """Make the end of the step the state; dependent positions start from the last stage, where they were closed."""
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


gauss_steps = driver(
    "gauss_steps", prepare=_prepare, solve=_solve_stages, renew=_new_matrix, error=_error,
    accept=_accept, follow=shift_history, rows_inside=rows_inside, steps_over_rows=True,
)  # fmt: skip
