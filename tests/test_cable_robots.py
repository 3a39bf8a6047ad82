"""Cables that drums or motors wind: against Lagrange's equations, closed forms, and a potential written here."""

from __future__ import annotations

import os
from functools import cache
from itertools import combinations

import casadi as ca
import numpy as np
import pytest
from conftest import CATALOGUE
from support.comparison import largest, nearby_states, order_of, positions, written
from support.oracles.energy import EnergyModel
from support.oracles.reader import read_robot

import parflex
from parflex import RobotFileError
from parflex.models.dynamics.spare_motors import read_sharing
from parflex.models.dynamics.taut_cables import driven_cables
from parflex.simulation.inputs.spare_motions import SpareMotors
from parflex.simulation.run_checks import cable_warnings

LEGS = {"lower_left": (-1, -1), "upper_left": (-1, 1), "lower_right": (1, -1), "upper_right": (1, 1)}
HOME = np.hypot(1.12 - 0.15, 1.05)
STIFF = 3e4
TIGHT = 1e-10  # systems of condition up to 1e4 in double precision


@cache
def load(stiffness=None):
    settings = {"legs.coupling.winding.stiffness": stiffness} if stiffness else None
    return parflex.load("planar-cable", settings=settings)


@cache
def lagrange():
    return EnergyModel(read_robot(CATALOGUE / "planar-cable.toml"))


def length(x, y, theta, side):
    """Distance of the eye in a corner from its end of the platform."""
    end = ca.vertcat(x + side[0] * 0.15 * ca.cos(theta), y + side[0] * 0.15 * ca.sin(theta))
    return ca.norm_2(end - ca.vertcat(side[0] * 1.12, side[1] * 1.05))


def test_drums_wind_what_the_closed_form_says():
    for pose in ("home", "left", {"x": 0.5, "y": -0.4, "theta": -0.3}):
        q = positions(parflex.configure(load(), pose))
        for leg, side in LEGS.items():
            expected = float(length(*(q[f"platform.{word}"] for word in ("x", "y", "theta")), side))
            assert q[f"{leg}.cable"] == pytest.approx(expected, abs=1e-13)
            assert q[f"{leg}.drum"] == pytest.approx((HOME - expected) / 0.035, abs=1e-11)


def test_accelerations_tensions_and_energies_are_those_of_lagrange(figure):
    robot, oracle, rng, worst = load(), lagrange(), np.random.default_rng(4), 0.0
    order = order_of(robot, oracle)
    back = np.argsort(order)
    for state in nearby_states(robot, 4, 2):
        at, named = state.configuration, positions(state.configuration)
        effort = {motor: float(rng.uniform(0, 3)) for motor in robot.actuated_names}
        given = dict(list(state.velocity.items())[:3])
        found = parflex.forward_dynamics(robot, at, given, effort)
        M, c = oracle.mass_matrix_and_bias(named, found.rates[back])
        A, bias = oracle.closure_jacobian(named, found.rates[back])
        force = np.zeros(len(M))
        for motor, value in effort.items():
            force[oracle.coordinates.index(motor)] = value
        whole = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
        solved = np.linalg.solve(whole, np.concatenate([force - c, -bias]))
        qdd, tension = solved[: len(M)][order], -solved[-4:]
        ours = [found.elements[f"{leg}.cable"]["force"] for leg in LEGS]
        worst = max(
            worst, largest(found.accelerations - qdd) / largest(qdd), largest(ours - tension) / largest(tension)
        )
        assert parflex.energies(at, found.rates) == pytest.approx(oracle.energy(named, found.rates[back]), rel=1e-11)
        assert any("push" in warning for warning in found.warnings) == bool((tension < 0).any())
    figure("planar cable robot: accelerations and tensions against Lagrange", worst, TIGHT)
    assert worst < TIGHT


def test_spare_motors_keep_all_cables_taut_with_the_smallest_internal_efforts():
    """With one spare motor internal efforts are one number: the smallest that leaves no tension below zero."""
    robot, rng = load(), np.random.default_rng(5)
    for pose in ("home", "left", "low"):
        motion = {"acceleration": dict(zip(("x", "y", "theta"), rng.uniform(-4, 4, 3), strict=True))}
        found = parflex.inverse_dynamics(robot, pose, **motion)
        tension = np.array([found.elements[f"{leg}.cable"]["force"] for leg in LEGS])
        torque = np.array(list(found.efforts.values()))
        inertia = 7850 * np.pi * 0.035**2 * 0.04 * 0.035**2 / 2 + 64e-4
        drums = [robot.tree.rate_names.index(f"{leg}.drum") for leg in LEGS]
        assert torque == pytest.approx(0.035 * tension + inertia * found.accelerations[drums], rel=1e-9, abs=1e-9)
        assert found.internal["chosen_by"] == "least norm, taut cables" and not found.warnings[1:]
        assert tension.min() == pytest.approx(0, abs=1e-9)  # least norm would push: then one cable just hangs
        z = np.array(list(found.internal["efforts"].values()))
        assert (torque - z) @ z == pytest.approx(0, abs=1e-9)  # what is internal is normal to what moves the robot
        again = parflex.forward_dynamics(robot, pose, effort=found.efforts).accelerations
        assert again == pytest.approx(found.accelerations, abs=1e-8)
    limits = dict.fromkeys(robot.actuated_names, (0.3, 5.0))
    bounded = parflex.inverse_dynamics(robot, "left", effort_limit=limits)
    assert min(bounded.efforts.values()) == pytest.approx(0.3) and bounded.elements["lower_left.cable"]["force"] > 8
    pushed = parflex.inverse_dynamics(robot, preload={"lower_left.drum": 0.1})
    assert "would have to push here: 'lower_left.cable' with 13.84 N" in pushed.warnings[-1]
    turned = parflex.inverse_dynamics(robot, {"x": 0, "y": 0, "theta": 1.3})  # all cables turn it the same way there
    assert turned.warnings[1] == "no internal efforts keep all cables taut at this pose and motion"


def test_eight_cables_have_the_least_tensions_that_hold_a_body_in_space(tmp_path):
    """Against the quadratic program over all tensions, solved by its conditions for each set of cables that hang."""
    ends = [(sx * 0.3, sy * 0.3, sz * 0.2) for sx in (1, -1) for sy in (1, -1) for sz in (1, -1)]
    eyes = [(2.0 * ex / 0.3, 1.6 * -ey / 0.3, -1.5 * ez / 0.2) for ex, ey, ez in ends]
    legs = {f"c{k}": pair for k, pair in enumerate(zip(eyes, ends, strict=True))}
    points = ", ".join(f"{leg} = {list(end)}" for leg, (_, end) in legs.items())
    text = 'format = 1\nname = "eight"\n[platform]\nstart = [0, 0, 0]\n'
    text += f"inertia = {{ mass = 20, about_centre = [1, 1.2, 1.5] }}\npoints = {{ {points} }}\n"
    for leg, (eye, _) in legs.items():
        text += f'[[point]]\nname = "eye-{leg}"\nframe = "base"\nposition = {list(eye)}\n'
        text += f'[[element]]\nname = "{leg}"\nkind = "cable"\nactuated = true\n'
        text += f'between = ["eye-{leg}", "platform.{leg}"]\n'
    robot = parflex.load(written(text, tmp_path))
    pose = {"x": 0.3, "y": 0.2, "z": 0.1, "rx": 0.1, "ry": -0.05, "rz": 0.2}
    found = parflex.inverse_dynamics(robot, pose, acceleration=dict.fromkeys(pose, 0.5))
    tension = np.array([found.elements[leg]["force"] for leg in legs])
    frames = parflex.frames(robot, pose)
    p, R = frames["platform"]
    columns = []
    for leg in legs:
        end = frames[f"platform.{leg}"][0]
        pull = (frames[f"eye-{leg}"][0] - end) / np.linalg.norm(frames[f"eye-{leg}"][0] - end)
        columns.append([*pull, *np.cross(end - p, pull)])
    W = np.array(columns).T
    turn = R @ np.diag([1, 1.2, 1.5]) @ R.T @ np.full(3, 0.5)
    w = np.array([10, 10, 10 + 20 * 9.81, *turn])
    assert W @ tension == pytest.approx(w, abs=1e-8)
    best = None
    for hanging in (set(c) for n in range(3) for c in combinations(range(8), n)):
        pulling = [k for k in range(8) if k not in hanging]
        t = np.zeros(8)
        t[pulling] = np.linalg.lstsq(W[:, pulling], w, rcond=None)[0]
        if t.min() > -1e-9 and np.abs(W @ t - w).max() < 1e-9 and (best is None or t @ t < best @ best):
            best = t
    assert best is not None and np.sum(best == 0) == 2  # two cables hang
    assert tension == pytest.approx(best, abs=1e-7) and found.internal["chosen_by"] == "least norm, taut cables"


def test_a_motor_on_the_cable_itself_has_minus_its_tension_as_effort(tmp_path):
    text = (CATALOGUE / "planar-cable.toml").read_text(encoding="utf-8")
    head, _, rest = text.partition("[[legs.frame]]")
    cable = 'name = "cable"\nkind = "cable"\n'
    bare = (
        rest.partition("[[legs.element]]")[2]
        .partition("[[legs.coupling]]")[0]
        .replace(cable, f"{cable}actuated = true\n")
    )
    path = written(f"{head}[[legs.element]]{bare}[poses.home]\nx = 0\ny = 0\ntheta = 0\n", tmp_path)
    robot = parflex.load(path)
    assert robot.actuated_names == driven_cables(robot) == [f"{leg}.cable" for leg in LEGS]
    found, drums = parflex.inverse_dynamics(robot), parflex.inverse_dynamics(load())
    for name, effort in found.efforts.items():
        assert -effort == pytest.approx(found.elements[name]["force"], abs=1e-9)
        assert -effort == pytest.approx(drums.elements[name]["force"], abs=1e-9)


# -- elastic cables ------------------------------------------------------------------------------------------


def potential(drums):
    """Energy of platform and elastic cables over x, y, theta, and the tensions, with the drums held."""
    x = ca.SX.sym("x", 3)
    stretch = [
        length(x[0], x[1], x[2], side) - (HOME - 0.035 * drum) for side, drum in zip(LEGS.values(), drums, strict=True)
    ]
    V = 5 * 9.81 * x[1] + sum(STIFF / 2 * ca.fmax(s, 0) ** 2 for s in stretch)
    tension = ca.vertcat(*(STIFF * ca.fmax(s, 0) for s in stretch))
    return ca.Function("V", [x], [ca.gradient(V, x), ca.hessian(V, x)[0], tension])


@pytest.mark.parametrize("drums", [(0.05, 0.08, 0.055, 0.09), (0.4, 0.45, 0.4, 0.42), (-0.3, 0.05, -0.2, 0.04)])
def test_frequencies_grow_with_preload_and_fall_where_cables_hang_loose(drums, figure):
    V, q = potential(drums), np.zeros(3)
    for _ in range(60):
        slope, tangent, tension = (np.array(part) for part in V(q))
        q = q - 0.7 * np.linalg.solve(tangent, slope).ravel()
    expected = np.sort(np.sqrt(np.linalg.eigvals(np.diag([0.2, 0.2, 10]) @ tangent))) / (2 * np.pi)
    robot = load(STIFF)
    pose = {"x": 0, "y": 0, "theta": 0} | {f"{leg}.drum": drum for leg, drum in zip(LEGS, drums, strict=True)}
    rest = parflex.equilibrium(robot, pose)
    assert rest.configuration.q[:3] == pytest.approx(q, abs=1e-9)
    still = parflex.forward_dynamics(robot, rest.configuration).elements
    assert [still[f"{leg}.cable"]["force"] for leg in LEGS] == pytest.approx(tension.ravel(), rel=1e-6, abs=1e-6)
    modes = parflex.natural_frequencies(robot, pose)
    error = largest(modes.frequencies / expected - 1)
    figure("planar cable robot: frequencies under preload against the second derivatives of its energy", error, 1e-8)
    assert error < 1e-8
    if drums[0] < 0:
        assert tension.ravel()[[0, 2]] == pytest.approx([0, 0]) and modes.frequencies[0] < 1.5  # it swings


def test_a_slack_cable_does_nothing():
    robot = load(STIFF)
    pose = {"x": 0, "y": 0, "theta": 0} | {
        f"{leg}.drum": d for leg, d in zip(LEGS, (-0.3, 0.08, 0.055, 0.09), strict=True)
    }
    found = parflex.forward_dynamics(robot, pose)
    slope = np.array(potential((-0.3, 0.08, 0.055, 0.09))(np.zeros(3))[0]).ravel()
    assert found.accelerations[:3] == pytest.approx(-slope / [5, 5, 0.1], rel=1e-9)
    assert found.elements["lower_left.cable"]["force"] == pytest.approx(0, abs=1e-9) and not found.warnings


# -- doors ---------------------------------------------------------------------------------------------------

TWO = """format = 1
name = "hung"
motion = "planar"
gravity = [0, -9.81, 0]
[platform]
start = [0, -1, 0]
inertia = { mass = 2, about_centre = [0, 0, 0.1] }
[[frame]]
name = "drum"
joint = "revolute"
actuated = true
inertia = { mass = 1, about_centre = [0, 0, 0.01] }
[[element]]
name = "cable"
kind = "cable"
between = ["base", "platform"]
"""


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("", "neither elastic nor driven.*couple it to a drum"),
        ("actuated = true\nstiffness = 5\nrest = 1\n", "a cable with a motor does not stretch"),
        ('[[coupling]]\nname = "w"\njoint = "drum"\nterms = { cable = -5 }\nstiffness = 9\n', 'joint = "cable"'),
        (
            '[[coupling]]\nname = "w"\njoint = "cable"\nterms = { drum = -0.1 }\nstiffness = 9\nbacklash = 0.1\n',
            "no backlash",
        ),
    ],
)
def test_cables_that_nothing_winds_or_that_would_push_are_refused(more, words, tmp_path):
    with pytest.raises(RobotFileError, match=words):
        parflex.load(written(TWO + more, tmp_path))


def test_arrays_have_the_efforts_of_names():
    robot, rng = load(), np.random.default_rng(6)
    at = parflex.configure(robot, "left")
    motion = dict(zip(("x", "y", "theta"), rng.uniform(-4, 4, 3), strict=True))
    named = parflex.inverse_dynamics(robot, at, acceleration=motion)
    found = parflex.inverse_dynamics(robot, at.q, np.zeros(robot.nv), named.accelerations)
    assert found == pytest.approx(list(named.efforts.values()), abs=1e-9)


def test_efforts_of_rows_of_a_run_are_those_of_the_inverse_model():
    """From efforts at which cables push, those that cause the same motion and keep them taut."""
    robot, rows = load(), []
    spare = SpareMotors(robot, robot, read_sharing(robot))
    for pose in ("left", "low"):
        wanted = parflex.inverse_dynamics(robot, pose, acceleration={"x": 2.0, "theta": -1.0})
        tau = np.array(list(wanted.efforts.values()))
        internal = np.array(list(wanted.internal["efforts"].values()))
        pushing = parflex.forward_dynamics(robot, pose, effort=dict(zip(robot.motors, tau - internal, strict=True)))
        tension = [pushing.elements[name]["force"] for name in driven_cables(robot)]
        rows.append((wanted.configuration.q, tau - internal, tension, tau))
        assert min(tension) < -1
    q, given, tension, tau = (np.array(column) for column in zip(*rows, strict=True))
    assert spare.taut(q, given, tension) == pytest.approx(tau, abs=1e-9)


@pytest.mark.verify
@pytest.mark.skipif(not os.environ.get("PARFLEX_VERIFY"), reason="compiles a time loop: make verify")
def test_a_run_keeps_its_cables_taut():
    run = parflex.simulate(load(), "circle", 0.06, step=2e-3, check_width=False, method="rk4")
    tension = np.array([run.columns[f"element.{leg}.cable.force"] for leg in LEGS])
    assert not run.summary["warnings"] and tension.min() > -1e-9 and tension.max() > 10


def test_runs_tell_of_cables_that_push():
    columns = {"t": np.array([0.0, 0.1, 0.2]), "element.lower_left.cable.force": np.array([3.0, -1.0, -4.0])}
    (said,) = cable_warnings(load(), columns)
    assert "'lower_left.cable' pulls only, but would have to push from t = 0.1 s on, at most with 4 N" in said
    columns["element.lower_left.cable.force"][2] = np.nan  # as in the last row of a run that failed
    assert "at most with 1 N" in cable_warnings(load(), columns)[0]


LIFT = """format = 1
name = "lift"
motion = "planar"
gravity = [0, -9.81, 0]
end_effector = "load"
[[frame]]
name = "load"
joint = "prismatic"
place = { rotation = ["-pi/2", 0, 0] }
start = -0.8
inertia = { mass = 3 }
[[element]]
name = "cable"
kind = "cable"
between = ["base", "load"]
actuated = true
"""


@pytest.mark.parametrize(
    "ask",
    [
        parflex.deflection,
        parflex.linear_model,
        lambda *a, **k: parflex.cartesian_stiffness(*a, **k).model,
        lambda *a, **k: parflex.natural_frequencies(*a, **k).model,
        lambda robot, **k: parflex.state_space(robot, robot.motors[:1], robot.motors[:1], **k).model,
    ],
)
def test_linear_models_tell_of_cables_that_push(ask, tmp_path):
    """With a preload that slackens them, and under a force that lifts what a cable carries."""
    (said,) = ask(load(), servo=30.0, preload={"lower_left.drum": -1.0}).warnings
    assert all(f"'{leg}.cable' with" in said for leg in LEGS) and "would have to push here" in said
    assert not ask(load(), servo=30.0, preload={"lower_left.drum": 3.0}).warnings
    lift = parflex.load(written(LIFT, tmp_path))
    assert not ask(lift, servo=1e4).warnings
    (said,) = ask(lift, servo=1e4, wrench={"load": [0.0, 80.0, 0.0]}).warnings
    assert f"'cable' with {80 - 3 * 9.81:.4g} N" in said


def test_linear_models_have_the_internal_efforts_of_the_inverse_model():
    """What keeps cables taut also turns with them: the stiffness is that of a preload that states it."""
    robot, pose = load(), {"x": -0.3, "y": 0.2, "theta": 0.1}
    wanted = parflex.inverse_dynamics(robot, pose)
    bent = parflex.deflection(robot, pose, servo=30.0)
    assert bent.efforts == pytest.approx(wanted.efforts, abs=1e-12)
    assert [one["force"] for one in bent.elements.values()] == pytest.approx(
        [one["force"] for one in wanted.elements.values()], abs=1e-9
    )
    model = parflex.linear_model(robot, pose, servo=30.0)
    stated = {"lower_left.drum": wanted.internal["efforts"]["lower_left.drum"]}
    told = parflex.linear_model(robot, pose, servo=30.0, preload=stated)
    assert pytest.approx(told.K, rel=1e-9, abs=1e-9 * np.abs(told.K).max()) == model.K
    assert model.about == "equilibrium" and model.loading.internal["chosen_by"] == "least norm, taut cables"
    assert model.warnings == bent.warnings and "internal efforts keep its cables taut" in model.warnings[0]
    for words in ({"about": "undeformed"}, {"about": "equilibrium"}, {"wrench": {"platform": [1.0, 0.0, 0.0]}}):
        sagged = parflex.deflection(robot, pose, servo=30.0, **words)  # servos alone hold it, and two cables push
        assert len(sagged.warnings) == 1 and "would have to push here" in sagged.warnings[0]
        assert np.abs(sagged.frames["platform"]).max() > 1e-4
