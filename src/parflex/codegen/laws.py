"""Traces of control laws and of their sensor models.

A law needs motor sensors alone: sensed and desired motion are inputs, efforts outputs. A program for geometry closes
the positions of all coordinates first; gains are parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.checks import require
from parflex.codegen.options import Options
from parflex.codegen.tracer import Outputs, Tracer
from parflex.dynamics.dynamics import mass_matrix
from parflex.recursion.kinematics import jacobians, motion, place_jacobian
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.linear import least_squares, solve

Array = np.ndarray
TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
GAINS = {"Kp": 1517.15, "Kv": 46.05}  # 10 % overshoot and a peak after 0.1 s, [Zubizarreta2010, section 4.8]
MODELS = (
    *("redundant", "extended-law", "classical-law", "extended-step", "classical-step"),
    *("geometry-redundant", "geometry-motors"),
)
REFERENCE = ("reference", "reference_rate", "reference_acceleration")


def pd_law(tracer: Tracer, form: Any, options: Options) -> Outputs:
    """Stiffness and damping on the errors of the motors, and what holds the robot still where it is."""
    robot = form.robot
    count = len(robot.actuated)
    q, qd = tracer.group("q", robot.tree.nq), tracer.group("qd", count)
    desired, desired_rate = tracer.group("reference", count), tracer.group("reference_rate", count)
    tracer.group("reference_acceleration", count)  # not used: all laws of joints have the same inputs
    inertia = motor_inertias(Configuration(robot, robot.home))
    stiffness, damping = (
        np.array(
            [
                tracer.parameter(f"{word}[{name}]", gain * motor_inertia)
                for name, motor_inertia in zip(robot.actuated_names, inertia, strict=True)
            ]
        )
        for word, gain in (("stiffness", GAINS["Kp"]), ("damping", GAINS["Kv"]))
    )
    zero_rates = np.zeros(len(form.independent))
    feedback = stiffness * wrapped(robot, desired - q[_places(robot)]) + damping * (desired_rate - qd)
    state = form.moving(q, zero_rates)
    if count > len(zero_rates):  # its efforts would work against each other: the motors share what they do together
        forces: Array = state.forces(state.accelerations(zero_rates)).astype(object)
        forces[list(robot.actuated)] += feedback
        effort = state.efforts(forces)
    else:
        effort = feedback + form.inverse(state, {"qdd": zero_rates})["effort"]
    return {"effort": effort}, dict.fromkeys(("qd", "reference", "effort"), robot.actuated_names)


def task_law(tracer: Tracer, form: Any, options: Options) -> Outputs:
    """Computed torque with errors of the end effector, in the components of its twist that the motors drive."""
    robot = form.robot
    tree, driven = robot.tree, driven_components(robot)
    q, rates = tracer.group("q", tree.nq), tracer.group("qd", len(robot.actuated))
    p_desired, R_desired = tracer.group("position", 3), tracer.group("rotation", 3, 3)
    twist = np.concatenate([tracer.group("velocity", 3), tracer.group("angular_velocity", 3)])
    reference_acceleration = np.concatenate([tracer.group("acceleration", 3), tracer.group("angular_acceleration", 3)])
    Kp, Kv = (tracer.parameter(name, value) for name, value in GAINS.items())
    J_a = form.moving(q, np.zeros(len(form.independent))).J_a
    state = form.moving(q, least_squares(J_a, rates, robot.tree.rate_units[list(robot.actuated)]))
    place = tree.places[tree.end_effector]
    R, p = state.at.of(place)
    J_v, J_w = place_jacobian(tree, state.at, jacobians(tree, state.at), place)
    rows = np.concatenate([R @ J_v, R @ J_w])
    drift = motion(tree, state.at, state.qd, state.bias)
    _, _, a, al = drift.of(place)
    bias = np.concatenate([R @ a, R @ al])
    error = np.concatenate([p_desired - p, _turn(R_desired @ R.T, tree.planar)])
    desired = reference_acceleration + Kv * (twist - rows @ state.qd) + Kp * error - bias
    accelerations = solve((rows @ state.reduction.matrix)[list(driven)], desired[list(driven)])
    return form.inverse(state, {"qdd": accelerations}), dict.fromkeys(("qd", "effort"), robot.actuated_names)


def driven_components(robot: Robot) -> tuple[int, ...]:
    """Components of the end effector's twist (x y z, then rotations) that the motors drive, one per freedom."""
    configuration = Configuration(robot, robot.home)
    configuration.refuse_undefined_actuation()
    _, names = configuration.platform_freedom()
    message = (
        "the end effector does not move with all degrees of freedom of the robot, so its reference does not define "
        "the motion"
    )
    hint, whole = "name another end_effector, or choose another actuation", len(names) == configuration.J.shape[1]
    require(whole, message, "end_effector", hint, robot.tree.end_effector)
    return tuple(TWIST.index(name) for name in names)


def wrapped(robot: Robot, error: Array) -> Array:
    """Errors of motors, of those that a whole turn does not change the short way round."""
    periodic = [robot.tree.links[robot.tree.link_of_rate[k]].periodic for k in robot.actuated]
    entries = [
        np.arctan2(np.sin(e), np.cos(e)) if is_periodic else e for e, is_periodic in zip(error, periodic, strict=True)
    ]
    return np.array(entries, dtype=object)


def motor_inertias(configuration: Configuration) -> Array:
    """What each motor has to accelerate at a pose while the others are locked: the diagonal of M in motor rates."""
    return np.diag(mass_matrix(configuration.robot, configuration, "motors")[0])


def _places(robot: Robot) -> list[int]:
    return [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]


def _turn(E: Array, planar: bool) -> Array:
    """What is left to turn, in world axes: the angle in the plane, axis times sine in space."""
    if planar:
        return np.array([0.0, 0.0, np.arctan2(E[1, 0], E[0, 0])], dtype=object)
    return np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]]) / 2


def trace_law(tracer: Tracer, form: Any, options: Options) -> Outputs:
    """Measured and reference joint values in, efforts out; the gains are parameters."""
    state = form.state(tracer.groups(form.state_groups))
    return {"effort": _law_efforts(tracer, form, state)}, form.labels


def trace_controller_step(tracer: Tracer, form: Any, options: Options) -> Outputs:
    """A whole controller: what sensors give, the reference and the last pose in; efforts and the pose out."""
    guess, count = tracer.group("last", form.robot.tree.nq), len(form.independent)
    measured, rates = (tracer.group(name, count) for name in ("measured", "measured_rate"))
    geometry = form.geometry({"guess": guess, "measured": measured})[0]
    return {"effort": _law_efforts(tracer, form, (geometry["q"], rates))} | geometry, form.labels


def _law_efforts(tracer: Tracer, form: Any, state: tuple[Array, Array]) -> Array:
    """Efforts of the law for a reference that is symbols too."""
    reference = tuple(tracer.group(name, len(form.independent)) for name in REFERENCE)
    return form.law(state, reference, *(tracer.parameter(name, value) for name, value in GAINS.items()))
