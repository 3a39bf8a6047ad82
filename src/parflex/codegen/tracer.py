"""Groups of symbols of a trace: inputs, grouped bodies, parameters of effort allocation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.checks import require, short_text
from parflex.codegen.options import Options
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexWarning, did_you_mean
from parflex.forces.base_parameters import (
    PARAMETERS,
    base_parameters,
    body_from_parameters,
    body_parameters,
    grouped_tree,
    regrouped_tree,
)
from parflex.forces.effort_allocation import EffortAllocation, actuation_redundancy, is_specified, read_allocation
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.symbolic.expression import Expression, Graph
from parflex.tree.tree import Tree

Array = np.ndarray
Outputs = tuple[dict[str, Array], dict[str, list[str]]]
Groups = Mapping[str, tuple[int, ...]]
ENTRIES = 13  # mass, first moments, second moments
EFFORT_MODELS = ("inverse", "jacobian-of-inverse", "step", "pd-law", "task-law", "redundant")
LAW_MODELS = ("extended-law", "classical-law", "extended-step", "classical-step")


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


def add_gates(tracer: Tracer, tree: Tree) -> None:
    """Give the contacts of a run their gates, as the last group of inputs; nothing where the tree has none."""
    if tree.gates is not None:
        tree.gates.values = tracer.group("gates", tree.gates.count)


def grouped_robot(robot: Robot, graph: Graph, symbolic: str | Sequence[str]) -> tuple[Robot, dict[str, float]]:
    """The robot with bodies grouped, parameters of the given names as symbols; and the values of those parameters.

    `symbolic` is "numbers" (none), "base" (all base parameters) or a list of names such as `MX[leg1.2]`.
    """
    if robot.tree.elastic:
        message = "parameters of flexible robots cannot be symbols"
        require(symbolic == "numbers", message, "parameters", "omit 'parameters'")
        return robot, {}
    if symbolic == "numbers":
        return _with_tree(robot, grouped_tree(robot.tree)), {}
    if symbolic == "base":
        base = base_parameters(robot)
        source, names = base.robot.tree, base.names
    else:
        source, names = robot.tree, [symbolic] if isinstance(symbolic, str) else list(symbolic)
    known_names = [f"{parameter}[{link.name}]" for link in source.links for parameter in PARAMETERS]
    for name in names:
        if name not in known_names:
            hint = did_you_mean(name, known_names)
            raise InputError(f"there is no parameter '{name}'", key="parameters", value=name, hint=hint)
    values = np.concatenate([body_parameters(link.body.as_rigid()) for link in source.links])
    chosen = [known_names.index(name) for name in names]
    fixed_values = values.copy()
    fixed_values[chosen] = 0.0
    constant = _entries(regrouped_tree(_tree_with(source, fixed_values), "second moment"))
    # grouping is linear in the parameters, so unit parameters give its matrix
    columns = [
        _entries(regrouped_tree(_tree_with(source, unit), "second moment")) for unit in np.eye(len(values))[chosen]
    ]
    entries = [_entry(graph, number, [column[k] for column in columns], names) for k, number in enumerate(constant)]
    links = []
    for j, link in enumerate(source.links):
        m, *moments = entries[ENTRIES * j : ENTRIES * (j + 1)]
        body = RigidBody(m, np.array(moments[:3], dtype=object), np.array(moments[3:], dtype=object).reshape(3, 3))
        links.append(replace(link, body=body))
    numbers = dict(zip(names, (float(value) for value in values[chosen]), strict=True))
    return _with_tree(robot, replace(source, links=tuple(links))), numbers


def _entry(graph: Graph, number: float, weights: list[float], names: Sequence[str]) -> float | Expression:
    """A number plus a weighted sum of parameters, held as one name so that no pass takes it apart."""
    used = [(weight, name) for weight, name in zip(weights, names, strict=True) if abs(weight) > 1e-12]
    if not used:
        return float(number) if abs(number) > 1e-15 else 0.0
    value: Any = float(number) if abs(number) > 1e-15 else 0.0
    for weight, name in used:
        value = value + weight * graph.symbol(name)
    plain = len(used) == 1 and abs(abs(used[0][0]) - 1) < 1e-12 and abs(number) <= 1e-15
    return value if plain else value.hold()


def _entries(tree: Tree) -> Array:
    bodies = [link.body.as_rigid() for link in tree.links]
    return np.concatenate([[body.m, *body.S, *body.Sigma.ravel()] for body in bodies])


def _tree_with(tree: Tree, values: Array) -> Tree:
    links = [
        replace(link, body=body_from_parameters(values[10 * j : 10 * j + 10])) for j, link in enumerate(tree.links)
    ]
    return replace(tree, links=tuple(links))


def _with_tree(robot: Robot, tree: Tree) -> Robot:
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree), known_home=robot.home)


def with_allocation_options(
    robot: Robot,
    model: str,
    options: Options,
    weights: Mapping[str, float] | None,
    preload: Mapping[str, float] | None,
    effort_limit: Any,
) -> Options:
    """Return options with the effort allocation, checked for the robot and the model."""
    if not any(is_specified(value) for value in (weights, preload)):
        _warn_of_cables(robot, model)
    if not any(is_specified(value) for value in (weights, preload, effort_limit)):
        return options
    words = {"weights": weights, "preload": preload, "effort_limit": effort_limit}
    key = next(word for word, value in words.items() if is_specified(value))
    message, acts = f"'{model}' gives no efforts, so '{key}' has no effect", model in (*EFFORT_MODELS, *LAW_MODELS)
    require(acts, message, key, "leave it out", short_text(words[key]))
    allocation = read_allocation(robot, weights, preload, effort_limit)
    names = allocation.names
    lower, upper = (() if ends is None else ends for ends in (allocation.lower, allocation.upper))
    return replace(
        options,
        weights=() if allocation.weights is None else tuple(zip(names, map(float, allocation.weights), strict=True)),
        preload=tuple(zip(names, map(float, allocation.home_preload(robot)), strict=True))
        if allocation.has_preload
        else (),
        limits=tuple((name, float(a), float(b)) for name, a, b in zip(names, lower, upper, strict=False)),
    )


def _warn_of_cables(robot: Robot, model: str) -> None:
    """Warn of driven cables that may push in the efforts of least norm, which programs without a preload give."""
    cables = [link.name for link in robot.tree.links if link.pulls_only]
    if cables and model in (*EFFORT_MODELS, *LAW_MODELS) and actuation_redundancy(robot) > 0:
        text = f"'{cables[0]}' may push in efforts of least norm, which this program gives: preload the motors"
        warnings.warn(ParflexWarning(Diagnostic("pushing-cable", text, cables[0])), stacklevel=3)


def symbolic_allocation(tracer: Tracer, robot: Robot, options: Options) -> EffortAllocation:
    """Return the allocation in symbols: `weight[JOINT]`, `preload[JOINT]`, `lowest[JOINT]`, `highest[JOINT]`."""
    names = robot.actuated_names
    weights = _symbols([tracer.parameter(f"weight[{name}]", value) for name, value in options.weights])
    near = _symbols([tracer.parameter(f"preload[{name}]", value) for name, value in options.preload])
    lower = _symbols([_limit(tracer, f"lowest[{name}]", low) for name, low, _ in options.limits])
    upper = _symbols([_limit(tracer, f"highest[{name}]", high) for name, _, high in options.limits])
    return EffortAllocation(tuple(names), weights, lower=lower, upper=upper, near=near)


def _symbols(entries: list[Any]) -> Array | None:
    return np.array(entries, dtype=object) if entries else None


def _limit(tracer: Tracer, name: str, value: float) -> Any:
    return tracer.parameter(name, value) if np.isfinite(value) else value
