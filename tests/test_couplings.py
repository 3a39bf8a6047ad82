"""Couplings (gears, belts, differentials, screws) against Lagrange's equations, Pinocchio, and forms without them."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest
from support.comparison import error_against, largest, nearby_states, positions, written
from support.coupled_robots import PAIR, RIGID, ROBOTS, pair, saddle
from support.emitted import c_library, llvm_batch
from support.oracles.energy import EnergyModel
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot

import parflex
from parflex import Configuration, InputError, ParflexError, RobotFileError, UnreachableError
from parflex.cli.main import main
from parflex.codegen.traces.feedback import wrapped
from parflex.control.plant import family
from parflex.description.schema import json_schema
from parflex.models.forms.general_form import GeneralForm
from parflex.models.frames_and_jacobians import counts as info
from parflex.view.figures.robot_figure import GEAR_MARK
from parflex.view.page.session import Session
from parflex.view.page.stage import Stage
from parflex.view.scene.coupling_parts import coupling_labels
from parflex.view.scene.robot_scene import reaction_arrows, scene

BEAMS = "geared-beams"
TIGHT = 1e-10  # systems of condition up to 1e4 in double precision


@cache
def load(name):
    return parflex.load(ROBOTS / f"{name}.toml", actuation=RIGID.get(name))


@cache
def lagrange(name):
    kind = FlexibleEnergyModel if name == BEAMS else EnergyModel
    return kind(read_robot(ROBOTS / f"{name}.toml"))


# -- against other engines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("oracle", [EnergyModel, PinocchioTree])
@pytest.mark.parametrize("name", RIGID)
def test_efforts_rates_and_accelerations_of_coupled_robots_equal_other_engines(name, oracle, figure):
    other = lagrange(name) if oracle is EnergyModel else oracle(read_robot(ROBOTS / f"{name}.toml"))
    worst = max(error_against(other, state) for state in nearby_states(load(name), 5, 1))
    figure(f"{name} against {oracle.__name__}, largest relative error", worst, TIGHT)
    assert worst < TIGHT


@pytest.mark.parametrize("name", [*RIGID, BEAMS])
def test_accelerations_and_the_effort_in_a_gear_are_those_of_the_multipliers(name, figure):
    robot, oracle, rng = load(name), lagrange(name), np.random.default_rng(2)
    count, worst = len(robot.closures.constraints), {"acceleration": 0.0, "effort": 0.0}
    for state in nearby_states(robot, 3, 4):
        at = state.configuration
        effort = dict(zip(robot.actuated_names, rng.uniform(-5, 5, len(robot.actuated)), strict=True))
        found = parflex.forward_dynamics(robot, at, state.velocity, effort, reactions=True)
        qdd, lam = saddle(oracle, at, found.rates, effort)
        couplings = found.reactions["couplings"]
        assert list(couplings) == [row.name for row in robot.closures.constraints]
        assert not any(entry["undetermined"] for entry in couplings.values())
        ours = np.array([entry["effort"] for entry in couplings.values()])
        errors = largest(found.accelerations - qdd) / largest(qdd), largest(ours - lam[-count:]) / largest(lam[-count:])
        worst = {key: max(worst[key], error) for key, error in zip(worst, errors, strict=True)}
        if name != BEAMS:
            given = dict(zip(robot.actuated_names, found.accelerations[list(robot.actuated)], strict=True))
            back = parflex.inverse_dynamics(robot, at, state.velocity, given, reactions=True)
            again = [entry["effort"] for entry in back.reactions["couplings"].values()]
            assert again == pytest.approx(ours, rel=1e-8, abs=1e-8 * largest(ours))
    figure(f"{name}: effort in the gears against Lagrange", worst["effort"], 1e-9)
    assert worst["acceleration"] < TIGHT and worst["effort"] < 1e-9  # beams are stiff: their forces take digits


def test_a_reaction_in_a_gear_pair_is_what_one_writes_by_hand(tmp_path):
    """Motor torque t on a pinion J1, wheel J2 = -n pinion: n^2 inertia, the gear puts J2 a2 on the wheel."""
    robot = pair(tmp_path, "terms = { pinion = -3 }")
    found = parflex.forward_dynamics(robot, None, None, {"pinion": 2.0}, reactions=True)
    a1 = 2.0 / (0.01 + 9 * 0.2)
    assert found.accelerations[:2] == pytest.approx([a1, -3 * a1], rel=1e-13)
    assert found.reactions["couplings"] == {"mesh": {"effort": pytest.approx(-0.6 * a1), "undetermined": False}}


@pytest.mark.parametrize("lock", ["actuators", "none"])
def test_frequencies_of_a_slender_arm_behind_a_gear_are_those_of_lagrange(lock, figure):
    robot, oracle = load(BEAMS), lagrange(BEAMS)
    for pose in ("home", {"motor": 30.0}, {"motor": -95.0}):
        at = parflex.configure(robot, pose)
        held = robot.actuated_names if lock == "actuators" else []
        expected = oracle.frequencies(positions(at), held)
        free = len(expected) - 6
        found = parflex.natural_frequencies(robot, at, 6, lock)
        error = largest(found.frequencies / expected[free:] - 1)
        figure(f"geared beams, locked {lock}: frequencies against Lagrange", error, 1e-8)
        assert error < 1e-8 and len(found.free_motions) == free


def test_many_poses_and_equilibria_of_coupled_beams_are_those_of_single_ones():
    robot, poses = load(BEAMS), np.array([[0.0], [30.0], [-95.0]])
    many = parflex.many_frequencies(robot, ["motor"], poses, modes=4)
    for pose, found in zip(poses, many.frequencies, strict=True):
        expected = parflex.natural_frequencies(robot, {"motor": float(pose[0])}, 4).frequencies
        assert found == pytest.approx(expected, rel=1e-9)
    held = parflex.equilibrium(robot, {"motor": 7.0})
    still = parflex.inverse_dynamics(robot, held.configuration)
    balance = lagrange(BEAMS)
    zero = np.zeros(robot.tree.n)
    qdd, _ = saddle(balance, Configuration(robot, held.configuration.q), zero, still.efforts)
    assert largest(qdd) < 1e-6  # rad/s2, of elastic forces of 1e4 N and masses of grams
    free = parflex.equilibrium(robot, lock="none", effort=still.efforts, pose={"motor": 7.5})
    assert free.configuration.q[:2] == pytest.approx(held.configuration.q[:2], abs=1e-6)


# -- poses ---------------------------------------------------------------------------------------------------


def test_turns_of_coupled_joints_are_counted():
    jack = load("screw-jack")
    for turns in (0.3, -40.0, 2000.0):
        q = parflex.configure(jack, {"motor": 2 * np.pi * turns}).q
        assert q[:3] == pytest.approx([2 * np.pi * turns, 0.8 * np.pi * turns, 0.35 + 0.4 * turns * 0.006], rel=1e-12)
    raised = parflex.configure(jack, {"table": 1.1}).q
    assert raised[1] == pytest.approx(2 * np.pi * 0.75 / 0.006, rel=1e-10)  # 125 turns
    again = parflex.configure(jack, {"table.z": 1.1}).q
    assert again[:3] == pytest.approx(raised[:3], rel=1e-9)
    five = load("geared-five-bar")
    for motor in (0.0, 8.0, -9.0):
        at = parflex.configure(five, {"motor": motor})
        named = positions(at)
        assert named["left.shoulder"] == pytest.approx(2.2 + 0.04 * motor, abs=1e-12)
        assert named["right.shoulder"] == pytest.approx(4.2 - 1.5 * named["left.shoulder"], abs=1e-12)
        assert at.closure_error < 1e-12
        there = parflex.configure(five, {"tip.x": float(at.at.of(five.tree.places["tip"])[1][0])})
        assert there.q == pytest.approx(at.q, abs=1e-8)


@pytest.mark.parametrize("turn", [2.0, 40.0, -40.0])
def test_a_linkage_behind_a_screw_stands_where_turning_the_screw_brings_it(turn):
    """Loops close in two ways at each angle of the nut: the pose is the one that small steps reach."""
    robot = load("nut-in-loop")
    q = robot.home
    for angle in np.linspace(0, turn, round(abs(turn) / 0.2) + 1)[1:]:
        q = robot.assemble({"nut.1": float(angle)}, near=q)
    assert parflex.configure(robot, {"nut.1": turn}).q == pytest.approx(q, abs=1e-8)


def test_a_motion_moves_one_axis_of_a_nut_over_many_turns(tmp_path):
    text = (ROBOTS / "nut-in-loop.toml").read_text()
    robot = parflex.load(written(text + '[motions.far]\nduration = 1\nmoves = [{ "nut.1" = 20 }]\n', tmp_path))
    run = parflex.simulate(robot, "far", 1.0, step=1e-3, out_step=0.5)
    assert [run[f"q.{name}"][-1] for name in robot.coordinates] == pytest.approx(
        parflex.configure(robot, {"nut.1": 20.0}).q, abs=1e-9
    )


def test_a_shaft_that_does_not_get_there_is_named(tmp_path):
    """A loop that ends after a turn and a half: the crank is as long as its rod lets it."""
    text = (ROBOTS / "nut-in-loop.toml").read_text().replace("lead = 0.012", "lead = 0.12")
    with pytest.raises(ParflexError, match="joined"):
        parflex.configure(parflex.load(written(text, tmp_path)), {"nut.1": 40.0})


def test_control_does_not_drop_turns_of_coupled_joints():
    assert wrapped(load("screw-jack"), np.array([20.0, 20.0])) == pytest.approx([20.0, 20 - 6 * np.pi])
    five = load("geared-five-bar")
    tip = five.tree.places["tip"]
    x = float(parflex.configure(five, {"motor": 9.0}).at.of(tip)[1][0])
    run = parflex.run_control(five, f"line:x={x},time=0.4", "ctc")
    assert run.columns["q.motor"][-1] == pytest.approx(9.0, abs=0.01)  # a turn more is 6.28
    k = 150
    rates = {"motor": run.columns["qd.motor"][k]}
    at, effort = (
        parflex.configure(five, {"motor": run.columns["q.motor"][k]}),
        {"motor": run.columns["effort.motor"][k]},
    )
    told = parflex.forward_dynamics(five, at, rates, effort, reactions=True).reactions["couplings"]
    for name, entry in told.items():
        assert run.columns[f"coupling.{name}.effort"][k] == pytest.approx(entry["effort"], rel=1e-6)
        assert abs(run.summary["couplings"][name]["effort"]) == largest(run.columns[f"coupling.{name}.effort"])


def test_a_sensor_beside_the_motor_of_a_geared_linkage_gives_its_pose_and_its_effort():
    robot = load("geared-five-bar").sensing(["right.elbow"])
    at = parflex.configure(robot, {"motor": 6.0})
    found = parflex.inverse_dynamics(robot, at, {"motor": 4.0}, {"motor": 20.0})
    program = parflex.model(robot, "redundant")
    own = [robot.tree.rate_names.index(n) for n in program.labels["qd"]]
    out = program(q=at.q, qd=found.rates[own], qdd=found.accelerations[own])
    assert out["effort"] == pytest.approx([found.efforts["motor"]], rel=1e-9)
    near = parflex.configure(robot, {"motor": 5.0}).q
    assert parflex.geometry_from_sensors(robot, at.q[own], near) == pytest.approx(at.q, abs=1e-9)
    matrices = parflex.redundant_model(robot, at, {"motor": 4.0})
    again = matrices.D @ found.accelerations[own] + matrices.C @ found.rates[own] + matrices.G + matrices.H
    assert again == pytest.approx([found.efforts["motor"]], rel=1e-9)


@pytest.mark.parametrize("spring", ["", "\nstiffness = 50"])
def test_a_start_of_one_joint_is_a_start_of_what_is_coupled_to_it(spring, tmp_path):
    text = PAIR.replace('name = "wheel"', 'name = "wheel"\nstart = 0.5')
    rows = f'[[coupling]]\nname = "mesh"\njoint = "wheel"\nterms = {{ pinion = 0.01 }}\noffset = 0.1{spring}\n'
    robot = parflex.load(written(text + rows, tmp_path))
    assert robot.home[:2] == pytest.approx([40.0, 0.5], abs=1e-9)
    free = parflex.load(written(PAIR + rows, tmp_path, "free"))
    assert free.home[:2] == pytest.approx([0.0, 0.1], abs=1e-9)


def test_poses_that_no_coupling_allows_are_refused():
    with pytest.raises(ParflexError, match="contradicts the coupling 'belt'"):
        parflex.configure(load("screw-jack"), {"motor": 1.0, "spindle": 2.0, "swing": 0.0})


# -- programs and motion -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("name", [*RIGID, BEAMS])
def test_programs_of_coupled_robots_equal_lagrange(name, target, tmp_path):
    robot, oracle = load(name), lagrange(name)
    for word in ("inverse", "direct") if target == "llvm" else ("direct",):
        model = parflex.model(robot, word)
        for state in nearby_states(robot, 2, 9):
            at = state.configuration
            effort = dict.fromkeys(robot.actuated_names, 1.7)
            qd = at.rates(state.velocity)
            qdd, _ = saddle(oracle, at, qd, effort)
            own = [robot.tree.rate_names.index(n) for n in model.labels["qd"]]
            given = {"q": at.q, "qd": qd[own], "qdd": qdd[own], "effort": np.full(len(robot.actuated), 1.7)}
            given["motor_acceleration"] = qdd[list(robot.actuated)]
            arrays = {key: np.array([given[key]]) for key in model.inputs}
            found = llvm_batch(model, arrays) if target == "llvm" else c_library(model, arrays, tmp_path)
            out = {key: value[0] for key, value in found.items()}
            if word == "direct":
                assert out["qdd"] == pytest.approx(qdd[own], rel=1e-9, abs=1e-9 * largest(qdd))
            else:
                assert out["effort"] == pytest.approx(given["effort"], rel=1e-7)  # of inertial terms up to 1e3 N m


@pytest.mark.parametrize("model", ["mass-matrix", "energy", "kinematics", "geometry", "step"])
def test_other_programs_of_a_geared_linkage_equal_its_models(model):
    robot = load("geared-five-bar")
    program = parflex.model(robot, model)
    at = parflex.configure(robot, {"motor": 3.0})
    found = parflex.inverse_dynamics(robot, at, {"motor": 4.0}, {"motor": 20.0})
    own = [robot.tree.rate_names.index(n) for n in program.labels.get("qd", ["motor"])]
    guess = at.q + 0.01
    guess[robot.tree.position_names.index("motor")] = 3.0
    sensed = {"motor_position": [3.0], "motor_rate": [4.0], "motor_acceleration": [20.0], "last": guess, "guess": guess}
    given = {"q": at.q, "qd": found.rates[own], "rates": found.rates, **sensed}
    out = program(**{key: np.asarray(given[key], dtype=float) for key in program.inputs})
    if model == "mass-matrix":
        names = program.labels["mass_matrix"]
        expected, ours = parflex.mass_matrix(robot, at)
        assert names == ours and out["mass_matrix"] == pytest.approx(expected, rel=1e-10)
    elif model == "energy":
        assert out["kinetic"][0] == pytest.approx(parflex.energies(robot, at, {"motor": 4.0})[0], rel=1e-10)
    elif model == "kinematics":
        assert out["rates"] == pytest.approx(found.rates, rel=1e-10)
    elif model == "geometry":
        assert out["q"] == pytest.approx(at.q, abs=1e-10)
    else:
        assert out["effort"] == pytest.approx(list(found.efforts.values()), rel=1e-8)


@pytest.mark.parametrize("name", ["planetary", "screw-jack", "geared-five-bar", BEAMS])
def test_coupled_robots_keep_the_balance_of_energy(name, figure):
    robot = load(name)
    effort = dict.fromkeys(robot.actuated_names, 0.05)
    run = parflex.simulate(robot, None, 0.5, effort=effort, step=5e-4, out_step=0.05, without=["friction"])
    size = np.ptp(run["energy.kinetic"])
    figure(f"{name}: balance of energy", run.summary["energy_balance_error"] / size, 1e-7)
    assert run.summary["energy_balance_error"] < 1e-7 * size
    at = parflex.configure(robot, {n: run[f"q.{n}"][5] for n in robot.coordinates})
    rates = {n: run[f"qd.{n}"][5] for n in robot.tree.rate_names}
    told = parflex.forward_dynamics(robot, at, rates, effort, reactions=True, without=["friction"])
    for row in robot.closures.constraints:
        force = told.reactions["couplings"][row.name]["effort"]
        assert run[f"coupling.{row.name}.effort"][5] == pytest.approx(force, rel=1e-5, abs=1e-6)
        off = sum(c * run[f"q.{joint}"] for c, joint in zip(row.coefficients, row.joints, strict=True)) - row.offset
        assert largest(off) < 1e-10


@pytest.mark.parametrize("name", ["differential", "screw-jack"])
def test_power_and_energy_balance_over_ten_seconds_with_friction(name, figure):
    robot = load(name)
    effort = dict.fromkeys(robot.actuated_names, 0.2 if name == "screw-jack" else 0.02)  # with less it sticks
    run = parflex.simulate(robot, None, 10.0, effort=effort, step=1e-3, out_step=0.5)
    size = np.ptp(run["energy.kinetic"])
    figure(f"{name}: balance of energy over 10 s", run.summary["energy_balance_error"] / size, 1e-6)
    assert run.summary["energy_balance_error"] < 1e-6 * size  # steps through the smooth sign of Coulomb friction
    assert abs(run["work.loss"][-1]) > 1e-4


def test_a_screw_jack_with_friction_sinks_as_its_one_equation_says():
    """Swing locked: inertia of all by the square of their way, weight and Coulomb friction along it."""
    jack = parflex.load(ROBOTS / "screw-jack.toml", settings={"frame.3.locked": True})
    way = 0.4 * 0.006 / (2 * np.pi)  # m of table per rad of motor
    inertia = 0.0012 + 0.4**2 * 0.0015 + way**2 * 13.5
    drive = 13.5 * 9.81 * way - 0.02 - 0.4 * 0.15 + 0.5
    run = parflex.simulate(jack, None, 0.4, effort={"motor": 0.5}, step=1e-3, out_step=0.4, without=[])
    damp = 0.001 + 0.4**2 * 0.004
    push = 0.5 - 13.5 * 9.81 * way - 0.02 - 0.4 * 0.15
    assert drive > 0 and push > 0
    t = run["t"][-1]
    exact = push / damp * (t - inertia / damp * (1 - np.exp(-damp / inertia * t)))
    assert run["q.motor"][-1] == pytest.approx(exact, rel=1e-4)  # friction is smooth over a small rate


def test_a_family_of_gears_has_the_ratio_of_each(tmp_path):
    one = pair(tmp_path, "terms = { pinion = -3 }", name="one")
    two = pair(tmp_path, "terms = { pinion = -2.5 }\noffset = 0.2", name="two")
    shared = family(one, two).plant(two).problem.model
    alone = parflex.model(two, "state-rates", friction_width=1e-3)
    q = two.home.copy()
    q[:2] = 0.3, 0.2 - 2.5 * 0.3
    inputs = {"q": q, "qd": np.array([1.0]), "effort": np.array([0.4])}
    for name, values in alone(**inputs).items():
        assert shared(**inputs)[name] == pytest.approx(values, rel=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_any_independent_rate_and_any_motor_give_the_same_motion(seed, tmp_path):
    """A geared five-bar whose motor and whose independent rate are drawn: twins that differ in words alone."""
    rng = np.random.default_rng(seed)
    text = (ROBOTS / "geared-five-bar.toml").read_text()
    joints = ["motor", "left.shoulder", "right.shoulder", "left.elbow"]
    robot = load("geared-five-bar")
    at = parflex.configure(robot, {"motor": float(rng.uniform(-8, 8))})
    free = parflex.forward_dynamics(robot, at, {"motor": 5.0}, {"motor": 0.3})
    for name in joints:
        assert parflex.inverse_dynamics(robot, at, {"motor": 5.0}, {name: accelerated(free, name)}).efforts[
            "motor"
        ] == pytest.approx(0.3, rel=1e-8)
        runs = parflex.simulate(robot, None, 0.05, effort={"motor": 0.3}, step=1e-3, independent=[name])
        if name == "motor":
            first = runs
        assert runs["q.motor"] == pytest.approx(first["q.motor"], abs=1e-9)
    moved = text.replace("actuated = true\n", "").replace('name = "shoulder"', 'name = "shoulder"\nactuated = true')
    both = parflex.load(written(moved, tmp_path))  # both cranks: one motor too many
    found = parflex.inverse_dynamics(both, Configuration(both, at.q), {"motor": 5.0}, {"motor": 1.0})
    assert found.redundant_actuation
    power = sum(found.efforts[n] * accelerated(found, n, "rates") for n in found.efforts)
    lone = parflex.inverse_dynamics(robot, at, {"motor": 5.0}, {"motor": 1.0})
    assert power == pytest.approx(lone.efforts["motor"] * 5.0, rel=1e-9)


def accelerated(found, name, what="accelerations"):
    return float(getattr(found, what)[found.robot.tree.rate_names.index(name)])


# -- redundant and contradictory -----------------------------------------------------------------------------


def test_a_coupling_that_repeats_a_loop_or_a_coupling_is_redundant(tmp_path):
    twice = '[[coupling]]\nname = "again"\njoint = "pinion"\nterms = { wheel = -0.25 }'
    told = info(pair(tmp_path, "terms = { pinion = -4 }", twice))
    assert told["redundant_closures"] == 1 and told["names"]["redundant_closures"] == ["again: coupling"]
    assert told["degrees_of_freedom"] == 1 and told["names"]["couplings"] == ["mesh", "again"]
    text = (ROBOTS / "parallelogram.toml").read_text()
    robot = parflex.load(ROBOTS / "parallelogram.toml")
    before = info(robot)
    names, rows = robot.tree.rate_names, Configuration(robot, robot.home).J
    a, b = next((i, j) for i in range(len(names)) for j in range(i) if same(rows[i], rows[j]))
    offset = float(robot.home[a] - robot.home[b])
    row = f'\n[[coupling]]\nname = "gear"\njoint = "{names[a]}"\nterms = {{ "{names[b]}" = 1 }}\noffset = '
    after = info(parflex.load(written(text + row + f"{offset}\n", tmp_path, "parallel")))
    assert after["redundant_closures"] == before["redundant_closures"] + 1
    assert after["degrees_of_freedom"] == before["degrees_of_freedom"]
    assert "gear: coupling" in after["names"]["redundant_closures"]
    with pytest.raises(RobotFileError, match="'gear' contradicts '"):
        info(parflex.load(written(text + row + f"{offset + 0.2}\n", tmp_path, "off")))


def same(one, two):
    return largest(one) > 0.5 and largest(one - two) < 1e-9


@pytest.mark.parametrize(
    ("coupling", "said"),
    [
        ("terms = { pinion = 0 }", "the ratio of 'pinion' is zero"),
        ("terms = { wheel = 2 }", "cannot be coupled to itself"),
        ('other = "pinion"\nlead = 0', "lead of zero"),
        ('other = "pinion"\nlead = 0.01', "both turn"),
        ('other = "pinion"', "needs both 'other' and 'lead'"),
        ("lead = 0.01", "needs both 'other' and 'lead'"),
        ("", "the coupling has neither 'terms' nor 'other' and 'lead'"),
        ('terms = { pinion = 2 }\nother = "rack"\nlead = 0.01', "are both given"),
        ("terms = { pinoin = 2 }", "did you mean 'pinion'"),
        ("terms = { ball = 2 }", "the free joint 'ball' has no axis to couple"),
        ("terms = { pinion = inf }", "not a finite number"),
        ('terms = { pinion = "two" }', "two"),
        ("terms = { pinion = 2 }\nratio = 3", "unknown key 'ratio'"),
        (
            'terms = { pinion = 2 }\n[[coupling]]\nname = "mesh"\njoint = "pinion"\nterms = { wheel = 1 }',
            "appears twice",
        ),
        (
            'terms = { pinion = 2 }\n[[coupling]]\nname = "b"\njoint = "pinion"\nterms = { wheel = 0.5 }\noffset = 1',
            "the couplings 'mesh', 'b' contradict each other",
        ),
    ],
)
def test_what_no_coupling_can_be_is_refused_in_words(coupling, said, tmp_path):
    with pytest.raises(RobotFileError) as caught:
        pair(tmp_path, coupling)
    assert said in str(caught.value) and "mesh" in str(caught.value)


def test_what_contradicts_a_ratio_is_told_in_the_unit_of_the_joint(tmp_path):
    robot = pair(tmp_path, "terms = { pinion = -2 }")
    where, q = robot.coordinates.index("wheel"), parflex.configure(robot).q
    with pytest.raises(
        ParflexError, match=r"the coupling 'belt': it gives 'spindle' 0\.4 rad, and the pose 1 rad; leave out one of"
    ):
        parflex.configure(load("screw-jack"), {"motor": 1.0, "spindle": 1.0})
    off = np.eye(len(q))[where] * 0.25
    with pytest.raises(InputError, match=r"coupling 'mesh': 'wheel' is off by 0\.25 rad; it says wheel = -2 pinion"):
        parflex.configure(robot, q + off)
    rates = np.eye(robot.nv)[robot.rates.index("wheel")] * 3
    with pytest.raises(InputError, match=r"coupling 'mesh': 'wheel' is off by 3 rad/s; it says"):
        parflex.inverse_dynamics(robot, q, rates)


def test_what_contradicts_couplings_by_name_is_told_with_all_of_them_and_the_joint(tmp_path):
    """Along chains of couplings, in units; also what locks joints, and motors that a gear ties to each other."""
    jack, five = load("screw-jack"), load("geared-five-bar")
    both = r"the couplings 'belt', 'thread': they give 'table' 0.350382 m, and the pose 0.4 m; leave out one of 'motor'"
    with pytest.raises(UnreachableError, match=both):
        parflex.configure(jack, {"motor": 1.0, "table": 0.4})
    with pytest.raises(
        UnreachableError, match=r"the couplings 'reducer', 'gears': they give 'right.shoulder' 0.84 rad"
    ):
        parflex.configure(five, {"motor": 1.0, "right.shoulder": 1.0})
    with pytest.raises(InputError, match=r"'table' 0.000381972 m/s, and the velocity 1 m/s"):
        parflex.forward_dynamics(jack, None, {"motor": 1.0, "table": 1.0})
    with pytest.raises(InputError, match=r"'right.shoulder' -0.06 rad/s2, and the acceleration 1 rad/s2"):
        parflex.inverse_dynamics(five, None, None, {"motor": 1.0, "right.shoulder": 1.0})
    with pytest.raises(InputError, match=r"'left.elbow' = 1 rad/s: .* it can only be -0.0750853 rad/s"):
        parflex.inverse_dynamics(five, None, {"motor": 1.0, "left.elbow": 1.0})
    with pytest.raises(InputError, match=r"the start contradicts the coupling 'belt': it gives 'spindle' 0.4 rad"):
        parflex.simulate(jack, None, 0.01, start={"q": [1.0, 1.0, 1.0, 0.0]})
    braked = parflex.load(ROBOTS / "planetary.toml", actuation="braked")
    with pytest.raises(InputError, match=r"the coupling 'willis': it gives 'sun' 3.5 rad/s, and the velocity 1 rad/s"):
        parflex.inverse_dynamics(braked, None, {"sun": 1.0, "carrier": 1.0})
    tied = '[actuation.tied]\nactuated = ["pinion", "wheel"]\n[motions.m]\nduration = 1\nmoves = [{ pinion = 1 }]\n'
    text = PAIR + '[[coupling]]\nname = "mesh"\njoint = "wheel"\nterms = { pinion = -2 }\n' + tied
    with pytest.raises(InputError, match="'mesh' couple 'pinion', 'wheel'"):
        parflex.simulate(parflex.load(written(text, tmp_path), actuation="tied"), "m", 1.0)


def test_couplings_that_hold_joints_still_or_change_their_starts_are_told(tmp_path):
    twice = '[[coupling]]\nname = "b"\njoint = "wheel"\nterms = { pinion = 3 }\n'
    still = pair(tmp_path, "terms = { pinion = -2 }", twice)
    assert "the couplings 'mesh', 'b' together leave 'pinion', 'wheel' no motion" in still.start_warnings()
    text = PAIR.replace('name = "wheel"', 'name = "wheel"\nstart = 0.5').replace('"pinion"', '"pinion"\nstart = 0.5')
    path = written(text + '[[coupling]]\nname = "mesh"\njoint = "wheel"\nterms = { pinion = -2 }\n', tmp_path, "both")
    (said,) = parflex.load(path).start_warnings()
    assert said.startswith("the start contradicts the coupling 'mesh': it gives 'wheel' -1 rad, and the start 0.5 rad")
    assert not load("differential").start_warnings() and not load("planetary").start_warnings()


def test_motors_on_both_sides_of_a_gear_leave_another_joint_free_and_it_is_named(tmp_path):
    text = (ROBOTS / "screw-jack.toml").read_text() + '[actuation.geared]\nactuated = ["motor", "spindle"]\n'
    robot = parflex.load(written(text, tmp_path), actuation="geared")
    assert parflex.configure(robot).condition.warnings() == ["with the motors locked, 'swing' can still move"]


def test_pages_of_results_and_robots_show_couplings():
    robot = load("differential")
    result = parflex.inverse_dynamics(robot, reactions=True)
    for name in result.reactions["couplings"]:
        assert name in result._repr_html_() and name in robot._repr_html_()


def test_a_joint_with_two_axes_is_named_by_one_of_them(tmp_path):
    text = (ROBOTS / "nut-in-loop.toml").read_text()
    with pytest.raises(RobotFileError, match=r"name 'nut.1' or 'nut.2'"):
        parflex.load(written(text.replace('joint = "nut.2"', 'joint = "nut"'), tmp_path))


def test_couplings_of_legs_are_written_once_and_inherited(tmp_path):
    text = (ROBOTS / "geared-five-bar.toml").read_text().partition("[[coupling]]")[0]
    own = '[[legs.coupling]]\nname = "belt"\njoint = "elbow"\nterms = { shoulder = -0.5 }\noffset = "elbow"\n'
    written(text.replace("[[legs.point]]", own + "[[legs.point]]", 1), tmp_path, "base")
    child = 'format = 1\nname = "child"\nextends = "base.toml"\n[[coupling]]\nname = "left.belt"\noffset = 0.3\n'
    with pytest.raises(RobotFileError):
        parflex.load(written(child, tmp_path, "child"))  # rows of legs are rows of the legs' own table
    robot = parflex.load(tmp_path / "base.toml")
    belts = list(robot.closures.constraints)
    assert [row.name for row in belts] == ["left.belt", "right.belt"]
    assert belts[1].joints == ("right.elbow", "right.shoulder") and belts[1].offset == 1.15


# -- doors ---------------------------------------------------------------------------------------------------


def test_a_locked_joint_stops_what_is_coupled_to_it():
    braked = parflex.load(ROBOTS / "planetary.toml", actuation="braked")
    assert info(braked)["degrees_of_freedom"] == 1
    found = parflex.forward_dynamics(braked, None, None, {"sun": 0.5})
    assert found.accelerations[1] == 0
    assert found.accelerations[0] / found.accelerations[2] == pytest.approx(1 + 60 / 24, rel=1e-12)


def test_a_robot_whose_joints_are_coupled_has_the_general_form_and_is_told_and_drawn(tmp_path):
    robot = load("geared-five-bar")
    told = parflex.explain(robot)
    chapter = next(part for part in told.sections if part.key == "loops")
    assert chapter.title == "Loops and couplings" and 42 in chapter.equations
    assert any("gears: right.shoulder = -1.5 left.shoulder + 4.2" in line for line in chapter.text)
    assert told.form == GeneralForm.name
    assert "coupling" in json_schema()["properties"]


def test_reactions_of_couplings_are_printed_and_their_robot_is_drawn(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["inverse", str(ROBOTS / "geared-five-bar.toml"), "--reactions"])
    assert not stop.value.code
    told = capsys.readouterr().out
    assert "efforts of couplings" in told and "reducer" in told
    with pytest.raises(SystemExit):
        main(["info", str(ROBOTS / "geared-five-bar.toml")])
    assert "right.shoulder = -1.5 left.shoulder + 4.2" in capsys.readouterr().out
    found = parflex.inverse_dynamics(load("geared-five-bar"), reactions=True)
    places, forces = reaction_arrows(found.robot, found.configuration.q, found.reactions)
    assert places.shape == forces.shape == (6, 3)  # five joints and a closure
    lines = [line for line in parflex.draw(found.robot).axes[0].lines if line.get_linestyle() == ":"]
    assert len(lines) == 2  # from each coupled joint to the other
    axes = parflex.draw(found.robot).axes[0]
    assert sum(line.get_marker() == GEAR_MARK for line in axes.lines) == 3  # on the motor and both shoulders
    assert {"reducer", "gears"} <= {text.get_text().strip() for text in axes.texts}


@pytest.mark.parametrize("name", ["geared-five-bar", "screw-jack", "nut-in-loop", BEAMS])
def test_wheels_and_threads_of_couplings_turn_and_slide_in_the_viewer(name):
    robot = load(name)
    shown, tree = scene(robot), robot.tree
    mesh = next(mesh for mesh in shown.meshes if mesh.name == "couplings")
    coupled = {n for one in robot.description.coupling for n in (one.joint, *one.others)}
    moved = parflex.configure(robot, {robot.motors[0]: robot.home[tree.position_names.index(robot.motors[0])] + 0.5}).q
    marks = [part for part in shown.parts if part.group == "couplings" and part.link >= 0]
    assert {tree.links[part.link].name for part in marks} == coupled
    assert largest(shown.vertices(moved)[mesh.vertices] - shown.vertices(robot.home)[mesh.vertices]) > 1e-3 * shown.size
    assert list(coupling_labels(robot, moved)) == [one.name for one in robot.description.coupling]
    said = Session(robot).reactions()[2]
    for one in robot.description.coupling:
        assert one.name in said


def test_names_of_couplings_stand_in_the_page_with_their_efforts():
    class Handle:
        def __init__(self, *_, **words):
            self.__dict__.update(words)

        def remove(self):
            self.gone = True

    class Page:
        def __getattr__(self, word):
            return Page() if word in ("scene", "initial_camera") else lambda *given, **words: Handle(*given, **words)

        def atomic(self):
            return nullcontext()

    stage, robot = Stage(Page()), load("geared-five-bar")
    session = Session(robot)
    stage.build(session.scene, robot.home)
    session.reactions()
    stage.name_couplings(session.coupling_efforts)
    assert stage.names["gears"].text.startswith("gears: 1.2") and stage.names["gears"].text.endswith(" N m")
    stage.place_tool(parflex.configure(robot, {"motor": 8.0}).q)
    assert stage.names["reducer"].position == pytest.approx([-0.075, 0.0, 0.0])
    stage.name_couplings({})
    assert stage.names["gears"].text == "gears"


def test_arrays_of_a_coupled_robot_are_answered_and_checked():
    robot = load("geared-five-bar")
    found = parflex.inverse_dynamics(robot, {"motor": 2.0}, {"motor": 3.0}, {"motor": 1.0})
    q = found.configuration.q
    assert parflex.inverse_dynamics(robot, q, found.rates, found.accelerations) == pytest.approx(
        [found.efforts["motor"]], rel=1e-10
    )
    off = q.copy()
    off[robot.tree.position_names.index("motor")] += 0.3
    with pytest.raises(InputError, match="'reducer'"):
        parflex.inverse_dynamics(robot, off, found.rates, found.accelerations)
