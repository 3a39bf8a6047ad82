"""One program for many robots that differ in numbers alone: lengths and inertias are inputs of its setup.

Robots of the same structure have the same trace. Numbers in which two of them differ become symbols, the others stay
numbers; each robot of the family then takes the compiled program with its own values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.checks import require
from parflex.closure.constraints import Closures
from parflex.codegen import cache, trace
from parflex.codegen.model import Model
from parflex.codegen.optimise import make_program
from parflex.codegen.options import OPERATOR_LIMIT, Options, prepared_robot
from parflex.codegen.tracer import Tracer
from parflex.errors import InputError
from parflex.formulations.choice import choose
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.robot import Robot
from parflex.tree.force_elements import JointTerms
from parflex.tree.joints import Joint, helical
from parflex.tree.tree import Link, Place

Array = np.ndarray
Numbers = dict[str, float]
TERMS = ("motor_inertia", "viscous", "coulomb", "more_viscous", "more_coulomb", "offset", "stiffness", "rest", "damper")


def family_model(robot: Robot, other: Robot, name: str, friction_width: float = 0.0) -> Model:
    """The model of a rigid robot in which all numbers that differ in the other one are parameters.

    "state-rates" is that of `model`. "watch" has closed positions in; the pose of the end effector, what the motors do
    for independent rates, and the block of the closures that gives the dependent rates come out. Of a flexible
    robot, only the pose can be watched.
    """
    fits = not robot.tree.elastic or (name == "watch" and robot is other)
    require(fits, "a family of robots must be rigid", "robot", "make one model per robot", robot.name)
    options = Options(friction_width=friction_width)
    nominal = {} if robot.tree.elastic else variable_numbers(robot)
    varied = [] if robot is other else differing_numbers(nominal, variable_numbers(other))

    def build() -> Model:
        tracer = Tracer()
        outputs, labels = _traced(tracer, prepared_robot(robot, name, options), varied, name, options)
        program = make_program(tracer.graph, f"{robot.name}_{name}_family", outputs, varied, OPERATOR_LIMIT)
        return Model(
            program.name,
            program,
            {group: symbols.shape for group, symbols in tracer.inputs.items()},
            {group: np.shape(values) for group, values in outputs.items()},
            {word: nominal[word] for word in varied},
            labels,
        )

    return cache.stored(cache.key_of(robot, "family", name, varied, options), build)


def member_model(model: Model, robot: Robot) -> Model:
    """The model of a family with the numbers of one of its robots; what is compiled stays compiled."""
    numbers = variable_numbers(robot)
    return model.with_parameters({word: numbers[word] for word in model.parameters})


def variable_numbers(robot: Robot) -> Numbers:
    """Numbers of a rigid robot that may differ in a family: where things are mounted, bodies, terms of joints."""
    numbers: Numbers = {}
    for link in robot.tree.links:
        numbers |= {f"position[{link.name},{axis}]": float(link.position[axis]) for axis in range(3)}
        if link.joint.pitch:
            numbers[f"pitch[{link.name}]"] = float(link.joint.pitch)
        body = link.body.as_rigid()
        numbers[f"m[{link.name}]"] = float(body.m)
        numbers |= {f"S[{link.name},{axis}]": float(body.S[axis]) for axis in range(3)}
        for i in range(3):
            numbers |= {f"Sigma[{link.name},{i},{j}]": float(body.Sigma[i, j]) for j in range(i, 3)}
        numbers |= {f"{word}[{link.name}]": float(getattr(link.terms, word)) for word in TERMS}
    for row in robot.closures.constraints:
        numbers |= row.numbers_in()
    for spring in robot.tree.springs:
        numbers |= spring.numbers_in()
    for element in robot.tree.elements:
        numbers |= element.numbers_in()
    for name, place in robot.tree.places.items():
        numbers |= {f"place[{name},{axis}]": float(place.position[axis]) for axis in range(3)}
    return numbers


def differing_numbers(first: Numbers, second: Numbers) -> list[str]:
    """Names of numbers that are not the same."""
    if first.keys() != second.keys():
        raise InputError("the robots differ in more than numbers", key="plant", hint="use robots of the same structure")
    return [word for word in first if first[word] != second[word]]


def _traced(tracer: Tracer, robot: Robot, varied: Sequence[str], name: str, options: Options) -> Any:
    if robot.tree.elastic:
        q = tracer.group("q", robot.tree.nq)
        R, p = pose(robot.tree, q).of(robot.tree.places[robot.tree.end_effector])
        return {"position": p, "rotation": R}, {"q": list(robot.tree.position_names)}
    form: Any = choose(robot, options.question("state-rates", family=True))
    form = replace(form, robot=_symbolic(form.robot, {word: tracer.graph.symbol(word) for word in varied}))
    if name == "state-rates":
        return trace.state_rates(tracer, form, options)
    tree = form.robot.tree
    q = tracer.group("q", tree.nq)
    state = form.moving(q, np.zeros(len(form.independent)))
    R, p = pose(tree, q).of(tree.places[tree.end_effector])
    J_a = np.array(state.J_a)
    part = form.partition
    block = form.robot.closures.jacobian(state.at, jacobians(tree, state.at))[np.ix_(part.rows, part.dependent)]
    labels = {"q": list(tree.position_names), "qd": form.independent_names}
    return {"position": p, "rotation": R, "motors": J_a, "closing": np.array(block)}, labels


def _symbolic(robot: Robot, symbols: dict[str, Any]) -> Robot:
    """The robot with symbols in place of some numbers."""

    def vector(kind: str, name: str, values: Array) -> Array:
        entries = [symbols.get(f"{kind}[{name},{axis}]", float(values[axis])) for axis in range(3)]
        return np.array(entries, dtype=object) if any(not isinstance(e, float) for e in entries) else values

    def body(link: Link) -> RigidBody:
        rigid_body = link.body.as_rigid()
        m = symbols.get(f"m[{link.name}]", rigid_body.m)
        Sigma = np.array(rigid_body.Sigma, dtype=object)
        for i in range(3):
            for j in range(3):
                Sigma[i, j] = symbols.get(f"Sigma[{link.name},{min(i, j)},{max(i, j)}]", Sigma[i, j])
        return RigidBody(m, vector("S", link.name, rigid_body.S), Sigma)

    def joint(link: Link) -> Joint:
        pitch = symbols.get(f"pitch[{link.name}]")
        return link.joint if pitch is None else helical(pitch, link.joint.axis)

    def terms(link: Link) -> JointTerms:
        symbolic_terms = {word: symbols[f"{word}[{link.name}]"] for word in TERMS if f"{word}[{link.name}]" in symbols}
        return replace(link.terms, **symbolic_terms)

    tree = robot.tree
    links = [
        replace(k, position=vector("position", k.name, k.position), joint=joint(k), body=body(k), terms=terms(k))
        for k in tree.links
    ]
    places = {n: replace(p, position=vector("place", n, p.position)) for n, p in tree.places.items()}
    name_of = {id(place): name for name, place in tree.places.items()}

    def end(place: Place) -> Place:
        return places[name_of[id(place)]]

    springs = tuple(spring.with_numbers(symbols) for spring in tree.springs)
    elements = tuple(element.with_numbers(symbols, end) for element in tree.elements)
    changed = replace(tree, links=tuple(links), places=places, springs=springs, elements=elements)
    loops = [replace(loop, first=end(loop.first), second=end(loop.second)) for loop in robot.closures.loops]
    constraints = tuple(row.with_numbers(symbols, end) for row in robot.closures.constraints)
    return replace(robot, tree=changed, closures=Closures(changed, tuple(loops), constraints))
