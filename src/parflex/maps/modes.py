"""Lowest modes at many poses: arrays around the compiled search, starting guesses, order of poses.

The guess of a mode is a polynomial of pose and parameters, fitted to the modes of some poses of a chunk. Its expected
error is half of that of the last modes of the lane. A poor guess costs steps and nothing else, because modes are
verified without it.

Each pose starts from the modes of the pose before. A space-filling curve orders the poses; along it each pose is
followed by the nearest of the next few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from parflex.codegen.llvm_jit import Kernel, aligned_zeros
from parflex.codegen.loop_compiler import simd_range
from parflex.codegen.loop_functions import compiled, inner
from parflex.maps import mode_search
from parflex.maps.kinematics import BatchProgram
from parflex.maps.mode_programs import DESIGN, pose_program_of_keys, step_kernels
from parflex.maps.mode_search import PoseEntries
from parflex.maps.parameters import TracedNumbers
from parflex.maps.simd import (
    BEFORE,
    FIELDS,
    LANES,
    POLE,
    POSE,
    REALS,
    TWIST,
    WARM,
    WHOLES,
    WIDE,
    LaneStates,
    lane_buffers,
    pose_rows,
)
from parflex.maps.simd import FREE as NEXT_MODE
from parflex.parameters.design_numbers import DesignNumbers
from parflex.records import Record
from parflex.robot.robot import Robot

Array = np.ndarray

FIRST = 1e3  # rad^2/s^2: where the search for modes begins at the first pose

FREE = 1e-4  # of the lowest mode (squared): what is below has no stiffness

AGAIN = 1  # start of the random numbers for poses that were not proved at once

WEAK = 1e-4  # of its value at home: what loops are not divided by, four digits being spare

APART = 8  # one of so many poses is solved first

FEWEST = 768  # poses from which a guess pays

SAMPLES = 5  # times the terms of a polynomial: poses that it is fitted to, at least

NEAR = 0.02  # of what coordinates span: where the next pose is nearer than this, the last one is guess enough

RIDGE = 1e-9

HIGHEST = 8  # degree of a polynomial in coordinates; products with numbers of designs are of two

SHARE = 0.5  # of what the last modes of a lane were off their guesses is expected again

GUESS_BLOCK = 64  # poses whose terms are there at a time, in the nearest cache

FULL = max(LANES, 4)  # of which rows are a multiple

SEEN = 512  # poses that are looked through for that

BITS = 5  # of each coordinate along the curve

DIRECTIONS = 6  # along which poses are put in order: a platform in space has as many

ORDER_BLOCK = 32  # poses along the curve of which the nearest comes next: more take longer to compare than they save

SPREAD = [  # bits of numbers with so many places between them as there are other directions
    np.array([sum((k >> bit & 1) << bit * count for bit in range(BITS)) for k in range(2**BITS)], np.int32)
    for count in range(1, DIRECTIONS + 1)
]

NEARLY = 0.9  # of the largest component, as where one pose is asked


@dataclass(frozen=True, eq=False, repr=False)
class FoundModes(Record):
    """Squares of circular frequencies (poses x modes), which poses are proved, and twists of the end effector."""

    x: Array
    ok: Array
    twists: Array
    steps: Array  # how many were taken


class ModeFinder:
    """Finds the lowest modes of a robot with its locked joints; raises NotCoveredError for robots that it cannot do."""

    def __init__(self, locked: Robot, modes: int, free: int = 0, designs: DesignNumbers | None = None) -> None:
        self.modes, self.free, self.designs = modes, free, designs
        self.guess: ModeGuess | None = None  # where modes are likely to be, once some poses are known
        self.placed = 0  # the first so many features are coordinates of poses, the others numbers of designs
        self.programs, pose, self.step = step_kernels(locked, designs)
        self.units = np.array([1.0] * 3 + [locked.tree.length] * 3)  # turns count by the typical length
        self.values, prefix = np.zeros((1, 1)), DESIGN  # numbers of designs, or keys
        if designs is not None and isinstance(designs.held, TracedNumbers):
            pose, self.values, prefix = pose_program_of_keys(pose, designs.held.kernel), designs.held.keys, "key["
        elif designs is not None:
            self.values = np.ascontiguousarray(designs.values)
        self.pose, names = pose, pose.program.inputs
        self.positions = [int(name[2:-1]) for name in names if name.startswith("q[")]
        numbers = [int(name[len(prefix) : -1]) for name in names if name.startswith(prefix)]
        placed = [k for k, name in enumerate(names) if name.startswith("q[")]
        varied = [k for k, name in enumerate(names) if name.startswith(prefix)]
        columns = (placed, self.positions, varied, numbers)
        self.inputs = tuple(np.array(column, dtype=np.int64) for column in columns)

    def __call__(
        self,
        q: Array,
        rows: Array | None = None,
        shapes: bool = False,
        features: Array | None = None,
        in_order: bool = False,
    ) -> FoundModes:
        """Modes at positions of the rigid tree; `rows` are the numbers of the designs of the poses.

        Without `shapes` the twists are rough. `features` are the numbers by which poses and designs differ. `in_order`:
        poses that follow each other are alike.
        """
        count, order = len(q), np.arange(len(q)) if in_order else nearest_order(q[:, self.positions])
        modes = self._some(q, rows, order, shapes, features, 0)
        failed = np.flatnonzero(~modes.ok)
        if 0 < len(failed) < count:  # once more from other starts
            self._put(modes, failed, q, rows, shapes, features, AGAIN)
        return modes

    def _put(
        self,
        modes: FoundModes,
        part: Array,
        q: Array,
        rows: Array | None,
        shapes: bool,
        features: Array | None,
        seed: int,
    ) -> None:
        """Modes of some poses, in this order."""
        arguments = None if rows is None else rows[part], np.arange(len(part)), shapes
        more = self._some(q[part], *arguments, None if features is None else features[part], seed)
        modes.x[part], modes.ok[part], modes.twists[part] = more.x, more.ok, more.twists
        modes.steps[0] += more.steps[0]

    def _entries(self, q: Array, rows: Array | None) -> Array:
        """What steps take of each pose."""
        entries = np.empty((len(q), len(self.programs.pose.outputs)))
        designs = designs_of(q, rows)
        pose_rows(self.pose, self.inputs, np.ascontiguousarray(q), np.arange(len(q)), self.values, designs, entries)
        return entries

    def learn(self, features: Array, modes: FoundModes) -> None:
        """Guess the modes of other poses from those that were found at some."""
        self.guess = fitted(features[modes.ok], modes.x[modes.ok], self.placed)

    def _some(
        self, q: Array, rows: Array | None, order: Array, shapes: bool, features: Array | None, seed: int
    ) -> FoundModes:
        """Modes of poses, one after the other in this order."""
        lanes, left, guess = _Lanes(self, q, rows, shapes, seed), order, self.guess
        if guess is None and fit_pays(features, order):
            assert features is not None
            some = order[::APART].copy()
            lanes(some)
            left = np.delete(order, slice(None, None, APART))
            known = some[lanes.proved[some]]
            guess = fitted(features[known], lanes.found[known], self.placed)
        if guess is not None and features is not None:
            lanes.expect(guess(features))
        lanes(left)
        eigenvalues, ok, twists = lanes.found, lanes.proved, lanes.twists
        twists[lanes.flags[:, 1] > 0] = np.nan
        if shapes:
            put_signs(twists, self.units)
        if self.free:  # the motions without stiffness must be as many as at home, here too
            ok &= self._count(self._entries(q, rows), FREE * eigenvalues[:, 0]) == self.free
        if self.programs.closing is not None:
            ok = ok & self._closed(q, rows)
        return FoundModes(eigenvalues, ok, twists, np.array([lanes.steps]))

    def _closed(self, q: Array, rows: Array | None) -> Array:
        """Poses at which nothing that loops are divided by is far smaller than at home."""
        program = self.programs.closing
        assert program is not None
        inputs = np.zeros((len(q), len(program.inputs)))
        for k, name in enumerate(program.inputs):
            if name.startswith("q["):
                inputs[:, k] = q[:, int(name[2:-1])]
            elif name.startswith("design["):
                assert self.designs is not None and rows is not None
                inputs[:, k] = self.designs.values[rows, int(name[7:-1])]
        return (np.abs(BatchProgram(program, False)(inputs)) > WEAK).all(axis=1)

    def _count(self, entries: Array, shifts: Array) -> Array:
        """Modes below shifts."""
        b = np.ones((len(entries), self.programs.size))
        outputs = self.step.many(np.concatenate([shifts[:, None], b, entries], axis=1))
        return np.round(0.5 * (self.programs.unknowns - outputs[:, 0]))


class _Lanes:
    """What is found at poses, and what lanes know from one set of them to the next."""

    def __init__(self, finder: ModeFinder, q: Array, rows: Array | None, shapes: bool, seed: int) -> None:
        programs, pose, self.kernel = finder.programs, finder.pose, finder.step
        modes, count, self.finder = finder.modes, len(q), finder
        self.poses = self._poses(pose, np.ascontiguousarray(q), designs_of(q, rows))
        self.turn = mode_search.TURNED if shapes else math.inf
        before = TWIST - 1 + programs.twisted  # rows of outputs in front of the shift: b is one place
        block = aligned_zeros((before + len(programs.step.inputs), LANES))
        self.x, self.y = block[before:].reshape(-1), block[: len(programs.step.outputs)].reshape(-1)
        self.work = self.kernel.workspace("lanes")
        self.kept = np.random.default_rng(seed).uniform(-1, 1, (LANES, modes + 1, programs.size))
        self.changes, self.share = np.ones((count, modes)), 1.0
        self.whole, self.numbers = aligned_zeros((WHOLES, LANES)).view(np.int64), aligned_zeros((REALS, LANES))
        self.known = aligned_zeros((modes + 1, FIELDS, LANES))
        self.known[:, WARM] = FIRST
        self.numbers[WIDE], self.numbers[NEXT_MODE] = mode_search.WIDEST, mode_search.NEXT
        self.numbers[POLE] = 0.0 if programs.condensed else math.inf
        self.numbers[BEFORE] = mode_search.WIDEST
        self.found, self.twists = np.empty((count, modes)), np.empty((count, modes, programs.twisted))
        self.flags, self.steps = np.zeros((count, 2), dtype=np.int64), 0

    def _poses(self, pose: Kernel, q: Array, designs: Array) -> PoseEntries:
        """What goes in and out of the program of poses; the buffers stay with this."""
        finder = self.finder
        self.buffers = inputs, entries, _, places = lane_buffers(pose, LANES)
        return PoseEntries(
            *(pose.address("lanes_in"), places, *finder.inputs, q, finder.values, designs, inputs),
            entries.reshape(LANES, -1, LANES),
        )

    @property
    def proved(self) -> Array:
        """Poses that are."""
        return self.flags[:, 0] > 0

    def expect(self, guessed: Array) -> None:
        """Guesses of the modes of all poses: from now on lanes know what their last mode was over its guess."""
        self.changes, self.share = guessed, SHARE
        expected = self.known[:-1, WARM]
        expected[:] = expected / guessed[self.last].T if self.steps else 1.0

    def __call__(self, which: Array) -> None:
        """Modes of some poses, one after the other in each lane."""
        finder = self.finder
        rows = (table.reshape(-1) for table in (self.whole, self.numbers, self.known))
        states = LaneStates(
            *(finder.modes, finder.programs.unknowns, finder.free, self.turn, self.share, finder.programs.size),
            *(which, self.changes, self.x, self.y, *rows, self.kept, self.found, self.twists, self.flags),
        )
        places = np.array([array.ctypes.data for array in (self.x, self.y, self.work)], dtype=np.int64)
        self.steps += mode_search.find_modes(self.kernel.address("lanes_in"), places, self.poses, states)
        self.last = np.maximum(self.whole[POSE], 0)  # poses at which lanes ended


def designs_of(q: Array, rows: Array | None) -> Array:
    """Numbers of the designs of poses."""
    return np.zeros(len(q), dtype=np.int64) if rows is None else rows.astype(np.int64, copy=False)


def fit_pays(features: Array | None, order: Array) -> bool:
    """Whether poses are many, and neighbours in their order far enough from each other."""
    if features is None or len(order) < FEWEST or not features.shape[1]:
        return False
    span = np.maximum(np.ptp(features[:: max(1, len(features) // SEEN)], axis=0), 1e-300)
    some = order[:SEEN]
    return bool(np.median(np.abs(np.diff(features[some], axis=0) / span).max(axis=1)) > NEAR)


@inner
def fill_terms(start: int, features: Array, by: Array, times: Array, terms: Array) -> int:
    """A constant, features, and products of rows above with features: one row each, of some poses."""
    width, count = features.shape[0], min(terms.shape[1], features.shape[1] - start)
    for k in simd_range(count):
        terms[0, k] = 1.0
    for n in range(width):
        for k in simd_range(count):
            terms[1 + n, k] = features[n, start + k]
    for n in range(len(by)):
        first, second = by[n], times[n]
        for k in simd_range(count):
            terms[1 + width + n, k] = terms[first, k] * terms[second, k]
    return count


@compiled
def put_guesses(
    features: Array, by: Array, times: Array, factors: Array, terms: Array, sums: Array, guesses: Array
) -> None:
    """Polynomials (modes x terms) of poses into `guesses`; four terms at a time, so that sums are seldom stored.

    Terms and factors are filled up by zeros.
    """
    modes, size = factors.shape[0], factors.shape[1]
    for start in range(0, len(guesses), terms.shape[1]):
        count = fill_terms(start, features, by, times, terms)
        for m in range(modes):
            for k in simd_range(count):
                sums[m, k] = 0.0
        for t in range(0, size, 4):
            for m in range(modes):
                a, b, c, d = factors[m, t], factors[m, t + 1], factors[m, t + 2], factors[m, t + 3]
                for k in simd_range(count):
                    more = a * terms[t, k] + b * terms[t + 1, k] + c * terms[t + 2, k] + d * terms[t + 3, k]
                    sums[m, k] += more
        for k in range(count):
            for m in range(modes):
                guesses[start + k, m] = sums[m, k]


@compiled
def solve_squares(
    features: Array, by: Array, times: Array, values: Array, terms: Array, rows: Array, square: Array, right: Array
) -> None:
    """Factors (modes x terms) of least squares into `right`, by elimination: the matrix is positive definite.

    `square` holds what is added to its diagonal; `terms` (terms x poses) and `rows` (the same by poses, of which there
    are a multiple of four) are for work. Rows are filled up by zeros to full lanes, and loops along them begin at
    those: what is left of the diagonal is not used.
    """
    size, wide, modes = square.shape[0], square.shape[1], right.shape[0]
    count = fill_terms(0, features, by, times, terms)
    for s in range(count):
        for i in range(size):
            rows[s, i] = terms[i, s]
        for m in range(modes):
            for i in simd_range(wide):
                right[m, i] += values[s, m] * rows[s, i]
    for i in range(size):
        first = i - i % FULL
        for s in range(0, count, 4):
            a, b, c, d = rows[s, i], rows[s + 1, i], rows[s + 2, i], rows[s + 3, i]
            for n in simd_range(wide - first):
                j = first + n
                square[i, j] += a * rows[s, j] + b * rows[s + 1, j] + c * rows[s + 2, j] + d * rows[s + 3, j]
    for k in range(size):
        for i in range(k + 1, size):
            share, first = square[k, i] / square[k, k], i - i % FULL
            for n in simd_range(wide - first):
                square[i, first + n] -= share * square[k, first + n]
            for m in range(modes):
                right[m, i] -= share * right[m, k]
    for k in range(size - 1, -1, -1):
        for m in range(modes):
            for i in range(k + 1, size):
                right[m, k] -= square[k, i] * right[m, i]
            right[m, k] /= square[k, k]


@dataclass(frozen=True, eq=False, repr=False)
class ModeGuess(Record):
    """A polynomial of pose and design for the logarithm of each mode.

    No library of matrices computes it: these wake threads of their own, and wait longer for them than this takes.
    """

    used: Array  # features that differ
    middle: Array
    half: Array  # of what they span
    by: Array  # rows of terms, of which the others are products with
    times: Array  # rows of features
    factors: Array  # (modes x terms), filled up by zeros to full lanes

    def __call__(self, features: Array) -> Array:
        """Guesses (poses x modes)."""
        guesses, modes = np.empty((len(features), len(self.factors))), len(self.factors)
        terms, sums = aligned_zeros((self.factors.shape[1], GUESS_BLOCK)), aligned_zeros((modes, GUESS_BLOCK))
        put_guesses(self.scaled(features), self.by, self.times, self.factors, terms, sums, guesses)
        # single precision: rounding must not show in what follows
        return np.exp(guesses.astype(np.float32)).astype(float)

    def scaled(self, features: Array) -> Array:
        """Features (features x poses) between -1 and 1."""
        moved = np.ascontiguousarray(features.T[self.used])
        moved -= self.middle[:, None]
        moved *= (1.0 / self.half)[:, None]
        return np.clip(moved, -1.0, 1.0, out=moved)


def fitted(features: Array, x: Array, placed: int) -> ModeGuess | None:
    """The polynomial for the modes `x` of poses; None where these are too few.

    The first `placed` features are coordinates: modes change far less linearly with them than along numbers of designs.
    """
    samples, low, high = len(x), features.min(axis=0, initial=np.inf), features.max(axis=0, initial=-np.inf)
    used = np.flatnonzero(high > low)
    width, most = len(used), samples / SAMPLES
    if 1 + width > most:
        return None
    poses = int((used < placed).sum())
    products: list[tuple[int, int]] = []
    for degree in range(2, HIGHEST + 1):
        more = _products(poses, width, degree)
        if 1 + width + len(more) > most:
            break
        products = more
    by, times = np.array(products, dtype=np.int64).reshape(-1, 2).T.copy()
    guess = ModeGuess(used, 0.5 * (low + high)[used], 0.5 * (high - low)[used], by, times, np.empty((0, 0)))
    size, modes = 1 + width + len(by), x.shape[1]
    wide, even = (-(-length // FULL) * FULL for length in (size, samples))
    square, right = aligned_zeros((size, wide)), aligned_zeros((modes, wide))
    square[np.arange(size), np.arange(size)] = RIDGE * samples
    work = np.empty((size, samples)), aligned_zeros((even, wide))
    solve_squares(guess.scaled(features), by, times, np.log(x), *work, square, right)
    return replace(guess, factors=right) if np.isfinite(right).all() else None


@lru_cache(maxsize=64)
def _products(poses: int, width: int, degree: int) -> list[tuple[int, int]]:
    """Products of all features by two, and of the first ones, coordinates, up to a degree: rows of their factors."""
    products: list[tuple[int, int]] = []
    last = [(1 + k, k) for k in range(width)]  # rows, and the last feature of each
    for n in range(2, degree + 1):
        following = []
        stop = width if n == 2 else poses
        for row, k in last:
            for other in range(k, stop):
                following.append((1 + width + len(products), other))
                products.append((row, 1 + other))
        last = [item for item in following if item[1] < poses] if n == 2 else following
    return products


@compiled
def rotate_coordinates(values: Array, directions: Array, along: Array) -> None:
    """Coordinates of poses along other directions (directions x poses)."""
    for pose in range(len(values)):
        for n in range(len(along)):
            total = 0.0
            for k in range(len(directions)):
                total += values[pose, k] * directions[k, n]
            along[n, pose] = total


@compiled
def follow_nearest(along: Array, order: Array, here: Array, near: Array, far: Array, left: Array) -> None:
    """Change the order in place: in each block of it the nearest pose that is left follows.

    `along` are the poses (directions x poses); the others are for work: a pose, the poses of a block (directions x
    block), their distances, and which they are.
    """
    width, count, block = along.shape[0], len(order), len(far)
    for n in range(width):
        here[n] = along[n, order[0]]
    for start in range(0, count, block):
        some = min(block, count - start)
        for k in range(some):
            left[k] = order[start + k]
            for n in range(width):
                near[n, k] = along[n, order[start + k]]
        for place in range(start, start + some):
            rest = start + some - place
            for k in range(rest):
                far[k] = (near[0, k] - here[0]) * (near[0, k] - here[0])
            for n in range(1, width):
                for k in range(rest):
                    far[k] += (near[n, k] - here[n]) * (near[n, k] - here[n])
            best, least = 0, far[0]
            for k in range(1, rest):
                if far[k] < least:
                    best, least = k, far[k]
            order[place] = left[best]
            left[best] = left[rest - 1]
            for n in range(width):
                here[n] = near[n, best]
                near[n, best] = near[n, rest - 1]


def nearest_order(values: Array) -> Array:
    """An order of poses in which neighbours are alike: a space-filling curve, then the nearest along the curve."""
    count, width = values.shape
    if count < 3 or not width:
        return np.arange(count)
    some = values[:: max(1, count // SEEN)]
    middle, span = some.mean(axis=0), np.ptp(some, axis=0)
    moving = np.flatnonzero(span > 0)
    if not len(moving):
        return np.arange(count)
    scaled = (some[:, moving] - middle[moving]) / span[moving]
    main = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, :DIRECTIONS]
    projected = scaled @ main
    low, high = projected.min(axis=0), projected.max(axis=0)
    directions = np.zeros((width, main.shape[1]))
    directions[moving] = main / span[moving, None]
    along = np.empty((directions.shape[1], count))
    rotate_coordinates(
        np.ascontiguousarray(values, dtype=float), directions, along
    )  # a library of matrices would wake its threads
    order = _along_curve(along, middle @ directions + low, 2**BITS / np.maximum(high - low, 1e-300))
    # single precision: how products of matrices are rounded must not show in the order
    rough, block = along.astype(np.float32).astype(float), np.empty((len(along), ORDER_BLOCK))
    work = np.empty(len(along)), block, np.empty(ORDER_BLOCK), np.empty(ORDER_BLOCK, dtype=np.int64)
    follow_nearest(rough, order, *work)
    return order


def _along_curve(along: Array, low: Array, cells: Array) -> Array:
    """The order of poses (directions x poses) along the directions of most change: a space-filling curve."""
    count = along.shape[1]
    cell = ((along - low[:, None]) * cells[:, None]).clip(0, 2**BITS - 1).astype(np.int16)
    code = np.zeros(count, dtype=np.int32)
    for k, cell_indices in enumerate(cell):
        code |= SPREAD[len(cell) - 1][cell_indices] << k
    for distance in (
        1,
        2,
        4,
        8,
        16,
    ):  # the place in Gray's order, in which cells that follow each other differ in one bit
        code ^= code >> distance
    places = code.astype(np.int64) * count + np.arange(count)  # sorted in a quarter of the time of a stable `argsort`
    places.sort()
    return places % count


@compiled
def put_signs(twists: Array, units: Array) -> None:
    """Shapes (poses x modes x components): the first component that is nearly as large as the largest is positive."""
    count = twists.shape[2]
    for pose in range(twists.shape[0]):
        for mode in range(twists.shape[1]):
            largest, sign = 0.0, 0.0
            for k in range(count):
                largest = max(largest, abs(twists[pose, mode, k]) * units[k])
            for k in range(count - 1, -1, -1):  # the first one comes last: no branch, since which it is is not foreseen
                value = twists[pose, mode, k]
                sign = (-1.0 if value < 0.0 else 1.0) if abs(value) * units[k] >= NEARLY * largest else sign
            for k in range(count):
                twists[pose, mode, k] *= sign


@compiled
def put_modes(
    x: Array, twists: Array, rows: Array, least: float, frequencies: Array, shapes: Array, done: Array
) -> int:
    """Frequencies and shapes into their `rows`, where `done`; how many have no shape though it is asked for.

    These are not done, nor are those whose lowest mode has no more than the share `least` of the highest.
    """
    modes, without_shape = x.shape[1], 0
    components = shapes.shape[2]  # none where shapes are not
    for k in range(len(rows)):
        if done[k] == 0 or not x[k, 0] > least * x[k, modes - 1]:
            done[k] = 0
            continue
        check = 0.0
        for mode in range(modes if components > 0 else 0):
            part = 0.0
            for n in range(components):
                part += 0.0 * twists[k, mode, n]  # not a number where one is not finite
            check += part  # sums that do not wait for each other
        if check != check:
            done[k] = 0
            without_shape += 1
            continue
        row = rows[k]
        for mode in range(modes):
            frequencies[row, mode] = math.sqrt(x[k, mode]) / (2.0 * math.pi)
            for n in range(components):
                shapes[row, mode, n] = twists[k, mode, n]
    return without_shape
