"""Solve linear systems with the reduced stiffness of a robot, and separate its rigid-body modes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from parflex.errors import SingularError
from parflex.records import Record
from parflex.recursion.dynamics import mass_matrix as tree_mass_matrix
from parflex.recursion.energy import distance
from parflex.robot.configuration import Configuration

Array = np.ndarray
REGULAR = 1e11  # condition number without units of a regular stiffness: four digits remain
DRIVEN = 1e-9  # cosine between a load and a rigid-body mode: rounding is below, also for fine meshes
ZERO = 1e-7  # of the largest frequency: modes below are rigid-body modes
SOFT = 1e-10  # of the highest squared frequency: the direct solution loses half of the digits of lower ones
NEARLY = 1e-11  # of a stiffness with unit diagonal: above rounding, below any motion held by springs


def rate_units(configuration: Configuration) -> Array:
    """Return the units of the independent rates."""
    return configuration.robot.tree.rate_units[configuration.reduction.partition.independent]


class StiffnessSolver:
    """Solver of K x = f that omits rigid-body modes and raises if f drives them."""

    def __init__(self, configuration: Configuration, K: Array) -> None:
        self.configuration, self.K = configuration, K
        self.units = rate_units(configuration)
        self.free = np.zeros((len(K), 0))
        scaled = K * np.outer(self.units, self.units)
        self.regular = bool(np.all(np.isfinite(scaled))) and np.linalg.cond(scaled, 1) < REGULAR
        if self.regular:
            self.factor = scipy.linalg.lu_factor(scaled)
            return
        J, symmetric = configuration.J * self.units, (scaled + scaled.T) / 2
        M = J.T @ tree_mass_matrix(configuration.robot.tree, configuration.at) @ J
        self.split = split_stiffness(symmetric, M, eigen(configuration, symmetric, M))
        self.free = self.split.free

    def free_motions(self) -> list[str]:
        """Return the names of the coordinates that move without stiffness."""
        return moving_names(self.configuration, self.configuration.J @ (self.units[:, None] * self.free))

    def solve(self, f: Array, refuse: bool = True) -> Array:
        """Return X with K x = f; `f` is a vector or has columns."""
        columns = (f.T * self.units).T
        if self.regular:
            return (scipy.linalg.lu_solve(self.factor, columns, check_finite=False).T * self.units).T
        if refuse and self.split.driven_by(columns):
            names, here = ", ".join(f"'{name}'" for name in self.free_motions()), self.configuration
            idle = [repr(s.name) for s in here.robot.tree.springs if s.play and not s.pressed(here.q)]
            slack = [repr(name) for name in slack_cables(here)]
            reason = f" ({', '.join(slack)} {'is' if len(slack) == 1 else 'are'} slack)" if slack else ""
            reason = f" (the backlash of {', '.join(idle)} is not taken up)" if idle else reason
            text = f"the stiffness is singular: nothing constrains {names}{reason}"
            hint = "lock or servo-hold more joints, or give them springs"
            raise SingularError(text, key="stiffness", value=names, hint=hint)
        return (self.split.solve(columns)[0].T * self.units).T


@dataclass(frozen=True, eq=False, repr=False)
class SplitStiffness(Record):
    """A stiffness and its rigid-body modes: `free`, mass-normalised, one column each.

    K x + M N nu = f with N^T M x = 0 has a solution for singular K, and nu are the forces along the rigid-body
    modes, which N needs to match only approximately. Rows and columns are scaled by the stiffness of each
    coordinate, so that fine meshes and stiff directions do not affect soft directions.
    """

    free: Array
    scale: Array
    border: float
    matrix: Array

    @cached_property
    def factor(self) -> tuple[Array, Array]:
        """LU factors of the bordered system."""
        return scipy.linalg.lu_factor(self.matrix)

    def solve(self, columns: Array) -> tuple[Array, Array]:
        """Return motions under loads (a vector or columns), and the remaining forces along free motions."""
        n = len(self.scale)
        right = np.zeros((len(self.matrix), *columns.shape[1:]))
        right[:n] = (columns.T * self.scale).T
        solution = scipy.linalg.lu_solve(self.factor, right, check_finite=False)
        return (solution[:n].T * self.scale).T, solution[n:] * self.border

    def driven_by(self, columns: Array) -> bool:
        """Return whether one of these loads drives a free motion."""
        return loads_rigid_modes(self.free, columns, self.solve(columns)[1])


def loads_rigid_modes(free: Array, columns: Array, along: Array) -> bool:
    """Return whether loads without units have components `along` rigid-body modes.

    The share is the cosine between load and motion, independent of magnitude and mesh.
    """
    size = np.linalg.norm(columns, axis=0)
    limit = np.multiply.outer(np.linalg.norm(free, axis=0), DRIVEN * size)
    return bool((np.abs(along) > np.maximum(limit, 1e-300)).any())


def split_stiffness(K: Array, M: Array, modes: tuple[Array, Array] | None = None) -> SplitStiffness:
    """Return the symmetric stiffness without units, split from motions of negligible stiffness."""
    values, vectors = scipy.linalg.eigh(K, M) if modes is None else modes
    order = np.argsort(np.abs(values), kind="stable")
    most = int(np.sum(np.abs(values) <= ZERO**2 * np.abs(values).max(initial=0.0)))
    fewer = min(most, count_nearly_free(K)) if most else 0
    split = _bordered(K, M, values[order], vectors[:, order], fewer)
    # scaled by itself, a stiffness of rounding would look regular and leave the system singular
    if fewer < most and not np.linalg.cond(split.matrix, 1) < REGULAR:
        split = _bordered(K, M, values[order], vectors[:, order], most)
    return split


def _bordered(K: Array, M: Array, values: Array, vectors: Array, free: int) -> SplitStiffness:
    """Return the bordered system with the first `free` motions."""
    softest = float(np.abs(values[free])) if free < len(values) else 1.0
    scale = 1.0 / np.sqrt(np.maximum(np.maximum(np.diag(K), softest * np.diag(M)), 1e-300))
    N = vectors[:, :free]
    border = np.sqrt(softest) * scale[:, None] * (M @ N)
    matrix = np.block([[K * np.outer(scale, scale), border], [border.T, np.zeros((free, free))]])
    return SplitStiffness(N, scale, float(np.sqrt(softest)), matrix)


def slack_cables(here: Configuration) -> list[str]:
    """Return the names of the cables that are slack at a pose."""
    return [e.name for e in here.robot.tree.elements if e.slack(float(distance(here.at, (e.first, e.second))))]


def eigen(configuration: Configuration, K: Array, M: Array) -> tuple[Array, Array]:
    """Return eigenvalues and M-normalised vectors of K v = w^2 M v; raise with the name of a motion without inertia."""
    try:
        return scipy.linalg.eigh(K, M)
    except np.linalg.LinAlgError:
        raise missing_inertia(configuration, M, "frequency") from None


def missing_inertia(configuration: Configuration, M: Array, what: str) -> SingularError:
    """Return the error about the motion of a mass matrix without units that has no inertia, so no `what`."""
    values, vectors = np.linalg.eigh(M)
    weak = configuration.independent_names[int(np.argmax(np.abs(vectors[:, 0])))]
    text = f"the motion of '{weak}' has no positive inertia ({values[0]:.3g}), so its {what} is undefined"
    hint = "give a mass and an inertia to the bodies that move with it"
    return SingularError(text, key="inertia", value=weak, hint=hint)


def moving_names(configuration: Configuration, shapes: Array) -> list[str]:
    """Return one coordinate for each of these motions; together they determine the motions best."""
    if not shapes.shape[1]:
        return []
    tree = configuration.robot.tree
    _, _, order = scipy.linalg.qr((shapes / tree.rate_units[:, None]).T, mode="economic", pivoting=True)
    return [tree.rate_names[k] for k in order[: shapes.shape[1]]]


def lowest_modes(K: Array, M: Array, free: int, modes: int) -> tuple[Array, Array]:
    """Return the lowest eigenvalues of K v = w^2 M v and M-normalised vectors, rigid-body modes first.

    Without rigid-body modes, the largest eigenvalues of M v = K v / w^2 are computed, with K scaled to a unit
    diagonal, because errors of LAPACK are relative to the largest value. With rigid-body modes, those of M v = (K +
    s M) v / (w^2 + s), with s near the lowest nonzero w^2.
    """
    rough, shift = None, 0.0
    if free:
        rough = scipy.linalg.eigh(K, M, subset_by_index=[0, min(free + modes, len(K)) - 1])
        shift = float(rough[0][free]) if len(rough[0]) > free else 0.0
        if shift <= 0.0:
            return rough
    try:
        values, vectors = _modes_by_inverse(K + shift * M, M, free + modes)
        return values - shift, vectors
    except np.linalg.LinAlgError:  # not positive definite
        return rough or scipy.linalg.eigh(K, M, subset_by_index=[0, min(free + modes, len(K)) - 1])


def _modes_by_inverse(K: Array, M: Array, modes: int) -> tuple[Array, Array]:
    diagonal = np.diag(K)
    if not (diagonal > 0.0).all():
        raise np.linalg.LinAlgError("no stiffness on the diagonal")
    scale = 1.0 / np.sqrt(diagonal)
    both = np.outer(scale, scale)
    last = len(K) - 1
    shares, vectors = scipy.linalg.eigh(both * M, both * K, subset_by_index=[last - min(modes, len(K)) + 1, last])
    if shares[0] <= 0.0:
        raise np.linalg.LinAlgError("a mode without inertia")
    return 1.0 / shares[::-1], (scale[:, None] * vectors / np.sqrt(shares))[:, ::-1]


def count_nearly_free(K: Array) -> int:
    """Return the number of motions without stiffness relative to that of their own coordinates."""
    return int(np.sum(_unit_diagonal_eigenvalues(K) < NEARLY))


def _unit_diagonal_eigenvalues(K: Array) -> Array:
    """Return eigenvalues of the stiffness scaled to unit diagonal; negative ones count growing motions."""
    diagonal = np.diag(K)
    has_stiffness = diagonal > 0.0
    scale = np.where(has_stiffness, 1.0 / np.sqrt(np.where(has_stiffness, diagonal, 1.0)), 0.0)
    return np.linalg.eigvalsh(np.outer(scale, scale) * K)


class SortedModes(NamedTuple):
    """Squared frequencies and M-normalised vectors: first growing motions, then rigid-body modes."""

    values: Array
    vectors: Array
    unstable: int
    free: int


def sorted_modes(values: Array, vectors: Array, K: Array, M: Array) -> SortedModes:
    """Return all modes of K v = w^2 M v, lowest first, classified as growing, rigid-body or vibrating.

    Slowly growing motions look like rigid-body modes relative to the highest frequency. Their number is that of the
    negative eigenvalues of the stiffness with unit diagonal (Sylvester's law of inertia), for any mesh and mass. If
    springs hold all slow motions, the softest modes come from the inverse, which resolves them to full precision.
    """
    limit = ZERO**2 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    unstable, free = int(np.sum(values < -limit)), int(np.sum(np.abs(values) <= limit))
    shares = _unit_diagonal_eigenvalues(K) if free and (np.diag(K) > 0.0).all() else np.ones(1)
    growing = int(np.sum(shares < -NEARLY))
    if growing <= unstable:
        soft = int(np.sum(values <= SOFT * values.max(initial=1e-300))) if not unstable else 0
        if soft and not count_nearly_free(K):
            with suppress(np.linalg.LinAlgError):
                soft_values, soft_vectors = _modes_by_inverse(K, M, soft)
                free, values = 0, np.concatenate([soft_values, values[soft:]])
                vectors = np.concatenate([soft_vectors, vectors[:, soft:]], axis=1)
        return SortedModes(values, vectors, unstable, free)
    if (np.abs(shares) > NEARLY).all():
        slow = slice(unstable, unstable + free)
        values, vectors = values.copy(), vectors.copy()
        values[slow], vectors[:, slow] = _lowest_by_inverse(K, M, free)
    return SortedModes(values, vectors, growing, int(np.sum(np.abs(shares) <= NEARLY)))


def _lowest_by_inverse(K: Array, M: Array, count: int) -> tuple[Array, Array]:
    """Return squared frequencies nearest to zero with M-normalised vectors, the largest of the inverse."""
    scale = 1.0 / np.sqrt(np.diag(K))
    both = np.outer(scale, scale)
    L = np.linalg.cholesky(both * M)
    inverse = L.T @ np.linalg.solve(both * K, L)
    shares, eigenvectors = np.linalg.eigh((inverse + inverse.T) / 2)
    order = np.argsort(-np.abs(shares), kind="stable")[:count]
    order = order[np.argsort(1.0 / shares[order])]
    return 1.0 / shares[order], scale[:, None] * np.linalg.solve(L.T, eigenvectors[:, order])
