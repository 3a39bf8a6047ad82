"""Mobility of a robot, judged at home and at closed poses beside it because home may be a special pose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure import mobility
from parflex.records import Record
from parflex.recursion.kinematics import pose

if TYPE_CHECKING:
    from parflex.robot.robot import Robot

Array = np.ndarray
CLOSED = 1e-11  # m: Newton closes loops to rounding


@dataclass(frozen=True, eq=False, repr=False)
class Mobility(Record):
    """Rank of the closures and what follows from it."""

    rank: int
    redundant: tuple[int, ...]  # rows that repeat others
    home_rank: int
    beside: tuple[Array, ...] = ()  # closed poses nearby, at which it was judged

    def freedoms(self, columns: int) -> int:
        """Independent motions when this many rates are free."""
        return columns - self.rank


class MotionsAtHome:
    """Ranks and sizes of the closures of a robot at home and beside it."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._poses: dict[bytes, list[Array]] = {}  # by the free rates

    def mobility_with(self, locked: frozenset[int]) -> Mobility:
        """Mobility with the rates `locked` (numbers) locked."""
        free = np.array([k for k in range(self.robot.tree.n) if k not in locked], dtype=int)
        J = mobility.scaled_jacobian(self.robot.closures, self.robot.home)[:, free]
        home_rank = mobility.rank(J)
        best, rank = J, home_rank
        poses = self._random_poses(free)
        for q in poses:
            other = mobility.scaled_jacobian(self.robot.closures, q)[:, free]
            if mobility.rank(other) > rank:
                best, rank = other, mobility.rank(other)
        return Mobility(rank, tuple(mobility.redundant_rows(best, rank)), home_rank, tuple(poses))

    @cached_property
    def reference_poses(self) -> tuple[Array, ...]:
        """Home and closed poses nearby: what holds at all of them holds in general."""
        return (self.robot.home, *self._random_poses(self.robot.free))

    @cached_property
    def usual_sizes(self) -> Array:
        """Largest singular values at regular poses: of the scaled closures, and of motors per allowed motion."""
        robot, free = self.robot, self.robot.free
        driven = [i for i, k in enumerate(free) if k in robot.actuated]
        sizes = np.zeros(2)
        for q in self.reference_poses:
            J = mobility.scaled_jacobian(robot.closures, q)[:, free]
            J, _, _, motions = robot.gearing.judged(J, free, robot.mobility.rank, robot.tree.rate_units)
            A = motions[driven]
            sizes = np.maximum(sizes, np.array([np.linalg.norm(part, 2) if part.size else 0.0 for part in (J, A)]))
        return sizes

    def _random_poses(self, free: Array) -> list[Array]:
        """Two closed poses a little away from home, along motions that the closures allow."""
        if not self.robot.closures.size:
            return []
        key = free.tobytes()
        if key not in self._poses:
            self._poses[key] = self._known_beside(free) or self._closed_beside(free)
        return self._poses[key]

    def _known_beside(self, free: Array) -> list[Array]:
        """Those of the robot from which its mobility is known, where loops close at them as they did there."""
        known = self.robot.known[1]
        if known is None or not np.array_equal(free, self.robot.free):
            return []
        poses = [q for q in known.beside if len(q) == self.robot.tree.nq]
        opened = [self.robot.closures.residual(pose(self.robot.tree, q)) for q in poses]
        return poses if all(np.abs(rows).max() < CLOSED for rows in opened) else []

    def _closed_beside(self, free: Array) -> list[Array]:
        J = mobility.scaled_jacobian(self.robot.closures, self.robot.home)[:, free]
        V = np.linalg.svd(J)[2] if J.size else np.eye(len(free))
        poses = []
        for q in self.beside_home(free, V[mobility.rank(J) :]):
            closed, error = self.robot.assembler.newton(q, free, list(self.robot.closures.rows))
            if error < CLOSED:
                poses.append(closed)
        return poses

    def beside_home(self, free: Array, motions: Array | None = None) -> list[Array]:
        """Two poses a little away from home along random motions, of all free rates or of these (rows)."""
        rng, directions = np.random.default_rng(0), np.eye(len(free)) if motions is None else motions
        poses = []
        for size in (0.15, 0.1) if len(directions) else ():
            direction = rng.standard_normal(len(directions)) @ directions
            step = np.zeros(self.robot.tree.n)
            step[free] = size * direction / np.abs(direction).max() * self.robot.tree.rate_units[free]
            poses.append(self.robot.tree.moved(self.robot.home, step))
        return poses
