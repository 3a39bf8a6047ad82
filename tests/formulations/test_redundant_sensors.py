"""Sensors in passive joints: the redundant model against the paper's matrices, Pinocchio and itself in other forms."""

from functools import cache

import numpy as np
import pytest
from support.cases import VERIFY
from support.catalogue import CATALOGUE, RIGID
from support.comparison import positions
from support.oracles import three_rrr
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.three_legs_states import CROSSING, MODES, as_file, draw, signs_of, varied
from support.traced import made

import parflex
from parflex import (
    ActuationError,
    Configuration,
    InputError,
    Robot,
    RobotFileError,
    SingularError,
    UnreachableError,
    geometry_from_sensors,
)
from parflex.formulations.redundant_sensors import redundant_effort, redundant_matrices, redundant_sets, singular_steps
from parflex.robot.load import acting_robot

# both sides solve systems of condition up to 1e2 (states near a singularity are drawn anew) in double precision, 1e-16:
# rounding leaves 1e-13; the proof asks for 1e-11
TOLERANCE = 1e-11
LEG = ("elbow", "rod", "wrist")
MOTORS_ALONE = ["3rrr", "5r", "gough-stewart", "delta", "c5", "space", "3-prrr", "rx90"]
SENSED = {  # robot and sensed joints; None: those of the file
    "plane, all": ("3rrr", None),
    "plane, one": ("3rrr", ("leg2.2",)),
    "no platform, all": ("5r", None),
    "no platform, one": ("5r", ("right.2",)),
    "space, all": ("gough-stewart", None),
    "space, some": ("gough-stewart", ("leg1.1", "leg1.2", "leg4.1")),
    "rotation rows, some": ("delta", tuple(f"leg{leg}.elbow" for leg in (1, 2, 3))),
    "rotation rows, all": ("delta", tuple(f"leg{leg}.{joint}" for leg in (1, 2, 3) for joint in LEG)),
}


@cache
def sensing(name: str, joints: tuple[str, ...] | None) -> Robot:
    robot = parflex.load(name)
    return robot if joints is None else robot.sensing(joints)


def controlled(robot: Robot) -> tuple[list[int], list[int]]:
    """Numbers of the rates, and of the positions, of motors and sensors."""
    names = parflex.redundant_model(robot).names
    return [robot.rates.index(name) for name in names], [robot.coordinates.index(name) for name in names]


def effort_of(robot: Robot, at: Configuration, rates: np.ndarray, accelerations: np.ndarray, **words) -> np.ndarray:
    """D qdd + C qd + G of the rates of motors and sensors."""
    own, _ = controlled(robot)
    velocity = {name: float(rates[robot.rates.index(name)]) for name in at.independent_names}
    found = parflex.redundant_model(robot, at, velocity, **words)
    return found.D @ accelerations[own] + found.C @ rates[own] + found.G - found.F_ext


def moving(robot: Robot, count: int, seed: int) -> list[tuple[Configuration, np.ndarray, np.ndarray]]:
    """Closed poses around home, away from singularities, with rates and accelerations that the loops allow."""
    rng, result, tree = np.random.default_rng(seed), [], robot.tree
    home = Configuration(robot, robot.home)

    def allowed(at: Configuration, size: float) -> np.ndarray:
        motion = np.zeros(tree.n)
        motion[robot.free] = at.null_space @ rng.standard_normal(at.null_space.shape[1])
        return size * motion / np.abs(motion).max() * tree.rate_units

    for _ in range(20 * count):
        start = tree.moved(robot.home, allowed(home, rng.uniform(0, 0.25)))
        q, error = robot.assembler.newton(start, robot.free, list(robot.closures.loops))
        at = Configuration(robot, q)
        condition = at.condition
        if error > 1e-12 or max(condition.platform, condition.closures, *condition.legs.values()) > 1e2:
            continue
        rates = allowed(at, 5.0)
        result.append((at, rates, allowed(at, 50.0) + at.acceleration_bias(rates)))
        if len(result) == count:
            break
    assert len(result) == count
    return result


@pytest.mark.few
@pytest.mark.parametrize("share", [0.0, 0.05], ids=["nominal", "5 %"])
@pytest.mark.parametrize("mode", MODES)
def test_efforts_equal_those_of_pinocchio_with_multipliers(mode, share, tmp_path, figure):
    p = varied(share, 11)
    path = as_file(p, tmp_path)
    robot, oracle = parflex.load(path, working_mode=mode), PinocchioTree(read_robot(path))
    states = draw(p, mode, 200 if VERIFY else 40, 7)
    ours = parflex.model(robot, "redundant")(q=states.positions, qd=states.qd, qdd=states.qdd)["effort"]
    worst, names = 0.0, robot.actuated_names
    for q, qd, qdd, tau in zip(states.positions, states.qd, states.qdd, ours, strict=True):
        rates, accelerations = (dict(zip(names, values[:3], strict=True)) for values in (qd, qdd))
        expected = oracle.inverse(dict(zip(robot.tree.position_names, q, strict=True)), rates, accelerations, names)
        wanted = np.array([expected[name] for name in names])
        worst = max(worst, np.abs(tau - wanted).max() / np.abs(wanted).max())
    figure(f"redundant model, mode {mode}, {share:.0%}: against Pinocchio, largest relative error", worst, TOLERANCE)
    assert worst < TOLERANCE


def test_the_file_of_other_numbers_is_the_robot_of_the_catalogue_where_nothing_is_changed(tmp_path):
    other = parflex.load(as_file(three_rrr.Parameters(), tmp_path))
    for own, link in zip(parflex.load("3rrr").tree.links, other.tree.links, strict=True):
        assert np.allclose(own.position, link.position, atol=1e-15)
        # numbers of the same file by another way of adding them
        assert np.allclose(own.body.inertia_matrix(), link.body.inertia_matrix(), rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("mode", ["+-+", "++-"])
def test_matrices_are_those_of_the_paper_also_for_data_that_do_not_fit(mode, tmp_path):
    p = varied(0.05, 2)
    form = redundant_sets(parflex.load(as_file(p, tmp_path), working_mode=mode))
    states, rng = draw(p, mode, 10, 3), np.random.default_rng(4)
    for q, qd in zip(states.positions, states.qd, strict=True):
        q, qd = q + 0.02 * rng.standard_normal(9), qd + rng.standard_normal(6)
        found = redundant_matrices(form, q, qd)
        D, Cqd, G = three_rrr.model(p, q[2], q[[3, 5, 7, 4, 6, 8]], qd)
        # sums of some twenty products
        assert found.D.shape == (3, 6) and np.abs(found.D - D).max() < 1e-13 * np.abs(D).max()
        assert np.abs(found.C @ qd - Cqd).max() < 1e-12 * np.abs(Cqd).max()
        assert np.abs(found.G - G).max() < 1e-13 * np.abs(G).max()


def circle(mode: str, count: int) -> list[np.ndarray]:
    """Positions along the circle of the paper, by its own inverse geometry."""
    p, result = three_rrr.Parameters(), []
    for angle in np.linspace(0, 2 * np.pi, count):
        pose = np.array([0.1 * np.cos(angle), 0.1 * np.sin(angle), 0.0])
        result.append(np.concatenate([pose, three_rrr.inverse_geometry(p, pose, signs_of(mode))[[0, 3, 1, 4, 2, 5]]]))
    return result


@pytest.mark.few
@pytest.mark.parametrize("mode", MODES)
def test_four_working_modes_do_the_circle_without_a_singularity(mode):
    robot = parflex.load("3rrr", working_mode=mode)
    path = circle(mode, 181)
    assert singular_steps(robot, path) == []
    assert max(Configuration(robot, q).condition.platform for q in path[::10]) < 30  # the worst of them is 12


@pytest.mark.few
@pytest.mark.parametrize("mode", CROSSING)
def test_the_other_four_are_reported_to_cross_one(mode):
    robot = parflex.load("3rrr", working_mode=mode)
    path = circle(mode, 181)
    steps = singular_steps(robot, path)
    p = three_rrr.Parameters()
    known = np.sign([three_rrr.determinant(p, q[:3], signs_of(mode)) for q in path])
    assert steps == list(np.flatnonzero(known[1:] * known[:-1] < 0)) and len(steps) == 2
    low, high = (2 * np.pi * (steps[0] + end) / 180 for end in (0, 1))
    for _ in range(45):  # to rounding of the angle
        middle = (low + high) / 2
        pose = np.array([0.1 * np.cos(middle), 0.1 * np.sin(middle), 0.0])
        side = np.sign(three_rrr.determinant(p, pose, signs_of(mode))) == known[steps[0]]
        low, high = (middle, high) if side else (low, middle)
    with pytest.raises(SingularError, match="singular pose of the platform"):
        parflex.redundant_model(robot, {"x": pose[0], "y": pose[1], "theta": 0.0})


def test_the_law_feeds_errors_back_through_the_paper_s_d_and_wraps_angles():
    p, law = three_rrr.Parameters(), parflex.model(parflex.load("3rrr", working_mode="+-+"), "extended-law")
    assert law.parameters == {"Kp": 1517.15, "Kv": 46.05}
    states, rng = draw(p, "+-+", 5, 9), np.random.default_rng(1)
    for q, joints, qd in zip(states.positions, states.q, states.qd, strict=True):
        off, rate, acceleration = rng.standard_normal((3, 6)) * [[0.01], [0.1], [1.0]]
        turns = 2 * np.pi * rng.integers(-2, 3, 6)
        D, Cqd, G = three_rrr.model(p, q[2], joints, qd)
        wanted = D @ (acceleration + 46.05 * rate + 1517.15 * off) + Cqd + G
        given = {"measured": joints, "measured_rate": qd, "qd": qd, "reference": joints + off + turns}
        given |= {"reference_rate": qd + rate, "reference_acceleration": acceleration, "q": q}
        found = law(**{name: given[name] for name in law.inputs})["effort"]
        # whole turns cost the error of 0.01 rad thirteen of sixteen digits less three
        assert np.abs(found - wanted).max() < 1e-11 * np.abs(wanted).max()


@pytest.mark.few("plane, one", "no platform, all")
@pytest.mark.parametrize("case", SENSED)
def test_robots_with_sensed_joints_have_the_efforts_of_pinocchio_and_the_pose_of_their_sensors(case, figure):
    name, joints = SENSED[case]
    robot, oracle = sensing(name, joints), PinocchioTree(read_robot(CATALOGUE / f"{name}.toml"))
    (own, places), rng, worst, tree = controlled(robot), np.random.default_rng(3), 0.0, robot.tree
    form = redundant_sets(acting_robot(robot, ("friction", "springs")))
    for at, rates, accelerations in moving(robot, 5, 5):
        load = {tree.end_effector: rng.uniform(-50, 50, 6) * ([1, 1, 0, 0, 0, 1] if tree.planar else 1)}
        tau = effort_of(robot, at, rates, accelerations, wrench=load)
        given = [dict(zip(robot.motors, each[list(robot.actuated)], strict=True)) for each in (rates, accelerations)]
        expected = oracle.inverse(positions(at), *given, robot.motors, include=("motor_inertia",), wrenches=load)
        wanted = np.array([expected[motor] for motor in robot.motors])
        again = redundant_effort(form, at.q, rates[own], accelerations[own], load)  # as programs are traced
        worst = max(worst, *(np.abs(effort - wanted).max() / np.abs(wanted).max() for effort in (tau, again)))
        start = tree.moved(at.q, 0.02 * rng.standard_normal(tree.n) * tree.rate_units)
        found = geometry_from_sensors(robot, at.q[places], start)
        assert np.abs(found - at.q).max() < 1e-11  # rounding times the condition of the fit
    figure.below(f"redundant model of {case} against Pinocchio, largest relative error", worst, TOLERANCE)


@pytest.mark.few("3rrr", "four-bar", "5r")
@pytest.mark.parametrize("name", RIGID)
def test_every_robot_takes_sensors_in_all_its_passive_joints(name):
    robot = parflex.load(name)
    held = {*robot.actuated, *robot.locked}
    joints = [link.name for link in robot.tree.links if link.joint.kind in ("revolute", "prismatic")]
    robot = robot.sensing([joint for joint in joints if robot.rates.index(joint) not in held])
    for at, rates, accelerations in moving(robot, 2, 4):
        given = [dict(zip(robot.motors, each[list(robot.actuated)], strict=True)) for each in (rates, accelerations)]
        efforts = parflex.inverse_dynamics(robot, at, *given, without=["friction", "springs"]).efforts
        wanted = np.array(list(efforts.values()))
        tau = effort_of(robot, at, rates, accelerations)
        assert np.abs(tau - wanted).max() < TOLERANCE * np.abs(wanted).max()


@pytest.mark.few("3rrr", "rx90")
@pytest.mark.parametrize("name", MOTORS_ALONE)
def test_of_the_motors_alone_the_model_is_square_and_ddot_less_2c_is_skew(name):
    robot, h = sensing(name, ()), 1e-5
    own, places = controlled(robot)
    for at, rates, _ in moving(robot, 2, 2):
        velocity = dict(zip(robot.motors, rates[own], strict=True))
        found = parflex.redundant_model(robot, at, velocity)
        assert np.abs(found.D - found.D.T).max() < 1e-12 * np.abs(found.D).max()
        assert np.linalg.eigvalsh(found.D).min() > 0
        poses = [geometry_from_sensors(robot, at.q[places] + k * h * rates[own], at.q) for k in (-2, -1, 1, 2)]
        ahead = [parflex.redundant_model(robot, Configuration(robot, q), velocity).D for q in poses]
        D_dot = (ahead[0] - 8 * ahead[1] + 8 * ahead[2] - ahead[3]) / (12 * h)
        lopsided = D_dot - 2 * found.C
        # a difference of the fourth order at rates of 5/s: 1e-16 of D times 1e2 (condition) over 1e-5, and (1e-5 5)^4
        assert np.abs(lopsided + lopsided.T).max() < 1e-7 * np.abs(found.C).max()


@pytest.mark.parametrize("name", ["3rrr", "gough-stewart"])
def test_of_data_that_do_not_fit_the_pose_is_the_best_by_least_squares(name):
    """The best rotation of points onto points has a closed form of its own, by singular values (Kabsch)."""
    robot, rng = parflex.load(name), np.random.default_rng(12)
    own, places = controlled(robot)
    off = np.array([0.01, 0.02])[rng.integers(0, 2, len(own))] * rng.uniform(-1, 1, len(own))
    measured = robot.home[places] + off
    found = geometry_from_sensors(robot, measured)
    assert np.array_equal(found[places], measured)
    frames = parflex.frames(robot, Configuration(robot, found))
    ends = np.array([frames[end].position for end in frames if end.endswith(("end", ".3"))])
    held = np.array([robot.tree.places[place].position for place in robot.tree.places if place.endswith("attachment")])
    U, _, Vt = np.linalg.svd((held - held.mean(axis=0)).T @ (ends - ends.mean(axis=0)))
    turn = Vt.T @ np.diag([1, 1, np.linalg.det(Vt.T @ U.T)]) @ U.T
    place, rotation = frames["platform"]
    assert np.abs(rotation - turn).max() < 1e-12  # a fit of condition 10
    assert np.abs(place - (ends.mean(axis=0) - turn @ held.mean(axis=0))).max() < 1e-12
    # the program takes three steps of Newton's method from home, 0.03 away: 0.03^8 is left at most
    again = made(name, "geometry-redundant")(guess=robot.home, measured=measured)["q"]
    assert np.abs(again - found).max() < 1e-11


def test_joints_without_a_sensor_fit_as_well_as_they_can():
    robot, rng = sensing("3rrr", ("leg2.2",)), np.random.default_rng(2)
    own, places = controlled(robot)
    found = geometry_from_sensors(robot, robot.home[places] + 0.01 * rng.uniform(-1, 1, 4))

    def gap(q: np.ndarray) -> float:
        return float(np.sum(robot.closures.residual(Configuration(robot, q).at) ** 2))

    unknown = np.setdiff1d(range(robot.nv), own)
    assert gap(found) > 1e-8  # it cannot close
    for direction in rng.standard_normal((20, len(unknown))):
        step = np.zeros(robot.nv)
        step[unknown] = 1e-4 * direction
        assert gap(robot.tree.moved(found, step)) > gap(found)


def test_the_motors_alone_give_the_assembly():
    robot = sensing("3rrr", ())
    wanted = robot.assemble({"x": 0.05, "y": -0.03, "theta": 0.2})
    found = geometry_from_sensors(robot, wanted[[3, 5, 7]])
    assert np.abs(found - wanted).max() < 1e-11  # rounding times the condition of the pose
    again = made("3rrr", "geometry-motors")(guess=wanted + 1e-3, measured=wanted[[3, 5, 7]])["q"]
    assert np.abs(again - wanted).max() < 1e-11


# `total` of the programs, numbers for parameters, all positions in; a rise is an error, a fall is written here
COUNTS = {
    "3rrr": {"extended-law": 274, "redundant": 238, "classical-law": 454, "geometry-redundant": 319},
    "5r": {"extended-law": 102},
    "gough-stewart": {"extended-law": 1686},
}


def test_the_operators_of_the_laws_are_pinned(figure):
    for name, pinned in COUNTS.items():
        found = {model: made(name, model).counts["total"] for model in pinned}
        for model, total in found.items():
            figure(f"{name} {model}: operators", total, pinned[model])
        assert found == pinned
    assert COUNTS["3rrr"]["extended-law"] <= 600  # what the project aims at


def test_gains_are_parameters_of_the_compiled_law():
    law = made("3rrr", "extended-law")
    given = law.sample | {"reference": law.sample["reference"] + 0.01}
    soft, half, stiff = (law.with_parameters({"Kp": gain})(**given)["effort"] for gain in (0.0, 5e2, 1e3))
    assert np.abs(half - (soft + stiff) / 2).max() < 1e-12 * np.abs(stiff).max()  # linear in the gain, but for rounding


def test_the_door_gives_the_matrices_by_name():
    robot = parflex.load("5r")
    found = parflex.redundant_model(robot, "home", {"left.1": 1.0}, sensed=["right.2"], wrench={"tip": [1, 2, 0]})
    assert found.names == ["left.1", "right.1", "right.2"] and found.motors == ["left.1", "right.1"]
    assert found.D.shape == found.C.shape == (2, 3) and found.G.shape == found.F_ext.shape == (2,)
    light = parflex.redundant_model(robot, "home", without=["gravity"])
    assert not light.G.any() and parflex.redundant_model(robot).G.any()


def test_of_a_joint_with_two_axes_the_marked_one_is_sensed(tmp_path):
    path = tmp_path / "arm.toml"
    text = 'format = 1\nname = "arm"\n[[frame]]\nname = "wrist"\njoint = "universal"\nsensed = [MARKS]\n'
    for marks, names in (("true, false", ["wrist.1"]), ("false, true", ["wrist.2"])):
        path.write_text(text.replace("MARKS", marks))
        assert parflex.load(path).sensed_names == names


def test_a_driven_or_locked_joint_is_not_sensed():
    elbows = {"actuation.elbows": {"actuated": ["left.2", "right.1"]}}
    assert parflex.load("5r", settings=elbows).sensed_names == ["left.2", "right.2"]
    assert parflex.load("5r", settings=elbows, actuation="elbows").sensed_names == ["right.2"]


def loaded(name: str, settings: dict) -> Robot:
    return parflex.load(name, settings=settings)


NO_POSE = (UnreachableError, SingularError)
NOT_DRIVEN, TRUE_FALSE = {"frame.1.actuated": False}, {"legs.frame.2.sensed": [True, False]}
REFUSED = {
    "elastic": (lambda: parflex.redundant_model(parflex.load("dualemps")), InputError, "rigid bodies"),
    "no such joint": (lambda: parflex.load("3rrr").sensing(["leg1.9"]), InputError, "leg1.9"),
    "a motor": (lambda: parflex.load("3rrr").sensing(["leg1.1"]), InputError, "has a motor"),
    "twice": (lambda: parflex.load("3rrr").sensing(["leg1.2", "leg1.2"]), InputError, "listed twice"),
    "direct": (lambda: parflex.model(parflex.load("3rrr"), "redundant-direct"), InputError, "cannot be inverted"),
    "few motors": (lambda: parflex.redundant_model(loaded("bricard", NOT_DRIVEN)), ActuationError, "motors"),
    "a number missing": (lambda: geometry_from_sensors(parflex.load("3rrr"), [0.0] * 5), InputError, "6 finite values"),
    "not a number": (lambda: geometry_from_sensors(parflex.load("5r"), [np.nan] * 4), InputError, "4 finite values"),
    "out of reach": (lambda: geometry_from_sensors(sensing("5r", ()), [3.1, 0.0]), NO_POSE, "pose"),
    "no frame": (lambda: parflex.redundant_model(parflex.load("5r"), wrench={"top": [1, 0, 0]}), InputError, "top"),
    "fixed": (lambda: loaded("gough-stewart", {"frame.b1.sensed": True}), RobotFileError, "cannot be sensed"),
    "marks for axes": (lambda: loaded("3rrr", TRUE_FALSE), RobotFileError, "2 values for 1 axes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence(case):
    call, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words) as caught:
        call()
    assert caught.value.hint and "\n" not in str(caught.value)
