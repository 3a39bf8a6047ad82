"""Machine code around a compiled Newton step: lanes that each go their own way through rows of positions."""

from __future__ import annotations

import numpy as np

from parflex.codegen.compile import Kernel
from parflex.maps.engine.lane_calls import call_lanes
from parflex.simulation.integrators.jit import compiled, inner

Array = np.ndarray
ROW, STEP = range(2)  # whole numbers of a lane


@inner
def take_row(lane: int, row: int, whole: Array, rows: Array, x: Array) -> None:
    """Give a lane a row."""
    whole[lane, ROW], whole[lane, STEP] = row, 0
    for k in range(rows.shape[1]):
        x[k, lane] = rows[row, k]


@compiled
def close_lanes(
    address: int,
    places: Array,
    steps: int,
    polish: float,
    moving: Array,
    x: Array,
    y: Array,
    whole: Array,
    rows: Array,
) -> int:
    """Newton on all rows, in place; a row that has an opening below `polish` takes one more step. Steps taken."""
    lanes, count, moved, total = x.shape[1], len(rows), len(moving), 0
    following, going = 0, 0
    for lane in range(lanes):
        take_row(lane, min(following, count - 1), whole, rows, x)
        if following >= count:
            whole[lane, ROW] = -1
        else:
            going += 1
        following += 1
    while going > 0:
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(lanes):
            row = whole[lane, ROW]
            if row < 0:
                continue
            total += 1
            usual = True
            for k in range(moved):
                if not abs(y[k, lane]) < 1e300:
                    usual = False
            if usual:
                for k in range(moved):
                    x[moving[k], lane] = y[k, lane]
                    rows[row, moving[k]] = y[k, lane]
                whole[lane, STEP] += 1
                if whole[lane, STEP] < steps and not y[moved, lane] < polish * polish:
                    continue
            if following < count:
                take_row(lane, following, whole, rows, x)
                following += 1
            else:
                whole[lane, ROW] = -1
                going -= 1
    return total


def close_rows(kernel: Kernel, rows: Array, moving: Array, steps: int, polish: float) -> int:
    """Newton on rows of inputs, in place, by the machine code of a step: new positions first, then squared openings."""
    program, lanes = kernel.program, kernel.lanes
    if not len(rows):
        return 0
    x, y, work = np.zeros((len(program.inputs), lanes)), np.zeros((len(program.outputs), lanes)), kernel.workspace()
    places = np.array([array.ctypes.data for array in (x, y, work)], dtype=np.int64)
    whole = np.zeros((lanes, 2), dtype=np.int64)
    return close_lanes(kernel.address("many_in"), places, steps, polish, moving.astype(np.int64), x, y, whole, rows)
