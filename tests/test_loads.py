"""Loads are felt or refused: in frequencies, and by robots that move in a plane."""

from __future__ import annotations

import numpy as np
import pytest
from support.command_line import answered, refused

import parflex
from parflex import InputError

PLANE = {"three": [0.0, -5.0, 2.0], "six": [0.0, -5.0, 0.0, 0.0, 0.0, 2.0]}


def test_a_load_without_a_word_about_it_means_the_equilibrium(capsys):
    free, loaded, named, wrench = (
        answered(capsys, "frequencies", "dualemps", "--modes", "1", *words)
        for words in (
            (),
            ("--load", "17:20,0,0"),
            ("--load", "17:20,0,0", "--about", "equilibrium"),
            ("--wrench", "17=20,0,0"),
        )
    )
    assert (free["about"], loaded["about"]) == ("undeformed", "equilibrium")
    assert abs(loaded["frequencies_hz"][0] - free["frequencies_hz"][0]) > 0.01  # Hz: 14.207, then 13.906
    assert loaded["frequencies_hz"] == named["frequencies_hz"] == wrench["frequencies_hz"]


def test_a_load_that_would_change_nothing_is_refused(capsys):
    load = ("--load", "platform:0,0,-2000")
    error = refused(capsys, "frequencies", "navaro", "--about", "undeformed", *load)
    assert error["key"] == "about"
    error = refused(capsys, "frequencies", "navaro", "--wrench", "platform=0,0,1", *load)
    assert "given twice" in error["message"]
    robot = parflex.load("dualemps")
    for call in (parflex.natural_frequencies, parflex.cartesian_stiffness):
        with pytest.raises(InputError, match="have no effect"):
            call(robot, about="undeformed", wrench={"17": [1.0, 0.0, 0.0]})
    first = parflex.deflection(robot, about="undeformed", wrench={"17": [1.0, 0.0, 0.0]})  # to first order
    assert np.abs(first.frames["17"]).max() > 0


@pytest.mark.parametrize("numbers", PLANE)
def test_three_numbers_on_a_planar_robot_are_a_force_and_a_moment_in_its_plane(numbers):
    robot = parflex.load("3rrr")
    free, loaded = (
        np.array(list(parflex.inverse_dynamics(robot, wrench=wrenches).efforts.values()))
        for wrenches in ({}, {"platform": PLANE[numbers]})
    )
    J = parflex.jacobian(robot)[[0, 1, 5]]  # of the platform per motor rate
    assert loaded - free == pytest.approx(-J.T @ [0.0, -5.0, 2.0], rel=1e-9)  # virtual powers


def test_what_a_planar_robot_cannot_feel_is_refused(capsys):
    for verb in ("inverse", "direct"):
        assert (
            "do not act on a planar robot"
            in refused(capsys, verb, "3rrr", "--wrench", "platform=0,0,5,0,0,0")["message"]
        )
    robot = parflex.load("3rrr")
    with pytest.raises(InputError, match="do not act on a planar robot"):
        parflex.simulate(robot, None, 0.01, wrench={"platform": [0, 0, 5, 0, 0, 0]})
    with pytest.raises(InputError, match="do not act on a planar robot"):
        parflex.simulate(robot, None, 0.01, wrench={"platform": lambda t: [0, 0, 5, 0, 0, 0]})
    with pytest.raises(InputError, match="do not act on a planar robot"):
        parflex.natural_frequencies(parflex.load("dualemps"), wrench={"17": [0, 0, 1, 0, 0, 0]})


def test_three_efforts_are_none_for_six_motors():
    """They were once padded like a force without a moment."""
    with pytest.raises(InputError, match="6 numbers"):
        parflex.simulate(parflex.load("gough-stewart"), None, 0.01, effort=[1.0, 2.0, 3.0])
