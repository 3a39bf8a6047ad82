"""Poses of legs that move in a plane, in closed form: dyad by dyad, as circles meet.

Newton's method does not prove that a pose is out of reach, and its trials are in vain there. Two circles that do not
meet prove it; where all of them meet, their points on the side of home are positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.closure.assembly.assembler import ClosurePart
from parflex.closure.dyads import PARALLEL, Pivot, dyads
from parflex.closure.loops import Loop
from parflex.closure.targets import Target
from parflex.closure.working_modes import sides
from parflex.maps.batches import Geometry
from parflex.records import Record
from parflex.recursion import pose
from parflex.spatial import cross
from parflex.tree import Tree
from parflex.tree.link_tree import GROUND

Array = np.ndarray
SPARE = 1e-9  # of the typical length: how far apart circles must be to count as apart; rounding is far below
FLAT = 1e-5  # of the typical length: height of a triangle from which rounding of its tip is below SPARE
NAMES = {"x", "y", "z", "theta", "rx", "ry", "rz"}


@dataclass(frozen=True, eq=False, repr=False)
class Circles(Record):
    """A dyad at home: points of the plane as complex numbers, and the groups of links that it is on."""

    points: tuple[complex, complex, complex]  # its pivots, that which joins its bodies in the middle
    known: tuple[int, int]  # groups on which its ends are
    placed: tuple[int, int]  # groups of its two bodies
    above: float  # side of the middle, seen from the first end to the last
    judged: bool  # whether the side is asked for: else all that follows may be otherwise too


@dataclass(frozen=True, eq=False, repr=False)
class PlanarLeg(Record):
    """A leg: its plane, its dyads, and the joints that turn in it."""

    across: Array  # axes of the plane and its normal, in rows
    circles: tuple[Circles, ...]
    turning: tuple[tuple[int, float], ...]  # links, and whether they turn about the normal or against it


@dataclass(frozen=True, eq=False, repr=False)
class DyadPlaces(Record):
    """Planar legs of a robot whose platform is given."""

    tree: Tree
    home: Array
    platform: int
    group: dict[int, int]  # of links that do not move against each other
    legs: tuple[PlanarLeg, ...]

    def __call__(self, start: Array) -> tuple[Array, Array]:
        """Rows with given coordinates that are proved to be out of reach, and rows with joints as circles meet."""
        beyond, q = np.zeros(len(start), dtype=bool), start.copy()
        for leg in self.legs:
            self._leg(leg, start, beyond, q)
        return beyond, q

    def _platform(self, start: Array, across: Array) -> tuple[Array, Array, Array]:
        """How the platform moves in a plane from home, as z -> c + e z; and rows in which it does not leave it."""
        own, home = self.tree.links[self.platform].q.start, self.home
        if self.tree.planar:
            turn, flat = np.exp(1j * (start[:, own + 2] - home[own + 2])), np.ones(len(start), dtype=bool)
            places, first = start[:, own : own + 2] @ across[:, :2].T, across[:, :2] @ home[own : own + 2]
        else:
            w, v = start[:, own + 3], start[:, own + 4 : own + 7]
            w0, v0 = home[own + 3], home[own + 4 : own + 7]
            scalar, vector = w * w0 + v @ v0, np.outer(w, -v0) + v * w0 - np.cross(v, v0)
            turn = (scalar + 1j * (vector @ across[2])) ** 2  # of twice half the angle
            places, first = start[:, own : own + 3] @ across.T, across @ home[own : own + 3]
            flat = np.abs(vector @ across[:2].T).max(axis=1) < PARALLEL
        return places[:, 0] + 1j * places[:, 1] - turn * complex(first[0], first[1]), turn, flat

    def _leg(self, leg: PlanarLeg, start: Array, beyond: Array, q: Array) -> None:
        L, still = self.tree.length, np.zeros(len(start), dtype=complex)
        moved, turn, sure = self._platform(start, leg.across)
        motion = {self.group[GROUND]: (still, still + 1.0), self.group[self.platform]: (moved, turn)}
        for one in leg.circles:
            z1, z2, z3 = one.points
            (c1, e1), (c3, e3) = motion[one.known[0]], motion[one.known[1]]
            first, last, a, b = c1 + e1 * z1, c3 + e3 * z3, abs(z2 - z1), abs(z3 - z2)
            way = last - first
            far = np.maximum(np.abs(way), SPARE * L)
            beyond |= sure & ((far > a + b + SPARE * L) | (far < abs(a - b) - SPARE * L))
            along = (far * far + a * a - b * b) / (2.0 * far)
            height = np.sqrt(np.maximum(a * a - along * along, 0.0))
            sure = sure & (height > FLAT * L) & one.judged
            middle = first + way / far * (along + 1j * one.above * height)
            turns = (middle - first) / (z2 - z1), (last - middle) / (z3 - z2)
            for placed, point, home, e in zip(one.placed, (first, last), (z1, z3), turns, strict=True):
                motion[placed] = point - e * home, e
        for j, sense in leg.turning:
            k = self.tree.links[j].q.start
            own, carried = motion[self.group[j]][1], motion[self.group[self.tree.links[j].parent]][1]
            angle = self.home[k] + sense * np.angle(own * carried.conj())
            q[:, k] = angle + 2 * np.pi * np.round((start[:, k] - angle) / (2 * np.pi))


def dyad_places(geometry: Geometry, names: Sequence[str], target: Target) -> DyadPlaces | None:
    """Where the legs of a robot are dyads between ground and platform, and coordinates those of the platform alone."""
    robot, tree = geometry.robot, geometry.tree
    platform = tree.places[tree.end_effector].link
    if geometry.designs is not None or not set(names) <= NAMES or target.frames or platform == GROUND:
        return None
    if not tree.links[platform].joint.moves_freely or tree.links[platform].parent != GROUND:
        return None
    parts = robot.assembler.parts(target, robot.locked | frozenset(robot.deformations))
    moving = {robot.tree.link_of_rate[int(k)] for part in parts for k in part.columns}
    if platform in moving or not all(tree.links[j].joint.periodic for j in moving):
        return None
    group = _groups(tree, moving | {platform}, [row for part in parts for row in part.rows])
    if group[platform] == group[GROUND]:
        return None
    legs = [_leg(geometry, part, group, platform) for part in parts if len(part.columns)]
    found = tuple(leg for leg in legs if leg is not None)
    return DyadPlaces(tree, geometry.home, platform, group, found) if len(found) == len(legs) else None


def _leg(geometry: Geometry, part: ClosurePart, group: dict[int, int], platform: int) -> PlanarLeg | None:
    """A part of the robot by its dyads; None where it is not planar, or hangs on others."""
    robot, tree, at = geometry.robot, geometry.tree, pose(geometry.tree, geometry.home)
    judged = sides(robot.tree, part.rows, part.columns, part.held, robot.preference, robot.home)
    found = judged.dyads or dyads(robot.tree, part.rows, part.columns, robot.home)
    if not found:
        return None
    normal = np.asarray(found[0].pivots[1].axis(tree, at), dtype=float)
    links = sorted({robot.tree.link_of_rate[int(k)] for k in part.columns})
    axes = [Pivot(j).axis(tree, at) for j in links] + [p.axis(tree, at) for one in found for p in one.pivots]
    if any(np.linalg.norm(cross(normal, axis)) > PARALLEL for axis in axes):
        return None
    aside = np.eye(3)[int(np.argmin(np.abs(normal)))]
    u = cross(aside, normal) / np.linalg.norm(cross(aside, normal))
    across = np.array([u, cross(normal, u), normal])
    circles: list[Circles] = []
    known = {group[GROUND], group[platform]}
    for one in found:
        a, b = _ends(tree, one.pivots[1], group)
        first, last = (_ends(tree, one.pivots[k], group) for k in (0, 2))
        if a not in first:
            a, b = b, a
        if a not in first or b not in last or {a, b} & known:
            return None
        bases = sum(first) - a, sum(last) - b
        if not set(bases) <= known:
            return None
        flat = [across @ pivot.centre(at) for pivot in one.pivots]
        points = complex(*flat[0][:2]), complex(*flat[1][:2]), complex(*flat[2][:2])
        above = float(np.sign(((points[1] - points[0]) * (points[2] - points[0]).conjugate()).imag))
        circles.append(Circles(points, bases, (a, b), above, bool(judged.dyads)))
        known |= {a, b}
    if not {group[k] for j in links for k in (j, tree.links[j].parent)} <= known:
        return None
    senses = [float(np.sign(normal @ Pivot(j).axis(tree, at))) for j in links]
    return PlanarLeg(across, tuple(circles), tuple(zip(links, senses, strict=True)))


def _ends(tree: Tree, pivot: Pivot, group: dict[int, int]) -> tuple[int, int]:
    """Groups that a pivot joins."""
    if pivot.loop is None:
        return group[pivot.link], group[tree.links[pivot.link].parent]
    return group[pivot.loop.first.link], group[pivot.loop.second.link]


def _groups(tree: Tree, moving: set[int], rows: Sequence[Any]) -> dict[int, int]:
    """Links that do not move against each other, by the number of one of them."""
    group = {j: j for j in (GROUND, *range(len(tree.links)))}
    across = 2 if tree.planar else 3
    tied = [(j, link.parent) for j, link in enumerate(tree.links) if j not in moving]
    tied += [
        (row.first.link, row.second.link)
        for row in rows
        if isinstance(row, Loop) and row.turning == "none" and len(row.translations) == across
    ]
    for first, second in tied:
        old, new = group[first], group[second]
        group = {j: new if own == old else own for j, own in group.items()}
    return group
