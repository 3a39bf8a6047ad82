"""Paths of a frame, and the motors that drive it along them: exactly, on the robot with all bodies rigid."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from parflex.description.motion_tables import MotionTable
from parflex.errors import InputError
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.simulation.inputs.polynomials import Polynomials
from parflex.simulation.inputs.prescribed_frames import FrameMotion, channels, joints_of_pose
from parflex.simulation.inputs.roads import Road, joints_along

Array = np.ndarray
KNOTS = 240  # of a circle's turn or of a straight line: quintics between them err by 1e-12 of the way


@dataclass(frozen=True, eq=False, repr=False)
class Arc(Record):
    """A part of a path: position and its derivatives by the way s along it."""

    length: float  # once round, for a circle
    closed: bool
    centre: Array
    cosine: Array  # position = centre + cosine * cos(s / radius) + sine * sin(s / radius), or centre + sine * s
    sine: Array
    radius: float

    def at(self, s: float) -> tuple[Array, Array, Array]:
        """Position, direction and curvature."""
        if not self.closed:
            return self.centre + self.sine * s, self.sine, np.zeros(3)
        c, d = np.cos(s / self.radius), np.sin(s / self.radius)
        out = self.cosine * c + self.sine * d
        return self.centre + out, (self.sine * c - self.cosine * d) / self.radius, -out / self.radius**2


def arcs_of(motion: MotionTable, name: str) -> list[Arc]:
    """The parts of the path of a motion; it rests between them."""
    if motion.circle is not None:
        return [_circle(motion, name)]
    points = np.array(motion.points, dtype=float)
    if len(points) < 2:
        raise InputError("a path needs two points", key=f"motions.{name}.points", hint="add points")
    arcs = []
    for first, second in pairwise(points):
        length = float(np.linalg.norm(second - first))
        if length < 1e-12:
            raise InputError("two points of the path are the same", key=f"motions.{name}.points", hint="remove one")
        arcs.append(Arc(length, False, first, np.zeros(3), (second - first) / length, np.inf))
    return arcs


def _circle(motion: MotionTable, name: str) -> Arc:
    assert motion.circle is not None
    centre, axis = np.array(motion.circle.centre), np.array(motion.circle.axis)
    out = np.array(motion.circle.start) - centre
    axis = axis / np.linalg.norm(axis) if np.linalg.norm(axis) else axis
    radius = float(np.linalg.norm(out))
    if radius < 1e-12 or abs(out @ axis) > 1e-9 * radius or not axis.any():
        raise InputError(
            "the start is not on a circle about the centre that is normal to the axis",
            key=f"motions.{name}.circle",
            hint="give centre and start in one plane normal to axis",
        )
    return Arc(2 * np.pi * radius, True, centre, out, np.cross(axis, out), radius)


def follow(robot: Robot, frame: str, arc: Arc, near: Array, name: str) -> tuple[Polynomials, Array, Array]:
    """Motors as functions of the way along an arc, and all positions where it begins and where it ends."""
    rigid = robot.locking(robot.tree.elastic)
    driven = range(2 if robot.tree.planar else 3)

    def at(s: float, q: Array) -> tuple[Array, Array]:
        place, direction, curvature = arc.at(s)
        desired = FrameMotion(place, None, direction, curvature)
        return channels(*joints_of_pose(rigid, frame, desired, q, driven), robot.actuated)

    road = Road(
        0.0, arc.length, arc.closed, at, lambda s: f"the path stops {s:.4g} m from its start", f"motions.{name}"
    )
    return joints_along(robot, road, near, KNOTS)
