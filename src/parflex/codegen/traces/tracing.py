"""What a trace is made of: symbols in named groups, and the options of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from parflex.graph.calls import Calls
from parflex.graph.expression import Expression, Graph, known_angle
from parflex.models.forms import Question
from parflex.records import Record
from parflex.tree import Tree

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


@dataclass(frozen=True)
class Options:
    """What a model keeps: symbolic parameters, what is left out, what acts, and which rates must be independent."""

    parameters: str | Sequence[str] = "numbers"
    without: tuple[str, ...] = ()  # what of the robot does not act, of models.terms
    wrenches: tuple[str, ...] = ()  # frames on which a wrench acts
    friction_width: float = 0.0  # rate over which Coulomb friction changes its sign
    independent: tuple[str, ...] = ()  # rates that must be so, of models of a state; none: the model chooses
    rows: tuple[int, ...] = ()  # of the closures, that give the others; none: chosen at home
    coordinates: str | None = None  # in which motions are given; None: in those of the form
    checks: bool = False  # whether outputs tell how well the inputs fit the loops
    weights: tuple[tuple[str, float], ...] = ()  # of spare motors: parameters of the program, with their values
    preload: tuple[tuple[str, float], ...] = ()
    limits: tuple[tuple[str, float, float], ...] = ()
    calls: bool = False  # whether functions of alike elements are called, and not written out for each

    def new_graph(self) -> Graph:
        """An empty graph for a trace."""
        graph = Graph()
        graph.calls = Calls() if self.calls else None
        return graph

    def question(self, model: str, family: bool = False) -> Question:
        """What a model with these options asks of a form."""
        return Question(
            model, self.wrenches, self.independent, self.rows, self.parameters != "numbers", family, known_angle,
            coordinates=self.coordinates,
        )  # fmt: skip
