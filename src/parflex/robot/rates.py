"""Rates and accelerations of all joints from requested ones.

Requested rates are rows without units. With the motions that the closures allow as columns of N, requested values v are
possible if v = A s has a solution, where A = rows N. Requested accelerations are reduced by the part that the rates
cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

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
ROUNDING = 1e-12  # rad/s, typical lengths per s, and per s2: rounding of rates of order one is zero
KEPT = 1e-9  # of the size of a block: what is left of it after the earlier ones, if smaller, says nothing


def feasible_rates(here: Configuration, components: Mapping[str, float]) -> Array:
    """Return all rates from those of joints or frames (m/s, rad/s); others are zero as far as loops allow."""
    requested = requested_rates(here, components)
    requested.refuse_contradicted()
    return requested.solve(_rest(requested))


def feasible_accelerations(
    here: Configuration, components: Mapping[str, float], qd: Array, like: Mapping[str, float] | None
) -> Array:
    """All accelerations (m/s^2, rad/s^2) from `components` ones, at all rates `qd` (m/s, rad/s).

    Without them, the components that `like` names accelerate as little as the mechanism allows.
    """
    bias = Bias(qd, here.acceleration_bias(qd))
    requested = requested_rates(here, components, bias)
    requested.refuse_contradicted()
    if components:
        return requested.solve(_rest(requested)) + bias.b
    zero_request = requested_rates(here, dict.fromkeys(like or {}, 0.0), bias)
    return requested.solve([zero_request.block, *_rest(zero_request)]) + bias.b


def _rest(requested: RequestedRates) -> list[PriorityBlock]:
    """What is to rest, in falling priority: deformations, the first frame, motors, all coordinates."""
    here, tree = requested.here, requested.here.robot.tree
    every = np.eye(tree.n) / tree.rate_units
    b = np.zeros(tree.n) if requested.bias is None else requested.bias.b
    blocks = [PriorityBlock(rows, -rows @ b) for rows in here.resting]
    if requested.frames or not requested.joints:
        frame = next(iter(requested.frames), tree.end_effector)
        rows, drift = here.frame_rows(frame), requested.frame_bias(frame)
        zero = KEPT * tree.length  # a frame that cannot move, or cannot turn, has rows of rounding
        blocks += [PriorityBlock(rows[:3], -drift[:3], zero)]
        blocks += [PriorityBlock(rows[3:] * tree.length, -drift[3:] * tree.length, zero)]
    motors = every[list(here.robot.actuated)]
    return [*blocks, PriorityBlock(motors, -motors @ b), PriorityBlock(every, -every @ b)]


@dataclass(frozen=True, eq=False, repr=False)
class Bias(Record):
    """Accelerations `b` of all coordinates due to their rates `qd` alone."""

    qd: Array
    b: Array


@dataclass(frozen=True, eq=False)
class RequestedRates:
    """Rates, or accelerations with a `bias`, of joints by number and of components of frames by name."""

    here: Configuration
    joints: Mapping[int, float]
    frames: Mapping[str, Mapping[int, float]]
    bias: Bias | None = None

    @property
    def key(self) -> str:
        """Name of the argument."""
        return "velocity" if self.bias is None else "acceleration"

    def frame_bias(self, frame: str) -> Array:
        """Return the world acceleration of a frame due to the rates alone; zero for rates."""
        return np.zeros(6) if self._moving is None else self.here.frame_acceleration(frame, self._moving)

    @cached_property
    def rows(self) -> Array:
        """Requested components per unit of all rates, divided by `units`."""
        n = self.here.robot.tree.n
        blocks = [np.eye(n)[list(self.joints)]]
        blocks += [self.here.frame_rows(frame)[list(parts)] for frame, parts in self.frames.items()]
        return np.concatenate(blocks) / self.units[:, None]

    @cached_property
    def values(self) -> Array:
        """Requested components less their bias, divided by `units`."""
        return (self._given - self._drift) / self.units

    @cached_property
    def units(self) -> Array:
        """1 for rotations, the typical length for translations: with these a robot of any size has equal rows."""
        tree = self.here.robot.tree
        parts = [1.0 if c > 2 else tree.length for components in self.frames.values() for c in components]
        return np.concatenate([tree.rate_units[list(self.joints)], parts])

    @property
    def block(self) -> PriorityBlock:
        """Rows and values, with the size of rows that are rounding."""
        return PriorityBlock(self.rows, self.values, self.resolution)

    @cached_property
    def resolution(self) -> float:
        """Limit of singular values of the rows along allowed motions, and of relative residuals, that are rounding.

        The limit is that of all ranks of mechanisms. Positions that close the loops less well turn the null space by
        the closure error times the condition number.
        """
        J = self.here.scaled_closure_jacobian[:, self.here.robot.free]
        rank = self.here.robot.mobility.rank
        null_space_error = (
            self.here.closure_error / self.here.robot.tree.length * mobility.condition(J, rank) if rank else 0.0
        )
        return max(mobility.RANK_TOLERANCE, null_space_error)

    @cached_property
    def rank(self) -> int:
        """Number of requested components that are independent."""
        sizes = np.linalg.svd(self.rows @ self.here.motions, compute_uv=False)
        return int(np.sum(sizes > self.resolution))

    def solve(self, lower_blocks: Sequence[PriorityBlock]) -> Array:
        """Return all rates, or accelerations less the bias: those requested, then nearest to each of `lower_blocks`."""
        solution, missed = solve_by_priority(self.here.motions, [self.block, *lower_blocks])
        self._refuse(missed[0])
        # blocked rates are zero in J; in a null space they are rounding, with a sign that lossy gears would use
        return self.here.J @ solution[self.here.reduction.partition.independent]

    def refuse_impossible(self) -> None:
        """Raise where the mechanism cannot have the requested components together."""
        if self.values.any():
            self.solve([])

    def refuse_contradicted(self) -> None:
        """Raise where rates or accelerations of joints contradict couplings; locked joints rest."""
        robot = self.here.robot
        joint_rates = {**dict.fromkeys(robot.locked, 0.0), **self.joints}
        conflict = contradiction(robot.closures.constraints, robot.tree, joint_rates, offsets=False)
        if conflict is not None:
            raise InputError(
                conflict.message(self.key, self._per_time), key=self.key, value=conflict.joint, hint=conflict.hint
            )

    def _refuse(self, missed: Array) -> None:
        size = np.linalg.norm(self._given / self.units) + np.linalg.norm(self._drift / self.units)
        if self.bias is not None:  # components that the rates do not accelerate have the rounding of those that they do
            rate_units = self.here.robot.tree.rate_units
            size += np.linalg.norm(self.bias.b / rate_units) + np.linalg.norm(self.bias.qd / rate_units) ** 2
        limit = max(self.resolution * float(size), ROUNDING)
        if np.linalg.norm(missed) <= limit:
            return
        self.here.refuse_singular_legs()
        worst = int(np.abs(missed).argmax())
        others = [k for k in range(len(missed)) if k != worst]
        solution, _ = solve_by_priority(
            self.here.motions, [PriorityBlock(self.rows[others], self.values[others], self.resolution)]
        )
        possible = float(self._drift[worst] + self.units[worst] * (self.rows[worst] @ solution))
        name, unit = self._words[worst]
        possible = 0.0 if abs(possible) <= limit * self.units[worst] else possible
        requested_value, per = float(self._given[worst]), f"{unit}{self._per_time}"
        text = (
            f"the mechanism cannot have '{name}' = {requested_value:.6g} {per}: at this pose"
            f"{' and with the other components' * bool(others)} it can only be {possible:.6g} {per}"
        )
        hint = f"give that value or omit '{name}' ({self._describe_freedom(worst)})"
        raise InputError(text, key=self.key, value=requested_value, hint=hint)

    def _describe_freedom(self, number: int) -> str:
        """Describe what the frame of a component, or the mechanism, can do at this pose."""
        frame = [*[""] * len(self.joints), *(name for name, components in self.frames.items() for _ in components)][
            number
        ]
        if not frame:
            return f"the mechanism has {count_of(self.here.motions.shape[1], 'degree')} of freedom here"
        tree = self.here.robot.tree
        lengths = np.r_[np.full(3, tree.length), np.ones(3)]
        along = self.here.frame_rows(frame) @ self.here.motions / lengths[:, None]
        _, R, order = scipy.linalg.qr(along.T, mode="economic", pivoting=True)
        free = sorted(order[: int(np.sum(np.abs(np.diag(R)) > self.resolution))])
        names = ", ".join(_part(tree, k) for k in free)
        return f"'{frame}' has {count_of(len(free), 'degree')} of freedom here{': ' * bool(free)}{names}"

    @property
    def _per_time(self) -> str:
        return "/s" if self.bias is None else "/s2"

    @cached_property
    def _moving(self) -> Any:
        if self.bias is None:
            return None
        return motion(self.here.robot.tree, self.here.at, self.bias.qd, self.bias.b)

    @cached_property
    def _given(self) -> Array:
        parts = [value for components in self.frames.values() for value in components.values()]
        return np.array([*self.joints.values(), *parts])

    @cached_property
    def _drift(self) -> Array:
        """The part of the requested components that the rates cause."""
        if self.bias is None:
            return np.zeros(len(self._given))
        parts = [self.frame_bias(frame)[list(components)] for frame, components in self.frames.items()]
        return np.concatenate([self.bias.b[list(self.joints)], *parts])

    @property
    def _words(self) -> list[tuple[str, str]]:
        """Names and units of the components."""
        tree = self.here.robot.tree
        joint_names = [(tree.rate_names[k], _unit_of(tree, k)) for k in self.joints]
        parts = [(frame, c) for frame, components in self.frames.items() for c in components]
        return joint_names + [(f"{frame}.{_part(tree, c)}", "m" if c < 3 else "rad") for frame, c in parts]


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
    """Conditions `rows` x = `values`. Singular values below `zero` are rounding; None: below `KEPT` of the largest."""

    rows: Array
    values: Array
    zero: float | None = None


def solve_by_priority(basis: Array, blocks: Sequence[PriorityBlock]) -> tuple[Array, list[Array]]:
    """The combination x = basis s with the rows of each block nearest to its values in turn, and what each misses.

    Rows of a block are comparable with each other (squares of them are added), blocks need not be. Values may have
    columns, which are solved side by side.
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
    """Rows whose squares add up to x^T matrix x, for a matrix without negative eigenvalues."""
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))  # entries of kilograms beside those of kg m^2: first made alike
    size[size == 0.0] = 1.0
    values, vectors = np.linalg.eigh(matrix / np.outer(size, size))
    positive = values > 1e-14 * max(float(values.max(initial=0.0)), 1e-300)
    return np.sqrt(values[positive])[:, None] * vectors[:, positive].T * size
