"""Steps end where inputs bend: impulses of short pulses, and a pendulum whose cart moves behind a rest."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import parflex
from parflex.simulation.step_lengths.halved_steps import error_warnings

BLOCK = """
format = 1
name = "block"
motion = "planar"
gravity = [0, 0, 0]
[[frame]]
name = "block"
joint = "prismatic"
actuated = true
place = { rotation = [0, "pi/2", 0] }
inertia = { mass = 2 }
"""
CART = """
format = 1
name = "cart"
motion = "planar"
gravity = [0, -9.81, 0]
[[frame]]
name = "cart"
joint = "prismatic"
actuated = true
place = { rotation = [0, "pi/2", 0] }
inertia = { mass = 1 }
[[frame]]
name = "arm"
parent = "cart"
joint = "revolute"
place = { rotation = [0, "-pi/2", 0] }
start = "-pi/2"
inertia = { mass = 1, centre = [0.25, 0, 0], about_centre = [0, 0, 0.02] }
[poses.home]
cart = 0
arm = "-pi/2"
"""
MIDDLE = 0.33337  # s: at no row and no step


@pytest.fixture(scope="module")
def block(tmp_path_factory):
    path = tmp_path_factory.mktemp("block") / "block.toml"
    path.write_text(BLOCK)
    return parflex.load(path)


def _pulse(half, channels=1):
    """A triangle of 1 N s."""
    values = np.zeros((5, channels))
    values[2, 0] = 1 / half
    return [0, MIDDLE - half, MIDDLE, MIDDLE + half, 1], values if channels > 1 else values[:, 0]


@pytest.mark.parametrize("half", [2e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("asked", [{"tolerance": 1e-8}, {}, {"step": 0.01, "out_step": 0.05}], ids=str)
def test_a_pulse_in_a_table_gives_its_impulse_however_short_it_is(block, half, asked):
    by_effort = parflex.simulate(block, None, 1.0, effort={"block": _pulse(half)}, **asked)
    by_wrench = parflex.simulate(block, None, 1.0, wrench={"block": _pulse(half, 3)}, **asked)
    for run in (by_effort, by_wrench):
        # x = v (1 - t) with v = 1 N s / 2 kg; linear pieces are added up exactly by every method: rounding is left
        assert run["q.block"][-1] == pytest.approx(0.5 * (1 - MIDDLE), rel=1e-10)
        assert run.summary["warnings"] == []


def test_a_pendulum_swings_as_its_cart_moves_behind_a_rest(tmp_path):
    (tmp_path / "cart.toml").write_text(CART)
    begin, duration, way = 0.5, 0.02, 0.1
    knots = {"joints": [{"cart": 0}, {"cart": 0}, {"cart": way}], "times": [0, begin, begin + duration]}
    robot = parflex.load(tmp_path / "cart.toml")
    run = parflex.simulate(robot, knots | {"law": "quintic"}, 1.0, tolerance=1e-8)

    def swings(t, y):
        u = (t - begin) / duration
        push = way * (60 * u - 180 * u**2 + 120 * u**3) / duration**2 if 0 < u < 1 else 0.0
        return [y[1], (-0.25 * 9.81 * np.cos(y[0]) + 0.25 * np.sin(y[0]) * push) / (0.02 + 0.0625)]

    state = [-np.pi / 2, 0.0]
    for a, b in ((begin, begin + duration), (begin + duration, 1.0)):
        state = solve_ivp(swings, (a, b), state, rtol=1e-10, atol=1e-12, max_step=(b - a) / 20).y[:, -1]
    # a hundred steps or so of 1e-8 m each, at a typical length of 0.25 m and more
    assert run["q.arm"][-1] == pytest.approx(state[0], abs=1e-5)
    assert np.ptp(run["q.arm"]) > 0.5
    assert run.summary["steps"] < 200


def test_a_function_too_fast_for_fixed_steps_is_told_and_the_step_that_is_advised_follows_it(block):
    fast = {"block": lambda t: 10 * np.sin(2000 * np.pi * t)}
    exact = 5 / (2000 * np.pi) * 0.04
    run = parflex.simulate(block, None, 0.04, effort=fast)
    assert abs(run["q.block"][-1] / exact - 1) > 0.03
    (told,) = run.summary["warnings"]
    assert "the effort of 'block' changes too fast for steps of 0.0005 s" in told
    better = parflex.simulate(block, None, 0.04, effort=fast, step=float(told.split("a step of ")[1].split(",")[0]))
    assert better["q.block"][-1] == pytest.approx(exact, rel=2e-3)  # what an advised step may miss of an impulse
    assert better.summary["warnings"] == []
    slow = parflex.simulate(block, None, 0.04, effort={"block": lambda t: 10 * np.sin(200 * np.pi * t)})
    assert slow.summary["warnings"] == []


def test_an_error_of_a_frame_at_rest_is_told_without_a_share_of_its_way():
    still = {"P.x": np.zeros(3), "P.y": np.full(3, 1e-17), "P.theta": np.zeros(3)}
    error = {"frame": "P", "metres": 0.36, "radians": 0.0}
    (told,) = error_warnings(still, error, 1.0, True)
    assert "0.36 m (its way is 0 m)" in told and "a smaller tolerance" in told
    assert error_warnings(still, error | {"metres": 1e-12}, 1.0, True) == []


def test_a_table_that_bends_at_every_row_is_followed(block):
    t = np.arange(701) * 1e-3
    force = np.random.default_rng(1).normal(size=len(t))
    run = parflex.simulate(block, None, 0.7, effort={"block": (t, force)}, tolerance=1e-6, check_steps=False)
    speed = np.concatenate([[0], np.cumsum((force[1:] + force[:-1]) / 4 * 1e-3)])  # of 2 kg
    assert run["qd.block"] == pytest.approx(speed, abs=1e-12)  # linear pieces, each by steps of its own
