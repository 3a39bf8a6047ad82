"""Define elastic bodies with nodes, and stress stiffening.

A material point is at r = r0 + sum_k phi_k e_k. With c = (1, e) and the fields f = (r0, phi_1, ...), all inertial terms
follow from S_a = int f_a and G_ab = int f_a f_b^T over mass: S = sum c_a S_a and Sigma = sum c_a c_b G_ab are those of
the deformed body. The invariants of the papers are parts of these: beta_k and lam_jk are axial parts of G, Mee its
traces, Ire and Iee follow.

The stress of a unit of mode m changes the stiffness of all modes by the matrix `geometric[m]`, as finite-element
programs give it for a prestress. The energy 1/2 k_m (e_m + 1/2 e^T H_m e)^2 with H_m = geometric[m] / k_m has this
effect: the bending of the others stretches mode m, and its tension stiffens them, theory (37).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.bodies.rigid import Body, RigidBody, axial
from parflex.records import Record
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import cross, hat, inverse_left_jacobian, left_jacobian, left_jacobian_rate

if TYPE_CHECKING:
    from parflex.bodies.reduced_beam import ReducedBeam
    from parflex.bodies.superelement import AffineShapes
    from parflex.bodies.superelement_matrices import RigidReport
    from parflex.bodies.two_node import TwoNodeBeam

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Node(Record):
    """A place on an elastic body, theory (27): at r0 + Phi_d e, rotated by exp(hat(th)) with th = Phi_r e.

    Its angular velocity beyond that of the root is L th_dot. `consistent` is False for the approximation L = 1 of the
    papers, which is exact in the plane only.
    """

    r0: Array
    Phi_d: Array  # 3 x N
    Phi_r: Array  # 3 x N
    consistent: bool = True
    turns: bool = True  # whether Phi_r is known; without it only a ball can be attached

    def L(self, e: Array) -> Array:
        """Return the left Jacobian of the rotation."""
        return left_jacobian(self.Phi_r @ e) if self.consistent else np.eye(3)

    def L_inverse(self, e: Array) -> Array:
        """Return the inverse of L."""
        return inverse_left_jacobian(self.Phi_r @ e) if self.consistent else np.eye(3)

    def L_drift(self, e: Array, ed: Array) -> Array:
        """Return L_dot th_dot."""
        return left_jacobian_rate(self.Phi_r @ e, self.Phi_r @ ed) if self.consistent else np.zeros(3)


class InnerNodes(Record, ABC):
    """Any place inside an elastic body, also away from attachments."""

    consistent: bool  # as of nodes

    @abstractmethod
    def node(self, where: str) -> Node:
        """Return the place that a text names: a share of a beam length or a node of modal data; raise LookupError."""


@dataclass(frozen=True, eq=False, repr=False)
class NamedNodes(InnerNodes):
    """All nodes of a body from a file, by the names of the robot or the numbers of the file."""

    indices: Mapping[str, int]
    positions: Array  # n x 3
    shapes: Array  # N x n x 6: displacements and rotations, NaN where these are not known
    consistent: bool = True

    def node(self, where: str) -> Node:
        """Return the node of a name or number."""
        if where not in self.indices:
            raise LookupError(where)
        index = self.indices[where]
        shape = self.shapes[:, index].T
        turns = bool(np.isfinite(shape).all())
        return Node(self.positions[index], shape[:3], np.nan_to_num(shape[3:]), self.consistent, turns)


class LineNodes(InnerNodes):
    """A beam with the places on its centre line by their shares xi of its length, and the mass beyond a section."""

    def node(self, where: str) -> Node:
        """Return the node at a share of the length from 0 to 1."""
        try:
            xi = float(where)
        except ValueError:
            raise LookupError(where) from None
        if not 0 <= xi <= 1:
            raise LookupError(where)
        return self.at(xi)

    def at(self, xi: float) -> Node:
        """Return the node at x = xi L."""
        r0, Phi_d, Phi_r = (part[0] for part in self.shapes(np.array([xi])))
        return Node(r0, Phi_d, Phi_r, self.consistent)

    @property
    @abstractmethod
    def stations(self) -> int:
        """Places that resolve every wave of the shapes."""

    @abstractmethod
    def shapes(self, xi: Array) -> tuple[Array, Array, Array]:
        """Return undeformed places of the sections at each xi, and displacements and rotations per coordinate."""

    @abstractmethod
    def beyond(self, xi: Array) -> tuple[Array, Array, Array]:
        """Return mass, S and G of the part beyond each xi: n, n x fields x 3, n x fields x fields x 3 x 3."""


@dataclass(frozen=True, eq=False, repr=False)
class MeanStrain(Record):
    """An elongation u_m = row e + 1/2 e^T H e with stiffness `k` and damping `c`, theory (37).

    H is the difference between the length of a bent line and its chord. K and D of the body contain the linear
    part, which is complete in the undeformed state.
    """

    row: Array  # N
    H: Array  # N x N
    k: float
    c: float = 0.0
    acts: bool = True

    def slope(self, e: Array) -> Array:
        """Return the gradient of u_m by e."""
        return self.row + self.H @ e

    def slope_change(self, e: Array) -> Array:
        """Return the change of the squared gradient from the undeformed state to e."""
        slope = self.slope(e)
        return np.outer(slope, slope) - np.outer(self.row, self.row)

    def value(self, e: Array) -> Any:
        """Return the elongation."""
        return self.row @ e + 0.5 * (e @ (self.H @ e)) if self.acts else self.row @ e

    def force(self, e: Array) -> Any:
        """Return the tensile force N."""
        return self.k * self.value(e)


@dataclass(frozen=True, eq=False, repr=False)
class ElasticBody(Body):
    """Mass, integrals S (N+1 x 3) and G (N+1 x N+1 x 3 x 3), stiffness and damping of the elastic coordinates.

    K and D are those of the undeformed body; for a strained body use `elastic_force`, `strain_energy`,
    `material_stiffness` and `damping_at`.
    """

    m: Any
    S: Array
    G: Array
    K: Array
    D: Array
    nodes: dict[str, Node] = field(default_factory=dict)
    labels: tuple[str, ...] = ()  # names of the coordinates; displacements of a tip begin with u
    units: tuple[str, ...] = ()
    spin: Array | None = None  # N+1 x N+1, rotary inertia of sections about x by (w_x, e_dot)
    rigid: RigidBody = field(default_factory=RigidBody)  # what is fixed to the root; m, S and G contain it
    bare: ElasticBody | None = field(default=None, repr=False)  # the body without that
    small: float = 0.0  # deflections of nodes beyond this are no longer small; 0: nothing is known
    by_tip: bool = False
    slopes: Array | None = None  # N x N x 3 x 3, of a body given by modes: how two modes turn its material, in the mean
    strains: tuple[MeanStrain, ...] = ()  # elongations of second order; where none acts, stiffness is constant
    inner: InnerNodes | None = field(default=None, repr=False)  # any place inside it; None: nothing is known
    held: int = 0  # of a reduced beam: so many of the coordinates, the last ones, are modes with both its ends held
    reduced: ReducedBeam | None = field(default=None, repr=False)  # what a reduction left of a beam, and what not
    found: RigidReport | None = field(default=None, repr=False)  # of a super-element: the rigid body in its matrices
    affine: AffineShapes | None = field(default=None, repr=False)  # S and G of the bare body, written shorter

    @cached_property
    def size(self) -> int:  # type: ignore[override]
        """Number of elastic coordinates."""
        return len(self.S) - 1

    @property
    def undeformed(self) -> RigidBody:
        """The rigid body of the undeformed shape: the block of its mass matrix without elastic coordinates."""
        return RigidBody(self.m, self.S[0], self.G[0, 0])

    def without_rigid(self) -> ElasticBody:
        """Return the body without rigid bodies fixed to its root."""
        return self if self.bare is None else self.bare

    def deformed(self, e: Array) -> tuple[Array, Array]:
        """Return first and second moments S and Sigma of the deformed body."""
        if self.affine is not None:
            S, Sigma = self.affine.moments(e)
            return S + self.rigid.S, Sigma + self.rigid.Sigma
        c = np.concatenate([[1.0], e])
        return c @ self.S, weighted_sum(c, self._rows(c))

    def _rows(self, c: Array) -> Array:
        """Return int r f_k^T for each field: sum_a c_a G_ak."""
        return weighted_sum(c, self.G)

    def forces(self, U: Array, a: Array, w: Array, e: Array, ed: Array, edd: Array) -> tuple[Array, Array, Array]:
        """Return force, moment and forces along the elastic coordinates for this motion; `a` is less gravity.

        Theory (24) to (26). U = hat(al) + hat(w) hat(w) as for a rigid body. With P = int r rd^T and Q = int r rdd^T of
        the elastic motion the moment is S x a plus the axial part of U Sigma + 2 hat(w) P^T + Q^T.
        """
        if self.affine is not None:
            force, moment, elastic = self.affine.forces(U, a, w, e, ed, edd)
            rigid_force, rigid_moment = self.rigid.wrench(U, a)
            return force + rigid_force, moment + rigid_moment, elastic + self.elastic_force(e, ed)
        c = np.concatenate([[1.0], e])
        if all(part.dtype.kind == "f" and not part.any() for part in (U, w, ed, edd)):  # zero velocity and acceleration
            S = c @ self.S
            return self.m * a, cross(S, a), self.S[1:] @ a + self.elastic_force(e, ed)
        rows = self._rows(c)
        S, Sigma = c @ self.S, weighted_sum(c, rows)
        W = hat(w)
        P, Q = weighted_sum(ed, rows[1:]), weighted_sum(edd, rows[1:])
        force = self.m * a + U @ S + 2 * cross(w, ed @ self.S[1:]) + edd @ self.S[1:]
        moment_matrix = U @ Sigma + 2 * W @ P.T + Q.T
        moment = cross(S, a) + axial(moment_matrix)
        along_coordinates = self.S[1:] @ a + (rows[1:].transpose(0, 2, 1) * U).sum(axis=(1, 2))
        elastic = along_coordinates + (2 * (self.G[1:, 1:] * W).sum(axis=(2, 3))) @ ed + self.elastic_mass @ edd
        return force, moment, elastic + self.elastic_force(e, ed)

    @cached_property
    def elastic_mass(self) -> Array:
        """Mass matrix (N x N) of the elastic coordinates with clamped root, independent of the coordinates."""
        if self.affine is not None:
            return self.affine.products
        mass = self.G[1:, 1:, 0, 0] + self.G[1:, 1:, 1, 1] + self.G[1:, 1:, 2, 2]
        return mass if self.spin is None else mass + self.spin[1:, 1:]

    @cached_property
    def acting(self) -> tuple[MeanStrain, ...]:  # type: ignore[override]
        """The active elongations of second order."""
        return tuple(strain for strain in self.strains if strain.acts)

    @cached_property
    def _linear_matrices(self) -> tuple[Array, Array]:
        """K and D without the part of the mean strains."""
        K, D = self.K.copy(), self.D.copy()
        for strain in self.acting:
            square = np.outer(strain.row, strain.row)
            K, D = K - strain.k * square, D - strain.c * square
        return K, D

    def elastic_force(self, e: Array, ed: Array) -> Array:
        """Return the forces of strain and strain rate along the elastic coordinates, theory (38)."""
        K, D = self._linear_matrices
        force = K @ e + D @ ed
        for strain in self.acting:
            slope = strain.slope(e)
            N = strain.force(e)
            force = force + (N + strain.c * (slope @ ed) if strain.c else N) * slope
        return force

    def strain_energy(self, e: Array) -> Any:
        """Return the strain energy."""
        energy = 0.5 * (e @ self._linear_matrices[0] @ e)
        for strain in self.acting:
            u_m = strain.value(e)
            energy = energy + 0.5 * strain.k * (u_m * u_m)
        return energy

    def damping_power(self, e: Array, ed: Array) -> Any:
        """Return the power dissipated by damping."""
        if not np.any(self.D):
            return 0.0
        power = ed @ self._linear_matrices[1] @ ed
        for strain in self.acting:
            if strain.c:
                rate = strain.slope(e) @ ed
                power = power + strain.c * (rate * rate)
        return power

    def material_stiffness(self, e: Array) -> Array:
        """Return the positive semidefinite part of the stiffness about e, without N H, for energies of motions."""
        return self.K + sum((s.k * s.slope_change(e) for s in self.acting), np.zeros_like(self.K))

    def stiffness_at(self, e: Array) -> Array:
        """Return the stiffness about e, the derivative of `elastic_force`."""
        return self.material_stiffness(e) + sum((s.force(e) * s.H for s in self.acting), np.zeros_like(self.K))

    def damping_at(self, e: Array) -> Array:
        """Return the damping about a strained state; motions without material strain are undamped."""
        return self.D + sum((s.c * s.slope_change(e) for s in self.acting), np.zeros_like(self.D))

    def coupling(self, e: Array) -> Array:
        """Return A_re, 6 x N: force and moment per unit of each elastic acceleration."""
        if self.affine is not None:
            return self.affine.coupling(e)
        rows = self._rows(np.concatenate([[1.0], e]))
        return np.concatenate([self.S[1:].T, np.array([axial(row.T) for row in rows[1:]]).T])

    def inertia_matrix(self, e: Array) -> Array:
        """Return the (6+N) x (6+N) matrix from (a, al, edd) to (f, m, s)."""
        coupling = self.coupling(e)
        rigid = RigidBody(self.m, *self.deformed(e)).inertia_matrix()
        return np.block([[rigid, coupling], [coupling.T, self.elastic_mass]])

    def kinetic_energy(self, v: Array, w: Array, e: Array, ed: Array) -> Any:
        """Return the kinetic energy at velocity `v` of the origin and angular velocity `w`."""
        twist = np.concatenate([v, w, ed])
        return 0.5 * (twist @ self.inertia_matrix(e) @ twist)

    @cached_property
    def two_node(self) -> TwoNodeBeam | None:  # type: ignore[override]
        """The two-node form of a body whose coordinates are those of its one tip, or None."""
        from parflex.bodies.two_node import two_node_beam

        return two_node_beam(self)

    def with_rigid(self, rigid: RigidBody) -> ElasticBody:
        """Return the body with a rigid body fixed to its root."""
        kind = scalar_type(self.S, self.G, rigid.S, rigid.Sigma)
        S: Array = self.S.astype(kind)
        G: Array = self.G.astype(kind)
        S[0] += rigid.S
        G[0, 0] += rigid.Sigma
        return replace(self, m=self.m + rigid.m, S=S, G=G, rigid=self.rigid + rigid, bare=self.without_rigid())

    def with_point_mass(self, node: Node, mass: float) -> ElasticBody:
        """Return the body with a mass at one of its nodes."""
        fields = np.concatenate([node.r0[None], node.Phi_d.T])
        G = self.G + mass * np.einsum("ai,bj->abij", fields, fields)
        return replace(self, m=self.m + mass, S=self.S + mass * fields, G=G, affine=None)

    def without_damping(self) -> ElasticBody:
        """Return the body without damping."""
        bare = None if self.bare is None else self.bare.without_damping()
        strains = tuple(replace(strain, c=0.0) for strain in self.strains)
        return replace(self, D=0 * self.D, strains=strains, bare=bare)

    def with_linear_strain(self) -> ElasticBody:
        """Return the body with constant stiffness: its elongation is that of the chord."""
        bare = None if self.bare is None else self.bare.with_linear_strain()
        return replace(self, strains=tuple(replace(strain, acts=False) for strain in self.strains), bare=bare)


def weighted_sum(weights: Array, matrices: Array) -> Array:
    """Return sum_a weights_a matrices_a."""
    total = np.zeros(matrices.shape[1:])
    for weight, matrix in zip(weights, matrices, strict=True):
        total = total + weight * matrix
    return total


def gram_matrix(m: Any, S: Array, G: Array) -> Array:
    """Return the integrals of the products of 1 and all fields, each by x, y, z."""
    products, first = G.transpose(0, 2, 1, 3).reshape(S.size, S.size), S.reshape(1, -1)
    return np.block([[np.full((1, 1), m), first], [first.T, products]]).astype(float)


def with_damping(body: ElasticBody, mass: float, stiffness: float) -> ElasticBody:
    """Return the body with Rayleigh damping D = mass Mee + stiffness K of its elastic coordinates.

    The material stress is E (strain + stiffness strain_dot): mean strains are damped by their own rates.
    """
    strains = tuple(replace(strain, c=stiffness * strain.k) for strain in body.strains)
    return replace(body, D=mass * body.elastic_mass + stiffness * body.K, strains=strains)


def with_small_rotations(body: ElasticBody) -> ElasticBody:
    """Return the body with L = 1 at its nodes and inside."""
    nodes = {name: replace(node, consistent=False) for name, node in body.nodes.items()}
    inner: Any = body.inner
    return replace(body, nodes=nodes, inner=None if inner is None else replace(inner, consistent=False))
