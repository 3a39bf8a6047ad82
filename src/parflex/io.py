"""Atomic writes, refusal to overwrite, and size limits on files of arrays.

Files that are there whole or not at all: every file that parflex writes is written here.

Each goes to a name of its own in the same folder first, and takes its place when all of it, and of those that belong to
it, is written. What fails or is interrupted on the way leaves nothing. Rights are those that a new file has.
"""

from __future__ import annotations

import math
import os
import secrets
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from errno import EISDIR
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from parflex.errors import InputError

if TYPE_CHECKING:
    import numpy as np

PART = ".part-"  # with which names of files begin that are not complete yet

MAX_BYTES = 2_000_000_000  # of all arrays of a file: they fit into the memory of every machine that computes with them


def refuse_overwrite(targets: Iterable[str | Path], inputs: Iterable[str | Path], key: str | None = "out") -> None:
    """Refuse targets that are input files of the same call, by whatever path or link."""
    inputs = list(inputs)
    for target in targets:
        for name in inputs:
            try:
                same = os.path.samefile(target, name)  # noqa: PTH121 - paths may be text
            except (OSError, ValueError):
                continue  # one of them does not exist
            if same:
                raise InputError(
                    "is an input, which would be overwritten", file=str(target), key=key, value=str(target),
                    hint="name another file",
                )  # fmt: skip


@contextmanager
def replacing_files(*targets: Path, rights: int = 0o666) -> Iterator[list[BinaryIO]]:
    """Yield files to fill, which then replace the targets: all of them or none. Raises OSError."""
    parts = [target.with_name(PART + secrets.token_hex(8)) for target in targets]
    try:
        with ExitStack() as files:
            yield [files.enter_context(os.fdopen(_opened(part, rights), "wb")) for part in parts]
        for target in targets:
            if target.is_dir():
                raise IsADirectoryError(EISDIR, f"'{target.name}' is a folder")
        for part, target in zip(parts, targets, strict=True):
            part.replace(target)
    finally:
        for part in parts:
            with suppress(OSError):
                part.unlink()


def _opened(part: Path, rights: int = 0o666) -> int:
    """Open a new file with those rights that the user's umask leaves."""
    return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), rights)


@contextmanager
def atomic_files(
    targets: Sequence[str | Path], key: str | None = "out", hint: str = "check the path", blamed: str | None = None
) -> Iterator[list[BinaryIO]]:
    """Files as in `replacing`; what cannot be written is refused in words, under the name `blamed` or the first's."""
    try:
        with replacing_files(*map(Path, targets)) as files:
            yield files
    except OSError as error:
        raise unwritable_error(error, blamed or str(targets[0]), key, hint) from None


@contextmanager
def atomic_file(target: str | Path, key: str | None = "out", hint: str = "check the path") -> Iterator[BinaryIO]:
    """One file."""
    with atomic_files([target], key, hint) as (file,):
        yield file


@contextmanager
def new_file(target: str | Path, key: str | None = "out") -> Iterator[BinaryIO]:
    """A file that must not be there yet."""
    path = Path(target)
    try:
        path.open("x").close()  # from here on the name is taken
    except FileExistsError:
        raise InputError(
            "the file already exists", file=str(target), key=key, value=str(target), hint="choose another name"
        ) from None
    except OSError as error:
        raise unwritable_error(error, str(target), key, "check the path") from None
    try:
        with atomic_file(path, key) as file:
            yield file
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def check_writable(
    target: str | Path, key: str | None = "out", hint: str = "check the path and its permissions"
) -> None:
    """Refuse a file that cannot be created in its folder, before anything is computed."""
    part = Path(target).with_name(PART + secrets.token_hex(8))
    try:
        os.close(_opened(part))
        part.unlink()
    except OSError as error:
        raise unwritable_error(error, str(target), key, hint) from None


def unwritable_error(error: OSError, path: str, key: str | None, hint: str) -> InputError:
    """What is said of a file that cannot be written."""
    return InputError(f"cannot be written ({error.strerror or error})", file=path, key=key, value=path, hint=hint)


def read_npz(source: str | Path | BinaryIO, names: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file, or those with some names, without pickles.

    Raises OSError for a file that cannot be read, ValueError for a damaged one, and InputError where the headers
    declare more than `MAX_BYTES`.
    """
    import numpy as np  # the command line starts without it

    try:
        with zipfile.ZipFile(source) as archive:
            _refuse_large(archive, None if hasattr(source, "read") else str(source))
        if hasattr(source, "seek"):
            source.seek(0)
        with np.load(source, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files if names is None or name in names}
    except (OSError, ValueError, InputError):
        raise
    except Exception as error:  # what a damaged archive raises depends on where it is damaged
        raise ValueError(f"is not a whole npz file ({error})") from None


def _refuse_large(archive: zipfile.ZipFile, file: str | None) -> None:
    declared: dict[str, int] = {}
    for entry in archive.infolist():
        if not entry.filename.endswith(".npy"):
            raise ValueError(f"'{entry.filename}' is not an array")
        with archive.open(entry) as stream:
            declared[entry.filename] = _declared_bytes(stream)
    total = sum(declared.values())
    if total > MAX_BYTES:
        raise InputError(
            f"the headers of the file declare arrays of {total / 1e9:.3g} GB, more than {MAX_BYTES / 1e9:g} GB",
            file=file, value=file, hint="check that this is the right file, or split it",
        )  # fmt: skip
    for name, size in declared.items():
        if size > archive.getinfo(name).file_size:
            raise ValueError(f"'{name}' declares more numbers than it holds")


def _declared_bytes(stream: Any) -> int:
    """Return the bytes of the array that the header of an npy file declares."""
    import numpy as np

    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(stream)
    if version not in readers:
        raise ValueError(f"the format {version} of an array is not known")
    shape, _, kind = readers[version](stream)
    return math.prod(shape) * kind.itemsize
