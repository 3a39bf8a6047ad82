"""Numbers of many parameter sets by a compiled program.

The file is read once with symbols for its keys, and the program is cached. Rows of keys are its inputs, numbers of the
robot its outputs, together with the decisions of the reading. A row is marked if a number is not finite or a decision
differs from that of the nominal set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parflex.cache import cached
from parflex.codegen import cache
from parflex.codegen.emit_python import functions_of
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.optimise import make_program
from parflex.codegen.program import run
from parflex.maps.kinematics import BatchProgram
from parflex.parameters.design_numbers import DesignNumbers, number_at
from parflex.parameters.traced_numbers import TracedFile, same_reading, trace_file
from parflex.records import Record
from parflex.robot.robot import Robot

Array = np.ndarray

ALIKE = 3  # designs in which numbers must agree to be one

DIGITS = ".13e"

CHUNK = 4096  # rows whose numbers are there at a time: they stay in the cache


@dataclass(frozen=True, eq=False, repr=False)
class TracedNumbers(Record):
    """Numbers of designs by machine code, from rows of keys: made where they are asked for."""

    kernel: Kernel
    keys: Array

    def columns(self, numbers: Sequence[int]) -> Array:
        """Some numbers in all designs."""
        values = np.empty((len(self.keys), len(numbers)))
        for start in range(0, len(self.keys) if len(numbers) else 0, CHUNK):
            values[start : start + CHUNK] = self.kernel.many(self.keys[start : start + CHUNK])[:, numbers]
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
        size, kernel = len(self.places), self.batch.kernel(len(columns))
        held: Array | TracedNumbers
        if kernel is not None:
            held, alone = TracedNumbers(kernel, np.ascontiguousarray(columns)), np.zeros(len(columns), dtype=bool)
            for start in range(0, len(columns), CHUNK):
                alone[start : start + CHUNK] = self._odd(kernel.many(held.keys[start : start + CHUNK]))
        else:
            with np.errstate(all="ignore"):  # designs are too few to compile
                outputs = self.batch(columns)
            held, alone = outputs[:, :size].copy(), self._odd(outputs)
        name, samples = self.name, self.samples
        return DesignNumbers(robot, tuple(keys), self.places, self.nominal, held, alone, name=name, samples=samples)

    def _odd(self, outputs: Array) -> Array:
        """Return which rows are read otherwise than the nominal one, or have a number that is not finite."""
        first, last = len(self.places), len(self.places) + len(self.compared)
        finite = np.isfinite(outputs[:, :first]).all(axis=1) & np.isfinite(outputs[:, last:]).all(axis=1)
        return ~(finite & same_reading(self.compared, outputs[:, first:last]))


def numbers_of_designs(robot: Robot, designs: Mapping[str, Array]) -> DesignNumbers:
    """Return what changes in a robot with values of its file, by dotted path, one of each for every design.

    Raises the error of reading the file, or `VariedNumberError`, where what follows from the keys is not traced.
    """
    keys = tuple(designs)
    key = cache.key_of(robot, "design numbers", keys, robot.written)  # formulas may differ in alike robots
    made = cached("design numbers", key, lambda: cache.stored(key, lambda: _traced(robot, keys)))
    columns = np.stack([np.asarray(designs[name], dtype=float) for name in keys], axis=1)
    return made.numbers(robot, keys, columns)


def masses_of(robot: Robot, numbers: DesignNumbers | None) -> Array:
    """Return the mass of all moving bodies, in each design if there are any; it needs no pose."""
    if numbers is None:
        return np.array(sum(link.body.m for link in robot.tree.links))
    parts = [
        np.broadcast_to(numbers.values_at(("links", j, "body", "m"), link.body.m), (len(numbers.alone),))
        for j, link in enumerate(robot.tree.links)
    ]
    return np.sum(parts, axis=0)


def _traced(robot: Robot, keys: tuple[str, ...]) -> NumberProgram:
    """The file read with symbols."""
    file, nominal_values = trace_file(robot, keys), [number_at(robot, key) for key in keys]
    groups, samples = _alike(file, np.array(nominal_values))
    known = all(nominal_values) and np.isfinite(samples).all()  # nothing says how far a key at zero would have to go
    outputs = {"number": [file.numbers[own[0]].expression for own in groups], **file.checks}
    arrays = {name: np.array(expressions, dtype=object) for name, expressions in outputs.items() if len(expressions)}
    program = make_program(file.graph, "numbers", arrays, quick=True)
    places = tuple(tuple(place for k in own for place in file.places[k]) for own in groups)
    name = hashlib.sha256((repr(places) + program.digest()).encode()).hexdigest()
    nominal = np.array([file.numbers[own[0]].nominal for own in groups])
    return NumberProgram(BatchProgram(program), places, file.compared, nominal, name, samples if known else None)


def _alike(file: TracedFile, nominal_values: Array) -> tuple[list[list[int]], Array]:
    """Numbers that are the same in any design, however they were computed, are one; with some designs of them."""
    if not file.numbers:
        return [], np.zeros((ALIKE, 0))
    names = np.array([x.expression for x in file.numbers], dtype=object)
    program = make_program(file.graph, "alike", {"number": names}, quick=True)
    around = nominal_values * (1 + np.random.default_rng(1).uniform(-0.03, 0.03, (ALIKE, len(nominal_values))))
    around += (nominal_values == 0) * np.random.default_rng(2).uniform(-1e-3, 1e-3, (ALIKE, len(nominal_values)))
    columns = [around[:, int(name[4:-1])] for name in program.inputs]
    with np.errstate(all="ignore"):
        values = [np.broadcast_to(sample, (ALIKE,)) for sample in run(program, columns, functions_of("numpy"))]
    groups: dict[tuple[str, ...], list[int]] = {}
    for k, sample in enumerate(values):
        known = np.isfinite(sample).all()  # what cannot be told there is no other number
        groups.setdefault(tuple(format(x, DIGITS) for x in sample) if known else (str(k),), []).append(k)
    return list(groups.values()), np.stack([values[own[0]] for own in groups.values()], axis=1)
