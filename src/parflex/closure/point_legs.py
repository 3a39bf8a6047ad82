"""Legs in space that bring a point to a known place by three joints: what tells their assemblies apart.

With ground and platform in place, a leg is a chain of joints from one of them to a closure on the other. Joints whose
axes pass through the closure do not move its centre; the three others bring it there. Two neighbours of these that
cross in one point keep a distance, two that are parallel keep a height. So the third follows from one equation with
two roots: a sphere meets a circle or a line, a plane meets a circle. Then the two follow, again in two ways. The signs
of two numbers tell the four apart, and the determinant of the leg is their product. The last of the three may be a
parallelogram, which moves the closure as a joint does; two further signs tell how it closes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.closure.loops import Loop
from parflex.closure.parallelograms import Parallelogram, parallelogram
from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.spatial.rotations import cross
from parflex.tree.tree import Place, Tree

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
    linkage: Parallelogram | None = None  # whose bar is the last of the three

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
        return (*self.moving, *self.loop.ends, *(() if self.linkage is None else self.linkage.loop.ends))

    @property
    def moving(self) -> tuple[int, ...]:
        """Links whose joints move in it."""
        return (*self.arm, *self.wrist, *(() if self.linkage is None else self.linkage.links[1:]))

    def lines(self, tree: Tree, at: Pose) -> list[JointAxis]:
        """Axes about or along which the three joints move the centre of the closure, over any scalar."""
        found = [line_of(tree, at, j) for j in self.arm]
        if self.linkage is not None:  # the centre turns about a point as far from it as the bar is long
            found[2] = replace(found[2], point=at.of(self.end)[1] - self.linkage.arm(at))
        return found

    def turning(self, lines: Sequence[JointAxis]) -> list[bool]:
        """Which of the three turn what they carry: a parallelogram does not."""
        turns = [line.turns for line in lines]
        return [*turns[:2], turns[2] and self.linkage is None]

    def numbers(self, tree: Tree, at: Pose) -> tuple[Any, ...]:
        """Whose signs tell its assemblies apart, over any scalar: of the joint that follows first, of the two.

        Behind them those of its parallelogram.
        """
        inner = () if self.linkage is None else self.linkage.numbers(tree, at)
        lines, E = self.lines(tree, at), at.of(self.end)[1]
        one, (i, j) = lines[self.alone], self.pair
        if self.kind == CROSSED:
            C = crossing(lines[i], lines[j])
            moved, other = (C, E) if self.alone == 0 else (E, C)
            return (moved - other) @ one.moves(moved), (E - C) @ cross(lines[i].along, lines[j].along), *inner
        return self._height(lines, E), _in_plane(lines[i], lines[j], E), *inner

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
    """One of the numbers of a leg."""

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
    powers: tuple[int, ...] = (
        (1 + one, 1) if leg.kind == CROSSED else (int(one), 1 + pair)
    )  # of lengths, in the units of the numbers
    powers += () if leg.linkage is None else (2, 2)
    for which, (number, power) in enumerate(zip(leg.numbers(tree, at), powers, strict=True)):
        if abs(float(number)) <= FLAT * tree.length**power:
            return None
        if power:  # a slide through a plane has one root
            found.append(LegSide(leg, which, float(np.sign(number))))
    return found


def point_leg(tree: Tree, rows: Sequence[Any], columns: Array, reference: Array) -> PointLeg | None:
    """A part as such a leg; None where it is none."""
    if tree.planar or len(rows) > 2 or not all(isinstance(row, Loop) and len(row.translations) == 3 for row in rows):
        return None
    rates = {int(k) for k in columns}
    moving = {tree.link_of_rate[k] for k in rates}
    joints = [tree.links[j].joint for j in moving]
    if any(not joint.one_axis or joint.pitch for joint in joints) or len(moving) < len(rates):
        return None
    at = pose(tree, reference)
    for loop, *inner in (rows, rows[::-1])[: len(rows)]:
        legs = _legs(tree, loop, inner, moving, at)
        found = next((leg for leg in legs if _is_leg(leg, tree, at)), None)
        if found is not None:
            return found
    return None


def _is_leg(leg: PointLeg, tree: Tree, at: Pose) -> bool:
    """Whether its joints lie as those of its kind."""
    vanishing = structure(leg, tree, at, tree.length)
    return all(float(np.abs(part).max()) < EXACT for part in vanishing) and _regular(leg, tree, at)


def _legs(tree: Tree, loop: Loop, inner: Sequence[Loop], moving: set[int], at: Pose) -> Iterator[PointLeg]:
    """What a part may be as such a leg that ends in a loop, with a parallelogram or without."""
    first, second = (set(tree.path(place.link)) if place.link >= 0 else set() for place in (loop.first, loop.second))
    for path, carries_first in ((first - second, True), (second - first, False)):
        chain = sorted(path & moving)
        linkage = parallelogram(tree, inner[0], chain, at) if inner else None
        around = set() if linkage is None else {linkage.coupler, linkage.other}
        if (inner and linkage is None) or set(chain) | around != moving:
            continue
        joints = [j for j in chain if j not in around]
        arm, wrist = joints[:3], joints[3:]
        if len(arm) < 3 or len(wrist) > 1 or (wrist and loop.turning != "about-axis"):
            continue
        if any(not tree.links[j].joint.periodic for j in wrist) or (linkage is not None and linkage.bar != arm[2]):
            continue
        for kind, alone in ((CROSSED, 0), (CROSSED, 2), (PARALLEL, 0), (PARALLEL, 2)):
            yield PointLeg((arm[0], arm[1], arm[2]), tuple(wrist), loop, carries_first, kind, alone, linkage)


def structure(leg: PointLeg, tree: Tree, at: Pose, length: float = 1.0) -> list[Any]:
    """What vanishes where joints lie as a leg of its kind has them, over any scalar, in such lengths and radians.

    One body has both axes, so they stay so in all poses, but designs may move them.
    """
    lines, E = leg.lines(tree, at), at.of(leg.end)[1]
    found = [line_of(tree, at, j).moves(E) / length for j in leg.wrist]
    found += [] if leg.linkage is None else leg.linkage.structure(tree, at, length)
    first, second = (lines[k] for k in leg.pair)
    if leg.kind == CROSSED:
        return [*found, (second.point - first.point) @ cross(first.along, second.along) / length]
    normal = plane_normal(first, second)
    return found + [cross(normal, line.along) if line.turns else normal @ line.along for line in (first, second)]


def _regular(leg: PointLeg, tree: Tree, at: Pose) -> bool:
    """Whether joints are of the kind that the leg has, and cross or leave the plane by enough to be told apart."""
    lines = leg.lines(tree, at)
    first, second = (lines[k] for k in leg.pair)
    if leg.kind == CROSSED:
        return first.turns and second.turns and bool(np.linalg.norm(cross(first.along, second.along)) > SLANTED)
    normal, one = plane_normal(first, second), lines[leg.alone]
    across = float(np.linalg.norm(cross(normal, one.along))) if one.turns else abs(float(normal @ one.along))
    return (first.turns or second.turns) and across > SLANTED
