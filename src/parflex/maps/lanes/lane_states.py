"""What lanes know: rows of numbers, one of each lane side by side, and where these stand.

Rows are as long as the compiler knows, so that what all lanes do alike is done by vectors of them.
"""

from __future__ import annotations

import math

import numpy as np

from parflex.codegen.llvm_jit import host_target
from parflex.codegen.loop_functions import inner
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
def at(row: int, lane: int) -> int:
    """Where a row has the number of a lane."""
    return row * LANES + lane


@inner
def of(mode: int, field: int, lane: int) -> int:
    """Where a field of a mode stands."""
    return (mode * FIELDS + field) * LANES + lane
