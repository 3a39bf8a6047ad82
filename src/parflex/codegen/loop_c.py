"""C99 from the typed form of loops, so that an FMU and `simulate` take the same steps."""

from __future__ import annotations

import math
from typing import Any

from parflex.codegen.loop_compiler import Assign, Call, If, Leave, Loop, Native, Node, Return, TypedFunction, TypedLoop
from parflex.codegen.loop_types import FLAG, REAL, WHOLE, ArrayKind, Kind, RecordKind
from parflex.codegen.source_files import RESERVED

MOST_AXES = 4
OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "&&",
}  # fmt: skip
FUNCTIONS = """typedef void (*program_t)(const double *, double *, int64_t);
static inline double max_real(double a, double b) { return b > a ? b : a; }
static inline double min_real(double a, double b) { return b < a ? b : a; }
static inline int64_t max_whole(int64_t a, int64_t b) { return b > a ? b : a; }
static inline int64_t min_whole(int64_t a, int64_t b) { return b < a ? b : a; }
static inline int64_t floordiv_whole(int64_t a, int64_t b) { return a / b - (a % b && (a < 0) != (b < 0)); }
static inline int64_t mod_whole(int64_t a, int64_t b) { return a - b * floordiv_whole(a, b); }
"""


def c_type(kind: Kind) -> str:
    """The type of a value in C; an array is a view: address, shape and strides."""
    if isinstance(kind, ArrayKind):
        return f"{'d' if kind.element == REAL else 'i'}{kind.indices}"
    if isinstance(kind, RecordKind):
        return f"{kind.title} *"
    if isinstance(kind, tuple):
        return "several_" + "_".join(map(_word, kind)) if kind else "void"
    return {REAL: "double", FLAG: "int"}.get(kind, "int64_t")


def _word(kind: Kind) -> str:
    return c_type(kind).removesuffix(" *").removesuffix("_t")


def c_text(loop: TypedLoop) -> str:
    """Views, structs and functions, callees first."""
    kinds = {v.kind: None for function in loop.functions for v in function.parameters if isinstance(v.kind, RecordKind)}
    structs = [_struct(c_type(kind).removesuffix(" *"), kind.held) for kind in kinds]
    returned = {function.returned: None for function in loop.functions if isinstance(function.returned, tuple)}
    structs += [
        _struct(c_type(kind), tuple((f"v{k}", part) for k, part in enumerate(kind))) for kind in returned if kind
    ]
    return _views() + FUNCTIONS + "".join(structs) + "\n".join(map(_function, loop.functions))


def _struct(name: str, fields: tuple[tuple[str, Kind], ...]) -> str:
    lines = "".join(f"  {c_type(kind)} {field};\n" for field, kind in fields)
    return f"typedef struct {{\n{lines}}} {name};\n"


def _views() -> str:
    lines = []
    for element in (REAL, WHOLE):
        for n in range(1, MOST_AXES + 1):
            name, word = c_type(ArrayKind(element, n)), c_type(element)
            place = " + ".join(f"k{a} * v.s[{a}]" for a in range(n))
            indices = ", ".join(f"int64_t k{a}" for a in range(n))
            lines.append(f"typedef struct {{ {word} *at; int64_t n[{n}], s[{n}]; }} {name};")
            lines.append(f"static inline {word} *{name}_at({name} v, {indices}) {{ return v.at + {place}; }}")
    return "\n".join(lines) + "\n"


def _function(function: TypedFunction) -> str:
    parameters = {variable.parts[0]: variable.kind for variable in function.parameters}
    head = ", ".join(f"{c_type(kind)} {_name(name)}" for name, kind in parameters.items())
    lines = [f"static {c_type(function.returned)} {function.name}({head}) {{"]
    for name, kind in function.variables.items():
        if name not in parameters:
            lines.append(f"  {c_type(kind)} {_name(name)};")
    lines += [f"  (void){_name(name)};" for name in parameters]
    return "\n".join([*lines, *_block(function.body, function.returned), "}", ""])


def _name(name: str) -> str:
    return f"{name}_" if name in RESERVED else name


# -- statements --------------------------------------------------------------------------------------------


def _block(statements: list[Any], returned: Kind) -> list[str]:
    lines: list[str] = []
    for statement in statements:
        match statement:
            case Assign(target, value):
                lines.append(f"{_text(target)} = {_text(value)};")
            case If(test, body, orelse):
                lines += [f"if ({_text(test)}) {{", *_block(body, returned)]
                lines += [*(["} else {", *_block(orelse, returned)] if orelse else []), "}"]
            case Loop(head, test, body, counter, step):
                onwards = f"{_text(counter)} += {_text(step)}" if counter is not None else ""
                lines.append(f"for (; {'' if head else _text(test)}; {onwards}) {{")
                if head:
                    lines += [*_block(head, returned), f"  if (!{_text(test)}) break;"]
                lines += [*_block(body, returned), "}"]
            case Call():
                lines += _call(statement)
            case Leave(how):
                lines.append(f"{how};")
            case Return(values):
                texts = ", ".join(map(_text, values))
                several = isinstance(returned, tuple) and returned
                lines.append(f"return ({c_type(returned)}){{{texts}}};" if several else f"return {texts};")
    return [f"  {line}" for line in lines]


def _call(node: Call) -> list[str]:
    texts = [_text(argument) for argument in node.arguments]
    if isinstance(node.function, Native):
        return [f"{node.function.c(texts)};"]  # type: ignore[attr-defined]
    call = f"{node.function.name}({', '.join(texts)})"
    results = [_text(result) for result in node.results]
    if not results:
        return [f"{call};"]
    if not isinstance(node.function.returned, tuple):
        return [f"{results[0]} = {call};"]
    members = " ".join(f"{result} = r.v{k};" for k, result in enumerate(results))
    return [f"{{ {c_type(node.function.returned)} r = {call}; {members} }}"]


# -- expressions -------------------------------------------------------------------------------------------


def _text(node: Node) -> str:
    parts = node.parts
    match node.op:
        case "number":
            return _number(parts[0])
        case "variable":
            return _name(parts[0])
        case "field":
            return f"{_text(parts[0])}->{parts[1]}"
        case "shape":
            return f"{_text(parts[0])}.n[{parts[1]}]"
        case "address":
            return f"(int64_t)(intptr_t){_text(parts[0])}.at"
        case "element":
            indices = ", ".join(map(_text, parts[1]))
            return f"*{c_type(parts[0].kind)}_at({_text(parts[0])}, {indices})"
        case "part":
            return _part(_text(parts[0]), parts[0].kind.indices, parts[1], node.kind)
    texts = [_text(part) for part in parts]
    if node.op in OPERATORS:
        return f"({texts[0]} {OPERATORS[node.op]} {texts[1]})"
    if node.op in ("convert", "not", "neg"):
        sign = {"not": "!", "neg": "-"}.get(node.op, f"({c_type(node.kind)})")
        return f"({sign}{texts[0]})"
    suffix = {"max": "_whole", "min": "_whole", "floordiv": "_whole", "mod": "_whole"}.get(node.op, "")
    return f"{node.op}{'_real' if suffix and node.kind == REAL else suffix}({', '.join(texts)})"


def _part(array: str, axes: int, indices: tuple[Any, ...], kind: ArrayKind) -> str:
    """A part of an array: where it begins, and shape and strides of what is left."""
    begin, shape, strides = f"{array}.at", list[str](), list[str]()
    for axis in range(axes):
        index = indices[axis] if axis < len(indices) else None
        low = _text(index[0] if isinstance(index, tuple) else index) if index is not None else "0"
        begin += f" + {low} * {array}.s[{axis}]" if low != "0" else ""
        if index is None or isinstance(index, tuple):
            high = f"{array}.n[{axis}]" if index is None else _text(index[1])
            shape.append(high if low == "0" else f"{high} - {low}")
            strides.append(f"{array}.s[{axis}]")
    return f"({c_type(kind)}){{{begin}, {{{', '.join(shape)}}}, {{{', '.join(strides)}}}}}"


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "(-INFINITY)"
    text = str(int(value)) if isinstance(value, bool) else repr(value)
    return f"({text})" if text.startswith("-") else text
