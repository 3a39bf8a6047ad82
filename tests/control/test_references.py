"""References in words, and plans of the motors as references; wrong words are refused with their key."""

from functools import cache

import numpy as np
import pytest

import parflex
from parflex.control import references
from parflex.control.references import parse_reference, reference_from
from parflex.trajectories.follow import track

LEFT, RIGHT = "left.1", "right.1"
MOVE = {"moves": [{LEFT: 0.2, RIGHT: 0.1}], "law": "quintic", "duration": 0.5}


@cache
def robot():
    return parflex.load("5r")


def test_a_plan_of_the_motors_is_a_reference(monkeypatch):
    monkeypatch.setattr(references, "KNOT_STEP", 0.02)
    plan = parflex.plan_motion(robot(), MOVE)
    path = reference_from(robot(), plan)
    assert path.end == plan.end == 0.5 and reference_from(robot(), plan, 0.8).end == 0.8
    joints = track(robot(), path, [RIGHT, LEFT]).joints
    assert joints.names == (RIGHT, LEFT)
    for t in (0.0, 0.2, 0.5):  # quintics between knots of 20 ms, there and back
        for there, back in zip(plan.at(t), joints.at(t), strict=True):
            assert back[::-1] == pytest.approx(there, abs=1e-4)
    endless = parflex.plan_motion(robot(), {"sines": {LEFT: [0.1]}, "frequency": 1.0})
    assert reference_from(robot(), endless).end == references.TIME


def test_words_are_read_into_a_table():
    words = parse_reference("circle: radius = 0.1 , time=1/4, axis=x")
    assert words == {"kind": "circle", "radius": 0.1, "time": 0.25, "axis": "x"}
    assert parse_reference("spline: poses.csv, time=2") == {"kind": "spline", "file": "poses.csv", "time": 2.0}
    assert parse_reference("waltz") == {"kind": "motion", "name": "waltz"}


def test_the_turn_between_two_poses_is_about_one_axis():
    stewart = parflex.load("gough-stewart")
    path = reference_from(stewart, {"kind": "line", "rz": 0.4, "time": 2.0})
    whole = path.at(np.linspace(0, 2, 5))
    angle = np.arctan2(whole.rotation[:, 1, 0], whole.rotation[:, 0, 0])
    u = np.linspace(0, 1, 5)
    assert angle - angle[0] == pytest.approx(0.4 * (10 * u**3 - 15 * u**4 + 6 * u**5), abs=1e-12)
    assert np.abs(whole.position - whole.position[0]).max() < 1e-12  # in place


WRONG = {
    "circle:radius=0.1,radius=0.2": ("reference", "given twice"),
    "circle:radius=0.1,axis=w": ("axis", "not 3 finite numbers"),
    "circle:radius=0.1,turns=0": ("turns", "turns is zero"),
    "circle:time=1": ("reference", "the radius of the circle is missing"),
    "line:time=1": ("reference", "the pose of the line is missing"),
    "spline:time=1": ("reference", "the file of the spline is missing"),
    "spline:poses.csv,x=1": ("reference", "a spline has no 'x'"),
    "circle:radius=0.01,time=0": ("time", "not a positive number"),
    "nonsense": ("reference", "no reference 'nonsense'"),
}


@pytest.mark.parametrize("words", WRONG)
def test_words_that_are_no_reference_are_refused(words):
    key, message = WRONG[words]
    with pytest.raises(parflex.InputError, match=message) as refusal:
        reference_from(robot(), words)
    assert refusal.value.key == key and refusal.value.hint


def test_calls_and_files_that_are_no_reference_are_refused(tmp_path):
    empty, holes = tmp_path / "empty.csv", tmp_path / "holes.csv"
    empty.write_text("t\n0\n1\n")
    holes.write_text("t,x,y\n0,0,0.4\n1,nan,0.4\n")
    cases = [
        (lambda: references.through(robot(), ["home"], 1.0), "poses", "two poses"),
        (lambda: references.through(robot(), ["home", "home"], [0, 0]), "time", "increase from zero"),
        (lambda: references.through(robot(), ["home", "home"], 1.0, kind="cubic"), "kind", "no kind 'cubic'"),
        (lambda: references.circle(robot(), 0.1, 1.0, axis=(0, 0, 0)), "axis", "no direction"),
        (lambda: references.from_function(robot(), lambda t: 1.0, 1.0), "reference", "as a dictionary"),
        (lambda: references.from_function(robot(), lambda t: {"x": 0.0}, 1e6), "time", "too long"),
        (lambda: reference_from(robot(), f"spline:{empty}"), "reference", "no pose columns"),
        (lambda: reference_from(robot(), f"spline:{holes}"), "reference", "not all numbers are finite"),
    ]
    for ask, key, message in cases:
        with pytest.raises(parflex.InputError, match=message) as refusal:
            ask()
        assert refusal.value.key == key
