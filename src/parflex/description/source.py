"""From bytes to a plain dictionary: reading TOML safely, and setting values on top of it."""

from __future__ import annotations

import copy
import os
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from parflex.description.values import as_value, shown
from parflex.errors import RobotFileError, did_you_mean

NAMED_LISTS = ("frame", "point", "closure", "coupling", "element")
MAX_BYTES = 2_000_000
MAX_DEPTH = 8
MAX_KEY_PARTS = 50  # the reader of TOML takes quadratic time for a key of many parts


def catalogue_names() -> list[str]:
    """Names of the robots of the catalogue.

    Returns
    -------
    list[str]
        Names that `load` accepts.
    """
    folder = resources.files("parflex.description").joinpath("catalogue")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_source(robot: str | Path) -> tuple[dict[str, Any], str]:
    """The raw table of a catalogue robot or of a file, and the name of the file for messages."""
    if isinstance(robot, str) and robot in catalogue_names():
        folder = resources.files("parflex.description").joinpath("catalogue")
        raw = parse_toml(folder.joinpath(robot + ".toml").read_bytes(), robot + ".toml")
        return with_files_in(raw, Path(str(folder)) / f"{robot}.toml"), robot + ".toml"
    path = Path(robot)
    try:
        if path.is_dir():
            raise RobotFileError(
                "is a folder, not a robot file", file=str(path), value=str(path), hint="give the file inside it"
            )
        if not path.exists():
            raise RobotFileError(
                "there is no such robot or file",
                file=str(robot),
                value=str(robot),
                hint=did_you_mean(str(robot), catalogue_names()) + " ('parflex list' shows the catalogue)",
            )
        return with_files_in(parse_toml(read_bounded(path), str(path)), path), str(path)
    except OSError as error:
        raise RobotFileError(
            f"cannot be read ({error.strerror})",
            file=str(robot),
            value=str(robot),
            hint="check the path and its permissions",
        ) from None


def with_files_in(raw: dict[str, Any], file: Path) -> dict[str, Any]:
    """Return the table of a file with the paths of modal data, super-elements and meshes as `named_file` gives them."""
    legs = raw.get("legs", [])
    families = [family for family in (legs if isinstance(legs, list) else [legs]) if isinstance(family, dict)]
    rows = [rows for part in (raw, *families) if isinstance(rows := part.get("frame"), list)]
    for body in (raw.get("platform"), *(row for frames in rows for row in frames)):
        for key in ("modal", "superelement"):
            given = body.get(key) if isinstance(body, dict) else None
            if not isinstance(given, dict):
                continue
            files = given.get("file")
            if isinstance(files, str):
                given["file"] = named_file(files, file, f"{key}.file")
            elif isinstance(files, dict):
                given["file"] = {
                    k: named_file(v, file, f"{key}.file") if isinstance(v, str) else v for k, v in files.items()
                }
    for family in (raw, *families):
        visuals = family.get("visual")
        for row in visuals if isinstance(visuals, list) else ():
            if isinstance(row, dict) and isinstance(row.get("file"), str):
                row["file"] = named_file(row["file"], file, "visual.file")
    return raw


def named_file(name: str, file: str | Path, key: str) -> str:
    """Return the path of what `file` names: absolute, or from the folder of `file`; symbolic links are followed.

    Reading changes nothing, so that any regular file may be named; devices and pipes could be read for ever.
    """
    path = os.path.join(Path(file).resolve().parent, name)  # noqa: PTH118 - an absolute name stays as it is
    reason = "is no path" if not name or "\0" in name else "is a folder or a device, not a file"
    if reason == "is no path" or (os.path.exists(path) and not os.path.isfile(path)):  # noqa: PTH110, PTH113
        raise RobotFileError(
            f"{shown(name)} {reason}", file=str(file), key=key, value=as_value(name),
            hint="name a file, by its path from the folder of this one",
        )  # fmt: skip
    return path


def read_bounded(path: Path) -> bytes:
    """The bytes of a file, and never more than a robot or a state can have: devices and wrong files have no end."""
    with Path(path).open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise RobotFileError(
            f"has more than {MAX_BYTES / 1e6:.0f} MB",
            file=str(path),
            value=path.stat().st_size,
            hint="check that this is the right file",
        )
    return content


def parse_toml(content: bytes, file: str) -> dict[str, Any]:
    """TOML text to a dictionary; every way in which it can fail is one sentence."""
    if b"\0" in content:
        raise RobotFileError("is binary, not a text file", file=file, hint="a robot file is TOML text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RobotFileError(
            f"is not UTF-8 text (byte {error.start})", file=file, hint="save it with the encoding UTF-8"
        ) from None
    if not text.strip():
        raise RobotFileError("is empty", file=file, hint="start from 'parflex new NAME'")
    if any(piece.count(".") > MAX_KEY_PARTS for piece in re.split(r"[,=#\[\]{}\n]", text)):
        raise RobotFileError("is nested too deeply", file=file, hint=f"a robot file needs {MAX_DEPTH} levels at most")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise RobotFileError(
            "is nested too deeply", file=file, hint=f"a robot file needs {MAX_DEPTH} levels at most"
        ) from None
    except ValueError as error:
        reason = "a number has too many digits" if "digits" in str(error) else str(error)
        raise RobotFileError(
            f"is not valid TOML: {reason}", file=file, hint="correct that line ('parflex new NAME' prints a template)"
        ) from None


def refuse_deep(table: Any, file: str) -> None:
    """Nothing in a robot file is nested deeply; what is would only break what reads it."""
    level = [table]
    for _ in range(MAX_DEPTH):
        level = [
            entry
            for value in level
            for entry in (value.values() if isinstance(value, dict) else value)
            if isinstance(entry, dict | list)
        ]
    if level:
        raise RobotFileError("is nested too deeply", file=file, hint=f"a robot file needs {MAX_DEPTH} levels at most")


def apply_settings(raw: dict[str, Any], settings: Mapping[str, Any], file: str) -> dict[str, Any]:
    """The table with `key.path = value` set; list entries are found by their `name` or number."""
    for path, value in settings.items():
        holder, step = _find(raw, path, value, file)
        holder[step] = value
    return raw


def value_at(raw: dict[str, Any], path: str, file: str) -> Any:
    """What stands at `key.path` of a table, which stays as it is: a search adds the tables that a new key needs."""
    holder, step = _find(raw, path, None, file, kept=True)
    if isinstance(holder, dict) and step not in holder:
        raise RobotFileError(f"there is no value at '{path}'", file=file, key=path, hint="give it one in the file")
    return holder[step]


def _find(table: Any, path: str, value: Any, file: str, kept: bool = False) -> tuple[Any, Any]:
    """The table or list that holds the value at a path, and its key there; of copies where the file is `kept`."""
    rest, parent = path, ""
    while True:
        table = copy.copy(table) if kept else table
        if isinstance(table, list):
            step, rest = _list_step(table, rest)
        elif isinstance(table, dict):
            step, rest = _dict_step(table, rest, parent)
        else:
            step = None
        if step is None:
            words = _children(table)
            if words and rest.split(".")[0] in NAMED_LISTS:  # of the schema, but this file has none
                raise RobotFileError(
                    f"there is no value at '{path}'", file=file, key=path, value=as_value(value),
                    hint=f"the file has no [[{rest.split('.')[0]}]]; it has {', '.join(words)}",
                )  # fmt: skip
            hint = (
                did_you_mean(rest.split(".")[0], words)
                if words
                else f"set '{path.removesuffix(rest).rstrip('.')}' as a whole"
            )
            raise RobotFileError(
                f"there is no value at '{path}'", file=file, key=path, value=as_value(value), hint=hint
            )
        if not rest:
            return table, step
        table, parent = table[step], str(step)


def _children(table: Any) -> list[str]:
    if isinstance(table, dict):
        return list(table)
    if isinstance(table, list):
        return [str(entry["name"]) if _named(entry) else str(index) for index, entry in enumerate(table)]
    return []


def _named(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str)


def _list_step(table: list[Any], rest: str) -> tuple[Any, str]:
    """Longest entry name that the path starts with, else a number."""
    names = {entry["name"]: index for index, entry in enumerate(table) if _named(entry)}
    for name in sorted(names, key=len, reverse=True):
        if rest == name or rest.startswith(name + "."):
            return names[name], rest[len(name) + 1 :]
    head, _, tail = rest.partition(".")
    if head.isdecimal() and len(head) < 10 and int(head) < len(table):
        return int(head), tail
    return None, rest


def _dict_step(table: dict[str, Any], rest: str, parent: str) -> tuple[Any, str]:
    """Longest existing key that the path starts with; a last key may be new, a new constant would have no effect."""
    for name in sorted(table, key=len, reverse=True):
        if rest == name or rest.startswith(name + "."):
            return name, rest[len(name) + 1 :]
    head, _, tail = rest.partition(".")
    if parent == "constants" or not head or (tail and head in NAMED_LISTS):
        return None, rest
    if tail:
        table[head] = {}
    return head, tail


def parse_setting(text: str) -> tuple[str, Any]:
    """`KEY=VALUE` of the command line: VALUE is read as TOML, else kept as an expression."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise RobotFileError(f"'{text}' is not KEY=VALUE", key="set", value=text, hint="write e.g. constants.arm=0.3")
    try:
        table = tomllib.loads("value = " + value)
    except (ValueError, RecursionError):
        table = {}
    return key.strip(), table["value"] if list(table) == ["value"] else value.strip()
