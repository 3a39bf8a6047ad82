"""Slopes of the numbers of a robot by keys of its file, by a program that is traced once for all designs of the keys.

The file is read once with symbols for its keys, and what follows is differentiated in the graph. Where a design would
have been read otherwise, the file is read again instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parflex.codegen.emit_python import functions_of, run
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program
from parflex.design.backward.traced_file import RecentPrograms, same_reading, trace_file
from parflex.parameters.design_numbers import DesignNumbers, Path, number_at
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.symbolic.derivative import jacobian
from parflex.symbolic.expression import Expression

Array = np.ndarray
_recent: RecentPrograms[SlopeProgram] = RecentPrograms(16)


@dataclass(frozen=True, eq=False, repr=False)
class SlopeProgram(Record):
    """From keys to numbers, to those of their slopes that are not zero, and to what the reading decided by."""

    program: Program
    places: tuple[tuple[Path, ...], ...]
    entries: tuple[tuple[int, int], ...]  # of each slope: key and number
    compared: tuple[tuple[str, bool], ...]

    def numbers(self, robot: Robot, keys: Sequence[str], values: Array) -> DesignNumbers | None:
        """The numbers of a robot with their slopes; None where it is read otherwise than the one that was traced."""
        columns = [values[int(name[4:-1])] for name in self.program.inputs]
        with np.errstate(all="ignore"):
            found = np.array(run(self.program, columns, functions_of("numpy")), dtype=float)
        count, ends = len(self.places), np.cumsum([len(self.places), len(self.entries), len(self.compared)])
        checks = found[ends[1] : ends[2]]
        if not same_reading(self.compared, checks) or not np.isfinite(found).all():
            return None
        slopes = np.zeros((len(keys), 1, count))
        for (k, number), slope in zip(self.entries, found[count : ends[1]], strict=True):
            slopes[k, 0, number] = slope
        own = found[None, :count]
        return DesignNumbers(robot, tuple(keys), self.places, own[0], own, np.zeros(1, dtype=bool), slopes)


def numbers_by_program(robot: Robot, keys: Sequence[str]) -> DesignNumbers | None:
    """Numbers of the robot with slopes by the keys; None where that is not traced."""
    made = _recent.of(robot, keys, traced=lambda: _traced(robot, keys))
    return None if made is None else made.numbers(robot, keys, np.array([number_at(robot, key) for key in keys]))


def _traced(robot: Robot, keys: Sequence[str]) -> SlopeProgram | None:
    """The file read with symbols, and its numbers differentiated."""
    file = trace_file(robot, keys)
    rows = jacobian(file.numbers, file.symbols)
    entries = [(k, i) for i, row in enumerate(rows) for k, x in enumerate(row) if isinstance(x, Expression) or x]
    outputs = {"number": list(file.numbers), "slope": [rows[i][k] for k, i in entries], **file.checks}
    arrays = {name: np.array(own, dtype=object) for name, own in outputs.items() if own}
    program = make_program(file.graph, "slopes", arrays, quick=True)
    return SlopeProgram(program, file.places, tuple(entries), file.compared)
