"""Robots in static equilibrium for rows of poses: programs of forces, closures and frames, and the model of the solver.

Inputs of programs are the positions of the whole tree, deformations included. The numbers of the robot follow the
positions of a row if rows have parameter sets of their own, and no direction changes them. Then follows, for each
coupling with backlash, the distance of its loaded flank from its middle: the coupling pushes and pulls there.
Derivatives are those of `tangent`: a program takes a direction beside the state, so a finer mesh needs more directions
and not longer programs. All rows have the independent rates of home.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from parflex.closure.mobility import SINGULAR
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.optimise import make_program
from parflex.codegen.tangent import tangent_program
from parflex.forces.forces import on_links
from parflex.forces.reactions import closure_loads, constraint_forces
from parflex.parameters.design_numbers import DesignNumbers
from parflex.records import Record
from parflex.recursion.dynamics import joint_forces, newton_euler
from parflex.recursion.energy import add_wrenches, distance
from parflex.recursion.kinematics import motion
from parflex.robot.configuration import Configuration
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.statics.equilibrium_solver import Inverse, States, inverse_of
from parflex.statics.linear_model import tree_stiffness
from parflex.symbolic.expression import Expression, Graph

Array = np.ndarray
CLOSED = 1e-12  # opening in typical lengths at which loops are closed: rounding of lengths is below
OPEN = 1e-10  # opening from which a row is left to single poses, as where a pose is assembled
CLOSING = 12  # Newton steps that close the loops after a step: more are needed only where the step was far too long


class SparseRows:
    """A program whose outputs are the entries of a matrix that are not zero for every pose."""

    def __init__(self, graph: Graph, name: str, matrix: Array) -> None:
        self.shape = matrix.shape
        flat = np.asarray(matrix, dtype=object).ravel()
        self.constant = np.array([0.0 if isinstance(entry, Expression) else float(entry) for entry in flat])
        self.moving = np.array([k for k, entry in enumerate(flat) if isinstance(entry, Expression)], dtype=int)
        self.program = RowProgram(graph, name, flat[self.moving]) if len(self.moving) else None

    def __call__(self, *columns: Array) -> Array:
        """The matrices (rows x shape) for the inputs of the trace, side by side."""
        count = len(columns[0])
        found = np.repeat(self.constant[None], count, axis=0)
        if self.program is not None:
            found[:, self.moving] = self.program(*columns)
        return found.reshape(count, *self.shape)


class RowProgram:
    """A compiled program over the symbols of a graph, in the order in which these were made."""

    def __init__(self, graph: Graph, name: str, outputs: Array, along: Sequence[str] = ()) -> None:
        names = list(graph.names)
        rest = [word for word in names if word not in set(along)] if along else []
        program = make_program(graph, name, {"y": np.asarray(outputs, dtype=object)}, rest, 1 << 62, quick=True)
        self.program = tangent_program(program) if along else program
        self.where = {word: k for k, word in enumerate(names)}
        self.kernel = Kernel(self.program)
        self.order = np.array([self._column(word, len(names)) for word in self.program.inputs], dtype=int)

    def _column(self, word: str, width: int) -> int:
        """Of an input among the columns of all symbols, then of the directions of all symbols."""
        plain = word.removeprefix("change of ")
        return self.where[plain] + (width if plain != word else 0)

    def __call__(self, *columns: Array) -> Array:
        """Outputs for rows of all symbols, with slopes then of directions of all symbols, side by side."""
        wide = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        return self.kernel.many(wide[:, self.order])


class EquilibriumPrograms:
    """What a robot, as it is held, needs to come to rest under wrenches on some frames."""

    def __init__(
        self,
        held: Robot,
        loads: Sequence[str] = (),
        without: Sequence[str] = (),
        designs: DesignNumbers | None = None,
    ) -> None:
        self.robot, self.loads, self.without, self.designs = held, tuple(loads), tuple(without), designs
        self.tree, self.rows = held.tree, held.closures.size
        self.numbers = 0 if designs is None else len(designs.places)  # of designs, behind the positions of a row
        self.plays = [k for k, spring in enumerate(held.tree.springs) if spring.play]
        self.varied = self.numbers + len(self.plays)
        self.acting = 6 * len(self.loads) + 1  # wrenches, and the share of gravity

    # -- symbols ---------------------------------------------------------------------------------------

    def _traced(self, *words: tuple[str, int]) -> tuple[Graph, Configuration, list[Array]]:
        """A graph, the robot at positions that are its symbols, with symbols where designs differ, and further ones."""
        graph = Graph()

        def symbols(word: str, size: int) -> Array:
            return np.array([graph.symbol(f"{word}[{k}]") for k in range(size)], dtype=object)

        q, held = symbols("q", self.tree.nq), self.robot
        if self.designs is not None:
            made = self.designs.with_numbers(dict(enumerate(symbols("design", self.numbers))))
            held = replace(made, locked=held.locked, actuated=held.actuated, known_home=held.home)
        if self.plays:
            springs = list(held.tree.springs)
            for k, flank in zip(self.plays, symbols("flank", len(self.plays)), strict=True):
                springs[k] = replace(springs[k], offset=springs[k].offset + flank, play=0.0)
            tree = replace(held.tree, springs=tuple(springs))
            held = replace(held, tree=tree, closures=replace(held.closures, tree=tree), known_home=self.robot.home)
        return graph, Configuration(acting_robot(held, self.without), q), [symbols(word, size) for word, size in words]

    def of_rows(self, q: Array, designs: Array | None) -> Array:
        """Positions with the numbers of the design of each row behind them; None: those of the robot itself.

        Couplings with play have no flank.
        """
        flanks = np.zeros((len(q), len(self.plays)))
        if self.designs is None:
            return np.concatenate([q, flanks], axis=1) if self.plays else q
        own = self.designs.nominal[None].repeat(len(q), axis=0) if designs is None else self.designs.values[designs]
        return np.concatenate([q, own, flanks], axis=1)

    def _loads(self, w: Array) -> Mapping[str, Array]:
        return {frame: w[6 * k : 6 * k + 6] for k, frame in enumerate(self.loads)}

    def _forces(self, here: Configuration, w: Array, lam: Array | None = None, qdd: Array | None = None) -> Array:
        """F - J_tot^T lam along all rates of the tree."""
        tree, still = here.robot.tree, np.zeros(self.tree.n)
        external = on_links(tree, here.at, self._loads(w))
        if lam is not None and len(lam):
            add_wrenches(external, closure_loads(here.robot, here.at, lam)[1])
        qdd = still if qdd is None else qdd
        moving = motion(tree, here.at, still, qdd, -tree.gravity * w[-1])
        found = newton_euler(tree, here.at, moving, external).forces + joint_forces(tree, here.q, still, qdd)
        return found if lam is None or not len(lam) else found - constraint_forces(here, lam)

    # -- programs --------------------------------------------------------------------------------------

    @cached_property
    def forces(self) -> RowProgram:
        """F along all rates: positions, wrenches and the share of gravity in."""
        graph, here, (w,) = self._traced(("w", self.acting))
        return RowProgram(graph, "rest_forces", self._forces(here, w))

    @cached_property
    def slopes(self) -> RowProgram:
        """How F - J_tot^T lam changes along a direction of the positions: these, multipliers and the same in."""
        graph, here, (lam, w) = self._traced(("lam", self.rows), ("w", self.acting))
        return RowProgram(graph, "rest_slopes", self._forces(here, w, lam), [f"q[{k}]" for k in range(self.tree.nq)])

    @cached_property
    def inertia(self) -> RowProgram:
        """What accelerations along a direction need: positions and accelerations in."""
        graph, here, (qdd,) = self._traced(("qdd", self.tree.n))
        unloaded = Configuration(acting_robot(here.robot, ("gravity", "springs")), here.q)
        forces = self._forces(unloaded, np.zeros(self.acting), None, qdd)
        return RowProgram(graph, "rest_inertia", forces, [f"qdd[{k}]" for k in range(self.tree.n)])

    @cached_property
    def openings(self) -> RowProgram:
        """Openings of the loops in typical lengths: positions in."""
        graph, here, _ = self._traced()
        closures = here.robot.closures
        opening = self.robot.closures.row_units() * closures.linear_residual(here.at) / self.tree.length
        return RowProgram(graph, "rest_openings", opening)

    @cached_property
    def closures(self) -> SparseRows:
        """J_tot (rows x rates): positions in."""
        graph, here, _ = self._traced()
        return SparseRows(graph, "rest_closures", here.closure_jacobian)

    @cached_property
    def moved(self) -> RowProgram:
        """Positions after an increment along the rates: both in; the numbers of a design stay."""
        graph, here, (step,) = self._traced(("step", self.tree.n))
        words = [f"design[{k}]" for k in range(self.numbers)] + [f"flank[{k}]" for k in range(len(self.plays))]
        kept = np.array([graph.symbol(word) for word in words], dtype=object)
        return RowProgram(graph, "rest_moved", np.append(here.robot.tree.moved(here.q, step), kept))

    @cached_property
    def turning(self) -> SparseRows:
        """Time derivatives of positions per unit of each rate: positions in; the numbers of a design have none."""
        graph, here, _ = self._traced()
        n = self.tree.n
        columns = [here.robot.tree.position_rates(here.q, np.eye(n)[k]) for k in range(n)]
        still = np.zeros((self.varied, n), dtype=object)
        return SparseRows(graph, "rest_turning", np.concatenate([np.array(columns, dtype=object).T, still]))

    @cached_property
    def damping(self) -> SparseRows:
        """D_tot (rates x rates): positions in."""
        graph, here, _ = self._traced()
        return SparseRows(graph, "rest_damping", tree_stiffness(here)[1])

    @cached_property
    def elements(self) -> SparseRows:
        """Of elements between two points length beyond rest, tension that comes from energy, and stiffness (3 x n)."""
        graph, here, _ = self._traced()
        found = []
        for one in here.robot.tree.elements:
            length = distance(here.at, (one.first, one.second))
            found.append([length - one.rest, one.stored(length), one.stiffness])
        return SparseRows(graph, "rest_elements", np.array(found, dtype=object).reshape(-1, 3).T)

    @cached_property
    def stretches(self) -> SparseRows:
        """How far couplings with play are stretched beyond their flanks (1 x n): positions in."""
        graph, here, _ = self._traced()
        found = [here.robot.tree.springs[k].stretch(here.q) for k in self.plays]
        return SparseRows(graph, "rest_stretches", np.array(found, dtype=object).reshape(1, -1))

    @cached_property
    def mass(self) -> SparseRows:
        """Mass of all links (1): positions in."""
        graph, here, _ = self._traced()
        whole = sum(link.body.m for link in here.robot.tree.links)
        return SparseRows(graph, "rest_mass", np.array([whole], dtype=object))

    def places(self, frames: Sequence[str]) -> RowProgram:
        """Rotation and position of frames (12 numbers each): positions in."""
        graph, here, _ = self._traced()
        both = [here.at.of(here.robot.tree.place(frame)) for frame in frames]
        return RowProgram(graph, "rest_places", np.concatenate([np.concatenate([R.ravel(), P]) for R, P in both]))

    def frame_rows(self, frame: str) -> SparseRows:
        """World twist of a frame per unit of all rates (6 x n): positions in."""
        graph, here, _ = self._traced()
        return SparseRows(graph, "rest_frame", here.frame_rows(frame))


@dataclass(eq=False, repr=False)
class RowEquilibria(Record):
    """Rows at rest: states, forces of the open tree, J_tot, inverses of the stiffness, and rows that have all of them.

    Motions, forces and stiffnesses along the independent rates have no units.
    """

    states: States
    F: Array
    G: Array
    inverse: Inverse
    ok: Array

    @property
    def q(self) -> Array:
        """Positions."""
        return self.states.q

    @property
    def J(self) -> Array:
        """All rates per independent rate without units."""
        return self.states.motions

    def _told(self) -> str:
        return f"{int(self.ok.sum())} of {len(self.ok)} rows at rest"


class RowStatics:
    """A robot as it is held, under rows of wrenches and shares of gravity."""

    def __init__(self, programs: EquilibriumPrograms) -> None:
        self.programs, robot = programs, programs.robot
        self.plays: Array | None = None
        self.robot: Robot = robot
        self.partition = Configuration(robot, robot.home).reduction.partition
        self.rows, self.dependent, self.independent = (
            self.partition.rows, self.partition.dependent, self.partition.independent,
        )  # fmt: skip
        self.rate_units = robot.tree.rate_units
        self.units = self.rate_units[self.independent]
        self.row_units = robot.closures.row_units()
        self.spare = robot.closures.size > len(self.rows)
        self.loads, self.bare, self.held = np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))

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
        half = np.zeros((len(q), 0)) if self.plays is None else self.plays / 2
        return np.asarray(self.programs.stretches(q)[:, 0] + q[:, q.shape[1] - half.shape[1] :]), half

    def on_flanks(self, q: Array, flanks: Array) -> tuple[Self, Array]:
        """Return the robot, and positions whose couplings push and pull on these flanks."""
        return self, np.concatenate([q[:, : q.shape[1] - flanks.shape[1]], flanks], axis=1)

    def linearised(self, q: Array, w: Array, ok: Array, forces: bool = True) -> RowEquilibria:
        """Return all that responses need at rows of positions, of which some are good; `forces` may be left out."""
        F = self.programs.forces(q, w) if forces else np.zeros((len(q), self.robot.tree.n))
        states, G = self._states(q, F, np.zeros_like(F), w)
        inverse = inverse_of(self, states)
        return RowEquilibria(states, F, G, inverse, ok & inverse.ok)

    def usual(self, G: Array) -> Array:
        """Return rows at which loops hold as at home: closure rows that repeat others there repeat them here."""
        if not self.spare or not len(G):
            return np.ones(len(G), dtype=bool)
        tree, free = self.robot.tree, self.robot.free
        scaled = G[:, :, free] * self.row_units[:, None] * (tree.rate_units[free] / tree.length)
        scaled = np.where(np.isfinite(scaled), scaled, 0.0)
        values = np.linalg.svd(scaled, compute_uv=False)
        rank = len(self.rows)
        if values.shape[1] <= rank:
            return np.ones(len(G), dtype=bool)
        return values[:, rank] <= 1e-6 * values[:, 0]
