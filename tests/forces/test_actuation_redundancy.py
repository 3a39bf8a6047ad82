"""More motors than freedoms: weights, preloads and limits of their efforts, in functions and in programs."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog
from support.catalogue import CATALOGUE
from support.command_line import answered
from support.oracles import sharing
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file
from support.states import Draws, State, random_states

import parflex
from parflex import InputError

EXACT = 1e-10  # rounding times the condition of the motors' rows (some hundreds) and of limits that act together
HERE = {"x": 0.03, "y": -0.02, "theta": 0.1}


@cache
def four() -> parflex.Robot:
    return load_robot("four-rrr")


@cache
def three() -> parflex.Robot:
    """With the second motor left out."""
    settings = {"actuation.three": {"actuated": ["leg1.1", "leg3.1", "leg4.1"]}}
    return load_robot("four-rrr", actuation="three", settings=settings)


@cache
def six() -> parflex.Robot:
    return parflex.load("3rrr", settings={"legs.frame.2.actuated": True})


def row(robot, table):
    return np.array([table[name] for name in robot.actuated_names])


def balances(name, count, seed):
    """Random states of a robot with rows and forces of Pinocchio, in the order of the motors."""
    robot, path = (four(), robot_file("four-rrr")) if name == "four-rrr" else (six(), CATALOGUE / "3rrr.toml")
    oracle, names = PinocchioTree(read_robot(path)), list(robot.tree.position_names)
    rng = np.random.default_rng(seed)
    for drawn in random_states(robot, count, seed, Draws(), spread=0.08):
        moving = [dict(zip(("x", "y", "theta"), rng.uniform(-size, size, 3), strict=True)) for size in (2, 20)]
        state = State(drawn.configuration, *moving)  # by the platform: motors would have to fit each other
        plain = parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration)
        q = dict(zip(names, state.configuration.q, strict=True))
        chosen = [robot.tree.rate_names.index(word) for word in state.configuration.independent_names]
        given = [{robot.tree.rate_names[k]: part[k] for k in chosen} for part in (plain.rates, plain.accelerations)]
        force, jacobian = oracle.forces(q, *given)
        motors = [oracle.coordinates.index(motor) for motor in robot.actuated_names]
        yield robot, state, *sharing.balance(jacobian, force, motors)


def asked(robot, state, **words):
    return parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration, **words)


@pytest.mark.parametrize(("name", "spare"), [("four-rrr", 1), ("3rrr", 3)])
def test_weights_and_preloads_are_those_of_lagrange(name, spare, figure):
    rng, worst = np.random.default_rng(5), 0.0
    for count, (robot, state, A, g) in enumerate(balances(name, 6, 3)):
        motors = robot.motors
        weights = rng.uniform(0.1, 10, len(motors)) if count else np.ones(len(motors))
        stated = {int(k): float(rng.uniform(-20, 20)) for k in rng.permutation(len(motors))[: count % (spare + 1)]}
        words = {"weights": dict(zip(motors, weights, strict=True)) if count else None}
        found = asked(robot, state, preload={motors[k]: value for k, value in stated.items()}, **words)
        inside = sharing.preloaded(A, weights, stated) if stated else np.zeros(len(motors))
        wanted = sharing.least(A, g, weights) + inside
        moved = parflex.forward_dynamics(robot, state.configuration, state.velocity, found.efforts)
        errors = (
            np.abs(row(robot, found.efforts) - wanted).max() / np.abs(wanted).max(),
            np.abs(row(robot, found.internal["efforts"]) - inside).max() / np.abs(wanted).max(),
            np.abs(moved.accelerations - found.accelerations).max() / np.abs(found.accelerations).max(),
        )
        worst = max(worst, *errors)
        assert found.internal["spare_motors"] == spare and found.redundant_actuation
        assert {"preload", "limits", "at_limit"} <= set(found.internal)
    figure(f"{name}: weights and preload against Pinocchio and Lagrange, largest relative error", worst, EXACT)
    assert worst < EXACT


@pytest.mark.parametrize(("name", "spare"), [("four-rrr", 1), ("3rrr", 3)])
def test_limits_are_kept_by_the_least_internal_efforts(name, spare, figure):
    rng, worst, met, missed, acting = np.random.default_rng(7), 0.0, 0, 0, set()
    for robot, state, A, g in balances(name, 8, 4):
        motors, count = robot.actuated_names, len(robot.actuated)
        weights = rng.uniform(0.5, 2, count)
        reference = sharing.least(A, g, weights)
        for share in (0.2, 0.6, 0.9):
            size = np.abs(reference).max()
            centre = rng.uniform(-1, 1, count) * size
            lower, upper = centre - share * 2 * size, centre + share * 2 * size
            upper[rng.random(count) < 0.3] = np.inf  # as of cables
            stated = {int(rng.integers(count)): float(rng.uniform(-1, 1))} if spare > 1 and share > 0.5 else {}
            words = {
                "weights": dict(zip(motors, weights, strict=True)),
                "effort_limit": {name: (low, high) for name, low, high in zip(motors, lower, upper, strict=True)},
                "preload": {motors[k]: value for k, value in stated.items()},
            }
            wanted, _ = sharing.bounded(A, g, weights, lower, upper, stated)
            if wanted is None:
                missed += 1
                with pytest.raises(InputError, match="no internal efforts keep the motors within their limits") as told:
                    asked(robot, state, **words)
                off = float(str(told.value).split(" too much")[0].split()[-1])
                held = reference + (sharing.preloaded(A, weights, stated) if stated else 0.0)
                # the sentence has four digits
                assert off == pytest.approx(least_excess(A, held, lower, upper, list(stated)), rel=1e-3)
                continue
            found = asked(robot, state, **words)
            met += 1
            acting.add(len(found.internal["at_limit"]))
            worst = max(worst, np.abs(row(robot, found.efforts) - wanted).max() / np.abs(wanted).max())
    assert met > 5 and missed > 2 and acting >= ({0, 1} if spare == 1 else {0, 1, 2})
    figure(f"{name}: limits against all active sets, largest relative error", worst, EXACT)
    assert worst < EXACT


def least_excess(A, tau, lower, upper, held):
    """By how much efforts leave their limits at best: a linear program in all efforts."""
    count = len(tau)
    rows = [np.r_[-np.eye(count)[k], -1.0] for k in range(count) if np.isfinite(lower[k])]
    rows += [np.r_[np.eye(count)[k], -1.0] for k in range(count) if np.isfinite(upper[k])]
    right = np.concatenate([-lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    fixed = np.column_stack([np.vstack([A, np.eye(count)[held]]), np.zeros(len(A) + len(held))])
    kept = np.concatenate([A @ tau, tau[held]])
    bounds = [(None, None)] * count + [(0, None)]
    return linprog(np.r_[np.zeros(count), 1.0], np.array(rows), right, fixed, kept, bounds).fun


def test_a_motor_that_failed_leaves_the_work_to_the_others():
    alone = parflex.inverse_dynamics(three(), HERE, acceleration={"x": 1.0})
    assert not alone.redundant_actuation and alone.internal is None
    for limit in (0.0, (0, 0)):
        found = parflex.inverse_dynamics(four(), HERE, acceleration={"x": 1.0}, effort_limit={"leg2.1": limit})
        assert found.efforts == pytest.approx(alone.efforts | {"leg2.1": 0.0}, rel=1e-9, abs=1e-9)
        assert "leg2.1" in found.internal["at_limit"]


def test_newtons_and_newton_metres_weigh_alike_and_it_is_said():
    robot = load_robot("hoisted-four-rrr")
    found = parflex.inverse_dynamics(robot, HERE)
    assert found.internal["spare_motors"] == 2
    assert any("N and N m count equally" in said for said in found.warnings)
    other = parflex.inverse_dynamics(robot, HERE, weights={"hoist": 1e-4})
    assert not any("count equally" in said for said in other.warnings)
    assert abs(other.efforts["hoist"]) > 2 * abs(found.efforts["hoist"])  # it lifts the plate
    pulling = parflex.inverse_dynamics(robot, HERE, effort_limit={"hoist": (-30, -25), "leg1.1": 40})
    assert -30 <= pulling.efforts["hoist"] <= -25 and pulling.elements["hoist"]["force"] > 24


def test_limits_keep_cables_taut():
    robot = parflex.load("planar-cable")
    drums = dict.fromkeys(robot.motors, (0.0175, 2.1))  # N m: 0.5 to 60 N on drums of 35 mm
    for pose in ({}, {"x": 0.2, "y": -0.1}, {"x": -0.15, "y": 0.2, "theta": 0.05}):
        loose = parflex.inverse_dynamics(robot, pose)
        taut = parflex.inverse_dynamics(robot, pose, effort_limit=drums)
        assert min(one["force"] for one in loose.elements.values()) < 0.49
        assert min(one["force"] for one in taut.elements.values()) == pytest.approx(0.5)
        assert taut.internal["at_limit"] and max(taut.efforts.values()) <= 2.1
    with pytest.raises(InputError, match="no internal efforts keep the motors within their limits"):
        parflex.inverse_dynamics(robot, wrench={"platform": [0, -200.0, 0]}, effort_limit=drums)


def test_arrays_take_the_same_words():
    robot, rng = four(), np.random.default_rng(1)
    words = {"weights": {"leg1.1": 3.0}, "preload": {"leg2.1": 4.0}, "effort_limit": 200.0}
    q = np.array([robot.assemble(HERE | {"x": x}) for x in (0.0, 0.02)])
    rates = rng.standard_normal((2, len(robot.independent)))
    batch = parflex.inverse_dynamics(robot, q, rates, **words)
    for k in range(2):
        alone = parflex.inverse_dynamics(robot, q[k], rates[k], **words)
        assert np.abs(batch[k] - alone).max() == 0
    still = parflex.inverse_dynamics(robot, q[0], np.zeros(robot.nv), np.zeros(robot.nv), **words)
    named = parflex.inverse_dynamics(robot, parflex.configure(robot, q[0]), **words)
    assert np.abs(still - row(robot, named.efforts)).max() < 1e-10


def test_spare_motors_of_a_flexible_robot_drive_its_end_effector(figure):
    """With a driven end effector internal efforts are those that do not accelerate it; bodies feel them."""
    robot = parflex.load("3rrr-flexible", settings={"legs.frame.2.actuated": True})
    wanted, worst = {"x": 1.0, "y": -2.0, "theta": 3.0}, 0.0
    plain = parflex.inverse_dynamics(robot, {"x": 0.02}, acceleration=wanted)
    for words in ({"weights": {"leg1.1": 5.0}}, {"preload": {"leg1.2": 3.0}}, {"effort_limit": {"leg1.2": 4.0}}):
        found = parflex.inverse_dynamics(robot, {"x": 0.02}, acceleration=wanted, **words)
        assert found.internal["spare_motors"] == 3 and found.redundant_actuation
        moved = parflex.forward_dynamics(robot, found.configuration, effort=found.efforts)
        worst = max(worst, np.abs(moved.acceleration_of()[[0, 1, 5]] - list(wanted.values())).max() / 3.0)
        off = np.abs(moved.accelerations - found.accelerations).max()
        worst = max(worst, off / np.abs(found.accelerations).max())
    figure("3rrr-flexible with six motors: accelerations under shared efforts", worst, 1e-9)
    assert worst < 1e-9  # the mass matrix of beams has a condition of about a million
    assert abs(plain.efforts["leg1.2"]) > 4.0 and abs(found.efforts["leg1.2"]) <= 4.0 * (1 + 1e-9)
    with pytest.raises(InputError, match="bodies deform, so motions of all motors determine their efforts"):
        parflex.inverse_dynamics(robot, acceleration={"leg1.1": 1.0}, preload={"leg1.1": 1.0})


# -- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"weights": {"leg1.1": 0.0}}, "weight of 'leg1.1' is not a positive number.*limit its effort to 0"),
        ({"weights": {"leg1.1": -1.0}}, "not a positive number"),
        ({"weights": {"leg9.1": 1.0}}, "'leg9.1' is not an actuated joint"),
        ({"preload": {"leg1.2": 1.0}}, "'leg1.2' is not an actuated joint"),
        ({"preload": {"leg1.1": 1.0, "leg2.1": 1.0}}, "names 2 motors .* but 1 of them determine"),
        ({"preload": {"leg1.1": float("nan")}}, "not a finite number"),
        ({"effort_limit": {"leg1.1": (3, 2)}}, "not a lowest and a highest effort"),
        ({"effort_limit": {"leg1.1": -3}}, "must be positive or a pair"),
        ({"effort_limit": 1e-3}, "no internal efforts keep the motors within their limits: at best 'leg..1' has"),
        ({"preload": {"leg1.1": 50.0}, "effort_limit": 30.0}, "with the stated preload.*preload, which contradicts"),
    ],
)
def test_what_no_internal_efforts_can_be_is_refused(words, text):
    with pytest.raises(InputError, match=text) as told:
        parflex.inverse_dynamics(four(), HERE, **words)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("word", ["weights", "preload"])
def test_without_spare_motors_there_is_nothing_to_choose(word):
    robot = parflex.load("5r")
    with pytest.raises(InputError, match=f"so '{word}' has no effect"):
        parflex.inverse_dynamics(robot, **{word: {robot.motors[0]: 1.0}})
    with pytest.raises(InputError, match="without redundant motors it is unique"):
        parflex.inverse_dynamics(parflex.load("3rrr"), effort_limit=1e-6)


def test_a_motor_that_no_other_works_against_cannot_be_preloaded():
    robot = load_robot("shafts")
    found = parflex.inverse_dynamics(robot, acceleration={"b": 1.0}, preload={"a": 3.0})
    inside = found.internal["efforts"]
    assert inside["a"] == pytest.approx(3.0) and inside["b"] == pytest.approx(6.0) and inside["c"] == 0
    with pytest.raises(InputError, match=r"'c' cannot be preloaded at this pose.*preload 'a' or 'b'"):
        parflex.inverse_dynamics(robot, preload={"c": 1.0})


def test_the_command_line_reads_and_tells_the_same(capsys):
    options = ["--weights", "leg1.1=2", "--preload", "leg2.1=3", "--effort-limit", "leg1.1=40,leg3.1=-50:"]
    told = answered(capsys, "inverse", robot_file("four-rrr"), "--pose", "x=0.03", *options)
    words = {"weights": {"leg1.1": 2.0}, "preload": {"leg2.1": 3.0}}
    limits = {"leg1.1": 40.0, "leg3.1": (-50.0, None)}
    found = parflex.inverse_dynamics(four(), {"x": 0.03}, effort_limit=limits, **words)
    assert told["internal"] == found.internal and told["efforts"] == found.efforts
    assert told["internal"]["chosen_by"] == "least weighted norm, preload, limits"
    assert told["internal"]["limits"]["leg3.1"] == [-50.0, None]


# -- singular poses --------------------------------------------------------------------------------------------------


def det_of(robot, pose, motors):
    return float(np.linalg.det(parflex.configure(robot, pose).J_a[motors]))


@pytest.mark.verify
def test_where_three_motors_are_singular_four_are_not():
    """Internal efforts leave a motor out exactly where the others alone are singular: it cannot be preloaded there."""
    robot, others = four(), [0, 2, 3]
    near, away = ({"x": 0.08 * np.cos(a), "y": 0.08 * np.sin(a), "theta": 0.0} for a in (0.0, 3.0))
    assert det_of(robot, near, others) * det_of(robot, away, others) < 0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        pose = {word: (1 - middle) * near[word] + middle * away[word] for word in near}
        low, high = (middle, high) if det_of(robot, pose, others) * det_of(robot, near, others) > 0 else (low, middle)
    found = parflex.inverse_dynamics(robot, pose, acceleration={"x": 1.0}, preload={"leg1.1": 2.0})
    assert abs(found.internal["efforts"]["leg2.1"]) < 1e-9 and np.isfinite(list(found.efforts.values())).all()
    with pytest.raises(InputError, match=r"'leg2.1' cannot be preloaded at this pose"):
        parflex.inverse_dynamics(robot, pose, preload={"leg2.1": 1.0})
    with pytest.raises(parflex.ParflexError, match="singular pose"):
        parflex.inverse_dynamics(three(), pose)


@pytest.mark.verify
def test_where_all_motors_are_singular_it_is_said():
    robot = parflex.load("4rrr")
    angles = np.linspace(0.3, 0.9, 7)
    least = [np.linalg.svd(parflex.configure(robot, {"theta": a}).J_a)[1][-1] for a in angles]
    low, high = angles[int(np.argmin(least)) - 1], angles[int(np.argmin(least)) + 1]
    for _ in range(80):  # golden section: the smallest singular value has a corner there
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        sizes = [np.linalg.svd(parflex.configure(robot, {"theta": angle}).J_a)[1][-1] for angle in (a, b)]
        low, high = (low, b) if sizes[0] < sizes[1] else (a, high)
    with pytest.raises(parflex.ParflexError, match=r"with the motors locked, .* can still move"):
        parflex.inverse_dynamics(robot, {"theta": (low + high) / 2}, preload={"leg1.1": 1.0})


SAME = 1e-12  # the same arithmetic in another order; systems of condition below a hundred


LIMITS = {"leg1.1": 30.0, "leg2.1": (-4.0, 2.0), "leg3.1": (None, 30.0)}


@cache
def preloaded() -> parflex.Model:
    words = {"weights": {"leg1.1": 3.0}, "preload": {"leg2.1": 4.0}}
    return parflex.model(four(), "inverse", coordinates="independent", effort_limit=LIMITS, **words)


def states(count, seed=2):
    rng, robot = np.random.default_rng(seed), four()
    for _ in range(count):
        q = robot.assemble(dict(zip(("x", "y", "theta"), rng.uniform(-0.06, 0.06, 3), strict=True)))
        yield q, rng.uniform(-1, 1, 3), rng.uniform(-5, 5, 3)


def words_of(model):
    """What `inverse_dynamics` is to be asked for the parameters of a program."""
    table = {word: {} for word in ("weight", "preload", "lowest", "highest")}
    for name, value in model.parameters.items():
        word, _, owner = name.partition("[")
        table[word][owner[:-1]] = value
    return {"weights": table["weight"], "preload": table["preload"]}


def far(found, wanted):
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def test_a_program_gives_the_efforts_of_the_function_and_its_parameters_can_change(figure):
    model, worst = preloaded(), 0.0
    assert {one["unit"] for one in model.signals if one["group"] in ("preload", "lowest")} == {"N m"}
    assert model.parameters["preload[leg2.1]"] == pytest.approx(4.0)  # as stated at home, where the others follow
    assert "lowest[leg3.1]" not in model.parameters and "highest[leg4.1]" not in model.parameters
    other = model.with_parameters({"preload[leg4.1]": -6.0, "weight[leg2.1]": 0.2})
    for k, (q, qd, qdd) in enumerate(states(8)):
        asked = (model, other)[k % 2]
        wanted = parflex.inverse_dynamics(four(), q, qd, qdd, **words_of(asked))
        worst = max(worst, far(asked(q=q, qd=qd, qdd=qdd)["effort"], wanted))
    figure("four-rrr: program with weights and preload against the function", worst, SAME)
    assert worst < SAME


def test_a_program_reports_efforts_beyond_their_limits():
    """The status is 2 exactly where an effort is beyond, also with limits that a controller changes."""
    model, reported = preloaded(), []
    plain = parflex.model(parflex.load("5r"), "inverse", effort_limit=1e3)
    assert plain.evaluate("numpy", **plain.sample)["status"] == 0.0
    for k, (q, qd, qdd) in enumerate(states(12)):
        asked = model if k % 2 else model.with_parameters({"lowest[leg2.1]": -9.0, "highest[leg1.1]": 20.0})
        out = asked.evaluate("numpy", q=q, qd=qd, qdd=qdd)
        low, high = np.full(4, -np.inf), np.full(4, np.inf)
        for name, value in asked.parameters.items():
            word, _, motor = name[:-1].partition("[")
            if word in ("lowest", "highest"):
                (low if word == "lowest" else high)[four().motors.index(motor)] = value
        beyond = ((out["effort"] < low) | (out["effort"] > high)).any()
        assert out["status"][0] == (2.0 if beyond else 0.0)
        reported.append(bool(beyond))
    assert 2 < sum(reported) < 10
    assert preloaded().evaluate("numpy", q=q, qd=qd, qdd=np.nan * qdd)["status"][0] == 1.0


@pytest.mark.verify
def test_models_of_spare_motors_agree_with_each_other():
    robot, places = four(), [four().coordinates.index(name) for name in four().motors]
    step, redundant, direct = (parflex.model(robot, model) for model in ("step", "redundant", "direct"))
    of_motors, inertia = (parflex.model(robot, model, coordinates="motors") for model in ("inverse", "mass-matrix"))
    sensed = [robot.rates.index(name) for name in redundant.labels["qd"]]
    for q, qd, qdd in states(3, 5):
        configuration = parflex.configure(robot, q)
        found, J_a = parflex.inverse_dynamics(robot, q, qd, qdd), configuration.J_a
        rates = configuration.J @ qd
        accelerations = configuration.J @ qdd + configuration.acceleration_bias(rates)
        motors = list(robot.actuated)
        given = {"motor_position": q[places], "motor_rate": rates[motors], "motor_acceleration": accelerations[motors]}
        near = q + 1e-3 * (robot.assemble({"x": 1e-3}) - robot.home)
        for model in (step, of_motors):
            out = model(**given, last=near)
            assert max(far(out["effort"], found), far(out["q"], q)) < 1e-9  # what Newton's steps leave
        assert far(direct(q=q, qd=qd, effort=found)["qdd"], qdd) < 1e-10
        assert far(redundant(q=q, qd=rates[sensed], qdd=accelerations[sensed])["effort"], found) < 1e-10
        M = inertia(motor_position=q[places], last=q)["mass_matrix"]
        assert far(J_a.T @ M @ J_a, parflex.mass_matrix(robot, configuration).matrix) < 1e-9


def test_sensors_of_spare_motors_find_the_pose_in_least_squares():
    robot = four().sensing([])
    for q, _, _ in states(3, 6):
        motors = [robot.coordinates.index(name) for name in robot.motors]
        found = parflex.geometry_from_sensors(robot, q[motors], near=robot.home)
        assert far(found, q) < 1e-9
        off = parflex.geometry_from_sensors(robot, q[motors] + [1e-4, 0, 0, 0], near=robot.home)
        assert 1e-7 < np.abs(off - q).max() < 1e-3


@pytest.mark.parametrize(
    ("model", "words", "text"),
    [
        ("direct", {"preload": {"leg1.1": 1.0}}, "'direct' gives no efforts, so 'preload' has no effect"),
        ("inverse", {"preload": {"leg1.1": 1.0, "leg2.1": 1.0}}, "name 1 at most, or all motors"),
    ],
)
def test_programs_that_cannot_be_are_refused(model, words, text):
    with pytest.raises(InputError, match=text):
        parflex.model(four(), model, **words)


def test_a_program_in_which_cables_may_push_warns_of_it():
    robot = parflex.load("planar-cable")
    with pytest.warns(parflex.ParflexWarning, match="may push in efforts of least norm"):
        parflex.model(robot, "inverse")
    with warnings.catch_warnings():
        warnings.simplefilter("error", parflex.ParflexWarning)
        assert len(parflex.model(robot, "inverse", preload={robot.motors[0]: 1.0}).parameters) == len(robot.motors)
