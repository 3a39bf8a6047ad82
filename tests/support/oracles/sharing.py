"""More motors than freedoms, from rows of closures and forces of the tree alone: normal equations, all active sets."""

from itertools import combinations, product

import numpy as np

Array = np.ndarray
RANK = 1e-10


def balance(jacobian: Array, force: Array, motors: list[int]) -> tuple[Array, Array]:
    """A and g of A tau = g: virtual power along all motions that the closures allow."""
    _, values, right = np.linalg.svd(jacobian)
    motions = right[int(np.sum(values > RANK * values[0])) :].T
    return motions[motors].T, motions.T @ force


def least(A: Array, g: Array, weights: Array) -> Array:
    """Least weighted norm by Lagrange's equations of the whole problem."""
    n, m = A.shape
    system = np.block([[np.diag(weights), A.T], [A, np.zeros((n, n))]])
    return np.linalg.solve(system, np.concatenate([np.zeros(m), g]))[:m]


def preloaded(A: Array, weights: Array, stated: dict[int, float]) -> Array:
    """The internal efforts of least weighted norm with stated entries."""
    rows = np.vstack([A, np.eye(A.shape[1])[list(stated)]])
    return least(rows, np.concatenate([np.zeros(len(A)), list(stated.values())]), weights)


def bounded(
    A: Array, g: Array, weights: Array, lower: Array, upper: Array, stated: dict[int, float]
) -> tuple[Array | None, Array]:
    """The least weighted distance from the preload within limits, by trying every set of motors at every limit."""
    free = preloaded(A, weights, stated) if stated else np.zeros(A.shape[1])
    spare = A.shape[1] - len(A) - len(stated)
    base = np.vstack([A, np.eye(A.shape[1])[list(stated)]])
    right = np.concatenate([g, least(A, g, weights)[list(stated)] + list(stated.values())]) - base @ free
    best, size, scale = None, np.inf, float(np.abs(np.concatenate([free, right])).max())
    for count in range(spare + 1):
        for motors in combinations([k for k in range(A.shape[1]) if k not in stated], count):
            for ends in product((lower, upper), repeat=count):
                limits = np.array([end[k] for k, end in zip(motors, ends, strict=True)])
                if not np.isfinite(limits).all():
                    continue
                rows = np.vstack([base, np.eye(A.shape[1])[list(motors)]])
                if np.linalg.matrix_rank(rows) < len(rows):
                    continue
                tau = free + least(rows, np.concatenate([right, limits - free[list(motors)]]), weights)
                away = float((tau - free) @ (weights * (tau - free)))
                fits = np.all(tau >= lower - 1e-9 * scale) and np.all(tau <= upper + 1e-9 * scale)
                if fits and away < size:
                    best, size = tau, away
    return best, free
