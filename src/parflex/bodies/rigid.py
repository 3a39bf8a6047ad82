"""Define the base class of all bodies, and rigid bodies, which have no elastic coordinates.

A kind of body is a subclass of `Body` over any scalar, and a reader that makes it from a robot file. No module outside
`bodies` depends on the kind of a body.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from parflex.records import Record
from parflex.spatial.rotations import cross, hat

if TYPE_CHECKING:
    from parflex.bodies.elastic import InnerNodes, MeanStrain, Node
    from parflex.bodies.reduced_beam import ReducedBeam
    from parflex.bodies.superelement_matrices import RigidReport
    from parflex.bodies.two_node import TwoNodeBeam

Array = np.ndarray
NO_COORDINATES = np.zeros(0)  # elastic coordinates of a rigid body
NO_COORDINATES.setflags(write=False)


class Body(Record, ABC):
    """Mass, shape and stiffness of a link, in the axes of its frame; defaults are those of a rigid body.

    `a` is an acceleration less gravity, U = hat(al) + hat(w) hat(w), and e are the elastic coordinates.
    """

    m: Any  # mass
    size: int = 0  # number of elastic coordinates
    labels: tuple[str, ...] = ()  # names of its elastic coordinates
    units: tuple[str, ...] = ()  # of its coordinates: m, rad, or 1 for numbers that multiply shapes in metres
    by_tip: bool = False  # whether its coordinates begin with the motion of its one tip, as of a beam; else: modes
    nodes: Mapping[str, Node] = MappingProxyType({})  # places that its deformation moves, by name
    inner: InnerNodes | None = None  # any place inside it that its deformation moves; None: there is none
    held: int = 0  # how many coordinates, the last ones, are modes of a beam with both its ends held
    reduced: ReducedBeam | None = None  # reduction of its beam
    found: RigidReport | None = None  # the rigid body that the matrices of a super-element hold
    small: float = 0.0  # deflections of nodes beyond this are no longer small; 0: nothing is known
    slopes: Array | None = None  # N x N x 3 x 3: how two coordinates turn its material, in the mean
    strains: tuple[MeanStrain, ...] = ()  # elongations of second order
    acting: tuple[MeanStrain, ...] = ()  # those of them that act; where none does, its stiffness is constant
    two_node: TwoNodeBeam | None = None  # its form by the motion of both its ends
    rigid: RigidBody  # the part fixed to its frame: all of a rigid body

    @property
    def undeformed(self) -> RigidBody:
        """The rigid body in the undeformed state, `rigid` included."""
        return self.rigid

    @abstractmethod
    def deformed(self, e: Array) -> tuple[Array, Array]:
        """Return first and second moments S and Sigma in the shape at e."""

    @abstractmethod
    def forces(self, U: Array, a: Array, w: Array, e: Array, ed: Array, edd: Array) -> tuple[Array, Array, Array]:
        """Return force, moment and forces along e for this motion."""

    @abstractmethod
    def inertia_matrix(self, e: Array) -> Array:
        """Return the matrix from (a, al, edd) to (force, moment, forces along e)."""

    @abstractmethod
    def kinetic_energy(self, v: Array, w: Array, e: Array, ed: Array) -> Any:
        """Return the kinetic energy at velocity `v` of the origin and angular velocity `w`."""

    def as_rigid(self) -> RigidBody:
        """Return the body as a rigid body; raise if it is flexible."""
        if self.size:
            raise TypeError(f"a body with the elastic coordinates {self.labels} is used as a rigid one")
        return self.undeformed

    @abstractmethod
    def with_rigid(self, rigid: RigidBody) -> Body:
        """Return the body with a rigid body fixed to its frame."""

    @abstractmethod
    def with_point_mass(self, node: Node, mass: float) -> Body:
        """Return the body with a mass at one of its nodes."""

    def coupling(self, e: Array) -> Array:
        """Return the 6 x N block of the inertia matrix: force and moment per unit of each elastic acceleration."""
        return np.zeros((6, 0))

    def strain_energy(self, e: Array) -> Any:
        """Return the strain energy."""
        return 0.0

    def damping_power(self, e: Array, ed: Array) -> Any:
        """Return the power dissipated by damping."""
        return 0.0

    def material_stiffness(self, e: Array) -> Array:
        """Return the positive semidefinite part (N x N) of the stiffness about e, for energies of motions."""
        return np.zeros((0, 0))

    def stiffness_at(self, e: Array) -> Array:
        """Return the stiffness about e, N x N."""
        return np.zeros((0, 0))

    def damping_at(self, e: Array) -> Array:
        """Return the damping about e, N x N; motions without material strain are undamped."""
        return np.zeros((0, 0))

    def without_damping(self) -> Body:
        """Return the body without damping."""
        return self

    def with_linear_strain(self) -> Body:
        """Return the body with constant stiffness: its elongation is that of the chord."""
        return self


@dataclass(frozen=True, eq=False, repr=False)
class RigidBody(Body):
    """Mass `m`, first moments `S` = int r and second moments `Sigma` = int r r^T over mass, in axes of the frame."""

    m: Any = 0.0
    S: Array = field(default_factory=lambda: np.zeros(3))
    Sigma: Array = field(default_factory=lambda: np.zeros((3, 3)))

    @classmethod
    def from_khalil(cls, M: Any, MS: Any, XX: Any, XY: Any, XZ: Any, YY: Any, YZ: Any, ZZ: Any) -> RigidBody:
        """Make a body from the ten Khalil parameters; XY = -int x y dm is the off-diagonal entry."""
        Sigma = np.array(
            [[(YY + ZZ - XX) / 2, -XY, -XZ], [-XY, (XX + ZZ - YY) / 2, -YZ], [-XZ, -YZ, (XX + YY - ZZ) / 2]]
        )
        return cls(M, np.array(MS), Sigma)

    @classmethod
    def from_centre(cls, mass: float, centre: Any, about_centre: Array) -> RigidBody:
        """Make a body from mass, centre of mass and central inertia."""
        c = np.array(centre)
        return cls(mass, mass * c, second_moments(np.array(about_centre)) + mass * np.outer(c, c))

    @property
    def I(self) -> Array:  # noqa: E743 - the symbol of the papers
        """Inertia about the origin of the frame."""
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = self.Sigma
        return np.array([[yy + zz, -xy, -xz], [-xy, xx + zz, -yz], [-xz, -yz, xx + yy]])

    def __add__(self, other: RigidBody) -> RigidBody:
        """Return the sum of two bodies in the same frame."""
        return RigidBody(self.m + other.m, self.S + other.S, self.Sigma + other.Sigma)

    def __sub__(self, other: RigidBody) -> RigidBody:
        """Return the body without the other."""
        return RigidBody(self.m - other.m, self.S - other.S, self.Sigma - other.Sigma)

    def in_parent(self, rotation: Array, position: Array) -> RigidBody:
        """Return the body in the axes of a frame in which this one is at `position` with `rotation`."""
        S, p = rotation @ self.S, position
        mixed = np.outer(S, p)
        Sigma = rotation @ self.Sigma @ rotation.T + mixed + mixed.T + self.m * np.outer(p, p)
        return RigidBody(self.m, S + self.m * p, Sigma)

    def wrench(self, U: Array, a: Array) -> tuple[Array, Array]:
        """Return force and moment at the origin for this motion; `a` is the acceleration less gravity.

        [Khalil2007, eq. (12)], theory (3), in the axes of the body, written with U = hat(al) + hat(w) hat(w),
        which the kinematics of the links computes too: int r x (U r) dm is the axial part of U Sigma.
        """
        return self.m * a + U @ self.S, cross(self.S, a) + axial(U @ self.Sigma)

    def forces(self, U: Array, a: Array, w: Array, e: Array, ed: Array, edd: Array) -> tuple[Array, Array, Array]:
        """Return force and moment for this motion, and no forces along elastic coordinates."""
        return *self.wrench(U, a), NO_COORDINATES

    def inertia_matrix(self, e: Array = NO_COORDINATES) -> Array:
        """Return the 6 x 6 matrix from (a, al) to (f, m)."""
        S = hat(self.S)
        return np.block([[self.m * np.eye(3), S.T], [S, self.I]])

    def kinetic_energy(self, v: Array, w: Array, e: Array = NO_COORDINATES, ed: Array = NO_COORDINATES) -> Any:
        """Return the kinetic energy at velocity `v` of the origin and angular velocity `w`."""
        return 0.5 * self.m * (v @ v) + v @ cross(w, self.S) + 0.5 * w @ (self.I @ w)

    @property
    def rigid(self) -> RigidBody:  # type: ignore[override]
        """The whole body."""
        return self

    def deformed(self, e: Array) -> tuple[Array, Array]:
        """Return S and Sigma."""
        return self.S, self.Sigma

    def with_rigid(self, rigid: RigidBody) -> RigidBody:
        """Return the sum of both bodies."""
        return self + rigid

    def with_point_mass(self, node: Node, mass: float) -> RigidBody:
        """Return the body with a mass at a place."""
        return self + RigidBody.from_centre(mass, node.r0, np.zeros((3, 3)))

    def impossible(self, normal: Array | None = None) -> str | None:
        """Return why the inertia is not physically consistent, or None; in the plane only about its `normal`."""
        m, S, I = float(self.m), np.asarray(self.S, float), np.asarray(self.I, float)
        scale = max(np.abs(I).max(), np.abs(S).max(), m, 1e-300)
        if m <= 1e-12 * scale:
            first_moment = S if normal is None else cross(normal, S)
            if np.abs(first_moment).max() > 1e-9 * scale:
                return "it has a first moment but no mass"
            centred = I
        else:
            centred = I - m * hat(S / m).T @ hat(S / m)
        if normal is not None:
            turning = float(normal @ centred @ normal)
            return None if turning >= -1e-9 * scale else f"its inertia about its centre is {turning:.4g} kg m2"
        moments = np.linalg.eigvalsh(centred)
        if moments[0] < -1e-9 * scale:
            return f"its smallest inertia about its centre is {moments[0]:.4g} kg m2"
        if moments[2] > moments[0] + moments[1] + 1e-6 * scale and m > 0:
            return f"its largest inertia {moments[2]:.4g} exceeds the sum {moments[0] + moments[1]:.4g} of the others"
        return None


def second_moments(inertia: Array) -> Array:
    """Return int r r^T of a body from its inertia about the same point."""
    return np.trace(inertia) / 2 * np.eye(3) - inertia


def axial(matrix: Array) -> Array:
    """Return int r x b from M = int b r^T."""
    return np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])
