"""Machine code around the compiled step: lanes that each go their own way through modes and poses.

A lane has a pose, the number of a mode it looks for, and intervals that hold the modes one to m + 1. Every
factorisation counts the modes below its shift and narrows them. The next shift is the Rayleigh quotient while that lies
in the interval, else the interval is halved.

Inputs x (s, b, entries of the pose) and outputs y (signs, along, mass, inner, twist, b) lie in one block, so that the b
that comes out of a step stands where that of the next one goes in; s is written anew before each step.
"""

from __future__ import annotations

import math

import numpy as np

from parflex.maps.engine.lane_calls import FLUSHED, USUAL, call_lanes, control_word
from parflex.simulation.integrators.jit import compiled, inner

Array = np.ndarray
INFINITE, NONE = math.inf, math.nan
STEPS = 80  # of one mode; halving alone needs fifty
EXACT = 2e-10  # relative error of a squared frequency that is accepted
PINNED = 1e-10  # relative width of an interval that is as good as its root
ABOVE = 1e-8  # relative distance above the last mode at which all are counted
OFFSET = 1e-7  # relative distance of the next shift above a Rayleigh quotient: at a mode itself its count is rounding
CLOSE = 1e-5  # relative distance of modes whose shapes are not told apart
SETTLED = 1e-11  # relative residual at which a shape is good whatever lies beside it
TURNED = 1e-7  # angle by which a shape may be off: what of it the platform moves may be a tenth
BESIDE = 1e-5  # relative distance of a shift from a mode that is taken to be the next one: the last count decides
NEARLY = 0.9  # of the largest component, as where one pose is asked
WIDEST, NARROWEST = 64.0, 1.5  # times the last mode: where modes of inner nodes are counted, which must lie above
NEAREST = 1.05  # times a mode: how far above it their modes must be known to lie
LOOKS = 6  # at a pose
PATIENCE = 8  # steps after which halving takes turns with Rayleigh quotients
POSE, MODE, STEP, SINCE, TASK, LAST, LOOKED_AT = range(7)  # whole numbers of a lane
SEARCH, PROVE, IDLE, LOOK = range(4)  # its tasks
POLE, BEFORE, WIDE = range(3)  # its numbers: inner nodes have no mode below, shift that its b comes from, see above
SHIFT, ALONG, MASS, INNER, TWIST = 0, 1, 2, 3, 4  # rows of inputs and outputs


@inner
def between(low: float, high: float, near: float) -> float:
    """A shift inside an interval: the guess if it lies there, else its middle."""
    if low < near < high:
        return near
    if high == INFINITE:
        return max(4.0 * low, near)
    return 0.1 * high if low == 0.0 else 0.5 * (low + high)


@inner
def exact(
    rho: float, shift: float, mass: float, lower: float, upper: float, pole: float, before: float, turn: float
) -> bool:
    """Whether a Rayleigh quotient is a mode, by its residual and the distance to the next intervals: theory (71), (72).

    b has the length one by the N of its own shift, `before`; inner nodes have no mode below `pole`.
    """
    off = rho - shift
    if pole <= max(shift, before):
        return False
    change, shrunk = 1.0, 1.0
    if pole < INFINITE:
        if before > shift:
            change = ((pole - shift) / (pole - before)) ** 2
        shrunk = (pole - shift) / (pole - lower)
    gap, rest = min((shift - lower) * shrunk + min(off, off * shrunk), upper - rho), 1.0 / mass - off * off
    if math.sqrt(max(rest, 0.0)) > max(turn * gap, SETTLED * rho):
        return False
    rest = max(rest, 0.0) + (change - 1.0) / mass
    residual = math.sqrt(rest)
    apart = gap > 0.0
    if not apart and abs(off) > BESIDE * rho:  # another mode may lie between
        return False
    error = min(residual, rest / gap) if apart else residual
    far = 1.1 * (abs(off) + error)
    if far > 0.1 * (pole - shift):
        return False
    return error + far * far / (pole - shift - far) <= EXACT * rho


@inner
def begin_mode(
    lane: int, mode: int, whole: Array, bounds: Array, warm: Array, kept: Array, x: Array, shifts: Array
) -> None:
    """Start a mode from what the lane found at its last pose."""
    whole[lane, MODE], whole[lane, STEP], whole[lane, SINCE] = mode, 0, 0
    near = warm[lane, mode] * (1 + OFFSET)  # a mode that no pose changes is where it was: at it no step exists
    shifts[lane] = between(bounds[lane, 0, mode], bounds[lane, 1, mode], near)
    for k in range(kept.shape[2]):
        x[1 + k, lane] = kept[lane, mode, k]


@inner
def mixed(lane: int, mode: int, kept: Array, x: Array) -> None:
    """Start again from something of every mode: what was kept may have no part in the one that is looked for."""
    modes = kept.shape[1] - 1
    for k in range(kept.shape[2]):
        x[1 + k, lane] = kept[lane, modes, k]
    for other in range(modes):
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
    found: Array,
) -> None:
    """Give a lane its next pose, or rest."""
    whole[lane, POSE] += 1
    whole[lane, TASK] = SEARCH
    pose = whole[lane, POSE]
    if pose >= whole[lane, LAST]:
        whole[lane, TASK] = IDLE
        return
    for k in range(bounds.shape[2]):
        bounds[lane, 0, k] = 0.0
        bounds[lane, 1, k] = INFINITE
    for k in range(found.shape[1]):
        found[pose, k] = NONE
    whole[lane, LOOKED_AT] = 0
    first = 1 + kept.shape[2]
    for k in range(rows.shape[1]):
        x[first + k, lane] = rows[pose, k]
    begin_mode(lane, 0, whole, bounds, warm, kept, x, shifts)
    if reals[lane, POLE] < INFINITE:
        reals[lane, POLE] = 0.0
        look(lane, reals[lane, WIDE] * warm[lane, found.shape[1] - 1], whole, shifts)


@inner
def narrow(lane: int, shift: float, count: int, bounds: Array) -> None:
    """Take in a count."""
    for k in range(bounds.shape[2]):
        if k < count:
            bounds[lane, 1, k] = min(bounds[lane, 1, k], shift)
        else:
            bounds[lane, 0, k] = max(bounds[lane, 0, k], shift)


@inner
def accept(
    lane: int,
    mode: int,
    rho: float,
    whole: Array,
    bounds: Array,
    warm: Array,
    kept: Array,
    x: Array,
    y: Array,
    units: Array,
    found: Array,
    twists: Array,
) -> None:
    """A mode is found: keep it, its b and its twist; x gets the b that was kept before."""
    pose, twisted = whole[lane, POSE], twists.shape[2]
    found[pose, mode] = warm[lane, mode] = rho
    for k in range(kept.shape[2]):
        before = kept[lane, mode, k]
        kept[lane, mode, k] = x[1 + k, lane]  # which lies where y has it
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
def open_count(lane: int, pose: int, bounds: Array, found: Array) -> float:
    """A shift whose count is missing in the proof; zero if nothing is, not a number if the counts say otherwise.

    Modes that are apart each have an eigenvalue by their residuals, so that it is enough to count them all. Modes that
    are too close for that are counted from below and above.
    """
    modes = found.shape[1]
    for k in range(modes):
        here = found[pose, k]
        if not (bounds[lane, 0, k] * (1 - ABOVE) <= here <= bounds[lane, 1, k] * (1 + ABOVE)):
            return NONE
        if k == modes - 1:
            break
        following = found[pose, k + 1]
        if following - here > 4 * EXACT * following:
            continue
        if bounds[lane, 0, k] < here * (1 - 2 * ABOVE):
            return here * (1 - ABOVE)
        if bounds[lane, 1, k + 1] > following * (1 + 2 * ABOVE):
            return following * (1 + ABOVE)
    top = found[pose, modes - 1] * (1 + ABOVE)
    return 0.0 if bounds[lane, 0, modes] >= top else top


@inner
def close(pose: int, found: Array) -> bool:
    """Whether two modes are so close that their shapes are any two of a plane."""
    nearest = INFINITE
    for k in range(found.shape[1] - 1):
        nearest = min(nearest, found[pose, k + 1] / found[pose, k] - 1)
    return nearest <= CLOSE


@inner
def prove(lane: int, whole: Array, bounds: Array, shifts: Array, found: Array) -> int:
    """Go to a shift whose count is missing: 1 when nothing is, -1 when the counts say otherwise."""
    missing = open_count(lane, whole[lane, POSE], bounds, found)
    if missing == 0.0:
        return 1
    if missing != missing or whole[lane, STEP] > 2 * found.shape[1]:
        return -1
    shifts[lane] = missing
    return 0


@inner
def advance(
    lane: int,
    count: int,
    whole: Array,
    bounds: Array,
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
    if not math.isfinite(y[MASS, lane]):  # a pivot was zero: nothing was counted
        whole[lane, STEP] += 1
        mixed(lane, mode, kept, x)
        whole[lane, SINCE] = 0
        shifts[lane] = shift * (1 + OFFSET)
        return 0 if whole[lane, STEP] < STEPS else -1
    if whole[lane, TASK] != LOOK:  # a count far above would have intervals halved far away
        narrow(lane, shift, count, bounds)
    before = reals[lane, BEFORE]
    reals[lane, BEFORE] = shift
    if y[INNER, lane] == 0.0 and shift > reals[lane, POLE]:
        reals[lane, POLE] = shift
    if whole[lane, TASK] == LOOK:
        whole[lane, TASK] = SEARCH
        begin_mode(lane, mode, whole, bounds, warm, kept, x, shifts)
        if reals[lane, POLE] < shift and whole[lane, LOOKED_AT] < LOOKS and reals[lane, WIDE] > NARROWEST:
            nearer = max(0.25 * reals[lane, WIDE], NARROWEST)
            look(lane, shift * nearer / reals[lane, WIDE], whole, shifts)
            reals[lane, WIDE] = nearer
        return 0
    if whole[lane, TASK] == PROVE:
        whole[lane, STEP] += 1
        return prove(lane, whole, bounds, shifts, found)
    whole[lane, STEP] += 1
    whole[lane, SINCE] += 1
    rho = shift + y[ALONG, lane] / y[MASS, lane]
    guess = rho * (1 + OFFSET)
    near = count if rho >= shift else count - 1
    if whole[lane, SINCE] > 1 and 0 <= near < modes and found[pose, near] != found[pose, near]:
        lower, upper = 0.0 if near == 0 else bounds[lane, 1, near - 1], bounds[lane, 0, near + 1]
        if near > 0 and found[pose, near - 1] < lower:
            lower = found[pose, near - 1]
        if near + 1 < modes and found[pose, near + 1] > upper:
            upper = found[pose, near + 1]
        if exact(rho, shift, y[MASS, lane], lower, upper, reals[lane, POLE], before, turn):
            if near != mode:  # they changed places: what was kept of that one is the start for this one
                guess = warm[lane, near]
                whole[lane, SINCE] = 0
            accept(lane, near, rho, whole, bounds, warm, kept, x, y, units, found, twists)
    low, high = bounds[lane, 0, mode], bounds[lane, 1, mode]
    if found[pose, mode] != found[pose, mode] and high < INFINITE and high - low <= PINNED * high:
        accept(lane, mode, 0.5 * (low + high), whole, bounds, warm, kept, x, y, units, found, twists)
        pinned[pose, mode] = 1
    if found[pose, mode] == found[pose, mode]:
        while mode < modes and found[pose, mode] == found[pose, mode]:
            mode += 1
        if mode < modes:
            begin_mode(lane, mode, whole, bounds, warm, kept, x, shifts)
            return 0
        whole[lane, TASK], whole[lane, STEP] = PROVE, 0
        return prove(lane, whole, bounds, shifts, found)
    if whole[lane, STEP] >= STEPS or not math.isfinite(rho):
        return -1
    if reals[lane, POLE] < NEAREST * rho and whole[lane, LOOKED_AT] < LOOKS:
        look(lane, reals[lane, WIDE] * rho, whole, shifts)
        return 0
    halve = whole[lane, STEP] > PATIENCE and whole[lane, STEP] % 2 == 0
    if whole[lane, STEP] % PATIENCE == 0:
        mixed(lane, mode, kept, x)
        whole[lane, SINCE] = 0
    shifts[lane] = between(low, high, -1.0 if halve else guess)
    return 0


@compiled
def find_modes(
    address: int,
    places: Array,
    unknowns: int,
    rows: Array,
    free: int,
    turn: float,
    x: Array,
    y: Array,
    units: Array,
    reals: Array,
    shifts: Array,
    whole: Array,
    bounds: Array,
    warm: Array,
    kept: Array,
    found: Array,
    twists: Array,
    pinned: Array,
    flags: Array,
) -> int:
    """Squared frequencies into `found` (poses x modes), twists of the platform; flags: proved, close. Steps taken."""
    lanes, modes, poses, size, total = x.shape[1], found.shape[1], len(rows), kept.shape[2], 0
    for lane in range(lanes):
        whole[lane, POSE] = poses * lane // lanes - 1
        whole[lane, LAST] = poses * (lane + 1) // lanes
        next_pose(lane, whole, bounds, warm, kept, x, reals, shifts, rows, found)
        if whole[lane, TASK] == IDLE:  # any numbers do
            for k in range(rows.shape[1]):
                x[1 + size + k, lane] = rows[0, k]
            for k in range(size):
                x[1 + k, lane] = kept[lane, 0, k]
            shifts[lane] = warm[lane, 0]
    control_word(FLUSHED)
    while True:
        active = 0
        for lane in range(lanes):
            if whole[lane, TASK] != IDLE:
                active += 1
        if active == 0:
            break
        total += active
        for lane in range(lanes):
            x[SHIFT, lane] = shifts[lane]
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(lanes):
            if whole[lane, TASK] == IDLE:
                continue
            count = int(0.5 * (unknowns - y[0, lane]) + 0.25) - free
            pose = whole[lane, POSE]
            end = advance(
                lane, count, whole, bounds, warm, kept, x, y, units, shifts, found, twists, pinned, reals, turn
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
            next_pose(lane, whole, bounds, warm, kept, x, reals, shifts, rows, found)
    control_word(USUAL)
    return total
