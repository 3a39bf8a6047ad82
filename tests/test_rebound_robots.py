"""Robots with other numbers at keys that move nothing are those that are read and put together again."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles import spring_chain
from support.robots import load_robot, write_robot

import parflex
from parflex.design.design_state import Circumstances, SensitiveDesign
from parflex.designs.design_numbers import number_at
from parflex.models.loading import redesigned
from parflex.updating.modelled.pose_modes import modes_at
from parflex.updating.modelled.rebound_robots import ReboundRobots

DUALEMPS = ["materials.dural.elastic_modulus", "materials.dural.density", "frame.12.inertia.M"]
CHAIN = ["constants.first", "constants.second_damper"]


DAMPERS = {"constants.first_damper": 2.0, "constants.second_damper": 1.0}


def compared(robot, keys, pose, given, share=1.1, count=5):
    """Modes of the robot with all numbers at keys by a share, kept and read again; and whether the pose is kept."""
    values = np.array([share * number_at(robot, key) for key in keys])
    designs = ReboundRobots(robot, keys, given)
    designs.of(2 * values).modes(pose, count)  # nothing of another design is kept
    again = redesigned(robot, dict(zip(keys, map(float, values), strict=True)))
    anew = modes_at(again, pose, given, count, SensitiveDesign(again, keys))
    return designs.of(values).modes(pose, count), anew, designs.at(pose)


CASES = {
    "materials and masses of a closed loop": ("dualemps", DUALEMPS, {}),
    "servos on motors with inertia": ("carriage", ["constants.rotor", "constants.spring"], {"servo": 1e4}),
    "springs of drives and sections": ("navaro-refined", ["legs.frame.1.spring.stiffness", "sections.platform.Iz"], {}),
    "about the equilibrium": ("dualemps", DUALEMPS[:1], {"about": "equilibrium"}),
}


@pytest.mark.few
@pytest.mark.parametrize("case", CASES)
def test_numbers_that_move_nothing_are_put_into_the_robot_as_it_stands(case):
    name, keys, words = CASES[case]
    robot = load_robot(name) if name == "carriage" else parflex.load(name)
    kept, anew, pose = compared(robot, keys, "home", Circumstances(**words))
    assert pose is not None
    # sums in another order: rounding of eigenvalues, about 1e-16 of the highest squared frequency over that of a mode
    assert kept.modes.frequencies == pytest.approx(anew.modes.frequencies, rel=1e-8)
    assert kept.modes.excess == pytest.approx(anew.modes.excess, rel=1e-6)
    for mode in range(min(3, len(kept.modes.frequencies))):
        assert kept.frequency(mode)[1] == pytest.approx(anew.frequency(mode)[1], rel=1e-7)


def test_dampers_too(tmp_path):
    robot = parflex.load(write_robot(tmp_path, spring_chain.FILE.format(900.0, 400.0, 150.0)), settings=DAMPERS)
    kept, anew, _ = compared(robot, CHAIN, "bent", Circumstances(), count=3)
    for mine, other in zip(kept.damped(1), anew.damped(1), strict=True):
        assert mine == pytest.approx(other, rel=1e-9)


def test_what_moves_frames_or_poses_is_put_together_again(tmp_path):
    text = spring_chain.FILE.format(900.0, 400.0, 150.0)
    robot = parflex.load(write_robot(tmp_path, text + '\n[poses.turned]\nmotor-b = "first/900"\n'))
    kept, anew, pose = compared(robot, CHAIN[:1], "turned", Circumstances(), count=3)
    assert pose is None  # a stiffness stands in the pose: 10 % more turn the joint
    assert kept.modes.frequencies == pytest.approx(anew.modes.frequencies, rel=1e-12)
    assert ReboundRobots(robot, CHAIN[:1], Circumstances()).at("bent") is not None
    assert ReboundRobots(parflex.load("navaro"), ["constants.bar"], Circumstances()).at("home") is None
