"""Compute energies, forces between two points, and contact depths and rates, over any scalar.

A new kind of contact gets an entry in `contact_depths`, in the order in which `with_gates` numbers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from parflex.errors import SingularError
from parflex.records import Unpacked
from parflex.recursion.kinematics import Motion, Pose, motion
from parflex.spatial.rotations import cross
from parflex.tree.force_elements import Contact, PointElement
from parflex.tree.tree import GROUND, Place, Tree

Array = np.ndarray

LinkWrench = tuple[Array, ...]  # force, moment, and inside a body the forces along its elastic coordinates

LinkWrenches = dict[int, LinkWrench]  # at the origins of links, in their axes

TOGETHER = 1e-12  # m: points nearer to each other have no line between them


@dataclass(frozen=True, eq=False, repr=False)
class Energies(Unpacked):
    """Energies of a robot in J; unpacks as (kinetic, potential).

    Attributes
    ----------
    kinetic : Any
        Of bodies and of motor inertia (J).
    elastic : Any
        Of flexible bodies and springs (J).
    gravity : Any
        Counted from the origin of the world (J).
    """

    _unpacked: ClassVar = ("kinetic", "potential")
    kinetic: Any  # J, of bodies and of the inertia of motors
    elastic: Any  # J, of flexible bodies and of springs
    gravity: Any  # J, counted from the origin of the world

    @property
    def potential(self) -> Any:
        """Elastic energy and energy of gravity, J."""
        return self.elastic + self.gravity


def energies(tree: Tree, at: Pose, qd: Array, moving: Motion | None = None) -> Energies:
    """Return energies at all rates of the tree; `moving` is a motion with these rates, if known."""
    kinetic = kinetic_energy(tree, at, qd, moving)
    elastic: Any = 0.0
    gravity: Any = 0.0
    for j, link in enumerate(tree.links):
        e = at.q[link.e]
        elastic = elastic + link.body.strain_energy(e)
        S, _ = link.body.deformed(e)
        gravity = gravity - tree.gravity @ (link.body.m * at.position[j] + at.rotation[j] @ S)
        if link.joint.one_axis:
            stretch = at.q[link.q.start] - link.terms.rest
            elastic = elastic + 0.5 * link.terms.stiffness * (stretch * stretch)
            if link.terms.stop is not None:
                elastic = elastic + link.terms.stop.energy(at.q[link.q.start])
    for spring in tree.springs:
        elastic = elastic + spring.energy(at.q)
    elastic = elastic + elements_energy(tree, at)
    return Energies(kinetic, elastic, gravity)


def kinetic_energy(tree: Tree, at: Pose, qd: Array, moving: Motion | None = None) -> Any:
    """Return the kinetic energy of bodies and motor inertias at all rates of the tree."""
    moving = moving or motion(tree, at, qd, np.zeros(tree.n))
    total: Any = 0.0
    for j, link in enumerate(tree.links):
        total = total + link.body.kinetic_energy(moving.v[j], moving.w[j], at.q[link.e], qd[link.e_v])
        if link.joint.one_axis:
            rate = qd[link.v.start]
            total = total + 0.5 * link.terms.motor_inertia * (rate * rate)
    return total


class Line(NamedTuple):
    """A line from the first to the second place in world axes, its length, and its rate in a motion."""

    across: Array
    length: Any
    rate: Any


def line_between(at: Pose, ends: tuple[Place, Place], name: str, moving: Motion | None = None) -> Line:
    """Return the line between two places; raise if they coincide."""
    across = at.of(ends[1])[1] - at.of(ends[0])[1]
    length = np.sqrt(across @ across)
    size = getattr(length, "value", length)
    if isinstance(size, float) and size <= TOGETHER:
        raise SingularError(
            f"the two points of the element '{name}' meet, so its direction is not defined",
            key=f"element '{name}'",
            value=name,
            hint="choose another pose, or other points",
        )
    rate = 0.0 if moving is None else across @ relative_velocity(at, ends, moving) / length
    return Line(across, length, rate)


def distance(at: Pose, ends: tuple[Place, Place]) -> Any:
    """Return the distance of two places, which may coincide."""
    across = at.of(ends[1])[1] - at.of(ends[0])[1]
    return np.sqrt(across @ across)


def relative_velocity(at: Pose, ends: tuple[Place, Place], moving: Motion) -> Array:
    """Return the velocity of the second place less that of the first, in world axes."""
    first, second = (at.of(end)[0] @ moving.of(end)[0] for end in ends)
    return second - first


def line_wrench(at: Pose, element: PointElement, moving: Motion | None) -> Array:
    """Return the force on the first place in world axes, towards the second in tension."""
    ends = (element.first, element.second)
    if element.smooth_at_zero:
        return element.stiffness * (at.of(ends[1])[1] - at.of(ends[0])[1]) if element.acts else np.zeros(3)
    across, length, rate = line_between(at, ends, element.name, moving)
    return element.tension(length, rate) / length * across


def wrench_on_link(at: Pose, place: Place, force: Array, moment: Array | None = None) -> LinkWrench:
    """Return a world force and moment at a place as a wrench at the origin of its link, in its axes.

    Places inside bodies also have forces along the elastic coordinates, by the transposed Jacobian of the place.
    """
    R = at.rotation[place.link]
    local, turn = R.T @ force, None if moment is None else R.T @ moment
    inner = place.inner
    if inner is None:
        arm = cross(place.position, local)
        return local, arm if turn is None else turn + arm
    turned, r = at.bent(inner)
    turn = cross(turned @ place.position, local) + (0.0 if turn is None else turn)
    bend = inner.node.Phi_d.T @ local + inner.node.Phi_r.T @ (inner.node.L(at.q[inner.e]).T @ turn)
    return local, turn + cross(r, local), bend


def wrenches_on_ends(at: Pose, ends: tuple[Place, Place], force: Array) -> LinkWrenches:
    """Return a force on the first place and its opposite on the second as wrenches on links."""
    result: LinkWrenches = {}
    for end, sign in zip(ends, (1.0, -1.0), strict=True):
        if end.link != GROUND:
            add_wrenches(result, {end.link: wrench_on_link(at, end, sign * force)})
    return result


def element_wrenches(tree: Tree, at: Pose, moving: Motion | None) -> LinkWrenches:
    """Return the wrenches of all elements on the links; without a motion at zero velocity."""
    total: LinkWrenches = {}
    for element in tree.elements:
        if element.acts:
            add_wrenches(total, wrenches_on_ends(at, (element.first, element.second), line_wrench(at, element, moving)))
    return total


def add_wrenches(total: LinkWrenches, added: Mapping[int, LinkWrench]) -> None:
    """Add wrenches on links in place."""
    for link, wrench in added.items():
        old = total.get(link)
        if old is not None:
            longest = max(old, wrench, key=len)
            wrench = (
                *(old_part + new_part for old_part, new_part in zip(old, wrench, strict=False)),
                *longest[min(len(old), len(wrench)) :],
            )
        total[link] = wrench


def elements_energy(tree: Tree, at: Pose) -> Any:
    """Return the energy stored in all elements."""
    total: Any = 0.0
    for element in tree.elements:
        if element.acts and element.smooth_at_zero:
            across = at.of(element.second)[1] - at.of(element.first)[1]
            total = total + 0.5 * element.stiffness * (across @ across)
        elif element.acts:
            total = total + element.energy(line_between(at, (element.first, element.second), element.name).length)
    return total


def elements_damping_power(tree: Tree, at: Pose, moving: Motion) -> Any:
    """Return the power dissipated by dampers between points."""
    total: Any = 0.0
    for element in tree.elements:
        if element.acts and (element.damping != 0 or element.speed_curve is not None):
            _, length, rate = line_between(at, (element.first, element.second), element.name, moving)
            total = total + element.lost_power(length, rate)
    return total


def contact_depths(tree: Tree, at: Pose, qd: Array) -> Iterator[tuple[Contact, Any, Any]]:
    """Return every contact with its depth and rate, in gate order."""
    for link in tree.links:
        if link.terms.stop is not None:
            for side in link.terms.stop.sides(at.q[link.q.start], qd[link.v.start]):
                yield side.contact, side.depth, side.rate
    cables = [element for element in tree.elements if element.contact is not None]
    moving = motion(tree, at, qd, np.zeros(tree.n)) if cables else None
    for element in cables:
        assert element.contact is not None
        _, length, rate = line_between(at, (element.first, element.second), element.name, moving)
        yield element.contact, length - element.rest, rate
    for spring in tree.springs:
        if spring.flanks is not None:
            yield from spring.contacts(at.q, qd)


def gate_values(tree: Tree, at: Pose, qd: Array) -> list[tuple[Any, Any]]:
    """Return the quantity that each gate follows, and its rate."""
    return [gap for contact, depth, rate in contact_depths(tree, at, qd) for gap in contact.gaps(depth, rate)]
