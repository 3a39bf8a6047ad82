"""Internal efforts that keep motors within their limits: the nearest point of a polyhedron, by an active-set method.

min z^T z subject to lower <= tau + N z <= upper. With N^T W N = 1 the shortest z changes the efforts least in the
weighted norm. A least distance problem is one of non-negative least squares (Lawson and Hanson, chapter 23), whose
active set gives the motors at a limit; the point then follows from these alone, to rounding.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
OUTSIDE = 1e-10  # of the largest effort or limit: what rounding leaves of a limit


def shortest_within(N: Array, tau: Array, lower: Array, upper: Array) -> Array | None:
    """The shortest z with lower <= tau + N z <= upper; None where there is none."""
    G, h = _one_sided(N, tau, lower, upper)
    scale = max(float(np.abs(tau).max(initial=0.0)), float(np.abs(h).max(initial=0.0)), 1e-300)
    if not len(h) or h.max() <= 0:
        return np.zeros(N.shape[1])
    z = _least_distance(G, h / scale) if N.shape[1] else None
    if z is None or (h / scale - G @ z).max() > OUTSIDE:
        return None
    return scale * z


def _one_sided(N: Array, tau: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Rows G z >= h of the limits that there are."""
    low, high = np.isfinite(lower), np.isfinite(upper)
    return np.concatenate([N[low], -N[high]]), np.concatenate([(lower - tau)[low], (tau - upper)[high]])


def _least_distance(G: Array, h: Array) -> Array | None:
    """The shortest z with G z >= h."""
    from scipy.optimize import nnls

    units = np.linalg.norm(G, axis=1)
    units = np.where(units > 0, units, 1.0)
    E = np.concatenate([G.T / units, (h / units)[None]])
    f = np.zeros(len(E))
    f[-1] = 1.0
    u, _ = nnls(E, f, maxiter=30 * E.shape[1])
    r = E @ u - f
    if not -r[-1] > 1e-14:  # h lies in the cone of the rows: no z meets them
        return None
    active = u > 1e-12 * u.max(initial=0.0)
    found = np.linalg.lstsq(G[active], h[active], rcond=None)[0]
    rough = -r[:-1] / r[-1]
    return min((found, rough), key=lambda z: float((h - G @ z).max()))


def nearest_outside(N: Array, tau: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """The efforts that leave their limits by as little as can be, and by how much each does."""
    from scipy.optimize import linprog

    G, h = _one_sided(N, tau, lower, upper)
    scale = max(float(np.abs(h).max(initial=0.0)), 1e-300)
    count = N.shape[1]
    z = np.zeros(count)
    if count:
        found = linprog(
            np.r_[np.zeros(count), 1.0], A_ub=np.column_stack([-G, -np.ones(len(h))]), b_ub=-h / scale,
            bounds=[*[(None, None)] * count, (0.0, None)],
        )  # fmt: skip
        z = scale * found.x[:count] if found.x is not None else z
    efforts = tau + N @ z
    return efforts, np.maximum(np.maximum(lower - efforts, efforts - upper), 0.0)
