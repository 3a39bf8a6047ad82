"""Rows of maps about equilibria that are not stable say so, however slow the motion is that grows."""

import warnings

import numpy as np
import pytest
from support.robots import load_robot

import parflex
from parflex import ParflexWarning, SingularError

LENGTH, THICK, WIDE, MODULUS, HEAD = 0.8, 0.004, 0.03, 210e9, 3.0
BENDING = MODULUS * WIDE * THICK**3 / 12
CRITICAL = np.pi**2 * BENDING / 4 / LENGTH**2


def test_a_column_beyond_its_buckling_load_is_not_stable_however_slowly_it_leaves():
    """Below it the closed form of a massless column with a head; above, the row that lost its first mode says so."""
    robot, load = load_robot("buckling-column"), 0.9 * CRITICAL
    below = parflex.natural_frequencies(robot, modes=1, wrench={"head": [0, -load, 0]})
    k = np.sqrt(load / BENDING)
    own = np.sqrt(load * k / (np.tan(k * LENGTH) - k * LENGTH) / HEAD) / (2 * np.pi)
    assert below.frequencies[0] == pytest.approx(own, rel=1e-3)  # six elements miss 1e-4 of the buckling load, times 10
    above = {"head": [0, -1.002 * CRITICAL, 0]}
    single = parflex.natural_frequencies(robot, modes=1, wrench=above)
    assert len(single.unstable_motions) == 1 and not single.free_motions
    with pytest.warns(ParflexWarning, match="2 of 2 poses are about an equilibrium that is not stable"):
        found = parflex.many_frequencies(robot, ["foot"], [[np.pi / 2]] * 2, modes=1, wrench=above)
    assert all("not stable" in reason for reason in found.reasons)


def test_rows_of_which_the_only_motion_grows_are_counted_as_not_stable():
    """An arm upright on a spring that does not hold it; hanging, it swings as the closed form says."""
    robot = load_robot("pendulum-on-motor")
    rows, stiffness = [[np.pi / 2], [-np.pi / 2]], 15.0 + 2.0 * 9.81
    for designs in (None, {"constants.stiffness": [15.0, 15.0]}):
        with pytest.warns(ParflexWarning, match="1 of 2 poses"):
            found = parflex.many_frequencies(robot, ["motor"], rows, modes=1, about="equilibrium", designs=designs)
        assert "not stable" in found.reasons[0] and not found.reasons[1] and np.isnan(found.frequencies[0, 0])
        assert found.frequencies[1, 0] == pytest.approx(np.sqrt(stiffness / 2.1) / (2 * np.pi), rel=1e-9)
    with pytest.raises(SingularError, match="not stable"):
        parflex.natural_frequencies(robot, {"motor": np.pi / 2}, 1, about="equilibrium")


def test_single_answers_warn_of_an_equilibrium_that_is_not_stable():
    robot, upright = load_robot("pendulum-on-motor"), {"motor": np.pi / 2}
    for ask in (parflex.equilibrium, parflex.natural_frequencies, parflex.deflection):
        words = {} if ask is parflex.equilibrium else {"about": "equilibrium"}
        with pytest.warns(ParflexWarning, match="equilibrium is not stable"):
            ask(robot, upright, **words)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParflexWarning)
            ask(robot, {"motor": -np.pi / 2}, **words)  # hanging, it stays
