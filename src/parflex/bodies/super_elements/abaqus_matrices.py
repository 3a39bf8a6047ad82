"""Matrices that Abaqus (and CalculiX) write: of a substructure by rows of a triangle, or entry by entry.

The first form follows `*MATRIX,TYPE=STIFFNESS` and `TYPE=MASS` behind a list of nodes and of their freedoms; nodes with
numbers below one are internal: their one freedom is a modal coordinate. The second has a line
`node, freedom, node, freedom, value` for each entry of one triangle or of both.
"""

from __future__ import annotations

import re

import numpy as np

from parflex.bodies.super_elements.reduced_matrices import (
    LARGEST_NUMBER,
    Freedom,
    ReducedMatrices,
    from_freedoms,
    in_order,
    refuse,
    refuse_order,
)

Array = np.ndarray
TYPES = {"STIFFNESS": "K", "MASS": "M", "VISCOUSDAMPING": "D", "DAMPINGVISCOUS": "D", "DAMPING": "D"}
LEFT_OUT = ("STRUCTURALDAMPING", "DAMPINGSTRUCTURAL", "LOAD")  # of which nothing is made


def read_abaqus(text: str, file: str) -> ReducedMatrices:
    """A substructure: nodes, freedoms, and a triangle of each matrix."""
    nodes: list[int] = []
    lists: list[list[int]] = []
    values: dict[str, list[float]] = {}
    reading, current = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip().upper()
        if bare.startswith("**"):
            reading = _comment(bare, reading, nodes)
        elif bare.startswith("*"):
            word = bare.replace(" ", "")
            if word.startswith("*INCLUDE"):
                raise refuse(file, "includes another file", "write all in one file", value=f"line {number}")
            reading, current = _keyword(word, file)
            if reading == "values":
                values.setdefault(current, [])
        elif bare and reading == "values":
            values[current] += _numbers(bare, file, number)
        elif bare and reading in ("nodes", "freedoms"):  # a remark may stand between the two
            reading = "freedoms"
            own = _numbers(bare, file, number)
            if not all(abs(x) < LARGEST_NUMBER and x == int(x) for x in own):
                raise refuse(
                    file, f"line {number} is not a list of freedoms", "write the matrices again", value=bare[:40]
                )
            lists.append([int(x) for x in own])
    freedoms = _freedoms(nodes, lists, file)
    matrices = {key: _triangle(found, len(freedoms), key, file) for key, found in values.items() if key}
    return from_freedoms(file, freedoms, matrices)


def _comment(bare: str, reading: str, nodes: list[int]) -> str:
    """Nodes are listed in comments behind the line ELEMENT NODES."""
    if "ELEMENT NODES" in bare:
        return "nodes"
    numbers = bare[2:].replace(",", " ").split()
    if reading == "nodes" and numbers and all(re.fullmatch(r"[+-]?\d{1,10}", x) for x in numbers):
        nodes += [int(x) for x in numbers]
        return "nodes"
    return "freedoms" if reading == "nodes" else reading


def _keyword(word: str, file: str) -> tuple[str, str]:
    if not word.startswith("*MATRIX"):
        return "", ""
    kind = next((part.partition("=")[2] for part in word.split(",") if part.startswith("TYPE=")), "")
    if kind in TYPES:
        return "values", TYPES[kind]
    if kind in LEFT_OUT:
        return "values", ""
    raise refuse(
        file, f"has a matrix of the type '{kind[:30]}'", "STIFFNESS, MASS and VISCOUS DAMPING are read", value=kind[:30]
    )


def _numbers(line: str, file: str, number: int) -> list[float]:
    try:
        return [float(x.replace("D", "E")) for x in line.replace(",", " ").split()]
    except ValueError:
        raise refuse(
            file, f"line {number} is not a row of numbers", "write the matrices again", value=line[:40]
        ) from None


def _freedoms(nodes: list[int], lists: list[list[int]], file: str) -> list[Freedom]:
    """Freedoms of each node: those of the first line, from the n-th node on those of a line that begins with n."""
    if not nodes or not lists:
        hint = "write it with *SUBSTRUCTURE MATRIX OUTPUT, OUTPUT FILE=USER DEFINED"
        raise refuse(file, "has no list of nodes and their freedoms", hint)
    own = {1: lists[0]} | {entry[0]: entry[1:] for entry in lists[1:]}
    found: list[Freedom] = []
    current: list[int] = []
    for place, node in enumerate(nodes, 1):
        current = own.get(place, current)
        found += [(node, component) for component in current] if node > 0 else [(node, 0)] * len(current)
    refuse_order(len(found), file)
    if len(set(found)) < len(found):  # an internal node with several freedoms
        found = [(k, 0) if component == 0 else (node, component) for k, (node, component) in enumerate(found, 1)]
    return found


def _triangle(values: list[float], order: int, key: str, file: str) -> Array:
    """The matrix whose lower triangle is written row by row."""
    need = order * (order + 1) // 2
    if len(values) != need:
        raise refuse(
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
                raise refuse(file, "includes another file", "write all in one file", value=f"line {number}")
            continue
        parts = bare.replace(",", " ").split()
        try:
            a, b, c, d = (int(x) for x in parts[:4])
            (value,) = (float(x) for x in parts[4:])
        except ValueError:
            hint = "lines are: node, freedom, node, freedom, value (FORMAT=MATRIX INPUT)"
            raise refuse(file, f"line {number} is not an entry of a matrix", hint, value=bare[:40]) from None
        first, second = ((node, component if node > 0 else 0) for node, component in ((a, b), (c, d)))
        freedoms |= {first: None, second: None}
        refuse_order(max(len(freedoms), 6), file)
        entries[first, second] = value
    if not entries:
        raise refuse(file, "has no entry of a matrix", "write it again")
    order = sorted(freedoms, key=in_order)
    place = {one: k for k, one in enumerate(order)}
    A = np.zeros((len(order), len(order)))
    for (first, second), value in entries.items():
        A[place[first], place[second]] = value
        if (second, first) not in entries:
            A[place[second], place[first]] = value
    return order, A
