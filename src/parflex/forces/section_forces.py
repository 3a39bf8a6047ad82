"""Compute section forces and stresses in beams.

Section forces follow from the equilibrium of the part beyond the section, theory (52), (53). Bodies, loads and joints
at the root of a beam are then in no section, and a load at the tip is in all. The part before the section gives the
same forces, to rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from parflex.bodies.beam import BeamElement
from parflex.bodies.elastic import Body
from parflex.bodies.reduced_beam import ReducedLine
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError, did_you_mean
from parflex.records import Record, brief
from parflex.recursion.dynamics import NewtonEuler
from parflex.recursion.energy import line_wrench, wrench_on_link
from parflex.recursion.kinematics import Motion, Pose, motion
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.dual import without_slopes
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import cross, exponential
from parflex.tree.force_elements import PointElement
from parflex.tree.tree import Place, Tree, beam_elements

Array = np.ndarray

SHOWN = 11  # places along a beam in a table
NUMBERS = 4e6  # numbers stored at a time: rows are evaluated in parts
SECTION_TOLERANCE = 1e-12  # of an element length: distance within which a section is at a load
STATIONS = 9  # sections of a one-element beam; parabolas estimate the maximum between sections
FEWEST = 3  # sections of an element at least
NEAR = 0.9  # of the largest stress so far: pieces with lower parabolas contain no larger stress
CANDIDATE_ROWS = 20  # rows of a piece with the largest parabolas, evaluated at FINE sections
FINE = 65  # sections of candidate rows
ROUNDING = 1e-14  # of a stress
ZOOMS, ZOOM = 12, 17  # refinements around the largest section, and sections of each: the maximum to rounding
FORCES = ("N", "Vy", "Vz", "T", "My", "Mz")
IN_PLANE = (0, 1, 5)  # components that a planar model determines
STRESS = "stress"
ALIKE = 1e-12  # relative difference of element lengths that is rounding


@dataclass(frozen=True, eq=False, repr=False)
class BeamLoads(Record):
    """Forces, moments and stress in the sections of a beam in one state, or in many rows."""

    chain: BeamChain  # the beam and its elements
    elements: dict[int, ElementRows]  # how each element moves and what acts on it, by the number of its link
    planar: bool  # whether the robot is planar: then only N, Vy and Mz are known

    def at(self, s: float) -> dict[str, float]:
        """Return N, Vy, Vz (N), T, My, Mz (N m) and stress (Pa) at the share `s`; planar N, Vy, Mz, stress."""
        return {word: values[0] for word, values in self.table([s]).items() if word != "s"}

    def table(self, s: Sequence[float] | None = None) -> dict[str, Any]:
        """Return lists of section quantities at places `s`; None: at eleven places from root to tip."""
        places = np.linspace(0, 1, SHOWN).tolist() if s is None else list(s)
        for where in places:
            read_beam_position(str(where), self.chain.name, "s", str(where))
        forces = self.forces(places)
        words = [FORCES[k] for k in self._known] + [STRESS] * (self.chain.parts.fibres is not None)
        return {"s": places} | {word: self.quantity(word, forces)[0].tolist() for word in words}

    def forces(self, s: Sequence[float]) -> Array:
        """Return N, Vy, Vz, T, My, Mz at shares of the length in all rows: rows x n x 6."""
        located = [self.chain.located(where) for where in s]
        result = np.empty((len(next(iter(self.elements.values())).a), len(located), 6))
        for number, link in enumerate(self.chain.links):
            indices = [k for k, (element, _) in enumerate(located) if element == number]
            if indices:
                xi = [located[k][1] for k in indices]
                result[:, indices] = sections_of_element(self.chain.each[number], self.elements[link], xi)
        return result

    def quantity(self, word: str, forces: Array) -> Array:
        """Return a force, a moment or the stress from section forces along the last axis."""
        if word == STRESS:
            return stresses(self.chain.parts, forces, self.planar)
        return forces[..., FORCES.index(word)]

    def at_ends(self, tree: Tree) -> list[dict[str, Any]]:
        """Return section forces at both ends of each element of the file, with the names of the nodes."""
        entries, links = [], (*self.chain.links, self.chain.tip)
        nodes = [number for number, j in enumerate(links) if j not in self.chain.added]
        for first, after in pairwise(nodes):
            names = [tree.links[links[node]].name for node in (first, after)]
            root, tip = self._section(first, 0.0), self._section(after - 1, 1.0)
            entries.append({"element": names[0], "nodes": names, "root": root, "tip": tip})
        return entries

    def _section(self, number: int, xi: float) -> dict[str, float]:
        forces = sections_of_element(self.chain.each[number], self.elements[self.chain.links[number]], [xi])[0, 0]
        return {FORCES[n]: float(forces[n]) for n in self._known}

    @property
    def _known(self) -> tuple[int, ...]:
        """Which of the six components are determined; a planar model has in-plane components only."""
        return IN_PLANE if self.planar else tuple(range(6))

    def _told(self) -> str:
        most = {word: max(values, key=abs) for word, values in self.table().items() if word != "s"}
        return f"'{self.chain.name}': largest {', '.join(f'{word} {brief(value)}' for word, value in most.items())}"


def loads_of_beams(
    here: Configuration, qd: Array, qdd: Array, recursion: NewtonEuler, wrenches: Mapping[str, Array]
) -> dict[str, BeamLoads]:
    """Return the loads of all beams in a state, whose wrenches in joints follow from those on frames."""
    tree = here.robot.tree
    chains = beam_chains(here.robot)
    if not chains:
        return {}
    moving = motion(tree, here.at, qd, qdd, -tree.gravity)
    signals = element_signals_of(tree, here.at, moving, recursion, chains.values(), wrenches)
    state = (here.q[None], tree.position_rates(here.q, qd)[None], qdd[None])
    return beam_loads(tree, chains, *state, {j: values[None] for j, values in signals.items()}, list(wrenches))


def beam_loads(
    tree: Tree, chains: Mapping[str, BeamChain], q: Array, change: Array, qdd: Array, signals: Mapping[int, Array],
    frames: Sequence[str],
) -> dict[str, BeamLoads]:  # fmt: skip
    """Return loads of beams in rows of positions, their derivatives, accelerations and element signals."""
    return {
        name: BeamLoads(
            chain, {j: element_rows(tree, j, q, change, qdd, signals[j], frames) for j in chain.links}, tree.planar
        )
        for name, chain in chains.items()
    }


@dataclass(frozen=True, eq=False, repr=False)
class ElementRows(Record):
    """Motion of a beam element in many rows, in the axes of its root, and the wrenches on it at its origin."""

    a: Array  # rows x 3, less gravity
    w: Array
    al: Array
    e: Array  # rows x N
    ed: Array
    edd: Array
    tip: Array  # rows x 6: what its tip puts on whatever comes behind
    loads: list[tuple[float, Array]] = field(default_factory=list)  # xi, and what acts there on the element

    def part(self, selection: Any) -> ElementRows:
        """Return selected rows."""
        arrays = (self.a, self.w, self.al, self.e, self.ed, self.edd, self.tip)
        a, w, al, e, ed, edd, tip = (rows[selection] for rows in arrays)
        return ElementRows(a, w, al, e, ed, edd, tip, [(xi, load[selection]) for xi, load in self.loads])


class InnerLoad(NamedTuple):
    """A wrench on a frame, or `sign` times the force of an element between points, at a `part` of an element."""

    part: float
    place: Place
    frame: str | None = None
    element: PointElement | None = None
    sign: float = 1.0


def inner_loads(tree: Tree, j: int, frames: Sequence[str]) -> list[InnerLoad]:
    """Return possible loads between the ends of a beam element, with wrenches on these frames."""
    length = float(without_slopes(tree.links[j].body.nodes["tip"].r0)[0])  # where loads act is no matter of slopes
    acting: list[Any] = [(tree.places[frame], frame, None, 1.0) for frame in frames]
    for element in (element for element in tree.elements if element.acts):
        acting += [(element.first, None, element, 1.0), (element.second, None, element, -1.0)]
    return [
        InnerLoad(float(without_slopes(place.inner.node.r0)[0]) / length, place, frame, element, sign)
        for place, frame, element, sign in acting
        if place.link == j and place.inner is not None
    ]


def element_signals_of(
    tree: Tree, at: Pose, moving: Motion, recursion: NewtonEuler, chains: Iterable[BeamChain],
    wrenches: Mapping[str, Array],
) -> dict[int, Array]:  # fmt: skip
    """Return a, w, al of the root, tip wrench and inner loads of each element, about its root in its axes."""
    result = {}
    for j, k in ((j, k) for chain in chains for j, k in pairwise((*chain.links, chain.tip))):
        force, moment = at.to_parent(tree, k, recursion.f[k]), at.to_parent(tree, k, recursion.m[k])
        parts = [moving.a[j], moving.w[j], moving.al[j], force, moment + cross(at.local_position[k], force)]
        for load in inner_loads(tree, j, list(wrenches)):
            if load.element is not None:
                local_wrench = wrench_on_link(at, load.place, load.sign * line_wrench(at, load.element, moving))
            else:
                wrench = wrenches[load.frame or ""]
                local_wrench = wrench_on_link(at, load.place, wrench[:3], wrench[3:])
            parts += [*local_wrench[:2]]
        result[j] = np.concatenate(parts)
    return result


def element_rows(
    tree: Tree, j: int, q: Array, change: Array, qdd: Array, signals: Array, frames: Sequence[str]
) -> ElementRows:
    """Return the element of a link in rows of positions, their derivatives, accelerations and element signals."""
    link = tree.links[j]
    a, w, al, tip = (signals[:, part] for part in (slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 15)))
    loads = [(load.part, signals[:, 15 + 6 * k : 21 + 6 * k]) for k, load in enumerate(inner_loads(tree, j, frames))]
    return ElementRows(a, w, al, q[:, link.e], change[:, link.e], qdd[:, link.e_v], tip, loads)


def sections_of_element(
    parts: BeamElement | ReducedLine, rows: ElementRows, xi: Sequence[float] | Array, behind: bool = False
) -> Array:
    """Return N, Vy, Vz, T, My, Mz at each xi in all rows: rows x n x 6.

    The part beyond a section applies these forces to the part before, in the rotating axes of the section; N is
    positive in tension. A load at a section itself is beyond the section, or with `behind` before it.
    """
    xi = np.asarray(xi, dtype=float)
    shapes, beyond = parts.shapes(xi), parts.beyond(xi)
    count, fields = len(rows.a), beyond[1].shape[1]
    length = max(1, int(NUMBERS / (len(xi) * fields * 9)))
    result: Array = np.empty((count, len(xi), 6), dtype=scalar_type(rows.tip, beyond[1]))
    for first in range(0, count, length):
        selection = slice(first, first + length)
        result[selection] = _sections(rows.part(selection), xi, shapes, beyond, behind)
    return result


def _sections(rows: ElementRows, xi: Array, shapes: Any, beyond: Any, behind: bool) -> Array:
    force, moment = _inertia(rows, *beyond)
    force, moment = force + rows.tip[:, None, :3], moment + rows.tip[:, None, 3:]
    for where, load in rows.loads:
        on = (where > xi + SECTION_TOLERANCE if behind else where >= xi - SECTION_TOLERANCE)[:, None]
        force, moment = force - on * load[:, None, :3], moment - on * load[:, None, 3:]
    r0, Phi_d, Phi_r = shapes
    place, rotations = r0 + _along(Phi_d, rows.e), _along(Phi_r, rows.e)
    moment = moment - np.cross(place, force)
    R = batched_exponentials(rotations)
    return -np.concatenate([np.einsum("rnij,rni->rnj", R, part) for part in (force, moment)], axis=2)


def _inertia(rows: ElementRows, m: Array, S: Array, G: Array) -> tuple[Array, Array]:
    """Return inertial force and moment at the origin of the part beyond xi, rows x n x 3: theory (24), (25)."""
    count, unit = len(rows.a), np.eye(3)
    ones, zeros = np.ones((count, 1)), np.zeros((count, 1))
    c, cd, cdd = np.hstack([ones, rows.e]), np.hstack([zeros, rows.ed]), np.hstack([zeros, rows.edd])
    W = _hats(rows.w)
    U = _hats(rows.al) + W @ W
    # a point of the field f accelerates with a + sum B_a f_a
    B = c[:, :, None, None] * U[:, None] + 2 * cd[:, :, None, None] * W[:, None] + cdd[:, :, None, None] * unit
    fields, n = c.shape[1], len(m)
    side_by_side = B.transpose(0, 2, 1, 3).reshape(count, 3, 3 * fields)
    force = m[:, None] * rows.a[:, None] + np.matmul(side_by_side, S.reshape(n, -1).T).transpose(0, 2, 1)
    r = np.matmul(c, G.transpose(2, 1, 3, 0, 4).reshape(fields, -1)).reshape(count, 3 * fields, 3 * n)
    T = np.matmul(side_by_side, r).reshape(count, 3, n, 3)  # int b r^T
    turned = np.stack([T[:, 2, :, 1] - T[:, 1, :, 2], T[:, 0, :, 2] - T[:, 2, :, 0], T[:, 1, :, 0] - T[:, 0, :, 1]], 2)
    return force, np.cross(_along(S.transpose(0, 2, 1), c), rows.a[:, None]) + turned


def _along(shapes: Array, e: Array) -> Array:
    """Multiply N x 3 x N by rows x N: rows x n x 3."""
    return np.matmul(e, shapes.reshape(-1, shapes.shape[2]).T).reshape(len(e), *shapes.shape[:2])


def _hats(vectors: Array) -> Array:
    """Return matrices of cross products."""
    return np.cross(np.eye(3), vectors[..., None, :])


def batched_exponentials(rotation_vectors: Array) -> Array:
    """Return rotation matrices of rotation vectors along the last axis."""
    if rotation_vectors.dtype == object:
        return np.array([exponential(vector) for vector in rotation_vectors.reshape(-1, 3)]).reshape(
            *rotation_vectors.shape, 3
        )
    angle = np.linalg.norm(rotation_vectors, axis=-1)[..., None, None]
    H = _hats(rotation_vectors)
    return np.eye(3) + np.sinc(angle / np.pi) * H + 0.5 * np.sinc(angle / (2 * np.pi)) ** 2 * (H @ H)


def stresses(parts: BeamElement, forces: Array, planar: bool) -> Array:
    """Return the largest magnitude of normal stress over the fibres, from section forces along the last axis."""
    assert parts.fibres is not None
    moments = forces[..., 3:] @ parts.section_axes
    My, Mz = (0 * moments[..., 1] if planar else moments[..., 1]), moments[..., 2]
    return parts.fibres.stress(parts.section, forces[..., 0], My, Mz)


def largest_stress_of(beams: Mapping[str, BeamLoads], times: Array | None = None) -> dict[str, Any] | None:
    """Return beam, s, time (if any) and value of the largest normal stress of all rows, or None if unknown.

    All rows are evaluated at some stations of each element. Between stations, forces and moments are polynomials of
    degree 7 in xi without kinks that could contain a maximum. In the rows nearest to the maximum the place is
    computed to rounding.
    """
    pieces = [
        _Piece(beam, number, span)
        for beam in beams.values()
        if beam.chain.parts.fibres is not None
        for number, link in enumerate(beam.chain.links)
        for span in pairwise(sorted({0.0, 1.0, *(xi for xi, _ in beam.elements[link].loads)}))
    ]
    peaks = [piece.peaks() for piece in pieces]
    best: tuple[float, str, float, int] | None = None
    for k in sorted(range(len(pieces)), key=lambda k: -float(peaks[k].max(initial=0.0))):
        if best is not None and peaks[k].max() < NEAR * best[0]:
            break
        candidate = pieces[k].largest(np.argsort(peaks[k])[::-1][:CANDIDATE_ROWS])
        best = candidate if best is None or candidate[0] > best[0] else best
    if best is None:
        return None
    value, name, s, row = best
    return {"beam": name, "s": s} | ({} if times is None else {"time": float(times[row])}) | {"value": value}


class _Piece(NamedTuple):
    """A piece of an element between two loads, which includes the load at its end and not the one at its begin."""

    beam: BeamLoads
    number: int
    span: tuple[float, float]

    @property
    def rows(self) -> ElementRows:
        """The element in all rows."""
        return self.beam.elements[self.beam.chain.links[self.number]]

    def stresses(self, xi: Array, rows: ElementRows) -> Array:
        """Return stresses at stations in rows; non-finite values are ignored."""
        parts = self.beam.chain.each[self.number]
        forces = sections_of_element(parts, rows, xi)
        first = xi <= self.span[0]
        if self.span[0] > 0 and first.any():
            forces[:, first] = sections_of_element(parts, rows, xi[first], behind=True)
        return np.nan_to_num(self.beam.quantity(STRESS, forces), nan=0.0, posinf=0.0)

    def peaks(self) -> Array:
        """Return an estimate of the largest stress in each row."""
        chain = self.beam.chain
        count = max(FEWEST, (STATIONS - 1) // len(chain.links) + 1, chain.each[self.number].stations)
        return _parabola_maxima(self.stresses(np.linspace(*self.span, count), self.rows))

    def largest(self, candidates: Array) -> tuple[float, str, float, int]:
        """Return value, beam, share of its length and row of the largest stress in these rows, to rounding."""
        xi = np.linspace(*self.span, FINE)
        sampled = self.stresses(xi, self.rows.part(candidates))
        best = int(sampled.max(axis=1).argmax())
        row, where = int(candidates[best]), int(sampled[best].argmax())
        place, value, row_data = float(xi[where]), float(sampled[best, where]), self.rows.part(slice(row, row + 1))
        for _ in range(ZOOMS):
            xi = np.linspace(xi[max(where - 1, 0)], xi[min(where + 1, len(xi) - 1)], ZOOM)
            zoomed = self.stresses(xi, row_data)[0]
            where = int(zoomed.argmax())
            if zoomed[where] > value * (1 + ROUNDING):  # an end is named as it is
                place, value = float(xi[where]), float(zoomed[where])
        return value, self.beam.chain.name, self.beam.chain.share(self.number, place), row


def _parabola_maxima(values: Array) -> Array:
    """Return the largest value of each row at a station or on a parabola through neighbouring stations."""
    top = values.max(axis=1)
    a, b, c = values[:, :-2], values[:, 1:-1], values[:, 2:]
    bend = a - 2 * b + c
    with np.errstate(divide="ignore", invalid="ignore"):
        raised = np.where((bend < 0) & (np.abs(a - c) <= -2 * bend), b - (a - c) ** 2 / (8 * bend), top[:, None])
    return np.maximum(top, raised.max(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class BeamChain(Record):
    """A beam: the links of its elements from root to tip, the link at its tip, and the body of each link.

    `ends` are shares of the length at the ends of the bodies, `added` links on nodes in addition to those of the
    file. A reduced beam has a body of many elements in each link.
    """

    name: str
    links: tuple[int, ...]
    tip: int
    each: tuple[BeamElement | ReducedLine, ...]  # to be cut at its sections
    ends: tuple[float, ...]
    added: frozenset[int] = frozenset()

    @property
    def parts(self) -> BeamElement:
        """The first element, with the material, section and fibres of all elements."""
        first = self.each[0]
        return first.element if isinstance(first, ReducedLine) else first

    @property
    def reduced(self) -> bool:
        """Whether bodies are reduced to their ends and a few modes."""
        return isinstance(self.each[0], ReducedLine)

    def located(self, s: float) -> tuple[int, float]:
        """Return the element at the share s of the whole length, and the place in it; ends are in the previous one."""
        element = min(int(np.searchsorted(self.ends, s - SECTION_TOLERANCE)), len(self.ends) - 1)
        start = (0.0, *self.ends)[element]
        return element, min((s - start) / (self.ends[element] - start), 1.0)

    def share(self, element: int, xi: float) -> float:
        """Return the place of a section of an element as share of the whole length."""
        start = (0.0, *self.ends)[element]
        return start + xi * (self.ends[element] - start)


def beam_chains(robot: Robot) -> dict[str, BeamChain]:
    """Return all beams of a robot that have sections, by name."""
    chains = {}
    added = frozenset(place.link for node in robot.nodes if (place := robot.tree.places[node]).inner is None)
    for name in (frame.name for frame in robot.description.frame if frame.beam is not None):
        elements = beam_elements(robot.tree.links, robot.tree.number(name))
        if not elements:  # another kind of body now
            continue
        links = tuple(element.link for element in elements)
        bodies = [robot.tree.links[j].body for j in links]
        lengths = [float(body.nodes["tip"].r0[0]) for body in bodies]
        each, ends = tuple(map(_cut, bodies)), np.cumsum(lengths) / sum(lengths)
        if bodies[0].reduced is None and max(lengths) - min(lengths) <= ALIKE * max(lengths):
            each, ends = each[:1] * len(links), np.arange(1, len(links) + 1) / len(links)
        chains[name] = BeamChain(name, links, elements[-1].tip, each, tuple(ends.tolist()), added)
    return chains


def missing_stress_warning(robot: Robot, chains: Mapping[str, BeamChain]) -> list[Diagnostic]:
    """Return a diagnostic about beams with unknown stress among beams with known stress."""
    with_stress = {name for name, chain in chains.items() if chain.parts.fibres is not None}
    names = [
        frame.name for frame in robot.description.frame if frame.beam is not None and frame.name not in with_stress
    ]
    if not with_stress or not names:
        return []
    listed = ", ".join(f"'{name}'" for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [Diagnostic("unknown-stress", f"the largest stress leaves out {listed}: with a section given by numbers")]


def _cut(body: Body) -> BeamElement | ReducedLine:
    """Return the beam inside a body, which can be cut at its sections."""
    assert isinstance(body.inner, BeamElement | ReducedLine)
    return body.inner


def reduced_load_warning(tree: Tree, frames: Sequence[str]) -> list[Diagnostic]:
    """Return a diagnostic about loads inside reduced beams."""
    named = [frame for frame in frames if frame in tree.places and tree.places[frame].inner is not None]
    named = [frame for frame in named if tree.links[tree.places[frame].link].body.reduced is not None]
    if not named:
        return []
    text = (
        f"a load acts inside of a reduced beam ({', '.join(repr(frame) for frame in named[:5])}), which keeps a few "
        "modes of its inside: as a frame it moves too little there (BEAM.tangent_y@s has the rest), ends are right at "
        "rest; let something of the file act there, or leave out 'reduce'"
    )
    return [Diagnostic("load-inside-beam", text, named[0])]


def read_beam(robot: Robot, beam: str, quantity: str, word: str) -> BeamChain:
    """Return the beam of a section quantity; raise for an unknown beam or an undetermined quantity."""
    chains = beam_chains(robot)
    if beam not in chains:
        link = robot.tree.places[beam].link if beam in robot.tree.places else -1
        body = robot.tree.links[link].body if link >= 0 else None
        text = f"'{beam}' is not a beam: rigid bodies have no sections"
        if beam not in robot.tree.places:
            text = f"there is no beam '{beam}'"
        elif body is not None and body.size and not body.by_tip:
            text = f"'{beam}' is a modal body and has no sections: its interfaces carry the reactions of its joints"
        raise InputError(text, key="outputs", value=word, hint=did_you_mean(beam, chains))
    if robot.tree.planar and quantity not in (*(FORCES[k] for k in IN_PLANE), STRESS):
        text = f"a planar robot does not determine {quantity} of '{beam}'"
        raise InputError(text, key="outputs", value=word, hint="use N, Vy, Mz or stress")
    if quantity == STRESS and chains[beam].parts.fibres is None:
        text = f"the stress in '{beam}' is unknown, because its section is given by numbers"
        hint = "give the shape of the section (rectangle, circle, tube, box), or use N, My and Mz"
        raise InputError(text, key="outputs", value=word, hint=hint)
    return chains[beam]


def read_beam_position(where: str, beam: str, key: str, word: str) -> float:
    """Return a place along a beam, from 0 at its frame to 1 at its tip."""
    try:
        s = float(where)
    except ValueError:
        s = np.nan
    if not 0 <= s <= 1:
        hint = "give a number from 0 (its frame) to 1 (its tip)"
        raise InputError(f"the place '{where}' is not on the beam '{beam}'", key=key, value=word, hint=hint)
    return s
