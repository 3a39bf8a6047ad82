"""Paths from home to poses that Newton's method does not reach, for all rows at once, as for single poses."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure.continuation import waypoints
from parflex.robot.coordinate_names import joint_named

if TYPE_CHECKING:
    from parflex.maps.positions import PositionSolver

Array = np.ndarray
SHORTEST = 1e-3  # of the way from one way point to the next, of one stride
FEW_WAYS = 4  # that are tried where sides tell assemblies apart: then only Newton's method can be lost
STARTS = 8  # from which poses that were not reached are closed in whatever assembly
SPREAD = 1.0  # rad or typical lengths, of these starts
WIDE_STARTS, WIDE_SPREAD = 16, 2.5  # the same where sides tell assemblies apart: in other modes elbows are turned over


def walk(solver: PositionSolver, values: Array, own: Array, q: Array, status: Array) -> None:
    """Try what was not reached on ways from home, in place: straight, then around what blocks it."""
    lost = np.flatnonzero(solver.lost(status))
    if not len(lost):
        return
    home, units, turning = solver.given.at_home, _units(solver), _turning(solver)
    most = None if solver.unsettled.size else FEW_WAYS
    courses = {int(row): list(islice(waypoints(home, values[row], units, turning), most)) for row in lost}
    at_home, state = solver.from_home(np.repeat(home[None], len(lost), axis=0), own[lost])  # each design its own
    courses = {row: found for row, found in courses.items() if not solver.lost(state)[np.searchsorted(lost, row)]}
    size = solver.geometry.home.size
    for number in range(max((len(found) for found in courses.values()), default=0)):
        going = np.array([row for row, found in courses.items() if number < len(found)], dtype=int)
        here, begun = at_home[np.searchsorted(lost, going), :size], np.repeat(home[None], len(going), axis=0)
        for point in range(max((len(courses[row][number]) for row in going.tolist()), default=0)):
            on = np.flatnonzero([point < len(courses[row][number]) for row in going.tolist()])
            if not len(on):
                break
            goal = np.array([courses[row][number][point] for row in going[on].tolist()])
            start = solver.given.start(begun[on], solver.geometry.rows(here[on], own[going[on]]))
            found, state = solver.strided(goal, own[going[on]], begun[on], start, SHORTEST)
            begun[on], here[on] = goal, found[:, :size]
            left = np.ones(len(going), dtype=bool)
            left[on[solver.lost(state)]] = False
            going, here, begun = going[left], here[left], begun[left]
        if len(going):
            found, state = solver.refined_positions(values[going], own[going], here)
            reached = ~solver.lost(state)
            q[going[reached]], status[going[reached]] = found[reached], state[reached]
            for row in going[reached].tolist():
                del courses[row]
        if not courses:
            return


def closes(solver: PositionSolver, values: Array, own: Array) -> Array:
    """Which of the poses close in some assembly, found by Newton's method from home and from starts about it."""
    spread, found = np.random.default_rng(0), np.zeros(len(values), dtype=bool)  # the same starts every time
    moved = np.unique(np.concatenate([one.columns for one in solver.steppers]))
    units = solver.geometry.position_units
    starts, far = (STARTS, SPREAD) if solver.unsettled.size else (WIDE_STARTS, WIDE_SPREAD)
    for number in range(starts):
        todo = np.flatnonzero(~found)
        if not len(todo):
            break
        begin = np.repeat(solver.geometry.home[None], len(todo), axis=0)
        if number:
            begin[:, moved] += far * units[moved] * spread.uniform(-1, 1, len(moved))
        rows = solver.given.start(values[todo], solver.geometry.rows(begin, own[todo]))
        found[todo] = solver.closed(rows)
    return found


def _units(solver: PositionSolver) -> Array:
    """What makes coordinates comparable: rad, typical lengths."""
    tree = solver.geometry.tree
    joints, lengths = solver.geometry.position_units, {"x", "y", "z"}
    own = [joint_named(tree, name) for name in solver.names]
    return np.array(
        [
            tree.length if joint is None and name in lengths else 1.0 if joint is None else joints[joint.q.start]
            for name, joint in zip(solver.names, own, strict=True)
        ]
    )


def _turning(solver: PositionSolver) -> Array:
    """Which coordinates are joints that turn freely, where no turn of what follows is counted."""
    if solver.counts_turns:
        return np.zeros(len(solver.names), dtype=bool)
    own = [joint_named(solver.geometry.tree, name) for name in solver.names]
    return np.array([joint is not None and joint.periodic and not joint.wound for joint in own], dtype=bool)
