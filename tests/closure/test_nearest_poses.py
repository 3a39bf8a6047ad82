"""What a pose or a path leaves free: nearest to home, with rates that are its exact derivative, whatever the way."""

import re
from functools import cache

import numpy as np
import pytest
import scipy.optimize
from scipy.spatial.transform import Rotation
from support.maps import end_effector, indices
from support.robots import load_robot, write_robot

import parflex
from parflex.control.references import through
from parflex.trajectories.follow import KNOTS, RobotPath, follow_path, joints_of_pose, track
from parflex.trajectories.frames import FrameMotion

CASES = [("tripod-wrist", None), ("serial-arm", "five"), ("serial-arm", None)]


def loaded(case):
    return load_robot(case[0], actuation=case[1])


def place(robot, q=None):
    """Return where the end effector is at positions, at home by default."""
    return end_effector(robot, q)[0]


def words(robot, where):
    return {f"{robot.tree.end_effector}.{axis}": float(value) for axis, value in zip("xyz", where, strict=True)}


@pytest.mark.parametrize("case", CASES)
def test_rates_along_a_path_are_derivatives_of_the_poses_on_it(case):
    robot = loaded(case)
    begin, way = place(robot), np.array([0.5, 0.4, -0.3])
    q = robot.assemble(words(robot, begin + 0.05 * way))
    rates, _ = robot.pose_finder.path_motion(words(robot, begin + 0.05 * way), q, lambda row: (way, np.zeros(3)))
    h = 2e-3
    near = [robot.assemble(words(robot, begin + (0.05 + k * h) * way), q) for k in (-2, -1, 1, 2)]
    slope = (8 * (near[2] - near[1]) - (near[3] - near[0])) / (12 * h)
    # differences of fourth order: h^4 of the fifth derivative, some thousands, is 1e-8
    assert np.abs(robot.tree.position_rates(q, rates) - slope).max() < 1e-7


def test_rates_of_a_platform_whose_place_is_given_are_derivatives_of_the_poses_too():
    robot = parflex.load("3rrr")

    def at(s):
        return robot.assemble({"x": 0.02 + s, "y": 0.01 + s / 2})

    q, h = at(0.0), 1e-3
    moving = FrameMotion(np.array([0.02, 0.01, 0.0]), None, np.array([1, 0.5, 0, 0, 0, 0.0]), np.zeros(6))
    here, qd, qdd = joints_of_pose(robot, "platform", moving, robot.home, range(2))
    slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    change = (16 * (at(h) + at(-h)) - (at(2 * h) + at(-2 * h)) - 30 * q) / (12 * h**2)
    assert np.abs(here.q - q).max() < 1e-12  # Newton ends at rounding
    assert np.abs(qd - slope).max() < 1e-8 and np.abs(qd).max() > 1  # h^4 of the fifth derivative, some thousands
    assert np.abs(qdd - change).max() < 1e-6  # and rounding over h^2


def distance(robot, q):
    """Squared distance from home, written anew: metres, turns times the typical length."""
    total, length = 0.0, robot.tree.length
    for link in robot.tree.links:
        here, there = q[link.q], robot.home[link.q]
        if link.joint.kind == "free":
            turn = [Rotation.from_quat(np.roll(part[3:], -1)) for part in (here, there)]
            total += np.sum((here[:3] - there[:3]) ** 2) + length**2 * (turn[0] * turn[1].inv()).magnitude() ** 2
        elif link.joint.kind == "prismatic":
            total += float(here[0] - there[0]) ** 2
        else:
            total += length**2 * float(here[0] - there[0]) ** 2
    return total


@pytest.mark.parametrize("case", CASES[:2])
def test_no_pose_with_the_tool_there_is_nearer_to_home(case):
    robot = loaded(case)
    target = np.add(place(robot), [0.03, -0.02, 0.03])
    found = robot.assemble(words(robot, target))
    assert np.abs(place(robot, found) - target).max() < 1e-10  # where Newton ends
    for motor, k in zip(robot.motors, indices(robot, robot.motors), strict=True):  # other poses of the same tool
        other = robot.assemble(words(robot, target) | {motor: float(found[k] + 0.003)}, found)
        assert np.abs(place(robot, other) - target).max() < 1e-10  # where Newton ends
        assert distance(robot, other) > distance(robot, found)


def test_a_hand_with_seven_joints_keeps_its_turn_and_the_spare_motion_is_nearest():
    robot = loaded(CASES[2])
    p, R_home = end_effector(robot)
    target = words(robot, np.add(p, [0.03, -0.02, 0.03]))
    q = robot.assemble(target)
    assert np.abs(end_effector(robot, q)[1] - R_home).max() < 1e-9  # where Newton ends

    def opened(free):
        return distance(robot, robot.assemble(target | turned | {"1": float(free)}, q))

    turned = {f"hand.r{a}": float(v) for a, v in zip("xyz", Rotation.from_matrix(R_home).as_rotvec(), strict=True)}
    best = scipy.optimize.minimize_scalar(opened, bracket=(q[0] - 0.02, q[0] + 0.02), tol=1e-6)
    assert best.fun >= distance(robot, q) - 1e-10  # a parabola is flat there


@pytest.mark.verify
@pytest.mark.parametrize("case", CASES, ids=["tripod-wrist", "serial-arm-five", "serial-arm"])
def test_motors_along_a_circle_return_and_do_not_shake(case, monkeypatch):
    monkeypatch.setitem(KNOTS, "m", 48)
    robot = loaded(case)
    begin = place(robot)
    circle = {"centre": np.add(begin, [0.04, 0.03, 0]).tolist(), "start": begin.tolist(), "turns": 1}
    table = {"frame": robot.tree.end_effector, "circle": circle, "speed": 0.3, "ramp": 0.1}
    motion, motors = parflex.plan_motion(robot, table), indices(robot, robot.motors)
    assert np.abs(motion.at(0.0)[0] - motion.at(motion.end)[0]).max() < 1e-9  # the same pose, whatever the way
    for share in (0.1, 0.37, 0.7):  # between knots: quintics err by h^6, about 1e-8 with so few
        positions = motion.at(share * motion.end)[0]
        there = place(robot, robot.assemble(dict(zip(robot.motors, map(float, positions), strict=True))))
        assert np.linalg.norm(there - circle["centre"]) == pytest.approx(0.05, abs=1e-6)
        assert np.abs(positions - robot.assemble(words(robot, there))[motors]).max() < 1e-6
    accelerations = np.array([motion.at(float(t))[2] for t in np.linspace(0, motion.end, 400)])
    assert np.abs(np.diff(accelerations, axis=0)).max() < 0.2 * np.abs(accelerations).max()  # smooth


@pytest.mark.verify
def test_the_circle_of_a_robot_with_five_axes_needs_what_its_knots_need(monkeypatch):
    monkeypatch.setitem(KNOTS, "m", 80)
    robot = loaded(CASES[0])
    motion = parflex.plan_motion(robot, "circle")
    times = np.linspace(0.0, motion.end, 120)
    knots = {"t": times} | dict(zip(robot.motors, motion.value(times).T, strict=True))
    splined = parflex.plan_motion(robot, knots)
    worst, apart = np.zeros(5), 0.0
    for t in np.linspace(0.3, motion.end - 0.3, 12):  # away from the ramps, where a spline of so few knots is coarse
        both = []
        for one in (motion, splined):
            state = [dict(zip(robot.actuated_names, map(float, part), strict=True)) for part in one.at(float(t))]
            both.append(np.array(list(parflex.inverse_dynamics(robot, *state).efforts.values())))
        worst, apart = np.maximum(worst, np.abs(both[0])), max(apart, np.abs(both[0] - both[1]).max())
    assert 55 < worst[2] < 65 and worst[:3].max() < 90  # N; in static equilibrium about 50
    assert apart < 0.5  # of the spline through the knots


@pytest.mark.verify
def test_a_reference_that_a_robot_cannot_lead_whole_is_led_in_place(monkeypatch):
    robot = loaded(CASES[0])
    reference = through(robot, ["home", {"x": 0.0, "y": 0.02, "z": 0.8}, "home"], 1.0)
    monkeypatch.setattr("parflex.trajectories.follow.TRACK_STEP", 0.1)
    driven = track(robot, reference, robot.motors)
    assert np.isfinite(driven.joints.coefficients).all()
    assert np.abs(driven.joints.value(0.0) - driven.joints.value(1.0)).max() < 1e-9  # back at home


def test_a_reference_on_which_a_joint_jumps_is_refused_as_a_path_is(monkeypatch):
    def jumping(*arguments):
        here, qd, qdd = joints_of_pose(*arguments)
        q = here.q + 0.2 * (arguments[2].position[0] > 0.01) * np.eye(len(here.q))[0]
        return type(here)(here.robot, q), qd, qdd

    monkeypatch.setattr("parflex.trajectories.follow.joints_of_pose", jumping)
    monkeypatch.setattr("parflex.trajectories.follow._orientation", lambda here, driven: 1.0)
    with pytest.raises(parflex.UnreachableError, match=r"at t = 0\.\d+ s: 'left\.1' would have to") as caught:
        parflex.run_control(parflex.load("5r"), "line:x=0.03,y=0.5,time=1")
    assert caught.value.key == "reference"


@pytest.mark.verify
def test_poses_ask_of_a_turn_only_what_the_robot_can_lead(tmp_path):
    """The tip of a five-bar turns as it goes: between two poses no turn can be asked for; control goes the same way."""
    head = 'format = 1\nname = "five"\nextends = "5r"\n[motions.there]\nduration = 0.6\n'
    robot = parflex.load(write_robot(tmp_path, head + 'poses = ["home", { x = 0.03, y = 0.5 }]\n'))
    motion = parflex.plan_motion(robot, "there")
    half = dict(zip(robot.motors, map(float, motion.at(0.3)[0]), strict=True))
    middle = np.add(place(robot), [0.03, 0.5, 0.0]) / 2
    assert place(robot, robot.assemble(half)) == pytest.approx(middle, abs=1e-9)  # knots are exact
    run = parflex.run_control(robot, "line:x=0.03,y=0.5,time=0.6")
    wanted, rates = (motion.value(run["t"], order) for order in (0, 1))
    found = np.stack([run[f"reference.{motor}"] for motor in motion.names], axis=1)
    assert np.abs(found - wanted).max() < 2e-6 * np.abs(rates).max()  # both err by 1e-6 at most


def test_a_partial_pose_does_not_depend_on_where_the_search_starts():
    robot = loaded(CASES[0])
    target = words(robot, np.add(place(robot), [0.03, 0.01, 0.02]))
    elsewhere = robot.assemble(words(robot, np.add(place(robot), [-0.03, 0.03, -0.02])))
    assert np.abs(robot.assemble(target) - robot.assemble(target, elsewhere)).max() < 1e-9  # where Newton ends


@pytest.mark.verify
def test_a_path_on_which_the_free_part_jumps_is_refused_where_it_does(monkeypatch):
    monkeypatch.setitem(KNOTS, "m", 9)
    robot = load_robot("planar-arm")
    with pytest.raises(parflex.UnreachableError) as caught:  # the hand keeps its turn while the wrist is within 0.9 m
        parflex.plan_motion(robot, "out")
    way = np.sqrt(0.9**2 - 0.2**2) - 0.6
    found = re.match(
        r"the path stops ([\d.]+) m from its start: '.*' would have to move too suddenly", caught.value.message
    )
    assert found is not None and caught.value.key == "motions.out"
    assert 0 <= way - float(found[1]) < 0.02  # in a piece between knots that were doubled three times


def test_beyond_where_the_hand_keeps_its_turn_the_whole_pose_is_nearest():
    robot = load_robot("planar-arm")
    q = robot.assemble({"tip.x": 0.0, "tip.y": 1.0})
    lengths = np.array([0.5, 0.4, 0.2])

    def tip(angles):
        return np.array([lengths @ np.cos(np.cumsum(angles)), lengths @ np.sin(np.cumsum(angles)) - 1.0])

    best = scipy.optimize.minimize(
        lambda x: np.sum((x - robot.home) ** 2), q + 0.02, constraints={"type": "eq", "fun": tip}, tol=1e-12
    )
    assert np.abs(best.x - q).max() < 1e-5  # where the minimizer ends


def kinked(width):
    """One motor whose rate goes from 1 to 2 at s = 0.5, within a width."""

    def at(s, near):
        x = (s - 0.5) / width
        smooth = np.logaddexp(0.0, x) * width
        share = 1 / (1 + np.exp(-np.clip(x, -500, 500)))
        return moved(s + smooth, 1 + share, share * (1 - share) / width, near)

    return RobotPath(0.0, 1.0, at, lambda s: f"left at {s:.4g}", "made-up")


@cache
def four_bar():
    return parflex.load("four-bar")


def moved(position, rate, change, near):
    """The motor of a four-bar somewhere, whatever its loop says."""
    robot, values = four_bar(), np.zeros((3, len(near)))
    values[0] = near
    values[:, indices(robot, robot.motors)[0]] = position, rate, change
    return parflex.Configuration(robot, values[0]), *values[1:]


def test_knots_are_doubled_until_quintics_fit_between_them():
    robot = four_bar()
    road = kinked(0.02)
    pieces, motor = follow_path(robot, road, robot.home, 40, robot.actuated).pieces, indices(robot, robot.motors)
    s = np.linspace(0, 1, 501)
    exact = np.array([road.at(one, robot.home)[1][motor] for one in s])
    assert len(pieces.breaks) > 41
    assert np.abs(pieces.value(s, 1) - exact).max() < 1e-5  # of the midpoints, somewhat more beside
    assert len(follow_path(robot, kinked(0.3), robot.home, 40, robot.actuated).pieces.breaks) == 41


def test_what_quintics_cannot_follow_is_refused():
    robot = four_bar()
    with pytest.raises(parflex.UnreachableError, match=r"left at 0.4.*too suddenly"):
        follow_path(robot, kinked(1e-6), robot.home, 41, robot.actuated)


def test_rates_that_do_not_belong_to_the_positions_are_refused():
    robot = four_bar()
    place = lambda s, q: moved(s, 0.0, 0.0, q)  # noqa: E731
    still = RobotPath(0.0, 1.0, place, lambda s: f"left at {s:.4g}", "road")
    with pytest.raises(parflex.UnreachableError, match="too suddenly"):
        follow_path(robot, still, robot.home, 40, robot.actuated)
