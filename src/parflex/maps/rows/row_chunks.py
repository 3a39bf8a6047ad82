"""Rows in chunks of one size, by several threads.

A chunk starts cold and is solved by one thread: what is found in it depends neither on the number of threads nor on
what was computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from parflex import jobs
from parflex.checks import integer
from parflex.jobs import completed_chunks

Found = TypeVar("Found")
Progress = Callable[[int, int], None]  # called with rows that are done, and all


def number_of_threads(threads: int | None) -> int:
    """Threads that are asked for; by default as many as cores that this process may use."""
    if threads is not None:
        return integer(threads, "threads", 1)
    return jobs.number_of_jobs(None)


def chunks_of(count: int, size: int) -> list[slice]:
    """Rows 0 to `count` in chunks."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def in_order(chunks: Iterable[slice], solve: Callable[[slice], Found], threads: int) -> Iterator[tuple[slice, Found]]:
    """What is found in each chunk, in their order; when the caller stops, chunks that wait are given up."""
    return completed_chunks(solve, chunks, jobs.thread_pool(threads), ordered=True)  # type: ignore[arg-type]
