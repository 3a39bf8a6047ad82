"""The frame that a motion is given by: the platform, else the end effector, over any scalar.

Of its twist as many components are read as the robot has freedoms, those that say best at home how it moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.records import Record
from parflex.recursion.kinematics import Pose, jacobians, motion, place_jacobian
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.tree.tree import Place, Tree

Array = np.ndarray
TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")


@dataclass(frozen=True, eq=False, repr=False)
class PlatformFrame(Record):
    """A frame by its name and place, and the components of its world twist that are read."""

    tree: Tree
    name: str
    place: Place
    read: tuple[int, ...]

    @property
    def labels(self) -> list[str]:
        """Names of the components that are read."""
        return [f"{self.name}.{TWIST[k]}" for k in self.read]

    def rows(self, at: Pose) -> Array:
        """World twist per unit of all rates."""
        R, _ = at.of(self.place)
        J_v, J_w = place_jacobian(self.tree, at, jacobians(self.tree, at), self.place)
        return np.concatenate([R @ J_v, R @ J_w])[list(self.read)]

    def accelerations(self, at: Pose, qd: Array, qdd: Array) -> tuple[Array, Array]:
        """World acceleration and angular acceleration in a motion."""
        R, _ = at.of(self.place)
        _, _, a, al = motion(self.tree, at, qd, qdd).of(self.place)
        return R @ a, R @ al

    def missing(self, at: Pose, p: Array, R: Array) -> Array:
        """What is left to move to a pose nearby: the way, and axis times sine of the turn, in world axes."""
        R_here, p_here = at.of(self.place)
        E = R @ R_here.T
        turn = np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]]) / 2
        return np.concatenate([p - p_here, turn])[list(self.read)]

    def gaps(self, at: Pose, p: Array, R: Array) -> Array:
        """Return lengths in metres that vanish at the pose; 2 tan(a / 2) of an angle a grows up to half a turn."""
        R_here, _ = at.of(self.place)
        sizes = np.array([1.0, 1.0, 1.0, *3 * [self.tree.length * 4.0 / (1.0 + np.trace(R @ R_here.T))]])
        return self.missing(at, p, R) * sizes[list(self.read)]

    def picked(self, slide: Any, turn: Any) -> Array:
        """Of two world vectors the components that are read."""
        return np.concatenate([slide, turn])[list(self.read)]


def frame_of(tree: Tree) -> tuple[str, Place]:
    """The body that no joint holds; else the end effector."""
    for number, link in enumerate(tree.links):
        if link.joint.moves_freely:
            return link.name, Place(number, np.eye(3), np.zeros(3))
    return tree.end_effector, tree.places[tree.end_effector]


def platform_frame(robot: Robot) -> PlatformFrame:
    """The platform, or the end effector where that one says how the robot moves and the platform does not."""
    here = Configuration(robot, robot.home)
    freedoms, moving = here.J.shape[1], {}
    for name in (frame_of(robot.tree)[0], robot.tree.end_effector):
        _, moving[name] = here.platform_freedom(name)
        if len(moving[name]) == freedoms:
            read = tuple(TWIST.index(word) for word in moving[name])
            return PlatformFrame(robot.tree, name, robot.tree.places[name], read)
    name = max(moving, key=lambda name: len(moving[name]))
    raise InputError(
        f"'{name}' moves in {len(moving[name])} of the {freedoms} freedoms of the robot: its motion does not "
        "determine that of all joints",
        key="coordinates",
        value="platform",
        hint='use coordinates "all" or "independent"',
    )


def given_frame(robot: Robot, coordinates: str | None) -> str:
    """The frame whose pose a model takes."""
    rigid = coordinates == "platform" and not robot.tree.elastic
    return platform_frame(robot).name if rigid else frame_of(robot.tree)[0]


def world(planar: bool, p: Array, R: Array) -> tuple[Array, Array]:
    """Position and rotation in space of those in the plane."""
    if not planar:
        return p, R
    whole = [[R[0, 0], R[0, 1], 0.0], [R[1, 0], R[1, 1], 0.0], [0.0, 0.0, 1.0]]
    return np.array([*p, 0.0], dtype=p.dtype), np.array(whole, dtype=R.dtype)


def world_vectors(planar: bool, slide: Array, turn: Array) -> tuple[Array, Array]:
    """Two vectors in space of those in the plane."""
    if not planar:
        return slide, turn
    return np.array([*slide, 0.0], dtype=slide.dtype), np.array([0.0, 0.0, *turn], dtype=turn.dtype)


def shown(planar: bool, slide: Array, turn: Array) -> tuple[Array, Array]:
    """Of two vectors in space what the plane has of them."""
    return (slide[:2], turn[2:]) if planar else (slide, turn)
