"""Newton's method of the assembler on rows of positions: whole steps, or a third of one if the residual would rise.

The program of a step gives new positions and the squared loop residual of its start. A row begins at its start values
and ends closed, as in the assembler, or after a fixed number of calls. Small residuals may also belong to lengths that
just miss each other.

Most homes of parameter sets lie on the side of home of the file. `prove_homes` checks this without a row of positions
in memory, in as many lanes as the processor has, with the same steps from the same starts. Sets that it does not prove
are followed one by one.
"""

from __future__ import annotations

import math

import numpy as np

from parflex.closure.newton import CLOSED
from parflex.codegen.llvm_jit import Kernel, aligned_zeros
from parflex.codegen.loop_compiler import simd_range
from parflex.codegen.loop_functions import compiled, inner
from parflex.codegen.loop_types import CompiledRecord
from parflex.maps.kinematics import BatchProgram
from parflex.maps.simd import LANES, call_lanes, lane_buffers

Array = np.ndarray
CALLS = 64  # of the program for a row: what takes more is left
THIRDS = 12  # times that a step is shortened, as in the assembler
ROW, CALL, SHORTENED = range(3)  # whole numbers of a lane
MOST = 16  # steps of rows side by side: those that take more are followed one by one
NEARLY = math.sqrt(CLOSED)  # opening before a step that closes as a rule: whether it did is checked
CLEAR = 1e-9  # of a turn: as near to the border between its signs a joint is not told
OPENED, GOOD, FAR, WENT, WORK = range(5)  # numbers of a lane where rows are side by side


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


class HomeProof(CompiledRecord):
    """What proves that homes stand as that of the file. Columns are those of rows of positions and numbers."""

    starts: Array  # of columns that move
    moved: Array  # these columns
    numbers: Array  # columns of numbers of designs
    inputs: Array  # columns that a step takes
    moving: Array  # which of these move
    taken: Array  # columns that the judge takes
    signs: Array  # of what it tells behind the opening
    near: Array  # columns that must be
    home: Array  # near these values,
    within: Array  # no farther than this
    asked: Array  # columns of joints whose sign is asked for,
    wanted: Array  # which one: -1 or 1,
    turning: Array  # and whether it is that of the sine
    motors: Array  # columns of motors that the file starts,
    motor_units: Array  # one over their units,
    motor_parts: Array  # and their parts
    movers: Array  # columns that move,
    mover_units: Array
    mover_parts: Array
    mover_homes: Array  # and where they are at home
    left: float  # where motors may be whatever other assemblies there are
    away: Array  # of each part: how far motors are in the nearest of its other assemblies; below zero where unknown
    alike: float  # times its motion: how far another assembly of a part moves, at most
    nearer: float  # share of its distance from where another one is chosen


@inner
def step_lanes(address: int, places: Array, proof: HomeProof, x: Array, y: Array, state: Array) -> int:
    """One step of all lanes; how many of those that fell until now have still far to go."""
    call_lanes(address, places[0], places[1], LANES, places[2])
    moving = proof.moving
    last = len(moving)
    for lane in simd_range(LANES):
        here, before = y[last, lane], state[OPENED, lane]
        falls = here < before or before < CLOSED * CLOSED  # below that it is rounding
        state[GOOD, lane] = state[GOOD, lane] if falls else 0.0
        state[OPENED, lane] = here
    for k in range(last):
        to = moving[k]
        for lane in simd_range(LANES):
            x[to, lane] = y[k, lane]
    left = 0
    for lane in range(LANES):
        if state[GOOD, lane] > 0.0 and not state[OPENED, lane] < NEARLY * NEARLY:
            left += 1
    return left


@inner
def judge_lanes(
    address: int, places: Array, proof: HomeProof, x: Array, rows: Array, given: Array, told: Array, state: Array
) -> int:
    """What is told of positions where they are; how many lanes that fell are not closed."""
    moving, moved, taken = proof.moving, proof.moved, proof.taken
    for k in range(len(moving)):
        to, own = moved[k], moving[k]
        for lane in simd_range(LANES):
            rows[to, lane] = x[own, lane]
    for k in range(len(taken)):
        own = taken[k]
        for lane in simd_range(LANES):
            given[k, lane] = rows[own, lane]
    call_lanes(address, places[0], places[1], LANES, places[2])
    left = 0
    for lane in range(LANES):
        if state[GOOD, lane] > 0.0 and not told[0, lane] < CLOSED * CLOSED:
            left += 1
    return left


@inner
def put_sides(proof: HomeProof, rows: Array, told: Array, state: Array) -> None:
    """Which lanes are closed, on the sides of the file's home and near it, with the signs that are asked for."""
    signs, near, home, within, asked = proof.signs, proof.near, proof.home, proof.within, proof.asked
    for lane in simd_range(LANES):
        state[GOOD, lane] = state[GOOD, lane] if told[0, lane] < CLOSED * CLOSED else 0.0
    for k in range(len(signs)):
        sign = signs[k]
        for lane in simd_range(LANES):
            state[GOOD, lane] = state[GOOD, lane] if sign * told[1 + k, lane] > 0.0 else 0.0
    for k in range(len(near)):
        own, here, far = near[k], home[k], within[k]
        for lane in simd_range(LANES):
            state[GOOD, lane] = state[GOOD, lane] if abs(rows[own, lane] - here) <= far else 0.0
    for k in range(len(asked)):
        own, sign, turns = asked[k], proof.wanted[k], proof.turning[k] > 0
        for lane in range(LANES):
            value = rows[own, lane]
            share = value / (2.0 * math.pi) - math.floor(value / (2.0 * math.pi))  # of a turn
            sine = min(min(share, 1.0 - share), abs(share - 0.5)) - CLEAR
            sine = sine if share < 0.5 else -sine
            state[GOOD, lane] = state[GOOD, lane] if (sine if turns else value) * sign > 0.0 else 0.0


@inner
def put_motors(proof: HomeProof, rows: Array, begun: Array, state: Array) -> None:
    """In which lanes motors are near to their starts, or other assemblies have them farther from there."""
    motors, parts, units, away = proof.motors, proof.motor_parts, proof.motor_units, proof.away
    movers, mover_parts, mover_units, homes = proof.movers, proof.mover_parts, proof.mover_units, proof.mover_homes
    left, nearer, alike = proof.left, proof.nearer, proof.alike
    for part in range(len(away)):
        for lane in simd_range(LANES):
            state[FAR, lane], state[WENT, lane] = 0.0, 0.0
        for k in range(len(motors)):
            own, unit = motors[k], units[k]
            if parts[k] == part:
                for lane in simd_range(LANES):
                    state[FAR, lane] = max(state[FAR, lane], abs(rows[own, lane] - begun[k, lane]) * unit)
        for k in range(len(movers)):
            own, unit, home = movers[k], mover_units[k], homes[k]
            if mover_parts[k] == part:
                for lane in simd_range(LANES):
                    state[WENT, lane] = max(state[WENT, lane], abs(rows[own, lane] - home) * unit)
        limit = away[part]
        for lane in simd_range(LANES):
            far = state[FAR, lane]
            fits = far < left or nearer * far + alike * state[WENT, lane] < limit
            state[GOOD, lane] = state[GOOD, lane] if fits else 0.0


@compiled
def prove_homes(
    addresses: Array,
    places: Array,
    judged: Array,
    proof: HomeProof,
    designs: Array,
    x: Array,
    y: Array,
    given: Array,
    told: Array,
    rows: Array,
    begun: Array,
    state: Array,
    sure: Array,
) -> None:
    """Which designs, given by their numbers, stand at home as the file; `rows` holds what is alike in all of them."""
    count, moved, starts, numbers = len(designs), proof.moved, proof.starts, proof.numbers
    motors, inputs = proof.motors, proof.inputs
    for start in range(0, count, LANES):
        for k in range(len(moved)):
            own, value = moved[k], starts[k]
            for lane in simd_range(LANES):
                rows[own, lane] = value
        for lane in range(LANES):
            design = min(start + lane, count - 1)
            for k in range(len(numbers)):
                rows[numbers[k], lane] = designs[design, k]
        for k in range(len(motors)):
            own = motors[k]
            for lane in simd_range(LANES):
                begun[k, lane] = rows[own, lane]
        for k in range(len(inputs)):
            own = inputs[k]
            for lane in simd_range(LANES):
                x[k, lane] = rows[own, lane]
        for lane in simd_range(LANES):
            state[OPENED, lane], state[GOOD, lane] = 1e300, 1.0
        calls, going = 0, True
        while going:
            calls += 1
            left = step_lanes(addresses[0], places, proof, x, y, state)
            if left == 0 or calls >= MOST:
                left = judge_lanes(addresses[1], judged, proof, x, rows, given, told, state)
                going = left > 0 and calls < MOST
        put_sides(proof, rows, told, state)
        put_motors(proof, rows, begun, state)
        for lane in range(min(LANES, count - start)):
            sure[start + lane] = 1 if state[GOOD, lane] > 0.0 else 0


def proved_homes(step: Kernel, judge: Kernel, proof: HomeProof, start: Array, designs: Array) -> Array:
    """Which designs stand at home as the file; `start` is a row with what is alike in all of them."""
    sure = np.zeros(len(designs), dtype=np.int64)
    (x, y, _, places), (given, told, _, judged) = buffers = lane_buffers(step), lane_buffers(judge)
    rows, begun = aligned_zeros((len(start), LANES)), aligned_zeros((len(proof.motors), LANES))
    rows[:] = start[:, None]
    addresses = np.array([one.address("lanes_in") for one in (step, judge)], dtype=np.int64)
    state = aligned_zeros((WORK, LANES))
    prove_homes(addresses, places, judged, proof, designs, x, y, given, told, rows, begun, state, sure)
    del buffers  # which compiled code has worked in
    return sure > 0


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
    x, y = aligned_zeros((len(program.inputs), lanes)), aligned_zeros((len(program.outputs), lanes))
    work = kernel.workspace("lanes")
    places = np.array([array.ctypes.data for array in (x, y, work)], dtype=np.int64)
    limits = np.array([CALLS, THIRDS, int(plain)], dtype=np.int64)
    state = np.zeros((lanes, 3), dtype=np.int64), np.zeros((lanes, len(moving))), np.zeros(lanes)
    columns = inputs.astype(np.int64), moving.astype(np.int64)
    close_homes(kernel.address("lanes_in"), places, limits, *columns, x, y, *state, q, good)
    return good > 0
