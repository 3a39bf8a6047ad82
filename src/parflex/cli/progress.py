"""Progress bars on stderr, if it is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (title, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)

    def show(done: int, total: int) -> None:
        if not bar.live.is_started:
            bar.reset(task, completed=done, total=total)  # what was there before took no time
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()


def _lines(title: str) -> Callable[[int, int], None]:
    """Things done, and the time that the others will take at this pace, as lines."""
    first: list[tuple[float, int]] = []
    last = [time.monotonic()]

    def say(done: int, total: int) -> None:
        now = time.monotonic()
        if not first:
            first.append((now, done))
        if now - last[0] >= LINES_EVERY and done > first[0][1]:
            last[0] = now
            left = (total - done) * (now - first[0][0]) / (done - first[0][1])
            print(f"{title}: {done} of {total}, {left:.0f} s left", file=sys.stderr, flush=True)

    return say
