"""From sums and products back to binary instructions: order, signs, reciprocals and pivoted solves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from parflex.codegen.passes.nary import Nary, Signed
from parflex.codegen.program import OPERATIONS, Instruction, Program
from parflex.symbolic.expression import (
    ATAN2,
    COS,
    EITHER,
    HOLD,
    INPUT,
    NOT_WITHIN,
    PICK,
    SIGN,
    SIN,
    SOLVE,
    SQRT,
)

FUNCTIONS = {SQRT: "sqrt", SIN: "sin", COS: "cos", SIGN: "sign", ATAN2: "atan2"}


class Emission:
    """Emits instructions; values carry a sign, so that negation is free until an output or a function needs it."""

    def __init__(self, inputs: Sequence[str], deep: bool = True) -> None:
        self.number = {name: k for k, name in enumerate(inputs)}
        self.instructions: list[Instruction] = []
        self.base = len(inputs)
        self.deep, self.depth = deep, [0] * len(inputs)  # of each value, where the shallowest are combined first
        self.values: dict[int, Signed] = {}
        self.picks: dict[int, list[Signed]] = {}
        self.numbers: dict[int, float] = {}  # values that are constants
        self._emitted: dict[Instruction, int] = {}
        self._eliminations: dict[tuple[int, ...], _Elimination] = {}  # by size and entries of the matrix

    def emit(self, operation: str, *arguments: Any) -> int:
        """The number of the value of an instruction; equal instructions are one, what is known is worked out."""
        if operation != "const":
            numbers = self.numbers
            for k in arguments:
                if k in numbers:
                    known = self._known(operation, arguments) if operation in OPERATIONS else None
                    if known is not None:
                        return known
                    break
        key = (operation, *arguments)
        found = self._emitted.get(key)
        if found is None:
            self.instructions.append(key)
            found = self._emitted[key] = self.base + len(self.instructions) - 1
            if operation == "const":
                self.numbers[found] = arguments[0]
            if self.deep:
                self.depth.append(0 if operation == "const" else 1 + max([self.depth[k] for k in arguments]))
        return found

    def _known(self, operation: str, arguments: tuple[int, ...]) -> int | None:
        """The value of constants alone, or of something with a zero or a one that needs no operation."""
        numbers = [self.numbers.get(k) for k in arguments]
        if None not in numbers:
            return self.constant(float(OPERATIONS[operation](*numbers)))
        match operation, *numbers:
            case ("mul", 0.0, _) | ("mul", _, 0.0) | ("div", 0.0, _):
                return self.constant(0.0)
            case ("add", 0.0, _) | ("mul", 1.0, _):
                return arguments[1]
            case ("add" | "sub", _, 0.0) | ("mul" | "div", _, 1.0):
                return arguments[0]
            case ("sub", 0.0, _):
                return self.emit("neg", arguments[1])
            case ("select", float(condition), _, _):
                return arguments[1] if condition else arguments[2]
            case ("greater", 0.0, _) if self.instructions[arguments[1] - self.base][0] == "abs":
                return self.constant(0.0)
        return None

    def constant(self, value: float) -> int:
        """The value of a number."""
        return self.emit("const", value)

    def plain(self, signed: Signed) -> int:
        """The value of a node with its sign worked in."""
        value, sign = self.values[signed[0]]
        return value if sign * signed[1] > 0 else self.emit("neg", value)

    def function(self, op: int, arguments: list[int]) -> int:
        """The value of a function of the graph."""
        if op == NOT_WITHIN:
            value, limit = arguments
            within = self.emit("greater", limit, self.emit("abs", value))  # false for what is not a number
            return self.emit("select", within, self.constant(0.0), self.constant(1.0))
        if op == EITHER:
            return self.emit("select", self.emit("greater", arguments[0], self.constant(0.0)), *arguments)
        return self.emit(FUNCTIONS[op], *arguments)

    def solved(self, n: int, plain: list[int]) -> list[Signed]:
        """One right side, behind the matrix, through the pivoted elimination of n unknowns."""
        size = len(plain) // (n + 1)
        matrix, right = (n, *plain[: n * size]), plain[n * size :]
        if matrix not in self._eliminations:
            self._eliminations[matrix] = _Elimination(self, n, matrix[1:])
        return [(value, 1) for value in self._eliminations[matrix].through(right)]


class _Lowering(Emission):
    """Sums and products as instructions."""

    def __init__(self, program: Nary, inputs: Sequence[str]) -> None:
        super().__init__(inputs)
        self.program = program
        order = program.order()
        self.divisors = program.divisors()
        for node in order:
            self.lower(node)

    def lower(self, node: int) -> None:
        program, kind = self.program, self.program.kind[node]
        if kind == "leaf":
            self.values[node] = self._leaf(node)
        elif kind == "sum":
            self.values[node] = self._sum(node)
        elif kind == "product":
            self.values[node] = self._product(node)
        elif program.is_reciprocal(node):
            if node not in self.divisors:
                value, sign = self.values[program.arguments[node][0][0]]
                self.values[node] = self.emit("div", self.constant(1.0), value), sign
        else:
            self._function(node)

    def _leaf(self, node: int) -> Signed:
        graph, source = self.program.source, self.program.content[node]
        if graph.op[source] == INPUT:
            return self.number[graph.names[graph.a[source]]], 1
        return self.constant(graph.constants[graph.a[source]]), 1

    def _product(self, node: int) -> Signed:
        below = [f for f in self.program.content[node] if f in self.divisors]
        above = [f for f in self.program.content[node] if f not in self.divisors]
        sign = 1
        factors = []
        for child in above:
            value, child_sign = self.values[child]
            sign *= child_sign
            factors.append(value)
        value = self._shallow_first("mul", factors) if factors else self.constant(1.0)
        for reciprocal in below:
            divisor, child_sign = self.values[self.program.arguments[reciprocal][0][0]]
            sign *= child_sign
            value = self.emit("div", value, divisor)
        return value, sign

    def _shallow_first(self, operation: str, values: list[int]) -> int:
        """Combine the two shallowest values again and again: the chain stays short."""
        values = sorted(values, key=lambda k: self.depth[k])
        while len(values) > 1:
            first, second, *rest = values
            values = sorted([*rest, self.emit(operation, *sorted((first, second)))], key=lambda k: self.depth[k])
        return values[0]

    def _sum(self, node: int) -> Signed:
        terms: list[tuple[int, int]] = []  # sign, value
        for child, count in self.program.content[node].items():
            value, sign = self.values[child]
            if abs(count) != 1:
                value = self.emit("mul", *sorted((self.constant(float(abs(count))), value)))
            terms.append((sign if count > 0 else -sign, value))
        while len(terms) > 1:
            terms.sort(key=lambda term: self.depth[term[1]])
            (s, x), (t, y), *rest = terms
            if s == t:
                terms = [*rest, (s, self.emit("add", *sorted((x, y))))]
            else:
                # a - b and b - a are one value: the sign goes with it
                a, b, sign = (x, y, 1) if s > 0 else (y, x, 1)
                if ("sub", b, a) in self._emitted:
                    a, b, sign = b, a, -1
                terms = [*rest, (sign, self.emit("sub", a, b))]
        return terms[0][1], terms[0][0]

    def _function(self, node: int) -> None:
        op = self.program.source.op[self.program.content[node]]
        arguments = self.program.arguments[node]
        if op == SOLVE:
            unknowns = self.program.source.systems[self.program.source.a[self.program.content[node]]][0]
            self.picks[node] = self.solved(unknowns, [self.plain(argument) for argument in arguments])
        elif op == PICK:
            index = self.program.source.b[self.program.content[node]]
            self.values[node] = self.picks[arguments[0][0]][index]
        elif op == HOLD:
            value, sign = self.values[arguments[0][0]]
            self.values[node] = value, sign * arguments[0][1]
        else:
            self.values[node] = self.function(op, [self.plain(argument) for argument in arguments]), 1


class _Elimination:
    """Gauss with partial pivoting, rows swapped by selects: the same steps whatever the numbers."""

    def __init__(self, lowering: Emission, n: int, matrix: Sequence[int]) -> None:
        self.emit, self.n = lowering.emit, n
        rows = [list(matrix[n * i : n * i + n]) for i in range(len(matrix) // n)]
        self.larger: dict[tuple[int, int], int] = {}
        self.scales: dict[tuple[int, int], int] = {}
        self.inverse: list[int] = []
        for k in range(n):
            for i in range(k + 1, len(rows)):
                self.larger[k, i] = self.emit("greater", self.emit("abs", rows[i][k]), self.emit("abs", rows[k][k]))
                for j in range(k, n):
                    rows[k][j], rows[i][j] = self.swapped(k, i, rows[k][j], rows[i][j])
            self.inverse.append(self.emit("div", lowering.constant(1.0), rows[k][k]))
            for i in range(k + 1, len(rows)):
                scale = self.scales[k, i] = self.emit("mul", rows[i][k], self.inverse[k])
                for j in range(k + 1, n):
                    rows[i][j] = self.emit("sub", rows[i][j], self.emit("mul", scale, rows[k][j]))
        self.rows = rows

    def swapped(self, k: int, i: int, top: int, other: int) -> tuple[int, int]:
        """The two values in the order in which row i stands above row k where its pivot is larger."""
        if top == other:
            return top, other
        larger = self.larger[k, i]
        return self.emit("select", larger, other, top), self.emit("select", larger, top, other)

    def through(self, right: Sequence[int]) -> list[int]:
        """Solutions for a right side, then what is left of it in the rows beyond."""
        x = list(right)
        for k in range(self.n):
            for i in range(k + 1, len(x)):
                x[k], x[i] = self.swapped(k, i, x[k], x[i])
            for i in range(k + 1, len(x)):
                x[i] = self.emit("sub", x[i], self.emit("mul", self.scales[k, i], x[k]))
        for i in reversed(range(self.n)):
            for j in range(i + 1, self.n):
                x[i] = self.emit("sub", x[i], self.emit("mul", self.rows[i][j], x[j]))
            x[i] = self.emit("mul", x[i], self.inverse[i])
        return x


def lower(
    program: Nary, name: str, variables: Sequence[str], parameters: Sequence[str], outputs: Iterable[str]
) -> Program:
    """The program of sums and products as instructions, with arithmetic on parameters alone in front."""
    inputs = (*variables, *parameters)
    lowering = _Lowering(program, inputs)
    results = [(label, lowering.plain(signed)) for label, signed in zip(outputs, program.outputs, strict=True)]
    return hoisted(name, tuple(variables), tuple(parameters), lowering.instructions, results)


def hoisted(
    name: str,
    variables: tuple[str, ...],
    parameters: tuple[str, ...],
    instructions: list[Instruction],
    outputs: list[tuple[str, int]],
) -> Program:
    """Drop what no output needs and move what depends on parameters and constants alone to the front."""
    base = len(variables) + len(parameters)
    needed = [False] * (base + len(instructions))
    for _, k in outputs:
        needed[k] = True
    for index in reversed(range(len(instructions))):
        if needed[base + index] and instructions[index][0] != "const":
            for k in instructions[index][1:]:
                needed[k] = True
    early = [False] * len(variables) + [True] * len(parameters)
    for instruction in instructions:
        now = True
        if instruction[0] != "const":
            for k in instruction[1:]:
                if not early[k]:
                    now = False
                    break
        early.append(now)
    live = [k for k in range(len(instructions)) if needed[base + k]]
    order = [k for k in live if early[base + k]] + [k for k in live if not early[base + k]]
    renumber = list(range(base + len(instructions)))
    for place, k in enumerate(order, base):
        renumber[base + k] = place
    moved = []
    for k in order:
        instruction = instructions[k]
        if instruction[0] != "const":
            instruction = (instruction[0], *[renumber[a] for a in instruction[1:]])
        moved.append(instruction)
    setup = sum(early[base + k] for k in live)
    return Program(
        name, variables, parameters, tuple(moved), setup, tuple((label, renumber[k]) for label, k in outputs)
    )
