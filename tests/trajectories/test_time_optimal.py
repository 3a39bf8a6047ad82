"""Time-optimal motions: as fast as a dense optimum, within the limits between the knots, refused where none is left."""

import itertools

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from support.cases import VERIFY
from support.command_line import answered
from support.oracles.fastest import fastest_time
from support.robots import load_robot

import parflex

FRICTION = {"viscous": 0.5, "coulomb": 0.8}
# Corke's toolbox: friction at the joints is gear ratio^2 times that of the motor, and the largest torques
PUMA_FRICTION = ((5.79, 24.7), (9.45, 13.6), (3.99, 7.1), (0.41, 0.9), (0.38, 0.7), (0.21, 0.3))
PUMA_EFFORTS = (97.6, 186.4, 89.4, 24.2, 20.1, 21.3)


def words(motors, values):
    return dict(zip(motors, map(float, values), strict=True))


def three_rrr():
    """The 3RRR with friction from one pose to another."""
    robot = parflex.load("3rrr", settings={"legs.frame.1.friction": FRICTION})
    first, last = np.array([-0.05, 0.0, 0.0]), np.array([0.08, 0.05, 0.3])
    names = ("x", "y", "theta")
    table = {"poses": [words(names, first), words(names, last)], "effort_limit": 20.0}
    return robot, table, names, first, last - first, np.full(3, 20.0)


def puma():
    """The Puma 560 with friction by a joint move."""
    settings = {f"frame.{k}.friction": {"viscous": v, "coulomb": c} for k, (v, c) in enumerate(PUMA_FRICTION, 1)}
    robot = parflex.load("puma560", settings=settings)
    names, limits = tuple(robot.motors), words(robot.motors, PUMA_EFFORTS)
    first, last = np.array([0, -0.7, 0.3, 0, 0.2, 0]), np.array([1.0, 0.3, 0.9, 0.5, 0.8, -0.4])
    table = {"joints": [words(names, first), words(names, last)], "effort_limit": limits}
    return robot, table, names, first, last - first, np.array(PUMA_EFFORTS)


def gough_stewart():
    """A Gough-Stewart robot with friction in its legs from one pose to another."""
    robot = parflex.load("gough-stewart", settings={"legs.frame.3.friction": {"viscous": 300, "coulomb": 40}})
    home = parflex.configure(robot, "home")
    place = home.at.of(robot.tree.places[robot.tree.end_effector])[1]
    first = np.array([*place, 0.0])
    way, names = np.array([0.1, -0.05, 0.1, 0.2]), ("x", "y", "z", "rz")
    poses = [words(names, first), words(names, first + way)]
    return robot, {"poses": poses, "effort_limit": 4000.0}, names, first, way, np.full(6, 4000.0)


def dense_optimum(robot, names, first, way, limits, places):
    """The oracle with efforts by the inverse model of named motions, splined between places."""
    s, motors = np.linspace(0, 1, places), robot.motors

    def effort(place, y, u):
        given = (words(names, first + place * way), words(names, y * way), words(names, u * way))
        found = parflex.inverse_dynamics(robot, *given).efforts
        return np.array([found[motor] for motor in motors])

    rows = []
    for place in s:
        slow, mean, fast = (effort(place, y, 0.0) for y in (1.0, 2.0, 3.0))
        B = (fast - 2 * mean + slow) / 2
        D = mean - slow - 3 * B
        rows.append([effort(place, 1.0, 1.0) - slow, B, D, slow - B - D])
    terms = CubicSpline(s, np.array(rows).transpose(0, 2, 1))
    return fastest_time(terms, 1.0, -limits, limits)


def largest_share(robot, plan, limits, count=60):
    """Largest effort over its limit at random times, by the inverse model of the motion of the motors."""
    near, worst = plan.start, 0.0
    for t in np.sort(np.random.default_rng(7).uniform(0, plan.end, count)):
        q, qd, qdd = (words(plan.names, values) for values in plan.at(t))
        here = parflex.Configuration(robot, robot.assemble(q, near))
        near = here.q
        found = parflex.inverse_dynamics(robot, here, qd, qdd).efforts
        worst = max(worst, *(abs(found[motor]) / limit for motor, limit in zip(plan.names, limits, strict=True)))
    return worst


def check_optimum(case, places):
    robot, table, names, first, way, limits = case()
    plan = parflex.plan_motion(robot, {**table, "law": "time-optimal"})
    best, _, _ = dense_optimum(robot, names, first, way, limits, places)
    # the window takes 0.05 %, constant accelerations in 480 intervals less; the oracle errs by 0.02 %
    assert -0.0005 < plan.end / best - 1 < 0.005
    # checked by parabolas at ends of pieces and between; the motion itself is rounded to quintics
    assert 0.99 < largest_share(robot, plan, limits) < 1 + 1e-5
    assert plan.timing.largest_violation <= 1e-6 and not plan.timing.warnings
    return robot, plan, best


@pytest.fixture(scope="module")
def arm():
    """Return the fastest move of the Puma with friction; it is as fast as a dense optimum."""
    return check_optimum(puma, 41 if VERIFY else 21)[1]


@pytest.mark.verify
@pytest.mark.parametrize("case", [three_rrr, gough_stewart])
def test_parallel_robots_with_friction_are_as_fast_as_a_dense_optimum(case):
    check_optimum(case, 41)


@pytest.mark.verify
def test_a_limit_acts_at_every_place_and_the_answer_says_which(arm):
    part = arm.timing.parts[0]
    assert part.active[0]["s"] == 0 and part.active[-1]["to"] == 1.0
    assert {row["limit"] for row in part.active} == {"effort"}
    assert all(row["to"] == after["s"] for row, after in itertools.pairwise(part.active))
    shares = np.abs(part.efforts) / PUMA_EFFORTS
    inner = slice(3, -3)  # at both ends the window holds the effort back
    # accelerations are constant in 480 intervals, in which efforts change by some thousandths
    assert np.median(shares[inner].max(axis=1)) > 0.997 and shares.max() < 1 + 1e-5
    assert np.all(part.speed <= part.most * (1 + 1e-9))
    assert 1 <= len(part.switching) <= 3


MOVE = {"joints": [{"left.1": 2.1, "right.1": 1.0}, {"left.1": 1.7, "right.1": 0.8}], "law": "time-optimal"}


@pytest.mark.verify
def test_a_motion_of_constant_inertia_is_that_of_the_textbook():
    def plan(**limits):
        return parflex.plan_motion(parflex.load("5r"), {**MOVE, "acceleration_limit": 8.0, **limits})

    assert plan().end == pytest.approx(2 * np.sqrt(0.4 / 8.0), rel=1e-3)  # half the way up, half the way down
    slow = plan(velocity_limit={"left.1": 1.0})
    assert slow.end == pytest.approx(0.4 / 1.0 + 1.0 / 8.0, rel=1.5e-3)
    assert {row["limit"] for row in slow.timing.parts[0].active} == {"acceleration", "velocity"}
    rolling = plan(end_speeds=[0, 1.0])
    top = np.sqrt((2 * 8 * 0.4 + 0.4**2) / 2)  # of the motor, whose way is 0.4 of the path
    assert rolling.end == pytest.approx(top / 8 + (top - 0.4) / 8, rel=1e-3)
    assert rolling.at(rolling.end)[1][0] == pytest.approx(-0.4, rel=1e-6)


@pytest.mark.verify
def test_a_run_of_the_fastest_motion_stays_within_its_limits():
    robot = parflex.load("5r")
    run = parflex.simulate(robot, parflex.plan_motion(robot, MOVE, effort_limit=3.0), 0.3, check_width=False)
    largest = max(np.abs(run[f"effort.{motor}"]).max() for motor in robot.motors)
    assert 2.95 < largest < 3.0 * (1 + 1e-4) and not run.summary["velocity_jumps"]  # friction has a width in runs


@pytest.mark.verify
def test_a_row_without_inertia_does_not_make_the_motion_chatter():
    robot = parflex.load("5r", settings={"legs.frame.1.friction": {"viscous": 0.1}})
    around = {"centre": [0.05, 0.45, 0], "start": [0.15, 0.45, 0], "turns": 1}
    plan = parflex.plan_motion(robot, {"circle": around, "law": "time-optimal", "effort_limit": 4.0})
    assert plan.end == pytest.approx(0.71287, rel=3e-3)  # by oracles.fastest with 1600 intervals
    assert len(plan.timing.parts[0].switching) <= 5 and plan.timing.largest_violation <= 1e-6
    for order in range(3):  # what runs get is smooth up to its acceleration
        assert not len(plan.jumps(order)[0][plan.jumps(order)[0] < plan.end])


@pytest.mark.verify
def test_a_motor_that_stands_still_has_no_friction_of_either_sign():
    robot = parflex.load("dualemps")
    move = {"start": {"11": 0.02, "21": 0.02}, "moves": [{"11": 0.2}], "law": "time-optimal", "effort_limit": 100.0}
    efforts = parflex.plan_motion(robot, move).timing.parts[0].efforts[:, 1]  # of the other motor, that holds
    assert np.abs(efforts).max() < 5  # Coulomb friction would be 25 N


@pytest.mark.verify
def test_a_joint_that_turns_back_has_its_friction_on_both_sides():
    robot = parflex.load("5r", settings={"legs.frame.1.friction": {"coulomb": 0.4}, "gravity": [0, 0, 0]})
    circle = {"centre": [0.05, 0.45, 0], "start": [0.1, 0.45, 0], "turns": 0.5}
    plan = parflex.plan_motion(robot, {"circle": circle, "law": "time-optimal", "effort_limit": 1.5})
    part = plan.timing.parts[0]
    turning = np.diff(part.s) < 1e-6 * part.s[-1]
    assert turning.sum() >= 4  # a joint turns back twice: knots on both sides, and one between
    assert np.abs(part.efforts).max() < 1.5 * (1 + 1e-5) and largest_share(robot, plan, [1.5, 1.5]) < 1 + 2e-5
    rates = np.array([plan.at(t)[1] for t in np.linspace(0.01, 0.99, 99) * plan.end])
    assert np.any(np.diff(np.sign(rates), axis=0))


@pytest.mark.verify
def test_spare_motors_share_the_effort_within_their_ranges():
    robot, names, last = parflex.load("4rrr"), ("x", "y", "theta"), np.array([0.04, 0.03, 0.1])
    limits = {"effort_limit": {motor: [-3.0, 5.0] for motor in robot.motors}}
    poses = [words(names, 0 * last), words(names, last)]
    plan = parflex.plan_motion(robot, {"poses": poses, "law": "time-optimal", **limits})
    part = plan.timing.parts[0]
    assert part.efforts.min() > -3 * (1 + 1e-6) and part.efforts.max() < 5 * (1 + 1e-6)
    distance = np.minimum(part.efforts + 3.0, 5.0 - part.efforts).min(axis=1)
    assert np.median(distance) < 1e-2  # some motor is at a bound
    for k in (20, 60, 100):  # the efforts do what least norm does
        here = parflex.configure(robot, words(names, last * part.s[k]))
        qd, qdd = (words(plan.names, values) for values in plan.at(part.t[k])[1:])
        least = parflex.inverse_dynamics(robot, here, qd, qdd).efforts
        off = here.J_a.T @ (part.efforts[k] - np.array([least[motor] for motor in robot.motors]))
        assert np.abs(off).max() < 1e-4


@pytest.mark.verify
def test_a_load_on_a_cable_is_not_faster_than_free_fall():
    robot = load_robot("hanging-load")
    line = {"points": [[0, -0.4, 0], [0, -1.2, 0]], "law": "time-optimal"}
    up = (5 / 0.05 - 30) / (3 + 0.002 / 0.05**2)  # the drum with 5 N m brakes load and drum
    fall = np.sqrt(2 * 0.8 / (10 + 10**2 / up))  # 10 m/s^2, then up: speeds meet, and ways are 0.8 m
    plan = parflex.plan_motion(robot, line, effort_limit=5.0)
    assert plan.end == pytest.approx(fall * (1 + 10 / up), rel=2e-3)
    assert [row["limit"] for row in plan.timing.parts[0].active] == ["tension", "effort"]
    free = parflex.plan_motion(robot, line, acceleration_limit=1e4)  # of the drum: 500 m/s^2
    assert free.end == pytest.approx(np.sqrt(2 * 0.8 / (10 + 10**2 / 500)) * (1 + 10 / 500), rel=2e-3)
    with pytest.raises(parflex.InputError, match="velocity limits alone"):
        parflex.plan_motion(robot, line, velocity_limit=10.0)


@pytest.mark.verify
def test_spare_drums_keep_every_cable_taut():
    robot = parflex.load("planar-cable", settings={"legs.frame.drum.friction": {"coulomb": 0.02}})
    line = {"poses": ["home", {"x": 0.3, "y": 0.2, "theta": 0.0}], "law": "time-optimal"}
    plan = parflex.plan_motion(robot, line, effort_limit=3.0)
    assert plan.end == pytest.approx(0.467, rel=3e-3)  # by linear programs on a grid of its own, 0.2 % coarse
    part, least = plan.timing.parts[0], []
    drum = 7850 * np.pi * 0.035**2 * 0.04 * 0.035**2 / 2 + 8**2 * 1e-4
    for k in range(2, len(part.t) - 2, 10):
        _, qd, qdd = plan.at(part.t[k])
        least.append(part.efforts[k] - drum * qdd - 0.02 * np.sign(qd))  # tension times radius
    assert np.min(least) > -1e-3 and np.max(np.abs(part.efforts)) < 3 * (1 + 1e-5)
    loose = parflex.plan_motion(robot, line, acceleration_limit=30.0)
    assert any("keep the cables taut" in warning for warning in loose.timing.warnings)


@pytest.mark.verify
def test_the_command_line_plans_the_fastest_motion(capsys):
    text = '{ joints = [{ "left.1" = 2.1 }, { "left.1" = 1.7 }], duration = 1 }'
    limits = ["--time-optimal", "--acceleration-limit", "left.1=8,right.1=8"]
    answer = answered(capsys, "motion", "5r", text, *limits)
    assert answer["time"] == pytest.approx(2 * np.sqrt(0.4 / 8), rel=1e-3) and answer["largest_violation"] <= 1e-6
    assert answer["parts"][0]["active"][0]["limit"] == "acceleration" and answer["parts"][0]["switching"]


def test_joints_outside_their_limits_on_the_path_are_refused_before_its_speeds_are_computed(monkeypatch):
    monkeypatch.setattr("parflex.trajectories.time_optimal.rows_along", None)
    robot = parflex.load("5r", settings={"legs.frame.1.limits": [0.9, 2.2]})
    with pytest.raises(
        parflex.UnreachableError, match=r"at s = 1 of 1 joint 'right\.1' is at 0\.8, outside"
    ) as refusal:
        parflex.plan_motion(robot, MOVE, effort_limit=3.0)
    assert refusal.value.key == "motions.given" and "ignore_limits" in refusal.value.hint


JOINTS = MOVE["joints"]
BAD = {
    "has no limits": {"joints": JOINTS},
    "is neither positive": {"joints": JOINTS, "effort_limit": 0},
    "-2.* of 'left.1' is neither positive": {"joints": JOINTS, "velocity_limit": {"left.1": -2}},
    "velocity limits alone": {"joints": JOINTS, "velocity_limit": 1.0},
    "nor a range": {"joints": JOINTS, "effort_limit": {"left.1": [2, 1]}},
    "is not an actuated joint": {"joints": JOINTS, "effort_limit": {"lfet.1": 2}},
    "the limits exclude .* s = .* effort of '(left|right).1'": {"joints": JOINTS, "effort_limit": 0.02},
    "speed at the end of the path is not reachable: it is at most": {
        "joints": JOINTS, "velocity_limit": 1.0, "acceleration_limit": 8.0, "end_speeds": [0, 30],
    },
    "speed at the start .* at most": {"joints": JOINTS, "acceleration_limit": 1.0, "end_speeds": [30, 0]},
    "a move goes nowhere": {"joints": [JOINTS[0], JOINTS[0]], "effort_limit": 5},
    "needs an end": {"circle": {"centre": [0, 0.45, 0], "start": [0.1, 0.45, 0]}, "effort_limit": 5},
    "the path stops at s =": {"points": [[0.0, 0.4, 0], [0.0, 2.0, 0]], "effort_limit": 5},
}  # fmt: skip


@pytest.mark.few
@pytest.mark.parametrize("message", BAD)
def test_impossible_time_optimal_motions_are_refused(message):
    with pytest.raises((parflex.InputError, parflex.UnreachableError), match=message) as refusal:
        parflex.plan_motion(parflex.load("5r"), {**BAD[message], "law": "time-optimal"})
    assert refusal.value.hint and refusal.value.key
