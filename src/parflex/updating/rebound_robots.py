"""A robot with many values at keys of its file: only the affected parts are built again.

A program, traced once, computes the numbers of the robot from the keys. The names of keys do not reveal whether they
move anything; a robot with other numbers is therefore assembled at each pose and compared. If poses move, or if the
reading would decide otherwise, robots are read and assembled one by one.

Masses, stiffnesses and dampers do not move a pose: positions and Jacobians are then computed once, and only M, D and K
change, through the bodies, joints and springs that have the keys.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.design.design_state import ResponseCase, SensitiveDesign
from parflex.design.vibration_responses import frequency_with_slopes
from parflex.errors import ParflexError
from parflex.forces.effort_allocation import driven_cables
from parflex.parameters.design_numbers import number_at
from parflex.parameters.parameters import Parameters
from parflex.recursion.dynamics import body_rows
from parflex.robot.configuration import Configuration, configure
from parflex.robot.load import acting_robot, with_settings
from parflex.robot.robot import Robot, frames_at
from parflex.robotfile.read import apply_settings
from parflex.spatial.dual import Sensitive, slopes_last
from parflex.statics.linear_model import LinearModel, about_pose, tree_stiffness
from parflex.statics.loads import cables_at_rest_length, held_robot, prepare_loads, prestressed_parts
from parflex.statics.mesh_error import INNER_BEAMS
from parflex.statics.modes import USUAL, Modes, modes_of
from parflex.tree.rigid_version import read_version
from parflex.updating.modes import SlopedModes, modes_at, pose_of

Array = np.ndarray
ELSEWHERE = 0.01  # of numbers, by which those of a compared robot are others, each by a share of its own
SAME = 1e-12  # of the size of the robot: rounding of positions
KINEMATICS = ("at", "link_jacobians", "closure_jacobian", "reduction")  # of a configuration, that other numbers leave


class BeamInsides:
    """What elements of beams and reductions leave out: made once for all poses of robots with the same beams."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}

    def modes_of(self, model: LinearModel, count: int) -> Modes:
        """So many modes, or all if they are fewer."""
        robot = model.robot
        robot.cache.update(self.known)
        found = modes_of(model, max(count, USUAL), or_fewer=True)
        self.known = {key: robot.cache[key] for key in INNER_BEAMS if key in robot.cache}
        return found


class ReboundRobots:
    """A robot, keys of its file, and the robots with other numbers there."""

    def __init__(self, robot: Robot, keys: Sequence[str], case: ResponseCase) -> None:
        self.robot, self.keys, self.case = robot, tuple(keys), case
        self.insides = BeamInsides()
        self._poses: dict[str, StillPose | None] = {}

    def of(self, values: Array) -> ReboundRobot:
        """The robot with these numbers at the keys."""
        return ReboundRobot(self, dict(zip(self.keys, map(float, values), strict=True)))

    @cached_property
    def _other(self) -> Robot | None:
        """A robot with other numbers at all keys, in no simple ratio; None where there is none, or no program."""
        if Parameters(self.robot, self.keys).numbers is None:
            return None
        shares = 1 + ELSEWHERE * np.sqrt(np.arange(2.0, 2 + len(self.keys)))
        numbers = {key: float(x * number_at(self.robot, key)) for key, x in zip(self.keys, shares, strict=True)}
        try:
            return with_settings(self.robot, numbers)
        except ParflexError:
            return None

    @cached_property
    def same_beams(self) -> bool:
        """Whether no key changes what beams are made of."""
        assert self._other is not None
        one, other = (
            (said.materials, said.sections, [frame.beam for frame in said.frame])
            for said in (self.robot.description, self._other.description)
        )
        return one == other

    def at(self, pose: str) -> StillPose | None:
        """What is kept of a pose; None where keys move something there."""
        if pose not in self._poses:
            self._poses[pose] = self._kept(pose)
        return self._poses[pose]

    def _kept(self, pose: str) -> StillPose | None:
        if self._other is None:
            return None
        try:
            here, there = (configure(robot, pose_of(pose)) for robot in (self.robot, self._other))
            return StillPose(here, self.case) if stand_alike(here, there) else None
        except ParflexError:
            return None


class ReboundRobot:
    """The robot with some numbers at keys of its file."""

    def __init__(self, designs: ReboundRobots, settings: Mapping[str, float]) -> None:
        self.designs, self.settings, self._own_insides = designs, settings, BeamInsides()

    @cached_property
    def _anew(self) -> SensitiveDesign:
        """The robot, read and put together again, with slopes."""
        return SensitiveDesign(with_settings(self.designs.robot, self.settings), self.designs.keys)

    @cached_property
    def _rebound(self) -> SensitiveDesign | None:
        """The robot of the file where it stands, with other numbers in it; None where it would be read otherwise."""
        first = self.designs.robot
        assert first.written is not None
        table = apply_settings(copy.deepcopy(first.written.table), self.settings, first.file)
        said = read_version(copy.deepcopy(table), first.file, first.written.elements, first.written.rigid)
        written = replace(first.written, table=table)
        alike: dict[str, Any] = {"known_home": first.home, "known_mobility": first.mobility}
        read: Robot = replace(first, description=said, written=written, **alike)
        numbers = Parameters(read, self.designs.keys).numbers
        if numbers is None:
            return None
        made = numbers.with_numbers({k: float(x) for k, x in enumerate(numbers.values[0])})
        return SensitiveDesign(replace(made, written=replace(written, tree=made.tree), **alike), self.designs.keys)

    def modes(self, pose: str, count: int) -> SlopedModes:
        """So many modes at a pose, or all if they are fewer, with slopes."""
        kept, given = self.designs.at(pose), self.designs.case
        sloped = self._rebound if kept is not None else None
        if kept is None or sloped is None:
            return modes_at(self._anew.robot, pose, given, count, self._anew)
        model = kept.model(sloped.robot)
        if model is None:
            return modes_at(sloped.robot, pose, given, count, sloped, kept.here)
        insides = self.designs.insides if self.designs.same_beams else self._own_insides
        modes = insides.modes_of(model, count)
        return SlopedModes(pose, modes, StillSlopes(sloped, sloped.robot, model.configuration, given))


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
