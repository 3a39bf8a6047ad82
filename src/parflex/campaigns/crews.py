"""Who works: this process, threads or processes of this machine, a cluster, or an executor that is given."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from parflex.campaigns.workers import end_with_parent
from parflex.checking import whole
from parflex.errors import InputError

AHEAD = 2  # chunks for each worker that are handed out: while one is solved the next is there
MOST_JOBS = 1024


class Inline(Executor):
    """An executor that works at once, in the process of the caller."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The answer, already there."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # an interrupt is for the caller
            future.set_exception(error)
        return future


@dataclass
class Crew:
    """An executor, how many chunks it takes at a time, and whether it can be replaced where it broke.

    `far` workers are no children of this process: they need all of a task, and of the same parflex.
    """

    begin: Callable[[], Executor]
    workers: Callable[[], int]
    name: str
    far: bool = False
    replaceable: bool = False
    forks: bool = False  # workers know what this process made before
    end: Callable[[Executor], None] = lambda executor: executor.shutdown(wait=True, cancel_futures=True)
    stop: Callable[[Executor], None] | None = None  # in the place of `end` while workers are at work

    @property
    def ahead(self) -> int:
        """Chunks that are handed out at a time."""
        count = self.workers()
        return 1 if self.name == "here" else AHEAD * max(1, count)


def here() -> Crew:
    """The process itself, alone."""
    return Crew(Inline, lambda: 1, "here")


def threads(count: int) -> Crew:
    """Threads of this process."""
    if count == 1:
        return here()
    return Crew(lambda: ThreadPoolExecutor(count, thread_name_prefix="rows"), lambda: count, "threads")


def processes(jobs: int | None, most: int) -> Crew:
    """Processes of this machine, not more than there is to do."""
    count = min(number_of_jobs(jobs), max(1, most))
    if count == 1:
        return here()
    forks = sys.platform == "linux"
    context = multiprocessing.get_context("fork" if forks else "spawn")

    def begin() -> Executor:
        return ProcessPoolExecutor(count, context, initializer=begin_worker)

    return Crew(begin, lambda: count, "processes", far=not forks, replaceable=True, forks=forks, stop=_stop_at_once)


def _stop_at_once(executor: Executor) -> None:
    """End processes in the middle of their work: what they would find is not waited for, and made again."""
    for process in list((getattr(executor, "_processes", None) or {}).values()):
        process.terminate()
    executor.shutdown(wait=True, cancel_futures=True)


def given(executor: Any) -> Crew:
    """An executor of the caller, who ends it."""
    if not isinstance(executor, Executor):
        raise InputError(
            "'executor' is not an executor", key="executor", value=type(executor).__name__,
            hint="give one of concurrent.futures, or a Dask client's get_executor()",
        )  # fmt: skip
    workers = getattr(executor, "_max_workers", None)
    count = workers if isinstance(workers, int) else number_of_jobs(None)
    far = not isinstance(executor, ThreadPoolExecutor | Inline)
    return Crew(lambda: executor, lambda: count, "executor", far=far, end=lambda _: None)


def begin_worker() -> None:
    """In a new process: interrupts are for the parent, and it does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def number_of_jobs(jobs: int | None) -> int:
    """As many as asked for; by default one for each core that this process may use."""
    if jobs is not None:
        return whole(jobs, "jobs", 1, MOST_JOBS)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
