"""Dead points, rods that spin between two balls, too few motors: what is refused or warned of."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots import load_robot

import parflex
from parflex import ActuationError, SingularError, configure

DEAD = float(np.arctan2(0.25, 0.35))  # pivot, wall and hook in line


@pytest.mark.parametrize("name", ["arm-on-strut", "arm-on-leg"])
def test_a_motor_at_its_dead_centre_is_refused(name):
    """As an element and as a leg of joints; a millionth of a radian beside it there is a warning."""
    robot = load_robot(name)
    with pytest.raises(parflex.SingularError, match=r"with the motors locked, '(arm|leg)' can still move"):
        parflex.inverse_dynamics(robot, {"arm": DEAD})
    beside = parflex.inverse_dynamics(robot, {"arm": DEAD - 1e-6})
    assert any("near a singularity" in told for told in beside.warnings)
    assert parflex.inverse_dynamics(robot, {"arm": 0.1}).warnings == []
    if name == "arm-on-strut":
        with pytest.raises(parflex.SingularError, match="singular pose"):
            parflex.inverse_dynamics(load_robot(name, settings={"frame.arm.start": DEAD}))


def test_arrays_and_programs_know_the_dead_centre():
    robot, still = load_robot("arm-on-strut"), np.zeros(2)
    q = parflex.configure(robot, {"arm": DEAD}).q
    with pytest.raises(parflex.SingularError):
        parflex.inverse_dynamics(robot, q, still, still)
    with pytest.warns(parflex.ParflexWarning, match="1 of 2 states have no answer"):
        both = parflex.inverse_dynamics(robot, np.stack([q, robot.home]), np.zeros((2, 2)), np.zeros((2, 2)))
    assert np.isnan(both[0]).all() and np.isfinite(both[1]).all()
    program = parflex.model(robot, "inverse", coordinates="all", checks=True)
    assert program(q=q, qd=still, qdd=still)["condition"][0] > 1e12
    assert program(q=robot.home, qd=still, qdd=still)["condition"][0] < 1e2


def test_a_rod_linkage_goes_through_its_flat_poses_on_its_branch():
    """The only row vanishes where crank, rod and rocker lie in line; a parallelogram stays one."""
    robot = load_robot("rod-parallelogram")
    with pytest.raises(parflex.SingularError, match="the closures are singular"):
        parflex.mass_matrix(robot, {"crank": 0.0, "rocker": 0.0})
    assert parflex.configure(robot, {"crank": 1e-6, "rocker": 1e-6}).condition.closures > 1e5
    run = parflex.simulate(robot, None, 0.5, step=1e-3)
    assert run["q.crank"].min() < -1 and len(run.summary["changes"]) == 2
    # both arms are the same, so the rod carries nothing
    assert run["q.crank"] == pytest.approx(run["q.rocker"], abs=1e-10)
    assert np.nanmax(np.abs(run["element.rod.force"])) < 1e-3  # of 10 N: rounding, by the distance from flat twice
    assert run.summary["energy_balance_error"] < 1e-9


def refusal(robot, pose=None):
    with pytest.raises(ActuationError) as caught:
        parflex.inverse_dynamics(robot, pose)
    return caught.value


def test_a_rod_between_two_balls_is_said_to_spin():
    error = refusal(load_robot("rssr"))
    assert error.message.startswith("'coupler' spins freely about its own axis between two spherical joints")
    assert "universal joint" in error.hint and "actuated" not in error.hint


def test_with_a_motor_less_the_platform_is_named_and_not_the_spins():
    five = {"actuation.five": {"actuated": [f"{leg}.upper" for leg in "abcde"]}}
    error = refusal(load_robot("six-sps", settings=five, actuation="five"))
    assert "5 motors for 6 freedoms" in error.message and "platform" in error.message


def test_a_passive_hinge_is_no_spin():
    found = parflex.inverse_dynamics(load_robot("cart-pendulum"))
    assert list(found.free) == ["bob"] and "1 motor for 2 freedoms" in found.warnings[-1]


@pytest.mark.parametrize("name", ["rssr", "double-four-bar", "cart-pendulum"])
def test_too_few_motors_are_no_singularity_of_a_pose(name):
    assert configure(load_robot(name)).condition.warnings() == []


def test_a_dead_centre_that_the_motor_passes_is_said_to_be_one():
    robot = load_robot("slider-crank-flexible")
    (said,) = configure(robot).condition.warnings()
    assert "stretched or folded" in said and "singularity" not in said and "inf" not in said
    assert configure(robot, {"crank": 0.5}).condition.warnings() == []
    condition = configure(robot).condition
    assert type(condition)(condition.legs, float("inf"), 2e4).warnings() == [  # without printing what has no end
        "leg 'pin (first side)' is at a singularity",
        "the platform with locked motors is at a singularity",
        "the set of closures is near a singularity (condition number 2.0e+04)",
    ]


def test_legs_that_spin_do_not_hide_a_singular_pose():
    robot, legs = load_robot("six-sps"), ", ".join(f"'{leg}.lower'" for leg in "abcdef")
    assert refusal(robot, {"z": 0.8, "rz": 0.3}).message.startswith(f"{legs} spin freely about their own axis")
    with pytest.raises(SingularError, match="with the motors locked, 'platform"):
        parflex.inverse_dynamics(robot, {"z": 0.8, "rz": np.pi / 2})  # a quarter turn: Fichter's singular pose
