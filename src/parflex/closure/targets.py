"""Define targets of a pose: values of joints, and rows on frames.

Rows on a frame fix its place, the direction of its z axis, its rotation about that axis, or distances.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from parflex.closure.rows import Rows
from parflex.records import Record
from parflex.recursion.kinematics import Motion, Pose, place_jacobian
from parflex.spatial.batched import apply_rowwise, is_batched
from parflex.spatial.rotations import (
    cross,
    hat,
    quaternion_matrix,
    rotation_about,
    rotation_from_vector,
    vector_from_rotation,
)
from parflex.tree.tree import Branch, Place, Tree

Array = np.ndarray
TOGETHER = 1e-12  # m or rad: nearer points, or axes, have no direction from one to the other
WORDS = ("zx", "zy", "zz")


@dataclass(frozen=True, eq=False, repr=False)
class Target(Record):
    """Coordinates with specified values (`fixed` rates, positions in `q`), and conditions on frames."""

    values: dict[int, float] = field(default_factory=dict)  # position coordinate -> value
    fixed: frozenset[int] = frozenset()  # rates that do not move any more
    frames: tuple[PoseRows, ...] = ()  # conditions that are rows

    def applied(self, q: Array) -> Array:
        """Return positions with the specified coordinates set."""
        result = q.copy()
        for index, value in self.values.items():
            result[index] = value
        return result


@dataclass(frozen=True, eq=False, repr=False)
class PoseRows(Rows):
    """Rows that a pose specifies in addition to the loops, named by their frame or joint."""

    @abstractmethod
    def between(self, at: Pose, share: float) -> Self:
        """Return rows part of the way from the present position of the robot."""

    def words(self, planar: bool) -> list[str]:
        """Return a word for each condition for messages; some may be empty."""
        return [self.name]

    @property
    def key(self) -> tuple:
        """Quantities other than the pose on which the Jacobian of the rows depends."""
        return (self.name, type(self))

    @property
    def general_key(self) -> tuple:
        """Quantities other than the pose on which the rank of met rows depends."""
        return self.key

    def met(self, at: Pose) -> Self:
        """Return the rows with values that the robot meets now, whose rank is general."""
        return self


def small_rotation(rotation: Array) -> Array:
    """Return the rotation vector of a small rotation, over any scalar, exact to first order."""
    R = rotation
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2


def rotation_between(now: Array, goal: Array, share: float) -> Array:
    """Return the rotation part of the way between two, about a constant axis."""
    return rotation_from_vector(share * vector_from_rotation(goal @ now.T)) @ now


@dataclass(frozen=True, eq=False, repr=False)
class FrameTarget(PoseRows):
    """World coordinates of a place, with or without a rotation (in the plane: an angle)."""

    place_fields: ClassVar = ("place",)
    place: Place
    position: dict[int, float] = field(default_factory=dict)
    rotation: Array | None = None

    def words(self, planar: bool) -> list[str]:
        """Return coordinates of the frame."""
        turn = () if self.rotation is None else ("theta",) if planar else ("rx", "ry", "rz")
        return [f"{self.name}.{label}" for label in (*("xyz"[axis] for axis in self.position), *turn)]

    @property
    def key(self) -> tuple:
        """Quantities other than the pose on which the Jacobian depends."""
        return (self.name, tuple(self.position), self.rotation is not None)

    def scale(self, length: float) -> Array:
        """Return factors to metres: coordinates, then the rotation."""
        return np.array([1.0] * len(self.position) + [length] * (0 if self.rotation is None else 3))

    def residual(self, at: Pose, length: float) -> Array:
        """Return the distance from the target in metres, rotations by their rotation vector."""
        R, P = at.of(self.place)
        parts = [P[axis] - value for axis, value in self.position.items()]
        if self.rotation is not None:
            parts += list(length * vector_from_rotation(R @ self.rotation.T))
        return np.array(parts)

    def linear_residual(self, at: Pose) -> Array:
        """Return the distance from the target, with sines of angles."""
        R, P = at.of(self.place)
        parts = [P[axis] - value for axis, value in self.position.items()]
        return np.array(parts if self.rotation is None else [*parts, *small_rotation(R @ self.rotation.T)])

    def one_minus_cosine(self, at: Pose) -> Any:
        """Return 1 less the cosine of the angle that must vanish, because sines also vanish at half a turn."""
        return 0.0 if self.rotation is None else (3.0 - np.trace(at.of(self.place)[0] @ self.rotation.T)) / 2

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return rows in world axes."""
        return self._in_world(at, *place_jacobian(tree, at, links, self.place))

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return accelerations in world axes."""
        return self._in_world(at, *moving.of(self.place)[2:])

    def _in_world(self, at: Pose, linear: Array, angular: Array) -> Array:
        R, _ = at.of(self.place)
        parts = [(R @ linear)[list(self.position)]] if self.position else []
        return np.concatenate(parts if self.rotation is None else [*parts, R @ angular])

    def between(self, at: Pose, share: float) -> Self:
        """Return a target part of the way from the present place."""
        R, P = at.of(self.place)
        position = {axis: P[axis] + share * (value - P[axis]) for axis, value in self.position.items()}
        rotation = None if self.rotation is None else rotation_between(R, self.rotation, share)
        return replace(self, position=position, rotation=rotation)


@dataclass(frozen=True, eq=False, repr=False)
class _JointRows(PoseRows):
    """Rows on the coordinates of one joint."""

    number: int  # of its link
    position: int  # its first one
    rate: int  # its first one

    @property
    def ends(self) -> tuple[int, ...]:
        """Link of the joint."""
        return (self.number,)

    def links(self, tree: Tree) -> list[int]:
        """Return the link of the joint."""
        return [self.number]

    def on(self, small: Branch) -> Self:
        """Return the rows on a part of the tree."""
        number = small.number[self.number]
        link = small.tree.links[number]
        return replace(self, number=number, position=link.q.start, rate=link.v.start)


@dataclass(frozen=True, eq=False, repr=False)
class JointTarget(_JointRows):
    """Value of a coordinate: the row of a joint that moves along a path."""

    value: float
    turns: bool

    def scale(self, length: float) -> Array:
        """Return the length for an angle, else 1."""
        return np.full(1, length if self.turns else 1.0)

    def linear_residual(self, at: Pose) -> Array:
        """Return the excess of the coordinate, in its own unit."""
        return np.asarray(at.q)[[self.position]] - self.value

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return the row of its own rate."""
        return np.eye(tree.n)[[self.rate]]

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return its own acceleration."""
        return np.asarray(moving.qdd)[[self.rate]]

    def between(self, at: Pose, share: float) -> Self:
        """Return a value part of the way."""
        now = float(at.q[self.position])
        return replace(self, value=now + share * (self.value - now))


@dataclass(frozen=True, eq=False, repr=False)
class SphericalTarget(_JointRows):
    """Rotation of a spherical joint, in its placed axes."""

    rotation: Array

    def words(self, planar: bool) -> list[str]:
        """Return components of the rotation."""
        return [f"{self.name}.{label}" for label in ("rx", "ry", "rz")]

    def scale(self, length: float) -> Array:
        """Return the length for each angle."""
        return np.full(3, length)

    def _current_rotation(self, at: Pose) -> Array:
        return quaternion_matrix(np.asarray(at.q)[self.position : self.position + 4])

    def residual(self, at: Pose, length: float) -> Array:
        """Return the remaining rotation in metres."""
        return length * vector_from_rotation(self._current_rotation(at) @ self.rotation.T)

    def linear_residual(self, at: Pose) -> Array:
        """Return the remaining rotation, with sines of angles."""
        return small_rotation(self._current_rotation(at) @ self.rotation.T)

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return its rates along the placed axes."""
        return self._current_rotation(at) @ np.eye(tree.n)[self.rate : self.rate + 3]

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return its accelerations along the placed axes."""
        return self._current_rotation(at) @ np.asarray(moving.qdd)[self.rate : self.rate + 3]

    def between(self, at: Pose, share: float) -> Self:
        """Return a rotation part of the way."""
        return replace(self, rotation=rotation_between(self._current_rotation(at), self.rotation, share))


# -- rotations of a frame ------------------------------------------------------------------------------


def normal_pair(direction: Array) -> Array:
    """Return two orthonormal rows normal to a direction, unique for each direction."""
    first = cross(direction, np.eye(3)[int(np.argmin(np.abs(direction)))])
    first = first / np.linalg.norm(first)
    return np.array([first, cross(direction, first)])


def shortest_arc(z: Array, direction: Array) -> Array:
    """Return the shortest rotation vector between unit vectors, also over batched numbers."""
    if is_batched(z) or is_batched(direction):
        return apply_rowwise(_shortest_arcs, z, direction)
    normal = cross(z, direction)
    sine, cosine = float(np.linalg.norm(normal)), float(z @ direction)
    if sine < TOGETHER:
        return np.zeros(3) if cosine > 0 else np.pi * normal_pair(z)[0]
    return np.arctan2(sine, cosine) / sine * normal


def _shortest_arcs(z: Array, direction: Array) -> Array:
    """Return shortest rotation vectors for rows of vectors."""
    normal = np.cross(z, direction)
    sine, cosine = np.linalg.norm(normal, axis=1), np.einsum("bi,bi->b", z, direction)
    arcs = (np.arctan2(sine, cosine) / np.maximum(sine, TOGETHER))[:, None] * normal
    for k in np.flatnonzero((sine < TOGETHER) & (cosine < 0)):
        arcs[k] = np.pi * normal_pair(z[k])[0]
    return arcs


def shortest_rotation(z: Array, direction: Array) -> Array:
    """Return the rotation matrix between two unit vectors without rotation about them."""
    return rotation_from_vector(shortest_arc(np.asarray(z, dtype=float), direction))


def shortest_rotation_rate(z: Array, rows: tuple[Array, Array, Array]) -> tuple[float, float]:
    """Return angular velocity about a direction, and its rate, of the shortest rotation to it.

    `rows` are the direction and its two derivatives.
    """
    d, d1, d2 = rows
    denominator, change = 1.0 + z @ d, z @ cross(d1, d)
    return float(change / denominator), float(z @ cross(d2, d) / denominator - change * (z @ d1) / denominator**2)


@dataclass(frozen=True, eq=False, repr=False)
class FrameRotationRows(PoseRows):
    """Rows on the rotation of one frame."""

    place_fields: ClassVar = ("place",)
    count: ClassVar = 1
    place: Place

    def scale(self, length: float) -> Array:
        """Return the length for each angle."""
        return np.full(self.count, length)

    def turning(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return the angular velocity of the place per unit of all rates, world axes."""
        return at.of(self.place)[0] @ place_jacobian(tree, at, links, self.place)[1]

    def axis(self, at: Pose) -> Array:
        """Return the z axis of the place in the world."""
        return np.asarray(at.of(self.place)[0])[:, 2]

    def axis_second_derivative(self, at: Pose, moving: Motion) -> Array:
        """Return the second derivative of the z axis in a motion."""
        R, _ = at.of(self.place)
        _, w, _, al = moving.of(self.place)
        z, w, al = R[:, 2], R @ w, R @ al
        return cross(al, z) + cross(w, cross(w, z))


@dataclass(frozen=True, eq=False, repr=False)
class _DirectedRows(FrameRotationRows):
    """Rows on the rotation of a frame whose z axis has a specified direction."""

    direction: Array

    def met(self, at: Pose) -> Self:
        """Return the rows along the present axis."""
        return replace(self, direction=self.axis(at))

    @property
    def key(self) -> tuple:
        """Quantities other than the pose on which the Jacobian depends."""
        return (*super().key, self.direction.tobytes())

    @property
    def general_key(self) -> tuple:
        """None, for any direction."""
        return super().key


@dataclass(frozen=True, eq=False, repr=False)
class AxisTarget(_DirectedRows):
    """Direction of the z axis of a frame: two rows, the components of the angle to it."""

    count: ClassVar = 2

    def words(self, planar: bool) -> list[str]:
        """Return two conditions in one word."""
        return [f"{self.name}.zx, zy, zz", ""]

    @property
    def _turns(self) -> Array:
        """The two directions about which rotations change the components of the axis, as rows."""
        first, second = normal_pair(self.direction)
        return np.array([-second, first])

    def residual(self, at: Pose, length: float) -> Array:
        """Return the angle to the direction times the unit vector to it, in metres; nonzero if backwards."""
        return length * self._turns @ shortest_arc(self.axis(at), self.direction)

    def linear_residual(self, at: Pose) -> Array:
        """Return components of a small angle."""
        return normal_pair(self.direction) @ self.axis(at)

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return rows of the components of a small angle; at a large angle only its own slope is exact."""
        return -self._turns @ self.turning(tree, at, links)

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return the second derivative of the components."""
        return normal_pair(self.direction) @ self.axis_second_derivative(at, moving)

    def between(self, at: Pose, share: float) -> Self:
        """Return a direction part of the way from the present axis, along the shorter arc."""
        z = self.axis(at)
        return replace(self, direction=rotation_from_vector(share * shortest_arc(z, self.direction)) @ z)


@dataclass(frozen=True, eq=False, repr=False)
class AxisRotationTarget(_DirectedRows):
    """Rotation about a specified direction, that of the shortest rotation from a pose.

    The row of `direction` is zero for the `rotation`, whose z axis is the direction.
    """

    rotation: Array

    def words(self, planar: bool) -> list[str]:
        """Return the rotation of the frame."""
        return [f"turn of {self.name}"]

    def residual(self, at: Pose, length: float) -> Array:
        """Return the rotation about the direction, times the length."""
        turn = vector_from_rotation(np.asarray(at.of(self.place)[0]) @ self.rotation.T)
        return np.array([length * (self.direction @ turn)])

    def linear_residual(self, at: Pose) -> Array:
        """Return a small rotation about the direction."""
        return np.array([self.direction @ small_rotation(at.of(self.place)[0] @ self.rotation.T)])

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return the angular velocity about the direction."""
        return (self.direction @ self.turning(tree, at, links))[None, :]

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return the angular acceleration about the direction."""
        R, _ = at.of(self.place)
        return np.array([self.direction @ (R @ moving.of(self.place)[3])])

    def between(self, at: Pose, share: float) -> Self:
        """Return a rotation part of the way, and its z axis."""
        rotation = rotation_between(np.asarray(at.of(self.place)[0]), self.rotation, share)
        return replace(self, rotation=rotation, direction=rotation[:, 2])


@dataclass(frozen=True, eq=False, repr=False)
class AxisComponentTarget(FrameRotationRows):
    """One component of the z axis of a frame: its angle to an axis of the world."""

    batched: ClassVar = False
    number: int  # of the world axis
    cosine: float

    def words(self, planar: bool) -> list[str]:
        """Return the component."""
        return [f"{self.name}.{WORDS[self.number]}"]

    @property
    def key(self) -> tuple:
        """Quantities other than the pose on which the Jacobian depends."""
        return (*super().key, self.number)

    def residual(self, at: Pose, length: float) -> Array:
        """Return the excess of the angle, times the length."""
        z = self.axis(at)
        angle = np.arctan2(np.linalg.norm(np.delete(z, self.number)), z[self.number])
        return np.array([length * (angle - np.arccos(self.cosine))])

    def linear_residual(self, at: Pose) -> Array:
        """Return the excess of the angle; an axis along that of the world leans to any side."""
        sine = np.sqrt(1 - self.cosine**2)
        if sine > 1e-9:
            return np.array([(self.cosine - self.axis(at)[self.number]) / sine])
        return normal_pair(np.eye(3)[self.number])[:1] @ self.axis(at)

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return the row of the angle, which grows as the component falls; a parallel axis leans to any side."""
        z, world = self.axis(at), np.eye(3)[self.number]
        sine = float(np.linalg.norm(np.delete(z, self.number)))
        slope = -world / sine if sine > 1e-9 else normal_pair(world)[0]
        return -(slope @ hat(z) @ self.turning(tree, at, links))[None, :]

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return the second derivative of the angle."""
        z = self.axis(at)
        R, _ = at.of(self.place)
        _, w, _, _ = moving.of(self.place)
        sine = max(float(np.linalg.norm(np.delete(z, self.number))), 1e-9)
        rate = -cross(R @ w, z)[self.number] / sine
        return np.array([-(self.axis_second_derivative(at, moving)[self.number] + z[self.number] * rate**2) / sine])

    def between(self, at: Pose, share: float) -> Self:
        """Return an angle part of the way."""
        now, then = np.arccos(np.clip(self.axis(at)[self.number], -1, 1)), np.arccos(self.cosine)
        return replace(self, cosine=float(np.cos(now + share * (then - now))))


@dataclass(frozen=True, eq=False, repr=False)
class DistanceTarget(PoseRows):
    """Distance of two places."""

    batched: ClassVar = False
    place_fields: ClassVar = ("first", "second")
    first: Place
    second: Place
    distance: float

    def scale(self, length: float) -> Array:
        """Return 1, because the row is in metres."""
        return np.ones(1)

    def linear_residual(self, at: Pose) -> Array:
        """Return the excess of the distance."""
        apart = at.of(self.second)[1] - at.of(self.first)[1]
        return np.array([np.sqrt(apart @ apart) - self.distance])

    def _line(self, at: Pose) -> tuple[float, Array]:
        """Return length and direction; any direction for coincident places."""
        apart = np.asarray(at.of(self.second)[1] - at.of(self.first)[1], dtype=float)
        length = float(np.linalg.norm(apart))
        return length, apart / length if length > TOGETHER else np.array([1.0, 0.0, 0.0])

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return the relative velocity of the places along the line between them."""
        _, along = self._line(at)
        J1, J2 = (along @ at.of(end)[0] @ place_jacobian(tree, at, links, end)[0] for end in self.places)
        return (J2 - J1)[None, :]

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return the second derivative of the distance."""
        length, along = self._line(at)
        v1, v2 = (at.of(end)[0] @ moving.of(end)[0] for end in self.places)
        a1, a2 = (at.of(end)[0] @ moving.of(end)[2] for end in self.places)
        v, rate = v2 - v1, along @ (v2 - v1)
        return np.array([along @ (a2 - a1) + (v @ v - rate**2) / max(length, TOGETHER)])

    def between(self, at: Pose, share: float) -> Self:
        """Return a distance part of the way."""
        now = self._line(at)[0]
        return replace(self, distance=now + share * (self.distance - now))


def with_fixed_rows(tree: Tree, target: Target) -> Target:
    """Return the target with specified values as rows, which have rates along a path."""
    rows: list[PoseRows] = []
    for j in sorted({tree.link_of_rate[k] for k in target.fixed}):
        link = tree.links[j]
        if not target.fixed.intersection(range(link.v.start, link.v.stop)):
            continue  # elastic coordinates alone: no row, they stay as they are
        values = [target.values.get(index) for index in range(link.q.start, link.q.stop)]
        if link.joint.moves_freely:  # coordinates are its place in the world
            axes, rotation = 2 if tree.planar else 3, None
            if link.v.start + axes in target.fixed:
                turn = np.array(values[axes:], dtype=float)
                rotation = rotation_about(2, float(turn[0])) if tree.planar else quaternion_matrix(turn)
            position = {axis: float(value) for axis, value in enumerate(values[:axes]) if value is not None}
            rows.append(FrameTarget(link.name, Place(j, np.eye(3), np.zeros(3)), position, rotation))
        elif link.joint.one_axis:
            value, is_angle = target.values[link.q.start], link.joint.unit == "rad"
            rows.append(JointTarget(link.name, j, link.q.start, link.v.start, value, is_angle))
        else:  # a ball, whose turn is given as a whole
            turn = quaternion_matrix(np.array(values))
            rows.append(SphericalTarget(link.name, j, link.q.start, link.v.start, turn))
    return Target(frames=(*rows, *target.frames))
