"""A gradient beside its value: the lowest frequency of the NaVARo over 25 poses, by five numbers of its file.

Both as a user calls them: the value by the programs of maps at a design, the gradient exact through the closed loops.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from report import Report
from timing import Harness

import parflex
from parflex.designs.design_numbers import number_at

KEYS = ["constants.bar", "constants.arm", "sections.link.Iz", "sections.link.A", "sections.link.Ip"]
ROUNDS = 7


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Rounds of both, in turn."""
    robot, names = parflex.load("navaro"), ["x", "y", "rz"]
    steps = np.linspace(-0.04, 0.04, 5)
    poses = np.array([[x, y, -0.5] for x in steps for y in steps])
    asked = [dict(zip(names, row.tolist(), strict=True)) for row in poses]
    designs = {key: number_at(robot, key) for key in KEYS}

    def value() -> float:
        return float(parflex.many_frequencies(robot, names, poses, 1, designs=designs).frequencies.min())

    def gradient() -> float:
        return parflex.sensitivities(robot, "frequency:1", KEYS, poses=asked).value

    report.progress("gradient: first calls trace")
    error = abs(gradient() / value() - 1)
    taken = {value: [], gradient: []}
    for _ in range(ROUNDS):
        for function, times in taken.items():
            start = time.process_time()
            function()
            times.append(time.process_time() - start)
    low, high = np.quantile(taken[gradient], [0.1, 0.9])
    load = f"{low:.3g} to {high:.3g} s, load {os.getloadavg()[0]:.1f}"
    middle = {function: float(np.median(times)) for function, times in taken.items()}
    report.figure("gradient", "value over 25 poses", middle[value], "s", note=f"median of {ROUNDS}")
    report.figure("gradient", "value and gradient", middle[gradient], "s", note=load)
    report.figure(
        "gradient", "times the value", middle[gradient] / middle[value], "", note=f"values agree to {error:.1e}"
    )
