"""Stops of joints in simulations: met at the right time, to the order of the method, with all energy accounted for."""

import math

import numpy as np
import pytest
from support.command_line import answered
from support.oracles.stops import JOINTS, Ball, five_bar_with_stop
from support.robots import load_robot
from support.stop_robots import ball

import parflex


def moved(robot, time=1.0, speed=2.0, **more):
    start = {"pose": {"ball": more.pop("at", 0.0)}, "velocity": {"ball": speed}}
    return parflex.simulate(robot, None, time, start=start, stops=True, **more)


@pytest.mark.few("40.0-gauss6", "40.0-dopri5")
@pytest.mark.parametrize("method", ["gauss6", "rk4", "dopri5"])
@pytest.mark.parametrize("damping", [0.0, 40.0])
def test_a_ball_meets_its_stops_when_the_closed_form_says(damping, method):
    more = {"tolerance": 1e-12} if method == "dopri5" else {}
    run = moved(ball(damping=damping), method=method, step=2e-4, **more)
    met, state = Ball(2.0, 50.0, (-0.3, 0.1), 2e4, damping).run(1.0, 0.0, 2.0)
    found = run.summary["stops"]
    assert [(one["joint"], one["side"]) for one in found] == [("ball", one.side) for one in met]
    assert {one.side for one in met} == {"lower", "upper"}
    # the motion before an event is exact to rounding; later ones carry the error of the steps, (h w)^order at w = 100/s
    least = {"gauss6": 1e-10, "rk4": 2e-7, "dopri5": 1e-9}[method]
    assert abs(found[0]["time"] - met[0].time) < 1e-10
    for one, exact in zip(found, met, strict=True):
        assert abs(one["time"] - exact.time) < least
        assert abs(one["speed"] - exact.speed) < 100 * least
    places = np.array([state(t)[0] for t in run.t])
    assert np.abs(run["q.ball"] - places).max() < 10 * least


def test_a_contact_without_damping_is_half_a_sine_and_gives_all_speed_back():
    run = moved(ball(spring=0.0), 0.2, method="gauss6", step=1e-4, out_step=1e-4)
    w = math.sqrt(2e4 / 2)
    begin, speed = 0.1 / 2.0, 2.0
    inside = (run.t >= begin) & (run.t <= begin + math.pi / w)
    effort = -2e4 * speed / w * np.sin(w * (run.t - begin)) * inside
    assert np.abs(run["stop.ball.effort"] - effort).max() < 1e-7  # of 400 N
    assert abs(run["qd.ball"][-1] + speed) < 1e-10
    assert abs(run.summary["largest_stop_effort"]["effort"] - 2e4 * speed / w) < 2e-2  # the row nearest to the peak


@pytest.mark.parametrize(("method", "order"), [("gauss4", 4), ("rk4", 4), ("gauss6", 6), ("generalized-alpha", 2)])
def test_the_order_of_a_method_stays_across_stops(method, order):
    robot, errors = ball(damping=40.0), []
    time, steps = (0.3, (1e-3, 5e-4)) if order == 2 else (0.5, (1e-3, 5e-4) if method == "rk4" else (4e-3, 2e-3))
    _, state = Ball(2.0, 50.0, (-0.3, 0.1), 2e4, 40.0).run(time, 0.0, 2.0)
    for step in steps:  # short of w = 100/s
        run = moved(robot, time, method=method, step=step, out_step=0.02)
        errors.append(max(abs(x - state(t)[0]) for t, x in zip(run.t, run["q.ball"], strict=True)))
    assert math.log2(errors[0] / errors[1]) > order - 0.6, errors  # two orders too low without the search for roots


def test_energy_is_accounted_for_over_many_contacts():
    run = moved(ball(damping=40.0), 10.0, method="gauss6")
    assert len(run.summary["stops"]) > 8
    assert run["work.loss"][-1] > 3.5  # of 4 J
    assert run.summary["energy_balance_error"] < 2e-6  # the tolerance of the iteration, over 20000 steps
    hard = moved(ball(), 10.0, method="gauss6")
    assert hard.summary["energy_balance_error"] < 1e-8 and hard["work.loss"][-1] == 0


def test_a_damped_stop_never_pulls():
    run = moved(ball(damping=400.0), 2.0, out_step=5e-4)
    depth = np.maximum(run["q.ball"] - 0.1, -0.3 - run["q.ball"])
    assert (run["stop.ball.effort"] * np.sign(run["q.ball"] + 0.1) < 1e-9).all()
    assert ((run["stop.ball.effort"] == 0) | (depth > -1e-12)).all()
    leaving = (depth > 0) & (run["stop.ball.effort"] == 0)
    assert leaving.any()  # there are rows in which it has let go inside


def test_dampers_of_stops_are_left_out_with_all_damping():
    run = moved(ball(damping=40.0), 0.3, without=["damping"], method="gauss6")
    hard = moved(ball(), 0.3, method="gauss6")
    assert np.array_equal(run["q.ball"], hard["q.ball"]) and not run["work.loss"].any()


def test_a_run_may_start_at_a_limit():
    robot = ball(spring=0.0)
    into = moved(robot, 0.02, speed=1.0, at=0.1, method="gauss6")
    assert into.summary["stops"] == [{"joint": "ball", "side": "upper", "time": 0.0, "speed": 1.0}]
    away = moved(robot, 0.02, speed=-1.0, at=0.1, method="gauss6")
    assert away.summary["stops"] == [] and not away["stop.ball.effort"].any()
    pressed = parflex.simulate(robot, None, 1.0, effort={"ball": 10.0}, pose={"ball": 0.1}, stops=True, method="gauss6")
    assert abs(pressed["q.ball"].max() - 0.1 - 2 * 10.0 / 2e4) < 1e-6  # twice the static depth, without damping


def test_grazing_a_limit_is_seen_within_a_step():
    robot, w, step = ball(), 5.0, 4e-3
    # the top of a sine lies beyond the limit for less than a step
    for over, seen in ((2e-6, True), (-2e-6, False)):
        run = moved(robot, 0.6, speed=(0.1 + over) * w, method="gauss6", step=step)
        met, _ = Ball(2.0, 50.0, (-0.3, 0.1), 2e4).run(0.6, 0.0, (0.1 + over) * w)
        assert [one["side"] for one in run.summary["stops"]] == ["upper"] * seen
        assert 2 * math.sqrt(2 * 2e-6 / (0.1 * w * w)) < step
        if seen and met:
            assert abs(run.summary["stops"][0]["time"] - met[0].time) < 1e-7  # the speed there is 3e-3 m/s


@pytest.mark.parametrize(
    ("method", "step"), [("gauss4", 5e-4), ("gauss6", 5e-4), ("rk4", 5e-5), ("generalized-alpha", 5e-4)]
)
def test_contacts_that_are_too_short_for_the_steps_are_warned_of(method, step):
    robot = ball(spring=0.0, stiffness=1e9, damping=1.8e4)  # contacts of 1.25e-4 s
    run = moved(robot, 0.07, method=method, step=step)
    (said,) = [word for word in run.summary["warnings"] if "the contact of joint 'ball' with its stop takes" in word]
    assert "(first at t = 0.05 s)" in said and "or the method 'dopri5'" in said
    fine = moved(robot, 0.07, method=method, step=1e-5)
    assert fine.summary["stops"] and not any("contact of" in word for word in fine.summary["warnings"])
    if method == "generalized-alpha":
        assert any("energy balance is off" in word for word in run.summary["warnings"])
        assert not any("energy" in word for word in moved(robot, 0.07, method=method, step=2e-6).summary["warnings"])


def test_contacts_that_steps_follow_or_that_graze_are_not_warned_of():
    for robot, more in (
        (ball(spring=0.0, stiffness=1e7, damping=1.8e3), {"step": 1e-4}),  # 1.25e-3 s
        (ball(spring=0.0, stiffness=1e9, damping=1.8e4), {"method": "dopri5"}),
        (ball(), {"time": 0.6, "speed": 0.5 + 1e-5, "step": 4e-3, "method": "gauss6"}),
    ):
        run = moved(robot, **({"time": 0.07} | more))
        assert run.summary["stops"] and not run.summary["warnings"], run.summary["warnings"]


def test_a_motor_that_is_driven_into_its_stop_must_push():
    robot = ball(spring=0.0)
    t = np.linspace(0, 1, 21)
    table = {"t": t, "ball": 0.12 * np.sin(np.pi * t)}
    run = parflex.simulate(robot, table, 1.0, stops=True)
    free = parflex.simulate(robot, table, 1.0)
    pushed = 2e4 * np.maximum(run["q.ball"] - 0.1, 0)
    assert pushed.max() > 100
    assert np.abs(run["effort.ball"] - free["effort.ball"] - pushed).max() < 1e-8
    assert len(run.summary["stops"]) == 1


def five_bar(limits, stop):
    """The five-bar robot of the catalogue with limits in all joints, and stops in those of one number."""
    settings = {f"legs.frame.{number}.limits": [f"low{number}", f"high{number}"] for number in "12"}
    settings[f"legs.frame.{next(iter(stop))}.stop"] = next(iter(stop.values()))
    for number in "12":
        pairs = [limits.get(f"{leg}.{number}", (-4.0, 4.0)) for leg in ("left", "right")]
        settings |= {f"legs.{word}{number}": [pair[k] for pair in pairs] for k, word in enumerate(("low", "high"))}
    return parflex.load("5r", settings=settings)


@pytest.mark.parametrize(("joint", "side", "damping"), [("left.2", "lower", 0.5), ("right.1", "upper", 0.0)])
def test_a_joint_of_a_closed_loop_meets_its_stop_as_a_lagrangian_says(joint, side, damping):
    plain = parflex.load("5r")
    home = parflex.configure(plain, {"tip.x": 0.05, "tip.y": 0.5})
    names = list(plain.tree.position_names)
    value = float(home.q[names.index(joint)])
    limits = [value - 0.15, value + 2.0] if side == "lower" else [value - 2.0, value + 0.01]
    robot = five_bar({joint: limits}, {joint[-1]: {"stiffness": 400, "damping": damping}})
    speed = {"left.1": 1.0, "right.1": 1.0}
    run = parflex.simulate(
        robot, None, 0.25, start={"pose": {"tip.x": 0.05, "tip.y": 0.5}, "velocity": speed}, stops=True,
        without=["friction"], method="gauss6", step=2.5e-4,
    )  # fmt: skip
    joints = np.array([JOINTS[name] for name in names])
    q, v = (np.linalg.solve(joints, [run[f"{word}.{name}"][0] for name in names]) for word in ("q", "qd"))
    met, rows = five_bar_with_stop(joint, tuple(limits), 400.0, damping, q, v, run.t)
    told = [(one["joint"], one["side"]) for one in run.summary["stops"]]
    assert met and told == [(one.joint, one.side) for one in met]
    for one, exact in zip(run.summary["stops"], met, strict=True):
        assert abs(one["time"] - exact.time) < 1e-8
        assert abs(one["speed"] - exact.speed) < 1e-6
    found = np.array([run[f"q.{name}"] for name in names]).T
    assert np.abs(found - rows @ joints.T).max() < 1e-8
    assert run.summary["energy_balance_error"] < 1e-7


def test_a_damped_cable_becomes_taut_where_the_closed_form_says():
    run = parflex.simulate(load_robot("yo-yo"), None, 1.5, method="gauss6", step=1e-3)
    met, state = Ball(1.5, 0.0, (-0.5, 99.0), 2000.0, 10.0, pull=-1.5 * 9.81).run(1.5, -0.3, 0.0)
    assert len(met) > 2
    places = np.array([state(t)[0] for t in run.t])
    assert np.abs(run["q.drop"] - places).max() < 1e-9  # (h w)^6 at w = 37/s; 3e-4 if steps go across
    assert run.summary["energy_balance_error"] < 1e-7  # the tolerance of the iteration, over many steps
    assert run["element.rope.force"].min() > -1e-9


@pytest.mark.verify
def test_a_plant_under_a_law_meets_its_stops():
    words = {"reference": "circle:radius=0.05,time=0.5", "law": "pd"}
    free = parflex.run_control(parflex.load("5r"), **words)["q.left.1"]
    low = float(free[0] + 0.7 * (free.min() - free[0]))
    assert low < free[0] - 0.01
    robot = five_bar({"left.1": (low, low + 3.0)}, {"1": {"stiffness": 2000, "damping": 1}})
    run = parflex.run_control(robot, stops=True, reactions=True, **words)
    met = run.summary["stops"]
    assert run.ok and met[0]["joint"] == "left.1" and met[0]["side"] == "lower"
    row = int(met[0]["time"] / 1e-3)
    assert run["q.left.1"][row] >= low > run["q.left.1"][row + 1]
    assert run["stop.left.1.effort"].max() == run.summary["largest_stop_effort"]["effort"] > 0
    assert run["q.left.1"].min() > free.min()
    assert run.summary["largest_reactions"]["tip hinge"]["force"] > 0 and "reaction.left.2.fx" in run
    outside = five_bar({"left.1": (float(free[0]) + 0.03, float(free[0]) + 2.0)}, {"1": {"stiffness": 2000}})
    refused = parflex.run_control(outside, stops=True, **words)
    assert refused.failure == "start" and "beyond its lower limit" in refused.why


BAD = {
    "a stop needs the limits": {"frame.boom.stop": {"stiffness": 1e4}},
    "-1.0 is not positive": {"frame.ball.stop": {"stiffness": -1}},
    "0.0 is not positive": {"frame.ball.stop": {"stiffness": 0}},
    "negative": {"frame.ball.stop": {"stiffness": 1e4, "damping": -2}},
    "stiffness": {"frame.ball.stop": {"damping": 2}},
}


@pytest.mark.parametrize("message", BAD)
def test_impossible_stops_are_refused(message):
    settings = BAD[message]
    with pytest.raises(parflex.ParflexError, match=message) as refusal:
        load_robot("crane" if "frame.boom.stop" in settings else "ball-between-stops", settings=settings)
    assert refusal.value.key and refusal.value.hint


def test_missing_stops_are_named_and_starts_beyond_them_refused():
    with pytest.raises(parflex.InputError, match="no joint of the robot has a stop"):
        parflex.simulate(parflex.load("5r"), None, 0.01, stops=True)
    with pytest.raises(parflex.InputError, match=r"'ball' starts at 0.2, beyond its upper limit 0.1") as refusal:
        moved(ball(), 0.01, at=0.2)
    assert refusal.value.key == "stops" and refusal.value.value == 0.2
    robot = five_bar({}, {"1": {"stiffness": 1000}})
    run = parflex.simulate(robot, None, 0.002, stops=True, check_width=False)
    assert "the limits of 'left.2', 'right.2' do not act: they have no stop" in run.summary["warnings"]
    assert run.summary["stops"] == [] and run.summary["largest_stop_effort"] is None
    assert "stops in simulation" in parflex.explain(ball()).as_markdown()


def test_the_command_line_reports_the_stops_that_were_met(tmp_path, capsys):
    words = ["--time", "0.2", "--velocity", "ball=2", "--stops", "--out", str(tmp_path / "run.csv")]
    answer = answered(capsys, "simulate", ball().file, *words)
    assert [(stop["joint"], stop["side"]) for stop in answer["stops"]] == [("ball", "upper")]
    assert "stop.ball.effort" in answer["columns"] and answer["largest_stop_effort"]["joint"] == "ball"
    assert answer["settings"]["stops"] is True
