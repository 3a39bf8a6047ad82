"""Machine code around the compiled step: lanes that each go their own way through modes and poses.

What steps take of a pose is made when a lane comes to it, for as many of its next poses as there are lanes: so it is in
the cache when it is needed.

Inputs x (s, b, entries of the pose) and outputs y (signs, off, weight, inner, twist, b) lie in one block, so that the b
that comes out of a step stands where that of the next one goes in; s is written anew before each step.
"""

from __future__ import annotations

import numpy as np

from parflex.maps.engine.lane_calls import FLUSHED, USUAL, call_lanes, control_word
from parflex.maps.engine.mode_proof import FOUND, HIGH, INFINITE, LOW, NONE, PINNED, WARM
from parflex.maps.engine.mode_search import (
    AGAIN,
    IDLE,
    LAST,
    LOOKED_AT,
    NUMBER,
    POLE,
    POSE,
    READY,
    SEARCH,
    SHIFT,
    TASK,
    WIDE,
    advance,
    aim_at,
    look,
    take,
)
from parflex.simulation.integrators.jit import deciding, inner

Array = np.ndarray
CLOSE = 1e-5  # relative distance of modes whose shapes are not told apart
TURNED = 1e-8  # angle by which a shape may be off: a millionth of the platform's part, which may be a hundredth of it
WORTH_SHARING = 2  # poses that one lane takes over from another: its vectors are those of other poses
WIDEST = 64.0  # times the last mode: where modes of inner nodes are counted first, which must lie above


@inner
def prepare(
    lane: int,
    which: Array,
    pose_address: int,
    pose_places: Array,
    placed: Array,
    positions: Array,
    varied: Array,
    numbers_taken: Array,
    q: Array,
    values: Array,
    designs: Array,
    given: Array,
    entries: Array,
    number_address: int,
    number_places: Array,
    keys: Array,
    made: Array,
    whole: Array,
) -> None:
    """What steps take of the next poses of a lane, side by side, from their positions and designs."""
    lanes, last = given.shape[1], len(which) - 1
    for k in range(lanes):
        pose = which[min(whole[lane, NUMBER] + k, last)]
        for n in range(len(placed)):
            given[placed[n], k] = q[pose, positions[n]]
        design = designs[pose]
        if number_address != 0:
            for n in range(len(keys)):
                keys[n, k] = values[design, n]
        else:
            for n in range(len(varied)):
                given[varied[n], k] = values[design, numbers_taken[n]]
    if number_address != 0:
        call_lanes(number_address, number_places[0], number_places[1], lanes, number_places[2])
        for n in range(len(varied)):
            for k in range(lanes):
                given[varied[n], k] = made[numbers_taken[n], k]
    size = 8 * entries.shape[1] * entries.shape[2]  # bytes of what a lane has
    call_lanes(pose_address, pose_places[0], pose_places[1] + size * lane, lanes, pose_places[2])
    whole[lane, READY] = 0


@inner
def put_entries(lane: int, first: int, whole: Array, entries: Array, x: Array) -> None:
    """Give a step what it takes of the pose that is next in a lane."""
    ready = whole[lane, READY]
    for k in range(entries.shape[1]):
        x[first + k, lane] = entries[lane, k, ready]
    whole[lane, READY] = ready + 1


@inner
def begin(
    lane: int,
    whole: Array,
    numbers: Array,
    known: Array,
    kept: Array,
    x: Array,
    which: Array,
    changes: Array,
    share: float,
) -> None:
    """A lane is at its next pose; `share` of what its last modes were off their guesses is expected again."""
    number, last, modes = whole[lane, NUMBER], whole[lane, POSE], known.shape[1] - 1
    pose = which[number]
    whole[lane, POSE] = pose
    for k in range(modes + 1):
        known[lane, k, LOW], known[lane, k, HIGH] = 0.0, INFINITE
        known[lane, k, FOUND], known[lane, k, PINNED] = NONE, 0.0
    for k in range(modes):
        off = known[lane, k, WARM]
        if last >= 0:
            off = off / changes[last, k]
        known[lane, k, WARM] = changes[pose, k] * (off + (1.0 - share) * (1.0 - off))
    whole[lane, LOOKED_AT], whole[lane, AGAIN] = 0, 0
    take(lane, 0, kept, x)
    aim_at(lane, 0, whole, numbers, known)
    if numbers[lane, POLE] < INFINITE:
        numbers[lane, POLE] = 0.0
        look(lane, numbers[lane, WIDE] * known[lane, modes - 1, WARM], whole, numbers)


@inner
def share_rest(lane: int, whole: Array) -> bool:
    """Give a lane that is at its end half of what the lane with most poses has left; False where that is little."""
    other = lane
    for k in range(whole.shape[0]):
        if whole[k, LAST] - whole[k, NUMBER] > whole[other, LAST] - whole[other, NUMBER]:
            other = k
    taken = (whole[other, LAST] - whole[other, NUMBER]) // 2
    if taken < WORTH_SHARING:
        return False
    whole[lane, LAST] = whole[other, LAST]
    whole[other, LAST] -= taken
    whole[lane, NUMBER], whole[lane, READY] = whole[other, LAST], whole.shape[0]
    return True


@inner
def put(lane: int, pose: int, known: Array, found: Array, flags: Array) -> None:
    """What a lane found at its pose: modes, and whether two are so close that their shapes are any two of a plane."""
    modes = found.shape[1]
    for k in range(modes):
        found[pose, k] = known[lane, k, FOUND]
        if known[lane, k, PINNED] > 0.0:
            flags[pose, 1] = 1
        if k > 0 and known[lane, k, FOUND] <= (1 + CLOSE) * known[lane, k - 1, FOUND]:
            flags[pose, 1] = 1


@deciding
def find_modes(
    address: int,
    places: Array,
    unknowns: int,
    pose_address: int,
    pose_places: Array,
    placed: Array,
    positions: Array,
    varied: Array,
    numbers_taken: Array,
    q: Array,
    values: Array,
    designs: Array,
    given: Array,
    entries: Array,
    number_address: int,
    number_places: Array,
    keys: Array,
    made: Array,
    which: Array,
    changes: Array,
    share: float,
    free: int,
    turn: float,
    x: Array,
    y: Array,
    whole: Array,
    numbers: Array,
    known: Array,
    kept: Array,
    found: Array,
    twists: Array,
    flags: Array,
) -> int:
    """Squared frequencies into `found` (poses x modes), twists of the platform; flags: proved, close. Steps taken.

    `which` of the poses are solved, in this order. Modes that lanes expect are over the `changes` (poses x modes) of
    their poses. The program of a pose takes positions and numbers of its design as `entry_loop` says, from `given`, and
    its outputs are `entries` (lanes x entries x poses that are next). Where a program makes the numbers of designs,
    `values` are keys of designs, and its inputs and outputs are `keys` and `made`; else its address is zero.
    """
    lanes, poses, first = x.shape[1], len(which), 1 + kept.shape[2]
    total, going = 0, 0
    control_word(FLUSHED)
    for lane in range(lanes):
        whole[lane, NUMBER], whole[lane, POSE] = poses * lane // lanes, -1
        whole[lane, LAST] = poses * (lane + 1) // lanes
        whole[lane, TASK] = SEARCH
        prepare(
            lane, which, pose_address, pose_places, placed, positions, varied, numbers_taken, q, values, designs, given,
            entries, number_address, number_places, keys, made, whole,
        )  # fmt: skip
        put_entries(lane, first, whole, entries, x)
        if whole[lane, NUMBER] < whole[lane, LAST]:
            begin(lane, whole, numbers, known, kept, x, which, changes, share)
            going += 1
        else:  # any numbers do
            whole[lane, TASK] = IDLE
            take(lane, 0, kept, x)
            numbers[lane, SHIFT] = known[lane, 0, WARM]
    while going > 0:
        total += going
        for lane in range(lanes):
            x[0, lane] = numbers[lane, SHIFT]
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(lanes):
            if whole[lane, TASK] == IDLE:
                continue
            count = int(0.5 * (unknowns - y[0, lane]) + 0.25) - free
            end = advance(lane, count, whole, numbers, known, kept, x, y, twists, turn)
            if end == 0:
                continue
            pose = whole[lane, POSE]
            if end > 0:
                flags[pose, 0] = 1
            put(lane, pose, known, found, flags)
            whole[lane, NUMBER] += 1
            whole[lane, TASK] = SEARCH
            if whole[lane, NUMBER] >= whole[lane, LAST] and not share_rest(lane, whole):
                whole[lane, TASK] = IDLE
                going -= 1
                continue
            if whole[lane, READY] >= lanes:
                prepare(
                    lane, which, pose_address, pose_places, placed, positions, varied, numbers_taken, q, values,
                    designs, given, entries, number_address, number_places, keys, made, whole,
                )  # fmt: skip
            put_entries(lane, first, whole, entries, x)
            begin(lane, whole, numbers, known, kept, x, which, changes, share)
    control_word(USUAL)
    return total
