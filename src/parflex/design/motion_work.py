"""Work of the motors in a motion, driving or braking: the integral of the absolute values of their powers.

Absolute values have kinks where motors begin to brake; signed powers are smooth. The absolute values of their
polynomials are integrated between roots. Derivatives are those of the same integral: a power vanishes at its roots, so
that their motion has no effect. Where friction jumps, the instant moves with the numbers of the robot, and the jump of
the powers contributes (Leibniz).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import legendre

from parflex.design.smooth_pieces import SmoothPieces, roots
from parflex.spatial.dual import Sensitive

Array = np.ndarray
JUMPS = 1e-9  # of the largest power: smaller ones are rounding


def integral_of_sizes(functions: SmoothPieces) -> Any:
    """The integral of the sum of sizes of functions over a motion, with slopes if the design has keys."""
    count = functions.instants.state.count
    value, change = 0.0, np.zeros(count)
    for piece in functions.pieces:
        half, columns = (piece.end - piece.begin) / 2, piece.values.shape[1]
        moved = functions.slopes(piece) if count else np.zeros((len(piece.values), columns, 0))
        for k in range(columns):
            one, its = _size(piece.values[:, k], moved[:, k])
            value += half * one
            change += half * its
    if not count:
        return value
    for before, behind in pairwise(functions.pieces):
        jump = float(np.abs(before.at(1)).sum() - np.abs(behind.at(-1)).sum())
        if before.end in functions.turns and abs(jump) > JUMPS * functions.largest:
            change += jump * functions.moved(before.end)
    return Sensitive(value, change)


def _size(coefficients: Array, moved: Array) -> tuple[float, Array]:
    """The integral of the size of a polynomial from -1 to 1, and of its slopes, columns of polynomials."""
    ends = np.array([-1.0, *roots(coefficients), 1.0])
    parts = np.diff(legendre.legval(ends, legendre.legint(coefficients)))
    changes = np.diff(legendre.legval(ends, legendre.legint(moved)), axis=-1)
    return float(np.abs(parts).sum()), changes @ np.sign(parts)
