"""Positions of planar legs in closed form: the reach of `3rrr` by its lengths alone, and Newton's method elsewhere."""

import numpy as np
import pytest

import parflex
from parflex.maps.batches import Geometry
from parflex.maps.positions import OK, UNREACHABLE, PositionSolver
from parflex.models.loading import redesigned

PROXIMAL, DISTAL, ARM = 0.7, 0.3, 0.1732  # of 3rrr with other links, so that poses may be too near as well
BASES = np.array([-0.15 - 0.84j, 0.69 - 0.17j, -0.66 + 0.21j])
PHI = np.pi * np.array([1 / 6, 5 / 6, 9 / 6])


def solver(robot: parflex.Robot, names: list[str], compiled: bool = False) -> PositionSolver:
    """Of poses by these coordinates."""
    geometry = Geometry(robot)
    geometry.settle(10**6 if compiled else 1)
    return PositionSolver(geometry, names, [0.0] * len(names))


def test_reach_of_3rrr_is_that_of_its_lengths() -> None:
    """A pose is reached where each attachment is between the difference and the sum of the lengths of its links."""
    robot = redesigned(parflex.load("3rrr"), {"constants.proximal": PROXIMAL, "constants.distal": DISTAL})
    found_by = solver(robot, ["x", "y", "theta"])
    assert found_by.places is not None
    values = np.random.default_rng(2).uniform([-0.7, -0.7, -3.0], [0.7, 0.7, 3.0], (3000, 3))
    attached = values[:, :1] + 1j * values[:, 1:2] - ARM * np.exp(1j * (values[:, 2:] + PHI))
    far = np.abs(attached - BASES)
    reached = ((far < PROXIMAL + DISTAL) & (far > PROXIMAL - DISTAL)).all(axis=1)
    assert 300 < reached.sum() < 2700 and ((far < PROXIMAL + DISTAL).all(axis=1) & ~reached).any()
    found = found_by(values)
    assert np.array_equal(found.status, np.where(reached, OK, UNREACHABLE))
    home = found_by.given.start(values, np.repeat(found_by.geometry.home[None], len(values), axis=0))
    beyond, q = found_by.places(home)
    assert np.array_equal(beyond, ~reached)
    assert np.abs(q - found.q)[reached].max() < 1e-9  # near the edge of reach rounding is a square root


@pytest.mark.parametrize("compiled", [False, True])
def test_positions_at_the_edge_of_reach_are_those_of_circles(compiled: bool) -> None:
    """Newton's method converges slowly there: one step from an opening of 1e-7 left a mode wrong by 1e-4 Hz."""
    found_by = solver(parflex.load("navaro"), ["x", "y"], compiled)
    edge = [[-0.06636636636636636, -0.04054054054054054], [0.05355355355355357, 0.0987987987987988]]
    line = np.array(edge)[:, None] * np.linspace(0.95, 1.0, 150)[:, None]
    values = line.reshape(-1, 2)
    assert found_by.places is not None
    beyond, q = found_by.places(found_by.given.start(values, np.repeat(found_by.geometry.home[None], 300, axis=0)))
    found, status = found_by._searched(values, np.arange(300))
    assert not beyond.any() and (status == OK).all()
    assert np.abs(np.sin(found - q)).max() < 1e-9
