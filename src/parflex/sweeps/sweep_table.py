"""The table of a sweep: one line for each finished design, in an npz or a Parquet file with the settings."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.io import atomic_file, check_writable, read_npz
from parflex.sweeps.design_rows import DesignAnswers

Array = np.ndarray
Chunk = tuple[int, int]  # first design, and that after the last
WAITING = -1  # state of a design that is not computed
FOREIGN = (OSError, ValueError, KeyError, AttributeError, TypeError, IndexError)


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

    def put(self, chunk: Chunk, answer: DesignAnswers) -> None:
        """Take over the answers of a chunk."""
        for name, own in answer.values.items():
            self.values[name][slice(*chunk)] = own
        self.status[slice(*chunk)] = answer.status
        self.reasons |= {chunk[0] + row: text for row, text in enumerate(answer.reasons) if text}

    def packed(self, chunk: Chunk, answer: DesignAnswers) -> bytes:
        """The answers of a chunk for the journal."""
        said = json.dumps([*chunk, list(answer.values), answer.reasons])
        content = io.BytesIO()
        np.savez(content, said=np.array(said), status=answer.status, values=np.array(list(answer.values.values())))
        return content.getvalue()

    def unpacked(self, data: bytes) -> tuple[Chunk, DesignAnswers]:
        """What `packed` wrote."""
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            first, last, names, reasons = json.loads(str(stored["said"]))
            values = dict(zip(names, stored["values"], strict=True))
            return (first, last), DesignAnswers(values, stored["status"], reasons)

    # -- on disk ---------------------------------------------------------------------------------------

    def columns(self) -> dict[str, Array]:
        """The columns of the file: keys, responses, state and reason."""
        done = self.done
        found = {key: np.asarray(own, dtype=float)[done] for key, own in self.designs.items()}
        found |= {name: own[done] for name, own in self.values.items()}
        return found | {"status": self.status[done], "reason": np.array([self.reasons.get(k, "") for k in done], str)}

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
                numbers = np.concatenate([np.arange(*one) for one in done] or [np.zeros(0, int)]).astype(int)
                for name, own in self.values.items():
                    own[numbers] = columns[name]
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
        {name: arrow.array(own.tolist() if own.dtype.kind == "U" else own) for name, own in columns.items()}
    )
    parquet.write_table(table.replace_schema_metadata({"parflex": json.dumps(settings)}), file)


def read_parquet(path: Path) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Its columns and settings."""
    arrow, parquet = _arrow(path)
    try:
        table = parquet.read_table(path)
    except arrow.ArrowException as error:
        raise ValueError(str(error)) from None
    found = {name: np.array(table[name].to_pylist()) if name == "reason" else table[name].to_numpy() for name in
             table.column_names}  # fmt: skip
    return found, json.loads(table.schema.metadata[b"parflex"])


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
