"""Machine code around a compiled Newton step: lanes that each go their own way through rows of positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.codegen.llvm_jit import Kernel, aligned_zeros
from parflex.codegen.loop_compiler import unrolled_range
from parflex.codegen.loop_functions import compiled, inner
from parflex.codegen.lower import Emission, depth_first, repeated_sums_as_products
from parflex.codegen.program import Instruction, Program
from parflex.maps.engine.entry_loop import column_rows
from parflex.maps.lanes.lane_calls import call_lanes
from parflex.records import Record

Array = np.ndarray
ONE = np.zeros(1, dtype=np.int64)  # of one part, the first of its answers is its opening
SHARP = 1e-12  # opening, in typical lengths, above which a row that is judged takes another step: rounding is below
EXACT = 1e-14  # opening at which a row is closed to rounding: no step is taken
ROW, STEP = range(2)  # whole numbers of a lane; steps are counted below zero where a row is judged


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
    lanes, count, moved, told, total = x.shape[1], len(todo), len(moving), judged.shape[1], 0
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
            moves = widest > EXACT * EXACT if whole[lane, STEP] >= 0 else -whole[lane, STEP] < steps
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
            for k in unrolled_range(told):
                judged[row, k] = y[moved + k, lane]
            if following < count:
                take_row(lane, todo[following], steps, whole, inputs, q, x)
                following += 1
            else:
                whole[lane, ROW] = -1
                going -= 1
    return total


@compiled
def find_apart(before: Array, after: Array, columns: Array, limits: Array, found: Array) -> None:
    """Rows of which some column changed by more than its limit."""
    for row in range(len(found)):
        for k in range(len(columns)):
            if abs(after[row, columns[k]] - before[row, columns[k]]) > limits[k]:
                found[row] = 1


def rows_apart(before: Array, after: Array, columns: Array, limits: Array) -> Array:
    """Which rows changed in some column by more than its limit."""
    found = np.zeros(len(before), dtype=np.int64)
    if len(columns):
        find_apart(before, after, columns.astype(np.int64, copy=False), limits, found)
    return found > 0


@compiled
def judge(
    told: Array,
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
            if not told[row, openings[k]] < widest:
                good = 0
        for k in range(len(least)):
            side = signs[k] * told[row, columns[k]]
            if not side > 0.0:
                good = 0
            if side < least[k]:
                flat[row] = 1
        closed[row] = good


def judged_rows(
    told: Array, openings: Array, widest: float, columns: Array, signs: Array, least: Array
) -> tuple[Array, Array]:
    """Which rows are closed, and which of them flat; determinants are in `columns`, with these signs at home."""
    closed, flat = (np.zeros(len(told), dtype=np.int64) for _ in range(2))
    judge(told, openings, widest, columns, signs, least, closed, flat)
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
        count = len(self.kernel.program.outputs) - len(self.moving)
        return told_by([(LoopPart(self.kernel.program, self.inputs, self.moving), range(count))])

    def judging(self, q: Array) -> Array:
        """What is told of all parts at rows as they are."""
        judge, columns = self.judges
        found = np.empty((len(q), len(judge.program.outputs)))
        column_rows(judge, columns, q, found)
        return found

    def __call__(self, q: Array, steps: int, polish: float) -> Array:
        """Newton on all rows, in place; what is told of all parts where rows end.

        Rows that take one step at most are closed to rounding as a rule: then a step is not worked out.
        """
        todo, told = np.arange(len(q)), np.zeros((0, 0))
        if steps <= 1:
            told = self.judging(q)
            opened = told[:, self.openings]
            if opened.max(initial=0.0) <= EXACT**2:
                return told
            todo = np.flatnonzero(~(opened <= EXACT**2).all(axis=1))
        found = close_rows(self.kernel, q, todo, self.inputs, self.moving, steps, polish, self.openings)
        if len(todo) == len(q):
            return found
        told[todo] = found[todo]
        return told


def joined(parts: Sequence[LoopPart], judges: Sequence[LoopPart]) -> JoinedSteps | None:
    """One step for all parts; None where one takes positions that another one moves."""
    moved = [{int(k) for k in part.inputs[part.moving]} for part in parts]
    for number, part in enumerate(parts):
        if any(set(part.inputs.tolist()) & own for k, own in enumerate(moved) if k != number):
            return None
    columns = sorted({int(k) for part in (*parts, *judges) for k in part.inputs})
    place = {column: k for k, column in enumerate(columns)}
    instructions: list[Instruction] = []
    new: list[tuple[str, int]] = []
    told: list[tuple[str, int]] = []
    openings, slices, moving = [], [], []
    for number, part in enumerate((*parts, *judges)):
        moves = number < len(parts)
        outputs = part.program.outputs[0 if moves else len(part.moving) :]
        values = _appended(part, [place[int(k)] for k in part.inputs], outputs, len(columns), instructions)
        named = [(f"{name}.{number}", value) for (name, _), value in zip(outputs, values, strict=True)]
        count = len(part.moving) if moves else 0
        if moves:
            openings.append(len(told))
            moving += [place[int(k)] for k in part.inputs[part.moving]]
        slices.append(slice(len(told), len(told) + len(named) - count))
        new, told = new + named[:count], told + named[count:]
    names = tuple(f"q[{k}]" for k in columns)
    program = repeated_sums_as_products(Program("closing", names, (), tuple(instructions), 0, tuple(new + told)))
    taken, moved_ones, opened = (np.array(own, dtype=np.int64) for own in (columns, moving, openings))
    return JoinedSteps(Kernel(program), taken, moved_ones, opened, tuple(slices))


def told_by(parts: Sequence[tuple[LoopPart, Sequence[int]]]) -> tuple[Kernel, Array]:
    """Some of what programs tell beside their steps, as one program, and the columns that it takes.

    Equal instructions are one.
    """
    columns = sorted({int(k) for part, _ in parts for k in part.inputs})
    place, told = {column: k for k, column in enumerate(columns)}, []
    names = tuple(f"q[{k}]" for k in columns)
    emission = Emission(names, deep=False)
    for number, (part, chosen) in enumerate(parts):
        values = [place[int(k)] for k in part.inputs]
        for word, *arguments in part.program.instructions:
            given = arguments if word == "const" else [values[k] for k in arguments]
            values.append(emission.emit(word, *given))
        outputs = part.program.outputs[len(part.moving) :]
        told += [(f"told[{number},{n}]", values[outputs[n][1]]) for n in chosen]
    program = Program("judging", names, (), tuple(emission.instructions), 0, tuple(told))
    return Kernel(depth_first(program)), np.array(columns, dtype=np.int64)


def _appended(
    part: LoopPart, inputs: list[int], outputs: Sequence[tuple[str, int]], base: int, instructions: list[Instruction]
) -> list[int]:
    """Put behind the instructions what some outputs of a part need; gives the numbers of these."""
    own, count = part.program.instructions, len(part.program.inputs)
    needed = {k for _, k in outputs}
    for k in range(len(own) - 1, -1, -1):
        if count + k in needed and own[k][0] != "const":
            needed.update(own[k][1:])
    number = dict(enumerate(inputs))
    for k, (word, *arguments) in enumerate(own):
        if count + k in needed:
            number[count + k] = base + len(instructions)
            given = arguments if word == "const" else [number[a] for a in arguments]
            instructions.append((word, *given))
    return [number[k] for _, k in outputs]
