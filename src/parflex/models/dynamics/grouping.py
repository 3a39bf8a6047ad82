"""Bodies grouped towards the ground, so that the same motion needs the fewest numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.models.dynamics.base_parameters import hand_down
from parflex.tree.tree import Tree

Array = np.ndarray
ROUNDING = 1e-13  # of what a link carries: sums of a hundred bodies stay below, parts that matter far above


def moments_scale(body: RigidBody, length: float) -> Array:
    """What mass, first and second moments of a body are compared with, seen from a distance of that length."""
    m, S, Sigma = (float(np.abs(values).max()) for values in (body.m, body.S, body.Sigma))
    return np.array([m, S + m * length, Sigma + S * length + m * length**2])


def cleaned_body(body: RigidBody, scale: Array) -> RigidBody:
    """The body without entries that are rounding beside the scales of mass, first and second moments."""
    parts = (body.m, body.S, body.Sigma)
    m, S, Sigma = (
        np.where(np.abs(values) < ROUNDING * size, 0.0, values) for values, size in zip(parts, scale, strict=True)
    )
    return RigidBody(float(m), S, Sigma)


def grouped_tree(tree: Tree) -> Tree:
    """The tree of rigid links with bodies grouped towards the ground.

    The rounding of a link is judged beside what it carries, which is all that was handed to it, and not beside the
    heaviest link of the robot, next to which a small wrist is nothing.
    """
    carried = np.array([moments_scale(link.body.as_rigid(), tree.length) for link in tree.links]).reshape(-1, 3)
    for j in reversed(range(len(tree.links))):
        if tree.links[j].parent >= 0:
            carried[tree.links[j].parent] += carried[j]
    bodies = [link.body.as_rigid() for link in hand_down(tree, "second moment").links]
    links = [
        replace(link, body=cleaned_body(body, scale))
        for link, body, scale in zip(tree.links, bodies, carried, strict=True)
    ]
    return replace(tree, links=tuple(links))
