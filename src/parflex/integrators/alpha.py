"""The generalized-alpha method: second order, with adjustable damping of high frequencies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import compiled, inlined, inner
from parflex.integrators.common import (
    AIM,
    BEST,
    EXTRA_ITERATIONS,
    INPUT,
    ITERATIONS,
    LAST,
    LAST_ERROR,
    LAST_INPUT,
    LAST_LOSS,
    LOSS,
    MATRIX_STEP,
    REJECTED,
    STARTED,
    STEP,
    STEPS,
    copy,
    evaluate,
    evaluate_at,
    find_powers,
    give_inputs,
    normalise,
    place,
    record,
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
from parflex.integrators.gauss import costs, make_modes, solve_mode, take_state
from parflex.integrators.step_size import choose, cut

Array = np.ndarray
MOST_ITERATIONS = 25
PARTS, MIN_PART = 4, 0.01  # of steps that do not converge, and of a step: shorter ones are not tried
TOO_LONG = 5  # status, as in `system`
OLD, SLOW, NEW, AVERAGE = range(4)  # rows of Work.acceleration: SLOW is the algorithm's own, AVERAGE its next value


@inner
def _new_matrix(system: Any, work: Any, alpha: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """The matrix 1 - d(acceleration)/d(state) d(state)/d(acceleration at the end of the step), a single mode."""
    last = len(work.x) - 1  # a literal number would be compiled on its own
    evaluate_at(system, work, t, q, qd, last - 1)
    take_state(system, work, last - 1)
    _modes_for(system, work, alpha, h)
    work.counts[BEST], work.counts[EXTRA_ITERATIONS] = MOST_ITERATIONS, 0


@inner
def _modes_for(system: Any, work: Any, alpha: Any, h: float) -> None:
    """The same at the state that is known, for any length of the step."""
    share, c = (1 - alpha.mean_force) / (1 - alpha.mean_mass), work.coefficients[0]
    c[0], c[1], c[2], c[3] = share * h * alpha.gamma, 0.0, share * h * h * alpha.beta, 0.0
    make_modes(system, work)
    work.numbers[MATRIX_STEP] = h


@inlined
def _place(system: Any, work: Any, alpha: Any, h: float, q: Array, qd: Array) -> None:
    """State at the end of the step for the accelerations there."""
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
    """One step of the simplified Newton iteration; gives the largest change, in units of position."""
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
    work.counts[ITERATIONS] += 1
    return largest


@inner
def _solve(system: Any, work: Any, alpha: Any, t: float, h: float, q: Array, qd: Array, tolerance: float) -> int:
    """Iterations for the accelerations at the end of the step, or 0 if they do not converge."""
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
    numbers[INPUT] += 0.5 * h * (numbers[LAST_INPUT] + powers[0])
    numbers[LOSS] += 0.5 * h * (numbers[LAST_LOSS] + powers[1])
    numbers[LAST_INPUT], numbers[LAST_LOSS] = powers[0], powers[1]


@inlined
def _finish(system: Any, work: Any, q: Array, qd: Array) -> None:
    """The end of the step becomes the state."""
    nq, x = system.positions, work.x[0]
    for k in range(len(system.simple)):
        q[system.simple[k, 0]] = x[system.simple[k, 0]]
    for p in system.turning:
        q[p] = x[p]
    for p in system.closing:
        q[p] = work.y[0, p]
    for k in system.free:
        qd[k] = x[nq + k]
    normalise(system, q)
    copy(work.y[0, nq:], work.rate[0])
    copy(work.acceleration[NEW], work.acceleration[OLD])
    copy(work.acceleration[AVERAGE], work.acceleration[SLOW])
    work.counts[STEPS] += 1


@inner
def _error(system: Any, work: Any, alpha: Any, h: float) -> float:
    """Error of the positions in a step (m) by the change of acceleration."""
    largest = 0.0
    for k in range(len(system.free)):
        change = work.acceleration[NEW, k] - work.acceleration[OLD, k]
        size = h * h * alpha.error * abs(change) * system.metres[k]
        if not size <= largest:  # NaN too
            largest = size
    return largest


@inner
def _prepare_step(system: Any, work: Any, alpha: Any, h: float) -> None:
    """The matrix for a step of this length; the algorithm's own accelerations lie a share of a step away."""
    if work.numbers[MATRIX_STEP] != h:
        _modes_for(system, work, alpha, h)
    if work.numbers[LAST] > 0.0:
        ratio, old, slow = h / work.numbers[LAST], work.acceleration[OLD], work.acceleration[SLOW]
        for k in range(len(system.free)):
            slow[k] = old[k] + ratio * (slow[k] - old[k])
        work.numbers[LAST] = h


@compiled
def alpha_steps(
    system: Any,
    work: Any,
    alpha: Any,
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

    Where errors choose them, a step is part of the time between two rows, `h` then.
    """
    nq, counts, count = system.positions, work.counts, len(system.free)
    iteration_cost, renewal = costs(system, 1, 1)
    start_row = len(work.x) - 2
    evaluate_at(system, work, t, q, qd, start_row)
    _add_work(system, work, start_row, 0.0)  # efforts may have jumped since the last call
    gated, numbers = system.gaps != 0, work.numbers
    waiting, again, done = gated, False, 0  # for the gates to settle; a part of a step that is made again, shorter
    judged = work.judging != 0 and numbers[AIM] > 0.0  # steps, by their error
    chosen = judged and numbers[STEP] > 0.0
    for row in range(len(out_x)):
        for _ in range(every):
            begin, left, parts, used, pace = t + done * h, h, 0, 0, h
            while left > 0.0:
                length = cut(left, numbers[STEP]) if chosen else min(left, pace)
                if waiting:
                    length = settling(work.crossing)
                elif again:
                    length = work.crossing[LENGTH]
                elif gated:
                    keep(work.kept, work.crossing, numbers, q, qd, length)
                tries = 0 if length > 0.0 else 2
                while tries < 2:
                    anew = again or counts[STARTED] == 0
                    if tries == 1 or anew or counts[EXTRA_ITERATIONS] * iteration_cost > renewal:
                        _new_matrix(system, work, alpha, begin, length, q, qd)
                    if anew:
                        for k in range(count):
                            for place_of in range(4):
                                work.acceleration[place_of, k] = work.y[1, 2 * nq + system.free[k]]
                        copy(work.y[1, nq:], work.rate[0])
                        _add_work(system, work, start_row, 0.0)
                        counts[STARTED], numbers[LAST], numbers[LAST_ERROR] = 1, 0.0, 0.0
                    if judged:
                        _prepare_step(system, work, alpha, length)
                    used = _solve(system, work, alpha, begin, length, q, qd, tolerance)
                    tries = 2 if used > 0 else tries + 1
                if length > 0.0:
                    if judged and not again and (used > 0 or chosen):
                        error = _error(system, work, alpha, length) if used > 0 else math.inf
                        verdict = choose(numbers, counts, error, length, 3)
                        if verdict != 0 and not chosen:
                            return row, TOO_LONG
                        if verdict > 0:
                            return row, verdict
                        if verdict < 0:
                            continue
                    if used == 0:
                        if again or waiting or pace < MIN_PART * h:
                            return row, 1
                        pace = length / PARTS  # the rest of the step is made in parts
                        counts[STARTED] = 0
                        counts[REJECTED] += 1
                        continue
                    _finish(system, work, q, qd)
                    _add_work(system, work, start_row - 1, length)
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
                parts = parts + 1 if turned or not chosen else 0
                numbers[LAST] = length
                if (chosen and turned) or (not chosen and (left > 0.0 or parts > 1)):
                    counts[STARTED] = 0
                if parts > MOST_PARTS:
                    return row, 3
                if chosen or left == 0.0:
                    counts[BEST] = min(counts[BEST], used)
                    counts[EXTRA_ITERATIONS] += used - counts[BEST]
            done += 1
        if not record(system, work, t + done * h, q, qd, out_x[row], out_y[row]):
            return row, 2
    return len(out_x), 0
