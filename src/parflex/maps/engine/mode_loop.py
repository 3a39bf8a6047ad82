"""Machine code around the compiled step: lanes that each go their own way through modes and poses.

A lane has a pose, the number of a mode it looks for, and intervals that hold the modes one to m + 1. Every
factorisation counts the modes below its shift and narrows them. The next shift is the Rayleigh quotient while that lies
in the interval, else the interval is halved. When all modes are claimed the proof is tried; a mode whose claim does not
hold takes another step.

Inputs x (s, b, entries of the pose) and outputs y (signs, off, weight, inner, twist, b) lie in one block, so that the b
that comes out of a step stands where that of the next one goes in; s is written anew before each step.
"""

from __future__ import annotations

import math

import numpy as np

from parflex.maps.engine.lane_calls import FLUSHED, USUAL, call_lanes, control_word
from parflex.maps.engine.mode_proof import (
    AT,
    CAME,
    INFINITE,
    NONE,
    RADIUS,
    WEIGHT,
    exact,
    open_count,
    radius,
    top,
    weakest,
)
from parflex.simulation.integrators.jit import compiled, inner

Array = np.ndarray
STEPS = 80  # of one mode; halving alone needs fifty
PINNED = 1e-10  # relative width of an interval that is as good as its root
OFFSET = 1e-7  # relative distance of the next shift above a Rayleigh quotient: at a mode itself its count is rounding
CLOSE = 1e-5  # relative distance of modes whose shapes are not told apart
TURNED = 4e-8  # angle by which a shape may be off: what of it the platform moves may be a tenth
NEARLY = 0.9  # of the largest component, as where one pose is asked
WIDEST, NARROWEST = 64.0, 1.5  # times the last mode: where modes of inner nodes are counted, which must lie above
NEAREST = 1.05  # times a mode: how far above it their modes must be known to lie
LOOKS = 6  # at a pose
PATIENCE = 8  # steps after which halving takes turns with Rayleigh quotients
LOST = 2  # steps with one vector after which it is given up where it goes to a mode that is not missing
COMING = 1e-3  # relative residual of a vector that is about to be a mode
LIKELY = 0.5  # of the distance to where the next mode is expected, while it is not known
CLOSEST = 1e-3  # relative distance of modes that is assumed, at least
NEXT, LEAST, WIDER = 0.05, 1e-4, 1.5  # relative distance above the last mode that is taken to be free, and its change
POSE, MODE, STEP, SINCE, TASK, LAST, LOOKED_AT, AGAIN, NUMBER = range(9)  # whole numbers of a lane
SEARCH, PROVE, IDLE, LOOK = range(4)  # its tasks
POLE, BEFORE, WIDE, FREE = range(4)  # its numbers: inner nodes have no mode below, shift of its b, two see above
SHIFT, OFF, LENGTH, INNER, TWIST = 0, 1, 2, 3, 4  # rows of inputs and outputs


@inner
def between(lane: int, mode: int, near: float, bounds: Array) -> float:
    """A shift inside the interval of a mode: the guess if it lies there, else where the lowest of its modes may be."""
    low, high = bounds[lane, 0, mode], bounds[lane, 1, mode]
    if low < near < high:
        return near
    if high == INFINITE:
        return (1.0 + NEXT) * low if near > 0.5 * low else max(4.0 * low, near)
    if low == 0.0:
        return 0.1 * high
    others = 1  # modes of which no more is known than that they are below the end of the interval
    for k in range(mode + 1, bounds.shape[2]):
        if bounds[lane, 1, k] <= high:
            others += 1
    return low + (high - low) / (1 + others)


@inner
def begin_mode(
    lane: int, mode: int, whole: Array, reals: Array, bounds: Array, warm: Array, kept: Array, x: Array, shifts: Array
) -> None:
    """Start a mode from what the lane found at its last pose."""
    aim_at(lane, mode, whole, bounds, warm, shifts)
    for k in range(kept.shape[2]):
        x[1 + k, lane] = kept[lane, mode, k]


@inner
def aim_at(lane: int, mode: int, whole: Array, bounds: Array, warm: Array, shifts: Array) -> None:
    """The first shift of a mode."""
    whole[lane, MODE], whole[lane, STEP], whole[lane, SINCE] = mode, 0, 0
    near = warm[lane, mode] * (1 + OFFSET)  # at a mode itself no step exists
    shifts[lane] = between(lane, mode, near, bounds)


@inner
def keep_and_begin(
    lane: int, mode: int, whole: Array, bounds: Array, warm: Array, kept: Array, x: Array, shifts: Array
) -> None:
    """Keep the b of the mode that was found, and start another one."""
    last = whole[lane, MODE]
    for k in range(kept.shape[2]):
        own = x[1 + k, lane]  # which lies where y has it
        x[1 + k, lane] = kept[lane, mode, k]
        kept[lane, last, k] = own
    aim_at(lane, mode, whole, bounds, warm, shifts)


@inner
def missing_mode(pose: int, mode: int, found: Array) -> int:
    """The next mode that is not found, from one on and then from the first; their number where none is missing."""
    modes = found.shape[1]
    for k in range(modes):
        other = mode + k if mode + k < modes else mode + k - modes
        if found[pose, other] != found[pose, other]:
            return other
    return modes


@inner
def repeat_mode(
    lane: int,
    mode: int,
    whole: Array,
    reals: Array,
    bounds: Array,
    claims: Array,
    kept: Array,
    x: Array,
    shifts: Array,
    found: Array,
    pinned: Array,
) -> None:
    """Take another step with a mode whose claim does not hold."""
    pose = whole[lane, POSE]
    near = found[pose, mode] * (1 + OFFSET)
    found[pose, mode] = NONE
    pinned[pose, mode] = 0
    whole[lane, TASK], whole[lane, MODE], whole[lane, STEP], whole[lane, SINCE] = SEARCH, mode, 1, 1
    whole[lane, AGAIN] += 1
    reals[lane, BEFORE] = claims[lane, mode, AT]
    shifts[lane] = between(lane, mode, near, bounds)
    for k in range(kept.shape[2]):
        x[1 + k, lane] = kept[lane, mode, k]


@inner
def mixed(lane: int, mode: int, kept: Array, x: Array, found: Array, pose: int) -> None:
    """Start again from something of every missing mode: what was kept may have no part in the one that is looked for.

    The last vector that is kept is none of a mode.
    """
    modes = kept.shape[1] - 1
    for k in range(kept.shape[2]):
        x[1 + k, lane] = 0.3 * kept[lane, modes, k]
    for other in range(modes):
        if found[pose, other] == found[pose, other]:
            continue
        weight = 1.0 + 0.37 * ((other * 7 + mode * 3) % 5)
        for k in range(kept.shape[2]):
            x[1 + k, lane] += weight * kept[lane, other, k]


@inner
def look(lane: int, shift: float, whole: Array, shifts: Array) -> None:
    """Go to a shift to see whether inner nodes have a mode below it."""
    whole[lane, TASK] = LOOK
    whole[lane, LOOKED_AT] += 1
    shifts[lane] = shift


@inner
def next_pose(
    lane: int,
    whole: Array,
    bounds: Array,
    warm: Array,
    kept: Array,
    x: Array,
    reals: Array,
    shifts: Array,
    rows: Array,
    own: Array,
    which: Array,
    changes: Array,
    found: Array,
) -> None:
    """Give a lane its next pose, or rest."""
    whole[lane, NUMBER] += 1
    whole[lane, TASK] = SEARCH
    number = whole[lane, NUMBER]
    if number >= whole[lane, LAST]:
        whole[lane, TASK] = IDLE
        return
    last, pose = whole[lane, POSE], which[number]
    whole[lane, POSE] = pose
    for k in range(bounds.shape[2]):
        bounds[lane, 0, k] = 0.0
        bounds[lane, 1, k] = INFINITE
    for k in range(found.shape[1]):
        found[pose, k] = NONE
        if last >= 0:
            warm[lane, k] /= changes[last, k]
        warm[lane, k] *= changes[pose, k]
    whole[lane, LOOKED_AT], whole[lane, AGAIN] = 0, 0
    first = 1 + kept.shape[2]
    for k in range(rows.shape[1]):
        x[first + k, lane] = rows[own[number], k]
    begin_mode(lane, 0, whole, reals, bounds, warm, kept, x, shifts)
    if reals[lane, POLE] < INFINITE:
        reals[lane, POLE] = 0.0
        look(lane, reals[lane, WIDE] * warm[lane, found.shape[1] - 1], whole, shifts)


@inner
def narrow(lane: int, shift: float, count: int, bounds: Array) -> None:
    """Take in a count. Ends of intervals do not fall from mode to mode, so the first one that stays is the last."""
    k = min(count, bounds.shape[2]) - 1
    while k >= 0 and bounds[lane, 1, k] > shift:
        bounds[lane, 1, k] = shift
        k -= 1
    k = max(count, 0)
    while k < bounds.shape[2] and bounds[lane, 0, k] < shift:
        bounds[lane, 0, k] = shift
        k += 1


@inner
def accept(
    lane: int,
    mode: int,
    rho: float,
    whole: Array,
    reals: Array,
    warm: Array,
    kept: Array,
    x: Array,
    y: Array,
    units: Array,
    found: Array,
    twists: Array,
) -> None:
    """A mode is found: keep it and its twist; where it is another one than was looked for, its start is used."""
    pose, twisted = whole[lane, POSE], twists.shape[2]
    found[pose, mode] = warm[lane, mode] = rho
    if mode != whole[lane, MODE]:
        for k in range(kept.shape[2]):
            before = kept[lane, mode, k]
            kept[lane, mode, k] = x[1 + k, lane]
            x[1 + k, lane] = before
    largest, sign = 0.0, 0.0  # the first component of a shape that is nearly as large as the largest is positive
    for k in range(twisted):
        largest = max(largest, abs(y[TWIST + k, lane]) * units[k])
    for k in range(twisted):
        if sign == 0.0 and abs(y[TWIST + k, lane]) * units[k] >= NEARLY * largest:
            sign = -1.0 if y[TWIST + k, lane] < 0.0 else 1.0
    for k in range(twisted):
        twists[pose, mode, k] = sign * y[TWIST + k, lane]


@inner
def close(pose: int, found: Array) -> bool:
    """Whether two modes are so close that their shapes are any two of a plane."""
    nearest = INFINITE
    for k in range(found.shape[1] - 1):
        nearest = min(nearest, found[pose, k + 1] / found[pose, k] - 1)
    return nearest <= CLOSE


@inner
def prove(
    lane: int,
    turn: float,
    whole: Array,
    reals: Array,
    bounds: Array,
    claims: Array,
    kept: Array,
    x: Array,
    shifts: Array,
    found: Array,
    pinned: Array,
) -> int:
    """Go to a shift whose count is missing, or back to a mode: 1 when all is proved, -1 when it cannot be."""
    pose, modes = whole[lane, POSE], found.shape[1]
    if whole[lane, STEP] > 2 * modes or whole[lane, AGAIN] > 3 * modes:
        return -1
    missing = top(lane, pose, turn, claims, found, pinned)
    if bounds[lane, 1, modes] > missing:
        if bounds[lane, 0, modes] < missing:
            shifts[lane] = missing
            return 0
        reals[lane, FREE] = min(WIDER * reals[lane, FREE], NEXT)
    else:  # the next mode is nearer
        reals[lane, FREE] = max(reals[lane, FREE] / (WIDER * WIDER * WIDER), LEAST)
    mode = weakest(lane, pose, turn, reals[lane, POLE], bounds, claims, found, pinned)
    if mode >= 0:
        repeat_mode(lane, mode, whole, reals, bounds, claims, kept, x, shifts, found, pinned)
        return 0
    missing = open_count(lane, pose, bounds, claims, found)
    if missing == 0.0:
        return 1
    if missing != missing:
        return -1
    shifts[lane] = missing
    return 0


@inner
def likely(
    lane: int,
    near: int,
    rho: float,
    shift: float,
    weight: float,
    turn: float,
    reals: Array,
    bounds: Array,
    warm: Array,
    found: Array,
    pose: int,
) -> bool:
    """Whether a mode is exact if the next ones are about where they are expected."""
    if not (bounds[lane, 0, near] <= rho * (1 + OFFSET) and rho <= bounds[lane, 1, near] * (1 + OFFSET)):
        return False
    lower, upper = 0.0, rho * (1 + 2.0 * reals[lane, FREE])
    if near > 0:
        lower = found[pose, near - 1]
        if lower != lower:
            lower = min(warm[lane, near - 1], bounds[lane, 1, near - 1])
    if near + 1 < found.shape[1]:
        upper = found[pose, near + 1]
        if upper != upper:
            upper = max(warm[lane, near + 1], bounds[lane, 0, near + 1])
    gap = max(LIKELY * min(rho - lower, upper - rho), CLOSEST * rho)
    if abs(rho - shift) > max(gap, 1e-5 * rho):
        return False
    return exact(rho, shift, weight, rho - gap, rho + gap, reals[lane, POLE], reals[lane, BEFORE], turn)


@inner
def advance(
    lane: int,
    count: int,
    whole: Array,
    bounds: Array,
    claims: Array,
    warm: Array,
    kept: Array,
    x: Array,
    y: Array,
    units: Array,
    shifts: Array,
    found: Array,
    twists: Array,
    pinned: Array,
    reals: Array,
    turn: float,
) -> int:
    """Take in a step of a lane: 1 when its pose is proved, -1 when it is given up, 0 to go on."""
    modes, pose, mode, shift = found.shape[1], whole[lane, POSE], whole[lane, MODE], shifts[lane]
    if not (y[LENGTH, lane] > 0.0 and abs(y[OFF, lane]) < INFINITE):  # a pivot was zero: nothing was counted
        whole[lane, STEP] += 1
        mixed(lane, mode, kept, x, found, pose)
        whole[lane, SINCE] = 0
        shifts[lane] = shift * (1 + OFFSET)
        return 0 if whole[lane, STEP] < STEPS else -1
    if whole[lane, TASK] != LOOK:  # a count far above would have intervals halved far away
        narrow(lane, shift, count, bounds)
    before = reals[lane, BEFORE]
    if y[INNER, lane] == 0.0 and shift > reals[lane, POLE]:
        reals[lane, POLE] = shift
    if whole[lane, TASK] == LOOK:
        reals[lane, BEFORE] = shift
        whole[lane, TASK] = SEARCH
        begin_mode(lane, mode, whole, reals, bounds, warm, kept, x, shifts)
        if reals[lane, POLE] < shift and whole[lane, LOOKED_AT] < LOOKS and reals[lane, WIDE] > NARROWEST:
            nearer = max(0.25 * reals[lane, WIDE], NARROWEST)
            look(lane, shift * nearer / reals[lane, WIDE], whole, shifts)
            reals[lane, WIDE] = nearer
        return 0
    if whole[lane, TASK] == PROVE:
        whole[lane, STEP] += 1
        return prove(lane, turn, whole, reals, bounds, claims, kept, x, shifts, found, pinned)
    whole[lane, STEP] += 1
    whole[lane, SINCE] += 1
    off, weight = y[OFF, lane], y[LENGTH, lane]
    rho = shift + off
    guess = rho * (1 + OFFSET)
    near = count if rho >= shift else count - 1
    rest = weight - off * off  # squared residual, about
    coming = whole[lane, SINCE] > 1 and rest < COMING * COMING * rho * rho and 0 <= near < modes
    coming = coming and found[pose, near] != found[pose, near]
    if coming and likely(lane, near, rho, shift, weight, turn, reals, bounds, warm, found, pose):
        if near != mode:  # they changed places: what was kept of that one is the start for this one
            guess = warm[lane, mode]
            whole[lane, SINCE] = 0
        claims[lane, near, AT], claims[lane, near, WEIGHT] = shift, weight
        claims[lane, near, CAME] = before
        claims[lane, near, RADIUS] = radius(rho, shift, weight, reals[lane, POLE], before)
        accept(lane, near, rho, whole, reals, warm, kept, x, y, units, found, twists)
        coming = False
    reals[lane, BEFORE] = shift
    low, high = bounds[lane, 0, mode], bounds[lane, 1, mode]
    if found[pose, mode] != found[pose, mode] and high < INFINITE and high - low <= PINNED * high:
        accept(lane, mode, 0.5 * (low + high), whole, reals, warm, kept, x, y, units, found, twists)
        pinned[pose, mode] = 1
        claims[lane, mode, AT], claims[lane, mode, RADIUS] = shift, 0.5 * (high - low)
    if found[pose, mode] == found[pose, mode]:
        following = missing_mode(pose, mode, found)
        if following < modes:
            keep_and_begin(lane, following, whole, bounds, warm, kept, x, shifts)
            return 0
        for k in range(kept.shape[2]):
            kept[lane, mode, k] = x[1 + k, lane]
        whole[lane, TASK], whole[lane, STEP] = PROVE, 0
        return prove(lane, turn, whole, reals, bounds, claims, kept, x, shifts, found, pinned)
    if whole[lane, STEP] >= STEPS or not math.isfinite(rho):
        return -1
    if reals[lane, POLE] < NEAREST * rho and whole[lane, LOOKED_AT] < LOOKS:
        look(lane, reals[lane, WIDE] * rho, whole, shifts)
        return 0
    aim = mode
    if whole[lane, SINCE] > 0:
        if 0 <= near < modes and found[pose, near] != found[pose, near]:
            aim = near  # perhaps another one that is missing: it is followed
        elif whole[lane, SINCE] >= LOST:
            whole[lane, SINCE] = -1
    if whole[lane, SINCE] < 0 or (whole[lane, STEP] % PATIENCE == 0 and not coming):
        mixed(lane, mode, kept, x, found, pose)
        whole[lane, SINCE] = 0
        aim = mode
        guess = warm[lane, mode]
    coming = coming and whole[lane, STEP] <= PATIENCE + LOST  # if a residual says too little, counts must
    if coming and guess >= bounds[lane, 1, aim] and rho * (1 - 2 * OFFSET) > bounds[lane, 0, aim]:
        guess = rho * (1 - OFFSET)  # the count at its other side is known
    if whole[lane, STEP] > PATIENCE and whole[lane, STEP] % 2 == 0 and not coming:
        aim, guess = mode, -1.0
    shifts[lane] = between(lane, aim, guess, bounds)
    return 0


@compiled
def find_modes(
    address: int,
    places: Array,
    unknowns: int,
    rows: Array,
    own: Array,
    which: Array,
    changes: Array,
    free: int,
    turn: float,
    x: Array,
    y: Array,
    units: Array,
    reals: Array,
    shifts: Array,
    whole: Array,
    bounds: Array,
    claims: Array,
    warm: Array,
    kept: Array,
    found: Array,
    twists: Array,
    pinned: Array,
    flags: Array,
) -> int:
    """Squared frequencies into `found` (poses x modes), twists of the platform; flags: proved, close. Steps taken.

    `which` of the poses are solved, in this order; `own` are their rows. `warm` are modes to start from at each lane, over the `changes`
    (poses x modes) of their poses.
    """
    lanes, modes, poses, size = x.shape[1], found.shape[1], len(which), kept.shape[2]
    total, going = 0, 0
    for lane in range(lanes):
        whole[lane, NUMBER], whole[lane, POSE] = poses * lane // lanes - 1, -1
        whole[lane, LAST] = poses * (lane + 1) // lanes
        next_pose(lane, whole, bounds, warm, kept, x, reals, shifts, rows, own, which, changes, found)
        if whole[lane, TASK] == IDLE:  # any numbers do
            for k in range(rows.shape[1]):
                x[1 + size + k, lane] = rows[0, k]
            for k in range(size):
                x[1 + k, lane] = kept[lane, 0, k]
            shifts[lane] = warm[lane, 0]
        else:
            going += 1
    control_word(FLUSHED)
    while going > 0:
        total += going
        for lane in range(lanes):
            x[SHIFT, lane] = shifts[lane]
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(lanes):
            if whole[lane, TASK] == IDLE:
                continue
            count = int(0.5 * (unknowns - y[0, lane]) + 0.25) - free
            pose = whole[lane, POSE]
            end = advance(
                lane, count, whole, bounds, claims, warm, kept, x, y, units, shifts, found, twists, pinned, reals, turn
            )
            if end == 0:
                continue
            if end > 0:
                flags[pose, 0] = 1
            if close(pose, found):
                flags[pose, 1] = 1
            for k in range(modes):
                if pinned[pose, k] > 0:
                    flags[pose, 1] = 1
            next_pose(lane, whole, bounds, warm, kept, x, reals, shifts, rows, own, which, changes, found)
            if whole[lane, TASK] == IDLE:
                going -= 1
    control_word(USUAL)
    return total
