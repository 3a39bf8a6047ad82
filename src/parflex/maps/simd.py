"""SIMD lanes: states of lanes and calls of compiled programs.

The state of lanes is an array of rows, one number per lane. The length of a row is a constant of the compiler, so
common work is vectorised.

Compiled loops over lanes call programs for several poses at once. They set the control word of arithmetic so that
denormal numbers count as zero: arithmetic on these is a hundred times slower.
"""

from __future__ import annotations

import math

import llvmlite.binding as llvm
import numpy as np

from parflex.codegen.llvm_jit import Kernel, aligned_zeros, host_target
from parflex.codegen.llvm_lines import Lines
from parflex.codegen.loop_compiler import Native, unrolled_range
from parflex.codegen.loop_functions import ProgramCall, compiled, inner
from parflex.codegen.loop_types import CompiledRecord

Array = np.ndarray

INFINITE, NONE = math.inf, math.nan

LANES = host_target()[-1]

# whole numbers of a lane; the last ones are of its last step: modes below its shift, the mode next to its quotient,
# whether that one is asked for and missing, and what is left to do
POSE, MODE, STEP, SINCE, TASK, LAST, LOOKED_AT, AGAIN, NUMBER, READY, COUNT, NEAR, OPEN, LEFT, WHOLES = range(15)

SEARCH, PROVE, IDLE, LOOK = range(4)  # its tasks

NOTHING, CLAIM, DECIDE = range(3)  # what is left

# its numbers: its shift, below which inner nodes have no mode, the shift of its b, and two that see above; then those
# of its last step: its shift as an end of intervals, the interval of the mode that it looks for, and of the one next to
# its quotient, with where the modes below and above that one are or are expected
SHIFT, POLE, BEFORE, WIDE, FREE, UPPER, LOWER, OWN_LOW, OWN_HIGH, NEAR_LOW, NEAR_HIGH, BELOW, ABOVE, REALS = range(14)

# of a mode of a lane: ends of its interval, what was found and expected, and its claim: its shift, 1 / w.N w, shift of
# its b, how far a mode is at most, and whether counts pinned it
LOW, HIGH, FOUND, WARM, AT, WEIGHT, CAME, RADIUS, PINNED, FIELDS = range(10)

SIGNS, OFF, LENGTH, INNER, TWIST = range(5)  # rows of outputs of a step

USUAL, FLUSHED = 0x1F80, 0x9FC0  # control words of x86: as every process starts, and with both kinds of flushing

KNOWN = llvm.get_process_triple().startswith("x86_64")


class LaneStates(CompiledRecord):
    """Lanes on their way through modes and poses."""

    modes: int
    unknowns: int  # whose signs are counted
    free: int  # motions without stiffness
    turn: float  # angle by which a shape may be off
    share: float  # of what the last modes of a lane were off their guesses, which is expected again
    size: int  # of b
    which: Array  # poses, in their order
    changes: Array  # poses x modes: expected modes are over these
    x: Array  # rows of inputs of a step: s, b, entries of the pose
    y: Array  # rows of its outputs: signs, off, weight, inner, twist, b
    whole: Array  # rows of whole numbers
    numbers: Array  # rows of numbers
    known: Array  # rows of what is known of the modes one to m + 1, all fields of one behind the other
    kept: Array  # lanes x modes + 1 x size: vectors to start from
    found: Array  # poses x modes: squared frequencies
    twists: Array  # poses x modes x components, of the platform
    flags: Array  # poses: whether they are proved, and have modes that are close


@inner
def lane_index(row: int, lane: int) -> int:
    """Where a row has the number of a lane."""
    return row * LANES + lane


@inner
def mode_index(mode: int, field: int, lane: int) -> int:
    """Where a field of a mode stands."""
    return (mode * FIELDS + field) * LANES + lane


class _ControlWord(Native):
    """`control_word(word)` in a loop: set the control word of this thread; nothing happens on other processors."""

    @staticmethod
    def llvm(b: Lines, arguments: list[str]) -> None:
        """Lines of the setting."""
        if KNOWN:
            b.declared.add("declare void @llvm.x86.sse.ldmxcsr(ptr)")
            slot = b.new("alloca i32")
            b.lines.append(f"  store i32 {b.new(f'trunc i64 {arguments[0]} to i32')}, ptr {slot}")
            b.call("@llvm.x86.sse.ldmxcsr", f"ptr {slot}")


call_lanes, control_word = ProgramCall(), _ControlWord()


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


def lane_buffers(kernel: Kernel, side: int = 1) -> tuple[Array, Array, Array, Array]:
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
    x, y, _, places = lane_buffers(kernel)
    fill_rows(kernel.address("lanes_in"), places, *inputs, q, poses, values, designs, x, y, rows)


def column_rows(kernel: Kernel, columns: Array, q: Array, rows: Array) -> None:
    """Outputs of a program into `rows`, one for each row of `q`, of which it takes these columns."""
    nothing, count = np.zeros(0, dtype=np.int64), len(q)
    inputs = np.arange(len(columns)), columns.astype(np.int64, copy=False), nothing, nothing
    pose_rows(kernel, inputs, q, np.arange(count), np.zeros((1, 1)), np.zeros(count, dtype=np.int64), rows)
