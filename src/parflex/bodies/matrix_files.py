"""Read reduced matrices from MATLAB, npz, Matrix Market, Abaqus and Nastran files.

Files are not trusted: sizes are bounded before allocation, nothing in a file is executed, and no file names another.

Abaqus (and CalculiX) write the matrices of a substructure by rows of a triangle, after `*MATRIX,TYPE=STIFFNESS` and
`TYPE=MASS` behind a list of nodes and of their degrees of freedom; nodes with numbers below one are internal: their one
degree of freedom is a modal coordinate. Alternatively a line `node, freedom, node, freedom, value` gives each entry of
one triangle or of both.

Nastran writes DMIG entries of a punch file: small, large or free fields, real numbers. Points with the component 0 are
scalar points: modal coordinates. GRID entries, if any, give the positions.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parflex.bodies.superelement_matrices import (
    LARGEST_NUMBER,
    WORDS,
    Freedom,
    ReducedMatrices,
    from_freedoms,
    in_order,
    matrix_error,
    refuse_order,
)
from parflex.errors import ParflexError, RobotFileError
from parflex.io import read_bytes, read_npz

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

TYPES = {"STIFFNESS": "K", "MASS": "M", "VISCOUSDAMPING": "D", "DAMPINGVISCOUS": "D", "DAMPING": "D"}

ABAQUS_OMITTED = ("STRUCTURALDAMPING", "DAMPINGSTRUCTURAL", "LOAD")  # of which nothing is made

KINDS = {"K": "K", "M": "M", "B": "D"}  # by the first letter: KAAX, MAAX, BAAX

USUAL = ("KAAX", "MAAX", "BAAX")

NASTRAN_OMITTED = ("K4AAX", "VAX", "PAX")  # structural damping, partitioning, loads


def load_matrices(file: str | Mapping[str, str], node_numbers: Sequence[int]) -> ReducedMatrices:
    """Read matrices from one file, or from one file each, at the nodes of the robot by their numbers `node_numbers`."""
    if isinstance(file, str):
        return _load(Path(file), node_numbers)
    parts: dict[str, Any] = {}
    for key, path in file.items():
        entry = _read_matrix(Path(path), key)
        parts[key] = entry
    freedoms = {key: part[0] for key, part in parts.items() if part[0] is not None}
    matrices = {key: part[1] for key, part in parts.items()}
    first = str(next(iter(file.values())))
    if not freedoms:
        order = max(len(A) for A in matrices.values())
        return from_freedoms(first, freedoms_by_count(order, node_numbers, first, matrices["K"]), matrices)
    return _merged(first, freedoms, matrices)


def _merged(file: str, freedoms: dict[str, list[Freedom]], matrices: dict[str, Array]) -> ReducedMatrices:
    """Matrices of files that each list their own freedoms: a freedom that one does not list has zeros there."""
    all_freedoms = list(dict.fromkeys(freedom for listed in freedoms.values() for freedom in listed))
    all_freedoms.sort(key=in_order)
    refuse_order(len(all_freedoms), file)
    placed = {}
    for key, A in matrices.items():
        listed = freedoms.get(key)
        if listed is None:
            placed[key] = A
            continue
        index = np.array([all_freedoms.index(freedom) for freedom in listed])
        placed[key] = np.zeros((len(all_freedoms), len(all_freedoms)))
        placed[key][np.ix_(index, index)] = A
    return from_freedoms(file, all_freedoms, placed)


def freedoms_by_count(order: int, node_numbers: Sequence[int], file: str, K: Array) -> list[Freedom]:
    """Freedoms of a file that has matrices alone: nodes 1, 2, ... up to the last one that the robot names.

    Where K resists the translations of these, there are more: as many as it takes to leave them free.
    """
    refuse_order(order, file)
    count = max(node_numbers, default=0)
    if not 1 <= count <= order // 6:
        raise matrix_error(
            file,
            f"has no node {count}: {order} freedoms are at most {order // 6} nodes",
            "count the interface nodes in the order of the matrix: 1, 2, ...",
            "nodes",
            count,
        )
    candidates = (
        candidate
        for candidate in range(count, order // 6 + 1)
        if K.shape == (order, order) and _moves_freely(K, candidate)
    )
    count = next(candidates, count)
    nodes = [(number, component) for number in range(1, count + 1) for component in range(1, 7)]
    return nodes + [(k + 1, 0) for k in range(order - len(nodes))]


def _moves_freely(K: Array, count: int) -> bool:
    """Whether the first nodes, six rows each, can be translated together without force."""
    translations = np.zeros((len(K), 3))
    for number in range(count):
        translations[6 * number : 6 * number + 3] = np.eye(3)
    rows = K / np.sqrt(np.maximum(np.abs(np.diag(K)), 1e-300))[:, None]
    return bool(np.abs(rows @ translations).max() < HARDLY * np.abs(rows[:, :3]).max())


def read_content(path: Path) -> bytes:
    """The bytes of a file, and never more than matrices can have."""
    content = read_bytes(path, None, RobotFileError, MAX_BYTES, "give reduced matrices, not whole ones")
    if not content.strip():
        raise matrix_error(str(path), "is empty", "write the matrices again")
    return content


def decode_text(content: bytes, path: Path) -> str:
    """The text of a file."""
    if b"\0" in content:
        raise matrix_error(str(path), "is binary, and neither MATLAB nor npz", "give .mat, .npz, .mtx or .pch")
    return content.decode("utf-8", errors="replace")


def _load(path: Path, node_numbers: Sequence[int]) -> ReducedMatrices:
    content = read_content(path)
    if content[:4] == b"PK\x03\x04":
        return from_arrays(_npz(content, path), path, node_numbers)
    if content[:6] == b"MATLAB" or content[:8] == b"\x89HDF\r\n\x1a\n":
        return from_arrays(_matlab(content, path), path, node_numbers)
    text = decode_text(content, path)
    start = text.lstrip()[:14].lower()
    if start.startswith("%%matrixmarket"):
        raise matrix_error(
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
        raise matrix_error(str(path), "is a punch file of Nastran that has no matrices", hint)
    raise matrix_error(
        str(path),
        "is not a known file of reduced matrices",
        "give .mat, .npz, Abaqus *MATRIX, Nastran DMIG, or Matrix Market with one file for each matrix",
    )


def _read_matrix(path: Path, key: str) -> tuple[list[Freedom] | None, Array]:
    """One matrix, and its freedoms if the file says them."""
    content = read_content(path)
    if content[:4] == b"PK\x03\x04" or content[:6] == b"MATLAB":
        arrays = _npz(content, path) if content[:2] == b"PK" else _matlab(content, path)
        candidates = [arrays[name] for name in ARRAYS[key] if name in arrays]
        if not candidates:
            raise matrix_error(str(path), f"has no array {key}", f"give it the name {key}", key)
        return None, real_numbers(candidates[0], key, path)
    text = decode_text(content, path)
    if text.lstrip()[:14].lower().startswith("%%matrixmarket"):
        return None, read_matrix_market(text, str(path))
    return read_entries(text, str(path))


def _npz(content: bytes, path: Path) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_BYTES:
                raise matrix_error(str(path), f"unpacks to more than {MAX_BYTES / 1e6:.0f} MB", "give reduced matrices")
        return read_npz(content, NAMES)
    except ParflexError:
        raise
    except Exception as error:  # what a damaged archive raises depends on where it is damaged
        raise _damaged(path, "npz", error) from None


def _matlab(content: bytes, path: Path) -> dict[str, Array]:
    from scipy.io import loadmat

    if content[:8] == b"\x89HDF\r\n\x1a\n" or content[:14] == b"MATLAB 7.3 MAT":
        raise matrix_error(str(path), "is a MATLAB 7.3 file (HDF5)", "save it with save(..., '-v7')")
    if _unpacked(content) > MAX_BYTES:
        raise matrix_error(str(path), f"unpacks to more than {MAX_BYTES / 1e6:.0f} MB", "give reduced matrices")
    try:
        variables = loadmat(io.BytesIO(content), variable_names=list(NAMES))
    except Exception as error:  # what a damaged file raises depends on where it is damaged
        raise _damaged(path, "MATLAB", error) from None
    arrays = {name: value for name, value in variables.items() if name in NAMES}
    return {name: value.toarray() if hasattr(value, "toarray") else value for name, value in arrays.items()}


def _unpacked(content: bytes) -> int:
    """Bytes that the elements of a MATLAB file unpack to, counted up to what is too many."""
    order, position, total = "<" if content[126:128] == b"IM" else ">", 128, 0
    while position + 8 <= len(content) and total <= MAX_BYTES:
        kind, size = struct.unpack(f"{order}II", content[position : position + 8])
        if kind == COMPRESSED:
            try:
                total += len(
                    zlib.decompressobj().decompress(content[position + 8 : position + 8 + size], MAX_BYTES + 1)
                )
            except zlib.error:
                return total  # damaged: said by the reader
        else:
            total += size
        position += 8 + size
    return total


def _damaged(path: Path, kind: str, error: Exception) -> RobotFileError:
    cut = isinstance(error, (zipfile.BadZipFile, zlib.error, EOFError, OSError, IndexError, ValueError))
    return matrix_error(
        str(path),
        f"is a damaged or truncated {kind} file" if cut else f"is not a {kind} file of matrices",
        "write it again",
    )


def real_numbers(values: Any, key: str, path: Path) -> Array:
    """Real numbers."""
    array = np.asarray(values)
    if np.iscomplexobj(array) or array.dtype.kind not in "fiu":
        content = "complex numbers" if np.iscomplexobj(array) else "no numbers"
        raise matrix_error(str(path), f"'{key}' holds {content}", "give real numbers", key)
    return array.astype(float)


def from_arrays(arrays: Mapping[str, Array], path: Path, node_numbers: Sequence[int]) -> ReducedMatrices:
    """Named arrays of a MATLAB or npz file: nodes first, six freedoms each, then modal coordinates."""
    known_arrays: dict[str, Array] = {}
    for key, names in ARRAYS.items():
        first = next((name for name in names if name in arrays), None)
        if first is not None:
            known_arrays[key] = real_numbers(arrays[first], first, path)
    file = str(path)
    matrices = {key: A for key, A in known_arrays.items() if key in WORDS}
    if "K" not in matrices or matrices["K"].ndim != 2:
        return from_freedoms(file, [], {key: A for key, A in matrices.items() if key != "K"})
    order = len(matrices["K"])
    raw = known_arrays["numbers"].ravel() if "numbers" in known_arrays else np.zeros(0)
    if not np.all(np.isfinite(raw)) or np.any(raw != np.round(raw)) or np.any(np.abs(raw) > LARGEST_NUMBER):
        raise matrix_error(
            file, "the numbers of nodes are not whole numbers", "give one for each interface node", "int_i"
        )
    numbers = [int(x) for x in raw] if "numbers" in known_arrays else None
    positions = known_arrays.get("positions")
    if positions is not None and (positions.ndim != 2 or positions.shape[1] != 3 or not np.all(np.isfinite(positions))):
        raise matrix_error(
            file, "the positions of nodes are not n x 3 numbers", "give x y z of each interface node", "int_xyz"
        )
    if numbers is None and positions is None:
        return from_freedoms(file, freedoms_by_count(order, node_numbers, file, matrices["K"]), matrices)
    numbers = numbers if numbers is not None else list(range(1, len(positions) + 1))  # type: ignore[arg-type]
    refuse_order(order, file)
    if positions is not None and len(positions) != len(numbers):
        raise matrix_error(file, f"{len(positions)} positions for {len(numbers)} nodes", "give one for each", "int_xyz")
    if 6 * len(numbers) > order:
        message = f"has {order} freedoms for {len(numbers)} nodes of six"
        raise matrix_error(file, message, "interface freedoms come first, x y z rx ry rz of each node", value=order)
    freedoms = [(number, component) for number in numbers for component in range(1, 7)]
    freedoms += [(k + 1, 0) for k in range(order - len(freedoms))]
    return from_freedoms(
        file, freedoms, matrices, None if positions is None else dict(zip(numbers, positions, strict=True))
    )


def read_abaqus(text: str, file: str) -> ReducedMatrices:
    """A substructure: nodes, freedoms, and a triangle of each matrix."""
    nodes: list[int] = []
    freedom_lists: list[list[int]] = []
    values: dict[str, list[float]] = {}
    section, current = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip().upper()
        if bare.startswith("**"):
            section = _comment(bare, section, nodes)
        elif bare.startswith("*"):
            keyword = bare.replace(" ", "")
            if keyword.startswith("*INCLUDE"):
                raise matrix_error(file, "includes another file", "write all in one file", value=f"line {number}")
            section, current = _keyword(keyword, file)
            if section == "values":
                values.setdefault(current, [])
        elif bare and section == "values":
            values[current] += _numbers(bare, file, number)
        elif bare and section in ("nodes", "freedoms"):  # a remark may stand between the two
            section = "freedoms"
            row = _numbers(bare, file, number)
            if not all(abs(x) < LARGEST_NUMBER and x == int(x) for x in row):
                raise matrix_error(
                    file, f"line {number} is not a list of freedoms", "write the matrices again", value=bare[:40]
                )
            freedom_lists.append([int(x) for x in row])
    freedoms = _freedoms(nodes, freedom_lists, file)
    matrices = {key: _triangle(entries, len(freedoms), key, file) for key, entries in values.items() if key}
    return from_freedoms(file, freedoms, matrices)


def _comment(bare: str, section: str, nodes: list[int]) -> str:
    """Nodes are listed in comments behind the line ELEMENT NODES."""
    if "ELEMENT NODES" in bare:
        return "nodes"
    numbers = bare[2:].replace(",", " ").split()
    if section == "nodes" and numbers and all(re.fullmatch(r"[+-]?\d{1,10}", x) for x in numbers):
        nodes += [int(x) for x in numbers]
        return "nodes"
    return "freedoms" if section == "nodes" else section


def _keyword(keyword: str, file: str) -> tuple[str, str]:
    if not keyword.startswith("*MATRIX"):
        return "", ""
    kind = next((part.partition("=")[2] for part in keyword.split(",") if part.startswith("TYPE=")), "")
    if kind in TYPES:
        return "values", TYPES[kind]
    if kind in ABAQUS_OMITTED:
        return "values", ""
    raise matrix_error(
        file, f"has a matrix of the type '{kind[:30]}'", "STIFFNESS, MASS and VISCOUS DAMPING are read", value=kind[:30]
    )


def _numbers(line: str, file: str, number: int) -> list[float]:
    try:
        return [float(x.replace("D", "E")) for x in line.replace(",", " ").split()]
    except ValueError:
        raise matrix_error(
            file, f"line {number} is not a row of numbers", "write the matrices again", value=line[:40]
        ) from None


def _freedoms(nodes: list[int], freedom_lists: list[list[int]], file: str) -> list[Freedom]:
    """Freedoms of each node: those of the first line, from the n-th node on those of a line that begins with n."""
    if not nodes or not freedom_lists:
        hint = "write it with *SUBSTRUCTURE MATRIX OUTPUT, OUTPUT FILE=USER DEFINED"
        raise matrix_error(file, "has no list of nodes and their freedoms", hint)
    components_from = {1: freedom_lists[0]} | {entry[0]: entry[1:] for entry in freedom_lists[1:]}
    freedoms: list[Freedom] = []
    current: list[int] = []
    for place, node in enumerate(nodes, 1):
        current = components_from.get(place, current)
        freedoms += [(node, component) for component in current] if node > 0 else [(node, 0)] * len(current)
    refuse_order(len(freedoms), file)
    if len(set(freedoms)) < len(freedoms):  # an internal node with several freedoms
        freedoms = [(k, 0) if component == 0 else (node, component) for k, (node, component) in enumerate(freedoms, 1)]
    return freedoms


def _triangle(values: list[float], order: int, key: str, file: str) -> Array:
    """The matrix whose lower triangle is written row by row."""
    need = order * (order + 1) // 2
    if len(values) != need:
        raise matrix_error(
            file,
            f"the matrix {key} has {len(values)} of the {need} numbers that {order} freedoms need",
            "the file is truncated, or its list of freedoms is another one: write it again",
            key,
            len(values),
        )
    A = np.zeros((order, order))
    A[np.tril_indices(order)] = values
    return A + np.tril(A, -1).T


def read_entries(text: str, file: str) -> tuple[list[Freedom], Array]:
    """Freedoms and matrix of a file with a line `node, freedom, node, freedom, value` for each entry."""
    entries: dict[tuple[Freedom, Freedom], float] = {}
    freedoms: dict[Freedom, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("*"):
            if bare.upper().startswith("*INCLUDE"):
                raise matrix_error(file, "includes another file", "write all in one file", value=f"line {number}")
            continue
        parts = bare.replace(",", " ").split()
        try:
            a, b, c, d = (int(x) for x in parts[:4])
            (value,) = (float(x) for x in parts[4:])
        except ValueError:
            hint = "lines are: node, freedom, node, freedom, value (FORMAT=MATRIX INPUT)"
            raise matrix_error(file, f"line {number} is not an entry of a matrix", hint, value=bare[:40]) from None
        first, second = ((node, component if node > 0 else 0) for node, component in ((a, b), (c, d)))
        freedoms |= {first: None, second: None}
        refuse_order(max(len(freedoms), 6), file)
        entries[first, second] = value
    if not entries:
        raise matrix_error(file, "has no entry of a matrix", "write it again")
    order = sorted(freedoms, key=in_order)
    place = {freedom: k for k, freedom in enumerate(order)}
    A = np.zeros((len(order), len(order)))
    for (first, second), value in entries.items():
        A[place[first], place[second]] = value
        if (second, first) not in entries:
            A[place[second], place[first]] = value
    return order, A


def cards(text: str, file: str) -> Iterable[list[str]]:
    """Entries of a bulk data file as lists of fields, the name first, continuations joined."""
    card: list[str] = []
    for line in text.splitlines():
        bare = line.split("$")[0].rstrip()
        if not bare:
            continue
        if bare.lstrip().upper().startswith("INCLUDE"):
            raise matrix_error(file, "includes another file", "write all in one file", value=bare[:40])
        first, *fields = _fields(bare)
        name = first.rstrip("*").strip()
        if name and not name.startswith("+"):
            if card:
                yield card
            card = [name.upper()]
        card += fields
    if card:
        yield card


def _fields(line: str) -> list[str]:
    """The name and the data fields of one line: eight of 8 columns, four of 16, or what commas part."""
    if "," in line:
        parts = [part.strip() for part in line.split(",")]
        return [parts[0], *parts[1:9]]
    width, count = (16, 4) if "*" in line[:8] else (8, 8)
    line = line.expandtabs(8)
    return [line[:8].strip(), *(line[8 + width * k : 8 + width * (k + 1)].strip() for k in range(count))]


def nastran_number(text: str, file: str) -> float:
    """A number as Nastran writes it: 1.5-3 and 1.5D-3 are 0.0015."""
    match = re.fullmatch(r"([+-]?\d*\.?\d*)(?:[eEdD]?([+-]?\d+))?", text)
    if not match or not re.search(r"\d", match[1]):
        raise matrix_error(file, f"'{text[:20]}' is not a number", "write the matrices again", value=text[:20])
    return float(f"{match[1]}e{match[2] or 0}")


def nastran_integer(text: str, file: str) -> int:
    """A whole number."""
    if not re.fullmatch(r"\d{1,10}", text):
        raise matrix_error(
            file, f"'{text[:20]}' is not a number of a point", "write the matrices again", value=text[:20]
        )
    return int(text)


def read_punch(text: str, file: str) -> ReducedMatrices:
    """All matrices of a punch file; rows are grid points by number, then scalar points."""
    file_entries: dict[str, dict[tuple[Freedom, Freedom], float]] = {}
    headers: dict[str, list[str]] = {}
    positions: dict[int, Array] = {}
    for card in cards(text, file):
        if card[0] == "GRID":
            _add_grid(card, positions, file)
        elif card[0] == "DMIG" and len(card) > 2:
            name = card[1].upper()
            if card[2] in ("0", ""):
                headers[name] = card
            else:
                _add_column(card, file_entries.setdefault(name, {}), file)
    chosen = _chosen(file_entries, file)
    for key, name in chosen.items():
        if name not in headers:
            raise matrix_error(file, f"the matrix {name} has no header", "the file is truncated: write it again", key)
        _check_head(headers[name], file)
    used_freedoms = {freedom for name in chosen.values() for pair in file_entries[name] for freedom in pair}
    freedoms = sorted(used_freedoms, key=in_order)
    refuse_order(len(freedoms), file)
    matrices = {key: _fill_matrix(file_entries[name], freedoms, headers[name], file) for key, name in chosen.items()}
    return from_freedoms(file, freedoms, matrices, positions)


def _add_grid(card: list[str], positions: dict[int, Array], file: str) -> None:
    fields = [*card[1:], *[""] * 8]
    point, cp, cd = fields[0], fields[1], fields[5]
    if cp not in ("", "0") or cd not in ("", "0"):
        what = "position" if cp not in ("", "0") else "freedoms"
        raise matrix_error(
            file,
            f"the {what} of GRID {point} are in the coordinate system {cp if what == 'position' else cd}",
            "give all interface nodes in basic axes (CP = CD = 0)",
            value=point,
        )
    positions[nastran_integer(point, file)] = np.array([nastran_number(x or "0.", file) for x in fields[2:5]])


def _check_head(card: list[str], file: str) -> None:
    fields = [*card[3:], *[""] * 4]
    if fields[1] not in ("1", "2"):
        raise matrix_error(file, f"the matrix {card[1]} is complex", "give real matrices", value=fields[1])
    if fields[0] not in ("1", "6"):
        raise matrix_error(
            file, f"the matrix {card[1]} is not square", "give M and K of interface and modes", value=fields[0]
        )


def _add_column(card: list[str], entries: dict[tuple[Freedom, Freedom], float], file: str) -> None:
    """A column: its freedom, then rows of freedom and value. Large fields have a fourth one that is empty."""
    card = [*card, "", "", ""]
    column = nastran_integer(card[2], file), nastran_integer(card[3] or "0", file)
    fields = card[5:]
    fields = fields + [""] * (-len(fields) % 4)
    for k in range(0, len(fields), 4):
        point, component, value = fields[k : k + 3]
        if point:
            if not value:
                raise matrix_error(
                    file, f"an entry of {card[1]} has no value", "the file is truncated: write it again", value=point
                )
            entries[(nastran_integer(point, file), nastran_integer(component or "0", file)), column] = nastran_number(
                value, file
            )


def _chosen(entries: dict[str, dict], file: str) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for letter, key in KINDS.items():
        names = [name for name in entries if name.startswith(letter) and name not in NASTRAN_OMITTED]
        usual = [name for name in names if name in USUAL]
        if len(names) > 1 and len(usual) != 1:
            raise matrix_error(
                file, f"has the matrices {', '.join(names)}", f"keep one whose name begins with {letter}", key
            )
        if names:
            chosen[key] = (usual or names)[0]
    if "K" not in chosen or "M" not in chosen:
        available = ", ".join(entries) or "none"
        raise matrix_error(
            file, f"has no pair of matrices K... and M..., but {available}", "punch KAAX and MAAX (EXTSEOUT(DMIGPCH))"
        )
    return chosen


def _fill_matrix(
    entries: dict[tuple[Freedom, Freedom], float], freedoms: list[Freedom], head: list[str], file: str
) -> Array:
    A = np.zeros((len(freedoms), len(freedoms)))
    index = {freedom: k for k, freedom in enumerate(freedoms)}
    symmetric = head[3] == "6"
    for (row, column), value in entries.items():
        A[index[row], index[column]] = value
        if symmetric:
            A[index[column], index[row]] = value
    return A


def read_matrix_market(text: str, file: str) -> Array:
    """One matrix in the Matrix Market format: coordinate or array, real or integer, general or symmetric."""
    lines = iter(text.splitlines())
    head = next(lines, "").lower().split()
    if len(head) != 5 or head[1] != "matrix" or head[2] not in ("coordinate", "array"):
        raise matrix_error(
            file, "has no valid Matrix Market header", "begin with %%MatrixMarket matrix coordinate real symmetric"
        )
    if head[3] not in ("real", "integer", "double") or head[4] not in ("general", "symmetric"):
        raise matrix_error(
            file, f"holds a {head[3]} {head[4]} matrix", "give a real matrix, general or symmetric", value=head[3]
        )
    rows = (line.split() for line in lines if line.strip() and not line.lstrip().startswith("%"))
    try:
        size = [int(x) for x in next(rows, [])]
        if len(size) != (3 if head[2] == "coordinate" else 2) or size[0] != size[1]:
            raise matrix_error(
                file, f"is {' x '.join(map(str, size[:2]))}, not a square matrix", "give M and K as they were written"
            )
        refuse_order(size[0], file)
        fill: Callable[..., Array] = _coordinates if head[2] == "coordinate" else _columns
        return fill(rows, size, head[4] == "symmetric", file)
    except (ValueError, IndexError):
        raise matrix_error(file, "has a line that is not an entry of a matrix", "write the matrix again") from None


def _coordinates(rows: Any, size: list[int], symmetric: bool, file: str) -> Array:
    A, count = np.zeros((size[0], size[0])), 0
    for count, (i, j, value) in enumerate(rows, 1):  # noqa: B007 - the last number is how many
        a, b = int(i) - 1, int(j) - 1
        if a < 0 or b < 0:
            raise ValueError
        A[a, b] = float(value)
        if symmetric:
            A[b, a] = A[a, b]
    if count != size[2]:
        raise matrix_error(
            file, f"has {count} of {size[2]} entries", "the file is truncated: write it again", value=count
        )
    return A


def _columns(rows: Any, size: list[int], symmetric: bool, file: str) -> Array:
    n = size[0]
    values = np.array([float(x) for row in rows for x in row])
    need = n * (n + 1) // 2 if symmetric else n * n
    if len(values) != need:
        raise matrix_error(
            file, f"has {len(values)} of {need} entries", "the file is truncated: write it again", value=len(values)
        )
    if not symmetric:
        return values.reshape(n, n).T
    A = np.zeros((n, n))
    A.T[np.triu_indices(n)] = values
    return A + np.tril(A, -1).T
