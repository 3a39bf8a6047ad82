"""Gains of PD, frequencies of responses, inputs of models, figures of modes: taken as given, or one sentence."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
from support.robots import load_robot

import parflex
from parflex.simulation import simulate

MOTORS = ["a", "b"]


def test_controllers_with_arrays_compare_and_hash():
    one, two = (parflex.PD(np.array([1.0, 2.0]), [1.0, 2.0]) for _ in range(2))
    assert one == two and hash(one) == hash(two) and one != parflex.PD(np.array([1.0, 3.0]), [1.0, 2.0])


def test_gains_are_for_all_motors_for_each_or_by_name():
    sensed = parflex.Sensed(0.0, np.zeros(2), np.zeros(2), np.array([1.0, 1.0]), np.zeros(2), np.zeros(2))
    given = parflex.PD({"b": 3.0}, 0.0), parflex.PD([0.0, 3.0], [1.0, 1.0]), parflex.PD(3.0, 1.0, limit={"a": 2.0})
    found = [controller.of(MOTORS)(sensed, None)[0].tolist() for controller in given]
    assert found == [[0.0, 3.0], [0.0, 3.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("gains", "sentence"),
    [
        ({"stiffness": -1.0}, "the stiffness of a PD controller is not a number"),
        ({"damping": [1.0, -1.0]}, "the damping of a PD controller is not a number"),
        ({"stiffness": "stiff"}, "the stiffness of a PD controller is not a number"),
        ({"feedforward": np.inf}, "the feedforward of a PD controller is not a number"),
        ({"sample_time": 0.0}, "'sample_time' is not a positive number"),
        ({"stiffness": [1.0, 2.0, 3.0]}, "the stiffness of a PD controller has 3 numbers for 2 motors"),
        ({"damping": {"c": 1.0}}, "'c' is not an actuated joint"),
    ],
)
def test_gains_that_are_none_are_refused(gains, sentence):
    with pytest.raises(parflex.InputError, match=sentence) as error:
        parflex.PD(**{"stiffness": 1.0, "damping": 1.0, **gains}).of(MOTORS)
    assert error.value.key in gains and error.value.hint


def test_a_run_takes_gains_by_name_and_refuses_too_many():
    robot = parflex.load("5r")
    with pytest.raises(parflex.InputError, match="has 3 numbers for 2 motors"):
        parflex.simulate(robot, None, 0.01, controller=parflex.PD([1.0, 2.0, 3.0], 1.0))
    gains = parflex.PD({"left.1": 0.0}, 0.0, feedforward={"left.1": 0.5})
    named = parflex.simulate(robot, None, 0.01, controller=gains)
    assert named["effort.left.1"] == pytest.approx(0.5) and not named["effort.right.1"].any()


@pytest.fixture(scope="module")
def oscillator():
    return load_robot("oscillator")


def test_a_response_takes_one_frequency_and_refuses_what_is_none(oscillator):
    space = parflex.state_space(oscillator, ["m"], ["m.theta"])
    assert space.response(14.0) == pytest.approx(space.response([14.0]))
    assert space.response(0.0)[0, 0, 0] == pytest.approx(1 / 50.0)
    for wrong in (["a"], [np.nan], [1.0, np.inf], -1.0, [[1.0]]):
        with pytest.raises(parflex.InputError, match="the frequencies are not finite numbers"):
            space.response(wrong)


def test_modes_without_lines_are_refused_in_one_sentence(oscillator):
    with pytest.raises(parflex.InputError, match="has no lines that show a mode"):
        parflex.draw_modes(parflex.natural_frequencies(oscillator))


def test_a_model_called_by_position_names_its_inputs(oscillator):
    made = parflex.model(oscillator, "mass-matrix")
    with pytest.raises(parflex.InputError, match="takes its inputs by name: q") as error:
        made(np.zeros(1))
    assert "q=..." in error.value.hint


def test_a_first_compilation_is_said_once_on_a_machine(caplog):
    loop = SimpleNamespace(__name__="gauss_steps", is_kept=lambda: False)
    with caplog.at_level(logging.WARNING, logger="parflex"):
        assert simulate.say_first_compilation(loop)
        assert "compiles the time loop" in caplog.text
        loop.is_kept = lambda: True
        assert not simulate.say_first_compilation(loop)
