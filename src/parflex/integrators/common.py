"""Compiled functions that all integrators share: evaluation of the model, work, and rows of output."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, compiled, inlined, inner

Array = np.ndarray

# places in Work.counts; `FRESH`: whether the matrix was made at the start of this step
Count = IntEnum(
    "Count",
    "EVALUATIONS STEPS ITERATIONS JACOBIANS REJECTED PIECE BEST EXTRA_ITERATIONS STARTED OPEN EVENTS "
    "CONSECUTIVE_REJECTIONS USE_LAST_ACCELERATIONS UNSEEN ALIKE FRESH FIRST_KNOWN",
    start=0,
)

# places in Work.numbers; `STEP` is asked for where errors choose steps, 0: they are alike; `LAST` is the length of the
# step before, 0: none is known, negative: the start of this one is
Number = IntEnum(
    "Number",
    "CONTRACTION STEP INPUT LOSS LAST_INPUT LAST_LOSS AIM LAST MATRIX_STEP LAST_ERROR LARGEST_ERROR SHORTEST LONGEST "
    "ERROR_SUM FIRST_ERROR MOST LATEST BEFORE SHARE FARTHEST POWER",
    start=0,
)
Status = IntEnum(
    "Status", "OK NOT_CONVERGED NOT_FINITE STEP_TOO_SMALL GEOMETRY STEP_TOO_LONG ROUNDING_FORBIDS", start=0
)
POSITION_STEP, RATE_STEP = 1e-6, 1e-6  # of differences, in units of the rates
MAX_CLOSURE_CALLS = 6
STATIC = 1  # column of System.friction: the largest effort of a joint that sticks
HELD = 1e-8  # of it: what the inertia that holds the joint may still take
MAX_FRICTION_UPDATES = 6


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
    k, last = work.counts[Count.PIECE], len(pieces) - 1
    if k > last:  # the work may come from inputs with more pieces
        k = last
    while k < last and t >= breaks[k + 1]:
        k += 1
    while k > 0 and t < breaks[k]:
        k -= 1
    work.counts[Count.PIECE] = k
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


@inner
def note_event(work: Any, gate: int, became: float, time: float, value: float) -> None:
    """Note what a gate became, and the rate of what it follows or the position of its joint."""
    n = work.counts[Count.EVENTS]
    if n < len(work.events):
        work.events[n, 0], work.events[n, 1], work.events[n, 2], work.events[n, 3] = gate, became, time, value
        work.counts[Count.EVENTS] += 1


@inlined
def normalise(system: Any, q: Array) -> None:
    """Normalise quaternions."""
    for start in system.quaternions:
        size = math.sqrt(q[start] ** 2 + q[start + 1] ** 2 + q[start + 2] ** 2 + q[start + 3] ** 2)
        for k in range(start, start + 4):
            q[k] /= size


@inner
def hold(address: int, friction: Array, keeping: Array, first_x: int, first_y: int, x: Array, y: Array) -> int:
    """Find friction efforts that hold the joints in stiction, as inputs; return the number of model calls.

    With more joints in stiction than degrees of freedom, inconsistent accelerations during an iteration would let
    efforts grow that hold each other; the projection `keeping` removes these.
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
def _far_from_closed(system: Any, x: Array, y: Array) -> bool:
    """Return whether closures moved their guess far."""
    displacement = 0.0
    for p in system.other:
        displacement = max(displacement, abs(y[p] - x[p]) / system.far[p])
    return displacement > 1.0


@inlined
def _take_closed(system: Any, x: Array, y: Array) -> None:
    """Guess what closures moved to."""
    for p in system.other:
        x[p] = y[p]


@inlined
def _hold_joints(system: Any, work: Any, x: Array, y: Array) -> None:
    """Hold the joints that stick."""
    if len(system.friction) > 0:
        sticking = system.gate_x + len(system.slack) - 2 * len(system.friction)
        last = system.outputs - len(system.friction)
        work.counts[Count.EVALUATIONS] += hold(system.address, system.friction, work.keeping, sticking, last, x, y)


@inlined
def evaluate(system: Any, work: Any, x: Array, y: Array) -> None:
    """Evaluate the model; if its closures move the guess far, evaluate once more from there.

    Where they never come to rest, that is noted; the next row of output ends the run.
    """
    normalise(system, x)
    for _ in range(MAX_CLOSURE_CALLS):
        call_model(system.address, x.ctypes.data, y.ctypes.data)
        work.counts[Count.EVALUATIONS] += 1
        if not _far_from_closed(system, x, y):
            _hold_joints(system, work, x, y)
            return
        _take_closed(system, x, y)
    work.counts[Count.OPEN] = 1


@inner
def evaluate_pair(system: Any, work: Any) -> None:
    """Evaluate the first two rows of the work likewise, in one call of the model."""
    x, y = work.x, work.y
    normalise(system, x[0])
    normalise(system, x[1])
    for _ in range(MAX_CLOSURE_CALLS):
        call_model(system.pair, x[0].ctypes.data, y[0].ctypes.data)
        work.counts[Count.EVALUATIONS] += 2
        if not (_far_from_closed(system, x[0], y[0]) or _far_from_closed(system, x[1], y[1])):
            _hold_joints(system, work, x[0], y[0])
            _hold_joints(system, work, x[1], y[1])
            return
        _take_closed(system, x[0], y[0])
        _take_closed(system, x[1], y[1])
    work.counts[Count.OPEN] = 1


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
def find_powers(system: Any, work: Any, x: Array, y: Array) -> None:
    """Find powers of inputs and losses at an evaluated state."""
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
            work.numbers[Number.INPUT] += h * weights[i] * work.powers[0]
            work.numbers[Number.LOSS] += h * weights[i] * work.powers[1]


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
        out_y[system.outputs] = work.numbers[Number.INPUT]
        out_y[system.outputs + 1] = work.numbers[Number.LOSS]
    return math.isfinite(total) and work.counts[Count.OPEN] == 0  # one that is not makes the sum not finite
