"""Elements between two points as solids: thin bars from one end to the other, wherever the two are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.tree.tree import GROUND, Place
from parflex.view.scene.solids import along, cylinder

Array = np.ndarray
THICK = {"strut": 0.009, "rod": 0.006}  # radii, of the size of the robot
THIN = 0.003
X = np.array([1.0, 0.0, 0.0])


@dataclass(frozen=True, eq=False, repr=False)
class Tie(Record):
    """A bar between two places of two bodies."""

    group: str
    robot: Robot
    first: Place
    second: Place
    unit: Array  # a bar of length 1 along x
    faces: Array
    link: int = field(default=GROUND, init=False)

    @property
    def count(self) -> int:
        """Number of its vertices."""
        return len(self.unit)

    def placed(self, q: Array) -> Array:
        """Its vertices in the world."""
        at = pose(self.robot.tree, q)
        start, end = at.of(self.first)[1], at.of(self.second)[1]
        length = float(np.linalg.norm(end - start))
        turn = np.roll(along(end - start), 1, axis=1) if length else np.eye(3)  # its z axis is the line: made x
        return start + (self.unit * [length, 1.0, 1.0]) @ turn.T


def element_places(robot: Robot) -> list[tuple[str, Place, Place]]:
    """Kind and ends of each element of a robot."""
    places = robot.tree.places
    return [(e.kind, places[e.between[0]], places[e.between[1]]) for e in robot.description.element]


def ties(robot: Robot, size: float) -> list[Tie]:
    """A bar for each element; struts with a motor are shown as motors."""
    motors = {robot.tree.rate_names[k] for k in robot.actuated}
    found = []
    for element, (kind, first, second) in zip(robot.description.element, element_places(robot), strict=True):
        group = "motors" if element.name in motors else "slides" if kind == "strut" else "joints"
        unit, faces = cylinder(np.zeros(3), X, THICK.get(kind, THIN) * size)
        found.append(Tie(group, robot, first, second, unit, faces))
    return found
