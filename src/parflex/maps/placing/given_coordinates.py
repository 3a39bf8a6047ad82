"""Coordinates that give poses: where each stands among the positions, and what it is at home."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from parflex.closure import mobility
from parflex.maps.batches import Geometry
from parflex.maps.placing.steppers import ASKED
from parflex.recursion.kinematics import place_jacobian, pose
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import joint_named
from parflex.robot.gearing import FollowingJoint, place_following_joints
from parflex.spatial.rotations import vector_from_rotation, vector_quaternion
from parflex.tree.tree import GROUND

Array = np.ndarray
STILL = 1e-9  # of a rate without units: what moves less does not
VECTOR = ("rx", "ry", "rz")


class NotGivenError(Exception):
    """Why these poses are not found together, as words that follow a colon."""


class GivenCoordinates:
    """Coordinates by name, each a joint or one of the end effector; the rotation vector stands apart.

    `following` are joints that elastic couplings at rest put somewhere by these coordinates.
    """

    following: tuple[FollowingJoint, ...] = ()

    def __init__(self, geometry: Geometry, names: Sequence[str]) -> None:
        self.geometry, self.robot, self.names = geometry, geometry.robot, list(names)
        tree = geometry.tree
        place = tree.places[tree.end_effector]
        link = tree.links[place.link]
        offset = {"x": 0, "y": 1, "theta": 2} if tree.planar else {"x": 0, "y": 1, "z": 2}
        self.where: dict[str, int] = {}
        self.asked: set[int] = set()  # axes along which a place on joints is given, by columns behind all others
        behind = len(self.geometry.kept) + len(self.geometry.varied)
        known = ", ".join((*offset, *(() if tree.planar else VECTOR)))
        for name in self.names:
            joint = joint_named(tree, name)
            if joint is not None:
                self.where[name] = joint.q.start
            elif name in offset or (name in VECTOR and not tree.planar):
                if link.joint.moves_freely and link.parent == GROUND:
                    self.where[name] = link.q.start + offset.get(name, 3)
                elif link.joint.moves_freely or place.inner is not None:
                    raise NotGivenError(f"'{name}' is that of a place inside a body, or on a body that another carries")
                elif name in VECTOR:
                    self.where[name] = behind + ASKED.index("qw")
                else:
                    self.where[name] = behind + ASKED.index(name)
                    self.asked |= {ASKED.index(name)} if name != "theta" else set()
            else:
                raise NotGivenError(f"'{name}' is neither a joint nor one of {known} of the end effector")

    @property
    def columns(self) -> list[int]:
        """Positions that are given or follow from these; of a rotation vector all of its quaternion."""
        follow = [int(np.searchsorted(self.geometry.kept, one.position)) for one in self.following]
        turns = [k for name in self.names if name in VECTOR for k in range(self.where[name], self.where[name] + 4)]
        return [self.where[name] for name in self.names if name not in VECTOR] + turns + follow

    @cached_property
    def kept_at_home(self) -> list[str]:
        """Coordinates that are not named though they could move: of the end effector, or the other motors."""
        tree, given = self.robot.tree, set(self.names)
        if self.asked:  # by all its coordinates, and turned as its joints leave it
            return []
        joints = [joint_named(tree, name) is not None for name in self.names]
        if any(joints) and not all(joints):  # motors and coordinates of the platform: what is open follows
            return []
        if any(joints):
            follow = {one.rate for one in self.following}
            motors = zip(self.robot.actuated, self.robot.actuated_names, strict=True)
            return [name for rate, name in motors if name not in given and rate not in follow]
        here = Configuration(self.robot, self.robot.home)
        place = tree.places[tree.end_effector]
        v, w = place_jacobian(tree, here.at, here.link_jacobians, place)
        R = here.at.of(place)[0]
        rigid = [k for k in self.robot.free if k not in self.robot.deformations]
        closing = here.scaled_closure_jacobian[:, rigid]
        motions = mobility.null_space(closing, mobility.rank(closing)) * tree.rate_units[rigid][:, None]
        rates = np.concatenate([R @ v / tree.length, R @ w])[:, rigid] @ motions
        moved = np.abs(rates).max(axis=1, initial=0.0) > STILL
        turns = [] if given & set(VECTOR) else ["theta"] if tree.planar else list(VECTOR)
        names = ["x", "y", "theta"] if tree.planar else ["x", "y", "z", *VECTOR]
        rows = [0, 1, 5] if tree.planar else range(6)
        movable = {name for name, row in zip(names, rows, strict=True) if moved[row]}
        return [name for name in ("x", "y", "z", *turns) if name in movable - given]

    def start(self, values: Array, q: Array) -> Array:
        """The positions with the given coordinates set; those of a place on joints are behind them."""
        if self.asked:  # what is not named is kept as at home
            q = np.concatenate([q, np.repeat(self.place_at_home[None], len(q), axis=0)], axis=1)
        vectors = np.zeros((len(values), 3)) if set(VECTOR) & set(self.names) else None
        for column, name in enumerate(self.names):
            if vectors is not None and name in VECTOR:
                vectors[:, VECTOR.index(name)] = values[:, column]
            else:
                q[:, self.where[name]] = values[:, column]
        if vectors is not None:
            first = self.where[next(name for name in self.names if name in VECTOR)]
            q[:, first : first + 4] = vector_quaternion(vectors)
        place_following_joints(self.following, q, self.geometry.kept, self.geometry.designed)
        return q

    @cached_property
    def place_at_home(self) -> Array:
        """Where the end effector is at home, by the words of a place on joints."""
        tree = self.geometry.tree
        R, P = pose(tree, self.geometry.home).of(tree.places[tree.end_effector])
        return np.concatenate([P, [np.arctan2(R[1, 0], R[0, 0])], vector_quaternion(vector_from_rotation(R))])

    @property
    def at_home(self) -> Array:
        """Coordinates of home."""
        home = self.geometry.home
        if self.asked:
            home = np.concatenate([home, np.zeros(len(self.geometry.varied)), self.place_at_home])
        found = np.array([0.0 if name in VECTOR else home[self.where[name]] for name in self.names])
        turned = [k for k, name in enumerate(self.names) if name in VECTOR]
        if turned:
            first = self.where[self.names[turned[0]]]
            w, axis = home[first], home[first + 1 : first + 4]
            size = float(np.linalg.norm(axis))
            vector = axis * (2 * np.arctan2(size, w) / size) if size else axis
            found[turned] = [vector[VECTOR.index(self.names[k])] for k in turned]
        return found
