"""States as NumPy arrays: the same answers and the same refusals as by names, compiled or not, one or many."""

import logging
import pickle
import threading
import tracemalloc
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.catalogue import CATALOGUE
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.robots import load_robot
from support.states import Draws, random_states

import parflex
from parflex import (
    ActuationError,
    Configuration,
    InputError,
    ParflexWarning,
    Robot,
    SingularError,
    UnreachableError,
    configure,
)

# both ways solve systems of condition up to 1e4 in double precision (1e-16), which leaves 1e-12; ten times that
TOLERANCE = 1e-11
REDUNDANT = {"actuation.spare": {"actuated": ["left.1", "right.1", "left.2"]}}
KINDS = ("planar-arm", "5r", "geared-five-bar", "spare", "3rrr", "payload", "flat-loop", "locked", "c5", "spin-up")


@cache
def robot_of(kind: str) -> Robot:
    """Robots of every kind: open, planar and spatial loops, rows that repeat, spare motors, held joints, flexible."""
    if kind == "spare":
        return parflex.load("5r", settings=REDUNDANT, actuation="spare")
    if kind == "payload":
        return parflex.load("5r", payload=(2.0, 0.0, 0.0, 0.0))
    if kind == "locked":
        return load_robot("planar-arm").locking([1])
    return parflex.load(kind) if kind in parflex.catalogue_names() else load_robot(kind)


@cache
def states_of(kind: str, count: int = 4):
    """Arrays q, qd, qdd, efforts of random states, by names; efforts under a wrench on the end effector last."""
    robot, rng = robot_of(kind), np.random.default_rng(5)
    load = wrench_of(robot)
    rows = []
    for _ in range(count):
        pose, names = configuration_of(robot, rng), robot.motors
        moving = [dict(zip(names, rng.uniform(-size, size, len(names)), strict=True)) for size in (1, 3)]
        rigid = set(robot.independent_rates) - set(robot.tree.elastic)
        moving = moving if len(names) <= len(rigid) else [None, None]  # spare motors follow the others
        found = parflex.inverse_dynamics(robot, pose, *moving)
        loaded = parflex.inverse_dynamics(robot, pose, *moving, wrench=load)
        rows.append((pose.q, found.rates, found.accelerations, *(list(r.efforts.values()) for r in (found, loaded))))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def configuration_of(robot: Robot, rng: np.random.Generator) -> Configuration:
    """Home, moved a little along the independent rates, and closed again."""
    step, own = np.zeros(robot.nv), list(robot.independent_rates)
    size = 1e-8 if robot.tree.elastic else 0.1
    step[own] = rng.uniform(-size, size, len(own)) * robot.tree.rate_units[own]
    return Configuration(robot, robot.close(robot.tree.moved(robot.home, step)))


def wrench_of(robot: Robot) -> dict[str, list[float]]:
    return {robot.tree.end_effector: [3.0, -5.0, 2.0] if robot.tree.planar else [3.0, -5.0, 2.0, 0.1, 0.2, -0.3]}


def close(found, expected) -> bool:
    return bool(np.abs(found - expected).max() <= TOLERANCE * max(1.0, np.abs(expected).max()))


def test_arrays_are_in_the_order_that_the_robot_says():
    robot = robot_of("3rrr")
    assert robot.coordinates == list(robot.tree.position_names) and robot.rates == list(robot.tree.rate_names)
    assert robot.motors == ["leg1.1", "leg2.1", "leg3.1"] == robot.actuated_names
    assert robot.independent == configure(robot).independent_names
    assert (robot.nq, robot.nv, robot.nu) == (9, 9, 3)
    spatial = robot_of("c5")
    assert (spatial.nq, spatial.nv) == (len(spatial.coordinates), len(spatial.rates)) == (13, 12)  # a quaternion


@pytest.mark.few("spare", "spin-up", "planar-arm", "flat-loop")
@pytest.mark.parametrize(
    "kind", sorted({*KINDS, *parflex.catalogue_names(), "held-from-behind", "tripod-wrist", "upu"})
)
def test_efforts_and_accelerations_equal_those_by_names(kind):
    robot = robot_of(kind)
    q, qd, qdd, effort, _ = states_of(kind)
    for k in range(len(q)):
        assert close(parflex.inverse_dynamics(robot, q[k], qd[k], qdd[k]), effort[k])
        assert close(parflex.forward_dynamics(robot, q[k], qd[k], effort[k]), qdd[k])
    order = np.random.default_rng(0).permutation(len(q))
    assert close(parflex.inverse_dynamics(robot, q[order], qd[order], qdd[order]), effort[order])
    assert close(parflex.forward_dynamics(robot, q[order], qd[order], effort[order]), qdd[order])


@pytest.mark.parametrize("kind", ["planar-arm", "5r", "spin-up"])
def test_wrenches_act_on_one_state_or_on_a_batch(kind):
    robot = robot_of(kind)
    q, qd, qdd, effort, loaded = states_of(kind)
    frame, wrench = next(iter(wrench_of(robot).items()))
    assert close(parflex.inverse_dynamics(robot, q, qd, qdd, wrench={frame: wrench}), loaded)
    batch = np.outer(np.arange(len(q)), wrench)
    found = parflex.inverse_dynamics(robot, q, qd, qdd, wrench={frame: batch})
    assert close(found, effort + np.arange(len(q))[:, None] * (loaded - effort))
    moved = parflex.forward_dynamics(robot, q[0], qd[0], loaded[0], wrench={frame: wrench})
    driven = list(robot.actuated) if robot.tree.elastic else slice(None)  # flexible bodies feel the wrench
    assert close(moved[driven], qdd[0][driven])


def test_dependent_rates_and_accelerations_follow_from_the_independent_ones():
    robot, own = robot_of("5r"), list(robot_of("5r").independent_rates)
    q, qd, qdd, effort, _ = states_of("5r")
    for rates in (qd, qd[:, own]):
        for accelerations in (qdd, qdd[:, own]):
            assert close(parflex.inverse_dynamics(robot, q, rates, accelerations), effort)
    assert close(parflex.forward_dynamics(robot, q, qd[:, own], effort), qdd)
    rest = parflex.inverse_dynamics(robot, q, qd)  # independent coordinates do not accelerate
    assert close(rest, parflex.inverse_dynamics(robot, q, qd, np.zeros(len(own))))
    assert close(parflex.inverse_dynamics(robot, q), parflex.inverse_dynamics(robot, q, np.zeros(robot.nv)))


def test_efforts_of_arrays_equal_those_of_pinocchio():
    path = CATALOGUE / "3rrr.toml"
    robot, oracle = robot_of("3rrr"), PinocchioTree(read_robot(path))
    names = robot.tree.position_names
    for state in random_states(robot, 5, 11, Draws()):
        known = parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration)
        given = [dict(zip(robot.rates, row, strict=True)) for row in (known.rates, known.accelerations)]
        own = [{name: table[name] for name in state.configuration.independent_names} for table in given]
        expected = oracle.inverse(dict(zip(names, state.configuration.q, strict=True)), *own, robot.motors, wrenches={})
        found = parflex.inverse_dynamics(robot, state.configuration.q, known.rates, known.accelerations)
        assert np.abs(found - [expected[name] for name in robot.motors]).max() < 1e-10 * np.abs(found).max()


def test_terms_are_left_out_and_words_are_the_same():
    robot = robot_of("5r")
    q, qd, qdd, effort, _ = states_of("5r")
    by_name = dict(zip(robot.rates, qd[0], strict=True)), dict(zip(robot.rates, qdd[0], strict=True))
    for without in (["gravity"], ["friction", "motor-inertia"]):
        expected = parflex.inverse_dynamics(robot, Configuration(robot, q[0]), *by_name, without=without)
        found = parflex.inverse_dynamics(robot, q[0], qd[0], qdd[0], without=without)
        assert close(found, np.array(list(expected.efforts.values())))
    assert close(parflex.inverse_dynamics(robot, q=q[0], qd=qd[0], qdd=qdd[0]), effort[0])
    assert close(parflex.inverse_dynamics(robot, pose=q[0], velocity=qd[0], acceleration=qdd[0]), effort[0])
    assert close(parflex.inverse_dynamics(robot, Configuration(robot, q[0]), qd[0], qdd[0]), effort[0])
    by_words = parflex.inverse_dynamics(robot, q[0], *by_name)
    assert close(np.array(list(by_words.efforts.values())), effort[0])  # a pose may be an array, with all else by names
    assert list(parflex.forward_dynamics(robot, "home", effort=[1.0, 2.0]).efforts) == robot.motors


def test_a_pose_may_be_an_array_in_other_functions():
    robot = robot_of("5r")
    q, qd, *_ = states_of("5r")
    at = Configuration(robot, q[0])
    assert np.array_equal(parflex.jacobian(robot, q[0]), parflex.jacobian(robot, at))
    assert np.array_equal(parflex.mass_matrix(robot, q[0])[0], parflex.mass_matrix(robot, at)[0])
    assert np.array_equal(parflex.frames(robot, q[0])["tip"][0], parflex.frames(robot, at)["tip"][0])
    assert parflex.energies(robot, q[0], qd[0]) == parflex.energies(at, qd[0])
    with pytest.raises(InputError, match="open by"):
        parflex.jacobian(robot, q[0] + 0.1)


@pytest.mark.parametrize("kind", ["planar-arm", "5r", "c5", "dualemps"])  # whose rates at home are other ones
def test_batches_of_poses_have_the_rows_of_each_pose_and_nan_where_there_is_none(kind):
    robot, (q, qd, *_) = robot_of(kind), states_of(kind)
    rows = np.concatenate([q, [np.full(robot.nq, np.nan)]])
    rates = np.concatenate([qd, qd[:1]])
    by_motors = [lambda q: parflex.mass_matrix(robot, q, coordinates="motors").matrix]
    by_motors = [] if robot.tree.elastic else [*by_motors, lambda q: parflex.jacobian(robot, q).matrix]
    with pytest.warns(ParflexWarning) as said:
        energy = parflex.energies(robot, rows, rates)
        places = parflex.frames(robot, rows)[robot.tree.end_effector]
        M, names = parflex.mass_matrix(robot, rows)
        given = [ask(rows) for ask in by_motors]
    sentence = "1 of 5 states have no answer and are nan: state 4: q: entry 0 of 'q' is nan; give finite numbers"
    assert {str(one.message) for one in said} == {sentence} and len(said) == 3 + len(given)
    assert names == robot.independent and M.shape == (5, len(names), len(names))
    assert all(np.isnan(part[4]).all() for part in (*energy, *places, M, *given))
    for k, row in enumerate(q):
        one, place = parflex.energies(robot, row, qd[k]), parflex.frames(robot, row)[robot.tree.end_effector]
        assert (energy.kinetic[k], energy.potential[k]) == tuple(one)
        assert np.array_equal(places.position[k], place.position) and np.array_equal(places.rotation[k], place.rotation)
        assert all(np.array_equal(part[k], ask(row)) for part, ask in zip(given, by_motors, strict=True))
        free = qd[k][list(robot.independent_rates)]
        assert free @ M[k] @ free / 2 == pytest.approx(one.kinetic, rel=1e-9)  # rates of condition 1e3


def test_batches_of_poses_and_rates_have_one_size_and_a_named_frame_exists():
    robot, (q, qd, *_) = robot_of("5r"), states_of("5r")
    assert parflex.energies(robot, q[0], qd).kinetic.shape == parflex.energies(robot, q, qd[0]).kinetic.shape == (4,)
    assert parflex.frames(robot, q)["tip"].position.shape == (4, 3) and parflex.frames(robot, q[:0])
    with pytest.raises(InputError, match="'velocity' has 2 states and 'pose' has 4"):
        parflex.energies(robot, q, qd[:2])
    with pytest.raises(InputError, match="there is no frame 'hand'"):
        parflex.jacobian(robot, q, "hand")


def test_states_that_only_the_checks_of_a_program_refuse_are_solved_by_rates_of_their_own():
    """Both rods nearly on one line: the motors do not determine them, and the program divides by almost nothing."""
    robot, high = robot_of("5r"), 0.3 * np.sqrt(1 - (0.28 / 0.3) ** 2)
    program = parflex.model(robot, "direct", coordinates="all", checks=True)
    poses = np.array([configure(robot, {"x": 0.0, "y": high + off}).q for off in (0.3, 1e-9, 0.3, 1e-9)])
    answers = program(q=poses, qd=np.zeros((4, 4)), effort=np.zeros((4, 2)))
    expected = np.array([parflex.forward_dynamics(robot, Configuration(robot, q)).accelerations for q in poses])
    assert (answers["verdict"][:, 0] <= 1).tolist() == [True, False, True, False]
    assert answers["condition"][1, 0] > 1e6 and answers["closure"][1, 0] < 1e-11
    assert not close(answers["qdd"][1], expected[1])
    with pytest.warns(ParflexWarning, match="2 of 4 states are answered with a warning: states 1, 3: "):
        assert close(parflex.forward_dynamics(robot, poses), expected)
    apart = np.array([configure(robot, {"x": 0.0, "y": high + off}).q for off in (0.0, 1e-5)])  # singular, and near it
    with pytest.warns(ParflexWarning, match="1 of 2 states have no answer and are nan: state 0: "):
        assert np.isfinite(parflex.inverse_dynamics(robot, apart)).tolist() == [[False, False], [True, True]]


def test_one_state_serves_a_batch_and_batches_keep_their_axis():
    robot = robot_of("5r")
    q, qd, qdd, *_ = states_of("5r")
    rest = np.zeros(4)
    assert parflex.inverse_dynamics(robot, q[0], rest, np.zeros((3, 4))).shape == (3, 2)
    assert parflex.inverse_dynamics(robot, q[:1], rest, np.zeros((3, 4))).shape == (3, 2)
    assert parflex.inverse_dynamics(robot, q[:1], qd[:1], qdd[:1]).shape == (1, 2)
    assert parflex.inverse_dynamics(robot, np.empty((0, 4))).shape == (0, 2)
    many = np.tile(q, (600, 1))  # more than are handed to the program at a time
    assert close(parflex.inverse_dynamics(robot, many)[-4:], parflex.inverse_dynamics(robot, q))


def test_any_array_of_numbers_is_read():
    robot = robot_of("planar-arm")
    q, qd, qdd, effort, _ = states_of("planar-arm")
    for change in (list, tuple, np.asfortranarray, lambda x: np.repeat(x, 2)[::2], lambda x: x.astype(object)):
        assert close(parflex.inverse_dynamics(robot, change(q[0]), change(qd[0]), change(qdd[0])), effort[0])
    assert close(parflex.inverse_dynamics(robot, np.asfortranarray(q), qd.T.copy().T, qdd), effort)
    whole = parflex.inverse_dynamics(robot, [0, 1, 2], np.zeros(3, dtype=int), np.zeros(3, dtype=np.int8))
    assert close(whole, parflex.inverse_dynamics(robot, np.array([0.0, 1.0, 2.0])))
    half = parflex.inverse_dynamics(robot, q[0].astype(np.float32), qd[0], qdd[0])
    assert np.abs(half - effort[0]).max() < 1e-4 and half.dtype == float
    closed = robot_of("3rrr")
    q, qd, qdd, effort, _ = (part.astype(np.float32) for part in states_of("3rrr"))
    single = parflex.inverse_dynamics(closed, q, qd, qdd)  # loops are as closed as single precision can say
    assert np.abs(single - effort).max() < 1e-4 and np.abs(single[0] - effort[0]).max() > 1e-9
    assert close(single[0], parflex.inverse_dynamics(closed, q[0], qd[0], qdd[0]))
    assert close(single, parflex.inverse_dynamics(closed, closed.close(q), qd, qdd.astype(float))) is False
    with pytest.raises(InputError, match="open by"):
        parflex.inverse_dynamics(closed, q[0].astype(float))
    assert close(parflex.inverse_dynamics(robot, robot.home), parflex.inverse_dynamics(robot, robot.home.copy()))


def test_out_takes_the_answer():
    robot = robot_of("5r")
    q, qd, qdd, effort, _ = states_of("5r")
    one, many, strided = np.empty(2), np.empty((4, 2)), np.empty((4, 4))[:, ::2]
    assert parflex.inverse_dynamics(robot, q[0], qd[0], qdd[0], out=one) is one and close(one, effort[0])
    for out in (many, strided):
        assert parflex.inverse_dynamics(robot, q, qd, qdd, out=out) is out and close(out, effort)
    for wrong in (np.empty(3), np.empty((1, 2)), np.empty(2, dtype=np.float32), [0.0, 0.0], np.frombuffer(bytes(16))):
        with pytest.raises(InputError, match="'out' is not an array of floats of the shape"):
            parflex.inverse_dynamics(robot, q[0], qd[0], qdd[0], out=wrong)
    with pytest.raises(InputError, match="'out' takes the answer"):
        parflex.inverse_dynamics(robot, "home", out=one)


def test_a_flat_call_of_a_model_allocates_nothing():
    made = parflex.model(robot_of("5r"), "inverse", parameters=["M[left.2]"])
    x = np.concatenate([made.sample[name].ravel() for name in made.inputs])
    rows = x + np.random.default_rng(0).uniform(-0.01, 0.01, (700, len(x)))
    flat = np.concatenate([value.ravel() for value in made(**made.sample).values()])
    assert np.array_equal(made.call(x), flat) and np.allclose(made.call(rows)[3], made.call(rows[3]), rtol=1e-14)
    heavy = made.with_parameters({"M[left.2]": 7.0})
    assert not np.allclose(heavy.call(x), flat)
    assert np.array_equal(made.call(x), flat)  # buffers are shared, numbers not
    for inputs, out in ((x, np.empty(len(flat))), (rows, np.empty((700, len(flat))))):
        assert made.call(inputs, out) is out
        tracemalloc.start()
        try:
            for _ in range(20):
                made.call(inputs, out)
            arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
            assert not tracemalloc.take_snapshot().filter_traces([arrays]).traces
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            made.call(inputs, out)
            # views and numbers of Python; a copy of the batch would be a hundred times that
            assert tracemalloc.get_traced_memory()[1] - before < 1000
        finally:
            tracemalloc.stop()
    for wrong in (x[:-1], rows[None], np.zeros(0), "x", x * 1j):
        with pytest.raises(InputError, match="'x'"):
            made.call(wrong)
    with pytest.raises(InputError, match="'out' is not an array of floats"):
        made.call(x, np.empty(1))


Q, QD = np.array(parflex.load("5r").home), np.zeros(4)
ONES = np.ones(4)
INVERSE = {  # arguments of the inverse dynamics of 5r, the key that is named, and what is said
    "open": ((Q + 0.1,), "q", r"not close the loop 'tip hinge': it is open by 0\.\d+ m"),
    "nan": (([0, np.nan, 0, 0],), "q", "entry 1 of 'q' is nan"),
    "shape": ((Q[:3],), "q", r"shape \(3,\), not \(4,\)"),
    "complex": ((Q * 1j,), "q", "not an array of numbers"),
    "ragged": (([[0.0], [1.0, 2.0]],), "q", "not an array of numbers"),
    "rates": ((Q, ONES), "qd", "rates do not keep the loop 'tip hinge' closed"),
    "shape of rates": ((Q, np.ones(3)), "qd", r"shape \(3,\), not \(4,\)"),
    "infinite": ((Q, [np.inf, 0, 0, 0]), "qd", "entry 0 of 'qd' is inf"),
    "accelerations": ((Q, QD, ONES), "qdd", "accelerations do not keep the loop"),
    "nan acceleration": ((Q, QD, [0, 0, 0, np.nan]), "qdd", "entry 3 of 'qdd' is nan"),
    "batches": ((np.tile(Q, (4, 1)), np.zeros((2, 4))), "qd", "'qd' has 2 states and 'q' has 4"),
    "names": ((Q, QD, {"left.1": 1.0}), "qd", "by names and by arrays"),
    "frame": (({"wrench": {"hand": np.zeros(6)}},), "wrench", "no frame 'hand'"),
    "not finite": (({"wrench": {"tip": [np.nan, 0.0, 0.0]}},), "wrench", "'tip' has numbers that are not finite"),
    "reactions": (({"reactions": True},), "reactions", "without reactions"),
    "form": (({"form": "foo"},), "form", "not a known value of 'form'"),
}


@pytest.mark.parametrize("case", INVERSE)
def test_wrong_arrays_are_refused_by_name(case):
    given, key, words = INVERSE[case]
    named = given[0] if isinstance(given[0], dict) else {}
    with pytest.raises(InputError, match=words) as stop:
        parflex.inverse_dynamics(robot_of("5r"), *((Q,) if named else given), **named)
    assert stop.value.key == key and stop.value.hint


def test_wrong_efforts_and_rates_are_refused_by_name():
    for effort, words in ((np.ones(3), r"shape \(3,\), not \(2,\)"), ([np.nan, 0], "entry 0 of 'effort' is nan")):
        with pytest.raises(InputError, match=words) as stop:
            parflex.forward_dynamics(robot_of("5r"), Q, QD, effort)
        assert stop.value.key == "effort" and stop.value.hint
    with pytest.raises(InputError, match="is locked and cannot move"):
        parflex.inverse_dynamics(robot_of("locked"), robot_of("locked").home, np.array([0.0, 0.1, 0.0]))
    with pytest.raises(UnreachableError, match="state 1: the pose cannot be reached"):
        robot_of("3rrr").close([[0.0, 0.0, 0.0], [0.0, 50.0, 0.0]])


def test_positions_are_closed_where_it_is_asked_for():
    robot = robot_of("3rrr")
    near = robot.close(robot.home + 0.01)
    assert configure(robot, near).closure_error < 1e-9 and np.abs(near - robot.home).max() < 0.03
    assert robot.close(np.array([robot.home, near]) + 0.001).shape == (2, 9)
    pose = robot.close([0.02, 0.01, 0.1])  # the independent coordinates are those of the platform
    assert np.allclose(pose, configure(robot, {"x": 0.02, "y": 0.01, "theta": 0.1}).q, atol=1e-9)
    assert close(parflex.inverse_dynamics(robot, [0.02, 0.01, 0.1]), parflex.inverse_dynamics(robot, pose))
    held = robot_of("5r").locking([0, 2])  # with its cranks apart, farther than its rods reach
    with pytest.raises(UnreachableError, match=r"loop closure did not converge from q \(residual \d"):
        held.close([np.pi, 0.0, 0.0, 0.0])
    spatial = robot_of("c5")
    turned = next(link for link in spatial.tree.links if link.joint.quaternion is not None)
    longer = spatial.home.copy()
    longer[turned.q_quaternion] *= 1.001
    with pytest.raises(InputError, match=r"has the length 1\.001, not 1"):
        parflex.inverse_dynamics(spatial, longer)
    assert np.allclose(spatial.close(longer), spatial.home, atol=1e-9)


def test_a_hinge_with_its_axes_opposite_is_open():
    """Sines do not tell it from a closed one; the program must not vouch for it."""
    robot = robot_of("flat-loop")
    loops = [replace(loop, u2=-loop.u2) if loop.turning == "about-axis" else loop for loop in robot.closures.loops]
    closures = replace(robot.closures, loops=tuple(loops))
    opposite = replace(robot, closures=closures, known_home=robot.home, known_mobility=robot.mobility)
    assert np.allclose(closures.linear_residual(configure(robot).at), 0, atol=1e-12)
    assert np.isfinite(parflex.inverse_dynamics(robot, robot.home)).all()
    with pytest.raises(InputError, match="open by"):
        parflex.inverse_dynamics(opposite, robot.home)


def test_singular_states_are_refused_or_answered_as_by_names():
    robot = robot_of("5r")
    aligned = configure(robot, {"x": 0.0, "y": 0.3 * np.sqrt(1 - (0.28 / 0.3) ** 2)})  # both rods on one line
    with pytest.raises(SingularError, match="singular pose: with the motors locked"):
        parflex.inverse_dynamics(robot, aligned.q, np.zeros(4), np.zeros(4))
    falling = parflex.forward_dynamics(robot, aligned).accelerations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParflexWarning)
        assert close(parflex.forward_dynamics(robot, aligned.q), falling)  # by rates that suit the pose
    stretched = configure(robot, {"x": -0.12 + 0.7 * np.cos(1.2), "y": 0.7 * np.sin(1.2)})  # left leg straight
    known = parflex.inverse_dynamics(robot, stretched, {"left.1": 0.1, "right.1": 0.2}, {"left.1": 1.0, "right.1": 0.0})
    with pytest.warns(ParflexWarning, match="'left' is stretched or folded"):
        found = parflex.inverse_dynamics(robot, stretched.q, known.rates, known.accelerations)
    assert close(found, np.array(list(known.efforts.values())))
    with pytest.warns(ParflexWarning, match="1 of 3 states have no answer and are nan: state 1: .*motors locked"):
        found = parflex.inverse_dynamics(robot, np.array([robot.home, aligned.q, robot.home]))
    assert np.isnan(found[1]).all() and close(found[[0, 2]], parflex.inverse_dynamics(robot, robot.home)[None])


def test_states_of_a_batch_that_fail_are_nan_and_said_once():
    robot = robot_of("5r")
    q, rates, accelerations = (np.tile(part, (5, 1)) for part in states_of("5r")[:3])
    q[[3, 7, 11]] += 0.1
    q[12] = np.nan
    rates[14] += 1.0
    reasons = "states 3, 7, 11: .*open by .*; state 12: .* is nan; .*; state 14: .*rates do not keep"
    sentence = f"5 of 20 states have no answer and are nan: {reasons}"
    with pytest.warns(ParflexWarning, match=sentence) as said:
        found = parflex.inverse_dynamics(robot, q, rates, accelerations)
    failed = [3, 7, 11, 12, 14]
    assert len(said) == 1 and said[0].filename == __file__
    assert np.isnan(found[failed]).all() and np.isfinite(np.delete(found, failed, axis=0)).all()


def test_numbers_that_overflow_are_refused_in_a_sentence_and_nan_in_a_batch():
    robot, (q, qd, *_), huge = robot_of("5r"), states_of("5r"), np.array([1e160, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in (parflex.inverse_dynamics, parflex.forward_dynamics):
            with pytest.raises(InputError, match=r"entry 0 of 'qd' is 1e.160, so large that the answer is not finite"):
                ask(robot, q[0], huge)
        with pytest.raises(InputError, match=r"'effort' is 1e.308, .*is not finite"):
            parflex.forward_dynamics(robot, q[0], qd[0], [1e308, 1e308])
    with pytest.warns(ParflexWarning, match="1 of 2 states have no answer and are nan: state 1: .*'qd' is"):
        found = parflex.inverse_dynamics(robot, q[:2], np.array([[1.0, 0.0], huge]))
    assert np.isfinite(found[0]).all() and np.isnan(found[1]).all()


def test_single_precision_of_one_array_loosens_no_check_of_another():
    robot = robot_of("5r")
    q, qd, qdd, effort, _ = states_of("5r")
    for ask, last in ((parflex.inverse_dynamics, qdd), (parflex.forward_dynamics, effort)):
        with pytest.raises(InputError, match="positions do not close the loop"):
            ask(robot, q[0] + 1e-7, qd[0].astype(np.float32), last[0].astype(np.float32))
        with pytest.raises(InputError, match="rates do not keep the loop"):
            ask(robot, q[0], qd[0] * [1, 1 + 1e-5, 1, 1], last[0].astype(np.float32))
        assert np.isfinite(ask(robot, q[0].astype(np.float32), qd[0], last[0])).all()  # rates follow the positions


def test_time_derivatives_of_positions_and_rates_are_taken_of_batches():
    robot, rng = robot_of("c5"), np.random.default_rng(1)
    q, (qd, qdd) = robot.home, rng.standard_normal((2, 3, robot.nv))
    assert np.array_equal(robot.position_rates(q, qd), [robot.position_rates(q, v) for v in qd])
    assert np.array_equal(robot.rate_changes(qd, qdd[0]), [robot.rate_changes(v, qdd[0]) for v in qd])
    h = 1e-6
    slope = (robot.tree.moved(q, h * qd[0]) - robot.tree.moved(q, -h * qd[0])) / (2 * h)
    assert robot.position_rates(q, qd[0]) == pytest.approx(slope, abs=1e-9)  # rounding over h
    assert robot.position_rates(np.empty((0, robot.nq)), qd[0]).shape == (0, robot.nq)
    with pytest.raises(InputError, match="'qd' has the shape"):
        robot.position_rates(q, q)
    with pytest.raises(InputError, match="'qdd' has 2 states and 'qd' has 3"):
        robot.rate_changes(qd, qdd[:2])


def test_where_there_are_too_few_motors_arrays_have_the_efforts_of_those_that_are():
    robot = parflex.load("5r", settings={"actuation.one": {"actuated": ["left.1"]}}, actuation="one")
    named = parflex.inverse_dynamics(robot, acceleration={"left.1": 3.0})
    effort = named.efforts["left.1"]
    assert close(parflex.inverse_dynamics(robot, robot.home, qdd=named.accelerations), [effort])
    assert close(parflex.inverse_dynamics(robot, np.array([robot.home] * 2), qdd=[[3.0]] * 2), [[effort]] * 2)
    none = parflex.load("5r", settings={"legs.frame.0.actuated": False})
    with pytest.raises(ActuationError, match="0 motors for 2 degrees of freedom"):
        parflex.inverse_dynamics(none, none.home)
    assert close(parflex.forward_dynamics(robot, robot.home), parflex.forward_dynamics(robot).accelerations)


def test_joints_outside_their_limits_are_warned_of_and_answered():
    name = robot_of("planar-arm").motors[0]
    robot = load_robot("planar-arm", settings={f"frame.{name}.limits": [-0.5, 0.5]})
    q = np.array([[0.4, 0.1, 0.2], [0.6, 0.1, 0.2], [-0.7, 0.1, 0.2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside = parflex.inverse_dynamics(robot, q[0])
        for rounded in (0.5, 0.5 + 1e-12, -0.5 - 1e-12):  # on the limit
            assert parflex.inverse_dynamics(robot, np.array([rounded, 0.0, 0.0])).shape == (3,)
    with pytest.warns(ParflexWarning, match=r"is at 0.500001, outside its limits \[-0.5, 0.5\]"):
        parflex.inverse_dynamics(robot, np.array([0.500001, 0.0, 0.0]))
    with pytest.warns(ParflexWarning, match=f"joint '{name}' is at 0.6, outside its limits"):
        outside = parflex.inverse_dynamics(robot, q[1], np.zeros(3), np.zeros(3))
    with pytest.warns(ParflexWarning, match="2 of 3 states are answered with a warning: states 1, 2: joint"):
        assert close(parflex.inverse_dynamics(robot, q)[:2], np.array([inside, outside]))


def test_bodies_that_deform_too_far_are_warned_of_and_answered():
    robot = load_robot("rotating-cantilever")
    q = robot.home.copy()
    q[robot.coordinates.index(robot.rates[robot.tree.elastic[1]])] = 0.5 * robot.tree.length
    expected = parflex.forward_dynamics(robot, q, velocity={robot.motors[0]: 0.0})
    assert expected.warnings
    with pytest.warns(ParflexWarning) as said:
        found = parflex.forward_dynamics(robot, q)
    assert [str(one.message) for one in said] == expected.warnings and close(found, expected.accelerations)
    with pytest.warns(ParflexWarning, match="1 of 2 states are answered with a warning: state 1: "):
        assert close(parflex.forward_dynamics(robot, np.array([robot.home, q]))[1], expected.accelerations)


def test_flexible_robots_take_accelerations_of_their_motors():
    robot = robot_of("spin-up")
    q, qd, qdd, effort, _ = states_of("spin-up")
    motors = list(robot.actuated)
    assert close(parflex.inverse_dynamics(robot, q, qd, qdd[:, motors]), effort)
    own = list(robot.independent_rates)
    assert close(parflex.inverse_dynamics(robot, q, qd, qdd[:, own]), effort)
    changed = qdd.copy()
    changed[:, robot.tree.elastic] += 1.0  # bodies are free to deform: these are answers, not questions
    assert close(parflex.inverse_dynamics(robot, q, qd, changed), effort)
    with pytest.raises(InputError, match="'qdd' has the shape"):
        parflex.inverse_dynamics(robot, q[0], qd[0], np.zeros(5))


def test_robots_that_answered_arrays_can_be_pickled_and_answer_threads():
    robot = parflex.load("5r")  # nothing compiled yet
    q, qd, qdd, effort, _ = states_of("5r")
    wrong: list[int] = []

    def ask(row: int) -> None:
        found = [parflex.inverse_dynamics(robot, q[row], qd[row], qdd[row]) for _ in range(200)]
        wrong.extend(row for one in found if not close(one, effort[row]))

    threads = [threading.Thread(target=ask, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    again = pickle.loads(pickle.dumps(robot))
    assert close(parflex.inverse_dynamics(again, q[0], qd[0], qdd[0]), effort[0])


def test_compiling_is_said_once(caplog, monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    with caplog.at_level(logging.WARNING, logger="parflex"):
        for _ in range(2):
            arm = load_robot("planar-arm")  # the second robot finds its program on disk
            for _ in range(2):
                parflex.inverse_dynamics(arm, np.zeros(3))
            parflex.inverse_dynamics(arm, np.zeros(3), wrench=wrench_of(arm), without=["gravity"])
    assert [record.getMessage() for record in caplog.records] == [
        "parflex compiles the inverse dynamics of 'planar-arm': once; the program is kept for later calls",
        f"parflex compiles the inverse dynamics of 'planar-arm' with wrenches on {arm.tree.end_effector} without "
        "gravity: once; the program is kept for later calls",
    ]
