"""Elastic drives: a motor and a spring one behind the other on one axis."""

from __future__ import annotations

import numpy as np

from parflex.closure.loops import Closures
from parflex.tree.tree import GROUND, Link, Tree

SAME = 1e-9  # of axes that coincide, as a cosine and in typical lengths


def drive_springs(tree: Tree, closures: Closures) -> tuple[int, ...]:
    """Links on a spring joint that repeats the joint of the link before, which carries nothing else.

    No loop can tell such a joint from the one before it: where a pose is asked for, the spring is at rest.
    """
    held = {place.link for loop in closures.loops for place in (loop.first, loop.second)}
    coupled = {j for row in closures.constraints for j in row.ends} | {j for s in tree.springs for j in s.numbers}
    carried = [link.parent for link in tree.links]
    return tuple(
        number
        for number, link in enumerate(tree.links)
        if (link.terms.stiffness or link.terms.idle)
        and link.parent != GROUND
        and link.parent not in held
        and number not in coupled
        and carried.count(link.parent) == 1
        and _repeats(link, tree.links[link.parent], tree.length)
    )


def _repeats(link: Link, before: Link, length: float) -> bool:
    """Whether both joints move along or about the same axis, screws by the same pitch, which has no direction."""
    if link.joint.kind != before.joint.kind or not link.joint.one_axis or link.node is not None:
        return False
    if abs(link.joint.pitch - before.joint.pitch) > SAME * abs(before.joint.pitch):
        return False
    axis = link.rotation[:, link.joint.axis]
    aside = np.delete(link.position, before.joint.axis)
    parallel = abs(abs(axis[before.joint.axis]) - 1) < SAME
    return bool(parallel and (link.joint.kind == "prismatic" or np.abs(aside).max() < SAME * length))
