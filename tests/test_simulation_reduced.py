"""Robots with reduced beams in motion: they keep their energy, and move as with all elements."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex import Robot

PENDULUM = """
format = 1
name = "pendulum"
motion = "planar"
gravity = [0, -9.81, 0]
end_effector = "arm.tip"
[materials.steel]
elastic_modulus = 210e9
density = 7850
[sections.blade]
shape = "rectangle"
y = 0.006
z = 0.03
[[frame]]
name = "arm"
joint = "revolute"
actuated = true
beam = { length = 0.6, material = "steel", section = "blade", elements = 6, reduce = { error = 1, band = 50 } }
[[frame]]
name = "bob"
parent = "arm.tip"
inertia = { mass = 0.5, about_centre = [0, 0, 2e-4] }
"""


def pendulum(folder: Path, reduced: bool = True) -> Robot:
    """An arm that swings, with a body at its end."""
    file = folder / f"pendulum-{reduced}.toml"
    file.write_text(PENDULUM if reduced else PENDULUM.replace(", reduce = { error = 1, band = 50 }", ""))
    return parflex.load(file)


def test_a_reduced_robot_keeps_its_energy_over_ten_seconds(tmp_path, figure):
    """A swing from the horizontal, straight at first: all its modes vibrate."""
    robot = pendulum(tmp_path)
    assert robot.tree.links[0].body.held == 2
    run = parflex.simulate(robot, time=10.0, effort={}, step=2e-4, out_step=0.01, method="gauss6")
    total, largest = run["energy.total"], run["energy.kinetic"].max()
    drift = np.abs(total - total[0]).max() / largest
    figure("energy drift of a reduced pendulum in 10 s, of the kinetic energy", drift, 1e-6)
    assert drift < 1e-6  # 3e-7, and 1e-8 with half the step: its stretch at 1.6 kHz is resolved by 3 steps a wave
    assert largest > 3.0


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="compiles another program: make verify")
def test_a_reduced_robot_moves_as_with_all_its_elements(tmp_path, figure):
    """A fast move, which deflects the arm by 4 % of its length: what remains are terms of second order."""
    move = {"moves": [{"arm": 1.0}], "law": "septic", "duration": 0.4}
    columns = ["arm.tangent_y@1", "arm.chord_y@0.5", "arm.Mz@0"]
    found, wanted = (
        parflex.simulate(pendulum(tmp_path, one), move, time=0.6, step=2e-4, outputs=columns) for one in (True, False)
    )
    for column in columns:
        off = np.abs(found[column] - wanted[column]).max() / np.abs(wanted[column]).max()
        figure(f"reduced arm against all elements in a fast move, {column}", off, 0.01)
        assert off < 0.01
