"""Robots whose joints may stick: which do, in a copy of the robot for runs in time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.closure.mobility import scaled_jacobian
from parflex.models.given_states.joint_stops import with_tree
from parflex.robot.robot import Robot
from parflex.tree.force_elements import StictionJoint

Array = np.ndarray
DRIVEN_WIDTH = 1e-6  # rad/s or m/s: friction in the efforts of joints whose motion is prescribed changes its sign so
MOVES = 1e-9  # of a rate: what the loops leave less of with all motors held is prescribed by them


def sticking_joints(robot: Robot, driven: bool) -> list[int]:
    """Rates of joints whose Coulomb friction may hold them: those that are not prescribed by driven motors."""
    free = set(map(int, robot.free)) - (set(robot.actuated) if driven else set())
    found = [link.v.start for link in robot.tree.links if link.terms.rubs and link.v.start in free]
    if not found or not driven or not robot.actuated:
        return found
    held = robot.locking(robot.actuated)
    if not held.mobility.freedoms(len(held.free)):
        return []
    rows = scaled_jacobian(held.closures, held.home)[:, held.free]
    V = np.linalg.svd(rows, full_matrices=False)[2][: held.mobility.rank] if rows.size else rows
    ways = [(k, np.eye(1, V.shape[1], int(np.searchsorted(held.free, k)))[0]) for k in found]
    return [k for k, way in ways if np.abs(way - V.T @ (V @ way)).max() > MOVES]  # what the loops leave of it


def with_sticking(robot: Robot, driven: bool) -> Robot:
    """The robot for a run in which joints stick; friction of joints that are driven enters their efforts alone."""
    sticking = set(sticking_joints(robot, driven))
    links = []
    for link in robot.tree.links:
        if link.terms.rubs:
            own = {"rubbing": StictionJoint()} if link.v.start in sticking else {"width": DRIVEN_WIDTH}
            link = replace(link, terms=replace(link.terms, **own))
        links.append(link)
    return with_tree(robot, replace(robot.tree, links=tuple(links)))
