"""Machine code around the compiled program of a pose: what steps take of each pose, in rows."""

from __future__ import annotations

import numpy as np

from parflex.codegen.llvm_jit import Kernel, aligned_zeros
from parflex.codegen.loop_compiler import unrolled_range
from parflex.codegen.loop_functions import compiled
from parflex.maps.lanes.lane_calls import call_lanes

Array = np.ndarray


@compiled
def fill_rows(
    address: int,
    places: Array,
    placed: Array,
    positions: Array,
    varied: Array,
    numbers: Array,
    q: Array,
    poses: Array,
    values: Array,
    designs: Array,
    x: Array,
    y: Array,
    rows: Array,
) -> int:
    """Outputs of a program into `rows`, one for each of `poses`; positions and numbers of designs are its inputs."""
    lanes, count = x.shape[1], len(poses)
    start = 0
    while start < count:
        for lane in range(lanes):
            row = poses[min(start + lane, count - 1)]
            for k in range(len(placed)):
                x[placed[k], lane] = q[row, positions[k]]
            design = designs[row]
            for k in range(len(varied)):
                x[varied[k], lane] = values[design, numbers[k]]
        call_lanes(address, places[0], places[1], lanes, places[2])
        for lane in range(min(lanes, count - start)):
            for k in unrolled_range(rows.shape[1]):
                rows[start + lane, k] = y[k, lane]
        start += lanes
    return count


def buffers_of(kernel: Kernel, side: int = 1) -> tuple[Array, Array, Array, Array]:
    """Inputs, outputs and workspace of a program for all lanes, and where these begin.

    Outputs of as many calls as `side` says lie one behind the other.
    """
    program, lanes = kernel.program, kernel.lanes
    x, y = aligned_zeros((len(program.inputs), lanes)), aligned_zeros((side * len(program.outputs), lanes))
    work = kernel.workspace("lanes")
    return x, y, work, np.array([array.ctypes.data for array in (x, y, work)], dtype=np.int64)


def pose_rows(
    kernel: Kernel,
    inputs: tuple[Array, ...],
    q: Array,
    poses: Array,
    values: Array,
    designs: Array,
    rows: Array,
) -> None:
    """Outputs of the program of a pose into `rows`, one for each of `poses`.

    `inputs`: which inputs of the program are positions and which these are, which are numbers of the design and which
    these are. `values` are designs x numbers, `designs` says which one each row of `q` has.
    """
    if not len(poses):
        return
    x, y, _, places = buffers_of(kernel)
    fill_rows(kernel.address("lanes_in"), places, *inputs, q, poses, values, designs, x, y, rows)


def column_rows(kernel: Kernel, columns: Array, q: Array, rows: Array) -> None:
    """Outputs of a program into `rows`, one for each row of `q`, of which it takes these columns."""
    nothing, count = np.zeros(0, dtype=np.int64), len(q)
    inputs = np.arange(len(columns)), columns.astype(np.int64, copy=False), nothing, nothing
    pose_rows(kernel, inputs, q, np.arange(count), np.zeros((1, 1)), np.zeros(count, dtype=np.int64), rows)
