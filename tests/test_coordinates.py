"""Models in the coordinates that are asked for give the numbers of the float path and of engines that share no code."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from conftest import CATALOGUE
from oracles.pinocchio_tree import PinocchioTree
from oracles.reader import read_robot
from test_flexible_programs import bent_state, bent_states
from traced import Sample, inputs, long, robot, samples

import parflex
from parflex.codegen.model import Model
from parflex.models.forms import Question, choose
from parflex.models.forms.in_coordinates.joint_coordinates import AllCoordinates
from parflex.models.terms import acting
from parflex.recursion.newton_euler import JOINT_TERMS

SMALL = ["3rrr", "5r"]
WIDE = ["gough-stewart", "delta", "3-prrr", "c5", "space", "rx90", "puma560", "four-bar"]
RIGID = [*SMALL, *(pytest.param(name, marks=long) for name in WIDE)]
ROUNDING = 1e-10  # systems of condition up to 1e3, twice in a row, in double precision


@cache
def asked(name: str, model: str, coordinates: str | None, checks: bool = False) -> Model:
    """A program in coordinates, made once, without what acts in joints."""
    return parflex.model(robot(name), model, coordinates=coordinates, checks=checks, without=JOINT_TERMS)


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def efforts(states: list[Sample]) -> np.ndarray:
    return np.array([state.efforts for state in states])


@pytest.mark.parametrize("name", RIGID)
def test_efforts_of_all_coordinates_are_those_of_the_float_path_and_of_pinocchio(name):
    states = samples(name, 12)
    model = asked(name, "inverse", "all", checks=True)
    tree = robot(name).tree
    assert model.inputs == {"q": (tree.nq,), "qd": (tree.n,), "qdd": (tree.n,)}
    found = model(**inputs(model, states))
    assert error(found["effort"], efforts(states)) < ROUNDING
    oracle = PinocchioTree(read_robot(CATALOGUE / f"{name}.toml"))
    for state, ours in list(zip(states, found["effort"], strict=True))[:3]:
        q = dict(zip(tree.position_names, state.configuration.q, strict=True))
        independent = state.configuration.independent_names
        rates, accelerations = (
            {word: values[tree.rate_names.index(word)] for word in independent}
            for values in (state.rates, state.accelerations)
        )
        motors = state.robot.actuated_names
        theirs = oracle.inverse(q, rates, accelerations, motors, include=())
        assert error(ours, np.array([theirs[motor] for motor in motors])) < ROUNDING
    for check in ("closure", "closure_rate", "closure_acceleration"):
        assert np.abs(found[check]).max() < 1e-9  # states are closed to 1e-12 and their rates solved at condition 1e3


@pytest.mark.parametrize("name", RIGID)
def test_accelerations_of_all_coordinates_come_back_from_their_efforts(name):
    states = samples(name, 12)
    model = asked(name, "direct", "all")
    found = model(**inputs(model, states))["qdd"]
    assert error(found, np.array([state.accelerations for state in states])) < ROUNDING


@pytest.mark.parametrize("name", ["dualemps", "gough-stewart-flexible", "gough-stewart", "delta", "hexaglide"])
def test_forms_answer_in_coordinates_as_the_float_path_does(name):
    """Over numbers, where nothing is traced: robots whose programs take long to make."""
    of, rng = robot(name), np.random.default_rng(5)
    state = bent_state(of, rng)
    for model in ("inverse", "direct"):
        form = choose(acting(of, JOINT_TERMS), Question(model, coordinates="all"))
        given = {"q": state["q"], "qd": state["rates"], "qdd": state["accelerations"]}
        here = AllCoordinates(form)
        moving = here.state(given)
        if model == "direct":
            qdd = here.direct(moving, state["effort"])["qdd"]
            assert error(qdd, state["accelerations"]) < ROUNDING
            continue
        effort = here.inverse(moving, given)["effort"]
        assert np.abs(effort - state["effort"]).max() < ROUNDING * state["sizes"]["effort"]


def test_of_a_flexible_robot_the_motors_accelerations_are_read_and_the_others_come_out():
    (state,), of = bent_states("dualemps", 1), robot("dualemps")
    model = asked("dualemps", "inverse", "all")
    found = model(q=state["q"], qd=state["rates"], qdd=state["accelerations"])
    assert np.abs(found["effort"] - state["effort"]).max() < ROUNDING * state["sizes"]["effort"]
    free = [of.tree.rate_names.index(name) for name in model.labels["free_acceleration"]]
    assert len(free) + len(of.actuated) == len(model.about["independent"])
    assert error(found["free_acceleration"], state["accelerations"][free]) < ROUNDING
    back = asked("dualemps", "direct", "all")(q=state["q"], qd=state["rates"], effort=state["effort"])
    assert error(back["qdd"], state["accelerations"]) < ROUNDING


@pytest.mark.parametrize("name", SMALL)
def test_checks_tell_inputs_that_do_not_fit_the_loops_and_states_near_a_singularity(name):
    (state,) = samples(name, 1)
    model, of = asked(name, "inverse", "all", checks=True), robot(name)
    given = {group: value[0] for group, value in inputs(model, [state]).items()}
    fine = model(**given)
    off = {"q": "closure", "qd": "closure_rate", "qdd": "closure_acceleration"}
    for group, check in off.items():
        wrong = given | {group: given[group] + 1e-3 * np.arange(len(given[group]))}
        assert model(**wrong)[check][0] > 1e-6 > 1e3 * fine[check][0]
    dependent = [k for k in range(of.tree.n) if of.tree.rate_names[k] not in model.about["independent"]]
    unread = dict(given)
    for group in ("qd", "qdd"):
        unread[group] = given[group].copy()
        unread[group][dependent] = 7.0
    assert np.array_equal(model(**unread)["effort"], fine["effort"])  # what depends on others is not read
    at_rest = model(q=given["q"], qd=0 * given["qd"], qdd=0 * given["qdd"])
    assert at_rest["closure_rate"][0] == at_rest["closure_acceleration"][0] == 0
    exact = state.configuration.condition
    assert fine["condition"][0] < 1e2 * max(exact.platform, exact.closures, *exact.legs.values())


def test_the_condition_of_a_program_grows_without_bound_towards_a_stretched_leg():
    of, model = robot("3rrr"), asked("3rrr", "inverse", "all", checks=True)
    leg = [of.tree.position_names.index(name) for name in ("leg1.1", "leg1.2")]
    still = np.zeros(of.tree.n)

    def condition(bend: float) -> float:
        q = of.home.copy()
        q[leg[1]] = bend
        return float(model(q=q, qd=still, qdd=still)["condition"][0])

    assert condition(1e-8) > 1e7 > 1e4 > condition(0.5)
    assert not condition(0.0) < 1e12  # infinite, or no number
