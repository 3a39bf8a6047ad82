"""How far a run moves the robot, as far as its start and its inputs tell: vibrations are judged beside that.

A linear problem with a load ten thousand times smaller has vibrations ten thousand times smaller, and the same steps.
A robot that goes far, or whose way is not known, has a typical length.
"""

from __future__ import annotations

import numpy as np

from parflex.simulation.inputs.polynomials import Polynomials
from parflex.simulation.problem import Problem

Array = np.ndarray
INSTANTS = 401  # of the inputs, beside their breaks


def instants_of(given: Polynomials, time: float, count: int = INSTANTS) -> Array:
    """Times of a run at which inputs are evaluated."""
    inside = given.breaks[(given.breaks > 0) & (given.breaks < time)]
    return np.unique(np.concatenate([np.linspace(0, time, count), inside]))


def carried(push: Polynomials, gains: Array, sizes: Array, time: float) -> float:
    """How far (m) inputs carry modes that do not vibrate, of `gains` (mode, channel), from what acts at 0 on."""
    if not gains.size:
        return 0.0
    t = instants_of(push, time)
    acceleration = push.at(t)
    acceleration = acceleration - acceleration[0]
    for _ in range(2):
        parts = (acceleration[1:] + acceleration[:-1]) / 2 * np.diff(t)[:, None]
        acceleration = np.concatenate([np.zeros((1, parts.shape[1])), np.cumsum(parts, axis=0)])
    return float((np.abs(gains @ acceleration.T) * sizes[:, None]).max(initial=0.0))


def motor_way(problem: Problem, given: Polynomials, time: float) -> float:
    """How far (m) a prescribed motion moves motors; turns count as typical lengths."""
    if not problem.driven:
        return 0.0
    motors = list(problem.robot.actuated)
    moved = np.ptp(given.at(instants_of(given, time))[:, : len(motors)], axis=0)
    return float((moved / problem.robot.tree.rate_units[motors]).max(initial=0.0)) * problem.robot.tree.length
