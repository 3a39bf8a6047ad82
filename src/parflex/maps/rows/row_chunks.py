"""Rows in chunks of one size, by several threads.

A chunk starts cold and is solved by one thread: what is found in it depends neither on the number of threads nor on
what was computed before.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from parflex.checking import whole

Found = TypeVar("Found")
AHEAD = 2  # chunks for each thread that wait to be taken: results that are not needed yet take memory


def number_of_threads(threads: int | None) -> int:
    """Threads that are asked for; by default as many as cores that this process may use."""
    if threads is not None:
        return whole(threads, "threads", 1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def chunks_of(count: int, size: int) -> list[slice]:
    """Rows 0 to `count` in chunks."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def in_order(chunks: Iterable[slice], solve: Callable[[slice], Found], threads: int) -> Iterator[tuple[slice, Found]]:
    """What is found in each chunk, in their order; when the caller stops, chunks that wait are given up."""
    if threads == 1:
        for chunk in chunks:
            yield chunk, solve(chunk)
        return
    waiting: deque[tuple[slice, Future[Found]]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="rows")
    try:
        for chunk in chunks:
            waiting.append((chunk, pool.submit(solve, chunk)))
            if len(waiting) >= AHEAD * threads:
                first, found = waiting.popleft()
                yield first, found.result()
        while waiting:
            first, found = waiting.popleft()
            yield first, found.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
