"""Functions, tables and motions as inputs of runs: followed however fast they are, and the modes that they excite."""

from functools import partial

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.oracles.vibrations import clamped_free, duhamel
from support.robots import load_robot

import parflex
from parflex.trajectories.inputs import InputSpan, sampled_function

FAST = 2 * np.pi * 500
MOMENTS = np.linspace(0.0, 0.02, 3011)[1:-1]  # in no even ratio to the samples
INERTIA, STEP, SHORT = 0.1, 1e-4, 0.02


@pytest.fixture(scope="module")
def rotor():
    return load_robot("rotor")


@pytest.fixture(scope="module")
def spin(rotor):
    """The rotor under efforts or wrenches for 20 ms, without friction."""
    words = {"time": SHORT, "step": STEP, "without": ["friction"]}
    return lambda **inputs: parflex.simulate(rotor, None, **words | inputs)


FUNCTIONS = {
    "a slow sine": (lambda t: np.sin(100 * t), ()),
    "a sine of 500 Hz": (lambda t: np.sin(FAST * t), ()),
    "a sine of 8 kHz": (lambda t: np.sin(16 * FAST * t), ()),
    "a step": (lambda t: float(t >= 0.01053), (0.01053,)),
    "a short pulse": (lambda t: float(0.00411 < t < 0.00423), (0.00411, 0.00423)),
    "a corner": (lambda t: max(0.0, np.sin(1000 * t)), ()),
    "a root": (np.sqrt, ()),
    "a large constant": (lambda t: 1e6 + 0 * t, ()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_time_is_followed_between_its_samples(name):
    function, breaks = FUNCTIONS[name]
    pieces = sampled_function(lambda t: np.array([function(t)]), InputSpan(SHORT, breaks), "effort")
    exact = np.array([function(t) for t in MOMENTS])
    # quintics are refined until they are within 1e-6 of the range at three places of each piece; 5 for all others
    assert np.abs(pieces.value(MOMENTS)[:, 0] - exact).max() < 5e-6 * max(np.ptp(exact), 1e-6 * exact[0])
    times, sizes = pieces.jumps(0)
    assert times == pytest.approx(breaks, abs=1e-12)
    if name == "a step":
        assert sizes[0] == pytest.approx([1.0], abs=1e-9)


def test_functions_that_jump_without_breaks_are_refused_with_the_time(spin):
    random, calls = np.random.default_rng(1), []

    def noise(t):
        calls.append(t)
        return random.normal()

    for function, time in ((noise, 0.01), (FUNCTIONS["a step"][0], 0.01053)):
        with pytest.raises(
            parflex.InputError, match=r"'effort\.m' jumps or changes too fast .* of its range"
        ) as refusal:
            spin(effort={"m": function})
        assert refusal.value.key == "effort.m" and "breaks=[" in refusal.value.hint
        assert refusal.value.value == pytest.approx(time, abs=1e-9 if function is not noise else SHORT)
    assert len(calls) < 60_000  # bounded: some times those of the first samples
    step = spin(effort={"m": FUNCTIONS["a step"][0]}, breaks=[0.01053])
    assert step["qd.m"][-1] == pytest.approx((SHORT - 0.01053) / INERTIA, rel=1e-9)


def test_efforts_and_wrenches_act_as_their_functions_say(spin):
    def sine(t):
        return np.sin(FAST * t)

    expected = 2 / (FAST * INERTIA)  # of a sine: the rate swings between 0 and twice its amplitude
    runs = spin(effort={"m": sine}), spin(wrench={"m": lambda t: [0, 0, sine(t)]})
    for run in runs:
        assert run["qd.m"].max() == pytest.approx(expected, rel=1e-5) and not run.summary["warnings"]
    pulse = spin(effort={"m": lambda t: float(0.0041 < t < 0.0044)}, breaks=[0.0041, 0.0044])
    assert pulse["qd.m"][-1] == pytest.approx(0.0003 / INERTIA, rel=1e-9)  # steps end at breaks


def test_a_motion_is_sampled_as_fast_as_it_moves(rotor):
    w = 2 * np.pi * 300

    def shaking(t):
        return [1e-4 * np.sin(w * t)], [1e-4 * w * np.cos(w * t)], [-1e-4 * w**2 * np.sin(w * t)]

    run = parflex.simulate(rotor, shaking, SHORT, out_step=1e-4, without=["friction"])
    assert np.abs(run["effort.m"] + INERTIA * 1e-4 * w**2 * np.sin(w * run.t)).max() < 1e-5 * INERTIA * 1e-4 * w**2
    with pytest.raises(parflex.InputError, match="not the derivatives of its positions"):
        parflex.simulate(rotor, lambda t: ([np.sin(3 * t)], [7.0], [0.0]), SHORT)


def test_velocities_of_a_motion_jump_at_breaks_alone(rotor):
    def kicked(t):
        return [0.3 * max(0.0, t - 0.00731)], [0.3 * (t >= 0.00731)], [0.0]

    with pytest.raises(parflex.InputError, match="'motion' jumps or changes too fast") as refusal:
        parflex.plan_motion(rotor, kicked, SHORT)
    assert refusal.value.value == pytest.approx(0.00731, abs=1e-9) and "breaks=[0.00731]" in refusal.value.hint
    plan = parflex.plan_motion(rotor, kicked, SHORT, breaks=[0.00731])
    times, sizes = plan.jumps(1)
    assert times == pytest.approx([0.00731, SHORT]) and sizes[:, 0] == pytest.approx([0.3, -0.3])


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ({"step": 0.1}, "step"),
        ({"out_step": 0.03}, "out_step"),
        ({"controller": parflex.PD(1.0, 1.0, sample_time=0.05)}, "sample_time"),
    ],
)
def test_steps_longer_than_the_run_are_refused(spin, words, key):
    with pytest.raises(parflex.InputError, match="is longer than the run") as refusal:
        spin(**words)
    assert refusal.value.key == key


def test_a_run_that_goes_on_behind_its_time_says_so(spin):
    run = spin(time=0.01, out_step=0.003)
    assert run.t[-1] == pytest.approx(0.012) and "goes on to t = 0.012 s" in run.summary["warnings"][0]
    assert spin(time=5e-4, step=5e-4).t[-1] == pytest.approx(5e-4)


def test_identical_runs_are_equal_whatever_time_they_took(spin):
    first, second = spin(effort={"m": 1.0}), spin(effort={"m": 1.0})
    assert first.seconds != second.seconds
    assert first == second and hash(first) == hash(second) and first != spin(effort={"m": 2.0})


def test_the_friction_width_is_checked_on_angles_too(rotor):
    effect = parflex.simulate(rotor, None, 0.1, effort={"m": 0.9}, friction_width=2.5).summary["friction"]
    moves, coordinate = effect["half_width_moves"], effect["half_width_changes_coordinate"]
    assert moves["metres"] == 0 and moves["radians"] > 1e-3
    assert coordinate["coordinate"] == "m" and coordinate["share_of_range"] > 0.1


MIDDLE = 0.33337  # s: at no row and no step


@pytest.fixture(scope="module")
def block():
    return load_robot("block")


def pulse(half, channels=1):
    """A triangle of 1 N s."""
    values = np.zeros((5, channels))
    values[2, 0] = 1 / half
    return [0, MIDDLE - half, MIDDLE, MIDDLE + half, 1], values if channels > 1 else values[:, 0]


@pytest.mark.parametrize("half", [2e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("asked", [{"tolerance": 1e-8}, {}, {"step": 0.01, "out_step": 0.05}], ids=str)
def test_a_pulse_in_a_table_gives_its_impulse_however_short_it_is(block, half, asked):
    by_effort = parflex.simulate(block, None, 1.0, effort={"block": pulse(half)}, **asked)
    by_wrench = parflex.simulate(block, None, 1.0, wrench={"block": pulse(half, 3)}, **asked)
    for run in (by_effort, by_wrench):
        # x = v (1 - t) with v = 1 N s / 2 kg; linear pieces are added up exactly by every method: rounding is left
        assert run["q.block"][-1] == pytest.approx(0.5 * (1 - MIDDLE), rel=1e-10)
        assert run.summary["warnings"] == []


def test_a_pendulum_swings_as_its_cart_moves_behind_a_rest():
    begin, duration, way = 0.5, 0.02, 0.15
    knots = {"joints": [{"cart": 0}, {"cart": 0}, {"cart": way}], "times": [0, begin, begin + duration]}
    run = parflex.simulate(load_robot("cart-pendulum"), knots | {"law": "quintic"}, 1.0, tolerance=1e-8)

    def swings(t, y):
        u = (t - begin) / duration
        push = way * (60 * u - 180 * u**2 + 120 * u**3) / duration**2 if 0 < u < 1 else 0.0
        return [y[1], 0.5 * 0.4 * (-9.81 * np.cos(y[0]) + np.sin(y[0]) * push) / (0.01 + 0.5 * 0.4**2)]

    state = [-np.pi / 2, 0.0]
    for a, b in ((begin, begin + duration), (begin + duration, 1.0)):
        state = solve_ivp(swings, (a, b), state, rtol=1e-10, atol=1e-12, max_step=(b - a) / 20).y[:, -1]
    # a hundred steps or so of 1e-8 m each, at a typical length of 0.25 m and more
    assert run["q.bob"][-1] == pytest.approx(state[0], abs=1e-5)
    assert np.ptp(run["q.bob"]) > 0.4
    assert run.summary["steps"] < 200


def test_default_steps_follow_functions_that_are_too_fast_for_fixed_ones(block):
    fast = {"block": lambda t: 10 * np.sin(2000 * np.pi * t)}
    exact = 5 / (2000 * np.pi) * 0.04
    run, better = (parflex.simulate(block, None, 0.04, effort=fast, **more) for more in ({"step": 5e-4}, {}))
    assert abs(run["q.block"][-1] / exact - 1) > 0.03
    assert better["q.block"][-1] == pytest.approx(exact, rel=1e-5) and better.summary["warnings"] == []


def test_a_table_that_bends_at_every_row_is_followed(block):
    t = np.arange(701) * 1e-3
    force = np.random.default_rng(1).normal(size=len(t))
    run = parflex.simulate(block, None, 0.7, effort={"block": (t, force)}, tolerance=1e-6, check_steps=False)
    speed = np.concatenate([[0], np.cumsum((force[1:] + force[:-1]) / 4 * 1e-3)])  # of 2 kg
    assert run["qd.block"] == pytest.approx(speed, abs=1e-12)  # linear pieces, each by steps of its own


FINE = 1e-6  # s: of Duhamel's sums
TIME = 0.1
STIFF = {"stiffness": 2 * (2 * np.pi * 500) ** 2}  # of 2 kg: 500 Hz


def slid(**words):
    slider = load_robot("block", settings={"frame.block.spring": STIFF})
    return parflex.simulate(slider, None, TIME, out_step=1e-3, **words)


PULSES = {
    "gauss": lambda t: 2000 * np.exp(-(((t - 0.01) / 0.0006) ** 2)),
    "sine squared": lambda t: 2000 * np.sin(np.pi * np.clip((t - 0.01) / 0.0015, 0, 1)) ** 2,
    "triangle": ([0, 0.01, 0.011, 0.012, 0.1], [0, 0, 2000, 0, 0]),
    "step in 1 us": ([0, 0.01, 0.010001, 0.1], [0, 0, 2000, 2000]),
    "swelling sine": lambda t: 2000 * t * np.sin(2 * np.pi * 430 * t),
}


def against_duhamel(run, effort):
    """The error and the largest motion of the slider."""
    times = np.arange(0, TIME + FINE / 2, FINE)
    force = effort(times) if callable(effort) else np.interp(times, *effort)
    x, _ = duhamel(2 * np.pi * 500, force / 2, FINE)
    return np.abs(run["q.block"] - x[np.round(run.t / FINE).astype(int)]).max(), np.abs(x).max()


@pytest.mark.parametrize("kind", list(PULSES))
def test_default_steps_follow_vibrations_under_any_effort(kind):
    run = slid(effort={"block": PULSES[kind]})
    off, largest = against_duhamel(run, PULSES[kind])
    assert off < 1e-4 * largest  # some thousand steps of 1e-9, and Duhamel's sums


def test_two_rows_at_the_same_time_are_a_jump_and_rows_that_go_back_are_refused():
    run = slid(effort={"block": ([0, 0.01, 0.01, 0.1], [0, 0, 2000, 2000])})
    since = np.maximum(run.t - 0.01, 0)
    rest = 2000 / STIFF["stiffness"]
    assert np.abs(run["q.block"] - rest * (1 - np.cos(2 * np.pi * 500 * since))).max() < 0.01 * rest
    with pytest.raises(parflex.InputError, match=r"row 3 is at 0\.01 s, behind 0\.02 s"):
        slid(effort={"block": ([0, 0.02, 0.01], [0, 0, 1])})


def shaken(thickness, motion, base, force, **words):
    """Error of the tip, its largest vibration, and the run; `base` and `force` are accelerations of the carriage, N."""
    robot = load_robot("stub-on-motor", settings={"sections.flat.y": thickness})
    run = parflex.simulate(robot, motion, TIME, out_step=1e-3, **words)
    times = np.arange(0, TIME + FINE / 2, FINE)
    area = thickness * 0.02
    modes = clamped_free(0.1, 210e9 * area * thickness**2 / 12, 7850 * area, 5)
    pushes = [(omega, by_base * base(times) + by_tip * force(times)) for omega, by_base, by_tip in modes]
    tip = sum(duhamel(omega, push, FINE)[0] for omega, push in pushes)
    bent = run["arm.tip.x"] - run["q.car"] - run["arm.tip.x"][0]
    return np.abs(bent - tip[np.round(run.t / FINE).astype(int)]).max(), np.abs(tip).max(), run


def septic(duration, way):
    """The acceleration of a smooth motion."""

    def acceleration(t):
        u = np.clip(t / duration, 0, 1)
        return way * (420 * u**2 - 1680 * u**3 + 2100 * u**4 - 840 * u**5) / duration**2

    return acceleration


def test_a_fast_smooth_motion_shakes_its_load():
    motion = {"joints": [{"car": 0}, {"car": 0.002}], "law": "septic", "duration": 0.003}
    robot = load_robot("mass-on-carriage", settings={"frame.s.spring": STIFF})
    run = parflex.simulate(robot, motion, TIME, out_step=1e-3)
    times = np.arange(0, TIME + FINE / 2, FINE)
    x, _ = duhamel(2 * np.pi * 500, -septic(0.003, 0.002)(times), FINE)
    assert np.abs(run["q.s"] - x[np.round(run.t / FINE).astype(int)]).max() < 0.01 * np.abs(x).max()
    assert run.summary["warnings"] == []


@pytest.mark.verify
@pytest.mark.parametrize("kind", ["motion", "function", "table", "sines"])
def test_beams_shaken_at_random_follow_their_modes(kind, figure):
    draw = np.random.default_rng(["motion", "function", "table", "sines"].index(kind))
    still = {"joints": [{"car": 0}, {"car": 0}], "duration": TIME}
    worst = 0.0
    for _ in range(4):
        thickness = draw.uniform(0.003, 0.012)  # 250 to 1000 Hz
        length = draw.uniform(0.3, 1.5) * 0.1 / (thickness / 0.006) / 50  # of the pulse: 0.3 to 1.5 periods
        motion, base, force, words = still, np.zeros_like, np.zeros_like, {}
        if kind == "motion":
            motion = {"joints": [{"car": 0}, {"car": 0.001}], "law": "septic", "duration": 2 * length}
            base = septic(2 * length, 0.001)
        elif kind == "sines":
            w = 2 * np.pi * 501 * thickness / 0.006 * draw.uniform(0.3, 0.9)
            motion = {"sines": {"car": [1e-5]}, "frequency": w / (2 * np.pi), "duration": TIME}
            base = partial(lambda w, t: -1e-5 * w**2 * np.sin(w * t), w)
        elif kind == "function":
            force = partial(lambda length, t: 5 * np.exp(-(((t - 0.02) / length) ** 2)), length)
            words = {"wrench": {"arm.tip": lambda t, force=force: [float(force(t)), 0, 0]}}
        else:
            rows = [0, 0.02, 0.02 + length, 0.02 + 1.3 * length, TIME], [0, 0, 5, -2, -2]
            force = partial(lambda rows, t: np.interp(t, *rows), rows)
            words = {"wrench": {"arm.tip": (rows[0], [[value, 0, 0] for value in rows[1]])}}
        off, largest, _ = shaken(thickness, motion, base, force, **words)
        worst = max(worst, float(off / largest))
    figure(f"beam shaken by a {kind}, error in parts of the vibration", worst, 0.04)
    assert worst < 0.04  # 1 % by the steps, and shear and turning of the thickest sections in the modes
