"""Poses by any conditions (directions, distances, joints), and singular poses: against geometry, and Pinocchio."""

import numpy as np
import pytest
import scipy.optimize
from support.catalogue import CATALOGUE
from support.maps import end_effector
from support.oracles import tripod_wrist
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot
from support.robots import any_robot, load_robot, robot_file, write_robot

import parflex
from parflex import ActuationError, Configuration, InputError, ParflexError, SingularError, UnreachableError, configure
from parflex.closure.targets import shortest_rotation, shortest_rotation_rate

MET = 1e-12  # typical lengths: Newton ends far below


@pytest.fixture(scope="module")
def tripod():
    return load_robot("five-axis")


def test_five_conditions_of_a_tool_are_those_of_geometry_written_anew(tripod):
    """The 3-PRS tripod with its wrist, by its lengths and angles alone: Newton from home for place and direction."""
    z = np.array([-0.3, -0.2, 0.95])
    given = {"x": -0.03, "y": -0.02, "z": 0.78, "zx": z[0], "zy": z[1], "zz": z[2]}
    q = parflex.configure(tripod, given).q
    known = dict(zip(tripod.coordinates, q, strict=True))
    expected = tripod_wrist.joints_at(np.array([-0.03, -0.02, 0.78]), z / np.linalg.norm(z))
    for name, value in expected.items():
        assert known[name] == pytest.approx(value, abs=1e-11)  # both Newtons end at rounding of lengths below 1 m


def test_the_direction_of_an_axis_is_that_of_pinocchio():
    robot = parflex.load("puma560")
    given = {"x": 0.3, "y": 0.25, "z": 0.3, "zx": 0.3, "zy": 0.2, "zz": -0.8}
    q = parflex.configure(robot, given).q
    tree = PinocchioTree(read_robot(CATALOGUE / "puma560.toml"))
    place = tree.frame_placement(dict(zip(robot.coordinates, q, strict=True)), robot.tree.end_effector)
    z = np.array([0.3, 0.2, -0.8])
    assert np.abs(place[:3, 2] - z / np.linalg.norm(z)).max() < 1e-12  # Newton ends at rounding
    assert np.abs(place[:3, 3] - [0.3, 0.25, 0.3]).max() < 1e-12


def test_a_distance_and_a_coordinate_place_the_tip_of_a_five_bar():
    robot = parflex.load("5r")
    q = parflex.configure(robot, {"x": 0.03, "distance.base.tip": 0.45}).q
    where = end_effector(robot, q)[0]
    assert where == pytest.approx([0.03, np.sqrt(0.45**2 - 0.03**2), 0.0], abs=1e-13)  # Newton ends at rounding
    same = parflex.configure(robot, {"x": 0.03, "distance.tip~base": 0.45}).q
    assert np.array_equal(q, same)


def test_what_distances_leave_free_is_nearest_to_home():
    robot = load_robot("planar-arm")
    q = parflex.configure(robot, {"distance.base.tip": 0.8}).q
    lengths = np.array([0.5, 0.4, 0.2])

    def away(angles):
        turned = np.cumsum(angles)
        return np.hypot(lengths @ np.cos(turned), lengths @ np.sin(turned)) - 0.8

    best = scipy.optimize.minimize(
        lambda x: np.sum((x - robot.home) ** 2), q + 0.02, constraints={"type": "eq", "fun": away}, tol=1e-12
    )
    assert np.abs(best.x - q).max() < 1e-5  # where the minimizer ends


def test_two_components_have_the_third_of_home_and_three_are_a_direction_of_any_length(tripod):
    p, R = end_effector(tripod)
    place = dict(zip("xyz", map(float, p), strict=True))
    two = parflex.configure(tripod, place | {"zx": -0.45, "zy": -0.2}).q
    third = np.copysign(np.sqrt(1 - 0.45**2 - 0.2**2), R[2, 2])
    assert end_effector(tripod, two)[1][2, 2] == pytest.approx(third, abs=1e-12)
    three = parflex.configure(tripod, place | {"zx": -4.5, "zy": -2.0, "zz": 10 * third}).q
    assert np.abs(two - three).max() < 1e-11  # Newton ends at rounding


def test_a_hand_with_six_freedoms_comes_to_a_direction_by_the_shortest_turn():
    robot = parflex.load("gough-stewart")
    p, R = end_effector(robot)
    z = np.array([0.2, -0.1, 0.97]) / np.linalg.norm([0.2, -0.1, 0.97])
    q = parflex.configure(robot, {"x": 0.02, "zx": z[0], "zy": z[1], "zz": z[2]}).q
    where, there = end_effector(robot, q)
    turn = there @ R.T
    axis = np.cross(R[:, 2], z)
    angle = np.arccos((np.trace(turn) - 1) / 2)
    assert angle == pytest.approx(np.arccos(R[:, 2] @ z), abs=1e-9)  # no turn about the axis itself
    assert np.abs(turn @ axis - axis).max() < 1e-11
    assert where == pytest.approx([0.02, p[1], p[2]], abs=1e-11)  # the rest stays, as with other poses


def test_repeated_conditions_leave_free_coordinates_nearest_to_home():
    robot = parflex.load("delta")
    given = {"z": -0.5, "zx": 0.0, "zy": 0.0, "zz": 1.0}
    q = parflex.configure(robot, given).q
    elsewhere = robot.assemble({"x": 0.1, "y": 0.05, "z": -0.55})
    assert np.abs(robot.assemble(given, elsewhere) - q).max() < 1e-9  # where Newton ends, whatever the way
    assert end_effector(robot, q)[0] == pytest.approx([*end_effector(robot)[0][:2], -0.5], abs=1e-11)


def nearby(robot, rng):
    tree, home = robot.tree, Configuration(robot, robot.home)
    change = home.null_space @ rng.standard_normal(home.null_space.shape[1])
    step = np.zeros(tree.n)
    step[robot.free] = 0.15 * change / np.abs(change).max() * tree.rate_units[robot.free]
    q, error = robot.assembler.newton(tree.moved(robot.home, step), robot.free, list(robot.closures.rows))
    assert error < MET
    return q


def miss(robot, q, words):
    """Return by how much positions miss conditions, in metres and radians."""
    frames, worst = parflex.frames(robot, Configuration(robot, q)), 0.0
    for word, value in words.items():
        frame, _, part = word.rpartition(".")
        if word in robot.coordinates:
            result = q[robot.coordinates.index(word)]
        elif word.startswith("distance."):
            first, second = word.removeprefix("distance.").split("~")
            result = np.linalg.norm(frames[first].position - frames[second].position)
        else:
            position, rotation = frames[frame]
            result = rotation["xyz".index(part[1]), 2] if len(part) == 2 else position["xyz".index(part)]
        worst = max(worst, abs(result - value))
    return worst


def drawn(robot, q, rng):
    """Return some conditions that hold at a pose: places, directions, distances, joints."""
    tree, at, words = robot.tree, parflex.frames(robot, Configuration(robot, q)), {}
    frames = [name for name, place in tree.places.items() if place.link >= 0]
    joints = [link for link in tree.links if link.joint.one_axis]
    for kind in rng.integers(4, size=rng.integers(1, 4)):
        first, second = rng.choice(frames, 2)
        p, R = at[first]
        apart = float(np.linalg.norm(at[second].position - p))
        if kind == 0:
            axis = int(rng.integers(2 if tree.planar else 3))
            words[f"{first}.{'xyz'[axis]}"] = float(p[axis])
        elif kind == 1 and not tree.planar:
            words |= {f"{first}.z{axis}": float(R["xyz".index(axis), 2]) for axis in "xyz"}
        elif kind == 2 and tree.places[first].link != tree.places[second].link and apart > 0.01:
            words = {k: v for k, v in words.items() if k != f"distance.{second}~{first}"}
            words[f"distance.{first}~{second}"] = apart
        elif joints:
            joint = joints[int(rng.integers(len(joints)))]
            words[joint.name] = float(q[joint.q.start])
    return words


FEW = ["puma560", "five-joint-arm", "5r", "five-axis", "serial-arm", "gough-stewart", "scara"]
MANY = ["3rrr", "rx90", "four-bar", "bricard", "delta", "space", "3-prs", "dualemps", "navaro", "struts", "c5"]


@pytest.mark.few
@pytest.mark.parametrize("name", FEW + [pytest.param(name, marks=pytest.mark.verify) for name in MANY])
def test_random_conditions_are_met_in_any_order_of_questions(name):
    robot = any_robot(name)
    rigid, rng = robot.locking(robot.deformations), np.random.default_rng(3)
    result = []
    for _ in range(4):
        words = drawn(robot, nearby(rigid, rng), rng)
        try:
            q = robot.assemble(words)
        except ParflexError as error:  # the pose may stand beyond a singularity of these conditions
            assert "working mode" in error.message
            continue
        assert miss(robot, q, words) < MET * max(robot.tree.length, 1) and Configuration(robot, q).closure_error < MET
        result.append((words, q))
    again = any_robot(name)
    for words, q in reversed(result):
        assert np.array_equal(again.assemble(words), q)
    assert result


@pytest.mark.parametrize("starts", [{}, {"-pi/2": "0"}])
def test_an_arm_with_five_joints_keeps_its_place_beside_a_direction_where_it_can(tmp_path, starts):
    text = robot_file("five-joint-arm").read_text()
    for old, new in starts.items():
        text = text.replace(f'start = "{old}"', f"start = {new}")
    robot = parflex.load(write_robot(tmp_path, text))
    p, R = end_effector(robot)
    kept = 0
    for off in ([0.1, 0.2, 0.0], [-0.3, 0.1, 0.2], [0.2, -0.2, 0.1]):
        given = dict(zip(("zx", "zy", "zz"), R[:, 2] + off, strict=True))
        try:
            whole = robot.assemble(given | dict(zip("xyz", p.tolist(), strict=True)))
        except UnreachableError:
            continue
        assert np.abs(robot.assemble(given) - whole).max() < 1e-9  # where Newton ends, whatever the way
        kept += 1
    assert kept


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"zx": 0, "zy": 0, "zz": 0}, "the direction of 'spindle' is zero"),
        (
            {"zx": 0.9, "zy": 0.9},
            "no direction of 'spindle' has zx = 0.9, zy = 0.9: components of a unit vector are at",
        ),
        ({"spindel.zx": 0.1}, "did you mean 'spindle.zx'"),
        ({"zx": 0.1, "rx": 0.2}, "the rotation of 'spindle' is given twice"),
        ({"zx": 0.1, "spindle.zx": 0.1}, "'zx' and 'spindle.zx' are the same coordinate"),
        ({"distance.base.spindle": -0.1}, "a distance must be positive"),
    ],
)
def test_invalid_conditions_of_poses_are_refused(tripod, given, said):
    with pytest.raises(InputError, match=said):
        parflex.configure(tripod, given)


@pytest.mark.verify
def test_unreachable_directions_are_reported_in_degrees():
    delta = parflex.load("delta")
    with pytest.raises(UnreachableError, match=r"no pose has this direction of 'platform'.*off by 17.5 deg"):
        parflex.configure(delta, {"x": 0.05, "zx": 0.3, "zy": 0.0})  # arcsin(0.3) is 17.46 deg


@pytest.mark.parametrize("distance", [1.1001, 1.3, 5.0])
def test_distances_out_of_reach_are_missed_by_what_the_links_lack(distance):
    with pytest.raises(UnreachableError, match=f"the nearest is off by {distance - 1.1:.4g} m"):
        parflex.configure(load_robot("planar-arm"), {"distance.base.tip": distance})  # links of 0.5, 0.4 and 0.2 m


def test_more_conditions_than_freedoms_are_counted_where_they_contradict_each_other():
    robot = parflex.load("5r")
    with pytest.raises(UnreachableError, match=r"3 conditions are given .*, but the robot has 2 degrees of freedom"):
        parflex.configure(robot, {"x": 0.03, "y": 0.45, "distance.base.tip": 0.48})
    q = parflex.configure(robot, {"x": 0.03, "y": 0.4, "distance.base.tip": float(np.hypot(0.03, 0.4))}).q
    assert end_effector(robot, q)[0] == pytest.approx([0.03, 0.4, 0.0], abs=1e-12)  # they may agree


def test_the_spin_of_the_shortest_rotation_is_that_of_finite_differences():
    z = np.array([0.1, 0.2, 0.9]) / np.linalg.norm([0.1, 0.2, 0.9])

    def d(t):
        v = np.array([np.cos(t), 0.3 * np.sin(2 * t), 0.5 + 0.1 * t])
        return v / np.linalg.norm(v)

    def derivatives(f, t, h=1e-3):  # of fourth order: 1e-12 of the fifth derivative
        values = [f(t + k * h) for k in (-2, -1, 0, 1, 2)]
        first = (8 * (values[3] - values[1]) - (values[4] - values[0])) / (12 * h)
        second = (16 * (values[3] + values[1]) - (values[4] + values[0]) - 30 * values[2]) / (12 * h**2)
        return values[2], first, second

    def spin(t):
        R, R1, _ = derivatives(lambda s: shortest_rotation(z, d(s)), t)
        W = R1 @ R.T
        return float(np.array([W[2, 1], W[0, 2], W[1, 0]]) @ d(t))

    result = shortest_rotation_rate(z, derivatives(d, 0.7))
    assert result == pytest.approx((spin(0.7), derivatives(spin, 0.7)[1]), abs=1e-8)  # differences of differences


DEAD = float(np.arctan2(0.25, 0.35))  # pivot, wall and hook in line


@pytest.mark.parametrize("name", ["arm-on-strut", "arm-on-leg"])
def test_a_motor_at_a_dead_point_is_refused(name):
    robot = load_robot(name)
    with pytest.raises(parflex.SingularError, match=r"with the motors locked, '(arm|leg)' can still move"):
        parflex.inverse_dynamics(robot, {"arm": DEAD})
    beside = parflex.inverse_dynamics(robot, {"arm": DEAD - 1e-6})
    assert any("near a singularity" in text for text in beside.warnings)
    assert parflex.inverse_dynamics(robot, {"arm": 0.1}).warnings == []
    if name == "arm-on-strut":
        with pytest.raises(parflex.SingularError, match="singular pose"):
            parflex.inverse_dynamics(load_robot(name, settings={"frame.arm.start": DEAD}))


def test_arrays_and_programs_report_dead_points():
    robot, still = load_robot("arm-on-strut"), np.zeros(2)
    q = parflex.configure(robot, {"arm": DEAD}).q
    with pytest.raises(parflex.SingularError):
        parflex.inverse_dynamics(robot, q, still, still)
    with pytest.warns(parflex.ParflexWarning, match="1 of 2 states have no answer"):
        both = parflex.inverse_dynamics(robot, np.stack([q, robot.home]), np.zeros((2, 2)), np.zeros((2, 2)))
    assert np.isnan(both[0]).all() and np.isfinite(both[1]).all()
    program = parflex.model(robot, "inverse", coordinates="all", checks=True)
    assert program(q=q, qd=still, qdd=still)["condition"][0] > 1e12
    assert program(q=robot.home, qd=still, qdd=still)["condition"][0] < 1e2


def test_a_rod_linkage_goes_through_its_flat_poses_on_its_branch():
    robot = load_robot("rod-parallelogram")
    with pytest.raises(parflex.SingularError, match="the closures are singular"):
        parflex.mass_matrix(robot, {"crank": 0.0, "rocker": 0.0})
    assert parflex.configure(robot, {"crank": 1e-6, "rocker": 1e-6}).condition.closures > 1e5
    run = parflex.simulate(robot, None, 0.5, step=1e-3)
    assert run["q.crank"].min() < -1 and len(run.summary["changes"]) == 2
    # both arms are the same, so the rod carries nothing
    assert run["q.crank"] == pytest.approx(run["q.rocker"], abs=1e-10)
    assert np.nanmax(np.abs(run["element.rod.force"])) < 1e-3  # of 10 N: rounding, by the distance from flat twice
    assert run.summary["energy_balance_error"] < 1e-9


def refusal(robot, pose=None):
    with pytest.raises(ActuationError) as caught:
        parflex.inverse_dynamics(robot, pose)
    return caught.value


def test_a_rod_between_two_spherical_joints_is_reported_to_spin():
    error = refusal(load_robot("rssr"))
    assert error.message.startswith("'coupler' spins freely about its own axis between two spherical joints")
    assert "universal joint" in error.hint and "actuated" not in error.hint


def test_with_a_motor_less_the_platform_is_named_and_not_the_spins():
    five = {"actuation.five": {"actuated": [f"{leg}.upper" for leg in "abcde"]}}
    error = refusal(load_robot("six-sps", settings=five, actuation="five"))
    assert "5 motors for 6 degrees of freedom" in error.message and "platform" in error.message


def test_too_few_motors_and_a_passive_hinge_are_neither_a_singularity_nor_a_spin():
    for name in ("rssr", "double-four-bar", "cart-pendulum"):
        assert configure(load_robot(name)).condition.warnings == []
    found = parflex.inverse_dynamics(load_robot("cart-pendulum"))
    assert list(found.free) == ["bob"] and "1 motor for 2 degrees of freedom" in found.warnings[-1]


def test_a_dead_point_is_reported_as_such_and_not_as_a_singularity():
    robot = load_robot("slider-crank-flexible")
    (said,) = configure(robot).condition.warnings
    assert "stretched or folded" in said and "singularity" not in said and "inf" not in said
    assert configure(robot, {"crank": 0.5}).condition.warnings == []


def test_legs_that_spin_do_not_hide_a_singular_pose():
    robot, legs = load_robot("six-sps"), ", ".join(f"'{leg}.lower'" for leg in "abcdef")
    assert refusal(robot, {"z": 0.8, "rz": 0.3}).message.startswith(f"{legs} spin freely about their own axis")
    with pytest.raises(SingularError, match="with the motors locked, 'platform"):
        parflex.inverse_dynamics(robot, {"z": 0.8, "rz": np.pi / 2})  # a quarter turn: Fichter's singular pose
