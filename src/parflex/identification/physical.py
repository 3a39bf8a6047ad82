"""Physically consistent parameters: of all possible bodies with equal predictions, those nearest to the file.

A body is physically consistent if its pseudo-inertia [[Sigma, S], [S^T, m]] is positive definite (Wensing, Kim and
Slotine). Clarabel solves two convex problems: the base parameters of consistent robots that predict efforts best, then
the robot with these parameters that is nearest to the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.forces.base_parameters import PARAMETERS, body_from_parameters
from parflex.identification.estimators import LeastSquaresFit
from parflex.identification.regressor_columns import BaseColumns
from parflex.identification.unknowns import NEVER_NEGATIVE, Unknown, characteristic_sizes
from parflex.records import Record
from parflex.robot.robot import Robot

Array = np.ndarray
MARGIN = 1e-4  # of the usual mass of a body, and of that on the length of the robot: the least pseudo-inertia
SOFT = 1e-6  # squares of deviations, of the first problem: what a number that nothing tells costs, moved by its size
DUAL = 1e-5  # of the largest eigenvalue: groups are known to as many digits as their columns
TRIANGLE = np.tril_indices(4)[::-1]  # rows and columns of an upper triangle, column by column
WEIGHTS = np.where(TRIANGLE[0] == TRIANGLE[1], 1.0, np.sqrt(2.0))


@dataclass(frozen=True, eq=False, repr=False)
class PhysicalParameters(Record):
    """Parameters of a robot that can be.

    Attributes
    ----------
    theta : dict[str, float]
        All parameters by name.
    values : Array
        Base parameters that they give.
    smallest : float
        Smallest eigenvalue of the pseudo-inertias of the bodies, lengths measured with that of the robot, over the
        usual mass of a body.
    moved : float
        By how many deviations base parameters moved in the mean, as they had to.
    """

    theta: dict[str, float]
    values: Array
    smallest: float
    moved: float


def pseudo_inertia(numbers: Array) -> Array:
    """The matrix of a body's ten parameters."""
    body = body_from_parameters(numbers)
    return np.block([[body.Sigma, body.S[:, None]], [body.S[None, :], np.array([[body.m]])]])


def physical_parameters(
    robot: Robot, every: Sequence[Unknown], base: BaseColumns, identifiable: list[int], fitted: LeastSquaresFit
) -> PhysicalParameters:
    """Parameters nearest to those of the file with pseudo-inertias that are positive definite."""
    theta = np.array([unknown.value for unknown in every])
    links = _bodies(every, theta, base)
    length, mass = robot.tree.length, _usual_mass(every, theta)
    cones = _Cones(every, links, length, MARGIN * mass)
    size = characteristic_sizes(every, base.kept)
    G = base.groups[identifiable] * size  # of changes, each measured with its own size
    missing = fitted.values - base.groups[identifiable] @ theta
    root = _root(fitted.white)
    change = _best_change(cones, root, G, missing, theta, size)
    moves = np.abs(root @ (G @ change - missing)).max() >= 1e-3  # of a deviation
    target = G @ change if moves else missing
    change = cones.solved(np.eye(len(theta)), np.zeros(len(theta)), theta, size, (G, target), change)
    closest = theta + size * change
    values = base.groups[identifiable] @ closest
    blocks = [_scaled(pseudo_inertia(closest[list(rows)]), length) for rows in links.values()]
    smallest = min((float(np.linalg.eigvalsh(block)[0]) for block in blocks), default=0.0) / mass
    moved = float(np.sqrt(np.mean((root @ (values - fitted.values)) ** 2)))
    return PhysicalParameters(
        {unknown.name: float(value) for unknown, value in zip(every, closest, strict=True)}, values, smallest, moved
    )


def nearest_consistent(
    robot: Robot, every: Sequence[Unknown], base: BaseColumns, identifiable: list[int], values: Array, covariance: Array
) -> tuple[Array, float]:
    """Of all base parameters that some robot can have those nearest to some values, and by how many deviations.

    Every link may have a body, and pseudo-inertias may be singular: what is beyond these, nothing reaches.
    """
    theta = np.array([unknown.value for unknown in every])
    columns = {link: indices for link, indices in _columns(every).items() if len(indices) == len(PARAMETERS)}
    size = characteristic_sizes(every, base.kept)
    G = base.groups[identifiable] * size
    missing, root = values - base.groups[identifiable] @ theta, _root(covariance)
    change = _best_change(_Cones(every, columns, robot.tree.length, 0.0), root, G, missing, theta, size)
    return values + G @ change - missing, float(np.linalg.norm(root @ (G @ change - missing)))


def never_negative(robot: Robot, every: Sequence[Unknown], row: Array) -> bool:
    """Whether a sum of unknowns with these weights is negative for no robot: its weights are in the dual cone.

    Of a body it is the product of its pseudo-inertia and a matrix, which must be semidefinite then.
    """
    basis = _pseudo_inertias(robot.tree.length)
    for indices in _columns(every).values():
        weights = row[list(indices)]
        if len(indices) == len(PARAMETERS) and weights.any():
            values = np.linalg.eigvalsh(_matrix(np.linalg.solve(basis.T, weights)))
            if values[0] < -DUAL * values[-1]:
                return False
    others = [
        (unknown.symbol, weight) for unknown, weight in zip(every, row, strict=True) if weight and not unknown.of_body
    ]
    return bool(row.any()) and all(symbol in NEVER_NEGATIVE and weight > 0 for symbol, weight in others)


def _root(covariance: Array) -> Array:
    """Of the inverse of a covariance: what makes errors independent of each other."""
    deviation = np.sqrt(np.diag(covariance))
    spread, axes = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    return np.asarray((axes / np.sqrt(np.maximum(spread, 1e-12 * spread.max()))) @ axes.T / deviation)


def _best_change(cones: _Cones, root: Array, G: Array, missing: Array, theta: Array, size: Array) -> Array:
    """The change of parameters within the cones with which base parameters miss least.

    What nothing tells stays near to the least change that misses nothing: near to the file it would hold back numbers
    that are far from it.
    """
    H, least = root @ G, np.linalg.lstsq(G, missing, rcond=None)[0]
    P, none = H.T @ H + SOFT * np.eye(len(theta)), np.zeros(len(theta))
    # from there, so that the objective is half the square of deviations, and what the solver leaves of it a share
    return np.asarray(least + cones.solved(P, none, theta + size * least, size, unit=1.0))


def _scaled(matrix: Array, length: float) -> Array:
    unit = np.array([1 / length, 1 / length, 1 / length, 1.0])
    return matrix * np.outer(unit, unit)


def _usual_mass(every: Sequence[Unknown], theta: Array) -> float:
    masses = [abs(value) for unknown, value in zip(every, theta, strict=True) if unknown.symbol == "M" and value]
    return float(np.mean(masses)) if masses else 1.0


def _bodies(every: Sequence[Unknown], theta: Array, base: BaseColumns) -> dict[int, tuple[int, ...]]:
    """Columns of each link that has a body, or gets one."""
    independent = set(base.kept)
    return {
        link: indices for link, indices in _columns(every).items()
        if len(indices) == len(PARAMETERS) and (theta[list(indices)].any() or independent & set(indices))
    }  # fmt: skip


def _columns(every: Sequence[Unknown]) -> dict[int, tuple[int, ...]]:
    """Columns of the body of each link."""
    columns: dict[int, list[int]] = {}
    for k, unknown in enumerate(every):
        if unknown.of_body:
            columns.setdefault(unknown.link, []).append(k)
    return {link: tuple(indices) for link, indices in columns.items()}


def _pseudo_inertias(length: float) -> Array:
    """Triangles of the pseudo-inertias of a unit of each parameter of a body, as columns."""
    return np.array([_triangle(_scaled(pseudo_inertia(unit), length)) for unit in np.eye(len(PARAMETERS))]).T


class _Cones:
    """Linear maps of parameters into cones: pseudo-inertias of bodies, and numbers that are not negative."""

    def __init__(
        self, every: Sequence[Unknown], links: dict[int, tuple[int, ...]], length: float, margin: float
    ) -> None:
        self.blocks: list[tuple[Array, Array]] = []  # matrix, and what is taken off
        basis = _pseudo_inertias(length)
        for columns in links.values():
            A = np.zeros((10, len(every)))
            A[:, list(columns)] = basis
            self.blocks.append((A, margin * _triangle(np.eye(4))))
        rows = [k for k, unknown in enumerate(every) if unknown.symbol in NEVER_NEGATIVE]
        self.signs = np.eye(len(every))[rows]

    def solved(
        self, P: Array, q: Array, theta: Array, size: Array, equal: tuple[Array, Array] | None = None,
        otherwise: Array | None = None, unit: float | None = None,
    ) -> Array:  # fmt: skip
        """The change x of parameters, in units of their sizes, that makes x^T P x / 2 + q^T x smallest."""
        clarabel, scipy_sparse = _libraries()
        A, b, cones = [], [], []
        if equal is not None:
            U, s, Vt = np.linalg.svd(equal[0], full_matrices=False)
            rank = int(np.sum(s > 1e-10 * s[0])) if len(s) else 0
            A.append(Vt[:rank])
            b.append((U[:, :rank] / s[:rank]).T @ equal[1])
            cones.append(clarabel.ZeroConeT(rank))
        if len(self.signs):
            A.append(-self.signs * size)
            b.append(self.signs @ theta)
            cones.append(clarabel.NonnegativeConeT(len(self.signs)))
        for block, margin in self.blocks:
            A.append(-block * size)
            b.append(block @ theta - margin)
            cones.append(clarabel.PSDTriangleConeT(4))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        unit = unit or max(float(np.abs(P).max()), 1e-300)
        matrices = (scipy_sparse.csc_matrix(np.triu(P / unit)), q / unit, scipy_sparse.csc_matrix(np.vstack(A)))
        solution = clarabel.DefaultSolver(*matrices, np.concatenate(b), cones, settings).solve()
        if str(solution.status) not in ("Solved", "AlmostSolved"):
            if otherwise is not None:
                return otherwise
            raise InputError(
                f"no physically consistent robot has these parameters (solver: {solution.status})", key="physical",
                hint="check signs, units and the file's masses",
            )  # fmt: skip
        return np.array(solution.x)


def _triangle(matrix: Array) -> Array:
    """Return the upper triangle column by column, so that products of two are those of the matrices."""
    return np.asarray(matrix[TRIANGLE] * WEIGHTS)


def _matrix(triangle: Array) -> Array:
    """Return the symmetric matrix of such a triangle."""
    matrix = np.zeros((4, 4))
    matrix[TRIANGLE] = matrix[TRIANGLE[::-1]] = triangle / WEIGHTS
    return matrix


def _libraries() -> tuple[Any, Any]:
    try:
        import clarabel
        import scipy.sparse
    except ImportError:
        raise InputError(
            "physically consistent parameters need the library clarabel", key="physical",
            hint="pip install 'parflex[physical]'",
        ) from None  # fmt: skip
    return clarabel, scipy.sparse
