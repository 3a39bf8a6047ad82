"""Robot files of the tests in `tests/robots`, and robots written by a test."""

import re
import textwrap
from pathlib import Path
from typing import Any

import parflex
from support.catalogue import CATALOGUE
from support.paths import ROBOTS

# never in the catalogue, written from the description of the file format alone
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


def robot_file(name: str) -> Path:
    """Return the file of a robot in `tests/robots`."""
    path = ROBOTS / f"{name}.toml"
    assert path.exists(), f"no robot '{name}' in {ROBOTS}"
    return path


def load_robot(name: str, **options: Any) -> parflex.Robot:
    """Load a robot of `tests/robots`; `settings` changes its numbers as in `parflex.load`."""
    return parflex.load(robot_file(name), **options)


def file_of(name: str) -> Path:
    """Return the file of a robot in `tests/robots`, else of the catalogue."""
    file = ROBOTS / f"{name}.toml"
    return file if file.exists() else CATALOGUE / f"{name}.toml"


def any_robot(name: str, **options: Any) -> parflex.Robot:
    """Load a robot of `tests/robots`, else of the catalogue."""
    return parflex.load(file_of(name), **options)


def with_constants(name: str, **constants: float) -> str:
    """Return the text of a robot of `tests/robots` with other constants."""
    text = robot_file(name).read_text(encoding="utf-8")
    for key, value in constants.items():
        text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        assert count == 1, f"'{name}' has {count} lines of '{key}'"
    return text


def write_robot(folder: Path, text: str, name: str = "robot") -> Path:
    """Write a robot file and return its path."""
    path = folder / f"{name}.toml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path
