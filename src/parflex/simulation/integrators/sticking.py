"""Joints that stick: which joints at rest do, which begin to slide, and what keeps the others where they are.

The friction effort of a joint is an input of the model; `loop.hold` finds that of a joint that sticks. An inertia that
holds the joint, another input, leaves it an acceleration of a millionth; what this inertia takes is added to the
effort, and the model is asked again, theory (57). This needs no inverse, and where more joints stick than the robot has
freedoms, the efforts are those of least norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.simulation.integrators.jit import call_model, inner
from parflex.simulation.integrators.loop import EVENTS, STATIC, copy, evaluate

Array = np.ndarray
STUCK, FORTH, BACK = 1.0, 2.0, 3.0  # what a joint does, in Work.gates
COULOMB = 0  # column of System.friction, before STATIC
PLACE, TOLD, INERTIA = range(
    3
)  # rows of Work.stuck: where a joint stuck, what was last noted that it does, what holds it
HOLDING = 1e6  # inertia that holds a joint, of that which it moves: efforts are found to as many digits at once
FEELS = 1e-12  # of its acceleration: a joint that friction moves less does not feel it
AT_REST = 10.0  # of the slack of rates
KEPT = 1e5  # of it, of a joint that sticks: bodies that vibrate make it drift, and what impulses leave is more
LOOSE = (
    1e-2  # of the static effort, that the inertia would take: less does not move, and goes back where it is negative
)
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
        if gates[k] == STUCK:
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
def _holding(address: int, x: Array, y: Array, first_x: int, first_y: int, j: int, count: int, static: float) -> float:
    """The inertia that holds a joint: a multiple of what it moves there, with no joint held; 0 if friction is not felt.

    The inputs and outputs are used up.
    """
    for i in range(count):
        x[first_x + 2 * i + 1] = 0.0
    call_model(address, x.ctypes.data, y.ctypes.data)
    before = y[first_y + j]
    x[first_x + 2 * j] -= static
    call_model(address, x.ctypes.data, y.ctypes.data)
    change = y[first_y + j] - before
    return HOLDING * static / change if change > FEELS * abs(before) else 0.0


@inner
def _stick(system: Any, work: Any, row: int, j: int) -> None:
    """Let a joint stick where it is."""
    count = len(system.friction)
    first_x, first_y = system.gate_x + len(work.gates) - 2 * count, system.outputs - count
    copy(work.x[row], work.aside_x)
    static = system.friction[j, STATIC]
    inertia = _holding(system.address, work.aside_x, work.aside_y, first_x, first_y, j, count, static)
    work.gates[len(work.gates) - 2 * count + 2 * j] = STUCK
    work.stuck[PLACE, j], work.stuck[INERTIA, j] = work.y[row, system.rubbing[j]], inertia
    set_friction(work.x, first_x, j, 0.0, inertia)


@inner
def _rests(system: Any, work: Any, row: int, j: int) -> bool:
    """Whether a joint is at rest, or drifts where it stuck."""
    limit = KEPT if work.stuck[TOLD, j] == STUCK else AT_REST
    k = len(work.gates) - 2 * (len(system.friction) - j)
    return abs(work.y[row, system.positions + system.rubbing[j]]) <= limit * system.slack[k]


@inner
def _begin(system: Any, work: Any, row: int) -> int:
    """Let all joints at rest stick, and those slide that move; gives how many change."""
    count, turned = len(system.friction), 0
    first, first_x = len(work.gates) - 2 * count, system.gate_x + len(work.gates) - 2 * count
    for j in range(count):
        rate, does = work.y[row, system.positions + system.rubbing[j]], work.gates[first + 2 * j]
        if not _rests(system, work, row, j):
            side = 1.0 if rate > 0.0 else -1.0
            if does != (FORTH if side > 0.0 else BACK):
                work.gates[first + 2 * j] = FORTH if side > 0.0 else BACK
                set_friction(work.x, first_x, j, side * system.friction[j, COULOMB], 0.0)
                turned += 1
        elif does != STUCK:
            _stick(system, work, row, j)
            turned += 1
    return turned


@inner
def _overloaded(friction: Array, gates: Array, efforts: Array, least: float) -> int:
    """The sticking joint that is loaded most beyond what it bears, by a share of that; -1: none is."""
    first, worst, most = len(gates) - 2 * len(friction), -1, least
    for j in range(len(friction)):
        over = abs(efforts[2 * j]) / friction[j, STATIC] - 1.0
        if gates[first + 2 * j] == STUCK and over > most:
            worst, most = j, over
    return worst


@inner
def _push(system: Any, work: Any, row: int, j: int) -> float:
    """What would hold a joint that slides from rest, on the side to which it slides; 0 of one that sticks or moves."""
    count = len(system.friction)
    k = len(work.gates) - 2 * count + 2 * j
    side = (
        0.0 if work.gates[k] == STUCK or not _rests(system, work, row, j) else (1.0 if work.gates[k] == FORTH else -1.0)
    )
    share = work.stuck[INERTIA, j] / system.friction[j, STATIC]
    return side * share * work.y[row, system.outputs - count + j]


@inner
def settle_friction(system: Any, work: Any, row: int, forced: bool, at: float) -> int:
    """Find which joints at rest stick, at the state of a row of the work; gives how many joints change.

    All of them stick at first. One after the other that bears too much slides, with its static effort; one that is then
    pushed back sticks again; of those that nothing holds the effort falls to that of sliding. `forced`: a joint is at
    its limit, and is to slide.
    """
    count, friction = len(system.friction), system.friction
    first, first_x = len(work.gates) - 2 * count, system.gate_x + len(work.gates) - 2 * count
    turned, tried, last = _begin(system, work, row), 0, -1
    for _ in range(20 * count):
        evaluate(system, work, work.x[row], work.y[row])
        if last >= 0:  # its effort was that of sliding, for once
            if _push(system, work, row, last) > LOOSE:
                tried = 0
            else:
                side = 1.0 if work.gates[first + 2 * last] == FORTH else -1.0
                set_friction(work.x, first_x, last, side * friction[last, STATIC], 0.0)
            last = -1
            continue
        efforts = work.x[row, first_x : first_x + 2 * count]
        over = _overloaded(friction, work.gates, efforts, -EXCESS if forced else EXCESS)
        if over >= 0:
            side, tried = (1.0 if efforts[2 * over] > 0.0 else -1.0), 0
            work.gates[first + 2 * over] = FORTH if side > 0.0 else BACK
            set_friction(work.x, first_x, over, side * friction[over, STATIC], 0.0)
            continue
        back = -1
        for j in range(count):
            back = j if _push(system, work, row, j) < -LOOSE else back
        if back >= 0:
            _stick(system, work, row, back)
            forced = False
            continue
        while tried < count and last < 0:
            effort = abs(efforts[2 * tried])
            if work.gates[first + 2 * tried] != STUCK and effort > friction[tried, COULOMB]:
                last = tried
                side = 1.0 if work.gates[first + 2 * last] == FORTH else -1.0
                set_friction(work.x, first_x, last, side * friction[last, COULOMB], 0.0)
            tried += 1
        if last < 0:
            break
    return turned + _note(system, work, row, at)


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
