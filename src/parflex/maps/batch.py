"""A batch of rows: pose table, status and reasons, chunks on threads.

One thread solves a chunk from a cold start: its results depend neither on the number of threads nor on earlier chunks.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from parflex import jobs
from parflex.cache import cached
from parflex.checks import integer, names, short_text
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, ParflexWarning
from parflex.jobs import completed_chunks
from parflex.maps.closed_rows import OK, UNREACHABLE
from parflex.maps.positions import SAID
from parflex.parameters.robot_file import redesigned
from parflex.records import Record, count_of
from parflex.robot.coordinate_names import read_columns
from parflex.robot.robot import Robot
from parflex.statics.equilibrium import NOT_STABLE
from parflex.statics.modes import Modes

Array = np.ndarray

Found = TypeVar("Found")

Progress = Callable[[int, int], None]  # called with rows that are done, and all


@dataclass(eq=False, repr=False)
class BatchResult(Record):
    """Numbers (rows x ...) by name, not a number where there are none; state and reason of each row.

    Of a row with answers `reasons` says which responses have none, and where an equilibrium is not the usual one.
    `fallbacks` rows were solved one by one where others are solved together; `balanced` rows are about an equilibrium
    that was not asked for, because springs are under tension there; `rests` says which, where that is known.
    """

    values: dict[str, Array]
    status: Array
    reasons: list[str]
    fallbacks: int = 0
    balanced: int = 0
    difference: float = 0.0  # largest between two ways, at rows that were solved by both (Hz)
    refused: ParflexError | None = field(default=None, compare=False)  # what a row could not be asked
    refusals: dict[str, ParflexError] = field(default_factory=dict, compare=False)  # the same by response
    rests: Array = field(default_factory=lambda: np.zeros(0, dtype=bool), compare=False)

    @classmethod
    def empty(cls, shapes: Mapping[str, tuple[int, ...]], count: int) -> BatchResult:
        """Rows of which nothing is known."""
        values = {name: np.full((count, *shape), np.nan) for name, shape in shapes.items()}
        return cls(values, np.full(count, OK), [""] * count, rests=np.zeros(count, dtype=bool))

    def put(self, rows: slice, part: BatchResult) -> None:
        """Take over what was found at some rows."""
        for name, part_values in part.values.items():
            self.values[name][rows] = part_values
        self.status[rows], self.reasons[rows] = part.status, part.reasons
        self.fallbacks += part.fallbacks
        self.balanced += part.balanced
        if len(part.rests) and len(self.rests):
            self.rests[rows] = part.rests
        self.difference = max(self.difference, part.difference)
        self.refused = self.refused or part.refused
        self.refusals = part.refusals | self.refusals

    def say(self, row: int, message: str) -> None:
        """Say something of a row that has answers."""
        self.reasons[row] = "; ".join(text for text in (self.reasons[row], message) if text)

    @property
    def unstable(self) -> Array:
        """Rows that are about an equilibrium that is not stable."""
        return unstable_rows(self.reasons)

    def warn(self, level: int) -> None:
        """Warn where answers are about such equilibria."""
        warn_of_unstable(self.reasons, level + 1)

    def mark(self, row: int, state: int, reason: str = "") -> None:
        """Say that a row has no answer, and why."""
        self.status[row], self.reasons[row] = state, reason or SAID.get(state, "")
        for array in self.values.values():
            array[row] = np.nan

    def _told(self) -> str:
        return f"{count_of(len(self.status), 'row')}, {int((self.status == OK).sum())} with an answer"


def mark_unfinite(result: BatchResult, names: list[str], values: Array) -> Array:
    """Rows of which all coordinates are numbers; the others are marked."""
    finite = np.isfinite(values)
    for row in np.flatnonzero(~finite.all(axis=1)):
        name = names[int(np.argmin(finite[row]))]
        result.mark(int(row), UNREACHABLE, f"'{name}' is not a finite number in this row")
    return finite.all(axis=1)


def row_warning(modes: Modes) -> str:
    """What is said of a row by its modes: that its equilibrium is not stable."""
    return NOT_STABLE if modes.unstable_motions else ""


def unstable_rows(reasons: Sequence[str]) -> Array:
    """Rows of which that is said."""
    unstable = {reason: NOT_STABLE in reason for reason in set(reasons)}  # few texts for many rows
    if not any(unstable.values()):
        return np.zeros(len(reasons), dtype=bool)
    return np.array([unstable[reason] for reason in reasons], dtype=bool)


def warn_of_unstable(reasons: Sequence[str], level: int) -> None:
    """Warn where that is said of rows."""
    count = int(unstable_rows(reasons).sum())
    if count:
        text = f"{count} of {len(reasons)} poses are about an equilibrium that is not stable: reasons say which"
        warnings.warn(ParflexWarning(Diagnostic("unstable-equilibrium", text, value=count)), stacklevel=level + 1)


def warn_of_balanced(balanced: int, poses: int, level: int) -> None:
    """Warn where answers are about the equilibrium though it was not asked for."""
    if balanced:
        text = f"{balanced} of {poses} poses have springs under tension: they are answered about the equilibrium"
        warnings.warn(ParflexWarning(Diagnostic("about-equilibrium", text, value=balanced)), stacklevel=level + 1)


def number_of_threads(threads: int | None) -> int:
    """Threads that are asked for; by default as many as cores that this process may use."""
    if threads is not None:
        return integer(threads, "threads", 1)
    return jobs.number_of_jobs(None)


def chunks_of(count: int, size: int) -> list[slice]:
    """Rows 0 to `count` in chunks."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def in_order(chunks: Iterable[slice], solve: Callable[[slice], Found], threads: int) -> Iterator[tuple[slice, Found]]:
    """What is found in each chunk, in their order; when the caller stops, chunks that wait are given up."""
    return completed_chunks(solve, chunks, jobs.thread_pool(threads), ordered=True)  # type: ignore[arg-type]


def pose_table(robot: Robot, coordinates: Sequence[str], poses: Any) -> tuple[tuple[str, ...], Array]:
    """Return the names of coordinates, and rows of their values (m, rad); some of these may be not a number."""
    requested = names(coordinates, "coordinates", "['x', 'y']")
    values = pose_rows(poses, "poses")
    if values.shape[1] != len(requested) or not len(values):
        raise InputError(
            f"poses have the shape {values.shape}", key="poses", hint=f"give rows of {len(requested)} coordinates"
        )
    column_names, units = read_columns(robot.tree, requested, "coordinates")
    return column_names, values * units


def pose_rows(poses: Any, key: str) -> Array:
    """Rows of numbers."""
    try:
        values = np.asarray(None if isinstance(poses, (str, bytes)) else poses, dtype=float)
    except (TypeError, ValueError):
        values = np.zeros(())
    if values.ndim != 2:
        raise InputError(
            f"'{key}' is not n x n numbers",
            key=key,
            value=short_text(poses),
            hint="give rows of numbers, one for each pose",
        )
    return values


def loaded_design(robot: Robot, settings: dict[str, float]) -> Robot:
    """As `redesigned`, made once for all rows of a design."""

    def build() -> Robot | ParflexError:
        try:
            return redesigned(robot, settings)
        except ParflexError as error:
            return error.with_traceback(None)  # which holds the arrays of the caller

    loaded = cached("loaded designs", tuple(settings.items()), build, owners=(robot,))
    if isinstance(loaded, ParflexError):
        raise copy.copy(loaded)
    return loaded
