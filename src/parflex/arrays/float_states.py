"""Inverse and direct dynamics of states given as arrays, in floats, with every check and suitable independent rates.

Compiled programs compute most states; this module computes those that fail a check. `robot` is the robot without
omitted terms.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from parflex.robot.configuration import Configuration, all_accelerations, all_rates
from parflex.robot.robot import Robot
from parflex.robot.states import ToleranceFactors, as_numbers, closed_positions, refuse_infinite
from parflex.statics.small_deformation import deflection_warnings

Array = np.ndarray


def answer_in_floats(
    robot: Robot, question: Any, arrays: Sequence[Array | None], tolerances: ToleranceFactors,
    allocation: EffortAllocation | None = None,
) -> Result:  # fmt: skip
    """Efforts, or accelerations, at a state; of a flexible robot for accelerations of the motors, and others follow.

    As in a motion given by joints, a leg at a singularity of its own does not matter: its rates are known. `tolerances`
    say how many times farther from closed the state may be than in double precision.
    """
    q, qd, last, *loads = arrays
    wrenches: Any = dict(zip(question.frames, loads, strict=True)) or None
    configuration = Configuration(robot, closed_positions(robot, q, factor=tolerances.positions))
    if question.model == "forward":
        tau = np.zeros(robot.nu) if last is None else last
        if tau.shape != (robot.nu,):
            raise wrong_effort(robot, tau)
        refuse_infinite(tau, "effort")
        return accelerations_under(configuration, all_rates(configuration, qd, tolerances.rates), tau, wrenches)
    rates = all_rates(configuration, qd, tolerances.rates)
    allocation = allocation or read_allocation(robot)
    if not robot.tree.elastic and not configuration.is_underactuated_here:
        configuration.refuse_undefined_actuation()
        accelerations = all_accelerations(configuration, rates, last, tolerances.accelerations)
        return rigid_inverse(configuration, rates, accelerations, wrenches, allocation=allocation)
    motors = list(robot.actuated)
    target = motor_accelerations(configuration, rates, last) - configuration.acceleration_bias(rates)[motors]
    if not robot.tree.elastic:
        return partly_driven_inverse(
            configuration, rates, np.eye(robot.nv)[motors], target, wrenches, False, allocation
        )
    state = state_at(configuration, rates, wrenches)
    shared, qdd, _ = driven_by(state, state.J_a, target, allocation)
    diagnostics = deflection_warnings(robot.tree, configuration.q)
    diagnostics += equilibrium_warnings(configuration, qdd, moving=last is not None) if qd is None else []
    efforts = dict(zip(robot.actuated_names, map(float, shared.tau), strict=True))
    return Result(robot, configuration, rates, qdd, efforts, False, None, tuple(diagnostics))


def wrong_effort(robot: Robot, tau: Array) -> InputError:
    """What is said of efforts of another number than that of the motors."""
    return InputError(
        f"'effort' has the shape {tau.shape}, not ({robot.nu},)", key="effort", value=str(tau.shape),
        hint=f"give {robot.nu} numbers in the order of robot.motors; a leading axis is a batch",
    )  # fmt: skip


def array_diagnostics(result: Result) -> list[Diagnostic]:
    """Diagnostics of this state, without those that hold for every state of the robot."""
    known = set(result.robot.diagnostics)
    return [
        diagnostic
        for diagnostic in result.diagnostics
        if diagnostic not in known and diagnostic.code not in ("redundant-motors", "underactuated")
    ]


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


def refuse_overflow(arrays: Sequence[Array | None], names: Sequence[str], limit: float) -> None:
    """Raise where the largest number of a state is beyond a limit."""
    entries = [
        (abs(float(value)), name, place, float(value))
        for array, name in zip(arrays, names, strict=True)
        if array is not None
        for place, value in enumerate(array)
        if np.isfinite(value)
    ]
    size, name, place, value = max(entries, default=(0.0, "q", 0, 0.0))
    if size > limit:
        raise InputError(
            f"entry {place} of '{name}' is {value:.4g}, so large that the answer is not finite", key=name,
            value=value, hint="give a smaller number",
        )  # fmt: skip
