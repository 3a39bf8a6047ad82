"""The loop of all integrators: steps, their errors, events and rows of output.

A method is a set of compiled functions: `begin`, `prepare`, `solve`, `renew`, `error`, `accept`, `follow` and
`rows_inside`. `driver` compiles the loop with those of a method in place of these names.
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
    approach,
    find_gaps,
    first_gate,
    missed,
    possible_crossing,
    restore_state,
    save_state,
    settle,
    settle_gates,
)

Array = np.ndarray
solve: Any = None  # (system, work, tableau, t, h, q, qd, tolerance): number of iterations; 0 if they do not converge
error: Any = None  # (system, work, tableau, h): error of the positions in a step (m), and its power of h in the numbers
accept: Any = None  # (system, work, tableau, h, q, qd): the end of the step becomes the state
steps_over_rows = False  # whether steps go over several rows, which `rows_inside` records


@inner
def begin(system: Any, work: Any, tableau: Any, t: float, q: Array, qd: Array) -> None:
    """Begin a call of the loop, by default with its first step."""


@inner
def prepare(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, again: bool) -> None:
    """Find matrix and predictor of a step, or part, of length h; by default a step needs nothing but the state."""


@inner
def renew(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """Find a new matrix at this state, where iterations do not converge; by default there is none."""


@inner
def follow(work: Any, length: float) -> None:
    """Let the step that is made become the last one; by default its length is remembered."""
    work.numbers[Number.LAST] = length


@inner
def rows_inside(
    system: Any, work: Any, tableau: Any, t: float, h: float, done: int, span: int, out_x: Array, out_y: Array
) -> bool:
    """Record the rows inside of a step over `span` of them; by default rows end the steps."""
    return True


MAX_SUBDIVISIONS = 7  # each time by four: steps down to 1/4096
MOST_GROWTH, LEAST_SHARE, UNSOLVED_STEP_FACTOR = 2.0, 0.2, 0.25
FLAT, MANY = 0.3, 10  # an error that so many shorter steps leave at so much of it is rounding
SAFETY = 0.9
WORTH = 1.2  # a step that may be longer by less stays: a matrix serves one length
NEARLY = 0.8  # of the aim: the next step is shortened before it must be made twice
MAX_REJECTIONS = 25  # of one step
REFUSED = -1  # verdict: a shorter step is made
FAILED = -1.0  # instead of a length: a step that is repeated with another length does not converge
MOST_HALVINGS, MOST_TRIES = 40, 60  # of a step that comes back to a root, and of a search for one
MOST_PARTS = 300  # of one step, between gates that turn
ROUNDING = 4e-16  # of the time: no root is known better
NOTHING = 1e-14  # of a step: what may be left of it
SMALLEST = 1e-9  # of the time between rows: the smallest step that errors choose


@inlined
def cut(left: float, requested: float) -> float:
    """Return a part of the remaining time of at most the requested length, a whole number of which fills it."""
    return left / max(1.0, math.ceil(left / requested * (1 - 1e-9)))


@inlined
def rows_ahead(requested: float, h: float, most: int) -> int:
    """Return the number of rows that a step covers."""
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
    """Solve a step, with a new matrix if the old one fails; return the number of iterations, 0 without convergence."""
    used = solve(system, work, tableau, t, h, q, qd, tolerance)
    if used == 0 and work.counts[Count.FRESH] == 0:
        renew(system, work, tableau, t, h, q, qd)
        used = solve(system, work, tableau, t, h, q, qd, tolerance)
    return used


def _in_parts(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float) -> bool:
    """Divide a step that does not converge into ever shorter ones, each with its own matrix."""
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


def _trial(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array, tolerance: float) -> bool:
    """Make the last step from its start again, with another length, and find its gaps; False if it fails."""
    restore_state(work.kept, work.numbers, q, qd)
    if h > 0.0:
        prepare(system, work, tableau, t, h, q, qd, True)
        if _attempt(system, work, tableau, t, h, q, qd, tolerance) > 0:
            accept(system, work, tableau, h, q, qd)
        elif not _in_parts(system, work, tableau, t, h, q, qd, tolerance):
            return False
    find_gaps(system, work, t + h, q, qd)
    return True


def _to_root(
    system: Any, work: Any, tableau: Any, t: float, high: float, which: int, q: Array, qd: Array, tolerance: float
) -> float:
    """End a step of length `high` just behind the root of one gap; return its length, or FAILED.

    Regula falsi with occasional bisection: an end that is retained twice counts half.
    """
    low, side = 0.0, 0.0
    below, above = missed(work.gates, work.gaps_at_start, which), missed(work.gates, work.gaps, which)
    for tries in range(MOST_TRIES):
        length = low + (high - low) * (-below / (above - below)) if above > below else 0.5 * (low + high)
        if tries % 8 == 7 or not low < length < high:
            length = 0.5 * (low + high)
        if not _trial(system, work, tableau, t, length, q, qd, tolerance):
            return FAILED
        beyond = missed(work.gates, work.gaps, which)
        narrow = ROUNDING * (abs(t) + high)
        if beyond > 0.0:
            below *= 0.5 if side > 0.0 else 1.0
            high, above, side = length, beyond, 1.0
            if beyond <= 1e-3 * system.slack[which] or high - low <= narrow:
                return high
        else:
            above *= 0.5 if side < 0.0 else 1.0
            low, below, side = length, beyond, -1.0
            if high - low <= narrow:
                break
    return high if _trial(system, work, tableau, t, high, q, qd, tolerance) else FAILED


def _to_event(
    system: Any, work: Any, tableau: Any, t: float, whole: float, q: Array, qd: Array, tolerance: float
) -> tuple[float, bool]:
    """End a step that was made where the first gate has to turn, and turn it; gives its length, and whether one did."""
    gates, start, gaps, slack, tries = work.gates, work.gaps_at_start, work.gaps, system.slack, 0
    find_gaps(system, work, t + whole, q, qd)
    length, which, least, at_root = whole, first_gate(gates, start, gaps, slack, 0.0), 0.0, False
    if which < 0:
        length = possible_crossing(gates, start, gaps, whole)
        if length < whole:
            if not _trial(system, work, tableau, t, length, q, qd, tolerance):
                return FAILED, False
            which = first_gate(gates, start, gaps, slack, 0.0)
    while which >= 0 and not at_root:
        if missed(gates, start, which) < 0.0:
            length = _to_root(system, work, tableau, t, length, which, q, qd, tolerance)
            if length < 0.0:
                return FAILED, False
            least = 2 * missed(gates, gaps, which)
            other = first_gate(gates, start, gaps, slack, least)
            at_root = other < 0
            which = which if at_root else other
        else:  # at the root already: it goes on through it, or left it just before and comes back
            at_root = not approach(gates, start, which) < 0.0 or tries >= MOST_HALVINGS
            length = 0.0 if at_root else 0.5 * length
            tries += 1
            if not _trial(system, work, tableau, t, length, q, qd, tolerance):
                return FAILED, False
            which = which if at_root else first_gate(gates, start, gaps, slack, 0.0)
    turned = settle_gates(system, work, t + length, q, qd, which)
    return length, which >= 0 or length < whole or turned > 0


def _steps(
    system: Any, work: Any, tableau: Any, t: float, h: float, every: int, q: Array, qd: Array, tolerance: float,
    out_x: Array, out_y: Array,
) -> tuple[int, int]:  # fmt: skip
    """Integrate until the rows of output are full; return the number of full rows and a status.

    Under error control a step is part of the time between two rows, `h`, or covers several rows. With gates, it has
    parts that end where gates turn.
    """
    counts, numbers, gated, row, done = work.counts, work.numbers, system.gaps != 0, 0, 0
    judged = work.judging != 0 and numbers[Number.AIM] > 0.0
    chosen = judged and numbers[Number.STEP] > 0.0
    begin(system, work, tableau, t, q, qd)
    if gated:
        settle(system, work, t, q, qd)
    while row < len(out_x):
        span = 1
        if steps_over_rows and chosen and not gated:
            span = rows_ahead(numbers[Number.STEP], h, len(out_x) - row)
        for _ in range(every):
            now, left, parts = t + done * h, span * h, 0
            while left > 0.0:
                length, turned = cut(left, numbers[Number.STEP]) if chosen else left, False
                if gated or span > 1:
                    save_state(work.kept, numbers, q, qd)
                prepare(system, work, tableau, now, length, q, qd, False)
                counts[Count.OPEN] = 0 if chosen else counts[Count.OPEN]
                used = _attempt(system, work, tableau, now, length, q, qd, tolerance)
                if chosen and counts[Count.OPEN] != 0:  # it leaves the assembly, which a shorter step may not
                    used = 0
                if judged and (used > 0 or chosen):
                    found, allowed = math.inf, _allowed_error(system, work)
                    if used > 0:
                        found = error(system, work, tableau, length)
                    verdict = choose(numbers, counts, allowed, found, length)
                    if verdict == REFUSED and chosen and numbers[Number.STEP] > SMALLEST * h:
                        if span > 1:
                            span = rows_ahead(numbers[Number.STEP], h, span)
                            left = span * h
                        continue
                    if verdict != 0:
                        verdict = Status.STEP_TOO_SMALL if verdict == REFUSED else verdict
                        return row, verdict if chosen else Status.STEP_TOO_LONG
                if used > 0:
                    accept(system, work, tableau, length, q, qd)
                elif not _in_parts(system, work, tableau, now, length, q, qd, tolerance):
                    return row, Status.NOT_CONVERGED
                if gated:
                    length, turned = _to_event(system, work, tableau, now, length, q, qd, tolerance)
                    if length < 0.0:
                        return row, Status.NOT_CONVERGED
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
    return specialised(name, [_attempt, _in_parts, _trial, _to_root, _to_event, _steps], {**globals(), **functions})


def specialised(name: str, functions: list[Callable[..., Any]], names: dict[str, Any]) -> LoopFunction:
    """Return the last of some functions as a compiled one, all of them with other meanings of the names they use."""
    for function in functions:
        names[function.__name__] = LoopFunction(FunctionType(function.__code__, names, function.__name__))
    # models take most of the time: more of LLVM's passes, or loops vectorised unmarked, make no run faster
    return LoopFunction(FunctionType(functions[-1].__code__, names, name), wide=False, speed=1)
