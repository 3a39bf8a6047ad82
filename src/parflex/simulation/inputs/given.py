"""Efforts and wrenches in time, as people give them: numbers, tables, functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.checking import table
from parflex.errors import InputError, did_you_mean
from parflex.models.dynamics.forces import checked_wrench
from parflex.models.robot import Robot
from parflex.simulation.inputs.polynomials import Polynomials, constant, linear
from parflex.tree import Tree

Array = np.ndarray
SAMPLE = 1e-3


def in_time(given: Any, size: int, time: float, key: str) -> Polynomials:
    """Numbers, a function of time (sampled), or a pair of times and rows (straight lines between them)."""
    try:
        if callable(given):
            t = np.linspace(0.0, time, max(2, int(np.ceil(time / SAMPLE)) + 1))
            return _checked(t, np.array([_row(given(float(s)), size) for s in t]), key)
        if isinstance(given, tuple) and len(given) == 2 and np.ndim(given[0]) == 1:
            t = np.asarray(given[0], dtype=float)
            return _checked(t, np.asarray(given[1], dtype=float).reshape(len(t), size), key)
        return _checked(None, _row(given, size)[None], key)
    except (TypeError, ValueError):
        raise InputError(
            f"what is given for '{key}' is not {size} numbers, a function of time or a table",
            key=key,
            hint="give numbers, f(t), or (times, rows)",
        ) from None


def _row(values: Any, size: int) -> Array:
    row = np.atleast_1d(np.asarray(values, dtype=float))
    if row.shape != (size,):
        raise ValueError
    return row


def _checked(t: Array | None, rows: Array, key: str) -> Polynomials:
    if not np.isfinite(rows).all() or (t is not None and (not np.isfinite(t).all() or np.any(np.diff(t) <= 0))):
        raise InputError(
            f"'{key}' has numbers that are not finite or times that do not rise", key=key, hint="mend the table"
        )
    return constant(rows[0]) if t is None or len(t) < 2 else linear(t, rows)


def given_efforts(robot: Robot, effort: Any, time: float) -> Polynomials:
    """Efforts of all motors; those that are not named have none."""
    names = robot.actuated_names
    if effort is None:
        return constant(np.zeros(len(names)))
    if not isinstance(effort, Mapping):
        return in_time(effort, len(names), time, "effort")
    for name in effort:
        if name not in names:
            raise InputError(
                f"'{name}' is not an actuated joint", key="effort", value=name, hint=did_you_mean(name, names)
            )
    result: Polynomials | None = None
    for name in names:
        own = in_time(effort.get(name, 0.0), 1, time, f"effort.{name}")
        result = own if result is None else result.beside(own)
    return result if result is not None else constant(np.zeros(0))


def given_wrenches(robot: Robot, wrench: Mapping[str, Any] | None, time: float) -> dict[str, Polynomials]:
    """Wrenches by frame in world axes: six or three numbers as everywhere, functions of time, or tables of them."""
    result, tree = {}, robot.tree
    for frame, values in table(wrench, "wrench", "{'platform': [0, 0, -100]}").items():
        if callable(values):
            in_time_of_six = _function(tree, frame, values)
        elif isinstance(values, tuple) and len(values) == 2 and np.ndim(values[0]) == 1:
            in_time_of_six = _rows(tree, frame, values)
        else:
            in_time_of_six = checked_wrench(tree, frame, values)
        checked_wrench(tree, frame, np.zeros(3))  # the frame is there
        result[frame] = in_time(in_time_of_six, 6, time, f"wrench.{frame}")
    return result


def _function(tree: Tree, frame: str, given: Any) -> Any:
    return lambda t: checked_wrench(tree, frame, given(t))


def _rows(tree: Tree, frame: str, given: tuple[Any, Any]) -> tuple[Any, Any]:
    try:
        rows = np.asarray(given[1], dtype=float).reshape(len(given[0]), -1)
    except (TypeError, ValueError):
        return given  # said by in_time
    if rows.shape[1] in (3, 6) and np.isfinite(rows).all():
        rows = np.array([checked_wrench(tree, frame, row) for row in rows]).reshape(len(rows), 6)
    return given[0], rows
