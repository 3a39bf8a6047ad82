"""Define force elements: springs, cables, contacts, joint stops, joint friction and gear losses.

A contact is a spring and a damper that push while a depth is positive and never pull. In a run, gates of value 1 or 0
switch the contacts, so that forces stay smooth within a step; the step ends where a gap changes its sign, and the gate
changes there. Without gates, the state decides whether a contact pushes.

A sliding joint has a friction effort of one sign; a sticking joint has the effort that keeps it at rest. That effort
and an inertia that almost holds the joint are inputs of the model, theory (57). A step ends where a joint comes to rest
or breaks away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from parflex.records import Record
from parflex.robotfile.schema import CouplingTable
from parflex.spatial.linear import scalar_type

if TYPE_CHECKING:
    from parflex.tree.tree import Link, Place, Tree

Array = np.ndarray

SLACK = 1e-9  # m: a cable that is shorter by more is slack
_NUMBERS = ("stiffness", "rest", "damping")
LOWER, UPPER = "lower", "upper"


class Gates:
    """Numbers or symbols of all gates of a robot in a traced program; without gates the state decides on contacts."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: Any = None


@dataclass(frozen=True, kw_only=True)
class Gated:
    """A force whose case depends on gates of a run: the number of its first gate, and all gates."""

    gate: int = -1
    gates: Gates | None = field(default=None, compare=False)

    @property
    def is_gated(self) -> bool:
        """Whether gates decide its case instead of the state."""
        return self.gates is not None and self.gates.values is not None

    def input(self, number: int = 0) -> Any:
        """Return the value of one of its gates."""
        assert self.gates is not None
        return self.gates.values[self.gate + number]


@dataclass(frozen=True)
class JointTerms:
    """Terms in the row of a joint with one axis: motor, friction, spring, damper and stop."""

    motor_inertia: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    damper: float = 0.0
    idle: bool = False  # a spring is there, but left out
    width: float = 0.0  # rate at which Coulomb friction has 0.7 of its value; 0: it is a sign
    stop: JointStop | None = None  # at its limits, in runs where stops act
    static: float = 0.0  # what Coulomb friction bears at rest, in runs where joints stick
    rubbing: StictionJoint | None = None  # in runs where the joint may stick
    more_viscous: float = 0.0  # by which viscous friction is larger for positive rates, and smaller for negative ones
    more_coulomb: float = 0.0  # the same of Coulomb friction
    offset: float = 0.0  # what the motor gives at any rate, e.g. the offset of its amplifier

    @property
    def rubs(self) -> bool:
        """Whether it has Coulomb friction."""
        return bool(self.coulomb or self.static)

    @property
    def bears(self) -> float:
        """Largest friction effort at zero velocity."""
        return max(self.static, self.coulomb)

    def friction(self, rate: Any) -> Any:
        """Return the Coulomb friction along the rate; at zero velocity nothing, or the given effort in runs."""
        if self.rubbing is not None and self.rubbing.is_gated:
            effort = self.rubbing.input()
            return effort + self.more_coulomb if self.more_coulomb else effort
        side = smooth_sign(rate, self.width)
        effort = self.coulomb * side
        return effort + self.more_coulomb * (side * side) if self.more_coulomb else effort

    def viscous_friction(self, rate: Any) -> Any:
        """Return the viscous friction along the rate."""
        effort = self.viscous * rate
        return effort + self.more_viscous * (rate * smooth_sign(rate, self.width)) if self.more_viscous else effort

    @property
    def inertia(self) -> Any:
        """Inertia of the rotor, with the inertia that holds the joint while it sticks."""
        gated = self.rubbing is not None and self.rubbing.is_gated
        return self.motor_inertia + self.rubbing.input(1) if gated else self.motor_inertia  # type: ignore[union-attr]

    @property
    def inert(self) -> bool:
        """Whether it has an inertia."""
        return bool(self.motor_inertia) or (self.rubbing is not None and self.rubbing.is_gated)


@dataclass(frozen=True)
class StictionJoint(Gated):
    """A joint that may stick."""

    count: ClassVar[int] = 2  # inputs: what friction takes along the rate, and the inertia that holds the joint


@dataclass(frozen=True, eq=False, repr=False)
class CoupledJoints:
    """Joints of a rigid or elastic coupling: a coordinate less ratios times others is an offset.

    Transmitted power loses the share 1 - efficiency.
    """

    name: str
    joints: tuple[str, ...]  # the one that follows first
    numbers: tuple[int, ...]  # of their links
    positions: tuple[int, ...]
    rates: tuple[int, ...]
    coefficients: tuple[Any, ...]  # 1, and minus the ratios
    offset: Any
    efficiency: float = 1.0  # of what passes from the others to the joint
    back: float = 1.0  # of what passes from the joint to the others
    width: float = 0.0  # rate of the others at which a loss has 0.7 of its value; 0: it changes at once

    def stretch(self, q: Any) -> Any:
        """Return the deviation of the joint from the position that the others define, in its unit."""
        return sum(c * q[k] for c, k in zip(self.coefficients, self.positions, strict=True)) - self.offset

    def along(self, rates: Any) -> Any:
        """Return the rate or acceleration of the deviation."""
        return sum(c * rates[k] for c, k in zip(self.coefficients, self.rates, strict=True))

    @property
    def lossy(self) -> bool:
        """Whether the coupling loses power."""
        return self.efficiency < 1 or self.back < 1

    @property
    def others(self) -> list[tuple[Any, int]]:
        """Coefficients and rates of the joints that the first joint follows."""
        return list(zip(self.coefficients, self.rates, strict=True))[1:]

    def turning(self, qd: Any) -> Any:
        """Return the direction in which the others move the joint at all rates `qd`."""
        speed = -sum(c * qd[k] for c, k in self.others)
        return smooth_sign(speed, self.width * max(abs(c) for c, _ in self.others) if self.width else 0.0)


@dataclass(frozen=True)
class CoupledSpring(CoupledJoints):
    """A spring on the stretch of a coupling, theory (43).

    `play` is the backlash: within it no force acts, and a tooth side pushes but does not pull.
    """

    stiffness: float = 0.0
    damping: float = 0.0
    play: float = 0.0
    pulls_only: bool = False  # the joint is the length of a cable: it is slack while it is shorter
    flanks: tuple[Contact, Contact] | None = None  # below and above, in a run, which finds when they meet

    def pressed(self, q: Any) -> Any:
        """Return the part of the stretch beyond the backlash."""
        stretch = self.stretch(q)
        if self.pulls_only:
            return positive_part(stretch)
        if not self.play:
            return stretch
        beyond = stretch * np.sign(stretch) - self.play / 2
        return np.sign(stretch) * positive_part(beyond)

    def slack(self, q: Array) -> bool:
        """Return whether it is a slack cable."""
        return self.pulls_only and float(self.stretch(q)) < -SLACK

    def effort(self, q: Any, qd: Any) -> Any:
        """Return the restoring effort on the joint."""
        if self.flanks is not None and self.flanks[0].is_gated:
            below, above = (contact.force(depth, rate) for contact, depth, rate in self.contacts(q, qd))
            return above - below
        pressed = self.pressed(q)
        effort = self.stiffness * pressed + self.damping * self.along(qd)
        if self.pulls_only and self.damping != 0:
            return pulling_part(effort, self.stretch(q))
        side = np.sign(pressed) if self.play else None
        return effort if side is None else side * positive_part(side * effort)

    @property
    def has_flanks(self) -> bool:
        """Whether it pushes on one side only, at each end of its backlash."""
        return bool(self.play and self.stiffness)

    def contacts(self, q: Any, qd: Any) -> list[tuple[Contact, Any, Any]]:
        """Return both contacts with their depths and rates."""
        assert self.flanks is not None
        stretch, rate, half = self.stretch(q), self.along(qd), self.play / 2
        return [(self.flanks[0], -stretch - half, -rate), (self.flanks[1], stretch - half, rate)]

    def add_to(self, forces: Array, q: Any, qd: Any) -> None:
        """Add the forces along all rates that drive the joints against the spring."""
        effort = self.effort(q, qd)
        effort_on_others = effort + self._lost(effort, qd) if self.lossy else effort
        for n, (c, k) in enumerate(zip(self.coefficients, self.rates, strict=True)):
            forces[k] = forces[k] + c * (effort_on_others if n else effort)

    def _lost(self, effort: Any, qd: Any) -> Any:
        """Return the additional effort on the others by losses."""
        return effort * gear_loss(self.turning(qd), -np.sign(effort), self.efficiency, self.back)

    def numbers_in(self) -> dict[str, float]:
        """Return the numbers in which robots of a family may differ; backlash and losses shape the program."""
        stem = f"spring[{self.name},{float(self.play)},{float(self.efficiency)},{float(self.back)},{self.pulls_only}"
        coefficients = {f"{stem},{joint}]": c for joint, c in zip(self.joints, self.coefficients, strict=True)}
        return coefficients | {
            f"{stem},.{key}]": float(getattr(self, key)) for key in ("offset", "stiffness", "damping")
        }

    def with_numbers(self, symbols: Mapping[str, Any]) -> CoupledSpring:
        """Return the spring with symbols in place of some numbers."""
        names = list(self.numbers_in())
        parts = (*self.coefficients, self.offset, self.stiffness, self.damping)
        values = [symbols.get(name, part) for name, part in zip(names, parts, strict=True)]
        c, (offset, stiffness, damping) = tuple(values[:-3]), values[-3:]
        return replace(self, coefficients=c, offset=offset, stiffness=stiffness, damping=damping)

    def energy(self, q: Any) -> Any:
        """Return the energy stored in the loaded contact."""
        pressed = self.pressed(q)
        return 0.5 * self.stiffness * (pressed * pressed)

    def lost_power(self, q: Any, qd: Any) -> Any:
        """Return the power dissipated by damper and losses."""
        effort = self.effort(q, qd)
        power = (effort - self.stiffness * self.pressed(q)) * self.along(qd)
        if self.lossy:
            power = power + self._lost(effort, qd) * sum(c * qd[k] for c, k in self.others)
        return power


def coupled_spring(coupling: CouplingTable, links: Sequence[Link]) -> CoupledSpring:
    """Return the spring of a coupling of the file; a rigid coupling has no stiffness."""
    names = (coupling.joint, *coupling.others)
    numbers = tuple(next(j for j, link in enumerate(links) if link.name == name) for name in names)
    coupled_links = [links[j] for j in numbers]
    ratios = ratios_of(coupling, coupled_links[0].joint.unit == "m")
    return CoupledSpring(
        coupling.name,
        names,
        numbers,
        tuple(link.q.start for link in coupled_links),
        tuple(link.v.start for link in coupled_links),
        (1.0, *(-ratios[name] for name in coupling.others)),
        coupling.offset,
        coupling.efficiency,
        coupling.back,
        stiffness=coupling.stiffness or 0.0,
        damping=coupling.damping,
        play=coupling.backlash,
        pulls_only=coupled_links[0].pulls_only,
    )


def ratios_of(coupling: CouplingTable, joint_slides: bool) -> dict[str, float]:
    """Return the ratios of the others; for a screw the travel per radian, or the angle per metre."""
    if coupling.lead is None:
        return dict(coupling.terms)
    metres_per_radian = coupling.lead / (2 * math.pi)
    return {coupling.others[0]: metres_per_radian if joint_slides else 1 / metres_per_radian}


@dataclass(frozen=True)
class Curve:
    """A function by points: cubic pieces with continuous slope, linear beyond the first and last point.

    Slopes at the points are weighted harmonic means, zero at extrema, so the curve does not overshoot. The function
    is a sum over the pieces, each constant outside its own interval, so that symbols need no case distinction.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]

    @property
    def slopes(self) -> Array:
        """Slopes at the points."""
        h, secants = np.diff(self.x), np.diff(self.y) / np.diff(self.x)
        if len(secants) == 1:
            return np.repeat(secants, 2)
        slopes: Array = np.zeros(len(self.x), dtype=scalar_type(secants, h))
        slopes[0] = _end_slope(h[0], h[1], secants[0], secants[1])
        slopes[-1] = _end_slope(h[-1], h[-2], secants[-1], secants[-2])
        for k in range(1, len(self.x) - 1):
            before, after = secants[k - 1], secants[k]
            if before * after > 0:
                w1, w2 = 2 * h[k] + h[k - 1], h[k] + 2 * h[k - 1]
                slopes[k] = (w1 + w2) / (w1 / before + w2 / after)
        return slopes

    def _pieces(self, x: Any) -> list[tuple[Any, float, float, tuple[float, float, float]]]:
        """Return for each piece the position of x in it (0 to 1), width, rise, and cubic as a t + b t^2 + c t^3."""
        m, pieces = self.slopes.tolist(), []
        for k in range(len(self.x) - 1):
            h, rise = self.x[k + 1] - self.x[k], self.y[k + 1] - self.y[k]
            t = (positive_part(x - self.x[k]) - positive_part(x - self.x[k + 1])) / h
            a, b = h * m[k], h * m[k + 1]
            pieces.append((t, h, rise, (a, 3 * rise - 2 * a - b, a + b - 2 * rise)))
        return pieces

    def value(self, x: Any) -> Any:
        """Return the function over any scalar."""
        m = self.slopes.tolist()
        total = self.y[0] - m[0] * positive_part(self.x[0] - x) + m[-1] * positive_part(x - self.x[-1])
        for t, _, _, (a, b, c) in self._pieces(x):
            total = total + t * (a + t * (b + t * c))
        return total

    def integral(self, x: Any) -> Any:
        """Return its integral from the first point."""
        m, below, above = self.slopes.tolist(), positive_part(self.x[0] - x), positive_part(x - self.x[-1])
        total = self.y[0] * (x - self.x[0]) + 0.5 * m[0] * (below * below) + 0.5 * m[-1] * (above * above)
        for k, (t, h, rise, (a, b, c)) in enumerate(self._pieces(x)):
            total = total + h * (t * t * (a / 2 + t * (b / 3 + t * (c / 4)))) + rise * positive_part(x - self.x[k + 1])
        return total


@dataclass(frozen=True, eq=False, repr=False)
class PointElement(Record):
    """A force along the line between two places, by its length and rate; tension is positive, theory (44)."""

    name: str
    kind: str
    first: Place = field(repr=False)
    second: Place = field(repr=False)
    stiffness: Any = 0.0
    rest: Any = 0.0
    damping: Any = 0.0
    curve: Curve | None = None  # tension over length, in the place of stiffness and rest
    speed_curve: Curve | None = None  # tension over rate of length, added
    acts: bool = True  # else it is there, but left out
    contact: Contact | None = None  # of a cable in a run, which finds when it becomes taut

    @property
    def pulls_only(self) -> bool:
        """Whether it is slack below its rest length and never pushes."""
        return self.kind == "cable"

    @property
    def smooth_at_zero(self) -> bool:
        """Whether the force is defined for coincident points: a plain spring with zero rest length."""
        plain = self.curve is None and self.speed_curve is None and not self.pulls_only
        return not self.acts or (plain and self.rest == 0 and self.damping == 0)

    def stored(self, length: Any) -> Any:
        """Return the conservative part of the tension."""
        if not self.acts:
            return 0.0
        if self.curve is not None:
            return self.curve.value(length)
        return self.stiffness * (positive_part(length - self.rest) if self.pulls_only else length - self.rest)

    def tension(self, length: Any, rate: Any) -> Any:
        """Return the tension at a length and rate."""
        tension = self.stored(length)
        if not self.acts:
            return tension
        if self.contact is not None and self.contact.is_gated:
            return self.contact.force(length - self.rest, rate)
        if self.damping != 0:
            tension = tension + self.damping * rate
        if self.speed_curve is not None:
            tension = tension + self.speed_curve.value(rate)
        return pulling_part(tension, length - self.rest) if self.pulls_only and self.damping != 0 else tension

    def energy(self, length: Any) -> Any:
        """Return the energy stored at a length, for a table relative to its first point."""
        if not self.acts:
            return 0.0
        if self.curve is not None:
            return self.curve.integral(length)
        stretch = positive_part(length - self.rest) if self.pulls_only else length - self.rest
        return 0.5 * self.stiffness * (stretch * stretch)

    def lost_power(self, length: Any, rate: Any) -> Any:
        """Return the power dissipated by the rate-dependent part; negative if it drives."""
        return (self.tension(length, rate) - self.stored(length)) * rate

    def slack(self, length: float) -> bool:
        """Return whether it is a slack cable."""
        return self.acts and self.pulls_only and length < float(self.rest)

    def undamped(self) -> PointElement:
        """Return the element without its rate-dependent part."""
        return replace(self, damping=0.0, speed_curve=None)

    def idle(self) -> PointElement:
        """Return the element without force."""
        return replace(self, acts=False)

    def numbers_in(self) -> dict[str, float]:
        """Return the numbers in which robots of a family may differ; tables shape the program."""
        shape = (self.kind, self.acts, self.curve, self.speed_curve, bool(self.damping), bool(self.rest))
        return {f"element[{self.name},{shape},{key}]": float(getattr(self, key)) for key in _NUMBERS}

    def with_numbers(self, symbols: Mapping[str, Any], end: Callable[[Place], Place]) -> PointElement:
        """Return the element with symbols in place of some numbers, between other places."""
        names = zip(_NUMBERS, self.numbers_in(), strict=True)
        values = {key: symbols.get(name, getattr(self, key)) for key, name in names}
        return replace(self, first=end(self.first), second=end(self.second), **values)


def curve_of(points: Sequence[Sequence[float]]) -> Curve | None:
    """Return the curve through points of the file, or None."""
    return Curve(tuple(p[0] for p in points), tuple(p[1] for p in points)) if points else None


def _end_slope(h0: float, h1: float, secant: float, next_secant: float) -> float:
    """Return the slope at an end by three points, limited to avoid overshoot."""
    slope = ((2 * h0 + h1) * secant - h0 * next_secant) / (h0 + h1)
    if slope * secant <= 0:
        return 0.0
    return 3 * secant if secant * next_secant < 0 and abs(slope) > 3 * abs(secant) else slope


@dataclass(frozen=True)
class Contact(Gated):
    """A contact that pushes with k depth + c rate at positive depth, never pulls; theory (51).

    A damped contact has a second gate, which follows its depth.
    """

    stiffness: float
    damping: float = 0.0

    @property
    def count(self) -> int:
        """Number of its gates."""
        return 2 if self.damping else 1

    @property
    def told(self) -> int:
        """Gate that opens at positive depth."""
        return self.gate + self.count - 1

    def force(self, depth: Any, rate: Any) -> Any:
        """Return the contact force."""
        force = self.stiffness * depth + self.damping * rate if self.damping else self.stiffness * depth
        if self.is_gated:
            return self.input() * force
        inside = (1 + np.sign(depth)) / 2
        return inside * positive_part(force) if self.damping else positive_part(force)

    def energy(self, depth: Any) -> Any:
        """Return the stored energy."""
        inside = positive_part(depth)
        return 0.5 * self.stiffness * (inside * inside)

    def lost_power(self, depth: Any, rate: Any) -> Any:
        """Return the power of the damper, or of the stored energy after separation inside the contact."""
        return (self.force(depth, rate) - self.stiffness * positive_part(depth)) * rate if self.damping else 0.0

    def gaps(self, depth: Any, rate: Any) -> list[tuple[Any, Any]]:
        """Return for each gate the number whose sign it follows, and its rate (0 if unknown)."""
        if not self.damping:
            return [(depth, rate)]
        lag, pushes = self.damping / self.stiffness, self.input()
        closing = (rate - rate * np.sign(rate)) / 2  # a contact at rest opens where its depth does
        pushing = depth + lag * (pushes * rate + (1 - pushes) * closing)
        return [(pushing, (1 - pushes) * rate), (depth, rate)]


class StopSide(NamedTuple):
    """One side of a stop: its contact, and depth and rate of the joint in it."""

    name: str
    sign: int  # of the rates with which the joint goes in
    contact: Contact
    depth: Any
    rate: Any


@dataclass(frozen=True)
class JointStop:
    """Stops at both limits of a joint with one axis."""

    limits: tuple[float, float]
    below: Contact
    above: Contact

    def sides(self, q: Any, qd: Any) -> list[StopSide]:
        """Return both sides."""
        low, high = self.limits
        return [StopSide(LOWER, -1, self.below, low - q, -qd), StopSide(UPPER, 1, self.above, q - high, qd)]

    def effort(self, q: Any, qd: Any) -> Any:
        """Return the effort of the stop along the coordinate of the joint."""
        low, high = (side.contact.force(side.depth, side.rate) for side in self.sides(q, qd))
        return low - high

    def energy(self, q: Any) -> Any:
        """Return the energy stored in both sides."""
        low, high = (side.contact.energy(side.depth) for side in self.sides(q, 0.0 * q))
        return low + high

    def lost_power(self, q: Any, qd: Any) -> Any:
        """Return the power dissipated in both sides."""
        low, high = (side.contact.lost_power(side.depth, side.rate) for side in self.sides(q, qd))
        return low + high


def joint_stop(limits: tuple[float, float], stiffness: float, damping: float) -> JointStop:
    """Return the stop of a joint of the file."""
    contact = Contact(stiffness, damping)
    return JointStop(limits, contact, contact)


def with_gates(tree: Tree) -> Tree:
    """Return the tree with new gates for all its contacts: of stops, cables and couplings, in tree order.

    The inputs of joints that may stick follow.
    """
    gates = Gates(0)

    def gated(contact: Any) -> Any:
        """Return the contact, or the friction of a joint, with the next gates."""
        gates.count += contact.count
        return replace(contact, gate=gates.count - contact.count, gates=gates)

    links: list[Link] = []
    for link in tree.links:
        stop = link.terms.stop
        if stop is not None:
            stop = replace(stop, below=gated(stop.below), above=gated(stop.above))
            link = replace(link, terms=replace(link.terms, stop=stop))
        links.append(link)
    elements, springs = list(tree.elements), list(tree.springs)
    for k, element in enumerate(elements):
        if element.acts and element.pulls_only:
            elements[k] = replace(element, contact=gated(Contact(element.stiffness, element.damping)))
    for k, spring in enumerate(springs):
        if spring.has_flanks:
            contact = Contact(spring.stiffness, spring.damping)
            springs[k] = replace(spring, flanks=(gated(contact), gated(contact)))
    for k, link in enumerate(links):
        if link.terms.rubbing is not None:
            links[k] = replace(link, terms=replace(link.terms, rubbing=gated(link.terms.rubbing)))
    return replace(tree, links=tuple(links), elements=tuple(elements), springs=tuple(springs), gates=gates)


def has_contacts(tree: Tree) -> bool:
    """Return whether any element acts on one side only."""
    cables = any(element.acts and element.pulls_only for element in tree.elements)
    flanks = any(spring.has_flanks for spring in tree.springs)
    return cables or flanks or any(link.terms.stop is not None for link in tree.links)


class GatedContact(NamedTuple):
    """A contact of the tree, and the meaning of its depth gate."""

    kind: str  # "stop", "cable" or "flank"
    name: str
    side: str
    contact: Contact


def gated_contacts(tree: Tree) -> Iterator[GatedContact]:
    """Return all contacts with gates, in gate order."""
    for link in tree.links:
        if link.terms.stop is not None:
            yield GatedContact("stop", link.name, LOWER, link.terms.stop.below)
            yield GatedContact("stop", link.name, UPPER, link.terms.stop.above)
    for element in tree.elements:
        if element.contact is not None:
            yield GatedContact("cable", element.name, UPPER, element.contact)
    for spring in tree.springs:
        if spring.flanks is not None:
            yield GatedContact("flank", spring.name, LOWER, spring.flanks[0])
            yield GatedContact("flank", spring.name, UPPER, spring.flanks[1])


def positive_part(value: Any) -> Any:
    """Return the value if it is positive, else zero."""
    return (value + value * np.sign(value)) / 2


def pulling_part(tension: Any, stretch: Any) -> Any:
    """Return the tension of a damped cable, slack below its rest length and never pushing."""
    return (1 + np.sign(stretch)) / 2 * positive_part(tension)


def smooth_sign(speed: Any, width: Any) -> Any:
    """Return the sign of a speed, or a smooth curve through zero of a given width."""
    return speed / np.sqrt(speed * speed + width * width) if width else np.sign(speed)


def gear_loss(direction: Any, side: Any, efficiency: float, back: float) -> Any:
    """Return the additional effort on the others per effort on the joint by losses, theory (49).

    `direction` is that of the motion of the joint and `side` that of the effort on it. If both agree, the others
    drive the joint with 1/efficiency times the effort; otherwise they receive `back` times the effort; at zero
    velocity nothing is lost.
    """
    driving_loss, backdriving_loss = 1 / efficiency - 1, 1 - back
    return direction * (direction * (driving_loss - backdriving_loss) + side * (driving_loss + backdriving_loss)) / 2
