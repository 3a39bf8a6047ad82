"""What friction does in joints at rest: efforts within their bounds that leave as little motion as can be.

Accelerations `a` of joints at rest are affine in the friction efforts of these joints: `a = a0 - W lam`, from one call
of the model without these and one for each joint. Friction takes what it can: `lam W lam/2 - a0 lam` is least within
the bounds, theory (57). Of all such efforts those are taken whose `lam W_jj lam` is least: what joints of different
kinds bear, N and N m, is compared by what it moves. Joints inside of their bounds are held; of those at a bound some
are held by the others, and some move. A joint that its own friction does not move, as one at its dead centre, cannot be
held: where it has an acceleration it goes on to the other side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, inner
from parflex.simulation.integrators.loop import ALIKE, EVALUATIONS, STATIC

Array = np.ndarray
PULL, SCALE, LOW, HIGH, SHARE, CHANGE, CENTRE, STATE = range(8)  # rows of Work.split, of each joint that may stick
SLIDES, UNFELT, BOUND, FREE = 0.0, 1.0, 2.0, 3.0  # states: moves, feels no friction, at a bound, inside of them
FEELS = 1e-12  # of its acceleration: a joint that friction moves less does not feel it
CLEAR = 1e-3  # of it: what is moved less is pushed once more, as far, since rounding is of the acceleration
EVEN = 1e-5  # of the response: takes the least of many efforts, to eleven digits; what it leaves open goes down by
ROUNDS = 5  # this in each of so many rounds, from the efforts of the last
NOTHING = 1e-12  # of bounds, and of pulls: rounding
DEPENDS = 1e-7  # of a response: what is less is that of a joint that moves with others alone
LEAST_ALIKE, MOST_ALIKE = 1e-11, 3e-4  # of a response: what is between is neither nothing nor clear; see docs
MOVES = 1e-10  # of a bound: a joint that its bound does not hold moves


@inner
def find_responses(system: Any, work: Any, first_x: int, first_y: int) -> None:
    """Pulls on joints at rest, and what their efforts take from all, each in its own scale; in `aside_x` none acts."""
    count, split, holds, x, y = len(system.friction), work.split, work.holds, work.aside_x, work.aside_y
    call_model(system.address, x.ctypes.data, y.ctypes.data)
    work.counts[EVALUATIONS] += 1
    for j in range(count):
        split[PULL, j], split[SCALE, j], split[SHARE, j] = y[first_y + j], 1.0, 0.0
    for j in range(count):
        pull, push, felt = abs(split[PULL, j]), system.friction[j, STATIC], split[STATE, j] != SLIDES
        for _ in range(2):
            if not felt:
                break
            x[first_x + 2 * j] = -push
            call_model(system.address, x.ctypes.data, y.ctypes.data)
            work.counts[EVALUATIONS] += 1
            change = y[first_y + j] - split[PULL, j]
            felt = change > FEELS * pull
            if not change < CLEAR * pull:
                break
            push = push * pull / change if felt else push
        if split[STATE, j] != SLIDES:
            x[first_x + 2 * j], split[STATE, j] = 0.0, FREE if felt else UNFELT
        for i in range(count):
            holds[i, j] = (y[first_y + i] - split[PULL, i]) / push if felt else 0.0
        split[SCALE, j] = math.sqrt(holds[j, j]) if felt else 1.0
    for i in range(count):
        split[PULL, i] /= split[SCALE, i]
        for j in range(count):
            holds[i, j] /= split[SCALE, i] * split[SCALE, j]
    for i in range(count):
        for j in range(i):
            if split[STATE, i] == FREE and split[STATE, j] == FREE:
                holds[i, j] = holds[j, i] = 0.5 * (holds[i, j] + holds[j, i])


@inner
def left_over(work: Any, j: int) -> float:
    """The acceleration that all efforts leave a joint, in its own scale."""
    left = work.split[PULL, j]
    for i in range(work.split.shape[1]):
        left -= work.holds[j, i] * work.split[SHARE, i]
    return left


@inner
def _pulled(work: Any, j: int) -> float:
    """The same and what draws the effort of the joint to its centre."""
    return left_over(work, j) - EVEN * (work.split[SHARE, j] - work.split[CENTRE, j])


@inner
def _find_changes(work: Any) -> None:
    """What efforts inside of their bounds change by until nothing pulls, by elimination."""
    split, holds, solves, count = work.split, work.holds, work.solves, work.split.shape[1]
    for i in range(count):
        if split[STATE, i] == FREE:
            solves[i, count] = _pulled(work, i)
            for j in range(count):
                solves[i, j] = holds[i, j]
            solves[i, i] += EVEN
    for k in range(count):
        for i in range(k + 1, count):
            if split[STATE, k] == FREE and split[STATE, i] == FREE:
                factor = solves[i, k] / solves[k, k]
                for j in range(k, count + 1):
                    solves[i, j] -= factor * solves[k, j]
    for back in range(count):
        k = count - 1 - back
        if split[STATE, k] == FREE:
            total = solves[k, count]
            for j in range(k + 1, count):
                total -= solves[k, j] * split[CHANGE, j] if split[STATE, j] == FREE else 0.0
            split[CHANGE, k] = total / solves[k, k]


@inner
def _approach(work: Any) -> bool:
    """Let efforts change until one is at its bound, or let go one that is drawn inside; False: nothing is left."""
    split, count = work.split, work.split.shape[1]
    _find_changes(work)
    part, at = 1.0, -1
    for j in range(count):
        change = split[CHANGE, j]
        room = (split[HIGH, j] if change > 0.0 else split[LOW, j]) - split[SHARE, j]
        if split[STATE, j] == FREE and abs(change) * part > abs(room):
            part, at = abs(room / change), j
    for j in range(count):
        split[SHARE, j] += part * split[CHANGE, j] if split[STATE, j] == FREE else 0.0
    if at >= 0:
        split[SHARE, at], split[STATE, at] = (split[HIGH, at] if split[CHANGE, at] > 0.0 else split[LOW, at]), BOUND
        return True
    most = 0.0
    for j in range(count):
        if split[STATE, j] == BOUND:
            slack = NOTHING * (split[HIGH, j] - split[LOW, j] + abs(split[PULL, j]))
            inward = -side_of(split, j) * _pulled(work, j) - slack
            if inward > most:
                most, at = inward, j
    if at >= 0:
        split[STATE, at] = FREE
    return at >= 0


@inner
def share_loads(work: Any) -> None:
    """Efforts of all joints at rest within their bounds, joint after joint put to its bound or let go from it."""
    split, count = work.split, work.split.shape[1]
    for j in range(count):
        split[SHARE, j] = split[CENTRE, j] = 0.0
        split[STATE, j] = FREE if split[STATE, j] == BOUND else split[STATE, j]
    for _ in range(ROUNDS):
        for _ in range(10 * count + 10):
            if not _approach(work):
                break
        for j in range(count):
            split[CENTRE, j] = split[SHARE, j]


@inner
def side_of(split: Array, j: int) -> float:
    """On which of its bounds a joint is."""
    return 1.0 if split[SHARE, j] >= split[HIGH, j] else -1.0


@inner
def breaks_away(work: Any, j: int) -> bool:
    """Whether a joint at its bound moves."""
    split = work.split
    if split[STATE, j] != BOUND:
        return False
    width = max(split[HIGH, j], -split[LOW, j])
    return side_of(split, j) * left_over(work, j) > MOVES * width


@inner
def find_keeping(work: Any) -> None:
    """What `loop.hold` keeps of efforts: of joints that are held, the part that moves them if nothing holds.

    Columns of the response, the largest that is left first, become directions of unit length, and are taken from the
    others; the efforts of joints that slide or are at a bound stay as they are.
    """
    split, solves, keeping, count = work.split, work.solves, work.keeping, work.split.shape[1]
    for i in range(count):
        for j in range(count):
            solves[i, j] = work.holds[i, j] if split[STATE, i] == FREE and split[STATE, j] == FREE else 0.0
            keeping[i, j] = 1.0 if i == j and split[STATE, i] != FREE else 0.0
    for _ in range(count):
        best, most = -1, 0.0
        for j in range(count):
            size = 0.0
            for i in range(count):
                size += solves[i, j] * solves[i, j]
            if size > most:
                best, most = j, size
        work.counts[ALIKE] += 1 if LEAST_ALIKE**2 < most < MOST_ALIKE**2 else 0
        if most <= DEPENDS**2:
            break
        for i in range(count):
            solves[i, count] = solves[i, best] / math.sqrt(most)
        for i in range(count):
            for j in range(count):
                keeping[i, j] += solves[i, count] * solves[j, count] * split[SCALE, j] / split[SCALE, i]
        for j in range(count):
            along = 0.0
            for i in range(count):
                along += solves[i, count] * solves[i, j]
            for i in range(count):
                solves[i, j] -= along * solves[i, count]
