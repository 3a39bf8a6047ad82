"""Poses in which the only row or the only motor of a mechanism says nothing: their own ratio of sizes cannot tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.comparison import written

import parflex

ARM = """
format = 1
name = "arm"
motion = "planar"
gravity = [0, -9.81, 0]
[[frame]]
name = "arm"
joint = "revolute"
start = START
inertia = { mass = 1.2, centre = [0.3, 0, 0], about_centre = [0, 0, 0.01] }
[[point]]
name = "hook"
frame = "arm"
position = [0.4, 0, 0]
[[point]]
name = "wall"
frame = "base"
position = [0.35, 0.25, 0]
"""
STRUT = """
[[element]]
name = "s"
kind = "strut"
between = ["wall", "hook"]
actuated = true
"""
LEG = """
[[frame]]
name = "leg"
joint = "revolute"
place = { position = [0.35, 0.25, 0] }
start = -1.4
[[frame]]
name = "s"
parent = "leg"
joint = "prismatic"
actuated = true
place = { rotation = [0, "pi/2", 0] }
start = 0.13
[[closure]]
between = ["s", "hook"]
joint = "revolute"
"""
PARALLELOGRAM = """
format = 1
name = "parallelogram"
motion = "planar"
gravity = [0, -9.81, 0]
[[frame]]
name = "crank"
joint = "revolute"
start = 0.7
inertia = { mass = 1, centre = [0.1, 0, 0], about_centre = [0, 0, 0.01] }
[[point]]
name = "A"
frame = "crank"
position = [0.2, 0, 0]
[[frame]]
name = "rocker"
joint = "revolute"
start = 0.7
place = { position = [0.3, 0, 0] }
inertia = { mass = 1, centre = [0.1, 0, 0], about_centre = [0, 0, 0.01] }
[[point]]
name = "B"
frame = "rocker"
position = [0.2, 0, 0]
[[element]]
name = "rod"
kind = "rod"
between = ["A", "B"]
"""
DEAD = float(np.arctan2(0.25, 0.35))  # pivot, wall and hook in line


def arm(folder: Path, leg: str = STRUT, start: float = 0.3) -> parflex.Robot:
    return parflex.load(written(ARM.replace("START", repr(start)) + leg, folder))


@pytest.mark.parametrize("leg", [STRUT, LEG], ids=["strut", "leg"])
def test_a_motor_at_its_dead_centre_is_refused(leg, tmp_path):
    """As an element and as a leg of joints; a millionth of a radian beside it there is a warning."""
    robot = arm(tmp_path, leg)
    with pytest.raises(parflex.SingularError, match=r"with the motors locked, '(arm|leg)' can still move"):
        parflex.inverse_dynamics(robot, {"arm": DEAD})
    beside = parflex.inverse_dynamics(robot, {"arm": DEAD - 1e-6})
    assert any("near a singularity" in told for told in beside.warnings)
    assert parflex.inverse_dynamics(robot, {"arm": 0.1}).warnings == []


def test_a_home_at_the_dead_centre_is_singular_and_not_short_of_motors(tmp_path):
    with pytest.raises(parflex.SingularError, match="singular pose"):
        parflex.inverse_dynamics(arm(tmp_path, STRUT, DEAD))


def test_arrays_and_programs_know_the_dead_centre(tmp_path):
    robot, still = arm(tmp_path), np.zeros(2)
    q = parflex.configure(robot, {"arm": DEAD}).q
    with pytest.raises(parflex.SingularError):
        parflex.inverse_dynamics(robot, q, still, still)
    with pytest.warns(parflex.ParflexWarning, match="1 of 2 states have no answer"):
        both = parflex.inverse_dynamics(robot, np.stack([q, robot.home]), np.zeros((2, 2)), np.zeros((2, 2)))
    assert np.isnan(both[0]).all() and np.isfinite(both[1]).all()
    program = parflex.model(robot, "inverse", coordinates="all", checks=True)
    assert program(q=q, qd=still, qdd=still)["condition"][0] > 1e12
    assert program(q=robot.home, qd=still, qdd=still)["condition"][0] < 1e2


def test_a_rod_linkage_goes_through_its_flat_poses_on_its_branch(tmp_path):
    """The only row vanishes where crank, rod and rocker lie in line; a parallelogram stays one."""
    robot = parflex.load(written(PARALLELOGRAM, tmp_path))
    with pytest.raises(parflex.SingularError, match="the closures are singular"):
        parflex.mass_matrix(robot, {"crank": 0.0, "rocker": 0.0})
    assert parflex.configure(robot, {"crank": 1e-6, "rocker": 1e-6}).condition.closures > 1e5
    run = parflex.simulate(robot, None, 0.5, step=1e-3)
    assert run["q.crank"].min() < -1 and len(run.summary["changes"]) == 2
    # both arms are the same, so the rod carries nothing
    assert run["q.crank"] == pytest.approx(run["q.rocker"], abs=1e-10)
    assert np.nanmax(np.abs(run["element.rod.force"])) < 1e-3  # of 10 N: rounding, by the distance from flat twice
    assert run.summary["energy_balance_error"] < 1e-9
