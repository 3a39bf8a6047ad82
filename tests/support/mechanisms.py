"""Robots that were never in the catalogue, written from the description of the file format alone."""

from pathlib import Path

from support.paths import ROBOTS

INVENTED = {  # freedoms, counted by hand; none has redundant rows
    "3-prs": 3,
    "planar-rpr": 3,
    "spatial-four-bar": 1,
    "rccc": 1,
    "wrist": 3,
    "two-bodies": 3,
    "nested": 2,
    "six-ups": 6,
}


def invented(name: str) -> Path:
    return ROBOTS / f"{name}.toml"
