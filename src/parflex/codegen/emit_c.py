"""C99 source with a header and an example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from parflex.codegen.program import Program
from parflex.codegen.signals_table import Signal
from parflex.codegen.simd_plan import Layout
from parflex.codegen.source_files import MARK, array_entries, heading, identifier, index_names
from parflex.robot.states import OPEN, SINGLE

CHUNK = 400  # instructions of one function: longer ones take compilers minutes


def emit_c(
    program: Program, float32: bool = False, signals: Sequence[Signal] = (), about: dict[str, Any] | None = None
) -> dict[str, str]:
    """File name -> text."""
    program = program.inlined()
    if float32:
        program = _with_single_tolerance(program)
    name = identifier(program.name)
    header = _header(program, name, float32, signals, about or {})
    return {f"{name}.h": header, f"{name}.c": _source(program, name, float32)}


def _with_single_tolerance(program: Program) -> Program:
    """Return the program with the closure tolerance of single precision in its status."""
    if program.status is None:
        return program
    base, instructions = len(program.inputs), list(program.instructions)
    size = ("abs", dict(program.outputs).get("residual[0]"))
    sizes = [base + k for k, instruction in enumerate(program.instructions) if instruction == size]
    for k, (operation, *arguments) in enumerate(program.instructions):
        if operation == "greater" and arguments[1] in sizes:
            instructions[k] = ("greater", base + len(instructions), arguments[1])
            instructions.append(("const", SINGLE * instructions[arguments[0] - base][1]))
    return replace(program, instructions=tuple(instructions))


def _header(program: Program, name: str, float32: bool, signals: Sequence[Signal], about: dict[str, Any]) -> str:
    real = "float" if float32 else "double"
    upper = name.upper()
    counts = program.counts()
    first, *more = heading(program, about)
    setup, main = program.split() if program.parameters else (None, program)
    work = _work(_layout(main))
    lines = [
        f"/* {first}",
        *(f" * {line}" for line in more),
        " *",
        " * x, in order (index: place in its group, name in the robot file, unit; SI and radians):",
        *_listed(program, signals, "input"),
        *([" * p, in order:", *_listed(program, signals, "parameter")] if program.parameters else []),
        " * y, in order:",
        *_listed(program, signals, "output"),
        *_return_lines(program, OPEN * SINGLE if float32 else OPEN),
        " */",
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"#define {upper}_INPUTS {len(program.variables)}",
        f"#define {upper}_OUTPUTS {len(program.outputs)}",
        f"#define {upper}_PARAMETERS {len(program.parameters)}",
        f"#define {upper}_SETUP {len(setup.outputs) if setup else 0}",
        f"#define {upper}_WORK {work}",
        f"#define {upper}_OPERATORS {counts['total']}",
        "",
        *_indices(upper, signals),
    ]
    constants = f"const {real} *s, " if program.parameters else ""
    if program.parameters:
        lines += [
            f"/* run once, and again when a parameter changes: {upper}_PARAMETERS numbers p in, "
            f"{upper}_SETUP constants s out */",
            f"void {name}_setup(const {real} *p, {real} *s);",
            "",
        ]
    kind = _kind(program)
    lines.append(f"{kind} {name}(const {real} *x, {constants}{real} *y);")
    if work:
        lines += [
            "",
            f"/* the same with {upper}_WORK numbers w to work in, which {name} itself puts on the stack */",
            f"{kind} {name}_in(const {real} *x, {constants}{real} *w, {real} *y);",
        ]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {upper}_H */", ""]
    return "\n".join(lines)


def _kind(program: Program) -> str:
    """Return the type of the function: programs with Newton steps or effort limits return a status."""
    return "void" if program.status is None else "int"


def _return_lines(program: Program, tolerance: float) -> list[str]:
    """Return the lines on the status."""
    if program.status is None:
        return []
    limited = any(name.startswith(("lowest[", "highest[")) for name in program.parameters)
    return [
        " *",
        f" * Returns the status, which is also y[{program.status}]: 0 if the Newton steps converged, with a residual",
        f" * below {tolerance:g} of the characteristic length, and y is finite; else 1, and y must not be used.",
        *[" * 2 if an effort exceeds its limits."] * limited,
    ]


def _listed(program: Program, signals: Sequence[Signal], direction: str) -> list[str]:
    return [f" *   {line}" for line in array_entries(program, signals, direction)]


def _indices(upper: str, signals: Sequence[Signal]) -> list[str]:
    """Indices by name, so that no number goes to another motor than is meant; of derivatives there are too many."""
    groups = {signal["group"] for signal in signals if not signal["group"].startswith("by_")}
    lines = [f"#define {word} {index}" for word, index in index_names(upper, signals, groups)]
    return ["/* indices in x (IN), p (P) and y (OUT) by name */", *lines, ""] if lines else []


class _Writer:
    """Writes values: inputs and setup by array, constants as numbers, values of other chunks through the workspace."""

    def __init__(self, program: Program, float32: bool) -> None:
        self.program, self.float32 = program, float32
        self.suffix = "f" if float32 else ""
        self.base = len(program.inputs)
        first = len(program.variables)
        self.where: dict[int, str] = {k: f"x[{k}]" if k < first else f"s[{k - first}]" for k in range(self.base)}
        for index, (operation, *arguments) in enumerate(program.instructions):
            if operation == "const":
                self.where[self.base + index] = self.number(arguments[0])

    def number(self, value: float) -> str:
        text = repr(float(value))
        return text + ("f" if self.float32 else "")

    def expression(self, operation: str, arguments: list[str]) -> str:
        f = self.suffix
        match operation:
            case "add" | "sub" | "mul" | "div":
                sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[operation]
                behind = arguments[1]
                if operation in ("add", "sub") and (" + " in behind or " - " in behind):
                    behind = f"({behind})"  # terms are added in the order in which the program has them
                return f"{arguments[0]} {sign} {behind}"
            case "neg":
                return f"-{arguments[0]}"
            case "abs":
                return f"fabs{f}({arguments[0]})"
            case "sign":
                return f"({arguments[0]} > 0) - ({arguments[0]} < 0)"
            case "greater":
                return f"{arguments[0]} > {arguments[1]}"
            case "select":
                return f"{arguments[0]} ? {arguments[1]} : {arguments[2]}"
            case "atan2":
                return f"atan2{f}({arguments[0]}, {arguments[1]})"
            case _:
                return f"{operation}{f}({arguments[0]})"


def _source(program: Program, name: str, float32: bool) -> str:
    real = "float" if float32 else "double"
    lines = [f"/* {program.name}: {MARK}; do not edit. */", f'#include "{name}.h"', "", "#include <math.h>", ""]
    main = program
    if program.parameters:
        setup, main = program.split()
        lines += _functions(setup, f"{name}_setup", real, float32)
    lines += _functions(main, name, real, float32)
    return "\n".join(lines)


def _layout(program: Program) -> Layout:
    """Pieces of a program, and places of the values that they hand on."""
    return Layout(program, 1, limits=(2 * CHUNK, CHUNK))


def _work(layout: Layout) -> int:
    """Numbers of workspace that a program needs; none if it is one function."""
    return max(layout.size, 1) if len(layout.pieces) > 1 else 0


def _statements(layout: Layout, piece: int, writer: _Writer, real: str) -> list[str]:
    """A line for each value with a name; terms of sums stand in the line of the sum, unless another piece has it."""
    lines = []
    rows, base = layout.plan.rows, layout.base
    within = layout.program.within() - {rows[row].lanes[0] for row in layout.places}
    for row in layout.pieces[piece]:
        value = rows[row].lanes[0]
        operation, *arguments = layout.program.instructions[value - base]
        kind = "int" if operation == "greater" else real
        cast = f"({real})(" if operation == "sign" else ""
        text = writer.expression(operation, [writer.where[k] for k in arguments])
        if value in within:
            writer.where[value] = text
            continue
        lines.append(f"  const {kind} v{value} = {cast}{text}{')' if cast else ''};")
        writer.where[value] = f"v{value}"
    for row in layout.pieces[piece]:
        if row in layout.places:
            value, place = rows[row].lanes[0], f"w[{layout.places[row]}]"
            lines.append(f"  {place} = {writer.where[value]};")
            writer.where[value] = place
    if piece == len(layout.pieces) - 1:
        lines += [f"  y[{k}] = {writer.where[value]};" for k, (_, value) in enumerate(layout.program.outputs)]
    return lines


def _functions(program: Program, name: str, real: str, float32: bool) -> list[str]:
    """The function of a program; long ones are cut into pieces that hand on values in a workspace."""
    writer, layout = _Writer(program, float32), _layout(program)
    extra = f", const {real} *s" if program.parameters else ""
    if len(layout.pieces) == 1:
        body = _statements(layout, 0, writer, real)
        head = f"{_kind(program)} {name}(const {real} *x{extra}, {real} *y) {{"
        return [head, *_unused(program), *body, *_return_statement(program), "}", ""]
    return _chunked_functions(layout, writer, name, real, extra)


def _return_statement(program: Program) -> list[str]:
    return [] if program.status is None else [f"  return (int)y[{program.status}];"]


def _unused(program: Program) -> list[str]:
    """Silence for arguments that the program does not need."""
    used = {k for operation, *arguments in program.instructions if operation != "const" for k in arguments}
    used |= {k for _, k in program.outputs}
    first = len(program.variables)
    lines = [] if any(k < first for k in used) else ["  (void)x;"]
    if program.parameters and not any(first <= k < len(program.inputs) for k in used):
        lines.append("  (void)s;")
    return lines if program.outputs else [*lines, "  (void)y;"]


def _chunked_functions(layout: Layout, writer: _Writer, name: str, real: str, extra: str) -> list[str]:
    """A function for each piece, one that calls them in turn, and one that has the workspace on its stack.

    So the stack holds the values of one piece at a time, and the workspace may lie elsewhere. Pieces are called from a
    table: compilers put functions that are called by name and once back together.
    """
    starts, program = range(len(layout.pieces)), layout.program
    arguments = f"(const {real} *x{extra}, {real} *w, {real} *y)"
    call_arguments = f"(x{', s' if extra else ''}, w, y)"
    silence = ["  (void)x;", *(["  (void)s;"] if extra else []), "  (void)w;", "  (void)y;"]
    lines: list[str] = []
    for number in starts:
        body = _statements(layout, number, writer, real)
        lines += [f"static void {name}_{number}{arguments} {{", *silence, *body, "}", ""]
    table = ", ".join(f"{name}_{number}" for number in starts)
    kind = _kind(program)
    return [
        *lines,
        f"static void (*const {name}_pieces[]){arguments} = {{{table}}};",
        "",
        f"{'static ' if name.endswith('_setup') else ''}{kind} {name}_in{arguments} {{",
        f"  for (int k = 0; k < {len(starts)}; ++k) {name}_pieces[k]{call_arguments};",
        *_return_statement(program),
        "}",
        "",
        f"{kind} {name}(const {real} *x{extra}, {real} *y) {{",
        f"  {real} w[{_work(layout)}];",
        f"  {'' if kind == 'void' else 'return '}{name}_in{call_arguments};",
        "}",
        "",
    ]


def emit_c_example(program: Program, x: Sequence[float], p: Sequence[float], float32: bool) -> dict[str, str]:
    """File name -> text."""
    name, upper, real = identifier(program.name), identifier(program.name).upper(), "float" if float32 else "double"
    lines = [
        f"/* {MARK}: calls {name} once, with the robot at home; prints one output a line */",
        "#include <stdio.h>",
        "",
        f'#include "{name}.h"',
        "",
        f"static const {real} x[{upper}_INPUTS] = {{{_numbers(x, float32)}}};",
    ]
    if program.parameters:
        lines.append(f"static const {real} p[{upper}_PARAMETERS] = {{{_numbers(p, float32)}}};")
    lines += ["", "int main(void) {", f"  {real} y[{upper}_OUTPUTS];"]
    if program.parameters:
        lines += [f"  {real} s[{upper}_SETUP + 1];", f"  {name}_setup(p, s);"]
    call = f"{name}(x, s, y);" if program.parameters else f"{name}(x, y);"
    lines.append(f"  {call}" if program.status is None else f"  const int status = {call}")
    lines += [
        f'  for (int k = 0; k < {upper}_OUTPUTS; ++k) printf("%.17g\\n", (double)y[k]);',
        f"  return {'0' if program.status is None else 'status'};",
        "}",
        "",
    ]
    makefile = [
        f"# {MARK}: make -f {name}.mk",
        "CC ?= cc",
        "CFLAGS ?= -std=c99 -O3 -Wall -Wextra -Werror -pedantic",
        "",
        f"{name}_example: {name}_example.c {name}.c {name}.h",
        f"\t$(CC) $(CFLAGS) -o $@ {name}_example.c {name}.c -lm",
        "",
    ]
    return {f"{name}_example.c": "\n".join(lines), f"{name}.mk": "\n".join(makefile)}


def _numbers(values: Sequence[float], float32: bool) -> str:
    return ", ".join(repr(float(value)) + ("f" if float32 else "") for value in values)
