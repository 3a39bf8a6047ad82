"""Explicit Runge-Kutta methods and the sampled loop of a controller."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, compiled, inner
from parflex.codegen.loop_types import CompiledRecord
from parflex.integrators.common import (
    REJECTED,
    STEPS,
    add_work,
    evaluate,
    evaluate_at,
    give_inputs,
    normalise,
    place,
    record,
)
from parflex.integrators.events import LENGTH, MOST_PARTS, NOTHING, judge, keep, restore_state, settling
from parflex.integrators.gauss import gauss_steps

Array = np.ndarray

OK, GEOMETRY = 0, 4  # status beside those of `system`

TURN = 2 * math.pi


@inner
def _stages(system: Any, work: Any, tableau: Any, t: float, h: float, q: Array, qd: Array) -> None:
    """All stages of a step; the first one closes the positions."""
    nq = system.positions
    evaluate_at(system, work, t, q, qd, int(tableau.c[0]))  # row 0: a literal number would be compiled on its own
    for i in range(1, len(tableau.c)):
        x = work.x[i]
        place(system, x, q, qd)
        for j in range(i):
            weight = h * tableau.A[i, j]
            if weight != 0.0:
                _add(system, weight, work.y[j], x, x[nq:])
        give_inputs(system, work, t + tableau.c[i] * h, x)
        evaluate(system, work, x, work.y[i])


@inner
def _add(system: Any, weight: float, y: Array, q: Array, qd: Array) -> None:
    """Add the rates of change of one stage to a state."""
    nq = system.positions
    for p in range(nq):
        q[p] += weight * y[nq + p]
    for k in system.free:
        qd[k] += weight * y[2 * nq + k]


@inner
def _advance(system: Any, work: Any, tableau: Any, h: float, q: Array, qd: Array) -> None:
    for j in range(len(tableau.b)):
        _add(system, h * tableau.b[j], work.y[j], q, qd)
    normalise(system, q)
    add_work(system, work, tableau.b, h)
    work.counts[STEPS] += 1


@compiled
def explicit_steps(
    system: Any,
    work: Any,
    tableau: Any,
    t: float,
    h: float,
    every: int,
    q: Array,
    qd: Array,
    tolerance: float,
    out_x: Array,
    out_y: Array,
) -> tuple[int, int]:
    """Fixed steps until the rows of output are full; gives the rows that are and a status.

    With gates, a step has parts that end where these turn.
    """
    done, gated = 0, system.gaps != 0
    waiting, again = gated, False  # for the gates to settle; a part that is made again, shorter
    for row in range(len(out_x)):
        for _ in range(every):
            begin, left, parts = t + done * h, h, 0
            while left > 0.0:
                length = left
                if waiting:
                    length = settling(work.crossing)
                elif again:
                    length = work.crossing[LENGTH]
                elif gated:
                    keep(work.kept, work.crossing, work.numbers, q, qd, length)
                if length > 0.0:
                    _stages(system, work, tableau, begin, length, q, qd)
                    _advance(system, work, tableau, length, q, qd)
                again = gated and not judge(system, work, begin, q, qd)
                if again:
                    restore_state(work.kept, work.numbers, q, qd)
                    continue
                waiting, parts = False, parts + 1
                begin, left = begin + length, (left - length if left - length > NOTHING * h else 0.0)
                if parts > MOST_PARTS:
                    return row, 3
            done += 1
        if not record(system, work, t + done * h, q, qd, out_x[row], out_y[row]):
            return row, 2
    return len(out_x), 0


@inner
def _error(system: Any, work: Any, tableau: Any, h: float) -> float:
    """Largest estimated error of a step, in units of rates and positions."""
    nq, largest = system.positions, 0.0
    for k in range(len(system.free)):
        total = 0.0
        for j in range(len(tableau.b)):
            total += tableau.error[j] * work.y[j, 2 * nq + system.free[k]]
        size = abs(h * total) / system.units[k]
        scale = 1.0 + abs(work.x[0, nq + system.free[k]]) / system.units[k]
        if not size / scale <= largest:
            largest = size / scale
    for k in range(len(system.simple)):
        p, f = system.simple[k, 0], system.simple[k, 1]
        total = 0.0
        for j in range(len(tableau.b)):
            total += tableau.error[j] * work.y[j, nq + p]
        largest = max(largest, abs(h * total) / system.units[f])
    for p in system.turning:
        total = 0.0
        for j in range(len(tableau.b)):
            total += tableau.error[j] * work.y[j, nq + p]
        largest = max(largest, abs(h * total))
    return largest


@compiled
def adaptive_steps(
    system: Any,
    work: Any,
    tableau: Any,
    t: float,
    h: float,
    every: int,
    q: Array,
    qd: Array,
    tolerance: float,
    out_x: Array,
    out_y: Array,
) -> tuple[int, int]:
    """Steps chosen so that each errs by the tolerance, ending at every row of output (`every` times h apart)."""
    if work.numbers[1] == 0.0:
        work.numbers[1] = h
    gated, again = system.gaps != 0, False
    waiting = gated  # for the gates to settle
    for row in range(len(out_x)):
        start, end = t + row * every * h, t + (row + 1) * every * h
        now, parts = start, 0
        while now < end:
            requested = work.numbers[1]
            left = end - now
            step = left if requested >= left else (left / 2 if 2 * requested > left else requested)
            if waiting:
                step = settling(work.crossing)
            elif again:
                step = work.crossing[LENGTH]
            elif now + step == now or parts > MOST_PARTS:
                return row, 3
            elif gated:
                keep(work.kept, work.crossing, work.numbers, q, qd, step)
            if step > 0.0:
                _stages(system, work, tableau, now, step, q, qd)
                error = _error(system, work, tableau, step)
                if not math.isfinite(error):
                    factor = 0.1
                else:
                    factor = min(5.0, max(0.2, 0.9 * (tolerance / max(error, 1e-300)) ** (1 / tableau.order)))
                if not again and not error <= tolerance:
                    work.counts[REJECTED] += 1
                    work.numbers[1] = step * factor
                    continue
                if not again:
                    work.numbers[1] = max(requested, step * factor) if step < requested else step * factor
                _advance(system, work, tableau, step, q, qd)
            parts = parts + 1 if again else 0
            again = gated and not judge(system, work, now, q, qd)
            if again:
                restore_state(work.kept, work.numbers, q, qd)
                continue
            waiting = False
            now = end if left - step <= NOTHING * left else now + step
        if not record(system, work, end, q, qd, out_x[row], out_y[row]):
            return row, 2
    return len(out_x), 0


class Sampled(CompiledRecord):
    """What the loop knows of a law: two programs, and where their numbers come from.

    The first closes the nominal robot from what is measured: (guess, measured, constants) -> positions, and other
    outputs, of which the last is the status. The second is the law: (positions, measured rates, reference, gains and
    constants) -> efforts.
    """

    geometry: int  # addresses
    law: int
    geometry_x: Array  # inputs with constants in place
    law_x: Array
    positions: int  # of the nominal robot
    joints: Array  # positions of the measured joints in the plant
    turning: Array  # 1 for those that turn: a sensor goes on where an angle of the plant starts again at -pi
    resolution: Array  # of the sensors; 0 is none
    sample_time: float
    differences: int  # 1: rates are differences of measured positions
    delay: int  # samples
    lower: Array  # limits of efforts
    upper: Array


class Given(CompiledRecord):
    """What the law gets at each sample: a row of the reference; and what the sensors add to the truth."""

    reference: Array
    noise: Array
    rate_noise: Array


class Memory(CompiledRecord):
    """What a run remembers: the last pose found and measured, and efforts that wait for their time."""

    guess: Array  # all positions of the nominal robot
    closed: Array  # outputs of the geometry
    last: Array  # measured positions, then rates
    tau: Array
    waiting: Array  # (delay + 1, motors)


@inner
def act(
    sampled: Sampled,
    system: Any,
    k: int,
    y: Array,
    reference: Array,
    noise: Array,
    rate_noise: Array,
    memory: Memory,
    efforts: Array,
) -> bool:
    """Measure, find the nominal robot, ask the law, and write the efforts of sample k; False if it is not found."""
    closed, guess, last, m = memory.closed, memory.guess, memory.last, len(sampled.joints)
    _measure(sampled, k, y, noise, rate_noise, last, system.positions)
    for _ in range(2):  # the second time from where the first ended
        for i in range(sampled.positions):
            sampled.geometry_x[i] = guess[i]
        for i in range(m):
            sampled.geometry_x[sampled.positions + i] = last[i]
        call_model(sampled.geometry, sampled.geometry_x.ctypes.data, closed.ctypes.data)
        for i in range(sampled.positions):
            guess[i] = closed[i]
    if closed[len(closed) - 1] != 0.0:
        return False
    for i in range(sampled.positions):
        sampled.law_x[i] = closed[i]
    for i in range(m):
        sampled.law_x[sampled.positions + i] = last[m + i]
    for i in range(len(reference)):
        sampled.law_x[sampled.positions + m + i] = reference[i]
    tau, waiting = memory.tau, memory.waiting
    call_model(sampled.law, sampled.law_x.ctypes.data, tau.ctypes.data)
    for i in range(len(tau)):
        effort = min(max(tau[i], sampled.lower[i]), sampled.upper[i])
        if k == 0:
            for j in range(len(waiting)):
                waiting[j, i] = effort
        waiting[k % len(waiting), i] = effort
        efforts[i] = waiting[(k + 1) % len(waiting), i]  # that of `delay` samples ago
        for piece in range(len(system.coefficients)):
            system.coefficients[piece, 0, i] = efforts[i]
    return True


@compiled
def sampled_explicit_steps(
    sampled: Sampled,
    system: Any,
    work: Any,
    tableau: Any,
    h: float,
    every: int,
    tolerance: float,
    first: int,
    signals: Given,
    memory: Memory,
    q: Array,
    qd: Array,
    out_x: Array,
    out_y: Array,
    efforts: Array,
) -> tuple[int, int]:
    """Samples from number `first` on, until the rows of output are full; gives the rows that are and a status.

    `out_x`, `out_y` begin with the row of the first sample, which is there already.
    """
    for row in range(len(out_x) - 1):
        k = first + row
        geometry_solved = act(
            sampled,
            system,
            k,
            out_y[row],
            signals.reference[k],
            signals.noise[k],
            signals.rate_noise[k],
            memory,
            efforts[row],
        )
        if not geometry_solved:
            return row, GEOMETRY
        part_x, part_y = out_x[row + 1 : row + 2], out_y[row + 1 : row + 2]
        t = k * sampled.sample_time
        _, status = explicit_steps(system, work, tableau, t, h, every, q, qd, tolerance, part_x, part_y)
        if status != OK:
            return row, status
    return len(out_x) - 1, OK


@compiled
def sampled_gauss_steps(
    sampled: Sampled,
    system: Any,
    work: Any,
    tableau: Any,
    h: float,
    every: int,
    tolerance: float,
    first: int,
    signals: Given,
    memory: Memory,
    q: Array,
    qd: Array,
    out_x: Array,
    out_y: Array,
    efforts: Array,
) -> tuple[int, int]:
    """The same with an implicit method, for flexible plants."""
    for row in range(len(out_x) - 1):
        k = first + row
        geometry_solved = act(
            sampled,
            system,
            k,
            out_y[row],
            signals.reference[k],
            signals.noise[k],
            signals.rate_noise[k],
            memory,
            efforts[row],
        )
        if not geometry_solved:
            return row, GEOMETRY
        part_x, part_y = out_x[row + 1 : row + 2], out_y[row + 1 : row + 2]
        t = k * sampled.sample_time
        _, status = gauss_steps(system, work, tableau, t, h, every, q, qd, tolerance, part_x, part_y)
        if status != OK:
            return row, status
    return len(out_x) - 1, OK


@inner
def _measure(sampled: Sampled, k: int, y: Array, noise: Array, rate_noise: Array, last: Array, positions: int) -> None:
    """Positions and rates of the sensed joints, into `last`, which has those of the sample before."""
    m = len(sampled.joints)
    for i in range(m):
        value = y[sampled.joints[i]]
        if sampled.turning[i]:
            value += TURN * math.floor((last[i] - value) / TURN + 0.5)
        value += noise[i]
        if sampled.resolution[i] > 0:
            value = math.floor(value / sampled.resolution[i] + 0.5) * sampled.resolution[i]
        if sampled.differences:
            if k > 0:  # before that, those with which the reference begins
                last[m + i] = (value - last[i]) / sampled.sample_time
        else:
            last[m + i] = y[positions + sampled.joints[i]] + rate_noise[i]
        last[i] = value
