"""Chunks handed out to workers; what a worker that died had is given to another."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import suppress
from typing import Any

from parflex.campaigns.crews import Crew
from parflex.errors import InputError

Submit = Callable[[Executor, Any], Future[Any]]
MOST_LOST = 3  # workers that may die of one chunk
LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError", "WorkerStartTimeoutError")  # of Dask, by name


def answers(
    work: Callable[[Any], Any],
    chunks: Iterable[Hashable],
    crew: Crew,
    ordered: bool = False,
    first: bool = False,
    sent: Callable[[Any], Any] = lambda chunk: chunk,
) -> Iterator[tuple[Any, Any]]:
    """What is found in chunks: as it comes, or in their order. When the caller stops, what waits is given up.

    With `first` the first chunk is solved in this process: what it compiles, forks have. `sent` is what workers get of
    a chunk.
    """
    waiting = deque(chunks)
    if first and waiting and crew.name != "here":
        chunk = waiting.popleft()
        yield chunk, work(sent(chunk))
    if not waiting:
        return
    order = list(waiting)
    found = _as_they_come(lambda executor, chunk: executor.submit(work, sent(chunk)), waiting, crew)
    yield from (_in_order(found, order) if ordered else found)


def _in_order(found: Iterator[tuple[Any, Any]], chunks: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The same in the order of the chunks."""
    numbers = {_key(chunk): k for k, chunk in enumerate(chunks)}
    held: dict[int, tuple[Any, Any]] = {}
    following = 0
    for chunk, answer in found:
        held[numbers[_key(chunk)]] = chunk, answer
        while following in held:
            yield held.pop(following)
            following += 1


def _key(chunk: Any) -> Any:
    return (chunk.start, chunk.stop) if isinstance(chunk, slice) else chunk  # slices have no hash before Python 3.12


def _as_they_come(submit: Submit, waiting: deque[Any], crew: Crew) -> Iterator[tuple[Any, Any]]:
    executor = crew.begin()
    running: dict[Future[Any], Any] = {}
    losses: Counter[Any] = Counter()
    try:
        while waiting or running:
            broken = not _hand_out(submit, waiting, running, executor, crew)
            done = wait(running, return_when=FIRST_COMPLETED).done if running else set()
            for future in [future for future in running if future in done]:
                chunk = running.pop(future)
                try:
                    answer = future.result()
                except (BrokenExecutor, CancelledError) as error:
                    broken = broken or isinstance(error, BrokenExecutor)
                    _lost(chunk, waiting, losses, crew)
                except Exception as error:
                    if type(error).__name__ not in LOST:
                        raise
                    _lost(chunk, waiting, losses, crew)
                else:
                    yield chunk, answer
            if broken:
                waiting.extendleft(running.values())
                running.clear()
                executor = _replaced(executor, crew)
    finally:
        for future in running:
            future.cancel()
        (crew.stop if running and crew.stop is not None else crew.end)(executor)


def _hand_out(
    submit: Submit, waiting: deque[Any], running: dict[Future[Any], Any], executor: Executor, crew: Crew
) -> bool:
    """Give workers what they can take; False where they are gone."""
    while waiting and len(running) < crew.ahead:
        try:
            running[submit(executor, waiting[0])] = waiting[0]
        except BrokenExecutor:
            return False
        waiting.popleft()
    return True


def _lost(chunk: Any, waiting: deque[Any], losses: Counter[Any], crew: Crew) -> None:
    """A chunk whose worker died waits again, unless all die of it."""
    losses[_key(chunk)] += 1
    if losses[_key(chunk)] > MOST_LOST:
        raise InputError(
            "workers are killed again and again",
            key="cluster" if crew.far else "jobs",
            value=str(chunk),
            hint="use fewer jobs on each machine, or more memory; results so far are kept",
        )
    waiting.appendleft(chunk)


def _replaced(executor: Executor, crew: Crew) -> Executor:
    if not crew.replaceable:
        raise InputError(
            "the executor is broken", key="executor", hint="run it again with a new one; results so far are kept"
        )
    with suppress(Exception):
        executor.shutdown(wait=False, cancel_futures=True)
    return crew.begin()
