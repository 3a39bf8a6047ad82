"""The fastest motion along a path as one large problem: all squared speeds at once, by linear programs in turn.

Unknown are x = y^2, u is their difference; A u + B y^2 + D y + G is within limits mid-interval. The larger of two
possible motions is possible, so the largest sum of x is the fastest motion; D y is a tangent at the last answer.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

Array = np.ndarray


def fastest_time(
    terms: Callable[[Array], Array],
    length: float,
    low: Array,
    high: Array,
    count: int = 800,
    velocity: Callable[[Array], Array] | None = None,
) -> tuple[float, Array, Array]:
    """Time, places and speeds; `terms(s)` has (place, motor, [A, B, D, G]), `velocity(s)` largest path speeds."""
    x = np.linspace(0.0, 1.0, count + 1)
    s = length * (3 * x**2 - 2 * x**3)  # dense at both ends
    middle, ds = (s[1:] + s[:-1]) / 2, np.diff(s)
    A, B, D, G = np.moveaxis(terms(middle), 2, 0)
    most = np.full(count + 1, np.inf) if velocity is None else velocity(s) ** 2
    most[[0, -1]] = 0.0
    squares = np.ones(count + 1)
    for turn in range(25):
        y = np.sqrt(np.maximum((squares[1:] + squares[:-1]) / 2, 1e-9 * squares.max()))
        tangent = (0.0 if turn == 0 else 1.0) * D / (2 * y[:, None])  # the first one knows no friction
        rest = G + (0.0 if turn == 0 else 1.0) * D * y[:, None] / 2
        after, before = (A / (2 * ds[:, None]) + (B + tangent) / 2), (-A / (2 * ds[:, None]) + (B + tangent) / 2)
        blocks, right = [], []
        for motor in range(A.shape[1]):
            row = sp.diags([before[:, motor], after[:, motor]], [0, 1], shape=(count, count + 1))
            blocks += [row / high[motor], -row / -low[motor]]
            right += [(high[motor] - rest[:, motor]) / high[motor], (rest[:, motor] - low[motor]) / -low[motor]]
        weights = np.append(ds / y**3, ds[-1] / y[-1] ** 3) if turn else np.ones(count + 1)
        found = linprog(
            -weights / weights.max(),
            sp.vstack(blocks),
            np.concatenate(right),
            bounds=[(0.0, None if np.isinf(top) else top) for top in most],
            method="highs-ds",
        )
        if found.status != 0:
            raise ValueError(found.message)
        change = np.abs(found.x - squares).max() / found.x.max()
        squares = found.x
        if turn and change < 1e-9:
            break
    speeds = np.sqrt(squares)
    return float((2 * ds / (speeds[1:] + speeds[:-1])).sum()), s, speeds
