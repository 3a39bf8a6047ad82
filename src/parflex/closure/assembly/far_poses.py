"""Poses far away, followed from where the robot stands: only the way there tells in which assembly they are meant.

Loops may close in several ways on one side of their singularities; and they close at every whole turn of a shaft, with
the screws or gears that it drives elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parflex.closure.targets import PoseRows, Target
from parflex.recursion.kinematics import pose
from parflex.tree.tree import Tree

Array = np.ndarray
Newton = Callable[[Array, Array, Sequence[Any]], tuple[Array, float]]
FIRST = 0.1  # rad, typical lengths: longest first step of what is driven
CORRECTED = 0.1  # rad, typical lengths: a step that Newton corrects by more is halved
SMOOTH = 0.02  # by less: the next one is twice as long
MOST_STEPS = 4000
SHORTEST = 1e-9  # of the way


def followed(
    tree: Tree,
    target: Target,
    q: Array,
    rows: Sequence[Any],
    newton: Newton,
    columns: Array,
    closed: float,
    shortest: float = SHORTEST,
) -> Array | None:
    """Positions at a target, by steps from `q` that each continue the last one; None where the way ends before it.

    `newton` closes rows by columns; a row is closed where it leaves less than `closed`. A way that takes a shorter step
    than this share of it ends.
    """
    units, goal, at = position_units(tree), target.applied(q), pose(tree, q)
    driven = [index for index in target.values if goal[index] != q[index]]
    longest = max((abs(goal[k] - q[k]) / units[k] for k in driven), default=0.0)
    origin, here, share, step = q, q, 0.0, min(1.0, FIRST / max(longest, FIRST))
    slope = np.zeros(len(q))  # of all positions over the way
    for _ in range(MOST_STEPS):
        there = min(1.0, share + step)
        guess = here + (there - share) * slope
        for k in driven:
            guess[k] = origin[k] + there * (goal[k] - origin[k])
        guess = target.applied(guess) if there == 1.0 else guess
        guess = _unit(tree, guess)
        near = [row.between(at, there) if isinstance(row, PoseRows) else row for row in rows]
        found, error = newton(guess, columns, near)
        change = float(np.abs((found - guess) / units).max(initial=0.0))
        first = not slope.any()
        if error > closed or change > (4 if first else 1) * CORRECTED:
            step /= 2
            if step < shortest:
                return None
            continue
        slope, here, share = (found - here) / (there - share), found, there
        if share == 1.0:
            return here
        step *= 2 if change < SMOOTH else 1
    return None


def position_units(tree: Tree) -> Array:
    """Of all positions: angles and quaternions 1, ways the typical length."""
    found = np.ones(tree.nq)
    for link in tree.links:
        if link.joint.one_axis:
            found[link.q.start] = np.max(tree.rate_units[link.v.start])
    return found


def _unit(tree: Tree, q: Array) -> Array:
    """Positions whose quaternions have the length 1."""
    result = q.copy()
    for link in tree.links:
        if link.joint.quaternion:
            result[link.q_quaternion] /= np.linalg.norm(result[link.q_quaternion])
    return result
