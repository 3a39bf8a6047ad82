"""Natural frequencies at rows of poses, chunk by chunk: positions first, then frequencies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from parflex.maps.batch import BatchResult, Progress, chunks_of, in_order, mark_unfinite, number_of_threads
from parflex.maps.closed_rows import OK, SINGULAR
from parflex.maps.equilibria import WORTH as FEW
from parflex.maps.frequencies import WORTH, FrequencySolver
from parflex.maps.kinematics import Geometry
from parflex.maps.positions import PositionSolver
from parflex.maps.springs import LazySpringRows
from parflex.robot.robot import Robot
from parflex.statics.load_case import LoadCase

Array = np.ndarray
CHUNK_FAST, CHUNK_FULL, CHUNK_ALONE = 4096, 512, 64  # rows of a chunk, by how they are solved
SAMPLE = 100  # rows, spread over all of them, of which some are solved in full too


class FrequencyRows:
    """Rows of poses of a robot; `values` gives the coordinates of some of the `count` rows."""

    def __init__(
        self,
        robot: Robot,
        coordinates: Sequence[str],
        count: int,
        values: Callable[[Array], Array],
        modes: int,
        lock: str | Sequence[str] = "actuators",
        about: Any = None,
        shapes: bool = False,
        ignore_limits: bool = False,
    ) -> None:
        self.coordinates, self.count, self.values = list(coordinates), count, values
        self.modes, self.shapes = modes, shapes
        self.geometry = Geometry(robot)
        self.geometry.settle(count)
        self.solver = FrequencySolver(self.geometry, modes, lock, about=about)
        if count >= FEW:
            self.solver.springs = LazySpringRows(robot, LoadCase(lock, about), modes, shapes)
        self.shape_of = {"frequencies": (modes,)} | ({"shapes": (modes, 6)} if shapes else {})
        some = values(np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(int)))
        usual = some[np.isfinite(some).all(axis=1)]
        first = usual[0] if len(usual) else np.zeros(len(self.coordinates))
        self.positions = PositionSolver(self.geometry, self.coordinates, first.tolist(), ignore_limits)
        if shapes:
            _ = self.solver.platform  # which threads share
        if count >= WORTH and len(usual):
            placed = self.positions(usual)
            if (placed.status == OK).any():
                self.solver.prepare(placed.q[placed.status == OK])
        self.fallbacks, self.balanced, self.largest_difference = 0, 0, self.solver.largest_difference

    @property
    def way(self) -> str:
        """How rows are solved: "fast", "reduced" (whole matrices of all poses) or "one by one"."""
        if self.solver.finder is not None:
            return "fast"
        return "one by one" if self.solver.assembly is None else "reduced"

    @property
    def why(self) -> str:
        """Why rows are not solved by steps, or their positions not found together; empty where they are."""
        return "; ".join(filter(None, (self.solver.fallback_reason, self.positions.single_solve_reason)))

    @property
    def chunk(self) -> int:
        """Rows of a chunk: fewer where a row takes longer, so that little is lost when a map is interrupted."""
        if not self.positions.fast:
            return CHUNK_ALONE
        return {"fast": CHUNK_FAST, "reduced": CHUNK_FULL, "one by one": CHUNK_ALONE}[self.way]

    def solve(self, rows: slice) -> BatchResult:
        """What is found at some rows."""
        values = self.values(np.arange(rows.start, rows.stop))
        found = BatchResult.empty(self.shape_of, len(values))
        usable = np.flatnonzero(mark_unfinite(found, self.coordinates, values))
        if not len(usable):
            return found
        placed = self.positions(values[usable])
        found.status[usable] = placed.status
        for state in np.unique(placed.status[placed.status != OK]):
            why = self.positions.why(int(state))
            for row in usable[placed.status == state].tolist():
                found.reasons[row] = why
        for row, said in zip(usable.tolist(), placed.said or (), strict=False):
            found.reasons[row] = said
        good = usable[placed.status == OK]
        if len(good):
            self._frequencies(found, good, placed.q[placed.status == OK])
        return found

    def _frequencies(self, found: BatchResult, rows: Array, q: Array) -> None:
        solver = copy.copy(self.solver)  # which counts this chunk alone
        solver.solved_in_full, solver.balanced, solver.largest_difference, solver.reasons = 0, 0, 0.0, {}
        twists = np.full((len(q), self.modes, 6), np.nan) if self.shapes else None
        frequencies = solver(q, twists)
        self.solver.fallback_reason = self.solver.fallback_reason or solver.fallback_reason
        found.values["frequencies"][rows] = frequencies
        if twists is not None:
            found.values["shapes"][rows] = twists
        good = np.isfinite(frequencies).all(axis=1)
        for k in np.flatnonzero(~good):
            found.mark(int(rows[k]), SINGULAR, solver.reasons.get(q[k].tobytes(), ""))
        for k in np.flatnonzero(good) if solver.reasons else ():
            found.say(int(rows[k]), solver.reasons.get(q[k].tobytes(), ""))
        found.fallbacks, found.balanced, found.refused = solver.solved_in_full, solver.balanced, solver.too_many
        found.difference = solver.largest_difference

    def all(self, threads: int | None, progress: Progress | None = None) -> BatchResult:
        """All rows; `progress` is called with how many are done, and all."""
        found = BatchResult.empty(self.shape_of, self.count)
        for chunk, part in self.parts(chunks_of(self.count, self.chunk), threads):
            found.put(chunk, part)
            if progress is not None:
                progress(chunk.stop, self.count)
        return found

    def parts(self, chunks: Sequence[slice], threads: int | None) -> Any:
        """What is found in chunks, in their order."""
        # one by one is by the interpreter, which runs one thread at a time
        alone = self.way == "one by one" or not self.positions.fast
        used = 1 if alone else min(number_of_threads(threads), max(1, len(chunks)))
        for chunk, part in in_order(chunks, self.solve, used):
            self.note(part)
            yield chunk, part

    def note(self, part: BatchResult) -> None:
        """Count what happened in a chunk."""
        self.fallbacks += part.fallbacks
        self.balanced += part.balanced
        self.largest_difference = max(self.largest_difference, part.difference)
        self.solver.too_many = self.solver.too_many or part.refused

    def say(self, status: Array) -> None:
        """Warn of poses about an equilibrium; refuse what no pose could be asked."""
        self.solver.solved_in_full, self.solver.balanced = self.fallbacks, self.balanced
        self.solver.largest_difference = self.largest_difference
        reached = int(((status == OK) | (status == SINGULAR)).sum())
        self.solver.say(reached, bool((status == OK).any()))
