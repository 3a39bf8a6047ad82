"""Define joint types: motion of a frame along and about its axes.

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
        """Unit of each rate times seconds: "rad" for rotations, "m" for translations."""
        return tuple("rad" if turn.any() else "m" for turn in np.asarray(self.S_w, dtype=float).T)

    @property
    def unit(self) -> str:
        """Unit of the coordinate of a joint with one axis."""
        return self.rate_units[0] if self.one_axis else ""

    @abstractmethod
    def transform(self, q: Any) -> tuple[Array, Array]:
        """Return rotation and displacement in the placed axes at coordinates `q`."""

    @abstractmethod
    def moved(self, q: Array, step: Array) -> Array:
        """Return coordinates after an increment along the rates (rotation vector and translation in moved axes)."""

    @abstractmethod
    def position_rates(self, q: Array, v: Array) -> Array:
        """Return time derivatives of the coordinates for the rates `v`, theory (2)."""

    @abstractmethod
    def rates(self, q: Array, position_rates: Array) -> Array:
        """Return the rates for time derivatives of the coordinates."""

    def rate_changes(self, v: Array, a: Array) -> Array:
        """Return time derivatives of the rates `v` for resolved accelerations `a`: a - w x v for a free body."""
        return a - self.S_v.T @ cross(self.S_w @ v, self.S_v @ v)

    def neutral(self) -> Array:
        """Return the coordinates of the placed frame itself."""
        return np.array([1.0 if label == "qw" else 0.0 for label in self.position_labels])


class PlainJoint(Joint):
    """A joint whose rates are the derivatives of its coordinates."""

    plain = True

    def moved(self, q: Array, step: Array) -> Array:
        """Return the sum."""
        return q + step

    def position_rates(self, q: Array, v: Array) -> Array:
        """Return the rates themselves."""
        return v

    def rates(self, q: Array, position_rates: Array) -> Array:
        """Return the derivatives themselves."""
        return position_rates


class FixedJoint(PlainJoint):
    """No motion."""

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Return the identity."""
        return E3.copy(), np.zeros(3)


class RevoluteJoint(PlainJoint):
    """A rotation about one of the frame's own axes."""

    one_axis = True
    periodic = True

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Return the rotation."""
        return rotation_about(self.axis, q[0]), np.zeros(3)


class PrismaticJoint(PlainJoint):
    """A translation along one of the frame's own axes."""

    one_axis = True

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Return the translation along the axis."""
        return E3.copy(), E3[self.axis] * q[0]


class HelicalJoint(PlainJoint):
    """A screw about one of the frame's own axes; a whole turn is another pose."""

    one_axis = True

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Return the rotation and its translation."""
        return rotation_about(self.axis, q[0]), E3[self.axis] * (self.pitch * q[0])


class SphericalJoint(Joint):
    """A rotation about any axis; the coordinates are a quaternion."""

    quaternion = slice(0, 4)

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Return the rotation."""
        return quaternion_matrix(q), np.zeros(3)

    def moved(self, q: Array, step: Array) -> Array:
        """Return the quaternion after a rotation in the moved axes."""
        return _turned(q, step)

    def position_rates(self, q: Array, v: Array) -> Array:
        """Return the derivative of the quaternion."""
        return _quaternion_rate(q, v)

    def rates(self, q: Array, position_rates: Array) -> Array:
        """Return the angular velocity in the moved axes."""
        return _turning_rate(q, position_rates)


class FreeJoint(Joint):
    """Any motion; the coordinates are a position in the placed axes and a quaternion."""

    moves_freely = True
    quaternion = slice(3, 7)

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Return rotation and position."""
        return quaternion_matrix(q[3:]), np.array(q[:3])

    def moved(self, q: Array, step: Array) -> Array:
        """Return coordinates after a translation and rotation in the moved axes."""
        return np.concatenate([q[:3] + quaternion_matrix(q[3:]) @ step[:3], _turned(q[3:], step[3:])])

    def position_rates(self, q: Array, v: Array) -> Array:
        """Return velocity in the placed axes and quaternion derivative."""
        return np.concatenate([quaternion_matrix(q[3:]) @ v[:3], _quaternion_rate(q[3:], v[3:])])

    def rates(self, q: Array, position_rates: Array) -> Array:
        """Return the twist in the moved axes."""
        velocity = quaternion_matrix(q[3:]).T @ position_rates[:3]
        return np.concatenate([velocity, _turning_rate(q[3:], position_rates[3:])])


class PlanarJoint(Joint):
    """Any motion in the plane; the coordinates are a position in the placed axes and an angle."""

    moves_freely = True

    def transform(self, q: Any) -> tuple[Array, Array]:
        """Return rotation and position."""
        return rotation_about(2, q[2]), np.array([q[0], q[1], q[0] * 0])

    def moved(self, q: Array, step: Array) -> Array:
        """Return coordinates after a translation and rotation in the moved axes."""
        translation = rotation_about(2, q[2])[:2, :2] @ step[:2]
        return np.array([q[0] + translation[0], q[1] + translation[1], q[2] + step[2]])

    def position_rates(self, q: Array, v: Array) -> Array:
        """Return velocity in the placed axes and angular rate."""
        return np.array([*(rotation_about(2, q[2])[:2, :2] @ v[:2]), v[2]])

    def rates(self, q: Array, position_rates: Array) -> Array:
        """Return the twist in the moved axes."""
        return np.array([*(rotation_about(2, q[2])[:2, :2].T @ position_rates[:2]), position_rates[2]])


def _quaternion_rate(quaternion: Array, w: Array) -> Array:
    """Return Q (0, w) / 2 for an angular velocity in the moved axes."""
    return quaternion_product(quaternion, np.array([0.0, *(w / 2)], dtype=np.asarray(w).dtype))


def _turning_rate(quaternion: Array, rate: Array) -> Array:
    """Return the angular velocity in the moved axes, twice the vector part of conj(Q) Q_dot."""
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
    """Make a joint without motion, for clamped elastic bodies and for nodes."""
    return FixedJoint("fixed", (), (), np.zeros((3, 0)), np.zeros((3, 0)))


def revolute(axis: int = 2) -> Joint:
    """Make a rotation about one of the frame's own axes."""
    return RevoluteJoint("revolute", ("",), ("",), np.zeros((3, 1)), E3[:, [axis]], axis)


def prismatic(axis: int = 2) -> Joint:
    """Make a translation along one of the frame's own axes."""
    return PrismaticJoint("prismatic", ("",), ("",), E3[:, [axis]], np.zeros((3, 1)), axis)


def helical(pitch: Any, axis: int = 2) -> Joint:
    """Make a rotation about one of the frame's own axes with translation `pitch` per radian."""
    return HelicalJoint("helical", ("",), ("",), E3[:, [axis]] * pitch, E3[:, [axis]], axis, pitch)


def spherical() -> Joint:
    """Make a spherical joint, whose rates are the angular velocity in the moved axes."""
    return SphericalJoint("spherical", QUATERNION, TURN_RATES, np.zeros((3, 3)), E3)


def free() -> Joint:
    """Make a free joint, whose rates are the twist in the moved axes."""
    S = np.hstack([E3, np.zeros((3, 3))])
    labels = ("x", "y", "z", *QUATERNION), ("vx", "vy", "vz", *TURN_RATES)
    return FreeJoint("free", *labels, S, S[:, [3, 4, 5, 0, 1, 2]])


def planar() -> Joint:
    """Make a free joint in the plane, whose rates are the twist in the moved axes."""
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
    """Return start coordinates from as many values, or from a rotation vector instead of the quaternion."""
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
