"""`inverse_dynamics` and `forward_dynamics` of states given as arrays, beside those given by names.

Arrays are answered by the programs of `model("inverse" or "direct", coordinates="all", checks=True)`. States that fail
a check are computed in floats, with suitable independent rates, and the errors and warnings of functions by name.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np

from parflex.codegen.input_checks import ALLOWED
from parflex.codegen.model import Model, model_with, output_array
from parflex.codegen.options import Options
from parflex.codegen.program import Program
from parflex.dynamics import dynamics
from parflex.errors import InputError, ParflexError
from parflex.forces.effort_allocation import (
    EffortAllocation,
    EffortLimit,
    Preload,
    Weights,
    driven_cables,
    read_allocation,
)
from parflex.forces.forces import Without, Wrench, checked_wrenches
from parflex.formulations.coordinates import PUSHED
from parflex.robot import states
from parflex.robot.batches import BatchNotes, warn
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.load import acting_robot, checked_terms
from parflex.robot.motor_values import Effort
from parflex.robot.robot import Robot
from parflex.statics.small_deformation import deflection_warnings

Array = np.ndarray
States = Sequence[float] | Array
Named = str | Mapping[str, float] | Configuration | None  # a pose that is no array
ByName = Mapping[str, float] | None
FLOAT = np.dtype(float)
NDARRAY = np.ndarray  # a global name is found sooner, and short answers take microseconds
LOG = logging.getLogger("parflex")
CHUNK = 2048  # states that are handed to the program at a time: what it reads and writes stays in the cache
MOST_RATES = 40  # of a flexible robot: programs of more would take minutes to make
FAR = 100.0  # times what is allowed: a state that misses the loops by more fails in floats too
OPENINGS = ("closure", "closure_rate", "closure_acceleration")  # checks in the order of their tolerances
LIMITS, VERDICT = -2, -1  # places among the checks
POINTER = ctypes.c_void_p
ONE = ctypes.PYFUNCTYPE(None, POINTER, POINTER, ctypes.c_int64, POINTER)  # so short that other threads may wait


class Rules(NamedTuple):
    """What the precision of the arrays allows, and whether limits are ignored."""

    tolerances: states.ToleranceFactors = states.ToleranceFactors()
    ignore_limits: bool = False


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
) -> dynamics.Result: ...  # fmt: skip
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
    robot, pose, velocity, acceleration, q, qd, qdd, wrench, without, form, reactions
        See `parflex.api.WORDS`.
    weights, preload, effort_limit, ignore_limits
        See `parflex.api.WORDS`.
    out : Array, default None
        Array that takes the efforts of a call by arrays.

    Returns
    -------
    Result or Array
        By names a `Result`: `efforts` by motor (N, N m), `internal`, reactions if asked for, warnings. By arrays the
        efforts in the order of `robot.motors`.
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
    return _answer(robot, "inverse", state, wrench, without, out, allocation, ignore_limits)


@overload
def forward_dynamics(
    robot: Robot, pose: Named = None, velocity: ByName = None, effort: Effort | None = None, *,
    reactions: bool = False, **terms: Unpack[Terms],
) -> dynamics.Result: ...  # fmt: skip
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
    robot, pose, velocity, effort, q, qd, wrench, without, reactions
        See `parflex.api.WORDS`.
    out : Array, default None
        Array that takes the accelerations of a call by arrays.

    Returns
    -------
    Result or Array
        By names a `Result`: all accelerations (m/s^2, rad/s^2), `acceleration_of(frame)`, reactions if asked for,
        warnings. By arrays the accelerations in the order of `robot.rates`.
    """
    state = _read(robot, (pose, q), (velocity, qd), (effort, None), "effort", reactions, out)
    if state is None:
        by_name: Any = (velocity, effort)
        return dynamics.forward_dynamics(robot, pose, *by_name, wrench=wrench, without=without, reactions=reactions)
    return _answer(robot, "direct", state, wrench, without, out)


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


inverse_dynamics.short_way = partial(short_answer, "inverse")  # type: ignore[attr-defined]
forward_dynamics.short_way = partial(short_answer, "direct")  # type: ignore[attr-defined]


def _read(
    robot: Robot, poses: tuple[Any, Any], rates: tuple[Any, Any], last: tuple[Any, Any], key: str, reactions: bool,
    out: Any,
) -> list[Any] | None:  # fmt: skip
    """q, qd and qdd (or efforts) where a state is given by arrays; None where it is given by names."""
    pairs = (poses, ("pose", "q")), (rates, ("velocity", "qd")), (last, ("acceleration", key))
    for values, names in pairs:
        if values[0] is not None and values[1] is not None:
            raise InputError(f"'{names[0]}' and '{names[1]}' mean the same", key=names[1], hint="keep one of them")
    q, qd, end = (values[0] if values[1] is None else values[1] for values, _ in pairs)
    moving = [qd, end] if key == "qdd" else [qd]
    arrays = any(map(_is_array, moving)) or any(values[1] is not None for values, _ in pairs)
    named = any(isinstance(value, Mapping) for value in moving)
    effort_by_name = key == "effort" and isinstance(end, Mapping)
    by_name = named or effort_by_name or not (arrays or _is_array(q))
    for refused, name, text, hint in (
        (arrays and named, "qd", "a motion is given by names and by arrays", "give all of it as arrays, or by names"),
        (arrays and effort_by_name, "effort", "efforts are given by names and the state by arrays",
         "give efforts in the order of robot.motors"),
        (by_name and out is not None, "out", "'out' takes the answer of a state given by arrays",
         "give q, or leave it out"),
        (reactions and not by_name, "reactions", "a state given by arrays is answered by an array, without reactions",
         "give the velocity by names; the pose may be an array"),
    ):  # fmt: skip
        if refused:
            raise InputError(text, key=name, hint=hint)
    return None if by_name else [q if _is_array(q) else configure(robot, q).q, qd, end]


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, list, tuple))


def _answer(
    robot: Robot, model: str, state: list[Any], wrench: Any, without: Any, out: Any,
    allocation: EffortAllocation | None = None, ignore_limits: bool = False,
) -> Array:  # fmt: skip
    """The answer to a state or a batch; efforts shared among redundant motors are computed in floats."""
    terms, inverse = checked_terms(without), model == "inverse"
    robot = acting_robot(robot, terms)
    loads = checked_wrenches(robot.tree, wrench, batch=True)
    names = ["q", "qd", "qdd" if inverse else "effort", *loads]
    rules = Rules(states.tolerance_factors(*(state if inverse else state[:2])), ignore_limits)
    given = zip(names, [*state, *loads.values()], strict=True)
    arrays: list[Any] = [None if value is None else states.as_numbers(value, name) for name, value in given]
    if arrays[0].shape[-1:] != (robot.nq,) or arrays[0].ndim > 2:
        arrays[0] = states.close_positions(robot, arrays[0])
    calls = _calls(robot, model, arrays, tuple(loads), terms, allocation)
    for name, array, (length,) in zip(names, arrays, calls.shapes, strict=True):
        if array is not None and (array.shape[-1:] != (length,) or array.ndim > 2):
            _refuse_shape(robot, name, array, length)
    count = states.common_batch(dict(zip(names, arrays, strict=True)))
    arrays = [a[0] if a is not None and a.ndim == 2 and len(a) != count else a for a in arrays]
    if calls.program is not None:
        arrays = [np.zeros(shape) if a is None else a for a, shape in zip(arrays, calls.shapes, strict=True)]
    shape = (calls.size,) if count is None else (count, calls.size)
    out = output_array(out, shape)
    return calls.one(arrays, out, rules) if count is None else calls.many(arrays, out, rules)


def _refuse_shape(robot: Robot, name: str, array: Array, length: int) -> None:
    """Raise where an array has no shape of states; accelerations of motors may follow from independent ones."""
    driven = name == "qdd" and robot.driven_by_motors
    if driven and array.ndim in (1, 2) and array.shape[-1] in (robot.nv, robot.nu, len(robot.independent_rates)):
        return
    others, order = None, "robot.coordinates" if name == "q" else "robot.rates"
    if driven or name == "effort":
        text = f", or {robot.nv} in the order of robot.rates, of which those of the motors are used: bodies are free "
        others, order = f"{text}to deform" * driven, "robot.motors"
    raise states.wrong_length(robot, array, name, length, order, others)


def _calls(
    robot: Robot, model: str, arrays: list[Any], frames: tuple[str, ...], without: Sequence[str],
    allocation: EffortAllocation | None,
) -> StateCalls:  # fmt: skip
    """What answers; where motors are driven, the last array is reduced to accelerations of these."""
    (_, qd, last, *_), own, motors = arrays, list(robot.independent_rates), list(robot.actuated)
    inverse, few, whole = model == "inverse", (len(own),), (robot.nv,)
    free = inverse and robot.driven_by_motors
    short = ("qd",) if qd is not None and qd.shape[-1:] == few != whole else ()
    if free and last is not None:
        if last.shape[-1:] == whole:
            last = last[..., motors]
        elif last.shape[-1:] == few != (robot.nu,) and set(motors) <= set(own):
            last = last[..., [own.index(k) for k in motors]]
        arrays[2] = last
    # floats answer other lengths, rest that is warned of where it is no equilibrium, and short rates with all qdd
    odd = bool(robot.tree.elastic) and free and qd is None
    odd |= free and last is not None and last.shape[-1:] != (robot.nu,)
    if inverse and not free and few != whole and (qd is not None if last is None else last.shape[-1:] == few):
        short = (*short, "qdd")  # without accelerations the independent ones are zero
    elif inverse and not free:
        odd = bool(short)
    if allocation is not None or odd:
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
    what = f"the {'inverse' if inverse else 'forward'} dynamics of '{robot.name}'"
    what += f" with wrenches on {', '.join(frames)}" * bool(frames) + f" without {', '.join(without)}" * bool(without)
    said = partial(LOG.warning, "parflex compiles %s: once; the program is kept for later calls", what)
    named = tuple(robot.independent) if frames and not robot.driven_by_motors else ()
    options = Options(wrenches=frames, independent=named, coordinates="all", checks=True)
    try:
        made = model_with(robot, model, options, making=said)
    except ParflexError:  # floats say why, of each state
        return None
    independent = made.about["independent"]  # a program reads their accelerations, which must include the motors'
    missing = inverse and robot.driven_by_motors and not {*robot.actuated_names} <= {*independent}
    return None if missing or (short and independent != robot.independent) else made


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
        self.robot, self.model, self.frames, self.program, self.allocation = robot, model, frames, program, allocation
        own, inverse = list(robot.independent_rates), model == "inverse"
        driven, self.size = inverse and robot.driven_by_motors, robot.nu if inverse else robot.nv
        groups: dict[str, tuple[int, Any]] = {"q": (robot.nq, ...), "qd": (robot.nv, ...)}  # of the program
        groups["qdd" if inverse else "effort"] = (robot.nv, ...) if inverse else (robot.nu, ...)
        groups |= {"qdd": (robot.nu, list(robot.actuated))} if driven else {}
        groups |= {name: (len(own), own) for name in short}
        groups |= {f"{PUSHED}{frame}": (6, ...) for frame in frames}
        self.shapes, self._places = [(length,) for length, _ in groups.values()], [part for _, part in groups.values()]
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

    def one(self, state: Sequence[Any], out: Array | None = None, rules: Rules = Rules()) -> Array:
        """The answer to a state of float arrays of the right lengths, or the error that says what is wrong with it."""
        answered = doubtful = False
        if self.program is not None:
            views, values, checks, pointers = self._buffers.parts
            for view, place, array in zip(views, self._places, state):  # noqa: B905 - of equal length, and strict costs time
                view[place] = array
            self._one(*pointers)
            answered = checks[VERDICT] <= 1.0
            if not answered:  # nor where it is not a number
                answered, doubtful, _ = self._judge(checks, state, rules)
        if doubtful or not answered:
            result = self._result(state, rules)
            warn(result.diagnostics)
            values = values if answered else result.values
        if out is None:
            return values.copy()
        out[...] = values
        return out

    def many(self, arrays: Sequence[Any], out: Array, rules: Rules = Rules()) -> Array:
        """Answers to the rows of `out`: arrays have a leading axis, or are the same for all. Rows that fail are nan."""
        notes, reasons = BatchNotes(len(out)), dict[tuple[str, ...], Any]()  # by the checks that fail
        for row, checks in self._suspects(arrays, out):
            state = [array[row] if array is not None and array.ndim == 2 else array for array in arrays]
            answered, doubtful, far = (False, False, ()) if checks is None else self._judge(checks, state, rules)
            if answered:
                if doubtful:
                    notes.warns(row, partial(lambda state: self._result(state, rules).diagnostics, state))
                continue
            out[row] = np.nan
            if far in reasons:
                notes.fails_alike(row, reasons[far])
                continue
            try:
                result = self._result(state, rules)
            except ParflexError as error:
                reason = notes.fails(row, error)
                reasons |= {far: reason} if far else {}
                continue
            out[row] = result.values
            if result.diagnostics:
                notes.warns(row, partial(tuple, result.diagnostics))
        notes.say()
        return out

    def _suspects(self, arrays: Sequence[Any], out: Array) -> Iterator[tuple[int, Array | None]]:
        """Write the answers of the program; yield the rows whose verdict fails, with their checks."""
        if self.program is None:
            yield from ((row, None) for row in range(len(out)))
            return
        lanes, blank = self._kernel.lanes, np.empty if all(part is ... for part in self._places) else np.zeros
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

    def _judge(self, checks: Any, state: Sequence[Any], rules: Rules) -> tuple[bool, bool, tuple[str, ...]]:
        """Whether the program answers a state, whether it is outside a limit, and checks that floats surely fail too.

        Each check is allowed what the precision of its array is. States that miss the loops by far more than that, or
        are no numbers, fail in floats.
        """
        factors = dict(zip(OPENINGS, rules.tolerances, strict=True))
        values = dict(zip(self._checks, checks, strict=False))
        shares = {name: values[name] / (ALLOWED[name] * factors.get(name, 1.0)) for name in self._judged}
        failed = tuple(name for name, share in shares.items() if not share <= 1.0)
        failed += () if np.isfinite(checks[VERDICT]) else ("verdict",)
        if not failed:
            outside = checks[LIMITS] and (not rules.ignore_limits or deflection_warnings(self.robot.tree, state[0]))
            return True, bool(outside), ()
        far = failed == ("verdict",) or any(not shares[name] <= FAR for name in OPENINGS if name in shares)
        return False, False, failed if far else ()

    def _result(self, state: Sequence[Any], rules: Rules) -> dynamics.Result:
        """The state in floats, with every check, and diagnostics that do not hold for every state of the robot."""
        wrenches = dict(zip(self.frames, state[3:], strict=True))
        result = dynamics.float_answer(self.robot, self.model, state[:3], wrenches, rules.tolerances, self.allocation)
        known, usual = set(self.robot.diagnostics), ("redundant-motors", "underactuated")
        diagnostics = [each for each in result.diagnostics if each not in known and each.code not in usual]
        limits = [] if rules.ignore_limits else dynamics.exceeded_limits(result, self.allocation)
        return replace(result, diagnostics=(*diagnostics, *limits))
