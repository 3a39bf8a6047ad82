"""Recorded positions of passive joints are compared with those that loops give from the motors."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support.oracles import measured
from support.oracles import three_rrr as hand
from support.sliding_axis_records import ROBOT, followed, noisy

import parflex

ELBOW = "leg2.2"  # which turns against the link before it


@cache
def elbow():
    """Its angle by the geometry of the oracle: those of passive joints stand behind those of motors."""
    p = hand.Parameters()
    rows = [measured.joints(p, *measured.path(t, 1)[:2])[0] for t in followed(1)["t"]]
    return np.unwrap([row[4] for row in rows])


def told(column, **others):
    record = noisy(followed(1)) | {f"q.{ELBOW}": column} | others
    warnings = parflex.identify(ROBOT, record).warnings
    return [text for text in warnings if ELBOW in text]


@pytest.mark.few
@pytest.mark.parametrize("off", [0.0, 0.3, 2 * np.pi])
def test_a_sensor_whose_zero_is_off_is_told_with_how_much(off):
    noise = 2e-3 * np.random.default_rng(0).standard_normal(len(elbow()))
    found = told(elbow() + off + noise)
    assert len(found) == (off == 0.3)
    for text in found:
        assert "recorded 0.3 rad off what loops and motors give, 1" in text and "times the noise of its sensor" in text
        assert "its zero or that of a motor is off" in text


def test_a_sensor_that_does_not_follow_the_loops_is_told():
    (text,) = told(-elbow())
    assert "check its sign, unit and column" in text or "more with the motion" in text


def test_sensors_are_named_by_the_map():
    record = noisy(followed(1)) | {"elbow": np.degrees(elbow()) + 17.2}
    words = {"position": "q", "effort": "effort"}
    columns = {key: {m: f"{word}.{m}" for m in measured.MOTORS} for key, word in words.items()}
    columns["position"][ELBOW] = {"column": "elbow", "gain": np.pi / 180}
    warnings = parflex.identify(ROBOT, record, columns).warnings
    assert any(f"'{ELBOW}' is recorded 0.3 rad off" in text for text in warnings)
