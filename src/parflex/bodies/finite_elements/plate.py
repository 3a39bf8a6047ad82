"""A plate of constant thickness over a polygon, and what its finite elements give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from parflex.bodies.finite_elements.mesh import area, checked_polygon, corner_of, quadrature
from parflex.errors import InputError
from parflex.records import Record

Array = np.ndarray
CORNERS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # of the reference triangle


@dataclass(frozen=True, eq=False, repr=False)
class Plate(Record):
    """Corners in the plane z = 0 of the body's frame, thickness, material and attachments (name: (x, y)).

    It moves along z and turns about x and y; it is rigid in its own plane. SI units.
    """

    polygon: Any
    thickness: float
    elastic_modulus: float
    density: float
    poisson_ratio: float = 0.3
    attachments: Mapping[str, Any] = field(default_factory=dict)
    shear_coefficient: float = 5 / 6

    def __post_init__(self) -> None:
        for key in ("thickness", "elastic_modulus", "density", "shear_coefficient"):
            value = getattr(self, key)
            if not (isinstance(value, (int, float)) and 0 < value < np.inf):
                raise InputError(
                    f"the {key.replace('_', ' ')} of a plate must be a positive number", key=key, value=value
                )
        if not -1 < self.poisson_ratio < 0.5:
            raise InputError(
                "Poisson's ratio lies between -1 and 0.5", key="poisson_ratio", value=self.poisson_ratio, hint="try 0.3"
            )
        object.__setattr__(self, "polygon", checked_polygon(self.polygon))

    @property
    def bending_stiffness(self) -> float:
        """D = E h^3 / 12 (1 - nu^2)."""
        return self.elastic_modulus * self.thickness**3 / (12 * (1 - self.poisson_ratio**2))

    @property
    def mass(self) -> float:
        """In kg."""
        return self.density * self.thickness * area(self.polygon)

    @property
    def points(self) -> Array:
        """Attachments, n x 2."""
        return np.array(list(self.attachments.values()), dtype=float).reshape(-1, 2)


@dataclass(frozen=True, eq=False, repr=False)
class Discrete(Record):
    """Mass and stiffness of a plate's finite elements, and its fields at any point.

    `fields(cells, X)` gives three sparse matrices that take the unknowns to the deflection w and the slopes s_x, s_y at
    the reference points X (2 x n) of the triangles `cells`. A section turns by the vector (s_y, -s_x, 0); thin plates
    have s = grad w.
    """

    plate: Plate
    mesh: Any
    M: sparse.csc_matrix
    K: sparse.csc_matrix
    fields: Callable[[Array, Array], tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]]

    def at(self, points: Array) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
        """The fields at points (n x 2) of the plate."""
        points = np.asarray(points, dtype=float).reshape(-1, 2)
        cells = self.mesh.element_finder()(*points.T)
        X = self.mesh.mapping().invF(points.T[:, :, None], tind=cells)[:, :, 0]
        return self.fields(cells, X)

    def at_corners(self, points: Array) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
        """The fields at points that are corners of triangles: attachments."""
        found = np.array([corner_of(self.mesh, point) for point in points], dtype=int).reshape(-1, 2)
        return self.fields(found[:, 0], CORNERS[:, found[:, 1]])

    @cached_property
    def rigid(self) -> Array:
        """The three rigid motions as unknowns, orthonormal in mass: they lie in the space of the elements."""
        plate = self.plate
        X, W = quadrature(10)
        cells, X = np.repeat(np.arange(self.mesh.t.shape[1]), X.shape[1]), np.tile(X, self.mesh.t.shape[1])
        weights = np.tile(W, self.mesh.t.shape[1]) * np.abs(self.mesh.mapping().detDF(np.zeros((2, 1))).ravel())[cells]
        x, y = self.mesh.mapping().F(X[:, :, None], tind=cells)[:, :, 0]
        w, s_x, s_y = self.fields(cells, X)
        one, zero = np.ones_like(x), np.zeros_like(x)
        deflections, slopes = np.array([one, x, y]).T, np.array([zero, one, zero]).T
        parts = w.T @ (weights[:, None] * deflections)
        for field_, slope in ((s_x, slopes), (s_y, slopes[:, [0, 2, 1]])):
            parts += plate.thickness**2 / 12 * field_.T @ (weights[:, None] * slope)
        R = splu(self.M).solve(plate.density * plate.thickness * parts)
        return R @ np.linalg.inv(np.linalg.cholesky(R.T @ (self.M @ R))).T


def gathered(dofs: Array, values: Array, size: int) -> sparse.csr_matrix:
    """Rows of a matrix from the unknowns (k x n) and values (k x n) of n points."""
    k, n = dofs.shape
    return sparse.csr_matrix((values.ravel(), (np.tile(np.arange(n), k), dofs.ravel())), shape=(n, size))
