"""Systems with the reduced stiffness of a robot: solving them, and the motions that nothing holds."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from parflex.errors import SingularError
from parflex.models.configuration import Configuration
from parflex.recursion import mass_matrix as tree_mass_matrix
from parflex.recursion.point_forces import distance

Array = np.ndarray
ZERO = 1e-7  # of the largest frequency: motions below are taken as free of stiffness


def rate_units(configuration: Configuration) -> Array:
    """Units of the independent rates."""
    return configuration.robot.tree.rate_units[configuration.reduction.partition.independent]


class StiffnessSolver:
    """Solves K x = f. Motions without stiffness are left out where f does not drive them, and named where it does."""

    def __init__(self, configuration: Configuration, K: Array) -> None:
        self.configuration, self.K = configuration, K
        self.units = rate_units(configuration)
        self.free = np.zeros((len(K), 0))
        scaled = K * np.outer(self.units, self.units)
        self.regular = bool(np.all(np.isfinite(scaled))) and np.linalg.cond(scaled, 1) < 1e11  # four digits to spare
        if not self.regular:
            self._split(scaled)
        else:
            self.factor = scipy.linalg.lu_factor(scaled)

    def _split(self, scaled: Array) -> None:
        configuration = self.configuration
        J = configuration.J * self.units
        M = J.T @ tree_mass_matrix(configuration.robot.tree, configuration.at) @ J
        values, vectors = eigen(configuration, (scaled + scaled.T) / 2, M)
        zero = np.abs(values) <= ZERO**2 * np.abs(values).max()
        self.free, self.values, self.vectors = vectors[:, zero], values[~zero], vectors[:, ~zero]

    def free_motions(self) -> list[str]:
        """Names of the coordinates that move without stiffness."""
        return moving_names(self.configuration, self.configuration.J @ (self.units[:, None] * self.free))

    def solve(self, f: Array, refuse: bool = True) -> Array:
        """X with K x = f; `f` is a vector or has columns."""
        columns = (f.T * self.units).T
        if self.regular:
            return (scipy.linalg.lu_solve(self.factor, columns, check_finite=False).T * self.units).T
        driven = np.abs(self.free.T @ columns)
        others = float(np.abs(self.vectors.T @ columns).max(initial=1e-300))
        if refuse and driven.max(initial=0.0) > 1e-9 * others:
            names = ", ".join(f"'{name}'" for name in self.free_motions())
            here = self.configuration
            idle = [s.name for s in here.robot.tree.springs if s.play and not s.pressed(here.q)]
            lost = f" (the backlash of {', '.join(map(repr, idle))} is not taken up)" if idle else slack_cables(here)
            raise SingularError(
                f"the stiffness is singular: nothing constrains {names}{lost}",
                key="stiffness",
                value=names,
                hint="lock or servo-hold more joints, or give them springs",
            )
        modal = ((self.vectors.T @ columns).T / self.values).T
        return ((self.vectors @ modal).T * self.units).T


def slack_cables(configuration: Configuration) -> str:
    """In brackets, the cables that are slack at a pose."""
    elements, at = configuration.robot.tree.elements, configuration.at
    names = [repr(e.name) for e in elements if e.slack(float(distance(at, (e.first, e.second))))]
    return f" ({', '.join(names)} {'is' if len(names) == 1 else 'are'} slack)" if names else ""


def eigen(configuration: Configuration, K: Array, M: Array) -> tuple[Array, Array]:
    """Eigenvalues and M-normalised vectors of K v = w^2 M v; a motion without inertia is named."""
    try:
        return scipy.linalg.eigh(K, M)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(M)
        weak = configuration.independent_names[int(np.argmax(np.abs(vectors[:, 0])))]
        raise SingularError(
            f"the motion of '{weak}' has no positive inertia ({values[0]:.3g}), so its frequency is undefined",
            key="inertia",
            value=weak,
            hint="give a mass and an inertia to the bodies that move with it",
        ) from None


def moving_names(configuration: Configuration, shapes: Array) -> list[str]:
    """One coordinate for each of these motions: those that, given, determine them best."""
    if not shapes.shape[1]:
        return []
    tree = configuration.robot.tree
    _, _, order = scipy.linalg.qr((shapes / tree.rate_units[:, None]).T, mode="economic", pivoting=True)
    return [tree.rate_names[k] for k in order[: shapes.shape[1]]]
