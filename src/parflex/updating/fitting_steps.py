"""Steps of an update as they are done: files of responses that are read, fits from the file and from other starts."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]


class FittingSteps:
    """Counts steps, and tells how many are done of those that are known; an error of the model makes them more."""

    def __init__(self, progress: Progress | None = None, known: int = 0) -> None:
        self.progress, self.done, self.known = progress, 0, 0
        self.expect(known)

    def expect(self, count: int) -> None:
        """So many more are to come."""
        self.known += count
        self._tell()

    def step(self) -> None:
        """One is done."""
        self.done += 1
        self.known = max(self.known, self.done)
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None and self.known:
            self.progress(self.done, self.known)
