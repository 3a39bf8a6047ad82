"""Tables of named columns in CSV and npz files, checked on reading and written atomically."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.io import atomic_file, atomic_files, check_writable, read_errors, read_npz

Array = np.ndarray
SETTINGS = "settings"  # the entry of an npz file, or the end of the name of the file beside a CSV file
SUFFIXES = (".csv", ".npz")


def check_suffix(path: str | Path, key: str = "out") -> None:
    """Refuse other kinds of file before anything is computed."""
    if Path(path).suffix not in SUFFIXES:
        raise InputError(
            f"'{path}' has an unknown file type", key=key, value=str(path), hint="use a name that ends in .csv or .npz"
        )


def check_target(path: str | Path) -> None:
    """Refuse a file that cannot be written before anything is computed."""
    check_suffix(path)
    check_writable(path)


def read_table(path: str, key: str) -> dict[str, Array]:
    """Return the columns of a table by name."""
    check_suffix(path, key)
    try:
        with read_errors(path, key):
            if path.endswith(".npz"):
                return {name: values for name, values in read_npz(path).items() if name != SETTINGS}
            return _read_csv(path)
    except (ValueError, KeyError, IndexError, csv.Error, UnicodeDecodeError):
        hint = "write a row of names, then rows of numbers"
        raise InputError("is not a table of numbers", file=path, key=key, value=path, hint=hint) from None


def _read_csv(path: str) -> dict[str, Array]:
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        lines = file.read().splitlines()
    if lines and lines[0].lower().startswith("sep="):  # as Excel writes it
        lines = lines[1:]
    head, rows = lines[:1], [line for line in lines[1:] if line.strip()]
    separator = next((mark for mark in (";", "\t") if rows and mark in rows[0]), ",")  # commas may stand in numbers
    names = [name.strip() for name in next(csv.reader(head, delimiter=separator), [])]
    if separator != ",":
        rows = _with_points(rows, separator, path)
    elif rows and names and rows[0].count(",") + 1 == 2 * len(names):
        raise InputError(
            f"rows have {rows[0].count(',') + 1} numbers and {len(names)} names: commas stand between numbers and "
            "in them", file=path, key="separator", value=",",
            hint="save the table with semicolons between numbers, or with decimal points",
        )  # fmt: skip
    values = np.loadtxt(rows, delimiter=separator, ndmin=2) if names and rows else np.zeros((0, 0))
    if not names or values.shape[1] != len(names) or len(set(names)) != len(names):
        raise ValueError
    return dict(zip(names, values.T, strict=True))


def _with_points(rows: list[str], separator: str, path: str) -> list[str]:
    """Return rows with decimal points: commas within numbers are decimal ones if all numbers have them."""
    text = separator.join(rows)
    if "," not in text:
        return rows
    if "." in text or any(number.count(",") > 1 for number in text.split(separator)):
        raise InputError(
            "numbers have points and commas, or several commas: which of them is the decimal one is not known",
            file=path, key="separator", value=separator, hint="save numbers without marks of thousands",
        )  # fmt: skip
    return [row.replace(",", ".") for row in rows]


def read_settings(path: str) -> dict[str, Any]:
    """Return the settings of a saved run; empty if there are none."""
    try:
        if path.endswith(".npz"):
            content = read_npz(path, [SETTINGS])
            return json.loads(str(content[SETTINGS])) if content else {}
        return json.loads(Path(f"{path}.{SETTINGS}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_table(path: str | Path, columns: Mapping[str, Array], settings: Mapping[str, Any]) -> list[Path]:
    """Write columns and settings to one npz file, or to a CSV file and a JSON file; return the written files."""
    check_suffix(path)
    text = json.dumps(settings, allow_nan=False)
    target = Path(path)
    if target.suffix == ".npz":
        plain: dict[str, Any] = dict(columns) | {SETTINGS: np.array(text)}
        with atomic_file(target) as file:
            np.savez(file, **plain)
        return [target]
    settings_path = Path(f"{path}.{SETTINGS}.json")
    with atomic_files([target, settings_path]) as (file, settings_file):
        settings_file.write(text.encode())
        head = io.StringIO()
        csv.writer(head, lineterminator="\n").writerow(columns)
        file.write(head.getvalue().encode())
        np.savetxt(file, np.stack(list(columns.values()), axis=1), delimiter=",", fmt="%.17g")
    return [target, settings_path]
