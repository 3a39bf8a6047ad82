"""Stiffness by motors that work against each other, against energies differentiated by hand and by CasADi."""

from __future__ import annotations

import numpy as np
import pytest
from support.command_line import answered
from support.oracles.preload import FourLegs, hinged_beam_under_tension, slide_between_struts
from support.robots import load_robot, robot_file

import parflex
from parflex import InputError

# second derivatives by two exact methods; efforts that balance come from a system of condition below a hundred
EXACT = 1e-9
ENDS = {"left": (-0.5, 0.12), "right": (0.7, -0.2)}


def drawn(robot: parflex.Robot) -> FourLegs:
    return FourLegs(
        base=[(-0.6, -0.52), (0.62, -0.55), (0.58, 0.5), (-0.61, 0.53)],
        phi=[5 * np.pi / 4, -np.pi / 4, np.pi / 4, 3 * np.pi / 4],
        upper=0.45, lower=0.42, arm=0.16,
        side=[np.sign(robot.home[robot.tree.links[robot.tree.number(f"leg{k}.2")].q.start]) for k in (1, 2, 3, 4)],
        upper_mass=[0.4, 0.45, 0.5, 0.55], upper_centre=(0.225, 0.01), lower_mass=0.3, lower_centre=0.21,
        plate_mass=1.4, plate_centre=(0.01, 0.02),
    )  # fmt: skip


def test_the_stiffness_of_a_redundant_robot_is_the_second_derivative_of_its_energy(figure):
    robot, rng, worst = load_robot("four-rrr"), np.random.default_rng(3), 0.0
    oracle = drawn(robot)
    for servo in (None, 150.0):
        for _ in range(3):
            pose = rng.uniform(-0.05, 0.05, 3)
            words = {"preload": {"leg3.1": float(rng.uniform(-30, 30))}, "weights": {"leg1.1": 2.0}}
            model = parflex.linear_model(
                robot, dict(zip(("x", "y", "theta"), pose, strict=True)), lock="none", servo=servo, **words
            )
            tau = model.loading.tau[list(robot.actuated)]
            out, K = oracle.stiffness(pose, tau, servo or 0.0)
            turn = np.eye(3)
            c, s = np.cos(pose[2]), np.sin(pose[2])
            turn[:2, :2] = [[c, -s], [s, c]]  # rates of the plate are in its own axes
            assert model.names == ["platform.vx", "platform.vy", "platform.wz"]
            assert np.abs(out).max() < 1e-9 * np.abs(tau).max()  # the efforts hold the robot
            worst = max(worst, np.abs(model.K - turn.T @ K @ turn).max() / np.abs(K).max())
            inside = model.loading.internal["efforts"]
            assert inside["leg3.1"] == pytest.approx(words["preload"]["leg3.1"])
    figure("four-rrr: stiffness with preload against the energy's second derivative", worst, EXACT)
    assert worst < EXACT


def test_frequencies_rise_with_the_preload_and_fall_against_it():
    robot, result = load_robot("four-rrr"), []
    for effort in (-0.5, 0.0, 5.0, 20.0):
        modes = parflex.natural_frequencies(robot, servo=200.0, preload={"leg2.1": effort})
        result.append(modes.frequencies[0])
        stiff = parflex.cartesian_stiffness(robot, servo=200.0, preload={"leg2.1": effort})
        values = np.linalg.eigvals(np.linalg.solve(parflex.mass_matrix(robot).matrix, stiff.stiffness))
        assert np.sqrt(values.real.min()) / (2 * np.pi) == pytest.approx(result[-1], rel=1e-6)
    assert result == sorted(result) and result[-1] > 2 * result[1]
    free = parflex.natural_frequencies(robot, lock="none", preload={"leg2.1": -20.0})
    assert free.unstable_motions and any("not stable" in said for said in free.model.warnings)


def test_a_slide_between_two_struts_has_the_stiffness_of_the_closed_form():
    robot = load_robot("struts-on-slide")
    for x, push in ((0.05, 40.0), (-0.1, -60.0)):
        for servo in (None, 500.0):
            words = {"lock": "none", "servo": servo, "preload": {"left": push}}
            model = parflex.linear_model(robot, {"slide": x}, **words)
            forces = dict(zip(robot.motors, model.loading.tau[list(robot.actuated)], strict=True))
            assert forces["left"] == pytest.approx(push)
            K = slide_between_struts(ENDS, x, forces, servo or 0.0)
            along = model.J[robot.tree.rate_names.index("slide"), 0]  # per independent rate, whichever that is
            assert model.K[0, 0] == pytest.approx(K * along**2, rel=1e-10)
            modes = parflex.natural_frequencies(robot, {"slide": x}, **words)
            if K > 0:
                assert modes.frequencies[0] == pytest.approx(np.sqrt(K / 3) / (2 * np.pi), rel=1e-10)
            else:
                assert modes.unstable_motions


def test_a_beam_between_two_motors_sounds_higher_the_harder_they_pull(figure):
    robot = load_robot("blade-between-motors")
    EI, mass = 2e11 * 0.02 * 0.002**3 / 12, 7800 * 0.002 * 0.02
    worst = 0.0
    for tension in (1.0, 100.0, 400.0):
        for words in ({}, {"servo": 1e9}):
            modes = parflex.natural_frequencies(robot, preload={"second": tension}, modes=1, **words)
            wanted = hinged_beam_under_tension(0.5, EI, mass, tension)
            worst = max(worst, abs(modes.frequencies[0] / wanted - 1))
    figure("beam between two motors: lowest frequency against the closed form", worst, 1e-4)
    assert worst < 1e-4  # eight cubic elements, and 400 N stretch the blade by 5e-5 of its length
    with pytest.raises(InputError, match="bodies deform, so each spare motor needs a stated effort"):
        parflex.natural_frequencies(robot, weights={"second": 2.0})


def test_a_preload_that_cannot_act_is_refused():
    robot = load_robot("four-rrr")
    with pytest.raises(InputError, match="a preload acts about the equilibrium"):
        parflex.natural_frequencies(robot, about="undeformed", servo=1.0, preload={"leg1.1": 1.0})
    with pytest.raises(InputError, match="efforts of the motors are given, and a preload"):
        parflex.natural_frequencies(robot, servo=1.0, preload={"leg1.1": 1.0}, effort={"leg2.1": 1.0})
    with pytest.raises(InputError, match="nothing can move"):
        parflex.natural_frequencies(robot, preload={"leg1.1": 1.0})
    with pytest.raises(InputError, match="so 'preload' has no effect"):
        parflex.natural_frequencies(parflex.load("3rrr"), servo=1.0, preload={"leg1.1": 1.0})


def test_the_command_line_tells_frequencies_and_stiffness_of_a_preload(capsys):
    shared, robot = [robot_file("four-rrr"), "--servo", "200", "--preload", "leg2.1=5"], load_robot("four-rrr")
    frequencies, stiffness = (answered(capsys, verb, *shared) for verb in ("frequencies", "stiffness"))
    modes = parflex.natural_frequencies(robot, servo=200.0, preload={"leg2.1": 5.0})
    assert frequencies["frequencies_hz"] == modes.frequencies.tolist() and frequencies["about"] == "equilibrium"
    assert frequencies["internal"] == stiffness["internal"] == modes.model.loading.internal
    held = parflex.inverse_dynamics(robot, preload={"leg2.1": 5.0})
    assert stiffness["efforts"] == pytest.approx(held.efforts)
