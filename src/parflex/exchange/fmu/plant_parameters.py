"""Numbers of a plant that can be changed in its FMU: gravity, a payload, inertial parameters of bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.codegen.model import Model
from parflex.codegen.optimise import make_program
from parflex.codegen.options import Options, prepared_robot
from parflex.codegen.trace import MODELS
from parflex.codegen.tracer import Tracer
from parflex.errors import InputError, did_you_mean
from parflex.forces.base_parameters import PARAMETERS, body_from_parameters, body_parameters
from parflex.formulations.choice import choose
from parflex.robot.robot import Robot
from parflex.simulation.problem import MODEL_NAMES, RUN_LIMIT, Problem, has_losses
from parflex.tree.tree import Link

Array = np.ndarray
AXES = "xyz"


def read_plant_parameters(robot: Robot, names: Sequence[str]) -> dict[str, float]:
    """Values by name of what is asked for: "gravity", "payload", or inertial parameters such as "M[leg1.2]"."""
    tree, found = robot.tree, dict[str, float]()
    known = [f"{word}[{link.name}]" for link in tree.links for word in PARAMETERS]
    axes = AXES[:2] if tree.planar else AXES
    for name in names:
        if name == "gravity":
            found |= {f"gravity.{axis}": float(tree.gravity[k]) for k, axis in enumerate(axes)}
        elif name == "payload":
            _refuse_flexible(tree.links[tree.places[tree.end_effector].link], name)
            found |= {"payload.mass": 0.0} | {f"payload.{axis}": 0.0 for axis in axes}
        elif name in known:
            place = known.index(name)
            _refuse_flexible(tree.links[place // len(PARAMETERS)], name)
            body = tree.links[place // len(PARAMETERS)].body.as_rigid()
            found[name] = float(body_parameters(body)[place % len(PARAMETERS)])
        else:
            hint = did_you_mean(name, ["gravity", "payload", *known])
            raise InputError(f"there is no parameter '{name}'", key="parameters", value=name, hint=hint)
    if found and has_losses(robot):
        said = "parameters of robots whose couplings lose power cannot be symbols"
        raise InputError(said, key="parameters", value=names[0], hint="leave out friction, or the parameters")
    return found


def _refuse_flexible(link: Link, name: str) -> None:
    if link.body.size:
        said = f"'{link.name}' is flexible: its inertia is that of its beams or modes, and is not a symbol"
        raise InputError(said, key="parameters", value=name, hint="choose gravity, or parameters of rigid bodies")


def with_symbols(robot: Robot, symbols: Mapping[str, Any]) -> Robot:
    """The robot with symbols in place of numbers."""
    if not symbols:
        return robot
    tree = robot.tree
    links = list(tree.links)
    for j, link in enumerate(links):
        own = [f"{word}[{link.name}]" for word in PARAMETERS]
        if any(name in symbols for name in own):
            numbers = body_parameters(link.body.as_rigid())
            values = [symbols.get(name, float(value)) for name, value in zip(own, numbers, strict=True)]
            links[j] = replace(link, body=body_from_parameters(np.array(values, dtype=object)))
    if "payload.mass" in symbols:
        place = tree.places[tree.end_effector]
        at = np.array([symbols.get(f"payload.{axis}", 0.0) for axis in AXES], dtype=object)
        mass, centre = symbols["payload.mass"], place.position + place.rotation @ at
        body = links[place.link].body.as_rigid()
        point = (body.m + mass, body.S + mass * centre, body.Sigma + mass * np.outer(centre, centre))
        links[place.link] = replace(links[place.link], body=RigidBody(*point))
    gravity = np.array([symbols.get(f"gravity.{axis}", float(tree.gravity[k])) for k, axis in enumerate(AXES)], object)
    given = any(f"gravity.{axis}" in symbols for axis in AXES)
    changed = replace(tree, links=tuple(links), gravity=gravity if given else tree.gravity)
    return replace(robot, tree=changed, closures=replace(robot.closures, tree=changed), known_home=robot.home)


def with_plant_parameters(problem: Problem, values: Mapping[str, float]) -> Problem:
    """The same problem with a model in which these numbers are parameters."""
    if not values:
        return problem
    name = MODEL_NAMES[problem.prescribed]
    options = Options(wrenches=problem.wrenches, friction_width=problem.width, independent=tuple(problem.independent))
    tracer = Tracer()
    form: Any = choose(prepared_robot(problem.robot, name, options), options.question(name, family=True))
    symbols = {word: tracer.graph.symbol(word) for word in values}
    form = replace(form, robot=with_symbols(form.robot, symbols))
    outputs, labels = MODELS[name](tracer, form, options)
    program = make_program(tracer.graph, f"{problem.robot.name}_{name}", outputs, list(values), RUN_LIMIT)
    inputs = {group: entries.shape for group, entries in tracer.inputs.items()}
    shapes = {group: np.shape(entries) for group, entries in outputs.items()}
    return replace(problem, model=Model(program.name, program, inputs, shapes, dict(values), labels))
