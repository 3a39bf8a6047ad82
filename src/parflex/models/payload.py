"""A point mass on the end effector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.errors import InputError
from parflex.tree.build import SAME_PLACE
from parflex.tree.tree import Place, Tree


def with_payload(tree: Tree, payload: Sequence[float]) -> Tree:
    """The tree with a point mass on its end effector."""
    values = [float(value) for value in payload]
    negative = len(values) == 4 and values[0] < 0
    if len(values) != 4 or not np.all(np.isfinite(values)) or values[0] < 0:
        raise InputError(
            "the mass of the payload is negative" if negative else "a payload is a mass and a position",
            key="payload",
            value=str(list(payload)),
            hint="write mass,x,y,z, e.g. 2,0,0,0.1",
        )
    place = tree.places[tree.end_effector]
    if place.link < 0:
        raise InputError("the end effector does not move", key="payload", hint="name a moving end_effector in the file")
    links = list(tree.links)
    if links[place.link].body.size and not links[place.link].body.by_tip:
        place = _on_node(tree, place)
    body = RigidBody.from_centre(values[0], values[1:], np.zeros((3, 3))).in_parent(place.rotation, place.position)
    carrier = links[place.link]
    links[place.link] = replace(carrier, body=carrier.body.with_rigid(body))
    return replace(tree, links=tuple(links))


def _on_node(tree: Tree, place: Place) -> Place:
    """A place on a body given by modes as a place on its node there: a payload moves with the body, not its frame."""
    for j, link in enumerate(tree.links):
        if link.node is None or link.parent != place.link or not link.node.turns:
            continue
        if np.linalg.norm(link.position - place.position) < SAME_PLACE * tree.length:
            return Place(j, place.rotation, np.zeros(3))
    raise InputError(
        f"'{tree.end_effector}' has no node to attach the payload to",
        key="payload",
        hint="choose a node as end_effector, or give the payload to a frame on a node",
    )
