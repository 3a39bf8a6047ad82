"""Couplings against constraints of other engines: MuJoCo's joint and tendon equalities, Pinocchio's mimic joints."""

from __future__ import annotations

import numpy as np
import pytest
from support.comparison import largest, nearby_states, positions, written
from support.coupled_robots import RIGID, ROBOTS
from support.oracles.engine_couplings import mimic_equations, mujoco_accelerations
from support.oracles.reader import read_robot

import parflex

SOFT = 2e-3  # MuJoCo's hardest constraint gives way by 1e-4, times the ratio of the gears
ELASTIC = ("terms = { motor = 0.4 }", "terms = { motor = 0.4 }\nstiffness = 40\ndamping = 0.3")


@pytest.mark.parametrize("name", ["differential", "planetary", "screw-jack", "elastic"])
def test_accelerations_of_coupled_joints_are_those_of_mujoco(name, tmp_path, figure):
    pytest.importorskip("mujoco", minversion="3.2.3")
    base = "screw-jack" if name == "elastic" else name
    text = (ROBOTS / f"{base}.toml").read_text()
    path = written(text.replace(*ELASTIC) if name == "elastic" else text, tmp_path, base)
    robot, data, rng = parflex.load(path, actuation=RIGID[base]), read_robot(path), np.random.default_rng(4)
    worst = []
    for state in nearby_states(robot, 3, 2) if name != "elastic" else [None] * 3:
        if state is None:
            at = parflex.configure(robot, {"motor": 0.3, "spindle": 0.1, "swing": -1.0})
            velocity = {"motor": 2.0, "spindle": -0.5, "swing": 0.4}
        else:
            at, velocity = state.configuration, state.velocity
        effort = dict(zip(robot.actuated_names, rng.uniform(-2, 2, len(robot.actuated)), strict=True))
        found = parflex.forward_dynamics(robot, at, velocity, effort, without=["friction"])
        rates = dict(zip(robot.tree.rate_names, map(float, found.rates), strict=True))
        for theirs in mujoco_accelerations(data, positions(at), rates, effort):
            errors = found.accelerations - np.array([theirs[n] for n in robot.tree.rate_names])
            worst.append(largest(errors) / largest(found.accelerations))
    figure(f"{name} against MuJoCo, without its softness", max(worst[1::2]), 1e-10)
    assert max(worst[1::2]) < 1e-10
    if name in ("differential", "planetary"):  # a spindle amplifies the softness by a turn per lead
        figure(f"{name} against MuJoCo", max(worst[::2]), SOFT)
        assert max(worst[::2]) < SOFT


def test_a_jack_whose_joints_mimic_its_motor_has_the_inertia_and_bias_of_pinocchio(tmp_path, figure):
    pytest.importorskip("pinocchio", minversion="4.0")
    text = (ROBOTS / "screw-jack.toml").read_text()
    text += '[[coupling]]\nname = "arm"\njoint = "swing"\nterms = { spindle = -0.7 }\noffset = -1.2\n'
    path = written(text, tmp_path)
    robot, data = parflex.load(path), read_robot(path)
    for motor, rate in ((0.4, 3.0), (-2.0, 1.0), (25.0, -4.0)):
        at = parflex.configure(robot, {"motor": motor})
        M, c = mimic_equations(data, "motor", positions(at), rate)
        for acceleration in (0.0, 7.0):
            told = parflex.inverse_dynamics(
                robot, at, {"motor": rate}, {"motor": acceleration}, without=["friction"]
            ).efforts["motor"]
            figure("coupled jack against mimic joints", abs(told / (M * acceleration + c) - 1), 1e-11)
            assert told == pytest.approx(M * acceleration + c, rel=1e-11)
