"""Rotations, shifts of twists and axes of motions over any scalar; zeros stay zeros."""

from __future__ import annotations

import numpy as np

from parflex.spatial.linear import is_zero
from parflex.symbolic.expression import Expression

Array = np.ndarray
E3 = np.eye(3)
TINY = 1e-14  # entries of rotations and axes below this are rounding


def dot(A: Array, B: Array) -> Array:
    """A B without products with zero."""
    A, B = np.asarray(A), np.asarray(B)
    if A.dtype != object and B.dtype != object:
        return clean(A @ B)
    return product(A, B)


def product(A: Array, B: Array) -> Array:
    """A B over any scalar, zeros kept."""
    wide = B if B.ndim == 2 else B[:, None]
    result = np.zeros((A.shape[0], wide.shape[1]), dtype=object)
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            if is_zero(A[i, k]):
                continue
            for j in range(wide.shape[1]):
                if not is_zero(wide[k, j]):
                    result[i, j] = result[i, j] + A[i, k] * wide[k, j]
    return result if B.ndim == 2 else result[:, 0]


def shift(R: Array, p: Array) -> Array:
    """From a twist to that of a frame at p: its axes are those of R (columns: axes of the first one)."""
    hat = np.zeros((3, 3), dtype=object)
    hat[0, 1], hat[0, 2], hat[1, 2] = -p[2], p[1], -p[0]
    hat[1, 0], hat[2, 0], hat[2, 1] = p[2], -p[1], p[0]
    X = np.zeros((6, 6), dtype=object)
    X[:3, :3] = X[3:, 3:] = R
    X[:3, 3:] = -product(np.asarray(R, dtype=object), hat)
    return X


def turned(R: Array, S: Array) -> Array:
    """Twists in other axes."""
    return np.concatenate([dot(R, S[:3]), dot(R, S[3:])]) if S.shape[1] else np.zeros((6, 0))


def along(S: Array, planar: bool) -> tuple[Array, Array]:
    """Axes in which motions are along single axes, and the motions there."""
    S = S.astype(float)
    if all(unit(column) is not None for column in S.T):
        return E3, S
    turns, slides = S[3:][:, np.abs(S[3:]).max(axis=0) > 0], S[:3][:, np.abs(S[:3]).max(axis=0) > 0]
    if turns.shape[1] == 3 and np.linalg.matrix_rank(turns) == 3 and not slides.size:
        return E3, np.eye(6)[:, 3:]
    axis = (turns if turns.size else slides)[:, 0]
    if planar:
        E = np.stack([axis, np.cross([0.0, 0.0, 1.0], axis), [0.0, 0.0, 1.0]], axis=1) if abs(axis[2]) < 0.5 else E3
    else:
        near = E3[np.argmin(np.abs(axis))]
        second = np.cross(axis, near) / np.linalg.norm(np.cross(axis, near))
        E = np.stack([axis, second, np.cross(axis, second)], axis=1)
    E = clean(E)
    return E, clean(turned(E.T, S).astype(float))


def unit(column: Array) -> int | None:
    """The one component of a motion; None if there are several."""
    full = [k for k, x in enumerate(column) if not is_zero(x)]
    if len(full) != 1 or isinstance(column[full[0]], Expression) or abs(abs(column[full[0]]) - 1) > TINY:
        return None
    return full[0]


def all_turns(S: Array) -> bool:
    """Whether motions are turns about all axes."""
    return (
        S.shape[1] == 3
        and not has_symbols(S)
        and not S[:3].any()
        and bool(np.linalg.matrix_rank(S[3:].astype(float)) == 3)
    )


def has_symbols(values: Array) -> bool:
    """Whether some entry is a symbol."""
    return any(isinstance(x, Expression) for x in np.asarray(values).flat)


def clean(matrix: Array) -> Array:
    """Zeros for what is rounding."""
    return np.where(np.abs(matrix) < TINY, 0.0, matrix)
