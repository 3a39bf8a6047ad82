"""Modal data of a finite-element body: free-free modes, or Craig and Bampton's modes of its interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from parflex.bodies.finite_elements.lumping import lumped
from parflex.bodies.finite_elements.nodal import settled
from parflex.bodies.finite_elements.structure import Structure, lowest_modes, structure
from parflex.bodies.modal import ModalData, normalised
from parflex.errors import InputError, did_you_mean
from parflex.records import Record

Array = np.ndarray
LIMIT = 0.5  # sums over nodal masses that miss the given matrix by more are those of another body


@dataclass(frozen=True, eq=False, repr=False)
class Reduced(Record):
    """Modal data, and how far sums over the nodal masses were from the given mass matrix before they were corrected.

    `sums` is the largest error of modal masses and products, `inertia` what is left of that of the rigid mass matrix.
    """

    data: ModalData
    sums: float
    inertia: float


def free_reduction(
    M: Any, K: Any, nodes: Any, interface: Mapping[str, int], modes: int, damping: float = 0.0, **texts: Any
) -> Reduced:
    """The lowest elastic modes of a free body. Its rigid motions are recognised and left out; there must be no other.

    `M` and `K` (full or sparse) have six coordinates a node, Tx Ty Tz Rx Ry Rz, or three; coordinates without mass and
    stiffness are at rest. `interface` gives the indices of the nodes where something is attached. `texts` may be
    `title`, `source` and `thickness`. Frequencies are those of the given matrices.
    """
    body = structure(M, K, nodes, interface)
    values, vectors = free_vectors(body, modes)
    return _data(body, values, vectors, free=True, statics=False, damping=damping, texts=texts)


def craig_bampton(
    M: Any,
    K: Any,
    nodes: Any,
    interface: Mapping[str, int],
    modes: int,
    root: str | None = None,
    damping: float = 0.0,
    **texts: Any,
) -> Reduced:
    """Motions of the interface with the rest following statically, and `modes` modes with the interface held.

    They are combined into modes of the reduced body, with diagonal mass and stiffness. Without `root` the body is free
    (a platform) and its rigid motions are left out; with it the interface node of that name is clamped (a link, which
    begins there). Arguments otherwise as in `free_reduction`. What forces at the interface do statically is that of the
    given matrices; frequencies are those with nodal masses.
    """
    body = structure(M, K, nodes, interface)
    values, vectors = craig_bampton_vectors(body, modes, root)
    return _data(body, values, vectors, free=root is None, statics=True, damping=damping, texts=texts)


def free_vectors(body: Structure, modes: int) -> tuple[Array, Array]:
    """Eigenvalues and vectors (mass 1, over the active coordinates) of the lowest elastic modes of a free body."""
    return lowest_modes(body.M, body.K, modes, body.rigid)


def craig_bampton_vectors(body: Structure, modes: int, root: str | None = None) -> tuple[Array, Array]:
    """The same of all modes of the body reduced to its interface and `modes` modes with that held."""
    clamped = np.zeros(0, dtype=int)
    if root is not None:
        if root not in body.interface:
            hint = did_you_mean(root, body.interface)
            raise InputError(f"the body has no interface node '{root}'", key="root", value=root, hint=hint)
        clamped = body.coordinates(body.interface[root])
        if np.linalg.matrix_rank(body.rigid[clamped]) < body.rigid.shape[1]:
            raise InputError(
                f"clamping the node '{root}' leaves the body free to move",
                key="root",
                value=root,
                hint="give six coordinates a node, with stiffness in all of them",
            )
    moved = [body.coordinates(node) for name, node in body.interface.items() if name != root]
    boundary = np.concatenate([*moved, np.zeros(0, dtype=int)])
    inner = np.setdiff1d(np.arange(len(body.active)), np.concatenate([boundary, clamped]))
    T = _basis(body, boundary, inner, modes)
    mass, stiffness = T.T @ (body.M @ T), T.T @ (body.K @ T)
    mass, stiffness = (mass + mass.T) / 2, (stiffness + stiffness.T) / 2
    rigid = None if root is not None else np.linalg.lstsq(T, body.rigid, rcond=None)[0]
    count = T.shape[1] - (0 if rigid is None else rigid.shape[1])
    values, vectors = lowest_modes(mass, stiffness, count, rigid)
    return values, T @ vectors


def _basis(body: Structure, boundary: Array, inner: Array, modes: int) -> Array:
    """Constraint modes of the boundary, then modes with the boundary held, over the active coordinates."""
    if not 0 <= modes <= len(inner):
        raise InputError(
            f"{modes} fixed-interface modes are requested, but the body has at most {len(inner)}",
            key="modes",
            value=modes,
            hint=f"request 0 to {len(inner)}",
        )
    T = np.zeros((len(body.active), len(boundary) + modes))
    T[boundary, np.arange(len(boundary))] = 1.0
    if len(inner):
        K, M = body.K[inner][:, inner], body.M[inner][:, inner]
        if modes:
            T[inner, len(boundary) :] = lowest_modes(M, K, modes)[1]
        try:
            T[inner, : len(boundary)] = -splu(sparse.csc_matrix(K)).solve(body.K[inner][:, boundary].toarray())
        except RuntimeError:
            raise InputError(
                "the interface does not constrain the body: with the interface fixed, the rest can still move freely",
                key="interface",
                hint="name more interface nodes, or give six coordinates a node",
            ) from None
    return T


def _data(
    body: Structure,
    values: Array,
    vectors: Array,
    *,
    free: bool,
    statics: bool,
    damping: float,
    texts: Mapping[str, Any],
) -> Reduced:
    """Modal data with the interface first, orthonormal in the sums over the nodes."""
    first = list(body.interface.values())
    order = np.array([*first, *(k for k in range(len(body.nodes)) if k not in set(first))])
    masses, second_moments, inertia = lumped(body)
    data = ModalData(
        nodes=body.nodes[order],
        masses=masses[order],
        shapes=body.shapes(vectors)[:, order],
        modal_stiffnesses=values,
        modal_masses=np.ones(len(values)),
        damping_ratios=np.full(len(values), float(damping)),
        interface=tuple(body.interface),
        second_moments=second_moments[order] if body.turns else None,
        **texts,
    )
    data, sums = settled(data, free, LIMIT, statics)
    return Reduced(normalised(data), sums, inertia)
