"""Lowering to binary instructions and calls, and the order of instructions.

The passes shorten each function once; the code between calls is written as it stands. Each value is computed just
before its use, so that few values wait: a long program is slow by the values that leave the registers, and this order
takes two thirds of the time of the order of the trace.

A sum that adds the same number repeatedly, as along equal elements of a link, becomes a product:

((x + d) + d) + d becomes x + 3 d.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from parflex.codegen.nary import Nary, Signed
from parflex.codegen.program import OPERATIONS, Instruction, Program
from parflex.symbolic.expression import (
    ADD,
    ATAN2,
    CALL,
    CONST,
    COS,
    DIV,
    EITHER,
    HOLD,
    INPUT,
    MUL,
    NOT_WITHIN,
    PICK,
    SIGN,
    SIN,
    SOLVE,
    SQRT,
    Calls,
    Graph,
)

FUNCTIONS = {SQRT: "sqrt", SIN: "sin", COS: "cos", SIGN: "sign", ATAN2: "atan2"}
Passes = Callable[[Nary], Nary]
LEAST = 3  # times that a number is added: a product and a sum take the time of two


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
                    folded = self._known(operation, arguments) if operation in OPERATIONS else None
                    if folded is not None:
                        return folded
                    break
        key = (operation, *arguments)
        value = self._emitted.get(key)
        if value is None:
            self.instructions.append(key)
            value = self._emitted[key] = self.base + len(self.instructions) - 1
            if operation == "const":
                self.numbers[value] = arguments[0]
            if self.deep:
                self.depth.append(0 if operation == "const" else 1 + max([self.depth[k] for k in arguments]))
        return value

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
        is_early = True
        if instruction[0] != "const":
            for k in instruction[1:]:
                if not early[k]:
                    is_early = False
                    break
        early.append(is_early)
    live = [k for k in range(len(instructions)) if needed[base + k]]
    order = [k for k in live if early[base + k]] + [k for k in live if not early[base + k]]
    renumber = list(range(base + len(instructions)))
    for place, k in enumerate(order, base):
        renumber[base + k] = place
    renumbered = []
    for k in order:
        instruction = instructions[k]
        if instruction[0] != "const":
            instruction = (instruction[0], *[renumber[a] for a in instruction[1:]])
        renumbered.append(instruction)
    setup = sum(early[base + k] for k in live)
    results = tuple((label, renumber[k]) for label, k in outputs)
    return Program(name, variables, parameters, tuple(renumbered), setup, results)


def calling_program(
    graph: Graph,
    name: str,
    variables: Sequence[str],
    parameters: Sequence[str],
    outputs: tuple[Sequence[str], list[int]],
    passes: Passes,
) -> Program:
    """The program of outputs, by their names and edges; `passes` shorten a function."""
    assert graph.calls is not None
    labels, edges = outputs
    order = _live(graph, edges)
    used = _used(graph, graph.calls, order)
    emission = _CallEmission(graph, graph.calls, (*variables, *parameters), used)
    for node in order:
        emission.lower(node)
    ends = [emission.plain((edge >> 1, -1 if edge & 1 else 1)) for edge in edges]
    results = list(zip(labels, ends, strict=True))
    program = hoisted(name, tuple(variables), tuple(parameters), emission.instructions, results)
    functions = tuple(_function(graph.calls, number, picked, passes) for number, picked in used.items())
    return Program(
        program.name, program.variables, program.parameters, program.instructions, program.setup, program.outputs,
        functions,
    ).pruned()  # fmt: skip


def _live(graph: Graph, edges: list[int]) -> list[int]:
    """Nodes that outputs need, arguments first."""
    live = [False] * len(graph.op)
    for edge in edges:
        live[edge >> 1] = True
    for node in range(len(live) - 1, -1, -1):  # a node is younger than its arguments
        if live[node]:
            for edge in graph.arguments(node):
                live[edge >> 1] = True
    return [node for node, is_live in enumerate(live) if is_live]


def _used(graph: Graph, calls: Calls, order: list[int]) -> dict[int, list[int]]:
    """Of each function that is called, the outputs that some call of it needs."""
    used_outputs: dict[int, set[int]] = defaultdict(set)
    for node in order:
        if graph.op[node] == PICK and graph.op[graph.a[node] >> 1] == CALL:
            used_outputs[calls.made[graph.a[graph.a[node] >> 1]].function].add(graph.b[node])
    return {function: sorted(outputs) for function, outputs in sorted(used_outputs.items())}


def _function(calls: Calls, number: int, picked: list[int], passes: Passes) -> Program:
    """The program of a function, after the passes."""
    traced = calls.functions[number]
    nary = passes(Nary(traced.graph, [traced.outputs[k] for k in picked]))
    return lower(nary, f"function_{number}", traced.graph.names, [], [f"y[{k}]" for k in range(len(picked))])


class _CallEmission(Emission):
    """Nodes of a graph as instructions, as they stand."""

    def __init__(self, graph: Graph, calls: Calls, inputs: Sequence[str], used: dict[int, list[int]]) -> None:
        super().__init__(inputs, deep=False)
        self.graph, self.calls = graph, calls
        self.functions = {function: place for place, function in enumerate(used)}
        self.outputs = {  # by function and output: the word of its pick
            function: {k: f"pick {place}" for place, k in enumerate(outputs)} for function, outputs in used.items()
        }

    def lower(self, node: int) -> None:
        """Emit a node whose arguments are there."""
        graph = self.graph
        op = graph.op[node]
        if op == PICK:
            self.values[node] = self._picked(node, graph.a[node] >> 1)
            return
        if op in (ADD, MUL, DIV):
            a, b = graph.a[node], graph.b[node]
            (x, s), (y, t) = self.values[a >> 1], self.values[b >> 1]
            s, t = -s if a & 1 else s, -t if b & 1 else t
            self.values[node] = self._sum(x, s, y, t) if op == ADD else (self._product(op, x, y), s * t)
            return
        edges = [(edge >> 1, -1 if edge & 1 else 1) for edge in graph.arguments(node)]
        if op == INPUT:
            self.values[node] = self.number[graph.names[graph.a[node]]], 1
        elif op == CONST:
            self.values[node] = self.constant(graph.constants[graph.a[node]]), 1
        elif op == HOLD:
            value, sign = self.values[edges[0][0]]
            self.values[node] = value, sign * edges[0][1]
        elif op == SOLVE:
            self.picks[node] = self.solved(graph.systems[graph.a[node]][0], [self.plain(edge) for edge in edges])
        elif op == CALL:
            number = self.calls.made[graph.a[node]].function
            if number in self.functions:
                called = self.emit(f"call {self.functions[number]}", *(self.plain(edge) for edge in edges))
                self.values[node] = called, 1
        else:
            self.values[node] = self.function(op, [self.plain(edge) for edge in edges]), 1

    def _sum(self, x: int, s: int, y: int, t: int) -> tuple[int, int]:
        if s == t:
            return self.emit("add", *sorted((x, y))), s
        return (self.emit("sub", x, y), s) if s > 0 else (self.emit("sub", y, x), t)

    def _product(self, op: int, x: int, y: int) -> int:
        return self.emit("div", x, y) if op == DIV else self.emit("mul", *sorted((x, y)))

    def _picked(self, node: int, source: int) -> tuple[int, int]:
        graph = self.graph
        if graph.op[source] == SOLVE:
            return self.picks[source][graph.b[node]]
        outputs = self.outputs[self.calls.made[graph.a[source]].function]
        return self.emit(outputs[graph.b[node]], self.values[source][0]), 1


def depth_first(program: Program) -> Program:
    """The same program without setup, its instructions in the order in which outputs ask for them, one by one."""
    base, instructions = len(program.inputs), program.instructions
    register_needs = _sethi_ullman_numbers(program)
    number = {k: k for k in range(base)}
    order: list[int] = []
    for _, output in program.outputs:
        stack = [output]
        while stack:
            k = stack[-1]
            if k in number:
                stack.pop()
                continue
            operation, *arguments = instructions[k - base]
            missing = [] if operation == "const" else [a for a in arguments if a not in number]
            if missing:
                stack += sorted(missing, key=lambda a: register_needs[a])  # what needs most memory goes first
                continue
            number[k] = base + len(order)
            order.append(k)
            stack.pop()
    ordered = []
    for k in order:
        operation, *arguments = instructions[k - base]
        ordered.append((operation, *(arguments if operation == "const" else (number[a] for a in arguments))))
    outputs = tuple((name, number[k]) for name, k in program.outputs)
    return replace(program, instructions=tuple(ordered), setup=0, outputs=outputs)


def _sethi_ullman_numbers(program: Program) -> list[int]:
    """How many values wait at a time while each one is made, as if none were used twice."""
    register_needs = [0] * len(program.inputs)
    for operation, *arguments in program.instructions:
        needed = [] if operation == "const" else sorted((register_needs[a] for a in arguments), reverse=True)
        register_needs.append(max([1, *(x + k for k, x in enumerate(needed))]))
    return register_needs


def repeated_sums_as_products(program: Program) -> Program:
    """The same program without setup or calls, with products in the place of such sums."""
    base, instructions = len(program.inputs), program.instructions
    uses = Counter(a for word, *arguments in instructions if word != "const" for a in arguments)
    uses.update(k for _, k in program.outputs)
    sums: dict[int, dict[int, tuple[int, int]]] = {}  # of a value, by what is added: what to, and how often
    for index, (word, *arguments) in enumerate(instructions):
        if word != "add":
            continue
        a, b = arguments
        addends = sums[base + index] = {b: (a, 1), a: (b, 1)}
        for before, more in ((a, b), (b, a)):
            if more in sums.get(before, ()) and uses[before] == 1:
                start, count = sums[before][more]
                addends[more] = (start, count + 1)
    needed = {k for _, k in program.outputs}
    products: dict[int, tuple[int, int, int]] = {}
    for index in range(len(instructions) - 1, -1, -1):
        k, (word, *arguments) = base + index, instructions[index]
        if k not in needed or word == "const":
            continue
        more, (start, count) = max(sums.get(k, {-1: (-1, 0)}).items(), key=lambda item: item[1][1])
        if count >= LEAST:
            products[k], arguments = (start, more, count), [start, more]
        needed.update(arguments)
    number = {k: k for k in range(base)}
    modified: list[Instruction] = []

    def add(*instruction: object) -> int:
        modified.append(instruction)
        return base + len(modified) - 1

    for index, (word, *arguments) in enumerate(instructions):
        k = base + index
        if k not in needed:
            continue
        if k in products:
            start, more, count = products[k]
            product = add("mul", add("const", float(count)), number[more])
            number[k] = add("add", number[start], product)
        else:
            number[k] = add(word, *(arguments if word == "const" else [number[a] for a in arguments]))
    outputs = tuple((name, number[k]) for name, k in program.outputs)
    return replace(program, instructions=tuple(modified), outputs=outputs)
