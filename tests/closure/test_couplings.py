"""Couplings (gears, belts, differentials, screws) against Lagrange, Pinocchio, MuJoCo, and forms without them."""

from functools import cache

import numpy as np
import pytest
from support.cases import VERIFY
from support.command_line import answered, run
from support.comparison import error_against, largest, nearby_states, positions
from support.coupled_robots import PAIR, RIGID, pair, saddle
from support.oracles.energy import EnergyModel
from support.oracles.engine_couplings import mimic_equations, mujoco_accelerations
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex import Configuration, InputError, ParflexError, RobotFileError, UnreachableError
from parflex.view.session import Session

BEAMS = "geared-beams"
TIGHT = 1e-10  # systems of condition up to 1e4 in double precision


@cache
def load(name):
    return load_robot(name, actuation=RIGID.get(name))


@cache
def lagrange(name):
    kind = FlexibleEnergyModel if name == BEAMS else EnergyModel
    return kind(read_robot(robot_file(name)))


@pytest.mark.parametrize("oracle", [EnergyModel, PinocchioTree])
@pytest.mark.parametrize("name", RIGID)
def test_efforts_rates_and_accelerations_of_coupled_robots_equal_other_engines(name, oracle, figure):
    other = lagrange(name) if oracle is EnergyModel else oracle(read_robot(robot_file(name)))
    worst = max(error_against(other, state) for state in nearby_states(load(name), 5, 1))
    figure.below(f"{name} against {oracle.__name__}, largest relative error", worst, TIGHT)


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
    free = parflex.equilibrium(robot, Configuration(robot, held.configuration.q), "none", effort=still.efforts)
    assert free.configuration.q[:2] == pytest.approx(held.configuration.q[:2], abs=1e-6)


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


@pytest.mark.few("2.0", "-40")
@pytest.mark.parametrize("turn", [2.0, 40.0, -40.0])
def test_a_linkage_behind_a_screw_stands_where_turning_the_screw_brings_it(turn):
    """Loops close in two ways at each angle of the nut: the pose is the one that small steps reach."""
    robot = load("nut-in-loop")
    q = robot.home
    for angle in np.linspace(0, turn, round(abs(turn) / 0.2) + 1)[1:]:
        q = robot.assemble({"nut.1": float(angle)}, near=q)
    assert parflex.configure(robot, {"nut.1": turn}).q == pytest.approx(q, abs=1e-8)


def test_a_motion_moves_one_axis_of_a_nut_over_many_turns():
    robot = load_robot("nut-in-loop", settings={"motions.far": {"duration": 1, "moves": [{"nut.1": 20}]}})
    run = parflex.simulate(robot, "far", 1.0, step=1e-3, out_step=0.5)
    there = parflex.configure(robot, {"nut.1": 20.0}).q
    assert [run[f"q.{name}"][-1] for name in robot.coordinates] == pytest.approx(there, abs=1e-9)


def test_a_shaft_that_does_not_get_there_is_named():
    """A loop that ends after a turn and a half: the crank is as long as its rod lets it."""
    with pytest.raises(ParflexError, match="joined"):
        parflex.configure(load_robot("nut-in-loop", settings={"coupling.0.lead": 0.12}), {"nut.1": 40.0})


def test_control_does_not_drop_turns_of_coupled_joints():
    five = load("geared-five-bar")
    x = float(parflex.frames(five, {"motor": 9.0})["tip"].position[0])
    run = parflex.run_control(five, f"line:x={x},time=0.4", "ctc")
    assert run.columns["q.motor"][-1] == pytest.approx(9.0, abs=0.01)  # a turn more is 6.28
    k = 150
    rates, effort = {"motor": run["qd.motor"][k]}, {"motor": run["effort.motor"][k - 1]}  # before the sample
    at = parflex.configure(five, {"motor": run.columns["q.motor"][k]})
    told = parflex.forward_dynamics(five, at, rates, effort, reactions=True).reactions["couplings"]
    for name, entry in told.items():
        assert run.columns[f"coupling.{name}.effort"][k] == pytest.approx(entry["effort"], rel=1e-6)
        assert abs(run.summary["couplings"][name]["effort"]) == largest(run.columns[f"coupling.{name}.effort"])


@pytest.mark.parametrize("spring", ["", "\nstiffness = 50"])
def test_a_start_of_one_joint_is_a_start_of_what_is_coupled_to_it(spring, tmp_path):
    text = PAIR.replace('name = "wheel"', 'name = "wheel"\nstart = 0.5')
    rows = f'[[coupling]]\nname = "mesh"\njoint = "wheel"\nterms = {{ pinion = 0.01 }}\noffset = 0.1{spring}\n'
    robot = parflex.load(write_robot(tmp_path, text + rows))
    assert robot.home[:2] == pytest.approx([40.0, 0.5], abs=1e-9)
    free = parflex.load(write_robot(tmp_path, PAIR + rows, "free"))
    assert free.home[:2] == pytest.approx([0.0, 0.1], abs=1e-9)


def test_poses_that_no_coupling_allows_are_refused():
    with pytest.raises(ParflexError, match="contradicts the coupling 'belt'"):
        parflex.configure(load("screw-jack"), {"motor": 1.0, "spindle": 2.0, "swing": 0.0})


@pytest.mark.parametrize("name", ["differential", "screw-jack"])
def test_power_and_energy_balance_over_seconds_with_friction(name, figure):
    robot, time = load(name), 10.0 if VERIFY else 2.0
    effort = dict.fromkeys(robot.actuated_names, 0.2 if name == "screw-jack" else 0.02)  # with less it sticks
    run = parflex.simulate(robot, None, time, effort=effort, step=1e-3, out_step=0.5)
    size = np.ptp(run["energy.kinetic"])
    figure(f"{name}: balance of energy over {time:g} s", run.summary["energy_balance_error"] / size, 1e-6)
    assert run.summary["energy_balance_error"] < 1e-6 * size  # steps through the smooth sign of Coulomb friction
    assert abs(run["work.loss"][-1]) > 1e-4


def test_a_screw_jack_with_friction_sinks_as_its_one_equation_says():
    """Swing locked: inertia of all by the square of their way, weight and Coulomb friction along it."""
    jack = load_robot("screw-jack", settings={"frame.3.locked": True})
    way = 0.4 * 0.006 / (2 * np.pi)  # m of table per rad of motor
    inertia, damp = 0.0012 + 0.4**2 * 0.0015 + way**2 * 13.5, 0.001 + 0.4**2 * 0.004
    push = 0.5 - 13.5 * 9.81 * way - 0.02 - 0.4 * 0.15
    run = parflex.simulate(jack, None, 0.4, effort={"motor": 0.5}, step=1e-3, out_step=0.4, without=[])
    exact = push / damp * (run.t[-1] - inertia / damp * (1 - np.exp(-damp / inertia * run.t[-1])))
    assert push > 0 and run["q.motor"][-1] == pytest.approx(exact, rel=1e-4)  # friction is smooth over a small rate


@pytest.mark.few
@pytest.mark.parametrize("seed", range(3))
def test_any_independent_rate_and_any_motor_give_the_same_motion(seed, tmp_path):
    """A geared five-bar whose motor and whose independent rate are drawn: twins that differ in words alone."""
    rng, robot = np.random.default_rng(seed), load("geared-five-bar")
    at = parflex.configure(robot, {"motor": float(rng.uniform(-8, 8))})
    free = parflex.forward_dynamics(robot, at, {"motor": 5.0}, {"motor": 0.3})
    runs = []
    for name in ("motor", "left.shoulder", "right.shoulder", "left.elbow"):
        back = parflex.inverse_dynamics(robot, at, {"motor": 5.0}, {name: of(free, name)})
        assert back.efforts["motor"] == pytest.approx(0.3, rel=1e-8)
        runs.append(parflex.simulate(robot, None, 0.05, effort={"motor": 0.3}, step=1e-3, independent=[name]))
        assert runs[-1]["q.motor"] == pytest.approx(runs[0]["q.motor"], abs=1e-9)
    text = robot_file("geared-five-bar").read_text(encoding="utf-8")
    moved = text.replace("actuated = true\n", "").replace('name = "shoulder"', 'name = "shoulder"\nactuated = true')
    both = parflex.load(write_robot(tmp_path, moved))  # both cranks: one motor too many
    found = parflex.inverse_dynamics(both, Configuration(both, at.q), {"motor": 5.0}, {"motor": 1.0})
    assert found.redundant_actuation
    power = sum(found.efforts[n] * of(found, n, "rates") for n in found.efforts)
    lone = parflex.inverse_dynamics(robot, at, {"motor": 5.0}, {"motor": 1.0})
    assert power == pytest.approx(lone.efforts["motor"] * 5.0, rel=1e-9)


def of(found, name, what="accelerations"):
    return float(getattr(found, what)[found.robot.rates.index(name)])


def test_a_coupling_that_repeats_a_loop_or_a_coupling_is_redundant(tmp_path, capsys):
    twice = '[[coupling]]\nname = "again"\njoint = "pinion"\nterms = { wheel = -0.25 }'
    pair(tmp_path, "terms = { pinion = -4 }", twice)
    told = answered(capsys, "info", tmp_path / "pair.toml")
    assert told["redundant_closures"] == 1 and told["names"]["redundant_closures"] == ["again: coupling"]
    assert told["degrees_of_freedom"] == 1 and told["names"]["couplings"] == ["mesh", "again"]
    robot = load("parallelogram")
    before = answered(capsys, "info", robot_file("parallelogram"))
    rows = Configuration(robot, robot.home).J
    a, b = next((i, j) for i in range(robot.nv) for j in range(i) if same(rows[i], rows[j]))
    offset = float(robot.home[a] - robot.home[b])
    text = robot_file("parallelogram").read_text(encoding="utf-8")
    one, other = robot.rates[a], robot.rates[b]
    text += f'\n[[coupling]]\nname = "gear"\njoint = "{one}"\nterms = {{ "{other}" = 1 }}\noffset = '
    after = answered(capsys, "info", write_robot(tmp_path, f"{text}{offset}\n", "parallel"))
    assert after["redundant_closures"] == before["redundant_closures"] + 1
    assert after["degrees_of_freedom"] == before["degrees_of_freedom"]
    assert "gear: coupling" in after["names"]["redundant_closures"]
    off = parflex.load(write_robot(tmp_path, f"{text}{offset + 0.2}\n", "off"))
    with pytest.raises(RobotFileError, match="'gear' contradicts '"):
        parflex.configure(off)


def same(one, two):
    return largest(one) > 0.5 and largest(one - two) < 1e-9


@pytest.mark.parametrize(
    ("coupling", "said"),
    [
        ("terms = { pinion = 0 }", "the ratio of 'pinion' is zero"),
        ("terms = { wheel = 2 }", "cannot be coupled to itself"),
        ('other = "pinion"\nlead = 0', "lead = 0.0 couples nothing"),
        ('other = "pinion"\nlead = 0.01', "both rotate"),
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
    said = r"the coupling 'belt': it gives 'spindle' 0\.4 rad, and the pose 1 rad; leave out one of"
    with pytest.raises(ParflexError, match=said):
        parflex.configure(load("screw-jack"), {"motor": 1.0, "spindle": 1.0})
    off = np.eye(len(q))[where] * 0.25
    with pytest.raises(
        InputError, match=r"coupling 'mesh': 'wheel' is off by 0\.25 rad; it requires wheel = -2 pinion"
    ):
        parflex.configure(robot, q + off)
    rates = np.eye(robot.nv)[robot.rates.index("wheel")] * 3
    with pytest.raises(InputError, match=r"coupling 'mesh': 'wheel' is off by 3 rad/s; it requires"):
        parflex.inverse_dynamics(robot, q, rates)


def test_what_contradicts_couplings_by_name_is_told_with_all_of_them_and_the_joint(tmp_path):
    """Along chains of couplings, in units; also what locks joints, and motors that a gear ties to each other."""
    jack, five = load("screw-jack"), load("geared-five-bar")
    both = r"the couplings 'belt', 'thread': they give 'table' 0.350382 m, and the pose 0.4 m; leave out one of 'motor'"
    with pytest.raises(UnreachableError, match=both):
        parflex.configure(jack, {"motor": 1.0, "table": 0.4})
    said = r"the couplings 'reducer', 'gears': they give 'right.shoulder' 0.84 rad"
    with pytest.raises(UnreachableError, match=said):
        parflex.configure(five, {"motor": 1.0, "right.shoulder": 1.0})
    with pytest.raises(InputError, match=r"'table' 0.000381972 m/s, and the velocity 1 m/s"):
        parflex.forward_dynamics(jack, None, {"motor": 1.0, "table": 1.0})
    with pytest.raises(InputError, match=r"'right.shoulder' -0.06 rad/s2, and the acceleration 1 rad/s2"):
        parflex.inverse_dynamics(five, None, None, {"motor": 1.0, "right.shoulder": 1.0})
    with pytest.raises(InputError, match=r"'left.elbow' = 1 rad/s: .* it can only be -0.0750853 rad/s"):
        parflex.inverse_dynamics(five, None, {"motor": 1.0, "left.elbow": 1.0})
    with pytest.raises(InputError, match=r"start.q: .* the coupling 'thread': 'table' is off by 0.649 m"):
        parflex.simulate(jack, None, 0.01, start={"q": [1.0, 1.0, 1.0, 0.0]})
    braked = load_robot("planetary", actuation="braked")
    with pytest.raises(InputError, match=r"the coupling 'willis': it gives 'sun' 3.5 rad/s, and the velocity 1 rad/s"):
        parflex.inverse_dynamics(braked, None, {"sun": 1.0, "carrier": 1.0})
    tied = '[actuation.tied]\nactuated = ["pinion", "wheel"]\n[motions.m]\nduration = 1\nmoves = [{ pinion = 1 }]\n'
    text = PAIR + '[[coupling]]\nname = "mesh"\njoint = "wheel"\nterms = { pinion = -2 }\n' + tied
    with pytest.raises(InputError, match="'mesh' couple 'pinion', 'wheel'"):
        parflex.simulate(parflex.load(write_robot(tmp_path, text), actuation="tied"), "m", 1.0)


def test_couplings_that_hold_joints_still_or_change_their_starts_are_told(tmp_path):
    twice = '[[coupling]]\nname = "b"\njoint = "wheel"\nterms = { pinion = 3 }\n'
    still = pair(tmp_path, "terms = { pinion = -2 }", twice)
    (immobile,) = (each for each in still.start_warnings() if each.code == "immobile-joint")
    assert immobile.text == "the couplings 'mesh', 'b' together leave 'pinion', 'wheel' no motion"
    text = PAIR.replace('name = "wheel"', 'name = "wheel"\nstart = 0.5').replace('"pinion"', '"pinion"\nstart = 0.5')
    text += '[[coupling]]\nname = "mesh"\njoint = "wheel"\nterms = { pinion = -2 }\n'
    path = write_robot(tmp_path, text, "both")
    (said,) = parflex.load(path).start_warnings()
    assert said.text.startswith(
        "the start contradicts the coupling 'mesh': it gives 'wheel' -1 rad, and the start 0.5 rad"
    )
    assert not load("differential").start_warnings() and not load("planetary").start_warnings()


def test_motors_on_both_sides_of_a_gear_leave_another_joint_free_and_it_is_named():
    geared = {"actuation.geared": {"actuated": ["motor", "spindle"]}}
    robot = load_robot("screw-jack", settings=geared, actuation="geared")
    assert parflex.configure(robot).condition.warnings == ["with the motors locked, 'swing' can still move"]


def test_a_joint_with_two_axes_is_named_by_one_of_them():
    with pytest.raises(RobotFileError, match=r"name 'nut.1' or 'nut.2'"):
        load_robot("nut-in-loop", settings={"coupling.0.joint": "nut"})


def test_couplings_of_legs_are_written_once_and_inherited(tmp_path):
    text = robot_file("geared-five-bar").read_text(encoding="utf-8").partition("[[coupling]]")[0]
    own = '[[legs.coupling]]\nname = "belt"\njoint = "elbow"\nterms = { shoulder = -0.5 }\noffset = "elbow"\n'
    write_robot(tmp_path, text.replace("[[legs.point]]", own + "[[legs.point]]", 1), "base")
    child = 'format = 1\nname = "child"\nextends = "base.toml"\n[[coupling]]\nname = "left.belt"\noffset = 0.3\n'
    with pytest.raises(RobotFileError):
        parflex.load(write_robot(tmp_path, child, "child"))  # rows of legs are rows of the legs' own table
    robot = parflex.load(tmp_path / "base.toml")
    belts = list(robot.closures.constraints)
    assert [row.name for row in belts] == ["left.belt", "right.belt"]
    assert belts[1].joints == ("right.elbow", "right.shoulder") and belts[1].offset == 1.15


def test_a_locked_joint_stops_what_is_coupled_to_it():
    braked = load_robot("planetary", actuation="braked")
    assert parflex.explain(braked).sizes["degrees_of_freedom"] == 1
    found = parflex.forward_dynamics(braked, None, None, {"sun": 0.5})
    assert found.accelerations[1] == 0
    assert found.accelerations[0] / found.accelerations[2] == pytest.approx(1 + 60 / 24, rel=1e-12)


def test_a_robot_whose_joints_are_coupled_has_the_general_form_and_is_told_and_drawn(capsys):
    robot, row = load("geared-five-bar"), "right.shoulder = -1.5 left.shoulder + 4.2"
    told = parflex.explain(robot)
    chapter = next(part for part in told.sections if part.key == "loops")
    assert chapter.title == "Loops and couplings" and 42 in chapter.equations
    assert any(f"gears: {row}" in line for line in chapter.text) and told.form == "general form"
    printed = run(capsys, "inverse", robot_file("geared-five-bar"), "--reactions")
    assert not printed.code and "efforts of couplings" in printed.out and "reducer" in printed.out
    assert row in run(capsys, "info", robot_file("geared-five-bar")).out
    axes = parflex.draw(robot).axes[0]
    assert sum(line.get_linestyle() == ":" for line in axes.lines) == 2  # from each coupled joint to the other
    shafts = [parflex.frames(robot)[name].position[:2] for name in ("motor", "left.shoulder", "right.shoulder")]
    single = [np.ravel(line.get_data()) for line in axes.lines if np.size(line.get_data()) == 2]
    assert all(any(np.allclose(point, shaft) for point in single) for shaft in shafts)
    assert {"reducer", "gears"} <= {text.get_text().strip() for text in axes.texts}


@pytest.mark.parametrize("name", ["geared-five-bar", "screw-jack", "nut-in-loop", BEAMS])
def test_wheels_and_threads_of_couplings_turn_and_slide_in_the_viewer(name):
    robot = load(name)
    session = Session(robot)
    shown, tree = session.scene, robot.tree
    mesh = next(mesh for mesh in shown.meshes if mesh.name == "couplings")
    coupled = {n for one in robot.description.coupling for n in (one.joint, *one.others)}
    moved = parflex.configure(robot, {robot.motors[0]: robot.home[tree.position_names.index(robot.motors[0])] + 0.5}).q
    marks = [part for part in shown.parts if part.group == "couplings" and part.link >= 0]
    assert {tree.links[part.link].name for part in marks} == coupled
    assert largest(shown.vertices(moved)[mesh.vertices] - shown.vertices(robot.home)[mesh.vertices]) > 1e-3 * shown.size
    said = session.reactions()[2]
    for one in robot.description.coupling:
        assert one.name in said


SOFT = 2e-3  # MuJoCo's hardest constraint gives way by 1e-4, times the ratio of the gears
ELASTIC = ("terms = { motor = 0.4 }", "terms = { motor = 0.4 }\nstiffness = 40\ndamping = 0.3")


@pytest.mark.parametrize("name", ["differential", "planetary", "screw-jack", "elastic"])
def test_accelerations_of_coupled_joints_are_those_of_mujoco(name, tmp_path, figure):
    pytest.importorskip("mujoco", minversion="3.2.3")
    base = "screw-jack" if name == "elastic" else name
    path = robot_file(base)
    if name == "elastic":
        path = write_robot(tmp_path, path.read_text(encoding="utf-8").replace(*ELASTIC), base)
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
    figure.below(f"{name} against MuJoCo, without its softness", max(worst[1::2]), 1e-10)
    if name in ("differential", "planetary"):  # a spindle amplifies the softness by a turn per lead
        figure.below(f"{name} against MuJoCo", max(worst[::2]), SOFT)


def test_a_jack_whose_joints_mimic_its_motor_has_the_inertia_and_bias_of_pinocchio(tmp_path, figure):
    pytest.importorskip("pinocchio", minversion="4.0")
    arm = '[[coupling]]\nname = "arm"\njoint = "swing"\nterms = { spindle = -0.7 }\noffset = -1.2\n'
    path = write_robot(tmp_path, robot_file("screw-jack").read_text(encoding="utf-8") + arm)
    robot, data = parflex.load(path), read_robot(path)
    for motor, rate in ((0.4, 3.0), (-2.0, 1.0), (25.0, -4.0)):
        at = parflex.configure(robot, {"motor": motor})
        M, c = mimic_equations(data, "motor", positions(at), rate)
        for acceleration in (0.0, 7.0):
            found = parflex.inverse_dynamics(robot, at, {"motor": rate}, {"motor": acceleration}, without=["friction"])
            told = found.efforts["motor"]
            figure("coupled jack against mimic joints", abs(told / (M * acceleration + c) - 1), 1e-11)
            assert told == pytest.approx(M * acceleration + c, rel=1e-11)
