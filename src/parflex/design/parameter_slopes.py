"""Derivatives of the numbers of a robot by keys of its file.

The file is read once with symbols for its keys, and the graph is differentiated; the program serves all values of the
keys. If the reading would decide otherwise at some values, the file is read again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from parflex.cache import cached
from parflex.codegen.emit_python import functions_of, run
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program
from parflex.errors import ParflexError
from parflex.parameters.design_numbers import DesignNumbers, Path, number_at
from parflex.parameters.traced_numbers import same_reading, trace_file
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.robotfile.read import apply_settings
from parflex.spatial.batched import VariedNumberError
from parflex.symbolic.derivative import jacobian
from parflex.symbolic.expression import Expression

Array = np.ndarray

T = TypeVar("T")


def traced_program(
    kind: str, trace: Callable[..., T | None], robot: Robot, keys: Sequence[str], *choices: Any
) -> T | None:
    """Return the program that `trace` makes of a robot, keys and further choices; None if they cannot be traced."""
    name = name_of_file(robot, keys, *choices)
    if name is None:
        return None

    def build() -> T | None:
        try:
            return trace(robot, keys, *choices)
        except (VariedNumberError, TypeError, ValueError, ParflexError, ZeroDivisionError):
            return None

    return cached(kind, name, build)


def name_of_file(robot: Robot, keys: Sequence[str], *more: Any) -> str | None:
    """What programs of a file and keys depend on: all of the file but the numbers at the keys; None: not traced."""
    written = robot.written
    if written is None or written.payload is not None:
        return None
    bare = apply_settings(json.loads(json.dumps(written.table)), dict.fromkeys(keys, 0.0), robot.file)
    text = json.dumps(
        [bare, list(keys), written.elements, written.nodes, written.rigid, str(robot.file), robot.actuation, *more],
        sort_keys=True,
        default=repr,
    )
    return hashlib.sha256(text.encode()).hexdigest()


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
            outputs = np.array(run(self.program, columns, functions_of("numpy")), dtype=float)
        count, ends = len(self.places), np.cumsum([len(self.places), len(self.entries), len(self.compared)])
        if not same_reading(self.compared, outputs[None, ends[1] : ends[2]]) or not np.isfinite(outputs).all():
            return None
        slopes = np.zeros((len(keys), 1, count))
        for (k, number), slope in zip(self.entries, outputs[count : ends[1]], strict=True):
            slopes[k, 0, number] = slope
        number_row = outputs[None, :count]
        return DesignNumbers(
            robot, tuple(keys), self.places, number_row[0], number_row, np.zeros(1, dtype=bool), slopes
        )


def numbers_by_program(robot: Robot, keys: Sequence[str], values: Array | None = None) -> DesignNumbers | None:
    """Numbers of the robot with slopes by the keys, at their values in the file or others; None where not traced."""
    made = traced_program("slopes of numbers", _traced, robot, keys)
    if made is None:
        return None
    return made.numbers(robot, keys, np.array([number_at(robot, key) for key in keys]) if values is None else values)


def _traced(robot: Robot, keys: Sequence[str]) -> SlopeProgram | None:
    """The file read with symbols, and its numbers differentiated."""
    file = trace_file(robot, keys, parting=True)
    numbers = [x.expression for x in file.numbers]
    rows = jacobian(numbers, file.symbols)
    entries = [(k, i) for i, row in enumerate(rows) for k, x in enumerate(row) if isinstance(x, Expression) or x]
    outputs = {"number": numbers, "slope": [rows[i][k] for k, i in entries], **file.checks}
    arrays = {name: np.array(expressions, dtype=object) for name, expressions in outputs.items() if expressions}
    program = make_program(file.graph, "slopes", arrays, quick=True)
    return SlopeProgram(program, file.places, tuple(entries), file.compared)
