"""Limits of the robot file that a run exceeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.forces.spare_motors import read_limits
from parflex.robot.limits import check_limits, efforts_of_file
from parflex.robot.robot import Robot
from parflex.trajectories.motor_motion import MotorMotion
from parflex.trajectories.polynomials import extreme_rows

Array = np.ndarray


def run_limit_warnings(
    robot: Robot, columns: Mapping[str, Array], motors: Sequence[str], effort_limit: Any, motion: Any = None
) -> list[str]:
    """Return a sentence for each limit that a run exceeds, in its rows or, of motors that follow `motion`, in between.

    Limits of efforts that the call states (`effort_limit`) override those of the file.
    """
    if not len(columns["t"]):  # the run has not begun
        return []
    values = {word: _named(columns, word) for word in ("q", "qd", "effort")}
    lower, upper = read_limits(motors, effort_limit)
    efforts = efforts_of_file({name: values["effort"][name] for name in motors}, lower, upper)
    found = {(one.joint, one.key): one for one in check_limits(robot, values["q"], values["qd"], efforts, columns["t"])}
    if isinstance(motion, MotorMotion):
        t, q, qd = extreme_rows(motion.pieces, float(columns["t"][-1]))
        positions, velocities = (dict(zip(motion.motors, part.T, strict=True)) for part in (q, qd))
        between = check_limits(robot, positions, velocities, times=t)
        found |= {(one.joint, one.key): one for one in between}
    return [one.sentence for one in found.values()]


def _named(columns: Mapping[str, Array], word: str) -> dict[str, Array]:
    return {name.removeprefix(f"{word}."): values for name, values in columns.items() if name.startswith(f"{word}.")}
