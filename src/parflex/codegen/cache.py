"""Compiled programs on disk.

The key holds everything that a program comes from: the robot as it was loaded, not its file alone, with what was set,
mounted or locked since; the model and its options; and the code of this package, so that no program outlives a change
of it.

Programs and their compiled code on disk: one file each, named by a hash, written whole or not at all.

Machine code is executed, so that only files of this user in a folder of this user are read.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from parflex.cache import cached
from parflex.codegen.program import PackedInstructions, Program, pack
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexWarning
from parflex.io import atomic_file, write_errors
from parflex.robot.robot import Robot

T = TypeVar("T")
RECORDS = 20_000  # hashes of records in memory: a robot with long beams has thousands
LEFT_OUT = ("file", "diagnostics")  # of a robot: where it came from changes no program
MANY, FUNCTIONS = "instructions", "functions"  # of a program
UNUSED = {"motions", "reference", "title"}  # of its description: neither does how it is to move, or what is said of it
PLAIN = frozenset({bool, int, float, str, slice, type(None)})
VARIABLE = "PARFLEX_CACHE"
SHARED_WRITE_BITS = 0o022  # bits of a mode by which the group or all users may write
_told: set[str] = set()


def key_of(robot: Robot, *choices: Any) -> str | None:
    """The name under which a program is kept; None where nothing is kept."""
    if cache_folder() is None:
        return None
    digest = hashlib.sha256(_code() + digest_of(robot).encode())
    _feed(digest, choices)
    return f"{digest.hexdigest()}.program"


def digest_of(robot: Robot) -> str:
    """A hash of the robot as it was loaded, with what was set, mounted or locked since."""
    hexdigest = robot.cache.get("digest")
    if hexdigest is None:
        digest = hashlib.sha256()
        _feed(digest, _said(robot), shared=True)
        _feed(digest, robot.home)
        hexdigest = robot.cache["digest"] = digest.hexdigest()
    return hexdigest


def _said(robot: Robot) -> dict[str, Any]:
    """All of a robot from which home follows."""
    names = [field.name for field in fields(robot) if field.compare and field.name not in LEFT_OUT]
    values = {name: getattr(robot, name) for name in names}
    return values | {"description": robot.description.model_dump_json(exclude=UNUSED)}


@functools.cache
def _code() -> bytes:
    """A hash of the source of this package."""
    return _source_digest(Path(__file__).resolve().parent.parent)


def _source_digest(root: Path) -> bytes:
    """A hash of all files of Python below a folder, read again where one of them is not the file that it was."""
    stamps = hashlib.sha256()
    files = sorted(_sources(str(root)), key=lambda file: file.path)
    for file in files:
        status = file.stat()
        stamps.update(
            f"{file.path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}\n".encode()
        )
    key = f"{stamps.hexdigest()}.code"
    stored_digest = read_bytes(key)  # to read all files takes ten times as long as to ask for their times
    if stored_digest is not None:
        return stored_digest
    digest = hashlib.sha256()
    for file in files:
        digest.update(os.path.relpath(file.path, root).encode() + b"\0" + Path(file.path).read_bytes() + b"\0")
    write_bytes(key, digest.digest())
    return digest.digest()


def _sources(folder: str) -> Iterator[os.DirEntry[str]]:
    """All files of Python in and below a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _sources(entry.path)
            elif entry.name.endswith(".py"):
                yield entry


@functools.cache
def _compared_fields(kind: type) -> tuple[Field[Any], ...]:
    """Return the fields by which records of a type compare."""
    return tuple(field for field in fields(kind) if field.compare)


def _digest_of_record(value: Any, shared: bool) -> bytes:
    """Return a hash of the fields of a record."""
    digest = hashlib.sha256()
    kind: Any = type(value)
    for field in _compared_fields(kind):
        _feed(digest, getattr(value, field.name), shared)
    return digest.digest()


def _feed(digest: Any, value: Any, shared: bool = False) -> None:
    """Add a value to a hash: its type, then its content.

    `shared` caches the hashes of records: elements of a beam share records, and so do a robot and its changed copies.
    """
    if type(value) in PLAIN:  # most of all: said at once
        digest.update(f"({type(value).__name__} {value!r})".encode())
        return
    digest.update(f"({type(value).__name__} ".encode())
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str} {value.shape}".encode() + value.tobytes())
    elif isinstance(value, BaseModel):
        digest.update(value.model_dump_json().encode())
    elif is_dataclass(value):
        if shared:
            hashed = cached("records", "digest", lambda: _digest_of_record(value, True), owners=(value,), limit=RECORDS)
            digest.update(hashed)
        else:
            digest.update(_digest_of_record(value, False))
    elif isinstance(value, Mapping):
        for name, entry in sorted(value.items()):
            _feed(digest, name, shared)
            _feed(digest, entry, shared)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for entry in sorted(value) if isinstance(value, (set, frozenset)) else value:
            _feed(digest, entry, shared)
    elif value is None or isinstance(value, (bool, int, float, str, slice)):
        digest.update(repr(value).encode())
    else:
        raise TypeError(f"a {type(value).__name__} has no hash")
    digest.update(b")")


def write_program(key: str, model: Any) -> None:
    """Keep a model: its program, the shapes and names of its groups, and its numbers."""
    program: Program = model.program
    parts = [pack(subprogram.instructions) for subprogram in (program, *program.functions)]
    for subprogram, data in zip((program, *program.functions), parts, strict=True):
        subprogram.found["digest"] = hashlib.sha256(data).hexdigest()  # which is asked for when it is compiled
    content = {
        "programs": [_head(subprogram) for subprogram in (program, *program.functions)],
        MANY: [
            {"count": len(subprogram.instructions), "digest": subprogram.found["digest"], "bytes": len(data)}
            for subprogram, data in zip((program, *program.functions), parts, strict=True)
        ],
        "inputs": model.inputs,
        "outputs": model.outputs,
        "parameters": model.parameters,
        "labels": model.labels,
        "sample": {name: value.tolist() for name, value in model.sample.items()},
        "signals": model.signals,
        "about": model.about,
        "counts": program.known_counts,
    }
    head = json.dumps(content, separators=(",", ":")).encode()  # without a line break
    write_bytes(key, b"".join([head, b"\n", *parts]))


def _head(program: Program) -> dict[str, Any]:
    """All but its instructions and functions."""
    return {
        field.name: getattr(program, field.name)
        for field in fields(program)
        if field.init and field.name not in (MANY, FUNCTIONS)
    }


def read_program(key: str) -> dict[str, Any] | None:
    """What a model is made of, if it was kept."""
    data = read_bytes(key)
    if data is None:
        return None
    head, _, instructions = data.partition(b"\n")
    content = json.loads(head)
    programs, start = [], 0
    for attributes, packed in zip(content["programs"], content[MANY], strict=True):
        part = instructions[start : start + packed["bytes"]]
        start += packed["bytes"]
        arguments = {name: _rows(value) for name, value in attributes.items()}
        programs.append(Program(**arguments, instructions=PackedInstructions(packed["count"], packed["digest"], part)))
    program = replace(programs[0], functions=tuple(programs[1:]))
    counts = content.get("counts")
    program = program if counts is None else program.with_counts(counts)
    return {
        "name": program.name,
        "program": program,
        "inputs": {name: tuple(shape) for name, shape in content["inputs"].items()},
        "outputs": {name: tuple(shape) for name, shape in content["outputs"].items()},
        "parameters": content["parameters"],
        "labels": content["labels"],
        "sample": {name: np.array(value, dtype=float) for name, value in content["sample"].items()},
        "signals": content["signals"],
        "about": content["about"],
    }


def _rows(value: Any) -> Any:
    """A list of names, or of rows, as tuples: there may be a hundred thousand."""
    if not isinstance(value, list):
        return value
    return tuple(map(tuple, value)) if value and isinstance(value[0], list) else tuple(value)


def program_to_plain(program: Program | None) -> dict[str, Any] | None:
    """A short program as JSON has it, for those who keep it among other things."""
    return (
        None
        if program is None
        else {field.name: getattr(program, field.name) for field in fields(program) if field.init}
    )


def program_from_plain(content: Mapping[str, Any] | None) -> Program | None:
    """The program that was written so."""
    return None if content is None else Program(**{name: as_tuples(value) for name, value in content.items()})


def as_tuples(value: Any) -> Any:
    """Lists, as JSON has them, as tuples."""
    return tuple(as_tuples(entry) for entry in value) if isinstance(value, list) else value


def cache_folder() -> Path | None:
    """Return the folder of the cache; `PARFLEX_CACHE=off` means none."""
    chosen = os.environ.get(VARIABLE)
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA")
        return Path(root) / "parflex" if root else None
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return Path(home) / "parflex" if home else Path.home() / ".cache" / "parflex"
    except RuntimeError:  # the user has no home
        return None


def cached_file(key: str) -> Path | None:
    """Return the file under the key, None where there is none."""
    place = cache_folder()
    return place / key if place is not None and os.path.isfile(place / key) else None  # noqa: PTH113 - never raises


def read_bytes(key: str) -> bytes | None:
    """Return the bytes stored under the key; a damaged file, or one that others can write, counts as none."""
    place = cache_folder()
    if place is None:
        return None
    try:
        if not _private(place, place.stat()):
            return None
        with (place / key).open("rb") as file:
            if not _private(place / key, os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    digest, data = content[:32], content[32:]
    return data if hashlib.sha256(data).digest() == digest else None


def write_bytes(key: str, data: bytes) -> None:
    """Store under the key, readable for this user alone: no reader ever sees a part; what fails is reported once."""
    place = cache_folder()
    if place is None:
        return
    try:
        with write_errors(place):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _private(place, place.stat()):
                return
            with atomic_file(place / key, rights=0o600) as file:
                file.write(hashlib.sha256(data).digest() + data)
    except InputError as error:
        _warn(place, f"{error.message}; set {VARIABLE} to a writable folder or to 'off'")


def stored(
    key: str | None,
    build: Callable[[], T],
    to_json: Callable[[Any], Any] = lambda value: value,
    from_json: Callable[[Any], Any] = lambda content: content,
) -> T:
    """Return the value on disk under a key; the first call builds and writes the value.

    The key None stores nothing. The value None is stored as such, without the two conversions.
    """
    data = None if key is None else read_bytes(key)
    if data is not None:
        content = json.loads(data)
        result: Any = None if content is None else from_json(content)
        return result
    value = build()
    if key is not None:
        content = None if value is None else to_json(value)
        write_bytes(key, json.dumps(content, separators=(",", ":")).encode())
    return value


def _private(path: Path, status: os.stat_result) -> bool:
    """Return whether this user owns a file or folder and no other user can write it; warn if not."""
    if os.name != "posix" or (status.st_uid == os.geteuid() and not status.st_mode & SHARED_WRITE_BITS):
        return True
    reason = "belongs to another user" if status.st_uid != os.geteuid() else "can be written by other users"
    _warn(path, f"{reason}; delete it, or set {VARIABLE} to a folder of your own")
    return False


def _warn(place: Path, reason: str) -> None:
    if str(place) not in _told:
        _told.add(str(place))
        diagnostic = Diagnostic("no-cache", f"programs are not cached: {place} {reason}", str(place))
        warnings.warn(ParflexWarning(diagnostic), stacklevel=2)
