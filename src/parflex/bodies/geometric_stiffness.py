"""Stress stiffening: axial stiffening of beams, geometric stiffness of modes, slopes of material lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.records import Record

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class MeanStrain(Record):
    """An elongation u_m = row e + 1/2 e^T H e that a stiffness `k` holds and a damping `c` slows down, theory (37).

    A bent line is longer than its chord: that is H. K and D of the body hold the linear part, which is
    all where the rest does not act.
    """

    row: Array  # N
    H: Array  # N x N
    k: float
    c: float = 0.0
    acts: bool = True

    def slope(self, e: Array) -> Array:
        """How u_m grows with e."""
        return self.row + self.H @ e

    def value(self, e: Array) -> Any:
        """The elongation itself."""
        return self.row @ e + 0.5 * (e @ (self.H @ e)) if self.acts else self.row @ e

    def force(self, e: Array) -> Any:
        """What pulls: N, positive in tension."""
        return self.k * self.value(e)


def slope_change(strain: MeanStrain, e: Array) -> Array:
    """How the square of the slope of a mean strain at e differs from that at rest."""
    slope = strain.slope(e)
    return np.outer(slope, slope) - np.outer(strain.row, strain.row)


def geometric_stiffness_error(geometric: Array, N: int) -> tuple[str, str, str] | None:
    """Message, key and hint where these are not one symmetric matrix for each of N modes."""
    key = "geometric"
    if geometric.shape != (N, N, N) or not np.all(np.isfinite(geometric)):
        return "the geometric stiffnesses do not match the modes", key, f"give {N} x {N} x {N} numbers"
    if np.abs(geometric - np.moveaxis(geometric, 1, 2)).max() > 1e-6 * np.abs(geometric).max():
        return "a geometric stiffness is not symmetric", key, "give the matrix of each mode's stress over all modes"
    return None


def stress_strains(geometric: Array | None, stiffnesses: Array, damping: Array) -> tuple[MeanStrain, ...]:
    """Of each mode whose stress changes the stiffness, the elongation of second order that has this effect."""
    if geometric is None:
        return ()
    units = np.eye(len(stiffnesses))
    symmetric = (geometric + np.moveaxis(geometric, 1, 2)) / 2
    return tuple(
        MeanStrain(units[m], symmetric[m] / k, float(k), float(damping[m]))
        for m, k in enumerate(stiffnesses)
        if symmetric[m].any()
    )


def mean_slopes(shapes: Array, masses: Array) -> Array | None:
    """Means over mass of what pairs of modes turn material lines by, N x N x 3 x 3; None if turns are not known.

    A line along a turns by th x a, so that a stress sigma meets sigma : (|th|^2 1 - th th^T).
    """
    th, mass_fractions = shapes[:, masses > 0, 3:], masses[masses > 0] / masses.sum()
    if not np.all(np.isfinite(th)) or not th.any():
        return None
    squares = np.einsum("n,ani,bni->ab", mass_fractions, th, th)
    mixed = np.einsum("n,ani,bnj->abij", mass_fractions, th, th)
    return squares[:, :, None, None] * np.eye(3) - (mixed + np.swapaxes(mixed, 2, 3)) / 2
