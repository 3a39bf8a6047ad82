"""The small eigenvalue problem of a pose: core and condensed legs.

K and M are those of the ports of the core and of the kept modes; the series of the modes that are not kept makes the
problem nonlinear in x = omega^2, weakly so. It is solved in three steps: the series is replaced by the straight line
nearest to it over the band, the linear problem is solved, and the rest of the series is put back as a perturbation of
second order. Each mode carries a bound of what higher orders can be, and the number of modes below the highest one is
checked by a bound on the spectrum; poses that fail are solved by iteration on the nonlinear problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from parflex.design.condensation import POINTS, Band, Group, condense, kept_modes, separate
from parflex.design.legs import Leg, Structure
from parflex.design.tables import LegTable, unpacked

Array = np.ndarray
ACCURATE = 1e-8  # relative error of x that may be left: half of it in a frequency, 5e-7 Hz at 100 Hz
REACH = 0.02  # modes this far above the highest wanted one of the linear problem are looked at too
SIDE_BY_SIDE = 256  # poses at a time: what they need stays in the cache
ROUNDING = 1e-13  # relative, of the small matrices themselves
ITERATIONS = 5  # each multiplies the error by the slope of the series, below a hundredth within the band


@dataclass(frozen=True)
class _Share:
    """What one leg gives to a block: places of its port components and kept modes, and how its axes are turned."""

    leg: int
    layout: int
    ends: Array  # components in axes of the leg
    components: Array  # of the port, in axes of the core
    where: Array  # of these components in the block
    modes: slice


@dataclass(frozen=True)
class _Block:
    """Coordinates that no pose couples to others: ports first, then kept modes of the core and of legs."""

    ports: int
    size: int
    k: Array
    m: Array
    series: Array
    own: Array
    c: Array
    shares: list[_Share]


@dataclass(frozen=True)
class Found:
    """Squares of circular frequencies (poses x modes), bounds of their errors, and which poses are in order."""

    x: Array
    bound: Array
    ok: Array


@dataclass(frozen=True)
class _Linear:
    """Modes of the linear problem of a block: squares w, their ports U, the root G of the mass, and the series.

    The series of the core is constant; of each leg it comes with its places among the ports and the turn of its axes.
    """

    w: Array
    U: Array
    G: Array
    series: Array
    legs: list[tuple[Array, Array, Array]]

    def felt(self, U: Array) -> Array:
        """The series at its points times ports (poses x points x ports x modes)."""
        count, b, modes = U.shape
        Z = (self.series.reshape(POINTS * b, b) @ U).reshape(count, POINTS, b, modes)
        for where, T, series in self.legs:
            n = T.shape[1]
            own = (series.reshape(count, POINTS * n, n) @ (T @ U[:, where])).reshape(count, POINTS, n, modes)
            Z[:, :, where] += np.swapaxes(T, 1, 2)[:, None] @ own
        return Z

    def part(self, rows: Array) -> _Linear:
        """Some of the poses."""
        legs = [(where, T[rows], series[rows]) for where, T, series in self.legs]
        return _Linear(self.w[rows], self.U[rows], self.G[rows], self.series, legs)


class ReducedProblem:
    """Lowest modes for many poses from tables."""

    def __init__(self, structure: Structure, tables: list[LegTable], band: Band) -> None:
        self.structure, self.tables, self.band = structure, tables, band
        self.powers = np.concatenate([np.zeros((POINTS, 2)), band.lagrange() * band.top**2], axis=1)
        a, b = band.straight()
        self.powers[:, 0] -= a  # what remains of the series beside the straight line, by powers of x / top
        self.powers[:, 1] -= b * band.top
        self.line = (a, b)
        self.blocks = self._blocks()

    # -- set up ----------------------------------------------------------------------------------------

    def _blocks(self) -> list[_Block]:
        core = self.structure
        port_columns = sorted({int(c) for leg, table in self._pairs() for c in self._used(leg, table)})
        ports = np.searchsorted(core.columns, port_columns)
        inner = np.setdiff1d(np.arange(len(core.columns)), ports)
        order = np.concatenate([inner, ports])
        K, M = core.K[np.ix_(order, order)][None], core.M[np.ix_(order, order)][None]
        pieces = self._core_pieces(K, M, len(inner))
        kept = sum(piece["own"].shape[1] for piece, _ in pieces)
        total = len(ports) + kept
        where = {column: k for k, column in enumerate(port_columns)}
        shares = []
        for number, (leg, table) in enumerate(self._pairs()):
            for index, layout in enumerate(table.layouts):
                components = self._mixed(leg, layout.ends)
                places = np.array([where[int(leg.port_columns[c])] for c in components], dtype=int)
                modes = slice(total, total + layout.group.kept)
                shares.append(_Share(number, index, layout.ends, components, places, modes))
                total += layout.group.kept
        return self._split(pieces, len(ports), total, shares)

    def _pairs(self) -> list[tuple[Leg, LegTable]]:
        return list(zip(self.structure.legs, self.tables, strict=True))

    def _mixed(self, leg: Leg, ends: Array) -> Array:
        """Components in axes of the core that make up components in axes of the leg, at any angle of the port."""
        size = len(leg.port_columns)
        turn = turned(leg, leg.port.turns(np.array([leg.geometry.home * 0 + 0.5])))[0]
        return np.flatnonzero(np.abs(turn[ends]).max(axis=0, initial=0.0) > 0) if len(ends) else np.arange(0, size)[:0]

    def _used(self, leg: Leg, table: LegTable) -> Array:
        parts = [self._mixed(leg, layout.ends) for layout in table.layouts]
        return leg.port_columns[np.unique(np.concatenate(parts))] if parts else leg.port_columns[:0]

    def _core_pieces(self, K: Array, M: Array, inner: int) -> list[tuple[dict, Array]]:
        """Condensed pieces of the core, with their places among the ports."""
        pieces = []
        for own, ends in separate(K, M, inner):
            if len(own):
                spectrum = condense(K, M, inner, Group(own, ends, 0), self.band, None)["spectrum"]
                group = Group(own, ends, kept_modes(spectrum, self.band.top))
                found = {name: value[0:1] for name, value in condense(K, M, inner, group, self.band, None).items()}
            else:
                b = ends + inner
                found = {"k": K[:, b[:, None], b], "m": M[:, b[:, None], b], "own": np.zeros((1, 0, 0))}
                found |= {"c": np.zeros((1, len(b), 0)), "series": np.zeros((1, POINTS, len(b), len(b)))}
            pieces.append((found, ends))
        return pieces

    def _split(self, pieces: list[tuple[dict, Array]], ports: int, total: int, shares: list[_Share]) -> list[_Block]:
        """Constant parts of all coordinates, cut into blocks that stay apart."""
        k, m, own = np.zeros((ports, ports)), np.zeros((ports, ports)), np.zeros((total, total))
        series, c = np.zeros((POINTS, ports, ports)), np.zeros((ports, total))
        pattern, at = np.eye(total, dtype=bool), ports
        for found, ends in pieces:
            grid, modes = np.ix_(ends, ends), slice(at, at + found["own"].shape[1])
            k[grid], m[grid], series[:, ends[:, None], ends] = found["k"][0], found["m"][0], found["series"][0]
            own[modes, modes], c[ends, modes] = found["own"][0], found["c"][0]
            members = np.concatenate([ends, np.arange(modes.start, modes.stop)])
            pattern[np.ix_(members, members)] = True
            at = modes.stop
        for share in shares:
            members = np.concatenate([share.where, np.arange(share.modes.start, share.modes.stop)])
            pattern[np.ix_(members, members)] = True
        k -= np.tensordot(self.line[0], series, axes=1)
        m += np.tensordot(self.line[1], series, axes=1)
        count, label = connected_components(csr_array(pattern))
        return [self._block(np.flatnonzero(label == n), ports, k, m, series, own, c, shares) for n in range(count)]

    @staticmethod
    def _block(
        members: Array, ports: int, k: Array, m: Array, series: Array, own: Array, c: Array, shares: list[_Share]
    ) -> _Block:
        p, modes = members[members < ports], members[members >= ports]
        inside = set(members.tolist())
        mine = []
        for share in shares:
            if not set(share.where.tolist()) | set(range(share.modes.start, share.modes.stop)) <= inside:
                continue
            first = int(np.searchsorted(members, share.modes.start))
            moved = slice(first, first + share.modes.stop - share.modes.start)
            where = np.searchsorted(p, share.where)
            mine.append(_Share(share.leg, share.layout, share.ends, share.components, where, moved))
        return _Block(
            len(p),
            len(members),
            k[np.ix_(p, p)],
            m[np.ix_(p, p)],
            series[:, p[:, None], p],
            own[np.ix_(modes, modes)],
            c[np.ix_(p, modes)],
            mine,
        )

    # -- poses -----------------------------------------------------------------------------------------

    def solve(self, q: Array, modes: int) -> Found:
        """The lowest modes at positions of the rigid tree."""
        found = Found(np.full((len(q), modes), np.nan), np.full((len(q), modes), np.inf), np.zeros(len(q), dtype=bool))
        if sum(block.size for block in self.blocks) < modes:
            return found
        entries = [table(leg.shape.of(q)) for leg, table in self._pairs()]
        turns = [turned(leg, leg.port.turns(q)) for leg in self.structure.legs]
        inside = np.flatnonzero(np.all([np.isfinite(rows[:, -1]) for rows in entries], axis=0))
        doubtful = []
        for start in range(0, len(inside), SIDE_BY_SIDE):
            rows = inside[start : start + SIDE_BY_SIDE]
            some = [part[rows] for part in entries], [part[rows] for part in turns]
            found.x[rows], found.bound[rows], fine = self._some(*some, modes, careful=False)
            found.ok[rows] = fine
            doubtful.append(rows[~fine])
        rows = np.concatenate([np.zeros(0, dtype=int), *doubtful])
        if len(rows):
            some = [part[rows] for part in entries], [part[rows] for part in turns]
            found.x[rows], found.bound[rows], found.ok[rows] = self._some(*some, modes, careful=True)
        return found

    def _some(self, entries: list[Array], turns: list[Array], modes: int, careful: bool) -> tuple[Array, Array, Array]:
        """Modes, bounds and whether they pass; `careful` iterates modes and counts them by Sylvester's law."""
        linear = [self._linear(block, entries, turns) for block in self.blocks]
        limit = np.sort(np.concatenate([one.w for one in linear], axis=1), axis=1)[:, modes - 1] * (1 + REACH)
        parts = [self._corrected(one, limit, modes, careful) for one in linear]
        x, bound, next_one = (np.concatenate([part[k] for part in parts], axis=1) for k in range(3))
        order = np.argsort(x, axis=1)[:, :modes]
        x, bound = np.take_along_axis(x, order, axis=1), np.take_along_axis(bound, order, axis=1)
        fine = (x[:, -1] < self.band.top) & (bound <= ACCURATE * x).all(axis=1)
        if careful:
            return x, bound, fine & (self._count(linear, x[:, -1] * (1 - 10 * ACCURATE)) < modes)
        return x, bound, fine & (next_one > x[:, -1:]).all(axis=1)  # nothing left out can lie below the highest

    def _count(self, linear: list[_Linear], x: Array) -> Array:
        """Modes below x: eigenvalues of the problem frozen at x that lie below it, as in Sylvester's law."""
        frozen = [self._frozen(one, x) for one in linear]
        return np.sum([(np.linalg.eigvalsh(matrix) < x[:, None]).sum(axis=1) for matrix in frozen], axis=0)

    def _frozen(self, one: _Linear, x: Array) -> Array:
        """The matrix whose eigenvalues are those of the problem with the series as it is at x."""
        straight = np.eye(one.w.shape[1]) * one.w[:, None, :]
        return straight - np.swapaxes(one.U, 1, 2) @ self._rest(one, np.minimum(x, self.band.top)) @ one.U

    def _linear(self, block: _Block, entries: list[Array], turns: list[Array]) -> _Linear:
        """All modes of a block with the straight line in place of the series."""
        count, b, r = len(entries[0]), block.ports, block.size - block.ports
        k, m = (np.broadcast_to(part, (count, b, b)).copy() for part in (block.k, block.m))
        own = np.broadcast_to(block.own, (count, r, r)).copy()
        c = np.broadcast_to(block.c, (count, b, r)).copy()
        legs = []
        for share in block.shares:
            part = unpacked(entries[share.leg], self.tables[share.leg].layouts[share.layout])
            T = np.ascontiguousarray(turns[share.leg][:, share.ends[:, None], share.components])
            back = np.swapaxes(T, 1, 2)
            w, modes = share.where, slice(share.modes.start - b, share.modes.stop - b)
            k[:, w[:, None], w] += back @ part["k"] @ T
            m[:, w[:, None], w] += back @ part["m"] @ T
            own[:, modes, modes] = part["own"]
            c[:, w, modes] = back @ part["c"]
            legs.append((w, T, part["series"]))
        return self._modes(block, k, m, own, c, legs)

    @staticmethod
    def _modes(block: _Block, k: Array, m: Array, own: Array, c: Array, legs: list) -> _Linear:
        """Modes of K = diag(k, own), M = [[m, c], [c^T, 1]]."""
        G = np.linalg.inv(np.linalg.cholesky(m - c @ np.swapaxes(c, 1, 2)))
        co = c @ own
        A = np.empty((len(k), block.size, block.size))
        p = block.ports
        A[:, :p, :p] = G @ (k + co @ np.swapaxes(c, 1, 2)) @ np.swapaxes(G, 1, 2)
        A[:, p:, :p] = -np.swapaxes(G @ co, 1, 2)
        A[:, p:, p:] = own
        w, V = np.linalg.eigh(A)  # reads the lower triangle
        return _Linear(w, np.swapaxes(G, 1, 2) @ V[:, :p], G, block.series, legs)

    def _corrected(self, one: _Linear, limit: Array, modes: int, careful: bool) -> tuple[Array, Array, Array]:
        """Modes of a block up to the limit, the rest of the series put back, bounds, and how low the next can be."""
        w, top = one.w, self.band.top
        near = w <= limit[:, None]
        count = max(1, min(modes, int(near.sum(axis=1).max())))
        near, own = near[:, :count], np.arange(count)
        v = np.zeros((len(w), w.shape[1], count))
        v[:, own, own] = 1.0
        x, r = self._rayleigh(one, v, w[:, :count])
        distance = w[:, :, None] - x[:, None, :]
        distance[:, own, own] = np.inf
        v = v - r / distance
        x, r = self._rayleigh(one, v, x)
        bound = 2 * (r**2 / np.abs(distance)).sum(axis=1) + ROUNDING * x
        rows = np.flatnonzero(((bound > ACCURATE * x) & near).any(axis=1)) if careful else np.zeros(0, dtype=int)
        if len(rows):
            x[rows], bound[rows] = self._iterated(one.part(rows), x[rows], near[rows])
        following = np.concatenate([w, np.full((len(w), 1), np.inf)], axis=1)
        number = near.sum(axis=1)
        lowest = following[np.arange(len(w)), number] - self._norm(one, np.minimum(limit, top))
        return np.where(near, x, np.inf), bound, lowest[:, None]

    def _rayleigh(self, one: _Linear, v: Array, x: Array) -> tuple[Array, Array]:
        """The root x of v^T (K - x M - series) v of each mode, and the residual of v there in the linear modes."""
        top = self.band.top
        U = one.U @ v
        Z = one.felt(U)
        slopes = np.swapaxes((Z * U[:, None]).sum(axis=2), 1, 2) @ self.powers  # poses x modes x powers
        squares = v**2
        energy, size = (one.w[:, :, None] * squares).sum(axis=1), squares.sum(axis=1)
        for _ in range(3):  # the slope of the rest is below a hundredth
            x = (energy - _horner(slopes, np.minimum(x, top) / top)) / size
        weights = self._weights(np.minimum(x, top))
        rest = np.swapaxes(one.U, 1, 2) @ (Z * weights[:, :, None, :]).sum(axis=1)
        return x, (one.w[:, :, None] - x[:, None, :]) * v - rest

    def _norm(self, one: _Linear, x: Array) -> Array:
        """Size of the rest of the series at x, as a matrix that moves eigenvalues by no more than that."""
        E = self._rest(one, x)
        moved = one.G @ E @ np.swapaxes(one.G, 1, 2)
        return np.sqrt((moved**2).sum(axis=(1, 2)))

    def _weights(self, x: Array) -> Array:
        """How much of each point of the series is left beside the straight line (poses x points x modes)."""
        s = x / self.band.top
        return np.stack([np.polynomial.polynomial.polyval(s, coefficients) for coefficients in self.powers], axis=1)

    def _rest(self, one: _Linear, x: Array) -> Array:
        """The rest of the series at x as a matrix over the ports."""
        weights = self._weights(x[:, None])[:, :, 0]
        b = one.series.shape[1]
        E = (weights @ one.series.reshape(POINTS, -1)).reshape(-1, b, b)
        for w, T, series in one.legs:
            n = series.shape[2]
            own = (weights[:, None] @ series.reshape(len(x), POINTS, -1)).reshape(-1, n, n)
            E[:, w[:, None], w] += np.swapaxes(T, 1, 2) @ own @ T
        return E

    def _iterated(self, one: _Linear, x: Array, near: Array) -> tuple[Array, Array]:
        """The j-th root is the j-th eigenvalue of the problem frozen at it: by iteration, all modes counted."""
        x, change = x.copy(), np.zeros_like(x)
        for j in np.flatnonzero(near.any(axis=0)):
            for _ in range(ITERATIONS):
                new = np.linalg.eigvalsh(self._frozen(one, x[:, j]))[:, j]
                change[:, j] = np.abs(new - x[:, j])
                x[:, j] = new
        return x, change


def turned(leg: Leg, R: Array) -> Array:
    """Twists in axes of the core to twists in axes of the leg (poses x n x n)."""
    if len(leg.port_columns) == 3:  # in the plane: x, y and the turn
        T = np.zeros((len(R), 3, 3))
        T[:, :2, :2], T[:, 2, 2] = R[:, :2, :2], 1.0
        return T
    T = np.zeros((len(R), 6, 6))
    T[:, :3, :3] = T[:, 3:, 3:] = R
    return T


def _horner(coefficients: Array, s: Array) -> Array:
    """Polynomials (poses x modes x powers) at s (poses x modes)."""
    result = np.zeros_like(s)
    for k in reversed(range(coefficients.shape[2])):
        result = result * s + coefficients[:, :, k]
    return result
