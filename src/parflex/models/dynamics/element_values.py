"""Length, rate and force of the elements between two points, for people; tension is positive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parflex.closure.constraints import Distance
from parflex.recursion.energy import line_between
from parflex.recursion.kinematics import motion
from parflex.robot.configuration import Configuration

Array = np.ndarray
Values = dict[str, dict[str, Any]]


def multipliers_of(configuration: Configuration, f: Array, tau: Array) -> Array:
    """Multipliers of least norm of all rows, theory (18), for forces of the open tree and efforts of the motors."""
    robot = configuration.robot
    missing = f.copy()
    missing[list(robot.actuated)] -= tau
    rows = configuration.closure_jacobian[:, robot.free]
    return np.linalg.lstsq(rows.T, missing[robot.free], rcond=1e-9)[0] if len(rows) else np.zeros(0)


def element_values(configuration: Configuration, qd: Array | None = None, lam: Array | None = None) -> Values:
    """Of each element, in the order of the file; rods and struts have a force where multipliers are known."""
    robot, at = configuration.robot, configuration.at
    if not robot.description.element:
        return {}
    tree = robot.tree
    still = np.zeros(tree.n)
    moving = motion(tree, at, still if qd is None else qd, still)
    rows = {row.name: (part, row) for part, row in zip(robot.closures.slices(), robot.closures.rows, strict=True)}
    forces = {element.name: element for element in tree.elements}
    found: Values = {}
    for entry in robot.description.element:
        if entry.name in forces:
            element = forces[entry.name]
            ends = (element.first, element.second)
            if element.smooth_at_zero and not np.any(at.of(ends[1])[1] - at.of(ends[0])[1]):
                found[entry.name] = {"length": 0.0, "rate": 0.0, "force": 0.0}
                continue
            _, length, rate = line_between(at, ends, entry.name, moving)
            found[entry.name] = _shown(length, rate, element.tension(length, rate))
            continue
        part, row = rows[entry.name]
        assert isinstance(row, Distance)
        _, length, rate = line_between(at, row.places, entry.name, moving)
        found[entry.name] = _shown(length, rate, None if lam is None else -lam[part][0])
    return found


def values_in_motion(configuration: Configuration, qd: Array, forces: Callable[[], Array], tau: Array) -> Values:
    """The same in a motion in which these forces of the open tree act; they are asked for only where needed."""
    robot = configuration.robot
    if not robot.description.element:
        return {}
    held = any(isinstance(row, Distance) for row in robot.closures.constraints)
    return element_values(configuration, qd, multipliers_of(configuration, forces(), tau) if held else None)


def _shown(length: Any, rate: Any, force: Any) -> dict[str, Any]:
    shown = {"length": float(length), "rate": float(rate)}
    return shown if force is None else {**shown, "force": float(force) + 0.0}
