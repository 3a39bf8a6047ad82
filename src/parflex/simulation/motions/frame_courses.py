"""What a motion of the file asks of a frame at any instant, exactly: place, twist and acceleration, without knots.

Motors of simulations go through knots of it; slopes of responses by numbers of the robot need what is between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.robotfile.motion_schema import MotionTable
from parflex.simulation.inputs.paths import frame_along
from parflex.simulation.inputs.poses import Move, asked_turn, pose_motion
from parflex.simulation.inputs.prescribed_frames import FrameMotion, frame_components
from parflex.simulation.motions.frame_paths import TimedArc, timed_arcs, timed_points, timed_waves

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class CourseStage(Record):
    """A part of a motion, smooth between its `breaks`; `driven` are components of the twist that the robot follows."""

    breaks: Array
    at: Callable[[float], FrameMotion]
    driven: Sequence[int]


@dataclass(frozen=True, eq=False, repr=False)
class FrameCourse(Record):
    """A frame in time, stage by stage; it rests between them, before the first and behind the last."""

    frame: str
    stages: tuple[CourseStage, ...]

    @property
    def breaks(self) -> Array:
        """Times between which it is smooth."""
        return np.unique(np.concatenate([stage.breaks for stage in self.stages]))

    def at(self, t: float) -> tuple[FrameMotion, Sequence[int]]:
        """What is asked of the frame at a time, and the components of its twist that the robot follows."""
        begun = [stage for stage in self.stages if stage.breaks[0] <= t]
        stage = begun[-1] if begun else self.stages[0]
        inside = float(np.clip(t, stage.breaks[0], stage.breaks[-1]))
        found = stage.at(inside)
        if inside != t:
            found = FrameMotion(found.position, found.rotation, 0 * found.twist, 0 * found.acceleration, found.turn)
        return found, stage.driven


def frame_course(robot: Robot, name: str, motion: MotionTable) -> FrameCourse:
    """The course of the frame that a motion of the file moves; its law is one of given times."""
    frame, rigid = motion.frame or robot.tree.end_effector, robot.locking(robot.tree.elastic)
    if motion.poses:
        turn, driven = asked_turn(rigid, motion), frame_components(rigid, frame)
        moves = pose_motion(robot, name, motion).moves
        return FrameCourse(frame, tuple(_moved(move, turn, driven) for move in moves))
    axes = range(2 if rigid.tree.planar else 3)
    if motion.kind in ("sines", "chirp"):
        waves, _ = timed_waves(robot, motion)
        breaks = np.append(waves.smooth_until(waves.duration), waves.duration)
        return FrameCourse(frame, (CourseStage(breaks, lambda t: _place(*waves.at(t)), axes),))
    if motion.law_word in ("spline", "blend"):
        places = timed_points(motion, name)
        return FrameCourse(
            frame, (CourseStage(places.breaks, lambda t: _place(*(places.at(t, k) for k in range(3))), axes),)
        )
    return FrameCourse(frame, tuple(_along(rigid, frame, timed, name) for timed in timed_arcs(motion, name)))


def _moved(move: Move, turn: str, driven: Sequence[int]) -> CourseStage:
    """From one pose to the next."""

    def at(t: float) -> FrameMotion:
        position, rotation, twist, acceleration = move.at(t)
        return FrameMotion(position, rotation, twist, acceleration, turn)

    return CourseStage(move.begin + move.law.breaks, at, driven)


def _along(rigid: Robot, frame: str, timed: TimedArc, name: str) -> CourseStage:
    """An arc in time: derivatives by the way, and the way in time."""
    desired, driven = frame_along(rigid, frame, timed.arc, name)
    lap = timed.arc.length if timed.arc.closed else None

    def at(t: float) -> FrameMotion:
        s, speed, push = (float(part[0]) for part in timed.course(np.array([t])))
        by_way = desired(s if lap is None else s % lap)
        acceleration = by_way.acceleration * speed**2 + by_way.twist * push
        return FrameMotion(by_way.position, by_way.rotation, by_way.twist * speed, acceleration, by_way.turn)

    return CourseStage(timed.begin + timed.breaks, at, driven)


def _place(position: Array, velocity: Array, acceleration: Array) -> FrameMotion:
    return FrameMotion(position, None, velocity, acceleration)
