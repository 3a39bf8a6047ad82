"""Lines of LLVM of a loop, with values of several parts: arrays with their shapes, and tuples."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from struct import pack
from typing import Any

from parflex.codegen.emit.llvm_lines import POINTER
from parflex.codegen.loop_code.kinds import FLAG, REAL, WHOLE, ArrayKind, BundleKind, Kind
from parflex.codegen.loop_code.unsupported import UnsupportedError

WIDTH = {FLAG: 0, WHOLE: 1, REAL: 2}


@dataclass(frozen=True)
class Static:
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
        found, start = [], 0
        for kind in self.kind:
            stop = start + width_of(kind)
            found.append(Value(kind, self.parts[start:stop]))
            start = stop
        return found


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
        return [WHOLE if isinstance(kind, BundleKind) else kind]

    def result_type(self, kind: Kind) -> str:
        """The type that a function gives back."""
        if kind == () or kind is None:
            return "void"
        return f"{{ {', '.join(self.types(kind))} }}" if isinstance(kind, tuple) else self.types(kind)[0]

    def packed(self, value: Value) -> str:
        """A value as one of LLVM."""
        if not isinstance(value.kind, tuple):
            return value.parts[0]
        whole, kind = "undef", self.result_type(value.kind)
        for k, (text, part) in enumerate(zip(self.types(value.kind), value.parts, strict=True)):
            whole = self.new(f"insertvalue {kind} {whole}, {text} {part}, {k}")
        return whole

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
            return tuple_of([self.convert(one, own) for one, own in zip(value.members, kind, strict=True)])
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
