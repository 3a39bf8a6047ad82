"""Lowest modes of a robot at many poses, each with its own design if need be: arrays around the compiled loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from parflex.codegen.llvm_jit import Kernel, aligned_zeros
from parflex.maps.batches import BatchProgram
from parflex.maps.engine.entry_loop import buffers_of, pose_rows
from parflex.maps.engine.kept_steps import DESIGN, pose_of_keys, step_kernels
from parflex.maps.engine.mode_guess import APART, SHARE, ModeGuess, fit_pays, fitted
from parflex.maps.kept_numbers import TracedNumbers
from parflex.maps.lanes import mode_loop, mode_search
from parflex.maps.lanes.lane_states import (
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
)
from parflex.maps.lanes.lane_states import FREE as NEXT_MODE
from parflex.maps.lanes.mode_loop import PoseEntries
from parflex.maps.rows.found_rows import put_signs
from parflex.maps.rows.pose_order import ordered
from parflex.parameters.design_numbers import DesignNumbers
from parflex.records import Record
from parflex.robot.robot import Robot

Array = np.ndarray
FIRST = 1e3  # rad^2/s^2: where the search for modes begins at the first pose
FREE = 1e-4  # of the lowest mode (squared): what is below has no stiffness
AGAIN = 1  # start of the random numbers for poses that were not proved at once
WEAK = 1e-4  # of its value at home: what loops are not divided by, four digits being spare


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
        self.placed = 0  # the first so many features are coordinates of poses, the others numbers of designs
        self.programs, pose, self.step = step_kernels(locked, designs)
        self.units = np.array([1.0] * 3 + [locked.tree.length] * 3)  # turns count by the typical length
        self.values, word = np.zeros((1, 1)), DESIGN  # numbers of designs, or keys
        if designs is not None and isinstance(designs.held, TracedNumbers):
            pose, self.values, word = pose_of_keys(pose, designs.held.kernel), designs.held.keys, "key["
        elif designs is not None:
            self.values = np.ascontiguousarray(designs.values)
        self.pose, names = pose, pose.program.inputs
        self.positions = [int(name[2:-1]) for name in names if name.startswith("q[")]
        numbers = [int(name[len(word) : -1]) for name in names if name.startswith(word)]
        placed = [k for k, name in enumerate(names) if name.startswith("q[")]
        varied = [k for k, name in enumerate(names) if name.startswith(word)]
        columns = (placed, self.positions, varied, numbers)
        self.inputs = tuple(np.array(own, dtype=np.int64) for own in columns)

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
        count, order = len(q), np.arange(len(q)) if in_order else ordered(q[:, self.positions])
        found = self._some(q, rows, order, shapes, features, 0)
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

    def _entries(self, q: Array, rows: Array | None) -> Array:
        """What steps take of each pose."""
        found = np.empty((len(q), len(self.programs.pose.outputs)))
        own = designs_of(q, rows)
        pose_rows(self.pose, self.inputs, np.ascontiguousarray(q), np.arange(len(q)), self.values, own, found)
        return found

    def learn(self, features: Array, found: FoundModes) -> None:
        """Guess the modes of other poses from those that were found at some."""
        self.guess = fitted(features[found.ok], found.x[found.ok], self.placed)

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
        found, ok, twists = lanes.found, lanes.proved, lanes.twists
        twists[lanes.flags[:, 1] > 0] = np.nan
        if shapes:
            put_signs(twists, self.units)
        if self.free:  # the motions without stiffness must be as many as at home, here too
            ok &= self._count(self._entries(q, rows), FREE * found[:, 0]) == self.free
        if self.programs.closing is not None:
            ok = ok & self._closed(q, rows)
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
        found = self.step.many(np.concatenate([shifts[:, None], b, entries], axis=1))
        return np.round(0.5 * (self.programs.unknowns - found[:, 0]))


class _Lanes:
    """What is found at poses, and what lanes know from one set of them to the next."""

    def __init__(self, finder: ModeFinder, q: Array, rows: Array | None, shapes: bool, seed: int) -> None:
        programs, pose, self.kernel = finder.programs, finder.pose, finder.step
        modes, count, self.finder = finder.modes, len(q), finder
        self.poses = self._poses(pose, np.ascontiguousarray(q), designs_of(q, rows))
        self.turn = mode_loop.TURNED if shapes else math.inf
        before = TWIST - 1 + programs.twisted  # rows of outputs in front of the shift: b is one place
        block = aligned_zeros((before + len(programs.step.inputs), LANES))
        self.x, self.y = block[before:].reshape(-1), block[: len(programs.step.outputs)].reshape(-1)
        self.work = self.kernel.workspace("lanes")
        self.kept = np.random.default_rng(seed).uniform(-1, 1, (LANES, modes + 1, programs.size))
        self.changes, self.share = np.ones((count, modes)), 1.0
        self.whole, self.numbers = aligned_zeros((WHOLES, LANES)).view(np.int64), aligned_zeros((REALS, LANES))
        self.known = aligned_zeros((modes + 1, FIELDS, LANES))
        self.known[:, WARM] = FIRST
        self.numbers[WIDE], self.numbers[NEXT_MODE] = mode_loop.WIDEST, mode_search.NEXT
        self.numbers[POLE] = 0.0 if programs.condensed else math.inf
        self.numbers[BEFORE] = mode_loop.WIDEST
        self.found, self.twists = np.empty((count, modes)), np.empty((count, modes, programs.twisted))
        self.flags, self.steps = np.zeros((count, 2), dtype=np.int64), 0

    def _poses(self, pose: Kernel, q: Array, designs: Array) -> PoseEntries:
        """What goes in and out of the program of poses; the buffers stay with this."""
        finder = self.finder
        self.buffers = given, entries, _, places = buffers_of(pose, LANES)
        return PoseEntries(
            *(pose.address("lanes_in"), places, *finder.inputs, q, finder.values, designs, given),
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
        rows = (own.reshape(-1) for own in (self.whole, self.numbers, self.known))
        states = LaneStates(
            *(finder.modes, finder.programs.unknowns, finder.free, self.turn, self.share, finder.programs.size),
            *(which, self.changes, self.x, self.y, *rows, self.kept, self.found, self.twists, self.flags),
        )
        places = np.array([array.ctypes.data for array in (self.x, self.y, self.work)], dtype=np.int64)
        self.steps += mode_loop.find_modes(self.kernel.address("lanes_in"), places, self.poses, states)
        self.last = np.maximum(self.whole[POSE], 0)  # poses at which lanes ended


def designs_of(q: Array, rows: Array | None) -> Array:
    """Numbers of the designs of poses."""
    return np.zeros(len(q), dtype=np.int64) if rows is None else rows.astype(np.int64, copy=False)
