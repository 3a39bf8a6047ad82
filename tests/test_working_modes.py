"""Each leg keeps its elbow, each inner loop its side: against inverse geometry in closed form, far from home."""

from __future__ import annotations

import numpy as np
import pytest
from support.posing import OK, pose_solver
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex import UnreachableError

FLIPPED = [  # poses that have one sign of the determinant of a leg with two of its loops flipped together
    {"x": -0.21797173014883436, "y": -0.09660177156682007, "rz": -1.2343846399701035},
    {"x": 0.1662797079308596, "y": -0.15949233223891188, "rz": -0.7868457293954285},
]
GAMMA = np.array([np.pi / 2, -5 * np.pi / 6, -np.pi / 6])


def navaro_reach(pose):
    """Distances from the feet of the NaVARo's legs to the ends of their forearms."""
    feet = 0.7 / np.sqrt(3) * np.c_[np.cos(GAMMA), np.sin(GAMMA)]
    turn = pose["rz"] + GAMMA + 4 * np.pi / 3
    ends = np.array([pose["x"], pose["y"]]) - 0.2027 * np.c_[np.cos(turn), np.sin(turn)]
    return np.linalg.norm(ends - feet, axis=1)


def navaro_sides(robot, q):
    """Of each leg the side of the knee and whether its inner loop is a parallelogram."""
    value = dict(zip(robot.coordinates, q, strict=True))
    sides = []
    for leg in ("leg1", "leg2", "leg3"):
        one, two, three, four = (value[f"{leg}.{k}"] for k in (1, 2, 3, 4))
        sides += [np.sin(two + three + four - one) > 0, bool(abs(np.sin((two + three - one) / 2)) < 1e-6)]
    return sides


def navaro_poses(count):
    rng, poses = np.random.default_rng(11), list(FLIPPED)
    while len(poses) < count:
        pose = {"x": rng.uniform(-0.3, 0.3), "y": rng.uniform(-0.3, 0.3), "rz": rng.uniform(-3, 3)}
        reach = navaro_reach(pose)
        if reach.max() < 0.415 and reach.min() > 0.02:  # two bars of 0.21 m
            poses.append(pose)
    return poses


@pytest.mark.verify
def test_random_poses_of_the_navaro_keep_knees_and_parallelograms_alone_and_in_maps():
    robot, poses = parflex.load("navaro"), navaro_poses(10)
    assert navaro_sides(robot, robot.home) == [True, True] * 3
    solver = pose_solver(robot, ["x", "y", "rz"], list(poses[0].values()))
    found = solver(np.array([list(pose.values()) for pose in poses]))
    assert solver.fast
    for pose, q, status in zip(poses, solver.geometry.whole(found.q), found.status, strict=True):
        single = robot.assemble(pose)
        assert navaro_sides(robot, single) == [True, True] * 3, pose
        if status == OK:
            assert np.abs(np.exp(1j * q) - np.exp(1j * single)).max() < 1e-8, pose  # closed to 1e-10, conditions of 100


def elbow(foot, end, first, second, side):
    """Angle between two bars in closed form, with the elbow on a side."""
    square = np.sum((np.asarray(end) - foot) ** 2)
    return side * np.arccos((square - first**2 - second**2) / (2 * first * second))


@pytest.mark.parametrize("name", ["3rrr", "5r"])
def test_random_poses_of_planar_robots_have_the_elbows_of_the_closed_form(name):
    robot, rng, seen = parflex.load(name), np.random.default_rng(2), 0
    bars = {"3rrr": (0.4, 0.5), "5r": (0.3, 0.4)}[name]
    legs = {"3rrr": ["leg1", "leg2", "leg3"], "5r": ["left", "right"]}[name]
    start = dict(zip(robot.coordinates, robot.home, strict=True))
    while seen < 25:
        x, y, theta = rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.7), rng.uniform(-2, 2)
        if name == "3rrr":
            feet = np.array([(-0.15, -0.84), (0.69, -0.17), (-0.66, 0.21)])
            turn = theta + np.radians([30, 150, 270])
            ends = np.array([x, y]) - 0.1732 * np.c_[np.cos(turn), np.sin(turn)]
            pose = {"x": x, "y": y, "theta": theta}
        else:
            feet, ends, pose = np.array([(-0.12, 0.0), (0.12, 0.0)]), np.full((2, 2), (x, y)), {"x": x, "y": y}
        reach = np.linalg.norm(ends - feet, axis=1)
        if reach.max() > 0.99 * sum(bars) or reach.min() < 1.1 * abs(bars[0] - bars[1]):
            continue
        seen += 1
        there = dict(zip(robot.coordinates, robot.assemble(pose), strict=True))
        for leg, foot, end in zip(legs, feet, ends, strict=True):
            wanted = elbow(foot, end, *bars, np.sign(np.sin(start[f"{leg}.2"])))
            assert abs(np.sin((there[f"{leg}.2"] - wanted) / 2)) < 1e-7, pose  # 1e-10 of a length near a straight leg


def test_random_poses_of_the_delta_have_the_arms_of_the_closed_form():
    robot, rng, seen = parflex.load("delta"), np.random.default_rng(4), 0
    while seen < 30:
        place = np.array([rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3), rng.uniform(-0.65, -0.3)])
        arms = []
        for gamma in (0.0, 2 * np.pi / 3, -2 * np.pi / 3):
            c, s = np.cos(gamma), np.sin(gamma)
            out, side, up = c * place[0] + s * place[1] + 0.05 - 0.2, c * place[1] - s * place[0], place[2]
            radius, rest = np.hypot(out, up), 0.5**2 - side**2
            cosine = (radius**2 + 0.25**2 - rest) / (2 * 0.25 * radius)
            arms.append(np.arctan2(up, out) + np.arccos(cosine) if abs(cosine) < 0.98 else np.nan)
        if np.isnan(arms).any():
            continue
        seen += 1
        q = dict(zip(robot.coordinates, robot.assemble(dict(zip("xyz", place, strict=True))), strict=True))
        found = np.array([q[f"leg{k}.arm"] for k in (1, 2, 3)])
        assert np.abs(np.sin((found - arms) / 2)).max() < 1e-7, place  # closed to 1e-10, conditions below 1000


def test_starts_of_motors_weigh_more_than_starts_of_passive_joints(tmp_path):
    text = robot_file("hexaglide").read_text().replace('start = "rx"', "start = 0.45")
    robot = parflex.load(write_robot(tmp_path, text))
    slides = dict(zip(robot.coordinates, robot.home, strict=True))
    assert slides["l6.slide"] == pytest.approx(0.369, abs=1e-3)
    assert all(slides[f"l{k}.slide"] > 0 for k in range(1, 7))
    assert not robot.start_warnings()
    far = write_robot(tmp_path, text.replace("start = 0.45", "start = 2.5"))  # rods reach no slide there
    assert "joint 'l1.slide' is assembled at" in parflex.load(far).start_warnings()[0]


def test_motors_of_a_poorly_conditioned_robot_are_independent():
    robot = load_robot("hexaglide")
    assert parflex.configure(robot).condition.platform > 200
    assert set(parflex.model(robot, "state-rates-driven").labels["qd"]) == set(robot.motors)


@pytest.mark.few("four-bar", "5r")
@pytest.mark.parametrize(("name", "constant"), [("delta", "arm"), ("four-bar", "crank"), ("5r", "distal")])
def test_a_robot_that_cannot_be_assembled_says_by_how_much(name, constant):
    with pytest.raises(UnreachableError, match=r"misses it by \d"):
        _ = parflex.load(name, settings={f"constants.{constant}": 3e5}).home


@pytest.mark.parametrize("name", ["3rrr", pytest.param("4rrr", marks=pytest.mark.verify)])
def test_modes_whose_signs_are_not_those_of_the_starts_give_no_warning(name):
    for mode in parflex.load(name).description.working_modes:
        robot = parflex.load(name, working_mode=mode)
        assert robot.start_warnings() == [], mode
        assert not any("limit" in text for text in parflex.inverse_dynamics(robot).warnings), mode


def test_angles_stand_in_the_turn_of_their_limits():
    for limits, wanted in (([-3.0, 3.0], None), ([3.5, 9.0], 2 * np.pi), ([-9.0, -4.0], -2 * np.pi)):
        robot = parflex.load("3rrr", settings={"legs.frame.2.limits": limits})
        pose = {"x": 0.05, "y": 0.02, "theta": 0.1}
        plain, turned = parflex.load("3rrr").assemble(pose), robot.assemble(pose)
        index = robot.coordinates.index("leg1.2")
        assert turned[index] - plain[index] == pytest.approx(wanted or 0.0, abs=1e-9)
    given = robot.assemble({"leg1.2": float(plain[index]), "x": 0.05, "y": 0.02})
    assert given[index] == plain[index]  # as the user says
