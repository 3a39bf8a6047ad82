"""Control of a robot with more motors than freedoms: every law with a preload, efforts within limits."""

from __future__ import annotations

import numpy as np
import pytest
from support.mechanisms import invented
from support.traced import long

import parflex
from parflex import InputError
from parflex.control.laws import LAWS

LIMIT = 17.0  # N m: the circle takes 18 to 18.5 with the preload alone
PRELOAD = {"leg2.1": 4.0}
CIRCLE = "circle:radius=0.08,time=1.0"


@pytest.fixture(scope="module")
def four():
    return parflex.load(invented("four-rrr"))


def internal(robot, run, row):
    """The part of the efforts of a row that moves nothing, along the one internal direction."""
    pose = {word: run[f"platform.{word}"][row] for word in ("x", "y", "theta")}
    direction = np.linalg.svd(parflex.configure(robot, pose).J_a.T)[2][-1]
    return direction, direction @ np.array([run[f"effort.{name}"][row] for name in robot.motors])


# the laws differ in how they find efforts; one of joints and the one of the paper's extension in every run
@pytest.mark.verify
@pytest.mark.parametrize("law", [pytest.param(law, marks=[] if law in ("ctc", "extended") else long) for law in LAWS])
def test_every_law_keeps_a_preload_and_the_limits_of_the_motors(four, law, figure):
    free = parflex.run_control(four, CIRCLE, law, time=0.5, preload=PRELOAD)
    held = parflex.run_control(four, CIRCLE, law, time=0.5, preload=PRELOAD, effort_limit=LIMIT)
    assert free.ok and held.ok and held.settings["preload"] == PRELOAD
    efforts = [np.array([run[f"effort.{name}"] for name in four.motors]) for run in (free, held)]
    assert np.abs(efforts[0]).max() > LIMIT + 0.5
    assert np.abs(efforts[1]).max() <= LIMIT * (1 + 1e-12)
    # internal efforts alone keep the limits, so the robot moves as before; steps of the plant see other roundings
    assert np.abs(free["error"] - held["error"]).max() < 1e-3 * free["error"].max() + 1e-8
    stated = parflex.inverse_dynamics(four, preload=PRELOAD).internal["efforts"]
    stated = np.array([stated[name] for name in four.motors])
    for row in (0, 250, 499):
        direction, inside = internal(four, free, row)
        # the law knows the pose from the sensors to Newton's rest, and PD divides by nothing else
        assert inside == pytest.approx(direction @ stated, rel=1e-6)
    figure(f"four-rrr, {law}: largest effort without and with a limit of {LIMIT} N m",
           f"{np.abs(efforts[0]).max():.2f}, {np.abs(efforts[1]).max():.2f}")  # fmt: skip


@pytest.mark.verify
def test_limits_that_nothing_meets_act_on_each_motor(four):
    run = parflex.run_control(four, CIRCLE, "ctc", time=0.5, effort_limit={"leg3.1": 3.0, "leg1.1": (-5.0, 5.0)})
    assert np.abs(run["effort.leg3.1"]).max() == 3.0 and np.abs(run["effort.leg1.1"]).max() <= 5.0
    assert run["error"].max() > 1e-3


@pytest.mark.verify
def test_a_preload_without_spare_motors_is_refused_before_anything_is_compiled():
    with pytest.raises(InputError, match="so 'preload' has no effect"):
        parflex.run_control(parflex.load("3rrr"), "circle:radius=0.1", "ctc", preload={"leg1.1": 1.0})


@pytest.mark.verify
def test_the_other_motors_take_over_from_one_that_failed(four):
    failed = parflex.run_control(four, CIRCLE, "ctc", time=0.3, effort_limit={"leg3.1": (0.0, 0.0)})
    whole = parflex.run_control(four, CIRCLE, "ctc", time=0.3)
    assert failed.ok and np.abs(failed["effort.leg3.1"]).max() < 1e-12
    # three motors have larger efforts, which are held over a sample: 2 % of the error here
    assert np.abs(failed["error"] - whole["error"]).max() < 0.05 * whole["error"].max()


def test_a_plant_whose_cables_push_is_told():
    robot, hold = parflex.load("planar-cable"), {"law": "ctc", "time": 0.02}
    slack = parflex.run_control(robot, "line:x=0.01,time=0.1", preload={"lower_left.drum": -3.0}, **hold)
    pushes = {name: run for name, run in slack.columns.items() if name.startswith("element.")}
    said = slack.summary["warnings"]
    assert len(said) == len(pushes) == 4
    for sentence, (name, force) in zip(said, pushes.items(), strict=True):
        assert (
            f"'{name[8:-6]}' pulls only" in sentence
            and f"from t = 0 s on, at most with {-force.min():.4g} N" in sentence
        )
        # the winding acts along the length of its cable, which is its joint
        assert slack[f"coupling.{name.split('.')[1]}.winding.effort"] == pytest.approx(-force, rel=1e-9)
    taut = parflex.run_control(robot, "line:x=0.01,time=0.1", preload={"lower_left.drum": 3.0}, **hold)
    assert taut.ok and not taut.summary["warnings"]
