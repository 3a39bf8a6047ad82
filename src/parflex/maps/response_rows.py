"""Responses at rows of poses and parameter sets: in a batch with matrices in node coordinates, else one by one."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from parflex.errors import ParflexError, SingularError, UnreachableError
from parflex.forces.forces import checked_wrenches
from parflex.maps.batch import BatchResult, loaded_design, mark_unfinite
from parflex.maps.batched_responses import KINDS as CONDITIONS
from parflex.maps.batched_responses import BatchedResponses, ConditionRows, uncovered_reason
from parflex.maps.closed_rows import OK, SINGULAR, UNREACHABLE
from parflex.maps.equilibria import WORTH, EquilibriumRows, single_equilibrium_reason
from parflex.maps.kinematics import Geometry
from parflex.maps.matrices import Assembly, NodeModel, NotCoveredError, node_model
from parflex.maps.parameters import numbers_of_designs
from parflex.maps.positions import IMPOSSIBLE, Positions, PositionSolver, home_state
from parflex.maps.responses import OF_MODES, STATIC, ResponseName, SinglePoseResponses
from parflex.maps.springs import SpringRows, prestressed_rows, single_spring_reason
from parflex.parameters.design_numbers import DesignNumbers
from parflex.robot.robot import Robot
from parflex.spatial.batched import VariedNumberError
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import has_force_elements, has_springs, locked_robot
from parflex.statics.modes import natural_frequencies

Array = np.ndarray
LARGEST = 1_000_000  # entries of the whole matrices that are made at a time
SOME = 64  # rows whose conditions are taken at a time
CHUNK_TOGETHER, CHUNK_AT_REST, CHUNK_ALONE = 1024, 256, 64  # rows of a chunk


class ResponseRows:
    """Rows of poses of a robot, with or without designs, and the responses that are asked there."""

    at_least = 0  # rows that programs are made for, however few they are

    def __init__(
        self,
        robot: Robot,
        coordinates: Sequence[str],
        poses: Array,
        responses: Sequence[ResponseName],
        held: LoadCase,
        designs: Mapping[str, Array] | None = None,
    ) -> None:
        self.robot, self.coordinates, self.poses = robot, list(coordinates), poses
        self.responses, self.held, self.designs = tuple(responses), held, dict(designs or {})
        self.modes = max((one.mode for one in responses), default=1) or 1
        self.wrench = checked_wrenches(robot.tree, held.wrench)
        self.solved_in_full = 0
        conditions = [one for one in responses if one.kind in CONDITIONS]
        self.many = len(poses) >= WORTH  # enough rows for programs of the whole tree
        # conditions are measured with the length of a robot, which designs change
        self.conditions = ConditionRows(robot) if conditions and self.many and not self.designs else None
        self.others = [one for one in responses if self.conditions is None or one not in conditions]
        self.fallback_reason = (
            "an equilibrium is asked for" if held.at_equilibrium else uncovered_reason(robot, self.others, held.wrench)
        )
        self.resting: EquilibriumRows | SpringRows | None = None
        self._lock, self._rests = threading.Lock(), False  # threads that need programs at once wait for one
        self._finite_designs()
        self._set_up()
        self._set_up_rest()

    def _finite_designs(self) -> None:
        """Rows whose designs are numbers; the others say which is not."""
        self.impossible: dict[int, str] = {}
        for key, values in self.designs.items():
            for row in np.flatnonzero(~np.isfinite(values)):
                self.impossible.setdefault(int(row), f"'{key}' is not a finite number in this row")

    def _set_up(self) -> None:
        """Programs and bodies for all rows; where they do not exist `fallback_reason` says why."""
        self.numbers: DesignNumbers | None = None
        self.model: NodeModel | None = None
        self.readable = np.array([row for row in range(len(self.poses)) if row not in self.impossible], dtype=int)
        usual = np.flatnonzero(np.isfinite(self.poses).all(axis=1))
        self.by_programs = self._asks_for_programs()
        if self.designs and (self.by_programs or not self.fallback_reason) and len(self.readable):
            try:
                own = {key: values[self.readable] for key, values in self.designs.items()}
                self.numbers = numbers_of_designs(self.robot, own)
            except (ParflexError, VariedNumberError) as error:
                self.fallback_reason, self.by_programs = str(error), False
        if not self.fallback_reason:
            try:
                self.model = node_model(locked_robot(self.robot, self.held.lock))
                self.assembly = Assembly(self.model, designs=self.numbers)
            except NotCoveredError as error:
                self.model, self.fallback_reason = None, str(error)
        if self.model is None and not self.by_programs:
            self.numbers = None
        self.geometry = Geometry(self.robot, self.numbers)
        self.geometry.settle(max(len(self.poses), self.at_least))
        first = self.poses[usual[0]] if len(usual) else np.zeros(len(self.coordinates))
        self.positions = PositionSolver(self.geometry, self.coordinates, first.tolist())
        if self.designs and not self.positions.fast:
            self.model, self.numbers, self.by_programs = None, None, False
            self.fallback_reason = self.positions.single_solve_reason
        if self.model is not None:
            self.places = self.geometry.places(self.assembly.links)
            self.some = max(1, min(64, LARGEST // max(1, self.model.columns) ** 2))
        self.number = np.full(len(self.poses), -1)  # of each row among the designs that were read
        self.number[self.readable] = np.arange(len(self.readable))

    def _asks_for_programs(self) -> bool:
        """Whether some rows are about equilibria, or have springs: programs of the whole tree are for these."""
        if not self.others or not self.many:
            return False
        return self.held.at_equilibrium or has_springs(self.robot.tree) or has_force_elements(self.robot.tree)

    def _set_up_rest(self) -> None:
        """Programs of equilibria and of springs between points, where rows are enough for them."""
        balanced, robot = self.held.at_equilibrium, self.robot
        if not self.others or (self.model is not None and not has_springs(robot.tree)):
            return
        if not balanced and self.model is None and not has_force_elements(robot.tree):
            return
        designed = self.others if self.designs else ()
        why = (
            single_equilibrium_reason(robot.tree, designed)
            if balanced
            else single_spring_reason(robot, self.held, designed)
        )
        if not self.many:
            why = "few poses"
        elif self.designs and self.numbers is None:
            why = self.fallback_reason
        if not why:
            made = EquilibriumRows if balanced else SpringRows
            try:
                self.resting = made(robot, self.held, self.others, self.modes, self.numbers)
            except ParflexError as error:  # home is singular, or something is not traced
                why = error.message
        if balanced:
            self.fallback_reason = why and f"an equilibrium is asked for, and rows go one by one: {why}"
        elif self.model is None and not why:
            self.fallback_reason = ""

    @property
    def way(self) -> str:
        """How rows are solved."""
        alone = self.others and self.model is None and self.resting is None
        return "one by one" if alone else "together"

    @property
    def why(self) -> str:
        """Why rows are not solved together, or not their positions; empty where they are."""
        slow = "" if self.positions.single_solve_reason in self.fallback_reason else self.positions.single_solve_reason
        return "; ".join(filter(None, (self.fallback_reason, slow)))

    @property
    def method(self) -> str:
        """The same, as frequencies say it."""
        return self.way

    @property
    def chunk(self) -> int:
        """Rows of a chunk."""
        if self.way == "one by one" or not self.positions.fast:
            return CHUNK_ALONE
        return CHUNK_AT_REST if self.model is None and self.resting is not None else CHUNK_TOGETHER

    @cached_property
    def free(self) -> int:
        """Motions without stiffness of the robot at home; the number of modes is checked on the way."""
        if not any(one.kind in OF_MODES for one in self.responses):
            return 0
        return len(natural_frequencies(self.robot, None, self.modes, self.held.lock).free_motions)

    def prepare(self) -> None:
        """What threads share is made before they start."""
        if self.model is not None:
            _ = self.free
        if self.conditions is not None:
            self.conditions.prepare()
        if self.resting is not None and self.model is None:  # else few rows need it, if any
            self._prepared()

    def _prepared(self) -> EquilibriumRows | SpringRows | None:
        """Programs of the whole tree, traced and compiled when they are first needed."""
        with self._lock:
            if self.resting is not None and not self._rests:
                try:
                    self.resting.prepare()
                    self._rests = True
                except (ParflexError, TypeError) as error:  # something decides by a number that designs change
                    if self.numbers is None:
                        raise
                    self.resting, self.fallback_reason = None, f"rows go one by one: {error}"
        return self.resting

    # -- a chunk ---------------------------------------------------------------------------------------

    def solve(self, rows: slice) -> BatchResult:
        """What is found at some rows."""
        poses, first = self.poses[rows], rows.start
        found = BatchResult.empty({one.name: one.shape for one in self.responses}, len(poses))
        usable = mark_unfinite(found, self.coordinates, poses)
        for row in range(len(poses)):
            if first + row in self.impossible:
                found.mark(row, IMPOSSIBLE, self.impossible[first + row])
                usable[row] = False
        open_rows = np.flatnonzero(usable)
        left = self._with_designs(found, open_rows, first) if self.designs else self._nominal(found, open_rows, poses)
        found.fallbacks = len(left)
        return found

    def _nominal(self, found: BatchResult, rows: Array, poses: Array) -> Array:
        """Rows of the robot itself; those that were solved one by one."""
        if not len(rows):
            return rows
        placed = self._placed(found, rows, poses[rows])
        good = placed.status == OK
        rows, q = rows[good], placed.q[good]
        whole = self.geometry.whole(q)
        done = np.full(len(rows), not self.others)
        open_ones = ~done
        if self.model is not None and open_ones.any():
            open_ones &= self._tense(q, rows)
            done[~open_ones] = self._together(found, rows[~open_ones], q[~open_ones], None)
        resting = self._prepared() if open_ones.any() else None
        if resting is not None:
            done[open_ones] = resting(found, rows[open_ones], whole[open_ones])
        if self.conditions is not None and done.any():
            for one in self.responses:
                if one not in self.others:
                    found.values[one.name][rows[done]] = self._condition(whole[done])[one.kind]
        for k in np.flatnonzero(~done).tolist():
            self._alone(found, int(rows[k]), self.robot, whole[k])
        return rows[~done]

    def _placed(self, found: BatchResult, rows: Array, poses: Array, designs: Array | None = None) -> Positions:
        """Positions of rows; those that have none are marked."""
        placed = self.positions(poses, designs)
        for k in np.flatnonzero(placed.status != OK):
            state = int(placed.status[k])
            found.mark(int(rows[k]), state, self.positions.why(state) if placed.said is None else placed.said[k])
        return placed

    def _condition(self, whole: Array) -> dict[str, Array]:
        assert self.conditions is not None
        parts = [self.conditions(whole[start : start + SOME]) for start in range(0, len(whole), SOME)]
        return {kind: np.concatenate([part[kind] for part in parts]) for kind in CONDITIONS}

    def _with_designs(self, found: BatchResult, rows: Array, first: int) -> Array:
        """Rows with their own designs; those that were loaded one by one."""
        done, left, own = np.zeros(len(rows), dtype=bool), np.ones(len(rows), dtype=bool), self.number[first + rows]
        read = np.flatnonzero(~self.numbers.alone[own]) if self.numbers is not None else rows[:0]
        if len(read):
            placed = self._placed(found, rows[read], self.poses[first + rows[read]], own[read])
            good = placed.status == OK
            chosen, q = read[good], placed.q[good]
            left[read[~good]] = False
            plain = np.zeros(len(chosen), dtype=bool)
            if self.model is not None:
                plain = ~self._tense(q, own[chosen])
                done[chosen[plain]] = self._together(found, rows[chosen[plain]], q[plain], own[chosen[plain]])
            chosen, whole = chosen[~plain], self.geometry.whole(q[~plain, : len(self.geometry.kept)])
            resting = self._prepared() if len(chosen) else None
            if resting is not None:
                done[chosen] = resting(found, rows[chosen], whole, None, own[chosen])
        left &= ~done
        for k in np.flatnonzero(left):
            self._loaded(found, int(rows[k]), first + int(rows[k]))
        return rows[left]

    def _together(self, found: BatchResult, rows: Array, q: Array, designs: Array | None) -> Array:
        """Which of these rows have all their answers from matrices."""
        assert self.model is not None
        done = np.zeros(len(rows), dtype=bool)
        for start in range(0, len(rows), self.some):
            part = slice(start, start + self.some)
            own = None if designs is None else designs[part]
            here = BatchedResponses(
                self.model, self.assembly, self.places(q[part]), self.free, self.modes, self.wrench, own
            )
            answers = {one.name: here.answer(one) for one in self.others}
            for name, values in answers.items():
                found.values[name][rows[part]] = values
            done[part] = ~here.failed
        return done

    def _tense(self, q: Array, designs: Array) -> Array:
        """Rows with a spring of a joint under tension: about their equilibrium alone.

        About the undeformed pose they are as others are, but for what its springs push.
        """
        if self.held.about == "undeformed" and not any(one.kind in STATIC for one in self.others):
            return np.zeros(len(q), dtype=bool)
        locked = locked_robot(self.robot, self.held.lock)
        return prestressed_rows(locked, self.assembly.tree, q, self.geometry.kept, designs)

    # -- one by one ------------------------------------------------------------------------------------

    def _loaded(self, found: BatchResult, row: int, number: int) -> None:
        """A row by loading its design."""
        settings = {key: float(values[number]) for key, values in self.designs.items()}
        try:
            robot = loaded_design(self.robot, settings)
        except ParflexError as error:
            found.mark(row, *home_state(error))
            return
        try:
            q = robot.assemble(dict(zip(self.coordinates, self.poses[number].tolist(), strict=True)))
        except ParflexError as error:
            found.mark(row, SINGULAR if isinstance(error, SingularError) else UNREACHABLE, error.message)
            return
        self._alone(found, row, robot, q)

    def _alone(self, found: BatchResult, row: int, robot: Robot, q: Array) -> None:
        """A row by the functions of single poses."""
        here, wrong = SinglePoseResponses(robot, q, self.held, self.modes), dict[str, ParflexError]()
        for one in self.responses:
            try:
                found.values[one.name][row] = here.answer(one)
            except ParflexError as error:
                wrong[one.name], found.values[one.name][row] = error, np.nan
        for name, why in wrong.items():
            if not isinstance(why, UnreachableError | SingularError):
                found.refusals[name] = why  # it makes no sense here; if it makes none anywhere, it is refused
        if len(wrong) < len(self.responses):
            found.balanced += here.is_implicitly_balanced
            found.rests[row] = here.rests
            known = here.said  # it is not said again of each response
            others = [f"{name}: {'has none' if why.message == known else why.message}" for name, why in wrong.items()]
            found.say(row, "; ".join([known] * bool(known) + others))
            return
        first = next(iter(wrong.values()))
        found.mark(row, UNREACHABLE if isinstance(first, UnreachableError) else SINGULAR, first.message)
        found.refused = next(iter(found.refusals.values()), found.refused)
