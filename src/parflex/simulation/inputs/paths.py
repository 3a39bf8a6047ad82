"""Paths of a frame, and the motors that drive it along them: exactly, on the robot with all bodies rigid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from parflex.closure.newton import CLOSED
from parflex.errors import InputError
from parflex.records import Record
from parflex.recursion.kinematics import pose
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.simulation.inputs.kept_roads import kept_road
from parflex.simulation.inputs.polynomials import Polynomials
from parflex.simulation.inputs.prescribed_frames import FrameMotion, channels, frame_components, joints_of_pose
from parflex.simulation.inputs.roads import Road, joints_along
from parflex.simulation.inputs.turning import (
    Turning,
    along_cone,
    along_direction,
    along_rotation,
    along_tangent,
    given_turns,
)

Array = np.ndarray
SAME = 1e-12  # of the largest coordinate: points that are nearer to each other are one
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
    turning: Turning | None = None  # of the frame, by the way; None: nothing is asked
    tangent: bool = False  # its x axis goes along the path

    def at(self, s: float) -> tuple[Array, Array, Array]:
        """Position, direction and curvature."""
        if not self.closed:
            return self.centre + self.sine * s, self.sine, np.zeros(3)
        c, d = np.cos(s / self.radius), np.sin(s / self.radius)
        out = self.cosine * c + self.sine * d
        return self.centre + out, (self.sine * c - self.cosine * d) / self.radius, -out / self.radius**2


def arcs_of(motion: MotionTable, name: str) -> list[Arc]:
    """The parts of the path of a motion; it rests between them."""
    arcs = _bare_arcs(motion, name)
    turns = given_turns(motion, 1 if motion.circle is not None else len(arcs) + 1, name)
    if motion.orientation == "tangent":
        return _tangent_arcs(arcs, name)
    if motion.cone is not None and motion.circle is not None:
        axis = np.array(motion.circle.axis) / np.linalg.norm(motion.circle.axis)
        return [replace(arc, turning=along_cone(axis, arc.cosine, motion.cone)) for arc in arcs]
    if turns is None:
        return arcs
    between = {"direction": along_direction, "orientation": along_rotation}
    pairs = pairwise(turns) if len(turns) > 1 else [(turns[0], turns[0])]
    return [
        replace(arc, turning=between[key](first, second, arc.length))
        for arc, ((key, first), (_, second)) in zip(arcs, pairs, strict=True)
    ]


def _tangent_arcs(arcs: list[Arc], name: str) -> list[Arc]:
    """The x axis of the frame along the path; at a corner it would have to turn while the frame rests."""
    ways = [arc.sine for arc in arcs]
    if len(arcs) > 1 and max(float(np.abs(way - ways[0]).max()) for way in ways) > 1e-9:
        raise InputError(
            "along corners the tangent jumps", key=f"motions.{name}.orientation", value="tangent",
            hint="give a rotation vector for each point",
        )  # fmt: skip
    return [replace(arc, tangent=True) for arc in arcs]


def _bare_arcs(motion: MotionTable, name: str) -> list[Arc]:
    if motion.circle is not None:
        return [_circle(motion, name)]
    points = np.array(motion.points, dtype=float)
    if len(points) < 2:
        raise InputError("a path needs two points", key=f"motions.{name}.points", hint="add points")
    arcs = []
    for first, second in pairwise(points):
        length = float(np.linalg.norm(second - first))
        if length <= SAME * float(np.abs(points).max()):
            raise InputError("two points of the path are the same", key=f"motions.{name}.points", hint="remove one")
        arcs.append(Arc(length, False, first, np.zeros(3), (second - first) / length, np.inf))
    return arcs


def _circle(motion: MotionTable, name: str) -> Arc:
    assert motion.circle is not None
    centre, axis = np.array(motion.circle.centre), np.array(motion.circle.axis)
    out = np.array(motion.circle.start) - centre
    axis = axis / np.linalg.norm(axis) if np.linalg.norm(axis) else axis
    radius = float(np.linalg.norm(out))
    if (
        radius <= SAME * max(np.abs(centre).max(), np.abs(out + centre).max())
        or abs(out @ axis) > 1e-9 * radius
        or not axis.any()
    ):
        raise InputError(
            "the start is not on a circle about the centre that is normal to the axis",
            key=f"motions.{name}.circle",
            hint="give centre and start in one plane normal to axis",
        )
    return Arc(2 * np.pi * radius, True, centre, out, np.cross(axis, out), radius)


def frame_along(rigid: Robot, frame: str, arc: Arc, name: str) -> tuple[Callable[[float], FrameMotion], Sequence[int]]:
    """What is asked of a frame by the way along an arc, and the components of its twist that the robot can follow."""
    turning = arc.turning
    if arc.tangent:
        _, way, curvature = arc.at(0.0)
        z = pose(rigid.tree, rigid.home).of(rigid.tree.places[frame])[0][:, 2]
        turning = along_tangent(way, np.cross(way, curvature), z, name)

    def desired(s: float) -> FrameMotion:
        place, direction, curvature = arc.at(s)
        if turning is None:
            return FrameMotion(place, None, direction, curvature)
        twist, push = np.concatenate([direction, turning.spin]), np.concatenate([curvature, np.zeros(3)])
        return FrameMotion(place, turning.at(s), twist, push, turning.asked)

    return desired, range(2 if rigid.tree.planar else 3) if turning is None else frame_components(rigid, frame)


def follow(robot: Robot, frame: str, arc: Arc, near: Array, name: str) -> tuple[Polynomials, Array, Array]:
    """Motors as functions of the way along an arc, and all positions where it begins and where it ends."""
    return kept_road(robot, (frame, arc, near, name), lambda: _followed(robot, frame, arc, near, name))


def _followed(robot: Robot, frame: str, arc: Arc, near: Array, name: str) -> tuple[Polynomials, Array, Array]:
    """By the robot with few elements where it has many: bodies are rigid, so that all of them move alike."""
    from parflex.robot.load import with_file_elements  # which builds robots, what a road that is kept does not need
    from parflex.statics.mesh_error import same_positions

    fewer = with_file_elements(robot) if not near[list(_deformations(robot))].any() else None
    if fewer is not None:
        pieces, *ends = _along(fewer, frame, arc, same_positions(robot, fewer, near), name)
        whole = [same_positions(fewer, robot, q) for q in ends]
        if all(_is_same(robot, fewer, frame, *both) for both in zip(whole, ends, strict=True)):
            return pieces, whole[0], whole[1]
    return _along(robot, frame, arc, near, name)


def _deformations(robot: Robot) -> Iterator[int]:
    return (k for link in robot.tree.links for k in range(link.e.start, link.e.stop))


def _is_same(robot: Robot, fewer: Robot, frame: str, q: Array, q_fewer: Array) -> bool:
    """Whether two robots stand alike: one that was changed since it was loaded is not that of its file."""
    at, other = pose(robot.tree, q), pose(fewer.tree, q_fewer)
    apart = np.abs(robot.closures.residual(at)).max(initial=0.0) + np.abs(
        at.of(robot.tree.places[frame])[1] - other.of(fewer.tree.places[frame])[1]
    ).max(initial=0.0)
    return bool(apart <= CLOSED * robot.tree.length)


def _along(robot: Robot, frame: str, arc: Arc, near: Array, name: str) -> tuple[Polynomials, Array, Array]:
    rigid = robot.locking(robot.tree.elastic)
    desired, driven = frame_along(rigid, frame, arc, name)

    def at(s: float, q: Array) -> tuple[Array, Array]:
        return channels(*joints_of_pose(rigid, frame, desired(s), q, driven), robot.actuated)

    road = Road(
        0.0, arc.length, arc.closed, at, lambda s: f"the path stops {s:.4g} m from its start", f"motions.{name}"
    )
    return joints_along(robot, road, near, KNOTS)
