"""A campaign: chunks by a crew, each kept as soon as it is finished, the file of results written from time to time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from parflex.campaigns.chunk_tasks import ChunkTask, own_source, solve_chunk
from parflex.campaigns.crews import Crew
from parflex.campaigns.handing_out import answers
from parflex.campaigns.journal import Journal

SAVE_EVERY = 10.0  # s between two writes of the file of results
SAVING = 0.05  # share of the time that writing it may take


class Results(Protocol):
    """Where answers of chunks are kept, and how one of them is written down."""

    def put(self, chunk: Any, answer: Any) -> None:
        """Take over an answer; the same chunk twice is the same as once."""

    def save(self) -> None:
        """Write all of it to its file, whole or not at all."""

    def packed(self, chunk: Any, answer: Any) -> bytes:
        """An answer as it stands in the journal."""

    def unpacked(self, data: bytes) -> tuple[Any, Any]:
        """What `packed` wrote."""


def run_campaign(
    results: Results,
    left: Callable[[], Sequence[Any]],
    task: ChunkTask,
    crew_for: Callable[[int], Crew],
    path: Path | None,
    name: str,
    told: Callable[[], None],
    ordered: bool = False,
    sent: Callable[[Any], Any] = lambda chunk: chunk,
) -> bool:
    """Solve the chunks that are `left`, and keep them in `path`; whether it was interrupted.

    The file of results, if there is one, is read already. `name` is a digest of all that the numbers come from,
    `crew_for` gives workers for so many chunks, `told` is called after every chunk, `sent` is what workers
    get of one.
    """
    if path is None:
        return _work(results, left(), task, crew_for, None, told, ordered, sent)
    with Journal(path, name) as journal:
        entries = journal.entries()
        for entry in entries:
            results.put(*results.unpacked(entry))
        chunks = left()
        interrupted = _work(results, chunks, task, crew_for, journal, told, ordered, sent)
        if chunks or entries or not path.exists():
            _save(results, journal)
    return interrupted


def _work(
    results: Results,
    chunks: Sequence[Any],
    task: ChunkTask,
    crew_for: Callable[[int], Crew],
    journal: Journal | None,
    told: Callable[[], None],
    ordered: bool,
    sent: Callable[[Any], Any],
) -> bool:
    if not chunks:
        return False
    crew = crew_for(len(chunks))
    saved, rest = time.monotonic(), SAVE_EVERY
    try:
        for chunk, answer in answers(_work_of(task, crew), chunks, crew, ordered, crew.forks, sent):
            if journal is not None:
                journal.add(results.packed(chunk, answer))
            results.put(chunk, answer)
            told()
            if journal is not None and time.monotonic() - saved > rest:
                begun = time.monotonic()
                _save(results, journal)
                saved = time.monotonic()
                rest = max(SAVE_EVERY, (saved - begun) / SAVING)
    except KeyboardInterrupt:
        return True
    return False


def _work_of(task: ChunkTask, crew: Crew) -> Callable[[Any], Any]:
    """What workers call. Those of this machine have the solver; others get all that it takes to make it."""
    if crew.far:
        return partial(solve_chunk, replace(task, source=own_source(), ready=None))
    solver = task.solver()
    return partial(solve_chunk, replace(task, given=None, ready=None)) if crew.forks else solver


def _save(results: Results, journal: Journal) -> None:
    """The file of results has everything, and then the journal nothing."""
    results.save()
    journal.clear()
