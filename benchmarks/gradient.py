"""A gradient beside its value: the lowest frequency over 25 poses, by all numbers of the robot file.

Both as a user calls them: the value by the programs of maps at a design, the gradient exact through the closed loops.
Expressions of a file follow from its numbers; names, counts and numbers by which loops open have no slopes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from report import Report
from timing import Harness

import parflex
from parflex.design.reverse_gradients import form_program
from parflex.errors import ParflexError
from parflex.parameters.design_numbers import number_at

ROUNDS = 7
STEPS = np.linspace(-0.04, 0.04, 5)
POSES = {
    "navaro": (["x", "y", "rz"], [[x, y, -0.5] for x in STEPS for y in STEPS]),
    "gough-stewart-beams": (
        ["x", "y", "z", "rx", "ry", "rz"],
        [[0.25 + x, 0.433 + y, 1.0, 0.02, 0.03, 0.05] for x in STEPS for y in STEPS],
    ),
}


def every_key(robot: parflex.Robot, pose: dict[str, float]) -> list[str]:
    """All numbers of the file that have slopes."""

    def numbers(part: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
        if isinstance(part, int | float) and not isinstance(part, bool):
            yield ".".join(path)
        named = isinstance(part, list) and all(isinstance(entry, dict) and "name" in entry for entry in part)
        for step, inner in (
            part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        ):
            yield from numbers(inner, (*path, inner["name"] if named else str(step)))

    found = []
    for key in numbers(robot.written.table if robot.written else {}):
        try:
            parflex.sensitivities(robot, "frequency:1", key, pose)
            found.append(key)
        except ParflexError:
            continue
    return found


def run(report: Report, harness: Harness, folder: Path) -> None:
    """Rounds of both, in turn."""
    for name, (names, rows) in POSES.items():
        _robot(report, name, names, np.array(rows))


def _robot(report: Report, name: str, names: list[str], poses: np.ndarray) -> None:
    robot = parflex.load(name)
    asked = [dict(zip(names, row.tolist(), strict=True)) for row in poses]
    report.progress(f"gradient: numbers of {name}")
    keys = every_key(robot, asked[0])
    designs = {key: number_at(robot, key) for key in keys}

    def value() -> float:
        return float(parflex.many_frequencies(robot, names, poses, 1, designs=designs).frequencies.min())

    def gradient() -> float:
        return parflex.sensitivities(robot, "frequency:1", keys, poses=asked).value

    report.progress("gradient: first calls trace")
    error = abs(gradient() / value() - 1)
    taken: dict[Any, list[float]] = {value: [], gradient: []}
    for _ in range(ROUNDS):
        for function, times in taken.items():
            start = time.process_time()
            function()
            times.append(time.process_time() - start)
    low, high = np.quantile(taken[gradient], [0.1, 0.9])
    load = f"{low:.3g} to {high:.3g} s, load {os.getloadavg()[0]:.1f}"
    middle = {function: float(np.median(times)) for function, times in taken.items()}
    made = form_program(robot, keys, "actuators", None, ())
    group = f"gradient, {name}"
    report.figure(group, "keys", len(keys), "")
    report.figure(group, "value over 25 poses", middle[value], "s", note=f"median of {ROUNDS}")
    report.figure(group, "value and gradient", middle[gradient], "s", note=load)
    report.figure(group, "times the value", middle[gradient] / middle[value], "", note=f"values agree to {error:.1e}")
    if made is not None:
        counts = [program.counts()["total"] for program in (made.form, made.kernel.program)]
        report.figure(group, "operators of the form", counts[0], "")
        report.figure(group, "operators of its gradient", counts[1], "")
