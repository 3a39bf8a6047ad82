"""A platform in motion with the joint values of its legs, and from it all positions and rates of the robot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parflex.models.forms.on_legs.platform_newton import PlatformPose
from parflex.records import Record
from parflex.recursion.kinematics import Pose, pose
from parflex.robot.legs import Legs, PlatformMotion, leg_motion

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class LegState(Record):
    """The platform in motion, without acceleration but for gravity, and the joint values of its legs."""

    form: Any
    platform: PlatformMotion
    values: list[Array]
    guess: Array | None = None  # of all positions, where these were given
    rates: Array | None = None  # of the platform and its modes, in its own axes
    found: PlatformPose | None = None  # where motors say it

    @cached_property
    def at(self) -> Pose:
        """Poses of all links."""
        return pose(self.form.robot.tree, self.q)

    @cached_property
    def q(self) -> Array:
        """All positions, those of the legs from the platform, in the turn of the guess."""
        assert self.guess is not None
        closed = self.guess.copy()
        for place, value in plain_values(self.form.legs, self.values, self.guess).items():
            closed[place] = value
        return closed

    @cached_property
    def qd(self) -> Array:
        """All rates."""
        form, tree = self.form, self.form.robot.tree
        found: Array = np.zeros(tree.n, dtype=object)
        found[form.independent] = self._own_rates() if self.rates is None else self.rates
        for leg, joints in zip(form.legs.legs, self.values, strict=True):
            own = leg_motion(form.legs, leg, joints, self.platform).qd
            found[[tree.links[j].v.start for j in leg.links]] = own
        return found

    def _own_rates(self) -> Array:
        joint, platform = self.form.robot.tree.links[self.form.legs.platform].joint, self.platform
        v, w = platform.R.T @ platform.v, platform.R.T @ platform.w
        return np.concatenate([joint.S_v.T @ v + joint.S_w.T @ w, platform.ed])


def plain_values(legs: Legs, values: list[Array], near: Array | None = None) -> dict[int, Any]:
    """Joint values by position coordinate of the robot, angles as numbers; `near` says in which turn they are."""
    tree, found = legs.robot.tree, {}
    for leg, own in zip(legs.legs, values, strict=True):
        for link, value in zip((tree.links[j] for j in leg.links), own, strict=True):
            found[link.q.start] = value
            if not link.periodic:
                continue
            cos, sin = np.cos(value), np.sin(value)
            if near is None:
                found[link.q.start] = np.arctan2(sin, cos)
                continue
            guess = near[link.q.start]
            c, s = np.cos(guess), np.sin(guess)
            found[link.q.start] = guess + np.arctan2(sin * c - cos * s, cos * c + sin * s)
    return found
