"""Follow paths to distant poses by continuation.

Loops may close in several assemblies on one side of their singularities, and at every whole turn of a shaft, with its
screws or gears elsewhere. Only a path without a singular pose determines the assembly. The straight path is tried
first; if it meets a singular pose, paths around that pose may still reach the assembly of home.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from parflex.closure.newton import NEAR, ClosurePart, ClosureParts
from parflex.closure.rows import Rows
from parflex.closure.targets import FrameTarget, PoseRows, Target
from parflex.recursion.kinematics import pose
from parflex.spatial.rotations import unit_quaternion
from parflex.tree.tree import Tree

Array = np.ndarray
FIRST = 0.1  # rad, typical lengths: longest first step of what is driven
CORRECTED = 0.1  # rad, typical lengths: a step that Newton corrects by more is halved
SMOOTH = 0.02  # by less: the next one is twice as long
MOST_STEPS = 4000
SHORTEST_STRIDE = 1e-4  # of a way: where it takes shorter steps, it passes a singularity
ASIDE = (0.5, 1.0)  # of the length of a way: how far its way points lie beside its middle
DIRECTIONS = 3  # at most, in which they lie, to both sides


# asks for positions that are nearly closed to be corrected for some rows, and returns those at the end of a way
Walk = Generator[tuple[Array, list[Rows]], tuple[Array, float], Array | None]


def walk_ends(closures: ClosureParts, columns: Array, walks: Sequence[Walk]) -> list[Array | None]:
    """Return positions at the ends of walks, or None; points with the same rows are corrected together."""
    ends: list[Array | None] = [None for _ in walks]
    guesses = dict(enumerate(map(next, walks)))
    while guesses:
        groups: dict[tuple[int, ...], list[int]] = {}
        for k, (_, rows) in guesses.items():
            groups.setdefault(tuple(map(id, rows)), []).append(k)
        for members in groups.values():
            points = closures.corrected([guesses[k][0] for k in members], columns, guesses[members[0]][1])
            for k, point in zip(members, points, strict=True):
                try:
                    guesses[k] = walks[k].send(point)
                except StopIteration as end:
                    ends[k] = end.value
                    del guesses[k]
    return ends


def follow_to_target(
    tree: Tree, target: Target, q: Array, part: ClosurePart, shortest: float = SHORTEST_STRIDE
) -> Walk:
    """Return positions of a part at a target by continuation from `q`, or None.

    A path ends if a step is shorter than the share `shortest` of it.
    """
    units, goal, at = position_units(tree), target.applied(q), pose(tree, q)
    driven = [index for index in target.values if goal[index] != q[index]]
    longest = max((abs(goal[k] - q[k]) / units[k] for k in driven), default=0.0)
    origin, current, share, step = q, q, 0.0, min(1.0, FIRST / max(longest, FIRST))
    slope = np.zeros(len(q))  # of all positions over the way
    for _ in range(MOST_STEPS):
        next_share = min(1.0, share + step)
        guess = current + (next_share - share) * slope
        for k in driven:
            guess[k] = origin[k] + next_share * (goal[k] - origin[k])
        guess = target.applied(guess) if next_share == 1.0 else guess
        guess = with_unit_quaternions(tree, guess)
        path_rows = [row.between(at, next_share) if isinstance(row, PoseRows) else row for row in part.rows]
        solution, error = yield guess, path_rows
        change = float(np.abs((solution - guess) / units).max(initial=0.0))
        first = not slope.any()
        if error > NEAR or change > (4 if first else 1) * CORRECTED:
            step /= 2
            if step < shortest:
                return None
            continue
        slope, current, share = (solution - current) / (next_share - share), solution, next_share
        if share == 1.0:
            return current
        step *= 2 if change < SMOOTH else 1
    return None


def position_units(tree: Tree) -> Array:
    """Return units of all positions: the characteristic length for lengths, 1 for angles and quaternions."""
    units = np.ones(tree.nq)
    for link in tree.links:
        link_units = tree.rate_units[link.v]
        units[link.q] = link_units if len(link_units) == link.q.stop - link.q.start else 1.0
        if link.joint.moves_freely and link.joint.quaternion:
            units[link.q.start : link.q.start + 3] = tree.length
        units[link.e] = tree.rate_units[link.e_v]
    return units


def with_unit_quaternions(tree: Tree, q: Array) -> Array:
    """Return positions with unit quaternions."""
    result = q.copy()
    for link in tree.links:
        if link.joint.quaternion:
            result[link.q_quaternion] = unit_quaternion(result[link.q_quaternion])
    return result


def waypoints(origin: Array, goal: Array, units: Array, turning: Array) -> Iterator[Array]:
    """Return way points (points x coordinates) of paths to a goal, the straight path first.

    Next, freely rotating coordinates take the shorter turn, and later the longer turn. Then coordinates move one
    after the other, and then all move over points off the path, scaled by `units`.
    """
    yield goal[None]
    shortest_goal = _shortest(origin, goal, turning)
    if np.any(shortest_goal != goal):
        yield shortest_goal[None]
    step, count = shortest_goal - origin, len(goal)
    moving = np.flatnonzero(step)
    for order in (moving, moving[::-1]) if len(moving) > 1 else ():
        points = np.repeat(origin[None], len(order), axis=0)
        for number, k in enumerate(order):
            points[number:, k] = shortest_goal[k]
        yield points
    for k in moving[turning[moving]]:
        longer_turn = shortest_goal.copy()
        longer_turn[k] -= 2 * np.pi * np.sign(step[k])
        yield longer_turn[None]
    length = float(np.linalg.norm(step / units))
    if count < 2 or not length:
        return
    random_vectors = np.random.default_rng(0).standard_normal((count, count - 1))  # the same every time
    normals = np.linalg.qr(np.column_stack([step / units, random_vectors]))[0][:, 1 : 1 + DIRECTIONS]
    for offset in ASIDE:
        for direction in normals.T:
            for side in (1.0, -1.0):
                yield np.array([origin + step / 2 + side * offset * length * direction * units, shortest_goal])


def _shortest(origin: Array, goal: Array, turning: Array) -> Array:
    """Return the goal with the shorter turn of freely rotating coordinates."""
    return goal - np.where(turning, 2 * np.pi * np.round((goal - origin) / (2 * np.pi)), 0.0)


class TargetPaths:
    """Coordinates of a target as numbers, and intermediate targets from some positions."""

    def __init__(self, tree: Tree, target: Target, q: Array, periodic: Collection[int]) -> None:
        self.target, self.at, units = target, pose(tree, q), position_units(tree)
        numbers = range(tree.nq)
        quaternions = {k for link in tree.links if link.joint.quaternion for k in numbers[link.q_quaternion]}
        self.joints = [k for k in target.values if k not in quaternions]
        self.placed = [(row, axis) for row in target.frames if isinstance(row, FrameTarget) for axis in row.position]
        self.turned = {k: q[k] for k in target.values if k in quaternions}
        place_origins = [float(self.at.of(row.place)[1][axis]) for row, axis in self.placed]
        self.origin = np.array([*(q[k] for k in self.joints), *place_origins], dtype=float)
        place_goals = [row.position[axis] for row, axis in self.placed]
        self.goal = np.array([*(target.values[k] for k in self.joints), *place_goals], dtype=float)
        self.units = np.array([*(units[k] for k in self.joints), *(tree.length for _ in self.placed)])
        self.turning = np.array([*(k in periodic for k in self.joints), *(False for _ in self.placed)], dtype=bool)

    def ways(self, detours: bool) -> Iterator[list[tuple[Target, dict[int, PoseRows]]]]:
        """Return consecutive targets, and the rows that replace those of the target, by id.

        Paths are straight, as specified and by the shorter turn, or `detours`.
        """
        straight = 1 + bool(np.any(_shortest(self.origin, self.goal, self.turning) != self.goal))
        chosen = (straight, None) if detours else (straight,)
        for points in islice(waypoints(self.origin, self.goal, self.units, self.turning), *chosen):
            yield [self._target(point, (k + 1) / len(points)) for k, point in enumerate(points)]

    def _target(self, point: Array, share: float) -> tuple[Target, dict[int, PoseRows]]:
        """Return the target at a way point; rotations are interpolated by the share."""
        goal_values = self.target.values
        values = dict(zip(self.joints, point.tolist(), strict=False))
        values |= {k: start_value + share * (goal_values[k] - start_value) for k, start_value in self.turned.items()}
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
