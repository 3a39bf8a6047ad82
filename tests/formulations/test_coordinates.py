"""Models in the coordinates that are asked for give the numbers of the float path and of engines that share no code."""

from functools import cache

import numpy as np
import pytest
from support.catalogue import CATALOGUE
from support.command_line import answered
from support.flexible_states import bent_state
from support.fmu_signals import check_signals
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.robots import robot_file
from support.traced import Sample, difference, inputs, robot, samples

import parflex
from parflex.codegen.input_checks import condition_bound, model_condition

CHOICES = ("platform", "motors", "independent", "all")
MODELS = ("inverse", "direct", "mass-matrix", "kinematics")
ROUNDING = 1e-10  # systems of condition up to 1e3, twice in a row, in double precision
NO_TERMS = ("friction", "springs", "motor-inertia")
COUNTS = {  # operators of `5r` at most: they may fall
    "platform": {"inverse": 540, "direct": 581, "mass-matrix": 472, "kinematics": 404},
    "motors": {"inverse": 259, "direct": 288, "mass-matrix": 186, "kinematics": 161},
    "independent": {"inverse": 142, "direct": 171, "mass-matrix": 69, "kinematics": 47},
    "all": {"inverse": 142, "direct": 197, "mass-matrix": 18, "kinematics": 47},
}


@cache
def asked(of: str | parflex.Robot, model: str, coordinates: str, checks: bool = False) -> parflex.Model:
    """A program in coordinates, made once, without what acts in joints."""
    of = robot(of) if isinstance(of, str) else of
    return parflex.model(of, model, coordinates=coordinates, checks=checks, without=NO_TERMS)


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def platform(model: parflex.Model, state: Sample) -> dict[str, np.ndarray]:
    """Pose and motion of the frame that a model reads, in world axes."""
    if model.about["coordinates"] != "platform":
        return {}
    return state.platform(model.about["read"][0].rpartition(".")[0])


def stated(model: parflex.Model, state: Sample) -> dict[str, np.ndarray]:
    """Inputs of a model at a state, the positions before a little off."""
    tree, rng = state.robot.tree, np.random.default_rng(0)
    here = platform(model, state)
    given = {group: value[0] for group, value in inputs(model, [state]).items() if group != "last"}
    last = tree.moved(state.configuration.q, 1e-4 * rng.uniform(-1, 1, tree.n) * tree.rate_units)
    given |= {group: here[group] for group in given if group in here} | {"last": last}
    return {group: given[group] for group in model.inputs}


def motion_out(model: parflex.Model, state: Sample) -> dict[str, np.ndarray]:
    """Accelerations that the direct model gives."""
    chosen = [state.robot.rates.index(name) for name in model.labels.get("qdd", [])]
    known = platform(model, state) | {"motor_acceleration": state.accelerations[list(state.robot.actuated)]}
    known["qdd"] = state.accelerations[chosen]
    return {group: known[group] for group in model.outputs if "acceleration" in group or group == "qdd"}


def rates_of(model: parflex.Model, state: Sample) -> np.ndarray:
    """The named rates, of which a mass matrix speaks."""
    here, names = platform(model, state), model.labels["mass_matrix"]
    if not here:
        return state.rates[[state.robot.rates.index(name) for name in names]]
    planar = state.robot.tree.planar
    words = ("vx", "vy", "wz") if planar else ("vx", "vy", "vz", "wx", "wy", "wz")
    twist = dict(zip(words, [*here["velocity"], *here["angular_velocity"]], strict=True))
    return np.array([twist[name.rpartition(".")[2]] for name in names])


@cache
def energy_of(name: str) -> EnergyModel:
    catalogue = CATALOGUE / f"{name}.toml"
    return EnergyModel(read_robot(catalogue if catalogue.exists() else robot_file(name)))


def by_name(state: Sample) -> tuple[dict[str, float], ...]:
    """Positions, independent rates and accelerations, as oracles take them."""
    names = state.configuration.independent_names
    chosen = [state.robot.rates.index(name) for name in names]
    q = dict(zip(state.robot.coordinates, state.configuration.q, strict=True))
    return q, *(dict(zip(names, values[chosen], strict=True)) for values in (state.rates, state.accelerations))


def efforts_by(oracle, state: Sample) -> np.ndarray:
    found = oracle.inverse(*by_name(state), state.robot.motors, include=())
    return np.array([found[motor] for motor in state.robot.motors])


ROBOTS = [
    "5r",
    "3rrr",
    "gough-stewart",
    "delta",
    "rx90",
    "tripod-wrist",
    "c5",
    "3-prrr",
    "four-bar",
    "space",
    "puma560",
]


@pytest.mark.few("5r", "rx90-motors", "3rrr-platform-inverse", "3rrr-all-direct")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("coordinates", CHOICES)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_model_in_every_choice_gives_the_numbers_of_lagrange_and_of_the_float_path(name, coordinates, model):
    made, energy = asked(name, model, coordinates), energy_of(name)
    for state in samples(name, 2):
        found = made.evaluate("numpy", **stated(made, state))
        if model == "inverse":
            assert error(found["effort"], efforts_by(energy, state)) < ROUNDING
        elif model == "direct":
            for group, wanted in motion_out(made, state).items():
                assert np.abs(found[group] - wanted).max() < ROUNDING * np.abs(state.accelerations).max()
        elif model == "mass-matrix":
            rates, whole = rates_of(made, state), by_name(state)[0]
            order = [energy.coordinates.index(word) for word in state.robot.rates]
            M = energy.mass_matrix_and_bias(whole, np.zeros(state.robot.nv), ())[0][np.ix_(order, order)]
            twice = state.rates @ M @ state.rates  # the kinetic energy
            assert abs(rates @ found["mass_matrix"] @ rates - twice) < ROUNDING * twice
        else:
            assert error(found["rates"], state.rates) < ROUNDING
            if "position" in found:
                end = parflex.frames(state.robot, state.configuration)[state.robot.tree.end_effector]
                assert np.abs(found["position"] - end.position).max() < ROUNDING
                assert np.abs(found["rotation"] - end.rotation).max() < ROUNDING
                twist = state.configuration.frame_rows(state.robot.tree.end_effector) @ state.rates
                ours = np.concatenate([found["velocity"], found["angular_velocity"]])
                assert np.abs(ours - twist).max() < ROUNDING * np.abs(state.rates).max()
        if "q" in found:
            assert np.abs(found["q"] - state.configuration.q).max() < ROUNDING
        if "status" in found:
            assert found["status"][0] == 0 and found["residual"][0] < 1e-9
    check_signals(made.signals, f"{model} in {coordinates}")
    assert made.about["coordinates"] == coordinates
    assert len(made.about["read"]) == robot(name).mobility.freedoms(robot(name).nv)
    assert name != "5r" or made.counts["total"] <= COUNTS[coordinates][model]


@pytest.mark.few
@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "tripod-wrist"])
def test_compiled_efforts_of_all_coordinates_are_those_of_pinocchio_and_checks_are_small(name):
    states, model = samples(name, 12), asked(name, "inverse", "all", checks=True)
    n = robot(name).nv
    assert model.inputs == {"q": (robot(name).nq,), "qd": (n,), "qdd": (n,)}
    found = model(**inputs(model, states))
    assert difference(found, {"effort": np.array([state.efforts for state in states])}) < ROUNDING
    oracle = PinocchioTree(read_robot(CATALOGUE / f"{name}.toml"))
    for state, ours in zip(states[:3], found["effort"], strict=False):
        assert error(ours, efforts_by(oracle, state)) < ROUNDING
    for check in ("closure", "closure_rate", "closure_acceleration"):
        assert np.abs(found[check]).max() < 1e-9  # states are closed to 1e-12 and their rates solved at condition 1e3


@pytest.mark.few
@pytest.mark.parametrize("coordinates", CHOICES)
@pytest.mark.parametrize("name", ["geared-five-bar", "differential"])
def test_joints_that_are_coupled_follow_from_motors_and_platforms_too(name, coordinates):
    told = bent_state(robot(name), np.random.default_rng(5))
    state = Sample(told["at"], told["rates"], told["accelerations"], told["effort"])
    inverse, direct = (asked(name, model, coordinates) for model in ("inverse", "direct"))
    assert error(inverse.evaluate("numpy", **stated(inverse, state))["effort"], state.efforts) < ROUNDING
    found = direct.evaluate("numpy", **stated(direct, state))
    for group, wanted in motion_out(direct, state).items():
        assert np.abs(found[group] - wanted).max() < ROUNDING * np.abs(state.accelerations).max()


@pytest.mark.few("5r")
@pytest.mark.parametrize("coordinates", ["platform", "independent", "all"])
@pytest.mark.parametrize("name", ["5r", "3rrr"])
def test_spare_motors_share_the_efforts_with_least_norm(name, coordinates):
    motors = {"actuation.spare": {"actuated": ["left.1", "right.1", "left.2"]}}
    of = parflex.load("5r", settings=motors, actuation="spare")
    of = of if name == "5r" else parflex.load("3rrr", settings={"legs.frame.2.actuated": True})
    (one,) = samples(name, 1)
    at = parflex.Configuration(of, one.configuration.q)
    work = at.J[list(robot(name).actuated)].T @ one.efforts
    wanted = np.linalg.pinv(at.J_a.T) @ work  # the shortest that does the same work
    state = Sample(at, one.rates, one.accelerations, wanted)
    inverse, direct = (asked(of, model, coordinates) for model in ("inverse", "direct"))
    assert error(inverse.evaluate("numpy", **stated(inverse, state))["effort"], wanted) < ROUNDING
    found = direct.evaluate("numpy", **stated(direct, state))
    for group, values in motion_out(direct, state).items():
        assert np.abs(found[group] - values).max() < ROUNDING * np.abs(one.accelerations).max()


@pytest.mark.few("dualemps-all", "held-from-behind-independent")
@pytest.mark.parametrize("coordinates", ["all", "independent"])
@pytest.mark.parametrize("name", ["dualemps", "gough-stewart-flexible", "held-from-behind"])
def test_flexible_robots_answer_in_coordinates_as_the_general_reduction_does(name, coordinates):
    """Of the accelerations those of motors are read, and the others come out."""
    of = robot(name)
    state = bent_state(of, np.random.default_rng(5))
    known = {
        "q": state["q"],
        "effort": state["effort"],
        "motor_acceleration": state["accelerations"][list(of.actuated)],
    }
    for word in ("inverse", "direct"):
        model = asked(name, word, coordinates)
        chosen = {group: [of.rates.index(label) for label in model.labels[group]] for group in ("qd", "qdd")}
        given = known | {"qd": state["rates"][chosen["qd"]], "qdd": state["accelerations"][chosen["qdd"]]}
        found = model.evaluate("numpy", **{group: given[group] for group in model.inputs})
        if word == "direct":
            assert error(found["qdd"], given["qdd"]) < ROUNDING
            continue
        assert np.abs(found["effort"] - state["effort"]).max() < ROUNDING * state["sizes"]["effort"]
        for group in {"free_acceleration", "elastic_acceleration"} & set(found):
            rest = [of.rates.index(label) for label in model.labels[group]]
            assert error(found[group], state["accelerations"][rest]) < ROUNDING


@pytest.mark.verify
def test_arrays_and_programs_mean_the_same_independent_rates():
    for name in [*parflex.catalogue_names(), "sprung-beams"]:
        for model in ("inverse", "direct", "mass-matrix"):
            try:
                made = asked(name, model, "independent")
            except parflex.ParflexError:  # no such model of this robot
                continue
            assert made.about["independent"] == robot(name).independent, (name, model)


@pytest.mark.parametrize("name", ["3rrr", "5r"])
def test_checks_tell_inputs_that_do_not_fit_the_loops_and_states_near_a_singularity(name):
    (state,) = samples(name, 1)
    model, of = asked(name, "inverse", "all", checks=True), robot(name)
    given = {group: value[0] for group, value in inputs(model, [state]).items()}
    fine = model(**given)
    off = {"q": "closure", "qd": "closure_rate", "qdd": "closure_acceleration"}
    for group, check in off.items():
        wrong = given | {group: given[group] + 1e-3 * np.arange(len(given[group]))}
        assert model(**wrong)[check][0] > 1e-6 > 1e3 * fine[check][0]
    dependent = [k for k in range(of.nv) if of.rates[k] not in model.about["independent"]]
    unread = given | {group: given[group].copy() for group in ("qd", "qdd")}
    for group in ("qd", "qdd"):
        unread[group][dependent] = 7.0
    assert np.array_equal(model(**unread)["effort"], fine["effort"])  # what depends on others is not read
    if name == "5r":  # the leg form does not say its rates by default
        default = parflex.model(of, "inverse", without=NO_TERMS)
        assert model_condition(of, model, given["q"]) == model_condition(of, default, given["q"]) > 1
        with pytest.raises(parflex.ParflexError, match="the condition is that of a program"):
            model_condition(of, "direct", of.home)
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


def test_the_condition_of_a_program_grows_without_bound_towards_a_stretched_leg():
    of, model = robot("3rrr"), asked("3rrr", "inverse", "all", checks=True)
    still, bent = np.zeros(of.nv), of.coordinates.index("leg1.2")

    def condition(bend: float) -> float:
        q = of.home.copy()
        q[bent] = bend
        return float(model(q=q, qd=still, qdd=still)["condition"][0])

    assert condition(1e-8) > 1e7 > 1e4 > condition(0.5)
    assert not condition(0.0) < 1e12  # infinite, or no number


@pytest.mark.parametrize(
    ("name", "model", "coordinates", "text"),
    [
        ("5r", "inverse", "motor", "there are no coordinates 'motor'.*did you mean 'motors'"),
        ("5r", "step", "all", "inputs of 'step' do not depend on coordinates.*inverse, direct, mass-matrix"),
        ("5r", "redundant", "independent", "do not depend on coordinates"),
        ("dualemps", "inverse", "motors", "motion of the motors does not determine the deformation.*all"),
        ("dualemps", "kinematics", "platform", "motion of the platform does not determine the deformation"),
        ("serial-arm", "inverse", "platform", "'hand' moves in 6 of the 7 degrees of freedom"),
        ("cart-pendulum", "direct", "motors", "1 motor for 2 degrees of freedom"),
        ("5r", "checks", "motors", "checks compare given .* all coordinates"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_sentence(name, model, coordinates, text):
    checks, model = model == "checks", "inverse" if model == "checks" else model
    with pytest.raises(parflex.ParflexError, match=text) as told:
        parflex.model(robot(name), model, coordinates=coordinates, checks=checks)
    assert "\n" not in str(told.value)


def test_names_of_inputs_and_outputs_are_those_of_joints():
    model, of = asked("5r", "inverse", "motors"), robot("5r")
    assert model.input_names[:2] == [f"motor_position {motor}" for motor in of.motors]
    positions, newton = [f"q {name}" for name in of.coordinates], ["residual residual", "status status"]
    assert model.output_names == [*(f"effort {motor}" for motor in of.motors), *positions, *newton]
    wrist = asked("tripod-wrist", "inverse", "platform").about["read"]  # behind the platform: by the end effector
    assert {name.rpartition(".")[0] for name in wrist} == {robot("tripod-wrist").tree.end_effector} and len(wrist) == 5


def test_the_choice_is_part_of_what_a_file_and_the_command_line_say(capsys, tmp_path):
    words = ["codegen", "5r", "kinematics", "--coordinates", "all", "--target", "numpy", "-o", str(tmp_path)]
    answer = answered(capsys, *words)
    assert answer["coordinates"] == answer["about"]["coordinates"] == "all"
    (file,) = tmp_path.glob("*.py")
    assert file.name == "m_5r_kinematics_all_numpy.py"  # beside those of other coordinates
    assert "coordinates all (read are " in file.read_text(encoding="utf-8")
    assert sum(signal["direction"] == "input" for signal in answer["signals"]) == 2 * robot("5r").nv
    every, own = (answered(capsys, "count", "5r", "mass-matrix", *words) for words in (["--coordinates", "all"], []))
    assert every["coordinates"] == "all" and own["coordinates"] is None and every["total"] < own["total"]


def test_programs_of_hexapods_on_slides_take_legs_where_all_positions_are_given():
    assert parflex.explain(robot("hexaglide")).forms["direct"] == "general form"
    told = parflex.explain(robot("hexaglide"), "all")
    lines = [line for part in told.sections for line in part.text]
    assert told.form == "leg form" and any("Joint values are given." in line for line in lines)


def test_derivatives_of_efforts_are_taken_in_the_coordinates():
    (state,), made = samples("5r", 1), asked("5r", "jacobian-of-inverse", "all")
    given = {group: value[0] for group, value in inputs(made, [state]).items()}
    found, step = made(**given), 1e-6
    for k in range(robot("5r").nv):
        sides = [made(**given | {"qdd": given["qdd"] + sign * step * np.eye(4)[k]})["effort"] for sign in (1, -1)]
        slope = (sides[0] - sides[1]) / (2 * step)  # linear in accelerations: rounding alone, 1e-16 / 1e-6
        assert np.abs(found["by_qdd"][:, k] - slope).max() < 1e-8 * np.abs(found["effort"]).max()
