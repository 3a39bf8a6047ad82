"""Matrices on DMIG entries of a Nastran punch file: small, large or free fields, real numbers.

Points with the component 0 are scalar points: modal coordinates. Positions are those of GRID entries, where there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from parflex.bodies.super_elements.reduced_matrices import (
    Freedom,
    ReducedMatrices,
    from_freedoms,
    in_order,
    refuse,
    refuse_order,
)

Array = np.ndarray
KINDS = {"K": "K", "M": "M", "B": "D"}  # by the first letter: KAAX, MAAX, BAAX
USUAL = ("KAAX", "MAAX", "BAAX")
LEFT_OUT = ("K4AAX", "VAX", "PAX")  # structural damping, partitioning, loads


def cards(text: str, file: str) -> Iterable[list[str]]:
    """Entries of a bulk data file as lists of fields, the name first, continuations joined."""
    card: list[str] = []
    for line in text.splitlines():
        bare = line.split("$")[0].rstrip()
        if not bare:
            continue
        if bare.lstrip().upper().startswith("INCLUDE"):
            raise refuse(file, "includes another file", "write all in one file", value=bare[:40])
        first, *rest = _fields(bare)
        name = first.rstrip("*").strip()
        if name and not name.startswith("+"):
            if card:
                yield card
            card = [name.upper()]
        card += rest
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


def number(text: str, file: str) -> float:
    """A number as Nastran writes it: 1.5-3 and 1.5D-3 are 0.0015."""
    match = re.fullmatch(r"([+-]?\d*\.?\d*)(?:[eEdD]?([+-]?\d+))?", text)
    if not match or not re.search(r"\d", match[1]):
        raise refuse(file, f"'{text[:20]}' is not a number", "write the matrices again", value=text[:20])
    return float(f"{match[1]}e{match[2] or 0}")


def whole(text: str, file: str) -> int:
    """A whole number."""
    if not re.fullmatch(r"\d{1,10}", text):
        raise refuse(file, f"'{text[:20]}' is not a number of a point", "write the matrices again", value=text[:20])
    return int(text)


def read_punch(text: str, file: str) -> ReducedMatrices:
    """All matrices of a punch file; rows are grid points by number, then scalar points."""
    found: dict[str, dict[tuple[Freedom, Freedom], float]] = {}
    heads: dict[str, list[str]] = {}
    places: dict[int, Array] = {}
    for card in cards(text, file):
        if card[0] == "GRID":
            _add_grid(card, places, file)
        elif card[0] == "DMIG" and len(card) > 2:
            name = card[1].upper()
            if card[2] in ("0", ""):
                heads[name] = card
            else:
                _add_column(card, found.setdefault(name, {}), file)
    chosen = _chosen(found, file)
    for key, name in chosen.items():
        if name not in heads:
            raise refuse(file, f"the matrix {name} has no header", "the file is truncated: write it again", key)
        _check_head(heads[name], file)
    together = {one for name in chosen.values() for pair in found[name] for one in pair}
    freedoms = sorted(together, key=in_order)
    refuse_order(len(freedoms), file)
    matrices = {key: _filled(found[name], freedoms, heads[name], file) for key, name in chosen.items()}
    return from_freedoms(file, freedoms, matrices, places)


def _add_grid(card: list[str], places: dict[int, Array], file: str) -> None:
    fields = [*card[1:], *[""] * 8]
    point, axes, moved = fields[0], fields[1], fields[5]
    if axes not in ("", "0") or moved not in ("", "0"):
        what = "position" if axes not in ("", "0") else "freedoms"
        raise refuse(
            file,
            f"the {what} of GRID {point} are in the coordinate system {axes if what == 'position' else moved}",
            "give all interface nodes in basic axes (CP = CD = 0)",
            value=point,
        )
    places[whole(point, file)] = np.array([number(x or "0.", file) for x in fields[2:5]])


def _check_head(card: list[str], file: str) -> None:
    fields = [*card[3:], *[""] * 4]
    if fields[1] not in ("1", "2"):
        raise refuse(file, f"the matrix {card[1]} is complex", "give real matrices", value=fields[1])
    if fields[0] not in ("1", "6"):
        raise refuse(
            file, f"the matrix {card[1]} is not square", "give M and K of interface and modes", value=fields[0]
        )


def _add_column(card: list[str], entries: dict[tuple[Freedom, Freedom], float], file: str) -> None:
    """A column: its freedom, then rows of freedom and value. Large fields have a fourth one that is empty."""
    card = [*card, "", "", ""]
    column = whole(card[2], file), whole(card[3] or "0", file)
    rest = card[5:]
    rest = rest + [""] * (-len(rest) % 4)
    for k in range(0, len(rest), 4):
        point, component, value = rest[k : k + 3]
        if point:
            if not value:
                raise refuse(
                    file, f"an entry of {card[1]} has no value", "the file is truncated: write it again", value=point
                )
            entries[(whole(point, file), whole(component or "0", file)), column] = number(value, file)


def _chosen(found: dict[str, dict], file: str) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for letter, key in KINDS.items():
        names = [name for name in found if name.startswith(letter) and name not in LEFT_OUT]
        usual = [name for name in names if name in USUAL]
        if len(names) > 1 and len(usual) != 1:
            raise refuse(file, f"has the matrices {', '.join(names)}", f"keep one whose name begins with {letter}", key)
        if names:
            chosen[key] = (usual or names)[0]
    if "K" not in chosen or "M" not in chosen:
        have = ", ".join(found) or "none"
        raise refuse(
            file, f"has no pair of matrices K... and M..., but {have}", "punch KAAX and MAAX (EXTSEOUT(DMIGPCH))"
        )
    return chosen


def _filled(
    entries: dict[tuple[Freedom, Freedom], float], freedoms: list[Freedom], head: list[str], file: str
) -> Array:
    A = np.zeros((len(freedoms), len(freedoms)))
    place = {one: k for k, one in enumerate(freedoms)}
    symmetric = head[3] == "6"
    for (row, column), value in entries.items():
        A[place[row], place[column]] = value
        if symmetric:
            A[place[column], place[row]] = value
    return A
