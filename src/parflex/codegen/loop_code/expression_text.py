"""LLVM of the expressions of a loop: numbers, places of arrays, fields of bundles, and calls."""

from __future__ import annotations

import ast
import builtins
import math
from typing import Any

from parflex.codegen.loop_code.kinds import FLAG, NOUGHT, REAL, WHOLE, ArrayKind, BundleKind, Kind
from parflex.codegen.loop_code.loop_lines import Static, Value, tuple_of
from parflex.codegen.loop_code.operation_text import Operations
from parflex.codegen.loop_code.unsupported import UnsupportedError

OF_REALS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil"}  # of `math`; whole numbers stay reals
INVARIANT = ", !invariant.load !0"  # nothing changes a bundle while compiled code runs, so that loads leave loops


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

    def constant(self, held: Any, node: ast.AST) -> Value:
        """A number of Python, or something that has no value here."""
        if isinstance(held, bool):
            return Value(FLAG, (str(held).lower(),))
        if isinstance(held, int):
            return Value(WHOLE, (str(held),))
        return self.real(held) if isinstance(held, float) else Value(Static(held), ())

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
            return Value(Static(getattr(builtins, node.id)), ())
        raise UnsupportedError("it has no value yet", node)

    def value_Tuple(self, node: ast.Tuple) -> Value:
        """Several values."""
        return tuple_of([self.value(one) for one in node.elts])

    def value_Attribute(self, node: ast.Attribute) -> Value:
        """A field of a bundle, the shape or the address of an array, or something of a module."""
        if isinstance(node.value, ast.Attribute) and node.value.attr == "ctypes" and node.attr == "data":
            array = self.value(node.value.value)
            return Value(WHOLE, (self.new(f"ptrtoint {self.types(array.kind)[0]} {array.parts[0]} to i64"),))
        held = self.value(node.value)
        if isinstance(held.kind, Static):
            return self.constant(getattr(held.kind.held, node.attr), node)
        if isinstance(held.kind, BundleKind) and node.attr in held.kind.found:
            return self.field(held.parts[0], *held.kind.found[node.attr])
        if isinstance(held.kind, ArrayKind) and node.attr == "shape":
            n = held.kind.indices
            return Value((WHOLE,) * n, held.parts[1 : 1 + n])
        raise UnsupportedError("there is no such field", node)

    def field(self, address: str, place: int, kind: Kind) -> Value:
        """What stands in a bundle."""

        def word(offset: int, text: str) -> str:
            at = self.new(f"add i64 {address}, {8 * (place + offset)}")
            pointer = self.new(f"inttoptr i64 {at} to {self.pointer(text)}")
            return self.new(f"load {text}, {self.pointer(text)} {pointer}{INVARIANT}")

        if not isinstance(kind, ArrayKind):
            if kind == NOUGHT:
                return Value(WHOLE, (NOUGHT,))
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
        held = self.value(node.value)
        if isinstance(held.kind, tuple):
            return held.members[int(ast.literal_eval(node.slice))]
        found = self.element(held, self.indices(held, node.slice))
        return found

    def indices(self, array: Value, node: ast.expr) -> list[Any]:
        """Whole numbers, and pairs of them for slices; numbers below zero count from the end."""
        if not isinstance(array.kind, ArrayKind):
            raise UnsupportedError("only arrays have indices", node)
        given = node.elts if isinstance(node, ast.Tuple) else [node]
        found: list[Any] = []
        for one, extent in zip(given, array.parts[1 : 1 + array.kind.indices], strict=False):
            if isinstance(one, ast.Slice):
                if one.step is not None:
                    raise UnsupportedError("slices have no steps", node)
                bounds = [self.whole(end) if end is not None else None for end in (one.lower, one.upper)]
                found.append((bounds[0] or Value(WHOLE, ("0",)), bounds[1] or Value(WHOLE, (extent,))))
                continue
            index = self.whole(one)
            if index.parts[0].startswith("-"):
                index = Value(WHOLE, (self.new(f"add i64 {extent}, {index.parts[0]}"),))
            found.append(index)
        return found

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
        kept: list[tuple[str, str]] = []
        for index, stride in zip(indices, strides, strict=False):
            start = index[0] if isinstance(index, tuple) else index
            offset = start.parts[0] if stride == "1" else self.new(f"mul nsw i64 {start.parts[0]}, {stride}")
            if offset != "0":
                place = self.new(f"getelementptr inbounds {kind}, {self.pointer(kind)} {place}, i64 {offset}")
            if isinstance(index, tuple):
                low, high = index[0].parts[0], index[1].parts[0]
                kept.append((high if low == "0" else self.new(f"sub nsw i64 {high}, {low}"), stride))
        kept += zip(shape[len(indices) :], strides[len(indices) :], strict=True)
        return kind, place, [extent for extent, _ in kept], [stride for _, stride in kept]

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
        values = [self.value(one) for one in (node.left, *node.comparators)]
        flags = [self.compared(op, a, b, node) for op, a, b in zip(node.ops, values, values[1:], strict=False)]
        whole = flags[0]
        for flag in flags[1:]:
            whole = self.new(f"and i1 {whole}, {flag}")
        return Value(FLAG, (whole,))

    def value_BoolOp(self, node: ast.BoolOp) -> Value:
        """And, or: what follows is found only where it matters."""
        found, after = self.slot(FLAG), self.label()
        for k, one in enumerate(node.values):
            flag = self.truth(one)
            self.store(Value(FLAG, (flag,)), found, FLAG)
            if k == len(node.values) - 1:
                self.go(after)
            else:
                following = self.label()
                self.branch(flag, *((following, after) if isinstance(node.op, ast.And) else (after, following)))
                self.begin(following)
        self.begin(after)
        return Value(FLAG, (self.new(f"load i1, {self.pointer(FLAG)} {found}"),))

    def value_IfExp(self, node: ast.IfExp) -> Value:
        """One of two values, of which only that one is found."""
        first, second, after = (self.label() for _ in range(3))
        self.branch(self.truth(node.test), first, second)
        self.begin(first)
        one = self.value(node.body)
        behind = len(self.lines)
        self.begin(second)
        other = self.value(node.orelse)
        kind = self.wider(one.kind, other.kind, node)
        slots = [(self.slot(text), text) for text in self.types(kind)]
        self._keep(other, kind, slots, after)
        written, self.lines = self.lines, self.lines[:behind]
        self._keep(one, kind, slots, after)  # its lines belong before the second block
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
        if not isinstance(called.kind, Static) or node.keywords:
            raise UnsupportedError("loops cannot call this", node)
        held, values = called.kind.held, [self.value(one) for one in node.args]
        if hasattr(held, "called_in"):
            return held.called_in(self, values)
        write = {len: self.length, abs: self.absolute, int: self.to_whole, float: self.to_real}.get(held)
        if write is not None:
            return write(values[0], node)
        if held in (min, max):
            return self.extreme("ogt" if held is max else "olt", "sgt" if held is max else "slt", values, node)
        name = getattr(held, "__name__", "")
        if held is getattr(math, name, None):
            number = self.convert(values[0], REAL)
            if name == "isfinite":
                size = self.intrinsic("fabs", [number]).parts[0]
                return Value(FLAG, (self.new(f"fcmp olt double {size}, {self.real(math.inf).parts[0]}"),))
            if name in OF_REALS:
                return self.intrinsic(OF_REALS[name], [number])
        raise UnsupportedError("loops cannot call this", node)
