"""Deflections to first order are told to be that where they are too large for it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from support import bars

import parflex

ON_HINGE = bars.CANTILEVER.replace('name = "bar"\n', 'name = "bar"\njoint = "revolute"\nactuated = true\n')


@pytest.mark.parametrize("turn", [0.09, 0.11])
def test_a_deflection_that_turns_a_body_beyond_a_tenth_says_that_first_order_does_not_hold(tmp_path, turn):
    """A cantilever under its weight w turns by w L^3 / 6EI at its tip."""
    gravity = 6 * bars.EI * turn / (bars.WEIGHT * bars.LENGTH**3)
    found = parflex.deflection(bars.cantilever(tmp_path, (0, -gravity, 0), elements=4), frames=["bar.tip"])
    assert abs(found.frames["bar.tip"][5]) == pytest.approx(turn, rel=1e-9)
    said = [text for text in found.warnings if "about='equilibrium'" in text]
    assert len(said) == (turn > 0.1)
    assert all(f"{turn:.2g} rad" in text for text in said)


def test_a_map_counts_poses_beyond_first_order_once(tmp_path):
    """Along x a bar sinks by w L^4 / 8EI, half as much at 45 degrees, and not at all where it stands."""
    gravity = 8 * bars.EI * 0.11 / (bars.WEIGHT * bars.LENGTH**3)
    robot = bars.robot(tmp_path, ON_HINGE, (0, -gravity, 0), elements=4)
    axis, asked = [("bar", 0.0, np.pi / 2, 3)], ["deflection:bar.tip.y"]
    with pytest.warns(parflex.ParflexWarning, match=r"1 of 3 poses .* ask about='equilibrium'") as told:
        found = parflex.frequency_map(robot, axis, modes=1, responses=asked)
    assert len(told) == 1
    assert found.responses[asked[0]] == pytest.approx(-0.11 * bars.LENGTH * np.array([1, 0.5, 0]), abs=1e-3)
    with pytest.warns(parflex.ParflexWarning, match="1 of 3 poses"):
        parflex.many_responses(robot, ["bar"], [[0.0], [np.pi / 4], [np.pi / 2]], asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parflex.frequency_map(robot, axis, modes=1, responses=asked, about="equilibrium")
