"""The part of the deformation of a body that a mirror in a plane shows unchanged, whatever coordinates it has.

Nodes say what a mirror makes of the motions that they see. Of modes that leave all nodes at rest, inertia says it: a
mirror of a symmetric body keeps its mass, so that such a mode is coupled to motions of its own kind only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from parflex.bodies.body import Body
from parflex.bodies.elastic_body import Node

Array = np.ndarray
SEEN = 1e-6  # of the largest motion of nodes that a unit of strain energy can make: less is none
ALIKE = 1e-3  # of 1 / frequency squared: modes that are nearer share a plane of shapes, which files mix at will
SAME_PLACE = 1e-6  # of the extent of the nodes: two that mirror each other
COUPLED = 1e-6  # of the mass of a mode: what couples less is rounding


def mirrored_part(body: Body, n: Array) -> Array:
    """N x N: of elastic coordinates the part that moves the body in the plane across `n`, and turns it about `n`.

    Where a mode is neither seen by nodes nor coupled to anything, half of it is.
    """
    rest, nodes = np.zeros(body.size), list(body.nodes.values())
    extent = max((float(np.linalg.norm(node.r0)) for node in nodes), default=0.0) or 1.0
    moves = np.vstack(
        [np.zeros((0, body.size)), *(part for node in nodes for part in (node.Phi_d, extent * node.Phi_r))]
    )
    K, M = body.material_stiffness(rest), body.inertia_matrix(rest)
    root = np.linalg.inv(np.linalg.cholesky(K)).T  # to coordinates with strain energy 1/2 each
    U, sizes, Wt = np.linalg.svd(moves @ root)
    rank = int((sizes > SEEN * sizes.max(initial=0.0)).sum())
    seen, inner = root @ Wt[:rank].T, root @ Wt[rank:].T
    own = (U[:, :rank] / sizes[:rank]).T @ _mirrored(nodes, n, _centre(body, n), extent) @ moves @ seen
    part = seen @ own @ seen.T @ K
    if rank == body.size:
        return part
    rigid = np.zeros((6, 6))
    rigid[:3, :3], rigid[3:, 3:] = np.eye(3) - np.outer(n, n), np.outer(n, n)
    motions = scipy.linalg.block_diag(np.eye(6), seen)
    return part + inner @ _by_coupling(M, motions, scipy.linalg.block_diag(rigid, own), inner) @ inner.T @ K


def _centre(body: Body, n: Array) -> float:
    """How far along `n` the centre of mass is."""
    return float(n @ body.deformed(np.zeros(body.size))[0] / body.m)


def _mirrored(nodes: Sequence[Node], n: Array, centre: float, extent: float) -> Array:
    """The mean of the motions of nodes and those that the mirror shows; a node without an image is its own."""
    places = np.array([node.r0 for node in nodes]).reshape(-1, 3)
    images = places - 2 * np.outer(places @ n - centre, n)
    away = np.linalg.norm(images[:, None] - places[None], axis=2)
    flip = np.eye(3) - 2 * np.outer(n, n)
    result = np.eye(6 * len(nodes)) / 2
    for k in range(len(nodes)):
        nearest = int(away[k].argmin())
        image = nearest if away[k, nearest] < SAME_PLACE * extent else k
        result[6 * k : 6 * k + 6, 6 * image : 6 * image + 6] += scipy.linalg.block_diag(flip, -flip) / 2
    return result


def _by_coupling(M: Array, motions: Array, own: Array, inner: Array) -> Array:
    """The same of modes that no node sees; `own` is the part in the plane of the motions they may be coupled to."""
    sizes = np.sqrt(np.diag(motions.T @ M @ motions))
    per_size = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    masses, V = np.linalg.eigh(inner.T @ M[6:, 6:] @ inner)
    rows = V.T @ inner.T @ M[6:] @ motions
    inside, outside = rows @ own * per_size, (rows - rows @ own) * per_size
    result, first = np.zeros((len(masses), len(masses))), 0
    while first < len(masses):
        last = first + 1
        while last < len(masses) and masses[last] - masses[first] <= ALIKE * masses[last]:
            last += 1
        group = slice(first, last)
        A, B = inside[group] @ inside[group].T, outside[group] @ outside[group].T
        found, X = np.linalg.eigh(A + B)
        clear = found > COUPLED**2 * masses[last - 1]
        both = X[:, clear] / found[clear] @ X[:, clear].T
        result[group, group] = both @ A + 0.5 * X[:, ~clear] @ X[:, ~clear].T
        first = last
    return V @ result @ V.T
