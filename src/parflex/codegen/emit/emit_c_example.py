"""A small C main that calls a generated function at home, and a makefile that builds it."""

from __future__ import annotations

from collections.abc import Sequence

from parflex.codegen.emit.files import MARK
from parflex.codegen.emit.heading import identifier
from parflex.codegen.program import Program


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
