"""From bytes to a plain dictionary: reading TOML safely, and setting values on top of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from parflex.errors import RobotFileError, did_you_mean

MAX_BYTES = 2_000_000


def catalogue_names() -> list[str]:
    """Names of the robots that come with the package."""
    folder = resources.files("parflex.description").joinpath("catalogue")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_source(robot: str | Path) -> tuple[dict[str, Any], str]:
    """The raw table of a catalogue robot or of a file, and the name of the file for messages."""
    if isinstance(robot, str) and robot in catalogue_names():
        folder = resources.files("parflex.description").joinpath("catalogue")
        return parse_toml(folder.joinpath(robot + ".toml").read_bytes(), robot + ".toml"), robot + ".toml"
    path = Path(robot)
    try:
        if path.is_dir():
            raise RobotFileError("is a folder, not a robot file", file=str(path), hint="name the file in it")
        if not path.exists():
            raise RobotFileError(
                "there is no such robot or file",
                file=str(robot),
                value=str(robot),
                hint=did_you_mean(str(robot), catalogue_names()) + " ('parflex list' shows the catalogue)",
            )
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise RobotFileError(
                f"has {size / 1e6:.0f} MB, a robot file has at most {MAX_BYTES / 1e6:.0f} MB",
                file=str(path),
                value=size,
                hint="check that this is the right file",
            )
        return parse_toml(path.read_bytes(), str(path)), str(path)
    except OSError as error:
        raise RobotFileError(
            f"cannot be read ({error.strerror})", file=str(robot), hint="check path and rights"
        ) from None


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
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RobotFileError(
            f"is not valid TOML: {error}", file=file, hint="mend that line ('parflex new NAME' shows the form)"
        ) from None
    except RecursionError:
        raise RobotFileError("is nested too deeply", file=file, hint="a robot file needs four levels") from None


def apply_settings(raw: dict[str, Any], settings: Mapping[str, Any], file: str) -> dict[str, Any]:
    """The table with `key.path = value` set; list entries are found by their `name` or number."""
    for path, value in settings.items():
        _set(raw, path, path, value, file)
    return raw


def _set(table: Any, path: str, rest: str, value: Any, file: str) -> None:
    while True:
        if isinstance(table, list):
            step, rest = _list_step(table, rest)
        elif isinstance(table, dict):
            step, rest = _dict_step(table, rest)
        else:
            step = None
        if step is None:
            words = _children(table)
            raise RobotFileError(
                f"there is nothing to set at '{path}'", file=file, key=path, hint=did_you_mean(rest.split(".")[0], words)
            )
        if not rest:
            table[step] = value
            return
        table = table[step]


def _children(table: Any) -> list[str]:
    if isinstance(table, dict):
        return list(table)
    if isinstance(table, list):
        return [str(entry.get("name", index)) for index, entry in enumerate(table) if isinstance(entry, dict)]
    return []


def _list_step(table: list[Any], rest: str) -> tuple[Any, str]:
    """Longest entry name that the path starts with, else a number."""
    names = {entry["name"]: index for index, entry in enumerate(table) if isinstance(entry, dict) and "name" in entry}
    for name in sorted(names, key=len, reverse=True):
        if rest == name or rest.startswith(name + "."):
            return names[name], rest[len(name) + 1 :]
    head, _, tail = rest.partition(".")
    if head.isdigit() and int(head) < len(table):
        return int(head), tail
    return None, rest


def _dict_step(table: dict[str, Any], rest: str) -> tuple[Any, str]:
    """Longest existing key that the path starts with; a last key may be new."""
    for name in sorted(table, key=len, reverse=True):
        if rest == name or rest.startswith(name + "."):
            return name, rest[len(name) + 1 :]
    head, _, tail = rest.partition(".")
    if tail:
        table[head] = {}
    return head, tail


def parse_setting(text: str) -> tuple[str, Any]:
    """`KEY=VALUE` of the command line: VALUE is read as TOML, else kept as an expression."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise RobotFileError(f"'{text}' sets nothing", key="--set", value=text, hint="write --set KEY=VALUE")
    try:
        return key.strip(), tomllib.loads("value = " + value)["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()
