"""Unknowns of whole matrices: free twists of the pieces of a cut robot, rates of joints, coordinates of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.closure.constraints import Loop
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.robot.substructures import CutBeam, CutModal, CutRobot, CutStep, cut_at_beams, used_components
from parflex.tree.tree import GROUND, Tree

Array = np.ndarray


class NotCoveredError(Exception):
    """The robot has something that node coordinates do not cover; the general reduction does."""


@dataclass(frozen=True)
class NodeModel:
    """Unknowns, and how the twist of each link follows from them."""

    cut: CutRobot
    roots: dict[int, tuple[int, int]]  # root link of a piece -> first unknown, how many
    paths: dict[int, tuple[int, tuple[CutStep, ...]]]  # of each link its root, and the steps with unknowns from there

    @property
    def robot(self) -> Robot:
        """The robot, its locked joints fixed."""
        return self.cut.robot

    @property
    def columns(self) -> int:
        """Number of unknowns."""
        return self.cut.size

    @property
    def width(self) -> int:
        """Unknowns of a free twist."""
        return len(used_components(self.robot.tree))

    @cached_property
    def beams(self) -> dict[int, CutBeam]:
        """Its beams, by their link."""
        return {beam.link: beam for beam in self.cut.beams}

    @cached_property
    def tip(self) -> dict[int, int]:
        """The link at the tip of each beam, by the link of the beam."""
        return {j: beam.tip for j, beam in self.beams.items()}

    @cached_property
    def modal(self) -> dict[int, CutModal]:
        """Flexible bodies that are not cut, by their link."""
        return {entry.link: entry for entry in self.cut.modal}

    def ends(self, j: int) -> list[int]:
        """The links that move the body of a link: its own, and that at the tip of a beam."""
        return [j, self.tip[j]] if j in self.tip else [j]

    def felt(self, j: int) -> set[int]:
        """Unknowns that the body of a link feels."""
        slots = [self.modal[j].slots] if j in self.modal else [self.beams[j].slots] if j in self.beams else []
        found = {k for own in slots for k in range(own.start, own.stop)}
        for k in self.ends(j):
            root, path = self.paths[k]
            if root != GROUND:
                first, width = self.roots[root]
                found |= set(range(first, first + width))
            found |= {column for step in path for column in range(step.slots.start, step.slots.stop)}
        return found


def node_model(robot: Robot, roots: Sequence[int] = ()) -> NodeModel:
    """Pieces and unknowns of a robot with its locked joints fixed; pieces with one of `roots` are counted from it."""
    refuse_elements(robot.tree)
    cut = cut_at_beams(robot, roots)
    starts: dict[int, tuple[int, int]] = {}
    paths: dict[int, tuple[int, tuple[CutStep, ...]]] = {}
    for piece in cut.pieces:
        if piece.reference != GROUND:
            starts[piece.reference] = piece.slots.start, piece.slots.stop - piece.slots.start
        paths[piece.reference] = piece.reference, ()
        for step in piece.steps:
            root, path = paths[step.source]
            paths[step.link] = root, ((*path, step) if step.tie.size else path)
    return NodeModel(cut, starts, paths)


def refuse_elements(tree: Tree) -> None:
    """Refuse what has no one stiffness at undeformed poses: elements with forces, elastic cables of drums.

    Couplings with play have that of their loaded flank, as at single poses.
    """
    if any(one.acts and (one.stiffness or one.curve is not None) for one in tree.elements):
        raise NotCoveredError("an element with a spring between two points")
    if any(one.pulls_only for one in tree.springs):
        raise NotCoveredError("an elastic cable on a drum")


def closing_rank(cut: CutRobot) -> int:
    """How many unknowns loops without beams, couplings and rods hold."""
    robot = cut.robot
    return cut.size - (len(robot.free) - robot.mobility.rank)


def joint_unknowns(cut: CutRobot) -> dict[int, slice]:
    """Unknowns that are rates of joints with one axis, by their links."""
    tree = cut.robot.tree
    steps = (step for piece in cut.pieces for step in piece.steps if step.tie.size)
    return {
        step.tie.joint: step.slots
        for step in steps
        if step.tie.joint is not None and tree.links[step.tie.joint].joint.one_axis
    }


@dataclass(frozen=True, eq=False, repr=False)
class Freedom(Record):
    """Motions of a place on a link, in its axes: twists (6 x f)."""

    link: int
    rotation: Array
    position: Array
    S: Array


def freedoms(cut: CutRobot, tree: Tree, loops: Sequence[Loop], step: CutStep) -> list[Freedom]:
    """How the link that a step reaches moves per unit of its unknowns, in the designs of a tree and its loops."""
    tie = step.tie
    sign = 1.0 if step.forward else -1.0
    if tie.joint is not None:
        joint = tree.links[tie.joint].joint
        S = sign * np.concatenate([joint.S_v, joint.S_w])[:, list(tie.free)]
        return [Freedom(tie.joint, np.eye(3), np.zeros(3), S)]
    if tie.closure is not None:
        hinge, loop = cut.hinges[tie.closure], loops[tie.closure]
        guided, own = np.concatenate([hinge.guided_v, hinge.guided_w]), np.concatenate([hinge.S_v, hinge.S_w])
        pairs = ((loop.first, guided), (loop.second, own))
        return [Freedom(end.link, end.rotation, end.position, sign * S) for end, S in pairs if S.shape[1]]
    node, free = tree.links[tie.second].node, next(m.free for m in cut.modal if m.link == tie.first)
    assert node is not None
    Phi = np.concatenate([node.Phi_d, node.Phi_r])[:, list(free)]
    return [Freedom(tie.first, np.eye(3), node.r0, sign * Phi)]


def has_spare_rows(cut: CutRobot) -> bool:
    """Whether loops have more rows than unknowns that they hold."""
    rows = [cut.robot.closures.loops[tie.closure].size for tie in cut.left_over if tie.closure is not None]
    return sum(rows) + sum(row.size for row in cut.robot.closures.constraints) > closing_rank(cut)
