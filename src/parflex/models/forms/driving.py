"""States of the general form from what drives a robot, its motors or its platform: positions by Newton, then rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.closure.mobility import reduction
from parflex.models.forms.closing import closed_by
from parflex.models.forms.form import FAR, Given
from parflex.models.forms.platform_frame import PlatformFrame, world, world_vectors
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.robot import Robot
from parflex.spatial.linear import least_squares, scalar_type, solve

Array = np.ndarray


def with_motors_at(robot: Robot, q: Any, values: Array) -> Any:
    """Positions, written into, in which the motors stand as given."""
    tree = robot.tree
    for value, k in zip(values, robot.actuated, strict=True):
        q[tree.links[tree.link_of_rate[k]].q.start] = value
    return q


def motor_state(form: Any, sensed: Array, rates: Array, last: Array) -> Any:
    """The state in which the motors stand and move so, near the last positions."""
    robot = form.robot
    if len(robot.actuated) > len(form.independent):
        q = fitted_positions(form, sensed, last.copy())
    else:
        q = with_motors_at(robot, last.copy(), sensed)
        q = closed_by(form.finder.robot, form.finder.partition, q, FAR)
    J_a = form.moving(q, np.zeros(len(form.independent))).J_a
    return form.moving(q, fitted_rates(robot, J_a, rates))


def fitted_rates(robot: Robot, J_a: Array, values: Array) -> Array:
    """Independent rates for rates of the motors; of more motors than freedoms, those that fit all of them best."""
    return least_squares(J_a, values, robot.tree.rate_units[list(robot.actuated)])


def unfitted(robot: Robot, state: Any, sensed: Array, independent: Array) -> Array:
    """Return the slopes of half the squared errors of the motors, in metres: zero where positions fit them best."""
    tree, motors = robot.tree, list(robot.actuated)
    places = [tree.links[tree.link_of_rate[k]].q.start for k in motors]
    units = tree.rate_units[motors]
    errors = (sensed - state.q[places]) / units
    return tree.length * ((state.J_a / units[:, None] * tree.rate_units[independent]).T @ errors)


def fitted_positions(form: Any, sensed: Array, q: Any) -> Any:
    """All positions after Newton steps: loops closed, and more motors than freedoms where they fit best."""
    finder = form.finder or form
    robot, part = finder.robot, finder.partition
    tree, actuated = robot.tree, list(robot.actuated)
    places = [tree.links[tree.link_of_rate[k]].q.start for k in actuated]
    for _ in range(FAR):
        at = pose(tree, q)
        reduced = reduction(robot.closures.jacobian(at, jacobians(tree, at)), part)
        closing = reduced.closing(robot.closures.linear_residual(at))
        missing: Array = np.array([sensed[i] - q[p] for i, p in enumerate(places)], dtype=scalar_type(sensed, q))
        step = fitted_rates(robot, reduced.matrix[actuated], missing - closing[actuated])
        q = tree.moved(q, reduced.matrix @ step + closing)
    return q


def platform_state(form: Any, frame: PlatformFrame, given: Given) -> Any:
    """The state in which the platform stands and moves so, near the last positions."""
    planar = form.robot.tree.planar
    p, R = world(planar, given["position"], given["rotation"])
    q = _placed(form, frame, p, R, given["last"])
    rows = frame.rows(pose(form.robot.tree, q))
    still = form.moving(q, np.zeros(len(form.independent)))
    twist = frame.picked(*world_vectors(planar, given["velocity"], given["angular_velocity"]))
    return form.moving(q, solve(rows @ still.reduction.matrix, twist))


def _placed(form: Any, frame: PlatformFrame, p: Array, R: Array, q: Any) -> Any:
    """All positions after Newton steps: loops closed, and the frame at its prescribed pose.

    The dependent rates close the loops, the independent ones bring the frame there: one step of Newton in two parts.
    Loops are open on the way, and seen so.
    """
    finder = form.finder or form
    robot, part = finder.robot, finder.partition
    for _ in range(FAR):
        at = pose(robot.tree, q)
        reduced = reduction(robot.closures.jacobian(at, jacobians(robot.tree, at)), part)
        closing = reduced.closing(robot.closures.linear_residual(at))
        rows = frame.rows(at)
        step = solve(rows @ reduced.matrix, frame.missing(at, p, R) - rows @ closing)
        q = robot.tree.moved(q, reduced.matrix @ step + closing)
    return q


def platform_driven(form: Any, frame: PlatformFrame, state: Any, given: Given) -> Array:
    """Independent accelerations for those of the platform."""
    desired = world_vectors(form.robot.tree.planar, given["acceleration"], given["angular_acceleration"])
    drift = frame.accelerations(state.at, state.qd, state.bias)
    rows = frame.rows(state.at) @ state.reduction.matrix
    return solve(rows, frame.picked(*desired) - frame.picked(*drift))


def inertia_along(M: Array, rows: Array, units: Array | None = None) -> Array:
    """The mass matrix in rates that are `rows` of the rates of M; of more rows than rates in their least squares."""
    one: Array = np.eye(len(rows), dtype=scalar_type(rows))
    P = solve(rows, one) if units is None else least_squares(rows, one, units)
    return P.T @ M @ P
