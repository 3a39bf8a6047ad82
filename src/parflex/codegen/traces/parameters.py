"""Bodies as the programs see them: grouped so that fewest operators are needed, numbers or symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.errors import InputError, did_you_mean
from parflex.forces.base_parameters import (
    PARAMETERS,
    base_parameters,
    body_from_parameters,
    body_parameters,
    grouped_tree,
    regrouped_tree,
)
from parflex.robot.robot import Robot
from parflex.symbolic.expression import Expression, Graph
from parflex.tree.tree import Tree

Array = np.ndarray
ENTRIES = 13  # mass, first moments, second moments


def grouped_robot(robot: Robot, graph: Graph, symbolic: str | Sequence[str]) -> tuple[Robot, dict[str, float]]:
    """The robot with bodies grouped, parameters of the given names as symbols; and the values of those parameters.

    `symbolic` is "numbers" (none), "base" (all base parameters) or a list of names such as `MX[leg1.2]`.
    """
    if robot.tree.elastic:
        if symbolic != "numbers":
            raise InputError(
                "parameters of flexible robots cannot be symbols", key="parameters", hint="omit 'parameters'"
            )
        return robot, {}
    if symbolic == "numbers":
        return _with_tree(robot, grouped_tree(robot.tree)), {}
    if symbolic == "base":
        base = base_parameters(robot)
        source, names = base.robot.tree, base.names
    else:
        source, names = robot.tree, [symbolic] if isinstance(symbolic, str) else list(symbolic)
    known = [f"{parameter}[{link.name}]" for link in source.links for parameter in PARAMETERS]
    for name in names:
        if name not in known:
            raise InputError(
                f"there is no parameter '{name}'", key="parameters", value=name, hint=did_you_mean(name, known)
            )
    values = np.concatenate([body_parameters(link.body.as_rigid()) for link in source.links])
    chosen = [known.index(name) for name in names]
    rest = values.copy()
    rest[chosen] = 0.0
    constant = _entries(regrouped_tree(_tree_with(source, rest), "second moment"))
    # grouping is linear in the parameters, so unit parameters give its matrix
    columns = [
        _entries(regrouped_tree(_tree_with(source, unit), "second moment")) for unit in np.eye(len(values))[chosen]
    ]
    entries = [_entry(graph, number, [column[k] for column in columns], names) for k, number in enumerate(constant)]
    links = []
    for j, link in enumerate(source.links):
        m, *rest_of = entries[ENTRIES * j : ENTRIES * (j + 1)]
        body = RigidBody(m, np.array(rest_of[:3], dtype=object), np.array(rest_of[3:], dtype=object).reshape(3, 3))
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
