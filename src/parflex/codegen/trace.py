"""Traces of models: named symbols in, the physics over them, named expressions out.

`formulations.choice.choose` selects the formulation of a model; this module gives it its symbols. Traces for simulation
take a state and give its closed positions, rates, accelerations and energies. Dependent positions are a guess and are
closed first, so an integrator may carry them along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from parflex.checks import require
from parflex.codegen import laws
from parflex.codegen.input_checks import input_checks
from parflex.codegen.options import Options, prepared_robot
from parflex.codegen.tracer import Outputs, Trace, Tracer, add_gates, grouped_robot, symbolic_allocation
from parflex.errors import InputError, did_you_mean
from parflex.forces.effort_allocation import EffortAllocation
from parflex.formulations.base import COORDINATE_MODELS, Formulation, refuse_unknown_coordinates
from parflex.formulations.choice import choose
from parflex.formulations.coordinates import PUSHED, RequestedCoordinates
from parflex.recursion.energy import energies
from parflex.recursion.kinematics import jacobians, place_jacobian, pose
from parflex.robot.robot import Robot
from parflex.robot.states import OPEN
from parflex.symbolic.derivative import jacobian
from parflex.symbolic.expression import Expression, Graph

Array = np.ndarray
LARGEST = 1e30  # no effort or acceleration (SI) is as large; single precision holds it
POSITIONS = ("q", "position", "turn")  # finite where the residual is
MOTORS = ("motor_position", "motor_rate", "motor_acceleration")


def state_rates(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Positions, independent rates and efforts in; what changes in time out."""
    return _rates(tracer, form, options, driven=False)


def prescribed_rates(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Prescribed accelerations of motors or of the platform in, the efforts that cause them out."""
    return _rates(tracer, form, options, driven=True)


def _rates(tracer: Tracer, form: Formulation, options: Options, driven: bool) -> Outputs:
    tree, motors, names = form.robot.tree, form.robot.actuated_names, form.independent_names
    q = form.closed(tracer.group("q", tree.nq))
    rates = tracer.group("qd", len(form.independent))
    driving_input = tracer.group(*form.prescribed) if driven else tracer.group("effort", len(motors))
    wrenches = {frame: tracer.group(f"{PUSHED}{frame}", 6) for frame in options.wrenches}
    add_gates(tracer, tree)
    state = form.moving(q, rates, wrenches)
    if driven:
        effort, accelerations = form.efforts_for(state, driving_input)
    else:
        accelerations = form.accelerations_under(state, driving_input)
    resolved: Array = np.zeros(tree.n, dtype=object)
    resolved[form.independent] = accelerations
    changes = tree.rate_changes(state.qd, resolved)[form.independent]
    outputs = {"q": state.q, "position_rates": tree.position_rates(state.q, state.qd), "rate_changes": changes}
    outputs["acceleration"] = accelerations
    positions = list(tree.position_names)
    labels = dict.fromkeys(("q", "position_rates"), positions)
    labels |= dict.fromkeys(("qd", "rate_changes", "acceleration"), names)
    labels |= dict.fromkeys(("effort", "motor_acceleration"), motors)
    outputs |= {"effort": effort} if driven else {}
    rubbing = [link for link in tree.links if link.terms.rubbing is not None]
    if rubbing:
        rates_of = [link.v.start for link in rubbing]
        outputs["rubbing_acceleration"] = _accelerations_of(form, state, rates_of, accelerations)
        labels["rubbing_acceleration"] = [link.name for link in rubbing]
    return outputs, labels


def _accelerations_of(form: Formulation, state: Any, rates: list[int], independent: Array) -> Array:
    """Accelerations of some coordinates, of dependent ones by the closures."""
    independent_rates = [int(k) for k in form.independent]
    if set(rates) <= set(independent_rates):
        return independent[[independent_rates.index(k) for k in rates]]
    return form.all_accelerations(state, independent)[rates]


def energy(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Closed positions and all rates in, energies out."""
    tree = form.robot.tree
    q, rates = tracer.group("q", tree.nq), tracer.group("rates", tree.n)
    energy_terms = energies(tree, pose(tree, q), rates)
    labels = {"q": list(tree.position_names), "rates": list(tree.rate_names)}
    values = {"kinetic": energy_terms.kinetic, "elastic": energy_terms.elastic, "gravity": energy_terms.gravity}
    return {name: np.array([value], dtype=object) for name, value in values.items()}, labels


def inverse_in_coordinates(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Accelerations in, efforts out."""
    coordinates, inputs, state = _moving(tracer, form, options)
    inputs |= tracer.groups(coordinates.motion_groups)
    outputs = coordinates.inverse(state, inputs) | coordinates.missed(state, inputs)
    return outputs | (input_checks(form, state, inputs, outputs) if options.checks else {}), coordinates.labels


def direct_in_coordinates(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Efforts in, accelerations out."""
    coordinates, inputs, state = _moving(tracer, form, options)
    inputs |= tracer.groups({"effort": (len(form.robot.actuated),)})
    if options.checks:  # by the mass matrix, whose pivots are checked
        outputs = coordinates.accelerations(state, form.accelerations_under(state, inputs["effort"]))
        return outputs | input_checks(form, state, inputs, outputs), coordinates.labels
    return coordinates.direct(state, inputs["effort"]) | coordinates.missed(state, inputs), coordinates.labels


def kinematics_in_coordinates(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Positions and rates of what is asked for in, those of the rest out."""
    coordinates, inputs, state = _moving(tracer, form, options)
    return coordinates.kinematics(state) | coordinates.missed(state, inputs), coordinates.labels


def mass_matrix(tracer: Tracer, form: Formulation, options: Options) -> Outputs:
    """Positions in; inertia in the rates of the coordinates out."""
    coordinates = _asked(form, options)
    inputs = tracer.groups(coordinates.position_groups)
    zero_rates = {name: np.zeros(shape) for name, shape in coordinates.rate_groups.items()}
    state = coordinates.state(inputs | zero_rates)
    M, names = coordinates.mass_matrix(state)
    return {"mass_matrix": M} | coordinates.found(state) | coordinates.missed(state, inputs), coordinates.labels | {
        "mass_matrix": names
    }


MODELS_IN_COORDINATES: dict[str, Callable[[Tracer, Formulation, Options], Outputs]] = {
    "inverse": inverse_in_coordinates,
    "direct": direct_in_coordinates,
    "mass-matrix": mass_matrix,
    "kinematics": kinematics_in_coordinates,
}


def _asked(form: Formulation, options: Options) -> RequestedCoordinates:
    assert options.coordinates is not None
    return form.coordinates[options.coordinates](form)


def _moving(tracer: Tracer, form: Formulation, options: Options) -> tuple[RequestedCoordinates, dict[str, Array], Any]:
    """The form in its coordinates, what goes in, and the state."""
    coordinates = _asked(form, options)
    loads = {f"{PUSHED}{frame}": (6,) for frame in options.wrenches}
    inputs = tracer.groups(coordinates.position_groups | coordinates.rate_groups | loads)
    return coordinates, inputs, coordinates.state(inputs)


def rates_read(form: Formulation, options: Options) -> list[str]:
    """Names of the rates that a model in coordinates reads."""
    return _asked(form, options).read if options.coordinates is not None else []


def refuse_unknown(model: str, options: Options) -> None:
    """Raise if a model does not exist in the coordinates that are asked for."""
    word = options.coordinates
    if word is not None:
        refuse_unknown_coordinates(word)
    hint = f"omit 'coordinates', or use one of {', '.join(COORDINATE_MODELS)}"
    fits = word is None or model in COORDINATE_MODELS
    require(fits, f"the inputs of '{model}' do not depend on coordinates", "coordinates", hint, word)
    checked = not options.checks or (word == "all" and model in ("inverse", "direct"))
    hint = "use 'inverse' or 'direct' with coordinates \"all\""
    message = "checks compare given positions, rates and accelerations of all coordinates"
    require(checked, message, "checks", hint, model)


def with_status(outputs: dict[str, Array], length: float, allocation: EffortAllocation | None) -> dict[str, Array]:
    """Return outputs with the status of their `residual` (m) and their efforts at the end, if they have one.

    The status is 1 if the residual exceeds the tolerance or efforts are not finite, else 2 if an effort exceeds a limit
    of the allocation, else 0. The tolerance is that of closed positions given as arrays, so that functions take the
    positions of status 0.
    """
    limited = allocation is not None and allocation.bounded and "effort" in outputs
    if "residual" not in outputs and not limited:
        return outputs
    residual = {name: values for name, values in outputs.items() if name == "residual"}
    others = {name: values for name, values in outputs.items() if name != "residual"}
    checked = [(value, OPEN * length) for values in residual.values() for value in values]
    checked += [(v, LARGEST) for name, values in others.items() if name not in POSITIONS for v in values.flat]
    flags = [value.not_within(limit) for value, limit in checked if isinstance(value, Expression)]
    status = reduce(Expression.either, flags) if flags else 0.0  # numbers, where nothing is unknown
    if limited and allocation is not None:
        status = status + 2.0 * (1.0 - status) * allocation.exceeded(outputs["effort"]).not_within(1.0)  # also if NaN
    return others | residual | {"status": np.array([status], dtype=object)}


def trace(robot: Robot, model: str, options: Options = Options()) -> Trace:
    """The trace of a model of a robot, written in one way."""
    form, graph, values = formulation_of(robot, model, options)
    return _traced(form, model, options, graph, values)


def traces(robot: Robot, model: str, options: Options = Options()) -> Iterator[Trace]:
    """The model in all ways of writing its form; the one with the fewest operators is kept."""
    form, graph, values = formulation_of(robot, model, options)
    variants = form.ways()
    for variant in variants:  # each in a graph of its own, but for symbols that are in the robot itself
        yield _traced(variant, model, options, graph if len(variants) == 1 else options.new_graph(), values)


def formulation_of(robot: Robot, model: str, options: Options) -> tuple[Formulation, Graph, dict[str, float]]:
    """The form of a model, and the parameters that are symbols in it."""
    if model not in MODELS and model != "redundant-direct":
        raise InputError(f"there is no model '{model}'", key="MODEL", value=model, hint=did_you_mean(model, MODELS))
    refuse_unknown(model, options)
    graph = options.new_graph()
    robot = prepared_robot(robot, model, options)
    grouped, values = grouped_robot(robot, graph, options.parameters)
    if model == "energy":  # grouping moves mass where the motion does not feel it, but the energy does
        grouped = robot
    return choose(grouped, options.question(model)), graph, values


def _traced(form: Formulation, model: str, options: Options, graph: Graph, values: dict[str, float]) -> Trace:
    tracer = Tracer(graph)
    allocation = None
    if options.weights or options.preload or options.limits:
        allocation = symbolic_allocation(tracer, form.robot, options)
        form = replace(form, question=replace(form.question, allocation=allocation))
    builders = MODELS if options.coordinates is None else MODELS | MODELS_IN_COORDINATES
    outputs, labels = builders[model](tracer, form, options)
    outputs = with_status(outputs, form.robot.tree.length, allocation)
    used = {name: words for name, words in labels.items() if name in {*tracer.inputs, *outputs}}
    named = (used, form.independent_names, rates_read(form, options))
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
    inverse = _inverse if options.coordinates is None else inverse_in_coordinates
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
    outputs = form.step(sensed, rates, desired, tracer.groups(form.previous_pose_groups))
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
    "pd-law": laws.pd_law,
    "task-law": laws.task_law,
    "state-rates": state_rates,
    "state-rates-driven": prescribed_rates,
    "state-rates-following": prescribed_rates,
    "energy": energy,
    "redundant": _inverse,
    "extended-law": laws.trace_law,
    "classical-law": laws.trace_law,
    "extended-step": laws.trace_controller_step,
    "classical-step": laws.trace_controller_step,
    "geometry-redundant": _geometry,
    "geometry-motors": _geometry,
}
