"""A leg condensed onto the hub: what the hub feels of it, with its lowest own modes kept and the rest as a series.

With the hub held, the leg has modes phi_j with squares w_j of frequencies. Seen from the hub,

    D(x) = k - x m - sum_j x^2 c_j c_j^T / (w_j - x),        x = omega^2,   c = (M_bi + Psi^T M_ii) phi,

exactly. The lowest modes are kept as coordinates; the sum over the others is smooth far beyond the band of interest and
is kept by its values at a few points of the band.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from parflex.records import Record

Array = np.ndarray
SEPARATE = 1e-8  # of the diagonal: entries below are zero but for rounding, in every shape of a leg
POINTS = 5  # points of the band at which the series is kept
CLEAR = 0.05  # relative gap between kept modes and the others: where they meet, neither set is smooth
FAR = 5.0  # modes that are not kept lie beyond so many times the band


@dataclass(frozen=True)
class Band:
    """Values x = omega^2 from 0 to `top`; the series is kept at Chebyshev points of it."""

    top: float

    @property
    def points(self) -> Array:
        """Where the series is kept."""
        return 0.5 * self.top * (1 + np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS))

    def lagrange(self) -> Array:
        """Coefficients (POINTS x POINTS) of the Lagrange polynomials in x / top, lowest power first."""
        return np.linalg.inv(np.vander(self.points / self.top, increasing=True)).T


@dataclass(frozen=True, eq=False, repr=False)
class LegGroup(Record):
    """Coordinates that hang together: of the leg, and components of its end; with the number of modes kept."""

    inner: Array
    ends: Array
    kept: int


def coupling(K: Array, M: Array) -> Array:
    """Largest entries of K and M at any of the shapes, beside the diagonal entries of their row and column."""
    pattern = np.zeros(K.shape[1:])
    for matrix in (K, M):
        size = np.maximum(np.sqrt(np.abs(np.diagonal(matrix, axis1=1, axis2=2))), 1e-300)
        pattern = np.maximum(pattern, np.abs(matrix / (size[:, :, None] * size[:, None, :])).max(axis=0))
    return pattern


def separate(pattern: Array, inner: int) -> list[tuple[Array, Array]]:
    """Groups of coordinates (leg's own, ends) that nothing couples."""
    count, label = connected_components(csr_array(pattern > SEPARATE))
    groups = [np.flatnonzero(label == k) for k in range(count)]
    return [(group[group < inner], group[group >= inner] - inner) for group in groups]


def condense(
    K: Array, M: Array, inner: int, group: LegGroup, band: Band, reference: tuple[Array, Array] | None
) -> dict:
    """The condensed matrices of a group at many shapes; `reference` holds modes and mass, one for each shape.

    Kept modes are known up to a rotation among them; the one nearest to the reference makes them smooth in the shape.
    """
    i, b = group.inner, group.ends + inner
    Kii, Mii, Kib, Mib = (matrix[:, rows[:, None], columns] for matrix, rows, columns in _blocks(K, M, i, b))
    w, Phi = _modes(Kii, Mii)
    r = group.kept
    if reference is not None and r:
        U, s, Vt = np.linalg.svd(np.swapaxes(Phi[:, :, :r], 1, 2) @ (reference[1] @ reference[0]))
        turn = U @ Vt
    else:
        turn, s = np.broadcast_to(np.eye(r), (len(K), r, r)), np.ones((len(K), max(r, 1)))
    kept = Phi[:, :, :r] @ turn
    Psi = -np.linalg.solve(Kii, Kib)
    felt = Mib + Mii @ Psi
    result = {
        "k": K[:, b[:, None], b] + np.swapaxes(Kib, 1, 2) @ Psi,
        "m": M[:, b[:, None], b] + np.swapaxes(Mib, 1, 2) @ Psi + np.swapaxes(Psi, 1, 2) @ felt,
        "own": np.swapaxes(turn, 1, 2) @ (w[:, :r, None] * turn),
        "c": np.swapaxes(felt, 1, 2) @ kept,
        "series": _series(np.swapaxes(felt, 1, 2) @ Phi[:, :, r:], w[:, r:], band),
    }
    return result | {"modes": kept, "mass": Mii, "spectrum": w, "overlap": s.min(axis=1)}


def _blocks(K: Array, M: Array, i: Array, b: Array) -> list[tuple[Array, Array, Array]]:
    return [(K, i, i), (M, i, i), (K, i, b), (M, i, b)]


def _modes(K: Array, M: Array) -> tuple[Array, Array]:
    """Squares of frequencies and mass-normalised modes of stacks of matrices."""
    L = np.linalg.cholesky(M)
    inverse = np.linalg.inv(L)
    w, V = np.linalg.eigh(inverse @ K @ np.swapaxes(inverse, 1, 2))
    return w, np.swapaxes(inverse, 1, 2) @ V


def _series(c: Array, w: Array, band: Band) -> Array:
    """sum_j c_j c_j^T / (w_j - x) at the points of the band (shapes x points x b x b)."""
    weights = 1.0 / (w[:, None, :] - band.points[None, :, None])
    return (c[:, None] * weights[:, :, None, :]) @ np.swapaxes(c, 1, 2)[:, None]


def kept_modes(spectra: Array, top: float) -> int:
    """How many of the lowest modes to keep, for all shapes: those within reach of the band, then to a clear gap."""
    count = spectra.shape[1]
    lowest = spectra.min(axis=0)
    least = next((r for r in range(count) if lowest[r] >= FAR * top), count)
    gaps = [1.0, *(1 - (spectra[:, :-1] / spectra[:, 1:]).max(axis=0)), 1.0]  # gap above the first 0, 1, ... modes
    clear = [r for r in range(least, count + 1) if gaps[r] > CLEAR]
    return clear[0]


def chebyshev_points(count: int, low: float, high: float) -> Array:
    """Chebyshev points of an interval."""
    return 0.5 * (low + high) + 0.5 * (high - low) * np.cos(np.pi * (np.arange(count) + 0.5) / count)


def chebyshev_coefficients(values: Array, axis: int) -> Array:
    """Coefficients along an axis from values at the Chebyshev points."""
    count = values.shape[axis]
    T = chebyshev.chebvander(np.cos(np.pi * (np.arange(count) + 0.5) / count), count - 1)
    weights = T.T * (2.0 / count)
    weights[0] *= 0.5
    return np.moveaxis(np.tensordot(weights, values, axes=(1, axis)), 0, axis)
