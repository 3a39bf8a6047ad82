"""What people ask of a robot, by Python and by the command line, and what cannot be asked of it."""

import numpy as np
import pytest
from support.changed_files import FIVE_BAR
from support.command_line import answered, refused
from support.robots import write_robot

import parflex
from parflex import ActuationError, InputError, ParflexError, RobotFileError, SingularError, configure
from parflex.cli.output import as_options

HEXAPOD = "gough-stewart"


def efforts(robot, at=None, **options) -> np.ndarray:
    return np.array(list(parflex.inverse_dynamics(robot, at, **options).efforts.values()))


@pytest.mark.verify
def test_words_of_a_pose_mean_the_same_in_other_units_and_coordinates(capsys):
    def q(robot, words):
        return answered(capsys, "pose", robot, "--pose", words)["q"]

    turn = np.array([0.1, -0.2, 0.3])
    angle = np.linalg.norm(turn)
    quaternion = [float(np.cos(angle / 2)), *(np.sin(angle / 2) * turn / angle).tolist()]
    words = ",".join(f"{name}={value!r}" for name, value in zip(("qw", "qx", "qy", "qz"), quaternion, strict=True))
    assert q(HEXAPOD, f"z=1.1,{words}") == pytest.approx(q(HEXAPOD, "z=1.1,rx=0.1,ry=-0.2,rz=0.3"), abs=1e-12)
    pose = q("3rrr", "x=0.02,theta_deg=12")
    assert pose["platform.theta"] == pytest.approx(np.radians(12), rel=1e-15)
    assert pose == q("3rrr", "x=1/50,theta=12*deg")
    assert q("puma560", "2_deg=30")["2"] == pytest.approx(np.pi / 6, rel=1e-15)
    assert q("puma560", "q2=0.3") == q("puma560", "2=0.3")  # a name may have a q in front


def test_a_free_body_that_is_mounted_with_an_offset_goes_where_the_pose_says(tmp_path):
    place = 'place = { position = [1, 0, 0], rotation = [0, 0, "pi/2"] }'
    text = f'format = 1\nname = "body"\n[[frame]]\nname = "b"\njoint = "free"\n{place}\ninertia = {{ mass = 1 }}\n'
    robot = parflex.load(write_robot(tmp_path, text))
    for pose in ({"x": 2}, {"x": 2, "y": 3, "z": 4}, {"x": 2, "rz": 0.3}):
        position, rotation = parflex.frames(robot, configure(robot, pose))["b"]
        assert position == pytest.approx([2, pose.get("y", 0), pose.get("z", 0)], abs=1e-9)
        assert np.arctan2(rotation[1, 0], rotation[0, 0]) == pytest.approx(pose.get("rz", np.pi / 2), abs=1e-9)


def test_a_turn_of_the_platform_and_a_place_of_its_point_go_together():
    robot = parflex.load(HEXAPOD)
    configuration = configure(robot, {"rz": 0.1, "leg1.attachment.x": 0.1})
    places = parflex.frames(robot, configuration)
    assert places["leg1.attachment"][0][0] == pytest.approx(0.1, abs=1e-9)
    assert places["platform"][1][1, 0] == pytest.approx(np.sin(0.1), abs=1e-9)


def test_numbers_of_numpy_are_numbers():
    robot = parflex.load("3rrr", settings={"constants.arm": np.float64(0.1732), "gravity": np.array([0, -9.81, 0])})
    assert efforts(robot, {"x": np.float64(0.01), "y": np.int64(0)}) == pytest.approx(efforts(robot, {"x": 0.01}))
    with pytest.raises(InputError, match="'x' needs a number"):
        robot.assemble({"x": "0.1"})


def test_settings_change_the_file_at_every_level():
    def loaded(key, value):
        return parflex.load("3rrr", settings={key: value}).description

    assert loaded("constants.arm", 0.2).point[1].position[0] == pytest.approx(-0.2 * np.cos(np.pi / 6))
    assert loaded("platform.inertia.mass", "2*3").platform.inertia.mass == 6
    assert loaded("legs.frame.2.inertia.mass", 7).frame[1].inertia.mass == 7
    assert loaded("legs.base_x.1", 0.7).frame[2].place.position[0] == 0.7
    assert loaded("gravity.1", -1).gravity == (0, -1, 0)
    assert loaded("poses.other.x", 0.1).poses["other"] == {"x": 0.1}
    assert loaded("legs.frame.1.damper", 3).frame[0].damper == 3
    moved = parflex.load(HEXAPOD, settings={"frame.b1.place.position": [1, 2, 3]}).description
    assert moved.frame[0].place.position == (1, 2, 3)


def test_settings_on_the_command_line_mean_the_same(capsys):
    options = ["--set", "platform.inertia.mass=2", "--set", "constants.proximal=1/2", "--set", "gravity=[0, -5, 0]"]
    settings = {"platform.inertia.mass": 2, "constants.proximal": 0.5, "gravity": [0, -5, 0]}
    robot = parflex.load("3rrr", settings=settings)
    assert list(answered(capsys, "inverse", "3rrr", *options)["efforts"].values()) == pytest.approx(efforts(robot))


def test_a_payload_is_a_point_mass_of_the_file(capsys):
    state = {"velocity": {"x": 0.3, "rz": 0.5}, "acceleration": {"z": 2, "ry": 1}}
    written = parflex.load(HEXAPOD, settings={"platform.point_masses": [{"mass": 20, "position": [0.1, 0.2, 0.3]}]})
    carried = parflex.load(HEXAPOD, payload=[20, 0.1, 0.2, 0.3])
    pose = {"z": 1.1, "rx": 0.1}
    assert efforts(carried, pose, **state) == pytest.approx(efforts(written, pose, **state), rel=1e-12)
    assert np.abs(efforts(carried, pose, **state) - efforts(parflex.load(HEXAPOD), pose, **state)).max() > 1
    shown = answered(capsys, "inverse", HEXAPOD, "--payload", "20,0.1,0.2,0.3")["efforts"]
    assert list(shown.values()) == pytest.approx(efforts(carried))


def test_a_wrench_on_the_command_line_has_the_same_sign(capsys):
    still = answered(capsys, "inverse", "c5")["efforts"]
    lifted = answered(capsys, "inverse", "c5", "--wrench", "platform=0,0,20,3,-3,0")["efforts"]
    assert lifted["leg5.rod"] + lifted["leg6.rod"] == pytest.approx(still["leg5.rod"] + still["leg6.rod"] - 20)


def test_left_out_terms_do_not_act(capsys):
    motion = ["--velocity", "x=0.5", "--acceleration", "z=1"]
    whole = answered(capsys, "inverse", "delta", *motion)["efforts"]
    bare = answered(capsys, "inverse", "delta", *motion, "--without", "friction,motor-inertia,gravity")["efforts"]
    assert all(abs(whole[name] - bare[name]) > 0.1 for name in whole)
    without = {"gravity": [0, 0, 0], "legs.frame.arm.friction": {}, "legs.frame.arm.motor_inertia": 0}
    robot = parflex.load("delta", settings=without)
    state = {"velocity": {"x": 0.5}, "acceleration": {"z": 1}}
    assert list(bare.values()) == pytest.approx(efforts(robot, **state), rel=1e-10)


def test_an_actuation_that_leaves_a_motion_free_names_it(capsys, tmp_path):
    file = write_robot(tmp_path, FIVE_BAR + '\n[actuation.one]\nactuated = ["left.shoulder"]\n')
    answer = answered(capsys, "inverse", file, "--actuation", "one")
    assert list(answer["efforts"]) == ["left.shoulder"] and len(answer["free"]) == 1
    assert set(answer["free"]) <= {"right.shoulder", "left.elbow", "right.elbow"}
    assert "1 motor for 2 degrees of freedom" in answer["warnings"][-1]
    error = refused(capsys, "codegen", file, "step", "--actuation", "one", "--target", "c", "-o", "none")
    assert (
        error["kind"] == "actuation"
        and error["value"] == "one"
        and "1 motor for 2 degrees of freedom" in error["message"]
    )
    for verb in ("info", "pose", "direct"):
        answered(capsys, verb, file, "--actuation", "one")


def test_errors_of_python_are_those_of_the_command_line(capsys):
    calls = {
        RobotFileError: (lambda: parflex.load("3rr"), ["info", "3rr"]),
        InputError: (lambda: configure(parflex.load("3rrr"), {"z": 1}), ["pose", "3rrr", "--pose", "z=1"]),
        SingularError: (
            lambda: parflex.inverse_dynamics(parflex.load(HEXAPOD), {"z": 0}),
            ["inverse", HEXAPOD, "--pose", "z=0"],
        ),
        ActuationError: (
            lambda: parflex.inverse_dynamics(parflex.load("5r", settings={"legs.frame.0.actuated": False})),
            ["inverse", "5r", "--set", "legs.frame.0.actuated=false"],
        ),
    }
    for kind, (call, arguments) in calls.items():
        with pytest.raises(ParflexError) as refusal:
            call()
        assert type(refusal.value) is kind
        told = refusal.value.as_dict()
        told["hint"] = as_options(told["hint"] or "", told["kind"] == "robot-file") or None  # options for arguments
        assert refused(capsys, *arguments) == told


def test_a_frame_that_is_not_there_is_refused_by_name():
    robot = parflex.load("5r")
    result = parflex.inverse_dynamics(robot)
    for ask in (lambda: parflex.jacobian(robot, None, "tipp"), lambda: result.acceleration_of("tipp")):
        with pytest.raises(InputError, match="did you mean 'tip'"):
            ask()


def test_base_parameters_of_a_robot_that_bends_are_refused_in_words():
    with pytest.raises(InputError, match="flexible"):
        parflex.base_parameters(parflex.load("dualemps"))
    for samples in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="samples"):
            parflex.base_parameters(parflex.load("5r"), samples)
