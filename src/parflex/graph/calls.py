"""Functions of alike things as nodes of a graph: traced once, called with the numbers of each.

A robot with many elements of one kind is a long trace in which the same few functions stand again and again. Where a
graph has `calls`, such a function is a graph of its own, and what stands in the long one is a call with its arguments.
Two calls are alike if their functions are, and if zeros, ones and equal arguments stand in the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pickle import dumps
from typing import Any

from numpy import array, asarray, ndarray

from parflex.graph.expression import CALL, INPUT, PICK, Expression, Graph, Scalar

LITERAL = (0.0, 1.0, -1.0)  # numbers that make a function shorter; others are arguments


@dataclass(frozen=True)
class Traced:
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
        self.functions: list[Traced] = []
        self.made: list[Call] = []
        self._numbers: dict[Hashable, int] = {}  # of functions, by key and pattern of arguments
        self._written: dict[Hashable, int] = {}  # and by what they compute
        self._nodes: dict[Call, int] = {}
        self._things: dict[int, tuple[Any, int]] = {}  # in keys, by identity, which lives as long as they do
        self._contents: dict[bytes, int] = {}

    def call(
        self, graph: Graph, function: Callable[..., tuple[ndarray, ...]], key: Any, arrays: Sequence[Any]
    ) -> tuple[ndarray, ...]:
        """Results of a function of arrays, as picks of a call."""
        arrays = [asarray(values) for values in arrays]
        edges, pattern, literal = _pattern(graph, arrays)
        if not edges:
            return function(*arrays)
        whole = (self._named(key), tuple(values.shape for values in arrays), pattern, literal)
        number = self._numbers.get(whole)
        if number is None:
            number = self._numbers[whole] = self._number_of(_traced(function, arrays, pattern, literal))
        traced = self.functions[number]
        node = self._node(graph, Call(number, tuple(edges))) if traced.outputs else 0
        values = [_result(graph, node, edges, *result) for result in traced.results]
        found, start = [], 0
        for shape in traced.shapes:
            part = array(values[start : start + _size(shape)] or 0.0, dtype=object)
            found.append(part.reshape(shape) if _size(shape) else part.reshape(-1)[:0].reshape(shape))
            start += _size(shape)
        return tuple(found)

    def _named(self, key: Any) -> Hashable:
        """A key with numbers for the things in it: those that hold the same have the same."""
        if isinstance(key, tuple):
            return tuple(self._named(part) for part in key)
        if key is None or isinstance(key, (bool, int, str)):
            return key
        if id(key) not in self._things:
            self._things[id(key)] = key, self._contents.setdefault(dumps(key), len(self._contents))
        return "thing", self._things[id(key)][1]

    def _node(self, graph: Graph, call: Call) -> int:
        if call not in self._nodes:
            self._nodes[call] = graph.new(CALL, len(self.made), 0)
            self.made.append(call)
        return self._nodes[call]

    def _number_of(self, traced: Traced) -> int:
        """Of a function; those that compute the same are one."""
        graph = traced.graph
        what = (
            *(tuple(part) for part in (graph.op, graph.a, graph.b, graph.constants, graph.systems)),
            *(traced.outputs, traced.results, traced.shapes),
        )
        if what not in self._written:
            self._written[what] = len(self.functions)
            self.functions.append(traced)
        return self._written[what]


def _size(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _pattern(graph: Graph, arrays: Sequence[ndarray]) -> tuple[list[int], tuple[int, ...], tuple[float, ...]]:
    """Edges of the arguments, of each entry its argument with a sign (-1: a literal), and the literals."""
    edges: list[int] = []
    places: dict[int, int] = {}  # node -> place among the arguments
    pattern: list[int] = []
    literal: list[float] = []
    for values in arrays:
        for value in values.flat:
            if value.__class__ is not Expression and value in LITERAL:
                pattern.append(-1)
                literal.append(float(value))
                continue
            edge = value.edge if value.__class__ is Expression else graph.edge(value)
            node = edge >> 1
            place = places.get(node)
            if place is None:
                place = places[node] = len(edges)
                edges.append(edge)
            pattern.append(place << 1 | ((edge ^ edges[place]) & 1))
    return edges, tuple(pattern), tuple(literal)


def _traced(
    function: Callable[..., tuple[ndarray, ...]],
    arrays: Sequence[ndarray],
    pattern: tuple[int, ...],
    literal: tuple[float, ...],
) -> Traced:
    """A function over symbols of its own."""
    graph, numbers = Graph(), iter(literal)
    symbols = [graph.symbol(f"x[{k}]") for k in range(1 + max(pattern) // 2)]
    entries: list[Scalar] = []
    for place in pattern:
        symbol = symbols[place >> 1] if place >= 0 else None
        entries.append(next(numbers) if symbol is None else -symbol if place & 1 else symbol)
    own, start = [], 0
    for values in arrays:
        part = array(entries[start : start + values.size] or 0.0, dtype=object)
        own.append(part.reshape(values.shape) if values.size else values)
        start += values.size
    found = [asarray(values) for values in function(*own)]
    outputs: dict[int, int] = {}
    results = [_kind(graph, value, outputs) for values in found for value in values.flat]
    return Traced(graph, tuple(node << 1 for node in outputs), tuple(results), tuple(values.shape for values in found))


def _kind(graph: Graph, value: Scalar, outputs: dict[int, int]) -> tuple[str, Any, int]:
    """What a result is; new outputs are noted."""
    if not isinstance(value, Expression):
        return "number", float(value), 0
    node, sign = value.edge >> 1, value.edge & 1
    if graph.op[node] == INPUT:
        return "argument", graph.a[node], sign
    return "output", outputs.setdefault(node, len(outputs)), sign


def _result(graph: Graph, node: int, edges: list[int], kind: str, which: Any, sign: int) -> Scalar:
    if kind == "number":
        return which
    edge = edges[which] if kind == "argument" else graph.node(PICK, node << 1, which) << 1
    return graph.wrap(edge ^ sign)
