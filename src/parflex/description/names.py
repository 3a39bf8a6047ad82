"""Names of the robots that come with the package, without reading any of them."""

from __future__ import annotations

from importlib import resources


def catalogue_names() -> list[str]:
    """Names of the robots of the catalogue.

    Returns
    -------
    list[str]
        Names that `load` accepts.
    """
    folder = resources.files("parflex.description").joinpath("catalogue")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
