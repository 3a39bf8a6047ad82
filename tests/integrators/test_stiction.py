"""Joints that stick: closed forms, linkages integrated event by event, loops at dead centres, flexible arms."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq
from support.cases import VERIFY
from support.command_line import answered
from support.oracles.rubbing_loops import SliderCrank, shared
from support.oracles.stick_beam import RubbingBeam
from support.oracles.stick_slip import Arm, Belt, Rubbing, spring_turns
from support.oracles.stops import JOINTS, FiveBar
from support.robots import load_robot

import parflex

W = math.pi  # rad/s: half a period is a second
LEGS = ("left.1", "left.2", "right.1", "right.2")


# gauss4, rk4: (h w)^4/100 of the amplitude; generalized-alpha: (h w)^2/10
ERRORS = {"gauss6": 1e-12, "gauss4": 1e-11, "rk4": 1e-10, "dopri5": 1e-10, "generalized-alpha": 2e-6}


@pytest.mark.verify
@pytest.mark.parametrize("method", ERRORS)
def test_a_mass_on_a_spring_loses_twice_the_friction_over_the_stiffness_in_half_a_period(method):
    mass, error = load_robot("sprung-mass"), ERRORS[method]
    turns, rest = spring_turns(0.6, 2 * W * W, 1.5)
    more = {"tolerance": 1e-12} if method == "dopri5" else {}
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


def test_static_friction_decides_where_the_mass_stays():
    robot = load_robot("sprung-mass", settings={"frame.m.friction.static": 6})
    run = parflex.simulate(robot, None, 3.0, start={"pose": {"m": 0.6}}, method="gauss6", step=2e-3)
    assert [round(stick["time"], 9) for stick in run.summary["sticks"]] == [2.0]  # at 0.296 m, where 5.8 N pull
    assert abs(run["q.m"][-1] - (0.6 - 4 * 1.5 / (2 * W * W))) < 1e-10
    only = load_robot("sprung-mass", settings={"frame.m.friction": {"static": 6}})
    run = parflex.simulate(only, None, 2.2, start={"pose": {"m": 0.25}}, method="gauss6", step=2e-3)
    assert np.ptp(run["q.m"]) == 0.0 and run.summary["sticks"] == [{"joint": "m", "time": 0.0, "until": None}]
    assert not parflex.simulate(only, None, 2.2, start={"pose": {"m": 0.32}}, step=2e-3)["work.loss"].any()


def test_a_mass_on_a_belt_has_the_closed_cycle_of_stick_and_slip():
    robot, exact = load_robot("block-on-belt"), Belt(1.5, 200.0, 0.1, 6.0, 4.0)
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
def test_a_slide_on_an_incline_starts_stops_and_stays_as_its_loads_say(speed, effort):
    robot = load_robot("inclined-slide")
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
def test_an_arm_with_friction_in_both_joints_moves_as_an_oracle_event_by_event(seed):
    rng = np.random.default_rng(seed)
    static = 2.0 if seed == 1 else 2.6
    robot = load_robot("rubbing-arm", settings={"frame.1.friction.static": static})
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
    for name, most in zip(LEGS, exact.static, strict=True):
        assert np.abs(run[f"friction.{name}.effort"][before]).max() < most * (1 + 1e-7)
    rests, rows = exact.run(q, np.zeros(4), run.t[: round(limit * 1000) + 60], limit=0.02)
    found = np.array([run[f"q.{name}"] for name in LEGS]).T[: len(rows)]
    assert np.abs(found - rows @ exact.rows.T).max() < 1e-8
    assert len(rests) >= 3


@pytest.mark.verify
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


@pytest.mark.verify
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
    t = np.linspace(0, 1, 41)
    table = {"t": t, "left.1": 2.1 + 0.2 * np.sin(6 * t), "right.1": 1.0 - 0.1 * np.sin(5 * t)}
    run, robot = parflex.simulate(five_bar, table, 0.4), five_bar
    assert run.settings["sticking"] == [] and "sticks" not in run.summary and run.settings["friction_width"] is None
    for row in (20, 300):
        state = [{name: run[f"{word}.{name}"][row] for name in robot.motors} for word in ("q", "qd", "qdd")]
        efforts = parflex.inverse_dynamics(robot, *state).efforts
        assert [run[f"effort.{name}"][row] for name in efforts] == pytest.approx(list(efforts.values()), abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"frame.m.friction": {"coulomb": 2, "static": 1.5}}, "static.*below the sliding friction 2"),
        ({"frame.m.friction": {"coulomb": 1, "static": -1}}, "static.*below"),
        ({"frame.m.friction": {"static": 2}, "frame.m.inertia.FS": 3}, "below the sliding friction 3"),
    ],
)
def test_static_friction_below_sliding_friction_is_refused(settings, message):
    with pytest.raises(parflex.ParflexError, match=message):
        load_robot("sprung-mass", settings=settings)


def test_a_friction_width_replaces_sticks_by_creep(tmp_path, capsys):
    mass = load_robot("sprung-mass")
    words = ("simulate", mass.file, "--time", "0.02", "--out", str(tmp_path / "run.csv"))
    answer = answered(capsys, *words)
    assert answer["sticks"] == [{"joint": "m", "time": 0.0, "until": None}] and "friction.m.effort" in answer["columns"]
    smooth = answered(capsys, *words, "--friction-width", "0.01")
    assert "sticks" not in smooth and smooth["friction"]["width"] == 0.01
    pulled = {"effort": {"m": 1.2}, "check_width": False, "step": 5e-3}
    assert np.ptp(parflex.simulate(mass, None, 1.0, **pulled)["q.m"]) < 1e-15
    assert np.ptp(parflex.simulate(mass, None, 1.0, friction_width=1e-3, **pulled)["q.m"]) > 1e-4
    with pytest.raises(parflex.InputError, match=r"must be positive.*joints then stick"):
        parflex.simulate(mass, None, 0.1, friction_width=0.0)


def check_sticks(run, joints):
    """Sticks of a joint follow each other, and the joint moves between them and only there."""
    of, sticks, end = {name: [] for name in joints}, run.summary["sticks"], run.t[-1]
    assert sticks == sorted(sticks, key=lambda one: one["time"])
    for one in sticks:
        of[one["joint"]].append((one["time"], end if one["until"] is None else one["until"]))
        assert one["until"] is None or one["until"] > one["time"] + 1e-12
    for name, spans in of.items():
        for (_, until), (begin, _) in pairwise(spans):
            assert begin > until  # strictly: it moved in between
        q, qd, sticking = run[f"q.{name}"], run[f"qd.{name}"], np.zeros(len(run.t), dtype=bool)
        for begin, until in spans:
            inside = (run.t >= begin) & (run.t <= until)
            sticking |= inside
            if inside.any():
                assert np.ptp(q[inside]) < 1e-11 and np.abs(qd[inside]).max() < 1e-8  # drift of a step, corrected
        assert np.abs(qd[1:][~sticking[1:]]).min(initial=1.0) > 1e-9, name  # the first row may begin to slide


@pytest.mark.few
@pytest.mark.parametrize("seed", range(6))
def test_sticks_of_random_flexible_arms_follow_each_other_and_are_where_joints_rest(seed):
    rng = np.random.default_rng(seed)
    settings = {
        "gravity": [0, float(rng.choice([0.0, -9.81])), 0],
        "sections.s.y": float(rng.uniform(0.004, 0.01)),
        "frame.one.friction.coulomb": float(rng.uniform(0.3, 2)),
        "frame.two.friction.coulomb": float(rng.uniform(0.02, 0.1)),
        "frame.one.beam.elements": int(rng.integers(1, 3)),
    }
    settings["frame.one.friction.static"] = settings["frame.one.friction.coulomb"] * float(rng.uniform(1, 1.6))
    robot = load_robot("rubbing-beam-arm", settings=settings)
    force, w = rng.uniform(2, 8), rng.uniform(20, 60)
    push, pose = {"one.tip": lambda t: [0, force * np.sin(w * t), 0]}, {"one": float(rng.uniform(-1, 1))}
    run = parflex.simulate(robot, None, 0.15, wrench=push, pose=pose)
    check_sticks(run, ["one", "two"])
    assert run.summary["sticks"]


LOADED = {"wrench": {"arm.tip": [0, 8.0, 0]}, "start": "rest"}


@pytest.mark.few("more2", "more0")
@pytest.mark.parametrize("more", [{"step": 1e-4}, {"tolerance": 1e-7}, {"method": "rk4", "step": 1e-5}])
def test_a_loaded_beam_sticks_and_slips_without_losing_an_end(more):
    of = load_robot("beam-with-friction")
    run = parflex.simulate(of, None, 0.1, **LOADED, **more)
    check_sticks(run, ["arm"])
    assert len(run.summary["sticks"]) > 40 and run.summary["sticks"][0]["time"] == 0.0
    assert run.summary["sticks"][0]["until"] == pytest.approx(0.012336, abs=2e-5)  # gauss6, 0.01 ms: 0.01233611


def test_a_gear_that_rests_does_not_slip_though_one_side_bears_all_it_can():
    of = load_robot("gear-with-friction")
    for side in (1, -1):
        for end in (1.3, 1.38, 1.5):  # the motor is at its bound from 1.365 s on, both sides from 1.4 s
            load = {"effort": {"motor": lambda t, side=side: side * 0.1 * t}, "pose": {"arm": -np.pi / 2}}
            run = parflex.simulate(of, None, end, out_step=0.01, **load)
            untils = {one["joint"]: one["until"] for one in run.summary["sticks"]}
            assert len(run.summary["sticks"]) == 2
            expected = pytest.approx(1.4, abs=1e-6) if end > 1.4 else None
            assert untils == {"motor": expected, "arm": expected}


@pytest.mark.parametrize("size", [1e-3, 1e-5])
def test_a_beam_on_a_rubbing_joint_sticks_when_the_exact_solution_does(size):
    """To first order in the size of all loads, which the terms of second order leave to 1e-3 of the angle."""
    friction = {"coulomb": 2.0 * size, "static": 3.0 * size}
    of = load_robot("beam-with-friction", settings={"frame.arm.beam.elements": 1, "frame.arm.friction": friction})
    times = np.linspace(0, 0.1, 101)
    exact = RubbingBeam(2700 * 0.02 * 0.004, 70e9 * 0.02 * 0.004**3 / 12, 0.4, 2 * size, 3 * size, 8 * size)
    angles, sticks = exact.run(times)
    wrench = {"arm.tip": [0, 8 * size, 0]}
    run = parflex.simulate(of, None, 0.1, wrench=wrench, start="rest", step=2e-5, method="gauss6")
    found = [(one["time"], one["until"]) for one in run.summary["sticks"]]
    assert len(found) == len(sticks) > 3
    for one, other in zip(found, sticks, strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    assert np.abs(run["q.arm"] - angles).max() < 1e-3 * np.abs(angles).max()
    check_sticks(run, ["arm"])


@pytest.fixture(scope="module")
def loaded():
    """The beam, and its run with steps of which half change the angle by 1e-6 rad."""
    of = load_robot("beam-with-friction")
    return of, parflex.simulate(of, None, 0.1, frames=["arm.tip"], **LOADED, step=2e-5, method="gauss6")


@pytest.mark.few("gauss4-0.001")
@pytest.mark.parametrize(("method", "most"), [("gauss4", 1e-3), ("generalized-alpha", 2e-2)])
def test_default_steps_follow_friction_and_estimate_their_error(loaded, method, most):
    """Fifty rests and slips, of which each makes the beam vibrate and moves the next."""
    of, exact = loaded
    run = parflex.simulate(of, None, 0.1, frames=["arm.tip"], **LOADED, method=method, check_steps=True)
    off, told = np.abs(run["arm.tip.theta"] - exact["arm.tip.theta"]).max(), run.summary["estimated_error"]
    assert run.status == "ok" and off < most
    assert 0.3 < told["radians"] / off < 3  # as near as errors of a run are known that goes on from event to event
    said = [sentence for sentence in run.summary["warnings"] if "may err by" in sentence]
    assert bool(said) == (told["radians"] > 2e-3 * np.ptp(run["arm.tip.theta"]))
    check_sticks(run, ["arm"])


NAMES = ("crank", "rod", "slider")
# J of 3 J with steps of 0.5 ms at 8 rad/s: of fourth order 1e-7, of second order 1e-4; iterations and roots 1e-9
METHODS = {"gauss4": 3e-7, "gauss6": 3e-9, "rk4": 3e-9, "dopri5": 3e-7, "generalized-alpha": 3e-4}
STILL = 1e-15  # rad: a joint that sticks
LOAD = -9.81 * (1 * 0.2 - 0.5 * 0.5 * 0.1)  # N m on `a`, of both weights, where both arms lie along x


def check_rows(run, exact, friction, close):
    """Energy, loss, friction and rests of every row, against closed forms; gives the rate of the crank."""
    angle, rate = run["q.crank"], run["qd.crank"]
    ways = exact.travelled(angle)
    lost = sum(value * ways[:, NAMES.index(name)] for name, value in friction.items())
    assert np.abs(run["work.loss"] - lost).max() < close
    energy = exact.energy(angle, rate)
    assert np.abs(energy + lost - energy[0]).max() < close
    for name, value in friction.items():
        effort, own = run[f"friction.{name}.effort"], run[f"qd.{name}"]
        moving = np.abs(own) > 1e-8
        assert np.allclose(effort[moving], -value * np.sign(own[moving]), rtol=1e-12)
        for one in run.summary["sticks"]:
            if one["joint"] == name:
                inside = (run.t > one["time"]) & (run.t < (one["until"] or np.inf))
                assert not moving[inside].any()
    return rate


@pytest.mark.few("8.0-gauss4", "8.0-rk4")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("speed", [8.0, -6.0])
def test_friction_of_a_slider_turns_at_its_dead_centres_and_takes_its_way_times_its_effort(method, speed):
    exact, friction = SliderCrank(0.2, 0.5, 0.0), {"slider": 1.0}
    robot = load_robot("slider-crank", settings=exact.settings(0.7, friction))
    start = {"pose": {"crank": 0.7}, "velocity": {"crank": speed}}
    runs = [parflex.simulate(robot, None, 1.0, start=start, method=method, step=5e-4, out_step=s) for s in (2e-3, 1e-2)]
    for run in runs:
        rate = check_rows(run, exact, friction, METHODS[method])
        assert run.summary["sticks"] == [] and (rate * np.sign(speed) > 1).all()
    # no state of the loop begins anew with the rows: events are the same, roots of them are found to 1e-11 s
    assert np.abs(runs[0]["q.crank"][::5] - runs[1]["q.crank"]).max() < max(1e-10, 1e-2 * METHODS[method])


@pytest.mark.few
@pytest.mark.parametrize("seed", range(6))
def test_slider_cranks_come_to_rest_as_their_energy_says_and_share_the_load(seed):
    rng = np.random.default_rng(seed)
    crank = rng.uniform(0.1, 0.3)
    exact = SliderCrank(float(crank), float(crank * rng.uniform(1.3, 3)), 9.81 * (seed % 2))
    chosen = rng.permutation(3)[: 1 + seed % 3]
    friction = {NAMES[k]: float(rng.uniform(0.2, 1.5)) for k in chosen}
    angle, speed = float(rng.uniform(-3, 3)), float(rng.uniform(2, 7) * (-1) ** (seed // 2))
    robot = load_robot("slider-crank", settings=exact.settings(angle, friction))
    start = {"pose": {"crank": angle}, "velocity": {"crank": speed}}
    run = parflex.simulate(robot, None, 2.0, start=start, method="gauss6", step=1e-3, out_step=2e-3)
    assert run.status == "ok"
    rate = check_rows(run, exact, friction, 1e-7)
    if abs(rate[-1]) < 1e-9:
        ways, load = exact.ways(run["q.crank"][-1]), exact.load(run["q.crank"][-1])
        most = np.array([abs(ways[NAMES.index(name)]) * value for name, value in friction.items()])
        assert abs(load) <= most.sum()
        parts = shared(load, most)
        for part, name in zip(parts, friction, strict=True):
            found = -run[f"friction.{name}.effort"][-1] * ways[NAMES.index(name)]
            assert found == pytest.approx(part, abs=1e-6)  # an effort that is found to 1e-8 of what it may be
        assert {one["joint"] for one in run.summary["sticks"] if one["until"] is None} == set(friction)


def gears(a, b):
    return load_robot("two-gears", settings={"frame.a.friction.coulomb": a, "frame.b.friction.coulomb": b})


@pytest.mark.few("gauss4", "rk4")
@pytest.mark.parametrize("method", METHODS)
def test_gears_at_rest_share_their_load_by_the_same_rule_in_all_methods(method):
    pairs = ((2.0, 0.1), (0.5, 4.0), (1.9, 0.3), (0.05, 5.0), (3.0, 3.0))
    for a, b in pairs if VERIFY else pairs[:2]:
        run = parflex.simulate(gears(a, b), None, 0.02, start="rest", method=method, step=1e-3)
        parts = shared(LOAD, np.array([a, 0.5 * b]))
        assert run.status == "ok" and len(run.summary["sticks"]) == 2 and np.ptp(run["q.a"]) < STILL
        assert np.abs(-run["friction.a.effort"] - parts[0]).max() < 1e-7
        assert np.abs(0.5 * run["friction.b.effort"] - parts[1]).max() < 1e-7


def test_joints_of_a_loop_share_a_load_that_comes_and_goes():
    """Iterations ask for states in which the joints cannot all be at rest: what these leave must not stay."""
    exact, friction = SliderCrank(0.2, 0.5, 9.81), {"crank": 0.3, "rod": 0.5, "slider": 6.0}
    robot = load_robot("slider-crank", settings=exact.settings(0.7, friction))
    push, start = {"crank": lambda t: 1.1 * np.sin(9 * t)}, {"pose": {"crank": 0.7}}
    run = parflex.simulate(robot, None, 0.6, effort=push, start=start, step=1e-3)
    assert run.status == "ok" and np.ptp(run["q.crank"]) < STILL
    ways = exact.ways(0.7)
    most = np.abs(ways) * list(friction.values())
    loads = exact.load(0.7) + 1.1 * np.sin(9 * run.t)
    assert 3 * most[0] < np.abs(loads).max() < most.sum()
    parts = np.array([shared(load, most) for load in loads])
    found = np.array([-run[f"friction.{name}.effort"] * way for name, way in zip(NAMES, ways, strict=True)]).T
    assert np.abs(found - parts).max() < 1e-5  # as above


def test_a_loop_that_starts_at_a_dead_centre_meets_the_friction_there():
    """The slider does not move with the crank at first, and its friction holds nothing."""
    exact, friction = SliderCrank(0.2, 0.5, 0.0), {"slider": 1.0}
    robot = load_robot("slider-crank", settings=exact.settings(0.0, friction))
    start = {"pose": {"crank": 0.0}}
    run = parflex.simulate(robot, None, 0.5, effort={"crank": 0.9}, start=start, method="gauss6", step=1e-3)
    ways = exact.travelled(run["q.crank"])[:, 2]
    assert run["q.crank"][-1] > 1.0
    assert np.abs(run["work.loss"] - ways).max() < 1e-8
    gained = exact.energy(run["q.crank"], run["qd.crank"]) - 0.9 * run["q.crank"] + ways
    assert np.abs(gained).max() < 1e-8


def four_bar(rng):
    """A random four-bar linkage whose loop closes, with friction in some joints; the robot, the friction, the angle."""
    while True:
        a, b, c, d = (float(length) for length in rng.uniform(0.2, 0.7, 4))
        first = float(rng.uniform(-3, 3))
        corner = np.array([a * np.cos(first), a * np.sin(first)])
        reach = np.hypot(d - corner[0], corner[1])
        if abs(b - c) < 0.9 * reach and reach < 0.9 * (b + c) and abs(a - d) > 0.05:
            break
    lean = np.arctan2(-corner[1], d - corner[0]) + np.arccos((b**2 + reach**2 - c**2) / (2 * b * reach))
    tip = corner + b * np.array([np.cos(lean), np.sin(lean)])
    chosen = rng.permutation(3)[: rng.integers(1, 4)]
    friction = {("crank", "coupler", "rocker")[k]: float(rng.uniform(0.05, 1.2)) for k in chosen}
    third = float(np.arctan2(tip[1], tip[0] - d))
    numbers = {"a": a, "b": b, "c": c, "d": d, "first": first, "second": float(lean - first), "third": third}
    settings = {f"constants.{name}": value for name, value in numbers.items()}
    settings |= {f"frame.{name}.friction.coulomb": value for name, value in friction.items()}
    settings["gravity"] = [0, float(-rng.choice([0.0, 9.81])), 0]
    return load_robot("bare-four-bar", settings=settings), friction, first


@pytest.mark.few
@pytest.mark.parametrize(
    ("seed", "time"),
    [(1, 0.3), (2, 0.3), *((k, 0.8) for k in range(3, 40))],
)
def test_four_bars_move_as_with_friction_that_is_smooth(seed, time):
    """A run in which joints stick and one with friction that is smooth over a small width, row by row."""
    rng = np.random.default_rng(seed)
    robot, friction, angle = four_bar(rng)
    speed, pull, w = float(rng.choice([0.0, 5.0, -5.0])), float(rng.uniform(0, 2.5)), float(rng.uniform(2, 10))
    start = {"pose": {"crank": angle}, "velocity": {"crank": speed}}
    given = {"effort": {"crank": lambda t: pull * np.sin(w * t)}, "out_step": 1e-3, "start": start}
    run = parflex.simulate(robot, None, time, **given)
    smooth = parflex.simulate(robot, None, time, friction_width=1e-4, check_width=False, **given)
    assert run.status == smooth.status == "ok"
    # a width of 1e-4 rad/s lets joints at rest creep by as much in a second, and start anew so much beside
    assert np.abs(run["q.crank"] - smooth["q.crank"]).max() < 2e-3
    lost = sum(value * np.abs(np.diff(run[f"q.{name}"])).sum() for name, value in friction.items())
    # rows cut the corners of ways that turn back between them
    assert run["work.loss"][-1] == pytest.approx(lost, rel=1e-3, abs=1e-4)
    for name, value in friction.items():
        effort, rate = run[f"friction.{name}.effort"], run[f"qd.{name}"]
        moving = np.abs(rate) > 1e-8
        assert np.allclose(effort[moving], -value * np.sign(rate[moving]), rtol=1e-12)
        assert (np.abs(effort) <= value * (1 + 1e-7)).all()


@pytest.mark.parametrize("held", [50.0, 3.0])
def test_a_joint_passes_its_dead_centre_while_friction_holds_another(held):
    """A rocker of the loop that is left turns back, and is not held."""
    robot = load_robot("four-bar-on-arm", settings={"frame.arm.friction.coulomb": held})
    start = {"pose": {"arm": 0.0, "crank": 1.2}, "velocity": {"arm": 0.0, "crank": 6.0}}
    run = parflex.simulate(robot, None, 1.0, start=start, method="gauss6", step=5e-4)
    turned = np.flatnonzero(np.diff(np.sign(run["qd.rocker"])))
    assert run.status == "ok" and len(turned) >= 2
    lost = held * np.abs(np.diff(run["q.arm"])).sum() + 0.3 * np.abs(np.diff(run["q.rocker"])).sum()
    assert run["work.loss"][-1] == pytest.approx(lost, rel=1e-4)  # rows cut corners
    assert run.summary["energy_balance_error"] < 1e-7
    still = np.abs(run["qd.arm"]) < 1e-7  # the angle to 1e-13; rates of independent joints leave more near 0.4 s
    assert still.all() if held == 50.0 else 0.02 < still.mean() < 0.98
    assert not [stick for stick in run.summary["sticks"] if stick["joint"] == "rocker"]
    assert np.allclose(np.abs(run["friction.rocker.effort"]), 0.3)


@pytest.mark.parametrize(("slope", "warned"), [(0.5, False), (0.1, False), (1e-3, True), (1e-5, True), (1e-7, False)])
def test_sticking_joints_with_nearly_dependent_rates_are_warned_of(slope, warned):
    """`b` goes as `a` and a little as `c`: whether both hold `c` goes by what their rates differ in."""
    robot = load_robot("three-slides", settings={"constants.slope": slope})
    run = parflex.simulate(robot, None, 0.01, effort={"a": 0.0, "c": 0.5 * slope})
    assert any("are nearly identical" in text for text in run.summary["warnings"]) == warned
    if not warned:
        assert abs(run["q.a"][-1]) < STILL
