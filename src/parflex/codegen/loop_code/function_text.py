"""LLVM of one function of a loop, from its Python: statements, and what they assign to.

The language is the part of Python that loops over numbers need: numbers, arrays by indices and slices, fields of
bundles, `for` over ranges, arrays and tuples, `while`, `if`, and calls of other such functions. Variables have one kind
each; one that is whole at first and real later is real from the start. Turns of `for k in abreast(count)` have nothing
to do with each other: they are done side by side.
"""

from __future__ import annotations

import ast
from typing import Any

from parflex.codegen.loop_code.expression_text import Expressions
from parflex.codegen.loop_code.kinds import WHOLE, ArrayKind, Kind
from parflex.codegen.loop_code.loop_lines import Static, Value
from parflex.codegen.loop_code.unsupported import UnsupportedError

UNROLLED = 4  # turns that are written out


def abreast(count: int) -> range:
    """A range whose turns may be done side by side: none reads what another one writes."""
    return range(count)


def unrolled(count: int) -> range:
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
            self.assign_name(name, self.received(kind, name))

    def received(self, kind: Kind, name: str) -> Value:
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
        held = self.value(called.func).kind if isinstance(called, ast.Call) else None
        if isinstance(called, ast.Call) and isinstance(held, Static) and held.held in (range, abreast, unrolled):
            bounds, mark, outside = [self.whole(argument) for argument in called.args], "", self.group
            if held.held is abreast:
                self.group, mark = self.unit.side_by_side(bounds[0].parts[0])
            elif held.held is unrolled:
                mark = self.unit.loop(f'!"llvm.loop.unroll.count", i32 {UNROLLED}')
            self._over_range(node, bounds, mark=mark)
            self.group = outside
            return
        values = self.value(called)
        if isinstance(values.kind, tuple):
            for member in values.members:
                body, again, after = self.label(), self.label(), self.label()
                self.go(body)
                self.assign_at(node.target, member, body)
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

    def assign_at(self, target: ast.expr, value: Value, label: str) -> None:
        """Begin a block and assign in it."""
        self.begin(label)
        self.assign(target, value)

    def _over_range(self, node: ast.For, bounds: list[Value], of: Value | None = None, mark: str = "") -> None:
        start, stop, step = self.range_of(bounds)
        counter = self.slot(WHOLE)
        self.store(start, counter, WHOLE)
        test, body, again, after = (self.label() for _ in range(4))
        self.go(test)
        self.begin(test)
        at = self.new(f"load i64, {self.pointer(WHOLE)} {counter}")
        how = "sgt" if step.parts[0].startswith("-") else "slt"
        self.branch(self.new(f"icmp {how} i64 {at}, {stop.parts[0]}"), body, after)
        self.begin(body)
        value = Value(WHOLE, (at,))
        self.assign(node.target, value if of is None else self.element(of, [value]))
        self.loops.append((again, after))
        self.block(node.body)
        self.loops.pop()
        self.go(again)
        self.begin(again)
        self.store(Value(WHOLE, (self.new(f"add nsw i64 {at}, {step.parts[0]}"),)), counter, WHOLE)
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
            for one, member in zip(target.elts, value.members, strict=True):
                self.assign(one, member)
        else:
            raise UnsupportedError("nothing that a loop can assign to", target)

    def assign_name(self, name: str, value: Value) -> None:
        """Into the slots of a variable, which it gets at its first value."""
        if isinstance(value.kind, Static):
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
