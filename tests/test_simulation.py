"""Robots in motion keep the laws: energy, momentum, closures, powers; motions and controllers do what they say."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import CATALOGUE
from scipy.integrate import cumulative_trapezoid
from support.free_robots import FREE, momenta, moving_start, robot

import parflex
from parflex import InputError
from parflex.models.forms.in_pieces.pieces import pieces
from parflex.simulation.inputs.function_samples import Span
from parflex.simulation.inputs.motor_motions import motion_of


def drift(run) -> float:
    total = run["energy.total"]
    return float(np.abs(total - total[0]).max() / run["energy.kinetic"].max())


# -- laws ----------------------------------------------------------------------------------------------


@pytest.mark.few
@pytest.mark.parametrize("name", ["5r", "space", "two-bodies", "satellite"])
def test_rigid_robots_keep_their_energy_at_the_order_of_the_method(name, figure):
    of = robot(name)
    start = moving_start(of)
    steps = (4e-3, 2e-3)
    runs = [
        parflex.simulate(of, None, 0.2, start=start, step=h, out_step=0.02, without=FREE, tolerance=1e-14)
        for h in steps
    ]
    drifts = [drift(run) for run in runs]
    fine = parflex.simulate(of, None, 0.2, start=start, step=1e-3, out_step=0.02, without=FREE, method="gauss6")
    figure(f"energy drift of {name} by gauss6", drift(fine), 1e-9)
    assert drifts[1] < 1e-12 or drifts[0] / drifts[1] == pytest.approx(16, rel=0.35)  # 2^4, and the next term
    assert drift(fine) < 1e-9
    assert max(run["closure_error"].max() for run in (*runs, fine)) < 1e-12


def test_a_robot_that_bends_keeps_its_energy(figure):
    of = robot("dualemps")
    start = moving_start(of)
    drifts = []
    for method, step in (("gauss4", 4e-5), ("gauss4", 2e-5), ("gauss6", 2e-5)):
        run = parflex.simulate(of, None, 0.1, start=start, method=method, step=step, without=FREE, tolerance=1e-15)
        assert run["closure_error"].max() < 1e-12
        drifts.append(drift(run))
    figure("energy drift of dualemps by gauss6", drifts[2], 1e-9)
    assert drifts[0] / drifts[1] > 10  # order four; the fastest mode, 20 kHz, is only just resolved
    assert drifts[2] < 1e-9


@pytest.mark.parametrize("name", ["satellite", "bending-satellite"])
def test_a_floating_robot_keeps_its_momentum(name, figure):
    of = robot(name)
    frames = [frame.name for frame in of.description.frame]
    run = parflex.simulate(
        of, None, 0.3, start=moving_start(of), method="gauss6", step=2.5e-4, out_step=5e-3, without=FREE,
        frames=frames, tolerance=1e-14,
    )  # fmt: skip
    P, H = momenta(of, run)
    assert np.linalg.norm(P[0]) > 0.5 and np.linalg.norm(H[0]) > 0.05
    lost = max(np.abs(P - P[0]).max() / np.linalg.norm(P[0]), np.abs(H - H[0]).max() / np.linalg.norm(H[0]))
    figure(f"momentum lost by {name}", float(lost), 1e-8)
    assert lost < 1e-8  # steps of gauss6 along turning axes
    assert np.ptp(run["hull.orientation_x"]) > 0.01  # it turns


@pytest.mark.few
@pytest.mark.parametrize("given", ["motion", "effort", "wrench"])
def test_energy_grows_by_the_work_of_inputs_less_the_losses(given):
    of = robot("dualemps")
    inputs = {
        "motion": {"motion": "square"},
        "effort": {"effort": {"11": lambda t: 40 * np.sin(9 * t), "21": 20.0}},
        "wrench": {"wrench": {"P": ([0.0, 0.5], [[3, 1, 0, 0, 0, 0.2], [-4, 2, 0, 0, 0, 0.1]])}},
    }[given]
    if given == "wrench":
        inputs["wrench"]["P"] = tuple(np.array(part) for part in inputs["wrench"]["P"])
    run = parflex.simulate(of, time=0.5, step=1e-4, out_step=1e-4, friction_width=0.01, check_width=False, **inputs)
    assert np.ptp(run["energy.total"]) > 1e-4
    assert run["power.loss"].min() >= 0 and run["power.loss"].max() > 1e-4
    # the loop integrates both powers with its own weights: what is left is the error of its steps
    assert run.summary["energy_balance_error"] < 1e-6 * np.ptp(run["energy.total"])
    work = run["work.input"] - run["work.loss"]
    error = np.abs(run["energy.total"] - run["energy.total"][0] - work).max()
    assert error == pytest.approx(run.summary["energy_balance_error"], rel=1e-3)
    for word in ("input", "loss"):  # the columns of power are the rates of those of work, which start from rest
        sums = cumulative_trapezoid(run[f"power.{word}"], run.t, initial=0.0)
        assert np.abs(sums - run[f"work.{word}"]).max() < 1e-2 * np.ptp(run[f"work.{word}"])  # rows 0.1 ms apart


def test_every_method_gives_the_same_motion():
    of = robot("5r")
    start = moving_start(of)
    ends = []
    for method, step in (
        ("gauss4", 1e-3),
        ("gauss6", 4e-3),
        ("rk4", 1e-3),
        ("dopri5", 1e-3),
        ("generalized-alpha", 1e-4),
    ):
        run = parflex.simulate(of, None, 0.2, start=start, method=method, step=step, out_step=0.02, without=FREE)
        ends.append([run["tip.x"][-1], run["tip.vy"][-1]])
    assert np.abs(np.array(ends[1:4]) - ends[0]).max() < 1e-7
    assert np.abs(np.array(ends[4]) - ends[0]).max() < 1e-4  # of second order


# -- inputs --------------------------------------------------------------------------------------------


def test_the_square_is_a_trapezoid_smoothed_by_a_box():
    motion = motion_of(robot("dualemps"), "square", Span(25.0))
    t = np.linspace(-0.1, 13.0, 131_001)
    h = t[1] - t[0]
    velocity = np.zeros((len(t), 2))
    for edge, (motor, way) in enumerate([(0, 0.2), (1, 0.2), (0, -0.2), (1, -0.2)]):
        s = t - 3.125 * edge
        velocity[:, motor] += way / 1.47 * np.interp(s, [0, 0.3, 1.47, 1.77], [0, 1, 1, 0])
    mean = np.cumsum(velocity, axis=0) * h
    width = round(0.03 / h)
    smooth = (mean[width:] - mean[:-width]) / 0.03
    inside = slice(1000, 120_000)
    assert np.abs(motion.pieces.at(t[width:], 1)[inside] - smooth[inside]).max() < 1e-3 * 0.14  # the sums err by h
    assert motion.pieces.at([0.0, 3.1, 6.2, 9.3, 12.4])[:, 0] == pytest.approx([0.02, 0.22, 0.22, 0.02, 0.02])
    assert np.allclose(motion.pieces.at(13.0), motion.pieces.at(0.5), atol=1e-12)  # period 12.5 s


@pytest.mark.verify
@pytest.mark.parametrize(("name", "ramp"), [("circle", 0.5), ("circle-harsh", 0.02)])
def test_the_rigid_robot_follows_the_circle_at_the_arc_speed(name, ramp):
    of = robot("dualemps")
    rigid = of.locking(of.tree.elastic)
    motion = motion_of(of, name, Span(4.0))
    q = motion.start
    for t in np.linspace(0.0, 4.0, 23):
        q = rigid.assemble(dict(zip(of.actuated_names, map(float, motion.pieces.at(t)), strict=True)), q)
        here = parflex.configure(rigid).__class__(rigid, q)
        P = parflex.frames(rigid, here)["P"][0]
        u = min(t / ramp, 1.0)
        way = 0.2 * (ramp * (2.5 * u**4 - 3 * u**5 + u**6) + max(t - ramp, 0.0))
        wanted = [0.28 + 0.1 * np.cos(way / 0.1), 0.90 + 0.1 * np.sin(way / 0.1), 0.0]
        assert np.abs(P - wanted).max() < 1e-10  # quintics between knots
        elbow, P_1 = parflex.frames(rigid, here)["15"][0], parflex.frames(rigid, here)["11"][0]
        assert elbow[1] > P_1[1]  # the knee is on the +y side


def test_a_driven_rigid_robot_needs_the_efforts_of_the_inverse_model():
    of = robot("5r")
    amplitude = np.array([0.2, -0.1])
    base = np.array([of.home[of.tree.position_names.index(name)] for name in of.actuated_names])

    def motion(t):
        return base + amplitude * np.sin(3 * t), 3 * amplitude * np.cos(3 * t), -9 * amplitude * np.sin(3 * t)

    run = parflex.simulate(of, motion, 0.5, step=5e-3, out_step=5e-3, without=["friction"])
    assert run["closure_error"].max() < 1e-12
    for row in (7, 55):
        names = of.actuated_names
        parts = [dict(zip(names, map(float, part), strict=True)) for part in motion(run.t[row])]
        efforts = parflex.inverse_dynamics(of, *parts, without=["friction"]).efforts
        for name in names:
            assert run[f"effort.{name}"][row] == pytest.approx(efforts[name], rel=1e-7)


def test_knots_of_a_file_are_followed(tmp_path):
    of = robot("5r")
    names = of.actuated_names
    base = [of.home[of.tree.position_names.index(name)] for name in names]
    t = np.linspace(0, 0.4, 41)
    rows = np.stack([t, base[0] + 0.1 * t**2, base[1] - 0.2 * t**3], axis=1)
    file = tmp_path / "knots.csv"
    np.savetxt(file, rows, delimiter=",", header=f"t,{names[0]},{names[1]}", comments="")
    run = parflex.simulate(of, str(file), 0.4, step=0.01, out_step=0.01, without=FREE)
    assert np.abs(run[f"q.{names[1]}"] - rows[:, 2]).max() < 1e-12
    assert np.abs(run[f"qd.{names[0]}"] - 0.2 * t).max() < 1e-9  # the spline is exact for cubics
    for text, words in (("t,a\n0,1\n", "missing"), ("t,x\n0,a\n", "table of numbers"), ("", "table of numbers")):
        file.write_text(text)
        with pytest.raises(InputError, match=words):
            parflex.simulate(of, str(file), 0.4)


def test_a_pd_controller_holds_a_robot_against_gravity():
    of = robot("5r")
    controller = parflex.PD(stiffness=2000.0, damping=60.0, sample_time=2e-3)
    run = parflex.simulate(of, None, 2.0, controller=controller, step=1e-3, without=["friction"])
    assert len(run.t) == 1001  # a row for each sample
    held = parflex.inverse_dynamics(of, without=["friction"]).efforts
    for name in of.actuated_names:
        sag = run[f"q.{name}"][-1] - run[f"q.{name}"][0]
        assert run[f"effort.{name}"][-1] == pytest.approx(held[name], rel=0.02)  # the pose sags a little
        assert sag == pytest.approx(-held[name] / 2000.0, rel=0.02)
    steps = np.diff(run["effort.left.1"])
    assert np.abs(steps[-50:]).max() < 1e-4


def test_a_controller_is_a_pure_function_with_a_memory():
    of = robot("5r")

    class Counting:
        sample_time = 0.01
        seen: list

        def __init__(self):
            self.seen = []

        def __call__(self, sensed, memory):
            self.seen.append((sensed.time, memory))
            return [0.0, 0.0], (memory or 0) + 1

    controller = Counting()
    parflex.simulate(of, None, 0.05, controller=controller, without=FREE)
    assert [memory for _, memory in controller.seen] == [None, 1, 2, 3, 4]
    assert [time for time, _ in controller.seen] == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])


def test_a_run_from_the_equilibrium_stays_there():
    of = parflex.load("dualemps", settings={"gravity": [0, -9.81, 0]})
    names = of.actuated_names
    base = [of.home[of.tree.position_names.index(name)] for name in names]
    still = {"t": np.array([0.0, 1.0]), **{name: np.full(2, value) for name, value in zip(names, base, strict=True)}}
    sizes = {}
    for start in ("rest", "equilibrium"):
        run = parflex.simulate(of, still, 0.01, start=start, step=1e-4, without=FREE)
        sizes[start] = float(np.ptp(run["P.y"]))
    assert sizes["rest"] > 1e-9
    assert sizes["equilibrium"] < 1e-6 * sizes["rest"]


def test_the_width_of_friction_is_said_with_what_it_does():
    of = robot("5r")
    run = parflex.simulate(of, None, 0.2, friction_width=2e-3)
    effect = run.summary["friction"]
    assert effect["width"] == 2e-3
    assert 0 < effect["half_width_moves"]["metres"] < 1e-3
    assert run["power.loss"].max() > 0
    free = parflex.simulate(of, None, 0.2, without=["friction"])
    assert "friction" not in free.summary
    assert np.abs(free["power.loss"]).max() == 0


@pytest.mark.verify
def test_the_motion_does_not_depend_on_which_beam_closes_the_loop(tmp_path, figure):
    text = (CATALOGUE / "dualemps.toml").read_text(encoding="utf-8")
    for old, new in (  # the hinge of the knee belongs to the other leg, so the other beam is the dependent one
        ('name = "15"\nparent = "14"\n', 'name = "15"\nparent = "14"\njoint = "revolute"\nstart = 0.9\n'),
        (
            'name = "16"\nparent = "15"\nmdh = { d = "step" }',
            'name = "16"\nparent = "14"\nmdh = { d = "reach + step" }',
        ),
        ('name = "25"\nparent = "24"\njoint = "revolute"\n', 'name = "25"\nparent = "24"\n'),
        ("start = -0.9\nfriction = { viscous = 0.005, coulomb = 0.01 }\n", ""),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "other.toml").write_text(text, encoding="utf-8")
    robots = parflex.load("dualemps"), parflex.load(tmp_path / "other.toml")
    beams = [{of.tree.rate_names[k].split(".")[0] for k in pieces(of).partition.dependent} for of in robots]
    assert beams == [{"13"}, {"23"}]
    options = {"method": "gauss6", "step": 2e-4, "tolerance": 1e-13, "without": ["friction"]}
    first, second = (parflex.simulate(of, "circle-harsh", 0.3, **options) for of in robots)
    worst = max(float(np.abs(first[name] - second[name]).max()) for name in ("P.x", "P.y"))
    figure("motion with another dependent beam, m", worst, 1e-10)
    assert worst < 1e-10


def test_what_is_left_out_is_out_of_energies_and_losses_of_a_run_too():
    run = parflex.simulate(parflex.load("four-bar"), None, 0.2, pose={"crank": 1.0}, without=["springs"])
    assert np.abs(run["power.loss"]).max() == 0.0  # its dampers are left out with the springs
    assert np.abs(run["energy.elastic"]).max() == 0.0
    assert np.abs(run["energy.total"] - run["energy.total"][0]).max() < 1e-9  # J, of some joules: the step is fine
