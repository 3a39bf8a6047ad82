"""Answers of a batch with status and reasons; tables of poses and parameters, chunks on threads."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parflex.cache import cached
from parflex.checks import names, short_text
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexError, ParflexWarning
from parflex.maps.continuation import OK
from parflex.maps.positions import MESSAGES
from parflex.parameters.design_numbers import number_at
from parflex.parameters.robot_file import redesigned
from parflex.records import Record, count_of
from parflex.robot.coordinate_names import read_columns
from parflex.robot.robot import Robot
from parflex.statics.equilibrium import NOT_STABLE

Array = np.ndarray

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
    refused: ParflexError | None = field(default=None, compare=False)  # what a row could not be asked
    refusals: dict[str, ParflexError] = field(default_factory=dict, compare=False)  # the same by response
    rests: Array = field(default_factory=lambda: np.zeros(0, dtype=bool), compare=False)

    @classmethod
    def empty(cls, shapes: Mapping[str, tuple[int, ...]], count: int) -> BatchResult:
        """Rows of which nothing is known."""
        values = {name: np.full((count, *shape), np.nan) for name, shape in shapes.items()}
        return cls(values, np.full(count, OK), [""] * count, rests=np.zeros(count, dtype=bool))

    def put(self, rows: Array, part: BatchResult) -> None:
        """Take over what was found at some rows."""
        for name, part_values in part.values.items():
            self.values[name][rows] = part_values
        self.status[rows] = part.status
        for row, reason in zip(rows.tolist(), part.reasons, strict=True) if any(part.reasons) else ():
            self.reasons[row] = reason
        self.rests[rows] = part.rests
        self.count(part)

    def count(self, part: BatchResult) -> None:
        """Add what was counted and refused in some rows."""
        self.fallbacks += part.fallbacks
        self.balanced += part.balanced
        self.refused = self.refused or part.refused
        self.refusals = part.refusals | self.refusals

    def say(self, row: int, message: str) -> None:
        """Say something of a row that has answers."""
        self.reasons[row] = "; ".join(text for text in (self.reasons[row], message) if text)

    def modal(self, kind: str, modes: int) -> Array:
        """Responses of the lowest modes side by side, rows x modes x ..."""
        columns = [self.values[f"{kind}:{k + 1}"] for k in range(modes)]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.status), 0))

    def refuse(self) -> None:
        """Raise the error of what no row could be asked."""
        if self.refused is not None and not (self.status == OK).any():
            raise self.refused
        for name, error in self.refusals.items():
            if not np.isfinite(self.values[name]).any():
                raise error

    def mark(self, row: int, state: int, reason: str = "") -> None:
        """Say that a row has no answer, and why."""
        self.status[row], self.reasons[row] = state, reason or MESSAGES.get(state, "")
        for array in self.values.values():
            array[row] = np.nan

    def _told(self) -> str:
        return f"{count_of(len(self.status), 'row')}, {int((self.status == OK).sum())} with an answer"


def warn_of_unstable(reasons: Sequence[str], level: int) -> None:
    """Warn of rows that are about an equilibrium that is not stable."""
    unstable = {reason: NOT_STABLE in reason for reason in set(reasons)}  # few texts for many rows
    count = sum(unstable[reason] for reason in reasons) if any(unstable.values()) else 0
    if count:
        text = f"{count} of {len(reasons)} poses are about an equilibrium that is not stable: reasons say which"
        warnings.warn(ParflexWarning(Diagnostic("unstable-equilibrium", text, value=count)), stacklevel=level + 1)


def warn_of_balanced(balanced: int, poses: int, level: int) -> None:
    """Warn where answers are about the equilibrium though it was not asked for."""
    if balanced:
        text = f"{balanced} of {poses} poses have springs under tension: they are answered about the equilibrium"
        warnings.warn(ParflexWarning(Diagnostic("about-equilibrium", text, value=balanced)), stacklevel=level + 1)


def chunks_of(count: int, size: int) -> list[slice]:
    """Rows 0 to `count` in chunks."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


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


def parameter_columns(robot: Robot, parameters: Mapping[str, Any] | None, count: int) -> dict[str, Array]:
    """Return the values of each key of the robot file, one for each row."""
    columns: dict[str, Array] = {}
    for key, values in (parameters or {}).items():
        number_at(robot, key)  # refuses what is not a number of the file
        try:
            column = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            raise InputError(
                f"the values of '{key}' are not numbers", key="designs", value=key,
                hint="give one for each row of poses",
            ) from None  # fmt: skip
        if column.shape not in ((), (count,)):
            raise InputError(
                f"'{key}' has {column.size} values for {count} poses", key="designs", value=key,
                hint="give one value, or one for each row of poses",
            )  # fmt: skip
        columns[key] = np.full(count, float(column)) if column.ndim == 0 else column
    return columns


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
