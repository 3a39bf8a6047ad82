"""A robot cut at its beams as the model of its programs: what pieces move with, and which rates are independent.

A loop through a beam makes coordinates of that beam depend on the rest. A loop of rigid links inside a piece would need
an equation of its own, and a loop whose beams are all taken by other loops has no coordinate to spare; robots with such
loops are left to the general reduction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.closure.mobility import Partition
from parflex.models.closure_joints import ClosureJoint
from parflex.models.cutting import CutBeam, CutModal, CutPiece, CutRobot, CutStep, cut_at_beams, used_components
from parflex.models.forms.in_pieces.piece_bodies import bodies_of, on_beams, written_in_root
from parflex.models.robot import Robot
from parflex.recursion.kinematics import pose
from parflex.tree.tree import GROUND, Tree

Array = np.ndarray
PREFERENCES = ("root", "tip", "closure")


@dataclass(frozen=True)
class BeamThatFollows:
    """A closure that makes coordinates of a beam depend on the rest; of the beam, `kept` are given."""

    closure: int
    beam: int
    kept: tuple[int, ...]
    from_first: bool  # the tip hangs on the second place


@dataclass(frozen=True)
class Pieces:
    """All pieces of a robot, its beams and closures, and which of its rates are independent."""

    cut: CutRobot
    given: tuple[BeamThatFollows, ...]
    partition: Partition
    used: tuple[int, ...]  # components of a twist that can move
    loose: frozenset[int]  # links at tips of beams that are written in the axes of the beam's root
    bodies: dict[int, RigidBody]  # rigid bodies by the link in whose frame they are given
    on_beams: dict[int, int]  # of those that an end of a beam carries, the link of the beam
    absolute: frozenset[int]  # links whose own turning is unknown, not that of the joint that they are reached by

    @property
    def robot(self) -> Robot:
        """The robot that was cut."""
        return self.cut.robot

    @property
    def beams(self) -> tuple[CutBeam, ...]:
        """Its beams."""
        return self.cut.beams

    @property
    def modal(self) -> tuple[CutModal, ...]:
        """Its flexible bodies that are not cut."""
        return self.cut.modal

    @property
    def hinges(self) -> tuple[ClosureJoint, ...]:
        """Its closures, as joints."""
        return self.cut.hinges

    @property
    def pieces(self) -> tuple[CutPiece, ...]:
        """Its pieces."""
        return self.cut.pieces

    @property
    def size(self) -> int:
        """Number of unknown accelerations."""
        return self.cut.size

    @property
    def groups(self) -> list[list[int]]:
        """Unknowns that are eliminated together where alike ones share their functions: the twist of each piece."""
        own = [list(range(piece.slots.start, piece.slots.stop)) for piece in self.pieces if piece.reference != GROUND]
        grouped = {k for group in own for k in group}
        return [*own, *([k] for k in range(self.size) if k not in grouped)]

    @property
    def independent_names(self) -> list[str]:
        """Names of the independent rates."""
        return [self.robot.tree.rate_names[k] for k in self.partition.independent]


def pieces(robot: Robot, preferred: str = "root") -> Pieces | None:
    """The pieces of a robot, or None where some loop needs the general reduction.

    `preferred` chooses among equivalent ways to write the same model: whether a piece moves freely with the root of a
    beam, the tip of one or the link at a closure. The independent rates do not depend on it.
    """
    found = pieces_or_reason(robot, preferred)
    return None if isinstance(found, str) else found


def pieces_or_reason(robot: Robot, preferred: str = "root", at_any_cost: bool = False) -> Pieces | str:
    """The pieces of a robot, or why it is not written in them; `at_any_cost` also where the general form is shorter."""
    said = robot.description  # also of what is left out: the independent rates stay the same without it
    if robot.closures.constraints or robot.tree.springs or said.coupling:
        return "its joints are coupled"
    if robot.tree.elements or said.element:
        return "an element acts between two of its points"
    tree, cut = robot.tree, cut_at_beams(robot, _references(robot, preferred))
    if cut.left_over:
        return "a loop has no beam in it"
    if not at_any_cost and any(hinge.loose for hinge in cut.hinges):
        return "a closure leaves so much free that its equations cost less than its rates"
    given = _choose(cut)
    if given is None:
        return "there are more loops than beams that could follow them"
    dependent = sorted(
        tree.links[cut.beams[g.beam].link].e_v.start + k
        for g in given
        for k in range(cut.beams[g.beam].ends)
        if k not in g.kept
    )
    independent = np.array([k for k in robot.free if k not in set(dependent)], dtype=int)
    if len(independent) != cut.size:
        return "what the loops leave free is not counted by coordinates of beams"
    partition = Partition(np.arange(robot.closures.size), np.array(dependent, dtype=int), independent)
    bodies = bodies_of(cut)
    absolute = frozenset(
        step.link
        for piece in cut.pieces
        for step in piece.steps
        if piece.reference != GROUND and _turns_freely(cut, step)
    )
    loose = written_in_root(cut)
    return Pieces(cut, given, partition, used_components(tree), loose, bodies, on_beams(cut, bodies), absolute)


def _turns_freely(cut: CutRobot, step: CutStep) -> bool:
    """Whether this is a hinge or a ball without a motor: then the links on its two sides may be described apart."""
    if step.tie.closure is not None:
        return cut.hinges[step.tie.closure].parts
    if step.tie.joint is None:
        return False
    link = cut.robot.tree.links[step.tie.joint]
    return link.joint.kind == "revolute" and link.v.start not in set(cut.robot.actuated) | cut.robot.locked


def _references(robot: Robot, preferred: str) -> list[int]:
    """Links in the order in which they are tried as the one that moves freely: platforms, then as `preferred` says."""
    tree: Tree = robot.tree
    free = [j for j, link in enumerate(tree.links) if link.joint.moves_freely]
    tips = [(link.parent, j) for j, link in enumerate(tree.links) if link.node is not None]
    beams = [(root, tip) for root, tip in tips if tree.links[root].body.by_tip]
    places = [place.link for loop in robot.closures.loops for place in (loop.second, loop.first)]
    kinds = {
        "root": [root for root, _ in beams],
        "tip": [tip for _, tip in beams],
        "closure": [link for link in places if link != GROUND],
    }
    order = [preferred, *(kind for kind in PREFERENCES if kind != preferred)]
    return list(dict.fromkeys([*free, *(j for kind in order for j in kinds[kind])]))


def _choose(cut: CutRobot) -> tuple[BeamThatFollows, ...] | None:
    """For each closure a beam on its path that no other closure has, the nearest to it if possible."""
    options = [_options(cut, joint) for joint in cut.hinges]
    taken: dict[int, int] = {}  # closure of each beam

    def find(closure: int, tried: set[int]) -> bool:
        """A beam for a closure; where all are taken, another closure goes to another of its beams."""
        own = [b for _, b, _ in options[closure] if b not in tried]
        for b in sorted(own, key=lambda b: b in taken):
            tried.add(b)
            if b not in taken or find(taken[b], tried):
                taken[b] = closure
                return True
        return False

    if not all(find(c, set()) for c in range(len(options))):
        return None
    chosen = []
    for closure, b in sorted((closure, b) for b, closure in taken.items()):
        from_first = next(first for _, other, first in options[closure] if other == b)
        kept = _kept(cut, cut.beams[b], cut.hinges[closure])
        if kept is None:
            return None
        chosen.append(BeamThatFollows(closure, b, kept, from_first))
    return tuple(chosen)


def _options(cut: CutRobot, joint: ClosureJoint) -> list[tuple[int, int, bool]]:
    """Beams in the loop of a closure, the nearest to it first: distance, beam, whether it hangs on the second place."""
    tree, found = cut.robot.tree, []
    inside = set(joint.loop.links(tree))
    for from_first, place in ((True, joint.loop.second), (False, joint.loop.first)):
        for distance, link in enumerate(tree.path(place.link)):
            found += [
                (distance, b, from_first)
                for b, beam in enumerate(cut.beams)
                if beam.tip == link and beam.link in inside
            ]
    return sorted(found)


def _kept(cut: CutRobot, beam: CutBeam, joint: ClosureJoint) -> tuple[int, ...] | None:
    """Coordinates of a beam that say how far the closure at its end has moved."""
    at = pose(cut.robot.tree, cut.robot.home)
    (R1, _), (R2, _) = at.of(joint.loop.first), at.of(joint.loop.second)
    R = at.rotation[beam.link]
    sliding, turning = (
        np.hstack([R.T @ R1 @ guided, R.T @ R2 @ own])
        for guided, own in ((joint.guided_v, joint.S_v), (joint.guided_w, joint.S_w))
    )
    kept: list[int] = []
    components = list(used_components(cut.robot.tree))
    for i in range(joint.size):
        turns = bool(np.abs(turning[:, i]).any())
        column = np.abs((turning if turns else sliding)[:, i])
        order = sorted(range(3), key=lambda k: -column[k])
        free = [components.index(k + 3 * turns) for k in order if k + 3 * turns in components]
        pick = next((k for k in free if k not in kept), None)
        if pick is None:
            return None
        kept.append(pick)
    return tuple(kept)
