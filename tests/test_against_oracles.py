"""Efforts against two engines that share no code with us: Pinocchio's tree and Lagrange's equations."""

from __future__ import annotations

import os

import numpy as np
import pytest
from conftest import CATALOGUE, RIGID
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.states import Draws, random_states

import parflex

# both sides solve systems of condition up to 1e4 in double precision (1e-16): rounding may leave 1e-12; 1e-10 is asked
TOLERANCE = 1e-10
WITH_PINOCCHIO = ["gough-stewart", "space", "3rrr", "5r", "delta", "3-prrr"]
STATES = 50 if os.environ.get("PARFLEX_VERIFY") else 20  # of each robot


def compare(path, oracle_type, count, seed, wrench=True):
    """Largest relative error of efforts and of motion over random states."""
    robot = parflex.load(path)
    oracle = oracle_type(read_robot(path))
    draws, worst, slowest = Draws(), 0.0, 0.0
    rng = np.random.default_rng(seed + 1)
    names = list(robot.tree.position_names)
    for state in random_states(robot, count, seed, draws):
        load = {robot.tree.end_effector: rng.uniform(-50, 50, 6)} if wrench else {}
        if robot.tree.planar and load:
            load[robot.tree.end_effector][[2, 3, 4]] = 0.0
        result = parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration, wrench=load)
        q = dict(zip(names, state.configuration.q, strict=True))
        independent = state.configuration.independent_names
        numbers = [robot.tree.rate_names.index(name) for name in independent]
        rates = {name: result.rates[k] for name, k in zip(independent, numbers, strict=True)}
        accelerations = {name: result.accelerations[k] for name, k in zip(independent, numbers, strict=True)}
        qd, qdd = oracle.motion(q, rates, accelerations)
        order = [oracle.coordinates.index(name) for name in robot.tree.rate_names]
        motion_error = max(
            np.abs(qd[order] - result.rates).max() / np.abs(result.rates).max(),
            np.abs(qdd[order] - result.accelerations).max() / np.abs(result.accelerations).max(),
        )
        expected = oracle.inverse(q, rates, accelerations, robot.actuated_names, wrenches=load)
        tau = np.array([expected[name] for name in robot.actuated_names])
        ours = np.array(list(result.efforts.values()))
        worst = max(worst, np.abs(tau - ours).max() / np.abs(tau).max(), motion_error)
        slowest = max(slowest, float(np.abs(result.rates / robot.tree.rate_units).max()))
    return worst, draws, slowest


@pytest.mark.few
@pytest.mark.parametrize("name", WITH_PINOCCHIO)
def test_efforts_equal_those_of_pinocchio(name, figure):
    worst, draws, fastest = compare(CATALOGUE / f"{name}.toml", PinocchioTree, STATES, 1)
    figure(f"{name}: inverse model against Pinocchio, largest relative error", worst, TOLERANCE)
    figure(
        f"{name}: rejected near singularities (share), out of reach (draws)",
        f"{draws.rejected_share:.1%}, {draws.unreachable}",
    )
    assert worst < TOLERANCE
    assert fastest > 5  # the states are not all slow


@pytest.mark.few
@pytest.mark.parametrize("name", RIGID)
def test_efforts_equal_those_of_lagrange(name, figure):
    worst, draws, _ = compare(CATALOGUE / f"{name}.toml", EnergyModel, STATES, 2)
    figure(f"{name}: inverse model against Lagrange, largest relative error", worst, TOLERANCE)
    figure(
        f"{name}: rejected near singularities (share), out of reach (draws)",
        f"{draws.rejected_share:.1%}, {draws.unreachable}",
    )
    assert worst < TOLERANCE


@pytest.mark.few
@pytest.mark.parametrize("name", RIGID)
def test_mass_matrix_equals_that_of_lagrange(name):
    from parflex.recursion import mass_matrix

    path = CATALOGUE / f"{name}.toml"
    robot, oracle = parflex.load(path), EnergyModel(read_robot(path))
    for state in random_states(robot, 5, 3, Draws()):
        q = dict(zip(robot.tree.position_names, state.configuration.q, strict=True))
        expected, _ = oracle.mass_matrix_and_bias(q, np.zeros(robot.tree.n))
        order = [oracle.coordinates.index(name) for name in robot.tree.rate_names]
        expected = expected[np.ix_(order, order)]
        M = mass_matrix(robot.tree, state.configuration.at)
        assert np.abs(M - expected).max() < 1e-12 * np.abs(M).max()  # sums of a few dozen products
