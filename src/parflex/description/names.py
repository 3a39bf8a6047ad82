"""Names: of the robots that come with the package, without reading any of them, and of places inside bodies."""

from __future__ import annotations

from importlib import resources

INSIDE = "@"  # between the name of a flexible body and a place inside it


def catalogue_names() -> list[str]:
    """Names of the robots of the catalogue.

    Returns
    -------
    list[str]
        Names that `load` accepts.
    """
    folder = resources.files("parflex.description").joinpath("catalogue")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


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
