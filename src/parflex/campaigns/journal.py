"""A journal beside a file of results: what was finished since the file was written, chunk by chunk.

Each entry has its length and checksum in front. A process that is killed leaves at most one entry without its end,
which is not read. While a journal is open no other process writes to the same results.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from parflex.errors import InputError
from parflex.whole_files import unwritable

HEAD = b"parflex journal 2\n"
SIZES = 8, 32  # bytes of the length of an entry, and of its checksum


class Journal:
    """Entries of a campaign with a `name`; those of another campaign are refused."""

    def __init__(self, results: Path, name: str) -> None:
        self.path = results.with_name(results.name + ".journal")
        self.results, self.head = results, HEAD + name.encode() + b"\n"
        self.file: BinaryIO | None = None

    def __enter__(self) -> Journal:
        try:
            self.file = open(self.path, "a+b", buffering=0)  # noqa: PTH123 - it stays open
            self._lock()
        except OSError as error:
            raise unwritable(error, str(self.results), "out", "check the path and its permissions") from None
        return self

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # not on every system
            return
        assert self.file is not None
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise InputError(
                "another process writes this file", file=str(self.results), key="out", value=str(self.results),
                hint="wait for it, or name another file",
            ) from None  # fmt: skip

    def entries(self) -> list[bytes]:
        """What an earlier process left; what follows is added behind the last whole entry."""
        assert self.file is not None
        self.file.seek(0)
        content = self.file.read()
        found, at = [], len(self.head)
        if not content.startswith(self.head):
            if content.startswith(HEAD) and content.find(b"\n", len(HEAD)) > 0:
                raise InputError(
                    "the journal beside it belongs to another campaign", file=str(self.path), key="out",
                    value=str(self.results), hint="name another file, or remove the journal",
                )  # fmt: skip
            self.clear()
            return []
        while len(content) >= at + sum(SIZES):
            size = int.from_bytes(content[at : at + SIZES[0]], "little")
            checksum, data = content[at + SIZES[0] : at + sum(SIZES)], content[at + sum(SIZES) :][:size]
            if len(data) < size or hashlib.blake2b(data, digest_size=SIZES[1]).digest() != checksum:
                break
            found.append(data)
            at += sum(SIZES) + size
        self._cut(at)
        return found

    def add(self, data: bytes) -> None:
        """One more entry; it is there as soon as this returns, or not at all."""
        entry = len(data).to_bytes(SIZES[0], "little") + hashlib.blake2b(data, digest_size=SIZES[1]).digest() + data
        self._write(entry)

    def clear(self) -> None:
        """No entries: the file of results has all of them."""
        self._cut(0)
        self._write(self.head)

    def _write(self, data: bytes) -> None:
        assert self.file is not None
        left = memoryview(data)
        try:
            while left:
                left = left[self.file.write(left) or 0 :]
        except OSError as error:
            raise unwritable(
                error, str(self.results), "out", "free some space and run it again: what was finished is kept"
            ) from None

    def _cut(self, size: int) -> None:
        assert self.file is not None
        with suppress(OSError):
            os.ftruncate(self.file.fileno(), size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closed; without entries it is removed."""
        assert self.file is not None
        with suppress(OSError):
            if os.fstat(self.file.fileno()).st_size <= len(self.head):
                self.path.unlink()
        self.file.close()
