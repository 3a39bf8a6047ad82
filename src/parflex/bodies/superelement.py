"""Build superelements: elastic bodies from reduced mass and stiffness matrices.

A superelement held by its frame has the coordinates of the matrices without the held node. A free one has the modes of
the free body.

The kinetic energy of the undeformed body is 1/2 V^T M V for every velocity V of interfaces and modes. M does not
determine how moments and products of the shapes change with the deformation. They are completed so that the fields are
those of some mass distribution, theory (68), (69): energy and momentum are conserved, and accelerations of the frame
act like gravity.

M determines the rigid motion with the momentum of a shape; the estimated part of the shape is a stretch. Shapes thus
move the mass affinely, but for an isotropic remainder, theory (69), and the integrals of all pairs of shapes are few
numbers: the deformed body is that of the mean motion of its coordinates, and forces along the coordinates are
projections of one force and one matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from parflex.bodies.elastic import ElasticBody, MeanStrain, NamedNodes, weighted_sum
from parflex.bodies.modal import ROUND_OFF, drop_rounding, equal_groups
from parflex.bodies.rigid import axial, second_moments
from parflex.bodies.superelement_matrices import (
    WORDS,
    ReducedMatrices,
    RigidReport,
    matrix_error,
    require,
    rigid_motions,
    rigid_report,
)
from parflex.diagnostics import Diagnostic
from parflex.records import Record
from parflex.spatial.rotations import cross, hat

Array = np.ndarray
LABELS = ("ux", "uy", "uz", "rx", "ry", "rz")
SINGULAR = 1e-13  # of scaled masses: smaller ones are zero
DAMPED = 1e-3  # of the largest entry of D: larger rows are dampers between the body and the ground
FLAT = 1e-9  # of the largest second moment: directions without extent
MIN_SHEAR_SHARE = 0.01  # of its estimate: smaller shares are zero
IN_PLANE = (0, 1, 5)  # x, y and rz of a node, and of the body
ALIKE = 1e-6  # relative distance of squared frequencies within which modes are degenerate
UNCOUPLED_SHARE = 1e-6  # of the mass of a mode: smaller coupling is rounding


def select_nodes(data: ReducedMatrices, node_numbers: Mapping[str, int]) -> dict[str, int]:
    """Return indices of nodes by name; numbers are those of the file, else 1, 2, ... in matrix order."""
    numbers, wanted = [node.number for node in data.nodes], list(node_numbers.values())
    if not set(wanted) <= set(numbers):
        if not set(wanted) <= set(range(1, len(numbers) + 1)):
            wrong = next(number for number in wanted if number not in numbers)
            available = ", ".join(map(str, [*numbers[:8], *["..."] * (len(numbers) > 8)]))
            hint = f"its nodes are {available}, or 1 to {len(numbers)} in this order"
            raise matrix_error(f"has no node {wrong}", hint, "nodes", wrong)
        numbers = list(range(1, len(numbers) + 1))
    require(len(set(wanted)) == len(wanted), "two names are of one node", "give every node one name", "nodes")
    return {name: numbers.index(number) for name, number in node_numbers.items()}


@dataclass(frozen=True, eq=False, repr=False)
class SuperElement(Record):
    """Matrices, names of nodes, the clamped node (None: mean axes), and the report of checks.

    In a planar robot joints hold all interfaces in the plane: their degrees of freedom are x, y and rz.
    """

    data: ReducedMatrices
    names: dict[str, int]  # indices of nodes
    root: str | None
    report: RigidReport
    planar: bool = False

    @property
    def origin(self) -> Array:
        """Origin of the frame in the axes of the file: the clamped node."""
        return self.report.positions[self.names[self.root]] if self.root is not None else np.zeros(3)

    @property
    def X(self) -> Array:
        """Rigid-body modes of the degrees of freedom about the origin of the frame."""
        return rigid_motions(self.data.nodes, self.report.positions - self.origin, self.data.size)

    def shapes(self) -> tuple[Array, tuple[str, ...], tuple[str, ...]]:
        """Return E, motions of the degrees of freedom per elastic coordinate, with labels and units."""
        data, root = self.data, None if self.root is None else self.data.nodes[self.names[self.root]]
        held = root is None or root.turns
        require(held, f"the node '{self.root}' has no rotations, so it cannot be clamped", "clamp another node", "root")
        modes = in_plane_modes(data) if self.planar else np.eye(data.size)[:, data.interface :]
        free_nodes = [node for node in data.nodes if node is not root]
        components = [(node, k) for node in free_nodes for k in (IN_PLANE if self.planar else range(6))]
        components = [(node, k) for node, k in components if k < len(node.rows)]
        E = np.column_stack([np.eye(data.size)[:, [node.rows[k] for node, k in components]], modes])
        if root is None:
            E, components = _free_modes(data, self.X[:, list(IN_PLANE)] if self.planar else self.X, E), []
        prefixes = {node.number: f"node{node.number}_" for node in free_nodes}
        prefixes |= {data.nodes[index].number: f"{name}_" for name, index in self.names.items()}
        labels = [("" if len(free_nodes) == 1 else prefixes[node.number]) + LABELS[k] for node, k in components]
        count = E.shape[1] - len(labels)
        units = ["m" if k < 3 else "rad" for _, k in components]
        return E, (*labels, *(f"mode{k + 1}" for k in range(count))), (*units, *("1",) * count)


def super_element(
    data: ReducedMatrices,
    node_numbers: Mapping[str, int],
    root: str | None,
    places: Mapping[str, Sequence[float]] | None,
    planar: bool = False,
) -> SuperElement:
    """Return matrices with named nodes and checked rigid-body modes."""
    names, placed = select_nodes(data, node_numbers), "robot" if places else "file"
    node_positions: list[Array | None] = [node.position for node in data.nodes]
    if places:
        by_index = {names[name]: np.asarray(place, dtype=float) for name, place in places.items()}
        node_positions = [by_index.get(k) for k in range(len(data.nodes))]
    missing = [node.number for node, place in zip(data.nodes, node_positions, strict=True) if place is None]
    if missing and (placed == "robot" or len(missing) < len(node_positions)):
        raise matrix_error(f"node {missing[0]} has no position", "give one for every node, or none", "positions")
    positions = None if missing else np.array(node_positions)
    return SuperElement(data, names, root, rigid_report(data, positions, placed), planar)


def _free_modes(data: ReducedMatrices, X: Array, P: Array) -> Array:
    """Return elastic modes (mass 1) of the body in P by rising frequency, with positive largest motion."""
    mass = P.T @ data.M @ P
    size = np.sqrt(np.maximum(np.diag(mass), 0.0))
    heavy = size.all() and np.linalg.eigvalsh(mass / np.outer(size, size))[0] >= SINGULAR
    hint = "lump masses with rotary inertia, retain fewer degrees of freedom, or clamp it at a node: root = NAME"
    require(heavy, "some motion of its interfaces has no mass, so it has no free modes", hint, "M")
    C = P @ scipy.linalg.null_space((P.T @ data.M @ X).T / np.linalg.norm(P.T @ data.M @ X, axis=0)[:, None])
    _, V = scipy.linalg.eigh(C.T @ data.K @ C, C.T @ data.M @ C)
    E = C @ V
    E = E - X @ np.linalg.solve(X.T @ data.M @ X, X.T @ data.M @ E)
    largest = E[np.abs(E).argmax(axis=0), np.arange(E.shape[1])]
    return E * np.sign(largest)


def superelement_body(
    element: SuperElement, damping: Any = None, loads: Mapping[str, Sequence[float]] | None = None
) -> ElasticBody:
    """Return the body; `damping` is a ratio for all modes or mass and stiffness factors; `loads` belong to KG."""
    data = element.data
    E, labels, units = element.shapes()
    require(E.shape[1], "has one node and no modes: nothing can deform", "use a rigid body", "nodes")
    affine = _affine_shapes(element, E)
    S, G = drop_rounding(*affine.integrals(), element.report.mass)
    K = _without_noise(E.T @ data.K @ E)
    M = E.T @ data.M @ E
    sizes = np.sqrt(np.abs(np.diag(K)))
    where = "as a free body" if element.root is None else f"with '{element.root}' held"
    positive = np.linalg.eigvalsh(K / np.outer(sizes, sizes))[0] > 0
    require(positive, f"K is not positive {where}", "retain what holds its parts together", "K")
    inner = _nodes(element, E)
    nodes = {name: inner.node(name) for name in element.names if name != element.root}
    return ElasticBody(
        element.report.mass, S, G, K, _damping(element, E, M, K, damping), nodes, labels, units,
        strains=_stress(element, E, K, loads), inner=inner, affine=affine,
        found=replace(element.report, notes=(*element.report.notes, *damping_note(element))),
    )  # fmt: skip


def _nodes(element: SuperElement, E: Array) -> NamedNodes:
    """Return all nodes; set displacements and rotations that are rounding to zero."""
    nodes = element.data.nodes
    shapes = np.full((E.shape[1], len(nodes), 6), np.nan)
    for k, node in enumerate(nodes):
        shapes[:, k, : len(node.rows)] = E[list(node.rows)].T
    for part in (shapes[:, :, :3], shapes[:, :, 3:]):
        part[np.abs(part) <= ROUND_OFF * np.abs(part).max(axis=(0, 2), keepdims=True)] = 0.0
    indices = {str(node.number): k for k, node in enumerate(nodes)} | element.names
    return NamedNodes(indices, element.report.positions - element.origin, shapes)


def _without_noise(matrix: Array, sizes: Array | None = None) -> Array:
    """Return a symmetric matrix with rounding set to zero, relative to the sizes of its coordinates."""
    sizes = np.sqrt(np.abs(np.diag(matrix))) if sizes is None else sizes
    matrix = np.where(np.abs(matrix) > ROUND_OFF * np.outer(sizes, sizes), matrix, 0.0)
    return (matrix + matrix.T) / 2


def _damping(element: SuperElement, E: Array, M: Array, K: Array, damping: Any) -> Array:
    """Return the damping matrix by a ratio for all modes, by factors of M and K, or from the file."""
    if isinstance(damping, tuple):
        mass, stiffness = damping
        return mass * M + stiffness * K
    if damping is not None:
        inverse, V = scipy.linalg.eigh(M, K)
        D1 = K @ V @ np.diag(2 * np.sqrt(np.maximum(inverse, 0.0))) @ V.T @ K
        return damping * D1  # a number, or one that differs from design to design
    D = element.data.D
    if D is None:
        return np.zeros_like(K)
    definite = np.linalg.eigvalsh(D)[0] >= -DAMPED * np.abs(D).max()
    require(definite, f"the {WORDS['D']} D is indefinite", "give a positive semidefinite matrix", "D")
    return _without_noise(E.T @ D @ E)


def damping_note(element: SuperElement) -> list[Diagnostic]:
    """Return a note on dampers to the ground, which the damping matrix of the body omits."""
    D = element.data.D
    if D is None or np.abs(D @ element.X[:, :3]).max() <= DAMPED * np.abs(D).max():
        return []
    text = "its damping matrix resists rigid motions: dampers to the ground are omitted"
    return [Diagnostic("superelement-matrices", text)]


def _stress(
    element: SuperElement, E: Array, K: Array, loads: Mapping[str, Sequence[float]] | None
) -> tuple[MeanStrain, ...]:
    """Return second-order elongations whose tension adds the geometric stiffness, theory (70)."""
    KG = element.data.geometric
    if KG is None:
        return ()
    if KG.ndim == 2:
        return (_loaded_strain(element, E, K, E.T @ KG @ E, loads),)
    along = np.einsum("mij,mk,ia,jb->kab", KG, E, E, E, optimize=True)
    values, V = scipy.linalg.eigh(K)
    stretched = [(v, np.tensordot(v, along, 1) / k, float(k)) for k, v in zip(values, V.T, strict=True)]
    return tuple(MeanStrain(v, (H + H.T) / 2, k) for v, H, k in stretched if H.any())


def _loaded_strain(
    element: SuperElement, E: Array, K: Array, KG: Array, loads: Mapping[str, Sequence[float]] | None
) -> MeanStrain:
    hint = "write geometric = { NODE = [fx, fy, fz, mx, my, mz] }, the load that it belongs to, or geometric = false"
    require(loads, "its geometric stiffness belongs to a load that is not known", hint, "geometric")
    force, hint = np.zeros(element.data.size), f"its nodes are {', '.join(element.names)}"
    for name, load in (loads or {}).items():
        require(name in element.names, f"there is no node '{name}'", hint, "geometric", name)
        rows = list(element.data.nodes[element.names[name]].rows)
        force[rows] += np.asarray(load, dtype=float)[: len(rows)]
    f = E.T @ force
    e = np.linalg.solve(K, f)
    k, hint = float(f @ e), "load another node than the root"
    require(k > 0, "the load of its geometric stiffness causes no strain", hint, "geometric")
    return MeanStrain(f / k, (KG + KG.T) / (2 * k), k)


def _affine_shapes(element: SuperElement, E: Array) -> AffineShapes:
    """Return fields f = (r0, phi_a) with the momenta and products of M, theory (69)."""
    X, M, m, I_c = element.X, element.data.M, element.report.mass, element.report.inertia
    c, Sigma = element.report.centre - element.origin, second_moments(I_c)
    momenta = X.T @ M @ E
    t = momenta[:3] / m  # of the centre
    theta = np.linalg.pinv(I_c, rcond=FLAT) @ (momenta[3:] - hat(c) @ momenta[:3])
    residual_shapes = E - X @ np.vstack([t + hat(c) @ theta, theta])  # without momentum
    F, products = residual_shapes.T @ M @ residual_shapes, E.T @ M @ E
    Z, spread = _stretched(element, residual_shapes, Sigma, F)
    W = F - np.einsum("aij,jk,bik->ab", Z, spread, Z)
    shapes = AffineShapes(m, c, Sigma, t.T, theta.T, Z @ spread, W, products)
    sizes = np.sqrt(np.abs(np.diag(products)))
    rounding = products - np.einsum("abii->ab", shapes.integrals()[1][1:, 1:])
    theta = np.where(np.abs(theta) > ROUND_OFF * sizes / np.sqrt(np.trace(I_c)), theta, 0.0)
    shapes = replace(shapes, W=_without_noise(W + rounding, sizes), products=_without_noise(products, sizes))
    S, _ = drop_rounding(*shapes.integrals(), m)
    return replace(shapes, c=S[0] / m, t=S[1:] / m, theta=theta.T)


def _stretched(element: SuperElement, residual_shapes: Array, Sigma: Array, F: Array) -> tuple[Array, Array]:
    """Return symmetric Z_a = int phi_a (r - c)^T of shapes without momentum, and the inverse of Sigma.

    M determines products with rigid motions only. A field along i that grows along j is estimated from its values
    at the interfaces, in principal axes. Of ij and ji, which have the same product, the one along the longer axis
    has more weight, because sections of slender bodies stay normal to it. Products larger than those of any mass
    distribution are reduced as little as possible, shear products first.
    """
    values, axes = np.linalg.eigh(Sigma)
    wide = values > FLAT * max(values.max(), 0.0)
    spread = (axes[:, wide] / values[wide]) @ axes[:, wide].T
    stretch, shear = np.zeros((2, residual_shapes.shape[1], 3, 3))
    for i in np.flatnonzero(wide):
        for j in np.flatnonzero(wide):
            field = np.zeros(element.data.size)
            for node, place in zip(element.data.nodes, element.report.positions, strict=True):
                grown = axes[:, j] @ (place - element.report.centre)
                field[list(node.rows[:3])] = axes[:, i] * grown
            product = residual_shapes.T @ (element.data.M @ field)
            if i == j:
                stretch[:, i, i] = product
            else:
                product = product * values[i] / (values[i] + values[j])
                shear[:, i, j] += product
                shear[:, j, i] += product
    stretch, shear = axes @ stretch @ axes.T, axes @ shear @ axes.T
    if _stretch_share(stretch, spread, F) + _stretch_share(shear, spread, F) < FLAT:  # interfaces that coincide
        return np.zeros_like(stretch), spread
    stretch = stretch / np.sqrt(max(_stretch_share(stretch, spread, F), 1.0))
    share = 1.0
    while share > MIN_SHEAR_SHARE and _stretch_share(stretch + share * shear, spread, F) > 1 + ROUND_OFF:
        share /= 2
    return stretch + (share if share > MIN_SHEAR_SHARE else 0.0) * shear, spread


def _stretch_share(Z: Array, spread: Array, F: Array) -> float:
    """Return the largest share of the products F explained by the stretch Z."""
    taken = np.einsum("aij,jk,bik->ab", Z, spread, Z)
    size = np.sqrt(np.maximum(np.diag(F), 1e-300))
    reference = F / np.outer(size, size) + FLAT * np.eye(len(F))
    return float(scipy.linalg.eigvalsh(taken / np.outer(size, size), reference)[-1])


@dataclass(frozen=True, eq=False, repr=False)
class AffineShapes(Record):
    """Shapes phi_a = t_a + (hat(theta_a) + stretch_a) (r - c) + psi_a, with products W_ab of the rest psi."""

    m: float
    c: Array
    Sigma: Array  # about c
    t: Array  # N x 3
    theta: Array  # N x 3
    stretch: Array  # N x 3 x 3
    W: Array  # N x N
    products: Array  # N x N, of whole shapes: the mass matrix of the coordinates

    def integrals(self) -> tuple[Array, Array]:
        """Return S_a and G_ab of the fields."""
        N, m = len(self.t), self.m
        centres = np.concatenate([self.c[None], self.t])
        B = np.concatenate([np.eye(3)[None], np.array([hat(th) for th in self.theta]).reshape(N, 3, 3) + self.stretch])
        G = m * np.einsum("ai,bj->abij", centres, centres) + np.einsum("aij,jk,blk->abil", B, self.Sigma, B)
        G[1:, 1:] += self.W[:, :, None, None] / 3 * np.eye(3)
        return m * centres, G

    def mean(self, e: Array) -> tuple[Array, Array]:
        """Return displacement of the centre, mean rotation and stretch."""
        return e @ self.t, hat(e @ self.theta) + weighted_sum(e, self.stretch)

    def moments(self, e: Array) -> tuple[Array, Array]:
        """Return S and Sigma of the deformed body."""
        shift, B = self.mean(e)
        p, F = self.c + shift, np.eye(3) + B
        residual = e @ (self.W @ e) / 3
        return self.m * p, self.m * np.outer(p, p) + F @ self.Sigma @ F.T + residual * np.eye(3)

    def forces(self, U: Array, a: Array, w: Array, e: Array, ed: Array, edd: Array) -> tuple[Array, Array, Array]:
        """Return force, moment and inertial forces along the coordinates, theory (24) to (26)."""
        (shift, B), (shift_rate, B_rate), (shift_acceleration, B_acceleration) = (self.mean(x) for x in (e, ed, edd))
        p, F = self.c + shift, np.eye(3) + B
        force = self.m * (a + U @ p + cross(2 * w, shift_rate) + shift_acceleration)
        Y = (U @ F + hat(2 * w) @ B_rate + B_acceleration) @ self.Sigma
        residual = self.W @ e
        moment = cross(p, force) + axial(Y @ F.T) + (e @ residual / 3) * axial(U) + (ed @ residual / 3) * 4 * w
        elastic = self.t @ force + self.theta @ axial(Y) + np.trace(U) / 3 * residual + self.W @ edd
        if self.stretch.any():
            elastic = elastic + np.array([(stretch * Y).sum() for stretch in self.stretch])
        return force, moment, elastic

    def coupling(self, e: Array) -> Array:
        """Return force and moment per unit of each elastic acceleration, 6 x N."""
        shift, B = self.mean(e)
        H = (np.eye(3) + B) @ self.Sigma
        S = self.m * (self.c + shift)
        moments = (hat(S) @ self.t.T) + (np.trace(H) * np.eye(3) - H.T) @ self.theta.T
        if self.stretch.any():
            moments = moments + np.array([axial(stretch @ H.T) for stretch in self.stretch]).T
        return np.concatenate([self.m * self.t.T, moments])


def in_plane_modes(data: ReducedMatrices) -> Array:
    """Return columns over all degrees of freedom: fixed-interface modes coupled to x, y and rz of a node.

    Bending out of the plane is omitted if it is uncoupled, also at equal frequencies, where a finite-element
    program mixes both planes.
    """
    n, free = data.interface, [node.rows[k] for node in data.nodes for k in IN_PLANE if k < len(node.rows)]
    if data.size == n:
        return np.zeros((n, 0))
    squares, V = scipy.linalg.eigh(data.K[n:, n:], data.M[n:, n:])
    masses = np.diag(data.M)[free]
    coupled = V.T @ data.M[n:, free] / np.sqrt(np.where(masses > 0, masses, np.inf))
    stiff = V.T @ data.K[n:, free] / np.sqrt(np.abs(np.outer(squares, np.diag(data.K)[free])) + 1e-300)
    rows = np.hstack([coupled, stiff])
    mode_vectors = []
    for group in equal_groups(squares, ALIKE):
        U, sizes, _ = np.linalg.svd(rows[group], full_matrices=False)
        mode_vectors += [V[:, group] @ u for u, size in zip(U.T, sizes, strict=True) if size > UNCOUPLED_SHARE]
    modes = np.zeros((data.size, len(mode_vectors)))
    modes[n:] = np.array(mode_vectors).reshape(len(mode_vectors), -1).T
    return modes
