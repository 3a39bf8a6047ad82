"""Values of responses, and extrapolated differences of them, to compare with sensitivities."""

from itertools import pairwise

import parflex
from parflex.design.design_state import ResponseCase, value_of
from parflex.design.registry import Tolerances, read_question

LIMIT = 1e-8  # of the largest elasticity of the response
LENGTHS = ["constants.proximal", "constants.distal", "constants.arm"]  # of the 3rrr
INSIDE = {"x": 0.02, "y": 0.03, "theta": 0.1}


def extrapolated(function, levels: int = 4, step: float = 0.008) -> float:
    """Return the derivative at zero by central differences with Richardson's extrapolation."""
    table = [(function(h) - function(-h)) / (2 * h) for h in (step / 2**level for level in range(levels))]
    for order in range(1, levels):
        table = [(4**order * b - a) / (4**order - 1) for a, b in pairwise(table)]
    return table[0]


def value_of_response(robot, text: str, poses=None, tolerances: dict | None = None, **given) -> float:
    """Return the value of a response without slopes."""
    spread = Tolerances(**tolerances) if tolerances else None
    return value_of(read_question(text, poses, ResponseCase(**given), spread).asked(robot).answer)


def conditions(robot, pose, **given) -> float:
    return parflex.configure(robot, pose).condition.platform
