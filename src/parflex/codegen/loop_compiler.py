"""LLVM IR from loops written in a subset of Python.

The subset is what numerical loops need: numbers, arrays by indices and slices, fields of bundles, `for` over ranges,
arrays and tuples, `while`, `if`, and calls of other such functions. Variables have one type each; a variable that is an
integer at first and real later is real from the start. Iterations of `for k in simd_range(count)` are independent
and run in SIMD lanes.
"""

from __future__ import annotations

import ast
import builtins
import math
from dataclasses import dataclass
from struct import pack
from typing import Any

from parflex.codegen.llvm_lines import POINTER
from parflex.codegen.loop_types import FLAG, REAL, WHOLE, ZERO_KIND, ArrayKind, Kind, RecordKind, UnsupportedError

WIDTH = {FLAG: 0, WHOLE: 1, REAL: 2}

ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}

COMPARISONS = {
    ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"),
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
}

REAL_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil"}  # of `math`; whole numbers stay reals

INVARIANT = ", !invariant.load !0"  # nothing changes a bundle while compiled code runs, so that loads leave loops

UNROLL_COUNT = 4  # turns that are written out


@dataclass(frozen=True)
class StaticValue:
    """Something of Python that has no value in compiled code: a module, a function, a method."""

    held: Any


@dataclass(frozen=True)
class Value:
    """A value by the names of its parts: one of a number, pointer, shape and strides of an array, all of a tuple."""

    kind: Kind
    parts: tuple[str, ...]

    @property
    def members(self) -> list[Value]:
        """Values of a tuple."""
        values, start = [], 0
        for kind in self.kind:
            stop = start + width_of(kind)
            values.append(Value(kind, self.parts[start:stop]))
            start = stop
        return values


def width_of(kind: Kind) -> int:
    """Parts of a value."""
    if isinstance(kind, tuple):
        return sum(width_of(part) for part in kind)
    return 1 + 2 * kind.indices if isinstance(kind, ArrayKind) else 1


def tuple_of(values: list[Value]) -> Value:
    """Values as one."""
    return Value(tuple(value.kind for value in values), tuple(part for value in values for part in value.parts))


class LoopLines:
    """Lines of a function, the kinds of the values that they give, and how one becomes the other."""

    def __init__(self, unit: Any, function: Any) -> None:
        self.unit, self.function = unit, function
        self.lines: list[str] = []
        self.slots: list[tuple[str, str]] = []
        self.variables: dict[str, tuple[Kind, tuple[str, ...]]] = {}
        self.count = 0
        self.ended = False
        self.group = ""  # behind loads and stores of arrays: those of a loop whose turns are apart from each other
        self.inside = False  # whether the function becomes a part of such a loop

    # -- lines -------------------------------------------------------------------------------------------

    def new(self, text: str) -> str:
        """An instruction with a value."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def label(self) -> str:
        """A new one."""
        self.count += 1
        return f"b{self.count}"

    def begin(self, label: str) -> None:
        """A block."""
        self.lines.append(f"{label}:")
        self.ended = False

    def go(self, label: str) -> None:
        """To a block, if this one has not ended."""
        if not self.ended:
            self.lines.append(f"  br label %{label}")

    def branch(self, flag: str, first: str, second: str) -> None:
        """To one of two blocks."""
        self.lines.append(f"  br i1 {flag}, label %{first}, label %{second}")

    def slot(self, text: str) -> str:
        """Memory for a value; LLVM makes registers of it."""
        name = f"%s{len(self.slots)}"
        self.slots.append((name, text))
        return name

    def store(self, value: Value, slot: str, text: str) -> None:
        """A number into its slot."""
        self.lines.append(f"  store {text} {value.parts[0]}, {self.pointer(text)} {slot}")

    def pointer(self, text: str) -> str:
        """The type of a pointer to this type: younger LLVM has one alone."""
        return "ptr" if POINTER == "ptr" else f"{text}*"

    def types(self, kind: Kind) -> list[str]:
        """Types of the parts of a value."""
        if isinstance(kind, tuple):
            return [text for part in kind for text in self.types(part)]
        if isinstance(kind, ArrayKind):
            return [self.pointer(kind.element)] + [WHOLE] * (2 * kind.indices)
        return [WHOLE if isinstance(kind, RecordKind) else kind]

    def result_type(self, kind: Kind) -> str:
        """The type that a function gives back."""
        if kind == () or kind is None:
            return "void"
        return f"{{ {', '.join(self.types(kind))} }}" if isinstance(kind, tuple) else self.types(kind)[0]

    def packed(self, value: Value) -> str:
        """A value as one of LLVM."""
        if not isinstance(value.kind, tuple):
            return value.parts[0]
        aggregate, kind = "undef", self.result_type(value.kind)
        for k, (text, part) in enumerate(zip(self.types(value.kind), value.parts, strict=True)):
            aggregate = self.new(f"insertvalue {kind} {aggregate}, {text} {part}, {k}")
        return aggregate

    # -- kinds -------------------------------------------------------------------------------------------

    def wider(self, a: Kind, b: Kind, node: ast.AST) -> Kind:
        """The kind that holds values of both."""
        if a == b:
            return a
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return tuple(self.wider(x, y, node) for x, y in zip(a, b, strict=True))
        if a in WIDTH and b in WIDTH:
            return max(a, b, key=lambda kind: WIDTH[kind])
        raise UnsupportedError("a value would have two kinds", node)

    def convert(self, value: Value, kind: Kind) -> Value:
        """The same number, or numbers, in a wider kind."""
        if value.kind == kind:
            return value
        if isinstance(kind, tuple):
            return tuple_of(
                [self.convert(member, member_kind) for member, member_kind in zip(value.members, kind, strict=True)]
            )
        if value.kind not in WIDTH or WIDTH[value.kind] > WIDTH[kind]:
            raise UnsupportedError(f"{value.kind} does not fit {kind}", self.function.tree)
        part = value.parts[0]
        if value.kind == FLAG:
            return Value(kind, (self.new(f"{'uitofp' if kind == REAL else 'zext'} i1 {part} to {kind}"),))
        if part.lstrip("-").isdigit():
            return self.real(float(part))
        return Value(REAL, (self.new(f"sitofp i64 {part} to double"),))

    def real(self, value: float) -> Value:
        """A number."""
        return Value(REAL, (f"0x{pack('>d', value).hex().upper()}",))


class Operations(LoopLines):
    """Operations on values."""

    def operate(self, op: ast.operator, a: Value, b: Value, node: ast.AST) -> Value:
        """Arithmetic on two numbers; of whole numbers it is whole, but for quotients."""
        if isinstance(op, ast.Pow):
            return self._power(a, b)
        kind = self.wider(self.wider(a.kind, b.kind, node), WHOLE, node)
        if isinstance(op, (ast.FloorDiv, ast.Mod)) and kind == WHOLE:
            return self._divided(isinstance(op, ast.Mod), a.parts[0], b.parts[0])
        kind = REAL if isinstance(op, ast.Div) else kind
        x, y = self.convert(a, kind).parts[0], self.convert(b, kind).parts[0]
        if isinstance(op, ast.Div):
            return Value(REAL, (self.new(f"fdiv double {x}, {y}"),))
        if type(op) not in ARITHMETIC:
            raise UnsupportedError("loops know no such operation", node)
        opcode = f"f{ARITHMETIC[type(op)]}" if kind == REAL else f"{ARITHMETIC[type(op)]} nsw"
        return Value(kind, (self.new(f"{opcode} {kind} {x}, {y}"),))

    def _divided(self, remainder: bool, a: str, b: str) -> Value:
        """Quotient or rest of whole numbers as Python has them: rounded down."""
        over = self.new(f"srem i64 {a}, {b}")
        unlike = self.new(f"icmp slt i64 {self.new(f'xor i64 {over}, {b}')}, 0")
        below = self.new(f"and i1 {unlike}, {self.new(f'icmp ne i64 {over}, 0')}")
        if remainder:
            return Value(WHOLE, (self.new(f"add i64 {over}, {self.new(f'select i1 {below}, i64 {b}, i64 0')}"),))
        less = self.new(f"zext i1 {below} to i64")
        return Value(WHOLE, (self.new(f"sub i64 {self.new(f'sdiv i64 {a}, {b}')}, {less}"),))

    def _power(self, a: Value, b: Value) -> Value:
        """Small whole powers are products."""
        if b.kind == WHOLE and b.parts[0] in ("2", "3"):
            value = a
            for _ in range(int(b.parts[0]) - 1):
                value = self.operate(ast.Mult(), value, a, self.function.tree)
            return value
        return self.intrinsic("pow", [self.convert(a, REAL), self.convert(b, REAL)])

    def intrinsic(self, name: str, values: list[Value]) -> Value:
        """A function of reals that LLVM knows."""
        self.unit.declare(f"declare double @llvm.{name}.f64({', '.join(['double'] * len(values))})")
        arguments = ", ".join(f"double {value.parts[0]}" for value in values)
        return Value(REAL, (self.new(f"call double @llvm.{name}.f64({arguments})"),))

    def compared(self, op: ast.cmpop, a: Value, b: Value, node: ast.AST) -> str:
        """A flag."""
        if type(op) not in COMPARISONS:
            raise UnsupportedError("loops know no such comparison", node)
        kind = self.wider(self.wider(a.kind, b.kind, node), WHOLE, node)
        x, y = self.convert(a, kind).parts[0], self.convert(b, kind).parts[0]
        how = COMPARISONS[type(op)][kind == REAL]
        return self.new(f"{'fcmp' if kind == REAL else 'icmp'} {how} {kind} {x}, {y}")

    def length(self, value: Value, node: ast.AST) -> Value:
        """Of an array, along its first index."""
        if not isinstance(value.kind, ArrayKind):
            raise UnsupportedError("it has no length", node)
        return Value(WHOLE, (value.parts[1],))

    def absolute(self, value: Value, node: ast.AST) -> Value:
        """Without its sign."""
        if value.kind == REAL:
            return self.intrinsic("fabs", [value])
        negative = self.new(f"icmp slt i64 {value.parts[0]}, 0")
        negated = self.new(f"sub i64 0, {value.parts[0]}")
        return Value(WHOLE, (self.new(f"select i1 {negative}, i64 {negated}, i64 {value.parts[0]}"),))

    def to_whole(self, value: Value, node: ast.AST) -> Value:
        """Cut off behind the point."""
        if value.kind == REAL:
            return Value(WHOLE, (self.new(f"fptosi double {value.parts[0]} to i64"),))
        return self.convert(value, WHOLE)

    def to_real(self, value: Value, node: ast.AST) -> Value:
        """As a real."""
        return self.convert(value, REAL)

    def extreme(self, of_reals: str, of_wholes: str, values: list[Value], node: ast.AST) -> Value:
        """The first value, but for another beyond it: as Python has it of numbers that are none."""
        kind = values[0].kind
        for value in values[1:]:
            kind = self.wider(kind, value.kind, node)
        extremum, *others = [self.convert(value, kind).parts[0] for value in values]
        how = f"fcmp {of_reals}" if kind == REAL else f"icmp {of_wholes}"
        for other in others:
            beyond = self.new(f"{how} {kind} {other}, {extremum}")
            extremum = self.new(f"select i1 {beyond}, {kind} {other}, {kind} {extremum}")
        return Value(kind, (extremum,))


class Expressions(Operations):
    """Values of expressions."""

    def whole(self, node: ast.expr) -> Value:
        """A whole number."""
        value = self.value(node)
        if value.kind != WHOLE:
            raise UnsupportedError("no whole number", node)
        return value

    def truth(self, node: ast.expr) -> str:
        """A flag; a number is true where it is not zero."""
        value = self.value(node)
        if value.kind == FLAG:
            return value.parts[0]
        if value.kind == WHOLE:
            return self.new(f"icmp ne i64 {value.parts[0]}, 0")
        if value.kind == REAL:
            return self.new(f"fcmp une double {value.parts[0]}, 0.0")
        raise UnsupportedError("neither true nor false", node)

    # -- expressions -------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:
        """Of any expression."""
        write = getattr(self, f"value_{type(node).__name__}", None)
        if write is None:
            raise UnsupportedError("loops know no such expression", node)
        return write(node)

    def value_Constant(self, node: ast.Constant) -> Value:
        """A number."""
        return self.constant(node.value, node)

    def constant(self, value: Any, node: ast.AST) -> Value:
        """A number of Python, or something that has no value here."""
        if isinstance(value, bool):
            return Value(FLAG, (str(value).lower(),))
        if isinstance(value, int):
            return Value(WHOLE, (str(value),))
        return self.real(value) if isinstance(value, float) else Value(StaticValue(value), ())

    def value_Name(self, node: ast.Name) -> Value:
        """A variable, or what the module or Python has under that name."""
        if node.id in self.variables:
            kind, slots = self.variables[node.id]
            parts = [
                self.new(f"load {text}, {self.pointer(text)} {slot}")
                for slot, text in zip(slots, self.types(kind), strict=True)
            ]
            return Value(kind, tuple(parts))
        if node.id in self.function.names:
            return self.constant(self.function.names[node.id], node)
        if hasattr(builtins, node.id):
            return Value(StaticValue(getattr(builtins, node.id)), ())
        raise UnsupportedError("it has no value yet", node)

    def value_Tuple(self, node: ast.Tuple) -> Value:
        """Several values."""
        return tuple_of([self.value(element) for element in node.elts])

    def value_Attribute(self, node: ast.Attribute) -> Value:
        """A field of a bundle, the shape or the address of an array, or something of a module."""
        if isinstance(node.value, ast.Attribute) and node.value.attr == "ctypes" and node.attr == "data":
            array = self.value(node.value.value)
            return Value(WHOLE, (self.new(f"ptrtoint {self.types(array.kind)[0]} {array.parts[0]} to i64"),))
        owner = self.value(node.value)
        if isinstance(owner.kind, StaticValue):
            return self.constant(getattr(owner.kind.held, node.attr), node)
        if isinstance(owner.kind, RecordKind) and node.attr in owner.kind.found:
            return self.field(owner.parts[0], *owner.kind.found[node.attr])
        if isinstance(owner.kind, ArrayKind) and node.attr == "shape":
            n = owner.kind.indices
            return Value((WHOLE,) * n, owner.parts[1 : 1 + n])
        raise UnsupportedError("there is no such field", node)

    def field(self, address: str, place: int, kind: Kind) -> Value:
        """What stands in a bundle."""

        def word(offset: int, text: str) -> str:
            byte_address = self.new(f"add i64 {address}, {8 * (place + offset)}")
            pointer = self.new(f"inttoptr i64 {byte_address} to {self.pointer(text)}")
            return self.new(f"load {text}, {self.pointer(text)} {pointer}{INVARIANT}")

        if not isinstance(kind, ArrayKind):
            if kind == ZERO_KIND:
                return Value(WHOLE, (ZERO_KIND,))
            if kind == FLAG:
                return Value(FLAG, (self.new(f"icmp ne i64 {word(0, WHOLE)}, 0"),))
            return Value(kind, (word(0, kind),))
        data = word(0, self.pointer(kind.element))
        return self.contiguous(kind, data, [word(1 + k, WHOLE) for k in range(kind.indices)])

    def contiguous(self, kind: ArrayKind, data: str, shape: list[str]) -> Value:
        """An array whose strides follow from its shape."""
        strides = ["1"]
        for extent in reversed(shape[1:]):
            strides.insert(0, extent if strides[0] == "1" else self.new(f"mul nsw i64 {strides[0]}, {extent}"))
        return Value(kind, (data, *shape, *strides))

    def value_Subscript(self, node: ast.Subscript) -> Value:
        """A number of an array, a part of it, or a member of a tuple."""
        container = self.value(node.value)
        if isinstance(container.kind, tuple):
            return container.members[int(ast.literal_eval(node.slice))]
        element = self.element(container, self.indices(container, node.slice))
        return element

    def indices(self, array: Value, node: ast.expr) -> list[Any]:
        """Whole numbers, and pairs of them for slices; numbers below zero count from the end."""
        if not isinstance(array.kind, ArrayKind):
            raise UnsupportedError("only arrays have indices", node)
        subscripts = node.elts if isinstance(node, ast.Tuple) else [node]
        indices: list[Any] = []
        for subscript, extent in zip(subscripts, array.parts[1 : 1 + array.kind.indices], strict=False):
            if isinstance(subscript, ast.Slice):
                if subscript.step is not None:
                    raise UnsupportedError("slices have no steps", node)
                bounds = [self.whole(end) if end is not None else None for end in (subscript.lower, subscript.upper)]
                indices.append((bounds[0] or Value(WHOLE, ("0",)), bounds[1] or Value(WHOLE, (extent,))))
                continue
            index = self.whole(subscript)
            if index.parts[0].startswith("-"):
                index = Value(WHOLE, (self.new(f"add i64 {extent}, {index.parts[0]}"),))
            indices.append(index)
        return indices

    def element(self, array: Value, indices: list[Any]) -> Value:
        """The number, or the part of an array."""
        kind, place, shape, strides = self._offset(array, indices)
        if not shape:
            return Value(kind, (self.new(f"load {kind}, {self.pointer(kind)} {place}{self.group}"),))
        return Value(ArrayKind(kind, len(shape)), (place, *shape, *strides))

    def _offset(self, array: Value, indices: list[Any]) -> tuple[str, str, list[str], list[str]]:
        """Kind of the elements, where the first one lies, and shape and strides of what is left."""
        n, kind, place = array.kind.indices, array.kind.element, array.parts[0]
        shape, strides = list(array.parts[1 : 1 + n]), list(array.parts[1 + n :])
        remaining: list[tuple[str, str]] = []
        for index, stride in zip(indices, strides, strict=False):
            start = index[0] if isinstance(index, tuple) else index
            offset = start.parts[0] if stride == "1" else self.new(f"mul nsw i64 {start.parts[0]}, {stride}")
            if offset != "0":
                place = self.new(f"getelementptr inbounds {kind}, {self.pointer(kind)} {place}, i64 {offset}")
            if isinstance(index, tuple):
                low, high = index[0].parts[0], index[1].parts[0]
                remaining.append((high if low == "0" else self.new(f"sub nsw i64 {high}, {low}"), stride))
        remaining += zip(shape[len(indices) :], strides[len(indices) :], strict=True)
        return kind, place, [extent for extent, _ in remaining], [stride for _, stride in remaining]

    def place_of(self, node: ast.Subscript) -> tuple[str, str]:
        """Kind and place of a number in an array."""
        array = self.value(node.value)
        kind, place, shape, _ = self._offset(array, self.indices(array, node.slice))
        if shape:
            raise UnsupportedError("numbers are assigned one by one", node)
        return kind, place

    # -- operations --------------------------------------------------------------------------------------

    def value_BinOp(self, node: ast.BinOp) -> Value:
        """Arithmetic."""
        return self.operate(node.op, self.value(node.left), self.value(node.right), node)

    def value_UnaryOp(self, node: ast.UnaryOp) -> Value:
        """Not, or the negative."""
        if isinstance(node.op, ast.Not):
            return Value(FLAG, (self.new(f"xor i1 {self.truth(node.operand)}, true"),))
        value = self.value(node.operand)
        if not isinstance(node.op, ast.USub) or value.kind not in (WHOLE, REAL):
            raise UnsupportedError("loops know no such operation", node)
        part = value.parts[0]
        if value.kind == REAL:
            return Value(REAL, (self.new(f"fneg double {part}"),))
        return Value(WHOLE, (f"-{part}" if part.isdigit() else self.new(f"sub nsw i64 0, {part}"),))

    def value_Compare(self, node: ast.Compare) -> Value:
        """One comparison, or a chain of them."""
        values = [self.value(operand) for operand in (node.left, *node.comparators)]
        flags = [self.compared(op, a, b, node) for op, a, b in zip(node.ops, values, values[1:], strict=False)]
        combined = flags[0]
        for flag in flags[1:]:
            combined = self.new(f"and i1 {combined}, {flag}")
        return Value(FLAG, (combined,))

    def value_BoolOp(self, node: ast.BoolOp) -> Value:
        """And, or: what follows is found only where it matters."""
        result_slot, after = self.slot(FLAG), self.label()
        for k, operand in enumerate(node.values):
            flag = self.truth(operand)
            self.store(Value(FLAG, (flag,)), result_slot, FLAG)
            if k == len(node.values) - 1:
                self.go(after)
            else:
                following = self.label()
                self.branch(flag, *((following, after) if isinstance(node.op, ast.And) else (after, following)))
                self.begin(following)
        self.begin(after)
        return Value(FLAG, (self.new(f"load i1, {self.pointer(FLAG)} {result_slot}"),))

    def value_IfExp(self, node: ast.IfExp) -> Value:
        """One of two values, of which only that one is found."""
        first, second, after = (self.label() for _ in range(3))
        self.branch(self.truth(node.test), first, second)
        self.begin(first)
        body_value = self.value(node.body)
        behind = len(self.lines)
        self.begin(second)
        else_value = self.value(node.orelse)
        kind = self.wider(body_value.kind, else_value.kind, node)
        slots = [(self.slot(text), text) for text in self.types(kind)]
        self._keep(else_value, kind, slots, after)
        written, self.lines = self.lines, self.lines[:behind]
        self._keep(body_value, kind, slots, after)  # its lines belong before the second block
        self.lines += written[behind:]
        self.begin(after)
        return Value(kind, tuple(self.new(f"load {text}, {self.pointer(text)} {slot}") for slot, text in slots))

    def _keep(self, value: Value, kind: Kind, slots: list[tuple[str, str]], after: str) -> None:
        for part, (slot, text) in zip(self.convert(value, kind).parts, slots, strict=True):
            self.lines.append(f"  store {text} {part}, {self.pointer(text)} {slot}")
        self.lines.append(f"  br label %{after}")

    # -- calls -------------------------------------------------------------------------------------------

    def range_of(self, bounds: list[Value]) -> tuple[Value, Value, Value]:
        """Start, stop and step of a range; the sign of the step is known."""
        zero, one = Value(WHOLE, ("0",)), Value(WHOLE, ("1",))
        if len(bounds) == 1:
            return zero, bounds[0], one
        return bounds[0], bounds[1], (bounds[2] if len(bounds) > 2 else one)

    def value_Call(self, node: ast.Call) -> Value:
        """Of a function of Python that is known here, of another loop, or of a program."""
        called = self.value(node.func)
        if not isinstance(called.kind, StaticValue) or node.keywords:
            raise UnsupportedError("loops cannot call this", node)
        function, values = called.kind.held, [self.value(argument) for argument in node.args]
        if hasattr(function, "called_in"):
            return function.called_in(self, values)
        write = {len: self.length, abs: self.absolute, int: self.to_whole, float: self.to_real}.get(function)
        if write is not None:
            return write(values[0], node)
        if function in (min, max):
            return self.extreme("ogt" if function is max else "olt", "sgt" if function is max else "slt", values, node)
        name = getattr(function, "__name__", "")
        if function is getattr(math, name, None):
            number = self.convert(values[0], REAL)
            if name == "isfinite":
                size = self.intrinsic("fabs", [number]).parts[0]
                return Value(FLAG, (self.new(f"fcmp olt double {size}, {self.real(math.inf).parts[0]}"),))
            if name in REAL_INTRINSICS:
                return self.intrinsic(REAL_INTRINSICS[name], [number])
        raise UnsupportedError("loops cannot call this", node)


def simd_range(count: int) -> range:
    """A range whose turns may be done side by side: none reads what another one writes."""
    return range(count)


def unrolled_range(count: int) -> range:
    """A range of short turns, several of which are written out one behind the other."""
    return range(count)


class WidenError(Exception):
    """A variable must have been of a wider kind from the start."""

    def __init__(self, name: str, kind: Kind) -> None:
        super().__init__(name)
        self.name, self.kind = name, kind


class FunctionText(Expressions):
    """Writes the lines of a function for arguments of some kinds."""

    def __init__(
        self, unit: Any, function: Any, kinds: tuple[Kind, ...], wide: dict[str, Kind], inside: bool = False
    ) -> None:
        super().__init__(unit, function)
        self.wide, self.inside = wide, inside
        self.loops: list[tuple[str, str]] = []  # labels of `continue` and `break`
        self.returned: Kind = wide.get("return")
        self.ended = False
        names = [argument.arg for argument in function.tree.args.args]
        if len(names) != len(kinds):
            raise UnsupportedError(f"{function.name} takes {len(names)} arguments, not {len(kinds)}", function.tree)
        self.parameters: list[str] = []
        for name, kind in zip(names, kinds, strict=True):
            self.assign_name(name, self.parameter_value(kind, name))

    def parameter_value(self, kind: Kind, name: str) -> Value:
        """The value of an argument, its parts as parameters."""
        parts = tuple(f"%{name}.{k}" for k in range(len(self.types(kind))))
        self.parameters += [f"{kind_text} {part}" for kind_text, part in zip(self.types(kind), parts, strict=True)]
        return Value(kind, parts)

    def write(self) -> str:
        """The whole function."""
        self.block(self.function.tree.body)
        if not self.ended:
            if self.returned not in (None, ()):
                raise UnsupportedError("not every way through it returns a value", self.function.tree)
            self.returned = ()
            self.lines.append("  ret void")
        how = " alwaysinline" if self.inside else ""
        head = f"define internal {self.result_type(self.returned)} @{{name}}({', '.join(self.parameters)}){how} {{"
        slots = [f"  {slot} = alloca {kind}" for slot, kind in self.slots]
        return "\n".join([head, "entry:", *slots, *self.lines, "}", ""])

    # -- statements --------------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> None:
        """Statements one after the other; nothing follows one that leaves."""
        for statement in statements:
            if self.ended:
                return
            write = getattr(self, f"write_{type(statement).__name__}", None)
            if write is None:
                raise UnsupportedError("loops know no such statement", statement)
            write(statement)

    def write_Expr(self, node: ast.Expr) -> None:
        """A call, or a docstring."""
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def write_Pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def write_Assign(self, node: ast.Assign) -> None:
        """One value to one target or more."""
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def write_AugAssign(self, node: ast.AugAssign) -> None:
        """The target in place of a value of the operation."""
        if isinstance(node.target, ast.Subscript):  # its place is found once
            kind, place = self.place_of(node.target)
            before = Value(kind, (self.new(f"load {kind}, {self.pointer(kind)} {place}{self.group}"),))
            after = self.convert(self.operate(node.op, before, self.value(node.value), node), kind)
            self.lines.append(f"  store {kind} {after.parts[0]}, {self.pointer(kind)} {place}{self.group}")
            return
        before = self.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))  # type: ignore[union-attr]
        self.assign(node.target, self.operate(node.op, before, self.value(node.value), node))

    def write_If(self, node: ast.If) -> None:
        """Two ways."""
        first, second, after = (self.label() for _ in range(3))
        self.branch(self.truth(node.test), first, second)
        ends = []
        for label, body in ((first, node.body), (second, node.orelse)):
            self.begin(label)
            self.block(body)
            ends.append(self.ended)
            self.go(after)
        if all(ends):
            self.ended = True
        else:
            self.begin(after)

    def write_While(self, node: ast.While) -> None:
        """Again while the test holds."""
        test, body, after = (self.label() for _ in range(3))
        self.go(test)
        self.begin(test)
        self.branch(self.truth(node.test), body, after)
        self._body(node, body, test, after)

    def _body(self, node: ast.While | ast.For, body: str, again: str, after: str) -> None:
        if node.orelse:
            raise UnsupportedError("loops have no else", node)
        self.begin(body)
        self.loops.append((again, after))
        self.block(node.body)
        self.loops.pop()
        self.go(again)
        self.begin(after)

    def write_For(self, node: ast.For) -> None:
        """Over a range, the numbers of an array, or the members of a tuple, whose body is written for each."""
        called = node.iter
        callee = self.value(called.func).kind if isinstance(called, ast.Call) else None
        if (
            isinstance(called, ast.Call)
            and isinstance(callee, StaticValue)
            and callee.held in (range, simd_range, unrolled_range)
        ):
            bounds, mark, outside = [self.whole(argument) for argument in called.args], "", self.group
            if callee.held is simd_range:
                self.group, mark = self.unit.side_by_side(bounds[0].parts[0])
            elif callee.held is unrolled_range:
                mark = self.unit.loop(f'!"llvm.loop.unroll.count", i32 {UNROLL_COUNT}')
            self._over_range(node, bounds, mark=mark)
            self.group = outside
            return
        values = self.value(called)
        if isinstance(values.kind, tuple):
            for member in values.members:
                body, again, after = self.label(), self.label(), self.label()
                self.go(body)
                self.assign_in_block(node.target, member, body)
                self.loops.append((again, after))
                self.block(node.body)
                self.loops.pop()
                self.go(again)
                self.begin(again)
                if member is values.members[-1]:
                    self.go(after)
                    self.begin(after)
                elif any(isinstance(part, ast.Break) for part in ast.walk(node)):
                    raise UnsupportedError("no break from a loop over a tuple", node)
            return
        if not isinstance(values.kind, ArrayKind) or values.kind.indices != 1:
            raise UnsupportedError("loops go over ranges, arrays of one index and tuples", node)
        one = Value(WHOLE, ("1",))
        count = Value(WHOLE, (values.parts[1],))
        self._over_range(node, [Value(WHOLE, ("0",)), count, one], values)

    def assign_in_block(self, target: ast.expr, value: Value, label: str) -> None:
        """Begin a block and assign in it."""
        self.begin(label)
        self.assign(target, value)

    def _over_range(self, node: ast.For, bounds: list[Value], array: Value | None = None, mark: str = "") -> None:
        start, stop, step = self.range_of(bounds)
        counter = self.slot(WHOLE)
        self.store(start, counter, WHOLE)
        test, body, again, after = (self.label() for _ in range(4))
        self.go(test)
        self.begin(test)
        index = self.new(f"load i64, {self.pointer(WHOLE)} {counter}")
        how = "sgt" if step.parts[0].startswith("-") else "slt"
        self.branch(self.new(f"icmp {how} i64 {index}, {stop.parts[0]}"), body, after)
        self.begin(body)
        value = Value(WHOLE, (index,))
        self.assign(node.target, value if array is None else self.element(array, [value]))
        self.loops.append((again, after))
        self.block(node.body)
        self.loops.pop()
        self.go(again)
        self.begin(again)
        self.store(Value(WHOLE, (self.new(f"add nsw i64 {index}, {step.parts[0]}"),)), counter, WHOLE)
        self.lines.append(f"  br label %{test}{mark}")
        self.begin(after)

    def write_Break(self, node: ast.Break) -> None:
        """Out of the loop."""
        self.go(self.loops[-1][1])
        self.ended = True

    def write_Continue(self, node: ast.Continue) -> None:
        """To the next turn."""
        self.go(self.loops[-1][0])
        self.ended = True

    def write_Return(self, node: ast.Return) -> None:
        """A value, values, or none."""
        value = self.value(node.value) if node.value is not None else Value((), ())
        if self.returned is None:
            self.returned = value.kind
        if self.returned == ():
            self.lines.append("  ret void")
        else:
            if self.returned != value.kind:
                wider = self.wider(self.returned, value.kind, node)
                if wider != self.returned:
                    raise WidenError("return", wider)
                value = self.convert(value, wider)
            self.lines.append(f"  ret {self.result_type(value.kind)} {self.packed(value)}")
        self.ended = True

    # -- what is assigned to -----------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Value) -> None:
        """A name, a place of an array, or several at once."""
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value)
        elif isinstance(target, ast.Subscript):
            kind, place = self.place_of(target)
            part = self.convert(value, kind).parts[0]
            self.lines.append(f"  store {kind} {part}, {self.pointer(kind)} {place}{self.group}")
        elif isinstance(target, ast.Tuple) and isinstance(value.kind, tuple) and len(value.kind) == len(target.elts):
            for element, member in zip(target.elts, value.members, strict=True):
                self.assign(element, member)
        else:
            raise UnsupportedError("nothing that a loop can assign to", target)

    def assign_name(self, name: str, value: Value) -> None:
        """Into the slots of a variable, which it gets at its first value."""
        if isinstance(value.kind, StaticValue):
            raise UnsupportedError(f"'{name}' would be no value", self.function.tree)
        if name not in self.variables:
            kind = self.wide.get(name, value.kind)
            self.variables[name] = (kind, tuple(self.slot(text) for text in self.types(kind)))
        kind, slots = self.variables[name]
        if kind != value.kind:
            wider = self.wider(kind, value.kind, self.function.tree)
            if wider != kind:
                raise WidenError(name, wider)
            value = self.convert(value, kind)
        for slot, text, part in zip(slots, self.types(kind), value.parts, strict=True):
            self.lines.append(f"  store {text} {part}, {self.pointer(text)} {slot}")
