"""Joint kinds: how a frame moves from its placed position, and along which directions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.spatial import cross, quaternion_matrix, quaternion_product, rotation_about, vector_quaternion

Array = np.ndarray
E3 = np.eye(3)


@dataclass(frozen=True)
class Joint:
    """`S_v` and `S_w` (3 x n): velocity and angular velocity per unit rate, in the axes of the moved frame.

    They are constant for every kind, so one recursion serves all: v = X (...) + S_v qd, w = X (...) + S_w qd.
    """

    kind: str
    position_labels: tuple[str, ...]
    rate_labels: tuple[str, ...]
    S_v: Array = field(repr=False)
    S_w: Array = field(repr=False)
    axis: int = 2

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Rotation and displacement, in the placed axes, that the coordinates `q` give the frame."""
        match self.kind:
            case "fixed":
                return np.eye(3), np.zeros(3)
            case "revolute":
                return rotation_about(self.axis, q[0]), np.zeros(3)
            case "prismatic":
                return np.eye(3), E3[self.axis] * q[0]
            case "spherical":
                return quaternion_matrix(q), np.zeros(3)
            case "free":
                return quaternion_matrix(q[3:]), np.array(q[:3])
            case _:  # planar
                return rotation_about(2, q[2]), np.array([q[0], q[1], q[0] * 0])

    def moved(self, q: Array, step: Array) -> Array:
        """Coordinates after an increment along the rates (an angle turned in the moved axes, a way gone in them)."""
        match self.kind:
            case "fixed" | "revolute" | "prismatic":
                return q + step
            case "spherical":
                return _turned(q, step)
            case "free":
                return np.concatenate([q[:3] + quaternion_matrix(q[3:]) @ step[:3], _turned(q[3:], step[3:])])
            case _:  # planar
                way = rotation_about(2, q[2])[:2, :2] @ step[:2]
                return np.array([q[0] + way[0], q[1] + way[1], q[2] + step[2]])

    def position_rates(self, q: Array, v: Array) -> Array:
        """Time derivatives of the coordinates for the rates `v`, theory (2)."""
        match self.kind:
            case "fixed" | "revolute" | "prismatic":
                return v
            case "spherical":
                return _quaternion_rate(q, v)
            case "free":
                return np.concatenate([quaternion_matrix(q[3:]) @ v[:3], _quaternion_rate(q[3:], v[3:])])
            case _:  # planar
                return np.array([*(rotation_about(2, q[2])[:2, :2] @ v[:2]), v[2]])

    def rates(self, q: Array, position_rates: Array) -> Array:
        """The rates for time derivatives of the coordinates: `position_rates` the other way."""
        match self.kind:
            case "fixed" | "revolute" | "prismatic":
                return position_rates
            case "spherical":
                return _turning_rate(q, position_rates)
            case "free":
                way = quaternion_matrix(q[3:]).T @ position_rates[:3]
                return np.concatenate([way, _turning_rate(q[3:], position_rates[3:])])
            case _:  # planar
                return np.array([*(rotation_about(2, q[2])[:2, :2].T @ position_rates[:2]), position_rates[2]])

    def rate_changes(self, v: Array, a: Array) -> Array:
        """Time derivatives of the rates `v` for the resolved accelerations `a`: of a frame that is free, a - w x v."""
        return a - self.S_v.T @ cross(self.S_w @ v, self.S_v @ v)

    def neutral(self) -> Array:
        """Coordinates of the placed frame itself."""
        return np.array([1.0 if label == "qw" else 0.0 for label in self.position_labels])


def _quaternion_rate(quaternion: Array, w: Array) -> Array:
    """Q (0, w) / 2 for an angular velocity in the moved axes."""
    return quaternion_product(quaternion, np.array([0.0, *(w / 2)], dtype=np.asarray(w).dtype))


def _turning_rate(quaternion: Array, rate: Array) -> Array:
    """The angular velocity in the moved axes, twice the vector of conj(Q) Q_dot."""
    back = np.array([quaternion[0], *(-quaternion[1:])], dtype=np.asarray(quaternion).dtype)
    return 2 * quaternion_product(back, rate)[1:]


def _turned(quaternion: Array, step: Array) -> Array:
    if np.asarray(step).dtype == object:  # symbols: a small turn to first order; Newton steps need no more
        product = quaternion_product(quaternion, np.array([1.0, *(step / 2)], dtype=object))
        return product / np.sqrt(product @ product)
    product = quaternion_product(quaternion, vector_quaternion(step))
    return product / np.linalg.norm(product)


QUATERNION = ("qw", "qx", "qy", "qz")
TURN_RATES = ("wx", "wy", "wz")


def fixed() -> Joint:
    """No motion: for elastic bodies that are clamped, and for nodes, which move with the body they are on."""
    return Joint("fixed", (), (), np.zeros((3, 0)), np.zeros((3, 0)))


def revolute(axis: int = 2) -> Joint:
    """Turn about one of the frame's own axes."""
    return Joint("revolute", ("",), ("",), np.zeros((3, 1)), E3[:, [axis]], axis)


def prismatic(axis: int = 2) -> Joint:
    """Slide along one of the frame's own axes."""
    return Joint("prismatic", ("",), ("",), E3[:, [axis]], np.zeros((3, 1)), axis)


def spherical() -> Joint:
    """Turn freely; the rates are the angular velocity in the moved axes."""
    return Joint("spherical", QUATERNION, TURN_RATES, np.zeros((3, 3)), E3)


def free() -> Joint:
    """Move freely; the rates are the twist in the moved axes."""
    S = np.hstack([E3, np.zeros((3, 3))])
    return Joint("free", ("x", "y", "z", *QUATERNION), ("vx", "vy", "vz", *TURN_RATES), S, S[:, [3, 4, 5, 0, 1, 2]])


def planar() -> Joint:
    """Move freely in the plane; the rates are the twist in the moved axes."""
    S_v = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 0]])
    S_w = np.array([[0.0, 0, 0], [0, 0, 0], [0, 0, 1.0]])
    return Joint("planar", ("x", "y", "theta"), ("vx", "vy", "wz"), S_v, S_w)
