"""Implicit Gauss methods: stage accelerations by a simplified Newton iteration whose matrix is kept while it serves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import compiled, inlined, inner
from parflex.simulation.integrators.chosen_steps import (
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
from parflex.simulation.integrators.loop import (
    AIM,
    BEST,
    CONTRACTION,
    INPUT,
    ITERATIONS,
    LAST,
    LOSS,
    MADE_FOR,
    REJECTED,
    STARTED,
    STEP,
    STEPS,
    UNSEEN,
    WASTED,
    add_work,
    copy,
    evaluate,
    evaluate_at,
    evaluate_pair,
    give_inputs,
    normalise,
    place,
    record,
)
from parflex.simulation.integrators.loop_newton import (
    costs,
    invent_past,
    make_modes,
    note_past,
    solve_mode,
    start_stages,
    take_state,
)

Array = np.ndarray
MOST_ITERATIONS = 25
MOST_UNSEEN = 16  # steps of one iteration, which does not show the contraction, in a row
MOST_CUTS = 7  # each time by four: steps down to 1/4096
TOO_LONG = 5  # status, as in `system`


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
    _from_state(system, work, tableau, h, q, qd)
    work.numbers[CONTRACTION] = 0.5


@inner
def _from_state(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """A past that would end at the state, evaluated in the row behind the stages.

    Its acceleration is taken through the matrix: at the end of a step what is stiff may be far from its equilibrium, at
    stages it is not.
    """
    stages, nq = len(tableau.c), system.positions
    for i in range(stages):
        for k in range(len(system.free)):
            work.miss[i, k] = work.y[stages, 2 * nq + system.free[k]]
    _change(system, work, tableau)
    invent_past(system, work, tableau, h, q, qd)


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
    stages, count, turns = len(tableau.c), len(system.free), len(system.turning)
    miss, change, turned, solved = work.miss, work.change, work.turned, work.solved
    rows = count + turns
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
            kept, behind = 0.0 if m == 0 else 1.0, 0 if real else rows
            for k in range(count):
                change[i, k] = kept * change[i, k] + (re * solved[k] + im * solved[behind + k])
            for k in range(turns):
                r = count + k
                turned[i, k] = kept * turned[i, k] + (re * solved[r] + im * solved[behind + r])


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
    largest, shaken, total, h2 = 0.0, 0.0, 0.0, h * h
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
            own, unit = change[i, k], system.units[k]
            acceleration[k] += own
            size = h2 * abs(own) / unit
            if not size <= largest:  # NaN too
                largest = size
            shaken = max(shaken, size * (h2 * abs(miss[i, k]) / unit))
    work.counts[ITERATIONS] += 1
    return largest, max(largest, math.sqrt(shaken))


@inner
def _solve_stages(
    system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float
) -> int:
    """Iterations that were needed, or 0 if they do not converge."""
    for i in range(len(tableau.c)):
        place(system, work.x[i], q, qd)
        give_inputs(system, work, t + tableau.c[i] * h, work.x[i])
    start_stages(system, work, tableau, h, q, qd)
    contraction, before, known, guessed = work.numbers[CONTRACTION], 0.0, 0.0, False
    for iteration in range(1, MOST_ITERATIONS + 1):
        size, shaken = _iterate(system, work, tableau, h, q, qd)
        if not math.isfinite(size):
            return 0
        if iteration > 1 and before > 0.0:
            contraction = shaken / known
            # the first change is that of a start, whose square may be the second one
            if iteration > 2 and size > 0.9 * before and size > 100 * tolerance:
                return 0
        share = min(contraction, 0.9)
        rounding = iteration > 2 and contraction > 0.1 and size <= tolerance
        if shaken * share / (1 - share) <= tolerance or size == 0.0 or rounding:
            if iteration == 1 and work.counts[UNSEEN] >= MOST_UNSEEN and shaken > tolerance:
                guessed = True  # it grows as the robot moves on
            else:
                # a small change is mostly rounding, whose ratio says nothing of the contraction
                less = iteration > 1 and shaken <= 0.1 * tolerance
                contraction = min(contraction, work.numbers[CONTRACTION]) if less else contraction
                work.numbers[CONTRACTION] = max(contraction, 1e-3)
                work.counts[UNSEEN] = work.counts[UNSEEN] + 1 if iteration == 1 else 0
                return 1 if guessed and shaken <= tolerance else iteration
        before, known = size, shaken
    return 0


@inlined
def _finish(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    """State at the end of the step; dependent positions go on from the last stage, where they were closed."""
    stages, last = len(tableau.c), len(tableau.c) - 1
    note_past(system, work, tableau, h, q, qd)
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
    """The matrix for a step of this length, and what is known at its start where no step was made before."""
    stages, numbers = len(tableau.c), work.numbers
    if numbers[MADE_FOR] != h:
        _modes_for(system, work, tableau, h)
    if numbers[LAST] == 0.0:
        evaluate_at(system, work, t, q, qd, stages)
        note_start(system, work, stages)
    if numbers[LAST] < 0.0:
        _from_state(system, work, tableau, h, q, qd)


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
    judged = work.judging != 0 and numbers[AIM] > 0.0  # steps, by their error
    chosen = judged and numbers[STEP] > 0.0
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
                        _from_state(system, work, tableau, length, q, qd)
                    elif again or counts[STARTED] == 0:
                        _restart(system, work, tableau, begin, length, q, qd)
                        counts[STARTED], fresh, numbers[LAST] = 1, True, 0.0
                    elif counts[WASTED] * spent > renewal:
                        if gated:  # the state is asked for where a step is made again
                            _new_matrix(system, work, tableau, begin, length, q, qd)
                        else:
                            _renew(system, work, tableau, length, stages - 1)
                        fresh = True
                    if judged and not again:
                        _lead_in(system, work, tableau, begin, length, q, qd)
                    used = _solve_stages(system, work, tableau, begin, length, q, qd, tolerance)
                    if used == 0 and chosen and not fresh:  # the matrix may be old
                        _new_matrix(system, work, tableau, begin, length, q, qd)
                        fresh = True
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
