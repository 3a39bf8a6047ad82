"""Verification of modes: radii of Rayleigh quotients and Sturm counts that together prove a pose.

During the search a mode is claimed by its residual and the likely distance of its neighbours. Around each claim lies an
eigenvalue, within a radius given by the residual alone. If these intervals are disjoint, and the count below a shift
above them equals their number, each holds one eigenvalue and no other lies between. The distances between them are then
known, and with them the errors by theory (71), (72).
"""

from __future__ import annotations

import math

from parflex.codegen.loop_functions import inner
from parflex.maps.simd import (
    AT,
    CAME,
    FOUND,
    HIGH,
    INFINITE,
    LOW,
    NONE,
    PINNED,
    POLE,
    RADIUS,
    WEIGHT,
    LaneStates,
    lane_index,
    mode_index,
)

EXACT = 2e-10  # relative error of a squared frequency that is accepted
ABOVE = 1e-8  # relative distance above the last mode at which all are counted, at least
SETTLED = 1e-11  # relative residual at which a shape is good whatever lies beside it
SHAPE_LENGTH_TOLERANCE = 3e-6  # relative error of the length of a shape that is accepted: N is taken at the shift
ROUNDED = 1e-14  # relative error of the terms of a squared residual
NEXT_MODE_MARGIN = 1.5  # times the distance to the next mode that the claim of the last one needs


@inner
def squared_residual(rho: float, shift: float, weight: float, pole: float, before: float) -> float:
    """Theory (71): b has the length one by the N of its own shift, `before`; inner nodes have no mode below `pole`."""
    off, change = rho - shift, 1.0
    if pole < INFINITE and before > shift:
        change = ((pole - shift) / (pole - before)) ** 2
    return max(weight - off * off, 0.0) + ROUNDED * off * off + (change - 1.0) * weight


@inner
def error_bound(rho: float, shift: float, error: float, pole: float) -> float:
    """Theory (72): how far the mode of the robot is from a quotient whose error in the pencil of the shift is known."""
    far = 1.1 * (abs(rho - shift) + error)
    if not far <= 0.1 * (pole - shift):
        return INFINITE
    return error + far * far / (pole - shift - far)


@inner
def residual_radius(rho: float, shift: float, weight: float, pole: float, before: float) -> float:
    """Within this distance of a Rayleigh quotient lies a mode, whatever is beside it."""
    if pole <= max(shift, before):
        return INFINITE
    return error_bound(rho, shift, math.sqrt(squared_residual(rho, shift, weight, pole, before)), pole)


@inner
def is_exact(
    rho: float, shift: float, weight: float, lower: float, upper: float, pole: float, before: float, turn: float
) -> bool:
    """Whether a Rayleigh quotient is a mode, if its neighbours are not between `lower` and `upper`: theory (71), (72).

    `turn` is the angle by which its shape may be off.
    """
    if pole <= max(shift, before):
        return False
    off = rho - shift
    if pole == INFINITE:  # the same without inner nodes, where no root is needed
        gap = min(rho - lower, upper - rho)
        rest = max(weight - off * off, 0.0) + ROUNDED * off * off
        widest, within = max(turn * gap, SETTLED * rho), EXACT * rho
        if turn < INFINITE and not rest <= widest * widest:
            return False
        return rest <= within * max(within, gap)
    shrunk = (pole - shift) / (pole - lower)
    gap = min((shift - lower) * shrunk + min(off, off * shrunk), upper - rho)
    rest = squared_residual(rho, shift, weight, pole, before)
    error = math.sqrt(rest)
    if turn < INFINITE:  # what (72) adds is part of the residual at the mode itself, where N has grown or shrunk, too
        turned = error_bound(rho, shift, error, pole) > max(turn * gap, SETTLED * rho)
        if turned or abs(off) > SHAPE_LENGTH_TOLERANCE * (pole - shift):
            return False
    if gap > 0.0:
        error = min(error, rest / gap)
    return error_bound(rho, shift, error, pole) <= EXACT * rho


@inner
def shift_above(lane: int, states: LaneStates) -> float:
    """A shift above the last mode at which its claim wants all of them counted."""
    known, last = states.known, states.modes - 1
    rho = known[mode_index(last, FOUND, lane)]
    least = rho * (1 + ABOVE)
    if known[mode_index(last, PINNED, lane)] > 0.0:
        return least
    shift, weight, before = (
        known[mode_index(last, AT, lane)],
        known[mode_index(last, WEIGHT, lane)],
        known[mode_index(last, CAME, lane)],
    )
    rest = squared_residual(rho, shift, weight, states.numbers[lane_index(POLE, lane)], before)
    residual = math.sqrt(rest)
    room = 0.0 if residual <= SETTLED * rho else max(residual / states.turn, 2.0 * rest / (EXACT * rho))
    return max(least, rho + known[mode_index(last, RADIUS, lane)] + NEXT_MODE_MARGIN * room)


@inner
def weakest_mode(lane: int, states: LaneStates) -> int:
    """The first mode whose claim does not hold; -1 where all do."""
    known, modes, pole = states.known, states.modes, states.numbers[lane_index(POLE, lane)]
    for k in range(modes):
        rho = known[mode_index(k, FOUND, lane)]
        if not (known[mode_index(k, LOW, lane)] * (1 - ABOVE) <= rho <= known[mode_index(k, HIGH, lane)] * (1 + ABOVE)):
            return k
        if known[mode_index(k, PINNED, lane)] > 0.0:
            continue
        lower, upper = 0.0, known[mode_index(modes, LOW, lane)]
        if k > 0:
            lower = known[mode_index(k - 1, FOUND, lane)] + known[mode_index(k - 1, RADIUS, lane)]
        if k + 1 < modes:
            upper = known[mode_index(k + 1, FOUND, lane)] - known[mode_index(k + 1, RADIUS, lane)]
        shift, weight, before = (
            known[mode_index(k, AT, lane)],
            known[mode_index(k, WEIGHT, lane)],
            known[mode_index(k, CAME, lane)],
        )
        if not is_exact(rho, shift, weight, lower, upper, pole, before, states.turn):
            return k
    return -1


@inner
def open_count(lane: int, states: LaneStates) -> float:
    """A shift whose count is missing in the proof; zero if nothing is, not a number if the counts say otherwise.

    Modes that are apart each have an eigenvalue by their residuals, so that it is enough to count them all. Modes that
    are too close for that are counted from below and above.
    """
    known, modes = states.known, states.modes
    for k in range(modes):
        here = known[mode_index(k, FOUND, lane)]
        if not (
            known[mode_index(k, LOW, lane)] * (1 - ABOVE) <= here <= known[mode_index(k, HIGH, lane)] * (1 + ABOVE)
        ):
            return NONE
        if k == modes - 1:
            break
        following = known[mode_index(k + 1, FOUND, lane)]
        radii = known[mode_index(k, RADIUS, lane)] + known[mode_index(k + 1, RADIUS, lane)]
        if following - here > max(4 * EXACT * following, radii):
            continue
        if known[mode_index(k, LOW, lane)] < here * (1 - 2 * ABOVE):
            return here * (1 - ABOVE)
        if known[mode_index(k + 1, HIGH, lane)] > following * (1 + 2 * ABOVE):
            return following * (1 + ABOVE)
    above = known[mode_index(modes - 1, FOUND, lane)] * (1 + ABOVE)
    return 0.0 if known[mode_index(modes, LOW, lane)] >= above else above
