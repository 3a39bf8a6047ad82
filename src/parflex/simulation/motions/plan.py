"""Plans of motions: a motion by itself, before any run, for tables and for its limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.errors import InputError, RobotFileError
from parflex.robot.limits import refuse_violations
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import LIMIT_KEYS, MotionTable
from parflex.robotfile.read import read_tables
from parflex.simulation.inputs.function_samples import Span
from parflex.simulation.inputs.motor_motions import MotorMotion, from_table, motion_of
from parflex.simulation.motions.extremes import check_channels
from parflex.simulation.motions.given_motions import motion_table

Array = np.ndarray
LONGEST = 1e4  # s
Limits = float | Mapping[str, Any] | None


def plan_motion(
    robot: Robot,
    motion: Any,
    time: float | None = None,
    *,
    effort_limit: Limits = None,
    velocity_limit: Limits = None,
    acceleration_limit: Limits = None,
    ignore_limits: bool = False,
) -> MotorMotion:
    """Plan a motion of the motors, without a run.

    Limits that are given are those of a time-optimal motion; they replace those of its table. A motion in which a motor
    exceeds its `limits` or `velocity_limit` of the robot file is refused.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    motion : str, Path, Mapping or callable
        Motion: name in the file, motion file, table, table of knots, or function of time (m, rad).
    time : float, default None
        Duration, of motions without an end (s); sines of motors and what has a period go on behind it.
    effort_limit : float or Mapping[str, float], default None
        Largest effort of all motors, or of each; a pair is the lowest and the highest (N, N m).
    velocity_limit : float or Mapping[str, float], default None
        Largest velocity of all motors, or of each (m/s, rad/s).
    acceleration_limit : float or Mapping[str, float], default None
        Largest acceleration of all motors, or of each (m/s^2, rad/s^2).
    ignore_limits : bool, default False
        Do not check the limits of the robot file.

    Returns
    -------
    MotorMotion
        Motion for `simulate`; `at(t)` has position, velocity and acceleration of the motors (SI), `table(step)` all of
        them, `timing` how a time-optimal one was found.

    Examples
    --------
    >>> plan = parflex.plan_motion(robot, {"moves": [{"left.1": 0.2}], "law": "septic", "duration": 0.5})
    """
    limits = dict(zip(LIMIT_KEYS, (effort_limit, velocity_limit, acceleration_limit), strict=True))
    given = {key: value for key, value in limits.items() if value is not None}
    found = None if callable(motion) else motion_table(robot, motion)
    if found is None:
        if given:
            raise _useless(min(given))
        if callable(motion) and time is None:
            raise InputError("a function of time has no end", key="time", hint="give time=...")
        plan = _motors(motion_of(robot, motion, Span(1.0 if time is None else time)))
    else:
        name, table = found
        table = _limited(table, given) if given else table
        plan = from_table(robot, name, table, _length(table, time))
    if not ignore_limits:
        end = max(float(plan.pieces.breaks[-1]), time or 0.0)
        refuse_violations(check_channels(robot, plan.motors, plan.pieces, end))
    return plan


def _motors(motion: Any) -> MotorMotion:
    if not isinstance(motion, MotorMotion):
        raise InputError("this is a motion of the platform", key="motion", hint="give a motion of the motors")
    return motion


def _useless(key: str) -> InputError:
    return InputError(f"'{key}' has no effect on this motion", key=key, hint='give a table with law = "time-optimal"')


def _limited(table: MotionTable, given: Mapping[str, Any]) -> MotionTable:
    """The table with other limits."""
    if table.law_word != "time-optimal":
        raise _useless(min(given))
    raw = table.model_dump(exclude_unset=True) | dict(given)
    try:
        return read_tables(MotionTable, raw, "motion", "docs/robot-file.md")
    except RobotFileError as error:
        raise InputError(error.message, key=error.key, value=error.value, hint=error.hint) from None


def _length(table: MotionTable, time: float | None) -> float:
    """How long a motion without an end is needed."""
    if time is not None:
        if not 0 < time <= LONGEST:
            raise InputError(
                "'time' is not a positive number of seconds, or too long", key="time", value=time,
                hint=f"give e.g. 2, at most {LONGEST:g}",
            )  # fmt: skip
        return time
    if table.circle is not None and table.circle.turns is None and table.law_word == "constant-speed":
        raise InputError("the circle has no end", key="time", hint="give time=..., or turns in the table")
    if table.period is not None:
        return table.period
    if table.duration is not None:
        return table.duration
    if table.kind == "sines":
        if table.frame is not None:
            raise InputError("the sines have no end", key="time", hint="give time=..., or duration in the table")
        return 1 / (table.frequency or min(table.frequencies))
    return 1.0
