"""Springs of joints that a file lacks are named, in motors and in passive joints; right files have none."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from oracles import led_records
from test_identification import axis_record, slide

import parflex

FIVE_BAR = (Path(__file__).parent / "robots" / "sprung-five-bar.toml").read_text().partition("[[element]]")[0]
NOISE = (2e-5, 2 * np.pi / 2**17, 0.02, 60.0)  # rad, rad, N m, N m
LACKS = "with a spring that the file lacks, "


@cache
def led(folder, joint, spring):
    """A record of the five-bar with a spring in one of its joints, by Lagrange's equations of other code."""
    path = folder / f"{joint or 'plain'}.toml"
    path.write_text(FIVE_BAR.replace(f'name = "{joint}"\n', f'name = "{joint}"\nspring = {spring}\n', 1))
    oracle, t = led_records.LedRobot(path), np.arange(1000) * 3e-3
    return led_records.as_measured(oracle.led(t, oracle.about_home(t, 3, 0.12)), 1, *NOISE)


def five_bar(tmp_path):
    (tmp_path / "five-bar.toml").write_text(FIVE_BAR)
    return parflex.load(tmp_path / "five-bar.toml")


def test_a_spring_in_a_passive_joint_is_named_with_its_numbers(tmp_path):
    record = led(tmp_path, "left.elbow", "{ stiffness = 2, rest = -1.0 }")
    (text,) = parflex.identify(five_bar(tmp_path), record).warnings
    assert "N m/rad that rests at" in text and "in 'left.elbow': check the joint" in text and "friction" not in text
    stiffness, *_, rest = text.partition(LACKS)[2].split()[:7]
    assert float(stiffness) == pytest.approx(2.0, rel=0.05)  # six deviations of 0.015 N m/rad
    assert float(rest) == pytest.approx(-1.0, abs=0.05)


def test_a_file_that_is_right_lacks_no_spring(tmp_path):
    robot = five_bar(tmp_path)
    assert not parflex.identify(robot, led(tmp_path, "", "")).warnings


def test_a_spring_of_a_motor_is_not_taken_for_friction(tmp_path):
    record = axis_record()
    place = record["x"] / 1e3
    effort = 2.5 * record["i"] + 0.05 * np.random.default_rng(0).standard_normal(len(place))
    told = {}
    for stiffness in (0.0, 150.0):
        columns = {"t": record["t"], "q.axis": place, "effort.axis": effort + stiffness * (place + 0.3)}
        texts = parflex.identify(slide(tmp_path), columns, friction="direction", cutoff=50).warnings
        told[stiffness] = [text for text in texts if LACKS in text]
    (text,) = told[150.0]
    assert "whose rest the record does not tell" in text and not told[0.0]  # friction by direction has a constant, too
    assert float(text.partition(LACKS)[2].split()[0]) == pytest.approx(
        150.0, rel=0.01
    )  # noise of 0.05 N leaves 0.03 N/m
    assert "changes with the speed" not in text
