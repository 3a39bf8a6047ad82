"""Which rates sensors give and which follow, and the loops that hold a platform, seen from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parflex.closure import mobility
from parflex.closure.constraints import Closures, Loop
from parflex.errors import InputError
from parflex.models.forms.closing import CHANGE
from parflex.models.forms.form import Question
from parflex.models.forms.general_form import GeneralForm, general_form
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, pose
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot

Array = np.ndarray
CLEAN = 1e-13  # of the largest entry: what is smaller is rounding
PRODUCTS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


@dataclass(frozen=True, eq=False, repr=False)
class Hold(Record):
    """Loops that hold the platform, seen from it, and the least squares that find its motion from theirs.

    `inverse` is J_x^+ where it is made of numbers alone: the twist is in axes of the platform, so what is fixed on it
    does not change. `quadratic` then has, for each component of the platform's acceleration, what the products of its
    own angular velocity add; it is there only if all loops are balls (in the plane: hinges) on a platform that carries
    nothing else.
    """

    closures: Closures
    weights: Array = field(repr=False)
    inverse: Array | None = field(default=None, repr=False)
    quadratic: Array | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class RedundantSets(Record):
    """A robot with its sets of rates: joints of legs q_r, of these q = [q_a, q_s] and the others q_p; platform x."""

    general: GeneralForm  # its independent rates are the motors, unless some of these are spare
    legs: Array
    control: Array
    others: Array
    platform: Array
    hold: Hold

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.general.robot

    @property
    def motors(self) -> Array:
        """Rates of the motors."""
        return self.control[: len(self.control) - len(self.robot.sensed)]

    @property
    def spare(self) -> bool:
        """Whether there are more motors than freedoms."""
        return len(self.motors) > len(self.general.independent)

    @property
    def overdetermined(self) -> bool:
        """Whether sensors give more than the freedoms: then loops close in their least squares."""
        return len(self.control) > len(self.general.independent)

    @property
    def names(self) -> list[str]:
        """Names of the motors, then of the sensed joints."""
        return [self.robot.tree.rate_names[k] for k in self.control]

    @property
    def positions(self) -> Array:
        """Where motors and sensed joints stand among all positions."""
        tree = self.robot.tree
        return np.array([tree.links[tree.link_of_rate[k]].q.start for k in self.control], dtype=int)

    @property
    def turns(self) -> Array:
        """Which of them are angles that a whole turn does not change."""
        tree = self.robot.tree
        return np.array([tree.links[tree.link_of_rate[k]].periodic for k in self.control])


def redundant_sets(robot: Robot) -> RedundantSets:
    """The sets of a robot; its sensors are those of the file or of `Robot.sensing`."""
    tree = robot.tree
    if tree.elastic:
        raise InputError(
            "the redundant model needs rigid bodies",
            key="MODEL",
            value=robot.name,
            hint="use the robot without its beams, or the inverse model",
        )
    Configuration(robot, robot.home).refuse_undefined_actuation()
    motors = [k for k in robot.actuated if k not in robot.locked]
    if len(motors) > robot.mobility.freedoms(len(robot.free)):
        partition = Configuration(robot, robot.home).reduction.partition
    else:
        passive = np.array([k for k in robot.free if k not in set(motors)], dtype=int)
        J = mobility.scaled_jacobian(robot.closures, robot.home)
        chosen = mobility.choose_partition(J, passive, len(passive), np.ones(tree.n))
        partition = replace(chosen, independent=np.sort(np.array(motors, dtype=int)))
    bodies = [j for j, link in enumerate(tree.links) if link.joint.moves_freely]
    platform = [k for j in bodies for k in range(tree.links[j].v.start, tree.links[j].v.stop) if k in set(robot.free)]
    if any(
        row.kind != "coupling" and {*tree.path(j)} & {*bodies} for row in robot.closures.constraints for j in row.ends
    ):
        bodies, platform = [], []  # rods and struts hold it, not the joints of legs: it follows as these do
    legs = np.array([k for k in range(tree.n) if k not in set(platform)], dtype=int)
    control = np.array([*motors, *robot.sensed], dtype=int)
    others = np.array([k for k in legs if k in set(robot.free) and k not in set(control)], dtype=int)
    general = general_form(robot, partition, Question("redundant"))
    hold = hold_of(robot, bodies, platform)
    return RedundantSets(general, legs, control, others, np.array(platform, dtype=int), hold)


def hold_of(robot: Robot, bodies: list[int], platform: list[int]) -> Hold:
    """How the loops of a robot hold its free bodies, which have these rates."""
    tree = robot.tree
    loops: list[Loop] = []
    for loop in robot.closures.loops:
        if loop.first.link in bodies:
            loops.append(replace(loop, closed=True))
        elif loop.second.link in bodies:
            loops.append(replace(loop.reversed(tree) or loop, closed=True))
        elif {*tree.path(loop.first.link), *tree.path(loop.second.link)} & set(bodies):
            loops.append(replace(loop, closed=True))
    closures = Closures(tree, tuple(loops))
    weights = closures.row_units()
    if not platform:
        return Hold(closures, weights)
    rng = np.random.default_rng(0)
    found = []
    for q in (robot.home, robot.home + rng.uniform(-1, 1, tree.nq)):
        at = pose(tree, q)
        found.append(weights[:, None] * closures.jacobian(at, jacobians(tree, at))[:, platform])
    scaled = found[0] * tree.rate_units[platform]
    if mobility.rank(scaled) < len(platform):
        raise InputError(
            "the joints of the legs do not determine the pose of the platform",
            key="MODEL",
            value=robot.name,
            hint="the redundant model needs a platform constrained by its closures",
        )
    if np.abs(found[0] - found[1]).max() > CHANGE:
        return Hold(closures, weights)
    inverse = _clean(np.linalg.pinv(found[0]) * weights)
    points = len(bodies) == 1 and all(_is_point(tree, loop, bodies[0]) for loop in loops)
    carries = any(link.parent == bodies[0] for link in tree.links)
    return Hold(closures, weights, inverse, _quadratic(loops, inverse) if points and not carries else None)


def _is_point(tree: Any, loop: Loop, body: int) -> bool:
    whole = len(loop.translations) == (2 if tree.planar else 3)
    return whole and loop.turning == "free" and loop.first.link == body and loop.second.link != body


def _quadratic(loops: list[Loop], inverse: Array) -> Array:
    """What the products of the angular velocity, in the order of `PRODUCTS`, add to the platform's acceleration.

    A point at r turns with w x (w x r) = W r; least squares of the rows n . W r, summed before symbols come in, so
    that regular platforms cost nothing.
    """
    columns = []
    for a, b in PRODUCTS:
        W = np.zeros((3, 3))
        if a == b:
            W[range(3), range(3)] = -1.0
            W[a, a] = 0.0
        else:
            W[a, b] = W[b, a] = 1.0
        columns.append(np.concatenate([loop.translations @ (W @ loop.first.position) for loop in loops]))
    size = np.linalg.norm([loop.first.position for loop in loops]) * np.abs(inverse).max()
    result = inverse @ np.array(columns).T
    return np.where(np.abs(result) < CLEAN * max(size, 1e-300), 0.0, result)


def _clean(values: Array) -> Array:
    return np.where(np.abs(values) < CLEAN * np.abs(values).max(), 0.0, values)
