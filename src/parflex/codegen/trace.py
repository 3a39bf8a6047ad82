"""Models as traces: named symbols in, the physics over them, named expressions out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parflex.codegen import flexible, moving, sensing
from parflex.codegen.parameters import cleaned_body, grouped_robot, grouped_tree
from parflex.errors import InputError, did_you_mean
from parflex.graph.derivative import jacobian
from parflex.graph.expression import Expression, Graph, known_angle
from parflex.models import general_form, leg_form, leg_models
from parflex.models.configuration import Configuration
from parflex.models.platform_newton import PlatformPose, motor_inverse, newton
from parflex.models.robot import Robot
from parflex.recursion import jacobians, mass_matrix, pose
from parflex.recursion.articulated import articulated_accelerations
from parflex.recursion.kinematics import place_jacobian
from parflex.recursion.newton_euler import JOINT_TERMS
from parflex.spatial.linear import solve, solve_positive

Array = np.ndarray
NEWTON_STEPS = 3
BENDING = ("inverse", "direct", "state-rates", "state-rates-driven")  # written in pieces, for robots that bend


@dataclass(frozen=True)
class Trace:
    """Expressions of a model: groups of inputs and outputs by name, values of symbolic parameters."""

    model: str
    graph: Graph
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    parameters: dict[str, float] = field(default_factory=dict)
    labels: dict[str, list[str]] = field(default_factory=dict)  # what the entries of a group are


class Tracer:
    """Makes symbols and remembers the groups of inputs."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.inputs: dict[str, Array] = {}
        self.parameters: dict[str, float] = {}

    def group(self, name: str, *shape: int) -> Array:
        """New symbols `name[i,j]` as one group of inputs."""
        entries = np.empty(shape, dtype=object)
        for index in np.ndindex(*shape):
            entries[index] = self.graph.symbol(f"{name}[{','.join(map(str, index))}]")
        self.inputs[name] = entries
        return entries

    def parameter(self, name: str, value: float) -> Expression:
        """A number that can be changed without making the program again."""
        self.parameters[name] = value
        return self.graph.symbol(name)


@dataclass(frozen=True)
class Options:
    """What a model keeps: symbolic parameters, joint terms, and how the leg form is written."""

    parameters: str | Sequence[str] = "numbers"
    include: tuple[str, ...] = ()  # of JOINT_TERMS
    by_columns: bool = False
    end_masses: bool = False
    lead: str = "root"  # what the pieces of a robot that bends move with
    wrenches: tuple[str, ...] = ()  # frames on which a wrench acts
    friction_width: float = 0.0  # rate over which Coulomb friction changes its sign

    @property
    def without(self) -> tuple[str, ...]:
        """Joint terms that are left out."""
        return tuple(term for term in JOINT_TERMS if term not in self.include)


def variants(robot: Robot, name: str, options: Options) -> list[Options]:
    """Ways to write the same model; the one with the fewest operators is kept."""
    if robot.tree.elastic and leg_form.leg_form(robot) is None and name in BENDING:
        return [replace(options, lead=lead) for lead in flexible.leads(robot)]
    if name in sensing.MODELS or leg_form.leg_form(robot) is None or options.parameters != "numbers":
        return [options]
    return [replace(options, by_columns=c, end_masses=e) for c in (True, False) for e in (True, False)]


def trace(robot: Robot, model: str, options: Options = Options()) -> Trace:
    """The trace of a model of a robot."""
    if model == "redundant-direct":
        sensing.refuse_direct()
    if model not in MODELS:
        raise InputError(f"there is no model '{model}'", key="MODEL", value=model, hint=did_you_mean(model, MODELS))
    for term in options.include:
        if term not in JOINT_TERMS:
            raise InputError(
                f"'{term}' cannot be included", key="with", value=term, hint=did_you_mean(term, JOINT_TERMS)
            )
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
    if not options.friction_width:
        return robot
    links = [replace(link, terms=replace(link.terms, width=options.friction_width)) for link in robot.tree.links]
    tree = replace(robot.tree, links=tuple(links))
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))


Outputs = tuple[dict[str, Array], dict[str, list[str]]]


def _pose_symbols(tracer: Tracer, planar: bool) -> tuple[Array, Array]:
    """Position and rotation matrix of the platform; in the plane two coordinates and a 2 x 2 matrix."""
    if not planar:
        return tracer.group("position", 3), tracer.group("rotation", 3, 3)
    position, turn = tracer.group("position", 2), tracer.group("rotation", 2, 2)
    R = np.array([[turn[0, 0], turn[0, 1], 0.0], [turn[1, 0], turn[1, 1], 0.0], [0.0, 0.0, 1.0]], dtype=object)
    return np.array([*position, 0.0], dtype=object), R


def _platform_symbols(tracer: Tracer, form: leg_form.LegForm, accelerating: bool) -> leg_form.PlatformMotion:
    """Pose, twist and acceleration of the platform in world axes; in the plane only what moves."""
    gravity = form.robot.tree.gravity
    p, R = _pose_symbols(tracer, form.planar)
    modes = form.elastic.body.size if form.elastic is not None else 0
    bent = [tracer.group(name, modes) for name in ("elastic", "elastic_rate")] if modes else []
    if form.planar:
        v = np.array([*tracer.group("velocity", 2), 0.0], dtype=object)
        w = np.array([0.0, 0.0, *tracer.group("angular_velocity", 1)], dtype=object)
        a = np.array([*tracer.group("acceleration", 2), 0.0], dtype=object) if accelerating else np.zeros(3)
        al = (
            np.array([0.0, 0.0, *tracer.group("angular_acceleration", 1)], dtype=object)
            if accelerating
            else np.zeros(3)
        )
    else:
        v, w = tracer.group("velocity", 3), tracer.group("angular_velocity", 3)
        a = tracer.group("acceleration", 3) if accelerating else np.zeros(3)
        al = tracer.group("angular_acceleration", 3) if accelerating else np.zeros(3)
    return leg_form.PlatformMotion(R, p, v, w, a - gravity, al, *bent)


def _form(grouped: Robot, options: Options) -> leg_form.LegForm | None:
    form = leg_form.leg_form(grouped)
    if form is None or not form.closed_form:
        return None
    if form.elastic is not None:
        form = replace(form, legs=tuple(replace(leg, tree=grouped_tree(leg.tree)) for leg in form.legs))
    if options.end_masses:
        form = leg_form.end_masses_on_platform(form)
        form = replace(form, body=cleaned_body(form.body, float(form.body.m)))
    return replace(form, by_columns=options.by_columns)


def _values(form: leg_form.LegForm, platform: leg_form.PlatformMotion) -> list[Array]:
    return [np.array(leg_form.leg_values(form, leg, platform, known_angle), dtype=object) for leg in form.legs]


def _inverse(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    form = _form(grouped, options)
    if robot.tree.elastic and form is None:
        return flexible.inverse(tracer, robot, options.lead, options.without)
    if not robot.tree.elastic:
        Configuration(robot, robot.home).refuse_undefined_actuation()
    labels = {"effort": robot.actuated_names}
    if form is not None:
        platform = _platform_symbols(tracer, form, True)
        effort, modes = leg_models.inverse(form, _values(form, platform), platform, options.without)
        elastic = {"elastic_acceleration": modes} if form.elastic is not None else {}
        return {"effort": effort, **elastic}, labels | _mode_labels(form)
    general = _general(robot, grouped)
    n = len(general.partition.independent)
    q, qd, qdd = tracer.group("q", robot.tree.nq), tracer.group("qd", n), tracer.group("qdd", n)
    labels |= {"q": list(robot.tree.position_names), "qd": general.independent_names, "qdd": general.independent_names}
    return {"effort": general_form.inverse(general, q, qd, qdd, options.without)}, labels


def _mode_labels(form: leg_form.LegForm) -> dict[str, list[str]]:
    """Names of the modes of a platform that bends."""
    tree = form.robot.tree
    names = [tree.rate_names[k] for k in tree.elastic]
    return dict.fromkeys(("elastic", "elastic_rate", "elastic_acceleration"), names) if names else {}


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
    form = _form(grouped, options)
    if robot.tree.elastic and form is None:
        return flexible.direct(tracer, robot, options.lead, options.without)
    motors = len(robot.actuated)
    if form is not None:
        platform = _platform_symbols(tracer, form, False)
        A, h, B, s = leg_models.equations(form, _values(form, platform), platform, options.without)
        freedom = solve_positive(A, B @ tracer.group("effort", motors) - h)
        split, rigid = (2, 3) if form.planar else (3, 6)
        outputs = {"acceleration": freedom[:split], "angular_acceleration": freedom[split:rigid]}
        if form.elastic is not None:
            outputs["elastic_acceleration"] = leg_models.mode_accelerations(form, platform, freedom, s)
        return outputs, {"effort": robot.actuated_names} | _mode_labels(form)
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


def _geometry(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    """From the pose of the platform to the joints: closed form where all legs have one, else Newton from a guess."""
    if not robot.closures.loops:
        raise InputError(
            "an open robot has no closures to solve",
            key="MODEL",
            value="geometry",
            hint="'kinematics' gives the pose from the joints",
        )
    form = _form(grouped, options)
    if form is None:
        bodies = [
            k
            for link in robot.tree.links
            if link.joint.kind in ("free", "planar")
            for k in range(link.v.start, link.v.stop)
        ]
        return _newton(tracer, robot, bodies or list(robot.actuated))
    p, R = _pose_symbols(tracer, form.planar)
    still = np.zeros(3)
    e = tracer.group("elastic", form.elastic.body.size) if form.elastic is not None else np.zeros(0)
    platform = leg_form.PlatformMotion(R, p, still, still, still, still, e)
    names, values = [], []
    for leg in form.legs:
        for link, value in zip(leg.tree.links, leg_form.leg_values(form, leg, platform, known_angle), strict=True):
            names.append(link.name)
            values.append(np.arctan2(value.sin(), value.cos()) if link.joint.kind == "revolute" else value)
    return {"joints": np.array(values, dtype=object)}, {"joints": names} | _mode_labels(form)


def _newton(tracer: Tracer, robot: Robot, given: list[int]) -> Outputs:
    """A fixed number of Newton steps from a guess of all positions, with some coordinates held as they are in it.

    Of a robot that bends all independent coordinates are held.
    """
    if robot.tree.elastic:
        given = [int(k) for k in flexible.form_of(robot).partition.independent]
    q = tracer.group("guess", robot.tree.nq)
    result = newton_steps(robot, q, given)
    return {"q": result}, {"guess": list(robot.tree.position_names), "q": list(robot.tree.position_names)}


def newton_steps(robot: Robot, q: Any, given: Sequence[int], steps: int = NEWTON_STEPS) -> Any:
    """Positions after Newton steps on the closures, over any scalar; the rates in `given` do not move."""
    from parflex.closure import mobility

    tree = robot.tree
    free = np.array([k for k in robot.free if k not in set(given)], dtype=int)
    J = mobility.scaled_jacobian(robot.closures, robot.home)
    part = mobility.choose_partition(J, free, mobility.rank(J[:, free]), np.ones(tree.n))
    for _ in range(steps):
        at = pose(tree, q)
        block = robot.closures.jacobian(at, jacobians(tree, at))[np.ix_(part.rows, part.dependent)]
        step = np.zeros(tree.n, dtype=object)
        step[part.dependent] = solve(block, -robot.closures.linear_residual(at)[part.rows])
        q = tree.moved(q, step)
    return q


def _geometry_direct(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    """From the motors to all positions: Newton from a guess that already holds the motors' values."""
    if not robot.closures.loops:
        raise InputError(
            "an open robot has no closures to solve", key="MODEL", value="geometry-direct", hint="use 'kinematics'"
        )
    form = _form(grouped, options)
    if form is not None and form.elastic is None:
        sensed = tracer.group("motor_position", len(robot.actuated))
        found = newton(form, _last_pose(tracer, form), sensed, known_angle, NEWTON_STEPS)
        return {"position": found.position, "turn": found.turn}, {"motor_position": robot.actuated_names}
    return _newton(tracer, robot, list(robot.actuated))


def _last_pose(tracer: Tracer, form: leg_form.LegForm) -> PlatformPose:
    planar = form.planar
    return PlatformPose(
        tracer.group("last_position", 2 if planar else 3), tracer.group("last_turn", 1 if planar else 4)
    )


def _leg_form_step(tracer: Tracer, robot: Robot, form: leg_form.LegForm, options: Options) -> Outputs:
    """The step of a robot in leg form: Newton for the platform alone, then Khalil's inverse model."""
    groups = ("motor_position", "motor_rate", "motor_acceleration")
    sensed, rates, wanted = (tracer.group(name, len(robot.actuated)) for name in groups)
    pose_now = newton(form, _last_pose(tracer, form), sensed, known_angle, NEWTON_STEPS)
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
    form = _form(grouped, options)
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
    "geometry": _geometry,
    "geometry-direct": _geometry_direct,
    "step": _step,
    "state-rates": lambda tracer, robot, grouped, options: moving.state_rates(tracer, grouped, False, options),
    "state-rates-driven": lambda tracer, robot, grouped, options: moving.state_rates(tracer, grouped, True, options),
    "energy": lambda tracer, robot, grouped, options: moving.energy(tracer, robot),
} | sensing.MODELS
