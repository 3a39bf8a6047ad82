"""From outputs of a trace to a program: passes in order, then instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.checks import require
from parflex.codegen import passes
from parflex.codegen.lower import calling_program, lower
from parflex.codegen.nary import Nary
from parflex.codegen.options import OPERATOR_LIMIT
from parflex.codegen.passes import collect, parallel_axes
from parflex.codegen.program import Program
from parflex.errors import SingularError
from parflex.symbolic.expression import Expression, Graph

ROUNDS = 3
COLLECT_LIMIT = 8_000  # nodes beyond which collecting numbers would double the time for less than a percent
PASS_LIMIT = 60_000  # nodes beyond which only the cheap passes run


def make_program(
    graph: Graph,
    name: str,
    outputs: Mapping[str, Any],
    parameters: Sequence[str] = (),
    limit: int = OPERATOR_LIMIT,
    quick: bool = False,
) -> Program:
    """The optimised program of named outputs; a value may be an array, whose entries get numbers behind the name.

    `quick` leaves the passes out: for programs that are made at once and run a few times.
    """
    message = f"the program has {len(graph)} operators, more than the limit of {limit}"
    hint = "use fewer elements or reduce the links; model and export also take a larger operator_limit"
    require(len(graph) <= limit, message, "operator-limit", hint, len(graph))
    flat = flatten_names(outputs)
    edges = [graph.edge(value) if not isinstance(value, Expression) else value.edge for value in flat.values()]
    try:
        if graph.calls is not None:
            return calling_program(graph, name, *_inputs(graph, parameters), (list(flat), edges), _optimised_function)
        program = Nary(graph, edges) if quick else optimise(Nary(graph, edges), thorough=len(graph) <= PASS_LIMIT)
    except ZeroDivisionError:
        message = "the model is undefined: it divides by zero in every state"
        cause = "because a joint moves nothing that has inertia"
        hint = "include the motor inertia (motor-inertia), or give an inertia to what the joint moves"
        raise SingularError(f"{message}, {cause}", key="MODEL", value=name, hint=hint) from None
    return lower(program, name, *_inputs(graph, parameters), list(flat))


def _optimised_function(program: Nary) -> Nary:
    """A function after the passes that take as long as they are worth for what is made once."""
    simplify(program, thorough=False)
    passes.share(program)
    return program


def _inputs(graph: Graph, parameters: Sequence[str]) -> tuple[list[str], list[str]]:
    """Variables and parameters of a program."""
    parameter_names, symbol_names = set(parameters), set(graph.names)
    variables = [word for word in graph.names if word not in parameter_names]
    return variables, [word for word in parameters if word in symbol_names]


def optimise(program: Nary, thorough: bool = True) -> Nary:
    """The program after all passes."""
    simplify(program, thorough)
    if thorough:
        return with_collected_constants(parallel_axes(program, simplify))
    passes.share(program)
    return program


def with_collected_constants(program: Nary) -> Nary:
    """The program with pairs shared, and numbers in sums collected before if that saves anything.

    Long programs take too long to try.
    """
    best = _shared(program)
    while len(program.order()) <= COLLECT_LIMIT:
        trial = program.copy()
        collect(trial)
        simplify(trial)
        shared = _shared(trial)
        if shared.cost() >= best.cost():
            break
        program, best = trial, shared
    return best


def _shared(program: Nary) -> Nary:
    shared = program.copy()
    passes.share(shared)
    return shared


def simplify(program: Nary, thorough: bool = True) -> None:
    """Flatten, cancel and factor until that saves nothing more."""
    best = program.cost()
    for _ in range(ROUNDS if thorough else 1):
        passes.flatten(program)
        passes.cancel(program)
        passes.cancel_products(program)
        passes.factor(program)
        cost = program.cost()
        if cost >= best:
            break
        best = cost


def flatten_names(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """`name`, `name[i]`, `name[i,j]` for scalars, vectors and matrices."""
    flat: dict[str, Any] = {}
    for name, value in outputs.items():
        if isinstance(value, np.ndarray):
            for index in np.ndindex(value.shape):
                flat[f"{name}[{','.join(map(str, index))}]"] = value[index]
        else:
            flat[name] = value
    return flat
