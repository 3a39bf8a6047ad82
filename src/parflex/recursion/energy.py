"""Energies of the tree, over any scalar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.recursion.kinematics import Pose, motion
from parflex.tree import Tree

Array = np.ndarray


@dataclass(frozen=True)
class Energies:
    """Kinetic energy with that of motors, elastic energy of bodies and springs, energy in the field of gravity.

    Gravity is counted from the origin of the world.
    """

    kinetic: Any
    elastic: Any
    gravity: Any


def energies(tree: Tree, at: Pose, qd: Array) -> Energies:
    """Energies for all rates of the tree."""
    moving = motion(tree, at, qd, np.zeros(tree.n))
    kinetic: Any = 0.0
    elastic: Any = 0.0
    gravity: Any = 0.0
    for j, link in enumerate(tree.links):
        v, w = moving.v[j], moving.w[j]
        e, ed = at.q[link.e], qd[link.e_v]
        kinetic = kinetic + link.body.kinetic_energy(v, w, e, ed)
        elastic = elastic + link.body.strain_energy(e)
        S, _ = link.body.deformed(e)
        gravity = gravity - tree.gravity @ (link.body.m * at.position[j] + at.rotation[j] @ S)
        if link.joint.one_axis:
            rate, stretch = qd[link.v.start], at.q[link.q.start] - link.terms.rest
            kinetic = kinetic + 0.5 * link.terms.motor_inertia * (rate * rate)
            elastic = elastic + 0.5 * link.terms.stiffness * (stretch * stretch)
    return Energies(kinetic, elastic, gravity)
