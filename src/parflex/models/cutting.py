"""A robot cut at its beams: rigid pieces of links with joints, tied to each other by beams alone.

A beam that has all coordinates of its tip lets its two ends move independently, so a loop through it needs no equation.
What is left of the robot falls into pieces. One stands on the ground; each other one moves freely with one of its
links. The other links of a piece follow along a tree of ties: joints, closures, and nodes of bodies that are not cut
since they are given by modes or some of their coordinates are locked; the coordinates of these are unknowns too.

Every robot can be cut. A tie that closes a loop inside a piece, which no beam is part of, is left over: whoever uses
the pieces says whether there may be such loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from parflex.bodies.elastic import Body
from parflex.bodies.two_node import TwoNodeBeam, tip_components
from parflex.models.closure_joints import ClosureJoint, closure_joint
from parflex.models.robot import Robot
from parflex.tree.tree import GROUND, Tree

PLANE = (0, 1, 5)
SPACE = (0, 1, 2, 3, 4, 5)


def used_components(tree: Tree) -> tuple[int, ...]:
    """Components of a twist that can move."""
    return PLANE if tree.planar else SPACE


@dataclass(frozen=True)
class CutBeam:
    """A beam from the link that carries it to the link at its tip; modes with both ends held have unknowns, `slots`."""

    link: int
    tip: int
    body: Body
    slots: slice

    @property
    def ends(self) -> int:
        """How many of its coordinates are the motion of its tip."""
        return self.body.size - self.body.held

    @cached_property
    def form(self) -> TwoNodeBeam:
        """Its equations in the motions of its two ends."""
        form = self.body.two_node()
        assert form is not None  # its coordinates are those of its tip, or it would not be cut
        return form


@dataclass(frozen=True)
class CutModal:
    """A flexible body that is not cut, in the piece of its link; the coordinates that are not locked are unknowns."""

    link: int
    body: Body
    free: tuple[int, ...]  # which of its coordinates are not locked
    slots: slice


@dataclass(frozen=True)
class CutTie:
    """Two links held together but for some motions: by a joint of the tree, a closure, or a node of a body."""

    first: int
    second: int
    size: int  # rates that are not locked; of a node those of its body
    joint: int | None = None  # the link that the joint carries
    closure: int | None = None  # neither: a node, which is the second link
    free: tuple[int, ...] = ()  # of the rates of a joint or a closure, those that are not locked

    @property
    def node(self) -> bool:
        """Whether it is a node of a flexible body."""
        return self.joint is None and self.closure is None


@dataclass(frozen=True)
class CutStep:
    """How a link of a piece is reached from another over a tie, along it or against it."""

    link: int
    source: int
    tie: CutTie
    forward: bool
    slots: slice  # unknowns; of a node those of its body


@dataclass(frozen=True)
class CutPiece:
    """The link whose twist is unknown (the ground for what stands on it), and steps to the others."""

    reference: int
    slots: slice
    steps: tuple[CutStep, ...]


@dataclass(frozen=True)
class CutRobot:
    """All pieces of a robot, what ties them, and the ties that close loops inside pieces."""

    robot: Robot
    beams: tuple[CutBeam, ...]
    modal: tuple[CutModal, ...]
    hinges: tuple[ClosureJoint, ...]  # the closures, as joints
    ties: tuple[CutTie, ...]
    pieces: tuple[CutPiece, ...]
    left_over: tuple[CutTie, ...]
    size: int  # number of unknowns

    def tips(self, j: int) -> list[int]:
        """Links that sit on nodes of the body of a link."""
        return [k for k, link in enumerate(self.robot.tree.links) if link.node is not None and link.parent == j]


def cut_at_beams(robot: Robot, preferred: Iterable[int] = ()) -> CutRobot:
    """The pieces of a robot; `preferred` are tried first, in their order, as links that pieces move with."""
    tree = robot.tree
    hinges = tuple(closure_joint(tree, loop) for loop in robot.closures.loops)
    modal, beams, count = [], [], 0
    for j, tip in _cut_bodies(robot).items():
        body = tree.links[j].body
        beams.append(CutBeam(j, tip, body, slice(count, count + body.held)))
        count += body.held
    cut = {beam.link for beam in beams}
    for j, link in enumerate(tree.links):
        if link.body.size and j not in cut:
            free = _free(robot, link.e_v)
            modal.append(CutModal(j, link.body, free, slice(count, count + len(free))))
            count += len(free)
    ties = tuple(_ties(robot, hinges, {entry.link: entry for entry in modal}))
    walk = _Walk(robot, {entry.link: entry.slots for entry in modal}, count, list(ties))
    order = (*preferred, *range(len(tree.links)))
    pieces = (walk.piece(GROUND), *(walk.piece(link) for link in order if link in walk.waiting))
    return CutRobot(robot, tuple(beams), tuple(modal), hinges, ties, pieces, tuple(walk.left), walk.count)


def _cut_bodies(robot: Robot) -> dict[int, int]:
    """Bodies whose free coordinates begin with the whole motion of the one link at their tip, with that link."""
    tree, found = robot.tree, {}
    for j, link in enumerate(tree.links):
        if not link.body.size or not link.body.by_tip or tip_components(link.body) != used_components(tree):
            continue
        tips = [k for k, other in enumerate(tree.links) if other.parent == j and other.node is not None]
        if len(tips) == 1 and len(_free(robot, link.e_v)) == link.body.size:
            found[j] = tips[0]
    return found


def _free(robot: Robot, rates: slice) -> tuple[int, ...]:
    """Which of some rates are not locked, counted from the first."""
    return tuple(k - rates.start for k in range(rates.start, rates.stop) if k not in robot.locked)


def _ties(robot: Robot, hinges: tuple[ClosureJoint, ...], modal: dict[int, CutModal]) -> Iterable[CutTie]:
    """Joints and nodes in the order of links, then closures. What floats, and tips of beams, are not tied."""
    for j, link in enumerate(robot.tree.links):
        if link.node is not None:
            if link.parent in modal:
                yield CutTie(link.parent, j, len(modal[link.parent].free))
        elif not floats(robot, j):
            free = _free(robot, link.v)
            yield CutTie(link.parent, j, len(free), joint=j, free=free)
    for c, hinge in enumerate(hinges):
        ends = hinge.loop.first.link, hinge.loop.second.link
        yield CutTie(*ends, hinge.size, closure=c, free=tuple(range(hinge.size)))


def floats(robot: Robot, j: int) -> bool:
    """Whether a link moves freely against the ground: its twist is that of its joint."""
    link = robot.tree.links[j]
    whole = len(_free(robot, link.v)) == link.v.stop - link.v.start
    return link.joint.moves_freely and link.parent == GROUND and whole


class _Walk:
    """Pieces one after the other, their unknowns numbered on the way."""

    def __init__(self, robot: Robot, modes: dict[int, slice], count: int, left: list[CutTie]) -> None:
        self.width = len(used_components(robot.tree))
        self.modes, self.count, self.left = modes, count, left
        self.waiting = set(range(len(robot.tree.links)))

    def piece(self, reference: int) -> CutPiece:
        """What hangs together with a link, as a tree of ties."""
        slots = self._number(0 if reference == GROUND else self.width)
        steps: list[CutStep] = []
        members = {reference}
        self.waiting.discard(reference)
        while True:
            tie = next((tie for tie in self.left if (tie.first in members) != (tie.second in members)), None)
            if tie is None:
                return CutPiece(reference, slots, tuple(steps))
            self.left.remove(tie)
            forward = tie.first in members
            source, reached = (tie.first, tie.second) if forward else (tie.second, tie.first)
            own = self.modes[tie.first] if tie.node else self._number(tie.size)
            steps.append(CutStep(reached, source, tie, forward, own))
            members.add(reached)
            self.waiting.discard(reached)

    def _number(self, width: int) -> slice:
        self.count += width
        return slice(self.count - width, self.count)
