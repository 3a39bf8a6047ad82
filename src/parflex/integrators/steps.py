"""The loop of all integrators: steps, their errors, events and rows of output.

A method is a set of compiled functions with one signature each, listed below. `driver` puts those of a method in the
place of these names, and the loop is compiled for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import LoopFunction, inlined, inner
from parflex.integrators.common import Count, Number, Status, record
from parflex.integrators.events import (
    LENGTH,
    MOST_PARTS,
    NOTHING,
    PHASE,
    TRIES,
    WHOLE,
    judge,
    restore_state,
    save_state,
    settling,
)

Array = np.ndarray

begin: Any = None  # (system, work, tableau, t, q, qd): what a call of the loop begins with

prepare: Any = None  # (system, work, tableau, t, h, q, qd, again): matrix and predictor of a step, or part, of length h

solve: Any = None  # (system, work, tableau, t, h, q, qd, tolerance): number of iterations; 0 if they do not converge

renew: Any = None  # (system, work, tableau, t, h, q, qd): a new matrix at this state, where they do not

error: Any = None  # (system, work, tableau, h): error of the positions in a step (m), and its power of h in the numbers

accept: Any = None  # (system, work, tableau, h, q, qd): the end of the step becomes the state

follow: Any = None  # (work, length): the step that is made becomes the last one

rows_inside: Any = None  # (system, work, tableau, t, h, done, span, out_x, out_y): rows inside of a step over `span`

steps_over_rows = False  # whether there are such steps

MAX_SUBDIVISIONS = 7  # each time by four: steps down to 1/4096

MOST_GROWTH, LEAST_SHARE, UNSOLVED_STEP_FACTOR = 2.0, 0.2, 0.25

FLAT, MANY = 0.3, 10  # an error that so many shorter steps leave at so much of it is rounding

SAFETY = 0.9

WORTH = 1.2  # a step that may be longer by less stays: a matrix serves one length

NEARLY = 0.8  # of the aim: the next step is shortened before it must be made twice

MAX_REJECTIONS = 25  # of one step

REFUSED = -1  # verdict: a shorter step is made


@inlined
def cut(left: float, requested: float) -> float:
    """A part of what is left: no longer than asked, a whole number of them in it."""
    return left / max(1.0, math.ceil(left / requested * (1 - 1e-9)))


@inlined
def rows_ahead(requested: float, h: float, most: int) -> int:
    """Rows that a step goes over."""
    return max(1, min(most, int(requested / h * (1 + 1e-9))))


@inner
def widen(ranges: Array, q: Array) -> None:
    """Extend the ranges of all positions to a state."""
    for p in range(len(q)):
        ranges[0, p] = min(ranges[0, p], q[p])
        ranges[1, p] = max(ranges[1, p], q[p])


@inner
def _allowed_error(system: Any, work: Any) -> float:
    """Return the error that a step may have (m): a share of how far the robot has moved, and of what it moves in it."""
    numbers, x, extent = work.numbers, work.x[len(work.x) - 3], 0.0  # the last stage
    if numbers[Number.SHARE] > 0.0:
        for p in range(system.positions):
            span = max(work.ranges[1, p], x[p]) - min(work.ranges[0, p], x[p])
            extent = max(extent, span * system.extents[p])
    return max(numbers[Number.AIM], numbers[Number.SHARE] * min(extent, numbers[Number.FARTHEST]))


@inner
def choose(numbers: Array, counts: Array, aim: float, found: float, length: float) -> int:
    """Judge a step by its error (m), and choose the next one: 0 if it is made, REFUSED, or a status that ends the run.

    A default tolerance rises to the rounding of the errors.
    """
    requested, power = numbers[Number.STEP], numbers[Number.POWER]
    if found <= aim:
        counts[Count.CONSECUTIVE_REJECTIONS] = 0
        larger = max(found, numbers[Number.LAST_ERROR], 1e-300)
        growth = SAFETY * (aim / larger) ** (1.0 / power)
        if found > NEARLY * aim:
            numbers[Number.STEP] = min(requested, length * growth)
        elif length * growth > WORTH * requested and requested < numbers[Number.MOST]:
            numbers[Number.STEP] = min(length * growth, MOST_GROWTH * requested, numbers[Number.MOST])
        numbers[Number.LAST_ERROR] = found
        numbers[Number.LARGEST_ERROR] = max(numbers[Number.LARGEST_ERROR], found)
        numbers[Number.ERROR_SUM] += found
        numbers[Number.SHORTEST] = length if numbers[Number.SHORTEST] == 0.0 else min(numbers[Number.SHORTEST], length)
        numbers[Number.LONGEST] = max(numbers[Number.LONGEST], length)
        return 0
    counts[Count.REJECTED] += 1
    counts[Count.CONSECUTIVE_REJECTIONS] += 1
    if not math.isfinite(found):
        numbers[Number.STEP] = UNSOLVED_STEP_FACTOR * length
        return Status.STEP_TOO_SMALL if counts[Count.CONSECUTIVE_REJECTIONS] > MAX_REJECTIONS else REFUSED
    if counts[Count.CONSECUTIVE_REJECTIONS] == 1:
        numbers[Number.FIRST_ERROR] = found
    numbers[Number.STEP] = length * min(SAFETY, max(LEAST_SHARE, SAFETY * (aim / found) ** (1.0 / power)))
    if counts[Count.CONSECUTIVE_REJECTIONS] > MANY and found > FLAT * numbers[Number.FIRST_ERROR]:
        numbers[Number.FIRST_ERROR] = found
        if numbers[Number.SHARE] == 0.0:
            return Status.ROUNDING_FORBIDS
        numbers[Number.AIM], numbers[Number.STEP] = found / SAFETY, length
    return Status.STEP_TOO_SMALL if counts[Count.CONSECUTIVE_REJECTIONS] > MAX_REJECTIONS else REFUSED


def _attempt(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float) -> int:
    """Iterations that were needed, with a new matrix if the old one does not do; 0 if they do not converge."""
    used = solve(system, work, tableau, t, h, q, qd, tolerance)
    if used == 0 and work.counts[Count.FRESH] == 0:
        renew(system, work, tableau, t, h, q, qd)
        used = solve(system, work, tableau, t, h, q, qd, tolerance)
    return used


def _in_parts(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float) -> bool:
    """One step as ever more short ones, each with a matrix of its own: where friction turns, or something snaps."""
    save_state(work.before, work.numbers, q, qd)
    parts = 1
    for _ in range(MAX_SUBDIVISIONS):
        work.counts[Count.REJECTED] += 1
        small, done = h / parts, 0
        while done < parts:
            work.counts[Count.STARTED] = 0
            prepare(system, work, tableau, t + done * small, small, q, qd, False)
            if _attempt(system, work, tableau, t + done * small, small, q, qd, tolerance) == 0:
                break
            accept(system, work, tableau, small, q, qd)
            done += 1
        work.counts[Count.STARTED], work.counts[Count.FRESH] = 0, 0
        if done == parts:
            return True
        restore_state(work.before, work.numbers, q, qd)
        parts *= 4
    return False


def _steps(
    system: Any, work: Any, tableau: Any, t: float, h: float, every: int, q: Array, qd: Array, tolerance: float,
    out_x: Array, out_y: Array,
) -> tuple[int, int]:  # fmt: skip
    """Steps until the rows of output are full; gives the rows that are and a status.

    Where errors choose them, a step is part of the time between two rows, `h` then, or goes over some rows. With gates,
    a step has parts that end where these turn.
    """
    counts, numbers, crossing, gated = work.counts, work.numbers, work.crossing, system.gaps != 0
    judged = work.judging != 0 and numbers[Number.AIM] > 0.0
    chosen = judged and numbers[Number.STEP] > 0.0
    waiting, again, row, done = gated, False, 0, 0  # for the gates to settle; a part that is made again, shorter
    begin(system, work, tableau, t, q, qd)
    while row < len(out_x):
        span = 1
        if steps_over_rows and chosen and not gated:
            span = rows_ahead(numbers[Number.STEP], h, len(out_x) - row)
        for _ in range(every):
            now, left, parts, used = t + done * h, span * h, 0, 0
            while left > 0.0:
                length = cut(left, numbers[Number.STEP]) if chosen else left
                if waiting:
                    length = settling(crossing)
                elif again:
                    length = crossing[LENGTH]
                elif gated or span > 1:
                    save_state(work.kept, numbers, q, qd)
                    crossing[LENGTH], crossing[PHASE], crossing[TRIES] = length, WHOLE, 0.0
                if length > 0.0:
                    prepare(system, work, tableau, now, length, q, qd, again)
                    used = _attempt(system, work, tableau, now, length, q, qd, tolerance)
                    if judged and not again and (used > 0 or chosen):
                        found, allowed = math.inf, _allowed_error(system, work)
                        if used > 0:
                            found = error(system, work, tableau, length)
                        verdict = choose(numbers, counts, allowed, found, length)
                        if verdict == REFUSED and chosen:
                            if span > 1:
                                span = rows_ahead(numbers[Number.STEP], h, span)
                                left = span * h
                            continue
                        if verdict != 0:
                            return row, verdict if chosen else Status.STEP_TOO_LONG
                    if used > 0:
                        accept(system, work, tableau, length, q, qd)
                    elif not _in_parts(system, work, tableau, now, length, q, qd, tolerance):
                        return row, Status.NOT_CONVERGED
                again = gated and not judge(system, work, now, q, qd)
                if again:
                    restore_state(work.kept, numbers, q, qd)
                    continue
                turned = gated and (crossing[PHASE] != WHOLE or crossing[TRIES] > 0.0)
                if waiting:
                    waiting = False
                    counts[Count.STARTED] = 0 if crossing[TRIES] > 0.0 else counts[Count.STARTED]
                    continue
                now, left = now + length, (left - length if left - length > NOTHING * h else 0.0)
                parts = parts + 1 if turned or not chosen else 0
                if (chosen and turned) or (not chosen and (left > 0.0 or parts > 1)):
                    counts[Count.STARTED] = 0
                if parts > MOST_PARTS:
                    return row, Status.STEP_TOO_SMALL
                if chosen or left == 0.0:
                    counts[Count.STEPS] += 1
                    if used > 0 and counts[Count.STARTED] != 0:
                        counts[Count.BEST] = min(counts[Count.BEST], used)
                        counts[Count.EXTRA_ITERATIONS] += used - counts[Count.BEST]
                counts[Count.FRESH] = 0
                if span > 1 and not rows_inside(system, work, tableau, t, h, done, span, out_x[row:], out_y[row:]):
                    return row, Status.NOT_FINITE
                if judged:
                    widen(work.ranges, q)
                    follow(work, length if used > 0 else 0.0)
            done += span
        row += span
        if not record(system, work, t + done * h, q, qd, out_x[row - 1], out_y[row - 1]):
            return row - 1, Status.NOT_FINITE
    return len(out_x), 0


def driver(name: str, **functions: Any) -> LoopFunction:
    """Return the compiled loop of a method, whose functions take the place of the names of this module."""
    return specialised(name, [_attempt, _in_parts, _steps], {**globals(), **functions})


def specialised(name: str, functions: list[Callable[..., Any]], names: dict[str, Any]) -> LoopFunction:
    """Return the last of some functions as a compiled one, all of them with other meanings of the names they use."""
    for function in functions:
        names[function.__name__] = LoopFunction(FunctionType(function.__code__, names, function.__name__))
    # models take most of the time: more of LLVM's passes, or loops vectorised unmarked, make no run faster
    return LoopFunction(FunctionType(functions[-1].__code__, names, name), wide=False, speed=1)


@inner
def nothing_to_begin(system: Any, work: Any, tableau: Any, t: float, q: Array, qd: Array) -> None:
    """A call of the loop begins with its first step."""


@inner
def remember_length(work: Any, length: float) -> None:
    """The step that is made becomes the last one."""
    work.numbers[Number.LAST] = length


@inner
def no_rows_inside(
    system: Any, work: Any, tableau: Any, t: float, h: float, done: int, span: int, out_x: Array, out_y: Array
) -> bool:
    """Rows end the steps."""
    return True
