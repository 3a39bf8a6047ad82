"""A planar beam in absolute nodal coordinates: gradient-deficient cable elements with cubic shape functions.

Nodes carry their place and its derivative along the beam. The mass matrix is constant; strains are exact for a beam
that bends and stretches but does not shear: axial strain `|r'| - 1`, curvature `(r' x r'')/|r'|^2`. Nothing turns with
the beam, so large motion needs no care, and centrifugal stiffening comes by itself. Shares no code with the package.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import solve_ivp

Array = np.ndarray
POINTS = 5  # of Gauss' rule in an element: exact for its mass matrix, and more than its strains need


def _shapes(s: Array, h: float) -> tuple[Array, Array, Array]:
    """Cubic shape functions of an element of length h with their derivatives along it, at s from 0 to 1."""
    one = np.ones_like(s)
    S = [1 - 3 * s**2 + 2 * s**3, h * (s - 2 * s**2 + s**3), 3 * s**2 - 2 * s**3, h * (s**3 - s**2)]
    D = [(6 * s**2 - 6 * s) / h, 1 - 4 * s + 3 * s**2, (6 * s - 6 * s**2) / h, 3 * s**2 - 2 * s]
    B = [(12 * s - 6) / h**2, (6 * s - 4) / h, (6 - 12 * s) / h**2, (6 * s - 2 * one) / h]
    return np.stack(S, axis=-1), np.stack(D, axis=-1), np.stack(B, axis=-1)


@dataclass
class Cable:
    """A beam of equal elements. Coordinates: place and derivative of each node, x and y, in the order of the nodes."""

    length: float
    elements: int
    axial: float  # EA
    bending: float  # EI
    line: float  # mass of a metre
    held: list[int] = field(default_factory=list)  # coordinates that are given in time
    added: dict[int, float] = field(default_factory=dict)  # masses at coordinates

    def __post_init__(self) -> None:
        self.h = self.length / self.elements
        nodes, weights = np.polynomial.legendre.leggauss(POINTS)
        S, self.D, self.B = _shapes((nodes + 1) / 2, self.h)
        self.weights = weights * self.h / 2
        size = 4 * (self.elements + 1)
        own = np.kron(self.line * (S.T * self.weights) @ S, np.eye(2))
        self.M = np.zeros((size, size))
        for k in range(self.elements):
            self.M[4 * k : 4 * k + 8, 4 * k : 4 * k + 8] += own
        for index, mass in self.added.items():
            self.M[index, index] += mass
        self.free = np.setdiff1d(np.arange(size), self.held)
        self.inverse = np.linalg.inv(self.M[np.ix_(self.free, self.free)])

    def straight(self, start: tuple[float, float] = (0.0, 0.0)) -> Array:
        """Along x from a point."""
        q = np.zeros((self.elements + 1, 4))
        q[:, 0] = start[0] + np.linspace(0.0, self.length, self.elements + 1)
        q[:, 1] = start[1]
        q[:, 2] = 1.0
        return q.ravel()

    def _strains(self, q: Array) -> tuple[Array, ...]:
        """x', y', x'', y'' at the points of all elements, |r'|^2 and the curvature; a leading axis is a batch."""
        nodes = q.reshape(*q.shape[:-1], self.elements + 1, 4)
        own = np.concatenate([nodes[..., :-1, :], nodes[..., 1:, :]], axis=-1)
        x, y = own[..., 0::2], own[..., 1::2]
        x1, y1, x2, y2 = x @ self.D.T, y @ self.D.T, x @ self.B.T, y @ self.B.T
        size2 = x1 * x1 + y1 * y1
        return x1, y1, x2, y2, size2, (x1 * y2 - y1 * x2) / size2

    def elastic_energy(self, q: Array) -> float:
        *_, size2, bend = self._strains(q)
        return float(0.5 * ((self.axial * (np.sqrt(size2) - 1) ** 2 + self.bending * bend**2) @ self.weights).sum())

    def elastic_forces(self, q: Array) -> Array:
        """Derivative of the elastic energy."""
        x1, y1, x2, y2, size2, bend = self._strains(q)
        stretch = self.axial * (1 - 1 / np.sqrt(size2)) * self.weights  # EA eps / |r'|
        moment = self.bending * bend / size2 * self.weights
        along = stretch - 2 * moment * bend
        own = np.empty((*x1.shape[:-1], 8), dtype=q.dtype)
        own[..., 0::2] = (along * x1 + moment * y2) @ self.D - (moment * y1) @ self.B
        own[..., 1::2] = (along * y1 - moment * x2) @ self.D + (moment * x1) @ self.B
        Q = np.zeros((*q.shape[:-1], self.elements + 1, 4), dtype=q.dtype)
        Q[..., :-1, :] += own[..., :4]
        Q[..., 1:, :] += own[..., 4:]
        return Q.reshape(q.shape)

    def place(self, q: Array, s: float) -> Array:
        """Place of a point, s from 0 to 1 along the whole beam; rows of `q` give rows."""
        k = min(int(s * self.elements), self.elements - 1)
        S = _shapes(np.array(s * self.elements - k), self.h)[0]
        return np.einsum("k,...kx->...x", S, q[..., 4 * k : 4 * k + 8].reshape(*q.shape[:-1], 4, 2))

    def kinetic_energy(self, v: Array) -> float:
        return float(0.5 * v @ self.M @ v)


def run(
    cable: Cable,
    t: Array,
    q: Array,
    v: Array,
    given: Callable[[float], tuple[Array, Array, Array]] | None = None,
    spin: Callable[[float], tuple[float, float]] | None = None,
    tolerance: float = 1e-9,
    method: str = "DOP853",
) -> tuple[Array, Array, Array]:
    """Positions, velocities and forces on the held coordinates at the times `t`.

    `given` leads the held coordinates in time (position, velocity, acceleration); `spin` are angular velocity and
    acceleration of the axes in which the coordinates are written.
    """
    free, held = cable.free, np.array(cable.held, dtype=int)
    still = np.zeros(len(held))

    def whole(time: float, y: Array) -> tuple[Array, Array, Array]:
        place, speed, push = given(time) if given is not None else (q[held], still, still)
        full, rate = np.zeros(len(q), dtype=y.dtype), np.zeros(len(q), dtype=y.dtype)
        full[free], full[held] = y[: len(free)], place
        rate[free], rate[held] = y[len(free) :], speed
        bias = np.zeros(len(q), dtype=y.dtype)
        bias[held] = push
        if spin is not None:
            w, al = spin(time)
            pairs, rates = full.reshape(-1, 2), rate.reshape(-1, 2)
            turned = 2 * w * rates + al * pairs
            bias += (np.stack([-turned[:, 1], turned[:, 0]], axis=1) - w * w * pairs).ravel()
        return full, rate, cable.M @ bias + cable.elastic_forces(full)

    def slope(time: float, y: Array) -> Array:
        _, rate, f = whole(time, y)
        return np.concatenate([rate[free], -cable.inverse @ f[free]])

    def tangent(time: float, y: Array) -> Array:
        return np.array([slope(time, y + step).imag for step in 1e-30j * np.eye(len(y))]).T / 1e-30

    more = {"jac": tangent} if method == "Radau" else {}
    made = solve_ivp(
        slope, (t[0], t[-1]), np.concatenate([q[free], v[free]]), method, t_eval=t, rtol=tolerance,
        atol=tolerance * np.concatenate([np.full(len(free), 1.0), np.full(len(free), 100.0)]), **more,
    )  # fmt: skip
    if not made.success:
        raise ValueError(made.message)
    rows = [whole(time, y) for time, y in zip(made.t, made.y.T, strict=True)]
    accelerations = [-cable.inverse @ f[free] for _, _, f in rows]
    forces = [f[held] + cable.M[np.ix_(held, free)] @ a for (_, _, f), a in zip(rows, accelerations, strict=True)]
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), np.array(forces)
