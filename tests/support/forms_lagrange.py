"""Links in a row that a robot holds from behind, with states."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import test_flexible_lagrange as beams

import parflex
from parflex import Robot
from support.comparison import written
from support.mechanisms import invented
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.reader import read_robot

STATES = 2


BEHIND = {  # closures of a robot whose twists spread back over a joint to the tip of a beam
    "held from behind, welded": 'joint = "welded"',
    "held from behind, hinged": 'joint = "revolute"\naxis = [0.6, 0.0, 0.8]',
    "held from behind, sliding": 'joint = "cylindrical"\naxis = "x"',
    "held from behind, sliding the other way": 'joint = "cylindrical"\naxis = "x"',
    "held from behind, on a ball": 'joint = "spherical"',
    # axes in both places, or in the first alone
    "held from behind, on a cross": 'joint = "universal"\naxis = [0.6, 0.0, 0.8]\naxis_2 = [0.8, 0.0, -0.6]',
    "held from behind, on a cross the other way": 'joint = "universal"\naxis = [0.6, 0.8, 0.0]\naxis_2 = "z"',
    "held from behind, on a table": 'joint = "planar"\naxis = [0.0, 0.6, 0.8]',
    "held from behind, led on a line": 'joint = "point-on-line"\naxis = [0.0, 0.6, 0.8]',
    "held from behind, led on a line the other way": 'joint = "point-on-line"\naxis = [0.0, 0.6, 0.8]',
    "held from behind, led on a plane": 'joint = "point-on-plane"\naxis = [0.6, 0.0, 0.8]',
    "held from behind, led on a plane the other way": 'joint = "point-on-plane"\naxis = [0.6, 0.0, 0.8]',
}


@cache
def held_from_behind(case: str) -> tuple[Robot, list[dict]]:
    text = invented("held-from-behind").read_text(encoding="utf-8").replace('joint = "welded"', BEHIND[case])
    if "other way" in case:
        text = text.replace('["hand", "grip"]', '["grip", "hand"]')
    path = written(text, Path(mkdtemp()))
    robot, rng = parflex.load(path), np.random.default_rng(4)
    oracle = FlexibleEnergyModel(read_robot(path))
    return robot, [beams._state(robot, oracle, rng, 0.1) for _ in range(STATES)]
