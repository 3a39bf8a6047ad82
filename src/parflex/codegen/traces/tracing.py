"""What a trace is made of: symbols in named groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from parflex.codegen.model_options import Options
from parflex.records import Record
from parflex.symbolic.expression import Expression, Graph
from parflex.tree.tree import Tree

Array = np.ndarray
Outputs = tuple[dict[str, Array], dict[str, list[str]]]
Groups = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Record):
    """Expressions of a model: groups of inputs and outputs by name, values of symbolic parameters."""

    model: str
    form: str  # in which it is written
    graph: Graph
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    parameters: dict[str, float] = field(default_factory=dict)
    labels: dict[str, list[str]] = field(default_factory=dict)  # what the entries of a group are
    independent: list[str] = field(default_factory=list)  # rates that the form takes as such
    read: list[str] = field(default_factory=list)  # rates of coordinates that were asked for, of which the rest follows


class Tracer:
    """Makes symbols and remembers the groups of inputs."""

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = Graph() if graph is None else graph
        self.inputs: dict[str, Array] = {}
        self.parameters: dict[str, float] = {}

    def group(self, name: str, *shape: int) -> Array:
        """New symbols `name[i,j]` as one group of inputs."""
        entries = np.empty(shape, dtype=object)
        for index in np.ndindex(*shape):
            entries[index] = self.graph.symbol(f"{name}[{','.join(map(str, index))}]")
        self.inputs[name] = entries
        return entries

    def groups(self, shapes: Groups) -> dict[str, Array]:
        """New symbols of several groups."""
        return {name: self.group(name, *shape) for name, shape in shapes.items()}

    def parameter(self, name: str, value: float) -> Expression:
        """A number that can be changed without making the program again."""
        self.parameters[name] = value
        return self.graph.symbol(name)


def open_gates(tracer: Tracer, tree: Tree) -> None:
    """Give the contacts of a run their gates, as the last group of inputs; nothing where the tree has none."""
    if tree.gates is not None:
        tree.gates.values = tracer.group("gates", tree.gates.count)


__all__ = ["Groups", "Options", "Outputs", "Trace", "Tracer", "open_gates"]
