"""Cells of a grid as rows: their coordinates, and what is found at them, chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from parflex.maps.reaching.closed_rows import OK, SINGULAR
from parflex.maps.responses.at_one_pose import Held
from parflex.maps.responses.response_names import ResponseName, read_responses
from parflex.maps.responses.response_rows import ResponseRows
from parflex.maps.rows.frequency_rows import FrequencyRows
from parflex.maps.rows.row_answers import RowAnswers
from parflex.maps.rows.row_chunks import number_of_threads
from parflex.robot.coordinate_names import read_columns
from parflex.robot.robot import Robot

Array = np.ndarray


class MapRows:
    """Frequencies and responses of the cells of a grid."""

    def __init__(
        self,
        robot: Robot,
        axes: Mapping[str, Array],
        fixed: Mapping[str, float],
        modes: int,
        held: Held,
        responses: Sequence[ResponseName],
    ) -> None:
        self.axes, self.fixed, self.modes = dict(axes), dict(fixed), modes
        self.count = int(np.prod([len(axis) for axis in axes.values()]))
        self.plain: FrequencyRows | None = None
        self.others: ResponseRows | None = None
        names, self.units = read_columns(robot.tree, [*axes, *fixed], "over")
        asked = list(responses)
        if held.balanced:
            own = read_responses(robot, [f"frequency:{k + 1}" for k in range(modes)])
            asked = [*own, *(one for one in responses if one.name not in {other.name for other in own})]
        else:
            self.plain = FrequencyRows(robot, names, self.count, self.values, modes, held.lock, held.about)
        if asked:
            self.others = ResponseRows(robot, names, self.values(np.arange(self.count)), asked, held)
            self.others.prepare()
        self.asked = tuple(responses)

    @property
    def way(self) -> str:
        """How cells are solved."""
        rows = self.plain or self.others
        return "one by one" if rows is None else rows.way

    @property
    def why(self) -> str:
        """Why cells are not solved by steps, or their positions not found together; empty where they are."""
        return self.plain.why if self.plain is not None else "" if self.others is None else self.others.why

    @property
    def chunk(self) -> int:
        """Cells of a chunk."""
        return min(rows.chunk for rows in (self.plain, self.others) if rows is not None)

    def values(self, cells: Array) -> Array:
        """Coordinates of cells (m, rad), the fixed ones last."""
        index = np.unravel_index(cells, tuple(len(axis) for axis in self.axes.values()))
        columns = [axis[k] for axis, k in zip(self.axes.values(), index, strict=True)]
        return np.stack([*columns, *(np.full(len(cells), value) for value in self.fixed.values())], axis=1) * self.units

    def solve(self, cells: slice) -> RowAnswers:
        """What is found at some cells."""
        found = None if self.plain is None else self.plain.solve(cells)
        if self.others is None:
            assert found is not None
            return found
        other = self.others.solve(cells)
        if found is None:
            own = [other.values[f"frequency:{k + 1}"] for k in range(self.modes)]
            return self._chosen(other, np.stack(own, axis=1))
        for row in np.flatnonzero((other.status == OK) & (found.status != OK)):
            other.mark(int(row), int(found.status[row]), found.reasons[row])
        for row in np.flatnonzero((other.status == SINGULAR) & (found.status == OK)):
            other.status[row] = OK  # it has frequencies; a response alone is not defined there
        joined = self._chosen(other, found.values["frequencies"])
        joined.fallbacks, joined.balanced, joined.difference = found.fallbacks, found.balanced, found.difference
        joined.refused = found.refused or other.refused
        return joined

    def _chosen(self, other: RowAnswers, frequencies: Array) -> RowAnswers:
        other.values = {"frequencies": frequencies} | {one.name: other.values[one.name] for one in self.asked}
        return other

    def threads(self, asked: int | None, chunks: int) -> int:
        """Threads that are of use: one by one is by the interpreter, which runs one thread at a time."""
        return 1 if self.way == "one by one" else min(number_of_threads(asked), max(1, chunks))
