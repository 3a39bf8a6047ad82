"""Evaluate batches of states: failed rows are nan, and one warning lists rows and reasons."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import ParflexError, ParflexWarning
from parflex.records import name_list
from parflex.robot.states import as_numbers

Array = np.ndarray
INSIDE = f"{Path(__file__).resolve().parent.parent}{os.sep}"
NAMED = 8  # rows of one reason listed in a warning


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Warn at the line of the caller outside this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame, level = frame.f_back, level + 1
    for diagnostic in diagnostics:
        warnings.warn(ParflexWarning(diagnostic), stacklevel=level)


class BatchNotes:
    """Failures and warnings of a batch by reason, with the message of the first state of each."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.failed: dict[Any, list[int]] = {}
        self.warned: dict[str, list[int]] = {}
        self._texts: dict[Any, str] = {}

    def fails(self, number: int, error: ParflexError) -> Any:
        """Record a failure; states with equal kind of error, key and names share a reason."""
        reason = (error.kind, error.key, error.value if isinstance(error.value, str) else type(error.value))
        self._texts.setdefault(reason, str(error))
        self.fails_alike(number, reason)
        return reason

    def fails_alike(self, number: int, reason: Any) -> None:
        """Record a state that fails for a recorded reason."""
        self.failed.setdefault(reason, []).append(number)

    def warns(self, number: int, diagnostics: Callable[[], Sequence[Diagnostic]]) -> None:
        """Record diagnostics of a state; only the first state of each kind makes its texts."""
        if not self.warned:
            self._texts[""] = "; ".join(diagnostic.text for diagnostic in diagnostics())
        self.warned.setdefault("", []).append(number)

    def say(self) -> None:
        """Issue one warning of each kind."""
        for code, rows, what in (
            ("failed-states", self.failed, "have no answer and are nan"),
            ("doubtful-states", self.warned, "are answered with a warning"),
        ):
            if rows:
                count = sum(map(len, rows.values()))
                reasons = "; ".join(f"{_states(numbers)}: {self._texts[reason]}" for reason, numbers in rows.items())
                warn([Diagnostic(code, f"{count} of {self.count} states {what}: {reasons}", value=count)])


def _states(numbers: Sequence[int]) -> str:
    words = [str(number) for number in numbers[:NAMED]]
    more = [f"{len(numbers) - NAMED} more"] if len(numbers) > NAMED else []
    return f"state{'s' if len(numbers) > 1 else ''} {name_list([*words, *more])}"


def is_batch(pose: Any) -> bool:
    """Return whether positions are rows of several states."""
    if isinstance(pose, (list, tuple)):
        return bool(pose) and isinstance(pose[0], (list, tuple, np.ndarray))
    return isinstance(pose, np.ndarray) and pose.ndim == 2


def answer_rows(pose: Any, ask: Callable[[int, Any], Sequence[Any]], *shapes: tuple[int, ...]) -> Sequence[Any]:
    """Return the results of `ask` at a pose; for a batch stacked arrays of these shapes."""
    if not is_batch(pose):
        return ask(0, pose)
    rows = as_numbers(pose, "pose")
    answers, notes = [np.full((len(rows), *shape), np.nan) for shape in shapes], BatchNotes(len(rows))
    for number, row in enumerate(rows):
        try:
            values = ask(number, row)
        except ParflexError as error:
            notes.fails(number, error)
            continue
        for answer, value in zip(answers, values, strict=True):
            answer[number] = value
    notes.say()
    return answers
