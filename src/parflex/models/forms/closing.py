"""Closures as programs take them: seen from the cheaper end, their best rows, and positions closed by Newton steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.closure.constraints import Closures, Loop
from parflex.closure.mobility import Partition, scaled_jacobian
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type, solve

Array = np.ndarray
UNRESOLVED = 1e-30  # m2, far below rounding: derivatives of a norm stay finite at zero; single precision holds it
CHANGE = 1e-9  # lengths and directions that differ by less between two random poses are the same, but for rounding


def best_rows(closures: Closures, q: Array, dependent: Array) -> Array:
    """As many rows of the closures as there are dependent rates, those that determine them best at a pose."""
    block = scaled_jacobian(closures, q)[:, dependent]
    return np.sort(scipy.linalg.qr(block.T, mode="r", pivoting=True)[1][: len(dependent)])


def cheapest_closures(robot: Robot) -> Closures:
    """The closures of a robot, each seen from the end from which it costs least.

    Loops are taken as closed, which every pose of a model is, and seen from the end from which fewer entries of the
    joints' columns change from pose to pose: seen from the end of a leg, the axes of its last joints are fixed.
    """
    tree = robot.tree
    joints = [k for k in range(tree.n) if not tree.links[tree.link_of_rate[k]].joint.moves_freely]
    loops = []
    for loop in robot.closures.loops:
        ends = [replace(end, closed=True) for end in (loop, loop.reversed(tree)) if end is not None]
        loops.append(min(ends, key=lambda end: _changing(robot, end, joints)))
    return replace(robot.closures, loops=tuple(loops))


def _changing(robot: Robot, loop: Loop, columns: list[int]) -> int:
    """How many entries of the rows of a loop in these columns differ between poses; any poses serve."""
    found = []
    for seed in range(2):
        q = robot.home + np.random.default_rng(seed).uniform(-1, 1, len(robot.home))
        at = pose(robot.tree, q)
        found.append(loop.jacobian(robot.tree, at, jacobians(robot.tree, at))[:, columns])
    return int(np.sum(np.abs(found[0] - found[1]) > CHANGE))


def holding(robot: Robot, given: Sequence[int]) -> Partition:
    """The partition in which the rates in `given` do not move while the others close the loops.

    Where the others can move while those in `given` stand, motors and passive joints follow, and tools stay.
    """
    free = np.array([k for k in robot.free if k not in set(given)], dtype=int)
    J = mobility.scaled_jacobian(robot.closures, robot.home)
    rank = mobility.rank(J[:, free])
    return mobility.choose_partition(J, free, rank, robot.preference if rank < len(free) else np.ones(robot.tree.n))


def closed_by(robot: Robot, part: Partition, q: Any, steps: int) -> Any:
    """Positions after Newton steps of the dependent coordinates of a partition, over any scalar."""
    tree = robot.tree
    for _ in range(steps):
        at = pose(tree, q)
        links = jacobians(tree, at, part.dependent)
        block = robot.closures.jacobian(at, links)[np.ix_(part.rows, part.dependent)]
        step: Array = np.zeros(tree.n, dtype=scalar_type(q))
        step[part.dependent] = solve(block, -robot.closures.linear_residual(at)[part.rows])
        q = tree.moved(q, step)
    return q


def residual_of(gaps: Array) -> Array:
    """Return the norm of lengths in metres as the only entry of an array, over any scalar."""
    return np.array([np.sqrt(gaps @ gaps + UNRESOLVED)], dtype=scalar_type(gaps))


def unitless_block(robot: Robot, part: Partition, block: Array) -> Array:
    """The block J_f of the closures, as `mobility.scale` measures it."""
    tree = robot.tree
    return robot.closures.row_units()[part.rows][:, None] * block * (tree.rate_units / tree.length)[part.dependent]
