"""Robot files of the tests in `tests/robots`, and robots written by a test."""

import textwrap
from pathlib import Path
from typing import Any

import parflex
from support.paths import ROBOTS


def robot_file(name: str) -> Path:
    """Return the file of a robot in `tests/robots`."""
    path = ROBOTS / f"{name}.toml"
    assert path.exists(), f"no robot '{name}' in {ROBOTS}"
    return path


def load_robot(name: str, **options: Any) -> parflex.Robot:
    """Load a robot of `tests/robots`; `settings` changes its numbers as in `parflex.load`."""
    return parflex.load(robot_file(name), **options)


def write_robot(folder: Path, text: str, name: str = "robot") -> Path:
    """Write a robot file and return its path."""
    path = folder / f"{name}.toml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path
