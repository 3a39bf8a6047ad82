"""A robot whose spare motors work against each other: what holds it at rest, and how stiff that makes it, theory (50).

Internal efforts load the loops without moving them; as these turn, their forces turn, which adds to the stiffness. All
that acts is in balance where the robot stands, so the state is found once and then held, by servos, brakes or efforts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parflex.errors import InputError, ParflexError, SingularError
from parflex.forces.forces import element_values
from parflex.forces.shared_efforts import shared_efforts
from parflex.forces.spare_motors import Sharing, asked, read_sharing, spare_motors
from parflex.forces.taut_cables import TAUT, driven_cables, slack_warnings, tautened
from parflex.models.elastic.equilibrium import Equilibrium, equilibrium
from parflex.models.elastic.holding import Lock, held_robot
from parflex.models.elastic.loads_at_rest import Conditions, Loading, least_multipliers, prepare
from parflex.models.elastic.stiff_system import StiffnessSolver
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot

Array = np.ndarray
HELD = "motors hold the robot here, and internal efforts keep its cables taut: the answer is about this equilibrium"


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
    efforts = np.zeros(robot.tree.n)
    for k, effort in zip(robot.actuated, tau, strict=True):
        efforts[k] = 0.0 if k in held.robot.locked else effort
    loading = replace(loading, tau=efforts, internal=internal)
    return Equilibrium(robot, held, Configuration(held.robot, start.q), loading, 0, held_at=held)


def _holding(start: Configuration, sharing: Sharing, conditions: Conditions) -> tuple[Array, dict[str, Any] | None]:
    """Efforts that hold the robot with rigid bodies at its pose, as the inverse model has them, theory (46) to (48)."""
    robot = start.robot
    rigid = Configuration(robot.locking(robot.deformations), start.q) if robot.deformations else start
    rigid.refuse_undefined_actuation()
    _, loading = prepare(robot, start, "none", wrench=conditions.wrench, without=conditions.without)
    A, F = rigid.J_a.T, loading.forces(rigid)
    shared = tautened(shared_efforts(A, rigid.reduction.forces(F), sharing), rigid, A, F, sharing)
    return shared.tau, shared.internal


def kept_taut(robot: Robot, pose: Pose | None, lock: Lock, conditions: Conditions) -> Equilibrium | None:
    """The robot at rest where motors that hold it keep its cables taut by internal efforts, as in the inverse model.

    None where cables are taut under efforts of least norm, where nothing keeps them so, or where a motor is free.
    """
    robot = acting_robot(robot, conditions.without)
    if asked(conditions.effort) or not driven_cables(robot) or robot.deformations or spare_motors(robot) <= 0:
        return None
    start = configure(robot, pose)
    held = held_robot(robot, start.q, lock, conditions.servo, conditions.servo_damping)
    own, now = ([tree.links[tree.link_of_rate[k]].terms.stiffness for k in robot.actuated]
                for tree in (robot.tree, held.tree))  # fmt: skip
    if any(k not in held.locked and one == other for k, one, other in zip(robot.actuated, own, now, strict=True)):
        return None
    try:
        rest = preloaded(robot, start, lock, conditions)
    except ParflexError:  # the motors do not hold this pose, and what is asked may not need them to
        return None
    internal = rest.loading.internal
    return replace(rest, why=HELD) if internal is not None and internal["chosen_by"].endswith(TAUT) else None


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
