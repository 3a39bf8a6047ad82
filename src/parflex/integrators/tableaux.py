"""Coefficients of the methods, from their definitions."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from parflex.codegen.loop_types import CompiledRecord

Array = np.ndarray


class Gauss(CompiledRecord):
    """Collocation at the Gauss points: c, A, A A, b, second = b A, inverses of A and A A.

    A = T diag(roots) T^-1: real root or one of a complex pair, its row of T^-1 and its column of T, doubled for a pair,
    theory (58). The error of a step is `error` h^order times a derivative of the solution, the next Pade term.
    """

    c: Array
    A: Array
    AA: Array
    b: Array
    second: Array
    once: Array
    twice: Array
    roots: Array  # (mode, part)
    into: Array  # (mode, part, stage)
    back: Array
    error: float


class Explicit(CompiledRecord):
    """An explicit Runge-Kutta pair; `error` is b less the weights of the lower order."""

    c: Array
    A: Array
    b: Array
    error: Array
    order: int


class Alpha(CompiledRecord):
    """Chung and Hulbert's generalized-alpha for a spectral radius at infinity."""

    mean_mass: float  # alpha_m
    mean_force: float  # alpha_f
    beta: float
    gamma: float
    error: float  # of positions in a step: times h^2 and the change of acceleration


def gauss_points(count: int) -> tuple[Array, Array]:
    """Return points and weights of the Gauss rule on the unit interval, exact for polynomials of degree 2 count - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


@lru_cache(maxsize=4)
def gauss(stages: int) -> Gauss:
    """Return Gauss collocation of order 2 * stages."""
    c, b = gauss_points(stages)
    powers = np.vander(c, stages, increasing=True)
    exponents = np.arange(1, stages + 1)
    A = (c[:, None] ** exponents / exponents) @ np.linalg.inv(powers)
    once = np.linalg.inv(A)
    error = math.factorial(stages) ** 2 / math.factorial(2 * stages) / math.factorial(2 * stages + 1)
    return Gauss(c, A, A @ A, b, b @ A, once, once @ once, *_modes(A), error)


def _modes(A: Array) -> tuple[Array, Array, Array]:
    """Return roots of A on or above the real axis, with their rows and columns, as real and imaginary parts."""
    roots, T = np.linalg.eig(A)
    roots = np.where(np.abs(roots.imag) < 1e-9, roots.real, roots)
    selected = [k for k in np.argsort(np.abs(roots.imag)) if roots[k].imag >= 0]
    weights = np.where(roots[selected].imag > 0, 2.0, 1.0)
    return _parts(roots[selected]), _parts(np.linalg.inv(T)[selected]), _parts(weights[:, None] * T.T[selected])


def _parts(values: Array) -> Array:
    """Return real and imaginary parts, behind the mode."""
    return np.ascontiguousarray(np.stack([values.real, values.imag], axis=1))


def rk4() -> Explicit:
    """Return the classical method of order 4."""
    A = np.zeros((4, 4))
    A[1, 0] = A[2, 1] = 0.5
    A[3, 2] = 1.0
    return Explicit(A.sum(axis=1), A, np.array([1, 2, 2, 1]) / 6, np.zeros(4), 4)


def dopri5() -> Explicit:
    """Return Dormand and Prince's pair of orders 5 and 4."""
    A = np.zeros((7, 7))
    A[1, :1] = [1 / 5]
    A[2, :2] = [3 / 40, 9 / 40]
    A[3, :3] = [44 / 45, -56 / 15, 32 / 9]
    A[4, :4] = [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729]
    A[5, :5] = [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656]
    A[6, :6] = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]
    b = A[6].copy()
    lower = np.array([5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40])
    return Explicit(A.sum(axis=1), A, b, b - lower, 5)


def generalized_alpha(radius: float) -> Alpha:
    """Return the method with the least damping of low frequencies for a spectral radius at infinity (0 to 1)."""
    m, f = (2 * radius - 1) / (radius + 1), radius / (radius + 1)
    beta = (1 - m + f) ** 2 / 4
    return Alpha(m, f, beta, 0.5 - m + f, abs(beta + (m - f) / 2 - 1 / 6))  # its own accelerations are m - f ahead
