"""The mode search of each SIMD lane: shifts, claims, steps.

A lane has a pose, the number of a mode, and intervals that hold the modes one to m + 1. Every factorisation counts the
modes below its shift and narrows the intervals. The next shift is the Rayleigh quotient if it lies in the interval,
else the interval is halved. When all modes are claimed the proof is tried; a mode whose claim fails takes another step.

The common part of a step (counts, intervals, claims) is done for all lanes at once without branches, which processors
predict badly here; then each lane continues alone. The numbers of a pose are computed for the next poses of a lane, as
many as there are lanes, so that they are in the cache.

Inputs x (s, b, entries of the pose) and outputs y (signs, off, weight, inner, twist, b) share one block: the output b
of a step stands at the input b of the next one, and s is written before each step.
"""

from __future__ import annotations

import math

import numpy as np

from parflex.codegen.loop_compiler import simd_range, unrolled_range
from parflex.codegen.loop_functions import compiled_scalar, inner
from parflex.codegen.loop_types import CompiledRecord
from parflex.maps.mode_verification import is_exact, open_count, residual_radius, shift_above, weakest_mode
from parflex.maps.simd import (
    ABOVE,
    AGAIN,
    AT,
    BEFORE,
    BELOW,
    CAME,
    CLAIM,
    COUNT,
    DECIDE,
    FLUSHED,
    FOUND,
    FREE,
    HIGH,
    IDLE,
    INFINITE,
    INNER,
    LANES,
    LAST,
    LEFT,
    LENGTH,
    LOOK,
    LOOKED_AT,
    LOW,
    LOWER,
    MODE,
    NEAR,
    NEAR_HIGH,
    NEAR_LOW,
    NONE,
    NOTHING,
    NUMBER,
    OFF,
    OPEN,
    OWN_HIGH,
    OWN_LOW,
    PINNED,
    POLE,
    POSE,
    PROVE,
    RADIUS,
    READY,
    SEARCH,
    SHIFT,
    SIGNS,
    SINCE,
    STEP,
    TASK,
    TWIST,
    UPPER,
    USUAL,
    WARM,
    WEIGHT,
    WIDE,
    LaneStates,
    call_lanes,
    control_word,
    lane_index,
    mode_index,
)

Array = np.ndarray

CLOSE = 1e-5  # relative distance of modes whose shapes are not told apart

TURNED = 1e-8  # angle by which a shape may be off: a millionth of the platform's part, which may be a hundredth of it

MIN_SHARED_POSES = 2  # poses that one lane takes over from another: its vectors are those of other poses

WIDEST = 64.0  # times the last mode: where modes of inner nodes are counted first, which must lie above

STEPS = 80  # of one mode; halving alone needs fifty

NARROWEST = 1.5  # times the last mode: where modes of inner nodes are counted, at least

MIN_INTERVAL_SHARE = 0.25  # of an interval, by which a shift is inside of it, at least, where the guess is not

NEXT, LEAST, WIDER = 0.05, 1e-4, 1.5  # relative distance above the last mode that is taken to be free, and its change

NARROW = 1e-10  # relative width of an interval that is as good as its root

OFFSET = 1e-7  # relative distance of the next shift above a Rayleigh quotient: at a mode itself its count is rounding

NEAREST = 1.05  # times a mode: how far above it modes of inner nodes must be known to lie

MAX_LOOKS = 6  # at a pose

PATIENCE = 8  # steps after which halving takes turns with Rayleigh quotients

LOST = 2  # steps with one vector after which it is given up where it goes to a mode that is not missing

CONVERGING_RESIDUAL = 1e-3  # relative residual of a vector that is about to be a mode

CLOSEST = 1e-3  # relative distance of modes that is assumed, at least


class PoseEntries(CompiledRecord):
    """Where what steps take of poses comes from: a program, and what goes in and out of it.

    It takes positions and numbers of the design, or keys that these follow from, as `entry_loop` says.
    """

    address: int  # of the program of a pose
    places: Array  # of its inputs, outputs and workspace
    placed: Array  # which of its inputs are positions,
    positions: Array  # and which positions these are
    varied: Array  # which of its inputs are numbers of the design,
    taken: Array  # and which numbers these are
    q: Array  # positions of poses
    values: Array  # designs x numbers, or keys
    designs: Array  # which one each pose has
    given: Array  # inputs
    entries: Array  # outputs: lanes x entries x poses that are next


@inner
def prepare(lane: int, poses: PoseEntries, states: LaneStates) -> None:
    """What steps take of the next poses of a lane, side by side, from their positions and designs."""
    which, inputs, varied, number = states.which, poses.given, poses.varied, states.whole[lane_index(NUMBER, lane)]
    for k in range(LANES):
        pose = which[min(number + k, len(which) - 1)]
        for n in range(len(poses.placed)):
            inputs[poses.placed[n], k] = poses.q[pose, poses.positions[n]]
        design = poses.designs[pose]
        for n in range(len(varied)):
            inputs[varied[n], k] = poses.values[design, poses.taken[n]]
    size = 8 * poses.entries.shape[1] * LANES  # bytes of what a lane has
    call_lanes(poses.address, poses.places[0], poses.places[1] + size * lane, LANES, poses.places[2])
    states.whole[lane_index(READY, lane)] = 0


@inner
def put_entries(lane: int, poses: PoseEntries, states: LaneStates) -> None:
    """Give a step what it takes of the pose that is next in a lane."""
    ready, entries, x, first = states.whole[lane_index(READY, lane)], poses.entries, states.x, 1 + states.size
    for k in unrolled_range(entries.shape[1]):
        x[lane_index(first + k, lane)] = entries[lane, k, ready]
    states.whole[lane_index(READY, lane)] = ready + 1


@inner
def begin_pose(lane: int, states: LaneStates) -> None:
    """A lane is at its next pose; a share of what its last modes were off their guesses is expected again."""
    whole, known, changes, modes = states.whole, states.known, states.changes, states.modes
    last, pose = whole[lane_index(POSE, lane)], states.which[whole[lane_index(NUMBER, lane)]]
    whole[lane_index(POSE, lane)] = pose
    for k in range(modes + 1):
        known[mode_index(k, LOW, lane)], known[mode_index(k, HIGH, lane)] = 0.0, INFINITE
        known[mode_index(k, FOUND, lane)], known[mode_index(k, PINNED, lane)] = NONE, 0.0
    for k in range(modes):
        off = known[mode_index(k, WARM, lane)]
        if last >= 0:
            off = off / changes[last, k]
        known[mode_index(k, WARM, lane)] = changes[pose, k] * (off + (1.0 - states.share) * (1.0 - off))
    whole[lane_index(LOOKED_AT, lane)], whole[lane_index(AGAIN, lane)] = 0, 0
    load_mode(lane, 0, states)
    aim_at(lane, 0, states)
    if states.numbers[lane_index(POLE, lane)] < INFINITE:
        states.numbers[lane_index(POLE, lane)] = 0.0
        inspect_shift(lane, states.numbers[lane_index(WIDE, lane)] * known[mode_index(modes - 1, WARM, lane)], states)


@inner
def share_remaining_poses(lane: int, states: LaneStates) -> bool:
    """Give a lane that is at its end half of what the lane with most poses has left; False where that is little."""
    whole, other, most = states.whole, lane, 0
    for k in range(LANES):
        left = whole[lane_index(LAST, k)] - whole[lane_index(NUMBER, k)]
        if left > most:
            other, most = k, left
    if most // 2 < MIN_SHARED_POSES:
        return False
    whole[lane_index(LAST, lane)] = whole[lane_index(LAST, other)]
    whole[lane_index(LAST, other)] -= most // 2
    whole[lane_index(NUMBER, lane)], whole[lane_index(READY, lane)] = whole[lane_index(LAST, other)], LANES
    return True


@inner
def store_modes(lane: int, proved: bool, states: LaneStates) -> None:
    """What a lane found at its pose: modes, and whether two are so close that their shapes are any two of a plane."""
    known, eigenvalues, flags, pose = states.known, states.found, states.flags, states.whole[lane_index(POSE, lane)]
    if proved:
        flags[pose, 0] = 1
    for k in range(states.modes):
        eigenvalues[pose, k] = known[mode_index(k, FOUND, lane)]
        if known[mode_index(k, PINNED, lane)] > 0.0:
            flags[pose, 1] = 1
        if k > 0 and known[mode_index(k, FOUND, lane)] <= (1 + CLOSE) * known[mode_index(k - 1, FOUND, lane)]:
            flags[pose, 1] = 1


@compiled_scalar
def find_modes(address: int, places: Array, poses: PoseEntries, states: LaneStates) -> int:
    """Squared frequencies and twists of the platform into the states of lanes; flags: proved, close. Steps taken.

    The program of a step has this address, and its inputs, outputs and workspace these places.
    """
    count, total, going = len(states.which), 0, 0
    whole, numbers = states.whole, states.numbers
    control_word(FLUSHED)
    for lane in range(LANES):
        whole[lane_index(NUMBER, lane)], whole[lane_index(POSE, lane)] = count * lane // LANES, -1
        whole[lane_index(LAST, lane)] = count * (lane + 1) // LANES
        whole[lane_index(TASK, lane)] = SEARCH
        prepare(lane, poses, states)
        put_entries(lane, poses, states)
        if whole[lane_index(NUMBER, lane)] < whole[lane_index(LAST, lane)]:
            begin_pose(lane, states)
            going += 1
        else:  # any numbers do
            whole[lane_index(TASK, lane)] = IDLE
            load_mode(lane, 0, states)
            numbers[lane_index(SHIFT, lane)] = states.known[mode_index(0, WARM, lane)]
    while going > 0:
        total += going
        for lane in range(LANES):
            states.x[lane] = numbers[lane_index(SHIFT, lane)]
        call_lanes(address, places[0], places[1], LANES, places[2])
        narrow_intervals(states)
        continue_lanes(states)
        for lane in range(LANES):
            if whole[lane_index(LEFT, lane)] == NOTHING or whole[lane_index(TASK, lane)] == IDLE:
                continue
            end = advance(lane, states)
            if end == 0:
                continue
            store_modes(lane, end > 0, states)
            whole[lane_index(NUMBER, lane)] += 1
            whole[lane_index(TASK, lane)] = SEARCH
            if whole[lane_index(NUMBER, lane)] >= whole[lane_index(LAST, lane)] and not share_remaining_poses(
                lane, states
            ):
                whole[lane_index(TASK, lane)] = IDLE
                going -= 1
                continue
            if whole[lane_index(READY, lane)] >= LANES:
                prepare(lane, poses, states)
            put_entries(lane, poses, states)
            begin_pose(lane, states)
    control_word(USUAL)
    return total


@inner
def between(lane: int, mode: int, near: float, states: LaneStates) -> float:
    """A shift inside the interval of a mode: the guess if it lies there, else where the lowest of its modes may be."""
    known = states.known
    low, high = known[mode_index(mode, LOW, lane)], known[mode_index(mode, HIGH, lane)]
    if low < near < high:
        return near
    if high == INFINITE:
        return (1.0 + NEXT) * low if near > 0.5 * low else max(4.0 * low, near)
    if low == 0.0:
        return 0.1 * high
    others = 1  # modes of which no more is known than that they are below the end of the interval
    for k in range(mode + 1, states.modes + 1):
        if known[mode_index(k, HIGH, lane)] <= high:
            others += 1
    middle = low + (high - low) / (1 + others)
    if not near >= 0.0:
        return middle
    least = MIN_INTERVAL_SHARE * (high - low)  # as far inside as the guess is outside, if that is not beyond the middle
    return max(middle, high - max(near - high, least)) if near >= high else min(middle, low + max(low - near, least))


@inner
def aim_at(lane: int, mode: int, states: LaneStates) -> None:
    """The first shift of a mode."""
    whole = states.whole
    whole[lane_index(MODE, lane)], whole[lane_index(STEP, lane)], whole[lane_index(SINCE, lane)] = mode, 0, 0
    near = states.known[mode_index(mode, WARM, lane)] * (1 + OFFSET)  # at a mode itself no step exists
    states.numbers[lane_index(SHIFT, lane)] = between(lane, mode, near, states)


@inner
def load_mode(lane: int, mode: int, states: LaneStates) -> None:
    """Start from what is kept of a mode."""
    x, vectors = states.x, states.kept
    for k in unrolled_range(states.size):
        x[lane_index(1 + k, lane)] = vectors[lane, mode, k]


@inner
def store_mode(lane: int, mode: int, states: LaneStates) -> None:
    """Keep what came out of a step, which lies where the next one takes it."""
    x, vectors = states.x, states.kept
    for k in unrolled_range(states.size):
        vectors[lane, mode, k] = x[lane_index(1 + k, lane)]


@inner
def store_and_load(lane: int, mode: int, following: int, states: LaneStates) -> None:
    """Both at once."""
    x, vectors = states.x, states.kept
    for k in unrolled_range(states.size):
        value = x[lane_index(1 + k, lane)]
        x[lane_index(1 + k, lane)] = vectors[lane, following, k]
        vectors[lane, mode, k] = value


@inner
def missing_mode(lane: int, mode: int, states: LaneStates) -> int:
    """The next mode that is not found, from one on and then from the first; their number where none is missing."""
    known, modes = states.known, states.modes
    for k in range(modes):
        other = mode + k if mode + k < modes else mode + k - modes
        if known[mode_index(other, FOUND, lane)] != known[mode_index(other, FOUND, lane)]:
            return other
    return modes


@inner
def restart_mixed(lane: int, mode: int, states: LaneStates) -> None:
    """Start again from something of every missing mode: what was kept may have no part in the one that is looked for.

    The last vector that is kept is none of a mode.
    """
    x, vectors, known, modes = states.x, states.kept, states.known, states.modes
    for k in range(states.size):
        x[lane_index(1 + k, lane)] = 0.3 * vectors[lane, modes, k]
    for other in range(modes):
        if known[mode_index(other, FOUND, lane)] == known[mode_index(other, FOUND, lane)]:
            continue
        weight = 1.0 + 0.37 * ((other * 7 + mode * 3) % 5)
        for k in range(states.size):
            x[lane_index(1 + k, lane)] += weight * vectors[lane, other, k]


@inner
def inspect_shift(lane: int, shift: float, states: LaneStates) -> None:
    """Go to a shift to see whether inner nodes have a mode below it."""
    states.whole[lane_index(TASK, lane)] = LOOK
    states.whole[lane_index(LOOKED_AT, lane)] += 1
    states.numbers[lane_index(SHIFT, lane)] = shift


@inner
def accept(lane: int, mode: int, rho: float, states: LaneStates) -> None:
    """A mode is found: keep it and its twist."""
    known, y, twists, pose = states.known, states.y, states.twists, states.whole[lane_index(POSE, lane)]
    known[mode_index(mode, FOUND, lane)] = known[mode_index(mode, WARM, lane)] = rho
    for k in range(twists.shape[2]):
        twists[pose, mode, k] = y[lane_index(TWIST + k, lane)]


@inner
def prove(lane: int, states: LaneStates) -> int:
    """Go to a shift whose count is missing, or back to a mode: 1 when all is proved, -1 when it cannot be."""
    whole, numbers, known, modes = states.whole, states.numbers, states.known, states.modes
    if whole[lane_index(STEP, lane)] > 2 * modes or whole[lane_index(AGAIN, lane)] > 3 * modes:
        return -1
    missing = shift_above(lane, states)
    if known[mode_index(modes, HIGH, lane)] > missing:
        if known[mode_index(modes, LOW, lane)] < missing:
            numbers[lane_index(SHIFT, lane)] = missing
            return 0
        numbers[lane_index(FREE, lane)] = min(WIDER * numbers[lane_index(FREE, lane)], NEXT)
    else:  # the next mode is nearer
        numbers[lane_index(FREE, lane)] = max(numbers[lane_index(FREE, lane)] / (WIDER * WIDER * WIDER), LEAST)
    mode = weakest_mode(lane, states)
    if mode >= 0:  # it takes another step
        near = known[mode_index(mode, FOUND, lane)] * (1 + OFFSET)
        known[mode_index(mode, FOUND, lane)], known[mode_index(mode, PINNED, lane)] = NONE, 0.0
        (
            whole[lane_index(TASK, lane)],
            whole[lane_index(MODE, lane)],
            whole[lane_index(STEP, lane)],
            whole[lane_index(SINCE, lane)],
        ) = SEARCH, mode, 1, 1
        whole[lane_index(AGAIN, lane)] += 1
        numbers[lane_index(BEFORE, lane)] = known[mode_index(mode, AT, lane)]
        numbers[lane_index(SHIFT, lane)] = between(lane, mode, near, states)
        load_mode(lane, mode, states)
        return 0
    missing = open_count(lane, states)
    if missing == 0.0:
        return 1
    if missing != missing:
        return -1
    numbers[lane_index(SHIFT, lane)] = missing
    return 0


@inner
def after_inspection(lane: int, states: LaneStates) -> None:
    """After a look: nearer if inner nodes have a mode below, or back to the search."""
    whole, numbers = states.whole, states.numbers
    mode, shift = whole[lane_index(MODE, lane)], numbers[lane_index(SHIFT, lane)]
    numbers[lane_index(BEFORE, lane)] = shift
    whole[lane_index(TASK, lane)] = SEARCH
    aim_at(lane, mode, states)
    load_mode(lane, mode, states)
    if (
        numbers[lane_index(POLE, lane)] < shift
        and whole[lane_index(LOOKED_AT, lane)] < MAX_LOOKS
        and numbers[lane_index(WIDE, lane)] > NARROWEST
    ):
        nearer = max(0.25 * numbers[lane_index(WIDE, lane)], NARROWEST)
        inspect_shift(lane, shift * nearer / numbers[lane_index(WIDE, lane)], states)
        numbers[lane_index(WIDE, lane)] = nearer


@inner
def advance(lane: int, states: LaneStates) -> int:
    """What is left to do after a step of a lane: 1 when its pose is proved, -1 when it is given up, 0 to go on."""
    whole, numbers, known, y = states.whole, states.numbers, states.known, states.y
    modes, mode, shift = states.modes, whole[lane_index(MODE, lane)], numbers[lane_index(SHIFT, lane)]
    off, weight, near = y[lane_index(OFF, lane)], y[lane_index(LENGTH, lane)], whole[lane_index(NEAR, lane)]
    if not (weight > 0.0 and abs(off) < INFINITE):  # a pivot was zero: nothing was counted
        whole[lane_index(STEP, lane)] += 1
        restart_mixed(lane, mode, states)
        whole[lane_index(SINCE, lane)] = 0
        numbers[lane_index(SHIFT, lane)] = shift * (1 + OFFSET)
        return 0 if whole[lane_index(STEP, lane)] < STEPS else -1
    if whole[lane_index(TASK, lane)] == LOOK:
        after_inspection(lane, states)
        return 0
    whole[lane_index(STEP, lane)] += 1
    if whole[lane_index(TASK, lane)] == PROVE:
        return prove(lane, states)
    whole[lane_index(SINCE, lane)] += 1
    rho = shift + off
    guess = rho * (1 + OFFSET)
    open_mode = whole[lane_index(OPEN, lane)] > 0
    coming = open_mode and is_converging(lane, rho, whole[lane_index(SINCE, lane)], states)
    if whole[lane_index(LEFT, lane)] == CLAIM:
        if near != mode:  # they changed places: what was kept of that one is the start for this one
            guess = known[mode_index(mode, WARM, lane)]
            whole[lane_index(SINCE, lane)] = 0
            store_and_load(lane, near, near, states)
        known[mode_index(near, AT, lane)], known[mode_index(near, WEIGHT, lane)] = shift, weight
        known[mode_index(near, CAME, lane)] = numbers[lane_index(BEFORE, lane)]
        known[mode_index(near, RADIUS, lane)] = residual_radius(
            rho, shift, weight, numbers[lane_index(POLE, lane)], numbers[lane_index(BEFORE, lane)]
        )
        accept(lane, near, rho, states)
        open_mode, coming = False, False
    numbers[lane_index(BEFORE, lane)] = shift
    low, high = known[mode_index(mode, LOW, lane)], known[mode_index(mode, HIGH, lane)]
    missing = known[mode_index(mode, FOUND, lane)] != known[mode_index(mode, FOUND, lane)]
    if high - low <= NARROW * high and high < INFINITE and missing:
        accept(lane, mode, 0.5 * (low + high), states)
        known[mode_index(mode, AT, lane)], known[mode_index(mode, RADIUS, lane)] = shift, 0.5 * (high - low)
        known[mode_index(mode, PINNED, lane)] = 1.0
        missing = False
    if not missing:
        following = missing_mode(lane, mode, states)
        if following < modes:
            store_and_load(lane, mode, following, states)
            aim_at(lane, following, states)
            return 0
        store_mode(lane, mode, states)
        whole[lane_index(TASK, lane)], whole[lane_index(STEP, lane)] = PROVE, 0
        return prove(lane, states)
    if whole[lane_index(STEP, lane)] >= STEPS or not math.isfinite(rho):
        return -1
    if numbers[lane_index(POLE, lane)] < NEAREST * rho and whole[lane_index(LOOKED_AT, lane)] < MAX_LOOKS:
        inspect_shift(lane, numbers[lane_index(WIDE, lane)] * rho, states)
        return 0
    aim = mode
    if whole[lane_index(SINCE, lane)] > 0:
        if open_mode:
            aim = near  # perhaps another one that is missing: it is followed
        elif whole[lane_index(SINCE, lane)] >= LOST:
            whole[lane_index(SINCE, lane)] = -1
    if whole[lane_index(SINCE, lane)] < 0 or (whole[lane_index(STEP, lane)] % PATIENCE == 0 and not coming):
        restart_mixed(lane, mode, states)
        whole[lane_index(SINCE, lane)] = 0
        aim = mode
        guess = known[mode_index(mode, WARM, lane)]
    coming = coming and whole[lane_index(STEP, lane)] <= PATIENCE + LOST  # if a residual says too little, counts must
    if (
        coming
        and guess >= known[mode_index(aim, HIGH, lane)]
        and rho * (1 - 2 * OFFSET) > known[mode_index(aim, LOW, lane)]
    ):
        guess = rho * (1 - OFFSET)  # the count at its other side is known
    if whole[lane_index(STEP, lane)] > PATIENCE and whole[lane_index(STEP, lane)] % 2 == 0 and not coming:
        aim, guess = mode, -1.0
    numbers[lane_index(SHIFT, lane)] = between(lane, aim, guess, states)
    return 0


@inner
def is_converging(lane: int, rho: float, since: int, states: LaneStates) -> bool:
    """Whether a vector is about to be a mode."""
    off, weight = states.y[lane_index(OFF, lane)], states.y[lane_index(LENGTH, lane)]
    return since > 1 and weight - off * off < CONVERGING_RESIDUAL * CONVERGING_RESIDUAL * rho * rho


@inner
def is_likely_exact(lane: int, near: int, rho: float, states: LaneStates) -> bool:
    """Whether a mode is exact if the next ones are about where they are expected."""
    numbers, turn = states.numbers, states.turn
    shift, weight, pole = (
        numbers[lane_index(SHIFT, lane)],
        states.y[lane_index(LENGTH, lane)],
        numbers[lane_index(POLE, lane)],
    )
    lower, upper, free = (
        numbers[lane_index(BELOW, lane)],
        numbers[lane_index(ABOVE, lane)],
        numbers[lane_index(FREE, lane)],
    )
    lower, upper = lower if near > 0 else 0.0, upper if near + 1 < states.modes else rho * (1 + 2.0 * free)
    gap = max(min(rho - lower, upper - rho), CLOSEST * rho)
    inside = numbers[lane_index(NEAR_LOW, lane)] <= rho * (1 + OFFSET) and rho <= numbers[
        lane_index(NEAR_HIGH, lane)
    ] * (1 + OFFSET)
    inside = inside and abs(rho - shift) <= max(gap, 1e-5 * rho)
    return inside and is_exact(rho, shift, weight, rho - gap, rho + gap, pole, numbers[lane_index(BEFORE, lane)], turn)


@inner
def pair(first: bool, a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """The first two of four numbers, or the others."""
    return a if first else c, b if first else d


@inner
def narrow_intervals(states: LaneStates) -> None:
    """Take in counts: they say of each mode on which side of the shift it is.

    On the way, what is known of the mode that a lane looks for and of that next to its quotient is put side by side:
    numbers from other places for each lane would take longer than all modes.
    """
    whole, numbers, known, y = states.whole, states.numbers, states.known, states.y
    for lane in simd_range(LANES):
        usual = y[lane_index(LENGTH, lane)] > 0.0 and abs(y[lane_index(OFF, lane)]) < INFINITE  # else a pivot was zero
        counted = (
            usual and whole[lane_index(TASK, lane)] != LOOK
        )  # a count far above would have intervals halved far away
        shift, pole = numbers[lane_index(SHIFT, lane)], numbers[lane_index(POLE, lane)]
        count = int(0.5 * (states.unknowns - y[lane_index(SIGNS, lane)]) + 0.25) - states.free
        whole[lane_index(COUNT, lane)] = count
        whole[lane_index(NEAR, lane)] = count if y[lane_index(OFF, lane)] >= 0.0 else count - 1
        whole[lane_index(OPEN, lane)] = 0
        numbers[lane_index(UPPER, lane)] = shift if counted else INFINITE
        numbers[lane_index(LOWER, lane)] = shift if counted else 0.0
        numbers[lane_index(POLE, lane)] = (
            shift if usual and y[lane_index(INNER, lane)] == 0.0 and shift > pole else pole
        )
    for k in range(states.modes + 1):
        requested = 1 if k < states.modes else 0
        for lane in simd_range(LANES):
            count, near, mode = (
                whole[lane_index(COUNT, lane)],
                whole[lane_index(NEAR, lane)],
                whole[lane_index(MODE, lane)],
            )
            upper, lower, open_mode = (
                numbers[lane_index(UPPER, lane)],
                numbers[lane_index(LOWER, lane)],
                whole[lane_index(OPEN, lane)],
            )
            high, low = known[mode_index(k, HIGH, lane)], known[mode_index(k, LOW, lane)]
            eigenvalue, warm = known[mode_index(k, FOUND, lane)], known[mode_index(k, WARM, lane)]
            own_low, own_high = numbers[lane_index(OWN_LOW, lane)], numbers[lane_index(OWN_HIGH, lane)]
            near_low, near_high = numbers[lane_index(NEAR_LOW, lane)], numbers[lane_index(NEAR_HIGH, lane)]
            below, above = numbers[lane_index(BELOW, lane)], numbers[lane_index(ABOVE, lane)]
            high, low = min(high, upper if k < count else INFINITE), max(low, 0.0 if k < count else lower)
            missing = eigenvalue != eigenvalue
            known[mode_index(k, HIGH, lane)], known[mode_index(k, LOW, lane)] = high, low
            whole[lane_index(OPEN, lane)] = requested if k == near and missing else open_mode
            numbers[lane_index(OWN_LOW, lane)], numbers[lane_index(OWN_HIGH, lane)] = pair(
                k == mode, low, high, own_low, own_high
            )
            numbers[lane_index(NEAR_LOW, lane)], numbers[lane_index(NEAR_HIGH, lane)] = pair(
                k == near, low, high, near_low, near_high
            )
            numbers[lane_index(BELOW, lane)] = (min(warm, high) if missing else eigenvalue) if k + 1 == near else below
            numbers[lane_index(ABOVE, lane)] = (max(warm, low) if missing else eigenvalue) if k - 1 == near else above


@inner
def continue_lanes(states: LaneStates) -> None:
    """Lanes whose next shift is their Rayleigh quotient go there; of the others it is said what is left to do."""
    whole, numbers, y = states.whole, states.numbers, states.y
    for lane in simd_range(LANES):
        off, weight, shift = y[lane_index(OFF, lane)], y[lane_index(LENGTH, lane)], numbers[lane_index(SHIFT, lane)]
        step, since, near = (
            whole[lane_index(STEP, lane)] + 1,
            whole[lane_index(SINCE, lane)] + 1,
            whole[lane_index(NEAR, lane)],
        )
        searching = whole[lane_index(TASK, lane)] == SEARCH and weight > 0.0 and abs(off) < INFINITE
        rho, open_mode = shift + off, whole[lane_index(OPEN, lane)] > 0
        guess = rho * (1 + OFFSET)
        claim = (
            searching
            and open_mode
            and is_converging(lane, rho, since, states)
            and is_likely_exact(lane, near, rho, states)
        )
        low, high = numbers[lane_index(OWN_LOW, lane)], numbers[lane_index(OWN_HIGH, lane)]
        pinned = high - low <= NARROW * high and high < INFINITE
        low, high = pair(
            open_mode, numbers[lane_index(NEAR_LOW, lane)], numbers[lane_index(NEAR_HIGH, lane)], low, high
        )
        pole, looks, before = (
            numbers[lane_index(POLE, lane)],
            whole[lane_index(LOOKED_AT, lane)],
            numbers[lane_index(BEFORE, lane)],
        )
        pole_resolved = pole >= NEAREST * rho or looks >= MAX_LOOKS
        goes = searching and not claim and not pinned and low < guess < high and pole_resolved
        goes = goes and step < PATIENCE and (open_mode or since < LOST)
        whole[lane_index(LEFT, lane)] = NOTHING if goes else CLAIM if claim else DECIDE
        whole[lane_index(STEP, lane)] = step if goes else step - 1
        whole[lane_index(SINCE, lane)] = since if goes else since - 1
        numbers[lane_index(BEFORE, lane)] = shift if goes else before
        numbers[lane_index(SHIFT, lane)] = guess if goes else shift
