"""A robot with many values at keys of its file: only the affected parts are built again.

A program, traced once, computes the numbers of the robot from the keys. The names of keys do not reveal whether they
move anything; a robot with other numbers is therefore assembled at each pose and compared. If poses move, or if the
reading would decide otherwise, robots are read and assembled one by one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.design.design_state import ResponseCase, SensitiveDesign
from parflex.errors import ParflexError
from parflex.parameters.design_numbers import number_at
from parflex.parameters.parameters import Parameters
from parflex.robot.configuration import configure
from parflex.robot.load import with_settings
from parflex.robot.robot import Robot
from parflex.robotfile.read import apply_settings
from parflex.statics.linear_model import LinearModel
from parflex.statics.mesh_error import INNER_BEAMS
from parflex.statics.modes import USUAL, Modes, modes_of
from parflex.tree.rigid_version import read_version
from parflex.updating.modes import SlopedModes, modes_at, pose_of
from parflex.updating.still_poses import StillPose, StillSlopes, stand_alike

Array = np.ndarray
ELSEWHERE = 0.01  # of numbers, by which those of a compared robot are others, each by a share of its own


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
