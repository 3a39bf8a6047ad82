"""Cables that drums or motors wind: against Lagrange's equations, closed forms, and a potential written here."""

from functools import cache
from itertools import combinations

import casadi as ca
import numpy as np
import pytest
from support.catalogue import CATALOGUE
from support.comparison import largest, nearby_states, positions
from support.coupled_robots import saddle
from support.oracles.energy import EnergyModel
from support.oracles.reader import read_robot
from support.robots import load_robot, write_robot

import parflex
from parflex.simulation.diagnostics import cable_warnings

LEGS = {"lower_left": (-1, -1), "upper_left": (-1, 1), "lower_right": (1, -1), "upper_right": (1, 1)}
HOME = np.hypot(1.12 - 0.15, 1.05)
STIFF = 3e4
TIGHT = 1e-10  # systems of condition up to 1e4 in double precision


@cache
def load(stiffness=None):
    return parflex.load("planar-cable", settings=stiffness and {"legs.coupling.winding.stiffness": stiffness})


def tensions(result):
    return np.array([result.elements[f"{leg}.cable"]["force"] for leg in LEGS])


def at_drums(drums):
    return {"x": 0, "y": 0, "theta": 0} | {f"{leg}.drum": drum for leg, drum in zip(LEGS, drums, strict=True)}


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
    robot, rng, worst = load(), np.random.default_rng(4), 0.0
    oracle = EnergyModel(read_robot(CATALOGUE / "planar-cable.toml"))
    back = [robot.rates.index(name) for name in oracle.coordinates]
    for state in nearby_states(robot, 4, 2):
        at = state.configuration
        effort = {motor: float(rng.uniform(0, 3)) for motor in robot.motors}
        found = parflex.forward_dynamics(robot, at, dict(list(state.velocity.items())[:3]), effort)
        qdd, multipliers = saddle(oracle, at, found.rates, effort)
        tension = -multipliers[-4:]
        errors = (found.accelerations - qdd) / largest(qdd), (tensions(found) - tension) / largest(tension)
        worst = max(worst, *map(largest, errors))
        energies = oracle.energy(positions(at), found.rates[back])
        assert tuple(parflex.energies(at, found.rates)) == pytest.approx(energies, rel=1e-11)
        assert any("push" in warning for warning in found.warnings) == bool((tension < 0).any())
    figure.below("planar cable robot: accelerations and tensions against Lagrange", worst, TIGHT)


def test_spare_motors_keep_all_cables_taut_with_the_smallest_internal_efforts():
    """With one spare motor internal efforts are one number: the smallest that leaves no tension below zero."""
    robot, rng = load(), np.random.default_rng(5)
    for pose in ("home", "left", "low"):
        motion = {"acceleration": dict(zip(("x", "y", "theta"), rng.uniform(-4, 4, 3), strict=True))}
        found = parflex.inverse_dynamics(robot, pose, **motion)
        tension = tensions(found)
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


def test_eight_cables_have_the_least_tensions_that_hold_a_body_in_space():
    """Against the quadratic program over all tensions, solved by its conditions for each set of cables that hang."""
    robot = load_robot("eight-cables")
    pose = {"x": 0.3, "y": 0.2, "z": 0.1, "rx": 0.1, "ry": -0.05, "rz": 0.2}
    found = parflex.inverse_dynamics(robot, pose, acceleration=dict.fromkeys(pose, 0.5))
    tension = np.array([found.elements[leg]["force"] for leg in robot.motors])
    frames = parflex.frames(robot, pose)
    (p, R), columns = frames["platform"], []
    for leg in robot.motors:
        end = frames[f"platform.{leg}"].position
        pull = frames[f"eye-{leg}"].position - end
        pull /= np.linalg.norm(pull)
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
    element = rest.partition("[[legs.element]]")[2].partition("[[legs.coupling]]")[0]
    driven = element.replace('kind = "cable"\n', 'kind = "cable"\nactuated = true\n')
    text = f"{head}[[legs.element]]{driven}[poses.home]\nx = 0\ny = 0\ntheta = 0\n"
    robot = parflex.load(write_robot(tmp_path, text))
    assert robot.motors == [f"{leg}.cable" for leg in LEGS]
    found, drums = parflex.inverse_dynamics(robot), parflex.inverse_dynamics(load())
    for name, effort in found.efforts.items():
        assert -effort == pytest.approx(found.elements[name]["force"], abs=1e-9)
        assert -effort == pytest.approx(drums.elements[name]["force"], abs=1e-9)


def potential(drums):
    """Energy of platform and elastic cables over x, y, theta, and the tensions, with the drums held."""
    x = ca.SX.sym("x", 3)
    pairs = zip(LEGS.values(), drums, strict=True)
    stretch = [length(x[0], x[1], x[2], side) - (HOME - 0.035 * drum) for side, drum in pairs]
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
    pose = at_drums(drums)
    rest = parflex.equilibrium(robot, pose)
    assert rest.configuration.q[:3] == pytest.approx(q, abs=1e-9)
    still = tensions(parflex.forward_dynamics(robot, rest.configuration))
    assert still == pytest.approx(tension.ravel(), rel=1e-6, abs=1e-6)
    modes = parflex.natural_frequencies(robot, pose)
    error = largest(modes.frequencies / expected - 1)
    figure("planar cable robot: frequencies under preload against the second derivatives of its energy", error, 1e-8)
    assert error < 1e-8
    if drums[0] < 0:
        assert tension.ravel()[[0, 2]] == pytest.approx([0, 0]) and modes.frequencies[0] < 1.5  # it swings


def test_a_slack_cable_does_nothing():
    drums = (-0.3, 0.08, 0.055, 0.09)
    found = parflex.forward_dynamics(load(STIFF), at_drums(drums))
    slope = np.array(potential(drums)(np.zeros(3))[0]).ravel()
    assert found.accelerations[:3] == pytest.approx(-slope / [5, 5, 0.1], rel=1e-9)
    assert found.elements["lower_left.cable"]["force"] == pytest.approx(0, abs=1e-9) and not found.warnings


WOUND = {"name": "w", "joint": "cable", "terms": {"drum": -0.1}, "stiffness": 9, "backlash": 0.1}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "neither elastic nor driven.*couple it to a drum"),
        (
            {"element.0.actuated": True, "element.0.stiffness": 5, "element.0.rest": 1},
            "an actuated cable cannot be elastic",
        ),
        ({"coupling": [WOUND | {"joint": "drum", "terms": {"cable": -5}}]}, 'joint = "cable"'),
        ({"coupling": [WOUND]}, "no backlash"),
    ],
)
def test_cables_that_nothing_winds_or_that_would_push_are_refused(settings, words):
    with pytest.raises(parflex.RobotFileError, match=words):
        load_robot("hung-on-cable", settings=settings)


def test_arrays_have_the_efforts_of_names():
    robot, rng = load(), np.random.default_rng(6)
    at = parflex.configure(robot, "left")
    motion = dict(zip(("x", "y", "theta"), rng.uniform(-4, 4, 3), strict=True))
    named = parflex.inverse_dynamics(robot, at, acceleration=motion)
    found = parflex.inverse_dynamics(robot, at.q, np.zeros(robot.nv), named.accelerations)
    assert found == pytest.approx(list(named.efforts.values()), abs=1e-9)


@pytest.mark.verify
def test_a_run_keeps_its_cables_taut():
    run = parflex.simulate(load(), "circle", 0.06, step=2e-3, check_width=False, method="rk4")
    tension = np.array([run.columns[f"element.{leg}.cable.force"] for leg in LEGS])
    assert not run.summary["warnings"] and tension.min() > -1e-9 and tension.max() > 10
    assert tension.min(axis=0) == pytest.approx(0, abs=1e-6)  # the least internal efforts: one cable just hangs


def test_runs_tell_of_cables_that_push():
    columns = {"t": np.array([0.0, 0.1, 0.2]), "element.lower_left.cable.force": np.array([3.0, -1.0, -4.0])}
    (said,) = cable_warnings(load(), columns)
    assert "'lower_left.cable' pulls only, but would have to push from t = 0.1 s on, at most with 4 N" in said.text
    columns["element.lower_left.cable.force"][2] = np.nan  # as in the last row of a run that failed
    assert "at most with 1 N" in cable_warnings(load(), columns)[0].text


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
def test_linear_models_tell_of_cables_that_push(ask):
    """With a preload that slackens them, and under a force that lifts what a cable carries."""
    (said,) = ask(load(), servo=30.0, preload={"lower_left.drum": -1.0}).warnings
    assert all(f"'{leg}.cable' with" in said for leg in LEGS) and "would have to push here" in said
    assert not ask(load(), servo=30.0, preload={"lower_left.drum": 3.0}).warnings
    lift = load_robot("lift-on-cable")
    assert not ask(lift, servo=1e4).warnings
    (said,) = ask(lift, servo=1e4, wrench={"load": [0.0, 80.0, 0.0]}).warnings
    assert f"'cable' with {80 - 3 * 9.81:.4g} N" in said


def test_linear_models_have_the_internal_efforts_of_the_inverse_model():
    """What keeps cables taut also turns with them: the stiffness is that of a preload that states it."""
    robot, pose = load(), {"x": -0.3, "y": 0.2, "theta": 0.1}
    wanted = parflex.inverse_dynamics(robot, pose)
    bent = parflex.deflection(robot, pose, servo=30.0)
    assert bent.efforts == pytest.approx(wanted.efforts, abs=1e-12)
    forces = [[one["force"] for one in each.elements.values()] for each in (bent, wanted)]
    assert forces[0] == pytest.approx(forces[1], abs=1e-9)
    model = parflex.linear_model(robot, pose, servo=30.0)
    stated = {"lower_left.drum": wanted.internal["efforts"]["lower_left.drum"]}
    told = parflex.linear_model(robot, pose, servo=30.0, preload=stated)
    assert pytest.approx(told.K, rel=1e-9, abs=1e-9 * np.abs(told.K).max()) == model.K
    assert model.about == "equilibrium" and model.loading.internal["chosen_by"] == "least norm, taut cables"
    assert (
        model.warnings == bent.warnings and "internal efforts of the motors keep the cables taut" in model.warnings[0]
    )
    for words in ({"about": "undeformed"}, {"about": "equilibrium"}, {"wrench": {"platform": [1.0, 0.0, 0.0]}}):
        sagged = parflex.deflection(robot, pose, servo=30.0, **words)  # servos alone hold it, and two cables push
        assert len(sagged.warnings) == 1 and "would have to push here" in sagged.warnings[0]
        assert np.abs(sagged.frames["platform"]).max() > 1e-4
