"""Stiction: joints that stick and slide.

The friction effort of a joint is an input of the model. At an event the efforts of joints at zero velocity are found;
between events the effort of a sticking joint is updated: an added inertia, another input, holds the joint except for a
millionth of its acceleration, and the force on this inertia is added to the effort, theory (57).

Accelerations of joints at zero velocity are affine in their friction efforts, `a = a0 - W lam`, from one call of the
model without these and one for each joint. Friction minimises `lam W lam/2 - a0 lam` within its bounds; of all such
efforts those of least `lam W_jj lam` are taken, a norm that compares N and N m by the motion that they cause. A joint
that its own effort does not move, as at a dead point, slides on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, inner
from parflex.integrators.common import STATIC, Count, copy, evaluate, note_event

Array = np.ndarray
STUCK, FORTH, BACK = 1.0, 2.0, 3.0  # what a joint does, in Work.gates
COULOMB = 0  # column of System.friction, before STATIC

PLACE, INERTIA, FRICTION_HELD = range(3)  # rows of Work.stuck: where a joint stuck, what inertia and friction hold it
HOLDING_INERTIA = 1e6  # inertia that holds a joint, of that which it moves: efforts are found to as many digits at once
AT_REST = 10.0  # of the slack of rates
KEPT = 1e5  # of it, of a joint that sticks: bodies that vibrate make it drift, and what impulses leave is more
PASSES = 1e4  # of it, in a second: a joint that feels no friction goes on so; a slower one is seen by its rate
RATE_DRIFT, DRIFT, FAR = 1e-6, 1e-3, 1e8  # of the slack: what is corrected, and what is no drift
EXCESS = 1e-8  # of the static effort, by which a joint that sticks may be loaded more
PULL, SCALE, LOW, HIGH, SHARE, CHANGE, CENTRE, STATE = range(8)  # rows of Work.split, of each joint that may stick
SLIDES, NO_RESPONSE, BOUND, FREE = 0.0, 1.0, 2.0, 3.0  # states: moves, feels no friction, at a bound, inside of them
MIN_RESPONSE = 1e-12  # of its acceleration: a joint that friction moves less does not feel it
CLEAR = 1e-3  # of it: what is moved less is pushed once more, as far, since rounding is of the acceleration
EVEN = 1e-5  # of the response: takes the least of many efforts, to eleven digits; what it leaves open goes down by
ROUNDS = 5  # this in each of so many rounds, from the efforts of the last
NOTHING = 1e-12  # of bounds, and of pulls: rounding
DEPENDENT_RESPONSE = 1e-7  # of a response: what is less is that of a joint that moves with others alone
MIN_AMBIGUOUS, MAX_AMBIGUOUS = 1e-11, 3e-4  # of a response: what is between is neither nothing nor clear; see docs
MOVES = 1e-10  # of a bound: a joint that its bound does not hold moves


@inner
def friction_gaps(system: Any, work: Any, row: int) -> None:
    """Evaluate the gaps of joints in stiction (margin until rest or break-away) and their rates."""
    friction, gates, gaps, slack, count = system.friction, work.gates, work.gaps, system.slack, len(system.friction)
    first, x, y = len(gates) - 2 * count, work.x[row], work.y[row]
    for j in range(count):
        k, rate = first + 2 * j, y[system.positions + system.rubbing[j]]
        effort, acceleration = x[system.gate_x + k], y[system.outputs - count + j]
        if gates[k] == STUCK and x[system.gate_x + k + 1] == 0.0:  # nothing but other joints holds it: it is to rest
            limit = KEPT if effort != 0.0 else AT_REST
            gaps[2 * k] = 2 * limit * slack[k] - abs(rate)
            gaps[2 * k + 1] = -acceleration if rate > 0.0 else acceleration
        elif gates[k] == STUCK:
            gaps[2 * k] = slack[k] / EXCESS * (1.0 - abs(effort) / friction[j, STATIC])
            gaps[2 * k + 1] = 0.0
        else:
            side = 1.0 if gates[k] == FORTH else -1.0
            gaps[2 * k], gaps[2 * k + 1] = side * rate, side * acceleration


@inner
def _rests(system: Any, work: Any, row: int, j: int) -> bool:
    """Return whether a joint is at rest, or drifts while it sticks."""
    limit = KEPT if work.stuck[FRICTION_HELD, j] != 0.0 else AT_REST
    k = len(work.gates) - 2 * (len(system.friction) - j)
    return abs(work.y[row, system.positions + system.rubbing[j]]) <= limit * system.slack[k]


@inner
def settle_friction(system: Any, work: Any, row: int, forced: bool, event_time: float) -> int:
    """Find which joints at rest stick, at the state of a row of the work; return how many change.

    All carry at most their static efforts; the bound of joints that move nevertheless falls to the effort of sliding,
    one after the other. `forced`: a joint at its limit is to slide.
    """
    count, friction, split = len(system.friction), system.friction, work.split
    first, first_x = len(work.gates) - 2 * count, system.gate_x + len(work.gates) - 2 * count
    copy(work.x[row], work.probe_x)
    for j in range(count):
        resting = _rests(system, work, row, j)
        side = 1.0 if work.y[row, system.positions + system.rubbing[j]] > 0.0 else -1.0
        work.probe_x[first_x + 2 * j] = 0.0 if resting else side * friction[j, COULOMB]
        work.probe_x[first_x + 2 * j + 1] = 0.0
        split[STATE, j] = FREE if resting else SLIDES
    find_responses(system, work, first_x, system.outputs - count)
    for j in range(count):
        most = friction[j, STATIC] * (1.0 - EXCESS if forced else 1.0 + EXCESS) * split[SCALE, j]
        split[LOW, j], split[HIGH, j] = -most, most
    for _ in range(2 * count + 1):
        distribute_efforts(work)
        falls, most = -1, 0.0
        for j in range(count):
            least = friction[j, COULOMB] * split[SCALE, j]
            bound = split[HIGH, j] if side_of(split, j) > 0.0 else -split[LOW, j]
            if breaks_away(work, j) and bound > least * (1.0 + 2 * EXCESS) and abs(left_over(work, j)) / bound > most:
                falls, most = j, abs(left_over(work, j)) / bound
        if falls < 0:
            break
        least = friction[falls, COULOMB] * split[SCALE, falls]
        if side_of(split, falls) > 0.0:
            split[HIGH, falls] = least
        else:
            split[LOW, falls] = -least
    find_keeping(work)
    turned = 0
    for j in range(count):
        turned += _take(system, work, row, j, first + 2 * j, first_x, event_time)
    evaluate(system, work, work.x[row], work.y[row])
    return turned


@inner
def _take(system: Any, work: Any, row: int, j: int, k: int, first_x: int, event_time: float) -> int:
    """Let one joint do what was found; 1 if it does something else than before, which is noted, or begins to slide."""
    split, state, before = work.split, work.split[STATE, j], work.gates[k]
    static, previous_inertia = system.friction[j, STATIC], work.stuck[INERTIA, j]
    direction = work.y[row, system.positions + system.rubbing[j]]
    sticks = state == FREE
    if state == NO_RESPONSE:
        direction = left_over(work, j)
        sticks = abs(direction) <= PASSES * system.slack[k]
    elif state == BOUND:
        direction = side_of(split, j)
        sticks = not breaks_away(work, j)
    side = 1.0 if direction > 0.0 else -1.0
    effort, inertia, mode = side * system.friction[j, COULOMB], 0.0, FORTH if side > 0.0 else BACK
    if sticks:
        mode = STUCK
        effort = 0.0 if state == NO_RESPONSE else max(-static, min(static, split[SHARE, j] / split[SCALE, j]))
        if state == FREE:
            inertia = previous_inertia if before == STUCK else 0.0
            inertia = inertia if inertia > 0.0 else HOLDING_INERTIA / split[SCALE, j] ** 2
        if before != STUCK:
            work.stuck[PLACE, j] = work.y[row, system.rubbing[j]]
    work.gates[k], work.stuck[INERTIA, j] = mode, inertia
    work.stuck[FRICTION_HELD, j] = 1.0 if sticks and state != NO_RESPONSE else 0.0
    for i in range(len(work.x)):  # in all stages
        work.x[i, first_x + 2 * j], work.x[i, first_x + 2 * j + 1] = effort, inertia
    if mode != before or (mode != STUCK and _rests(system, work, row, j)):
        note_event(work, k, mode, event_time, work.y[row, system.rubbing[j]])
    return 1 if mode != before or inertia != previous_inertia else 0


@inner
def unsettled(system: Any, work: Any, row: int) -> bool:
    """Return whether joints are settled anew behind any step: one carries its largest friction, or moves."""
    count, is_unsettled = len(system.friction), False
    first = len(work.gates) - 2 * count
    for j in range(count):
        if work.gates[first + 2 * j] == STUCK:
            rate = abs(work.y[row, system.positions + system.rubbing[j]])
            bears_all = work.stuck[FRICTION_HELD, j] != 0.0 and work.stuck[INERTIA, j] == 0.0
            is_unsettled = is_unsettled or bears_all or not rate < FAR * system.slack[first + 2 * j]
    return is_unsettled


@inner
def keep_at_rest(system: Any, work: Any, row: int, q: Array, qd: Array) -> None:
    """Remove the drift of sticking joints from a state: rates first, then positions, by the motion of their friction.

    The inertia that holds the joints gives the least change in the sense of kinetic energy.
    """
    count, nq, y = len(system.friction), system.positions, work.y[row]
    first, first_x = len(work.gates) - 2 * count, system.gate_x + len(work.gates) - 2 * count
    sticks = False
    for j in range(count):
        sticks = sticks or work.gates[first + 2 * j] == STUCK
    if not sticks:
        return
    # with the last efforts of `hold`, which are not in the outputs yet: what they change is no drift
    call_model(system.address, work.x[row].ctypes.data, y.ctypes.data)
    for level in range(2):
        largest_drift = 0.0
        copy(work.x[row], work.probe_x)
        for j in range(count):
            if work.gates[first + 2 * j] == STUCK:
                p = system.rubbing[j]
                drift = y[nq + p] if level == 0 else y[p] - work.stuck[PLACE, j]
                largest_drift = max(largest_drift, abs(drift) / system.slack[first + 2 * j])
                work.probe_x[first_x + 2 * j] += work.stuck[INERTIA, j] * drift
        if not (RATE_DRIFT if level == 0 else DRIFT) < largest_drift < FAR:
            continue
        call_model(system.address, work.probe_x.ctypes.data, work.probe_y.ctypes.data)
        if level == 0:
            for k in system.free:
                qd[k] += work.probe_y[2 * nq + k] - y[2 * nq + k]
            continue
        for k in range(system.rates):
            work.probe_x[nq + k] = 0.0
        for k in system.free:
            work.probe_x[nq + k] = work.probe_y[2 * nq + k] - y[2 * nq + k]
        call_model(system.address, work.probe_x.ctypes.data, work.probe_y.ctypes.data)
        for p in range(nq):
            q[p] += work.probe_y[nq + p]


@inner
def find_responses(system: Any, work: Any, first_x: int, first_y: int) -> None:
    """Find accelerations of joints at rest and responses to their efforts, scaled; `probe_x` has no efforts."""
    count, split, holds, x, y = len(system.friction), work.split, work.holds, work.probe_x, work.probe_y
    call_model(system.address, x.ctypes.data, y.ctypes.data)
    work.counts[Count.EVALUATIONS] += 1
    for j in range(count):
        split[PULL, j], split[SCALE, j], split[SHARE, j] = y[first_y + j], 1.0, 0.0
    for j in range(count):
        pull, test_effort, responds = abs(split[PULL, j]), system.friction[j, STATIC], split[STATE, j] != SLIDES
        for _ in range(2):
            if not responds:
                break
            x[first_x + 2 * j] = -test_effort
            call_model(system.address, x.ctypes.data, y.ctypes.data)
            work.counts[Count.EVALUATIONS] += 1
            change = y[first_y + j] - split[PULL, j]
            responds = change > MIN_RESPONSE * pull
            if not change < CLEAR * pull:
                break
            test_effort = test_effort * pull / change if responds else test_effort
        if split[STATE, j] != SLIDES:
            x[first_x + 2 * j], split[STATE, j] = 0.0, FREE if responds else NO_RESPONSE
        for i in range(count):
            holds[i, j] = (y[first_y + i] - split[PULL, i]) / test_effort if responds else 0.0
        split[SCALE, j] = math.sqrt(holds[j, j]) if responds else 1.0
    for i in range(count):
        split[PULL, i] /= split[SCALE, i]
        for j in range(count):
            holds[i, j] /= split[SCALE, i] * split[SCALE, j]
    for i in range(count):
        for j in range(i):
            if split[STATE, i] == FREE and split[STATE, j] == FREE:
                holds[i, j] = holds[j, i] = 0.5 * (holds[i, j] + holds[j, i])


@inner
def left_over(work: Any, j: int) -> float:
    """Return the scaled acceleration that all efforts leave a joint."""
    left = work.split[PULL, j]
    for i in range(work.split.shape[1]):
        left -= work.holds[j, i] * work.split[SHARE, i]
    return left


@inner
def _regularised_residual(work: Any, j: int) -> float:
    """Return the same plus the pull of the effort to its centre."""
    return left_over(work, j) - EVEN * (work.split[SHARE, j] - work.split[CENTRE, j])


@inner
def _find_changes(work: Any) -> None:
    """Find the changes of efforts within their bounds that leave no acceleration, by elimination."""
    split, holds, solves, count = work.split, work.holds, work.solves, work.split.shape[1]
    for i in range(count):
        if split[STATE, i] == FREE:
            solves[i, count] = _regularised_residual(work, i)
            for j in range(count):
                solves[i, j] = holds[i, j]
            solves[i, i] += EVEN
    for k in range(count):
        for i in range(k + 1, count):
            if split[STATE, k] == FREE and split[STATE, i] == FREE:
                factor = solves[i, k] / solves[k, k]
                for j in range(k, count + 1):
                    solves[i, j] -= factor * solves[k, j]
    for back in range(count):
        k = count - 1 - back
        if split[STATE, k] == FREE:
            total = solves[k, count]
            for j in range(k + 1, count):
                total -= solves[k, j] * split[CHANGE, j] if split[STATE, j] == FREE else 0.0
            split[CHANGE, k] = total / solves[k, k]


@inner
def _approach(work: Any) -> bool:
    """Let efforts change until one is at its bound, or let go one that is drawn inside; False: nothing is left."""
    split, count = work.split, work.split.shape[1]
    _find_changes(work)
    part, limiting = 1.0, -1
    for j in range(count):
        change = split[CHANGE, j]
        room = (split[HIGH, j] if change > 0.0 else split[LOW, j]) - split[SHARE, j]
        if split[STATE, j] == FREE and abs(change) * part > abs(room):
            part, limiting = abs(room / change), j
    for j in range(count):
        split[SHARE, j] += part * split[CHANGE, j] if split[STATE, j] == FREE else 0.0
    if limiting >= 0:
        split[SHARE, limiting] = split[HIGH, limiting] if split[CHANGE, limiting] > 0.0 else split[LOW, limiting]
        split[STATE, limiting] = BOUND
        return True
    most = 0.0
    for j in range(count):
        if split[STATE, j] == BOUND:
            tolerance = NOTHING * (split[HIGH, j] - split[LOW, j] + abs(split[PULL, j]))
            inward = -side_of(split, j) * _regularised_residual(work, j) - tolerance
            if inward > most:
                most, limiting = inward, j
    if limiting >= 0:
        split[STATE, limiting] = FREE
    return limiting >= 0


@inner
def distribute_efforts(work: Any) -> None:
    """Find efforts of all joints at rest within their bounds by an active-set method."""
    split, count = work.split, work.split.shape[1]
    for j in range(count):
        split[SHARE, j] = split[CENTRE, j] = 0.0
        split[STATE, j] = FREE if split[STATE, j] == BOUND else split[STATE, j]
    for _ in range(ROUNDS):
        for _ in range(10 * count + 10):
            if not _approach(work):
                break
        for j in range(count):
            split[CENTRE, j] = split[SHARE, j]


@inner
def side_of(split: Array, j: int) -> float:
    """Return the bound of a joint, 1 or -1."""
    return 1.0 if split[SHARE, j] >= split[HIGH, j] else -1.0


@inner
def breaks_away(work: Any, j: int) -> bool:
    """Return whether a joint at its bound moves."""
    split = work.split
    if split[STATE, j] != BOUND:
        return False
    width = max(split[HIGH, j], -split[LOW, j])
    return side_of(split, j) * left_over(work, j) > MOVES * width


@inner
def find_keeping(work: Any) -> None:
    """Find the projection of efforts that `common.hold` applies: the part of held joints that moves them.

    Columns of the response are orthonormalised, the largest first; efforts of joints that slide or are at a bound stay.
    """
    split, solves, keeping, count = work.split, work.solves, work.keeping, work.split.shape[1]
    for i in range(count):
        for j in range(count):
            solves[i, j] = work.holds[i, j] if split[STATE, i] == FREE and split[STATE, j] == FREE else 0.0
            keeping[i, j] = 1.0 if i == j and split[STATE, i] != FREE else 0.0
    for _ in range(count):
        best, most = -1, 0.0
        for j in range(count):
            size = 0.0
            for i in range(count):
                size += solves[i, j] * solves[i, j]
            if size > most:
                best, most = j, size
        work.counts[Count.ALIKE] += 1 if MIN_AMBIGUOUS**2 < most < MAX_AMBIGUOUS**2 else 0
        if most <= DEPENDENT_RESPONSE**2:
            break
        for i in range(count):
            solves[i, count] = solves[i, best] / math.sqrt(most)
        for i in range(count):
            for j in range(count):
                keeping[i, j] += solves[i, count] * solves[j, count] * split[SCALE, j] / split[SCALE, i]
        for j in range(count):
            along = 0.0
            for i in range(count):
                along += solves[i, count] * solves[i, j]
            for i in range(count):
                solves[i, j] -= along * solves[i, count]
