"""Measured natural frequencies: a table of poses, modes, frequencies and their deviations."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parflex.checking import shown
from parflex.errors import InputError, did_you_mean
from parflex.records import Record

Array = np.ndarray
COLUMNS = ("pose", "mode", "frequency_hz", "deviation_hz")
USUAL = 0.01  # of a frequency, its deviation where none is given


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredMode(Record):
    """A measured frequency.

    Attributes
    ----------
    pose : str
        Name of the pose.
    mode : int | None
        Its number among the modes there, from 1; None: found by its frequency.
    frequency : float
        Measured (Hz).
    deviation : float
        Standard deviation (Hz).
    """

    pose: str
    mode: int | None
    frequency: float
    deviation: float


def read_measured(source: Any) -> tuple[list[MeasuredMode], list[str]]:
    """Rows of a CSV file, or of a sequence of tables; rows without a frequency are gaps. With warnings."""
    rows, file = (_rows(source), str(source)) if isinstance(source, str | Path) else (list(source), None)
    try:
        return _read(rows)
    except InputError as error:
        error.file = error.file or file
        raise


def _rows(path: str | Path) -> list[Mapping[str, Any]]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"cannot be read ({why})", file=str(path), key="measured", value=str(path),
                         hint="check the path") from None  # fmt: skip
    lines = (line for line in io.StringIO(text) if line.strip() and not line.startswith("#"))
    reader = csv.DictReader(lines, skipinitialspace=True)
    names = [name.strip() for name in reader.fieldnames or ()]
    for name in names:
        if name not in COLUMNS:
            raise InputError(f"unknown column '{name}'", file=str(path), key="measured", value=name,
                             hint=did_you_mean(name, COLUMNS))  # fmt: skip
    for name in ("pose", "frequency_hz"):
        if name not in names:
            raise InputError(f"there is no column '{name}'", file=str(path), key="measured", value=", ".join(names),
                             hint="columns are pose,mode,frequency_hz,deviation_hz")  # fmt: skip
    return [{str(key).strip(): value for key, value in row.items() if key is not None} for row in reader]


def _read(rows: Sequence[Mapping[str, Any]]) -> tuple[list[MeasuredMode], list[str]]:
    found: list[MeasuredMode] = []
    gaps = usual = 0
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise InputError("a row is a table of pose, mode, frequency_hz", key="measured", value=shown(row),
                             hint="give e.g. {'pose': 'home', 'mode': 1, 'frequency_hz': 14}")  # fmt: skip
        pose = str(row.get("pose") or "home").strip()
        frequency = _number(row.get("frequency_hz"), number, "frequency_hz")
        if frequency is None:
            gaps += 1
            continue
        deviation = _number(row.get("deviation_hz"), number, "deviation_hz")
        usual += deviation is None
        found.append(MeasuredMode(pose, _mode(row.get("mode"), number), frequency, deviation or USUAL * frequency))
    if not found:
        raise InputError("no frequency is measured", key="measured", value=len(rows), hint="give at least one row")
    _refuse_twice(found)
    warnings = [f"{gaps} rows have no frequency and are left out"] if gaps else []
    warnings += [f"{usual} frequencies have no deviation: {USUAL:.0%} of them is taken"] if usual else []
    return found, warnings


def _number(value: Any, row: int, key: str) -> float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = float("nan")
    if not (np.isfinite(found) and found > 0):
        raise InputError(f"'{key}' of row {row} is not a positive number", key=key, value=shown(value),
                         hint="give Hz, or leave it empty")  # fmt: skip
    return found


def _mode(value: Any, row: int) -> int | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        found = int(str(value))
    except ValueError:
        found = 0
    if found < 1:
        raise InputError(f"the mode of row {row} is not 1, 2, ...", key="mode", value=shown(value),
                         hint="number modes from the lowest, or leave it empty")  # fmt: skip
    return found


def _refuse_twice(rows: Iterable[MeasuredMode]) -> None:
    seen: set[tuple[str, int]] = set()
    for one in rows:
        if one.mode is not None:
            if (one.pose, one.mode) in seen:
                raise InputError(f"mode {one.mode} at '{one.pose}' is measured twice", key="mode", value=one.mode,
                                 hint="give their mean")  # fmt: skip
            seen.add((one.pose, one.mode))


def read_held_out(given: Any, measured: Sequence[MeasuredMode]) -> list[bool]:
    """Which rows are kept apart: by "POSE", "POSE:MODE" or ":MODE"."""
    words = [word.strip() for word in (given.split(",") if isinstance(given, str) else list(given or ()))]
    apart = [False] * len(measured)
    for word in filter(None, words):
        pose, _, mode = str(word).partition(":")
        hits = [
            k for k, one in enumerate(measured)
            if (not pose or one.pose == pose) and (not mode or str(one.mode) == mode)
        ]  # fmt: skip
        if not hits:
            raise InputError(f"nothing measured is '{word}'", key="hold_out", value=str(word),
                             hint=did_you_mean(pose, sorted({one.pose for one in measured})))  # fmt: skip
        for k in hits:
            apart[k] = True
    if measured and all(apart):
        raise InputError("everything measured is held out", key="hold_out", value=str(given), hint="hold out less")
    return apart
