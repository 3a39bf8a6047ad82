"""Check reduced mass and stiffness matrices, their rigid-body modes and their units.

Rows follow the order of the nodes, of each `x y z rx ry rz` (or `x y z` alone), then the modal coordinates.

In a rigid motion, interface nodes move by X = [1, -hat(p); 0, 1] and modal coordinates with fixed interfaces not at
all. X^T M X holds the mass and its moments; K X is zero but for rounding, theory (67).

Two bounds check the units stated in the robot file. The mass, over the volume of the box with the same second moments,
is at most 9/8 of the density, since an ellipsoid is the most compact body. The speed c with c^2 = x^T K x / m, x the
motion of interfaces under a uniform unit strain, is at most that of waves, since static shapes store least energy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy

from parflex.bodies.modal import rigid_shapes
from parflex.bodies.rigid import axial, second_moments
from parflex.diagnostics import Diagnostic
from parflex.errors import RobotFileError
from parflex.records import Record
from parflex.spatial.rotations import hat

Array = np.ndarray
Freedom = tuple[int, int]  # number of a node and 1 to 6; number of a modal coordinate and 0
MAX_ORDER = 600  # degrees of freedom; larger matrices are not reduced
UNSYMMETRIC = 1e-6  # of the largest entry: larger differences are not rounding of printed numbers
LARGEST_NUMBER = 1e10  # largest number of a node or degree of freedom
LARGEST = 1e100  # largest entry, whose square is finite
WORDS = {"M": "mass matrix", "K": "stiffness matrix", "D": "damping matrix", "geometric": "geometric stiffness"}
ORDER = (
    "rows are x y z rx ry rz of each interface node, then modal coordinates; positions are in the unit of the matrices"
)

NEGATIVE = 1e-9  # of scaled masses: smaller negative eigenvalues are rounding
MASSLESS = 1e-11  # of the mass, added to each degree of freedom so that none is massless
SAME_MASS = 1e-2  # relative difference of masses along x, y and z
SAID, REFUSED = 1e-2, 1e-1  # highest rigid-body frequency relative to the lowest elastic one that is reported, refused
ASIDE = 2.0  # radius of gyration along a direction over half the extent of the nodes: a bar has 0.58
SLENDER = 0.1  # of the whole radius of gyration: sections of bars have less
TURNING = 0.1  # of the lowest clamped frequency: centrifugal loads then deform by a hundredth of the arm
MAX_ROTATION_SPEED = 300.0  # rad/s: links of robots stay below 3000 revolutions per minute
SAME_PLACE = 1e-6  # of the size of the body: nearer nodes coincide
DETERMINED = 1e-7  # of the largest singular value: smaller values determine no position
MAX_DENSITY = 25_500.0  # kg/m3: osmium as an ellipsoid, 9/8 of 22 600
MAX_WAVE_SPEED = 50_000.0  # m/s: diamond has 18 000; rigid regions around nodes shorten the strained length
THIN = 1e-3  # kg/m3, mass over the cube of the radius of gyration: a thousandth of air
FLAT = 1e-6  # of the longest side: smallest thickness of a box


@dataclass(frozen=True, eq=False, repr=False)
class InterfaceNode(Record):
    """An interface node: number in its file, rows of its degrees of freedom, position if the file has it."""

    number: int
    rows: tuple[int, ...]
    position: Array | None = None

    @property
    def turns(self) -> bool:
        """Whether rotations are among the degrees of freedom of the node."""
        return len(self.rows) == 6


@dataclass(frozen=True, eq=False, repr=False)
class ReducedMatrices(Record):
    """Mass and stiffness of one body, with damping and geometric stiffness if the file has them."""

    M: Array
    K: Array
    nodes: tuple[InterfaceNode, ...]
    D: Array | None = None
    geometric: Array | None = field(default=None, repr=False)  # n x n of one load, or n x n x n of each coordinate
    units: str = "m"  # those that the file was given in

    @property
    def size(self) -> int:
        """Number of degrees of freedom."""
        return len(self.M)

    @property
    def interface(self) -> int:
        """Number of degrees of freedom of the nodes; the others are modal coordinates."""
        return sum(len(node.rows) for node in self.nodes)

    def with_modes(self, count: int) -> ReducedMatrices:
        """Return the body with its first modal coordinates only."""
        available = self.size - self.interface
        message = f"{count} modes are requested, but the matrices have {available} modal coordinates"
        require(0 <= count <= available, message, f"give a number from 0 to {available}", "modes", count)
        n = self.interface + count
        cut = {key: A[(slice(n),) * A.ndim] for key in WORDS if (A := getattr(self, key)) is not None}
        return replace(self, **cut)


def in_order(freedom: Freedom) -> tuple[bool, int, int]:
    """Return a sort key: nodes by number, then modal coordinates; internal nodes of Abaqus are -1, -2, ..."""
    return freedom[1] == 0, abs(freedom[0]), freedom[1]


def matrix_error(message: str, hint: str, key: str | None = None, value: object = None) -> RobotFileError:
    """Return the error about inconsistent matrices."""
    return RobotFileError(message, key=key, value=value, hint=hint)


def require(holds: Any, message: str, hint: str, key: str | None = None, value: object = None) -> None:
    """Raise the error about inconsistent matrices unless a condition holds."""
    if not holds:
        raise matrix_error(message, hint, key, value)


def from_freedoms(
    freedoms: Sequence[Freedom],
    matrices: Mapping[str, Array],
    positions: Mapping[int, Array] | None = None,
) -> ReducedMatrices:
    """Return matrices by names M, K, D and geometric in standard order from rows of these degrees of freedom."""
    for key in ("M", "K"):
        hint = f"give M and K of the same reduction; found {', '.join(sorted(matrices)) or 'none'}"
        require(key in matrices, f"the {WORDS[key]} {key} is missing", hint, key)
    for number, component in freedoms:
        message, hint = (
            f"node {number} has a degree of freedom {component}",
            "1 to 6 are x y z rx ry rz, 0 is a modal coordinate",
        )
        require(0 <= component <= 6, message, hint, value=component)
    if len(set(freedoms)) < len(freedoms):
        duplicate = next(freedom for k, freedom in enumerate(freedoms) if freedom in freedoms[:k])
        message = f"degree of freedom {duplicate[1]} of node {duplicate[0]} appears twice"
        raise matrix_error(message, "give every degree of freedom once")
    rows_of: dict[int, list[tuple[int, int]]] = {}
    for row, (number, component) in enumerate(freedoms):
        if component:
            rows_of.setdefault(number, []).append((component, row))
    order: list[int] = []
    nodes: list[InterfaceNode] = []
    for number, rows in rows_of.items():
        components = [component for component, _ in sorted(rows)]
        message = f"node {number} has only the degrees of freedom {' '.join(map(str, components))}"
        hint = "retain 1 to 6 of interface nodes (or 1 to 3, for ball joints only); constrain none of them"
        require(components in ([1, 2, 3], [1, 2, 3, 4, 5, 6]), message, hint, value=number)
        place = None if positions is None or number not in positions else np.asarray(positions[number], dtype=float)
        nodes.append(InterfaceNode(number, tuple(range(len(order), len(order) + len(rows))), place))
        order += [row for _, row in sorted(rows)]
    require(nodes, "there is no interface node", "retain the nodes to which the robot is attached")
    order += [row for row, (_, component) in enumerate(freedoms) if not component]
    index = np.array(order)
    placed: dict[str, Any] = {key: checked(A, key, len(freedoms)) for key, A in matrices.items()}
    placed = {key: A[np.ix_(*(index,) * A.ndim)] for key, A in placed.items()}
    return ReducedMatrices(nodes=tuple(nodes), **placed)


def checked(A: Array, key: str, order: int) -> Array:
    """Return the matrix: finite, of the right order and symmetric, with rounding of the symmetry removed."""
    label, shape = f"the {WORDS[key]} {key}", " x ".join(map(str, A.shape))
    fits = A.shape == (order,) * (3 if key == "geometric" and A.ndim == 3 else 2)
    require(fits, f"{label} is {shape}, with {order} degrees of freedom", f"give {order} x {order} numbers", key, shape)
    message = f"{label} has an entry that is not a finite number below 1e100"
    require(np.all(np.abs(A) < LARGEST), message, "write the matrices again", key)  # also NaN
    size, off = np.abs(A).max(), np.abs(A - np.swapaxes(A, -1, -2))
    if off.max() > UNSYMMETRIC * size:
        *_, i, j = np.unravel_index(off.argmax(), off.shape)
        share = float(off.max() / size)
        message = f"{label} is not symmetric: rows {i + 1} and {j + 1} differ by {share:.2g} of its largest entry"
        hint = "write both triangles or say that it is symmetric; gyroscopic and load terms have no place in it"
        raise matrix_error(message, hint, key, share)
    return (A + np.swapaxes(A, -1, -2)) / 2


def refuse_order(order: int) -> None:
    """Raise for matrices that are too large, before allocation."""
    hint = "give matrices that are reduced to interface nodes and modes (craig_bampton reduces whole ones)"
    require(order <= MAX_ORDER, f"has {order} degrees of freedom, more than {MAX_ORDER}", hint, value=order)
    require(order >= 6, f"has only {order} degrees of freedom", "give six for each interface node", value=order)


@dataclass(frozen=True, eq=False, repr=False)
class RigidReport(Record):
    """Rigid-body properties of the matrices of a superelement, and their errors."""

    mass: float
    centre: Array  # in the axes and from the origin of its file
    inertia: Array  # about the centre
    rigid_residual: float  # |K X| / |K|, spectral norms
    rigid_hz: float  # largest frequency among the six rigid motions; 0 without rounding
    lowest_hz: float  # lowest elastic frequency of the free body
    positions: Array = field(repr=False)  # of the nodes
    placed: str = "file"  # source of the positions: file | robot | matrices
    notes: tuple[Diagnostic, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return plain numbers."""
        names = ("mass", "rigid_residual", "rigid_hz", "lowest_hz", "centre", "inertia", "positions")
        return {name: np.asarray(getattr(self, name)).tolist() for name in names} | {"placed": self.placed}


def rigid_motions(nodes: Sequence[InterfaceNode], positions: Array, size: int) -> Array:
    """Return X, motions of all degrees of freedom per unit of velocity of the origin and of angular velocity."""
    X = np.zeros((size, 6))
    for node, motions in zip(nodes, rigid_shapes(positions).transpose(1, 2, 0), strict=True):
        X[list(node.rows)] = motions[: len(node.rows)]
    return X


def estimated_positions(data: ReducedMatrices) -> Array:
    """Return positions relative to the first node from K alone, whose rigid rotations must cancel."""
    first = rigid_motions(data.nodes, np.zeros((len(data.nodes), 3)), data.size)[:, 3:]
    scale = 1 / np.sqrt(np.maximum(np.abs(np.diag(data.K)), 1e-300))
    K = data.K * scale[:, None]
    if len(data.nodes) == 1:
        return np.zeros((1, 3))
    columns = [(K[:, node.rows[:3]] @ -hat(axis)).ravel() for node in data.nodes[1:] for axis in np.eye(3)]
    A, rhs = np.array(columns).T, -(K @ first).ravel()
    sizes = np.linalg.norm(A, axis=0)
    known = sizes.all() and np.linalg.svd(A / sizes, compute_uv=False)[-1] >= DETERMINED
    message = "has no positions of its nodes, and its stiffness does not determine them"
    require(known, message, "give positions = { NAME = [x, y, z], ... } in metres", "positions")
    offsets = np.linalg.lstsq(A / sizes, rhs, rcond=None)[0] / sizes
    return np.vstack([np.zeros(3), offsets.reshape(-1, 3)])


def rigid_report(data: ReducedMatrices, positions: Array | None, placed: str) -> RigidReport:
    """Return mass, centre, inertia and errors; raise if K and M are not those of a free body."""
    if positions is None:
        positions, placed = estimated_positions(data), "matrices"
    positions = _merge_coincident_nodes(data, positions)
    X = rigid_motions(data.nodes, positions, data.size)
    hint = "retain rotations, or three nodes not in line"
    require(np.linalg.matrix_rank(X) == 6, "its nodes do not determine all rigid-body motions", hint)
    rounding = _refuse_negative(data)
    R = X.T @ data.M @ X
    mass = float(np.trace(R[:3, :3]) / 3)
    spread = float(np.abs(R[:3, :3] - mass * np.eye(3)).max())
    along = ", ".join(f"{x:.4g}" for x in np.diag(R[:3, :3]))
    same = mass > 0 and spread <= SAME_MASS * mass
    require(same, f"the mass differs by direction: {along} kg along x, y, z", ORDER, "M", mass)
    moments = (R[3:, :3] - R[:3, 3:]) / 2
    centre = axial(moments) / (2 * mass)
    inertia = (R[3:, 3:] + R[3:, 3:].T) / 2 - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    residual = float(np.linalg.norm(data.K @ X, 2) / np.linalg.norm(data.K, 2))
    hertz = _frequencies(data, rounding)
    rigid, lowest = float(np.abs(hertz[:6]).max()), float(hertz[6]) if len(hertz) > 6 else np.inf
    share = rigid / lowest if lowest else np.inf
    summary = (
        f"its rigid motions vibrate at up to {rigid:.3g} Hz, {share:.2g} of the lowest elastic frequency, "
        f"{lowest:.4g} Hz (residual {residual:.1e})"
    )
    negative = hertz[0] < -SAID * abs(lowest)
    what = f"is indefinite, lowest eigenvalue -({-hertz[0]:.3g} Hz)^2" if negative else "is not that of a free body"
    hint = f"write the matrices with more digits, and check their order: {ORDER}"
    require(lowest > 0 and rigid <= REFUSED * lowest, f"the stiffness matrix {what}: {summary}", hint, "K", residual)
    least = MASSLESS * np.diag(np.repeat([mass, max(np.trace(R[3:, 3:]), mass * SAME_PLACE**2)], 3))
    eigenvalues = np.abs(scipy.linalg.eigvalsh(X.T @ data.K @ X, R + least))
    forced = float(np.sqrt(eigenvalues.max()) / (2 * np.pi))
    message = (
        f"the positions of its nodes do not fit its stiffness: rigid motions there vibrate at up to {forced:.3g} "
        f"Hz, {forced / lowest:.2g} of the lowest elastic frequency, {lowest:.4g} Hz (residual {residual:.1e})"
    )
    hint = f"correct them, or leave them out: they follow from K ({ORDER})"
    require(forced <= REFUSED * lowest, message, hint, "positions", residual)
    few = Diagnostic("superelement-matrices", f"the stiffness matrix has few digits: {summary}", value=rigid / lowest)
    notes = [few] if rigid > SAID * lowest else []
    notes += unit_warnings(data, mass, centre, inertia, positions, lowest)
    notes += _mass_off_nodes(data, mass, inertia, positions)
    return RigidReport(mass, centre, inertia, residual, rigid, lowest, positions, placed, tuple(notes))


def _merge_coincident_nodes(data: ReducedMatrices, positions: Array) -> Array:
    """Return positions with coincident nodes merged, such as both sides of a flexure."""
    X = rigid_motions(data.nodes, positions - positions[0], data.size)
    R = X.T @ data.M @ X
    size = max(np.sqrt(abs(np.trace(R[3:, 3:]) / np.trace(R[:3, :3]))), np.ptp(positions, axis=0).max())
    placed = positions.copy()
    for i in range(len(placed)):
        coincident = np.linalg.norm(placed[:i] - placed[i], axis=1) < SAME_PLACE * size
        if coincident.any():
            placed[i] = placed[int(coincident.argmax())]
    return placed


def _refuse_negative(data: ReducedMatrices) -> float:
    """Raise for negative kinetic energy or massless modal coordinates; return the scaled rounding."""
    diagonal, what = np.diag(data.M), "the mass matrix is indefinite"
    hint = "write it with more digits, and check that it is the mass matrix"
    for k in np.flatnonzero(diagonal[data.interface :] == 0) + 1:
        missing = "write the file again if it is truncated, or leave the mode out"
        raise matrix_error(f"modal coordinate {k} has no mass", missing, "M", int(k))
    for k in np.flatnonzero((diagonal == 0) & np.any(data.M != 0, axis=1)) + 1:
        raise matrix_error(
            f"{what}: degree of freedom {k} has no mass, but is coupled to others by mass", hint, "M", int(k)
        )
    least = float(diagonal.min())
    require(least >= 0, f"{what}: it has a negative mass on its diagonal, {least:.2g}", hint, "M", least)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    lowest = float(np.linalg.eigvalsh((data.M * scale).T * scale)[0])
    message = f"{what}: it has a negative eigenvalue, {lowest:.2g} of its diagonal"
    require(lowest >= -NEGATIVE, message, hint, "M", lowest)
    return max(-lowest, 0.0)


def _frequencies(data: ReducedMatrices, rounding: float) -> Array:
    """Return the frequencies of the free body (Hz) by rising square; negative for a negative square."""
    m, k = np.diag(data.M), np.maximum(np.abs(np.diag(data.K)), 1e-300)
    least = float(np.min(np.where(m > 0, m / k, np.inf)))  # massless coordinates are fast
    M = data.M + np.diag(np.where(m > 0, (MASSLESS + 2 * rounding) * m, least * k))
    squares = scipy.linalg.eigvalsh(data.K, M)
    return np.sign(squares) * np.sqrt(np.abs(squares)) / (2 * np.pi)


def _mass_off_nodes(data: ReducedMatrices, mass: float, inertia: Array, positions: Array) -> list[Diagnostic]:
    """Report masses away from all nodes, whose motion by modes the matrices do not determine."""
    K, M = (matrix[data.interface :, data.interface :] for matrix in (data.K, data.M))
    if not len(M):
        return []
    speed = TURNING * float(np.sqrt(max(scipy.linalg.eigvalsh(K, M)[0], 0.0)))
    squares, axes = np.linalg.eigh(second_moments(inertia) / mass)
    gyration = np.sqrt(np.maximum(squares, 0.0))
    aside = (gyration > ASIDE * np.ptp(positions @ axes, axis=0) / 2) & (gyration > SLENDER * np.linalg.norm(gyration))
    if not aside.any() or speed > MAX_ROTATION_SPEED:
        return []
    text = (
        f"its mass lies {gyration[aside].max():.3g} m (radius of gyration) aside of its interface nodes, which do not "
        f"show how its modes move there: where it turns at {speed:.2g} rad/s or faster, centrifugal loads on them may "
        "be missing; reduce it with nodes where the mass is, not on one line"
    )
    return [Diagnostic("superelement-matrices", text, value=float(gyration[aside].max()))]


@dataclass(frozen=True, eq=False, repr=False)
class UnitSystem(Record):
    """Units of mass, length, force and time in kg, m, N and s, and their names."""

    mass: float
    length: float
    force: float
    time: float
    said: str


UNITS = {
    "m": UnitSystem(1.0, 1.0, 1.0, 1.0, "kg, m, N"),
    "mm": UnitSystem(1e3, 1e-3, 1.0, 1.0, "t, mm, N"),
    "kg-mm-N": UnitSystem(1.0, 1e-3, 1.0, 1.0, "kg, mm, N"),
    "kg-mm-ms": UnitSystem(1.0, 1e-3, 1e3, 1e-3, "kg, mm, ms, kN"),
    "kg-mm-s": UnitSystem(1.0, 1e-3, 1e-3, 1.0, "kg, mm, s, mN"),
    "in": UnitSystem(175.126835246, 0.0254, 4.4482216152605, 1.0, "lbf s2/in, in, lbf"),
}


def in_si_units(data: ReducedMatrices, units: str) -> ReducedMatrices:
    """Return the body in kg, m and N; modal coordinates are unchanged."""
    system = UNITS[units]
    if units == "m":
        return data
    t = np.ones(data.size)
    for node in data.nodes:
        t[list(node.rows[:3])] /= system.length
    scaling, energy, KG = np.outer(t, t), system.force * system.length, data.geometric
    if KG is not None:
        KG = energy * KG * scaling * (t[:, None, None] if KG.ndim == 3 else 1.0)
    positions = [None if node.position is None else node.position * system.length for node in data.nodes]
    return replace(
        data,
        M=system.mass * system.length**2 * data.M * scaling,
        K=energy * data.K * scaling,
        D=None if data.D is None else energy * system.time * data.D * scaling,
        nodes=tuple(replace(node, position=place) for node, place in zip(data.nodes, positions, strict=True)),
        geometric=KG,
        units=units,
    )


def unit_warnings(
    data: ReducedMatrices, mass: float, centre: Array, inertia: Array, positions: Array, lowest: float
) -> list[Diagnostic]:
    """Report a density or a wave speed that no material has in the units of the robot file.

    `lowest` is the lowest elastic frequency in Hz. By Rayleigh's quotient of a uniform strain it is at most that of
    waves over the radius of gyration along the longest axis.
    """
    squares, axes = np.linalg.eigh(second_moments(inertia) / mass)
    radius = np.sqrt(max(float(np.trace(inertia)), 0.0) / (2 * mass))
    if radius == 0:
        return []
    sides = np.sqrt(12 * np.maximum(squares, (FLAT * radius) ** 2))
    x = np.zeros((data.size, 3))  # motions of the interfaces under uniform strains
    for node, place in zip(data.nodes, (positions - centre) @ axes, strict=True):
        x[list(node.rows[:3])] = place * axes
    density = mass / float(np.prod(sides))
    speed = float(np.sqrt(max(0.0, *np.einsum("ik,ij,jk->k", x, data.K, x) / mass)))
    speed = max(speed, 2 * np.pi * lowest * sides[-1] / np.sqrt(12)) if np.isfinite(lowest) else speed
    box = " x ".join(f"{side:.3g}" for side in sides[::-1])
    if mass / radius**3 < THIN:
        issue = f"a mass of {mass:.3g} kg within a radius of gyration of {radius:.3g} m is thinner than air"
    elif density > MAX_DENSITY and squares.min() > 0:
        issue = (
            f"a mass of {mass:.3g} kg in a box of {box} m (that of its moments of inertia) is {density:.2g} kg/m3, "
            "more than any material has"
        )
    elif speed > MAX_WAVE_SPEED:
        issue = (
            f"a mass of {mass:.3g} kg in a box of {box} m is so light for its stiffness that waves would run at "
            f"{speed:.2g} m/s (steel: 6000)"
        )
    else:
        return []
    text = (
        f"{issue}: the matrices are read in {UNITS[data.units].said}; check 'units' ({', '.join(UNITS)}) and the order "
        "of the rows"
    )
    return [Diagnostic("superelement-matrices", text)]
