"""Values of a response at many poses, in many designs, by the programs of maps: one call for all of them.

Frequencies and masses go this way; of other responses, and of robots that maps do not cover, each pose is asked alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.design.questions import ResponseQuestion
from parflex.maps.api import many_frequencies
from parflex.maps.parameters import numbers_of_designs
from parflex.robot.configuration import Pose
from parflex.robot.coordinate_names import read_row
from parflex.robot.robot import Robot
from parflex.spatial.batched import OneNumberError

Array = np.ndarray
WORTH = 6  # poses and designs from which a program pays


def values_in_designs(robot: Robot, question: ResponseQuestion, designs: Mapping[str, Array]) -> Array | None:
    """Values of a response, designs x poses; not a number where a design cannot be. None: not covered.

    Without designs it is the robot as it is.
    """
    count = len(next(iter(designs.values()))) if designs else 1
    if question.tolerances is not None:
        return None
    if question.response.name == "mass" and not question.argument and designs:
        return _masses(robot, designs, len(question.poses))
    table = _pose_table(robot, question.poses)
    number = int(question.argument or 1) if (question.argument or "1").isdigit() else 0
    given = question.circumstances
    plain = given.servo is None and not given.without
    if question.response.name != "frequency" or not number or table is None or not plain:
        return None
    coordinates, poses = table
    if count * len(poses) < WORTH:
        return None
    rows = np.tile(poses, (count, 1))
    own: Any = {key: np.repeat(np.asarray(values, dtype=float), len(poses)) for key, values in designs.items()}
    found = many_frequencies(
        robot, coordinates, rows, number, given.lock, designs=own or None, about=given.about, wrench=given.wrench
    )
    return found.frequencies[:, number - 1].reshape(count, len(poses))


def _masses(robot: Robot, designs: Mapping[str, Array], poses: int) -> Array | None:
    """The mass of all moving bodies in each design."""
    try:
        numbers = numbers_of_designs(robot, designs)
    except OneNumberError:
        return None
    if numbers.alone.any():
        return None
    parts = [
        np.broadcast_to(numbers.of_part(("links", j, "body", "m"), link.body.m), (len(numbers.values),))
        for j, link in enumerate(robot.tree.links)
    ]
    return np.repeat(np.sum(parts, axis=0)[:, None], poses, axis=1)


def _pose_table(robot: Robot, poses: Sequence[Pose | None]) -> tuple[list[str], Array] | None:
    """Coordinates and their values at all poses, where all are given by the same ones."""
    named = robot.description.poses
    tables = [named.get(pose) if isinstance(pose, str) else pose for pose in poses]
    if not all(isinstance(table, Mapping) and table for table in tables):
        return None
    try:
        rows = [read_row(robot.tree, table) for table in tables]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    coordinates = list(rows[0])
    if any(set(row) != set(coordinates) for row in rows):
        return None
    return coordinates, np.array([[row[name] for name in coordinates] for row in rows])
