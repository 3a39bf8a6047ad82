"""The loop of a controller whose law is a program: sampled measurements, the law, and steps of the plant between."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from parflex.codegen.loop_functions import call_model, inner
from parflex.codegen.loop_types import CompiledRecord
from parflex.integrators.common import Status
from parflex.integrators.explicit import explicit_steps
from parflex.integrators.gauss import gauss_steps
from parflex.integrators.steps import specialised

Array = np.ndarray
TURN = 2 * math.pi
plant_steps: Any = None  # the loop of the method that moves the plant


class Sampled(CompiledRecord):
    """Two programs of a law, the sources of their inputs, and the memory of a run.

    The first closes the nominal robot: (guess, measured, constants) -> positions, other outputs, status. The second is
    the law: (positions, measured rates, reference, gains and constants) -> efforts.
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
    reference: Array  # at each sample a row for the law
    noise: Array  # what sensors add to the truth: (sample, positions, then rates)
    guess: Array  # all positions of the nominal robot, the last that were found
    closed: Array  # outputs of the geometry
    last: Array  # measured positions, then rates
    tau: Array
    waiting: Array  # efforts that wait for their time, (delay + 1, motors)


@inner
def act(sampled: Sampled, system: Any, k: int, y: Array, efforts: Array) -> bool:
    """Measure, find the nominal robot, evaluate the law, and write the efforts of sample k; False if closure fails."""
    closed, guess, last, m = sampled.closed, sampled.guess, sampled.last, len(sampled.joints)
    _measure(sampled, k, y, system.positions)
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
    for i in range(sampled.reference.shape[1]):
        sampled.law_x[sampled.positions + m + i] = sampled.reference[k, i]
    tau, waiting = sampled.tau, sampled.waiting
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


@inner
def _measure(sampled: Sampled, k: int, y: Array, positions: int) -> None:
    """Replace measured positions and rates of the last sample by those of this one."""
    m, last, noise = len(sampled.joints), sampled.last, sampled.noise[k]
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
            last[m + i] = y[positions + sampled.joints[i]] + noise[m + i]
        last[i] = value


def _sampled_steps(
    sampled: Sampled, system: Any, work: Any, tableau: Any, h: float, every: int, tolerance: float, first: int,
    q: Array, qd: Array, out_x: Array, out_y: Array, efforts: Array,
) -> tuple[int, int]:  # fmt: skip
    """Integrate samples from number `first` on until the rows are full; return the number of full rows and a status.

    `out_x`, `out_y` begin with the row of the first sample, which is there already.
    """
    for row in range(len(out_x) - 1):
        k = first + row
        if not act(sampled, system, k, out_y[row], efforts[row]):
            return row, Status.GEOMETRY
        part_x, part_y = out_x[row + 1 : row + 2], out_y[row + 1 : row + 2]
        t = k * sampled.sample_time
        _, status = plant_steps(system, work, tableau, t, h, every, q, qd, tolerance, part_x, part_y)
        if status != Status.OK:
            return row, status
    return len(out_x) - 1, Status.OK


sampled_explicit_steps = specialised(
    "sampled_explicit_steps", [_sampled_steps], {**globals(), "plant_steps": explicit_steps}
)
sampled_gauss_steps = specialised("sampled_gauss_steps", [_sampled_steps], {**globals(), "plant_steps": gauss_steps})
