"""The typed form of loops written in a subset of Python; `loop_llvm` and `loop_c` print it.

The subset is what numerical loops need: numbers, arrays by indices and slices, fields of records, `for` over ranges,
arrays and tuples, `while`, `if`, and calls of other such functions. Variables have one kind each; a variable that is an
integer at first and real later is real from the start. Iterations of `for k in simd_range(count)` are independent
and run in SIMD lanes.

In the typed form expressions are pure: calls, conditional expressions and `and`, `or` become statements that assign
temporary variables, and tuples become their members.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from parflex.codegen.loop_types import FLAG, REAL, WHOLE, ZERO_KIND, ArrayKind, Kind, RecordKind, UnsupportedError

WIDTH = {FLAG: 0, WHOLE: 1, REAL: 2}
ARITHMETIC = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
}  # fmt: skip
COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
REAL_FUNCTIONS = ("sqrt", "floor", "ceil")  # of `math`; whole numbers stay reals


@dataclass(frozen=True)
class Node:
    """A typed expression.

    A `number` has its value, a `variable` its name, a `field` a record and a name, a `shape` an array and an axis, an
    `element` or a `part` an array and its indices, which are nodes, or pairs of nodes for slices. Other operations have
    nodes.
    """

    op: str
    kind: Kind
    parts: tuple[Any, ...]


@dataclass
class Assign:
    """Assign a value to a variable or an element of an array."""

    target: Node
    value: Node


@dataclass
class If:
    """Do one of two lists of statements."""

    test: Node
    body: list[Any]
    orelse: list[Any]


@dataclass
class Loop:
    """Repeat the body while the test, found behind the statements of the head, holds; a counter is counted on."""

    head: list[Any]
    test: Node
    body: list[Any]
    counter: Node | None = None
    step: Any = None
    mark: str = ""  # "simd_range" or "unrolled_range"


@dataclass
class Call:
    """Call a typed function, or what a printer writes itself, and assign the results."""

    function: Any
    arguments: list[Node]
    results: list[Node]


@dataclass
class Leave:
    """Leave the turn of a loop (`continue`) or the loop (`break`)."""

    how: str


@dataclass
class Return:
    """Return values."""

    values: list[Node]


@dataclass
class TypedFunction:
    """A function for arguments of given kinds."""

    name: str
    parameters: list[Node]
    returned: Kind = None  # () without a value, a tuple of kinds for several
    variables: dict[str, Kind] = field(default_factory=dict)
    body: list[Any] = field(default_factory=list)
    inside: bool = False  # whether it is called in a loop over a `simd_range`, of which it becomes a part


@dataclass(frozen=True)
class Static:
    """An object of Python without a value in compiled code: a module, a function."""

    held: Any


class Native:
    """A function that printers write themselves: `llvm(lines, arguments)`, `c(arguments)`; it returns nothing."""

    def __call__(self, *arguments: Any) -> None:
        """Refuse a call by Python."""
        raise TypeError("only compiled loops call this")


def simd_range(count: int) -> range:
    """A range whose turns may be done side by side: none reads what another one writes."""
    return range(count)


def unrolled_range(count: int) -> range:
    """A range of short turns, several of which are written out one behind the other."""
    return range(count)


RANGES = (range, simd_range, unrolled_range)


class TypedLoop:
    """The functions of a loop, callees first: one for each Python function and the kinds of its arguments."""

    def __init__(self) -> None:
        self.functions: list[TypedFunction] = []
        self._known: dict[tuple[Any, tuple[Kind, ...], bool], TypedFunction] = {}

    def function(self, source: Any, kinds: tuple[Kind, ...], inside: bool = False) -> TypedFunction:
        """The function for arguments of these kinds, typed when it is first called."""
        plain = getattr(source, "function", source)
        if (plain, kinds, inside) not in self._known:
            typed = _FunctionTyping(self, plain, kinds, inside).typed()
            same = sum(other.name.partition("__")[0] == typed.name for other in self.functions)
            typed.name += f"__{same}" if same else ""
            self._known[plain, kinds, inside] = typed
            self.functions.append(typed)
        return self._known[plain, kinds, inside]


@cache
def _definitions(file: str) -> dict[int, ast.FunctionDef]:
    """Functions of a file by the lines where they begin."""
    nodes = ast.walk(ast.parse(Path(file).read_bytes()))
    definitions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {min([node.lineno, *(part.lineno for part in node.decorator_list)]): node for node in definitions}


def _definition(function: Callable[..., Any]) -> ast.FunctionDef:
    code = function.__code__
    definition = _definitions(code.co_filename).get(code.co_firstlineno)
    if definition is None or definition.name != code.co_name:
        raise UnsupportedError("a loop is a function with a name", ast.Name(function.__name__))
    return definition


def _constants(tree: ast.FunctionDef) -> set[str]:
    """Names that are assigned once: where the value is a number, they are this number."""
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    single = [node.targets[0] for node in ast.walk(tree) if isinstance(node, ast.Assign) and len(node.targets) == 1]
    return {node.id for node in single if isinstance(node, ast.Name) and names.count(node.id) == 1}


class _FunctionTyping:
    """Types a function; statements go to `statements`, the block that is being written."""

    def __init__(self, loop: TypedLoop, function: Any, kinds: tuple[Kind, ...], inside: bool) -> None:
        self.loop, self.function, self.inside = loop, function, inside
        self.tree = _definition(function)
        self.names = [argument.arg for argument in self.tree.args.args]
        if len(self.names) != len(kinds):
            why = f"{function.__name__} takes {len(self.names)} arguments, not {len(kinds)}"
            raise UnsupportedError(why, self.tree)
        self.variables: dict[str, Kind] = dict(zip(self.names, kinds, strict=True))
        self.tuples: dict[str, int] = {}  # variables that hold so many values
        self.single = _constants(self.tree) - set(self.names)
        self.constants: dict[str, Node] = {}
        self.returned: Kind = None

    def typed(self) -> TypedFunction:
        """Type the body, and again while a name or what is returned became real further below."""
        parameters = [self._variable(name) for name in self.names]
        self.widened = True
        while self.widened:
            self.widened = False
            self.temporaries: dict[str, Kind] = {}
            self.statements: list[Any] = []
            self.loops: list[bool] = []  # whether one may leave them
            body = self._block(self.tree.body)
        if not self.ended:
            if self.returned not in (None, ()):
                raise UnsupportedError("not every way through it returns a value", self.tree)
            self.returned = ()
        variables = self.variables | self.temporaries
        name = self.function.__name__
        return TypedFunction(name, parameters, self.returned, variables, body, self.inside)

    # -- statements --------------------------------------------------------------------------------------

    def _block(self, nodes: Sequence[ast.stmt]) -> list[Any]:
        outer, self.statements = self.statements, []
        self.ended = False
        for node in nodes:
            if self.ended:  # nothing follows a statement that leaves
                break
            write = getattr(self, f"_write_{type(node).__name__}", None)
            if write is None or (getattr(node, "orelse", None) and not isinstance(node, ast.If)):
                raise UnsupportedError("loops know no such statement", node)
            write(node)
        block, self.statements = self.statements, outer
        return block

    def _write_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # else a docstring
            self._value(node.value)
            if isinstance(node.value, ast.Call):
                while self.statements[-1].results:
                    del self.temporaries[self.statements[-1].results.pop().parts[0]]

    def _write_Pass(self, node: ast.Pass) -> None:
        pass

    def _write_Assign(self, node: ast.Assign) -> None:
        value = self._value(node.value)
        if len(node.targets) > 1 or isinstance(node.targets[0], ast.Tuple):  # all are known before the first is put
            value = self._stored(value)
        for target in node.targets:
            self._assign(target, value)

    def _write_AugAssign(self, node: ast.AugAssign) -> None:
        place = self._value(node.target)
        before, value = self._followed([place], node.value)
        value = self._operate(node.op, before, value, node)
        if isinstance(node.target, ast.Name):
            self._assign_name(node.target.id, value, node)
        else:
            self.statements.append(Assign(place, self._convert(value, place.kind, node)))

    def _write_If(self, node: ast.If) -> None:
        test = self._truth(node.test)
        if test.op == "number":  # one of the two is never done
            self.statements += self._block(node.body if test.parts[0] else node.orelse)
            return
        body, ended = self._block(node.body), self.ended
        statement = If(test, body, self._block(node.orelse))
        self.ended = self.ended and ended
        self.statements.append(statement)

    def _write_While(self, node: ast.While) -> None:
        head, test = self._apart(node.test, self._truth)
        self.statements.append(Loop(head, test, self._turn(node.body)))
        self.ended = False

    def _turn(self, nodes: Sequence[ast.stmt], may_leave: bool = True) -> list[Any]:
        self.loops.append(may_leave)
        body = self._block(nodes)
        self.loops.pop()
        return body

    def _write_For(self, node: ast.For) -> None:
        called = self._value(node.iter.func) if isinstance(node.iter, ast.Call) else None
        if isinstance(called, Static) and called.held in RANGES:
            bounds = [self._whole(argument) for argument in node.iter.args]  # type: ignore[attr-defined]
            self._over_range(node, bounds, called.held.__name__)
            return
        values = self._stored(self._value(node.iter))
        if isinstance(values, Node) and isinstance(values.kind, ArrayKind) and values.kind.indices == 1:
            self._over_range(node, [Node("shape", WHOLE, (values, 0))], "", values)
        elif isinstance(values, tuple):  # written out
            self.ended = False
            for member in values:
                if not self.ended:
                    self._assign(node.target, member)
                    self.statements += self._turn(node.body, may_leave=False)
        else:
            raise UnsupportedError("loops go over ranges, arrays of one index and tuples", node)

    def _over_range(self, node: ast.For, bounds: list[Node], mark: str, array: Node | None = None) -> None:
        start, stop = (_number(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        counter, stop = self._temporary(WHOLE), self._stored(stop)
        step = self._stored(bounds[2]) if len(bounds) > 2 else _number(1)
        self.statements.append(Assign(counter, start))
        outside, self.inside = self.inside, self.inside or mark == "simd_range"
        first = self._block_of(node.target, counter if array is None else _element(array, [counter]))
        body = first + self._turn(node.body)
        self.inside, self.ended = outside, False
        backwards = step.op == "number" and step.parts[0] < 0  # a step that is not a number here goes forwards
        test = Node("gt" if backwards else "lt", FLAG, (counter, stop))
        self.statements.append(Loop([], test, body, counter, step, mark))

    def _block_of(self, target: ast.expr, value: Any) -> list[Any]:
        outer, self.statements = self.statements, []
        self._assign(target, value)
        block, self.statements = self.statements, outer
        return block

    def _write_Break(self, node: ast.Break | ast.Continue) -> None:
        if not self.loops[-1]:
            raise UnsupportedError("nothing leaves a loop over a tuple", node)
        self.statements.append(Leave(type(node).__name__.lower()))
        self.ended = True

    def _write_Continue(self, node: ast.Continue) -> None:
        self._write_Break(node)

    def _write_Return(self, node: ast.Return) -> None:
        value = self._value(node.value) if node.value is not None else ()
        values = list(value) if isinstance(value, tuple) else [self._known(value, node)]
        kinds = tuple(self._known(value, node).kind for value in values)
        if self.returned is not None:
            known = self.returned if isinstance(self.returned, tuple) else (self.returned,)
            if len(known) != len(kinds):
                raise UnsupportedError("it returns other numbers of values", node)
            kinds = tuple(_wider(a, b, node) for a, b in zip(known, kinds, strict=True))
            self.widened = self.widened or kinds != known
        self.returned = kinds if isinstance(value, tuple) else kinds[0]
        self.statements.append(Return([self._convert(v, k, node) for v, k in zip(values, kinds, strict=True)]))
        self.ended = True

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._assign_name(target.id, value, target)
        elif isinstance(target, ast.Subscript):
            value, place = self._followed([value], target)
            if not isinstance(place, Node) or place.op != "element":
                raise UnsupportedError("numbers are assigned one by one", target)
            self.statements.append(Assign(place, self._convert(self._known(value, target), place.kind, target)))
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for element, member in zip(target.elts, value, strict=True):
                self._assign(element, member)
        else:
            raise UnsupportedError("nothing that a loop can assign to", target)

    def _assign_name(self, name: str, value: Any, node: ast.AST) -> None:
        if isinstance(value, tuple):
            if name in self.variables or self.tuples.setdefault(name, len(value)) != len(value):
                raise UnsupportedError("a value would have two kinds", node)
            for k, member in enumerate(value):
                self._assign_name(f"{name}__{k}", member, node)
            return
        if name == "_":  # nothing reads it
            return
        kind = self._known(value, node).kind
        if name in self.single and value.op == "number":
            self.constants[name] = value
            return
        known = self.variables.setdefault(name, kind)
        self.variables[name] = _wider(known, kind, node)
        self.widened = self.widened or self.variables[name] != known
        self.statements.append(Assign(self._variable(name), self._convert(value, self.variables[name], node)))

    # -- temporary variables -----------------------------------------------------------------------------

    def _variable(self, name: str) -> Node:
        return Node("variable", self.variables[name], (name,))

    def _temporary(self, kind: Kind) -> Node:
        name = f"t{len(self.temporaries)}_"
        self.temporaries[name] = kind
        return Node("variable", kind, (name,))

    def _stored(self, value: Any) -> Any:
        """The value as it is here, whatever statements follow."""
        if isinstance(value, tuple):
            return tuple(self._stored(member) for member in value)
        if isinstance(value, Static) or value.op == "number":
            return value
        target = self._temporary(value.kind)
        self.statements.append(Assign(target, value))
        return target

    def _followed(self, values: list[Any], node: ast.expr) -> list[Any]:
        """Values, and that of an expression found behind them."""
        start = len(self.statements)
        value = self._value(node)
        statements, self.statements[start:] = self.statements[start:], []
        if statements:
            values = [self._stored(earlier) for earlier in values]
            self.statements += statements
        return [*values, value]

    def _values(self, nodes: Sequence[ast.expr]) -> list[Any]:
        values: list[Any] = []
        for node in nodes:
            values = self._followed(values, node)
        return values

    def _apart(self, node: ast.expr, read: Callable[[ast.expr], Any]) -> tuple[list[Any], Any]:
        """The statements of an expression, and its value."""
        outer, self.statements = self.statements, []
        value = read(node)
        statements, self.statements = self.statements, outer
        return statements, value

    # -- expressions: a node, a tuple of them, or something static ---------------------------------------

    def _value(self, node: ast.expr) -> Any:
        read = getattr(self, f"_value_{type(node).__name__}", None)
        if read is None:
            raise UnsupportedError("loops know no such expression", node)
        return read(node)

    def _known(self, value: Any, node: ast.AST) -> Node:
        if not isinstance(value, Node):
            raise UnsupportedError("it is not one value", node)
        return value

    def _whole(self, node: ast.expr) -> Node:
        value = self._value(node)
        if not isinstance(value, Node) or value.kind != WHOLE:
            raise UnsupportedError("no whole number", node)
        return value

    def _truth(self, node: ast.expr) -> Node:
        """A flag; a number is true where it is not zero."""
        value = self._known(self._value(node), node)
        if value.kind not in WIDTH:
            raise UnsupportedError("neither true nor false", node)
        return value if value.kind == FLAG else _compared("ne", value, _number(0), node)

    def _value_Constant(self, node: ast.Constant) -> Any:
        return _number(node.value)

    def _value_Name(self, node: ast.Name) -> Any:
        if node.id in self.constants:
            return self.constants[node.id]
        if node.id in self.variables:
            return self._variable(node.id)
        if node.id in self.tuples:
            members = (f"{node.id}__{k}" for k in range(self.tuples[node.id]))
            return tuple(self._value_Name(ast.Name(member)) for member in members)
        if node.id in self.function.__globals__:
            return _number(self.function.__globals__[node.id])
        if hasattr(builtins, node.id):
            return Static(getattr(builtins, node.id))
        raise UnsupportedError("it has no value yet", node)

    def _value_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._values(node.elts))

    def _value_Attribute(self, node: ast.Attribute) -> Any:
        """A field of a record, the shape or the address of an array, or something of a module."""
        if isinstance(node.value, ast.Attribute) and node.value.attr == "ctypes" and node.attr == "data":
            return Node("address", WHOLE, (self._array(self._value(node.value.value), node),))
        owner = self._value(node.value)
        if isinstance(owner, Static):
            return _number(getattr(owner.held, node.attr))
        if isinstance(owner, Node) and isinstance(owner.kind, RecordKind) and node.attr in owner.kind.found:
            kind = owner.kind.found[node.attr][1]
            return _number(0) if kind == ZERO_KIND else Node("field", kind, (owner, node.attr))
        if node.attr == "shape":
            array = self._array(owner, node)
            return tuple(Node("shape", WHOLE, (array, axis)) for axis in range(array.kind.indices))
        raise UnsupportedError("there is no such field", node)

    def _array(self, value: Any, node: ast.AST) -> Node:
        """An array that is a variable or a field."""
        if not isinstance(value, Node) or not isinstance(value.kind, ArrayKind):
            raise UnsupportedError("only arrays have indices and a length", node)
        return self._stored(value) if value.op == "part" else value

    def _value_Subscript(self, node: ast.Subscript) -> Any:
        """A member of a tuple, a number of an array, or a part of it; numbers below zero count from the end."""
        container = self._value(node.value)
        if isinstance(container, tuple):
            return container[int(ast.literal_eval(node.slice))]
        array = self._array(container, node)
        indices: list[Any] = []
        for axis, index in enumerate(node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]):
            extent = Node("shape", WHOLE, (array, axis))
            if not isinstance(index, ast.Slice):
                value = self._whole(index)
                from_end = value.op == "number" and value.parts[0] < 0
                indices.append(Node("add", WHOLE, (extent, value)) if from_end else value)
            elif index.step is not None:
                raise UnsupportedError("slices have no steps", node)
            else:
                low = _number(0) if index.lower is None else self._whole(index.lower)
                indices.append((low, extent if index.upper is None else self._whole(index.upper)))
        return _element(array, indices)

    def _value_BinOp(self, node: ast.BinOp) -> Node:
        left, right = self._values([node.left, node.right])
        return self._operate(node.op, left, right, node)

    def _operate(self, op: ast.operator, a: Any, b: Any, node: ast.AST) -> Node:
        """Arithmetic on two numbers; of whole numbers it is whole, but for quotients and most powers."""
        a, b = self._known(a, node), self._known(b, node)
        if isinstance(op, ast.Pow):
            if b.op == "number" and b.parts[0] in (2, 3) and b.kind == WHOLE:
                a = a if a.op == "variable" else self._stored(a)
                square = self._operate(ast.Mult(), a, a, node)
                return square if b.parts[0] == 2 else self._operate(ast.Mult(), square, a, node)
            return Node("pow", REAL, (self._convert(a, REAL, node), self._convert(b, REAL, node)))
        kind = _wider(_wider(a.kind, b.kind, node), WHOLE, node)
        if type(op) not in ARITHMETIC or (isinstance(op, (ast.FloorDiv, ast.Mod)) and kind == REAL):
            raise UnsupportedError("loops know no such operation", node)
        kind = REAL if isinstance(op, ast.Div) else kind
        return Node(ARITHMETIC[type(op)], kind, (self._convert(a, kind, node), self._convert(b, kind, node)))

    def _value_UnaryOp(self, node: ast.UnaryOp) -> Node:
        if isinstance(node.op, ast.Not):
            flag = self._truth(node.operand)
            return _number(not flag.parts[0]) if flag.op == "number" else Node("not", FLAG, (flag,))
        value = self._known(self._value(node.operand), node)
        if not isinstance(node.op, ast.USub) or value.kind not in (WHOLE, REAL):
            raise UnsupportedError("loops know no such operation", node)
        return _number(-value.parts[0]) if value.op == "number" else Node("neg", value.kind, (value,))

    def _value_Compare(self, node: ast.Compare) -> Node:
        values = [self._known(value, node) for value in self._values([node.left, *node.comparators])]
        result: Node | None = None
        for op, a, b in zip(node.ops, values, values[1:], strict=False):
            if type(op) not in COMPARISONS:
                raise UnsupportedError("loops know no such comparison", node)
            flag = _compared(COMPARISONS[type(op)], a, b, node)
            result = flag if result is None else Node("and", FLAG, (result, flag))
        assert result is not None
        return result

    def _value_BoolOp(self, node: ast.BoolOp) -> Node:
        """What follows the first value is found only where it matters."""
        first, *others = node.values
        following = ast.BoolOp(node.op, others) if len(others) > 1 else others[0]
        flag = self._truth(first)
        if flag.op == "number":
            return flag if flag.parts[0] == isinstance(node.op, ast.Or) else self._truth(following)
        result = self._temporary(FLAG)
        self.statements.append(Assign(result, flag))
        statements, flag = self._apart(following, self._truth)
        branch = [*statements, Assign(result, flag)]
        self.statements.append(If(result, *((branch, []) if isinstance(node.op, ast.And) else ([], branch))))
        return result

    def _value_IfExp(self, node: ast.IfExp) -> Any:
        """Only the value that is chosen is found."""
        test = self._truth(node.test)
        if test.op == "number":
            return self._value(node.body if test.parts[0] else node.orelse)
        (body, first), (orelse, second) = self._apart(node.body, self._value), self._apart(node.orelse, self._value)
        self.statements.append(If(test, body, orelse))
        return self._chosen(first, second, body, orelse, node)

    def _chosen(self, first: Any, second: Any, body: list[Any], orelse: list[Any], node: ast.AST) -> Any:
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple(self._chosen(a, b, body, orelse, node) for a, b in zip(first, second, strict=True))
        kind = _wider(self._known(first, node).kind, self._known(second, node).kind, node)
        result = self._temporary(kind)
        body.append(Assign(result, self._convert(first, kind, node)))
        orelse.append(Assign(result, self._convert(second, kind, node)))
        return result

    def _value_Call(self, node: ast.Call) -> Any:
        """Of a function of Python that is known here, of another loop, or of a program."""
        called = self._value(node.func)
        if not isinstance(called, Static) or node.keywords:
            raise UnsupportedError("loops cannot call this", node)
        function = called.held
        if function is len:
            return Node("shape", WHOLE, (self._array(self._value(node.args[0]), node), 0))
        values = [self._known(value, node) for value in self._values(node.args)]
        if isinstance(function, Native) or inspect.isfunction(getattr(function, "function", function)):
            return self._call(function, values)
        if function is float:
            return self._convert(values[0], REAL, node)
        if function is int:
            return values[0] if values[0].kind == WHOLE else Node("convert", WHOLE, (values[0],))
        if function is abs and values[0].kind == REAL:
            return Node("fabs", REAL, (values[0],))
        if function is abs:
            return Node("max", WHOLE, (values[0], Node("neg", WHOLE, (values[0],))))
        if function in (min, max):
            return self._extreme(function.__name__, values, node)
        name = getattr(function, "__name__", "")
        if function is getattr(math, name, None) and name in (*REAL_FUNCTIONS, "isfinite"):
            number = self._convert(values[0], REAL, node)
            if name != "isfinite":
                return Node(name, REAL, (number,))
            return Node("lt", FLAG, (Node("fabs", REAL, (number,)), _number(math.inf)))
        raise UnsupportedError("loops cannot call this", node)

    def _call(self, function: Any, values: list[Node]) -> Any:
        returned: Kind = ()
        if not isinstance(function, Native):
            function = self.loop.function(function, tuple(value.kind for value in values), self.inside)
            returned = function.returned
        results = [self._temporary(kind) for kind in (returned if isinstance(returned, tuple) else (returned,))]
        self.statements.append(Call(function, values, results))
        return tuple(results) if isinstance(returned, tuple) else results[0]

    def _extreme(self, name: str, values: list[Node], node: ast.AST) -> Node:
        """The first value, but for another beyond it: as Python has it of numbers that are none."""
        kind = values[0].kind
        for value in values[1:]:
            kind = _wider(kind, value.kind, node)
        result, *others = [self._convert(value, kind, node) for value in values]
        for other in others:
            result = Node(name, kind, (result, other))
        return result

    def _convert(self, value: Node, kind: Kind, node: ast.AST) -> Node:
        """The same number in a wider kind."""
        if _wider(value.kind, kind, node) != kind:
            raise UnsupportedError(f"{value.kind} does not fit {kind}", node)
        return _converted(value, kind)


def _number(value: Any) -> Any:
    """A number of Python, or something static."""
    if isinstance(value, bool):
        return Node("number", FLAG, (value,))
    if isinstance(value, int):
        return Node("number", WHOLE, (int(value),))
    return Node("number", REAL, (float(value),)) if isinstance(value, float) else Static(value)


def _converted(value: Node, kind: Kind) -> Node:
    if value.kind == kind:
        return value
    if value.op == "number":
        return _number({REAL: float, WHOLE: int}[kind](value.parts[0]))
    return Node("convert", kind, (value,))


def _compared(op: str, a: Node, b: Node, node: ast.AST) -> Node:
    kind = _wider(_wider(a.kind, b.kind, node), WHOLE, node)
    if a.op == b.op == "number":
        return _number(getattr(operator, op)(a.parts[0], b.parts[0]))
    return Node(op, FLAG, (_converted(a, kind), _converted(b, kind)))


def _element(array: Node, indices: list[Any]) -> Node:
    """The number, or the part of an array."""
    remaining = array.kind.indices - sum(isinstance(index, Node) for index in indices)
    kind = ArrayKind(array.kind.element, remaining) if remaining else array.kind.element
    return Node("part" if remaining else "element", kind, (array, tuple(indices)))


def _wider(a: Kind, b: Kind, node: ast.AST) -> Kind:
    """The kind that holds values of both."""
    if a == b:
        return a
    if a in WIDTH and b in WIDTH:
        return max(a, b, key=lambda kind: WIDTH[kind])
    raise UnsupportedError("a value would have two kinds", node)
