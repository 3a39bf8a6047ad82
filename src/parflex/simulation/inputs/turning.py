"""How a frame turns along a path: its z axis along a direction, or its whole rotation, at a constant angular rate.

A great circle between two directions, a turn about one axis between two rotations (slerp), a cone about the axis of a
circle and the tangent of a circle are all a constant angular velocity by the way: their second derivative is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.closure.targets import normal_pair, shortest_rotation
from parflex.errors import InputError
from parflex.records import Record
from parflex.robotfile.motion_schema import MotionTable
from parflex.spatial.rotations import rotation_from_vector, vector_from_rotation

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Turning(Record):
    """The rotation `begin` where a part of a path begins, and its angular velocity in world axes, rad per metre."""

    begin: Array
    spin: Array
    asked: str  # "direction": of the z axis alone; "whole"

    def at(self, s: float) -> Array:
        """The rotation after a way."""
        return rotation_from_vector(s * self.spin) @ self.begin


def along_direction(first: Array, second: Array, length: float) -> Turning:
    """The z axis from one unit vector to another along the shorter arc."""
    turn = vector_from_rotation(shortest_rotation(first, second))
    return Turning(_with_z(first), turn / length, "direction")


def along_rotation(first: Array, second: Array, length: float) -> Turning:
    """From one rotation vector to another about one axis."""
    R, R_next = rotation_from_vector(first), rotation_from_vector(second)
    return Turning(R, vector_from_rotation(R_next @ R.T) / length, "whole")


def along_cone(axis: Array, out: Array, angle: float) -> Turning:
    """The z axis leans out of the axis of a circle by an angle, and goes round with the circle."""
    outward = out / np.linalg.norm(out)
    z = np.cos(angle) * axis + np.sin(angle) * outward
    return Turning(_with_z(z), axis / np.linalg.norm(out), "direction")


def along_tangent(tangent: Array, spin: Array, z: Array, name: str) -> Turning:
    """The x axis along the path; where it begins, the z axis is as near as can be to a given one."""
    side = z - (z @ tangent) * tangent
    if np.linalg.norm(side) < 1e-6:
        raise InputError(
            "the path begins along the z axis that the frame has at home, so its turn about the tangent is open",
            key=f"motions.{name}.orientation",
            hint="give rotation vectors instead of 'tangent'",
        )
    side = side / np.linalg.norm(side)
    return Turning(np.column_stack([tangent, np.cross(side, tangent), side]), spin, "whole")


def _with_z(z: Array) -> Array:
    first, second = normal_pair(z)
    return np.column_stack([first, second, z])


def given_turns(motion: MotionTable, count: int, name: str) -> list[tuple[str, Array]] | None:
    """The directions or rotations of a motion, one for each point of its path; None if it has none, or the tangent."""
    key = "direction" if motion.direction else "orientation"
    rows = getattr(motion, key)
    if not rows or isinstance(rows, str):
        return None
    vectors = np.array(rows, dtype=float)
    if len(vectors) not in (1, count):
        kind = "points" if motion.points else "point of the circle"
        raise InputError(
            f"there are {len(vectors)} vectors for {count} {kind}",
            key=f"motions.{name}.{key}",
            value=len(vectors),
            hint="give one for all, or one for each point" if motion.points else "give one, or a cone",
        )
    if key == "direction":
        sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not sizes.all():
            raise InputError("a direction is zero", key=f"motions.{name}.direction", hint="give e.g. [0, 0, 1]")
        vectors = vectors / sizes
    return [(key, vector) for vector in (vectors if len(vectors) == count else np.repeat(vectors, count, axis=0))]
