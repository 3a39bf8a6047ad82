"""Compiled dynamics of states given as arrays: one state in microseconds, or a batch.

A program gives the result and numbers that verify it (`codegen.vouched_states`). States that fail are computed in
floats, with the errors and warnings of the functions by name.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.arrays.array_dynamics import array_warnings, forward_at, inverse_at
from parflex.arrays.messages import BatchWarnings, warn
from parflex.codegen.model import Model
from parflex.codegen.vouched_states import CHECKS, StateQuestion
from parflex.diagnostics import Diagnostic
from parflex.dynamics.dynamics import Result, exceeded_limits
from parflex.errors import InputError, ParflexError
from parflex.forces.effort_allocation import EffortAllocation
from parflex.robot.robot import Robot
from parflex.robot.states import ToleranceFactors
from parflex.statics.small_deformation import deflection_warnings

Array = np.ndarray
FLOAT = np.dtype(float)
CHUNK = 2048  # states that are handed to the program at a time: what it reads and writes stays in the cache
HUGE = 1e150  # squares of larger numbers overflow
LARGE = 1e60  # products of a few larger numbers may
DOUBLE = ToleranceFactors()  # of arrays in double precision
MAX_RETRY_MISS = 1e4  # of what a state may miss, squared: beyond, floats would say the same of it
VERDICT, SIZE, POSITIONS, RATES, ACCELERATIONS, CONDITION, LIMITS = range(len(CHECKS))
POINTER = ctypes.c_void_p
ONE = ctypes.PYFUNCTYPE(None, POINTER, POINTER, ctypes.c_int64, POINTER)  # so short that other threads may wait


class StateCalls:
    """Answers of one robot to one question: efforts, or accelerations, of states."""

    def __init__(
        self, robot: Robot, question: StateQuestion, lengths: Sequence[int], model: Model | None,
        allocation: EffortAllocation | None = None,
    ) -> None:  # fmt: skip
        self.robot, self.question, self.model = robot, question, model
        self.allocation = allocation  # of redundant motors, in floats
        self.shapes = [(length,) for length in lengths]
        self.size = robot.nu if question.model == "inverse" else robot.nv
        self._pool: list[tuple[Any, ...]] = []  # buffers that no call uses: a call takes one, or makes one
        if model is not None:
            kernel, _ = model.machine_code()
            self._kernel, self._one = kernel, ONE(kernel.address("one_in"))

    # -- one state -------------------------------------------------------------------------------------

    def one(
        self,
        arrays: Sequence[Array],
        out: Array | None = None,
        tolerances: ToleranceFactors = DOUBLE,
        ignore_limits: bool = False,
    ) -> Array | None:
        """The answer to a state of float arrays of the right lengths; None where the program does not vouch for it."""
        try:
            buffers = self._pool.pop()
        except IndexError:  # the first call, or other threads have them all
            buffers = self._new_buffers()
        places, answer, checks, pointers = buffers[:4]
        for place, array in zip(places, arrays):  # noqa: B905 - of equal length, and strict costs time
            place[...] = array
        self._one(*pointers)
        if not checks[VERDICT] <= 1.0:  # nor where it is not a number
            if not _left(checks, tolerances) <= 1.0:
                self._pool.append(buffers)
                return None
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
        x, y = np.empty(len(program.inputs)), np.empty(len(program.outputs))
        ends = np.cumsum([0, *(shape[0] for shape in self.shapes)])
        places = [x[start:end] for start, end in pairwise(ends)]
        pointers = (POINTER(x.ctypes.data), POINTER(y.ctypes.data), ctypes.c_int64(1), POINTER(work.ctypes.data))
        checks: Any = y[self.size :]
        return places, y[: self.size], memoryview(checks), pointers, (x, y, work)

    def _outside(self, arrays: Sequence[Any], tolerances: ToleranceFactors, ignore_limits: bool) -> list[Diagnostic]:
        """Diagnostics of limits that a state or its efforts exceed, and about bodies that deform too far."""
        limits = [] if ignore_limits else exceeded_limits(self.in_floats(arrays, tolerances), self.allocation)
        return [*limits, *deflection_warnings(self.robot.tree, arrays[0])]

    def _warnings(self, result: Result, ignore_limits: bool) -> list[Diagnostic]:
        """All diagnostics of a state that was answered in floats."""
        return [*array_warnings(result), *([] if ignore_limits else exceeded_limits(result, self.allocation))]

    def in_floats(self, arrays: Sequence[Array | None], tolerances: ToleranceFactors) -> Result:
        """The state with every check, and the rates that suit it."""
        names = ("q", "qd", "qdd" if self.question.model == "inverse" else "effort", *self.question.frames)
        _refuse_overflow(arrays, names, HUGE)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                result = self._in_floats(arrays, tolerances)
        except ValueError:  # of a library that was given what has overflown
            _refuse_overflow(arrays, names, LARGE)
            raise
        if not np.isfinite(self.answer_of(result)).all():
            _refuse_overflow(arrays, names, 0.0)
        return result

    def _in_floats(self, arrays: Sequence[Array | None], tolerances: ToleranceFactors) -> Result:
        q, qd, last, *loads = arrays
        wrenches: Any = dict(zip(self.question.frames, loads, strict=True)) or None
        if self.question.model == "inverse":
            return inverse_at(self.robot, q, qd, last, wrenches, tolerances, self.allocation)
        return forward_at(self.robot, q, qd, last, wrenches, tolerances)

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
        warn(self._warnings(result, ignore_limits))
        answer = self.answer_of(result)
        if out is None:
            return answer
        out[...] = answer
        return out

    # -- a batch ---------------------------------------------------------------------------------------

    def many(
        self, arrays: Sequence[Array | None], count: int, out: Array, tolerances: ToleranceFactors = DOUBLE,
        ignore_limits: bool = False,
    ) -> Array:  # fmt: skip
        """Answers to `count` states: arrays have a leading axis, or are the same for all. States that fail are nan."""
        notes = BatchWarnings(count, ignore_limits)
        for start in range(0, count, CHUNK):
            stop = min(start + CHUNK, count)
            part = [_of(array, slice(start, stop)) for array in arrays]
            self._chunk(part, start, out[start:stop], notes, tolerances)
        notes.say()
        return out

    def _chunk(
        self, arrays: Sequence[Array | None], first: int, out: Array, notes: BatchWarnings, tolerances: ToleranceFactors
    ) -> None:
        count = len(out)
        if self.model is None:
            for row in range(count):
                self._row([_of(array, row) for array in arrays], first + row, out[row], notes, tolerances)
            return
        lanes = self._kernel.lanes
        columns = np.empty((len(self.model.program.inputs), -(-count // lanes) * lanes))
        start = 0
        for array, (length,) in zip(arrays, self.shapes, strict=True):
            assert array is not None
            columns[start : start + length, :count] = array.T if array.ndim == 2 else array[:, None]
            start += length
        columns[:, count:] = columns[:, count - 1 : count]
        outputs = self._kernel.columns(columns)
        out[...] = outputs[: self.size, :count].T
        checks = outputs[self.size :, :count]
        for row in np.flatnonzero(~(checks[VERDICT] <= 1.0)).tolist():
            state = [_of(array, row) for array in arrays]
            self._judge(checks[:, row], state, first + row, out[row], notes, tolerances)

    def _judge(
        self,
        checks: Array,
        arrays: list[Any],
        number: int,
        out: Array,
        notes: BatchWarnings,
        tolerances: ToleranceFactors,
    ) -> None:
        """A state of a batch that the program does not vouch for."""
        if _left(checks, tolerances) <= 1.0:
            if checks[LIMITS]:
                self._count_limit_violation(number, arrays, tolerances, notes)
            return
        missed = checks[[POSITIONS, RATES, ACCELERATIONS]].max()
        if notes.failed and not (np.isfinite(checks[SIZE]) and missed <= MAX_RETRY_MISS * max(tolerances) ** 2):
            out[...] = np.nan
            notes.count_failed()
            return
        self._row(arrays, number, out, notes, tolerances)

    def _row(
        self,
        arrays: Sequence[Array | None],
        number: int,
        out: Array,
        notes: BatchWarnings,
        tolerances: ToleranceFactors,
    ) -> None:
        """A state of a batch in floats."""
        try:
            result = self.in_floats(arrays, tolerances)
        except ParflexError as error:
            out[...] = np.nan
            notes.fails(number, error)
            return
        messages = self._warnings(result, notes.ignore_limits)
        if messages:
            notes.warned(number, lambda: messages)
        out[...] = self.answer_of(result)

    def _count_limit_violation(
        self, number: int, arrays: list[Any], tolerances: ToleranceFactors, notes: BatchWarnings
    ) -> None:
        """Count a state beyond limits; its sentences are made for the first one alone."""
        if not notes.ignore_limits or deflection_warnings(self.robot.tree, arrays[0]):
            notes.warned(number, lambda: self._outside(arrays, tolerances, notes.ignore_limits))


def _left(checks: Any, tolerances: ToleranceFactors) -> float:
    """The verdict without limits of joints, which are warned of, and with what the precision of each array allows."""
    missed = [checks[k] for k in (POSITIONS, RATES, ACCELERATIONS)]
    allowed = sum(value / factor**2 for value, factor in zip(missed, tolerances, strict=True))
    return checks[VERDICT] - checks[LIMITS] - sum(missed) + allowed


def _refuse_overflow(arrays: Sequence[Array | None], names: Sequence[str], limit: float) -> None:
    """Raise where the largest number of a state is beyond a limit."""
    entries = [
        (abs(float(value)), name, place, float(value))
        for array, name in zip(arrays, names, strict=True)
        if array is not None
        for place, value in enumerate(array)
        if np.isfinite(value)
    ]
    size, name, place, value = max(entries, default=(0.0, "q", 0, 0.0))
    if size > limit:
        raise InputError(
            f"entry {place} of '{name}' is {value:.4g}, so large that the answer is not finite", key=name,
            value=value, hint="give a smaller number",
        )  # fmt: skip


def _of(array: Array | None, row: Any) -> Any:
    """A row, or rows, of a batch; what is the same for all states stays as it is."""
    return array[row] if array is not None and array.ndim == 2 else array
