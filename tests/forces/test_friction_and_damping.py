"""Friction of joints that differs by direction, and damping of beams: by hand and in closed form, in all models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import bars
from support.comparison import accelerated
from support.flexible_states import bent_state
from support.oracles.stick_slip import spring_turns
from support.robots import load_robot

import parflex
from parflex import Configuration, RobotFileError

W = math.pi  # rad/s: half a period is a second
BOTH = {"viscous": 12.0, "viscous_back": 20.0, "coulomb": 3.0, "coulomb_back": 5.0, "offset": -0.7}


def mass(stiffness=0.0, **friction):
    settings = {"frame.m.spring.stiffness": stiffness, "frame.m.friction": friction}
    return load_robot("sliding-mass", settings=settings)


def by_hand(rate):
    way = np.sign(rate)
    forth = way > 0
    return (12.0 if forth else 20.0) * rate + (way * (3.0 if forth else 5.0) if way else 0.0) - 0.7


@pytest.mark.parametrize("rate", [0.3, -0.3, 0.0])
def test_friction_of_a_direction_and_its_offset_are_in_all_models(rate):
    robot = mass(**BOTH)
    state = {"velocity": {"m": rate}, "acceleration": {"m": 0.5}}
    asked = by_hand(rate) + 2 * 0.5
    effort = parflex.inverse_dynamics(robot, **state).efforts["m"]
    assert effort == pytest.approx(asked, abs=1e-14)
    found = parflex.forward_dynamics(robot, velocity={"m": rate}, effort={"m": asked})
    assert found.accelerations[0] == pytest.approx(0.5, abs=1e-14)
    program = parflex.model(robot, "inverse")
    assert program(q=[0.0], qd=[rate], qdd=[0.5])["effort"][0] == pytest.approx(asked, abs=1e-14)
    without = parflex.inverse_dynamics(robot, **state, without=["friction"])
    assert without.efforts["m"] == pytest.approx(1.0, abs=1e-14)


def test_a_mass_on_a_spring_comes_to_rest_between_the_frictions_of_both_directions():
    # about its own middle the mass sees the mean friction of both directions, and a force that moves the middle
    stiffness = 2 * W * W
    robot = mass(stiffness, coulomb=2.0, coulomb_back=1.0, offset=0.5)
    middle = -(0.5 + (2.0 - 1.0) / 2) / stiffness
    turns, rest = spring_turns(0.6, stiffness, 1.5)
    start = {"pose": {"m": 0.6 + middle}}
    run = parflex.simulate(robot, None, 8.0, start=start, method="gauss6", step=2e-3, out_step=0.01)
    rows = [round(k / 0.01) for k in range(len(turns))]
    assert np.abs(run["q.m"][rows] - middle - turns).max() < 4e-12  # as with equal friction: rounding of the events
    (stick,) = run.summary["sticks"]
    assert abs(stick["time"] - (len(turns) - 1)) < 2e-11 and np.ptp(run["q.m"][run.t > stick["time"]]) < 1e-15
    # friction at rest bears between -2 and 1 against the motion; the spring and the offset are what it balances
    assert run["friction.m.effort"][-1] == pytest.approx(stiffness * (rest + middle) + 0.5, abs=1e-4)
    assert run["friction.m.effort"][5] == pytest.approx(1.0) and run["friction.m.effort"][150] == pytest.approx(-2.0)
    assert run.summary["energy_balance_error"] < 1e-7


def test_a_mass_on_a_spring_is_damped_by_the_friction_of_the_direction_in_which_it_moves():
    robot = mass(2 * W * W, viscous=0.4, viscous_back=1.2)
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


def test_a_joint_breaks_away_backwards_at_as_much_more_as_forwards():
    robot = mass(coulomb=2.0, coulomb_back=1.0, static=2.5)
    for effort, moves in ((2.4, False), (2.6, True), (-1.4, False), (-1.6, True)):
        run = parflex.simulate(robot, None, 0.1, effort={"m": effort}, step=1e-2)
        assert bool(abs(run["q.m"][-1]) > 1e-6) is moves, effort


@pytest.mark.parametrize("key", ["viscous_back", "coulomb_back"])
def test_negative_friction_of_a_direction_is_refused(key):
    with pytest.raises(RobotFileError, match=f"{key} = -1.0 is negative"):
        mass(**{key: -1.0})


# -- damping of beams ----------------------------------------------------------------------------------------------

FIRST = 2 * np.pi * bars.bending(1.8751040687)  # of a cantilever


def cantilever(folder, damping: str, elements: int = 8) -> parflex.Robot:
    return bars.beam(folder, f"damping = {{ {damping} }}", motion="spatial", elements=elements)


@pytest.mark.parametrize(("share", "elements"), [(3.0, 1), (0.0, 8)])
def test_rayleigh_damping_gives_each_mode_its_ratio(share, elements, tmp_path):
    found = parflex.natural_frequencies(cantilever(tmp_path, f"mass = {share}, stiffness = 2e-5", elements), modes=5)
    omega = 2 * np.pi * found.frequencies
    assert found.damping == pytest.approx((share / omega + 2e-5 * omega) / 2, rel=1e-9)


@pytest.mark.parametrize("elements", [1, 4, 8])
def test_a_ratio_is_that_of_the_first_mode_whatever_the_number_of_elements(elements, tmp_path):
    found = parflex.natural_frequencies(cantilever(tmp_path, "ratio = 0.02", elements), modes=1)
    assert 2 * np.pi * found.frequencies[0] == pytest.approx(FIRST, rel=0.006)  # one element is 0.5 % too stiff
    assert found.damping[0] == pytest.approx(0.02, rel=0.006)


@pytest.mark.parametrize(
    ("damping", "words"),
    [("mass = -1.0", "mass = -1"), ("ratio = 0.1, stiffness = 1e-5", "both given"), ("ratios = 0.1", "ratios")],
)
def test_damping_that_cannot_be_is_refused(damping, words, tmp_path):
    with pytest.raises(RobotFileError, match=words):
        cantilever(tmp_path, damping)


# -- rotations of the ends of beams --------------------------------------------------------------------------------


def difference_of_rotations(name: str, bend: float) -> float:
    """Relative difference of the accelerations with exact rotations and with those of the papers, in one state."""
    state, found = bent_state(parflex.load(name), np.random.default_rng(2), bend), []
    for settings in ({}, {"rotations": "papers"}):
        at = Configuration(parflex.load(name, settings=settings), state["q"])
        found.append(accelerated(at, state["rates"], state["effort"]).accelerations)
    return float(np.abs(found[0] - found[1]).max() / np.abs(found[0]).max())


def test_rotations_of_the_papers_are_exact_in_the_plane_and_off_by_the_first_order_of_the_bending_in_space(figure):
    assert difference_of_rotations("dualemps", 0.1) < 1e-12
    small, large = (difference_of_rotations("three-beam-legs", bend) for bend in (1e-4, 1e-3))
    figure("rotations of the papers in space, bent by 0.001 rad: relative difference", large)
    assert 1e-6 < small < 1e-3
    assert 5 < large / small < 20
