"""Models as traces: named symbols in, the physics over them, named expressions out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from parflex.codegen.traces import feedback, flexible, moving, sensing
from parflex.codegen.traces.geometry_traces import NEWTON_STEPS, geometry, geometry_direct, last_pose, newton_steps
from parflex.codegen.traces.leg_symbols import leg_values, loaded_legs, mode_labels, platform_symbols
from parflex.codegen.traces.parameters import grouped_robot
from parflex.codegen.traces.tracing import Options, Outputs, Trace, Tracer
from parflex.errors import InputError, did_you_mean
from parflex.graph.derivative import jacobian
from parflex.graph.expression import known_angle
from parflex.models import general_form, leg_form, leg_models
from parflex.models.configuration import Configuration
from parflex.models.platform_newton import motor_inverse, newton
from parflex.models.robot import Robot
from parflex.models.terms import acting
from parflex.recursion import jacobians, mass_matrix, pose
from parflex.recursion.articulated import articulated_accelerations
from parflex.recursion.kinematics import place_jacobian
from parflex.spatial.linear import solve, solve_positive

Array = np.ndarray
ON_LEGS = ("inverse", "direct", "jacobian-of-inverse", "geometry", "geometry-direct", "step")  # written on legs
BENDING = ("inverse", "direct", "state-rates", "state-rates-driven")  # written in pieces, for robots that bend


def variants(robot: Robot, name: str, options: Options) -> list[Options]:
    """Ways to write the same model; the one with the fewest operators is kept."""
    if robot.tree.elastic and leg_form.leg_form(robot) is None and name in BENDING:
        return [replace(options, lead=lead) for lead in flexible.leads(robot)]
    if name not in ON_LEGS or leg_form.leg_form(robot) is None or options.parameters != "numbers":
        return [options]
    return [replace(options, by_columns=c, end_masses=e) for c in (True, False) for e in (True, False)]


def trace(robot: Robot, model: str, options: Options = Options()) -> Trace:
    """The trace of a model of a robot."""
    if model == "redundant-direct":
        sensing.refuse_direct()
    if model not in MODELS:
        raise InputError(f"there is no model '{model}'", key="MODEL", value=model, hint=did_you_mean(model, MODELS))
    robot = prepared(robot, model, options)
    tracer = Tracer()
    grouped, values = grouped_robot(robot, tracer.graph, options.parameters)
    outputs, labels = MODELS[model](tracer, robot, grouped, options)
    return Trace(model, tracer.graph, tracer.inputs, outputs, values | tracer.parameters, labels)


def prepared(robot: Robot, model: str, options: Options) -> Robot:
    """The robot with what the options change in it."""
    if options.wrenches and model not in ("state-rates", "state-rates-driven"):
        raise InputError(
            f"'{model}' takes no wrenches", key="wrenches", value=model, hint="use 'state-rates' or leave them out"
        )
    for frame in options.wrenches:
        if frame not in robot.tree.places:
            hint = did_you_mean(frame, robot.tree.places)
            raise InputError(f"there is no frame '{frame}'", key="wrenches", value=frame, hint=hint)
    robot = acting(robot, options.without)
    if not options.friction_width:
        return robot
    links = [replace(link, terms=replace(link.terms, width=options.friction_width)) for link in robot.tree.links]
    tree = replace(robot.tree, links=tuple(links))
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))


def _inverse(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    form = loaded_legs(grouped, options)
    if robot.tree.elastic and form is None:
        return flexible.inverse(tracer, robot, options.lead, options.without)
    if not robot.tree.elastic:
        Configuration(robot, robot.home).refuse_undefined_actuation()
    labels = {"effort": robot.actuated_names}
    if form is not None:
        platform = platform_symbols(tracer, form, True)
        effort, modes = leg_models.inverse(form, leg_values(form, platform), platform, options.without)
        elastic = {"elastic_acceleration": modes} if form.elastic is not None else {}
        return {"effort": effort, **elastic}, labels | mode_labels(form)
    general = _general(robot, grouped)
    n = len(general.partition.independent)
    q, qd, qdd = tracer.group("q", robot.tree.nq), tracer.group("qd", n), tracer.group("qdd", n)
    labels |= {"q": list(robot.tree.position_names), "qd": general.independent_names, "qdd": general.independent_names}
    return {"effort": general_form.inverse(general, q, qd, qdd, options.without)}, labels


def _general(robot: Robot, grouped: Robot, driven: bool = True) -> general_form.GeneralForm:
    """The general form; a model with efforts (`driven`) needs as many motors as freedoms at most."""
    if driven and len(robot.actuated) > robot.mobility.freedoms(len(robot.free)):
        raise InputError(
            "a program for more motors than freedoms is not made",
            key="actuation",
            hint="choose an --actuation without spare motors",
        )
    if robot.tree.elastic:
        return general_form.general_form(grouped, flexible.form_of(robot).partition)
    return general_form.general_form(grouped, Configuration(robot, robot.home).reduction.partition)


def _direct(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    form = loaded_legs(grouped, options)
    if robot.tree.elastic and form is None:
        return flexible.direct(tracer, robot, options.lead, options.without)
    motors = len(robot.actuated)
    if form is not None:
        platform = platform_symbols(tracer, form, False)
        A, h, B, s = leg_models.equations(form, leg_values(form, platform), platform, options.without)
        freedom = solve_positive(A, B @ tracer.group("effort", motors) - h)
        split, rigid = (2, 3) if form.planar else (3, 6)
        outputs = {"acceleration": freedom[:split], "angular_acceleration": freedom[split:rigid]}
        if form.elastic is not None:
            outputs["elastic_acceleration"] = leg_models.mode_accelerations(form, platform, freedom, s)
        return outputs, {"effort": robot.actuated_names} | mode_labels(form)
    general = _general(robot, grouped)
    n = len(general.partition.independent)
    q, qd, tau = tracer.group("q", robot.tree.nq), tracer.group("qd", n), tracer.group("effort", motors)
    labels = {"q": list(robot.tree.position_names), "qd": general.independent_names, "qdd": general.independent_names}
    labels["effort"] = robot.actuated_names
    if not robot.closures.loops and not robot.locked:
        push = np.zeros(robot.tree.n, dtype=object)
        push[list(robot.actuated)] = tau
        at = pose(grouped.tree, q)
        return {"qdd": articulated_accelerations(grouped.tree, at, q, qd, push, options.without)}, labels
    return {"qdd": general_form.direct(general, q, qd, tau, options.without)}, labels


def _mass_matrix(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    general = _general(robot, grouped, driven=False)
    q = tracer.group("q", robot.tree.nq)
    labels = {"q": list(robot.tree.position_names), "mass_matrix": general.independent_names}
    if not robot.closures.loops and not robot.locked:
        return {"mass_matrix": mass_matrix(grouped.tree, pose(grouped.tree, q), options.without)}, labels
    state = general_form.general_state(general, q, np.zeros(len(general.partition.independent)))
    return {"mass_matrix": general_form.independent_mass_matrix(state, options.without)}, labels


def _kinematics(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    """Pose and twist of the end effector in world axes, and all rates."""
    general = _general(robot, grouped, driven=False)
    tree = robot.tree
    q, qd = tracer.group("q", tree.nq), tracer.group("qd", len(general.partition.independent))
    state = general_form.general_state(general, q, qd)
    place = tree.places[tree.end_effector]
    R, p = state.at.of(place)
    J_v, J_w = place_jacobian(tree, jacobians(tree, state.at), place)
    outputs = {"position": p, "rotation": R, "velocity": R @ (J_v @ state.qd), "angular_velocity": R @ (J_w @ state.qd)}
    labels = {"q": list(tree.position_names), "qd": general.independent_names, "rates": list(tree.rate_names)}
    return outputs | {"rates": state.qd}, labels


def _jacobian_of_inverse(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    """Derivatives of the efforts by every group of inputs."""
    outputs, labels = _inverse(tracer, robot, grouped, options)
    effort = list(outputs["effort"])
    result = {"effort": outputs["effort"]}
    for name, symbols in list(tracer.inputs.items()):
        rows = jacobian(effort, list(symbols.flat))
        result[f"by_{name}"] = np.array(rows, dtype=object).reshape(len(effort), *symbols.shape)
    return result, labels


def _leg_form_step(tracer: Tracer, robot: Robot, form: leg_form.LegForm, options: Options) -> Outputs:
    """The step of a robot in leg form: Newton for the platform alone, then Khalil's inverse model."""
    groups = ("motor_position", "motor_rate", "motor_acceleration")
    sensed, rates, wanted = (tracer.group(name, len(robot.actuated)) for name in groups)
    pose_now = newton(form, last_pose(tracer, form), sensed, known_angle, NEWTON_STEPS)
    platform, values = motor_inverse(form, pose_now, rates, wanted, known_angle)
    effort, _ = leg_models.inverse(form, [np.array(q, dtype=object) for q in values], platform, options.without)
    labels = dict.fromkeys((*groups, "effort"), robot.actuated_names)
    return {"effort": effort, "position": pose_now.position, "turn": pose_now.turn}, labels


def _step(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    """What a controller calls: sensed positions and rates, wanted accelerations, last pose in; efforts out."""
    if robot.tree.elastic:
        flexible.refuse_step(robot)
    Configuration(robot, robot.home).refuse_undefined_actuation()
    general = _general(robot, grouped)
    tree, motors = robot.tree, list(robot.actuated)
    form = loaded_legs(grouped, options)
    if form is not None:
        return _leg_form_step(tracer, robot, form, options)
    sensed, rates = tracer.group("motor_position", len(motors)), tracer.group("motor_rate", len(motors))
    wanted = tracer.group("motor_acceleration", len(motors))
    labels = dict.fromkeys(("motor_position", "motor_rate", "motor_acceleration", "effort"), robot.actuated_names)
    q = tracer.group("last", tree.nq).copy() if robot.closures.loops else robot.home.astype(object)
    for symbol, k in zip(sensed, motors, strict=True):
        q[tree.links[tree.link_of_rate[k]].q.start] = symbol
    if not robot.closures.loops:
        order = np.argsort(motors)
        return {"effort": general_form.inverse(general, q, rates[order], wanted[order], options.without)}, labels
    q = newton_steps(robot, q, motors)
    still = np.zeros(len(general.partition.independent))
    J_a = general_form.general_state(general, q, still).reduction.matrix[motors]
    qd = solve(J_a, rates)
    moving = general_form.general_state(general, q, qd)
    drift = moving.reduction.accelerations(still, moving.b_star)[motors]
    effort = general_form.inverse(general, q, qd, solve(J_a, wanted - drift), options.without)
    labels |= {"last": list(tree.position_names), "q": list(tree.position_names)}
    return {"effort": effort, "q": q}, labels


MODELS: dict[str, Callable[[Tracer, Robot, Robot, Options], Outputs]] = {
    "inverse": _inverse,
    "direct": _direct,
    "mass-matrix": _mass_matrix,
    "kinematics": _kinematics,
    "jacobian-of-inverse": _jacobian_of_inverse,
    "geometry": geometry,
    "geometry-direct": geometry_direct,
    "step": _step,
    "pd-law": lambda tracer, robot, grouped, options: feedback.pd_law(tracer, _general(robot, grouped), options),
    "task-law": lambda tracer, robot, grouped, options: feedback.task_law(tracer, _general(robot, grouped), options),
    "state-rates": lambda tracer, robot, grouped, options: moving.state_rates(tracer, grouped, False, options),
    "state-rates-driven": lambda tracer, robot, grouped, options: moving.state_rates(tracer, grouped, True, options),
    "state-rates-following": lambda tracer, robot, grouped, options: moving.following(tracer, grouped, options),
    "energy": lambda tracer, robot, grouped, options: moving.energy(tracer, robot),
} | sensing.MODELS
