"""Motion of a frame through poses, at rest at each of them: quintics of the way, turns about fixed axes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.errors import InputError, ParflexError, UnreachableError
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.simulation.inputs.polynomials import POWERS, Polynomials, joined
from parflex.simulation.inputs.prescribed_frames import FrameMotion, channels, frame_components, joints_of_pose
from parflex.simulation.inputs.roads import Road, joints_along
from parflex.simulation.motions.unit_laws import unit_law
from parflex.spatial.rotations import rotation_from_vector, vector_from_rotation

Array = np.ndarray
ARRIVED = 1e-6  # rad or typical lengths from a pose
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
    law: Polynomials  # share u of the way in the time since `begin`

    def at(self, t: float) -> tuple[Array, Array, Array, Array]:
        """Position, rotation, twist and acceleration in world axes."""
        since = float(np.clip(t - self.begin, 0.0, self.duration))
        u, rate, push = (float(self.law.at(since, order)[0]) for order in range(3))
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
    positions: tuple[Array, ...] = ()  # all of the rigid robot, at each pose

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


def pose_motion(robot: Robot, name: str, motion: MotionTable | None = None) -> PoseMotion:
    """The motion of the end effector through the poses of a table, by default that of the robot file."""
    motion = robot.description.motions[name] if motion is None else motion
    if not motion.poses:
        raise InputError(
            f"the motion '{name}' has no poses",
            key="motion",
            value=name,
            hint="give it poses, or drive the motors",
        )
    if motion.law_word == "time-optimal":
        raise InputError(
            "a time-optimal motion is one of the motors", key="motion", value=name, hint="drive the motors"
        )
    rigid, frame = robot.locking(robot.tree.elastic), robot.tree.end_effector
    places = places_of(rigid, motion, name)
    moves, positions = _moves(motion, places), tuple(place[0] for place in places)
    return PoseMotion(name, frame, moves, _accelerations(moves, robot.tree.planar), places[0][0], positions)


def places_of(rigid: Robot, motion: MotionTable, name: str) -> list[tuple[Array, Array, Array]]:
    """All positions, and position and rotation of the end effector, in each pose of a motion."""
    near, places = rigid.home, []
    for index, given in enumerate(motion.poses):
        try:
            near = rigid.assemble(given, near)
        except ParflexError as error:
            error.key = f"motions.{name}.poses.{index}"
            raise
        R, p = Configuration(rigid, near).at.of(rigid.tree.places[rigid.tree.end_effector])
        places.append((near, p, R))
    return places


def _moves(motion: MotionTable, places: list[Any]) -> tuple[Move, ...]:
    """A move from each pose to the next, in one time for all or between the times of the poses."""
    moves, begin = [], motion.rest
    for index, ((_, p, R), (_, p_next, R_next)) in enumerate(pairwise(places)):
        duration = motion.duration
        if duration is None:
            begin, duration = motion.times[index], motion.times[index + 1] - motion.times[index]
        law = unit_law(motion.law_word, duration, motion.ramp)
        moves.append(Move(begin, duration, p, R, p_next - p, vector_from_rotation(R.T @ R_next), law))
        begin += duration + motion.rest
    return tuple(moves)


def _accelerations(moves: tuple[Move, ...], planar: bool) -> Polynomials:
    """The accelerations, the pieces of the law of each move, and zero between them."""
    channels = [0, 1, 5] if planar else list(range(6))
    still = Polynomials(np.zeros(1), np.zeros((1, POWERS, len(channels))))
    parts = [still]
    for move in moves:
        both = np.concatenate([move.way, move.R @ move.turn])[channels]
        law, orders = move.law.coefficients, np.arange(2, move.law.powers)
        powers = law[:, 2:] * (orders * (orders - 1))[None, :, None] * both
        parts.append(Polynomials(move.begin + move.law.breaks, powers).with_powers(max(POWERS, len(orders))))
    return joined(parts)


def motors_through(robot: Robot, name: str, motion: MotionTable | None = None) -> tuple[Polynomials, Array]:
    """Motors that drive the rigid robot through the poses, and all positions at the start."""
    path = pose_motion(robot, name, motion)
    rigid, frame, near = robot.locking(robot.tree.elastic), path.frame, path.start
    driven, parts = frame_components(rigid, frame), []
    turn = asked_turn(rigid, robot.description.motions[name] if motion is None else motion)
    for index, move in enumerate(path.moves):
        for begin, end in pairwise(map(float, move.begin + move.law.breaks)):
            road = _road(rigid, frame, driven, move, name, begin, end, turn)
            pieces, _, near = joints_along(robot, road, near, KNOTS)
            parts.append(pieces)
        _refuse_elsewhere(rigid, near, path.positions[index + 1], f"motions.{name}.poses.{index + 1}")
    return joined(parts), path.start


def asked_turn(rigid: Robot, motion: MotionTable) -> str:
    """What poses ask of the turn of an end effector that cannot have every rotation: nothing if they give places alone.

    Else it goes straight, and its z axis with the turn from pose to pose: so it arrives where poses give more.
    """
    frame = rigid.tree.end_effector
    places = {word for axis in "xyz" for word in (axis, f"{frame}.{axis}")}
    given = [rigid.description.poses.get(one, {}) if isinstance(one, str) else one for one in motion.poses]
    named = [one for one, pose in zip(given, motion.poses, strict=True) if pose != "home"]
    return "kept" if all(set(one) <= places for one in named) else "axis"


def _refuse_elsewhere(rigid: Robot, q: Array, asked: Array, key: str) -> None:
    """Raise if a move ends elsewhere than in its pose: what the pose gives is not all that the path keeps."""
    away = q - asked
    turning = [link.q.start for link in rigid.tree.links if link.periodic]
    away[turning] = np.arctan2(np.sin(away[turning]), np.cos(away[turning]))
    single = [link for link in rigid.tree.links if link.joint.one_axis]
    far = {link.name: abs(float(away[link.q.start]) / rigid.tree.rate_units[link.v.start]) for link in single}
    worst = max(far, key=lambda joint: far[joint], default="")
    if worst and far[worst] > ARRIVED:
        raise UnreachableError(
            f"the motion ends in another configuration than this pose: place and turn of the end effector do not "
            f"determine '{worst}'",
            key=key,
            value=worst,
            hint="move the joints, or give poses of the end effector alone",
        )


def _road(
    rigid: Robot, frame: str, driven: list[int], move: Move, name: str, begin: float, end: float, turn: str
) -> Road:  # of one piece of the law
    def at(t: float, near: Array) -> tuple[Array, Array]:
        return channels(*joints_of_pose(rigid, frame, FrameMotion(*move.at(t), turn), near, driven), rigid.actuated)

    return Road(begin, end, False, at, lambda t: f"the motion is left at t = {t:.4g} s", f"motions.{name}")
