"""Runs tell which outputs of those asked for hold vibrations that steps do not follow, against shorter steps."""

from __future__ import annotations

import re

import numpy as np
import pytest

import parflex
from parflex.simulation.outputs import rough_rows

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
    (said,) = told(run)
    share = mean(run[word] - fine[word]) / mean(fine[word])
    assert said.startswith(f"'{word}' differs by ") and share > 0.3
    # said to two digits; rates of rows of 1 ms are a mean over two of them
    assert float(re.search(r"by (\S+) %", said)[1]) / 100 == pytest.approx(share, rel=0.15)


@pytest.mark.parametrize("word", [SMOOTH[0], *(pytest.param(word, marks=pytest.mark.verify) for word in SMOOTH[1:])])
def test_outputs_that_are_right_are_not_told_whatever_the_rates_do(word, crank, fine):
    run = run_of(crank, [word], 1e-3)
    assert told(fine) == told(run) == [] and mean(run[word] - fine[word]) < 0.06 * mean(fine[word])


def test_rates_alone_are_not_told(crank, monkeypatch):
    """Accelerations of all rates are off by as much as they are, and nobody asked for them."""
    shares = []
    found = rough_rows.rough_share
    monkeypatch.setattr(rough_rows, "rough_share", lambda *given: shares.append(found(*given)) or shares[-1])
    assert told(run_of(crank, SMOOTH, 1e-3)) == [] and shares[0] > 0.9


def test_columns_are_measured_by_the_largest_of_their_kind():
    t = np.linspace(0, 1, 101)
    noise, good = (-1.0) ** np.arange(101), np.arange(101) > 0
    again = {"t": t, "a.fx": 100 * np.sin(9 * t), "a.fy": 0.0 * t, "a.mz": np.cos(9 * t)}
    assert rough_rows.rough_columns(again | {"a.fy": 5 * noise}, again, good) == []
    (said,) = rough_rows.rough_columns(again | {"a.fy": 50 * noise, "a.mz": again["a.mz"] + 9 * noise}, again, good)
    assert said.startswith("'a.mz' (and 1 more outputs) differs by 1.3e+03 %")
