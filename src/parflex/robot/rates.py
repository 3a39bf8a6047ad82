"""Compute rates and accelerations of all joints from requested ones.

Requested rates are rows without units. With the motions that the closures allow as columns of N, requested values v are
possible if v = A s has a solution, where A = rows N. Requested accelerations are reduced by the part that the rates
cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.errors import InputError
from parflex.records import Record, count_of
from parflex.recursion.kinematics import motion
from parflex.robot.pose_input import read_motion
from parflex.robot.states import contradiction
from parflex.tree.tree import Tree

if TYPE_CHECKING:
    from parflex.robot.configuration import Configuration

Array = np.ndarray
ROUNDING = 1e-12  # rad/s, characteristic lengths per s and s2: rounding of rates of order one
KEPT = 1e-9  # relative size of a block below which its remainder after earlier blocks is rounding


@dataclass(frozen=True, eq=False, repr=False)
class Bias(Record):
    """Accelerations `b` of all coordinates due to their rates `qd` alone."""

    qd: Array
    b: Array


class RequestedRates:
    """Rates, or accelerations with a `bias`, of joints by number and of components of frames by name.

    `rows` are those of the components per unit of all rates and `values` the components less their bias, both
    divided by `units`: 1 for rotations, the characteristic length for translations, so that robots of any size have
    equal rows.
    """

    def __init__(
        self,
        here: Configuration,
        joints: Mapping[int, float],
        frames: Mapping[str, Mapping[int, float]],
        bias: Bias | None = None,
    ) -> None:
        self.here, self.joints, self.frames, self.bias = here, joints, frames, bias
        self.key, self._per_time = ("velocity", "/s") if bias is None else ("acceleration", "/s2")
        tree, numbers = here.robot.tree, list(joints)
        self._moving = None if bias is None else motion(tree, here.at, bias.qd, bias.b)
        self._parts = [(frame, component) for frame, parts in frames.items() for component in parts]
        self._given = np.array([*joints.values(), *(frames[frame][component] for frame, component in self._parts)])
        lengths = [1.0 if component > 2 else tree.length for _, component in self._parts]
        self.units = np.concatenate([tree.rate_units[numbers], lengths])
        rows = [np.eye(tree.n)[numbers], *(here.frame_rows(frame)[list(parts)] for frame, parts in frames.items())]
        self.rows = np.concatenate(rows) / self.units[:, None]
        self._drift = np.zeros(len(self._given))  # the part of the requested components that the rates cause
        if bias is not None:
            drift = [self.frame_bias(frame)[list(parts)] for frame, parts in frames.items()]
            self._drift = np.concatenate([bias.b[numbers], *drift])
        self.values = (self._given - self._drift) / self.units

    def frame_bias(self, frame: str) -> Array:
        """Return the world acceleration of a frame due to the rates alone; zero for rates."""
        return np.zeros(6) if self._moving is None else self.here.frame_acceleration(frame, self._moving)

    @property
    def block(self) -> PriorityBlock:
        """Rows and values, with the rounding level of the rows."""
        return PriorityBlock(self.rows, self.values, self.resolution)

    @cached_property
    def resolution(self) -> float:
        """Singular values of rows and residuals that are rounding; open loops rotate the allowed motions."""
        J, rank = self.here.scaled_closure_jacobian[:, self.here.robot.free], self.here.robot.mobility.rank
        error = self.here.closure_error / self.here.robot.tree.length * mobility.condition(J, rank) if rank else 0.0
        return max(mobility.RANK_TOLERANCE, error)

    @property
    def rank(self) -> int:
        """Number of requested components that are independent."""
        sizes = np.linalg.svd(self.rows @ self.here.motions, compute_uv=False)
        return int(np.sum(sizes > self.resolution))

    @property
    def resting(self) -> list[PriorityBlock]:
        """Rows to minimise by priority: deformations, the first frame, motors, all coordinates."""
        here, tree = self.here, self.here.robot.tree
        every = np.eye(tree.n) / tree.rate_units
        b = np.zeros(tree.n) if self.bias is None else self.bias.b
        blocks = [PriorityBlock(rows, -rows @ b) for rows in here.resting]
        if self.frames or not self.joints:
            frame = next(iter(self.frames), tree.end_effector)
            rows, drift = here.frame_rows(frame), self.frame_bias(frame)
            zero = KEPT * tree.length  # a frame that cannot translate or rotate has rows of rounding
            blocks += [PriorityBlock(rows[:3], -drift[:3], zero)]
            blocks += [PriorityBlock(rows[3:] * tree.length, -drift[3:] * tree.length, zero)]
        motors = every[list(here.robot.actuated)]
        return [*blocks, PriorityBlock(motors, -motors @ b), PriorityBlock(every, -every @ b)]

    def solve(self, lower_blocks: Sequence[PriorityBlock]) -> Array:
        """Return all rates, or accelerations less the bias: those requested, then nearest to each of `lower_blocks`."""
        solution, missed = solve_by_priority(self.here.motions, [self.block, *lower_blocks])
        self._refuse(missed[0])
        # blocked rates are zero in J; in a null space they are rounding, with a sign that lossy gears would use
        return self.here.J @ solution[self.here.reduction.partition.independent]

    def refuse_contradicted(self) -> None:
        """Raise if rates or accelerations of joints contradict couplings or move locked joints."""
        robot = self.here.robot
        joint_rates = {**dict.fromkeys(robot.locked, 0.0), **self.joints}
        conflict = contradiction(robot.closures.constraints, robot.tree, joint_rates, offsets=False)
        if conflict is not None:
            text = conflict.message(self.key, self._per_time)
            raise InputError(text, key=self.key, value=conflict.joint, hint=conflict.hint)

    def _refuse(self, missed: Array) -> None:
        """Raise if the mechanism cannot have the requested components together."""
        size, tree = (
            np.linalg.norm(self._given / self.units) + np.linalg.norm(self._drift / self.units),
            self.here.robot.tree,
        )
        if self.bias is not None:  # components that the rates do not accelerate have the rounding of those that they do
            size += np.linalg.norm(self.bias.b / tree.rate_units) + np.linalg.norm(self.bias.qd / tree.rate_units) ** 2
        limit = max(self.resolution * float(size), ROUNDING)
        if np.linalg.norm(missed) <= limit:
            return
        self.here.refuse_singular_legs()
        worst = int(np.abs(missed).argmax())
        others = [k for k in range(len(missed)) if k != worst]
        block = PriorityBlock(self.rows[others], self.values[others], self.resolution)
        solution, _ = solve_by_priority(self.here.motions, [block])
        possible = float(self._drift[worst] + self.units[worst] * (self.rows[worst] @ solution))
        words = [(tree.rate_names[k], _unit_of(tree, k)) for k in self.joints]
        words += [(f"{frame}.{_part(tree, c)}", "m" if c < 3 else "rad") for frame, c in self._parts]
        name, unit = words[worst]
        possible = 0.0 if abs(possible) <= limit * self.units[worst] else possible
        requested_value, per = float(self._given[worst]), f"{unit}{self._per_time}"
        text = (
            f"the mechanism cannot have '{name}' = {requested_value:.6g} {per}: at this pose"
            f"{' and with the other components' * bool(others)} it can only be {possible:.6g} {per}"
        )
        hint = f"give that value or omit '{name}' ({self._describe_freedom(worst)})"
        raise InputError(text, key=self.key, value=requested_value, hint=hint)

    def _describe_freedom(self, number: int) -> str:
        """Describe the possible motions of the frame of a component, or of the mechanism, at this pose."""
        if number < len(self.joints):
            return f"the mechanism has {count_of(self.here.motions.shape[1], 'degree')} of freedom here"
        tree, (frame, _) = self.here.robot.tree, self._parts[number - len(self.joints)]
        lengths = np.r_[np.full(3, tree.length), np.ones(3)]
        along = self.here.frame_rows(frame) @ self.here.motions / lengths[:, None]
        _, R, order = scipy.linalg.qr(along.T, mode="economic", pivoting=True)
        free = sorted(order[: int(np.sum(np.abs(np.diag(R)) > self.resolution))])
        names = ", ".join(_part(tree, k) for k in free)
        return f"'{frame}' has {count_of(len(free), 'degree')} of freedom here{': ' * bool(free)}{names}"


def requested_rates(
    configuration: Configuration, components: Mapping[str, float], bias: Bias | None = None
) -> RequestedRates:
    """Read rates, or accelerations with a `bias`, in the words of joints and frames (m, rad, s)."""
    key = "velocity" if bias is None else "acceleration"
    return RequestedRates(configuration, *read_motion(configuration.robot.tree, components, key), bias)


def _unit_of(tree: Tree, rate: int) -> str:
    link = tree.links[tree.link_of_rate[rate]]
    units = [*(link.joint.rate_units if link.joint.rate_labels else ()), *link.body.units]
    unit = units[rate - link.own_v.start]
    return "" if unit == "1" else unit


def _part(tree: Tree, component: int) -> str:
    return ("x", "y", "z", "rx", "ry", "theta" if tree.planar else "rz")[component]


class PriorityBlock(NamedTuple):
    """Conditions `rows` x = `values`; singular values below `zero` (None: relative `KEPT`) are rounding."""

    rows: Array
    values: Array
    zero: float | None = None


def solve_by_priority(basis: Array, blocks: Sequence[PriorityBlock]) -> tuple[Array, list[Array]]:
    """Return x = basis s nearest to the values of each block in turn, and the residual of each.

    Rows of a block are comparable with each other (their squares are added), blocks need not be. Values may have
    columns, which are solved together.
    """
    columns = blocks[0][1].shape[1:] if blocks else ()
    s, null, missed = np.zeros((basis.shape[1], *columns)), np.eye(basis.shape[1]), []
    for rows, values, zero in blocks:
        along = rows @ basis
        if len(values) and null.shape[1]:
            # what is left of a block after the earlier ones is compared with the whole block, not with itself
            size = float(np.linalg.norm(along, 2)) if along.size else 0.0
            U, sizes, Vt = np.linalg.svd(along @ null, full_matrices=True)
            rank = int(np.sum(sizes > (KEPT * max(size, 1e-300) if zero is None else zero)))
            if rank:
                s = s + null @ (Vt[:rank].T @ ((U[:, :rank].T @ (values - along @ s)).T / sizes[:rank]).T)
            null = null @ Vt[rank:].T
        missed.append(along @ s - values)
    return basis @ s, missed


def matrix_root(matrix: Array) -> Array:
    """Return rows whose squares add up to x^T matrix x, for a positive semidefinite matrix."""
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))  # scales kg and kg m^2 to equal size
    size[size == 0.0] = 1.0
    values, vectors = np.linalg.eigh(matrix / np.outer(size, size))
    positive = values > 1e-14 * max(float(values.max(initial=0.0)), 1e-300)
    return np.sqrt(values[positive])[:, None] * vectors[:, positive].T * size
