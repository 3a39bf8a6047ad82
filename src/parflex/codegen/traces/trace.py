"""Models as traces: named symbols in, the physics over them, named expressions out.

Which form a model takes is the answer of `models.forms.choose`; here it is only asked, and given its symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from parflex.codegen.model_options import Options, prepared
from parflex.codegen.traces import asked, feedback, sensing
from parflex.codegen.traces.moving import energy, prescribed_rates, state_rates
from parflex.codegen.traces.newton_status import with_status
from parflex.codegen.traces.parameters import grouped_robot
from parflex.codegen.traces.spare_parameters import symbolic_sharing
from parflex.codegen.traces.tracing import Outputs, Trace, Tracer
from parflex.errors import InputError, did_you_mean
from parflex.formulations.base import Formulation
from parflex.formulations.choice import choose
from parflex.recursion.kinematics import jacobians, place_jacobian
from parflex.robot.robot import Robot
from parflex.symbolic.derivative import jacobian
from parflex.symbolic.expression import Graph

Array = np.ndarray
MOTORS = ("motor_position", "motor_rate", "motor_acceleration")


def trace(robot: Robot, model: str, options: Options = Options()) -> Trace:
    """The trace of a model of a robot, written in one way."""
    form, graph, values = form_of(robot, model, options)
    return _traced(form, model, options, graph, values)


def traces(robot: Robot, model: str, options: Options = Options()) -> Iterator[Trace]:
    """The model in all ways of writing its form; the one with the fewest operators is kept."""
    form, graph, values = form_of(robot, model, options)
    ways = form.ways()
    for way in ways:  # each in a graph of its own, but for symbols that are in the robot itself
        yield _traced(way, model, options, graph if len(ways) == 1 else options.new_graph(), values)


def form_of(robot: Robot, model: str, options: Options) -> tuple[Formulation, Graph, dict[str, float]]:
    """The form of a model, and the parameters that are symbols in it."""
    if model not in MODELS and model != "redundant-direct":
        raise InputError(f"there is no model '{model}'", key="MODEL", value=model, hint=did_you_mean(model, MODELS))
    asked.refuse_unknown(model, options)
    graph = options.new_graph()
    robot = prepared(robot, model, options)
    grouped, values = grouped_robot(robot, graph, options.parameters)
    if model == "energy":  # grouping moves mass where the motion does not feel it, but the energy does
        grouped = robot
    return choose(grouped, options.question(model)), graph, values


def _traced(form: Formulation, model: str, options: Options, graph: Graph, values: dict[str, float]) -> Trace:
    tracer = Tracer(graph)
    if options.weights or options.preload or options.limits:
        form = replace(form, question=replace(form.question, sharing=symbolic_sharing(tracer, form.robot, options)))
    made = MODELS if options.coordinates is None else MODELS | asked.MODELS
    outputs, labels = made[model](tracer, form, options)
    outputs = with_status(outputs, form.robot.tree.length)
    used = {name: words for name, words in labels.items() if name in {*tracer.inputs, *outputs}}
    named = (used, form.independent_names, asked.rates_read(form, options))
    return Trace(model, form.name, graph, tracer.inputs, outputs, values | tracer.parameters, *named)


def _inverse(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Accelerations in, efforts out."""
    state, motion = tracer.groups(form.state_groups), tracer.groups(form.motion_groups)
    return form.inverse(form.state(state), motion), form.labels


def _direct(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Efforts in, accelerations out."""
    state = tracer.groups(form.state_groups)
    return form.direct(form.state(state), tracer.group("effort", len(form.robot.actuated))), form.labels


def _mass_matrix(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Closed positions in; inertia in the independent rates out."""
    state = form.moving(tracer.group("q", form.robot.tree.nq), np.zeros(len(form.independent)))
    return {"mass_matrix": form.mass_matrix(state)}, form.labels


def _kinematics(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Pose and twist of the end effector in world axes, and all rates."""
    tree = form.robot.tree
    state = form.state(tracer.groups(form.state_groups))
    place = tree.places[tree.end_effector]
    R, p = state.at.of(place)
    J_v, J_w = place_jacobian(tree, state.at, jacobians(tree, state.at), place)
    outputs = {"position": p, "rotation": R, "velocity": R @ (J_v @ state.qd), "angular_velocity": R @ (J_w @ state.qd)}
    return outputs | {"rates": state.qd}, form.labels


def _jacobian_of_inverse(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Derivatives of the efforts by every group of inputs."""
    inverse = _inverse if options.coordinates is None else asked.inverse
    outputs, labels = inverse(tracer, form, options)
    effort = list(outputs["effort"])
    result = {"effort": outputs["effort"]}
    for name, symbols in list(tracer.inputs.items()):
        rows = jacobian(effort, list(symbols.flat))
        result[f"by_{name}"] = np.array(rows, dtype=object).reshape(len(effort), *symbols.shape)
    return result | {name: outputs[name] for name in ("residual",) if name in outputs}, labels


def _geometry(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """From the platform to the joints, from the motors or from sensors to all positions."""
    return form.geometry(tracer.groups(form.geometry_groups))


def _step(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """What a controller calls: sensed positions and rates, desired accelerations, last pose in; efforts out."""
    sensed, rates, desired = (tracer.group(name, len(form.robot.actuated)) for name in MOTORS)
    outputs = form.step(sensed, rates, desired, tracer.groups(form.last_groups))
    names = list(form.robot.tree.position_names)
    return outputs, dict.fromkeys((*MOTORS, "effort"), form.robot.actuated_names) | dict.fromkeys(("last", "q"), names)


MODELS: dict[str, Callable[[Tracer, Formulation, Options], Outputs]] = {
    "inverse": _inverse,
    "direct": _direct,
    "mass-matrix": _mass_matrix,
    "kinematics": _kinematics,
    "jacobian-of-inverse": _jacobian_of_inverse,
    "geometry": _geometry,
    "geometry-direct": _geometry,
    "step": _step,
    "pd-law": feedback.pd_law,
    "task-law": feedback.task_law,
    "state-rates": state_rates,
    "state-rates-driven": prescribed_rates,
    "state-rates-following": prescribed_rates,
    "energy": energy,
    "redundant": _inverse,
    "extended-law": sensing.law,
    "classical-law": sensing.law,
    "extended-step": sensing.step,
    "classical-step": sensing.step,
    "geometry-redundant": _geometry,
    "geometry-motors": _geometry,
}
