"""Extrapolated differences of responses, to compare with sensitivities."""

from __future__ import annotations

from itertools import pairwise

import parflex

STEP, LEVELS = 0.008, 4


LIMIT = 1e-8  # of the largest elasticity of the response


def extrapolated(function, levels: int = LEVELS, step: float = STEP) -> float:
    """Derivative at zero by central differences with Richardson's extrapolation."""
    table = []
    for level in range(levels):
        h = step / 2**level
        table.append((function(h) - function(-h)) / (2 * h))
    for order in range(1, levels):
        table = [(4**order * b - a) / (4**order - 1) for a, b in pairwise(table)]
    return table[0]


def conditions(robot, pose, **given):
    return parflex.configure(robot, pose).condition.platform


LENGTHS = ["constants.proximal", "constants.distal", "constants.arm"]


INSIDE = {"x": 0.02, "y": 0.03, "theta": 0.1}
