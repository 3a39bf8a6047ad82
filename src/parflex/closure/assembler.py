"""Assemble a pose leg by leg on the requested working mode.

The rows of a pose fold if it specifies motors and coordinates of the platform together, or only some of them: at some
poses a specified coordinate is stationary although no leg is stretched. Such a fold is a singularity of the coordinates
and not of the robot. The working mode of a part of the closures therefore has two sets of signs: the `strict` ones,
with folds, distinguish its assemblies; those of its legs alone, with the platform fixed, give its working mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from parflex.closure import mobility
from parflex.closure.constraints import Closures, Coupling, Loop
from parflex.closure.continuation import (
    TargetPaths,
    follow_to_target,
    missing_length,
    open_reason,
    other_mode_reason,
    position_units,
)
from parflex.closure.leg_geometry import Dyad, LegSign
from parflex.closure.newton import CLOSED, STRIDE, ClosurePart, ClosureParts, largest_size
from parflex.closure.targets import DistanceTarget, FrameRotationRows, FrameTarget, PoseRows, Target
from parflex.closure.working_modes import (
    RowSource,
    SignBlock,
    WorkingModeSigns,
    block,
    inner_loops,
    is_regular,
    sign_blocks,
    working_mode_signs,
)
from parflex.errors import InputError, UnreachableError
from parflex.records import Record
from parflex.recursion.kinematics import Pose, jacobians, pose
from parflex.tree.tree import Tree

Array = np.ndarray

LEFT = 0.6  # rad or typical lengths: motors that Newton leaves farther from their stated starts are solved again

SHORTEST_STRIDE = 1e-4  # of the way to a pose: where it takes shorter steps, it passes a singularity

SHORTEST_DETOUR = 1e-2  # the same of ways around singular poses: others are left that keep farther from them

OVERDETERMINED_TOLERANCE = 1e-6  # of the changes of what is given: rows that these leave open are no rounding

STRAIGHT, ALL_PATHS = 2, None  # ways that are tried: as given and by the shorter turn; all of them

ASIDE = 1e-3  # rad or typical lengths, of a motion that shows on what a side depends

DETERMINANT_CHANGE_TOLERANCE = 1e-9  # of a determinant: what changes less in such a motion does not depend on it

HARD = 1e3  # weight of what must hold beside what may be missed: it opens by a millionth of the miss

STILL = 1e-8  # of a motion of all coordinates: less is rounding

REACHED = 1e-7  # typical lengths, or turns: a smaller miss is none


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

    def assemble(
        self, target: Target, q: Array, reference: Array | None, locked: frozenset[int], explained: bool = True
    ) -> Array:
        """Positions that close all loops at the target, starting near `q`, in the working mode of `reference`.

        Links that are too short for it are measured where it shall be `explained`.
        """
        parts = self.parts(target, locked)
        result, by_path = self._solve_all_parts(target, q, parts)
        if result is None:
            if not explained:
                raise UnreachableError("the pose cannot be reached", key="pose")
            start = target.applied(q)
            raise open_reason(self, start, next(part for part in parts if missing_length(self, start, part)))
        for part in parts:
            placed = self._place_part(result, by_path, target, q, part, reference, ALL_PATHS)
            result = self._search(result, target, q, part, reference) if placed is None else placed
        return result

    def near(self, target: Target, q: Array, reference: Array | None, locked: frozenset[int]) -> Array | None:
        """As `assemble`, but None where Newton from `q` does not get there, nor a straight way."""
        parts = self.parts(target, locked)
        result, by_path = self._solve_all_parts(target, q, parts)
        for part in parts:
            if result is not None:
                result = self._place_part(result, by_path, target, q, part, reference, STRAIGHT)
        return result

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
        raise InputError(
            f"'{names[shaft].name}' does not reach this pose from where it stands, which leaves the turns of "
            f"{'the screw ' if uncounted.joint.pitch else ''}'{uncounted.name}' undetermined",
            key="pose",
            value=names[shaft].name,
            hint=f"give '{uncounted.name}', or the frame that it moves",
        )

    def _solve_all_parts(self, target: Target, q: Array, parts: list[ClosurePart]) -> tuple[Array | None, bool]:
        """Newton on all parts at once, if need be along a path of targets; the result may not be closed.

        None where links are too short: no way ends there, and no start closes them. Also whether a way went there.
        """
        columns = np.array(sorted({int(k) for part in parts for k in part.columns}), dtype=int)
        rows = [row for part in parts for row in part.rows]
        shafts = self.distant_shafts(target, q, parts)
        if shafts:
            reached = follow_to_target(self.tree, target, q, rows, self.newton, columns, CLOSED)
            if reached is not None:
                return reached, True
            for shaft, counted in shafts.items():
                if shaft in self.periodic and abs(target.values[shaft] - q[shaft]) > np.pi:
                    self._refuse_uncounted_rotations(shaft, counted)
        result, error = self.newton(target.applied(q), columns, rows)
        if error > CLOSED:
            if any(missing_length(self, target.applied(q), part) for part in parts):
                return None, False
            result, error = self.newton(*self._approach(target, q, columns, rows))
        return result, False

    def _place_part(
        self,
        solution: Array,
        by_path: bool,
        target: Target,
        q: Array,
        part: ClosurePart,
        reference: Array | None,
        max_paths: int | None,
    ) -> Array | None:
        """`solution` with a part as Newton left it, or at the end of a way from `q`; None where it is in neither.

        Legs and robots may close in several assemblies on one side of their singularities: Newton ends in any of them.
        """
        fits = self._fits(_EvaluatedPose(self.tree, solution), part, reference)
        if reference is None or (fits and by_path):
            return solution if fits else None
        indices = self.positions(part)
        if fits and (self.settled(part, reference) or self._distance(solution, target.applied(q), indices) <= STRIDE):
            return self._placed(solution, solution, q, part)
        if not self._path_determines_assembly(target, q, part, reference):
            return solution if fits else None
        for reached in self._path_endpoints(target, q, part, max_paths):
            result = solution.copy()
            result[indices] = reached[indices]
            if self._fits(_EvaluatedPose(self.tree, result), part, reference):
                return result
        return None

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
        prescribed_links = [
            link for link in self.tree.links if any(k in target.values for k in range(link.q.start, link.q.stop))
        ]
        rates = np.array([k for link in prescribed_links for k in range(link.v.start, link.v.stop)], dtype=int)
        joint_block = block(self.tree, part.rows, rates, at, jacobians(self.tree, at, rates))
        is_pose_row = np.concatenate([np.full(row.size, isinstance(row, PoseRows)) for row in part.rows])
        changes = np.column_stack([joint_block, np.eye(len(J))[:, is_pose_row]])
        residual = changes - J @ np.linalg.lstsq(J, changes, rcond=1e-10)[0]
        return largest_size(residual.ravel()) > OVERDETERMINED_TOLERANCE * max(largest_size(changes.ravel()), 1e-300)

    def _path_endpoints(self, target: Target, q: Array, part: ClosurePart, max_paths: int | None) -> Iterator[Array]:
        """Positions at the target by the first ways there that do not end before it, at a singular pose of the part."""
        turning = self.periodic if self.counted.isdisjoint(self.positions(part)) else set()
        paths = TargetPaths(self.tree, target, q, position_units(self.tree), turning)
        for number, path in enumerate(itertools.islice(paths.ways(), max_paths)):
            current, shortest = q, SHORTEST_STRIDE if number < STRAIGHT else SHORTEST_DETOUR
            for point, path_rows in path:
                rows = [path_rows.get(id(row), row) for row in part.rows]
                reached = follow_to_target(
                    self.tree, point, current, rows, self.corrected, part.columns, CLOSED, shortest
                )
                if reached is None:
                    break
                current = reached
            else:
                yield self.newton(current, part.columns, part.rows)[0]

    def settled(self, part: ClosurePart, reference: Array) -> bool:
        """Whether sides tell all assemblies of a part apart."""
        indices, sign_sets = set(self.positions(part)), self.judges(part, reference).strict
        if indices & self.counted or (indices & set(self.signs) and any(signs.dyads for signs in sign_sets)):
            return False  # no side tells whole turns, and signs that were asked for stand in the place of dyads
        return all(signs.apart for signs in sign_sets)

    def _fits(self, state: _EvaluatedPose, part: ClosurePart, reference: Array | None) -> bool:
        return self.opening(state.q, part.rows) <= CLOSED and self._in_mode(state, part, reference)

    def _approach(
        self, target: Target, q: Array, columns: Array, rows: list[RowSource], steps: int = 10
    ) -> tuple[Array, Array, list[RowSource]]:
        """Go to the target in small steps; ends at the last good step, ready for a last try."""
        origin, at = q, pose(self.tree, q)
        goal = target.applied(q)
        for share in np.linspace(1 / steps, 1, steps):
            trial = self._between(origin, goal, q, target, float(share))
            path_rows = [row.between(at, float(share)) if isinstance(row, PoseRows) else row for row in rows]
            trial, error = self.newton(trial, columns, path_rows, 30)
            if error > CLOSED:
                break
            q = trial
        return target.applied(q), columns, rows

    def can_start_towards(self, target: Target, q: Array, locked: frozenset[int], share: float = 0.02) -> bool:
        """Whether the loops close a little way from `q` to the target: it is too far then, and contradicts nothing."""
        parts = self.parts(target, locked)
        if any(missing_length(self, target.applied(q), part) for part in parts):
            return True
        columns = np.array(sorted({int(k) for part in parts for k in part.columns}), dtype=int)
        at, trial = pose(self.tree, q), self._between(q, target.applied(q), q, target, share)
        rows = [row.between(at, share) if isinstance(row, PoseRows) else row for part in parts for row in part.rows]
        return self.newton(trial, columns, rows, 30)[1] <= CLOSED

    def _between(self, origin: Array, goal: Array, q: Array, target: Target, share: float) -> Array:
        result = q.copy()
        for index in target.values:
            result[index] = origin[index] + share * (goal[index] - origin[index])
        for link in self.tree.links:
            if link.joint.quaternion:
                quaternion = link.q_quaternion
                result[quaternion] /= np.linalg.norm(result[quaternion])
        return result

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
        motors = {
            self.tree.links[j].v.start
            for j in range(len(self.tree.links))
            if self.tree.links[j].q.start in motor_indices
        }
        passive = np.array([k for k in part.columns if k not in motors], dtype=int)
        for start in self.starts(q, ClosurePart(part.name, part.rows, passive)):
            nearest, _ = self.newton(start, passive, part.rows, 20)
            result, error = self.newton(nearest, part.columns, part.rows, 40)
            if error <= CLOSED:
                yield result

    # -- working modes ---------------------------------------------------------------------------------

    def _in_mode(
        self, state: _EvaluatedPose, part: ClosurePart, reference: Array | None, beyond_folds: bool = False
    ) -> bool:
        """Signs that were asked for; else the side of the leg's own singularity on which the reference is.

        Where a coordinate that is given folds, the sides of the legs alone count `beyond_folds`.
        """
        signed_indices = [index for index in self.positions(part) if index in self.signs]
        if signed_indices and not all(self._sign(state.q, index) == self.signs[index] for index in signed_indices):
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
        rows = tuple(map(_kind_of, part.rows))
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
        single_axis = [link for link in joints if link.joint.one_axis]
        turning = [link for link in single_axis if link.joint.unit == "rad"]
        sliding = [link for link in single_axis if link.joint.unit == "m"]
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

    def _distance(self, q: Array, other: Array, indices: Sequence[int]) -> float:
        difference = np.array([q[i] - other[i] for i in indices])
        turning = np.array([i in self.periodic for i in indices])
        scale = np.array([1.0 if i in self.counted else self.tree.length for i in indices])
        wrapped = np.where(turning, np.arctan2(np.sin(difference), np.cos(difference)), difference / scale)
        return largest_size(wrapped)

    def _search(self, q: Array, target: Target, guess: Array, part: ClosurePart, reference: Array | None) -> Array:
        """The solution of the part that is in the mode and nearest to the start; an error says how far it is off."""
        start = target.applied(guess)
        solutions = self.solutions(start, part)
        fitting = [result for result in solutions if self._in_mode(_EvaluatedPose(self.tree, result), part, reference)]
        indices = self.positions(part)
        folds = reference is not None and self.judges(part, reference).folds
        if folds and not fitting:  # the robot goes there, though not along what is given
            fitting = [
                solution
                for solution in solutions
                if self._in_mode(_EvaluatedPose(self.tree, solution), part, reference, True)
            ]
        if fitting and (
            reference is None or folds or not self._path_determines_assembly(target, guess, part, reference)
        ):
            best = min(fitting, key=lambda result: self._distance(result, start, indices))
            return self._placed(q, best, start, part)
        if solutions:
            raise other_mode_reason(part.name, bool(fitting))
        raise open_reason(self, start, part)

    def _placed(self, q: Array, solution: Array, start: Array, part: ClosurePart) -> Array:
        """Positions with those of a part as they were found, angles by the turn nearest to the start."""
        result, indices = q.copy(), self.positions(part)
        result[indices] = solution[indices]
        for index in indices:
            if index in self.periodic:
                result[index] -= 2 * np.pi * np.round((result[index] - start[index]) / (2 * np.pi))
        return result


def _kind_of(row: RowSource) -> tuple:
    """What the Jacobian of a row depends on beside the pose: loops live as long as the robot, targets come and go."""
    return row.kind if isinstance(row, PoseRows) else (id(row),)


@dataclass(frozen=True, eq=False, repr=False)
class PartWorkingMode(Record):
    """What tells the sides of a part at a reference."""

    own: WorkingModeSigns  # of its rows with all that a pose asks for
    legs: list[WorkingModeSigns]  # as if the platform stood; where it is given there are none but its own
    folds: bool  # whether a side of its own may be that of a coordinate: then the legs alone tell the working mode
    from_legs: bool = False  # whether no determinant of all its rows is among its own: some repeat others

    @property
    def strict(self) -> list[WorkingModeSigns]:
        """All of them."""
        return [self.own, *self.legs]

    @property
    def working_mode(self) -> list[WorkingModeSigns]:
        """Those of the legs."""
        return self.legs if self.folds else self.strict


def part_working_mode(closures: ClosureParts, part: ClosurePart, weights: Array, reference: Array) -> PartWorkingMode:
    """On which sides a part stands at the reference.

    Where a frame is placed that the coordinates do not give, the legs are judged too, as if the platform stood.
    """
    part_signs = working_mode_signs(closures.tree, part.rows, part.columns, part.held, weights, reference)
    folding = _may_fold(closures, part)
    if not folding and not (closures.free_bodies and any(isinstance(row, PoseRows) for row in part.rows)):
        return PartWorkingMode(part_signs, [], False)
    if not folding:
        leg_mode = _by_legs(closures, part, weights, reference)
        if leg_mode is not None:
            return leg_mode
    legs = _legs(closures, part, reference) or []
    signs_of_legs = [
        working_mode_signs(closures.tree, leg.rows, leg.columns, leg.held, weights, reference) for leg in legs
    ]
    decisive = [signs for signs in signs_of_legs if signs.blocks or signs.dyads]
    if not folding:
        return PartWorkingMode(part_signs, signs_of_legs, False)
    return PartWorkingMode(
        part_signs, [_pose_dependent_signs(closures, signs, part, reference) for signs in decisive], bool(decisive)
    )


def _by_legs(closures: ClosureParts, part: ClosurePart, weights: Array, reference: Array) -> PartWorkingMode | None:
    """Sides of a part with spare rows, by its legs and the loops of a platform of several bodies; else None.

    Of rows that repeat others each choice is singular somewhere, where nothing is: a determinant of some of them says
    little. Legs that stand between the ground and a platform, all of whose bodies stand, tell their assemblies by
    numbers of their own, and what is left are loops of the platform.
    """
    tree, columns = closures.tree, {int(k) for k in part.columns}
    if sum(row.size for row in part.rows) <= len(columns):
        return None
    bodies = {j for j, link in enumerate(tree.links) if link.joint.moves_freely}
    platform = {j for j, link in enumerate(tree.links) if link.leg is None and bodies & set(tree.path(j))}
    platform_rates = frozenset(k for j in platform for k in closures.rates_of(j))
    legs = [
        leg
        for leg in closures.parts(Target(fixed=platform_rates), frozenset(range(tree.n)) - columns)
        if len(leg.columns)
    ]
    signs_of_legs = [working_mode_signs(tree, leg.rows, leg.columns, leg.held, weights, reference) for leg in legs]
    covered = platform_rates.union(int(k) for leg in legs for k in leg.columns)
    if not columns <= covered or not all(signs.apart for signs in signs_of_legs):
        return None
    # loops between bodies of the platform, which the frame that is placed does not hold
    inside = [row for row in part.rows if isinstance(row, Loop) and set(row.links(tree)) <= platform]
    blocks = []
    for loops, rates in inner_loops(
        tree, inside, np.array(sorted(platform_rates & columns)), bodies, weights, reference
    ):
        blocks += sign_blocks(tree, loops, np.array(rates), bodies, weights, reference)
    return PartWorkingMode(WorkingModeSigns(blocks, [], False), signs_of_legs, False, from_legs=True)


def _may_fold(closures: ClosureParts, part: ClosurePart) -> bool:
    """Whether some coordinates of the platform are given without the others, or beside joints."""
    rows = [row for row in part.rows if isinstance(row, PoseRows)]
    if not all(isinstance(row, FrameTarget) for row in rows):
        return False
    columns, axes = {int(k) for k in part.columns}, 2 if closures.tree.planar else 3
    partly_given = any(
        rates & columns and rates & part.given
        for rates in (
            set(closures.rates_of(j)) for j, link in enumerate(closures.tree.links) if link.joint.moves_freely
        )
    )
    partly_given = partly_given or any(len(row.position) < axes for row in rows if isinstance(row, FrameTarget))
    return partly_given or bool(rows and part.given - closures.free_bodies)


def _legs(closures: ClosureParts, part: ClosurePart, reference: Array) -> list[ClosurePart] | None:
    """The legs of a part, with those of their joints that are given, as if the platform or the end effector stood."""
    tree, part_rates = closures.tree, {int(k) for k in part.columns} | part.given
    fixed_rates = frozenset(range(tree.n)) - part_rates
    if closures.free_bodies:
        return [leg for leg in closures.parts(Target(fixed=closures.free_bodies), fixed_rates) if len(leg.columns)]
    place = tree.places[tree.end_effector]
    at = pose(tree, reference)
    rotation, position = at.of(place)
    position_target = FrameTarget(
        tree.end_effector, place, {axis: float(position[axis]) for axis in range(2 if tree.planar else 3)}
    )
    for frame_target in (position_target, replace(position_target, rotation=rotation)):
        legs = [leg for leg in closures.parts(Target(frames=(frame_target,)), fixed_rates) if len(leg.columns)]
        if legs and all(is_regular(closures.block(reference, leg)) for leg in legs):
            return legs
    return None  # it has fewer freedoms than its place: no leg stands alone


def _pose_dependent_signs(
    closures: ClosureParts, signs: WorkingModeSigns, part: ClosurePart, reference: Array
) -> WorkingModeSigns:
    """Sides without those that given joints alone decide: these are as they are asked for."""
    tree = closures.tree
    step = np.zeros(tree.n)
    random_step = np.random.default_rng(0).uniform(-1, 1, len(part.columns))  # the same every time
    step[part.columns] = ASIDE * random_step * tree.rate_units[part.columns]
    poses = [pose(tree, q) for q in (reference, tree.moved(reference, step))]
    links = [jacobians(tree, at) for at in poses]

    def depends(sign: SignBlock | Dyad | LegSign) -> bool:
        value, shifted_value = (
            float(np.linalg.det(block(tree, sign.rows, sign.columns, at, link_jacobians)[sign.picked]))
            if isinstance(sign, SignBlock)
            else float(sign.sine(tree, at))
            for at, link_jacobians in zip(poses, links, strict=True)
        )
        return abs(shifted_value - value) > DETERMINANT_CHANGE_TOLERANCE * abs(value)

    blocks = [sign for sign in signs.blocks if depends(sign)]
    return replace(signs, blocks=blocks, dyads=[sign for sign in signs.dyads if depends(sign)])


def unmet_condition(assembler: Assembler, target: Target, q: Array, locked: frozenset[int]) -> UnreachableError | None:
    """What direction or distance is missed, and by how much, where the pose could be without it; what cannot turn."""
    for name in _blocked_rotations(assembler, target, q, locked):
        return UnreachableError(
            f"'{name}' cannot turn: the loops keep its orientation",
            key="pose",
            value=name,
            hint="leave the rotation out of the pose",
        )
    for row in target.frames:
        if not isinstance(row, FrameRotationRows | DistanceTarget):
            continue
        remaining = replace(target, frames=tuple(condition for condition in target.frames if condition is not row))
        nearby = assembler.near(remaining, q, None, locked)
        if nearby is None:
            continue
        miss = _miss(assembler, remaining, row, nearby, locked)
        if miss < REACHED * assembler.tree.length:
            continue
        suffix = " beside the other conditions" if remaining.frames or remaining.fixed else ""
        if isinstance(row, DistanceTarget):
            requested, deviation = f"'{row.name}' = {row.distance:.4g} m", f"{miss:.4g} m"
        else:
            requested, deviation = (
                f"this direction of '{row.name}'",
                f"{np.degrees(miss / assembler.tree.length):.3g} deg",
            )
        return UnreachableError(
            f"no pose has {requested}{suffix}: the nearest is off by {deviation}",
            key="pose",
            value=row.name,
            hint="give what the robot can have, or fewer other conditions",
        )
    return None


def _blocked_rotations(assembler: Assembler, target: Target, q: Array, locked: frozenset[int]) -> list[str]:
    """Free bodies that are asked to turn, and do not in any motion that the loops allow."""
    tree, first = assembler.tree, 2 if assembler.tree.planar else 3
    turning_links = [link for link in tree.links if link.joint.moves_freely and link.v.start + first in target.fixed]
    if not turning_links:
        return []
    free = [k for k in range(tree.n) if k not in locked]
    J = mobility.scaled_jacobian(assembler.closures, q)[:, free]
    motions = np.zeros((tree.n, len(free) - mobility.rank(J)))
    motions[free] = np.linalg.svd(J)[2][mobility.rank(J) :].T
    return [link.name for link in turning_links if np.linalg.norm(motions[link.v][first:]) < STILL]


def _miss(assembler: Assembler, remaining: Target, row: PoseRows, q: Array, locked: frozenset[int]) -> float:
    """Smallest residual of a row, in metres, where all others hold."""
    tree = assembler.tree
    columns = np.array([k for k in range(tree.n) if k not in remaining.fixed | locked], dtype=int)
    hard_rows: Sequence[RowSource] = [*assembler.closures.rows, *remaining.frames]

    def residual(step: Array) -> Array:

        increment = np.zeros(tree.n)
        increment[columns] = step * tree.rate_units[columns]
        at = pose(tree, tree.moved(q, increment))
        weighted = [HARD * hard_row.residual(at, tree.length) for hard_row in hard_rows]
        return np.concatenate([*weighted, row.residual(at, tree.length)])

    from scipy.optimize import least_squares  # a tenth of a second to load

    solution = least_squares(residual, np.zeros(len(columns)), xtol=1e-10, ftol=1e-10, max_nfev=60)
    return float(np.linalg.norm(solution.fun[-row.size :]))
