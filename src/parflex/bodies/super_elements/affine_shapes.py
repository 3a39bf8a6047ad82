"""Inertia of a body whose shapes move its mass affinely, but for a rest without direction, theory (69).

What the mass matrix of a super-element tells of a shape is the rigid motion with its momentum; what is estimated beside
it is a stretch. So the integrals of all pairs of shapes are few numbers: the deformed body is that of the mean motion
of its coordinates, and forces along them are projections of one force and one matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.bodies.modal import ROUND_OFF
from parflex.bodies.rigid import RigidBody
from parflex.records import Record
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import cross, hat

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class AffineShapes(Record):
    """phi_a = t_a + (hat(theta_a) + stretch_a) (r - c) + psi_a, with products W_ab of the rest psi."""

    m: float
    c: Array
    Sigma: Array  # about c
    t: Array  # N x 3
    theta: Array  # N x 3
    stretch: Array  # N x 3 x 3
    W: Array  # N x N
    products: Array  # N x N, of whole shapes: the mass matrix of the coordinates

    def mean(self, e: Array) -> tuple[Array, Array]:
        """Where the centre is moved by, and what the material is turned and stretched by."""
        return e @ self.t, hat(e @ self.theta) + _weighted(e, self.stretch)

    def moments(self, e: Array) -> tuple[Array, Array]:
        """S and Sigma of the deformed body."""
        moved, B = self.mean(e)
        p, F = self.c + moved, np.eye(3) + B
        rest = e @ (self.W @ e) / 3
        return self.m * p, self.m * np.outer(p, p) + F @ self.Sigma @ F.T + rest * np.eye(3)

    def forces(self, U: Array, a: Array, w: Array, e: Array, ed: Array, edd: Array) -> tuple[Array, Array, Array]:
        """Force, moment and inertial forces along the coordinates, theory (24) to (26)."""
        (moved, B), (rate, B_rate), (faster, B_faster) = (self.mean(x) for x in (e, ed, edd))
        p, F = self.c + moved, np.eye(3) + B
        force = self.m * (a + U @ p + cross(2 * w, rate) + faster)
        Y = (U @ F + hat(2 * w) @ B_rate + B_faster) @ self.Sigma
        rest = self.W @ e
        moment = cross(p, force) + _axial(Y @ F.T) + (e @ rest / 3) * _axial(U) + (ed @ rest / 3) * 4 * w
        elastic = self.t @ force + self.theta @ _axial(Y) + np.trace(U) / 3 * rest + self.W @ edd
        if self.stretch.any():
            elastic = elastic + np.array([(own * Y).sum() for own in self.stretch])
        return force, moment, elastic

    def coupling(self, e: Array) -> Array:
        """Force and moment per unit of each elastic acceleration, 6 x N."""
        moved, B = self.mean(e)
        H = (np.eye(3) + B) @ self.Sigma
        S = self.m * (self.c + moved)
        moments = (hat(S) @ self.t.T) + (np.trace(H) * np.eye(3) - H.T) @ self.theta.T
        if self.stretch.any():
            moments = moments + np.array([_axial(own @ H.T) for own in self.stretch]).T
        return np.concatenate([self.m * self.t.T, moments])

    def inertia_matrix(self, e: Array, fixed: RigidBody) -> Array:
        """(6+N) x (6+N) matrix that takes (a, al, edd) to (f, m, s), with what is fixed to the root."""
        N = len(self.t)
        S, Sigma = self.moments(e)
        whole = RigidBody(self.m, S, Sigma) + fixed
        own = whole.inertia_matrix()
        M: Array = np.zeros((6 + N, 6 + N), dtype=scalar_type(own))
        M[:6, :6] = own
        M[:6, 6:] = self.coupling(e)
        M[6:, :6] = M[:6, 6:].T
        M[6:, 6:] = self.products
        return M


def without_noise(products: Array, sizes: Array) -> Array:
    """A symmetric matrix with zero for what is rounding alone, measured by the sizes of both shapes."""
    kept = np.where(np.abs(products) > ROUND_OFF * np.outer(sizes, sizes), products, 0.0)
    return (kept + kept.T) / 2


def _weighted(weights: Array, matrices: Array) -> Array:
    return sum((x * own for x, own in zip(weights, matrices, strict=True)), np.zeros((3, 3)))


def _axial(matrix: Array) -> Array:
    """For M = int b r^T: int r x b."""
    return np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])
