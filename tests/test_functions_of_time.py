"""Functions of time as inputs of runs: followed however fast they are, or a warning says how far they are off."""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex import InputError
from parflex.simulation.inputs.function_samples import Span, through_samples
from parflex.simulation.inputs.given import given_efforts
from parflex.simulation.run_checks import width_effect

ROTOR = """
format = 1
name = "rotor"
motion = "planar"
gravity = [0, 0, 0]
[[frame]]
name = "m"
joint = "revolute"
actuated = true
friction = {viscous = 0, coulomb = 1.0}
inertia = {mass = 1.0, about_centre = [0, 0, 0.1]}
"""
INERTIA, STEP, TIME = 0.1, 1e-4, 0.02
FAST = 2 * np.pi * 500
MOMENTS = np.linspace(0.0, TIME, 3011)[1:-1]  # in no even ratio to the samples


@pytest.fixture(scope="module")
def rotor(tmp_path_factory):
    file = tmp_path_factory.mktemp("rotor") / "rotor.toml"
    file.write_text(ROTOR, encoding="utf-8")
    return parflex.load(file)


@pytest.fixture(scope="module")
def spin(rotor):
    """The rotor under efforts or wrenches for 20 ms, without friction."""
    return lambda **inputs: parflex.simulate(
        rotor, None, **{"time": TIME, "step": STEP, **inputs}, without=["friction"]
    )


FUNCTIONS = {
    "a slow sine": lambda t: np.sin(100 * t),
    "a sine of 500 Hz": lambda t: np.sin(FAST * t),
    "a sine of the samples' own frequency": lambda t: np.sin(2 * np.pi * t / (STEP / 2)),
    "a step between samples": lambda t: float(t >= 0.01053),
    "a pulse shorter than a piece": lambda t: float(0.00411 < t < 0.00423),
    "a corner": lambda t: max(0.0, np.sin(1000 * t)),
    "a root": np.sqrt,
    "a large constant": lambda t: 1e6 + 0 * t,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_time_is_followed_between_its_samples(name):
    function = FUNCTIONS[name]
    pieces, off = through_samples(lambda t: np.array([function(t)]), TIME, STEP)
    exact = np.array([function(t) for t in MOMENTS])
    # quintics are refined until they are within 1e-6 of the range at three places of each piece; 5 for all others
    assert off is None and np.abs(pieces.at(MOMENTS)[:, 0] - exact).max() < 5e-6 * max(np.ptp(exact), 1e-6 * exact[0])
    assert (len(pieces.jumps(0)[0]) > 0) == (name in ("a step between samples", "a pulse shorter than a piece"))


def test_a_jump_is_one_and_at_its_time():
    pieces, _ = through_samples(lambda t: np.array([3 * t, float(t >= 0.01053)]), TIME, STEP)
    times, sizes = pieces.jumps(0)
    assert times == pytest.approx([0.01053], abs=1e-9) and sizes[0] == pytest.approx([0.0, 1.0], abs=1e-9)


def test_what_is_too_fast_to_be_sampled_is_said_with_how_far_it_is_off(rotor):
    random, calls = np.random.default_rng(1), []

    def noise(t):
        calls.append(t)
        return random.normal()

    span = Span(TIME, STEP)
    given_efforts(rotor, {"m": noise}, span)
    (said,) = span.warnings
    assert "'effort.m' changes too fast" in said and "of its range" in said and "t = 0.0" in said
    assert len(calls) < 60_000  # bounded: some times those of the first samples


def test_efforts_and_wrenches_act_as_their_functions_say(spin):
    def sine(t):
        return np.sin(FAST * t)

    expected = 2 / (FAST * INERTIA)  # of a sine: the rate swings between 0 and twice its amplitude
    runs = spin(effort={"m": sine}), spin(wrench={"m": lambda t: [0, 0, sine(t)]})
    for run in runs:
        assert run["qd.m"].max() == pytest.approx(expected, rel=1e-5) and not run.summary["warnings"]
    pulse = spin(effort={"m": lambda t: float(0.0041 < t < 0.0044)})
    assert pulse["qd.m"][-1] == pytest.approx(0.0003 / INERTIA, rel=1e-6)  # jumps are known to 1e-10 s


def test_a_run_says_how_far_samples_of_functions_are_apart(spin):
    """What is shorter may lie between them and is not seen: a function tells its values only."""
    asked = []

    def effort(t):
        asked.append(t)
        return 0.0

    run = spin(effort={"m": effort})
    apart = run.summary["samples_apart"]["effort.m"]
    assert np.diff(np.unique(asked)).max() == pytest.approx(apart, rel=1e-6)
    assert "samples_apart" not in spin(effort={"m": 1.0}).summary


def test_a_motion_is_sampled_as_fast_as_it_moves(rotor):
    w = 2 * np.pi * 300

    def shaking(t):
        return [1e-4 * np.sin(w * t)], [1e-4 * w * np.cos(w * t)], [-1e-4 * w**2 * np.sin(w * t)]

    run = parflex.simulate(rotor, shaking, TIME, out_step=1e-4, without=["friction"])
    assert np.abs(run["effort.m"] + INERTIA * 1e-4 * w**2 * np.sin(w * run.t)).max() < 1e-5 * INERTIA * 1e-4 * w**2
    with pytest.raises(InputError, match="not the derivatives of its positions"):
        parflex.simulate(rotor, lambda t: ([np.sin(3 * t)], [7.0], [0.0]), TIME)


@pytest.mark.parametrize(
    ("given", "key"), [({"step": 0.1}, "step"), ({"out_step": 0.03}, "out_step"), ({"controller": True}, "sample_time")]
)
def test_steps_longer_than_the_run_are_refused(spin, given, key):
    if "controller" in given:
        given = {"controller": parflex.PD(1.0, 1.0, sample_time=0.05)}
    with pytest.raises(InputError, match="is longer than the run") as error:
        spin(**given)
    assert error.value.key == key


def test_a_run_that_goes_on_behind_its_time_says_so(spin):
    run = spin(time=0.01, out_step=0.003)
    assert run.t[-1] == pytest.approx(0.012) and "goes on to t = 0.012 s" in run.summary["warnings"][0]
    assert spin(time=5e-4, step=5e-4).t[-1] == pytest.approx(5e-4)


def test_runs_alike_are_equal_whatever_time_they_took(spin):
    one, two = spin(effort={"m": 1.0}), spin(effort={"m": 1.0})
    assert one.seconds != two.seconds
    assert one == two and hash(one) == hash(two) and one != spin(effort={"m": 2.0})


def test_the_friction_width_is_checked_on_angles_too(rotor):
    found = parflex.simulate(rotor, None, 0.1, effort={"m": 0.9}, friction_width=2.5).summary["friction"]
    moves, coordinate = found["half_width_moves"], found["half_width_changes_coordinate"]
    assert moves["metres"] == 0 and moves["radians"] > 1e-3
    assert coordinate["coordinate"] == "m" and coordinate["share_of_range"] > 0.1


def test_the_angle_between_two_orientations_is_that_of_their_turn():
    turn = 0.3
    one = {
        "t": np.zeros(1),
        "p.x": np.zeros(1),
        "p.orientation_w": np.ones(1),
        **{f"p.orientation_{a}": np.zeros(1) for a in "xyz"},
    }
    other = one | {"p.orientation_w": np.array([-np.cos(turn / 2)]), "p.orientation_y": np.array([-np.sin(turn / 2)])}
    assert width_effect(one, other, "p", 1e-3)["half_width_moves"]["radians"] == pytest.approx(turn)
