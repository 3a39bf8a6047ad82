"""Robots made of beams against a finite-element model of the same frame that shares no code with the package."""

from __future__ import annotations

import numpy as np
import pytest
from support.cases import VERIFY
from support.oracles.navaro_frame import POSES, Navaro, directions, navaro_model
from support.published import published
from support.robots import write_robot
from support.twins import random_twin

import parflex
from parflex import natural_frequencies


def test_the_frame_model_of_the_navaro_gives_table_3():
    model, table = Navaro(), published("Germain2015", "Table 3, natural frequencies")
    for number, pose in POSES.items():
        # half a unit of the last printed digit, and one thousandth for rounded data
        assert np.abs(model.modes(*pose)[0][:5] - table[f"pose {number}"]).max() < 0.006


def test_the_navaro_equals_its_frame_model_at_any_pose(figure):
    model, robot, rng = Navaro(), parflex.load("navaro"), np.random.default_rng(5)
    worst, seen = 0.0, 0
    for x, y, theta in np.c_[rng.uniform(-0.15, 0.15, (40, 2)), rng.uniform(-1.2, 0.6, 40)][: 40 if VERIFY else 8]:
        if not np.isfinite(directions(x, y, theta)).all():
            continue
        pose = {"x": x, "y": y, "z": 0, "rx": 0, "ry": 0, "rz": theta}
        found = natural_frequencies(robot, pose).frequencies
        worst, seen = max(worst, np.abs(found / model.modes(x, y, theta)[0] - 1).max()), seen + 1
        assert navaro_model((x, y, theta)).frequencies(6) == pytest.approx(found, rel=1e-9)  # as below
    figure(f"navaro: largest relative difference from the frame model over {seen} poses", worst, 1e-9)
    assert seen > (15 if VERIFY else 2)
    assert worst < 1e-9  # rounding of eigenvalue problems whose largest value is 1e8 times the lowest


@pytest.mark.parametrize("planar", [True, False], ids=["planar", "spatial"])
def test_random_closed_mechanisms_equal_their_frame_model(planar, tmp_path, figure):
    """Loops of beams and rigid links on hinges, balls, slides and welds, with springs, lumps and repeated closures."""
    worst, redundant, floating = 0.0, 0, 0
    # the last has a free motion that an eigenvalue solver alone takes for unstable
    for seed in (*range(24 if VERIFY else 3), 133):
        twin = random_twin(planar, seed)
        if len(twin.model.matrices()[0]) < 6:
            continue  # held by its joints, or as good as
        robot = parflex.load(write_robot(tmp_path, twin.text))
        found = natural_frequencies(robot, modes=1)
        free = len(found.free_motions)
        found = natural_frequencies(robot, modes=min(6, found.independent_coordinates - free))
        expected = twin.model.frequencies(len(found.frequencies), skip=free)
        assert not found.unstable_motions  # nothing is loaded
        assert found.independent_coordinates == len(twin.model.matrices()[0])
        worst = max(worst, float(np.abs(found.frequencies / expected - 1).max()))
        redundant, floating = redundant + bool(robot.mobility.redundant), floating + bool(free)
    figure(f"random {'planar' if planar else 'spatial'} mechanisms: largest relative difference", worst, 1e-6)
    assert worst < 1e-6  # asked for; rounding shows where a mechanism is nearly free
    assert redundant >= (8 if VERIFY else 1)  # over-constrained mechanisms are the normal case
    assert floating or planar
