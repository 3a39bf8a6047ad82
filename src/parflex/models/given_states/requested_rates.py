"""Requested rates or accelerations: rows without units, and the rule that decides whether the mechanism can have them.

With the motions that the closures allow as columns of N, requested values v are possible if v = A s has a solution,
where A = rows N. Accelerations count less the part that the rates cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from parflex.closure import mobility
from parflex.errors import InputError
from parflex.models.given_states.coupled_values import contradiction
from parflex.models.pose_input import read_motion
from parflex.models.priorities import Block, solve_in_order
from parflex.records import Record, count_of
from parflex.recursion.kinematics import motion
from parflex.tree.tree import Tree

if TYPE_CHECKING:
    from parflex.models.configuration import Configuration

Array = np.ndarray
ROUNDING = 1e-12  # rad/s, typical lengths per s, and per s2: rounding of rates of order one is zero


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
        found = [np.eye(n)[list(self.joints)]]
        found += [self.here.frame_rows(frame)[list(parts)] for frame, parts in self.frames.items()]
        return np.concatenate(found) / self.units[:, None]

    @cached_property
    def values(self) -> Array:
        """Requested components less their bias, divided by `units`."""
        return (self._given - self._drift) / self.units

    @cached_property
    def units(self) -> Array:
        """1 for rotations, the typical length for translations: with these a robot of any size has equal rows."""
        tree = self.here.robot.tree
        parts = [1.0 if c > 2 else tree.length for given in self.frames.values() for c in given]
        return np.concatenate([tree.rate_units[list(self.joints)], parts])

    @property
    def block(self) -> Block:
        """Rows and values, with the size of rows that are rounding."""
        return Block(self.rows, self.values, self.resolution)

    @cached_property
    def resolution(self) -> float:
        """Limit of singular values of the rows along allowed motions, and of relative residuals, that are rounding.

        The limit is that of all ranks of mechanisms. Positions that close the loops less well turn the null space by
        the closure error times the condition number.
        """
        J = self.here.scaled_closure_jacobian[:, self.here.robot.free]
        rank = self.here.robot.mobility.rank
        turned = self.here.closure_error / self.here.robot.tree.length * mobility.condition(J, rank) if rank else 0.0
        return max(mobility.RANK_TOLERANCE, turned)

    @cached_property
    def rank(self) -> int:
        """Number of requested components that are independent."""
        sizes = np.linalg.svd(self.rows @ self.here.motions, compute_uv=False)
        return int(np.sum(sizes > self.resolution))

    def solve(self, rest: Sequence[Block]) -> Array:
        """Return all rates, or accelerations less the bias: those requested, then nearest to each of `rest`."""
        found, missed = solve_in_order(self.here.motions, [self.block, *rest])
        self._refuse(missed[0])
        return found

    def refuse_impossible(self) -> None:
        """Raise where the mechanism cannot have the requested components together."""
        if self.values.any():
            self.solve([])

    def refuse_contradicted(self) -> None:
        """Raise where rates or accelerations of joints contradict couplings; locked joints rest."""
        robot = self.here.robot
        given = {**dict.fromkeys(robot.locked, 0.0), **self.joints}
        said = contradiction(robot.closures.constraints, robot.tree, given, offsets=False)
        if said is not None:
            raise InputError(said.message(self.key, self._per), key=self.key, value=said.joint, hint=said.hint)

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
        found, _ = solve_in_order(self.here.motions, [Block(self.rows[others], self.values[others], self.resolution)])
        possible = float(self._drift[worst] + self.units[worst] * (self.rows[worst] @ found))
        name, unit = self._words[worst]
        possible = 0.0 if abs(possible) <= limit * self.units[worst] else possible
        given, per = float(self._given[worst]), f"{unit}{self._per}"
        raise InputError(
            f"the mechanism cannot have '{name}' = {given:.6g} {per}: at this pose"
            f"{' and with the other components' * bool(others)} it can only be {possible:.6g} {per}",
            key=self.key,
            value=given,
            hint=f"give that value or omit '{name}' ({self._can_do(worst)})",
        )

    def _can_do(self, number: int) -> str:
        """Describe what the frame of a component, or the mechanism, can do at this pose."""
        frame = [*[""] * len(self.joints), *(name for name, given in self.frames.items() for _ in given)][number]
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
    def _per(self) -> str:
        return "/s" if self.bias is None else "/s2"

    @cached_property
    def _moving(self) -> Any:
        if self.bias is None:
            return None
        return motion(self.here.robot.tree, self.here.at, self.bias.qd, self.bias.b)

    @cached_property
    def _given(self) -> Array:
        parts = [value for given in self.frames.values() for value in given.values()]
        return np.array([*self.joints.values(), *parts])

    @cached_property
    def _drift(self) -> Array:
        """The part of the requested components that the rates cause."""
        if self.bias is None:
            return np.zeros(len(self._given))
        parts = [self.frame_bias(frame)[list(given)] for frame, given in self.frames.items()]
        return np.concatenate([self.bias.b[list(self.joints)], *parts])

    @property
    def _words(self) -> list[tuple[str, str]]:
        """Names and units of the components."""
        tree = self.here.robot.tree
        own = [(tree.rate_names[k], _unit_of(tree, k)) for k in self.joints]
        parts = [(frame, c) for frame, given in self.frames.items() for c in given]
        return own + [(f"{frame}.{_part(tree, c)}", "m" if c < 3 else "rad") for frame, c in parts]


def requested_rates(here: Configuration, given: Mapping[str, float], bias: Bias | None = None) -> RequestedRates:
    """Read rates, or accelerations with a `bias`, in the words of joints and frames (m, rad, s)."""
    key = "velocity" if bias is None else "acceleration"
    return RequestedRates(here, *read_motion(here.robot.tree, given, key), bias)


def _unit_of(tree: Tree, rate: int) -> str:
    link = tree.links[tree.link_of_rate[rate]]
    units = [*(link.joint.rate_units if link.joint.rate_labels else ()), *link.body.units]
    unit = units[rate - link.own_v.start]
    return "" if unit == "1" else unit


def _part(tree: Tree, component: int) -> str:
    return ("x", "y", "z", "rx", "ry", "theta" if tree.planar else "rz")[component]
