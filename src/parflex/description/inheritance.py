"""A robot file that says only what differs from another one: `extends = "navaro"`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parflex.description.source import NAMED_LISTS, catalogue_names, named_file, read_source
from parflex.description.values import as_value, shown
from parflex.errors import RobotFileError, did_you_mean

OWN_KEYS = ("name", "extends")  # a file never takes these from the one it extends
MAX_GENERATIONS = 8


def read_family(robot: str | Path) -> tuple[dict[str, Any], list[str]]:
    """Return the raw table of a robot merged with all that it extends, and the files: its own first."""
    raw, file = read_source(robot)
    files = [file]
    return _complete(raw, files), files


def files_of(robot: str | Path) -> list[str]:
    """Return the files of a robot: those it extends, modal data, super-elements, meshes; none of an invalid file."""
    try:
        table, files = read_family(robot)
    except RobotFileError:
        return []
    return [file for file in (*files, *data_files(table)) if Path(file).is_absolute()]  # else of the catalogue


def data_files(table: Any) -> Iterator[str]:
    """Yield the files that a table names: modal data, super-elements and meshes."""
    if isinstance(table, dict):
        named = table.get("file")
        yield from [named] if isinstance(named, str) else []
        yield from (name for name in (named.values() if isinstance(named, dict) else ()) if isinstance(name, str))
    for value in table.values() if isinstance(table, dict) else table if isinstance(table, list) else ():
        yield from data_files(value)


def inherited(table: dict[str, Any], file: str) -> dict[str, Any]:
    """Return what the robot that a `table` of `file` extends has; empty if it extends none."""
    if "extends" not in table:
        return {}
    base, base_file = _read_parent(table["extends"], file)
    return _complete(base, [file, base_file])


def _complete(raw: dict[str, Any], seen: list[str]) -> dict[str, Any]:
    """Merge the table into the table that it extends, which may extend another one; append the files to `seen`."""
    file = seen[-1]
    if "extends" not in raw:
        return raw
    parent = raw["extends"]
    if not isinstance(parent, str) or not parent:
        raise RobotFileError(
            f"'extends' must name a robot or a file, not {shown(parent)}",
            file=file,
            key="extends",
            value=as_value(parent),
            hint='write extends = "NAME", or leave it out',
        )
    base, base_file = _read_parent(parent, file)
    if base_file in seen or len(seen) >= MAX_GENERATIONS:
        raise RobotFileError(
            f"the files extend each other in a cycle: {' -> '.join([*seen, base_file])}"
            if base_file in seen
            else f"more than {MAX_GENERATIONS} files extend each other",
            file=file,
            key="extends",
            value=parent,
            hint="remove 'extends' from one of them",
        )
    seen.append(base_file)
    return merged({key: value for key, value in _complete(base, seen).items() if key not in OWN_KEYS}, raw)


def _read_parent(parent: str, file: str) -> tuple[dict[str, Any], str]:
    """Return the table that a file extends: a robot of the catalogue, or a file."""
    if parent in catalogue_names():
        return read_source(parent)
    path = Path(named_file(parent, file, "extends"))
    if not os.path.exists(path):  # noqa: PTH110 - pathlib raises for names that are too long
        raise RobotFileError(
            f"there is no robot or file {shown(parent)} to extend",
            file=file,
            key="extends",
            value=parent,
            hint=did_you_mean(parent, catalogue_names()),
        )
    return read_source(path.resolve())


def merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """The tables of both; frames, points, closures, ... with the same name are one, with the keys of both."""
    result = dict(below)
    for key, value in above.items():
        old = below.get(key)
        if key in NAMED_LISTS and old is not None and _is_rows(old) and _is_rows(value):
            result[key] = _merged_rows(old, value)
        elif key == "legs" and isinstance(old, dict) and isinstance(value, dict):
            result[key] = merged(old, value)
        elif isinstance(old, dict) and isinstance(value, dict):
            result[key] = {**old, **value}
        else:
            result[key] = value
    return result


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _merged_rows(below: list[dict[str, Any]], above: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of both; a row with the name of an earlier one changes that."""
    rows = [dict(row) for row in below]
    places = {name: index for index, row in enumerate(rows) if (name := _name_of(row))}
    for row in above:
        index = places.get(_name_of(row) or "")
        if index is None:
            rows.append(row)
        else:
            rows[index] |= row
    return rows


def _name_of(row: dict[str, Any]) -> str | None:
    """The name of a row; a closure without one is called after its ends."""
    name, ends = row.get("name"), row.get("between")
    if name is None and isinstance(ends, list) and all(isinstance(end, str) for end in ends):
        return "~".join(ends)
    return name if isinstance(name, str) else None
