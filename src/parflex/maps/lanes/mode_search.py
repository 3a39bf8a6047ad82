"""What a lane does after a step: its mode is claimed, another one begins, or the next shift is chosen.

A lane has a pose, the number of a mode it looks for, and intervals that hold the modes one to m + 1. Every
factorisation counts the modes below its shift and narrows them. The next shift is the Rayleigh quotient while that lies
in the interval, else the interval is halved. When all modes are claimed the proof is tried; a mode whose claim does not
hold takes another step. What all lanes do alike is done before (`lane_steps`).
"""

from __future__ import annotations

import math

from parflex.codegen.loop_compiler import unrolled_range
from parflex.codegen.loop_functions import inner
from parflex.maps.lanes.lane_states import (
    AGAIN,
    AT,
    BEFORE,
    CAME,
    CLAIM,
    FOUND,
    FREE,
    HIGH,
    INFINITE,
    LEFT,
    LENGTH,
    LOOK,
    LOOKED_AT,
    LOW,
    MODE,
    NEAR,
    NONE,
    OFF,
    OPEN,
    PINNED,
    POLE,
    POSE,
    PROVE,
    RADIUS,
    SEARCH,
    SHIFT,
    SINCE,
    STEP,
    TASK,
    TWIST,
    WARM,
    WEIGHT,
    WIDE,
    LaneStates,
    at,
    of,
)
from parflex.maps.lanes.lane_steps import LOOKS, LOST, NARROW, NEAREST, OFFSET, PATIENCE, is_coming
from parflex.maps.lanes.mode_proof import open_count, radius, top, weakest

STEPS = 80  # of one mode; halving alone needs fifty
NARROWEST = 1.5  # times the last mode: where modes of inner nodes are counted, at least
LITTLE = 0.25  # of an interval, by which a shift is inside of it, at least, where the guess is not
NEXT, LEAST, WIDER = 0.05, 1e-4, 1.5  # relative distance above the last mode that is taken to be free, and its change


@inner
def between(lane: int, mode: int, near: float, states: LaneStates) -> float:
    """A shift inside the interval of a mode: the guess if it lies there, else where the lowest of its modes may be."""
    known = states.known
    low, high = known[of(mode, LOW, lane)], known[of(mode, HIGH, lane)]
    if low < near < high:
        return near
    if high == INFINITE:
        return (1.0 + NEXT) * low if near > 0.5 * low else max(4.0 * low, near)
    if low == 0.0:
        return 0.1 * high
    others = 1  # modes of which no more is known than that they are below the end of the interval
    for k in range(mode + 1, states.modes + 1):
        if known[of(k, HIGH, lane)] <= high:
            others += 1
    middle = low + (high - low) / (1 + others)
    if not near >= 0.0:
        return middle
    least = LITTLE * (high - low)  # as far inside as the guess is outside, if that is not beyond the middle
    return max(middle, high - max(near - high, least)) if near >= high else min(middle, low + max(low - near, least))


@inner
def aim_at(lane: int, mode: int, states: LaneStates) -> None:
    """The first shift of a mode."""
    whole = states.whole
    whole[at(MODE, lane)], whole[at(STEP, lane)], whole[at(SINCE, lane)] = mode, 0, 0
    near = states.known[of(mode, WARM, lane)] * (1 + OFFSET)  # at a mode itself no step exists
    states.numbers[at(SHIFT, lane)] = between(lane, mode, near, states)


@inner
def take(lane: int, mode: int, states: LaneStates) -> None:
    """Start from what is kept of a mode."""
    x, kept = states.x, states.kept
    for k in unrolled_range(states.size):
        x[at(1 + k, lane)] = kept[lane, mode, k]


@inner
def keep(lane: int, mode: int, states: LaneStates) -> None:
    """Keep what came out of a step, which lies where the next one takes it."""
    x, kept = states.x, states.kept
    for k in unrolled_range(states.size):
        kept[lane, mode, k] = x[at(1 + k, lane)]


@inner
def keep_and_take(lane: int, mode: int, following: int, states: LaneStates) -> None:
    """Both at once."""
    x, kept = states.x, states.kept
    for k in unrolled_range(states.size):
        own = x[at(1 + k, lane)]
        x[at(1 + k, lane)] = kept[lane, following, k]
        kept[lane, mode, k] = own


@inner
def missing_mode(lane: int, mode: int, states: LaneStates) -> int:
    """The next mode that is not found, from one on and then from the first; their number where none is missing."""
    known, modes = states.known, states.modes
    for k in range(modes):
        other = mode + k if mode + k < modes else mode + k - modes
        if known[of(other, FOUND, lane)] != known[of(other, FOUND, lane)]:
            return other
    return modes


@inner
def mixed(lane: int, mode: int, states: LaneStates) -> None:
    """Start again from something of every missing mode: what was kept may have no part in the one that is looked for.

    The last vector that is kept is none of a mode.
    """
    x, kept, known, modes = states.x, states.kept, states.known, states.modes
    for k in range(states.size):
        x[at(1 + k, lane)] = 0.3 * kept[lane, modes, k]
    for other in range(modes):
        if known[of(other, FOUND, lane)] == known[of(other, FOUND, lane)]:
            continue
        weight = 1.0 + 0.37 * ((other * 7 + mode * 3) % 5)
        for k in range(states.size):
            x[at(1 + k, lane)] += weight * kept[lane, other, k]


@inner
def look(lane: int, shift: float, states: LaneStates) -> None:
    """Go to a shift to see whether inner nodes have a mode below it."""
    states.whole[at(TASK, lane)] = LOOK
    states.whole[at(LOOKED_AT, lane)] += 1
    states.numbers[at(SHIFT, lane)] = shift


@inner
def accept(lane: int, mode: int, rho: float, states: LaneStates) -> None:
    """A mode is found: keep it and its twist."""
    known, y, twists, pose = states.known, states.y, states.twists, states.whole[at(POSE, lane)]
    known[of(mode, FOUND, lane)] = known[of(mode, WARM, lane)] = rho
    for k in range(twists.shape[2]):
        twists[pose, mode, k] = y[at(TWIST + k, lane)]


@inner
def prove(lane: int, states: LaneStates) -> int:
    """Go to a shift whose count is missing, or back to a mode: 1 when all is proved, -1 when it cannot be."""
    whole, numbers, known, modes = states.whole, states.numbers, states.known, states.modes
    if whole[at(STEP, lane)] > 2 * modes or whole[at(AGAIN, lane)] > 3 * modes:
        return -1
    missing = top(lane, states)
    if known[of(modes, HIGH, lane)] > missing:
        if known[of(modes, LOW, lane)] < missing:
            numbers[at(SHIFT, lane)] = missing
            return 0
        numbers[at(FREE, lane)] = min(WIDER * numbers[at(FREE, lane)], NEXT)
    else:  # the next mode is nearer
        numbers[at(FREE, lane)] = max(numbers[at(FREE, lane)] / (WIDER * WIDER * WIDER), LEAST)
    mode = weakest(lane, states)
    if mode >= 0:  # it takes another step
        near = known[of(mode, FOUND, lane)] * (1 + OFFSET)
        known[of(mode, FOUND, lane)], known[of(mode, PINNED, lane)] = NONE, 0.0
        whole[at(TASK, lane)], whole[at(MODE, lane)], whole[at(STEP, lane)], whole[at(SINCE, lane)] = SEARCH, mode, 1, 1
        whole[at(AGAIN, lane)] += 1
        numbers[at(BEFORE, lane)] = known[of(mode, AT, lane)]
        numbers[at(SHIFT, lane)] = between(lane, mode, near, states)
        take(lane, mode, states)
        return 0
    missing = open_count(lane, states)
    if missing == 0.0:
        return 1
    if missing != missing:
        return -1
    numbers[at(SHIFT, lane)] = missing
    return 0


@inner
def looked(lane: int, states: LaneStates) -> None:
    """After a look: nearer if inner nodes have a mode below, or back to the search."""
    whole, numbers = states.whole, states.numbers
    mode, shift = whole[at(MODE, lane)], numbers[at(SHIFT, lane)]
    numbers[at(BEFORE, lane)] = shift
    whole[at(TASK, lane)] = SEARCH
    aim_at(lane, mode, states)
    take(lane, mode, states)
    if numbers[at(POLE, lane)] < shift and whole[at(LOOKED_AT, lane)] < LOOKS and numbers[at(WIDE, lane)] > NARROWEST:
        nearer = max(0.25 * numbers[at(WIDE, lane)], NARROWEST)
        look(lane, shift * nearer / numbers[at(WIDE, lane)], states)
        numbers[at(WIDE, lane)] = nearer


@inner
def advance(lane: int, states: LaneStates) -> int:
    """What is left to do after a step of a lane: 1 when its pose is proved, -1 when it is given up, 0 to go on."""
    whole, numbers, known, y = states.whole, states.numbers, states.known, states.y
    modes, mode, shift = states.modes, whole[at(MODE, lane)], numbers[at(SHIFT, lane)]
    off, weight, near = y[at(OFF, lane)], y[at(LENGTH, lane)], whole[at(NEAR, lane)]
    if not (weight > 0.0 and abs(off) < INFINITE):  # a pivot was zero: nothing was counted
        whole[at(STEP, lane)] += 1
        mixed(lane, mode, states)
        whole[at(SINCE, lane)] = 0
        numbers[at(SHIFT, lane)] = shift * (1 + OFFSET)
        return 0 if whole[at(STEP, lane)] < STEPS else -1
    if whole[at(TASK, lane)] == LOOK:
        looked(lane, states)
        return 0
    whole[at(STEP, lane)] += 1
    if whole[at(TASK, lane)] == PROVE:
        return prove(lane, states)
    whole[at(SINCE, lane)] += 1
    rho = shift + off
    guess = rho * (1 + OFFSET)
    open_mode = whole[at(OPEN, lane)] > 0
    coming = open_mode and is_coming(lane, rho, whole[at(SINCE, lane)], states)
    if whole[at(LEFT, lane)] == CLAIM:
        if near != mode:  # they changed places: what was kept of that one is the start for this one
            guess = known[of(mode, WARM, lane)]
            whole[at(SINCE, lane)] = 0
            keep_and_take(lane, near, near, states)
        known[of(near, AT, lane)], known[of(near, WEIGHT, lane)] = shift, weight
        known[of(near, CAME, lane)] = numbers[at(BEFORE, lane)]
        known[of(near, RADIUS, lane)] = radius(rho, shift, weight, numbers[at(POLE, lane)], numbers[at(BEFORE, lane)])
        accept(lane, near, rho, states)
        open_mode, coming = False, False
    numbers[at(BEFORE, lane)] = shift
    low, high = known[of(mode, LOW, lane)], known[of(mode, HIGH, lane)]
    missing = known[of(mode, FOUND, lane)] != known[of(mode, FOUND, lane)]
    if high - low <= NARROW * high and high < INFINITE and missing:
        accept(lane, mode, 0.5 * (low + high), states)
        known[of(mode, AT, lane)], known[of(mode, RADIUS, lane)] = shift, 0.5 * (high - low)
        known[of(mode, PINNED, lane)] = 1.0
        missing = False
    if not missing:
        following = missing_mode(lane, mode, states)
        if following < modes:
            keep_and_take(lane, mode, following, states)
            aim_at(lane, following, states)
            return 0
        keep(lane, mode, states)
        whole[at(TASK, lane)], whole[at(STEP, lane)] = PROVE, 0
        return prove(lane, states)
    if whole[at(STEP, lane)] >= STEPS or not math.isfinite(rho):
        return -1
    if numbers[at(POLE, lane)] < NEAREST * rho and whole[at(LOOKED_AT, lane)] < LOOKS:
        look(lane, numbers[at(WIDE, lane)] * rho, states)
        return 0
    aim = mode
    if whole[at(SINCE, lane)] > 0:
        if open_mode:
            aim = near  # perhaps another one that is missing: it is followed
        elif whole[at(SINCE, lane)] >= LOST:
            whole[at(SINCE, lane)] = -1
    if whole[at(SINCE, lane)] < 0 or (whole[at(STEP, lane)] % PATIENCE == 0 and not coming):
        mixed(lane, mode, states)
        whole[at(SINCE, lane)] = 0
        aim = mode
        guess = known[of(mode, WARM, lane)]
    coming = coming and whole[at(STEP, lane)] <= PATIENCE + LOST  # if a residual says too little, counts must
    if coming and guess >= known[of(aim, HIGH, lane)] and rho * (1 - 2 * OFFSET) > known[of(aim, LOW, lane)]:
        guess = rho * (1 - OFFSET)  # the count at its other side is known
    if whole[at(STEP, lane)] > PATIENCE and whole[at(STEP, lane)] % 2 == 0 and not coming:
        aim, guess = mode, -1.0
    numbers[at(SHIFT, lane)] = between(lane, aim, guess, states)
    return 0
