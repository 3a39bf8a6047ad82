"""Sines and cosines of the angles that people write are exact, and no program carries what rounding leaves of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from support.comparison import written
from support.traced import ROBOTS, made

import parflex
from parflex import RobotFileError
from parflex.description.expressions import evaluate
from parflex.spatial import mdh_transform, placed, rotation_from_vector
from parflex.spatial.angles import cosine, sine, tangent

EXACT = {
    "cos(pi/2)": 0.0,
    "sin(pi)": 0.0,
    "sin(-3*pi)": 0.0,
    "cos(-90*deg)": 0.0,
    "cos(pi/3)": 0.5,
    "sin(-5*pi/6)": -0.5,
    "cos(2*pi/3)": -0.5,
    "sin(150*deg)": 0.5,
    "tan(pi/4)": 1.0,
    "tan(3*pi/4)": -1.0,
    "cos(180*deg)": -1.0,
}


@pytest.mark.parametrize("text", EXACT)
def test_expressions_are_exact_at_the_angles_of_a_set_square(text):
    assert evaluate(text, {}) == EXACT[text]


def test_a_right_angle_has_no_tangent():
    with pytest.raises(RobotFileError, match="no finite real value"):
        evaluate("tan(pi/2)", {})


def test_multiples_of_15_degrees_are_right_to_the_last_digit_however_they_are_written():
    with mp.workdps(40):
        for k in range(-50, 51):
            exact = mp.sin(k * mp.pi / 12), mp.cos(k * mp.pi / 12)
            for angle in (k * math.pi / 12, 15 * k * (math.pi / 180), math.radians(15 * k), k / 12 * math.pi):
                found = sine(angle), cosine(angle)
                # one rounding in each step of (sqrt(6) - sqrt(2)) / 4
                assert all(abs(mpf(a) - b) < 3e-16 for a, b in zip(found, exact, strict=True)), angle
                assert sine(-angle) == -found[0] and cosine(-angle) == found[1]


@pytest.mark.parametrize("angle", [1e-17, 1e-3, 1.5708, math.pi / 2 + 1e-14, 0.3, math.pi - 1e-12, 1e9, -2.0])
def test_other_angles_are_left_alone(angle):
    assert (sine(angle), cosine(angle)) == (math.sin(angle), math.cos(angle))
    assert tangent(angle) == pytest.approx(math.tan(angle), rel=1e-15)


def test_placements_by_right_angles_have_zeros_and_ones_alone():
    for rotation, position in (
        mdh_transform(math.pi / 2, 2.0, -math.pi / 2, 12.0, math.pi, 7.0),
        placed(*mdh_transform(math.pi / 3, 0, 0, 17.0, 0, 0), rotation_from_vector([0, 0, math.pi / 6]), np.zeros(3)),
    ):
        assert set(np.unique(np.abs(rotation))) <= {0.0, 1.0}
        assert all(x == 0 or abs(x) > 0.1 for x in position)
    # 17 m along 60 degrees and back along -120 degrees
    rotation, position = mdh_transform(math.pi / 3, 0, 0, 17.0, 0, 0)
    _, back = placed(rotation, position, np.eye(3), np.array([-17.0, 0, 0]))
    assert not back.any()


@pytest.mark.parametrize("name", ROBOTS)
def test_no_program_carries_what_rounding_leaves_of_a_zero(name):
    program = made(name, "inverse").program
    numbers = [abs(i[1]) for i in program.instructions if i[0] == "const"]
    assert all(x == 0 or x > 1e-12 for x in numbers), sorted(numbers)[:3]


def test_the_file_says_what_the_program_has(tmp_path):
    """A robot in degrees is the same program as in radians, digit by digit."""
    text = """
format = 1
name = "arm"
gravity = [0, 0, -9.81]
[[frame]]
name = "1"
joint = "revolute"
actuated = true
mdh = {{ gamma = "{gamma}", alpha = "{alpha}", d = "0.4*cos({alpha}) + 0.3" }}
inertia = {{ mass = 2, centre = [0.1, 0.2, 0.3], about_centre = [0.1, 0.2, 0.25] }}
"""
    ways = [{"gamma": "2*pi/3", "alpha": "-pi/2"}, {"gamma": "120*deg", "alpha": "-90*deg"}]
    robots = [parflex.load(written(text.format(**way), tmp_path, f"arm-{k}")) for k, way in enumerate(ways)]
    links = [robot.tree.links[0] for robot in robots]
    assert np.array_equal(links[0].rotation, links[1].rotation) and np.array_equal(links[0].position, links[1].position)
