"""Sweeps: many designs, their responses in a resumable table."""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from types import CodeType
from typing import Any, Literal

import numpy as np
from pydantic import model_validator

from parflex import jobs as executors
from parflex.codegen.cache import digest_of
from parflex.design.design_rows import LONG, DesignRows
from parflex.design.problem import ObjectiveTable, ProblemFile, VariableTable, design_tables, robot_source
from parflex.design.registry import BUILTIN_RESPONSE_NAMES, RESPONSES, Response, ResponseQuestion
from parflex.diagnostics import Diagnostic, reported
from parflex.errors import InputError, ParflexWarning
from parflex.io import atomic_file, check_writable, read_npz
from parflex.maps.batch_result import BatchResult
from parflex.maps.continuation import OK
from parflex.maps.files import FOREIGN
from parflex.maps.positions import WAITING
from parflex.parameters.design_numbers import number_at
from parflex.parameters.robot_file import working_mode_starts
from parflex.records import Answer, brief, name_list
from parflex.robot.load import load
from parflex.robot.robot import Robot
from parflex.robotfile.read import read_tables
from parflex.robotfile.values import Table, Text, value_error

Array = np.ndarray

FORMAT = 2  # of tables: raise it when their numbers mean something else

MOST = 50_000_000  # designs: their numbers alone are gigabytes

TAKEN = ("status", "reason", "settings")  # names in the table

Chunk = tuple[int, int]  # first design, and that after the last


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Answer):
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
        Of each computed design: 0 ok, 1 a pose is unreachable, 2 singular, 3 the design is impossible, 4 a joint is
        outside its limits.
    reasons : list[str]
        Why a design lacks an answer; empty where it has all.
    computed : int
        Designs of this call.
    interrupted : bool
        Whether designs are left.
    out : str | None
        File of the table.
    diagnostics : tuple[Diagnostic, ...]
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
    diagnostics: tuple[Diagnostic, ...] = ()
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
        words = ("designs", "done", "computed", "failed", "interrupted", "out", "seconds", "units")
        return {word: getattr(self, word) for word in words} | reported(self.diagnostics)

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
    out : str or Path, default None
        Table that keeps results, .npz or .parquet; a later call with it continues there.
    path, jobs, cluster, executor, progress
        See `parflex.api.WORDS`.

    Returns
    -------
    Sweep
        Values of the variables, responses, state and reason of each design.
    """
    begin = perf_counter()
    executors.number_of_jobs(jobs)
    if sum(option is not None for option in (jobs, cluster, executor)) > 1:
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
        number_at(robot, key, "variables")
    rows = design_rows((robot, tuple(designs), file))
    rows.check()
    name = _name(robot, file, designs)
    far = sys.platform != "linux" if executor is None else executors.executor_workers(executor).far
    imports = importable_responses(rows.questions.values()) if far or cluster is not None else ()
    task = executors.ChunkTask(design_rows, (robot, tuple(designs), file, imports), name)
    table = SweepTable(designs, list(file.responses), target, _settings(robot, file, rows, name))
    table.take_up()
    before = len(table.done)

    def told() -> None:
        if progress is not None:
            progress(len(table.done), table.count)

    def workers(chunks: int) -> executors.Workers:
        if cluster is not None:
            return executors.dask_workers(cluster)
        return executors.process_workers(jobs, chunks) if executor is None else executors.executor_workers(executor)

    def sent(chunk: Chunk) -> dict[str, Array]:
        return {key: values[slice(*chunk)] for key, values in designs.items()}

    slow = _warn_if_slow(rows, table, designs)
    interrupted = executors.run_job(table, table.left(rows.chunk), task, workers, target, told, sent=sent)
    table.check()
    done = table.done
    return Sweep(
        table.count,
        {key: np.asarray(column, dtype=float)[done] for key, column in designs.items()},
        {label: column[done] for label, column in table.values.items()},
        {label: question.response.unit_of(robot, question.argument) for label, question in rows.questions.items()},
        table.status[done],
        [table.reasons.get(int(k), "") for k in done],
        len(done) - before,
        interrupted,
        None if target is None else str(target),
        (*beyond_bounds(file, designs), *slow),
        perf_counter() - begin,
    )


def _warn_if_slow(rows: DesignRows, table: SweepTable, designs: Mapping[str, Array]) -> list[Diagnostic]:
    """Tell before it starts that a sweep will take long, since designs are made one by one."""
    left = np.setdiff1d(np.arange(table.count), table.done)
    seconds = rows.seconds_left({key: np.asarray(values)[left] for key, values in designs.items()})
    if seconds <= LONG:
        return []
    why = f" ({rows.reason})" if rows.reason else ""
    each = f"designs are computed one by one{why}, {rows.first:.2g} s each"
    duration = f"{seconds / 3600:.1f} h" if seconds > 7200 else f"{seconds / 60:.0f} min"
    slow = Diagnostic("slow-sweep", f"{each}: about {duration} of one process in all", "time", seconds)
    warnings.warn(ParflexWarning(slow), stacklevel=3)
    return [slow]


def design_rows(arguments: tuple[Any, ...]) -> DesignRows:
    """Return the solver of designs for a robot, keys, the file of a sweep and responses that workers import."""
    robot, keys, file, *imports = arguments
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
    codes = {
        response.name: repr(_code(getattr(response.function, "__code__", None))) for response in _of_users(questions)
    }
    return {f"{name}()": hashlib.sha256(code.encode()).hexdigest() for name, code in codes.items()}


def _of_users(questions: Iterable[ResponseQuestion]) -> list[Response]:
    named = {question.response.name: question.response for question in questions}
    return [response for name, response in sorted(named.items()) if name not in BUILTIN_RESPONSE_NAMES]


def _code(code: CodeType | None) -> Any:
    """Return the instructions, constants and names of a function, without its place in the source."""
    if code is None:
        return None
    constants = [_code(value) if isinstance(value, CodeType) else value for value in code.co_consts]
    return code.co_code, constants, code.co_names


def _name(robot: Robot, file: SweepFile, designs: dict[str, Array]) -> str:
    """A digest of all that the numbers of a sweep come from."""
    description: dict[str, Any] = {name: table.model_dump(mode="json") for name, table in file.responses.items()}
    description |= codes_of(table.question() for table in file.responses.values())
    digest = hashlib.sha256(json.dumps([FORMAT, digest_of(robot), description], sort_keys=True).encode())
    for key, values in designs.items():
        digest.update(key.encode() + np.ascontiguousarray(values, dtype=float).tobytes())
    return digest.hexdigest()


def _settings(robot: Robot, file: SweepFile, rows: DesignRows, name: str) -> dict[str, Any]:
    """What is written beside the table; it is taken up only if this is the same."""
    description = file.model_dump(mode="json", include={"robot", "variables", "responses", "samples"})
    mode = {"working_mode": robot.working_mode, **working_mode_starts(robot)}
    return {"format": FORMAT, "sweep": name, "chunk": rows.chunk, "robot": robot.name, "file": description} | mode


def designs_of(sweep: SweepFile, folder: Path) -> dict[str, Array]:
    """Values of each variable, one for each design, in the same order whenever they are asked for."""
    kind, samples = sweep.samples.kind, sweep.samples
    if kind == "list":
        assert samples.file is not None
        return _listed(sweep, folder / samples.file)
    if kind == "grid":
        return _grid(sweep)
    from scipy.stats import qmc

    engine = qmc.LatinHypercube if kind == "latin-hypercube" else qmc.Sobol
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of counts of Sobol points that are no powers of two
        unit = engine(len(sweep.variables), seed=samples.seed).random(samples.count)
    return {key: _spread(unit[:, k], variable) for k, (key, variable) in enumerate(sweep.variables.items())}


def _spread(unit: Array, variable: VariableTable) -> Array:
    """Values of a variable for numbers from 0 to 1."""
    if variable.choices:
        choices = np.array(variable.choices)
        return choices[np.minimum((unit * len(choices)).astype(int), len(choices) - 1)]
    low, high = variable.bounds
    return low + (high - low) * unit


def _grid(sweep: SweepFile) -> dict[str, Array]:
    counts = sweep.samples.count
    axes = []
    for key, variable in sweep.variables.items():
        count = counts.get(key) if isinstance(counts, dict) else counts
        if variable.choices:
            axes.append(np.array(variable.choices))
        elif count is None:
            raise InputError(
                f"'{key}' has no number of values", key="samples", value=key, hint="give 'count' for each variable"
            )
        else:
            axes.append(np.linspace(*variable.bounds, count) if count > 1 else np.array([np.mean(variable.bounds)]))
    designs = int(np.prod([len(axis) for axis in axes], dtype=object))
    if designs > MOST:
        raise InputError(f"the grid has {designs} designs", key="samples", value=designs, hint=f"up to {MOST}")
    mesh = np.meshgrid(*axes, indexing="ij")
    return {key: values.ravel() for key, values in zip(sweep.variables, mesh, strict=True)}


def _listed(sweep: SweepFile, path: Path) -> dict[str, Array]:
    """Columns of a file, named by the keys; where variables are given, these and no others."""
    try:
        columns = _read_npz(path) if path.suffix == ".npz" else _read_csv(path)
    except (OSError, ValueError, KeyError, TypeError, UnicodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(
            f"the list of designs cannot be read ({reason})", file=str(path), key="samples.file", value=str(path),
            hint="give a CSV file with keys of the robot file in its first line, or an npz file with one array each",
        ) from None  # fmt: skip
    keys = list(sweep.variables) or list(columns)
    for key in keys:
        if key not in columns:
            raise InputError(
                f"the list has no column '{key}'", file=str(path), key="samples.file", value=key, hint="add it"
            )
    designs = {key: columns[key] for key in keys}
    if (
        not designs
        or any(len(column) != len(following) for column, following in pairwise(designs.values()))
        or not len(designs[keys[0]])
    ):
        raise InputError("the list has no designs", file=str(path), key="samples.file", value=str(path), hint="add one")
    return designs


def beyond_bounds(sweep: SweepFile, designs: dict[str, Array]) -> list[Diagnostic]:
    """A diagnostic for each variable with listed values that its bounds or choices leave out: they are computed."""
    messages = []
    for key, variable in sweep.variables.items() if sweep.samples.kind == "list" else ():
        values, (low, high) = designs[key], variable.bounds
        outside = ~np.isin(values, variable.choices) if variable.choices else (values < low) | (values > high)
        outside &= np.isfinite(values)
        if outside.any():
            limits = "its choices" if variable.choices else f"its bounds {low:g} and {high:g}"
            first = int(np.argmax(outside))
            text = (
                f"{int(outside.sum())} of {len(values)} listed designs have a '{key}' beyond {limits}, the first "
                f"{values[first]:g} in line {first + 1} of the designs; they are computed as they stand"
            )
            messages.append(Diagnostic("outside-bounds", text, key, float(values[first])))
    return messages


def _read_npz(path: Path) -> dict[str, Array]:
    columns = read_npz(path)
    return {key: np.asarray(values, dtype=float).ravel() for key, values in columns.items() if key not in TAKEN}


def _read_csv(path: Path) -> dict[str, Array]:
    head, *lines = [row for row in csv.reader(io.StringIO(Path(path).read_text(encoding="utf-8-sig"))) if row]
    names = [word.strip() for word in head]
    rows = np.array([[float(word) if word.strip() else np.nan for word in line] for line in lines], dtype=float)
    if len(lines) and rows.shape[1] != len(names):
        raise ValueError(f"lines have {rows.shape[1]} numbers for {len(names)} names")
    return {name: rows[:, k] if len(lines) else np.zeros(0) for k, name in enumerate(names)}


class SampleTable(Table):
    """Which designs are computed."""

    kind: Literal["grid", "latin-hypercube", "sobol", "list"] = "grid"
    count: Any = None  # of designs; of a grid the values of each variable, or a table of them by key
    seed: int = 0
    file: Text | None = None

    @model_validator(mode="after")
    def _possible(self) -> SampleTable:
        if (self.kind == "list") != (self.file is not None):
            raise value_error(
                "'file' belongs to the kind 'list', and to no other", "give both or none", "file", self.file
            )
        if self.kind == "list" and self.count is not None:
            raise value_error("a list has as many designs as lines", "leave 'count' out", "count", self.count)
        if self.kind != "list" and self.count is None:
            raise value_error("'count' is missing", "write e.g. count = 100", "count")
        by_key = self.count.values() if self.kind == "grid" and isinstance(self.count, dict) else [self.count]
        for number in by_key if self.kind != "list" else ():
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST:
                raise value_error(f"'{number}' is not a number of designs", f"give 1 to {MOST}", "count", str(number))
        if self.seed < 0:
            raise value_error("the seed is negative", "give 0, 1, 2, ...", "seed", self.seed)
        return self


class DesignFile(ProblemFile):
    """A design with variables and responses: an objective and limits are as good as none."""

    robot: Text = ""
    objective: ObjectiveTable | None = None  # type: ignore[assignment]

    @model_validator(mode="after")
    def _known(self) -> DesignFile:
        if not self.responses:
            raise value_error("there are no responses", "write [responses.lowest] with response = 'frequency:1'")
        if not self.variables:
            raise value_error("there are no variables", "name numbers of the robot file", "variables")
        references = [] if self.objective is None else [self.objective.maximise or self.objective.minimise or ""]
        for name in [*references, *(constraint.response for constraint in self.constraint)]:
            if name not in self.responses:
                raise value_error(
                    f"there is no response '{name}'", f"choose from {', '.join(self.responses)}", "objective", name
                )
        return self


class SweepFile(DesignFile):
    """A sweep."""

    robot: Text
    variables: dict[str, VariableTable] = {}  # noqa: RUF012 - pydantic copies defaults
    samples: SampleTable

    @model_validator(mode="after")
    def _known(self) -> SweepFile:
        if not self.responses:
            raise value_error("there are no responses", "write [responses.lowest] with response = 'frequency:1'")
        if not self.variables and self.samples.kind != "list":
            raise value_error("there are no variables", "name numbers of the robot file", "variables")
        for name in self.responses:
            if name in TAKEN or name in self.variables:
                raise value_error(f"'{name}' cannot name a response", "choose another name", "responses", name)
        counts = self.samples.count
        for key in counts if isinstance(counts, dict) else ():
            if key not in self.variables:
                raise value_error(f"'{key}' is not a variable", f"name {', '.join(self.variables)}", "samples", key)
        return self


def read_sweep(path: str | Path) -> SweepFile:
    """The sweep of a file; keys of variables may be written as nested tables or in quotes."""
    return read_tables(SweepFile, _raw(path), str(path), "docs/design.md")


def read_design(path: str | Path) -> DesignFile:
    """The design of a file, for the studio."""
    return read_tables(DesignFile, _raw(path), str(path), "docs/design.md")


def _raw(path: str | Path) -> dict[str, Any]:
    table = design_tables(path)
    samples = table.get("samples")
    if isinstance(samples, dict) and isinstance(samples.get("count"), dict):
        samples["count"] = dict(_flat_counts(samples["count"]))
    return table


def _flat_counts(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    counts: list[tuple[str, Any]] = []
    for key, value in table.items():
        counts += _flat_counts(value, f"{prefix}{key}.") if isinstance(value, dict) else [(f"{prefix}{key}", value)]
    return counts


class SweepTable:
    """Numbers of all designs, with those that are known; the file has these alone, in the order of the designs."""

    def __init__(self, designs: Mapping[str, Array], responses: Sequence[str], path: Path | None, about: Any) -> None:
        self.designs, self.path, self.about = dict(designs), path, about
        self.count = len(next(iter(designs.values())))
        self.values = {name: np.full(self.count, np.nan) for name in responses}
        self.status = np.full(self.count, WAITING, dtype=np.int8)
        self.reasons: dict[int, str] = {}  # few designs have one

    @property
    def done(self) -> Array:
        """Numbers of the designs that are computed."""
        return np.flatnonzero(self.status != WAITING)

    def left(self, size: int) -> list[Chunk]:
        """Chunks that are not computed."""
        chunks = [(start, min(start + size, self.count)) for start in range(0, self.count, size)]
        return [chunk for chunk in chunks if (self.status[slice(*chunk)] == WAITING).any()]

    def put(self, chunk: Chunk, answer: BatchResult) -> None:
        """Take over the answers of a chunk."""
        for name, column in answer.values.items():
            self.values[name][slice(*chunk)] = column
        self.status[slice(*chunk)] = answer.status
        self.reasons |= {chunk[0] + row: text for row, text in enumerate(answer.reasons) if text}

    # -- on disk ---------------------------------------------------------------------------------------

    def columns(self) -> dict[str, Array]:
        """The columns of the file: keys, responses, state and reason."""
        done = self.done
        columns = {key: np.asarray(column, dtype=float)[done] for key, column in self.designs.items()}
        columns |= {name: column[done] for name, column in self.values.items()}
        return columns | {"status": self.status[done], "reason": np.array([self.reasons.get(k, "") for k in done], str)}

    def save(self) -> None:
        """Write what is known; whole or not at all."""
        if self.path is None:
            return
        done = self.done
        starts = done[np.flatnonzero(np.diff(done, prepend=-2) > 1)]
        ends = done[np.flatnonzero(np.diff(done, append=self.count + 1) > 1)] + 1
        settings = {**self.about, "done": np.stack([starts, ends], axis=1).tolist()}
        with atomic_file(self.path, hint="free some space or name another file: what was finished is kept") as file:
            if self.path.suffix == ".parquet":
                write_parquet(file, self.columns(), settings)
            else:
                np.savez(file, **self.columns(), settings=np.array(json.dumps(settings)))  # type: ignore[arg-type]

    def check(self) -> None:
        """Load the file again and compare it with what was written."""
        if self.path is not None:
            stored, _ = _read(self.path)
            for name, column in self.columns().items():
                if not np.array_equal(stored[name], column, equal_nan=column.dtype.kind == "f"):
                    raise _refused(self.path, f"the table, loaded again, has other numbers in the column '{name}'")

    def take_up(self) -> None:
        """Fill in what an earlier run left; a file of something else is refused."""
        if self.path is None or not self.path.exists():
            return
        try:
            columns, settings = _read(self.path)
            done = settings.pop("done")
            same = settings == self.about
            old = settings.get("format") != self.about["format"] and "format" in settings
            if same:
                numbers = np.concatenate([np.arange(*chunk) for chunk in done] or [np.zeros(0, int)]).astype(int)
                for name, column in self.values.items():
                    column[numbers] = columns[name]
                self.status[numbers] = columns["status"]
                self.reasons |= {int(k): str(t) for k, t in zip(numbers, columns["reason"], strict=True) if t}
        except FOREIGN:
            raise _refused(self.path, "the file is not the table of a sweep") from None
        if not same:
            raise _refused(
                self.path, "an earlier version wrote this table" if old else "the table belongs to another sweep"
            )


def check_table_file(path: Path) -> None:
    """Refuse a name that no table can have, before anything is computed."""
    if path.suffix not in (".npz", ".parquet") or path.is_dir():
        raise InputError(
            f"'{path.name}' is not a table", key="out", value=str(path), hint="use a name that ends in .npz or .parquet"
        )
    if path.suffix == ".parquet":
        _arrow(path)
    check_writable(path)


def _read(path: Path) -> tuple[Mapping[str, Any], dict[str, Any]]:
    if path.suffix == ".parquet":
        return read_parquet(path)
    stored = read_npz(path)
    return stored, json.loads(str(stored["settings"]))


def write_parquet(file: Any, columns: Mapping[str, Array], settings: Mapping[str, Any]) -> None:
    """A table with the settings in its description."""
    arrow, parquet = _arrow()
    table = arrow.table(
        {name: arrow.array(column.tolist() if column.dtype.kind == "U" else column) for name, column in columns.items()}
    )
    parquet.write_table(table.replace_schema_metadata({"parflex": json.dumps(settings)}), file)


def read_parquet(path: Path) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Its columns and settings."""
    arrow, parquet = _arrow(path)
    try:
        table = parquet.read_table(path)
    except arrow.ArrowException as error:
        raise ValueError(str(error)) from None
    columns = {name: np.array(table[name].to_pylist()) if name == "reason" else table[name].to_numpy() for name in
             table.column_names}  # fmt: skip
    return columns, json.loads(table.schema.metadata[b"parflex"])


def _arrow(path: Path | None = None) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "Parquet needs PyArrow, which is not installed",
            key="out",
            value=None if path is None else str(path),
            hint="pip install 'parflex[parquet]', or use a name that ends in .npz",
        ) from None
    return pyarrow, pyarrow.parquet


def _refused(path: Path, what: str) -> InputError:
    return InputError(what, file=str(path), key="out", value=str(path), hint="name another file, or remove it")
