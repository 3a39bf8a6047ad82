"""Columns of cubic elements under a normal force N: K + N K_G, with lengths, stiffness and mass per length of 1."""

import numpy as np

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(5)  # exact to degree nine; shapes squared have degree six
HELD = {  # at the first and at the second end: 0 deflection, 1 slope
    "pinned": ((0,), (0,)),
    "clamped-free": ((0, 1), ()),
    "clamped-pinned": ((0, 1), (0,)),
    "clamped-clamped": ((0, 1), (0, 1)),
}


def _element(length: float, spin: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bending stiffness, int v'^2 and mass for deflection and slope at both ends; `spin` is rho I of the section."""

    def rows(x: float) -> list[np.ndarray]:
        return [
            np.array([1, x, x**2, x**3]),
            np.array([0, 1, 2 * x, 3 * x**2]),
            np.array([0, 0, 2, 6 * x]),
        ]

    shapes = np.linalg.inv([*rows(0)[:2], *rows(length)[:2]])
    K, S, M = np.zeros((3, 4, 4))
    for point, weight in zip((POINTS + 1) / 2 * length, WEIGHTS / 2 * length, strict=True):
        deflection, slope, curvature = rows(point)
        K += weight * np.outer(curvature, curvature)
        S += weight * np.outer(slope, slope)
        M += weight * (np.outer(deflection, deflection) + spin * np.outer(slope, slope))
    return shapes.T @ K @ shapes, shapes.T @ S @ shapes, shapes.T @ M @ shapes


def column(elements: int, ends: str, spin: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K, K_G for a unit of tension, and M of what is free."""
    size = 2 * (elements + 1)
    matrices = np.zeros((3, size, size))
    for k in range(elements):
        own = np.ix_(range(2 * k, 2 * k + 4), range(2 * k, 2 * k + 4))
        for whole, part in zip(matrices, _element(1 / elements, spin), strict=True):
            whole[own] += part
    first, last = HELD[ends]
    held = {*first, *(size - 2 + k for k in last)}
    free = [k for k in range(size) if k not in held]
    K, S, M = (whole[np.ix_(free, free)] for whole in matrices)
    return K, S, M


def buckling(elements: int, ends: str) -> float:
    """The lowest compression, in units of EI / L^2, under which K - P K_G is singular."""
    K, S, _ = column(elements, ends)
    return float(1 / np.linalg.eigvals(np.linalg.solve(K, S)).real.max())


def frequency(elements: int, ends: str, tension: float) -> float:
    """The lowest circular frequency under a tension in units of EI / L^2."""
    K, S, M = column(elements, ends)
    return float(np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K + tension * S)).real.min()))
