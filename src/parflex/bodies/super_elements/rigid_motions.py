"""Rigid motions in reduced matrices: where nodes are, mass, centre and inertia, and what K does to motions it must not.

Interface nodes move rigidly by X = [1, -hat(p); 0, 1], modal coordinates with held interfaces not at all. X^T M X has
the mass and its moments, K X would be zero without rounding, theory (67).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from parflex.bodies.super_elements.reduced_matrices import InterfaceNode, ReducedMatrices, refuse
from parflex.bodies.super_elements.unit_systems import unit_doubts
from parflex.records import Record
from parflex.spatial.rotations import hat

Array = np.ndarray
ORDER = (
    "rows are x y z rx ry rz of each interface node, then modal coordinates; positions are in the unit of the matrices"
)
NEGATIVE = 1e-9  # of scaled masses: less is rounding
MASSLESS = 1e-11  # of its mass, added to each freedom so that none is without
SAME_MASS = 1e-2  # masses along x, y and z may differ by so much
SAID, REFUSED = 1e-2, 1e-1  # highest frequency of a rigid motion, of the lowest elastic one
ASIDE = 2.0  # radius of gyration along a direction, over half the way that nodes span there: a bar has 0.58
SLENDER = 0.1  # of the whole radius of gyration: sections of bars have less across
TURNING = 0.1  # of the lowest frequency with held nodes: centrifugal loads then deform by a hundredth of the arm
FASTEST = 300.0  # rad/s: what turns faster than 3000 turns a minute is no link of a robot
SAME_PLACE = 1e-6  # of the size of the body: nodes that are nearer to each other are at one place
DETERMINED = 1e-7  # of the largest singular value: less determines no position


@dataclass(frozen=True, eq=False, repr=False)
class RigidReport(Record):
    """What the matrices of a super-element are as a rigid body, and how well they know it."""

    mass: float
    centre: Array  # in the axes and from the origin of its file
    inertia: Array  # about the centre
    rigid_residual: float  # |K X| / |K|, spectral norms
    rigid_hz: float  # largest frequency among the six rigid motions; 0 without rounding
    lowest_hz: float  # lowest elastic frequency of the free body
    positions: Array = field(repr=False)  # of the nodes
    placed: str = "file"  # who says so: file | robot | matrices
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Plain numbers."""
        plain = {key: float(getattr(self, key)) for key in ("mass", "rigid_residual", "rigid_hz", "lowest_hz")}
        arrays = {key: np.asarray(getattr(self, key)).tolist() for key in ("centre", "inertia", "positions")}
        return {**plain, **arrays, "placed": self.placed}


def rigid_shapes(nodes: Sequence[InterfaceNode], positions: Array, size: int) -> Array:
    """X: motions of all freedoms per unit of velocity of the origin and of angular velocity."""
    X = np.zeros((size, 6))
    for node, place in zip(nodes, positions, strict=True):
        own = list(node.rows)
        X[own[:3], :3], X[own[:3], 3:] = np.eye(3), -hat(place)
        if node.turns:
            X[own[3:], 3:] = np.eye(3)
    return X


def found_positions(data: ReducedMatrices) -> Array:
    """Positions from the first node, from K alone: its columns of rigid turns have to cancel."""
    first = rigid_shapes(data.nodes, np.zeros((len(data.nodes), 3)), data.size)[:, 3:]
    scale = 1 / np.sqrt(np.maximum(np.abs(np.diag(data.K)), 1e-300))
    K = data.K * scale[:, None]
    columns = []
    for node in data.nodes[1:]:
        for axis in np.eye(3):
            moved = np.zeros((data.size, 3))
            moved[list(node.rows[:3])] = -hat(axis)
            columns.append((K @ moved).ravel())
    if not columns:
        return np.zeros((1, 3))
    A, rhs = np.array(columns).T, -(K @ first).ravel()
    sizes = np.linalg.norm(A, axis=0)
    if not sizes.all() or np.linalg.svd(A / sizes, compute_uv=False)[-1] < DETERMINED:
        raise refuse(
            data.file,
            "has no positions of its nodes, and its stiffness does not determine them",
            "give positions = { NAME = [x, y, z], ... } in metres",
            "positions",
        )
    found = np.linalg.lstsq(A / sizes, rhs, rcond=None)[0] / sizes
    return np.vstack([np.zeros(3), found.reshape(-1, 3)])


def rigid_report(data: ReducedMatrices, positions: Array | None, placed: str) -> RigidReport:
    """Mass, centre, inertia and what is wrong with them; refused where K and M are not of a free body."""
    if positions is None:
        positions, placed = found_positions(data), "matrices"
    positions = _one_place(data, positions)
    X = rigid_shapes(data.nodes, positions, data.size)
    if np.linalg.matrix_rank(X) < 6:
        raise refuse(
            data.file, "its nodes do not show all rigid motions", "retain rotations, or three nodes not in line"
        )
    rounding = _refuse_negative(data)
    R = X.T @ data.M @ X
    mass = float(np.trace(R[:3, :3]) / 3)
    spread = float(np.abs(R[:3, :3] - mass * np.eye(3)).max())
    if mass <= 0 or spread > SAME_MASS * mass:
        along = ", ".join(f"{x:.4g}" for x in np.diag(R[:3, :3]))
        raise refuse(data.file, f"the mass differs by direction: {along} kg along x, y, z", ORDER, "M", mass)
    moments = (R[3:, :3] - R[:3, 3:]) / 2
    centre = np.array([moments[2, 1] - moments[1, 2], moments[0, 2] - moments[2, 0], moments[1, 0] - moments[0, 1]])
    centre = centre / (2 * mass)
    inertia = (R[3:, 3:] + R[3:, 3:].T) / 2 - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    residual = float(np.linalg.norm(data.K @ X, 2) / np.linalg.norm(data.K, 2))
    hertz = _frequencies(data, rounding)
    rigid, lowest = float(np.abs(hertz[:6]).max()), float(hertz[6]) if len(hertz) > 6 else np.inf
    share = rigid / lowest if lowest else np.inf
    said = (
        f"its rigid motions vibrate at up to {rigid:.3g} Hz, {share:.2g} of the lowest elastic frequency, "
        f"{lowest:.4g} Hz (residual {residual:.1e})"
    )
    if not lowest > 0 or rigid > REFUSED * lowest:
        negative = hertz[0] < -SAID * abs(lowest)
        what = f"is indefinite, lowest eigenvalue -({-hertz[0]:.3g} Hz)^2" if negative else "is not that of a free body"
        raise refuse(
            data.file,
            f"the stiffness matrix {what}: {said}",
            f"write the matrices with more digits, and check their order: {ORDER}",
            "K",
            residual,
        )
    least = MASSLESS * np.diag(np.repeat([mass, max(np.trace(R[3:, 3:]), mass * SAME_PLACE**2)], 3))
    moved = np.abs(scipy.linalg.eigvalsh(X.T @ data.K @ X, R + least))
    forced = float(np.sqrt(moved.max()) / (2 * np.pi))
    if forced > REFUSED * lowest:
        raise refuse(
            data.file,
            f"the positions of its nodes do not fit its stiffness: rigid motions there vibrate at up to {forced:.3g} "
            f"Hz, {forced / lowest:.2g} of the lowest elastic frequency, {lowest:.4g} Hz (residual {residual:.1e})",
            f"correct them, or leave them out: they follow from K ({ORDER})",
            "positions",
            residual,
        )
    notes = [f"the stiffness matrix has few digits: {said}"] * (rigid > SAID * lowest)
    notes += unit_doubts(data, mass, centre, inertia, positions, lowest)
    notes += _mass_aside(data, mass, inertia, positions)
    return RigidReport(mass, centre, inertia, residual, rigid, lowest, positions, placed, tuple(notes))


def _one_place(data: ReducedMatrices, positions: Array) -> Array:
    """Both sides of a flexure are at one place, whatever finite elements did to tell them apart."""
    X = rigid_shapes(data.nodes, positions - positions[0], data.size)
    R = X.T @ data.M @ X
    size = max(np.sqrt(abs(np.trace(R[3:, 3:]) / np.trace(R[:3, :3]))), np.ptp(positions, axis=0).max())
    placed = positions.copy()
    for i in range(len(placed)):
        near = np.linalg.norm(placed[:i] - placed[i], axis=1) < SAME_PLACE * size
        if near.any():
            placed[i] = placed[int(near.argmax())]
    return placed


def _refuse_negative(data: ReducedMatrices) -> float:
    """No motion has negative kinetic energy, and no modal coordinate none; how far rounding is from that, scaled."""
    diagonal = np.diag(data.M)
    bare = np.flatnonzero(diagonal[data.interface :] == 0)
    if len(bare):
        hint = "write the file again if it is truncated, or leave the mode out"
        raise refuse(data.file, f"modal coordinate {bare[0] + 1} has no mass", hint, "M", int(bare[0] + 1))
    pulled = np.flatnonzero((diagonal == 0) & np.any(data.M != 0, axis=1))
    if len(pulled):
        raise refuse(
            data.file,
            f"the mass matrix is indefinite: freedom {pulled[0] + 1} has no mass, but is tied to others by mass",
            "write it with more digits, and check that it is the mass matrix",
            "M",
            int(pulled[0] + 1),
        )
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    lowest = float(np.linalg.eigvalsh((data.M * scale).T * scale)[0])
    if np.any(diagonal < 0) or lowest < -NEGATIVE:
        value = float(diagonal.min()) if np.any(diagonal < 0) else lowest
        where = "a negative mass on its diagonal" if np.any(diagonal < 0) else "a negative eigenvalue"
        raise refuse(
            data.file,
            f"the mass matrix is indefinite: it has {where}, {value:.2g}"
            + ("" if np.any(diagonal < 0) else " of its diagonal"),
            "write it with more digits, and check that it is the mass matrix",
            "M",
            value,
        )
    return max(-lowest, 0.0)


def _frequencies(data: ReducedMatrices, rounding: float) -> Array:
    """Of the free body, Hz, by rising square; negative where the square is."""
    m, k = np.diag(data.M), np.maximum(np.abs(np.diag(data.K)), 1e-300)
    least = float(np.min(np.where(m > 0, m / k, np.inf)))  # freedoms without mass are fast
    M = data.M + np.diag(np.where(m > 0, (MASSLESS + 2 * rounding) * m, least * k))
    squares = scipy.linalg.eigvalsh(data.K, M)
    return np.sign(squares) * np.sqrt(np.abs(squares)) / (2 * np.pi)


def _mass_aside(data: ReducedMatrices, mass: float, inertia: Array, positions: Array) -> list[str]:
    """Where matrices cannot tell what turning does: modes of masses away from all nodes, which no node shows."""
    K, M = (one[data.interface :, data.interface :] for one in (data.K, data.M))
    if not len(M):
        return []
    speed = TURNING * float(np.sqrt(max(scipy.linalg.eigvalsh(K, M)[0], 0.0)))
    squares, ways = np.linalg.eigh((np.trace(inertia) / 2 * np.eye(3) - inertia) / mass)
    gyration = np.sqrt(np.maximum(squares, 0.0))
    aside = (gyration > ASIDE * np.ptp(positions @ ways, axis=0) / 2) & (gyration > SLENDER * np.linalg.norm(gyration))
    if not aside.any() or speed > FASTEST:
        return []
    return [
        f"its mass lies {gyration[aside].max():.3g} m (radius of gyration) aside of its interface nodes, which do not "
        f"show how its modes move there: where it turns at {speed:.2g} rad/s or faster, centrifugal loads on them may "
        "be missing; reduce it with nodes where the mass is, not on one line"
    ]
