"""Robots that nobody wrote the code for: the catalogue changed in three ways, and mechanisms made up here."""

from __future__ import annotations

import numpy as np
import pytest
from support.catalogue import CATALOGUE, RIGID
from support.comparison import error_against, nearby_states, written
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.robots import INVENTED, robot_file
from support.states import Draws, random_states
from support.variants import base_moved, changed, read_table, renamed, toml_text

import parflex
from parflex.robot.frames import counts

# both sides solve systems of condition up to 1e4 in double precision: rounding may leave 1e-12
TOLERANCE = 1e-10
STATES = 10
ORACLES = (EnergyModel, PinocchioTree)
COUNTED = (
    "bodies",
    "joints",
    "active",
    "total_coordinates",
    "closure_rows",
    "redundant_closures",
    "degrees_of_freedom",
)


def moved(table):
    if table.get("motion") == "planar":
        return base_moved(table, (0, 0, 2.1), (0.3, -0.7, 0))
    return base_moved(table, (1.1, -0.6, 0.8), (0.3, -0.7, 0.5))


CHANGES = {
    "moved": moved,
    "renamed": renamed,
    "changed": lambda table: changed(table, 3, 1),
    "all at once": lambda table: moved(renamed(changed(table, 3, 1))),
}
# what fails in one of them fails in all at once; which one it was, verify says
EACH = [pytest.param(name, marks=[] if name == "all at once" else pytest.mark.verify) for name in CHANGES]


def worst_error(path, states, planar):
    oracles = [oracle(read_robot(path)) for oracle in ORACLES]
    rng, worst = np.random.default_rng(9), 0.0
    for state in states:
        wrench = rng.uniform(-50, 50, 6) * ([1, 1, 0, 0, 0, 1] if planar else [1] * 6)
        load = {state.configuration.robot.tree.end_effector: wrench}
        worst = max(worst, *(error_against(oracle, state, load) for oracle in oracles))
    return worst


@pytest.mark.few
@pytest.mark.parametrize("change", EACH)
@pytest.mark.parametrize("name", RIGID)
def test_a_changed_robot_of_the_catalogue_agrees_with_both_oracles(name, change, figure, tmp_path):
    original = parflex.load(name)
    path = written(toml_text(CHANGES[change](read_table(CATALOGUE / f"{name}.toml"))), tmp_path)
    robot = parflex.load(path)
    assert {key: counts(robot)[key] for key in COUNTED} == {key: counts(original)[key] for key in COUNTED}
    states = random_states(robot, STATES, 21, Draws(), spread=0.12 * robot.tree.length)
    worst = worst_error(path, states, robot.tree.planar)
    figure(f"{name}, {change}: inverse model against Lagrange and Pinocchio, largest relative error", worst, TOLERANCE)
    assert worst < TOLERANCE


@pytest.mark.few
@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_robot_agrees_with_both_oracles(name, figure):
    robot = parflex.load(robot_file(name))
    assert counts(robot)["degrees_of_freedom"] == INVENTED[name] == len(robot.actuated)
    assert counts(robot)["redundant_closures"] == 0
    worst = worst_error(robot_file(name), nearby_states(robot, STATES, 4), robot.tree.planar)
    figure(f"{name}: inverse model against Lagrange and Pinocchio, largest relative error", worst, TOLERANCE)
    assert worst < TOLERANCE
