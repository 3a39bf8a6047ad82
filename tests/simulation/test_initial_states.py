"""Starts of runs: rates that closures and motors allow, bodies at rest as if brakes held joints, jumps of motions."""

from contextlib import nullcontext
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from support.cases import VERIFY
from support.comparison import order_of, positions
from support.modal_robots import lagrange, with_platform
from support.oracles.beam_robots import HEXAGON
from support.oracles.flexible_energy import FlexibleEnergyModel
from support.oracles.modal_data import invented
from support.oracles.reader import read_robot
from support.oracles.starting import after_impulse, least_elastic_rates
from support.robots import any_robot, file_of, load_robot

import parflex
from parflex import SingularError
from parflex.closure import mobility
from parflex.forces.forces import impulse_of_motors
from parflex.simulation.start import start_energy

SPEED = 150.0  # rad/s
ROD, SLIDER = 7870 * 0.008**2 * 0.30, 0.075552  # kg
# the extended rod turns about the slider's pin, which stands still: m l^2 / 3 times (speed l1 / l2)^2, and the crank
CRANK_ENERGY = 0.5 * (0.001 + 0.36 * 0.075**2) * SPEED**2
START_ENERGY = CRANK_ENERGY + 0.5 * ROD * 0.30**2 / 3 * (SPEED * 0.15 / 0.30) ** 2


def spinning(t):
    return [[SPEED * t], [SPEED], [0.0]]


def knots():
    t = np.linspace(0, 0.01, 11)
    return {"t": t, "crank": SPEED * t}


@pytest.mark.verify
def test_a_crank_led_at_speed_carries_a_straight_rod_with_it(figure):
    of = load_robot("slider-crank-beam")
    for motion in (spinning, knots(), "spin"):
        run = parflex.simulate(of, motion, 1e-4, step=1e-5, out_step=1e-5)
        assert run["energy.kinetic"][0] == pytest.approx(START_ENERGY, rel=1e-9)  # sums of a few dozen products
        assert run.summary["start_energy"]["kinetic"] == pytest.approx(START_ENERGY, rel=1e-9)
        assert run.summary["start_energy"]["elastic_rates"] < 1e-20 * START_ENERGY
        assert run.summary["start"] == "equilibrium"
        assert max(abs(run[f"qd.rod.{k}"][0]) for k in ("ux", "uy", "rz") if f"qd.rod.{k}" in run) < 1e-9
    assert pytest.approx(46.8, abs=0.05) == START_ENERGY
    figure("slider-crank led at 150 rad/s: kinetic energy at the start, J", float(run["energy.kinetic"][0]), None)


@cache
def pair(name: str):
    if name == "modes":  # a platform given by modes, on rigid legs
        modes = invented(HEXAGON, 4, seed=1)
        return with_platform(Path(mkdtemp()), "gough-stewart", modes), lagrange("gough-stewart", {"platform": modes})
    return any_robot(name), FlexibleEnergyModel(read_robot(file_of(name)))


def bent(of, rng, size=1e-3):
    """Closed positions of a robot whose bodies are bent at random."""
    tree = of.tree
    step = rng.uniform(-1, 1, tree.n) * np.where(np.isin(np.arange(tree.n), tree.elastic), size, 0.05)
    q, error = of.assembler.newton(tree.moved(of.home, step), of.free, list(of.closures.loops))
    assert error < 1e-12
    return parflex.Configuration(of, q)


def equations(of, oracle, here, qd):
    """Mass matrix and closures of the oracle at a pose, rates in its order, and that order."""
    order, named = order_of(of, oracle), positions(here)
    M, _ = oracle.mass_matrix_and_bias(named, np.zeros(len(order)), ("motor_inertia",))
    return M, oracle.closure_jacobian(named)[0], qd[np.argsort(order)], order


@pytest.mark.few
@pytest.mark.parametrize("name", ["slider-crank-beam", "dualemps", "gough-stewart-beams", "bending-satellite", "modes"])
def test_elastic_rates_at_the_start_are_those_of_the_equations_with_multipliers(name, figure):
    of, oracle = pair(name)
    elastic = [of.rates[k] for k in of.tree.elastic]
    rng, worst = np.random.default_rng(4), 0.0
    for _ in range(3):
        here = bent(of, rng)
        # a velocity of a flexible body, stated beside the motors: the others cannot all stand still
        stated = dict(zip(of.motors, rng.uniform(-1, 1, of.nu), strict=True)) | {elastic[0]: 0.05}
        qd = here.rates(stated)
        M, A, theirs, _ = equations(of, oracle, here, qd)
        ed, energy = least_elastic_rates(M, A, oracle.coordinates, stated, elastic)
        worst = max(worst, float(np.abs(ed - qd[list(of.tree.elastic)]).max() / np.abs(ed).max()))
        assert start_energy(here, qd)["elastic_rates"] == pytest.approx(energy, rel=1e-8)
        assert np.abs(A @ theirs).max(initial=0.0) < 1e-11
    figure(f"{name}: elastic rates at the start against multipliers, relative", worst, 1e-6)
    assert worst < 1e-6  # both solve systems with conditions of 1e8 or so


@pytest.mark.few("dualemps")
@pytest.mark.parametrize("name", ["dualemps", "navaro"])
def test_an_impulse_of_the_motors_balances_momenta(name, figure):
    of, oracle = pair(name)
    rng, worst = np.random.default_rng(8), 0.0
    for _ in range(3):
        here = bent(of, rng)
        before, wanted = here.motions @ rng.uniform(-1, 1, here.motions.shape[1]), rng.uniform(-1, 1, of.nu)
        after, push = impulse_of_motors(here, before, wanted)
        M, A, theirs, order = equations(of, oracle, here, before)
        given = dict(zip(of.motors, wanted, strict=True))
        expected = after_impulse(M, A, oracle.coordinates, given, theirs)[order]
        worst = max(worst, float(np.abs(after - expected).max() / np.abs(expected).max()))
        kinetic = [start_energy(here, qd)["kinetic"] for qd in (before, after)]
        work = push @ (before + after)[list(of.actuated)] / 2
        assert kinetic[1] - kinetic[0] == pytest.approx(work, rel=1e-9)
    figure(f"{name}: rates behind an impulse against multipliers, relative", worst, 1e-8)
    assert worst < 1e-8  # systems with conditions of 1e6 or so


def test_freedoms_without_a_motor_have_their_stated_velocity_or_none():
    of = load_robot("cart-pendulum")

    def prescribed(t):
        return [[0.3 + 2.0 * t], [2.0], [0.0]]

    options = {"step": 1e-3, "out_step": 1e-3}
    run = parflex.simulate(of, prescribed, 0.002, **options)
    assert (run["qd.cart"][0], run["qd.bob"][0]) == (2.0, 0.0)
    assert run.summary["start_energy"]["kinetic"] == pytest.approx(0.5 * 2.5 * 4)
    run = parflex.simulate(of, prescribed, 0.002, start={"velocity": {"bob": -1.5}}, **options)
    assert (run["qd.cart"][0], run["qd.bob"][0], run["q.cart"][0]) == (2.0, -1.5, 0.3)
    for start, word in (
        ({"velocity": {"cart": 1.0}}, "the motion begins with 2"),
        ({"pose": {"cart": 0.5}}, "the motion begins at 0.3"),
        ({"q": [0.3, 0.0], "qd": [1.0, 0.0]}, "do not allow these rates"),
    ):
        with pytest.raises(parflex.InputError, match=word):
            parflex.simulate(of, prescribed, 0.002, start=start, **options)


def test_velocities_may_be_stated_beside_how_the_robot_is_bent():
    of = parflex.load("dualemps", settings={"gravity": [0, -9.81, 0]})
    start = {"velocity": {"11": 0.2}}
    bent_one, straight = (
        parflex.simulate(of, None, 2e-4, start=start | positions, step=1e-4, out_step=1e-4, check_width=False)
        for positions in ({"positions": "equilibrium"}, {})
    )
    assert bent_one.summary["start"] == "equilibrium" and straight.summary["start"] == "given"
    assert abs(bent_one["q.13.uy"][0]) > 1e-9 and abs(straight["q.13.uy"][0]) < 1e-15
    assert bent_one["qd.11"][0] == pytest.approx(0.2) == straight["qd.11"][0]
    for wrong in ({"positions": "bent"}, {"q": of.home, "pose": "home"}):
        with pytest.raises(parflex.InputError):
            parflex.simulate(of, None, 2e-4, start=wrong)


def test_a_state_that_the_loops_forbid_is_refused_and_rounding_is_not():
    of = parflex.load("5r")
    here = parflex.configure(of)
    qd = here.J @ np.array([0.4, -0.3])
    rough = {"q": np.round(here.q, 7), "qd": np.round(qd, 7)}
    run = parflex.simulate(of, None, 0.01, start=rough)
    assert run["closure_error"][0] < 1e-12
    assert [run[f"qd.{name}"][0] for name in of.rates] == pytest.approx(list(qd), abs=1e-6)
    for start, word in (
        ({"q": here.q, "qd": qd + 0.1}, "do not allow"),
        ({"q": here.q + 0.1, "qd": qd}, "do not close the loop"),
    ):
        with pytest.raises(parflex.InputError, match=word):
            parflex.simulate(of, None, 0.01, start=start)


def test_a_controlled_robot_starts_as_fast_as_its_reference():
    of, controller = load_robot("cart-pendulum"), parflex.PD(100.0, 10.0, 1e-3)
    run = parflex.simulate(of, lambda t: [[2.0 * t], [2.0], [0.0]], 0.003, controller=controller)
    assert run["qd.cart"][0] == 2.0 and run["effort.cart"][0] == 0.0  # nothing to correct yet
    of = parflex.load("3rrr")
    run = parflex.run_control(of, lambda t: {"x": 0.05 * t, "y": 0.0, "theta": 0.0}, "ctc", time=0.1)
    wanted = parflex.configure(of, {"x": 0.0, "y": 0.0, "theta": 0.0}).rates({"x": 0.05, "y": 0.0, "theta": 0.0})
    found = [run.columns[f"qd.{name}"][0] for name in of.motors]
    assert found == pytest.approx([wanted[of.rates.index(name)] for name in of.motors], rel=1e-6)
    assert run.columns["error"].max() < 1e-5  # from rest it would lag by millimetres


def test_rows_at_the_end_of_a_motion_that_still_has_speed_are_those_before_it():
    of = load_robot("slider-crank-beam", settings={"frame.rod.beam.elements": 1})
    run = parflex.simulate(of, "spin", 0.104, step=1e-5, out_step=1e-3)
    assert list(run["qd.crank"][98:103]) == [SPEED, SPEED, SPEED, 0.0, 0.0]
    assert list(run["q.crank"][100:]) == pytest.approx([15.0] * 5, abs=1e-14)
    alone = parflex.simulate(of, "spin", 0.1, step=1e-5, out_step=1e-3)  # ends where the motion does
    assert alone.summary["velocity_jumps"] == []
    for name in alone:  # the same row, whether or not something comes behind it
        assert alone[name][-1] == pytest.approx(run[name][100], rel=1e-9, abs=1e-9), name
    assert [(j["time"], j["joint"], j["jump"]) for j in run.summary["velocity_jumps"]] == [(0.1, "crank", -SPEED)]
    assert any("'crank' by -150 at t = 0.1 s" in warning for warning in run.summary["warnings"])
    # energy leaves by the work of the impulse alone: what the loop integrates accounts for it
    assert run["energy.total"][101] < run["energy.total"][100] - 5
    assert run.summary["energy_balance_error"] < 1e-3  # the rod rings at tens of kilohertz behind it


def test_a_pendulum_on_a_cart_swings_by_what_the_impulse_gives_it():
    of = load_robot("cart-pendulum")
    run = parflex.simulate(of, "jerky", 0.3, step=1e-4, out_step=1e-4)
    jumps = run.summary["velocity_jumps"]
    v1, v2 = 0.2 / 0.1337, -0.1 / 0.1337
    assert [jump["time"] for jump in jumps] == pytest.approx([0.1337, 0.2674])
    assert [jump["jump"] for jump in jumps] == pytest.approx([v2 - v1, -v2])
    ml, inertia, k = 0.5 * 0.4, 0.01 + 0.5 * 0.4**2, 1337  # 0.1337 s is a row, the last before the jump
    assert run["qd.cart"][k] == pytest.approx(v1) and run["qd.cart"][k + 1] == pytest.approx(v2)
    # angular momentum of the bob about its pin is kept: inertia w - m l sin(q) v, with q from the x axis
    q, step = run["q.bob"][k], 1e-4
    expected = run["qd.bob"][k] + ml * np.sin(q) * (v2 - v1) / inertia
    gained = -ml * 9.81 * np.cos(q) / inertia * step
    assert run["qd.bob"][k + 1] == pytest.approx(expected + gained, abs=2e-3)  # one step of swinging behind it
    assert run.summary["energy_balance_error"] < 1e-10


@pytest.mark.few("jerky-gauss4", "ramped-generalized")
@pytest.mark.parametrize(("method", "order", "steps"), [("gauss4", 4, (8e-3, 4e-3)), ("rk4", 4, (4e-3, 2e-3)),
                                                        ("generalized-alpha", 2, (2e-3, 1e-3))])  # fmt: skip
@pytest.mark.parametrize("motion", ["jerky", "ramped"])
def test_steps_end_where_a_motion_jumps_so_that_the_order_is_kept(method, order, steps, motion):
    of = load_robot("cart-pendulum")
    exact = parflex.simulate(of, motion, 0.32, step=5e-4, out_step=0.032, method="gauss6", tolerance=1e-14)
    errors, balances = [], []
    for h in steps:
        run = parflex.simulate(of, motion, 0.32, step=h, out_step=0.032, method=method, tolerance=1e-14)
        errors.append(np.abs(run["q.bob"] - exact["q.bob"]).max())
        balances.append(run.summary["energy_balance_error"])
    # 2^order, and steps of uneven length about the jumps
    assert 0.5 * 2**order < errors[0] / errors[1] < 2 * 2**order
    assert 0.4 * 2**order < balances[0] / balances[1] < 3 * 2**order
    assert exact.summary["energy_balance_error"] < 1e-11  # sixth order, to rounding


def test_steps_that_are_chosen_by_the_error_end_at_jumps_too():
    of = load_robot("cart-pendulum")
    exact = parflex.simulate(of, "jerky", 0.32, step=5e-4, out_step=0.032, method="gauss6", tolerance=1e-14)
    run = parflex.simulate(of, "jerky", 0.32, out_step=0.032, method="dopri5", tolerance=1e-10)
    assert np.abs(run["q.bob"] - exact["q.bob"]).max() < 1e-8  # some dozen steps, each off by the tolerance
    assert run.summary["energy_balance_error"] < 1e-8
    jumps = exact.summary["velocity_jumps"]
    assert run.summary["velocity_jumps"] == [{k: pytest.approx(v) for k, v in jump.items()} for jump in jumps]


def test_a_function_whose_velocity_jumps_is_cut_where_it_does():
    of = load_robot("cart-pendulum")

    def stopping(t, at=0.01234567):
        return (2.0 * t, 2.0, 0.0) if t < at else (2.0 * at, 0.0, 0.0)

    run = parflex.simulate(of, stopping, 0.03, step=1e-3, breaks=[0.01234567])
    (jump,) = run.summary["velocity_jumps"]
    assert jump["time"] == pytest.approx(0.01234567, abs=1e-11) and jump["jump"] == -2.0
    assert np.abs(run["qd.cart"] - np.where(run.t < 0.01234567, 2.0, 0.0)).max() < 1e-12
    # right behind a sample
    small = parflex.simulate(of, lambda t: (5 + max(0.0, t - 0.01), float(t > 0.01), 0.0), 0.02, breaks=[0.01])
    assert [jump["jump"] for jump in small.summary["velocity_jumps"]] == [pytest.approx(1.0)]
    fast = parflex.simulate(of, lambda t: (np.sin(400 * t), 400 * np.cos(400 * t), -160000 * np.sin(400 * t)), 0.02)
    assert fast.summary["velocity_jumps"] == []  # fast, but smooth
    with pytest.raises(parflex.InputError, match="not the derivatives"):
        parflex.simulate(of, lambda t: (np.sin(t), 0.0, 0.0), 0.02)


def test_two_rows_of_a_table_at_one_time_are_a_jump():
    of = load_robot("cart-pendulum")
    t = np.array([0.0, 0.01, 0.02, 0.02, 0.03, 0.04])
    table = {"t": t, "cart": np.where(t < 0.021, 3 * t, 0.06 - (t - 0.02))}
    run = parflex.simulate(of, table, 0.05, step=1e-3)
    assert [jump["time"] for jump in run.summary["velocity_jumps"]] == pytest.approx([0.02, 0.04])
    assert [jump["jump"] for jump in run.summary["velocity_jumps"]] == pytest.approx([-4.0, 1.0])
    assert run["qd.cart"][[0, 20, 21, 40, 41]] == pytest.approx([3, 3, -1, -1, 0], abs=1e-9)
    with pytest.raises(parflex.InputError, match="position of 'cart' jumps by"):
        parflex.simulate(of, table | {"cart": table["cart"] + np.array([0, 0, 0, 0.1, 0.1, 0.1])}, 0.05)
    with pytest.raises(parflex.InputError, match="does not increase"):
        parflex.simulate(of, {"t": [0, 0.01, 0.01, 0.01, 0.02], "cart": np.zeros(5)}, 0.05)


STILL = 1e-9  # in metres and radians; Newton's method leaves 1e-12 of a typical length
SPRUNG = {"frame.arm.spring": {"stiffness": 60, "rest": 0.1}}
WEAK = {"frame.arm.spring": {"stiffness": 0.1, "rest": 1.5}, "frame.arm.start": 1.4}
SPATIAL = {"motion": "spatial", "gravity": [0, 0, -9.81], "frame.arm.place": {"rotation": ["pi/2", 0, 0.3]}}
HELD = {  # robot, its settings, pose, and which joints are held, of which some may go elsewhere
    "a pendulum": ("hung-beam", {}, {"arm": 0.5}, ["arm"]),
    "a pendulum at home": ("hung-beam", {"frame.arm.start": 1.1}, None, ["arm"]),
    "a pendulum level": ("hung-beam", {}, None, ["arm"]),
    "a pendulum nearly upside down": ("hung-beam", {}, {"arm": 1.5}, ["arm"]),
    "two pendulums": ("hung-beams", {}, {"arm": 0.3, "fore": -1}, ["arm", "fore"]),
    "a pendulum in space": ("hung-beam", SPATIAL, {"arm": 0.4}, ["arm"]),
    "a pendulum on a cart": ("beam-on-cart", {}, None, ["arm"]),
    "a loop": ("four-bar-of-beams", {}, None, ["crank"]),
    "a loop at a pose": ("four-bar-of-beams", {}, {"rocker": 1.2}, ["rocker"]),
    "a sprung arm at a pose": ("hung-beam", SPRUNG, {"arm": -0.6}, ["arm"]),
    "an upright arm on a weak spring": ("hung-beam", WEAK, None, ["arm"]),
    "an elastic gear at a pose": ("beam-on-gear", {}, {"motor": 0.0, "arm": 0.2}, ["arm"]),
}


@pytest.mark.few("an elastic gear at a pose", "a pendulum")
@pytest.mark.parametrize("case", HELD)
def test_joints_start_where_the_pose_puts_them_and_bodies_at_rest(case):
    """The proof is a second run: with a motor in every joint that was held, nothing moves."""
    name, settings, pose, held = HELD[case]
    of = load_robot(name, settings=settings)
    run = parflex.simulate(of, None, 1e-3, pose=pose)
    brakes = run.summary["start_held"]
    assert run.summary["start"] == "relaxed" and len(brakes) == len(held)
    there = parflex.configure(of, pose)
    for joint in held if pose else brakes:
        assert run[f"q.{joint}"][0] == there.q[of.coordinates.index(joint)]  # not moved at all
    braked = load_robot(name, settings=settings | {f"frame.{joint}.actuated": True for joint in brakes})
    q = np.array([run[f"q.{joint}"][0] for joint in of.coordinates])
    rest = parflex.configure(braked, q)
    motion = {motor: [rest.q[braked.coordinates.index(motor)]] * 2 for motor in braked.motors}
    kept = parflex.simulate(braked, {"t": [0.0, 0.01]} | motion, 0.01, start={"q": q}, out_step=1e-3, step=1e-3)
    assert max(np.ptp(kept[f"q.{joint}"]) for joint in braked.coordinates) < STILL
    assert max(abs(run[f"q.{n}"][0]) for n in of.coordinates if n.endswith("uy")) > 1e-6  # it is bent


def test_a_pendulum_sags_at_the_start_as_a_cantilever():
    run = parflex.simulate(load_robot("pendulum-beam"), None, 1e-3, pose={"arm": 0.0}, frames=["arm.tip"])
    load, EI = 2700 * 0.004 * 0.02 * 9.81, 70e9 * 0.02 * 0.004**3 / 12
    assert run["arm.tip.y"][0] == pytest.approx(-load * 0.4**4 / (8 * EI), rel=1e-4)  # small deflections: 1e-3 of it
    assert run["q.arm"][0] == 0.0 and run.summary["start_held"] == ["arm"]


def test_joints_that_springs_hold_settle_where_no_pose_is_given_and_loose_ones_need_no_brakes_where_they_hang():
    for of in (load_robot("hung-beam", settings=SPRUNG), load_robot("beam-on-gear")):
        run = parflex.simulate(of, None, 1e-3)
        assert run.summary["start"] == "equilibrium" and "start_held" not in run.summary
        rest = parflex.equilibrium(of).configuration.q[of.coordinates.index("arm")]
        assert run["q.arm"][0] == pytest.approx(rest, abs=STILL)
    for settings, angle in (({"gravity": [0, 0, 0]}, 0.5), ({}, -np.pi / 2)):
        run = parflex.simulate(load_robot("hung-beam", settings=settings), None, 1e-3, pose={"arm": angle})
        assert run.summary["start"] == "equilibrium" and run["q.arm"][0] == angle


def test_an_equilibrium_that_is_requested_tells_that_it_is_elsewhere_or_not_stable():
    of = load_robot("hung-beam")
    up = parflex.simulate(of, None, 1e-3, pose={"arm": np.pi / 2}, start="equilibrium")
    assert up["q.arm"][0] == pytest.approx(np.pi / 2, abs=STILL)
    assert "not stable" in " ".join(up.summary["warnings"])
    with pytest.raises(SingularError, match="'arm' is unstable at this pose"):
        parflex.simulate(of, None, 1e-3, pose={"arm": 1.2}, start="equilibrium")
    fallen = parflex.simulate(of, None, 1e-3, pose={"arm": -1.2}, start="equilibrium")
    assert fallen["q.arm"][0] == pytest.approx(-np.pi / 2, abs=STILL)
    assert "not at the specified pose: 'arm' is off by 0.371" in " ".join(fallen.summary["warnings"])
    down = parflex.simulate(of, None, 1e-3, pose={"arm": -1.565}, start="equilibrium")
    assert not [sentence for sentence in down.summary["warnings"] if "equilibrium" in sentence]


@pytest.mark.verify
def test_motors_stay_where_a_pose_of_joints_puts_them_and_hold_the_frame_at_a_pose_of_it():
    of = parflex.load("3rrr-flexible", settings={"gravity": [0, -9.81, 0]})
    where = parflex.configure(of, {"x": 0.02, "y": 0.01, "theta": 0.1})
    motors = {name: float(where.q[of.coordinates.index(name)]) for name in of.motors}
    run = parflex.simulate(of, None, 1e-3, pose=motors)
    assert [run[f"q.{name}"][0] for name in of.motors] == pytest.approx(list(motors.values()), abs=1e-12)
    assert run.summary["start"] == "equilibrium"
    held = parflex.simulate(of, None, 1e-3, pose={"x": 0.02, "y": 0.01, "theta": 0.1})
    assert held.summary["start"] == "held"
    assert abs(held["q." + of.motors[0]][0] - motors[of.motors[0]]) > 1e-8  # its bars are stiff


def test_a_start_beyond_the_buckling_load_says_that_it_is_not_stable():
    slender = {"sections.s.y": 0.006, "frame.arm.beam.length": 0.8, "frame.arm.beam.elements": 4}
    of, pose = load_robot("pendulum-beam", settings=slender), {"arm": np.pi / 2}
    for load, steady in ((-90.0, True), (-150.0, False)):  # Euler's load of the cantilever: pi^2 E I / (4 L^2) = 97 N
        wrench = {"arm.tip": [0.0, load, 0.0, 0.0, 0.0, 0.0]}
        with nullcontext() if steady else pytest.raises(SingularError, match=r"at 64.* % of them 'arm.rz' becomes un"):
            parflex.deflection(of, pose, ["arm.tip"], lock=["arm"], wrench=wrench)
        if VERIFY:  # seconds of compiling explicit steps
            run = parflex.simulate(of, None, 1e-4, pose=pose, wrench=wrench, method="rk4", step=1e-5, out_step=1e-4)
            assert steady != any("becomes unstable" in line for line in run.summary["warnings"])


SETS = 12 if VERIFY else 1
WELL = 300.0  # condition number of the block that gives the dependent rates


def sets_of(of, q, driven: bool, seed: int, count: int) -> list[list[str]]:
    """Random choices of independent rates, with the motors where they are led, that say all others well."""
    J = mobility.scaled_jacobian(of.closures, q)
    size, kept = of.mobility.freedoms(len(of.free)), list(of.actuated) if driven else []
    others = [int(k) for k in of.free if k not in kept]
    rng, found = np.random.default_rng(seed), []
    for _ in range(3000):
        chosen = {*kept, *(int(k) for k in rng.choice(others, size - len(kept), replace=False))}
        dependent = [k for k in of.free if k not in chosen]
        if mobility.condition(J[:, dependent], len(dependent)) < WELL and chosen not in found:
            found.append(chosen)
        if len(found) == count:
            break
    return [[of.rates[k] for k in sorted(chosen)] for chosen in found]


def turning(of, speed: float):
    """Motors that begin with speed and go on with it."""
    begin = [float(of.home[of.coordinates.index(name)]) for name in of.motors]
    rates = [speed * (-1) ** k for k in range(len(begin))]
    return lambda t: [[p + v * t for p, v in zip(begin, rates, strict=True)], rates, [0.0] * len(begin)]


def moving(name: str, folder: Path):
    """A robot, what moves it, and steps that resolve it."""
    if name == "slider-crank":  # planar, closed, bends
        of = load_robot("slider-crank-beam", settings={"frame.rod.beam.elements": 1})
        return of, {"motion": turning(of, 150.0), "time": 4e-3, "step": 4e-5}, True
    if name == "modal":  # spatial, closed, a platform given by modes
        of = with_platform(folder, "gough-stewart", invented(HEXAGON, 2, seed=1), [0, 0, -9.81])
        return of, {"motion": turning(of, 0.1), "time": 4e-3, "step": 2e-4}, True
    of = any_robot(name)
    here = parflex.configure(of)
    qd = here.motions @ np.random.default_rng(1).uniform(-0.5, 0.5, here.motions.shape[1])
    return of, {"start": {"q": here.q, "qd": qd}, "time": 0.08, "step": 4e-3}, False


@pytest.mark.few("slider-crank", "nested")
@pytest.mark.parametrize("name", ["slider-crank", "spatial-four-bar", "nested", "gough-stewart", "modal"])
def test_starts_are_equal_and_runs_within_the_error_of_halving_the_step_whatever_rates_are_independent(
    name, tmp_path, figure
):
    of, given, driven = moving(name, tmp_path)
    given |= {"without": ["friction"], "check_width": False, "tolerance": 1e-14, "out_step": given["time"] / 4}
    halved = given | {"step": given["step"] / 2}
    usual, fine = parflex.simulate(of, **given), parflex.simulate(of, **halved)
    columns = [key for key in usual if key.startswith(("q.", "qd."))]
    size = {key: max(float(np.abs(usual[key]).max()), 1e-9) for key in columns}

    def apart(one, other):
        return max(float(np.abs(one[key] - other[key]).max()) / size[key] for key in columns)

    scale = max(size[key] for key in columns if key.startswith("qd."))
    chosen = sets_of(of, np.array([usual[f"q.{key}"][0] for key in of.coordinates]), driven, 5, SETS)
    assert chosen
    for independent in chosen:
        run = parflex.simulate(of, independent=independent, **given)
        energies = [one.summary["start_energy"]["kinetic"] for one in (run, usual)]
        assert energies[0] == pytest.approx(energies[1], rel=1e-12)
        first = max(abs(run[key][0] - usual[key][0]) for key in columns)
        # dependent rates come out of a block whose condition is WELL at most
        assert first <= 1e-12 * max(1.0, scale), (independent, first)
        finer = parflex.simulate(of, independent=independent, **halved)
        # a method of fourth order errs by 16/15 of what halving the step changes; rounding of conditions up to WELL
        assert apart(run, usual) <= 1.2 * (apart(usual, fine) + apart(run, finer)) + 1e-9, independent
    figure(f"{name}: {len(chosen)} independent sets, first rows apart", float(first), 1e-12)
