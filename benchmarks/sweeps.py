"""Sweeps of designs on one process and on two, beside a naive loop that loads every design and solves every pose."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from report import Report
from timing import Harness

import parflex

NAME = "sweep"
DESIGNS = int(os.environ.get("PARFLEX_SWEEP_DESIGNS", "20000"))
NAIVE = int(os.environ.get("PARFLEX_SWEEP_NAIVE", "50"))  # designs of the naive loop, from which the rest is taken
SIDE = 10  # poses along each side of the region
FILE = """
robot = "navaro"
[variables.constants.bar]
lower = 0.19
upper = 0.24
[variables."sections.link.Iz"]
lower = 1.6e-9
upper = 2.6e-9
[responses.lowest]
response = "frequency:1"
region = {{ x = [-0.05, 0.05, {side}], y = [-0.05, 0.05, {side}], rz = -0.5 }}
[samples]
kind = "sobol"
count = {count}
"""


def spent() -> float:
    """Seconds of processor time of this process and of those that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Processor time a design by one and two processes, designs per second, and the naive loop."""
    path = folder / "sweep.toml"
    path.write_text(FILE.format(side=SIDE, count=64))
    parflex.sweep(path, jobs=1)  # compiled programs are kept from here on
    path.write_text(FILE.format(side=SIDE, count=DESIGNS))
    cost, found = {}, {}
    for jobs in (1, 2):
        report.progress(f"sweep: {DESIGNS} designs on {jobs} processes")
        start, begin = spent(), time.perf_counter()
        found[jobs] = parflex.sweep(path, folder / f"sweep-{jobs}.npz", jobs=jobs)
        cost[jobs], wall = (spent() - start) / DESIGNS, time.perf_counter() - begin
        note = f"{DESIGNS / wall:.0f} designs/s of wall time, load {os.getloadavg()[0]:.1f}"
        report.figure(NAME, f"{jobs} processes, {SIDE**2} poses a design", 1e3 * cost[jobs], "ms CPU/design", note=note)
    report.figure(NAME, "processor time of two processes to one", cost[2] / cost[1], "times")
    same = np.array_equal(found[1].responses["lowest"], found[2].responses["lowest"])
    report.figure(NAME, "tables are equal", float(same), "1 is yes")
    naive, error = _naive(found[1])
    note = f"measured on {NAIVE} designs; largest relative difference {error:.1e}"
    report.figure(NAME, "naive loop", 1e3 * naive, "ms CPU/design", error=error, note=note)
    report.figure(NAME, "naive loop to sweep", naive / cost[1], "times", note="taken from the designs measured")


def _naive(found: parflex.Sweep) -> tuple[float, float]:
    """Seconds a design by `load` and `natural_frequencies`, and the largest relative difference."""
    places = np.linspace(-0.05, 0.05, SIDE)
    start, error = time.process_time(), 0.0
    for row in range(NAIVE):
        robot = parflex.load("navaro", settings={key: float(own[row]) for key, own in found.variables.items()})
        poses = ({"x": x, "y": y, "rz": -0.5} for x in places for y in places)
        lowest = min(parflex.natural_frequencies(robot, pose, 1).frequencies[0] for pose in poses)
        error = max(error, abs(found.responses["lowest"][row] / lowest - 1))
    return (time.process_time() - start) / NAIVE, error
