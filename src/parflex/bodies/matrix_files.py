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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
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
    require,
)
from parflex.errors import ParflexError, RobotFileError
from parflex.io import read_bytes, read_npz

Array = np.ndarray
Entries = dict[tuple[Freedom, Freedom], float]
MAX_BYTES = 50_000_000
HARDLY = 1e-3  # of the forces of one node: rounding of forces that cancel
COMPRESSED = 15  # type number of a compressed element of a MATLAB file
ZIP, HDF5 = b"PK\x03\x04", b"\x89HDF\r\n\x1a\n"  # first bytes of npz files and of MATLAB 7.3 files
MARKET = "%%MATRIXMARKET"
AGAIN = "write the matrices again"
TRUNCATED = "the file is truncated: write it again"
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
ABAQUS_OMITTED = ("STRUCTURALDAMPING", "DAMPINGSTRUCTURAL", "LOAD")  # matrices that are ignored
KINDS = {"K": "K", "M": "M", "B": "D"}  # by the first letter: KAAX, MAAX, BAAX
USUAL = ("KAAX", "MAAX", "BAAX")
NASTRAN_OMITTED = ("K4AAX", "VAX", "PAX")  # structural damping, partitioning, loads


def load_matrices(file: str | Mapping[str, str], node_numbers: Sequence[int]) -> ReducedMatrices:
    """Read matrices from one file, or from one file each; `node_numbers` are the nodes that the robot names."""
    if isinstance(file, str):
        with _naming(file):
            return _read_file(file, node_numbers)
    parts = {key: _read_matrix(path, key) for key, path in file.items()}
    matrices = {key: A for key, (_, A) in parts.items()}
    listed = {key: freedoms for key, (freedoms, _) in parts.items() if freedoms is not None}
    with _naming(next(iter(file.values()))):
        if not listed:
            order = max(len(A) for A in matrices.values())
            return from_freedoms(_freedoms_by_count(order, node_numbers, matrices["K"]), matrices)
        all_freedoms = sorted({freedom for freedoms in listed.values() for freedom in freedoms}, key=in_order)
        refuse_order(len(all_freedoms))
        for key, freedoms in listed.items():  # missing degrees of freedom have zeros
            index = [all_freedoms.index(freedom) for freedom in freedoms]
            placed = np.zeros((len(all_freedoms), len(all_freedoms)))
            placed[np.ix_(index, index)] = matrices[key]
            matrices[key] = placed
        return from_freedoms(all_freedoms, matrices)


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Add the file to errors of its content."""
    try:
        yield
    except RobotFileError as error:
        error.file = error.file or file
        raise


def _read_file(file: str, node_numbers: Sequence[int]) -> ReducedMatrices:
    """Read all matrices of one file."""
    content = _content(file)
    arrays = _arrays(content)
    if arrays is not None:
        return _from_arrays(arrays, node_numbers)
    text = _text(content)
    upper = text.upper()
    if upper.lstrip().startswith(MARKET):
        hint = 'name a file for each: file = { M = "m.mtx", K = "k.mtx" }'
        raise matrix_error("is one matrix in the Matrix Market format", hint)
    if "*MATRIX" in upper or "*USER ELEMENT" in upper:
        return _read_abaqus(text)
    if "DMIG" in upper:
        return read_punch(text)
    if "BEGIN SUPER" in upper or "EXTERNAL SUPERELEMENT" in upper:
        hint = "its matrices are in another file: write them here too, EXTSEOUT(DMIGPCH)"
        raise matrix_error("is a punch file of Nastran that has no matrices", hint)
    hint = "give .mat, .npz, Abaqus *MATRIX, Nastran DMIG, or Matrix Market with one file for each matrix"
    raise matrix_error("is not a known file of reduced matrices", hint)


def _read_matrix(file: str, key: str) -> tuple[list[Freedom] | None, Array]:
    """Read one matrix, and its degrees of freedom if the file has them."""
    with _naming(file):
        content = _content(file)
        arrays = _arrays(content)
        if arrays is None:
            text = _text(content)
            is_market = text.upper().lstrip().startswith(MARKET)
            return (None, _read_matrix_market(text)) if is_market else _read_entries(text)
        name = next((name for name in ARRAYS[key] if name in arrays), None)
        require(name is not None, f"has no array {key}", f"give it the name {key}", key)
        return None, _real_numbers(arrays[str(name)], key)


def _content(file: str) -> bytes:
    """Return the bytes of a file; refuse files larger than matrices can be."""
    content = read_bytes(file, None, RobotFileError, MAX_BYTES, "give reduced matrices")
    require(content.strip(), "is empty", AGAIN)
    return content


def _text(content: bytes) -> str:
    """Return the text of a file; refuse references to other files."""
    require(b"\0" not in content, "is binary, and neither MATLAB nor npz", "give .mat, .npz, .mtx or .pch")
    text = content.decode("utf-8", errors="replace")
    if include := re.search(r"^\s*\*?\s*INCLUDE.{,30}", text, re.IGNORECASE | re.MULTILINE):
        raise matrix_error("includes another file", "write the whole input in one file", value=include[0].strip())
    return text


def _freedoms_by_count(order: int, node_numbers: Sequence[int], K: Array) -> list[Freedom]:
    """Return the degrees of freedom of a file with matrices alone: nodes 1, 2, ... to the last node of the robot.

    If K resists translations of these nodes, the count increases until they can translate freely.
    """
    refuse_order(order)
    count = max(node_numbers, default=0)
    message = f"has no node {count}: {order} degrees of freedom are at most {order // 6} nodes"
    hint = "count the interface nodes in the order of the matrix: 1, 2, ..."
    require(1 <= count <= order // 6, message, hint, "nodes", count)
    candidates = range(count, order // 6 + 1) if K.shape == (order, order) else ()
    count = next((candidate for candidate in candidates if _moves_freely(K, candidate)), count)
    nodes = [(number, component) for number in range(1, count + 1) for component in range(1, 7)]
    return nodes + [(k + 1, 0) for k in range(order - len(nodes))]


def _moves_freely(K: Array, count: int) -> bool:
    """Return whether the first nodes (six rows each) can be translated together without force."""
    rows = K / np.sqrt(np.maximum(np.abs(np.diag(K)), 1e-300))[:, None]
    together = rows[:, : 6 * count].reshape(len(K), count, 6)[:, :, :3].sum(axis=1)
    return bool(np.abs(together).max() < HARDLY * np.abs(rows[:, :3]).max())


def _arrays(content: bytes) -> dict[str, Array] | None:
    """Return the arrays of a MATLAB or npz file by name, or None for other content."""
    from scipy.io import loadmat

    hierarchical = content[:8] == HDF5 or content[:14] == b"MATLAB 7.3 MAT"
    require(not hierarchical, "is a MATLAB 7.3 file (HDF5)", "save it with save(..., '-v7')")
    if content[:4] != ZIP and content[:6] != b"MATLAB":
        return None
    kind, message = "npz" if content[:4] == ZIP else "MATLAB", f"unpacks to more than {MAX_BYTES / 1e6:.0f} MB"
    try:
        if kind == "npz":
            size = sum(entry.file_size for entry in zipfile.ZipFile(io.BytesIO(content)).infolist())
        else:
            size = _matlab_size(content)
        require(size <= MAX_BYTES, message, "give reduced matrices")
        if kind == "npz":
            return read_npz(content, NAMES)
        variables = loadmat(io.BytesIO(content), variable_names=list(NAMES))
    except ParflexError:
        raise
    except Exception as error:  # what a damaged file raises depends on where it is damaged
        cut = isinstance(error, (zipfile.BadZipFile, zlib.error, EOFError, OSError, IndexError, ValueError))
        message = f"is a damaged or truncated {kind} file" if cut else f"is not a {kind} file of matrices"
        raise matrix_error(message, "write it again") from None
    arrays = {name: value for name, value in variables.items() if name in NAMES}
    return {name: value.toarray() if hasattr(value, "toarray") else value for name, value in arrays.items()}


def _matlab_size(content: bytes) -> int:
    """Return the unpacked size of the elements of a MATLAB file in bytes, counting up to the limit."""
    order, position, total = "<" if content[126:128] == b"IM" else ">", 128, 0
    while position + 8 <= len(content) and total <= MAX_BYTES:
        kind, size = struct.unpack(f"{order}II", content[position : position + 8])
        position += 8
        if kind == COMPRESSED:
            try:
                total += len(zlib.decompressobj().decompress(content[position : position + size], MAX_BYTES + 1))
            except zlib.error:
                return total  # damaged: reported by the reader
        else:
            total += size
        position += size
    return total


def _real_numbers(values: Any, key: str) -> Array:
    """Return an array of real numbers; raise for any other."""
    array = np.asarray(values)
    content = "complex numbers" if np.iscomplexobj(array) else "no numbers"
    require(array.dtype.kind in "fiu", f"'{key}' holds {content}", "give real numbers", key)
    return array.astype(float)


def _from_arrays(arrays: Mapping[str, Array], node_numbers: Sequence[int]) -> ReducedMatrices:
    """Return matrices from named arrays: nodes first, six degrees of freedom each, then modal coordinates."""
    first_names = {key: next((name for name in names if name in arrays), None) for key, names in ARRAYS.items()}
    known = {key: _real_numbers(arrays[name], name) for key, name in first_names.items() if name is not None}
    matrices = {key: A for key, A in known.items() if key in WORDS}
    if "K" not in matrices or matrices["K"].ndim != 2:
        return from_freedoms([], {key: A for key, A in matrices.items() if key != "K"})
    order, raw, positions = len(matrices["K"]), known.get("numbers", np.zeros(0)).ravel(), known.get("positions")
    whole = np.all(np.abs(raw) <= LARGEST_NUMBER) and np.all(raw == np.round(raw))  # not NaN
    require(whole, "the numbers of nodes are not whole numbers", "give one for each interface node", "int_i")
    points = positions is None or (positions.ndim == 2 and positions.shape[1] == 3 and np.all(np.isfinite(positions)))
    hint = "give x y z of each interface node"
    require(points, "the positions of nodes are not n x 3 numbers", hint, "int_xyz")
    if "numbers" in known:
        numbers = [int(x) for x in raw]
    elif positions is None:
        return from_freedoms(_freedoms_by_count(order, node_numbers, matrices["K"]), matrices)
    else:
        numbers = list(range(1, len(positions) + 1))
    refuse_order(order)
    if positions is not None:
        message = f"{len(positions)} positions for {len(numbers)} nodes"
        require(len(positions) == len(numbers), message, "give one for each", "int_xyz")
    message, hint = (
        f"has {order} degrees of freedom for {len(numbers)} nodes of six",
        "degrees of freedom of interface nodes come first, six per node",
    )
    require(6 * len(numbers) <= order, message, hint, value=order)
    freedoms = [(number, component) for number in numbers for component in range(1, 7)]
    freedoms += [(k + 1, 0) for k in range(order - len(freedoms))]
    places = None if positions is None else dict(zip(numbers, positions, strict=True))
    return from_freedoms(freedoms, matrices, places)


def _tokens(line: str) -> list[str]:
    """Split a line at commas and blanks."""
    return line.replace(",", " ").split()


def read_number(text: str) -> float:
    """Read a number in Fortran notation: 1.5-3 and 1.5D-3 are 0.0015."""
    match = re.fullmatch(r"([+-]?\d*\.?\d*)(?:[eEdD]?([+-]?\d+))?", text)
    if not match or not re.search(r"\d", match[1]):
        raise matrix_error(f"'{text[:20]}' is not a number", AGAIN, value=text[:20])
    return float(f"{match[1]}e{match[2] or 0}")


def read_integer(text: str, what: str = "a number of a point", signed: bool = False) -> int:
    """Read an integer of at most ten digits."""
    valid = re.fullmatch(r"[+-]?\d{1,10}" if signed else r"\d{1,10}", text)
    require(valid, f"'{text[:20]}' is not {what}", AGAIN, value=text[:20])
    return int(text)


def _filled(entries: Entries, freedoms: Sequence[Freedom], symmetric: bool = True) -> Array:
    """Return the matrix of entries; mirror entries of a symmetric matrix unless the file has both triangles."""
    A, index = np.zeros((len(freedoms), len(freedoms))), {freedom: k for k, freedom in enumerate(freedoms)}
    for (row, column), value in entries.items():
        A[index[row], index[column]] = value
        if symmetric and (column, row) not in entries:
            A[index[column], index[row]] = value
    return A


def _read_abaqus(text: str) -> ReducedMatrices:
    """Read a substructure: nodes, degrees of freedom, and a triangle of each matrix."""
    nodes: list[int] = []
    freedom_lists: list[list[int]] = []
    values: dict[str, list[float]] = {}
    section, current = "", ""
    for bare in map(str.strip, text.upper().splitlines()):
        if bare.startswith("**"):  # nodes are listed in comments behind the line ELEMENT NODES
            numbers = _tokens(bare[2:])
            if "ELEMENT NODES" in bare:
                section = "nodes"
            elif section == "nodes" and numbers and all(re.fullmatch(r"[+-]?\d{1,10}", x) for x in numbers):
                nodes += map(int, numbers)
            elif section == "nodes":
                section = "freedoms"
        elif bare.startswith("*"):
            section, current = _keyword(bare.replace(" ", ""))
            if section:
                values.setdefault(current, [])
        elif bare and section == "values":
            values[current] += [read_number(x) for x in _tokens(bare)]
        elif bare and section:  # comments may separate nodes and degrees of freedom
            section = "freedoms"
            freedom_lists.append(
                [read_integer(x, "in a list of degrees of freedom", signed=True) for x in _tokens(bare)]
            )
    freedoms = _freedoms(nodes, freedom_lists)
    return from_freedoms(freedoms, {key: _triangle(A, len(freedoms), key) for key, A in values.items() if key})


def _keyword(keyword: str) -> tuple[str, str]:
    if not keyword.startswith("*MATRIX"):
        return "", ""
    kind = next((part.partition("=")[2] for part in keyword.split(",") if part.startswith("TYPE=")), "")
    if kind in TYPES or kind in ABAQUS_OMITTED:
        return "values", TYPES.get(kind, "")
    hint = "STIFFNESS, MASS and VISCOUS DAMPING are read"
    raise matrix_error(f"has a matrix of the type '{kind[:30]}'", hint, value=kind[:30])


def _freedoms(nodes: list[int], freedom_lists: list[list[int]]) -> list[Freedom]:
    """Return the degrees of freedom of each node; a line that begins with n applies from the n-th node on."""
    hint = "write it with *SUBSTRUCTURE MATRIX OUTPUT, OUTPUT FILE=USER DEFINED"
    require(nodes and freedom_lists, "has no list of nodes and their degrees of freedom", hint)
    components_from = {1: freedom_lists[0]} | {entry[0]: entry[1:] for entry in freedom_lists[1:]}
    freedoms: list[Freedom] = []
    current: list[int] = []
    for place, node in enumerate(nodes, 1):
        current = components_from.get(place, current)
        freedoms += [(node, component) for component in current] if node > 0 else [(node, 0)] * len(current)
    refuse_order(len(freedoms))
    if len(set(freedoms)) < len(freedoms):  # an internal node with several degrees of freedom
        freedoms = [(k, 0) if component == 0 else (node, component) for k, (node, component) in enumerate(freedoms, 1)]
    return freedoms


def _triangle(values: list[float], order: int, key: str) -> Array:
    """Return the matrix from its lower triangle, row by row."""
    need = order * (order + 1) // 2
    message = f"the matrix {key} has {len(values)} of the {need} numbers for {order} degrees of freedom"
    hint = "the file is truncated, or its list of degrees of freedom is wrong: write it again"
    require(len(values) == need, message, hint, key, len(values))
    A = np.zeros((order, order))
    A[np.tril_indices(order)] = values
    return A + np.tril(A, -1).T


def _read_entries(text: str) -> tuple[list[Freedom], Array]:
    """Read degrees of freedom and matrix from lines `node, freedom, node, freedom, value`."""
    entries: Entries = {}
    freedoms: set[Freedom] = set()
    for number, bare in enumerate(map(str.strip, text.splitlines()), 1):
        if not bare or bare.startswith("*"):
            continue
        parts = _tokens(bare)
        valid = len(parts) == 5 and all(re.fullmatch(r"[+-]?\d{1,10}", x) for x in parts[:4])
        hint = "lines are: node, freedom, node, freedom, value (FORMAT=MATRIX INPUT)"
        require(valid, f"line {number} is not an entry of a matrix", hint, value=bare[:40])
        a, b, c, d = map(int, parts[:4])
        first, second = (a, b if a > 0 else 0), (c, d if c > 0 else 0)
        freedoms |= {first, second}
        refuse_order(max(len(freedoms), 6))
        entries[first, second] = read_number(parts[4])
    require(entries, "has no entry of a matrix", AGAIN)
    order = sorted(freedoms, key=in_order)
    return order, _filled(entries, order)


def cards(text: str) -> Iterable[list[str]]:
    """Return entries of a bulk data file as lists of fields, name first, with continuations joined."""
    card: list[str] = []
    for line in text.splitlines():
        bare = line.split("$")[0].rstrip()
        if not bare:
            continue
        first, *fields = _fields(bare)
        name = first.rstrip("*").strip().upper()
        if name and not name.startswith("+"):
            if card:
                yield card
            card = [name]
        card += fields
    if card:
        yield card


def _fields(line: str) -> list[str]:
    """Return name and data fields of one line: eight of 8 columns, four of 16, or separated by commas."""
    if "," in line:
        parts = [part.strip() for part in line.split(",")]
        return [parts[0], *parts[1:9]]
    width, count = (16, 4) if "*" in line[:8] else (8, 8)
    line = line.expandtabs(8)
    return [line[:8].strip(), *(line[8 + width * k : 8 + width * (k + 1)].strip() for k in range(count))]


def read_punch(text: str) -> ReducedMatrices:
    """Read all matrices of a punch file; rows are grid points by number, then scalar points."""
    file_entries: dict[str, Entries] = {}
    headers: dict[str, list[str]] = {}
    positions: dict[int, Array] = {}
    for card in cards(text):
        if card[0] == "GRID":
            _add_grid(card, positions)
        elif card[0] == "DMIG" and len(card) > 2:
            name = card[1].upper()
            if card[2] in ("0", ""):
                headers[name] = [*card, *[""] * 4]
            else:
                _add_column(card, file_entries.setdefault(name, {}))
    chosen = _chosen(file_entries)
    for key, name in chosen.items():
        require(name in headers, f"the matrix {name} has no header", TRUNCATED, key)
        form, kind = headers[name][3:5]
        require(kind in ("1", "2"), f"the matrix {name} is complex", "give real matrices", value=kind)
        hint = "give M and K of interface and modes"
        require(form in ("1", "6"), f"the matrix {name} is not square", hint, value=form)
    used = {freedom for name in chosen.values() for pair in file_entries[name] for freedom in pair}
    freedoms = sorted(used, key=in_order)
    refuse_order(len(freedoms))
    matrices = {key: _filled(file_entries[name], freedoms, headers[name][3] == "6") for key, name in chosen.items()}
    return from_freedoms(freedoms, matrices, positions)


def _add_grid(card: list[str], positions: dict[int, Array]) -> None:
    fields = [*card[1:], *[""] * 8]
    for what, system in (("position", fields[1]), ("freedoms", fields[5])):
        message = f"the {what} of GRID {fields[0]} are in the coordinate system {system}"
        require(system in ("", "0"), message, "give all interface nodes in basic axes (CP = CD = 0)", value=fields[0])
    positions[read_integer(fields[0])] = np.array([read_number(x or "0.") for x in fields[2:5]])


def _add_column(card: list[str], entries: Entries) -> None:
    """Add the entries of a DMIG column; large fields have an empty fourth field."""
    card = [*card, "", "", ""]
    column = read_integer(card[2]), read_integer(card[3] or "0")
    fields = card[5:] + [""] * (-len(card[5:]) % 4)
    for k in range(0, len(fields), 4):
        point, component, value = fields[k : k + 3]
        require(value or not point, f"an entry of {card[1]} has no value", TRUNCATED, value=point)
        if point:
            row = read_integer(point), read_integer(component or "0")
            entries[row, column] = read_number(value)


def _chosen(entries: dict[str, Entries]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for letter, key in KINDS.items():
        names = [name for name in entries if name.startswith(letter) and name not in NASTRAN_OMITTED]
        usual, hint = [name for name in names if name in USUAL], f"keep one whose name begins with {letter}"
        require(len(names) < 2 or len(usual) == 1, f"has the matrices {', '.join(names)}", hint, key)
        if names:
            chosen[key] = (usual or names)[0]
    message = f"has no pair of matrices K... and M..., but {', '.join(entries) or 'none'}"
    require("K" in chosen and "M" in chosen, message, "punch KAAX and MAAX (EXTSEOUT(DMIGPCH))")
    return chosen


def _read_matrix_market(text: str) -> Array:
    """Read one Matrix Market file: coordinate or array, real or integer, general or symmetric."""
    lines = iter(text.splitlines())
    head = next(lines, "").lower().split()
    valid = len(head) == 5 and head[1] == "matrix" and head[2] in ("coordinate", "array")
    hint = "begin with %%MatrixMarket matrix coordinate real symmetric"
    require(valid, "has no valid Matrix Market header", hint)
    real = head[3] in ("real", "integer", "double") and head[4] in ("general", "symmetric")
    require(real, f"holds a {head[3]} {head[4]} matrix", "give a real matrix, general or symmetric", value=head[3])
    coordinates, symmetric = head[2] == "coordinate", head[4] == "symmetric"
    tokens = (x for line in lines if not line.lstrip().startswith("%") for x in line.split())
    size = [read_integer(x, "a size") for x in islice(tokens, 3 if coordinates else 2)]
    square, shape = len(size) >= 2 and size[0] == size[1], " x ".join(map(str, size[:2]))
    require(square, f"is {shape}, not a square matrix", "give M and K as they were written")
    n = size[0]
    refuse_order(n)
    need = 3 * min(size[-1], n * n) if coordinates else n * (n + 1) // 2 if symmetric else n * n
    values = np.array([read_number(x) for x in islice(tokens, need + 1)])
    message = f"has {'more than ' * (len(values) > need)}{min(len(values), need)} of {need} numbers"
    require(len(values) == need, message, TRUNCATED, value=len(values))
    A = np.zeros((n, n))
    if not coordinates:
        A[np.triu_indices(n) if symmetric else ...] = values if symmetric else values.reshape(n, n)
        return A + np.triu(A, 1).T if symmetric else A.T
    places = values.reshape(-1, 3)[:, :2]
    require(np.all((places >= 1) & (places <= n)), f"has an entry outside of its {n} rows and columns", AGAIN)
    rows, columns = places.astype(int).T - 1
    A[rows, columns] = values[2::3]
    if symmetric:
        A[columns, rows] = values[2::3]
    return A
