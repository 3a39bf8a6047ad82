"""Nodal masses and second moments in place of a consistent mass matrix.

Masses are the sums of the rows of the translations, which is exact for motions that are alike at neighbouring nodes;
where a sum is negative (quadratic elements), the diagonal scaled to the whole mass. Second moments are those that the
sums of the rows of the rotations stand for. Then the masses are changed as little as possible, so that mass, centre and
inertia of the whole body become those of the given matrix; what is then still missing (the thickness of a straight
beam) is spread over the second moments.
"""

from __future__ import annotations

import numpy as np

from parflex.bodies.finite_elements.nodal import rigid_shapes
from parflex.bodies.finite_elements.structure import Structure
from parflex.errors import InputError

Array = np.ndarray
SAME = 1e-3  # masses along x, y and z are one mass, within this share
INERTIA = 0.05  # a rigid mass matrix off by more is that of another body


def lumped(body: Structure) -> tuple[Array, Array, float]:
    """Masses (n), second moments (n x 3 x 3), and how far the rigid mass matrix then is from the given one (share)."""
    masses, moments = _masses(body), _second_moments(body)
    moves = rigid_shapes(body.nodes)
    whole = moves[:, :, : body.width].reshape(6, -1)
    seen = np.zeros(whole.shape[1], dtype=bool)
    seen[body.active] = True
    # rigid motions that move some coordinate, and none that is at rest
    complete = [k for k in range(6) if whole[k, seen].any() and not whole[k, ~seen].any()]
    moves, vectors = moves[complete], whole[complete][:, body.active]
    exact = vectors @ (body.M @ vectors.T)
    size = np.sqrt(np.maximum(np.diag(exact), 1e-300))
    i, j = np.triu_indices(len(complete))
    scale = size[i] * size[j]
    per_mass = np.einsum("pni,pni->pn", moves[i][:, :, :3], moves[j][:, :, :3])  # pairs of motions x nodes

    def missing(masses: Array, moments: Array) -> Array:
        turning = np.trace(moments, axis1=1, axis2=2)[:, None, None] * np.eye(3) - moments
        turned = np.einsum("pni,nij,pnj->p", moves[i][:, :, 3:], turning, moves[j][:, :, 3:], optimize=True)
        return (exact[i, j] - turned - per_mass @ masses) / scale

    first = np.array(complete)[i] < 3  # mass and centre come first, if inertia cannot be met as well
    for weights in (np.where(first, 1e5, 1.0), np.where(first, 1.0, 0.0)):
        system = (weights / scale)[:, None] * per_mass * np.sqrt(masses)
        share = np.linalg.lstsq(system, weights * missing(masses, moments), rcond=1e-13)[0]
        corrected = masses + np.sqrt(masses) * share
        if (corrected >= 0).all():
            masses = corrected
    if len(complete) == 6 and body.turns:
        rest = np.zeros((6, 6))
        rest[i, j] = rest[j, i] = missing(masses, moments) * scale
        extent = np.trace(rest[3:, 3:]) / 2 * np.eye(3) - rest[3:, 3:]  # second moments that are missing on the whole
        spread = moments + (masses / masses.sum())[:, None, None] * extent
        if np.linalg.eigvalsh(spread).min() >= 0:
            moments = spread
    distance = float(np.abs(missing(masses, moments)).max())
    if distance > INERTIA:
        raise InputError(
            f"the nodal masses differ from the rigid mass matrix by {100 * distance:.2g} %",
            key="M",
            value=distance,
            hint="use a finer mesh",
        )
    return masses, moments, distance


def _masses(body: Structure) -> Array:
    """Mass of each node, the mean over the axes along which it can move."""
    found, totals = [], []
    for axis in range(3):
        at = np.flatnonzero(body.active % body.width == axis)
        if not len(at):
            continue
        block = body.M[at][:, at]
        rows, diagonal = np.asarray(block.sum(axis=1)).ravel(), block.diagonal()
        total = rows.sum()
        values = rows if (rows >= 0).all() else diagonal * (total / diagonal.sum())
        along = np.zeros(len(body.nodes))
        along[body.active[at] // body.width] = values
        found.append(along)
        totals.append(total)
    if not totals or max(totals) <= 0:
        raise InputError("M has no mass in translations", key="M", hint="give the order Tx Ty Tz Rx Ry Rz of each node")
    if max(totals) - min(totals) > SAME * max(totals):
        raise InputError(
            f"the mass is {min(totals):.6g} kg along one axis and {max(totals):.6g} kg along another",
            key="M",
            hint="give the order Tx Ty Tz Rx Ry Rz of each node, and M without supports",
        )
    return np.mean(found, axis=0)


def _second_moments(body: Structure) -> Array:
    """Of what is lumped at each node: Sigma = tr(J)/2 - J for the sums J of the rows of its rotations.

    What no body can have is taken as zero: a beam element without rotary inertia of bending has inertia of torsion, and
    then the section's extent that makes it turns with bending too.
    """
    J = np.zeros((len(body.nodes), 3, 3))
    at = np.flatnonzero(body.active % body.width >= 3)
    owner, axis = body.active[at] // body.width, body.active[at] % body.width - 3
    block = body.M[at][:, at].tocoo()
    np.add.at(J, (owner[block.row], axis[block.row], axis[block.col]), block.data)
    J = (J + J.transpose(0, 2, 1)) / 2
    moments = np.trace(J, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - J
    values, vectors = np.linalg.eigh(moments)
    return np.einsum("nik,nk,njk->nij", vectors, np.maximum(values, 0.0), vectors)
