"""Dyads: parts that move in a plane, taken apart into pairs of bodies that each close in exactly two ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.loops import Loop
from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.spatial.rotations import cross
from parflex.tree.tree import GROUND, Tree

Array = np.ndarray
FLAT = 1e-6  # sine of the angle at the middle pivot: below, the reference is singular and tells no side
PARALLEL = 1e-9  # rad between axes of one plane


@dataclass(frozen=True, eq=False, repr=False)
class Pivot(Record):
    """A revolute joint between two bodies: that of a link, or a closure."""

    link: int
    loop: Loop | None = None

    @property
    def ends(self) -> tuple[int, ...]:
        """Links that say where it is."""
        return (self.link,) if self.loop is None else (self.loop.first.link,)

    def centre(self, at: Pose) -> Array:
        """In the world."""
        return at.position[self.link] if self.loop is None else at.of(self.loop.first)[1]

    def axis(self, tree: Tree, at: Pose) -> Array:
        """In the world."""
        if self.loop is None:
            return at.rotation[self.link][:, tree.links[self.link].joint.axis]
        return at.of(self.loop.first)[0] @ (np.eye(3)[2] if tree.planar else self.loop.u1)


@dataclass(frozen=True, eq=False, repr=False)
class Dyad(Record):
    """Two bodies between pivots of known places, and the pivot that joins them."""

    pivots: tuple[Pivot, Pivot, Pivot]  # that which joins the two in the middle
    side: float = 0.0  # sign of the sine at the reference

    @property
    def ends(self) -> tuple[int, ...]:
        """Links that say where its pivots are."""
        return tuple(link for pivot in self.pivots for link in pivot.ends)

    def sine(self, tree: Tree, at: Pose) -> Any:
        """Of the angle between its bodies, times both lengths, over any scalar."""
        first, middle, last = (pivot.centre(at) for pivot in self.pivots)
        return self.pivots[1].axis(tree, at) @ cross(middle - first, last - middle)

    def fits(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> bool:
        """Whether a pose is on the side of the reference."""
        return bool(self.side * self.sine(tree, at) >= 0)


def dyads(tree: Tree, rows: Sequence[Any], columns: Array, reference: Array) -> list[Dyad] | None:
    """Dyads that place all bodies of a part one after the other; None where it has bodies that no dyad places.

    Their signs tell all assemblies of the part apart. For two bodies that turn about parallel axes at two known
    places, the pivot between them lies on two circles about these. The circles meet in two points, mirrored in the
    line of centres, so that the sine at this pivot has opposite signs there and places both bodies (coinciding circles
    give the sine 0). After them, further bodies hang on known places, the coordinates of all joints follow from bodies
    up to whole turns, and rows that were not used can only take assemblies away.
    """
    bodies = _Bodies(tree, rows, {int(k) for k in columns})
    if not bodies.understood:
        return None
    at, found = pose(tree, reference), []
    while bodies.unknown():
        new = next((one for one in bodies.candidates() if _flat(one, tree, at)), None)
        if new is None:
            return None
        bodies.place(new)
        first, middle, last = (pivot.centre(at) for pivot in new.pivots)
        sine = float(new.sine(tree, at))
        if abs(sine) <= FLAT * np.linalg.norm(middle - first) * np.linalg.norm(last - middle):
            return None
        found.append(Dyad(new.pivots, float(np.sign(sine))))
    return found


def _flat(one: Dyad, tree: Tree, at: Pose) -> bool:
    """Whether the axes of its pivots are parallel: those of one body stay so in all poses."""
    first, *others = (pivot.axis(tree, at) for pivot in one.pivots)
    return all(float(np.linalg.norm(cross(first, axis))) < PARALLEL for axis in others)


class _Bodies:
    """Links that do not move against each other as one body, and the pivots between bodies."""

    def __init__(self, tree: Tree, rows: Sequence[Any], moving: set[int]) -> None:
        self.leader: dict[int, int] = {j: j for j in (GROUND, *range(len(tree.links)))}
        self.understood = True
        tied: list[tuple[int, int, Pivot]] = []
        touched: set[int] = set()
        for j, link in enumerate(tree.links):
            own, joint = moving & set(range(link.v.start, link.v.stop)), link.joint
            moving = moving - own
            touched |= {j} if own else set()
            if not own:
                self._tie(j, link.parent)
            elif len(own) < link.v.stop - link.v.start or joint.pitch or not (joint.one_axis or joint.moves_freely):
                self.understood = False
            elif joint.periodic:
                tied.append((j, link.parent, Pivot(j)))
        self.understood = self.understood and not moving  # deformations
        across = 2 if tree.planar else 3
        for row in rows:
            if not isinstance(row, Loop) or len(row.translations) != across:
                continue
            if row.turning == "none":
                self._tie(row.first.link, row.second.link)
            elif row.turning == ("free" if tree.planar else "about-axis"):
                tied.append((row.first.link, row.second.link, Pivot(row.first.link, row)))
        self.tied = [(self._of(a), self._of(b), pivot) for a, b, pivot in tied]
        self.known = {self._of(GROUND)}
        self.touched = {self._of(j) for j in touched}

    def _of(self, link: int) -> int:
        while self.leader[link] != link:
            link = self.leader[link]
        return link

    def _tie(self, first: int, second: int) -> None:
        self.leader[self._of(first)] = self._of(second)

    def unknown(self) -> set[int]:
        """Bodies that no dyad has placed."""
        return self.touched - self.known

    def candidates(self) -> Iterator[Dyad]:
        """Two bodies that a pivot joins, each with a pivot on a known one."""
        for a, b, middle in self.tied:
            if a != b and not {a, b} & self.known:
                for first in self._on_known(a):
                    for last in self._on_known(b):
                        yield Dyad((first, middle, last))

    def _on_known(self, body: int) -> Iterator[Pivot]:
        for a, b, pivot in self.tied:
            if (a == body and b in self.known) or (b == body and a in self.known):
                yield pivot

    def place(self, one: Dyad) -> None:
        """What a dyad places is known."""
        for a, b, pivot in self.tied:
            if pivot is one.pivots[1]:
                self.known |= {a, b}
