"""Efforts of spare motors within their ranges: those whose largest share of its range is the smallest."""

from __future__ import annotations

import numpy as np

from parflex.simulation.time_optimal.motor_limits import MotorLimits

Array = np.ndarray


def efforts_within(actuation: Array, forces: Array, limits: MotorLimits) -> Array:
    """Efforts (place, motor) for forces (place, freedom); a linear program at each place where motors are spare."""
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
    for W, force in zip(actuation, forces, strict=True):
        scale = np.abs(W * half).max()
        equal = np.hstack([W * half, np.zeros((len(W), 1))]) / scale
        solved = linprog(
            aim, A_ub=sides, b_ub=np.zeros(2 * count), A_eq=equal, b_eq=(force - W @ centre) / scale,
            bounds=[(None, None)] * (count + 1), method="highs",
        )  # fmt: skip
        found.append(centre + half * solved.x[:count] if solved.success else np.full(count, np.nan))
    return np.array(found)
