"""Wrong arguments of public functions that no other test gives: each is refused with its key and its reason."""

from functools import cache

import numpy as np
import pytest
from support.robots import any_robot

import parflex

CRANK = np.array([1.0, 1.1, 1.2, 1.3, 1.4])


@cache
def robot(name: str) -> parflex.Robot:
    return any_robot(name)


def run(motion=None, name="four-bar", **options):
    return parflex.simulate(robot(name), motion, **options)


def table(*times: float, last: float = 1.4) -> dict[str, np.ndarray]:
    return {"t": np.array(times), "crank": np.append(CRANK[: len(times) - 1], last)}


def waves(**more):
    return parflex.plan_motion(
        robot("3rrr"), {"frame": "platform", "sines": {"x": [0.01]}, "frequencies": [1.0]} | more
    )


HOME, QD = robot("four-bar").home, np.zeros(robot("four-bar").nv)
ENDLESS = {"circle": {"centre": [0, 0, 0], "start": [0.02, 0, 0]}, "speed": 0.1, "ramp": 0.2}
REFUSED = [
    (lambda: run(table(0, 2, 1)), "t", "'t' does not increase from 0"),
    (lambda: run(table(0, 1, 2, last=np.nan)), "motion", "not all numbers are finite"),
    (lambda: run(table(0, 0.5, 0.5, 1, 1)), "t", "the velocity jumps twice about t = 1 s"),
    (
        lambda: run({"frame": "platform", "points": [[0, 0, 0]], "speed": 0.1, "ramp": 0.2}, "3rrr"),
        "points",
        "a path needs two points",
    ),
    (lambda: parflex.plan_motion(robot("3rrr"), ENDLESS), "time", "the circle has no end"),
    (waves, "time", "the sines have no end"),
    (
        lambda: parflex.plan_motion(robot("four-bar"), {"moves": [{"crank": 1.2}], "duration": 1.0}).table(1e-9),
        "step",
        "the table would have 1e\\+09 rows",
    ),
    (lambda: run(time=1e-300), "time", "is shorter than"),
    (lambda: run(start={"q": HOME, "pose": "home"}), "start", "'q' already gives all positions"),
    (lambda: run(start={"qd": QD, "velocity": {"crank": 1.0}}), "start", "'qd' already gives all rates"),
    (lambda: parflex.state_space(robot("dualemps"), inputs=[], outputs=["x"]), "input", "no input is named"),
    (
        lambda: parflex.track_modes(robot("dualemps"), ["home", "home"], agreement=2.0),
        "agreement",
        "'agreement' is not a share",
    ),
    (lambda: parflex.track_modes(robot("dualemps"), ["home"]), "poses", "at least two poses"),
    (
        lambda: parflex.inverse_dynamics(robot("3rrr"), robot("3rrr").home, np.zeros(17), np.zeros(17)),
        "qd",
        "has the shape \\(17,\\), not \\(9,\\)",
    ),
    (
        lambda: parflex.configure(robot("satellite"), {"hull.qw": 0.5, "hull.qx": 0, "hull.qy": 0, "hull.qz": 0}),
        "pose",
        "the quaternion of 'hull' has length 0.5",
    ),
    (lambda: robot("satellite").close(0 * robot("satellite").home), "q", "the quaternion of 'hull' is zero"),
    (
        lambda: parflex.energies(robot("3rrr"), np.tile(robot("3rrr").home, (2, 1)), np.zeros((3, 9))),
        "pose",
        "'pose' has 2 states and 'velocity' has 3",
    ),
    (
        lambda: parflex.redundant_model(robot("3rrr"), sensed=2 * ["leg1.2"]),
        "sensors",
        "the joint 'leg1.2' is listed twice",
    ),
    (
        lambda: any_robot("mass-on-springs", settings={"element.0.between": ["left", "right"]}),
        "between",
        "'left' and 'right' are both on the ground, where an element has no effect",
    ),
    (
        lambda: parflex.load("four-bar", settings={"end_effector": "nobody"}),
        "end_effector",
        "there is no frame 'nobody'",
    ),
]


@pytest.mark.parametrize(("ask", "key", "words"), REFUSED)
def test_a_wrong_argument_is_refused_with_its_key_and_what_to_do(ask, key, words):
    with pytest.raises(parflex.ParflexError, match=words) as caught:
        ask()
    assert key in str(caught.value.key) and caught.value.hint


@pytest.mark.parametrize("times", [(0, 2, 1), (0, np.nan, 1), (0, -1, -2)])
def test_a_saved_run_whose_times_fall_is_refused(times, tmp_path):
    file = tmp_path / "run.csv"
    file.write_text("t,a\n" + "".join(f"{t},1\n" for t in times))
    with pytest.raises(parflex.InputError, match="the times are not increasing numbers"):
        parflex.load_run(file)
