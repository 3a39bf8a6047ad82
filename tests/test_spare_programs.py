"""Programs of robots with more motors than freedoms: weights, preloads and limits as parameters of the program."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support.emitted import c_library
from support.mechanisms import invented

import parflex
from parflex import InputError
from parflex.models.dynamics.program_efforts import internal_direction

SAME = 1e-12  # the same arithmetic in another order; systems of condition below a hundred
HERE = {"x": 0.03, "y": -0.02, "theta": 0.1}


@cache
def four() -> parflex.Robot:
    return parflex.load(invented("four-rrr"))


@cache
def bounded() -> parflex.codegen.model.Model:
    limits = {"leg1.1": 30.0, "leg2.1": (-4.0, 2.0), "leg3.1": (None, 30.0)}
    words = {"weights": {"leg1.1": 3.0}, "preload": {"leg2.1": 4.0}, "effort_limit": limits}
    return parflex.model(four(), "inverse", coordinates="independent", **words)


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
    limits = {name: (table["lowest"].get(name), table["highest"].get(name)) for name in four().motors}
    return {"weights": table["weight"], "preload": table["preload"], "effort_limit": limits}


def far(found, wanted):
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def test_a_program_gives_the_efforts_of_the_function_and_its_parameters_can_change(figure):
    model, worst, limited = bounded(), 0.0, 0
    assert model.parameters["preload[leg2.1]"] == pytest.approx(4.0)  # as stated at home, where the others follow
    assert "lowest[leg3.1]" not in model.parameters and "highest[leg4.1]" not in model.parameters
    other = model.with_parameters({"preload[leg4.1]": -6.0, "weight[leg2.1]": 0.2, "highest[leg2.1]": 5.0})
    for k, (q, qd, qdd) in enumerate(states(8)):
        asked = (model, other)[k % 2]
        wanted = parflex.inverse_dynamics(four(), q, qd, qdd, **words_of(asked))
        worst = max(worst, far(asked(q=q, qd=qd, qdd=qdd)["effort"], wanted))
        limited += round(wanted[1], 9) == -4.0 or round(wanted[1], 9) in (2.0, 5.0)
    assert limited > 2
    figure("four-rrr: program with weights, preload and limits against the function", worst, SAME)
    assert worst < SAME


def test_generated_c_gives_the_same(tmp_path):
    model = bounded()
    q, qd, qdd = (np.array(rows) for rows in zip(*states(5), strict=True))
    arrays = {"q": q, "qd": qd, "qdd": qdd}
    assert far(c_library(model, arrays, tmp_path)["effort"], model.evaluate("numpy", **arrays)["effort"]) < SAME
    units = {one["name"]: one["unit"] for one in model.signals if one["group"] in ("preload", "lowest")}
    assert set(units.values()) == {"N m"}


@pytest.mark.verify
def test_models_of_spare_motors_agree_with_each_other():
    robot = four()
    step = parflex.model(robot, "step")
    of_motors = parflex.model(robot, "inverse", coordinates="motors")
    redundant = parflex.model(robot, "redundant")
    direct = parflex.model(robot, "direct")
    inertia = parflex.model(robot, "mass-matrix", coordinates="motors")
    for q, qd, qdd in states(3, 5):
        configuration = parflex.configure(robot, q)
        found = parflex.inverse_dynamics(robot, q, qd, qdd)
        J_a, bias = configuration.J_a, configuration.acceleration_bias(configuration.J @ qd)
        motors = list(robot.actuated)
        places = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in motors]
        given = {"motor_position": q[places], "motor_rate": J_a @ qd, "motor_acceleration": J_a @ qdd + bias[motors]}
        near = robot.assemble({"x": 1e-3})
        near = q + 1e-3 * (near - robot.home)
        for model in (step, of_motors):
            out = model(**given, last=near)
            assert far(out["effort"], found) < 1e-9  # what Newton's steps leave
            assert far(out["q"], q) < 1e-9
        assert far(direct(q=q, qd=qd, effort=found)["qdd"], qdd) < 1e-10
        rates = configuration.J @ qd
        accelerations = configuration.J @ qdd + bias
        sensed = [robot.tree.rate_names.index(name) for name in redundant.labels["qd"]]
        out = redundant(q=q, qd=rates[sensed], qdd=accelerations[sensed])["effort"]
        assert far(out, found) < 1e-10
        M = inertia(motor_position=q[places], last=q)["mass_matrix"]
        assert far(J_a.T @ M @ J_a, parflex.mass_matrix(robot, configuration).matrix) < 1e-9


def test_sensors_of_spare_motors_find_the_pose_in_least_squares():
    robot = four().sensing([])
    for q, _, _ in states(3, 6):
        motors = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]
        found = parflex.geometry_from_sensors(robot, q[motors], near=robot.home)
        assert far(found, q) < 1e-9
        off = parflex.geometry_from_sensors(robot, q[motors] + [1e-4, 0, 0, 0], near=robot.home)
        assert 1e-7 < np.abs(off - q).max() < 1e-3


def test_the_internal_direction_is_in_the_null_space():
    rng = np.random.default_rng(0)
    for freedoms in (1, 2, 3, 6):
        A = rng.standard_normal((freedoms, freedoms + 1))
        n = internal_direction(A)
        assert np.abs(A @ n).max() < 1e-12 * np.abs(A).max() * np.abs(n).max()


def test_programs_keep_limits_where_a_motor_has_no_share():
    """At an exact zero of its share a motor bounds nothing; the others still do."""
    from parflex.models.dynamics.program_efforts import program_efforts
    from parflex.models.dynamics.shared_efforts import shared_efforts
    from parflex.models.dynamics.spare_motors import Sharing

    A, g = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), np.array([4.0, 5.0])
    limits = np.array([-1.0, -9.0, -9.0]), np.array([1.0, 9.0, 9.0])
    sharing = Sharing(("a", "b", "c"), None, lower=limits[0], upper=limits[1])
    assert program_efforts(A, g, sharing) == pytest.approx([1.0, 5.0, 3.0])
    assert shared_efforts(A, g, sharing).tau == pytest.approx([1.0, 5.0, 3.0])


@pytest.mark.parametrize(("freedoms", "motors"), [(2, 3), (3, 4), (2, 4), (6, 8)])
def test_programs_keep_limits_as_the_exact_projection_does(freedoms, motors):
    """In floats: the arithmetic of programs, against non-negative least squares."""
    from parflex.models.dynamics.program_efforts import program_efforts
    from parflex.models.dynamics.shared_efforts import shared_efforts
    from parflex.models.dynamics.spare_motors import Sharing

    rng, met, moved = np.random.default_rng(motors), 0, 0
    names = tuple("abcdefgh"[:motors])
    for _ in range(60):
        A, g = rng.standard_normal((freedoms, motors)), rng.uniform(-5, 5, freedoms)
        lower, upper = -rng.uniform(1, 8, motors), rng.uniform(1, 8, motors)
        upper[rng.random(motors) < 0.3] = np.inf
        near = rng.uniform(-4, 4, motors)
        sharing = Sharing(names, rng.uniform(0.2, 4, motors), lower=lower, upper=upper, near=near)
        try:
            wanted = shared_efforts(A, g, sharing).tau
        except InputError:
            continue
        found = program_efforts(A, g, sharing)
        met += 1
        moved += bool(shared_efforts(A, g, sharing).internal["at_limit"])
        # limits are kept to rounding of the largest effort; sets that differ by less are the same
        assert np.abs(found - wanted).max() < 1e-8 * max(1.0, np.abs(wanted).max())
        assert np.abs(A @ found - g).max() < 1e-9 * np.abs(found).max()
    assert met > 20 and moved > 10


@pytest.mark.parametrize(
    ("name", "model", "words", "text"),
    [
        ("four", "direct", {"preload": {"leg1.1": 1.0}}, "'direct' gives no efforts, so 'preload' has no effect"),
        ("six", "inverse", {"effort_limit": 5.0}, "limits by internal efforts of one or two spare motors.* has 3"),
        ("5r", "inverse", {"effort_limit": 5.0}, "limits by internal efforts of one or two spare motors.* has 0"),
        ("four", "inverse", {"preload": {"leg1.1": 1.0, "leg2.1": 1.0}}, "name 1 at most, or all motors"),
    ],
)
def test_programs_that_cannot_be_are_refused(name, model, words, text):
    robot = four() if name == "four" else parflex.load("5r")
    if name == "six":
        robot = parflex.load("3rrr", settings={"legs.frame.2.actuated": True})
    with pytest.raises(InputError, match=text):
        parflex.model(robot, model, **words)


def test_two_spare_motors_keep_their_limits_in_a_program(tmp_path):
    """Four legs and a hoist: five motors for three freedoms, forces and torques among them."""
    file = tmp_path / "hoisted.toml"
    file.write_text(
        invented("four-rrr").read_text() + '\n[[point]]\nname = "hook"\nframe = "base"\nposition = [0.1, 1.4, 0]\n'
        '[[element]]\nname = "hoist"\nkind = "strut"\nbetween = ["hook", "platform"]\nactuated = true\n'
    )
    robot = parflex.load(file)
    words = {"weights": {"hoist": 0.01}, "effort_limit": {"hoist": (-40.0, -5.0), "leg3.1": 4.0, "leg4.1": (-4.5, 4.5)}}
    model, limited = parflex.model(robot, "inverse", coordinates="independent", **words), 0
    for q4, qd, qdd in states(6, 8):
        q = robot.assemble(dict(zip(("x", "y", "theta"), q4[:3], strict=True)))
        wanted = parflex.inverse_dynamics(robot, q, qd, 0.3 * qdd, **words)
        assert far(model(q=q, qd=qd, qdd=0.3 * qdd)["effort"], wanted) < 1e-10  # P and the limits' two unknowns
        limited += int(np.isclose(np.abs(wanted[[2, 3]]), [4.0, 4.5], rtol=1e-9).any())
    assert limited


def test_a_program_in_which_cables_may_push_warns_of_it():
    from parflex.codegen.traces.spare_parameters import with_spare_words
    from parflex.codegen.traces.tracing import Options

    robot = parflex.load("planar-cable")
    with pytest.warns(parflex.errors.ParflexWarning, match="may push in efforts of least norm"):
        with_spare_words(robot, "inverse", Options(), None, None, None)
    limits = dict.fromkeys(robot.motors, (0.0175, 2.1))
    assert len(with_spare_words(robot, "inverse", Options(), None, None, limits).limits) == 4
