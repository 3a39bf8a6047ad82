"""Slopes of the numbers of a robot by keys of its file, by a program that is traced once for all designs of the keys.

The file is read once with symbols for its keys, and what follows is differentiated in the graph. Where a design would
have been read otherwise, or where a number that is zero may have a slope, the file is read again instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.codegen.emit.emit_python import functions_of, run
from parflex.codegen.passes.optimise import make_program
from parflex.codegen.program import Program
from parflex.description.source import apply_settings
from parflex.designs.design_numbers import DesignNumbers, Path, leaves, number_at, read_again
from parflex.designs.traced_numbers import TracedDecisions, TracedNumber, holds
from parflex.errors import ParflexError
from parflex.graph.derivative import jacobian
from parflex.graph.expression import Expression, Graph
from parflex.models.robot import Robot
from parflex.records import Record
from parflex.spatial.varied import OneNumberError, Varied

Array = np.ndarray
RECENT = 16  # sets of keys whose programs stay in memory
_recent: dict[str, SlopeProgram | None] = {}


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
        same = all(holds(x, how) == answer for x, (how, answer) in zip(checks, self.compared, strict=True))
        if not same or not np.isfinite(found).all():
            return None
        slopes = np.zeros((len(keys), 1, count))
        for (k, number), slope in zip(self.entries, found[count : ends[1]], strict=True):
            slopes[k, 0, number] = slope
        own = found[None, :count]
        return DesignNumbers(robot, tuple(keys), self.places, own[0], own, np.zeros(1, dtype=bool), slopes)


def numbers_by_program(robot: Robot, keys: Sequence[str]) -> DesignNumbers | None:
    """Numbers of the robot with slopes by the keys; None where that is not traced."""
    name = _name(robot, keys)
    if name is None:
        return None
    if name not in _recent:
        while len(_recent) >= RECENT:
            _recent.pop(next(iter(_recent)))
        try:
            _recent[name] = _traced(robot, keys)
        except (OneNumberError, TypeError, ParflexError, ZeroDivisionError):
            _recent[name] = None
    made = _recent[name]
    return None if made is None else made.numbers(robot, keys, np.array([number_at(robot, key) for key in keys]))


def _name(robot: Robot, keys: Sequence[str]) -> str | None:
    """What the program depends on: the file without the numbers at the keys."""
    written = robot.written
    if written is None or written.payload is not None:
        return None
    bare = apply_settings(json.loads(json.dumps(written.table)), dict.fromkeys(keys, 0.0), robot.file)
    text = json.dumps(
        [bare, list(keys), written.elements, str(robot.file), robot.actuation], sort_keys=True, default=repr
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _traced(robot: Robot, keys: Sequence[str]) -> SlopeProgram | None:
    """The file read with symbols, and its numbers differentiated."""
    graph = Graph()
    decisions = TracedDecisions(graph)
    symbols = [graph.symbol(f"key[{k}]") for k in range(len(keys))]
    settings: Mapping[str, Any] = {
        key: TracedNumber(number_at(robot, key), symbol, decisions) for key, symbol in zip(keys, symbols, strict=True)
    }
    _, parts = read_again(robot, settings)
    found: dict[int, tuple[Expression, list[Path]]] = {}
    for name, part in parts.items():
        for place, x in leaves(part):
            if isinstance(x, TracedNumber):
                found.setdefault(x.expression.edge, (x.expression, []))[1].append((name, *place))
            elif isinstance(x, Varied):
                return None
    if any(answer == (how == "eq") for (_, how), answer in decisions.compared.items() if how in ("eq", "ne")):
        return None  # a number that is zero may have been dropped with its slope
    numbers = [x for x, _ in found.values()]
    rows = jacobian(numbers, symbols)
    entries = [(k, i) for i, row in enumerate(rows) for k, x in enumerate(row) if isinstance(x, Expression) or x]
    checks = list(decisions.compared.items())
    outputs = {
        "number": numbers,
        "slope": [rows[i][k] for k, i in entries],
        "compared": [Expression(graph, edge) for (edge, _), _ in checks],
        "finite": [Expression(graph, edge) for edge in sorted(decisions.finite)],
    }
    arrays = {name: np.array(own, dtype=object) for name, own in outputs.items() if own}
    program = make_program(graph, "slopes", arrays, quick=True)
    places = tuple(tuple(own) for _, own in found.values())
    return SlopeProgram(program, places, tuple(entries), tuple((how, bool(answer)) for (_, how), answer in checks))
