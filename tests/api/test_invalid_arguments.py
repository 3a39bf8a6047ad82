"""Invalid arguments raise one error of parflex; gains, frequencies and inputs are used as specified."""

import logging
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.robots import load_robot

import parflex
from parflex import ParflexError, Robot, StudyFile
from parflex.simulation import simulate

NAN = float("nan")
STRANGE: dict[str, Any] = {
    "text": "nonsense", "empty text": "", "number": 3.5, "negative": -1, "NaN": NAN, "infinity": float("inf"),
    "true": True, "empty list": [], "list of numbers": [1.0, 2.0], "list of words": ["nonsense"],
    "nested": [[1.0], [2.0, 3.0]], "table of an unknown name": {"nonsense": 1.0}, "table of texts": {"x": "a"},
    "table of NaN": {"x": NAN}, "table of numbers as names": {1: 2.0}, "array": np.zeros(6),
    "array of NaN": np.full(3, NAN), "object": object(), "bytes": b"x", "nothing": None,
}  # fmt: skip


@cache
def robot(name: str) -> Robot:
    return parflex.load(name)


def calls(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return for each function a robot and valid arguments."""
    still, held = {"pose": "home", "velocity": {}, "wrench": {}, "without": ()}, {"pose": "home", "lock": "actuators"}
    over = [("11", 0.0, 0.01, 2)]
    ends = {"inputs": ["crank"], "outputs": ["crank"], "about": "undeformed", "lock": "none"}
    rows = {"coordinates": ["11", "21"], "poses": [[0.0, 0.0]], "modes": 1, "lock": "actuators", "shapes": False}
    program = {"name": "inverse", "parameters": "numbers", "without": (), "include": None, "wrench_frames": ()}
    path = {"poses": ["home", {"11": 0.01, "21": 0.0}], "modes": 1, "lock": "actuators", "agreement": 0.8}
    return {
        "base_parameters": ("5r", {"samples": 3}),
        "cartesian_stiffness": ("dualemps", held | {"frame": None, "about": None, "wrench": {}}),
        "configure": ("5r", {"pose": "home"}),
        "deflection": ("dualemps", held | {"frames": (), "about": None, "effort": {}}),
        "draw": ("5r", {"pose": "home", "path": str(folder / "a.svg")}),
        "energies": ("5r", {"pose": "home", "velocity": {}, "without": ()}),
        "equilibrium": ("dualemps", held | dict.fromkeys(("servo", "servo_damping")) | {"wrench": {}, "effort": {},
                                                                                       "without": ()}),
        "explain": ("5r", {}),
        "forward_dynamics": ("5r", still | {"effort": {}, "reactions": False}),
        "frames": ("5r", {"pose": "home"}),
        "frequency_map": ("dualemps", {"over": over, "fixed": {"21": 0.0}, "modes": 1, "lock": "actuators",
                                       "out": None}),
        "geometric_solutions": ("5r", {"pose": "home"}),
        "geometry_from_sensors": ("5r", {"values": [2.107, 1.035, -1.288, 1.288], "near": None, "steps": 5}),
        "inverse_dynamics": ("5r", still | {"acceleration": {}, "form": "split", "reactions": False}),
        "jacobian": ("5r", {"pose": "home", "frame": None}),
        "linear_model": ("dualemps", held | {"about": None}),
        "many_frequencies": ("dualemps", rows),
        "mass_matrix": ("5r", {"pose": "home", "coordinates": "independent", "without": ()}),
        "model": ("four-bar", program | {"friction_width": 0.0, "operator_limit": 1000}),
        "natural_frequencies": ("dualemps", held | {"modes": 1, "about": "undeformed", "servo": None}),
        "redundant_model": ("5r", still | {"sensed": None}),
        "state_space": ("four-bar", held | ends),
        "track_modes": ("dualemps", path | {"finest": 0.1}),
    }  # fmt: skip


def attempt(call: Callable[[], object], where: str, accepted: bool = True) -> list[str]:
    """Return what is wrong with the answer: only errors of parflex in one line with a key or a hint are right."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except ParflexError as error:
        right = error.message and "\n" not in str(error) and (error.key or error.hint)
        return [] if right else [f"{where}: {error!s}"]
    except Exception as error:
        return [f"{where}: {type(error).__name__}: {error}"]
    return [] if accepted else [f"{where}: accepted"]


FUNCTIONS = sorted(calls(Path()))


@pytest.mark.few("base_parameters")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_of_any_type_end_in_an_answer_or_one_error(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    which, good = calls(tmp_path)[name]
    function, of = getattr(parflex, name), robot(which)
    function(of, **good)
    wrong: list[str] = []
    for kind, value in STRANGE.items():
        wrong += attempt(partial(function, value, **good), f"{name}: robot is {kind}")
        for word in good:
            wrong += attempt(partial(function, of, **{**good, word: value}), f"{name}: {word} is {kind}")
    wrong += attempt(lambda: function(of, nonsense=1), f"{name}: an unknown word", accepted=False)
    wrong += attempt(lambda: function(), f"{name}: nothing", accepted=False)
    wrong += attempt(lambda: function(*[of] * 30), f"{name}: too much", accepted=False)
    assert not wrong, "\n".join(wrong)


OBJECT = object()
NEVER = ["nonsense", "", [], {}, OBJECT, b"x", [[1.0], [2.0, 3.0]]]  # what no number is
NUMBERS = [*NEVER, -1.0, 0.0, NAN, float("inf"), True, None]  # what no positive number is
TABLES = ["nonsense", 3.5, OBJECT, ["nonsense"], {"nonsense": 1.0}, {1: 2.0}, {"left.1": "a"}, {"left.1": NAN}]
RUNS: dict[str, dict[str, list[Any]]] = {
    "simulate": {
        "motion": [3.5, "nonsense", OBJECT, {"nonsense": 1}, ["nonsense"], b"x"],
        "time": NUMBERS,
        "step": NUMBERS[:-1],  # None: it is chosen
        "out_step": [value for value in NUMBERS if value is not None],
        "tolerance": [value for value in NUMBERS if value is not None],
        "effort": [*TABLES, np.zeros(7), np.full(2, NAN), NAN],
        "wrench": [*TABLES, {"platform": [1.0]}, {"end": NAN}, {"end": [NAN] * 3}, {"end": [0, 0, 1, 0, 0, 0]}],
        "controller": ["nonsense", 3.5, OBJECT, {}],
        "drive": [*NEVER, 3.5, None],
        "start": ["nonsense", 3.5, OBJECT, {"nonsense": 1}, {"q": [1.0]}, {"q": "a", "qd": "b"}, ["rest"]],
        "pose": ["nonsense", 3.5, OBJECT, ["home"], {"nonsense": 1.0}, {"x": NAN}],
        "method": [value for value in (*NEVER, 3.5) if value is not None],
        "radius": ["nonsense", OBJECT, NAN, -1.0, 2.0, [], None],
        "without": ["friction", 3.5, ["wind"], [1.0], OBJECT, None],
        "friction_width": [value for value in NUMBERS if value is not None],
        "check_width": ["nonsense", OBJECT, 3.5, None],
        "frames": ["nonsense", 3.5, OBJECT, ["nonsense"], [1.0], {"x": 1}],
        "independent": ["nonsense", 3.5, OBJECT, ["nonsense"], [1.0]],
        "progress": ["nonsense", 3.5, OBJECT],
        "nonsense": [1.0],
    },
    "run_control": {
        "reference": [3.5, "nonsense", OBJECT, {"kind": "circle"}, {"kind": 1}, "circle:radius=a", "circle:radius=-1"],
        "law": [*NEVER, 3.5, None],
        "plant": ["5r", 3.5, OBJECT],
        "time": [value for value in NUMBERS if value is not None],
        "overshoot": NUMBERS,
        "peak_time": NUMBERS,
        "Kp": ["nonsense", OBJECT, NAN, -1.0],
        "compensate": ["friction", 3.5, ["wind"], OBJECT, [1.0]],
        "without": ["friction", 3.5, ["wind"], OBJECT],
        "sample_time": NUMBERS,
        "delay": [*NEVER, -1, 0.5, NAN],
        "noise": [*NEVER, -1.0, NAN],
        "rates": [*NEVER, 3.5],
        "start": [*NEVER, 3.5],
        "effort_limit": ["nonsense", OBJECT, -1.0, NAN, {"nonsense": 1.0}, {"left.1": NAN}, ["a"]],
        "nonsense": [1.0],
    },
    "load": {
        "settings": ["nonsense", 3.5, OBJECT, ["a"], {"nonsense": 1.0}, {1: 2.0}, {"constants.proximal": NAN}],
        "payload": ["nonsense", 3.5, OBJECT, [1.0], [NAN] * 4, ["a"] * 4, {"x": 1.0}, [-1.0, 0, 0, 0]],
        "actuation": [*NEVER[1:], "nonsense", 3.5],
        "working_mode": [*NEVER[1:], "nonsense", 3.5],
        "elements": [value for value in NUMBERS if value is not None],
        "nonsense": [1.0],
    },
}
GOOD: dict[str, dict[str, Any]] = {
    "simulate": {"time": 0.001},
    "run_control": {"reference": "circle:radius=0.01,time=0.01"},
    "load": {},
}


@pytest.mark.parametrize("name", RUNS)
def test_invalid_options_of_runs_are_refused_before_anything_moves(name):
    """None of the values is valid, so all are refused: nothing is ignored."""
    function, of = getattr(parflex, name), "5r" if name == "load" else robot("5r")
    wrong: list[str] = []
    for word, values in RUNS[name].items():
        for value in values:
            call = partial(function, of, **{**GOOD[name], word: value})
            wrong += attempt(call, f"{name}: {word} = {str(value)[:40]}", accepted=False)
    assert not wrong, "\n".join(wrong)


OTHER: dict[str, Any] = {
    "robots that are none": [lambda v=v: parflex.load(v) for v in (3.5, None, "", "nonsense", OBJECT, [], b"x", NAN)],
    "gains": [lambda v=v: parflex.gains_from(v) for v in NUMBERS],
    "peaks": [lambda v=v: parflex.gains_from(0.1, v) for v in NUMBERS],
    "runs that are none": [lambda v=v: parflex.load_run(v) for v in (3.5, None, "nonsense.npz", OBJECT, "", __file__)],
    "studies that are none": [lambda v=v: parflex.run_study(v) for v in (3.5, None, "nonsense", {}, OBJECT)],
    "papers": [lambda v=v: parflex.reproduce(v) for v in (3.5, "nonsense", OBJECT, [])],
    "jobs": [lambda v=v: parflex.run_study(StudyFile(robot="3rrr", reference={}), jobs=v) for v in NUMBERS[:-1]],
    "pictures of what is no run": [
        lambda v=v, f=f: getattr(parflex, f)(v, "a.svg")
        for f in ("draw_run", "draw_energies", "draw_spectrum", "draw_sections")
        for v in (3.5, None, "nonsense", OBJECT, {}, {"t": "a"}, {"t": [0.0]})
    ],
    "pictures of what are no modes": [lambda v=v: parflex.draw_modes(v, "a.svg") for v in (3.5, None, OBJECT, "x")],
}


@pytest.mark.parametrize("what", OTHER)
def test_values_of_the_wrong_kind_are_refused_and_write_nothing(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = [text for k, call in enumerate(OTHER[what]) for text in attempt(call, f"number {k}", accepted=False)]
    assert not wrong, "\n".join(wrong)
    assert not list(tmp_path.iterdir())


MOTORS = ["a", "b"]


def test_controllers_with_arrays_compare_and_hash():
    one, two = (parflex.PD(np.array([1.0, 2.0]), [1.0, 2.0]) for _ in range(2))
    assert one == two and hash(one) == hash(two) and one != parflex.PD(np.array([1.0, 3.0]), [1.0, 2.0])


def test_gains_are_for_all_motors_for_each_or_by_name():
    sensed = parflex.Sensed(0.0, np.zeros(2), np.zeros(2), np.array([1.0, 1.0]), np.zeros(2), np.zeros(2))
    given = parflex.PD({"b": 3.0}, 0.0), parflex.PD([0.0, 3.0], [1.0, 1.0]), parflex.PD(3.0, 1.0, limit={"a": 2.0})
    found = [controller.of(MOTORS)(sensed, None)[0].tolist() for controller in given]
    assert found == [[0.0, 3.0], [0.0, 3.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("gains", "sentence"),
    [
        ({"stiffness": -1.0}, "the stiffness of a PD controller is not a number"),
        ({"damping": [1.0, -1.0]}, "the damping of a PD controller is not a number"),
        ({"stiffness": "stiff"}, "the stiffness of a PD controller is not a number"),
        ({"feedforward": np.inf}, "the feedforward of a PD controller is not a number"),
        ({"sample_time": 0.0}, "'sample_time' is not a positive number"),
        ({"stiffness": [1.0, 2.0, 3.0]}, "the stiffness of a PD controller has 3 numbers for 2 motors"),
        ({"damping": {"c": 1.0}}, "'c' is not an actuated joint"),
    ],
)
def test_gains_that_are_none_are_refused(gains, sentence):
    with pytest.raises(parflex.InputError, match=sentence) as error:
        parflex.PD(**{"stiffness": 1.0, "damping": 1.0, **gains}).of(MOTORS)
    assert error.value.key in gains and error.value.hint


def test_a_run_takes_gains_by_name_and_refuses_too_many():
    robot = parflex.load("5r")
    with pytest.raises(parflex.InputError, match="has 3 numbers for 2 motors"):
        parflex.simulate(robot, None, 0.01, controller=parflex.PD([1.0, 2.0, 3.0], 1.0))
    gains = parflex.PD({"left.1": 0.0}, 0.0, feedforward={"left.1": 0.5})
    named = parflex.simulate(robot, None, 0.01, controller=gains)
    assert named["effort.left.1"] == pytest.approx(0.5) and not named["effort.right.1"].any()


@pytest.fixture(scope="module")
def oscillator():
    return load_robot("oscillator")


def test_a_response_takes_one_frequency_and_refuses_what_is_none(oscillator):
    space = parflex.state_space(oscillator, ["m"], ["m.theta"])
    assert space.response(14.0) == pytest.approx(space.response([14.0]))
    assert space.response(0.0)[0, 0, 0] == pytest.approx(1 / 50.0)
    for wrong in (["a"], [np.nan], [1.0, np.inf], -1.0, [[1.0]]):
        with pytest.raises(parflex.InputError, match="the frequencies are not finite numbers"):
            space.response(wrong)


def test_modes_without_lines_are_refused_in_one_sentence(oscillator):
    with pytest.raises(parflex.InputError, match="has no extent"):
        parflex.draw_modes(parflex.natural_frequencies(oscillator))


def test_a_model_called_by_position_names_its_inputs(oscillator):
    made = parflex.model(oscillator, "mass-matrix")
    with pytest.raises(parflex.InputError, match="takes its inputs by name: q") as error:
        made(np.zeros(1))
    assert "q=..." in error.value.hint


def test_a_first_compilation_is_said_once_on_a_machine(caplog):
    loop = SimpleNamespace(__name__="gauss_steps", is_compiled=lambda: False)
    with caplog.at_level(logging.WARNING, logger="parflex"):
        assert simulate.say_first_compilation(loop)
        assert "compiles the time loop" in caplog.text
        loop.is_compiled = lambda: True
        assert not simulate.say_first_compilation(loop)


@pytest.mark.parametrize(
    ("case", "words", "key"),
    [
        ({"lock": 5}, {}, "lock"),
        ({"without": "gravity"}, {}, "without"),
        ({"about": "rest"}, {}, "about"),
        ({"servo": 1e5}, {"servo": 0.0}, "servo"),
        ({"lock": ["11"]}, {"lock": "none"}, "lock"),
    ],
)
def test_a_load_case_is_refused_by_its_keyword(case, words, key):
    robot = parflex.load("navaro")
    with pytest.raises(parflex.InputError) as error:
        parflex.natural_frequencies(robot, load_case=parflex.LoadCase(**case), **words)
    assert error.value.key == key
