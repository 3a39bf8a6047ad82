"""Events: steps end at the root of a gap, where a contact opens or closes.

A step is computed with fixed gates. If a gap has changed its sign at the end, the step is repeated until it ends at the
root; there the gate changes, and the remaining step follows. Forces are smooth in every step, so every method keeps its
order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, compiled, inlined, inner
from parflex.integrators.common import Count, Number, copy, evaluate_at, note_event
from parflex.integrators.stiction import STUCK, friction_gaps, keep_at_rest, settle_friction, unsettled

Array = np.ndarray
NOTHING_TURNS, AT_START = -1, -2  # instead of the number of the gate at whose root a step ends


@inner
def save_state(saved: Array, numbers: Array, q: Array, qd: Array) -> None:
    """Save a state and the work until then."""
    copy(q, saved[: len(q)])
    copy(qd, saved[len(q) : len(q) + len(qd)])
    saved[-2], saved[-1] = numbers[Number.INPUT], numbers[Number.LOSS]


@inner
def restore_state(saved: Array, numbers: Array, q: Array, qd: Array) -> None:
    """Restore the saved state."""
    copy(saved, q)
    copy(saved[len(q) :], qd)
    numbers[Number.INPUT], numbers[Number.LOSS] = saved[-2], saved[-1]


@inner
def find_gaps(system: Any, work: Any, t: float, q: Array, qd: Array) -> None:
    """Evaluate a state in the last row of the work, and what all gates follow there."""
    evaluate_at(system, work, t, q, qd, len(work.x) - 1)
    _evaluate_gaps(system, work, len(work.x) - 1)


@inner
def _evaluate_gaps(system: Any, work: Any, row: int) -> None:
    """Evaluate the gaps of all gates at the state of a row of the work."""
    nq, gates, flow = system.positions, len(work.gates), work.flow
    if gates > 2 * len(system.friction):
        for k in range(2 * nq):
            flow[k] = work.y[row, k]
        for k in range(gates):
            flow[2 * nq + k] = work.x[row, system.gate_x + k]
        call_model(system.gaps, flow.ctypes.data, work.gaps.ctypes.data)
    if len(system.friction) > 0:
        friction_gaps(system, work, row)


@inlined
def missed(gates: Array, gaps: Array, k: int) -> float:
    """Return how far a gap is beyond zero on the side opposite to its gate."""
    return -gaps[2 * k] if gates[k] > 0.5 else gaps[2 * k]


@inlined
def approach(gates: Array, gaps: Array, k: int) -> float:
    """Return the rate of `missed`."""
    return -gaps[2 * k + 1] if gates[k] > 0.5 else gaps[2 * k + 1]


@inner
def first_gate(gates: Array, start_gaps: Array, gaps: Array, slack: Array, least: float) -> int:
    """Return the gate that turns first, by linear interpolation, of those beyond zero by `least`, or NOTHING_TURNS."""
    first, soonest = NOTHING_TURNS, 2.0
    for k in range(len(gates)):
        end = missed(gates, gaps, k)
        if end > max(slack[k], least):
            start = missed(gates, start_gaps, k)
            share = 0.0 if start >= 0.0 else start / (start - end)
            if share < soonest:
                first, soonest = k, share
    return first


@inner
def possible_crossing(gates: Array, start_gaps: Array, gaps: Array, length: float) -> float:
    """Return where in the step a gap may have crossed zero and come back, by a cubic; the end of the step if none."""
    cut = length
    for k in range(len(gates)):
        s0, s1 = missed(gates, start_gaps, k), missed(gates, gaps, k)
        r0, r1 = length * approach(gates, start_gaps, k), length * approach(gates, gaps, k)
        if not (r0 > 0.0 and r1 < 0.0 and s0 < 0.0):
            continue
        a, b = 3 * (2 * (s0 - s1) + r0 + r1), 2 * (3 * (s1 - s0) - 2 * r0 - r1)
        inside = b * b - 4 * a * r0
        if inside < 0.0:
            continue
        u = 2 * r0 / (-b + math.sqrt(inside))  # the maximum: where the slope falls through zero
        if not 0.02 < u < 0.98:
            continue
        top = s0 + u * (r0 + u * (b / 2 + u * a / 3))
        if top + 0.05 * (top - max(s0, s1)) > 0.0:
            cut = min(cut, u * length)
    return cut


@inner
def settle_gates(system: Any, work: Any, t: float, q: Array, qd: Array, which: int) -> int:
    """Turn gates where a step ends, at the root of `which`, with gaps that are known; gives how many turn besides."""
    row, contacts, turned = len(work.x) - 1, len(work.gates) - 2 * len(system.friction), 0
    if which >= 0:
        _turn_at_root(system, work, which, t, contacts)
        _evaluate_gaps(system, work, row)
    for _ in range(0 if which == NOTHING_TURNS else 3):  # gates of one contact follow each other
        more = 0
        for k in range(contacts):
            if missed(work.gates, work.gaps, k) > system.slack[k]:
                _turn(system, work, k)
                more += 1
        if more == 0:
            break
        turned += more
        _evaluate_gaps(system, work, row)
    if contacts < len(work.gates):
        if which != NOTHING_TURNS or unsettled(system, work, row):
            if which >= 0:  # rates jump before the first step alone: others are drift
                keep_at_rest(system, work, row, q, qd)
                evaluate_at(system, work, t, q, qd, row)
            forced = which >= contacts and work.gates[which] == STUCK
            forced = forced and work.x[row, system.gate_x + which + 1] > 0.0  # one that is held, by its effort
            turned += settle_friction(system, work, row, forced, t)
        keep_at_rest(system, work, row, q, qd)
        _evaluate_gaps(system, work, row)
    copy(work.gaps, work.gaps_at_start)
    return turned


@inner
def _turn(system: Any, work: Any, k: int) -> None:
    """Turn a gate, in all inputs of the model."""
    work.gates[k] = 1.0 - work.gates[k]
    for row in range(len(work.x)):
        work.x[row, system.gate_x + k] = work.gates[k]


@inner
def _turn_at_root(system: Any, work: Any, which: int, event_time: float, contacts: int) -> None:
    """Turn the gates of contacts whose gaps are at their root, and note it."""
    for k in range(contacts):
        if k == which or missed(work.gates, work.gaps, k) > 0.0:
            _turn(system, work, k)
            note_event(work, k, work.gates[k], event_time, work.gaps[2 * k + 1])


@compiled
def settle(system: Any, work: Any, t: float, q: Array, qd: Array) -> None:
    """Set gates by a state, at the start of a run or behind a jump."""
    find_gaps(system, work, t, q, qd)
    if settle_gates(system, work, t, q, qd, AT_START) > 0:
        work.counts[Count.STARTED] = 0
