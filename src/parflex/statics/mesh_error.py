"""Estimate the discretisation error of natural frequencies, and refine beam meshes.

The error is estimated from one solution, mode by mode. The shapes of an element are those of a beam loaded at its ends;
they omit motions that vanish at both ends. Statics do not couple these motions with the shapes, but the inertia -lambda
M and an axial force N do. They change an eigenvalue lambda of mode x by

    y^T A_ii^-1 y    with  y = (N G_ib - lambda M_ib) x,    A_ii = K_ii + N G_ii - lambda M_ii

A_ii is singular at the frequencies of the element clamped at both ends and at its buckling load. The inside is divided
into FINE elements of the same kind, which include shear, rotary inertia and roll.

To first order in the inner motions, the eigenvalues are those of diag(lambda) - C in the space of the computed modes.
Modes beyond the requested ones take part because refinement may change their order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from parflex.bodies.elastic import Body
from parflex.bodies.reduced_beam import ReducedBeam, ReducedLine
from parflex.closure.mobility import null_space
from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.records import Record, count_of
from parflex.robot.batches import warn
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.robot import Robot
from parflex.spatial.linear import eigen_pairs
from parflex.spatial.rotations import hat
from parflex.tree.build_elements import read_element
from parflex.tree.tree import Link, beam_elements

Array = np.ndarray

WARNING_EXCESS = 0.05  # of a frequency: a larger error is a warning; one element of a pinned beam is 11 % too high
FAR = 1.0  # of a frequency: larger first-order estimates are not quantitative, as near critical loads
ENOUGH = 0.01  # error of a frequency for which warnings state the number of elements
BESIDE = 24  # modes above the requested ones in an estimate
# of a squared frequency: modes above change what is taken from it by about its share of theirs. Those of an element
# much shorter than others, as beside a place where something acts, lie so high that it would be lost in their rounding
ABOVE = 1e6
REACHED = 0.9  # of a squared clamped-clamped frequency: above, the error cannot be estimated
BISECTIONS = 12  # steps that resolve a large share to a thousandth
CLEAR = 0.5  # of a squared clamped-clamped frequency: target for the stated number of elements
SUBDIVISIONS = 2  # of an element of a reduced beam, whose inner frequencies are far above the omitted modes
FINE = 8  # elements that model the inside, with 1/64 of the estimated error in stretch and shear
LEAST = 1e-9  # smallest relative change: answers of fine meshes have rounding of about 1e-10
MOST = 64  # largest number of elements per element of the file
DEFORMED_TOLERANCE = 1e-9  # m or rad: larger elastic coordinates make a configuration depend on its number of elements


@dataclass(frozen=True, eq=False, repr=False)
class ElementErrors(Record):
    """Shares by which frequencies are too high; infinite above the lowest frequency inside elements.

    `beam` contributes most to the largest share, `count` is its number of elements, and `enough` the number for an
    error of 1 %.
    """

    shares: Array
    beam: str = ""
    count: int = 1
    enough: int = 1
    alone: float = np.inf  # rad^2/s^2 of its elements held at both ends
    pressed: bool = False  # whether an element of it is under axial compression
    reduced: ReducedBeam | None = None  # how it is reduced
    by_elements: Array | None = None  # the shares without what reductions leave out

    @property
    def largest(self) -> float:
        """Largest share."""
        return float(self.shares.max(initial=0.0))


@dataclass(frozen=True, eq=False, repr=False)
class BeamElements(Record):
    """The elements of a beam in the tree, from root to tip, and their inner motions."""

    name: str
    links: tuple[int, ...]
    inside: tuple[InnerMotions, ...]
    reduced: ReducedBeam | None = None  # of the part of it that leaves out the lowest frequency
    element: float = np.inf  # rad^2/s^2 of its elements held at both ends, where it is reduced


def beam_links(robot: Robot, reduced: bool = False) -> dict[str, tuple[int, ...]]:
    """Return the links of the elements of each beam, from root to tip; with `reduced`, of reduced beams only."""
    links, beams = robot.tree.links, {}
    for frame in robot.description.frame:
        if frame.beam is not None and (frame.beam.reduce is not None) == reduced:
            beams[frame.name] = tuple(part.link for part in beam_elements(links, robot.tree.number(frame.name)))
    return {name: parts for name, parts in beams.items() if parts}


INNER_BEAMS = ("inner beams", False), ("inner beams", True)  # keys of what robots keep: of beams, of reduced ones


def inner_beams(robot: Robot, reduced: bool = False) -> dict[str, BeamElements]:
    """Return the elements of each beam, or bodies of each reduced beam, with their inner motions; cached per robot."""
    return robot.derived(INNER_BEAMS[reduced], lambda: _inner_beams(robot, reduced))


def _inner_beams(robot: Robot, reduced: bool) -> dict[str, BeamElements]:
    beams, specs, file = {}, {frame.name: frame.beam for frame in robot.description.frame}, robot.description
    cache: dict[tuple[str, int, str], tuple[InnerMotions, float]] = {}  # identical bodies are computed once
    for name, links in beam_links(robot, reduced).items():
        spec, parts, bodies = specs[name], [], [robot.tree.links[j].body for j in links]
        assert spec is not None
        for body in bodies:
            length, elements = float(body.nodes["tip"].r0[0]), body.reduced.elements if body.reduced else 1
            key = spec.model_dump_json(), elements, f"{length:.12g}"
            if key not in cache:
                count = float(f"{elements * spec.length / length:.12g}")  # without rounding
                inside, least = inner_motions([read_element(file, name, spec, count * FINE)] * FINE), np.inf
                if isinstance(body.inner, ReducedLine):
                    element, least = read_element(file, name, spec, SUBDIVISIONS * count), inside.lowest
                    inside = inner_motions_of_reduced(element, body.inner)
                cache[key] = inside, least
            parts.append(cache[key])
        reductions = [body.reduced for body in bodies if body.reduced]
        worst = min(reductions, key=lambda reduction: reduction.left_out, default=None)
        beams[name] = BeamElements(name, links, tuple(part[0] for part in parts), worst, min(part[1] for part in parts))
    return beams


def _axial_force(link: Link, q: Array) -> float:
    """Return the axial force (N) in an element that acts on bending, positive in tension."""
    return float(sum(strain.force(q[link.e]) for strain in link.body.acting))


def element_errors(here: Configuration, values: Array, shapes: Array, count: int) -> ElementErrors:
    """Return the errors of the lowest `count` modes from squared frequencies in rising order and shapes."""
    plain, reduced = (list(inner_beams(here.robot, kind).values()) for kind in (False, True))
    beams = [*plain, *reduced]
    if not count or not beams:
        return ElementErrors(np.zeros(count))
    values, shapes = values[: count + BESIDE], shapes[:, : count + BESIDE]
    inside = [_inside(here, beam, shapes) for beam in beams]
    alone = np.array([part.own.min() for part in inside])
    shares = by_elements = _shares(values, inside[: len(plain)], count)
    if reduced:
        shares, left_out = _shares(values, inside, count), float(alone[len(plain) :].min())
        # above omitted modes only the bound is known, theory (56); above element frequencies nothing
        limit = REACHED * min([*alone[: len(plain)], *(beam.element for beam in reduced)])
        beyond = np.isinf(shares) & (values[:count] < limit)
        shares = np.where(beyond, np.sqrt(1 + values[:count] / left_out) - 1, shares)
    worst = int(np.argmax(shares))
    taken = [part.taken(values, float(values[worst]))[worst, worst] for part in inside]
    b = int(np.argmin(alone) if np.isinf(shares[worst]) else np.argmax(taken))
    links, least = beams[b].links, float(alone[b])
    times = values[count - 1] / (CLEAR * max(least, 1e-300)) if np.isinf(shares[worst]) else shares[worst] / ENOUGH
    pressed = any(_axial_force(here.robot.tree.links[j], here.q) < 0 for j in links)
    enough = _enough(len(links), max(1.0, times))
    return ElementErrors(shares, beams[b].name, len(links), enough, least, pressed, beams[b].reduced, by_elements)


def _enough(count: int, times: float) -> int:
    """Return the number of elements that reduces errors, or raises squared frequencies, by a factor."""
    return max(int(np.ceil(count * times**0.25)), count + 1)  # both go with the fourth power


def _shares(values: Array, inside: list[_Inside], count: int) -> Array:
    """Return the share by which each mode is too high; infinite near and above the lowest inner frequency."""
    if not inside:
        return np.zeros(count)
    together = _Inside(*map(np.concatenate, zip(*inside, strict=True)))
    limit = REACHED * float(together.own.min())
    return np.array([_frequency_excess(values, together, k, limit) for k in range(count)])


class _Inside(NamedTuple):
    """Inner motions of elements: squared frequencies, and coupling by axial force and acceleration with modes."""

    own: Array
    pulled: Array
    moved: Array

    def taken(self, values: Array, value: float) -> Array:
        """Return C at a squared frequency; higher modes matter if their corrected frequency is below."""
        y = self.pulled - self.moved * np.minimum(values, value)
        y = y / np.sqrt(np.maximum(self.own - value, (1 - REACHED) * np.abs(self.own)))[:, None]
        return y.T @ y


def _inside(here: Configuration, beam: BeamElements, shapes: Array) -> _Inside:
    """Return the inner motions of all elements of a beam, stacked."""
    rows = []
    for j, inside in zip(beam.links, beam.inside, strict=True):
        link, (J_v, J_w) = here.robot.tree.links[j], here.link_jacobians[j]
        N = _axial_force(link, here.q)
        squared_frequencies, vectors = inside.still if N == 0 else inside.modes(N)
        x = np.vstack([J_v @ shapes, J_w @ shapes, shapes[link.e_v]])
        rows.append((squared_frequencies, N * (vectors.T @ (inside.G_ib @ x)), vectors.T @ (inside.M_ib @ x)))
    return _Inside(*map(np.concatenate, zip(*rows, strict=True)))


def _frequency_excess(values: Array, inside: _Inside, k: int, limit: float) -> float:
    """Return the share by which the frequency of mode k is too high; infinite above the limit of the estimate."""
    values = values[: np.searchsorted(values, ABOVE * values[k])]
    inside = inside._replace(pulled=inside.pulled[:, : len(values)], moved=inside.moved[:, : len(values)])

    def left(value: float) -> float:
        return float(np.linalg.eigvalsh(np.diag(values) - inside.taken(values, value))[k])

    upper = min(float(values[k]), limit)
    eigenvalue = left(upper) if limit > 0 else np.inf
    if eigenvalue > upper and upper < values[k]:
        return np.inf
    if eigenvalue < (1 - 2 * ENOUGH) * values[k]:  # far off: the value at which it is right itself
        lower = 0.0
        for _ in range(BISECTIONS):
            middle = (lower + upper) / 2
            lower, upper = (middle, upper) if left(middle) > middle else (lower, middle)
        eigenvalue = upper
    return float(np.sqrt(values[k] / min(eigenvalue, values[k])) - 1) if eigenvalue > 0 else np.inf


def bound_at(robot: Robot, hertz: float) -> ElementErrors:
    """Return the error bound of resonances and zeros up to a frequency (Hz).

    An eigenvalue lambda is computed as at most lambda/(1 - lambda/mu), theory (56), with mu the lowest eigenvalue
    of elements with clamped ends, the motions that elements omit. Zeros are the resonances of the robot with its
    output held. Axial forces of an equilibrium may lower mu. Reduced beams have a separate bound.
    """
    beams = list(inner_beams(robot).values())
    if not beams:
        return ElementErrors(np.zeros(1))
    alone = [min(part.lowest for part in beam.inside) for beam in beams]
    b = int(np.argmin(alone))
    share, links = (2 * np.pi * hertz) ** 2 / alone[b], len(beams[b].links)
    most = 1 / np.sqrt(1 - share) - 1 if share < REACHED else np.inf
    enough = _enough(links, share / (1 - (1 + WARNING_EXCESS) ** -2))
    return ElementErrors(np.array([most]), beams[b].name, links, enough, alone[b])


def element_warnings(frequencies: Array, errors: ElementErrors, what: str = "") -> list[Diagnostic]:
    """Return a diagnostic about the mode (or `what`) with the largest error by too few elements."""
    if errors.largest <= WARNING_EXCESS:
        return []
    worst, known, far = int(np.argmax(errors.shares)), np.isfinite(errors.largest), errors.largest > FAR
    if errors.reduced and known and frequencies[worst] > errors.reduced.band:
        return []  # of all modes beyond a band there is one warning
    mode = f"{what} up to {frequencies[worst]:.4g} Hz" if what else f"mode {worst + 1} ({frequencies[worst]:.4g} Hz)"
    its = f"its {'element is' if errors.count == 1 else f'{errors.count} elements are'} too long"
    advice = f"use {errors.enough} elements" + ("" if what else ", or converge=1e-3")
    if errors.reduced is not None:
        its = "modes that its reduction omits are missing"
        advice = "give 'reduce' a smaller error" if known else "use more elements, or remove 'reduce'"
    load = ", which is near a critical load" if errors.pressed and far else ""
    size = "more than twice" if far else f"{'up to' if what else 'about'} {errors.largest:.0%}"
    size = f"may have resonances and zeros {size}" if what else f"is {size}"
    text = f"{mode} {size} too high, by '{errors.beam}' most{load}: {its}; {advice}"
    if not known:
        lowest = np.sqrt(max(errors.alone, 0.0)) / (2 * np.pi)
        text = (
            f"{mode} reaches the lowest frequency of an element of '{errors.beam}' with both ends clamped "
            f"({lowest:.4g} Hz), beyond which modes are missing or far too high; {advice}"
        )
    return [Diagnostic("few-elements", text, errors.beam, float(errors.largest))]


@dataclass(frozen=True, eq=False, repr=False)
class InnerMotions(Record):
    """Stiffness, mass and G of an element with clamped ends, and their coupling with root twist and coordinates."""

    K_ii: Array
    M_ii: Array
    M_ib: Array
    G_ii: Array
    G_ib: Array

    @cached_property
    def still(self) -> tuple[Array, Array]:
        """Modes without axial force."""
        return self.modes(0.0)

    @property
    def lowest(self) -> float:
        """Lowest squared frequency without axial force."""
        return float(self.still[0].min())

    def modes(self, N: float) -> tuple[Array, Array]:
        """Return squared frequencies under an axial force and mass-normalised motions; not positive beyond buckling."""
        return eigen_pairs(self.K_ii + N * self.G_ii, self.M_ii)


def inner_motions(pieces: list[Body], mode_coordinates: Array | None = None) -> InnerMotions:
    """Return the inner motions of an element from the `pieces` that divide it.

    For a reduced beam, `mode_coordinates` are the coordinates of the pieces in each mode. Only motions without
    strain energy in common with the modes remain.
    """
    N = pieces[0].size
    size = 6 + N * len(pieces)
    M, K, G = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    root = np.hstack([np.eye(6), np.zeros((6, size - 6))])  # twist of the node before each piece
    for j, piece in enumerate(pieces):
        selector = np.zeros((N, size))
        selector[:, 6 + N * j : 6 + N * (j + 1)] = np.eye(N)
        rows, tip = np.vstack([root, selector]), piece.nodes["tip"]
        M += rows.T @ piece.inertia_matrix(np.zeros(N)) @ rows
        K += selector.T @ piece.material_stiffness(np.zeros(N)) @ selector
        G += rows.T @ _shortening(piece) @ rows
        shift = np.block([[np.eye(3), -hat(tip.r0)], [np.zeros((3, 3)), np.eye(3)]])
        root = shift @ root + np.vstack([tip.Phi_d, tip.Phi_r]) @ selector
    tip = pieces[0].nodes["tip"]
    relative = (np.vstack([tip.Phi_d, tip.Phi_r]).T @ root)[:, 6:]  # coordinates of the whole tip by those of pieces
    K_e = K[6:, 6:]
    shapes = np.linalg.solve(K_e, relative.T)
    shapes = shapes @ np.linalg.inv(relative @ shapes)  # of the least energy: the cubic shapes of the whole
    if mode_coordinates is not None:
        shapes, relative = np.hstack([shapes, mode_coordinates]), np.vstack([relative, mode_coordinates.T @ K_e])
    inner = null_space(relative / np.linalg.norm(relative, axis=1)[:, None], len(relative))
    B = np.vstack([np.zeros((6, inner.shape[1])), inner])
    T = np.zeros((size, 6 + shapes.shape[1]))
    T[:6, :6], T[6:, 6:] = np.eye(6), shapes
    return InnerMotions(B.T @ K @ B, B.T @ M @ B, B.T @ M @ T, B.T @ G @ B, B.T @ G @ T)


def _shortening(piece: Body) -> Array:
    """Return the form int (v'^2 + w'^2) dx of a piece, root rotation included."""
    N, length = piece.size, float(piece.nodes["tip"].r0[0])
    H = np.zeros((6 + N, 6 + N))
    H[4, 4] = H[5, 5] = length
    ends = piece.nodes["tip"].Phi_d
    H[5, 6:], H[4, 6:] = ends[1], -ends[2]  # v' = rz + ..., w' = -ry + ...
    H[6:, 5], H[6:, 4] = H[5, 6:], H[4, 6:]
    for strain in piece.strains:
        H[6:, 6:] += strain.H
    return H


def inner_motions_of_reduced(element: Body, line: ReducedLine) -> InnerMotions:
    """Return the motions that the modes of a reduced beam omit, and those inside its elements."""
    parts = line.count * SUBDIVISIONS
    N, tip = element.size, element.nodes["tip"]
    used = np.vstack([tip.Phi_d, tip.Phi_r])
    mode_coordinates = np.zeros((parts * N, line.node_motions.shape[2] - N))
    ends = [line.at(k / parts) for k in range(parts + 1)]
    end_motions = [np.vstack([end.Phi_d, end.Phi_r])[:, N:] for end in ends]
    for k in range(parts):
        carried = np.vstack([end_motions[k][:3] - hat(tip.r0) @ end_motions[k][3:], end_motions[k][3:]])
        mode_coordinates[k * N : (k + 1) * N] = used.T @ (end_motions[k + 1] - carried)
    return inner_motions([element] * parts, mode_coordinates if mode_coordinates.size else None)


def band_warnings(robot: Robot, frequencies: Array, what: str = "") -> list[Diagnostic]:
    """Return a diagnostic about modes (or `what`) beyond the band of a reduced beam, whose error theory (56) bounds."""
    reductions = {link.name: link.body.reduced for link in robot.tree.links if link.body.reduced is not None}
    lowest = min(reductions, key=lambda name: reductions[name].band, default="")
    beyond = np.flatnonzero(np.asarray(frequencies) > reductions[lowest].band) if lowest else np.zeros(0, dtype=int)
    left_out = min((reduction.left_out for reduction in reductions.values()), default=np.inf)
    if not beyond.size or np.isinf(left_out):  # all modes are retained
        return []
    highest = float(np.max(np.asarray(frequencies)[beyond]))
    modes = f"mode {beyond[0] + 1}" if len(beyond) == 1 else f"modes {beyond[0] + 1} to {beyond[-1] + 1}"
    much = f"{100 * (np.sqrt(1 + (highest / left_out) ** 2) - 1):.3g} %"
    digit = 10.0 ** (np.floor(np.log10(highest)) - 1)
    text = (
        f"{what or modes} (up to {highest:.4g} Hz): beyond the band of {reductions[lowest].band:g} Hz for which "
        f"'{lowest}' is reduced, frequencies may be up to {much} higher than with all elements; "
        f"give 'reduce' a band of {np.ceil(highest / digit) * digit:g} Hz"
    )
    return [Diagnostic("beyond-band", text, lowest, highest)]


def warn_beyond_band(robot: Robot, frequencies: Array, what: str = "frequencies of the map") -> None:
    """Warn once about the highest frequency (Hz), in any order."""
    values = np.asarray(frequencies, dtype=float).ravel()
    warn(band_warnings(robot, values[np.isfinite(values)], what))


@dataclass(frozen=True, eq=False, repr=False)
class Refinement(Record):
    """Mesh convergence of an answer: each element of the file is divided into `elements`.

    `change` is the largest relative change by the last doubling (infinite for a single answer), and `remaining`
    estimates the largest relative error. `converged` reports whether both are within `converge`, and `why` states
    the reason for an early end. `steps` has `elements`, `coordinates`, `change`, `seconds` and more for each mesh.
    """

    elements: int
    change: float
    remaining: float
    converged: bool
    steps: list[dict[str, Any]] = field(default_factory=list)
    why: str = ""

    def _told(self) -> str:
        state = "converged" if self.converged else "not converged"
        return f"{state} with {count_of(self.elements, 'element')} in each of the file, last change {self.change:.2g}"


def check_convergence_share(converge: Any) -> float:
    """Raise unless the value is a relative change above rounding."""
    number = not isinstance(converge, bool) and isinstance(converge, int | float | np.number)
    text, hint = "", "give e.g. 1e-3"
    if not number or not 0 < converge < 1:
        text = "'converge' is not a share between 0 and 1"
    elif converge < LEAST:
        text = f"a change of {converge:g} is below the rounding of answers, about {LEAST / 10:.0e}"
        hint = f"give {LEAST:g} or more, e.g. 1e-3"
    if text:
        raise InputError(text, key="converge", value=converge, hint=hint)
    return float(converge)


def refinement_messages(robot: Robot, names: Collection[str] = ()) -> list[Diagnostic]:
    """Return diagnostics of parts that refinement does not change; raise without beams or for inner nodes."""
    tree, beams = robot.tree, beam_links(robot)
    modal = ", ".join(repr(link.name) for link in tree.links if link.body.size and not link.body.by_tip)
    reduced = ", ".join(repr(frame.name) for frame in robot.description.frame if frame.beam and frame.beam.reduce)
    inside = {tree.links[j].name: beam for beam, links in beams.items() for j in links[1:]}
    inner = [name for name in names if name in inside and name.removeprefix(f"{inside[name]}.").count(".")]
    value, refused, hint = robot.name, "", "leave out converge"
    if not beams:
        refused = "it has no beams"
        if modal:
            refused, hint = f"{modal}, a modal body, cannot be refined", f"{hint}, or give the body more modes"
        if reduced:
            refused, hint = (
                f"{reduced} is reduced, with an error stated in the file",
                "leave out converge, or reduce",
            )
        refused = f"the number of elements of '{robot.name}' cannot be refined: {refused}"
    elif {*robot.locked} & {*tree.elastic}:
        refused = (
            "a robot with locked elastic coordinates cannot be refined, because these depend on the number of elements"
        )
        hint = "lock joints alone"
    elif inner:
        value, hint = inner[0], "load the robot without elements, and give the beam elements in its file"
        refused = f"'{value}' is an inner node, which moves when the beam is refined"
    if refused:
        raise InputError(refused, key="converge", value=value, hint=hint)
    texts = [f"{modal}, a modal body, is not refined"] if modal else []
    texts += [f"the change excludes the reduction error of {reduced}, which the file states"] if reduced else []
    return [Diagnostic("not-refined", text) for text in texts]


def at_same_pose(robot: Robot, finer: Robot, pose: Pose | None) -> Pose | None:
    """Return a pose of a robot as a pose of the same robot with other elements."""
    if pose is None or isinstance(pose, str | Mapping):
        return pose
    here = configure(robot, pose)
    if max(np.abs(here.q[link.e]).max(initial=0.0) for link in robot.tree.links) > DEFORMED_TOLERANCE:
        text = "this configuration is deformed, and its elastic coordinates depend on the number of elements"
        raise InputError(text, key="pose", hint="give the pose; about='equilibrium' computes the deformed state")
    return Configuration(finer, same_positions(robot, finer, here.q))


def same_positions(robot: Robot, finer: Robot, q: Array) -> Array:
    """Return positions of an undeformed robot as those of the same robot with other elements."""
    values = dict(zip(robot.tree.position_names, q, strict=True))
    positions = np.array([values.get(name, 0.0) for name in finer.tree.position_names])
    for link in finer.tree.links:
        positions[link.e] = 0.0
    return positions


def numbers_of_elements(robot: Robot, most: int) -> Iterable[int]:
    """Yield 1, 2, 4, ... times the elements of a robot, up to `most` coordinates."""
    elastic = sum(link.body.size for link in robot.tree.links if link.body.by_tip)
    times = 1
    while times * robot.refine <= MOST and (times == 1 or robot.tree.n + (times - 1) * elastic <= most):
        yield times
        times *= 2
