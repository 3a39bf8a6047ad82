"""LLVM IR of a program: a kernel for one input, for two inputs, and for several in SIMD lanes.

A program is written by rows of a `SimdPlan`. Rows have one value each, or identical calls and what stands between them
for up to eight legs. Long programs are cut into pieces, which hand on values in a workspace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from struct import pack

from parflex.codegen.llvm_lines import Lines, atan2, sin_cos
from parflex.codegen.program import Program, function_number, is_call, is_pick
from parflex.codegen.simd_plan import (
    HOLE,
    LOAD,
    WIDTH,
    Lanes,
    Layout,
    SimdRow,
    contiguous,
    lane_values,
    output_rows,
    simd_pays,
)

SIDE_BY_SIDE = 4  # values that are copied at once: each of them alone takes four lines
KERNEL_PARAMETERS = "(ptr %x, ptr %y, i64 %count, ptr %work)"
ACCESS = {"pair": "rows", "many": "columns"}  # how inputs and outputs lie, if not one behind the other
BINARY = {
    **{"add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract", "div": "fdiv"},
    "greater": "fcmp ogt",
}


def build_module(program: Program, *machines: tuple[str, int]) -> tuple[str, int]:
    """Return a module of machine codes with their lanes, and the doubles of workspace for a lane of the last one.

    `one(x, y, 1)` takes one input. `many(x, y, count)` takes lanes after lanes; the values of one input lie `count`
    apart. `lanes_in` takes just as many inputs as there are lanes: a step of a robot takes 5 to 10 % less time than by
    `many_in`, as the compiler knows all places. `pair(x, y, 1)` takes two inputs, one behind the other, in about the
    time of one, `single(x, y, 1)` fills both lanes with the same one. Functions in `_in` take a place to work in as
    their last argument, which the others put on the stack.
    """
    declared: set[str] = set()
    parts: list[str] = []
    size = 0
    for word, lanes in machines:
        layout = Layout(program, lanes, ACCESS.get(word, ""), legs=word == "one" and simd_pays(program))
        size = layout.size
        parts += _kernel(layout, "lanes" if word == "many" else f"{word}_in", declared)
        parts += [_loop(lanes)] if word == "many" else []
        parts += [_with_stack_workspace(word, lanes * size)] if word != "lanes" else []
        parts += [_with_stack_workspace("single", lanes * size, "pair", "0")] if word == "pair" else []
    return "\n".join([*parts, *sorted(declared)]) + "\n", size


def _kernel(layout: Layout, name: str, declared: set[str], linkage: str = "") -> list[str]:
    """Return the function of a program, those that it calls, and one for each of its pieces if it is long."""
    functions = enumerate(layout.functions)
    parts = [text for k, inner in functions for text in _kernel(inner, f"{name}_function{k}", declared, "internal ")]
    bodies = [_Piece(layout, number, name, declared).written() for number in range(len(layout.pieces))]
    if len(bodies) == 1:
        return [*parts, _function_text(name, bodies[0], linkage)]
    # between calls little is computed, and what is quick to compile is quick enough to run
    quick = bool(layout.functions)
    parts += [_function_text(f"{name}_{k}", lines, "internal ", quick) for k, lines in enumerate(bodies)]
    calls = [f"  call void @{name}_{number}{KERNEL_PARAMETERS}" for number in range(len(bodies))]
    return [*parts, _function_text(name, calls, linkage)]


class _Piece:
    """Write one piece of a program."""

    def __init__(self, layout: Layout, number: int, name: str, declared: set[str]) -> None:
        self.layout, self.plan, self.number, self.name = layout, layout.plan, number, name
        self.program, self.base, self.lanes = layout.program, layout.base, layout.lanes
        self.one, self.all = Lines(layout.lanes, declared), Lines(WIDTH, declared)
        self.all.lines = self.one.lines
        self.rows: dict[int, str] = {}  # values of rows of this piece
        self.singles: dict[int, str] = {}
        self.several: dict[Lanes, str] = {}
        self.trigonometry: dict[int, tuple[str, str]] = {}
        sizes = (("%x", self.base), ("%y", len(self.program.outputs)))
        self.second = {array: self.one.second_row(array, n) for array, n in sizes if layout.access == "rows"}

    def written(self) -> list[str]:
        """Return the instructions."""
        layout = self.layout
        for number in layout.pieces[self.number]:
            row = self.plan.rows[number]
            if is_call(row.operation):
                self._call(number, row)
                continue
            if row.operation == LOAD:
                self.all.store(self._gathered(row.lanes, [None] * WIDTH), "%work", str(layout.places[number]))
                continue
            b = self.all if row.wide else self.one
            self.rows[number] = value = self._value(b, row)
            if number in layout.places:  # at once: values that wait for the end of the piece crowd the registers
                if row.operation == "greater":  # a flag lies there as 1.0 or 0.0
                    value = b.new(f"uitofp {b.flag} {value} to {b.real}")
                b.store(value, "%work", self._offset(layout.places[number]))
        if self.number == len(layout.pieces) - 1:
            self._outputs()
        return self.one.lines

    def _offset(self, place: int) -> str:
        return str(place * self.lanes)

    def _value(self, b: Lines, row: SimdRow) -> str:
        if row.operation not in ("sin", "cos"):
            values = [self.wide(operand) if row.wide else self.single(operand[0]) for operand in row.operands]
            return instruction(b, row.operation, values)
        angle = row.operands[0][0]
        if angle not in self.trigonometry:
            self.trigonometry[angle] = sin_cos(b, self.single(angle))
        return self.trigonometry[angle][row.operation == "cos"]

    def _call(self, number: int, row: SimdRow) -> None:
        layout, function = self.layout, function_number(row.operation)
        self._put(row.operands, "%work", layout.arguments, function in layout.wide)
        starts = (layout.arguments, layout.places[number], layout.inner)
        x, y, work = (self.one.address("%work", self._offset(start)) for start in starts)
        arguments = f"ptr {x}, ptr {y}, i64 1, ptr {work}"
        self.one.call(f"@{self.name}_function{function}", arguments)

    def _put(self, operands: Sequence[Lanes], array: str, start: int, wide: bool) -> None:
        """Store operands one behind the other, contiguous ones in one go."""
        each, b = (WIDTH, self.all) if wide else (1, self.one)
        sources = [self._source(operand, wide) for operand in operands]
        for place, count in contiguous_runs(sources, each):
            origin, to = sources[place], self._offset(start + place * each)
            if count > 1 and origin is not None:
                b.copy(array, to, origin[0], self._offset(origin[1]), count)
            else:
                b.store(self.wide(operands[place]) if wide else self.single(operands[place][0]), array, to)

    def _source(self, lanes: Lanes, wide: bool) -> tuple[str, int] | None:
        """Return the array and the place of operands that lie in memory as they are; None if they do not."""
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
        """Return where one value lies."""
        if k < self.base:
            return None if self.layout.access else ("%x", k)
        return self._row_location(k)

    def _row_location(self, k: int) -> tuple[str, int] | None:
        """Return where one value lies as a lane of its row."""
        if k < self.base and k not in self.plan.place:
            return None
        word, *arguments = self.program.instructions[k - self.base] if k >= self.base else (LOAD,)
        if word in ("const", "greater"):
            return None
        picked = is_pick(word)
        row, lane = self.plan.place[arguments[0] if picked else k]
        if row not in self.layout.places or (not picked and row in self.rows):  # a value of this piece is at hand
            return None
        each = self.layout.each(self.plan.rows[row]) if picked else 1
        return "%work", self.layout.places[row] + lane + (function_number(word) * each if picked else 0)

    def single(self, k: int) -> str:
        """Return one value."""
        if k not in self.singles:
            if k >= self.base and self.program.instructions[k - self.base][0] == "const":
                self.singles[k] = self.one.constant(self.program.instructions[k - self.base][1])
            else:
                self.singles[k] = self._made(k) or self._loaded(k)
        return self.singles[k]

    def _made(self, k: int) -> str:
        """Return a value of this piece, empty if it is of another."""
        row, lane = self.plan.place.get(k, (-1, 0))
        if row not in self.rows:
            return ""
        if not self.plan.rows[row].wide:
            return self.rows[row]
        return self.one.new(f"extractelement {self.all.real} {self.rows[row]}, i32 {lane}")

    def _loaded(self, k: int) -> str:
        location = self._at(k)
        if location is not None:
            return self.one.load(location[0], self._offset(location[1]))
        if self.second:
            return self.one.load_both("%x", self.second["%x"], k) if k < self.base else self._flag(k)
        return self.one.load("%x", self._column(k)) if k < self.base else self._flag(k)

    def _flag(self, k: int) -> str:
        value = self.one.load("%work", self._offset(self.layout.places[self.plan.place[k][0]]))
        return self.one.real_op("fcmp one", value, self.one.constant(0.0))

    def _column(self, index: int) -> str:
        return self.one.new(f"mul i64 %count, {index}")

    def wide(self, lanes: Lanes) -> str:
        """Return values of all lanes; spare ones have that of the first, or what lies behind the last."""
        if lanes not in self.several:
            self.several[lanes] = self._wide(lanes)
        return self.several[lanes]

    def _wide(self, lanes: Lanes) -> str:
        source = self._source(lanes, True)
        if source is not None:
            return self.all.load(source[0], str(source[1]))
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
        """Return where eight numbers begin in memory that have this value in this lane; None if nowhere."""
        if k == HOLE:
            return None
        if 0 <= k - lane <= self.base - WIDTH and k not in self.plan.place:
            return "%x", k - lane
        location = self._row_location(k)
        return None if location is None else (location[0], location[1] - lane)

    def _gathered(self, lanes: Lanes, starts: Sequence[tuple[str, int] | None]) -> str:
        """Return values of several rows, or of none; `starts` are places in memory of these rows."""
        b, values = self.all, lane_values(lanes)
        known = Counter(start for start in starts if start is not None).most_common(1)
        most, count = known[0] if known else (None, 0)
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
        if k < self.base or self.program.instructions[k - self.base][0] != "const":
            return ""
        return f"0x{pack('>d', self.program.instructions[k - self.base][1]).hex().upper()}"

    def _outputs(self) -> None:
        outputs, start = self.program.outputs, 0
        if self.layout.access:
            for place, (_, k) in enumerate(outputs):
                if self.second:
                    self.one.store_both(self.single(k), "%y", self.second["%y"], place)
                else:
                    self.one.store(self.single(k), "%y", self._column(place))
            return
        for lanes in output_rows(self.program):
            if len(lane_values(lanes)) > 1 and self.plan.has_row(lanes):
                self.all.store(self.wide(lanes), "%y", str(start))
            else:
                self._put([(k,) for _, k in outputs[start : start + WIDTH]], "%y", start, False)
            start += WIDTH
        self._put([(k,) for _, k in outputs[start:]], "%y", start, False)


def contiguous_runs(sources: Sequence[tuple[str, int] | None], each: int = 1) -> Iterator[tuple[int, int]]:
    """Yield beginnings and lengths of stretches that lie `each` apart in memory, and of single values between them.

    Identical elements take most of their arguments from where others have put them in one go.
    """
    start = 0
    while start < len(sources):
        stop, first = start + 1, sources[start]
        while (
            first is not None and stop < len(sources) and sources[stop] == (first[0], first[1] + (stop - start) * each)
        ):
            stop += 1
        if stop - start >= SIDE_BY_SIDE:
            yield start, stop - start
        else:
            yield from ((k, 1) for k in range(start, stop))
        start = stop


def instruction(b: Lines, operation: str, a: list[str]) -> str:
    """Write one instruction of a program."""
    if operation in BINARY:
        return b.real_op(BINARY[operation], a[0], a[1])
    match operation:
        case "neg":
            return b.fneg(a[0])
        case "sqrt" | "abs":
            return b.intrinsic("fabs" if operation == "abs" else "sqrt", a[0])
        case "select":
            return b.select(a[0], a[1], a[2])
        case "sign":
            zero, one = b.constant(0.0), b.constant(1.0)
            below = b.select(b.real_op("fcmp olt", a[0], zero), b.constant(-1.0), zero)
            return b.select(b.real_op("fcmp ogt", a[0], zero), one, below)
        case "atan2":
            return atan2(b, a[0], a[1])
    raise ValueError(operation)


def _function_text(name: str, lines: list[str], linkage: str, quick: bool = False) -> str:
    """Return a function that works on arrays; a `quick` one is compiled in little time."""
    text = "\n".join(lines)
    attributes = "noinline optnone " if quick else "noinline " if linkage else ""
    return f"define {linkage}void @{name}{KERNEL_PARAMETERS} {attributes}{{\n{text}\n  ret void\n}}\n"


def _with_stack_workspace(name: str, work: int, called: str = "", count: str = "%count") -> str:
    """Return the function without the last argument, with its workspace on the stack."""
    arguments = KERNEL_PARAMETERS.replace("%count", count)
    return f"""define void @{name}(ptr %x, ptr %y, i64 %count) {{
  %work = alloca double, i32 {max(work, 1)}, align 64
  call void @{called or name}_in{arguments}
  ret void
}}
"""


def _loop(lanes: int) -> str:
    """Return many_in(x, y, count, work), which runs the lane kernel over `count` inputs, a multiple of the lanes."""
    return f"""define void @many_in{KERNEL_PARAMETERS} {{
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %body, label %done
body:
  %k = phi i64 [ 0, %entry ], [ %following, %body ]
  %from = getelementptr double, ptr %x, i64 %k
  %to = getelementptr double, ptr %y, i64 %k
  call void @lanes(ptr %from, ptr %to, i64 %count, ptr %work)
  %following = add i64 %k, {lanes}
  %more = icmp slt i64 %following, %count
  br i1 %more, label %body, label %done
done:
  ret void
}}
"""
