"""Residuals above the noise level are reported, with their motors; those of right records are not."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.oracles import measured
from support.recordings import BY_HAND, UNDER_CONTROL, loaded, slide
from support.sliding_axis_records import ROBOT, followed, led, led_record, noisy

import parflex
from parflex import ParflexError

FIRST, SECOND, THIRD = (f"effort.{m}" for m in measured.MOTORS)


def by_direction(clean):
    """Motors that take more in one direction than in the other."""
    found = dict(clean)
    for motor in measured.MOTORS:
        rate = np.gradient(clean[f"q.{motor}"], clean["t"])
        found[f"effort.{motor}"] = clean[f"effort.{motor}"] + 1.5 * np.abs(rate) + 0.4
    return found


def disturbed(clean):
    """A sine that no body of the robot explains."""
    return clean | {FIRST: clean[FIRST] + 5 * np.sin(2 * np.pi * 1.7 * clean["t"])}


MISTAKES = {
    "exchanged columns": lambda one: one | {FIRST: one[SECOND], SECOND: one[FIRST]},
    "a gain": lambda one: one | {THIRD: 2 * one[THIRD]},
    "a delay": lambda one: one | {e: np.roll(one[e], 12) for e in (FIRST, SECOND, THIRD)},
    "a zero": lambda one: one | {f"q.{measured.MOTORS[1]}": one[f"q.{measured.MOTORS[1]}"] + 0.1},
    "friction by direction": by_direction,
    "a disturbance": disturbed,
}
ABOVE = "residuals are above the noise level"


def told(records, **options):
    found = parflex.identify(ROBOT, records, **options)
    return [text for text in found.warnings if ABOVE in text]


@pytest.mark.parametrize("estimator", ["wls", "irls"])
def test_right_records_are_not_doubted(estimator):
    assert not told([noisy(followed(1)), noisy(followed(2), 1)], estimator=estimator)
    assert not told(followed(1), estimator=estimator)  # without any noise


@pytest.mark.few
@pytest.mark.parametrize("mistake", MISTAKES)
def test_residuals_above_noise_are_reported_with_their_motors(mistake):
    (text,) = told(noisy(MISTAKES[mistake](followed(1))))
    assert text.startswith("record: ") and "confidence intervals do not include this model error; check units" in text
    motors = re.findall(r"'(leg\d\.1)': (\S+) % of its efforts, (\S+) times the noise", text)
    assert motors and all(float(size) > 0.2 and float(times) > 2 for _, size, times in motors)


@pytest.mark.parametrize("motor", [None, measured.MOTORS[1]])
def test_mistakes_of_one_of_several_records_are_reported(motor):
    """A payload that the map does not name, or the zero of a motor: parameters fit neither record."""
    other = followed(2, 2.0) if motor is None else followed(2) | {f"q.{motor}": followed(2)[f"q.{motor}"] + 0.03}
    found = told([noisy(followed(1)), noisy(other, 1)])
    assert [text.partition(":")[0] for text in found] == ["record 1", "record 2"]


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
    assert any("efforts of 'leg1.1' and 'leg2.1' exchanged" in text for text in warnings)
    assert any(ABOVE in text for text in warnings)


@pytest.mark.verify
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
    found = [text for text in answer.warnings if ABOVE in text]
    assert bool(found) == wrong
    if not wrong:  # deviations of the gain are 0.1 %; motors that count by what wrong gains leave give 1.366
        assert answer.gains["leg3.1"]["value"] == pytest.approx(1.3, rel=3e-3)


@pytest.mark.parametrize("wrong", [False, True])
def test_residuals_of_simulated_records_are_told(wrong, tmp_path):
    record = {name: column[500:] for name, column in measured.sliding_mass(2.0, noise=1e-4).items()}
    disturbed = record | {"i": record["i"] + wrong * 0.5 * np.sin(40 * record["t"])}
    found = parflex.identify(slide(tmp_path), disturbed, UNDER_CONTROL, "didim", cutoff=40, decimate=4)
    assert sum(ABOVE in text for text in found.warnings) == wrong


@pytest.mark.parametrize("change", [{"kp": 78}, {"delay": 8}])
def test_a_simulated_controller_that_is_not_that_of_the_record_is_the_cause(change, tmp_path):
    """The model is right, so that no column, friction or gain is blamed."""
    record = {name: column[500:] for name, column in measured.sliding_mass(2.0, noise=1e-4).items()}
    columns = UNDER_CONTROL | {"controller": UNDER_CONTROL["controller"] | change}
    text = parflex.identify(slide(tmp_path), record, columns, "didim", cutoff=40, decimate=4).warnings[0]
    assert re.fullmatch(
        r"record: residuals are above the noise level \('axis': \d+\.\d+ % of its efforts, \d\.\d times the noise\): "
        r"those of recorded positions are noise, so the simulated controller is not that of the record; check gains, "
        r"delay and sample_time of \[controller\], whose default is the step of the record",
        text,
    )


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


def test_answers_have_their_warnings_and_all_springs_are_kept_by_a_word():
    found = parflex.identify(ROBOT, noisy(followed(1)), keep="all")
    assert found.as_dict()["warnings"] == found.warnings


# -- other robots, led about home ------------------------------------------------------------------------------------


RIGHT = (
    "emps", "5r", "rod-linkage", "scara", "planar-arm",
    *(pytest.param(name, marks=pytest.mark.verify)
      for name in ("two-bodies", "3rrr", "delta", "orthoglide", "3-prrr", "rx90", "nested", "upu", "wrist", "struts")),
)  # fmt: skip


@pytest.mark.few
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("noise", [0.0, 3e-3])
def test_right_records_of_other_robots_are_not_doubted(name, noise):
    found = parflex.identify(led(name)[0], led_record(name, 0.0, noise), friction="symmetric")
    assert not any(ABOVE in text or "friction" in text for text in found.warnings)


@pytest.mark.parametrize("name", ["emps", "scara", "planar-arm"])
def test_constant_efforts_of_drives_are_reported_until_they_are_identified(name):
    robot, record = led(name)[0], led_record(name, 0.05, 3e-3)
    assert any(ABOVE in text for text in parflex.identify(robot, record, friction="symmetric").warnings)
    assert not parflex.identify(robot, record, friction="offset").warnings
