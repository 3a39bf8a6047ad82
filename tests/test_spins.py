"""What is said of rods that spin between two balls, of too few motors and of dead centres."""

from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex import ActuationError, SingularError, configure

ROBOTS = Path(__file__).parent / "robots"
SPS = """
format = 1
name = "sps"
gravity = [0, 0, -9.81]
[platform]
start = [0, 0, 0.8]
inertia = { mass = 3, about_centre = [0.02, 0.02, 0.04] }
[legs]
names = ["a", "b", "c", "d", "e", "f"]
foot = [-0.3, 0.3, "2*pi/3-0.3", "2*pi/3+0.3", "4*pi/3-0.3", "4*pi/3+0.3"]
hand = ["-pi/3", "pi/3", "pi/3", "pi", "pi", "-pi/3"]
[[legs.frame]]
name = "lower"
joint = "spherical"
place = { position = ["0.5*cos(foot)", "0.5*sin(foot)", 0] }
inertia = { mass = 0.5, centre = [0, 0, 0.2], about_centre = [0.01, 0.01, 0.001] }
[[legs.frame]]
name = "upper"
parent = "lower"
joint = "prismatic"
actuated = true
start = 0.8
inertia = { mass = 0.5, centre = [0, 0, -0.2], about_centre = [0.01, 0.01, 0.001] }
[[legs.point]]
name = "hand"
frame = "platform"
position = ["0.3*cos(hand)", "0.3*sin(hand)", 0]
[[legs.closure]]
between = ["hand", "upper"]
joint = "spherical"
"""


def refusal(robot, pose=None):
    with pytest.raises(ActuationError) as caught:
        parflex.inverse_dynamics(robot, pose)
    return caught.value


def test_a_rod_between_two_balls_is_said_to_spin():
    error = refusal(parflex.load(ROBOTS / "rssr.toml"))
    assert error.message.startswith("'coupler' spins freely about its own axis between two spherical joints")
    assert "universal joint" in error.hint and "actuated" not in error.hint


def test_each_leg_between_two_balls_is_said_to_spin(tmp_path):
    file = tmp_path / "sps.toml"
    file.write_text(SPS)
    error = refusal(parflex.load(file))
    legs = ", ".join(f"'{leg}.lower'" for leg in "abcdef")
    assert error.message.startswith(f"{legs} spin freely about their own axis")


def test_with_a_motor_less_the_platform_is_named_and_not_the_spins(tmp_path):
    file = tmp_path / "sps.toml"
    text = SPS.replace("actuated = true", "")
    file.write_text(text + '\n[actuation.five]\nactuated = ["a.upper", "b.upper", "c.upper", "d.upper", "e.upper"]\n')
    error = refusal(parflex.load(file, actuation="five"))
    assert "5 motors for 6 freedoms" in error.message and "platform" in error.message


def test_a_passive_hinge_is_no_spin():
    found = parflex.inverse_dynamics(parflex.load(ROBOTS / "cart-pendulum.toml"))
    assert list(found.free) == ["bob"] and "1 motor for 2 freedoms" in found.warnings[-1]


@pytest.mark.parametrize("name", ["rssr", "double-four-bar", "cart-pendulum"])
def test_too_few_motors_are_no_singularity_of_a_pose(name):
    assert configure(parflex.load(ROBOTS / f"{name}.toml")).condition.warnings() == []


def test_a_dead_centre_that_the_motor_passes_is_said_to_be_one():
    robot = parflex.load(ROBOTS / "slider-crank-flexible.toml")
    (said,) = configure(robot).condition.warnings()
    assert "stretched or folded" in said and "singularity" not in said and "inf" not in said
    assert configure(robot, {"crank": 0.5}).condition.warnings() == []


def test_a_number_without_end_is_not_printed():
    robot = parflex.load(ROBOTS / "slider-crank-flexible.toml")
    condition = configure(robot).condition
    worse = type(condition)(condition.legs, float("inf"), 2e4)
    assert worse.warnings() == [
        "leg 'pin (first side)' is at a singularity",
        "the platform with locked motors is at a singularity",
        "the set of closures is near a singularity (condition number 2.0e+04)",
    ]


def test_legs_that_spin_do_not_hide_a_singular_pose(tmp_path):
    file = tmp_path / "sps.toml"
    file.write_text(SPS)
    robot = parflex.load(file)
    assert refusal(robot, {"z": 0.8, "rz": 0.3}).message.startswith("'a.lower', 'b.lower'")
    with pytest.raises(SingularError, match="with the motors locked, 'platform"):
        parflex.inverse_dynamics(robot, {"z": 0.8, "rz": np.pi / 2})  # a quarter turn: Fichter's singular pose
