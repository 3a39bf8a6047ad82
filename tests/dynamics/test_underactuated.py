"""Fewer motors than freedoms: efforts of the motors, and what moves by itself; against closed forms and Pinocchio."""

import numpy as np
import pytest
from support.catalogue import CATALOGUE
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.robots import load_robot

import parflex
from parflex import ActuationError, InputError

EXACT = 1e-11  # relative: both sides solve systems of condition up to 1e4 in double precision


@pytest.fixture(scope="module")
def cart():
    return load_robot("cart-pendulum")


@pytest.fixture(scope="module")
def five_bar():
    return parflex.load("5r", settings={"actuation.one": {"actuated": ["left.1"]}}, actuation="one")


def pendulum(angle, rate, push):
    """Force on the cart and angular acceleration of the bob, by Lagrange, as the cart accelerates."""
    M, m, r, inertia, g = 2.0, 0.5, 0.4, 0.01, 9.81
    spin = (m * r * np.sin(angle) * push - m * g * r * np.cos(angle)) / (inertia + m * r**2)
    force = (M + m) * push - m * r * (np.sin(angle) * spin + np.cos(angle) * rate**2)
    return force, spin


@pytest.mark.parametrize(("angle", "rate", "push"), [(-1.2, 0.7, 1.0), (0.4, -2.0, -3.0), (2.5, 0.0, 0.0)])
def test_a_cart_carries_its_pendulum_as_by_lagrange(cart, angle, rate, push):
    found = parflex.inverse_dynamics(cart, {"cart": 0.1, "bob": angle}, {"bob": rate, "cart": 0.3}, {"cart": push})
    force, spin = pendulum(angle, rate, push)
    assert found.efforts == pytest.approx({"cart": force}, rel=EXACT)
    assert found.free == pytest.approx({"bob": spin}, rel=EXACT)
    back = parflex.inverse_dynamics(cart, {"cart": 0.1, "bob": angle}, {"bob": rate, "cart": 0.3}, {"bob": spin})
    assert back.free == pytest.approx({"cart": push}, rel=1e-9, abs=1e-9)  # the other one given: less well conditioned


STATE = ({"left.1": 2.0, "right.1": 1.0}, {"left.1": 0.5, "right.1": -0.3})


def test_efforts_of_few_motors_are_those_of_pinocchio_of_the_direct_model_and_of_the_program(five_bar):
    answer = parflex.inverse_dynamics(five_bar, *STATE, {"left.1": 2.0}, reactions=True)
    direct = parflex.forward_dynamics(five_bar, *STATE, answer.efforts)
    assert np.abs(direct.accelerations - answer.accelerations).max() < EXACT * np.abs(answer.accelerations).max()
    assert len(answer.free) == 1 and answer.reactions is not None
    oracle, parts = PinocchioTree(read_robot(CATALOGUE / "5r.toml")), (answer.configuration.q, answer.rates)
    values = [dict(zip(five_bar.rates, part, strict=True)) for part in (*parts, answer.accelerations)]
    efforts = oracle.inverse(*values, ["left.1", "right.1"])
    assert efforts["left.1"] == pytest.approx(answer.efforts["left.1"], rel=1e-9)
    assert abs(efforts["right.1"]) < 1e-9 * abs(efforts["left.1"])  # it is free: as with a motor that does nothing
    program = parflex.model(five_bar, "inverse")
    order = [five_bar.rates.index(name) for name in program.about["independent"]]
    out = program(q=answer.configuration.q, qd=answer.rates[order], motor_acceleration=[2.0])
    assert out["effort"] == pytest.approx([answer.efforts["left.1"]], rel=EXACT)
    rest = [k for k in order if five_bar.rates[k] != "left.1"]
    assert out["free_acceleration"] == pytest.approx(answer.accelerations[rest], rel=EXACT)


def test_accelerations_are_counted_against_motors(cart, five_bar):
    with pytest.raises(InputError, match=r"2 accelerations \(2 independent\) for 1 motor: the others move freely"):
        parflex.inverse_dynamics(cart, acceleration={"cart": 1.0, "bob": 1.0})
    tip = parflex.inverse_dynamics(five_bar, {"left.1": 2.0, "right.1": 1.0}, acceleration={"x": 0.5})
    assert tip.acceleration_of("tip")[0] == pytest.approx(0.5, rel=1e-9)  # as many as motors, wherever they are
    with pytest.raises(InputError, match="for 1 motor"):
        parflex.inverse_dynamics(five_bar, {"left.1": 2.0, "right.1": 1.0}, acceleration={"x": 0.5, "y": 0.1})


def test_what_needs_as_many_motors_as_freedoms_says_so(cart):
    for model in ("step", "jacobian-of-inverse"):
        with pytest.raises(ActuationError, match="1 motor for 2 degrees of freedom"):
            parflex.model(cart, model)
