"""Frames whose motions a run records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.errors import InputError, did_you_mean
from parflex.robot.robot import Robot
from parflex.simulation.columns import refuse_shared_names


def recorded_frames(robot: Robot, frames: Sequence[str] | None) -> list[str]:
    """Frames that are recorded: the end effector under all its names, or those that are named."""
    places = robot.tree.places
    if frames is None:
        end = robot.tree.end_effector
        same = [
            point.name for point in robot.description.point if point.frame == end and _same(places, point.name, end)
        ]
        return refuse_shared_names(robot, [*same, end])
    for name in frames:
        if not robot.tree.has(name, "frames"):
            raise InputError(f"there is no frame '{name}'", key="frames", value=name, hint=did_you_mean(name, places))
    return refuse_shared_names(robot, list(dict.fromkeys(frames)) or [robot.tree.end_effector])


def _same(places: Mapping[str, Any], name: str, other: str) -> bool:
    """Whether two frames coincide."""
    one, two = places[name], places[other]
    return np.array_equal(one.position, two.position) and np.array_equal(one.rotation, two.rotation)
