"""Matrices of one beam element with two nodes, in its own axes, by quadrature of shapes found from the end conditions.

Unknowns are u, v, w and the three rotations at the first end, then at the second. The deflection is the cubic and the
rotation of the section the quadratic that solve the equations of an unloaded beam: with the slope v', bending
stiffness EI and shear stiffness kGA the section turns by v' + EI/(kGA) v'''. Without shear it turns by v'.
"""

from dataclasses import dataclass

import numpy as np

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(5)  # exact to degree nine; shapes squared have degree six


@dataclass(frozen=True)
class Bar:
    """Material and section of a beam; shear areas are infinite for an Euler-Bernoulli beam."""

    E: float
    G: float
    density: float
    A: float
    Iy: float
    Iz: float
    J: float
    Ip: float
    rotary: bool = False
    shear_y: float = np.inf  # area times coefficient for a shear force along y
    shear_z: float = np.inf
    roll: float = 0.0  # angle of the section about the beam
    mean: bool = True  # whether bending takes from the stretch of the centre line


def bending(length: float, EI: float, shear: float, mass: float, inertia: float) -> tuple[np.ndarray, np.ndarray]:
    """4 x 4 stiffness and mass for deflection and slope at both ends."""
    ratio = EI / shear  # metres squared; zero for an infinite shear stiffness

    def deflection(x: float) -> np.ndarray:
        return np.array([1, x, x**2, x**3])

    def turn(x: float) -> np.ndarray:
        return np.array([0, 1, 2 * x, 3 * x**2 + 6 * ratio])

    ends = np.array([deflection(0), turn(0), deflection(length), turn(length)])
    shapes = np.linalg.inv(ends)
    K, M = np.zeros((4, 4)), np.zeros((4, 4))
    for point, weight in zip((POINTS + 1) / 2 * length, WEIGHTS / 2 * length, strict=True):
        curvature = np.array([0, 0, 2, 6 * point])
        K += weight * EI * np.outer(curvature, curvature)
        M += weight * mass * np.outer(deflection(point), deflection(point))
        M += weight * inertia * np.outer(turn(point), turn(point))
    if ratio:
        strain = np.array([0, 0, 0, -6 * ratio])  # slope less rotation of the section
        K += length * shear * np.outer(strain, strain)
    return shapes.T @ K @ shapes, shapes.T @ M @ shapes


def element(length: float, bar: Bar) -> tuple[np.ndarray, np.ndarray]:
    """12 x 12 stiffness and mass."""
    K, M = np.zeros((12, 12)), np.zeros((12, 12))
    for first, stiffness, mass in ((0, bar.E * bar.A, bar.density * bar.A), (3, bar.G * bar.J, bar.density * bar.Ip)):
        pair = np.ix_([first, first + 6], [first, first + 6])
        K[pair] = stiffness / length * np.array([[1, -1], [-1, 1]])
        M[pair] = mass * length / 6 * np.array([[2, 1], [1, 2]])
    turning = bar.density if bar.rotary else 0.0
    for where, signs, I, area in (
        ([1, 5, 7, 11], [1, 1, 1, 1], bar.Iz, bar.shear_y),
        ([2, 4, 8, 10], [1, -1, 1, -1], bar.Iy, bar.shear_z),  # a turn about y lowers z
    ):
        k, m = bending(length, bar.E * I, bar.G * area, bar.density * bar.A, turning * I)
        sign = np.outer(signs, signs)
        K[np.ix_(where, where)] = sign * k
        M[np.ix_(where, where)] = sign * m
    return K, M
