"""Cut a robot at its beams into substructures, with closures as joints and independent rates.

A beam with all coordinates of its tip lets its two ends move independently, so a loop through it needs no equation. The
cut leaves rigid pieces of links and joints, tied to each other by beams alone. One piece stands on the ground; each
other piece moves freely with one of its links. The other links of a piece follow along a tree of ties: joints,
closures, and nodes of bodies that are not cut (modal bodies, and beams with locked coordinates), whose coordinates are
unknowns too.

A rigid loop inside a piece needs an equation of its own, and a loop whose beams are all taken by other loops has no
coordinate to spare. A caller decides whether it accepts such a tie; formulations refuse the robot, and the general
reduction takes it.

A closure becomes a joint: its free motions are motions along constant axes. Most kinds have axes fixed in the second
place. A universal joint and a guided point have one axis in each place; they become two joints in series, the one in
the axes of the first place before the one in the axes of the second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.bodies.elastic import Body
from parflex.bodies.rigid import RigidBody
from parflex.bodies.two_node import TwoNodeBeam, tip_components
from parflex.closure.constraints import Loop, neutral_rotation
from parflex.closure.partition import Partition
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.tree.tree import GROUND, Tree

Array = np.ndarray
PREFERENCES = ("root", "tip", "closure")
EXACT = 1e-14  # entries of unit axes below this are rounding: exact zeros separate in-plane and out-of-plane motions


@dataclass(frozen=True)
class CutBeam:
    """A beam between two links; fixed-interface modes have the unknowns `slots`."""

    link: int
    tip: int
    body: Body
    slots: slice

    @property
    def ends(self) -> int:
        """Number of its coordinates that are the motion of its tip."""
        return self.body.size - self.body.held

    @cached_property
    def form(self) -> TwoNodeBeam:
        """Equations of the beam in the motions of its two ends."""
        form = self.body.two_node
        assert form is not None  # its coordinates are those of its tip, or it would not be cut
        return form


@dataclass(frozen=True)
class CutModal:
    """A flexible body in the piece of its link, not cut; its unlocked coordinates are unknowns."""

    link: int
    body: Body
    free: tuple[int, ...]  # which of its coordinates are not locked
    slots: slice


@dataclass(frozen=True)
class CutConnection:
    """Two links connected by a joint of the tree, a closure, or a node of a body."""

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
    """Step from one link of a piece to another over a tie, forward or backward."""

    link: int
    source: int
    tie: CutConnection
    forward: bool
    slots: slice  # unknowns; of a node those of its body


@dataclass(frozen=True)
class CutSubstructure:
    """The link whose twist is unknown (the ground for a fixed piece), and steps to the others."""

    reference: int
    slots: slice
    steps: tuple[CutStep, ...]


@dataclass(frozen=True)
class CutRobot:
    """All pieces of a robot, and the ties that close loops inside pieces."""

    robot: Robot
    beams: tuple[CutBeam, ...]
    modal: tuple[CutModal, ...]
    hinges: tuple[ClosureJoint, ...]  # the closures, as joints
    pieces: tuple[CutSubstructure, ...]
    left_over: tuple[CutConnection, ...]
    size: int  # number of unknowns


@dataclass(frozen=True)
class DependentBeam:
    """A closure that makes coordinates of a beam dependent; `kept` coordinates of the beam are independent."""

    closure: int
    beam: int
    kept: tuple[int, ...]
    from_first: bool  # the tip hangs on the second place


@dataclass(frozen=True)
class Substructures(CutRobot):
    """All pieces of a robot, its beams and closures, and its independent rates."""

    given: tuple[DependentBeam, ...]
    partition: Partition
    used: tuple[int, ...]  # components of a twist that can move
    loose: frozenset[int]  # tips of beams in the axes of the beam's root: all but references with beams of their own
    bodies: dict[int, RigidBody]  # rigid bodies by the link in whose frame they are given
    beam_of_body: dict[int, int]  # of those that an end of a beam carries, the link of the beam
    absolute: frozenset[int]  # links whose own turning is unknown, not that of the joint that they are reached by

    @property
    def groups(self) -> list[list[int]]:
        """Unknowns eliminated together, with functions shared by identical groups: the twist of each piece."""
        piece_groups = [
            list(range(piece.slots.start, piece.slots.stop)) for piece in self.pieces if piece.reference != GROUND
        ]
        grouped = {k for group in piece_groups for k in group}
        return [*piece_groups, *([k] for k in range(self.size) if k not in grouped)]


def find_substructures(robot: Robot, preferred: str = "root") -> Substructures | None:
    """Return the pieces of a robot, or None; `preferred` selects among equivalent choices."""
    result = substructures_or_reason(robot, preferred)
    return None if isinstance(result, str) else result


def substructures_or_reason(robot: Robot, preferred: str = "root", at_any_cost: bool = False) -> Substructures | str:
    """Return the pieces of a robot or the reason against them; `at_any_cost` ignores the cost."""
    description = robot.description  # also of what is left out: the independent rates stay the same without it
    if robot.closures.constraints or robot.tree.springs or description.coupling:
        return "its joints are coupled"
    if robot.tree.elements or description.element:
        return "an element acts between two of its points"
    tree, cut = robot.tree, cut_at_beams(robot, _references(robot, preferred))
    if cut.left_over:
        return "a loop has no beam in it"
    if not at_any_cost and any(hinge.loose for hinge in cut.hinges):
        return "a closure leaves so much free that its equations cost less than its rates"
    dependent_beams = _choose(cut)
    if dependent_beams is None:
        return "there are more loops than beams that could follow them"
    dependent = sorted(
        tree.links[cut.beams[g.beam].link].e_v.start + k
        for g in dependent_beams
        for k in range(cut.beams[g.beam].ends)
        if k not in g.kept
    )
    independent = np.array([k for k in robot.free if k not in set(dependent)], dtype=int)
    if len(independent) != cut.size:
        return "what the loops leave free is not counted by coordinates of beams"
    partition = Partition(np.arange(robot.closures.size), np.array(dependent, dtype=int), independent)
    bodies, references = merged_bodies(cut), {piece.reference for piece in cut.pieces}
    carriers = {_carrier(tree, beam.link) for beam in cut.beams}
    ends = {beam.tip: beam.link for beam in cut.beams} | {beam.link: beam.link for beam in cut.beams}
    absolute = frozenset(
        step.link
        for piece in cut.pieces
        for step in piece.steps
        if piece.reference != GROUND and _is_free_rotation(cut, step)
    )
    return Substructures(
        **vars(cut),
        given=dependent_beams,
        partition=partition,
        used=tuple(tree.components),
        loose=frozenset(beam.tip for beam in cut.beams if beam.tip not in references & carriers),
        bodies=bodies,
        beam_of_body={j: ends[j] for j in bodies if j in ends and j not in references},
        absolute=absolute,
    )


def _is_free_rotation(cut: CutRobot, step: CutStep) -> bool:
    """Return whether a step is a passive hinge or ball joint, which decouples the axes of both links."""
    if step.tie.closure is not None:
        return cut.hinges[step.tie.closure].parts
    if step.tie.joint is None:
        return False
    link = cut.robot.tree.links[step.tie.joint]
    return link.joint.kind == "revolute" and link.v.start not in set(cut.robot.actuated) | cut.robot.locked


def _references(robot: Robot, preferred: str) -> list[int]:
    """Return candidate links for free motion in order: platforms, then `preferred`."""
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


def _choose(cut: CutRobot) -> tuple[DependentBeam, ...] | None:
    """Return for each closure a beam on its path that no other closure uses, the nearest if possible."""
    options = [_options(cut, joint) for joint in cut.hinges]
    taken: dict[int, int] = {}  # closure of each beam

    def find(closure: int, tried: set[int]) -> bool:
        """Return a beam for a closure, reassigning other closures if all are taken."""
        untried = [b for _, b, _ in options[closure] if b not in tried]
        for b in sorted(untried, key=lambda b: b in taken):
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
        coordinates = _kept(cut, cut.beams[b], cut.hinges[closure])
        if coordinates is None:
            return None
        chosen.append(DependentBeam(closure, b, coordinates, from_first))
    return tuple(chosen)


def _options(cut: CutRobot, joint: ClosureJoint) -> list[tuple[int, int, bool]]:
    """Return the beams in the loop of a closure, nearest first: distance, beam, whether on the second side."""
    tree, options = cut.robot.tree, []
    inside = set(joint.loop.links(tree))
    for from_first, place in ((True, joint.loop.second), (False, joint.loop.first)):
        for distance, link in enumerate(tree.path(place.link)):
            options += [
                (distance, b, from_first)
                for b, beam in enumerate(cut.beams)
                if beam.tip == link and beam.link in inside
            ]
    return sorted(options)


def _kept(cut: CutRobot, beam: CutBeam, joint: ClosureJoint) -> tuple[int, ...] | None:
    """Return the coordinates of a beam that determine the motion of the closure at its end."""
    at = pose(cut.robot.tree, cut.robot.home)
    (R1, _), (R2, _) = at.of(joint.loop.first), at.of(joint.loop.second)
    R = at.rotation[beam.link]
    sliding, turning = (
        np.hstack([R.T @ R1 @ guided, R.T @ R2 @ free_axes])
        for guided, free_axes in ((joint.guided_v, joint.S_v), (joint.guided_w, joint.S_w))
    )
    coordinates: list[int] = []
    components = cut.robot.tree.components
    for i in range(joint.size):
        rotates = bool(np.abs(turning[:, i]).any())
        column = np.abs((turning if rotates else sliding)[:, i])
        order = sorted(range(3), key=lambda k: -column[k])
        free = [components.index(k + 3 * rotates) for k in order if k + 3 * rotates in components]
        pick = next((k for k in free if k not in coordinates), None)
        if pick is None:
            return None
        coordinates.append(pick)
    return tuple(coordinates)


def merged_bodies(cut: CutRobot) -> dict[int, RigidBody]:
    """Return rigid bodies, with bodies fixed to each other (except to modal bodies) merged in the frame of a link."""
    tree, modal_links = cut.robot.tree, {modal.link for modal in cut.modal}
    references = {piece.reference for piece in cut.pieces}
    roots = {beam.link for beam in cut.beams}
    clusters: dict[int, list[int]] = {}
    for j in range(len(tree.links)):
        clusters.setdefault(_carrier(tree, j), []).append(j)
    bodies = {}
    for members in clusters.values():
        base_link = min(members, key=lambda j: (j not in references, j not in roots, j))
        total = RigidBody()
        for j in members:
            if j not in modal_links:
                R, p = _relative(tree, base_link, j)
                total = total + tree.links[j].body.rigid.in_parent(R, p)
        if total.m or np.any(total.Sigma):
            bodies[base_link] = total
    return bodies


def _carrier(tree: Tree, link: int) -> int:
    """Return the link with which a fixed link moves."""
    while (here := tree.links[link]).parent != GROUND and here.joint.kind == "fixed" and here.node is None:
        link = here.parent
    return link


def _relative(tree: Tree, home: int, link: int) -> tuple[Array, Array]:
    """Return rotation and position of a link in another link fixed to the same carrier."""
    ends = []
    for end in (home, link):
        R, p, carrier = np.eye(3), np.zeros(3), _carrier(tree, end)
        while end != carrier:
            end_link = tree.links[end]
            R, p, end = end_link.rotation @ R, end_link.position + end_link.rotation @ p, end_link.parent
        ends.append((R, p))
    (R1, p1), (R2, p2) = ends
    return R1.T @ R2, R1.T @ (p2 - p1)


def cut_at_beams(robot: Robot, preferred: Iterable[int] = ()) -> CutRobot:
    """Return the pieces of a robot, with `preferred` links tried first as their reference."""
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
    ties = list(_connections(robot, hinges, {entry.link: entry for entry in modal}))
    walk = _PieceBuilder(robot, {entry.link: entry.slots for entry in modal}, count, ties)
    order = (*preferred, *range(len(tree.links)))
    pieces = (walk.piece(GROUND), *(walk.piece(link) for link in order if link in walk.waiting))
    return CutRobot(robot, tuple(beams), tuple(modal), hinges, pieces, tuple(walk.left), walk.count)


def _cut_bodies(robot: Robot) -> dict[int, int]:
    """Return bodies whose free coordinates begin with the whole motion of their only tip link, with this link."""
    tree, tip_links = robot.tree, {}
    for j, link in enumerate(tree.links):
        if not link.body.size or not link.body.by_tip or tip_components(link.body) != tuple(tree.components):
            continue
        tips = [k for k, other in enumerate(tree.links) if other.parent == j and other.node is not None]
        if len(tips) == 1 and len(_free(robot, link.e_v)) == link.body.size:
            tip_links[j] = tips[0]
    return tip_links


def _free(robot: Robot, rates: slice) -> tuple[int, ...]:
    """Return which of some rates are not locked, counted from the first."""
    return tuple(k - rates.start for k in range(rates.start, rates.stop) if k not in robot.locked)


def _connections(robot: Robot, hinges: tuple[ClosureJoint, ...], modal: dict[int, CutModal]) -> Iterable[CutConnection]:
    """Return joints and nodes in link order, then closures, without floating links and tips of beams."""
    for j, link in enumerate(robot.tree.links):
        if link.node is not None:
            if link.parent in modal:
                yield CutConnection(link.parent, j, len(modal[link.parent].free))
        elif not is_free(robot, j):
            free = _free(robot, link.v)
            yield CutConnection(link.parent, j, len(free), joint=j, free=free)
    for c, hinge in enumerate(hinges):
        ends = hinge.loop.first.link, hinge.loop.second.link
        yield CutConnection(*ends, hinge.size, closure=c, free=tuple(range(hinge.size)))


def is_free(robot: Robot, j: int) -> bool:
    """Return whether a link moves freely relative to the ground, so that its twist is that of its joint."""
    link = robot.tree.links[j]
    unlocked = len(_free(robot, link.v)) == link.v.stop - link.v.start
    return link.joint.moves_freely and link.parent == GROUND and unlocked


class _PieceBuilder:
    """Builder of pieces one after the other, which numbers their unknowns."""

    def __init__(self, robot: Robot, modes: dict[int, slice], count: int, left: list[CutConnection]) -> None:
        self.width = len(robot.tree.components)
        self.modes, self.count, self.left = modes, count, left
        self.waiting = set(range(len(robot.tree.links)))

    def piece(self, reference: int) -> CutSubstructure:
        """Return the links connected to a reference, as a tree of ties."""
        slots = self._number(0 if reference == GROUND else self.width)
        steps: list[CutStep] = []
        members = {reference}
        self.waiting.discard(reference)
        while True:
            tie = next((tie for tie in self.left if (tie.first in members) != (tie.second in members)), None)
            if tie is None:
                return CutSubstructure(reference, slots, tuple(steps))
            self.left.remove(tie)
            forward = tie.first in members
            source, reached = (tie.first, tie.second) if forward else (tie.second, tie.first)
            step_slots = self.modes[tie.first] if tie.node else self._number(tie.size)
            steps.append(CutStep(reached, source, tie, forward, step_slots))
            members.add(reached)
            self.waiting.discard(reached)

    def _number(self, width: int) -> slice:
        self.count += width
        return slice(self.count - width, self.count)


@dataclass(frozen=True, eq=False, repr=False)
class ClosureJoint(Record):
    """Velocity and angular velocity of the second place per unit rate: `led_*` in axes of the first, `S_*` of its own.

    Rates guided in the first place come first.
    """

    loop: Loop
    S_v: Array
    S_w: Array
    guided_v: Array
    guided_w: Array

    @property
    def size(self) -> int:
        """Number of rates."""
        return self.guided + self.S_v.shape[1]

    @property
    def guided(self) -> int:
        """Number of rates along axes of the first place."""
        return self.guided_v.shape[1]

    @property
    def slides(self) -> bool:
        """Whether the second place translates relative to the first."""
        return bool(self.S_v.any() or self.guided_v.any())

    @property
    def turns(self) -> bool:
        """Whether the second place rotates relative to the first."""
        return bool(self.S_w.any() or self.guided_w.any())

    @property
    def loose(self) -> bool:
        """Whether its equations cost less than its rates: more free than held motions, or as many translations."""
        return self.size > self.loop.size or (self.size == self.loop.size and self.slides)

    @property
    def parts(self) -> bool:
        """Whether a hinge or ball joint decouples the rotation of the second place."""
        return self.S_w.shape[1] in (1, 3) and not self.S_v.any()


def closure_joint(tree: Tree, loop: Loop) -> ClosureJoint:
    """Return the free motions of a closure; in the plane, rows have fixed directions in the first place."""
    none: Array = np.zeros((3, 0))
    slides, turns, guided_slides, guided_turns = none, none, none, none
    every = (neutral_rotation(tree, loop.second).T @ [0.0, 0.0, 1.0])[:, None] if tree.planar else np.eye(3)
    match loop.kind:
        case "welded":
            pass
        case "revolute":
            turns = every if tree.planar else loop.u2[:, None]
        case "prismatic":
            slides = loop.u2[:, None]
        case "cylindrical" if not tree.planar:
            slides = turns = loop.u2[:, None]
        case "planar" if not tree.planar:
            slides, turns = _beside(loop.u2[None]), loop.u2[:, None]
        case "universal" if not tree.planar:
            turns, guided_turns = loop.u2[:, None], loop.u1[:, None]
        case "spherical" if not tree.planar:
            turns = every
        case _:  # a point on a line or on a plane: in the plane of the robot both are lines
            normal = [neutral_rotation(tree, loop.first).T @ [0.0, 0.0, 1.0]] * tree.planar
            turns, guided_slides = every, _beside(np.vstack([loop.translations, *normal]))
    motions = (
        (np.hstack([sliding, np.zeros(turning.shape)]), np.hstack([np.zeros(sliding.shape), turning]))
        for sliding, turning in ((slides, turns), (guided_slides, guided_turns))
    )
    return ClosureJoint(loop, *next(motions), *next(motions))


def _beside(rows: Array) -> Array:
    """Return orthonormal columns orthogonal to the rows, along axes of the frame if possible."""
    directions: list[Array] = []
    for unit in np.eye(3)[np.argsort(np.abs(rows).max(axis=0), kind="stable")]:
        for direction in (*rows, *directions):
            unit = unit - direction * (direction @ unit)
        if np.linalg.norm(unit) > 1e-6 and len(directions) < 3 - len(rows):
            directions.append(unit / np.linalg.norm(unit))
    columns = np.array(directions).T
    return np.where(np.abs(columns) < EXACT, 0.0, columns)
