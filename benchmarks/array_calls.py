"""One call from Python with arrays: `inverse_dynamics(robot, q, qd, qdd)` beside Pinocchio, closed positions given.

Both sides are called as a user calls them, with all that the call costs. parflex checks shapes, loops, rates,
accelerations and condition numbers on the way; Pinocchio's side is rnea, Jacobians of joints and contacts, and a solve.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from report import Report
from robots import physical_3rrr, physical_gough_stewart
from timing import STATES, Harness, Loop, measure

import parflex
from parflex.robot.robot import Robot

ROBOTS = {"gough-stewart": physical_gough_stewart, "3rrr": physical_3rrr}
BATCH = 1000
State = tuple[np.ndarray, np.ndarray, np.ndarray]


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Every robot, one state at a time and a batch."""
    pinocchio = report.optional("pinocchio_peer", "Pinocchio")
    for name, physical in ROBOTS.items():
        benchmark = f"{name} arrays"
        robot, states = parflex.load(name), _states(physical())
        report.progress(f"{benchmark}: the first call compiles")
        start = time.process_time()
        parflex.inverse_dynamics(robot, *states[0])
        report.figure(benchmark, "first call", time.process_time() - start, "s", note="from the disk where it was kept")
        efforts = np.array([parflex.inverse_dynamics(robot, *state) for state in states])
        out, rows = np.empty(robot.nu), np.arange(BATCH) % len(states)
        many = [np.array(part)[rows] for part in zip(*states, strict=True)]
        parflex.inverse_dynamics(robot, *many)  # compiles what takes several states at a time
        contestants = {
            "parflex": _in_turn(_call(robot), states),
            "parflex, out=": _in_turn(_call(robot, out=out), states),
        }
        contestants["parflex, batch"] = _batches(robot, many)
        error = 0.0
        if pinocchio is not None:
            peer = pinocchio.ClosedRobot(physical())
            given = [peer.arrays(*state) for state in states]
            known = np.array([peer.inverse(*arrays) for arrays in given])
            error = float(np.abs(known - efforts).max() / np.abs(known).max())
            contestants["Pinocchio"] = _in_turn(peer.inverse, given)
        load = f"load {os.getloadavg()[0]:.1f}"
        for contestant, rounds in measure(contestants).items():
            report.timing(benchmark, contestant, rounds, error=error, note=f"median {np.median(rounds):.0f} ns, {load}")
        for contestant in ("parflex", "parflex, out=", "parflex, batch"):
            report.compare(benchmark, contestant, "Pinocchio")


def _states(robot: Robot) -> list[State]:
    """Random closed states about home: positions, rates and accelerations of all coordinates."""
    rng, own, found = np.random.default_rng(3), list(robot.independent_rates), []
    for _ in range(STATES):
        step, rates, accelerations = np.zeros(robot.nv), np.zeros(robot.nv), np.zeros(robot.nv)
        step[own] = rng.uniform(-0.1, 0.1, len(own)) * robot.tree.rate_units[own]
        here = parflex.configure(robot, robot.close(robot.tree.moved(robot.home, step)))
        rates = here.J @ rng.uniform(-1, 1, len(own))
        accelerations = here.J @ rng.uniform(-1, 1, len(own)) + here.acceleration_bias(rates)
        found.append((here.q.copy(), rates, accelerations))
    return found


def _call(robot: Robot, **words: np.ndarray) -> Callable[..., object]:
    if words:
        return lambda *state: parflex.inverse_dynamics(robot, *state, **words)
    return lambda *state: parflex.inverse_dynamics(robot, *state)


def _in_turn(call: Callable[..., object], states: list[State]) -> Loop:
    """A loop of calls, state after state."""

    def loop(calls: int) -> None:
        for state in itertools.islice(itertools.cycle(states), calls):
            call(*state)

    return loop


def _batches(robot: Robot, many: list[np.ndarray]) -> Loop:
    """A loop of batches with at least so many states: one call is one state."""

    def loop(calls: int) -> None:
        for _ in range(-(-calls // BATCH)):
            parflex.inverse_dynamics(robot, *many)

    return loop
