"""Motion of a frame through poses, at rest at each of them: quintics of the way, turns about fixed axes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.description.motion_tables import MotionTable
from parflex.errors import InputError, ParflexError
from parflex.models.configuration import Configuration
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.simulation.inputs.polynomials import Polynomials, joined
from parflex.simulation.inputs.prescribed_frames import FrameMotion, channels, frame_components, joints_of_pose
from parflex.simulation.inputs.quintics import smooth_step, step_derivative
from parflex.simulation.inputs.roads import Road, joints_along
from parflex.spatial import rotation_from_vector, vector_from_rotation

Array = np.ndarray
KNOTS = 60  # of a move, for the motors: quintics between them err by 1e-9 of the way


@dataclass(frozen=True, eq=False, repr=False)
class Move(Record):
    """From one pose to the next in a time: position and turn go the same share u of their ways."""

    begin: float
    duration: float
    p: Array
    R: Array
    way: Array
    turn: Array  # rotation vector, in the axes of the frame

    def at(self, t: float) -> tuple[Array, Array, Array, Array]:
        """Position, rotation, twist and acceleration in world axes."""
        s = np.clip((t - self.begin) / self.duration, 0.0, 1.0)
        u, rate, push = smooth_step(s, self.duration)
        axis = self.R @ self.turn  # a turn leaves its own axis in place
        both = np.concatenate([self.way, axis])
        return self.p + u * self.way, self.R @ rotation_from_vector(u * self.turn), rate * both, push * both


@dataclass(frozen=True, eq=False, repr=False)
class PoseMotion(Record):
    """A frame driven through poses, by its acceleration in world axes, and all initial positions of the rigid robot.

    Channels of `accelerations` are ax ay az alx aly alz, in the plane ax ay al.
    """

    name: str
    frame: str
    moves: tuple[Move, ...]
    accelerations: Polynomials
    start: Array

    @property
    def given(self) -> Polynomials:
        """What the time loop gets."""
        return self.accelerations

    @property
    def end(self) -> float:
        """When the last pose is reached."""
        return self.moves[-1].begin + self.moves[-1].duration

    def at(self, t: float) -> tuple[Array, Array, Array, Array]:
        """Position, rotation, twist and acceleration of the frame in world axes."""
        current = [move for move in self.moves if move.begin <= t]
        return (current[-1] if current else self.moves[0]).at(t)


def pose_motion(robot: Robot, name: str) -> PoseMotion:
    """The motion of the end effector through the poses of a motion of the robot file."""
    motion = robot.description.motions[name]
    if not motion.poses:
        raise InputError(
            f"the motion '{name}' has no poses",
            key="motion",
            value=name,
            hint="give it poses, or drive the motors",
        )
    rigid, frame = robot.locking(robot.tree.elastic), robot.tree.end_effector
    near, places = robot.home, []
    for index, given in enumerate(motion.poses):
        try:
            near = rigid.assemble(given, near)
        except ParflexError as error:
            error.key = f"motions.{name}.poses.{index}"
            raise
        places.append((near, *reversed(Configuration(rigid, near).at.of(robot.tree.places[frame]))))
    moves = _moves(motion, places)
    return PoseMotion(name, frame, moves, _accelerations(moves, robot.tree.planar), places[0][0])


def _moves(motion: MotionTable, places: list[Any]) -> tuple[Move, ...]:
    assert motion.duration is not None
    moves, begin = [], motion.rest
    for (_, p, R), (_, p_next, R_next) in pairwise(places):
        moves.append(Move(begin, motion.duration, p, R, p_next - p, vector_from_rotation(R.T @ R_next)))
        begin += motion.duration + motion.rest
    return tuple(moves)


def _accelerations(moves: tuple[Move, ...], planar: bool) -> Polynomials:
    """The accelerations as cubics, one a move, and zero between them."""
    channels = [0, 1, 5] if planar else list(range(6))
    breaks, rows = [0.0], [np.zeros((6, len(channels)))]
    for move in moves:
        T = move.duration
        both = np.concatenate([move.way, move.R @ move.turn])[channels]
        powers = np.zeros((6, len(channels)))
        for power, factor in enumerate(step_derivative(2)):
            powers[power] = factor / T ** (power + 2) * both
        if move.begin > breaks[-1]:
            breaks.append(move.begin)
            rows.append(powers)
        else:
            rows[-1] = powers
        breaks.append(move.begin + T)
        rows.append(np.zeros((6, len(channels))))
    return Polynomials(np.array(breaks), np.array(rows))


def motors_through(robot: Robot, name: str) -> tuple[Polynomials, Array]:
    """Motors that drive the rigid robot through the poses, and all positions at the start."""
    path = pose_motion(robot, name)
    rigid, frame, near = robot.locking(robot.tree.elastic), path.frame, path.start
    driven, parts = frame_components(rigid, frame), []
    for move in path.moves:
        pieces, _, near = joints_along(robot, _road(rigid, frame, driven, move, name), near, KNOTS)
        parts.append(pieces)
    return joined(parts), path.start


def _road(rigid: Robot, frame: str, driven: list[int], move: Move, name: str) -> Road:
    def at(t: float, near: Array) -> tuple[Array, Array]:
        return channels(*joints_of_pose(rigid, frame, FrameMotion(*move.at(t)), near, driven), rigid.actuated)

    end = move.begin + move.duration
    return Road(move.begin, end, False, at, lambda t: f"the motion is left at t = {t:.4g} s", f"motions.{name}")
