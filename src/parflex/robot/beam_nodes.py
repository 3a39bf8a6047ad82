"""Insert nodes at places inside beam elements, because shape functions are exact only for loads at nodes.

A frame that carries a wrench, or whose stiffness or deflection is requested, therefore becomes a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from parflex.errors import InputError
from parflex.robot.configuration import Configuration, Pose, configure
from parflex.robot.load import divided
from parflex.robot.robot import Robot
from parflex.robotfile.values import INSIDE
from parflex.spatial.rotations import vector_from_rotation
from parflex.tree.build import SHORT
from parflex.tree.tree import beam_elements, beam_root

Array = np.ndarray


def is_between(robot: Robot, frame: str) -> bool:
    """Return whether a frame lies between two nodes of a beam; false for unknown frames."""
    try:
        place = robot.tree.places[frame] if isinstance(frame, str) and frame in robot.tree.places else None
    except InputError:
        return False
    return place is not None and place.inner is not None and robot.tree.links[place.link].body.by_tip


def with_nodes_at(robot: Robot, frames: Iterable[str]) -> Robot:
    """Return the robot with its beams divided at frames between nodes; new nodes have names such as `arm@0.37`."""
    nodes = tuple(sorted({node for frame in frames if (node := _node_needed(robot, frame))}))
    if not nodes:
        return robot
    if robot.written is not None and robot.tree is not robot.written.tree:
        text = f"the beams of '{robot.name}' cannot be divided at '{nodes[0]}': its numbers are not those of its file"
        hint = "give the robot as it was loaded, and pass servos and omitted terms as arguments"
        raise InputError(text, key="robot", value=robot.name, hint=hint)

    def make() -> Robot:
        made = divided(robot, robot.refine, (*robot.nodes, *nodes))
        return replace(made, known_home=with_elements_of(Configuration(robot, robot.home), made).q)

    return robot.derived(("nodes", nodes), make)


def at_nodes(robot: Robot, pose: Pose | None, frames: Iterable[str]) -> tuple[Robot, Pose | None]:
    """Return the robot with its beams divided at frames, and a pose as one of that robot."""
    if isinstance(pose, Configuration):  # which may stem from an answer about places inside beams
        robot = with_nodes_at(robot, pose.robot.nodes)
    made = with_nodes_at(robot, frames)
    return (robot, pose) if made is robot else (made, with_elements_of(configure(robot, pose), made))


def _node_needed(robot: Robot, frame: str) -> str | None:
    """Return the node for a frame; None at a node (to rounding) and on beams with locked coordinates."""
    if not is_between(robot, frame):
        return None
    tree = robot.tree
    place = tree.places[frame]
    root = beam_root(tree.links, place.link)
    elements = beam_elements(tree.links, root)
    element = next(candidate for candidate in elements if candidate.link == place.link)
    assert place.inner is not None
    xi = float(place.inner.node.r0[0] / tree.links[place.link].body.nodes["tip"].r0[0])
    rates = {k for one in elements for k in range(tree.n)[tree.links[one.link].e_v]}
    name = f"{tree.links[root].name}{INSIDE}{element.start + xi * (element.end - element.start):.15g}"
    return None if min(xi, 1 - xi) < SHORT or rates & robot.locked or name in robot.nodes else name


def with_elements_of(here: Configuration, made: Robot) -> Configuration:
    """Return the same state of a robot with more nodes, placed by the shape functions."""
    before, tree = here.robot.tree, made.tree
    values = dict(zip(before.position_names, here.q, strict=True))
    q = np.array([values.get(name, 0.0) for name in tree.position_names])
    old = {link.name for link in before.links}
    bent = any(here.q[link.e].any() for link in before.links)
    for tip in tree.links:
        root = tree.links[tip.parent]
        if tip.node is None or not root.body.by_tip or {root.name, tip.name} <= old:
            continue
        (R, p), (R_tip, p_tip) = (here.at.of(before.places[name]) for name in (root.name, tip.name))
        motion = np.concatenate([R.T @ (p_tip - p) - tip.node.r0, vector_from_rotation(R.T @ R_tip)])
        used = np.vstack([tip.node.Phi_d, tip.node.Phi_r])
        q[root.e] = np.linalg.lstsq(used, motion, rcond=None)[0] if bent else 0.0
    return Configuration(made, q, ignore_limits=here.ignore_limits)
