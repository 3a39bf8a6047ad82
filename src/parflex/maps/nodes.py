"""Mass and stiffness at undeformed poses in node coordinates, for many poses at once.

The robot is cut at its beams: each piece that is not on the ground has one free twist, the rest of it follows by joint
rates and by the coordinates of bodies that are not cut. Twists are taken at one common point in common axes: there all
frames that are rigidly tied have the same twist, and the elastic rates of a beam are the difference of the twists of
its ends.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parflex.bodies.elastic import Body
from parflex.closure.constraints import neutral_rotation
from parflex.maps.loop_rows import LoopRows, ends_of
from parflex.maps.node_unknowns import NodeModel, closing_rank, freedoms, joint_unknowns
from parflex.parameters.design_numbers import DesignNumbers, of_designs
from parflex.robot.substructures import PLANE, CutStep
from parflex.tree.force_elements import CoupledSpring
from parflex.tree.tree import GROUND, Link, Place

Array = np.ndarray
Motions = Mapping[int, tuple[Array, Array]]  # of bodies: unknowns, and what moves per unit of them


class _Needed(dict[int, Array]):
    """Matrices of bodies, made when they are asked for: statics need no mass."""

    def __init__(self, make: Callable[[Body], Array], links: Sequence[Link], designs: Any) -> None:
        super().__init__()
        self.make, self.links, self.designs = make, links, designs

    def __missing__(self, j: int) -> Array:
        self[j] = made = of_designs(self.make(self.links[j].body), self.designs)
        return made

    def of_rows(self, designs: Array) -> _Needed:
        """The same for rows with these designs."""
        return _OfRows(self, designs)


class _OfRows(_Needed):
    """The matrices of rows, from those of designs."""

    def __init__(self, every: _Needed, designs: Array) -> None:
        super().__init__(every.make, every.links, designs)
        self.every = every

    def __missing__(self, j: int) -> Array:
        own = self.every[j]
        self[j] = made = own[self.designs] if own.ndim == 3 else own
        return made


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
        ends = sorted({k for j in self.bodies for k in model.ends(j)} | set(ends_of(model.cut)))
        steps = {step.link: step for k in ends for step in model.paths[k][1]}
        closures = model.robot.closures if designs is None else designs.closures
        self.freedoms = {j: freedoms(model.cut, self.tree, closures.loops, step) for j, step in steps.items()}
        needed = {*ends, *(model.paths[k][0] for k in ends)}
        needed |= {one.link for own in self.freedoms.values() for one in own}
        self.links = sorted(needed - {GROUND})
        self.index = {j: k for k, j in enumerate(self.links)}
        self.axes = {j: self._axes(j) for j in model.roots}
        self.inertia = _Needed(_undeformed_inertia, self.tree.links, self.designs)
        self.stiffness = _Needed(_stiffness, self.tree.links, self.designs)
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
        own = (j for j in self.bodies if j in self.model.tip or np.any(self.inertia[j]))
        motions = {j: self.motion(j, rotation, position) for j in own}
        return self.open_stiffness(motions, len(rotation)), self.open_mass(motions, len(rotation))

    def open_stiffness(self, motions: Motions, poses: int) -> Array:
        """K over all unknowns from motions of bodies."""
        K = np.zeros((poses, len(self.columns), len(self.columns)))
        for j, (columns, W) in motions.items():
            if W.shape[1] > 6:
                bent = W[:, 6:]
                _add(K, self.number[columns], np.swapaxes(bent, 1, 2) @ (self.stiffness[j] @ bent))
        for j, k in self.joint_rows():
            K[:, k, k] += self.chosen_number(self.tree.links[j].terms.stiffness)
        for spring in self.tree.springs if len(self.bodies) == len(self.tree.links) else ():
            row = self.stretch(spring)
            K += np.reshape(self.chosen_number(spring.stiffness), (-1, 1, 1)) * (row[..., :, None] * row[..., None, :])
        return K

    def open_mass(self, motions: Motions, poses: int) -> Array:
        """M over all unknowns from motions of bodies."""
        M = np.zeros((poses, len(self.columns), len(self.columns)))
        for j, (columns, W) in motions.items():
            if np.any(self.inertia[j]):
                _add(M, self.number[columns], np.swapaxes(W, 1, 2) @ (self.inertia[j] @ W))
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
        for one in self.freedoms[step.link]:
            R, p = self.chosen_number(one.rotation).reshape(-1, 3, 3), self.chosen_number(one.position).reshape(-1, 3)
            if one.link != GROUND:
                k = self.index[one.link]
                p = position[:, k] + (rotation[:, k] @ p[:, :, None])[:, :, 0]
                R = rotation[:, k] @ R
            W = _outward(R, p) @ self.chosen_number(one.S)
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


def _spread(columns: Array, own: Array, W: Array) -> Array:
    """Columns of a block among sorted ones that hold them."""
    wide = np.zeros((*W.shape[:2], len(columns)))
    wide[:, :, np.searchsorted(columns, own)] = W
    return wide


def _add(matrix: Array, columns: Array, block: Array) -> None:
    matrix[:, columns[:, None], columns] += block
