"""Rigid bodies, without elastic coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from parflex.records import Record
from parflex.spatial.rotations import cross, hat

if TYPE_CHECKING:
    from parflex.bodies.elastic import InnerNodes, Node
    from parflex.bodies.geometric_stiffness import MeanStrain

Array = np.ndarray
NO_COORDINATES = np.zeros(0)  # those of a rigid body
NO_COORDINATES.setflags(write=False)


@dataclass(frozen=True, eq=False, repr=False)
class RigidBody(Record):
    """Mass `m`, first moments `S` = int r and second moments `Sigma` = int r r^T over mass, in axes of the frame."""

    m: Any = 0.0
    S: Array = field(default_factory=lambda: np.zeros(3))
    Sigma: Array = field(default_factory=lambda: np.zeros((3, 3)))

    size: ClassVar[int] = 0
    labels: ClassVar[tuple[str, ...]] = ()
    units: ClassVar[tuple[str, ...]] = ()
    nodes: ClassVar[Mapping[str, Node]] = MappingProxyType({})
    inner: ClassVar[InnerNodes | None] = None
    by_tip: ClassVar[bool] = False
    held: ClassVar[int] = 0
    reduced: ClassVar[None] = None
    found: ClassVar[None] = None
    small: ClassVar[float] = 0.0
    slopes: ClassVar[Array | None] = None
    strains: ClassVar[tuple[MeanStrain, ...]] = ()
    acting: ClassVar[tuple[MeanStrain, ...]] = ()

    @classmethod
    def from_khalil(cls, M: Any, MS: Any, XX: Any, XY: Any, XZ: Any, YY: Any, YZ: Any, ZZ: Any) -> RigidBody:
        """From the ten Khalil parameters; XY = -int x y dm is the off-diagonal entry itself."""
        Sigma = np.array(
            [[(YY + ZZ - XX) / 2, -XY, -XZ], [-XY, (XX + ZZ - YY) / 2, -YZ], [-XZ, -YZ, (XX + YY - ZZ) / 2]]
        )
        return cls(M, np.array(MS), Sigma)

    @classmethod
    def from_centre(cls, mass: float, centre: Any, about_centre: Array) -> RigidBody:
        """From mass, centre of mass and inertia about it."""
        c, central = np.array(centre), np.array(about_centre)
        return cls(mass, mass * c, np.trace(central) / 2 * np.eye(3) - central + mass * np.outer(c, c))

    @property
    def I(self) -> Array:  # noqa: E743 - the symbol of the papers
        """Inertia about the origin of the frame."""
        Sigma = self.Sigma
        xx, yy, zz = Sigma[0, 0], Sigma[1, 1], Sigma[2, 2]
        return np.array(
            [
                [yy + zz, -Sigma[0, 1], -Sigma[0, 2]],
                [-Sigma[0, 1], xx + zz, -Sigma[1, 2]],
                [-Sigma[0, 2], -Sigma[1, 2], xx + yy],
            ]
        )

    def __add__(self, other: RigidBody) -> RigidBody:
        """Both bodies as one; both are described in the same frame."""
        return RigidBody(self.m + other.m, self.S + other.S, self.Sigma + other.Sigma)

    def __sub__(self, other: RigidBody) -> RigidBody:
        """The body without the other."""
        return RigidBody(self.m - other.m, self.S - other.S, self.Sigma - other.Sigma)

    def in_parent(self, rotation: Array, position: Array) -> RigidBody:
        """The same body described in a frame in which this one stands at `position`, turned by `rotation`."""
        S, p = rotation @ self.S, position
        mixed = np.outer(S, p)
        Sigma = rotation @ self.Sigma @ rotation.T + mixed + mixed.T + self.m * np.outer(p, p)
        return RigidBody(self.m, S + self.m * p, Sigma)

    def wrench(self, U: Array, a: Array) -> tuple[Array, Array]:
        """Force and moment that move the body so, at its origin; `a` is the acceleration less gravity.

        [Khalil2007, eq. (12)], theory (3), in the axes of the body, written with U = hat(al) + hat(w) hat(w), which the
        motion of the links needs anyway: int r x (U r) dm is the axial part of U Sigma.
        """
        moment_matrix = U @ self.Sigma
        axial = np.array(
            [
                moment_matrix[2, 1] - moment_matrix[1, 2],
                moment_matrix[0, 2] - moment_matrix[2, 0],
                moment_matrix[1, 0] - moment_matrix[0, 1],
            ]
        )
        return self.m * a + U @ self.S, cross(self.S, a) + axial

    def forces(self, U: Array, a: Array, w: Array, e: Array, ed: Array, edd: Array) -> tuple[Array, Array, Array]:
        """Force and moment that move the body so; none along elastic coordinates."""
        return *self.wrench(U, a), NO_COORDINATES

    def inertia_matrix(self, e: Array = NO_COORDINATES) -> Array:
        """The 6 x 6 matrix that takes (a, al) to (f, m)."""
        S = hat(self.S)
        return np.block([[self.m * np.eye(3), S.T], [S, self.I]])

    def kinetic_energy(self, v: Array, w: Array, e: Array = NO_COORDINATES, ed: Array = NO_COORDINATES) -> Any:
        """Kinetic energy for velocity `v` of the origin and angular velocity `w`."""
        return 0.5 * self.m * (v @ v) + v @ cross(w, self.S) + 0.5 * w @ (self.I @ w)

    # -- answers of a rigid body -------------------------------------------------------------------------

    @property
    def rigid(self) -> RigidBody:
        """All of it."""
        return self

    @property
    def undeformed(self) -> RigidBody:
        """The same."""
        return self

    def as_rigid(self) -> RigidBody:
        """The same."""
        return self

    def deformed(self, e: Array) -> tuple[Array, Array]:
        """S and Sigma."""
        return self.S, self.Sigma

    def coupling(self, e: Array) -> Array:
        """No deformation couples to its motion."""
        return np.zeros((6, 0))

    def strain_energy(self, e: Array) -> float:
        """None."""
        return 0.0

    def damping_power(self, e: Array, ed: Array) -> float:
        """None."""
        return 0.0

    def material_stiffness(self, e: Array) -> Array:
        """Of no coordinates."""
        return np.zeros((0, 0))

    def stiffness_at(self, e: Array) -> Array:
        """Of no coordinates."""
        return np.zeros((0, 0))

    def damping_at(self, e: Array) -> Array:
        """Of no coordinates."""
        return np.zeros((0, 0))

    def two_node(self) -> None:
        """None: its ends move as one."""

    def with_rigid(self, rigid: RigidBody) -> RigidBody:
        """Both bodies as one."""
        return self + rigid

    def with_point_mass(self, node: Node, mass: float) -> RigidBody:
        """The body with a mass at a place."""
        return self + RigidBody.from_centre(mass, node.r0, np.zeros((3, 3)))

    def without_damping(self) -> RigidBody:
        """The same: it has none."""
        return self

    def with_linear_strain(self) -> RigidBody:
        """The same: it has no strain."""
        return self

    # -- whether it can be -------------------------------------------------------------------------------

    def impossible(self, normal: Array | None = None) -> str | None:
        """Why no real body has this inertia, or None. In the plane only what turns about its `normal` is judged."""
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
