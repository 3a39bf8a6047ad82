"""The small eigenvalue problem of a pose: core and condensed legs, its modes found by counting.

D(x) = K - x M - (series of the modes that are not kept), x = omega^2, over the unknowns of the core and the kept modes
of the legs. Its elimination without pivoting gives by Sylvester's law the number of modes below x, for the series has
no pole in the band, and its determinant, which is smooth in x. The program is compiled once for each block of unknowns
that nothing couples, and run for all poses side by side: counts on a grid of x tell the modes apart, the determinant
brings each root to rounding, and counts on both sides of it are the proof that it is the mode with this number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from parflex.codegen.passes.optimise import make_program
from parflex.codegen.program import Program
from parflex.graph.expression import Graph
from parflex.maps.condensation import SEPARATE, Band
from parflex.maps.legs import LegStructure, LegSubstructure
from parflex.maps.null_vectors import NullVectors, null_program
from parflex.maps.search import Elimination, Search
from parflex.maps.tables import LegTable, unpacked
from parflex.records import Record
from parflex.spatial.elimination import eliminate, is_zero

Array = np.ndarray
SIDE_BY_SIDE = 8192  # poses at a time: some megabytes


@dataclass(frozen=True, eq=False, repr=False)
class Found(Record):
    """Squares of circular frequencies (poses x modes), and which poses are proved."""

    x: Array
    ok: Array


@dataclass(frozen=True, eq=False, repr=False)
class _Share(Record):
    """What one group of a leg gives to a block: its components at the port, in axes of leg and core, and its modes."""

    leg: int
    layout: int
    ends: Array  # components in axes of the leg
    components: Array  # of the port, in axes of the core
    where: Array  # of these components among all unknowns
    modes: Array  # of the kept modes among all unknowns


class ReducedProblem:
    """Lowest modes for many poses from tables."""

    def __init__(self, structure: LegStructure, tables: list[LegTable], band: Band) -> None:
        self.structure, self.tables, self.band = structure, tables, band
        self._parts = self._cut()
        self.blocks = [self._elimination(*part) for part in self._parts]

    def solve(self, q: Array, modes: int, shapes: Array | None = None) -> Found:
        """The lowest modes at positions of the rigid tree; if requested, shapes over the core (poses x modes x n)."""
        found = Found(np.full((len(q), modes), np.nan), np.zeros(len(q), dtype=bool))
        for start in range(0, len(q), SIDE_BY_SIDE):
            rows = slice(start, start + SIDE_BY_SIDE)
            found.x[rows], found.ok[rows] = self._some(q[rows], modes, None if shapes is None else shapes[rows])
        return found

    def _some(self, q: Array, modes: int, shapes: Array | None) -> tuple[Array, Array]:
        rows, inside = self._entries(q)
        if not inside.any():
            return np.full((len(q), modes), np.nan), inside
        searches = [Search(block, rows, self.band.top) for block in self.blocks]
        limit = np.sort(np.concatenate([one.upper(modes) for one in searches], axis=1), axis=1)[:, modes - 1]
        x = np.concatenate([one.roots(modes, limit) for one in searches], axis=1)
        sure = inside & ~np.isnan(x).any(axis=1)  # a mode that was not proved may be one of the lowest
        order = np.argsort(x, axis=1)[:, :modes]
        x = np.take_along_axis(x, order, axis=1)
        sure &= np.isfinite(x).all(axis=1)
        if shapes is not None:
            sure &= self._shapes(rows, x, order // modes, [one.sizes for one in searches], shapes, sure)
        return x, sure

    def _shapes(self, rows: Array, x: Array, block: Array, sizes: list[Array], shapes: Array, sure: Array) -> Array:
        """Shapes of modes that are sure and of the given blocks; which poses have all of theirs."""
        good, core = np.ones(len(rows), dtype=bool), shapes.shape[2]
        for number, (null, unknowns) in enumerate(self.null_vectors):
            poses, modes = np.nonzero((block == number) & sure[:, None])
            vectors, fine = null(rows, poses, x[poses, modes], sizes[number])
            good[poses[~fine]] = False
            own = np.flatnonzero(unknowns < core)
            shapes[poses, modes] = 0.0
            shapes[poses[:, None], modes[:, None], unknowns[own]] = vectors[:, own]
        return good

    def _entries(self, q: Array) -> tuple[Array, Array]:
        """Rows of all that blocks take: entries of the legs, cosines and sines of ports; and which poses have them."""
        pairs = list(zip(self.structure.legs, self.tables, strict=True))
        angles = np.stack([q[:, leg.port.position] for leg in self.structure.legs], axis=1)
        parts = [table(leg.shape.of(q)) for leg, table in pairs]
        rows = np.concatenate([*parts, np.cos(angles), np.sin(angles)], axis=1)
        inside = np.all([np.isfinite(part[:, -1]) for part in parts], axis=0)
        if inside.any() and not inside.all():
            rows[~inside] = rows[inside][0]  # any numbers do: these poses are not sure
        return rows, inside

    def _place(self, name: str) -> int:
        """Where an input of a program stands in the rows."""
        widths = [sum(layout.width for layout in table.layouts) for table in self.tables]
        leg, entry = _numbers(name)
        if entry < 0:  # cosine -1, sine -2
            return sum(widths) + (-entry - 1) * len(widths) + leg
        return sum(widths[:leg]) + entry

    # -- set up ----------------------------------------------------------------------------------------

    def _cut(self) -> list[tuple[Array, list[_Share], list[int]]]:
        """Unknowns cut into blocks that stay apart at all poses: each with its shares of legs, and in which order."""
        core = self.structure
        count = len(core.columns)
        shares, total = [], count
        for number, (leg, table) in enumerate(zip(core.legs, self.tables, strict=True)):
            for index, layout in enumerate(table.layouts):
                components = _mixed(leg, layout.ends)
                where = np.searchsorted(core.columns, leg.port_columns[components])
                modes = np.arange(total, total + layout.group.kept)
                shares.append(_Share(number, index, layout.ends, components, where, modes))
                total += layout.group.kept
        K, M = (_cleaned(matrix) for matrix in (core.K, core.M))
        pattern = np.eye(total, dtype=bool)
        pattern[:count, :count] |= (K != 0) | (M != 0)
        for share in shares:
            members = np.concatenate([share.where, share.modes])
            pattern[np.ix_(members, members)] = True
        number, label = connected_components(csr_array(pattern))
        parts = [self._part(np.flatnonzero(label == k), shares) for k in range(number)]
        return [(members, mine, self._order(members, mine, count)) for members, mine in parts]

    @staticmethod
    def _part(members: Array, shares: list[_Share]) -> tuple[Array, list[_Share]]:
        """Unknowns of a block with the shares of legs that are its own."""
        mine = [share for share in shares if set(share.where.tolist() + share.modes.tolist()) <= set(members.tolist())]
        return members, [share for share in mine if len(share.where) or len(share.modes)]

    def _matrix(self, members: Array, mine: list[_Share]) -> tuple[Graph, Any, Array]:
        """D(x) of a block, in the numbers of all unknowns, over a new graph."""
        graph = Graph()
        x = graph.symbol("x")
        K, M = (_cleaned(matrix) for matrix in (self.structure.K, self.structure.M))
        A, total = np.zeros((members.max() + 1,) * 2, dtype=object), len(K)
        for i in members[members < total]:
            for j in members[members < total]:
                A[i, j] = K[i, j] - x * M[i, j] if M[i, j] else K[i, j]
        for share in mine:
            self._add_leg(graph, x, A, share)
        return graph, x, A

    def _elimination(self, members: Array, mine: list[_Share], order: list[int]) -> Elimination:
        graph, _, A = self._matrix(members, mine)
        program = make_program(graph, "modes", _eliminated(A[np.ix_(order, order)], graph), quick=True)
        return Elimination(len(members), self._inputs(program), program)

    @cached_property
    def null_vectors(self) -> list[tuple[NullVectors, Array]]:
        """The programs for shapes of each block, with its unknowns in their order."""
        result = []
        for members, mine, order in self._parts:
            graph, x, A = self._matrix(members, mine)
            program = null_program(graph, x, A, order)
            result.append((NullVectors(len(members), self._inputs(program), program), np.array(order)))
        return result

    def _inputs(self, program: Program) -> Array:
        """Where the entries that a program takes stand in the rows of poses."""
        return np.array([self._place(name) for name in program.variables if name.startswith("leg")], dtype=np.int64)

    def _add_leg(self, graph: Graph, x: Any, A: Array, share: _Share) -> None:
        """A leg at its port: k - x m - x^2 (series), its kept modes and what couples them."""
        leg, table = self.structure.legs[share.leg], self.tables[share.leg]
        layout = table.layouts[share.layout]
        row = np.zeros(layout.start + layout.width, dtype=object)
        for k in range(layout.start, len(row)):
            row[k] = graph.symbol(f"leg{share.leg}[{k}]")
        part = unpacked(row, layout)
        s, series = x * (1 / self.band.top), np.zeros(part["k"].shape, dtype=object)
        for weight, values in zip(self._weights(s), part["series"], strict=True):
            series = series + weight * values
        D = part["k"] - x * part["m"] - (x * x) * series
        c, s_angle = graph.symbol(f"leg{share.leg}[-1]"), graph.symbol(f"leg{share.leg}[-2]")
        T = _turned(leg, c, s_angle)[np.ix_(share.ends, share.components)]
        A[np.ix_(share.where, share.where)] += _product(T.T, _product(D, T))
        A[np.ix_(share.modes, share.modes)] = part["own"] - x * np.eye(len(share.modes), dtype=object)
        coupling = _product(T.T, -x * part["c"])
        A[np.ix_(share.where, share.modes)] = coupling
        A[np.ix_(share.modes, share.where)] = coupling.T

    def _weights(self, s: Any) -> list[Any]:
        """Lagrange polynomials of the points of the series at s = x / top."""
        weights = []
        for coefficients in self.band.lagrange():
            value: Any = 0.0
            for coefficient in coefficients[::-1]:
                value = value * s + coefficient
            weights.append(value)
        return weights

    @staticmethod
    def _order(members: Array, shares: list[_Share], core: int) -> list[int]:
        """Kept modes and ports leg by leg, then what is left of the core: no leg fills in another."""
        order: list[int] = []
        for share in shares:
            order += [int(k) for k in (*share.modes, *share.where)]
        order = list(dict.fromkeys(order))
        return order + [int(k) for k in members if k not in set(order) and k < core]


def _numbers(name: str) -> tuple[int, int]:
    """Leg and entry of an input."""
    leg, _, entry = name.removeprefix("leg").partition("[")
    return int(leg), int(entry.rstrip("]"))


def _mixed(leg: LegSubstructure, ends: Array) -> Array:
    """Components in axes of the core that make up components in axes of the leg, at any angle of the port."""
    turn = _turned(leg, 0.6, 0.8).astype(float)
    return np.flatnonzero(np.abs(turn[ends]).max(axis=0)) if len(ends) else np.zeros(0, dtype=int)


def _turned(leg: LegSubstructure, c: Any, s: Any) -> Array:
    """Twists in axes of the core to twists in axes of the leg, over any scalar."""
    R = np.zeros((3, 3), dtype=object)
    i, j = (leg.port.axis + 1) % 3, (leg.port.axis + 2) % 3
    R[leg.port.axis, leg.port.axis], R[i, i], R[j, j], R[j, i], R[i, j] = 1.0, c, c, s, -s
    T = np.zeros((6, 6), dtype=object)
    T[:3, :3] = T[3:, 3:] = R
    return T[np.ix_((0, 1, 5), (0, 1, 5))] if len(leg.port_columns) == 3 else T


def _product(A: Array, B: Array) -> Array:
    """A B without the products with zero."""
    result = np.zeros((A.shape[0], B.shape[1]), dtype=object)
    for i, k, j in np.ndindex(A.shape[0], A.shape[1], B.shape[1]):
        if not is_zero(A[i, k]) and not is_zero(B[k, j]):
            result[i, j] = result[i, j] + A[i, k] * B[k, j]
    return result


def _cleaned(matrix: Array) -> Array:
    """The matrix with what is zero but for rounding put right."""
    size = np.sqrt(np.abs(np.diag(matrix)))
    return np.where(np.abs(matrix) > SEPARATE * np.outer(size, size), matrix, 0.0)


def _eliminated(A: Array, graph: Graph) -> dict[str, Any]:
    """The pivots of an elimination without pivoting, the sum of their signs, and their product.

    The product is that of pivots times given scales, since it would leave the range of numbers without.
    """
    pivots = [step.pivot for step in eliminate(A)]
    signs: Any = 0.0
    product: Any = 1.0
    for k, d in enumerate(pivots):
        signs = signs + np.sign(d)
        product = product * (d * graph.symbol(f"scale[{k}]"))
    return {"signs and product": np.array([signs, product], dtype=object), "pivots": np.array(pivots, dtype=object)}
