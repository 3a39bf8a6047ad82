"""Shapes at nodes with masses: what sums over nodes must fulfil exactly, and how far sampled shapes were from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import linalg

from parflex.bodies.modal import ModalData, integrals
from parflex.errors import InputError
from parflex.spatial.rotations import hat

Array = np.ndarray


def rigid_shapes(nodes: Array) -> Array:
    """Six rigid motions (along x, y, z, about x, y, z) at the nodes: 6 x n x 6."""
    shapes = np.zeros((6, len(nodes), 6))
    for axis in range(3):
        shapes[axis, :, axis] = 1.0
        shapes[3 + axis, :, :3] = nodes @ hat(np.eye(3)[axis]).T
        shapes[3 + axis, :, 3 + axis] = 1.0
    return shapes


def products(data: ModalData, shapes: Array) -> Array:
    """Sums over the mass of products of every two shapes."""
    ones = np.ones(len(shapes))
    known = replace(data, shapes=shapes, modal_masses=ones, modal_stiffnesses=ones, damping_ratios=ones)
    return np.einsum("abii->ab", integrals(known)[1][1:, 1:])


def settled(data: ModalData, free: bool, limit: float, statics: bool = False) -> tuple[ModalData, float]:
    """Shapes that are orthonormal in the sums over the nodes, and how far the given ones were from it.

    Shapes of a free body lose what momentum sampling gave them. The nearest orthonormal shapes are taken, with the
    given frequencies. With `statics` they are combined instead so that the given stiffness stays diagonal: what forces
    at nodes do stays exactly as it was, and frequencies become those of the nodal masses. The distance is the largest
    entry of the Gram matrix of the shapes (and of the rigid motions with them) less the identity.
    """
    shapes = data.shapes
    distance = 0.0
    if free:
        rigid = _orthonormal_rigid(data)
        shares = products(data, np.concatenate([rigid, shapes]))[len(rigid) :, : len(rigid)]
        distance = float(np.abs(shares).max(initial=0.0))
        shapes = shapes - np.tensordot(shares, rigid, axes=1)
    gram = products(data, shapes)
    distance = max(distance, float(np.abs(gram - np.eye(len(gram))).max()))
    if not distance < limit:
        raise InputError(
            f"sums over {len(data.nodes)} nodes violate the orthogonality of the {data.count} modes by {distance:.2g}",
            key="modes",
            value=distance,
            hint="use more nodes, or fewer modes",
        )
    if statics:
        values, mix = linalg.eigh(np.diag(data.modal_stiffnesses), gram)
        return replace(data, shapes=np.tensordot(mix.T, shapes, axes=1), modal_stiffnesses=values), distance
    values, vectors = np.linalg.eigh(gram)
    root = (vectors / np.sqrt(values)) @ vectors.T
    return replace(data, shapes=np.tensordot(root, shapes, axes=1)), distance


def _orthonormal_rigid(data: ModalData) -> Array:
    """Rigid motions that the nodes can tell apart, orthonormal."""
    rigid = rigid_shapes(data.nodes)
    values, vectors = np.linalg.eigh(products(data, rigid))
    kept = values > 1e-12 * values.max()
    return np.tensordot((vectors[:, kept] / np.sqrt(values[kept])).T, rigid, axes=1)
