"""Twists of the end effector in modes: velocity of its origin and angular velocity, in world axes."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from parflex.errors import InputError
from parflex.maps.batches import Geometry, Places
from parflex.maps.node_unknowns import NodeModel
from parflex.maps.nodes import Assembly
from parflex.maps.responses.at_one_pose import signed_twists
from parflex.recursion.kinematics import jacobians, place_jacobian, pose
from parflex.robot.robot import Robot
from parflex.tree.tree import GROUND

Array = np.ndarray


class Platform:
    """The end effector of a robot; `model` says how its link moves with the unknowns of whole matrices."""

    def __init__(self, robot: Robot, geometry: Geometry, model: NodeModel | None) -> None:
        self.tree, self.place = robot.tree, robot.tree.places[robot.tree.end_effector]
        self.position = self.place.position
        if geometry.designs is not None:
            self.position = geometry.designs.of_part(("places", robot.tree.end_effector, "position"), self.position)
        if self.place.link == GROUND:
            raise InputError("the end effector does not move, so it has no shapes", key="shapes")
        self.model = model
        self.geometry = geometry

    @cached_property
    def own(self) -> Places:
        """Where its link is."""
        return self.geometry.places([self.place.link])

    @cached_property
    def assembly(self) -> Assembly:
        """Of the link alone, in whole matrices."""
        assert self.model is not None
        return Assembly(self.model, [self.place.link])

    @cached_property
    def links(self) -> Places:
        """Where links are that move it in whole matrices."""
        return self.geometry.places(self.assembly.links)

    def signed(self, twists: Array) -> Array:
        """Twists with the sign that shapes have."""
        return signed_twists(twists, self.tree.length)

    def jacobians(self, q: Array, designs: Array | None = None) -> Array:
        """Twist per unit of each unknown of the whole matrices (poses x 6 x unknowns)."""
        assert self.model is not None
        at, assembly = self.links(q), self.assembly
        if designs is not None and self.geometry.designs is not None:
            assembly = Assembly(self.model, [self.place.link], designs=self.geometry.designs.of_rows(designs))
        columns, W = assembly.twist(self.place.link, *at)
        J = np.zeros((len(q), 6, self.model.columns))
        J[:, :, columns] = self._at_place(q, assembly.local(self.place.link, *at) @ W, designs)
        left = assembly.motions(*at)
        return J if left is None else J @ left

    def of_tree(self, q: Array, shapes: Array) -> Array:
        """From shapes over the coordinates of the tree (columns) at its positions."""
        at = pose(self.tree, q)
        J_v, J_w = place_jacobian(self.tree, at, jacobians(self.tree, at), self.place)
        R = at.rotation[self.place.link] @ self.place.rotation
        return self.signed(np.concatenate([R @ J_v, R @ J_w]).dot(shapes).T)

    def _at_place(self, q: Array, twists: Array, designs: Array | None = None) -> Array:
        """From columns of twists of the link in its axes (poses x 6 x count) to those of the place in world axes."""
        R = self.own(q)[0][:, 0]
        v, w = twists[:, :3], twists[:, 3:]
        position = self.position[None] if self.position.ndim == 1 else self.position[designs]
        x, y, z = position.T[:, :, None]
        moved = v + np.stack([w[:, 1] * z - w[:, 2] * y, w[:, 2] * x - w[:, 0] * z, w[:, 0] * y - w[:, 1] * x], axis=1)
        return np.concatenate([R @ moved, R @ w], axis=1)
