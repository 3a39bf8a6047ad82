"""What stress does to the stiffness of a body given by modes.

The stress of a unit of mode m changes the stiffness of all modes by the matrix `geometric[m]`, as finite-element
programs give it for a prestress. The energy 1/2 k_m (e_m + 1/2 e^T H_m e)^2 with H_m = geometric[m] / k_m has this
effect: mode m is stretched by the bending of the others, and its tension stiffens them, theory (37).
"""

from __future__ import annotations

import numpy as np

from parflex.bodies.elastic_body import MeanStrain

Array = np.ndarray


def wrong_geometric(geometric: Array, N: int) -> tuple[str, str, str] | None:
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
    th, share = shapes[:, masses > 0, 3:], masses[masses > 0] / masses.sum()
    if not np.all(np.isfinite(th)) or not th.any():
        return None
    squares = np.einsum("n,ani,bni->ab", share, th, th)
    mixed = np.einsum("n,ani,bnj->abij", share, th, th)
    return squares[:, :, None, None] * np.eye(3) - (mixed + np.swapaxes(mixed, 2, 3)) / 2
