"""What workers do: a solver that each of them makes once from plain data, and then asks chunk by chunk."""

from __future__ import annotations

import hashlib
import importlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from parflex.errors import InputError

Solver = Callable[[Any], Any]
KEPT = 4  # solvers that a worker keeps: those of several campaigns on one cluster
_solvers: OrderedDict[str, Solver] = OrderedDict()
_making = threading.Lock()


@dataclass(frozen=True)
class ChunkTask:
    """A solver of chunks: `make(given)` makes it, wherever the task arrives; `name` is that of its content."""

    make: Callable[[Any], Solver]
    given: Any
    name: str
    source: tuple[str, str] = ("", "")  # version of parflex, and a digest of its source
    ready: Solver | None = None  # the solver, where this process has it already

    def solver(self) -> Solver:
        """The solver, made once in each process."""
        with _making:
            if self.ready is not None or self.name not in _solvers:
                _solvers[self.name] = self.ready or self.make(self.given)
            _solvers.move_to_end(self.name)
            while len(_solvers) > KEPT:
                _solvers.popitem(last=False)
            return _solvers[self.name]


def solve_chunk(task: ChunkTask, chunk: Any) -> Any:
    """In a worker: the answer of a chunk."""
    if task.source[0]:
        check_source(task.source, own_source(), "a worker")
    return task.solver()(chunk)


@cache
def own_source() -> tuple[str, str]:
    """Version of parflex in this process, and a digest of its source: two states of one version differ in it."""
    parflex = importlib.import_module("parflex")
    digest, root = hashlib.sha256(), Path(parflex.__file__ or "").parent
    for file in sorted(root.rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + file.read_bytes())
    return parflex.__version__, digest.hexdigest()


def check_source(here: tuple[str, str], there: tuple[str, str], who: str) -> None:
    """Refuse answers of another parflex: their numbers may mean something else."""
    if here != there:
        versions = f"parflex {there[0]}, but this is {here[0]}"
        said = versions if here[0] != there[0] else f"another state of parflex {here[0]}"
        raise InputError(
            f"{who} has {said}", key="cluster", value=there[0], hint="install the same version on all machines"
        )
