"""Inverse and direct dynamics of states given as arrays, in floats, with every check and suitable independent rates.

Compiled programs compute most states; this module computes those that a program does not verify. `robot` is the robot
without omitted terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.dynamics.dynamics import (
    Result,
    accelerations_under,
    driven_by,
    equilibrium_warnings,
    partly_driven_inverse,
    rigid_inverse,
    state_at,
)
from parflex.errors import InputError
from parflex.forces.effort_allocation import EffortAllocation, read_allocation
from parflex.forces.forces import Wrench
from parflex.robot.configuration import Configuration, all_accelerations, all_rates
from parflex.robot.robot import Robot
from parflex.robot.states import (
    ToleranceFactors,
    as_numbers,
    closed_positions,
    refuse_infinite,
    tolerance_factors,
)
from parflex.statics.small_deformation import deflection_warnings

Array = np.ndarray


def inverse_at(
    robot: Robot, q: Any, qd: Any = None, qdd: Any = None, wrenches: Wrench | None = None,
    tolerances: ToleranceFactors | None = None, allocation: EffortAllocation | None = None,
) -> Result:  # fmt: skip
    """Efforts at a state; of a flexible robot for accelerations of the motors, and the others follow.

    As in a motion given by joints, a leg at a singularity of its own does not matter: its rates are known. `tolerances`
    say how many times farther from closed the state may be than in double precision, by default by the type
    of its arrays.
    """
    tolerances = tolerance_factors(q, qd, qdd) if tolerances is None else tolerances
    configuration = Configuration(robot, closed_positions(robot, q, factor=tolerances.positions))
    rates = all_rates(configuration, qd, tolerances.rates)
    if robot.tree.elastic:
        return _flexible_inverse(configuration, rates, qdd, wrenches, qd is None, allocation)
    if configuration.is_underactuated_here:
        motors = list(robot.actuated)
        target_accelerations = (
            motor_accelerations(configuration, rates, qdd) - configuration.acceleration_bias(rates)[motors]
        )
        allocation = allocation or read_allocation(robot)
        return partly_driven_inverse(
            configuration, rates, np.eye(robot.nv)[motors], target_accelerations, wrenches, False, allocation
        )
    configuration.refuse_undefined_actuation()
    accelerations = all_accelerations(configuration, rates, qdd, tolerances.accelerations)
    return rigid_inverse(configuration, rates, accelerations, wrenches, allocation=allocation)


def forward_at(
    robot: Robot,
    q: Any,
    qd: Any = None,
    effort: Any = None,
    wrenches: Wrench | None = None,
    tolerances: ToleranceFactors | None = None,
) -> Result:
    """Accelerations at a state under efforts of the motors."""
    tolerances = tolerance_factors(q, qd) if tolerances is None else tolerances
    configuration = Configuration(robot, closed_positions(robot, q, factor=tolerances.positions))
    tau = np.zeros(robot.nu) if effort is None else as_numbers(effort, "effort")
    if tau.shape != (robot.nu,):
        raise wrong_effort(robot, tau)
    refuse_infinite(tau, "effort")
    return accelerations_under(configuration, all_rates(configuration, qd, tolerances.rates), tau, wrenches)


def wrong_effort(robot: Robot, tau: Array) -> InputError:
    """What is said of efforts of another number than that of the motors."""
    return InputError(
        f"'effort' has the shape {tau.shape}, not ({robot.nu},)", key="effort", value=str(tau.shape),
        hint=f"give {robot.nu} numbers in the order of robot.motors; a leading axis is a batch",
    )  # fmt: skip


def array_warnings(result: Result) -> list[Diagnostic]:
    """Diagnostics of this state, without those that hold for every state of the robot."""
    known = set(result.robot.diagnostics)
    return [
        diagnostic
        for diagnostic in result.diagnostics
        if diagnostic not in known and diagnostic.code not in ("redundant-motors", "underactuated")
    ]


def _flexible_inverse(
    configuration: Configuration, qd: Array, accelerations: Any, wrenches: Wrench | None, resting: bool,
    allocation: EffortAllocation | None = None,
) -> Result:  # fmt: skip
    """Motors accelerate as given, all else as it must: entries of `accelerations` for other rates are not used."""
    robot, motors = configuration.robot, list(configuration.robot.actuated)
    state = state_at(configuration, qd, wrenches)
    target_accelerations = motor_accelerations(configuration, qd, accelerations)
    shared, qdd, _ = driven_by(
        state, state.J_a, target_accelerations - state.bias[motors], allocation or read_allocation(robot)
    )
    tau = shared.tau
    diagnostics = deflection_warnings(robot.tree, configuration.q)
    diagnostics += equilibrium_warnings(configuration, qdd, moving=accelerations is not None) if resting else []
    efforts = dict(zip(robot.actuated_names, (float(value) for value in tau), strict=True))
    return Result(robot, configuration, qd, qdd, efforts, False, None, tuple(diagnostics))


def motor_accelerations(configuration: Configuration, qd: Array, accelerations: Any) -> Array:
    """Accelerations of the motors from those of all rates, of the independent ones, or of the motors alone."""
    robot, motors = configuration.robot, list(configuration.robot.actuated)
    if accelerations is None:
        return np.zeros(robot.nu)
    qdd = as_numbers(accelerations, "qdd")
    refuse_unknown_motors(robot, qdd)
    refuse_infinite(qdd, "qdd")
    if qdd.shape == (robot.nv,):
        return qdd[motors]
    return qdd if qdd.shape == (robot.nu,) else all_accelerations(configuration, qd, qdd)[motors]


def refuse_unknown_motors(robot: Robot, qdd: Array) -> None:
    """Raise where an array has no length from which accelerations of the motors of a flexible robot follow."""
    if qdd.ndim not in (1, 2) or qdd.shape[-1] not in (robot.nv, robot.nu, len(robot.independent_rates)):
        raise InputError(
            f"'qdd' has the shape {qdd.shape}", key="qdd", value=str(qdd.shape),
            hint=f"give {robot.nu} numbers in the order of robot.motors, or {robot.nv} in the order of robot.rates, of "
            "which those of the motors are used: bodies are free to deform",
        )  # fmt: skip
