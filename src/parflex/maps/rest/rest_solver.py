"""Equilibria of many poses at once: the Newton's method of single poses, all rows side by side.

Steps, closing of the loops, halving and the end are those of `equilibrium`, so that a row goes the same way and ends
at the same equilibrium. What does not converge so, or is held by nothing, is left to the functions of single poses.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from parflex.closure.mobility import SINGULAR
from parflex.maps.rest.rest_programs import RestPrograms
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.statics.equilibrium import CLOSING, FEW_STEPS, FINE, HALVINGS, STEPS, STRIDE, is_positive
from parflex.statics.linear_system import REGULAR, loads_rigid_modes, split_stiffness

Array = np.ndarray
CLOSED = 1e-12  # opening in typical lengths at which loops are closed: rounding of lengths is below
OPEN = 1e-10  # opening from which a row is left to single poses, as where one is assembled
SHORT = 1e-9  # a step, without units, below which a tangent that does not help is rounding


@dataclass(eq=False, repr=False)
class AtRest(Record):
    """Rows at rest: positions, motions of the closures, forces, multipliers, tangent stiffness and its inverse.

    `ok` says which rows are; of the others nothing is known. `inverse` leaves motions without stiffness out, and `free`
    are these by row, mass-normalised and without units, with what gives the force along each.
    """

    q: Array
    J: Array
    F: Array
    G: Array
    K: Array
    inverse: Array
    free: dict[int, Array]
    ok: Array
    steps: Array  # of Newton's method
    told: Array  # positions after its first step, however long
    steady: Array  # whether its tangents were all positive, in few steps

    def _told(self) -> str:
        return f"{int(self.ok.sum())} of {len(self.ok)} rows at rest"


class RestSolver:
    """Newton's method on rows of positions of the whole tree, for a robot as it is held."""

    def __init__(self, programs: RestPrograms) -> None:
        self.programs, robot = programs, programs.robot
        self.robot: Robot = robot
        part = Configuration(robot, robot.home).reduction.partition
        self.rows, self.dependent, self.independent = part.rows, part.dependent, part.independent
        self.units = robot.tree.rate_units[self.independent]
        self.row_units = robot.closures.row_units()
        self.spare = robot.closures.size > len(self.rows)
        self.tau: Array | None = None

    # -- closures --------------------------------------------------------------------------------------

    def motions(self, q: Array) -> tuple[Array, Array, Array]:
        """J_tot, all rates per independent rate, and which rows have a regular block of dependent rates."""
        G = self.programs.closures(q)
        count, n = len(q), self.robot.tree.n
        J = np.zeros((count, n, len(self.independent)))
        J[:, self.independent, np.arange(len(self.independent))] = 1.0
        good = np.ones(count, dtype=bool)
        if len(self.dependent):
            block = G[:, self.rows][:, :, self.dependent]
            scaled = block * self.row_units[self.rows, None] * self.robot.tree.rate_units[self.dependent]
            good = np.isfinite(scaled).all(axis=(1, 2))
            good[good] = np.linalg.cond(scaled[good]) < SINGULAR
            block[~good] = np.eye(len(self.dependent))
            J[:, self.dependent] = np.linalg.solve(block, -G[:, self.rows][:, :, self.independent])
        return G, J, good

    def _closed(self, q: Array) -> tuple[Array, Array]:
        """Positions with loops closed by the dependent rates, and which rows are."""
        good = np.isfinite(q).all(axis=1)
        if not len(self.dependent):
            return q, good
        q, todo = q.copy(), np.flatnonzero(good)
        opening = np.full(len(q), np.inf)
        for _ in range(CLOSING):
            if not len(todo):
                break
            gap = self.programs.openings(q[todo])
            opening[todo] = np.abs(gap).max(axis=1)
            going = (opening[todo] > CLOSED) & np.isfinite(opening[todo])
            todo, gap = todo[going], gap[going]
            if not len(todo):
                break
            G, _, regular = self.motions(q[todo])
            block = G[:, self.rows][:, :, self.dependent]
            block[~regular] = np.eye(len(self.dependent))
            miss = gap * self.robot.tree.length / self.row_units
            step = np.zeros((len(todo), self.robot.tree.n))
            step[:, self.dependent] = np.linalg.solve(block, -miss[:, self.rows, None])[:, :, 0]
            step[~regular] = np.nan
            q[todo] = self.programs.moved(q[todo], step)
        return q, good & (opening < OPEN)

    # -- stiffness -------------------------------------------------------------------------------------

    def multipliers(self, G: Array, F: Array) -> Array:
        """Of the chosen rows, which make the dependent rows of F - J_tot^T lam vanish."""
        lam = np.zeros((len(F), self.robot.closures.size))
        if len(self.dependent):
            block = np.swapaxes(G[:, self.rows][:, :, self.dependent], 1, 2)
            lam[:, self.rows] = np.linalg.solve(block, F[:, self.dependent, None])[:, :, 0]
        return lam

    def slopes(self, q: Array, J: Array, lam: Array, w: Array) -> Array:
        """How F - J_tot^T lam changes along each column of J (rows x rates x columns)."""
        count, _, m = J.shape
        along = np.swapaxes(self.programs.turning(q) @ J, 1, 2).reshape(count * m, -1)
        state = np.repeat(np.concatenate([q, lam, w], axis=1), m, axis=0)
        still = np.zeros((count * m, lam.shape[1] + w.shape[1]))
        found = self.programs.slopes(state, along, still)
        return np.swapaxes(found.reshape(count, m, -1), 1, 2)

    def stiffness(self, q: Array, G: Array, J: Array, F: Array, w: Array) -> Array:
        """K = J^T d(F - J_tot^T lam) along J."""
        return self._along(J, self.slopes(q, J, self.multipliers(G, F), w))

    def mass(self, q: Array, J: Array) -> Array:
        """J^T M_tot J."""
        count, n, m = J.shape
        state = np.repeat(np.concatenate([q, np.zeros((count, n))], axis=1), m, axis=0)
        along = np.swapaxes(J, 1, 2).reshape(count * m, n)
        found = self.programs.inertia(state, np.zeros((count * m, q.shape[1])), along)
        M = self._along(J, np.swapaxes(found.reshape(count, m, -1), 1, 2))
        return (M + np.swapaxes(M, 1, 2)) / 2

    def _along(self, J: Array, columns: Array) -> Array:
        """J^T times columns over all rates: those of independent rates are as they are."""
        found = columns[:, self.independent]
        if len(self.dependent):
            found = found + np.swapaxes(J[:, self.dependent], 1, 2) @ columns[:, self.dependent]
        return found

    def inverse(self, q: Array, J: Array, K: Array) -> tuple[Array, dict[int, Array], Array]:
        """K^-1 without what has no stiffness, these motions by row, and which rows have an inverse."""
        scaled = K * np.outer(self.units, self.units)
        good = np.isfinite(scaled).all(axis=(1, 2))
        found, free = np.zeros_like(K), dict[int, Array]()
        try:
            found[good] = np.linalg.inv(scaled[good])
        except np.linalg.LinAlgError:  # one of them is singular to the last digit
            for k in np.flatnonzero(good).tolist():
                try:
                    found[k] = np.linalg.inv(scaled[k])
                except np.linalg.LinAlgError:
                    found[k] = np.inf
        size = np.abs(scaled).sum(axis=1).max(axis=1, initial=0.0) * np.abs(found).sum(axis=1).max(axis=1, initial=0.0)
        odd = np.flatnonzero(good & ~(size < REGULAR))
        if len(odd):
            M = self.mass(q[odd], J[odd]) * np.outer(self.units, self.units)
            for k, own in zip(odd.tolist(), M, strict=True):
                try:
                    split = split_stiffness((scaled[k] + scaled[k].T) / 2, own)
                except (np.linalg.LinAlgError, ValueError):
                    good[k] = False
                    continue
                found[k], along = split.solve(np.eye(len(own)))
                free[k] = np.stack([split.free.T, along])
        return found * np.outer(self.units, self.units), free, good

    def driven(self, rest: AtRest, rows: Array, columns: Array) -> Array:
        """Rows at which one of the loads (rows x rates x loads) drives a motion that nothing holds."""
        found = np.zeros(len(rows), dtype=bool)
        for i, k in enumerate(rows.tolist()):
            if k in rest.free:
                loads = columns[i] * self.units[:, None]
                motions, along = rest.free[k]
                found[i] = loads_rigid_modes(motions.T, loads, along @ loads)
        return found

    # -- Newton ----------------------------------------------------------------------------------------

    def __call__(self, start: Array, w: Array, tau: Array | None = None) -> AtRest:
        """Equilibria from rows of positions under rows of wrenches and shares of gravity, and of constant efforts."""
        made = copy.copy(self)
        made.tau = tau
        return made._newton(start, w)

    def _forces(self, q: Array, w: Array, rows: Array) -> Array:
        F = self.programs.forces(q, w[rows])
        return F if self.tau is None else F - self.tau[rows]

    def _newton(self, start: Array, w: Array) -> AtRest:
        count, n, m = len(start), self.robot.tree.n, len(self.independent)
        rows, zeros = self.robot.closures.size, np.zeros
        motions, forces, closures = zeros((count, n, m)), zeros((count, n)), zeros((count, rows, n))
        squares, none = (zeros((count, m, m)), zeros((count, m, m))), zeros(count, dtype=int)
        rest = AtRest(start.copy(), motions, forces, closures, *squares, {}, none > 0, none, start.copy(), none == 0)
        going, travel = np.arange(count), np.zeros(count)
        for number in range(STEPS):
            going = self._linearise(rest, going, w)
            if not len(going):
                break
            for k in going[rest.steady[going]].tolist():
                rest.steady[k] = number < FEW_STEPS and is_positive(rest.K[k] * np.outer(self.units, self.units))
            c = self._along(rest.J[going], rest.F[going, :, None])
            x = -(rest.inverse[going] @ c)[:, :, 0]
            held = ~self.driven(rest, going, c)
            going, x = going[held], x[held]
            size = np.linalg.norm(x / self.units, axis=1)
            rest.steps[going] = number + 1
            if not number and len(going):
                whole = (rest.J[going] @ x[:, :, None])[:, :, 0]
                rest.told[going] = self.programs.moved(rest.q[going], whole)
            last = size <= np.maximum(1e-7 * travel[going], FINE)
            self._finish(rest, going[last], x[last], w)
            going, x, size = going[~last], x[~last], size[~last]
            if not len(going):
                break
            going = self._step(rest, going, x, size, travel, w)
        return rest

    def _linearise(self, rest: AtRest, rows: Array, w: Array) -> Array:
        """Motions, forces, stiffness and its inverse at the positions of rows; those that have them."""
        q = rest.q[rows]
        G, J, good = self.motions(q)
        F = self._forces(q, w, rows)
        good &= np.isfinite(F).all(axis=1)
        rows, q, G, J, F = rows[good], q[good], G[good], J[good], F[good]
        if not len(rows):
            return rows
        K = self.stiffness(q, G, J, F, w[rows])
        inverse, free, good = self.inverse(q, J, K)
        rest.G[rows], rest.J[rows], rest.F[rows], rest.K[rows], rest.inverse[rows] = G, J, F, K, inverse
        for i, k in enumerate(rows.tolist()):
            rest.free.pop(k, None)
            if i in free:
                rest.free[k] = free[i]
        return rows[good]

    def _step(self, rest: AtRest, going: Array, x: Array, size: Array, travel: Array, w: Array) -> Array:
        """The longest of ever shorter steps after which the same tangent asks for a shorter one; rows that go on."""
        share = np.minimum(1.0, STRIDE / np.abs(x / self.units).max(axis=1))
        pending, moved = np.arange(len(going)), np.zeros(len(going), dtype=bool)
        for _ in range(HALVINGS):
            rows = going[pending]
            step = (rest.J[rows] @ (share[pending, None] * x[pending])[:, :, None])[:, :, 0]
            q, closed = self._closed(self.programs.moved(rest.q[rows], step))
            helps = np.zeros(len(rows), dtype=bool)
            if closed.any():
                _, J, good = self.motions(q[closed])
                F = self._forces(q[closed], w, rows[closed])
                ahead = rest.inverse[rows[closed]] @ self._along(J, F[:, :, None])
                length = np.linalg.norm(ahead[:, :, 0] / self.units, axis=1)
                with np.errstate(invalid="ignore"):
                    helps[closed] = good & (length < size[pending[closed]])
            rest.q[rows[helps]] = q[helps]
            travel[rows[helps]] += share[pending[helps]] * size[pending[helps]]
            moved[pending[helps]] = True
            pending = pending[~helps]
            share[pending] /= 2
            if not len(pending):
                break
        settled = going[pending[size[pending] < SHORT]]  # rounding: steps do not become shorter any more
        rest.ok[settled] = self._usual(rest, settled)
        return going[moved]

    def _finish(self, rest: AtRest, rows: Array, x: Array, w: Array) -> None:
        """The last step, and the tangent where it ends."""
        if not len(rows):
            return
        step = (rest.J[rows] @ x[:, :, None])[:, :, 0]
        q, closed = self._closed(self.programs.moved(rest.q[rows], step))
        rest.q[rows[closed]] = q[closed]
        done = self._linearise(rest, rows, w)
        rest.ok[done] = self._usual(rest, done)

    def _usual(self, rest: AtRest, rows: Array) -> Array:
        """Rows at which loops hold as at home: rows of closures that repeat others there repeat them here."""
        if not self.spare or not len(rows):
            return np.ones(len(rows), dtype=bool)
        tree, free = self.robot.tree, self.robot.free
        scaled = rest.G[rows][:, :, free] * self.row_units[:, None] * (tree.rate_units[free] / tree.length)
        values = np.linalg.svd(scaled, compute_uv=False)
        rank = len(self.rows)
        if values.shape[1] <= rank:
            return np.ones(len(rows), dtype=bool)
        return values[:, rank] <= 1e-6 * values[:, 0]
