"""Plate with shear and rotary inertia (Reissner-Mindlin): a triangle of our own that does not lock.

Deflection w quadratic; slopes s quadratic plus a cubic bubble in each triangle; the shear strain is grad w - R s, where
R takes the slopes to the rotated Raviart-Thomas space of second order by the moments along the edges and inside. Since
grad w lies in that space, thin plates can bend with s = grad w in the mean, and do not lock. This is the
element MITC7 of [Bathe1989]; R is written on the reference triangle, where it is one constant matrix, because covariant
components keep tangential moments.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from parflex.bodies.finite_elements.mesh import quadrature, skfem
from parflex.bodies.finite_elements.plate import Discrete, Plate, gathered

Array = np.ndarray
DEGREE = 6  # of what is integrated exactly: the product of two bubbles


def discretise(plate: Plate, mesh: object) -> Discrete:
    """Matrices of the plate on a mesh; unknowns: all w, then all s_x, then all s_y."""
    fem = skfem()
    w, s = fem.Basis(mesh, fem.ElementTriP2()), fem.Basis(mesh, fem.ElementTriP2B())
    X, W = quadrature(DEGREE)
    values, gradients = _bubbled(X)
    mapping = w.mapping
    J = mapping.DF(X)[:, :, :, 0]  # 2 x 2 x triangles: d x_c / d X_a
    inverse = np.linalg.inv(J.transpose(2, 0, 1))  # triangles x 2 x 2: d X_a / d x_c
    dA = np.abs(np.linalg.det(J.transpose(2, 0, 1)))[:, None] * W  # triangles x points

    Me, Ke = _element_matrices(plate, X, values, gradients, J.transpose(2, 0, 1), inverse, dA)
    dofs = np.vstack([w.element_dofs, w.N + s.element_dofs, w.N + s.N + s.element_dofs])
    size = w.N + 2 * s.N
    rows = np.repeat(dofs[:, None, :], 20, axis=1).transpose(2, 0, 1).ravel()
    cols = np.repeat(dofs[None, :, :], 20, axis=0).transpose(2, 0, 1).ravel()
    M = sparse.csc_matrix((Me.ravel(), (rows, cols)), shape=(size, size))
    K = sparse.csc_matrix((Ke.ravel(), (rows, cols)), shape=(size, size))

    def fields(cells: Array, X: Array) -> tuple[sparse.csr_matrix, sparse.csr_matrix, sparse.csr_matrix]:
        values, _ = _bubbled(X)
        turned = w.N + s.element_dofs[:, cells]
        return (
            gathered(w.element_dofs[:, cells], values[:6], size),
            gathered(turned, values, size),
            gathered(turned + s.N, values, size),
        )

    return Discrete(plate, mesh, M, K, fields)


def _element_matrices(
    plate: Plate, X: Array, values: Array, gradients: Array, J: Array, inverse: Array, dA: Array
) -> tuple[Array, Array]:
    """Mass and stiffness (triangles x 20 x 20), unknowns w (6), s_x (7), s_y (7)."""
    count, points = dA.shape
    h, nu = plate.thickness, plate.poisson_ratio
    grad = np.einsum("eac,ajq->ecjq", inverse, gradients)  # of the seven functions, in x and y

    bend = np.zeros((count, 3, 20, points))  # curvatures xx, yy and twice xy
    bend[:, 0, 6:13], bend[:, 1, 13:] = grad[:, 0], grad[:, 1]
    bend[:, 2, 6:13], bend[:, 2, 13:] = grad[:, 1], grad[:, 0]
    C = plate.bending_stiffness * np.array([[1, nu, 0], [nu, 1, 0], [0, 0, (1 - nu) / 2]])

    sheared = np.zeros((count, 2, 20, points))  # covariant shear strain
    sheared[:, :, :6] = gradients[:, :6]
    reduced = _reduction(X)
    for c in range(2):
        sheared[:, :, 6 + 7 * c : 13 + 7 * c] = -np.einsum("ea,bajq->ebjq", J[:, c], reduced)
    shear = np.einsum("eac,eajq->ecjq", inverse, sheared)
    G = plate.elastic_modulus / (2 * (1 + nu))

    K = np.einsum("ecjq,cd,edkq,eq->ejk", bend, C, bend, dA, optimize=True)
    K += plate.shear_coefficient * G * h * np.einsum("ecjq,eckq,eq->ejk", shear, shear, dA, optimize=True)
    products = np.einsum("jq,kq,eq->ejk", values, values, dA, optimize=True)
    M = np.zeros((count, 20, 20))
    M[:, :6, :6] = plate.density * h * products[:, :6, :6]
    M[:, 6:13, 6:13] = M[:, 13:, 13:] = plate.density * h**3 / 12 * products
    return M, K


def _bubbled(X: Array) -> tuple[Array, Array]:
    """The six quadratic functions and the bubble at points: values (7 x n) and gradients (2 x 7 x n)."""
    element = skfem().ElementTriP2B()
    parts = [element.lbasis(X, i) for i in range(7)]
    ones = np.ones(X.shape[1])
    return (
        np.array([value * ones for value, _ in parts]),
        np.array([[slope[a] * ones for _, slope in parts] for a in range(2)]),
    )


def _tied(X: Array) -> Array:
    """A basis of the rotated Raviart-Thomas space of second order at points: 2 x 8 x n."""
    x, y = X
    o, l = np.zeros_like(x), np.ones_like(x)
    return np.array([[l, x, y, o, o, o, -x * y, -y * y], [o, o, o, l, x, y, x * x, x * y]])


def _moments() -> tuple[Array, Array]:
    """Moments (8) of the tied space (8 x 8) and of slopes (8 x 2 x 7): two along each edge, two inside."""
    place, weight = np.polynomial.legendre.leggauss(3)  # cubic slopes times a linear weight: degree 4
    place, weight = (place + 1) / 2, weight / 2
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    tied, slopes = np.zeros((8, 8)), np.zeros((8, 2, 7))
    for edge, (i, j) in enumerate(((0, 1), (1, 2), (2, 0))):
        t = corners[j] - corners[i]
        X = corners[i][:, None] + t[:, None] * place
        for power in range(2):
            weighted = weight * place**power
            tied[2 * edge + power] = np.einsum("a,akq,q->k", t, _tied(X), weighted)
            slopes[2 * edge + power] = np.einsum("a,kq,q->ak", t, _bubbled(X)[0], weighted)
    X, W = quadrature(4)
    tied[6:] = _tied(X) @ W
    slopes[6, 0] = slopes[7, 1] = _bubbled(X)[0] @ W
    return tied, slopes


def _reduction(X: Array) -> Array:
    """R at points: what slopes along a with function j become, component b: 2 x 2 x 7 x n."""
    tied, slopes = _moments()
    return np.einsum("bkq,kaj->bajq", _tied(X), np.linalg.solve(tied, slopes.reshape(8, 14)).reshape(8, 2, 7))
