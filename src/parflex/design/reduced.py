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

from parflex.codegen.compile import Kernel
from parflex.codegen.optimise import make_program
from parflex.design.condensation import SEPARATE, Band
from parflex.design.legs import Leg, Structure
from parflex.design.tables import LegTable, unpacked
from parflex.graph.expression import Graph

Array = np.ndarray
ACCURATE = 1e-9  # relative half width in x of the interval that is proved to hold a mode: 2.5e-8 Hz at 50 Hz
GRID = 14  # values of x, evenly spaced in frequency, at which modes are counted first
STEPS = 40  # of the search for a root: bisection alone needs thirty
LEAVE = 0.25  # share of poses that are done from which the others go on alone
SIDE_BY_SIDE = 8192  # poses at a time: some megabytes


@dataclass(frozen=True)
class Found:
    """Squares of circular frequencies (poses x modes), and which poses are proved."""

    x: Array
    ok: Array


@dataclass(frozen=True)
class _Share:
    """What one group of a leg gives to a block: its components at the port, in axes of leg and core, and its modes."""

    leg: int
    layout: int
    ends: Array  # components in axes of the leg
    components: Array  # of the port, in axes of the core
    where: Array  # of these components among all unknowns
    modes: Array  # of the kept modes among all unknowns


class ReducedProblem:
    """Lowest modes for many poses from tables."""

    def __init__(self, structure: Structure, tables: list[LegTable], band: Band) -> None:
        self.structure, self.tables, self.band = structure, tables, band
        self.blocks = self._blocks()

    def solve(self, q: Array, modes: int) -> Found:
        """The lowest modes at positions of the rigid tree."""
        found = Found(np.full((len(q), modes), np.nan), np.zeros(len(q), dtype=bool))
        for start in range(0, len(q), SIDE_BY_SIDE):
            rows = slice(start, start + SIDE_BY_SIDE)
            found.x[rows], found.ok[rows] = self._some(q[rows], modes)
        return found

    def _some(self, q: Array, modes: int) -> tuple[Array, Array]:
        pairs = list(zip(self.structure.legs, self.tables, strict=True))
        entries = [table(leg.shape.of(q)) for leg, table in pairs]
        angles = np.stack([q[:, leg.port.position] for leg in self.structure.legs], axis=1)
        inside = np.all([np.isfinite(rows[:, -1]) for rows in entries], axis=0)
        entries = [np.where(inside[:, None], rows, rows[inside][:1] if inside.any() else 1.0) for rows in entries]
        searches = [_Search(block, entries, angles, self.band.top) for block in self.blocks]
        limit = np.sort(np.concatenate([one.upper(modes) for one in searches], axis=1), axis=1)[:, modes - 1]
        x = np.concatenate([one.roots(modes, limit) for one in searches], axis=1)
        x = np.sort(x, axis=1)[:, :modes]
        good = inside & np.isfinite(x).all(axis=1)
        for one in searches:  # a mode that was not proved may be one of the lowest: then the pose is not
            good &= ~one.failed
        return x, good

    # -- set up ----------------------------------------------------------------------------------------

    def _blocks(self) -> list[_Block]:
        """Unknowns cut into blocks that stay apart at all poses."""
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
        return [self._block(np.flatnonzero(label == k), K, M, shares) for k in range(number)]

    def _block(self, members: Array, K: Array, M: Array, shares: list[_Share]) -> _Block:
        mine = [share for share in shares if set(share.where.tolist() + share.modes.tolist()) <= set(members.tolist())]
        mine = [share for share in mine if len(share.where) or len(share.modes)]
        graph = Graph()
        x = graph.symbol("x")
        A, total = np.zeros((members.max() + 1,) * 2, dtype=object), len(K)
        for i in members[members < total]:
            for j in members[members < total]:
                A[i, j] = K[i, j] - x * M[i, j] if M[i, j] else K[i, j]
        for share in mine:
            self._add_leg(graph, x, A, share)
        outputs = _eliminated(A, self._order(members, mine, total))
        program = make_program(graph, "modes", outputs, quick=True)
        return _Block(len(members), [_numbers(name) for name in program.variables if name != "x"], program)

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


def _mixed(leg: Leg, ends: Array) -> Array:
    """Components in axes of the core that make up components in axes of the leg, at any angle of the port."""
    turn = _turned(leg, 0.6, 0.8).astype(float)
    return np.flatnonzero(np.abs(turn[ends]).max(axis=0)) if len(ends) else np.zeros(0, dtype=int)


def _turned(leg: Leg, c: Any, s: Any) -> Array:
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
        if not _zero(A[i, k]) and not _zero(B[k, j]):
            result[i, j] = result[i, j] + A[i, k] * B[k, j]
    return result


def _zero(entry: Any) -> bool:
    return isinstance(entry, (int, float)) and entry == 0


def _cleaned(matrix: Array) -> Array:
    """The matrix with what is zero but for rounding put right."""
    size = np.sqrt(np.abs(np.diag(matrix)))
    return np.where(np.abs(matrix) > SEPARATE * np.outer(size, size), matrix, 0.0)


def _eliminated(A: Array, order: list[int]) -> dict[str, Any]:
    """The pivots of an elimination without pivoting, and the sum of their signs. Zeros stay zeros."""
    signs: Any = 0.0
    pivots = []
    left = list(order)
    for i in order:
        left.remove(i)
        d = A[i, i]
        signs = signs + np.sign(d)
        pivots.append(d)
        inverse = 1.0 / d
        touched = [j for j in left if not _zero(A[j, i])]
        for n, j in enumerate(touched):
            factor = A[j, i] * inverse
            for k in touched[n:]:
                A[k, j] = A[k, j] - factor * A[k, i]
                A[j, k] = A[k, j]
    return {"signs": np.array([signs], dtype=object), "pivots": np.array(pivots, dtype=object)}


@dataclass(frozen=True)
class _Block:
    """The program of a block: x and entries of legs in, signs and pivots out."""

    size: int
    inputs: list[tuple[int, int]]
    program: Any

    @cached_property
    def kernel(self) -> Kernel:
        """Machine code; kept on disk."""
        return Kernel(self.program)


class _Search:
    """Modes of one block at some poses."""

    def __init__(self, block: _Block, entries: list[Array], angles: Array, top: float) -> None:
        self.block, self.top, self.count = block, top, len(angles)
        turns = {-1: np.cos(angles), -2: np.sin(angles)}  # cosine and sine of the ports
        rows = np.zeros((self.count, 1 + len(block.inputs)))  # x comes first
        for place, (leg, k) in enumerate(block.inputs, start=1):
            rows[:, place] = turns[k][:, leg] if k < 0 else entries[leg][:, k]
        self.whole = block.kernel.padded(rows)
        self.scale = np.ones((block.size, 1))
        self.failed = np.zeros(self.count, dtype=bool)
        self._grid()

    def at(self, columns: Array, x: Array) -> tuple[Array, Array]:
        """Number of modes below x, and the determinant, each pivot brought near one."""
        columns[0, : len(x)] = x
        columns[0, len(x) :] = x[-1]
        found = self.block.kernel.columns(columns)[:, : len(x)]
        number = (0.5 * (self.block.size - found[0]) + 0.25).astype(int)
        return number, np.multiply.reduce(found[1:] * self.scale, axis=0)

    def _some(self, rows: Array) -> Array:
        """Columns of some poses, filled up to full lanes."""
        lanes = self.block.kernel.lanes
        return np.take(self.whole, np.concatenate([rows, np.full(-len(rows) % lanes, rows[-1])]), axis=1)

    def _grid(self) -> None:
        self.points = np.maximum(self.top * (np.arange(GRID + 1) / GRID) ** 2, 1e-9 * self.top)
        first = self.block.kernel.columns(self.whole)[1:]  # at x = 0
        self.scale = 1.0 / np.median(np.abs(first), axis=1, keepdims=True)
        found = [self.at(self.whole, np.full(self.count, x)) for x in self.points]
        self.numbers = np.array([number for number, _ in found])
        self.values = np.array([value for _, value in found])

    def upper(self, modes: int) -> Array:
        """Values of x that the modes do not exceed (poses x modes); infinite beyond the band."""
        reached = [self.numbers > j for j in range(modes)]
        return np.stack([np.where(one[-1], self.points[np.argmax(one, axis=0)], np.inf) for one in reached], axis=1)

    def roots(self, modes: int, limit: Array) -> Array:
        """The modes that can be below the limit (poses x modes); infinite where there is none."""
        result = np.full((self.count, modes), np.inf)
        for j in range(modes):
            reached = self.numbers > j
            upper = np.maximum(np.argmax(reached, axis=0), 1)
            rows = np.flatnonzero(reached[-1] & (self.points[upper - 1] <= limit))
            if not len(rows):
                break
            result[rows, j] = self._root(j, rows, upper[rows])
            sure = self._some(rows)
            below, over = (self.at(sure, result[rows, j] * (1 + shift))[0] for shift in (-ACCURATE, ACCURATE))
            self.failed[rows] |= ~((below <= j) & (over > j))
        return result

    def _root(self, j: int, rows: Array, upper: Array) -> Array:
        """The root with number j: bisection by counts until it stands alone, then false position on the determinant.

        Of an end that stays, the value is lessened as by Anderson and Bjoerck. Poses that are done are left out.
        """
        ends = np.array([self.points[upper - 1], self.points[upper]])
        values = np.array([self.values[upper - 1, rows], self.values[upper, rows]])
        numbers = np.array([self.numbers[upper - 1, rows], self.numbers[upper, rows]])
        result, x = np.zeros(len(rows)), np.zeros(len(rows))
        active, columns, last = np.arange(len(rows)), self._some(rows), np.full(len(rows), -1)
        for _ in range(STEPS):
            (a, b), (fa, fb) = ends, values
            with np.errstate(all="ignore"):
                step = (a * fb - b * fa) / (fb - fa)
            alone = (numbers[0] == j) & (numbers[1] == j + 1) & (step > a) & (step < b)
            new = np.where(alone, step, 0.5 * (a + b))
            done = np.minimum(np.abs(new - x), b - a) <= 0.1 * ACCURATE * new
            x = new
            result[active] = x
            if done.all():
                break
            if done.mean() > LEAVE:
                left = ~done
                active, x, last = active[left], x[left], last[left]
                ends, values, numbers = ends[:, left], values[:, left], numbers[:, left]
                columns = self._some(rows[active])
            number, f = self.at(columns, x)
            own, side = np.arange(len(x)), (number > j).astype(int)
            with np.errstate(all="ignore"):
                share = 1 - f / values[side, own]
            less = np.where(share > 0, share, 0.5)  # for the end that stays a second time
            values[1 - side, own] *= np.where(side == last, less, 1.0)
            last = side
            ends[side, own], values[side, own], numbers[side, own] = x, f, number
        return result
