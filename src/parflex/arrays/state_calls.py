"""Compiled dynamics of states given as arrays: one state in microseconds, or a batch.

The programs are those of `model("inverse" or "direct", coordinates="all", checks=True)`. States that fail a check are
computed in floats, with suitable independent rates and the errors and warnings of the functions by name.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.arrays.float_states import answer_in_floats, array_diagnostics, refuse_overflow
from parflex.codegen.input_checks import ALLOWED
from parflex.codegen.model import Model, model_with
from parflex.codegen.options import Options
from parflex.diagnostics import Diagnostic
from parflex.dynamics.dynamics import Result, exceeded_limits
from parflex.errors import ParflexError
from parflex.forces.effort_allocation import EffortAllocation
from parflex.formulations.coordinates import PUSHED
from parflex.robot.batches import BatchNotes, warn
from parflex.robot.robot import Robot
from parflex.robot.states import ToleranceFactors
from parflex.statics.small_deformation import deflection_warnings

Array = np.ndarray
LOG = logging.getLogger("parflex")
CHUNK = 2048  # states that are handed to the program at a time: what it reads and writes stays in the cache
HUGE = 1e150  # squares of larger numbers overflow
LARGE = 1e60  # products of a few larger numbers may
MOST_RATES = 40  # of a flexible robot: programs of more would take minutes to make
DOUBLE = ToleranceFactors()  # of arrays in double precision
FAR = 100.0  # times what is allowed: a state that misses the loops by more fails in floats too
OPENINGS = ("closure", "closure_rate", "closure_acceleration")  # checks in the order of their tolerances
LIMITS, VERDICT = -2, -1  # places among the checks
POINTER = ctypes.c_void_p
ONE = ctypes.PYFUNCTYPE(None, POINTER, POINTER, ctypes.c_int64, POINTER)  # so short that other threads may wait
ALL = ...  # entries of a group


@dataclass(frozen=True)
class StateQuestion:
    """What is asked of a state: a model, the groups of which few entries are given, frames with wrenches."""

    model: str  # "inverse" or "forward"
    few: tuple[str, ...] = ()  # of "qd" and "qdd": those of the independent rates
    frames: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the arrays, in their order."""
        return ["q", "qd", "qdd" if self.model == "inverse" else "effort", *self.frames]

    def entries(self, robot: Robot) -> list[tuple[int, Any]]:
        """How many entries each array has, and which entries of the group of the program these are."""
        few, motors = (len(robot.independent_rates), list(robot.independent_rates)), (robot.nu, list(robot.actuated))
        whole: tuple[int, Any] = (robot.nv, ALL)
        last = few if "qdd" in self.few else motors if driven_by_motors(robot) else whole
        last = (robot.nu, ALL) if self.model == "forward" else last
        return [(robot.nq, ALL), few if "qd" in self.few else whole, last, *((6, ALL) for _ in self.frames)]


def driven_by_motors(robot: Robot) -> bool:
    """Whether an inverse model takes accelerations of motors alone: bodies deform, or motors are too few."""
    return bool(robot.tree.elastic) or robot.is_underactuated


def state_calls(robot: Robot, question: StateQuestion, without: Sequence[str] = ()) -> StateCalls:
    """What answers a question about states of a robot that acts `without` terms, compiled once."""
    cache = robot.cache
    if question not in cache:
        with cache.lock:
            if question not in cache:
                calls = StateCalls(robot, question, _program(robot, question, without))
                if calls.model is not None and not question.few and not question.frames:
                    cache[f"short {question.model}"] = calls
                cache[question] = calls
    return cache[question]


def _program(robot: Robot, question: StateQuestion, without: Sequence[str]) -> Model | None:
    """The program with checks; None where all answers come in floats."""
    inverse = question.model == "inverse"
    if (inverse and not robot.nu) or (robot.tree.elastic and robot.nv > MOST_RATES):
        return None

    def log_compiling() -> None:
        loads = f" with wrenches on {', '.join(question.frames)}" if question.frames else ""
        terms = f" without {', '.join(without)}" if without else ""
        what = f"the {question.model} dynamics of '{robot.name}'{loads}{terms}"
        LOG.warning("parflex compiles %s: once; the program is kept for later calls", what)

    named = tuple(robot.independent) if question.frames and not driven_by_motors(robot) else ()
    options = Options(wrenches=question.frames, independent=named, coordinates="all", checks=True)
    try:
        made = model_with(robot, "inverse" if inverse else "direct", options, making=log_compiling)
    except ParflexError:  # floats say why, of each state
        return None
    return None if question.few and made.about["independent"] != robot.independent else made


class StateCalls:
    """Answers of one robot to one question: efforts, or accelerations, of states; without a model all in floats."""

    def __init__(
        self, robot: Robot, question: StateQuestion, model: Model | None, allocation: EffortAllocation | None = None
    ) -> None:
        self.robot, self.question, self.model = robot, question, model
        self.allocation = allocation  # of redundant motors, in floats
        entries = question.entries(robot)
        self.shapes, self._places = [(length,) for length, _ in entries], [place for _, place in entries]
        self.size = robot.nu if question.model == "inverse" else robot.nv
        self._pool: list[tuple[Any, ...]] = []  # buffers that no call uses: a call takes one, or makes one
        if model is None:
            return
        self._kernel, _ = model.machine_code()
        self._one = ONE(self._kernel.address("one_in"))
        ends = np.cumsum([0, *(shape[0] for shape in model.inputs.values())]).tolist()
        spans = dict(zip(model.inputs, pairwise(ends), strict=True))
        groups = [*question.names[:3], *(f"{PUSHED}{frame}" for frame in question.frames)]
        self._spans = [spans[group] for group in groups]
        names = list(model.outputs)
        self._checks = [name for name in ALLOWED if name in names]
        self._first = len(model.program.outputs) - len(self._checks) - 2  # of the checks
        accelerations_given = "qdd" not in question.few and not driven_by_motors(robot)
        unread = {"closure_rate": "qd" in question.few, "closure_acceleration": not accelerations_given}
        self._judged = [name for name in self._checks if not unread.get(name)]

    # -- one state -------------------------------------------------------------------------------------

    def one(
        self, arrays: Sequence[Array], out: Array | None = None, tolerances: ToleranceFactors = DOUBLE,
        ignore_limits: bool = False,
    ) -> Array | None:  # fmt: skip
        """The answer to a state of float arrays of the right lengths; None where a check of the program fails."""
        try:
            buffers = self._pool.pop()
        except IndexError:  # the first call, or other threads have them all
            buffers = self._new_buffers()
        views, answer, checks, pointers = buffers[:4]
        for view, place, array in zip(views, self._places, arrays):  # noqa: B905 - of equal length, and strict costs time
            view[place] = array
        self._one(*pointers)
        if not checks[VERDICT] <= 1.0:  # nor where it is not a number
            if self._failed(checks, tolerances):
                self._pool.append(buffers)
                return None
            if checks[LIMITS]:
                warn(self._outside(arrays, tolerances, ignore_limits))
        if out is None:
            out = answer.copy()
        else:
            out[...] = answer
        self._pool.append(buffers)
        return out

    def _new_buffers(self) -> tuple[Any, ...]:
        """Where inputs and outputs of a call lie: views of the inputs by group, the answer, the checks, addresses."""
        assert self.model is not None
        program, work = self.model.program, self._kernel.workspace()
        x, y = np.zeros(len(program.inputs)), np.empty(len(program.outputs))
        views = [x[start:end] for start, end in self._spans]
        pointers = (POINTER(x.ctypes.data), POINTER(y.ctypes.data), ctypes.c_int64(1), POINTER(work.ctypes.data))
        checks: Any = y[self._first :]
        return views, y[: self.size], memoryview(checks), pointers, (x, y, work)

    def _failed(self, checks: Any, tolerances: ToleranceFactors) -> list[str]:
        """The checks that fail, each with what the precision of its array allows."""
        failed = [
            name
            for name, value in zip(self._checks, checks, strict=False)
            if name in self._judged and not value <= _allowed(name, tolerances)
        ]
        return failed if np.isfinite(checks[VERDICT]) else [*failed, "verdict"]

    def _outside(self, arrays: Sequence[Any], tolerances: ToleranceFactors, ignore_limits: bool) -> list[Diagnostic]:
        """Diagnostics of limits that a state or its efforts exceed, and of bodies that deform too far."""
        limits = [] if ignore_limits else exceeded_limits(self.in_floats(arrays, tolerances), self.allocation)
        return [*limits, *deflection_warnings(self.robot.tree, arrays[0])]

    def in_floats(self, arrays: Sequence[Array | None], tolerances: ToleranceFactors) -> Result:
        """The state with every check, and the rates that suit it."""
        refuse_overflow(arrays, self.question.names, HUGE)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                result = answer_in_floats(self.robot, self.question, arrays, tolerances, self.allocation)
        except ValueError:  # of a library that was given what has overflown
            refuse_overflow(arrays, self.question.names, LARGE)
            raise
        if not np.isfinite(self.answer_of(result)).all():
            refuse_overflow(arrays, self.question.names, 0.0)
        return result

    def answer_of(self, result: Result) -> Array:
        """Efforts or accelerations as an array."""
        if self.question.model == "forward":
            return result.accelerations
        return np.fromiter(result.efforts.values(), float, self.robot.nu)

    def evaluate_in_floats(
        self, arrays: Sequence[Array | None], out: Array | None = None, tolerances: ToleranceFactors = DOUBLE,
        ignore_limits: bool = False,
    ) -> Array:  # fmt: skip
        """The answer in floats, with its warnings; or the error that says what is wrong with the state."""
        result = self.in_floats(arrays, tolerances)
        warn(self._diagnostics(result, ignore_limits))
        answer = self.answer_of(result)
        if out is None:
            return answer
        out[...] = answer
        return out

    def _diagnostics(self, result: Result, ignore_limits: bool) -> list[Diagnostic]:
        """All diagnostics of a state that was answered in floats."""
        return [*array_diagnostics(result), *([] if ignore_limits else exceeded_limits(result, self.allocation))]

    # -- a batch ---------------------------------------------------------------------------------------

    def many(
        self, arrays: Sequence[Array | None], count: int, out: Array, tolerances: ToleranceFactors = DOUBLE,
        ignore_limits: bool = False,
    ) -> Array:  # fmt: skip
        """Answers to `count` states: arrays have a leading axis, or are the same for all. States that fail are nan."""
        notes, reasons = BatchNotes(count), dict[tuple[str, ...], Any]()  # by the checks that fail
        for start in range(0, count, CHUNK):
            part, rows = [_of(array, slice(start, start + CHUNK)) for array in arrays], out[start : start + CHUNK]
            far: dict[int, tuple[str, ...]] = {}
            failing: Sequence[int] = range(len(rows))
            if self.model is not None:
                failing, far, outside = self._chunk(part, rows, tolerances)
                for row in outside:
                    state = [_of(array, row) for array in part]
                    if not ignore_limits or deflection_warnings(self.robot.tree, state[0]):
                        notes.warns(start + row, partial(self._outside, state, tolerances, ignore_limits))
            for row in failing:
                reason = reasons.get(far[row]) if row in far else None
                if reason is not None:
                    rows[row] = np.nan
                    notes.fails_alike(start + row, reason)
                    continue
                try:
                    result = self.in_floats([_of(array, row) for array in part], tolerances)
                except ParflexError as error:
                    rows[row] = np.nan
                    reasons[far.get(row, ())] = notes.fails(start + row, error)
                    continue
                rows[row], diagnostics = self.answer_of(result), self._diagnostics(result, ignore_limits)
                if diagnostics:
                    notes.warns(start + row, partial(list, diagnostics))
        notes.say()
        return out

    def _chunk(
        self, arrays: Sequence[Any], out: Array, tolerances: ToleranceFactors
    ) -> tuple[list[int], dict[int, tuple[str, ...]], list[int]]:
        """Answers of the program; rows that fail a check, the checks where floats would say the same, rows outside."""
        assert self.model is not None
        count, lanes = len(out), self._kernel.lanes
        blank = np.empty if all(place is ALL for place in self._places) else np.zeros
        columns = blank((len(self.model.program.inputs), -(-count // lanes) * lanes))
        for array, (start, stop), place in zip(arrays, self._spans, self._places, strict=True):
            columns[start:stop][place, :count] = array.T if array.ndim == 2 else array[:, None]
        columns[:, count:] = columns[:, count - 1 : count]
        outputs = self._kernel.columns(columns)
        out[...] = outputs[: self.size, :count].T
        checks = outputs[self._first :, :count]
        suspect = np.flatnonzero(~(checks[VERDICT] <= 1.0))
        failed = {int(row): self._failed(checks[:, row], tolerances) for row in suspect}
        far = {row: tuple(names) for row, names in failed.items() if self._is_far(names, checks[:, row], tolerances)}
        outside = [row for row, names in failed.items() if not names and checks[LIMITS, row]]
        return [row for row, names in failed.items() if names], far, outside

    def _is_far(self, names: list[str], checks: Array, tolerances: ToleranceFactors) -> bool:
        """Whether a state misses the loops by so much, or is no number, that it fails in floats too."""
        openings = [(name, checks[self._checks.index(name)]) for name in names if name in OPENINGS]
        return names == ["verdict"] or any(not value <= FAR * _allowed(name, tolerances) for name, value in openings)


def _allowed(name: str, tolerances: ToleranceFactors) -> float:
    """The largest value of a check at which a state is answered."""
    return ALLOWED[name] * (tolerances[OPENINGS.index(name)] if name in OPENINGS else 1.0)


def _of(array: Array | None, row: Any) -> Any:
    """A row, or rows, of a batch; what is the same for all states stays as it is."""
    return array[row] if array is not None and array.ndim == 2 else array
