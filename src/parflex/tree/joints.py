"""Joint types: motion of a frame along and about its axes.

A type is one class; other packages use its methods and attributes only. Its word in a robot file is a key of `JOINTS`
and a value of `robotfile.schema.JointKind`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from parflex.errors import RobotFileError
from parflex.records import Record
from parflex.spatial.batched import apply_rowwise, is_batched, is_varied
from parflex.spatial.rotations import (
    cross,
    quaternion_matrix,
    quaternion_product,
    rotation_about,
    vector_length,
    vector_quaternion,
)

Array = np.ndarray
E3 = np.eye(3)
QUATERNION = ("qw", "qx", "qy", "qz")
TURN_RATES = ("wx", "wy", "wz")


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Record, ABC):
    """`S_v` and `S_w` (3 x n): velocity and angular velocity per unit rate, in the axes of the moved frame.

    They are constant for every kind, so one recursion serves all: v = X (...) + S_v qd, w = X (...) + S_w qd.
    """

    kind: str
    position_labels: tuple[str, ...]
    rate_labels: tuple[str, ...]
    S_v: Array = field(repr=False)
    S_w: Array = field(repr=False)
    axis: int = 2
    pitch: float = 0.0  # of a screw, in m per rad: its coordinate is an angle of which no turn may be dropped

    one_axis: ClassVar[bool] = False  # one coordinate, its derivative the rate: may have a motor, a spring, friction
    periodic: ClassVar[bool] = False  # a whole turn more is the same pose
    moves_freely: ClassVar[bool] = False  # the frame of a body that no joint holds, in space or in the plane
    plain: ClassVar[bool] = False  # its rates are the derivatives of its coordinates
    quaternion: ClassVar[slice | None] = None  # where it stands among the coordinates

    @property
    def rate_units(self) -> tuple[str, ...]:
        """Unit of each rate, times seconds: "rad" of what turns the frame, "m" of what only moves it along."""
        return tuple("rad" if turn.any() else "m" for turn in np.asarray(self.S_w, dtype=float).T)

    @property
    def unit(self) -> str:
        """Unit of the coordinate of a joint with one axis."""
        return self.rate_units[0] if self.one_axis else ""

    @abstractmethod
    def transform(self, q: Any) -> tuple[Array, Array]:
        """Rotation and displacement, in the placed axes, that the coordinates `q` give the frame."""

    @abstractmethod
    def moved(self, q: Array, step: Array) -> Array:
        """Coordinates after an increment along the rates (an angle turned in the moved axes, a way gone in them)."""

    @abstractmethod
    def position_rates(self, q: Array, v: Array) -> Array:
        """Time derivatives of the coordinates for the rates `v`, theory (2)."""

    @abstractmethod
    def rates(self, q: Array, position_rates: Array) -> Array:
        """The rates for time derivatives of the coordinates: `position_rates` the other way."""

    def rate_changes(self, v: Array, a: Array) -> Array:
        """Time derivatives of the rates `v` for the resolved accelerations `a`: of a frame that is free, a - w x v."""
        return a - self.S_v.T @ cross(self.S_w @ v, self.S_v @ v)

    def neutral(self) -> Array:
        """Coordinates of the placed frame itself."""
        return np.array([1.0 if label == "qw" else 0.0 for label in self.position_labels])


class PlainJoint(Joint):
    """A joint whose rates are the derivatives of its coordinates."""

    plain = True

    def moved(self, q: Array, step: Array) -> Array:
        """A sum."""
        return q + step

    def position_rates(self, q: Array, v: Array) -> Array:
        """The rates themselves."""
        return v

    def rates(self, q: Array, position_rates: Array) -> Array:
        """The derivatives themselves."""
        return position_rates


class FixedJoint(PlainJoint):
    """No motion."""

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Nothing."""
        return E3.copy(), np.zeros(3)


class RevoluteJoint(PlainJoint):
    """A turn about one of the frame's own axes."""

    one_axis = True
    periodic = True

    def transform(self, q: Any) -> tuple[Array, Array]:
        """The turn."""
        return rotation_about(self.axis, q[0]), np.zeros(3)


class PrismaticJoint(PlainJoint):
    """A slide along one of the frame's own axes."""

    one_axis = True

    def transform(self, q: Any) -> tuple[Array, Array]:
        """The way along the axis."""
        return E3.copy(), E3[self.axis] * q[0]


class HelicalJoint(PlainJoint):
    """A turn about one of the frame's own axes that moves it along: a screw. A whole turn more is another pose."""

    one_axis = True

    def transform(self, q: Any) -> tuple[Array, Array]:
        """The turn, and the way that goes with it."""
        return rotation_about(self.axis, q[0]), E3[self.axis] * (self.pitch * q[0])


class SphericalJoint(Joint):
    """A turn about any axis; the coordinates are a quaternion."""

    quaternion = slice(0, 4)

    def transform(self, q: Any) -> tuple[Array, Array]:
        """The turn."""
        return quaternion_matrix(q), np.zeros(3)

    def moved(self, q: Array, step: Array) -> Array:
        """A turn in the moved axes behind the one before."""
        return _turned(q, step)

    def position_rates(self, q: Array, v: Array) -> Array:
        """Of the quaternion."""
        return _quaternion_rate(q, v)

    def rates(self, q: Array, position_rates: Array) -> Array:
        """The angular velocity in the moved axes."""
        return _turning_rate(q, position_rates)


class FreeJoint(Joint):
    """Any motion; the coordinates are a position in the placed axes and a quaternion."""

    moves_freely = True
    quaternion = slice(3, 7)

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Turn and position."""
        return quaternion_matrix(q[3:]), np.array(q[:3])

    def moved(self, q: Array, step: Array) -> Array:
        """A way and a turn in the moved axes."""
        return np.concatenate([q[:3] + quaternion_matrix(q[3:]) @ step[:3], _turned(q[3:], step[3:])])

    def position_rates(self, q: Array, v: Array) -> Array:
        """Velocity in the placed axes, rates of the quaternion."""
        return np.concatenate([quaternion_matrix(q[3:]) @ v[:3], _quaternion_rate(q[3:], v[3:])])

    def rates(self, q: Array, position_rates: Array) -> Array:
        """The twist in the moved axes."""
        velocity = quaternion_matrix(q[3:]).T @ position_rates[:3]
        return np.concatenate([velocity, _turning_rate(q[3:], position_rates[3:])])


class PlanarJoint(Joint):
    """Any motion in the plane; the coordinates are a position in the placed axes and an angle."""

    moves_freely = True

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Turn and position."""
        return rotation_about(2, q[2]), np.array([q[0], q[1], q[0] * 0])

    def moved(self, q: Array, step: Array) -> Array:
        """A way and a turn in the moved axes."""
        translation = rotation_about(2, q[2])[:2, :2] @ step[:2]
        return np.array([q[0] + translation[0], q[1] + translation[1], q[2] + step[2]])

    def position_rates(self, q: Array, v: Array) -> Array:
        """Velocity in the placed axes, and the rate of the angle."""
        return np.array([*(rotation_about(2, q[2])[:2, :2] @ v[:2]), v[2]])

    def rates(self, q: Array, position_rates: Array) -> Array:
        """The twist in the moved axes."""
        return np.array([*(rotation_about(2, q[2])[:2, :2].T @ position_rates[:2]), position_rates[2]])


def _quaternion_rate(quaternion: Array, w: Array) -> Array:
    """Q (0, w) / 2 for an angular velocity in the moved axes."""
    return quaternion_product(quaternion, np.array([0.0, *(w / 2)], dtype=np.asarray(w).dtype))


def _turning_rate(quaternion: Array, rate: Array) -> Array:
    """The angular velocity in the moved axes, twice the vector of conj(Q) Q_dot."""
    conjugate = np.array([quaternion[0], *(-quaternion[1:])], dtype=np.asarray(quaternion).dtype)
    return 2 * quaternion_product(conjugate, rate)[1:]


def _turned(quaternion: Array, step: Array) -> Array:
    if np.asarray(step).dtype != object:
        product = quaternion_product(quaternion, vector_quaternion(step))
        return product / np.linalg.norm(product)
    # symbols: a small turn to first order; Newton steps need no more
    turn = apply_rowwise(vector_quaternion, step) if is_batched(step) else np.array([1.0, *(step / 2)], dtype=object)
    product = quaternion_product(quaternion, turn)
    return product / np.sqrt(product @ product)


def fixed() -> Joint:
    """No motion: for elastic bodies that are clamped, and for nodes, which move with the body they are on."""
    return FixedJoint("fixed", (), (), np.zeros((3, 0)), np.zeros((3, 0)))


def revolute(axis: int = 2) -> Joint:
    """Turn about one of the frame's own axes."""
    return RevoluteJoint("revolute", ("",), ("",), np.zeros((3, 1)), E3[:, [axis]], axis)


def prismatic(axis: int = 2) -> Joint:
    """Slide along one of the frame's own axes."""
    return PrismaticJoint("prismatic", ("",), ("",), E3[:, [axis]], np.zeros((3, 1)), axis)


def helical(pitch: Any, axis: int = 2) -> Joint:
    """Turn about one of the frame's own axes, and slide along it by `pitch` per radian."""
    return HelicalJoint("helical", ("",), ("",), E3[:, [axis]] * pitch, E3[:, [axis]], axis, pitch)


def spherical() -> Joint:
    """Turn freely; the rates are the angular velocity in the moved axes."""
    return SphericalJoint("spherical", QUATERNION, TURN_RATES, np.zeros((3, 3)), E3)


def free() -> Joint:
    """Move freely; the rates are the twist in the moved axes."""
    S = np.hstack([E3, np.zeros((3, 3))])
    labels = ("x", "y", "z", *QUATERNION), ("vx", "vy", "vz", *TURN_RATES)
    return FreeJoint("free", *labels, S, S[:, [3, 4, 5, 0, 1, 2]])


def planar() -> Joint:
    """Move freely in the plane; the rates are the twist in the moved axes."""
    S_v = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 0]])
    S_w = np.array([[0.0, 0, 0], [0, 0, 0], [0, 0, 1.0]])
    return PlanarJoint("planar", ("x", "y", "theta"), ("vx", "vy", "wz"), S_v, S_w)


AROUND_AXIS: dict[str, Callable[[int], Joint]] = {"revolute": revolute, "prismatic": prismatic}  # of any own axis
JOINTS: dict[str, Callable[[], Joint]] = {  # words of a robot file; those with two axes are two of these in series
    # "helical" has a number of its own: `helical`
    "fixed": fixed,
    "revolute": revolute,
    "prismatic": prismatic,
    "spherical": spherical,
    "free": free,
}


def start_values(joint: Joint, values: tuple[float, ...], key: str) -> Array:
    """Start coordinates: as many as the joint has, or a rotation vector in place of the quaternion."""
    start = joint.neutral()
    if not values:
        return start
    if any(map(is_varied, values)):
        start = start.astype(object)
    if joint.quaternion:
        places = joint.quaternion.start
        start[:places] = values[:places]
        turn = values[places:]
        if len(turn) == 3:
            start[places:] = vector_quaternion(turn)
        elif len(turn) == 4:
            start[places:] = np.array(turn) / vector_length(turn)
        elif turn:
            raise RobotFileError(f"{len(values)} start values", key=key, hint="give x, y, z, rx, ry, rz")
        return start
    if len(values) != len(start):
        raise RobotFileError(f"{len(values)} start values for {len(start)}", key=key, hint="give one for each")
    return np.array(values)
