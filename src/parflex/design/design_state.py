"""A robot at a pose with derivatives by values of its file: the loops stay closed and the pose stays.

Sensitive numbers replace all numbers that follow from the values. Positions follow from the loops and from the target
by the implicit function theorem: theory (60). The value of a response is a number with derivatives by keys, or one of
several equal numbers that keys split.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.closure.targets import (
    DistanceTarget,
    FrameRotationRows,
    FrameTarget,
    JointTarget,
    PoseRows,
    Target,
    small_rotation,
    with_fixed_rows,
)
from parflex.errors import InputError
from parflex.parameters.parameters import Parameters
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, place_jacobian, pose
from parflex.robot.beam_nodes import at_nodes
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.gearing import coupling_order
from parflex.robot.pose_input import read_distance, read_pose
from parflex.robot.rates import PriorityBlock, solve_by_priority
from parflex.robot.robot import Robot
from parflex.spatial.dual import Sensitive, seed_slopes, slopes
from parflex.spatial.linear import solve
from parflex.statics.load_case import LoadCase

Array = np.ndarray
CLOSES = 1e-6  # of the largest change of a loop: what is left of it, if larger, no motion closes


@dataclass(frozen=True, eq=False)
class ResponseCase(LoadCase):
    """Load case of a response, and the motion at its pose."""

    velocity: Mapping[str, float] | None = None
    acceleration: Mapping[str, float] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class FollowingConfiguration(Configuration):
    """A configuration with slopes: its independent rates are those of the same configuration without."""

    def pulled(self, forces: Array) -> Array:
        """J^T of forces along all rates."""
        part, reduction = self.reduction.partition, self.reduction
        if not len(part.dependent):
            return forces[part.independent]
        return forces[part.independent] - reduction.rest.T @ solve(reduction.block.T, forces[part.dependent])

    def along(self, independent: Array) -> Array:
        """All rates, from independent ones that do not change: columns of motions that the closures allow."""
        part, reduction = self.reduction.partition, self.reduction
        rates: Array = np.zeros((self.robot.tree.n, independent.shape[1]), dtype=object)
        rates[part.independent] = independent
        if len(part.dependent):
            rates[part.dependent] = solve(reduction.block, -(reduction.rest @ independent))
        return rates


class SensitiveDesign:
    """The robot with slopes by keys in all numbers that follow from them, `twin`.

    Where it is asked at many poses (`often`), programs that are traced for them pay.
    """

    def __init__(self, robot: Robot, keys: Sequence[str], often: bool = False) -> None:
        self.keys, self.robot, self.often = tuple(keys), robot, often
        self._by_nodes: dict[tuple[str, ...], SensitiveDesign] = {}

    def of(self, robot: Robot) -> SensitiveDesign:
        """Return the design of the same robot with more nodes."""
        return self._by_nodes.setdefault(robot.nodes, SensitiveDesign(robot, self.keys, self.often))

    @cached_property
    def parameters(self) -> Parameters:
        """The keys of the robot."""
        return Parameters(self.robot, self.keys)

    @cached_property
    def twin(self) -> Robot:
        """The robot with slopes; without keys the robot itself."""
        if not self.keys:
            return self.robot
        numbers = self.parameters.sloped_numbers
        assert numbers.slopes is not None
        sloped = zip(numbers.nominal, numbers.slopes.T, strict=True)
        return numbers.with_numbers(
            {k: Sensitive(float(value), slope.copy()) for k, (value, slope) in enumerate(sloped)}
        )


class DesignState:
    """A robot at a pose under a load case, `here`; `twin` is it with slopes by the keys, `there` where it is.

    Without keys the twin is the robot itself.
    """

    def __init__(
        self,
        robot: Robot,
        pose: Pose | None = None,
        keys: Sequence[str] = (),
        case: ResponseCase | None = None,
        design: SensitiveDesign | None = None,
    ) -> None:
        self.robot, self.keys = robot, tuple(keys)
        self.case = case or ResponseCase()
        self.pose = pose
        self.here = configure(robot, pose)
        self.design = design or SensitiveDesign(robot, self.keys)
        self.moving: tuple[Array, Array] | None = None  # all rates and accelerations, where they are known

    def with_nodes_at(self, frames: Collection[str]) -> DesignState:
        """Return the state of the robot with its beams divided at frames between nodes."""
        robot, pose = at_nodes(self.robot, self.here, frames)
        if robot is self.robot:
            return self
        result = DesignState(robot, pose, self.keys, self.case, self.design.of(robot))
        result.pose = self.pose
        return result

    @property
    def twin(self) -> Robot:
        """The robot with slopes."""
        return self.design.twin

    @property
    def count(self) -> int:
        """Number of keys."""
        return len(self.keys)

    @cached_property
    def q(self) -> Array:
        """All positions, with their slopes."""
        if not self.keys:
            return self.here.q
        return self.robot.tree.moved(self.here.q, seed_slopes(self.steps, Sensitive))

    @cached_property
    def steps(self) -> Array:
        """Rates of all coordinates per change of each key."""
        return pose_slopes(self.robot, self.twin, self.here.q, pose_conditions(self.robot, self.pose), self.keys)

    @cached_property
    def there(self) -> FollowingConfiguration:
        """Where the robot with slopes is."""
        return FollowingConfiguration(self.twin, self.q, self.here.reduction.partition)


def pose_conditions(robot: Robot, requested_pose: Pose | None) -> Target:
    """What a pose asks for, as rows; poses that are given by all coordinates ask that the end effector stays."""
    poses = robot.description.poses
    if requested_pose is None or (isinstance(requested_pose, str) and requested_pose == "home"):
        requested_pose = poses.get("home", {})
    if isinstance(requested_pose, str):
        requested_pose = poses[requested_pose]
    if not isinstance(requested_pose, Mapping):
        return Target()
    return with_fixed_rows(robot.tree, read_pose(robot.tree, requested_pose, "pose", None, robot.home))


def pose_slopes(robot: Robot, twin: Robot, q: Array, target: Target, keys: Sequence[str]) -> Array:
    """Rates of all coordinates per change of each key, at a pose that stays: theory (60).

    Loops stay closed and what the pose asks for is kept. What that leaves open is decided by the end effector, which
    stays, then by the motors, then by all coordinates. Bodies stay undeformed, and springs of drives at rest.
    """
    stretched = _stretched(robot, target)
    rest, rest_twin = (robot.resting_but(stretched) or robot), (twin.resting_but(stretched) or twin)
    tree, count = robot.tree, len(keys)
    at, at_twin = pose(tree, q), pose(twin.tree, q)
    links = jacobians(tree, at)
    fixed = _held(robot, twin, q, count, {row.rate for row in target.frames if isinstance(row, JointTarget)})
    rows = [*rest.closures.rows, *target.frames]
    twin_rows = [*rest_twin.closures.rows, *(row_of_twin(row, twin) for row in target.frames)]
    units = [row.scale(tree.length) for row in rows]
    J = _stacked([row.jacobian(tree, at, links) * unit[:, None] for row, unit in zip(rows, units, strict=True)], tree.n)
    drift = _stacked(
        [
            slopes(row.linear_residual(at_twin), count, Sensitive) * unit[:, None]
            for row, unit in zip(twin_rows, units, strict=True)
        ],
        count,
    )
    J_e, drift_e = _end_effector(robot, twin, at, at_twin, links, count)
    every = np.eye(tree.n) / tree.rate_units[:, None]
    motors = every[list(robot.actuated)]
    open_ = [k for k in range(tree.n) if k not in robot.locked and k not in set(robot.deformations)]
    blocks = [PriorityBlock(J, -drift - J @ fixed)]
    blocks += [
        PriorityBlock(J_e[:3], -drift_e[:3] - J_e[:3] @ fixed),
        PriorityBlock(J_e[3:], -drift_e[3:] - J_e[3:] @ fixed),
    ]
    blocks += [PriorityBlock(motors, np.zeros((len(motors), count))), PriorityBlock(every, np.zeros((tree.n, count)))]
    basis = np.eye(tree.n)[:, open_] * tree.rate_units[open_]
    rates, missed = solve_by_priority(basis, blocks)
    _refuse_open(missed[0], drift + J @ fixed, keys)
    return rates + fixed


def _stretched(robot: Robot, target: Target) -> frozenset[str]:
    """Elastic couplings that a pose itself stretches: they follow nothing."""
    named = {row.rate for row in target.frames if isinstance(row, JointTarget)}
    frames = tuple(row for row in target.frames if not isinstance(row, JointTarget))
    whole = Target(target.values, target.fixed | named, frames)
    return coupling_order(robot, whole, whole).stretched


def row_of_twin(row: PoseRows, twin: Robot) -> PoseRows:
    """What a pose asks for, asked of the places of the robot with slopes: a point may move on its link."""
    if isinstance(row, DistanceTarget):
        return read_distance(twin.tree, row.name, row.distance, "pose")
    if isinstance(row, FrameTarget | FrameRotationRows):
        return replace(row, place=twin.tree.places[row.name])
    return row


def _held(robot: Robot, twin: Robot, q: Array, count: int, requested: Collection[int]) -> Array:
    """Changes of coordinates that no loop moves: springs of drives rest, locked joints stand where they start.

    Those that the pose asks for stand where it puts them.
    """
    tree, fixed = robot.tree, np.zeros((robot.tree.n, count))
    for number in robot.drive_springs:
        rest, k = twin.tree.links[number].terms.rest, tree.links[number].v.start
        if isinstance(rest, Sensitive) and k not in requested:
            fixed[k] = rest.slope
    for k in robot.locked - set(requested):
        link, twin_link = tree.links[tree.link_of_rate[k]], twin.tree.links[tree.link_of_rate[k]]
        start = twin_link.start[0] if link.joint.one_axis else 0.0
        if isinstance(start, Sensitive) and start.value == q[link.q.start]:
            fixed[k] = start.slope
    return fixed


def _end_effector(
    robot: Robot, twin: Robot, at: Any, at_twin: Any, links: Sequence[tuple[Array, Array]], count: int
) -> tuple[Array, Array]:
    """World twist of the end effector per rate, and per change of each key at fixed positions."""
    name = robot.tree.end_effector
    place, twin_place = robot.tree.places[name], twin.tree.places[name]
    R, _ = at.of(place)
    J_v, J_w = place_jacobian(robot.tree, at, links, place)
    R_twin, P_twin = at_twin.of(twin_place)
    drift = [slopes(part, count, Sensitive) for part in (P_twin, small_rotation(np.asarray(R_twin) @ R.T))]
    length = robot.tree.length
    return np.concatenate([R @ J_v, length * R @ J_w]), np.concatenate([drift[0], length * drift[1]])


def _stacked(parts: list[Array], width: int) -> Array:
    return np.concatenate(parts) if parts else np.zeros((0, width))


def _refuse_open(missed: Array, drift: Array, keys: Sequence[str]) -> None:
    """Raise where a change of a key opens loops that no motion closes."""
    for k, key in enumerate(keys):
        if np.abs(missed[:, k]).max(initial=0.0) > CLOSES * np.abs(drift[:, k]).max(initial=0.0):
            raise InputError(
                f"the robot cannot be closed at this pose when '{key}' changes alone",
                key="keys",
                value=key,
                hint="change the lengths of all legs together, or choose another pose",
            )


@dataclass(frozen=True, eq=False, repr=False)
class MultipleValue(Record):
    """A value that several modes or directions have at once: `matrices` (keys x m x m) are symmetric.

    For a change of all keys, the eigenvalues of the sum of change times matrix are the changes of the m values, sorted;
    `place` says which of the sorted values is meant. So the value has no gradient, only directional derivatives.
    """

    value: float
    matrices: Array
    place: int

    @property
    def multiplicity(self) -> int:
        """Number of equal values."""
        return self.matrices.shape[1]

    @property
    def directional(self) -> Array:
        """Derivatives of all the equal values as one key grows alone, sorted; keys x m."""
        return np.linalg.eigvalsh(self.matrices) if len(self.matrices) else np.zeros((0, self.multiplicity))

    @property
    def slope(self) -> Array:
        """Derivative of the meant value as one key grows alone."""
        return self.directional[:, self.place]

    def along(self, changes: Array) -> Array:
        """Derivatives of the equal values for changes of all keys together, sorted."""
        return np.linalg.eigvalsh(np.tensordot(changes, self.matrices, 1))


def value_of(answer: Any) -> float:
    """The number itself."""
    return float(answer.value if isinstance(answer, MultipleValue | Sensitive) else answer)


def slope_of(answer: Any, count: int) -> Array:
    """Its slopes by the keys."""
    return np.asarray(answer.slope) if isinstance(answer, MultipleValue | Sensitive) else np.zeros(count)


def combined(answers: Sequence[Any], count: int, smallest: bool) -> Any:
    """One answer of several with the same value: the changes of each are those of all, sorted together."""
    if len(answers) == 1:
        return answers[0]
    blocks = [
        answer.matrices if isinstance(answer, MultipleValue) else slope_of(answer, count).reshape(count, 1, 1)
        for answer in answers
    ]
    size = sum(block.shape[1] for block in blocks)
    matrices, start = np.zeros((count, size, size)), 0
    for block in blocks:
        end = start + block.shape[1]
        matrices[:, start:end, start:end] = block
        start = end
    return MultipleValue(value_of(answers[0]), matrices, 0 if smallest else size - 1)


def inverse(answer: Any) -> Any:
    """One over an answer; of several equal values the largest becomes the smallest."""
    if not isinstance(answer, MultipleValue):
        return 1.0 / answer
    return MultipleValue(1.0 / answer.value, -answer.matrices / answer.value**2, answer.multiplicity - 1 - answer.place)
