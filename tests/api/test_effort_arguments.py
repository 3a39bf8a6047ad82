"""All functions and commands that take motor efforts read them alike, and refuse others in the same sentences."""

from typing import Any

import numpy as np
import pytest
from support.command_line import answered, refused
from support.robots import write_robot

import parflex

ROBOT, MOTORS = parflex.load("5r"), ["left.1", "right.1"]


class Constant:
    """A controller that answers the same each time."""

    sample_time = 1e-3

    def __init__(self, effort: Any) -> None:
        self.effort = effort

    def __call__(self, sensed: Any, memory: Any) -> tuple[Any, Any]:
        return self.effort, None


def first(run: parflex.Run) -> list[float]:
    return [float(run[f"effort.{motor}"][0]) for motor in MOTORS]


def held(result: Any) -> list[float]:
    """What servos so stiff that no effort moves the robot hold is in the loading."""
    return result.loading.tau[list(ROBOT.actuated)].tolist()


def bent(effort: Any) -> list[float]:
    """What turns a motor is its effort, less what the weight does."""
    soft = {"lock": "none", "servo": 1e6, "about": "equilibrium"}
    bent, free = (parflex.deflection(ROBOT, "home", effort=each, **soft).configuration.q for each in (effort, None))
    return (1e6 * (bent - free)[[ROBOT.coordinates.index(motor) for motor in MOTORS]]).tolist()


STIFF = {"servo": 1e9}
PYTHON = {
    "direct model": lambda effort: list(parflex.forward_dynamics(ROBOT, "home", effort=effort).efforts.values()),
    "equilibrium": lambda effort: held(parflex.equilibrium(ROBOT, "home", "none", effort=effort, **STIFF)),
    "linear model": lambda effort: held(parflex.linear_model(ROBOT, "home", "none", effort=effort, **STIFF)),
    "deflection": bent,
    "simulate": lambda effort: first(parflex.simulate(ROBOT, None, 1e-3, effort=effort)),
    "function of time": lambda effort: first(parflex.simulate(ROBOT, None, 1e-3, effort=lambda t: effort)),
    "controller": lambda effort: first(parflex.simulate(ROBOT, None, 2e-3, controller=Constant(effort))),
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


@pytest.mark.few("direct", "simulate", "controller")
@pytest.mark.parametrize("function", PYTHON)
def test_every_function_of_python_reads_the_same_keys(function):
    for what, (given, wanted) in WORDS.items():
        if given is None and function in ("function of time", "controller"):
            continue
        # numbers are passed on as they are; where a servo turns, weights turn by 1e-6 with it
        assert PYTHON[function](given) == pytest.approx(wanted, abs=1e-4 if function == "deflection" else 1e-15), what


@pytest.mark.parametrize("function", PYTHON)
def test_every_function_of_python_refuses_in_the_same_sentences(function):
    for what, (given, sentence) in REFUSED.items():
        with pytest.raises(parflex.InputError) as refusal:
            PYTHON[function](given)
        assert sentence in refusal.value.message, what
        assert refusal.value.key == ("controller" if function == "controller" else "effort"), what
        assert refusal.value.hint, what


@pytest.mark.parametrize(
    ("verb", "rest"),
    [
        ("direct", []),
        ("stiffness", ["--lock", "none", "--servo", "1e9", "--load", "tip:0,0,0"]),
        ("frequencies", ["--lock", "none", "--servo", "1e9"]),
        ("simulate", ["--time", "0.001", "--out", "run.npz"]),
    ],
)
def test_every_command_reads_and_refuses_the_same(verb, rest, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_name, by_coordinate = (answered(capsys, verb, "5r", *rest, "--effort", f"{q}left.1=0.5") for q in ("", "q"))
    timed = dict.fromkeys(("seconds", "preparation_seconds", "real_time_factor"))
    assert by_name | timed == by_coordinate | timed
    passive, twice = "'left.2' is not an actuated joint", "the effort of 'left.1' is given twice"
    for words, sentence in (("left.2=1", passive), ("left.1=1,qleft.1=1", twice)):
        error = refused(capsys, verb, "5r", *rest, "--effort", words)
        assert (error["key"], error["message"]) == ("effort", sentence)


def test_servos_and_limits_name_motors_as_efforts_do():
    """One rule for names: with or without the q of the coordinate, never twice."""
    servos = [{word: 100.0} for word in ("left.1", "qleft.1")]
    assert np.array_equal(*(parflex.natural_frequencies(ROBOT, "home", 1, servo=one).frequencies for one in servos))
    twice = {"left.1": 1.0, "qleft.1": 2.0}
    for call in (
        lambda: parflex.natural_frequencies(ROBOT, "home", servo=twice),
        lambda: parflex.run_control(ROBOT, "circle:radius=0.01,time=0.01", "pd", effort_limit=twice),
    ):
        with pytest.raises(parflex.InputError, match=r"of 'left\.1' is given twice"):
            call()


def test_a_name_that_begins_with_q_is_itself_first(tmp_path):
    slide = 'joint = "prismatic"\nactuated = true\ninertia = { M = 1 }\n'
    names = (("1", "base"), ("q1", "1"))
    rows = [f'[[frame]]\nname = "{name}"\nparent = "{parent}"\n{slide}' for name, parent in names]
    two = parflex.load(write_robot(tmp_path, 'format = 1\nname = "two"\n' + "".join(rows)))
    for given, wanted in (({"q1": 2.0}, [0.0, 2.0]), ({"qq1": 2.0, "1": 1.0}, [1.0, 2.0])):
        assert list(parflex.forward_dynamics(two, effort=given).efforts.values()) == wanted
