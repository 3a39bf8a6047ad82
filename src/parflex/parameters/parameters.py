"""Keys of a robot file as parameters: bind values to them, and differentiate the numbers of a robot by them.

The file is read once with symbols for its keys, and the graph is differentiated; the program serves all values of the
keys. Where the reading decides otherwise at some values, the file is read again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from parflex.cache import cached
from parflex.codegen.emit_python import functions_of
from parflex.codegen.optimise import make_program
from parflex.codegen.program import Program, run
from parflex.errors import InputError, ParflexError, RobotFileError
from parflex.parameters.design_numbers import DesignNumbers, Path, leaves, number_at, with_leaves
from parflex.parameters.robot_file import redesigned
from parflex.parameters.traced_numbers import TracedFile, TracedNumber, same_reading, trace_file
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.robotfile.read import apply_settings
from parflex.spatial.dual import Sensitive
from parflex.symbolic.derivative import jacobian
from parflex.symbolic.expression import Expression

Array = np.ndarray
T = TypeVar("T")
UNTRACED = (TypeError, ValueError, ParflexError, ZeroDivisionError)  # of a file that tracing does not cover


class Parameters:
    """Keys of the file of a robot, each of one number."""

    def __init__(self, robot: Robot, keys: Sequence[str]) -> None:
        self.robot, self.keys = robot, tuple(keys)

    @cached_property
    def values(self) -> Array:
        """The numbers at the keys."""
        return np.array([number_at(self.robot, key, "keys") for key in self.keys])

    def bind(self, values: Sequence[float] | Array) -> Robot:
        """Return the robot with other values at the keys, in the working mode in which it stands."""
        return redesigned(self.robot, dict(zip(self.keys, map(float, values), strict=True)))

    def traced(self, kind: str, trace: Callable[..., T | None], *choices: Any) -> T | None:
        """Return the program that `trace` makes of the robot, keys and further choices; None where it is not traced."""
        name = self.name(*choices)

        def build() -> T | None:
            try:
                return trace(self.robot, self.keys, *choices)
            except UNTRACED:
                return None

        return None if name is None else cached(kind, name, build)

    def name(self, *choices: Any) -> str | None:
        """Return a digest of all of the file but the numbers at the keys, of which programs depend; None: no file."""
        written = self.robot.written
        if written is None:
            return None
        bare = apply_settings(json.loads(json.dumps(written.table)), dict.fromkeys(self.keys, 0.0), self.robot.file)
        origin = (written.elements, written.nodes, written.rigid, written.payload, str(self.robot.file))
        text = json.dumps([bare, self.keys, *origin, self.robot.actuation, *choices], sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()

    # -- derivatives -----------------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> DesignNumbers | None:
        """The numbers of the robot with their slopes; None where its file is read otherwise than when it was traced."""
        made = self.traced("slopes of numbers", _traced_slopes)
        return None if made is None else made.numbers(self)

    @cached_property
    def sloped_numbers(self) -> DesignNumbers:
        """The numbers of the robot with their slopes; a key that the reading does not follow is refused by name."""
        numbers = self.numbers or self._read_again()
        if numbers is None:
            alone = (key for key in self.keys if Parameters(self.robot, [key])._read_again() is None)
            key = next(alone, ", ".join(self.keys))
            text = f"what follows from '{key}' has no slopes: it is computed by finite elements, reduced, or not smooth"
            hint = "name keys of beams, rigid bodies, joints and places"
            raise InputError(f"{text} here", key="keys", value=key, hint=hint)
        return numbers

    def _read_again(self) -> DesignNumbers | None:
        """The numbers with their slopes by a program of the values as they are; None where these are not traced."""
        try:
            return _traced_slopes(self.robot, self.keys).numbers(self)
        except RobotFileError:  # nothing but names and counts takes the number that stands there and not a symbol
            if len(self.keys) > 1:
                return None
            text = f"'{self.keys[0]}' is a name or a count, so that nothing has slopes by it"
            hint = "name a key with a number, such as a length, a mass or a stiffness"
            raise InputError(text, key="keys", value=self.keys[0], hint=hint) from None
        except UNTRACED:
            return None

    def sloped_part(self, make: Callable[[Any], Any]) -> Any:
        """Return what `make` builds from the description of the file, with slopes in its numbers."""
        file = trace_file(self.robot, self.keys, parting=True)
        part = make(file.description)
        varied = [(place, x) for place, x in leaves(part) if isinstance(x, TracedNumber)]
        program = _slope_program(file, [x for _, x in varied], tuple((place,) for place, _ in varied))
        sloped = program.outputs(self.values)
        assert sloped is not None
        numbers = [Sensitive(float(value), slope.copy()) for value, slope in zip(sloped[0], sloped[1].T, strict=True)]
        return with_leaves(part, [place for place, _ in varied], numbers)


@dataclass(frozen=True, eq=False, repr=False)
class SlopeProgram(Record):
    """From keys to numbers, to those of their slopes that are not zero, and to what the reading decided by."""

    program: Program
    places: tuple[tuple[Path, ...], ...]
    entries: tuple[tuple[int, int], ...]  # of each slope: key and number
    compared: tuple[tuple[str, bool], ...]

    def outputs(self, values: Array) -> tuple[Array, Array] | None:
        """Return numbers and slopes (keys x numbers); None where the reading differs or one is not finite."""
        columns = [values[int(name[4:-1])] for name in self.program.inputs]
        with np.errstate(all="ignore"):
            outputs = np.array(run(self.program, columns, functions_of("numpy")), dtype=float)
        count, ends = len(self.places), np.cumsum([len(self.places), len(self.entries), len(self.compared)])
        compared = outputs[ends[1] : ends[2]]  # with infinity too
        finite = np.isfinite(np.delete(outputs, np.s_[ends[1] : ends[2]])).all()
        if not finite or not same_reading(self.compared, compared[None]):
            return None
        slopes = np.zeros((len(values), count))
        for (k, number), slope in zip(self.entries, outputs[count : ends[1]], strict=True):
            slopes[k, number] = slope
        return outputs[:count], slopes

    def numbers(self, parameters: Parameters) -> DesignNumbers | None:
        """Return the numbers of a robot with their slopes; None where it is read otherwise than the traced one."""
        sloped = self.outputs(parameters.values)
        if sloped is None:
            return None
        values, slopes = sloped
        alone = np.zeros(1, dtype=bool)
        return DesignNumbers(parameters.robot, parameters.keys, self.places, values, values[None], alone, slopes)


def _traced_slopes(robot: Robot, keys: Sequence[str]) -> SlopeProgram:
    """The file read with symbols, and its numbers differentiated."""
    file = trace_file(robot, keys, parting=True)
    return _slope_program(file, file.numbers, file.places)


def _slope_program(
    file: TracedFile, numbers: Sequence[TracedNumber], places: tuple[tuple[Path, ...], ...]
) -> SlopeProgram:
    expressions = [x.expression for x in numbers]
    rows = jacobian(expressions, file.symbols)
    entries = [(k, i) for i, row in enumerate(rows) for k, x in enumerate(row) if isinstance(x, Expression) or x]
    outputs = {"number": expressions, "slope": [rows[i][k] for k, i in entries], **file.checks}
    arrays = {name: np.array(items, dtype=object) for name, items in outputs.items() if items}
    return SlopeProgram(make_program(file.graph, "slopes", arrays, quick=True), places, tuple(entries), file.compared)
