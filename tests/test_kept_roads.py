"""Paths that were followed once are read from the disk, and only those."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import parflex
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


def test_a_damaged_file_counts_as_none(found):
    robot, line, calls, folder = found
    follow(robot, line)
    (file,) = folder.glob("*.road")
    file.write_bytes(file.read_bytes()[:-9])
    follow(robot, line)
    assert len(calls) == 2
