"""Assemble poses from names and values: specified coordinates are met, the others stay near home."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from parflex.closure.assembler import unmet_condition
from parflex.closure.nearest_pose import FreePart
from parflex.closure.targets import PoseRows, Target, with_fixed_rows
from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.records import count_of
from parflex.robot.gearing import coupling_order
from parflex.robot.pose_input import complete_end_effector, read_pose
from parflex.robot.states import Contradiction, contradiction

if TYPE_CHECKING:
    from parflex.robot.robot import Robot

Array = np.ndarray
SAME_FRAME = 1e-8  # typical lengths: a frame is where it should be


class PoseFinder:
    """Finds poses of a robot by conditions on joints and frames."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    def read(self, coordinates: Mapping[str, float]) -> Target:
        """The conditions of a pose that is given by names."""
        return read_pose(self.robot.tree, coordinates, "pose", None, self.robot.home)

    def found(self, target: Target, q: Array) -> Array:
        """Positions at a target, from a pose on; where there are none, the condition that is missed is named."""
        try:
            return self.assemble(target, q, self.robot.home, self.robot.locked)
        except (UnreachableError, SingularError) as error:
            if self._conditions(target) > self.rigid_freedoms:
                raise
            held = self.robot.locked | set(self.robot.deformations)
            missed = unmet_condition(self.robot.assembler, target, self.robot.home, held)
            if missed is None:
                raise
            missed.file = error.file
            raise missed from None

    def assemble(self, target: Target, q: Array, reference: Array | None, locked: frozenset[int]) -> Array:
        """What the target leaves open keeps its value; it follows from the loops where they have fewer freedoms.

        Bodies stay undeformed, and so do elastic couplings, but those that the target itself stretches.
        """
        if self.robot.at_rest is not None:
            try:
                return self.robot.at_rest.pose_finder.assemble(target, q, reference, locked)
            except (UnreachableError, SingularError):
                stretched = coupling_order(self.robot, target, target).stretched
                others = self.robot.resting_but(stretched) if stretched else None
            if others is not None:
                try:
                    return others.pose_finder.assemble(target, q, reference, locked)
                except (UnreachableError, SingularError):
                    pass  # several cannot rest together
        locked = locked | set(self.robot.deformations)
        if reference is None or not self._leaves_free(target):
            return self._closed(target, q, reference, locked)
        part = FreePart(self.robot.closures, self.robot.actuated, locked, reference, self.nearby, self._keepable)
        widened = part.widened(target)
        try:
            closed = self._closed(self._given_whole(target, widened, reference), q, reference, locked, widen=False)
        except (UnreachableError, SingularError) as missed:  # not with what it had better keep
            if widened is target:
                raise
            widened, dependent = target, self._conditions(target) >= self.rigid_freedoms
            try:
                closed = self._closed(widened, q, reference, locked, widen=False, explained=dependent)
            except ParflexError as error:
                raise (error if dependent else missed) from None
        near = part.pose(widened, closed)
        if near is None:
            raise UnreachableError(
                "the pose does not determine the configuration, and none is nearest to home",
                key="pose",
                file=self.robot.file,
                hint="give more components of the pose",
            )
        return near

    def _closed(
        self,
        target: Target,
        q: Array,
        reference: Array | None,
        locked: frozenset[int],
        widen: bool = True,
        explained: bool = True,
    ) -> Array:
        """Closed positions at a target, near `q`."""
        wider = self.whole(target, q) if widen else None
        if wider is not None and reference is not None and self.contradicts(wider):
            wider = None  # what is named moves what it would keep
        try:
            if wider is None:
                return self.robot.assembler.assemble(target, q, reference, locked, explained)
            condition_count = len(wider.fixed) + sum(frame.size for frame in wider.frames)
            if reference is not None and condition_count <= self.rigid_freedoms:
                return self.robot.assembler.assemble(wider, q, reference, locked)
            for choice in (wider, target):
                closed = self.robot.assembler.near(choice, q, reference, locked)
                if closed is not None:
                    return closed
            return self.robot.assembler.assemble(target if reference is None else wider, q, reference, locked)
        except ParflexError as error:
            error.file = error.file or self.robot.file
            if isinstance(error, UnreachableError) and reference is not None:
                conflict = self._contradicted(target, q, locked)
                if conflict is None:
                    self._count_conditions(error, target, locked)
                else:
                    error.message, error.hint = conflict.message("pose"), conflict.hint
            raise

    def whole(self, target: Target, q: Array) -> Target | None:
        """The target with what it leaves open about the same body, or about the motors, kept; None if nothing is."""
        return complete_end_effector(self.robot.tree, self.robot.actuated, target, q)

    def contradicts(self, target: Target) -> bool:
        """Whether conditions of a target contradict each other but at single poses."""
        finder = self._undeformed.pose_finder
        held = finder.robot.locked | set(finder.robot.deformations)
        part = FreePart(
            finder.robot.closures, finder.robot.actuated, held, finder.robot.home, finder.nearby, finder._keepable
        )
        return part.contradicts(target)  # elastic couplings may be stretched

    def _given_whole(self, target: Target, widened: Target, reference: Array) -> Target:
        """`widened` by coordinates of the platform where it keeps all of them: then the legs stand apart."""
        wider = self.whole(target, reference)
        if widened is target or not widened.frames or wider is None or wider.frames:
            return widened
        bodies = [self.robot.tree.links[self.robot.tree.link_of_rate[k]] for k in wider.fixed]
        platform_values = {i: float(reference[i]) for link in bodies for i in range(link.q.start, link.q.stop)}
        return replace(wider, values=platform_values | wider.values)

    def leaves_free(self, coordinates: Mapping[str, float]) -> bool:
        """Whether values of coordinates (m, rad) and other conditions leave motions of the robot free."""
        if self.robot.at_rest is not None:
            return self.robot.at_rest.pose_finder.leaves_free(coordinates)
        return self._leaves_free(self.read(coordinates))

    def loose(self, coordinates: Mapping[str, float]) -> bool:
        """Whether positions of frames (m, rad) leave motions free in which the frames cannot keep their orientation."""
        if self.robot.at_rest is not None:
            return self.robot.at_rest.pose_finder.loose(coordinates)
        target = self.read(coordinates)
        return self._leaves_free(target) and self.free_part.widened(target) is target

    def path_motion(
        self, coordinates: Mapping[str, float], q: Array, derivatives: Callable[[PoseRows], tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """All rates and accelerations where a path passes a pose `q` that conditions on `coordinates` specify.

        `derivatives` has the first and second one of the rows of each condition, by the way along the path. Of what the
        conditions leave free they are those of the nearest pose; its accelerations are missing (nan).
        """
        target = with_fixed_rows(self.robot.tree, self.read(coordinates))
        part = self.free_part
        widened = (
            part.widened(target) if (self.robot.at_rest or self.robot).pose_finder._leaves_free(target) else target
        )
        moved = max((abs(q[k] - value) for k, value in widened.values.items()), default=0.0)
        if self.robot.assembler.opening(q, widened.frames) > SAME_FRAME or moved > SAME_FRAME:
            widened = target
        rates, pushes = zip(*map(derivatives, target.frames), strict=True)
        return part.moved(widened, q, np.concatenate(rates), np.concatenate(pushes))

    @property
    def free_part(self) -> FreePart:
        """How what a pose leaves free follows, from home on."""
        rows_held = self.robot.closures if self.robot.at_rest is None else self.robot.at_rest.closures
        held = self.robot.locked | set(self.robot.deformations)
        return FreePart(rows_held, self.robot.actuated, held, self.robot.home, self.nearby, self._keepable)

    @cached_property
    def nearby(self) -> tuple[Array, ...]:
        """Poses beside home, where rows have the rank that they have in general; of robots without loops too."""
        rigid = self._undeformed
        return rigid.reference_poses[1:] if self.robot.closures.size else tuple(rigid.motions.beside_home(rigid.free))

    @cached_property
    def _keepable(self) -> dict[tuple, tuple[int, ...]]:
        return {}

    @cached_property
    def _undetermined(self) -> dict[tuple, int]:
        return {}

    def is_free(self, target: Target) -> bool:
        """Whether a target leaves motions free."""
        return self._leaves_free(target)

    def _leaves_free(self, target: Target) -> bool:
        """Whether there are fewer conditions than freedoms, or some of them repeat others wherever the robot is."""
        if self._conditions(target) < self.rigid_freedoms:
            return True
        key = (target.fixed, tuple(row.sort for row in target.frames))
        if key not in self._undetermined:
            finder = self._undeformed.pose_finder
            self._undetermined[key] = finder.free_part.undetermined(target, (finder.robot.home, *finder.nearby))
        return self._undetermined[key] > 0

    @property
    def _undeformed(self) -> Robot:
        """The same robot as long as nothing deforms."""
        return self.robot.locking(self.robot.deformations) if self.robot.deformations else self.robot

    @cached_property
    def rigid_freedoms(self) -> int:
        """Independent motions while nothing deforms."""
        rigid = self._undeformed
        return rigid.mobility.freedoms(len(rigid.free))

    def _conditions(self, target: Target) -> int:
        return len(self._words(target))

    def _words(self, target: Target) -> list[str]:
        """One for each condition; of conditions on one direction some are empty."""
        words = [self.robot.tree.rate_names[k] for k in sorted(target.fixed)]
        return words + [word for frame in target.frames for word in frame.words(self.robot.tree.planar)]

    def _contradicted(self, target: Target, q: Array, locked: frozenset[int]) -> Contradiction | None:
        """What couplings say against the joint values of a pose."""
        joint_values = {}
        for link in self.robot.tree.links:
            if link.joint.one_axis and link.v.start in target.fixed | locked:
                joint_values[link.v.start] = float(target.values.get(link.q.start, q[link.q.start]))
        return contradiction(self.robot.closures.constraints, self.robot.tree, joint_values, offsets=True)

    def _count_conditions(self, error: UnreachableError, target: Target, locked: frozenset[int]) -> None:
        """Say so where more is asked for than the robot has freedoms: then nothing is too short."""
        names = self._words(target)
        if len(names) > self.rigid_freedoms and not self.robot.assembler.can_start_towards(
            target, self.robot.home, locked
        ):
            condition_names, freedoms = ", ".join(filter(None, names)), count_of(self.rigid_freedoms, "freedom")
            error.message = (
                f"{len(names)} conditions are given ({condition_names}), but the robot has {freedoms}, and the "
                "conditions contradict each other, or their pose is not found from home"
            )
            error.hint = f"leave out {len(names) - self.rigid_freedoms} of them"
