"""Traces of geometry: from the platform to the joints, from the motors to all positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.closure import mobility
from parflex.codegen.traces import flexible
from parflex.codegen.traces.leg_symbols import closed_legs, leg_values, mode_labels, plain_values, pose_symbols
from parflex.codegen.traces.tracing import Options, Outputs, Tracer
from parflex.errors import InputError
from parflex.graph.expression import known_angle
from parflex.models import leg_form
from parflex.models.platform_newton import PlatformPose, newton
from parflex.models.robot import Robot
from parflex.recursion import jacobians, pose
from parflex.spatial.linear import solve

Array = np.ndarray
NEWTON_STEPS = 3


def geometry(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    """From the pose of the platform to the joints: closed form where all legs have one, else Newton from a guess."""
    if not robot.closures.loops:
        raise InputError(
            "an open robot has no closures to solve",
            key="MODEL",
            value="geometry",
            hint="'kinematics' gives the pose from the joints",
        )
    form = closed_legs(grouped, options)
    if form is None:
        bodies = [
            k
            for link in robot.tree.links
            if link.joint.kind in ("free", "planar")
            for k in range(link.v.start, link.v.stop)
        ]
        return _newton(tracer, robot, bodies or list(robot.actuated))
    p, R = pose_symbols(tracer, form.planar)
    still = np.zeros(3)
    e = tracer.group("elastic", form.elastic.body.size) if form.elastic is not None else np.zeros(0)
    platform = leg_form.PlatformMotion(R, p, still, still, still, still, e)
    found = plain_values(form, leg_values(form, platform))
    names = [link.name for leg in form.legs for link in leg.tree.links]
    values = [found[robot.tree.links[j].q.start] for leg in form.legs for j in leg.links]
    return {"joints": np.array(values, dtype=object)}, {"joints": names} | mode_labels(form)


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
    tree = robot.tree
    free = np.array([k for k in robot.free if k not in set(given)], dtype=int)
    J = mobility.scaled_jacobian(robot.closures, robot.home)
    part = mobility.choose_partition(J, free, mobility.rank(J[:, free]), np.ones(tree.n))
    return closed_by(robot, part, q, steps)


def closed_by(robot: Robot, part: mobility.Partition, q: Any, steps: int) -> Any:
    """Positions after Newton steps of the dependent coordinates of a partition, over any scalar."""
    tree = robot.tree
    for _ in range(steps):
        at = pose(tree, q)
        block = robot.closures.jacobian(at, jacobians(tree, at))[np.ix_(part.rows, part.dependent)]
        step = np.zeros(tree.n, dtype=object)
        step[part.dependent] = solve(block, -robot.closures.linear_residual(at)[part.rows])
        q = tree.moved(q, step)
    return q


def geometry_direct(tracer: Tracer, robot: Robot, grouped: Robot, options: Options) -> Outputs:
    """From the motors to all positions: Newton from a guess that already holds the motors' values."""
    if not robot.closures.loops:
        raise InputError(
            "an open robot has no closures to solve", key="MODEL", value="geometry-direct", hint="use 'kinematics'"
        )
    form = closed_legs(grouped, options)
    if form is not None and form.elastic is None:
        sensed = tracer.group("motor_position", len(robot.actuated))
        found = newton(form, last_pose(tracer, form), sensed, known_angle, NEWTON_STEPS)
        return {"position": found.position, "turn": found.turn}, {"motor_position": robot.actuated_names}
    return _newton(tracer, robot, list(robot.actuated))


def last_pose(tracer: Tracer, form: leg_form.LegForm) -> PlatformPose:
    """Symbols of the pose from which Newton starts."""
    planar = form.planar
    return PlatformPose(
        tracer.group("last_position", 2 if planar else 3), tracer.group("last_turn", 1 if planar else 4)
    )
