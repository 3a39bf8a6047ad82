"""Compiled programs of a whole tree at rows of positions: closures, forces, stiffness, mass, damping, frames.

Inputs of programs are the positions of the whole tree, deformations included. The numbers of the robot follow the
positions of a row if rows have parameter sets of their own, and no direction changes them. Then follows, for each
coupling with backlash, the distance of its loaded flank from its middle: the coupling pushes and pulls there.
Derivatives are those of `tangent`: a program takes a direction beside the state, so a finer mesh needs more directions
and not longer programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.cache import cached
from parflex.closure.partition import Partition
from parflex.codegen import cache
from parflex.codegen.optimise import make_program
from parflex.codegen.tangent import tangent_program
from parflex.forces.forces import on_links
from parflex.forces.reactions import closure_loads, constraint_forces
from parflex.maps.kinematics import BatchProgram
from parflex.parameters.design_numbers import DesignNumbers
from parflex.recursion.dynamics import joint_forces, newton_euler
from parflex.recursion.energy import add_wrenches, distance
from parflex.recursion.kinematics import motion
from parflex.robot.configuration import Configuration
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot
from parflex.statics.linear_model import tree_stiffness
from parflex.symbolic.expression import Expression, Graph

Array = np.ndarray


class RowProgram:
    """A program over the symbols of a graph, in the order in which these were made; `along` some of them its slopes."""

    def __init__(
        self, graph: Graph, name: str, outputs: Array, along: Sequence[str] = (), compiled: bool = True
    ) -> None:
        names = list(graph.names)
        rest = [word for word in names if word not in set(along)] if along else []
        program = make_program(graph, name, {"y": np.asarray(outputs, dtype=object)}, rest, 1 << 62, quick=True)
        self.program = BatchProgram(tangent_program(program) if along else program, compiled)
        self.where = {word: k for k, word in enumerate(names)}
        inputs = self.program.program.inputs
        self.order = np.array([self._column(word, len(names)) for word in inputs], dtype=int)

    def _column(self, word: str, width: int) -> int:
        """Of an input among the columns of all symbols, then of the directions of all symbols."""
        plain = word.removeprefix("change of ")
        return self.where[plain] + (width if plain != word else 0)

    def __call__(self, *columns: Array) -> Array:
        """Outputs for rows of all symbols, with slopes then of directions of all symbols, side by side."""
        wide = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        return self.program(wide[:, self.order])


class SparseRows:
    """A program whose outputs are the entries of a matrix that are not zero for every pose."""

    def __init__(self, graph: Graph, name: str, matrix: Array, compiled: bool = True) -> None:
        self.shape = matrix.shape
        flat = np.asarray(matrix, dtype=object).ravel()
        self.constant = np.array([0.0 if isinstance(entry, Expression) else float(entry) for entry in flat])
        self.moving = np.array([k for k, entry in enumerate(flat) if isinstance(entry, Expression)], dtype=int)
        moving = flat[self.moving]
        self.program = RowProgram(graph, name, moving, compiled=compiled) if len(self.moving) else None

    def __call__(self, *columns: Array) -> Array:
        """The matrices (rows x shape) for the inputs of the trace, side by side."""
        count = len(columns[0])
        found = np.repeat(self.constant[None], count, axis=0)
        if self.program is not None:
            found[:, self.moving] = self.program(*columns)
        return found.reshape(count, *self.shape)


def tree_programs(held: Robot, loads: Sequence[str], designs: DesignNumbers | None, compiled: bool) -> TreePrograms:
    """Return the programs of a robot as it is held, made once for all batches of rows with the same keys."""
    key = cache.key_of(held, "tree", list(loads), None if designs is None else designs.name or repr(designs.places))
    formulas = None if designs is None else designs.of_rows(np.zeros(0, dtype=int))  # without the numbers of rows
    return cached("programs of trees", key and (key, compiled), lambda: TreePrograms(held, loads, formulas, compiled))


class TreePrograms:
    """Programs of a robot, as it is held, under wrenches on some frames; each is traced when it is first needed."""

    def __init__(self, held: Robot, loads: Sequence[str], designs: DesignNumbers | None, compiled: bool) -> None:
        self.robot, self.loads, self.designs, self.compiled = held, tuple(loads), designs, compiled
        self.tree, self.rows = held.tree, held.closures.size
        self.numbers = 0 if designs is None else len(designs.places)  # of designs, behind the positions of a row
        self.plays = [k for k, spring in enumerate(held.tree.springs) if spring.play]
        self.varied = self.numbers + len(self.plays)
        self.acting = 6 * len(self.loads) + 1  # wrenches, and the share of gravity
        self._frames: dict[str, SparseRows] = {}
        self._places: dict[str, RowProgram] = {}

    @cached_property
    def partition(self) -> Partition:
        """Dependent and independent rates of all rows: those of home."""
        return Configuration(self.robot, self.robot.home).reduction.partition

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
        return graph, Configuration(held, q), [symbols(word, size) for word, size in words]

    def of_rows(self, q: Array, numbers: Array | None) -> Array:
        """Positions with the numbers of the parameter set of each row behind them; None: those of the robot itself.

        Couplings with play have no flank.
        """
        parts = [q] if self.designs is None else [q, np.broadcast_to(self.designs.nominal, (len(q), self.numbers))]
        if numbers is not None:
            parts[1] = numbers
        return np.concatenate([*parts, np.zeros((len(q), len(self.plays)))], axis=1)

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

    def _program(self, graph: Graph, name: str, outputs: Array, along: Sequence[str] = ()) -> RowProgram:
        return RowProgram(graph, name, outputs, along, bool(along) or self.compiled)  # directions are many rows

    def _matrix(self, name: str, matrix: Callable[[Configuration], Any]) -> SparseRows:
        """A matrix over the positions."""
        graph, here, _ = self._traced()
        return SparseRows(graph, name, np.asarray(matrix(here), dtype=object), self.compiled)

    # -- programs --------------------------------------------------------------------------------------

    @cached_property
    def forces(self) -> RowProgram:
        """F along all rates: positions, wrenches and the share of gravity in."""
        graph, here, (w,) = self._traced(("w", self.acting))
        return self._program(graph, "tree_forces", self._forces(here, w))

    @cached_property
    def slopes(self) -> RowProgram:
        """How F - J_tot^T lam changes along a direction of the positions: these, multipliers and the same in."""
        graph, here, (lam, w) = self._traced(("lam", self.rows), ("w", self.acting))
        along = [f"q[{k}]" for k in range(self.tree.nq)]
        return self._program(graph, "tree_slopes", self._forces(here, w, lam), along)

    @cached_property
    def inertia(self) -> RowProgram:
        """What accelerations along a direction need: positions and accelerations in."""
        graph, here, (qdd,) = self._traced(("qdd", self.tree.n))
        unloaded = Configuration(acting_robot(here.robot, ("gravity", "springs")), here.q)
        forces = self._forces(unloaded, np.zeros(self.acting), None, qdd)
        return self._program(graph, "tree_inertia", forces, [f"qdd[{k}]" for k in range(self.tree.n)])

    @cached_property
    def stiffness(self) -> SparseRows:
        """K_tot (rates x rates): positions in."""
        return self._matrix("tree_stiffness", lambda here: tree_stiffness(here)[0])

    @cached_property
    def damping(self) -> SparseRows:
        """D_tot (rates x rates): positions in."""
        return self._matrix("tree_damping", lambda here: tree_stiffness(here)[1])

    @cached_property
    def closures(self) -> SparseRows:
        """J_tot (rows x rates): positions in."""
        return self._matrix("tree_closures", lambda here: here.closure_jacobian)

    @cached_property
    def turning(self) -> SparseRows:
        """Time derivatives of positions per unit of each rate: positions in; the numbers of a design have none."""
        units, still = np.eye(self.tree.n), np.zeros((self.varied, self.tree.n), dtype=object)

        def rates(here: Configuration) -> Array:
            columns = [here.robot.tree.position_rates(here.q, unit) for unit in units]
            return np.concatenate([np.array(columns, dtype=object).T, still])

        return self._matrix("tree_turning", rates)

    @cached_property
    def elements(self) -> SparseRows:
        """Of elements between two points length beyond rest, tension that comes from energy, and stiffness (3 x n)."""

        def tensions(here: Configuration) -> Array:
            elements = here.robot.tree.elements
            lengths = [distance(here.at, (one.first, one.second)) for one in elements]
            pairs = zip(elements, lengths, strict=True)
            rows = [[length - one.rest, one.stored(length), one.stiffness] for one, length in pairs]
            return np.array(rows, dtype=object).reshape(-1, 3).T

        return self._matrix("tree_elements", tensions)

    @cached_property
    def stretches(self) -> SparseRows:
        """How far couplings with play are stretched beyond their flanks: positions in."""
        numbers = self.plays
        return self._matrix(
            "tree_stretches", lambda here: [here.robot.tree.springs[k].stretch(here.q) for k in numbers]
        )

    def frame_rows(self, frame: str) -> SparseRows:
        """World twist of a frame per unit of all rates (6 x n): positions in."""
        if frame not in self._frames:
            self._frames[frame] = self._matrix("tree_frame", lambda here: here.frame_rows(frame))
        return self._frames[frame]

    @cached_property
    def openings(self) -> RowProgram:
        """Openings of the loops in typical lengths: positions in."""
        graph, here, _ = self._traced()
        closures = here.robot.closures
        opening = self.robot.closures.row_units() * closures.linear_residual(here.at) / self.tree.length
        return self._program(graph, "tree_openings", opening)

    @cached_property
    def moved(self) -> RowProgram:
        """Positions after an increment along the rates: both in; the numbers of a design stay."""
        graph, here, (step,) = self._traced(("step", self.tree.n))
        words = [f"design[{k}]" for k in range(self.numbers)] + [f"flank[{k}]" for k in range(len(self.plays))]
        kept = np.array([graph.symbol(word) for word in words], dtype=object)
        return self._program(graph, "tree_moved", np.append(here.robot.tree.moved(here.q, step), kept))

    def places(self, frame: str) -> RowProgram:
        """Rotation and position of a frame (12 numbers): positions in."""
        if frame not in self._places:
            graph, here, _ = self._traced()
            R, P = here.at.of(here.robot.tree.place(frame))
            self._places[frame] = self._program(graph, "tree_place", np.concatenate([R.ravel(), P]))
        return self._places[frame]
