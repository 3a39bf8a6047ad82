"""A robot that bends, cut at its beams: rigid pieces of links with joints, tied to each other by beams alone.

Each piece that is not on the ground moves freely with one of its links, the others follow by joint rates along a tree
of joints and closures. Loops through a beam then need no equation. A loop of rigid links inside a piece does; robots
that have one, and beams whose coordinates are not the whole motion of their tip, are left to the general reduction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.bodies import Body, RigidBody
from parflex.bodies.two_node import TwoNodeBeam
from parflex.closure.loops import Loop, neutral_rotation
from parflex.closure.mobility import Partition
from parflex.models.robot import Robot
from parflex.recursion import pose
from parflex.tree import Tree
from parflex.tree.link_tree import GROUND

Array = np.ndarray
PLANE = (0, 1, 5)
SPACE = (0, 1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Beam:
    """A beam from the link that carries it to the link at its tip."""

    link: int
    tip: int
    form: TwoNodeBeam


@dataclass(frozen=True)
class Hinge:
    """A closure as a joint: velocity and angular velocity of the second place per unit rate, in its axes."""

    loop: Loop
    S_v: Array
    S_w: Array

    @property
    def size(self) -> int:
        """Number of rates."""
        return self.S_v.shape[1]


@dataclass(frozen=True)
class Modal:
    """A body given by modes, in the piece of its link; its modes are unknowns."""

    link: int
    body: Body
    slots: slice


@dataclass(frozen=True)
class Step:
    """How a link of a piece is reached from another: by a joint, a closure, or a node of a body given by modes.

    Along it or against it; nodes only from their body.
    """

    link: int
    source: int
    joint: int | None  # the link that the joint carries
    closure: int | None  # neither: a node
    forward: bool
    slots: slice  # unknowns; of a node those of the modes
    absolute: bool = False  # the unknown is the turning of the link itself, not that of the joint


@dataclass(frozen=True)
class Piece:
    """The link whose twist is unknown (the ground for what stands on it), and steps to the others."""

    reference: int
    slots: slice
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Given:
    """A closure that makes coordinates of a beam depend on the rest; of the beam, `kept` are given."""

    closure: int
    beam: int
    kept: tuple[int, ...]
    from_first: bool  # the tip hangs on the second place


@dataclass(frozen=True)
class Pieces:
    """All pieces of a robot, its beams and closures, and which of its rates are independent."""

    robot: Robot
    beams: tuple[Beam, ...]
    modal: tuple[Modal, ...]
    hinges: tuple[Hinge, ...]
    pieces: tuple[Piece, ...]
    given: tuple[Given, ...]
    partition: Partition
    size: int  # number of unknown accelerations
    used: tuple[int, ...]  # components of a twist that can move
    loose: frozenset[int]  # links at tips of beams that are written in the axes of the beam's root
    bodies: dict[int, RigidBody]  # rigid bodies by the link in whose frame they are given
    on_beams: dict[int, int]  # of those that an end of a beam carries, the link of the beam

    @property
    def independent_names(self) -> list[str]:
        """Names of the independent rates."""
        return [self.robot.tree.rate_names[k] for k in self.partition.independent]


def hinge(tree: Tree, loop: Loop) -> Hinge | None:
    """A closure as a joint, or None for kinds whose axes turn."""
    none = np.zeros((3, 0))
    u = loop.u2[:, None]
    if loop.kind == "welded":
        return Hinge(loop, none, none)
    if tree.planar and loop.kind == "revolute":
        return Hinge(loop, np.zeros((3, 1)), (neutral_rotation(tree, loop.second).T @ [0.0, 0.0, 1.0])[:, None])
    zero = np.zeros((3, 1))
    kinds = {"revolute": (zero, u), "prismatic": (u, zero)}
    if not tree.planar:
        kinds |= {
            "spherical": (np.zeros((3, 3)), np.eye(3)),
            "cylindrical": (np.hstack([u, zero]), np.hstack([zero, u])),
        }
    return Hinge(loop, *kinds[loop.kind]) if loop.kind in kinds else None


def pieces(robot: Robot, lead: str = "root") -> Pieces | None:
    """The pieces of a robot, or None where some loop needs the general reduction.

    `lead` chooses among equivalent ways to write the same model: whether a piece moves freely with the root of a
    beam, the tip of one or the link at a closure. The independent rates do not depend on it.
    """
    tree = robot.tree
    beams = _beams(robot)
    hinges = [h for loop in robot.closures.loops if (h := hinge(tree, loop)) is not None]
    if beams is None or len(hinges) < len(robot.closures.loops):
        return None
    found, given = _spanning(robot, beams, hinges, lead), _choose(robot, beams, hinges)
    if found is None or given is None:
        return None
    parts, modal, size = found
    dependent = sorted(
        tree.links[beams[g.beam].link].e_v.start + k
        for g in given
        for k in range(beams[g.beam].form.body.size)
        if k not in g.kept
    )
    independent = np.array([k for k in robot.free if k not in set(dependent)], dtype=int)
    if len(independent) != size:
        return None
    rows = np.arange(robot.closures.size)
    partition = Partition(rows, np.array(dependent, dtype=int), independent)
    used = PLANE if tree.planar else SPACE
    loose, bodies = _loose(tree, beams, parts), _bodies(tree, beams, parts)
    on_beams = _on_beams(bodies, beams, parts)
    return Pieces(robot, beams, modal, tuple(hinges), parts, given, partition, size, used, loose, bodies, on_beams)


def _beams(robot: Robot) -> tuple[Beam, ...] | None:
    tree, beams = robot.tree, []
    for j, link in enumerate(tree.links):
        if not link.elastic_labels:
            continue
        if not link.body.by_tip:
            if tree.planar or set(range(link.e_v.start, link.e_v.stop)) & robot.locked:
                return None
            continue
        form = link.body.two_node()
        tips = [k for k, other in enumerate(tree.links) if other.parent == j and other.node is not None]
        locked = set(range(link.e_v.start, link.e_v.stop)) & robot.locked
        if form is None or len(tips) != 1 or locked or form.components != (PLANE if tree.planar else SPACE):
            return None
        beams.append(Beam(j, tips[0], form))
    return tuple(beams)


def _spanning(
    robot: Robot, beams: tuple[Beam, ...], hinges: list[Hinge], lead: str
) -> tuple[tuple[Piece, ...], tuple[Modal, ...], int] | None:
    """Pieces as trees of joints, closures and nodes, and the modes' unknowns; None if one of them is left over."""
    tree = robot.tree
    ends: list[tuple[int, int, int | None, int | None]] = []
    for j, link in enumerate(tree.links):
        if link.node is None and link.joint.kind not in ("free", "planar"):
            ends.append((link.parent, j, j, None))
        elif link.node is None and link.parent != GROUND:
            return None
        elif link.node is not None and not tree.links[link.parent].body.by_tip:
            ends.append((link.parent, j, None, None))
    ends += [(h.loop.first.link, h.loop.second.link, None, c) for c, h in enumerate(hinges)]
    waiting, parts, count = set(range(len(tree.links))), [], 0
    left = list(ends)
    modal = []
    for j, link in enumerate(tree.links):
        if link.elastic_labels and not link.body.by_tip:
            modal.append(Modal(j, link.body, slice(count, count + link.body.size)))
            count += link.body.size
    modes = {entry.link: entry.slots for entry in modal}
    for reference in (GROUND, *_references(tree, beams, hinges, lead)):
        if reference != GROUND and reference not in waiting:
            continue
        width = 0 if reference == GROUND else (3 if tree.planar else 6)
        slots = slice(count, count + width)
        count += width
        steps: list[Step] = []
        members = {reference}
        waiting.discard(reference)
        while True:
            edge = next((edge for edge in left if (edge[0] in members) != (edge[1] in members)), None)
            if edge is None:
                break
            left.remove(edge)
            before, behind, joint, closure = edge
            forward = before in members
            source, reached = (before, behind) if forward else (behind, before)
            if joint is None and closure is None:
                if not forward:
                    return None
                steps.append(Step(reached, source, None, None, True, modes[source]))
                members.add(reached)
                waiting.discard(reached)
                continue
            if joint is not None:
                width = len(set(range(tree.links[joint].v.start, tree.links[joint].v.stop)) - robot.locked)
            else:
                width = hinges[closure].size  # type: ignore[index]
            absolute = reference != GROUND and _turns_freely(robot, hinges, joint, closure)
            steps.append(Step(reached, source, joint, closure, forward, slice(count, count + width), absolute))
            count += width
            members.add(reached)
            waiting.discard(reached)
        parts.append(Piece(reference, slots, tuple(steps)))
    return (tuple(parts), tuple(modal), count) if not left and not waiting else None


def _turns_freely(robot: Robot, hinges: list[Hinge], joint: int | None, closure: int | None) -> bool:
    """Whether this is a hinge or a ball without a motor: then the links on its two sides may be described apart."""
    if closure is not None:
        return hinges[closure].size in (1, 3) and not hinges[closure].S_v.any()
    link = robot.tree.links[joint]  # type: ignore[index]
    return link.joint.kind == "revolute" and link.v.start not in set(robot.actuated) | robot.locked


LEADS = ("root", "tip", "closure")


def _references(tree: Tree, beams: tuple[Beam, ...], hinges: list[Hinge], lead: str) -> list[int]:
    """Links in the order in which they are tried as the one that moves freely: platforms, then as `lead` says."""
    free = [j for j, link in enumerate(tree.links) if link.joint.kind in ("free", "planar")]
    kinds = {
        "root": [beam.link for beam in beams],
        "tip": [beam.tip for beam in beams],
        "closure": [place.link for h in hinges for place in (h.loop.second, h.loop.first) if place.link != GROUND],
    }
    order = [lead, *(kind for kind in LEADS if kind != lead)]
    return list(dict.fromkeys([*free, *(j for kind in order for j in kinds[kind])]))


def _loose(tree: Tree, beams: tuple[Beam, ...], parts: tuple[Piece, ...]) -> frozenset[int]:
    """Links at tips of beams, but for those that move freely with beams in their own axes."""
    references = {piece.reference for piece in parts}
    carriers = {_carrier(tree, beam.link) for beam in beams}
    return frozenset(beam.tip for beam in beams if not (beam.tip in references and beam.tip in carriers))


def _bodies(tree: Tree, beams: tuple[Beam, ...], parts: tuple[Piece, ...]) -> dict[int, RigidBody]:
    """Rigid bodies, those fixed to each other as one, in the frame of a link that needs no turning."""
    references = {piece.reference for piece in parts}
    roots = {beam.link for beam in beams}
    clusters: dict[int, list[int]] = {}
    for j in range(len(tree.links)):
        clusters.setdefault(_carrier(tree, j), []).append(j)
    bodies = {}
    for members in clusters.values():
        home = min(members, key=lambda j: (j not in references, j not in roots, j))
        total = RigidBody()
        for j in members:
            R, p = _relative(tree, home, j)
            total = total + tree.links[j].body.rigid.in_parent(R, p)
        if total.m or np.any(total.Sigma):
            bodies[home] = total
    return bodies


def _on_beams(bodies: dict[int, RigidBody], beams: tuple[Beam, ...], parts: tuple[Piece, ...]) -> dict[int, int]:
    """Bodies that join the inertia of the root or tip of a beam; those of links that move freely need no such way."""
    references = {piece.reference for piece in parts}
    ends = {beam.tip: beam.link for beam in beams} | {beam.link: beam.link for beam in beams}
    return {j: ends[j] for j in bodies if j in ends and j not in references}


def _carrier(tree: Tree, link: int) -> int:
    """The link that a fixed one moves with."""
    while tree.links[link].parent != GROUND and _is_fixed(tree, link):
        link = tree.links[link].parent
    return link


def _is_fixed(tree: Tree, link: int) -> bool:
    return tree.links[link].joint.kind == "fixed" and tree.links[link].node is None


def _relative(tree: Tree, home: int, link: int) -> tuple[Array, Array]:
    """Rotation and position of a link in another one, both fixed to the same carrier."""
    ends = []
    for end in (home, link):
        R, p, carrier = np.eye(3), np.zeros(3), _carrier(tree, end)
        while end != carrier:
            own = tree.links[end]
            R, p, end = own.rotation @ R, own.position + own.rotation @ p, own.parent
        ends.append((R, p))
    (R1, p1), (R2, p2) = ends
    return R1.T @ R2, R1.T @ (p2 - p1)


def _choose(robot: Robot, beams: tuple[Beam, ...], hinges: list[Hinge]) -> tuple[Given, ...] | None:
    """For each closure a beam on its path, the one nearest to it; of a hinge one coordinate of the beam stays given."""
    chosen: list[Given] = []
    for c, h in enumerate(hinges):
        options = []
        for from_first, place in ((True, h.loop.second), (False, h.loop.first)):
            for distance, link in enumerate(robot.tree.path(place.link)):
                for b, beam in enumerate(beams):
                    if beam.tip == link and beam.link in h.loop.links(robot.tree):
                        options.append((distance, b, from_first))
        taken = {g.beam for g in chosen}
        open_options = [option for option in sorted(options) if option[1] not in taken]
        if not open_options:
            return None
        _, b, from_first = open_options[0]
        kept = _kept(robot, beams[b], h)
        if kept is None:
            return None
        chosen.append(Given(c, b, kept, from_first))
    return tuple(chosen)


def _kept(robot: Robot, beam: Beam, h: Hinge) -> tuple[int, ...] | None:
    """Coordinates of a beam that say how far the hinge at its end has moved."""
    at = pose(robot.tree, robot.home)
    R2, _ = at.of(h.loop.second)
    R = at.rotation[beam.link]
    columns = R.T @ R2 @ np.hstack([h.S_v, h.S_w]) if h.size else np.zeros((3, 0))
    kept: list[int] = []
    components = list(beam.form.components)
    for i in range(h.size):
        turns = bool(np.abs(h.S_w[:, i]).any())
        column = np.abs(columns[:, h.size + i if turns else i])
        order = sorted(range(3), key=lambda k: -column[k])
        free = [components.index(k + 3 * turns) for k in order if k + 3 * turns in components]
        pick = next((k for k in free if k not in kept), None)
        if pick is None:
            return None
        kept.append(pick)
    return tuple(kept)
