"""`inverse_dynamics` and `forward_dynamics` of states given as arrays, beside those given by names.

Arrays are answered by the programs of `model("inverse" or "direct", coordinates="all", checks=True)`: one state in
microseconds, or a batch. States that fail a check are computed in floats, with suitable independent rates and the
errors and warnings of the functions by name.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from parflex.checks import short_text, table
from parflex.codegen.input_checks import ALLOWED
from parflex.codegen.model import Model, model_with
from parflex.codegen.options import Options
from parflex.codegen.program import Program
from parflex.diagnostics import Diagnostic
from parflex.dynamics import dynamics
from parflex.dynamics.dynamics import Result
from parflex.errors import InputError, ParflexError
from parflex.forces.effort_allocation import (
    EffortAllocation,
    EffortLimit,
    Preload,
    Weights,
    driven_cables,
    read_allocation,
)
from parflex.forces.forces import Without, Wrench, checked_wrench
from parflex.formulations.coordinates import PUSHED
from parflex.robot.batches import BatchNotes, warn
from parflex.robot.configuration import Configuration, Pose, all_accelerations, all_rates, configure
from parflex.robot.load import acting_robot, checked_terms
from parflex.robot.motor_values import Effort
from parflex.robot.robot import Robot
from parflex.robot.states import (
    ToleranceFactors,
    as_numbers,
    close_positions,
    closed_positions,
    refuse_infinite,
    tolerance_factors,
    wrong_length,
)
from parflex.statics.small_deformation import deflection_warnings

Array = np.ndarray
States = Sequence[float] | Array
Named = str | Mapping[str, float] | Configuration | None  # a pose that is no array
ByName = Mapping[str, float] | None
FLOAT = np.dtype(float)
NDARRAY = np.ndarray  # a global name is found sooner, and short answers take microseconds
LOG = logging.getLogger("parflex")
CHUNK = 2048  # states that are handed to the program at a time: what it reads and writes stays in the cache
LARGE = 1e60  # products of a few larger numbers may
MOST_RATES = 40  # of a flexible robot: programs of more would take minutes to make
DOUBLE = ToleranceFactors()  # of arrays in double precision
FAR = 100.0  # times what is allowed: a state that misses the loops by more fails in floats too
OPENINGS = ("closure", "closure_rate", "closure_acceleration")  # checks in the order of their tolerances
LIMITS, VERDICT = -2, -1  # places among the checks
POINTER = ctypes.c_void_p
ONE = ctypes.PYFUNCTYPE(None, POINTER, POINTER, ctypes.c_int64, POINTER)  # so short that other threads may wait
ALL = ...  # entries of a group


class Terms(TypedDict, total=False):
    """What acts in both models."""

    wrench: Wrench | None
    without: Without


class Allocation(Terms, total=False):
    """How redundant motors share the efforts, and whether limits are checked."""

    weights: Weights | None
    preload: Preload | None
    effort_limit: EffortLimit | None
    ignore_limits: bool


@overload
def inverse_dynamics(
    robot: Robot, pose: Named = None, velocity: ByName = None, acceleration: ByName = None, *,
    form: Literal["projected", "split"] = "split", reactions: bool = False, **allocation: Unpack[Allocation],
) -> Result: ...  # fmt: skip
@overload
def inverse_dynamics(
    robot: Robot, pose: States, velocity: States | None = None, acceleration: States | None = None, *,
    out: Array | None = None, **allocation: Unpack[Allocation],
) -> Array: ...  # fmt: skip
@overload
def inverse_dynamics(
    robot: Robot, *, q: States, qd: States | None = None, qdd: States | None = None, out: Array | None = None,
    **allocation: Unpack[Allocation],
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
    weights: Weights | None = None,
    preload: Preload | None = None,
    effort_limit: EffortLimit | None = None,
    ignore_limits: bool = False,
    out: Array | None = None,
) -> Any:
    """Motor efforts in a motion, given by names or by arrays.

    By names: the motion of the end effector (world axes) or of joints. By arrays, `inverse_dynamics(robot, q, qd,
    qdd)`: closed positions, rates and accelerations; the first call of a robot compiles a program. With more motors
    than freedoms the efforts are those of least weighted norm, of a preload, within limits. What is in the robot file
    acts, except what `without` names. `form` has no effect on arrays.

    Parameters
    ----------
    robot, q, qd, qdd, wrench, without, form, reactions, weights, preload, effort_limit, ignore_limits
        See `parflex.api.WORDS`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or `q`; None is home (m, rad).
    velocity : Mapping[str, float] or Array, default None
        Velocities by name (frames in world axes), or `qd`; None: at rest (m/s, rad/s).
    acceleration : Mapping[str, float] or Array, default None
        Accelerations by name (frames in world axes), or `qdd`; None is zero (m/s^2, rad/s^2).
    out : Array, default None
        Array that takes the efforts of a call by arrays.

    Returns
    -------
    Result or Array
        By names a `Result`: `efforts` by motor (N, N m), `internal`, reactions if asked for, warnings. By arrays the
        efforts in the order of `robot.motors`.

    Examples
    --------
    >>> parflex.inverse_dynamics(robot, "home", acceleration={"z": 1.0}).efforts
    """
    state = _read(robot, (pose, q), (velocity, qd), (acceleration, qdd), "qdd", reactions, out)
    if state is None:
        by_name: Any = (velocity, acceleration)
        return dynamics.inverse_dynamics(
            robot, pose, *by_name, wrench=wrench, without=without, form=form, reactions=reactions,
            weights=weights, preload=preload, effort_limit=effort_limit, ignore_limits=ignore_limits,
        )  # fmt: skip
    allocation = None
    if weights or preload or effort_limit is not None or driven_cables(robot):  # programs do not keep cables taut
        allocation = read_allocation(acting_robot(robot, checked_terms(without)), weights, preload, effort_limit)
    return answer(robot, "inverse", state, wrench, without, out, allocation, ignore_limits)


@overload
def forward_dynamics(
    robot: Robot, pose: Named = None, velocity: ByName = None, effort: Effort | None = None, *,
    reactions: bool = False, **terms: Unpack[Terms],
) -> Result: ...  # fmt: skip
@overload
def forward_dynamics(
    robot: Robot, pose: States, velocity: States | None = None, effort: Effort | None = None, *,
    out: Array | None = None, **terms: Unpack[Terms],
) -> Array: ...  # fmt: skip
@overload
def forward_dynamics(
    robot: Robot, *, q: States, qd: States | None = None, effort: Effort | None = None, out: Array | None = None,
    **terms: Unpack[Terms],
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
    robot, effort, q, qd, wrench, without, reactions
        See `parflex.api.WORDS`.
    pose : Pose, default None
        Name of a pose of the file, coordinates by name, a configuration, or `q`; None is home (m, rad).
    velocity : Mapping[str, float] or Array, default None
        Velocities by name (frames in world axes), or `qd`; None: at rest (m/s, rad/s).
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
    state = _read(robot, (pose, q), (velocity, qd), (effort, None), "effort", reactions, out)
    if state is None:
        named: Any = velocity
        return dynamics.forward_dynamics(
            robot, pose, named, effort, wrench=wrench, without=without, reactions=reactions
        )
    return answer(robot, "forward", state, wrench, without, out)


def _read(
    robot: Robot, poses: tuple[Any, Any], rates: tuple[Any, Any], last: tuple[Any, Any], key: str, reactions: bool,
    out: Any,
) -> tuple[Any, Any, Any] | None:  # fmt: skip
    """q, qd and qdd (or efforts) where a state is given by arrays; None where it is given by names."""
    pairs = (poses, ("pose", "q")), (rates, ("velocity", "qd")), (last, ("acceleration", key))
    for values, names in pairs:
        if values[0] is not None and values[1] is not None:
            raise InputError(f"'{names[0]}' and '{names[1]}' mean the same", key=names[1], hint="keep one of them")
    q, qd, end = (values[0] if values[1] is None else values[1] for values, _ in pairs)
    motion = [qd, end] if key == "qdd" else [qd]
    arrays = any(_is_array(value) for value in motion) or any(pair[1] is not None for pair, _ in pairs)
    named = any(isinstance(value, Mapping) for value in motion)
    effort_by_name = key == "effort" and isinstance(end, Mapping)
    by_name, text = named or effort_by_name or not (arrays or _is_array(q)), ""
    if arrays and named:
        name, text, hint = "qd", "a motion is given by names and by arrays", "give all of it as arrays, or by names"
    elif arrays and effort_by_name:
        name, text = "effort", "efforts are given by names and the state by arrays"
        hint = "give efforts in the order of robot.motors"
    elif by_name and out is not None:
        name, text, hint = "out", "'out' takes the answer of a state given by arrays", "give q, or leave it out"
    elif reactions and not by_name:
        name, text = "reactions", "a state given by arrays is answered by an array, without reactions"
        hint = "give the velocity by names; the pose may be an array"
    if text:
        raise InputError(text, key=name, hint=hint)
    if by_name:
        return None
    return q if _is_array(q) else configure(robot, q).q, qd, end


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, list, tuple))


def answer(
    robot: Robot, model: str, state: Sequence[Any], wrench: Any, without: Any, out: Any,
    allocation: EffortAllocation | None = None, ignore_limits: bool = False,
) -> Array:  # fmt: skip
    """The answer to a state or a batch; efforts shared among redundant motors are computed in floats."""
    terms, inverse = checked_terms(without), model == "inverse"
    robot = acting_robot(robot, terms)
    loads = {frame: _wrench(robot, frame, value) for frame, value in table(wrench, "wrench").items()}
    names, values = ["q", "qd", "qdd" if inverse else "effort", *loads], [*state, *loads.values()]
    tolerances = tolerance_factors(*(state if inverse else state[:2]))
    arrays: list[Any] = [
        None if value is None else as_numbers(value, name) for name, value in zip(names, values, strict=True)
    ]
    if arrays[0].shape[-1:] != (robot.nq,) or arrays[0].ndim > 2:
        arrays[0] = close_positions(robot, arrays[0])
    calls = _calls(robot, model, arrays, tuple(loads), terms, allocation)
    for name, array, (length,) in zip(names, arrays, calls.shapes, strict=True):
        if array is not None and (array.shape[-1:] != (length,) or array.ndim > 2):
            _refuse_shape(robot, name, array, length)
    count = _batch(names, arrays)
    if calls.program is not None:
        arrays = [np.zeros(shape) if a is None else a for a, shape in zip(arrays, calls.shapes, strict=True)]
    shape = (calls.size,) if count is None else (count, calls.size)
    fits = isinstance(out, np.ndarray) and out.dtype == FLOAT and out.shape == shape and out.flags.writeable
    if out is not None and not fits:
        text = f"'out' is not an array of floats of the shape {shape} that can be written"
        raise InputError(text, key="out", value=short_text(out), hint=f"give np.empty({shape})")
    if count is None:
        return calls.one(arrays, out, tolerances, ignore_limits)
    return calls.many(arrays, np.empty(shape) if out is None else out, tolerances, ignore_limits)


def short_answer(model: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array | None:
    """The answer to three arrays of floats for a robot that answered before; None: the arguments must be checked."""
    if len(args) != 4 or (kwargs and (len(kwargs) != 1 or "out" not in kwargs)):
        return None
    robot, q, qd, last = args
    if type(q) is not NDARRAY or type(qd) is not NDARRAY or type(last) is not NDARRAY:
        return None
    if q.dtype is not FLOAT or qd.dtype is not FLOAT or last.dtype is not FLOAT:
        return None
    try:
        calls = robot.cache["states", model, (), ()]
    except (AttributeError, KeyError, TypeError):
        return None
    out = kwargs["out"] if kwargs else None
    a, b, c = calls.shapes
    if q.shape == a and qd.shape == b and last.shape == c:
        if out is None:
            return calls.one((q, qd, last))
        plain = type(out) is NDARRAY and out.dtype is FLOAT and out.shape == (calls.size,) and out.flags.writeable
        return calls.one((q, qd, last), out) if plain else None
    if out is not None or q.ndim != 2 or [q.shape, qd.shape, last.shape] != [(len(q), *shape) for shape in (a, b, c)]:
        return None
    return calls.many((q, qd, last), np.empty((len(q), calls.size)))


# -- what is given ---------------------------------------------------------------------------------------------------


def _wrench(robot: Robot, frame: str, value: Any) -> Array:
    """Wrenches on a frame: six components each, one or a batch."""
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        return checked_wrench(robot.tree, frame, value)
    return np.array([checked_wrench(robot.tree, frame, row) for row in value]).reshape(len(value), 6)


def _refuse_shape(robot: Robot, name: str, array: Array, length: int) -> None:
    """Raise where an array has no shape of states; accelerations of motors may follow from independent ones."""
    driven = name == "qdd" and driven_by_motors(robot)
    if driven and array.ndim in (1, 2) and array.shape[-1] in (robot.nv, robot.nu, len(robot.independent_rates)):
        return
    if name != "effort" and not driven:
        raise wrong_length(robot, array, name, length, "robot.coordinates" if name == "q" else "robot.rates")
    others = f", or {robot.nv} in the order of robot.rates, of which those of the motors are used: bodies are free "
    hint = f"give {length} numbers in the order of robot.motors{f'{others}to deform' if driven else ''}"
    text = f"'{name}' has the shape {array.shape}, not ({length},)"
    raise InputError(text, key=name, value=str(array.shape), hint=f"{hint}; a leading axis is a batch")


def _batch(names: Sequence[str], arrays: list[Any]) -> int | None:
    """The number of states, None for one without a leading axis; arrays without one, or with one of 1, serve all."""
    sizes = {
        name: len(array) for name, array in zip(names, arrays, strict=True) if array is not None and array.ndim == 2
    }
    longest = max(sizes, key=lambda name: (sizes[name] != 1, sizes[name]), default="")
    for place, name in enumerate(names):
        if name not in sizes or sizes[name] == sizes[longest]:
            continue
        if sizes[name] != 1:
            text = f"'{name}' has {sizes[name]} states and '{longest}' has {sizes[longest]}"
            hint = "give batches of one size, or one state for all"
            raise InputError(text, key=name, value=sizes[name], hint=hint)
        arrays[place] = arrays[place][0]
    return sizes.get(longest)


def driven_by_motors(robot: Robot) -> bool:
    """Whether an inverse model takes accelerations of motors alone: bodies deform, or motors are too few."""
    return bool(robot.tree.elastic) or robot.is_underactuated


def _calls(
    robot: Robot, model: str, arrays: list[Any], frames: tuple[str, ...], without: Sequence[str],
    allocation: EffortAllocation | None,
) -> StateCalls:  # fmt: skip
    """What answers; where motors are driven, the last array is reduced to accelerations of these."""
    (_, qd, last, *_), own, motors = arrays, list(robot.independent_rates), list(robot.actuated)
    inverse, few, whole = model == "inverse", (len(own),), (robot.nv,)
    free = inverse and driven_by_motors(robot)
    short = ("qd",) if qd is not None and qd.shape[-1:] == few != whole else ()
    mixed = bool(short) and inverse and not free  # no program checks accelerations of a part of the rates
    if inverse and not free and few != whole and (qd is not None if last is None else last.shape[-1:] == few):
        short, mixed = (*short, "qdd"), False  # without accelerations the independent ones are zero
    if free and last is not None:
        if last.shape[-1:] == whole:
            last = last[..., motors]
        elif last.shape[-1:] == few != (robot.nu,) and set(motors) <= set(own):
            last = last[..., [own.index(k) for k in motors]]
        arrays[2] = last
    odd = free and last is not None and last.shape[-1:] != (robot.nu,)
    resting = bool(robot.tree.elastic) and free and qd is None  # which is warned of where it is not an equilibrium
    if allocation is not None or odd or resting or mixed:
        return StateCalls(robot, model, short, frames, None, allocation)
    cache, key = robot.cache, ("states", model, short, frames)
    if key not in cache:
        with cache.lock:
            if key not in cache:
                cache[key] = StateCalls(robot, model, short, frames, _program(robot, model, short, frames, without))
    return cache[key]


def _program(
    robot: Robot, model: str, short: Sequence[str], frames: tuple[str, ...], without: Sequence[str]
) -> Model | None:
    """The program with checks; None where all answers come in floats."""
    inverse = model == "inverse"
    if (inverse and not robot.nu) or (robot.tree.elastic and robot.nv > MOST_RATES):
        return None
    loads = f" with wrenches on {', '.join(frames)}" if frames else ""
    what = f"the {model} dynamics of '{robot.name}'{loads}" + (f" without {', '.join(without)}" if without else "")
    said = partial(LOG.warning, "parflex compiles %s: once; the program is kept for later calls", what)
    named = tuple(robot.independent) if frames and not driven_by_motors(robot) else ()
    options = Options(wrenches=frames, independent=named, coordinates="all", checks=True)
    try:
        made = model_with(robot, "inverse" if inverse else "direct", options, making=said)
    except ParflexError:  # floats say why, of each state
        return None
    independent = made.about["independent"]  # a program reads their accelerations, which must include the motors'
    if inverse and driven_by_motors(robot) and not set(robot.actuated_names) <= set(independent):
        return None
    return None if short and independent != robot.independent else made


# -- answers ---------------------------------------------------------------------------------------------------------


class _Buffers(threading.local):
    """What each thread hands to a program: views of the inputs by group, the answer, the checks, addresses."""

    def __init__(self, calls: StateCalls, program: Program, kernel: Any) -> None:
        x, y, work = np.zeros(len(program.inputs)), np.empty(len(program.outputs)), kernel.workspace()
        pointers = (POINTER(x.ctypes.data), POINTER(y.ctypes.data), ctypes.c_int64(1), POINTER(work.ctypes.data))
        checks: Any = y[calls.first_check :]
        self.arrays = (x, y, work)
        self.parts = [x[span] for span in calls.spans], y[: calls.size], memoryview(checks), pointers


class StateCalls:
    """Efforts, or accelerations, of states of a robot; without a program all in floats.

    `short` names the arrays qd and qdd of which the independent rates alone are given, `frames` those with wrenches.
    """

    def __init__(
        self, robot: Robot, model: str, short: Sequence[str], frames: tuple[str, ...], program: Model | None,
        allocation: EffortAllocation | None = None,
    ) -> None:  # fmt: skip
        self.robot, self.inverse, self.frames, self.program = robot, model == "inverse", frames, program
        self.allocation = allocation  # of redundant motors, in floats
        self.size = robot.nu if self.inverse else robot.nv
        own, driven = list(robot.independent_rates), self.inverse and driven_by_motors(robot)
        groups: dict[str, tuple[int, Any]] = {"q": (robot.nq, ALL), "qd": (robot.nv, ALL)}  # of the program
        if self.inverse:
            groups["qdd"] = (robot.nu, list(robot.actuated)) if driven else (robot.nv, ALL)
        else:
            groups["effort"] = (robot.nu, ALL)
        groups |= {name: (len(own), own) for name in short}
        groups |= {f"{PUSHED}{frame}": (6, ALL) for frame in frames}
        self.shapes, self._places = [(length,) for length, _ in groups.values()], [part for _, part in groups.values()]
        self.names = [*list(groups)[:3], *frames]
        if program is None:
            return
        self._kernel, _ = program.machine_code()
        self._one = ONE(self._kernel.address("one_in"))
        ends = np.cumsum([0, *(shape[0] for shape in program.inputs.values())]).tolist()
        spans = dict(zip(program.inputs, pairwise(ends), strict=True))
        self.spans = [slice(*spans[group]) for group in groups]
        self._checks = [name for name in ALLOWED if name in program.outputs]
        self.first_check = len(program.program.outputs) - len(self._checks) - 2
        followed = {"closure_rate": "qd" in short, "closure_acceleration": "qdd" in short or driven}
        self._judged = [name for name in self._checks if not followed.get(name)]
        self._buffers = _Buffers(self, program.program, self._kernel)

    def one(
        self, state: Sequence[Any], out: Array | None = None, tolerances: ToleranceFactors = DOUBLE,
        ignore_limits: bool = False,
    ) -> Array:  # fmt: skip
        """The answer to a state of float arrays of the right lengths, or the error that says what is wrong with it."""
        answered = doubtful = False
        if self.program is not None:
            views, values, checks, pointers = self._buffers.parts
            for view, place, array in zip(views, self._places, state):  # noqa: B905 - of equal length, and strict costs time
                view[place] = array
            self._one(*pointers)
            answered = checks[VERDICT] <= 1.0
            if not answered:  # nor where it is not a number
                answered, doubtful, _ = self._judge(checks, state, tolerances, ignore_limits)
        if doubtful or not answered:
            result = self._result(state, tolerances, ignore_limits)
            warn(result.diagnostics)
            values = values if answered else self._values(result)
        if out is None:
            return values.copy()
        out[...] = values
        return out

    def many(
        self, arrays: Sequence[Any], out: Array, tolerances: ToleranceFactors = DOUBLE, ignore_limits: bool = False
    ) -> Array:
        """Answers to the rows of `out`: arrays have a leading axis, or are the same for all. Rows that fail are nan."""
        notes, reasons = BatchNotes(len(out)), dict[tuple[str, ...], Any]()  # by the checks that fail
        for row, checks in self._suspects(arrays, out):
            state = [array[row] if array is not None and array.ndim == 2 else array for array in arrays]
            answered, doubtful, far = False, False, tuple[str, ...]()
            if checks is not None:
                answered, doubtful, far = self._judge(checks, state, tolerances, ignore_limits)
            if answered:
                if doubtful:
                    notes.warns(row, partial(self._diagnostics, state, tolerances, ignore_limits))
                continue
            out[row] = np.nan
            if far in reasons:
                notes.fails_alike(row, reasons[far])
                continue
            try:
                result = self._result(state, tolerances, ignore_limits)
            except ParflexError as error:
                reason = notes.fails(row, error)
                reasons |= {far: reason} if far else {}
                continue
            out[row] = self._values(result)
            if result.diagnostics:
                notes.warns(row, partial(tuple, result.diagnostics))
        notes.say()
        return out

    def _suspects(self, arrays: Sequence[Any], out: Array) -> Iterator[tuple[int, Array | None]]:
        """Write the answers of the program; yield the rows whose verdict fails, with their checks."""
        if self.program is None:
            yield from ((row, None) for row in range(len(out)))
            return
        lanes, blank = self._kernel.lanes, np.empty if all(part is ALL for part in self._places) else np.zeros
        for first in range(0, len(out), CHUNK):
            rows = slice(first, first + CHUNK)
            count = len(out[rows])
            columns = blank((len(self.program.program.inputs), -(-count // lanes) * lanes))
            for array, span, part in zip(arrays, self.spans, self._places, strict=True):
                columns[span][part, :count] = array[rows].T if array.ndim == 2 else array[:, None]
            columns[:, count:] = columns[:, count - 1 : count]
            outputs = self._kernel.columns(columns)
            out[rows], checks = outputs[: self.size, :count].T, outputs[self.first_check :, :count]
            for row in np.flatnonzero(~(checks[VERDICT] <= 1.0)).tolist():
                yield first + row, checks[:, row]
            del columns, outputs, checks  # or the next chunk would need new pages of memory

    def _judge(
        self, checks: Any, state: Sequence[Any], tolerances: ToleranceFactors, ignore_limits: bool
    ) -> tuple[bool, bool, tuple[str, ...]]:
        """Whether the program answers a state, whether it is outside a limit, and checks that floats surely fail too.

        Each check is allowed what the precision of its array is. States that miss the loops by far more than that, or
        are no numbers, fail in floats.
        """
        factors = dict(zip(OPENINGS, tolerances, strict=True))
        shares = {
            name: value / (ALLOWED[name] * factors.get(name, 1.0))
            for name, value in zip(self._checks, checks, strict=False)
            if name in self._judged
        }
        failed = tuple(name for name, share in shares.items() if not share <= 1.0)
        failed += () if np.isfinite(checks[VERDICT]) else ("verdict",)
        if not failed:
            outside = checks[LIMITS] and (not ignore_limits or deflection_warnings(self.robot.tree, state[0]))
            return True, bool(outside), ()
        far = failed == ("verdict",) or any(not shares[name] <= FAR for name in OPENINGS if name in shares)
        return False, False, failed if far else ()

    # -- floats ----------------------------------------------------------------------------------------

    def _diagnostics(self, *question: Any) -> Sequence[Diagnostic]:
        return self._result(*question).diagnostics

    def _values(self, result: Result) -> Array:
        return np.array(list(result.efforts.values())) if self.inverse else result.accelerations

    def _result(self, state: Sequence[Any], tolerances: ToleranceFactors, ignore_limits: bool) -> Result:
        """The state in floats, with every check, and diagnostics that do not hold for every state of the robot."""
        entries = [
            (abs(float(value)), name, place, float(value))
            for name, array in zip(self.names, state, strict=True)
            for place, value in enumerate(() if array is None else array)
            if np.isfinite(value)
        ]
        size, name, place, value = max(entries, default=(0.0, "q", 0, 0.0))
        result = None
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                result = self._solved(state, tolerances)
        except (ParflexError, ValueError):  # also of a library that was given what has overflown
            if size <= LARGE:
                raise
        if result is None or not np.isfinite(self._values(result)).all():
            text = f"entry {place} of '{name}' is {value:.4g}, so large that the answer is not finite"
            raise InputError(text, key=name, value=value, hint="give a smaller number") from None
        known, usual = set(self.robot.diagnostics), ("redundant-motors", "underactuated")
        diagnostics = [each for each in result.diagnostics if each not in known and each.code not in usual]
        limits = [] if ignore_limits else dynamics.exceeded_limits(result, self.allocation)
        return replace(result, diagnostics=(*diagnostics, *limits))

    def _solved(self, state: Sequence[Any], tolerances: ToleranceFactors) -> Result:
        """Efforts, or accelerations; of a flexible robot for accelerations of the motors, and others follow.

        As in a motion given by joints, a leg at a singularity of its own does not matter: its rates are known.
        """
        (q, qd, last, *loads), robot = state, self.robot
        wrenches: Any = dict(zip(self.frames, loads, strict=True)) or None
        configuration = Configuration(robot, closed_positions(robot, q, factor=tolerances.positions))
        if not self.inverse:
            tau = np.zeros(robot.nu) if last is None else last
            refuse_infinite(tau, "effort")
            return dynamics.accelerations_under(
                configuration, all_rates(configuration, qd, tolerances.rates), tau, wrenches
            )
        rates = all_rates(configuration, qd, tolerances.rates)
        allocation = self.allocation or read_allocation(robot)
        if not robot.tree.elastic and not configuration.is_underactuated_here:
            configuration.refuse_undefined_actuation()
            accelerations = all_accelerations(configuration, rates, last, tolerances.accelerations)
            return dynamics.rigid_inverse(configuration, rates, accelerations, wrenches, allocation=allocation)
        motors, target = list(robot.actuated), np.zeros(robot.nu)
        if last is not None:
            refuse_infinite(last, "qdd")
            known = len(last) in (robot.nv, robot.nu)
            target = last if known else all_accelerations(configuration, rates, last)
            target = target if len(target) == robot.nu else target[motors]
        target = target - configuration.acceleration_bias(rates)[motors]
        driven = (configuration, rates, np.eye(robot.nv)[motors], target, wrenches, False, allocation)
        if not robot.tree.elastic:
            return dynamics.partly_driven_inverse(*driven)
        return dynamics.flexible_inverse(*driven, moving=last is not None if qd is None else None)


inverse_dynamics.short_way = partial(short_answer, "inverse")  # type: ignore[attr-defined]
forward_dynamics.short_way = partial(short_answer, "forward")  # type: ignore[attr-defined]
