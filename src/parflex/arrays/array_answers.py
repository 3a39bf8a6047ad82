"""Dynamics of states given as arrays: read shapes and batches, find or make the program, call it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.arrays.float_states import refuse_unknown_motors, wrong_effort
from parflex.arrays.state_calls import StateCalls, StateQuestion, driven_by_motors, state_calls
from parflex.checks import short_text, table
from parflex.errors import InputError
from parflex.forces.effort_allocation import EffortAllocation
from parflex.forces.forces import checked_wrench
from parflex.robot.load import acting_robot, checked_terms
from parflex.robot.robot import Robot
from parflex.robot.states import as_numbers, close_positions, tolerance_factors, wrong_length

Array = np.ndarray
FLOAT = np.dtype(float)


def answer(
    robot: Robot, model: str, state: tuple[Any, Any, Any], wrench: Any, without: Any, out: Any,
    allocation: EffortAllocation | None = None, ignore_limits: bool = False,
) -> Array:  # fmt: skip
    """The answer to a state, or to a batch of them; what is asked of spare motors is answered in floats."""
    terms = checked_terms(without)
    robot = acting_robot(robot, terms)
    loads = {frame: _wrench(robot, frame, value) for frame, value in table(wrench, "wrench").items()}
    q, qd, last = state
    tolerances = tolerance_factors(q, qd, last if model == "inverse" else None)
    q = as_numbers(q, "q")
    if q.shape[-1:] != (robot.nq,) or q.ndim > 2:
        q = close_positions(robot, q)
    qd = None if qd is None else as_numbers(qd, "qd")
    last = None if last is None else as_numbers(last, "qdd" if model == "inverse" else "effort")
    calls, last = _calls(robot, model, qd, last, tuple(loads), terms, allocation)
    arrays: list[Any] = [q, qd, last, *loads.values()]
    _check_shapes(robot, calls, arrays, ["q", "qd", "qdd" if model == "inverse" else "effort", *loads])
    count = _batch(arrays, ["q", "qd", "qdd" if model == "inverse" else "effort", *loads])
    if calls.model is not None:
        arrays = [np.zeros(shape) if a is None else a for a, shape in zip(arrays, calls.shapes, strict=True)]
    shape = (calls.size,) if count is None else (count, calls.size)
    if out is not None:
        _check_out(out, shape)
    if count is None:
        result = calls.one(arrays, out, tolerances, ignore_limits) if calls.model is not None else None
        return calls.evaluate_in_floats(arrays, out, tolerances, ignore_limits) if result is None else result
    return calls.many(arrays, count, np.empty(shape) if out is None else out, tolerances, ignore_limits)


def _calls(
    robot: Robot, model: str, qd: Any, last: Any, frames: tuple[str, ...], without: Sequence[str],
    allocation: EffortAllocation | None = None,
) -> tuple[StateCalls, Any]:  # fmt: skip
    """What answers, and the last array as it takes it: where motors are driven, accelerations of these alone."""
    few, free = len(robot.independent_rates), model == "inverse" and driven_by_motors(robot)
    short = {name: array is not None and array.shape[-1:] == (few,) != (robot.nv,) for name, array in
             (("qd", qd), ("qdd", None if model == "forward" or free else last))}  # fmt: skip
    if model == "inverse" and last is None and qd is not None and few < robot.nv and not free:
        short["qdd"] = True  # the others follow
    question = StateQuestion(model, tuple(name for name, given in short.items() if given), frames)
    if free and last is not None:
        own, motors = list(robot.independent_rates), list(robot.actuated)
        if last.shape[-1:] == (robot.nv,):
            last = last[..., motors]
        elif last.shape[-1:] == (few,) != (robot.nu,) and set(motors) <= set(own):
            last = last[..., [own.index(k) for k in motors]]
    odd = free and last is not None and last.shape[-1:] != (robot.nu,)
    resting = bool(robot.tree.elastic) and free and qd is None  # which is warned of where it is not an equilibrium
    mixed = question.few == ("qd",) and model == "inverse" and not free  # of which no program checks the accelerations
    if allocation is not None or odd or resting or mixed:
        return StateCalls(robot, question, None, allocation), last
    return state_calls(robot, question, without), last


def _wrench(robot: Robot, frame: str, value: Any) -> Array:
    """Wrenches on a frame: six components each, one or a batch."""
    array = value if isinstance(value, np.ndarray) else None
    if array is None or array.ndim != 2:
        return checked_wrench(robot.tree, frame, value)
    rows = [checked_wrench(robot.tree, frame, row) for row in array]
    return np.array(rows).reshape(len(rows), 6)


def _check_shapes(robot: Robot, calls: StateCalls, arrays: list[Any], names: list[str]) -> None:
    for array, (length,), name in zip(arrays, calls.shapes, names, strict=True):
        if array is None or (array.shape[-1:] == (length,) and array.ndim <= 2):
            continue
        if name == "effort":
            raise wrong_effort(robot, array)
        if name == "qdd" and driven_by_motors(robot):
            refuse_unknown_motors(robot, array)
            continue
        raise wrong_length(robot, array, name, length, "robot.coordinates" if name == "q" else "robot.rates")


def _batch(arrays: list[Any], names: list[str]) -> int | None:
    """The number of states, None for one without a leading axis; arrays without one, or with one of 1, serve all."""
    sizes = {
        name: len(array) for name, array in zip(names, arrays, strict=True) if array is not None and array.ndim == 2
    }
    if not sizes:
        return None
    longest = max(sizes, key=lambda name: (sizes[name] != 1, sizes[name]))
    for place, (name, array) in enumerate(zip(names, arrays, strict=True)):
        if name not in sizes or sizes[name] == sizes[longest]:
            continue
        if sizes[name] != 1:
            raise InputError(
                f"'{name}' has {sizes[name]} states and '{longest}' has {sizes[longest]}", key=name, value=sizes[name],
                hint="give batches of one size, or one state for all",
            )  # fmt: skip
        arrays[place] = array[0]
    return sizes[longest]


def _check_out(out: Any, shape: tuple[int, ...]) -> None:
    fits = isinstance(out, np.ndarray) and out.dtype == FLOAT and out.shape == shape and out.flags.writeable
    if not fits:
        raise InputError(
            f"'out' is not an array of floats of the shape {shape} that can be written", key="out",
            value=short_text(out),
            hint=f"give np.empty({shape})",
        )  # fmt: skip


# -- the short way ----------------------------------------------------------------------------------------------------


def fast_inverse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array | None:
    """Efforts of a state that is known to be right in its types and shapes; None: it must be checked."""
    return _fast_call("short inverse", args, kwargs)


def fast_forward(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array | None:
    """Accelerations of such a state."""
    return _fast_call("short forward", args, kwargs)


def _fast_call(key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array | None:
    """The answer to a state of three arrays of floats, after the first call; None: the general path handles it."""
    out = None
    if kwargs:
        if len(kwargs) != 1 or "out" not in kwargs:
            return None
        out = kwargs["out"]
    if len(args) != 4:
        return None
    robot, q, qd, last = args
    if type(q) is not np.ndarray or type(qd) is not np.ndarray or type(last) is not np.ndarray:
        return None
    try:
        calls = robot.cache[key]
    except (AttributeError, KeyError, TypeError):
        return None
    if q.dtype is not FLOAT or qd.dtype is not FLOAT or last.dtype is not FLOAT:
        return None
    a, b, c = calls.shapes
    if q.shape != a or qd.shape != b or last.shape != c:
        count = (len(q),) if q.ndim == 2 else ()
        whole = count and q.shape == count + a and qd.shape == count + b and last.shape == count + c
        return calls.many((q, qd, last), len(q), np.empty((len(q), calls.size))) if whole and out is None else None
    if out is not None and (type(out) is not np.ndarray or out.dtype is not FLOAT or out.shape != (calls.size,)):
        return None
    try:
        return calls.one((q, qd, last), out)
    except ValueError:  # `out` cannot be written, which is said on the long way
        return None
