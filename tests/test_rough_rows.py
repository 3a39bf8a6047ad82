"""Runs tell which outputs of those asked for hold vibrations that steps do not follow, against shorter steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.simulation.integrators.integrate import METHODS, Grid, method_named
from parflex.simulation.outputs import rough_rows
from parflex.simulation.step_lengths import default_step

CRANK = """
format = 1
name = "crank-slide"
motion = "planar"
gravity = [0, -9.81, 0]
end_effector = "slide"
[materials.aluminium]
elastic_modulus = 70e9
density = 2700
[sections.flat]
shape = "rectangle"
y = 0.008
z = 0.01
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = 0.5
inertia = { mass = 0.2, about_centre = [0, 0, 1e-4] }
[[frame]]
name = "rod"
parent = "crank"
joint = "revolute"
place = { position = [0.08, 0, 0] }
start = -0.6
beam = { length = 0.3, material = "aluminium", section = "flat", elements = 2 }
[[frame]]
name = "slide"
joint = "prismatic"
place = { rotation = [0, "pi/2", 0] }
start = 0.36
inertia = { mass = 0.15 }
[[closure]]
name = "pin"
between = ["rod.tip", "slide"]
joint = "revolute"
[motions.spin]
moves = [{ crank = 6.283185307 }]
law = "septic"
duration = 0.12
rest = 0.05
"""
SMOOTH = ["rod.Mz@0.5", "reaction.rod.fy"]
NOISY = ["rod.N@0.5", "rod@0.5.ay", "reaction.pin.fx", "rod.Vy@0.5"]


@pytest.fixture(scope="module")
def crank(tmp_path_factory):
    path = tmp_path_factory.mktemp("rough") / "crank.toml"
    path.write_text(CRANK)
    return parflex.load(path)


def run_of(crank, outputs, step):
    return parflex.simulate(crank, "spin", 0.17, out_step=1e-3, step=step, outputs=outputs)


def mean(values):
    return np.sqrt(np.mean(values**2))


def told(run):
    return [words for words in run.summary["warnings"] if "root mean square" in words]


@pytest.fixture(scope="module")
def fine(crank):
    return run_of(crank, [*SMOOTH, *NOISY], 5e-6)


@pytest.mark.parametrize("word", [NOISY[0], *(pytest.param(word, marks=pytest.mark.verify) for word in NOISY[1:])])
def test_outputs_that_are_wrong_are_told_and_by_how_much(word, crank, fine):
    """The rod vibrates faster than steps of 1 ms follow."""
    run = run_of(crank, [word], 1e-3)
    share = mean(run[word] - fine[word]) / mean(fine[word])
    assert len(told(run)) == 1 and share > 0.3
    # rates of rows of 1 ms are a mean over two of them
    assert run.summary["not_followed"][word] == pytest.approx(share, rel=0.15)


@pytest.mark.parametrize("word", [SMOOTH[0], *(pytest.param(word, marks=pytest.mark.verify) for word in SMOOTH[1:])])
def test_outputs_that_are_right_are_not_told_whatever_the_rates_do(word, crank, fine):
    run = run_of(crank, [word], 1e-3)
    assert word not in run.summary["not_followed"] and mean(run[word] - fine[word]) < 0.06 * mean(fine[word])
    assert told(fine) == [] and word not in fine.summary["not_followed"]


def test_accelerations_that_nobody_asked_for_are_told_where_damping_is_stiff():
    """Two stages carry what stiffly damped modes miss from step to step; three do not."""
    robot = parflex.load(Path(__file__).parents[1] / "examples" / "crank-slide-flexible.toml")
    asked = {"start": "equilibrium", "step": 5e-4}
    run, right = (parflex.simulate(robot, "line", 0.3, method=name, **asked) for name in ("gauss4", "gauss6"))
    share = mean(run["qdd.forearm"] - right["qdd.forearm"]) / mean(right["qdd.forearm"])
    assert share > 0.5 and len(told(run)) == 1 and "gauss6" in told(run)[0]
    assert told(run)[0].startswith("accelerations in the rows, 'qdd.forearm' most, differ by")
    assert run.summary["warnings"][-1] == told(run)[0]  # behind all others
    # of the largest of all joints, in metres; it is the forearm's within a few per cent of its means over two rows
    assert run.summary["not_followed"]["qdd.forearm"] == pytest.approx(share, rel=0.1)
    assert told(right) == []


def test_what_is_advised_is_of_use():
    """Never the method in use; rows where these are far apart; no steps that nobody can take."""
    every = {name: rough_rows.Follows(name, Grid(1e-3, 1, 10), "").cure for name in METHODS}
    assert all(name not in words for name, words in every.items())
    assert "gauss6 or generalized-alpha follow stiff damping" in every["gauss4"]
    assert rough_rows.Follows("gauss4", Grid(1e-4, 10, 10), "").cure.endswith("give an out_step of 0.0002")
    for name in ("gauss4", "generalized-alpha"):
        words = default_step._not_followed(2 * np.pi * 1.83e6, 5e-4, method_named(name))
        assert (
            "give a step" not in words and "more damping or" in words and not words.endswith(f"{name} takes them out")
        )
    assert default_step._not_followed(2 * np.pi * 500, 5e-4, method_named("gauss4")).endswith("a step of 0.0001")
    assert default_step._not_followed(2 * np.pi * 50, 5e-4, method_named("gauss4")) == ""


def test_columns_are_measured_by_the_largest_of_their_kind():
    t = np.linspace(0, 1, 101)
    noise, good = (-1.0) ** np.arange(101), np.arange(101) > 0
    again = {"t": t, "a.fx": 100 * np.sin(9 * t), "a.fy": 0.0 * t, "a.mz": np.cos(9 * t)}
    assert rough_rows.rough_columns(again | {"a.fy": 5 * noise}, again, good) == {}
    found = rough_rows.rough_columns(again | {"a.fy": 50 * noise, "a.mz": again["a.mz"] + 9 * noise}, again, good)
    # means of a sine and of a cosine over one and a half periods
    assert found == {
        "a.fy": pytest.approx(50 / mean(again["a.fx"][good])),
        "a.mz": pytest.approx(9 / mean(again["a.mz"][good])),
    }
