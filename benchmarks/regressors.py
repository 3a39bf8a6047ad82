"""Regressors of efforts: of an open chain beside Pinocchio's, and a record of a hexapod from its file to the answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from kernels import Contest
from report import Report
from robots import serial_states
from timing import STATES, Harness, python_loop

import parflex
from parflex.identification.regressor import Regressor, known_forces, rows_of
from parflex.identification.unknowns import unknowns

CHAIN, HEXAPOD = "rx90", "gough-stewart"
PEER = "Pinocchio"
SECONDS, RATE, STROKE = 10.0, 1000.0, 0.006  # of the record; s, 1/s, m
REPEATED = 3


def run(report: Report, harness: Harness, folder: Path) -> None:
    """All inertial parameters of an open chain; a record of 10 s with a warm cache."""
    _chain(report, harness, folder)
    _record(report, folder)


def _chain(report: Report, harness: Harness, folder: Path) -> None:
    benchmark = f"regressor, {CHAIN}"
    report.progress(f"{benchmark}: tracing and compiling")
    robot = parflex.load(CHAIN)
    every = [one for one in unknowns(robot) if one.of_body]
    regressor = Regressor(robot, every)
    x = serial_states(robot, STATES)
    known = _known(regressor, x)
    contest = Contest(report, harness, benchmark, x, known, folder)
    contest.add_ours("parflex", regressor.program.program)
    pinocchio = report.optional("pinocchio_peer", PEER)
    if pinocchio is not None:
        peer = pinocchio.Serial(robot)
        size = robot.tree.n * len(every)
        found = np.array([np.append(peer.regressor(row), rest) for row, rest in zip(x, known[:, size:], strict=True)])
        call, nothing = (python_loop(one) for one in peer.regressor_calls(x[0]))
        contest.add_binding(PEER, call, nothing, contest.error(found), "inertial parameters only")
    contest.run()
    report.compare(benchmark, "parflex, scalar", PEER)
    report.compare(benchmark, "parflex, batched", PEER)


def _known(regressor: Regressor, x: np.ndarray) -> np.ndarray:
    """Rows by the NumPy recursion, and behind them what terms of joints take."""
    from parflex.recursion.kinematics import motion, pose

    tree, found = regressor.robot.tree, []
    for row in x:
        q, qd, qdd = np.split(row, 3)
        at = pose(tree, q)
        moving = motion(tree, at, qd, qdd, -tree.gravity)
        rows = rows_of(tree, regressor.unknowns, at, moving)
        found.append(np.append(rows.ravel(), known_forces(regressor, at, moving)))
    return np.array(found)


def _record(report: Report, folder: Path) -> None:
    """CPU time of `parflex identify`, the start of Python counted, of a record of noise and efforts by the file."""
    benchmark = f"identify, {HEXAPOD}, {SECONDS:g} s at {RATE:g} Hz"
    report.progress(f"{benchmark}: a record")
    robot, rng = parflex.load(HEXAPOD), np.random.default_rng(1)
    motors = robot.actuated_names
    sines = {motor: list(STROKE * rng.uniform(-1, 1, 5) / np.arange(1, 6)) for motor in motors}
    motion = {"frequency": 1 / SECONDS, "sines": sines, "duration": SECONDS}
    done = parflex.simulate(robot, motion, SECONDS, step=1 / RATE)
    names = ["t", *(f"{word}.{motor}" for word in ("q", "effort") for motor in motors)]
    table = np.stack([np.asarray(done[name]) for name in names], axis=1)
    table[:, 1 : 1 + len(motors)] += 1e-7 * rng.standard_normal((len(table), len(motors)))
    path = folder / "record.csv"
    np.savetxt(path, table, delimiter=",", header=",".join(names), comments="")
    command = [sys.executable, "-m", "parflex", "identify", HEXAPOD, str(path), "--json"]
    taken = []
    for _ in range(1 + REPEATED):  # the first fills the cache
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
        taken.append(sum(after[2:4]) - sum(before[2:4]))
    report.figure(benchmark, "first", taken[0], "s", note="CPU, programs compiled if the cache has none")
    report.figure(benchmark, "warm cache", min(taken[1:]), "s", note=f"CPU, best of {REPEATED}; limit 5 s")
