"""Thin plate without shear (Kirchhoff): Argyris' triangle of fifth degree, continuous with its slopes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from parflex.bodies.finite_elements.mesh import extent, skfem
from parflex.bodies.finite_elements.plate import Discrete, Plate, gathered

Array = np.ndarray
DEGREE = 10  # of what is integrated exactly: the product of two shapes


def discretise(plate: Plate, mesh: Any, rotary_inertia: bool = True, element: str = "argyris") -> Discrete:
    """Matrices of the plate on a mesh (`MeshTri`); `element` may also be `morley`.

    The shapes are polynomials in x and y, which lose digits far from the origin: they are set up on a copy of the mesh
    about its middle, in lengths of half its extent.
    """
    fem = skfem()
    from skfem.helpers import dd, ddot, dot, grad, trace

    shape = {"argyris": fem.ElementTriArgyris, "morley": fem.ElementTriMorley}[element]()
    length, middle = extent(plate.polygon) / 2, plate.polygon.mean(axis=0)
    unit = fem.MeshTri((mesh.p - middle[:, None]) / length, mesh.t)
    basis = fem.Basis(unit, shape, intorder=DEGREE if element == "argyris" else 4)
    D, nu, h = plate.bending_stiffness / length**2, plate.poisson_ratio, plate.thickness
    turning = h**2 / (12 * length**2) if rotary_inertia else 0.0

    @fem.BilinearForm
    def stiffness(u: Array, v: Array, _: Array) -> Array:
        return D * ((1 - nu) * ddot(dd(u), dd(v)) + nu * trace(dd(u)) * trace(dd(v)))

    @fem.BilinearForm
    def inertia(u: Array, v: Array, _: Array) -> Array:
        return plate.density * h * length**2 * (u * v + turning * dot(grad(u), grad(v)))

    def fields(cells: Array, X: Array) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
        parts = [shape.gbasis(basis.mapping, X[:, :, None], k, tind=cells)[0] for k in range(basis.Nbfun)]
        dofs = basis.element_dofs[:, cells]
        w = np.array([np.asarray(part)[:, 0] for part in parts])
        slopes = [np.array([part.grad[a][:, 0] for part in parts]) / length for a in range(2)]
        return gathered(dofs, w, basis.N), gathered(dofs, slopes[0], basis.N), gathered(dofs, slopes[1], basis.N)

    return Discrete(
        plate, mesh, sparse.csc_matrix(inertia.assemble(basis)), sparse.csc_matrix(stiffness.assemble(basis)), fields
    )
