"""Programs of an implicit step against dense corrections, by differences of the general reduction's accelerations."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from support.oracles.modal_data import invented
from support.robots import load_robot
from support.traced import VERIFY, long

import parflex
from parflex import Configuration, Robot
from parflex.codegen.emit.emit_python import functions_of, run
from parflex.codegen.program import Program
from parflex.codegen.step_programs import step_programs
from parflex.models.dynamics.reduced import reduced_equations
from parflex.models.forms.in_pieces.piece_rates import piece_rates
from parflex.models.forms.in_pieces.pieces import Pieces, pieces
from parflex.recursion import pose

H = 5e-4  # s
ROOT = 0.25 + 0.14433756729740643j  # of Gauss collocation of order 4
PAIR, REAL = (H * ROOT, (H * ROOT) ** 2), (0.5 * H, 0.3 * H**2)  # coefficients of damping and stiffness
SMALL = 1e-6
LONG, BENT, SPEED = 5e-3, 0.02, 1.0  # s; m, rad; m/s, rad/s
CORNERS = {"one": np.array([-0.2, 0.0, 0.0]), "two": np.array([0.2, 0.05, 0.0])}
SPRUNG = {"actuated": False, "spring": {"stiffness": 900, "rest": 0.7}, "damper": 2, "friction": {"viscous": 0.5}}
ROBOTS = {  # files and settings
    "tree with a spring and dampers": ("stepped-tree", {f"frame.fore.{key}": value for key, value in SPRUNG.items()}),
    "reduced beams": (
        "stepped-tree",
        {"frame.upper.beam.elements": 4, "frame.upper.beam.reduce": {"error": 2, "band": 60}},
    ),
    "closed": ("stepped-loop", {}),
    "modal platform on beams": ("stepped-platform", {}),
}


@cache
def made(name: str) -> tuple[Robot, Pieces]:
    file, settings = ROBOTS[name]
    with TemporaryDirectory() as folder:
        if file == "stepped-platform":
            modes = invented(CORNERS, 2, seed=4, mass=3.0).write(Path(folder) / "platform.npz")
            settings = {"frame.platform.modal.file": str(modes)}
        robot = load_robot(file, settings=settings)
    form = pieces(robot)
    assert form is not None
    return robot, form


@cache
def state(name: str, moving: bool) -> tuple[np.ndarray, np.ndarray]:
    """Home at rest; or a pose beside it, bent and in motion, stiff motions as small as behind a long implicit step."""
    robot, form = made(name)
    tree, loops, count = robot.tree, list(robot.closures.loops), len(form.partition.independent)
    if not moving:
        return robot.home, np.zeros(count)
    rng, elastic = np.random.default_rng(7), {k for link in tree.links for k in range(link.e_v.start, link.e_v.stop)}
    joints = [k for k in robot.free if k not in elastic]
    step = np.zeros(tree.n)
    step[joints] = rng.uniform(-0.1, 0.1, len(joints))
    q, _ = robot.assembler.newton(tree.moved(robot.home, step), joints, loops)
    slow = np.linalg.inv(np.eye(count) - LONG**2 * tangents(name, False)[0][0])
    way, rates = slow @ rng.uniform(-BENT, BENT, count), slow @ rng.uniform(-SPEED, SPEED, count)
    qd = np.asarray(piece_rates(form, pose(tree, q), way).qd, dtype=float)
    q, error = robot.assembler.newton(tree.moved(q, qd), joints, loops)
    assert error < 1e-10
    return q, rates


def accelerations(form: Pieces, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Independent accelerations by the general reduction: without efforts, and with motors that do not accelerate."""
    robot, independent = form.robot, form.partition.independent
    qd = np.asarray(piece_rates(form, pose(robot.tree, q), rates).qd, dtype=float)
    at = Configuration(robot, q)
    M, c, b = reduced_equations(at, qd)
    J, m = at.J_a, len(at.J_a)
    whole = np.block([[M, -J.T], [J, np.zeros((m, m))]])
    driven = np.linalg.solve(whole, np.concatenate([-c, -b[list(robot.actuated)]]))[: len(M)]
    return np.array([(at.J @ own + b)[independent] for own in (np.linalg.solve(M, -c), driven)])


@cache
def tangents(name: str, moving: bool) -> np.ndarray:
    """Of accelerations without efforts, then with driven motors: derivatives by positions and by rates."""
    form, (q, rates) = made(name)[1], state(name, moving)
    tree, columns = form.robot.tree, []
    for k, rate in enumerate(form.partition.independent):
        way = np.zeros(len(rates))
        way[k] = SMALL * tree.rate_units[rate]
        turned = np.asarray(piece_rates(form, pose(tree, q), way).qd, dtype=float)
        by_position = [accelerations(form, tree.moved(q, s * turned), rates) for s in (1, -1)]
        by_rate = [accelerations(form, q, rates + s * way) for s in (1, -1)]
        columns.append([(ahead - back) / (2 * way[k]) for ahead, back in (by_position, by_rate)])
    return np.array(columns).transpose(2, 1, 3, 0)


def evaluated(program: Program, values: list) -> np.ndarray:
    return np.array(np.broadcast_arrays(*run(program, values, functions_of("numpy"))))


def corrections(name: str, moving: bool, driven: bool, c1: complex, c2: complex) -> np.ndarray:
    by_pairs = isinstance(c1, complex)
    programs = step_programs(made(name)[0], "state-rates-driven" if driven else "state-rates", 0.0, by_pairs)
    assert programs is not None
    numbers = np.array([c1, c2], dtype=complex)
    q, rates = state(name, moving)
    factors = evaluated(programs.factor.program, [*q, *rates, *numbers.view(float)])
    count = programs.solve.inputs["miss"][0] // (1 + by_pairs)
    found = evaluated(programs.solve.program, [*np.eye(count), *np.zeros((count * by_pairs, count)), *factors])
    return found[:count] + (1j * found[len(found) // 2 :][:count] if by_pairs else 0.0)


def dense(name: str, moving: bool, driven: bool, c1: complex, c2: complex) -> np.ndarray:
    robot, form = made(name)
    free = [k for k, rate in enumerate(form.partition.independent) if not (driven and rate in robot.actuated)]
    by_position, by_rate = tangents(name, moving)[int(driven)][:, free][:, :, free]
    return np.eye(len(free)) - c1 * by_rate - c2 * by_position


@pytest.mark.few
@pytest.mark.parametrize("driven", [False, True], ids=["efforts", "driven"])
@pytest.mark.parametrize("name", ROBOTS)
def test_corrections_at_rest_are_those_of_the_dense_matrix(name, driven):
    for c1, c2 in (PAIR, REAL) if VERIFY or (name == "closed" and not driven) else (PAIR,):
        wanted = np.linalg.inv(dense(name, False, driven, c1, c2))
        # differences have six digits of the largest entries
        assert np.abs(corrections(name, False, driven, c1, c2) - wanted).max() < 2e-5 * np.abs(wanted).max()


@pytest.mark.few
@pytest.mark.parametrize("driven", [False, True], ids=["efforts", "driven"])
@pytest.mark.parametrize("name", ROBOTS)
def test_iterations_in_motion_shrink_what_is_missed_ten_times(name, driven, figure):
    matrix = dense(name, True, driven, *PAIR)
    left = np.eye(len(matrix)) - corrections(name, True, driven, *PAIR) @ matrix
    radius = np.abs(np.linalg.eigvals(left)).max()
    figure(f"an iteration of {name}{', driven' * driven} in motion", radius, 0.1)
    assert radius < 0.1
    assert np.abs(np.linalg.eigvals(np.eye(len(matrix)) - matrix)).max() > 0.3  # without a matrix


@pytest.mark.verify
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "closed" else long) for name in ROBOTS])
def test_implicit_runs_come_where_short_explicit_steps_do(name, figure):
    robot, _ = made(name)
    runs = [
        parflex.simulate(robot, time=0.01, effort={}, step=step, out_step=0.005, method=method)
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
