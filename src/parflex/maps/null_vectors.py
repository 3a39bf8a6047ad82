"""Shapes of modes of the small problem: null vectors of D(x) by inverse iteration, mass-normalised.

The mass that a mode feels is -dD/dx: for an exact condensation v^T (-dD/dx) v is the modal mass of the whole robot.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from parflex.codegen.compile import Kernel
from parflex.codegen.passes.optimise import make_program
from parflex.codegen.program import Program
from parflex.graph.derivative import jacobian
from parflex.graph.expression import Graph
from parflex.maps.search import ACCURATE
from parflex.spatial.elimination import eliminate, is_zero, substitute

Array = np.ndarray
CLOSE = 1e-5  # relative distance in x of modes that are given as a basis of what they span: roots are known to 1e-9
ROUNDS = 3  # solutions for a shape; each brings the other modes down by 1e-4 or more
SETTLED = 1e-9  # 1 - cosine between the last two: the shape before was good to 5e-5, the last one to the square of it


class NullVectors:
    """The program of a block: x, entries of a pose and a right side b in; v with D v = b, and -dD/dx v, out."""

    def __init__(self, size: int, where: Array, program: Program) -> None:
        self.size, self.where, self.program = size, where, program
        self.start = np.random.default_rng(0).uniform(-1, 1, size)  # any that no mode is normal to

    @cached_property
    def kernel(self) -> Kernel:
        """Machine code; kept on disk."""
        return Kernel(self.program)

    def __call__(self, rows: Array, poses: Array, x: Array, sizes: Array) -> tuple[Array, Array]:
        """Shapes (tasks x unknowns) of modes x of poses, given by rows of entries; and which of them are sure.

        Tasks go pose by pose, modes upwards; `sizes` are typical pivots.
        """
        from parflex.maps import root_loop  # numba takes a third of a second to load

        vectors, off = np.zeros((len(x), self.size)), np.zeros((len(x), 2))
        kernel = self.kernel
        inputs = np.zeros((1 + len(self.where) + self.size, kernel.lanes))
        outputs = np.zeros((2 * self.size, kernel.lanes))
        program = (kernel.address("many_in"), kernel.workspace(), self.where, self.size, inputs, outputs)
        start = self.start * np.sqrt(sizes)
        root_loop.null_vectors(program, rows, poses, x, start, ROUNDS, vectors, off)
        sure = (off[:, 0] <= 2 * ACCURATE) & (off[:, 1] <= SETTLED)
        for first, last in _runs(poses, x):
            vectors[first:last] = self._together(rows[poses[first]], x[first:last], np.sqrt(sizes))
            sure[first:last] = np.isfinite(vectors[first:last]).all()
        return vectors, sure

    def _together(self, row: Array, x: Array, sizes: Array) -> Array:
        """A basis of modes that are too close to be told apart, by iteration with as many vectors."""
        count = len(x)
        B = np.random.default_rng(1).uniform(-1, 1, (count, self.size)) * sizes
        fixed = np.tile(np.concatenate([[x.mean() * (1 + ACCURATE)], row[self.where]]), (count, 1))
        for _ in range(ROUNDS):
            found = self.kernel.many(np.concatenate([fixed, B], axis=1))
            V, G = found[:, : self.size], found[:, self.size :]
            norm, turn = np.linalg.eigh(V @ G.T + G @ V.T)
            change = (turn / np.sqrt(np.maximum(0.5 * norm, 1e-300))).T
            V, B = change @ V, change @ G
        return V


def _runs(poses: Array, x: Array) -> Iterator[tuple[int, int]]:
    """Neighbouring tasks of one pose whose modes are close."""
    near = (poses[1:] == poses[:-1]) & (np.abs(x[1:] - x[:-1]) <= CLOSE * x[1:])
    first = 0
    for k in np.flatnonzero(near):
        if k < first:
            continue
        last = int(k) + 1
        while last < len(near) and near[last]:
            last += 1
        yield int(k), last + 1
        first = last + 1


def null_program(graph: Graph, x: Any, A: Array, order: list[int]) -> Program:
    """Solve A v = b by elimination in the given order; the vectors are in this order too."""
    A = A[np.ix_(order, order)]
    size = len(order)
    b = [graph.symbol(f"b[{k}]") for k in range(size)]
    filled = [(i, j) for i, j in np.ndindex(size, size) if i <= j and not is_zero(A[i, j])]
    slopes = [row[0] for row in jacobian([A[i, j] for i, j in filled], [x])]
    v = substitute(eliminate(A), b)
    felt: list[Any] = [0.0] * size
    for (i, j), slope in zip(filled, slopes, strict=True):
        if not is_zero(slope):
            felt[i] = felt[i] - slope * v[j]
            if i != j:
                felt[j] = felt[j] - slope * v[i]
    outputs = {"v": np.array(v, dtype=object), "felt": np.array(felt, dtype=object)}
    return make_program(graph, "null", outputs, quick=True)
