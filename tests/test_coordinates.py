"""Models in the coordinates that are asked for give the numbers of the float path and of engines that share no code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import CATALOGUE
from support.command_line import answered
from support.flexible_states import bent_state, bent_states
from support.fmu_signals import check_signals
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.traced import VERIFY, Sample, inputs, long, robot, samples
from support.traced import _input as sample_input

import parflex
from parflex import Configuration, Model, ParflexError, Robot, explain
from parflex.codegen.passes.optimise import make_program
from parflex.codegen.program_condition import model_condition
from parflex.codegen.traces.asked import COORDINATES
from parflex.codegen.traces.trace import trace
from parflex.codegen.traces.tracing import Options
from parflex.models.dynamics.forces import forces_along_rates
from parflex.models.forms.choice import choose
from parflex.models.forms.form import Question
from parflex.models.forms.in_coordinates.coordinates import Coordinates
from parflex.models.forms.in_coordinates.input_checks import condition_bound
from parflex.models.forms.platform_frame import given_frame, platform_frame
from parflex.models.terms import acting
from parflex.recursion import motion
from parflex.recursion.newton_euler import JOINT_TERMS

ROBOTS = Path(__file__).parent / "robots"
SMALL = ["3rrr", "5r"]
WIDE = ["gough-stewart", "delta", "3-prrr", "c5", "space", "rx90", "puma560", "four-bar"]
RIGID = [*SMALL, *(pytest.param(name, marks=long) for name in WIDE)]
QUICK = ["3rrr"]
ROUNDING = 1e-10  # systems of condition up to 1e3, twice in a row, in double precision


@cache
def asked(name: str, model: str, coordinates: str | None, checks: bool = False) -> Model:
    """A program in coordinates, made once, without what acts in joints; without passes where these take seconds."""
    if VERIFY or name not in QUICK:
        return parflex.model(robot(name), model, coordinates=coordinates, checks=checks, without=JOINT_TERMS)
    traced = trace(robot(name), model, Options(coordinates=coordinates, checks=checks, without=JOINT_TERMS))
    program = make_program(traced.graph, f"{name}_{model}", traced.outputs, quick=True)
    shapes = ({group: values.shape for group, values in side.items()} for side in (traced.inputs, traced.outputs))
    return Model(program.name, program, *shapes, labels=traced.labels, about={"independent": traced.independent})


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


@pytest.mark.parametrize("name", ["5r", *(pytest.param(name, marks=long) for name in ("3rrr", *WIDE))])
def test_accelerations_of_all_coordinates_come_back_from_their_efforts(name):
    states = samples(name, 12)
    model = asked(name, "direct", "all")
    found = model(**inputs(model, states))["qdd"]
    assert error(found, np.array([state.accelerations for state in states])) < ROUNDING


# -- over numbers, where nothing is traced: every model in every choice, of robots whose programs take long to make ----


def given_to(here: Coordinates, state: Sample) -> dict[str, np.ndarray]:
    """What a choice of coordinates takes at a state, the positions before a little off."""
    groups = here.place_groups | here.rate_groups | here.motion_groups
    rng = np.random.default_rng(0)
    stub = SimpleNamespace(labels=here.labels, name=here.form.robot.name)
    given = {group: sample_input(stub, group, state, rng) for group in groups if group != "last"}
    if here.word == "platform":
        platform = state.platform(given_frame(state.robot, "platform"))
        given |= {group: platform[group] for group in given if group in platform}
    step = 1e-4 * rng.uniform(-1, 1, state.robot.tree.n) * state.robot.tree.rate_units
    return given | {"last": state.robot.tree.moved(state.configuration.q, step)}


def file_of(name: str) -> Path:
    return next(path for path in (ROBOTS / f"{name}.toml", CATALOGUE / f"{name}.toml") if path.exists())


@cache
def energy_of(name: str) -> EnergyModel:
    return EnergyModel(read_robot(file_of(name)))


def lagrange(energy: EnergyModel, state: Sample) -> np.ndarray:
    """Efforts by Lagrange's equations, from the positions and the independent rates alone."""
    tree, independent = state.robot.tree, state.configuration.independent_names
    rates, accelerations = (
        {word: values[tree.rate_names.index(word)] for word in independent}
        for values in (state.rates, state.accelerations)
    )
    q = dict(zip(tree.position_names, state.configuration.q, strict=True))
    found = energy.inverse(q, rates, accelerations, state.robot.actuated_names, include=())
    return np.array([found[motor] for motor in state.robot.actuated_names])


def rates_of(here: Coordinates, names: list[str], state: Sample) -> np.ndarray:
    """The named rates, of which a mass matrix speaks."""
    tree = state.robot.tree
    if here.word != "platform":
        return state.rates[[tree.rate_names.index(name) for name in names]]
    frame = names[0].rpartition(".")[0]
    v, w, _, _ = motion(tree, state.configuration.at, state.rates, state.accelerations).of(tree.places[frame])
    R, _ = state.configuration.at.of(tree.places[frame])
    words = dict(zip(("vx", "vy", "vz", "wx", "wy", "wz"), (*(R @ v), *(R @ w)), strict=True))
    return np.array([words[name.rpartition(".")[2]] for name in names])


@pytest.mark.few
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(
    "name",
    [
        *("5r", "3rrr", "gough-stewart", "delta", "rx90", "tripod-wrist"),
        *(pytest.param(name, marks=long) for name in ("c5", "3-prrr", "four-bar", "hexaglide", "space", "puma560")),
    ],
)
def test_every_model_in_every_choice_gives_the_numbers_of_the_float_path(name, coordinates):
    of = acting(robot(name), JOINT_TERMS)
    energy = energy_of(name)
    for state in samples(name, 2):
        q = state.configuration.q
        theirs = lagrange(energy, state)
        assert error(state.efforts, theirs) < ROUNDING
        for model in ("inverse", "direct", "mass-matrix", "kinematics"):
            here = COORDINATES[coordinates](choose(of, Question(model, coordinates=coordinates)))
            given = given_to(here, state)
            moving = here.state(given)
            if model == "inverse":
                found = here.inverse(moving, given)
                assert error(found["effort"], theirs) < ROUNDING
            elif model == "direct":
                found = here.direct(moving, state.efforts)
                wanted = given_to(here, state)
                for group in here.motion_groups:
                    assert np.abs(found[group] - wanted[group]).max() < ROUNDING * np.abs(state.accelerations).max()
            elif model == "mass-matrix":
                found, (M, names) = here.found(moving), here.mass_matrix(moving)
                rates = rates_of(here, names, state)
                tree_mass, _ = energy.mass_matrix_and_bias(
                    dict(zip(of.tree.position_names, q, strict=True)), np.zeros(of.tree.n), ()
                )
                order = [energy.coordinates.index(word) for word in of.tree.rate_names]
                wanted = state.rates @ tree_mass[np.ix_(order, order)] @ state.rates  # twice the kinetic energy
                assert abs(rates @ M @ rates - wanted) < ROUNDING * wanted
                assert M.shape == (len(names), len(names))
            else:
                found = here.kinematics(moving)
                assert error(found["rates"], state.rates) < ROUNDING
                if "position" in found:
                    R, p = state.configuration.at.of(of.tree.places[of.tree.end_effector])
                    assert (
                        np.abs(found["position"] - p).max() < ROUNDING
                        and np.abs(found["rotation"] - R).max() < ROUNDING
                    )
                    twist = state.configuration.frame_rows(of.tree.end_effector) @ state.rates
                    ours = np.concatenate([found["velocity"], found["angular_velocity"]])
                    assert np.abs(ours - twist).max() < ROUNDING * np.abs(state.rates).max()
            if "q" in found:
                assert np.abs(found["q"] - q).max() < ROUNDING


COUNTS = {  # operators of `5r` at most: they may fall
    "platform": {"inverse": 540, "direct": 581, "mass-matrix": 472, "kinematics": 404},
    "motors": {"inverse": 259, "direct": 288, "mass-matrix": 186, "kinematics": 161},
    "independent": {"inverse": 142, "direct": 171, "mass-matrix": 69, "kinematics": 47},
    "all": {"inverse": 142, "direct": 197, "mass-matrix": 18, "kinematics": 47},
}
TRACED = ["5r", *(pytest.param(name, marks=long) for name in ("3rrr", "gough-stewart", "delta", "rx90"))]


@pytest.mark.few
@pytest.mark.parametrize("model", ["inverse", "direct", "mass-matrix", "kinematics"])
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("name", TRACED)
def test_programs_give_the_numbers_of_their_form(name, coordinates, model):
    """The form over numbers is proven above."""
    (state,), made = samples(name, 1), asked(name, model, coordinates)
    here = COORDINATES[coordinates](choose(acting(robot(name), JOINT_TERMS), Question(model, coordinates=coordinates)))
    given = given_to(here, state) | {"effort": state.efforts}
    moving = here.state(given)
    answer = {"inverse": here.inverse, "direct": here.direct, "kinematics": here.kinematics}
    if model == "mass-matrix":
        wanted = {"mass_matrix": here.mass_matrix(moving)[0]} | here.found(moving)
    else:
        arguments = {"inverse": (given,), "direct": (state.efforts,), "kinematics": ()}[model]
        wanted = answer[model](moving, *arguments)
    found = made(**{group: given[group] for group in made.inputs})
    if "status" in found:
        wanted |= {"residual": np.zeros(1), "status": np.zeros(1)}
    assert set(found) == set(wanted)
    for group, values in wanted.items():
        assert np.abs(found[group] - values).max() < ROUNDING * max(np.abs(values).max(), 1e-3), group
    check_signals(made.signals, f"{model} in {coordinates}")
    assert made.about["coordinates"] == coordinates and made.about["read"] == here.read
    assert len(here.read) == robot(name).mobility.freedoms(robot(name).tree.n)
    assert name != "5r" or made.counts["total"] <= COUNTS[coordinates][model]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("name", ["geared-five-bar", "differential"])
def test_joints_that_are_coupled_follow_from_motors_and_platforms_too(name, coordinates):
    told = bent_state(robot(name), np.random.default_rng(5))
    state = Sample(told["at"], told["rates"], told["accelerations"], told["effort"])
    for model in ("inverse", "direct"):
        form = choose(acting(robot(name), JOINT_TERMS), Question(model, coordinates=coordinates))
        here = COORDINATES[coordinates](form)
        given = given_to(here, state)
        moving = here.state(given)
        if model == "inverse":
            assert error(here.inverse(moving, given)["effort"], state.efforts) < ROUNDING
            continue
        found = here.direct(moving, state.efforts)
        for group in here.motion_groups:
            assert np.abs(found[group] - given[group]).max() < ROUNDING * np.abs(state.accelerations).max()


@pytest.mark.parametrize("coordinates", ["platform", "independent", "all"])
@pytest.mark.parametrize("name", ["5r", "3rrr"])
def test_spare_motors_share_the_efforts_with_least_norm(name, coordinates):
    joints = {"5r": {"actuation.spare": {"actuated": ["left.1", "right.1", "left.2"]}}}
    of = parflex.load("5r", settings=joints["5r"], actuation="spare") if name == "5r" else spare_3rrr()
    (one,) = samples(name, 1)
    free = acting(of, JOINT_TERMS)
    state = Sample(Configuration(free, one.configuration.q), one.rates, one.accelerations, one.efforts)
    forces = forces_along_rates(
        free.tree, state.configuration.at, state.configuration.q, one.rates, one.accelerations, {}, ()
    )
    J = state.configuration.J
    wanted = np.linalg.pinv(J[list(free.actuated)].T) @ (J.T @ forces)  # the shortest that does the same work
    here = COORDINATES[coordinates](choose(free, Question("inverse", coordinates=coordinates)))
    given = given_to(here, state)
    assert error(here.inverse(here.state(given), given)["effort"], wanted) < ROUNDING
    back = COORDINATES[coordinates](choose(free, Question("direct", coordinates=coordinates)))
    found = back.direct(back.state(given_to(back, state)), wanted)
    for group in back.motion_groups:
        assert np.abs(found[group] - given[group]).max() < ROUNDING * np.abs(one.accelerations).max()


def spare_3rrr() -> Robot:
    return parflex.load("3rrr", settings={"legs.frame.2.actuated": True})


@pytest.mark.parametrize("coordinates", ["all", "independent"])
@pytest.mark.parametrize("name", ["dualemps", "gough-stewart-flexible", "held-from-behind"])
def test_flexible_robots_answer_in_coordinates_as_the_general_reduction_does(name, coordinates):
    of, rng = robot(name), np.random.default_rng(5)
    state = bent_state(of, rng)
    for model in ("inverse", "direct"):
        form = choose(acting(of, JOINT_TERMS), Question(model, coordinates=coordinates))
        here = COORDINATES[coordinates](form)
        own = {group: here.labels[group] for group in ("qd", "qdd")}
        chosen = {group: [of.tree.rate_names.index(name) for name in names] for group, names in own.items()}
        given = {"q": state["q"], "qd": state["rates"][chosen["qd"]], "qdd": state["accelerations"][chosen["qdd"]]}
        moving = here.state(given)
        if model == "direct":
            assert error(here.direct(moving, state["effort"])["qdd"], given["qdd"]) < ROUNDING
            continue
        found = here.inverse(moving, given)
        assert np.abs(found["effort"] - state["effort"]).max() < ROUNDING * state["sizes"]["effort"]
        for group in {"free_acceleration", "elastic_acceleration"} & set(found):
            rest = [of.tree.rate_names.index(name) for name in here.labels[group]]
            assert error(found[group], state["accelerations"][rest]) < ROUNDING


@pytest.mark.verify
def test_arrays_and_programs_mean_the_same_independent_rates():
    for name in [*parflex.catalogue_names(), "sprung-beams"]:
        machine = robot(name)
        assert acting(machine, ["springs"]).independent == machine.independent, name
        for model in ("inverse", "direct", "mass-matrix"):
            try:
                form = choose(machine, Question(model, coordinates="independent"))
            except ParflexError:  # no such model of this robot
                continue
            assert form.independent_names == machine.independent, (name, model)


def test_a_flexible_platform_is_given_by_its_pose_and_its_modes():
    of, default = (
        choose(robot("gough-stewart-flexible"), Question("inverse", coordinates=c)) for c in ("platform", None)
    )
    here = COORDINATES["platform"](of)
    assert here.place_groups | here.rate_groups == default.state_groups and here.motion_groups == default.motion_groups
    assert list(here.place_groups | here.rate_groups) == list(default.state_groups)  # the same program


# -- programs ------------------------------------------------------------------------------------------------------


@long[0]
@long[1]
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
    if name == "5r":  # the leg form does not say its rates by default
        default = parflex.model(of, "inverse", without=JOINT_TERMS)
        assert model_condition(of, model, given["q"]) == model_condition(of, default, given["q"]) > 1
    at_rest = model(q=given["q"], qd=0 * given["qd"], qdd=0 * given["qdd"])
    assert at_rest["closure_rate"][0] == at_rest["closure_acceleration"][0] == 0
    exact = state.configuration.condition
    assert fine["condition"][0] < 1e2 * max(exact.platform, exact.closures, *exact.legs.values())


@pytest.mark.parametrize("rows", [4, 6])
def test_condition_numbers_are_bounded_closely(rows):
    rng = np.random.default_rng(rows)
    for size in (1.0, 1e-3, 1e-6):
        A = rng.standard_normal((rows, 4)) @ np.diag([1, 1, 1, size])
        exact = np.linalg.cond(A)
        assert exact * (1 - 1e-3) < condition_bound(A) < 4.01 * exact  # squares of a tall one lose 1e-16 * 1e12


def test_the_condition_is_asked_of_a_program_not_of_a_word():
    with pytest.raises(ParflexError, match="the condition is that of a program"):
        model_condition(robot("3rrr"), "direct", robot("3rrr").home)


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


# -- what is asked, and what does not exist ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model", "coordinates", "text"),
    [
        ("5r", "inverse", "motor", "there are no coordinates 'motor'.*did you mean 'motors'"),
        ("5r", "step", "all", "inputs of 'step' do not depend on coordinates.*inverse, direct, mass-matrix"),
        ("5r", "redundant", "independent", "do not depend on coordinates"),
        ("dualemps", "inverse", "motors", 'motion of the motors does not determine the deformation.*\'?"all"'),
        ("dualemps", "kinematics", "platform", "motion of the platform does not determine the deformation"),
        ("serial-arm", "inverse", "platform", "'hand' moves in 6 of the 7 freedoms of the robot"),
        ("cart-pendulum", "direct", "motors", "1 motor for 2 freedoms"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_sentence(name, model, coordinates, text):
    with pytest.raises(ParflexError, match=text) as told:
        parflex.model(robot(name), model, coordinates=coordinates)
    assert "\n" not in str(told.value)


def test_checks_are_those_of_all_coordinates():
    with pytest.raises(ParflexError, match=r"checks compare given .* all coordinates"):
        parflex.model(robot("5r"), "inverse", coordinates="motors", checks=True)


def test_a_wrist_behind_a_platform_is_given_by_the_end_effector():
    of = robot("tripod-wrist")
    assert platform_frame(of).name == of.tree.end_effector and len(platform_frame(of).read) == 5


def test_names_of_inputs_and_outputs_are_those_of_joints():
    model = asked("5r", "inverse", "motors")
    motors, tree = robot("5r").actuated_names, robot("5r").tree
    assert model.input_names[:2] == [f"motor_position {motor}" for motor in motors]
    newton = ["residual residual", "status status"]
    positions = [f"q {name}" for name in tree.position_names]
    assert model.output_names == [*(f"effort {m}" for m in motors), *positions, *newton]


def test_the_choice_is_part_of_what_a_file_and_the_command_line_say(capsys, tmp_path):
    words = ["codegen", "5r", "kinematics", "--coordinates", "all", "--target", "numpy", "-o", str(tmp_path)]
    answer = answered(capsys, *words)
    assert answer["coordinates"] == answer["about"]["coordinates"] == "all"
    (file,) = tmp_path.glob("*.py")
    assert file.name == "m_5r_kinematics_all_numpy.py"  # beside those of other coordinates
    assert "coordinates all (read are " in file.read_text(encoding="utf-8")
    assert sum(signal["direction"] == "input" for signal in answer["signals"]) == 2 * robot("5r").tree.n
    every, own = (answered(capsys, "count", "5r", "mass-matrix", *words) for words in (["--coordinates", "all"], []))
    assert every["coordinates"] == "all" and own["coordinates"] is None and every["total"] < own["total"]


def test_programs_of_hexapods_on_slides_take_legs_where_all_positions_are_given():
    assert choose(robot("hexaglide"), Question("direct")).name == "general form"
    told = explain(robot("hexaglide"), "all")
    assert told.form == "leg form" and any(
        "Joint values are given." in line for part in told.sections for line in part.text
    )


def test_derivatives_of_efforts_are_taken_in_the_coordinates():
    (state,), made = samples("5r", 1), asked("5r", "jacobian-of-inverse", "all")
    given = {group: value[0] for group, value in inputs(made, [state]).items()}
    found, step = made(**given), 1e-6
    for k in range(robot("5r").tree.n):
        sides = [made(**given | {"qdd": given["qdd"] + sign * step * np.eye(4)[k]})["effort"] for sign in (1, -1)]
        slope = (sides[0] - sides[1]) / (2 * step)  # linear in accelerations: rounding alone, 1e-16 / 1e-6
        assert np.abs(found["by_qdd"][:, k] - slope).max() < 1e-8 * np.abs(found["effort"]).max()
