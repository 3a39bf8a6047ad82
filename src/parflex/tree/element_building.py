"""Elements between two points in the tree: forces between places, and a massless slide for the length of each strut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.errors import InputError, RobotFileError, did_you_mean
from parflex.robotfile import schema
from parflex.robotfile.element_schema import ElementTable
from parflex.spatial.batched import is_varied
from parflex.spatial.rotations import vector_length
from parflex.tree import joints
from parflex.tree.inner_places import Place
from parflex.tree.link_tree import GROUND, JointTerms, Link, Tree
from parflex.tree.point_elements import PointElement, curve_of

Array = np.ndarray
MEETING = 1e-9  # m, between points that are one


def with_elements(tree: Tree, robot: schema.RobotFile) -> Tree:
    """The tree with the elements of the file: those that push or pull, and the coordinates of struts."""
    if not robot.element:
        return tree
    for element in robot.element:
        _check_ends(tree, element)
    forces = [element for element in robot.element if element.kind != "rod" and not element.measured]
    struts = [element for element in robot.element if element.measured]
    return replace(_with_struts(tree, robot, struts), elements=tuple(_force(tree, element) for element in forces))


def start_distance(tree: Tree, element: ElementTable) -> Any:
    """How far the ends of an element are apart where all joints stand at their starts."""
    rotations: list[Array] = []
    positions: list[Array] = []
    for link in tree.links:
        turned, d = (np.eye(3), np.zeros(3)) if link.node is not None else link.joint.transform(link.start)
        R, p = link.rotation @ turned, link.position + link.rotation @ d
        if link.parent != GROUND:
            R, p = rotations[link.parent] @ R, positions[link.parent] + rotations[link.parent] @ p
        rotations.append(R)
        positions.append(p)

    def point(place: Place) -> Array:
        if place.link == GROUND:
            return place.position
        own = place.position if place.inner is None else place.inner.node.r0 + place.position
        return positions[place.link] + rotations[place.link] @ own

    first, second = (point(tree.places[end]) for end in element.between)
    distance = vector_length(second - first)
    return distance if is_varied(distance) else float(distance)


def _check_ends(tree: Tree, element: ElementTable) -> None:
    """Both ends exist and are on two bodies."""
    key = f"element '{element.name}': between"
    for end in element.between:
        if not _is_there(tree, end, key):
            hint = did_you_mean(end, tree.places)
            raise RobotFileError(f"there is no frame or point '{end}'", key=key, value=end, hint=hint)
        if (element.kind == "rod" or element.measured) and tree.places[end].inner is not None:
            raise refuse_inner(key, end)
    first, second = (tree.places[end] for end in element.between)
    if first.link == second.link and first.inner is None and second.inner is None:
        body = "the ground" if first.link == GROUND else f"the body '{tree.links[first.link].name}'"
        raise RobotFileError(
            f"'{element.between[0]}' and '{element.between[1]}' are both on {body}, where an element does nothing",
            key=key,
            value=element.between[1],
            hint="name points on two bodies",
        )
    smooth = element.kind == "spring" and element.rest == 0 and not element.damping
    if start_distance(tree, element) <= MEETING and not smooth:
        raise RobotFileError(
            f"'{element.between[0]}' and '{element.between[1]}' meet at the start, where no line joins them",
            key=key,
            value=element.between[1],
            hint="give starts at which they are apart, or other points",
        )


def refuse_inner(key: str, name: str) -> RobotFileError:
    """What is said of a point between the nodes of a body that is to carry more than forces."""
    return RobotFileError(
        f"nothing can be mounted on '{name}', which is a point inside a body",
        key=key,
        value=name,
        hint="name the place itself, as in BEAM@0.5, which becomes a node of the beam",
    )


def _is_there(tree: Tree, end: str, key: str) -> bool:
    try:
        return end in tree.places
    except InputError as error:
        raise RobotFileError(error.message, key=key, value=end, hint=error.hint) from None


def _force(tree: Tree, element: ElementTable) -> PointElement:
    first, second = (tree.places[end] for end in element.between)
    table = element.table
    return PointElement(
        element.name,
        element.kind,
        first,
        second,
        element.stiffness or 0.0,
        element.rest or 0.0,
        element.damping or 0.0,
        curve_of(table.length if table else ()),
        curve_of(table.speed if table else ()),
    )


def _with_struts(tree: Tree, robot: schema.RobotFile, struts: list[ElementTable]) -> Tree:
    """The tree with a massless slide on the ground for each strut; a row of the closures makes it the length."""
    links = list(tree.links)
    for strut in struts:
        q, v = links[-1].own_q.stop, links[-1].own_v.stop
        none_q, none_v = slice(q + 1, q + 1), slice(v + 1, v + 1)
        start = np.array([start_distance(tree, strut)])
        terms = JointTerms(stiffness=strut.stiffness or 0.0, rest=strut.rest or 0.0, damper=strut.damping or 0.0)
        joint, leg = joints.JOINTS["prismatic"](), robot.leg_of.get(strut.name)
        links.append(
            Link(
                strut.name,
                GROUND,
                np.eye(3),
                np.zeros(3),
                joint,
                RigidBody(),
                slice(q, q + 1),
                slice(v, v + 1),
                start,
                terms,
                strut.limits,
                leg=leg,
                e=none_q,
                e_v=none_v,
                strut=True,
                pulls_only=strut.kind == "cable",
                velocity_limit=strut.velocity_limit,
                effort_limit=strut.effort_limit,
            )
        )
    return replace(tree, links=tuple(links))
