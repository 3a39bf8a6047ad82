"""Machine code around the compiled step: lanes that each go their own way through modes and poses.

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
TURNED = 3e-8  # angle by which a shape may be off: a millionth of the platform's part, which may be a thirtieth of it
WIDEST = 64.0  # times the last mode: where modes of inner nodes are counted first, which must lie above


@inner
def next_pose(
    lane: int,
    whole: Array,
    numbers: Array,
    known: Array,
    kept: Array,
    x: Array,
    rows: Array,
    own: Array,
    which: Array,
    changes: Array,
    share: float,
) -> None:
    """Give a lane its next pose, or rest; `share` of what its last modes were off their guesses is expected again."""
    whole[lane, NUMBER] += 1
    whole[lane, TASK] = SEARCH
    number, last, modes = whole[lane, NUMBER], whole[lane, POSE], known.shape[1] - 1
    if number >= whole[lane, LAST]:
        whole[lane, TASK] = IDLE
        return
    pose, row = which[number], own[number]
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
    first = 1 + kept.shape[2]
    for k in range(rows.shape[1]):
        x[first + k, lane] = rows[row, k]
    take(lane, 0, kept, x)
    aim_at(lane, 0, whole, numbers, known)
    if numbers[lane, POLE] < INFINITE:
        numbers[lane, POLE] = 0.0
        look(lane, numbers[lane, WIDE] * known[lane, modes - 1, WARM], whole, numbers)


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
    rows: Array,
    own: Array,
    which: Array,
    changes: Array,
    share: float,
    free: int,
    turn: float,
    x: Array,
    y: Array,
    units: Array,
    whole: Array,
    numbers: Array,
    known: Array,
    kept: Array,
    found: Array,
    twists: Array,
    flags: Array,
) -> int:
    """Squared frequencies into `found` (poses x modes), twists of the platform; flags: proved, close. Steps taken.

    `which` of the poses are solved, in this order; `own` are their rows. Modes that lanes expect are over the `changes`
    (poses x modes) of their poses.
    """
    lanes, poses, size = x.shape[1], len(which), kept.shape[2]
    total, going = 0, 0
    for lane in range(lanes):
        whole[lane, NUMBER], whole[lane, POSE] = poses * lane // lanes - 1, -1
        whole[lane, LAST] = poses * (lane + 1) // lanes
        next_pose(lane, whole, numbers, known, kept, x, rows, own, which, changes, share)
        if whole[lane, TASK] == IDLE:  # any numbers do
            for k in range(rows.shape[1]):
                x[1 + size + k, lane] = rows[0, k]
            take(lane, 0, kept, x)
            numbers[lane, SHIFT] = known[lane, 0, WARM]
        else:
            going += 1
    control_word(FLUSHED)
    while going > 0:
        total += going
        for lane in range(lanes):
            x[0, lane] = numbers[lane, SHIFT]
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(lanes):
            if whole[lane, TASK] == IDLE:
                continue
            count = int(0.5 * (unknowns - y[0, lane]) + 0.25) - free
            end = advance(lane, count, whole, numbers, known, kept, x, y, units, twists, turn)
            if end == 0:
                continue
            pose = whole[lane, POSE]
            if end > 0:
                flags[pose, 0] = 1
            put(lane, pose, known, found, flags)
            next_pose(lane, whole, numbers, known, kept, x, rows, own, which, changes, share)
            if whole[lane, TASK] == IDLE:
                going -= 1
    control_word(USUAL)
    return total
