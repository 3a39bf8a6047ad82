"""Recorded positions of passive joints compared with those that follow from the motors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.identification.preprocess import FilterChoice, filtered_motion, kept_instants
from parflex.identification.recordings import Recording
from parflex.identification.regressor import Regressor
from parflex.robot.robot import Robot

Array = np.ndarray
MEDIAN = 1.4826  # a standard deviation over the median of sizes
NEAREST = 5e-3  # rad, or typical lengths: less is calibration
SURE = 6.0  # deviations of the noise of a sensor, by which a single sample is off


def passive_joints(robot: Robot) -> list[str]:
    """Joints of one axis that are no motors and that loops hold, which may have a sensor of their own."""
    if not robot.closures.size:
        return []
    tree, motors = robot.tree, set(robot.actuated)
    return [link.name for link in tree.links if link.joint.one_axis and link.v.start not in motors]


def passive_doubts(regressor: Regressor, records: Sequence[Recording], choice: FilterChoice) -> list[Diagnostic]:
    """Diagnostics of joints that stand elsewhere than loops, lengths of the file and motors say."""
    return [
        diagnostic.prefixed(f"{Path(record.name).name}: ")
        for record in records if record.passive
        for diagnostic in _of_record(regressor, record, choice)
    ]  # fmt: skip


def _of_record(regressor: Regressor, record: Recording, choice: FilterChoice) -> list[Diagnostic]:
    tree, found = regressor.robot.tree, []
    closed = regressor.closed(kept_instants(filtered_motion(record, choice).position, choice))
    for joint, column in record.passive.items():
        link = tree.links[tree.number(joint)]
        off = kept_instants(choice.inside(column), choice) - closed[:, link.q.start]
        if link.periodic:
            off = off - 2 * np.pi * np.round(np.median(off) / (2 * np.pi))
        size, unit = float(tree.rate_units[link.v.start]), link.joint.unit
        mean, noise = float(np.median(off)), _noise(column)
        changes = float(np.quantile(np.abs(off - mean), 0.95))
        least = max(NEAREST * size, SURE * noise)
        if not (abs(mean) > least or changes > least):
            continue
        beside = f"{abs(mean) / noise:.2g} times the noise of its sensor" if noise else "which has no noise"
        words = f"'{joint}' is recorded {mean:.3g} {unit} off what loops and motors give, {beside}"
        if changes > max(least, abs(mean)):
            words = (
                f"'{joint}' is recorded up to {changes:.3g} {unit} off what loops and motors give: check its sign, "
                "unit and column, zeros of the motors, and lengths and working mode of the file"
            )
        elif changes > least:
            words += f", and {changes:.2g} {unit} more with the motion: zeros of motors or lengths are off"
        else:
            words += ": its zero or that of a motor is off, or lengths of the file are"
        found.append(Diagnostic("contradicting-sensor", words, joint, max(abs(mean), changes)))
    return found


def _noise(column: Array) -> float:
    """Standard deviation of white noise of a sensor, or of what its lines round, by second differences."""
    steps = np.abs(np.diff(column))
    line = float(steps[steps > 0].min(initial=np.inf))
    white = MEDIAN * float(np.median(np.abs(np.diff(column, 2)))) / np.sqrt(6)
    coarse = np.isfinite(line) and np.unique(column).size < len(column) / 2  # values that come again are lines
    return max(white, line / np.sqrt(12) if coarse else 0.0)
