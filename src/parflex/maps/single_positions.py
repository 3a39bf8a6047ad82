"""Assemble poses one by one with few searches: lengths of links first, then neighbours and home.

A search over many starts takes a hundred times as long as Newton's method from a neighbour, and is in vain at poses out
of reach. A pose is therefore excluded if the lengths of links prove it unreachable, then tried from its neighbours and
from home; only some of the remaining poses are searched for.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from parflex.errors import ParflexError, SingularError
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.robot.coordinate_names import joint_named
from parflex.robot.robot import Robot

Array = np.ndarray
LAST = 20  # poses found before, of which the nearest is the start
SEARCHED, LEAST = 1 / 64, 8  # share of all rows that are searched for, and how many of few
SPARE = 1e-9  # of the typical length: how far beyond its links a pose is to count as beyond them
BEYOND_LINKS = "the pose cannot be reached: the links are too short or too long for it"
NOT_FOUND = "the pose was not found from home or from its neighbours: it may be out of reach"


@dataclass(frozen=True, eq=False, repr=False)
class Chain(Record):
    """A chain of links from a fixed point to the end effector: nearest and farthest distance that it spans."""

    foot: Array
    nearest: float
    farthest: float


class Reach:
    """What the lengths of links say of places of the end effector, as far as coordinates name these."""

    def __init__(self, robot: Robot, names: list[str]) -> None:
        tree = robot.tree
        axes = {"x": 0, "y": 1, "z": 2}
        plain = {name: axes[name] for name in names if name in axes and joint_named(tree, name) is None}
        self.columns = [names.index(name) for name in plain]
        self.axes = list(plain.values())
        self.whole = len(plain) == (2 if tree.planar else 3)
        self.spare = SPARE * tree.length
        self.chains = self._chains(robot) if plain else []

    def _chains(self, robot: Robot) -> list[Chain]:
        tree, at = robot.tree, Configuration(robot, robot.home).at
        tip = tree.places[tree.end_effector]
        end = at.of(tip)[1]
        ways = [(tip.link, [end])]
        for loop in robot.closures.loops:
            if len(loop.translations) < (2 if tree.planar else 3):
                continue
            for own, other in ((loop.first, loop.second), (loop.second, loop.first)):
                if own.link == tip.link:
                    ways.append((other.link, [at.of(own)[1], end]))
        found = []
        for link, rest in ways:
            path = sorted(tree.path(link)) if link >= 0 else []  # from the ground on
            if not path or any(np.any(tree.links[j].joint.S_v) for j in path):
                continue  # what slides has no length
            points = [at.position[j] for j in path] + rest
            sizes = [float(np.linalg.norm(b - a)) for a, b in pairwise(points)]
            total, longest = sum(sizes), max(sizes)
            found.append(Chain(np.asarray(points[0], dtype=float), max(0.0, 2 * longest - total), total))
        return found

    def excludes(self, row: Array) -> bool:
        """Whether no turn of the joints brings the end effector there."""
        for chain in self.chains:
            far = float(np.linalg.norm(row[self.columns] - chain.foot[self.axes]))
            if far > chain.farthest + self.spare or (self.whole and far < chain.nearest - self.spare):
                return True
        return False


class SinglePositions:
    """Finds poses one after the other; `states` are those of a pose that is found, out of reach, singular."""

    def __init__(self, robot: Robot, names: list[str], states: tuple[int, int, int]) -> None:
        self.robot, self.names = robot, names
        self.ok, self.unreachable, self.singular = states
        self.rigid = robot.locking(robot.deformations) if robot.deformations else robot
        self.reach = Reach(self.rigid, names)
        # elastic couplings are at rest at a pose, and rows that repeat others at home may hold something elsewhere:
        # where one pose is assembled, this is seen to
        self.plain = robot.at_rest is None and not robot.mobility.redundant

    def __call__(self, values: Array) -> tuple[Array, Array, list[str]]:
        """Whole positions (home where there are none), states, and sentences on poses without positions."""
        count = len(values)
        q, status, said = (
            np.repeat(self.robot.home[None], count, axis=0),
            np.full(count, self.unreachable),
            [""] * count,
        )
        found: list[int] = []
        left = max(LEAST, int(SEARCHED * count))
        for k, row in enumerate(values):
            if self.reach.excludes(row):
                said[k] = BEYOND_LINKS
                continue
            last = found[-LAST:]
            nearest = [q[last[int(np.argmin(np.abs(values[last] - row).sum(axis=1)))]]] if last else []
            if self.plain:
                status[k], whole, said[k] = self._near(row, [*nearest, self.robot.home])
            else:
                status[k], whole, said[k] = self._searched(row, nearest[0]) if nearest else self._searched(row)
            if whole is None and status[k] == self.unreachable and left > 0 and (self.plain or nearest):
                status[k], whole, said[k] = self._searched(row)
                left -= status[k] != self.ok  # where searches find poses they go on
            if whole is not None:
                q[k] = whole
                found.append(k)
        return q, status, said

    def _near(self, row: Array, starts: list[Array]) -> tuple[int, Array | None, str]:
        """By Newton's method alone; of poses that leave motions free nothing, since these stay near home."""
        given = self._given(row)
        try:
            if self.robot.pose_finder.leaves_free(given):
                return self.unreachable, None, NOT_FOUND
            for start in starts:
                whole = self.rigid.pose_finder.near(given, start)
                if whole is not None:
                    fixed = set(self.robot.pose_finder.read(given).values)
                    return self._judged(
                        whole if start is not self.robot.home else self.robot.tree.within_limits(whole, fixed)
                    )
        except SingularError as error:
            return self.singular, None, error.message
        except ParflexError as error:
            return self.unreachable, None, error.message
        return self.unreachable, None, NOT_FOUND

    def _searched(self, row: Array, near: Array | None = None) -> tuple[int, Array | None, str]:
        """As one pose is found: from home or from a pose nearby, then from starts all over its joints."""
        try:
            return self._judged(self.robot.assemble(self._given(row), near))
        except SingularError as error:
            return self.singular, None, error.message
        except ParflexError as error:
            return self.unreachable, None, error.message

    def _judged(self, whole: Array) -> tuple[int, Array | None, str]:
        try:
            Configuration(self.robot, whole).reduction  # noqa: B018 - raises where the closures are singular
        except SingularError as error:
            return self.singular, None, error.message
        return self.ok, whole, ""

    def _given(self, row: Array) -> dict[str, float]:
        return dict(zip(self.names, row.tolist(), strict=True))
