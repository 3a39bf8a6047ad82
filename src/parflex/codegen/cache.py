"""Compiled programs on disk.

The key holds everything that a program comes from: the robot as it was loaded, not its file alone, with what was set,
mounted or locked since; the model and its options; and the code of this package, so that no program outlives a change
of it.

Programs and their compiled code on disk: one file each, named by a hash, written whole or not at all.

Machine code is executed and pickles are trusted, so that only files of this user in a folder of this user are read.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from parflex.cache import cached
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, ParflexWarning
from parflex.io import atomic_file, write_errors
from parflex.robot.robot import Robot

T = TypeVar("T")
RECORDS = 20_000  # hashes of records in memory: a robot with long beams has thousands
LEFT_OUT = ("file", "diagnostics")  # of a robot: where it came from changes no program
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
    """A hash of the source of this package, and the version of Python, by which pickles may differ."""
    return _source_digest(Path(__file__).resolve().parent.parent) + sys.version.encode()


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


def stored(key: str | None, build: Callable[[], T]) -> T:
    """Return the value on disk under a key; the first call builds and writes the value. None stores nothing."""
    data = None if key is None else read_bytes(key)
    if data is not None:
        result: T = pickle.loads(data)
        return result
    value = build()
    if key is not None:
        write_bytes(key, pickle.dumps(value))
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
