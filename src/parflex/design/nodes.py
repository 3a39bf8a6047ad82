"""Mass and stiffness at undeformed poses in node coordinates, for many poses at once.

A beam with all coordinates of its tip lets its two ends move independently. So, once such beams are taken out, what is
left are rigid pieces with joints; each piece that is not on the ground has one free twist, the rest of it follows by
joint rates. Twists are taken at one common point in common axes: there all frames that are rigidly tied have the same
twist, and the elastic rates of a beam are the difference of the twists of its ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from parflex.bodies import Body
from parflex.closure.loops import Loop, neutral_rotation
from parflex.models.robot import Robot
from parflex.tree import Place
from parflex.tree.link_tree import GROUND

Array = np.ndarray
PLANE = (0, 1, 5)  # components of a twist that a planar robot has


class NotCoveredError(Exception):
    """The robot has something that node coordinates do not cover; the general reduction does."""


@dataclass(frozen=True)
class Tie:
    """Two links held together but for some relative motions: the columns of `S` (6 x f) at a place, in its axes."""

    first: int
    second: int
    link: int  # link whose axes and origin S refers to, before rotation and position
    rotation: Array
    position: Array
    S: Array
    rates: tuple[int, ...] = ()  # rates of the tree, of a joint
    cross: Loop | None = None  # a universal joint has an axis on either side


@dataclass
class NodeModel:
    """Unknowns, and how the twist of each link follows from them."""

    robot: Robot
    columns: int = 0
    names: list[str] = field(default_factory=list)
    roots: dict[int, tuple[int, int]] = field(default_factory=dict)  # root link of a piece -> first unknown, how many
    paths: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = field(default_factory=dict)
    ties: list[Tie] = field(default_factory=list)
    tie_columns: dict[int, int] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Unknowns of a free twist."""
        return 3 if self.robot.tree.planar else 6

    def felt(self, j: int) -> set[int]:
        """Unknowns that the body of a link feels, at its frame and at its node."""
        found: set[int] = set()
        for k in (j, *self.tips(j)):
            root, path = self.paths[k]
            if root != GROUND:
                first, width = self.roots[root]
                found |= set(range(first, first + width))
            for number, _ in path:
                start = self.tie_columns[number]
                found |= set(range(start, start + self.ties[number].S.shape[1]))
        return found

    def tips(self, j: int) -> list[int]:
        """Links that sit on nodes of the body of a link."""
        return [k for k, link in enumerate(self.robot.tree.links) if link.node is not None and link.parent == j]


def node_model(robot: Robot, roots: Sequence[int] = ()) -> NodeModel:
    """Pieces and unknowns of a robot with its locked joints fixed; pieces with one of `roots` are counted from it."""
    model = NodeModel(robot)
    model.ties = [*_joints(robot), *(_closure(loop, robot) for loop in robot.closures.loops)]
    links = range(len(robot.tree.links))
    neighbours: dict[int, list[tuple[int, int]]] = {j: [] for j in (GROUND, *links)}
    for number, tie in enumerate(model.ties):
        neighbours[tie.first].append((tie.second, number))
        neighbours[tie.second].append((tie.first, number))
    for start in (GROUND, *roots, *links):
        if start not in model.paths:
            _walk(model, start, neighbours)
    return model


def _joints(robot: Robot) -> list[Tie]:
    """Joints of the tree; a frame on a node of a beam is not tied to it."""
    tree, ties = robot.tree, []
    for j, link in enumerate(tree.links):
        if link.node is not None:
            _refuse_partial(tree.links[link.parent].body, link.node)
            continue
        free = [k for k in range(link.v.start, link.v.stop) if k not in robot.locked]
        if link.joint.kind in ("free", "planar") and link.parent == GROUND and len(free) == link.v.stop - link.v.start:
            continue  # it floats: nothing ties it
        S = np.concatenate([link.joint.S_v, link.joint.S_w])[:, [k - link.v.start for k in free]]
        ties.append(Tie(link.parent, j, j, np.eye(3), np.zeros(3), S, tuple(free)))
    return ties


def _refuse_partial(body: Body, node: object) -> None:
    Phi = np.concatenate([node.Phi_d, node.Phi_r])  # type: ignore[attr-defined]
    if not np.allclose(Phi.T @ Phi, np.eye(body.size)) or body.size not in (3, 6):
        raise NotCoveredError("a node that has not all coordinates of its own")


def _closure(loop: Loop, robot: Robot) -> Tie:
    """What a closure leaves free, at its place, in axes of the first; in the plane nothing leaves it."""
    if loop.turning == "universal":
        return Tie(loop.first.link, loop.second.link, loop.first.link, *_at(loop), np.zeros((6, 2)), (), loop)
    translations, rotations = loop.translations.reshape(-1, 3), loop.rotations.reshape(-1, 3)
    if robot.tree.planar:
        axes = neutral_rotation(robot.tree, loop.first).T  # columns: x, y and the normal of the plane
        translations, rotations = np.vstack([translations, axes[:, 2]]), np.vstack([rotations, axes[:, :2].T])
    rows = scipy.linalg.block_diag(translations, rotations)
    free = scipy.linalg.null_space(rows) if len(rows) else np.eye(6)
    free[np.abs(free) < 1e-14] = 0.0  # exact zeros keep motions in and out of a plane apart
    return Tie(loop.first.link, loop.second.link, loop.first.link, *_at(loop), free)


def _at(loop: Loop) -> tuple[Array, Array]:
    return loop.first.rotation, loop.first.position


def _walk(model: NodeModel, start: int, neighbours: dict[int, list[tuple[int, int]]]) -> None:
    """Number the unknowns of the piece that holds `start`."""
    if start != GROUND:
        model.roots[start] = (model.columns, model.width)
        model.names += [f"{model.robot.tree.links[start].name}.{k}" for k in range(model.width)]
        model.columns += model.width
    model.paths[start] = (start, ())
    waiting, used = [start], set()
    while waiting:
        here = waiting.pop(0)
        for other, number in neighbours[here]:
            if number in used:
                continue
            used.add(number)
            if other in model.paths:
                raise NotCoveredError("a loop that no beam is part of")
            tie = model.ties[number]
            size = tie.S.shape[1]
            if size:
                model.tie_columns[number] = model.columns
                model.names += [f"tie {number}.{k}" for k in range(size)]
                model.columns += size
            root, path = model.paths[here]
            step = ((number, 1 if tie.second == other else -1),) if size else ()
            model.paths[other] = (root, path + step)
            waiting.append(other)


class Assembly:
    """Matrices of a node model over chosen unknowns, from the places of links."""

    def __init__(self, model: NodeModel, links: Sequence[int] | None = None, columns: Array | None = None) -> None:
        self.model = model
        self.columns = np.arange(model.columns) if columns is None else columns
        self.number = np.full(model.columns, -1)
        self.number[self.columns] = np.arange(len(self.columns))
        self.bodies = list(range(len(model.robot.tree.links))) if links is None else list(links)
        needed: set[int] = set()
        for j in self.bodies:
            needed |= self._needs(j)
        self.links = sorted(needed - {GROUND})
        self.index = {j: k for k, j in enumerate(self.links)}
        self.axes = {j: self._axes(j) for j in model.roots}
        self.inertia = {j: _undeformed_inertia(model.robot.tree.links[j].body) for j in self.bodies}

    def _axes(self, j: int) -> Array:
        """Axes of the twist of a root, in those of its link: its own; of a planar robot those of the plane."""
        tree = self.model.robot.tree
        return neutral_rotation(tree, Place(j, np.eye(3), np.zeros(3))).T if tree.planar else np.eye(3)

    def _needs(self, j: int) -> set[int]:
        needed = {j, *self.model.tips(j)}
        for k in list(needed):
            root, path = self.model.paths[k]
            needed |= {root, *(end for n, _ in path for end in (self.model.ties[n].link, self.model.ties[n].second))}
        return needed

    def __call__(self, rotation: Array, position: Array) -> tuple[Array, Array]:
        """K and M (poses x n x n) over the chosen unknowns, from rotations and positions of `links`."""
        tree, size = self.model.robot.tree, len(self.columns)
        K, M = np.zeros((2, len(rotation), size, size))
        for j in self.bodies:
            link = tree.links[j]
            if link.body.size:
                tips = self.model.tips(j)
                if len(tips) != 1:
                    raise NotCoveredError("a beam with more than one node")
                self._add_beam(K, M, j, tips[0], rotation, position)
            elif np.any(self.inertia[j]):
                columns, W = self.twist(j, rotation, position)
                W = self.local(j, rotation, position) @ W
                _add(M, self.number[columns], np.swapaxes(W, 1, 2) @ (self.inertia[j] @ W))
        self._add_joints(K, M)
        return K, M

    def _add_joints(self, K: Array, M: Array) -> None:
        """Springs and rotors in the rows of joints."""
        tree = self.model.robot.tree
        own = set(self.bodies)
        for number, first in self.model.tie_columns.items():
            tie = self.model.ties[number]
            if tie.rates and tie.second in own and tree.links[tie.second].joint.kind in ("revolute", "prismatic"):
                k = self.number[first]
                K[:, k, k] += tree.links[tie.second].terms.stiffness
                M[:, k, k] += tree.links[tie.second].terms.motor_inertia

    def _add_beam(self, K: Array, M: Array, j: int, tip: int, rotation: Array, position: Array) -> None:
        tree = self.model.robot.tree
        body, node = tree.links[j].body, tree.links[tip].node
        assert node is not None
        Phi = np.concatenate([node.Phi_d, node.Phi_r])
        first, A = self.twist(j, rotation, position)
        second, B = self.twist(tip, rotation, position)
        columns = np.union1d(first, second).astype(int)
        ends = [np.zeros((len(rotation), 6, len(columns))) for _ in range(2)]
        ends[0][:, :, np.searchsorted(columns, first)] = A
        ends[1][:, :, np.searchsorted(columns, second)] = B
        root = self.local(j, rotation, position) @ ends[0]
        bent = Phi.T @ (self.local(tip, rotation, position) @ (ends[1] - ends[0]))
        W = np.concatenate([root, bent], axis=1)
        columns = self.number[columns]
        _add(M, columns, np.swapaxes(W, 1, 2) @ (self.inertia[j] @ W))
        _add(K, columns, np.swapaxes(bent, 1, 2) @ (body.material_stiffness(np.zeros(body.size)) @ bent))

    def twist(self, j: int, rotation: Array, position: Array) -> tuple[Array, Array]:
        """Unknowns that move a link, and its twist at the common point per unit of them (poses x 6 x c)."""
        model = self.model
        root, path = model.paths[j]
        columns: list[int] = []
        blocks = []
        if root != GROUND:
            first, width = model.roots[root]
            columns += range(first, first + width)
            blocks.append(self._root(root, rotation, position))
        for number, sign in path:
            tie = model.ties[number]
            S = self._freedom(tie, rotation, position)
            first = model.tie_columns[number]
            columns += range(first, first + S.shape[2])
            blocks.append(sign * S)
        shape = (len(rotation), 6, 0)
        return np.array(columns, dtype=int), np.concatenate([np.zeros(shape), *blocks], axis=2)

    def _root(self, j: int, rotation: Array, position: Array) -> Array:
        """Twist at the common point per unit twist of a root, in axes that move with it."""
        R = rotation[:, self.index[j]] @ self.axes[j]
        W = _outward(R, position[:, self.index[j]])
        return W[:, :, PLANE] if self.model.width == 3 else W

    def _freedom(self, tie: Tie, rotation: Array, position: Array) -> Array:
        if tie.link == GROUND:
            R = np.broadcast_to(tie.rotation, (len(rotation), 3, 3))
            p = np.broadcast_to(tie.position, (len(rotation), 3))
        else:
            k = self.index[tie.link]
            R = rotation[:, k] @ tie.rotation
            p = position[:, k] + rotation[:, k] @ tie.position
        if tie.cross is None:
            return _outward(R, p) @ tie.S
        loop = tie.cross
        R2 = (rotation[:, self.index[tie.second]] if tie.second != GROUND else np.eye(3)[None]) @ loop.second.rotation
        axes = np.zeros((len(rotation), 6, 2))
        axes[:, 3:, 0] = R @ loop.u1
        axes[:, 3:, 1] = R2 @ loop.u2
        return _outward(np.broadcast_to(np.eye(3), R.shape), p) @ axes

    def local(self, j: int, rotation: Array, position: Array) -> Array:
        """From the twist at the common point to that of a link, in its axes."""
        R, p = rotation[:, self.index[j]], position[:, self.index[j]]
        X = np.zeros((len(R), 6, 6))
        X[:, :3, :3] = X[:, 3:, 3:] = np.swapaxes(R, 1, 2)
        X[:, :3, 3:] = -np.swapaxes(R, 1, 2) @ _hats(p)
        return X


def _undeformed_inertia(body: Body) -> Array:
    return body.inertia_matrix(np.zeros(body.size))


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


def _add(matrix: Array, columns: Array, block: Array) -> None:
    matrix[:, columns[:, None], columns] += block
