"""Machine code around a compiled Newton step: lanes that each go their own way through rows of positions."""

from __future__ import annotations

import numpy as np

from parflex.codegen.compile import Kernel, side_by_side
from parflex.maps.engine.lane_calls import call_lanes
from parflex.simulation.integrators.jit import compiled, inner

Array = np.ndarray
ROW, STEP = range(2)  # whole numbers of a lane; its step is -1 where a row is only judged


@inner
def take_row(lane: int, row: int, steps: int, whole: Array, inputs: Array, q: Array, x: Array) -> None:
    """Give a lane a row."""
    whole[lane, ROW], whole[lane, STEP] = row, 0 if steps > 0 else -1
    for k in range(len(inputs)):
        x[k, lane] = q[row, inputs[k]]


@compiled
def close_lanes(
    address: int,
    places: Array,
    steps: int,
    polish: float,
    inputs: Array,
    moving: Array,
    x: Array,
    y: Array,
    whole: Array,
    todo: Array,
    q: Array,
    judged: Array,
) -> int:
    """Newton on the rows of q that are named in `todo`, in place, then once more to see how they are. Steps taken.

    A row that has an opening below `polish` takes one more step. What the program gives beside new positions is put
    into `judged`, at the positions where the row ends.
    """
    lanes, count, moved, told, total = x.shape[1], len(todo), len(moving), judged.shape[1], 0
    following, going = 0, 0
    for lane in range(lanes):
        take_row(lane, todo[min(following, count - 1)], steps, whole, inputs, q, x)
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
            if whole[lane, STEP] >= 0:
                usual = True
                for k in range(moved):
                    if not abs(y[k, lane]) < 1e300:
                        usual = False
                if usual:
                    for k in range(moved):
                        x[moving[k], lane] = y[k, lane]
                    whole[lane, STEP] += 1
                    if whole[lane, STEP] >= steps or y[moved, lane] < polish * polish:
                        whole[lane, STEP] = -1
                    continue
            for k in range(moved):
                q[row, inputs[moving[k]]] = x[moving[k], lane]
            for k in range(told):
                judged[row, k] = y[moved + k, lane]
            if following < count:
                take_row(lane, todo[following], steps, whole, inputs, q, x)
                following += 1
            else:
                whole[lane, ROW] = -1
                going -= 1
    return total


def close_rows(kernel: Kernel, q: Array, todo: Array, inputs: Array, moving: Array, steps: int, polish: float) -> Array:
    """Newton on rows of positions, in place, by the machine code of a step; gives squared openings, determinants.

    `inputs` are the positions that the program takes, `moving` says which of these move.
    """
    program, lanes = kernel.program, kernel.lanes
    judged = np.full((len(q), len(program.outputs) - len(moving)), np.nan)
    if not len(todo):
        return judged
    x, y = side_by_side((len(program.inputs), lanes)), side_by_side((len(program.outputs), lanes))
    work = kernel.workspace()
    places = np.array([array.ctypes.data for array in (x, y, work)], dtype=np.int64)
    whole = np.zeros((lanes, 2), dtype=np.int64)
    columns = (inputs.astype(np.int64), moving.astype(np.int64))
    rows = todo.astype(np.int64)
    close_lanes(kernel.address("many_in"), places, steps, polish, *columns, x, y, whole, rows, q, judged)
    return judged
