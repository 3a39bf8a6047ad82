"""Define the common base of loops, couplings, distances and conditions of a pose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from parflex.records import Record
from parflex.recursion.kinematics import Motion, Pose
from parflex.tree.tree import Branch, Place, Tree

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Rows(Record, ABC):
    """Rows that vanish at a closed pose; `place_fields` are the fields with their places."""

    place_fields: ClassVar[tuple[str, ...]] = ()
    batched: ClassVar[bool] = True  # whether residual and Jacobian take batched numbers
    name: str

    @property
    def places(self) -> tuple[Place, ...]:
        """Places of the rows."""
        return tuple(getattr(self, field) for field in self.place_fields)

    @property
    def ends(self) -> tuple[int, ...]:
        """Links of these places."""
        return tuple(place.link for place in self.places)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.scale(1.0))

    def on(self, small: Branch) -> Self:
        """Return the rows on a part of the tree."""
        places: dict[str, Any] = {field: small.place(getattr(self, field)) for field in self.place_fields}
        return replace(self, **places)

    def links(self, tree: Tree) -> list[int]:
        """Return links whose joints change the rows: those that move one place and not the other."""
        moving: set[int] = set()
        for place in self.places:
            moving ^= set(tree.path(place.link))
        return sorted(moving | {place.link for place in self.places if place.inner is not None})

    def residual(self, at: Pose, length: float) -> Array:
        """Return the residuals of the rows in metres; angles are multiplied by `length`."""
        return self.scale(length) * self.linear_residual(at)

    @abstractmethod
    def scale(self, length: float) -> Array:
        """Return factors from Jacobian rows to residual rows: 1 for metres, `length` for angles."""

    @abstractmethod
    def linear_residual(self, at: Pose) -> Array:
        """Return residuals of rows that nearly vanish, over any scalar, in the units of the rows."""

    @abstractmethod
    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """Return rows per unit of all rates."""

    @abstractmethod
    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Return the second derivative of the rows in a motion along which they vanish."""


def stack(parts: Iterable[Array]) -> Array:
    """Return the rows of all parts, stacked."""
    rows = list(parts)
    return np.concatenate(rows) if rows else np.zeros(0)


def block(tree: Tree, rows: Iterable[Rows], columns: Array, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
    """Return the Jacobian of rows without units for some rates."""
    parts = [row.jacobian(tree, at, links)[:, columns] * row.scale(tree.length)[:, None] for row in rows]
    return np.concatenate([np.zeros((0, len(columns))), *parts]) * (tree.rate_units[columns] / tree.length)


def connected(sets: Iterable[Collection[int]]) -> list[tuple[list[int], set[int]]]:
    """Return connected components of sets by common members: set numbers, and the members of each component."""
    groups: list[tuple[list[int], set[int]]] = []
    for number, members in enumerate(sets):
        touching = [group for group in groups if group[1].intersection(members)]
        numbers, union = [number], set(members)
        for group in touching:
            groups.remove(group)
            numbers, union = sorted([*group[0], *numbers]), union | group[1]
        groups.append((numbers, union))
    return groups
