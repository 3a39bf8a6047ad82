"""LLVM of arithmetic in loops, with the rules of Python for whole numbers, and for numbers that are none."""

from __future__ import annotations

import ast

from parflex.codegen.loop_code.kinds import REAL, WHOLE, ArrayKind
from parflex.codegen.loop_code.loop_lines import LoopLines, Value
from parflex.codegen.loop_code.unsupported import UnsupportedError

ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
COMPARISONS = {
    ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"),
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
}


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
        word = f"f{ARITHMETIC[type(op)]}" if kind == REAL else f"{ARITHMETIC[type(op)]} nsw"
        return Value(kind, (self.new(f"{word} {kind} {x}, {y}"),))

    def _divided(self, rest: bool, a: str, b: str) -> Value:
        """Quotient or rest of whole numbers as Python has them: rounded down."""
        over = self.new(f"srem i64 {a}, {b}")
        unlike = self.new(f"icmp slt i64 {self.new(f'xor i64 {over}, {b}')}, 0")
        below = self.new(f"and i1 {unlike}, {self.new(f'icmp ne i64 {over}, 0')}")
        if rest:
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
        given = ", ".join(f"double {value.parts[0]}" for value in values)
        return Value(REAL, (self.new(f"call double @llvm.{name}.f64({given})"),))

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
        below = self.new(f"icmp slt i64 {value.parts[0]}, 0")
        turned = self.new(f"sub i64 0, {value.parts[0]}")
        return Value(WHOLE, (self.new(f"select i1 {below}, i64 {turned}, i64 {value.parts[0]}"),))

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
        found, *others = [self.convert(value, kind).parts[0] for value in values]
        how = f"fcmp {of_reals}" if kind == REAL else f"icmp {of_wholes}"
        for other in others:
            beyond = self.new(f"{how} {kind} {other}, {found}")
            found = self.new(f"select i1 {beyond}, {kind} {other}, {kind} {found}")
        return Value(kind, (found,))
