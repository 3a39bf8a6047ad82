"""Lowest modes from whole matrices, one pose at a time."""

from __future__ import annotations

import numpy as np
import scipy.linalg

Array = np.ndarray
NEARLY = 1e-11  # of a stiffness with unit diagonal: a motion that springs hold at all has more, rounding less


def lowest_modes(K: Array, M: Array, free: int, modes: int) -> tuple[Array, Array]:
    """Lowest eigenvalues of K v = w^2 M v and M-normalised vectors, `free` ones without stiffness first.

    Without such ones the largest of M v = K v / w^2 are asked for, with K scaled to a unit diagonal: LAPACK's errors
    are shares of the largest value, and the lowest frequency would feel the stiffest spring.
    """
    if not free:
        try:
            return _of_inverse(K, M, modes)
        except np.linalg.LinAlgError:  # not positive definite
            pass
    return scipy.linalg.eigh(K, M, subset_by_index=[0, min(free + modes, len(K)) - 1])


def _of_inverse(K: Array, M: Array, modes: int) -> tuple[Array, Array]:
    diagonal = np.diag(K)
    if not (diagonal > 0.0).all():
        raise np.linalg.LinAlgError("no stiffness on the diagonal")
    scale = 1.0 / np.sqrt(diagonal)
    both = np.outer(scale, scale)
    last = len(K) - 1
    shares, vectors = scipy.linalg.eigh(both * M, both * K, subset_by_index=[last - min(modes, len(K)) + 1, last])
    if shares[0] <= 0.0:
        raise np.linalg.LinAlgError("a mode without inertia")
    return 1.0 / shares[::-1], (scale[:, None] * vectors / np.sqrt(shares))[:, ::-1]


def nearly_free(K: Array) -> int:
    """How many motions have no stiffness beside that of their own coordinates: a soft spring beside a stiff one has."""
    diagonal = np.diag(K)
    held = diagonal > 0.0
    scale = np.where(held, 1.0 / np.sqrt(np.where(held, diagonal, 1.0)), 0.0)
    return int(np.sum(np.linalg.eigvalsh(np.outer(scale, scale) * K) < NEARLY))
