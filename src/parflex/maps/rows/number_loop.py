"""Machine code around the compiled program of the numbers of designs: numbers in rows, and which rows are odd.

A row is odd where a number is not finite, or lies on the other side of zero than in the nominal design.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.codegen.llvm_jit import Kernel
from parflex.codegen.loop_compiler import simd_range
from parflex.codegen.loop_functions import compiled, inner
from parflex.maps.engine.entry_loop import buffers_of
from parflex.maps.lanes.lane_calls import call_lanes
from parflex.maps.lanes.lane_states import LANES, NONE

Array = np.ndarray
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
    wanted: Array,
    x: Array,
    y: Array,
    rest: Array,
    odd: Array,
) -> None:
    """Rows that are odd.

    Outputs behind the first `size` must lie between `limits` where they are `wanted` to, and outside elsewhere.
    """
    lanes, count = x.shape[1], len(keys)
    for start in range(0, count, lanes):
        put_keys(start, keys, x)
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in simd_range(LANES):
            rest[lane] = 0.0
        for k in range(len(y)):
            for lane in simd_range(LANES):
                rest[lane] += 0.0 * y[k, lane]  # not a number where one is not finite
        for k in range(len(wanted)):
            low, high, inside = limits[k, 0], limits[k, 1], wanted[k] > 0
            for lane in simd_range(LANES):
                own = y[size + k, lane]
                rest[lane] += 0.0 if (low <= own and own <= high) == inside else NONE
        for lane in range(min(lanes, count - start)):
            odd[start + lane] = 1 if rest[lane] != rest[lane] else 0


def number_rows(kernel: Kernel, keys: Array, taken: Array, values: Array) -> None:
    """Some numbers of designs by machine code into rows of `values`."""
    if len(keys) and len(taken):
        x, y, _, places = buffers_of(kernel)
        fill_numbers(kernel.address("lanes_in"), places, keys, taken, x, y, values)


def odd_rows(kernel: Kernel, keys: Array, compared: Sequence[tuple[str, bool]], size: int) -> Array:
    """Which designs are odd.

    `compared` says of the outputs behind the first `size` how each was compared with zero, and the nominal answer.
    """
    odd = np.zeros(len(keys), dtype=np.int64)
    if len(keys):
        limits = np.array([BETWEEN[how][:2] for how, _ in compared]).reshape(-1, 2)
        wanted = np.array([BETWEEN[how][2] == answer for how, answer in compared], dtype=np.int64)
        x, y, _, places = buffers_of(kernel)
        rest = np.empty(kernel.lanes)
        find_odd(kernel.address("lanes_in"), places, keys, size, limits, wanted, x, y, rest, odd)
    return odd > 0
