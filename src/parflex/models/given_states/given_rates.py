"""Rates and accelerations given as arrays: they must fit the loops, or be the independent ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.closure.constraints import Coupling
from parflex.closure.mobility import condition
from parflex.errors import InputError, SingularError
from parflex.models.condition import SINGULAR
from parflex.models.configuration import Configuration
from parflex.models.given_states.closed_positions import as_numbers, refuse_infinite, slack_of, wrong_length
from parflex.models.robot import Robot
from parflex.recursion.kinematics import motion

Array = np.ndarray
MISSED = 1e-7  # of the rates: by how much they may miss the loops; ten times what positions may, which they depend on


def all_rates(configuration: Configuration, given: Any, slack: float | None = None) -> Array:
    """All rates: none given means rest; those that are given must fit the loops, or be the independent ones."""
    robot, limit = configuration.robot, MISSED * (slack_of(given) if slack is None else slack)
    if given is None:
        return np.zeros(robot.nv)
    qd = as_numbers(given, "qd")
    if qd.shape != (robot.nv,):
        if qd.shape != (len(robot.independent_rates),):
            raise wrong_length(robot, qd, "qd", robot.nv, "robot.rates")
        refuse_infinite(qd, "qd")
        return _following(configuration, qd, np.zeros(robot.nv), "rates")
    refuse_infinite(qd, "qd")
    size = float(np.linalg.norm(qd / robot.tree.rate_units))
    _refuse_locked(robot, qd, "qd", limit * (1 + size))
    rows = configuration.closure_jacobian @ qd
    _refuse_missed(robot, rows, "qd", "rates", limit * (1 + size))
    return qd


def all_accelerations(configuration: Configuration, qd: Array, given: Any, slack: float = 1.0) -> Array:
    """All accelerations, of a motion with all rates `qd`; none given means that the independent ones are zero."""
    robot = configuration.robot
    few = len(robot.independent_rates)
    qdd = np.zeros(few) if given is None else as_numbers(given, "qdd")
    if qdd.shape != (robot.nv,):
        if qdd.shape != (few,):
            raise wrong_length(robot, qdd, "qdd", robot.nv, "robot.rates")
        refuse_infinite(qdd, "qdd")
        return _following(configuration, qdd, configuration.acceleration_bias(qd), "accelerations")
    refuse_infinite(qdd, "qdd")
    units = robot.tree.rate_units
    size = float(np.linalg.norm(qdd / units) + np.linalg.norm(qd / units) ** 2)
    _refuse_locked(robot, qdd, "qdd", slack * MISSED * (1 + size))
    rows = robot.closures.bias(configuration.at, motion(robot.tree, configuration.at, qd, qdd))
    _refuse_missed(robot, rows, "qdd", "accelerations", slack * MISSED * (1 + size))
    return qdd


def _following(configuration: Configuration, independent: Array, bias: Array, what: str) -> Array:
    """All rates, or accelerations with their bias, at which the independent ones of home are as given."""
    robot, chosen = configuration.robot, list(configuration.robot.independent_rates)
    motions = configuration.motions
    # these motions have the size 1
    worst = condition((motions / robot.tree.rate_units[:, None])[chosen], usual=lambda: 1.0)
    if worst > SINGULAR:
        raise SingularError(
            f"the independent {what} do not determine the others at this pose (condition number {worst:.1e})",
            key="pose", hint=f"give all {what}, in the order of robot.rates, or move away from this pose",
        )  # fmt: skip
    return bias + motions @ np.linalg.solve(motions[chosen], independent - bias[chosen])


def _refuse_locked(robot: Robot, values: Array, key: str, limit: float) -> None:
    for k in sorted(robot.locked):
        if abs(values[k]) > limit * robot.tree.rate_units[k]:
            name = robot.tree.rate_names[k]
            raise InputError(
                f"'{name}' is locked and cannot move, but '{key}' has {values[k]:.4g} for it", key=key, value=name,
                hint="give zero",
            )  # fmt: skip


def _refuse_missed(robot: Robot, rows: Array, key: str, what: str, limit: float) -> None:
    """Raise where rates or accelerations open a loop; `rows` are those of the closures, `limit` in typical lengths."""
    scaled = robot.closures.row_units() * rows
    if not len(scaled) or float(np.linalg.norm(scaled)) <= limit * robot.tree.length:
        return
    openings = [float(np.linalg.norm(scaled[own])) for own in robot.closures.slices()]
    widest = int(np.argmax(openings))
    per, row = ("/s" if key == "qd" else "/s2"), robot.closures.rows[widest]
    few = f"the {len(robot.independent_rates)} of robot.independent alone"
    if isinstance(row, Coupling):
        off = abs(float(rows[robot.closures.slices()[widest]][0]))
        raise InputError(
            f"the {what} contradict the coupling '{row.name}': '{row.joints[0]}' is off by {off:.3g} {row.unit}{per}",
            key=key, value=row.name, hint=f"it says {row.relation}; give {what} that fit it, or {few}",
        )  # fmt: skip
    raise InputError(
        f"the {what} do not keep the loop '{row.name}' closed: it opens by {openings[widest]:.3g} m{per}", key=key,
        value=row.name, hint=f"give {what} that fit the loops, or {few}",
    )  # fmt: skip
