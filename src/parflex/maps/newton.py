"""Newton steps on loop closures for many poses at once, compiled and cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.cache import cached
from parflex.closure.constraints import Coupling, Loop
from parflex.closure.leg_geometry import EXACT, Dyad, LegSign
from parflex.closure.partition import choose_partition
from parflex.closure.targets import FrameTarget
from parflex.codegen import cache
from parflex.codegen.llvm_jit import Kernel, aligned_zeros
from parflex.codegen.loop_compiler import unrolled_range
from parflex.codegen.loop_functions import compiled, inner
from parflex.codegen.lower import Emission, depth_first, repeated_sums_as_products
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Instruction, Program
from parflex.maps.closed_forms import DyadPlaces
from parflex.maps.kinematics import BatchProgram, Geometry, Subtree, rigid_tree
from parflex.maps.simd import call_lanes, column_rows
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, pose
from parflex.spatial.linear import solve
from parflex.spatial.rotations import quaternion_matrix, rotation_about
from parflex.symbolic.expression import Graph
from parflex.tree.tree import Tree

Array = np.ndarray

ClosingRows = Loop | FrameTarget | Coupling


STRIDE = 0.5  # Newton steps are kept below this angle (sliding: this share of the typical length)

POLISH = 1e-7  # opening from which one more Newton step goes to rounding

MAX_EXPANDED_ROWS = 7  # rows up to which determinants are expanded: the terms of larger ones are too many

ASKED = ["x", "y", "z", "theta", "qw", "qx", "qy", "qz"]  # of a place on joints: columns behind all others

ONE = np.zeros(1, dtype=np.int64)  # of one part, the first of its answers is its opening

SHARP = 1e-12  # opening, in typical lengths, above which a row that is judged takes another step: rounding is below

EXACT_STEP = 1e-14  # opening at which a row is closed to rounding: no step is taken

ROW, STEP = range(2)  # whole numbers of a lane; steps are counted below zero where a row is judged


@dataclass(frozen=True, eq=False, repr=False)
class NewtonStepper(Record):
    """Newton steps on some loops by some joints, for many poses at once."""

    inputs: Array  # positions of the rigid tree that the program takes
    moving: Array  # which of the inputs move
    program: BatchProgram
    side: float  # sign of the determinant at home: the working mode
    size: float  # of the determinant at home
    rows: int = 0  # of the matrix that the program gives in the place of its determinant
    settled: bool = True  # whether the side tells its assemblies apart
    folds: bool = False  # whether the side may be that of a coordinate that folds, and tells no working mode

    @property
    def columns(self) -> Array:
        """Positions that move."""
        return self.inputs[self.moving]

    @property
    def part(self) -> LoopPart:
        """What joins it with others."""
        return LoopPart(self.program.program, self.inputs, self.moving)

    def judge(self, q: Array, todo: Array) -> tuple[Array, Array]:
        """Opening and determinant at positions as they are; rows that are not in `todo` have none."""
        kernel = self.program.kernel(len(q))
        if kernel is not None:
            return self.judged(close_rows(kernel, q, todo, self.inputs, self.moving, 0, POLISH))
        opening, side = np.full(len(q), np.nan), np.full(len(q), np.nan)
        outputs = self.program(q[todo[:, None], self.inputs])
        opening[todo], side[todo] = self.judged(outputs[:, len(self.moving) :])
        return opening, side

    def judged(self, outputs: Array) -> tuple[Array, Array]:
        """Opening, and determinant times its home sign, from what the program gives behind new positions."""
        return np.sqrt(outputs[:, 0]), self.sided(outputs)

    def sided(self, outputs: Array) -> Array:
        """The determinant alone."""
        if not self.rows:
            return outputs[:, -1] * self.side
        matrix = outputs[:, 1:].reshape(len(outputs), self.rows, self.rows)
        with np.errstate(invalid="ignore"):
            return np.linalg.det(matrix) * self.side

    def solve(self, q: Array, todo: Array, steps: int = 40) -> tuple[Array, Array]:
        """Newton in place on the rows `todo`; gives the remaining opening in typical lengths, and the determinant.

        The determinant is positive on the side of home. Rows that are not asked for have neither.
        """
        kernel = self.program.kernel(len(q))
        if kernel is not None:
            return self.judged(close_rows(kernel, q, todo, self.inputs, self.moving, steps, POLISH))
        rows, width = q[:, self.inputs], len(self.moving)
        opening, side = np.full(len(q), np.nan), np.full(len(q), np.nan)
        active, polished = todo, np.zeros(len(q), dtype=bool)
        for _ in range(steps):
            outputs = self.program(rows[active])
            positions, (opening[active], side[active]) = outputs[:, :width], self.judged(outputs[:, width:])
            finite = np.isfinite(positions).all(axis=1) & np.isfinite(opening[active]) & np.isfinite(side[active])
            going = (~polished[active] | (opening[active] > SHARP)) & finite
            polished[active] = opening[active] < POLISH
            active = active[going]
            if not len(active):
                break
            rows[active[:, None], self.moving] = positions[going]
        q[:, self.inputs] = rows
        return opening, side


def newton_stepper(
    geometry: Geometry,
    rows: Sequence[ClosingRows],
    rates: Sequence[int],
    picked: Sequence[int] | None = None,
    judged: bool = True,
) -> NewtonStepper:
    """Steps of the joints with the given rates (numbers of the robot) on rows, by `picked` ones; made once.

    Where it is not `judged` by its determinant, it has none, and steps are those of least squares on all rows.
    """
    used = None if picked is None else tuple(int(k) for k in picked)
    key = (tuple(map(id, rows)), tuple(int(k) for k in rates), used, judged)  # loops live as long as the robot
    if key not in geometry._steppers:
        geometry._steppers[key] = _stepper(geometry, rows, rates, used, judged)
        geometry._asked += [row for row in rows if isinstance(row, FrameTarget)]  # which live as long as the steps
    return geometry._steppers[key]


def _stepper(
    geometry: Geometry,
    closing: Sequence[ClosingRows],
    rates: Sequence[int],
    rows_used: tuple[int, ...] | None,
    judged: bool,
) -> NewtonStepper:
    full_tree, L = geometry.tree, geometry.tree.length
    ends = [link for row in closing for link in row.ends]
    branch, (graph, robot) = Subtree(full_tree, ends), geometry.traced()
    traced = Subtree(rigid_tree(robot.tree), ends)
    nominal_rows, traced_rows = geometry.robot.closures.rows, robot.closures.rows
    named: dict[int, Any] = {id(plain): row for plain, row in zip(nominal_rows, traced_rows, strict=True)}
    tree, q = branch.tree, branch.symbols(graph)
    plain: list[ClosingRows] = []
    loops: list[ClosingRows] = []
    target_inputs: list[str] = []
    for row in closing:
        if isinstance(row, Loop):
            plain.append(branch.moved(row))
            loops.append(branch.moved(named.get(id(row), row)))
        elif isinstance(row, Coupling):
            plain.append(branch.coupled(row))
            loops.append(branch.coupled(named.get(id(row), row)))
        else:  # what it asks for are further numbers of every row
            target_inputs = ASKED
            plain.append(branch.placed(row, row.place))
            loops.append(
                traced.placed(symbolic_target(graph, row, full_tree.planar), robot.tree.places[full_tree.end_effector])
            )
    rate_columns = np.searchsorted(branch.rates, [geometry.rate(k) for k in rates])
    units = geometry.rate_units[branch.rates][rate_columns]
    links = sorted({tree.link_of_rate[k] for k in rate_columns})
    moving = np.array([i for j in links for i in range(tree.links[j].q.start, tree.links[j].q.stop)], dtype=int)
    residual, J = rows_of(traced.tree, loops, q, rate_columns)
    _, home = rows_of(tree, plain, geometry.home[branch.positions], rate_columns)
    metres = np.concatenate([row.scale(L) for row in plain])
    best = choose_partition(
        metres[:, None] * home * (units / L),
        np.arange(len(rate_columns)),
        len(rate_columns),
        np.ones(len(rate_columns)),
    ).rows
    picked = best if rows_used is None else np.array(rows_used)
    step = (
        solve(J[picked], -residual[picked])
        if judged or len(J) == len(rate_columns)
        else least_squares(J, residual, metres)
    )
    length = sum((value / unit) ** 2 for value, unit in zip(step, units, strict=True))
    increment = np.zeros(tree.n, dtype=object)
    increment[rate_columns] = step / np.sqrt(1 + length / STRIDE**2)  # short steps stay as they are to second order
    opening = sum((value * unit / L) ** 2 for value, unit in zip(residual, metres, strict=True))
    opening = opening + sum(
        row.one_minus_cosine(pose(traced.tree, q)) ** 2 for row in loops if not isinstance(row, Coupling)
    )
    size = len(picked) if len(picked) > MAX_EXPANDED_ROWS else 0
    outputs = {
        "q": tree.moved(q, increment)[moving],
        "opening": np.array([opening], dtype=object),
        "determinant": J[picked].ravel() if size else np.array([determinant(J[picked])], dtype=object),
    }
    home_determinant = float(np.linalg.det(home[picked]))
    if not judged:
        outputs["determinant"], home_determinant, size = np.ones(1), 1.0, 0
    program = BatchProgram(make_program(graph, "closing", outputs, quick=True), geometry.compiled)
    behind = len(geometry.kept) + len(geometry.varied)
    inputs = np.concatenate([geometry.inputs(branch.positions), behind + np.arange(len(target_inputs))])
    return NewtonStepper(
        inputs, moving + len(geometry.varied), program, float(np.sign(home_determinant)), abs(home_determinant), size
    )


def least_squares(J: Array, residual: Array, metres: Array) -> Array:
    """The step that closes all rows, of which some repeat others: any choice of them is singular somewhere."""
    rows = metres[:, None] * J
    return solve(rows.T @ rows, -(rows.T @ (metres * residual)))


def dyad_judge(geometry: Geometry, dyad: Dyad | LegSign) -> NewtonStepper:
    """What tells the side of a dyad, or of a leg in space: it moves nothing."""
    full_tree, (graph, robot) = geometry.tree, geometry.traced()
    ends = list(dyad.ends)
    if isinstance(dyad, Dyad):
        ends += [link for pivot in dyad.pivots if pivot.loop is not None for link in pivot.loop.ends]
    plain, traced = Subtree(full_tree, ends), Subtree(rigid_tree(robot.tree), ends)
    named = {
        id(loop): counterpart
        for loop, counterpart in zip(geometry.robot.closures.loops, robot.closures.loops, strict=True)
    }
    counterpart, at = traced.carried(dyad, lambda loop: named[id(loop)]), pose(traced.tree, traced.symbols(graph))
    sine = np.array([counterpart.sine(traced.tree, at)], dtype=object)
    home_sine = plain.carried(dyad, lambda loop: loop).sine(
        plain.tree, pose(plain.tree, geometry.home[plain.positions])
    )
    outputs = {"opening": np.zeros(1), "determinant": sine}
    program = BatchProgram(make_program(graph, "closing", outputs, quick=True), geometry.compiled)
    return NewtonStepper(
        geometry.inputs(plain.positions), np.zeros(0, dtype=int), program, dyad.side, abs(float(home_sine))
    )


def symbolic_target(graph: Graph, target: FrameTarget, planar: bool) -> FrameTarget:
    """The target with symbols in the place of what it asks for."""
    symbols = {word: graph.symbol(f"asked[{word}]") for word in ASKED}
    position: dict[int, Any] = {axis: symbols[ASKED[axis]] for axis in target.position}
    rotation = None
    if target.rotation is not None:
        turned = np.array([symbols[word] for word in ASKED[4:]], dtype=object)
        rotation = rotation_about(2, symbols["theta"]) if planar else quaternion_matrix(turned)
    return replace(target, position=position, rotation=rotation)


def rows_of(tree: Tree, loops: Sequence[ClosingRows], q: Array, columns: Array) -> tuple[Array, Array]:
    """Openings of loops and their rows for some rates."""
    at = pose(tree, q)
    links = jacobians(tree, at)
    residual = np.concatenate([loop.linear_residual(at) for loop in loops])
    return residual, np.concatenate([loop.jacobian(tree, at, links) for loop in loops])[:, columns]


def determinant(matrix: Array) -> object:
    """By expansion along the row with the fewest entries: short for the sparse blocks of legs, over any scalar."""
    if len(matrix) == 1:
        return matrix[0, 0]
    full = [
        [k for k, entry in enumerate(row) if not (isinstance(entry, (int, float)) and entry == 0)] for row in matrix
    ]
    i = min(range(len(matrix)), key=lambda row: len(full[row]))
    total: object = 0.0
    rest = np.delete(matrix, i, axis=0)
    for k in full[i]:
        total = total + (-1) ** (i + k) * matrix[i, k] * determinant(np.delete(rest, k, axis=1))
    return total


@inner
def take_row(lane: int, row: int, steps: int, whole: Array, inputs: Array, q: Array, x: Array) -> None:
    """Give a lane a row."""
    whole[lane, ROW], whole[lane, STEP] = row, 0 if steps > 0 else -1
    for k in range(len(inputs)):
        x[k, lane] = q[row, inputs[k]]


@compiled
def close_lanes(
    address: int,
    places: Array,
    steps: int,
    polish: float,
    inputs: Array,
    moving: Array,
    openings: Array,
    x: Array,
    y: Array,
    whole: Array,
    todo: Array,
    q: Array,
    judged: Array,
) -> int:
    """Newton on the rows of q that are named in `todo`, in place, then once more to see how they are. Steps taken.

    A row whose openings are below `polish` takes one more step, and more where it is near a singular pose. What the
    program gives beside new positions is put into `judged`, at the positions where the row ends; `openings` says where
    it gives their squares.
    """
    lanes, count, moved, judged_count, total = x.shape[1], len(todo), len(moving), judged.shape[1], 0
    following, going = 0, 0
    for lane in range(lanes):
        take_row(lane, todo[min(following, count - 1)], steps, whole, inputs, q, x)
        if following >= count:
            whole[lane, ROW] = -1
        else:
            going += 1
        following += 1
    while going > 0:
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(lanes):
            row = whole[lane, ROW]
            if row < 0:
                continue
            total += 1
            widest = 0.0
            for k in range(len(openings)):
                widest = max(widest, y[moved + openings[k], lane])
            moves = widest > EXACT_STEP * EXACT_STEP if whole[lane, STEP] >= 0 else -whole[lane, STEP] < steps
            if moves and (whole[lane, STEP] >= 0 or widest > SHARP * SHARP):
                usual = True
                for k in range(moved):
                    if not abs(y[k, lane]) < 1e300:
                        usual = False
                if usual:
                    for k in range(moved):
                        x[moving[k], lane] = y[k, lane]
                    if whole[lane, STEP] < 0:
                        whole[lane, STEP] -= 1
                        continue
                    whole[lane, STEP] += 1
                    if whole[lane, STEP] >= steps or widest < polish * polish:
                        whole[lane, STEP] = -whole[lane, STEP]
                    continue
            for k in range(moved):
                q[row, inputs[moving[k]]] = x[moving[k], lane]
            for k in unrolled_range(judged_count):
                judged[row, k] = y[moved + k, lane]
            if following < count:
                take_row(lane, todo[following], steps, whole, inputs, q, x)
                following += 1
            else:
                whole[lane, ROW] = -1
                going -= 1
    return total


@compiled
def find_jumps(before: Array, after: Array, columns: Array, limits: Array, jumps: Array) -> None:
    """Rows of which some column changed by more than its limit."""
    for row in range(len(jumps)):
        for k in range(len(columns)):
            if abs(after[row, columns[k]] - before[row, columns[k]]) > limits[k]:
                jumps[row] = 1


def jumping_rows(before: Array, after: Array, columns: Array, limits: Array) -> Array:
    """Which rows changed in some column by more than its limit."""
    jumps = np.zeros(len(before), dtype=np.int64)
    if len(columns):
        find_jumps(before, after, columns.astype(np.int64, copy=False), limits, jumps)
    return jumps > 0


@compiled
def judge(
    outputs: Array,
    openings: Array,
    widest: float,
    columns: Array,
    signs: Array,
    least: Array,
    closed: Array,
    flat: Array,
) -> None:
    """Rows that are closed on their sides, and those where a determinant is small; what is no number is not closed."""
    for row in range(len(closed)):
        good = 1
        for k in range(len(openings)):
            if not outputs[row, openings[k]] < widest:
                good = 0
        for k in range(len(least)):
            side = signs[k] * outputs[row, columns[k]]
            if not side > 0.0:
                good = 0
            if side < least[k]:
                flat[row] = 1
        closed[row] = good


def judged_rows(
    outputs: Array, openings: Array, widest: float, columns: Array, signs: Array, least: Array
) -> tuple[Array, Array]:
    """Which rows are closed, and which of them flat; determinants are in `columns`, with these signs at home."""
    closed, flat = (np.zeros(len(outputs), dtype=np.int64) for _ in range(2))
    judge(outputs, openings, widest, columns, signs, least, closed, flat)
    return closed > 0, flat > 0


def close_rows(
    kernel: Kernel,
    q: Array,
    todo: Array,
    inputs: Array,
    moving: Array,
    steps: int,
    polish: float,
    openings: Array = ONE,
) -> Array:
    """Newton on rows of positions, in place, by the machine code of a step; gives squared openings, determinants.

    `inputs` are the positions that the program takes, `moving` says which of these move, `openings` which of the
    answers are squared openings.
    """
    program, lanes = kernel.program, kernel.lanes
    judged = np.full((len(q), len(program.outputs) - len(moving)), np.nan)
    if not len(todo):
        return judged
    x, y = aligned_zeros((len(program.inputs), lanes)), aligned_zeros((len(program.outputs), lanes))
    work = kernel.workspace("lanes")
    places = np.array([array.ctypes.data for array in (x, y, work)], dtype=np.int64)
    whole = np.zeros((lanes, 2), dtype=np.int64)
    columns = (array.astype(np.int64, copy=False) for array in (inputs, moving, openings))
    rows = todo.astype(np.int64, copy=False)
    close_lanes(kernel.address("lanes_in"), places, steps, polish, *columns, x, y, whole, rows, q, judged)
    return judged


@dataclass(frozen=True, eq=False, repr=False)
class LoopPart(Record):
    """The program of a step of some loops: its outputs are new positions, the squared opening, and what judges it."""

    program: Program
    inputs: Array  # positions that it takes
    moving: Array  # which of these move; none where positions are only judged


@dataclass(frozen=True, eq=False, repr=False)
class JoinedSteps(Record):
    """Steps of several parts that move nothing of each other, as one program."""

    kernel: Kernel
    inputs: Array
    moving: Array
    openings: Array
    told: tuple[slice, ...]  # where squared opening and determinant of each part are among what is told

    @cached_property
    def judges(self) -> tuple[Kernel, Array]:
        """What is told alone, without steps, and the columns that it takes."""
        program, moves = self.kernel.program, len(self.moving)
        emission, values = Emission(program.inputs, deep=False), list(range(len(program.inputs)))
        for operation, *arguments in program.instructions:
            operands = arguments if operation == "const" else [values[k] for k in arguments]
            values.append(emission.emit(operation, *operands))
        told = tuple((name, values[k]) for name, k in program.outputs[moves:])
        judging = Program("judging", program.inputs, (), tuple(emission.instructions), 0, told)
        return Kernel(depth_first(judging)), self.inputs

    def judging(self, q: Array) -> Array:
        """What is told of all parts at rows as they are."""
        judge, columns = self.judges
        outputs = np.empty((len(q), len(judge.program.outputs)))
        column_rows(judge, columns, q, outputs)
        return outputs

    def __call__(self, q: Array, steps: int, polish: float) -> Array:
        """Newton on all rows, in place; what is told of all parts where rows end.

        Rows that take one step at most are closed to rounding as a rule: then a step is not worked out.
        """
        todo, outputs = np.arange(len(q)), np.zeros((0, 0))
        if steps <= 1:
            outputs = self.judging(q)
            opened = outputs[:, self.openings]
            if opened.max(initial=0.0) <= EXACT_STEP**2:
                return outputs
            todo = np.flatnonzero(~(opened <= EXACT_STEP**2).all(axis=1))
        closed = close_rows(self.kernel, q, todo, self.inputs, self.moving, steps, polish, self.openings)
        if len(todo) == len(q):
            return closed
        outputs[todo] = closed[todo]
        return outputs


def joined(parts: Sequence[LoopPart], judges: Sequence[LoopPart]) -> JoinedSteps | None:
    """One step for all parts; None where one takes positions that another one moves."""
    moved = [{int(k) for k in part.inputs[part.moving]} for part in parts]
    for number, part in enumerate(parts):
        if any(set(part.inputs.tolist()) & indices for k, indices in enumerate(moved) if k != number):
            return None
    columns = sorted({int(k) for part in (*parts, *judges) for k in part.inputs})
    place = {column: k for k, column in enumerate(columns)}
    instructions: list[Instruction] = []
    new: list[tuple[str, int]] = []
    judged: list[tuple[str, int]] = []
    openings, slices, moving = [], [], []
    for number, part in enumerate((*parts, *judges)):
        moves = number < len(parts)
        outputs = part.program.outputs[0 if moves else len(part.moving) :]
        values = _appended(part, [place[int(k)] for k in part.inputs], outputs, len(columns), instructions)
        named = [(f"{name}.{number}", value) for (name, _), value in zip(outputs, values, strict=True)]
        count = len(part.moving) if moves else 0
        if moves:
            openings.append(len(judged))
            moving += [place[int(k)] for k in part.inputs[part.moving]]
        slices.append(slice(len(judged), len(judged) + len(named) - count))
        new, judged = new + named[:count], judged + named[count:]
    names = tuple(f"q[{k}]" for k in columns)
    program = repeated_sums_as_products(Program("closing", names, (), tuple(instructions), 0, tuple(new + judged)))
    taken, moved_ones, opened = (np.array(indices, dtype=np.int64) for indices in (columns, moving, openings))
    return JoinedSteps(Kernel(program), taken, moved_ones, opened, tuple(slices))


def _appended(
    part: LoopPart, inputs: list[int], outputs: Sequence[tuple[str, int]], base: int, instructions: list[Instruction]
) -> list[int]:
    """Put behind the instructions what some outputs of a part need; gives the numbers of these."""
    part_instructions, count = part.program.instructions, len(part.program.inputs)
    needed = {k for _, k in outputs}
    for k in range(len(part_instructions) - 1, -1, -1):
        if count + k in needed and part_instructions[k][0] != "const":
            needed.update(part_instructions[k][1:])
    number = dict(enumerate(inputs))
    for k, (operation, *arguments) in enumerate(part_instructions):
        if count + k in needed:
            number[count + k] = base + len(instructions)
            operands = arguments if operation == "const" else [number[a] for a in arguments]
            instructions.append((operation, *operands))
    return [number[k] for _, k in outputs]


Both = tuple[list[NewtonStepper], list[NewtonStepper]]

Steppers = tuple[list[NewtonStepper], list[NewtonStepper], JoinedSteps | None]


def _key(geometry: Geometry, names: Sequence[str], word: str) -> str | None:
    designs = geometry.designs
    choices = (list(names), "" if designs is None else designs.name or repr(designs.places), geometry.legs_differ)
    return cache.key_of(geometry.robot, word, *choices)


def legs_differ(geometry: Geometry, names: Sequence[str], trace: Callable[[], Program | None]) -> bool:
    """Whether a design moves joints of legs in space apart that cross or are parallel; `trace` traces what tells."""
    if geometry.designs is None or not geometry.varied:
        return False
    key = _key(geometry, names, "structure of legs")

    def build() -> BatchProgram | None:
        program = cache.stored(key, trace)
        return None if program is None else BatchProgram(program, False)

    structure = cached("structure of legs", key, build)
    if structure is None:
        return False
    off = structure(geometry.designs.columns(geometry.varied))
    return not bool(np.abs(off).max(initial=0.0) < EXACT)  # what is not a number differs too


def cached_places(
    geometry: Geometry, names: Sequence[str], trace: Callable[[], DyadPlaces | None]
) -> DyadPlaces | None:
    """Return positions in closed form by these coordinates, None if there are none; `trace` traces them."""
    key = _key(geometry, names, "circles")
    places = cached("places by circles", key, lambda: cache.stored(key, trace))
    return None if places is None else replace(places, program=places.program.with_choice(geometry.compiled))


def cached_steppers(geometry: Geometry, names: Sequence[str], trace: Callable[[], Both]) -> Steppers:
    """Steps and judges of poses by these coordinates, and all as one; `trace` traces them where they are not there."""
    key = _key(geometry, names, "closing")

    def build() -> Steppers:
        both = cache.stored(key, trace)
        return *both, joined(*([stepper.part for stepper in group] for group in both))

    steps = cached("Newton steps", key, build)
    steppers, judges = (
        [replace(stepper, program=stepper.program.with_choice(geometry.compiled)) for stepper in group]
        for group in steps[:2]
    )
    return steppers, judges, steps[2]
