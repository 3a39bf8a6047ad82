"""Make the rigid version of a robot file: flexible bodies become rigid with the same mass, nodes become points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parflex.bodies.rigid import RigidBody
from parflex.robotfile import schema
from parflex.robotfile.read import describe
from parflex.spatial.batched import is_varied
from parflex.tree.build import build_tree, read_body
from parflex.tree.tree import GROUND, Place, Tree

FLEXIBLE = ("beam", "modal", "superelement")

KHALIL = ("M", "MX", "MY", "MZ", "XX", "XY", "XZ", "YY", "YZ", "ZZ")


def read_version(table: dict[str, Any], file: str, elements: int, rigid: bool) -> schema.RobotFile:
    """Return the description of a whole table, or that of its rigid version."""
    description = describe(table, file)
    return rigid_version(description, build_tree(description, elements)) if rigid else description


def rigid_version(robot: schema.RobotFile, tree: Tree) -> schema.RobotFile:
    """Return the description with rigid bodies in the place of the flexible ones of its `tree`.

    Joints, springs and couplings stay. Closures and elements with both ends on one rigid body have no effect and go.
    """
    entries: list[schema.Frame | schema.PlatformTable] = [*robot.frame]
    entries += [] if robot.platform is None else [robot.platform]
    flexible = [entry for entry in entries if any(getattr(entry, key, None) is not None for key in FLEXIBLE)]
    if not flexible:
        return robot
    described = {entry.name for entry in (*entries, *robot.point)}
    replaced: dict[str, Any] = {}
    points = list(robot.point)
    for entry in flexible:
        root = tree.places[entry.name].link
        undeformed_positions = _nodes(tree, root)
        replaced[entry.name] = _rigid(entry, tree, undeformed_positions)
        taken = described | {tree.links[root].name}
        points += [
            schema.Point.model_construct(
                name=name, frame=entry.name, position=_numbers(_position(place, undeformed_positions))
            )
            for name, place in tree.places.items()
            if place.link in undeformed_positions and name not in taken
        ]

    def kept(between: Sequence[str]) -> bool:
        first, second = (_carrier(tree, tree.places[end].link) for end in between)
        return first != second

    platform = robot.platform
    return robot.model_copy(
        update={
            "frame": tuple(replaced.get(frame.name, frame) for frame in robot.frame),
            "platform": None if platform is None else replaced.get(platform.name, platform),
            "point": tuple(points),
            "closure": tuple(item for item in robot.closure if kept(item.between)),
            "element": tuple(item for item in robot.element if kept(item.between)),
            "end_effector": tree.end_effector,
            "poses": {
                name: rigid_pose for name, pose in robot.poses.items() if (rigid_pose := _undeformed(pose, tree))
            },
            "working_modes": {
                name: mode.model_copy(update={"start": _undeformed(mode.start, tree)})
                for name, mode in robot.working_modes.items()
            },
        }
    )


def _undeformed(pose: Any, tree: Tree) -> Any:
    """Return a pose without deformations."""
    deformations = {tree.rate_names[k] for k in tree.elastic}
    return {name: value for name, value in pose.items() if name not in deformations}


def _nodes(tree: Tree, root: int) -> dict[int, Any]:
    """Return the links of a flexible body and its nodes, with their places in its frame."""
    positions: dict[int, Any] = {root: np.zeros(3)}
    for number, link in enumerate(tree.links):
        if link.node is not None and link.parent in positions:
            positions[number] = positions[link.parent] + link.position
    return positions


def _position(place: Place, positions: dict[int, Any]) -> Any:
    """Return a place on an undeformed body in the frame of the body."""
    return positions[place.link] + (0.0 if place.inner is None else place.inner.node.r0) + place.position


def _rigid(entry: Any, tree: Tree, positions: dict[int, Any]) -> Any:
    """Return the table of a frame or platform with the rigid body of its undeformed flexible body."""
    body = read_body(entry.inertia)
    for number, position in positions.items():
        link_body = tree.links[number].body
        if link_body.size:
            body = body + (link_body.undeformed - link_body.rigid).in_parent(np.eye(3), position)
    inertia = _inertia(body, entry.inertia)
    return entry.model_copy(update={**{key: None for key in FLEXIBLE if hasattr(entry, key)}, "inertia": inertia})


def _inertia(body: RigidBody, joint_inertia: schema.Inertia) -> schema.Inertia:
    """Return a body as Khalil parameters, with those of the joint."""
    numbers = _numbers([body.m, *body.S, *body.I[np.triu_indices(3)]])
    of_joint = {key: getattr(joint_inertia, key) for key in ("IA", "FV", "FS")}
    return schema.Inertia.model_construct(**dict(zip(KHALIL, numbers, strict=True)), **of_joint)


def _numbers(values: Any) -> tuple[Any, ...]:
    return tuple(x if is_varied(x) else float(x) for x in values)


def _carrier(tree: Tree, link: int) -> int:
    """Return the link that carries a link through fixed joints."""
    while link != GROUND and tree.links[link].joint.kind == "fixed":
        link = tree.links[link].parent
    return link
