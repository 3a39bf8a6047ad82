"""Natural frequencies at many poses, each row with its own values of the robot file.

The file is read once for all parameter sets. Programs with these numbers as inputs give positions; bodies come from
their matrices in all sets. Rows that do not fit this path are loaded one by one; an impossible set is marked with its
reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from parflex.cache import cached
from parflex.codegen import cache
from parflex.errors import InputError, ParflexError, SingularError, UnreachableError
from parflex.maps.batch import (
    BatchResult,
    Progress,
    chunks_of,
    in_order,
    loaded_design,
    number_of_threads,
    row_warning,
    warn_of_balanced,
    warn_of_unstable,
)
from parflex.maps.closed_rows import OK, SINGULAR, UNREACHABLE
from parflex.maps.equilibria import WORTH as FEW
from parflex.maps.frequencies import SHAPES_FALLBACK_REASON, WORTH, Platform
from parflex.maps.frequency_rows import CHUNK_FAST
from parflex.maps.kinematics import COMPILE_FROM, Geometry
from parflex.maps.matrices import Assembly, NodeModel, NotCoveredError, has_spare_rows, node_model
from parflex.maps.modes import APART, FEWEST, ModeFinder, nearest_order, put_modes
from parflex.maps.parameters import numbers_of_designs
from parflex.maps.positions import IMPOSSIBLE, Positions, PositionSolver, home_state
from parflex.maps.springs import LazySpringRows, prestressed_rows
from parflex.parameters.design_numbers import number_at
from parflex.robot.configuration import Configuration
from parflex.robot.robot import Robot
from parflex.spatial.batched import VariedNumberError
from parflex.statics.linear_model import About
from parflex.statics.linear_system import ZERO, lowest_modes
from parflex.statics.load_case import LoadCase
from parflex.statics.loads import REST_LENGTH_TOLERANCE, locked_robot
from parflex.statics.modes import natural_frequencies

Array = np.ndarray
RIGID_BODY_MODE_RATIO = 1e-9  # of the highest squared frequency asked for: lower ones may be motions without stiffness
SAMPLED = 768  # rows by which the modes of the others are guessed, about
LARGEST = 1_000_000  # entries of the whole matrices that are made at a time


class DesignedPoses:
    """Rows of poses and designs of a robot, and what is found at them."""

    def __init__(
        self,
        robot: Robot,
        coordinates: Sequence[str],
        poses: Array,
        designs: Mapping[str, Any],
        modes: int,
        lock: str | Sequence[str],
        shapes: bool,
        about: About | None = None,
    ) -> None:
        self.robot, self.coordinates, self.poses = robot, list(coordinates), poses
        self.modes, self.lock, self.about, count = modes, lock, about, len(poses)
        self.designs = {key: design_column(robot, key, values, count) for key, values in designs.items()}
        self.keys = np.stack(list(self.designs.values()), axis=1)
        self.frequencies = np.full((count, modes), np.nan)
        self.twists = np.full((count, modes, 6), np.nan) if shapes else None
        self.status = np.full(count, OK)
        self.often = False  # whether the same is asked again and again, so that compiling pays for few rows
        self.reasons = [""] * count
        self.solved_in_full = 0
        self.at_rest = np.zeros(count, dtype=bool)  # rows with springs under tension, answered about the equilibrium
        self.learns = False  # whether what is found says where modes of further rows are likely to be
        self.finder: ModeFinder | None = None
        self.why = ""  # rows are not solved by steps; empty where they are

    @property
    def method(self) -> str:
        """How rows are solved: "steps" or "full"."""
        return "full" if self.finder is None else "steps"

    def solve(self, threads: int | None = None, progress: Progress | None = None) -> None:
        """All rows: together where that is possible, by chunks of one size, the rest one by one.

        `progress` is called with how many rows are done, and all.
        """
        finite = np.isfinite(self.poses).all(axis=1)
        for row in np.flatnonzero(~finite):
            name = self.coordinates[int(np.argmin(np.isfinite(self.poses[row])))]
            self.status[row], self.reasons[row] = UNREACHABLE, f"'{name}' is not a finite number in this row"
        for key, values in self.designs.items():
            for row in np.flatnonzero(finite & ~np.isfinite(values)):
                self.status[row], self.reasons[row] = IMPOSSIBLE, f"'{key}' is not a finite number in this row"
            finite &= np.isfinite(values)
        rows, alone = np.flatnonzero(finite), finite.copy()
        if len(rows) >= FEWEST:
            rows = rows[nearest_order(self.poses[rows])]  # poses that follow each other are alike
        if len(rows) and self._set_up(rows):
            first, left = self._first(np.arange(len(rows)))
            chunks = chunks_of(len(left), CHUNK_FAST)
            several = in_order(
                chunks, lambda chunk: self._together(left[chunk]), min(number_of_threads(threads), len(chunks))
            )
            for done, in_full in chain([first], (result for _, result in several)):
                alone[done] = False
                self.solved_in_full += in_full
                if progress is not None and not alone.all():
                    progress(int((~alone).sum()), len(alone))
        for number, row in enumerate(np.flatnonzero(alone), len(alone) - int(alone.sum()) + 1):
            self._one(int(row))
            if progress is not None:
                progress(number, len(alone))
        self.solved_in_full += int(alone.sum())

    # -- together --------------------------------------------------------------------------------------

    def _set_up(self, rows: Array) -> bool:
        """Programs for all rows; False where they are not there."""
        try:
            self.numbers = numbers_of_designs(self.robot, {key: values[rows] for key, values in self.designs.items()})
            self.locked, self.model = _locked_model(self.robot, self.lock)
        except (
            NotCoveredError,
            ParflexError,
            VariedNumberError,
        ) as error:  # what reading varied numbers does not cover
            self.why = str(error)
            return False
        self.rows, self.geometry = rows, Geometry(self.robot, self.numbers)
        width = self.poses.shape[1]
        self.features = np.empty((len(rows), width + self.keys.shape[1]))
        self.features[:, :width], self.features[:, width:] = self.poses.take(rows, axis=0), self.keys.take(rows, axis=0)
        self.geometry.settle(COMPILE_FROM if self.often else len(rows))
        self.positions = PositionSolver(self.geometry, self.coordinates, self.poses[rows[0]].tolist())
        if not self.positions.fast:
            self.why = self.positions.single_solve_reason
            return False
        self.free, self.springs = self._free_motions(), self._springs()
        self.rest: LazySpringRows | None = None
        if len(rows) >= FEW:
            self.rest = LazySpringRows(
                self.robot, LoadCase(self.lock, self.about), self.modes, self.twists is not None, self.numbers
            )
        self.platform = Platform(self.robot, self.geometry, self.model) if self.twists is not None else None
        if len(rows) >= WORTH:
            try:
                self.finder = ModeFinder(self.locked, self.modes, self.free, self.numbers)
                self.finder.placed = len(self.coordinates)
            except (NotCoveredError, ParflexError, np.linalg.LinAlgError) as error:  # what symbols do not cover
                self.why = str(error)
        return True

    def _first(self, indices: Array) -> tuple[tuple[Array, int], Array]:
        """Some rows by which the modes of the others are guessed, as `_together` has them, and the others."""
        if self.finder is None or len(indices) < FEWEST:
            return (indices[:0], 0), indices
        some = slice(None, None, max(APART, len(indices) // SAMPLED))
        self.learns = True
        solved = self._together(indices[some])
        self.learns = False
        return solved, np.delete(indices, some)

    def _together(self, indices: Array) -> tuple[Array, int]:
        """Rows of a chunk that were solved together, and how many of them by whole matrices in the place of steps."""
        indices = indices[~self.numbers.alone[indices]]
        if not len(indices):  # all of them are loaded one by one
            return indices, 0
        placed = self._place(indices)
        reached = placed.status == OK
        for k in np.flatnonzero(~reached):
            row, state = self.rows[indices[k]], int(placed.status[k])
            self.status[row] = state
            self.reasons[row] = self.positions.why(state) if placed.said is None else placed.said[k]
        tense = reached & self._tense(indices, placed.q)
        good = reached & ~tense
        chosen, q = (indices, placed.q) if good.all() else (indices[good], placed.q[good])
        if self.learns:
            self.positions.remember(self.features[chosen, : len(self.coordinates)], q, chosen)
        done = self._by_steps(chosen, q) if self.finder is not None and len(chosen) else np.zeros(len(chosen), bool)
        by_matrices = self._by_matrices(chosen[~done], q[~done])
        at_rest = self._at_rest(indices[tense], placed.q[tense]) if tense.any() else indices[:0]
        solved = np.concatenate([self.rows[indices[~reached]], self.rows[chosen[done]], by_matrices, at_rest])
        return solved, len(by_matrices) if len(self.rows) >= WORTH else 0

    def _at_rest(self, chosen: Array, q: Array) -> Array:
        """Rows with springs under tension that were solved about their equilibria."""
        springs = None if self.rest is None else self.rest.made()
        if springs is None:
            return chosen[:0]
        result = BatchResult.empty({response.name: response.shape for response in springs.responses}, len(chosen))
        full_q = self.geometry.whole(q[:, : len(self.geometry.kept)])
        done = springs(result, np.arange(len(chosen)), full_q, None, chosen)
        rows, numbers = self.rows[chosen[done]], range(1, self.modes + 1)
        self.frequencies[rows] = np.stack([result.values[f"frequency:{k}"][done] for k in numbers], axis=1)
        if self.twists is not None:
            self.twists[rows] = np.stack([result.values[f"shape:{k}"][done] for k in numbers], axis=1)
        self.at_rest[rows] = True
        return rows

    def _place(self, indices: Array) -> Positions:
        return self.positions(self.features[indices, : len(self.coordinates)], indices)

    def _by_steps(self, chosen: Array, q: Array) -> Array:
        """Compiled steps; which of the rows are done."""
        assert self.finder is not None
        rows = self.rows[chosen]
        features = self.features[chosen]
        modes = self.finder(q, chosen, self.platform is not None, features, in_order=len(self.rows) >= FEWEST)
        if self.learns:
            self.finder.learn(features, modes)
        done = (modes.ok & self._usual(chosen, q)).astype(np.int64)
        shapes = np.empty((0, 0, 0)) if self.platform is None or self.twists is None else self.twists
        untold = put_modes(modes.x, modes.twists, rows, RIGID_BODY_MODE_RATIO, self.frequencies, shapes, done)
        self.why = self.why or (SHAPES_FALLBACK_REASON if untold else "")
        return done > 0

    def _usual(self, chosen: Array, q: Array) -> Array:
        """Rows at which loops hold as at home: elsewhere more rows than steps know of hold something."""
        if not has_spare_rows(self.model.cut):
            return np.ones(len(chosen), dtype=bool)
        assembly = Assembly(self.model, [], designs=self.numbers.of_rows(chosen))
        return assembly.usual(*self.geometry.places(assembly.links)(q))

    def _by_matrices(self, chosen: Array, q: Array) -> Array:
        """Rows that were solved from their whole matrices."""
        solved: list[int] = []
        if not len(chosen):
            return np.zeros(0, dtype=int)
        try:
            assembly = Assembly(self.model, designs=self.numbers.of_rows(chosen))
        except (NotCoveredError, VariedNumberError):
            return np.zeros(0, dtype=int)
        places, platform = self.geometry.places(assembly.links), self.platform
        some = max(1, min(64, LARGEST // self.model.columns**2))
        for start in range(0, len(chosen), some):
            part, own_q = np.arange(start, min(start + some, len(chosen))), q[start : start + some]
            K, M = assembly(*places(own_q), part)
            J = None if platform is None else platform.jacobians(own_q, chosen[part])
            for k, row in enumerate(self.rows[chosen[part]]):
                if self._row(int(row), K[k], M[k], self.free, None if J is None else J[k], platform):
                    solved.append(int(row))
        return np.array(solved, dtype=int)

    def _row(self, row: int, K: Array, M: Array, free: int, J: Array | None, platform: Platform | None) -> bool:
        """Modes of one row from its matrices; False where they are not what the nominal robot has."""
        try:
            values, vectors = lowest_modes(K, M, free, self.modes)
        except (np.linalg.LinAlgError, ValueError):  # not positive definite, or not a number: loops hold otherwise
            return False
        scale = np.abs(K).max() / np.abs(M).max()
        if (np.abs(values[:free]) > ZERO * scale).any() or values[free] <= RIGID_BODY_MODE_RATIO * values[-1]:
            return False
        self.frequencies[row] = np.sqrt(values[free:]) / (2 * np.pi)
        if J is not None and platform is not None and self.twists is not None:
            self.twists[row] = platform.signed((J @ vectors[:, free:]).T)
        return True

    def _free_motions(self) -> int:
        """Motions without stiffness of the nominal robot at home; the number of modes is checked on the way."""
        return cached(
            "rigid-body modes",
            cache.key_of(self.locked, "free", self.modes),
            lambda: len(natural_frequencies(self.robot, None, self.modes, self.lock).free_motions),
        )

    def _springs(self) -> list[tuple[int, Array, float]]:
        """Joints with a spring that are not locked: where their position stands, where they rest, what is near it."""
        springs = []
        for j, link in enumerate(self.robot.tree.links):
            if link.joint.one_axis and link.v.start not in self.locked.locked:
                terms = ("links", j, "terms")
                if np.any(self.numbers.values_at((*terms, "stiffness"), link.terms.stiffness)):
                    rest = self.numbers.values_at((*terms, "rest"), link.terms.rest)
                    tolerance = REST_LENGTH_TOLERANCE * float(self.robot.tree.rate_units[link.v.start])
                    springs.append((int(np.searchsorted(self.geometry.kept, link.q.start)), rest, tolerance))
        return springs

    def _tense(self, rows: Array, q: Array) -> Array:
        """Rows with a spring of a joint under tension, or with forces of elements: about their equilibrium."""
        tense = np.zeros(len(rows), dtype=bool)
        if self.about == "undeformed":
            return tense
        for position, rest, tolerance in self.springs:
            tense |= np.abs(q[:, position] - (rest[rows] if rest.ndim else rest)) > tolerance
        if self.robot.tree.springs:
            tense |= prestressed_rows(self.locked, self.numbers.tree, q, self.geometry.kept, rows)
        return tense

    # -- one by one ------------------------------------------------------------------------------------

    def _one(self, row: int) -> None:
        """A row by loading its design."""
        settings = {key: float(values[row]) for key, values in self.designs.items()}
        try:
            robot = loaded_design(self.robot, settings)
        except ParflexError as error:
            self.status[row], self.reasons[row] = home_state(error)
            return
        try:
            q = robot.assemble(dict(zip(self.coordinates, self.poses[row].tolist(), strict=True)))
            modes = natural_frequencies(robot, Configuration(robot, q), self.modes, self.lock, self.about)
        except SingularError as error:
            self.status[row], self.reasons[row] = SINGULAR, error.message
        except UnreachableError as error:
            self.status[row], self.reasons[row] = UNREACHABLE, error.message
        except ParflexError as error:
            if error.key == "modes":
                raise
            self.status[row], self.reasons[row] = SINGULAR, error.message
        else:
            self.frequencies[row], self.reasons[row] = modes.frequencies, row_warning(modes)
            self.at_rest[row] = modes.model.about == "equilibrium"
            if self.twists is not None:
                equilibrium_q = modes.model.configuration.q  # at rest
                self.twists[row] = Platform(robot, Geometry(robot), None).of_tree(equilibrium_q, modes.shapes)

    def say(self, level: int) -> None:
        """Warn of rows about an equilibrium."""
        reached = int(((self.status == OK) | (self.status == SINGULAR)).sum())
        warn_of_balanced(int(self.at_rest.sum()), reached, level + 1)
        warn_of_unstable(self.reasons, level + 1)


def _locked_model(robot: Robot, lock: str | Sequence[str]) -> tuple[Robot, NodeModel]:
    """The robot with its locked joints, and its unknowns."""
    key = cache.key_of(robot, "locked", lock if isinstance(lock, str) else list(lock))

    def build() -> tuple[Robot, NodeModel]:
        locked = locked_robot(robot, lock)
        return locked, node_model(locked)

    return cached("locked robots", key, build)


def design_column(robot: Robot, key: str, values: Any, count: int) -> Array:
    """Values of a key for all rows."""
    number_at(robot, key)  # refuses what is not a number of the file
    try:
        column = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            f"the values of '{key}' are not numbers", key="designs", value=key, hint="give one for each row of poses"
        ) from None
    if column.ndim == 0:
        return np.full(count, float(column))
    if column.shape != (count,):
        raise InputError(
            f"'{key}' has {column.size} values for {count} poses",
            key="designs",
            value=key,
            hint="give one value, or one for each row of poses",
        )
    return column
