"""What the matrices of super-elements are as rigid bodies."""

from __future__ import annotations

from typing import Any

from parflex.robot.robot import Robot

SUPER = (67, 68, 69)  # numbers of the equations
STRESSED = 70


def superelements_of(robot: Robot) -> dict[str, dict[str, Any]]:
    """Of each super-element: mass, centre, inertia, positions of nodes, residual of K on rigid motions, frequencies."""
    return {link.name: said.as_dict() for link in robot.tree.links if (said := link.body.found) is not None}
