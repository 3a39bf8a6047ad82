"""Joints that stick: closed forms, linkages integrated event by event by oracles, and joints that do not creep."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from support.command_line import answered
from support.oracles.stick_slip import Arm, Belt, Rubbing, spring_turns
from support.oracles.stops import JOINTS, FiveBar

import parflex
from parflex import InputError, RobotFileError

W = math.pi  # rad/s: half a period is a second
MASS = """
format = 1
name = "mass"
gravity = [0, 0, 0]
[[frame]]
name = "m"
joint = "prismatic"
actuated = true
inertia = {{ mass = 2 }}
spring = {{ stiffness = {stiffness!r} }}
friction = {{ {friction} }}
"""
BELT = """
format = 1
name = "belt"
gravity = [0, 0, 0]
[[frame]]
name = "belt"
joint = "prismatic"
actuated = true
[[frame]]
name = "block"
parent = "belt"
joint = "prismatic"
place = { position = [0, 0, 1] }
inertia = { mass = 1.5 }
friction = { coulomb = 4, static = 6 }
[[element]]
name = "spring"
kind = "spring"
between = ["base", "block"]
stiffness = 200
rest = 1.0
"""
SLIDE = """
format = 1
name = "slide"
[[frame]]
name = "m"
joint = "prismatic"
actuated = true
place = { rotation = [0.5, 0, 0] }
inertia = { mass = 2 }
friction = { viscous = 0, coulomb = 3, static = 5 }
"""
ARM = """
format = 1
name = "arm"
motion = "planar"
gravity = [0, -9.81, 0]
[[frame]]
name = "1"
joint = "revolute"
actuated = true
inertia = {{ mass = 1.2, centre = [0.2, 0, 0], about_centre = [0, 0, {first!r}] }}
friction = {{ viscous = 0.1, coulomb = 2.0, static = {static} }}
[[frame]]
name = "2"
parent = "1"
joint = "revolute"
actuated = true
place = {{ position = [0.4, 0, 0] }}
inertia = {{ mass = 0.8, centre = [0.15, 0, 0], about_centre = [0, 0, {second!r}] }}
friction = {{ coulomb = 0.8 }}
"""
LEGS = ("left.1", "left.2", "right.1", "right.2")


def written(tmp_path, text):
    path = tmp_path / "robot.toml"
    path.write_text(text)
    return parflex.load(path)


@pytest.fixture(scope="module")
def mass(tmp_path_factory):
    text = MASS.format(stiffness=2 * W * W, friction="coulomb = 1.5")
    return written(tmp_path_factory.mktemp("mass"), text)


# gauss4, rk4: (h w)^4/100 of the amplitude; generalized-alpha: (h w)^2/10
ERRORS = {"gauss6": 1e-12, "gauss4": 1e-11, "rk4": 1e-10, "dopri5": 1e-10, "generalized-alpha": 2e-6}


@pytest.mark.parametrize("method", ERRORS)
def test_a_mass_on_a_spring_loses_twice_the_friction_over_the_stiffness_in_half_a_period(mass, method):
    error = ERRORS[method]
    turns, rest = spring_turns(0.6, 2 * W * W, 1.5)
    more = {"tolerance": 1e-13} if method == "dopri5" else {}
    run = parflex.simulate(mass, None, 8.0, start={"pose": {"m": 0.6}}, method=method, step=2e-3, out_step=0.01, **more)
    assert len(turns) == 5 and abs(rest) * 2 * W * W < 1.5
    rows = [round(k / 0.01) for k in range(len(turns))]
    assert np.abs(run["q.m"][rows] - turns).max() < 4 * error
    (stick,) = run.summary["sticks"]
    assert stick["joint"] == "m" and stick["until"] is None
    assert abs(stick["time"] - (len(turns) - 1)) < 10 * error + 1e-11
    still = run.t > stick["time"]
    assert np.ptp(run["q.m"][still]) < 1e-15  # no creep
    way = np.abs(np.diff(turns)).sum()
    close = max(1e-7, 30 * error)  # rates in the stages are as good as the tolerance of their iteration, over the step
    assert abs(run["work.loss"][-1] - 1.5 * way) < close and run.summary["energy_balance_error"] < close
    assert run["friction.m.effort"][-1] == pytest.approx(rest * 2 * W * W, abs=1e-4)
    assert run["friction.m.effort"][5] == pytest.approx(1.5)  # against the motion


def test_static_friction_decides_where_the_mass_stays(tmp_path):
    robot = written(tmp_path, MASS.format(stiffness=2 * W * W, friction="coulomb = 1.5, static = 6"))
    run = parflex.simulate(robot, None, 3.0, start={"pose": {"m": 0.6}}, method="gauss6", step=2e-3)
    assert [round(one["time"], 9) for one in run.summary["sticks"]] == [2.0]  # at 0.296 m, where 5.8 N pull
    assert abs(run["q.m"][-1] - (0.6 - 4 * 1.5 / (2 * W * W))) < 1e-10
    only = written(tmp_path, MASS.format(stiffness=2 * W * W, friction="static = 6"))
    run = parflex.simulate(only, None, 2.2, start={"pose": {"m": 0.25}}, method="gauss6", step=2e-3)
    assert np.ptp(run["q.m"]) == 0.0 and run.summary["sticks"] == [{"joint": "m", "time": 0.0, "until": None}]
    assert not parflex.simulate(only, None, 2.2, start={"pose": {"m": 0.32}}, step=2e-3)["work.loss"].any()


def test_a_mass_on_a_belt_has_the_closed_cycle_of_stick_and_slip(tmp_path):
    robot, exact = written(tmp_path, BELT), Belt(1.5, 200.0, 0.1, 6.0, 4.0)
    begin = 4.0 / 200 - 2.0 / 200  # of a time on the belt
    table = {"t": np.array([0.0, 5.0]), "belt": np.array([0.0, 0.5]), "belt.velocity": np.array([0.1, 0.1])}
    run = parflex.simulate(
        robot, table, 2.0, start={"pose": {"belt": 0.0, "block": begin}, "velocity": {"block": 0.0}}, method="gauss6",
        step=1e-3,
    )  # fmt: skip
    place = run["q.belt"] + run["q.block"]
    assert np.abs(place - [exact.at(t) for t in run.t]).max() < 1e-9  # (h w)^6 at w = 12/s, and roots
    period = exact.sticks + exact.slips
    assert 3 * period < 2.0 < 4 * period
    for k, one in enumerate(run.summary["sticks"]):
        assert abs(one["time"] - k * period) < 1e-8
        assert abs(one["until"] - k * period - exact.sticks) < 1e-8
    assert len(run.summary["sticks"]) == 4 and run.settings["sticking"] == ["block"]
    assert run.summary["energy_balance_error"] < 1e-8


@pytest.mark.parametrize("speed", [0.0, 1.2, -0.7])
@pytest.mark.parametrize("effort", [6.0, 12.0, 18.0, 0.0])
def test_a_slide_on_an_incline_starts_stops_and_stays_as_its_loads_say(tmp_path, speed, effort):
    robot = written(tmp_path, SLIDE)
    pull, m = effort - 2 * 9.81 * math.cos(0.5), 2.0  # what friction has to bear
    x, v, t, sticks = 0.0, speed, 0.0, []
    while t < 1.0:
        if v == 0 and abs(pull) <= 5:
            sticks.append(t)
            break
        side = math.copysign(1.0, v if v else pull)
        a = (pull - 3 * side) / m
        stop = -v / a if v and v * a < 0 else math.inf
        d = min(stop, 1.0 - t)
        x, v, t = x + v * d + a * d * d / 2, 0.0 if d == stop else v + a * d, t + d
    run = parflex.simulate(robot, None, 1.0, effort={"m": effort}, start={"velocity": {"m": speed}}, step=5e-3)
    assert abs(run["q.m"][-1] - x) < 1e-11 and abs(run["qd.m"][-1] - v) < 1e-11
    assert [one["time"] for one in run.summary["sticks"]] == pytest.approx(sticks, abs=1e-11)


@pytest.mark.few
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_arm_with_friction_in_both_joints_moves_as_an_oracle_event_by_event(tmp_path, seed):
    rng = np.random.default_rng(seed)
    static = 2.0 if seed == 1 else 2.6
    robot = written(tmp_path, ARM.format(first=1.2 * 0.16 / 12, second=0.8 * 0.09 / 12, static=static))
    a, b = [rng.uniform((2.0, 0.6), (3.5, 1.2)), rng.uniform(-0.5, 0.5, 2)], rng.uniform(3, 9, 2)
    q, v = rng.uniform(-0.8, 0.8, 2) - [1.6, 0.0], rng.uniform(-2, 2, 2) * (seed > 1)

    def pulls(t):
        return a[0] * np.sin(b * t) + a[1]

    run = parflex.simulate(
        robot, None, 1.2, effort={"1": lambda t: pulls(t)[0], "2": lambda t: pulls(t)[1]},
        start={"pose": {"1": q[0], "2": q[1]}, "velocity": {"1": v[0], "2": v[1]}}, method="gauss6", step=1e-3,
    )  # fmt: skip
    rows = np.array([[1.0, 0.0], [-1.0, 1.0]])
    push = lambda t: rows.T @ pulls(t)  # noqa: E731
    exact = Rubbing(Arm(), rows, np.array([2.0, 0.8]), np.array([static, 0.8]), np.array([0.1, 0.0]), push)
    rests, places = exact.run(np.linalg.solve(rows, q), np.linalg.solve(rows, v), run.t, limit=0.02)
    found = np.array([run["q.1"], run["q.2"]]).T
    assert np.abs(found - places @ rows.T).max() < 1e-7  # the oracle goes on 1e-9 s behind a bound
    told = sorted((one["joint"], one["time"], one["until"] or math.inf) for one in run.summary["sticks"])
    known = sorted((("1", "2")[j], begin, end) for j, begin, end in rests)
    assert len(known) > 1 and [one[0] for one in told] == [one[0] for one in known]
    assert np.allclose([one[1:] for one in told], [one[1:] for one in known], atol=1e-6)
    assert run.summary["energy_balance_error"] < 1e-8


@pytest.fixture(scope="module")
def five_bar():
    friction = {"1": {"coulomb": 0.5}, "2": {"viscous": 0.02, "coulomb": 0.3}}
    return parflex.load("5r", settings={f"legs.frame.{k}.friction": value for k, value in friction.items()})


def oracle_of(push):
    rows, bars = np.array([JOINTS[name] for name in LEGS]), FiveBar()
    numbers = np.array([0.5, 0.3, 0.5, 0.3]), np.array([0.0, 0.02, 0.0, 0.02])
    return Rubbing(lambda q, v, f: bars.slope(q, v, f)[:4], rows, numbers[0], numbers[0], numbers[1], push)


def test_a_closed_loop_with_more_sticking_joints_than_freedoms_rests_and_breaks_away_when_it_must(five_bar):
    """Four joints stick, two freedoms: all efforts that hold them are asked for by a linear program."""
    left, right = (lambda t: -1.4 + 6 * t), (lambda t: 1.2 - 2 * t)
    run = parflex.simulate(five_bar, None, 0.5, effort={"left.1": left, "right.1": right}, method="gauss6", step=1e-3)
    exact = oracle_of(lambda t: np.array([left(t), 0.0, right(t), 0.0]))
    q = np.linalg.solve(exact.rows, [run[f"q.{name}"][0] for name in LEGS])
    y, still = np.concatenate([q, np.zeros(4)]), np.zeros(4)
    limit = brentq(lambda t: exact.share(t, y, still) - 1, 0.0, 0.4)
    first = min(one["until"] for one in run.summary["sticks"] if one["until"] is not None)
    assert abs(first - limit) < 1e-7
    before = run.t < limit
    assert before.sum() > 50 and all(np.ptp(run[f"q.{name}"][before]) < 1e-12 for name in LEGS)
    assert all(np.abs(run[f"friction.{name}.effort"][before]).max() < most * (1 + 1e-7)
               for name, most in zip(LEGS, exact.static, strict=True))  # fmt: skip
    rests, rows = exact.run(q, np.zeros(4), run.t[: round(limit * 1000) + 60], limit=0.02)
    found = np.array([run[f"q.{name}"] for name in LEGS]).T[: len(rows)]
    assert np.abs(found - rows @ exact.rows.T).max() < 1e-8
    assert len(rests) >= 3


def test_a_passive_joint_of_a_loop_sticks_without_drift_while_the_robot_moves(five_bar):
    start = {"velocity": {"left.1": 1.5, "right.1": -0.4}}
    run = parflex.simulate(
        five_bar, None, 0.6, effort={"left.1": -1.0, "right.1": 1.6}, start=start, method="rk4", step=2e-3,
        out_step=2e-3, independent=["left.2", "right.2"],
    )  # fmt: skip
    told = [(one, (run.t > one["time"]) & (run.t < (one["until"] or np.inf))) for one in run.summary["sticks"]]
    moving = [one for one, inside in told if inside.sum() > 9 and np.abs(run["qd.left.1"][inside]).max() > 1e-3]
    assert moving, run.summary["sticks"]  # one joint sticks and the loop moves about it
    for one, inside in told:
        assert np.ptp(run[f"q.{one['joint']}"][inside]) < 1e-13, one  # 3e-13 where drift is not taken away
    assert run.summary["energy_balance_error"] < 1e-5  # rk4


def test_motors_of_a_flexible_robot_stick_at_the_turn_of_the_square_and_do_not_creep():
    robot = parflex.load("dualemps")
    pd = parflex.PD({"11": 2e5, "21": 2e5}, {"11": 5e3, "21": 5e3}, 1e-3)
    run = parflex.simulate(robot, "square", 2.6, controller=pd, step=1e-3)
    turned = [one for one in run.summary["sticks"] if one["joint"] == "11" and one["time"] > 1]
    assert len(turned) == 1 and turned[0]["until"] is None
    still = run.t >= turned[0]["time"]
    assert still.sum() > 700 and np.ptp(run["q.11"][still]) < 1e-13 and np.ptp(run["q.21"]) < 1e-13
    assert np.ptp(run["P.y"][still]) > 1e-7  # the links swing on
    assert 1e-5 < abs(run["q.11"][-1] - 0.22) < 25 / 2e5  # m: it stays where friction bears what the law gives
    assert abs(run["friction.11.effort"][-1]) < 25
    assert run.summary["energy_balance_error"] < 1e-6


def test_motors_that_follow_a_motion_cannot_stick_and_have_friction_in_their_efforts(five_bar):
    robot = five_bar
    t = np.linspace(0, 1, 41)
    table = {"t": t, "left.1": 2.1 + 0.2 * np.sin(6 * t), "right.1": 1.0 - 0.1 * np.sin(5 * t)}
    run = parflex.simulate(robot, table, 0.4)
    assert run.settings["sticking"] == [] and "sticks" not in run.summary and run.settings["friction_width"] is None
    for row in (20, 300):
        state = [{name: run[f"{word}.{name}"][row] for name in robot.motors} for word in ("q", "qd", "qdd")]
        efforts = parflex.inverse_dynamics(robot, *state).efforts
        assert [run[f"effort.{name}"][row] for name in efforts] == pytest.approx(list(efforts.values()), abs=1e-6)


@pytest.mark.parametrize(
    ("friction", "why"),
    [("coulomb = 2, static = 1.5", "below the sliding friction 2"), ("coulomb = 1, static = -1", "below")],
)
def test_static_friction_below_sliding_friction_is_refused(tmp_path, friction, why):
    with pytest.raises(RobotFileError, match=why) as refused:
        written(tmp_path, MASS.format(stiffness=1.0, friction=friction))
    assert "static" in str(refused.value)
    with pytest.raises(RobotFileError, match="below the sliding friction 3"):
        text = MASS.format(stiffness=1.0, friction="static = 2").replace("mass = 2", "mass = 2, FS = 3")
        written(tmp_path, text)


def test_sticks_are_told_on_the_command_line_and_a_width_takes_them_away(mass, tmp_path, capsys):
    words = ("simulate", mass.file, "--time", "0.02", "--out", str(tmp_path / "run.csv"))
    told = answered(capsys, *words)
    assert told["sticks"] == [{"joint": "m", "time": 0.0, "until": None}] and "friction.m.effort" in told["columns"]
    smooth = answered(capsys, *words, "--friction-width", "0.01")
    assert "sticks" not in smooth and smooth["friction"]["width"] == 0.01
    pulled = {"effort": {"m": 1.2}, "check_width": False, "step": 5e-3}
    assert np.ptp(parflex.simulate(mass, None, 1.0, **pulled)["q.m"]) < 1e-15
    assert np.ptp(parflex.simulate(mass, None, 1.0, friction_width=1e-3, **pulled)["q.m"]) > 1e-4  # it creeps
    with pytest.raises(InputError, match=r"must be positive.*joints then stick"):
        parflex.simulate(mass, None, 0.1, friction_width=0.0)
