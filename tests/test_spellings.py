"""A coordinate of the end effector has one meaning and one speed, with the name of its frame or without."""

from __future__ import annotations

import numpy as np
import pytest

import parflex
from parflex import InputError, StudyFile, run_study
from parflex.control.references import from_function
from parflex.control.study import Bench
from parflex.design.questions import read_question
from parflex.sweeps.design_rows import DesignRows
from parflex.sweeps.sweep_file import read_sweep

PLACES = np.array([[0.0, 0.0, 0.0], [0.01, 0.02, 3.0], [0.02, -0.01, -4.0], [5.0, 0.0, 0.0]])  # m, m, deg
IN_RADIANS = PLACES * [1.0, 1.0, np.pi / 180]
PLAIN = ["x", "y", "theta"]
SPELLINGS = [
    (["platform.x", "platform.y", "platform.theta"], IN_RADIANS),
    (["x", "platform.y", "theta_deg"], PLACES),
    (["platform.x", "y", "platform.theta_deg"], PLACES),
]


@pytest.fixture(scope="module")
def flexible():
    return parflex.load("3rrr-flexible")


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("5r", {"x": 0.05, "y": 0.5}, {"tip.x": 0.05, "y": 0.5}),
        ("5r", {"left.1": 2.5}, {"qleft.1": 2.5}),
        ("3rrr", {"x": 0.02, "y": 0.01, "theta": np.pi / 36}, {"platform.x": 0.02, "y": 0.01, "platform.theta_deg": 5}),
        ("par4", {"z": -0.8, "rz": 0.2}, {"tool.z": -0.8, "tool.rz": 0.2}),
        ("3-prs-2r", {"zx": 0.1, "zy": 0.05}, {"tool.zx": 0.1, "zy": 0.05}),
    ],
)
def test_poses_are_the_same(name, one, other):
    robot = parflex.load(name)
    assert np.array_equal(robot.assemble(one), robot.assemble(other))


@pytest.mark.parametrize(("words", "poses"), SPELLINGS)
def test_frequencies_at_many_poses_are_the_same_by_the_same_path(flexible, words, poses):
    designs = {"constants.proximal": [0.5, 0.49, 0.51, 0.5]}
    for given in (None, designs):
        wanted = parflex.many_frequencies(flexible, PLAIN, IN_RADIANS, 2, designs=given)
        found = parflex.many_frequencies(flexible, words, poses, 2, designs=given)
        assert found.status.tolist() == wanted.status.tolist() == [0, 0, 0, 1]
        assert np.array_equal(found.frequencies, wanted.frequencies, equal_nan=True)
        assert (found.fallbacks, found.reason, found.reasons) == (wanted.fallbacks, "", wanted.reasons)
        assert found.fallbacks <= 1  # the first design of a batch is checked


@pytest.mark.parametrize(("words", "poses"), SPELLINGS)
def test_responses_at_many_poses_are_the_same_by_the_same_path(flexible, words, poses):
    wanted = parflex.many_responses(flexible, PLAIN, IN_RADIANS, ["stiffness:x", "deflection:platform.y"])
    found = parflex.many_responses(flexible, words, poses, ["stiffness:platform.x", "deflection:y"])
    assert (found.method, found.fallbacks, found.reason) == ("together", 0, wanted.reason)
    for one, other in zip(found.values.values(), wanted.values.values(), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_maps_and_areas_are_the_same(flexible):
    axes = [("x", 0.0, 0.02, 2), ("y", -0.01, 0.01, 2)]
    wanted = parflex.frequency_map(flexible, axes, {"theta": float(np.radians(3))}, 2)
    over = [("platform.x", 0.0, 0.02, 2), ("y", -0.01, 0.01, 2)]
    found = parflex.frequency_map(flexible, over, {"platform.theta_deg": 3}, 2)
    assert list(found.axes) == ["platform.x", "y"] and np.array_equal(found.frequencies, wanted.frequencies)
    assert (found.method, found.reason, found.solved_in_full) == (wanted.method, wanted.reason, 0)
    rigid = parflex.load("3rrr")
    areas = ["area:x,-0.2,0.2,8;theta,-0.1,0.1,2", f"area:platform.x,-0.2,0.2,8;theta_deg,{-18 / np.pi},{18 / np.pi},2"]
    one, other = (read_question(area).asked(rigid).answer for area in areas)
    assert one == pytest.approx(other, rel=1e-12)  # cells of equal size but for rounding


SWEEP = """
robot = "3rrr-flexible"
[variables.constants.proximal]
lower = 0.48
upper = 0.52
[responses.stiff]
response = "stiffness:{frame}y"
region = {{ "{frame}x" = [-0.02, 0.02, 2], "{frame}y" = [0.0, 0.01, 2] }}
[responses.lowest]
response = "frequency:1"
pose = {{ "{frame}x" = 0.01, y = 0.0, "{frame}theta_deg" = 2.0 }}
[samples]
kind = "grid"
count = 2
"""


def test_sweeps_are_the_same_by_the_same_path(flexible, tmp_path):
    values = []
    for frame in ("", "platform."):
        (tmp_path / "sweep.toml").write_text(SWEEP.format(frame=frame))
        asked = read_sweep(tmp_path / "sweep.toml")
        rows = DesignRows(
            flexible, list(asked.variables), {name: one.question() for name, one in asked.responses.items()}
        )
        assert not rows.alone
        found = rows({"constants.proximal": np.array([0.49, 0.51])})
        assert found.status.tolist() == [0, 0] and not rows.slow
        values.append(found.values)
    for name, one in values[0].items():
        assert np.array_equal(one, values[1][name])


def test_studies_are_the_same():
    head = {"robot": "3rrr", "working_mode": "+-+", "percentages": (1.0,), "templates": 1, "seed": 4}
    cases = []
    for words in ({"x": 0.01, "theta_deg": 2}, {"platform.x": 0.01, "platform.theta_deg": 2}):
        file = StudyFile(**head, reference={"kind": "line", "time": 0.05, **words})
        cases.append(run_study(file, jobs=1, bench=Bench(file)).cases)
    assert cases[0] == cases[1]


def test_references_by_functions_of_time_are_the_same():
    robot = parflex.load("3rrr")
    laws = [lambda t: {"x": 0.1 * t}, lambda t: {"platform.x": 0.1 * t}]
    one, other = (from_function(robot, law, 0.05).at(0.02).position.tolist() for law in laws)
    assert one == other
    with pytest.raises(InputError, match=r"'x' and 'platform\.x' are the same coordinate"):
        from_function(robot, lambda t: {"x": 0.1 * t, "platform.x": 0.1 * t}, 0.05)


@pytest.mark.parametrize("words", [("x", "tip.x"), ("tip.x", "x")])
def test_one_coordinate_by_two_names_is_refused(words):
    robot = parflex.load("5r")
    said = f"'{words[0]}' and '{words[1]}' are the same coordinate; keep one of them"
    asks = [
        lambda: robot.assemble(dict.fromkeys(words, 0.1)),
        lambda: parflex.many_frequencies(robot, words, [[0.0, 0.5]]),
        lambda: parflex.many_responses(robot, words, [[0.0, 0.5]], ["conditioning"]),
        lambda: parflex.frequency_map(robot, [(words[0], 0, 0.1, 2)], {words[1]: 0.5}),
        lambda: read_question(f"area:{words[0]},0,0.1,2;{words[1]},0.4,0.5,2").asked(robot).answer,
    ]
    for ask in asks:
        with pytest.raises(InputError) as error:
            ask()
        assert said in str(error.value)


def test_rotations_of_a_ball_by_its_name_stay_its_own(tmp_path):
    path = tmp_path / "ball.toml"
    path.write_text("""
format = 1
name = "ball"
[[frame]]
name = "arm"
parent = "base"
joint = "revolute"
actuated = true
[[frame]]
name = "hand"
parent = "arm"
joint = "spherical"
place = { position = [1.0, 0.0, 0.0], rotation = [0.0, 0.0, 0.5] }
inertia = { mass = 0.6, centre = [0, 0, 0], about_centre = [1e-3, 2e-3, 1.5e-3] }
""")
    robot = parflex.load(path)
    own = robot.assemble({"arm": 0.3, "hand.rz": 0.2})
    world = robot.assemble({"arm": 0.3, "rz": 0.2})
    ball = robot.tree.links[robot.tree.number("hand")].q
    assert own[ball] == pytest.approx([np.cos(0.1), 0, 0, np.sin(0.1)], abs=1e-12)
    assert world[ball] == pytest.approx([np.cos(-0.3), 0, 0, np.sin(-0.3)], abs=1e-9)  # 0.2 less 0.3 and 0.5
