"""Reverse derivatives and sparsity: what one output feels of all inputs, and which outputs feel which inputs at all."""

from __future__ import annotations

from collections.abc import Sequence

from parflex.graph.derivative import slopes
from parflex.graph.expression import PICK, SOLVE, Expression, Graph, Scalar


def gradient(outputs: Sequence[Scalar], weights: Sequence[Scalar], inputs: Sequence[Expression]) -> list[Scalar]:
    """Derivative of the weighted sum of the outputs by each input, backwards through the graph in one sweep."""
    if not inputs:
        return []
    graph = inputs[0].graph
    felt: dict[int, Scalar] = {}  # derivative of the sum by each node
    for output, weight in zip(outputs, weights, strict=True):
        if isinstance(output, Expression):
            _add(felt, output.edge, weight)
    for node in sorted(_below(graph, list(felt)), reverse=True):
        op = graph.op[node]
        if op == SOLVE:
            _through_solve(graph, node, felt)
        elif op != PICK and node in felt:
            for edge, slope in zip(graph.arguments(node), slopes(graph, node), strict=True):
                _add(felt, edge, felt[node] * slope)
    return [felt.get(x.edge >> 1, 0.0) for x in inputs]


def _add(felt: dict[int, Scalar], edge: int, value: Scalar) -> None:
    if isinstance(value, float) and value == 0.0:
        return
    value = -value if edge & 1 else value
    felt[edge >> 1] = felt[edge >> 1] + value if edge >> 1 in felt else value


def _below(graph: Graph, roots: list[int]) -> set[int]:
    live: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in live:
            live.add(node)
            stack += [edge >> 1 for edge in graph.arguments(node)]
    return live


def _through_solve(graph: Graph, node: int, felt: dict[int, Scalar]) -> None:
    """For x = A^-1 b: what b feels is A^-T times what x does, what A feels is minus that times x^T.

    With more rows than unknowns the outcome is G b for a square G that pivoting makes: b feels G^T times what it does.
    """
    n, matrix, right = graph.systems[graph.a[node]]
    size = len(right)
    picks = [graph.node(PICK, node << 1, k) for k in range(size)]
    if not any(pick in felt for pick in picks):
        return
    sides = [felt.get(pick, 0.0) for pick in picks]
    if size == n:
        turned = [matrix[n * j + i] for i in range(n) for j in range(n)]
        back = [graph.wrap(edge) for edge in graph.solve(n, turned, [graph.edge(value) for value in sides])]
    else:
        units = [graph.edge(float(i == j)) for i in range(size) for j in range(size)]
        G = [graph.wrap(edge) for edge in graph.solve(n, list(matrix), units)]
        back = [sum((G[size * k + i] * sides[k] for k in range(size)), 0.0) for i in range(size)]
    for i, edge in enumerate(right):
        _add(felt, edge, back[i])
        for j in range(n):
            _add(felt, matrix[n * i + j], -(back[i] * graph.wrap(picks[j] << 1)))


def sparsity(outputs: Sequence[Scalar], inputs: Sequence[Expression]) -> list[list[bool]]:
    """Whether each output depends on each input, by structure."""
    if not inputs:
        return [[] for _ in outputs]
    graph = inputs[0].graph
    bit = {x.edge >> 1: 1 << k for k, x in enumerate(inputs)}
    roots = [y.edge >> 1 for y in outputs if isinstance(y, Expression)]
    masks: dict[int, int] = {}
    for node in sorted(_below(graph, roots)):
        mask = bit.get(node, 0)
        for edge in graph.arguments(node):
            mask |= masks[edge >> 1]
        masks[node] = mask
    rows = [masks[y.edge >> 1] if isinstance(y, Expression) else 0 for y in outputs]
    return [[bool(row >> k & 1) for k in range(len(inputs))] for row in rows]
