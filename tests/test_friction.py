"""Friction that differs by direction, and its offset: by hand, in closed form, in programs and in C."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.emitted import c_library
from support.oracles.stick_slip import spring_turns

import parflex
from parflex import RobotFileError

W = math.pi  # rad/s: half a period is a second
BOTH = {"viscous": 12.0, "viscous_back": 20.0, "coulomb": 3.0, "coulomb_back": 5.0, "offset": -0.7}
MASS = """
format = 1
name = "mass"
gravity = [0, 0, 0]
[[frame]]
name = "m"
joint = "prismatic"
actuated = true
inertia = {{ mass = 2 }}
spring = {{ stiffness = {stiffness!r} }}
friction = {{ {friction} }}
"""


def mass(tmp_path, stiffness=0.0, **friction):
    text = ", ".join(f"{key} = {value!r}" for key, value in friction.items())
    path = tmp_path / "mass.toml"
    path.write_text(MASS.format(stiffness=stiffness, friction=text))
    return parflex.load(path)


def by_hand(rate):
    way = np.sign(rate)
    forth = way > 0
    return (12.0 if forth else 20.0) * rate + (way * (3.0 if forth else 5.0) if way else 0.0) - 0.7


@pytest.mark.parametrize("rate", [0.3, -0.3, 0.0])
def test_friction_of_a_direction_and_its_offset_are_in_all_models(tmp_path, rate):
    robot = mass(tmp_path, **BOTH)
    state = {"velocity": {"m": rate}, "acceleration": {"m": 0.5}}
    asked = by_hand(rate) + 2 * 0.5
    effort = parflex.inverse_dynamics(robot, **state).efforts["m"]
    assert effort == pytest.approx(asked, abs=1e-14)
    found = parflex.forward_dynamics(robot, velocity={"m": rate}, effort={"m": asked})
    assert found.accelerations[0] == pytest.approx(0.5, abs=1e-14)
    program = parflex.model(robot, "inverse")
    assert program(q=[0.0], qd=[rate], qdd=[0.5])["effort"][0] == pytest.approx(asked, abs=1e-14)
    in_c = c_library(
        program, {"q": np.zeros((1, 1)), "qd": np.full((1, 1), rate), "qdd": np.full((1, 1), 0.5)}, tmp_path
    )
    assert in_c["effort"].item() == pytest.approx(asked, abs=1e-14)
    without = parflex.inverse_dynamics(robot, **state, without=["friction"])
    assert without.efforts["m"] == pytest.approx(1.0, abs=1e-14)


def test_a_mass_on_a_spring_comes_to_rest_between_the_frictions_of_both_directions(tmp_path):
    # about its own middle the mass sees the mean friction of both directions, and a force that moves the middle
    stiffness = 2 * W * W
    robot = mass(tmp_path, stiffness, coulomb=2.0, coulomb_back=1.0, offset=0.5)
    middle = -(0.5 + (2.0 - 1.0) / 2) / stiffness
    turns, rest = spring_turns(0.6, stiffness, 1.5)
    run = parflex.simulate(
        robot, None, 8.0, start={"pose": {"m": 0.6 + middle}}, method="gauss6", step=2e-3, out_step=0.01
    )
    rows = [round(k / 0.01) for k in range(len(turns))]
    assert np.abs(run["q.m"][rows] - middle - turns).max() < 4e-12  # as with equal friction: rounding of the events
    (stick,) = run.summary["sticks"]
    assert abs(stick["time"] - (len(turns) - 1)) < 2e-11 and np.ptp(run["q.m"][run.t > stick["time"]]) < 1e-15
    # friction at rest bears between -2 and 1 against the motion; the spring and the offset are what it balances
    assert run["friction.m.effort"][-1] == pytest.approx(stiffness * (rest + middle) + 0.5, abs=1e-4)
    assert run["friction.m.effort"][5] == pytest.approx(1.0) and run["friction.m.effort"][150] == pytest.approx(-2.0)
    assert run.summary["energy_balance_error"] < 1e-7


def test_a_mass_on_a_spring_is_damped_by_the_friction_of_the_direction_in_which_it_moves(tmp_path):
    robot = mass(tmp_path, 2 * W * W, viscous=0.4, viscous_back=1.2)
    run = parflex.simulate(robot, None, 2.2, start={"pose": {"m": 0.6}}, method="gauss6", step=1e-3, out_step=1e-3)
    shares, halves = [], []
    for c in (1.2, 0.4):  # back first
        zeta = c / (2 * 2 * W)
        shares.append(math.exp(-math.pi * zeta / math.sqrt(1 - zeta**2)))
        halves.append(1 / math.sqrt(1 - zeta**2))
    lowest, highest = run["q.m"].min(), run["q.m"][run.t > 1.5].max()
    assert lowest == pytest.approx(-0.6 * shares[0], rel=1e-6)  # rows beside the turn: (w h)^2/8
    assert highest == pytest.approx(0.6 * shares[0] * shares[1], rel=1e-5)  # a kink inside a step: h^3
    assert run.t[run["q.m"].argmin()] == pytest.approx(halves[0], abs=1e-3)


def test_a_joint_breaks_away_backwards_at_as_much_more_as_forwards(tmp_path):
    robot = mass(tmp_path, coulomb=2.0, coulomb_back=1.0, static=2.5)
    for effort, moves in ((2.4, False), (2.6, True), (-1.4, False), (-1.6, True)):
        run = parflex.simulate(robot, None, 0.1, effort={"m": effort}, step=1e-2)
        assert bool(abs(run["q.m"][-1]) > 1e-6) is moves, effort


@pytest.mark.parametrize("key", ["viscous_back", "coulomb_back"])
def test_negative_friction_of_a_direction_is_refused(tmp_path, key):
    with pytest.raises(RobotFileError, match=f"{key} = -1.0 is negative"):
        mass(tmp_path, **{key: -1.0})
