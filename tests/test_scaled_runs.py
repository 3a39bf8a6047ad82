"""Runs of one problem in other units of length, time and mass: the same steps, the scaled answer, the same words."""

from __future__ import annotations

import numpy as np
import pytest

import parflex

FIRST = 0.01  # s: of the first run; in seconds the longest step would be that of all runs, 0.5 ms
ARM = """
format = 1
name = "arm"
motion = "planar"
gravity = [0, {gravity}, 0]
end_effector = "hand"
[materials.any]
elastic_modulus = {modulus}
density = {density}
[sections.strip]
shape = "rectangle"
y = {thick}
z = {wide}
[[frame]]
name = "shoulder"
joint = "revolute"
actuated = true
start = 0.3
inertia = {{ mass = {mass}, centre = [{centre}, 0, 0], about_centre = [0, 0, {turning}] }}
[[frame]]
name = "arm"
parent = "shoulder"
place = {{ position = [{length}, 0, 0] }}
beam = {{ length = {length}, material = "any", section = "strip", elements = 2 }}
[[frame]]
name = "hand"
parent = "arm.tip"
inertia = {{ mass = {tip}, about_centre = [0, 0, {tip_turning}] }}
"""
CRANK = """
format = 1
name = "crank"
motion = "planar"
gravity = [0, {gravity}, 0]
end_effector = "slide"
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = 0.5
inertia = {{ mass = {mass}, about_centre = [0, 0, {turning}] }}
[[frame]]
name = "rod"
parent = "crank"
joint = "revolute"
place = {{ position = [{centre}, 0, 0] }}
start = -0.2
inertia = {{ mass = {tip}, about_centre = [0, 0, {tip_turning}] }}
[[frame]]
name = "slide"
joint = "prismatic"
place = {{ rotation = [0, "pi/2", 0] }}
start = {near}
inertia = {{ mass = {mass} }}
friction = {{ coulomb = {rubbing}, static = {rubbing} }}
spring = {{ stiffness = {stiffness} }}
[[point]]
name = "end"
frame = "rod"
position = [{length}, 0, 0]
[[closure]]
name = "pin"
between = ["end", "slide"]
joint = "revolute"
"""


def numbers(length, time, mass):
    """Dimensionless ones, in units."""
    acceleration, force = length / time**2, mass * length / time**2
    return {
        "gravity": -9.81 * acceleration,
        "modulus": 2e9 * force / length**2,
        "density": 2700 * mass / length**3,
        "thick": 0.01 * length,
        "wide": 0.03 * length,
        "mass": 0.7 * mass,
        "centre": 0.11 * length,
        "turning": 0.002 * mass * length**2,
        "length": 0.4 * length,
        "tip": 0.3 * mass,
        "tip_turning": 1e-4 * mass * length**2,
        "near": 0.48 * length,
        "rubbing": 0.4 * force,
        "stiffness": 30.0 * force / length,
    }


def arm_run(tmp_path, length, time, mass):
    """Gravity, and a pulse of the motor as a function with a jump."""
    path = tmp_path / "arm.toml"
    path.write_text(ARM.format(**numbers(length, time, mass)))
    moment = mass * length**2 / time**2

    def pulse(t):
        return 2.0 * moment * np.sin(40 * t / time) * (t < 0.0537 * time)

    return parflex.simulate(parflex.load(path), None, 0.2 * time, effort={"shoulder": pulse}, out_step=2e-3 * time)


def crank_run(tmp_path, length, time, mass):
    """A table of efforts turns the crank until the slide sticks."""
    path = tmp_path / "crank.toml"
    own = numbers(length, time, mass)
    own["rubbing"] = 40 * float(own["rubbing"])  # the slide rests, moves, and comes to rest
    path.write_text(CRANK.format(**own))
    moment = mass * length**2 / time**2
    table = (np.array([0, 0.1, 0.1003, 0.2]) * time, np.array([0.0, 1.5, -0.5, 0.0]) * moment)
    return parflex.simulate(parflex.load(path), None, 0.6 * time, effort={"crank": table}, out_step=2e-3 * time)


def draws(seed, cases):
    """Units of length, time and mass of small robots: materials are those of large ones within some powers of ten."""
    draw = np.random.default_rng(seed)
    for power, faster, heavier in draw.uniform((-5, -1, -1), (0, 0, 1), (cases, 3)):
        yield float(10**power), float(FIRST * 10 ** (power + faster)), float(10 ** (3 * power + heavier))


@pytest.mark.parametrize("of", [arm_run, crank_run])
@pytest.mark.parametrize(("seed", "cases"), [(4, 2), pytest.param(5, 20, marks=pytest.mark.verify)])
def test_a_scaled_problem_takes_the_same_steps_to_the_scaled_answer(of, seed, cases, tmp_path):
    one = of(tmp_path, 1.0, FIRST, 1.0)
    end = "hand" if of is arm_run else "slide"
    for length, time, mass in draws(seed, cases):
        run = of(tmp_path, length, time, mass)
        what = (length, time, mass)
        assert abs(run.summary["steps"] - one.summary["steps"]) <= 2, what  # rounding of lengths of steps
        assert len(run.summary["warnings"]) == len(one.summary["warnings"]), (what, run.summary["warnings"])
        assert len(run.summary.get("sticks", ())) == len(one.summary.get("sticks", ()))
        units = {f"{end}.x": length, f"{end}.y": length, "energy.kinetic": mass * (length / time * FIRST) ** 2}
        for name, unit in units.items():
            # iterations end at 1e-12 typical lengths; joints that come to rest pass it on to what follows
            assert run[name] / unit == pytest.approx(one[name], abs=1e-7 * np.abs(one[name]).max()), (name, what)
    (sticks,) = [one.summary["sticks"]] if of is crank_run else [[True]]
    assert sticks  # it does


def test_a_run_that_asks_for_more_steps_than_it_takes_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("parflex.simulation.step_lengths.default_step.MOST_STEPS", 150)
    run = arm_run(tmp_path, 1.0, FIRST, 1.0)
    (said,) = (words for words in run.summary["warnings"] if "are too long" in words)
    assert run.summary["steps"] < 210 and said.startswith(f"the steps of {run.summary['step']:.3g} s are too long")
    assert "no more than 150 steps" in said and " in a period of " in said


BARE = """
format = 1
name = "bare"
gravity = [0, 0, 0]
[[frame]]
name = "turn"
joint = "revolute"
actuated = true
inertia = {{ mass = 1, about_centre = {turning} }}
[[frame]]
name = "slide"
parent = "turn"
place = {{ rotation = [0, "pi/2", 0] }}
joint = "prismatic"
actuated = true
inertia = {{ mass = 2 }}
[[frame]]
name = "buffer"
parent = "slide"
joint = "prismatic"
inertia = {{ mass = 0.5 }}
spring = {{ stiffness = 2e7 }}
"""


def bare_run(tmp_path, scale, driven):
    """A slide on a joint that turns, with a buffer of 1 kHz, and no length: it is thrown and pushed, or prescribed."""
    path = tmp_path / "bare.toml"
    path.write_text(BARE.format(turning=[0.1 * scale**2] * 3))
    robot = parflex.load(path)

    def motion(t):
        way, turning, sliding = 2 * scale, 7 * t, 5 * t
        return [
            [np.sin(turning), way * np.sin(sliding)],
            [7 * np.cos(turning), 5 * way * np.cos(sliding)],
            [-49 * np.sin(turning), -25 * way * np.sin(sliding)],
        ]

    if driven:
        return parflex.simulate(robot, motion, 0.1, start={"pose": {"buffer": 0.01 * scale}}, out_step=0.01)
    effort = {
        "slide": ([0, 0.1, 0.1, 0.4], np.array([30.0, 30, 0, 0]) * scale),
        "turn": ([0, 0.4], [0.2 * scale**2] * 2),
    }
    return parflex.simulate(robot, None, 0.4, start={"velocity": {"slide": 40.0 * scale}}, effort=effort, out_step=0.01)


@pytest.mark.parametrize("driven", [False, True])
def test_robots_without_a_length_take_the_same_steps_in_all_units(driven, tmp_path):
    """Where the file has no length a metre counted as one: what slid at 40 km/s had a hundred times the steps."""
    of = {scale: bare_run(tmp_path, scale, driven) for scale in (1.0, 1e-3, 1e3)}
    first = of[1.0]
    assert first.summary["step"] < 1e-4 or not driven  # which is below that of all runs
    for scale, run in of.items():
        assert run.summary["steps"] == first.summary["steps"], scale
        for name, unit in (("slide", scale), ("buffer", scale), ("turn", 1.0)):
            # iterations end at 1e-12 m in all units: angles of 5 mrad differ by 1e-4 of that
            assert run[f"q.{name}"] / unit == pytest.approx(first[f"q.{name}"], abs=1e-3 * np.ptp(first[f"q.{name}"]))
