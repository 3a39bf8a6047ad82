"""`inverse_dynamics` and `forward_dynamics` of states given as arrays, beside those given by names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from parflex.arrays.saying import say_compiling
from parflex.arrays.state_calls import FLOAT, StateCalls
from parflex.checking import shown, table
from parflex.codegen.traces.vouched_states import StateQuestion, group_lengths, state_program
from parflex.errors import InputError
from parflex.models.configuration import Configuration, Pose, configure
from parflex.models.dynamics import dynamic_models
from parflex.models.dynamics.forces import Without, Wrench, checked_wrench
from parflex.models.dynamics.reduced import Result
from parflex.models.given_states.array_dynamics import refuse_unknown_motors, wrong_effort
from parflex.models.given_states.closed_positions import as_numbers, close_positions, slack_of, wrong_length
from parflex.models.motor_values import Effort
from parflex.models.robot import Robot
from parflex.models.terms import acting, checked_terms

Array = np.ndarray
States = Sequence[float] | Array
Named = str | Mapping[str, float] | Configuration | None  # a pose that is no array
ByName = Mapping[str, float] | None
FAST = {"inverse": "fast inverse", "forward": "fast forward"}  # calls with all rates, nothing left out, no wrench


@overload
def inverse_dynamics(
    robot: Robot, pose: Named = None, velocity: ByName = None, acceleration: ByName = None, *,
    wrench: Wrench | None = None, without: Without = (), form: Literal["projected", "split"] = "split",
    reactions: bool = False,
) -> Result: ...  # fmt: skip
@overload
def inverse_dynamics(
    robot: Robot, pose: States, velocity: States | None = None, acceleration: States | None = None, *,
    wrench: Wrench | None = None, without: Without = (), out: Array | None = None,
) -> Array: ...  # fmt: skip
@overload
def inverse_dynamics(
    robot: Robot, *, q: States, qd: States | None = None, qdd: States | None = None,
    wrench: Wrench | None = None, without: Without = (), out: Array | None = None,
) -> Array: ...  # fmt: skip
def inverse_dynamics(
    robot: Robot,
    pose: Pose | None = None,
    velocity: Mapping[str, float] | States | None = None,
    acceleration: Mapping[str, float] | States | None = None,
    *,
    q: States | None = None,
    qd: States | None = None,
    qdd: States | None = None,
    wrench: Wrench | None = None,
    without: Without = (),
    form: Literal["projected", "split"] = "split",
    reactions: bool = False,
    out: Array | None = None,
) -> Any:
    """Motor efforts in a motion, given by names or by arrays.

    By names: the motion of the end effector (world axes) or of joints. By arrays, `inverse_dynamics(robot, q, qd,
    qdd)`: closed positions, rates and accelerations; the first call of a robot compiles a program. With more motors
    than freedoms the efforts are those of least norm. What is in the robot file acts, except what `without` names.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or `q`; None is home (m, rad).
    velocity : Mapping[str, float] or Array, default None
        Velocities by name (frames in world axes), or `qd`; None: at rest (m/s, rad/s).
    acceleration : Mapping[str, float] or Array, default None
        Accelerations by name (frames in world axes), or `qdd`; None: none (m/s^2, rad/s^2).
    q : Array, default None
        All positions, in the order of `robot.coordinates`; with a leading axis a batch (m, rad).
    qd : Array, default None
        Rates, in the order of `robot.rates` or of `robot.independent` (m/s, rad/s).
    qdd : Array, default None
        Accelerations, in the same order (m/s^2, rad/s^2).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz]; None: none (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs, motor-inertia, axial.
    form : {'split', 'projected'}, default "split"
        Theory (16), or theory (15) with all rows projected.
    reactions : bool, default False
        Also compute the wrench in every joint and closure.
    out : Array, default None
        Array that takes the efforts of a call by arrays.

    Returns
    -------
    Result or Array
        By names a `Result`: `efforts` by motor (N, N m), reactions if asked for, warnings. By arrays the efforts in
        the order of `robot.motors`.

    Examples
    --------
    >>> parflex.inverse_dynamics(robot, "home", acceleration={"z": 1.0}).efforts
    """
    given = _read(robot, pose, q, (velocity, qd), (acceleration, qdd), ("qd", "qdd"))
    if given is None:
        _refuse_out(out)
        by_name: Any = (velocity, acceleration)
        return dynamic_models.inverse_dynamics(
            robot, pose, *by_name, wrench=wrench, without=without, form=form, reactions=reactions
        )
    _refuse_reactions(reactions)
    return _answer(robot, "inverse", given, wrench, without, out)


@overload
def forward_dynamics(
    robot: Robot, pose: Named = None, velocity: ByName = None, effort: Effort | None = None, *,
    wrench: Wrench | None = None, without: Without = (), reactions: bool = False,
) -> Result: ...  # fmt: skip
@overload
def forward_dynamics(
    robot: Robot, pose: States, velocity: States | None = None, effort: Effort | None = None, *,
    wrench: Wrench | None = None, without: Without = (), out: Array | None = None,
) -> Array: ...  # fmt: skip
@overload
def forward_dynamics(
    robot: Robot, *, q: States, qd: States | None = None, effort: Effort | None = None,
    wrench: Wrench | None = None, without: Without = (), out: Array | None = None,
) -> Array: ...  # fmt: skip
def forward_dynamics(
    robot: Robot,
    pose: Pose | None = None,
    velocity: Mapping[str, float] | States | None = None,
    effort: Effort | None = None,
    *,
    q: States | None = None,
    qd: States | None = None,
    wrench: Wrench | None = None,
    without: Without = (),
    reactions: bool = False,
    out: Array | None = None,
) -> Any:
    """Accelerations under efforts of the motors, given by names or by arrays.

    By arrays, `forward_dynamics(robot, q, qd, effort)`: closed positions, rates, and efforts in the order of
    `robot.motors`. What is in the robot file acts, except what `without` names.

    Parameters
    ----------
    robot : Robot
        Robot, from `load`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or `q`; None is home (m, rad).
    velocity : Mapping[str, float] or Array, default None
        Velocities by name (frames in world axes), or `qd`; None: at rest (m/s, rad/s).
    effort : Effort, default None
        Efforts of the motors, by name or in their order; a motor not named has none (N, N m).
    q : Array, default None
        All positions, in the order of `robot.coordinates`; with a leading axis a batch (m, rad).
    qd : Array, default None
        Rates, in the order of `robot.rates` or of `robot.independent` (m/s, rad/s).
    wrench : Wrench, default None
        Wrench on a frame in world axes, {frame: [fx, fy, fz, mx, my, mz]}; planar [fx, fy, mz] (N, N m).
    without : Sequence[str], default ()
        Terms of the file left out: friction, damping, gravity, springs, motor-inertia, axial.
    reactions : bool, default False
        Also compute the wrench in every joint and closure.
    out : Array, default None
        Array that takes the accelerations of a call by arrays.

    Returns
    -------
    Result or Array
        By names a `Result`: all accelerations (m/s^2, rad/s^2), `acceleration_of(frame)`, reactions if asked for,
        warnings. By arrays the accelerations in the order of `robot.rates`.

    Examples
    --------
    >>> parflex.forward_dynamics(robot, "home", effort={"leg1.1": 2.0}).acceleration_of()
    """
    by_name = isinstance(effort, Mapping)
    given = _read(robot, pose, q, (velocity, qd), (None if by_name else effort, None), ("qd", "effort"))
    if given is None or (by_name and q is None and qd is None and not _is_array(velocity)):
        _refuse_out(out)
        named: Any = velocity
        return dynamic_models.forward_dynamics(
            robot, pose, named, effort, wrench=wrench, without=without, reactions=reactions
        )
    if by_name:
        raise InputError(
            "efforts are given by names and the state by arrays", key="effort",
            hint="give efforts in the order of robot.motors",
        )  # fmt: skip
    _refuse_reactions(reactions)
    return _answer(robot, "forward", given, wrench, without, out)


# -- what is given ----------------------------------------------------------------------------------------------------


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, list, tuple))


def _read(robot: Robot, pose: Any, q: Any, rates: tuple[Any, Any], last: tuple[Any, Any], keys: tuple[str, str]) -> Any:
    """q, qd and qdd (or efforts) where a state is given by arrays; None where it is given by names."""
    positions = _one_of(pose, q, "pose", "q")
    qd, end = _one_of(*rates, "velocity", keys[0]), _one_of(*last, "acceleration", keys[1])
    words = q is not None or rates[1] is not None or last[1] is not None
    moving = [value for value in (qd, end if keys[1] == "qdd" else None) if value is not None]
    by_names = any(isinstance(value, Mapping) for value in moving)
    by_arrays = words or any(_is_array(value) for value in moving)
    if by_names and by_arrays:
        raise InputError(
            "a motion is given by names and by arrays", key=keys[0], hint="give all of it as arrays, or by names"
        )
    if by_names or not (by_arrays or _is_array(positions)):
        return None
    if not _is_array(positions):
        positions = configure(robot, positions).q
    return positions, qd, end


def _one_of(first: Any, second: Any, *names: str) -> Any:
    if first is not None and second is not None:
        raise InputError(f"'{names[0]}' and '{names[1]}' mean the same", key=names[1], hint="keep one of them")
    return first if second is None else second


def _refuse_out(out: Any) -> None:
    if out is not None:
        raise InputError("'out' takes the answer of a state given by arrays", key="out", hint="give q, or leave it out")


def _refuse_reactions(reactions: bool) -> None:
    if reactions:
        raise InputError(
            "a state given by arrays is answered by an array, without reactions", key="reactions",
            hint="give the velocity by names; the pose may be an array",
        )  # fmt: skip


# -- the answer -------------------------------------------------------------------------------------------------------


def _answer(robot: Robot, model: str, given: tuple[Any, Any, Any], wrench: Any, without: Any, out: Any) -> Array:
    """The answer to a state, or to a batch of them."""
    terms = checked_terms(without)
    robot = acting(robot, terms)
    loads = {frame: _wrench(robot, frame, value) for frame, value in table(wrench, "wrench").items()}
    q, qd, last = given
    slack = slack_of(q, qd, last)
    q = as_numbers(q, "q")
    if q.shape[-1:] != (robot.nq,) or q.ndim > 2:
        q = close_positions(robot, q)
    qd = None if qd is None else as_numbers(qd, "qd")
    last = None if last is None else as_numbers(last, "qdd" if model == "inverse" else "effort")
    calls, last = _calls(robot, model, qd, last, tuple(loads))
    arrays: list[Any] = [q, qd, last, *loads.values()]
    _check_shapes(robot, calls, arrays, ["q", "qd", "qdd" if model == "inverse" else "effort", *loads])
    count = _batch(arrays, ["q", "qd", "qdd" if model == "inverse" else "effort", *loads])
    if calls.model is not None:
        arrays = [np.zeros(shape) if a is None else a for a, shape in zip(arrays, calls.shapes, strict=True)]
    shape = (calls.size,) if count is None else (count, calls.size)
    if out is not None:
        _check_out(out, shape)
    if count is None:
        found = calls.one(arrays, out, slack) if calls.model is not None else None
        return calls.asked_again(arrays, out, slack) if found is None else found
    return calls.many(arrays, count, np.empty(shape) if out is None else out, slack)


def state_calls(robot: Robot, question: StateQuestion) -> StateCalls:
    """What answers a question about states of a robot, compiled once."""
    kept = robot.kept
    if question not in kept:
        with kept.lock:
            if question not in kept:
                what = f"the {question.model} dynamics of '{robot.name}'"
                model = state_program(robot, question, lambda: say_compiling(what))
                calls = StateCalls(robot, question, group_lengths(robot, question), model)
                if model is not None and not question.few and not question.frames:
                    kept[FAST[question.model]] = calls
                kept[question] = calls
    return kept[question]


def _calls(robot: Robot, model: str, qd: Any, last: Any, frames: tuple[str, ...]) -> tuple[StateCalls, Any]:
    """What answers, and the last array as it takes it: of a flexible robot accelerations of the motors."""
    question = StateQuestion(model, _few(robot, model, qd, last), frames)
    if model == "forward" or not robot.tree.elastic:
        return state_calls(robot, question), last
    if last is not None and last.shape[-1:] == (robot.nv,):
        last = last[..., list(robot.actuated)]
    at_rest = qd is None and last is None  # which is warned of where it is not an equilibrium
    if at_rest or (last is not None and last.shape[-1:] != (robot.nu,)):
        return StateCalls(robot, question, group_lengths(robot, question), None), last
    return state_calls(robot, question), last


def _few(robot: Robot, model: str, qd: Any, last: Any) -> tuple[str, ...]:
    """The groups of which the independent ones alone are given; accelerations follow where none are given."""
    few, n = len(robot.independent_rates), robot.nv
    if few == n:
        return ()
    found = ("qd",) if qd is not None and qd.shape[-1:] == (few,) else ()
    if robot.tree.elastic:
        return found
    if model == "inverse" and (qd is not None if last is None else last.shape[-1:] == (few,)):
        found = (*found, "qdd")
    return found


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
        if name == "qdd" and robot.tree.elastic:
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
            f"'out' is not an array of floats of the shape {shape} that can be written", key="out", value=shown(out),
            hint=f"give np.empty({shape})",
        )  # fmt: skip


# -- the short way ----------------------------------------------------------------------------------------------------


def _short_inverse(given: tuple[Any, ...], words: dict[str, Any]) -> Array | None:
    return _short("fast inverse", given, words)


def _short_forward(given: tuple[Any, ...], words: dict[str, Any]) -> Array | None:
    return _short("fast forward", given, words)


def _short(key: str, given: tuple[Any, ...], words: dict[str, Any]) -> Array | None:
    """The answer to a state of three arrays of floats, after the first call; None: the general path handles it."""
    out = None
    if words:
        if len(words) != 1 or "out" not in words:
            return None
        out = words["out"]
    if len(given) != 4:
        return None
    robot, q, qd, last = given
    if type(q) is not np.ndarray or type(qd) is not np.ndarray or type(last) is not np.ndarray:
        return None
    try:
        calls = robot.kept[key]
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


inverse_dynamics.short_way = _short_inverse  # type: ignore[attr-defined]
forward_dynamics.short_way = _short_forward  # type: ignore[attr-defined]
__all__ = ["Result", "forward_dynamics", "inverse_dynamics"]
