"""Exciting motions: exact gradients through the loops, limits that are kept, files."""

import json

import numpy as np
import pytest
from support.catalogue import CATALOGUE
from support.command_line import answered, refused
from support.oracles import led_records

import parflex
from parflex.identification.excitation import ExcitationSearch
from parflex.identification.excitation_limits import read_motion_limits


@pytest.fixture(scope="module")
def search():
    return ExcitationSearch(parflex.load("5r"), 4.0, 3, "symmetric")


@pytest.fixture(scope="module")
def limits(search):
    return read_motion_limits(search.regressor, 0.4, 3.0, 60.0, None, 0.4)


def test_the_gradient_through_the_loops_is_that_of_differences(search, limits):
    rng = np.random.default_rng(2)
    x = search.random(rng, 0.4, limits)
    value, slope = search.valued(x, limits, 1.0)
    assert np.isfinite(value)
    for _ in range(3):
        way = rng.standard_normal(len(x))
        ends = [search.valued(x + h * way, limits, 1.0)[0] for h in (1e-6, -1e-6)]
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(way @ slope, rel=1e-4)  # loops closed to 1e-9


def test_a_series_begins_and_ends_at_rest(search, limits):
    x = search.random(np.random.default_rng(3), 0.4, limits)
    position, rate, acceleration = search.series.moved(x, np.array([0.0, 4.0]))
    assert np.abs(rate).max() < 1e-12 and np.abs(acceleration).max() < 1e-12
    assert np.abs(position[0] - position[1]).max() < 1e-12


@pytest.fixture(scope="module")
def found():
    robot = parflex.load("5r")
    return parflex.excite(
        robot, 4.0, 3, seed=1, amplitude=0.4, velocity_limit=3.0, effort_limit=60.0, distance=0.4,
        friction="symmetric", starts=1,
    )  # fmt: skip


@pytest.mark.verify
def test_an_optimal_motion_has_more_information_than_random_motions(found, search, limits):
    rng = np.random.default_rng(0)
    others = [search.random(rng, 0.4, limits) for _ in range(10)]
    assert found.log_det > max(search.log_det(x) for x in others) + 3
    rows = [search.regressor.of(search.moving(x, search.instants())[0], search.base.kept)[0] for x in others]
    assert found.deviations["geometric_mean"] < min(search.deviations(W)["geometric_mean"] for W in rows)


@pytest.mark.verify
def test_an_optimal_motion_keeps_its_limits_in_a_run(found):
    robot = parflex.load("5r")
    run = parflex.simulate(robot, found.motion, 4.0)
    for motor in robot.actuated_names:
        low, high = found.limits["position"][motor]["limits"]
        assert low <= run[f"q.{motor}"].min() and run[f"q.{motor}"].max() <= high
        assert np.abs(run[f"effort.{motor}"]).max() < 60.0 * 1.01  # friction that the file has not is looked for
    assert found.limits["distance"]["lowest"] >= 0.4


def test_limits_hold_between_instants(search, limits):
    x = search.random(np.random.default_rng(5), 0.4, limits)
    still, wide = (search.series.shrunk(x, factor) for factor in (1e-3, 4.0))
    x = search.between(still, wide, limits)
    dense = np.linspace(0.0, 4.0, 8001)
    moving, _, efforts, place = search.watched(x, dense)
    assert 0.0 < min(left.min() for left in limits.margins(search.regressor, moving, efforts, place)) < 0.01


def test_a_motion_that_the_robot_cannot_do_is_the_worst(search, limits):
    x = search.random(np.random.default_rng(2), 0.3, limits)
    assert np.isfinite(search.log_det(x))
    assert search.log_det(100 * x) == -np.inf  # motors turn on where the loops cannot


def test_limits_that_leave_nothing_are_refused():
    robot = parflex.load("5r")
    with pytest.raises(parflex.InputError, match="leave no motion"):
        parflex.excite(robot, 4.0, 3, workspace={"x": [5.0, 6.0]}, starts=1)
    with pytest.raises(parflex.InputError, match="is flexible"):
        parflex.excite(parflex.load("dualemps"))
    with pytest.raises(parflex.InputError, match="cannot move independently"):
        parflex.excite(parflex.load("planar-cable"))
    with pytest.raises(parflex.InputError, match="lowest and a highest place"):
        parflex.excite(robot, workspace={"x": [1, 0]})


def test_the_verb_writes_a_table_and_a_motion(capsys, tmp_path):
    out = tmp_path / "motion.csv"
    answer = answered(
        capsys, "excite", "emps", "--time", "4", "--harmonics", "3", "--seed", "1", "--velocity-limit", "0.5",
        "--starts", "1", "--out", str(out),
    )  # fmt: skip
    assert {"log_det", "condition", "limits", "files"} <= set(answer) and json.dumps(answer)
    assert str(out) in answer["files"] and str(out.with_suffix(".toml")) in answer["files"]
    table = np.genfromtxt(out, delimiter=",", names=True)
    assert np.abs(table["axisvelocity"]).max() <= 0.5 and table["t"][-1] == pytest.approx(4.0)
    run = parflex.simulate(parflex.load("emps"), str(out.with_suffix(".toml")), 4.0)
    assert run["q.axis"] == pytest.approx(table["axis"], abs=1e-9)
    found = parflex.identify(parflex.load("emps"), run, cutoff=40)
    assert found.parameters["M[axis]"].value == pytest.approx(95.1, rel=2e-3)
    assert "not a direction with two limits" in refused(capsys, "excite", "emps", "--workspace", "x=1")["message"]


@pytest.mark.verify
def test_an_optimal_motion_has_more_information_than_platform_motions_by_hand(figure):
    robot, t = parflex.load("gough-stewart"), np.arange(200) / 50
    search = ExcitationSearch(robot, 4.0, 5)
    oracle = led_records.LedRobot(CATALOGUE / "gough-stewart.toml")
    by_hand = []
    for seed in range(5):
        led = oracle.posed(t, seed, 0.07, 0.14, 5)
        parts = [np.stack([led[motor][k] for motor in robot.actuated_names], axis=1) for k in range(3)]
        W = search.regressor.of(search.regressor.moving(*parts), search.base.kept)[0]
        if np.abs(W @ search.theta).max() < 2.1e4:  # others pass near singular poses
            by_hand.append(np.linalg.slogdet(search.information(W))[1])
    found = parflex.excite(robot, 4.0, 5, starts=1, velocity_limit=2.6, effort_limit=2.1e4)
    figure("gough-stewart, log det by hand, best", max(by_hand))
    figure("gough-stewart, log det of excite", found.log_det, "more")
    assert found.log_det > max(by_hand)


@pytest.mark.verify
def test_an_amplitude_narrows_the_limits_of_the_file():
    robot = parflex.load("5r", settings={"legs.frame.0.limits": [-3.0, 3.0]})
    motor = robot.actuated_names[0]
    home = robot.home[robot.tree.position_names.index(motor)]
    words = {"time": 2.0, "harmonics": 2, "starts": 1, "velocity_limit": 2.0}
    found = [parflex.excite(robot, **words, **more) for more in ({}, {"amplitude": 0.2})]
    limits = [one.limits["position"][motor]["limits"] for one in found]
    assert limits[0] == [-3.0, 3.0]
    assert limits[1] == pytest.approx([home - 0.2, home + 0.2])
