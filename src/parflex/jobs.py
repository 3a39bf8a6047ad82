"""Jobs in chunks on executors (processes, threads, Dask), resumable after an interruption.

A journal beside the file of results stores the chunks finished after the file was written. Each entry has its length
and checksum. A killed process leaves at most one incomplete entry, which is not read. While a journal is open, no other
process writes to the same results.
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
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing.connection import wait as wait_for_any
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol

from parflex.cache import cached
from parflex.checks import integer
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexWarning
from parflex.io import write_errors

SAVE_EVERY = 10.0  # s between two writes of the file of results

SAVING = 0.05  # share of the time that writing it may take

Submit = Callable[[Executor, Any], Future[Any]]

MAX_WORKER_LOSSES = 3  # workers that may die of one chunk

LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError", "WorkerStartTimeoutError")  # of Dask, by name

AHEAD = 2  # chunks for each worker that are handed out: while one is solved the next is there

MAX_JOBS = 1024

DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)

KILL = 9

PATIENCE = 10  # s until a scheduler has answered

Solver = Callable[[Any], Any]

MAX_CACHED_SOLVERS = 4  # in the memory of a worker: those of several campaigns on one cluster

_solver_lock = threading.Lock()

HEAD = b"parflex journal 2\n"

SIZES = 8, 32  # bytes of the length of an entry, and of its checksum


class JobResults(Protocol):
    """Where answers of chunks are kept, and how one of them is written down."""

    def put(self, chunk: Any, answer: Any) -> None:
        """Take over an answer; the same chunk twice is the same as once."""

    def save(self) -> None:
        """Write all of it to its file, whole or not at all."""

    def packed(self, chunk: Any, answer: Any) -> bytes:
        """An answer as it stands in the journal."""

    def unpacked(self, data: bytes) -> tuple[Any, Any]:
        """What `packed` wrote."""


def run_job(
    results: JobResults,
    left: Callable[[], Sequence[Any]],
    task: ChunkTask,
    pool_for: Callable[[int], ExecutorPool],
    path: Path | None,
    name: str,
    on_progress: Callable[[], None],
    ordered: bool = False,
    sent: Callable[[Any], Any] = lambda chunk: chunk,
) -> bool:
    """Solve the chunks that are `left`, and keep them in `path`; whether it was interrupted.

    The file of results, if there is one, is read already. `name` is a digest of all that the numbers come from,
    `pool_for` gives workers for so many chunks, `on_progress` is called after every chunk, `sent` is what workers
    get of one.
    """
    if path is None:
        return _work(results, left(), task, pool_for, None, on_progress, ordered, sent)
    with Journal(path, name) as journal:
        entries = journal.entries()
        for entry in entries:
            results.put(*results.unpacked(entry))
        chunks = left()
        interrupted = _work(results, chunks, task, pool_for, journal, on_progress, ordered, sent)
        if chunks or entries or not path.exists():
            _save(results, journal)
    return interrupted


def _work(
    results: JobResults,
    chunks: Sequence[Any],
    task: ChunkTask,
    pool_for: Callable[[int], ExecutorPool],
    journal: Journal | None,
    on_progress: Callable[[], None],
    ordered: bool,
    sent: Callable[[Any], Any],
) -> bool:
    if not chunks:
        return False
    pool = pool_for(len(chunks))
    saved, interval = time.monotonic(), SAVE_EVERY
    try:
        for chunk, answer in completed_chunks(_worker_function(task, pool), chunks, pool, ordered, pool.forks, sent):
            if journal is not None:
                journal.add(results.packed(chunk, answer))
            results.put(chunk, answer)
            on_progress()
            if journal is not None and time.monotonic() - saved > interval:
                begun = time.monotonic()
                _save(results, journal)
                saved = time.monotonic()
                interval = max(SAVE_EVERY, (saved - begun) / SAVING)
    except KeyboardInterrupt:
        return True
    return False


def _worker_function(task: ChunkTask, pool: ExecutorPool) -> Callable[[Any], Any]:
    """What workers call. Those of this machine have the solver; others get all that it takes to make it."""
    if pool.far:
        return partial(solve_chunk, replace(task, source=source_digest(), ready=None))
    if not pool.forks:
        return task.ready or task.solver()  # the caller reads what its own solver reports
    task.solver()
    return partial(solve_chunk, replace(task, given=None, ready=None))


def _save(results: JobResults, journal: Journal) -> None:
    """The file of results has everything, and then the journal nothing."""
    results.save()
    journal.clear()


def completed_chunks(
    work: Callable[[Any], Any],
    chunks: Iterable[Hashable],
    pool: ExecutorPool,
    ordered: bool = False,
    first: bool = False,
    sent: Callable[[Any], Any] = lambda chunk: chunk,
) -> Iterator[tuple[Any, Any]]:
    """What is found in chunks: as it comes, or in their order. When the caller stops, what waits is given up.

    With `first` the first chunk is solved in this process: what it compiles, forks have. `sent` is what workers get of
    a chunk.
    """
    waiting = deque(chunks)
    if first and waiting and pool.name != "here":
        chunk = waiting.popleft()
        yield chunk, work(sent(chunk))
    if not waiting:
        return
    order = list(waiting)
    answers = _completed_unordered(lambda executor, chunk: executor.submit(work, sent(chunk)), waiting, pool)
    yield from (_in_order(answers, order) if ordered else answers)


def _in_order(answers: Iterator[tuple[Any, Any]], chunks: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The same in the order of the chunks."""
    numbers = {_key(chunk): k for k, chunk in enumerate(chunks)}
    pending: dict[int, tuple[Any, Any]] = {}
    following = 0
    for chunk, answer in answers:
        pending[numbers[_key(chunk)]] = chunk, answer
        while following in pending:
            yield pending.pop(following)
            following += 1


def _key(chunk: Any) -> Any:
    return (chunk.start, chunk.stop) if isinstance(chunk, slice) else chunk  # slices have no hash before Python 3.12


def _completed_unordered(submit: Submit, waiting: deque[Any], pool: ExecutorPool) -> Iterator[tuple[Any, Any]]:
    executor = pool.begin()
    running: dict[Future[Any], Any] = {}
    losses: Counter[Any] = Counter()
    try:
        while waiting or running:
            broken = not _submit_waiting(submit, waiting, running, executor, pool)
            done = wait(running, return_when=FIRST_COMPLETED).done if running else set()
            for future in [future for future in running if future in done]:
                chunk = running.pop(future)
                try:
                    answer = future.result()
                except (BrokenExecutor, CancelledError) as error:
                    broken = broken or isinstance(error, BrokenExecutor)
                    _lost(chunk, waiting, losses, pool)
                except Exception as error:
                    if type(error).__name__ not in LOST:
                        raise
                    _lost(chunk, waiting, losses, pool)
                else:
                    yield chunk, answer
            if broken:
                waiting.extendleft(running.values())
                running.clear()
                executor = _replaced(executor, pool)
    finally:
        for future in running:
            future.cancel()
        (pool.stop if running and pool.stop is not None else pool.end)(executor)


def _submit_waiting(
    submit: Submit, waiting: deque[Any], running: dict[Future[Any], Any], executor: Executor, pool: ExecutorPool
) -> bool:
    """Give workers what they can take; False where they are gone."""
    while waiting and len(running) < pool.ahead:
        try:
            running[submit(executor, waiting[0])] = waiting[0]
        except BrokenExecutor:
            return False
        waiting.popleft()
    return True


def _lost(chunk: Any, waiting: deque[Any], losses: Counter[Any], pool: ExecutorPool) -> None:
    """A chunk whose worker died waits again, unless all die of it."""
    losses[_key(chunk)] += 1
    if losses[_key(chunk)] > MAX_WORKER_LOSSES:
        raise InputError(
            "workers are killed again and again",
            key="cluster" if pool.far else "jobs",
            value=str(chunk),
            hint="use fewer jobs on each machine, or more memory; results so far are kept",
        )
    waiting.appendleft(chunk)


def _replaced(executor: Executor, pool: ExecutorPool) -> Executor:
    if not pool.replaceable:
        raise InputError(
            "the executor is broken", key="executor", hint="run it again with a new one; results so far are kept"
        )
    with suppress(Exception):
        executor.shutdown(wait=False, cancel_futures=True)
    return pool.begin()


class InlineExecutor(Executor):
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
class ExecutorPool:
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


def inline_pool() -> ExecutorPool:
    """The process itself, alone."""
    return ExecutorPool(InlineExecutor, lambda: 1, "here")


def thread_pool(count: int) -> ExecutorPool:
    """Threads of this process."""
    if count == 1:
        return inline_pool()
    return ExecutorPool(lambda: ThreadPoolExecutor(count, thread_name_prefix="rows"), lambda: count, "threads")


def process_pool(jobs: int | None, most: int) -> ExecutorPool:
    """Processes of this machine, not more than there is to do."""
    count = min(number_of_jobs(jobs), max(1, most))
    if count == 1:
        return inline_pool()
    forks = sys.platform == "linux"
    context = multiprocessing.get_context("fork" if forks else "spawn")

    def begin() -> Executor:
        return ProcessPoolExecutor(count, context, initializer=initialise_worker)

    return ExecutorPool(
        begin, lambda: count, "processes", far=not forks, replaceable=True, forks=forks, stop=_terminate_workers
    )


def _terminate_workers(executor: Executor) -> None:
    """End processes in the middle of their work: what they would find is not waited for, and made again."""
    for process in list((getattr(executor, "_processes", None) or {}).values()):
        process.terminate()
    executor.shutdown(wait=True, cancel_futures=True)


def user_pool(executor: Any) -> ExecutorPool:
    """An executor of the caller, who ends it."""
    if not isinstance(executor, Executor):
        raise InputError(
            "'executor' is not an executor", key="executor", value=type(executor).__name__,
            hint="give one of concurrent.futures, or a Dask client's get_executor()",
        )  # fmt: skip
    workers = getattr(executor, "_max_workers", None)
    count = workers if isinstance(workers, int) else number_of_jobs(None)
    far = not isinstance(executor, ThreadPoolExecutor | InlineExecutor)
    return ExecutorPool(lambda: executor, lambda: count, "executor", far=far, end=lambda _: None)


def initialise_worker() -> None:
    """In a new process: interrupts are for the parent, and it does not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def number_of_jobs(jobs: int | None) -> int:
    """As many as asked for; by default one for each core that this process may use."""
    if jobs is not None:
        return integer(jobs, "jobs", 1, MAX_JOBS)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def end_with_parent(by_signal: bool = True) -> None:
    """In a worker: end as soon as the parent is gone, also where it was killed and could say nothing.

    Linux sends a signal. Elsewhere, and beside it, a thread waits for the parent's end of a pipe to close.
    """
    if by_signal and sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(DEATH_SIGNAL, KILL)
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if not parent.is_alive():  # it ended before the signal was asked for
        os._exit(1)
    threading.Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def _watch(sentinel: int) -> None:
    wait_for_any([sentinel])
    os._exit(1)


def dask_executor(address: Any) -> ExecutorPool:
    """The workers of a Dask scheduler."""
    client = _client(address)
    try:
        _check_workers(client)
    except BaseException:
        client.close()
        raise

    def begin() -> Executor:
        return client.get_executor(pure=False)

    def workers() -> int:
        return sum(client.nthreads().values())

    def end(executor: Executor) -> None:
        executor.shutdown(wait=False)
        client.close()

    return ExecutorPool(begin, workers, "cluster", far=True, end=end)


def _client(address: Any) -> Any:
    place = re.fullmatch(r"(?:[a-z]+://)?(\[[^\]]+\]|[^:/\s]+):(\d+)/?", address) if isinstance(address, str) else None
    if place is None:
        raise _no_scheduler_error(address)
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "a cluster needs Dask, which is not installed",
            key="cluster",
            value=address,
            hint="pip install 'parflex[cluster]'",
        ) from None
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is said in our own words
    try:
        socket.create_connection((place[1].strip("[]"), int(place[2])), PATIENCE).close()  # says no at once
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception:  # whatever answers there is no scheduler
        raise _no_scheduler_error(address) from None


def _no_scheduler_error(address: Any) -> InputError:
    return InputError(
        f"no Dask scheduler answers at '{address}'",
        key="cluster",
        value=str(address),
        hint="start one with 'dask scheduler' and give its address, such as tcp://127.0.0.1:8786",
    )


def _check_workers(client: Any) -> None:
    """Refuse workers with another parflex, or with none; say that there are none yet."""

    def source() -> tuple[str, str]:  # sent whole: what it needs may not be there
        import importlib

        try:
            return importlib.import_module("parflex.jobs").source_digest()
        except ImportError:
            pass
        try:
            return importlib.import_module("parflex").__version__, "without campaigns"
        except ImportError:
            return "", ""

    sources = client.run(source)
    for worker, worker_source in sources.items():
        if not worker_source[0]:
            raise InputError(
                f"the worker {worker} has no parflex", key="cluster", value=worker, hint="install it there too"
            )
        check_source(source_digest(), worker_source, f"the worker {worker}")
    if not sources:
        diagnostic = Diagnostic("no-workers", "the cluster has no workers yet: waiting for them")
        warnings.warn(ParflexWarning(diagnostic), stacklevel=4)


@dataclass(frozen=True)
class ChunkTask:
    """A solver of chunks: `make(given)` makes it, wherever the task arrives; `name` is that of its content."""

    make: Callable[[Any], Solver]
    given: Any
    name: str
    source: tuple[str, str] = ("", "")  # version of parflex, and a digest of its source
    ready: Solver | None = None  # the solver, where this process has it already

    def solver(self) -> Solver:
        """Return the solver, made once in each process."""
        with _solver_lock:
            return cached("solvers", self.name, lambda: self.ready or self.make(self.given), limit=MAX_CACHED_SOLVERS)


def solve_chunk(task: ChunkTask, chunk: Any) -> Any:
    """In a worker: the answer of a chunk."""
    if task.source[0]:
        check_source(task.source, source_digest(), "a worker")
    return task.solver()(chunk)


@cache
def source_digest() -> tuple[str, str]:
    """Version of parflex in this process, and a digest of its source: two states of one version differ in it."""
    parflex = importlib.import_module("parflex")
    digest, root = hashlib.sha256(), Path(parflex.__file__ or "").parent
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + file.read_bytes())
    return parflex.__version__, digest.hexdigest()


def check_source(own_source: tuple[str, str], other_source: tuple[str, str], who: str) -> None:
    """Refuse answers of another parflex: their numbers may mean something else."""
    if own_source != other_source:
        versions = f"parflex {other_source[0]}, but this is {own_source[0]}"
        difference = versions if own_source[0] != other_source[0] else f"another state of parflex {own_source[0]}"
        raise InputError(
            f"{who} has {difference}",
            key="cluster",
            value=other_source[0],
            hint="install the same version on all machines",
        )


class Journal:
    """Entries of a campaign with a `name`; those of another campaign are refused."""

    def __init__(self, results: Path, name: str) -> None:
        self.path = results.with_name(results.name + ".journal")
        self.results, self.head = results, HEAD + name.encode() + b"\n"
        self.file: BinaryIO | None = None

    def __enter__(self) -> Journal:
        with write_errors(self.results):
            self.file = open(self.path, "a+b", buffering=0)  # noqa: PTH123 - it stays open
            self._lock()
        return self

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # not on every system
            return
        assert self.file is not None
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise InputError(
                "another process writes this file", file=str(self.results), key="out", value=str(self.results),
                hint="wait for it, or name another file",
            ) from None  # fmt: skip

    def entries(self) -> list[bytes]:
        """What an earlier process left; what follows is added behind the last whole entry."""
        assert self.file is not None
        self.file.seek(0)
        content = self.file.read()
        entries, offset = [], len(self.head)
        if not content.startswith(self.head):
            if content.startswith(HEAD) and content.find(b"\n", len(HEAD)) > 0:
                raise InputError(
                    "the journal beside it belongs to another campaign", file=str(self.path), key="out",
                    value=str(self.results), hint="name another file, or remove the journal",
                )  # fmt: skip
            self.clear()
            return []
        while len(content) >= offset + sum(SIZES):
            size = int.from_bytes(content[offset : offset + SIZES[0]], "little")
            checksum, data = content[offset + SIZES[0] : offset + sum(SIZES)], content[offset + sum(SIZES) :][:size]
            if len(data) < size or hashlib.blake2b(data, digest_size=SIZES[1]).digest() != checksum:
                break
            entries.append(data)
            offset += sum(SIZES) + size
        self._cut(offset)
        return entries

    def add(self, data: bytes) -> None:
        """One more entry; it is there as soon as this returns, or not at all."""
        entry = len(data).to_bytes(SIZES[0], "little") + hashlib.blake2b(data, digest_size=SIZES[1]).digest() + data
        self._write(entry)

    def clear(self) -> None:
        """No entries: the file of results has all of them."""
        self._cut(0)
        self._write(self.head)

    def _write(self, data: bytes) -> None:
        assert self.file is not None
        left = memoryview(data)
        with write_errors(self.results, hint="free some space and run it again: what was finished is kept"):
            while left:
                left = left[self.file.write(left) or 0 :]

    def _cut(self, size: int) -> None:
        assert self.file is not None
        with suppress(OSError):
            os.ftruncate(self.file.fileno(), size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closed; without entries it is removed."""
        assert self.file is not None
        with suppress(OSError):
            if os.fstat(self.file.fileno()).st_size <= len(self.head):
                self.path.unlink()
        self.file.close()
