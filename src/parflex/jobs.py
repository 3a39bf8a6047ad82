"""Jobs in chunks on executors: this process, threads, processes, any executor of `concurrent.futures`, Dask.

The file of results is rewritten atomically every few seconds. A job resumes by the status of the rows in its file, so
that a killed job loses only the answers since the file was last written.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import multiprocessing
import os
import re
import signal
import socket
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing.connection import wait as wait_for_any
from pathlib import Path
from typing import Any

from parflex.cache import cached
from parflex.checks import integer
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexWarning
from parflex.io import write_errors

SAVE_EVERY = 5.0  # s between two writes of the file of results
SAVING = 0.05  # largest share of the time that writing it takes
LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError", "WorkerStartTimeoutError")  # of Dask, by name
AHEAD = 2  # submitted chunks per worker: while one is solved the next is there
MAX_JOBS = 1024
PATIENCE = 10  # s until a scheduler has answered
MAX_CACHED_SOLVERS = 4  # in the memory of a worker: those of several jobs on one cluster

Solver = Callable[[Any], Any]


def run_job(
    results: Any,
    chunks: Sequence[Any],
    task: ChunkTask,
    workers_for: Callable[[int], Workers],
    path: Path | None,
    on_progress: Callable[[], None],
    sent: Callable[[Any], Any] = lambda chunk: chunk,
) -> bool:
    """Solve chunks and save their answers in `path`; return whether the job was interrupted.

    `results.put(chunk, answer)` stores an answer, `results.save()` writes all of them. `workers_for` returns workers
    for a number of chunks, `on_progress` is called after every chunk, `sent` returns what a worker needs of one.
    """
    if not chunks and (path is None or path.exists()):
        return False
    saved, interval, changed, interrupted = time.monotonic(), SAVE_EVERY, not chunks, False
    with nullcontext() if path is None else _sole_writer(path):
        try:
            workers = workers_for(len(chunks)) if chunks else Workers("here")
            for chunk, answer in completed_chunks(task.of(workers), chunks, workers, sent):
                results.put(chunk, answer)
                changed = True
                on_progress()
                begun = time.monotonic()
                if path is not None and begun - saved > interval:
                    results.save()
                    saved, changed = time.monotonic(), False
                    interval = max(SAVE_EVERY, (saved - begun) / SAVING)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            if path is not None and changed:
                results.save()
    return interrupted


@contextmanager
def _sole_writer(path: Path) -> Iterator[None]:
    """Refuse a second process that writes the same results."""
    lock = path.with_name(path.name + ".lock")
    with write_errors(path):
        file = lock.open("w")
    with file:
        try:
            with suppress(ImportError):  # not on every system
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            what, hint = "another process writes this file", "wait for it, or name another file"
            raise InputError(what, file=str(path), key="out", value=str(path), hint=hint) from None
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()


def completed_chunks(
    work: Solver, chunks: Iterable[Any], workers: Workers, sent: Callable[[Any], Any] = lambda chunk: chunk
) -> Iterator[tuple[Any, Any]]:
    """Yield chunks with their answers as they come; when the caller stops, the others are cancelled."""
    left = deque(chunks)
    for _ in range(len(left) if workers.kind == "here" else min(len(left), workers.forks)):
        chunk = left.popleft()  # forks know what the first chunk compiled
        yield chunk, work(sent(chunk))
    if not left:
        return
    executor, running = workers.start(), dict[futures.Future[Any], Any]()
    try:
        while left or running:
            while left and len(running) < AHEAD * max(1, workers.count()):
                chunk = left.popleft()
                running[executor.submit(work, sent(chunk))] = chunk
            for future in futures.wait(running, return_when=futures.FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    except Exception as error:
        if not isinstance(error, futures.BrokenExecutor | futures.CancelledError) and type(error).__name__ not in LOST:
            raise
        key = {"processes": "jobs", "cluster": "cluster"}.get(workers.kind, "executor")
        hint = "use fewer jobs, or more memory; finished results are kept, and the same call continues there"
        raise InputError("a worker was killed", key=key, hint=hint) from None
    finally:
        for future in running:
            future.cancel()
        if running and workers.kind == "processes":  # in the middle of their work
            for process in list((getattr(executor, "_processes", None) or {}).values()):
                process.terminate()
        workers.end(executor)


# -- workers -------------------------------------------------------------------------------------------------------


@dataclass
class Workers:
    """An executor: how it starts and ends, and how many chunks it solves at a time.

    `kind` is 'here', 'threads', 'processes', 'executor' or 'cluster'. Workers that are `far` need all of a task;
    `forks` know what this process made before.
    """

    kind: str
    start: Callable[[], futures.Executor] = futures.ThreadPoolExecutor
    count: Callable[[], int] = lambda: 1
    far: bool = False
    forks: bool = False
    end: Callable[[futures.Executor], None] = lambda executor: executor.shutdown(wait=True, cancel_futures=True)


def thread_workers(count: int) -> Workers:
    """Return threads of this process."""
    if count == 1:
        return Workers("here")
    return Workers("threads", partial(futures.ThreadPoolExecutor, count), lambda: count)


def process_workers(jobs: int | None, most: int) -> Workers:
    """Return processes of this machine, at most one for each chunk."""
    count = min(number_of_jobs(jobs), max(1, most))
    if count == 1:
        return Workers("here")
    forks = sys.platform == "linux"
    context = multiprocessing.get_context("fork" if forks else "spawn")
    start = partial(futures.ProcessPoolExecutor, count, context, initialise_worker)
    return Workers("processes", start, lambda: count, far=not forks, forks=forks)


def executor_workers(executor: Any) -> Workers:
    """Return the workers of an executor of the caller, who ends it."""
    if not isinstance(executor, futures.Executor):
        hint = "give one of concurrent.futures, or a Dask client's get_executor()"
        raise InputError("'executor' is not an executor", key="executor", value=type(executor).__name__, hint=hint)
    workers = getattr(executor, "_max_workers", None)
    count = workers if isinstance(workers, int) else number_of_jobs(None)
    far = not isinstance(executor, futures.ThreadPoolExecutor)
    return Workers("executor", lambda: executor, lambda: count, far=far, end=lambda _: None)


def number_of_jobs(jobs: int | None) -> int:
    """Return a number of workers; by default one for each core that this process may use."""
    if jobs is not None:
        return integer(jobs, "jobs", 1, MAX_JOBS)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def initialise_worker() -> None:
    """Leave interrupts to the parent, and end with it, also where it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for_any([sentinel])
    os._exit(1)


def dask_workers(address: Any) -> Workers:
    """Return the workers of a Dask scheduler."""
    place = re.fullmatch(r"(?:[a-z]+://)?(\[[^\]]+\]|[^:/\s]+):(\d+)/?", address) if isinstance(address, str) else None
    hint = "start one with 'dask scheduler' and give its address, such as tcp://127.0.0.1:8786"
    missing = InputError(f"no Dask scheduler answers at '{address}'", key="cluster", value=str(address), hint=hint)
    if place is None:
        raise missing
    try:
        from distributed import Client
    except ImportError:
        hint = "pip install 'parflex[cluster]'"
        raise InputError("a cluster needs Dask, which is not installed", key="cluster", hint=hint) from None
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are reported by this module
    try:
        socket.create_connection((place[1].strip("[]"), int(place[2])), PATIENCE).close()  # refuses at once
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception:  # whatever answers there is no scheduler
        raise missing from None

    def end(executor: futures.Executor) -> None:
        executor.shutdown(wait=False)
        client.close()

    try:
        _check_workers(client)
    except BaseException:
        client.close()
        raise
    return Workers(
        "cluster", partial(client.get_executor, pure=False), lambda: sum(client.nthreads().values()), True, end=end
    )


def _check_workers(client: Any) -> None:
    """Refuse workers with another parflex or with none; warn where there are no workers yet."""

    def source() -> tuple[str, str]:  # sent as code: a worker may lack this module
        try:
            from parflex.jobs import source_digest as digest
        except ImportError:
            return "", ""
        return digest()

    sources = client.run(source)
    for worker, other in sources.items():
        check_source(source_digest(), other, f"the worker {worker}")
    if not sources:
        diagnostic = Diagnostic("no-workers", "the cluster has no workers yet: waiting for them")
        warnings.warn(ParflexWarning(diagnostic), stacklevel=4)


# -- tasks ---------------------------------------------------------------------------------------------------------

_solver_lock = threading.Lock()


@dataclass(frozen=True)
class ChunkTask:
    """A solver of chunks: `make(given)` makes it, wherever the task arrives; `name` is a digest of its content."""

    make: Callable[[Any], Solver]
    given: Any
    name: str
    source: tuple[str, str] = ("", "")  # version of parflex, and a digest of its source
    ready: Solver | None = None  # the solver, where this process has it already

    def of(self, workers: Workers) -> Solver:
        """Return what workers call; far ones get all that makes the solver."""
        if workers.far:
            return replace(self, source=source_digest(), ready=None)
        if not workers.forks:
            return self.ready or self._solver()
        self._solver()  # made before the fork, so that every worker has it
        return replace(self, given=None, ready=None)

    def __call__(self, chunk: Any) -> Any:
        """Return the answer of a chunk."""
        if self.source[0]:
            check_source(self.source, source_digest(), "a worker")
        return self._solver()(chunk)

    def _solver(self) -> Solver:
        with _solver_lock:  # made once in each process
            return cached("solvers", self.name, lambda: self.ready or self.make(self.given), limit=MAX_CACHED_SOLVERS)


@cache
def source_digest() -> tuple[str, str]:
    """Return the version of parflex in this process and a digest of its source."""
    parflex = importlib.import_module("parflex")
    digest, root = hashlib.sha256(), Path(parflex.__file__ or "").parent
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + file.read_bytes())
    return parflex.__version__, digest.hexdigest()


def check_source(own: tuple[str, str], other: tuple[str, str], who: str) -> None:
    """Refuse answers of another parflex: their numbers may mean something else."""
    if own != other:
        what = f"{who} has another version or state of parflex than {own[0]}, or none"
        raise InputError(what, key="cluster", value=other[0], hint="install the same version on all machines")
