"""Sections of a bent beam element from EI v'''' = 0 between the frames at its ends, with shear, by a linear system."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

Array = np.ndarray


@dataclass(frozen=True)
class Element:
    """Length, roll of the section, and bending per shear stiffness E I / (k G A) for deflections along y and z."""

    length: float
    roll: float = 0.0
    soft: tuple[float, float] = (0.0, 0.0)


def section(element: Element, root: tuple[Array, Array], tip: tuple[Array, Array], xi: float) -> tuple[Array, Array]:
    """World rotation and position of the section at xi L; `root` and `tip` are rotation and position of the ends."""
    (R, p), (R_tip, p_tip) = root, tip
    L, x = element.length, xi * element.length
    own = R @ Rotation.from_euler("x", element.roll).as_matrix()  # axes of the section at the root
    moved = own.T @ (p_tip - p) - [L, 0, 0]
    turned = own.T @ (R @ Rotation.from_matrix(R.T @ R_tip).as_rotvec())
    v, turn_z = _bent(moved[1], turned[2], L, element.soft[0], x)
    w, turn_y = _bent(moved[2], -turned[1], L, element.soft[1], x)  # a turn about y lowers what lies along x
    here = own @ np.array([x + xi * moved[0], v, w])
    turn = own @ np.array([xi * turned[0], -turn_y, turn_z])
    return Rotation.from_rotvec(turn).as_matrix() @ R, p + here


def _bent(deflection: float, turn: float, L: float, soft: float, x: float) -> tuple[float, float]:
    """Deflection and turn of the section at x: v = a x + b x^2 + c x^3, turn = v' - gamma, gamma = -soft v'''."""
    # turn(x) = a + 2 b x + 3 c x^2 + 6 soft c, zero at the root
    rows = np.array([[1, 0, 6 * soft], [L, L**2, L**3], [1, 2 * L, 3 * L**2 + 6 * soft]])
    a, b, c = np.linalg.solve(rows, [0.0, deflection, turn])
    return a * x + b * x**2 + c * x**3, a + 2 * b * x + 3 * c * x**2 + 6 * soft * c


def cantilever(F: float, a: float, x: float, EI: float) -> tuple[float, float]:
    """Deflection and slope at x of a clamped beam with a force at a."""
    if x <= a:
        return F * x**2 * (3 * a - x) / (6 * EI), F * x * (2 * a - x) / (2 * EI)
    return F * a**2 * (3 * x - a) / (6 * EI), F * a**2 / (2 * EI)
