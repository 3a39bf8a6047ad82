"""Steps chosen by their error, for the loops of implicit methods: estimate, choice, and rows inside of long steps.

The error of a step is known from the accelerations at its stages and those of the step before: no evaluation is made
for it. The polynomial through the same accelerations gives rows inside of one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import inlined, inner
from parflex.simulation.integrators.loop import (
    AIM,
    FIRST_ERROR,
    INPUT,
    LARGEST_ERROR,
    LAST,
    LAST_ERROR,
    LONGEST,
    LOSS,
    MOST,
    REFUSALS,
    REJECTED,
    SHORTEST,
    STEP,
    copy,
    find_powers,
    record,
)

Array = np.ndarray
SAFETY = 0.9
WORTH = 1.2  # a step that may be longer by less stays: a matrix serves one length
MOST_GROWTH, LEAST_SHARE, NOT_SOLVED = 2.0, 0.2, 0.25
NEARLY = 0.8  # of the aim: the next step is shortened before it must be made twice
MOST_REFUSALS = 25  # of one step
FLAT, MANY = 0.3, 10  # an error that so many shorter steps leave at so much of it is rounding
TOO_SMALL, ROUNDING = 3, 6  # status, as in `system`


@inlined
def cut(left: float, asked: float) -> float:
    """A part of what is left: no longer than asked, a whole number of them in it."""
    return left / max(1.0, math.ceil(left / asked * (1 - 1e-9)))


@inlined
def rows_ahead(asked: float, h: float, most: int) -> int:
    """Rows that a step goes over."""
    return max(1, min(most, int(asked / h * (1 + 1e-9))))


@inner
def note_stages(work: Any, c: Array, ratio: float) -> int:
    """Put what the stages of a step have behind that of the last one, which was `ratio` times as long, if positive.

    Gives the first known row of the course: then it is that of the start of this step.
    """
    course, points, acceleration, rate = work.course, work.points, work.acceleration, work.rate
    stages, count, nq = len(c), acceleration.shape[1], rate.shape[1]
    for i in range(stages):
        for k in range(count):
            course[stages + i, k] = acceleration[i, k]
        for p in range(nq):
            course[stages + i, count + p] = rate[i, p]
        points[0, i] = (c[i] - 1.0) * ratio
        points[0, stages + i] = c[i]
    if ratio > 0.0:
        return 0
    points[0, stages - 1] = 0.0
    return stages - 1


@inner
def note_start(system: Any, work: Any, row: int) -> None:
    """The evaluated state of a row of the work, behind the stages, as the only one that is known before a step."""
    nq, course, y = system.positions, work.course[row - 1], work.y[row]
    count = len(system.free)
    for k in range(count):
        course[k] = y[2 * nq + system.free[k]]
    for p in range(nq):
        course[count + p] = y[nq + p]
    if system.power != 0:
        find_powers(system, work, work.x[row], y)
        copy(work.powers, course[count + nq :])
    work.numbers[LAST], work.numbers[LAST_ERROR] = -1.0, 0.0


@inner
def step_error(work: Any, first: int, constant: float, metres: Array) -> float:
    """Error of the positions in a step (m): the highest derivative of the polynomial through the known accelerations.

    What is stiff counts in full: filtered by the matrix, long steps would shake it, and shorter ones follow.
    """
    points, course, last, factorial, largest = work.points, work.course, len(work.course), 1.0, 0.0
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
            total += points[1, j] * course[j, k]
        size = factorial * abs(total) * metres[k]
        if not size <= largest:  # NaN too
            largest = size
    return largest


@inner
def _value_at(points: Array, first: int, share: float) -> None:
    """Weights of the polynomial through the known points at a share of the step, which may be beyond it."""
    last = points.shape[1]
    for j in range(first, last):
        weight = 1.0
        for i in range(first, last):
            if i != j:
                weight *= (share - points[0, i]) / (points[0, j] - points[0, i])
        points[1, j] = weight


@inner
def choose(numbers: Array, counts: Array, error: float, length: float, power: int) -> int:
    """Judge a step by its error (m), which goes with a power of the length: 0 it is made, -1 a shorter one is.

    Other answers are a status with which the run ends.
    """
    aim, asked = numbers[AIM], numbers[STEP]
    if error <= aim:
        counts[REFUSALS] = 0
        larger = max(error, numbers[LAST_ERROR], 1e-300)
        growth = SAFETY * (aim / larger) ** (1.0 / power)
        if error > NEARLY * aim:
            numbers[STEP] = min(asked, length * growth)
        elif length * growth > WORTH * asked and asked < numbers[MOST]:
            numbers[STEP] = min(length * growth, MOST_GROWTH * asked, numbers[MOST])
        numbers[LAST_ERROR] = error
        numbers[LARGEST_ERROR] = max(numbers[LARGEST_ERROR], error)
        numbers[SHORTEST] = length if numbers[SHORTEST] == 0.0 else min(numbers[SHORTEST], length)
        numbers[LONGEST] = max(numbers[LONGEST], length)
        return 0
    counts[REJECTED] += 1
    counts[REFUSALS] += 1
    if not math.isfinite(error):
        numbers[STEP] = NOT_SOLVED * length
        return TOO_SMALL if counts[REFUSALS] > MOST_REFUSALS else -1
    if counts[REFUSALS] == 1:
        numbers[FIRST_ERROR] = error
    numbers[STEP] = length * min(SAFETY, max(LEAST_SHARE, SAFETY * (aim / error) ** (1.0 / power)))
    if counts[REFUSALS] > MANY and error > FLAT * numbers[FIRST_ERROR]:
        numbers[FIRST_ERROR] = error
        return ROUNDING
    return TOO_SMALL if counts[REFUSALS] > MOST_REFUSALS else -1


@inner
def go_over(course: Array, numbers: Array, length: float) -> None:
    """The step that is made becomes the last one."""
    stages = len(course) // 2
    for i in range(stages):
        copy(course[stages + i], course[i])
    numbers[LAST] = length


@inner
def _state_inside(
    system: Any, work: Any, b: Array, c: Array, first: int, share: float, length: float, q: Array, qd: Array
) -> None:
    """State at a share of the step that was just made from the kept one: accelerations integrated as a step does.

    Dependent positions are a guess, which the closures correct; work goes into the numbers.
    """
    course, points, kept, numbers = work.course, work.points, work.kept, work.numbers
    nq, count = system.positions, len(system.free)
    copy(kept, q)
    copy(kept[nq:], qd)
    numbers[INPUT], numbers[LOSS] = kept[len(kept) - 2], kept[len(kept) - 1]
    for k in range(len(system.simple)):
        q[system.simple[k, 0]] += share * length * qd[system.free[system.simple[k, 1]]]
    for i in range(len(c)):
        _value_at(points, first, share * c[i])
        weight, lever = share * length * b[i], share * length * (1.0 - c[i])
        for j in range(first, len(course)):
            part = weight * points[1, j]
            for k in range(count):
                qd[system.free[k]] += part * course[j, k]
            for k in range(len(system.simple)):
                q[system.simple[k, 0]] += lever * part * course[j, system.simple[k, 1]]
            for p in system.other:
                q[p] += part * course[j, count + p]
            numbers[INPUT] += part * course[j, count + nq]
            numbers[LOSS] += part * course[j, count + nq + 1]


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
    put_in, lost = numbers[INPUT], numbers[LOSS]
    for k in range(1, span):
        _state_inside(system, work, tableau.b, tableau.c, first, k / span, span * h, q, qd)
        if not record(system, work, t + (done + k) * h, q, qd, out_x[k - 1], out_y[k - 1]):
            return False
    numbers[INPUT], numbers[LOSS] = put_in, lost
    return True
