"""Rows of rods and struts: the distance between two places is a number, or the coordinate of a strut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parflex.records import Record
from parflex.recursion.energy import OnLinks, line_between, relative_velocity, wrenches_on_ends
from parflex.recursion.kinematics import Motion, Pose, place_jacobian
from parflex.robotfile.element_schema import ElementTable
from parflex.tree.build_elements import start_distance
from parflex.tree.tree import Branch, Place, Tree

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Distance(Record):
    """One row: the distance of two places less a length, or less the coordinate of a strut, theory (45).

    Its multiplier pushes the places apart; the tension is the opposite.
    """

    name: str
    kind: str  # "rod", or "strut" or "cable" of which the length is a coordinate
    first: Place = field(repr=False)
    second: Place = field(repr=False)
    rest: Any = 0.0
    number: int | None = None  # the link of a strut
    position: int = -1  # its coordinate and its rate
    rate_number: int = -1
    size: int = field(default=1, init=False)

    @property
    def places(self) -> tuple[Place, Place]:
        """First and second."""
        return (self.first, self.second)

    @property
    def row_names(self) -> list[str]:
        """What the row holds."""
        return ["length"]

    @property
    def equation(self) -> str:
        """The row for people."""
        return f"{self.name}: length = " + (f"{self.rest:.6g} m" if self.number is None else "its coordinate")

    @property
    def ends(self) -> tuple[int, ...]:
        """The links that it ties, and that of a strut."""
        return (self.first.link, self.second.link, *(() if self.number is None else (self.number,)))

    def on(self, small: Branch) -> Distance:
        """The same row on a part of the tree."""
        number = None if self.number is None else small.number[self.number]
        moved = replace(self, first=small.place(self.first), second=small.place(self.second))
        return moved if number is None else moved._of(small.tree, number)

    def _of(self, tree: Tree, number: int) -> Distance:
        link = tree.links[number]
        return replace(self, number=number, position=link.q.start, rate_number=link.v.start)

    def links(self, tree: Tree) -> list[int]:
        """Links whose joints change the distance, and that of a strut."""
        moving = set(tree.path(self.first.link)) ^ set(tree.path(self.second.link))
        return sorted(moving | (set() if self.number is None else {self.number}))

    def scale(self, length: float) -> Array:
        """The row is in metres."""
        return np.ones(1)

    def residual(self, at: Pose, length: float) -> Array:
        """How much too long the line is."""
        return self.linear_residual(at)

    def linear_residual(self, at: Pose) -> Array:
        """The same over any scalar."""
        found = line_between(at, self.places, self.name).length
        wanted = self.rest if self.number is None else at.q[self.position]
        return np.array([found - wanted])

    def jacobian(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> Array:
        """The unit vector of the line times the difference of the points' velocities."""
        across, length, _ = line_between(at, self.places, self.name)
        turned = [at.of(end)[0].T @ (across / length) for end in self.places]
        J1, J2 = (place_jacobian(tree, at, links, end)[0] for end in self.places)
        row = turned[1] @ J2 - turned[0] @ J1
        if self.number is not None:
            row[self.rate_number] = row[self.rate_number] - 1.0
        return row[None, :]

    def rate(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Rate of the distance, less that of a strut."""
        found = line_between(at, self.places, self.name, moving).rate
        return np.array([found - self._own(moving.qd)])

    def bias(self, tree: Tree, at: Pose, moving: Motion) -> Array:
        """Acceleration of the distance, less that of a strut."""
        across, length, rate = line_between(at, self.places, self.name, moving)
        v = relative_velocity(at, self.places, moving)
        a1, a2 = (at.of(end)[0] @ moving.of(end)[2] for end in self.places)
        return np.array([(across @ (a2 - a1) + v @ v - rate * rate) / length - self._own(moving.qdd)])

    def _own(self, rates: Any) -> Any:
        return 0.0 if self.number is None else rates[self.rate_number]

    def forces(self, tree: Tree, at: Pose, multipliers: Array) -> Array:
        """What the row puts on the coordinate of a strut; on the places it acts as forces."""
        found = np.zeros(tree.n)
        if self.number is not None:
            found[self.rate_number] = -multipliers[0]
        return found

    def on_links(self, at: Pose, multipliers: Array) -> OnLinks:
        """What the row puts on links."""
        across, length, _ = line_between(at, self.places, self.name)
        return wrenches_on_ends(at, self.places, -multipliers[0] / length * across)

    def numbers_in(self) -> dict[str, float]:
        """Numbers in which robots of a family may differ."""
        return {f"rest[{self.name}]": float(self.rest)}

    def with_numbers(self, symbols: Mapping[str, Any], end: Callable[[Place], Place]) -> Distance:
        """The same row with symbols in the place of some of these numbers, between other places."""
        rest = symbols.get(f"rest[{self.name}]", self.rest)
        return replace(self, rest=rest, first=end(self.first), second=end(self.second))


def build_distance(element: ElementTable, tree: Tree) -> Distance:
    """The row of a rod or strut of the file; a rod without a length has the one that it starts with."""
    first, second = (tree.places[end] for end in element.between)
    if element.measured:
        return Distance(element.name, element.kind, first, second)._of(tree, tree.number(element.name))
    rest = element.rest if element.rest is not None else start_distance(tree, element)
    return Distance(element.name, "rod", first, second, rest)
