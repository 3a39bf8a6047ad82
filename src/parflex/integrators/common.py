"""Compiled functions that all integrators share, and error-controlled step sizes.

The error of an implicit step is estimated from the accelerations at its stages and at those of the step before, without
a further evaluation. The polynomial through the same accelerations gives rows inside a step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, compiled, inlined, inner

Array = np.ndarray

# places in Work.counts; plain numbers, since compiled code freezes what it reads from the module
(
    EVALUATIONS,
    STEPS,
    ITERATIONS,
    JACOBIANS,
    REJECTED,
    PIECE,
    BEST,
    EXTRA_ITERATIONS,
    STARTED,
    OPEN,
    EVENTS,
    CONSECUTIVE_REJECTIONS,
) = range(12)

USE_LAST_ACCELERATIONS, UNSEEN, ALIKE = 12, 13, 14

CONTRACTION, STEP, INPUT, LOSS, LAST_INPUT, LAST_LOSS = range(6)  # places in Work.numbers

AIM, LAST, MATRIX_STEP, LAST_ERROR, LARGEST_ERROR, SHORTEST, LONGEST, FIRST_ERROR, MOST, LATEST, BEFORE = range(6, 17)

POSITION_STEP, RATE_STEP = 1e-6, 1e-6  # of differences, in units of the rates

MAX_CLOSURE_CALLS = 6

STATIC = 1  # column of System.friction: the largest effort of a joint that sticks

HELD = 1e-8  # of it: what the inertia that holds the joint may still take

MAX_FRICTION_UPDATES = 6


TOO_SMALL, ROUNDING = 3, 6  # status, as in `system`


@inlined
def copy(source: Array, target: Array) -> None:
    """Fill the target; assigning slices does the same, but takes seconds to compile."""
    for k in range(len(target)):
        target[k] = source[k]


@inlined
def place(system: Any, x: Array, q: Array, qd: Array) -> None:
    """Write a state into the inputs of the model."""
    for k in range(system.positions):
        x[k] = q[k]
    for k in range(system.rates):
        x[system.positions + k] = qd[k]


@inlined
def give_inputs(system: Any, work: Any, t: float, x: Array) -> None:
    """Write what is given at time t into the inputs of the model."""
    breaks, pieces = system.breaks, system.coefficients
    k, last = work.counts[PIECE], len(pieces) - 1
    if k > last:  # the work may come from inputs with more pieces
        k = last
    while k < last and t >= breaks[k + 1]:
        k += 1
    while k > 0 and t < breaks[k]:
        k -= 1
    work.counts[PIECE] = k
    s = t - breaks[k]
    base, top = system.positions + system.rates, pieces.shape[1] - 1
    for j in range(pieces.shape[2]):
        value, slope, curve = pieces[k, top, j], 0.0, 0.0
        for power in range(top - 1, -1, -1):
            curve = curve * s + slope
            slope = slope * s + value
            value = value * s + pieces[k, power, j]
        if j < len(system.motor_q):
            x[system.motor_q[j]] = value
            x[system.positions + system.motor_v[j]] = slope
            x[base + j] = 2 * curve
        else:
            x[base + j] = value


@inlined
def normalise(system: Any, q: Array) -> None:
    """Unit quaternions."""
    for start in system.quaternions:
        size = math.sqrt(q[start] ** 2 + q[start + 1] ** 2 + q[start + 2] ** 2 + q[start + 3] ** 2)
        for k in range(start, start + 4):
            q[k] /= size


@inner
def hold(address: int, friction: Array, keeping: Array, first_x: int, first_y: int, x: Array, y: Array) -> int:
    """Friction efforts that keep the sticking joints at rest, into the inputs; gives how often the model was called.

    Where more joints stick than there are freedoms, accelerations that cannot be those of one robot, as at the states
    of an iteration, would make efforts grow that hold each other; `keeping` takes these away.
    """
    count = len(friction)
    for calls in range(MAX_FRICTION_UPDATES):
        largest = 0.0
        for j in range(len(friction)):
            correction = x[first_x + 2 * j + 1] * y[first_y + j]
            x[first_x + 2 * j] += correction
            largest = max(largest, abs(correction) / friction[j, STATIC])
        if not largest > HELD:
            return calls
        for j in range(count):
            keeping[count, j] = 0.0
            for i in range(count):
                keeping[count, j] += keeping[j, i] * x[first_x + 2 * i]
        for j in range(count):
            x[first_x + 2 * j] = keeping[count, j]
        call_model(address, x.ctypes.data, y.ctypes.data)
    return MAX_FRICTION_UPDATES


@inlined
def evaluate(system: Any, work: Any, x: Array, y: Array) -> None:
    """Outputs of the model; where its closures had to move the guess far, once more from where they moved it.

    Where they never come to rest, that is noted; the next row of output ends the run.
    """
    normalise(system, x)
    for _ in range(MAX_CLOSURE_CALLS):
        call_model(system.address, x.ctypes.data, y.ctypes.data)
        work.counts[EVALUATIONS] += 1
        displacement = 0.0
        for p in system.other:
            displacement = max(displacement, abs(y[p] - x[p]) / system.far[p])
        if not displacement > 1.0:
            if len(system.friction) > 0:
                sticking = system.gate_x + len(system.slack) - 2 * len(system.friction)
                last = system.outputs - len(system.friction)
                calls = hold(system.address, system.friction, work.keeping, sticking, last, x, y)
                work.counts[EVALUATIONS] += calls
            return
        for p in system.other:
            x[p] = y[p]
    work.counts[OPEN] = 1


@inner
def evaluate_pair(system: Any, work: Any) -> None:
    """The same for the first two rows of the work, in one call of the model."""
    x, y = work.x, work.y
    normalise(system, x[0])
    normalise(system, x[1])
    for _ in range(MAX_CLOSURE_CALLS):
        call_model(system.pair, x[0].ctypes.data, y[0].ctypes.data)
        work.counts[EVALUATIONS] += 2
        displacement = 0.0
        for row in range(2):
            for p in system.other:
                displacement = max(displacement, abs(y[row, p] - x[row, p]) / system.far[p])
        if not displacement > 1.0:
            if len(system.friction) > 0:
                sticking = system.gate_x + len(system.slack) - 2 * len(system.friction)
                last = system.outputs - len(system.friction)
                for row in range(2):
                    calls = hold(system.address, system.friction, work.keeping, sticking, last, x[row], y[row])
                    work.counts[EVALUATIONS] += calls
            return
        for row in range(2):
            for p in system.other:
                x[row, p] = y[row, p]
    work.counts[OPEN] = 1


@inner
def evaluate_at(system: Any, work: Any, t: float, q: Array, qd: Array, row: int) -> None:
    """Evaluate at a state, in one of the rows of the work; the positions are closed by it."""
    x = work.x[row]
    place(system, x, q, qd)
    give_inputs(system, work, t, x)
    evaluate(system, work, x, work.y[row])
    copy(work.y[row], q)
    copy(x[system.positions :], qd)


@inner
def differentiate(system: Any, work: Any, row: int, spare: int) -> None:
    """Derivatives of the free accelerations by free positions and rates, by differences about a row of the work.

    A free position is moved along the rates of change of all positions that its own rate causes, forth and back: a
    turn by `way` stretches a stiff beam by its square, which would drown what is soft.
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
def find_powers(system: Any, work: Any, x: Array, y: Array) -> None:
    """Powers of inputs and losses at an evaluated state, into the work."""
    nq, m, flow = system.positions, system.motors, work.flow
    first_input = nq + system.rates
    for k in range(2 * nq):
        flow[k] = y[k]
    for k in range(m):
        flow[2 * nq + k] = x[first_input + k] if system.efforts_given else y[2 * nq + 2 * system.rates + k]
    for k in range(m, system.coefficients.shape[2]):
        flow[2 * nq + k] = x[first_input + k]
    for k in range(len(system.slack)):
        flow[system.gate_flow + k] = x[system.gate_x + k]
    call_model(system.power, flow.ctypes.data, work.powers.ctypes.data)


@inner
def add_work(system: Any, work: Any, weights: Array, h: float) -> None:
    """Add the work of a step: the powers at its stages by the weights of the method, which has its order so."""
    if system.power == 0:
        return
    for i in range(len(weights)):
        if weights[i] != 0.0:
            find_powers(system, work, work.x[i], work.y[i])
            copy(work.powers, work.course[len(weights) + i, work.course.shape[1] - 2 :])
            work.numbers[INPUT] += h * weights[i] * work.powers[0]
            work.numbers[LOSS] += h * weights[i] * work.powers[1]


@compiled
def record(system: Any, work: Any, t: float, q: Array, qd: Array, out_x: Array, out_y: Array) -> bool:
    """Evaluate at a state and keep inputs, outputs and, behind them, work; False if a number is not finite."""
    row = len(work.x) - 1
    evaluate_at(system, work, t, q, qd, row)
    copy(work.x[row], out_x)
    total = 0.0
    for k in range(system.outputs):
        out_y[k] = work.y[row, k]
        total += out_y[k]
    if len(out_y) > system.outputs:
        out_y[system.outputs] = work.numbers[INPUT]
        out_y[system.outputs + 1] = work.numbers[LOSS]
    return math.isfinite(total) and work.counts[OPEN] == 0  # one that is not makes the sum not finite


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
    """The evaluated state of a row of the work, behind the stages, as the only one that is known before a step."""
    nq, history_row, y = system.positions, work.course[row - 1], work.y[row]
    count = len(system.free)
    for k in range(count):
        history_row[k] = y[2 * nq + system.free[k]]
    for p in range(nq):
        history_row[count + p] = y[nq + p]
    if system.power != 0:
        find_powers(system, work, work.x[row], y)
        copy(work.powers, history_row[count + nq :])
    work.numbers[LAST], work.numbers[LAST_ERROR] = -1.0, 0.0


@inner
def value_at(points: Array, first: int, share: float) -> None:
    """Weights of the polynomial through the known points at a share of the step, which may be beyond it."""
    last = points.shape[1]
    for j in range(first, last):
        weight = 1.0
        for i in range(first, last):
            if i != j:
                weight *= (share - points[0, i]) / (points[0, j] - points[0, i])
        points[1, j] = weight


@inner
def _state_inside(
    system: Any, work: Any, b: Array, c: Array, first: int, share: float, length: float, q: Array, qd: Array
) -> None:
    """State at a share of the step that was just made from the kept one: accelerations integrated as a step does.

    Dependent positions are a guess, which the closures correct; work goes into the numbers.
    """
    history, points, saved, numbers = work.course, work.points, work.kept, work.numbers
    nq, count = system.positions, len(system.free)
    copy(saved, q)
    copy(saved[nq:], qd)
    numbers[INPUT], numbers[LOSS] = saved[len(saved) - 2], saved[len(saved) - 1]
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
            numbers[INPUT] += part * history[j, count + nq]
            numbers[LOSS] += part * history[j, count + nq + 1]


@inner
def rows_inside(
    system: Any,
    work: Any,
    tableau: Any,
    t: float,
    h: float,
    done: int,
    first: int,
    span: int,
    out_x: Array,
    out_y: Array,
) -> bool:
    """Record the rows inside of a step over `span` of them, which follow row `done` of this call."""
    q, qd, numbers = work.before[: system.positions], work.before[system.positions :], work.numbers
    input_work, lost_work = numbers[INPUT], numbers[LOSS]
    for k in range(1, span):
        _state_inside(system, work, tableau.b, tableau.c, first, k / span, span * h, q, qd)
        if not record(system, work, t + (done + k) * h, q, qd, out_x[k - 1], out_y[k - 1]):
            return False
    numbers[INPUT], numbers[LOSS] = input_work, lost_work
    return True
