"""What a lane does after a step: its mode is claimed, another one begins, or the next shift is chosen.

A lane has a pose, the number of a mode it looks for, and intervals that hold the modes one to m + 1. Every
factorisation counts the modes below its shift and narrows them. The next shift is the Rayleigh quotient while that lies
in the interval, else the interval is halved. When all modes are claimed the proof is tried; a mode whose claim does not
hold takes another step.

`whole` and `numbers` are what a lane knows of itself, `known` (lanes x modes + 1 x fields) what it knows of modes, and
`kept` the vectors that it starts from.
"""

from __future__ import annotations

import math

import numpy as np

from parflex.maps.engine.mode_proof import (
    AT,
    CAME,
    FOUND,
    HIGH,
    INFINITE,
    LOW,
    NONE,
    PINNED,
    RADIUS,
    WARM,
    WEIGHT,
    exact,
    open_count,
    radius,
    top,
    weakest,
)
from parflex.simulation.integrators.jit import inner

Array = np.ndarray
STEPS = 80  # of one mode; halving alone needs fifty
NARROW = 1e-10  # relative width of an interval that is as good as its root
OFFSET = 1e-7  # relative distance of the next shift above a Rayleigh quotient: at a mode itself its count is rounding
NARROWEST = 1.5  # times the last mode: where modes of inner nodes are counted, at least
NEAREST = 1.05  # times a mode: how far above it their modes must be known to lie
LOOKS = 6  # at a pose
PATIENCE = 8  # steps after which halving takes turns with Rayleigh quotients
LOST = 2  # steps with one vector after which it is given up where it goes to a mode that is not missing
COMING = 1e-3  # relative residual of a vector that is about to be a mode
LITTLE = 0.25  # of an interval, by which a shift is inside of it, at least, where the guess is not
CLOSEST = 1e-3  # relative distance of modes that is assumed, at least
NEXT, LEAST, WIDER = 0.05, 1e-4, 1.5  # relative distance above the last mode that is taken to be free, and its change
POSE, MODE, STEP, SINCE, TASK, LAST, LOOKED_AT, AGAIN, NUMBER, READY, COUNTS = range(11)  # whole numbers of a lane
SEARCH, PROVE, IDLE, LOOK = range(4)  # its tasks
SHIFT, POLE, BEFORE, WIDE, FREE = range(5)  # its numbers: inner nodes have no mode below, shift of its b, two see above
OFF, LENGTH, INNER, TWIST = 1, 2, 3, 4  # rows of outputs


@inner
def between(lane: int, mode: int, near: float, known: Array) -> float:
    """A shift inside the interval of a mode: the guess if it lies there, else where the lowest of its modes may be."""
    low, high = known[lane, mode, LOW], known[lane, mode, HIGH]
    if low < near < high:
        return near
    if high == INFINITE:
        return (1.0 + NEXT) * low if near > 0.5 * low else max(4.0 * low, near)
    if low == 0.0:
        return 0.1 * high
    others = 1  # modes of which no more is known than that they are below the end of the interval
    for k in range(mode + 1, known.shape[1]):
        if known[lane, k, HIGH] <= high:
            others += 1
    middle = low + (high - low) / (1 + others)
    if not near >= 0.0:
        return middle
    least = LITTLE * (high - low)  # as far inside as the guess is outside, if that is not beyond the middle
    return max(middle, high - max(near - high, least)) if near >= high else min(middle, low + max(low - near, least))


@inner
def aim_at(lane: int, mode: int, whole: Array, numbers: Array, known: Array) -> None:
    """The first shift of a mode."""
    whole[lane, MODE], whole[lane, STEP], whole[lane, SINCE] = mode, 0, 0
    near = known[lane, mode, WARM] * (1 + OFFSET)  # at a mode itself no step exists
    numbers[lane, SHIFT] = between(lane, mode, near, known)


@inner
def take(lane: int, mode: int, kept: Array, x: Array) -> None:
    """Start from what is kept of a mode."""
    for k in range(kept.shape[2]):
        x[1 + k, lane] = kept[lane, mode, k]


@inner
def keep(lane: int, mode: int, kept: Array, x: Array) -> None:
    """Keep what came out of a step, which lies where the next one takes it."""
    for k in range(kept.shape[2]):
        kept[lane, mode, k] = x[1 + k, lane]


@inner
def keep_and_take(lane: int, mode: int, following: int, kept: Array, x: Array) -> None:
    """Both at once."""
    for k in range(kept.shape[2]):
        own = x[1 + k, lane]
        x[1 + k, lane] = kept[lane, following, k]
        kept[lane, mode, k] = own


@inner
def missing_mode(lane: int, mode: int, known: Array) -> int:
    """The next mode that is not found, from one on and then from the first; their number where none is missing."""
    modes = known.shape[1] - 1
    for k in range(modes):
        other = mode + k if mode + k < modes else mode + k - modes
        if known[lane, other, FOUND] != known[lane, other, FOUND]:
            return other
    return modes


@inner
def mixed(lane: int, mode: int, known: Array, kept: Array, x: Array) -> None:
    """Start again from something of every missing mode: what was kept may have no part in the one that is looked for.

    The last vector that is kept is none of a mode.
    """
    modes = kept.shape[1] - 1
    for k in range(kept.shape[2]):
        x[1 + k, lane] = 0.3 * kept[lane, modes, k]
    for other in range(modes):
        if known[lane, other, FOUND] == known[lane, other, FOUND]:
            continue
        weight = 1.0 + 0.37 * ((other * 7 + mode * 3) % 5)
        for k in range(kept.shape[2]):
            x[1 + k, lane] += weight * kept[lane, other, k]


@inner
def look(lane: int, shift: float, whole: Array, numbers: Array) -> None:
    """Go to a shift to see whether inner nodes have a mode below it."""
    whole[lane, TASK] = LOOK
    whole[lane, LOOKED_AT] += 1
    numbers[lane, SHIFT] = shift


@inner
def narrow(lane: int, shift: float, count: int, known: Array) -> None:
    """Take in a count; without branches, since what a count says is not foreseen."""
    for k in range(known.shape[1]):
        known[lane, k, HIGH] = min(known[lane, k, HIGH], shift if k < count else INFINITE)
        known[lane, k, LOW] = max(known[lane, k, LOW], 0.0 if k < count else shift)


@inner
def accept(lane: int, mode: int, rho: float, whole: Array, known: Array, y: Array, twists: Array) -> None:
    """A mode is found: keep it and its twist."""
    pose = whole[lane, POSE]
    known[lane, mode, FOUND] = known[lane, mode, WARM] = rho
    for k in range(twists.shape[2]):
        twists[pose, mode, k] = y[TWIST + k, lane]


@inner
def prove(lane: int, turn: float, whole: Array, numbers: Array, known: Array, kept: Array, x: Array) -> int:
    """Go to a shift whose count is missing, or back to a mode: 1 when all is proved, -1 when it cannot be."""
    modes = known.shape[1] - 1
    if whole[lane, STEP] > 2 * modes or whole[lane, AGAIN] > 3 * modes:
        return -1
    missing = top(lane, turn, numbers[lane, POLE], known)
    if known[lane, modes, HIGH] > missing:
        if known[lane, modes, LOW] < missing:
            numbers[lane, SHIFT] = missing
            return 0
        numbers[lane, FREE] = min(WIDER * numbers[lane, FREE], NEXT)
    else:  # the next mode is nearer
        numbers[lane, FREE] = max(numbers[lane, FREE] / (WIDER * WIDER * WIDER), LEAST)
    mode = weakest(lane, turn, numbers[lane, POLE], known)
    if mode >= 0:  # it takes another step
        near = known[lane, mode, FOUND] * (1 + OFFSET)
        known[lane, mode, FOUND], known[lane, mode, PINNED] = NONE, 0.0
        whole[lane, TASK], whole[lane, MODE], whole[lane, STEP], whole[lane, SINCE] = SEARCH, mode, 1, 1
        whole[lane, AGAIN] += 1
        numbers[lane, BEFORE] = known[lane, mode, AT]
        numbers[lane, SHIFT] = between(lane, mode, near, known)
        take(lane, mode, kept, x)
        return 0
    missing = open_count(lane, known)
    if missing == 0.0:
        return 1
    if missing != missing:
        return -1
    numbers[lane, SHIFT] = missing
    return 0


@inner
def likely(lane: int, near: int, rho: float, weight: float, turn: float, numbers: Array, known: Array) -> bool:
    """Whether a mode is exact if the next ones are about where they are expected."""
    if not (known[lane, near, LOW] <= rho * (1 + OFFSET) and rho <= known[lane, near, HIGH] * (1 + OFFSET)):
        return False
    shift = numbers[lane, SHIFT]
    lower, upper = 0.0, rho * (1 + 2.0 * numbers[lane, FREE])
    if near > 0:
        lower = known[lane, near - 1, FOUND]
        if lower != lower:
            lower = min(known[lane, near - 1, WARM], known[lane, near - 1, HIGH])
    if near + 2 < known.shape[1]:
        upper = known[lane, near + 1, FOUND]
        if upper != upper:
            upper = max(known[lane, near + 1, WARM], known[lane, near + 1, LOW])
    gap = max(min(rho - lower, upper - rho), CLOSEST * rho)
    if abs(rho - shift) > max(gap, 1e-5 * rho):
        return False
    return exact(rho, shift, weight, rho - gap, rho + gap, numbers[lane, POLE], numbers[lane, BEFORE], turn)


@inner
def looked(lane: int, whole: Array, numbers: Array, known: Array, kept: Array, x: Array) -> None:
    """After a look: nearer if inner nodes have a mode below, or back to the search."""
    mode, shift = whole[lane, MODE], numbers[lane, SHIFT]
    numbers[lane, BEFORE] = shift
    whole[lane, TASK] = SEARCH
    aim_at(lane, mode, whole, numbers, known)
    take(lane, mode, kept, x)
    if numbers[lane, POLE] < shift and whole[lane, LOOKED_AT] < LOOKS and numbers[lane, WIDE] > NARROWEST:
        nearer = max(0.25 * numbers[lane, WIDE], NARROWEST)
        look(lane, shift * nearer / numbers[lane, WIDE], whole, numbers)
        numbers[lane, WIDE] = nearer


@inner
def advance(
    lane: int,
    count: int,
    whole: Array,
    numbers: Array,
    known: Array,
    kept: Array,
    x: Array,
    y: Array,
    twists: Array,
    turn: float,
) -> int:
    """Take in a step of a lane: 1 when its pose is proved, -1 when it is given up, 0 to go on."""
    modes, mode, shift = known.shape[1] - 1, whole[lane, MODE], numbers[lane, SHIFT]
    off, weight = y[OFF, lane], y[LENGTH, lane]
    if not (weight > 0.0 and abs(off) < INFINITE):  # a pivot was zero: nothing was counted
        whole[lane, STEP] += 1
        mixed(lane, mode, known, kept, x)
        whole[lane, SINCE] = 0
        numbers[lane, SHIFT] = shift * (1 + OFFSET)
        return 0 if whole[lane, STEP] < STEPS else -1
    if whole[lane, TASK] != LOOK:  # a count far above would have intervals halved far away
        narrow(lane, shift, count, known)
    if y[INNER, lane] == 0.0 and shift > numbers[lane, POLE]:
        numbers[lane, POLE] = shift
    if whole[lane, TASK] == LOOK:
        looked(lane, whole, numbers, known, kept, x)
        return 0
    whole[lane, STEP] += 1
    if whole[lane, TASK] == PROVE:
        return prove(lane, turn, whole, numbers, known, kept, x)
    whole[lane, SINCE] += 1
    rho = shift + off
    guess = rho * (1 + OFFSET)
    near = count if off >= 0.0 else count - 1
    open_mode = 0 <= near < modes and known[lane, near, FOUND] != known[lane, near, FOUND]
    coming = open_mode and whole[lane, SINCE] > 1 and weight - off * off < COMING * COMING * rho * rho
    if coming and likely(lane, near, rho, weight, turn, numbers, known):
        if near != mode:  # they changed places: what was kept of that one is the start for this one
            guess = known[lane, mode, WARM]
            whole[lane, SINCE] = 0
            keep_and_take(lane, near, near, kept, x)
        known[lane, near, AT], known[lane, near, WEIGHT] = shift, weight
        known[lane, near, CAME] = numbers[lane, BEFORE]
        known[lane, near, RADIUS] = radius(rho, shift, weight, numbers[lane, POLE], numbers[lane, BEFORE])
        accept(lane, near, rho, whole, known, y, twists)
        open_mode, coming = False, False
    numbers[lane, BEFORE] = shift
    low, high = known[lane, mode, LOW], known[lane, mode, HIGH]
    if high - low <= NARROW * high and high < INFINITE and known[lane, mode, FOUND] != known[lane, mode, FOUND]:
        accept(lane, mode, 0.5 * (low + high), whole, known, y, twists)
        known[lane, mode, AT], known[lane, mode, RADIUS] = shift, 0.5 * (high - low)
        known[lane, mode, PINNED] = 1.0
    if known[lane, mode, FOUND] == known[lane, mode, FOUND]:
        following = missing_mode(lane, mode, known)
        if following < modes:
            keep_and_take(lane, mode, following, kept, x)
            aim_at(lane, following, whole, numbers, known)
            return 0
        keep(lane, mode, kept, x)
        whole[lane, TASK], whole[lane, STEP] = PROVE, 0
        return prove(lane, turn, whole, numbers, known, kept, x)
    if whole[lane, STEP] >= STEPS or not math.isfinite(rho):
        return -1
    if numbers[lane, POLE] < NEAREST * rho and whole[lane, LOOKED_AT] < LOOKS:
        look(lane, numbers[lane, WIDE] * rho, whole, numbers)
        return 0
    aim = mode
    if whole[lane, SINCE] > 0:
        if open_mode:
            aim = near  # perhaps another one that is missing: it is followed
        elif whole[lane, SINCE] >= LOST:
            whole[lane, SINCE] = -1
    if whole[lane, SINCE] < 0 or (whole[lane, STEP] % PATIENCE == 0 and not coming):
        mixed(lane, mode, known, kept, x)
        whole[lane, SINCE] = 0
        aim = mode
        guess = known[lane, mode, WARM]
    coming = coming and whole[lane, STEP] <= PATIENCE + LOST  # if a residual says too little, counts must
    if coming and guess >= known[lane, aim, HIGH] and rho * (1 - 2 * OFFSET) > known[lane, aim, LOW]:
        guess = rho * (1 - OFFSET)  # the count at its other side is known
    if whole[lane, STEP] > PATIENCE and whole[lane, STEP] % 2 == 0 and not coming:
        aim, guess = mode, -1.0
    numbers[lane, SHIFT] = between(lane, aim, guess, known)
    return 0
