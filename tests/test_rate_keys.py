"""Keys of velocities: names of rates are those rates, other components of frames are in the world."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.ball_arm import BALL_ARM

import parflex
from parflex import configure
from parflex.models.coordinate_words import InWorld

ARM = "tests/robots/sprung-arm.toml"
SPIN = {"shoulder": 0.7, "elbow.wx": 1.0, "elbow.wy": -0.4, "elbow.wz": 0.3}


def kinetic_energy(spin):
    """Of the arm at home, by hand: what its file says, the ball's rate along the axes of the second link."""
    first = Rotation.from_rotvec([np.pi / 2, 0, 0]) * Rotation.from_rotvec([0, 0, 0.4])
    second = first * Rotation.from_rotvec([0.3, -0.2, 0.5])
    w1 = first.apply([0, 0, spin[0]])
    w2 = w1 + second.apply(spin[1:])
    at_ball = np.cross(w1, first.apply([0.4, 0, 0]))
    v1 = np.cross(w1, first.apply([0.2, 0.02, 0.01]))
    v2 = at_ball + np.cross(w2, second.apply([0.15, -0.01, 0.03]))
    own1, own2 = first.inv().apply(w1), second.inv().apply(w2)
    turning = own1**2 @ [0.01, 0.03, 0.025] + own2**2 @ [0.004, 0.01, 0.012]
    return (2.0 * v1 @ v1 + 1.2 * v2 @ v2 + turning) / 2


@pytest.fixture(scope="module")
def arm():
    return parflex.load(ARM)


def test_the_name_of_a_rate_is_that_rate_in_runs(arm):
    run = parflex.simulate(arm, time=1e-3, step=1e-4, method="rk4", start={"velocity": SPIN})
    assert run["energy.kinetic"][0] == pytest.approx(kinetic_energy(np.array(list(SPIN.values()))), rel=1e-12)


def test_the_platform_moves_along_its_own_axes_by_its_rates_and_along_the_world_by_its_coordinates():
    robot = parflex.load("gough-stewart")
    turn = Rotation.from_rotvec([0.1, -0.2, 0.3])
    words = ("x", "y", "z", "rx", "ry", "rz")
    pose = dict(zip(words, (0.02, 0.01, 0.7, *turn.as_rotvec()), strict=True))
    own = np.array([0.3, -0.2, 0.1, 0.5, 0.2, -0.4])
    world = np.concatenate([turn.apply(own[:3]), turn.apply(own[3:])])
    faster = np.array([1.0, 2.0, -0.5, -1.5, 0.7, 0.2])
    efforts = [
        parflex.inverse_dynamics(
            robot, pose, velocity=dict(zip(keys, v, strict=True)), acceleration=dict(zip(keys, a, strict=True))
        ).efforts
        for keys, v, a in (
            (words, world, np.concatenate([turn.apply(faster[:3]), turn.apply(faster[3:])])),
            (robot.rates[:6], own, faster),
        )
    ]
    assert dict(efforts[1]) == pytest.approx(dict(efforts[0]), rel=1e-9)


def test_turns_of_a_ball_are_asked_for_by_its_rates(arm):
    with pytest.raises(parflex.InputError, match=r"'elbow.rx' could be .* write elbow.wx"):
        parflex.inverse_dynamics(arm, velocity={"elbow.rx": 1.0})


def test_turns_by_the_name_of_a_ball_are_its_own_and_those_of_an_end_effector_are_in_the_world():
    robot = parflex.load("tests/robots/satellite.toml")  # its end effector, 'hand', is on a ball on a turned arm
    turn = Rotation.from_rotvec([0.2, -0.3, 0.1])
    asked = dict(zip(("rx", "ry", "rz"), turn.as_rotvec(), strict=True))
    world = parflex.frames(robot, asked)["hand"].rotation
    assert np.asarray(world) == pytest.approx(turn.as_matrix(), abs=1e-9)
    own = parflex.frames(robot, {f"hand.{word}": value for word, value in asked.items()})
    relative = np.asarray(own["left.elbow"].rotation).T @ np.asarray(own["hand"].rotation)
    assert relative == pytest.approx(turn.as_matrix(), abs=1e-12)


def test_a_frame_that_moves_steadily_has_the_accelerations_of_joints_that_differences_of_poses_have():
    robot, speed, h = parflex.load("5r"), {"x": 0.4, "y": 0.3}, 1e-4
    tip = dict(zip("xy", parflex.frames(robot)[robot.tree.end_effector].position, strict=False))
    here = configure(robot, tip)
    q = [configure(robot, {word: tip[word] + t * speed[word] for word in tip}).q for t in (-h, 0.0, h)]
    qd = here.rates(speed)
    found = here.accelerations(dict.fromkeys(speed, 0.0), qd, None)
    # rounding 1e-16 / h^2 and the fourth derivative times h^2 / 12: both about 1e-7
    assert found == pytest.approx((q[0] - 2 * q[1] + q[2]) / h**2, rel=1e-5, abs=1e-6)
    assert np.abs(found).max() > 0.1
    motors = dict(zip(robot.motors, found[[robot.rates.index(name) for name in robot.motors]], strict=True))
    assert here.accelerations(motors, qd, None) == pytest.approx(found, rel=1e-9)


def test_a_design_keeps_the_turn_of_a_ball_that_the_pose_names(tmp_path):
    (tmp_path / "ball-arm.toml").write_text(BALL_ARM)
    robot = parflex.load(tmp_path / "ball-arm.toml")
    pose = {"arm": 0.0, "hand.rx": 0.3, "hand.ry": -0.2, "hand.rz": 0.5}
    found = parflex.sensitivities(robot, "frequency:1", ["frame.link.place.rotation.1"], pose)
    # behind the motor, which is held, everything turns as one body
    assert abs(found.sensitivities["frame.link.place.rotation.1"]["derivative"]) < 1e-9 * found.value
    turned = parflex.sensitivities(
        robot, "frequency:1", ["frame.link.place.rotation.1"], {"arm": 0.0, "rx": 0.3, "ry": -0.2, "rz": 0.5}
    )
    assert abs(turned.sensitivities["frame.link.place.rotation.1"]["derivative"]) > 1e-3  # the hand stays in the world


def test_an_end_effector_on_a_ball_is_led_in_the_world():
    robot = parflex.load("tests/robots/satellite.toml")
    asked = Rotation.from_rotvec([0.2, -0.3, 0.1])
    words = dict(zip(("qw", "qx", "qy", "qz"), np.roll(asked.as_quat(), 1), strict=True))
    place = parflex.frames(robot)["hand"].position
    pose = {InWorld(f"hand.{word}"): value for word, value in {**dict(zip("xyz", place, strict=True)), **words}.items()}
    found = parflex.frames(robot, pose)["hand"]
    assert np.asarray(found.rotation) == pytest.approx(asked.as_matrix(), abs=1e-9)
    assert np.asarray(found.position) == pytest.approx(place, abs=1e-9)
