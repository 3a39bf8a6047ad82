"""Assembly of poses by reach and working modes; closures against Lagrange and their openings."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.comparison import largest, nearby_states, order_of, positions
from support.oracles.energy import EnergyModel
from support.oracles.reader import read_robot
from support.robots import load_robot, robot_file, write_robot

import parflex
from parflex import Configuration
from parflex.closure.assembler import Assembler
from parflex.closure.mobility import pivoted_columns
from parflex.closure.targets import FrameTarget, Target
from parflex.closure.unreachable import missing_length
from parflex.recursion.kinematics import motion

WITH_PLATFORM = ["3-prrr", "3rrr", "c5", "delta", "gough-stewart", "space"]


def wrapped(robot, q, other):
    """Differences of positions; angles of revolute joints count between -pi and pi."""
    difference = np.array(q) - other
    for link in robot.tree.links:
        if link.joint.kind == "revolute":
            difference[link.q] = np.arctan2(np.sin(difference[link.q]), np.cos(difference[link.q]))
    return difference


@pytest.mark.few
@pytest.mark.parametrize("mode", ["".join(signs) for signs in itertools.product("+-", repeat=3)])
def test_a_working_mode_of_the_3rrr_keeps_its_signs(mode):
    robot = parflex.load("3rrr", working_mode=mode)
    for pose in ("home", {"x": 0.1, "y": -0.05, "theta": 0.3}, {"x": -0.1, "y": 0.02, "theta": -0.2}):
        configuration = parflex.configure(robot, pose)
        found = "".join("+" if np.sin(positions(configuration)[f"leg{k}.2"]) > 0 else "-" for k in (1, 2, 3))
        assert found == mode
        assert configuration.closure_error < 1e-12  # Newton ends at rounding: 1e-16 of a metre


def test_without_signs_a_leg_stays_on_the_side_it_has_at_home():
    robot = parflex.load("5r")
    at_home = np.sign(np.sin([positions(parflex.configure(robot))[name] for name in ("left.2", "right.2")]))
    for x, y in ((0.15, 0.5), (-0.2, 0.45), (0.0, 0.62), (0.3, 0.35)):
        there = positions(parflex.configure(robot, {"x": x, "y": y}))
        assert np.array_equal(np.sign(np.sin([there["left.2"], there["right.2"]])), at_home)


def leg_closes(robot, configuration, solution):
    """Largest opening of the loops of a leg with these joint values, the platform where it stands."""
    q = configuration.q.copy()
    for name, value in solution.items():
        q[robot.tree.position_names.index(name)] = value
    leg = next(iter(solution)).split(".")[0]
    at = parflex.Configuration(robot, q).at
    return max(largest(loop.residual(at, 1.0)) for loop in robot.closures.loops if leg in loop.name)


@pytest.mark.parametrize("pose", [{}, {"x": 0.1, "y": 0.05, "theta": 0.4}, {"x": -0.15, "theta": -0.5}])
def test_a_leg_of_two_bars_has_two_solutions(pose):
    robot = parflex.load("3rrr")
    configuration = parflex.configure(robot, pose or "home")
    for solutions in parflex.geometric_solutions(robot, configuration).values():
        assert len(solutions) == 2
        elbows = [np.sin(value) for solution in solutions for name, value in solution.items() if name.endswith(".2")]
        assert abs(sum(elbows)) < 1e-9  # mirror images about the line from foot to attachment; closed to 1e-10
        # loops close to 1e-10 of a length
        assert max(leg_closes(robot, configuration, solution) for solution in solutions) < 1e-9


@pytest.mark.parametrize("name", ["gough-stewart", "space"])
def test_a_leg_with_a_cross_and_a_stroke_has_four_solutions(name):
    robot = parflex.load(name)
    configuration = parflex.configure(robot)
    for leg, solutions in parflex.geometric_solutions(robot, configuration).items():
        strokes = [solution[f"{leg}.3"] for solution in solutions]
        assert len(solutions) == 4 and sum(stroke < 0 for stroke in strokes) == 2  # the leg pointing backwards
        assert max(leg_closes(robot, configuration, solution) for solution in solutions) < 1e-9
        assert largest(np.abs(strokes) - abs(positions(configuration)[f"{leg}.3"])) < 1e-9  # one length, two signs
        for one, other in itertools.combinations(solutions, 2):
            turns = [np.sin((one[key] - other[key]) / 2) for key in one if not key.endswith(".3")]
            assert max(largest(turns), abs(one[f"{leg}.3"] - other[f"{leg}.3"])) > 1e-3


@pytest.mark.few
@pytest.mark.parametrize("name", WITH_PLATFORM)
def test_direct_geometry_undoes_inverse_geometry(name, figure):
    robot, worst = parflex.load(name), 0.0
    for state in nearby_states(robot, 8, 31, size=0.1):  # farther away the same motors may mean another assembly
        first = state.configuration
        by_motors = {motor: float(positions(first)[motor]) for motor in robot.motors}
        second = parflex.Configuration(robot, robot.assemble(by_motors))
        worst = max(worst, largest(wrapped(robot, second.q, first.q)))
    figure(f"{name}: direct o inverse geometry, largest difference", worst, 1e-9)
    assert worst < 1e-9  # loops closed to 1e-15, times the condition of the motors, some hundreds


@pytest.mark.few
@pytest.mark.parametrize(
    ("name", "pose"),
    [
        ("3rrr", {"x": 0.2, "y": 0.1, "theta": 0.6}),
        ("3rrr", {"x": -0.2, "y": -0.2, "theta": -0.5}),
        ("5r", {"x": -0.35, "y": 0.3}),
        ("delta", {"x": 0.25, "y": -0.2, "z": -0.5}),
        ("gough-stewart", {"x": 1.2, "y": -0.5, "z": 2.0, "rx": 0.5, "ry": 0.3, "rz": -0.6}),
        ("space", {"x": 0.7, "y": 0.4, "z": 1.3, "rx": 0.2, "ry": -0.3, "rz": 1.0}),
        ("c5", {"x": 0.2, "y": -0.2, "z": 0.2, "rx": 0.3, "ry": 0.2, "rz": -0.3}),
        ("3-prrr", {"x": 0.2, "y": 0.15, "z": -0.2}),
    ],
)
def test_a_jump_to_a_far_pose_ends_where_small_steps_end(name, pose):
    robot = parflex.load(name)
    straight = parflex.Configuration(robot, robot.assemble(pose))
    home, q = dict.fromkeys(pose, 0.0) | robot.description.poses["home"], robot.home
    home = {key.removeprefix("tip."): value for key, value in home.items()}
    for share in np.linspace(0, 1, 41)[1:]:
        q = robot.assemble({key: home[key] + share * (value - home[key]) for key, value in pose.items()}, near=q)
    assert straight.closure_error < 1e-10  # asked: 1e-10 of a length
    assert largest(wrapped(robot, straight.q, q)) < 1e-8  # closed to 1e-10, times conditions of the legs


def missed(name, pose):
    with pytest.raises(parflex.UnreachableError) as caught:
        parflex.configure(parflex.load(name), pose)
    found = re.search(r"cannot be reached: (\S+) misses it by (\S+) m", caught.value.message)
    assert found, caught.value.message
    return found[1], float(found[2])


def test_only_closures_that_stay_open_are_named(tmp_path):
    text = robot_file("double-four-bar").read_text().partition("[poses.home]")[0]
    (tmp_path / "robot.toml").write_text(text.replace("position = [2, 0, 0]", "position = [2, 5, 0]"))
    with pytest.raises(parflex.UnreachableError, match=r"reached: h2e~B2 misses it by 2\.099 m"):  # sqrt(26) - 3
        parflex.load(tmp_path / "robot.toml").home  # noqa: B018


@pytest.mark.few
@pytest.mark.parametrize(
    ("name", "given"), [("delta", {"x": 3.0}), ("3rrr-flexible", {"x": 3.0, "y": 0.0}), ("navaro", {"y": 9.0})]
)
def test_no_search_begins_where_legs_are_too_short_for_what_is_given(name, given, monkeypatch):
    """Whatever is left open, such as two coordinates of the platform, or its turn."""
    robot = parflex.load(name)
    parflex.configure(robot)
    monkeypatch.setattr(Assembler, "solutions", lambda *_: pytest.fail("no start closes legs that are too short"))
    with pytest.raises(parflex.UnreachableError, match=r"leg\d misses it by \d"):
        parflex.configure(robot, given)


FAR = {
    "5r": {"x": -0.35, "y": 0.3},
    "delta": {"x": 0.25, "y": -0.2, "z": -0.5},
    "3rrr": {"x": 0.2, "y": 0.1},
    "rx90": {},
}


@pytest.mark.parametrize("name", [*WITH_PLATFORM, "navaro", "5r", "3-prs-2r", "rx90"])
def test_no_leg_is_too_short_for_a_pose_that_it_has(name):
    """Any one coordinate of a frame may be given, and all: what cannot be reached is never said of what can."""
    robot = parflex.load(name)
    there = [robot.assemble(FAR[name])] if name in FAR else []
    frame = robot.tree.place(robot.tree.end_effector)
    for q in [robot.home, *robot.reference_poses, *there]:
        position = parflex.Configuration(robot, q).at.of(frame)[1]
        for axes in ((0,), (1,), (0, 1), (0, 1, 2)):
            target = Target(frames=(FrameTarget("end", frame, {k: float(position[k]) for k in axes}),))
            for part in robot.assembler.parts(target, robot.locked | set(robot.deformations)):
                assert missing_length(robot.assembler, robot.home, part) == 0


@pytest.mark.parametrize("tip", [(0.0, 0.9), (0.3, 0.75), (-0.12, 0.05), (0.5, -0.6)])
def test_a_pose_that_the_5r_misses_is_missed_by_the_distance_to_its_ring(tip):
    leg, gap = missed("5r", {"x": tip[0], "y": tip[1]})
    distance = np.hypot(tip[0] - {"left": -0.12, "right": 0.12}[leg], tip[1])
    assert abs(gap - max(distance - 0.7, 0.1 - distance)) < 1e-4  # printed with four digits


@pytest.mark.parametrize("pose", [(0.6, 0.0, 0.0), (0.0, 0.0, 2.8), (-0.3, 0.6, 0.5)])
def test_a_pose_that_the_3rrr_misses_is_missed_by_the_distance_to_the_ring_of_a_leg(pose):
    x, y, theta = pose
    leg, gap = missed("3rrr", {"x": x, "y": y, "theta": theta})
    k = int(leg[-1]) - 1
    angle = theta + np.radians([30, 150, 270])[k]
    foot = np.array([(-0.15, -0.84), (0.69, -0.17), (-0.66, 0.21)][k])
    distance = np.linalg.norm([x, y] - 0.1732 * np.array([np.cos(angle), np.sin(angle)]) - foot)
    assert abs(gap - max(distance - 0.9, 0.1 - distance)) < 1e-4  # printed with four digits


def test_a_singular_leg_is_told_from_a_singular_platform():
    robot = parflex.load("5r")
    stretched = {"x": -0.12 + 0.7 * np.cos(1.2), "y": 0.7 * np.sin(1.2)}  # left leg straight
    condition = parflex.configure(robot, stretched).condition
    assert condition.legs["left"] > 1e7 > 1e3 > max(condition.legs["right"], condition.platform)
    with pytest.raises(parflex.SingularError, match="'left' is at a singularity of the leg"):
        parflex.inverse_dynamics(robot, stretched, {"x": 0.1, "y": 0.2})
    assert parflex.inverse_dynamics(robot, stretched, {"left.1": 0.1, "right.1": 0.2}).efforts  # joints can
    aligned = {"x": 0.0, "y": 0.3 * np.sqrt(1 - (0.28 / 0.3) ** 2)}  # both rods on one line
    condition = parflex.configure(robot, aligned).condition
    assert condition.platform > 1e7 > 1e3 > max(condition.legs.values())
    with pytest.raises(parflex.SingularError, match="singular pose: with the motors locked"):
        parflex.inverse_dynamics(robot, aligned, {"x": 0.1, "y": 0.2})
    assert np.all(np.isfinite(parflex.forward_dynamics(robot, aligned).accelerations))  # it falls, but it falls


def test_too_few_motors_are_told_from_a_singular_pose():
    settings = {"actuation.few": {"actuated": ["leg1.3", "leg2.3"]}}
    robot = parflex.load("gough-stewart", settings=settings, actuation="few")
    found = parflex.inverse_dynamics(robot)
    assert len(found.free) == 4 and any("2 motors for 6 degrees of freedom" in said for said in found.warnings)
    assert parflex.configure(robot).closure_error < 1e-12  # geometry does not need motors; Newton ends at rounding


def test_one_motor_of_a_robot_that_bends_may_move_where_there_are_more_motors_than_freedoms():
    robot = parflex.load("navaro")
    start = parflex.configure(robot).q
    motor = robot.tree.links[robot.tree.number("leg1.1")].q.start
    q = robot.assemble({"leg1.1": float(start[motor]) + 0.05})
    assert q[motor] == pytest.approx(start[motor] + 0.05, abs=1e-12)  # given outright
    assert parflex.Configuration(robot, q).closure_error < 1e-10  # where Newton ends, of lengths below one metre


@pytest.mark.parametrize("name", ["rx90", "puma560"])
def test_an_arm_is_brought_to_where_its_hand_is_to_be_however_far(name):
    robot, rng = parflex.load(name), np.random.default_rng(7)
    for spread in (0.1, 0.5, 1.0):
        joints = robot.home[: robot.nu] + spread * rng.uniform(-1, 1, robot.nu)
        p, R = parflex.frames(robot, dict(zip(robot.motors, joints.tolist(), strict=True)))[robot.tree.end_effector]
        turn = Rotation.from_matrix(R).as_quat(scalar_first=True)
        words = dict(zip(("x", "y", "z", "qw", "qx", "qy", "qz"), [*p.tolist(), *turn.tolist()], strict=True))
        found, turned = parflex.frames(robot, words)[robot.tree.end_effector]
        assert largest(found - p) < 1e-9 and largest(turned - R) < 1e-9  # Newton ends far below


def test_words_of_a_pose_and_of_a_motion_mean_what_they_say():
    planar = parflex.load("3rrr")
    turned = [planar.assemble(words) for words in ({"theta_deg": 20}, {"theta": np.pi / 9})]
    assert largest(turned[0] - turned[1]) < 1e-12  # rounding of Newton's last step
    robot = parflex.load("gough-stewart")
    words = {"rx": 0.0, "ry": 0.2, "rz": 0.0}
    half = {"qw": np.cos(0.1), "qx": 0.0, "qy": np.sin(0.1), "qz": 0.0}
    for given in (words, half):
        rotation = parflex.frames(robot, given)["platform"][1]
        assert largest(rotation - [[np.cos(0.2), 0, np.sin(0.2)], [0, 1, 0], [-np.sin(0.2), 0, np.cos(0.2)]]) < 1e-12
    here = parflex.configure(robot, words)
    for place, word in enumerate(("vx", "vy", "vz", "wx", "wy", "wz")):
        twist = here.frame_rows("platform") @ here.rates({word: 1.0})
        assert twist == pytest.approx(np.eye(6)[place], abs=1e-12)


@pytest.mark.parametrize(("name", "more"), [("planar-rpr", "one.swing"), ("planetary", "ring")])
def test_home_does_not_depend_on_the_chosen_actuation(name, more):
    own = load_robot(name)
    spare = load_robot(name, settings={"actuation.more": {"actuated": [*own.motors, more]}}, actuation="more")
    assert np.array_equal(spare.home, own.home) and len(spare.motors) == len(own.motors) + 1


SPATIAL = {  # rows of each kind: translations, rotations
    "spherical": (3, 0),
    "revolute": (3, 2),
    "universal": (3, 1),
    "cylindrical": (2, 2),
    "prismatic": (2, 3),
    "planar": (1, 2),
    "point-on-plane": (1, 0),
    "point-on-line": (2, 0),
    "welded": (3, 3),
}
PLANAR = {"revolute": (2, 0), "prismatic": (1, 1), "point-on-plane": (1, 0), "point-on-line": (1, 0), "welded": (2, 1)}

PLACES = [("on-arm", "on-body"), ("on-body", "on-arm"), ("on-base", "on-body"), ("on-body", "on-base")]
CASES = [("spatial", kind, ends) for kind in SPATIAL for ends in PLACES]
CASES += [("planar", kind, ends) for kind in PLANAR for ends in PLACES]
NAMES = [f"{motion}, {kind}, {first} to {second}" for motion, kind, (first, second) in CASES]
EVERY = pytest.mark.parametrize(("motion_kind", "kind", "ends"), CASES, ids=NAMES)


def made_up(motion, kind, ends, folder):
    """The file of a mechanism with one closure of this kind, its axes askew."""
    axes = "axis = [0.6, -0.3, 0]" if motion == "planar" else "axis = [0.6, -0.3, 0.5]\naxis_2 = [0.1, 0.4, 0.8]"
    closure = f'[[closure]]\nbetween = {list(ends)}\njoint = "{kind}"\n{axes}\n'
    file = robot_file("made-up-plane" if motion == "planar" else "made-up-space")
    return write_robot(folder, file.read_text(encoding="utf-8") + closure)


def closed_configurations(robot, count=4):
    """Closed positions, each from another start."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        start = robot.tree.moved(robot.tree.start, rng.uniform(-0.4, 0.4, robot.tree.n))
        q, error = robot.assembler.newton(start, robot.free, robot.closures.loops)
        assert error < 1e-12  # of the typical length; Newton ends at rounding
        yield Configuration(robot, q)


@pytest.mark.few("spatial, universal, on-arm", "planar, revolute, on-arm", "point-on-line, on-arm")
@EVERY
def test_a_closure_holds_what_lagrange_holds(motion_kind, kind, ends, tmp_path):
    path = made_up(motion_kind, kind, ends, tmp_path)
    robot, oracle = parflex.load(path), EnergyModel(read_robot(path))
    loop, order, rng = robot.closures.loops[0], order_of(robot, oracle), np.random.default_rng(8)
    translations, rotations = (PLANAR if motion_kind == "planar" else SPATIAL)[kind]
    assert loop.size == robot.closures.size == oracle.closure_rows == translations + rotations
    assert sum(name.startswith("translation") for name in loop.row_names) == translations
    for configuration in closed_configurations(robot):
        q, J = positions(configuration), configuration.closure_jacobian
        assert largest(oracle.closure_residual(q)) < 1e-11  # what rounding leaves of a closed loop, in their units
        theirs = oracle.closure_jacobian(q)[0][:, order]
        null = np.linalg.svd(J)[2][loop.size :].T
        assert np.linalg.matrix_rank(J) == np.linalg.matrix_rank(theirs) == loop.size
        assert largest(theirs @ null) < 1e-12 * largest(theirs)  # same null space: products of directions of length one
        qd = null @ rng.standard_normal(null.shape[1])
        ours = robot.closures.bias(configuration.at, motion(robot.tree, configuration.at, qd, np.zeros(robot.tree.n)))
        bias = oracle.closure_jacobian(q, qd[np.argsort(order)])[1]
        # rows may be scaled and mixed: the smallest acceleration that keeps the loop closed is not
        smallest = np.linalg.lstsq(J, -ours, rcond=None)[0]
        expected = np.linalg.lstsq(theirs, -bias, rcond=None)[0]
        assert largest(expected) > 1e-3 or "on-base" in ends  # on the base some closures have no bias
        assert largest(smallest - expected) < 1e-11 * largest(qd) ** 2  # rounding times conditions of some dozens


@EVERY
def test_a_closure_is_the_derivative_of_its_opening(motion_kind, kind, ends, tmp_path):
    robot = parflex.load(made_up(motion_kind, kind, ends, tmp_path))
    tree, rng = robot.tree, np.random.default_rng(9)
    units = robot.closures.row_units() / tree.length
    for configuration in closed_configurations(robot, 2):

        def opening(step, configuration=configuration):
            return robot.closures.residual(Configuration(robot, tree.moved(configuration.q, step)).at) / tree.length

        assert largest(opening(np.zeros(tree.n))) < 1e-12  # Newton ends at rounding
        any_rates, h = rng.uniform(-1, 1, tree.n), 1e-5
        slope = (opening(h * any_rates) - opening(-h * any_rates)) / (2 * h)
        # truncation 1e-10, rounding 1e-16/1e-5
        assert largest(slope - units * (configuration.closure_jacobian @ any_rates)) < 1e-8
        null = np.linalg.svd(configuration.closure_jacobian)[2][robot.closures.size :].T
        qd, qdd, h = null @ rng.uniform(-1, 1, null.shape[1]), rng.uniform(-1, 1, tree.n), 3e-4
        bend = sum(c * opening(t * qd + t**2 / 2 * qdd) for c, t in ((1, h), (-2, 0.0), (1, -h))) / h**2
        ours = units * robot.closures.bias(configuration.at, motion(tree, configuration.at, qd, qdd))
        assert largest(bend - ours) < 1e-5  # truncation 1e-7, rounding 1e-16/1e-7, a dozen terms


def test_legs_that_are_identical_have_identical_independent_coordinates():
    robot = parflex.load("navaro")
    rates = parflex.configure(robot, "home").reduction.partition.independent
    legs = [
        {name[4:] for k in rates if (name := robot.tree.rate_names[k]).startswith(f"leg{leg}")} for leg in (1, 2, 3)
    ]
    assert legs[0] == legs[1] == legs[2]
    noise = 1e-12 * np.random.default_rng(1).standard_normal((3, 5))  # as closed poses leave
    columns, lengths = pivoted_columns(np.eye(3)[:, [0, 0, 1, 1, 2]] + noise, 3)
    assert columns.tolist() == [0, 2, 4] and np.allclose(lengths, 1, rtol=0, atol=1e-11)


def test_axes_that_coincide_point_the_same_way(tmp_path):
    robot = parflex.load(made_up("spatial", "revolute", ("on-arm", "on-body"), tmp_path))
    loop = robot.closures.loops[0]
    for configuration in closed_configurations(robot):
        frames = parflex.frames(robot, configuration)
        first, second = frames["on-arm"].rotation @ loop.u1, frames["on-body"].rotation @ loop.u2
        assert largest(first - second) < 1e-12  # rounding of two products of rotations


@pytest.mark.few("spatial, universal, on-arm", "planar, revolute, on-arm", "point-on-line, on-arm")
@EVERY
def test_a_closed_loop_seen_from_its_other_end_or_taken_as_closed_holds_the_same(motion_kind, kind, ends, tmp_path):
    robot = parflex.load(made_up(motion_kind, kind, ends, tmp_path))
    tree, loop, rng = robot.tree, robot.closures.loops[0], np.random.default_rng(9)
    other = loop.reversed(tree)
    assert (other is None) == kind.startswith("point-on")
    for configuration in closed_configurations(robot):
        at, links = configuration.at, configuration.link_jacobians
        J = loop.jacobian(tree, at, links)
        any_rates = rng.uniform(-1, 1, tree.n)
        moving = motion(tree, at, any_rates - np.linalg.pinv(J) @ (J @ any_rates), np.zeros(tree.n))
        held = np.column_stack([J, loop.bias(tree, at, moving)])  # J qdd + bias = 0
        for same in (replace(loop, closed=True), *([] if other is None else [other, replace(other, closed=True)])):
            found = np.column_stack([same.jacobian(tree, at, links), same.bias(tree, at, moving)])
            assert found.shape == held.shape
            mix = found[:, :-1] @ np.linalg.pinv(J)
            assert found == pytest.approx(mix @ held, abs=1e-11)  # entries of size one, closed to 1e-13
            assert np.linalg.cond(mix) < 1e2  # nothing is lost: directions and arms of size one
