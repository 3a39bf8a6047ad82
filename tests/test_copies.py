"""Copies of frozen objects: each keeps what it shares with the one it was made from, and a further copy drops it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import parflex
from parflex.codegen.program_store import digest_of
from parflex.models.elastic.holding import held_robot
from parflex.models.terms import acting
from parflex.tree.branch import branch


def longer(robot: parflex.Robot) -> parflex.Robot:
    """The robot with its rods a tenth longer."""
    links = tuple(replace(link, position=1.1 * link.position) for link in robot.tree.links)
    tree = replace(robot.tree, links=links)
    return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))


def alike(robot: parflex.Robot) -> list[parflex.Robot]:
    """Robots that stand where this one does."""
    held = held_robot(robot, robot.home, servo=1e3)
    return [robot.locking(robot.actuated), robot.sensing([]), acting(robot, ["friction"]), held]


def test_copies_that_move_alike_stand_at_the_same_home():
    robot = parflex.load("5r")
    for copy in alike(robot):
        assert copy.home is robot.home
    assert alike(robot)[-1].mobility is robot.locking(()).mobility


def test_a_copy_with_other_lengths_finds_its_own_home():
    robot = parflex.load("5r")
    own = longer(parflex.load("5r")).home
    assert np.abs(own - robot.home).max() > 0.01  # the home does depend on lengths
    for copy in alike(robot):
        if not copy.locked:  # locked joints stand as those of the robot that they were locked in
            assert np.array_equal(longer(copy).home, own)
        assert longer(copy).home is not robot.home


def test_what_is_known_already_is_no_part_of_what_a_robot_is():
    robot, again = parflex.load("5r"), parflex.load("5r")
    locked = again.locking(again.actuated)
    fresh = replace(again, locked=locked.locked, actuated=locked.actuated, known_home=again.home.copy())
    assert digest_of(robot.locking(robot.actuated)) == digest_of(locked) == digest_of(fresh)


def test_lengths_of_a_branch_are_those_of_its_tree_and_of_no_copy():
    tree = parflex.load("5r").tree
    small = branch(tree, [0]).tree
    assert small.length == tree.length
    assert replace(small).length != tree.length


def test_models_that_differ_in_numbers_alone_share_what_is_compiled():
    model = parflex.model(parflex.load("5r"), "inverse", parameters="base")
    name = next(iter(model.parameters))
    other = model.with_parameters({name: model.parameters[name] + 1.0})
    assert other.machine_code()[0] is model.machine_code()[0]
    assert not np.array_equal(other.machine_code()[1], model.machine_code()[1])
    assert replace(model, program=other.program).machine_code()[0] is not model.machine_code()[0]


def test_the_digest_of_a_robot_compares_it_with_no_other(monkeypatch):
    """To compare two robots that were loaded alike takes longer than a map of many poses."""

    def compared(self: parflex.Robot, other: object) -> bool:
        raise AssertionError("robots are compared")

    first, second = parflex.load("5r"), parflex.load("5r")
    monkeypatch.setattr(parflex.Robot, "__eq__", compared)
    assert digest_of(first) == digest_of(second) == digest_of(first)
