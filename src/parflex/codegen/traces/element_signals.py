"""Lengths and forces of elements between two points in a motion, for the columns of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.closure.constraints import Distance
from parflex.forces.forces import forces_along_rates, on_links
from parflex.formulations.base import best_rows
from parflex.recursion.energy import line_between
from parflex.recursion.kinematics import jacobians, motion
from parflex.robot.robot import Robot
from parflex.spatial.linear import solve, solve_positive

Array = np.ndarray


def element_signals(
    robot: Robot,
    at: Any,
    qd: Array,
    qdd: Array,
    dependent: Sequence[int],
    rows: Sequence[int],
    wrenches: Mapping[str, Array],
    effort: Array,
    lost: Any = 0.0,
) -> dict[str, Array]:
    """Length and tension of each element; of rods and struts the tension where no row repeats others."""
    tree = robot.tree
    moving = motion(tree, at, qd, np.zeros(tree.n))
    found: dict[str, Array] = {}
    for element in tree.elements:
        _, length, rate = line_between(at, (element.first, element.second), element.name, moving)
        found[f"element.{element.name}.length"] = _entry(length)
        found[f"element.{element.name}.force"] = _entry(element.tension(length, rate))
    held = [row for row in robot.closures.constraints if isinstance(row, Distance)]
    for row in held:
        found[f"element.{row.name}.length"] = _entry(line_between(at, row.places, row.name).length)
    if held and not robot.mobility.redundant:
        lam = row_multipliers(robot, at, qd, qdd, (dependent, rows), effort, wrenches, lost)
        for part, holding in zip(robot.closures.slices(), robot.closures.rows, strict=True):
            if isinstance(holding, Distance):
                found[f"element.{holding.name}.force"] = _entry(-lam[part.start])
    return found


def _entry(value: Any) -> Array:
    return np.array([value], dtype=object)


def row_multipliers(
    robot: Robot, at: Any, qd: Array, qdd: Array, chosen: tuple[Sequence[int], Sequence[int]], effort: Array,
    wrenches: Mapping[str, Array], lost: Any,
) -> dict[int, Any]:  # fmt: skip
    """Multipliers, by row of the closures, that give the dependent coordinates what they lack, theory (18).

    `chosen` are dependent rates and the rows that give them (none: those that do it best at home); `lost` are forces of
    losses. On the way through a singular pose no coordinate depends on others: there all of them together say it.
    """
    tree, (dependent, rows) = robot.tree, (list(chosen[0]), [int(k) for k in chosen[1]])
    missing = forces_along_rates(tree, at, at.q, qd, qdd, on_links(tree, at, wrenches)) - lost
    for k, motor in enumerate(robot.actuated):
        missing[motor] = missing[motor] - effort[k]
    J = robot.closures.jacobian(at, jacobians(tree, at))
    if dependent:
        rows = rows or [int(k) for k in best_rows(robot.closures, robot.home, np.array(dependent, dtype=int))]
        return dict(zip(rows, solve(J[np.ix_(rows, dependent)].T, missing[dependent]), strict=True))
    rows = [k for k in range(robot.closures.size) if k not in robot.mobility.redundant]
    units = tree.rate_units[robot.free]
    scaled = J[rows][:, robot.free] * units
    return dict(zip(rows, solve_positive(scaled @ scaled.T, scaled @ (missing[robot.free] * units)), strict=True))
