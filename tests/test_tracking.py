"""Modes followed through crossings and double modes."""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex import InputError, natural_frequencies, track_modes
from parflex.models.elastic.tracking import Sight, close_groups, matched
from parflex.recursion import mass_matrix, pose

# two pendulums on springs that do not feel each other: the one turns a fixed inertia, the other a mass on a slider
PENDULUMS = """
format = 1
name = "pendulums"
motion = "planar"
gravity = [0, 0, 0]
[[frame]]
name = "steady"
joint = "revolute"
spring = { stiffness = 40 }
inertia = { ZZ = 0.1 }
[[frame]]
name = "arm"
joint = "revolute"
place = { position = [1, 0, 0] }
spring = { stiffness = 90 }
inertia = { ZZ = 0.01 }
[[frame]]
name = "slider"
parent = "arm"
joint = "prismatic"
actuated = true
place = { rotation = [0, "pi/2", 0] }
inertia = { M = 2.0 }
"""


@pytest.fixture
def pendulums(tmp_path):
    file = tmp_path / "pendulums.toml"
    file.write_text(PENDULUMS, encoding="utf-8")
    return parflex.load(str(file))


def test_branches_go_straight_through_a_crossing(pendulums):
    """One frequency stands still, the other falls as the mass slides out; sorted by size they would swap."""
    path = [{"slider": r} for r in (0.1, 0.8)]
    found = track_modes(pendulums, path, modes=2)
    r = 0.1 + 0.7 * found.places
    moving = np.sqrt(90 / (0.01 + 2 * r**2)) / (2 * np.pi)
    still = np.full(len(r), np.sqrt(40 / 0.1) / (2 * np.pi))
    assert moving[0] > still[0]
    assert moving[-1] < still[-1]
    # closed forms; the eigenvalue solver is exact to rounding for two by two
    assert np.abs(found.frequencies - np.stack([still, moving], axis=1)).max() < 1e-10
    assert found.agreement.min() > 0.8
    assert not found.doubtful


def test_the_crossing_itself_is_one_subspace(pendulums):
    crossing = np.sqrt((90 / 400 - 0.01) / 2)
    found = track_modes(pendulums, [{"slider": r} for r in (0.9 * crossing, crossing, 1.1 * crossing)], modes=2)
    assert close_groups(found.frequencies[1]) == [[0, 1]]
    slope = np.diff(found.frequencies[:, 1])
    assert (slope < 0).all()  # the branch that falls keeps falling beyond the double mode
    assert np.abs(np.diff(found.frequencies[:, 0])).max() < 1e-10
    start = track_modes(pendulums, [{"slider": r} for r in (crossing, 1.1 * crossing)], modes=2)
    assert start.agreement.min() > 0.95  # at the start the basis of the double mode is that of the next pose


def test_double_modes_keep_their_basis_whatever_basis_the_solver_gives():
    """The three-fold symmetry of the centred robot makes modes come in pairs; inside a pair any basis is right."""
    robot = parflex.load("navaro")
    found = natural_frequencies(robot, "pose-1", 6)
    M = mass_matrix(robot.tree, pose(robot.tree, robot.home))
    before = Sight(0.0, robot.home, M, found.frequencies, found.shapes)
    pair = next(group for group in close_groups(found.frequencies) if len(group) == 2)
    turned = found.shapes.copy()
    c, s = np.cos(0.7), np.sin(0.7)
    turned[:, pair] = turned[:, pair] @ np.array([[c, -s], [s, c]])
    match = matched(before, Sight(1.0, robot.home, M, found.frequencies, turned))
    assert np.abs(match.shapes - found.shapes).max() < 1e-9 * np.abs(found.shapes).max()  # rounding
    assert match.agreement == pytest.approx(np.ones(6), abs=1e-9)
    assert match.frequencies == pytest.approx(found.frequencies, rel=1e-6)  # the pair is double to 1e-8


def test_branches_of_a_symmetric_robot_stay_whole_along_a_path():
    robot = parflex.load("navaro")
    found = track_modes(robot, ["pose-1", {**robot.description.poses["pose-1"], "rz": -0.25}], modes=5)
    assert found.agreement.min() > 0.8
    assert len(close_groups(found.frequencies[-1])) < 5  # pairs stay pairs


def test_a_path_that_is_none_is_refused(pendulums):
    with pytest.raises(InputError, match="at least two"):
        track_modes(pendulums, [{"slider": 0.1}])
    with pytest.raises(InputError, match="different coordinates"):
        track_modes(pendulums, [{"slider": 0.1}, {"arm": 0.1}])
    with pytest.raises(InputError, match="no pose 'nowhere'"):
        track_modes(pendulums, ["nowhere", {"slider": 0.1}])
