"""Limits of motors: velocities, accelerations, and efforts from a lowest to a highest value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.records import Record
from parflex.robot.motor_values import by_motor
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import LIMIT_KEYS, MotionTable

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class MotorLimits(Record):
    """Limits in the order of the motors; infinite where there are none."""

    low: Array  # efforts
    high: Array
    velocity: Array
    acceleration: Array


def limits_of(robot: Robot, motion: MotionTable, name: str) -> MotorLimits:
    """The limits of a table; there must be some."""
    efforts, velocity, acceleration = (_read(robot, getattr(motion, key), key, name) for key in LIMIT_KEYS)
    found = MotorLimits(efforts[0], efforts[1], velocity[1], acceleration[1])
    if not any(np.isfinite(values).any() for values in (efforts, velocity, acceleration)):
        raise InputError(
            "a time-optimal motion has no limits", key=f"motions.{name}.effort_limit",
            hint="add effort_limit, velocity_limit or acceleration_limit",
        )  # fmt: skip
    return found


def _read(robot: Robot, given: Any, key: str, name: str) -> Array:
    """Lowest and highest values of all motors."""
    motors, where = robot.actuated_names, f"motions.{name}.{key}"
    table = given if isinstance(given, Mapping) else dict.fromkeys(motors, given)
    bounds = np.full((2, len(motors)), np.inf) * np.array([[-1.0], [1.0]])
    for motor, value in by_motor(motors, table, where, "limit").items():
        if value is None:
            continue
        if isinstance(value, tuple):
            if key != "effort_limit" or value[0] >= value[1]:
                raise InputError(
                    f"[{value[0]:g}, {value[1]:g}] is not a range for '{motors[motor]}'", key=where,
                    value=str(list(value)), hint="give one positive number, or [lowest, highest] of efforts",
                )  # fmt: skip
            bounds[:, motor] = value
        elif value <= 0:
            raise InputError(
                f"the limit {value:g} of '{motors[motor]}' is not positive", key=where, value=value,
                hint="give more than zero",
            )  # fmt: skip
        else:
            bounds[:, motor] = -value, value
    return bounds
