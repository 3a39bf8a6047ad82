"""Integrals over a body of which the mass matrix alone is known, theory (68), (69).

The kinetic energy of the undeformed body is 1/2 V^T M V for every velocity V of interfaces and modes. What M does not
hold, how moments and products of the shapes change with the deformation, is completed so that the fields are those of
some distribution of mass: energy and momentum are conserved, and accelerations of the frame act like gravity.
"""

from __future__ import annotations

import numpy as np
import scipy

from parflex.bodies.modal import ROUND_OFF, without_round_off
from parflex.bodies.super_elements.affine_shapes import AffineShapes, without_noise
from parflex.bodies.super_elements.reduced_matrices import ReducedMatrices
from parflex.bodies.super_elements.rigid_motions import RigidReport
from parflex.spatial.rotations import hat

Array = np.ndarray
FLAT = 1e-9  # of the largest second moment: directions without extent
LEAST_SHEAR = 0.01  # of its estimate: what is less is none


def mass_integrals(
    report: RigidReport, data: ReducedMatrices, X: Array, E: Array, origin: Array
) -> tuple[Array, Array, AffineShapes]:
    """S_a and G_ab of fields f = (r0, phi_a) that move with the momenta and products of M, theory (69).

    And what they are made of.
    """
    M, m = data.M, report.mass
    c = report.centre - origin
    I_c = report.inertia
    Sigma = np.trace(I_c) / 2 * np.eye(3) - I_c
    momenta = X.T @ M @ E
    t = momenta[:3] / m  # of the centre
    turned = momenta[3:] - hat(c) @ momenta[:3]
    theta = np.linalg.pinv(I_c, rcond=FLAT) @ turned
    rest = E - X @ np.vstack([t + hat(c) @ theta, theta])  # without momentum
    F = rest.T @ M @ rest
    Z, spread = _stretched(report, data, rest, Sigma, F)
    N = E.shape[1]
    B = np.array([hat(theta[:, a]) for a in range(N)]).reshape(N, 3, 3) + Z @ spread
    W = F - np.einsum("aij,jk,bik->ab", Z, spread, Z)
    products = E.T @ M @ E
    S, G = np.zeros((N + 1, 3)), np.zeros((N + 1, N + 1, 3, 3))
    S[0], S[1:] = m * c, m * t.T
    G[0, 0] = Sigma + m * np.outer(c, c)
    G[0, 1:] = m * np.einsum("i,ja->aij", c, t) + np.einsum("ij,akj->aik", Sigma, B)
    G[1:, 0] = np.swapaxes(G[0, 1:], 1, 2)
    G[1:, 1:] = m * np.einsum("ia,jb->abij", t, t) + np.einsum("aij,jk,blk->abil", B, Sigma, B)
    G[1:, 1:] += W[:, :, None, None] / 3 * np.eye(3)
    off = products - np.einsum("abii->ab", G[1:, 1:])  # rounding
    G[1:, 1:] += off[:, :, None, None] / 3 * np.eye(3)
    S, G = without_round_off(S, G, m)
    sizes = np.sqrt(np.abs(np.diag(products)))
    theta = np.where(np.abs(theta) > ROUND_OFF * sizes / np.sqrt(np.trace(I_c)), theta, 0.0)
    shapes = AffineShapes(
        m,
        S[0] / m,
        Sigma,
        S[1:] / m,
        theta.T,
        Z @ spread,
        without_noise(W + off, sizes),
        without_noise(products, sizes),
    )
    return S, G, shapes


def _stretched(report: RigidReport, data: ReducedMatrices, rest: Array, Sigma: Array, F: Array) -> tuple[Array, Array]:
    """Symmetric Z_a = int phi_a (r - c)^T of what has no momentum, and the inverse of Sigma.

    M knows products with rigid motions alone. A field along i that grows along j is estimated from its values at the
    interfaces, in principal axes; of ij and ji, which have the same product, the one along the longer axis has more
    weight, since sections of slender bodies stay normal to it. Products larger than those of any distribution of mass
    are made as small as that asks for, those of shear first.
    """
    values, axes = np.linalg.eigh(Sigma)
    wide = values > FLAT * max(values.max(), 0.0)
    spread = (axes[:, wide] / values[wide]) @ axes[:, wide].T
    stretch, shear = np.zeros((2, rest.shape[1], 3, 3))
    for i in np.flatnonzero(wide):
        for j in np.flatnonzero(wide):
            field = np.zeros(data.size)
            for node, place in zip(data.nodes, report.positions, strict=True):
                grown = axes[:, j] @ (place - report.centre)
                field[list(node.rows[:3])] = axes[:, i] * grown
            product = rest.T @ (data.M @ field)
            if i == j:
                stretch[:, i, i] = product
            else:
                product = product * values[i] / (values[i] + values[j])
                shear[:, i, j] += product
                shear[:, j, i] += product
    stretch, shear = axes @ stretch @ axes.T, axes @ shear @ axes.T
    if _taken(stretch, spread, F) + _taken(shear, spread, F) < FLAT:  # interfaces that coincide stretch nothing
        return np.zeros_like(stretch), spread
    stretch = stretch / np.sqrt(max(_taken(stretch, spread, F), 1.0))
    share = 1.0
    while share > LEAST_SHEAR and _taken(stretch + share * shear, spread, F) > 1 + ROUND_OFF:
        share /= 2
    return stretch + (share if share > LEAST_SHEAR else 0.0) * shear, spread


def _taken(Z: Array, spread: Array, F: Array) -> float:
    """The largest share of the products F that stretching with these Z takes."""
    taken = np.einsum("aij,jk,bik->ab", Z, spread, Z)
    size = np.sqrt(np.maximum(np.diag(F), 1e-300))
    held = F / np.outer(size, size) + FLAT * np.eye(len(F))
    return float(scipy.linalg.eigvalsh(taken / np.outer(size, size), held)[-1])
