"""Mass and stiffness of bodies in own axes, over any scalar: zeros are exact, and equal entries are one expression."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.codegen.optimise import make_program
from parflex.maps.engine.frames import FrameBuilder
from parflex.maps.engine.small_matrices import product
from parflex.parameters.design_numbers import DesignNumbers
from parflex.symbolic.expression import Expression, Graph
from parflex.tree.tree import Tree

Array = np.ndarray
NOTHING = 1e-12  # of the diagonal entries: what is smaller in the matrix of a body is rounding


class BodyMatrices:
    """K and M of the bodies of a tree whose numbers may be symbols."""

    def __init__(self, graph: Graph, tree: Tree, builder: FrameBuilder, designs: DesignNumbers | None) -> None:
        self.graph, self.tree, self.builder, self.designs = graph, tree, builder, designs
        self._made: dict[tuple, tuple[Array, Array]] = {}
        self._equal: dict[tuple[str, ...], Any] = {}

    def body(self, j: int, free: list[int]) -> tuple[Array, Array]:
        """Over the twist of a link, and the coordinates of its body that are unknowns."""
        body = self.tree.links[j].body
        rows = [*range(6), *(6 + k for k in free)]
        M = np.asarray(body.inertia_matrix(np.zeros(body.size)))[np.ix_(rows, rows)]
        K = np.zeros(M.shape, dtype=object)
        if free:
            K[6:, 6:] = np.asarray(body.material_stiffness(np.zeros(body.size)))[np.ix_(free, free)]
        return self._in_own_axes(K, M, [self.builder.axes(j)])

    def beam(self, j: int, tip: int) -> tuple[Array, Array]:
        """Over the twists of both ends in own axes, and modes with both ends held."""
        body, node = self.tree.links[j].body, self.tree.links[tip].node
        assert node is not None
        inertia, stiffness = (
            np.asarray(body.inertia_matrix(np.zeros(body.size))),
            body.material_stiffness(np.zeros(body.size)),
        )
        key = _key(self.graph, inertia, stiffness, node.r0, self.builder.axes(j), self.builder.axes(tip))
        if key not in self._made:
            held, size = body.held, body.size
            Phi = np.concatenate([node.Phi_d, node.Phi_r])
            X = np.zeros((6, 6), dtype=object)
            X[:3, :3] = X[3:, 3:] = np.eye(3)
            p = node.r0
            X[0, 4], X[0, 5], X[1, 3], X[1, 5], X[2, 3], X[2, 4] = p[2], -p[1], -p[2], p[0], p[1], -p[0]
            G = np.zeros((6 + size, 12 + held), dtype=object)
            G[:6, :6] = np.eye(6)
            G[6:, :6], G[6:, 6:12] = -product(Phi.T, X), Phi.T
            for k in range(held):
                G[6 + size - held + k, :] = 0.0
                G[6 + size - held + k, 12 + k] = 1.0
            M = product(G.T, product(inertia.astype(object), G))
            K = product(G[6:].T, product(np.asarray(stiffness).astype(object), G[6:]))
            self._made[key] = self._in_own_axes(K, M, [self.builder.axes(j), self.builder.axes(tip)])
        return self._made[key]

    def _in_own_axes(self, K: Array, M: Array, axes: list[Array]) -> tuple[Array, Array]:
        """Matrices over used components in own axes, with what is rounding left out."""
        rest = len(K) - 6 * len(axes)
        T = np.zeros((len(K), len(K)))
        for n, A in enumerate(axes):
            T[6 * n : 6 * n + 3, 6 * n : 6 * n + 3] = T[6 * n + 3 : 6 * n + 6, 6 * n + 3 : 6 * n + 6] = A
        T[6 * len(axes) :, 6 * len(axes) :] = np.eye(rest)
        used = [6 * n + k for n in range(len(axes)) for k in self.builder.used]
        used += range(6 * len(axes), len(K))
        if not np.array_equal(T, np.eye(len(T))):
            K, M = product(T.T, product(K, T)), product(T.T, product(M, T))
        K, M = K[np.ix_(used, used)].astype(object), M[np.ix_(used, used)].astype(object)
        return self._cleaned(K), self._cleaned(M)

    def _cleaned(self, matrix: Array) -> Array:
        """Zeros for what is rounding alone, whatever the design."""
        numbers = self._samples(matrix)
        sizes = np.sqrt(np.abs(np.einsum("sii->si", numbers)))
        small = np.abs(numbers) <= NOTHING * sizes[:, :, None] * sizes[:, None, :]
        result = matrix.copy()
        for i, j in np.ndindex(result.shape):
            if i > j:
                continue
            if small[:, i, j].all():
                result[i, j] = result[j, i] = 0.0
                continue
            # entries that are equal in every design are one, so that what cancels on paper cancels here
            sign = -1.0 if numbers[0, i, j] < 0 else 1.0
            name = tuple(f"{sign * x:.11e}" for x in numbers[:, i, j])
            result[i, j] = result[j, i] = sign * self._equal.setdefault(name, sign * result[i, j])
        return result

    def _samples(self, matrix: Array) -> Array:
        """Values of entries in some designs near the given ones."""
        if self.designs is None:
            return matrix.astype(float)[None]
        values = self._sample_values()
        program = make_program(self.graph, "sample", {"m": matrix}, quick=True)
        found = [program.evaluate({name: row.get(name, 0.0) for name in program.inputs}) for row in values]
        return np.array([list(row.values()) for row in found]).reshape(len(values), *matrix.shape)

    def _sample_values(self) -> list[dict[str, float]]:
        assert self.designs is not None
        numbers = self.designs
        if numbers.samples is not None:  # what is equal by the formulas of the file is equal there: mirrored halves
            return [{f"design[{k}]": float(x) for k, x in enumerate(row)} for row in numbers.samples]
        size = np.maximum(np.abs(numbers.values).max(axis=0), np.abs(numbers.nominal))
        turns = np.random.default_rng(0).uniform(-0.05, 0.05, (2, len(size)))
        return [{f"design[{k}]": float(x) for k, x in enumerate(numbers.nominal + turn * size)} for turn in turns]


def _key(graph: Graph, *arrays: Any) -> tuple:
    return tuple(
        graph.edge(x) if isinstance(x, Expression) else float(x) for array in arrays for x in np.asarray(array).flat
    )
