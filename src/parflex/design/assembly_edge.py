"""The boundary of assembly as smooth limits on designs: distance of each chain from its stretched or folded state.

At this boundary the Jacobian of loops and target loses rank: positions change as the square root of the numbers of the
file, and so does the smallest singular value. Its square is smooth up to the boundary, with exact derivatives u^T dJ v
through the closed loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.design.design_state import DesignState, SensitiveDesign, pose_conditions, row_of_twin
from parflex.records import Record
from parflex.recursion.kinematics import jacobians
from parflex.robot.robot import Robot
from parflex.spatial.dual import Sensitive, slopes_last

Array = np.ndarray
NEAR = 0.3  # of the largest singular value: chains that are farther from their edge do not limit a step
DEPENDENT = 1e-7  # of the largest: rows that follow from others, such as turns out of the plane, have no edge
SOME = 8  # of many poses that cannot be reached at once are watched; if they do not do, more are
SAME = 1e-6  # of their size: singular values that are equal, as those of the legs of a symmetric robot


@dataclass(frozen=True, eq=False, repr=False)
class AssemblyEdge(Record):
    """How far a chain is from its edge at a pose: the squared singular value, with slopes along the ranges."""

    value: float
    slope: Array
    pose: Any
    along: Array  # motion that needs no change of the pose at the edge
    joints: tuple[str, ...]  # that move in it

    @property
    def words(self) -> str:
        """For messages."""
        shown = "home" if self.pose is None else self.pose
        if isinstance(shown, Mapping):
            shown = ", ".join(f"{name} = {value:g}" for name, value in shown.items())
        return f"at the pose ({shown}) the chain of {' and '.join(repr(name) for name in self.joints)}"


class EdgeReader:
    """Edges of designs at poses; lengths are those of the first robot, so that values of designs are comparable."""

    def __init__(self, first: Robot, keys: Sequence[str], width: Array) -> None:
        self.first, self.keys, self.width = first, tuple(keys), width

    def edges(self, robot: Robot, poses: Sequence[Any], slopes: bool = True) -> list[AssemblyEdge]:
        """All chains near their edges at poses of a design."""
        design = SensitiveDesign(robot, self.keys if slopes else ())
        return [edge for pose in poses for edge in self._at(robot, pose, design)]

    def _at(self, robot: Robot, pose: Any, design: SensitiveDesign) -> list[AssemblyEdge]:
        state = DesignState(robot, pose, design.keys, None, design)
        target = pose_conditions(robot, pose)
        rest, twin = (robot.at_rest or robot), (state.twin.at_rest or state.twin)
        tree, bent = robot.tree, set(robot.deformations) | robot.locked
        columns = [k for k in range(tree.n) if k not in bent]
        rows = [*rest.closures.rows, *target.frames]
        if not rows or not columns:
            return []
        scales = [row.scale(self.first.tree.length) for row in rows]
        units = self.first.tree.rate_units[columns]
        at = state.here.at
        links = jacobians(tree, at)
        plain = [row.jacobian(tree, at, links)[:, columns] for row in rows]
        J = np.concatenate([own * s[:, None] * units for own, s in zip(plain, scales, strict=True)])
        U, sizes, Vt = np.linalg.svd(J, full_matrices=False)
        near = np.flatnonzero((sizes < NEAR * sizes[0]) & (sizes > DEPENDENT * sizes[0]))
        if not len(near):
            return []
        form = np.zeros((len(near), len(near), 0))
        if state.count:
            there = state.there.at
            moved = jacobians(state.twin.tree, there)
            own_rows = [*twin.closures.rows, *(row_of_twin(row, state.twin) for row in target.frames)]
            changes = np.concatenate(
                [
                    slopes_last(row.jacobian(state.twin.tree, there, moved)[:, columns], Sensitive, state.count)
                    * s[:, None, None] * units[:, None]
                    for row, s in zip(own_rows, scales, strict=True)
                ]
            )  # fmt: skip
            form = np.einsum("ia,ijk,bj->abk", U[:, near], changes, Vt[near])
            form = (form + form.transpose(1, 0, 2)) / 2 * self.width
        return self._parted(robot, pose, columns, sizes[near], Vt[near], form)

    def _parted(
        self, robot: Robot, pose: Any, columns: Sequence[int], sizes: Array, motions: Array, form: Array
    ) -> list[AssemblyEdge]:
        """Edges of singular values; equal ones are parted by a change of the design that no two chains share."""
        tree, found = robot.tree, []
        scale, generic = float(self.first.tree.length) ** 2, np.cos(1.0 + np.arange(form.shape[2]))
        start = 0
        while start < len(sizes):
            own = np.flatnonzero(np.abs(sizes - sizes[start]) <= SAME * sizes[start])
            block = form[np.ix_(own, own)]
            mixing = np.linalg.eigh(block @ generic)[1] if len(own) > 1 and len(generic) else np.eye(len(own))
            for k, mode in enumerate(mixing.T):
                value, motion = float(sizes[own[k]]), mode @ motions[own]
                most = np.flatnonzero(np.abs(motion) > 0.3 * np.abs(motion).max()).tolist()
                names = dict.fromkeys(tree.links[tree.link_of_rate[columns[c]]].name for c in most)
                slope = 2 * value * np.einsum("a,abk,b->k", mode, block, mode) / scale
                found.append(AssemblyEdge(value**2 / scale, slope, pose, motion, tuple(names)))
            start = int(own[-1]) + 1
        return found


class WatchedEdges:
    """Edges of designs of a problem, at the poses that some design could not reach."""

    def __init__(
        self, reader: EdgeReader, design: Callable[[Array], Robot], failing: Callable[[Array], list[Any]]
    ) -> None:
        self._reader, self._design, self._failing = reader, design, failing
        self.poses: list[Any] = []

    def watch(self, z: Array) -> bool:
        """Watch the poses that cannot be reached at a design, some of many; whether there are new ones."""
        known = {id(pose) for pose in self.poses}
        new = [pose for pose in self._failing(z) if id(pose) not in known]
        self.poses += [new[k] for k in np.unique(np.linspace(0, len(new) - 1, SOME).astype(int))] if new else []
        return bool(new)

    def at(self, z: Array, slopes: bool = True) -> list[AssemblyEdge]:
        """Edges at the watched poses."""
        return self._reader.edges(self._design(z), self.poses, slopes) if self.poses else []
