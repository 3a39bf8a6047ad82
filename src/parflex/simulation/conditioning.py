"""How well the independent rates of a run determine the others, row by row, and which ones would do it better.

Of the scaled rows of the closures, s_1 is the largest singular value, s_r the last one that is not zero in general, and
s_f that of the columns of the dependent rates alone. `s_f / s_r` says how well the rates were chosen, at most 1; where
it falls others are taken. `s_r / s_1` has nothing to do with the choice: where it falls the closures themselves are
near a singular pose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parflex.closure import mobility
from parflex.codegen import cache
from parflex.codegen.outputs import MANY_RATES, closure_rows
from parflex.records import Record
from parflex.simulation.problem import Problem
from parflex.tree.tree import Tree

Array = np.ndarray
POOR = 0.4  # of s_f / s_r: the rates of the catalogue have 0.3 to 1 at home, those of a dead centre 0
BETTER = 2.0  # other rates must be better by so much, or two choices would take turns
NEAR = 0.05  # of s_r / s_1: a tenth of a radian or so before a singular pose,
NEAR_SHARE = 0.15  # and this of what it is at home
WELL = 1.5  # times that, and it is left behind
LOOK = 0.02  # rad of a typical length: rows that are nearer to each other are not checked one by one
AHEAD = 0.1  # likewise, between two checks of rows: from POOR on angles of a loop, which add some of its joints, go 0.4
MOST_AHEAD = 1e9  # rows: that of a robot at rest
JUMP = 0.5  # of the way between two rows that their rates do not explain: another assembly


@dataclass(frozen=True, eq=False, repr=False)
class Event(Record):
    """A row at which something must be done: "choose" other rates, or "cross" a singular pose; `again` from there."""

    row: int
    kind: str
    again: bool = False


@dataclass
class Watch:
    """Checks rows of a run of a robot with loops."""

    problem: Problem
    gone: float = 0.0  # since a row was checked, in radians of a typical length
    closely: bool = False  # whether few rows are computed between two checks: a check costs as much as a hundred steps

    @cached_property
    def free(self) -> Array:
        """Rates that may depend on others: those of motors that follow a motion may not."""
        robot = self.problem.robot
        return np.array([k for k in robot.free if not (self.problem.driven and k in robot.actuated)], dtype=int)

    @cached_property
    def rank(self) -> int:
        """Of the closures in general."""
        return self.problem.robot.mobility.rank

    @property
    def usual(self) -> mobility.Usual:
        """The largest singular value at regular poses, for poses at which all are small."""
        return self.problem.robot.usual_closures

    @cached_property
    def near(self) -> float:
        """Below this s_r / s_1 the closures are near a singular pose; kept on disk for robots of many rates."""
        robot = self.problem.robot
        many = len(robot.free) > MANY_RATES
        key = cache.key_of(robot, "near", tuple(int(k) for k in self.free)) if many else None
        kept = None if key is None else cache.read_bytes(key)
        if kept is not None:
            return float.fromhex(kept.decode())
        usual = max(self._spread(self.rows(q[None])[0])[1] for q in robot.reference_poses)
        found = float(min(NEAR, NEAR_SHARE * usual))
        if key is not None:
            cache.write_bytes(key, found.hex().encode())
        return found

    @cached_property
    def _lengths(self) -> list[int]:
        """Positions that are lengths of struts."""
        return [link.q.start for link in self.problem.robot.tree.links if link.strut]

    @cached_property
    def position_units(self) -> Array:
        """Of all positions, to compare ways."""
        return position_units(self.problem.robot.tree)

    def rows(self, q: Array) -> Array:
        """Scaled rows of the closures over the rates that may depend, at each of many poses."""
        robot = self.problem.robot
        place = {int(k): column for column, k in enumerate(robot.free)}
        columns = [place[int(k)] for k in self.free]
        return self._rows_at(q)[:, :, columns]

    @cached_property
    def _rows_at(self) -> Callable[[Array], Array]:
        return closure_rows(self.problem.robot)

    def _spread(self, J: Array) -> tuple[float, float]:
        values = np.linalg.svd(J, compute_uv=False)
        return float(values[self.rank - 1]), float(values[self.rank - 1] / mobility.largest(values, self.usual))

    def dependent(self, independent: Sequence[str]) -> list[int]:
        """Columns of the rates that depend on the named ones."""
        names, given = self.problem.robot.tree.rate_names, set(independent)
        return [i for i, k in enumerate(self.free) if names[k] not in given]

    def quality(self, J: Array, independent: Sequence[str]) -> float:
        """s_f / s_r."""
        block = np.linalg.svd(J[:, self.dependent(independent)], compute_uv=False)
        return float(block[self.rank - 1] / max(self._spread(J)[0], 1e-300))

    def is_near(self, q: Array, factor: float = 1.0) -> bool:
        """Whether the closures are near a singular pose."""
        return self._spread(self.rows(q[None])[0])[1] < factor * self.near

    def best(self, q: Array) -> tuple[tuple[str, ...], float]:
        """The rates that had better be independent at a pose, and how good they are."""
        return self._best(self.rows(q[None])[0])

    def _best(self, J: Array) -> tuple[tuple[str, ...], float]:
        """The same of rows of the closures."""
        robot = self.problem.robot
        mobility.refuse_other_branch(J, self.rank)
        found = []
        for weights in (np.ones(robot.tree.n), robot.preference):
            dependent = set(self.free[mobility.pivots(J * weights[self.free], self.rank)])
            names = tuple(robot.tree.rate_names[k] for k in robot.free if k not in dependent)
            found.append((self.quality(J, names), names))
        quality, names = max(found)
        return names, quality

    def at_start(self, q: Array, independent: Sequence[str]) -> Event | None:
        """What must be done before the first step."""
        J, self.gone = self.rows(q[None])[0], 0.0
        if self._spread(J)[1] < self.near:
            return Event(0, "cross")
        quality = self.quality(J, independent)
        return Event(0, "choose") if quality < POOR and self._best(J)[1] > BETTER * quality else None

    def rows_ahead(self, q: Array) -> int:
        """Rows that may be computed behind these until the next check: what poor rates determine takes labour."""
        fastest = float((np.abs(np.diff(q, axis=0)) / self.position_units).max(initial=0.0)) if self.closely else 0.0
        return max(1, int(min(AHEAD / max(fastest, 1e-300), MOST_AHEAD)))

    def first_event(self, q: Array, change: Array, out_step: float, independent: Sequence[str]) -> Event | None:
        """The first row, of closed positions and their rates of change, at which something must be done.

        Row 0 was checked before, or is near one that was.
        """
        way = np.abs(np.diff(q, axis=0)) / self.position_units
        explained = np.abs(np.diff(q, axis=0) - out_step / 2 * (change[1:] + change[:-1])) / self.position_units
        if self.problem.gaps is not None:  # a stop turns rates between two rows
            explained = explained - out_step / 2 * np.abs(np.diff(change, axis=0)) / self.position_units
        ways = way.max(axis=1, initial=0.0)
        rigid = not self.problem.robot.tree.elastic  # deformations may oscillate between two rows
        jumped = rigid & (explained.max(axis=1, initial=0.0) > JUMP * np.maximum(ways, LOOK))
        jumps = np.flatnonzero(jumped | (q[1:, self._lengths] <= 0).any(axis=1))  # a length has no other side
        until = int(jumps[0]) + 1 if len(jumps) else len(q)
        on = self.gone + np.concatenate([[0.0], np.cumsum(ways)])
        marks, self.gone = np.floor(on / LOOK), float(on[-1] % LOOK)
        looked = [k for k in range(1, until) if marks[k] > marks[k - 1] or (len(jumps) and k == until - 1)]
        if looked:
            J, r = self.rows(q[looked]), self.rank - 1
            whole = np.linalg.svd(J, compute_uv=False)
            block = np.linalg.svd(J[:, :, self.dependent(independent)], compute_uv=False)
            for k, held, values, own in zip(looked, J, whole, block, strict=True):
                if values[r] < self.near * mobility.largest(values, self.usual):
                    return Event(k, "cross")
                quality = own[r] / values[r]
                if quality < POOR and self._best(held)[1] > BETTER * quality:
                    return Event(k, "choose")
        return Event(until - 1, "jump", again=True) if len(jumps) else None


def position_units(tree: Tree) -> Array:
    """Typical lengths of positions that are lengths, radians of angles: to compare ways."""
    units = np.ones(tree.nq)
    for link in tree.links:
        own = tree.rate_units[link.v]
        units[link.q] = own if len(own) == link.q.stop - link.q.start else 1.0
        if link.joint.moves_freely and link.joint.quaternion:
            units[link.q.start : link.q.start + 3] = tree.length
        units[link.e] = tree.rate_units[link.e_v]
    return units
