"""Base parameters: as many as in the literature, as many as another engine can tell apart, and the same efforts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from conftest import CATALOGUE, RIGID
from support.comparison import largest
from support.mechanisms import invented
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.states import Draws, random_states

import parflex
from parflex import Configuration
from parflex.identification.base_columns import base_columns
from parflex.identification.regressors import Regressor
from parflex.identification.unknowns import unknowns
from parflex.models.dynamics.base_parameters import PARAMETERS, body_parameters, regressor
from parflex.models.dynamics.forces import tree_forces

SERIAL = ("rx90", "puma560")


@cache
def based(name):
    """Robot and its base parameters; samples enough for four times as many rows as a body has parameters."""
    robot = parflex.load(name)
    return robot, parflex.base_parameters(robot, samples=40 if name in SERIAL else 12)


def rank(matrix):
    """Number of singular values that are not rounding, columns of equal size."""
    sizes = np.linalg.norm(matrix, axis=0)
    values = np.linalg.svd(
        matrix[:, sizes > 1e-10 * sizes.max()] / sizes[sizes > 1e-10 * sizes.max()], compute_uv=False
    )
    gap = values[:-1] / np.maximum(values[1:], 1e-300)
    count = int(np.sum(values > 1e-9 * values[0]))  # between the smallest true one (1e-4) and rounding (1e-15)
    assert count == len(values) or gap[count - 1] > 1e4  # the cut falls into a wide gap
    return count


def pinocchio_regressor(path, samples=40):
    """Torques per unit of each inertial parameter at random motions, and the accelerations of the joints."""
    tree = PinocchioTree(read_robot(path))
    pin.seed(1)
    rng, data, rows, accelerations = np.random.default_rng(1), tree.model.createData(), [], []
    for _ in range(samples):
        q = pin.randomConfiguration(tree.model, -2 * np.ones(tree.model.nq), 2 * np.ones(tree.model.nq))
        qd, qdd = rng.uniform(-2, 2, tree.model.nv), rng.uniform(-4, 4, tree.model.nv)
        rows.append(pin.computeJointTorqueRegressor(tree.model, data, q, qd, qdd))
        accelerations.append(np.diag(qdd))
    return np.concatenate(rows), np.concatenate(accelerations)


@pytest.mark.parametrize("name", SERIAL)
def test_a_six_axis_arm_has_36_base_parameters(name, figure):
    _, base = based(name)
    matrix, rotors = pinocchio_regressor(CATALOGUE / f"{name}.toml")
    figure(
        f"{name}: base parameters of the bodies, rank of Pinocchio's regressor", f"{len(base.names)}, {rank(matrix)}"
    )
    assert len(base.names) == len(base.values) == len(set(base.names)) == 36
    assert rank(matrix) == 36
    # four rotors cannot be grouped with bodies: 40 parameters, as Khalil and Dombre count them for the RX-90
    assert rank(np.hstack([matrix, rotors])) == 40


@pytest.mark.few
@pytest.mark.parametrize("name", RIGID)
def test_base_parameters_are_as_many_as_the_regressor_has_rank(name):
    _, base = based(name)
    assert rank(pinocchio_regressor(CATALOGUE / f"{name}.toml")[0]) == len(base.names)
    assert len(base.names) <= base.after_rules


@pytest.mark.few
@pytest.mark.parametrize("name", RIGID)
def test_a_robot_of_base_parameters_has_the_same_efforts(name, figure):
    robot, base = based(name)
    lean, worst = base.robot, 0.0
    pairs = zip(robot.tree.links, lean.tree.links, strict=True)
    assert any(largest(one.body.I - other.body.I) > 0 for one, other in pairs)  # it is not the same robot
    for state in random_states(robot, 5, 51, Draws(), spread=0.1 * robot.tree.length):
        q = state.configuration.q
        first = parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration)
        second = parflex.inverse_dynamics(lean, Configuration(lean, q), state.velocity, state.acceleration)
        one, other = (np.array(list(result.efforts.values())) for result in (first, second))
        worst = max(worst, largest(one - other) / largest(one))
    figure(f"{name}: efforts with base parameters, largest relative difference", worst, 1e-11)
    assert worst < 1e-11  # weights of the grouping are known to 1e-14, efforts are sums of some hundred terms


def test_the_regressor_times_the_parameters_is_the_force():
    robot, rng = parflex.load("space"), np.random.default_rng(3)
    configuration, n = parflex.configure(robot), robot.tree.n
    qd, qdd = rng.uniform(-2, 2, n), rng.uniform(-4, 4, n)
    values = np.concatenate([body_parameters(link.body) for link in robot.tree.links])
    terms = ("motor-inertia", "friction", "springs")
    force = tree_forces(configuration, qd, qdd, without=terms)
    assert largest(regressor(robot.tree, configuration.q, qd, qdd) @ values - force) < 1e-12 * largest(
        force
    )  # same sums


def test_what_the_rules_leave_is_grouped_by_rank():
    robot = parflex.load(invented("scara"))
    base, rng = parflex.base_parameters(robot), np.random.default_rng(4)
    assert len(base.names) == rank(pinocchio_regressor(invented("scara"))[0]) < base.after_rules
    assert set(base.grouped) == {"MX[quill]", "MY[forearm]"}
    for _ in range(5):
        q, motors = rng.uniform(-2, 2, 3), robot.actuated_names
        velocity, acceleration = (dict(zip(motors, rng.uniform(-3, 3, 3), strict=True)) for _ in range(2))
        one, other = (
            np.array(list(parflex.inverse_dynamics(r, Configuration(r, q), velocity, acceleration).efforts.values()))
            for r in (robot, base.robot)
        )
        assert largest(one - other) < 1e-11 * largest(one)  # as for the catalogue


@pytest.mark.parametrize("name", ["5r", "3rrr"])
def test_base_parameters_of_the_closed_robot_are_fewer_and_give_the_same_efforts(name):
    robot = parflex.load(name)
    of_tree, of_loops = parflex.base_parameters(robot), parflex.base_parameters(robot, closed=True)
    inertial = [one for one in unknowns(robot, "none") if one.name.split("[")[0] in PARAMETERS]
    assert len(of_loops.names) == len(base_columns(Regressor(robot, inertial)).kept) < len(of_tree.names)
    rng = np.random.default_rng(3)
    for _ in range(3):
        moving = [dict(zip(robot.motors, rng.uniform(-2, 2, len(robot.motors)).tolist(), strict=True)) for _ in "va"]
        efforts = [parflex.inverse_dynamics(one, "home", *moving).efforts for one in (robot, of_loops.robot)]
        assert efforts[1] == pytest.approx(efforts[0], rel=1e-9, abs=1e-9)  # rounding of the projected regressor
