"""A beam as a chain of elements with two nodes, its reduction by Craig and Bampton, and assemblies of such chains."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .beam_element import POINTS, WEIGHTS, Bar, element

Array = np.ndarray


@dataclass
class ChainMatrices:
    """Stiffness and mass over six unknowns a node, the root first."""

    K: Array
    M: Array

    @property
    def inner(self) -> Array:
        """Unknowns between the ends."""
        return np.arange(6, len(self.K) - 6)

    @property
    def ends(self) -> Array:
        """Unknowns of both ends."""
        return np.r_[0:6, len(self.K) - 6 : len(self.K)]

    def held(self) -> tuple[Array, Array]:
        """Eigenvalues and modes (mass 1, over the inner unknowns) with both ends held."""
        return held_modes(self.M, self.K, self.inner)

    def reduced(self, modes: int) -> tuple[Array, Array]:
        """Stiffness and mass over both ends and the lowest modes with these held."""
        T = craig_bampton(self.M, self.K, self.ends, modes)
        return T.T @ self.K @ T, T.T @ self.M @ T


def held_modes(M: Array, K: Array, inner: Array) -> tuple[Array, Array]:
    """Eigenvalues and modes of mass 1 over the inner unknowns with all others held."""
    own = np.ix_(inner, inner)
    inverse, vectors = scipy.linalg.eigh(M[own], K[own])  # soft modes with all digits
    values = 1 / inverse[::-1]
    return values, vectors[:, ::-1] * np.sqrt(values)


def craig_bampton(M: Array, K: Array, kept: Sequence[int], modes: int) -> Array:
    """Static shapes of the kept unknowns, then modes with these held, as columns over all unknowns."""
    inner, count = np.setdiff1d(np.arange(len(K)), kept), len(kept)
    T = np.zeros((len(K), count + modes))
    T[kept, :count] = np.eye(count)
    T[inner, :count] = -np.linalg.solve(K[np.ix_(inner, inner)], K[np.ix_(inner, kept)])
    T[inner, count:] = held_modes(M, K, inner)[1][:, :modes]
    return T


def chain(length: float, bar: Bar, elements: int) -> ChainMatrices:
    """A straight beam along x."""
    K, M = np.zeros((2, 6 * (elements + 1), 6 * (elements + 1)))
    k, m = element(length / elements, bar)
    for j in range(elements):
        own = slice(6 * j, 6 * j + 12)
        K[own, own] += k
        M[own, own] += m
    return ChainMatrices(K, M)


def clamped(K: Array, M: Array) -> Array:
    """Frequencies with the first six unknowns clamped, Hz."""
    return np.sqrt(np.abs(scipy.linalg.eigh(K[6:, 6:], M[6:, 6:], eigvals_only=True))) / (2 * np.pi)


def _matrices(rng: np.random.Generator, size: int, scale: float) -> Array:
    A = rng.standard_normal((size, size))
    return scale * A @ A.T


def assembly(rng: np.random.Generator, chains: list[ChainMatrices], modes: list[int]) -> tuple[Array, Array, float]:
    """Return eigenvalues, full and reduced, of beams with random springs, masses and ties at their ends."""
    ends = 12 * len(chains)
    sizes = np.diag(chains[0].K).max(), np.diag(chains[0].M).max()
    stiffness = _matrices(rng, ends, sizes[0] * 10 ** rng.uniform(-5, 0))
    mass = _matrices(rng, ends, sizes[1] * 10 ** rng.uniform(-3, 2))
    ties = np.linalg.qr(rng.standard_normal((ends, ends - rng.integers(0, 8))))[0]  # what ties leave free of the ends
    answers, cut = [], np.inf
    for kept in ([len(one.inner) for one in chains], modes):
        parts = [one.reduced(k) for one, k in zip(chains, kept, strict=True)]
        inner = sum(kept)
        T = np.zeros((ends + inner, ties.shape[1] + inner))
        T[:ends, : ties.shape[1]], T[ends:, ties.shape[1] :] = ties, np.eye(inner)
        K, M = np.zeros((2, ends + inner, ends + inner))
        K[:ends, :ends], M[:ends, :ends] = stiffness, mass
        first = ends
        for number, ((k, m), count) in enumerate(zip(parts, kept, strict=True)):
            own = np.r_[12 * number : 12 * number + 12, first : first + count]
            K[np.ix_(own, own)] += k
            M[np.ix_(own, own)] += m
            first += count
        answers.append(scipy.linalg.eigh(T.T @ K @ T, T.T @ M @ T, eigvals_only=True))
    for one, k in zip(chains, modes, strict=True):
        values = one.held()[0]
        cut = min(cut, values[k] if k < len(values) else np.inf)
    return answers[0], answers[1], float(cut)


def moving_energy(bar: Bar, places: Array, motions: Array, rates: Array, v: Array, w: Array) -> float:
    """Kinetic energy of a chain whose root moves with v and w, by quadrature over its points.

    `places` (along x) of the nodes, their displacements and turns `motions`, and rates of these, nodes x 6, in the axes
    of the root. Sections are slices with second moments: a point at the offset (0, y, z) goes with its slice, and a
    slice without rotary inertia only spins about the beam. No shear.
    """
    total = 0.0
    for j in range(len(places) - 1):
        length = places[j + 1] - places[j]
        for point, weight in zip((POINTS + 1) / 2, WEIGHTS / 2 * length, strict=True):
            (u, _), (ud, turn_rate) = (_slice(values[j], values[j + 1], point, length) for values in (motions, rates))
            r = np.array([places[j] + point * length, 0.0, 0.0]) + u
            speed = v + np.cross(w, r) + ud
            total += 0.5 * weight * bar.density * bar.A * (speed @ speed)
            total += 0.5 * weight * bar.density * bar.Ip * (w[0] + turn_rate[0]) ** 2
    return total


def _slice(first: Array, second: Array, xi: float, length: float) -> tuple[Array, Array]:
    """Displacement and turn of the slice at xi between two nodes, by Hermite's polynomials."""
    a, b = 1 - 3 * xi**2 + 2 * xi**3, 3 * xi**2 - 2 * xi**3
    c, d = length * xi * (1 - xi) ** 2, length * xi**2 * (xi - 1)
    x = (1 - xi) * first[0] + xi * second[0]
    y = a * first[1] + b * second[1] + c * first[5] + d * second[5]
    z = a * first[2] + b * second[2] - c * first[4] - d * second[4]
    twist = (1 - xi) * first[3] + xi * second[3]
    return np.array([x, y, z]), np.array([twist, 0.0, 0.0])


def shortening(places: Array, motions: Array) -> float:
    """Int (v'^2 + w'^2) dx of a chain, by quadrature of differences of Hermite's polynomials."""
    total, h = 0.0, 1e-5
    for j in range(len(places) - 1):
        length = places[j + 1] - places[j]
        for point, weight in zip((POINTS + 1) / 2, WEIGHTS / 2 * length, strict=True):
            after, before = (_slice(motions[j], motions[j + 1], point + s * h, length)[0] for s in (1, -1))
            slope = (after - before) / (2 * h * length)
            total += weight * (slope[1] ** 2 + slope[2] ** 2)
    return total
