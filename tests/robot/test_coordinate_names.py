"""Names of coordinates and rates: with the name of their frame or without, of joints, balls and platforms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.robots import load_robot

import parflex
from parflex.control.references import from_function
from parflex.robot.coordinate_names import WorldName

PLACES = np.array([[0.0, 0.0, 0.0], [0.01, 0.02, 3.0], [0.02, -0.01, -4.0], [5.0, 0.0, 0.0]])  # m, m, deg
IN_RADIANS = PLACES * [1.0, 1.0, np.pi / 180]
PLAIN = ["x", "y", "theta"]
SPELLINGS = [
    (["platform.x", "platform.y", "platform.theta"], IN_RADIANS),
    (["x", "platform.y", "theta_deg"], PLACES),
    (["platform.x", "y", "platform.theta_deg"], PLACES),
]


@pytest.fixture(scope="module")
def flexible():
    return parflex.load("3rrr-flexible")


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("5r", {"x": 0.05, "y": 0.5}, {"tip.x": 0.05, "y": 0.5}),
        ("5r", {"left.1": 2.5}, {"qleft.1": 2.5}),
        ("3rrr", {"x": 0.02, "y": 0.01, "theta": np.pi / 36}, {"platform.x": 0.02, "y": 0.01, "platform.theta_deg": 5}),
        ("par4", {"z": -0.8, "rz": 0.2}, {"tool.z": -0.8, "tool.rz": 0.2}),
        ("3-prs-2r", {"zx": 0.1, "zy": 0.05}, {"tool.zx": 0.1, "zy": 0.05}),
    ],
)
def test_poses_are_the_same(name, one, other):
    robot = parflex.load(name)
    assert np.array_equal(robot.assemble(one), robot.assemble(other))


@pytest.mark.parametrize(("words", "poses"), SPELLINGS)
def test_frequencies_and_responses_at_many_poses_are_the_same_by_the_same_path(flexible, words, poses):
    designs = {"constants.proximal": [0.5, 0.49, 0.51, 0.5]}
    for given in (None, designs):
        wanted = parflex.many_frequencies(flexible, PLAIN, IN_RADIANS, 2, designs=given)
        found = parflex.many_frequencies(flexible, words, poses, 2, designs=given)
        assert found.status.tolist() == wanted.status.tolist() == [0, 0, 0, 1]
        assert np.array_equal(found.frequencies, wanted.frequencies, equal_nan=True)
        assert (found.fallbacks, found.reason, found.reasons) == (wanted.fallbacks, "", wanted.reasons)
        assert found.fallbacks <= 1  # the first design of a batch is checked
    wanted = parflex.many_responses(flexible, PLAIN, IN_RADIANS, ["stiffness:x", "deflection:platform.y"])
    found = parflex.many_responses(flexible, words, poses, ["stiffness:platform.x", "deflection:y"])
    assert (found.method, found.fallbacks, found.reason) == ("one by one", 0, wanted.reason)
    for one, other in zip(found.responses.values(), wanted.responses.values(), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_maps_are_the_same(flexible):
    axes = [("x", 0.0, 0.02, 2), ("y", -0.01, 0.01, 2)]
    wanted = parflex.frequency_map(flexible, axes, {"theta": float(np.radians(3))}, 2)
    over = [("platform.x", 0.0, 0.02, 2), ("y", -0.01, 0.01, 2)]
    found = parflex.frequency_map(flexible, over, {"platform.theta_deg": 3}, 2)
    assert list(found.axes) == ["platform.x", "y"] and np.array_equal(found.frequencies, wanted.frequencies)
    assert (found.method, found.reason, found.fallbacks) == (wanted.method, wanted.reason, 0)


@pytest.mark.parametrize("words", [("x", "tip.x"), ("tip.x", "x")])
def test_one_coordinate_by_two_names_is_refused(words):
    robot = parflex.load("5r")
    said = f"'{words[0]}' and '{words[1]}' are the same coordinate; keep one of them"
    asks = [
        lambda: robot.assemble(dict.fromkeys(words, 0.1)),
        lambda: parflex.many_frequencies(robot, words, [[0.0, 0.5]]),
        lambda: parflex.many_responses(robot, words, [[0.0, 0.5]], ["conditioning"]),
        lambda: parflex.frequency_map(robot, [(words[0], 0, 0.1, 2)], {words[1]: 0.5}),
        lambda: parflex.sensitivities(robot, f"area:{words[0]},0,0.1,2;{words[1]},0.4,0.5,2", ["constants.proximal"]),
    ]
    for ask in asks:
        with pytest.raises(parflex.InputError) as error:
            ask()
        assert said in str(error.value)


SWEEP = """
robot = "3rrr"
[variables.constants.proximal]
lower = 0.48
upper = 0.52
[responses.factor]
response = "conditioning"
region = {{ "{frame}x" = [-0.02, 0.02, 2], "{frame}y" = [0.0, 0.01, 2] }}
[responses.ratio]
response = "conditioning"
pose = {{ "{frame}x" = 0.01, y = 0.0, "{frame}theta_deg" = 2.0 }}
[responses.cells]
response = "area:{frame}x,-0.2,0.2,8;{frame}theta_deg,{low},{high},2"
[samples]
kind = "grid"
count = 2
"""


def test_sweeps_with_regions_and_areas_are_the_same(tmp_path):
    tables = []
    for frame in ("", "platform."):
        (tmp_path / "sweep.toml").write_text(SWEEP.format(frame=frame, low=-18 / np.pi, high=18 / np.pi))
        tables.append(parflex.sweep(tmp_path / "sweep.toml", tmp_path / f"rows{frame}.npz", jobs=1))
    for name, values in tables[0].responses.items():
        assert tables[0].status.tolist() == [0, 0] and np.array_equal(values, tables[1].responses[name])


def test_studies_are_the_same():
    head = {"robot": "3rrr", "working_mode": "+-+", "percentages": (1.0,), "templates": 1, "seed": 4}
    words = ({"x": 0.01, "theta_deg": 2}, {"platform.x": 0.01, "platform.theta_deg": 2})
    files = [parflex.StudyFile(**head, reference={"kind": "line", "time": 0.05, **line}) for line in words]
    one, other = (parflex.run_study(file, jobs=1).cases for file in files)
    assert one == other


def test_references_by_functions_of_time_are_the_same():
    robot = parflex.load("3rrr")
    laws = [lambda t: {"x": 0.1 * t}, lambda t: {"platform.x": 0.1 * t}]
    one, other = (from_function(robot, law, 0.05).at(0.02).position.tolist() for law in laws)
    assert one == other
    with pytest.raises(parflex.InputError, match=r"'x' and 'platform\.x' are the same coordinate"):
        from_function(robot, lambda t: {"x": 0.1 * t, "platform.x": 0.1 * t}, 0.05)


def test_rotations_of_a_ball_by_its_name_stay_its_own():
    robot = load_robot("ball-at-arm")
    own = robot.assemble({"arm": 0.3, "hand.rz": 0.2})
    world = robot.assemble({"arm": 0.3, "rz": 0.2})
    ball = robot.tree.links[robot.tree.number("hand")].q
    assert own[ball] == pytest.approx([np.cos(0.1), 0, 0, np.sin(0.1)], abs=1e-12)
    assert world[ball] == pytest.approx([np.cos(-0.3), 0, 0, np.sin(-0.3)], abs=1e-9)  # 0.2 less 0.3 and 0.5


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


@pytest.mark.verify
def test_the_name_of_a_rate_is_that_rate_in_runs(arm):
    run = parflex.simulate(arm, time=1e-3, step=1e-4, method="rk4", start={"velocity": SPIN})
    assert run["energy.kinetic"][0] == pytest.approx(kinetic_energy(np.array(list(SPIN.values()))), rel=1e-12)


@pytest.fixture(scope="module")
def arm():
    return load_robot("sprung-arm")


def test_the_name_of_a_rate_is_that_rate(arm):
    kinetic = parflex.energies(arm, "home", SPIN).kinetic
    assert kinetic == pytest.approx(kinetic_energy(np.array(list(SPIN.values()))), rel=1e-12)


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
    robot = load_robot("satellite")  # its end effector, 'hand', is on a ball on a turned arm
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
    here = parflex.configure(robot, tip)
    q = [parflex.configure(robot, {word: tip[word] + t * speed[word] for word in tip}).q for t in (-h, 0.0, h)]
    qd = here.rates(speed)
    found = here.accelerations(dict.fromkeys(speed, 0.0), qd, None)
    # rounding 1e-16 / h^2 and the fourth derivative times h^2 / 12: both about 1e-7
    assert found == pytest.approx((q[0] - 2 * q[1] + q[2]) / h**2, rel=1e-5, abs=1e-6)
    assert np.abs(found).max() > 0.1
    motors = dict(zip(robot.motors, found[[robot.rates.index(name) for name in robot.motors]], strict=True))
    assert here.accelerations(motors, qd, None) == pytest.approx(found, rel=1e-9)


def test_a_design_keeps_the_turn_of_a_ball_that_the_pose_names():
    robot = load_robot("ball-arm")
    pose = {"arm": 0.0, "hand.rx": 0.3, "hand.ry": -0.2, "hand.rz": 0.5}
    found = parflex.sensitivities(robot, "frequency:1", ["frame.link.place.rotation.1"], pose)
    # behind the motor, which is held, everything turns as one body
    assert abs(found.sensitivities["frame.link.place.rotation.1"]["derivative"]) < 1e-9 * found.value
    world = {"arm": 0.0, "rx": 0.3, "ry": -0.2, "rz": 0.5}
    turned = parflex.sensitivities(robot, "frequency:1", ["frame.link.place.rotation.1"], world)
    assert abs(turned.sensitivities["frame.link.place.rotation.1"]["derivative"]) > 1e-3  # the hand stays in the world


def test_an_end_effector_on_a_ball_is_led_in_the_world():
    robot = load_robot("satellite")
    asked = Rotation.from_rotvec([0.2, -0.3, 0.1])
    words = dict(zip(("qw", "qx", "qy", "qz"), np.roll(asked.as_quat(), 1), strict=True))
    place = parflex.frames(robot)["hand"].position
    values = dict(zip("xyz", place, strict=True)) | words
    pose = {WorldName(f"hand.{word}"): value for word, value in values.items()}
    found = parflex.frames(robot, pose)["hand"]
    assert np.asarray(found.rotation) == pytest.approx(asked.as_matrix(), abs=1e-9)
    assert np.asarray(found.position) == pytest.approx(place, abs=1e-9)
