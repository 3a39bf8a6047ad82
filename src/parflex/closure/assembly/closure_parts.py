"""Pieces of the closures that stand alone, and Newton's method on each of them without the rest of the robot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from parflex.closure.assembly.newton import corrected, largest, newton, stack
from parflex.closure.loops import Closures
from parflex.closure.targets import PoseRows, Target
from parflex.closure.working_modes import Rows, block
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, pose
from parflex.tree.tree import Branch, Tree, branch

Array = np.ndarray
Method = Callable[[Tree, Array, Array, Sequence[Rows], int], tuple[Array, float]]
CORRECTIONS = 8  # steps of Newton's method after one of a way


@dataclass(frozen=True, eq=False, repr=False)
class ClosurePart(Record):
    """A piece of the problem that stands alone: some rows and the rates that close them."""

    name: str
    rows: tuple[Rows, ...]
    columns: Array
    held: frozenset[int] = frozenset()  # links that the target places: loops that touch none are judged by themselves
    given: frozenset[int] = frozenset()  # rates of its links that the target gives


class ClosureParts:
    """The closures of a robot in pieces: which rates close which rows, and how far these are open."""

    def __init__(self, tree: Tree, closures: Closures) -> None:
        self.tree = tree
        self.closures = closures
        self._branches: dict[frozenset[int], Branch] = {}

    def parts(self, target: Target, locked: frozenset[int]) -> list[ClosurePart]:
        """Pieces that share no moving coordinate: with the platform given, the legs."""
        tree = self.tree
        held = target.fixed | locked
        rows: list[Rows] = [*self.closures.rows, *target.frames]
        sets = [{k for j in row.links(tree) for k in self.rates_of(j)} - held for row in rows]
        groups: list[tuple[list[int], set[int]]] = []
        for index, columns in enumerate(sets):
            touching = [group for group in groups if group[1] & columns]
            merged = ([index], set(columns))
            for group in touching:
                merged = (group[0] + merged[0], group[1] | merged[1])
                groups.remove(group)
            groups.append(merged)
        placed = {tree.link_of_rate[k] for k in target.fixed}
        placed |= {j for frame in target.frames for j in frame.links(tree)}
        parts = [self.part([rows[i] for i in sorted(members)], columns) for members, columns in groups]
        return [replace(part, held=frozenset(placed), given=self._given(part, target.fixed)) for part in parts]

    def _given(self, part: ClosurePart, fixed: frozenset[int]) -> frozenset[int]:
        links = {j for row in part.rows for j in row.links(self.tree)}
        return frozenset(k for k in fixed if self.tree.link_of_rate[k] in links)

    def sides(self, locked: frozenset[int]) -> list[ClosurePart]:
        """The two sides of each loop: its rows with the joints that carry one end."""
        tree, sides = self.tree, []
        for loop in self.closures.loops:
            moving = set(loop.links(tree))
            for place, label in ((loop.first, "first"), (loop.second, "second")):
                links = sorted(moving & set(tree.path(place.link)))
                columns = {k for j in links for k in self.rates_of(j)} - locked
                part = self.part([loop], columns)
                named = part.name if part.name != loop.name else f"{loop.name} ({label} side)"
                sides.append(ClosurePart(named, part.rows, part.columns))
        return sides

    def part(self, rows: Sequence[Rows], columns: set[int]) -> ClosurePart:
        """Rows with the rates that close them, by the name of their leg."""
        tree = self.tree
        legs = {tree.links[tree.link_of_rate[k]].leg for k in columns}
        leg = legs.pop() if len(legs) == 1 else None
        name = leg or ", ".join(row.name for row in rows if not isinstance(row, PoseRows)) or rows[0].name
        return ClosurePart(name, tuple(rows), np.array(sorted(columns), dtype=int))

    def rates_of(self, link: int) -> range:
        """Rates of the joint of a link."""
        return range(self.tree.links[link].v.start, self.tree.links[link].v.stop)

    def positions(self, part: ClosurePart) -> list[int]:
        """Coordinates of the joints that close a part."""
        links = [self.tree.links[j] for j in sorted({self.tree.link_of_rate[k] for k in part.columns})]
        return [index for link in links for index in range(link.q.start, link.q.stop)]

    @cached_property
    def free_bodies(self) -> frozenset[int]:
        """Rates of bodies that stand on no joint: platforms."""
        bodies = [link for link in self.tree.links if link.joint.moves_freely]
        return frozenset(k for link in bodies for k in range(link.v.start, link.v.stop))

    def branch(self, rows: Sequence[Rows]) -> Branch:
        """The links that carry the rows, as a tree: a leg of a large robot is closed without the rest of it."""
        ends = frozenset(link for row in rows for link in row.ends)
        if ends not in self._branches:
            self._branches[ends] = branch(self.tree, ends)
        return self._branches[ends]

    def block(self, q: Array, part: ClosurePart) -> Array:
        """Rows of the part, without units, for its own rates."""
        at = pose(self.tree, q)
        return block(self.tree, part.rows, part.columns, at, jacobians(self.tree, at, part.columns))

    def opening(self, q: Array, rows: Sequence[Rows]) -> float:
        """Largest distance of rows from zero, in typical lengths."""
        small = self.branch(rows)
        at = pose(small.tree, q[small.positions])
        return largest(stack(row.on(small).residual(at, self.tree.length) for row in rows)) / self.tree.length

    def newton(self, q: Array, columns: Array, rows: Sequence[Rows], steps: int = 60) -> tuple[Array, float]:
        """Gauss-Newton with short steps and backtracking; positions and the remaining error (in typical lengths)."""
        return self._closed_by(newton, q, columns, rows, steps)

    def corrected(self, q: Array, columns: Array, rows: Sequence[Rows]) -> tuple[Array, float]:
        """A few plain steps of Newton's method, for positions that are nearly closed."""
        return self._closed_by(corrected, q, columns, rows, CORRECTIONS)

    def _closed_by(
        self, method: Method, q: Array, columns: Array, rows: Sequence[Rows], steps: int
    ) -> tuple[Array, float]:
        small = self.branch(rows)
        own = np.searchsorted(small.rates, np.intersect1d(small.rates, columns))  # others change no row
        found, error = method(small.tree, q[small.positions], own, [row.on(small) for row in rows], steps)
        result = q.copy()
        result[small.positions] = found
        return result, error
