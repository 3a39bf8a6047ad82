"""Machine code around the eliminations of a block: counts on a grid, then one root after the other.

The compiled elimination takes several poses side by side, its lanes. Each lane goes its own way: it has a pose, the
number of a mode, and an interval that holds it; when the modes of its pose are done, it takes the next pose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parflex.simulation.integrators.numba_loops import allocating, call_lanes

Array = np.ndarray
STEPS = 60  # evaluations for a root: bisection alone needs thirty
TRY = 1e-6  # relative step from which the next one is expected within rounding, and the proof is tried
SEARCH, BELOW, ABOVE, IDLE = range(4)  # what a lane is at
POSE, MODE, NUMBER, AT, LAST, COUNT, LOWER, UPPER = range(8)  # whole numbers of a lane
A, B, FA, FB, X, GUESS = range(6)  # numbers of a lane


@allocating
def load(rows: Array, where: Array, pose: int, x: Array, lane: int) -> None:
    """Put the entries of a pose into a lane."""
    for k in range(len(where)):
        x[k + 1, lane] = rows[pose, where[k]]


@allocating
def below(y: Array, size: int, lane: int) -> int:
    """Number of modes below, from the sum of the signs of the pivots."""
    return int(0.5 * (size - y[0, lane]) + 0.25)


@allocating
def grid(program: Any, rows: Array, points: Array, numbers: Array, values: Array) -> None:
    """Counts and determinants (poses x points) at the same values of x for all poses."""
    address, work, where, size, x, y = program
    lanes, count = x.shape[1], len(rows)
    for first in range(0, count, lanes):
        for lane in range(lanes):
            load(rows, where, min(first + lane, count - 1), x, lane)
        for k in range(len(points)):
            for lane in range(lanes):
                x[0, lane] = points[k]
            call_lanes(address, x.ctypes.data, y.ctypes.data, lanes, work.ctypes.data)  # type: ignore[call-arg]
            for lane in range(min(lanes, count - first)):
                numbers[first + lane, k], values[first + lane, k] = below(y, size, lane), y[1, lane]


@allocating
def begin(state: Array, real: Array, lane: int, points: Array, numbers: Array, values: Array, limit: Array) -> bool:
    """Give a lane the interval of its mode; False if it has no such mode below the limit."""
    pose, mode = state[lane, POSE], state[lane, MODE]
    upper, last = 1, len(points) - 1
    while upper < last and numbers[pose, upper] <= mode:
        upper += 1
    if numbers[pose, upper] <= mode or points[upper - 1] > limit[pose]:
        return False
    real[lane, A], real[lane, B] = points[upper - 1], points[upper]
    real[lane, FA], real[lane, FB] = values[pose, upper - 1], values[pose, upper]
    state[lane, LOWER], state[lane, UPPER] = numbers[pose, upper - 1], numbers[pose, upper]
    state[lane, AT], state[lane, LAST], state[lane, COUNT] = SEARCH, -1, 0
    real[lane, X] = 0.0
    return True


@allocating
def straight(state: Array, real: Array, lane: int) -> float:
    """Where a line through the ends is zero, or the middle while the mode does not stand alone."""
    a, b, fa, fb = real[lane, A], real[lane, B], real[lane, FA], real[lane, FB]
    if state[lane, LOWER] == state[lane, MODE] and state[lane, UPPER] == state[lane, MODE] + 1:
        step = (a * fb - b * fa) / (fb - fa)
        if a < step < b:
            return step
    return 0.5 * (a + b)


@allocating
def propose(state: Array, real: Array, lane: int, accurate: float) -> float:
    """The value of x that a lane tries next: false position, or either side of a root to be proved."""
    if state[lane, AT] == SEARCH:
        new = straight(state, real, lane)
        if abs(new - real[lane, X]) <= TRY * new or real[lane, B] - real[lane, A] <= accurate * new:
            state[lane, AT], real[lane, GUESS] = BELOW, new
        real[lane, X] = new
    if state[lane, AT] == BELOW:
        return real[lane, GUESS] * (1 - accurate)
    if state[lane, AT] == ABOVE:
        return real[lane, GUESS] * (1 + accurate)
    return real[lane, X]


@allocating
def narrow(state: Array, real: Array, lane: int, x: float, number: int, f: float) -> None:
    """Move an end of the interval; of an end that stays again, the value is lessened as by Anderson and Bjoerck."""
    over = number > state[lane, MODE]
    own, other = (FB, FA) if over else (FA, FB)
    if state[lane, LAST] == over:
        share = 1 - f / real[lane, own]
        real[lane, other] *= share if share > 0 else 0.5
    state[lane, LAST] = over
    real[lane, own] = f
    if over:
        real[lane, B], state[lane, UPPER] = x, number
    else:
        real[lane, A], state[lane, LOWER] = x, number


@allocating
def absorb(state: Array, real: Array, lane: int, x: float, number: int, f: float) -> int:
    """Take in a count: 1 when the mode is proved, -1 when it is given up, 0 to go on."""
    state[lane, COUNT] += 1
    over = number > state[lane, MODE]
    expected = over == (state[lane, AT] == ABOVE)
    if real[lane, A] < x < real[lane, B]:
        if state[lane, AT] != SEARCH:
            state[lane, LAST] = -1  # steps to prove a root are too short to judge the other end by them
        narrow(state, real, lane, x, number, f)
    if state[lane, AT] == ABOVE and expected:
        return 1
    if state[lane, AT] == BELOW and expected:
        state[lane, AT] = ABOVE
    elif state[lane, AT] != SEARCH:
        state[lane, AT] = SEARCH
    return -1 if state[lane, COUNT] >= STEPS else 0


@allocating
def next_task(
    state: Array,
    real: Array,
    lane: int,
    points: Array,
    numbers: Array,
    values: Array,
    limit: Array,
    modes: int,
    left: int,
) -> int:
    """Give a lane its next mode, or the next pose that has one; returns the first pose that is left."""
    while True:
        if state[lane, AT] != IDLE:
            state[lane, MODE] += 1
            if state[lane, MODE] < modes and begin(state, real, lane, points, numbers, values, limit):
                return left
        if left == len(numbers):
            state[lane, AT] = IDLE
            return left
        state[lane, POSE], state[lane, MODE], state[lane, AT] = left, -1, SEARCH
        left += 1


@allocating
def roots(
    program: Any, rows: Array, points: Array, numbers: Array, values: Array, limit: Array, accurate: float, found: Array
) -> int:
    """The modes below the limit into `found` (poses x modes), not a number where one was not proved; evaluations."""
    address, work, where, size, x, y = program
    lanes, left, total = x.shape[1], 0, 0
    state, real = np.zeros((lanes, 8), dtype=np.int64), np.zeros((lanes, 6))
    inputs, outputs, work_place = x.ctypes.data, y.ctypes.data, work.ctypes.data
    for lane in range(lanes):
        state[lane, AT], state[lane, POSE] = IDLE, -1
        left = next_task(state, real, lane, points, numbers, values, limit, found.shape[1], left)
        load(rows, where, max(state[lane, POSE], 0), x, lane)
    while True:
        active = 0
        for lane in range(lanes):
            x[0, lane] = points[-1]
            if state[lane, AT] != IDLE:
                active += 1
                x[0, lane] = propose(state, real, lane, accurate)
        if not active:
            return total
        total += active
        call_lanes(address, inputs, outputs, lanes, work_place)  # type: ignore[call-arg]
        for lane in range(lanes):
            if state[lane, AT] == IDLE:
                continue
            end = absorb(state, real, lane, x[0, lane], below(y, size, lane), y[1, lane])
            if end == 0:
                continue
            pose = state[lane, POSE]
            found[pose, state[lane, MODE]] = straight(state, real, lane) if end > 0 else np.nan
            left = next_task(state, real, lane, points, numbers, values, limit, found.shape[1], left)
            if state[lane, POSE] != pose and state[lane, AT] != IDLE:
                load(rows, where, state[lane, POSE], x, lane)


@allocating
def null_vectors(
    program: Any, rows: Array, poses: Array, at: Array, start: Array, rounds: int, vectors: Array, off: Array
) -> None:
    """Mass-normalised shapes of modes by inverse iteration; how far each root is off, and how much it still turned."""
    address, work, where, size, x, y = program
    lanes, count, first_b = x.shape[1], len(at), 1 + len(where)
    for first in range(0, count, lanes):
        for lane in range(lanes):
            task = min(first + lane, count - 1)
            load(rows, where, poses[task], x, lane)
            x[0, lane] = at[task]
            for k in range(size):
                x[first_b + k, lane] = start[k]
        for _ in range(rounds):
            call_lanes(address, x.ctypes.data, y.ctypes.data, lanes, work.ctypes.data)  # type: ignore[call-arg]
            for lane in range(lanes):
                mass, along = 0.0, 0.0
                for k in range(size):
                    mass += y[k, lane] * y[size + k, lane]
                    along += y[k, lane] * x[first_b + k, lane]
                length = np.sqrt(abs(mass))
                for k in range(size):
                    x[first_b + k, lane] = y[size + k, lane] / length
                if first + lane < count:
                    off[first + lane, 0] = abs(along) / (abs(mass) * at[first + lane])
                    off[first + lane, 1] = abs(1 - abs(along) / length)
                    for k in range(size):
                        vectors[first + lane, k] = y[k, lane] / length
