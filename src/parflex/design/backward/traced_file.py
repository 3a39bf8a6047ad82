"""A robot file read with symbols for some of its keys: numbers of the robot as expressions of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from parflex.errors import ParflexError
from parflex.parameters.design_numbers import DesignNumbers, Path, leaves, number_at, read_again
from parflex.parameters.traced_numbers import TracedDecisions, TracedNumber, holds
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.robotfile.read import apply_settings
from parflex.spatial.batched import OneNumberError, Varied
from parflex.symbolic.expression import Expression, Graph

Array = np.ndarray
Made = TypeVar("Made")


class RecentPrograms(Generic[Made]):
    """Programs of files and keys that were traced last; of what cannot be traced it is known too."""

    def __init__(self, most: int) -> None:
        self.most, self._kept = most, dict[str, Made | None]()

    def of(self, robot: Robot, keys: Sequence[str], *more: Any, traced: Callable[[], Made | None]) -> Made | None:
        """The program that `traced` makes for a file, keys and what `more` it depends on; None: it cannot."""
        name = name_of_file(robot, keys, *more)
        if name is None:
            return None
        if name not in self._kept:
            while len(self._kept) >= self.most:
                self._kept.pop(next(iter(self._kept)))
            try:
                self._kept[name] = traced()
            except (OneNumberError, TypeError, ValueError, ParflexError, ZeroDivisionError):
                self._kept[name] = None
        return self._kept[name]


@dataclass(frozen=True, eq=False, repr=False)
class TracedFile(Record):
    """Numbers of a robot by keys, where they stand, and what the reading decided by; zeros with slopes are not zero."""

    graph: Graph
    keys: tuple[str, ...]
    symbols: tuple[Expression, ...]
    numbers: tuple[Expression, ...]
    places: tuple[tuple[Path, ...], ...]
    decisions: TracedDecisions

    @property
    def checks(self) -> dict[str, list[Expression]]:
        """What tells designs that are read otherwise: what was compared with zero, and what must be finite."""
        decided = self.decisions
        return {
            "compared": [Expression(self.graph, edge) for edge, _ in decided.compared],
            "finite": [Expression(self.graph, edge) for edge in sorted(decided.finite)],
        }

    @property
    def compared(self) -> tuple[tuple[str, bool], ...]:
        """How it was compared, and the answer."""
        return tuple((how, bool(answer)) for (_, how), answer in self.decisions.compared.items())

    def robot_of(self, robot: Robot) -> Robot:
        """The robot with expressions in the place of its numbers."""
        nominal = np.zeros(len(self.places))
        found = DesignNumbers(robot, self.keys, self.places, nominal, nominal[None], np.zeros(1, dtype=bool))
        return found.with_numbers(dict(enumerate(self.numbers)))


def trace_file(robot: Robot, keys: Sequence[str]) -> TracedFile:
    """The file read with symbols at some keys."""
    graph = Graph()
    decisions = TracedDecisions(graph, parting=True)
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
                raise OneNumberError("a number is not traced")
    places = tuple(tuple(own) for _, own in found.values())
    return TracedFile(graph, tuple(keys), tuple(symbols), tuple(x for x, _ in found.values()), places, decisions)


def same_reading(compared: Sequence[tuple[str, bool]], values: Array) -> bool:
    """Whether all that was compared with zero came out as where the file was traced."""
    return all(holds(x, how) == answer for x, (how, answer) in zip(values, compared, strict=True))


def name_of_file(robot: Robot, keys: Sequence[str], *more: Any) -> str | None:
    """What programs of a file and keys depend on: all of the file but the numbers at the keys; None: not traced."""
    written = robot.written
    if written is None or written.payload is not None:
        return None
    bare = apply_settings(json.loads(json.dumps(written.table)), dict.fromkeys(keys, 0.0), robot.file)
    text = json.dumps(
        [bare, list(keys), written.elements, written.rigid, str(robot.file), robot.actuation, *more],
        sort_keys=True,
        default=repr,
    )
    return hashlib.sha256(text.encode()).hexdigest()
