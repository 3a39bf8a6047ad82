"""Frames that turn along a path: directions, cones, tangents, slerp; against differences, geometry and Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import CATALOGUE
from support.oracles import tripod_wrist
from support.oracles.pinocchio_tree import PinocchioTree
from support.oracles.reader import read_robot

import parflex
from parflex import InputError, UnreachableError
from parflex.control.following import track
from parflex.control.reference_text import reference_from
from parflex.description.motion_tables import MotionTable
from parflex.recursion import pose
from parflex.simulation.inputs.motor_motions import from_table
from parflex.simulation.inputs.paths import arcs_of, follow, frame_along
from parflex.simulation.inputs.prescribed_frames import joints_of_pose
from parflex.spatial import rotation_from_vector, vector_from_rotation

ROBOTS = Path(__file__).parent / "robots"
CIRCLE = {"circle": {"centre": [0, 0, -0.45], "start": [0.05, 0, -0.45], "turns": 1}, "speed": 0.25, "ramp": 0.15}


@pytest.fixture(scope="module")
def five_axes():
    return parflex.load("3-prs-2r")


def table(more, base=CIRCLE):
    return MotionTable.model_validate(base | more)


def moving(robot, arc):
    """The robot by the way along an arc: configuration, rates, accelerations."""
    desired, driven = frame_along(robot, robot.tree.end_effector, arc, "path")
    return lambda s, near: joints_of_pose(robot, robot.tree.end_effector, desired(s), near, driven)


def differences(f, s, h):
    """First and second derivative of fourth order, extrapolated from steps h and h/2: h^6 is left."""

    def coarse(h):
        v = {k: f(s + k * h) for k in (-2, -1, 0, 1, 2)}
        first = (8 * (v[1] - v[-1]) - (v[2] - v[-2])) / (12 * h)
        return np.array([first, (16 * (v[1] + v[-1]) - (v[2] + v[-2]) - 30 * v[0]) / (12 * h**2)])

    return (16 * coarse(h / 2) - coarse(h)) / 15


CASES = {
    "fixed": ("3-prs-2r", CIRCLE | {"direction": [0, 0.1, 1]}),
    "cone": ("3-prs-2r", CIRCLE | {"cone": 0.2}),
    "hexapod on a cone": (
        "gough-stewart",
        {"circle": {"centre": [0.25, 0.43, 1], "start": [0.3, 0.43, 1]}, "speed": 0.2, "ramp": 0.1, "cone": 0.15},
    ),
    "slerp": (
        "3rrr",
        {"points": [[0, 0, 0], [0.04, 0.02, 0]], "speed": 0.2, "ramp": 0.1, "orientation": [[0, 0, 0], [0, 0, 0.3]]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rates_and_accelerations_along_a_turning_path_are_its_derivatives(case):
    """Of a hexapod the turn about its axis, too, which no condition gives: the shortest turn from home has it."""
    name, given = CASES[case]
    robot = parflex.load(name)
    at = moving(robot, arcs_of(MotionTable.model_validate(given), "path")[0])
    s = 0.017
    here, qd, qdd = at(s, robot.home)
    rates, changes = differences(lambda s: at(s, here.q)[0].q[robot_motors(robot)], s, 2e-3)
    own = list(robot.actuated)
    assert np.abs(rates - qd[own]).max() < 1e-7 * max(1.0, np.abs(rates).max())  # 1e-6 is asked
    assert np.abs(changes - qdd[own]).max() < 1e-6 * max(1.0, np.abs(changes).max())


def robot_motors(robot):
    return [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]


def test_the_tool_goes_round_the_cone_and_the_motors_return(five_axes, monkeypatch):
    monkeypatch.setattr("parflex.simulation.inputs.paths.KNOTS", 60)
    arc = arcs_of(table({"cone": 0.2}), "path")[0]
    along, first, last = follow(five_axes, "tool", arc, five_axes.home, "path")
    assert np.abs(first - last).max() < 1e-9  # whatever the way
    for s in (0.03, 0.2, 0.29):
        q = five_axes.assemble(dict(zip(five_axes.actuated_names, map(float, along.at(s)), strict=True)))
        R, p = pose(five_axes.tree, q).of(five_axes.tree.places["tool"])
        angle = s / 0.05
        out = np.array([np.cos(angle), np.sin(angle), 0.0])
        assert np.abs(p - (0.05 * out + [0, 0, -0.45])).max() < 1e-8  # quintics between 60 knots
        assert np.abs(R[:, 2] - (np.cos(0.2) * np.array([0, 0, 1]) + np.sin(0.2) * out)).max() < 1e-7
    bends = along.at(np.linspace(0, arc.length, 400), 2)
    assert np.abs(np.diff(bends, axis=0)).max() < 0.1 * np.abs(bends).max()  # smooth


def test_a_circle_with_a_fixed_tool_is_that_of_geometry_written_anew():
    robot = parflex.load(ROBOTS / "five-axis.toml")
    z = np.array([-0.4, -0.2, 0.9]) / np.linalg.norm([-0.4, -0.2, 0.9])
    circle = {"centre": [-0.04, -0.03, 0.78], "start": [-0.05, -0.03, 0.78], "turns": 1}
    arc = arcs_of(table({"circle": circle, "direction": list(z)}), "path")[0]
    at, near = moving(robot, arc), robot.home
    for s in (0.0, 0.02, 0.05):
        near = at(s, near)[0].q
        known = dict(zip(robot.coordinates, near, strict=True))
        for name, value in tripod_wrist.joints_at(arc.at(s)[0], z).items():
            assert known[name] == pytest.approx(value, abs=1e-10)  # both Newtons end at rounding


def test_efforts_along_a_cone_are_those_of_pinocchio_and_of_a_spline_of_poses(five_axes):
    at = moving(five_axes, arcs_of(table({"cone": 0.2}), "path")[0])
    here, q1, q2 = at(0.1, five_axes.home)
    v = 0.25
    names = five_axes.actuated_names
    states = [{n: float(part[five_axes.rates.index(n)]) for n in names} for part in (v * q1, v**2 * q2)]
    efforts = parflex.inverse_dynamics(five_axes, here, *states).efforts
    oracle = PinocchioTree(read_robot(CATALOGUE / "3-prs-2r.toml"))
    position = dict(zip(five_axes.coordinates, here.q, strict=True))
    assert oracle.inverse(position, *states, names) == pytest.approx(efforts, rel=1e-9, abs=1e-9)
    rates, changes = differences(lambda s: at(s, here.q)[0].q[robot_motors(five_axes)], 0.1, 2e-3)  # poses alone
    knots = [dict(zip(names, map(float, part), strict=True)) for part in (v * rates, v**2 * changes)]
    assert parflex.inverse_dynamics(five_axes, here, *knots).efforts == pytest.approx(efforts, rel=1e-6)


def test_the_tangent_turns_a_platform_with_the_circle():
    robot = parflex.load(ROBOTS / "planar-arm.toml")
    p = pose(robot.tree, robot.home).of(robot.tree.places["tip"])[1]
    circle = {"centre": [float(p[0]), float(p[1]) - 0.05, 0], "start": [float(p[0]), float(p[1]), 0]}
    arc = arcs_of(table({"circle": circle, "orientation": "tangent"}), "path")[0]
    at = moving(robot, arc)
    for s in (0.0, 0.02):
        R = at(s, robot.home)[0].at.of(robot.tree.places["tip"])[0]
        assert R[:, 0] == pytest.approx(arc.at(s)[1], abs=1e-10)


def test_poses_with_directions_are_reached_and_joints_given_too(five_axes, monkeypatch):
    monkeypatch.setattr("parflex.simulation.inputs.poses.KNOTS", 12)
    given = {"x": 0.03, "y": 0.02, "z": -0.42, "zx": 0.2, "zy": -0.1}
    motion = MotionTable.model_validate({"poses": ["home", given, "aside"], "duration": 0.5})
    found = from_table(five_axes, "there", motion, 1.0)
    for t, one in ((0.5, given), (1.0, "aside")):  # it went by the place alone, and ended elsewhere
        asked = five_axes.assemble(one)[robot_motors(five_axes)]
        assert np.abs(found.at(t)[0] - asked).max() < 1e-9
    half = five_axes.assemble(dict(zip(five_axes.actuated_names, map(float, found.at(0.25)[0]), strict=True)))
    R, p = pose(five_axes.tree, half).of(five_axes.tree.places["tool"])
    begin, end = (
        pose(five_axes.tree, five_axes.assemble(one)).of(five_axes.tree.places["tool"])[0] for one in (None, given)
    )
    middle = begin @ rotation_from_vector(vector_from_rotation(begin.T @ end) / 2)
    assert R[:, 2] == pytest.approx(middle[:, 2], abs=1e-7)  # halfway about one axis
    assert p == pytest.approx([0.015, 0.01, -0.435], abs=1e-8)


@pytest.mark.verify
def test_references_of_a_controller_keep_a_given_direction(five_axes):
    wanted = reference_from(five_axes, "circle:radius=0.03,time=1,z=-0.45,zx=0.1,zy=0")
    driven = track(five_axes, wanted, five_axes.actuated_names, 0.125)
    for t in (0.0, 0.5, 1.0):  # at knots
        motors = dict(zip(five_axes.actuated_names, map(float, driven.at(np.array([t]))[0][0]), strict=True))
        R, _ = pose(five_axes.tree, five_axes.assemble(motors)).of(five_axes.tree.places["tool"])
        assert R[:, 2] == pytest.approx([0.1, 0.0, np.sqrt(0.99)], abs=1e-9)

    def leaning(t):
        return {"x": 0.02 * t**3, "zx": 0.1 * t**3, "zy": 0.0, "zz": 1.0}

    function = reference_from(five_axes, leaning, 1.0)
    assert function.turn == "axis"
    z = function.at(1.0).rotation[0][:, 2]
    assert z == pytest.approx(np.array([0.1, 0, 1]) / np.sqrt(1.01), abs=1e-9)  # at the last sample
    with pytest.raises(InputError, match="one component does not give the direction of 'tool'"):
        reference_from(five_axes, lambda t: {"zx": 0.1}, 1.0)
    kept = reference_from(five_axes, "circle:radius=0.03,time=1")  # its turn cannot be kept: it was refused
    assert np.isfinite(track(five_axes, kept, five_axes.actuated_names, 0.125).pieces.coefficients).all()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"direction": [[0, 0, 1], [0, 1, 1]]}, "there are 2 vectors for 1 point of the circle"),
        ({"direction": [0, 0, 0]}, "a direction is zero"),
    ],
)
def test_directions_that_do_not_fit_a_path_are_refused(more, said):
    with pytest.raises(InputError, match=said):
        arcs_of(table(more), "path")


def test_a_table_says_one_way_of_turning():
    for more, said in (
        ({"cone": 0.1, "direction": [0, 0, 1]}, "'cone' and 'direction' both turn the frame"),
        ({"orientation": "along"}, "orientation"),
    ):
        with pytest.raises(Exception, match=said):
            table(more)
    lines = {"points": [[0, 0, 0], [0.1, 0, 0], [0.1, 0.1, 0]], "speed": 0.1, "ramp": 0.1}
    with pytest.raises(Exception, match="a 'cone' stands about the axis of a circle"):
        table({"cone": 0.1}, lines)
    with pytest.raises(InputError, match="along corners the tangent jumps"):
        arcs_of(table({"orientation": "tangent"}, lines), "path")


@pytest.mark.verify
def test_what_a_robot_cannot_turn_is_refused_in_words(five_axes):
    robot = parflex.load("5r")
    circle = {"centre": [0, 0.45, 0], "start": [0.03, 0.45, 0]}
    with pytest.raises(InputError, match="'tip' cannot have every rotation"):
        moving(robot, arcs_of(table({"circle": circle, "orientation": "tangent"}), "path")[0])(0.0, robot.home)
    at = moving(five_axes, arcs_of(table({"direction": [1, 0, 0]}), "path")[0])
    with pytest.raises(UnreachableError, match=r"no pose has this direction of 'tool'.*deg"):
        at(0.0, five_axes.home)


def test_slerp_goes_about_one_axis():
    given = {"points": [[0, 0, 0], [0.1, 0, 0]], "speed": 1, "ramp": 1, "orientation": [[0.1, 0.2, 0], [0, 0, 0.8]]}
    arc = arcs_of(MotionTable.model_validate(given), "path")[0]
    R, R_end = rotation_from_vector(np.array([0.1, 0.2, 0])), rotation_from_vector(np.array([0, 0, 0.8]))
    half = arc.turning.at(0.05)
    assert np.abs(half @ R.T @ half - R_end).max() < 1e-12  # half the turn, twice
