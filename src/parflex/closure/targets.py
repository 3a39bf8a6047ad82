"""What a pose asks for: values of joints, positions and rotations of frames. Same interface as a loop where needed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from parflex.records import Record
from parflex.recursion.kinematics import Pose, place_jacobian
from parflex.spatial import rotation_from_vector, vector_from_rotation
from parflex.tree import Place, Tree
from parflex.tree.branch import Branch

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class FrameTarget(Record):
    """A place is to have some world coordinates and perhaps a rotation (in the plane: an angle)."""

    name: str
    place: Place
    position: dict[int, float] = field(default_factory=dict)
    rotation: Array | None = None

    def links(self, tree: Tree) -> list[int]:
        """Links that can bring the place there."""
        return tree.path(self.place.link)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.position) + (0 if self.rotation is None else 3)

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

    def jacobian(self, tree: Tree, at: Pose, links: list[tuple[Array, Array]]) -> Array:
        """Rows in world axes."""
        R, _ = at.of(self.place)
        J_v, J_w = place_jacobian(tree, links, self.place)
        rows = [(R @ J_v)[list(self.position)]] if self.position else []
        if self.rotation is not None:
            rows.append(R @ J_w)
        return np.concatenate(rows)

    def between(self, at: Pose, share: float) -> FrameTarget:
        """A target part of the way from where the place is now."""
        R, P = at.of(self.place)
        position = {axis: P[axis] + share * (value - P[axis]) for axis, value in self.position.items()}
        rotation = self.rotation
        if rotation is not None:
            rotation = rotation_from_vector(share * vector_from_rotation(rotation @ R.T)) @ R
        return FrameTarget(self.name, self.place, position, rotation)


@dataclass(frozen=True, eq=False, repr=False)
class Target(Record):
    """Coordinates that are given outright (`fixed` rates, their positions in `q`) and frames with a prescribed pose."""

    values: dict[int, float] = field(default_factory=dict)  # position coordinate -> value
    fixed: frozenset[int] = frozenset()  # rates that do not move any more
    frames: tuple[FrameTarget, ...] = ()

    def applied(self, q: Array) -> Array:
        """Positions with the given coordinates set."""
        result = q.copy()
        for index, value in self.values.items():
            result[index] = value
        return result
