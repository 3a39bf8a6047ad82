"""What a target leaves free: what it names is kept where that can be, the rest is nearest to a reference pose.

One rule for poses, paths and references. If a frame that the target names can keep what is not said of it (a hand with
six freedoms of which only x is given), or the other motors where joints are given, they keep it as in the reference.
Where they cannot (a hand with five freedoms and a given place: its turn has three components and two freedoms), or
where motions are left that do not move them, the whole pose is nearest to the reference, theory (40).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parflex.closure import mobility
from parflex.closure.loops import Closures
from parflex.closure.nearest import Nearest, Wish, nearest
from parflex.closure.targets import FrameTarget, Target
from parflex.closure.working_modes import Rows, block
from parflex.records import Record
from parflex.recursion import jacobians, pose
from parflex.tree import Place, Tree

Array = np.ndarray
STILL = 1e-7  # turns per unit of the other motions: a component that moves less does not move


@dataclass(frozen=True, eq=False, repr=False)
class FreePart(Record):
    """A robot whose target leaves motions free."""

    closures: Closures
    actuated: tuple[int, ...]
    held: frozenset[int]
    reference: Array

    @property
    def tree(self) -> Tree:
        """The tree of the robot."""
        return self.closures.tree

    def widened(self, target: Target) -> Target:
        """The target with what it names kept; the target itself where that cannot be."""
        open_parts = self._open(target)
        if not target.frames and not open_parts:
            return self._with_motors(target)
        kept = [frame for frame in open_parts if np.linalg.norm(self._rows(target, [frame])) > STILL]
        J = self._rows(target, kept)
        still = np.linalg.norm(J, axis=1) < STILL
        if not kept or mobility.rank(J) < int(np.sum(~still)):
            return target
        return replace(target, frames=(*target.frames, *kept))

    def _with_motors(self, target: Target) -> Target:
        """All other motors where they stand in the reference, if each can be moved without the others."""
        free = self._free(target)
        motors = [k for k in self.actuated if k in set(free.tolist())]
        places = [int(np.flatnonzero(free == k)[0]) for k in motors]
        if not motors or mobility.rank(self._motions(target)[places]) < len(motors):
            return target
        links = [self.tree.links[self.tree.link_of_rate[k]] for k in motors]
        values = {link.q.start: float(self.reference[link.q.start]) for link in links}
        return replace(target, values=target.values | values, fixed=target.fixed | set(motors))

    def pose(self, asked: Target, q: Array) -> Array | None:
        """The nearest pose, from a closed one that meets the target; None where it is not found."""
        return nearest(self.closures, asked, self.held, Wish(self.tree, self.reference), q)

    def rates(self, asked: Target, q: Array, given: Sequence[Array]) -> Array:
        """All rates along a path at its nearest pose; `given` are those of the rows of the frames, kept ones rest."""
        here = Nearest(self.closures, self._free(asked), asked.frames, Wish(self.tree, self.reference), q)
        count = sum(frame.size for frame in asked.frames) - sum(len(row) for row in given)
        return here.rates(np.concatenate([np.zeros(self.closures.size), *given, np.zeros(count)]))

    def _free(self, target: Target) -> Array:
        return np.array([k for k in range(self.tree.n) if k not in self.held | target.fixed], dtype=int)

    def _open(self, target: Target) -> list[FrameTarget]:
        """What the target leaves open of the frames and platforms that it names, as in the reference."""
        tree = self.tree
        at, axes = pose(tree, self.reference), (0, 1) if tree.planar else (0, 1, 2)
        open_parts = [
            (frame.place, [axis for axis in axes if axis not in frame.position], frame.rotation is None)
            for frame in target.frames
        ]
        placed = {frame.place.link for frame in target.frames}
        for j in sorted({tree.link_of_rate[k] for k in target.fixed}):
            link = tree.links[j]
            if link.joint.moves_freely:
                first = link.v.start + len(axes)
                whole = first - len(axes) in target.fixed
                turned = first in target.fixed
                if j in placed:  # its position stands in rows
                    open_parts = [(p, rest, turns and not turned) for p, rest, turns in open_parts]
                else:
                    open_parts.append((Place(j, np.eye(3), np.zeros(3)), [] if whole else list(axes), not turned))
        result = []
        for place, rest, turns in open_parts:
            R, p = at.of(place)
            if rest or turns:
                result.append(FrameTarget("", place, {axis: float(p[axis]) for axis in rest}, R if turns else None))
        return result

    def _rows(self, target: Target, kept: Sequence[FrameTarget]) -> Array:
        """Rows of what must be kept, without units, in the motions that closures and target allow."""
        at = pose(self.tree, self.reference)
        links = jacobians(self.tree, at)
        return block(self.tree, kept, self._free(target), at, links) @ self._motions(target)

    def _motions(self, target: Target) -> Array:
        """A basis of the motions that closures and target allow at the reference, without units."""
        at = pose(self.tree, self.reference)
        rows: list[Rows] = [*self.closures.rows, *target.frames]
        J = block(self.tree, rows, self._free(target), at, jacobians(self.tree, at))
        if not len(J):
            return np.eye(J.shape[1])
        _, _, Vt = np.linalg.svd(J, full_matrices=True)
        return Vt[mobility.rank(J) :].T
