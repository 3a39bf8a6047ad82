"""Efforts of spare motors within their ranges: those whose largest share of its range is the smallest."""

from __future__ import annotations

import numpy as np

from parflex.simulation.time_optimal.cable_tensions import Winding
from parflex.simulation.time_optimal.motor_limits import MotorLimits

Array = np.ndarray
ROUNDED = 1e-5  # of half a range: conditions of the motion hold up to 1e-6


def efforts_within(
    actuation: Array, forces: Array, limits: MotorLimits, winding: Winding = (), taut: Array | None = None
) -> Array:
    """Efforts (place, motor) for forces (place, freedom); a linear program at each place where motors are spare.

    `taut` (place, cable) are efforts at which cables have no tension.
    """
    if actuation.shape[1] == actuation.shape[2]:
        return forces
    if not np.isfinite([limits.low, limits.high]).all():
        return np.array([np.linalg.lstsq(W, force, rcond=None)[0] for W, force in zip(actuation, forces, strict=True)])
    from scipy.optimize import linprog

    count = actuation.shape[2]
    centre, half = (limits.high + limits.low) / 2, (limits.high - limits.low) / 2
    # unknown: shares of the ranges, and the largest of them
    aim = np.append(np.zeros(count), 1.0)
    sides = np.block([[np.eye(count), -np.ones((count, 1))], [-np.eye(count), -np.ones((count, 1))]])
    found = []
    taut = np.zeros((len(forces), 0)) if taut is None else taut
    for W, force, least in zip(actuation, forces, taut, strict=True):
        ends: list[tuple[float | None, float | None]] = [(None, None)] * (count + 1)
        for (motor, sign), effort in zip(winding, least, strict=True):
            share = float((effort - centre[motor]) / half[motor])
            ends[motor] = (share - ROUNDED, None) if sign > 0 else (None, share + ROUNDED)
        scale = np.abs(W * half).max()
        equal = np.hstack([W * half, np.zeros((len(W), 1))]) / scale
        solved = linprog(
            aim, A_ub=sides, b_ub=np.zeros(2 * count), A_eq=equal, b_eq=(force - W @ centre) / scale,
            bounds=ends, method="highs",
        )  # fmt: skip
        found.append(centre + half * solved.x[:count] if solved.success else np.full(count, np.nan))
    return np.array(found)
