"""A robot whose spare motors work against each other: what holds it at rest, and how stiff that makes it, theory (50).

Internal efforts load the loops without moving them; as these turn, their forces turn, which adds to the stiffness. All
that acts is in balance where the robot stands, so the state is found once and then held, by servos, brakes or efforts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parflex.errors import InputError, SingularError
from parflex.models.configuration import Configuration, Pose, configure
from parflex.models.dynamics.element_values import element_values
from parflex.models.dynamics.shared_efforts import shared_efforts
from parflex.models.dynamics.spare_motors import Sharing, asked, read_sharing, spare_motors
from parflex.models.dynamics.taut_cables import driven_cables, slack_warnings
from parflex.models.elastic.equilibrium import Equilibrium, equilibrium
from parflex.models.elastic.holding import Lock
from parflex.models.elastic.loads_at_rest import Conditions, Loading, least_multipliers, prepare
from parflex.models.elastic.stiff_system import StiffnessSolver
from parflex.models.robot import Robot

Array = np.ndarray


def preloaded(robot: Robot, pose: Pose | None, lock: Lock, conditions: Conditions) -> Equilibrium:
    """The robot at rest under the efforts that hold it and those of the preload; motors are then held as asked."""
    if asked(conditions.effort):
        raise InputError(
            "efforts of the motors are given, and a preload, which chooses them", key="effort", hint="keep one of them"
        )
    sharing = read_sharing(robot, conditions.weights, conditions.preload)
    start = configure(robot, pose)
    tau, internal = _holding(start, sharing, conditions)
    here = start
    if robot.deformations:
        here, tau = _deformed(start, tau, sharing, conditions)
    bare = conditions._replace(effort=None, weights=None, preload=None)
    held, loading = prepare(robot, here, lock, *bare)
    acting = np.zeros(robot.tree.n)
    for k, effort in zip(robot.actuated, tau, strict=True):
        acting[k] = 0.0 if k in held.robot.locked else effort
    loading = replace(loading, tau=acting, internal=internal)
    return Equilibrium(robot, held, Configuration(held.robot, start.q), loading, 0, held_at=held)


def _holding(start: Configuration, sharing: Sharing, conditions: Conditions) -> tuple[Array, dict[str, Any] | None]:
    """Efforts that hold the robot with rigid bodies at its pose, theory (46), (47)."""
    robot = start.robot
    rigid = Configuration(robot.locking(robot.deformations), start.q) if robot.deformations else start
    rigid.refuse_undefined_actuation()
    _, loading = prepare(robot, start, "none", wrench=conditions.wrench, without=conditions.without)
    shared = shared_efforts(rigid.J_a.T, rigid.reduction.forces(loading.forces(rigid)), sharing)
    return shared.tau, shared.internal


def _deformed(
    start: Configuration, tau: Array, sharing: Sharing, conditions: Conditions
) -> tuple[Configuration, Array]:
    """Where bodies deform: the preloaded motors push with their efforts, the others stand, and efforts of all."""
    robot, motors, spare = start.robot, start.robot.actuated_names, spare_motors(start.robot)
    if len(sharing.preloaded) != spare:
        raise InputError(
            "bodies deform, so each spare motor needs a stated effort",
            key="preload",
            value=", ".join(motors[k] for k in sharing.preloaded),
            hint=f"name {spare} of {', '.join(motors)}",
        )
    stand = [name for k, name in enumerate(motors) if k not in sharing.preloaded]
    rest = equilibrium(
        robot, start, stand, wrench=conditions.wrench, effort={motors[k]: tau[k] for k in sharing.preloaded},
        without=conditions.without,
    )  # fmt: skip
    return rest.configuration, _efforts_at(rest.configuration, rest.loading)[list(robot.actuated)]


def _efforts_at(here: Configuration, loading: Loading) -> Array:
    """What motors give along all rates at rest: as stated, or what the standing ones have to hold."""
    F, free = loading.forces(here), here.robot.free
    rows = here.closure_jacobian
    lam = np.linalg.lstsq(rows[:, free].T, F[free], rcond=1e-12)[0] if len(rows) else np.zeros(0)
    needed = F - rows.T @ lam
    needed[free] = 0.0
    return loading.tau + needed


def pushing_at_rest(
    here: Configuration, loading: Loading, K: Array | None = None, K_tot: Array | None = None
) -> list[str]:
    """Warnings where driven cables push at rest; with stiffnesses, under what they give to hold the loads."""
    if not driven_cables(here.robot):
        return []
    F = loading.forces(here)
    if K is not None and K_tot is not None:
        try:
            F = F + K_tot @ here.J @ StiffnessSolver(here, K).solve(-here.reduction.forces(F))
        except SingularError:  # nothing holds the loads, so there is no tension to tell
            return []
    return slack_warnings(here.robot, element_values(here, None, least_multipliers(here, F)))
