"""Joints that stick: which joints at rest do, which begin to slide, and what keeps the others where they are.

The friction effort of a joint is an input of the model; `resting_joints` finds those of joints at rest, and between
events `loop.hold` that of a joint that sticks. An inertia that holds the joint, another input, leaves it an
acceleration of a millionth; what this inertia takes is added to the effort, and the model is asked again, theory (57).
This needs no inverse, and where more joints stick than the robot has freedoms, the efforts stay those of least norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, inner
from parflex.simulation.integrators.loop import EVENTS, STATIC, copy, evaluate
from parflex.simulation.integrators.resting_joints import (
    BOUND,
    FREE,
    HIGH,
    LOW,
    SCALE,
    SHARE,
    SLIDES,
    STATE,
    UNFELT,
    breaks_away,
    find_keeping,
    find_responses,
    left_over,
    share_loads,
    side_of,
)

Array = np.ndarray
STUCK, FORTH, BACK = 1.0, 2.0, 3.0  # what a joint does, in Work.gates
COULOMB = 0  # column of System.friction, before STATIC
PLACE, TOLD, INERTIA, FIRM = range(4)  # rows of Work.stuck: where a joint stuck, what was last noted that it does,
# what inertia holds it, 1 where its friction is what keeps it at rest
HOLDING = 1e6  # inertia that holds a joint, of that which it moves: efforts are found to as many digits at once
AT_REST = 10.0  # of the slack of rates
KEPT = 1e5  # of it, of a joint that sticks: bodies that vibrate make it drift, and what impulses leave is more
PASSES = 1e4  # of it, in a second: a joint that feels no friction goes on so; a slower one is seen by its rate
RATE_DRIFT, DRIFT, FAR = 1e-6, 1e-3, 1e8  # of the slack: what is corrected, and what is no drift
EXCESS = 1e-8  # of the static effort, by which a joint that sticks may be loaded more


@inner
def friction_gaps(
    friction: Array,
    rubbing: Array,
    efforts: Array,
    rates: Array,
    accelerations: Array,
    gates: Array,
    slack: Array,
    gaps: Array,
) -> None:
    """What is left until a joint comes to rest or breaks away, and the rate of that, behind the gaps of contacts."""
    first = len(gates) - 2 * len(friction)
    for j in range(len(friction)):
        k = first + 2 * j
        if gates[k] == STUCK and efforts[2 * j + 1] == 0.0:  # nothing holds it but other joints: it is to stay at rest
            rate, limit = rates[rubbing[j]], KEPT if efforts[2 * j] != 0.0 else AT_REST
            gaps[2 * k] = 2 * limit * slack[k] - abs(rate)
            gaps[2 * k + 1] = -accelerations[j] if rate > 0.0 else accelerations[j]
        elif gates[k] == STUCK:
            gaps[2 * k] = slack[k] / EXCESS * (1.0 - abs(efforts[2 * j]) / friction[j, STATIC])
            gaps[2 * k + 1] = 0.0
        else:
            side = 1.0 if gates[k] == FORTH else -1.0
            gaps[2 * k], gaps[2 * k + 1] = side * rates[rubbing[j]], side * accelerations[j]


@inner
def set_friction(x: Array, first_x: int, j: int, effort: float, holding: float) -> None:
    """Inputs of one joint, for all stages."""
    for row in range(len(x)):
        x[row, first_x + 2 * j], x[row, first_x + 2 * j + 1] = effort, holding


@inner
def _rests(system: Any, work: Any, row: int, j: int) -> bool:
    """Whether a joint is at rest, or drifts where it stuck."""
    limit = KEPT if work.stuck[FIRM, j] != 0.0 else AT_REST
    k = len(work.gates) - 2 * (len(system.friction) - j)
    return abs(work.y[row, system.positions + system.rubbing[j]]) <= limit * system.slack[k]


@inner
def settle_friction(system: Any, work: Any, row: int, forced: bool, at: float) -> int:
    """Find which joints at rest stick, at the state of a row of the work; gives how many joints change.

    All bear at most their static efforts. Of those that move nevertheless, the bound falls to the effort of sliding,
    one after the other, and the others are asked again. `forced`: a joint is at its limit, and is to slide.
    """
    count, friction, split = len(system.friction), system.friction, work.split
    first, first_x = len(work.gates) - 2 * count, system.gate_x + len(work.gates) - 2 * count
    copy(work.x[row], work.aside_x)
    for j in range(count):
        resting = _rests(system, work, row, j)
        side = 1.0 if work.y[row, system.positions + system.rubbing[j]] > 0.0 else -1.0
        work.aside_x[first_x + 2 * j] = 0.0 if resting else side * friction[j, COULOMB]
        work.aside_x[first_x + 2 * j + 1] = 0.0
        split[STATE, j] = FREE if resting else SLIDES
    find_responses(system, work, first_x, system.outputs - count)
    for j in range(count):
        most = friction[j, STATIC] * (1.0 - EXCESS if forced else 1.0 + EXCESS) * split[SCALE, j]
        split[LOW, j], split[HIGH, j] = -most, most
    for _ in range(2 * count + 1):
        share_loads(work)
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
        turned += _take(system, work, row, j, first + 2 * j, first_x)
    evaluate(system, work, work.x[row], work.y[row])
    return turned + _note(system, work, row, at)


@inner
def _take(system: Any, work: Any, row: int, j: int, k: int, first_x: int) -> int:
    """Let one joint do what was found; 1 if it does something else than before."""
    split, state, before = work.split, work.split[STATE, j], work.gates[k]
    static, held = system.friction[j, STATIC], work.stuck[INERTIA, j]
    way = work.y[row, system.positions + system.rubbing[j]]
    sticks = state == FREE
    if state == UNFELT:
        way = left_over(work, j)
        sticks = abs(way) <= PASSES * system.slack[k]
    elif state == BOUND:
        way = side_of(split, j)
        sticks = not breaks_away(work, j)
    side = 1.0 if way > 0.0 else -1.0
    effort, inertia, does = side * system.friction[j, COULOMB], 0.0, FORTH if side > 0.0 else BACK
    if sticks:
        does = STUCK
        effort = 0.0 if state == UNFELT else max(-static, min(static, split[SHARE, j] / split[SCALE, j]))
        if state == FREE:
            inertia = held if before == STUCK and held > 0.0 else HOLDING / split[SCALE, j] ** 2
        if before != STUCK:
            work.stuck[PLACE, j] = work.y[row, system.rubbing[j]]
    work.gates[k], work.stuck[INERTIA, j] = does, inertia
    work.stuck[FIRM, j] = 1.0 if sticks and state != UNFELT else 0.0
    set_friction(work.x, first_x, j, effort, inertia)
    return 1 if does != before or inertia != held else 0


@inner
def unsettled(system: Any, work: Any, row: int) -> bool:
    """Whether joints must be asked anew behind any step: one that sticks bears all it can, or moves all the same."""
    count, found = len(system.friction), False
    first = len(work.gates) - 2 * count
    for j in range(count):
        if work.gates[first + 2 * j] == STUCK:
            rate = abs(work.y[row, system.positions + system.rubbing[j]])
            bears_all = work.stuck[FIRM, j] != 0.0 and work.stuck[INERTIA, j] == 0.0
            found = found or bears_all or not rate < FAR * system.slack[first + 2 * j]
    return found


@inner
def _note(system: Any, work: Any, row: int, at: float) -> int:
    """Note what joints do now that did something else, and which slide from rest; gives how many do something else."""
    count, changed = len(system.friction), 0
    first = len(work.gates) - 2 * count
    for j in range(count):
        does, n = work.gates[first + 2 * j], work.counts[EVENTS]
        resting = _rests(system, work, row, j)
        changed += 1 if does != work.stuck[TOLD, j] else 0
        if n < len(work.events) and (does != work.stuck[TOLD, j] or (resting and does != STUCK)):
            work.events[n, 0], work.events[n, 1] = first + 2 * j, does
            work.events[n, 2], work.events[n, 3] = at, work.y[row, system.rubbing[j]]
            work.counts[EVENTS] += 1
        work.stuck[TOLD, j] = does
    return changed


@inner
def keep_at_rest(system: Any, work: Any, row: int, q: Array, qd: Array) -> None:
    """Take from a state what sticking joints have drifted: rates first, then positions, by what their friction moves.

    A joint that depends on others keeps still to the order of the method only; the inertia that holds the joints, moved
    by the drift, gives the least change in the sense of kinetic energy that undoes it.
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
        far = 0.0
        copy(work.x[row], work.aside_x)
        for j in range(count):
            if work.gates[first + 2 * j] == STUCK:
                p = system.rubbing[j]
                off = y[nq + p] if level == 0 else y[p] - work.stuck[PLACE, j]
                far = max(far, abs(off) / system.slack[first + 2 * j])
                work.aside_x[first_x + 2 * j] += work.stuck[INERTIA, j] * off
        if not (RATE_DRIFT if level == 0 else DRIFT) < far < FAR:
            continue
        call_model(system.address, work.aside_x.ctypes.data, work.aside_y.ctypes.data)
        if level == 0:
            for k in system.free:
                qd[k] += work.aside_y[2 * nq + k] - y[2 * nq + k]
            continue
        for k in range(system.rates):
            work.aside_x[nq + k] = 0.0
        for k in system.free:
            work.aside_x[nq + k] = work.aside_y[2 * nq + k] - y[2 * nq + k]
        call_model(system.address, work.aside_x.ctypes.data, work.aside_y.ctypes.data)
        for p in range(nq):
            q[p] += work.aside_y[nq + p]
