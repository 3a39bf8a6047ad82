"""Exact directional derivatives of a program: values and their derivatives, instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parflex.codegen.program import Program


def tangent_program(program: Program) -> Program:
    """The program whose variables are those of the given one, then a direction, and whose outputs change along it.

    Parameters stay as they are. Where nothing changes no instruction is written.
    """
    tangents = _Tangents(program.inlined())
    tangents.write()
    names = tuple(f"change of {name}" for name in tangents.source.variables)
    outputs = tuple((f"change of {name}", tangents.change_of(k)) for name, k in tangents.source.outputs)
    return Program(
        f"{program.name}_tangent",
        tangents.source.variables + names,
        tangents.source.parameters,
        tuple(tangents.instructions),
        tangents.setup,
        outputs,
    )


class _Tangents:
    """Instructions of values and of their changes, as they are written."""

    def __init__(self, source: Program) -> None:
        self.source = source
        count, parameters = len(source.variables), len(source.parameters)
        self.first = 2 * count + parameters
        self.value = {k: k for k in range(count)} | {count + k: 2 * count + k for k in range(parameters)}
        self.change: dict[int, int] = {k: count + k for k in range(count)}  # of values that change
        self.instructions: list[tuple] = []
        self.setup = 0
        self.zero: int | None = None

    def write(self) -> None:
        """All of them."""
        for index, (operation, *arguments) in enumerate(self.source.instructions):
            if index == self.source.setup:
                self.setup = len(self.instructions)
            number = len(self.source.inputs) + index
            if operation == "const":
                self.value[number] = self.put("const", *arguments)
                continue
            self.value[number] = self.put(operation, *(self.value[k] for k in arguments))
            changes = [self.change.get(k) for k in arguments]
            if any(change is not None for change in changes) and operation in RULES:
                values = [self.value[k] for k in arguments]
                derivative = RULES[operation](self, self.value[number], values, changes)
                if derivative is not None:
                    self.change[number] = derivative
        if self.source.setup >= len(self.source.instructions):
            self.setup = len(self.instructions)

    def put(self, *instruction: Any) -> int:
        """The number of a new value."""
        self.instructions.append(tuple(instruction))
        return self.first + len(self.instructions) - 1

    def change_of(self, k: int) -> int:
        """Of a value; zero where it does not change."""
        if k in self.change:
            return self.change[k]
        if self.zero is None:
            self.zero = self.put("const", 0.0)
        return self.zero

    def change_or_zero(self, change: int | None) -> int:
        """A change, or zero as a value of its own."""
        return self.put("const", 0.0) if change is None else change

    def sum(self, first: int | None, second: int | None) -> int | None:
        """Of two changes."""
        if first is None or second is None:
            return second if first is None else first
        return self.put("add", first, second)

    def times(self, factor: int, change: int | None) -> int | None:
        """A multiple of a change."""
        return None if change is None else self.put("mul", factor, change)

    def less(self, first: int | None, second: int | None) -> int | None:
        """The difference of two changes."""
        if second is None:
            return first
        return self.put("neg", second) if first is None else self.put("sub", first, second)


Rule = Callable[[_Tangents, int, list[int], list[Any]], int | None]


def _quotient(t: _Tangents, y: int, v: list[int], d: list[Any]) -> int:
    return t.put("div", t.less(d[0], t.times(y, d[1])), v[1])


def _angle(t: _Tangents, y: int, v: list[int], d: list[Any]) -> int:
    """Of atan2(a, b): (b da - a db) / (a^2 + b^2)."""
    square = t.put("add", t.put("mul", v[0], v[0]), t.put("mul", v[1], v[1]))
    return t.put("div", t.less(t.times(v[1], d[0]), t.times(v[0], d[1])), square)


RULES: dict[str, Rule] = {
    "add": lambda t, y, v, d: t.sum(d[0], d[1]),
    "sub": lambda t, y, v, d: t.less(d[0], d[1]),
    "mul": lambda t, y, v, d: t.sum(t.times(v[1], d[0]), t.times(v[0], d[1])),
    "div": _quotient,
    "neg": lambda t, y, v, d: t.put("neg", d[0]),
    "sqrt": lambda t, y, v, d: t.put("div", d[0], t.put("add", y, y)),
    "sin": lambda t, y, v, d: t.times(t.put("cos", v[0]), d[0]),
    "cos": lambda t, y, v, d: t.put("neg", t.times(t.put("sin", v[0]), d[0])),
    "abs": lambda t, y, v, d: t.times(t.put("sign", v[0]), d[0]),
    "select": lambda t, y, v, d: t.put("select", v[0], t.change_or_zero(d[1]), t.change_or_zero(d[2])),
    "atan2": _angle,
}  # of a sign and of a comparison nothing changes
