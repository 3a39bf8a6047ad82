"""Positions of planar legs in closed form: the reach of `3rrr` by its lengths alone, and Newton's method elsewhere."""

from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.maps.batches import Geometry
from parflex.maps.kept_numbers import numbers_of_designs
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


def test_circles_of_designs_are_those_of_their_lengths() -> None:
    """Elbows of `3rrr` with other links in each row, at the lengths that these have."""
    robot, rng = parflex.load("3rrr"), np.random.default_rng(4)
    keys = ["constants.proximal", "constants.distal", "constants.arm", "legs.base_x.0"]
    rows = np.array([PROXIMAL, DISTAL, ARM, -0.15]) * rng.uniform(0.9, 1.1, (50, 4))
    numbers = numbers_of_designs(robot, {key: rows[:, k] for k, key in enumerate(keys)})
    geometry = Geometry(robot, numbers)
    found_by = PositionSolver(geometry, ["x", "y", "theta"], [0.0] * 3)
    values = rng.uniform([-0.1, -0.1, -0.3], [0.1, 0.1, 0.3], (50, 3))
    assert found_by.places is not None
    start = geometry.rows(np.repeat(geometry.home[None], 50, axis=0), np.arange(50))
    beyond, q = found_by.places(found_by.given.start(values, start))
    bases = np.repeat(BASES[None], 50, axis=0)
    bases[:, 0] = rows[:, 3] - 0.84j
    arms = rows[:, 2:3] * np.exp(1j * (values[:, 2:] + PHI))
    attached = values[:, :1] + 1j * values[:, 1:2] - arms
    far = np.abs(attached - bases)
    reached = (far < rows[:, :1] + rows[:, 1:2]).all(axis=1) & (far > np.abs(rows[:, :1] - rows[:, 1:2])).all(axis=1)
    assert np.array_equal(beyond, ~reached) and reached.sum() > 10
    turn = [q[:, robot.tree.links[robot.tree.number(f"leg{k}.{n}")].q.start] for k in (1, 2, 3) for n in (1, 2)]
    for leg in range(3):
        elbow = bases[:, leg] + rows[:, 0] * np.exp(1j * turn[2 * leg])
        end = elbow + rows[:, 1] * np.exp(1j * (turn[2 * leg] + turn[2 * leg + 1]))
        assert np.abs(end - attached[:, leg])[reached].max() < 1e-9


WEDGED = """
format = 1
name = "wedged"
gravity = [0, 0, 0]
[constants]
tilt = 0.1
bar = 0.5
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = 1.2
inertia = { mass = 1 }
[[frame]]
name = "wedge"
parent = "crank"
joint = "fixed"
place = { position = [0.2, 0, 0], rotation = [-0.1, 0, 0] }
[[frame]]
name = "coupler"
parent = "wedge"
joint = "revolute"
place = { rotation = ["tilt", 0, 0] }
start = -1.2
inertia = { mass = 1 }
[[frame]]
name = "rocker"
joint = "revolute"
place = { position = [0.5, 0, 0] }
start = 1.4
inertia = { mass = 1 }
[[point]]
name = "end"
frame = "coupler"
position = ["bar", 0, 0]
[[point]]
name = "top"
frame = "rocker"
position = [0.3, 0, 0]
[[closure]]
between = ["end", "top"]
joint = "revolute"
"""


def test_axes_that_designs_tilt_do_not_count_as_parallel(tmp_path: Path) -> None:
    """A wedge that a design turns back otherwise: nothing proves any more that sides tell assemblies apart."""
    (tmp_path / "wedged.toml").write_text(WEDGED)
    robot = parflex.load(tmp_path / "wedged.toml")
    for key, count in (("constants.bar", 0), ("constants.tilt", 2)):
        numbers = numbers_of_designs(robot, {key: np.array([0.1, 0.11, 0.12])})
        found_by = PositionSolver(Geometry(robot, numbers), ["crank"], [1.2])
        assert not numbers.alone.any() and found_by.fast
        assert found_by.unsettled.size == count
