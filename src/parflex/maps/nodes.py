"""Mass and stiffness at undeformed poses in node coordinates, for many poses at once.

The robot is cut at its beams: each piece that is not on the ground has one free twist, the rest of it follows by joint
rates and by the coordinates of bodies that are not cut. Twists are taken at one common point in common axes: there all
frames that are rigidly tied have the same twist, and the elastic rates of a beam are the difference of the twists of
its ends.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parflex.bodies import Body
from parflex.closure.loops import neutral_rotation
from parflex.designs.design_numbers import DesignNumbers, of_designs
from parflex.models.cutting import PLANE, CutBeam, CutModal, CutRobot, CutStep, cut_at_beams, used_components
from parflex.models.robot import Robot
from parflex.tree import Place
from parflex.tree.link_tree import GROUND

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
    if robot.closures.constraints or robot.tree.springs:
        raise NotCoveredError("coupled joints")
    if robot.tree.elements:
        raise NotCoveredError("an element between two points")
    cut = cut_at_beams(robot, roots)
    if cut.left_over:
        raise NotCoveredError("a loop without a beam")
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


def _directions(cut: CutRobot, step: CutStep) -> list[tuple[int, Array]]:
    """How the link that a step reaches moves per unit of its unknowns: twists (6 x f) at links, in their axes."""
    tree, tie = cut.robot.tree, step.tie
    if tie.joint is not None:
        joint = tree.links[tie.joint].joint
        found = [(tie.joint, np.concatenate([joint.S_v, joint.S_w])[:, list(tie.free)])]
    elif tie.closure is not None:
        hinge = cut.hinges[tie.closure]
        guided, own = np.concatenate([hinge.guided_v, hinge.guided_w]), np.concatenate([hinge.S_v, hinge.S_w])
        pairs = ((hinge.loop.first, guided), (hinge.loop.second, own))
        found = [(end.link, _outward(end.rotation[None], end.position[None])[0] @ S) for end, S in pairs if S.shape[1]]
    else:
        node, free = tree.links[tie.second].node, next(m.free for m in cut.modal if m.link == tie.first)
        assert node is not None
        Phi = np.concatenate([node.Phi_d, node.Phi_r])[:, list(free)]
        found = [(tie.first, _outward(np.eye(3)[None], node.r0[None])[0] @ Phi)]
    return [(link, S if step.forward else -S) for link, S in found]


class Assembly:
    """Matrices of a node model over chosen unknowns, from the places of links."""

    def __init__(
        self,
        model: NodeModel,
        links: Sequence[int] | None = None,
        columns: Array | None = None,
        designs: DesignNumbers | None = None,
    ) -> None:
        self.model = model
        self.tree = model.robot.tree if designs is None else designs.tree
        self.designs = 1 if designs is None else len(designs.values)
        self.chosen = np.arange(self.designs)
        self.columns = np.arange(model.columns) if columns is None else columns
        self.number = np.full(model.columns, -1)
        self.number[self.columns] = np.arange(len(self.columns))
        self.bodies = list(range(len(model.robot.tree.links))) if links is None else list(links)
        ends = sorted({k for j in self.bodies for k in model.ends(j)})
        steps = {step.link: step for k in ends for step in model.paths[k][1]}
        self.directions = {j: _directions(model.cut, step) for j, step in steps.items()}
        needed = {*ends, *(model.paths[k][0] for k in ends)}
        needed |= {link for own in self.directions.values() for link, _ in own}
        self.links = sorted(needed - {GROUND})
        self.index = {j: k for k, j in enumerate(self.links)}
        self.axes = {j: self._axes(j) for j in model.roots}
        self.inertia = {j: of_designs(_undeformed_inertia(self.tree.links[j].body), self.designs) for j in self.bodies}
        self.stiffness = {j: of_designs(_stiffness(self.tree.links[j].body), self.designs) for j in self.bodies}

    def _axes(self, j: int) -> Array:
        """Axes of the twist of a root, in those of its link: its own; of a planar robot those of the plane."""
        tree = self.model.robot.tree
        return neutral_rotation(tree, Place(j, np.eye(3), np.zeros(3))).T if tree.planar else np.eye(3)

    def __call__(self, rotation: Array, position: Array, designs: Array | None = None) -> tuple[Array, Array]:
        """K and M (poses x n x n) over the chosen unknowns, from rotations and positions of `links`.

        `designs` are the numbers of the designs of the poses, where there are several.
        """
        if designs is not None:
            return self.of_rows(designs)(rotation, position)
        size = len(self.columns)
        K, M = np.zeros((2, len(rotation), size, size))
        for j in self.bodies:
            if not np.any(self.inertia[j]) and j not in self.model.tip:
                continue
            columns, W = self.motion(j, rotation, position)
            columns = self.number[columns]
            _add(M, columns, np.swapaxes(W, 1, 2) @ (self.inertia[j] @ W))
            if W.shape[1] > 6:
                bent = W[:, 6:]
                _add(K, columns, np.swapaxes(bent, 1, 2) @ (self.stiffness[j] @ bent))
        self._add_joints(K, M)
        return K, M

    def of_rows(self, designs: Array) -> Assembly:
        """The assembly of poses with these designs, one by one."""
        made = copy.copy(self)
        made.chosen = designs
        made.inertia, made.stiffness = (
            {j: own[designs] if own.ndim == 3 else own for j, own in table.items()}
            for table in (self.inertia, self.stiffness)
        )
        return made

    def motion(self, j: int, rotation: Array, position: Array) -> tuple[Array, Array]:
        """Unknowns that move a body; twist of its frame, in its axes, and its elastic rates per unit of them."""
        if j in self.model.tip:
            return self._motion_of_beam(j, self.model.tip[j], rotation, position)
        columns, W = self.twist(j, rotation, position)
        W = self.local(j, rotation, position) @ W
        if j not in self.model.modal:
            return columns, W
        entry = self.model.modal[j]  # not cut: its own coordinates are unknowns beside the twist of its frame
        free, slots = list(entry.free), np.arange(entry.slots.start, entry.slots.stop)
        bent = np.broadcast_to(np.eye(entry.body.size)[:, free], (len(W), entry.body.size, len(free)))
        every = np.union1d(columns, slots).astype(int)
        return every, np.concatenate([_spread(every, columns, W), _spread(every, slots, bent)], axis=1)

    def _add_joints(self, K: Array, M: Array) -> None:
        """Springs and rotors in the rows of joints."""
        for j, k in self.joint_rows():
            K[:, k, k] += self.chosen_number(self.tree.links[j].terms.stiffness)
            M[:, k, k] += self.chosen_number(self.tree.links[j].terms.motor_inertia)

    def joint_rows(self) -> list[tuple[int, int]]:
        """Links that a joint with one axis moves, and the unknown that is its rate."""
        own = set(self.bodies)
        steps = (step for piece in self.model.cut.pieces for step in piece.steps if step.tie.size)
        return [
            (step.tie.joint, int(self.number[step.slots.start]))
            for step in steps
            if step.tie.joint in own and self.tree.links[step.tie.joint].joint.one_axis
        ]

    def chosen_number(self, value: Any) -> Array:
        """A number, or an array of them, in the designs of the poses."""
        wide = of_designs(value, self.designs)
        return wide[self.chosen] if wide.ndim > np.ndim(value) else wide

    def _motion_of_beam(self, j: int, tip: int, rotation: Array, position: Array) -> tuple[Array, Array]:
        node = self.model.robot.tree.links[tip].node
        assert node is not None
        Phi = np.concatenate([node.Phi_d, node.Phi_r])
        first, A = self.twist(j, rotation, position)
        second, B = self.twist(tip, rotation, position)
        slots = np.arange(self.model.beams[j].slots.start, self.model.beams[j].slots.stop)
        columns = np.union1d(np.union1d(first, second), slots).astype(int)
        ends = _spread(columns, first, A), _spread(columns, second, B)
        root = self.local(j, rotation, position) @ ends[0]
        bent = Phi.T @ (self.local(tip, rotation, position) @ (ends[1] - ends[0]))
        if len(slots):  # modes with both ends held
            bent[:, bent.shape[1] - len(slots) + np.arange(len(slots)), np.searchsorted(columns, slots)] = 1.0
        return columns, np.concatenate([root, bent], axis=1)

    def twist(self, j: int, rotation: Array, position: Array) -> tuple[Array, Array]:
        """Unknowns that move a link, and its twist at the common point per unit of them (poses x 6 x c)."""
        root, path = self.model.paths[j]
        columns: list[int] = []
        blocks = [np.zeros((len(rotation), 6, 0))]
        if root != GROUND:
            first, width = self.model.roots[root]
            columns += range(first, first + width)
            blocks.append(self._root(root, rotation, position))
        for step in path:
            S = self._freedom(step, rotation, position)
            if step.slots.start in columns:  # from one node of a body to another: its coordinates move both
                start = columns.index(step.slots.start)
                blocks = [np.concatenate(blocks, axis=2)]
                blocks[0][:, :, start : start + S.shape[2]] += S
                continue
            columns += range(step.slots.start, step.slots.stop)
            blocks.append(S)
        return np.array(columns, dtype=int), np.concatenate(blocks, axis=2)

    def _root(self, j: int, rotation: Array, position: Array) -> Array:
        """Twist at the common point per unit twist of a root, in axes that move with it."""
        R = rotation[:, self.index[j]] @ self.axes[j]
        W = _outward(R, position[:, self.index[j]])
        return W[:, :, PLANE] if self.model.width == 3 else W

    def _freedom(self, step: CutStep, rotation: Array, position: Array) -> Array:
        """Twist at the common point that a step adds, per unit of its unknowns."""
        blocks = []
        for link, S in self.directions[step.link]:
            if link == GROUND:
                blocks.append(np.broadcast_to(S, (len(rotation), *S.shape)))
            else:
                blocks.append(_outward(rotation[:, self.index[link]], position[:, self.index[link]]) @ S)
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=2)

    def local(self, j: int, rotation: Array, position: Array) -> Array:
        """From the twist at the common point to that of a link, in its axes."""
        R, p = rotation[:, self.index[j]], position[:, self.index[j]]
        X = np.zeros((len(R), 6, 6))
        X[:, :3, :3] = X[:, 3:, 3:] = np.swapaxes(R, 1, 2)
        X[:, :3, 3:] = -np.swapaxes(R, 1, 2) @ _hats(p)
        return X


def _undeformed_inertia(body: Body) -> Array:
    return body.inertia_matrix(np.zeros(body.size))


def _stiffness(body: Body) -> Array:
    return body.material_stiffness(np.zeros(body.size))


def _outward(R: Array, p: Array) -> Array:
    """From a twist at p in axes R to that at the common point in common axes."""
    W = np.zeros((len(R), 6, 6))
    W[:, :3, :3] = W[:, 3:, 3:] = R
    W[:, :3, 3:] = _hats(p) @ R
    return W


def _hats(p: Array) -> Array:
    H = np.zeros((len(p), 3, 3))
    H[:, 0, 1], H[:, 0, 2], H[:, 1, 2] = -p[:, 2], p[:, 1], -p[:, 0]
    return H - np.swapaxes(H, 1, 2)


def _spread(columns: Array, own: Array, W: Array) -> Array:
    """Columns of a block among sorted ones that hold them."""
    wide = np.zeros((*W.shape[:2], len(columns)))
    wide[:, :, np.searchsorted(columns, own)] = W
    return wide


def _add(matrix: Array, columns: Array, block: Array) -> None:
    matrix[:, columns[:, None], columns] += block
