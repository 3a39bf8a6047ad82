"""Warnings about states given as arrays: once for a state or a batch."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from parflex.diagnostics import Diagnostic
from parflex.errors import ParflexError, ParflexWarning

INSIDE = f"{Path(__file__).resolve().parent.parent}{os.sep}"
LOG = logging.getLogger("parflex")


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Warn, at the line outside of this package that asked."""
    for diagnostic in diagnostics:
        warnings.warn(ParflexWarning(diagnostic), stacklevel=_outside())


def _outside() -> int:
    """How many calls above `warn` the package was called."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE):
        frame, level = frame.f_back, level + 1
    return level


def log_compiling(what: str) -> None:
    """One line before the first call of a robot, which takes seconds; it goes to the log `parflex`."""
    LOG.warning("parflex compiles %s: once; the program is kept for later calls", what)


class BatchWarnings:
    """How many states of a batch failed or were warned of, and what was said of the first."""

    def __init__(self, count: int, ignore_limits: bool = False) -> None:
        self.count, self.failed, self.warnings = count, 0, 0
        self.ignore_limits = ignore_limits
        self._failure = self._warning = ""

    def fails(self, number: int, error: ParflexError) -> None:
        """A state has no answer."""
        if not self.failed:
            self._failure = f"state {number}: {error}"
        self.failed += 1

    def count_failed(self) -> None:
        """One more, for a reason of the same kind."""
        self.failed += 1

    def warned(self, number: int, diagnostics: Callable[[], list[Diagnostic]]) -> None:
        """A state is answered, with a warning."""
        if not self.warnings:
            self._warning = f"state {number}: {'; '.join(each.text for each in diagnostics())}"
        self.warnings += 1

    def say(self) -> None:
        """One warning of each kind."""
        if self.failed:
            text = f"{self.failed} of {self.count} states have no answer and are nan, first {self._failure}"
            warn([Diagnostic("failed-states", text, value=self.failed)])
        if self.warnings:
            text = f"{self.warnings} of {self.count} states are answered with a warning, first {self._warning}"
            warn([Diagnostic("doubtful-states", text, value=self.warnings)])
