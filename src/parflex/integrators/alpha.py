"""The generalized-alpha method: second order, with adjustable damping of high frequencies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import inlined, inner
from parflex.integrators.common import (
    Count,
    Number,
    copy,
    evaluate,
    evaluate_at,
    find_powers,
    give_inputs,
    normalise,
    place,
)
from parflex.integrators.newton import MOST_ITERATIONS, make_modes, matrix_is_old, solve_mode, take_state
from parflex.integrators.steps import driver

Array = np.ndarray
OLD, SLOW, NEW, AVERAGE = range(4)  # rows of Work.acceleration: SLOW is the algorithm's own, AVERAGE its next value
END, START = 0, 1  # rows of Work.x and Work.y: states at the end and at the start of a step


@inner
def _new_matrix(system: Any, work: Any, alpha: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """Make the matrix 1 - d(acceleration)/d(state) d(state)/d(acceleration at the end of the step), a single mode."""
    evaluate_at(system, work, t, q, qd, START)
    take_state(system, work, START)
    _modes_for(system, work, alpha, h)


@inner
def _modes_for(system: Any, work: Any, alpha: Any, h: float) -> None:
    """Make the same matrix at the known state for another length of the step."""
    share, c = (1 - alpha.mean_force) / (1 - alpha.mean_mass), work.coefficients[0]
    c[0], c[1], c[2], c[3] = share * h * alpha.gamma, 0.0, share * h * h * alpha.beta, 0.0
    make_modes(system, work, h)


@inlined
def _place(system: Any, work: Any, alpha: Any, h: float, q: Array, qd: Array) -> None:
    """Compute the state at the end of the step from the accelerations there."""
    nq, x = system.positions, work.x[0]
    old, slow, new, average = (
        work.acceleration[OLD],
        work.acceleration[SLOW],
        work.acceleration[NEW],
        work.acceleration[AVERAGE],
    )
    for k in range(len(system.free)):
        weighted_sum = (1 - alpha.mean_force) * new[k] + alpha.mean_force * old[k] - alpha.mean_mass * slow[k]
        average[k] = weighted_sum / (1 - alpha.mean_mass)
        f = system.free[k]
        x[nq + f] = qd[f] + h * ((1 - alpha.gamma) * slow[k] + alpha.gamma * average[k])
    for k in range(len(system.simple)):
        p, i = system.simple[k, 0], system.simple[k, 1]
        x[p] = q[p] + h * (qd[system.free[i]] + h * ((0.5 - alpha.beta) * slow[i] + alpha.beta * average[i]))
    for p in system.other:
        x[p] = q[p] + h * 0.5 * (work.rate[0, p] + work.rate[1, p])


@inlined
def _iterate(system: Any, work: Any, alpha: Any, h: float, q: Array, qd: Array) -> float:
    """Make one simplified Newton iteration; return the largest change, in units of position."""
    nq, count, new = system.positions, len(system.free), work.acceleration[NEW]
    _place(system, work, alpha, h, q, qd)
    evaluate(system, work, work.x[0], work.y[0])
    for k in range(count):
        work.solving[0, k] = work.y[0, 2 * nq + system.free[k]] - new[k]
    solve_mode(system, work, 0, True)
    change = work.solved
    largest = 0.0
    for p in system.turning:
        largest = max(largest, h * abs(work.y[0, nq + p] - work.rate[1, p]))
    for p in system.other:
        work.rate[1, p] = work.y[0, nq + p]
    share = h * alpha.gamma * (1 - alpha.mean_force) / (1 - alpha.mean_mass)
    for k in range(len(system.turning)):  # positions that lag would stretch stiff beams
        work.rate[1, system.turning[k]] += share * change[count + k]
    for k in range(count):
        new[k] += change[k]
        size = h * h * abs(change[k]) / system.units[k]
        if not size <= largest:  # NaN too
            largest = size
    work.counts[Count.ITERATIONS] += 1
    return largest


@inner
def _solve(system: Any, work: Any, alpha: Any, t: float, h: float, q: Array, qd: Array, tolerance: float) -> int:
    """Iterate the accelerations at the end of the step; return the number of iterations, 0 without convergence."""
    x = work.x[0]
    place(system, x, q, qd)
    give_inputs(system, work, t + h, x)
    copy(work.acceleration[OLD], work.acceleration[NEW])
    copy(work.rate[0], work.rate[1])
    before = 0.0
    for iteration in range(1, MOST_ITERATIONS + 1):
        size = _iterate(system, work, alpha, h, q, qd)
        if not math.isfinite(size) or (iteration > 2 and size > 0.9 * before and size > 100 * tolerance):
            return 0
        if size <= tolerance and iteration > 1:  # the state holds the change of the iteration before, not the last one
            return iteration
        before = size
    return 0


@inner
def _add_work(system: Any, work: Any, row: int, h: float) -> None:
    """Add the work of a step by the rule of the trapezoid, of second order as the method; h = 0 begins anew."""
    if system.power == 0:
        return
    find_powers(system, work, work.x[row], work.y[row])
    numbers, powers = work.numbers, work.powers
    numbers[Number.INPUT] += 0.5 * h * (numbers[Number.LAST_INPUT] + powers[0])
    numbers[Number.LOSS] += 0.5 * h * (numbers[Number.LAST_LOSS] + powers[1])
    numbers[Number.LAST_INPUT], numbers[Number.LAST_LOSS] = powers[0], powers[1]


@inner
def _begin(system: Any, work: Any, alpha: Any, t: float, q: Array, qd: Array) -> None:
    """Find the powers at the start, since efforts may have jumped after the last call."""
    evaluate_at(system, work, t, q, qd, START)
    _add_work(system, work, START, 0.0)


@inner
def _prepare(system: Any, work: Any, alpha: Any, t: float, h: float, q: Array, qd: Array, again: bool) -> None:
    """Make the matrix for a step of this length, and initial accelerations if none are known."""
    counts, numbers, anew = work.counts, work.numbers, again or work.counts[Count.STARTED] == 0
    if anew or matrix_is_old(system, work, 1, 1):
        _new_matrix(system, work, alpha, t, h, q, qd)
    if anew:
        for k in range(len(system.free)):
            for row in range(4):
                work.acceleration[row, k] = work.y[START, 2 * system.positions + system.free[k]]
        copy(work.y[START, system.positions :], work.rate[0])
        _add_work(system, work, START, 0.0)
        counts[Count.STARTED], numbers[Number.LAST], numbers[Number.LAST_ERROR] = 1, 0.0, 0.0
    if work.judging == 0 or numbers[Number.AIM] == 0.0:
        return
    if numbers[Number.MATRIX_STEP] != h:
        _modes_for(system, work, alpha, h)
    if numbers[Number.LAST] > 0.0:  # the algorithm's own accelerations lie a share of a step away
        ratio, old, slow = h / numbers[Number.LAST], work.acceleration[OLD], work.acceleration[SLOW]
        for k in range(len(system.free)):
            slow[k] = old[k] + ratio * (slow[k] - old[k])
        numbers[Number.LAST] = h


@inner
def _error(system: Any, work: Any, alpha: Any, h: float) -> float:
    """Estimate the error of the positions in a step (m) by the change of acceleration."""
    largest, work.numbers[Number.POWER] = 0.0, 3.0
    for k in range(len(system.free)):
        change = work.acceleration[NEW, k] - work.acceleration[OLD, k]
        size = h * h * alpha.error * abs(change) * system.metres[k]
        if not size <= largest:  # NaN too
            largest = size
    return largest


@inner
def _accept(system: Any, work: Any, alpha: Any, h: float, q: Array, qd: Array) -> None:
    """Make the end of the step the state."""
    nq, x, y = system.positions, work.x[END], work.y[END]
    for k in range(len(system.simple)):
        q[system.simple[k, 0]] = x[system.simple[k, 0]]
    for p in system.turning:
        q[p] = x[p]
    for p in system.closing:
        q[p] = y[p]
    for k in system.free:
        qd[k] = x[nq + k]
    normalise(system, q)
    copy(y[nq:], work.rate[0])
    copy(work.acceleration[NEW], work.acceleration[OLD])
    copy(work.acceleration[AVERAGE], work.acceleration[SLOW])
    _add_work(system, work, END, h)


alpha_steps = driver(
    "alpha_steps", begin=_begin, prepare=_prepare, solve=_solve, renew=_new_matrix, error=_error, accept=_accept
)
