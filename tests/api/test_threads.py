"""Functions asked by eight threads at once, on one robot that nobody asked before and on several."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import parflex
from parflex.records import equal

THREADS = 8
HANDED_OVER = 1e-6  # s after which another thread may go on: 5000 times as often as by default


@pytest.fixture(autouse=True)
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


def test_threads_that_share_a_new_robot_get_the_answers_of_a_single_thread():
    alone = asked(parflex.load("5r"))
    found = answers([parflex.load("5r")] * THREADS)
    assert all(equal(answer, alone) for answer in found)


@pytest.mark.verify
def test_threads_with_separate_robots_get_the_answers_of_a_single_thread(tmp_path, monkeypatch):
    names = ["5r", "four-bar"] * 2
    alone = {name: asked(parflex.load(name)) for name in sorted(set(names))}
    monkeypatch.setenv("PARFLEX_CACHE", str(tmp_path / "other"))
    found = answers([parflex.load(name) for name in names])
    assert all(equal(answer, alone[name]) for name, answer in zip(names, found, strict=True))


@pytest.mark.verify
def test_modes_and_pages_of_a_flexible_robot_are_the_same_from_all_threads():
    def ask(robot: parflex.Robot) -> list:
        modes = parflex.natural_frequencies(robot, modes=2)
        return [modes, modes._repr_html_(), parflex.deflection(robot, wrench={"17": [1.0, 5.0, 0.0]})]

    alone = ask(parflex.load("dualemps"))
    shared = parflex.load("dualemps")
    with ThreadPoolExecutor(THREADS) as pool:
        assert all(equal(found, alone) for found in pool.map(ask, [shared] * THREADS))
