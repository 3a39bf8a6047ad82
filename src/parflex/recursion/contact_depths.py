"""Contacts of a robot in a motion: how deep and how fast they are, over any scalar.

A new kind of contact becomes an entry of `depths`, in the order in which `with_gates` numbers it, and of `watched`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from parflex.recursion.kinematics import Pose, motion
from parflex.recursion.point_forces import line
from parflex.tree.force_elements import Contact
from parflex.tree.tree import Tree

Array = np.ndarray


def depths(tree: Tree, at: Pose, qd: Array) -> Iterator[tuple[Contact, Any, Any]]:
    """Every contact with its depth and the rate of that, in the order of the gates."""
    for link in tree.links:
        if link.terms.stop is not None:
            for side in link.terms.stop.sides(at.q[link.q.start], qd[link.v.start]):
                yield side.contact, side.depth, side.rate
    cables = [element for element in tree.elements if element.contact is not None]
    moving = motion(tree, at, qd, np.zeros(tree.n)) if cables else None
    for element in cables:
        assert element.contact is not None
        _, length, rate = line(at, (element.first, element.second), element.name, moving)
        yield element.contact, length - element.rest, rate
    for spring in tree.springs:
        if spring.flanks is not None:
            yield from spring.contacts(at.q, qd)


def gap_values(tree: Tree, at: Pose, qd: Array) -> list[tuple[Any, Any]]:
    """What each gate follows, and its rate."""
    return [gap for contact, depth, rate in depths(tree, at, qd) for gap in contact.gaps(depth, rate)]
