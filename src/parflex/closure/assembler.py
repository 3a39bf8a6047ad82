"""Assemble a pose part by part on the requested working mode: Newton, then paths from the start, then many starts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from parflex.closure.constraints import Closures, Coupling
from parflex.closure.continuation import (
    SHORTEST_STRIDE,
    TargetPaths,
    Walk,
    follow_to_target,
    position_units,
    walk_ends,
    with_unit_quaternions,
)
from parflex.closure.newton import CLOSED, STRIDE, ClosurePart, ClosureParts, Ends, largest_size
from parflex.closure.rows import block
from parflex.closure.targets import PoseRows, Target
from parflex.closure.unreachable import Refusal, missing_length
from parflex.closure.working_modes import PartWorkingMode, is_regular, part_working_mode
from parflex.errors import InputError
from parflex.recursion.kinematics import jacobians, pose
from parflex.tree.tree import Tree

Array = np.ndarray
LEFT = 0.6  # rad or typical lengths: motors that Newton leaves farther from their stated starts are solved again
FEW = 7  # starts that are tried before all: where there is an assembly, every second to fifth start reaches one
MOST_STEPS = (
    25  # of Newton's method from one of many starts: of 300 that close all but a few need 20, and others join them
)
SHORTEST_DETOUR = 1e-2  # of a way, the shortest step around singular poses: other ways keep farther from them
OVERDETERMINED_TOLERANCE = 1e-6  # of the changes of what is given: rows that these leave open are no rounding


class Assembler(ClosureParts):
    """Solver for the positions of all coordinates at a target."""

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
        """Return positions that close all loops at the target from `q`, in the mode of `reference`, or why not.

        Newton's method from `q` comes first, then the straight path; if `searching`, also detours and other
        starts.
        """
        parts, start = self.parts(target, locked), target.applied(q)
        solutions = [self._closed(target, q, part) for part in parts]
        for part, (solution, _) in zip(parts, solutions, strict=True):
            if self.opening(solution, part.rows) > CLOSED and missing_length(self, start, part):
                return Refusal(self, start, part)  # no start closes it
        result = start
        for part, (solution, by_path) in zip(parts, solutions, strict=True):
            placed = self._place(solution, by_path, target, q, part, reference, searching)
            if isinstance(placed, Refusal):
                return placed
            indices = self.positions(part)
            result[indices] = placed[indices]
        return result

    def assemble(self, target: Target, q: Array, reference: Array | None, locked: frozenset[int]) -> Array:
        """Return the positions of `solve`; raise if the target is not reached."""
        result = self.solve(target, q, reference, locked)
        if isinstance(result, Refusal):
            raise result.error()
        return result

    def near(self, target: Target, q: Array, reference: Array | None, locked: frozenset[int]) -> Array | None:
        """Return the positions of `solve` by Newton's method from `q` or the straight path, or None."""
        result = self.solve(target, q, reference, locked, searching=False)
        return None if isinstance(result, Refusal) else result

    def _closed(self, target: Target, q: Array, part: ClosurePart) -> tuple[Array, bool]:
        """Return the end of Newton's method for a part, or whether a path of targets rotates its shafts there."""
        shafts = self._distant_shafts(target, q, part)
        walks = [follow_to_target(self.tree, target, q, part)] if shafts else []
        reached = next(iter(walk_ends(self, part.columns, walks)), None)
        if reached is not None:
            return self.newton(reached, part.columns, part.rows)[0], True
        for shaft, counted in shafts.items():
            if shaft in self.periodic and abs(target.values[shaft] - q[shaft]) > np.pi:
                self._refuse_uncounted_rotations(shaft, counted)
        return self.newton(target.applied(q), part.columns, part.rows)[0], False

    def can_start_towards(self, target: Target, q: Array, locked: frozenset[int]) -> bool:
        """Return whether the loops close near `q` towards the target: a far target contradicts nothing."""
        parts, at, share = self.parts(target, locked), pose(self.tree, q), 0.02
        if any(missing_length(self, target.applied(q), part) for part in parts):
            return True
        start = with_unit_quaternions(self.tree, q + share * (target.applied(q) - q))
        for part in parts:
            rows = [row.between(at, share) if isinstance(row, PoseRows) else row for row in part.rows]
            if self.newton(start, part.columns, rows, 30)[1] > CLOSED:
                return False
        return True

    def _distant_shafts(self, target: Target, q: Array, part: ClosurePart) -> dict[int, int]:
        """Return driven shafts in a loop with large rotations, and for each a joint whose turns are counted."""
        positions = {self.tree.links[j].q.start for row in part.rows for j in row.links(self.tree)}
        counted = sorted(positions & self.counted)
        shafts = positions & self.turning & set(target.values) if counted else set()
        if all(isinstance(row, Coupling) for row in part.rows):
            return {}
        return {k: counted[0] for k in shafts if abs(target.values[k] - q[k]) > STRIDE}

    def _refuse_uncounted_rotations(self, shaft: int, counted: int) -> None:
        """Raise if a screw or gear distinguishes whole turns of a shaft that the loops do not."""
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
        """Return a part from Newton's `solution`, from a path from `q`, or nearest to `q` of many starts.

        Legs and robots may close in several assemblies on one side of their singularities, of which Newton's
        method finds any.
        """
        start, indices = target.applied(q), self.positions(part)
        closed = self.opening(solution, part.rows) <= CLOSED
        fits = closed and self._in_mode(solution, part, reference)
        if fits and (reference is None or by_path):
            return solution
        settled = closed and reference is not None and self.settled(part, reference)
        if fits and (settled or self._distance(solution, start, indices) <= STRIDE):
            return self._placed(solution, q, part)
        loops = [row for row in part.rows if not isinstance(row, PoseRows)]
        begins = reference is not None and self.opening(q, loops) <= CLOSED  # not where it is assembled first
        determined = begins and not settled and self._path_determines_assembly(target, q, part)
        if fits and not determined:
            return solution
        if determined or (begins and not closed):
            reached = self._by_path(target, q, part, reference)
            if reached is not None and reference is not None:
                return self._placed(reached, q, part) if self.settled(part, reference) else reached
        if not searching:
            return Refusal(self, solution, part, closed)
        folds = fits and reference is not None and self.judges(part, reference).folds
        solutions, fitting = list[Array](), list[Array]()
        known = None if by_path else [(solution, 0.0 if closed else np.inf)]
        for candidate in [solution] if fits and not folds else self.solutions(start, part, known):
            if reference is not None and not solutions:  # sides matter where something closes
                folds = self.judges(part, reference).folds
                determined = determined and not self.settled(part, reference)
            solutions.append(candidate)
            fitting += [candidate] if self._in_mode(candidate, part, reference) else []
            if determined and fitting and not folds:
                break  # whether there is one matters: a path leads to it, or none does
        if determined and fitting:  # no regular path leads to another side
            reached = self._by_path(target, q, part, reference, detours=True)
            if reached is not None:
                return reached
        if folds and not fitting:  # the robot goes there, though not along what is given
            fitting = [result for result in solutions if self._in_mode(result, part, reference, True)]
        if fitting and (folds or not determined):
            return self._placed(min(fitting, key=lambda result: self._distance(result, start, indices)), start, part)
        return Refusal(self, solution, part, bool(solutions), bool(fitting))

    def _path_determines_assembly(self, target: Target, q: Array, part: ClosurePart) -> bool:
        """Return whether a path from `q` determines the assembly of a part: regular and not overdetermined.

        More conditions than degrees of freedom determine the assembly, and no pose along the path closes.
        """
        J = self.block(q, part)
        if not is_regular(J) or J.shape[0] <= J.shape[1]:
            return is_regular(J)
        at = pose(self.tree, q)
        links = [link for link in self.tree.links if any(k in target.values for k in range(link.q.start, link.q.stop))]
        rates = np.array([k for link in links for k in range(link.v.start, link.v.stop)], dtype=int)
        joint_block = block(self.tree, part.rows, rates, at, jacobians(self.tree, at, rates))
        is_pose_row = np.concatenate([np.full(row.size, isinstance(row, PoseRows)) for row in part.rows])
        changes = np.column_stack([joint_block, np.eye(len(J))[:, is_pose_row]])
        residual = changes - J @ np.linalg.lstsq(J, changes, rcond=1e-10)[0]
        return largest_size(residual.ravel()) <= OVERDETERMINED_TOLERANCE * max(largest_size(changes.ravel()), 1e-300)

    def _by_path(
        self, target: Target, q: Array, part: ClosurePart, reference: Array | None, detours: bool = False
    ) -> Array | None:
        """Return a part at the end of the first of the straight paths, or `detours`, in the working mode.

        A path ends before the target at a singular pose of the part.
        """
        turning = self.periodic if self.counted.isdisjoint(self.positions(part)) else set()
        shortest = SHORTEST_DETOUR if detours else SHORTEST_STRIDE
        paths = TargetPaths(self.tree, target, q, turning).ways(detours)
        walks = [self._along(path, q, part, shortest) for path in paths]
        # ways to a frame have rows of their own, so that nothing is gained together
        together = detours and not any(isinstance(row, PoseRows) for row in part.rows)
        for batch in [walks] if together else ([walk] for walk in walks):
            for reached in walk_ends(self, part.columns, batch):
                result, error = (q, np.inf) if reached is None else self.newton(reached, part.columns, part.rows)
                if error <= CLOSED and self._in_mode(result, part, reference):
                    return result
        return None

    def _along(
        self, path: Sequence[tuple[Target, dict[int, PoseRows]]], q: Array, part: ClosurePart, shortest: float
    ) -> Walk:
        """Return the part at the last of consecutive targets of a path."""
        current: Array | None = q
        for point, path_rows in path:
            moved = replace(part, rows=tuple(path_rows.get(id(row), row) for row in part.rows))
            if current is not None:
                current = yield from follow_to_target(self.tree, point, current, moved, shortest)
        return current

    def settled(self, part: ClosurePart, reference: Array) -> bool:
        """Return whether signs distinguish all assemblies of a part."""
        indices, sign_sets = set(self.positions(part)), self.judges(part, reference).strict
        if indices & self.counted or (indices & set(self.signs) and any(signs.dyads for signs in sign_sets)):
            return False  # no side tells whole turns, and signs that were asked for stand in the place of dyads
        return all(signs.apart for signs in sign_sets)

    # -- working modes ---------------------------------------------------------------------------------

    def _in_mode(self, q: Array, part: ClosurePart, reference: Array | None, beyond_folds: bool = False) -> bool:
        """Return whether a part has the requested signs, or else those of the reference at leg singularities.

        If a specified coordinate folds, only the signs of the legs count `beyond_folds`.
        """
        signed_indices = [index for index in self.positions(part) if index in self.signs]
        if not all(self._sign(q, index) == self.signs[index] for index in signed_indices):
            return False
        if reference is None:
            return True
        mode = self.judges(part, reference)
        if signed_indices:
            sign_sets = [mode.own] if mode.folds and not beyond_folds else []
        else:
            sign_sets = mode.working_mode if beyond_folds else mode.strict
        at = pose(self.tree, q)
        links = jacobians(self.tree, at)
        return all(signs.fit(self.tree, at, links) for signs in sign_sets)

    def legs_of_other_sign(self, q: Array) -> set[str | None]:
        """Return the legs in which a joint has another sign than the working mode requests."""
        signed_links = [link for link in self.tree.links if link.q.start in self.signs and link.joint.one_axis]
        return {link.leg for link in signed_links if self._sign(q, link.q.start) != self.signs[link.q.start]}

    def _sign(self, q: Array, index: int) -> str:
        value = np.sin(q[index]) if index in self.turning else q[index]
        return "+" if value >= 0 else "-"

    def judges(self, part: ClosurePart, reference: Array) -> PartWorkingMode:
        """Return the signs of a part at the reference."""
        # loops live as long as the robot, targets come and go
        rows = tuple(row.key if isinstance(row, PoseRows) else (id(row),) for row in part.rows)
        key = (rows, part.columns.tobytes(), part.held, part.given, reference.tobytes())
        if key not in self._judged:  # two threads may both find it: they find the same
            self._judged[key] = part_working_mode(self, part, self.weights, reference)
        return self._judged[key]

    # -- many starts -----------------------------------------------------------------------------------

    def solutions(self, q: Array, part: ClosurePart, known: Ends | None = None) -> Iterator[Array]:
        """All positions that close the part, found from starts spread over its joints, the first of which is `q`.

        `known` is where Newton ends from there.
        """
        solutions: list[Array] = []
        indices, starts = self.positions(part), self.starts(q, part)
        for batch in ([next(starts)], list(itertools.islice(starts, FEW)), list(starts)):
            ends, known = known or self.newton_from(batch, part.columns, part.rows, MOST_STEPS), None
            for result, error in ends:
                if error <= CLOSED and all(self._distance(result, other, indices) >= 1e-6 for other in solutions):
                    solutions.append(result)
                    yield result

    def starts(self, q: Array, part: ClosurePart) -> Iterator[Array]:
        """Return start positions for all assemblies of a part: `q`, and others spread over its joints."""
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
        """Return `result` with parts closed again from stated motor starts if these are far.

        Newton's method then adjusts the passive joints; stated starts of motors have priority.
        """
        start = target.applied(q)
        for part in self.parts(target, locked):
            motor_indices = [index for index in self.positions(part) if index in stated]
            best_distance = self._distance(result, start, motor_indices)
            if best_distance < LEFT:
                continue
            for candidate in self._solve_from_motors(start, part, motor_indices):
                distance = self._distance(candidate, start, motor_indices)
                if distance < 0.9 * best_distance and self._in_mode(candidate, part, None):
                    best_distance, indices = distance, self.positions(part)
                    result = result.copy()
                    result[indices] = self._placed(candidate, start, part)[indices]
        return result

    def _solve_from_motors(self, q: Array, part: ClosurePart, motor_indices: list[int]) -> Iterator[Array]:
        """Return closed positions of a part from starts with motors locked and passive joints adjusted."""
        motors = {link.v.start for link in self.tree.links if link.q.start in motor_indices}
        passive = np.array([k for k in part.columns if k not in motors], dtype=int)
        starts = list(self.starts(q, ClosurePart(part.name, part.rows, passive)))
        nearest = [end for end, _ in self.newton_from(starts, passive, part.rows, 20)]
        for result, error in self.newton_from(nearest, part.columns, part.rows, 40):
            if error <= CLOSED:
                yield result

    def _distance(self, q: Array, other: Array, indices: Sequence[int]) -> float:
        difference = np.array([q[i] - other[i] for i in indices])
        turning = np.array([i in self.periodic for i in indices])
        units = position_units(self.tree)[list(indices)]
        wrapped = np.where(turning, np.arctan2(np.sin(difference), np.cos(difference)), difference / units)
        return largest_size(wrapped)

    def _placed(self, solution: Array, start: Array, part: ClosurePart) -> Array:
        """Return positions of a part, with angles in the turn nearest to the start."""
        result = solution.copy()
        for index in self.positions(part):
            if index in self.periodic:
                result[index] -= 2 * np.pi * np.round((result[index] - start[index]) / (2 * np.pi))
        return result
