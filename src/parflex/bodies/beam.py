"""Beam elements with cubic shape functions.

The coordinates of an element are displacement and rotation of its tip; the beam lies along x from its root. Integrals
are exact: shape functions are polynomials in xi = x / L and linear in y and z, so every invariant, and that of the mass
beyond any section, is a polynomial in xi. Shear is optional (Timoshenko): the shapes are those of a beam loaded at its
tip, with the ratio Ps = 12 E I / (k G A L^2) of bending to shear stiffness, and sections rotate less than the centre
line. Ps = 0 is the Euler-Bernoulli beam.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import polynomial

from parflex.bodies.elastic import ElasticBody, LineNodes, MeanStrain, Node
from parflex.spatial.batched import is_varied, smaller
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import rotation_about

if TYPE_CHECKING:
    from parflex.bodies.sections import Fibres

Array = np.ndarray
SLENDER = 0.1  # of the length: larger tip deflections rotate sections by more than small angles
LABELS = ("ux", "uy", "uz", "rx", "ry", "rz")
PLANAR = (0, 1, 5)
FIELDS = (slice(0, 1), slice(1, 4), slice(4, 7))  # r0, displacements and rotations of the tip: each of one unit
# factor (1, y, z) and axis of the points whose motion is one of x, y, z, rx, ry, rz of a section, with its sign
SECTION_MOTIONS = ((0, 0, 1.0), (0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0), (2, 0, 1.0), (1, 0, -1.0))
SIGNS = np.array([sign for *_, sign in SECTION_MOTIONS])
NOTHING = np.zeros(1)  # the zero polynomial
CLAMPED_FREE = 1.8751040687119611  # first root of cos x cosh x = -1: clamped at one end, free at the other


@dataclass(frozen=True)
class Section:
    """Area, second moments of area int z^2 (Iy) and int y^2 (Iz), torsion constant J and polar moment Ip.

    `ky` and `kz` are the shares of the area that resist shear along y and z; only beams with shear use them.
    """

    A: float
    Iy: float
    Iz: float
    J: float
    Ip: float
    ky: float
    kz: float


@dataclass(frozen=True)
class Material:
    """Young's modulus, shear modulus and density."""

    E: float
    G: float
    density: float


@dataclass(frozen=True, eq=False, repr=False)
class BeamElement(LineNodes):
    """One element of a beam, with its places and sections in the axes of its body.

    Places along x move with their share of the motion of the tip; only the mean strain includes the shortening by
    bending. The axes of a place are those of its section, which with shear rotates less than the centre line.
    """

    length: Any
    material: Material
    section: Section
    planar: bool = False
    rotary_inertia: bool = False  # of the section in bending; its torsional inertia is always included
    shear: bool = False
    roll: float = 0.0  # of the section about x; coordinates stay along the axes of the frame
    fibres: Fibres | None = None  # None: the section is given by numbers
    consistent: bool = True

    @property
    def coordinates(self) -> list[int]:
        """Components of the tip motion that are coordinates."""
        return list(PLANAR if self.planar else range(6))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(LABELS[k] for k in self.coordinates)

    @property
    def stations(self) -> int:
        """Places that resolve every wave of the shapes."""
        return 2

    @property
    def shear_ratios(self) -> tuple[Any, Any]:
        """Ps of bending along y and along z of the section; zero without shear."""
        if not self.shear:
            return 0.0, 0.0
        factor = 12 * self.material.E / (self.material.G * self.section.A * self.length**2)
        return factor * self.section.Iz / self.section.ky, factor * self.section.Iy / self.section.kz

    @property
    def section_axes(self) -> Array:
        """Rotation from the undeformed axes of the section to those of the element."""
        return rotation_about(0, self.roll)

    @property
    def tip_stiffness(self) -> Array:
        """Stiffness (6 x 6) of the tip with clamped root, in axes of the section."""
        E, G, L, section, Ps = self.material.E, self.material.G, self.length, self.section, self.shear_ratios
        kind = scalar_type(np.array([E, G, L, *Ps, section.A, section.Iy, section.Iz, section.J]))
        K: Array = np.zeros((6, 6), dtype=kind)
        K[0, 0], K[3, 3] = E * section.A / L, G * section.J / L
        for deflection, rotation, inertia, sign, ratio in (
            (1, 5, section.Iz, -1.0, Ps[0]),
            (2, 4, section.Iy, 1, Ps[1]),
        ):
            stiffness = E * inertia / (1 + ratio)
            K[deflection, deflection] = 12 * stiffness / L**3
            K[rotation, rotation] = (4 + ratio) * stiffness / L
            K[deflection, rotation] = K[rotation, deflection] = sign * 6 * stiffness / L**2
        return K

    @cached_property
    def _fields(self) -> dict[tuple[int, int, int], Array]:
        """Nonzero polynomials in xi of r0 (0) and of the shapes (1 to 6), by factor (1, y, z), function and axis."""
        (v, v_turn), (bend, bend_turn) = _bending(self.length, self.shear_ratios[0])
        (w, w_turn), (tilt, tilt_turn) = _bending(self.length, self.shear_ratios[1])
        one, xi = np.ones(1), np.array([0.0, 1.0])
        r0 = {(0, 0, 0): self.length * xi, (1, 0, 1): one, (2, 0, 2): one}
        along_y = {(0, 2, 1): v, (1, 2, 0): -v_turn, (0, 6, 1): bend, (1, 6, 0): -bend_turn}
        along_z = {(0, 3, 2): w, (2, 3, 0): -w_turn, (0, 5, 2): -tilt, (2, 5, 0): tilt_turn}  # ry lowers what lies on x
        return r0 | {(0, 1, 0): xi, (1, 4, 2): xi, (2, 4, 1): -xi} | along_y | along_z

    @cached_property
    def _integrals(self) -> tuple[Array, list[Array]]:
        """Integrals from 0 to xi of the functions and of their products by factor: coefficients of xi, xi^2, ..."""
        kind = scalar_type(np.array([self.length, *self.shear_ratios]))
        first: Array = np.zeros((7, 3, 4), dtype=kind)
        products: list[Array] = [np.zeros((7, 7, 3, 3, 7), dtype=kind) for _ in range(3)]
        for (part, a, i), f in self._fields.items():
            if part == 0:
                first[a, i, : len(f)] = f / np.arange(1, len(f) + 1)
            for (other, b, k), g in self._fields.items():
                if other == part:
                    terms = polynomial.polymul(f, g)
                    products[part][a, b, i, k, : len(terms)] = terms / np.arange(1, len(terms) + 1)
        return first, products

    def beyond(self, xi: Array) -> tuple[Array, Array, Array]:
        """Return mass, S and G of the part beyond each xi: n, n x fields x 3, n x fields x fields x 3 x 3."""
        m, S, G = self.points_beyond(xi)
        spins = self.spins(xi)
        G = G.astype(scalar_type(G, spins))
        for second_moments, spin in zip(G, spins, strict=True):
            add_spin(second_moments, spin)
        return m, S, G

    def points_beyond(self, xi: Array) -> tuple[Array, Array, Array]:
        """Return mass, S and G beyond each xi without the rotary inertia of sections about x."""
        section, rho, L, (first, products) = self.section, self.material.density, self.length, self._integrals
        weights = [rho * section.A, *([rho * section.Iz, rho * section.Iy] if self.rotary_inertia else [])]
        powers = 1 - xi[:, None] ** np.arange(1, 8)
        # plain sums, so that numbers which are equal on paper are equal
        S = weights[0] * L * (first * powers[:, None, None, :4]).sum(axis=-1)
        parts = [(part * powers[:, None, None, None, None]).sum(axis=-1) for part in products[: len(weights)]]
        G = L * sum(weight * part for weight, part in zip(weights, parts, strict=True))
        if self.roll:
            R = self.section_axes
            mix: Array = np.eye(7, dtype=scalar_type(R))
            mix[1:4, 1:4] = mix[4:, 4:] = R
            S, G = mix @ S @ R.T, np.einsum("ai,bj,nijkl,mk,ol->nabmo", mix, mix, G, R, R, optimize=True)
        fields = [0, *(k + 1 for k in self.coordinates)]
        return weights[0] * L * (1 - xi), S[:, fields], G[:, fields][:, :, fields]

    def spins(self, xi: Array) -> Array:
        """Return the rotary inertia about x beyond each xi that moving points do not contribute."""
        section = self.section
        j = section.Ip - (section.Iy + section.Iz if self.rotary_inertia else 0.0)  # what points do not carry
        # in the plane nothing twists, and left out it does not hide that r0 is the length times the axial shape
        negligible = self.planar or (not is_varied(j) and abs(j) <= 1e-12 * section.Ip)
        j = 0.0 if negligible else self.material.density * j * self.length
        spins: Array = np.zeros((len(xi), 7, 7), dtype=scalar_type(j))
        for (a, b), power in (((0, 0), 1), ((0, 4), 2), ((4, 0), 2), ((4, 4), 3)):
            spins[:, a, b] = j / power * (1 - xi**power)
        fields = [0, *(k + 1 for k in self.coordinates)]
        return spins[:, fields][:, :, fields]

    @property
    def shortening(self) -> Array:
        """H with 1/2 e^T H e = 1/2 int (v'^2 + w'^2) dx, the shortening of the chord by bending."""
        slopes = [(a, i, polynomial.polyder(f)) for (part, a, i), f in self._fields.items() if not part and a and i]
        H: Array = np.zeros((7, 7), dtype=scalar_type(*(f for *_, f in slopes)))
        for (a, i, f), (b, k, g) in product(slopes, slopes):
            if i == k:
                terms: Array = polynomial.polymul(f, g)
                H[a, b] = H[a, b] + np.sum(terms / np.arange(1, len(terms) + 1)) / self.length
        H = self._in_frame((H + H.T)[1:, 1:] / 2)
        return H[np.ix_(self.coordinates, self.coordinates)]

    def _in_frame(self, matrix: Array) -> Array:
        """Return a 6 x 6 matrix in axes of the element from axes of the section."""
        T = np.kron(np.eye(2), self.section_axes)
        return T @ matrix @ T.T if self.roll else matrix

    def motions(self, xi: Array) -> Array:
        """Return displacement and rotation of the sections at each xi per tip motion: n x 6 x 6."""
        rows = ([self._fields.get((part, a, axis), NOTHING) for a in range(1, 7)] for part, axis, _ in SECTION_MOTIONS)
        values = np.array([[polynomial.polyval(xi, f) for f in row] for row in rows])
        return self._in_frame(np.moveaxis(SIGNS[:, None, None] * values, 2, 0))

    def shapes(self, xi: Array) -> tuple[Array, Array, Array]:
        """Return undeformed places of the sections at each xi, and displacements and rotations per coordinate."""
        motions = self.motions(np.asarray(xi))[:, :, self.coordinates]
        return np.outer(xi * self.length, [1.0, 0.0, 0.0]), motions[:, :3], motions[:, 3:]

    def clamped_compliance(self, xi: float, at: float) -> Array:
        """Return the motion of the section at `at` per unit wrench at `xi`, with both ends clamped: 6 x 6.

        Exact in statics: the parts of the element on both sides of the load have the shapes of elements.
        """
        first, second = (replace(self, length=share * self.length, roll=0.0) for share in (xi, 1 - xi))
        mirrored = np.diag([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])  # the root of an element is its tip, seen from behind
        K = first.tip_stiffness + mirrored @ second.tip_stiffness @ mirrored
        C: Array = np.zeros((6, 6), dtype=K.dtype)
        for k in {0, 3} & set(self.coordinates):
            C[k, k] = 1 / K[k, k]
        for k, n in [pair for pair in ((1, 5), (2, 4)) if set(pair) <= set(self.coordinates)]:
            size = K[k, k] * K[n, n] - K[k, n] * K[k, n]
            C[k, k], C[n, n], C[k, n] = K[n, n] / size, K[k, k] / size, -K[k, n] / size
            C[n, k] = C[k, n]
        if at < xi:
            C = first.motions(np.array([at / xi]))[0] @ C
        elif at > xi:  # of a part whose tip is held
            share = (at - xi) / (1 - xi)
            shift, end = carried(np.array([share * second.length, second.length]))
            C = (shift - second.motions(np.array([share]))[0] @ end) @ C
        return self._in_frame(C)


def _bending(length: Any, Ps: Any) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return deflection and rotation of the section per deflection and per rotation of the tip."""
    bend = np.array([0.0, Ps, 3.0, -2.0]), np.array([0.0, 6.0, -6.0]) / length
    turn = length * np.array([0.0, -Ps / 2, Ps / 2 - 1.0, 1.0]), np.array([0.0, Ps - 2.0, 3.0])
    return (bend[0] / (1 + Ps), bend[1] / (1 + Ps)), (turn[0] / (1 + Ps), turn[1] / (1 + Ps))


def carried(x: Array) -> Array:
    """Return the motions of places at each x of a rigid beam per motion of its root: n x 6 x 6."""
    motions: Array = np.repeat(np.eye(6, dtype=scalar_type(x))[None], len(x), axis=0)
    motions[:, 1, 5], motions[:, 2, 4] = x, -x
    return motions


def units_of(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the units of coordinates with these labels: displacements begin with u, rotations with r."""
    return tuple("m" if label.startswith("u") else "rad" for label in labels)


def beam(element: BeamElement, linear: bool = False) -> ElasticBody:
    """Return the body of an element, with mean axial strain, or if `linear` with the strain of its chord."""
    _, S, G = (part[0] for part in element.beyond(np.zeros(1)))
    if element.roll:
        S, G = _rounded(S, (FIELDS,)), _rounded(G, (FIELDS, FIELDS))
    used, spin, K = element.coordinates, element.spins(np.zeros(1))[0], element._in_frame(element.tip_stiffness)
    K, row = K[np.ix_(used, used)], np.eye(6)[0, used]
    strain = MeanStrain(row, element.shortening, K[0, 0], acts=not linear)
    node = Node(np.array([element.length, 0.0, 0.0]), np.eye(3, 6)[:, used], np.eye(3, 6, 3)[:, used])
    m = element.material.density * element.section.A * element.length
    return ElasticBody(
        m, S, G, K, np.zeros_like(K), {"tip": node}, element.labels, units_of(element.labels), spin, by_tip=True,
        small=SLENDER * element.length, strains=(strain,), inner=element,
    )  # fmt: skip


def _rounded(values: Array, groups: tuple[tuple[slice, ...], ...]) -> Array:
    """Return the integrals with rounding set to zero."""
    if values.dtype == object:  # a zero may have slopes
        return values
    result = values.copy()
    for block in product(*groups):
        entries = result[block]
        entries[np.abs(entries) < 1e-14 * np.abs(entries).max()] = 0.0
    return result


def add_spin(G: Array, spin: Array, sign: float = 1.0) -> None:
    """Add the rotary inertia of sections about x to second moments, in place.

    The share of pairs of coordinates is no second moment and is stored separately.
    """
    G[0, 0] += sign * spin[0, 0] / 2 * np.diag([-1.0, 1.0, 1.0])
    for k in range(1, len(spin)):
        if not is_varied(spin[0, k]) and not spin[0, k]:
            continue
        turn = sign * spin[0, k] / 2 * np.array([[0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
        G[0, k] += turn
        G[k, 0] += turn.T


def first_bending_frequency(element: BeamElement, root: float = CLAMPED_FREE) -> Any:
    """Return the lowest bending frequency (rad/s) by the first root of its frequency equation."""
    section, mass = element.section, element.material.density * element.section.A
    weakest = section.Iz if element.planar else smaller(section.Iy, section.Iz)
    return root**2 * np.sqrt(element.material.E * weakest / (mass * element.length**4))
