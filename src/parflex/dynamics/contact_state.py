"""Prepare the joint stops and stiction of a robot for runs in time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parflex.closure.mobility import scaled_jacobian
from parflex.errors import InputError
from parflex.robot.robot import Robot
from parflex.tree.force_elements import StictionJoint, has_contacts, joint_stop, with_gates

Array = np.ndarray

AT_LIMIT = 1e-9  # rad or characteristic lengths: a start beyond a limit by less is at the limit
# rad/s or m/s: friction in the efforts of joints whose motion is prescribed changes its sign so
DRIVEN_FRICTION_WIDTH = 1e-6
MOVES = 1e-9  # of a rate: smaller remainders with all motors locked are prescribed by the loops


def with_stops(robot: Robot, damped: bool = True) -> Robot:
    """Return the robot with the stops of its file, undamped if damping is omitted; raise if it has none."""
    stops = {frame.name: frame.stop for frame in robot.description.frame if frame.stop is not None}
    links = []
    for link in robot.tree.links:
        table = stops.get(link.name)
        if table is not None and link.limits is not None and link.v.start not in robot.locked:
            stop = joint_stop(link.limits, table.stiffness, table.damping if damped else 0.0)
            link = replace(link, terms=replace(link.terms, stop=stop))
        links.append(link)
    if all(link.terms.stop is None for link in links):
        hint = "give joints with limits e.g. stop = { stiffness = 1e5, damping = 100 }, or omit the stops"
        raise InputError("no joint of the robot has a stop", key="stops", value=robot.name, hint=hint)
    return robot.on_tree(replace(robot.tree, links=tuple(links)))


def with_gates_for_run(robot: Robot) -> Robot:
    """Return the robot for a run in time, with gates for contacts and joints that may stick."""
    sticks = any(link.terms.rubbing is not None for link in robot.tree.links)
    return robot.on_tree(with_gates(robot.tree)) if sticks or has_contacts(robot.tree) else robot


def limits_without_stop(robot: Robot) -> list[str]:
    """Return the joints with limits and without a stop."""
    return [link.name for link in robot.tree.links if link.limits is not None and link.terms.stop is None]


def refuse_start_outside(robot: Robot, q: Array) -> None:
    """Raise if a joint starts beyond a stop."""
    tree = robot.tree
    for link in tree.links:
        if link.terms.stop is None:
            continue
        (low, high), value = link.terms.stop.limits, float(q[link.q.start])
        tolerance = AT_LIMIT * tree.rate_units[link.v.start]
        if not low - tolerance <= value <= high + tolerance:
            side, limit = ("lower", low) if value < low else ("upper", high)
            text = f"'{link.name}' starts at {value:.6g}, beyond its {side} limit {limit:.6g}, where it has a stop"
            hint = "start between the limits, change them, or omit the stops"
            raise InputError(text, key="stops", value=value, hint=hint)


def stiction_joints(robot: Robot, driven: bool) -> list[int]:
    """Return the rates of joints that Coulomb friction may hold: all but those of driven motors."""
    free = set(map(int, robot.free)) - (set(robot.actuated) if driven else set())
    candidates = [link.v.start for link in robot.tree.links if link.terms.rubs and link.v.start in free]
    if not candidates or not driven or not robot.actuated:
        return candidates
    locked_robot = robot.locking(robot.actuated)
    if not locked_robot.freedoms:
        return []
    rows = scaled_jacobian(locked_robot.closures, locked_robot.home)[:, locked_robot.free]
    V = np.linalg.svd(rows, full_matrices=False)[2][: locked_robot.mobility.rank] if rows.size else rows
    left = np.abs(np.eye(V.shape[1]) - V.T @ V).max(axis=1)  # what the loops leave of each rate
    return [k for k in candidates if left[np.searchsorted(locked_robot.free, k)] > MOVES]


def with_stiction(robot: Robot, driven: bool) -> Robot:
    """Return the robot for a run with stiction; friction of driven joints enters their efforts only."""
    sticking, links = set(stiction_joints(robot, driven)), []
    for link in robot.tree.links:
        terms = link.terms
        if terms.rubs and link.v.start in sticking:
            terms = replace(terms, rubbing=StictionJoint())
        elif terms.rubs:
            terms = replace(terms, width=DRIVEN_FRICTION_WIDTH)
        links.append(replace(link, terms=terms))
    return robot.on_tree(replace(robot.tree, links=tuple(links)))
