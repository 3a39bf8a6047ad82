"""Mechanisms of rigid bodies in space: position of the centre of mass and a unit quaternion of the principal axes.

Velocities are that of the centre in the world and the angular velocity in the axes of the body. Points and axes are
given in the axes of their body, points from its centre of mass; body -1 is the ground.
"""

from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
Vector = tuple[float, float, float]
GROUND = -1


@dataclass(frozen=True)
class Ball:
    """Two points coincide, along the given directions of the world."""

    first: int
    at: Vector
    second: int
    on: Vector
    along: tuple[Vector, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Square:
    """Two directions stay at right angles."""

    first: int
    axis: Vector
    second: int
    other: Vector


def _cross(a: Array | Vector, b: Array | Vector) -> Array:
    """As NumPy's, which is slow for single vectors."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def hinge(first: int, at: Vector, axis: Vector, second: int, on: Vector, other: Vector) -> list:
    """A common point and a common axis, written with two directions that are normal to it in the second body."""
    n = np.array(other) / np.linalg.norm(other)
    helper = np.eye(3)[int(np.argmin(np.abs(n)))]
    one = _cross(n, helper)
    two = _cross(n, one)
    return [
        Ball(first, at, second, on),
        Square(first, axis, second, tuple(one)),
        Square(first, axis, second, tuple(two)),
    ]


def rotation(quaternion: Array) -> Array:
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _skew(p: Array) -> Array:
    return np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])


@dataclass
class Assembly:
    """Bodies with mass and principal inertia, and what joins them."""

    mass: Array
    inertia: Array  # rows of three
    joints: list = field(default_factory=list)
    gravity: Vector = (0.0, 0.0, 0.0)

    @property
    def masses(self) -> Array:
        return np.concatenate([[m, m, m, *J] for m, J in zip(self.mass, self.inertia, strict=True)])

    def _body(self, q: Array, v: Array, body: int) -> tuple[Array, Array, Array, Array]:
        """Centre, rotation, and angular velocity in the axes of the body; its velocity."""
        if body == GROUND:
            return np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3)
        own = q[7 * body : 7 * body + 7]
        return own[:3], rotation(own[3:]), v[6 * body + 3 : 6 * body + 6], v[6 * body : 6 * body + 3]

    def point(self, q: Array, body: int, at: Vector) -> Array:
        p, R, _, _ = self._body(q, np.zeros(len(self.masses)), body)
        return p + R @ np.array(at)

    def velocity(self, q: Array, v: Array, body: int, at: Vector) -> Array:
        _, R, w, speed = self._body(q, v, body)
        return speed + R @ _cross(w, at)

    def openings(self, t: float, q: Array) -> Array:
        still = np.zeros(len(self.masses))
        missed: list[float] = []
        for joint in self.joints:
            if isinstance(joint, Ball):
                way = self.point(q, joint.first, joint.at) - self.point(q, joint.second, joint.on)
                missed += list(np.array(joint.along) @ way)
            else:
                one = self._body(q, still, joint.first)[1] @ np.array(joint.axis)
                two = self._body(q, still, joint.second)[1] @ np.array(joint.other)
                missed.append(float(one @ two))
        return np.array(missed)

    def rows(self, t: float, q: Array, v: Array) -> tuple[Array, Array, Array]:
        rows = {Ball: self._ball, Square: self._square}
        parts = [rows[type(joint)](q, v, joint) for joint in self.joints]
        G = np.vstack([part[0] for part in parts])
        return G, np.zeros(len(G)), np.concatenate([part[1] for part in parts])

    def _ball(self, q: Array, v: Array, joint: Ball) -> tuple[Array, Array]:
        block, drift = np.zeros((3, len(self.masses))), np.zeros(3)
        for sign, body, at in ((1, joint.first, joint.at), (-1, joint.second, joint.on)):
            if body == GROUND:
                continue
            _, R, w, _ = self._body(q, v, body)
            block[:, 6 * body : 6 * body + 3] += sign * np.eye(3)
            block[:, 6 * body + 3 : 6 * body + 6] -= sign * R @ _skew(np.array(at))
            drift -= sign * R @ _cross(w, _cross(w, at))
        along = np.array(joint.along)
        return along @ block, along @ drift

    def _square(self, q: Array, v: Array, joint: Square) -> tuple[Array, Array]:
        _, R, w, _ = self._body(q, v, joint.first)
        _, S, u, _ = self._body(q, v, joint.second)
        one, two = R @ np.array(joint.axis), S @ np.array(joint.other)
        turn_one, turn_two = R @ w, S @ u
        row = np.zeros((1, len(self.masses)))
        normal = _cross(one, two)
        if joint.first != GROUND:
            row[0, 6 * joint.first + 3 : 6 * joint.first + 6] += R.T @ normal
        if joint.second != GROUND:
            row[0, 6 * joint.second + 3 : 6 * joint.second + 6] -= S.T @ normal
        one_1, two_1 = _cross(turn_one, one), _cross(turn_two, two)
        bias = _cross(turn_one, one_1) @ two + 2 * one_1 @ two_1 + one @ _cross(turn_two, two_1)
        return row, np.array([-bias])

    def forces(self, t: float, q: Array, v: Array) -> Array:
        f = np.zeros(len(self.masses))
        for body, (mass, J) in enumerate(zip(self.mass, self.inertia, strict=True)):
            w = v[6 * body + 3 : 6 * body + 6]
            f[6 * body : 6 * body + 3] = mass * np.array(self.gravity)
            f[6 * body + 3 : 6 * body + 6] = -_cross(w, J * w)
        return f

    def energy(self, q: Array, v: Array) -> float:
        weight = sum(m * (q[7 * k : 7 * k + 3] @ np.array(self.gravity)) for k, m in enumerate(self.mass))
        return float(0.5 * self.masses @ v**2 - weight)

    def rates(self, q: Array, v: Array) -> Array:
        rate = np.zeros(len(q))
        for body in range(len(self.mass)):
            rate[7 * body : 7 * body + 3] = v[6 * body : 6 * body + 3]
            e, w = q[7 * body + 3 : 7 * body + 7], v[6 * body + 3 : 6 * body + 6]
            rate[7 * body + 3] = -0.5 * e[1:] @ w
            rate[7 * body + 4 : 7 * body + 7] = 0.5 * (e[0] * w + _cross(e[1:], w))
        return rate

    def moved(self, q: Array, way: Array) -> Array:
        q = q + self.rates(q, way)
        for body in range(len(self.mass)):
            q[7 * body + 3 : 7 * body + 7] /= np.linalg.norm(q[7 * body + 3 : 7 * body + 7])
        return q
