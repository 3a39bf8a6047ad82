"""Bodies of legs: links that do not move against each other, and where pivots are on them, over any scalar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.closure.constraints import Loop
from parflex.closure.leg_geometry import Dyad, LegSign, Pivot, PointLeg, vanishing_terms
from parflex.closure.targets import Target
from parflex.closure.working_modes import working_mode_signs
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program
from parflex.maps.batches import Geometry, rigid_tree
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.symbolic.expression import Expression
from parflex.tree.tree import GROUND, Place, Tree

Array = np.ndarray
Frame = tuple[Array, Array]  # rotation and position


class LegBodies:
    """Groups of links with frames of their own: that of the platform, of the ground, or of their first link.

    `loops` are closures by the identity of those that rows name, with symbols where designs differ.
    """

    def __init__(
        self, tree: Tree, home: Array, moving: set[int], rows: Sequence[Any], loops: dict[int, Loop], platform: int
    ) -> None:
        self.tree, self.loops = tree, loops
        self.at = pose(tree, home)
        across = 2 if tree.planar else 3
        tied: list[tuple[int, int, Frame]] = [
            (link.parent, j, (self.at.local_rotation[j], self.at.local_position[j]))
            for j, link in enumerate(tree.links)
            if j not in moving
        ]
        for row in rows:
            if isinstance(row, Loop) and row.turning == "none" and len(row.translations) == across:
                own = loops.get(id(row), row)
                tied.append((own.first.link, own.second.link, _joined(_frame(own.first), _turned(_frame(own.second)))))
        self.root: dict[int, int] = {}  # of each link, that whose frame its group has
        self.local: dict[int, Frame] = {}
        for first in (GROUND, platform, *range(len(tree.links))):
            if first not in self.root:
                self._reach(first, tied)

    def _reach(self, first: int, tied: list[tuple[int, int, Frame]]) -> None:
        self.root[first], self.local[first] = first, (np.eye(3), np.zeros(3))
        waiting = [first]
        while waiting:
            here = waiting.pop()
            for a, b, frame in tied:
                for known, new, step in ((a, b, frame), (b, a, _turned(frame))):
                    if known == here and new not in self.root:
                        self.root[new], self.local[new] = first, _joined(self.local[here], step)
                        waiting.append(new)

    def sides(self, pivot: Pivot) -> dict[int, tuple[Array, Array]]:
        """Of each of the two groups that a pivot joins: its place and its axis in the frame of the group."""
        if pivot.loop is None:
            parent, axis = self.tree.links[pivot.link].parent, np.eye(3)[self.tree.links[pivot.link].joint.axis]
            own = self.local[pivot.link]
            on = _joined(self.local[parent], (self.at.local_rotation[pivot.link], self.at.local_position[pivot.link]))
            return {self.root[pivot.link]: (own[1], own[0] @ axis), self.root[parent]: (on[1], on[0] @ axis)}
        loop = self.loops.get(id(pivot.loop), pivot.loop)
        found = {}
        for place, axis in ((loop.first, loop.u1), (loop.second, loop.u2)):
            R, p = _joined(self.local[place.link], _frame(place))
            found[self.root[place.link]] = p, R @ (np.eye(3)[2] if self.tree.planar else axis)
        return found

    def with_loops(self, leg: PointLeg) -> PointLeg:
        """The leg with symbols in its closures where designs differ."""
        inner, loop = leg.linkage, self.loops.get(id(leg.loop), leg.loop)
        if inner is not None:
            inner = replace(inner, loop=self.loops.get(id(inner.loop), inner.loop))
        return replace(leg, loop=loop, linkage=inner)

    def tilts(self, dyads: Sequence[Dyad | LegSign]) -> bool:
        """Whether designs turn an axis of a dyad on its body: then axes that are parallel at home need not stay so."""
        pivots = [pivot for one in dyads if isinstance(one, Dyad) for pivot in one.pivots]
        axes = [axis for pivot in pivots for _, axis in self.sides(pivot).values()]
        return any(isinstance(x, Expression) for axis in axes for x in np.ravel(axis))


def _bodies(geometry: Geometry, robot: Robot, rows: Sequence[Any], rates: Sequence[int]) -> LegBodies:
    """Bodies of a part, over symbols where designs differ."""
    loops = {id(own): loop for own, loop in zip(geometry.robot.closures.loops, robot.closures.loops, strict=True)}
    moving = {geometry.robot.tree.link_of_rate[int(k)] for k in rates}
    return LegBodies(rigid_tree(robot.tree), geometry.home, moving, rows, loops, GROUND)


def tilted(geometry: Geometry, rows: Sequence[Any], rates: Sequence[int], dyads: Sequence[Dyad | LegSign]) -> bool:
    """Whether designs turn axes of the dyads of a part, whose joints have these rates, or take a leg in space apart."""
    if geometry.designs is None or not dyads:
        return False
    if any(isinstance(one, LegSign) for one in dyads) and geometry.legs_differ:
        return True
    return _bodies(geometry, geometry.traced()[1], rows, rates).tilts(dyads)


def leg_structure(geometry: Geometry, target: Target) -> Program | None:
    """From numbers of a design to what vanishes where joints of its legs in space lie as those of the nominal robot.

    None where no number of designs says where they lie.
    """
    robot = geometry.robot
    graph, traced = geometry.traced()
    found: list[Any] = []
    for part in robot.assembler.parts(target, robot.locked | frozenset(robot.deformations)):
        own = working_mode_signs(robot.tree, part.rows, part.columns, part.held, robot.preference, robot.home).dyads
        legs = [one.leg for one in own if isinstance(one, LegSign)][:1]
        for leg in legs:
            bodies = _bodies(geometry, traced, part.rows, part.columns.tolist())
            found += vanishing_terms(bodies.with_loops(leg), bodies.tree, bodies.at, robot.tree.length)
    varied = [x for part in found for x in np.ravel(part) if isinstance(x, Expression)]
    outputs = {"structure": np.array(varied, dtype=object)}
    return make_program(graph, "structure", outputs, quick=True) if varied else None


def _frame(place: Place) -> Frame:
    return place.rotation, place.position


def _joined(first: Frame, second: Frame) -> Frame:
    return first[0] @ second[0], first[1] + first[0] @ second[1]


def _turned(frame: Frame) -> Frame:
    R, p = frame
    return R.T, -(R.T @ p)
