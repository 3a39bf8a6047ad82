"""What is known of modes: radii of Rayleigh quotients, counts, and when both together prove a pose.

A mode is claimed while it is searched for, by its residual and where its neighbours are likely to be. Around each
claim lies an eigenvalue, within a radius that its residual alone gives. If these intervals are apart, and as many modes
are counted below a shift above them all, each holds one eigenvalue and no other is between: then the distances between
them are known, and with them the errors by theory (71), (72).
"""

from __future__ import annotations

import math

import numpy as np

from parflex.simulation.integrators.jit import inner

Array = np.ndarray
INFINITE, NONE = math.inf, math.nan
EXACT = 2e-10  # relative error of a squared frequency that is accepted
ABOVE = 1e-8  # relative distance above the last mode at which all are counted, at least
SETTLED = 1e-11  # relative residual at which a shape is good whatever lies beside it
SIZED = 3e-6  # relative error of the length of a shape that is accepted: N is taken at the shift
ROUNDED = 1e-14  # relative error of the terms of a squared residual
ROOM = 1.5  # times the distance to the next mode that the claim of the last one needs
# of a mode of a lane: ends of its interval, what was found and expected, and its claim: its shift, 1 / w.N w, shift of
# its b, how far a mode is at most, and whether counts pinned it
LOW, HIGH, FOUND, WARM, AT, WEIGHT, CAME, RADIUS, PINNED, FIELDS = range(10)


@inner
def squared_residual(rho: float, shift: float, weight: float, pole: float, before: float) -> float:
    """Theory (71): b has the length one by the N of its own shift, `before`; inner nodes have no mode below `pole`."""
    off, change = rho - shift, 1.0
    if pole < INFINITE and before > shift:
        change = ((pole - shift) / (pole - before)) ** 2
    return max(weight - off * off, 0.0) + ROUNDED * off * off + (change - 1.0) * weight


@inner
def reach(rho: float, shift: float, error: float, pole: float) -> float:
    """Theory (72): how far the mode of the robot is from a quotient whose error in the pencil of the shift is known."""
    far = 1.1 * (abs(rho - shift) + error)
    if not far <= 0.1 * (pole - shift):
        return INFINITE
    return error + far * far / (pole - shift - far)


@inner
def radius(rho: float, shift: float, weight: float, pole: float, before: float) -> float:
    """Within this distance of a Rayleigh quotient lies a mode, whatever is beside it."""
    if pole <= max(shift, before):
        return INFINITE
    return reach(rho, shift, math.sqrt(squared_residual(rho, shift, weight, pole, before)), pole)


@inner
def exact(
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
        turned = reach(rho, shift, error, pole) > max(turn * gap, SETTLED * rho)
        if turned or abs(off) > SIZED * (pole - shift):
            return False
    if gap > 0.0:
        error = min(error, rest / gap)
    return reach(rho, shift, error, pole) <= EXACT * rho


@inner
def top(lane: int, turn: float, pole: float, known: Array) -> float:
    """A shift above the last mode at which its claim wants all of them counted."""
    last = known.shape[1] - 2
    rho = known[lane, last, FOUND]
    least = rho * (1 + ABOVE)
    if known[lane, last, PINNED] > 0.0:
        return least
    shift, weight, before = known[lane, last, AT], known[lane, last, WEIGHT], known[lane, last, CAME]
    rest = squared_residual(rho, shift, weight, pole, before)
    residual = math.sqrt(rest)
    room = 0.0 if residual <= SETTLED * rho else max(residual / turn, 2.0 * rest / (EXACT * rho))
    return max(least, rho + known[lane, last, RADIUS] + ROOM * room)


@inner
def weakest(lane: int, turn: float, pole: float, known: Array) -> int:
    """The first mode whose claim does not hold; -1 where all do."""
    modes = known.shape[1] - 1
    for k in range(modes):
        rho = known[lane, k, FOUND]
        if not (known[lane, k, LOW] * (1 - ABOVE) <= rho <= known[lane, k, HIGH] * (1 + ABOVE)):
            return k
        if known[lane, k, PINNED] > 0.0:
            continue
        lower, upper = 0.0, known[lane, modes, LOW]
        if k > 0:
            lower = known[lane, k - 1, FOUND] + known[lane, k - 1, RADIUS]
        if k + 1 < modes:
            upper = known[lane, k + 1, FOUND] - known[lane, k + 1, RADIUS]
        shift, weight, before = known[lane, k, AT], known[lane, k, WEIGHT], known[lane, k, CAME]
        if not exact(rho, shift, weight, lower, upper, pole, before, turn):
            return k
    return -1


@inner
def open_count(lane: int, known: Array) -> float:
    """A shift whose count is missing in the proof; zero if nothing is, not a number if the counts say otherwise.

    Modes that are apart each have an eigenvalue by their residuals, so that it is enough to count them all. Modes that
    are too close for that are counted from below and above.
    """
    modes = known.shape[1] - 1
    for k in range(modes):
        here = known[lane, k, FOUND]
        if not (known[lane, k, LOW] * (1 - ABOVE) <= here <= known[lane, k, HIGH] * (1 + ABOVE)):
            return NONE
        if k == modes - 1:
            break
        following = known[lane, k + 1, FOUND]
        radii = known[lane, k, RADIUS] + known[lane, k + 1, RADIUS]
        if following - here > max(4 * EXACT * following, radii):
            continue
        if known[lane, k, LOW] < here * (1 - 2 * ABOVE):
            return here * (1 - ABOVE)
        if known[lane, k + 1, HIGH] > following * (1 + 2 * ABOVE):
            return following * (1 + ABOVE)
    above = known[lane, modes - 1, FOUND] * (1 + ABOVE)
    return 0.0 if known[lane, modes, LOW] >= above else above
