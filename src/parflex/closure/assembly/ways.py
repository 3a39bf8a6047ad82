"""Ways to a pose: straight, and around the singular poses that the straight one may meet.

Loops close in several assemblies, and only a way without a singular pose tells which one is meant. Where the
straight one meets a singular pose, the assembly of home may still be reached around it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from parflex.closure.targets import FrameTarget, PoseRows, Target
from parflex.recursion.kinematics import pose
from parflex.tree.tree import Tree

Array = np.ndarray
ASIDE = (0.5, 1.0)  # of the length of a way: how far its way points lie beside its middle
DIRECTIONS = 3  # at most, in which they lie, to both sides


def ways(origin: Array, goal: Array, units: Array, turning: Array) -> Iterator[Array]:
    """Way points (points x coordinates) to a goal, the last of them; the straight way is the first.

    Coordinates that turn freely go by the shorter turn next, and later by the longer one; then one coordinate moves
    after the other, and then all of them over points beside the way, by `units` that make them comparable.
    """
    yield goal[None]
    nearer = goal - np.where(turning, 2 * np.pi * np.round((goal - origin) / (2 * np.pi)), 0.0)
    if np.any(nearer != goal):
        yield nearer[None]
    step, count = nearer - origin, len(goal)
    moving = np.flatnonzero(step)
    for order in (moving, moving[::-1]) if len(moving) > 1 else ():
        points = np.repeat(origin[None], len(order), axis=0)
        for number, k in enumerate(order):
            points[number:, k] = nearer[k]
        yield points
    for k in moving[turning[moving]]:
        around = nearer.copy()
        around[k] -= 2 * np.pi * np.sign(step[k])
        yield around[None]
    length = float(np.linalg.norm(step / units))
    if count < 2 or not length:
        return
    spread = np.random.default_rng(0).standard_normal((count, count - 1))  # the same every time
    beside = np.linalg.qr(np.column_stack([step / units, spread]))[0][:, 1 : 1 + DIRECTIONS]
    for far in ASIDE:
        for direction in beside.T:
            for side in (1.0, -1.0):
                yield np.array([origin + step / 2 + side * far * length * direction * units, nearer])


class WaysToTarget:
    """The coordinates of a target as numbers, and targets on the way to it from some positions."""

    def __init__(self, tree: Tree, target: Target, q: Array, units: Array, periodic: Collection[int]) -> None:
        self.target, self.at = target, pose(tree, q)
        quaternions = {k for link in tree.links if link.joint.quaternion for k in _range(link.q_quaternion)}
        self.joints = [k for k in target.values if k not in quaternions]
        self.placed = [(row, axis) for row in target.frames if isinstance(row, FrameTarget) for axis in row.position]
        self.turned = {k: q[k] for k in target.values if k in quaternions}
        at_places = [float(self.at.of(row.place)[1][axis]) for row, axis in self.placed]
        self.origin = np.array([*(q[k] for k in self.joints), *at_places], dtype=float)
        asked = [row.position[axis] for row, axis in self.placed]
        self.goal = np.array([*(target.values[k] for k in self.joints), *asked], dtype=float)
        self.units = np.array([*(units[k] for k in self.joints), *(tree.length for _ in self.placed)])
        self.turning = np.array([*(k in periodic for k in self.joints), *(False for _ in self.placed)], dtype=bool)

    def ways(self) -> Iterator[list[tuple[Target, dict[int, PoseRows]]]]:
        """Targets one after the other, and the rows that stand in the place of those of the target, by their ids."""
        for points in ways(self.origin, self.goal, self.units, self.turning):
            yield [self._target(point, (k + 1) / len(points)) for k, point in enumerate(points)]

    def _target(self, point: Array, share: float) -> tuple[Target, dict[int, PoseRows]]:
        """The target at a way point; rotations have gone this share of their way."""
        given = self.target.values
        values = dict(zip(self.joints, point.tolist(), strict=False))
        values |= {k: here + share * (given[k] - here) for k, here in self.turned.items()}
        if share == 1.0:
            return replace(self.target, values=values), {}
        positions: dict[int, dict[int, float]] = {}
        for (row, axis), value in zip(self.placed, point[len(self.joints) :].tolist(), strict=True):
            positions.setdefault(id(row), {})[axis] = value
        rows: dict[int, PoseRows] = {}
        for condition in self.target.frames:
            part = condition.between(self.at, share)
            if isinstance(part, FrameTarget) and part.position:
                part = replace(part, position=positions[id(condition)])
            rows[id(condition)] = part
        return replace(self.target, values=values, frames=tuple(rows.values())), rows


def _range(own: slice) -> range:
    return range(own.start, own.stop)
