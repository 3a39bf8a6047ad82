"""A prescribed frame: from its pose and motion to positions, rates and accelerations of all joints.

Paths and poses of simulations and references of controllers all go this way, on the robot with all bodies rigid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parflex.closure.targets import WORDS, AxisTarget, FrameTarget, PoseRows, normal_pair
from parflex.errors import InputError
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import WorldName
from parflex.robot.robot import Robot
from parflex.spatial.rotations import cross, matrix_quaternion

Array = np.ndarray
TWIST_WORDS = ("x", "y", "z", "rx", "ry", "rz")
TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")


@dataclass(frozen=True, eq=False, repr=False)
class FrameMotion(Record):
    """Place, twist and acceleration of a frame in world axes; without a rotation nothing is asked of its turn.

    `turn` says what is asked of a frame that cannot have every rotation: nothing ("kept" where it can be), the
    direction of its z axis ("axis"), or all of it ("whole"), which is refused. "direction" asks it of any frame.
    """

    position: Array
    rotation: Array | None
    twist: Array
    acceleration: Array
    turn: str = "kept"

    def derivatives(self, row: PoseRows) -> tuple[Array, Array]:
        """Of the rows of a condition on the frame, by the way."""
        v, a, w, al = self.twist[:3], self.acceleration[:3], self.twist[3:], self.acceleration[3:]
        if isinstance(row, AxisTarget):
            d, e = row.direction, normal_pair(row.direction)
            rate = cross(w, d)
            return e @ rate, e @ (cross(al, d) + cross(w, rate))
        assert isinstance(row, FrameTarget)
        axes = list(row.position)
        turn = [(w, al)] if row.rotation is not None else []
        parts = [(v[axes], a[axes]), *turn]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def joints_of_pose(
    rigid: Robot, frame: str, desired: FrameMotion, near: Array, driven: Sequence[int]
) -> tuple[Configuration, Array, Array]:
    """The robot with a frame in a place, near positions, and all its rates and accelerations.

    `driven` are the components of the frame's twist that the robot can follow. Where the place leaves motions free,
    or the frame cannot keep its rotation, the rest is that of the nearest pose; its accelerations are then missing
    (nan): they are the slopes of the rates.
    """
    axes = range(2 if rigid.tree.planar else 3)
    place = pose_words(rigid, frame, desired, axes)
    turns = sum(c > 2 for c in driven)
    loose = desired.rotation is not None and desired.turn != "direction" and rigid.pose_finder.loose(place)
    if desired.rotation is not None and turns == 2 and not loose:  # at home the third may rest, elsewhere it follows
        loose = rigid.pose_finder.leaves_free(place)
    if desired.rotation is not None and (desired.turn == "direction" or (desired.turn == "axis" and loose)):
        return _led(rigid, place | axis_words(frame, desired.rotation[:, 2]), desired, near)
    if desired.turn == "whole" and (loose or not turns):
        raise InputError(
            f"'{frame}' cannot have every rotation: its turn has fewer freedoms",
            key="orientation",
            value=frame,
            hint="give the direction of its z axis, or its place alone",
        )
    if loose:
        return _led(rigid, place, desired, near)
    if desired.rotation is None and rigid.pose_finder.leaves_free(place):
        return _led(rigid, place, desired, near)
    asked = [c for c in driven if c < 3 or desired.rotation is not None]
    words = pose_words(rigid, frame, desired, asked)
    if rigid.pose_finder.leaves_free(words):
        return _led(rigid, words, desired, near)
    here = _at(rigid, words, near)
    velocity = _twist_words(rigid, frame, desired.twist, asked)
    qd = here.rates(velocity)
    return here, qd, here.accelerations(_twist_words(rigid, frame, desired.acceleration, asked), qd, velocity)


def _led(
    rigid: Robot, words: dict[str, float], desired: FrameMotion, near: Array
) -> tuple[Configuration, Array, Array]:
    here = _at(rigid, words, near)
    return here, *rigid.pose_finder.path_motion(words, here.q, desired.derivatives)


def axis_words(frame: str, direction: Array) -> dict[str, float]:
    """The direction of the z axis of a frame."""
    return {f"{frame}.{word}": float(value) for word, value in zip(WORDS, direction, strict=True)}


def channels(here: Configuration, qd: Array, qdd: Array, rates: Sequence[int]) -> tuple[Array, Array]:
    """All positions, and of joints, by the numbers of their rates, position and two derivatives."""
    tree, own = here.robot.tree, list(rates)
    return here.q, np.array([here.q[[tree.links[tree.link_of_rate[k]].q.start for k in own]], qd[own], qdd[own]])


def _at(rigid: Robot, words: dict[str, float], near: Array) -> Configuration:
    """The robot at a pose, with angles in the turn in which they were."""
    q = rigid.assemble(words, near).copy()
    angles = [link.q.start for link in rigid.tree.links if link.periodic]
    q[angles] += 2 * np.pi * np.round((near[angles] - q[angles]) / (2 * np.pi))
    return Configuration(rigid, q)


def frame_components(rigid: Robot, frame: str) -> list[int]:
    """Components of the twist of a frame that tell how the robot moves; all where none are spare."""
    here = Configuration(rigid, rigid.home)
    _, names = here.platform_freedom(frame)
    if len(names) < here.J.shape[1]:
        return [0, 1, 5] if rigid.tree.planar else list(range(6))
    return [TWIST.index(name) for name in names]


def pose_words(robot: Robot, frame: str, desired: FrameMotion, driven: Sequence[int]) -> dict[str, float]:
    """The place of a frame; its rotation is included where the robot can prescribe it."""
    words = {f"{frame}.{'xyz'[c]}": float(desired.position[c]) for c in driven if c < 3}
    R = desired.rotation
    if R is None or not any(c > 2 for c in driven):
        return words
    if robot.tree.planar:
        return words | {f"{frame}.theta": float(np.arctan2(R[1, 0], R[0, 0]))}
    return words | {WorldName(f"{frame}.q{a}"): float(v) for a, v in zip("wxyz", matrix_quaternion(R), strict=True)}


def velocity_words(robot: Robot, frame: str, desired: FrameMotion, driven: Sequence[int]) -> dict[str, float]:
    """The velocity of a frame, in the components that the robot can prescribe."""
    return _twist_words(robot, frame, desired.twist, driven)


def _twist_words(robot: Robot, frame: str, values: Array, driven: Sequence[int]) -> dict[str, float]:
    theta = 5 if robot.tree.planar else None
    return {WorldName(f"{frame}.{'theta' if c == theta else TWIST_WORDS[c]}"): float(values[c]) for c in driven}
