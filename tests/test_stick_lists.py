"""The list of joints that stuck: one entry after the other, at rest within and nowhere else, as oracles have it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from support.oracles.stick_beam import RubbingBeam

import parflex

ROBOTS = Path(__file__).parent / "robots"
ARM = """
format = 1
name = "rubbing"
motion = "planar"
gravity = [0, {gravity!r}, 0]
[materials.m]
elastic_modulus = 70e9
density = 2700
[sections.s]
shape = "rectangle"
y = {thickness!r}
z = 0.02
[[frame]]
name = "one"
joint = "revolute"
actuated = true
friction = {{ coulomb = {first!r}, static = {bound!r} }}
beam = {{ length = 0.4, material = "m", section = "s", elements = {elements} }}
[[frame]]
name = "two"
parent = "one.tip"
joint = "revolute"
friction = {{ viscous = 0.01, coulomb = {second!r} }}
inertia = {{ mass = 0.1, centre = [0.1, 0, 0], about_centre = [0, 0, 0.0005] }}
"""


def check(run, joints):
    """Sticks of a joint follow each other, and the joint moves between them and only there."""
    of, sticks, end = {name: [] for name in joints}, run.summary["sticks"], run.t[-1]
    assert sticks == sorted(sticks, key=lambda one: one["time"])
    for one in sticks:
        of[one["joint"]].append((one["time"], end if one["until"] is None else one["until"]))
        assert one["until"] is None or one["until"] > one["time"] + 1e-12
    for name, spans in of.items():
        for (_, until), (begin, _) in pairwise(spans):
            assert begin > until  # strictly: it moved in between
        q, qd, sticking = run[f"q.{name}"], run[f"qd.{name}"], np.zeros(len(run.t), dtype=bool)
        for begin, until in spans:
            inside = (run.t >= begin) & (run.t <= until)
            sticking |= inside
            if inside.any():
                assert np.ptp(q[inside]) < 1e-11 and np.abs(qd[inside]).max() < 1e-8  # drift of a step, corrected
        assert np.abs(qd[1:][~sticking[1:]]).min(initial=1.0) > 1e-9, name  # the first row may begin to slide


def written(path, text):
    path.write_text(text)
    return parflex.load(path)


@pytest.mark.few
@pytest.mark.parametrize("seed", range(6))
def test_sticks_of_random_flexible_arms_follow_each_other_and_are_where_joints_rest(tmp_path, seed):
    rng = np.random.default_rng(seed)
    numbers = {
        "gravity": float(rng.choice([0.0, -9.81])),
        "thickness": float(rng.uniform(0.004, 0.01)),
        "first": float(rng.uniform(0.3, 2)),
        "second": float(rng.uniform(0.02, 0.1)),
        "elements": int(rng.integers(1, 3)),
    }
    of = written(tmp_path / "arm.toml", ARM.format(bound=numbers["first"] * rng.uniform(1, 1.6), **numbers))
    force, w = rng.uniform(2, 8), rng.uniform(20, 60)
    push, pose = {"one.tip": lambda t: [0, force * np.sin(w * t), 0]}, {"one": float(rng.uniform(-1, 1))}
    run = parflex.simulate(of, None, 0.15, wrench=push, pose=pose)
    check(run, ["one", "two"])
    assert run.summary["sticks"]


LOADED = {"wrench": {"arm.tip": [0, 8.0, 0]}, "start": "rest"}


@pytest.mark.parametrize("more", [{"step": 1e-4}, {"tolerance": 1e-7}, {"method": "rk4", "step": 1e-5}])
def test_a_loaded_beam_sticks_and_slips_without_losing_an_end(more):
    of = parflex.load(ROBOTS / "beam-with-friction.toml")
    run = parflex.simulate(of, None, 0.1, **LOADED, **more)
    check(run, ["arm"])
    assert len(run.summary["sticks"]) > 40 and run.summary["sticks"][0]["time"] == 0.0
    assert run.summary["sticks"][0]["until"] == pytest.approx(0.012336, abs=2e-5)  # gauss6, 0.01 ms: 0.01233611


def test_a_gear_that_rests_does_not_slip_though_one_side_bears_all_it_can():
    of = parflex.load(ROBOTS / "gear-with-friction.toml")
    for side in (1, -1):
        for end in (1.3, 1.38, 1.5):  # the motor is at its bound from 1.365 s on, both sides from 1.4 s
            load = {"effort": {"motor": lambda t, side=side: side * 0.1 * t}, "pose": {"arm": -np.pi / 2}}
            run = parflex.simulate(of, None, end, out_step=0.01, **load)
            untils = {one["joint"]: one["until"] for one in run.summary["sticks"]}
            assert len(run.summary["sticks"]) == 2
            expected = pytest.approx(1.4, abs=1e-6) if end > 1.4 else None
            assert untils == {"motor": expected, "arm": expected}


@pytest.mark.parametrize("size", [1e-3, 1e-5])
def test_a_beam_on_a_rubbing_joint_sticks_when_the_exact_solution_does(tmp_path, size):
    """To first order in the size of all loads, which the terms of second order leave to 1e-3 of the angle."""
    text = (ROBOTS / "beam-with-friction.toml").read_text().replace("elements = 2", "elements = 1")
    text = text.replace("2.0", repr(2.0 * size)).replace("3.0", repr(3.0 * size))
    of = written(tmp_path / "beam.toml", text)
    times = np.linspace(0, 0.1, 101)
    exact = RubbingBeam(2700 * 0.02 * 0.004, 70e9 * 0.02 * 0.004**3 / 12, 0.4, 2 * size, 3 * size, 8 * size)
    angles, sticks = exact.run(times)
    run = parflex.simulate(
        of, None, 0.1, wrench={"arm.tip": [0, 8 * size, 0]}, start="rest", step=2e-5, method="gauss6"
    )
    found = [(one["time"], one["until"]) for one in run.summary["sticks"]]
    assert len(found) == len(sticks) > 3
    for one, other in zip(found, sticks, strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    assert np.abs(run["q.arm"] - angles).max() < 1e-3 * np.abs(angles).max()
    check(run, ["arm"])


@pytest.fixture(scope="module")
def loaded():
    """The beam, and its run with steps of which half change the angle by 1e-6 rad."""
    of = parflex.load(ROBOTS / "beam-with-friction.toml")
    return of, parflex.simulate(of, None, 0.1, frames=["arm.tip"], **LOADED, step=2e-5, method="gauss6")


@pytest.mark.parametrize(("method", "most"), [("gauss4", 1e-3), ("generalized-alpha", 2e-2)])
def test_the_usual_step_follows_friction_and_the_run_tells_what_it_errs_by(loaded, method, most):
    """Fifty rests and slips, of which each makes the beam vibrate and moves the next."""
    of, exact = loaded
    run = parflex.simulate(of, None, 0.1, frames=["arm.tip"], **LOADED, method=method)
    off, told = np.abs(run["arm.tip.theta"] - exact["arm.tip.theta"]).max(), run.summary["estimated_error"]
    assert run.status == "ok" and off < most
    assert 0.3 < told["radians"] / off < 3  # as near as errors of a run are known that goes on from event to event
    assert run.summary["step"] < 1e-4 and "excited" in run.summary["step_choice"]
    said = [sentence for sentence in run.summary["warnings"] if "may err by" in sentence]
    assert bool(said) == (told["radians"] > 2e-3 * np.ptp(run["arm.tip.theta"]))
    check(run, ["arm"])


def test_steps_that_do_not_converge_are_quartered_by_generalized_alpha_too(loaded):
    of, _ = loaded
    run = parflex.simulate(of, None, 0.1, **LOADED, without=["friction"], method="generalized-alpha")
    assert run.status == "ok" and "did not converge" in run.summary["step_choice"]
