"""Modal coordinates of a super-element that motions in the plane of a planar robot reach."""

from __future__ import annotations

import numpy as np
import scipy

from parflex.bodies.super_elements.reduced_matrices import ReducedMatrices

Array = np.ndarray
IN_PLANE = (0, 1, 5)  # x, y and rz of a node, and of the body
ALIKE = 1e-6  # of a frequency squared: modes that are nearer share a plane of shapes, and any two of it are modes
UNTOUCHED = 1e-6  # of the mass of a mode: what couples less is rounding


def in_plane_modes(data: ReducedMatrices) -> Array:
    """Columns over all freedoms: modes with held interfaces that M or K couples to x, y and rz of some node.

    Bending out of the plane is left out where nothing in the plane moves it, also where it has the frequency of bending
    in the plane and the finite-element program mixed the two.
    """
    n, free = data.interface, [node.rows[k] for node in data.nodes for k in IN_PLANE if k < len(node.rows)]
    if data.size == n:
        return np.zeros((n, 0))
    squares, V = scipy.linalg.eigh(data.K[n:, n:], data.M[n:, n:])
    own = np.diag(data.M)[free]
    coupled = V.T @ data.M[n:, free] / np.sqrt(np.where(own > 0, own, np.inf))
    stiff = V.T @ data.K[n:, free] / np.sqrt(np.abs(np.outer(squares, np.diag(data.K)[free])) + 1e-300)
    rows = np.hstack([coupled, stiff])
    kept, first = [], 0
    while first < len(squares):
        last = first + 1
        while last < len(squares) and squares[last] - squares[first] <= ALIKE * abs(squares[last]):
            last += 1
        U, sizes, _ = np.linalg.svd(rows[first:last], full_matrices=False)
        kept += [V[:, first:last] @ u for u, size in zip(U.T, sizes, strict=True) if size > UNTOUCHED]
        first = last
    modes = np.zeros((data.size, len(kept)))
    modes[n:] = np.array(kept).reshape(len(kept), -1).T
    return modes
