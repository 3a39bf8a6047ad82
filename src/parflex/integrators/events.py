"""Events: steps end at the root of a gap, where a contact opens or closes.

A step is computed with fixed gates. If a gap has changed its sign at the end, the step is repeated from its start,
shorter each time, until it ends at the root; there the gate changes, and the remaining step follows. Forces are smooth
in every step, so every method keeps its order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, compiled, inlined, inner
from parflex.integrators.common import Count, Number, copy, evaluate_at
from parflex.integrators.stiction import STUCK, friction_gaps, keep_at_rest, settle_friction, unsettled

Array = np.ndarray
LOW, LOW_GAP, HIGH, HIGH_GAP, LENGTH, WHICH, TRIES, PHASE, SIDE = range(9)  # places in Work.crossing
WHOLE, SEARCH, LAST, SETTLED = 0.0, 1.0, 2.0, 3.0  # phases
ACCEPT_STEP, TURN, SHORTER, SETTLE = range(4)
MOST_HALVINGS = 40
MOST_TRIES = 60
MOST_PARTS = 300  # of one step
ROUNDING = 4e-16  # of the time: no root is known better
NOTHING = 1e-14  # of a step: what may be left of it


@inner
def save_state(saved: Array, numbers: Array, q: Array, qd: Array) -> None:
    """Save a state and the work until then."""
    copy(q, saved[: len(q)])
    copy(qd, saved[len(q) : len(q) + len(qd)])
    saved[-2], saved[-1] = numbers[Number.INPUT], numbers[Number.LOSS]


@inner
def restore_state(saved: Array, numbers: Array, q: Array, qd: Array) -> None:
    """The saved state again."""
    copy(saved, q)
    copy(saved[len(q) :], qd)
    numbers[Number.INPUT], numbers[Number.LOSS] = saved[-2], saved[-1]


@inner
def _evaluate_gaps(system: Any, work: Any, row: int) -> None:
    """What all gates follow, at the state of a row of the work."""
    nq, gates, flow = system.positions, len(work.gates), work.flow
    if gates > 2 * len(system.friction):
        for k in range(2 * nq):
            flow[k] = work.y[row, k]
        for k in range(gates):
            flow[2 * nq + k] = work.x[row, system.gate_x + k]
        call_model(system.gaps, flow.ctypes.data, work.gaps.ctypes.data)
    if len(system.friction) > 0:
        friction_gaps(system, work, row)


@inner
def _turn(system: Any, work: Any, k: int) -> None:
    """Turn a gate, in all inputs of the model."""
    work.gates[k] = 1.0 - work.gates[k]
    for row in range(len(work.x)):
        work.x[row, system.gate_x + k] = work.gates[k]


@inlined
def _missed(gates: Array, gaps: Array, k: int) -> float:
    """How far a gap is beyond zero on the side on which its gate is not."""
    return -gaps[2 * k] if gates[k] > 0.5 else gaps[2 * k]


@inlined
def _approach(gates: Array, gaps: Array, k: int) -> float:
    """How fast it goes there."""
    return -gaps[2 * k + 1] if gates[k] > 0.5 else gaps[2 * k + 1]


@inner
def settling(c: Array) -> float:
    """Ask for gates as the state says, before the first step or behind a jump; the length of such a step is zero."""
    c[LENGTH], c[PHASE], c[TRIES] = 0.0, SETTLED, 0.0
    return 0.0


@inner
def _turn_gates(system: Any, work: Any, contacts: int) -> bool:
    """Turn the gates of contacts that have to; whether there are any, and how many in TRIES."""
    turned = False
    for k in range(contacts):
        if _missed(work.gates, work.gaps, k) > system.slack[k]:
            _turn(system, work, k)
            work.crossing[TRIES] += 1.0
            turned = True
    return turned


@inner
def judge(system: Any, work: Any, t: float, q: Array, qd: Array) -> bool:
    """Whether a step from time t is to end where it does; else its new length is in the work.

    It does where no gate has to turn, or where a gap is at its root: then the gate is turned.
    """
    row, end_time = len(work.x) - 1, t + work.crossing[LENGTH]
    evaluate_at(system, work, end_time, q, qd, row)
    _evaluate_gaps(system, work, row)
    decision = _decide(work.crossing, work.gates, work.gaps_at_start, work.gaps, system.slack, t)
    if decision == SHORTER:
        return False
    gates_change, which = decision != ACCEPT_STEP, int(work.crossing[WHICH])
    contacts = len(work.gates) - 2 * len(system.friction)
    for k in range(3):  # gates of one contact follow each other
        if k == 0 and decision == TURN:
            _turn_at_root(system, work, which, end_time, contacts)
        elif gates_change:
            gates_change = _turn_gates(system, work, contacts)
        if not gates_change:
            break
        _evaluate_gaps(system, work, row)
    if contacts < len(work.gates):
        if decision != ACCEPT_STEP or unsettled(system, work, row):
            if decision == TURN:  # rates jump before the first step alone: others are drift
                keep_at_rest(system, work, row, q, qd)
                evaluate_at(system, work, end_time, q, qd, row)
            forced = decision == TURN and which >= contacts and work.gates[which] == STUCK
            forced = forced and work.x[row, system.gate_x + which + 1] > 0.0  # one that is held, by its effort
            work.crossing[TRIES] += settle_friction(system, work, row, forced, end_time)
        keep_at_rest(system, work, row, q, qd)
        _evaluate_gaps(system, work, row)
    copy(work.gaps, work.gaps_at_start)
    return True


@compiled
def settle(system: Any, work: Any, t: float, q: Array, qd: Array) -> None:
    """Gates as a state says, at the start of a run."""
    settling(work.crossing)
    judge(system, work, t, q, qd)


@inner
def _decide(c: Array, gates: Array, start_gaps: Array, gaps: Array, slack: Array, t: float) -> int:
    """ACCEPT_STEP behind the end of the step, TURN gates there, make it SHORTER, or SETTLE the gates."""
    if c[PHASE] == LAST:
        return TURN
    if c[PHASE] == SETTLED:
        return SETTLE
    if c[PHASE] == WHOLE:
        which = _first(gates, start_gaps, gaps, slack, 0.0)
        if which >= 0:
            return _begin_search(c, gates, start_gaps, gaps, which)
        cut = _possible_crossing(gates, start_gaps, gaps, c[LENGTH])
        if cut < c[LENGTH] and c[TRIES] == 0.0:
            c[LENGTH], c[TRIES] = cut, 1.0
            return SHORTER
        return ACCEPT_STEP
    which = int(c[WHICH])
    beyond = _missed(gates, gaps, which)
    if beyond > 0.0:
        c[LOW_GAP] *= 0.5 if c[SIDE] > 0.0 else 1.0  # an end that stays twice counts half: both ends close in
        c[HIGH], c[HIGH_GAP], c[SIDE] = c[LENGTH], beyond, 1.0
        if beyond <= 1e-3 * slack[which] or _narrow(c, t):
            other = _first(gates, start_gaps, gaps, slack, 2 * beyond)
            return _begin_search(c, gates, start_gaps, gaps, other) if other >= 0 else TURN
    else:
        c[HIGH_GAP] *= 0.5 if c[SIDE] < 0.0 else 1.0
        c[LOW], c[LOW_GAP], c[SIDE] = c[LENGTH], beyond, -1.0
        if _narrow(c, t):
            c[LENGTH], c[PHASE] = c[HIGH], LAST
            return SHORTER
    c[TRIES] += 1.0
    c[LENGTH] = _next_trial(c)
    return SHORTER


@inlined
def _narrow(c: Array, t: float) -> bool:
    return c[HIGH] - c[LOW] <= ROUNDING * (abs(t) + c[HIGH]) or c[TRIES] >= MOST_TRIES


@inner
def _next_trial(c: Array) -> float:
    """Where the line through both ends has its root, now and then the middle."""
    low, high, below, above = c[LOW], c[HIGH], c[LOW_GAP], c[HIGH_GAP]
    trial = low + (high - low) * (-below / (above - below)) if above > below else 0.5 * (low + high)
    if int(c[TRIES]) % 8 == 7 or not low < trial < high:
        trial = 0.5 * (low + high)
    return trial


@inner
def _first(gates: Array, start_gaps: Array, gaps: Array, slack: Array, least: float) -> int:
    """The gate that has to turn first, by a straight line, of those so far beyond zero; -1: none has to."""
    first_gate, soonest = -1, 2.0
    for k in range(len(gates)):
        end = _missed(gates, gaps, k)
        if end > max(slack[k], least):
            start = _missed(gates, start_gaps, k)
            share = 0.0 if start >= 0.0 else start / (start - end)
            if share < soonest:
                first_gate, soonest = k, share
    return first_gate


@inner
def _begin_search(c: Array, gates: Array, start_gaps: Array, gaps: Array, which: int) -> int:
    """Begin the search for the root of one gap between the start of the step and its present end."""
    start, end = _missed(gates, start_gaps, which), _missed(gates, gaps, which)
    c[WHICH] = which
    if start >= 0.0:  # at the root already: it goes on through it, or left it just before and comes back
        back = _approach(gates, start_gaps, which) < 0.0 and c[TRIES] < MOST_HALVINGS
        c[LENGTH], c[PHASE] = (0.5 * c[LENGTH], WHOLE) if back else (0.0, LAST)
        c[TRIES] += 1.0
        return SHORTER
    c[LOW], c[LOW_GAP], c[HIGH], c[HIGH_GAP] = 0.0, start, c[LENGTH], end
    c[PHASE], c[TRIES], c[SIDE] = SEARCH, 0.0, 0.0
    c[LENGTH] = _next_trial(c)
    return SHORTER


@inner
def _possible_crossing(gates: Array, start_gaps: Array, gaps: Array, length: float) -> float:
    """Where in the step a gap may have gone through zero and back, by a cubic; its end where none may have."""
    cut = length
    for k in range(len(gates)):
        s0, s1 = _missed(gates, start_gaps, k), _missed(gates, gaps, k)
        r0, r1 = length * _approach(gates, start_gaps, k), length * _approach(gates, gaps, k)
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
def _turn_at_root(system: Any, work: Any, which: int, event_time: float, contacts: int) -> None:
    """Turn the gates of contacts whose gaps are at their root, and note it."""
    events, counts = work.events, work.counts
    for k in range(contacts):
        if k == which or _missed(work.gates, work.gaps, k) > 0.0:
            _turn(system, work, k)
            n = counts[Count.EVENTS]
            if n < len(events):
                events[n, 0], events[n, 1], events[n, 2], events[n, 3] = (
                    k,
                    work.gates[k],
                    event_time,
                    work.gaps[2 * k + 1],
                )
                counts[Count.EVENTS] += 1
