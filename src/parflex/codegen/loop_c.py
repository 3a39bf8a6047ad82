"""Translate the compiled time loop from Python to C99, so that an FMU and `simulate` take the same steps.

The loops are plain: numbers, allocated arrays, records of both, loops and branches. Types follow from those of the
arguments. Each function is written once for each set of argument types.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
from typing import Any

from parflex.codegen.c_types import REAL, TRUTH, WHOLE, Fields, Number, Several, View, helpers, joined
from parflex.codegen.source_files import KEYWORDS

COMPARISON_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
RESERVED = frozenset(KEYWORDS.split())
SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Translator:
    """Functions that were written, and those that they call."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, tuple[Any, ...]], Function] = {}
        self.structs: dict[str, Any] = {}
        self.written: list[Function] = []

    def function(self, source: Any, kinds: tuple[Any, ...]) -> Function:
        """The function for arguments of these types."""
        plain = getattr(source, "function", source)
        if (plain, kinds) not in self.known:
            number = sum(function.plain.__name__ == plain.__name__ for function in self.written)
            made = Function(self, plain, kinds, f"{plain.__name__}{number or ''}")
            self.known[plain, kinds] = made
            made.translate()
            self.written.append(made)
        return self.known[plain, kinds]

    def struct(self, kind: Any) -> Any:
        """Note a struct that is used."""
        self.structs.setdefault(kind.c, kind)
        return kind

    def text(self) -> str:
        """All of it, callees first."""
        structs = "".join(kind.declared() for kind in self.structs.values())
        return helpers() + structs + "\n".join(function.text for function in self.written)


class Function:
    """One function, for one set of types of its arguments."""

    def __init__(self, owner: Translator, plain: Any, kinds: tuple[Any, ...], name: str) -> None:
        self.owner, self.plain, self.kinds, self.name = owner, plain, kinds, name
        tree = ast.parse(textwrap.dedent(inspect.getsource(plain)))
        self.tree = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
        for part in ast.walk(self.tree):  # names that C keeps for itself
            for key in ("id", "arg"):
                if (
                    getattr(part, key, None) in RESERVED
                    and key in part._fields
                    and not hasattr(builtins, getattr(part, key))
                ):
                    setattr(part, key, f"{getattr(part, key)}_")
        self.arguments = [argument.arg for argument in self.tree.args.args]
        self.types: dict[str, Any] = dict(zip(self.arguments, kinds, strict=True))
        self.returns: Any = None
        self.lines: list[str] = []
        self.temporaries = 0
        self.text = ""
        for kind in kinds:
            if isinstance(kind, Fields):
                owner.struct(kind)

    def translate(self) -> None:
        """Write the body until all types are known: names may become real further below."""
        before: Any = None
        while before != (self.types, self.returns):
            before = dict(self.types), self.returns
            self.lines, self.temporaries = [], 0
            for statement in self.tree.body:
                self._statement(statement, 1)
        kind = self.returns
        if isinstance(kind, Several):
            self.owner.struct(kind)
        parameters = ", ".join(f"{self.types[name].c} {name}" for name in self.arguments)
        local_names = [name for name in self.types if name not in self.arguments]
        declared = "".join(f"  {self.types[name].c} {name};\n" for name in local_names)
        silence = "".join(f"  (void){name};\n" for name in (*self.arguments, *(n for n in local_names if n == "_")))
        head = f"static {kind.c if kind else 'void'} {self.name}({parameters}) {{\n"
        self.text = head + declared.replace(" _;", " _ = 0;") + silence + "\n".join(self.lines) + "\n}\n"

    # -- statements ----------------------------------------------------------------------------------------

    def _put(self, depth: int, line: str) -> None:
        self.lines.append("  " * depth + line)

    def _temporary(self, kind: Any) -> str:
        self.temporaries += 1
        name = f"t{self.temporaries}_"
        self.types[name] = kind
        return name

    def _body(self, statements: list[ast.stmt], depth: int) -> None:
        for statement in statements:
            self._statement(statement, depth)

    def _statement(self, node: ast.stmt, depth: int) -> None:
        method = getattr(self, f"_on_{type(node).__name__.lower()}", None)
        if method is None or (isinstance(node, ast.For | ast.While) and node.orelse):
            raise TypeError(f"{self.plain.__name__}: no C for '{ast.unparse(node)}'")
        method(node, depth)

    def _on_expr(self, node: ast.Expr, depth: int) -> None:
        if not isinstance(node.value, ast.Constant):  # else a docstring
            self._put(depth, f"{self._value(node.value)[0]};")

    def _on_return(self, node: ast.Return, depth: int) -> None:
        if node.value is None:
            self._put(depth, "return;")
            return
        if isinstance(node.value, ast.Tuple):
            parts = [self._value(part) for part in node.value.elts]
            known = self.returns.kinds if self.returns else [None] * len(parts)
            self.returns = Several(
                tuple(joined(known_kind, kind) for known_kind, (_, kind) in zip(known, parts, strict=True))
            )
            name = self._temporary(self.returns)
            for k, (text, _) in enumerate(parts):
                self._put(depth, f"{name}.v{k} = {text};")
            self._put(depth, f"return {name};")
            return
        text, kind = self._value(node.value)
        self.returns = joined(self.returns, kind)
        self._put(depth, f"return {text};")

    def _on_assign(self, node: ast.Assign, depth: int) -> None:
        target, *others = node.targets
        if others:  # one value for several names, as Python puts it: from the left
            text, kind = self._value(node.value)
            name = self._temporary(kind)
            self._put(depth, f"{name} = {text};")
            for destination in node.targets:
                self._set(destination, name, kind, depth)
            return
        if not isinstance(target, ast.Tuple):
            self._set(target, *self._value(node.value), depth)
            return
        if isinstance(node.value, ast.IfExp) and isinstance(node.value.body, ast.Tuple):
            self._put(depth, f"if ({self._truth(node.value.test)}) {{")
            self._several(target, node.value.body, depth + 1)
            self._put(depth, "} else {")
            self._several(target, node.value.orelse, depth + 1)
            self._put(depth, "}")
            return
        self._several(target, node.value, depth)

    def _several(self, target: ast.Tuple, value: ast.expr, depth: int) -> None:
        """All values are known before the first is put."""
        if isinstance(value, ast.Tuple):
            parts = [self._value(part) for part in value.elts]
            names = [self._temporary(kind) for _, kind in parts]
            for name, (text, _) in zip(names, parts, strict=True):
                self._put(depth, f"{name} = {text};")
            for element, name, (_, kind) in zip(target.elts, names, parts, strict=True):
                self._set(element, name, kind, depth)
            return
        text, kind = self._value(value)
        name = self._temporary(kind)
        self._put(depth, f"{name} = {text};")
        for k, element in enumerate(target.elts):
            self._set(element, f"{name}.v{k}", kind.kinds[k], depth)

    def _set(self, target: ast.expr, text: str, kind: Any, depth: int) -> None:
        if isinstance(target, ast.Name):
            self.types[target.id] = joined(self.types.get(target.id), kind)
            self._put(depth, f"{target.id} = {text};")
        else:
            self._put(depth, f"{self._value(target)[0]} = {text};")

    def _on_augassign(self, node: ast.AugAssign, depth: int) -> None:
        text, kind = self._value(node.value)
        if isinstance(node.target, ast.Name):
            self.types[node.target.id] = joined(self.types.get(node.target.id), kind)
        self._put(depth, f"{self._value(node.target)[0]} {SIGNS[type(node.op)]}= {text};")

    def _on_if(self, node: ast.If, depth: int) -> None:
        self._put(depth, f"if ({self._truth(node.test)}) {{")
        self._body(node.body, depth + 1)
        if node.orelse:
            self._put(depth, "} else {")
            self._body(node.orelse, depth + 1)
        self._put(depth, "}")

    def _on_while(self, node: ast.While, depth: int) -> None:
        self._put(depth, f"while ({self._truth(node.test)}) {{")
        self._body(node.body, depth + 1)
        self._put(depth, "}")

    def _on_for(self, node: ast.For, depth: int) -> None:
        if isinstance(node.iter, ast.Tuple):  # written out
            for entry in node.iter.elts:
                self._on_assign(ast.Assign([node.target], entry), depth)
                self._put(depth, "{")
                self._body(node.body, depth + 1)
                self._put(depth, "}")
            return
        assert isinstance(node.target, ast.Name)
        counter, end = self._temporary(WHOLE), self._temporary(WHOLE)
        if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range":
            if _strides(node.iter):
                raise TypeError(f"{self.plain.__name__}: no C for '{ast.unparse(node.iter)}'")
            limits = [self._value(argument)[0] for argument in node.iter.args]
            first, last = ("0", limits[0]) if len(limits) == 1 else limits[:2]
            down = len(limits) == 3
            self._put(depth, f"{end} = {last};")
            compare, step = (">", "--") if down else ("<", "++")
            self._put(depth, f"for ({counter} = {first}; {counter} {compare} {end}; {step}{counter}) {{")
            self._set(node.target, counter, WHOLE, depth + 1)
        else:
            text, kind = self._value(node.iter)
            self._put(depth, f"{end} = {text}.n[0];")
            self._put(depth, f"for ({counter} = 0; {counter} < {end}; ++{counter}) {{")
            self._set(node.target, f"*{kind.c}_at({text}, {counter})", kind.entry, depth + 1)
        self._body(node.body, depth + 1)
        self._put(depth, "}")

    def _on_break(self, node: ast.Break, depth: int) -> None:
        self._put(depth, "break;")

    def _on_continue(self, node: ast.Continue, depth: int) -> None:
        self._put(depth, "continue;")

    # -- values --------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> tuple[str, Any]:
        """Text and type."""
        method = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if method is None or getattr(node, "keywords", None) or _strides(node):
            raise TypeError(f"{self.plain.__name__}: no C for '{ast.unparse(node)}'")
        result: tuple[str, Any] = method(node)
        return result

    def _truth(self, node: ast.expr) -> str:
        return self._value(node)[0]

    def _of_constant(self, node: ast.Constant) -> tuple[str, Any]:
        return constant(node.value)

    def _of_name(self, node: ast.Name) -> tuple[str, Any]:
        if node.id in self.types:
            return node.id, self.types[node.id]
        return constant(self.plain.__globals__[node.id])

    def _of_attribute(self, node: ast.Attribute) -> tuple[str, Any]:
        if isinstance(node.value, ast.Name) and node.value.id not in self.types:  # of math, or a named number
            return constant(getattr(self.plain.__globals__[node.value.id], node.attr))
        if node.attr == "data" and isinstance(node.value, ast.Attribute) and node.value.attr == "ctypes":
            return f"{self._value(node.value.value)[0]}.at", None
        text, kind = self._value(node.value)
        return f"{text}->{node.attr}", dict(kind.held)[node.attr]

    def _of_subscript(self, node: ast.Subscript) -> tuple[str, Any]:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            text, _ = self._value(node.value.value)
            return f"{text}.n[{self._value(node.slice)[0]}]", WHOLE
        text, kind = self._value(node.value)
        places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(places) == kind.axes and not any(isinstance(place, ast.Slice) for place in places):
            indices = ", ".join(self._index(place, f"{text}.n[{a}]") for a, place in enumerate(places))
            return f"*{kind.c}_at({text}, {indices})", kind.entry
        axis = 0
        for place in places:
            if isinstance(place, ast.Slice):
                first = "0" if place.lower is None else self._value(place.lower)[0]
                last = f"{text}.n[{axis}]" if place.upper is None else self._value(place.upper)[0]
                text = f"{kind.c}_cut{axis}({text}, {first}, {last})"
                axis += 1
            else:
                assert axis == 0, "rows of a cut array"
                text, kind = f"{kind.c}_row({text}, {self._value(place)[0]})", View(kind.letter, kind.axes - 1)
        return text, kind

    def _index(self, node: ast.expr, size: str) -> str:
        text, _ = self._value(node)
        return f"{size} {text}" if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else text

    def _of_unaryop(self, node: ast.UnaryOp) -> tuple[str, Any]:
        text, kind = self._value(node.operand)
        if isinstance(node.op, ast.Not):
            return f"!({text})", TRUTH
        return (f"-{text}" if text.isdigit() else f"-({text})"), kind

    def _of_binop(self, node: ast.BinOp) -> tuple[str, Any]:
        (left, kind), (other, second) = self._value(node.left), self._value(node.right)
        both = joined(kind, second)
        match node.op:
            case ast.Div():
                return f"((double)({left}) / ({other}))", REAL
            case ast.FloorDiv():
                return f"floor_part({left}, {other})", WHOLE
            case ast.Mod():
                return f"(({left}) % ({other}))", WHOLE
            case ast.Pow():
                if both == WHOLE:
                    return f"whole_power({left}, {other})", WHOLE
                return (f"(({left}) * ({left}))" if other == "2" else f"pow({left}, {other})"), REAL
        return f"(({left}) {SIGNS[type(node.op)]} ({other}))", joined(both, WHOLE)

    def _of_boolop(self, node: ast.BoolOp) -> tuple[str, Any]:
        sign = " && " if isinstance(node.op, ast.And) else " || "
        return "(" + sign.join(f"({self._truth(value)})" for value in node.values) + ")", TRUTH

    def _of_compare(self, node: ast.Compare) -> tuple[str, Any]:
        values = [self._value(value)[0] for value in (node.left, *node.comparators)]
        parts = [
            f"(({values[k]}) {COMPARISON_SIGNS[type(operator)]} ({values[k + 1]}))"
            for k, operator in enumerate(node.ops)
        ]
        return "(" + " && ".join(parts) + ")", TRUTH

    def _of_ifexp(self, node: ast.IfExp) -> tuple[str, Any]:
        (body, kind), (other, second) = self._value(node.body), self._value(node.orelse)
        return f"(({self._truth(node.test)}) ? ({body}) : ({other}))", joined(kind, second)

    def _of_call(self, node: ast.Call) -> tuple[str, Any]:
        arguments = [self._value(argument) for argument in node.args]
        texts = [text for text, _ in arguments]
        if isinstance(node.func, ast.Attribute):  # of math
            name = node.func.attr
            return f"{name}({', '.join(texts)})", TRUTH if name == "isfinite" else REAL
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name in ("min", "max"):
            return self._extreme(name, arguments)
        if name == "call_model":
            return f"((program_t)(intptr_t)({texts[0]}))({texts[1]}, {texts[2]}, 1)", None
        simple = {
            "len": (f"{texts[0]}.n[0]", WHOLE),
            "int": (f"(int64_t)({texts[0]})", WHOLE),
            "abs": (f"fabs({texts[0]})", REAL),
        }
        if name in simple:
            return simple[name]
        called = self.owner.function(self.plain.__globals__[name], tuple(kind for _, kind in arguments))
        return f"{called.name}({', '.join(texts)})", called.returns

    def _extreme(self, name: str, arguments: list[tuple[str, Any]]) -> tuple[str, Any]:
        kind = arguments[0][1]
        for _, other in arguments[1:]:
            kind = joined(kind, other)
        word = f"{name}_of" if kind == REAL else f"{name}_whole"
        text = arguments[0][0]
        for other_text, _ in arguments[1:]:
            text = f"{word}({text}, {other_text})"
        return text, kind


def _strides(node: ast.expr) -> bool:
    """Whether a range or a cut goes in steps other than one forwards, or a range one backwards."""
    if isinstance(node, ast.Subscript):
        return any(isinstance(part, ast.Slice) and part.step is not None for part in ast.walk(node.slice))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "range"
        and len(node.args) == 3
    ):
        return ast.unparse(node.args[2]) != "-1"
    return False


def constant(value: Any) -> tuple[str, Any]:
    """A number of the module as C."""
    if isinstance(value, bool):
        return str(int(value)), TRUTH
    if isinstance(value, int):
        return str(value), WHOLE
    if isinstance(value, float):
        return ("INFINITY" if math.isinf(value) else repr(value)), REAL
    raise TypeError(f"no C for the constant {value!r}")


__all__ = ["Function", "Number", "Translator"]
