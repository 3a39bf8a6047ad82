"""Step sizes: whole number of steps to the next row, error estimate, error control."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import inlined, inner
from parflex.integrators.common import (
    AIM,
    CONSECUTIVE_REJECTIONS,
    FIRST_ERROR,
    LARGEST_ERROR,
    LAST,
    LAST_ERROR,
    LONGEST,
    MOST,
    REJECTED,
    ROUNDING,
    SHORTEST,
    STEP,
    TOO_SMALL,
    copy,
)

Array = np.ndarray


MOST_GROWTH, LEAST_SHARE, UNSOLVED_STEP_FACTOR = 2.0, 0.2, 0.25

FLAT, MANY = 0.3, 10  # an error that so many shorter steps leave at so much of it is rounding

SAFETY = 0.9

WORTH = 1.2  # a step that may be longer by less stays: a matrix serves one length

NEARLY = 0.8  # of the aim: the next step is shortened before it must be made twice

MAX_REJECTIONS = 25  # of one step


@inlined
def cut(left: float, requested: float) -> float:
    """A part of what is left: no longer than asked, a whole number of them in it."""
    return left / max(1.0, math.ceil(left / requested * (1 - 1e-9)))


@inlined
def rows_ahead(requested: float, h: float, most: int) -> int:
    """Rows that a step goes over."""
    return max(1, min(most, int(requested / h * (1 + 1e-9))))


@inner
def step_error(work: Any, first: int, constant: float, metres: Array) -> float:
    """Error of the positions in a step (m): the highest derivative of the polynomial through the known accelerations.

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
def choose(numbers: Array, counts: Array, error: float, length: float, power: int) -> int:
    """Judge a step by its error (m), which goes with a power of the length: 0 it is made, -1 a shorter one is.

    Other answers are a status with which the run ends.
    """
    aim, requested = numbers[AIM], numbers[STEP]
    if error <= aim:
        counts[CONSECUTIVE_REJECTIONS] = 0
        larger = max(error, numbers[LAST_ERROR], 1e-300)
        growth = SAFETY * (aim / larger) ** (1.0 / power)
        if error > NEARLY * aim:
            numbers[STEP] = min(requested, length * growth)
        elif length * growth > WORTH * requested and requested < numbers[MOST]:
            numbers[STEP] = min(length * growth, MOST_GROWTH * requested, numbers[MOST])
        numbers[LAST_ERROR] = error
        numbers[LARGEST_ERROR] = max(numbers[LARGEST_ERROR], error)
        numbers[SHORTEST] = length if numbers[SHORTEST] == 0.0 else min(numbers[SHORTEST], length)
        numbers[LONGEST] = max(numbers[LONGEST], length)
        return 0
    counts[REJECTED] += 1
    counts[CONSECUTIVE_REJECTIONS] += 1
    if not math.isfinite(error):
        numbers[STEP] = UNSOLVED_STEP_FACTOR * length
        return TOO_SMALL if counts[CONSECUTIVE_REJECTIONS] > MAX_REJECTIONS else -1
    if counts[CONSECUTIVE_REJECTIONS] == 1:
        numbers[FIRST_ERROR] = error
    numbers[STEP] = length * min(SAFETY, max(LEAST_SHARE, SAFETY * (aim / error) ** (1.0 / power)))
    if counts[CONSECUTIVE_REJECTIONS] > MANY and error > FLAT * numbers[FIRST_ERROR]:
        numbers[FIRST_ERROR] = error
        return ROUNDING
    return TOO_SMALL if counts[CONSECUTIVE_REJECTIONS] > MAX_REJECTIONS else -1


@inner
def shift_history(history: Array, numbers: Array, length: float) -> None:
    """The step that is made becomes the last one."""
    stages = len(history) // 2
    for i in range(stages):
        copy(history[stages + i], history[i])
    numbers[LAST] = length
