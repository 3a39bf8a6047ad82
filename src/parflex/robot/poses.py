"""Solve poses: named coordinates are met, the others stay near home, and errors name the missed condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure.constraints import Closures
from parflex.closure.nearest_pose import FreePart
from parflex.closure.targets import PoseRows, Target, with_fixed_rows
from parflex.closure.unreachable import Refusal, unmet_condition
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.records import degrees_of_freedom
from parflex.robot.gearing import coupling_order
from parflex.robot.home import open_poses_beside
from parflex.robot.pose_input import complete_end_effector, read_pose
from parflex.robot.states import contradiction

if TYPE_CHECKING:
    from parflex.robot.robot import Robot

Array = np.ndarray
SAME_FRAME = 1e-8  # characteristic lengths: tolerance of frame positions


class PoseFinder:
    """Solver of poses of a robot by conditions on joints and frames."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._retainable: dict[tuple, tuple[int, ...]] = {}
        self._undetermined: dict[tuple, int] = {}

    def read(self, coordinates: Mapping[str, float]) -> Target:
        """Return the conditions of a pose by names."""
        return read_pose(self.robot.tree, coordinates, "pose", None, self.robot.home)

    def find(self, target: Target, q: Array) -> Array:
        """Return positions at a target from a pose; raise with the missed loop or condition and its distance."""
        error: ParflexError | None = None
        result: Array | Refusal | None = None
        try:
            result = self.solve(target, q, self.robot.home, self.robot.locked)
        except (UnreachableError, SingularError) as raised:
            error = raised
        except ParflexError as raised:
            raised.file = raised.file or self.robot.file
            raise
        if result is not None and not isinstance(result, Refusal):
            return result
        if self._count(target) <= self.robot.undeformed.freedoms:
            held = self.robot.locked | set(self.robot.deformations)
            error = unmet_condition(self.robot.assembler, target, self.robot.home, held) or error
        missed = error or self._explained(result, q)
        missed.file = missed.file or self.robot.file
        raise missed

    def near(self, coordinates: Mapping[str, float], q: Array) -> Array | None:
        """Return positions by Newton's method from `q` or along the straight path, or None."""
        target, reference = self.read(coordinates), self.robot.home
        held, wider = self.robot.locked | set(self.robot.deformations), self._whole(target, q, reference)
        result = self._closed(target, q, reference, held, wider, searching=False)
        return None if isinstance(result, Refusal) else result

    def solve(
        self, target: Target, q: Array, reference: Array | None, locked: frozenset[int], home: bool = False
    ) -> Array | Refusal:
        """Return positions at a target from `q` in the working mode of `reference` (None: any), or why not.

        Coordinates that the target does not specify keep their value. They follow from the loops if these have
        fewer degrees of freedom, at `home` from `q`, else at the nearest pose. Bodies stay undeformed, and
        elastic couplings unstretched unless the target stretches them.
        """
        for robot in self._unstretched(target):
            try:
                result = robot.pose_finder.solve(target, q, reference, locked, home)
            except (UnreachableError, SingularError):
                continue
            if not isinstance(result, Refusal):
                return result
        locked = locked | set(self.robot.deformations)
        if home or reference is None or not self.is_free(target):
            return self._closed(target, q, reference, locked, self._whole(target, q, reference))
        part = self._free_part(reference)
        widened = part.widened(target)
        whole = self._given_whole(target, widened, reference)
        closed = self._closed(whole, q, reference, locked, searching=widened is target)
        if isinstance(closed, Refusal) and widened is not target:  # without the retained coordinates, or far away
            narrow = self._closed(target, q, reference, locked)
            if not isinstance(narrow, Refusal) or narrow.closes:
                closed = self._closed(whole, q, reference, locked)
            if isinstance(closed, Refusal):
                if isinstance(narrow, Refusal) and self._count(target) < self.robot.undeformed.freedoms:
                    return closed
                widened, closed = target, narrow
        if isinstance(closed, Refusal):
            return closed
        near = part.pose(widened, closed)
        if near is None:
            text = "the pose does not determine the configuration, and none is nearest to home"
            raise UnreachableError(text, key="pose", hint="give more components of the pose")
        return near

    def _unstretched(self, target: Target) -> Iterator[Robot]:
        """Return the robot with elastic couplings held: all, or those that can be unstretched together."""
        if self.robot.at_rest is not None:
            yield self.robot.at_rest
            stretched = coupling_order(self.robot, target, target).stretched
            others = self.robot.resting_but(stretched) if stretched else None
            if others is not None:
                yield others

    def _whole(self, target: Target, q: Array, reference: Array | None) -> Target | None:
        """Return `whole`, or None if it contradicts the target."""
        wider = self.whole(target, q)
        return None if wider is not None and reference is not None and self.contradicts(wider) else wider

    def _closed(
        self,
        target: Target,
        q: Array,
        reference: Array | None,
        locked: frozenset[int],
        wider: Target | None = None,
        searching: bool = True,
    ) -> Array | Refusal:
        """Return closed positions at a target near `q`, at the `wider` target if they exist."""
        assembler, last = self.robot.assembler, target if wider is None or reference is None else wider
        if wider is not None:
            row_count = len(wider.fixed) + sum(frame.size for frame in wider.frames)
            for choice in (wider, target) if reference is None or row_count > self.robot.undeformed.freedoms else ():
                closed = assembler.near(choice, q, reference, locked)
                if closed is not None:
                    return closed
        result = assembler.solve(last, q, reference, locked, searching)
        return replace(result, target=target) if isinstance(result, Refusal) else result

    def whole(self, target: Target, q: Array) -> Target | None:
        """Return the target completed for the same body or the motors, or None if it is complete."""
        return complete_end_effector(self.robot.tree, self.robot.actuated, target, q)

    def contradicts(self, target: Target) -> bool:
        """Return whether conditions of a target contradict each other except at single poses."""
        finder = self.robot.undeformed.pose_finder
        return finder._free_part(finder.robot.home).contradicts(target)  # elastic couplings may be stretched

    def _given_whole(self, target: Target, widened: Target, reference: Array) -> Target:
        """Return `widened` with all platform coordinates if it keeps them all, which decouples the legs."""
        wider = self.whole(target, reference)
        if widened is target or not widened.frames or wider is None or wider.frames:
            return widened
        bodies = [self.robot.tree.links[self.robot.tree.link_of_rate[k]] for k in wider.fixed]
        platform_values = {i: float(reference[i]) for link in bodies for i in range(link.q.start, link.q.stop)}
        return replace(wider, values=platform_values | wider.values)

    # -- what a target leaves free ---------------------------------------------------------------------

    def leaves_free(self, coordinates: Mapping[str, float]) -> bool:
        """Return whether values of coordinates (m, rad) and other conditions leave motions of the robot free."""
        finder = self._at_rest
        return finder.is_free(finder.read(coordinates))

    def loose(self, coordinates: Mapping[str, float]) -> bool:
        """Return whether positions of frames (m, rad) allow motions that change the orientation of the frames."""
        finder = self._at_rest
        target = finder.read(coordinates)
        return finder.is_free(target) and finder.free_part.widened(target) is target

    def path_motion(
        self, coordinates: Mapping[str, float], q: Array, derivatives: Callable[[PoseRows], tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """Return all rates and accelerations along a path through a pose `q` by conditions on `coordinates`.

        `derivatives` has the first and second derivative of the rows of each condition by the path length. Free
        motions are those of the nearest pose, with accelerations nan.
        """
        target = with_fixed_rows(self.robot.tree, self.read(coordinates))
        part = self.free_part
        widened = part.widened(target) if self._at_rest.is_free(target) else target
        moved = max((abs(q[k] - value) for k, value in widened.values.items()), default=0.0)
        if self.robot.assembler.opening(q, widened.frames) > SAME_FRAME or moved > SAME_FRAME:
            widened = target
        rates, pushes = zip(*map(derivatives, target.frames), strict=True)
        return part.moved(widened, q, np.concatenate(rates), np.concatenate(pushes))

    @property
    def _at_rest(self) -> PoseFinder:
        return (self.robot.at_rest or self.robot).pose_finder

    @property
    def free_part(self) -> FreePart:
        """The rule for free motions of poses, from home."""
        return self._free_part(self.robot.home, self._at_rest.robot.closures)

    def _free_part(self, reference: Array, closures: Closures | None = None) -> FreePart:
        robot = self.robot
        held = robot.locked | set(robot.deformations)
        rows_held = robot.closures if closures is None else closures
        return FreePart(rows_held, robot.actuated, held, reference, self._nearby, self._retainable)

    @cached_property
    def _nearby(self) -> tuple[Array, ...]:
        """Poses near home at which rows have their general rank, also for robots without loops."""
        rigid = self.robot.undeformed
        return rigid.reference_poses[1:] if self.robot.closures.size else tuple(open_poses_beside(rigid, rigid.free))

    def is_free(self, target: Target) -> bool:
        """Return whether conditions are fewer than the degrees of freedom, or repeat each other everywhere."""
        if self._count(target) < self.robot.undeformed.freedoms:
            return True
        key = (target.fixed, tuple(row.general_key for row in target.frames))
        if key not in self._undetermined:
            finder = self.robot.undeformed.pose_finder
            poses = (finder.robot.home, *finder._nearby)
            self._undetermined[key] = finder.free_part.undetermined(target, poses)
        return self._undetermined[key] > 0

    # -- why a pose is not reached ---------------------------------------------------------------------

    def _count(self, target: Target) -> int:
        return len(self._words(target))

    def _words(self, target: Target) -> list[str]:
        """Return a word for each condition; some conditions on one direction are empty."""
        words = [self.robot.tree.rate_names[k] for k in sorted(target.fixed)]
        return words + [word for frame in target.frames for word in frame.words(self.robot.tree.planar)]

    def _explained(self, refusal: Refusal | None, q: Array) -> ParflexError:
        """Return the error for a refusal, with contradictions of couplings or conditions first."""
        assert refusal is not None and refusal.target is not None
        error, tree = refusal.error(), self.robot.tree
        if not isinstance(error, UnreachableError):
            return error
        target, locked = refusal.target, self.robot.locked | set(self.robot.deformations)
        joint_values = {}
        for link in tree.links:
            if link.joint.one_axis and link.v.start in target.fixed | locked:
                joint_values[link.v.start] = float(target.values.get(link.q.start, q[link.q.start]))
        conflict = contradiction(self.robot.closures.constraints, tree, joint_values, offsets=True)
        if conflict is not None:
            error.message, error.hint = conflict.message("pose"), conflict.hint
            return error
        names = self._words(target)
        excess = len(names) - self.robot.undeformed.freedoms
        if excess > 0 and not self.robot.assembler.can_start_towards(target, self.robot.home, locked):
            condition_names, freedoms = (
                ", ".join(filter(None, names)),
                degrees_of_freedom(self.robot.undeformed.freedoms),
            )
            error.message = (
                f"{len(names)} conditions are given ({condition_names}), but the robot has {freedoms}, and the "
                "conditions contradict each other, or their pose is not found from home"
            )
            error.hint = f"leave out {excess} of them"
        return error
