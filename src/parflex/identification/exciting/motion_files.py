"""Exciting motions as files: a table for a controller, and the series beside it for `simulate`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parflex.errors import InputError
from parflex.identification.exciting.excite import Excitation
from parflex.io import atomic_file, check_writable, refuse_overwrite
from parflex.robot.robot import Robot
from parflex.trajectories.files import check_target, write_table
from parflex.trajectories.motor_motion import plan_motion


def check_motion_target(robot: Robot, path: str) -> None:
    """Refuse files that cannot be written, or that belong to the robot, before anything is computed."""
    series = Path(path).with_suffix(".toml")
    refuse_overwrite([path, series], robot.files)
    check_target(path)
    check_writable(series)


def write_motion(robot: Robot, found: Excitation, path: str, step: float) -> list[str]:
    """Positions, velocities and accelerations of the motors at equal times; and the series."""
    columns = plan_motion(robot, found.motion, ignore_limits=True).table(step, found.motion["duration"])
    series = Path(path).with_suffix(".toml")
    files = [str(file) for file in write_table(path, columns, {"motion": found.motion})]
    lines = [f"{key} = {found.motion[key]!r}" for key in ("frequency", "duration")]
    for key in ("start", "sines", "cosines"):
        lines += [f"{key} = {_written(found.motion[key])}"]
    with atomic_file(series) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return [*files, str(series)]


def _written(table: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f'"{name}" = {value!r}' for name, value in table.items()) + " }"


def read_box(text: str | None) -> dict[str, list[float]] | None:
    """Limits of places from e.g. "x=-0.1:0.1,y=0:0.2"."""
    if text is None:
        return None
    found: dict[str, list[float]] = {}
    for part in text.split(","):
        axis, _, pair = part.partition("=")
        try:
            low, high = (float(word) for word in pair.split(":"))
        except ValueError:
            raise InputError(f"'{part}' is not a direction with two limits", key="workspace", value=part,
                             hint="give e.g. x=-0.1:0.1,y=0:0.2") from None  # fmt: skip
        found[axis.strip()] = [low, high]
    return found
