"""Read values of motors by name or in the order of the motors, for all public functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from parflex.checks import short_text, table
from parflex.errors import InputError, did_you_mean
from parflex.robot.robot import Robot

Array = np.ndarray
Effort = Mapping[str, float] | Sequence[float] | Array


def by_motor(motors: Sequence[str], named_values: Mapping[str, Any], key: str, what: str = "value") -> dict[int, Any]:
    """Return named values by number of the motor; names may have the `q` of the coordinate."""
    values: dict[int, Any] = {}
    for word, value in table(named_values, key, f"{{'{motors[0] if motors else 'joint'}': 2.0}}").items():
        name = word if word in motors else word.removeprefix("q")
        if name not in motors:
            raise InputError(f"'{word}' is not an actuated joint", key=key, value=word, hint=did_you_mean(word, motors))
        motor = motors.index(name)
        if motor in values:
            raise InputError(f"the {what} of '{name}' is given twice", key=key, value=word, hint="keep one of them")
        values[motor] = value
    return values


def read_efforts(robot: Robot, effort: Any, key: str = "effort") -> Array:
    """Return efforts in the order of the motors, from names (zero by default) or an array; None means zero."""
    motors = robot.actuated_names
    if effort is None or isinstance(effort, Mapping):
        tau = np.zeros(len(motors))
        values = {} if effort is None else by_motor(motors, effort, key, "effort")
        for motor, value in values.items():
            tau[motor] = motor_effort(motors[motor], value, key)
        return tau
    try:
        row = np.atleast_1d(np.asarray(effort))
        tau = row.astype(float) if row.dtype.kind in "iuf" else np.array([np.nan])
    except (TypeError, ValueError):
        tau = np.array([np.nan])
    if tau.shape != (len(motors),) or not np.isfinite(tau).all():
        listed = ", ".join(f"'{name}'" for name in motors[:12]) or "it has none"
        hint = f"give {len(motors)} numbers in the order of the motors ({listed}), or names with values"
        text = "this is not one finite effort for every motor"
        raise InputError(text, key=key, value=short_text(effort), hint=hint)
    return tau


def motor_effort(name: str, value: Any, key: str = "effort") -> float:
    """Return the effort of one motor."""
    number = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if isinstance(number, bool) or not isinstance(number, Real) or not np.isfinite(float(number)):
        text = f"the effort of '{name}' is not a finite number"
        raise InputError(text, key=key, value=short_text(value), hint="give e.g. 2.0")
    return float(number)
