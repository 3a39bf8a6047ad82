"""Free plates in rad/s: rectangles by Ritz (Mindlin or Kirchhoff, Legendre polynomials), discs by Bessel functions."""

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.special import iv, ivp, jv, jvp


def legendre_tables(degree: int, length: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integrals over the length of products p_i p_j, p_i' p_j', p_i p_j', by their expansions in p."""
    size = degree + 1
    norms = length / (2 * np.arange(size) + 1)
    plain = np.diag(norms)
    slope = np.array([np.pad(np.polynomial.legendre.legder(row), (0, size))[:size] for row in np.eye(size)])
    slope *= 2 / length
    return plain, slope @ plain @ slope.T, plain @ slope.T


def second_tables(degree: int, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Integrals of p_i'' p_j'' and p_i p_j''."""
    size = degree + 1
    plain = np.diag(length / (2 * np.arange(size) + 1))
    bend = np.array([np.pad(np.polynomial.legendre.legder(row, 2), (0, size))[:size] for row in np.eye(size)])
    bend *= (2 / length) ** 2
    return bend @ plain @ bend.T, plain @ bend.T


def kirchhoff_rectangle(
    a: float, b: float, h: float, E: float, density: float, nu: float, degree: int, count: int, rotary: bool
) -> np.ndarray:
    """Lowest elastic frequencies of a thin plate."""
    (m1, s1, _), (m2, s2, _) = legendre_tables(degree, a), legendre_tables(degree, b)
    (b1, c1), (b2, c2) = second_tables(degree, a), second_tables(degree, b)
    D = E * h**3 / (12 * (1 - nu**2))
    mixed = np.kron(c1.T, c2)
    K = D * (np.kron(b1, m2) + np.kron(m1, b2) + nu * (mixed + mixed.T) + 2 * (1 - nu) * np.kron(s1, s2))
    M = density * h * np.kron(m1, m2)
    if rotary:
        M = M + density * h**3 / 12 * (np.kron(s1, m2) + np.kron(m1, s2))
    return _elastic(K, M, count)


def mindlin_rectangle(
    a: float, b: float, h: float, E: float, density: float, nu: float, degree: int, count: int, k: float = 5 / 6
) -> np.ndarray:
    """Lowest elastic frequencies of a plate with shear and rotary inertia."""
    (m1, s1, g1), (m2, s2, g2) = legendre_tables(degree, a), legendre_tables(degree, b)
    D, S = E * h**3 / (12 * (1 - nu**2)), k * E / (2 * (1 + nu)) * h
    mm, dx, dy = np.kron(m1, m2), np.kron(s1, m2), np.kron(m1, s2)
    to_x, to_y = np.kron(g1, m2), np.kron(m1, g2)  # p_i times the x (y) slope of p_j
    cross = np.kron(g1.T, g2)  # slope along x of p_i times slope along y of p_j
    shear = D * (1 - nu) / 2
    xy = D * nu * cross + shear * cross.T
    K = np.block(
        [
            [S * (dx + dy), -S * to_x.T, -S * to_y.T],
            [-S * to_x, D * dx + shear * dy + S * mm, xy],
            [-S * to_y, xy.T, D * dy + shear * dx + S * mm],
        ]
    )
    M = scipy.linalg.block_diag(density * h * mm, density * h**3 / 12 * mm, density * h**3 / 12 * mm)
    return _elastic(K, M, count)


def _elastic(K: np.ndarray, M: np.ndarray, count: int) -> np.ndarray:
    """Roots of the eigenvalues beyond three rigid motions."""
    values = scipy.linalg.eigh(K, M, eigvals_only=True, subset_by_index=[0, count + 2])
    return np.sqrt(values[3:])


def free_disc(waves: int, nu: float, circles: int) -> np.ndarray:
    """Values lam^2 = omega R^2 sqrt(rho h / D) of the modes with `waves` nodal diameters, the lowest first."""

    def edge(lam: float) -> float:
        rows = []
        for value, slope, sign in ((jv(waves, lam), jvp(waves, lam), -1), (iv(waves, lam), ivp(waves, lam), 1)):
            W, W1 = value, lam * slope  # radius one
            W2 = sign * lam**2 * W - W1 + waves**2 * W
            moment = W2 + nu * (W1 - waves**2 * W)
            force = sign * lam**2 * W1 - (1 - nu) * waves**2 * (W1 - W)
            rows.append((moment / iv(waves, lam), force / iv(waves, lam)))
        return rows[0][0] * rows[1][1] - rows[0][1] * rows[1][0]

    grid = np.linspace(0.8, 15, 600)
    values = [edge(lam) for lam in grid]
    roots = [
        scipy.optimize.brentq(edge, grid[i], grid[i + 1], xtol=1e-13)
        for i in range(len(grid) - 1)
        if values[i] * values[i + 1] < 0
    ]
    return np.array(roots[:circles]) ** 2
