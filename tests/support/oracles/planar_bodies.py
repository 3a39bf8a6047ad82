"""Planar mechanisms of rigid bodies: x, y, angle; points from the centre of mass in body axes; -1 is the ground."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
Point = tuple[float, float]
GROUND = -1


@dataclass(frozen=True)
class Pin:
    """Two points coincide."""

    first: int
    at: Point
    second: int
    on: Point


@dataclass(frozen=True)
class Line:
    """A point of a body lies on a line of the ground through `on` with the given normal."""

    body: int
    at: Point
    on: Point
    normal: Point


@dataclass(frozen=True)
class Upright:
    """A body does not turn."""

    body: int
    angle: float = 0.0


@dataclass(frozen=True)
class Led:
    """The angle of a body against another follows a function of time: value, first and second derivative."""

    body: int
    against: int
    function: Callable[[float], tuple[float, float, float]]


@dataclass(frozen=True)
class Spring:
    """Between two points: stiffness and length at rest."""

    first: int
    at: Point
    second: int
    on: Point
    stiffness: float
    rest: float


@dataclass
class Linkage:
    """Bodies with mass and inertia about the centre, what joins them and what acts."""

    mass: Array
    inertia: Array
    joints: list = field(default_factory=list)
    springs: list[Spring] = field(default_factory=list)
    torques: dict[int, float] = field(default_factory=dict)  # on a body, from the ground
    pushes: dict[int, Point] = field(default_factory=dict)  # forces on a body, at its centre
    gravity: Point = (0.0, 0.0)

    @property
    def masses(self) -> Array:
        return np.stack([self.mass, self.mass, self.inertia], axis=1).ravel()

    def _point(self, q: Array, v: Array, body: int, at: Point) -> tuple[Array, Array, Array, Array]:
        """Place, velocity, acceleration without that of the coordinates, and arm of a point."""
        if body == GROUND:
            return np.array(at), np.zeros(2), np.zeros(2), np.zeros(2)
        x, y, angle = q[3 * body : 3 * body + 3]
        c, s = np.cos(angle), np.sin(angle)
        arm = np.array([c * at[0] - s * at[1], s * at[0] + c * at[1]])
        side = np.array([-arm[1], arm[0]])
        rate = v[3 * body + 2]
        return np.array([x, y]) + arm, v[3 * body : 3 * body + 2] + rate * side, -(rate**2) * arm, side

    def point(self, q: Array, body: int, at: Point) -> Array:
        return self._point(q, np.zeros(len(q)), body, at)[0]

    def openings(self, t: float, q: Array) -> Array:
        missed = []
        for joint in self.joints:
            if isinstance(joint, Pin):
                missed += list(self.point(q, joint.first, joint.at) - self.point(q, joint.second, joint.on))
            elif isinstance(joint, Line):
                missed.append((self.point(q, joint.body, joint.at) - joint.on) @ np.array(joint.normal))
            elif isinstance(joint, Upright):
                missed.append(q[3 * joint.body + 2] - joint.angle)
            else:
                other = 0.0 if joint.against == GROUND else q[3 * joint.against + 2]
                missed.append(q[3 * joint.body + 2] - other - joint.function(t)[0])
        return np.array(missed)

    def rows(self, t: float, q: Array, v: Array) -> tuple[Array, Array, Array]:
        G: list[Array] = []
        r: list[float] = []
        gamma: list[float] = []
        for joint in self.joints:
            if isinstance(joint, Pin):
                block = np.zeros((2, len(q)))
                drift = np.zeros(2)
                for sign, body, at in ((1, joint.first, joint.at), (-1, joint.second, joint.on)):
                    if body != GROUND:
                        _, _, bias, side = self._point(q, v, body, at)
                        block[:, 3 * body : 3 * body + 2] += sign * np.eye(2)
                        block[:, 3 * body + 2] += sign * side
                        drift -= sign * bias
                G += list(block)
                r += [0.0, 0.0]
                gamma += list(drift)
                continue
            row = np.zeros(len(q))
            value, push = 0.0, 0.0
            row[3 * joint.body + 2] = 1.0
            if isinstance(joint, Line):
                _, _, bias, side = self._point(q, v, joint.body, joint.at)
                row[3 * joint.body : 3 * joint.body + 2] = joint.normal
                row[3 * joint.body + 2] = side @ np.array(joint.normal)
                push = -float(bias @ np.array(joint.normal))
            elif isinstance(joint, Led):
                if joint.against != GROUND:
                    row[3 * joint.against + 2] -= 1.0
                _, value, push = joint.function(t)
            G.append(row)
            r.append(value)
            gamma.append(push)
        return np.array(G).reshape(-1, len(q)), np.array(r), np.array(gamma)

    def forces(self, t: float, q: Array, v: Array) -> Array:
        f = np.zeros(len(q))
        f[0::3] = self.mass * self.gravity[0]
        f[1::3] = self.mass * self.gravity[1]
        for body, torque in self.torques.items():
            f[3 * body + 2] += torque
        for body, push in self.pushes.items():
            f[3 * body : 3 * body + 2] += push
        for spring in self.springs:
            one, _, _, side = self._point(q, v, spring.first, spring.at)
            two, _, _, other = self._point(q, v, spring.second, spring.on)
            length = np.linalg.norm(two - one)
            pull = spring.stiffness * (length - spring.rest) * (two - one) / length
            for sign, body, arm in ((1, spring.first, side), (-1, spring.second, other)):
                if body != GROUND:
                    f[3 * body : 3 * body + 2] += sign * pull
                    f[3 * body + 2] += sign * float(arm @ pull)
        return f

    def energy(self, q: Array, v: Array) -> float:
        stored = 0.0
        for spring in self.springs:
            way = self.point(q, spring.first, spring.at) - self.point(q, spring.second, spring.on)
            stored += 0.5 * spring.stiffness * (np.linalg.norm(way) - spring.rest) ** 2
        weight = self.mass @ (q[0::3] * self.gravity[0] + q[1::3] * self.gravity[1])
        work = sum(torque * q[3 * body + 2] for body, torque in self.torques.items())
        work += sum(np.dot(push, q[3 * body : 3 * body + 2]) for body, push in self.pushes.items())
        return float(0.5 * self.masses @ v**2 + stored - weight - work)

    def rates(self, q: Array, v: Array) -> Array:
        return v

    def moved(self, q: Array, way: Array) -> Array:
        return q + way
