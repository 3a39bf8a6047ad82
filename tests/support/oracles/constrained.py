"""Rigid bodies under constraints, integrated in redundant coordinates with multipliers; independent of the package.

A system has diagonal `masses` of its velocities, `openings` of its constraints, `rows` (G, r and gamma of `G v = r`,
`G a = gamma`), `forces` on the free bodies with gyroscopic terms, `rates` of positions, and `moved` positions. By
Gauss' principle accelerations are, of all with `G a = gamma`, nearest to those of the free bodies in the metric of the
masses: least squares, for redundant rows too. Dormand and Prince's method of order eight integrates between rows of a
table, at which the state is projected onto the constraints.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import DOP853

from support.oracles.planar_bodies import Linkage
from support.oracles.spatial_bodies import Assembly

Array = np.ndarray
REDUNDANT = 1e-9  # singular values of the scaled rows below this, relative to the largest, belong to repeated rows
NEWTON_STEPS = 50


class StoppedError(Exception):
    """The motion cannot go on, as where a led motor would leave what the closures can reach."""

    def __init__(self, time: float) -> None:
        super().__init__(f"the reference stops at {time}")
        self.time = time


System = Linkage | Assembly


@dataclass(frozen=True)
class Track:
    """Rows in time: positions, velocities, accelerations and multipliers."""

    t: Array
    q: Array
    v: Array
    a: Array
    multipliers: Array


def rank(system: System, t: float, q: Array) -> int:
    """Of the scaled rows where the constraints hold; between the rows of a table it stays so, a little off them too."""
    G = system.rows(t, q, np.zeros(len(system.masses)))[0]
    sizes = np.linalg.svd(G / np.sqrt(system.masses), compute_uv=False)
    return int((sizes > REDUNDANT * sizes[0]).sum())


def accelerations(system: System, t: float, q: Array, v: Array, kept: int | None = None) -> tuple[Array, Array]:
    """Accelerations and multipliers of least norm: `M a = f + G^T lam`."""
    root = 1.0 / np.sqrt(system.masses)
    G, _, gamma = system.rows(t, q, v)
    free = root * system.forces(t, q, v)
    U, sizes, V = np.linalg.svd(G * root, full_matrices=False)
    kept = int((sizes > REDUNDANT * sizes[0]).sum()) if kept is None else kept
    U, sizes, V = U[:, :kept], sizes[:kept], V[:kept]
    missed = (U.T @ (gamma - (G * root) @ free)) / sizes
    return root * (free + V.T @ missed), U @ (missed / sizes)


def closed(system: System, t: float, q: Array, held: Array | None = None) -> Array:
    """Positions on the constraints nearest to the given ones; velocities marked in `held` stay where they are."""
    root = 1.0 / np.sqrt(system.masses) if held is None else np.where(held, 0.0, 1.0 / np.sqrt(system.masses))
    still = np.zeros(len(root))
    for _ in range(NEWTON_STEPS):
        missed = system.openings(t, q)
        G = system.rows(t, q, still)[0]
        way = root * np.linalg.lstsq(G * root, -missed, rcond=REDUNDANT)[0]
        q = system.moved(q, way)
        if np.abs(way).max() < 1e-14:
            return q
    if np.abs(system.openings(t, q)).max() > 1e-12:
        raise ValueError("the mechanism cannot be closed")
    return q


def moving(system: System, t: float, q: Array, v: Array) -> Array:
    """Velocities on the constraints nearest to the given ones in the metric of the masses."""
    root = 1.0 / np.sqrt(system.masses)
    G, r, _ = system.rows(t, q, v)
    return v + root * np.linalg.lstsq(G * root, r - G @ v, rcond=REDUNDANT)[0]


def started(system: System, q: Array, wanted: dict[int, float], t: float = 0.0) -> Array:
    """Velocities that satisfy the constraints and in which those named by their number have the wanted values."""
    G, r, _ = system.rows(t, q, np.zeros(len(system.masses)))
    more = np.zeros((len(wanted), len(system.masses)))
    for row, index in enumerate(wanted):
        more[row, index] = 1.0
    rows, values = np.vstack([G, more]), np.concatenate([r, list(wanted.values())])
    v = np.linalg.lstsq(rows, values, rcond=REDUNDANT)[0]
    if np.abs(rows @ v - values).max() > 1e-9:
        raise ValueError("these velocities cannot be")
    return v


def integrate(system: System, t: Array, q: Array, v: Array, tolerance: float = 1e-12) -> Track:
    """Rows at the times `t` from positions and velocities at the first of them."""
    size, kept = len(q), 0

    def slope(time: float, y: Array) -> Array:
        a, _ = accelerations(system, time, y[:size], y[size:], kept)
        return np.concatenate([system.rates(y[:size], y[size:]), a])

    rows = []
    for k, now in enumerate(t):
        if k:
            kept = rank(system, t[k - 1], q)
            solver = DOP853(slope, t[k - 1], np.concatenate([q, v]), now, rtol=tolerance, atol=tolerance)
            while solver.status == "running":
                solver.step()
            if solver.status == "failed":
                raise StoppedError(float(solver.t))
            q = closed(system, now, solver.y[:size])
            v = moving(system, now, q, solver.y[size:])
        rows.append((q, v, *accelerations(system, now, q, v)))
    return Track(np.asarray(t), *(np.array(part) for part in zip(*rows, strict=True)))
