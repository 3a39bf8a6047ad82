"""A four-legged robot with a gear in its plate, and a tripod with a wrist: against other engines and closed forms."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from conftest import CATALOGUE
from scipy.spatial.transform import Rotation
from support.comparison import error_against, largest, nearby_states, order_of, positions, written
from support.oracles.energy import EnergyModel
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot

import parflex
from parflex import Configuration, SingularError, UnreachableError
from parflex.closure.mobility import refuse_other_branch
from parflex.view.scene.skeleton import skeleton

NAMES = ["par4", "3-prs-2r"]
TIGHT = 1e-10  # systems of condition up to 1e4 in double precision
# `total` of the models with numbers for parameters; a rise is an error, a fall is written here
COUNTS = {"par4": {"inverse": 3121}, "3-prs-2r": {"inverse": 898, "direct": 1254}}


@cache
def load(name):
    return parflex.load(name)


@cache
def lagrange(name):
    return EnergyModel(read_robot(CATALOGUE / f"{name}.toml"))


# -- against other engines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_efforts_and_motions_equal_those_of_lagrange_and_of_pinocchio(name, figure):
    oracles = lagrange(name), PinocchioTree(read_robot(CATALOGUE / f"{name}.toml"))
    rng, worst = np.random.default_rng(3), 0.0
    for state in nearby_states(load(name), 6, 1):
        load_on_tool = {load(name).tree.end_effector: rng.uniform(-50, 50, 6)}
        worst = max(worst, *(error_against(oracle, state, load_on_tool) for oracle in oracles))
    figure(f"{name}: inverse model against Lagrange and Pinocchio", worst, TIGHT)
    assert worst < TIGHT


VARIANTS = {  # as users change files: rails that lean inwards; another gear, plate and base
    "3-prs-2r": {
        'mdh = { gamma = "gamma", d = "rail_radius" }': 'place = { position = ["rail_radius*cos(gamma)", '
        '"rail_radius*sin(gamma)", 0], rotation = ["-0.25*sin(gamma)", "0.25*cos(gamma)", 0] }',
        'mdh = { alpha = "pi/2" }': 'place = { rotation = ["pi/2*cos(gamma)", "pi/2*sin(gamma)", 0] }',
    },
    "par4": {"ratio = 4 ": "ratio = 3.7 ", "half_distance = 0.08": "half_distance = 0.07", "0.275": "0.30"},
}


@pytest.mark.parametrize("name", NAMES)
def test_variants_agree_with_both_engines_too(name, tmp_path):
    text = (CATALOGUE / f"{name}.toml").read_text(encoding="utf-8")
    for old, new in VARIANTS[name].items():
        assert old in text
        text = text.replace(old, new)
    path = written(text, tmp_path)
    data = read_robot(path)
    oracles = EnergyModel(data), PinocchioTree(data)
    for state in nearby_states(parflex.load(path), 2, 3):
        assert max(error_against(oracle, state) for oracle in oracles) < TIGHT


@pytest.mark.parametrize("name", NAMES)
def test_accelerations_and_energies_are_those_of_lagrange(name, figure):
    robot, oracle, rng, worst = load(name), lagrange(name), np.random.default_rng(4), 0.0
    order = order_of(robot, oracle)
    back = np.argsort(order)
    for state in nearby_states(robot, 4, 2):
        at, named = state.configuration, positions(state.configuration)
        effort = {motor: float(rng.uniform(-50, 50)) for motor in robot.actuated_names}
        found = parflex.forward_dynamics(robot, at, state.velocity, effort)
        M, c = oracle.mass_matrix_and_bias(named, found.rates[back])
        A, bias = oracle.closure_jacobian(named, found.rates[back])
        force = np.zeros(len(M))
        for motor, value in effort.items():
            force[oracle.coordinates.index(motor)] = value
        whole = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
        qdd = np.linalg.lstsq(whole, np.concatenate([force - c, -bias]), rcond=1e-12)[0][: len(M)][order]
        worst = max(worst, largest(found.accelerations - qdd) / largest(qdd))
        expected = oracle.energy(named, found.rates[back])
        assert parflex.energies(at, found.rates) == pytest.approx(expected, rel=1e-11)
    figure(f"{name}: accelerations against Lagrange", worst, TIGHT)
    assert worst < TIGHT


@pytest.mark.parametrize("name", NAMES)
def test_programs_give_the_efforts_and_accelerations_of_the_robot(name):
    robot = load(name)
    program = {kind: parflex.model(robot, kind) for kind in COUNTS[name]}
    assert {kind: made.counts["total"] for kind, made in program.items()} == COUNTS[name]
    for state in nearby_states(robot, 2, 5):
        result = parflex.inverse_dynamics(robot, state.configuration, state.velocity, state.acceleration)
        own = [robot.tree.rate_names.index(n) for n in program["inverse"].labels["qd"]]
        given = {"q": state.configuration.q, "qd": result.rates[own]}
        efforts = np.array(list(result.efforts.values()))
        out = program["inverse"](**given, qdd=result.accelerations[own])
        assert out["effort"] == pytest.approx(efforts, rel=1e-9, abs=1e-9 * largest(efforts))
        if "direct" not in program:
            continue
        back = program["direct"](**given, effort=efforts)["qdd"]
        assert back == pytest.approx(result.accelerations[own], rel=1e-8, abs=1e-8 * largest(result.accelerations))


# -- closed forms --------------------------------------------------------------------------------------------


def arm_angles(x, y, z, rz):
    """Arms of the Par4 by the closed form of Pierrot2009: each elbow is on a circle and on a sphere about its ball."""
    bar = -rz / 4
    front = np.array([x, y, z + 0.06])
    rear = front - np.array([0.16 * np.cos(bar), 0.16 * np.sin(bar), 0])
    side = np.array([0, 0.08, 0])
    balls = [front + side, rear + side, rear - side, front - side]
    angles = []
    for ball, gamma in zip(balls, np.radians([45, 135, -135, -45]), strict=True):
        outwards = np.array([np.cos(gamma), np.sin(gamma), 0])
        way = ball - 0.275 * outwards  # |way - 0.375 (cos q outwards + sin q z)| = 0.825
        a, b = way @ outwards, way[2]
        c = (way @ way + 0.375**2 - 0.825**2) / (2 * 0.375)
        angles.append(np.arctan2(b, a) + np.arccos(c / np.hypot(a, b)))
    return np.arctan2(np.sin(angles), np.cos(angles))  # the elbows outside


def test_the_arms_of_the_par4_follow_the_closed_form():
    robot, rng = load("par4"), np.random.default_rng(7)
    for k in range(24):
        pose = dict(zip("xyz", [0.08, 0, -0.85] + rng.uniform(-1, 1, 3) * [0.25, 0.25, 0.1], strict=True))
        pose["rz"] = float(rng.uniform(-3.1, 3.1)) if k else np.pi / 2
        q = positions(parflex.configure(robot, pose))
        found = [q[f"{leg}.arm"] for leg in ("front_left", "rear_left", "rear_right", "front_right")]
        assert found == pytest.approx(arm_angles(**pose), abs=1e-11)  # Newton ends at rounding times conditions
        assert q["left_bar"] == pytest.approx(-pose["rz"] / 4, abs=1e-11)  # an eighth of a turn each way is half a turn


def test_the_tripod_moves_aside_as_the_planes_of_its_legs_ask():
    """Closed form of Carretero2000: with tilts about axes in the plane the balls stay in the planes of their rails."""
    robot, rng = load("3-prs-2r"), np.random.default_rng(8)
    for _ in range(12):
        tilt, height, wrist = rng.uniform(-0.3, 0.3, 2), rng.uniform(-0.1, 0.1), rng.uniform(-0.5, 0.5, 2)
        R = Rotation.from_rotvec([*tilt, 0]).as_matrix()
        place = np.array([0.11 * (R[0, 0] - R[1, 1]), -0.22 * R[1, 0], height])
        slides = {}
        for leg, gamma in zip("abc", np.radians([0, 120, -120]), strict=True):
            ball = place + R @ [0.22 * np.cos(gamma), 0.22 * np.sin(gamma), 0]
            assert ball @ [-np.sin(gamma), np.cos(gamma), 0] == pytest.approx(0, abs=1e-14)
            inwards = 0.35 - ball @ [np.cos(gamma), np.sin(gamma), 0]
            slides[f"{leg}.slide"] = ball[2] + np.sqrt(0.45**2 - inwards**2)
        turned = R @ Rotation.from_euler("XY", wrist).as_matrix()
        tip = place + R @ [0, 0, -0.25] + turned @ [0, 0, -0.2]
        position, rotation = parflex.frames(robot, slides | {"A": wrist[0], "B": wrist[1]})["tool"]
        assert position == pytest.approx(tip, abs=1e-11) and largest(rotation - turned) < 1e-11  # as above
        tool = dict(zip(("x", "y", "z", "zx", "zy", "zz"), [*tip, *turned[:, 2]], strict=True))  # point and axis
        q = positions(parflex.configure(robot, tool))
        assert [q[key] for key in (*slides, "A", "B")] == pytest.approx([*slides.values(), *wrist], abs=1e-9)


# -- what they are for ---------------------------------------------------------------------------------------


def test_the_tool_of_the_par4_is_driven_through_its_gear():
    """A torque on the tool is held by the gear: the effort in it is that torque, four times it on the bar."""
    robot = load("par4")
    torque = {"tool": [0, 0, 0, 0, 0, 2.5]}
    found, plain = (parflex.inverse_dynamics(robot, "pick", wrench=w, reactions=True) for w in (torque, None))
    assert found.reactions["couplings"]["gear"]["effort"] == pytest.approx(-2.5, rel=1e-9)
    taken = np.array([plain.efforts[motor] - found.efforts[motor] for motor in robot.actuated_names])
    assert taken == pytest.approx(2.5 * parflex.jacobian(robot, "pick")[5], rel=1e-8, abs=1e-9)  # virtual work


def test_poses_on_another_branch_of_an_over_constrained_robot_are_refused():
    """The Par4 also closes tilted, with its bars turned by a quarter: there it has three freedoms, not four."""
    robot = load("par4")
    tilted = {"front": [0.033, 0.082, -0.42, 0.999, -0.043, -0.02, 0.018], "plate": [1.571, 1.496, -1.645, -6.283]}
    left = [1.042, -3.025, 0.113, -0.209, 0.193, -2.705, -0.033, 0.081]
    right = [1.252, -3.203, 0.161, -0.064, 0.453, -2.819, 0.033, -0.082]
    near = np.array([*tilted["front"], *tilted["plate"], *left, *right])
    q, error = robot.assembler.newton(near, robot.free, robot.closures.rows)
    assert error < 1e-12 and largest(q - near) < 1e-2
    for ask in (lambda at: at.reduction, lambda at: parflex.inverse_dynamics(robot, at)):
        with pytest.raises(SingularError, match="in another way than at home, where they leave 4 motions: here they"):
            ask(Configuration(robot, q))
    refuse_other_branch(np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1e-9, 0]]), 2)  # rounding


@pytest.mark.parametrize(
    ("pose", "word"), [({"z": -0.4, "rz": 0.5}, "misses it"), ({"z": -0.8, "rx": 0.1}, "contradict each other")]
)
def test_a_pose_that_is_too_far_is_not_said_to_contradict_itself(pose, word):
    with pytest.raises(UnreachableError, match=word):
        parflex.configure(load("par4"), {"x": 0.03, "y": 0.08} | pose)


def test_every_named_pose_is_within_the_limits():
    for name in NAMES:
        robot = load(name)
        for pose in robot.description.poses:
            assert not parflex.inverse_dynamics(robot, pose).warnings[len(robot.mobility.redundant) :]


def test_a_wrist_hangs_from_its_platform_in_pictures():
    robot = load("3-prs-2r")
    bones = skeleton(robot)
    points = bones.points(robot.home)
    ends = [(points[edge.first], points[edge.second]) for edge in bones.edges if edge.kind == "platform"]
    assert len(ends) == 4
    assert any(largest(a) < 1e-12 and b == pytest.approx([0, 0, -0.25], abs=1e-12) for a, b in ends)
