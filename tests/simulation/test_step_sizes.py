"""Steps of runs: chosen by their error, chosen by frequencies, given and long; in all units."""

import itertools
import random
import tomllib
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ellipj, ellipk
from support.cases import VERIFY
from support.command_line import answered, refused
from support.free_robots import FREE, momenta, moving_start
from support.oracles.references import read
from support.oracles.stops import Ball
from support.paths import ROOT
from support.robots import any_robot, load_robot, robot_file
from support.stop_robots import ball
from support.swinging import exact, swinging

import parflex
from parflex.integrators import common
from parflex.integrators.driver import Grid, method_named, new_work, run_loop
from parflex.trajectories import trajectory

ORDERS = {"gauss4": 4, "gauss6": 6, "generalized-alpha": 2}
RAMP = trajectory.linear(np.array([0.0, 10.0]), np.array([[0.0], [3.0]]))


def coupled():
    system, kernel = swinging(RAMP)
    return system._replace(metres=np.ones(2)), kernel


@pytest.mark.verify
@pytest.mark.parametrize(("name", "longest"), [("gauss4", 0.3), ("gauss6", 0.6), ("generalized-alpha", 0.1)])
def test_the_estimated_error_of_a_step_is_near_the_true_one(name, longest, figure):
    system, kernel = coupled()
    rng, method, ratios = np.random.default_rng(7), method_named(name), []
    x, y = np.empty((1, 5)), np.empty((1, 8))
    for _ in range(60):
        h, q, qd = rng.uniform(0.3, 1) * longest, rng.uniform(-1.5, 1.5, 2), rng.uniform(-2, 2, 2)
        work = new_work(system, method.stages, method.unknowns)
        work.numbers[common.Number.AIM] = 1e3  # all steps are as good
        assert method.steps(system, work, method.tableau, 1.0, h, 2, q, qd, 1e-14, x, y) == (1, 0)
        before = np.array([*q, *qd])
        assert method.steps(system, work, method.tableau, 1.0 + 2 * h, h, 1, q, qd, 1e-14, x, y) == (1, 0)
        true = exact((1.0 + 2 * h, 1.0 + 3 * h), before).y[:2, -1]
        ratios.append(work.numbers[common.Number.LAST_ERROR] / np.abs(q - true).max())
    low, middle, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    figure(f"estimated error of a step of {name} in parts of the true one", float(middle), 1.0)
    # terms of the error that products of derivatives make are not in the estimate; the largest of two numbers is
    # compared, whose own errors pass through zero at different times
    assert 0.2 < middle < 5 and low > 0.1 and high < 20 and kernel is not None


@pytest.mark.parametrize("name", list(ORDERS))
def test_a_smaller_tolerance_makes_errors_smaller_in_all_rows(name, figure):
    system, kernel = coupled()
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
def pendulum():
    return load_robot("pendulum")


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


def test_a_force_that_jumps_ends_a_step():
    of = ball()

    def pushed(t):
        return {"ball": 5.0 if t > 0.3123 else 0.0}

    for method, most in (("gauss4", 1e-7), ("generalized-alpha", 1e-5)):
        words = {"tolerance": 1e-9, "method": method, "check_steps": False, "breaks": [0.3123]}
        run = parflex.simulate(of, None, 1.0, effort=pushed, **words)
        since = np.maximum(run.t - 0.3123, 0.0)
        assert np.abs(run["q.ball"] - 0.1 * (1 - np.cos(5.0 * since))).max() < most  # 5 N on 50 N/m, 2 kg


@pytest.mark.few("gauss6-2e-06")
@pytest.mark.parametrize(("method", "most"), [("gauss4", 2e-6), ("gauss6", 2e-6), ("generalized-alpha", 2e-4)])
def test_stops_are_met_with_chosen_steps(method, most):
    of, start = ball(damping=40.0), {"pose": {"ball": 0.0}, "velocity": {"ball": 2.0}}
    words = {"tolerance": 1e-9, "method": method, "out_step": 5e-3, "check_steps": False}
    run = parflex.simulate(of, None, 1.0, start=start, stops=True, **words)
    met, state = Ball(2.0, 50.0, (-0.3, 0.1), 2e4, 40.0).run(1.0, 0.0, 2.0)
    assert [stop["side"] for stop in run.summary["stops"]] == [true.side for true in met]
    assert max(abs(stop["time"] - true.time) for stop, true in zip(run.summary["stops"], met, strict=True)) < most
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


@pytest.mark.verify
def test_a_floating_robot_that_turns_and_bends_keeps_its_momentum_in_all_rows(figure):
    of = any_robot("bending-satellite")
    frames = [frame.name for frame in of.description.frame]
    words = {"without": FREE, "frames": frames, "tolerance": 1e-9, "check_steps": False}
    run = parflex.simulate(of, None, 0.3, start=moving_start(of), **words)
    P, H = momenta(of, run)
    lost = max(np.abs(P - P[0]).max() / np.linalg.norm(P[0]), np.abs(H - H[0]).max() / np.linalg.norm(H[0]))
    figure("momentum lost with chosen steps", float(lost), 1e-6)
    assert run.status == "ok" and lost < 1e-6  # some hundred steps of 1e-9 m, in rates of up to 1e3/s


@pytest.mark.parametrize("method", ["gauss4", "gauss6"])
def test_the_squeezer_moves_as_the_reference_with_chosen_steps(method, figure):
    table = read("squeezer")
    of = load_robot("squeezer")
    words = {"out_step": 1e-3, "method": method, "tolerance": 1e-10, "check_steps": False}
    run = parflex.simulate(of, None, 0.03, effort={"K1": 0.033}, **words)
    off = max(float(np.abs(run[f"q.{name}"] - table[name]).max()) for name in table if f"q.{name}" in run)
    figure(f"squeezer with steps chosen by errors, {method}", off, 1e-5)
    assert run.status == "ok" and off < 1e-5  # a few hundred steps of 1e-10 m each, 0.007 m from a joint, 1e3 rad/s


@pytest.mark.parametrize(
    ("arguments", "key", "words"),
    [
        ({"step": 0.02, "tolerance": 1e-9}, "step", "the step 0.02 s is too long for the tolerance 1e-09 m"),
        ({"tolerance": 1e-17}, "tolerance", "rounding forbids the tolerance 1e-17 m"),
        ({"tolerance": 1e-6, "method": "rk4"}, "step", "'rk4' does not estimate errors"),
        ({"method": "rk4"}, "step", "'rk4' does not estimate errors"),
    ],
)
def test_impossible_tolerances_are_refused_and_the_advised_values_work(pendulum, arguments, key, words):
    with pytest.raises(parflex.InputError, match=words) as refusal:
        parflex.simulate(pendulum, None, 1.0, **arguments)
    assert refusal.value.key == key and "give" in refusal.value.hint and "\n" not in str(refusal.value)
    if "method" not in arguments:
        value = float(refusal.value.hint.split("at ")[1].split()[1].rstrip(","))
        assert parflex.simulate(pendulum, None, 0.2, **(arguments | {key: value}), check_steps=False).status == "ok"


def test_the_command_line_reports_steps_and_errors(tmp_path, pendulum, capsys):
    words = ["simulate", pendulum.file, "--tolerance", "1e-8", "--out", str(tmp_path / "run.csv")]
    answer = answered(capsys, *words, "--time", "0.5")
    assert answer["step"] is None and answer["step_choice"].startswith("chosen by their errors")
    assert answer["step_error"]["largest"] <= 1e-8 == answer["settings"]["tolerance"]
    assert 0 < answer["estimated_error"]["radians"] < 1e-5 and answer["estimated_error"]["metres"] == 0
    assert {"steps", "rejected", "evaluations", "iterations"} <= set(answer)
    assert "too long for the tolerance" in refused(capsys, *words, "--time", "1", "--step", "0.02")["message"]


def test_small_vibrations_do_not_grow_under_short_steps_of_generalized_alpha():
    """Steps whose first correction is below the tolerance take it all the same."""
    slider = load_robot("block", settings={"frame.block.spring": {"stiffness": 5e5}})
    words = {"pose": {"block": 1e-5}, "method": "generalized-alpha", "step": 1e-5, "out_step": 1e-3}
    energy = parflex.simulate(slider, None, 0.2, **words)["energy.total"]
    # omega h = 5e-3: the method takes 1e-6 of the energy in 0.2 s; without the correction it grows by a quarter
    assert energy / energy[0] == pytest.approx(np.ones(len(energy)), abs=1e-4)


def test_the_error_of_a_run_is_estimated_where_rows_end_its_steps():
    slider = load_robot("block", settings={"frame.block.spring": {"stiffness": 50}})
    words = {"pose": {"block": 0.5}, "method": "generalized-alpha", "tolerance": 1e-4, "out_step": 1e-3}
    run = parflex.simulate(slider, None, 0.5, **words)
    true = np.abs(run["q.block"] - 0.5 * np.cos(5 * run["t"])).max()
    assert 0.5 < run.summary["estimated_error"]["metres"] / true < 2  # steps of half the length, of second order


@pytest.mark.parametrize(("tolerance", "out_step"), [(1e-6, 0.1), (1e-8, 0.1), (1e-4, 0.02)])
def test_a_tolerance_of_dopri5_gives_the_error_of_the_run_also_where_rows_end_its_steps(tolerance, out_step):
    of = parflex.load("rx90")
    words = {"time": 1.0, "without": ["friction"], "out_step": out_step}
    exact = parflex.simulate(of, None, method="gauss6", step=5e-4, **words)
    run = parflex.simulate(of, None, method="dopri5", tolerance=tolerance, **words)
    off = max(np.abs(run[f"6.{axis}"] - exact[f"6.{axis}"]).max() for axis in "xyz")
    assert 0.5 < run.summary["estimated_error"]["metres"] / off < 2
    assert "estimated_error" not in parflex.simulate(of, None, method="dopri5", **words).summary


def released(omega, ratio, size, periods, **words):
    """Error and summary of a spring of a frequency and damping ratio, released at a distance, in closed form."""
    time, damping = periods * 2 * np.pi / omega, {"viscous": 4 * ratio * omega}
    spring = {"stiffness": 2 * omega**2}  # of 2 kg
    robot = load_robot("block", settings={"frame.block.spring": spring, "frame.block.friction": damping})
    run = parflex.simulate(robot, None, time, start={"pose": {"block": size}}, out_step=time / 487, **words)
    damped = omega * np.sqrt(1 - ratio**2)
    shape = np.cos(damped * run.t) + ratio * omega / damped * np.sin(damped * run.t)
    return np.abs(run["q.block"] / size - np.exp(-ratio * omega * run.t) * shape).max(), run.summary


@pytest.mark.parametrize("size", [1e-3, 0.1])
@pytest.mark.parametrize(("omega", "ratio", "periods"), [(3000.0, 0.0, 50), (7.0, 0.0, 500), (300.0, 0.02, 50)])
def test_default_steps_keep_the_phase_of_vibrations_of_any_size(omega, ratio, periods, size, figure):
    off, summary = released(omega, ratio, size, periods)
    figure(f"{periods} periods of {size:g} m, error in parts of it", float(off), 1e-3)
    assert off < 1e-3 and not summary["warnings"] and summary["step"] is None


def test_fixed_steps_that_lose_the_phase_are_warned_of():
    coarse, fine = (released(7.0, 0.0, 0.1, 500, step=step) for step in (0.15, 5e-3))
    assert coarse[0] > 0.5 > 1e-2 > fine[0] and not fine[1]["warnings"]
    (said,) = coarse[1]["warnings"]
    assert "errors of the steps of" in said


@pytest.mark.parametrize("tolerance", [None, 1e-6])
def test_a_run_does_not_depend_on_the_speed_of_the_machine(tolerance, monkeypatch):
    """Calls of the loop are short enough to be watched; where they end must follow from the run, not from a clock."""
    robot, words = parflex.load("dualemps"), {"without": ["friction"], "tolerance": tolerance}
    first = parflex.simulate(robot, "square", 0.05, **words)
    pauses = random.Random(1)
    clock = itertools.accumulate(pauses.choice([1e-5, 1e-3, 0.3]) for _ in itertools.count())
    monkeypatch.setattr("parflex.integrators.driver.perf_counter", lambda: next(clock))
    second = parflex.simulate(robot, "square", 0.05, **words)
    assert all(np.array_equal(first[column], second[column]) for column in first)


def test_vibrations_far_smaller_than_the_motion_are_resolved():
    """A rotor J, a beam without mass and a mass m at its tip under a constant effort T, in closed form.

    The robot turns by a radian, and the beam vibrates a thousand times less: k = 3 EI / L^3,
    omega^2 = k (1/m + L^2/J), L T / (J omega^2) (cos omega t - 1).
    """
    L, EI, J, m, T = 0.5, 7e10 * 0.02 * 0.04**3 / 12, 0.02, 0.3, 0.4
    words = {"effort": {"rotor": T}, "outputs": ["rotor.deflection@1"], "out_step": 0.01, "without": ["gravity"]}
    run = parflex.simulate(load_robot("whip"), None, 0.4, **words)
    omega = np.sqrt(3 * EI / L**3 * (1 / m + L**2 / J))
    expected = L * T / (J * omega**2) * (np.cos(omega * run["t"]) - 1)
    assert np.ptp(run["q.rotor"]) * L > 100 * np.ptp(expected)
    # a vibration is to be right to some hundredths of the largest
    assert np.abs(run["rotor.tangent_y@1"] - expected).max() < 0.03 * np.ptp(expected)


def circled(step: float, stiffer: float = 1.0, time: float = 1.0) -> parflex.Run:
    """Run the circle of the DualEMPS, whose loop is closed by a blade that hardly stretches."""
    settings = {"axial": "mean", "materials.dural.elastic_modulus": 74e9 * stiffer}
    robot = parflex.load("dualemps", settings=settings)
    return parflex.simulate(robot, "circle", time, step=step, out_step=0.01, without=["friction"], check_width=False)


@pytest.mark.verify
@pytest.mark.parametrize("step", [2e-3, 1e-2])
def test_steps_much_longer_than_axial_vibrations_converge_at_once(step, figure):
    """Accelerations of stages, carried on, stretch the blades by far more than they are: such starts are refused."""
    summary = circled(step, time=1.0 if VERIFY else 0.3).summary
    each = summary["iterations"] / summary["steps"]
    figure(f"iterations of a step of {1e3 * step:g} ms", each, 4.0)
    assert summary["status"] == "ok" and summary["rejected"] == 0 and each < 4
    assert summary["jacobians"] > 1  # matrices that were factored


@pytest.mark.verify
def test_what_newton_leaves_does_not_add_up_in_stiff_modes(figure):
    """A rate that a step leaves in a stiff mode vibrates on, h w times larger than the change of a stage by it."""
    paths = [np.column_stack([run["P.x"], run["P.y"]]) for run in (circled(h, 1e3) for h in (5e-4, 2.5e-4))]
    apart = float(np.linalg.norm(paths[0] - paths[1], axis=1).max())
    figure("stiff blades, steps halved (m)", apart, 1.5e-11)
    assert apart < 1.5e-11  # 4000 steps, each within 1e-12 of its stages, most of it at random


@pytest.mark.verify
def test_a_platform_and_its_stiff_legs_start_their_stages_as_one_motion(figure):
    """Let go with strokes held; rates carried on beside positions that go on stretched the legs: 3.7 iterations."""
    robot = parflex.load("gough-stewart-beams")
    home = parflex.configure(robot).q
    strokes = np.array([home[robot.tree.links[robot.tree.number(name)].q][0] for name in robot.motors])
    summary = parflex.simulate(
        robot, lambda t: (strokes, np.zeros(6), np.zeros(6)), 0.2, step=5e-4, out_step=0.01, start="rest",
        without=["friction"], check_width=False,
    ).summary  # fmt: skip
    each = summary["iterations"] / summary["steps"]
    figure("iterations of a step of a platform that is let go", each, 3.2)
    assert summary["status"] == "ok" and each < 3.2


@pytest.mark.parametrize("radius", [0.2, 0.8])
def test_long_steps_of_generalized_alpha_that_do_not_converge_are_made_in_parts(radius):
    """A load that jumps, 8.5 steps in a period: the blade swings about F l^3/3EI, where the run ended at once."""
    words = {"start": "rest", "step": 0.02, "out_step": 0.02, "method": "generalized-alpha", "radius": radius}
    run = parflex.simulate(load_robot("blade"), None, 6.0, wrench={"hand": [0, 5, 0]}, **words)
    static = 5 * 0.6**3 / (3 * 210e9 * 0.03 * 0.01**3 / 12)
    assert run.status == "ok" and run.summary["rejected"] > 0
    # twice it, and what the first step adds; the mean of 35 periods
    assert run["hand.y"].max() < 2.1 * static and run["hand.y"].mean() == pytest.approx(static, rel=0.05)


FIRST = 0.01  # s: of the first run; in seconds the first step would be that of all runs, 0.5 ms


def constants(length, time, mass):
    """Return the settings of a scaled robot: dimensionless numbers, in units of length, time and mass."""
    acceleration, force, inertia = length / time**2, mass * length / time**2, mass * length**2
    values = {"thick": 0.01 * length, "wide": 0.03 * length, "centre": 0.11 * length, "length": 0.4 * length}
    values |= {"near": 0.48 * length, "mass": 0.7 * mass, "tip": 0.3 * mass, "density": 2700 * mass / length**3}
    values |= {"turning": 0.002 * inertia, "tip_turning": 1e-4 * inertia, "gravity": -9.81 * acceleration}
    values |= {"modulus": 2e9 * force / length**2, "stiffness": 30.0 * force / length, "rubbing": 16.0 * force}
    return {f"constants.{name}": value for name, value in values.items()}


def scaled(name, *units):
    of = tomllib.loads(robot_file(name).read_text())["constants"]
    settings = constants(*units)
    return load_robot(name, settings={key: settings[key] for key in (f"constants.{word}" for word in of)})


def arm_run(length, time, mass):
    """Gravity, and a pulse of the motor as a function with a jump."""
    moment = mass * length**2 / time**2

    def pulse(t):
        return 2.0 * moment * np.sin(40 * t / time) * (t < 0.0537 * time)

    robot = scaled("scaled-arm", length, time, mass)
    words = {"breaks": [0.0537 * time], "out_step": 2e-3 * time}
    return parflex.simulate(robot, None, 0.2 * time, effort={"shoulder": pulse}, **words)


def crank_run(length, time, mass):
    """A table of efforts turns the crank until the slide, which rests at first, sticks."""
    moment = mass * length**2 / time**2
    table = (np.array([0, 0.1, 0.1003, 0.2]) * time, np.array([0.0, 1.5, -0.5, 0.0]) * moment)
    robot = scaled("scaled-crank", length, time, mass)
    return parflex.simulate(robot, None, 0.6 * time, effort={"crank": table}, out_step=2e-3 * time)


def draws(seed, cases):
    """Units of length, time and mass of small robots: materials are those of large ones within some powers of ten."""
    draw = np.random.default_rng(seed)
    for power, faster, heavier in draw.uniform((-5, -1, -1), (0, 0, 1), (cases, 3)):
        yield float(10**power), float(FIRST * 10 ** (power + faster)), float(10 ** (3 * power + heavier))


@pytest.mark.parametrize("of", [arm_run, crank_run])
@pytest.mark.parametrize(("seed", "cases"), [(4, 2), pytest.param(5, 20, marks=pytest.mark.verify)])
def test_a_scaled_problem_takes_the_same_steps_to_the_scaled_answer(of, seed, cases):
    first = of(1.0, FIRST, 1.0)
    end = "hand" if of is arm_run else "slide"
    for length, time, mass in draws(seed, cases):
        run = of(length, time, mass)
        what = (length, time, mass)
        # steps of short runs begin shorter, and joints stick at other roundings
        assert run.summary["steps"] == pytest.approx(first.summary["steps"], rel=0.05), what
        assert len(run.summary["warnings"]) == len(first.summary["warnings"]), (what, run.summary["warnings"])
        assert len(run.summary.get("sticks", ())) == len(first.summary.get("sticks", ()))
        units = {f"{end}.x": length, f"{end}.y": length, "energy.kinetic": mass * (length / time * FIRST) ** 2}
        for name, unit in units.items():
            # iterations end at 1e-12 typical lengths; joints that come to rest pass it on to what follows
            assert run[name] / unit == pytest.approx(first[name], abs=1e-7 * np.abs(first[name]).max()), (name, what)
    assert of is arm_run or first.summary["sticks"]


def bare_run(scale, driven):
    """A slide on a joint that turns, with a buffer of 1 kHz, and no length: it is thrown and pushed, or prescribed."""
    settings = {"frame.turn.inertia.about_centre": [0.1 * scale**2] * 3}
    robot, way = load_robot("buffered-slide", settings=settings), 2 * scale

    def motion(t):
        sines, cosines = np.sin([7 * t, 5 * t]) * [1, way], np.cos([7 * t, 5 * t]) * [1, way]
        return [sines, cosines * [7, 5], -sines * [49, 25]]

    if driven:
        return parflex.simulate(robot, motion, 0.1, start={"pose": {"buffer": 0.01 * scale}}, out_step=0.01)
    push = ([0, 0.1, 0.1, 0.4], np.array([30.0, 30, 0, 0]) * scale)
    effort = {"slide": push, "turn": ([0, 0.4], [0.2 * scale**2] * 2)}
    return parflex.simulate(robot, None, 0.4, start={"velocity": {"slide": 40.0 * scale}}, effort=effort, out_step=0.01)


@pytest.mark.parametrize("driven", [False, True])
def test_robots_without_a_length_take_the_same_steps_in_all_units(driven):
    of = {scale: bare_run(scale, driven) for scale in (1.0, 1e3)}  # below 1e-12 m errors are rounding
    first = of[1.0]
    for scale, run in of.items():
        assert run.summary["steps"] == pytest.approx(first.summary["steps"], rel=0.05), scale
        for name, unit in (("slide", scale), ("buffer", scale), ("turn", 1.0)):
            # some thousand steps may err by 1e-8 of the motion each
            assert run[f"q.{name}"] / unit == pytest.approx(first[f"q.{name}"], abs=1e-6 * np.ptp(first["q.slide"]))


SMOOTH = ["rod.Mz@0.5", "reaction.rod.fy"]
NOISY = ["rod.N@0.5", "rod@0.5.ay", "reaction.pin.fx", "rod.Vy@0.5"]


@pytest.fixture(scope="module")
def crank():
    return load_robot("crank-slide")


def run_of(crank, outputs, step):
    return parflex.simulate(crank, "spin", 0.17, out_step=1e-3, step=step, outputs=outputs)


def mean(values):
    return np.sqrt(np.mean(values**2))


def differences(run):
    return [words for words in run.summary["warnings"] if "root mean square" in words]


@pytest.fixture(scope="module")
def fine(crank):
    return run_of(crank, [*SMOOTH, *NOISY], 5e-6)


@pytest.mark.parametrize("word", [NOISY[0], *(pytest.param(word, marks=pytest.mark.verify) for word in NOISY[1:])])
def test_wrong_outputs_are_warned_of_with_their_error(word, crank, fine):
    """The rod vibrates faster than steps of 1 ms follow."""
    run = run_of(crank, [word], 1e-3)
    share = mean(run[word] - fine[word]) / mean(fine[word])
    assert len(differences(run)) == 1 and share > 0.3
    reported = run.summary["not_followed"][word]
    if share < 1:  # rates of rows of 1 ms are a mean over two rows
        assert reported == pytest.approx(share, rel=0.15)
    else:  # no digit of the output is right: its error is reported as larger than the output, not as a number
        assert reported > 1


@pytest.mark.parametrize("word", [SMOOTH[0], *(pytest.param(word, marks=pytest.mark.verify) for word in SMOOTH[1:])])
def test_right_outputs_are_not_warned_of_whatever_the_rates_do(word, crank, fine):
    run = run_of(crank, [word], 1e-3)
    assert word not in run.summary["not_followed"] and mean(run[word] - fine[word]) < 0.06 * mean(fine[word])
    assert differences(fine) == [] and word not in fine.summary["not_followed"]


def test_wrong_accelerations_are_warned_of_where_damping_is_stiff():
    """Two stages carry what stiffly damped modes miss from step to step; three do not."""
    robot = parflex.load(ROOT / "examples" / "crank-slide-flexible.toml")
    words = {"start": "equilibrium", "step": 5e-4}
    run, right = (parflex.simulate(robot, "line", 0.3, method=name, **words) for name in ("gauss4", "gauss6"))
    share = mean(run["qdd.forearm"] - right["qdd.forearm"]) / mean(right["qdd.forearm"])
    assert share > 0.5 and run.summary["warnings"][-1:] == differences(run)
    assert "gauss6" in differences(run)[0] and differences(right) == []
    # of the largest of all joints, in metres; it is the forearm's within a few per cent of its means over two rows
    assert run.summary["not_followed"]["qdd.forearm"] == pytest.approx(share, rel=0.1)
