"""Bodies of a robot cut at its beams: those fixed to each other as one, and the frames in which they are written."""

from __future__ import annotations

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.models.cutting import CutRobot
from parflex.tree.tree import GROUND, Tree

Array = np.ndarray


def written_in_root(cut: CutRobot) -> frozenset[int]:
    """Links at tips of beams, but for those that move freely with beams in their own axes."""
    carriers = {_carrier(cut.robot.tree, beam.link) for beam in cut.beams}
    references = {piece.reference for piece in cut.pieces}
    return frozenset(beam.tip for beam in cut.beams if not (beam.tip in references and beam.tip in carriers))


def bodies_of(cut: CutRobot) -> dict[int, RigidBody]:
    """Rigid bodies, those fixed to each other as one, in the frame of a link that needs no turning.

    What is fixed to a flexible body that is not cut is part of that body.
    """
    tree, whole = cut.robot.tree, {modal.link for modal in cut.modal}
    references = {piece.reference for piece in cut.pieces}
    roots = {beam.link for beam in cut.beams}
    clusters: dict[int, list[int]] = {}
    for j in range(len(tree.links)):
        clusters.setdefault(_carrier(tree, j), []).append(j)
    bodies = {}
    for members in clusters.values():
        home = min(members, key=lambda j: (j not in references, j not in roots, j))
        total = RigidBody()
        for j in members:
            if j not in whole:
                R, p = _relative(tree, home, j)
                total = total + tree.links[j].body.rigid.in_parent(R, p)
        if total.m or np.any(total.Sigma):
            bodies[home] = total
    return bodies


def on_beams(cut: CutRobot, bodies: dict[int, RigidBody]) -> dict[int, int]:
    """Bodies that join the inertia of the root or tip of a beam; those of links that move freely need no such way."""
    references = {piece.reference for piece in cut.pieces}
    ends = {beam.tip: beam.link for beam in cut.beams} | {beam.link: beam.link for beam in cut.beams}
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
