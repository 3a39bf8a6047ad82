"""Craig-Bampton and free-interface reduction of finite-element matrices, with nodal masses.

Nodal masses and second moments replace a consistent mass matrix. Masses are the row sums of the translations, exact for
motions that are equal at neighbouring nodes; if a sum is negative (quadratic elements), the diagonal scaled to the
total mass. Second moments come from the row sums of the rotations. Then the masses change as little as possible until
mass, centre and inertia of the body are those of the given matrix; the remaining inertia (the thickness of a straight
beam) is spread over the second moments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import eigsh, splu

from parflex.bodies.modal import ModalData, nearest_orthonormal, normalised, products, rigid_shapes
from parflex.bodies.rigid import second_moments
from parflex.checks import require
from parflex.errors import InputError, did_you_mean
from parflex.records import Record

Array = np.ndarray
LIMIT = 0.5  # relative error of nodal masses above which the mesh is refused
SYMMETRIC = 1e-6  # of the largest entry: rounding of printed matrices
NEGATIVE = 1e-8  # of scaled entries, times the root of their number: smaller negative eigenvalues are rounding
DENSE = 800  # number of coordinates up to which matrices are dense
FREE = 1e-4  # of the first elastic eigenvalue: largest eigenvalue of rigid-body modes
STIFF = 1e-12  # of the stiffest coordinate: smaller stiffness is zero
SAME = 1e-3  # relative difference of masses along x, y and z
INERTIA = 0.05  # largest relative error of the rigid mass matrix


@dataclass(frozen=True, eq=False, repr=False)
class Reduced(Record):
    """Modal data, and the errors of sums over the nodal masses before their correction.

    `sums` is the largest error of modal masses and products, `inertia` the remaining error of the rigid mass
    matrix.
    """

    data: ModalData
    sums: float
    inertia: float


def free_reduction(
    M: Any, K: Any, nodes: Any, interface: Mapping[str, int], modes: int, damping: float = 0.0, **texts: Any
) -> Reduced:
    """Return the lowest elastic modes of a free body, whose only zero modes may be its rigid-body modes.

    `M` and `K` (full or sparse) have six coordinates a node, Tx Ty Tz Rx Ry Rz, or three; coordinates without mass and
    stiffness are at rest. `interface` gives the indices of the nodes where something is attached. `texts` may be
    `title`, `source` and `thickness`. Frequencies are those of the given matrices.
    """
    body = structure(M, K, nodes, interface)
    return _reduced(body, lowest_modes(body.M, body.K, modes, body.rigid), True, False, damping, texts)


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
    """Return Craig-Bampton modes: static constraint modes of the interface and `modes` fixed-interface modes.

    They are combined into modes of the reduced body, with diagonal mass and stiffness. Without `root` the body is free
    (a platform) and its rigid motions are left out; with it the interface node of that name is clamped (a link, which
    begins there). Arguments otherwise as in `free_reduction`. What forces at the interface do statically is that of the
    given matrices; frequencies are those with nodal masses.
    """
    body = structure(M, K, nodes, interface)
    return _reduced(body, craig_bampton_vectors(body, modes, root), root is None, True, damping, texts)


def craig_bampton_vectors(body: Structure, modes: int, root: str | None = None) -> tuple[Array, Array]:
    """Return eigenvalues and vectors (mass 1) of the body reduced to interface and fixed-interface modes."""
    clamped = np.zeros(0, dtype=int)
    if root is not None:
        hint = did_you_mean(root, body.interface)
        require(root in body.interface, f"the body has no interface node '{root}'", "root", hint, root)
        clamped = body.coordinates(body.interface[root])
        fixed = np.linalg.matrix_rank(body.rigid[clamped]) == body.rigid.shape[1]
        message, hint = f"clamping the node '{root}' leaves the body free to move", "give six coordinates a node"
        require(fixed, message, "root", f"{hint}, with stiffness in all of them", root)
    interface_coordinates = [body.coordinates(node) for name, node in body.interface.items() if name != root]
    boundary = np.concatenate([*interface_coordinates, np.zeros(0, dtype=int)])
    inner = np.setdiff1d(np.arange(len(body.active)), np.concatenate([boundary, clamped]))
    T = _basis(body, boundary, inner, modes)
    mass, stiffness = T.T @ (body.M @ T), T.T @ (body.K @ T)
    mass, stiffness = (mass + mass.T) / 2, (stiffness + stiffness.T) / 2
    rigid = None if root is not None else np.linalg.lstsq(T, body.rigid, rcond=None)[0]
    count = T.shape[1] - (0 if rigid is None else rigid.shape[1])
    values, vectors = lowest_modes(mass, stiffness, count, rigid)
    return values, T @ vectors


def _basis(body: Structure, boundary: Array, inner: Array, modes: int) -> Array:
    """Return constraint modes of the boundary, then fixed-interface modes, over the active coordinates."""
    message = f"{modes} fixed-interface modes are requested, but the body has at most {len(inner)}"
    require(0 <= modes <= len(inner), message, "modes", f"request 0 to {len(inner)}", modes)
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


def _reduced(
    body: Structure, modes: tuple[Array, Array], free: bool, statics: bool, damping: float, texts: Mapping[str, Any]
) -> Reduced:
    """Return modal data with the interface first, orthonormal in the sums over the nodes."""
    values, vectors = modes
    first = list(body.interface.values())
    order = np.array([*first, *(k for k in range(len(body.nodes)) if k not in set(first))])
    masses, moments, inertia = lumped_masses(body)
    data = ModalData(
        nodes=body.nodes[order],
        masses=masses[order],
        shapes=body.shapes(vectors)[:, order],
        modal_stiffnesses=values,
        modal_masses=np.ones(len(values)),
        damping_ratios=np.full(len(values), float(damping)),
        interface=tuple(body.interface),
        second_moments=moments[order] if body.turns else None,
        **texts,
    )
    data, sums = orthonormalised(data, free, LIMIT, statics)
    return Reduced(normalised(data), sums, inertia)


@dataclass(frozen=True, eq=False, repr=False)
class Structure(Record):
    """Matrices over coordinates `node * width + axis`, of which only the active coordinates have mass or stiffness."""

    M: sparse.csc_matrix  # over the active coordinates, as K
    K: sparse.csc_matrix
    nodes: Array  # n x 3
    width: int  # 6: Tx Ty Tz Rx Ry Rz; 3: translations only
    active: Array  # indices of the active coordinates
    interface: dict[str, int]

    @cached_property
    def rigid(self) -> Array:
        """Independent rigid-body modes over the active coordinates, orthonormal in mass."""
        motions = rigid_shapes(self.nodes)[:, :, : self.width].reshape(6, -1).T[self.active]
        return motions @ orthonormal_combinations(motions.T @ (self.M @ motions), 1e-10)

    @property
    def turns(self) -> bool:
        """Whether nodes have rotations."""
        return self.width == 6 and bool((self.active % 6 >= 3).any())

    def coordinates(self, node: int) -> Array:
        """Return the positions of the active coordinates of a node among all active coordinates."""
        return np.flatnonzero(self.active // self.width == node)

    def shapes(self, vectors: Array) -> Array:
        """Return vectors over the active coordinates as shapes, N x n x 6; missing rotations are NaN."""
        full = np.zeros((vectors.shape[1], len(self.nodes) * self.width))
        full[:, self.active] = vectors.T
        shapes = np.zeros((vectors.shape[1], len(self.nodes), 6))
        shapes[:, :, : self.width] = full.reshape(vectors.shape[1], len(self.nodes), self.width)
        if not self.turns:
            shapes[:, :, 3:] = np.nan
        return shapes


def structure(M: Any, K: Any, nodes: Any, interface: Mapping[str, int]) -> Structure:
    """Return the checked matrices, node positions (n x 3) and indices of interface nodes."""
    positions = np.array(nodes, dtype=float)
    points = positions.ndim == 2 and positions.shape[1] == 3 and len(positions) and np.isfinite(positions).all()
    require(points, "the nodes are not a list of points", "nodes", "give an array of n x 3 numbers")
    mass, stiffness = _matrix(M, "M"), _matrix(K, "K")
    count = len(positions)
    for name, matrix in (("M", mass), ("K", stiffness)):
        fits = matrix.shape in ((6 * count, 6 * count), (3 * count, 3 * count)) and matrix.shape == mass.shape
        size = " x ".join(str(k) for k in matrix.shape)
        hint = f"give {6 * count} rows and columns (Tx Ty Tz Rx Ry Rz of each node) or {3 * count} (Tx Ty Tz)"
        require(fits, f"{name} is {size}, which does not match {count} nodes", name, hint, size)
    for name, index in interface.items():
        message = f"interface node '{name}' has the index {index}, the body has {count} nodes"
        inside = isinstance(index, (int, np.integer)) and 0 <= index < count
        require(inside, message, "interface", f"give an index from 0 to {count - 1}", index)
    unique = len(set(interface.values())) == len(interface)
    require(unique, "two interface names refer to one node", "interface", "give each node one name")
    width = mass.shape[0] // count
    active = np.flatnonzero(np.asarray(abs(mass).sum(axis=0) + abs(stiffness).sum(axis=0)).ravel())
    mass, stiffness = mass[active][:, active], stiffness[active][:, active]
    _check_definite(mass, "M", "give a mass matrix without negative masses")
    _check_definite(stiffness, "K", "give the stiffness of a stable body")
    return Structure(mass, stiffness, positions, width, active, {name: int(index) for name, index in interface.items()})


def _matrix(values: Any, name: str) -> sparse.csc_matrix:
    """Return a real, finite and symmetric sparse matrix; raise for any other."""
    matrix = sparse.csc_matrix(values)
    require(not np.iscomplexobj(matrix), f"{name} is complex", name, "give real matrices, and damping by ratios")
    matrix = matrix.astype(float)
    finite = np.isfinite(matrix.data).all()
    require(finite, f"{name} has an entry that is not a number", name, "give finite numbers")
    square = matrix.nnz and matrix.shape[0] == matrix.shape[1]
    require(square, f"{name} is empty or not square", name, "give a square matrix")
    skew = float(abs(matrix - matrix.T).max() / abs(matrix).max())
    message = f"{name} is not symmetric: it differs from its transpose by {skew:.2g} of its largest entry"
    require(skew <= SYMMETRIC, message, name, "give the whole matrix, not one triangle", skew)
    return sparse.csc_matrix((matrix + matrix.T) / 2)


def _check_definite(matrix: sparse.csc_matrix, name: str, hint: str) -> None:
    """Raise for negative eigenvalues beyond rounding, by the signs of pivots of the scaled matrix."""
    diagonal = matrix.diagonal()
    if diagonal.max() > 0 and diagonal.min() >= -NEGATIVE * diagonal.max():
        root = sparse.diags(1 / np.sqrt(np.where(diagonal > 0, diagonal, diagonal.max())))
        rounding = NEGATIVE * np.sqrt(len(diagonal)) * sparse.identity(len(diagonal))
        shifted = sparse.csc_matrix(root @ matrix @ root + rounding)
        options = {"SymmetricMode": True}
        factors = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
        if not np.any(factors.U.diagonal() < 0):
            return
    what = "negative masses" if name == "M" else "motions with negative stiffness"
    raise InputError(f"{name} is not positive semidefinite: it has {what}", key=name, hint=hint)


def lowest_modes(M: Any, K: Any, count: int, rigid: Array | None = None) -> tuple[Array, Array]:
    """Return eigenvalues and vectors (mass 1) of the lowest modes, without the specified rigid-body modes."""
    fixed = np.zeros((M.shape[0], 0)) if rigid is None else rigid
    available = M.shape[0] - fixed.shape[1]
    message = f"{count} modes are requested, but the body has at most {available}"
    require(1 <= count <= available, message, "modes", f"request 1 to {available}", count)
    mass, stiffness = M.diagonal(), K.diagonal()
    largest_ratio = float((stiffness[mass > 0] / mass[mass > 0]).max())
    first = _modes_near(M, K, -1e-9 * largest_ratio, 1, fixed)[0][0]
    if fixed.shape[1]:
        value = float(linalg.eigvalsh(fixed.T @ (K @ fixed)).max())
        free = value <= FREE * max(first, STIFF * largest_ratio)
        message = f"a rigid-body motion has the eigenvalue {value:.3g}, the first mode {first:.3g}"
        require(free, f"the body is not free: {message}", "K", "give the stiffness without supports", value)
    qualifier = "other than the rigid-body ones" if fixed.shape[1] else "at all"
    connected = first >= STIFF * largest_ratio
    require(connected, f"the body has motions without stiffness {qualifier}", "K", "connect its parts")
    return _modes_near(M, K, -first, count, fixed)


def _modes_near(M: Any, K: Any, sigma: float, count: int, fixed: Array) -> tuple[Array, Array]:
    """Return the lowest Ritz values and vectors of inverse iteration with K - sigma M, orthogonal to `fixed`."""
    size, required = M.shape[0], count + fixed.shape[1]
    if size <= DENSE or required > size // 3:
        full_mass, full_stiffness = (x.toarray() if sparse.issparse(x) else np.asarray(x) for x in (M, K))
        # mass over stiffness, so that coordinates without mass do no harm: they are the zeros
        chosen = [size - required, size - 1]
        vectors = linalg.eigh(full_mass, full_stiffness - sigma * full_mass, subset_by_index=chosen)[1]
    else:
        start = np.random.default_rng(0).normal(size=size)
        vectors = eigsh(K, required, M, sigma=sigma, which="LM", v0=start)[1]
    inertia = M @ fixed
    vectors = vectors - fixed @ (inertia.T @ vectors)
    basis = vectors @ orthonormal_combinations(vectors.T @ (M @ vectors), 1e-9 if fixed.shape[1] else 0.0)
    basis = basis - fixed @ (inertia.T @ basis)
    stiffnesses, coefficients = linalg.eigh(basis.T @ (K @ basis), basis.T @ (M @ basis))
    return stiffnesses[:count], (basis @ coefficients)[:, :count]


def orthonormal_combinations(gram: Array, share: float) -> Array:
    """Return columns that combine motions with products `gram` to independent orthonormal motions."""
    values, vectors = np.linalg.eigh(gram)
    independent = values > share * values.max()
    return vectors[:, independent] / np.sqrt(values[independent])


def lumped_masses(body: Structure) -> tuple[Array, Array, float]:
    """Return masses (n), second moments (n x 3 x 3) and the relative error of the rigid mass matrix."""
    masses, moments = _masses(body), _second_moments(body)
    motions = rigid_shapes(body.nodes)
    stacked = motions[:, :, : body.width].reshape(6, -1)
    selected = np.zeros(stacked.shape[1], dtype=bool)
    selected[body.active] = True
    # rigid motions of active coordinates only
    complete = [k for k in range(6) if stacked[k, selected].any() and not stacked[k, ~selected].any()]
    motions, vectors = motions[complete], stacked[complete][:, body.active]
    exact = vectors @ (body.M @ vectors.T)
    size = np.sqrt(np.maximum(np.diag(exact), 1e-300))
    i, j = np.triu_indices(len(complete))
    scale = size[i] * size[j]
    per_mass = np.einsum("pni,pni->pn", motions[i][:, :, :3], motions[j][:, :, :3])  # pairs of motions x nodes

    def missing(masses: Array, moments: Array) -> Array:
        rotary_inertia = np.trace(moments, axis1=1, axis2=2)[:, None, None] * np.eye(3) - moments
        turns = (motions[k][:, :, 3:] for k in (i, j))
        rotary_products = np.einsum("pni,pnj,nij->p", *turns, rotary_inertia, optimize=True)
        return (exact[i, j] - rotary_products - per_mass @ masses) / scale

    first = np.array(complete)[i] < 3  # mass and centre come first, if inertia cannot be met as well
    for weights in (np.where(first, 1e5, 1.0), np.where(first, 1.0, 0.0)):
        system = (weights / scale)[:, None] * per_mass * np.sqrt(masses)
        share = np.linalg.lstsq(system, weights * missing(masses, moments), rcond=1e-13)[0]
        corrected = masses + np.sqrt(masses) * share
        if (corrected >= 0).all():
            masses = corrected
    if len(complete) == 6 and body.turns:
        residual = np.zeros((6, 6))
        residual[i, j] = residual[j, i] = missing(masses, moments) * scale
        missing_moments = second_moments(residual[3:, 3:])
        spread = moments + (masses / masses.sum())[:, None, None] * missing_moments
        if np.linalg.eigvalsh(spread).min() >= 0:
            moments = spread
    distance = float(np.abs(missing(masses, moments)).max())
    message = f"the nodal masses differ from the rigid mass matrix by {100 * distance:.2g} %"
    require(distance <= INERTIA, message, "M", "use a finer mesh", distance)
    return masses, moments, distance


def _masses(body: Structure) -> Array:
    """Return the mass of each node, averaged over the axes of its motion."""
    masses_by_axis = []
    for axis in range(3):
        coordinates = np.flatnonzero(body.active % body.width == axis)
        if not len(coordinates):
            continue
        block = body.M[coordinates][:, coordinates]
        rows, diagonal = np.asarray(block.sum(axis=1)).ravel(), block.diagonal()
        masses = np.zeros(len(body.nodes))
        values = rows if (rows >= 0).all() else diagonal * (rows.sum() / diagonal.sum())
        masses[body.active[coordinates] // body.width] = values
        masses_by_axis.append(masses)
    totals = np.sum(masses_by_axis, axis=-1)
    least, most = totals.min(initial=np.inf), totals.max(initial=0.0)
    hint = "give the order Tx Ty Tz Rx Ry Rz of each node"
    require(most > 0, "M has no mass in translations", "M", hint)
    message = f"the mass is {least:.6g} kg along one axis and {most:.6g} kg along another"
    require(most - least <= SAME * most, message, "M", f"{hint}, and M without supports")
    return np.mean(masses_by_axis, axis=0)


def _second_moments(body: Structure) -> Array:
    """Return Sigma = tr(J)/2 - J of the inertia lumped at each node, J the row sums of its rotations.

    Second moments that no body has are set to zero: a beam element without rotary inertia of bending has inertia of
    torsion, for which the extent of the section rotates in bending too.
    """
    J = np.zeros((len(body.nodes), 3, 3))
    coordinates = np.flatnonzero(body.active % body.width >= 3)
    owner, axis = body.active[coordinates] // body.width, body.active[coordinates] % body.width - 3
    block = body.M[coordinates][:, coordinates].tocoo()
    np.add.at(J, (owner[block.row], axis[block.row], axis[block.col]), block.data)
    J = (J + J.transpose(0, 2, 1)) / 2
    moments = np.trace(J, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - J
    values, vectors = np.linalg.eigh(moments)
    return np.einsum("nik,nk,njk->nij", vectors, np.maximum(values, 0.0), vectors)


def orthonormalised(data: ModalData, free: bool, limit: float, statics: bool = False) -> tuple[ModalData, float]:
    """Return shapes that are orthonormal in the sums over the nodes, and their distance from the input.

    Shapes of a free body lose the momentum of sampling. The result are the nearest orthonormal shapes with the
    input frequencies. With `statics` the shapes are combined so that the input stiffness stays diagonal: static
    responses to nodal forces are preserved, and frequencies become those of the nodal masses. The distance is the
    largest entry of the Gram matrix of the shapes (and of the rigid motions with them) less the identity.
    """
    shapes, distance = data.shapes, 0.0
    if free:
        rigid = rigid_shapes(data.nodes)
        rigid = np.tensordot(orthonormal_combinations(products(data, rigid), 1e-12).T, rigid, axes=1)
        shares = products(data, rigid, shapes)[len(rigid) :, : len(rigid)]
        distance = float(np.abs(shares).max(initial=0.0))
        shapes = shapes - np.tensordot(shares, rigid, axes=1)
    gram = products(data, shapes)
    distance = max(distance, float(np.abs(gram - np.eye(len(gram))).max()))
    message = f"sums over {len(data.nodes)} nodes violate the orthogonality of the {data.count} modes by {distance:.2g}"
    require(distance < limit, message, "modes", "use more nodes, or fewer modes", distance)
    if statics:
        values, mix = linalg.eigh(np.diag(data.modal_stiffnesses), gram)
        return replace(data, shapes=np.tensordot(mix.T, shapes, axes=1), modal_stiffnesses=values), distance
    return replace(data, shapes=nearest_orthonormal(shapes, gram)), distance
