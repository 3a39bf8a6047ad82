"""Answers do not depend on the order of calls, on changed answers, or on threads."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import parflex
from parflex.records import equal


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


def test_a_copy_with_other_lengths_finds_its_own_home():
    def longer(robot):
        links = tuple(replace(link, position=1.1 * link.position) for link in robot.tree.links)
        tree = replace(robot.tree, links=links)
        return replace(robot, tree=tree, closures=replace(robot.closures, tree=tree))

    robot = parflex.load("5r")
    wanted = longer(parflex.load("5r")).home
    assert np.abs(wanted - robot.home).max() > 0.01  # home does depend on lengths
    sensing = robot.sensing([])
    assert np.array_equal(sensing.home, robot.home) and np.array_equal(longer(sensing).home, wanted)
    locked = robot.locking(robot.actuated)  # locked joints stand as those of the robot that they were locked in
    assert np.array_equal(locked.home, robot.home) and not np.array_equal(longer(locked).home, robot.home)


THREADS = 8
HANDED_OVER = 1e-6  # s after which another thread may go on: 5000 times as often as by default


@pytest.fixture
def impatient(tmp_path, monkeypatch):
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path))
    before = sys.getswitchinterval()
    sys.setswitchinterval(HANDED_OVER)
    yield
    sys.setswitchinterval(before)


def asked(robot: parflex.Robot) -> list:
    model = parflex.model(robot, "kinematics")
    rates = np.linspace(-1.0, 1.0, 6)[:, None] * np.ones(len(robot.independent))
    return [
        parflex.inverse_dynamics(robot, acceleration={"y": 1.0}, reactions=True),
        parflex.mass_matrix(robot),
        model,
        model(**model.sample),
        parflex.inverse_dynamics(robot, robot.home, rates, rates),
        robot._repr_html_(),
        repr(robot),
    ]


def answers(robots: list) -> list:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(asked, robots))


def test_threads_that_share_a_new_robot_get_the_answers_of_a_single_thread(impatient):
    alone = asked(parflex.load("5r"))
    found = answers([parflex.load("5r")] * THREADS)
    assert all(equal(answer, alone) for answer in found)


@pytest.mark.verify
def test_threads_with_separate_robots_get_the_answers_of_a_single_thread(tmp_path, monkeypatch, impatient):
    names = ["5r", "four-bar"] * 2
    alone = {name: asked(parflex.load(name)) for name in sorted(set(names))}
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "other"))
    found = answers([parflex.load(name) for name in names])
    assert all(equal(answer, alone[name]) for name, answer in zip(names, found, strict=True))
