"""Paths that were followed once are read from the disk, and only those."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import parflex
from parflex.recursion import pose
from parflex.simulation.inputs import paths


@pytest.fixture
def found(monkeypatch, tmp_path):
    """A robot and a short line of it, and a list that grows by one for each path that is followed."""
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    calls = []
    followed = paths._followed
    monkeypatch.setattr(paths, "_followed", lambda *given: (calls.append(1), followed(*given))[1])
    robot = parflex.load("5r")
    at = np.array(parflex.frames(robot)[robot.tree.end_effector].position)
    line = paths.Arc(0.02, False, at, np.zeros(3), np.array([1.0, 0.0, 0.0]), 1.0)
    return robot, line, calls, tmp_path


def follow(robot, line, near=None):
    return paths.follow(robot, robot.tree.end_effector, line, robot.home if near is None else near, "line")


def test_a_path_that_was_followed_is_not_followed_again(found):
    robot, line, calls, _ = found
    first, again = follow(robot, line), follow(parflex.load("5r"), line)
    assert len(calls) == 1
    assert (first[0].breaks == again[0].breaks).all() and (first[0].coefficients == again[0].coefficients).all()
    assert (first[1] == again[1]).all() and (first[2] == again[2]).all()


@pytest.mark.verify
def test_another_path_robot_or_start_is_followed_anew(found):
    robot, line, calls, _ = found
    follow(robot, line)
    follow(robot, replace(line, length=0.01))
    follow(robot, line, robot.home + 1e-9)
    follow(parflex.load("5r", settings={"constants.distal": 0.4000001}), line)
    assert len(calls) == 4


@pytest.mark.verify
def test_a_damaged_file_counts_as_none(found):
    robot, line, calls, folder = found
    follow(robot, line)
    (file,) = folder.glob("*.road")
    file.write_bytes(file.read_bytes()[:-9])
    follow(robot, line)
    assert len(calls) == 2


def with_longer_links(robot):
    """The same with the file of shorter ones."""
    links = tuple(replace(link, position=1.01 * link.position) for link in robot.tree.links)
    tree = replace(robot.tree, links=links)
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))


@pytest.mark.parametrize("changed", [False, True])
def test_elements_do_not_change_a_road_and_a_robot_that_was_changed_has_its_own(monkeypatch, changed):
    """It is found with few elements, but where these are not those of the same robot."""
    monkeypatch.setattr(paths, "KNOTS", 4)
    robot = parflex.load("dualemps", elements=3)
    if changed:
        robot = with_longer_links(robot)
    frame = robot.tree.end_effector
    at = pose(robot.tree, robot.home).of(robot.tree.places[frame])[1]
    line = paths.Arc(0.005, False, at, np.zeros(3), np.array([1.0, 0.0, 0.0]), 1.0)
    found, expected = (how(robot, frame, line, robot.home, "line") for how in (paths._followed, paths._along))
    for s in np.linspace(0, 0.005, 9):
        np.testing.assert_allclose(found[0].at(s), expected[0].at(s), rtol=0, atol=1e-13)  # rounding
        np.testing.assert_allclose(found[0].at(s, 1), expected[0].at(s, 1), rtol=0, atol=1e-10)  # over 1 mm
    for own, whole in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(own, whole, rtol=0, atol=1e-13)
