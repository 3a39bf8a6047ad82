"""Residuals that are not noise are told, with what explains them; those of right records are not."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from oracles import measured
from oracles import three_rrr as hand
from test_identification import BY_HAND, RUBBED, UNDER_CONTROL, loaded, slide

import parflex
from parflex.errors import ParflexError

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


def exchanged(record, words=("q", "effort")):
    """Columns of the first two motors of one another."""
    first, second = measured.MOTORS[:2]
    pairs = [(f"{word}.{first}", f"{word}.{second}") for word in words]
    return record | {a: record[b] for a, b in pairs} | {b: record[a] for a, b in pairs}


@pytest.mark.parametrize(("words", "what"), [(("q", "effort"), "all columns"), (("q",), "positions")])
def test_motors_whose_columns_are_exchanged_are_named(words, what):
    with pytest.raises(ParflexError, match=f"but with {what} of 'leg1.1' and 'leg2.1' exchanged"):
        parflex.identify(ROBOT, exchanged(noisy(followed(1)), words))


def test_a_suspicion_does_not_hide_that_efforts_are_missed():
    warnings = parflex.identify(ROBOT, exchanged(noisy(followed(1)), ("effort",))).warnings
    both = [text for text in warnings if "efforts of 'leg1.1' and 'leg2.1' exchanged" in text]
    assert len(both) == 2 and "by the numbers of the file" in both[0] and "times what noise" in both[1]


@pytest.mark.parametrize("off", [0.0, 0.1])
def test_the_zero_of_an_encoder_is_named_though_weights_hide_it(off):
    record = noisy(followed(1))
    second = f"q.{measured.MOTORS[1]}"
    warnings = parflex.identify(ROBOT, record | {second: record[second] + off}).warnings
    found = [text.partition("zero of 'leg2.1' off by ")[2] for text in warnings if "with the zero of" in text]
    assert len(found) == (1 if off else 0)
    if off:
        assert float(found[0].split()[0]) == pytest.approx(off, abs=0.02)  # six deviations of 3 mrad


@pytest.mark.parametrize("wrong", [False, True])
def test_residuals_of_drives_whose_gains_are_found_are_told(wrong, tmp_path):
    files = []
    for seed, (name, load) in enumerate((("empty", 0.0), ("loaded", 2.0))):
        record = noisy(followed(1 + seed, load), seed)
        record = exchanged(record, ("effort",)) if wrong else record | {THIRD: record[THIRD] / 1.3}
        np.savez(tmp_path / f"{name}.npz", **record)
        files.append(str(tmp_path / f"{name}.npz"))
    columns = {
        "position": {m: f"q.{m}" for m in measured.MOTORS}, "effort": {m: f"effort.{m}" for m in measured.MOTORS},
        "payload": {"loaded.npz": [2.0, 0, 0, 0]},
    }  # fmt: skip
    answer = parflex.identify(ROBOT, files, columns, "tls")
    found = [text for text in answer.warnings if "times what noise of the record leaves" in text]
    assert len(found) == wrong
    if not wrong:  # deviations of the gain are 0.1 %; motors that count by what wrong gains leave give 1.366
        assert answer.gains["leg3.1"]["value"] == pytest.approx(1.3, rel=3e-3)
    assert not wrong or "with efforts of 'leg1.1' and 'leg2.1' exchanged: check their columns" in found[0]


@pytest.mark.parametrize("wrong", [False, True])
def test_residuals_of_simulated_records_are_told(wrong, tmp_path):
    record = {name: column[500:] for name, column in measured.sliding_mass(2.0, noise=1e-4).items()}
    disturbed = record | {"i": record["i"] + wrong * 0.5 * np.sin(40 * record["t"])}
    found = parflex.identify(slide(tmp_path), disturbed, UNDER_CONTROL, "didim", cutoff=40, decimate=4)
    assert sum("times what noise of the record leaves" in text for text in found.warnings) == wrong


@pytest.mark.parametrize("change", [{"kp": 78}, {"delay": 8}])
def test_a_simulated_controller_that_is_not_that_of_the_record_is_the_cause(change, tmp_path):
    """The model is right, so that no column, friction or gain is blamed."""
    record = {name: column[500:] for name, column in measured.sliding_mass(2.0, noise=1e-4).items()}
    columns = UNDER_CONTROL | {"controller": UNDER_CONTROL["controller"] | change}
    text = parflex.identify(slide(tmp_path), record, columns, "didim", cutoff=40, decimate=4).warnings[0]
    assert re.fullmatch(
        r"record: \d+\.\d+ % of the efforts of 'axis' are missed, \d\.\d times what noise of the record leaves, and "
        r"noise alone where recorded positions are taken: the simulated controller is not that of the record; check "
        r"gains, delay and sample_time of \[controller\], which is the step of the record where it is not given",
        text,
    )


def test_a_cause_is_told_with_what_is_missed_without_and_with_it():
    record = noisy(MISTAKES["times the efforts of 'leg3.1': check its gain"](followed(1)))
    (text,) = parflex.identify(ROBOT, record).warnings
    found = re.fullmatch(
        r"record: (.*) % of the efforts of 'leg1.1' are missed, (\d+) times what noise of the record leaves, and "
        r"intervals do not hold it: mean of all motors (.*) %, and (.*) % with (0\.\d+) times the efforts of 'leg3.1': "
        r"check its gain",
        text,
    )
    assert found is not None
    missed, times, now, left, gain = map(float, found.groups())
    assert missed > now > 10 * left and times > 2
    assert gain == pytest.approx(0.5, rel=0.02)  # efforts are twice as large as they should be


def test_a_payload_named_on_the_empty_record_is_told_as_such(tmp_path):
    columns = BY_HAND | {"payload": {"empty.npz": [3.0, 0, 0, 0.1]}}  # the other one carries it
    warnings = parflex.identify(
        slide(tmp_path), loaded(tmp_path, 3.0), columns, friction="direction", cutoff=50
    ).warnings
    assert any("one of those is the loaded one, check [payload]" in text for text in warnings)


def test_the_offset_of_an_encoder_that_is_whole_turns_off_is_told():
    record = noisy(followed(1))
    first = f"q.{measured.MOTORS[0]}"
    with pytest.raises(
        ParflexError, match=r"with 'leg1.1' 2 whole turns back.*add an offset of -12.57 rad of 'leg1.1'"
    ):
        parflex.identify(ROBOT, record | {first: record[first] + 4 * np.pi})


def test_whole_turns_that_encoders_count_are_named_before_units_and_columns():
    record = noisy(followed(1))
    first, second = (f"q.{motor}" for motor in measured.MOTORS[:2])
    turned = record | {first: record[first] + 2 * np.pi, second: record[second] - 2 * np.pi}
    words = r"'leg1.1' 1 whole turn back and 'leg2.1' 1 whole turn on.*-6.283 rad of 'leg1.1', 6.283 rad of 'leg2.1'"
    with pytest.raises(ParflexError, match=words):
        parflex.identify(ROBOT, turned)


@pytest.mark.parametrize("estimator", ["wls", "irls"])
def test_the_gain_of_a_motor_is_named_though_parameters_follow_it(estimator):
    record = noisy(followed(1))
    found = parflex.identify(ROBOT, record | {THIRD: 1.08 * record[THIRD]}, estimator=estimator).warnings
    assert any("0.92" in text and "times the efforts of 'leg3.1': check its gain" in text for text in found)
