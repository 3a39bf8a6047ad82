"""The quintic: position, velocity and acceleration are given at both ends. From rest to rest it is a smooth step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray


def quintic_powers(position: Any, velocity: Any, acceleration: Any) -> tuple[Any, ...]:
    """Coefficients of u^0 .. u^5 for values, and derivatives by u, at u = 0 and at u = 1; each is a pair."""
    (p0, p1), (v0, v1), (a0, a1) = position, velocity, acceleration
    way, turn, bend = p1 - p0 - v0 - a0 / 2, v1 - v0 - a0, a1 - a0
    high = 10 * way - 4 * turn + bend / 2, -15 * way + 7 * turn - bend, 6 * way - 3 * turn + bend / 2
    return p0, v0, a0 / 2, *high


STEP = quintic_powers((0.0, 1.0), (0.0, 0.0), (0.0, 0.0))  # from 0 to 1, at rest at both ends


def smooth_step(u: Array, time: float = 1.0) -> tuple[Array, Array, Array]:
    """The step from 0 to 1, and its derivatives by a time in which u goes from 0 to 1."""
    return _of_step(u, 0), _of_step(u, 1) / time, _of_step(u, 2) / time**2


def smooth_step_integral(u: Array) -> Array:
    """The way that is gone at the speed of the step."""
    return _horner([0.0, *(value / (power + 1) for power, value in enumerate(STEP))], u)


def step_derivative(order: int) -> list[float]:
    """Coefficients of a derivative of the step."""
    return [math.perm(power, order) * value for power, value in enumerate(STEP)][order:]


def _of_step(u: Array, order: int) -> Array:
    return _horner(step_derivative(order), u)


def _horner(powers: list[float], u: Array) -> Array:
    total: Array = np.zeros_like(u, dtype=float)
    for value in reversed(powers):
        total = total * u + value
    return total
