"""Frequencies of beams in the plane without elements: the differential equations solved by a matrix exponential.

The state along a beam is (u, v, turn of the section, normal force, shear force, moment). With the shear stiffness kGA
v' = turn + Q/(kGA), turn' = M/EI, M' = -Q - rho I omega^2 turn, Q' = -rho A omega^2 v; along the beam u' = N/EA and
N' = -rho A omega^2 u. What the supports leave of the product of transfer matrices is singular at a natural frequency.
"""

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.optimize

from .beam_element import Bar

CLAMPED, PINNED, FREE = [0, 1, 2], [0, 1, 5], [3, 4, 5]  # states that are zero there
ROLLER = [1, 3, 5]


def transfer(bar: Bar, length: float, omega: float) -> np.ndarray:
    """State at the end from the state at the start; forces are measured in units of EI."""
    EI = bar.E * bar.Iz
    inertia = bar.density * omega**2 / EI
    A = np.zeros((6, 6))
    A[0, 3], A[3, 0] = bar.Iz / bar.A, -inertia * bar.A
    A[1, 2], A[1, 4] = 1.0, EI / (bar.G * bar.shear_y)
    A[2, 5] = 1.0
    A[4, 1] = -inertia * bar.A
    A[5, 4], A[5, 2] = -1.0, -inertia * bar.Iz if bar.rotary else 0.0
    return scipy.linalg.expm(A * length)


def corner(angle: float) -> np.ndarray:
    """The state in the axes of a beam that goes on turned by an angle."""
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    return np.kron(np.eye(2), turn)


def frequencies(
    path: Callable[[float], np.ndarray], start: list[int], end: list[int], count: int, top: float
) -> np.ndarray:
    """Roots in Hz, below `top`, of the determinant that the zero states at both ends leave."""
    kept = [k for k in range(6) if k not in start]

    def left(frequency: float) -> float:
        return float(np.linalg.det(path(2 * np.pi * frequency)[np.ix_(end, kept)]))

    grid = np.linspace(top / 400, top, 400)  # a few roots far apart: one that was missed would show as a wrong one
    values = np.array([left(frequency) for frequency in grid])
    changes = np.flatnonzero(np.sign(values[1:]) != np.sign(values[:-1]))[:count]
    return np.array([scipy.optimize.brentq(left, grid[k], grid[k + 1], rtol=1e-14) for k in changes])


def ring(bar: Bar, radius: float, waves: int) -> float:
    """In-plane bending of a thin ring that hardly stretches, in Hz."""
    n = waves
    speed = np.sqrt(bar.E * bar.Iz / (bar.density * bar.A))
    return n * (n**2 - 1) / np.sqrt(n**2 + 1) * speed / (2 * np.pi * radius**2)
