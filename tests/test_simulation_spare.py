"""Runs in which more motors than freedoms follow motions: these fit each other or are refused; efforts are shared."""

from __future__ import annotations

import numpy as np
import pytest
from support.mechanisms import invented

import parflex
from parflex import InputError

PRELOAD = {"leg2.1": 4.0}


@pytest.fixture(scope="module")
def four():
    return parflex.load(invented("four-rrr"))


@pytest.fixture(scope="module")
def knots(four):
    """Positions of the motors while the plate moves from home and stops."""
    t = np.linspace(0.0, 0.5, 101)
    way = 10 * (2 * t) ** 3 - 15 * (2 * t) ** 4 + 6 * (2 * t) ** 5
    places = [four.tree.links[four.tree.link_of_rate[k]].q.start for k in four.actuated]
    poses = [{"x": 0.05 * s, "y": -0.04 * s, "theta": 0.2 * s} for s in way]
    rows = np.array([four.assemble(pose)[places] for pose in poses])
    return {"t": t} | {name: rows[:, k] for k, name in enumerate(four.motors)}


@pytest.mark.verify
def test_motors_that_fit_each_other_drive_the_robot_and_share_the_efforts(four, knots, figure):
    limit = 9.0  # N m: at rest in the end one motor has 9.6 with the preload alone
    run = parflex.simulate(four, knots, 0.5, step=2e-3, out_step=0.01, preload=PRELOAD, effort_limit=limit)
    assert run.status == "ok" and run.settings["actuation"] == four.actuation
    told = run.summary["internal"]
    assert told["chosen_by"] == "least norm, preload at home, elsewhere the nearest internal efforts, limits"
    assert told["preload"]["leg2.1"] == pytest.approx(4.0, rel=1e-9)
    stated = parflex.inverse_dynamics(four, preload=PRELOAD).internal["efforts"]
    worst = 0.0
    for row in (5, 25, 50):
        words = ("x", "y", "theta"), ("vx", "vy", "wz"), ("ax", "ay", "alz")
        state = [dict(zip(words[0], (float(run[f"platform.{w}"][row]) for w in part), strict=True)) for part in words]
        wanted = parflex.inverse_dynamics(four, *state, preload=stated, effort_limit=limit).efforts
        found = {name: run[f"effort.{name}"][row] for name in four.motors}
        worst = max(worst, *(abs(found[name] - wanted[name]) / 9.0 for name in four.motors))
    figure("four-rrr driven by all motors: efforts of a run against the inverse model", worst, 1e-9)
    assert worst < 1e-9  # loops of the run are closed to 1e-12 m
    efforts = np.array([run[f"effort.{name}"] for name in four.motors])
    assert np.abs(efforts).max() <= limit * (1 + 1e-9) and np.abs(efforts).max() > limit * (1 - 1e-9)
    assert run.summary["energy_balance_error"] < 1e-9 * max(np.ptp(run["energy.total"]), 1.0)
    rates = np.array([run[f"qd.{name}"] for name in four.motors])
    assert np.abs((efforts * rates).sum(axis=0) - run["power.input"]).max() < 1e-12


@pytest.mark.verify
def test_motions_that_do_not_fit_are_refused_with_the_joint_and_the_amount(four, knots):
    moved = dict(knots)
    moved["leg4.1"] = knots["leg4.1"] + 0.02 * np.linspace(0, 1, 101)
    with pytest.raises(InputError, match=r"the motions of the 4 motors do not fit the 3 freedoms") as told:
        parflex.simulate(four, moved, 0.5, step=2e-3, out_step=0.01)
    text = str(told.value)
    assert "at t = 0.5 s" in text and text.count("'leg") == 1
    off = float(text.split("off by ")[1].split()[0])
    assert 5e-4 < off < 0.02  # the nearest pose shares out what one motor is off


@pytest.mark.verify
def test_words_of_spare_motors_have_no_effect_elsewhere(four):
    with pytest.raises(InputError, match="'preload' has an effect where more motors than freedoms follow a motion"):
        parflex.simulate(four, time=0.1, effort={"leg1.1": 1.0}, preload=PRELOAD)
    with pytest.raises(InputError, match="here the platform follows it") as told:
        move = {"poses": ["home", {"x": 0.02}], "duration": 0.1}
        parflex.simulate(four, move, 0.1, drive="platform", weights={"leg1.1": 2.0})
    assert told.value.hint == "leave it out, or drive the motors"
    with pytest.raises(InputError, match=r"at t = 0 s .*keep the motors within their limits"):
        hold = {"t": np.array([0.0, 1.0])} | {
            name: np.full(2, four.home[four.tree.links[four.tree.number(name)].q.start]) for name in four.motors
        }
        parflex.simulate(four, hold, 0.1, step=2e-3, out_step=0.01, effort_limit=0.1)
