"""Robots that float, that have more motors than freedoms, or joints that stand still; and energies against Lagrange."""

from __future__ import annotations

import numpy as np
import pytest
from support.catalogue import CATALOGUE, RIGID
from support.comparison import after, largest, order_of, positions
from support.oracles.energy import EnergyModel
from support.oracles.reader import read_robot
from support.robots import load_robot
from support.states import Draws, random_states

import parflex
from parflex import Configuration
from parflex.forces.forces import tree_forces
from parflex.recursion.kinematics import motion


def momentum(configuration, qd):
    """Linear momentum and angular momentum about the origin of the world, summed over the bodies."""
    tree, at = configuration.robot.tree, configuration.at
    moving = motion(tree, at, qd, np.zeros(tree.n))
    linear, angular = np.zeros(3), np.zeros(3)
    for j, link in enumerate(tree.links):
        body, R, v, w = link.body, at.rotation[j], moving.v[j], moving.w[j]
        push = R @ (body.m * v + np.cross(w, body.S))
        linear += push
        angular += np.cross(at.position[j], push) + R @ (body.I @ w + np.cross(body.S, v))
    return np.concatenate([linear, angular])


def energy(configuration, qd):
    return np.array(sum(parflex.energies(configuration, qd)))


def satellite_motion(robot, rng):
    """Velocities of the hull in the world, of the motors, and of the hand."""
    words = [f"hull.{part}" for part in ("x", "y", "z", "rx", "ry", "rz")] + list(robot.motors)
    return dict(zip(words, rng.uniform(-2, 2, len(words)), strict=True))


def test_a_free_robot_keeps_momentum_under_torques_and_energy_without(figure):
    """Motors act between bodies of the robot: they change no momentum; rotors have energy and are left out of it."""
    h, rng = 1e-5, np.random.default_rng(2)
    for settings, kept in (({"legs.frame.shoulder.motor_inertia": 0}, momentum), ({}, energy)):
        robot = load_robot("satellite", settings=settings)
        configuration, worst = parflex.configure(robot), 0.0
        for torque in (0.0, 8.0) if kept is momentum else (0.0,):
            for _ in range(5):
                effort = {name: torque * rng.uniform(-1, 1) for name in robot.motors}
                result = parflex.forward_dynamics(robot, configuration, satellite_motion(robot, rng), effort)
                ends = [kept(*after(configuration, result.rates, result.accelerations, t)) for t in (h, -h)]
                worst = max(worst, largest(ends[0] - ends[1]) / (2 * h) / largest(ends[0]))
        figure(f"satellite: rate of {kept.__name__}, per second, relative", worst, 1e-7)
        assert worst < 1e-7  # central differences: truncation (3 rad/s * 1e-5 s)^2 = 1e-9, rounding 1e-16/1e-5 = 1e-11


def actuation(motors, locked=()):
    return {"actuation.other": {"actuated": list(motors), "locked": list(locked)}}


def test_more_motors_than_freedoms_share_the_efforts_with_least_norm(figure):
    shoulders, elbows = ([f"leg{k}.{joint}" for k in (1, 2, 3)] for joint in (1, 2))
    usual = parflex.load("3rrr")
    redundant = parflex.load("3rrr", settings=actuation(shoulders + elbows), actuation="other")
    worst = 0.0
    for state in random_states(usual, 6, 8, Draws(), spread=0.1):
        first = parflex.inverse_dynamics(usual, state.configuration, state.velocity, state.acceleration)
        configuration = parflex.configure(
            redundant, dict(zip(("x", "y", "theta"), state.configuration.q[:3], strict=True))
        )
        second = parflex.inverse_dynamics(redundant, configuration, state.velocity, state.acceleration)
        assert second.redundant_actuation
        assert any("least norm" in warning for warning in second.warnings)
        assert not first.redundant_actuation
        tau = np.array([second.efforts[name] for name in redundant.motors])
        J_a = configuration.J_a
        plain = np.array([first.efforts.get(name, 0.0) for name in redundant.motors])
        f = tree_forces(configuration, second.rates, second.accelerations)
        inside = J_a @ np.linalg.lstsq(J_a, tau, rcond=None)[0]
        worst = max(
            worst,
            largest(J_a.T @ tau - configuration.J.T @ f) / largest(J_a.T @ tau),  # the motion is the right one
            largest(J_a.T @ (tau - plain)) / largest(J_a.T @ tau),  # as three motors would do it
            largest(inside - tau) / largest(tau),  # no part that works against itself
        )
        assert np.linalg.norm(tau) < np.linalg.norm(plain)
        found = parflex.forward_dynamics(redundant, configuration, state.velocity, second.efforts)
        worst = max(worst, largest(found.accelerations - second.accelerations) / largest(second.accelerations))
    figure("3rrr with six motors: virtual power and least norm, largest relative error", worst, 1e-10)
    assert worst < 1e-10  # rounding times the condition of J_a (some hundreds) and of M


def test_a_locked_joint_stands_still_and_leaves_the_other_efforts_as_they_are():
    motors = [f"leg{k}.3" for k in range(1, 7)]
    usual = parflex.load("gough-stewart")
    home = {"poses.home": dict(zip(motors[1:], (1.05, 1.13, 1.12, 1.03, 1.09), strict=True))}
    locked = parflex.load("gough-stewart", settings=actuation(motors[1:], motors[:1]) | home, actuation="other")
    assert locked.mobility.freedoms(len(locked.free)) == 5
    configuration = parflex.configure(locked)
    assert positions(configuration)["leg1.3"] == 1.025  # its start value
    rng = np.random.default_rng(6)
    stroke = locked.rates.index("leg1.3")
    for _ in range(4):
        velocity, acceleration = ({name: rng.uniform(-1, 1) for name in motors[1:]} for _ in range(2))
        first = parflex.inverse_dynamics(locked, configuration, velocity, acceleration)
        assert first.rates[stroke] == first.accelerations[stroke] == 0
        held = {"leg1.3": 0.0}
        second = parflex.inverse_dynamics(
            usual, Configuration(usual, configuration.q), velocity | held, acceleration | held
        )
        expected = np.array([second.efforts[name] for name in first.efforts])
        # rounding times the conditions of J_a and M
        assert largest(np.array(list(first.efforts.values())) - expected) < 1e-10 * largest(expected)
        found = parflex.forward_dynamics(locked, configuration, velocity, first.efforts)
        assert largest(found.accelerations - first.accelerations) < 1e-10 * largest(first.accelerations)


@pytest.mark.few("3rrr", "rx90", "space", "four-bar")
@pytest.mark.parametrize("name", RIGID)
def test_energies_equal_those_of_lagrange(name):
    path = CATALOGUE / f"{name}.toml"
    robot, oracle = parflex.load(path), EnergyModel(read_robot(path))
    for state in random_states(robot, 3, 12, Draws(), spread=0.1 * robot.tree.length):
        qd = state.configuration.rates(state.velocity)
        place = np.argsort(order_of(robot, oracle))
        expected = oracle.energy(positions(state.configuration), qd[place])
        for ours, theirs in zip(parflex.energies(state.configuration, qd), expected, strict=True):
            assert abs(ours - theirs) < 1e-12 * max(map(abs, expected))  # sums of a few dozen products
