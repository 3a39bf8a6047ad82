"""Robots made of beams against a finite-element model of the same frame that shares no code with the package."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.navaro_frame import POSES, Navaro, directions, navaro_model

import parflex
from parflex.models.linear import natural_frequencies

# Germain2015, Table 3; poses 5 to 8 repeat 3 and 4
TABLE_3 = {
    1: (44.10, 44.10, 53.98, 60.63, 95.62),
    2: (45.71, 45.71, 54.58, 65.35, 97.92),
    3: (36.98, 49.31, 53.37, 67.28, 91.80),
    4: (40.17, 50.32, 52.99, 67.36, 91.52),
}


def test_the_frame_model_of_the_navaro_gives_table_3():
    model = Navaro()
    for number, pose in POSES.items():
        published = TABLE_3[number if number < 5 else 4 - number % 2]
        # half a unit of the last printed digit, and one thousandth for rounded data
        assert np.abs(model.modes(*pose)[0][:5] - published).max() < 0.006


def test_the_navaro_equals_its_frame_model_at_any_pose(figure):
    model, robot, rng = Navaro(), parflex.load("navaro"), np.random.default_rng(5)
    worst, seen = 0.0, 0
    for x, y, theta in np.c_[rng.uniform(-0.15, 0.15, (40, 2)), rng.uniform(-1.2, 0.6, 40)]:
        if not np.isfinite(directions(x, y, theta)).all():
            continue
        pose = {"x": x, "y": y, "z": 0, "rx": 0, "ry": 0, "rz": theta}
        found = natural_frequencies(robot, pose).frequencies
        worst, seen = max(worst, np.abs(found / model.modes(x, y, theta)[0] - 1).max()), seen + 1
        assert navaro_model((x, y, theta)).frequencies(6) == pytest.approx(found, rel=1e-9)  # as below
    figure(f"navaro: largest relative difference from the frame model over {seen} poses", worst, 1e-9)
    assert seen > 15
    assert worst < 1e-9  # rounding of eigenvalue problems whose largest value is 1e8 times the lowest
