"""Progress bars on stderr, if it is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

LINES_EVERY = 30.0  # s


@contextmanager
def clock(title: str, time: float | None) -> Iterator[Callable[[float], None] | None]:
    """A bar of simulated time."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=time)
        yield lambda t: bar.update(task, completed=t)


@contextmanager
def counter(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar of things done, of all; it begins with the first of them, when other processes are there already.

    Where there is no terminal, as in the log of a batch system, a line says it from time to time.
    """
    if not sys.stderr.isatty():
        yield _lines(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (title, BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None, left="")
    pace = _Pace()

    def show(done: int, total: int) -> None:
        if not bar.live.is_started:
            bar.reset(task, completed=done, total=total)  # what was there before took no time
            bar.start()
        left = pace.left(done, total)
        said = "" if left is None else str(timedelta(seconds=round(left)))
        bar.update(task, completed=done, total=total, left=said)

    try:
        yield show
    finally:
        bar.stop()


class _Pace:
    """How long the rest will take at the pace since the first call: slow ones come seldom, and several at once."""

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None

    def left(self, done: int, total: int) -> float | None:
        """Seconds; None before anything is done."""
        now = time.monotonic()
        if self.first is None:
            self.first = now, done
        begin, before = self.first
        return (total - done) * (now - begin) / (done - before) if done > before else None


def _lines(title: str) -> Callable[[int, int], None]:
    """Things done, and the time that the others will take at this pace, as lines."""
    pace, last = _Pace(), [time.monotonic()]

    def say(done: int, total: int) -> None:
        now, left = time.monotonic(), pace.left(done, total)
        if now - last[0] >= LINES_EVERY and left is not None:
            last[0] = now
            print(f"{title}: {done} of {total}, {left:.0f} s left", file=sys.stderr, flush=True)

    return say
