"""The rigid body: a body with no elastic coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.spatial import cross, hat

Array = np.ndarray


@dataclass(frozen=True)
class RigidBody:
    """Mass `m`, first moment `S` and inertia `I` about the origin of its frame, in the axes of the frame."""

    m: Any = 0.0
    S: Array = field(default_factory=lambda: np.zeros(3))
    I: Array = field(default_factory=lambda: np.zeros((3, 3)))  # noqa: E741 - the symbol of the papers

    @classmethod
    def from_khalil(cls, M: Any, MS: Any, XX: Any, XY: Any, XZ: Any, YY: Any, YZ: Any, ZZ: Any) -> RigidBody:
        """From the ten Khalil parameters; XY = -int x y dm is the off-diagonal entry itself."""
        return cls(M, np.array(MS), np.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]))

    @classmethod
    def from_centre(cls, mass: float, centre: Any, about_centre: Array) -> RigidBody:
        """From mass, centre of mass and inertia about it."""
        return cls(0.0, np.zeros(3), np.array(about_centre)) + cls(
            mass, mass * np.array(centre), mass * hat(centre).T @ hat(centre)
        )

    def __add__(self, other: RigidBody) -> RigidBody:
        """Both bodies as one; both are described in the same frame."""
        return RigidBody(self.m + other.m, self.S + other.S, self.I + other.I)

    def in_parent(self, rotation: Array, position: Array) -> RigidBody:
        """The same body described in a frame in which this one stands at `position`, turned by `rotation`."""
        S, p = rotation @ self.S, position
        mixed = hat(p).T @ hat(S)
        I = rotation @ self.I @ rotation.T + mixed + mixed.T + self.m * hat(p).T @ hat(p)  # noqa: E741
        return RigidBody(self.m, S + self.m * p, I)

    def wrench(self, w: Array, a: Array, al: Array) -> tuple[Array, Array]:
        """Force and moment that move the body so, at its origin; `a` is the acceleration less gravity.

        [Khalil2007, eq. (12)], in the axes of the body.
        """
        f = self.m * a + cross(al, self.S) + cross(w, cross(w, self.S))
        moment = cross(self.S, a) + self.I @ al + cross(w, self.I @ w)
        return f, moment

    def inertia_matrix(self) -> Array:
        """The 6 x 6 matrix that takes (a, al) to (f, m)."""
        S = hat(self.S)
        return np.block([[self.m * np.eye(3), S.T], [S, self.I]])

    def kinetic_energy(self, v: Array, w: Array) -> Any:
        """Kinetic energy for velocity `v` of the origin and angular velocity `w`."""
        return 0.5 * self.m * (v @ v) + v @ cross(w, self.S) + 0.5 * w @ (self.I @ w)

    def impossible(self, normal: Array | None = None) -> str | None:
        """Why no real body has this inertia, or None. In the plane only what turns about its `normal` is judged."""
        m, S, I = float(self.m), np.asarray(self.S, float), np.asarray(self.I, float)  # noqa: E741
        scale = max(np.abs(I).max(), np.abs(S).max(), m, 1e-300)
        if m <= 1e-12 * scale:
            moved = S if normal is None else cross(normal, S)
            if np.abs(moved).max() > 1e-9 * scale:
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
