"""The geometry of a robot for many poses at once: the recursion is traced once and run on arrays of poses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.cache import cached
from parflex.closure.constraints import Coupling, Loop
from parflex.closure.continuation import position_units
from parflex.closure.leg_geometry import Dyad, LegSign, Pivot
from parflex.closure.targets import FrameTarget
from parflex.codegen.emit_python import functions_of
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.program import Program, run
from parflex.parameters.design_numbers import DesignNumbers
from parflex.robot.robot import Robot
from parflex.symbolic.expression import Graph
from parflex.tree.tree import GROUND, Place, Tree

Array = np.ndarray
COMPILE_FROM = 4000  # poses from which machine code pays for making it
GEARING = ("coefficients", "offset")  # of elastic couplings: what says where their joints follow
BLOCK = 512  # poses that interpreted programs take at a time: their values stay in the cache


def rigid_tree(tree: Tree) -> Tree:
    """The tree with its bodies undeformed: elastic coordinates are gone, nodes stand where the bodies are straight."""
    links, q0, v0 = [], 0, 0
    for link in tree.links:
        q1, v1 = q0 + link.q.stop - link.q.start, v0 + link.v.stop - link.v.start
        none_q, none_v = slice(q1, q1), slice(v1, v1)
        links.append(replace(link, body=RigidBody(), node=None, q=slice(q0, q1), v=slice(v0, v1), e=none_q, e_v=none_v))
        q0, v0 = q1, v1
    return replace(tree, links=tuple(links), springs=(), elements=())


def _placing(place: Sequence[str | int], end_effector: str) -> bool:
    """Whether the number at this place of a robot says where something is mounted or how a joint moves it.

    Or where joints follow couplings, elastic ones at rest, and how long rods are.
    """
    if place[0] in ("loops", "constraints") or (place[1] == "links" and place[3] in ("rotation", "position", "joint")):
        return True
    if place[1] == "springs" and place[3] in GEARING:
        return True
    return tuple(place[1:3]) == ("places", end_effector)


def _placing_numbers(designs: DesignNumbers) -> list[int]:
    """Numbers of designs that say where something is."""

    def build() -> list[int]:
        end = designs.robot.tree.end_effector
        return [k for k, at in enumerate(designs.places) if any(_placing(place, end) for place in at)]

    return cached("numbers that place something", designs.name or None, build)


class BatchProgram:
    """A traced program as a function of rows: interpreted on arrays, compiled when there are many rows."""

    def __init__(self, program: Program, compiled: bool | None = None) -> None:
        self.program = program
        self.compiled = compiled  # None: where rows are many
        self._kernel = Kernel(program)  # whose machine code is made when it is first needed

    def __reduce__(self) -> tuple[type, tuple[Program, bool | None]]:
        return BatchProgram, (self.program, self.compiled)  # machine code stays in its process

    def with_choice(self, compiled: bool | None) -> BatchProgram:
        """The same program, with the same machine code, compiled or not."""
        made = BatchProgram.__new__(BatchProgram)  # `copy` would make another kernel
        made.program, made.compiled, made._kernel = self.program, compiled, self._kernel
        return made

    def kernel(self, rows: int) -> Kernel | None:
        """Machine code for so many rows; None where they are too few for it."""
        use_kernel = rows >= COMPILE_FROM if self.compiled is None else self.compiled
        return self._kernel if use_kernel else None

    def __call__(self, rows: Array) -> Array:
        """Outputs (count x outputs) for rows of inputs (count x inputs)."""
        kernel = self.kernel(len(rows))
        if kernel is not None:
            return kernel.many(rows)
        result = np.empty((len(rows), len(self.program.outputs)))
        functions = functions_of("numpy")
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            for k, value in enumerate(run(self.program, list(part.T), functions)):
                result[start : start + BLOCK, k] = value
        return result


class Geometry:
    """Positions without elastic coordinates, and where the links are, for many poses.

    With `designs` the rows of positions have further columns: what the design of each row puts in the place of numbers
    of the geometry.
    """

    def __init__(self, robot: Robot, designs: DesignNumbers | None = None) -> None:
        self.robot = robot
        self.designs = designs
        self.varied = [] if designs is None else _placing_numbers(designs)
        self.tree = cached("rigid trees", "", lambda: rigid_tree(robot.tree), owners=(robot.tree,))
        self.kept = np.array([i for link in robot.tree.links for i in range(link.q.start, link.q.stop)], dtype=int)
        self.rigid_rate_indices = np.array(
            [k for link in robot.tree.links for k in range(link.v.start, link.v.stop)], dtype=int
        )
        self.home = robot.home[self.kept]
        self._steppers: dict[tuple, Any] = {}  # Newton steps that were traced
        self._asked: list[FrameTarget] = []
        self.compiled: bool | None = None
        self.legs_differ = False  # whether designs move joints of legs in space to where closed forms do not hold

    def settle(self, poses: int) -> None:
        """Decide once for all programs, by the number of poses to come, whether they are compiled.

        Both ways round differently: a program that is compiled on the way would make what comes later depend on it.
        """
        self.compiled = poses >= COMPILE_FROM

    def rate(self, k: int) -> int:
        """Number here of a rate of the robot."""
        return int(np.searchsorted(self.rigid_rate_indices, k))

    @cached_property
    def rate_units(self) -> Array:
        """Units of rates: of rotors those behind their gears, as a hundred radians of a motor may be a step."""
        units, gears = self.tree.rate_units.copy(), self.robot.gearing
        for k in np.flatnonzero(gears.rotors):
            units[self.rate(int(k))] = gears.units[k]
        return units

    @cached_property
    def position_units(self) -> Array:
        """Units of positions, likewise."""
        units = position_units(self.tree)
        for link in self.tree.links:
            if link.joint.one_axis:
                units[link.q.start] = self.rate_units[link.v.start]
        return units

    def whole(self, q: Array) -> Array:
        """Positions of the robot, elastic coordinates zero."""
        result = np.zeros((len(q), self.robot.tree.nq))
        result[:, self.kept] = q
        return result

    def traced(self) -> tuple[Graph, Robot]:
        """A graph, and the robot with symbols of it where designs differ."""
        graph = Graph()
        if self.designs is None:
            return graph, self.robot
        return graph, self.designs.with_numbers({k: graph.symbol(f"design[{k}]") for k in self.varied})

    def inputs(self, positions: Array) -> Array:
        """Columns of rows that a program takes: numbers of the design first, then these positions."""
        width = len(self.kept)
        return np.concatenate([np.arange(width, width + len(self.varied)), positions]).astype(int)

    @cached_property
    def designed(self) -> dict[tuple[str | int, ...], int]:
        """Columns of rows with numbers of designs, by where these stand in the robot."""
        places = () if self.designs is None else self.designs.places
        return {place: len(self.kept) + n for n, k in enumerate(self.varied) for place in places[k]}

    @cached_property
    def _placing(self) -> Array:
        """Numbers of all designs that say where something is."""
        assert self.designs is not None
        return self.designs.columns(self.varied)

    def rows(self, q: Array, designs: Array) -> Array:
        """Positions with the numbers of the design of each row behind them, which may be written to."""
        if self.designs is None:
            return q.copy()
        width = len(self.kept)
        made = np.empty((len(designs), width + len(self.varied)))
        made[:, :width] = q
        np.take(self._placing, designs, axis=0, out=made[:, width:], mode="clip")  # unbuffered; all are there
        return made


class Subtree:
    """Some links of a tree with all that carry them, numbered anew."""

    def __init__(self, tree: Tree, links: Iterable[int]) -> None:
        branch_links = sorted({j for link in links if link != GROUND for j in tree.path(link)})
        self.number = {GROUND: GROUND} | {j: k for k, j in enumerate(branch_links)}
        renumbered, q0, v0 = [], 0, 0
        positions: list[int] = []
        rates: list[int] = []
        for j in branch_links:
            link = tree.links[j]
            positions += range(link.q.start, link.q.stop)
            rates += range(link.v.start, link.v.stop)
            q, v = slice(q0, len(positions)), slice(v0, len(rates))
            q0, v0 = q.stop, v.stop
            none_q, none_v = slice(q0, q0), slice(v0, v0)
            renumbered.append(replace(link, parent=self.number[link.parent], q=q, v=v, e=none_q, e_v=none_v))
        self.tree = replace(tree, links=tuple(renumbered), places={}, springs=(), elements=())
        self.positions, self.rates = np.array(positions, dtype=int), np.array(rates, dtype=int)

    def symbols(self, graph: Graph) -> Array:
        """One symbol for each position."""
        return np.array([graph.symbol(f"q[{k}]") for k in range(len(self.positions))], dtype=object)

    def moved(self, loop: Loop) -> Loop:
        """The loop between the links as they are numbered here."""
        first, second = (replace(place, link=self.number[place.link]) for place in (loop.first, loop.second))
        return replace(loop, first=first, second=second)

    def coupled(self, row: Coupling) -> Coupling:
        """The coupling between the links as they are numbered here."""
        numbers = tuple(self.number[j] for j in row.numbers)
        links = [self.tree.links[j] for j in numbers]
        positions, rates = tuple(link.q.start for link in links), tuple(link.v.start for link in links)
        return replace(row, numbers=numbers, positions=positions, rates=rates)

    def carried(self, dyad: Dyad | LegSign, named: Callable[[Loop], Loop]) -> Dyad | LegSign:
        """The dyad between the links as they are numbered here, its closures by what `named` gives for them."""
        if isinstance(dyad, LegSign):
            j1, j2, j3 = (self.number[j] for j in dyad.leg.arm)
            inner, loop = dyad.leg.linkage, self.moved(named(dyad.leg.loop))
            inner = None if inner is None else inner.carried(self.number, self.moved(named(inner.loop)))
            return replace(dyad, leg=replace(dyad.leg, arm=(j1, j2, j3), wrist=(), loop=loop, linkage=inner))
        loops = [None if pivot.loop is None else self.moved(named(pivot.loop)) for pivot in dyad.pivots]
        links = [self.number.get(pivot.link, GROUND) for pivot in dyad.pivots]
        first, middle, last = (Pivot(link, loop) for link, loop in zip(links, loops, strict=True))
        return replace(dyad, pivots=(first, middle, last))

    def placed(self, target: FrameTarget, place: Place) -> FrameTarget:
        """The target on a place, between the links as they are numbered here."""
        return replace(target, place=replace(place, link=self.number[place.link]))
