"""The numbered tree: moving links with their coordinates, and named places fixed to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from parflex.bodies import RigidBody
from parflex.tree.joints import Joint

Array = np.ndarray
GROUND = -1


@dataclass(frozen=True)
class JointTerms:
    """What acts in the row of a joint with one axis."""

    motor_inertia: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    damper: float = 0.0


@dataclass(frozen=True)
class Link:
    """A moving link: where it is mounted, the joint that carries it, its body and its slices of the coordinates."""

    name: str
    parent: int
    rotation: Array = field(repr=False)
    position: Array = field(repr=False)
    joint: Joint = field(repr=False)
    body: RigidBody = field(repr=False)
    q: slice
    v: slice
    start: Array = field(repr=False)
    terms: JointTerms = field(default=JointTerms(), repr=False)
    limits: tuple[float, float] | None = None
    leg: str | None = None


@dataclass(frozen=True)
class Place:
    """A named frame fixed to a link (or to the ground), at `position`, turned by `rotation`."""

    link: int
    rotation: Array = field(repr=False)
    position: Array = field(repr=False)


@dataclass(frozen=True)
class Tree:
    """Links in an order in which parents come first."""

    links: tuple[Link, ...]
    places: dict[str, Place]
    gravity: Array
    planar: bool
    end_effector: str

    @cached_property
    def nq(self) -> int:
        """Number of position coordinates (a quaternion has four)."""
        return self.links[-1].q.stop if self.links else 0

    @cached_property
    def n(self) -> int:
        """Number of rates."""
        return self.links[-1].v.stop if self.links else 0

    @cached_property
    def position_names(self) -> tuple[str, ...]:
        """Names of the position coordinates."""
        return tuple(_join(link.name, label) for link in self.links for label in link.joint.position_labels)

    @cached_property
    def rate_names(self) -> tuple[str, ...]:
        """Names of the rates."""
        return tuple(_join(link.name, label) for link in self.links for label in link.joint.rate_labels)

    @cached_property
    def link_of_rate(self) -> tuple[int, ...]:
        """The link that each rate belongs to."""
        return tuple(j for j, link in enumerate(self.links) for _ in link.joint.rate_labels)

    @cached_property
    def start(self) -> Array:
        """Start values of all position coordinates."""
        return np.concatenate([link.start for link in self.links]) if self.links else np.zeros(0)

    @cached_property
    def length(self) -> float:
        """A length typical of the robot, which weighs rotations against translations."""
        sizes = [float(np.linalg.norm(link.position)) for link in self.links]
        sizes += [float(np.linalg.norm(place.position)) for place in self.places.values()]
        sizes += [abs(float(link.start[0])) for link in self.links if link.joint.kind == "prismatic"]
        return max(sizes, default=0.0) or 1.0

    @cached_property
    def rate_units(self) -> Array:
        """1 for a turning rate, the typical length for a sliding one: rates divided by it compare."""
        units = np.ones(self.n)
        for link in self.links:
            units[link.v] = np.where(np.abs(link.joint.S_v).max(axis=0) > 0, self.length, 1.0)
        return units

    def moved(self, q: Array, step: Array) -> Array:
        """Positions after an increment along the rates."""
        return np.concatenate([link.joint.moved(q[link.q], step[link.v]) for link in self.links])

    def path(self, link: int) -> list[int]:
        """The links from this one down to the ground."""
        links = []
        while link != GROUND:
            links.append(link)
            link = self.links[link].parent
        return links

    def number(self, name: str) -> int:
        """Number of the link of this name."""
        return next(j for j, link in enumerate(self.links) if link.name == name)


def _join(name: str, label: str) -> str:
    return f"{name}.{label}" if label else name
