"""Names of places inside bodies."""

from __future__ import annotations

INSIDE = "@"  # between the name of a flexible body and a place inside it


def share_of_length(where: str) -> float | None:
    """A place along a beam as a share of its length, from 0 to 1; None where the text is nothing of the kind."""
    try:
        s = float(where)
    except ValueError:
        return None
    return s if 0 <= s <= 1 else None


def split_place(name: str) -> tuple[str, str] | None:
    """Body and place of `BEAM@0.5`; None where nothing of the kind is meant."""
    owner, mark, where = name.rpartition(INSIDE)
    return (owner, where) if mark and owner and where else None
