"""Exact forward and reverse derivatives of expression graphs."""

from __future__ import annotations

from collections.abc import Sequence

from parflex.symbolic import expression
from parflex.symbolic.expression import INPUT, PICK, SOLVE, Expression, Graph, Scalar

Row = dict[int, Scalar]  # derivative by each input node that matters


def jacobian(outputs: Sequence[Scalar], inputs: Sequence[Expression]) -> list[list[Scalar]]:
    """Derivatives of the outputs by the inputs, forward through the graph; what does not depend is 0.0."""
    if not inputs:
        return [[] for _ in outputs]
    graph = inputs[0].graph
    columns = {x.edge >> 1: k for k, x in enumerate(inputs)}
    rows: dict[int, Row] = {}
    solutions: dict[int, dict[int, list[Scalar]]] = {}
    for node in sorted(_below(graph, [y.edge >> 1 for y in outputs if isinstance(y, Expression)])):
        rows[node] = _row(graph, node, columns, rows, solutions)
    result = []
    for y in outputs:
        row: list[Scalar] = [0.0] * len(inputs)
        if isinstance(y, Expression):
            for node, value in rows[y.edge >> 1].items():
                row[columns[node]] = -value if y.edge & 1 else value
        result.append(row)
    return result


def _row(graph: Graph, node: int, inputs: dict[int, int], rows: dict[int, Row], solutions: dict) -> Row:
    op = graph.op[node]
    if op == INPUT:
        return {node: 1.0} if node in inputs else {}
    if op == SOLVE:
        solutions[node] = _solve_derivatives(graph, node, rows)
        return {}
    if op == PICK:
        system, index = graph.a[node] >> 1, graph.b[node]
        return {x: values[index] for x, values in solutions[system].items()}
    edges = graph.arguments(node)
    if not edges or not any(rows[edge >> 1] for edge in edges):
        return {}
    return _combined(edges, slopes(graph, node), rows)


def slopes(graph: Graph, node: int) -> list[Scalar]:
    """Derivatives of a node by its arguments, the signs of the edges left out."""
    operands = [graph.wrap(edge) for edge in graph.arguments(node)]
    node_value = graph.wrap(node << 1)
    match graph.op[node]:
        case expression.ADD:
            return [1.0, 1.0]
        case expression.MUL:
            return [operands[1], operands[0]]
        case expression.DIV:
            return [1.0 / operands[1], -node_value / operands[1]]
        case expression.SQRT:
            return [0.5 / node_value]
        case expression.SIN:
            return [operands[0].cos()]
        case expression.COS:
            return [-operands[0].sin()]
        case expression.HOLD:
            return [1.0]
        case expression.ATAN2:
            square = operands[0] * operands[0] + operands[1] * operands[1]
            return [operands[1] / square, -operands[0] / square]
        case _:  # a sign and a comparison are flat
            return [0.0] * len(operands)


def _combined(edges: list[int], slopes: list[Scalar], rows: dict[int, Row]) -> Row:
    """Sum of slope times inner derivative, the sign of each edge included."""
    result: Row = {}
    for edge, slope in zip(edges, slopes, strict=True):
        for x, inner in rows[edge >> 1].items():
            term = slope * inner
            term = -term if edge & 1 else term
            result[x] = result[x] + term if x in result else term
    return {x: value for x, value in result.items() if not (isinstance(value, float) and value == 0.0)}


def _solve_derivatives(graph: Graph, node: int, rows: dict[int, Row]) -> dict[int, list[Scalar]]:
    """d(A^-1 b) = A^-1 (db - dA x), all inputs as right sides of one system.

    The same holds for the rows that are left of a system with more rows than unknowns: they are b_2 - A_2 x.
    """
    n, matrix, rhs = graph.systems[graph.a[node]]
    active_inputs = sorted({x for edge in (*matrix, *rhs) for x in rows[edge >> 1]})
    if not active_inputs:
        return {}

    def slope(edge: int, x: int) -> Scalar:
        value = rows[edge >> 1].get(x, 0.0)
        return -value if edge & 1 else value

    solution = [graph.wrap(graph.node(PICK, node << 1, k) << 1) for k in range(n)]
    rhs_derivatives: list[Scalar] = []
    for i, edge in enumerate(rhs):
        for x in active_inputs:
            value = slope(edge, x)
            for j in range(n):
                value = value - slope(matrix[n * i + j], x) * solution[j]
            rhs_derivatives.append(value)
    edges = graph.solve(n, list(matrix), [graph.edge(value) for value in rhs_derivatives])
    width = len(active_inputs)
    return {x: [graph.wrap(edge) for edge in edges[m::width]] for m, x in enumerate(active_inputs)}


def gradient(outputs: Sequence[Scalar], weights: Sequence[Scalar], inputs: Sequence[Expression]) -> list[Scalar]:
    """Derivative of the weighted sum of the outputs by each input, backwards through the graph in one sweep."""
    if not inputs:
        return []
    graph = inputs[0].graph
    adjoints: dict[int, Scalar] = {}  # derivative of the sum by each node
    for output, weight in zip(outputs, weights, strict=True):
        if isinstance(output, Expression):
            _add(adjoints, output.edge, weight)
    for node in sorted(_below(graph, list(adjoints)), reverse=True):
        op = graph.op[node]
        if op == SOLVE:
            _solve_adjoints(graph, node, adjoints)
        elif op != PICK and node in adjoints:
            for edge, slope in zip(graph.arguments(node), slopes(graph, node), strict=True):
                _add(adjoints, edge, adjoints[node] * slope)
    return [adjoints.get(x.edge >> 1, 0.0) for x in inputs]


def _add(adjoints: dict[int, Scalar], edge: int, value: Scalar) -> None:
    if isinstance(value, float) and value == 0.0:
        return
    value = -value if edge & 1 else value
    adjoints[edge >> 1] = adjoints[edge >> 1] + value if edge >> 1 in adjoints else value


def _below(graph: Graph, roots: list[int]) -> set[int]:
    """The nodes that these use, themselves among them."""
    live: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node not in live:
            live.add(node)
            stack += [edge >> 1 for edge in graph.arguments(node)]
    return live


def _solve_adjoints(graph: Graph, node: int, adjoints: dict[int, Scalar]) -> None:
    """For x = A^-1 b: what b feels is A^-T times what x does, what A feels is minus that times x^T.

    With more rows than unknowns the outcome is G b for a square G that pivoting makes: b feels G^T times what it does.
    """
    n, matrix, rhs = graph.systems[graph.a[node]]
    size = len(rhs)
    picks = [graph.node(PICK, node << 1, k) for k in range(size)]
    if not any(pick in adjoints for pick in picks):
        return
    pick_adjoints = [adjoints.get(pick, 0.0) for pick in picks]
    if size == n:
        transposed = [matrix[n * j + i] for i in range(n) for j in range(n)]
        rhs_adjoints = [
            graph.wrap(edge) for edge in graph.solve(n, transposed, [graph.edge(value) for value in pick_adjoints])
        ]
    else:
        units = [graph.edge(float(i == j)) for i in range(size) for j in range(size)]
        G = [graph.wrap(edge) for edge in graph.solve(n, list(matrix), units)]
        rhs_adjoints = [sum((G[size * k + i] * pick_adjoints[k] for k in range(size)), 0.0) for i in range(size)]
    for i, edge in enumerate(rhs):
        _add(adjoints, edge, rhs_adjoints[i])
        for j in range(n):
            _add(adjoints, matrix[n * i + j], -(rhs_adjoints[i] * graph.wrap(picks[j] << 1)))
