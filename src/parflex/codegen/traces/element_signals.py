"""Lengths and forces of elements between two points in a motion, for the columns of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.closure.distances import Distance
from parflex.models.dynamics.forces import forces_along_rates, on_links
from parflex.models.forms.closing import best_rows
from parflex.models.robot import Robot
from parflex.recursion import jacobians, motion
from parflex.recursion.point_forces import line
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
        _, length, rate = line(at, (element.first, element.second), element.name, moving)
        found[f"element.{element.name}.length"] = _entry(length)
        found[f"element.{element.name}.force"] = _entry(element.tension(length, rate))
    held = [row for row in robot.closures.constraints if isinstance(row, Distance)]
    for row in held:
        found[f"element.{row.name}.length"] = _entry(line(at, row.places, row.name).length)
    if held and not robot.mobility.redundant:
        own = np.array(dependent, dtype=int)
        chosen = [int(k) for k in rows] or (
            list(best_rows(robot.closures, robot.home, own)) if len(own) else list(range(robot.closures.size))
        )
        lam = _multipliers(robot, at, qd, qdd, dependent, chosen, wrenches, effort, lost)
        for part, holding in zip(robot.closures.slices(), robot.closures.rows, strict=True):
            if isinstance(holding, Distance):
                found[f"element.{holding.name}.force"] = _entry(-lam[chosen.index(part.start)])
    return found


def _entry(value: Any) -> Array:
    return np.array([value], dtype=object)


def _multipliers(
    robot: Robot,
    at: Any,
    qd: Array,
    qdd: Array,
    dependent: Sequence[int],
    chosen: Sequence[int],
    wrenches: Mapping[str, Array],
    effort: Array,
    lost: Any,
) -> Array:
    """Multipliers of the chosen rows that give the dependent coordinates what they lack, theory (18).

    On the way through a singular pose no coordinate depends on others: there all of them together say it.
    """
    tree = robot.tree
    missing = forces_along_rates(tree, at, at.q, qd, qdd, on_links(tree, at, wrenches)) - lost
    for k, motor in enumerate(robot.actuated):
        missing[motor] = missing[motor] - effort[k]
    J = robot.closures.jacobian(at, jacobians(tree, at))[list(chosen)]
    if dependent:
        return solve(J[:, list(dependent)].T, missing[list(dependent)])
    scaled = J[:, robot.free] * tree.rate_units[robot.free]
    return solve_positive(scaled @ scaled.T, scaled @ (missing[robot.free] * tree.rate_units[robot.free]))
