"""Newton's method of the assembler on rows of positions: whole steps, and a third of one where the opening would rise.

The program of a step gives new positions and the squared opening of where it started. A row begins at its start values,
and ends closed as the assembler has it, or after so many calls. Openings of lengths that just miss are small too.
"""

from __future__ import annotations

import numpy as np

from parflex.closure.assembly.newton import CLOSED
from parflex.codegen.compile import Kernel, side_by_side
from parflex.maps.batches import BatchProgram
from parflex.maps.lanes.lane_calls import call_lanes
from parflex.simulation.integrators.jit import compiled

Array = np.ndarray
CALLS = 64  # of the program for a row: what takes more is left
THIRDS = 12  # times that a step is shortened, as in the assembler
ROW, CALL, SHORTENED = range(3)  # whole numbers of a lane


@compiled
def close_homes(
    address: int,
    places: Array,
    limits: Array,
    inputs: Array,
    moving: Array,
    x: Array,
    y: Array,
    whole: Array,
    base: Array,
    opened: Array,
    q: Array,
    good: Array,
) -> None:
    """Rows of q in place, and which of them are closed. Limits: calls, thirds, whether steps may be shortened."""
    lanes, count, moved = x.shape[1], len(q), len(moving)
    following, going = 0, 0
    for lane in range(lanes):
        row = min(following, count - 1)
        whole[lane, ROW], whole[lane, CALL], whole[lane, SHORTENED] = row if following < count else -1, 0, 0
        for k in range(len(inputs)):
            x[k, lane] = q[row, inputs[k]]
        opened[lane] = 1e300
        going += 1 if following < count else 0
        following += 1
    while going > 0:
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(lanes):
            row = whole[lane, ROW]
            if row < 0:
                continue
            whole[lane, CALL] += 1
            here, ends = y[moved, lane], False
            if here < opened[lane]:
                closes = here < CLOSED * CLOSED
                usual = True
                for k in range(moved):
                    if not abs(y[k, lane]) < 1e300:
                        usual = False
                ends = closes or not usual or whole[lane, CALL] >= limits[0]
                if closes and usual:
                    good[row] = 1
                opened[lane], whole[lane, SHORTENED] = here, 0
                for k in range(moved):
                    base[lane, k] = x[moving[k], lane]
                    x[moving[k], lane] = y[k, lane]
            else:
                whole[lane, SHORTENED] += 1
                ends = whole[lane, SHORTENED] >= limits[1] or whole[lane, CALL] >= limits[0] or limits[2] < 1
                for k in range(moved):
                    x[moving[k], lane] = base[lane, k] + (x[moving[k], lane] - base[lane, k]) / 3.0
            if not ends:
                continue
            for k in range(moved):
                q[row, inputs[moving[k]]] = x[moving[k], lane]
            if following < count:
                whole[lane, ROW], whole[lane, CALL], whole[lane, SHORTENED] = following, 0, 0
                for k in range(len(inputs)):
                    x[k, lane] = q[following, inputs[k]]
                opened[lane] = 1e300
                following += 1
            else:
                whole[lane, ROW] = -1
                going -= 1


def closed_homes(program: BatchProgram, q: Array, inputs: Array, moving: Array, plain: bool) -> Array:
    """Rows of positions in place, and which are closed; steps are shortened where `plain` positions are their sums."""
    kernel = program.kernel(len(q))
    if kernel is not None:
        return _by_lanes(kernel, q, inputs, moving, plain)
    x, moved = q[:, inputs], len(moving)
    base, opened = x[:, moving].copy(), np.full(len(q), 1e300)
    shortened, good, active = np.zeros(len(q), dtype=int), np.zeros(len(q), dtype=bool), np.arange(len(q))
    with np.errstate(all="ignore"):
        for _ in range(CALLS):
            found = program(x[active])
            new, here = found[:, :moved], found[:, moved]
            falls = here < opened[active]
            usual = np.isfinite(new).all(axis=1)
            down, up = active[falls & usual], active[~falls]
            good[down] = here[falls & usual] < CLOSED**2
            base[down], opened[down], shortened[down] = x[down][:, moving], here[falls & usual], 0
            x[down[:, None], moving] = new[falls & usual]
            shortened[up] += 1
            x[up[:, None], moving] = base[up] + (x[up][:, moving] - base[up]) / 3
            left = np.concatenate([down[~good[down]], up[(shortened[up] < THIRDS) & plain]])
            active = np.sort(left)
            if not len(active):
                break
    q[:, inputs] = x
    return good


def _by_lanes(kernel: Kernel, q: Array, inputs: Array, moving: Array, plain: bool) -> Array:
    program, lanes = kernel.program, kernel.lanes
    good = np.zeros(len(q), dtype=np.int64)
    if not len(q):
        return good > 0
    x, y = side_by_side((len(program.inputs), lanes)), side_by_side((len(program.outputs), lanes))
    work = kernel.workspace("lanes")
    places = np.array([array.ctypes.data for array in (x, y, work)], dtype=np.int64)
    limits = np.array([CALLS, THIRDS, int(plain)], dtype=np.int64)
    state = np.zeros((lanes, 3), dtype=np.int64), np.zeros((lanes, len(moving))), np.zeros(lanes)
    columns = inputs.astype(np.int64), moving.astype(np.int64)
    close_homes(kernel.address("lanes_in"), places, limits, *columns, x, y, *state, q, good)
    return good > 0
