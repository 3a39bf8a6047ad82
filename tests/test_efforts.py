"""All functions and commands that take motor efforts read them alike, and refuse others in the same sentences."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

import parflex
from parflex import InputError, Robot
from parflex.models.motor_values import by_motor, read_efforts

NAME = "5r"
MOTORS = ["left.1", "right.1"]


@cache
def robot() -> Robot:
    return parflex.load(NAME)


class Constant:
    """A controller that answers the same each time."""

    sample_time = 1e-3

    def __init__(self, effort: Any) -> None:
        self.effort = effort

    def __call__(self, sensed: Any, memory: Any) -> tuple[Any, Any]:
        return self.effort, None


def direct(effort: Any) -> list[float]:
    return list(parflex.forward_dynamics(robot(), "home", effort=effort).efforts.values())


def at_rest(effort: Any) -> list[float]:
    """No effort moves a robot whose servos are stiff; what it holds is in the loading."""
    found = parflex.equilibrium(robot(), "home", "none", servo=1e9, effort=effort)
    return found.loading.tau[list(robot().actuated)].tolist()


def linear(effort: Any) -> list[float]:
    held = parflex.linear_model(robot(), "home", "none", servo=1e9, effort=effort)
    return held.loading.tau[list(robot().actuated)].tolist()


def bent(effort: Any) -> list[float]:
    """What turns a motor is its effort, less what the weight does."""
    bent, free = (
        parflex.deflection(robot(), "home", lock="none", servo=1e6, about="equilibrium", effort=given).configuration.q
        for given in (effort, None)
    )
    return (1e6 * (bent - free)[[robot().tree.position_names.index(motor) for motor in MOTORS]]).tolist()


def in_time(effort: Any) -> list[float]:
    run = parflex.simulate(robot(), None, 1e-3, effort=effort)
    return [float(run[f"effort.{motor}"][0]) for motor in MOTORS]


def function_of_time(effort: Any) -> list[float]:
    return in_time(lambda t: effort)


def controlled(effort: Any) -> list[float]:
    run = parflex.simulate(robot(), None, 2e-3, controller=Constant(effort))
    return [float(run[f"effort.{motor}"][0]) for motor in MOTORS]


PYTHON = {
    "direct model": direct,
    "equilibrium": at_rest,
    "linear model": linear,
    "deflection": bent,
    "simulate": in_time,
    "simulate, a function of time": function_of_time,
    "simulate, a controller": controlled,
}
WORDS: dict[str, tuple[Any, list[float]]] = {
    "nothing": (None, [0.0, 0.0]),
    "an empty table": ({}, [0.0, 0.0]),
    "names": ({"left.1": 1.5, "right.1": -2}, [1.5, -2.0]),
    "one name": ({"right.1": 0.25}, [0.0, 0.25]),
    "a coordinate": ({"qleft.1": 0.5}, [0.5, 0.0]),
    "a name and a coordinate": ({"qright.1": np.float64(0.5), "left.1": np.array([2.0])}, [2.0, 0.5]),
    "a list": ([1.5, -2], [1.5, -2.0]),
    "an array": (np.array([1.5, -2.0]), [1.5, -2.0]),
    "an array of whole numbers": (np.array([1, 2]), [1.0, 2.0]),
}
ROW = "this is not one finite effort for every motor"
REFUSED: dict[str, tuple[Any, str]] = {
    "a passive joint": ({"left.2": 1.0}, "'left.2' is not an actuated joint"),
    "a coordinate of a passive joint": ({"qleft.2": 1.0}, "'qleft.2' is not an actuated joint"),
    "no joint": ({"nonsense": 1.0}, "'nonsense' is not an actuated joint"),
    "two q": ({"qqleft.1": 1.0}, "'qqleft.1' is not an actuated joint"),
    "twice": ({"left.1": 1.0, "qleft.1": 1.0}, "the effort of 'left.1' is given twice"),
    "not finite": ({"qleft.1": float("nan")}, "the effort of 'left.1' is not a finite number"),
    "a text": ({"left.1": "1"}, "the effort of 'left.1' is not a finite number"),
    "true": ({"left.1": True}, "the effort of 'left.1' is not a finite number"),
    "two numbers": ({"left.1": np.zeros(2)}, "the effort of 'left.1' is not a finite number"),
    "a number as a name": ({1: 2.0}, "must be a dictionary of names and values, not a dictionary"),
    "too few": ([1.0], ROW),
    "too many": (np.zeros(3), ROW),
    "a list of texts": (["1", "2"], ROW),
    "a list with a NaN": ([1.0, float("nan")], ROW),
    "a list of truths": ([True, False], ROW),
    "rows": (np.zeros((1, 2)), ROW),
    "ragged": ([[1.0], [2.0, 3.0]], ROW),
    "a word": ("nonsense", ROW),
}


@pytest.mark.few
@pytest.mark.parametrize("function", PYTHON.values(), ids=PYTHON.keys())
def test_every_function_of_python_reads_the_same_keys(function):
    for what, (given, wanted) in WORDS.items():
        if given is None and function in (function_of_time, controlled):
            continue
        # numbers are passed on as they are; where a servo turns, weights turn by 1e-6 with it
        assert function(given) == pytest.approx(wanted, abs=1e-4 if function is bent else 1e-15), what


@pytest.mark.parametrize("function", PYTHON.values(), ids=PYTHON.keys())
def test_every_function_of_python_refuses_in_the_same_sentences(function):
    for what, (given, sentence) in REFUSED.items():
        with pytest.raises(InputError) as refusal:
            function(given)
        key = "controller" if function is controlled else "effort"
        assert sentence in refusal.value.message, what
        assert refusal.value.key == key and refusal.value.hint, what


@pytest.mark.parametrize(
    ("verb", "rest"),
    [("direct", []), ("stiffness", ["--lock", "none", "--servo", "1e9", "--load", "tip:0,0,0"]),
     ("frequencies", ["--lock", "none", "--servo", "1e9"]), ("simulate", ["--time", "0.001", "--out", "run.npz"])],
)  # fmt: skip
def test_every_command_reads_and_refuses_the_same(verb, rest, capsys, tmp_path, monkeypatch):
    from parflex.cli.main import main

    monkeypatch.chdir(tmp_path)

    def asked(effort: str) -> tuple[int, dict[str, Any]]:
        with pytest.raises(SystemExit) as stop:
            main([verb, NAME, *rest, "--effort", effort, "--json"])
        return int(stop.value.code or 0), json.loads(capsys.readouterr().out)

    by_name, by_coordinate = asked("left.1=0.5"), asked("qleft.1=0.5")
    assert by_name[0] == by_coordinate[0] == 0
    timed = dict.fromkeys(("seconds", "preparation_seconds", "real_time_factor"))
    assert {**by_name[1], **timed} == {**by_coordinate[1], **timed}
    for words, sentence in {
        "left.2=1": "'left.2' is not an actuated joint",
        "left.1=1,qleft.1=1": "the effort of 'left.1' is given twice",
    }.items():
        code, answer = asked(words)
        assert code == 2 and answer["error"]["key"] == "effort" and answer["error"]["message"] == sentence


def test_a_state_file_names_motors_as_all_do(capsys, tmp_path):
    from parflex.cli.main import main

    found = []
    for word in ("left.1", "qleft.1"):
        file = tmp_path / "state.json"
        file.write_text(json.dumps({"effort": {word: 0.5}}))
        with pytest.raises(SystemExit):
            main(["direct", NAME, "--state", str(file), "--json"])
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1] and "accelerations" in found[0]


def test_servos_limits_and_moves_name_motors_as_efforts_do():
    """One rule for names: with or without the q of the coordinate, never twice."""
    frequencies = [
        parflex.natural_frequencies(robot(), "home", 1, servo={word: 100.0}).frequencies
        for word in ("left.1", "qleft.1")
    ]
    assert np.array_equal(*frequencies)
    twice = {"left.1": 1.0, "qleft.1": 2.0}
    for call in (
        lambda: parflex.natural_frequencies(robot(), "home", servo=twice),
        lambda: parflex.run_control(robot(), "circle:radius=0.01,time=0.01", "pd", effort_limit=twice),
    ):
        with pytest.raises(InputError, match=r"of 'left\.1' is given twice"):
            call()
    assert by_motor(MOTORS, {"qright.1": 3, "left.1": 4}, "x") == {1: 3, 0: 4}


def test_a_name_that_begins_with_q_is_itself_first(tmp_path):
    file = tmp_path / "two.toml"
    rows = [f'[[frame]]\nname = "{n}"\nparent = "{p}"\njoint = "prismatic"\nactuated = true\ninertia = {{ M = 1 }}\n'
            for n, p in (("1", "base"), ("q1", "1"))]  # fmt: skip
    file.write_text('format = 1\nname = "two"\n' + "".join(rows))
    two = parflex.load(str(file))
    assert read_efforts(two, {"q1": 2.0}).tolist() == [0.0, 2.0]
    assert read_efforts(two, {"qq1": 2.0, "1": 1.0}).tolist() == [1.0, 2.0]
