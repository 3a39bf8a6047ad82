"""A robot file that extends another one and contains only the changed numbers."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parflex.robot.robot import Robot
from parflex.robotfile.read import NAMED_LISTS, apply_settings, catalogue_names


def extending_file_text(
    source: str, robot: Robot, settings: Mapping[str, float], target: Path, word: str = "optimised"
) -> str:
    """The text of a robot file at `target` with other numbers than the robot of the source has."""
    assert robot.written is not None
    below = robot.written.table
    above = apply_settings(copy.deepcopy(below), settings, robot.file)
    parent = source if source in catalogue_names() else os.path.relpath(Path(source).resolve(), target.resolve().parent)
    name = f"{robot.name}-{word}"
    lines = [f"format = {below.get('format', 1)}", f'name = "{name}"', f'extends = "{Path(parent).as_posix()}"', ""]
    return "\n".join([*lines, *_tables(difference(below, above))]) + "\n"


def difference(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """What must be said so that a file that extends `below` is `above`: rows by name, other tables entry by entry."""
    changes: dict[str, Any] = {}
    for key, value in above.items():
        old = below.get(key)
        if value == old:
            continue
        changes[key] = value
        if key in NAMED_LISTS and isinstance(value, list) and isinstance(old, list):
            changes[key] = [
                {"name": row["name"]} | {word: row[word] for word in row if row[word] != before.get(word)}
                for row, before in zip(value, old, strict=True)
                if row != before and "name" in row
            ]
        elif isinstance(value, dict) and isinstance(old, dict):
            changed = {word: entry for word, entry in value.items() if entry != old.get(word)}
            changes[key] = difference(old, value) if key == "legs" else changed
    return changes


def _tables(table: dict[str, Any], prefix: str = "") -> list[str]:
    """Lines of TOML, plain values first."""
    lines, later = list[str](), list[str]()
    for key, value in table.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, dict):
            later += ["", f"[{path}]", *_tables(value, path)]
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            for row in value:
                later += ["", f"[[{path}]]", *(f"{word} = {_inline(entry)}" for word, entry in row.items())]
        else:
            lines.append(f"{key} = {_inline(value)}")
    return [*lines, *later]


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_word(key)} = {_inline(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(float(value)) if isinstance(value, float) else str(value)


def _word(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _inline(key)
