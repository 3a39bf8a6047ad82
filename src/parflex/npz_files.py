"""Files of arrays of others: what their headers declare is bounded before memory is allocated for it."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from parflex.errors import InputError

if TYPE_CHECKING:
    import numpy as np

MAX_BYTES = 2_000_000_000  # of all arrays of a file: they fit into the memory of every machine that computes with them


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
