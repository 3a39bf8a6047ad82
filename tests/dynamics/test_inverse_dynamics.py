"""Efforts against two engines that share no code with us: Pinocchio's tree and Lagrange's equations."""

from __future__ import annotations

import numpy as np
import pytest
from support.cases import VERIFY
from support.catalogue import CATALOGUE, RIGID
from support.comparison import error_against, largest, order_of, positions
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.states import Draws, random_states

import parflex

# both sides solve systems of condition up to 1e4 in double precision (1e-16): rounding may leave 1e-12; 1e-10 is asked
TOLERANCE = 1e-10
WITH_PINOCCHIO = ["gough-stewart", "space", "3rrr", "5r", "delta", "3-prrr"]
STATES = 50 if VERIFY else 20  # of each robot


def compare(name, oracle_type, seed, figure):
    """Hold efforts and motions over random states against an engine; return the fastest rate."""
    path = CATALOGUE / f"{name}.toml"
    robot, oracle = parflex.load(path), oracle_type(read_robot(path))
    draws, rng, worst, fastest = Draws(), np.random.default_rng(seed + 1), 0.0, 0.0
    for state in random_states(robot, STATES, seed, draws):
        load = rng.uniform(-50, 50, 6) * ([1, 1, 0, 0, 0, 1] if robot.tree.planar else 1)
        worst = max(worst, error_against(oracle, state, {robot.tree.end_effector: load}))
        fastest = max(fastest, largest(state.configuration.rates(state.velocity) / robot.tree.rate_units))
    figure(f"{name}: inverse model against {oracle_type.__name__}, largest relative error", worst, TOLERANCE)
    counts = f"{draws.rejected_share:.1%}, {draws.unreachable}"
    figure(f"{name}: rejected near singularities (share), out of reach (draws)", counts)
    assert worst < TOLERANCE
    return fastest


@pytest.mark.few("3rrr", "5r")
@pytest.mark.parametrize("name", WITH_PINOCCHIO)
def test_efforts_equal_those_of_pinocchio(name, figure):
    assert compare(name, PinocchioTree, 1, figure) > 5  # the states are not all slow


@pytest.mark.few("four-bar", "5r")
@pytest.mark.parametrize("name", RIGID)
def test_efforts_equal_those_of_lagrange(name, figure):
    compare(name, EnergyModel, 2, figure)


@pytest.mark.few("four-bar", "rx90")
@pytest.mark.parametrize("name", RIGID)
def test_mass_matrix_equals_that_of_lagrange(name):
    path = CATALOGUE / f"{name}.toml"
    robot, oracle = parflex.load(path), EnergyModel(read_robot(path))
    for state in random_states(robot, 5, 3, Draws()):
        at, order = state.configuration, order_of(robot, oracle)
        whole, _ = oracle.mass_matrix_and_bias(positions(at), np.zeros(robot.nv))
        expected = at.J.T @ whole[np.ix_(order, order)] @ at.J
        M = parflex.mass_matrix(robot, at).matrix
        assert largest(M - expected) < 1e-12 * largest(M)  # sums of a few dozen products
