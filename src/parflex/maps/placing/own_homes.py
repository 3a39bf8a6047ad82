"""Which designs stand at home as the robot that was loaded: poses of a design are those it reaches from its home."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parflex.maps.placing.home_rows import home_rows
from parflex.maps.placing.steppers import ASKED

if TYPE_CHECKING:
    from parflex.maps.positions import PositionSolver

Array = np.ndarray


def homes_elsewhere(solver: PositionSolver) -> Array:
    """Which designs stand at home on other sides of their singularities than the robot as it was loaded, or may.

    Each is followed from its start: designs that are few, or near to each other, are no other case.
    """
    geometry = solver.geometry
    assert geometry.designs is not None
    count = len(geometry.designs.alone)
    if not geometry.varied or not solver.robot.closures.size:
        return np.zeros(count, dtype=bool)
    homes = home_rows(geometry)
    if homes is None:
        return np.ones(count, dtype=bool)
    q, sure = homes(np.arange(count))
    if solver.given.asked:
        first = len(geometry.kept) + len(geometry.varied)
        q[:, first : first + len(ASKED)] = solver.given.place_at_home
    sure &= solver.on_sides(q)
    if solver.unsettled.size:  # one side has several assemblies
        sure &= ~solver.jumped(q[-1:].repeat(len(q), axis=0), q)
    return ~sure[:-1]
