"""Steps chosen by their error: estimates against true errors of steps, runs against closed forms and references."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.special import ellipj, ellipk
from support.free_robots import FREE, momenta, moving_start, robot
from support.mechanisms import invented
from support.oracles.references import read
from support.oracles.stops import Ball
from support.slider import SLIDER
from support.stop_robots import ball
from support.swinging import swinging

import parflex
from parflex import InputError
from parflex.cli.main import cli, main
from parflex.simulation.inputs import polynomials
from parflex.simulation.integrators import integrate
from parflex.simulation.integrators.integrate import Grid, method_named, run_loop
from parflex.simulation.integrators.system import NUMBERS, new_work
from parflex.simulation.outputs import run_record
from parflex.simulation.step_lengths.slow_motion import SlowMotion

ORDERS = {"gauss4": 4, "gauss6": 6, "generalized-alpha": 2}
RAMP = polynomials.linear(np.array([0.0, 10.0]), np.array([[0.0], [3.0]]))
PENDULUM = """
format = 1
name = "pendulum"
motion = "planar"
gravity = [0, -9.81, 0]
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
inertia = { mass = 2, centre = [0.5, 0, 0], about_centre = [0, 0, 0.1] }
"""


def slope(t, s):
    """The two swings of `swinging`, written out."""
    pull = 0.5 * (s[0] - s[1])
    return [s[2], s[3], -np.sin(s[0]) - pull + 0.3 * t, -4 * s[1] + pull - 0.1 * s[3]]


def exact(span, state, **more):
    return solve_ivp(slope, span, state, method="DOP853", rtol=1e-13, atol=1e-15, **more)


def swings():
    system, kernel = swinging(RAMP)
    return system._replace(metres=np.ones(2)), kernel


@pytest.mark.few
@pytest.mark.parametrize(("name", "longest"), [("gauss4", 0.3), ("gauss6", 0.6), ("generalized-alpha", 0.1)])
def test_the_estimated_error_of_a_step_is_near_the_true_one(name, longest, figure):
    system, kernel = swings()
    rng, method, ratios = np.random.default_rng(7), method_named(name), []
    x, y = np.empty((1, 5)), np.empty((1, 8))
    for _ in range(60):
        h, q, qd = rng.uniform(0.3, 1) * longest, rng.uniform(-1.5, 1.5, 2), rng.uniform(-2, 2, 2)
        work = new_work(system, method.stages, method.unknowns)
        work.numbers[NUMBERS.index("aim")] = 1e3  # all steps are as good
        assert method.steps(system, work, method.tableau, 1.0, h, 2, q, qd, 1e-14, x, y) == (1, 0)
        before = np.array([*q, *qd])
        assert method.steps(system, work, method.tableau, 1.0 + 2 * h, h, 1, q, qd, 1e-14, x, y) == (1, 0)
        true = exact((1.0 + 2 * h, 1.0 + 3 * h), before).y[:2, -1]
        ratios.append(work.numbers[NUMBERS.index("last error")] / np.abs(q - true).max())
    low, middle, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    figure(f"estimated error of a step of {name} in parts of the true one", float(middle), 1.0)
    # terms of the error that products of derivatives make are not in the estimate; the largest of two numbers is
    # compared, whose own errors pass through zero at different times
    assert 0.2 < middle < 5 and low > 0.1 and high < 20 and kernel is not None


@pytest.mark.parametrize("name", list(ORDERS))
def test_a_smaller_tolerance_makes_errors_smaller_in_all_rows(name, figure):
    system, kernel = swings()
    start, time, out = [1.2, 0, 0, 0.5], 4.0, 0.02
    true = exact((0, time), start, dense_output=True).sol
    errors, steps = [], []
    tolerances = [1e-6, 1e-8, 1e-10]
    for tolerance in tolerances:
        grid = Grid(out, 1, round(time / out), tolerance, 1e-3)
        track = run_loop(system, method_named(name), grid, start[:2], start[2:], ["a", "b"], 1e-3 * tolerance)
        assert track.status == "ok" and track.judged[0] <= tolerance and kernel is not None
        off = np.abs(track.y[:, :4] - true(track.t).T)
        errors.append(off[:, :2].max())
        assert off[:, 2:].max() < 10 * track.counts["steps"] * tolerance  # rates of up to 2/s
        steps.append(track.counts["steps"])
    if name != "generalized-alpha":  # whose steps end at rows
        assert track.judged[2] > out or name == "gauss4"
        assert steps[0] < len(track.t) / 2
    for k, tolerance in enumerate(tolerances):
        figure(f"{name}, error of a run in parts of tolerance and steps", float(errors[k] / tolerance / steps[k]), 1.0)
        assert errors[k] < 3 * steps[k] * tolerance  # each step adds about its error
    power = ORDERS[name] / (ORDERS[name] + 1)
    for earlier, later in pairwise(errors):
        assert 100 ** (power - 0.25) < earlier / later < 100 ** (power + 0.4)


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    path = tmp_path_factory.mktemp("swing") / "pendulum.toml"
    path.write_text(PENDULUM)
    return parflex.load(path)


def swing(t):
    """Angle below the horizontal of the pendulum that starts there at rest, by an elliptic function."""
    w, m = np.sqrt(2 * 9.81 * 0.5 / (0.1 + 2 * 0.25)), 0.5  # 90 degrees about the lowest place: sin(45 degrees)^2
    sn = ellipj(ellipk(m) - w * t, m)[0]
    return 2 * np.arcsin(np.sqrt(m) * sn) - np.pi / 2


@pytest.mark.parametrize("method", ["gauss4", "gauss6"])
def test_a_pendulum_swings_as_the_elliptic_function_in_all_rows_and_its_error_is_estimated(pendulum, method, figure):
    for tolerance in (1e-6, 1e-9):
        run = parflex.simulate(pendulum, None, 2.0, tolerance=tolerance, method=method)
        true = np.abs(run["q.arm"] - swing(run.t)).max()
        said = run.summary["estimated_error"]
        figure(f"{method}: estimated error of the run in parts of the true one", float(said["radians"] / true), 1.0)
        assert 0.5 < said["radians"] / true < 2  # what half the steps err by still is taken from the order
        assert true < run.summary["steps"] * 5 * tolerance
        assert run.summary["step_error"]["largest"] <= tolerance and run.summary["step"] is None
    assert "half the steps" in said["how"] and run.settings["tolerance"] == 1e-9
    assert run.summary["step_error"]["longest"] > 2e-3  # rows lie inside of steps


def test_a_force_that_jumps_ends_a_step(tmp_path):
    of = ball(tmp_path)

    def pushed(t):
        return {"ball": 5.0 if t > 0.3123 else 0.0}

    for method, most in (("gauss4", 1e-7), ("generalized-alpha", 1e-5)):
        run = parflex.simulate(of, None, 1.0, effort=pushed, tolerance=1e-9, method=method, check_steps=False)
        since = np.maximum(run.t - 0.3123, 0.0)
        assert np.abs(run["q.ball"] - 0.1 * (1 - np.cos(5.0 * since))).max() < most  # 5 N on 50 N/m, 2 kg


@pytest.mark.few
@pytest.mark.parametrize(("method", "most"), [("gauss4", 2e-6), ("gauss6", 2e-6), ("generalized-alpha", 2e-4)])
def test_stops_are_met_with_chosen_steps(tmp_path, method, most):
    of, start = ball(tmp_path, damping=40.0), {"pose": {"ball": 0.0}, "velocity": {"ball": 2.0}}
    run = parflex.simulate(
        of, None, 1.0, start=start, stops=True, tolerance=1e-9, method=method, out_step=5e-3, check_steps=False
    )
    met, state = Ball(2.0, 50.0, (-0.3, 0.1), 2e4, 40.0).run(1.0, 0.0, 2.0)
    assert [one["side"] for one in run.summary["stops"]] == [one.side for one in met]
    assert max(abs(one["time"] - true.time) for one, true in zip(run.summary["stops"], met, strict=True)) < most
    assert np.abs(run["q.ball"] - np.array([state(t)[0] for t in run.t])).max() < 10 * most  # at 2 m/s
    assert not [words for words in run.summary["warnings"] if "too short" in words]
    assert run.summary["step_error"]["shortest"] < 5e-4 < run.summary["step_error"]["longest"]


def test_a_sampled_controller_acts_with_chosen_steps(pendulum):
    runs = [
        parflex.simulate(pendulum, None, 0.5, controller=parflex.PD(40.0, 4.0, 0.01), check_steps=False, **steps)
        for steps in ({"tolerance": 1e-10}, {"step": 1e-4, "method": "gauss6"})
    ]
    assert np.abs(runs[0]["q.arm"] - runs[1]["q.arm"]).max() < 1e-8
    assert runs[0].summary["steps"] < runs[1].summary["steps"] / 5


def test_a_floating_robot_that_turns_and_bends_keeps_its_momentum_in_all_rows(figure):
    of = robot("bending-satellite")
    frames = [frame.name for frame in of.description.frame]
    run = parflex.simulate(
        of, None, 0.3, start=moving_start(of), without=FREE, frames=frames, tolerance=1e-9, check_steps=False
    )
    P, H = momenta(of, run)
    lost = max(np.abs(P - P[0]).max() / np.linalg.norm(P[0]), np.abs(H - H[0]).max() / np.linalg.norm(H[0]))
    figure("momentum lost with chosen steps", float(lost), 1e-6)
    assert run.status == "ok" and lost < 1e-6  # some hundred steps of 1e-9 m, in rates of up to 1e3/s


@pytest.mark.parametrize("method", ["gauss4", "gauss6"])
def test_the_squeezer_moves_as_the_reference_with_chosen_steps(method, figure):
    table = read("squeezer")
    of = parflex.load(invented("squeezer"))
    run = parflex.simulate(
        of, None, 0.03, effort={"K1": 0.033}, out_step=1e-3, method=method, tolerance=1e-10, check_steps=False
    )
    off = max(float(np.abs(run[f"q.{name}"] - table[name]).max()) for name in table if f"q.{name}" in run)
    figure(f"squeezer with steps chosen by errors, {method}", off, 1e-5)
    assert run.status == "ok" and off < 1e-5  # a few hundred steps of 1e-10 m each, 0.007 m from a joint, 1e3 rad/s


# -- steps of runs that give none ------------------------------------------------------------------------------


def test_a_robot_whose_steps_take_too_many_evaluations_gets_shorter_ones(monkeypatch):
    of = parflex.load("3rrr")
    monkeypatch.setattr(run_record, "EFFORT", (*run_record.EFFORT, "left_evaluations", "left_steps"))
    usual = parflex.simulate(of, None, 0.5, check_width=False).summary
    each = evaluations_of_a_kept_step(usual)
    assert usual["step"] == 5e-4 and each < 20  # 115 while stages started with carried accelerations alone
    monkeypatch.setattr("parflex.simulation.step_lengths.default_step.LABOUR", each / 2)
    chosen = parflex.simulate(of, None, 0.5, check_width=False).summary
    assert chosen["step"] < 5e-4 and "did not converge" in chosen["step_choice"]
    assert evaluations_of_a_kept_step(chosen) < each / 2


def evaluations_of_a_kept_step(summary):
    """Without rows that were computed with rates which became poor before."""
    return (summary["evaluations"] - summary["left_evaluations"]) / (summary["steps"] - summary["left_steps"])


def test_slow_modes_of_nearly_one_shape_move_what_the_equation_of_motion_says():
    """x'' = a - K x from rest, by the exponential of its matrix; shapes are told apart by 1e-8 to 1 of the stiffness.

    Modes by themselves said 357 m/s of an `orthoglide` that falls with 3 m/s, and asked for steps a tenth as long.
    """
    rng = np.random.default_rng(7)
    for apart in (1e-8, 1e-6, 1e-3, 1.0):
        a, coupling = rng.normal(size=3), rng.uniform(1, 9)
        K = np.diag([0.1, 0.1 + apart, 0.3]) + coupling * np.eye(3, k=2) + coupling * np.eye(3, k=1)
        values, shapes = np.linalg.eig(K)
        one, none, lasting = np.linalg.solve(shapes, a[:, None]).T, np.zeros((1, 3)), np.minimum(1, 1 / np.sqrt(values))
        found = SlowMotion(shapes, one, none, none, 0 * one[0], lasting, one.T)
        still, unit = np.zeros((3, 3)), np.eye(3)
        moved = expm(np.block([[still, unit, still], [-K, still, unit], [still, still, still]])) @ [*np.zeros(6), *a]
        # over a second a slow push falls by a part of itself, which the estimate leaves out: at most half of it here
        assert 0.3 < found.speeds.max() / np.abs(moved[3:6]).max() < 3
        assert 0.3 < found.ways.max() / (2 * np.abs(moved[:3]).max()) < 3
        assert np.abs(found.coordinate_gains[:, 0] - a).max() < 1e-6 * np.abs(a).max()  # all of them, to rounding


def test_a_fast_robot_gets_a_shorter_step():
    turning = parflex.simulate(parflex.load(invented("squeezer")), None, 0.03, effort={"K1": 0.033}).summary
    assert turning["step"] < 5e-4 and "in a turn at" in turning["step_choice"]


def test_an_excited_frequency_is_resolved_and_said(tmp_path):
    stiff = ball(tmp_path, spring=2e7)  # 503 Hz
    run = parflex.simulate(stiff, None, 0.05, start={"pose": {"ball": 0.01}})
    period = 2 * np.pi / np.sqrt(2e7 / 2)
    assert period / 25 < run.summary["step"] <= period / 20 and "503 Hz" in run.summary["step_choice"]
    still = parflex.simulate(stiff, None, 0.05)
    assert still.summary["step"] == 5e-4 and still.summary["step_choice"].endswith("asks for less")


def test_forces_that_vibrate_faster_than_chosen_steps_follow_are_said(tmp_path):
    """A tenth of a micrometre is not seen beside half a metre, but its 2 N of force are: four steps in a period."""
    ball(tmp_path, spring=2e7)  # 503 Hz
    path = tmp_path / "ball.toml"
    path.write_text(path.read_text() + '\n[[frame]]\nname = "cart"\njoint = "prismatic"\ninertia = { mass = 1e-3 }\n')
    stiff = parflex.load(path)
    pushed = {"start": {"pose": {"ball": 1e-7}, "velocity": {"cart": 10.0}}}
    usual = parflex.simulate(stiff, None, 0.05, **pushed).summary
    assert usual["step"] == 5e-4 and "also vibrate at 503 Hz, with 4 steps in a period" in usual["step_choice"]
    assert not any("also vibrate" in told for told in usual["warnings"])
    asked = parflex.simulate(stiff, None, 0.05, reactions=True, **pushed).summary
    assert any(told.endswith("for these give a step of 9e-05") for told in asked["warnings"])
    short = parflex.simulate(stiff, None, 0.05, reactions=True, step=9e-5, **pushed).summary
    assert not any("also vibrate" in told for told in short["warnings"])


# -- what cannot be -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "key", "words"),
    [
        ({"step": 0.02, "tolerance": 1e-9}, "step", "the step 0.02 s is too long for the tolerance 1e-09 m"),
        ({"tolerance": 1e-17}, "tolerance", "rounding forbids the tolerance 1e-17 m"),
        ({"tolerance": 1e-6, "method": "rk4"}, "tolerance", "'rk4' does not estimate errors"),
    ],
)
def test_tolerances_that_cannot_be_kept_are_refused_in_one_sentence(pendulum, arguments, key, words):
    with pytest.raises(InputError, match=words) as refusal:
        parflex.simulate(pendulum, None, 1.0, **arguments)
    assert refusal.value.key == key and "give" in refusal.value.hint and "\n" not in str(refusal.value)


def test_the_step_and_the_tolerance_that_an_error_names_work(pendulum):
    for arguments, name in (({"step": 0.02, "tolerance": 1e-9}, "step"), ({"tolerance": 1e-17}, "tolerance")):
        with pytest.raises(InputError) as refusal:
            parflex.simulate(pendulum, None, 1.0, **arguments)
        named = float(refusal.value.hint.split("at ")[1].split()[1].rstrip(","))
        run = parflex.simulate(pendulum, None, 0.2, **(arguments | {name: named}), check_steps=False)
        assert run.status == "ok"


def test_the_command_says_steps_and_errors(tmp_path, pendulum, capsys):
    out = str(tmp_path / "run.csv")
    words = ["simulate", pendulum.file, "--time", "0.5", "--tolerance", "1e-8", "--out", out]
    answer = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert answer["step"] is None and answer["step_choice"].startswith("chosen by their errors")
    assert answer["step_error"]["largest"] <= 1e-8 == answer["settings"]["tolerance"]
    assert 0 < answer["estimated_error"]["radians"] < 1e-5 and answer["estimated_error"]["metres"] == 0
    assert {"steps", "rejected", "evaluations", "iterations"} <= set(answer)
    text = CliRunner().invoke(cli, [*words, "--no-check-steps"]).stdout
    assert "largest error of a step" in text and "half the steps" not in text
    with pytest.raises(SystemExit) as left:
        main(["simulate", pendulum.file, "--time", "1", "--step", "0.02", *words[4:]])
    sentence = capsys.readouterr().err
    assert left.value.code == 2
    assert "too long for the tolerance" in sentence and len(sentence.strip().splitlines()) <= 3


def test_small_vibrations_do_not_grow_under_short_steps_of_generalized_alpha(tmp_path):
    """Steps whose first correction is below the tolerance take it all the same."""
    path = tmp_path / "slider.toml"
    path.write_text(SLIDER)
    run = parflex.simulate(
        parflex.load(path), None, 0.2, pose={"s": 1e-5}, method="generalized-alpha", step=1e-5, out_step=1e-3
    )
    energy = run["energy.total"] / run["energy.total"][0]
    # omega h = 5e-3: the method takes 1e-6 of the energy in 0.2 s; without the correction it grows by a quarter
    assert energy == pytest.approx(np.ones(len(energy)), abs=1e-4)


def test_the_error_of_a_run_is_told_where_rows_end_its_steps(tmp_path):
    path = tmp_path / "slider.toml"
    path.write_text(SLIDER.replace("5e5", "50"))
    run = parflex.simulate(
        parflex.load(path), None, 0.5, pose={"s": 0.5}, method="generalized-alpha", tolerance=1e-4, out_step=1e-3
    )
    true = np.abs(run["q.s"] - 0.5 * np.cos(5 * run["t"])).max()
    # steps of half the length, of second order: within some tens of percent of what is told
    assert 0.5 < run.summary["estimated_error"]["metres"] / true < 2


@pytest.mark.parametrize(("tolerance", "out_step"), [(1e-6, 0.1), (1e-8, 0.1), (1e-4, 0.02)])
def test_a_tolerance_of_dopri5_gives_the_error_of_the_run_also_where_rows_end_its_steps(tolerance, out_step):
    of = parflex.load("rx90")
    words = {"time": 1.0, "without": ["friction"], "out_step": out_step}
    exact = parflex.simulate(of, None, method="gauss6", step=5e-4, **words)
    run = parflex.simulate(of, None, method="dopri5", tolerance=tolerance, **words)
    off = max(np.abs(run[f"6.{axis}"] - exact[f"6.{axis}"]).max() for axis in "xyz")
    assert 0.5 < run.summary["estimated_error"]["metres"] / off < 2
    assert "estimated_error" not in parflex.simulate(of, None, method="dopri5", **words).summary


def test_a_fast_slide_is_told_as_such(tmp_path):
    path = tmp_path / "slide.toml"
    path.write_text('format = 1\nname = "s"\n[[frame]]\nname = "m"\njoint = "prismatic"\ninertia = { mass = 1 }\n')
    path.write_text(path.read_text() + "place = { position = [1, 0, 0] }\n")
    run = parflex.simulate(parflex.load(path), None, 0.01, start={"velocity": {"m": 1000.0}})
    assert "a slide of 6.28 m at 1e+03 m/s" in run.summary["step_choice"]


@pytest.mark.parametrize("tolerance", [None, 1e-6])
def test_a_run_does_not_depend_on_how_fast_the_machine_is(tolerance, monkeypatch):
    """Calls of the loop are short enough to be watched; where they end must follow from the run, not from a clock."""
    robot = parflex.load("dualemps")
    asked = {"without": ["friction"], "tolerance": tolerance}
    found = parflex.simulate(robot, "square", 0.05, **asked)
    pauses, now = random.Random(1), [0.0]

    def halting() -> float:
        now[0] += pauses.choice([1e-5, 1e-3, 0.3])
        return now[0]

    monkeypatch.setattr(integrate, "perf_counter", halting)
    again = parflex.simulate(robot, "square", 0.05, **asked)
    assert all(np.array_equal(found[column], again[column]) for column in found)


def test_vibrations_of_deflections_that_are_asked_for_count_beside_each_other(tmp_path):
    """A rotor J, a beam without mass and a mass m at its tip under a constant effort T, in closed form.

    The robot turns by a radian, which hides a vibration of the beam a thousand times smaller from the choice of steps,
    unless its deflection is asked for: k = 3 EI / L^3, omega^2 = k (1/m + L^2/J), L T / (J omega^2) (cos omega t - 1).
    """
    L, EI, J, m, T = 0.5, 7e10 * 0.02 * 0.04**3 / 12, 0.02, 0.3, 0.4
    text = f"""format = 1
name = "whip"
motion = "planar"
end_effector = "one.tip"
[materials.light]
elastic_modulus = 7e10
density = 1e-3
[sections.r]
shape = "rectangle"
y = 0.04
z = 0.02
[[frame]]
name = "one"
joint = "revolute"
actuated = true
motor_inertia = {J}
beam = {{ length = {L}, material = "light", section = "r" }}
[[frame]]
name = "load"
parent = "one.tip"
point_masses = [{{ mass = {m} }}]
"""
    (tmp_path / "whip.toml").write_text(text, encoding="utf-8")
    robot = parflex.load(tmp_path / "whip.toml")
    words = {"effort": {"one": T}, "outputs": ["one.deflection@1"], "out_step": 0.01, "without": ["gravity"]}
    run = parflex.simulate(robot, None, 0.4, **words)
    omega = np.sqrt(3 * EI / L**3 * (1 / m + L**2 / J))
    expected = L * T / (J * omega**2) * (np.cos(omega * run["t"]) - 1)
    assert np.ptp(run["q.one"]) * L > 100 * np.ptp(expected)
    # a vibration is to be right to some hundredths of the largest
    assert np.abs(run["one.tangent_y@1"] - expected).max() < 0.03 * np.ptp(expected)
    assert run.summary["steps"] > 2 * parflex.simulate(robot, None, 0.4, **words | {"outputs": []}).summary["steps"]
