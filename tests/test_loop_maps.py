"""Maps of robots with loops that no beam is part of, gears and rods: the same as pose by pose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import parflex
from parflex.maps.batches import Geometry
from parflex.maps.engine.mode_finder import ModeFinder
from parflex.maps.node_unknowns import node_model
from parflex.maps.nodes import Assembly
from parflex.maps.positions import OK, UNREACHABLE, PositionSolver
from parflex.maps.responses.at_one_pose import signed_twists
from parflex.models.elastic.holding import held_robot
from parflex.models.elastic.stiff_system import lowest_modes

ROBOTS = Path(__file__).parent / "robots"
SERVO = 3e4  # N m/rad, N/m
SPACE = ["x", "y", "z", "rx", "ry", "rz"]


@pytest.mark.parametrize(
    "name",
    [
        "geared-beams",  # gears whose joints are met against their direction
        "four-rrr",  # more rows than are needed
        "nut-in-loop",
        "rccc",  # closures that slide
        "upu",  # universal joints
        "planetary",  # a motion without stiffness
        "ball-screw",
    ],
)
def test_modes_of_loops_without_beams_are_those_of_single_poses(name):
    robot = parflex.load(ROBOTS / f"{name}.toml")
    single = parflex.natural_frequencies(robot, lock="none", servo=SERVO, about="undeformed")
    free, modes = len(single.free_motions), len(single.frequencies)
    held, geometry = held_robot(robot, robot.home, "none", SERVO), Geometry(robot)
    assembly = Assembly(node_model(held))
    K, M = assembly(*geometry.places(assembly.links)(geometry.home[None]))
    whole = np.sqrt(lowest_modes(K[0], M[0], free, modes)[0][free:]) / (2 * np.pi)
    assert whole == pytest.approx(single.frequencies, rel=1e-10)  # rounding times a condition of 1e6
    finder = ModeFinder(held, modes, free)
    found = finder(geometry.home[None])
    assert finder.programs.unknowns == single.independent_coordinates and found.ok.all()
    assert np.sqrt(found.x[0]) / (2 * np.pi) == pytest.approx(single.frequencies, rel=2e-10)  # of the proof


def test_maps_of_flexible_platforms_on_rigid_legs_go_by_steps():
    robot = parflex.load("gough-stewart-flexible")
    rng = np.random.default_rng(3)
    poses = np.array([0.25, 0.433, 1.0, 0, 0, 0]) + 0.1 * rng.uniform(-1, 1, (200, 6))
    found = parflex.many_frequencies(robot, SPACE, poses, 3, shapes=True)
    assert found.solver.method == "steps" and found.fallbacks == 0
    for k in (0, 77, 199):
        single = parflex.natural_frequencies(robot, dict(zip(SPACE, poses[k].tolist(), strict=True)), 3)
        assert found.frequencies[k] == pytest.approx(single.frequencies, rel=1e-9)
    few = parflex.many_frequencies(robot, SPACE, poses[:3], 3, shapes=True)  # by whole matrices
    assert few.frequencies == pytest.approx(found.frequencies[:3], rel=1e-9)
    assert few.shapes == pytest.approx(found.shapes[:3], abs=1e-6)  # steps leave an angle of 1e-7
    asked = ["frequency:2", "damping:1", "stiffness:platform", "deflection:z"]
    answers = parflex.many_responses(robot, SPACE, poses[:2], asked)
    assert answers.method == "together"
    pose = dict(zip(SPACE, poses[1].tolist(), strict=True))
    stiff = parflex.cartesian_stiffness(robot, pose, "platform").stiffness
    assert answers["stiffness:platform"][1] == pytest.approx(stiff, rel=1e-9, abs=1e-9 * np.abs(stiff).max())
    moved = parflex.deflection(robot, pose, ["platform"]).frames["platform"][2]
    assert answers["deflection:z"][1] == pytest.approx(moved, rel=1e-9)
    assert answers["damping:1"][1] == pytest.approx(parflex.natural_frequencies(robot, pose, 1).damping[0], rel=1e-9)


def test_maps_say_what_they_keep_at_home_where_a_pose_is_not_reached():
    robot = parflex.load("navaro")
    found = parflex.many_frequencies(robot, ["x", "y"], [[0.02, 0.05], [0.0, 0.1]], 2)
    assert found.status.tolist() == [0, 1] and found.reasons[1] == "the pose cannot be reached with 'rz' as at home"
    assert found.method == "full" and found.reason == "" and found.largest_difference == 0.0
    single = parflex.natural_frequencies(robot, {"x": 0.02, "y": 0.05}, 2)
    assert found.frequencies[0] == pytest.approx(single.frequencies, rel=1e-9)
    whole = parflex.many_frequencies(robot, ["x", "y", "rz"], [[9.0, 0.1, 0.0]], 2)
    assert whole.reasons == ["the pose cannot be reached"]


def test_rounding_does_not_choose_the_sign_of_a_shape():
    equal = np.array([[-1.0, 1.0 + 1e-15, 0, 0, 0, 0.5], [-1.0 - 1e-15, 1.0, 0, 0, 0, 0.5]])
    assert np.sign(signed_twists(equal, 1.0)[:, 0]).tolist() == [1, 1]
    assert signed_twists(np.array([[0.5, 0, 0, 0, 0, -2.0]]), 1.0)[0, 5] == 2.0
    assert signed_twists(np.array([[0.5, 0, 0, 0, 0, -2.0]]), 0.1)[0, 0] == 0.5  # turns count by the length


def test_gears_with_springs_are_in_maps_and_under_tension_they_are_about_the_equilibrium():
    robot = parflex.load(ROBOTS / "geared-beams.toml", settings={"coupling.reducer.stiffness": 2000.0})
    poses = [[0.1, 0.505], [0.1, 0.52]]  # at rest, and wound up
    with pytest.warns(parflex.ParflexWarning, match="1 of 2 poses have springs under tension"):
        found = parflex.many_frequencies(robot, ["motor", "shoulder"], poses, 3)
    assert found.fallbacks == 1
    for row, (motor, shoulder) in zip(found.frequencies, poses, strict=True):
        single = parflex.natural_frequencies(robot, {"motor": motor, "shoulder": shoulder}, 3)
        assert row == pytest.approx(single.frequencies, rel=1e-10)


def test_dampers_between_points_are_in_damping_ratios_and_leave_modes_to_matrices(tmp_path):
    dash = '[[element]]\nname = "dash"\nkind = "damper"\nbetween = ["base", "hand"]\ndamping = 12.0\n'
    file = tmp_path / "damped.toml"
    file.write_text((ROBOTS / "geared-beams.toml").read_text() + dash)
    robot = parflex.load(file)
    found = parflex.many_responses(robot, ["motor"], [[0.1]], ["damping:1", "frequency:1"])
    single = parflex.natural_frequencies(robot, {"motor": 0.1}, 1)
    assert found["damping:1"][0] == pytest.approx(single.damping[0], rel=1e-9) and found.fallbacks == 1
    plain = parflex.many_frequencies(robot, ["motor"], [[0.1]], 1)
    assert plain.fallbacks == 0 and plain.frequencies[0, 0] == pytest.approx(single.frequencies[0], rel=1e-10)


def test_poses_that_are_asked_alone_are_reached_as_among_others():
    """Workspaces have bays: Newton's method from home ends elsewhere, and a straight way leads outside."""
    robot, names = parflex.load(ROBOTS / "unlike-legs.toml"), ["x", "y", "theta"]
    poses = np.array([[-0.2131, -0.1731, 0.1291], [-0.1023, -0.2139, 0.042], [0.2011, -0.1952, 0.0575], [0.4, 0, 0]])
    solver = PositionSolver(Geometry(robot), names, [0.0, 0.0, 0.0])
    assert [int(solver(pose[None]).status[0]) for pose in poses] == [OK, OK, OK, UNREACHABLE]
    found = solver(poses[:1]).q[0]
    single = robot.assemble(dict(zip(names, poses[0].tolist(), strict=True)))[solver.geometry.kept]
    assert np.exp(1j * found) == pytest.approx(np.exp(1j * single), abs=1e-9)  # whole turns aside


FIVE_BAR = """
format = 1
name = "five-bar"
motion = "planar"
end_effector = "tip"
[constants]
a = 0.12
proximal = 0.25
distal = 0.34
offset = 0.02
[materials.alu]
elastic_modulus = 70e9
density = 2700
[sections.bar]
shape = "rectangle"
y = 0.012
z = 0.03
[[frame]]
name = "left"
joint = "revolute"
actuated = true
place = { position = ["-a", 0, 0] }
start = 2.1
beam = { length = "proximal", material = "alu", section = "bar" }
[[frame]]
name = "left elbow"
parent = "left.tip"
joint = "revolute"
start = -1.1
beam = { length = "distal", material = "alu", section = "bar" }
[[frame]]
name = "right"
joint = "revolute"
actuated = true
place = { position = ["a", 0, 0] }
start = 1.1
beam = { length = "proximal", material = "alu", section = "bar" }
[[frame]]
name = "right elbow"
parent = "right.tip"
joint = "revolute"
start = 1.1
beam = { length = "distal", material = "alu", section = "bar" }
[[point]]
name = "tip"
frame = "left elbow.tip"
position = ["offset", 0, 0]
[[closure]]
name = "pin"
between = ["left elbow.tip", "right elbow.tip"]
joint = "revolute"
"""


def five_bar(x, y, a, proximal, distal, offset, side=1.0):
    """Joints of the five-bar by the cosine law: left arm, its elbow, right arm, its elbow; NaN out of reach."""

    def arm(x, y, first, second, side):
        elbow = side * np.arccos((x * x + y * y - first**2 - second**2) / (2 * first * second))
        return np.arctan2(y, x) - np.arctan2(second * np.sin(elbow), first + second * np.cos(elbow)), elbow

    left, bent = arm(x + a, y, proximal, distal + offset, -side)
    pin = x - offset * np.cos(left + bent), y - offset * np.sin(left + bent)
    return np.array([left, bent, *arm(pin[0] - a, pin[1], proximal, distal, side)])


@np.errstate(invalid="ignore")
def test_end_effectors_on_joints_are_placed_for_all_rows_and_designs_together(tmp_path):
    (tmp_path / "five-bar.toml").write_text(FIVE_BAR)
    robot, names, rng = parflex.load(tmp_path / "five-bar.toml"), ["x", "y"], np.random.default_rng(5)
    poses = np.stack([rng.uniform(-0.35, 0.35, 300), rng.uniform(0.1, 0.7, 300)], axis=1)
    sizes = np.array([0.12, 0.25, 0.34, 0.02])
    solver = PositionSolver(Geometry(robot), names, poses[0].tolist())
    found, right = solver(poses), np.array([five_bar(*pose, *sizes) for pose in poses])
    assert solver.fast and np.array_equal(found.status == UNREACHABLE, np.isnan(right).any(axis=1))
    good = found.status == OK
    assert 100 < good.sum() < 290 and solver.why(UNREACHABLE) == "the pose cannot be reached"
    assert np.exp(1j * found.q[good]) == pytest.approx(np.exp(1j * right[good]), abs=1e-11)  # of Newton's last step
    # both elbows on their other sides: the determinant of the whole keeps its sign
    turned = solver.given.start(poses[good][:1], five_bar(*poses[good][0], *sizes, -1.0)[None])
    assert solver._newton(turned)[1][0] == UNREACHABLE
    # every row with its own design, the place of the end effector on its link among its numbers
    designs = sizes * rng.uniform(0.9, 1.1, (12, 4))
    keys = [f"constants.{name}" for name in ("a", "proximal", "distal", "offset")]
    own, columns = poses[good][:12], dict(zip(keys, designs.T, strict=True))
    answers = parflex.many_responses(robot, names, own, ["stiffness:tip.x"], designs=columns)
    assert answers.method == "together"
    for k in np.flatnonzero(answers.status == OK)[:3]:
        one = parflex.load(robot.file, settings=dict(zip(keys, designs[k].tolist(), strict=True)))
        angles = dict(zip(["left", "right"], five_bar(*own[k], *designs[k])[[0, 2]].tolist(), strict=True))
        single = parflex.cartesian_stiffness(one, angles).stiffness[0, 0]
        assert answers["stiffness:tip.x"][k] == pytest.approx(single, rel=1e-9)
    assert (answers.status == OK).sum() > 8
