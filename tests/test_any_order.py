"""Answers do not depend on what was asked before: any order of questions, any number of threads, changed answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import parflex
from parflex import ParflexError
from parflex.control.following import track
from parflex.control.references import circle
from parflex.spatial import vector_from_rotation

ROBOTS = ["puma560", "rx90", "four-bar", "bricard"]


def answer(robot, pose):
    """All positions, or what is said of a pose that cannot be."""
    try:
        return robot.assemble(pose).tolist()
    except ParflexError as error:
        return error.message


def questions(robot, rng):
    """Poses near home: a part of the place, the place, place and turn, some joints."""
    position, rotation = parflex.frames(robot)[robot.tree.end_effector]
    axes = "xy" if robot.tree.planar else "xyz"
    place = {axis: float(value) for axis, value in zip(axes, position, strict=False)}
    turn = vector_from_rotation(rotation)
    turned = (
        {"theta": float(turn[2])} if robot.tree.planar else dict(zip(("rx", "ry", "rz"), map(float, turn), strict=True))
    )
    joints = {name: float(robot.home[k]) for k, name in enumerate(robot.tree.position_names) if "." not in name}
    first = next(iter(joints))
    asked = [{"x": place["x"]}, dict(place), {"y": place["y"]}, {first: joints[first]}, place | turned]
    size = 0.03 * robot.tree.length
    near = [{key: value + rng.uniform(-size, size) for key, value in pose.items()} for pose in asked]
    far = {key: value + 0.9 for key, value in turned.items()}  # Newton from home ends with another wrist
    return [*near, place | far] if len(robot.actuated) == 6 else near


@pytest.mark.few
@pytest.mark.parametrize("name", ROBOTS)
def test_poses_in_any_order_are_those_of_a_robot_that_was_just_loaded(name):
    rng = np.random.default_rng(5)
    asked = questions(parflex.load(name), rng)
    alone = [answer(parflex.load(name), pose) for pose in asked]
    there = range(len(asked))
    for order in (there, reversed(there)):
        robot = parflex.load(name)
        for k in order:
            assert answer(robot, asked[k]) == alone[k], asked[k]  # to the last digit


def test_threads_that_ask_one_robot_get_what_each_gets_alone():
    rng = np.random.default_rng(6)
    asked = questions(parflex.load("rx90"), rng) + questions(parflex.load("rx90"), rng)
    alone = [answer(parflex.load("rx90"), pose) for pose in asked]
    robot = parflex.load("rx90")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda pose: answer(robot, pose), asked)) == alone


def test_an_answer_that_is_changed_changes_no_other_answer():
    robot = parflex.load("four-bar")
    before = robot.assemble()
    changed = robot.assemble()
    changed += 0.5
    configuration = parflex.configure(robot)
    assert np.array_equal(robot.assemble(), before)
    assert np.array_equal(configuration.q, before)
    with pytest.raises(ValueError, match="read-only"):
        configuration.q[0] = 1.0


def test_samples_of_a_reference_are_those_of_the_times_that_were_asked_for():
    robot = parflex.load("5r")
    driven = track(robot, circle(robot, 0.02, 0.5), robot.actuated_names, step=0.05)
    even, other = np.linspace(0.0, 0.4, 5), np.array([0.0, 0.01, 0.02, 0.03, 0.4])
    for times in (even, other, even):
        assert np.array_equal(driven.at(times)[0], driven.pieces.at(times))
        assert np.array_equal(driven.path(times).position, driven.reference.at(times).position)
