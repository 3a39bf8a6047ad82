"""A super-element as an elastic body: motions of its interfaces, then modal coordinates, or free modes.

Where its frame holds it, its coordinates are those of the matrices without the node that is held; where it moves
freely, they are the modes of the free body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from parflex.bodies.elastic_body import ElasticBody, InnerNodes, MeanStrain, Node
from parflex.bodies.modal import ROUND_OFF
from parflex.bodies.super_elements.mass_integrals import mass_integrals
from parflex.bodies.super_elements.plane_modes import IN_PLANE, in_plane_modes
from parflex.bodies.super_elements.reduced_matrices import WORDS, InterfaceNode, ReducedMatrices, refuse
from parflex.bodies.super_elements.rigid_motions import RigidReport, rigid_report, rigid_shapes
from parflex.records import Record

Array = np.ndarray
LABELS = ("ux", "uy", "uz", "rx", "ry", "rz")
SINGULAR = 1e-13  # of scaled masses: less is none
DAMPED = 1e-3  # of the largest entry of D: dampers between the body and the ground


@dataclass(frozen=True, eq=False, repr=False)
class SuperNodes(InnerNodes, Record):
    """All nodes of a super-element, by the names of the robot or the numbers of the file."""

    nodes: dict[str, Node]

    def node(self, where: str) -> Node:
        """The node of a name or of a number."""
        if where not in self.nodes:
            raise LookupError(where)
        return self.nodes[where]

    def with_small_turns(self) -> SuperNodes:
        """The same with L = 1."""
        return SuperNodes({name: replace(node, consistent=False) for name, node in self.nodes.items()})


def chosen_nodes(data: ReducedMatrices, asked: Mapping[str, int]) -> dict[str, InterfaceNode]:
    """Nodes by name; numbers are those of the file, else 1, 2, ... in the order of its matrices."""
    known = {node.number: node for node in data.nodes}
    if not set(asked.values()) <= set(known):
        by_order = dict(enumerate(data.nodes, 1))
        if not set(asked.values()) <= set(by_order):
            wrong = next(number for number in asked.values() if number not in known)
            have = ", ".join(str(number) for number in list(known)[:8]) + (", ..." if len(known) > 8 else "")
            raise refuse(
                data.file,
                f"has no node {wrong}",
                f"its nodes are {have}, or 1 to {len(known)} in this order",
                "nodes",
                wrong,
            )
        known = by_order
    names = {name: known[number] for name, number in asked.items()}
    if len({node.number for node in names.values()}) < len(names):
        raise refuse(data.file, "two names are of one node", "give every node one name", "nodes")
    return names


@dataclass(frozen=True, eq=False, repr=False)
class SuperElement(Record):
    """Matrices, names of nodes, where it is clamped (else it moves in the mean with its frame), what was found.

    In a planar robot joints hold all interfaces in the plane: their freedoms are x, y and rz.
    """

    data: ReducedMatrices
    names: dict[str, InterfaceNode]
    root: str | None
    report: RigidReport
    planar: bool = False

    @property
    def origin(self) -> Array:
        """Of the frame, in the axes of the file: the node where it is clamped."""
        return self.position(self.names[self.root]) if self.root is not None else np.zeros(3)

    def position(self, node: InterfaceNode) -> Array:
        """Of a node."""
        return self.report.positions[[one.number for one in self.data.nodes].index(node.number)]

    @property
    def X(self) -> Array:
        """Rigid motions of the freedoms about the origin of the frame."""
        return rigid_shapes(self.data.nodes, self.report.positions - self.origin, self.data.size)

    def shapes(self) -> tuple[Array, tuple[str, ...], tuple[str, ...]]:
        """E: motions of the freedoms per elastic coordinate, with labels and units of these."""
        modes = in_plane_modes(self.data) if self.planar else np.eye(self.data.size)[:, self.data.interface :]
        held = () if self.root is None else self.names[self.root].rows
        free = [row for node in self.data.nodes for row in self._moving(node) if row not in held]
        E = np.column_stack([np.eye(self.data.size)[:, free], modes])
        if self.root is None:
            E = _free_modes(self.data, self.X[:, list(IN_PLANE)] if self.planar else self.X, E)
            return E, tuple(f"mode{k + 1}" for k in range(E.shape[1])), ("1",) * E.shape[1]
        if not self.names[self.root].turns:
            raise refuse(self.data.file, f"the node '{self.root}' has no rotations to be held", "clamp another", "root")
        others = [node for node in self.data.nodes if node.number != self.names[self.root].number]
        called = {node.number: name for name, node in self.names.items()}
        labels, units = [], []
        for node in others:
            before = "" if len(others) == 1 else called.get(node.number, f"node{node.number}") + "_"
            own = [node.rows.index(row) for row in self._moving(node)]
            labels += [before + LABELS[k] for k in own]
            units += ["m" if k < 3 else "rad" for k in own]
        count = modes.shape[1]
        return E, (*labels, *(f"mode{k + 1}" for k in range(count))), (*units, *("1",) * count)

    def _moving(self, node: InterfaceNode) -> tuple[int, ...]:
        """Rows of the freedoms that joints leave to a node."""
        return tuple(node.rows[k] for k in IN_PLANE if k < len(node.rows)) if self.planar else node.rows


def super_element(
    data: ReducedMatrices,
    asked: Mapping[str, int],
    root: str | None,
    places: Mapping[str, Sequence[float]] | None,
    planar: bool = False,
) -> SuperElement:
    """Matrices with their nodes named and their rigid motions checked."""
    names = chosen_nodes(data, asked)
    given: list[Array | None] = [node.position for node in data.nodes]
    placed = "file"
    if places:
        placed = "robot"
        own = {names[name].number: np.asarray(place, dtype=float) for name, place in places.items()}
        given = [own.get(node.number) for node in data.nodes]
    missing = [node.number for node, place in zip(data.nodes, given, strict=True) if place is None]
    if missing and (placed == "robot" or len(missing) < len(given)):
        raise refuse(data.file, f"node {missing[0]} has no position", "give one for every node, or none", "positions")
    positions = None if missing else np.array(given)
    return SuperElement(data, names, root, rigid_report(data, positions, placed), planar)


def _free_modes(data: ReducedMatrices, X: Array, P: Array) -> Array:
    """Modes of the body in P without rigid motions, of mass 1, by rising frequency, the largest motion positive."""
    held = P.T @ data.M @ P
    size = np.sqrt(np.maximum(np.diag(held), 0.0))
    if not size.all() or np.linalg.eigvalsh(held / np.outer(size, size))[0] < SINGULAR:
        hint = "lump masses with rotary inertia, retain fewer freedoms, or clamp it at a node: root = NAME"
        raise refuse(data.file, "some motion of its interfaces has no mass, so it has no free modes", hint, "M")
    C = P @ scipy.linalg.null_space((P.T @ data.M @ X).T / np.linalg.norm(P.T @ data.M @ X, axis=0)[:, None])
    _, V = scipy.linalg.eigh(C.T @ data.K @ C, C.T @ data.M @ C)
    E = C @ V
    E = E - X @ np.linalg.solve(X.T @ data.M @ X, X.T @ data.M @ E)
    largest = E[np.abs(E).argmax(axis=0), np.arange(E.shape[1])]
    return E * np.sign(largest)


def super_body(
    element: SuperElement, damping: Any = None, loads: Mapping[str, Sequence[float]] | None = None
) -> ElasticBody:
    """The body; `damping` is a ratio for all its modes, or factors of mass and stiffness; `loads` belong to KG."""
    data, X = element.data, element.X
    E, labels, units = element.shapes()
    if not E.shape[1]:
        raise refuse(data.file, "has one node and no modes: nothing can deform", "use a rigid body", "nodes")
    S, G, affine = mass_integrals(element.report, data, X, E, element.origin)
    K = _without_noise(E.T @ data.K @ E)
    M = E.T @ data.M @ E
    if np.linalg.eigvalsh(K / np.sqrt(np.outer(np.abs(np.diag(K)), np.abs(np.diag(K)))))[0] <= 0:
        where = "as a free body" if element.root is None else f"with '{element.root}' held"
        raise refuse(data.file, f"K is not positive {where}", "retain what holds its parts together", "K")
    nodes = {name: _node(element, node, E) for name, node in element.names.items() if name != element.root}
    every = {str(node.number): _node(element, node, E) for node in data.nodes}
    every |= {name: every[str(node.number)] for name, node in element.names.items()}
    return ElasticBody(
        element.report.mass, S, G, K, _damping(element, E, M, K, damping), nodes, labels, modal=True,
        strains=_stress(element, E, K, loads), inner=SuperNodes(every), coordinate_units=units, affine=affine,
        found=replace(element.report, notes=(*element.report.notes, *damping_note(element))),
    )  # fmt: skip


def _node(element: SuperElement, node: InterfaceNode, E: Array) -> Node:
    rows = list(node.rows)
    moved = np.zeros((6, E.shape[1]))
    moved[: len(rows)] = E[rows]
    for part in (slice(0, 3), slice(3, 6)):
        moved[part] = np.where(np.abs(moved[part]) > ROUND_OFF * np.abs(moved[part]).max(initial=0.0), moved[part], 0.0)
    return Node(element.position(node) - element.origin, moved[:3], moved[3:], turns=node.turns)


def _without_noise(K: Array) -> Array:
    scale = np.sqrt(np.outer(np.abs(np.diag(K)), np.abs(np.diag(K))))
    K = np.where(np.abs(K) > ROUND_OFF * scale, K, 0.0)
    return (K + K.T) / 2


def _damping(element: SuperElement, E: Array, M: Array, K: Array, damping: Any) -> Array:
    """By a ratio for all modes, by factors of M and K, or as the file has it."""
    if isinstance(damping, tuple):
        mass, stiffness = damping
        return mass * M + stiffness * K
    if damping is not None:
        inverse, V = scipy.linalg.eigh(M, K)
        D1 = K @ V @ np.diag(2 * np.sqrt(np.maximum(inverse, 0.0))) @ V.T @ K
        return damping * D1  # a number, or one that differs from design to design
    D = element.data.D
    if D is None:
        return np.zeros_like(K)
    if np.linalg.eigvalsh(D)[0] < -DAMPED * np.abs(D).max():
        raise refuse(element.data.file, f"the {WORDS['D']} D is indefinite", "give a damping that takes power", "D")
    return _without_noise(E.T @ D @ E)


def damping_note(element: SuperElement) -> list[str]:
    """What of the damping matrix is not taken: dampers between the body and the ground."""
    D = element.data.D
    if D is None or np.abs(D @ element.X[:, :3]).max() <= DAMPED * np.abs(D).max():
        return []
    return ["its damping matrix resists rigid motions: that part is left out"]


def _stress(
    element: SuperElement, E: Array, K: Array, loads: Mapping[str, Sequence[float]] | None
) -> tuple[MeanStrain, ...]:
    """Elongations of second order whose tension adds the geometric stiffness, theory (70)."""
    KG = element.data.geometric
    if KG is None:
        return ()
    if KG.ndim == 2:
        return (_loaded_strain(element, E, K, E.T @ KG @ E, loads),)
    along = np.einsum("mij,mk,ia,jb->kab", KG, E, E, E, optimize=True)
    values, V = scipy.linalg.eigh(K)
    strains = []
    for k, v in zip(values, V.T, strict=True):
        H = np.tensordot(v, along, 1) / k
        if np.abs(H).max() > 0:
            strains.append(MeanStrain(v, (H + H.T) / 2, float(k)))
    return tuple(strains)


def _loaded_strain(
    element: SuperElement, E: Array, K: Array, KG: Array, loads: Mapping[str, Sequence[float]] | None
) -> MeanStrain:
    file = element.data.file
    if not loads:
        hint = (
            "write geometric = { NODE = [fx, fy, fz, mx, my, mz] }, the load that it belongs to, or geometric = false"
        )
        raise refuse(file, "its geometric stiffness belongs to a load that is not known", hint, "geometric")
    force = np.zeros(element.data.size)
    for name, load in loads.items():
        if name not in element.names:
            hint = f"its nodes are {', '.join(element.names)}"
            raise refuse(file, f"there is no node '{name}'", hint, "geometric", name)
        rows = list(element.names[name].rows)
        force[rows] += np.asarray(load, dtype=float)[: len(rows)]
    f = E.T @ force
    e = np.linalg.solve(K, f)
    if not f @ e > 0:
        raise refuse(
            file, "the load of its geometric stiffness strains nothing", "load another node than the root", "geometric"
        )
    k = float(f @ e)
    return MeanStrain(f / k, (KG + KG.T) / (2 * k), k)
