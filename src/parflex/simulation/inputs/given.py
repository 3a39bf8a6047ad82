"""Efforts and wrenches in time: numbers, tables, functions."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from parflex.checks import table
from parflex.errors import InputError
from parflex.forces.forces import checked_wrench
from parflex.records import count_of
from parflex.robot.motor_values import by_motor, motor_effort, read_efforts
from parflex.robot.robot import Robot
from parflex.simulation.inputs.function_samples import APART, Span, through_samples
from parflex.simulation.inputs.polynomials import Polynomials, constant, linear
from parflex.tree.tree import Tree

Array = np.ndarray


def in_time(given: Any, size: int, span: Span, key: str) -> Polynomials:
    """Numbers, a function of time (quintics through samples), or times and rows (straight lines between them)."""
    try:
        if callable(given):
            return _from_function(given, size, span, key)
        if _is_table(given):
            t = np.asarray(given[0], dtype=float)
            return _checked(t, np.asarray(given[1], dtype=float).reshape(len(t), size), key)
        return _checked(None, _row(given, size)[None], key)
    except (TypeError, ValueError):
        raise InputError(
            f"'{key}' is not {count_of(size, 'number')}, a function of time or a table",
            key=key,
            hint="give numbers, f(t), or (times, rows)",
        ) from None


def _from_function(given: Any, size: int, span: Span, key: str) -> Polynomials:
    pieces, off = through_samples(lambda t: _finite(_row(given(t), size), key), span.end, span.step)
    span.apart[key] = APART * span.step
    if off is not None:
        span.warnings.append(
            f"the function '{key}' changes too fast to be sampled: about t = {off[1]:.6g} s the run uses values that "
            f"are off by {off[0]:.2g} of its range (use a smaller step, or a smooth function)"
        )
    return pieces


def _row(values: Any, size: int) -> Array:
    row = np.atleast_1d(np.asarray(values, dtype=float))
    if row.shape != (size,):
        raise ValueError
    return row


def _finite(rows: Array, key: str) -> Array:
    if not np.isfinite(rows).all():
        raise InputError(f"'{key}' has numbers that are not finite", key=key, hint="correct the function")
    return rows


def _checked(t: Array | None, rows: Array, key: str) -> Polynomials:
    if not np.isfinite(rows).all() or (t is not None and not np.isfinite(t).all()):
        raise InputError(f"'{key}' has numbers that are not finite", key=key, hint="correct the table")
    if t is not None and np.any(back := np.diff(t) < 0):
        row = int(np.argmax(back)) + 2
        raise InputError(
            f"'{key}' has times that do not increase: row {row} is at {t[row - 1]:g} s, behind {t[row - 2]:g} s",
            key=key,
            hint="order the rows by time; two rows at one time are a jump",
        )
    return constant(rows[0]) if t is None or len(t) < 2 else linear(t, rows)


def given_efforts(robot: Robot, effort: Any, span: Span) -> Polynomials:
    """Efforts of all motors; those that are not named have none. Each, or all, may be a function or a table of time."""
    names = robot.actuated_names
    if isinstance(effort, Mapping):
        named = by_motor(names, effort, "effort", "effort")
        parts = [_effort_of(name, named.get(motor, 0.0), span) for motor, name in enumerate(names)]
        return functools.reduce(Polynomials.beside, parts) if parts else constant(np.zeros(0))
    if callable(effort):
        return in_time(lambda t: read_efforts(robot, effort(t)), len(names), span, "effort")
    if _is_table(effort):
        return in_time(effort, len(names), span, "effort")
    return constant(read_efforts(robot, effort))


def _effort_of(name: str, given: Any, span: Span) -> Polynomials:
    if callable(given):
        return in_time(lambda t: motor_effort(name, given(t)), 1, span, f"effort.{name}")
    if _is_table(given):
        return in_time(given, 1, span, f"effort.{name}")
    return constant(np.array([motor_effort(name, given)]))


def _is_table(given: Any) -> bool:
    """Times and rows."""
    return isinstance(given, tuple) and len(given) == 2 and np.ndim(given[0]) == 1


def given_wrenches(robot: Robot, wrench: Mapping[str, Any] | None, span: Span) -> dict[str, Polynomials]:
    """Wrenches by frame in world axes: six or three numbers as everywhere, functions of time, or tables of them."""
    result, tree = {}, robot.tree
    for frame, values in table(wrench, "wrench", "{'platform': [0, 0, -100]}").items():
        if callable(values):
            in_time_of_six = _function(tree, frame, values)
        elif _is_table(values):
            in_time_of_six = _rows(tree, frame, values)
        else:
            in_time_of_six = checked_wrench(tree, frame, values)
        checked_wrench(tree, frame, np.zeros(3))  # the frame is there
        result[frame] = in_time(in_time_of_six, 6, span, f"wrench.{frame}")
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
