"""Implicit steps far longer than the fastest vibrations: where iterations start, and what they leave."""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex import Run

MODULUS = 74e9  # N/m^2, of the blades of the DualEMPS


def circled(step: float, modulus: float = MODULUS, **more) -> Run:
    """A second of the circle of the DualEMPS, whose loop is closed by a blade that hardly stretches."""
    settings = {"axial": "mean", "materials.dural.elastic_modulus": modulus}
    robot = parflex.load("dualemps", settings=settings)
    return parflex.simulate(
        robot, "circle", 1.0, step=step, out_step=0.01, without=["friction"], check_width=False, **more
    )


@pytest.mark.parametrize("step", [2e-3, 1e-2])
def test_steps_much_longer_than_axial_vibrations_converge_at_once(step, figure):
    """Accelerations of stages, carried on, stretch the blades by far more than they are: such starts were refused."""
    summary = circled(step).summary
    each = summary["iterations"] / summary["steps"]
    figure(f"iterations of a step of {1e3 * step:g} ms", each, 4.0)
    assert summary["status"] == "ok" and summary["rejected"] == 0 and each < 4
    assert summary["jacobians"] > 1  # matrices that were factored


@pytest.mark.verify
def test_what_newton_leaves_does_not_add_up_in_stiff_modes(figure):
    """A rate that a step leaves in a stiff mode vibrates on, h w times larger than the change of a stage by it."""
    paths = [np.column_stack([run["P.x"], run["P.y"]]) for run in (circled(h, 1e3 * MODULUS) for h in (5e-4, 2.5e-4))]
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


BLADE = """
format = 1
name = "blade"
motion = "planar"
gravity = [0, 0, 0]
end_effector = "hand"
[materials.steel]
elastic_modulus = 210e9
density = 7850
[sections.strip]
shape = "rectangle"
y = 0.010
z = 0.030
[[frame]]
name = "arm"
beam = { length = 0.6, material = "steel", section = "strip", elements = 1 }
[[frame]]
name = "hand"
parent = "arm.tip"
inertia = { mass = 5.0 }
"""


@pytest.mark.parametrize("radius", [0.2, 0.8])
def test_long_steps_of_generalized_alpha_that_do_not_converge_are_made_in_parts(radius, tmp_path):
    """A load that jumps, 8.5 steps in a period: the blade swings about F l^3/3EI, where the run ended at once."""
    path = tmp_path / "blade.toml"
    path.write_text(BLADE)
    run = parflex.simulate(
        parflex.load(path), None, 6.0, start="rest", wrench={"hand": [0, 5, 0]}, step=0.02, out_step=0.02,
        method="generalized-alpha", radius=radius,
    )  # fmt: skip
    static = 5 * 0.6**3 / (3 * 210e9 * 0.03 * 0.01**3 / 12)
    assert run.status == "ok" and run.summary["rejected"] > 0
    # twice it, and what the first step adds; the mean of 35 periods
    assert run["hand.y"].max() < 2.1 * static and run["hand.y"].mean() == pytest.approx(static, rel=0.05)
