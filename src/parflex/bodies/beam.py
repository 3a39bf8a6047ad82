"""Beam elements with cubic shape functions, and chains of elements.

The coordinates of an element are displacement and rotation of its tip; the beam lies along x from its root. Integrals
are exact: shape functions are polynomials in x / L and linear in y and z, so every invariant is a rational number times
powers of the length and moments of the section. Shear is optional (Timoshenko): the shapes are those of a beam loaded
at its tip, with the ratio Ps = 12 E I / (k G A L^2) of bending to shear stiffness, and sections rotate less than the
centre line. Ps = 0 is the Euler-Bernoulli beam.

In a chain, to first order, an element moves with its first end, plus its shapes times the motion of its second end
relative to the first. Its points move by combinations of the functions 1, r0 and the shapes, whose products are the
integrals of one element.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.polynomial import polynomial

from parflex.bodies.elastic import ElasticBody, LineNodes, Node
from parflex.bodies.geometric_stiffness import MeanStrain
from parflex.records import Record
from parflex.spatial.batched import is_varied, smaller
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import hat, rotation_about

Array = np.ndarray

SLENDER = 0.1  # deflections of a tip beyond this share of the length turn sections by more than small angles

LABELS = ("ux", "uy", "uz", "rx", "ry", "rz")

PLANAR = (0, 1, 5)

FIELDS = (slice(0, 1), slice(1, 4), slice(4, 7))  # r0, displacements and turns of the tip: each of one unit

ZERO = np.zeros(1)  # most parts of fields: products with it are left out

CLAMPED_FREE = 1.8751040687119611  # first root of cos x cosh x = -1

Y, Z, RY, RZ = 1, 2, 4, 5  # of (x, y, z, rx, ry, rz)


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


def beam(
    length: float,
    material: Material,
    section: Section,
    planar: bool = False,
    rotary_inertia: bool = False,
    shear: bool = False,
    linear: bool = False,
) -> ElasticBody:
    """One beam element. Without `rotary_inertia` of the section only its torsional inertia is kept.

    Its axial strain is the mean one, which bending shortens, or with `linear` that of its chord alone.
    """
    Ps = shear_ratios(length, material, section) if shear else (0.0, 0.0)
    fields = _fields(length, *Ps)
    weights = (
        material.density * section.A,
        material.density * section.Iz if rotary_inertia else 0.0,
        material.density * section.Iy if rotary_inertia else 0.0,
    )
    count = len(fields)
    G: Array = np.zeros((count, count, 3, 3), dtype=scalar_type(np.array([length, *weights, *Ps])))
    S = np.array([[weights[0] * length * _integral(field[0][i]) for i in range(3)] for field in fields])
    moments: dict[tuple[int, int, int, int], list[Any]] = {}
    for part, weight in enumerate(weights):
        present = [(a, i, p) for a, field in enumerate(fields) for i, p in enumerate(field[part]) if p is not ZERO]
        for a, i, p in present if weight else ():
            for b, j, q in present:
                moments.setdefault((a, b, i, j), []).append(weight * _integral(polynomial.polymul(p, q)))
    for (a, b, i, j), terms in moments.items():
        G[a, b, i, j] = length * sum(terms)
    included_polar = section.Iy + section.Iz if rotary_inertia else 0.0  # of the polar moment, by the integrals
    missing_polar = section.Ip - included_polar
    if not is_varied(missing_polar) and abs(missing_polar) <= 1e-12 * section.Ip:
        missing_polar = 0.0
    # in the plane nothing twists, and left out it does not hide that r0 is the length times the axial shape
    twist = 0.0 if planar else material.density * missing_polar * length
    G = G.astype(scalar_type(G, np.asarray(twist)))
    spin = _spin_of_twist(twist, G.dtype)
    add_spin(G, spin)
    K = _stiffness(length, material, section, Ps)
    nodes, small = {"tip": _tip(length)}, SLENDER * length
    strain = MeanStrain(np.eye(6)[0], _shortening(length, fields), K[0, 0], acts=not linear)
    body = ElasticBody(
        weights[0] * length, S, G, K, np.zeros_like(K), nodes, LABELS, spin, small=small, strains=(strain,),
        inner=CentreLine(length, Ps),
    )  # fmt: skip
    return _in_plane(body) if planar else body


def shear_ratios(L: float, material: Material, section: Section) -> tuple[float, float]:
    """Ps for bending in the x-y and in the x-z plane."""
    factor = 12 * material.E / (material.G * section.A * L**2)
    return factor * section.Iz / section.ky, factor * section.Iy / section.kz


def _bending(length: float, Ps: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Deflection and turn of the section per deflection of the tip, and per turn of the tip."""
    bend = np.array([0.0, Ps, 3.0, -2.0]), np.array([0.0, 6.0, -6.0]) / length
    turn = length * np.array([0.0, -Ps / 2, Ps / 2 - 1.0, 1.0]), np.array([0.0, Ps - 2.0, 3.0])
    return (bend[0] / (1 + Ps), bend[1] / (1 + Ps)), (turn[0] / (1 + Ps), turn[1] / (1 + Ps))


def _fields(length: float, Ps_y: float, Ps_z: float) -> list[tuple[list[Array], list[Array], list[Array]]]:
    """r0 and the shape functions, each as parts that go with 1, y and z; entries are polynomials in x / L."""
    zero, one, xi = ZERO, np.ones(1), np.array([0.0, 1.0])
    in_y, in_z = _bending(length, Ps_y), _bending(length, Ps_z)

    def along_y(v: Array, rz: Array) -> tuple[list[Array], list[Array], list[Array]]:
        return [zero, v, zero], [-rz, zero, zero], [zero, zero, zero]

    def along_z(w: Array, ry: Array) -> tuple[list[Array], list[Array], list[Array]]:
        return [zero, zero, w], [zero, zero, zero], [ry, zero, zero]

    (up, up_turn), (tilt, tilt_turn) = in_z  # a turn about y lowers what lies along x
    return [
        ([length * xi, zero, zero], [zero, one, zero], [zero, zero, one]),
        ([xi, zero, zero], [zero, zero, zero], [zero, zero, zero]),
        along_y(*in_y[0]),
        along_z(up, -up_turn),
        ([zero, zero, zero], [zero, zero, xi], [zero, -xi, zero]),
        along_z(-tilt, tilt_turn),
        along_y(*in_y[1]),
    ]


def _shortening(length: float, fields: list[tuple[list[Array], list[Array], list[Array]]]) -> Array:
    """H with 1/2 e^T H e = 1/2 int (v'^2 + w'^2) dx: what the slopes of the centre line take from its chord."""
    slopes = [[ZERO if along is ZERO else polynomial.polyder(along) for along in field[0][1:]] for field in fields[1:]]
    H = [
        [
            sum(
                _integral(polynomial.polymul(p, q))
                for p, q in zip(a, b, strict=True)
                if p is not ZERO and q is not ZERO
            )
            / length
            for b in slopes
        ]
        for a in slopes
    ]
    return (np.array(H) + np.array(H).T) / 2


@dataclass(frozen=True, eq=False, repr=False)
class CentreLine(LineNodes):
    """The sections of an element: places on its centre line, moved by the shapes that make its mass and stiffness.

    Along x a place goes by its share of the motion of the tip: that bending shortens the chord is in the mean strain
    alone. The axes of a place are those of its section, which with shear turns less than the line.
    """

    length: float
    Ps: tuple[float, float] = (0.0, 0.0)
    roll: float = 0.0
    used: tuple[int, ...] = (0, 1, 2, 3, 4, 5)  # of the motion of the tip, what are coordinates
    consistent: bool = True

    def at(self, xi: float) -> Node:
        """At x = xi L."""
        Phi_d, Phi_r = self.along(np.array([xi]))
        columns = list(self.used)
        return Node(np.array([xi * self.length, 0.0, 0.0]), Phi_d[0][:, columns], Phi_r[0][:, columns], self.consistent)

    def along(self, xi: Array) -> tuple[Array, Array]:
        """Displacement Phi_d and turn Phi_r of the sections at x = xi L per motion of the tip, each n x 3 x 6."""
        return _sections(self.length, self.Ps, self.roll, xi)


def centre_line(
    length: float, material: Material, section: Section, shear: bool, roll: float, xi: Array
) -> tuple[Array, Array]:
    """Displacement Phi_d and turn Phi_r of the sections at x = xi L per coordinate of the tip, each n x 3 x 6."""
    return _sections(length, shear_ratios(length, material, section) if shear else (0.0, 0.0), roll, xi)


def _sections(length: float, Ps: tuple[float, float], roll: float, xi: Array) -> tuple[Array, Array]:
    """The same for ratios of bending to shear."""
    fields = _fields(length, *Ps)[1:]
    displacements = np.array([[polynomial.polyval(xi, part) for part in field[0]] for field in fields])
    rotations = np.array([[polynomial.polyval(xi, p) for p in (y[2], z[0], -y[0])] for _, y, z in fields])
    R = rotation_about(0, roll)
    T = np.kron(np.eye(2), R)
    Phi_d, Phi_r = (np.einsum("ij,kjn,lk->nil", R, part, T) for part in (displacements, rotations))
    return Phi_d, Phi_r


def shape_coefficients(length: float, material: Material, section: Section, shear: bool) -> Array:
    """r0 and the shape functions as polynomials in x / L: parts that go with 1, y, z; fields; components; powers."""
    fields = _fields(length, *(shear_ratios(length, material, section) if shear else (0.0, 0.0)))
    kind = scalar_type(*(entry for field in fields for entries in field for entry in entries))
    result: Array = np.zeros((3, len(fields), 3, 4), dtype=kind)
    for a, field in enumerate(fields):
        for part, entries in enumerate(field):
            for i, entry in enumerate(entries):
                result[part, a, i, : len(entry)] = entry
    return result


def _integral(p: Array) -> Any:
    """Integral of a polynomial from 0 to 1."""
    return np.sum(p / np.arange(1, len(p) + 1))


def _spin_of_twist(j: Any, dtype: Any) -> Array:
    """Products of the turns of sections with inertia j in all: that of the root, and the twist in proportion to x."""
    spin = np.zeros((7, 7), dtype=dtype)
    spin[0, 0], spin[0, 4], spin[4, 0], spin[4, 4] = j, j / 2, j / 2, j / 3
    return spin


def add_spin(G: Array, spin: Array, sign: float = 1.0) -> None:
    """Put inertia of sections against spin about x alone into second moments that act about x only.

    What pairs of coordinates have of it is no second moment: it stays beside them.
    """
    G[0, 0] += sign * spin[0, 0] / 2 * np.diag([-1.0, 1.0, 1.0])
    for k in range(1, len(spin)):
        if not is_varied(spin[0, k]) and not spin[0, k]:
            continue
        turn = sign * spin[0, k] / 2 * np.array([[0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
        G[0, k] += turn
        G[k, 0] += turn.T


def first_bending_frequency(length: float, material: Material, section: Section, planar: bool) -> Any:
    """Lowest natural frequency, in rad/s, of the beam in bending, clamped at its root and free at its end."""
    weakest = section.Iz if planar else smaller(section.Iy, section.Iz)
    return CLAMPED_FREE**2 * np.sqrt(material.E * weakest / (material.density * section.A * length**4))


def without_torsion(body: ElasticBody) -> ElasticBody:
    """The moving points of a beam alone, without the inertia of sections against spin that its integrals contain."""
    if body.spin is None or not body.spin.any():
        return body
    G = body.G.copy()
    add_spin(G, body.spin, -1.0)
    return replace(body, G=G, spin=np.zeros_like(body.spin))


def tip_stiffness(length: float, material: Material, section: Section, shear: bool) -> Array:
    """Stiffness (6 x 6) of the tip of an element whose root is held, in axes of its section."""
    return _stiffness(length, material, section, shear_ratios(length, material, section) if shear else (0.0, 0.0))


def _stiffness(L: float, material: Material, section: Section, Ps: tuple[float, float]) -> Array:
    E, G = material.E, material.G
    K: Array = np.zeros(
        (6, 6), dtype=scalar_type(np.array([E, G, L, *Ps, section.A, section.Iy, section.Iz, section.J]))
    )
    K[0, 0], K[3, 3] = E * section.A / L, G * section.J / L
    for deflection, rotation, inertia, sign, ratio in ((1, 5, section.Iz, -1.0, Ps[0]), (2, 4, section.Iy, 1.0, Ps[1])):
        stiffness = E * inertia / (1 + ratio)
        K[deflection, deflection] = 12 * stiffness / L**3
        K[rotation, rotation] = (4 + ratio) * stiffness / L
        K[deflection, rotation] = K[rotation, deflection] = sign * 6 * stiffness / L**2
    return K


def _tip(length: float) -> Node:
    zero = np.zeros((3, 3))
    return Node(np.array([length, 0.0, 0.0]), np.hstack([np.eye(3), zero]), np.hstack([zero, np.eye(3)]))


def rotated_about_axis(body: ElasticBody, angle: float) -> ElasticBody:
    """The beam with its section turned about its axis; coordinates stay along the axes of the frame."""
    R = rotation_about(0, angle)
    T: Array = np.eye(body.size, dtype=scalar_type(R))  # modes of a reduced beam keep their numbers
    T[:3, :3] = T[3:6, 3:6] = R
    mix = np.eye(body.size + 1, dtype=T.dtype)
    mix[1:, 1:] = T
    S = mix @ body.S @ R.T
    G = np.einsum("ai,bj,ijkl,mk,nl->abmn", mix, mix, body.G, R, R, optimize=bool(body.held))
    groups = (*FIELDS, *(slice(k, k + 1) for k in range(7, body.size + 1)))
    S, G = _rounded(S, (groups,)), _rounded(G, (groups, groups))
    strains = tuple(replace(strain, row=T @ strain.row, H=T @ strain.H @ T.T) for strain in body.strains)
    inner = replace(body.inner, roll=angle) if isinstance(body.inner, CentreLine) else body.inner
    return replace(body, S=S, G=G, K=T @ body.K @ T.T, D=T @ body.D @ T.T, strains=strains, inner=inner)


def _rounded(values: Array, groups: tuple[tuple[slice, ...], ...]) -> Array:
    """The integrals without what turning their axes leaves as rounding where they are zero."""
    if values.dtype == object:  # a zero may have slopes
        return values
    result = values.copy()
    for block in product(*groups):
        entries = result[block]
        entries[np.abs(entries) < 1e-14 * np.abs(entries).max()] = 0.0
    return result


def _in_plane(body: ElasticBody) -> ElasticBody:
    """The beam with its motion in the x-y plane only."""
    coordinates = list(PLANAR)
    fields = [0, *(k + 1 for k in coordinates)]
    nodes = {
        name: replace(node, Phi_d=node.Phi_d[:, coordinates], Phi_r=node.Phi_r[:, coordinates])
        for name, node in body.nodes.items()
    }
    square = np.ix_(coordinates, coordinates)
    strains = tuple(replace(strain, row=strain.row[coordinates], H=strain.H[square]) for strain in body.strains)
    return replace(
        body,
        S=body.S[fields],
        G=body.G[np.ix_(fields, fields)],
        K=body.K[square],
        D=body.D[square],
        nodes=nodes,
        labels=tuple(LABELS[k] for k in coordinates),
        spin=None if body.spin is None else body.spin[np.ix_(fields, fields)],
        strains=strains,
        inner=replace(body.inner, used=PLANAR) if isinstance(body.inner, CentreLine) else body.inner,
    )


@dataclass(frozen=True, eq=False, repr=False)
class ElementChain(Record):
    """A number of alike elements, each fixed to the end of the one before."""

    element: ElasticBody
    count: int

    @property
    def step(self) -> float:
        """Length of an element."""
        return float(self.element.nodes["tip"].r0[0])

    @cached_property
    def components(self) -> Array:
        """6 x N: how the coordinates of an element are the motion of its end."""
        tip = self.element.nodes["tip"]
        return np.vstack([tip.Phi_d, tip.Phi_r])

    @cached_property
    def products(self) -> Array:
        """Integrals of the products of 1, r0 and the shapes of an element, each by its x, y, z."""
        points = without_torsion(self.element)
        count = 3 * (points.size + 1)
        gram = np.zeros((1 + count, 1 + count))
        gram[0, 0] = points.m
        gram[0, 1:] = gram[1:, 0] = points.S.ravel()
        gram[1:, 1:] = points.G.transpose(0, 2, 1, 3).reshape(count, count)
        return gram

    @property
    def spin(self) -> Array:
        """Products of the turns of sections that spin about x: with the first end, and by the coordinates."""
        spin = self.element.spin
        return np.zeros((self.element.size + 1, self.element.size + 1)) if spin is None else spin

    def bent(self, first: Array, second: Array) -> Array:
        """Coordinates of an element for motions (6 x m) of its two ends."""
        rigid_motion = np.concatenate([first[:3] - hat(np.array([self.step, 0.0, 0.0])) @ first[3:], first[3:]])
        return self.components.T @ (second - rigid_motion)

    def fields(self, first: Array, second: Array) -> Array:
        """The motion of the points of an element for motions of its two ends: m x 3 x functions."""
        e = self.bent(first, second)
        fields = np.zeros((e.shape[1], 3, len(self.products)))
        fields[:, :, 0] = first[:3].T
        fields[:, :, 1:4] = [hat(turn) for turn in first[3:].T]
        fields[:, :, 4:] = np.einsum("km,ij->mikj", e, np.eye(3)).reshape(len(fields), 3, -1)
        return fields

    def turns(self, first: Array, second: Array) -> Array:
        """How sections of an element turn about x for motions of its ends: with the first end, and by its shapes."""
        return np.vstack([first[3], self.bent(first, second)])

    def shortening(self, first: Array, second: Array) -> Array:
        """M x m: int (v'^2 + w'^2) dx of one element, its slopes measured from the line of the chain, theory (37)."""
        e = self.bent(first, second)
        tip_motion = self.components @ e
        H = e.T @ self.element.strains[0].H @ e
        for turn, along in ((first[RZ], tip_motion[Y]), (-first[RY], tip_motion[Z])):
            H = H + self.step * np.outer(turn, turn) + np.outer(turn, along) + np.outer(along, turn)
        return H

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Motions of the two ends of an element per unit of both: 6 x 2N each."""
        zeros = np.zeros_like(self.components)
        return np.hstack([self.components, zeros]), np.hstack([zeros, self.components])

    @cached_property
    def matrices(self) -> tuple[Array, Array]:
        """Mass and stiffness of an element over the motions of its two ends, 2N x 2N."""
        fields, rotations, e = self.fields(*self.ends), self.turns(*self.ends), self.bent(*self.ends)
        M = (
            np.einsum("aif,fg,big->ab", fields, self.products, fields, optimize=True)
            + rotations.T @ self.spin @ rotations
        )
        return (M + M.T) / 2, e.T @ self.element.K @ e

    def assembled(self, coordinates: list[int]) -> tuple[Array, Array]:
        """Mass and stiffness of all nodes, of each the coordinates `coordinates`, which no other ones couple with."""
        N, count = self.element.size, len(coordinates)
        indices = [*coordinates, *(N + k for k in coordinates)]
        size = (self.count + 1) * count
        M, K = np.zeros((2, size, size))
        for j in range(self.count):
            block = slice(j * count, (j + 2) * count)
            for total, part in zip((M, K), self.matrices, strict=True):
                total[block, block] += part[np.ix_(indices, indices)]
        return M, K

    def integrals(self, motions: Array) -> tuple[Array, Array, Array, Array, Array]:
        """S, G, spin, H and the coordinates' own inertia for nodal motions (nodes x 6 x N), sums over the elements."""
        count = motions.shape[2]
        S, G = np.zeros((count + 1, 3)), np.zeros((count + 1, count + 1, 3, 3))
        spin, (H, elastic_inertia) = np.zeros((count + 1, count + 1)), np.zeros((2, count, count))
        Mee = self.element.inertia_matrix(np.zeros(self.element.size))[6:, 6:]
        base_fields = np.zeros((1, 3, len(self.products)))
        base_fields[0, :, 1:4] = np.eye(3)
        for j in range(self.count):
            ends = motions[j], motions[j + 1]
            base_fields[0, 0, 0] = j * self.step
            fields = np.concatenate([base_fields, self.fields(*ends)])
            S += fields @ self.products[0]
            G += np.einsum("aif,fg,bjg->abij", fields, self.products, fields, optimize=True)
            rotations = np.hstack([np.eye(self.element.size + 1)[:, :1], self.turns(*ends)])
            spin += rotations.T @ self.spin @ rotations
            e = self.bent(*ends)
            H += self.shortening(*ends)
            elastic_inertia += e.T @ Mee @ e
        return S, G, spin, H, elastic_inertia
