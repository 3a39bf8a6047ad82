"""Sweeps for users: many designs of a robot on all cores or a cluster, in a table that can be taken up again."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from types import CodeType
from typing import Any

import numpy as np

from parflex import jobs as crews
from parflex.codegen.cache import digest_of
from parflex.design.design_state import checked_number
from parflex.design.problem_file import robot_source
from parflex.design.questions import ResponseQuestion
from parflex.design.registry import OWN_NAMES, RESPONSES, Response
from parflex.errors import InputError, ParflexWarning
from parflex.jobs import ChunkTask, run_job
from parflex.jobs import dask_executor as cluster_crew
from parflex.maps.closed_rows import OK
from parflex.records import Record, brief, name_list
from parflex.robot.load import load
from parflex.robot.robot import Robot
from parflex.sweeps.design_rows import LONG, DesignRows
from parflex.sweeps.design_samples import beyond_bounds, designs_of
from parflex.sweeps.sweep_file import SweepFile, read_sweep
from parflex.sweeps.sweep_table import Chunk, SweepTable, check_table_file

Array = np.ndarray
FORMAT = 1  # of tables: raise it when their numbers mean something else


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Record):
    """Responses of many designs.

    Attributes
    ----------
    designs : int
        Number of designs.
    variables : dict[str, Array]
        Values of each key of the robot file, of the computed designs, in the units of the file.
    responses : dict[str, Array]
        Each response by its name, one number for each computed design; NaN where there is none.
    units : dict[str, str]
        Of each response.
    status : Array
        Of each computed design: 0 ok, 1 a pose is unreachable, 2 singular, 3 the design is impossible.
    reasons : list[str]
        Why a design lacks an answer; empty where it has all.
    computed : int
        Designs of this call.
    interrupted : bool
        Whether designs are left.
    out : str | None
        File of the table.
    warnings : list[str]
        What is unusual about the designs.
    seconds : float
        Time that it took (s).
    """

    designs: int
    variables: dict[str, Array]
    responses: dict[str, Array]
    units: dict[str, str]
    status: Array
    reasons: list[str]
    computed: int
    interrupted: bool
    out: str | None = None
    warnings: list[str] = field(default_factory=list)
    seconds: float = field(default=0.0, compare=False)

    @property
    def done(self) -> int:
        """Number of designs that are in the table."""
        return len(self.status)

    @property
    def failed(self) -> int:
        """Number of them that lack an answer."""
        return int((self.status != OK).sum())

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        words = ("designs", "done", "computed", "failed", "interrupted", "out", "warnings", "seconds", "units")
        return {word: getattr(self, word) for word in words}

    def _told(self) -> str:
        return f"{self.done} of {self.designs} designs, {brief(self.failed)} failed; {name_list(list(self.responses))}"


def sweep(
    path: str | Path,
    out: str | Path | None = None,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Responses of many designs of a robot: a grid, samples, or a list; what is in the table is not computed again.

    Parameters
    ----------
    path : str or Path
        File of the sweep: robot, variables, responses, samples.
    out : str or Path, default None
        Table that keeps results, .npz or .parquet; a later call with it continues there.
    jobs : int, default None
        Processes side by side; None: one per core.
    cluster : str, default None
        Address of a Dask scheduler whose workers compute; None: this machine.
    executor : Executor, default None
        Executor of `concurrent.futures` that computes, in place of processes or a cluster.
    progress : callable, default None
        Called with (designs done, all designs) at intervals.

    Returns
    -------
    Sweep
        Values of the variables, responses, state and reason of each design.

    Examples
    --------
    >>> parflex.sweep("sweep.toml", "sweep.npz", jobs=2).responses["lowest"]
    """
    begin = perf_counter()
    crews.number_of_jobs(jobs)
    if sum(given is not None for given in (jobs, cluster, executor)) > 1:
        raise InputError(
            "'jobs', 'cluster' and 'executor' are ways to compute", key="cluster", value=cluster, hint="choose one"
        )
    file = read_sweep(path)
    target = None if out is None else Path(out)
    robot = load(robot_source(file, path))
    designs = designs_of(file, Path(path).parent)
    if target is not None:
        check_table_file(target)
    for key in designs:
        checked_number(robot, key, "variables")
    rows = design_rows((robot, tuple(designs), file))
    rows.check()
    name = _name(robot, file, designs)
    far = cluster is not None or (executor is not None and crews.user_pool(executor).far) or sys.platform != "linux"
    imports = importable_responses(rows.questions.values()) if far else ()
    task = ChunkTask(design_rows, (robot, tuple(designs), file, imports), name)
    table = SweepTable(designs, list(file.responses), target, _settings(robot, file, rows, name))
    table.take_up()
    before = [0]

    def left() -> list[Chunk]:
        before[0] = len(table.done)
        return table.left(rows.chunk)

    def told() -> None:
        if progress is not None:
            progress(len(table.done), table.count)

    def crew(chunks: int) -> crews.ExecutorPool:
        if cluster is not None:
            return cluster_crew(cluster)
        return crews.process_pool(jobs, chunks) if executor is None else crews.user_pool(executor)

    def sent(chunk: Chunk) -> dict[str, Array]:
        return {key: values[slice(*chunk)] for key, values in designs.items()}

    slow = _said_slow(rows, table, designs)
    interrupted = run_job(table, left, task, crew, target, name, told, sent=sent)
    done = table.done
    return Sweep(
        table.count,
        {key: np.asarray(own, dtype=float)[done] for key, own in designs.items()},
        {word: own[done] for word, own in table.values.items()},
        {word: one.response.unit_of(robot, one.argument) for word, one in rows.questions.items()},
        table.status[done],
        [table.reasons.get(int(k), "") for k in done],
        len(done) - before[0],
        interrupted,
        None if target is None else str(target),
        [*beyond_bounds(file, designs), *slow],
        perf_counter() - begin,
    )


def _said_slow(rows: DesignRows, table: SweepTable, designs: Mapping[str, Array]) -> list[str]:
    """Tell before it starts that a sweep will take long, since designs are made one by one."""
    left = np.setdiff1d(np.arange(table.count), table.done)
    seconds = rows.seconds_left({key: np.asarray(own)[left] for key, own in designs.items()})
    if seconds <= LONG:
        return []
    why = f" ({rows.reason})" if rows.reason else ""
    each = f"designs are computed one by one{why}, {rows.first:.2g} s each"
    said = f"{seconds / 3600:.1f} h" if seconds > 7200 else f"{seconds / 60:.0f} min"
    told = f"{each}: about {said} of one process in all"
    warnings.warn(told, ParflexWarning, stacklevel=3)
    return [told]


def design_rows(given: tuple[Any, ...]) -> DesignRows:
    """Return the solver of designs for a robot, keys, the file of a sweep and responses that workers import."""
    robot, keys, file, *imports = given
    import_responses(*imports)
    return DesignRows(robot, keys, {name: table.question() for name, table in file.responses.items()})


def importable_responses(questions: Iterable[ResponseQuestion]) -> tuple[tuple[str, ...], ...]:
    """Return name, module, function, unit, help and worst of responses of users, for workers that import them."""
    rows = []
    for response in _of_users(questions):
        module, function = (getattr(response.function, word, "") for word in ("__module__", "__qualname__"))
        if module == "__main__" or getattr(sys.modules.get(module), function, None) is not response.function:
            raise InputError(
                f"workers cannot import the response '{response.name}'", key="responses", value=response.name,
                hint="define its function at the top level of a module that all machines can import, or use jobs=1",
            )  # fmt: skip
        rows.append((response.name, module, function, str(response.unit), response.help, response.worst))
    return tuple(rows)


def import_responses(rows: Iterable[tuple[Any, ...]] = ()) -> None:
    """Register the responses of `importable_responses` in a worker."""
    for name, module, function, *rest in rows:
        try:
            RESPONSES[name] = Response(name, getattr(importlib.import_module(module), function), *rest)
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"a worker cannot import the response '{name}' ({error})", key="responses", value=name,
                hint=f"install the module '{module}' on all machines",
            ) from None  # fmt: skip


def codes_of(questions: Iterable[ResponseQuestion]) -> dict[str, str]:
    """Return the digest of the code of each response of users: a table belongs to it."""
    codes = {one.name: repr(_code(getattr(one.function, "__code__", None))) for one in _of_users(questions)}
    return {f"{name}()": hashlib.sha256(code.encode()).hexdigest() for name, code in codes.items()}


def _of_users(questions: Iterable[ResponseQuestion]) -> list[Response]:
    named = {question.response.name: question.response for question in questions}
    return [response for name, response in sorted(named.items()) if name not in OWN_NAMES]


def _code(code: CodeType | None) -> Any:
    """Return the instructions, constants and names of a function, without its place in the source."""
    if code is None:
        return None
    constants = [_code(value) if isinstance(value, CodeType) else value for value in code.co_consts]
    return code.co_code, constants, code.co_names


def _name(robot: Robot, file: SweepFile, designs: dict[str, Array]) -> str:
    """A digest of all that the numbers of a sweep come from."""
    asked: dict[str, Any] = {name: table.model_dump(mode="json") for name, table in file.responses.items()}
    asked |= codes_of(table.question() for table in file.responses.values())
    digest = hashlib.sha256(json.dumps([FORMAT, digest_of(robot), asked], sort_keys=True).encode())
    for key, values in designs.items():
        digest.update(key.encode() + np.ascontiguousarray(values, dtype=float).tobytes())
    return digest.hexdigest()


def _settings(robot: Robot, file: SweepFile, rows: DesignRows, name: str) -> dict[str, Any]:
    """What is written beside the table; it is taken up only if this is the same."""
    said = file.model_dump(mode="json", include={"robot", "variables", "responses", "samples"})
    return {"format": FORMAT, "sweep": name, "chunk": rows.chunk, "robot": robot.name, "file": said}
