"""Corrections of an implicit step against the dense matrix of Newton, by differences of accelerations in floats."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from support.cases import VERIFY
from support.flexible_states import reduced_equations
from support.oracles.modal_data import invented
from support.robots import robot_file

import parflex
from parflex.codegen.step_programs import step_programs
from parflex.robot.substructures import find_substructures

H = 5e-4  # s
ROOT = 0.25 + 0.14433756729740643j  # of Gauss collocation of order 4
PAIR, REAL = (H * ROOT, (H * ROOT) ** 2), (0.5 * H, 0.3 * H**2)  # coefficients of damping and stiffness
SMALL = 1e-6
LONG, BENT, SPEED = 5e-3, 0.02, 1.0  # s; m, rad; m/s, rad/s
CORNERS = {"one": np.array([-0.2, 0.0, 0.0]), "two": np.array([0.2, 0.05, 0.0])}
WRIST = {"actuated": False, "spring": {"stiffness": 900, "rest": 0.7}, "damper": 2, "friction": {"viscous": 0.5}}
ROBOTS = {  # the file and its settings
    "tree with a spring and dampers": ("stepped-tree", {f"frame.1.{key}": value for key, value in WRIST.items()}),
    "reduced beams": ("stepped-tree", {"frame.0.beam.elements": 4, "frame.0.beam.reduce": {"error": 2, "band": 60}}),
    "closed": ("stepped-loop", {}),
    "modal platform on beams": ("stepped-platform", {}),
    "free body": ("bending-satellite", {}),
}


@cache
def made(name: str) -> parflex.Robot:
    file, settings = ROBOTS[name]
    with TemporaryDirectory() as folder:
        path = shutil.copy(robot_file(file), folder)
        invented(CORNERS, 2, seed=4, mass=3.0).write(Path(folder) / "platform.npz")
        return parflex.load(path, settings=settings)


@cache
def programs(name: str, drive: bool, by_pairs: bool):
    return step_programs(made(name), "state-rates-driven" if drive else "state-rates", 0.0, by_pairs)


@cache
def independent(name: str) -> list[int]:
    return list(find_substructures(made(name)).partition.independent)


def all_rates(at: parflex.Configuration, own: list[int], rates: np.ndarray) -> np.ndarray:
    return at.motions @ np.linalg.solve(at.motions[own], rates)


@cache
def state(name: str, moving: bool) -> tuple[np.ndarray, np.ndarray]:
    """Home at rest; or a pose beside it, bent and in motion, stiff motions as small as behind a long implicit step."""
    robot, own = made(name), independent(name)
    tree, loops, count = robot.tree, list(robot.closures.loops), len(own)
    if not moving:
        return robot.home, np.zeros(count)
    rng = np.random.default_rng(7)
    joints = [k for k in robot.free if k not in tree.elastic]
    step = np.zeros(tree.n)
    step[joints] = rng.uniform(-0.1, 0.1, len(joints))
    q, _ = robot.assembler.newton(tree.moved(robot.home, step), joints, loops)
    slow = np.linalg.inv(np.eye(count) - LONG**2 * tangents(name, False)[0][0])
    way, rates = slow @ rng.uniform(-BENT, BENT, count), slow @ rng.uniform(-SPEED, SPEED, count)
    turned = all_rates(parflex.Configuration(robot, q), own, way)
    q, error = robot.assembler.newton(tree.moved(q, turned), joints, loops)
    assert error < 1e-10
    return q, rates


def accelerations(name: str, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Independent accelerations by the general reduction: without efforts, and with motors that do not accelerate."""
    robot, own = made(name), independent(name)
    at = parflex.Configuration(robot, q)
    M, c, b = reduced_equations(at, all_rates(at, own, rates))
    J, m = at.J_a, len(at.J_a)
    whole = np.block([[M, -J.T], [J, np.zeros((m, m))]])
    still = np.linalg.solve(whole, np.concatenate([-c, -b[list(robot.actuated)]]))[: len(M)]
    return np.array([(at.J @ change + b)[own] for change in (np.linalg.solve(M, -c), still)])


@cache
def tangents(name: str, moving: bool) -> np.ndarray:
    """Of accelerations without efforts, then with driven motors: derivatives by positions and by rates."""
    robot, own, (q, rates) = made(name), independent(name), state(name, moving)
    tree, columns = robot.tree, []
    for k, rate in enumerate(own):
        way = np.zeros(len(rates))
        way[k] = SMALL * tree.rate_units[rate]
        turned = all_rates(parflex.Configuration(robot, q), own, way)
        by_position = [accelerations(name, tree.moved(q, s * turned), rates) for s in (1, -1)]
        by_rate = [accelerations(name, q, rates + s * way) for s in (1, -1)]
        columns.append([(ahead - back) / (2 * way[k]) for ahead, back in (by_position, by_rate)])
    return np.array(columns).transpose(2, 1, 3, 0)


def corrections(name: str, moving: bool, drive: bool, c1: complex, c2: complex) -> np.ndarray:
    """What the programs of the step change accelerations by, for each unit miss: the columns of a matrix."""
    by_pairs = isinstance(c1, complex)
    step = programs(name, drive, by_pairs)
    (q, rates), numbers = state(name, moving), np.array([c1, c2], dtype=complex).view(float)
    factors = step.factor.evaluate("numpy", q=q, qd=rates, c=numbers)["factors"]
    count = step.solve.inputs["miss"][0] // (1 + by_pairs)
    miss = np.hstack([np.eye(count), np.zeros((count, count * by_pairs))])
    found = step.solve.evaluate("numpy", miss=miss, factors=np.tile(factors, (count, 1)))["change"].T
    return found[:count] + (1j * found[len(found) // 2 :][:count] if by_pairs else 0.0)


def dense(name: str, moving: bool, drive: bool, c1: complex, c2: complex) -> np.ndarray:
    """The matrix of Newton."""
    robot = made(name)
    free = [k for k, rate in enumerate(independent(name)) if not (drive and rate in robot.actuated)]
    by_position, by_rate = tangents(name, moving)[int(drive)][:, free][:, :, free]
    return np.eye(len(free)) - c1 * by_rate - c2 * by_position


CASES = [(name, drive) for name in ROBOTS for drive in (False, True) if name != "free body" or not drive]
FEW = pytest.mark.few("closed-False", "closed-True")


@FEW
@pytest.mark.parametrize(("name", "drive"), CASES)
def test_corrections_at_rest_are_those_of_the_dense_matrix(name, drive):
    for c1, c2 in (PAIR, REAL) if VERIFY or not drive else (PAIR,):
        wanted = np.linalg.inv(dense(name, False, drive, c1, c2))
        # differences have six digits of the largest entries
        assert np.abs(corrections(name, False, drive, c1, c2) - wanted).max() < 2e-5 * np.abs(wanted).max()


@FEW
@pytest.mark.parametrize(("name", "drive"), CASES)
def test_iterations_in_motion_shrink_what_is_missed_ten_times(name, drive, figure):
    """Forces in bent beams turn with them, and inertial forces change: neither is in the matrix."""
    matrix = dense(name, True, drive, *PAIR)
    left = np.eye(len(matrix)) - corrections(name, True, drive, *PAIR) @ matrix
    radius = np.abs(np.linalg.eigvals(left)).max()
    figure.below(f"an iteration of {name}{', driven' * drive} in motion", radius, 0.1)
    assert np.abs(np.linalg.eigvals(np.eye(len(matrix)) - matrix)).max() > 0.3  # without a matrix


@pytest.mark.verify
@pytest.mark.parametrize("name", ROBOTS)
def test_implicit_runs_come_where_short_explicit_steps_do(name, figure):
    """A fall from home under weight, through vibrations of a few kHz: explicit steps resolve them a hundred times."""
    if name == "free body":
        pytest.skip("nothing moves it at home")
    runs = [
        parflex.simulate(made(name), time=0.01, effort={}, step=step, out_step=0.005, method=method)
        for method, step in (("gauss4", 5e-5), ("generalized-alpha", 5e-5), ("rk4", 2e-6))
    ]
    ends = [np.array([run[word][[0, -1]] for word in run.columns if word.startswith("q.")]) for run in runs]
    moved = np.abs(ends[-1][:, 1] - ends[-1][:, 0]).max()
    assert moved > 4e-4
    for method, end, limit in (("gauss4", ends[0], 1e-4), ("generalized-alpha", ends[1], 5e-2)):
        off = np.abs(end - ends[-1])[:, 1].max() / moved
        figure(f"{method} against rk4, {name}", off, limit)
        # phases err by (h w)^4/720 and (h w)^2/12 of w t, with h w = 0.3 and w t = 60; a tenth of the motion vibrates
        assert off < limit


def test_operators_of_a_step_grow_linearly_with_the_elements(figure):
    found = []
    for elements in (2, 3, 4):
        step = step_programs(parflex.load("dualemps", elements=elements), "state-rates-driven", 0.0, True)
        found.append([len(program.program.instructions) for program in (step.factor, step.solve)])
    for name, (two, three, four) in zip(("factor", "solve"), np.array(found).T, strict=True):
        figure(f"instructions to {name} with 4 elements", int(four))
        # the growth from 2 to 3, but for what the order of elimination finds by chance
        assert abs((four - three) - (three - two)) < 0.1 * (four - three)


def test_friction_is_in_the_correction():
    """Coulomb friction over a width, against differences of the program of the state in one slide at low speed."""
    robot, width = parflex.load("dualemps"), 1e-2
    step = step_programs(robot, "state-rates", width, True)
    rates = parflex.model(robot, "state-rates", friction_width=width)
    own = rates.labels["qd"]
    qd = np.array([2e-3 if name in robot.motors else 0.0 for name in own])
    still = {"q": robot.home, "effort": np.zeros(robot.nu)}
    still = {key: np.tile(value, (len(own), 1)) for key, value in still.items()}
    unit = np.eye(len(own))
    sides = [rates.evaluate("numpy", qd=qd + e * unit, **still)["acceleration"] for e in (1e-7, -1e-7)]
    by_rate = ((sides[0] - sides[1]) / 2e-7).T
    c = 1e-4 + 5e-5j
    factors = step.factor.evaluate("numpy", q=robot.home, qd=qd, c=np.array([c.real, c.imag, 0.0, 0.0]))["factors"]
    miss = np.random.default_rng(5).standard_normal(2 * len(own))
    change = step.solve.evaluate("numpy", miss=miss, factors=factors)["change"]
    wanted = np.linalg.solve(np.eye(len(own)) - c * by_rate, miss[: len(own)] + 1j * miss[len(own) :])
    found = change[: len(own)] + 1j * change[len(own) :]
    # what motion adds to the matrix, at 2 mm/s, and differences of six digits
    assert np.abs(found - wanted).max() < 1e-4 * np.abs(wanted).max()
