"""Lowest modes of a robot at many poses, each with its own design if need be: arrays around the compiled loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from parflex.codegen.compile import side_by_side
from parflex.designs.design_numbers import DesignNumbers
from parflex.maps.batches import BatchProgram
from parflex.maps.engine import mode_loop, mode_search
from parflex.maps.engine.entry_loop import pose_rows
from parflex.maps.engine.kept_steps import step_kernels
from parflex.maps.engine.mode_guess import APART, SHARE, ModeGuess, fit_pays, fitted
from parflex.maps.engine.mode_proof import FIELDS, WARM
from parflex.maps.engine.mode_search import TWIST
from parflex.models.robot import Robot
from parflex.records import Record

Array = np.ndarray
BITS = 5  # of each coordinate, in the order of poses
DIRECTIONS = 6  # along which poses are put in order: a platform in space has as many
FIRST = 1e3  # rad^2/s^2: where the search for modes begins at the first pose
FREE = 1e-4  # of the lowest mode (squared): what is below has no stiffness
AGAIN = 1  # start of the random numbers for poses that were not proved at once
WEAK = 1e-4  # of its value at home: what loops are not divided by, four digits being spare
SIDE_BY_SIDE = 16384  # poses whose entries are there at a time
SEEN = 512  # poses by which directions are chosen, about
SPREAD = [  # bits of numbers with so many places between them as there are other directions
    np.array([sum((k >> bit & 1) << bit * count for bit in range(BITS)) for k in range(2**BITS)], np.int32)
    for count in range(1, DIRECTIONS + 1)
]


@dataclass(frozen=True, eq=False, repr=False)
class FoundModes(Record):
    """Squares of circular frequencies (poses x modes), which poses are proved, and twists of the end effector."""

    x: Array
    ok: Array
    twists: Array
    steps: Array  # how many were taken

    @staticmethod
    def of_nothing(count: int, modes: int, twisted: int) -> FoundModes:
        """Before the search."""
        x, twists = np.full((count, modes), np.nan), np.full((count, modes, twisted), np.nan)
        return FoundModes(x, np.zeros(count, dtype=bool), twists, np.zeros(1, dtype=int))


class ModeFinder:
    """Finds the lowest modes of a robot with its locked joints; raises NotCoveredError for robots that it cannot do."""

    def __init__(self, locked: Robot, modes: int, free: int = 0, designs: DesignNumbers | None = None) -> None:
        self.modes, self.free, self.designs = modes, free, designs
        self.guess: ModeGuess | None = None  # where modes are likely to be, once some poses are known
        self._spare: list[Array] = []  # entries of poses that no call uses: fresh memory is slow, cleared page by page
        self.placed = 0  # the first so many features are coordinates of poses, the others numbers of designs
        self.programs, *self.kernels = step_kernels(locked, designs)
        self.units = np.array([1.0] * 3 + [locked.tree.length] * 3)  # turns count by the typical length
        names = self.programs.pose.inputs
        self.positions = [int(name[2:-1]) for name in names if name.startswith("q[")]
        numbers = [int(name[7:-1]) for name in names if name.startswith("design[")]
        placed = [k for k, name in enumerate(names) if name.startswith("q[")]
        varied = [k for k, name in enumerate(names) if name.startswith("design[")]
        columns = (placed, self.positions, varied, numbers)
        self.inputs = tuple(np.array(own, dtype=np.int64) for own in columns)
        self.values = np.zeros((1, 1)) if designs is None else np.ascontiguousarray(designs.values)

    def __call__(
        self, q: Array, rows: Array | None = None, shapes: bool = False, features: Array | None = None
    ) -> FoundModes:
        """Modes at positions of the rigid tree; `rows` are the numbers of the designs of the poses.

        Without `shapes` the twists are rough. `features` are the numbers by which poses and designs differ.
        """
        count, order = len(q), ordered(q[:, self.positions])
        if count <= SIDE_BY_SIDE:
            found = self._some(q, rows, order, shapes, features, 0)
        else:
            found = FoundModes.of_nothing(count, self.modes, self.programs.twisted)
            for start in range(0, count, SIDE_BY_SIDE):
                self._put(found, order[start : start + SIDE_BY_SIDE], q, rows, shapes, features, 0)
        failed = np.flatnonzero(~found.ok)
        if 0 < len(failed) < count:  # once more from other starts
            self._put(found, failed, q, rows, shapes, features, AGAIN)
        return found

    def _put(
        self,
        found: FoundModes,
        part: Array,
        q: Array,
        rows: Array | None,
        shapes: bool,
        features: Array | None,
        seed: int,
    ) -> None:
        """Modes of some poses, in this order."""
        own = None if rows is None else rows[part], np.arange(len(part)), shapes
        more = self._some(q[part], *own, None if features is None else features[part], seed)
        found.x[part], found.ok[part], found.twists[part] = more.x, more.ok, more.twists
        found.steps[0] += more.steps[0]

    def _entries(self, q: Array, rows: Array | None, order: Array | None = None) -> Array:
        """What steps take of each pose, in this order: lanes take one behind the other."""
        own = np.zeros(len(q), dtype=np.int64) if rows is None else rows.astype(np.int64, copy=False)
        order = np.arange(len(q)) if order is None else order
        try:
            wide = self._spare.pop()
        except IndexError:  # the first call, or other threads have them all
            wide = np.empty((0, 0))
        if len(wide) < len(q):
            wide = np.empty((len(q), len(self.programs.pose.outputs)))
        pose_rows(self.kernels[0], self.inputs, np.ascontiguousarray(q), order, self.values, own, wide)
        return wide

    def learn(self, features: Array, found: FoundModes) -> None:
        """Guess the modes of other poses from those that were found at some."""
        self.guess = fitted(features[found.ok], found.x[found.ok], self.placed)

    def _some(
        self, q: Array, rows: Array | None, order: Array, shapes: bool, features: Array | None, seed: int
    ) -> FoundModes:
        """Modes of poses, one after the other in this order."""
        lanes, left = _Lanes(self, len(q), shapes, seed), np.arange(len(q))
        entries, guess = self._entries(q, rows, order), self.guess
        if guess is None and fit_pays(features, order):
            assert features is not None
            some = left[::APART].copy()
            lanes(entries, some, order[some])
            left = np.delete(left, slice(None, None, APART))
            known = order[some][lanes.proved[order[some]]]
            guess = fitted(features[known], lanes.found[known], self.placed)
        if guess is not None and features is not None:
            lanes.expect(guess(features))
        lanes(entries, left, order[left])
        found, ok, twists = lanes.found, lanes.proved, lanes.twists
        twists[lanes.flags[:, 1] > 0] = np.nan
        if self.free:  # the motions without stiffness must be as many as at home, here too
            ok[order] &= self._count(entries[: len(q)], FREE * found[order, 0]) == self.free
        if self.programs.closing is not None:
            ok = ok & self._closed(q, rows)
        self._spare.append(entries)
        return FoundModes(found, ok, twists, np.array([lanes.steps]))

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
        found = self.kernels[1].many(np.concatenate([shifts[:, None], b, entries], axis=1))
        return np.round(0.5 * (self.programs.unknowns - found[:, 0]))


class _Lanes:
    """What is found at poses, and what lanes know from one set of them to the next."""

    def __init__(self, finder: ModeFinder, count: int, shapes: bool, seed: int) -> None:
        programs, self.kernel = finder.programs, finder.kernels[1]
        lanes, modes, self.finder = self.kernel.lanes, finder.modes, finder
        self.turn = mode_loop.TURNED if shapes else math.inf
        before = TWIST - 1 + programs.twisted  # rows of outputs in front of the shift: b is one place
        block = side_by_side((before + len(programs.step.inputs), lanes))
        self.x, self.y, self.work = block[before:], block[: len(programs.step.outputs)], self.kernel.workspace("lanes")
        self.kept = np.random.default_rng(seed).uniform(-1, 1, (lanes, modes + 1, programs.size))
        self.changes, self.share = np.ones((count, modes)), 1.0
        self.whole, self.numbers = np.zeros((lanes, 9), dtype=np.int64), np.zeros((lanes, 5))
        self.known = np.zeros((lanes, modes + 1, FIELDS))
        self.known[:, :, WARM] = FIRST
        self.numbers[:, mode_search.WIDE], self.numbers[:, mode_search.FREE] = mode_loop.WIDEST, mode_search.NEXT
        self.numbers[:, mode_search.POLE] = 0.0 if programs.condensed else math.inf
        self.numbers[:, mode_search.BEFORE] = mode_loop.WIDEST
        self.found, self.twists = np.empty((count, modes)), np.empty((count, modes, programs.twisted))
        self.flags, self.steps = np.zeros((count, 2), dtype=np.int64), 0

    @property
    def proved(self) -> Array:
        """Poses that are."""
        return self.flags[:, 0] > 0

    def expect(self, guessed: Array) -> None:
        """Guesses of the modes of all poses: from now on lanes know what their last mode was over its guess."""
        self.changes, self.share = guessed, SHARE
        expected = self.known[:, :-1, WARM]
        expected[:] = expected / guessed[self.last] if self.steps else 1.0

    def __call__(self, entries: Array, own: Array, which: Array) -> None:
        """Modes of some poses, one after the other in each lane; `own` are their rows of entries."""
        finder = self.finder
        places = np.array([array.ctypes.data for array in (self.x, self.y, self.work)], dtype=np.int64)
        self.steps += mode_loop.find_modes(
            self.kernel.address("lanes_in"),
            places,
            finder.programs.unknowns,
            *(entries, own, which, self.changes, self.share),
            finder.free,
            self.turn,
            *(self.x, self.y, finder.units, self.whole, self.numbers, self.known),
            *(self.kept, self.found, self.twists, self.flags),
        )
        self.last = which[np.maximum(self.whole[:, mode_search.LAST] - 1, 0)]  # poses at which lanes ended


def ordered(values: Array) -> Array:
    """An order of poses in which neighbours are alike: a space-filling curve along the directions of most change."""
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
    seen = scaled @ main
    low, high = seen.min(axis=0), seen.max(axis=0)
    cells = 2**BITS / np.maximum(high - low, 1e-300)
    ways = np.zeros((width, main.shape[1]))
    ways[moving] = main / span[moving, None] * cells
    along = (ways.T @ values.T - (middle @ ways + low * cells)[:, None]).clip(0, 2**BITS - 1).astype(np.int16)
    code = np.zeros(count, dtype=np.int32)
    for k, own in enumerate(along):
        code |= SPREAD[len(along) - 1][own] << k
    for far in (1, 2, 4, 8, 16):  # the place in Gray's order, in which cells that follow each other differ in one bit
        code ^= code >> far
    places = code.astype(np.int64) * count + np.arange(count)  # sorted in a quarter of the time of a stable `argsort`
    places.sort()
    return places % count
