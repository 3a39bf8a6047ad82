"""Rows of poses as they are given: one column for each coordinate; what is not a number is marked later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.checking import names, shown
from parflex.errors import InputError

Array = np.ndarray


def pose_table(coordinates: Sequence[str], poses: Any) -> tuple[tuple[str, ...], Array]:
    """Names of coordinates, and rows of their values; some of these may be not a number."""
    words = names(coordinates, "coordinates", "['x', 'y']")
    values = pose_rows(poses, "poses")
    if values.shape[1] != len(words) or not len(values):
        raise InputError(
            f"poses have the shape {values.shape}", key="poses", hint=f"give rows of {len(words)} coordinates"
        )
    return words, values


def pose_rows(poses: Any, key: str) -> Array:
    """Rows of numbers."""
    try:
        values = np.asarray(None if isinstance(poses, (str, bytes)) else poses, dtype=float)
    except (TypeError, ValueError):
        values = np.zeros(())
    if values.ndim != 2:
        raise InputError(
            f"'{key}' is not n x n numbers", key=key, value=shown(poses), hint="give rows of numbers, one for each pose"
        )
    return values
