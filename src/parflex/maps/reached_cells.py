"""Cells of a grid that a robot reaches from home through neighbouring cells, for robots assembled pose by pose."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from parflex.errors import SingularError
from parflex.maps.positions import outside_limits
from parflex.recursion.kinematics import pose
from parflex.robot.coordinate_names import joint_named
from parflex.robot.robot import Robot
from parflex.spatial.rotations import vector_from_rotation

Array = np.ndarray
Cell = tuple[int, ...]
FIRST = 16  # cells nearest to home that are tried from there


def reached_cells(robot: Robot, axes: Sequence[tuple[str, Array]]) -> Array:
    """Which cells are reached within joint limits, one axis of the answer for each coordinate and its values.

    From each reached cell its neighbours are tried, so that what lies beyond what cannot be reached is not.
    """
    rigid = robot.locking(robot.deformations)
    shape = tuple(len(values) for _, values in axes)
    known: dict[Cell, Array] = {}

    def tried(cell: Cell, q: Array) -> bool:
        if cell not in known:
            values = {name: float(axis_values[k]) for (name, axis_values), k in zip(axes, cell, strict=True)}
            try:
                solution = rigid.pose_finder.near(values, q)
            except SingularError:
                solution = None
            if solution is None:
                return False
            known[cell] = solution
            edge.append(cell)
        return True

    edge: list[Cell] = []
    for cell in _nearest(rigid, axes, shape):
        tried(cell, rigid.home)
    while edge:
        cell = edge.pop(0)
        for k, step in product(range(len(shape)), (-1, 1)):
            neighbour = (*cell[:k], cell[k] + step, *cell[k + 1 :])
            if 0 <= neighbour[k] < shape[k]:
                tried(neighbour, known[cell])
    reached = np.zeros(shape, dtype=bool)
    given = {joint.q.start for name, _ in axes if (joint := joint_named(robot.tree, name)) is not None}
    for cell, q in known.items():
        reached[cell] = not outside_limits(rigid, rigid.tree.within_limits(q, given))
    return reached


def _nearest(rigid: Robot, axes: Sequence[tuple[str, Array]], shape: Cell) -> list[Cell]:
    """Some cells around home, nearest first."""
    tree = rigid.tree
    R, P = pose(tree, rigid.home).of(tree.places[tree.end_effector])
    here = dict(zip(("x", "y", "z", "rx", "ry", "rz"), [*P, *vector_from_rotation(R)], strict=True))
    here["theta"] = np.arctan2(R[1, 0], R[0, 0])
    here |= {link.name: rigid.home[link.q.start] for link in tree.links if link.joint.one_axis}
    distance: Array = np.zeros(shape)
    for k, (name, values) in enumerate(axes):
        steps = np.abs(values - here.get(name, np.mean(values))) / (np.ptp(values) / max(1, len(values) - 1) or 1.0)
        distance = distance + (steps**2).reshape([-1 if i == k else 1 for i in range(len(shape))])
    order = np.argsort(distance, axis=None, kind="stable")[:FIRST]
    return [tuple(int(i) for i in np.unravel_index(k, shape)) for k in order]
