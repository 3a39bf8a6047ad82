"""LLVM IR of a long program whose identical calls run in SIMD lanes: one call for eight sets of arguments."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from struct import pack

from parflex.codegen import emit_llvm
from parflex.codegen.llvm_lines import POINTER, Lines, sin_cos
from parflex.codegen.program import Program, function_number, is_call, is_pick
from parflex.codegen.simd_plan import (
    HOLE,
    LOAD,
    WIDTH,
    Lanes,
    SimdPlan,
    SimdRow,
    contiguous,
    lane_values,
    output_rows,
    simd_plan,
)

PIECE = 500  # operands of rows in one function: LLVM's time grows faster than the length of a function
NAME = "one_in"


def build_simd(program: Program) -> tuple[str, int]:
    """A module with `one(x, y, 1)` and `one_in`, which takes a place to work in, and the doubles of that place."""
    plan = simd_plan(program)
    wide = {function_number(row.operation) for row in plan.rows if row.wide and is_call(row.operation)}
    memory = _Memory(program, plan, wide)
    declared: set[str] = set()
    parts: list[str] = []
    for number, function in enumerate(program.functions):
        lanes = WIDTH if number in wide else 1
        parts += emit_llvm.kernel(
            function, lanes, f"{NAME}_function{number}", declared, memory.functions[number], inner=True
        )
    calls = []
    for number, rows in enumerate(memory.pieces):
        lines = _Piece(program, plan, memory, number, declared).lines(rows)
        parts.append(emit_llvm.function_text(f"{NAME}_{number}", lines, "internal ", quick=True))
        calls.append(f"  call void @{NAME}_{number}{emit_llvm.KERNEL_PARAMETERS}")
    parts.append(emit_llvm.function_text(NAME, calls))
    parts.append(emit_llvm.with_stack_workspace("one", memory.size))
    return "\n".join([*parts, *sorted(declared)]) + "\n", memory.size


class _Memory:
    """Pieces of a program, and where values lie that one hands to another: rows of lanes side by side.

    A place is free again in the pieces after the last one that reads it.
    """

    def __init__(self, program: Program, plan: SimdPlan, wide: set[int]) -> None:
        self.base, self.plan, self.wide = len(program.inputs), plan, wide
        self.pieces, self.piece_of = _pieces(plan)
        self.reads = self._last_reads(program)
        sizes = [len(function.outputs) for function in program.functions]
        self.places: dict[int, int] = {}  # by row
        free: dict[int, list[int]] = defaultdict(list)
        ending: dict[int, list[tuple[int, int]]] = defaultdict(list)
        start = 0
        for number, rows in enumerate(self.pieces):
            for size, place in ending[number - 1]:
                free[size].append(place)
            for row in rows:
                if row not in self.reads:
                    continue
                simd_row = plan.rows[row]
                each = (
                    WIDTH
                    if simd_row.wide or (is_call(simd_row.operation) and function_number(simd_row.operation) in wide)
                    else 1
                )
                size = each * (sizes[function_number(simd_row.operation)] if is_call(simd_row.operation) else 1)
                size = -(-size // WIDTH) * WIDTH if size > 1 else 1
                if not free[size]:
                    if size == 1:  # a line of the cache for several
                        free[1] += range(start, start + WIDTH)
                        start += WIDTH
                    else:
                        free[size].append(start)
                        start += size
                self.places[row] = free[size].pop()
                ending[self.reads[row]].append((size, self.places[row]))
        self.arguments = start
        start += max((len(function.inputs) for function in program.functions), default=0) * WIDTH
        self.inner = start
        self.functions = [
            emit_llvm.Layout(function, WIDTH if number in wide else 1)
            for number, function in enumerate(program.functions)
        ]
        lanes = [WIDTH if number in wide else 1 for number in range(len(program.functions))]
        within = (layout.size * count for layout, count in zip(self.functions, lanes, strict=True))
        self.size = start + max(within, default=0)

    def _last_reads(self, program: Program) -> dict[int, int]:
        """The last piece that reads a row: of calls any, of others one that is not their own."""
        base, plan = self.base, self.plan
        last_reads: dict[int, int] = {}

        def read(k: int, piece: int) -> None:
            word, *arguments = program.instructions[k - base] if k >= base else (LOAD,)
            if word == "const" or (k < base and k not in plan.place):
                return
            row, _ = plan.place[arguments[0] if is_pick(word) else k]
            if is_pick(word) or k < base or self.piece_of[row] != piece:
                last_reads[row] = max(last_reads.get(row, 0), piece)

        for piece, rows in enumerate(self.pieces):
            for k in {k for number in rows for operand in plan.rows[number].operands for k in operand} - {HOLE}:
                read(k, piece)
        for k in {k for _, k in program.outputs}:
            read(k, len(self.pieces) - 1)
        for number, row in enumerate(plan.rows):
            if is_call(row.operation):  # written even where nothing is read
                last_reads.setdefault(number, self.piece_of[number])
        return last_reads


def _pieces(plan: SimdPlan) -> tuple[list[list[int]], list[int]]:
    pieces: list[list[int]] = [[]]
    piece_of, length = [], 0
    for number, row in enumerate(plan.rows):
        if length > PIECE:
            pieces.append([])
            length = 0
        length += 1 + len(row.operands)
        pieces[-1].append(number)
        piece_of.append(len(pieces) - 1)
    return [*pieces, []], piece_of  # the last writes the outputs


class _Piece:
    """Lines of one piece."""

    def __init__(self, program: Program, plan: SimdPlan, memory: _Memory, number: int, declared: set[str]) -> None:
        self.program, self.plan, self.memory, self.number = program, plan, memory, number
        self.base, self.instructions = memory.base, program.instructions
        self.one, self.all = Lines(1, declared), Lines(WIDTH, declared)
        self.all.lines = self.one.lines
        self.rows: dict[int, str] = {}  # values of rows of this piece
        self.singles: dict[int, str] = {}
        self.several: dict[Lanes, str] = {}
        self.trigonometry: dict[int, tuple[str, str]] = {}

    def lines(self, rows: Sequence[int]) -> list[str]:
        """Its instructions."""
        for number in rows:
            row = self.plan.rows[number]
            if is_call(row.operation):
                self._call(number, row)
                continue
            if row.operation == LOAD:
                self.all.store(self._gathered(row.lanes, [None] * WIDTH), "%work", str(self.memory.places[number]))
                continue
            b = self.all if row.wide else self.one
            values = [self.wide(operand) if row.wide else self.single(operand[0]) for operand in row.operands]
            self.rows[number] = self._value(b, row, values)
            if number in self.memory.places:
                value = self.rows[number]
                if row.operation == "greater":
                    value = b.new(f"uitofp {b.flag} {value} to {b.real}")
                b.store(value, "%work", str(self.memory.places[number]))
        if self.number == len(self.memory.pieces) - 1:
            self._outputs()
        return self.one.lines

    def _value(self, b: Lines, row: SimdRow, values: list[str]) -> str:
        if row.operation not in ("sin", "cos"):
            return emit_llvm.instruction(b, row.operation, values)
        angle = row.operands[0][0]
        if angle not in self.trigonometry:
            self.trigonometry[angle] = sin_cos(b, values[0])
        return self.trigonometry[angle][row.operation == "cos"]

    def _call(self, number: int, row: SimdRow) -> None:
        function = function_number(row.operation)
        wide = function in self.memory.wide
        b, memory = self.all if wide else self.one, self.memory
        self._put(row.operands, "%work", memory.arguments, wide)
        starts = (memory.arguments, memory.places[number], memory.inner)
        x, y, work = (self.one.address("%work", str(start))[1] for start in starts)
        pointer = POINTER
        b.call(f"@{NAME}_function{function}", f"{pointer} {x}, {pointer} {y}, i64 1, {pointer} {work}")

    def _put(self, operands: Sequence[Lanes], array: str, start: int, wide: bool) -> None:
        """Store operands one behind the other, those that lie so in memory in one go."""
        each = WIDTH if wide else 1
        b = self.all if wide else self.one
        sources = [self._source(operand, wide) for operand in operands]
        for place, count in emit_llvm.contiguous_runs(sources, each):
            origin, to = sources[place], str(start + place * each)
            if count > 1 and origin is not None:
                b.copy(array, to, origin[0], str(origin[1]), count)
            else:
                b.store(self.wide(operands[place]) if wide else self.single(operands[place][0]), array, to)

    def _source(self, lanes: Lanes, wide: bool) -> tuple[str, int] | None:
        """Where operands lie in memory as they are; None: they do not."""
        if not wide:
            return self._at(lanes[0])
        if len(lanes) == 1:  # a single call of a function that is written for several
            return None
        lane, k = next((lane, k) for lane, k in enumerate(lanes) if k != HOLE)
        if k < self.base and contiguous(lanes, self.base):
            return "%x", k - lane
        location = self._row_location(k) if self.plan.producer(lanes) is not None else None
        return None if location is None else (location[0], location[1] - lane)

    def _at(self, k: int) -> tuple[str, int] | None:
        """Where one value lies."""
        return ("%x", k) if k < self.base else self._row_location(k)

    def _row_location(self, k: int) -> tuple[str, int] | None:
        """Where one value lies as a lane of its row."""
        if k < self.base and k not in self.plan.place:
            return None
        word, *arguments = self.instructions[k - self.base] if k >= self.base else (LOAD,)
        if word in ("const", "greater"):
            return None
        picked = is_pick(word)
        row, lane = self.plan.place[arguments[0] if picked else k]
        if row not in self.memory.places or (not picked and row in self.rows):  # a value of this piece is at hand
            return None
        each = WIDTH if picked and function_number(self.plan.rows[row].operation) in self.memory.wide else 1
        return "%work", self.memory.places[row] + lane + (function_number(word) * each if picked else 0)

    def single(self, k: int) -> str:
        """One value."""
        if k in self.singles:
            return self.singles[k]
        b = self.one
        if k >= self.base and self.instructions[k - self.base][0] == "const":
            value = b.constant(self.instructions[k - self.base][1])
        else:
            value = self._made(k) or self._loaded(k)
        self.singles[k] = value
        return value

    def _made(self, k: int) -> str:
        """A value of this piece, empty where it is of another."""
        row, lane = self.plan.place.get(k, (-1, 0))
        if row not in self.rows:
            return ""
        if not self.plan.rows[row].wide:
            return self.rows[row]
        return self.one.new(f"extractelement {self.all.real} {self.rows[row]}, i32 {lane}")

    def _loaded(self, k: int) -> str:
        location = self._at(k)
        if location is not None:
            return self.one.load(location[0], str(location[1]))
        row, _ = self.plan.place[k]  # a flag lies there as 1.0 or 0.0
        value = self.one.load("%work", str(self.memory.places[row]))
        return self.one.real_op("fcmp one", value, self.one.constant(0.0))

    def wide(self, lanes: Lanes) -> str:
        """Values of all lanes; spare ones have that of the first, or what lies behind the last."""
        if lanes not in self.several:
            self.several[lanes] = self._wide(lanes)
        return self.several[lanes]

    def _wide(self, lanes: Lanes) -> str:
        b = self.all
        source = self._source(lanes, True)
        if source is not None:
            return b.load(source[0], str(source[1]))
        producer_row = self.plan.producer(lanes) if len(lanes) > 1 else None
        if producer_row is not None:
            return self.rows[producer_row]
        values = lane_values(lanes)
        constants = {k: self._constant(k) for k in values}
        if all(constants.values()):
            texts = (constants[values[0] if k == HOLE else k] for k in (*lanes, *[HOLE] * (WIDTH - len(lanes))))
            return f"<{', '.join(f'double {text}' for text in texts)}>"
        return self._gathered(lanes, [self._start(k, lane) for lane, k in enumerate(lanes)])

    def _start(self, k: int, lane: int) -> tuple[str, int] | None:
        """Where eight numbers begin in memory that have this value in this lane; None: it lies in no such place."""
        if k == HOLE:
            return None
        if 0 <= k - lane <= self.base - WIDTH and k not in self.plan.place:
            return "%x", k - lane
        location = self._row_location(k)
        return None if location is None else (location[0], location[1] - lane)

    def _gathered(self, lanes: Lanes, starts: Sequence[tuple[str, int] | None]) -> str:
        """Values of several rows, or of none; `starts` are those of the rows in memory that they are lanes of."""
        b, values = self.all, lane_values(lanes)
        most, count = (
            Counter(start for start in starts if start is not None).most_common(1)[0] if any(starts) else (None, 0)
        )
        if most is not None and 2 * count > len(values) and most[1] >= 0 and len(lanes) > 1:
            value, placed = b.load(most[0], str(most[1])), [start == most for start in starts]
        else:
            value = b.new(f"insertelement {b.real} undef, double {self.single(values[0])}, i32 0")
            value = b.new(f"shufflevector {b.real} {value}, {b.real} undef, <{WIDTH} x i32> zeroinitializer")
            placed = [k == values[0] for k in lanes]
        for lane, k in enumerate(lanes):
            if k != HOLE and not placed[lane]:
                value = b.new(f"insertelement {b.real} {value}, double {self.single(k)}, i32 {lane}")
        return value

    def _constant(self, k: int) -> str:
        if k < self.base or self.instructions[k - self.base][0] != "const":
            return ""
        return f"0x{pack('>d', self.instructions[k - self.base][1]).hex().upper()}"

    def _outputs(self) -> None:
        start = 0
        for lanes in output_rows(self.program):
            if len(lane_values(lanes)) > 1 and self.plan.producer(lanes) is not None:
                self.all.store(self.wide(lanes), "%y", str(start))
            else:
                self._scalar_outputs(start, start + WIDTH)
            start += WIDTH
        self._scalar_outputs(start, len(self.program.outputs))

    def _scalar_outputs(self, start: int, stop: int) -> None:
        self._put([(k,) for _, k in self.program.outputs[start:stop]], "%y", start, False)
