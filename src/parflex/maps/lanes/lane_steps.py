"""What all lanes do alike after a step: counts narrow intervals, claims are judged, and most lanes go on.

It is done for all lanes side by side, without branches: which way a lane goes is not foreseen, and a processor that
guesses wrong loses more time than all of this takes. Lanes that are left go their own way by `mode_search`.
"""

from __future__ import annotations

from parflex.codegen.loop_compiler import simd_range
from parflex.codegen.loop_functions import inner
from parflex.maps.lanes.lane_states import (
    ABOVE,
    BEFORE,
    BELOW,
    CLAIM,
    COUNT,
    DECIDE,
    FOUND,
    FREE,
    HIGH,
    INFINITE,
    INNER,
    LANES,
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
    NOTHING,
    OFF,
    OPEN,
    OWN_HIGH,
    OWN_LOW,
    POLE,
    SEARCH,
    SHIFT,
    SIGNS,
    SINCE,
    STEP,
    TASK,
    UPPER,
    WARM,
    LaneStates,
    at,
    of,
)
from parflex.maps.lanes.mode_proof import exact

NARROW = 1e-10  # relative width of an interval that is as good as its root
OFFSET = 1e-7  # relative distance of the next shift above a Rayleigh quotient: at a mode itself its count is rounding
NEAREST = 1.05  # times a mode: how far above it modes of inner nodes must be known to lie
LOOKS = 6  # at a pose
PATIENCE = 8  # steps after which halving takes turns with Rayleigh quotients
LOST = 2  # steps with one vector after which it is given up where it goes to a mode that is not missing
COMING = 1e-3  # relative residual of a vector that is about to be a mode
CLOSEST = 1e-3  # relative distance of modes that is assumed, at least


@inner
def is_coming(lane: int, rho: float, since: int, states: LaneStates) -> bool:
    """Whether a vector is about to be a mode."""
    off, weight = states.y[at(OFF, lane)], states.y[at(LENGTH, lane)]
    return since > 1 and weight - off * off < COMING * COMING * rho * rho


@inner
def likely(lane: int, near: int, rho: float, states: LaneStates) -> bool:
    """Whether a mode is exact if the next ones are about where they are expected."""
    numbers, turn = states.numbers, states.turn
    shift, weight, pole = numbers[at(SHIFT, lane)], states.y[at(LENGTH, lane)], numbers[at(POLE, lane)]
    lower, upper, free = numbers[at(BELOW, lane)], numbers[at(ABOVE, lane)], numbers[at(FREE, lane)]
    lower, upper = lower if near > 0 else 0.0, upper if near + 1 < states.modes else rho * (1 + 2.0 * free)
    gap = max(min(rho - lower, upper - rho), CLOSEST * rho)
    inside = numbers[at(NEAR_LOW, lane)] <= rho * (1 + OFFSET) and rho <= numbers[at(NEAR_HIGH, lane)] * (1 + OFFSET)
    inside = inside and abs(rho - shift) <= max(gap, 1e-5 * rho)
    return inside and exact(rho, shift, weight, rho - gap, rho + gap, pole, numbers[at(BEFORE, lane)], turn)


@inner
def pair(first: bool, a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """The first two of four numbers, or the others."""
    return a if first else c, b if first else d


@inner
def narrow(states: LaneStates) -> None:
    """Take in counts: they say of each mode on which side of the shift it is.

    On the way, what is known of the mode that a lane looks for and of that next to its quotient is put side by side:
    numbers from other places for each lane would take longer than all modes.
    """
    whole, numbers, known, y = states.whole, states.numbers, states.known, states.y
    for lane in simd_range(LANES):
        usual = y[at(LENGTH, lane)] > 0.0 and abs(y[at(OFF, lane)]) < INFINITE  # else a pivot was zero
        counted = usual and whole[at(TASK, lane)] != LOOK  # a count far above would have intervals halved far away
        shift, pole = numbers[at(SHIFT, lane)], numbers[at(POLE, lane)]
        count = int(0.5 * (states.unknowns - y[at(SIGNS, lane)]) + 0.25) - states.free
        whole[at(COUNT, lane)] = count
        whole[at(NEAR, lane)] = count if y[at(OFF, lane)] >= 0.0 else count - 1
        whole[at(OPEN, lane)] = 0
        numbers[at(UPPER, lane)] = shift if counted else INFINITE
        numbers[at(LOWER, lane)] = shift if counted else 0.0
        numbers[at(POLE, lane)] = shift if usual and y[at(INNER, lane)] == 0.0 and shift > pole else pole
    for k in range(states.modes + 1):
        asked = 1 if k < states.modes else 0
        for lane in simd_range(LANES):
            count, near, mode = whole[at(COUNT, lane)], whole[at(NEAR, lane)], whole[at(MODE, lane)]
            upper, lower, open_mode = numbers[at(UPPER, lane)], numbers[at(LOWER, lane)], whole[at(OPEN, lane)]
            high, low = known[of(k, HIGH, lane)], known[of(k, LOW, lane)]
            found, warm = known[of(k, FOUND, lane)], known[of(k, WARM, lane)]
            own_low, own_high = numbers[at(OWN_LOW, lane)], numbers[at(OWN_HIGH, lane)]
            near_low, near_high = numbers[at(NEAR_LOW, lane)], numbers[at(NEAR_HIGH, lane)]
            below, above = numbers[at(BELOW, lane)], numbers[at(ABOVE, lane)]
            high, low = min(high, upper if k < count else INFINITE), max(low, 0.0 if k < count else lower)
            missing = found != found
            known[of(k, HIGH, lane)], known[of(k, LOW, lane)] = high, low
            whole[at(OPEN, lane)] = asked if k == near and missing else open_mode
            numbers[at(OWN_LOW, lane)], numbers[at(OWN_HIGH, lane)] = pair(k == mode, low, high, own_low, own_high)
            numbers[at(NEAR_LOW, lane)], numbers[at(NEAR_HIGH, lane)] = pair(k == near, low, high, near_low, near_high)
            numbers[at(BELOW, lane)] = (min(warm, high) if missing else found) if k + 1 == near else below
            numbers[at(ABOVE, lane)] = (max(warm, low) if missing else found) if k - 1 == near else above


@inner
def go_on(states: LaneStates) -> None:
    """Lanes whose next shift is their Rayleigh quotient go there; of the others it is said what is left to do."""
    whole, numbers, y = states.whole, states.numbers, states.y
    for lane in simd_range(LANES):
        off, weight, shift = y[at(OFF, lane)], y[at(LENGTH, lane)], numbers[at(SHIFT, lane)]
        step, since, near = whole[at(STEP, lane)] + 1, whole[at(SINCE, lane)] + 1, whole[at(NEAR, lane)]
        searching = whole[at(TASK, lane)] == SEARCH and weight > 0.0 and abs(off) < INFINITE
        rho, open_mode = shift + off, whole[at(OPEN, lane)] > 0
        guess = rho * (1 + OFFSET)
        claim = searching and open_mode and is_coming(lane, rho, since, states) and likely(lane, near, rho, states)
        low, high = numbers[at(OWN_LOW, lane)], numbers[at(OWN_HIGH, lane)]
        pinned = high - low <= NARROW * high and high < INFINITE
        low, high = pair(open_mode, numbers[at(NEAR_LOW, lane)], numbers[at(NEAR_HIGH, lane)], low, high)
        pole, looks, before = numbers[at(POLE, lane)], whole[at(LOOKED_AT, lane)], numbers[at(BEFORE, lane)]
        seen = pole >= NEAREST * rho or looks >= LOOKS
        goes = searching and not claim and not pinned and low < guess < high and seen
        goes = goes and step < PATIENCE and (open_mode or since < LOST)
        whole[at(LEFT, lane)] = NOTHING if goes else CLAIM if claim else DECIDE
        whole[at(STEP, lane)] = step if goes else step - 1
        whole[at(SINCE, lane)] = since if goes else since - 1
        numbers[at(BEFORE, lane)] = shift if goes else before
        numbers[at(SHIFT, lane)] = guess if goes else shift
