"""Parallelograms inside legs: four pivots with parallel axes, whose coupler keeps its direction on the carrier.

For a point on the coupler such a loop is one joint: the point turns about an axis as far from it as one bar is long,
and what the coupler carries does not turn with it. All four bodies close in a second way, crossed; where the loop lies
flat, both meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.closure.loops import Loop
from parflex.records import Record
from parflex.recursion.kinematics import Pose
from parflex.spatial.rotations import cross
from parflex.tree.tree import Place, Tree

Array = np.ndarray
EXACT = 1e-9  # rad, or of the typical length: what axes and sides may be off


@dataclass(frozen=True, eq=False, repr=False)
class Parallelogram(Record):
    """A loop of two bars between a carrier and a coupler, by the links whose joints move in it."""

    bar: int  # the bar that carries the coupler
    coupler: int
    other: int  # the other bar, mounted on the carrier or on the coupler
    loop: Loop  # what ties its end to the last of the four
    on_carrier: bool  # whether it is mounted on the carrier
    senses: tuple[float, float] = (1.0, 1.0)  # of the joints of coupler and other bar, beside that of the bar

    @property
    def links(self) -> tuple[int, int, int]:
        """Links whose joints move in it."""
        return self.bar, self.coupler, self.other

    def corners(self, at: Pose) -> tuple[Array, Array, Array, Array]:
        """Pivots of the bar on carrier and coupler, of the other on both, as these two bodies have them."""
        carried, own = self._ends
        end = at.of(own)[1]
        other = at.position[self.other]
        return (
            at.position[self.bar],
            at.position[self.coupler],
            *((other, end) if carried else (end, other)),
        )

    @property
    def _ends(self) -> tuple[bool, Place]:
        """Whether the other bar is mounted on the carrier, and the place of the closure that is not on that bar."""
        return self.on_carrier, self.loop.first if self.loop.second.link == self.other else self.loop.second

    def axis(self, tree: Tree, at: Pose) -> Array:
        """About which the bar turns, in the world."""
        return at.rotation[self.bar][:, tree.links[self.bar].joint.axis]

    def arm(self, at: Pose) -> Array:
        """From the pivot of the bar on the carrier to that on the coupler."""
        return at.position[self.coupler] - at.position[self.bar]

    def numbers(self, tree: Tree, at: Pose) -> tuple[Any, Any]:
        """Whose signs tell how it closes, over any scalar: of the bar on its carrier, of the coupler on the other bar.

        In the parallelogram both are its area; crossed, they differ in their signs.
        """
        B, C, B2, C2 = self.corners(at)
        n = self.axis(tree, at)
        return n @ cross(B2 - B, C - B), n @ cross(C2 - C, C2 - B2)

    def structure(self, tree: Tree, at: Pose, length: float = 1.0) -> list[Any]:
        """What vanishes where it is a parallelogram that is closed as one, over any scalar."""
        n = self.axis(tree, at)
        B, C, B2, C2 = self.corners(at)
        own = self.loop.second if self.loop.second.link == self.other else self.loop.first
        tip = at.of(own)[1] - at.position[self.other]
        along = tip if self.on_carrier else -tip
        axes = [at.rotation[j][:, tree.links[j].joint.axis] for j in (self.coupler, self.other)]
        if self.loop.turning == "about-axis":
            axes.append(at.of(self.loop.first)[0] @ self.loop.u1)
        return [
            *(cross(n, axis) for axis in axes),
            cross(n, (C2 - C) - (B2 - B)) / length,
            cross(n, (C - B) - along) / length,
        ]

    def carried(self, number: dict[int, int], loop: Loop) -> Parallelogram:
        """The same between links that are numbered anew."""
        bar, coupler, other = (number[j] for j in self.links)
        return replace(self, bar=bar, coupler=coupler, other=other, loop=loop)


def parallelogram(tree: Tree, loop: Any, path: Sequence[int], at: Pose) -> Parallelogram | None:
    """A loop as a parallelogram of which a bar and the coupler are on a path of links; None where it is none."""
    if not isinstance(loop, Loop) or len(loop.translations) != 3 or loop.turning not in ("free", "about-axis"):
        return None
    inside = loop.links(tree)
    own, others = [j for j in inside if j in path], [j for j in inside if j not in path]
    if len(own) != 2 or len(others) != 1 or not all(tree.links[j].joint.periodic for j in inside):
        return None
    (bar, coupler), other = own, others[0]
    carrier, mounted = tree.links[bar].parent, tree.links[other].parent
    if tree.links[coupler].parent != bar or mounted not in (carrier, coupler):
        return None
    if set(loop.ends) != {other, coupler if mounted == carrier else carrier}:
        return None
    found = Parallelogram(bar, coupler, other, loop, mounted == carrier)
    if any(float(np.abs(part).max()) > EXACT for part in found.structure(tree, at, tree.length)):
        return None
    n = found.axis(tree, at)
    beside = [float(np.sign(n @ at.rotation[j][:, tree.links[j].joint.axis])) for j in (coupler, other)]
    return replace(found, senses=(-beside[0], beside[1]))
