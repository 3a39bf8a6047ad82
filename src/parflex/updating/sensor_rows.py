"""Sensors on frames: what they see of a motion of the robot, and how alike shapes are at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.robot.configuration import Configuration

Array = np.ndarray
PARTS = {"x": 0, "y": 1, "z": 2, "rx": 3, "ry": 4, "rz": 5}
LOCAL = "local_"  # before a part: along the axes of the frame, as of a sensor that is glued on


def is_sensor(name: Any) -> bool:
    """Whether a column is named as a sensor: FRAME.x, ..., FRAME.rz, FRAME.local_x, ..."""
    frame, dot, part = str(name).rpartition(".")
    return bool(frame and dot) and part.removeprefix(LOCAL) in PARTS


def sensor_rows(here: Configuration, sensors: Sequence[str]) -> Array:
    """What each sensor sees per unit of all rates, in world axes or in those of its frame."""
    tree, found = here.robot.tree, []
    for word in sensors:
        frame, _, part = word.rpartition(".")
        if not tree.has(frame, "measured"):
            raise InputError(f"'{word}' of a measured shape: the robot has no frame '{frame}'", key="measured",
                             value=word, hint=did_you_mean(frame, list(tree.places)))  # fmt: skip
        rows = here.frame_rows(frame)
        if part.startswith(LOCAL):
            R, _ = here.at.of(tree.place(frame))
            rows = np.concatenate([R.T @ rows[:3], R.T @ rows[3:]])
        found.append(rows[PARTS[part.removeprefix(LOCAL)]])
    return np.array(found, dtype=float).reshape(len(sensors), tree.n)


def mac_of_span(measured: Array, shapes: Array) -> float:
    """MAC of a measured shape with the nearest motion in the span of some: of equal modes any mixture is a mode."""
    size = float(np.vdot(measured, measured).real)
    if not size or not shapes.any():
        return 0.0
    basis, sizes, _ = np.linalg.svd(shapes, full_matrices=False)
    along = basis[:, sizes > 1e-9 * sizes[0]].T @ measured
    return float(np.vdot(along, along).real) / size
