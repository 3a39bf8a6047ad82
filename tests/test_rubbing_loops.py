"""Dry friction in joints of loops: at dead centres, and where more joints stick than a robot has freedoms."""

from __future__ import annotations

import numpy as np
import pytest
from support.oracles.rubbing_loops import SliderCrank, shared

import parflex

NAMES = ("crank", "rod", "slider")
# J of 3 J with steps of 0.5 ms at 8 rad/s: of fourth order 1e-7, of second order 1e-4; iterations and roots 1e-9
METHODS = {"gauss4": 3e-7, "gauss6": 3e-9, "rk4": 3e-9, "dopri5": 3e-7, "generalized-alpha": 3e-4}
STILL = 1e-15  # rad: a joint that sticks
GEARS = """
format = 1
name = "gears"
motion = "planar"
gravity = [0, -9.81, 0]
[[frame]]
name = "a"
joint = "revolute"
actuated = true
friction = {{ coulomb = {a!r} }}
inertia = {{ mass = 1, centre = [0.2, 0, 0], about_centre = [0, 0, 0.02] }}
[[frame]]
name = "b"
joint = "revolute"
place = {{ position = [1, 0, 0] }}
friction = {{ coulomb = {b!r} }}
inertia = {{ mass = 0.5, centre = [0.1, 0, 0], about_centre = [0, 0, 0.02] }}
[[coupling]]
name = "g"
joint = "b"
terms = {{ a = -0.5 }}
"""
LOAD = -9.81 * (1 * 0.2 - 0.5 * 0.5 * 0.1)  # N m on `a`, of both weights, where both arms lie along x


def written(tmp_path, text):
    path = tmp_path / "robot.toml"
    path.write_text(text)
    return parflex.load(path)


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


@pytest.mark.few
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("speed", [8.0, -6.0])
def test_friction_of_a_slider_turns_at_its_dead_centres_and_takes_its_way_times_its_effort(tmp_path, method, speed):
    exact, friction = SliderCrank(0.2, 0.5, 0.0), {"slider": 1.0}
    robot = written(tmp_path, exact.text(0.7, friction))
    start = {"pose": {"crank": 0.7}, "velocity": {"crank": speed}}
    runs = [parflex.simulate(robot, None, 1.0, start=start, method=method, step=5e-4, out_step=s) for s in (2e-3, 1e-2)]
    for run in runs:
        rate = check_rows(run, exact, friction, METHODS[method])
        assert run.summary["sticks"] == [] and (rate * np.sign(speed) > 1).all()
    # no state of the loop begins anew with the rows: events are the same, roots of them are found to 1e-11 s
    assert np.abs(runs[0]["q.crank"][::5] - runs[1]["q.crank"]).max() < max(1e-10, 1e-2 * METHODS[method])


@pytest.mark.few
@pytest.mark.parametrize("seed", range(6))
def test_slider_cranks_come_to_rest_as_their_energy_says_and_share_the_load(tmp_path, seed):
    rng = np.random.default_rng(seed)
    crank = rng.uniform(0.1, 0.3)
    exact = SliderCrank(float(crank), float(crank * rng.uniform(1.3, 3)), 9.81 * (seed % 2))
    chosen = rng.permutation(3)[: 1 + seed % 3]
    friction = {NAMES[k]: float(rng.uniform(0.2, 1.5)) for k in chosen}
    angle, speed = float(rng.uniform(-3, 3)), float(rng.uniform(2, 7) * (-1) ** (seed // 2))
    robot = written(tmp_path, exact.text(angle, friction))
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


@pytest.mark.parametrize("method", METHODS)
def test_gears_at_rest_share_their_load_by_one_rule_in_all_methods(tmp_path, method):
    for a, b in ((2.0, 0.1), (0.5, 4.0), (1.9, 0.3), (0.05, 5.0), (3.0, 3.0)):
        robot = written(tmp_path, GEARS.format(a=a, b=b))
        run = parflex.simulate(robot, None, 0.02, start="rest", method=method, step=1e-3)
        parts = shared(LOAD, np.array([a, 0.5 * b]))
        assert run.status == "ok" and len(run.summary["sticks"]) == 2 and np.ptp(run["q.a"]) < STILL
        assert np.abs(-run["friction.a.effort"] - parts[0]).max() < 1e-7
        assert np.abs(0.5 * run["friction.b.effort"] - parts[1]).max() < 1e-7


@pytest.mark.parametrize("method", ["gauss4", "rk4"])
def test_shares_of_a_load_that_comes_and_goes_do_not_depend_on_the_past(tmp_path, method):
    robot = written(tmp_path, GEARS.format(a=0.8, b=3.0))
    run = parflex.simulate(
        robot, None, 1.5, effort={"a": lambda t: 3.8 * np.sin(5 * t) ** 2}, start="rest", method=method, step=2e-3,
        out_step=1e-2,
    )  # fmt: skip
    assert run.status == "ok" and np.ptp(run["q.a"]) < STILL
    loads = LOAD + 3.8 * np.sin(5 * run.t) ** 2
    assert 1.6 < loads.max() < 2.3 and loads.min() < -1.6  # `a` bears all it can on both sides, both together do not
    parts = np.array([shared(load, np.array([0.8, 1.5])) for load in loads])
    # the table of inputs between whose rows the effort is a cubic
    assert np.abs(-run["friction.a.effort"] - parts[:, 0]).max() < 1e-5
    assert np.abs(0.5 * run["friction.b.effort"] - parts[:, 1]).max() < 1e-5


def test_joints_of_a_loop_share_a_load_that_comes_and_goes(tmp_path):
    """Iterations ask for states in which the joints cannot all be at rest: what these leave must not stay."""
    exact, friction = SliderCrank(0.2, 0.5, 9.81), {"crank": 0.3, "rod": 0.5, "slider": 6.0}
    robot = written(tmp_path, exact.text(0.7, friction))
    run = parflex.simulate(
        robot, None, 0.6, effort={"crank": lambda t: 1.1 * np.sin(9 * t)}, start={"pose": {"crank": 0.7}}, step=1e-3
    )
    assert run.status == "ok" and np.ptp(run["q.crank"]) < STILL
    ways = exact.ways(0.7)
    most = np.abs(ways) * list(friction.values())
    loads = exact.load(0.7) + 1.1 * np.sin(9 * run.t)
    assert 3 * most[0] < np.abs(loads).max() < most.sum()
    parts = np.array([shared(load, most) for load in loads])
    found = np.array([-run[f"friction.{name}.effort"] * way for name, way in zip(NAMES, ways, strict=True)]).T
    assert np.abs(found - parts).max() < 1e-5  # as above


def test_a_loop_that_starts_at_a_dead_centre_meets_the_friction_there(tmp_path):
    """The slider does not move with the crank at first, and its friction holds nothing."""
    exact, friction = SliderCrank(0.2, 0.5, 0.0), {"slider": 1.0}
    robot = written(tmp_path, exact.text(0.0, friction))
    run = parflex.simulate(
        robot, None, 0.5, effort={"crank": 0.9}, start={"pose": {"crank": 0.0}}, method="gauss6", step=1e-3
    )
    ways = exact.travelled(run["q.crank"])[:, 2]
    assert run["q.crank"][-1] > 1.0
    assert np.abs(run["work.loss"] - ways).max() < 1e-8
    gained = exact.energy(run["q.crank"], run["qd.crank"]) - 0.9 * run["q.crank"] + ways
    assert np.abs(gained).max() < 1e-8


FOUR_BAR = """
format = 1
name = "four-bar"
motion = "planar"
gravity = [0, {gravity!r}, 0]
end_effector = "end"
[[frame]]
name = "crank"
joint = "revolute"
actuated = true
start = {first!r}
inertia = {{ mass = 1.0, centre = [{a2!r}, 0, 0], about_centre = [0, 0, 0.01] }}
{crank}
[[frame]]
name = "coupler"
parent = "crank"
joint = "revolute"
mdh = {{ d = {a!r} }}
start = {second!r}
inertia = {{ mass = 1.5, centre = [{b2!r}, 0, 0], about_centre = [0, 0, 0.03] }}
{coupler}
[[frame]]
name = "rocker"
joint = "revolute"
place = {{ position = [{d!r}, 0, 0] }}
start = {third!r}
inertia = {{ mass = 1.2, centre = [{c2!r}, 0, 0], about_centre = [0, 0, 0.02] }}
{rocker}
[[point]]
name = "end"
frame = "coupler"
position = [{b!r}, 0, 0]
[[point]]
name = "rocker-end"
frame = "rocker"
position = [{c!r}, 0, 0]
[[closure]]
between = ["end", "rocker-end"]
joint = "revolute"
"""


def four_bar(rng, tmp_path):
    """A random one whose loop closes, with friction in some joints; the robot, the friction and the angle."""
    while True:
        a, b, c, d = (float(one) for one in rng.uniform(0.2, 0.7, 4))
        first = float(rng.uniform(-3, 3))
        corner = np.array([a * np.cos(first), a * np.sin(first)])
        reach = np.hypot(d - corner[0], corner[1])
        if abs(b - c) < 0.9 * reach and reach < 0.9 * (b + c) and abs(a - d) > 0.05:
            break
    lean = np.arctan2(-corner[1], d - corner[0]) + np.arccos((b**2 + reach**2 - c**2) / (2 * b * reach))
    tip = corner + b * np.array([np.cos(lean), np.sin(lean)])
    chosen = rng.permutation(3)[: rng.integers(1, 4)]
    friction = {("crank", "coupler", "rocker")[k]: float(rng.uniform(0.05, 1.2)) for k in chosen}
    rubs = {name: f"friction = {{ coulomb = {friction[name]!r} }}" if name in friction else ""
            for name in ("crank", "coupler", "rocker")}  # fmt: skip
    text = FOUR_BAR.format(
        gravity=float(-rng.choice([0.0, 9.81])), first=first, second=float(lean - first),
        third=float(np.arctan2(tip[1], tip[0] - d)), a=a, b=b, c=c, d=d, a2=a / 2, b2=b / 2, c2=c / 2, **rubs,
    )  # fmt: skip
    return written(tmp_path, text), friction, first


def compare(tmp_path, seed, time):
    """A run in which joints stick and one with friction that is smooth over a small width, row by row."""
    rng = np.random.default_rng(seed)
    robot, friction, angle = four_bar(rng, tmp_path)
    speed, pull, w = float(rng.choice([0.0, 5.0, -5.0])), float(rng.uniform(0, 2.5)), float(rng.uniform(2, 10))
    given = {"effort": {"crank": lambda t: pull * np.sin(w * t)}, "out_step": 1e-3,
             "start": {"pose": {"crank": angle}, "velocity": {"crank": speed}}}  # fmt: skip
    run = parflex.simulate(robot, None, time, **given)
    smooth = parflex.simulate(robot, None, time, friction_width=1e-4, check_width=False, **given)
    assert run.status == smooth.status == "ok"
    # a width of 1e-4 rad/s lets joints at rest creep by as much in a second, and start anew so much beside
    assert np.abs(run["q.crank"] - smooth["q.crank"]).max() < 2e-3
    ways = {name: np.abs(np.diff(run[f"q.{name}"])).sum() for name in friction}
    lost = sum(value * ways[name] for name, value in friction.items())
    # rows cut the corners of ways that turn back between them
    assert run["work.loss"][-1] == pytest.approx(lost, rel=1e-3, abs=1e-4)
    for name, value in friction.items():
        effort, rate = run[f"friction.{name}.effort"], run[f"qd.{name}"]
        moving = np.abs(rate) > 1e-8
        assert np.allclose(effort[moving], -value * np.sign(rate[moving]), rtol=1e-12)
        assert (np.abs(effort) <= value * (1 + 1e-7)).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_four_bars_move_as_with_friction_that_is_smooth(tmp_path, seed):
    compare(tmp_path, seed, 0.3)


@pytest.mark.verify
@pytest.mark.parametrize("seed", range(3, 40))
def test_many_four_bars_move_as_with_friction_that_is_smooth(tmp_path, seed):
    compare(tmp_path, seed, 0.8)


@pytest.mark.parametrize("held", [50.0, 3.0])
def test_a_joint_passes_its_dead_centre_while_another_one_is_held(tmp_path, held):
    """Of two freedoms one is held by friction: a rocker of the loop that is left turns back, and is not held."""
    a, b, c, d, first = 0.3, 0.5, 0.45, 0.6, 1.2
    text = FOUR_BAR.format(
        gravity=0.0, first=first, second=-0.8533042162338116, third=1.6175742245901439, a=a, b=b, c=c, d=d, a2=a / 2,
        b2=b / 2, c2=c / 2, crank="", coupler="", rocker="friction = { coulomb = 0.3 }",
    )  # fmt: skip
    arm = f"""
[[frame]]
name = "arm"
joint = "revolute"
place = {{ position = [-0.1, 0, 0] }}
start = 0
inertia = {{ mass = 1, about_centre = [0, 0, 0.02] }}
friction = {{ coulomb = {held!r} }}
[[frame]]
name = "crank"
parent = "arm"
place = {{ position = [0.1, 0, 0] }}
"""
    robot = written(tmp_path, text.replace('[[frame]]\nname = "crank"\n', arm.lstrip("\n")))
    start = {"pose": {"arm": 0.0, "crank": first}, "velocity": {"arm": 0.0, "crank": 6.0}}
    run = parflex.simulate(robot, None, 1.0, start=start, method="gauss6", step=5e-4)
    turned = np.flatnonzero(np.diff(np.sign(run["qd.rocker"])))
    assert run.status == "ok" and len(turned) >= 2
    lost = held * np.abs(np.diff(run["q.arm"])).sum() + 0.3 * np.abs(np.diff(run["q.rocker"])).sum()
    assert run["work.loss"][-1] == pytest.approx(lost, rel=1e-4)  # rows cut corners
    assert run.summary["energy_balance_error"] < 1e-7
    still = np.abs(run["qd.arm"]) < 1e-7  # the angle to 1e-13; rates of independent joints leave more near 0.4 s
    assert still.all() if held == 50.0 else 0.02 < still.mean() < 0.98
    rests = [one for one in run.summary["sticks"] if one["joint"] == "rocker"]
    assert rests == [] and np.allclose(np.abs(run["friction.rocker.effort"]), 0.3)


WEDGE = """
format = 1
name = "wedge"
motion = "planar"
gravity = [0, 0, 0]
[[frame]]
name = "a"
joint = "prismatic"
place = { rotation = [0, 1.5707963267948966, 0] }
actuated = true
friction = { coulomb = 1.0 }
inertia = { mass = 1 }
[[frame]]
name = "c"
joint = "prismatic"
place = { rotation = [0, 1.5707963267948966, 0] }
actuated = true
inertia = { mass = 1 }
[[frame]]
name = "b"
joint = "prismatic"
place = { rotation = [0, 1.5707963267948966, 0] }
friction = { coulomb = 1.0 }
inertia = { mass = 1e-9 }
[[coupling]]
name = "g"
joint = "b"
terms = { a = 1.0, c = SLOPE }
"""


@pytest.mark.parametrize(("slope", "told"), [(0.5, False), (0.1, False), (1e-3, True), (1e-5, True), (1e-7, False)])
def test_joints_at_rest_whose_rates_are_nearly_one_are_told(tmp_path, slope, told):
    """`b` goes as `a` and a little as `c`: whether both hold `c` goes by what their rates differ in."""
    robot = written(tmp_path, WEDGE.replace("SLOPE", repr(slope)))
    run = parflex.simulate(robot, None, 0.01, effort={"a": 0.0, "c": 0.5 * slope})
    assert any("are nearly one" in text for text in run.summary["warnings"]) == told
    if not told:
        assert abs(run["q.a"][-1]) < STILL
