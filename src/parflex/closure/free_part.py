"""What a target leaves free: what it names is kept where that can be, the rest is nearest to a reference pose.

One rule for poses, paths and references. If a frame that the target names can keep what is not said of it (a hand with
six freedoms of which only x is given), or the other motors where joints are given, they keep it as in the reference.
Where they cannot (a hand with five freedoms and a given place: its turn has three components and two freedoms), or
where motions are left that do not move them, the whole pose is nearest to the reference, theory (40). A frame whose
z axis has a given direction came there by the shortest turn from the reference, or keeps its place if it cannot do
both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from parflex.closure import mobility
from parflex.closure.loops import Closures
from parflex.closure.nearest import Nearest, Wish, nearest
from parflex.closure.pose_rows import (
    AxisTarget,
    JointTarget,
    OnFrame,
    SpinTarget,
    across,
    shortest_turn,
    spin_of_turn,
)
from parflex.closure.targets import FrameTarget, PoseRows, Target
from parflex.closure.working_modes import Rows, block
from parflex.records import Record
from parflex.recursion.kinematics import jacobians, pose
from parflex.tree.tree import Place, Tree

Array = np.ndarray
STILL = 1e-7  # turns per unit of the other motions: a component that moves less does not move


@dataclass(frozen=True, eq=False, repr=False)
class FreePart(Record):
    """A robot whose target leaves motions free."""

    closures: Closures
    actuated: tuple[int, ...]
    held: frozenset[int]
    reference: Array
    poses: tuple[Array, ...] = ()  # others near it: what rests at all of them rests in general
    known: dict[tuple, tuple[int, ...]] = field(
        default_factory=dict, compare=False
    )  # what can be kept, by what is asked

    @property
    def tree(self) -> Tree:
        """The tree of the robot."""
        return self.closures.tree

    def undetermined(self, target: Target, poses: Sequence[Array]) -> int:
        """How many motions conditions leave free, in general: at that one of several poses which leaves fewest."""
        free, left = self._free(target), []
        for q in poses:
            at = pose(self.tree, q)
            rows: list[Rows] = [*self.closures.rows, *(row.met(at) for row in target.frames)]
            left.append(len(free) - mobility.rank(block(self.tree, rows, free, at, jacobians(self.tree, at))))
        return min(left)

    def contradicts(self, target: Target) -> bool:
        """Whether more conditions of a target move with the robot than it has freedoms for, in general.

        Such a target holds at single poses only: what it keeps beside what was named cannot be kept.
        """
        key = ("contradicts", target.fixed, self.held, tuple(row.sort for row in target.frames))
        if key not in self.known:  # two threads may both find it: they find the same
            free = self._free(Target())
            stated = np.isin(free, sorted(target.fixed))
            found = []
            for q in (self.reference, *self.poses):
                at = pose(self.tree, q)
                rows = block(self.tree, [row.met(at) for row in target.frames], free, at, jacobians(self.tree, at))
                found.append(np.concatenate([np.eye(len(free))[stated], rows]) @ self._motions(Target(), q))
            moving = np.any([np.linalg.norm(J, axis=1) >= STILL for J in found], axis=0)
            self.known[key] = (int(np.sum(moving)) > max(map(mobility.rank, found)),)
        return bool(self.known[key][0])

    def widened(self, target: Target) -> Target:
        """The target with what it names kept; the target itself where that cannot be."""
        open_parts = self._open(target)
        if all(isinstance(row, JointTarget) for row in target.frames) and not open_parts:
            return self._with_motors(target)
        key = (target.fixed, self.held, tuple(row.sort for row in (*target.frames, *open_parts)))
        if key not in self.known:  # two threads may both find it: they find the same
            self.known[key] = self._kept_of(target, open_parts)
        kept = [open_parts[index] for index in self.known[key]]
        return replace(target, frames=(*target.frames, *kept)) if kept else target

    def _kept_of(self, target: Target, open_parts: Sequence[PoseRows]) -> tuple[int, ...]:
        """Numbers of the open parts that can be kept: all, or all but turns about given axes, or none.

        By rank alone, whatever the values: one set of conditions has one rule, along a path too.
        """
        whole = [i for i, part in enumerate(open_parts) if np.linalg.norm(self._rows(target, [part])) > STILL]
        for chosen in (whole, [i for i in whole if not isinstance(open_parts[i], SpinTarget)]):
            kept = [open_parts[i] for i in chosen]
            found = [self._rows(target, kept, q) for q in (self.reference, *self.poses)]
            turning = np.any([np.linalg.norm(J, axis=1) >= STILL for J in found], axis=0)
            if max(map(mobility.rank, found)) == int(np.sum(turning)):
                return tuple(chosen)
        return ()

    def _with_motors(self, target: Target) -> Target:
        """All other motors where they stand in the reference, if each can be moved without the others.

        Motors that do not move any more, by couplings to what is given, are where these put them.
        """
        free, motions = self._free(target), self._motions(target)
        stated = {row.rate for row in target.frames if isinstance(row, JointTarget)}
        row_of = {int(k): motions[row] for row, k in enumerate(free)}
        motors = [k for k in self.actuated if k in row_of and k not in stated and np.linalg.norm(row_of[k]) > STILL]
        if not motors or mobility.rank(np.array([row_of[k] for k in motors])) < len(motors):
            return target
        links = [self.tree.links[self.tree.link_of_rate[k]] for k in motors]
        values = {link.q.start: float(self.reference[link.q.start]) for link in links}
        return replace(target, values=target.values | values, fixed=target.fixed | set(motors))

    def pose(self, asked: Target, q: Array) -> Array | None:
        """The nearest pose, from a closed one that meets the target; None where it is not found."""
        return nearest(self.closures, asked, self.held, Wish(self.tree, self.reference), q)

    def moved(self, asked: Target, q: Array, rates: Array, pushes: Array) -> tuple[Array, Array]:
        """All rates and accelerations along a path at its pose, from derivatives of the rows of the frames.

        Accelerations of a nearest pose are missing (nan): they are the slopes of its rates.
        """
        here = Nearest(self.closures, self._free(asked), asked.frames, Wish(self.tree, self.reference), q)
        closed, (kept, kept_pushes) = np.zeros(self.closures.size), self._kept(asked, rates, pushes)
        qd = here.rates(np.concatenate([closed, rates, kept]))
        if here.basis:
            return qd, np.full(len(qd), np.nan)
        return qd, here.accelerations(np.concatenate([closed, pushes, kept_pushes]), qd)

    def _kept(self, asked: Target, rates: Array, pushes: Array) -> tuple[Array, Array]:
        """Derivatives of rows behind those of a path: they rest, but for turns about axes that it moves."""
        first, found, moved = 0, [np.zeros((2, 0))], {}
        at = pose(self.tree, self.reference)
        for row in asked.frames:
            if isinstance(row, AxisTarget):
                e, own = across(row.direction), slice(first, first + 2)
                d1 = rates[own] @ e
                moved[row.name] = (row.direction, d1, pushes[own] @ e - d1 @ d1 * row.direction)
            if first >= len(rates):
                spins = isinstance(row, SpinTarget) and row.name in moved
                z = row.axis(at) if isinstance(row, SpinTarget) else None
                turn = spin_of_turn(z, moved[row.name]) if spins and z is not None else None
                found.append(np.zeros((2, row.size)) if turn is None else np.array(turn)[:, None])
            first += row.size
        both = np.concatenate(found, axis=1)
        return both[0], both[1]

    def _free(self, target: Target) -> Array:
        return np.array([k for k in range(self.tree.n) if k not in self.held | target.fixed], dtype=int)

    def _open(self, target: Target) -> list[PoseRows]:
        """What the target leaves open of the frames and platforms that it names, as in the reference."""
        tree = self.tree
        at, axes = pose(tree, self.reference), (0, 1) if tree.planar else (0, 1, 2)
        named: dict[str, list[FrameTarget | OnFrame]] = {}
        for row in target.frames:
            if isinstance(row, FrameTarget | OnFrame):
                named.setdefault(row.name, []).append(row)
        for j in sorted({tree.link_of_rate[k] for k in target.fixed}):
            body = Place(j, np.eye(3), np.zeros(3))
            if tree.links[j].joint.moves_freely and all(rows[0].place.link != j for rows in named.values()):
                named[f" {j}"] = [FrameTarget("", body)]
        result: list[PoseRows] = []
        for rows in named.values():
            place = rows[0].place
            whole, turned = self._outright(place, target.fixed)
            said = {axis for row in rows if isinstance(row, FrameTarget) for axis in row.position}
            rest = [axis for axis in axes if axis not in said and not whole]
            turns = not turned and not any(isinstance(row, OnFrame) or row.rotation is not None for row in rows)
            R, p = at.of(place)
            if rest or turns:
                result.append(FrameTarget("", place, {axis: float(p[axis]) for axis in rest}, R if turns else None))
            for row in rows:
                if isinstance(row, AxisTarget) and not turned:
                    rotation = shortest_turn(R[:, 2], row.direction) @ R
                    result.append(SpinTarget(row.name, place, row.direction, rotation))
        return result

    def _outright(self, place: Place, fixed: frozenset[int]) -> tuple[bool, bool]:
        """Whether position and turn of a place are coordinates of a free body that are given."""
        link = self.tree.links[place.link]
        if not link.joint.moves_freely:
            return False, False
        first = link.v.start + (2 if self.tree.planar else 3)
        if place.inner is not None:
            return False, False
        return link.v.start in fixed and not place.position.any(), first in fixed

    def _rows(self, target: Target, kept: Sequence[PoseRows], q: Array | None = None) -> Array:
        """Rows of what must be kept, without units, in the motions that closures and target allow."""
        at = pose(self.tree, self.reference if q is None else q)
        links = jacobians(self.tree, at)
        rows = [row.met(at) for row in kept]
        return block(self.tree, rows, self._free(target), at, links) @ self._motions(target, q)

    def _motions(self, target: Target, q: Array | None = None) -> Array:
        """A basis of the motions that closures and target allow at the reference, or elsewhere, without units."""
        at = pose(self.tree, self.reference if q is None else q)
        rows: list[Rows] = [*self.closures.rows, *(row.met(at) for row in target.frames)]
        J = block(self.tree, rows, self._free(target), at, jacobians(self.tree, at))
        if not len(J):
            return np.eye(J.shape[1])
        _, _, Vt = np.linalg.svd(J, full_matrices=True)
        return Vt[mobility.rank(J) :].T
