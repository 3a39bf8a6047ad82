"""The robot file of an updated model: it extends the one that was given, and says only the numbers that differ."""

from __future__ import annotations

from pathlib import Path

from parflex.design.robot_difference import extending_text
from parflex.models.robot import Robot
from parflex.updating.updated import Updated
from parflex.whole_files import whole_file


def write_updated(source: str, robot: Robot, found: Updated, path: str) -> str:
    """Write the file; gives its path."""
    settings = {key: one["value"] for key, one in found.parameters.items()}
    text = extending_text(source, robot, settings, Path(path), "updated")
    with whole_file(path) as file:
        file.write(text.encode())
    return path
