"""Mistakes that one of several records has alone are named, and what comes again with the motion is no outlier."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles import measured
from test_lack_of_fit import FIRST, ROBOT, THIRD, followed, noisy, told

import parflex
from parflex.identification.doubts.outliers import outlying
from parflex.identification.estimates.least_squares import EffortRows


@pytest.mark.parametrize("gain", [1.1, -1.0])
def test_a_gain_that_one_record_has_alone_is_named(gain):
    other = noisy(followed(2), 1)
    (text,) = told([noisy(followed(1)), other | {THIRD: gain * other[THIRD]}])
    assert "times the efforts of 'leg3.1' in record 2 alone" in text and "outliers" not in text
    # a deviation is about 0.1 %
    assert float(text.partition(" times the efforts of 'leg3.1'")[0].split()[-1]) == pytest.approx(1 / gain, rel=0.01)


def test_a_zero_that_one_record_has_alone_is_named():
    other, motor = noisy(followed(2), 1), f"q.{measured.MOTORS[1]}"
    (text,) = told([noisy(followed(1)), other | {motor: other[motor] + 0.03}])
    assert "rad more of 'leg2.1' in record 2 alone: check that record" in text
    # noise leaves a mrad or two
    assert float(text.partition(" rad more of 'leg2.1'")[0].split()[-1]) == pytest.approx(-0.03, abs=0.004)


def rows(disturbance, seed=0):
    """A motor whose effort is its acceleration, weight and noise, and something else."""
    t = np.arange(0, 12, 0.05)
    q = np.sin(1.7 * t) + 0.4 * np.sin(4.3 * t + 1)
    W = np.stack([np.gradient(np.gradient(q, t), t), np.cos(q), np.gradient(q, t)], axis=1)[:, None, :]
    y = (W @ [0.3, 2.0, 0.1]) + 1e-3 * np.random.default_rng(seed).standard_normal((len(t), 1))
    return EffortRows(W, y + disturbance(q)[:, None])


def test_what_comes_again_with_the_motion_is_no_outlier():
    """A stop that the model lacks acts where the motor is far out, in few instants each time."""
    assert outlying(rows(lambda q: 3 * np.maximum(q - 1.0, 0.0))) == [0.0]


def test_disturbances_are_outliers_unless_they_are_long_or_of_one_record():
    def bursts(q):
        found, rng = np.zeros(len(q)), np.random.default_rng(2)
        for start in rng.integers(10, len(q) - 10, 8):
            found[start : start + 2] = rng.choice([-2.0, 2.0])
        return found

    def long(q):
        return np.where((np.arange(len(q)) > 100) & (np.arange(len(q)) < 140), 2.0, 0.0)

    disturbed, right = rows(bursts), rows(lambda q: 0 * q, 1)
    assert 0.02 < outlying(disturbed)[0] < 0.15
    assert outlying(rows(long)) == [0.0]
    both = replace(
        disturbed, W=np.concatenate([right.W, disturbed.W]), y=np.concatenate([right.y, disturbed.y]),
        starts=(0, len(right.y)),
    )  # fmt: skip
    assert outlying(both) == [0.0]


@pytest.mark.parametrize("gain", [1e3, 1 / 9.80665])
def test_efforts_of_one_motor_in_another_unit_are_named(gain):
    record = noisy(followed(1))
    (text,) = told(record | {FIRST: gain * record[FIRST]})
    assert f"times the efforts of 'leg1.1', as those in {'N mm' if gain == 1e3 else 'kgf m'}: check its gain" in text


def test_answers_have_their_warnings_and_all_springs_are_kept_by_a_word():
    found = parflex.identify(ROBOT, noisy(followed(1)), keep="all")
    assert found.as_dict()["warnings"] == found.warnings
