"""Maps say where elements are too few by the rule of single answers, in the cell with the highest frequency."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import parflex
from parflex.maps.responses.at_one_pose import Held
from parflex.maps.worst_cell import _are_enough

POSES = np.array([(a, b) for a in (-0.05, 0.05) for b in (-0.04, 0.05)])
AXES = [("11", -0.05, 0.05, 2), ("21", -0.04, 0.05, 2)]


def told(ask) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ask()
    return [str(one.message) for one in found if "too high" in str(one.message)]


@pytest.mark.parametrize("way", ["many", "map", "responses", "equilibrium"])
def test_a_map_says_what_the_single_answer_says_in_its_worst_cell(way):
    robot = parflex.load("dualemps")
    asked = {
        "many": lambda: parflex.many_frequencies(robot, ["11", "21"], POSES, modes=4),
        "map": lambda: parflex.frequency_map(robot, AXES, modes=4),
        "responses": lambda: parflex.many_responses(robot, ["11", "21"], POSES, ["frequency:4"]),
        "equilibrium": lambda: parflex.many_frequencies(robot, ["11", "21"], POSES, modes=4, about="equilibrium"),
    }
    single, highest = [], []
    for pose in POSES:
        found = parflex.natural_frequencies(robot, {"11": pose[0], "21": pose[1]}, 4)
        highest.append(found.frequencies.max())
        single.append((found.too_few, pose))
    (sentence,), pose = single[int(np.argmax(highest))]
    (said,) = told(asked[way])  # once
    assert said.endswith(sentence) and f"11 = {pose[0]:.4g}, 21 = {pose[1]:.4g}" in said


def test_a_map_with_enough_elements_says_nothing():
    robot = parflex.load("dualemps", elements=4)
    assert told(lambda: parflex.many_frequencies(robot, ["11", "21"], POSES, modes=4)) == []
    assert _are_enough(robot, 90.0, Held("actuators", None, None))  # without a further solution


def test_what_is_not_solved_again_has_no_excess_beyond_the_limit():
    """The bound beside estimates: modes of a robot with one and more elements, low and high ones."""
    for elements, modes in ((1, 2), (1, 8), (3, 14)):
        robot = parflex.load("dualemps", elements=elements)
        found = parflex.natural_frequencies(robot, {"11": 0.0, "21": 0.0}, modes)
        for frequency, excess in zip(found.frequencies, found.excess, strict=True):
            if _are_enough(robot, float(frequency), Held("actuators", None, None)):
                assert excess <= 0.05
