"""Runs go on where the rates that they integrate no longer determine the others, and through singular poses."""

from __future__ import annotations

import numpy as np
import pytest

from parflex import load, simulate
from parflex.closure.mobility import choose_partition, scaled_jacobian
from parflex.errors import InputError


def positions(run):
    return np.stack([run[name] for name in run if name.startswith("q.")])


def test_the_motion_is_the_same_whatever_rates_are_independent():
    robot = load("four-bar")
    given = {"time": 0.1, "start": {"velocity": {"crank": 2.0}}, "without": ["friction"], "step": 1e-3}
    runs = {name: simulate(robot, independent=[name], **given) for name in ("crank", "coupler", "rocker")}
    for name, run in runs.items():
        assert run.status == "ok" and f"qdd.{name}" in run
        # order four: halving the steps of 1e-3 s moves no position by more than 1e-9
        assert np.abs(positions(run) - positions(runs["crank"])).max() < 1e-8


def test_a_robot_that_bends_moves_the_same_with_other_independent_rates():
    robot = load("dualemps")
    passive = np.array([k for k in robot.free if k not in robot.actuated])
    J = scaled_jacobian(robot.closures, robot.home)
    part = choose_partition(J, passive, robot.mobility.rank, np.linspace(1.0, 1.5, robot.tree.n))
    chosen = [name for k, name in enumerate(robot.tree.rate_names) if k not in part.dependent]
    given = {"time": 0.02, "without": ["friction"], "step": 1e-4}
    one, two = simulate(robot, "square", **given), simulate(robot, "square", independent=chosen, **given)
    assert {name for name in one if name.startswith("qdd.")} != {f"qdd.{name}" for name in chosen}
    assert two.status == "ok" and {name[4:] for name in two if name.startswith("qdd.")} == set(chosen)
    assert np.abs(positions(one) - positions(two)).max() < 1e-9  # of 1e-4 m of bending


@pytest.mark.parametrize(
    ("names", "told"),
    [(["krank"], "krank"), ([], "0 rates are named"), (["crank", "rocker"], "but 1 are"), ("crank", "not a list")],
)
def test_rates_that_cannot_be_independent_are_refused_by_name(names, told):
    with pytest.raises(InputError, match=told):
        simulate(load("four-bar"), time=0.1, independent=names)


def test_motors_that_follow_a_motion_are_independent():
    with pytest.raises(InputError, match="the motor 'crank' is led"):
        simulate(load("four-bar"), lambda t: ([t], [1.0], [0.0]), time=0.1, independent=["rocker"])
