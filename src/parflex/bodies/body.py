"""What is asked of a body, whatever its kind: by the tree, the recursion, the models, programs and views.

A body has `size` elastic coordinates e, a rigid one none. A new kind of body is a class with these answers, over any
scalar, and a reader that makes it from a robot file; nothing else asks what kind a body is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from parflex.bodies.elastic_body import InnerNodes, MeanStrain, Node
    from parflex.bodies.reduced_link import ReducedLink
    from parflex.bodies.rigid import RigidBody
    from parflex.bodies.super_elements.rigid_motions import RigidReport
    from parflex.bodies.two_node import TwoNodeBeam

Array = np.ndarray


class Body(Protocol):
    """Mass, shape and stiffness of what moves with a link, in the axes of its frame."""

    # -- what it is made of ------------------------------------------------------------------------------

    @property
    def m(self) -> Any:
        """Its mass."""

    @property
    def rigid(self) -> RigidBody:
        """What of it is fixed to its frame, whatever the rest does: all of a rigid body."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Places on it that its deformation moves, by name."""

    @property
    def inner(self) -> InnerNodes | None:
        """Any place inside it that its deformation moves; None: there is none."""

    @property
    def undeformed(self) -> RigidBody:
        """The rigid body that it is while undeformed, `rigid` included."""

    def as_rigid(self) -> RigidBody:
        """The body itself, for what knows rigid bodies only; refused where it is flexible."""

    def deformed(self, e: Array) -> tuple[Array, Array]:
        """First and second moments S and Sigma in the shape that e gives it."""

    # -- its elastic coordinates -------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of elastic coordinates."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names."""

    @property
    def units(self) -> tuple[str, ...]:
        """Their units: m, rad, or 1 for numbers that multiply shapes in metres."""

    @property
    def by_tip(self) -> bool:
        """Whether they begin with the motion of its one tip, as those of a beam; others are held at their nodes."""

    @property
    def held(self) -> int:
        """How many of them, the last ones, are modes of a beam with both its ends held."""

    @property
    def reduced(self) -> ReducedLink | None:
        """How the beam that it stands for was reduced; None: it was not."""

    @property
    def found(self) -> RigidReport | None:
        """The rigid body that the matrices of a super-element hold; None: it is something else."""

    # -- how it moves ------------------------------------------------------------------------------------

    def forces(self, U: Array, a: Array, w: Array, e: Array, ed: Array, edd: Array) -> tuple[Array, Array, Array]:
        """Force, moment and forces along e that move it so; `a` is less gravity, U = hat(al) + hat(w) hat(w)."""

    def inertia_matrix(self, e: Array) -> Array:
        """The matrix that takes (a, al, edd) to (force, moment, forces along e)."""

    def coupling(self, e: Array) -> Array:
        """Of that matrix, 6 x N: force and moment per unit of each elastic acceleration."""

    def kinetic_energy(self, v: Array, w: Array, e: Array, ed: Array) -> Any:
        """Kinetic energy for velocity `v` of the origin and angular velocity `w`."""

    # -- how it deforms ---------------------------------------------------------------------------------

    def strain_energy(self, e: Array) -> Any:
        """Energy of its strain."""

    def damping_power(self, e: Array, ed: Array) -> Any:
        """Power that its damping takes."""

    def material_stiffness(self, e: Array) -> Array:
        """N x N, of the stiffness about e what strains the material: never negative."""

    def stiffness_at(self, e: Array) -> Array:
        """N x N, its stiffness about e."""

    def damping_at(self, e: Array) -> Array:
        """N x N, its damping about e."""

    def two_node(self) -> TwoNodeBeam | None:
        """Its form by the motion of both its ends; None: it has none."""

    @property
    def strains(self) -> tuple[MeanStrain, ...]:
        """Its elongations of second order."""

    @property
    def acting(self) -> tuple[MeanStrain, ...]:
        """Those of them that act; where none does, its stiffness is constant."""

    @property
    def slopes(self) -> Array | None:
        """N x N x 3 x 3: how two coordinates turn its material, in the mean; None: nothing is known."""

    @property
    def small(self) -> float:
        """Deflections of nodes beyond this are no longer small; 0: nothing is known."""

    # -- the same body with something more or less -------------------------------------------------------

    def with_rigid(self, rigid: RigidBody) -> Body:
        """The body with a rigid one fixed to its frame."""

    def with_point_mass(self, node: Node, mass: float) -> Body:
        """The body with a mass at one of its nodes."""

    def without_damping(self) -> Body:
        """The body without damping of its own."""

    def with_linear_strain(self) -> Body:
        """The body with a constant stiffness."""
