"""NumPy, JAX, CasADi and SymPy: a program in Python, as source for a file or called at once on arrays."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from parflex.codegen.program import OPERATORS, Program
from parflex.codegen.signals_table import Signal
from parflex.codegen.source_files import heading, identifier
from parflex.errors import InputError, did_you_mean

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "greater": ">"}
FUNCTIONS = ("sqrt", "sin", "cos", "abs", "sign", "select", "atan2")
DIALECTS: dict[str, tuple[str, str, tuple[str, ...]]] = {  # module, its short name, and its names of the functions
    "numpy": ("numpy", "np", ("sqrt", "sin", "cos", "abs", "sign", "where", "arctan2")),
    "jax": ("jax.numpy", "jnp", ("sqrt", "sin", "cos", "abs", "sign", "where", "arctan2")),
    "casadi": ("casadi", "ca", ("sqrt", "sin", "cos", "fabs", "sign", "if_else", "atan2")),
    "sympy": ("sympy", "sp", ("sqrt", "sin", "cos", "Abs", "sign", "Piecewise", "atan2")),
}


def library_of(target: str) -> Any:
    """The library of a target; it is imported only when needed, and may be missing."""
    if target not in DIALECTS:
        hint = did_you_mean(target, DIALECTS)
        raise InputError(f"there is no library '{target}'", key="target", value=target, hint=hint)
    try:
        return importlib.import_module(DIALECTS[target][0])
    except ImportError:
        hint = f"install it, e.g. by 'pip install {target}'"
        raise InputError(f"{target} is not installed", key="target", value=target, hint=hint) from None


def functions_of(target: str) -> dict[str, Any]:
    """Functions of a target's library for `run`."""
    library = library_of(target)
    names = DIALECTS[target][2]
    functions = OPERATORS | {function: getattr(library, name) for function, name in zip(FUNCTIONS, names, strict=True)}
    if target == "sympy":
        functions["select"] = lambda condition, a, b: library.Piecewise((a, condition), (b, True))
    return functions


def emit_python(
    program: Program, target: str, signals: Sequence[Signal] = (), about: dict[str, Any] | None = None
) -> dict[str, str]:
    """A module with one function of a flat vector of inputs that returns the list of outputs."""
    program = program.inlined()
    module, short, function_names = DIALECTS[target]
    names = {function: f"{short}.{name}" for function, name in zip(FUNCTIONS, function_names, strict=True)}
    name = identifier(program.name)
    file = f"m_{name.removeprefix('m_')}_{target}"
    first, *more = heading(program, about or {})
    lines = [
        f'"""{first}',
        "",
        *more,
        '"""',
        "",
        f"import {module} as {short}",
        "",
        f"INPUTS = {list(program.inputs)!r}",
        f"OUTPUTS = {[label for label, _ in program.outputs]!r}",
        *_table(signals),
        "",
        "",
    ]
    if target == "sympy":
        names["select"] = "_select"
        lines += ["def _select(condition, a, b):", "    return sp.Piecewise((a, condition), (b, True))", "", ""]
    lines += [f"def {name}(x):", '    """Outputs, in the order of OUTPUTS, from inputs in the order of INPUTS."""']
    where = {k: f"x[{k}]" for k in range(len(program.inputs))}
    base = len(program.inputs)
    for index, (operation, *arguments) in enumerate(program.instructions):
        value = base + index
        if operation == "const":
            where[value] = repr(float(arguments[0]))
            continue
        a = [where[k] for k in arguments]
        if operation in INFIX:
            text = f"{a[0]} {INFIX[operation]} {a[1]}"
        elif operation == "neg":
            text = f"-{a[0]}"
        else:
            text = f"{names[operation]}({', '.join(a)})"
        lines.append(f"    v{value} = {text}")
        where[value] = f"v{value}"
    lines += [f"    return [{', '.join(where[k] for _, k in program.outputs)}]", "", ""]
    lines += [f"{file} = {name}  # by the name of the file", ""]
    return {f"{file}.py": "\n".join(lines)}


def _table(signals: Sequence[Signal]) -> list[str]:
    """What each entry of inputs and outputs is; parameters stand behind the inputs."""
    keys = ("index", "direction", "group", "name", "unit")
    return ["SIGNALS = [  # " + ", ".join(keys), *(f"    {tuple(s[key] for key in keys)!r}," for s in signals), "]"]
