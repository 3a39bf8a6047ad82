"""Home of many parameter sets, each closed from the start values of the file as if it were loaded alone.

Home is where Newton's method of the assembler ends from the start values. Its iterates, the longest step included, are
a program of the parameters. A set for which the method would shorten a step, search or turn motors by another
revolution is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from parflex.cache import cached
from parflex.closure import mobility
from parflex.closure.assembler import LEFT
from parflex.closure.constraints import Coupling, Loop
from parflex.closure.continuation import position_units
from parflex.closure.newton import STRIDE, ClosurePart, strides
from parflex.closure.partition import choose_partition
from parflex.closure.targets import FrameTarget, Target
from parflex.closure.working_modes import block
from parflex.codegen.lower import depth_first
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program
from parflex.errors import ParflexError
from parflex.maps.home_loop import closed_homes
from parflex.maps.homes_of_designs import begun_elsewhere
from parflex.maps.kinematics import BatchProgram, Geometry, Subtree, rigid_tree
from parflex.maps.newton import (
    ASKED,
    ClosingRows,
    NewtonStepper,
    cached_home_steps,
    jumping_rows,
    least_squares,
    rows_of,
    symbolic_target,
)
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.home import stated_motors, with_default_motors
from parflex.robot.pose_input import complete_end_effector, read_pose
from parflex.robot.robot import Robot
from parflex.spatial.linear import solve
from parflex.spatial.rotations import vector_from_rotation, vector_quaternion

Array = np.ndarray
SAME = 1e-4  # rad or typical lengths: the home of the file itself is found
AGREE = 1e-9  # of an opening: what rows that repeat others leave open
ALIKE = 3.0  # times the motion of home by a design: other assemblies move less
NEARER = 0.9  # of a distance of motors, below which another assembly is chosen, as in the assembler


@dataclass(frozen=True, eq=False, repr=False)
class HomeStart(Record):
    """Where the assembler begins: the robot, what home gives, the parts that close, and what designs begin elsewhere.

    `moved` are columns of the rigid tree and the numbers of designs that stand there, `asked` axes along which such
    numbers place the end effector on its joints.
    """

    robot: Robot
    target: Target
    parts: list[ClosurePart]
    q: Array
    moved: tuple[tuple[int, int], ...]
    asked: tuple[tuple[int, int], ...] = ()

    @property
    def placed(self) -> FrameTarget | None:
        """The end effector on its joints, where designs place it elsewhere."""
        own = [row for part in self.parts for row in part.rows if isinstance(row, FrameTarget)]
        return own[0] if self.asked else None


def home_start(geometry: Geometry) -> HomeStart | None:
    """How home of a robot with designs begins; None where its homes are not followed together."""
    designs = geometry.designs
    robot = with_default_motors(geometry.robot)
    if designs is None or robot.at_rest is not None:
        return None  # couplings start joints by each other
    given, start = robot.description.poses.get("home", {}), robot.start
    target = read_pose(robot.tree, given, "poses.home", robot.file, start) if given else Target()
    try:
        moved, asked_for = begun_elsewhere(robot, designs, target)
    except ParflexError:
        return None
    asked = complete_end_effector(robot.tree, robot.actuated, target, start) or target
    parts = robot.assembler.parts(asked, robot.locked | frozenset(robot.deformations))
    parts = [part for part in parts if len(part.columns)]
    rows = [row for part in parts for row in part.rows]
    columns = np.array(sorted({int(k) for part in parts for k in part.columns}), dtype=int)
    if moved is None or not all(isinstance(row, ClosingRows) for row in rows):
        return None
    if asked_for and sum(isinstance(row, FrameTarget) for row in rows) != 1:
        return None
    if strides(robot.tree, columns, rows)[0] or robot.assembler.distant_shafts(asked, start, parts):
        return None  # screws turn many times
    kept = {int(k): n for n, k in enumerate(geometry.kept)}
    return HomeStart(robot, asked, parts, asked.applied(start), tuple((kept[at], k) for at, k in moved), asked_for)


def home_steps(geometry: Geometry, begin: HomeStart) -> NewtonStepper | None:
    """A step of the assembler's Newton method on all loops at home, and the squared opening before it.

    None where rows do not decide all joints: these would move as little as they can.
    """
    whole, L, robot = geometry.tree, geometry.tree.length, begin.robot
    closing: list[Any] = [row for part in begin.parts for row in part.rows]
    ends = [link for row in closing for link in row.ends]
    graph, symbolic = geometry.traced()
    branch, traced = Subtree(whole, ends), Subtree(rigid_tree(symbolic.tree), ends)
    own_rows, traced_rows = robot.closures.rows, symbolic.closures.rows
    named = {id(plain): row for plain, row in zip(own_rows, traced_rows, strict=True)}
    q = traced.symbols(graph)
    increment, lengths, opening = np.zeros(traced.tree.n, dtype=object), [], 0.0
    for part in begin.parts:
        rates = np.searchsorted(branch.rates, [geometry.rate(int(k)) for k in part.columns])
        loops = [
            _on(traced, symbolic_target(graph, row, whole.planar), symbolic)
            if begin.asked and isinstance(row, FrameTarget)
            else _on(traced, named.get(id(row), row), symbolic)
            for row in part.rows
        ]
        residual, J = rows_of(traced.tree, loops, q, rates)
        metres = np.concatenate([row.scale(L) for row in part.rows])
        units = whole.rate_units[branch.rates][rates]
        picked = _picked(robot, part, begin.q)
        if picked is None:
            return None
        if len(picked) < len(J) and not _repeat(robot, part, begin.q):
            step = least_squares(J, residual, metres)
        else:
            step = solve(J[picked], -residual[picked])
        increment[rates] = step
        along = strides(robot.tree, part.columns, closing)[1]
        lengths += [(x * (weight / unit)) ** 2 for x, weight, unit in zip(step, along, units, strict=True) if weight]
        opening = opening + sum((x * (unit / L)) ** 2 for x, unit in zip(residual, metres, strict=True))
    longest = np.sqrt(reduce(_larger, lengths)) / STRIDE
    links = sorted({traced.tree.link_of_rate[k] for k in np.flatnonzero(increment)})
    moving = [i for j in links for i in range(traced.tree.links[j].q.start, traced.tree.links[j].q.stop)]
    outputs = {
        "q": traced.tree.moved(q, increment / _larger(longest, 1.0))[moving],
        "opening": np.array([opening], dtype=object),
    }
    made = depth_first(_with_sizes(make_program(graph, "closing", outputs, quick=True)))
    program = BatchProgram(made, geometry.compiled)
    own = np.array(moving, dtype=int) + len(geometry.varied)
    behind = len(geometry.kept) + len(geometry.varied) + np.arange(len(ASKED) if begin.asked else 0)
    return NewtonStepper(np.concatenate([geometry.inputs(branch.positions), behind]), own, program, 1.0, 1.0)


def _larger(a: Any, b: Any) -> Any:
    """The larger of two numbers, over any scalar."""
    return 0.5 * (a + b + np.sqrt((a - b) ** 2))


def _with_sizes(program: Program) -> Program:
    """The same program with sizes in the place of roots of squares, which take thirty times as long."""
    base, own = len(program.inputs), program.instructions
    made = []
    for word, *arguments in own:
        squared = own[arguments[0] - base] if word == "sqrt" and arguments[0] >= base else ("", 0, 1)
        of_square = squared[0] == "mul" and squared[1] == squared[2]
        made.append(("abs", squared[1]) if of_square else (word, *arguments))
    return replace(program, instructions=tuple(made))


def _on(traced: Subtree, row: Any, symbolic: Robot) -> ClosingRows:
    """A row between the links as they are numbered where it is traced."""
    if isinstance(row, Loop):
        return traced.moved(row)
    if isinstance(row, Coupling):
        return traced.coupled(row)
    place = next(own for name, own in symbolic.tree.places.items() if name == row.name)
    return traced.placed(row, place)


def _picked(robot: Robot, part: ClosurePart, q: Array) -> Array | None:
    """As many rows of a part as it has joints; None where they do not decide all of these."""
    J = robot.assembler.block(q, part)
    if mobility.rank(J) < len(part.columns):
        return None
    ones = np.arange(len(part.columns))
    return np.asarray(choose_partition(J, ones, len(ones), np.ones(len(ones))).rows)


def _repeat(robot: Robot, part: ClosurePart, q: Array) -> bool:
    """Whether spare rows follow from the others while loops are open too, as those of loops in a plane do."""
    rng, tree = np.random.default_rng(4), robot.tree
    for _ in range(3):
        step = np.zeros(tree.n)
        step[part.columns] = 0.3 * rng.uniform(-1, 1, len(part.columns)) * tree.rate_units[part.columns]
        at = pose(tree, tree.moved(q, step))
        J = block(tree, part.rows, part.columns, at, jacobians(tree, at, part.columns))
        r = np.concatenate([row.residual(at, tree.length) for row in part.rows]) / tree.length
        if np.linalg.norm(J @ np.linalg.lstsq(J, r, rcond=1e-10)[0] - r) > AGREE * np.linalg.norm(r):
            return False
    return True


class HomeRows:
    """Homes of all designs of a geometry."""

    def __init__(self, geometry: Geometry, begin: HomeStart, steps: NewtonStepper) -> None:
        self.geometry, self.begin, self.steps = geometry, begin, steps

    def __call__(self, designs: Array) -> tuple[Array, Array]:
        """Rows of positions and numbers at home, and whether a design that is loaded by itself stands there.

        Behind them are columns of a place that may be asked for; the last row is the file's own.
        """
        geometry, width = self.geometry, len(self.geometry.kept)
        numbers, behind = geometry.designs, width + len(geometry.varied)
        assert numbers is not None
        count = len(designs)
        q = np.empty((count + 1, behind + len(ASKED)))
        q[:, :width], q[:, behind:] = self.begin.q[geometry.kept], 0.0
        q[:count, width:behind] = geometry.all_numbers[designs]
        q[count, width:behind] = numbers.nominal[geometry.varied]
        for column, k in self.begin.moved:
            q[:count, column] = numbers.columns([k])[designs, 0]
            q[count, column] = numbers.nominal[k]
        self.put_place(q, designs)
        start, steps = q[:, :width].copy(), self.steps
        sure = closed_homes(steps.program, q, steps.inputs, steps.moving, self._plain)
        sure &= self._as_asked(q, start)
        if not (sure[count] and self.away_from(q[count:], geometry.home[None], steps.columns)[0] < SAME):
            sure[:] = False  # the file's own home is found otherwise
        return q, sure

    def put_place(self, q: Array, designs: Array | None) -> None:
        """Where each design places the end effector on its joints at home, in place; the last row is the file's own."""
        row, behind, numbers = (
            self.begin.placed,
            len(self.geometry.kept) + len(self.geometry.varied),
            self.geometry.designs,
        )
        if row is None or numbers is None:
            return
        for axis, value in row.position.items():
            q[:, behind + axis] = value
        if row.rotation is not None:
            R = np.asarray(row.rotation, dtype=float)
            q[:, behind + ASKED.index("theta")] = np.arctan2(R[1, 0], R[0, 0])
            q[:, behind + ASKED.index("qw") :] = vector_quaternion(vector_from_rotation(R))
        for axis, k in self.begin.asked if designs is not None else ():
            q[:-1, behind + axis], q[-1, behind + axis] = numbers.columns([k])[designs, 0], numbers.nominal[k]

    def _as_asked(self, q: Array, start: Array) -> Array:
        """Whether joints have the signs asked for, and in no other assembly motors are nearer to their starts.

        The assembler looks for one where motors ended far from what was said of them. Other assemblies move with a
        design about as much as this one.
        """
        robot, kept = self.begin.robot, {int(k): n for n, k in enumerate(self.geometry.kept)}
        good, assembler = np.ones(len(q), dtype=bool), robot.assembler
        for position, sign in assembler.signs.items():
            value = q[:, kept[position]]
            good &= ((np.sin(value) if position in assembler.turning else value) >= 0) == (sign == "+")
        for number, motors in enumerate(self.motors):
            units = position_units(self.geometry.tree)[motors]
            left = np.flatnonzero(jumping_rows(start, q, np.array(motors, dtype=int), LEFT * units))
            far = self.away_from(q[left], start[left], motors)
            left, far = left[~(far < LEFT)], far[~(far < LEFT)]
            if len(left):
                good[left] &= self._none_is_nearer(number, q[left], start[left], far)
        return good

    def _none_is_nearer(self, number: int, q: Array, start: Array, far: Array) -> Array:
        """Whether motors of a part are no nearer to their starts in its other assemblies, each row with its numbers."""
        nearest, width, good = self.other_assemblies(number), start.shape[1], np.ones(len(q), dtype=bool)
        columns = self.moved_in(number)
        home = np.broadcast_to(self.geometry.home, start.shape)
        moved, begun = self.away_from(q, home, columns), self.begin.q[self.geometry.kept][None]
        for other in nearest:
            away = self.away_from(other[None], begun, self.motors[number])[0]
            left = np.flatnonzero(good & ~(NEARER * far + ALIKE * moved < away))
            there = q[left]
            there[:, :width] = other
            closed = closed_homes(self.steps.program, there, self.steps.inputs, self.steps.moving, self._plain)
            good[left] = closed & (self.away_from(there, start[left], self.motors[number]) >= NEARER * far[left])
        return good

    def moved_in(self, number: int) -> list[int]:
        """Columns that a part moves."""
        own = set(self.begin.robot.assembler.positions(self.begin.parts[number]))
        return [k for k in self.steps.columns.tolist() if int(self.geometry.kept[k]) in own]

    @cached_property
    def motors(self) -> list[list[int]]:
        """Of each part the columns of motors of which the file says where they start."""
        robot, kept = self.begin.robot, {int(k): n for n, k in enumerate(self.geometry.kept)}
        stated = {link.q.start for link in stated_motors(robot)} - set(self.begin.target.values)
        return [[kept[k] for k in robot.assembler.positions(part) if k in stated] for part in self.begin.parts]

    def other_assemblies(self, number: int) -> list[Array]:
        """Positions with the numbers of the file at which a part is closed otherwise, and all others as at home."""
        owners = (self.steps.program.program,)
        return cached("other assemblies", number, lambda: self._closed_otherwise(number), owners)

    def _closed_otherwise(self, number: int) -> list[Array]:
        geometry, robot, width = self.geometry, self.begin.robot, len(self.geometry.kept)
        assert geometry.designs is not None
        starts = np.array(list(robot.assembler.starts(robot.home, self.begin.parts[number])))[:, geometry.kept]
        q = np.zeros((len(starts), width + len(geometry.varied) + len(ASKED)))
        q[:, :width] = starts
        q[:, width : width + len(geometry.varied)] = geometry.designs.nominal[geometry.varied]
        self.put_place(q, None)
        closed = closed_homes(self.steps.program, q, self.steps.inputs, self.steps.moving, self._plain)
        found = [geometry.home]
        for row in q[closed, :width]:
            if all(self.away_from(row[None], one[None], self.steps.columns)[0] > SAME for one in found):
                found.append(row)
        return found[1:]

    @cached_property
    def _plain(self) -> bool:
        moved = set(self.steps.columns.tolist())
        return all(link.joint.one_axis for link in self.geometry.tree.links if link.q.start in moved)

    def away_from(self, q: Array, other: Array, columns: Sequence[int] | Array) -> Array:
        """Largest distance of some positions from others, in rad or typical lengths; whole turns are none."""
        robot, far = self.begin.robot, np.zeros(len(q))
        for column, unit in zip(columns, self.units(columns), strict=True):
            off = q[:, column] - other[:, column]
            if int(self.geometry.kept[column]) in robot.assembler.periodic:
                far_off = np.abs(off) > np.pi
                off[far_off] = np.arctan2(np.sin(off[far_off]), np.cos(off[far_off]))
            far = np.maximum(far, np.abs(off) / unit)
        return far

    def units(self, columns: Sequence[int] | Array) -> Array:
        """Of positions: rad, or the typical length."""
        assembler, kept = self.begin.robot.assembler, self.geometry.kept
        turns = [int(kept[column]) in assembler.periodic | assembler.counted for column in columns]
        return np.where(turns, 1.0, self.geometry.tree.length)


def home_rows(geometry: Geometry) -> HomeRows | None:
    """Homes of the designs of a geometry; None where they are not followed together."""
    name = None if geometry.designs is None else geometry.designs.name or None
    begin = cached("starts of homes", name, lambda: home_start(geometry), owners=(geometry.robot,))
    steps = None if begin is None else cached_home_steps(geometry, lambda: home_steps(geometry, begin))
    return None if begin is None or steps is None else HomeRows(geometry, begin, steps)
