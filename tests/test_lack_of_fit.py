"""Residuals that are not noise are told, with what explains them; those of right records are not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from oracles import measured
from oracles import three_rrr as hand
from test_identification import RUBBED

import parflex

ROBOT = parflex.load("3rrr", working_mode="+-+", settings=RUBBED)
FIRST, SECOND, THIRD = (f"effort.{m}" for m in measured.MOTORS)


@cache
def followed(seed, load=0.0):
    loop, p = measured.Loop(sample=2e-3), hand.Parameters()
    return measured.followed(4.0, seed, loop, hand.Parameters(m_c=p.m_c + load))


def noisy(clean, seed=0):
    return measured.as_measured(clean, seed)


def by_direction(clean):
    """Motors that take more in one direction than in the other."""
    found = dict(clean)
    for motor in measured.MOTORS:
        rate = np.gradient(clean[f"q.{motor}"], clean["t"])
        found[f"effort.{motor}"] = clean[f"effort.{motor}"] + 1.5 * np.abs(rate) + 0.4
    return found


MISTAKES = {
    "exchanged: check their columns": lambda one: one | {FIRST: one[SECOND], SECOND: one[FIRST]},
    "times the efforts of 'leg3.1': check its gain": lambda one: one | {THIRD: 2 * one[THIRD]},
    "later than positions": lambda one: one | {e: np.roll(one[e], 12) for e in (FIRST, SECOND, THIRD)},
    "friction that differs by direction: use friction 'direction'": by_direction,
}


def told(records, **options):
    found = parflex.identify(ROBOT, records, **options)
    return [text for text in found.warnings if "times what noise of the record leaves" in text]


@pytest.mark.parametrize("estimator", ["wls", "irls"])
def test_right_records_are_not_doubted(estimator):
    assert not told([noisy(followed(1)), noisy(followed(2), 1)], estimator=estimator)
    assert not told(followed(1), estimator=estimator)  # without any noise


@pytest.mark.parametrize("words", MISTAKES)
def test_the_cause_of_residuals_that_are_no_noise_is_named(words):
    found = told(noisy(MISTAKES[words](followed(1))))
    assert len(found) == 1 and words in found[0] and "intervals do not hold" in found[0]


def test_a_payload_of_one_record_is_found_though_nothing_is_said_of_it():
    found = told([noisy(followed(1)), noisy(followed(2, 2.0), 1)])
    # deviations of the mass are about 0.5 % of it
    assert len(found) == 1 and "kg more at (" in found[0] and "name its [payload]" in found[0]
    assert float(found[0].partition(" kg more")[0].rpartition(" ")[2]) == pytest.approx(2.0, rel=0.02)


def test_residuals_that_nothing_explains_are_told_as_such():
    clean = followed(1)
    unknown = 5 * np.sin(2 * np.pi * 1.7 * clean["t"])  # of no body of the robot
    found = told(noisy(clean | {FIRST: clean[FIRST] + unknown}))
    assert len(found) == 1 and "the model lacks something" in found[0]
