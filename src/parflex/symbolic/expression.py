"""Signed, hash-consed scalar expressions and calls of shared functions.

A node is an operation on earlier nodes; an edge is a node with a sign, so negation costs nothing and `a - b` and `b -
a` are one node. An edge is an integer: twice the number of the node, plus one if negative. Constants are plain floats
until they meet a symbol, so constant arithmetic folds by itself. Every rule here is exact; nothing is expanded.

A function of identical elements is traced once, as a graph of its own, and called with the numbers of each element.
Graphs with `calls` use such functions. Two calls are identical if their functions are, and if zeros, ones and equal
arguments stand in the same places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import prod
from pickle import dumps
from typing import Any

from numpy import array, asarray, empty, ndarray
from numpy import sign as numpy_sign

INPUT, CONST, ADD, MUL, DIV, SQRT, SIN, COS, SIGN, SOLVE, PICK, HOLD, ATAN2, CALL, NOT_WITHIN, EITHER = range(16)
OP_NAMES = (
    *("input", "const", "add", "mul", "div", "sqrt", "sin", "cos", "sign", "solve", "pick", "hold", "atan2"),
    *("call", "not_within", "either"),
)

Scalar = Any  # a float or an Expression
System = tuple[int, tuple[int, ...], tuple[int, ...]]  # unknowns, edges of the matrix by rows, edges of a right side
LITERAL = (0.0, 1.0, -1.0)  # numbers that make a function shorter; others are arguments


class Graph:
    """Nodes in the order in which they were made: arguments come before what uses them."""

    def __init__(self) -> None:
        self.op: list[int] = []
        self.a: list[int] = []  # edge, or index of a constant, a name or a linear system
        self.b: list[int] = []
        self.constants: list[float] = []
        self.names: list[str] = []
        self.systems: list[System] = []
        self.calls: Calls | None = None  # where functions of alike things are called instead of written out
        self.inverses: dict[tuple[int, ...], ndarray] | None = None  # of matrices by their entries, where they are kept
        self.unit_pairs: dict[int, int] = {}  # square of a cosine -> square of its sine, and back
        self._table: dict[tuple[int, int, int], int] = {}
        self._inputs: dict[str, int] = {}
        self._constant_nodes: dict[float, int] = {}
        self._systems: dict[System, int] = {}

    def __len__(self) -> int:
        return len(self.op)

    def symbol(self, name: str) -> Expression:
        """The input of this name."""
        if name not in self._inputs:
            self._inputs[name] = self.new(INPUT, len(self.names), 0)
            self.names.append(name)
        return Expression(self, self._inputs[name] << 1)

    def edge(self, value: Scalar) -> int:
        """The edge of an expression or of a number."""
        if isinstance(value, Expression):
            return value.edge
        number = float(value)
        size = abs(number)
        node = self._constant_nodes.get(size)
        if node is None:
            # numbers that differ by rounding alone, like 0.5 and cos(pi/3), are one: the short one, else the first
            rounded = float(f"{size:.15g}")
            node = self._constant_nodes.get(rounded)
            if node is None:
                node = self._constant_nodes[rounded] = self.new(CONST, len(self.constants), 0)
                self.constants.append(rounded if rounded == float(f"{size:.12g}") else size)
            self._constant_nodes[size] = node
        return node << 1 | (math.copysign(1.0, number) < 0)

    def wrap(self, edge: int) -> Scalar:
        """The expression of an edge; a float if it is a constant."""
        if self.op[edge >> 1] == CONST:
            value = self.constants[self.a[edge >> 1]]
            return -value if edge & 1 else value
        return Expression(self, edge)

    def new(self, op: int, a: int, b: int) -> int:
        """A node that is not looked for among those that are there."""
        self.op.append(op)
        self.a.append(a)
        self.b.append(b)
        return len(self.op) - 1

    def node(self, op: int, a: int, b: int = 0) -> int:
        """The node of an operation, made if it is new."""
        key = (op, a, b)
        node = self._table.get(key)
        if node is None:
            node = self._table[key] = self.new(op, a, b)
        return node

    # -- operations on edges ---------------------------------------------------------------------------

    def add(self, x: int, y: int) -> int:
        """Edge of the sum: the older node stands first and positive; the sign of the whole moves outside."""
        m, n = x >> 1, y >> 1
        if m == n:
            return self.edge(0.0) if (x ^ y) & 1 else self.mul(self.edge(2.0), x)
        if m > n:
            x, y, m, n = y, x, n, m
        merged = self._merge(x, y)
        if merged is not None:
            return merged
        sign = x & 1
        return self.node(ADD, x ^ sign, y ^ sign) << 1 | sign

    def _merge(self, x: int, y: int) -> int | None:
        """C x + d x = (c + d) x for constants, and cos^2 + sin^2 = 1; x is the older of the two, never made of y."""
        op, a, b = self.op, self.a, self.b
        m, n = x >> 1, y >> 1
        if op[m] == MUL and op[n] == MUL:
            if self.unit_pairs.get(m) == n and not (x ^ y) & 1:
                return self.edge(-1.0 if x & 1 else 1.0)
            if op[a[m] >> 1] == CONST and op[a[n] >> 1] == CONST and b[m] == b[n]:
                c, d = self._coefficient(x), self._coefficient(y)
                return self.mul(self.edge(c + d), b[m])
        elif op[n] == MUL and op[a[n] >> 1] == CONST and b[n] >> 1 == m:
            return self.mul(self.edge(self._coefficient(y) + (-1.0 if x & 1 else 1.0)), b[n])
        return None

    def _coefficient(self, x: int) -> float:
        value = self.constants[self.a[self.a[x >> 1] >> 1]]
        return -value if x & 1 else value

    def mul(self, x: int, y: int) -> int:
        """Edge of the product: both factors positive, constants first, the sign outside."""
        sign = (x ^ y) & 1
        m, n = x >> 1, y >> 1
        op = self.op
        if op[n] == CONST:
            m, n = n, m
        if op[m] == CONST:
            value = self.constants[self.a[m]]
            if value == 0.0:
                return self.edge(0.0)
            if value == 1.0:
                return n << 1 | sign
            if op[n] == CONST:
                return self.edge(value * self.constants[self.a[n]]) ^ sign
            if op[n] == MUL and op[self.a[n] >> 1] == CONST:  # c (d x) = (c d) x
                return self.mul(self.edge(value * self._coefficient(n << 1)), self.b[n]) ^ sign
        elif m > n:
            m, n = n, m
        return self.node(MUL, m << 1, n << 1) << 1 | sign

    def div(self, x: int, y: int) -> int:
        """Edge of the quotient; division by a constant is a product."""
        sign = (x ^ y) & 1
        m, n = x >> 1, y >> 1
        if self.op[n] == CONST:
            return self.mul(self.edge(1.0 / self.constants[self.a[n]]), m << 1) ^ sign
        if self.op[m] == CONST and self.constants[self.a[m]] == 0.0:
            return self.edge(0.0)
        if m == n:
            return self.edge(1.0) ^ sign
        return self.node(DIV, m << 1, n << 1) << 1 | sign

    def solve(self, size: int, matrix: list[int], rhs: list[int]) -> list[int]:
        """Edges of what pivoted elimination of `size` unknowns makes of one or more right sides (by rows).

        For as many rows as unknowns these are the solutions. More rows leave equations without the unknowns: of each
        right side first come the solutions of the rows that were pivots, then what is left of the other rows. Which
        rows these are depends on the matrix alone, so the outcome is linear in the right side.
        """
        rows = len(matrix) // size
        columns = [self._solve_column(size, tuple(matrix), rhs[c :: len(rhs) // rows]) for c in range(len(rhs) // rows)]
        return [column[i] for i in range(rows) for column in columns]

    def _solve_column(self, size: int, matrix: tuple[int, ...], rhs: list[int]) -> list[int]:
        zero = self.edge(0.0)
        first = next((edge for edge in rhs if edge >> 1 != zero >> 1), None)
        if first is None:
            return [zero] * len(rhs)
        sign = first & 1
        system = (size, matrix, tuple(edge if edge >> 1 == zero >> 1 else edge ^ sign for edge in rhs))
        if system not in self._systems:
            self._systems[system] = self.new(SOLVE, len(self.systems), 0)
            self.systems.append(system)
        node = self._systems[system] << 1
        return [self.node(PICK, node, k) << 1 | sign for k in range(len(rhs))]

    def arguments(self, node: int) -> list[int]:
        """Edges that a node uses."""
        op = self.op[node]
        if op in (ADD, MUL, DIV, ATAN2, NOT_WITHIN, EITHER):
            return [self.a[node], self.b[node]]
        if op in (SQRT, SIN, COS, SIGN, PICK, HOLD):
            return [self.a[node]]
        if op == SOLVE:
            _, matrix, rhs = self.systems[self.a[node]]
            return [*matrix, *rhs]
        if op == CALL and self.calls is not None:
            return list(self.calls.made[self.a[node]].arguments)
        return []


class Expression:
    """A symbolic scalar: NumPy's object arrays call its operators and its `sin`, `cos`, `sqrt`, `sign`."""

    __slots__ = ("edge", "graph")

    def __init__(self, graph: Graph, edge: int) -> None:
        self.graph = graph
        self.edge = edge

    def __add__(self, other: Scalar) -> Scalar:
        g = self.graph
        if other.__class__ is not Expression:
            if other.__class__ is ndarray:
                return NotImplemented  # NumPy does it entry by entry
            if other == 0:
                return self
            return g.wrap(g.add(self.edge, g.edge(other)))
        return g.wrap(g.add(self.edge, other.edge))

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Scalar:
        return self.__add__(-other)

    def __rsub__(self, other: Scalar) -> Scalar:
        return (-self).__add__(other)

    def __mul__(self, other: Scalar) -> Scalar:
        g = self.graph
        if other.__class__ is not Expression:
            if other.__class__ is ndarray:
                return NotImplemented
            if other == 0:
                return 0.0
            return g.wrap(g.mul(g.edge(other), self.edge))
        return g.wrap(g.mul(self.edge, other.edge))

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Scalar:
        g = self.graph
        if other.__class__ is ndarray:
            return NotImplemented
        return g.wrap(g.div(self.edge, g.edge(other)))

    def __rtruediv__(self, other: Scalar) -> Scalar:
        g = self.graph
        return g.wrap(g.div(g.edge(other), self.edge))

    def __pow__(self, power: Scalar) -> Scalar:
        if power == 2:
            return self * self
        if power == 0.5:
            return self.sqrt()
        raise TypeError(f"a symbol cannot be raised to the power {power!r}")

    def __neg__(self) -> Expression:
        return Expression(self.graph, self.edge ^ 1)

    def __pos__(self) -> Expression:
        return self

    def sqrt(self) -> Expression:
        """Square root."""
        return Expression(self.graph, self.graph.node(SQRT, self.edge) << 1)

    def sin(self) -> Expression:
        """Sine; the sign of the angle moves outside."""
        return self._angle()[1]

    def cos(self) -> Expression:
        """Cosine."""
        return self._angle()[0]

    def _angle(self) -> tuple[Expression, Expression]:
        g, sign = self.graph, self.edge & 1
        c, s = g.node(COS, self.edge ^ sign), g.node(SIN, self.edge ^ sign)
        mark_unit_pair(Expression(g, c << 1), Expression(g, s << 1))
        return Expression(g, c << 1), Expression(g, s << 1 | sign)

    def solve_system(self, matrix: ndarray, rhs: ndarray) -> ndarray:
        """Pivoted elimination, see `Graph.solve`; `rhs` is a vector or a matrix of columns."""
        g = self.graph
        edges = g.solve(matrix.shape[1], [g.edge(x) for x in matrix.flat], [g.edge(x) for x in rhs.flat])
        return array([g.wrap(edge) for edge in edges], dtype=object).reshape(rhs.shape)

    def kept_inverse(self, matrix: ndarray, invert: Callable[[ndarray], ndarray]) -> ndarray | None:
        """The inverse that serves all systems of a matrix and of its transpose; None where none are kept."""
        kept = self.graph.inverses
        if kept is None:
            return None
        key, transposed = (tuple(self.graph.edge(x) for x in entries) for entries in (matrix.flat, matrix.T.flat))
        if key not in kept:
            kept[key] = kept[transposed].T if transposed in kept else invert(matrix)
        return kept[key]

    @property
    def calls_alike(self) -> bool:
        """Whether its graph calls functions of alike things instead of writing them out."""
        return self.graph.calls is not None

    def alike(self, function: Callable[..., tuple[ndarray, ...]], key: Any, arrays: Any) -> tuple[ndarray, ...]:
        """Results of a function that is the same for equal keys, by a call."""
        assert self.graph.calls is not None
        return self.graph.calls.call(self.graph, function, key, arrays)

    def hold(self) -> Expression:
        """The same value as a name of its own: passes do not expand it. For what is set up once from parameters."""
        return Expression(self.graph, self.graph.node(HOLD, self.edge) << 1)

    def arctan2(self, other: Scalar) -> Expression:
        """Angle of the point (other, self)."""
        g = self.graph
        return Expression(g, g.node(ATAN2, self.edge, g.edge(other)) << 1)

    def not_within(self, limit: float) -> Expression:
        """Return 0 where the absolute value is below a limit, else 1: also where it is not a number."""
        g = self.graph
        return Expression(g, g.node(NOT_WITHIN, self.edge & ~1, g.edge(limit)) << 1)

    def either(self, other: Expression) -> Expression:
        """Return 1 where one of two flags is 1, else 0."""
        g = self.graph
        return Expression(g, g.node(EITHER, self.edge, other.edge) << 1)

    def sign(self) -> Expression:
        """-1, 0 or 1."""
        g, sign = self.graph, self.edge & 1
        return Expression(g, g.node(SIGN, self.edge ^ sign) << 1 | sign)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions call methods of objects, but for `sign`, which compares: here it does not."""
        if ufunc is numpy_sign:
            return self.sign()
        return getattr(ufunc, method)(*(array(x, dtype=object) if x is self else x for x in inputs), **options)

    def __repr__(self) -> str:
        node = self.edge >> 1
        return f"{'-' if self.edge & 1 else ''}{OP_NAMES[self.graph.op[node]]}{node}"


def mark_unit_pair(c: Expression, s: Expression) -> None:
    """Tell the graph that c^2 + s^2 = 1."""
    g = c.graph
    first, second = g.mul(c.edge, c.edge) >> 1, g.mul(s.edge, s.edge) >> 1
    g.unit_pairs[first] = second
    g.unit_pairs[second] = first


@dataclass(frozen=True)
class KnownAngle:
    """An angle of which cosine and sine are known, so that no trigonometry is needed."""

    _cos: Scalar
    _sin: Scalar

    def cos(self) -> Scalar:
        """Cosine."""
        return self._cos

    def sin(self) -> Scalar:
        """Sine."""
        return self._sin


def known_angle(cos: Scalar, sin: Scalar) -> KnownAngle:
    """The angle with this cosine and sine."""
    if isinstance(cos, Expression) and isinstance(sin, Expression):
        mark_unit_pair(cos, sin)
    return KnownAngle(cos, sin)


@dataclass(frozen=True)
class TracedFunction:
    """A function as a graph of its own: of each result a number, an argument or an output, with its shape."""

    graph: Graph
    outputs: tuple[int, ...]  # edges, positive
    results: tuple[tuple[str, Any, int], ...]  # "number", "argument" or "output"; which one, and its sign
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Call:
    """A function, by its number, and the edges of its arguments."""

    function: int
    arguments: tuple[int, ...]


class Calls:
    """Functions that a graph calls, and the calls."""

    def __init__(self) -> None:
        self.functions: list[TracedFunction] = []
        self.made: list[Call] = []
        self._numbers: dict[Hashable, int] = {}  # of functions, by key and pattern of arguments
        self._written: dict[Hashable, int] = {}  # and by what they compute
        self._nodes: dict[Call, int] = {}
        self._key_objects: dict[int, tuple[Any, int]] = {}  # in keys, by identity, which lives as long as they do
        self._key_contents: dict[bytes, int] = {}

    def call(
        self, graph: Graph, function: Callable[..., tuple[ndarray, ...]], key: Any, arrays: Sequence[Any]
    ) -> tuple[ndarray, ...]:
        """Results of a function of arrays, as picks of a call."""
        arrays = [asarray(values) for values in arrays]
        edges, pattern, literals = _pattern(graph, arrays)
        if not edges:
            return function(*arrays)
        signature = (self._named(key), tuple(values.shape for values in arrays), pattern, literals)
        function_index = self._numbers.get(signature)
        if function_index is None:
            function_index = self._numbers[signature] = self._function_index(
                _traced(function, arrays, pattern, literals)
            )
        traced = self.functions[function_index]
        node = self._node(graph, Call(function_index, tuple(edges))) if traced.outputs else 0
        values = [_result(graph, node, edges, *result) for result in traced.results]
        return tuple(_reshaped(values, traced.shapes))

    def _named(self, key: Any) -> Hashable:
        """A key with numbers for the things in it: those that hold the same have the same."""
        if isinstance(key, tuple):
            return tuple(self._named(part) for part in key)
        if key is None or isinstance(key, (bool, int, str)):
            return key
        if id(key) not in self._key_objects:
            self._key_objects[id(key)] = key, self._key_contents.setdefault(dumps(key), len(self._key_contents))
        return "thing", self._key_objects[id(key)][1]

    def _node(self, graph: Graph, call: Call) -> int:
        if call not in self._nodes:
            self._nodes[call] = graph.new(CALL, len(self.made), 0)
            self.made.append(call)
        return self._nodes[call]

    def _function_index(self, traced: TracedFunction) -> int:
        """Of a function; those that compute the same are one."""
        graph = traced.graph
        content = (
            *(tuple(part) for part in (graph.op, graph.a, graph.b, graph.constants, graph.systems)),
            *(traced.outputs, traced.results, traced.shapes),
        )
        if content not in self._written:
            self._written[content] = len(self.functions)
            self.functions.append(traced)
        return self._written[content]


def _reshaped(entries: list[Scalar], shapes: Sequence[tuple[int, ...]]) -> list[ndarray]:
    """Arrays of these shapes from all their entries, one after the other."""
    remaining, results = iter(entries), []
    for shape in shapes:
        values = empty(prod(shape), dtype=object)
        values[:] = [next(remaining) for _ in range(prod(shape))]
        results.append(values.reshape(shape))
    return results


def _pattern(graph: Graph, arrays: Sequence[ndarray]) -> tuple[list[int], tuple[int, ...], tuple[float, ...]]:
    """Edges of the arguments, of each entry its argument with a sign (-1: a literal), and the literals."""
    edges: list[int] = []
    argument_indices: dict[int, int] = {}  # node -> place among the arguments
    pattern: list[int] = []
    literals: list[float] = []
    for values in arrays:
        for value in values.flat:
            if value.__class__ is not Expression and value in LITERAL:
                pattern.append(-1)
                literals.append(float(value))
                continue
            edge = value.edge if value.__class__ is Expression else graph.edge(value)
            node = edge >> 1
            index = argument_indices.get(node)
            if index is None:
                index = argument_indices[node] = len(edges)
                edges.append(edge)
            pattern.append(index << 1 | ((edge ^ edges[index]) & 1))
    return edges, tuple(pattern), tuple(literals)


def _traced(
    function: Callable[..., tuple[ndarray, ...]],
    arrays: Sequence[ndarray],
    pattern: tuple[int, ...],
    literals: tuple[float, ...],
) -> TracedFunction:
    """A function over symbols of its own."""
    graph, literal_values = Graph(), iter(literals)
    symbols = [graph.symbol(f"x[{k}]") for k in range(1 + max(pattern) // 2)]
    entries: list[Scalar] = []
    for code in pattern:
        symbol = symbols[code >> 1] if code >= 0 else None
        entries.append(next(literal_values) if symbol is None else -symbol if code & 1 else symbol)
    arguments = _reshaped(entries, [values.shape for values in arrays])
    returned = [asarray(values) for values in function(*arguments)]
    outputs: dict[int, int] = {}
    results = [_kind(graph, value, outputs) for values in returned for value in values.flat]
    return TracedFunction(
        graph, tuple(node << 1 for node in outputs), tuple(results), tuple(values.shape for values in returned)
    )


def _kind(graph: Graph, value: Scalar, outputs: dict[int, int]) -> tuple[str, Any, int]:
    """What a result is; new outputs are noted."""
    if not isinstance(value, Expression):
        return "number", float(value), 0
    node, sign = value.edge >> 1, value.edge & 1
    if graph.op[node] == INPUT:
        return "argument", graph.a[node], sign
    return "output", outputs.setdefault(node, len(outputs)), sign


def _result(graph: Graph, node: int, edges: list[int], kind: str, index: Any, sign: int) -> Scalar:
    if kind == "number":
        return index
    edge = edges[index] if kind == "argument" else graph.node(PICK, node << 1, index) << 1
    return graph.wrap(edge ^ sign)
