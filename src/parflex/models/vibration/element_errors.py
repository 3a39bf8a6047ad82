"""How much too high frequencies are because elements are too few: estimated from one solution, mode by mode.

To first order of what lies inside the elements, the eigenvalues are those of diag(lambda) - C in the space
of the modes found; modes beside those asked for take part, since they may come down and in between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.bodies.reduced_beam import ReducedBeam, ReducedCentreLine
from parflex.models.vibration.inner_motions import HALVES, InnerMotions, of_beam, of_reduced
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.tree.build_elements import read_element
from parflex.tree.tree import Link

Array = np.ndarray
TOO_HIGH = 0.05  # of a frequency: beyond, a warning names the beam; one element of a pinned beam is 11 % too high
FAR = 1.0  # of what a frequency should be: beyond, an estimate of first order is no figure, as near critical loads
ENOUGH = 0.01  # of a frequency: the number of elements in warnings is that for this error
BESIDE = 24  # modes above those asked for that take part in an estimate
# of a squared frequency: modes above change what is taken from it by about its share of theirs. Those of an element
# much shorter than others, as beside a place where something acts, lie so high that it would be lost in their rounding
ABOVE = 1e6
REACHED = 0.9  # of a squared frequency of an element held at both ends: so near, nothing can be said any more
BISECTIONS = 12  # until a large share is known to a thousandth
CLEAR = 0.5  # of the same: with this many elements something can


@dataclass(frozen=True, eq=False, repr=False)
class ElementErrors(Record):
    """Shares by which frequencies are too high; infinite where elements vibrate by themselves at such a frequency.

    `beam` has most of the largest share, `count` elements now, and `enough` for an error of a hundredth.
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
        """The largest share."""
        return float(self.shares.max(initial=0.0))


@dataclass(frozen=True, eq=False, repr=False)
class BeamElements(Record):
    """The elements of a beam in the tree, from root to tip, and what is inside each."""

    name: str
    links: tuple[int, ...]
    inside: tuple[InnerMotions, ...]
    reduced: ReducedBeam | None = None  # of the part of it that leaves out the lowest frequency
    element: float = np.inf  # rad^2/s^2 of its elements held at both ends, where it is reduced


def beam_links(robot: Robot, reduced: bool = False) -> dict[str, tuple[int, ...]]:
    """Numbers of the links that are elements of each beam, from root to tip; what was reduced has none, or alone."""
    tree, found = robot.tree, {}
    carried = {link.parent: j for j, link in enumerate(tree.links) if link.node is not None and link.parent >= 0}
    for frame in robot.description.frame:
        if frame.beam is None or (frame.beam.reduce is not None) != reduced:
            continue
        j: int | None = tree.number(frame.name)
        links = []
        while j is not None and tree.links[j].body.size and tree.links[j].body.by_tip:
            links.append(j)
            j = carried.get(j)
        if links:
            found[frame.name] = tuple(links)
    return found


def inner_beams(robot: Robot) -> dict[str, BeamElements]:
    """Of each beam its elements; those of alike beams are made once, and of a robot once."""
    if robot.inner_motions:
        return robot.inner_motions
    made: dict[str, BeamElements] = {}
    known: dict[tuple[str, float], InnerMotions] = {}
    specs = {frame.name: frame.beam for frame in robot.description.frame}
    for name, links in beam_links(robot).items():
        spec, inside = specs[name], []
        assert spec is not None
        for j in links:
            count = float(f"{spec.length / robot.tree.links[j].body.nodes['tip'].r0[0]:.12g}")  # without rounding
            key = spec.model_dump_json(), count
            if key not in known:
                known[key] = of_beam(robot.description, name, spec, count)
            inside.append(known[key])
        made[name] = BeamElements(name, links, tuple(inside))
    robot.inner_motions.update(made)  # all at once: another thread may ask meanwhile
    return made


def reduced_beams(robot: Robot) -> dict[str, BeamElements]:
    """Of each reduced beam its bodies, and what these leave out; of a robot once."""
    if robot.left_out_motions:
        return robot.left_out_motions
    made, specs = {}, {frame.name: frame.beam for frame in robot.description.frame}
    known: dict[tuple[str, int, str], tuple[InnerMotions, float]] = {}
    for name, links in beam_links(robot, reduced=True).items():
        spec, parts, said = specs[name], [], []
        assert spec is not None
        for body in (robot.tree.links[j].body for j in links):
            assert body.reduced is not None and isinstance(body.inner, ReducedCentreLine)
            length = float(body.nodes["tip"].r0[0])
            key = spec.model_dump_json(), body.reduced.elements, f"{length:.12g}"
            if key not in known:
                count = body.reduced.elements * spec.length / length
                element = read_element(robot.description, name, spec, HALVES * count)
                alone = of_beam(robot.description, name, spec, count).still[0]
                known[key] = of_reduced(element, body.inner), float(alone.min())
            parts.append(known[key])
            said.append(body.reduced)
        worst = min(said, key=lambda one: one.left_out)
        made[name] = BeamElements(name, links, tuple(part[0] for part in parts), worst, min(part[1] for part in parts))
    robot.left_out_motions.update(made)
    return made


def _axial_force(link: Link, q: Array) -> float:
    """Axial force (N) in an element as far as it acts on bending, positive in tension."""
    return float(sum(strain.force(q[link.e]) for strain in link.body.acting))


def element_errors(here: Configuration, values: Array, shapes: Array, count: int) -> ElementErrors:
    """Of the lowest `count` modes: squared frequencies, lowest first, and shapes, also of modes above them."""
    plain, reduced = list(inner_beams(here.robot).values()), list(reduced_beams(here.robot).values())
    beams = [*plain, *reduced]
    if not count or not beams:
        return ElementErrors(np.zeros(count))
    values, shapes = values[: count + BESIDE], shapes[:, : count + BESIDE]
    inside = [_inside(here, beam, shapes) for beam in beams]
    alone = np.array([part.own.min() for part in inside])
    limit = REACHED * min([float(least) for least in alone[: len(plain)]] + [beam.element for beam in reduced])
    by_elements = _shares(values, inside[: len(plain)], count, REACHED * float(alone[: len(plain)].min(initial=np.inf)))
    shares = by_elements
    if reduced:
        shares = _shares(values, inside, count, REACHED * float(alone.min()))
        left_out = min(float(least) for least in alone[len(plain) :])
        # beyond what is left out the bound is all that is known, theory (56); beside elements not even that
        beyond = np.isinf(shares) & (values[:count] < limit)
        shares = np.where(beyond, np.sqrt(1 + values[:count] / left_out) - 1, shares)
    worst = int(np.argmax(shares))
    infinite, highest = bool(np.isinf(shares[worst])), float(values[count - 1])
    taken = [part.taken(values, float(values[worst]))[worst, worst] for part in inside]
    b = int(np.argmin(alone) if infinite else np.argmax(taken))
    links = len(beams[b].links)
    times = highest / (CLEAR * max(float(alone[b]), 1e-300)) if infinite else shares[worst] / ENOUGH
    enough = int(np.ceil(links * max(1.0, times) ** 0.25))  # errors and squared frequencies go with the fourth power
    pressed = any(_axial_force(here.robot.tree.links[j], here.q) < 0 for j in beams[b].links)
    most = max(enough, links + 1), float(alone[b]), pressed, beams[b].reduced
    return ElementErrors(shares, beams[b].name, links, *most, by_elements)


def _shares(values: Array, inside: list[_Inside], count: int, limit: float) -> Array:
    """Of each mode the share by which it is too high; infinite beyond a limit."""
    if not inside:
        return np.zeros(count)
    together = _Inside(
        *(np.concatenate(rows) for rows in zip(*((p.own, p.pulled, p.moved) for p in inside), strict=True))
    )
    return np.array([_too_high(values, together, k, limit) for k in range(count)])


@dataclass(frozen=True, eq=False, repr=False)
class _Inside(Record):
    """Of motions inside elements: squared frequencies, and what pulls and what accelerates them in each mode."""

    own: Array
    pulled: Array
    moved: Array

    def of_modes(self, count: int) -> _Inside:
        """In the lowest modes alone."""
        return _Inside(self.own, self.pulled[:, :count], self.moved[:, :count])

    def taken(self, values: Array, value: float) -> Array:
        """C at a squared frequency; modes above matter where they come below it."""
        y = self.pulled - self.moved * np.minimum(values, value)
        y = y / np.sqrt(np.maximum(self.own - value, (1 - REACHED) * np.abs(self.own)))[:, None]
        return y.T @ y


def _inside(here: Configuration, beam: BeamElements, shapes: Array) -> _Inside:
    """Of all elements of a beam, one below the other."""
    rows = []
    for j, inside in zip(beam.links, beam.inside, strict=True):
        link, (J_v, J_w) = here.robot.tree.links[j], here.link_jacobians[j]
        N = _axial_force(link, here.q)
        own, vectors = inside.still if N == 0 else inside.modes(N)
        x = np.vstack([J_v @ shapes, J_w @ shapes, shapes[link.e_v]])
        rows.append((own, N * (vectors.T @ (inside.G_ib @ x)), vectors.T @ (inside.M_ib @ x)))
    return _Inside(*(np.concatenate(part) for part in zip(*rows, strict=True)))


def _too_high(values: Array, inside: _Inside, k: int, limit: float) -> float:
    """Share by which the frequency of mode k is too high; infinite where it lies above a limit of what can be said."""
    values = values[: np.searchsorted(values, ABOVE * values[k])]
    inside = inside.of_modes(len(values))

    def left(value: float) -> float:
        return float(np.linalg.eigvalsh(np.diag(values) - inside.taken(values, value))[k])

    upper = min(float(values[k]), limit)
    found = left(upper) if limit > 0 else np.inf
    if found > upper and upper < values[k]:
        return np.inf
    if found < (1 - 2 * ENOUGH) * values[k]:  # far off: the value at which it is right itself
        lower = 0.0
        for _ in range(BISECTIONS):
            middle = (lower + upper) / 2
            lower, upper = (middle, upper) if left(middle) > middle else (lower, middle)
        found = upper
    return float(np.sqrt(values[k] / min(found, values[k])) - 1) if found > 0 else np.inf


def bound_at(robot: Robot, hertz: float) -> ElementErrors:
    """How much too high frequencies up to one (Hz) are at most, whatever moves: of resonances and of zeros.

    An eigenvalue lambda is found as lambda/(1 - lambda/mu) at most, theory (56), with mu the lowest of elements held at
    both ends, which are all that elements leave out. Zeros are the resonances of the robot whose output is held. Axial
    forces of an equilibrium may take more. Reduced beams have a bound of their own.
    """
    beams = list(inner_beams(robot).values())
    if not beams:
        return ElementErrors(np.zeros(1))
    alone = [min(float(part.still[0].min()) for part in beam.inside) for beam in beams]
    b, value = int(np.argmin(alone)), (2 * np.pi * hertz) ** 2
    share, links = value / alone[b], len(beams[b].links)
    most = 1 / np.sqrt(1 - share) - 1 if share < REACHED else np.inf
    allowed = 1 - (1 + TOO_HIGH) ** -2
    enough = int(np.ceil(links * (share / allowed) ** 0.25))  # squared frequencies go with the fourth power
    return ElementErrors(np.array([most]), beams[b].name, links, max(enough, links + 1), alone[b])


def response_warnings(robot: Robot, highest: float) -> list[str]:
    """One sentence about a frequency response up to a frequency (Hz) for which elements are too few."""
    return element_warnings(np.array([highest]), bound_at(robot, highest), "the response")


def element_warnings(frequencies: Array, errors: ElementErrors, what: str = "") -> list[str]:
    """One sentence about the mode that is most too high because elements are too few, or about `what` reaches there."""
    if errors.largest <= TOO_HIGH:
        return []
    worst = int(np.argmax(errors.shares))
    mode = f"{what} up to" if what else f"mode {worst + 1}"
    mode += f" {frequencies[worst]:.4g} Hz" if what else f" ({frequencies[worst]:.4g} Hz)"
    its = "its element is" if errors.count == 1 else f"its {errors.count} elements are"
    advice = f"use {errors.enough} elements" + ("" if what else ", or converge=1e-3")
    held = f"{np.sqrt(max(errors.alone, 0.0)) / (2 * np.pi):.4g} Hz"
    if errors.reduced is not None:
        if frequencies[worst] > errors.reduced.band and np.isfinite(errors.largest):
            return []  # which is told of all modes beyond the band
        its, advice = "modes that its reduction leaves out are missing", "give 'reduce' a smaller error"
        if not np.isfinite(errors.largest):
            advice = "use more elements, or leave out 'reduce'"
    else:
        its += " too long"
    if what and np.isfinite(errors.largest):
        most = "more than twice" if errors.largest > FAR else f"up to {errors.largest:.0%}"
        return [f"{mode} may have resonances and zeros {most} too high, by '{errors.beam}' most: {its}; {advice}"]
    if FAR < errors.largest < np.inf:
        load = ", which is near a critical load" if errors.pressed else ""
        return [f"{mode} is more than twice too high, by '{errors.beam}' most{load}: {its}; {advice}"]
    if np.isfinite(errors.largest):
        return [f"{mode} is about {errors.largest:.0%} too high, by '{errors.beam}' most: {its}; {advice}"]
    return [
        f"{mode} is not below the lowest frequency of the elements of '{errors.beam}' by themselves, held at both ends "
        f"({held}): from there on modes are missing or far too high; {advice}"
    ]
