"""Programs of flexible robots: every emitter gives the numbers of the general reduction, another way to write them."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import CATALOGUE, EVERYTHING
from support.command_line import answered
from support.emitted import EMITTERS, SHORT, c_library
from support.flexible_states import batch, bent_state, bent_states, error_of, robot
from support.traced import long, made

import parflex
from parflex import Configuration, InputError, SingularError
from parflex.codegen.compile import Kernel
from parflex.codegen.passes.optimise import make_program
from parflex.graph import Graph
from parflex.models.dynamics.reduced import reduced_equations
from parflex.models.forms.form import Question
from parflex.models.forms.general_form import general_form
from parflex.models.forms.in_pieces.node_equations import accelerations_under, node_state
from parflex.models.forms.in_pieces.pieces import PREFERENCES, pieces
from parflex.models.terms import acting
from parflex.recursion.newton_euler import JOINT_TERMS
from parflex.spatial.elimination import solve_symmetric

FLEXIBLE = sorted(path.stem for path in CATALOGUE.glob("*.toml") if "beam = " in path.read_text(encoding="utf-8"))
FLEXIBLE += ["gough-stewart-elastic"]  # beams of the robot that it extends, and a platform given by modes
LARGE = [
    "3rrr-flexible",
    "gough-stewart-beams",
    "gough-stewart-elastic",
    "navaro",
    "navaro-refined",
    "three-beam-legs",
]  # up to 57 000 operators, or much like another one
CASES = [pytest.param(name, marks=long if name in LARGE else []) for name in FLEXIBLE]
# of the largest acceleration, and of the largest force that an effort is the sum of: beams and slides push against
# each other with much more than what remains for a motor
TOLERANCE = 1e-11


@pytest.mark.verify
@pytest.mark.parametrize("model", ["inverse", "direct"])
@pytest.mark.parametrize("name", CASES)
def test_every_emitter_gives_the_numbers_of_the_general_reduction(name, model, tmp_path, figure):
    program = made(name, model)
    size = len(program.program.instructions)
    states = bent_states(name, (200 if EVERYTHING else 40) if size <= SHORT else 20)
    given, wanted = batch(states, program, robot(name))
    for key, (emitter, count) in EMITTERS.items():
        if size > SHORT and not key.startswith("llvm"):
            continue
        found = emitter(program, {group: value[:count] for group, value in given.items()})
        error = error_of(found, {group: value[:count] for group, value in wanted.items()}, states)
        figure(f"{name} {model} by {key}", error, TOLERANCE)
        assert error < TOLERANCE, key
    assert error_of(c_library(program, given, tmp_path), wanted, states) < TOLERANCE, "c"


@pytest.mark.few
@pytest.mark.parametrize("preferred", PREFERENCES)
@pytest.mark.parametrize("name", FLEXIBLE)
def test_pieces_move_as_the_tree_does_whatever_they_are_written_with(name, preferred, figure):
    of, state = robot(name), bent_states(name, 1)[0]
    form = pieces(of, preferred)
    independent = form.partition.independent
    moving = node_state(form, state["q"], state["rates"][independent], JOINT_TERMS)
    assert np.abs(moving.rates.qd - state["rates"]).max() < 1e-11  # rounding of poses and rates of size 1
    found = accelerations_under(node_state(form, state["q"], state["rates"][independent], JOINT_TERMS), state["effort"])
    wanted = state["accelerations"][independent]
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    figure(f"{name} in pieces ({preferred})", error, TOLERANCE)
    assert error < TOLERANCE


@pytest.mark.parametrize("name", FLEXIBLE)
def test_there_are_as_many_unknowns_as_independent_coordinates(name):
    of = robot(name)
    locked = of.locking(of.actuated)
    for one in (of, locked):
        form = pieces(one)
        assert form.size == len(form.partition.independent) == one.mobility.freedoms(len(one.free))


def test_sections_that_only_spin_have_their_inertia_in_pieces(tmp_path):
    text = (CATALOGUE / "navaro.toml").read_text(encoding="utf-8")
    file = tmp_path / "thin.toml"
    file.write_text(text.replace("rotary_inertia = true", "rotary_inertia = false"), encoding="utf-8")
    of = parflex.load(file, settings={"gravity": [1, 2, -9.81]})
    state = bent_state(of, np.random.default_rng(6))
    form = pieces(of)
    independent = form.partition.independent
    found = accelerations_under(node_state(form, state["q"], state["rates"][independent], JOINT_TERMS), state["effort"])
    assert np.abs(found - state["accelerations"][independent]).max() < TOLERANCE * np.abs(found).max()


def test_motor_inertia_friction_and_springs_act_in_pieces():
    settings = {"frame.0.motor_inertia": 3.0, "frame.8.spring": {"stiffness": 70.0, "rest": 0.2}}
    of = parflex.load("dualemps", settings=settings)
    rng = np.random.default_rng(4)
    state = bent_state(of, rng)
    form = pieces(of)
    independent = form.partition.independent
    M, c, b = reduced_equations(state["at"], state["rates"])
    J, J_a = state["at"].J, state["at"].J_a
    wanted = (J @ np.linalg.solve(M, J_a.T @ state["effort"] - c) + b)[independent]
    found = accelerations_under(node_state(form, state["q"], state["rates"][independent]), state["effort"])
    assert np.abs(found - wanted).max() < TOLERANCE * np.abs(wanted).max()
    without = accelerations_under(
        node_state(form, state["q"], state["rates"][independent], JOINT_TERMS), state["effort"]
    )
    assert np.abs(found - without).max() > 1e-2 * np.abs(wanted).max()  # they matter


def test_a_rigid_loop_beside_beams_takes_the_general_form(tmp_path):
    file = tmp_path / "lever.toml"
    file.write_text(RIGID_LOOP, encoding="utf-8")
    of = parflex.load(file)
    assert pieces(of) is None
    program = parflex.model(of, "inverse")
    states = [bent_state(of, np.random.default_rng(k)) for k in range(5)]
    given, wanted = batch(states, program, of)
    assert error_of(program(**given), wanted, states) < TOLERANCE


RIGID_LOOP = """
format = 1
name = "lever"
motion = "planar"
[materials.steel]
elastic_modulus = 2e11
density = 7800
[sections.bar]
shape = "rectangle"
y = 0.01
z = 0.02
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = 1.2
inertia = { M = 1.0, MX = 0.1, ZZ = 0.02 }
[[frame]]
name = "coupler"
parent = "crank"
place = { position = [0.2, 0, 0] }
joint = "revolute"
start = -1.0
inertia = { M = 2.0, MX = 0.5, ZZ = 0.2 }
[[frame]]
name = "rocker"
place = { position = [0.5, 0, 0] }
joint = "revolute"
start = 1.5
inertia = { M = 1.5, MX = 0.2, ZZ = 0.05 }
[[point]]
name = "end"
frame = "coupler"
position = [0.45, 0, 0]
[[point]]
name = "pin"
frame = "rocker"
position = [0.4, 0, 0]
[[closure]]
between = ["end", "pin"]
joint = "revolute"
[[frame]]
name = "arm"
parent = "coupler"
place = { position = [0.2, 0, 0], rotation = [0, 0, 0.7] }
beam = { length = 0.5, material = "steel", section = "bar" }
[[frame]]
name = "tool"
parent = "arm.tip"
inertia = { M = 0.3 }
"""


def test_a_controller_step_of_a_bending_robot_is_refused_with_the_reason():
    with pytest.raises(InputError, match="do not give the state of a flexible body"):
        parflex.model(robot("dualemps"), "step")


def test_geometry_closes_the_loops_of_a_bent_robot():
    of, program = robot("dualemps"), made("dualemps", "geometry")
    for state in bent_states("dualemps", 5):
        guess = state["q"] + 1e-4 * np.isin(np.arange(of.tree.nq), of.tree.elastic)
        found = program(guess=guess)["q"]
        assert Configuration(of, found).closure_error < 1e-14
        changed = np.flatnonzero(found != guess)
        assert len(changed) == of.closures.size  # only as many as the loops have equations


def test_a_sparse_system_is_solved_as_a_dense_one():
    rng = np.random.default_rng(8)
    A = np.diag(rng.uniform(3, 5, 8)) + 0.0
    for i, j in ((0, 3), (3, 7), (1, 2), (2, 7), (4, 5), (5, 6)):
        A[i, j] = A[j, i] = rng.uniform(-1, 1)
    b = rng.uniform(-1, 1, 8)
    graph = Graph()
    symbols = A.astype(object)
    symbols[0, 0] = graph.symbol("a")
    x = solve_symmetric(symbols, b.astype(object), sparse=True)
    program = make_program(graph, "x", {"x": x})
    assert program.counts()["div"] <= 8
    assert np.abs(Kernel(program).one(np.array([A[0, 0]]))[:8] - np.linalg.solve(A, b)).max() < 1e-14


def test_the_general_form_drives_motors_too():
    of, state = robot("dualemps"), bent_states("dualemps", 1)[0]
    form = general_form(acting(of, JOINT_TERMS), pieces(of).partition, Question("inverse"))
    independent = [int(k) for k in form.partition.independent]
    wanted = state["accelerations"][list(of.actuated)]
    effort, qdd = form.efforts_for(form.moving(state["q"], state["rates"][independent]), wanted)
    assert np.abs(effort - state["effort"]).max() < TOLERANCE * state["sizes"]["effort"]
    assert np.abs(qdd - state["accelerations"][independent]).max() < TOLERANCE * np.abs(qdd).max()


@pytest.mark.few
@pytest.mark.parametrize("name", ["dualemps", "5r", "space"])
def test_a_state_gives_its_rates_whatever_is_guessed_for_dependent_positions(name):
    of = robot(name)
    program, driven = made(name, "state-rates"), made(name, "state-rates-driven")
    numbers = {label: k for k, label in enumerate(of.tree.rate_names)}
    rng = np.random.default_rng(7)
    for _ in range(5):
        state = bent_state(of, rng)
        for model in (program, driven):
            independent = [numbers[label] for label in model.labels["qd"]]
            dependent = np.array([k not in set(independent) for k in range(of.tree.n)])
            off = 1e-5 * rng.uniform(-1, 1, of.tree.n) * dependent
            given = {"q": of.tree.moved(state["q"], off), "qd": state["rates"][independent]}
            if model is program:
                found = model(**given, effort=state["effort"])
            else:
                found = model(**given, motor_acceleration=state["accelerations"][list(of.actuated)])
                assert np.abs(found["effort"] - state["effort"]).max() < TOLERANCE * state["sizes"]["effort"]
            assert np.abs(found["q"] - state["q"]).max() < 1e-9  # the square of the guess's error
            wanted = state["accelerations"][independent]
            # stiffness over mass, up to 1e12 1/s2, times what is left of the guess's error
            assert np.abs(found["acceleration"] - wanted).max() < 1e-6 * state["sizes"]["qdd"]
            h = 1e-6
            moved = of.tree.moved(state["q"], h * state["rates"]) - of.tree.moved(state["q"], -h * state["rates"])
            assert np.abs(found["position_rates"] - moved / (2 * h)).max() < 1e-8  # rounding over h


def test_energies_of_a_program_are_those_of_the_float_path():
    program = made("dualemps", "energy")
    for state in bent_states("dualemps", 3):
        found = program(q=state["q"], rates=state["rates"])
        kinetic, potential = parflex.energies(state["at"], state["rates"])
        assert found["kinetic"][0] == pytest.approx(kinetic, rel=1e-12)
        assert found["elastic"][0] + found["gravity"][0] == pytest.approx(potential, rel=1e-12)


def test_a_wrench_on_a_frame_acts_in_the_rates_of_a_state():
    of = robot("dualemps")
    program = parflex.model(of, "state-rates", wrench_frames=["17"], without=JOINT_TERMS)
    state, wrench = bent_states("dualemps", 1)[0], np.array([30.0, -20.0, 0.0, 0.0, 0.0, 5.0])
    numbers = {label: k for k, label in enumerate(of.tree.rate_names)}
    independent = [numbers[label] for label in program.labels["qd"]]
    rates, effort = state["rates"][independent], state["effort"]
    found = program(q=state["q"], qd=rates, effort=effort, wrench_17=wrench)["acceleration"]
    M, c, b = reduced_equations(state["at"], state["rates"], {"17": wrench}, JOINT_TERMS)
    J, J_a = state["at"].J, state["at"].J_a
    wanted = (J @ np.linalg.solve(M, J_a.T @ effort - c) + b)[independent]
    assert np.abs(found - wanted).max() < TOLERANCE * np.abs(wanted).max()
    with pytest.raises(InputError, match="there is no frame"):
        parflex.model(of, "state-rates", wrench_frames=["71"])
    with pytest.raises(InputError, match="takes no wrenches"):
        parflex.model(of, "inverse", wrench_frames=["17"])


def test_coulomb_friction_may_change_its_sign_smoothly():
    of, state = robot("dualemps"), bent_states("dualemps", 1)[0]
    programs = [parflex.model(of, "inverse", include=["friction"], friction_width=width) for width in (0.0, 1e-9, 1e3)]
    given, _ = batch([state], programs[0], of)
    sharp, narrow, wide = (program(**given)["effort"][0] for program in programs)
    assert np.abs(sharp - narrow).max() < 1e-6
    assert np.abs(sharp - wide).max() > 1.0  # 25 N on the slides


def test_the_direct_verb_gives_joints_and_elastic_coordinates_apart(capsys):
    answer = answered(capsys, "direct", "dualemps", "--effort", "11=100")
    assert set(answer["accelerations"]) == {"11", "12", "17", "21", "22", "25"}
    assert set(answer["elastic_accelerations"]) == {f"{b}.{e}" for b in (13, 16, 23) for e in ("ux", "uy", "rz")}


def test_a_joint_that_moves_nothing_with_inertia_is_refused_by_name():
    of = robot("navaro-refined")  # its motors have inertia, their links hang on springs behind them
    with pytest.raises(SingularError, match="moves nothing that has inertia") as stop:
        parflex.model(of, "direct", without=["motor-inertia"])
    assert "motor-inertia" in stop.value.hint
