"""Mass and stiffness matrices at many poses in node coordinates.

The robot is cut at its beams: each piece that is not on the ground has one free twist, and its other links follow by
joint rates and by the coordinates of bodies that are not cut. Twists are taken at one common point in common axes.
There all rigidly tied frames have the same twist, and the elastic rates of a beam are the difference of the twists of
its ends.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parflex.bodies.elastic import Body
from parflex.closure.constraints import Closures, Coupling, Distance, Loop, neutral_rotation
from parflex.closure.mobility import SINGULAR
from parflex.closure.partition import BRANCH
from parflex.parameters.design_numbers import DesignNumbers, with_design_axis
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.robot.substructures import CutBeam, CutModal, CutRobot, CutStep, cut_at_beams
from parflex.tree.force_elements import CoupledSpring
from parflex.tree.tree import GROUND, Link, Place, Tree

Array = np.ndarray

Motions = Mapping[int, tuple[Array, Array]]  # of bodies: unknowns, and what moves per unit of them


class _LazyMatrices(dict[int, Array]):
    """Matrices of bodies, made when they are asked for: statics need no mass."""

    def __init__(self, make: Callable[[Body], Array], links: Sequence[Link], designs: Any) -> None:
        super().__init__()
        self.make, self.links, self.designs = make, links, designs

    def __missing__(self, j: int) -> Array:
        self[j] = made = with_design_axis(self.make(self.links[j].body), self.designs)
        return made

    def of_rows(self, designs: Array) -> _LazyMatrices:
        """The same for rows with these designs."""
        return _MatricesOfRows(self, designs)


class _MatricesOfRows(_LazyMatrices):
    """The matrices of rows, from those of designs."""

    def __init__(self, every: _LazyMatrices, designs: Array) -> None:
        super().__init__(every.make, every.links, designs)
        self.every = every

    def __missing__(self, j: int) -> Array:
        values = self.every[j]
        self[j] = chosen = values[self.designs] if values.ndim == 3 else values
        return chosen


class Assembly:
    """Matrices of a node model, from the places of links."""

    def __init__(
        self,
        model: NodeModel,
        links: Sequence[int] | None = None,
        designs: DesignNumbers | None = None,
    ) -> None:
        self.model = model
        self.tree = model.robot.tree if designs is None else designs.tree
        self.designs = 1 if designs is None else len(designs.values)
        self.chosen = np.arange(self.designs)
        self.bodies = list(range(len(model.robot.tree.links))) if links is None else list(links)
        ends = sorted({k for j in self.bodies for k in model.ends(j)} | set(ends_of(model.cut)))
        steps = {step.link: step for k in ends for step in model.paths[k][1]}
        closures = model.robot.closures if designs is None else designs.closures
        self.freedoms = {j: freedoms(model.cut, self.tree, closures.loops, step) for j, step in steps.items()}
        needed = {*ends, *(model.paths[k][0] for k in ends)}
        needed |= {freedom.link for step_freedoms in self.freedoms.values() for freedom in step_freedoms}
        self.links = sorted(needed - {GROUND})
        self.index = {j: k for k, j in enumerate(self.links)}
        self.axes = {j: self._axes(j) for j in model.roots}
        self.inertia = _LazyMatrices(_undeformed_inertia, self.tree.links, self.designs)
        self.stiffness = _LazyMatrices(_stiffness, self.tree.links, self.designs)
        self.rate_unknowns = {j: int(model_slots.start) for j, model_slots in joint_unknowns(model.cut).items()}
        rank = closing_rank(model.cut)
        self.held = LoopRows(self, closures, rank) if rank else None

    def _axes(self, j: int) -> Array:
        """Axes of the twist of a root, in those of its link: its own; of a planar robot those of the plane."""
        tree = self.model.robot.tree
        return neutral_rotation(tree, Place(j, np.eye(3), np.zeros(3))).T if tree.planar else np.eye(3)

    def __call__(self, rotation: Array, position: Array, designs: Array | None = None) -> tuple[Array, Array]:
        """K and M (poses x n x n) over what loops leave free, from rotations and positions of `links`.

        `designs` are the numbers of the designs of the poses, where there are several.
        """
        if designs is not None:
            return self.of_rows(designs)(rotation, position)
        K, M = self.open_matrices(rotation, position)
        if self.held is None:
            return K, M
        Z, usual = self.held.motions(rotation, position)
        K, M = (np.swapaxes(Z, 1, 2) @ matrix @ Z for matrix in (K, M))
        K[~usual] = M[~usual] = np.nan
        return K, M

    def usual(self, rotation: Array, position: Array) -> Array:
        """Poses at which loops hold as at home."""
        held = self.held
        return np.ones(len(rotation), dtype=bool) if held is None else held.motions(rotation, position)[1]

    def motions(self, rotation: Array, position: Array) -> Array | None:
        """Unknowns per unit of those that K and M are over (poses x unknowns x n); None where they are the same."""
        return None if self.held is None else self.held.motions(rotation, position)[0]

    def open_matrices(self, rotation: Array, position: Array) -> tuple[Array, Array]:
        """K and M over all unknowns, loops that no beam is part of left open."""
        massive_bodies = (j for j in self.bodies if j in self.model.tip or np.any(self.inertia[j]))
        motions = {j: self.motion(j, rotation, position) for j in massive_bodies}
        return self.open_stiffness(motions, len(rotation)), self.open_mass(motions, len(rotation))

    def open_stiffness(self, motions: Motions, poses: int) -> Array:
        """K over all unknowns from motions of bodies."""
        K = np.zeros((poses, self.model.columns, self.model.columns))
        for j, (columns, W) in motions.items():
            if W.shape[1] > 6:
                bent = W[:, 6:]
                _add(K, columns, np.swapaxes(bent, 1, 2) @ (self.stiffness[j] @ bent))
        for j, k in self.joint_rows():
            K[:, k, k] += self.chosen_number(self.tree.links[j].terms.stiffness)
        for spring in self.tree.springs if len(self.bodies) == len(self.tree.links) else ():
            row = self.stretch(spring)
            K += np.reshape(self.chosen_number(spring.stiffness), (-1, 1, 1)) * (row[..., :, None] * row[..., None, :])
        return K

    def open_mass(self, motions: Motions, poses: int) -> Array:
        """M over all unknowns from motions of bodies."""
        M = np.zeros((poses, self.model.columns, self.model.columns))
        for j, (columns, W) in motions.items():
            if np.any(self.inertia[j]):
                _add(M, columns, np.swapaxes(W, 1, 2) @ (self.inertia[j] @ W))
        for j, k in self.joint_rows():
            M[:, k, k] += self.chosen_number(self.tree.links[j].terms.motor_inertia)
        return M

    def of_rows(self, designs: Array) -> Assembly:
        """The assembly of poses with these designs, one by one."""
        made = copy.copy(self)
        made.chosen = designs
        made.inertia, made.stiffness = (table.of_rows(designs) for table in (self.inertia, self.stiffness))
        made.held = None if self.held is None else self.held.of(made)
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

    def stretch(self, spring: CoupledSpring) -> Array:
        """How far a coupled spring is stretched per unit of the unknowns."""
        row = np.zeros((len(self.chosen), self.model.columns))
        for number, c in zip(spring.numbers, spring.coefficients, strict=True):
            if number in self.rate_unknowns:
                row[:, self.rate_unknowns[number]] += self.chosen_number(c)
        return row

    def joint_rows(self) -> list[tuple[int, int]]:
        """Links that a joint with one axis moves, and the unknown that is its rate."""
        bodies = set(self.bodies)
        steps = (step for piece in self.model.cut.pieces for step in piece.steps if step.tie.size)
        return [
            (step.tie.joint, step.slots.start)
            for step in steps
            if step.tie.joint in bodies and self.tree.links[step.tie.joint].joint.one_axis
        ]

    def chosen_number(self, value: Any) -> Array:
        """A number, or an array of them, in the designs of the poses."""
        wide = with_design_axis(value, self.designs)
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
        return W[:, :, self.model.robot.tree.components] if self.model.width == 3 else W

    def _freedom(self, step: CutStep, rotation: Array, position: Array) -> Array:
        """Twist at the common point that a step adds, per unit of its unknowns."""
        blocks = []
        for freedom in self.freedoms[step.link]:
            R, p = (
                self.chosen_number(freedom.rotation).reshape(-1, 3, 3),
                self.chosen_number(freedom.position).reshape(-1, 3),
            )
            if freedom.link != GROUND:
                k = self.index[freedom.link]
                p = position[:, k] + (rotation[:, k] @ p[:, :, None])[:, :, 0]
                R = rotation[:, k] @ R
            W = _outward(R, p) @ self.chosen_number(freedom.S)
            blocks.append(np.broadcast_to(W, (len(rotation), *W.shape[1:])))
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


def _spread(columns: Array, block_columns: Array, W: Array) -> Array:
    """Columns of a block among sorted ones that hold them."""
    wide = np.zeros((*W.shape[:2], len(columns)))
    wide[:, :, np.searchsorted(columns, block_columns)] = W
    return wide


def _add(matrix: Array, columns: Array, block: Array) -> None:
    matrix[:, columns[:, None], columns] += block


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
        return len(self.robot.tree.components)

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


def node_model(robot: Robot) -> NodeModel:
    """Pieces and unknowns of a robot with its locked joints fixed."""
    refuse_elements(robot.tree)
    cut = cut_at_beams(robot)
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
    if any(item.acts and (item.stiffness or item.curve is not None) for item in tree.elements):
        raise NotCoveredError("an element with a spring between two points")
    if any(item.pulls_only for item in tree.springs):
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
        guided, hinge_motion = np.concatenate([hinge.guided_v, hinge.guided_w]), np.concatenate([hinge.S_v, hinge.S_w])
        pairs = ((loop.first, guided), (loop.second, hinge_motion))
        return [Freedom(end.link, end.rotation, end.position, sign * S) for end, S in pairs if S.shape[1]]
    node, free = tree.links[tie.second].node, next(m.free for m in cut.modal if m.link == tie.first)
    assert node is not None
    Phi = np.concatenate([node.Phi_d, node.Phi_r])[:, list(free)]
    return [Freedom(tie.first, np.eye(3), node.r0, sign * Phi)]


def has_spare_rows(cut: CutRobot) -> bool:
    """Whether loops have more rows than unknowns that they hold."""
    rows = [cut.robot.closures.loops[tie.closure].size for tie in cut.left_over if tie.closure is not None]
    return sum(rows) + sum(row.size for row in cut.robot.closures.constraints) > closing_rank(cut)


class LoopRows:
    """Rows over the unknowns that are zero, and motions that they leave free."""

    def __init__(self, assembly: Assembly, closures: Closures, rank: int) -> None:
        self.assembly, self.rank = assembly, rank
        self.cut = assembly.model.cut
        self.loops = [closures.loops[tie.closure] for tie in self.cut.left_over if tie.closure is not None]
        self.rows = closures.constraints
        self.length = float(self.cut.robot.tree.length)
        self.units = unknown_sizes(self.cut)
        scales = [loop.scale(self.length) for loop in self.plain_loops()]
        scales += [row.scale(self.length) for row in self.cut.robot.closures.constraints]
        self.row_units = np.concatenate(scales) if scales else np.zeros(0)

    def of(self, assembly: Assembly) -> LoopRows:
        """The same rows in the designs of an assembly."""
        made = copy.copy(self)
        made.assembly = assembly
        return made

    def plain_loops(self) -> Sequence[Loop]:
        """Those of the nominal design."""
        loops = self.cut.robot.closures.loops
        return [loops[tie.closure] for tie in self.cut.left_over if tie.closure is not None]

    def motions(self, rotation: Array, position: Array) -> tuple[Array, Array]:
        """Unknowns per unit of each motion (poses x unknowns x motions); whether loops hold as they do at home."""
        C = self.matrix(rotation, position)
        scaled = self.row_units[:, None] * C * (self.units / self.length)
        _, values, V = np.linalg.svd(scaled, full_matrices=True)
        Z = self.units[:, None] * np.swapaxes(V[:, self.rank :], 1, 2)
        top = np.maximum(values[:, :1], 1e-300)
        usual = values[:, self.rank - 1] * SINGULAR > top[:, 0]
        return Z, usual & (values[:, self.rank :] <= BRANCH * top).all(axis=1)

    def matrix(self, rotation: Array, position: Array) -> Array:
        """Rows (poses x rows x unknowns)."""
        parts = [self._loop(loop, rotation, position) for loop in self.loops]
        for row in self.rows:
            if isinstance(row, Coupling):
                parts.append(self._coupling(row, len(rotation)))
            else:
                assert isinstance(row, Distance)
                parts.append(self._distance(row, rotation, position))
        return np.concatenate(parts, axis=1)

    def _world(self, place: Place, rotation: Array, position: Array) -> tuple[Array, Array]:
        chosen = self.assembly.chosen_number
        R, p = chosen(place.rotation).reshape(-1, 3, 3), chosen(place.position).reshape(-1, 3)
        if place.link == GROUND:
            return np.broadcast_to(R, (len(rotation), 3, 3)), np.broadcast_to(p, (len(rotation), 3))
        k = self.assembly.index[place.link]
        link_rotation = rotation[:, k]
        return link_rotation @ R, position[:, k] + (link_rotation @ p[:, :, None])[:, :, 0]

    def _twist(self, j: int, rotation: Array, position: Array) -> Array:
        """Twist of a link at the common point per unit of all unknowns."""
        wide = np.zeros((len(rotation), 6, self.assembly.model.columns))
        columns, W = self.assembly.twist(j, rotation, position)
        wide[:, :, columns] = W
        return wide

    def _loop(self, loop: Loop, rotation: Array, position: Array) -> Array:
        """Rows of theory (9), (10) at closed poses."""
        chosen = self.assembly.chosen_number
        (R1, _), (R2, P2) = (self._world(end, rotation, position) for end in (loop.first, loop.second))
        apart = self._twist(loop.second.link, rotation, position) - self._twist(loop.first.link, rotation, position)
        inverse = np.swapaxes(R1, 1, 2)
        v = inverse @ (apart[:, :3] + np.cross(apart[:, 3:], P2[:, :, None], axis=1))
        w = inverse @ apart[:, 3:]
        rows = [chosen(loop.translations) @ v, chosen(loop.rotations) @ w]
        if loop.turning == "universal":
            second = (inverse @ R2 @ chosen(loop.u2)[..., None])[..., 0]
            normal = np.cross(second, np.broadcast_to(chosen(loop.u1), second.shape))
            rows.append(normal[:, None] @ w)
        return np.concatenate(rows, axis=1)

    def _coupling(self, row: Coupling, count: int) -> Array:
        """Rates of joints; those that are locked are not among the unknowns."""
        coupling_row = np.zeros((count, 1, self.assembly.model.columns))
        unknowns = self.assembly.rate_unknowns
        for number, c in zip(row.numbers, row.coefficients, strict=True):
            if number in unknowns:
                coupling_row[:, 0, unknowns[number]] += self.assembly.chosen_number(c)
        return coupling_row

    def _distance(self, row: Distance, rotation: Array, position: Array) -> Array:
        """Along the line between the places, less the rate of a strut."""
        (_, P1), (_, P2) = (self._world(end, rotation, position) for end in (row.first, row.second))
        across = P2 - P1
        across = across / np.linalg.norm(across, axis=1, keepdims=True)
        velocities = []
        for place, P in ((row.first, P1), (row.second, P2)):
            W = self._twist(place.link, rotation, position)
            velocities.append(W[:, :3] + np.cross(W[:, 3:], P[:, :, None], axis=1))
        distance_row = across[:, None] @ (velocities[1] - velocities[0])
        if row.number in self.assembly.rate_unknowns:
            distance_row[:, 0, self.assembly.rate_unknowns[row.number]] -= 1.0
        return distance_row


def unknown_sizes(cut: CutRobot) -> Array:
    """Typical sizes of unknowns: the length where something slides, 1 where it turns."""
    tree, sizes = cut.robot.tree, np.ones(cut.size)
    for beam in cut.beams:
        rates = tree.rate_units[tree.links[beam.link].e_v]
        sizes[beam.slots] = rates[len(rates) - beam.body.held :]
    for entry in cut.modal:
        sizes[entry.slots] = tree.rate_units[tree.links[entry.link].e_v][list(entry.free)]
    for piece in cut.pieces:
        if piece.reference != GROUND:
            width = piece.slots.stop - piece.slots.start
            sizes[piece.slots] = [tree.length] * (width - (1 if width == 3 else 3)) + [1.0] * (1 if width == 3 else 3)
        for step in piece.steps:
            if step.tie.joint is not None:
                sizes[step.slots] = tree.rate_units[tree.links[step.tie.joint].v][list(step.tie.free)]
            elif step.tie.closure is not None:
                hinge = cut.hinges[step.tie.closure]
                rotational = np.abs(np.concatenate([hinge.guided_w, hinge.S_w], axis=1)).max(axis=0) > 0
                sizes[step.slots] = np.where(rotational, 1.0, tree.length)
    return sizes


def ends_of(cut: CutRobot) -> list[int]:
    """Links that loops without a beam and rods tie."""
    loops = cut.robot.closures.loops
    ends = [end for tie in cut.left_over if tie.closure is not None for end in loops[tie.closure].ends]
    ends += [end.link for row in cut.robot.closures.constraints if isinstance(row, Distance) for end in row.places]
    return sorted(set(ends) - {GROUND})
