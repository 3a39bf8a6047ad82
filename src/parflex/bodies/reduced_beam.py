"""Reduce a beam of many elements to the motion of its ends and a few fixed-interface modes (Craig-Bampton).

Theory (55) gives the reduction. The number of modes follows from the allowed error of frequencies over a band. With mu
the square of the first omitted frequency, the square lambda of any frequency of any robot with this body grows by at
most the share lambda/(mu - lambda), whatever its pose, theory (56).

To first order an element moves with its first end, plus its shapes times the motion of its second end relative to the
first. Its points move by combinations of the functions 1, r0 and the shapes, whose products are the integrals of one
element. The mass beyond a section is that of the elements behind it and of a part of the cut element.

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

from parflex.bodies.beam import LABELS, BeamElement, add_spin, beam, carried, first_bending_frequency, units_of
from parflex.bodies.elastic import Body, ElasticBody, LineNodes, Node, gram_matrix
from parflex.bodies.modal import drop_rounding, equal_groups
from parflex.checks import require
from parflex.records import Record
from parflex.spatial.rotations import hat, rotation_about

Array = np.ndarray
Moments = tuple[Array, Array]
FAMILIES = (("ux",), ("uy", "rz"), ("uz", "ry"), ("rx",))  # coupled coordinates of straight beams
Y, Z, RX, RY, RZ = 1, 2, 3, 4, 5  # of (x, y, z, rx, ry, rz)
CLAMPED = 4.730040744862704  # first root of cos x cosh x = 1: a beam clamped at both ends
SAMPLES = 4  # samples per element for the largest motion of a mode
ALIKE = 1e-12  # relative difference of matrices that are equal to rounding
SEEN = 1e-6  # of the largest nodal motion per unit of strain energy: smaller motions are zero
# of 1 / frequency squared: modes that are nearer share a plane of shapes, which files mix at will
SAME_FREQUENCY = 1e-3
SAME_PLACE = 1e-6  # of the extent of the nodes: tolerance of mirror images
COUPLED = 1e-6  # of the mass of a mode: smaller coupling is rounding


@dataclass(frozen=True, eq=False, repr=False)
class ElementChain(Record):
    """Identical elements, each fixed to the end of the previous element; motions of two ends are 2 x 6 x m."""

    element: BeamElement
    count: int

    @cached_property
    def body(self) -> ElasticBody:
        """Body of one element."""
        return beam(self.element)

    @cached_property
    def products(self) -> Array:
        """Integrals of the products of 1, r0 and the shapes of an element, each by x, y, z."""
        return gram_matrix(*(part[0] for part in self.element.points_beyond(np.zeros(1))))

    def bent(self, ends: Array) -> Array:
        """Return the coordinates of an element for motions of its ends."""
        relative = ends[1] - carried(np.array([self.element.length]))[0] @ ends[0]
        return relative[self.element.coordinates]

    def moments(self, number: int, ends: Array, gram: Array) -> Moments:
        """Return S and G of an element, or of a part with products `gram`, for motions of its ends."""
        e = self.bent(ends)
        fields = np.zeros((e.shape[1] + 1, 3, len(gram)))
        fields[0, :, 1:4], fields[0, 0, 0] = np.eye(3), number * self.element.length
        fields[1:, :, 0], fields[1:, :, 1:4] = ends[0][:3].T, [hat(turn) for turn in ends[0][3:].T]
        fields[1:, :, 4:] = np.einsum("km,ij->mikj", e, np.eye(3)).reshape(e.shape[1], 3, -1)
        return fields @ gram[0], np.einsum("aif,fg,bjg->abij", fields, gram, fields, optimize=True)

    def spins(self, ends: Array, spin: Array) -> Array:
        """Return the rotary inertia about x of an element, with the root and by the motions of its ends."""
        e = self.bent(ends)
        rotations = np.zeros((len(e) + 1, e.shape[1] + 1))
        rotations[0, 0], rotations[0, 1:], rotations[1:, 1:] = 1.0, ends[0][RX], e
        return rotations.T @ spin @ rotations

    def shortening(self, ends: Array) -> Array:
        """Return int (v'^2 + w'^2) dx of one element, M x M, with slopes from the line of the chain, theory (37)."""
        e = self.bent(ends)
        tip_motion = np.eye(6)[:, self.element.coordinates] @ e
        H = e.T @ self.element.shortening @ e
        for turn, along in ((ends[0][RZ], tip_motion[Y]), (-ends[0][RY], tip_motion[Z])):
            H = H + self.element.length * np.outer(turn, turn) + np.outer(turn, along) + np.outer(along, turn)
        return H

    def assembled(self, coordinates: list[int]) -> tuple[Array, Array]:
        """Return mass and stiffness of all nodes for the `coordinates` of each, which are uncoupled from the others."""
        unit = np.eye(6)[:, self.element.coordinates]
        ends = np.array([np.hstack([unit, 0 * unit]), np.hstack([0 * unit, unit])])
        e, spin = self.bent(ends), self.element.spins(np.zeros(1))[0]
        M_e = np.einsum("abii->ab", self.moments(0, ends, self.products)[1]) + self.spins(ends, spin)
        N, count = self.body.size, len(coordinates)
        square = np.ix_(*2 * [[*coordinates, *(N + k for k in coordinates)]])
        M, K = np.zeros((2, (self.count + 1) * count, (self.count + 1) * count))
        for j in range(self.count):
            block = slice(j * count, (j + 2) * count)
            M[block, block] += (M_e + M_e.T)[1:, 1:][square] / 2
            K[block, block] += (e.T @ self.body.K @ e)[square]
        return M, K

    def integrals(self, motions: Array) -> list[Array]:
        """Return S, G, spin, H and the coordinates' inertia for nodal motions (nodes x 6 x N), summed over elements."""
        terms, element_spin, mass = [], self.element.spins(np.zeros(1))[0], self.body.elastic_mass
        for j in range(self.count):
            ends = motions[j : j + 2]
            e, spin = self.bent(ends), self.spins(ends, element_spin)
            terms.append((*self.moments(j, ends, self.products), spin, self.shortening(ends), e.T @ mass @ e))
        return [np.sum(parts, axis=0) for parts in zip(*terms, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class ReducedLine(ElementChain, LineNodes):
    """A reduced beam with its places and sections, which move between nodes as those of an element."""

    node_motions: Array  # of all nodes per coordinate, (elements + 1) x 6 x N
    consistent: bool = True

    @property
    def length(self) -> float:
        """Length of the whole beam."""
        return self.element.length * self.count

    @property
    def stations(self) -> int:
        """Places that resolve every wave of the shapes."""
        return self.count + 1

    def shapes(self, xi: Array) -> tuple[Array, Array, Array]:
        """Return undeformed places of the sections at each xi, and displacements and rotations per coordinate."""
        xi, step = np.asarray(xi, dtype=float), self.element.length
        number = np.minimum((xi * self.count).astype(int), self.count - 1)
        share = xi * self.count - number
        first, second = self.node_motions[number], self.node_motions[number + 1]
        bent = self.element.motions(share) @ (second - carried(np.full(len(xi), step)) @ first)
        motions = carried(share * step) @ first + bent
        return np.outer(xi * self.length, [1.0, 0.0, 0.0]), motions[:, :3], motions[:, 3:]

    def rolled(self, angle: float) -> ReducedLine:
        """Return the beam with its section rotated; the coordinates of the tip stay along the axes of the frame."""
        rotation = np.kron(np.eye(2), rotation_about(0, angle))
        T = np.eye(self.node_motions.shape[2])
        T[:6, :6] = rotation
        element = replace(self.element, roll=angle)
        return replace(self, element=element, node_motions=rotation @ self.node_motions @ T.T)

    def beyond(self, xi: Array) -> tuple[Array, Array, Array]:
        """Return mass, S and G of the part beyond each xi: n, n x fields x 3, n x fields x fields x 3 x 3."""
        xi, count = np.asarray(xi, dtype=float), self.count
        number = np.minimum((xi * count).astype(int), count - 1)
        m = float(self.body.m) * count * (1 - xi)
        element_moments = [self._element(int(j), float(s * count - j)) for j, s in zip(number, xi, strict=True)]
        fields = self.node_motions.shape[2] + 1
        S = np.array([first + self._behind[0][j + 1] for (first, _), j in zip(element_moments, number, strict=True)])
        G = np.array([second + self._behind[1][j + 1] for (_, second), j in zip(element_moments, number, strict=True)])
        return m, S.reshape(-1, fields, 3), G.reshape(-1, fields, fields, 3, 3)

    def clamped_compliance(self, xi: float, at: float, stiffness: Array) -> Array:
        """Return the compliance at `at` for a unit wrench at `xi` (both ends clamped) that the modes omit."""
        exact = replace(self.element, length=self.length).clamped_compliance(xi, at)
        _, *motions = self.shapes(np.array([at, xi]))
        response, load = np.concatenate(motions, axis=1)[:, :, self.node_motions.shape[2] - len(stiffness) :]
        return exact - (response / stiffness) @ load.T

    @cached_property
    def _behind(self) -> Moments:
        """S and G of all elements from each element on, zero after the last."""
        element_moments = [self._element(j, 0.0) for j in range(self.count)]
        sums = []
        for parts in zip(*element_moments, strict=True):
            stacked = np.array([*parts, np.zeros_like(parts[0])])
            sums.append(np.cumsum(stacked[::-1], axis=0)[::-1])
        return sums[0], sums[1]

    def _element(self, number: int, xi: float) -> Moments:
        """Return S and G beyond xi in one element."""
        ends, place = self.node_motions[number : number + 2], np.array([xi])
        gram = gram_matrix(*(part[0] for part in self.element.points_beyond(place)))
        S, G = self.moments(number, ends, gram)
        add_spin(G, self.spins(ends, self.element.spins(place)[0]))
        return S, G


@dataclass(frozen=True, eq=False, repr=False)
class ReducedBeam(Record):
    """Requested and achieved reduction: retained modes, and the lowest omitted frequency (Hz)."""

    error: float  # Hz, that frequencies in the band may have
    band: float  # Hz
    elements: int
    kept: int
    left_out: float  # Hz; infinite where nothing is left out

    @property
    def bound(self) -> float:
        """Error bound at the edge of the band, Hz."""
        return frequency_bound(self.band, self.left_out)


def frequency_bound(frequency: float, left_out: float) -> float:
    """Return the largest error of a frequency if modes from `left_out` on are omitted, theory (56)."""
    return float(frequency / np.sqrt(1.0 - (frequency / left_out) ** 2) - frequency) if left_out < np.inf else 0.0


def clamped_frequency(element: BeamElement) -> float:
    """Return the lowest frequency (Hz) of an element with both ends clamped, the limit of its resolution."""
    material, section = element.material, element.section
    waves = [material.E / material.density]
    waves += [] if element.planar else [material.G * section.J / (material.density * section.Ip)]
    axial = np.pi / element.length * np.sqrt(min(waves))
    return float(min(first_bending_frequency(element, CLAMPED), axial) / (2 * np.pi))


@lru_cache(maxsize=64)  # legs are identical
def reduced_beam(
    whole: BeamElement,
    elements: int,
    error: float,
    band: float,
    linear: bool = False,
    damping: tuple[float, float] = (0.0, 0.0),
) -> ElasticBody:
    """Return the beam as one body: coordinates of its tip, then fixed-interface modes by rising frequency.

    `error` and `band` in Hz. `damping` has the factors of mass and stiffness, as the elements have it.
    """
    straight = replace(whole, roll=0.0)
    element = replace(straight, length=whole.length / elements)
    f_el = clamped_frequency(element)
    message = f"the band of {band:g} Hz reaches the frequencies of the elements themselves, which begin at"
    needed = int(np.ceil(elements * np.sqrt(band / f_el))) + 1
    hint = f"use {needed} elements or more, or a lower band"
    require(band < f_el, f"{message} {f_el:.4g} Hz", "band", hint, band)
    cut = band / float(np.sqrt(1.0 - (1.0 + error / band) ** -2))  # the bound at the edge of the band is the error
    modes, left_out = _modes_below_cut(ElementChain(element, elements), whole.labels, cut)
    ends = straight.motions(np.linspace(0, 1, elements + 1))[:, :, straight.coordinates]
    shapes = np.concatenate([ends, *(_scaled(mode, element, elements) for mode in modes)], 2)
    line = ReducedLine(element, elements, shapes)
    line = line.rolled(whole.roll) if whole.roll else line
    body = _body(beam(whole, linear), line, [mode.square for mode in modes], damping)
    labels = (*whole.labels, *(mode.label for mode in modes))
    report = ReducedBeam(error, band, elements, len(modes), left_out)
    return replace(body, labels=labels, units=units_of(labels), held=len(modes), reduced=report, inner=line)


@dataclass(frozen=True, eq=False, repr=False)
class _FixedInterfaceMode(Record):
    """A fixed-interface mode: its squared angular frequency and the motions of the nodes."""

    label: str
    square: float
    motion: Array  # (elements + 1) x 6


def _modes_below_cut(
    chain: ElementChain, labels: tuple[str, ...], cut: float
) -> tuple[list[_FixedInterfaceMode], float]:
    """Return the modes below `cut` Hz and the lowest other frequency."""
    modes: list[_FixedInterfaceMode] = []
    omitted = [np.inf]
    solved: list[tuple[Array, Array, Array, Array]] = []
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
            motion[:, 3:] *= 1.0 if family[0] == "rx" else 1.0 / chain.element.length
            modes.append(_FixedInterfaceMode(f"{family[0]}{number}", float(square), motion))
    return sorted(modes, key=lambda mode: mode.square), min(omitted)


def _held(chain: ElementChain, family: tuple[str, ...], labels: tuple[str, ...]) -> tuple[Array, Array]:
    """Return mass and stiffness of the inner nodes, rotations in element lengths, about y with opposite sign."""
    columns = [labels.index(label) for label in family]
    inner = slice(len(columns), chain.count * len(columns))
    scale = np.tile([1.0, (-1.0 if family[0] == "uz" else 1.0) / chain.element.length][: len(columns)], chain.count - 1)
    M, K = ((part[inner, inner].T * scale).T * scale for part in chain.assembled(columns))
    return M, K


def _solved(M: Array, K: Array, solved: list[tuple[Array, Array, Array, Array]]) -> tuple[Array, Array]:
    """Return rising squared frequencies and modes; reuse shapes already solved for another plane.

    Soft modes are computed to full precision as the largest values of M against K.
    """
    m, k = float(M[0, 0]), float(K[0, 0])
    M, K = M / m, K / k
    for other_M, other_K, values, vectors in solved:
        if M.shape == other_M.shape and max(np.abs(M - other_M).max(), np.abs(K - other_K).max()) < ALIKE:
            return values * k / m, vectors
    inverse, vectors = scipy.linalg.eigh(M, K)
    values, vectors = 1.0 / inverse[::-1], vectors[:, ::-1]
    solved.append((M, K, values, vectors))
    return values * k / m, vectors


def _scaled(mode: _FixedInterfaceMode, element: BeamElement, elements: int) -> Array:
    """Scale a mode to a largest motion of 1 (m, or rad of torsion), positive where the motion first comes near 1."""
    shape = mode.motion[:, :, None]
    _, *motions = ReducedLine(element, elements, shape).shapes(np.linspace(0, 1, SAMPLES * elements + 1))
    values = np.concatenate(motions, axis=1)[:, LABELS.index(mode.label[:2]), 0]
    largest = np.abs(values).max()
    first = values[np.flatnonzero(np.abs(values) > 0.5 * largest)[0]]
    return shape * (np.sign(first) / largest)


def _body(full_beam: ElasticBody, line: ReducedLine, squares: list[float], damping: tuple[float, float]) -> ElasticBody:
    """Integrate the elements for these shapes; the motion of the ends alone is that of one long element."""
    S, G, spin, H, local = line.integrals(line.node_motions)
    N, count = full_beam.size, line.node_motions.shape[2]
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
    """Return integrals without inertia coupling between different modes, also at rounding."""
    for a in range(first + 1, len(G)):
        for b in range(first + 1, a):
            k = int(np.argmax(np.abs(np.diag(G[a, b]))))
            if abs(np.trace(G[a, b])) < ALIKE * np.sqrt(np.trace(G[a, a]) * np.trace(G[b, b])):
                G[a, b, k, k] -= np.trace(G[a, b])
                G[b, a] = G[a, b].T
    return G


def mirror_symmetric_part(body: Body, n: Array) -> Array:
    """Return the part of elastic coordinates that is symmetric about the plane normal to `n`: N x N.

    Modes that move no node and are uncoupled count by half.
    """
    zeros, nodes = np.zeros(body.size), list(body.nodes.values())
    extent = max((float(np.linalg.norm(node.r0)) for node in nodes), default=0.0) or 1.0
    parts = [part for node in nodes for part in (node.Phi_d, extent * node.Phi_r)]
    node_motions = np.vstack([np.zeros((0, body.size)), *parts])
    K, M = body.material_stiffness(zeros), body.inertia_matrix(zeros)
    root = np.linalg.inv(np.linalg.cholesky(K)).T  # to coordinates with strain energy 1/2 each
    U, sizes, Wt = np.linalg.svd(node_motions @ root)
    rank = int((sizes > SEEN * sizes.max(initial=0.0)).sum())
    visible, inner = root @ Wt[:rank].T, root @ Wt[rank:].T
    centre = float(n @ body.deformed(zeros)[0] / body.m)
    symmetric = (U[:, :rank] / sizes[:rank]).T @ _mirrored(nodes, n, centre, extent) @ node_motions @ visible
    part = visible @ symmetric @ visible.T @ K
    if rank == body.size:
        return part
    rigid = np.zeros((6, 6))
    rigid[:3, :3], rigid[3:, 3:] = np.eye(3) - np.outer(n, n), np.outer(n, n)
    motions, in_plane = scipy.linalg.block_diag(np.eye(6), visible), scipy.linalg.block_diag(rigid, symmetric)
    return part + inner @ _symmetric_part_by_coupling(M, motions, in_plane, inner) @ inner.T @ K


def _mirrored(nodes: Sequence[Node], n: Array, centre: float, extent: float) -> Array:
    """Return the mean of nodal motions and their mirror images; a node without image is its own."""
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
    """Return the symmetric part of modes that move no node, by inertia coupling with other motions."""
    sizes = np.sqrt(np.diag(motions.T @ M @ motions))
    per_size = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    masses, V = np.linalg.eigh(inner.T @ M[6:, 6:] @ inner)
    rows = V.T @ inner.T @ M[6:] @ motions
    inside, outside = rows @ symmetric * per_size, (rows - rows @ symmetric) * per_size
    result = np.zeros((len(masses), len(masses)))
    for group in equal_groups(masses, SAME_FREQUENCY):
        A, B = inside[group] @ inside[group].T, outside[group] @ outside[group].T
        eigenvalues, X = np.linalg.eigh(A + B)
        coupled = eigenvalues > COUPLED**2 * masses[group][-1]
        projector = X[:, coupled] / eigenvalues[coupled] @ X[:, coupled].T
        result[group, group] = projector @ A + 0.5 * X[:, ~coupled] @ X[:, ~coupled].T
    return V @ result @ V.T
