"""Contacts: springs and dampers that push while a depth is positive and never pull; stops of joints.

Whether a contact pushes changes in a moment. A run in time finds these moments: while a step is computed, the contacts
are as their gates say, 1 or 0, so that forces stay smooth; the step ends where a gap changes its sign, and the gate
with it. Without gates, a contact pushes where its state says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from parflex.tree.link_tree import Tree

LOWER, UPPER = "lower", "upper"


class Gates:
    """Numbers or symbols of all gates of a robot while a program is traced; None: states say which contacts push."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: Any = None


@dataclass(frozen=True)
class Contact:
    """Pushes with k depth + c rate, but not below zero, where the depth is positive; theory (51)."""

    stiffness: float
    damping: float = 0.0
    gate: int = -1  # among the gates of a run; a damped contact has one more behind it, which tells its depth alone
    gates: Gates | None = field(default=None, compare=False)

    @property
    def count(self) -> int:
        """Number of its gates."""
        return 2 if self.damping else 1

    @property
    def told(self) -> int:
        """The gate that opens where the depth becomes positive."""
        return self.gate + self.count - 1

    @property
    def gated_now(self) -> bool:
        """Whether its gate, and not its state, says that it pushes."""
        return self.gates is not None and self.gates.values is not None

    def force(self, depth: Any, rate: Any) -> Any:
        """What it pushes with."""
        push = self.stiffness * depth + self.damping * rate if self.damping else self.stiffness * depth
        if self.gates is not None and self.gated_now:
            return self.gates.values[self.gate] * push
        inside = (1 + np.sign(depth)) / 2
        return inside * positive(push) if self.damping else positive(push)

    def energy(self, depth: Any) -> Any:
        """What is stored."""
        inside = positive(depth)
        return 0.5 * self.stiffness * (inside * inside)

    def lost_power(self, depth: Any, rate: Any) -> Any:
        """Power that the damper takes; where the contact has let go inside, what it still stores on its way out."""
        return (self.force(depth, rate) - self.stiffness * positive(depth)) * rate if self.damping else 0.0

    def gaps(self, depth: Any, rate: Any) -> list[tuple[Any, Any]]:
        """Of each gate the number whose sign it follows, and the rate of that where it is known (else 0)."""
        if not self.damping:
            return [(depth, rate)]
        assert self.gates is not None and self.gates.values is not None
        lag, pushes = self.damping / self.stiffness, self.gates.values[self.gate]
        closing = (rate - rate * np.sign(rate)) / 2  # a contact at rest opens where its depth does
        pushing = depth + lag * (pushes * rate + (1 - pushes) * closing)
        return [(pushing, (1 - pushes) * rate), (depth, rate)]

    def gated(self, gate: int, gates: Gates) -> Contact:
        """The same with a place among gates."""
        return replace(self, gate=gate, gates=gates)


class Side(NamedTuple):
    """One side of a stop: its contact, and how deep and how fast the joint is in it."""

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

    def sides(self, q: Any, qd: Any) -> list[Side]:
        """Both of them."""
        low, high = self.limits
        return [Side(LOWER, -1, self.below, low - q, -qd), Side(UPPER, 1, self.above, q - high, qd)]

    def effort(self, q: Any, qd: Any) -> Any:
        """What the stop puts on the joint, along its coordinate."""
        low, high = (side.contact.force(side.depth, side.rate) for side in self.sides(q, qd))
        return low - high

    def energy(self, q: Any) -> Any:
        """Stored in both."""
        low, high = (side.contact.energy(side.depth) for side in self.sides(q, 0.0 * q))
        return low + high

    def lost_power(self, q: Any, qd: Any) -> Any:
        """Taken by both."""
        low, high = (side.contact.lost_power(side.depth, side.rate) for side in self.sides(q, qd))
        return low + high


def joint_stop(limits: tuple[float, float], stiffness: float, damping: float) -> JointStop:
    """The stop of a joint of the file."""
    contact = Contact(stiffness, damping)
    return JointStop(limits, contact, contact)


def with_gates(tree: Tree) -> Tree:
    """The tree with new gates for all its contacts: of stops, cables and flanks of gears, in the order of the tree.

    Behind them stand the inputs of joints that may stick.
    """
    gates, place, links = Gates(0), 0, list[Any]()
    for link in tree.links:
        stop = link.terms.stop
        if stop is not None:
            below = stop.below.gated(place, gates)
            above = stop.above.gated(place + below.count, gates)
            place += below.count + above.count
            link = replace(link, terms=replace(link.terms, stop=replace(stop, below=below, above=above)))
        links.append(link)
    elements = []
    for element in tree.elements:
        if element.acts and element.pulls_only:
            contact = Contact(element.stiffness, element.damping).gated(place, gates)
            place += contact.count
            element = replace(element, contact=contact)
        elements.append(element)
    springs = []
    for spring in tree.springs:
        if spring.has_flanks:
            below = Contact(spring.stiffness, spring.damping).gated(place, gates)
            above = below.gated(place + below.count, gates)
            place += 2 * below.count
            spring = replace(spring, flanks=(below, above))
        springs.append(spring)
    for k, link in enumerate(links):
        if link.terms.rubbing is not None:
            rubbing = replace(link.terms.rubbing, gate=place, gates=gates)
            links[k] = replace(link, terms=replace(link.terms, rubbing=rubbing))
            place += rubbing.count
    gates.count = place
    return replace(tree, links=tuple(links), elements=tuple(elements), springs=tuple(springs), gates=gates)


def has_contacts(tree: Tree) -> bool:
    """Whether something in it pushes or pulls on one side alone."""
    cables = any(element.acts and element.pulls_only for element in tree.elements)
    flanks = any(spring.has_flanks for spring in tree.springs)
    return cables or flanks or any(link.terms.stop is not None for link in tree.links)


class Watched(NamedTuple):
    """A contact of the tree, and what the gate that tells its depth means."""

    kind: str  # "stop", "cable" or "flank"
    name: str
    side: str
    contact: Contact


def watched(tree: Tree) -> Iterator[Watched]:
    """All contacts with gates, in the order of these."""
    for link in tree.links:
        if link.terms.stop is not None:
            yield Watched("stop", link.name, LOWER, link.terms.stop.below)
            yield Watched("stop", link.name, UPPER, link.terms.stop.above)
    for element in tree.elements:
        if element.contact is not None:
            yield Watched("cable", element.name, UPPER, element.contact)
    for spring in tree.springs:
        if spring.flanks is not None:
            yield Watched("flank", spring.name, LOWER, spring.flanks[0])
            yield Watched("flank", spring.name, UPPER, spring.flanks[1])


def positive(value: Any) -> Any:
    """The value where it is positive, else zero."""
    return (value + value * np.sign(value)) / 2
