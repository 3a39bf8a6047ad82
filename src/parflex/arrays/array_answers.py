"""Dynamics of states given as arrays: read shapes and batches, find or make the program, call it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.arrays.array_dynamics import refuse_unknown_motors, wrong_effort
from parflex.arrays.messages import log_compiling
from parflex.arrays.state_calls import FLOAT, StateCalls
from parflex.checks import short_text, table
from parflex.codegen.vouched_states import StateQuestion, group_lengths, state_program
from parflex.errors import InputError
from parflex.forces.effort_allocation import EffortAllocation
from parflex.forces.forces import checked_wrench
from parflex.robot.load import acting_robot, checked_terms
from parflex.robot.robot import Robot
from parflex.robot.states import as_numbers, close_positions, tolerance_factors, wrong_length

Array = np.ndarray
FAST = {"inverse": "fast inverse", "forward": "fast forward"}  # calls with all rates, nothing left out, no wrench


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


def state_calls(robot: Robot, question: StateQuestion, without: Sequence[str] = ()) -> StateCalls:
    """What answers a question about states of a robot that acts `without` terms, compiled once."""
    cache = robot.cache
    if question not in cache:
        with cache.lock:
            if question not in cache:
                model = state_program(robot, question, lambda: log_compiling(_told(robot, question, without)))
                calls = StateCalls(robot, question, group_lengths(robot, question), model)
                if model is not None and not question.few and not question.frames:
                    cache[FAST[question.model]] = calls
                cache[question] = calls
    return cache[question]


def _told(robot: Robot, question: StateQuestion, without: Sequence[str]) -> str:
    """What is compiled, and which variant of it."""
    few = f" for {' and '.join(question.few)} of the independent rates" if question.few else ""
    loads = f" with wrenches on {', '.join(question.frames)}" if question.frames else ""
    terms = f" without {', '.join(without)}" if without else ""
    return f"the {question.model} dynamics of '{robot.name}'{few}{loads}{terms}"


def _calls(
    robot: Robot, model: str, qd: Any, last: Any, frames: tuple[str, ...], without: Sequence[str],
    allocation: EffortAllocation | None = None,
) -> tuple[StateCalls, Any]:  # fmt: skip
    """What answers, and the last array as it takes it: of a flexible robot accelerations of the motors."""
    question = StateQuestion(model, _few(robot, model, qd, last), frames)
    if allocation is not None:
        return StateCalls(robot, question, group_lengths(robot, question), None, allocation), last
    if model == "forward" or not robot.tree.elastic:
        return state_calls(robot, question, without), last
    if last is not None and last.shape[-1:] == (robot.nv,):
        last = last[..., list(robot.actuated)]
    at_rest = qd is None  # which is warned of where it is not an equilibrium
    if at_rest or (last is not None and last.shape[-1:] != (robot.nu,)):
        return StateCalls(robot, question, group_lengths(robot, question), None), last
    return state_calls(robot, question, without), last


def _few(robot: Robot, model: str, qd: Any, last: Any) -> tuple[str, ...]:
    """The groups of which the independent ones alone are given; accelerations follow where none are given."""
    few, n = len(robot.independent_rates), robot.nv
    if few == n:
        return ()
    groups = ("qd",) if qd is not None and qd.shape[-1:] == (few,) else ()
    if robot.tree.elastic:
        return groups
    if model == "inverse" and (qd is not None if last is None else last.shape[-1:] == (few,)):
        groups = (*groups, "qdd")
    return groups


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
        if name == "qdd" and (robot.tree.elastic or robot.is_underactuated):
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
    return _fast_call("fast inverse", args, kwargs)


def fast_forward(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array | None:
    """Accelerations of such a state."""
    return _fast_call("fast forward", args, kwargs)


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
    a, b, c = calls.shapes
    if q.shape != a or qd.shape != b or last.shape != c:
        return None
    if q.dtype is not FLOAT or qd.dtype is not FLOAT or last.dtype is not FLOAT:
        return None
    if out is not None and (type(out) is not np.ndarray or out.dtype is not FLOAT or out.shape != (calls.size,)):
        return None
    try:
        return calls.one((q, qd, last), out)
    except ValueError:  # `out` cannot be written, which is said on the long way
        return None
