"""Partition the rates into independent and dependent ones, and reduce forces to the independent rates.

All coordinates follow from the independent ones, over any scalar, for a fixed choice of dependent rates.
Theory (12), (13): with J_f the block of the dependent and J_0 that of the independent rates, qd_f = -J_f^-1 J_0 qd and
qdd_f = -J_f^-1 (J_0 qdd + b_star). Forces go the other way: J^T f = f_0 - J_0^T J_f^-T f_f.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.closure.constraints import Closures
from parflex.closure.mobility import SINGULAR, TINY, Usual, condition, pivoted_columns
from parflex.errors import SingularError
from parflex.records import Record
from parflex.recursion.kinematics import Pose, motion
from parflex.spatial.linear import scalar_type, solve

Array = np.ndarray
BRANCH = 1e-6  # of the largest singular value: repeated rows are below, also at double roots, other branches far above


def refuse_other_branch(block: Array, generic_rank: int) -> None:
    """Raise if rows that are redundant in general are not: the loops allow more motions than at home.

    A computation with as many rows as at home would open the other loops.
    """
    if min(block.shape) <= generic_rank:
        return
    values = np.linalg.svd(block, compute_uv=False)
    if values[generic_rank] > BRANCH * max(values[0], TINY):
        free_motions = block.shape[1] - int(np.sum(values > BRANCH * values[0]))
        text = (
            f"the loops close here in another way than at home, where they leave {block.shape[1] - generic_rank} "
            f"motions: here they leave {free_motions}"
        )
        raise SingularError(text, key="pose", hint="choose a pose inside the workspace")


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Record):
    """The rows in use, and which of the free columns are dependent."""

    rows: Array
    dependent: Array
    independent: Array


def choose_partition(J: Array, free: Array, generic_rank: int, weights: Array, usual: Usual | None = None) -> Partition:
    """Return rows and columns of a well-conditioned square block of the scaled `J`.

    Rows, then columns are chosen by pivoting. `weights` prefers dependent columns, so that the choice is natural
    (joints of the legs before the platform) unless that is ten times worse. `usual` as in `condition`.
    """
    if generic_rank == 0:
        return Partition(np.zeros(0, int), np.zeros(0, int), free)
    block = J[:, free]
    refuse_other_branch(block, generic_rank)
    rows = np.sort(pivoted_columns(block.T, generic_rank)[0])
    dependent = np.sort(free[pivoted_columns(block[rows] * weights[free], generic_rank)[0]])
    worst = condition(block[rows], generic_rank, usual)
    if worst > SINGULAR:
        text = (
            f"the closures are singular at this pose (condition number {worst:.1e}): "
            "the mechanism may change its motion mode here"
        )
        raise SingularError(text, key="pose", hint="choose another pose")
    return Partition(rows, dependent, np.setdiff1d(free, dependent))


@dataclass(frozen=True, eq=False, repr=False)
class Reduction(Record):
    """The two blocks of the closure rows at a pose, and the number of all rates."""

    partition: Partition
    block: Array  # J_f
    rest: Array  # J_0
    size: int

    def rates(self, independent: Array) -> Array:
        """Return all rates."""
        return self.matrix @ independent

    def accelerations(self, closures: Closures, at: Pose, qd: Array, independent: Array) -> Array:
        """Return all accelerations from the independent ones, in a motion with all rates `qd`.

        The independent accelerations alone open the loops; closing them again by the dependent ones costs fewer
        operators than J qdd + b.
        """
        start: Array = np.zeros(self.size, dtype=scalar_type(independent, qd))
        start[self.partition.independent] = independent
        if not len(self.partition.dependent):
            return start
        return start + self.closing(closures.bias(at, motion(closures.tree, at, qd, start)))

    def closing(self, rows: Array) -> Array:
        """Return accelerations of the dependent rates that cancel those of the closure rows."""
        part = self.partition
        result: Array = np.zeros(self.size, dtype=scalar_type(self.block, rows))
        if len(part.dependent):
            result[part.dependent] = -solve(self.block, rows[part.rows])
        return result

    def forces(self, f: Array) -> Array:
        """Return J^T f, the forces along the independent rates."""
        return self.matrix.T @ f

    @cached_property
    def matrix(self) -> Array:
        """J, all rates per independent rate."""
        part = self.partition
        J: Array = np.zeros((self.size, len(part.independent)), dtype=scalar_type(self.block))
        J[part.independent, range(len(part.independent))] = 1.0
        if len(part.dependent):
            J[part.dependent] = solve(self.block, -self.rest)
        return J


def reduction(J_tot: Array, partition: Partition) -> Reduction:
    """Return the reduction of closure rows by a choice of rows and columns."""
    part = partition
    return Reduction(
        part, J_tot[np.ix_(part.rows, part.dependent)], J_tot[np.ix_(part.rows, part.independent)], J_tot.shape[1]
    )
