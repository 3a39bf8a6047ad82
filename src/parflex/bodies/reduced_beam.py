"""Craig-Bampton reduction of a beam of many elements to the motion of its ends and a few fixed-interface modes.

Theory (55) gives the reduction. The number of modes follows from the allowed error of frequencies over a band. With mu
the square of the first omitted frequency, the square lambda of any frequency of any robot with this body grows by at
most the share lambda/(mu - lambda), whatever its pose, theory (56).

The mass beyond a section of a reduced beam is that of the elements behind the section and of a part of the cut element.
The points of an element move by functions of its own ends, so the integrals from a section to the tip are those of
elements, assembled as the body itself is.

The mirror-symmetric part of a deformation follows from the motions of the nodes. For modes that leave all nodes at rest
it follows from inertia: a mirror of a symmetric body keeps its mass, so a mode couples with motions of its own parity
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import scipy

from parflex.bodies.beam import (
    LABELS,
    CentreLine,
    ElementChain,
    Material,
    Section,
    add_spin,
    beam,
    centre_line,
    rotated_about_axis,
)
from parflex.bodies.elastic import Body, ElasticBody, LineNodes, Node
from parflex.bodies.modal import drop_rounding
from parflex.bodies.sections import ElementSections
from parflex.errors import InputError
from parflex.records import Record
from parflex.spatial.rotations import hat, rotation_about

Array = np.ndarray

FAMILIES = (("ux",), ("uy", "rz"), ("uz", "ry"), ("rx",))  # coordinates of straight beams that go with each other

CLAMPED = 4.730040744862704  # first root of cos x cosh x = 1: a beam clamped at both ends

SAMPLES = 4  # of an element, among which the largest motion of a mode is

ALIKE = 1e-12  # of their size: matrices that are the same but for rounding

Moments = tuple[Array, Array]

SEEN = 1e-6  # of the largest motion of nodes that a unit of strain energy can make: less is none

SAME_FREQUENCY = (
    1e-3  # of 1 / frequency squared: modes that are nearer share a plane of shapes, which files mix at will
)

SAME_PLACE = 1e-6  # of the extent of the nodes: two that mirror each other

COUPLED = 1e-6  # of the mass of a mode: what couples less is rounding


@dataclass(frozen=True, eq=False, repr=False)
class ReducedCentreLine(LineNodes):
    """Sections of a reduced beam: between its nodes, whose motions are known, they move as those of an element."""

    element: CentreLine  # of all six components of the motion of its tip
    shapes: Array  # motions of the nodes per coordinate, (elements + 1) x 6 x N
    consistent: bool = True

    @property
    def length(self) -> float:
        """Of the whole beam."""
        return self.element.length * (len(self.shapes) - 1)

    def at(self, xi: float) -> Node:
        """At x = xi L."""
        count = len(self.shapes) - 1
        number = min(int(xi * count), count - 1)
        section = self.element.at(xi * count - number)
        first, second = self.shapes[number : number + 2]
        e = second - _carried(first, np.array([self.element.length, 0.0, 0.0]))
        motion = _carried(first, section.r0) + np.concatenate([section.Phi_d, section.Phi_r]) @ e
        return Node(np.array([xi * self.length, 0.0, 0.0]), motion[:3], motion[3:], self.consistent)

    def rolled(self, angle: float) -> ReducedCentreLine:
        """With its section turned; the coordinates of the tip stay along the axes of the frame."""
        rotation = np.kron(np.eye(2), rotation_about(0, angle))
        T = np.eye(self.shapes.shape[2])
        T[:6, :6] = rotation
        return replace(self, element=replace(self.element, roll=angle), shapes=rotation @ self.shapes @ T.T)


def _carried(motion: Array, r: Array) -> Array:
    """Motions (6 x N) of a place at r from a section that moves so."""
    return np.concatenate([motion[:3] - hat(r) @ motion[3:], motion[3:]])


@dataclass(frozen=True, eq=False, repr=False)
class ReducedBeam(Record):
    """What was asked of a reduction and what it did: modes kept, and the lowest frequency of those left out, Hz."""

    error: float  # Hz, that frequencies in the band may have
    band: float  # Hz
    elements: int
    kept: int
    left_out: float  # Hz; infinite where nothing is left out

    @property
    def bound(self) -> float:
        """Bound of the error at the edge of the band, Hz."""
        return frequency_bound(self.band, self.left_out)


def frequency_bound(frequency: float, left_out: float) -> float:
    """By how much, at most, a frequency is too high where modes from `left_out` on are missing, theory (56)."""
    return float(frequency / np.sqrt(1.0 - (frequency / left_out) ** 2) - frequency) if left_out < np.inf else 0.0


def first_omitted_frequency(error: float, band: float) -> float:
    """Frequency from which on modes may be left out, so that the bound at the edge of the band is the error."""
    return band / float(np.sqrt(1.0 - (1.0 + error / band) ** -2))


def clamped_frequency(length: float, material: Material, section: Section, planar: bool) -> float:
    """Lowest frequency of an element with both its ends held, Hz: what is above, elements do not know."""
    weakest = section.Iz if planar else min(section.Iy, section.Iz)
    bending = CLAMPED**2 / length**2 * np.sqrt(material.E * weakest / (material.density * section.A))
    waves = [material.E / material.density]
    waves += [] if planar else [material.G * section.J / (material.density * section.Ip)]
    return float(min(bending, *(np.pi / length * np.sqrt(square) for square in waves)) / (2 * np.pi))


@lru_cache(maxsize=64)  # legs are alike
def reduced_beam(
    length: float,
    material: Material,
    section: Section,
    elements: int,
    error: float,
    band: float,
    *,
    planar: bool = False,
    rotary_inertia: bool = False,
    shear: bool = False,
    linear: bool = False,
    roll: float = 0.0,
    damping: tuple[float, float] = (0.0, 0.0),
) -> ElasticBody:
    """The beam as one body: coordinates of its tip, then modes with both ends held, by rising frequency.

    `error` and `band` in Hz. `damping` has the factors of mass and stiffness, as the elements have it.
    """
    f_el = clamped_frequency(length / elements, material, section, planar)
    if band >= f_el:
        needed = int(np.ceil(elements * np.sqrt(band / f_el))) + 1
        raise InputError(
            f"the band of {band:g} Hz reaches the frequencies of the elements themselves, which begin at {f_el:.4g} Hz",
            key="band",
            value=band,
            hint=f"use {needed} elements or more, or a lower band",
        )
    full_beam = beam(length, material, section, planar, rotary_inertia, shear, linear)
    chain = ElementChain(beam(length / elements, material, section, planar, rotary_inertia, shear, linear), elements)
    modes, left_out = _modes_below_cut(chain, full_beam.labels, first_omitted_frequency(error, band))
    ends = np.concatenate(centre_line(length, material, section, shear, 0.0, np.linspace(0, 1, elements + 1)), axis=1)
    used = [LABELS.index(label) for label in full_beam.labels]
    line = chain.element.inner
    assert isinstance(line, CentreLine)
    line = replace(line, used=tuple(range(6)))
    shapes = np.concatenate([ends[:, :, used], *(_scaled(mode, line, elements) for mode in modes)], 2)
    body = _body(full_beam, chain, shapes, [mode.square for mode in modes], damping)
    labels = (*full_beam.labels, *(mode.label for mode in modes))
    inside = ReducedCentreLine(line, shapes)
    report = ReducedBeam(error, band, elements, len(modes), left_out)
    body = replace(body, labels=labels, held=len(modes), reduced=report, inner=inside)
    if not roll:
        return body
    body = rotated_about_axis(body, roll)
    return replace(body, G=_orthogonal(body.G, 6), inner=inside.rolled(roll))


@dataclass(frozen=True, eq=False, repr=False)
class _FixedInterfaceMode(Record):
    """A mode with both ends of the beam held: its square of frequency and the motion of the nodes."""

    label: str
    square: float
    motion: Array  # (elements + 1) x 6


def _modes_below_cut(
    chain: ElementChain, labels: tuple[str, ...], cut: float
) -> tuple[list[_FixedInterfaceMode], float]:
    """Modes below `cut` Hz, and the lowest frequency of the others."""
    modes: list[_FixedInterfaceMode] = []
    omitted = [np.inf]
    solved: list[tuple[Array, Array, float, float, Array, Array]] = []
    for family in FAMILIES:
        if family[0] not in labels or chain.count == 1:
            continue
        M, K = _held(chain, family, labels)
        values, vectors = _solved(M, K, solved)
        hertz = np.sqrt(values) / (2 * np.pi)
        below = hertz < cut
        omitted += [float(hertz[~below].min(initial=np.inf))]
        for number, (square, vector) in enumerate(zip(values[below], vectors.T[below], strict=True), 1):
            motion = np.zeros((chain.count + 1, 6))
            motion[1:-1, [LABELS.index(label) for label in family]] = vector.reshape(chain.count - 1, len(family))
            if family[0] == "uz":
                motion[:, 4] *= -1.0
            motion[:, 3:] *= 1.0 if family[0] == "rx" else 1.0 / chain.step
            modes.append(_FixedInterfaceMode(f"{family[0]}{number}", float(square), motion))
    return sorted(modes, key=lambda mode: mode.square), min(omitted)


def _held(chain: ElementChain, family: tuple[str, ...], labels: tuple[str, ...]) -> tuple[Array, Array]:
    """Mass and stiffness of the inner nodes, turns in lengths of an element, those about y the other way round."""
    columns = [labels.index(label) for label in family]
    inner = slice(len(columns), chain.count * len(columns))
    scale = np.tile([1.0, (-1.0 if family[0] == "uz" else 1.0) / chain.step][: len(columns)], chain.count - 1)
    M, K = ((part[inner, inner].T * scale).T * scale for part in chain.assembled(columns))
    return M, K


def _solved(M: Array, K: Array, solved: list) -> tuple[Array, Array]:
    """Squares of frequencies, rising, and modes; shapes that were found for another plane are taken from there.

    What is soft is found with all its digits as the largest values of M against K.
    """
    m, k = float(M[0, 0]), float(K[0, 0])
    for reference_M, reference_K, reference_m, reference_k, values, vectors in solved:
        identical = M.shape == reference_M.shape and all(
            np.abs(matrix / size - reference / reference_size).max() < ALIKE
            for matrix, size, reference, reference_size in (
                (M, m, reference_M, reference_m),
                (K, k, reference_K, reference_k),
            )
        )
        if identical:
            return values * (k / reference_k) * (reference_m / m), vectors
    inverse, vectors = scipy.linalg.eigh(M, K)
    values, vectors = 1.0 / inverse[::-1], vectors[:, ::-1]
    solved.append((M, K, m, k, values, vectors))
    return values, vectors


def _scaled(mode: _FixedInterfaceMode, line: CentreLine, elements: int) -> Array:
    """The mode with 1 (m, or rad of a twist) for its largest motion, positive where it first comes near that."""
    shape = mode.motion[:, :, None]
    inside = ReducedCentreLine(line, shape)
    places = [inside.at(xi) for xi in np.linspace(0, 1, SAMPLES * elements + 1)]
    axis = LABELS.index(mode.label[:2])
    values = np.array([np.concatenate([place.Phi_d, place.Phi_r])[axis, 0] for place in places])
    largest = np.abs(values).max()
    first = values[np.flatnonzero(np.abs(values) > 0.5 * largest)[0]]
    return shape * (np.sign(first) / largest)


def _body(
    full_beam: ElasticBody, chain: ElementChain, shapes: Array, squares: list[float], damping: tuple[float, float]
) -> ElasticBody:
    """Integrals of the elements for these shapes; what the ends do alone is that of one long element."""
    S, G, spin, H, local = chain.integrals(shapes)
    N, count = full_beam.size, shapes.shape[2]
    S, G = drop_rounding(S, G, float(full_beam.m))
    G = _orthogonal(G, N)
    spin = np.where(np.abs(spin) > ALIKE * np.abs(spin).max(initial=0.0), spin, 0.0)
    H = np.where(np.abs(H) > ALIKE * np.sqrt(np.outer(np.diag(H), np.diag(H))), (H + H.T) / 2, 0.0)
    add_spin(G, spin)
    S[: N + 1], G[: N + 1, : N + 1], H[:N, :N] = full_beam.S, full_beam.G, full_beam.strains[0].H
    assert full_beam.spin is not None
    spin[: N + 1, : N + 1] = full_beam.spin
    K = np.zeros((count, count))
    K[:N, :N] = full_beam.K
    masses = np.einsum("aaii->a", G)[N + 1 :] + np.diag(spin)[N + 1 :]
    K[range(N, count), range(N, count)] = np.array(squares) * masses
    padding = np.zeros((3, count - N))
    tip = full_beam.nodes["tip"]
    node = Node(tip.r0, np.hstack([tip.Phi_d, padding]), np.hstack([tip.Phi_r, padding]))
    mass, stiffness = damping
    strain = full_beam.strains[0]
    strain = replace(strain, row=np.concatenate([strain.row, padding[0]]), H=H, c=stiffness * strain.k)
    D = mass * (local + local.T) / 2 + stiffness * K
    return replace(full_beam, S=S, G=G, K=K, D=D, nodes={"tip": node}, spin=spin, strains=(strain,))


def _orthogonal(G: Array, first: int) -> Array:
    """Integrals in which two different modes have no inertia in common, not even by rounding."""
    for a in range(first + 1, len(G)):
        for b in range(first + 1, a):
            k = int(np.argmax(np.abs(np.diag(G[a, b]))))
            if abs(np.trace(G[a, b])) < ALIKE * np.sqrt(np.trace(G[a, a]) * np.trace(G[b, b])):
                G[a, b, k, k] -= np.trace(G[a, b])
                G[b, a] = G[a, b].T
    return G


@dataclass(frozen=True, eq=False, repr=False)
class ReducedSections(Record):
    """A reduced beam, cut at any of its sections; coordinates and axes are those of its body."""

    element: ElementSections  # one of its elements
    line: ReducedCentreLine

    @property
    def stations(self) -> int:
        """Places that show every wave of its shapes."""
        return len(self.line.shapes)

    @cached_property
    def _chain(self) -> ElementChain:
        element = self.element
        body = beam(
            element.length, element.material, element.section, element.planar, element.rotary_inertia, element.shear
        )
        return ElementChain(rotated_about_axis(body, element.roll) if element.roll else body, len(self.line.shapes) - 1)

    def shapes(self, xi: Array) -> tuple[Array, Array, Array]:
        """Of the sections at each xi: place at rest, and what coordinates displace and turn them by."""
        nodes = [self.line.at(float(s)) for s in np.asarray(xi)]
        if not nodes:
            count = self.line.shapes.shape[2]
            return np.zeros((0, 3)), np.zeros((0, 3, count)), np.zeros((0, 3, count))
        r0, Phi_d, Phi_r = (np.array([getattr(node, key) for node in nodes]) for key in ("r0", "Phi_d", "Phi_r"))
        return r0, Phi_d, Phi_r

    def beyond(self, xi: Array) -> tuple[Array, Array, Array]:
        """Mass, S and G of what lies beyond each xi: n, n x fields x 3, n x fields x fields x 3 x 3."""
        xi, count = np.asarray(xi, dtype=float), self._chain.count
        number = np.minimum((xi * count).astype(int), count - 1)
        m = self._mass * (1 - xi)
        element_moments = [self._element(int(j), float(s * count - j)) for j, s in zip(number, xi, strict=True)]
        fields = self.line.shapes.shape[2] + 1
        S = np.array([first + self._behind[0][j + 1] for (first, _), j in zip(element_moments, number, strict=True)])
        G = np.array([second + self._behind[1][j + 1] for (_, second), j in zip(element_moments, number, strict=True)])
        return m, S.reshape(-1, fields, 3), G.reshape(-1, fields, fields, 3, 3)

    def clamped_compliance(self, xi: float, at: float, stiffness: Array) -> Array:
        """Motion of the section at `at` by a unit wrench at `xi`, both ends held, that modes of such stiffness lack."""
        exact = replace(self.element, length=self.line.length).clamped_compliance(xi, at)
        first = self.line.shapes.shape[2] - len(stiffness)
        response_shapes, load_shapes = (
            np.concatenate([node.Phi_d, node.Phi_r])[:, first:] for node in map(self.line.at, (at, xi))
        )
        return exact - (response_shapes / stiffness) @ load_shapes.T

    @property
    def _mass(self) -> float:
        return float(self._chain.element.m) * self._chain.count

    @cached_property
    def _behind(self) -> Moments:
        """S and G of all elements from each one on; behind the last there is nothing."""
        element_moments = [self._element(j, 0.0) for j in range(self._chain.count)]
        sums = []
        for parts in zip(*element_moments, strict=True):
            stacked = np.array([*parts, np.zeros_like(parts[0])])
            sums.append(np.cumsum(stacked[::-1], axis=0)[::-1])
        return sums[0], sums[1]

    def _element(self, number: int, xi: float) -> Moments:
        """S and G of what lies beyond xi in one element."""
        chain, ends = self._chain, self.line.shapes[number : number + 2]
        m, S, G = (part[0] for part in self._points.beyond(np.array([xi])))
        size = len(chain.products)
        gram = np.zeros((size, size))
        gram[0, 0], gram[0, 1:], gram[1:, 0] = m, S.ravel(), S.ravel()
        gram[1:, 1:] = G.transpose(0, 2, 1, 3).reshape(size - 1, size - 1)
        base_fields = np.zeros((1, 3, size))
        base_fields[0, :, 1:4], base_fields[0, 0, 0] = np.eye(3), number * chain.step
        fields = np.concatenate([base_fields, chain.fields(ends[0], ends[1])])
        S, G = fields @ gram[0], np.einsum("aif,fg,bjg->abij", fields, gram, fields, optimize=True)
        add_spin(G, self._spin(ends, xi))
        return S, G

    @cached_property
    def _points(self) -> ElementSections:
        """The element without the inertia of sections that spin about x and are no moving points."""
        section = self.element.section
        Ip = section.Iy + section.Iz if self.element.rotary_inertia else 0.0
        return replace(self.element, section=replace(section, Ip=Ip))

    def _spin(self, ends: Array, xi: float) -> Array:
        """Products of the turn of the root with those of coordinates, of the sections beyond xi."""
        chain, count = self._chain, self.line.shapes.shape[2]
        spin = np.zeros((count + 1, count + 1))
        j = chain.spin[0, 0]
        if j:
            first, twist = ends[0][3], (chain.components @ chain.bent(ends[0], ends[1]))[3]
            spin[0, 0] = j * (1 - xi)
            spin[0, 1:] = j * ((1 - xi) * first + (1 - xi**2) / 2 * twist)
        return spin


def mirror_symmetric_part(body: Body, n: Array) -> Array:
    """N x N: of elastic coordinates the part that moves the body in the plane across `n`, and turns it about `n`.

    Where a mode is neither seen by nodes nor coupled to anything, half of it is.
    """
    zeros, nodes = np.zeros(body.size), list(body.nodes.values())
    extent = max((float(np.linalg.norm(node.r0)) for node in nodes), default=0.0) or 1.0
    node_motions = np.vstack(
        [np.zeros((0, body.size)), *(part for node in nodes for part in (node.Phi_d, extent * node.Phi_r))]
    )
    K, M = body.material_stiffness(zeros), body.inertia_matrix(zeros)
    root = np.linalg.inv(np.linalg.cholesky(K)).T  # to coordinates with strain energy 1/2 each
    U, sizes, Wt = np.linalg.svd(node_motions @ root)
    rank = int((sizes > SEEN * sizes.max(initial=0.0)).sum())
    visible, inner = root @ Wt[:rank].T, root @ Wt[rank:].T
    symmetric = (U[:, :rank] / sizes[:rank]).T @ _mirrored(nodes, n, _centre(body, n), extent) @ node_motions @ visible
    part = visible @ symmetric @ visible.T @ K
    if rank == body.size:
        return part
    rigid = np.zeros((6, 6))
    rigid[:3, :3], rigid[3:, 3:] = np.eye(3) - np.outer(n, n), np.outer(n, n)
    motions = scipy.linalg.block_diag(np.eye(6), visible)
    return (
        part
        + inner
        @ _symmetric_part_by_coupling(M, motions, scipy.linalg.block_diag(rigid, symmetric), inner)
        @ inner.T
        @ K
    )


def _centre(body: Body, n: Array) -> float:
    """How far along `n` the centre of mass is."""
    return float(n @ body.deformed(np.zeros(body.size))[0] / body.m)


def _mirrored(nodes: Sequence[Node], n: Array, centre: float, extent: float) -> Array:
    """The mean of the motions of nodes and those that the mirror shows; a node without an image is its own."""
    positions = np.array([node.r0 for node in nodes]).reshape(-1, 3)
    images = positions - 2 * np.outer(positions @ n - centre, n)
    distances = np.linalg.norm(images[:, None] - positions[None], axis=2)
    flip = np.eye(3) - 2 * np.outer(n, n)
    result = np.eye(6 * len(nodes)) / 2
    for k in range(len(nodes)):
        nearest = int(distances[k].argmin())
        image = nearest if distances[k, nearest] < SAME_PLACE * extent else k
        result[6 * k : 6 * k + 6, 6 * image : 6 * image + 6] += scipy.linalg.block_diag(flip, -flip) / 2
    return result


def _symmetric_part_by_coupling(M: Array, motions: Array, symmetric: Array, inner: Array) -> Array:
    """Return the same for modes that move no node; `symmetric` is the part in the plane of motions that may couple."""
    sizes = np.sqrt(np.diag(motions.T @ M @ motions))
    per_size = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    masses, V = np.linalg.eigh(inner.T @ M[6:, 6:] @ inner)
    rows = V.T @ inner.T @ M[6:] @ motions
    inside, outside = rows @ symmetric * per_size, (rows - rows @ symmetric) * per_size
    result, first = np.zeros((len(masses), len(masses))), 0
    while first < len(masses):
        last = first + 1
        while last < len(masses) and masses[last] - masses[first] <= SAME_FREQUENCY * masses[last]:
            last += 1
        group = slice(first, last)
        A, B = inside[group] @ inside[group].T, outside[group] @ outside[group].T
        eigenvalues, X = np.linalg.eigh(A + B)
        coupled = eigenvalues > COUPLED**2 * masses[last - 1]
        projector = X[:, coupled] / eigenvalues[coupled] @ X[:, coupled].T
        result[group, group] = projector @ A + 0.5 * X[:, ~coupled] @ X[:, ~coupled].T
        first = last
    return V @ result @ V.T
