"""Reactions over a run: Newton's and Euler's laws by hand, the same as of one state, and the largest of them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from support.oracles.stops import JOINTS, FiveBar

import parflex
from parflex import Configuration, InputError
from parflex.cli.main import cli
from parflex.models.dynamics.forces import tree_forces
from parflex.models.dynamics.reactions import reactions_of
from parflex.models.terms import acting

WORDS = ("fx", "fy", "fz", "mx", "my", "mz")
PENDULUM = """
format = 1
name = "pendulum"
motion = "planar"
gravity = [0, -9.81, 0]
[[frame]]
name = "arm"
joint = "revolute"
start = -0.3
inertia = { mass = 2.5, centre = [0.4, 0, 0], about_centre = [0, 0, 0.08] }
"""


def test_the_pivot_of_a_pendulum_carries_what_its_circle_needs(tmp_path):
    path = tmp_path / "pendulum.toml"
    path.write_text(PENDULUM)
    run = parflex.simulate(parflex.load(path), None, 1.0, reactions=True, method="rk4")
    q, qd = run["q.arm"], run["qd.arm"]
    m, r, g, about = 2.5, 0.4, 9.81, 0.08 + 2.5 * 0.4**2
    qdd = -m * g * r * np.cos(q) / about
    along = m * (g * np.sin(q) - r * qd**2)  # in axes of the arm: x along it
    across = m * (g * np.cos(q) + r * qdd)
    assert np.abs(run["reaction.arm.fx"] - along).max() < 1e-10 * m * g
    assert np.abs(run["reaction.arm.fy"] - across).max() < 1e-10 * m * g
    assert np.abs(run["reaction.arm.mz"]).max() < 1e-10
    most = run.summary["largest_reactions"]["arm"]
    size = np.hypot(along, across)
    assert math.isclose(most["force"], size.max(), rel_tol=1e-10) and most["force_time"] == run.t[size.argmax()]


@pytest.fixture(scope="module")
def five_bar_run():
    start = {"pose": {"tip.x": 0.05, "tip.y": 0.5}, "velocity": {"left.1": 1.0, "right.1": 1.0}}
    return parflex.simulate(
        parflex.load("5r"), None, 0.2, start=start, without=["friction"], reactions=True, method="rk4"
    )


def test_bars_of_a_closed_loop_obey_newton_and_euler(five_bar_run):
    run = five_bar_run
    names = list(parflex.load("5r").tree.position_names)
    turn = np.linalg.inv(np.array([JOINTS[name] for name in names]))
    for row in range(0, len(run.t), 20):
        q, v = (turn @ [run[f"{word}.{name}"][row] for name in names] for word in ("q", "qd"))
        for name, exact in FiveBar().carried(q, v).items():
            found = np.array([run[f"reaction.{name}.{word}"][row] for word in ("fx", "fy", "mz")])
            assert np.abs(found - exact).max() < 1e-10 * 50, name  # of forces up to 50 N


def single(robot, run, row, effort):
    """Reactions of one row, by the function of one state."""
    tree = robot.tree
    q = np.array([run[f"q.{name}"][row] for name in tree.position_names])
    change = np.array([run[f"qd.{name}"][row] for name in tree.position_names])
    here, qd = Configuration(robot, q), tree.rates(q, change)
    qdd = np.zeros(tree.n)
    independent = [name.removeprefix("qdd.") for name in run if name.startswith("qdd.")]
    places = [tree.rate_names.index(name) for name in independent]
    qdd[places] = [run[f"qdd.{name}"][row] for name in independent]
    free = [k for k in robot.free if k not in places]
    if free:
        from parflex.recursion import motion

        bias = robot.closures.bias(here.at, motion(tree, here.at, qd, qdd))
        qdd[free] = np.linalg.lstsq(here.closure_jacobian[:, free], -bias, rcond=1e-10)[0]
    found = reactions_of(here, qd, qdd, tree_forces(here, qd, qdd), effort, None, [])
    return {**found["joints"], **found["closures"]}


@pytest.mark.parametrize(("name", "motion"), [("5r", None), ("3-prrr", None), ("dualemps", "square")])
def test_rows_have_the_reactions_of_their_states(name, motion):
    robot = parflex.load(name)
    run = parflex.simulate(robot, motion, 0.05, without=["friction"], reactions=True, method="gauss4", step=1e-3)
    for row in (0, 17, len(run.t) - 1):
        effort = np.array([run[f"effort.{motor}"][row] for motor in robot.actuated_names])
        one = single(acting(robot, ["friction"]), run, row, effort)
        size = max(np.abs(part["force"]).max() for part in one.values())
        assert set(one) == set(run.summary["largest_reactions"])
        for part, values in one.items():
            found = [run[f"reaction.{part}.{word}"][row] for word in WORDS]
            # multipliers by another elimination: the condition of the closures, up to 1e3, times rounding
            assert np.abs(np.array(found) - [*values["force"], *values["moment"]]).max() < 1e-10 * max(size, 1.0), part
    loose = {part for part, values in one.items() if values["undetermined"]}
    assert set(run.summary["undetermined_reactions"]) == loose
    assert any("least norm" in sentence for sentence in run.summary["warnings"]) == bool(loose)


def test_outputs_may_be_asked_for_one_by_one(five_bar_run):
    robot = parflex.load("5r")
    start = {"pose": {"tip.x": 0.05, "tip.y": 0.5}, "velocity": {"left.1": 1.0, "right.1": 1.0}}
    asked = ["reaction.left.2.fy", "reaction.tip hinge"]
    run = parflex.simulate(robot, None, 0.05, start=start, without=["friction"], outputs=asked, method="rk4")
    columns = [name for name in run if name.startswith("reaction.")]
    assert columns == ["reaction.left.2.fy", *(f"reaction.tip hinge.{word}" for word in WORDS)]
    for name in columns:
        assert np.array_equal(run[name], five_bar_run[name][: len(run.t)])
    assert set(run.summary["largest_reactions"]) == {"left.2", "tip hinge"}
    with pytest.raises(InputError, match=r"there is no output 'reaction.left.2.fw'") as caught:
        parflex.simulate(robot, None, 0.05, outputs=["reaction.left.2.fw"])
    assert "reaction.left.2.f" in caught.value.hint


def test_the_command_line_tells_what_bearings_carry(tmp_path):
    path = tmp_path / "pendulum.toml"
    path.write_text(PENDULUM)
    command = ["simulate", str(path), "--time", "0.01", "--method", "rk4", "--out", str(tmp_path / "run.csv")]
    done = CliRunner().invoke(cli, [*command, "--outputs", "reaction.arm.fx", "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert set(answer["largest_reactions"]["arm"]) == {"force", "force_time", "moment", "moment_time"}
    assert "reaction.arm.fx" in answer["columns"] and "reaction.arm.fy" not in answer["columns"]
    told = CliRunner().invoke(cli, [*command, "--reactions"])
    assert told.exit_code == 0 and "largest reactions" in told.stdout


def test_a_plant_at_rest_carries_its_weight_from_the_first_row():
    robot = parflex.load("5r")
    still = parflex.run_control(robot, lambda t: {"x": 0.0, "y": 0.55}, "pd", time=0.02, reactions=True)
    rest = parflex.inverse_dynamics(robot, "home", reactions=True)
    for name, values in {**rest.reactions["joints"], **rest.reactions["closures"]}.items():
        found = [[still[f"reaction.{name}.{word}"][row] for word in WORDS] for row in (0, 10)]
        # a law with gravity holds the robot still up to friction and rounding
        assert np.abs(np.array(found) - [*values["force"], *values["moment"]]).max() < 1e-6, name
