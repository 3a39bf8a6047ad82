"""Files with reduced matrices: MATLAB, npz, Matrix Market, Abaqus, Nastran. Files of others are not trusted.

Sizes are bounded before anything is made of them, nothing in a file is run, and no file names another one.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parflex.bodies.super_elements.abaqus_matrices import read_abaqus, read_entries
from parflex.bodies.super_elements.market_matrices import read_matrix_market
from parflex.bodies.super_elements.nastran_matrices import read_punch
from parflex.bodies.super_elements.reduced_matrices import (
    LARGEST_NUMBER,
    WORDS,
    Freedom,
    ReducedMatrices,
    from_freedoms,
    in_order,
    refuse,
    refuse_order,
)
from parflex.errors import ParflexError, RobotFileError
from parflex.io import read_npz

Array = np.ndarray
MAX_BYTES = 50_000_000
HARDLY = 1e-3  # of the forces of one node: rounding of what cancels
COMPRESSED = 15  # kind of an element of a MATLAB file
ARRAYS = {
    "M": ("M", "mass", "Mass", "MAAX"),
    "K": ("K", "stiffness", "Stiffness", "KAAX"),
    "D": ("D", "C", "damping", "BAAX"),
    "geometric": ("geometric", "KG"),
    "positions": ("int_xyz", "positions", "nodes_xyz", "n_xyz"),
    "numbers": ("int_i", "numbers", "nodes", "n_i"),
}  # names of arrays in MATLAB and npz files; those of Ansys exports (int_ and n_) among them
NAMES = tuple(name for names in ARRAYS.values() for name in names)


def load_matrices(file: str | Mapping[str, str], named: Sequence[int]) -> ReducedMatrices:
    """Read matrices from one file, or from one file each; `named` are numbers of nodes that the robot asks for."""
    if isinstance(file, str):
        return _load(Path(file), named)
    parts: dict[str, Any] = {}
    for key, path in file.items():
        made = _one_matrix(Path(path), key)
        parts[key] = made
    freedoms = {key: part[0] for key, part in parts.items() if part[0] is not None}
    matrices = {key: part[1] for key, part in parts.items()}
    first = str(next(iter(file.values())))
    if not freedoms:
        order = max(len(A) for A in matrices.values())
        return from_freedoms(first, by_count(order, named, first, matrices["K"]), matrices)
    return _merged(first, freedoms, matrices)


def _merged(file: str, freedoms: dict[str, list[Freedom]], matrices: dict[str, Array]) -> ReducedMatrices:
    """Matrices of files that each list their own freedoms: a freedom that one does not list has zeros there."""
    together = list(dict.fromkeys(one for own in freedoms.values() for one in own))
    together.sort(key=in_order)
    refuse_order(len(together), file)
    placed = {}
    for key, A in matrices.items():
        own = freedoms.get(key)
        if own is None:
            placed[key] = A
            continue
        index = np.array([together.index(one) for one in own])
        placed[key] = np.zeros((len(together), len(together)))
        placed[key][np.ix_(index, index)] = A
    return from_freedoms(file, together, placed)


def by_count(order: int, named: Sequence[int], file: str, K: Array) -> list[Freedom]:
    """Freedoms of a file that has matrices alone: nodes 1, 2, ... up to the last one that the robot names.

    Where K resists the translations of these, there are more: as many as it takes to leave them free.
    """
    refuse_order(order, file)
    count = max(named, default=0)
    if not 1 <= count <= order // 6:
        raise refuse(
            file,
            f"has no node {count}: {order} freedoms are at most {order // 6} nodes",
            "count the interface nodes in the order of the matrix: 1, 2, ...",
            "nodes",
            count,
        )
    free = (more for more in range(count, order // 6 + 1) if K.shape == (order, order) and _moves_freely(K, more))
    count = next(free, count)
    nodes = [(number, component) for number in range(1, count + 1) for component in range(1, 7)]
    return nodes + [(k + 1, 0) for k in range(order - len(nodes))]


def _moves_freely(K: Array, count: int) -> bool:
    """Whether the first nodes, six rows each, can be translated together without force."""
    X = np.zeros((len(K), 3))
    for number in range(count):
        X[6 * number : 6 * number + 3] = np.eye(3)
    rows = K / np.sqrt(np.maximum(np.abs(np.diag(K)), 1e-300))[:, None]
    return bool(np.abs(rows @ X).max() < HARDLY * np.abs(rows[:, :3]).max())


def content_of(path: Path) -> bytes:
    """The bytes of a file, and never more than matrices can have."""
    try:
        with Path(path).open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        reason = "there is no such file" if missing else f"cannot be read ({error.strerror})"
        raise refuse(str(path), reason, "check the path and its permissions", value=str(path)) from None
    if len(content) > MAX_BYTES:
        raise refuse(str(path), f"has more than {MAX_BYTES / 1e6:.0f} MB", "give reduced matrices, not whole ones")
    if not content.strip():
        raise refuse(str(path), "is empty", "write the matrices again")
    return content


def text_of(content: bytes, path: Path) -> str:
    """The text of a file."""
    if b"\0" in content:
        raise refuse(str(path), "is binary, and neither MATLAB nor npz", "give .mat, .npz, .mtx or .pch")
    return content.decode("utf-8", errors="replace")


def _load(path: Path, named: Sequence[int]) -> ReducedMatrices:
    content = content_of(path)
    if content[:4] == b"PK\x03\x04":
        return from_arrays(_npz(content, path), path, named)
    if content[:6] == b"MATLAB" or content[:8] == b"\x89HDF\r\n\x1a\n":
        return from_arrays(_matlab(content, path), path, named)
    text = text_of(content, path)
    start = text.lstrip()[:14].lower()
    if start.startswith("%%matrixmarket"):
        raise refuse(
            str(path),
            "is one matrix in the Matrix Market format",
            'name a file for each: file = { M = "m.mtx", K = "k.mtx" }',
        )
    if "*matrix" in text.lower() or "*user element" in text.lower():
        return read_abaqus(text, str(path))
    if "DMIG" in text.upper():
        return read_punch(text, str(path))
    if "BEGIN SUPER" in text.upper() or "EXTERNAL SUPERELEMENT" in text.upper():
        hint = "its matrices are in another file: write them here too, EXTSEOUT(DMIGPCH)"
        raise refuse(str(path), "is a punch file of Nastran that has no matrices", hint)
    raise refuse(
        str(path),
        "is not a known file of reduced matrices",
        "give .mat, .npz, Abaqus *MATRIX, Nastran DMIG, or Matrix Market with one file for each matrix",
    )


def _one_matrix(path: Path, key: str) -> tuple[list[Freedom] | None, Array]:
    """One matrix, and its freedoms if the file says them."""
    content = content_of(path)
    if content[:4] == b"PK\x03\x04" or content[:6] == b"MATLAB":
        arrays = _npz(content, path) if content[:2] == b"PK" else _matlab(content, path)
        found = [arrays[name] for name in ARRAYS[key] if name in arrays]
        if not found:
            raise refuse(str(path), f"has no array {key}", f"give it the name {key}", key)
        return None, numbers_of(found[0], key, path)
    text = text_of(content, path)
    if text.lstrip()[:14].lower().startswith("%%matrixmarket"):
        return None, read_matrix_market(text, str(path))
    return read_entries(text, str(path))


def _npz(content: bytes, path: Path) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise refuse(str(path), f"unpacks to more than {MAX_BYTES / 1e6:.0f} MB", "give reduced matrices")
        return read_npz(io.BytesIO(content), NAMES)
    except ParflexError:
        raise
    except Exception as error:  # what a damaged archive raises depends on where it is damaged
        raise _damaged(path, "npz", error) from None


def _matlab(content: bytes, path: Path) -> dict[str, Array]:
    from scipy.io import loadmat

    if content[:8] == b"\x89HDF\r\n\x1a\n" or content[:14] == b"MATLAB 7.3 MAT":
        raise refuse(str(path), "is a MATLAB 7.3 file (HDF5)", "save it with save(..., '-v7')")
    if _unpacked(content) > MAX_BYTES:
        raise refuse(str(path), f"unpacks to more than {MAX_BYTES / 1e6:.0f} MB", "give reduced matrices")
    try:
        found = loadmat(io.BytesIO(content), variable_names=list(NAMES))
    except Exception as error:  # what a damaged file raises depends on where it is damaged
        raise _damaged(path, "MATLAB", error) from None
    arrays = {name: value for name, value in found.items() if name in NAMES}
    return {name: value.toarray() if hasattr(value, "toarray") else value for name, value in arrays.items()}


def _unpacked(content: bytes) -> int:
    """Bytes that the elements of a MATLAB file unpack to, counted up to what is too many."""
    order, at, total = "<" if content[126:128] == b"IM" else ">", 128, 0
    while at + 8 <= len(content) and total <= MAX_BYTES:
        kind, size = struct.unpack(f"{order}II", content[at : at + 8])
        if kind == COMPRESSED:
            try:
                total += len(zlib.decompressobj().decompress(content[at + 8 : at + 8 + size], MAX_BYTES + 1))
            except zlib.error:
                return total  # damaged: said by the reader
        else:
            total += size
        at += 8 + size
    return total


def _damaged(path: Path, kind: str, error: Exception) -> RobotFileError:
    cut = isinstance(error, (zipfile.BadZipFile, zlib.error, EOFError, OSError, IndexError, ValueError))
    return refuse(
        str(path),
        f"is a damaged or truncated {kind} file" if cut else f"is not a {kind} file of matrices",
        "write it again",
    )


def numbers_of(values: Any, key: str, path: Path) -> Array:
    """Real numbers."""
    array = np.asarray(values)
    if np.iscomplexobj(array) or array.dtype.kind not in "fiu":
        what = "complex numbers" if np.iscomplexobj(array) else "no numbers"
        raise refuse(str(path), f"'{key}' holds {what}", "give real numbers", key)
    return array.astype(float)


def from_arrays(arrays: Mapping[str, Array], path: Path, named: Sequence[int]) -> ReducedMatrices:
    """Named arrays of a MATLAB or npz file: nodes first, six freedoms each, then modal coordinates."""
    found: dict[str, Array] = {}
    for key, names in ARRAYS.items():
        first = next((name for name in names if name in arrays), None)
        if first is not None:
            found[key] = numbers_of(arrays[first], first, path)
    file = str(path)
    matrices = {key: A for key, A in found.items() if key in WORDS}
    if "K" not in matrices or matrices["K"].ndim != 2:
        return from_freedoms(file, [], {key: A for key, A in matrices.items() if key != "K"})
    order = len(matrices["K"])
    given = found["numbers"].ravel() if "numbers" in found else np.zeros(0)
    if not np.all(np.isfinite(given)) or np.any(given != np.round(given)) or np.any(np.abs(given) > LARGEST_NUMBER):
        raise refuse(file, "the numbers of nodes are not whole numbers", "give one for each interface node", "int_i")
    numbers = [int(x) for x in given] if "numbers" in found else None
    places = found.get("positions")
    if places is not None and (places.ndim != 2 or places.shape[1] != 3 or not np.all(np.isfinite(places))):
        raise refuse(
            file, "the positions of nodes are not n x 3 numbers", "give x y z of each interface node", "int_xyz"
        )
    if numbers is None and places is None:
        return from_freedoms(file, by_count(order, named, file, matrices["K"]), matrices)
    numbers = numbers if numbers is not None else list(range(1, len(places) + 1))  # type: ignore[arg-type]
    refuse_order(order, file)
    if places is not None and len(places) != len(numbers):
        raise refuse(file, f"{len(places)} positions for {len(numbers)} nodes", "give one for each", "int_xyz")
    if 6 * len(numbers) > order:
        message = f"has {order} freedoms for {len(numbers)} nodes of six"
        raise refuse(file, message, "interface freedoms come first, x y z rx ry rz of each node", value=order)
    freedoms = [(number, component) for number in numbers for component in range(1, 7)]
    freedoms += [(k + 1, 0) for k in range(order - len(freedoms))]
    return from_freedoms(file, freedoms, matrices, None if places is None else dict(zip(numbers, places, strict=True)))
