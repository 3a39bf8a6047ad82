"""A robot, as it is held, in rows of positions: closures, statics, linear models about poses and equilibria.

All rows have the independent rates of home. Motions, forces and stiffnesses along these have no units.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Self

import numpy as np

from parflex.closure.mobility import SINGULAR
from parflex.closure.partition import BRANCH
from parflex.maps.tree_programs import TreePrograms
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.statics.equilibrium_solver import Inverse, States, inverse_of
from parflex.statics.loads import has_force_elements

Array = np.ndarray
CLOSED = 1e-12  # opening in typical lengths at which loops are closed: rounding of lengths is below
OPEN = 1e-10  # opening from which a row is left to single poses, as where a pose is assembled
CLOSING = 12  # Newton steps that close the loops after a step: more are needed only where the step was far too long


@dataclass(eq=False, repr=False)
class RowModels(Record):
    """Linear models of rows: states with their stiffness, J_tot, inverses of the stiffness, loads, and defined rows.

    `K_tot` are the stiffnesses of the open tree where K = J^T K_tot J, about undeformed poses; else None.
    """

    states: States
    G: Array
    inverse: Inverse
    loads: Array
    ok: Array
    K_tot: Array | None = None

    @property
    def q(self) -> Array:
        """Positions."""
        return self.states.q

    @property
    def J(self) -> Array:
        """All rates per independent rate without units."""
        return self.states.motions

    def _told(self) -> str:
        return f"{int(self.ok.sum())} of {len(self.ok)} rows with a linear model"


class RowStatics:
    """A robot as it is held, under rows of wrenches and shares of gravity."""

    def __init__(self, programs: TreePrograms) -> None:
        self.programs, self.partition = programs, programs.partition
        self.robot: Robot = programs.robot
        self.rows, self.dependent = self.partition.rows, self.partition.dependent
        self.independent = self.partition.independent
        self.rate_units = self.robot.tree.rate_units
        self.units = self.rate_units[self.independent]
        self.row_units = self.robot.closures.row_units()
        self.spare = self.robot.closures.size > len(self.rows)
        self.turning = has_force_elements(self.robot.tree)
        self.plays = self.loads = self.bare = self.held = np.zeros((0, 0))

    def under(self, loads: Array, plays: Array) -> Self:
        """Return the robot under rows of wrenches and shares of gravity, with the backlash of couplings in each row."""
        made = copy.copy(self)
        made.loads, made.plays = loads, plays
        return made

    # -- closures --------------------------------------------------------------------------------------

    def motions(self, q: Array) -> tuple[Array, Array, Array]:
        """Return J_tot, all rates per independent rate without units, and rows with a regular block of dependents."""
        G = self.programs.closures(q)
        count, n = len(q), self.robot.tree.n
        J = np.zeros((count, n, len(self.independent)))
        J[:, self.independent, np.arange(len(self.independent))] = self.units
        good = np.ones(count, dtype=bool)
        if len(self.dependent):
            block = G[:, self.rows][:, :, self.dependent]
            scaled = block * self.row_units[self.rows, None] * self.rate_units[self.dependent]
            good = np.isfinite(scaled).all(axis=(1, 2))
            good[good] = np.linalg.cond(scaled[good]) < SINGULAR
            block[~good] = np.eye(len(self.dependent))
            J[:, self.dependent] = np.linalg.solve(block, -G[:, self.rows][:, :, self.independent] * self.units)
        return G, J, good

    def moved(self, states: States, x: Array) -> tuple[Array, Array]:
        """Return positions after motions of the independent rates with all loops closed, and the rows that close."""
        q = self.programs.moved(states.q, (states.motions @ x[:, :, None])[:, :, 0])
        good = np.isfinite(q).all(axis=1)
        if not len(self.dependent):
            return q, good
        todo, opening = np.flatnonzero(good), np.full(len(q), np.inf)
        for _ in range(CLOSING):
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
        """Return those of the chosen rows, which leave least of F - J_tot^T lam, without units."""
        lam = np.zeros((len(F), self.robot.closures.size))
        if len(self.dependent):
            A, free = G[:, self.rows], self.robot.free
            block = np.swapaxes(A[:, :, self.dependent], 1, 2)
            balanced = np.linalg.solve(block, F[:, self.dependent, None])  # all of them in equilibrium
            left = (F[:, :, None] - np.swapaxes(A, 1, 2) @ balanced)[:, free] * self.rate_units[free, None]
            A = A[:, :, free] * self.rate_units[free]
            lam[:, self.rows] = (balanced + np.linalg.solve(A @ np.swapaxes(A, 1, 2), A @ left))[:, :, 0]
        return lam

    def _slopes(self, q: Array, J: Array, lam: Array, w: Array) -> Array:
        """Return how F - J_tot^T lam changes along each column of J (rows x rates x columns)."""
        count, _, m = J.shape
        along = np.swapaxes(self.programs.turning(q) @ J, 1, 2).reshape(count * m, -1)
        state = np.repeat(np.concatenate([q, lam, w], axis=1), m, axis=0)
        still = np.zeros((count * m, lam.shape[1] + w.shape[1]))
        return np.swapaxes(self.programs.slopes(state, along, still).reshape(count, m, -1), 1, 2)

    def mass_matrices(self, q: Array, J: Array) -> Array:
        """Return J^T M_tot J."""
        count, n, m = J.shape
        state = np.repeat(np.concatenate([q, np.zeros((count, n))], axis=1), m, axis=0)
        along = np.swapaxes(J, 1, 2).reshape(count * m, n)
        forces = self.programs.inertia(state, np.zeros((count * m, q.shape[1])), along)
        M = np.swapaxes(J, 1, 2) @ np.swapaxes(forces.reshape(count, m, -1), 1, 2)
        return (M + np.swapaxes(M, 1, 2)) / 2

    def mass(self, states: States, row: int) -> Array:
        """Return the mass matrix of a state along its independent rates without units."""
        return np.asarray(self.mass_matrices(states.q[row : row + 1], states.motions[row : row + 1])[0])

    def _states(self, q: Array, F: Array, load: Array, w: Array) -> tuple[States, Array]:
        """Return states and J_tot at positions under forces of the open tree and their change with the loads."""
        G, J, good = self.motions(q)
        good &= np.isfinite(F).all(axis=1)
        F = np.where(good[:, None], F, 0.0)
        turned = np.swapaxes(J, 1, 2)
        K = turned @ self._slopes(q, J, self.multipliers(np.where(good[:, None, None], G, self._regular(G)), F), w)
        force, change = ((turned @ f[:, :, None])[:, :, 0] for f in (F, load))
        return States(self.partition, q, J, K, force, change, good), G

    def _regular(self, G: Array) -> Array:
        """Return closure rows whose block of dependent rates is regular."""
        plain = np.zeros_like(G)
        plain[:, self.rows, self.dependent] = 1.0
        return plain

    # -- what the solver takes ---------------------------------------------------------------------------

    def states(self, q: Array, share: Array, rows: Array) -> States:
        """Return the states at positions under a share of the loads of these rows."""
        w, part = self.loads[rows], share[:, None]
        F = self.programs.forces(q, w)
        if not len(self.bare):
            return self._states(q, F, np.zeros_like(F), w)[0]
        least = self.programs.forces(q, self.bare[rows]) - self.held[rows]
        acting = part * w + (1.0 - part) * self.bare[rows]
        return self._states(q, part * F + (1.0 - part) * least, F - least, acting)[0]

    def released(self, q: Array, loads_hold: bool) -> Self:
        """Return the robot with a path of loads, along which the tension at the positions `q` is released."""
        made = copy.copy(self)
        made.bare = self.loads if loads_hold else np.zeros_like(self.loads)
        made.held = self.programs.forces(q, made.bare)
        return made

    def stretch(self, q: Array) -> tuple[Array, Array]:
        """Return the stretch of the couplings from the middle of their backlash, and half of the backlash."""
        half = self.plays / 2
        if not half.shape[1]:
            return half, half
        return np.asarray(self.programs.stretches(q) + q[:, q.shape[1] - half.shape[1] :]), half

    def on_flanks(self, q: Array, flanks: Array) -> tuple[Self, Array]:
        """Return the robot, and positions whose couplings push and pull on these flanks."""
        return self, np.concatenate([q[:, : q.shape[1] - flanks.shape[1]], flanks], axis=1)

    # -- linear models -----------------------------------------------------------------------------------

    def about_equilibrium(self, q: Array, ok: Array) -> RowModels:
        """Return the linear models about equilibria under the loads of the rows; `ok` are the rows that have one."""
        F = self.programs.forces(q, self.loads)
        states, G = self._states(q, F, np.zeros_like(F), self.loads)
        inverse = inverse_of(self, states)
        return RowModels(states, G, inverse, self.loads, ok & inverse.ok & self.holds_as_at_home(G))

    def about_pose(self, q: Array) -> RowModels:
        """Return the linear models about undeformed poses, at which nothing is under tension."""
        G, J, good = self.motions(q)
        K_tot = None if self.turning else self.programs.stiffness(q)
        if K_tot is None:  # elements between points rotate, so the recursion gives the derivative of their forces
            slopes = self._slopes(q, J, np.zeros((len(q), G.shape[1])), np.zeros_like(self.loads))
        else:
            slopes = K_tot @ J
        none = np.zeros(J.shape[::2])
        states = States(self.partition, q, J, np.swapaxes(J, 1, 2) @ slopes, none, none, good)
        inverse = inverse_of(self, states)
        return RowModels(states, G, inverse, self.loads, inverse.ok & self.holds_as_at_home(G), K_tot)

    def holds_as_at_home(self, G: Array) -> Array:
        """Return rows at which closure rows that repeat others at home repeat them, too."""
        rank = len(self.rows)
        free = self.robot.free
        if not self.spare or len(free) <= rank or not len(G):
            return np.ones(len(G), dtype=bool)
        scaled = G[:, :, free] * self.row_units[:, None] * (self.rate_units[free] / self.robot.tree.length)
        values = np.linalg.svd(np.where(np.isfinite(scaled), scaled, 0.0), compute_uv=False)
        return values[:, rank] <= BRANCH * values[:, 0]
