"""Machine code around the compiled program of the numbers of designs: numbers in rows, and which rows are odd.

A row is odd where a number is not finite, or lies on the other side of zero than in the nominal design.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parflex.codegen.compile import Kernel, side_by_side
from parflex.maps.engine.lane_calls import call_lanes
from parflex.simulation.integrators.jit import compiled

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


@compiled
def fill_numbers(
    address: int,
    places: Array,
    columns: Array,
    limits: Array,
    wanted: Array,
    x: Array,
    y: Array,
    values: Array,
    odd: Array,
) -> int:
    """The first outputs of a program into `values`, rows of `columns` being its inputs; rows that are odd.

    The next outputs must lie between `limits` where they are `wanted` to, and outside elsewhere.
    """
    lanes, count, size = x.shape[1], len(columns), values.shape[1]
    start = 0
    while start < count:
        for lane in range(lanes):
            row = min(start + lane, count - 1)
            for k in range(columns.shape[1]):
                x[k, lane] = columns[row, k]
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(min(lanes, count - start)):
            row, rest, others = start + lane, 0.0, 0
            for k in range(len(y)):
                rest += 0.0 * y[k, lane]  # not a number where one is not finite
            for k in range(size):
                values[row, k] = y[k, lane]
            for k in range(len(wanted)):
                own = y[size + k, lane]
                others += 1 if (limits[k, 0] <= own and own <= limits[k, 1]) != (wanted[k] > 0) else 0
            odd[row] = 1 if others > 0 or rest != rest else 0
        start += lanes
    return count


def number_rows(
    kernel: Kernel, columns: Array, compared: Sequence[tuple[str, bool]], values: Array, alone: Array
) -> None:
    """Numbers of designs by machine code into `values`, and in `alone` which designs are odd.

    `compared` says of the outputs behind the numbers how each was compared with zero, and the nominal answer.
    """
    if not len(columns):
        return
    program, lanes = kernel.program, kernel.lanes
    limits = np.array([BETWEEN[how][:2] for how, _ in compared]).reshape(-1, 2)
    wanted = np.array([BETWEEN[how][2] == answer for how, answer in compared], dtype=np.int64)
    x, y = side_by_side((len(program.inputs), lanes)), side_by_side((len(program.outputs), lanes))
    work, odd = kernel.workspace("lanes"), np.zeros(len(columns), dtype=np.int64)
    places = np.array([array.ctypes.data for array in (x, y, work)], dtype=np.int64)
    given = np.ascontiguousarray(columns)
    fill_numbers(kernel.address("lanes_in"), places, given, limits, wanted, x, y, values, odd)
    alone |= odd > 0
