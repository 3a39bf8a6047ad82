"""Assemble a pose part by part on the requested working mode: Newton, then paths from the start, then many starts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from parflex.closure.constraints import Closures, Coupling
from parflex.closure.continuation import (
    SHORTEST_STRIDE,
    TargetPaths,
    follow_to_target,
    position_units,
    with_unit_quaternions,
)
from parflex.closure.newton import CLOSED, STRIDE, ClosurePart, ClosureParts, largest_size
from parflex.closure.rows import Rows, block
from parflex.closure.targets import PoseRows, Target
from parflex.closure.unreachable import Refusal, missing_length
from parflex.closure.working_modes import PartWorkingMode, is_regular, part_working_mode
from parflex.errors import InputError
from parflex.recursion.kinematics import Pose, jacobians, pose
from parflex.tree.tree import Tree

Array = np.ndarray
LEFT = 0.6  # rad or typical lengths: motors that Newton leaves farther from their stated starts are solved again
SHORTEST_DETOUR = (
    1e-2  # of a way, the shortest step of ways around singular poses: others are left that keep farther from them
)
OVERDETERMINED_TOLERANCE = 1e-6  # of the changes of what is given: rows that these leave open are no rounding
STRAIGHT = 2  # ways without a detour: as given and by the shorter turn


class _EvaluatedPose:
    """Positions, with the pose and the Jacobians there once some part is judged by them: all parts share them."""

    def __init__(self, tree: Tree, q: Array) -> None:
        self.tree, self.q = tree, q

    @cached_property
    def at(self) -> Pose:
        return pose(self.tree, self.q)

    @cached_property
    def links(self) -> Sequence[tuple[Array, Array]]:
        return jacobians(self.tree, self.at)


class Assembler(ClosureParts):
    """Finds the positions of all coordinates from those that a target gives."""

    def __init__(self, tree: Tree, closures: Closures, signs: dict[str, str], weights: Array | None = None) -> None:
        super().__init__(tree, closures)
        self.signs = {tree.links[tree.number(name)].q.start: sign for name, sign in signs.items()}
        self.turning = {link.q.start for link in tree.links if link.joint.periodic}
        self.periodic = {link.q.start for link in tree.links if link.periodic and not link.wound}
        self.counted = {link.q.start for link in tree.links if link.counted or link.wound or link.joint.pitch}
        self.weights = np.ones(tree.n) if weights is None else weights  # rates that had better follow from others
        self._judged: dict[tuple, PartWorkingMode] = {}

    def solve(
        self, target: Target, q: Array, reference: Array | None, locked: frozenset[int], searching: bool = True
    ) -> Array | Refusal:
        """Positions that close all loops at the target, from `q`, in the working mode of `reference`, or why not.

        Newton from `q` or along the straight path; if `searching`, also detours and other starts.
        """
        parts = self.parts(target, locked)
        result, by_path = self._close_all(target, q, parts)
        if result is None:
            start = target.applied(q)
            return Refusal(self, start, next(part for part in parts if missing_length(self, start, part)))
        for part in parts:
            placed = self._place(result, by_path, target, q, part, reference, searching)
            if isinstance(placed, Refusal):
                return placed
            result = placed
        return result

    def assemble(self, target: Target, q: Array, reference: Array | None, locked: frozenset[int]) -> Array:
        """As `solve`; raises where the target is not reached."""
        result = self.solve(target, q, reference, locked)
        if isinstance(result, Refusal):
            raise result.error()
        return result

    def near(self, target: Target, q: Array, reference: Array | None, locked: frozenset[int]) -> Array | None:
        """As `solve`, but None where Newton from `q` does not get there, nor a straight way."""
        result = self.solve(target, q, reference, locked, searching=False)
        return None if isinstance(result, Refusal) else result

    # -- Newton ----------------------------------------------------------------------------------------

    def _close_all(self, target: Target, q: Array, parts: list[ClosurePart]) -> tuple[Array | None, bool]:
        """Newton on all parts at once, if need be along a path of targets; the result may not be closed.

        None where links are too short: no way ends there, and no start closes them. Also whether a way went there.
        """
        columns = np.array(sorted({int(k) for part in parts for k in part.columns}), dtype=int)
        rows = [row for part in parts for row in part.rows]
        shafts = self.distant_shafts(target, q, parts)
        if shafts:
            reached = follow_to_target(self.tree, target, q, rows, self.corrected, columns)
            if reached is not None:
                return reached, True
            for shaft, counted in shafts.items():
                if shaft in self.periodic and abs(target.values[shaft] - q[shaft]) > np.pi:
                    self._refuse_uncounted_rotations(shaft, counted)
        start = target.applied(q)
        result, error = self.newton(start, columns, rows)
        if error > CLOSED:
            if any(missing_length(self, start, part) for part in parts):
                return None, False
            near = q
            for share in np.linspace(0.1, 1, 10):
                trial, error = self._part_way(target, q, near, columns, rows, float(share))
                if error > CLOSED:
                    break
                near = trial
            result, error = self.newton(target.applied(near), columns, rows)
        return result, False

    def _part_way(
        self, target: Target, q: Array, near: Array, columns: Array, rows: Sequence[Rows], share: float
    ) -> tuple[Array, float]:
        """Newton from `near` at a target part of the way from `q`."""
        at, trial = pose(self.tree, q), near.copy()
        for index, value in target.values.items():
            trial[index] = q[index] + share * (value - q[index])
        path_rows = [row.between(at, share) if isinstance(row, PoseRows) else row for row in rows]
        return self.newton(with_unit_quaternions(self.tree, trial), columns, path_rows, 30)

    def can_start_towards(self, target: Target, q: Array, locked: frozenset[int]) -> bool:
        """Whether the loops close a little way from `q` to the target: it is too far then, and contradicts nothing."""
        parts = self.parts(target, locked)
        if any(missing_length(self, target.applied(q), part) for part in parts):
            return True
        columns = np.array(sorted({int(k) for part in parts for k in part.columns}), dtype=int)
        rows = [row for part in parts for row in part.rows]
        return self._part_way(target, q, q, columns, rows, 0.02)[1] <= CLOSED

    def distant_shafts(self, target: Target, q: Array, parts: list[ClosurePart]) -> dict[int, int]:
        """Driven shafts in loops that turn far, and a joint beside each whose turns are counted."""
        result: dict[int, int] = {}
        for part in parts if self.counted else ():
            part_positions = {self.tree.links[j].q.start for row in part.rows for j in row.links(self.tree)}
            counted = [index for index in sorted(part_positions) if index in self.counted]
            if counted and not all(isinstance(row, Coupling) for row in part.rows):
                shafts = part_positions & self.turning & set(target.values)
                result |= {k: counted[0] for k in shafts if abs(target.values[k] - q[k]) > STRIDE}
        return result

    def _refuse_uncounted_rotations(self, shaft: int, counted: int) -> None:
        """Loops close at every whole turn of a shaft, but a screw or gear on it is elsewhere: turns are not counted."""
        names = {link.q.start: link for link in self.tree.links if link.joint.one_axis}
        uncounted = names[counted]
        text = (
            f"'{names[shaft].name}' does not reach this pose from where it stands, which leaves the turns of "
            f"{'the screw ' if uncounted.joint.pitch else ''}'{uncounted.name}' undetermined"
        )
        hint = f"give '{uncounted.name}', or the frame that it moves"
        raise InputError(text, key="pose", value=names[shaft].name, hint=hint)

    # -- the assembly of one part ----------------------------------------------------------------------

    def _place(
        self,
        solution: Array,
        by_path: bool,
        target: Target,
        q: Array,
        part: ClosurePart,
        reference: Array | None,
        searching: bool,
    ) -> Array | Refusal:
        """`solution` with a part as Newton left it, at the end of a way from `q`, or nearest to `q` of many starts.

        Legs and robots may close in several assemblies on one side of their singularities: Newton ends in any of them.
        """
        closed = self.opening(solution, part.rows) <= CLOSED
        fits = closed and self._in_mode(_EvaluatedPose(self.tree, solution), part, reference)
        indices, start, determined = self.positions(part), target.applied(q), False
        if reference is not None and not (fits and by_path):
            if fits and (self.settled(part, reference) or self._distance(solution, start, indices) <= STRIDE):
                return self._placed(solution, solution, q, part)
            determined = self._path_determines_assembly(target, q, part, reference)
        if fits and not determined:
            return solution
        if determined:
            reached = self._by_path(solution, target, q, part, reference, slice(STRAIGHT))
            if reached is not None:
                return reached
        solutions = self.solutions(start, part) if searching else []
        if determined and (solutions or (closed and searching)):
            reached = self._by_path(solution, target, q, part, reference, slice(STRAIGHT, None))
            if reached is not None:
                return reached
        fitting = [result for result in solutions if self._in_mode(_EvaluatedPose(self.tree, result), part, reference)]
        folds = bool(solutions) and reference is not None and self.judges(part, reference).folds
        if folds and not fitting:  # the robot goes there, though not along what is given
            states = [_EvaluatedPose(self.tree, result) for result in solutions]
            fitting = [state.q for state in states if self._in_mode(state, part, reference, True)]
        if fitting and (folds or not determined):
            best = min(fitting, key=lambda result: self._distance(result, start, indices))
            return self._placed(solution, best, start, part)
        return Refusal(self, solution, part, bool(solutions), bool(fitting))

    def _path_determines_assembly(self, target: Target, q: Array, part: ClosurePart, reference: Array) -> bool:
        """Whether a way from `q` tells the assembly of a part: it is closed there, regular, and its sides do not.

        Where more is given than the part has freedoms, that tells it, and nothing closes on the way.
        """
        if self.settled(part, reference):
            return False
        if self.opening(q, [row for row in part.rows if not isinstance(row, PoseRows)]) > CLOSED:
            return False  # no pose of the robot, as where it is assembled first
        J = self.block(q, part)
        return is_regular(J) and not self._overdetermined(target, q, part, J)

    def _overdetermined(self, target: Target, q: Array, part: ClosurePart, J: Array) -> bool:
        """Whether not all small changes of what is given leave the part closed; J are its rows at `q`."""
        if J.shape[0] <= J.shape[1]:
            return False
        at = pose(self.tree, q)
        links = [link for link in self.tree.links if any(k in target.values for k in range(link.q.start, link.q.stop))]
        rates = np.array([k for link in links for k in range(link.v.start, link.v.stop)], dtype=int)
        joint_block = block(self.tree, part.rows, rates, at, jacobians(self.tree, at, rates))
        is_pose_row = np.concatenate([np.full(row.size, isinstance(row, PoseRows)) for row in part.rows])
        changes = np.column_stack([joint_block, np.eye(len(J))[:, is_pose_row]])
        residual = changes - J @ np.linalg.lstsq(J, changes, rcond=1e-10)[0]
        return largest_size(residual.ravel()) > OVERDETERMINED_TOLERANCE * max(largest_size(changes.ravel()), 1e-300)

    def _by_path(
        self, solution: Array, target: Target, q: Array, part: ClosurePart, reference: Array | None, chosen: slice
    ) -> Array | None:
        """`solution` with a part at the end of the first of the `chosen` ways that gets there in the working mode.

        A way ends before the target at a singular pose of the part.
        """
        indices = self.positions(part)
        turning = self.periodic if self.counted.isdisjoint(indices) else set()
        paths = TargetPaths(self.tree, target, q, position_units(self.tree), turning)
        shortest = SHORTEST_DETOUR if chosen.start else SHORTEST_STRIDE
        for path in itertools.islice(paths.ways(), chosen.start, chosen.stop):
            current: Array | None = q
            for point, path_rows in path:
                rows = [path_rows.get(id(row), row) for row in part.rows]
                assert current is not None
                current = follow_to_target(self.tree, point, current, rows, self.corrected, part.columns, shortest)
                if current is None:
                    break
            if current is not None:
                result = solution.copy()
                result[indices] = self.newton(current, part.columns, part.rows)[0][indices]
                closed = self.opening(result, part.rows) <= CLOSED
                if closed and self._in_mode(_EvaluatedPose(self.tree, result), part, reference):
                    return result
        return None

    def settled(self, part: ClosurePart, reference: Array) -> bool:
        """Whether sides tell all assemblies of a part apart."""
        indices, sign_sets = set(self.positions(part)), self.judges(part, reference).strict
        if indices & self.counted or (indices & set(self.signs) and any(signs.dyads for signs in sign_sets)):
            return False  # no side tells whole turns, and signs that were asked for stand in the place of dyads
        return all(signs.apart for signs in sign_sets)

    # -- working modes ---------------------------------------------------------------------------------

    def _in_mode(
        self, state: _EvaluatedPose, part: ClosurePart, reference: Array | None, beyond_folds: bool = False
    ) -> bool:
        """Signs that were asked for; else the side of the leg's own singularity on which the reference is.

        Where a coordinate that is given folds, the sides of the legs alone count `beyond_folds`.
        """
        signed_indices = [index for index in self.positions(part) if index in self.signs]
        if not all(self._sign(state.q, index) == self.signs[index] for index in signed_indices):
            return False
        if reference is None:
            return True
        mode = self.judges(part, reference)
        if signed_indices:
            sign_sets = [mode.own] if mode.folds and not beyond_folds else []
        else:
            sign_sets = mode.working_mode if beyond_folds else mode.strict
        return all(signs.fit(self.tree, state.at, state.links) for signs in sign_sets)

    def legs_of_other_sign(self, q: Array) -> set[str | None]:
        """Legs in which a joint stands on another side than the working mode asks for."""
        signed_links = [link for link in self.tree.links if link.q.start in self.signs and link.joint.one_axis]
        return {link.leg for link in signed_links if self._sign(q, link.q.start) != self.signs[link.q.start]}

    def _sign(self, q: Array, index: int) -> str:
        value = np.sin(q[index]) if index in self.turning else q[index]
        return "+" if value >= 0 else "-"

    def judges(self, part: ClosurePart, reference: Array) -> PartWorkingMode:
        """What tells on which side of its own singularities a part stands at the reference."""
        # loops live as long as the robot, targets come and go
        rows = tuple(row.key if isinstance(row, PoseRows) else (id(row),) for row in part.rows)
        key = (rows, part.columns.tobytes(), part.held, part.given, reference.tobytes())
        if key not in self._judged:  # two threads may both find it: they find the same
            self._judged[key] = part_working_mode(self, part, self.weights, reference)
        return self._judged[key]

    # -- many starts -----------------------------------------------------------------------------------

    def solutions(self, q: Array, part: ClosurePart) -> list[Array]:
        """All positions that close the part, found from starts spread over its joints."""
        solutions: list[Array] = []
        indices = self.positions(part)
        for start in self.starts(q, part):
            result, error = self.newton(start, part.columns, part.rows, 40)
            if error <= CLOSED and not any(self._distance(result, solution, indices) < 1e-6 for solution in solutions):
                solutions.append(result)
        return solutions

    def starts(self, q: Array, part: ClosurePart) -> Iterator[Array]:
        """Positions from which all assemblies of a part are found: `q`, and others spread over its joints."""
        tree = self.tree
        joints = [tree.links[j] for j in sorted({tree.link_of_rate[k] for k in part.columns})]
        turning = [link for link in joints if link.joint.one_axis and link.joint.unit == "rad"]
        sliding = [link for link in joints if link.joint.one_axis and link.joint.unit == "m"]
        count = 4 if len(turning) <= 3 else 2
        max_starts = 96 if len(turning) <= 6 else 8  # large parts are found from nearby or not at all
        rng = np.random.default_rng(0)  # the same starts every time
        yield q
        for steps in itertools.islice(itertools.product(range(count), repeat=len(turning)), 1, max_starts):
            start = q.copy()
            for link, step in zip(turning, steps, strict=True):
                start[link.q] += step * 2 * np.pi / count + rng.uniform(-0.3, 0.3)
            yield start
            if sliding:
                mirrored = start.copy()
                for link in sliding:
                    mirrored[link.q] *= -1
                yield mirrored

    def nearer(self, result: Array, target: Target, q: Array, stated: frozenset[int], locked: frozenset[int]) -> Array:
        """As `result`, but parts whose motors were left far from their stated starts are closed from those again.

        Newton follows the passive joints; what was said of a motor weighs more than what was said of them.
        """
        start = target.applied(q)
        for part in self.parts(target, locked):
            motor_indices = [index for index in self.positions(part) if index in stated]
            best_distance = self._distance(result, start, motor_indices)
            if best_distance < LEFT:
                continue
            for candidate in self._solve_from_motors(start, part, motor_indices):
                distance = self._distance(candidate, start, motor_indices)
                if distance < 0.9 * best_distance and self._in_mode(_EvaluatedPose(self.tree, candidate), part, None):
                    best_distance = distance
                    result = self._placed(result, candidate, start, part)
        return result

    def _solve_from_motors(self, q: Array, part: ClosurePart, motor_indices: list[int]) -> Iterator[Array]:
        """Closed positions of a part, from starts where its passive joints came as near as still motors let them."""
        motors = {link.v.start for link in self.tree.links if link.q.start in motor_indices}
        passive = np.array([k for k in part.columns if k not in motors], dtype=int)
        for start in self.starts(q, ClosurePart(part.name, part.rows, passive)):
            nearest, _ = self.newton(start, passive, part.rows, 20)
            result, error = self.newton(nearest, part.columns, part.rows, 40)
            if error <= CLOSED:
                yield result

    def _distance(self, q: Array, other: Array, indices: Sequence[int]) -> float:
        difference = np.array([q[i] - other[i] for i in indices])
        turning = np.array([i in self.periodic for i in indices])
        units = position_units(self.tree)[list(indices)]
        wrapped = np.where(turning, np.arctan2(np.sin(difference), np.cos(difference)), difference / units)
        return largest_size(wrapped)

    def _placed(self, q: Array, solution: Array, start: Array, part: ClosurePart) -> Array:
        """Positions with those of a part as they were found, angles by the turn nearest to the start."""
        result, indices = q.copy(), self.positions(part)
        result[indices] = solution[indices]
        for index in indices:
            if index in self.periodic:
                result[index] -= 2 * np.pi * np.round((result[index] - start[index]) / (2 * np.pi))
        return result
