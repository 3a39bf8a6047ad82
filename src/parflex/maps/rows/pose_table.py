"""Rows of poses as they are given: one column for each coordinate; what is not a number is marked later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.checks import names, short_text
from parflex.errors import InputError
from parflex.robot.coordinate_names import read_columns
from parflex.robot.robot import Robot

Array = np.ndarray


def pose_table(robot: Robot, coordinates: Sequence[str], poses: Any) -> tuple[tuple[str, ...], Array]:
    """Return the names of coordinates, and rows of their values (m, rad); some of these may be not a number."""
    words = names(coordinates, "coordinates", "['x', 'y']")
    values = pose_rows(poses, "poses")
    if values.shape[1] != len(words) or not len(values):
        raise InputError(
            f"poses have the shape {values.shape}", key="poses", hint=f"give rows of {len(words)} coordinates"
        )
    found, units = read_columns(robot.tree, words, "coordinates")
    return found, values * units


def pose_rows(poses: Any, key: str) -> Array:
    """Rows of numbers."""
    try:
        values = np.asarray(None if isinstance(poses, (str, bytes)) else poses, dtype=float)
    except (TypeError, ValueError):
        values = np.zeros(())
    if values.ndim != 2:
        raise InputError(
            f"'{key}' is not n x n numbers",
            key=key,
            value=short_text(poses),
            hint="give rows of numbers, one for each pose",
        )
    return values
