"""Robots of designs that are loaded by themselves: once for a design, however many poses it has."""

from __future__ import annotations

import threading

from parflex.errors import ParflexError
from parflex.robot.load import with_settings
from parflex.robot.robot import Robot

ALONE = "from the starts of the file no home is found on the sides of that of the robot; starts near home may cure it"
RECENT = 8  # designs that are kept: rows of one design follow each other as a rule


class LoadedDesigns:
    """The last designs of a robot that were loaded, or why there is none."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._lock = threading.Lock()
        self._known: dict[tuple[tuple[str, float], ...], Robot | ParflexError] = {}

    def __call__(self, settings: dict[str, float]) -> Robot:
        """A robot with its home; raises what reading or assembling it says."""
        key = tuple(settings.items())
        with self._lock:
            found = self._known.get(key)
        if found is None:
            try:
                found = with_settings(self.robot, settings)
                found.assemble()  # home, from which poses are found
            except ParflexError as error:
                found = error
            with self._lock:
                while len(self._known) >= RECENT:
                    self._known.pop(next(iter(self._known)))
                self._known[key] = found
        if isinstance(found, ParflexError):
            raise found
        return found
