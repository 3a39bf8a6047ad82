"""LLVM IR of a program: a kernel for one input, for two inputs, and for several in SIMD lanes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parflex.codegen.llvm_lines import POINTER, Lines, atan2, sin_cos
from parflex.codegen.program import Program, function_number, is_call, is_pick, workspace_places

WHOLE = 3000  # instructions that are one function: cuts cost stores and loads
SIDE_BY_SIDE = 4  # values that are copied at once: each of them alone takes four lines
CHUNK = 1000  # of one function of a longer program: LLVM's time grows faster than the length of a function
PIECE = 240  # of one function for many lanes: longer ones keep their values worse, and a step takes a third longer
KERNEL_PARAMETERS = f"({POINTER} %x, {POINTER} %y, i64 %count, {POINTER} %work)"
BINARY = {
    **{"add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract", "div": "fdiv"},
    "greater": "fcmp ogt",
}


def instruction(b: Lines, operation: str, a: list[str]) -> str:
    """One instruction of a program."""
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


def build_module(program: Program, *machines: tuple[str, int]) -> tuple[str, int]:
    """A module of machine codes with their lanes, and the doubles of workspace for a lane of the last one.

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
        layout = Layout(program, lanes, in_rows=word == "pair")
        name, size = "lanes" if word == "many" else f"{word}_in", layout.size
        for number, function in enumerate(program.functions):
            function_layout = layout.functions[number]
            parts += kernel(function, lanes, f"{name}_function{number}", declared, function_layout, inner=True)
        parts += kernel(program, lanes, name, declared, layout, fixed=word == "lanes")
        parts += [_loop(lanes)] if word == "many" else []
        parts += [with_stack_workspace(word, lanes * size)] if word != "lanes" else []
        parts += [with_stack_workspace("single", lanes * size, "pair", "0")] if word == "pair" else []
    return "\n".join([*parts, *sorted(declared)]) + "\n", size


class Layout:
    """Where a program works: values between its pieces, outputs of calls, arguments of a call, and its function.

    `in_rows`: inputs of a lane lie side by side, `%count` times their number behind those of the lane before.
    """

    def __init__(self, program: Program, lanes: int, in_rows: bool = False) -> None:
        self.in_rows, self.piece = in_rows, _piece(program, 1 if in_rows else lanes)
        self.places, start = workspace_places(program, self.piece)
        self.results: dict[int, int] = {}  # by the value of a call
        sizes = [len(function.outputs) for function in program.functions]
        for index, (word, *_) in enumerate(program.instructions if program.functions else ()):
            if is_call(word):
                self.results[len(program.inputs) + index] = start
                start += sizes[function_number(word)]
        self.arguments = start
        start += max((len(function.inputs) for function in program.functions), default=0)
        self.inner = start
        self.functions = [Layout(function, 1 if in_rows else lanes) for function in program.functions]
        self.size: int = start + max((function.size for function in self.functions), default=0)


def _piece(program: Program, lanes: int) -> int:
    """Instructions of one function of a program."""
    if lanes > 1 and not program.functions:
        return PIECE
    return WHOLE if len(program.instructions) <= WHOLE else CHUNK


def function_text(name: str, lines: list[str], linkage: str = "", quick: bool = False) -> str:
    """A function that works on arrays; a `quick` one is compiled in little time."""
    text = "\n".join(lines)
    attributes = "noinline optnone " if quick else "noinline " if linkage else ""
    return f"define {linkage}void @{name}{KERNEL_PARAMETERS} {attributes}{{\n{text}\n  ret void\n}}\n"


def kernel(
    program: Program,
    lanes: int,
    name: str,
    declared: set[str],
    layout: Layout,
    inner: bool = False,
    fixed: bool = False,
) -> list[str]:
    """The function of a program, and one for each of its pieces if it is long.

    An `inner` one is called by another: its inputs and outputs lie side by side, as those of a `fixed` one do.
    """
    chunks = max(-(-len(program.instructions) // layout.piece), 1)
    chunk_bodies = [
        _chunk(program, Lines(lanes, declared), (number, number == chunks - 1), layout, name, inner, fixed)
        for number in range(chunks)
    ]
    if chunks == 1:
        return [function_text(name, chunk_bodies[0], "internal " if inner else "")]
    calls = [f"  call void @{name}_{number}{KERNEL_PARAMETERS}" for number in range(chunks)]
    # between calls little is computed, and what is quick to compile is quick enough to run
    pieces = [
        function_text(f"{name}_{k}", lines, "internal ", bool(program.functions))
        for k, lines in enumerate(chunk_bodies)
    ]
    return [*pieces, function_text(name, calls, "internal " if inner else "")]


def _chunk(
    program: Program,
    b: Lines,
    number_and_last: tuple[int, bool],
    layout: Layout,
    name: str,
    inner: bool,
    fixed: bool,
) -> list[str]:
    """The instructions of one piece."""
    number, last = number_and_last
    base, instructions, places = len(program.inputs), program.instructions, layout.places
    values: dict[int, str] = {}
    trig: dict[int, tuple[str, str]] = {}

    plain = inner or b.lanes == 1  # `one` has a count of 1
    rows = [b.second_row(array, size) for array, size in (("%x", base), ("%y", len(program.outputs)))] * layout.in_rows

    def strided(index: int) -> str:
        return str(index * b.lanes) if plain or fixed else b.new(f"mul i64 %count, {index}")

    def held(k: int) -> str:
        """Where a value lies in the workspace."""
        return str(places[k] * b.lanes)

    def value(k: int) -> str:
        if k not in values:
            if k < base:
                values[k] = b.load_both("%x", rows[0], k) if rows else b.load("%x", strided(k))
            elif instructions[k - base][0] == "const":
                values[k] = b.constant(instructions[k - base][1])
            elif is_pick(instructions[k - base][0]):
                word, call = instructions[k - base]
                values[k] = b.load("%work", str((layout.results[call] + function_number(word)) * b.lanes))
            else:
                values[k] = b.load("%work", held(k))
                if instructions[k - base][0] == "greater":  # a flag lies there as 1.0 or 0.0
                    values[k] = b.real_op("fcmp one", values[k], b.constant(0.0))
        return values[k]

    def source(k: int) -> tuple[str, int] | None:
        """The array and the place of a value that lies in memory as it is; None: it does not."""
        if k < base:
            return ("%x", k) if plain else None
        word, *operands = instructions[k - base]
        if is_pick(word):
            return "%work", layout.results[operands[0]] + function_number(word)
        return ("%work", places[k]) if k in places and word not in ("const", "greater") else None

    def put(numbers: Sequence[int], array: str, start: int) -> None:
        """Store values one behind the other."""
        sources = [source(k) for k in numbers]
        for place, count in contiguous_runs(sources):
            to, origin = str((start + place) * b.lanes), sources[place]
            if count == 1 or origin is None:
                b.store(value(numbers[place]), array, to)
            else:
                b.copy(array, to, origin[0], str(origin[1] * b.lanes), count)

    for index in range(number * layout.piece, min((number + 1) * layout.piece, len(instructions))):
        operation, *arguments = instructions[index]
        if operation == "const" or is_pick(operation):
            continue
        k = base + index
        if is_call(operation):
            put(arguments, "%work", layout.arguments)
            starts = (layout.arguments, layout.results[k], layout.inner)
            x, y, work = (b.address("%work", str(start * b.lanes))[1] for start in starts)
            b.call(
                f"@{name}_function{function_number(operation)}",
                f"{POINTER} {x}, {POINTER} {y}, i64 1, {POINTER} {work}",
            )
            continue
        if operation in ("sin", "cos"):
            if arguments[0] not in trig:
                trig[arguments[0]] = sin_cos(b, value(arguments[0]))
            values[k] = trig[arguments[0]][operation == "cos"]
        else:
            values[k] = instruction(b, operation, [value(a) for a in arguments])
        if k in places:  # at once: values that wait for the end of the chunk crowd the registers
            stored_value = b.new(f"uitofp {b.flag} {values[k]} to {b.real}") if operation == "greater" else values[k]
            b.store(stored_value, "%work", held(k))
    if last:
        if plain:
            put([k for _, k in program.outputs], "%y", 0)
        else:
            for place, (_, k) in enumerate(program.outputs):
                if rows:
                    b.store_both(value(k), "%y", rows[1], place)
                else:
                    b.store(value(k), "%y", strided(place))
    return b.lines


def contiguous_runs(sources: Sequence[tuple[str, int] | None], each: int = 1) -> Iterator[tuple[int, int]]:
    """Beginnings and lengths of stretches that lie `each` apart in memory, and of single values between them.

    Alike elements take most of their arguments from where others have put them in one go.
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


def with_stack_workspace(name: str, work: int, called: str = "", count: str = "%count") -> str:
    """The function without the last argument: what it works in lies on its stack."""
    arguments = KERNEL_PARAMETERS.replace("%count", count)
    return f"""define void @{name}({POINTER} %x, {POINTER} %y, i64 %count) {{
  %work = alloca double, i32 {max(work, 1)}, align 64
  call void @{called or name}_in{arguments}
  ret void
}}
"""


def _loop(lanes: int) -> str:
    """many_in(x, y, count, work): runs the lane kernel over `count` inputs, a multiple of the lanes."""
    return f"""define void @many_in{KERNEL_PARAMETERS} {{
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %body, label %done
body:
  %k = phi i64 [ 0, %entry ], [ %following, %body ]
  %from = getelementptr double, {POINTER} %x, i64 %k
  %to = getelementptr double, {POINTER} %y, i64 %k
  call void @lanes({POINTER} %from, {POINTER} %to, i64 %count, {POINTER} %work)
  %following = add i64 %k, {lanes}
  %more = icmp slt i64 %following, %count
  br i1 %more, label %body, label %done
done:
  ret void
}}
"""
