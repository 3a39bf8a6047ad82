"""What a pose asks for: values of joints, and rows on frames: positions, rotations and other conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parflex.records import Record
from parflex.recursion.kinematics import Motion, Pose, place_jacobian
from parflex.spatial.rotations import quaternion_matrix, rotation_from_vector, vector_from_rotation
from parflex.tree.tree import Branch, Place, Tree

Array = np.ndarray


class PoseRows(Record, ABC):
    """Rows that a pose asks for, beside those of the loops; named by the frame that it asks of."""

    name: str
    size: int

    @property
    @abstractmethod
    def ends(self) -> tuple[int, ...]:
        """Links on which the rows lie."""

    @abstractmethod
    def links(self, tree: Tree) -> list[int]:
        """Links whose joints change the rows."""

    @abstractmethod
    def on(self, small: Branch) -> PoseRows:
        """The same rows on a part of the tree."""

    @abstractmethod
    def scale(self, length: float) -> Array:
        """Makes rows of the Jacobian those of the residual: metres, angles times the length."""

    @abstractmethod
    def residual(self, at: Pose, length: float) -> Array:
        """How far the rows are from zero, in metres."""

    @abstractmethod
    def linear_residual(self, at: Pose) -> Array:
        """How far rows that are nearly met are from zero, over any scalar, in the units of the rows."""

    @abstractmethod
    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Rows per unit of all rates."""

    @abstractmethod
    def pushed(self, at: Pose, moving: Motion) -> Array:
        """Second derivative of the rows in a motion, where they are zero."""

    @abstractmethod
    def between(self, at: Pose, share: float) -> PoseRows:
        """Rows part of the way from where the robot is now."""

    @abstractmethod
    def words(self, planar: bool) -> list[str]:
        """For messages, one for each condition; some may be empty."""

    @property
    @abstractmethod
    def kind(self) -> tuple:
        """What the Jacobian of the rows depends on beside the pose."""

    def met(self, at: Pose) -> PoseRows:
        """The same rows with such values that the robot meets them now: their rank is that of the rows in general."""
        return self

    @property
    def sort(self) -> tuple:
        """What the rank of rows that are met depends on beside the pose."""
        return self.kind


@dataclass(frozen=True, eq=False, repr=False)
class FrameTarget(PoseRows):
    """A place is to have some world coordinates and perhaps a rotation (in the plane: an angle)."""

    name: str
    place: Place
    position: dict[int, float] = field(default_factory=dict)
    rotation: Array | None = None

    def links(self, tree: Tree) -> list[int]:
        """Links that can bring the place there."""
        return tree.path(self.place.link)

    @property
    def size(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self.position) + (0 if self.rotation is None else 3)

    def words(self, planar: bool) -> list[str]:
        """Coordinates of the frame."""
        turn = () if self.rotation is None else ("theta",) if planar else ("rx", "ry", "rz")
        return [f"{self.name}.{word}" for word in (*("xyz"[axis] for axis in self.position), *turn)]

    @property
    def kind(self) -> tuple:
        """What the Jacobian depends on beside the pose."""
        return (self.name, tuple(self.position), self.rotation is not None)

    def scale(self, length: float) -> Array:
        """Makes rows of the Jacobian those of the residual: metres, angles times the length."""
        count = len(self.position)
        return np.r_[np.ones(count), np.full(self.size - count, length)]

    @property
    def ends(self) -> tuple[int, ...]:
        """The link that carries the place."""
        return (self.place.link,)

    def on(self, small: Branch) -> FrameTarget:
        """The same target on a part of the tree."""
        return replace(self, place=small.place(self.place))

    def residual(self, at: Pose, length: float) -> Array:
        """Distance from the target, in metres."""
        R, P = at.of(self.place)
        parts = [P[axis] - value for axis, value in self.position.items()]
        if self.rotation is not None:
            parts += list(length * vector_from_rotation(R @ self.rotation.T))
        return np.array(parts)

    def linear_residual(self, at: Pose) -> Array:
        """The same, angles by their sines."""
        R, P = at.of(self.place)
        parts = [P[axis] - value for axis, value in self.position.items()]
        return np.array(parts if self.rotation is None else [*parts, *small_turn(R @ self.rotation.T)])

    def turned_away(self, at: Pose) -> Any:
        """1 less the cosine of the angle that must vanish, over any scalar: sines do not tell opposite directions."""
        return 0.0 if self.rotation is None else (3.0 - np.trace(at.of(self.place)[0] @ self.rotation.T)) / 2

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Rows in world axes."""
        R, _ = at.of(self.place)
        J_v, J_w = place_jacobian(tree, at, links, self.place)
        rows = [(R @ J_v)[list(self.position)]] if self.position else []
        if self.rotation is not None:
            rows.append(R @ J_w)
        return np.concatenate(rows)

    def pushed(self, at: Pose, moving: Motion) -> Array:
        """Accelerations, in world axes."""
        R, _ = at.of(self.place)
        _, _, a, al = moving.of(self.place)
        parts = [(R @ a)[list(self.position)]] if self.position else []
        return np.concatenate([*parts, *([] if self.rotation is None else [R @ al])])

    def between(self, at: Pose, share: float) -> FrameTarget:
        """A target part of the way from where the place is now."""
        R, P = at.of(self.place)
        position = {axis: P[axis] + share * (value - P[axis]) for axis, value in self.position.items()}
        rotation = self.rotation
        if rotation is not None:
            rotation = rotation_from_vector(share * vector_from_rotation(rotation @ R.T)) @ R
        return FrameTarget(self.name, self.place, position, rotation)


@dataclass(frozen=True, eq=False, repr=False)
class BallTarget(PoseRows):
    """A spherical joint has a rotation, in its placed axes."""

    name: str
    number: int  # of its link
    first: int  # of its four positions
    rate: int  # of its three rates, the first
    rotation: Array
    size: int = field(default=3, init=False)

    def words(self, planar: bool) -> list[str]:
        """For messages."""
        return [f"{self.name}.{word}" for word in ("rx", "ry", "rz")]

    @property
    def ends(self) -> tuple[int, ...]:
        """Its link."""
        return (self.number,)

    def links(self, tree: Tree) -> list[int]:
        """Its link."""
        return [self.number]

    def on(self, small: Branch) -> BallTarget:
        """The same rows on a part of the tree."""
        number = small.number[self.number]
        link = small.tree.links[number]
        return replace(self, number=number, first=link.q.start, rate=link.v.start)

    def scale(self, length: float) -> Array:
        """Angles times the length."""
        return np.full(3, length)

    def _now(self, at: Pose) -> Array:
        return quaternion_matrix(np.asarray(at.q)[self.first : self.first + 4])

    def residual(self, at: Pose, length: float) -> Array:
        """The turn that is left, in metres."""
        return length * vector_from_rotation(self._now(at) @ self.rotation.T)

    def linear_residual(self, at: Pose) -> Array:
        """The same, angles by their sines."""
        return small_turn(self._now(at) @ self.rotation.T)

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Its rates, which are along moving axes, along the placed ones."""
        return self._now(at) @ np.eye(tree.n)[self.rate : self.rate + 3]

    def pushed(self, at: Pose, moving: Motion) -> Array:
        """Its accelerations along the placed axes."""
        return self._now(at) @ np.asarray(moving.qdd)[self.rate : self.rate + 3]

    def between(self, at: Pose, share: float) -> BallTarget:
        """A rotation part of the way."""
        now = self._now(at)
        step = rotation_from_vector(share * vector_from_rotation(self.rotation @ now.T))
        return replace(self, rotation=step @ now)

    @property
    def kind(self) -> tuple:
        """What the Jacobian depends on beside the pose."""
        return (self.name, "ball")


def small_turn(rotation: Array) -> Array:
    """Rotation vector of a small turn, over any scalar: exact to first order."""
    R = rotation
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2


@dataclass(frozen=True, eq=False, repr=False)
class Target(Record):
    """Coordinates that are given outright (`fixed` rates, their positions in `q`), and conditions on frames."""

    values: dict[int, float] = field(default_factory=dict)  # position coordinate -> value
    fixed: frozenset[int] = frozenset()  # rates that do not move any more
    frames: tuple[PoseRows, ...] = ()  # conditions that are rows

    def applied(self, q: Array) -> Array:
        """Positions with the given coordinates set."""
        result = q.copy()
        for index, value in self.values.items():
            result[index] = value
        return result
