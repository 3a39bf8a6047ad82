"""Results cached on disk: paths of tools, equilibria, homes and conditions are read for the same robot alone."""

from dataclasses import replace

import numpy as np
import pytest

import parflex
from parflex.codegen import cache
from parflex.simulation import start
from parflex.trajectories import follow as following
from parflex.trajectories.frames import FrameTrajectory, PathSegment


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    return tmp_path


def follow(robot, near=None, length=0.02):
    at = np.array(parflex.frames(robot)[robot.tree.end_effector].position)
    return following.follow_segment(robot, *along_x(robot, at, length), robot.home if near is None else near)


def along_x(robot, at, length):
    """A trajectory of the end effector, and a line of its path."""
    line = PathSegment(length, False, at, np.zeros(3), np.array([1.0, 0.0, 0.0]), 1.0)
    axes = range(2 if robot.tree.planar else 3)
    return FrameTrajectory("line", robot.tree.end_effector, robot.tree.planar, axes, (), robot.home), line


def test_the_path_of_a_tool_is_computed_once_and_anew_for_another_path_robot_or_start(monkeypatch, folder):
    monkeypatch.setitem(following.KNOTS, "m", 4)
    calls, followed = [], following.followed_segment
    monkeypatch.setattr(following, "followed_segment", lambda *given: (calls.append(1), followed(*given))[1])
    robot = parflex.load("5r")
    first, again = follow(robot), follow(parflex.load("5r"))
    assert len(calls) == 1
    assert (first[0].breaks == again[0].breaks).all() and (first[0].coefficients == again[0].coefficients).all()
    assert (first[1] == again[1]).all() and (first[2] == again[2]).all()
    (file,) = folder.glob("*.road")
    file.write_bytes(file.read_bytes()[:-9])
    follow(robot)
    assert len(calls) == 2  # a damaged file counts as none
    follow(robot, length=0.01)
    follow(robot, robot.home + 1e-9)
    follow(parflex.load("5r", settings={"constants.distal": 0.4000001}))
    assert len(calls) == 5


def with_longer_links(robot):
    links = tuple(replace(link, position=1.01 * link.position) for link in robot.tree.links)
    tree = replace(robot.tree, links=links)
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))


@pytest.mark.parametrize("changed", [False, True])
def test_elements_do_not_change_a_path_and_a_changed_robot_has_another(monkeypatch, changed):
    """A path is computed with few elements unless the robot is not that of its file."""
    monkeypatch.setitem(following.KNOTS, "m", 4)
    robot = parflex.load("dualemps", elements=3)
    robot = with_longer_links(robot) if changed else robot
    frame = robot.tree.end_effector
    at = parflex.frames(robot, parflex.Configuration(robot, robot.home))[frame].position
    line = along_x(robot, at, 0.005)
    ways = following.followed_segment, following._followed
    found, expected = (how(robot, *line, robot.home) for how in ways)
    for s in np.linspace(0, 0.005, 9):
        np.testing.assert_allclose(found[0].value(s), expected[0].value(s), rtol=0, atol=1e-13)  # rounding
        np.testing.assert_allclose(found[0].value(s, 1), expected[0].value(s, 1), rtol=0, atol=1e-10)  # over 1 mm
    for own, whole in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(own, whole, rtol=0, atol=1e-13)


def test_an_equilibrium_is_read_for_the_same_robot_pose_and_source_alone(monkeypatch):
    found = []

    def find():
        found.append(1)
        return start.RelaxedBodies(np.array([0.1, len(found)]), ("a",), False)

    def asked(robot, *choices):
        return start.cached_equilibrium(robot, choices, find)

    robot = parflex.load("dualemps")
    first = asked(robot, np.zeros(2), {"tip": [1.0]})
    again = asked(parflex.load("dualemps"), np.zeros(2), {"tip": [1.0]})
    assert len(found) == 1 and again == first and again.held == ("a",) and not again.steady
    asked(robot, np.zeros(2), {"tip": [1.0 + 1e-15]})
    asked(robot, np.full(2, 1e-300), {"tip": [1.0]})
    asked(parflex.load("dualemps", settings={"constants.blade": 0.4505001}), np.zeros(2), {"tip": [1.0]})
    asked(robot.locking([0]), np.zeros(2), {"tip": [1.0]})
    monkeypatch.setattr(cache, "_code", lambda: b"another version")
    asked(robot, np.zeros(2), {"tip": [1.0]})
    assert len(found) == 6


def test_closed_poses_of_one_robot_serve_another_only_where_its_loops_close():
    first, other = parflex.load("dualemps"), parflex.load("dualemps", settings={"constants.blade": 0.4505001})
    borrowed = replace(other, known_home=other.home, known_mobility=first.mobility)
    assert len(borrowed.reference_poses) == len(first.reference_poses) == 3
    assert all(parflex.Configuration(borrowed, q).closure_error < 1e-11 for q in borrowed.reference_poses)
