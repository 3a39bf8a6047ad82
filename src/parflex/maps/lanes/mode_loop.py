"""Machine code around the compiled step: lanes that each go their own way through modes and poses.

What steps take of a pose is made when a lane comes to it, for as many of its next poses as there are lanes: so it is in
the cache when it is needed.

Inputs x (s, b, entries of the pose) and outputs y (signs, off, weight, inner, twist, b) lie in one block, so that the b
that comes out of a step stands where that of the next one goes in; s is written anew before each step.
"""

from __future__ import annotations

import numpy as np

from parflex.codegen.loop_compiler import unrolled_range
from parflex.codegen.loop_functions import deciding, inner
from parflex.codegen.loop_types import CompiledRecord
from parflex.maps.lanes.lane_calls import FLUSHED, USUAL, call_lanes, control_word
from parflex.maps.lanes.lane_states import (
    AGAIN,
    FOUND,
    HIGH,
    IDLE,
    INFINITE,
    LANES,
    LAST,
    LEFT,
    LOOKED_AT,
    LOW,
    NONE,
    NOTHING,
    NUMBER,
    PINNED,
    POLE,
    POSE,
    READY,
    SEARCH,
    SHIFT,
    TASK,
    WARM,
    WIDE,
    LaneStates,
    at,
    of,
)
from parflex.maps.lanes.lane_steps import go_on, narrow
from parflex.maps.lanes.mode_search import advance, aim_at, look, take

Array = np.ndarray
CLOSE = 1e-5  # relative distance of modes whose shapes are not told apart
TURNED = 1e-8  # angle by which a shape may be off: a millionth of the platform's part, which may be a hundredth of it
WORTH_SHARING = 2  # poses that one lane takes over from another: its vectors are those of other poses
WIDEST = 64.0  # times the last mode: where modes of inner nodes are counted first, which must lie above


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
    which, given, varied, number = states.which, poses.given, poses.varied, states.whole[at(NUMBER, lane)]
    for k in range(LANES):
        pose = which[min(number + k, len(which) - 1)]
        for n in range(len(poses.placed)):
            given[poses.placed[n], k] = poses.q[pose, poses.positions[n]]
        design = poses.designs[pose]
        for n in range(len(varied)):
            given[varied[n], k] = poses.values[design, poses.taken[n]]
    size = 8 * poses.entries.shape[1] * LANES  # bytes of what a lane has
    call_lanes(poses.address, poses.places[0], poses.places[1] + size * lane, LANES, poses.places[2])
    states.whole[at(READY, lane)] = 0


@inner
def put_entries(lane: int, poses: PoseEntries, states: LaneStates) -> None:
    """Give a step what it takes of the pose that is next in a lane."""
    ready, entries, x, first = states.whole[at(READY, lane)], poses.entries, states.x, 1 + states.size
    for k in unrolled_range(entries.shape[1]):
        x[at(first + k, lane)] = entries[lane, k, ready]
    states.whole[at(READY, lane)] = ready + 1


@inner
def begin(lane: int, states: LaneStates) -> None:
    """A lane is at its next pose; a share of what its last modes were off their guesses is expected again."""
    whole, known, changes, modes = states.whole, states.known, states.changes, states.modes
    last, pose = whole[at(POSE, lane)], states.which[whole[at(NUMBER, lane)]]
    whole[at(POSE, lane)] = pose
    for k in range(modes + 1):
        known[of(k, LOW, lane)], known[of(k, HIGH, lane)] = 0.0, INFINITE
        known[of(k, FOUND, lane)], known[of(k, PINNED, lane)] = NONE, 0.0
    for k in range(modes):
        off = known[of(k, WARM, lane)]
        if last >= 0:
            off = off / changes[last, k]
        known[of(k, WARM, lane)] = changes[pose, k] * (off + (1.0 - states.share) * (1.0 - off))
    whole[at(LOOKED_AT, lane)], whole[at(AGAIN, lane)] = 0, 0
    take(lane, 0, states)
    aim_at(lane, 0, states)
    if states.numbers[at(POLE, lane)] < INFINITE:
        states.numbers[at(POLE, lane)] = 0.0
        look(lane, states.numbers[at(WIDE, lane)] * known[of(modes - 1, WARM, lane)], states)


@inner
def share_rest(lane: int, states: LaneStates) -> bool:
    """Give a lane that is at its end half of what the lane with most poses has left; False where that is little."""
    whole, other, most = states.whole, lane, 0
    for k in range(LANES):
        left = whole[at(LAST, k)] - whole[at(NUMBER, k)]
        if left > most:
            other, most = k, left
    if most // 2 < WORTH_SHARING:
        return False
    whole[at(LAST, lane)] = whole[at(LAST, other)]
    whole[at(LAST, other)] -= most // 2
    whole[at(NUMBER, lane)], whole[at(READY, lane)] = whole[at(LAST, other)], LANES
    return True


@inner
def put(lane: int, proved: bool, states: LaneStates) -> None:
    """What a lane found at its pose: modes, and whether two are so close that their shapes are any two of a plane."""
    known, found, flags, pose = states.known, states.found, states.flags, states.whole[at(POSE, lane)]
    if proved:
        flags[pose, 0] = 1
    for k in range(states.modes):
        found[pose, k] = known[of(k, FOUND, lane)]
        if known[of(k, PINNED, lane)] > 0.0:
            flags[pose, 1] = 1
        if k > 0 and known[of(k, FOUND, lane)] <= (1 + CLOSE) * known[of(k - 1, FOUND, lane)]:
            flags[pose, 1] = 1


@deciding
def find_modes(address: int, places: Array, poses: PoseEntries, states: LaneStates) -> int:
    """Squared frequencies and twists of the platform into the states of lanes; flags: proved, close. Steps taken.

    The program of a step has this address, and its inputs, outputs and workspace these places.
    """
    count, total, going = len(states.which), 0, 0
    whole, numbers = states.whole, states.numbers
    control_word(FLUSHED)
    for lane in range(LANES):
        whole[at(NUMBER, lane)], whole[at(POSE, lane)] = count * lane // LANES, -1
        whole[at(LAST, lane)] = count * (lane + 1) // LANES
        whole[at(TASK, lane)] = SEARCH
        prepare(lane, poses, states)
        put_entries(lane, poses, states)
        if whole[at(NUMBER, lane)] < whole[at(LAST, lane)]:
            begin(lane, states)
            going += 1
        else:  # any numbers do
            whole[at(TASK, lane)] = IDLE
            take(lane, 0, states)
            numbers[at(SHIFT, lane)] = states.known[of(0, WARM, lane)]
    while going > 0:
        total += going
        for lane in range(LANES):
            states.x[lane] = numbers[at(SHIFT, lane)]
        call_lanes(address, places[0], places[1], LANES, places[2])
        narrow(states)
        go_on(states)
        for lane in range(LANES):
            if whole[at(LEFT, lane)] == NOTHING or whole[at(TASK, lane)] == IDLE:
                continue
            end = advance(lane, states)
            if end == 0:
                continue
            put(lane, end > 0, states)
            whole[at(NUMBER, lane)] += 1
            whole[at(TASK, lane)] = SEARCH
            if whole[at(NUMBER, lane)] >= whole[at(LAST, lane)] and not share_rest(lane, states):
                whole[at(TASK, lane)] = IDLE
                going -= 1
                continue
            if whole[at(READY, lane)] >= LANES:
                prepare(lane, poses, states)
            put_entries(lane, poses, states)
            begin(lane, states)
    control_word(USUAL)
    return total
