"""A finite-element model of a frame of beams and rigid bodies by direct stiffness, in world axes.

Every node has six unknowns: displacement and small rotation in world axes. Beams join nodes; joints, supports and
rigid arms are linear equations between the unknowns, which are eliminated by a basis of their null space, so that
equations which repeat others do no harm. In the plane only x, y and the turn about z are kept.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from .beam_element import Bar, element

PLANAR = (0, 1, 5)
# directions that a joint ties, in axes whose z is its own: displacements, then rotations
JOINTS = {
    "welded": (0, 1, 2, 3, 4, 5),
    "revolute": (0, 1, 2, 3, 4),
    "spherical": (0, 1, 2),
    "cylindrical": (0, 1, 3, 4),
    "prismatic": (0, 1, 3, 4, 5),
    "point-on-line": (0, 1),
    "point-on-plane": (2,),
}
Vector = Sequence[float] | np.ndarray


def cross_matrix(v: Vector) -> np.ndarray:
    """The matrix that takes b to v x b."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def axes_along(direction: Vector, near_y: Vector = (0.0, 0.0, 1.0), first: bool = True) -> np.ndarray:
    """Rows of three unit vectors: the direction as x (or z), and y near the given vector."""
    x = np.array(direction, float) / np.linalg.norm(direction)
    y = np.array(near_y, float) - x * (x @ near_y)
    if np.linalg.norm(y) < 1e-9:
        other = np.eye(3)[np.abs(x).argmin()]
        y = other - x * (x @ other)
    y /= np.linalg.norm(y)
    return np.array([x, y, np.cross(x, y)]) if first else np.array([y, np.cross(x, y), x])


class FrameModel:
    """Nodes, beams, masses, springs, and equations between unknowns."""

    def __init__(self, planar: bool = False) -> None:
        self.planar = planar
        self.positions: list[np.ndarray] = []
        self.equations: list[np.ndarray] = []  # rows over the unknowns, padded when solved
        self.parts: list[tuple[list[int], np.ndarray, np.ndarray]] = []  # unknowns, stiffness, mass

    def node(self, position: Vector) -> int:
        self.positions.append(np.array(position, float))
        return len(self.positions) - 1

    def unknowns(self, *nodes: int) -> list[int]:
        return [6 * node + k for node in nodes for k in range(6)]

    def beam(self, start: int, end: int, bar: Bar, section_y: Vector = (0.0, 0.0, 1.0), elements: int = 1) -> list[int]:
        """Elements in a row between two nodes; `section_y` says where y of the section points. All nodes come back."""
        a, b = self.positions[start], self.positions[end]
        inner = [self.node(a + (b - a) * k / elements) for k in range(1, elements)]
        nodes = [start, *inner, end]
        T = np.kron(np.eye(4), axes_along(b - a, section_y))
        K, M = element(float(np.linalg.norm(b - a)) / elements, bar)
        for pair in itertools.pairwise(nodes):
            self.parts.append((self.unknowns(*pair), T.T @ K @ T, T.T @ M @ T))
        return nodes

    def mass(self, node: int, mass: float, inertia: np.ndarray | None = None, offset: Vector = (0.0, 0.0, 0.0)) -> None:
        """A body fixed to a node: its centre at `offset`, its inertia about the centre, both in world axes."""
        arm = np.hstack([np.eye(3), -cross_matrix(offset)])
        M = mass * arm.T @ arm
        M[3:, 3:] += np.zeros((3, 3)) if inertia is None else inertia
        self.parts.append((self.unknowns(node), np.zeros((6, 6)), M))

    def spring(
        self, direction: Vector, stiffness: float, node: int, other: int | None = None, turn: bool = True
    ) -> None:
        """A spring about (or along) a direction, between two nodes or from a node to the ground."""
        row = np.concatenate([np.zeros(3), direction] if turn else [direction, np.zeros(3)])
        row = row if other is None else np.concatenate([row, -row])
        nodes = (node,) if other is None else (node, other)
        self.parts.append((self.unknowns(*nodes), stiffness * np.outer(row, row), np.zeros((len(row), len(row)))))

    def tie(self, node: int, other: int | None = None, joint: str = "welded", axis: Vector = (0.0, 0.0, 1.0)) -> None:
        """A joint between two nodes, or of a node on the ground; rigid arms bridge the distance between nodes."""
        reach = np.zeros(3) if other is None else self.positions[node] - self.positions[other]
        local = np.kron(np.eye(2), axes_along(axis, first=False))
        rows = local[list(JOINTS[joint])]
        block = np.zeros((len(rows), 6 * len(self.positions)))
        block[:, self.unknowns(node)] = rows
        if other is not None:  # the point of the other body that is where the first node is
            moved = np.block([[np.eye(3), -cross_matrix(reach)], [np.zeros((3, 3)), np.eye(3)]])
            block[:, self.unknowns(other)] -= rows @ moved
        self.equations.extend(block)

    def rigid(self, node: int, position: Vector) -> int:
        end = self.node(position)
        self.tie(end, node)
        return end

    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Stiffness and mass in independent unknowns, and the matrix from these to all unknowns."""
        count = 6 * len(self.positions)
        K, M = np.zeros((count, count)), np.zeros((count, count))
        for where, k, m in self.parts:
            K[np.ix_(where, where)] += k
            M[np.ix_(where, where)] += m
        kept = [6 * n + k for n in range(len(self.positions)) for k in (PLANAR if self.planar else range(6))]
        C = np.array([np.pad(row, (0, count - len(row))) for row in self.equations]).reshape(-1, count)[:, kept]
        basis = np.zeros((count, len(kept)))
        basis[kept] = np.eye(len(kept))
        if len(C):
            basis = basis @ scipy.linalg.null_space(C, rcond=1e-10)
        return basis.T @ K @ basis, basis.T @ M @ basis, basis

    def modes(self, count: int, skip: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return frequencies in Hz after the `skip` lowest, and mass-normalised shapes over all unknowns."""
        K, M, basis = self.matrices()
        rough = scipy.linalg.eigvalsh(K, M)
        shift = abs(rough[min(skip, len(rough) - 1)])
        last = len(K) - 1
        values, vectors = scipy.linalg.eigh(M, K + shift * M, subset_by_index=[last + 1 - skip - count, last])
        values, vectors = (1 / values - shift)[::-1][skip:], vectors[:, ::-1][:, skip:]
        shapes = basis @ vectors / np.sqrt(np.einsum("ik,ij,jk->k", vectors, M, vectors))
        return np.sqrt(values) / (2 * np.pi), shapes

    def frequencies(self, count: int, skip: int = 0) -> np.ndarray:
        return self.modes(count, skip)[0]

    def deflection(self, loads: dict[int, np.ndarray]) -> np.ndarray:
        """Displacement and rotation of every node (nodes x 6) under forces and moments at nodes."""
        K, _, basis = self.matrices()
        f = np.zeros(basis.shape[0])
        for node, load in loads.items():
            f[self.unknowns(node)] += load
        return (basis @ scipy.linalg.solve(K, basis.T @ f, assume_a="pos")).reshape(-1, 6)
