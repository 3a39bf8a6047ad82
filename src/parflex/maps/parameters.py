"""Numbers of many parameter sets by a compiled program.

The file is read once with symbols for its keys, and the program is cached. Rows of keys are its inputs, numbers of the
robot its outputs, together with the decisions of the reading. A row is marked if a number is not finite or a decision
differs from that of the nominal set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parflex.cache import cached
from parflex.codegen import cache
from parflex.codegen.emit_python import functions_of, run
from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.loop_compiler import simd_range
from parflex.codegen.loop_functions import compiled, inner
from parflex.codegen.optimise import make_program
from parflex.maps.kinematics import BatchProgram
from parflex.maps.simd import LANES, NONE, call_lanes, lane_buffers
from parflex.parameters.design_numbers import DesignNumbers, number_at
from parflex.parameters.traced_numbers import TracedFile, same_reading, trace_file
from parflex.records import Record
from parflex.robot.robot import Robot

Array = np.ndarray

ALIKE = 3  # designs in which numbers must agree to be one

DIGITS = ".13e"

LEAST = float(np.nextafter(0.0, 1.0))

# where a comparison with zero holds: between which numbers, or where it does not
BETWEEN = {
    "lt": (-np.inf, -LEAST, True),
    "le": (-np.inf, 0.0, True),
    "gt": (LEAST, np.inf, True),
    "ge": (0.0, np.inf, True),
    "eq": (0.0, 0.0, True),
    "ne": (0.0, 0.0, False),
}


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
            with np.errstate(all="ignore"):  # designs are too few to compile
                outputs = self.batch(columns)
            same = same_reading(self.compared, outputs[:, size : size + len(self.compared)])
            held, alone = outputs[:, :size].copy(), ~(same & np.isfinite(outputs).all(axis=1))
        name, samples = self.name, self.samples
        return DesignNumbers(robot, tuple(keys), self.places, self.nominal, held, alone, name=name, samples=samples)


def numbers_of_designs(robot: Robot, designs: Mapping[str, Array]) -> DesignNumbers:
    """Return what changes in a robot with values of its file, by dotted path, one of each for every design.

    Raises the error of reading the file, or `VariedNumberError`, where what follows from the keys is not traced.
    """
    keys = tuple(designs)
    key = cache.key_of(robot, "design numbers", keys, robot.written)  # formulas may differ in alike robots
    made = cached("design numbers", key, lambda: _made(cache.stored(key, lambda: _traced(robot, keys))))
    columns = np.stack([np.asarray(designs[name], dtype=float) for name in keys], axis=1)
    return made.numbers(robot, keys, columns)


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
    file, nominal_values = trace_file(robot, keys), [number_at(robot, key) for key in keys]
    groups, samples = _alike(file, np.array(nominal_values))
    known = all(nominal_values) and np.isfinite(samples).all()  # nothing says how far a key at zero would have to go
    outputs = {"number": [file.numbers[own[0]].expression for own in groups], **file.checks}
    arrays = {name: np.array(expressions, dtype=object) for name, expressions in outputs.items() if len(expressions)}
    return {
        "program": cache.program_to_plain(make_program(file.graph, "numbers", arrays, quick=True)),
        "places": [[place for k in own for place in file.places[k]] for own in groups],
        "compared": [list(check) for check in file.compared],
        "nominal": [file.numbers[own[0]].nominal for own in groups],
        "samples": samples.tolist() if known else None,
    }


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


@inner
def put_keys(start: int, keys: Array, x: Array) -> None:
    """Keys of some designs side by side; behind the last one it is there again."""
    for lane in range(x.shape[1]):
        row = min(start + lane, len(keys) - 1)
        for k in range(keys.shape[1]):
            x[k, lane] = keys[row, k]


@compiled
def fill_numbers(address: int, places: Array, keys: Array, taken: Array, x: Array, y: Array, values: Array) -> None:
    """Some outputs of a program into rows of `values`, rows of keys being its inputs."""
    lanes, count = x.shape[1], len(keys)
    for start in range(0, count, lanes):
        put_keys(start, keys, x)
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(min(lanes, count - start)):
            for k in range(len(taken)):
                values[start + lane, k] = y[taken[k], lane]


@compiled
def find_odd(
    address: int,
    places: Array,
    keys: Array,
    size: int,
    limits: Array,
    expected: Array,
    x: Array,
    y: Array,
    check: Array,
    odd: Array,
) -> None:
    """Rows that are odd.

    Outputs behind the first `size` must lie between `limits` where they are `expected` to, and outside elsewhere.
    """
    lanes, count = x.shape[1], len(keys)
    for start in range(0, count, lanes):
        put_keys(start, keys, x)
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in simd_range(LANES):
            check[lane] = 0.0
        for k in range(len(y)):
            for lane in simd_range(LANES):
                check[lane] += 0.0 * y[k, lane]  # not a number where one is not finite
        for k in range(len(expected)):
            low, high, inside = limits[k, 0], limits[k, 1], expected[k] > 0
            for lane in simd_range(LANES):
                value = y[size + k, lane]
                check[lane] += 0.0 if (low <= value and value <= high) == inside else NONE
        for lane in range(min(lanes, count - start)):
            odd[start + lane] = 1 if check[lane] != check[lane] else 0


def number_rows(kernel: Kernel, keys: Array, taken: Array, values: Array) -> None:
    """Some numbers of designs by machine code into rows of `values`."""
    if len(keys) and len(taken):
        x, y, _, places = lane_buffers(kernel)
        fill_numbers(kernel.address("lanes_in"), places, keys, taken, x, y, values)


def odd_rows(kernel: Kernel, keys: Array, compared: Sequence[tuple[str, bool]], size: int) -> Array:
    """Which designs are odd.

    `compared` says of the outputs behind the first `size` how each was compared with zero, and the nominal answer.
    """
    odd = np.zeros(len(keys), dtype=np.int64)
    if len(keys):
        limits = np.array([BETWEEN[how][:2] for how, _ in compared]).reshape(-1, 2)
        expected = np.array([BETWEEN[how][2] == answer for how, answer in compared], dtype=np.int64)
        x, y, _, places = lane_buffers(kernel)
        check = np.empty(kernel.lanes)
        find_odd(kernel.address("lanes_in"), places, keys, size, limits, expected, x, y, check, odd)
    return odd > 0
