"""Numbers of designs by a program: the file is read once with symbols for its keys, and the program is kept.

A program that is there reads nothing: rows of keys go in, numbers of the robot come out, and beside them what the
reading decided by, so that designs that it would have treated otherwise are told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.codegen import cache
from parflex.codegen.emit_python import functions_of, run
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.optimise import make_program
from parflex.errors import ParflexError
from parflex.maps.batches import BatchProgram
from parflex.maps.rows.number_loop import number_rows, odd_rows
from parflex.parameters.design_numbers import DesignNumbers, design_numbers, leaves, number_at, read_again
from parflex.parameters.traced_numbers import TracedDecisions, TracedNumber, holds
from parflex.records import Record
from parflex.robot.robot import Robot
from parflex.spatial.batched import OneNumberError, Varied
from parflex.symbolic.expression import Expression, Graph

Array = np.ndarray
ALIKE = 3  # designs in which numbers must agree to be one
DIGITS = ".13e"
RECENT = 16  # robots with sets of keys whose programs stay in memory


@dataclass(frozen=True, eq=False, repr=False)
class TracedNumbers(Record):
    """Numbers of designs by machine code, from rows of keys: made where they are asked for."""

    kernel: Kernel
    keys: Array

    def columns(self, numbers: Sequence[int]) -> Array:
        """Some numbers in all designs."""
        values = np.empty((len(self.keys), len(numbers)))
        number_rows(self.kernel, self.keys, np.array(numbers, dtype=np.int64), values)
        return values

    def of_rows(self, rows: Array) -> TracedNumbers:
        """The same for some of the designs."""
        return TracedNumbers(self.kernel, np.ascontiguousarray(self.keys[rows]))


@dataclass(frozen=True, eq=False, repr=False)
class NumberProgram(Record):
    """From keys to numbers, to what was compared with zero (how, and the nominal answer), and to what is finite."""

    batch: BatchProgram
    places: tuple[tuple[tuple[str | int, ...], ...], ...]
    compared: tuple[tuple[str, bool], ...]
    nominal: Array
    name: str
    samples: Array | None

    def numbers(self, robot: Robot, keys: Sequence[str], columns: Array) -> DesignNumbers:
        """In designs, given by rows of the keys."""
        size, kernel, alone = len(self.places), self.batch.kernel(len(columns)), np.zeros(len(columns), dtype=bool)
        held: Array | TracedNumbers
        if kernel is not None:
            held = TracedNumbers(kernel, np.ascontiguousarray(columns))
            alone |= odd_rows(kernel, held.keys, self.compared, size)
        else:
            held = np.empty((len(columns), size))
            self._interpreted(columns, held, alone)
        name, samples = self.name, self.samples
        return DesignNumbers(robot, tuple(keys), self.places, self.nominal, held, alone, name=name, samples=samples)

    def _interpreted(self, columns: Array, values: Array, alone: Array) -> None:
        """The same where designs are too few to compile."""
        size = len(self.places)
        with np.errstate(all="ignore"):
            found = self.batch(columns).T
        alone |= ~np.isfinite(found).all(axis=0)
        for k, (how, answer) in enumerate(self.compared):
            alone |= holds(found[size + k], how) != answer
        values[:] = found[:size].T


def numbers_of_designs(robot: Robot, designs: Mapping[str, Array]) -> DesignNumbers:
    """As `design_numbers`, by a program where what follows from the keys can be traced."""
    keys = tuple(designs)
    key = cache.key_of(robot, "design numbers", keys, robot.written)  # formulas may differ in alike robots
    made = _kept(key, robot, keys) if key is not None and robot.written is not None else None
    if made is None:
        return design_numbers(robot, designs)
    columns = np.stack([np.asarray(designs[name], dtype=float) for name in keys], axis=1)
    return made.numbers(robot, keys, columns)


_recent: dict[str, NumberProgram | None] = {}


def _kept(key: str, robot: Robot, keys: tuple[str, ...]) -> NumberProgram | None:
    """From memory, from the disk, or traced; None where tracing does not cover it."""
    if key in _recent:
        return _recent[key]
    data = cache.read_bytes(key)
    if data is not None:
        content = json.loads(data)
    else:
        try:
            content = _traced(robot, keys)
        except (OneNumberError, TypeError, ParflexError, ZeroDivisionError):  # read with arrays, which says why
            content = None
        cache.write_bytes(key, json.dumps(content, separators=(",", ":")).encode())
    made = None if content is None else _made(content)
    while len(_recent) >= RECENT:
        _recent.pop(next(iter(_recent)))
    _recent[key] = made
    return made


def _made(content: dict[str, Any]) -> NumberProgram:
    program = cache.program_from_plain(content["program"])
    assert program is not None
    places = cache.as_tuples(content["places"])
    name = hashlib.sha256((repr(places) + program.digest()).encode()).hexdigest()
    compared = tuple((how, bool(answer)) for how, answer in content["compared"])
    samples = None if content["samples"] is None else np.array(content["samples"])
    return NumberProgram(BatchProgram(program), places, compared, np.array(content["nominal"]), name, samples)


def _traced(robot: Robot, keys: tuple[str, ...]) -> dict[str, Any]:
    """The file read with symbols."""
    graph = Graph()
    decisions = TracedDecisions(graph)
    given = [number_at(robot, key) for key in keys]
    settings = {
        key: TracedNumber(value, graph.symbol(f"key[{k}]"), decisions)
        for k, (key, value) in enumerate(zip(keys, given, strict=True))
    }
    _, parts = read_again(robot, settings)
    found: dict[int, tuple[TracedNumber, list]] = {}
    for name, part in parts.items():
        for place, x in leaves(part):
            if isinstance(x, TracedNumber):
                found.setdefault(x.expression.edge, (x, []))[1].append((name, *place))
            elif isinstance(x, Varied):
                raise OneNumberError("a number is not traced")
    groups, samples = _alike(graph, [(x, places) for x, places in found.values()], np.array(given))
    known = all(given) and np.isfinite(samples).all()  # nothing says how far a key at zero would have to go
    checks = [(edge, how, answer) for (edge, how), answer in decisions.compared.items()]
    outputs = {
        "number": np.array([x.expression for x, _ in groups], dtype=object),
        "compared": np.array([Expression(graph, edge) for edge, _, _ in checks], dtype=object),
        "finite": np.array([Expression(graph, edge) for edge in sorted(decisions.finite)], dtype=object),
    }
    program = make_program(graph, "numbers", {name: own for name, own in outputs.items() if len(own)}, quick=True)
    return {
        "program": cache.program_to_plain(program),
        "places": [places for _, places in groups],
        "compared": [[how, bool(answer)] for _, how, answer in checks],
        "nominal": [x.nominal for x, _ in groups],
        "samples": samples.tolist() if known else None,
    }


def _alike(
    graph: Graph, found: list[tuple[TracedNumber, list]], given: Array
) -> tuple[list[tuple[TracedNumber, list]], Array]:
    """Numbers that are the same in any design, however they were computed, are one; with some designs of them."""
    if not found:
        return [], np.zeros((ALIKE, 0))
    names = np.array([x.expression for x, _ in found], dtype=object)
    program = make_program(graph, "alike", {"number": names}, quick=True)
    around = given * (1 + np.random.default_rng(1).uniform(-0.03, 0.03, (ALIKE, len(given))))
    around += (given == 0) * np.random.default_rng(2).uniform(-1e-3, 1e-3, (ALIKE, len(given)))
    columns = [around[:, int(name[4:-1])] for name in program.inputs]
    with np.errstate(all="ignore"):
        values = [np.broadcast_to(own, (ALIKE,)) for own in run(program, columns, functions_of("numpy"))]
    groups: dict[tuple[str, ...], tuple[TracedNumber, list, Array]] = {}
    for k, ((x, places), own) in enumerate(zip(found, values, strict=True)):
        known = np.isfinite(own).all()  # what cannot be told there is no other number
        name = tuple(format(value, DIGITS) for value in own) if known else (str(k),)
        groups.setdefault(name, (x, [], own))[1].extend(places)
    return [(x, places) for x, places, _ in groups.values()], np.stack([own for _, _, own in groups.values()], axis=1)
