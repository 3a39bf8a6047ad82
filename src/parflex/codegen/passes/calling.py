"""From a trace with calls to a program that calls functions.

Passes shorten the functions, each once; what is left between the calls is written down as it stands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from parflex.codegen.passes.lower import Emission, hoisted, lower
from parflex.codegen.passes.nary import Nary
from parflex.codegen.program import Program
from parflex.symbolic.expression import ADD, CALL, CONST, DIV, HOLD, INPUT, MUL, PICK, SOLVE, Calls, Graph

Passes = Callable[[Nary], Nary]


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
    emission = _Straight(graph, graph.calls, (*variables, *parameters), used)
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
    found: dict[int, set[int]] = defaultdict(set)
    for node in order:
        if graph.op[node] == PICK and graph.op[graph.a[node] >> 1] == CALL:
            found[calls.made[graph.a[graph.a[node] >> 1]].function].add(graph.b[node])
    return {function: sorted(outputs) for function, outputs in sorted(found.items())}


def _function(calls: Calls, number: int, picked: list[int], passes: Passes) -> Program:
    """The program of a function, after the passes."""
    traced = calls.functions[number]
    nary = passes(Nary(traced.graph, [traced.outputs[k] for k in picked]))
    return lower(nary, f"function_{number}", traced.graph.names, [], [f"y[{k}]" for k in range(len(picked))])


class _Straight(Emission):
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
