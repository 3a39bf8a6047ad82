"""Compliance of a beam between its nodes beyond its shape functions, exact to first order.

Nodes are exact under any load on the beam. The deflection between them lacks that of the element clamped at both nodes
under the load itself; for a reduced beam, that of the whole body less the part in its modes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from parflex.bodies.reduced_beam import ReducedSections
from parflex.bodies.sections import ElementSections
from parflex.forces.section_forces import beam_chains
from parflex.recursion.kinematics import Pose as LinkPoses
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.linear import scalar_type
from parflex.spatial.rotations import hat
from parflex.tree.tree import Place

Array = np.ndarray
# of a deflection: where less is missing between nodes nothing is said, as of nodes that are off by less because
# elements are too few (OFF of a run)
MISSING = 0.02


def is_between(robot: Robot, frame: str) -> bool:
    """Whether a frame is between two nodes of a beam."""
    place = robot.tree.places[frame]
    return place.inner is not None and robot.tree.links[place.link].body.by_tip


def inner_compliance(robot: Robot, loaded: str, seen: str) -> Array | None:
    """Motion of one frame by a unit wrench on another that shapes lack, in axes of their element, about its places.

    None where both are not between the same two nodes.
    """
    tree = robot.tree
    if not (is_between(robot, loaded) and is_between(robot, seen)):
        return None
    j = tree.places[loaded].link
    if tree.places[seen].link != j:
        return None
    parts, xi, at = _parts(robot, j), section_at(robot, loaded), section_at(robot, seen)
    if not isinstance(parts, ReducedSections):
        return parts.clamped_compliance(xi, at)
    return parts.clamped_compliance(xi, at, _held_stiffness(robot, j))


def _parts(robot: Robot, j: int) -> ElementSections | ReducedSections:
    chain = next(own for own in beam_chains(robot).values() if j in own.links)
    return chain.parts_of(chain.links.index(j))


def _held_stiffness(robot: Robot, j: int) -> Array:
    """Of the modes of a reduced beam."""
    body = robot.tree.links[j].body
    return np.diag(body.material_stiffness(np.zeros(body.size)))[body.size - body.held :]


def inner_motion(here: Configuration, loaded: str, seen: str) -> Array | None:
    """The same about the frames themselves, 6 x 6 in world axes."""
    found = inner_compliance(here.robot, loaded, seen)
    return None if found is None else in_world(here.robot, here.at, found, loaded, seen)


def in_world(robot: Robot, at: LinkPoses, found: Array, loaded: str, seen: str) -> Array:
    """From axes of the element to world axes, and from sections to frames; over any scalar."""
    places = robot.tree.places
    R = np.kron(np.eye(2), at.rotation[places[loaded].link])
    shifts = [_shift(at, places[frame]) for frame in (seen, loaded)]
    return shifts[0] @ R @ found @ R.T @ shifts[1].T


def forced_place(robot: Robot, loaded: str, seen: str) -> Array | None:
    """Displacement of the section of one frame by a unit wrench on another that shapes lack, 3 x 6, in section axes."""
    found = inner_compliance(robot, loaded, seen)
    if found is None:
        return None
    moved = np.eye(6)
    moved[:3, 3:] = -hat(robot.tree.places[loaded].position)
    return (found @ moved.T)[:3]


def inner_deflection(here: Configuration, wrenches: Mapping[str, Array], frame: str, gravity: Array) -> Array:
    """Displacement and turn of a frame by wrenches and weight (world axes) between its two nodes, beside shapes."""
    found = np.zeros(6)
    if is_between(here.robot, frame):
        found = found + _by_weight(here, frame, gravity)
        for loaded, wrench in wrenches.items():
            motion = inner_motion(here, loaded, frame)
            found = found if motion is None else found + motion @ wrench
    return found


def _by_weight(here: Configuration, frame: str, gravity: Array) -> Array:
    robot, j = here.robot, here.robot.tree.places[frame].link
    parts, xi, pull = _parts(robot, j), section_at(robot, frame), here.at.rotation[j].T @ gravity
    if isinstance(parts, ReducedSections):
        return seen_from(robot, here.at, parts.clamped_gravity_deflection(xi, pull, _held_stiffness(robot, j)), frame)
    return seen_from(robot, here.at, parts.clamped_gravity_deflection(xi, pull), frame)


def seen_from(robot: Robot, at: LinkPoses, found: Array, frame: str) -> Array:
    """A motion of a frame's section, in axes of its element, as one of the frame in world axes; over any scalar."""
    place = robot.tree.places[frame]
    return _shift(at, place) @ np.kron(np.eye(2), at.rotation[place.link]) @ found


def section_at(robot: Robot, frame: str) -> float:
    """Where a frame between two nodes is, as a share of its element."""
    place = robot.tree.places[frame]
    assert place.inner is not None
    return float(place.inner.node.r0[0] / robot.tree.links[place.link].body.nodes["tip"].r0[0])


def _shift(at: LinkPoses, place: Place) -> Array:
    """Twist of a frame by that of its section, world axes."""
    section = replace(place, rotation=np.eye(3), position=np.zeros(3))
    away = at.of(place)[1] - at.of(section)[1]
    moved: Array = np.eye(6).astype(scalar_type(away))
    moved[:3, 3:] = -hat(away)
    return moved
