"""C99: one .c and one .h, no allocation, no dependency but math.h; sizes and counts stand in the header."""

from __future__ import annotations

import re

from parflex.codegen.files import MARK
from parflex.codegen.program import Program

CHUNK = 400  # instructions of one function: longer ones take compilers minutes


def identifier(name: str) -> str:
    """A C name: letters, digits and underscores."""
    word = re.sub(r"\W", "_", name)
    return word if not word[:1].isdigit() else f"m_{word}"


def emit_c(program: Program, float32: bool = False) -> dict[str, str]:
    """File name -> text."""
    name = identifier(program.name)
    return {f"{name}.h": _header(program, name, float32), f"{name}.c": _source(program, name, float32)}


def _header(program: Program, name: str, float32: bool) -> str:
    real = "float" if float32 else "double"
    upper = name.upper()
    counts = program.counts()
    shown = ", ".join(f"{key} {value}" for key, value in counts.items())
    setup = program.split()[0].outputs if program.parameters else ()
    lines = [
        f"/* {program.name}: {MARK}; do not edit.",
        f" * operators of one call: {shown}",
        " *",
        " * x, in order:",
        *_listed(program.variables),
        *([" * p, in order:", *_listed(program.parameters)] if program.parameters else []),
        " * y, in order:",
        *_listed(tuple(label for label, _ in program.outputs)),
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
        f"#define {upper}_SETUP {len(setup)}",
        f"#define {upper}_OPERATORS {counts['total']}",
        "",
    ]
    if program.parameters:
        lines += [
            f"/* run once, and again when a parameter changes: {upper}_PARAMETERS numbers p in, "
            f"{upper}_SETUP constants s out */",
            f"void {name}_setup(const {real} *p, {real} *s);",
            "",
            f"void {name}(const {real} *x, const {real} *s, {real} *y);",
        ]
    else:
        lines.append(f"void {name}(const {real} *x, {real} *y);")
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {upper}_H */", ""]
    return "\n".join(lines)


def _listed(names: tuple[str, ...]) -> list[str]:
    return [f" *   {k}: {name}" for k, name in enumerate(names)]


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
                return f"{arguments[0]} {sign} {arguments[1]}"
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


def _statements(program: Program, writer: _Writer, indices: range, real: str) -> list[str]:
    lines = []
    for index in indices:
        operation, *arguments = program.instructions[index]
        if operation == "const":
            continue
        value = writer.base + index
        kind = "int" if operation == "greater" else real
        cast = f"({real})(" if operation == "sign" else ""
        text = writer.expression(operation, [writer.where[k] for k in arguments])
        lines.append(f"  const {kind} v{value} = {cast}{text}{')' if cast else ''};")
        writer.where[value] = f"v{value}"
    return lines


def _functions(program: Program, name: str, real: str, float32: bool) -> list[str]:
    """The function of a program; long ones are cut into pieces that hand on values in a workspace on the stack."""
    writer = _Writer(program, float32)
    end = len(program.instructions)
    extra = f", const {real} *s" if program.parameters else ""
    unused = _unused(program)
    if end <= 2 * CHUNK:
        body = _statements(program, writer, range(end), real)
        results = [f"  y[{k}] = {writer.where[value]};" for k, (_, value) in enumerate(program.outputs)]
        return [f"void {name}(const {real} *x{extra}, {real} *y) {{", *unused, *body, *results, "}", ""]
    return _chunked(program, writer, name, real, extra, unused)


def _unused(program: Program) -> list[str]:
    """Silence for arguments that the program does not need."""
    used = {k for operation, *arguments in program.instructions if operation != "const" for k in arguments}
    used |= {k for _, k in program.outputs}
    first = len(program.variables)
    lines = [] if any(k < first for k in used) else ["  (void)x;"]
    if program.parameters and not any(first <= k < len(program.inputs) for k in used):
        lines.append("  (void)s;")
    return lines if program.outputs else [*lines, "  (void)y;"]


def _crossing(program: Program, base: int) -> dict[int, int]:
    """Values that are used in another piece than their own, and their place in the workspace."""
    handed: dict[int, int] = {}
    last = (len(program.instructions) - 1) // CHUNK
    users = [
        (index // CHUNK, arguments) for index, (op, *arguments) in enumerate(program.instructions) if op != "const"
    ]
    for chunk, arguments in [*users, (last, [k for _, k in program.outputs])]:
        for k in arguments:
            if k >= base and program.instructions[k - base][0] != "const" and (k - base) // CHUNK != chunk:
                handed.setdefault(k, len(handed))
    return handed


def _chunked(program: Program, writer: _Writer, name: str, real: str, extra: str, unused: list[str]) -> list[str]:
    end = len(program.instructions)
    handed = _crossing(program, writer.base)
    starts = list(range(0, end, CHUNK))
    lines: list[str] = []
    calls = []
    for number, start in enumerate(starts):
        last = number == len(starts) - 1
        body = _statements(program, writer, range(start, min(start + CHUNK, end)), real)
        for value, place in handed.items():
            if (value - writer.base) // CHUNK == number:
                body.append(f"  w[{place}] = {writer.where[value]};")
                writer.where[value] = f"w[{place}]"
        if last:
            body += [f"  y[{k}] = {writer.where[value]};" for k, (_, value) in enumerate(program.outputs)]
        silence = ["  (void)x;", *(["  (void)s;"] if extra else []), "  (void)w;"]
        output = f", {real} *y" if last else ""
        lines += [
            f"static void {name}_{number}(const {real} *x{extra}, {real} *w{output}) {{",
            *silence,
            *body,
            "}",
            "",
        ]
        calls.append(f"  {name}_{number}(x{', s' if extra else ''}, w{', y' if last else ''});")
    size = max(len(handed), 1)
    head, work = f"void {name}(const {real} *x{extra}, {real} *y) {{", f"  {real} w[{size}];"
    return [*lines, head, *unused, work, *calls, "}", ""]
