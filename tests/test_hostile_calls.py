"""Every public function with arguments that make no sense: one clear error of parflex, never anything else.

A call may also succeed where the strange value happens to mean something; it may not end in a TypeError, an
AttributeError or the like, nor answer with numbers that are not finite.
"""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parflex
from parflex import ParflexError, Robot, StudyFile

NAN = float("nan")
STRANGE: dict[str, Any] = {
    "text": "nonsense",
    "empty text": "",
    "number": 3.5,
    "negative": -1,
    "NaN": NAN,
    "infinity": float("inf"),
    "true": True,
    "empty list": [],
    "list of numbers": [1.0, 2.0],
    "list of words": ["nonsense"],
    "nested": [[1.0], [2.0, 3.0]],
    "table of an unknown name": {"nonsense": 1.0},
    "table of texts": {"x": "a"},
    "table of NaN": {"x": NAN},
    "table of numbers as names": {1: 2.0},
    "array": np.zeros(6),
    "array of NaN": np.full(3, NAN),
    "object": object(),
    "bytes": b"x",
    "nothing": None,
}


@cache
def robot(name: str) -> Robot:
    return parflex.load(name)


def calls(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Of each function a robot, and arguments that are good; those of None are not tried."""
    svg = str(folder / "a.svg")
    return {
        "base_parameters": ("5r", {"samples": 3}),
        "cartesian_stiffness": (
            "four-bar",
            {"pose": "home", "frame": None, "lock": "none", "about": None, "wrench": {}},
        ),
        "configure": ("5r", {"pose": "home"}),
        "deflection": ("four-bar", {"pose": "home", "frames": (), "lock": "none", "about": None, "effort": {}}),
        "draw": ("5r", {"pose": "home", "path": svg}),
        "energies": ("5r", {"pose": "home", "velocity": {}, "without": ()}),
        "equilibrium": (
            "four-bar",
            {
                "pose": "home", "lock": "none", "servo": None, "servo_damping": None, "wrench": {}, "effort": {},
                "without": (),
            },
        ),
        "explain": ("5r", {}),
        "forward_dynamics": (
            "5r",
            {"pose": "home", "velocity": {}, "effort": {}, "wrench": {}, "without": (), "reactions": False},
        ),
        "frames": ("5r", {"pose": "home"}),
        "frequency_map": (
            "dualemps",
            {"over": [("11", 0.0, 0.01, 2)], "fixed": {"21": 0.0}, "modes": 1, "lock": "actuators", "out": None},
        ),
        "geometric_solutions": ("5r", {"pose": "home"}),
        "geometry_from_sensors": ("5r", {"values": [2.107, 1.035, -1.288, 1.288], "near": None, "steps": 5}),
        "inverse_dynamics": (
            "5r",
            {
                "pose": "home", "velocity": {}, "acceleration": {}, "wrench": {}, "without": (), "form": "split",
                "reactions": False,
            },
        ),
        "jacobian": ("5r", {"pose": "home", "frame": None}),
        "linear_model": ("four-bar", {"pose": "home", "lock": "none", "about": None}),
        "many_frequencies": (
            "dualemps",
            {"coordinates": ["11", "21"], "poses": [[0.0, 0.0]], "modes": 1, "lock": "actuators", "shapes": False},
        ),
        "mass_matrix": ("5r", {"pose": "home", "coordinates": "independent", "without": ()}),
        "model": (
            "four-bar",
            {
                "name": "inverse", "parameters": "numbers", "without": (), "include": None, "wrench_frames": (),
                "friction_width": 0.0, "operator_limit": 1000,
            },
        ),
        "natural_frequencies": (  # about its equilibrium near home it is not stable
            "four-bar",
            {"pose": "home", "modes": 1, "lock": "none", "about": "undeformed", "servo": None},
        ),
        "redundant_model": ("5r", {"pose": "home", "velocity": {}, "sensed": None, "wrench": {}, "without": ()}),
        "state_space": (
            "four-bar",
            {"inputs": ["crank"], "outputs": ["crank"], "pose": "home", "lock": "none", "about": None},
        ),
        "track_modes": (
            "dualemps",
            {
                "poses": ["home", {"11": 0.01, "21": 0.0}], "modes": 1, "lock": "actuators", "agreement": 0.8,
                "finest": 0.1,
            },
        ),
    }  # fmt: skip


def attempt(call: Any, where: str) -> list[str]:
    """What is wrong with the answer: only errors of parflex are allowed, in one line, with a key or a hint."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except ParflexError as error:
        fine = error.message and "\n" not in str(error) and (error.key or error.hint)
        return [] if fine else [f"{where}: {error!s}"]
    except Exception as error:
        return [f"{where}: {type(error).__name__}: {error}"]
    return []


FUNCTIONS = sorted(calls(Path()))


@pytest.mark.few
@pytest.mark.parametrize("name", FUNCTIONS)
def test_strange_arguments_get_one_clear_error(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    which, good = calls(tmp_path)[name]
    function, of = getattr(parflex, name), robot(which)
    function(of, **good)  # this one is fine
    wrong: list[str] = []
    for kind, value in STRANGE.items():
        wrong += attempt(lambda value=value: function(value, **good), f"{name}: robot is {kind}")
        for word in good:
            changed = {**good, word: value}
            wrong += attempt(lambda changed=changed: function(of, **changed), f"{name}: {word} is {kind}")
    wrong += attempt(lambda: function(of, nonsense=1), f"{name}: an unknown word")
    wrong += attempt(lambda: function(), f"{name}: nothing")
    wrong += attempt(lambda: function(*[of] * 30), f"{name}: too much")
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
        "method": [*NEVER, 3.5, None],
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
def test_strange_words_of_runs_are_refused_before_anything_moves(name):
    """All of them make no sense, so all of them are refused: nothing is ignored."""
    function, of = getattr(parflex, name), "5r" if name == "load" else robot("5r")
    wrong: list[str] = []
    for word, values in RUNS[name].items():
        for value in values:
            given = {**GOOD[name], word: value}
            where = f"{name}: {word} = {str(value)[:40]}"
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(of, **given)
                wrong.append(f"{where}: accepted")
            except ParflexError as error:
                wrong += [] if error.key or error.hint else [f"{where}: {error!s}"]
            except Exception as error:
                wrong.append(f"{where}: {type(error).__name__}: {error}")
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
def test_what_is_none_of_it_is_refused_everywhere(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong: list[str] = []
    for number, call in enumerate(OTHER[what]):
        try:
            call()
            wrong.append(f"number {number}: accepted")
        except ParflexError:
            continue
        except Exception as error:
            wrong.append(f"number {number}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
    assert not list(tmp_path.iterdir())
