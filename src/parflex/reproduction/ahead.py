"""Time loops are compiled by a second process while the first one computes what needs none.

Compiled loops are kept on disk, so the first process finds them there. Nothing depends on it but the time it takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import Any

from parflex.reproduction.published_tables import Group

KIND = "computing-time"
COMPILE = """
import json, sys, parflex
robot, motion, step = json.loads(sys.argv[1])
parflex.simulate(parflex.load(robot), motion, 10 * step, step=step, out_step=10 * step, check_width=False)
"""


class Ahead:
    """The second process, if one of the groups needs it. Leaving the context ends it."""

    def __init__(self, groups: list[Group]) -> None:
        self._found = next((group for group in groups if group.kind == KIND), None)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Ahead:
        if self._found is not None:
            options: dict[str, Any] = self._found.options
            requested = json.dumps([options["robot"], options["motion"], options["step"]])
            with suppress(OSError):  # no second process: then everything is compiled where it is needed
                self._process = subprocess.Popen(
                    [sys.executable, "-c", COMPILE, requested], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
        return self

    def wait_for(self, group: Group) -> None:
        """Wait until what a group needs is compiled."""
        if self._process is not None and group == self._found:
            self._process.wait()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
