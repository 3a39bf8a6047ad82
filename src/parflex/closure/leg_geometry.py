"""Compute legs in closed form: dyads, point legs, parallelograms and elastic drives.

Joints follow from the end point of a leg over any scalar, as cosines and sines, without trigonometry. A leg is
recognised by its axes and not by its name: U-P has two crossed revolute joints and a slide through their crossing, R-R
two parallel revolute joints. A program needs two square roots per leg.

A point leg in space brings a point to a known place by three joints. Joints whose axes pass through the closure do not
move its centre. Two neighbouring axes that cross keep a distance; two that are parallel keep a height. The third joint
follows from one equation with two roots (a sphere meets a circle or a line, a plane meets a circle); then the other two
follow, again with two roots. Two signs distinguish the four assemblies, and the determinant of the leg is their
product. The last joint may be a parallelogram, which moves the closure as a joint does; two further signs give its
assembly.

A parallelogram has four pivots with parallel axes, and its coupler keeps its direction on the carrier. For a point on
the coupler the loop is one joint: the point rotates about an axis at the distance of one bar, without change of
direction. The crossed assembly meets the parallel one where the loop lies flat.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.closure.constraints import Closures, Loop
from parflex.closure.rows import connected
from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.spatial.rotations import cross, rotation_about
from parflex.tree.tree import GROUND, Link, Place, Tree

Array = np.ndarray
Angle = Callable[[Any, Any], Any]  # from cosine and sine to something with cos() and sin()
FLAT = 1e-6  # sine of the angle at the middle pivot: below, the reference is singular and tells no side
PARALLEL = 1e-9  # rad between axes of one plane
EXACT = 1e-9  # rad, or of the typical length: what joints that cross or are parallel may be off
SLANTED = 1e-3  # sine of an angle from which axes cross, and a slide leaves a plane
CROSSED_AXES, PARALLEL_AXES = "crossed", "parallel"
SAME = 1e-9  # of axes that coincide, as a cosine and in typical lengths


@dataclass(frozen=True, eq=False, repr=False)
class UniversalPrismaticLeg(Record):
    """U-P: axes 1 and 2 cross at right angles, the slide starts at their crossing at right angles to axis 2."""

    root: Array  # rotation of the first joint's placed frame
    origin: Array
    radial: Array  # horizontal direction in which the end lies when the first joint is at zero
    lift: Array  # 2 x 2: (height, radius) per (cos q2, sin q2), for a stroke of one
    side: float  # sign of the radius in this working mode
    stroke: float  # sign of the stroke
    offset: float  # what the prismatic row adds to the joint value

    def values(self, end: Array, angle: Angle) -> list[Any]:
        """Return joint values from the end point (in axes of the ground of the leg)."""
        d = self.root.T @ (end - self.origin)
        radius = self.side * np.sqrt(d[0] * d[0] + d[1] * d[1])
        length = self.stroke * np.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
        inner, outer = 1.0 / radius, 1.0 / length
        x, y = d[0] * inner, d[1] * inner
        c1, s1 = x * self.radial[0] + y * self.radial[1], y * self.radial[0] - x * self.radial[1]
        height, along = d[2] * outer, radius * outer
        inverse_lift = np.linalg.inv(self.lift).round(15)
        c2 = inverse_lift[0, 0] * height + inverse_lift[0, 1] * along
        s2 = inverse_lift[1, 0] * height + inverse_lift[1, 1] * along
        return [angle(c1, s1), angle(c2, s2), length - self.offset]


@dataclass(frozen=True, eq=False, repr=False)
class TwoRevoluteLeg(Record):
    """R-R: parallel axes; the elbow is on one of two sides."""

    root: Array
    origin: Array
    first: Array  # from the first axis to the second, in the first's plane
    second: Array  # from the second axis to the end
    side: float  # sign of the sine of the angle from the first bar to the second

    def values(self, end: Array, angle: Angle) -> list[Any]:
        """Return joint values from the end point."""
        d = self.root.T @ (end - self.origin)
        l1, l2 = float(np.hypot(*self.first)), float(np.hypot(*self.second))
        square = d[0] * d[0] + d[1] * d[1]
        cosine = (square - (l1 * l1 + l2 * l2)) / (2 * l1 * l2)
        sine = self.side * np.sqrt(1 - cosine * cosine)
        # the joint angle is the angle between the bars less that between their own axes
        (a, b), (c, e) = self.first / l1, self.second / l2
        turn_c, turn_s = a * c + b * e, b * c - a * e
        c2, s2 = turn_c * cosine - turn_s * sine, turn_s * cosine + turn_c * sine
        # end = Rz(q1) (first + Rz(q2) second)
        x = self.first[0] + c2 * self.second[0] - s2 * self.second[1]
        y = self.first[1] + s2 * self.second[0] + c2 * self.second[1]
        inverse = 1.0 / square
        return [angle((d[0] * x + d[1] * y) * inverse, (d[1] * x - d[0] * y) * inverse), angle(c2, s2)]


def recognise_leg(tree: Tree, links: list[int], end: Place, q: Array) -> UniversalPrismaticLeg | TwoRevoluteLeg | None:
    """Return the closed form of a leg, on its side at `q`, or None for other legs."""
    kinds = [tree.links[j].joint.kind for j in links]
    axes = [tree.links[j].joint.axis for j in links]
    if any(axis != 2 for axis in axes) or tree.links[links[0]].parent != -1:
        return None
    if kinds == ["revolute", "revolute", "prismatic"]:
        return _crossed_slide(tree, links, end, q)
    if kinds == ["revolute", "revolute"]:
        return _two_bars(tree, links, end, q)
    return None


def _crossed_slide(tree: Tree, links: list[int], end: Place, q: Array) -> UniversalPrismaticLeg | None:
    first, second, third = (tree.links[j] for j in links)
    axis_2, slide = second.rotation[:, 2], third.rotation[:, 2]
    straight = np.allclose(second.position, 0, atol=1e-12) and np.allclose(end.position[:2], 0, atol=1e-12)
    offset = float(slide @ third.position) + float(end.position[2])
    through = np.allclose(third.position, slide * (slide @ third.position), atol=1e-12)
    if not straight or not through or abs(axis_2[2]) > 1e-12 or abs(slide[2]) > 1e-12:
        return None
    radial = np.array([axis_2[1], -axis_2[0]]).round(15)  # horizontal, at right angles to axis 2
    radial_direction = np.array([radial[0], radial[1], 0.0])
    # height and radius of the end for a unit stroke are linear in cos q2 and sin q2
    slides = np.column_stack([second.rotation @ rotation_about(2, angle) @ slide for angle in (0.0, np.pi / 2)])
    lift = np.array([slides[2], radial_direction @ slides]).round(15)
    value = q[third.q.start] + offset
    radius = float(lift[1] @ [np.cos(q[second.q.start]), np.sin(q[second.q.start])]) * value
    return UniversalPrismaticLeg(first.rotation, first.position, radial, lift, _side(radius), _side(value), offset)


def _two_bars(tree: Tree, links: list[int], end: Place, q: Array) -> TwoRevoluteLeg | None:
    first, second = (tree.links[j] for j in links)
    if not np.allclose(second.rotation, np.eye(3), atol=1e-12):
        return None
    bar_1, bar_2 = second.position[:2], end.position[:2]
    if np.hypot(*bar_1) < 1e-9 or np.hypot(*bar_2) < 1e-9:
        return None
    rotated_bar = rotation_about(2, q[second.q.start])[:2, :2] @ bar_2
    side = _side(float(bar_1[0] * rotated_bar[1] - bar_1[1] * rotated_bar[0]))
    return TwoRevoluteLeg(first.rotation, first.position, bar_1, bar_2, side)


def _side(value: float) -> float:
    return 1.0 if value >= 0 else -1.0


@dataclass(frozen=True, eq=False, repr=False)
class Pivot(Record):
    """A revolute joint between two bodies: that of a link, or a closure."""

    link: int
    loop: Loop | None = None

    @property
    def ends(self) -> tuple[int, ...]:
        """Links that determine its place."""
        return (self.link,) if self.loop is None else (self.loop.first.link,)

    def centre(self, at: Pose) -> Array:
        """Return the centre in the world."""
        return at.position[self.link] if self.loop is None else at.of(self.loop.first)[1]

    def axis(self, tree: Tree, at: Pose) -> Array:
        """Return the axis in the world."""
        if self.loop is None:
            return at.rotation[self.link][:, tree.links[self.link].joint.axis]
        return at.of(self.loop.first)[0] @ (np.eye(3)[2] if tree.planar else self.loop.u1)


class Sign(Record, ABC):
    """A number whose sign determines the side of a singularity."""

    side: float  # at the reference

    @abstractmethod
    def value(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> float:
        """Return the number at a pose."""

    def fits(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> bool:
        """Return whether a pose is on the side of the reference."""
        return bool(self.side * self.value(tree, at, links) >= 0)


class _LegNumber(Sign):
    """A number of bodies between joints, over any scalar."""

    @abstractmethod
    def sine(self, tree: Tree, at: Pose) -> Any:
        """Return the number, over any scalar."""

    def value(self, tree: Tree, at: Pose, links: Sequence[tuple[Array, Array]]) -> float:
        """Return the number at a pose."""
        return float(self.sine(tree, at))


@dataclass(frozen=True, eq=False, repr=False)
class Dyad(_LegNumber):
    """Two bodies between pivots of known places, and the pivot between them."""

    pivots: tuple[Pivot, Pivot, Pivot]  # that which joins the two in the middle
    side: float = 0.0  # sign of the sine at the reference

    @property
    def ends(self) -> tuple[int, ...]:
        """Links that determine its pivots."""
        return tuple(link for pivot in self.pivots for link in pivot.ends)

    def sine(self, tree: Tree, at: Pose) -> Any:
        """Return the sine of the angle between its bodies, times both lengths, over any scalar."""
        first, middle, last = (pivot.centre(at) for pivot in self.pivots)
        return self.pivots[1].axis(tree, at) @ cross(middle - first, last - middle)


def dyads(tree: Tree, rows: Sequence[Any], columns: Array, reference: Array) -> list[Dyad] | None:
    """Return dyads that place all bodies of a part one after the other, or None.

    Their signs distinguish all assemblies of the part. For two bodies that rotate about parallel axes at two known
    places, the pivot between them lies on two circles. The circles meet in two points, mirrored in the line of
    centres, so the sine at this pivot has opposite signs and places both bodies (coinciding circles give the sine
    0). Then further bodies depend on known places, the coordinates of all joints follow from bodies up to whole
    turns, and unused rows can only exclude assemblies.
    """
    bodies = _Bodies(tree, rows, {int(k) for k in columns})
    if not bodies.is_supported:
        return None
    at, result = pose(tree, reference), []
    while bodies.unknown():
        new = next((dyad for dyad in bodies.candidates() if _flat(dyad, tree, at)), None)
        if new is None:
            return None
        bodies.place(new)
        first, middle, last = (pivot.centre(at) for pivot in new.pivots)
        sine = float(new.sine(tree, at))
        if abs(sine) <= FLAT * np.linalg.norm(middle - first) * np.linalg.norm(last - middle):
            return None
        result.append(Dyad(new.pivots, float(np.sign(sine))))
    return result


def _flat(dyad: Dyad, tree: Tree, at: Pose) -> bool:
    """Return whether the axes of its pivots are parallel, as those of one body at all poses."""
    first, *other_axes = (pivot.axis(tree, at) for pivot in dyad.pivots)
    return all(float(np.linalg.norm(cross(first, axis))) < PARALLEL for axis in other_axes)


class _Bodies:
    """Links without relative motion as one body, and the pivots between bodies."""

    def __init__(self, tree: Tree, rows: Sequence[Any], moving: set[int]) -> None:
        ties: list[set[int]] = [{j} for j in (GROUND, *range(len(tree.links)))]
        self.is_supported = True
        tied: list[tuple[int, int, Pivot]] = []
        touched: set[int] = set()
        for j, link in enumerate(tree.links):
            link_rates, joint = moving & set(range(link.v.start, link.v.stop)), link.joint
            moving = moving - link_rates
            touched |= {j} if link_rates else set()
            if not link_rates:
                ties.append({j, link.parent})
            elif joint.periodic:
                tied.append((j, link.parent, Pivot(j)))
            whole = len(link_rates) in (0, link.v.stop - link.v.start) and not joint.pitch
            self.is_supported &= not link_rates or (whole and (joint.one_axis or joint.moves_freely))
        self.is_supported = self.is_supported and not moving  # deformations
        dimension = 2 if tree.planar else 3
        for row in rows:
            if not isinstance(row, Loop) or len(row.translations) != dimension:
                continue
            if row.turning == "none":
                ties.append({row.first.link, row.second.link})
            elif row.turning == ("free" if tree.planar else "about-axis"):
                tied.append((row.first.link, row.second.link, Pivot(row.first.link, row)))
        body = {j: number for number, (_, links) in enumerate(connected(ties)) for j in links}
        self.tied = [(body[a], body[b], pivot) for a, b, pivot in tied]
        self.known = {body[GROUND]}
        self.touched = {body[j] for j in touched}

    def unknown(self) -> set[int]:
        """Return bodies that no dyad has placed."""
        return self.touched - self.known

    def candidates(self) -> Iterator[Dyad]:
        """Return pairs of bodies joined by a pivot, each with a pivot on a known body."""
        for a, b, middle in self.tied:
            if a != b and not {a, b} & self.known:
                for first in self._pivots_on_placed(a):
                    for last in self._pivots_on_placed(b):
                        yield Dyad((first, middle, last))

    def _pivots_on_placed(self, body: int) -> Iterator[Pivot]:
        for a, b, pivot in self.tied:
            if (a == body and b in self.known) or (b == body and a in self.known):
                yield pivot

    def place(self, dyad: Dyad) -> None:
        """Mark the bodies of a dyad as known."""
        for a, b, pivot in self.tied:
            if pivot is dyad.pivots[1]:
                self.known |= {a, b}


@dataclass(frozen=True, eq=False, repr=False)
class JointAxis(Record):
    """The axis of a joint in the world: a point, a direction, and whether the joint rotates."""

    point: Array
    along: Array
    turns: bool

    def moves(self, place: Array) -> Any:
        """Return the velocity of a place per unit rate."""
        return cross(self.along, place - self.point) if self.turns else self.along


def joint_axis(tree: Tree, at: Pose, link: int) -> JointAxis:
    """Return the axis of the joint of a link."""
    joint = tree.links[link].joint
    return JointAxis(at.position[link], at.rotation[link][:, joint.axis], bool(joint.periodic))


@dataclass(frozen=True, eq=False, repr=False)
class PointLeg(Record):
    """A leg by its joints from the known body, and its closure."""

    arm: tuple[int, int, int]  # links of the joints that bring the centre of the closure to its place
    wrist: tuple[int, ...]  # of those that only turn about it
    loop: Loop
    carries_first: bool  # whether the first place of the closure is on the leg
    kind: str  # how the two neighbours lie: crossed or parallel
    alone: int  # which of the three joints follows first: the first or the last
    linkage: Parallelogram | None = None  # whose bar is the last of the three

    @property
    def end(self) -> Place:
        """Place of the closure on the leg."""
        return self.loop.first if self.carries_first else self.loop.second

    @property
    def goal(self) -> Place:
        """Place of the closure on the other body."""
        return self.loop.second if self.carries_first else self.loop.first

    @property
    def pair(self) -> tuple[int, int]:
        """The two neighbours among the three joints."""
        return (1, 2) if self.alone == 0 else (0, 1)

    @property
    def ends(self) -> tuple[int, ...]:
        """Links that determine the places of its joints."""
        return (*self.moving, *self.loop.ends, *(() if self.linkage is None else self.linkage.loop.ends))

    @property
    def moving(self) -> tuple[int, ...]:
        """Links of its moving joints."""
        return (*self.arm, *self.wrist, *(() if self.linkage is None else self.linkage.links[1:]))

    def lines(self, tree: Tree, at: Pose) -> list[JointAxis]:
        """Return the axes along or about which the three joints move the closure, over any scalar."""
        axes = [joint_axis(tree, at, j) for j in self.arm]
        if self.linkage is not None:  # the centre turns about a point as far from it as the bar is long
            axes[2] = replace(axes[2], point=at.of(self.end)[1] - self.linkage.arm(at))
        return axes

    def turning(self, lines: Sequence[JointAxis]) -> list[bool]:
        """Return which of the three joints rotate the next body: a parallelogram does not."""
        rotates = [line.turns for line in lines]
        return [*rotates[:2], rotates[2] and self.linkage is None]

    def numbers(self, tree: Tree, at: Pose) -> tuple[Any, ...]:
        """Return numbers whose signs distinguish its assemblies, over any scalar: of the first joint, of the two.

        Numbers of its parallelogram follow.
        """
        inner = () if self.linkage is None else self.linkage.numbers(tree, at)
        lines, E = self.lines(tree, at), at.of(self.end)[1]
        lone_axis, (i, j) = lines[self.alone], self.pair
        if self.kind == CROSSED_AXES:
            C = nearest_point(lines[i], lines[j])
            moving_point, fixed_point = (C, E) if self.alone == 0 else (E, C)
            lone = (moving_point - fixed_point) @ lone_axis.moves(moving_point)
            return lone, (E - C) @ cross(lines[i].along, lines[j].along), *inner
        return self._height(lines, E), _in_plane(lines[i], lines[j], E), *inner

    def _height(self, lines: Sequence[JointAxis], E: Array) -> Any:
        """Return the rate at which the first joint changes the invariant height of the other two."""
        lone_axis, normal = lines[self.alone], plane_normal(*(lines[k] for k in self.pair))
        rate = normal @ lone_axis.moves(E)
        return rate if self.alone == 0 or not lone_axis.turns else -rate


def _in_plane(first: JointAxis, second: JointAxis, E: Array) -> Any:
    """Return which of two solutions neighbours take in their plane."""
    if second.turns and not first.turns:
        return (second.point - E) @ first.along
    return in_plane(E - first.point, plane_normal(first, second)) @ second.moves(E)


def in_plane(vector: Array, normal: Array) -> Any:
    """Return the projection of a vector on a plane."""
    return vector - normal * (normal @ vector)


def nearest_point(first: JointAxis, second: JointAxis) -> Any:
    """Return the point of a line nearest to another line."""
    n = cross(first.along, second.along)
    t = cross(second.point - first.point, second.along) @ n / (n @ n)
    return first.point + t * first.along


def plane_normal(first: JointAxis, second: JointAxis) -> Array:
    """Return the direction in which two neighbours in a plane move nothing."""
    return first.along if first.turns else second.along


@dataclass(frozen=True, eq=False, repr=False)
class LegSign(_LegNumber):
    """One of the numbers of a leg."""

    leg: PointLeg
    which: int
    side: float = 0.0  # its sign at the reference

    @property
    def ends(self) -> tuple[int, ...]:
        """Links that determine the places of the joints of the leg."""
        return self.leg.ends

    def sine(self, tree: Tree, at: Pose) -> Any:
        """Return the number, over any scalar."""
        return self.leg.numbers(tree, at)[self.which]


def leg_signs(tree: Tree, rows: Sequence[Any], columns: Array, reference: Array) -> list[LegSign] | None:
    """Return the signs that distinguish the assemblies of a point leg, or None for another part.

    Unused rows can only exclude assemblies.
    """
    leg = point_leg(tree, rows, columns, reference)
    if leg is None:
        return None
    at, signs = pose(tree, reference), []
    rotates = [joint_axis(tree, at, j).turns for j in leg.arm]
    lone_turns, pair_turns = rotates[leg.alone], all(rotates[k] for k in leg.pair)
    powers: tuple[int, ...] = (
        (1 + lone_turns, 1) if leg.kind == CROSSED_AXES else (int(lone_turns), 1 + pair_turns)
    )  # of lengths, in the units of the numbers
    powers += () if leg.linkage is None else (2, 2)
    for which, (number, power) in enumerate(zip(leg.numbers(tree, at), powers, strict=True)):
        if abs(float(number)) <= FLAT * tree.length**power:
            return None
        if power:  # a slide through a plane has one root
            signs.append(LegSign(leg, which, float(np.sign(number))))
    return signs


def point_leg(tree: Tree, rows: Sequence[Any], columns: Array, reference: Array) -> PointLeg | None:
    """Return a part as a point leg, or None."""
    if tree.planar or len(rows) > 2 or not all(isinstance(row, Loop) and len(row.translations) == 3 for row in rows):
        return None
    rates = {int(k) for k in columns}
    moving = {tree.link_of_rate[k] for k in rates}
    joints = [tree.links[j].joint for j in moving]
    if any(not joint.one_axis or joint.pitch for joint in joints) or len(moving) < len(rates):
        return None
    at = pose(tree, reference)
    for loop, *inner in (rows, rows[::-1])[: len(rows)]:
        for leg in _legs(tree, loop, inner, moving, at):
            vanishing = vanishing_terms(leg, tree, at, tree.length)
            if all(float(np.abs(part).max()) < EXACT for part in vanishing) and _regular(leg, tree, at):
                return leg
    return None


def _legs(tree: Tree, loop: Loop, inner: Sequence[Loop], moving: set[int], at: Pose) -> Iterator[PointLeg]:
    """Return candidates of point legs that end in a loop, with a parallelogram or without."""
    first, second = (set(tree.path(place.link)) if place.link >= 0 else set() for place in (loop.first, loop.second))
    for path, carries_first in ((first - second, True), (second - first, False)):
        chain = sorted(path & moving)
        linkage = find_parallelogram(tree, inner[0], chain, at) if inner else None
        around = set() if linkage is None else {linkage.coupler, linkage.other}
        if (inner and linkage is None) or set(chain) | around != moving:
            continue
        joints = [j for j in chain if j not in around]
        arm, wrist = joints[:3], joints[3:]
        if len(arm) < 3 or len(wrist) > 1 or (wrist and loop.turning != "about-axis"):
            continue
        if any(not tree.links[j].joint.periodic for j in wrist) or (linkage is not None and linkage.bar != arm[2]):
            continue
        for kind, alone in ((CROSSED_AXES, 0), (CROSSED_AXES, 2), (PARALLEL_AXES, 0), (PARALLEL_AXES, 2)):
            yield PointLeg((arm[0], arm[1], arm[2]), tuple(wrist), loop, carries_first, kind, alone, linkage)


def vanishing_terms(leg: PointLeg, tree: Tree, at: Pose, length: float = 1.0) -> list[Any]:
    """Return terms that vanish for the arrangement of its kind, over any scalar, in lengths and radians.

    One body has both axes, so the arrangement holds at all poses, but designs may change it.
    """
    lines, E = leg.lines(tree, at), at.of(leg.end)[1]
    terms = [joint_axis(tree, at, j).moves(E) / length for j in leg.wrist]
    terms += [] if leg.linkage is None else leg.linkage.structure(tree, at, length)
    first, second = (lines[k] for k in leg.pair)
    if leg.kind == CROSSED_AXES:
        return [*terms, (second.point - first.point) @ cross(first.along, second.along) / length]
    normal = plane_normal(first, second)
    return terms + [cross(normal, line.along) if line.turns else normal @ line.along for line in (first, second)]


def _regular(leg: PointLeg, tree: Tree, at: Pose) -> bool:
    """Return whether joints have the kinds of the leg, and axes are clearly crossed or off the plane."""
    lines = leg.lines(tree, at)
    first, second = (lines[k] for k in leg.pair)
    if leg.kind == CROSSED_AXES:
        return first.turns and second.turns and bool(np.linalg.norm(cross(first.along, second.along)) > SLANTED)
    normal, lone_axis = plane_normal(first, second), lines[leg.alone]
    slant = np.linalg.norm(cross(normal, lone_axis.along)) if lone_axis.turns else abs(normal @ lone_axis.along)
    return (first.turns or second.turns) and bool(slant > SLANTED)


@dataclass(frozen=True, eq=False, repr=False)
class Parallelogram(Record):
    """A loop of two bars between a carrier and a coupler, by the links of its joints."""

    bar: int  # the bar that carries the coupler
    coupler: int
    other: int  # the other bar, mounted on the carrier or on the coupler
    loop: Loop  # what ties its end to the last of the four
    on_carrier: bool  # whether it is mounted on the carrier
    senses: tuple[float, float] = (1.0, 1.0)  # of the joints of coupler and other bar, beside that of the bar

    @property
    def links(self) -> tuple[int, int, int]:
        """Links of its joints."""
        return self.bar, self.coupler, self.other

    def corners(self, at: Pose) -> tuple[Array, Array, Array, Array]:
        """Return the pivots of the bar on carrier and coupler, and of the other bar on both."""
        far_end = self.loop.first if self.loop.second.link == self.other else self.loop.second
        other = at.position[self.other], at.of(far_end)[1]
        return at.position[self.bar], at.position[self.coupler], *(other if self.on_carrier else other[::-1])

    def axis(self, tree: Tree, at: Pose) -> Array:
        """Return the axis of the bar in the world."""
        return at.rotation[self.bar][:, tree.links[self.bar].joint.axis]

    def arm(self, at: Pose) -> Array:
        """Return the vector from the pivot of the bar on the carrier to that on the coupler."""
        return at.position[self.coupler] - at.position[self.bar]

    def numbers(self, tree: Tree, at: Pose) -> tuple[Any, Any]:
        """Return numbers whose signs determine its assembly: of bar on carrier, of coupler on the other bar.

        In the parallel assembly both are its area; in the crossed assembly their signs differ.
        """
        B, C, B2, C2 = self.corners(at)
        n = self.axis(tree, at)
        return n @ cross(B2 - B, C - B), n @ cross(C2 - C, C2 - B2)

    def structure(self, tree: Tree, at: Pose, length: float = 1.0) -> list[Any]:
        """Return terms that vanish for a closed parallelogram, over any scalar."""
        n = self.axis(tree, at)
        B, C, B2, C2 = self.corners(at)
        tip_place = self.loop.second if self.loop.second.link == self.other else self.loop.first
        tip = at.of(tip_place)[1] - at.position[self.other]
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
        """Return the parallelogram with other link numbers."""
        bar, coupler, other = (number[j] for j in self.links)
        return replace(self, bar=bar, coupler=coupler, other=other, loop=loop)


def find_parallelogram(tree: Tree, loop: Any, path: Sequence[int], at: Pose) -> Parallelogram | None:
    """Return a loop as a parallelogram with a bar and the coupler on a path of links, or None."""
    if not isinstance(loop, Loop) or len(loop.translations) != 3 or loop.turning not in ("free", "about-axis"):
        return None
    inside = loop.links(tree)
    on_path, off_path = [j for j in inside if j in path], [j for j in inside if j not in path]
    if len(on_path) != 2 or len(off_path) != 1 or not all(tree.links[j].joint.periodic for j in inside):
        return None
    (bar, coupler), other = on_path, off_path[0]
    carrier, mounted = tree.links[bar].parent, tree.links[other].parent
    if tree.links[coupler].parent != bar or mounted not in (carrier, coupler):
        return None
    if set(loop.ends) != {other, coupler if mounted == carrier else carrier}:
        return None
    parallelogram = Parallelogram(bar, coupler, other, loop, mounted == carrier)
    if any(float(np.abs(part).max()) > EXACT for part in parallelogram.structure(tree, at, tree.length)):
        return None
    n = parallelogram.axis(tree, at)
    senses = [float(np.sign(n @ at.rotation[j][:, tree.links[j].joint.axis])) for j in (coupler, other)]
    return replace(parallelogram, senses=(-senses[0], senses[1]))


def drive_springs(tree: Tree, closures: Closures) -> tuple[int, ...]:
    """Return links on a spring joint with the axis of the previous joint, whose link carries nothing else.

    No loop distinguishes both joints: at a requested pose the spring is unstretched.
    """
    loop_links = {place.link for loop in closures.loops for place in (loop.first, loop.second)}
    coupled = {j for row in closures.constraints for j in row.ends} | {j for s in tree.springs for j in s.numbers}
    carried = [link.parent for link in tree.links]
    return tuple(
        number
        for number, link in enumerate(tree.links)
        if (link.terms.stiffness or link.terms.idle)
        and link.parent != GROUND
        and link.parent not in loop_links
        and number not in coupled
        and carried.count(link.parent) == 1
        and _repeats(link, tree.links[link.parent], tree.length)
    )


def _repeats(link: Link, before: Link, length: float) -> bool:
    """Return whether both joints have the same axis, and screws the same pitch."""
    if link.joint.kind != before.joint.kind or not link.joint.one_axis or link.node is not None:
        return False
    if abs(link.joint.pitch - before.joint.pitch) > SAME * abs(before.joint.pitch):
        return False
    axis = link.rotation[:, link.joint.axis]
    lateral = np.delete(link.position, before.joint.axis)
    parallel = abs(abs(axis[before.joint.axis]) - 1) < SAME
    return bool(parallel and (link.joint.kind == "prismatic" or np.abs(lateral).max() < SAME * length))
