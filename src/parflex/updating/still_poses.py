"""Poses that do not depend on the keys: positions and Jacobians are computed once for all values.

Masses, stiffnesses and dampers change the matrices M, D and K alone, through the bodies, joints and springs that have
the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from parflex.design.design_state import ResponseCase, SensitiveDesign
from parflex.design.vibration_responses import frequency_with_slopes
from parflex.forces.effort_allocation import driven_cables
from parflex.recursion.dynamics import body_rows
from parflex.robot.configuration import Configuration
from parflex.robot.load import acting_robot
from parflex.robot.robot import Robot, frames_at
from parflex.spatial.dual import Sensitive, slopes_last
from parflex.statics.linear_model import LinearModel, about_pose, tree_stiffness
from parflex.statics.loads import cables_at_rest_length, held_robot, prepare_loads, prestressed_parts
from parflex.statics.modes import Modes

Array = np.ndarray
SAME = 1e-12  # of the size of the robot: rounding of positions
KINEMATICS = ("at", "link_jacobians", "closure_jacobian", "reduction")  # of a configuration, that other numbers leave


def stand_alike(one: Configuration, other: Configuration) -> bool:
    """Whether two robots with the same coordinates stand and move alike: positions, frames, and all that closes."""
    length = one.robot.tree.length
    if one.q.shape != other.q.shape or not np.allclose(one.q, other.q, rtol=0, atol=SAME * max(length, 1.0)):
        return False
    here, there = (frames_at(robot, one.q) for robot in (one.robot, other.robot))
    pairs = [(one.closure_jacobian, other.closure_jacobian)]
    for name, (position, rotation) in here.items():
        pairs += [(position / length, there[name][0] / length), (rotation, there[name][1])]
    for first, second in zip(one.link_jacobians, other.link_jacobians, strict=True):
        pairs += list(zip(first, second, strict=True))
    return all(
        a.shape == b.shape and np.abs(a - b).max(initial=0.0) <= SAME * max(np.abs(a).max(initial=0.0), 1.0)
        for a, b in pairs
    )


class StillPose:
    """A pose at which no key moves anything, and the robot of the file there."""

    def __init__(self, here: Configuration, case: ResponseCase) -> None:
        self.here, self.given = here, case

    @cached_property
    def _held(self) -> tuple[Configuration, Any]:
        """The robot of the file as it is held, and what acts on it."""
        given = self.given
        return prepare_loads(self.here.robot, self.here, given)

    def model(self, robot: Robot) -> LinearModel | None:
        """The linear model with the numbers of another robot; None where it is not about the undeformed pose."""
        given = self.given
        if given.about == "equilibrium" or given.wrench or driven_cables(robot):
            return None
        held = held_robot(acting_robot(robot, given.without), self.here.q, given)
        first, loading = self._held
        here = Configuration(held, self.here.q, first.reduction.partition)
        here.__dict__.update({word: getattr(first, word) for word in KINEMATICS})
        if cables_at_rest_length(here) or (given.about is None and prestressed_parts(here)):
            return None
        return about_pose(here, loading)


class StillSlopes:
    """How forms of motions change with keys that move nothing: `here` is the robot as it is held, without slopes."""

    def __init__(self, design: SensitiveDesign, robot: Robot, here: Configuration, given: ResponseCase) -> None:
        self.here, self.count = here, len(design.keys)
        self.twin = held_robot(acting_robot(design.twin, given.without), here.q, given, robot)

    @cached_property
    def _bodies(self) -> list[tuple[Array, Array]]:
        """Of each body that keys reach: what it moves by per rate, and slopes of its inertia, keys last."""
        tree, found = self.twin.tree, []
        for k, (own, link) in enumerate(zip(self.here.robot.tree.links, tree.links, strict=True)):
            if link.body is not own.body:
                inertia = link.body.inertia_matrix(self.here.q[link.e])
                rows = body_rows(tree, link, self.here.link_jacobians[k])
                found.append((rows, slopes_last(inertia, Sensitive, self.count)))
            rotor = link.terms.inertia if link.terms.inert else 0.0
            if isinstance(rotor, Sensitive):
                found.append((np.eye(tree.n)[[link.v.start]], np.asarray(rotor.slope)[None, None]))
        return found

    @cached_property
    def _stiffness(self) -> list[tuple[Array, Array, Array]]:
        """Of damping and stiffness of the open tree: rows and columns of what keys reach, and slopes of it."""
        at = Configuration(self.twin, self.here.q.astype(object), self.here.reduction.partition)
        found = []
        for matrix in reversed(tree_stiffness(at)):
            numbers = matrix.ravel().tolist()
            places = [k for k, x in enumerate(numbers) if isinstance(x, Sensitive)]
            slopes = np.array([numbers[k].slope for k in places]).reshape(len(places), self.count)
            rows, columns = np.divmod(np.array(places, dtype=int), len(matrix))
            found.append((rows, columns, slopes))
        return found

    def of_motions(self, motions: Array) -> list[Array]:
        """Slopes of mass, damping and stiffness along columns of all rates, keys last."""
        size = motions.shape[1]
        mass = np.zeros((size, size, self.count))
        for rows, slopes in self._bodies:
            along = rows @ motions
            mass += np.einsum("ia,ijk,jb->abk", along, slopes, along)
        return [mass, *(np.einsum("ea,ek,eb->abk", motions[i], slopes, motions[j])
                        for i, j, slopes in self._stiffness)]  # fmt: skip

    def forms(self, independent: Array) -> Sequence[Array]:
        """The same along columns of independent rates."""
        return self.of_motions(self.here.J @ independent)

    def frequency(self, modes: Modes, number: int) -> Any:
        """The frequency of a mode, from 0, with its slopes."""

        def changes(shapes: Array, square: float) -> Array:
            mass, _, stiffness = self.of_motions(shapes)
            return np.moveaxis(stiffness - square * mass, 2, 0)

        return frequency_with_slopes(modes, number, changes)
