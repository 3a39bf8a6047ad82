"""Implicit Gauss methods: stage accelerations by a simplified Newton iteration whose matrix is kept while it serves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.simulation.integrators.chosen_steps import (
    carry_on,
    choose,
    cut,
    go_over,
    note_stages,
    note_start,
    rows_ahead,
    rows_inside,
    step_error,
)
from parflex.simulation.integrators.crossings import (
    LENGTH,
    MOST_PARTS,
    NOTHING,
    PHASE,
    TRIES,
    WHOLE,
    judge,
    keep,
    put_back,
    settling,
)
from parflex.simulation.integrators.jit import compiled, inlined, inner
from parflex.simulation.integrators.loop import (
    AIM,
    BEST,
    INPUT,
    ITERATIONS,
    LAST,
    LOSS,
    MADE_FOR,
    REJECTED,
    STARTED,
    STEP,
    STEPS,
    WASTED,
    add_work,
    copy,
    evaluate,
    evaluate_at,
    give_inputs,
    normalise,
    place,
    record,
)
from parflex.simulation.integrators.loop_newton import costs, make_modes, solve_mode, take_state

Array = np.ndarray
MOST_ITERATIONS = 25
MOST_CUTS = 7  # each time by four: steps down to 1/4096
TOO_LONG = 5  # status, as in `system`


@inner
def _new_matrix(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """The modes of 1 - h A (x) Jv - h^2 AA (x) Jq at this state."""
    stages = len(tableau.c)
    evaluate_at(system, work, t, q, qd, stages)
    take_state(system, work, stages)
    _modes_for(system, work, tableau, h)
    work.counts[BEST], work.counts[WASTED] = MOST_ITERATIONS, 0


@inner
def _modes_for(system: Any, work: Any, tableau: Any, h: float) -> None:
    """The same at the state that is known, for any length of the step."""
    for m in range(len(tableau.roots)):
        re, im = h * tableau.roots[m, 0], h * tableau.roots[m, 1]
        c = work.coefficients[m]
        c[0], c[1], c[2], c[3] = re, im, re * re - im * im, 2 * re * im
    make_modes(system, work)
    work.numbers[MADE_FOR] = h


@inner
def _restart(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """A new matrix, and stages that start from the state as it is."""
    _new_matrix(system, work, tableau, t, h, q, qd)
    y = work.y[len(tableau.c)]
    _still(work.acceleration, work.rate, y, system.free, system.positions, len(tableau.c))
    work.numbers[0] = 0.5


@inner
def _still(acceleration: Array, rate: Array, y: Array, free: Array, positions: int, stages: int) -> None:
    """Stages that have accelerations and rates of change as the state does."""
    for i in range(stages):
        for k in range(len(free)):
            acceleration[i, k] = y[2 * positions + free[k]]
        for p in range(positions):
            rate[i, p] = y[positions + p]


@inlined
def _predict(system: Any, work: Any, tableau: Any) -> None:
    """Accelerations and rates of change of the next stages from the polynomial through the last ones."""
    stages = len(tableau.c)
    for values, width in ((work.acceleration, len(system.free)), (work.rate, system.positions)):
        for k in range(width):
            first, second, third = values[0, k], values[1, k], values[stages - 1, k]
            for i in range(stages):
                value = tableau.ahead[i, 0] * first + tableau.ahead[i, 1] * second
                if stages == 3:
                    value += tableau.ahead[i, 2] * third
                values[i, k] = value


@inlined
def _place_stage(system: Any, work: Any, tableau: Any, i: int, h: float, q: Array, qd: Array) -> None:
    """State of a stage from the accelerations of all of them."""
    nq, stages, x = system.positions, len(tableau.c), work.x[i]
    for k in range(len(system.free)):
        total = 0.0
        for j in range(stages):
            total += tableau.A[i, j] * work.acceleration[j, k]
        x[nq + system.free[k]] = qd[system.free[k]] + h * total
    for k in range(len(system.simple)):
        p, f = system.simple[k, 0], system.simple[k, 1]
        total = 0.0
        for j in range(stages):
            total += tableau.AA[i, j] * work.acceleration[j, f]
        x[p] = q[p] + h * (tableau.c[i] * qd[system.free[f]] + h * total)
    for p in system.other:
        total = 0.0
        for j in range(stages):
            total += tableau.A[i, j] * work.rate[j, p]
        x[p] = q[p] + h * total


@inlined
def _change(system: Any, work: Any, tableau: Any) -> None:
    """What a step of Newton changes all stages by, mode after mode, and the turning by that."""
    stages, count, turns = len(tableau.c), len(system.free), len(system.turning)
    miss, change, turned, solved = work.miss, work.change, work.turned, work.solved
    rows = count + turns
    for i in range(stages):
        for k in range(count):
            change[i, k] = 0.0
        for k in range(turns):
            turned[i, k] = 0.0
    for m in range(len(tableau.roots)):
        real = tableau.roots[m, 1] == 0.0
        for k in range(count):
            re, im = 0.0, 0.0
            for i in range(stages):
                re += tableau.into[m, 0, i] * miss[i, k]
                im += tableau.into[m, 1, i] * miss[i, k]
            work.solving[m, k] = re
            if not real:
                work.solving[m, count + k] = im
        solve_mode(system, work, m, real)
        for i in range(stages):
            re, im = tableau.back[m, 0, i], tableau.back[m, 1, i]
            for k in range(count):
                change[i, k] += re * solved[k] if real else re * solved[k] - im * solved[rows + k]
            for k in range(turns):
                r = count + k
                turned[i, k] += re * solved[r] if real else re * solved[r] - im * solved[rows + r]


@inlined
def _iterate(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> float:
    """One step of the simplified Newton iteration; gives the largest change, in units of position."""
    nq, stages, count = system.positions, len(tableau.c), len(system.free)
    change, acceleration, y = work.change, work.acceleration, work.y
    for i in range(stages):
        _place_stage(system, work, tableau, i, h, q, qd)
        evaluate(system, work, work.x[i], y[i])
        for k in range(count):
            work.miss[i, k] = y[i, 2 * nq + system.free[k]] - acceleration[i, k]
    _change(system, work, tableau)
    largest = 0.0
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
        for k in range(count):
            acceleration[i, k] += change[i, k]
            size = h * h * abs(change[i, k]) / system.units[k]
            if not size <= largest:  # NaN too
                largest = size
    work.counts[ITERATIONS] += 1
    return largest


@inner
def _solve_stages(
    system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float
) -> int:
    """Iterations that were needed, or 0 if they do not converge."""
    for i in range(len(tableau.c)):
        place(system, work.x[i], q, qd)
        give_inputs(system, work, t + tableau.c[i] * h, work.x[i])
    contraction, before = work.numbers[0], 0.0
    for iteration in range(1, MOST_ITERATIONS + 1):
        size = _iterate(system, work, tableau, h, q, qd)
        if not math.isfinite(size):
            return 0
        if iteration > 1 and before > 0.0:
            contraction = size / before
            if contraction > 0.9 and size > 100 * tolerance:
                return 0
        share = min(contraction, 0.9)
        if size * share / (1 - share) <= tolerance or size == 0.0:
            # a small change is mostly rounding, whose ratio says nothing of the contraction
            work.numbers[0] = max(contraction, 1e-3)
            return iteration
        before = size
    return 0


@inlined
def _finish(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """State at the end of the step; dependent positions go on from the last stage, where they were closed."""
    stages, last = len(tableau.c), len(tableau.c) - 1
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
def _lead_in(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """The matrix for a step of this length, and stages from those of the step before, or from the state as it is."""
    stages, numbers = len(tableau.c), work.numbers
    if numbers[MADE_FOR] != h:
        _modes_for(system, work, tableau, h)
    if numbers[LAST] > 0.0:
        carry_on(work.course, work.points, tableau.c, h / numbers[LAST], work.acceleration, work.rate)
        return
    if numbers[LAST] == 0.0:
        evaluate_at(system, work, t, q, qd, stages)
        note_start(system, work, stages)
    _still(work.acceleration, work.rate, work.y[stages], system.free, system.positions, stages)


@inner
def _carefully(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float) -> bool:
    """One step as ever more short ones, each with a matrix of its own: where friction turns, or something snaps."""
    copy(q, work.before)
    copy(qd, work.before[system.positions :])
    put_in, lost = work.numbers[INPUT], work.numbers[LOSS]
    parts = 1
    for _ in range(MOST_CUTS):
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
        work.numbers[INPUT], work.numbers[LOSS] = put_in, lost
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
    spent, renewal = costs(system, len(tableau.roots), stages)
    gated, numbers = system.gaps != 0, work.numbers
    waiting, again, done = gated, False, 0  # for the gates to settle; a part of a step that is made again, shorter
    judged, chosen = numbers[AIM] > 0.0, numbers[AIM] > 0.0 and numbers[STEP] > 0.0  # steps, by their error
    row, known = 0, 0
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
                        _still(work.acceleration, work.rate, work.y[stages], system.free, system.positions, stages)
                    elif again or counts[STARTED] == 0:
                        _restart(system, work, tableau, begin, length, q, qd)
                        counts[STARTED], fresh, numbers[LAST] = 1, True, 0.0
                    elif counts[WASTED] * spent > renewal:
                        _new_matrix(system, work, tableau, begin, length, q, qd)
                        fresh = True
                    if judged and not again:
                        _lead_in(system, work, tableau, begin, length, q, qd)
                    used = _solve_stages(system, work, tableau, begin, length, q, qd, tolerance)
                    if used == 0 and chosen and not fresh:  # the matrix may be old
                        counts[WASTED] = renewal
                        continue
                    if judged and not again and (used > 0 or chosen):
                        known = note_stages(work, tableau.c, numbers[LAST] / length)
                        error = (
                            step_error(work, known, tableau.error * length * length, system.metres)
                            if used > 0
                            else math.inf
                        )
                        found = choose(numbers, counts, error, length, 2 * stages - known + 1)
                        if found != 0 and not chosen:
                            return row, TOO_LONG
                        if found > 0:
                            return row, found
                        if found < 0:
                            if span > 1:
                                span = rows_ahead(numbers[STEP], h, span)
                                left = span * h
                            continue
                    if used > 0:
                        _finish(system, work, tableau, length, q, qd)
                    elif _carefully(system, work, tableau, begin, length, q, qd, tolerance):
                        fresh = False
                    else:
                        return row, 1
                again = gated and not judge(system, work, begin, q, qd)
                if again:
                    put_back(work.kept, numbers, q, qd)
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
                        counts[WASTED] += used - counts[BEST]
                        if not judged:
                            _predict(system, work, tableau)
                if span > 1 and not rows_inside(
                    system, work, tableau, t, h, done, known, span, out_x[row:], out_y[row:]
                ):
                    return row, 2
                if judged:
                    go_over(work.course, numbers, length if used > 0 else 0.0)
            done += span
        row += span
        if not record(system, work, t + done * h, q, qd, out_x[row - 1], out_y[row - 1]):
            return row - 1, 2
    return len(out_x), 0
