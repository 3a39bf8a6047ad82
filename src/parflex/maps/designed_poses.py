"""Natural frequencies at many poses, each with its own design: other values of the robot file in every row.

The file is read once for all designs, positions come from programs that take the numbers of a design as inputs, and
bodies from their matrices in all designs. Rows that cannot go this way are loaded one by one; a design that cannot be
is marked with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parflex.designs.design_numbers import DesignNumbers, design_numbers, number_at, of_designs
from parflex.errors import InputError, ParflexError, SingularError, UnreachableError
from parflex.maps.batches import Geometry
from parflex.maps.engine.mode_finder import ModeFinder
from parflex.maps.frequencies import WORTH
from parflex.maps.nodes import Assembly, NotCoveredError, node_model
from parflex.maps.platform import Platform
from parflex.maps.positions import IMPOSSIBLE, OK, SINGULAR, UNREACHABLE, PositionSolver
from parflex.maps.whole_matrices import lowest_modes
from parflex.models.configuration import Configuration
from parflex.models.elastic.linear_model import ZERO, locked_robot, natural_frequencies
from parflex.models.elastic.tension import NEAR_REST
from parflex.models.loading import redesigned
from parflex.models.robot import Robot
from parflex.spatial.varied import OneNumberError

Array = np.ndarray
NEARLY_FREE = 1e-9  # of the highest squared frequency asked for: lower ones may be motions without stiffness
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
    ) -> None:
        self.robot, self.coordinates, self.poses = robot, list(coordinates), poses
        self.modes, self.lock, count = modes, lock, len(poses)
        self.designs = {key: design_column(robot, key, values, count) for key, values in designs.items()}
        self.frequencies = np.full((count, modes), np.nan)
        self.twists = np.full((count, modes, 6), np.nan) if shapes else None
        self.status = np.full(count, OK)
        self.reasons = [""] * count
        self.solved_in_full = 0

    def solve(self) -> None:
        """All rows: together where that is possible, the rest one by one."""
        alone = np.ones(len(self.poses), dtype=bool)
        finite = np.isfinite(self.poses).all(axis=1)
        for row in np.flatnonzero(~finite):
            name = self.coordinates[int(np.argmin(np.isfinite(self.poses[row])))]
            self.status[row], self.reasons[row] = UNREACHABLE, f"'{name}' is not a finite number in this row"
        for key, values in self.designs.items():
            for row in np.flatnonzero(finite & ~np.isfinite(values)):
                self.status[row], self.reasons[row] = IMPOSSIBLE, f"'{key}' is not a finite number in this row"
            finite &= np.isfinite(values)
        together = self._together(np.flatnonzero(finite))
        alone[together] = False
        for row in np.flatnonzero(alone & finite):
            self._one(int(row))
        self.solved_in_full += int((alone & finite).sum())

    # -- together --------------------------------------------------------------------------------------

    def _together(self, rows: Array) -> Array:
        """Rows that were solved together."""
        none = np.zeros(0, dtype=int)
        if not len(rows):
            return none
        try:
            numbers = design_numbers(self.robot, {key: values[rows] for key, values in self.designs.items()})
            model = node_model(locked_robot(self.robot, self.lock))
            assembly = Assembly(model, designs=numbers)
        except (NotCoveredError, ParflexError, OneNumberError):  # what the reading of varied numbers does not cover
            return none
        geometry = Geometry(self.robot, numbers)
        positions = PositionSolver(geometry, self.coordinates, self.poses[rows[0]].tolist())
        if not positions.fast:
            return none
        own = np.flatnonzero(~numbers.alone)
        placed = positions(self.poses[rows[own]], own)
        good = (placed.status == OK) & ~self._tense(numbers, own, placed.q, geometry.kept)
        chosen = own[good]
        if not len(chosen):
            return none
        q, free = placed.q[good], self._free_motions()
        platform = Platform(self.robot, geometry, model) if self.twists is not None else None
        done = self._by_steps(rows, chosen, q, free, numbers, platform)
        self.solved_in_full += int((~done).sum()) if len(chosen) >= WORTH else 0
        solved = [int(row) for row in rows[chosen[done]]]
        chosen, q, places = chosen[~done], q[~done], geometry.places(assembly.links)
        some = max(1, min(64, LARGEST // model.columns**2))
        for start in range(0, len(chosen), some):
            part, own_q = chosen[start : start + some], q[start : start + some]
            K, M = assembly(*places(own_q), part)
            J = None if platform is None else platform.jacobians(own_q, part)
            for k, row in enumerate(rows[part]):
                if self._row(int(row), K[k], M[k], free, None if J is None else J[k], platform):
                    solved.append(int(row))
        return np.array(solved, dtype=int)

    def _by_steps(
        self, rows: Array, chosen: Array, q: Array, free: int, numbers: DesignNumbers, platform: Platform | None
    ) -> Array:
        """Compiled steps for many rows; which of them are done."""
        none = np.zeros(len(chosen), dtype=bool)
        if len(chosen) < WORTH:
            return none
        try:
            finder = ModeFinder(locked_robot(self.robot, self.lock), self.modes, free, numbers)
        except (NotCoveredError, ParflexError, np.linalg.LinAlgError, TypeError):  # what symbols do not cover
            return none
        found = finder(q, chosen, shapes=platform is not None)
        with np.errstate(invalid="ignore"):
            done = found.ok & (found.x[:, 0] > NEARLY_FREE * found.x[:, -1])
        if platform is not None and self.twists is not None:
            done &= np.isfinite(found.twists).all(axis=(1, 2))
            self.twists[rows[chosen[done]]] = platform.of_hub(q[done], found.twists[done], chosen[done])
        self.frequencies[rows[chosen[done]]] = np.sqrt(found.x[done]) / (2 * np.pi)
        return done

    def _row(self, row: int, K: Array, M: Array, free: int, J: Array | None, platform: Platform | None) -> bool:
        """Modes of one row from its matrices; False where they are not what the nominal robot has."""
        try:
            values, vectors = lowest_modes(K, M, free, self.modes)
        except np.linalg.LinAlgError:
            return False
        scale = np.abs(K).max() / np.abs(M).max()
        if (np.abs(values[:free]) > ZERO * scale).any() or values[free] <= NEARLY_FREE * values[-1]:
            return False
        self.frequencies[row] = np.sqrt(values[free:]) / (2 * np.pi)
        if J is not None and platform is not None and self.twists is not None:
            self.twists[row] = platform.signed((J @ vectors[:, free:]).T)
        return True

    def _free_motions(self) -> int:
        """Motions without stiffness of the nominal robot at home; the number of modes is checked on the way."""
        found = natural_frequencies(self.robot, None, self.modes, self.lock)
        return len(found.free_motions)

    def _tense(self, numbers: DesignNumbers, rows: Array, q: Array, kept: Array) -> Array:
        """Rows with a spring of a joint under tension, or with forces of elements: about their equilibrium alone."""
        tree, count = numbers.tree, len(numbers.values)
        locked = locked_robot(self.robot, self.lock).locked
        found = np.zeros(len(rows), dtype=bool)
        for j, link in enumerate(tree.links):
            plain = self.robot.tree.links[j]
            if plain.joint.one_axis and np.any(of_designs(link.terms.stiffness, count)) and plain.v.start not in locked:
                rest = np.broadcast_to(of_designs(link.terms.rest, count), count)[rows]
                position = int(np.searchsorted(kept, plain.q.start))
                found |= np.abs(q[:, position] - rest) > NEAR_REST * self.robot.tree.rate_units[plain.v.start]
        return found

    # -- one by one ------------------------------------------------------------------------------------

    def _one(self, row: int) -> None:
        """A row by loading its design."""
        settings = {key: float(values[row]) for key, values in self.designs.items()}
        try:
            robot = redesigned(self.robot, settings)
            robot.assemble()  # home: where it cannot be assembled, the design is impossible
        except ParflexError as error:
            self.status[row], self.reasons[row] = IMPOSSIBLE, error.message
            return
        try:
            q = robot.assemble(dict(zip(self.coordinates, self.poses[row].tolist(), strict=True)))
            found = natural_frequencies(robot, Configuration(robot, q), self.modes, self.lock)
        except SingularError as error:
            self.status[row], self.reasons[row] = SINGULAR, error.message
        except UnreachableError as error:
            self.status[row], self.reasons[row] = UNREACHABLE, error.message
        except ParflexError as error:
            if error.key == "modes":
                raise
            self.status[row], self.reasons[row] = SINGULAR, error.message
        else:
            self.frequencies[row] = found.frequencies
            if self.twists is not None:
                self.twists[row] = Platform(robot, Geometry(robot), None).of_tree(q, found.shapes)


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
