"""Which designs stand at home as the robot that was loaded: poses of a design are those it reaches from its home."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from parflex.maps.placing.home_rows import around, home_rows, near_designs
from parflex.maps.placing.steppers import ASKED

if TYPE_CHECKING:
    from parflex.maps.positions import PositionSolver

Array = np.ndarray
MANY = 2048  # designs near that of the file from which not each of their homes is followed


def homes_elsewhere(solver: PositionSolver, keys: Array) -> Array:
    """Which designs stand at home on other sides of their singularities than the robot as it was loaded, or may.

    `keys` are the values of keys of all designs. Of many that are near the robot as it was loaded, some spread over a
    wider range are followed for all of them; where one of these stands elsewhere, each is followed.
    """
    geometry, elsewhere = solver.geometry, np.zeros(len(keys), dtype=bool)
    if not geometry.varied or not solver.robot.closures.size:
        return elsewhere
    near = near_designs(geometry)
    if near.sum() < MANY or not _stay(solver, keys[near]):
        near[:] = False
    elsewhere[~near] = _followed(solver, np.flatnonzero(~near))
    return elsewhere


def _stay(solver: PositionSolver, keys: Array) -> bool:
    """Whether all of some designs, spread over a wider range than these, stand as the robot that was loaded."""
    some = copy.copy(solver)
    some.geometry = around(solver.geometry, keys)
    numbers = some.geometry.designs
    return numbers is not None and not _followed(some, np.arange(len(numbers.alone))).any()


def _followed(solver: PositionSolver, own: Array) -> Array:
    """Which designs stand elsewhere, each followed from its start."""
    geometry = solver.geometry
    homes = home_rows(geometry) if len(own) else None
    if homes is None:
        return np.ones(len(own), dtype=bool)
    q, sure = homes(own)
    if solver.given.asked:
        first = len(geometry.kept) + len(geometry.varied)
        q[:, first : first + len(ASKED)] = solver.given.place_at_home
    sure &= solver.on_sides(q)
    if solver.unsettled.size:  # one side has several assemblies
        sure &= ~solver.jumped(q[-1:].repeat(len(q), axis=0), q)
    return ~sure[:-1]
