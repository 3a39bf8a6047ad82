"""Energies of the tree, over any scalar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from parflex.records import Unpacked
from parflex.recursion.kinematics import Motion, Pose, motion
from parflex.recursion.point_forces import elements_energy
from parflex.tree.tree import Tree

Array = np.ndarray


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
    """Energies for all rates of the tree; `moving` is a motion with these rates, where one is known."""
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
    """Kinetic energy for all rates of the tree, of bodies and of the inertia of motors."""
    moving = moving or motion(tree, at, qd, np.zeros(tree.n))
    found: Any = 0.0
    for j, link in enumerate(tree.links):
        found = found + link.body.kinetic_energy(moving.v[j], moving.w[j], at.q[link.e], qd[link.e_v])
        if link.joint.one_axis:
            rate = qd[link.v.start]
            found = found + 0.5 * link.terms.motor_inertia * (rate * rate)
    return found
