"""Legs in space that bring a point to a known place by three joints: what tells their assemblies apart.

With ground and platform in place, a leg is a chain of joints from one of them to a closure on the other. Joints whose
axes pass through the closure do not move its centre; the three others bring it there. Two neighbours of these that
cross in one point keep a distance, two that are parallel keep a height. So the third follows from one equation with
two roots: a sphere meets a circle or a line, a plane meets a circle. Then the two follow, again in two ways. The signs
of two numbers tell the four apart, and the determinant of the leg is their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.loops import Loop
from parflex.records import Record
from parflex.recursion import pose
from parflex.recursion.kinematics import Pose
from parflex.spatial import cross
from parflex.tree import Place, Tree

Array = np.ndarray
EXACT = 1e-9  # rad, or of the typical length: what joints that cross or are parallel may be off
SLANTED = 1e-3  # sine of an angle from which axes cross, and a slide leaves a plane
FLAT = 1e-6  # of lengths: numbers below tell no side, the reference is singular
CROSSED, PARALLEL = "crossed", "parallel"


@dataclass(frozen=True, eq=False, repr=False)
class JointAxis(Record):
    """The axis of a joint in the world: a point on it, its direction, and whether the joint turns about it."""

    point: Array
    along: Array
    turns: bool

    def moves(self, place: Array) -> Any:
        """Velocity of a place per unit of the rate."""
        return cross(self.along, place - self.point) if self.turns else self.along


def line_of(tree: Tree, at: Pose, link: int) -> JointAxis:
    """The axis of the joint of a link."""
    joint = tree.links[link].joint
    return JointAxis(at.position[link], at.rotation[link][:, joint.axis], bool(joint.periodic))


@dataclass(frozen=True, eq=False, repr=False)
class PointLeg(Record):
    """A leg by its joints from the known body on, and the closure that it ends in."""

    arm: tuple[int, int, int]  # links of the joints that bring the centre of the closure to its place
    wrist: tuple[int, ...]  # of those that only turn about it
    loop: Loop
    carries_first: bool  # whether the first place of the closure is on the leg
    kind: str  # how the two neighbours lie: crossed or parallel
    alone: int  # which of the three joints follows first: the first or the last

    @property
    def end(self) -> Place:
        """The place of the closure on the leg."""
        return self.loop.first if self.carries_first else self.loop.second

    @property
    def goal(self) -> Place:
        """The place of the closure on the other body."""
        return self.loop.second if self.carries_first else self.loop.first

    @property
    def pair(self) -> tuple[int, int]:
        """The two neighbours among the three joints."""
        return (1, 2) if self.alone == 0 else (0, 1)

    @property
    def ends(self) -> tuple[int, ...]:
        """Links that say where its joints are."""
        return (*self.arm, *self.loop.ends)

    def numbers(self, tree: Tree, at: Pose) -> tuple[Any, Any]:
        """Whose signs tell its assemblies apart, over any scalar: of the joint that follows first, of the two."""
        lines, E = [line_of(tree, at, j) for j in self.arm], at.of(self.end)[1]
        one, (i, j) = lines[self.alone], self.pair
        if self.kind == CROSSED:
            C = crossing(lines[i], lines[j])
            moved, other = (C, E) if self.alone == 0 else (E, C)
            return (moved - other) @ one.moves(moved), (E - C) @ cross(lines[i].along, lines[j].along)
        return self._height(lines, E), _in_plane(lines[i], lines[j], E)

    def _height(self, lines: Sequence[JointAxis], E: Array) -> Any:
        """How fast the joint that follows first changes the height that the two others keep."""
        one, normal = lines[self.alone], plane_normal(*(lines[k] for k in self.pair))
        rate = normal @ one.moves(E)
        return rate if self.alone == 0 or not one.turns else -rate


def _in_plane(first: JointAxis, second: JointAxis, E: Array) -> Any:
    """Which of two ways neighbours take in the plane that they keep."""
    if second.turns and not first.turns:
        return (second.point - E) @ first.along
    return level(E - first.point, plane_normal(first, second)) @ second.moves(E)


def level(way: Array, normal: Array) -> Any:
    """The part of a vector in a plane."""
    return way - normal * (normal @ way)


def crossing(first: JointAxis, second: JointAxis) -> Any:
    """The point of a line that is nearest to another."""
    n = cross(first.along, second.along)
    t = cross(second.point - first.point, second.along) @ n / (n @ n)
    return first.point + t * first.along


def plane_normal(first: JointAxis, second: JointAxis) -> Array:
    """The direction along which two neighbours in a plane move nothing."""
    return first.along if first.turns else second.along


@dataclass(frozen=True, eq=False, repr=False)
class LegSide(Record):
    """One of the two numbers of a leg."""

    leg: PointLeg
    which: int
    side: float = 0.0  # its sign at the reference

    @property
    def ends(self) -> tuple[int, ...]:
        """Links that say where the joints of the leg are."""
        return self.leg.ends

    def sine(self, tree: Tree, at: Pose) -> Any:
        """The number, over any scalar."""
        return self.leg.numbers(tree, at)[self.which]

    def fits(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> bool:
        """Whether a pose is on the side of the reference."""
        return bool(self.side * self.sine(tree, at) >= 0)


def leg_sides(tree: Tree, rows: Sequence[Any], columns: Array, reference: Array) -> list[LegSide] | None:
    """What tells the assemblies of a part apart that is such a leg; None where it is none.

    Rows that are not used can only take assemblies away.
    """
    leg = point_leg(tree, rows, columns, reference)
    if leg is None:
        return None
    at, found = pose(tree, reference), []
    turns = [line_of(tree, at, j).turns for j in leg.arm]
    one, pair = turns[leg.alone], all(turns[k] for k in leg.pair)
    powers = (1 + one, 1) if leg.kind == CROSSED else (int(one), 1 + pair)  # of lengths, in the units of the numbers
    for which, (number, power) in enumerate(zip(leg.numbers(tree, at), powers, strict=True)):
        if abs(float(number)) <= FLAT * tree.length**power:
            return None
        if power:  # a slide through a plane has one root
            found.append(LegSide(leg, which, float(np.sign(number))))
    return found


def point_leg(tree: Tree, rows: Sequence[Any], columns: Array, reference: Array) -> PointLeg | None:
    """A part as such a leg; None where it is none."""
    loop = rows[0] if len(rows) == 1 else None
    if tree.planar or not isinstance(loop, Loop) or len(loop.translations) != 3:
        return None
    rates = {int(k) for k in columns}
    links = sorted({tree.link_of_rate[k] for k in rates})
    joints = [tree.links[j].joint for j in links]
    if any(not joint.one_axis or joint.pitch for joint in joints) or len(links) < len(rates) or len(links) < 3:
        return None
    on_first, on_second = (
        set(tree.path(place.link)) if place.link >= 0 else set() for place in (loop.first, loop.second)
    )
    if not (set(links) <= on_first - on_second or set(links) <= on_second - on_first):
        return None
    carries_first = set(links) <= on_first
    at = pose(tree, reference)
    arm, wrist = links[:3], links[3:]
    if len(wrist) > 1 or (wrist and loop.turning != "about-axis"):
        return None
    if any(not tree.links[j].joint.periodic for j in wrist):
        return None
    for kind, alone in ((CROSSED, 0), (CROSSED, 2), (PARALLEL, 0), (PARALLEL, 2)):
        leg = PointLeg((arm[0], arm[1], arm[2]), tuple(wrist), loop, carries_first, kind, alone)
        if all(float(np.abs(part).max()) < EXACT for part in structure(leg, tree, at, tree.length)) and _regular(
            leg, tree, at
        ):
            return leg
    return None


def structure(leg: PointLeg, tree: Tree, at: Pose, length: float = 1.0) -> list[Any]:
    """What vanishes where joints lie as a leg of its kind has them, over any scalar, in such lengths and radians.

    One body has both axes, so they stay so in all poses, but designs may move them.
    """
    lines, E = [line_of(tree, at, j) for j in leg.arm], at.of(leg.end)[1]
    found = [line_of(tree, at, j).moves(E) / length for j in leg.wrist]
    first, second = (lines[k] for k in leg.pair)
    if leg.kind == CROSSED:
        return [*found, (second.point - first.point) @ cross(first.along, second.along) / length]
    normal = plane_normal(first, second)
    return found + [cross(normal, line.along) if line.turns else normal @ line.along for line in (first, second)]


def _regular(leg: PointLeg, tree: Tree, at: Pose) -> bool:
    """Whether joints are of the kind that the leg has, and cross or leave the plane by enough to be told apart."""
    lines = [line_of(tree, at, j) for j in leg.arm]
    first, second = (lines[k] for k in leg.pair)
    if leg.kind == CROSSED:
        return first.turns and second.turns and bool(np.linalg.norm(cross(first.along, second.along)) > SLANTED)
    normal, one = plane_normal(first, second), lines[leg.alone]
    across = float(np.linalg.norm(cross(normal, one.along))) if one.turns else abs(float(normal @ one.along))
    return (first.turns or second.turns) and across > SLANTED
