"""Lowest modes of a robot at many poses, each with its own design if need be: arrays around the compiled loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from parflex.codegen.compile import side_by_side
from parflex.designs.design_numbers import DesignNumbers
from parflex.maps.batches import BatchProgram
from parflex.maps.engine import mode_loop
from parflex.maps.engine.entry_loop import pose_rows
from parflex.maps.engine.kept_steps import step_kernels
from parflex.maps.engine.mode_guess import APART, fit_pays, guessed_changes
from parflex.models.robot import Robot
from parflex.records import Record

Array = np.ndarray
BITS = 5  # of each coordinate, in the order of poses
DIRECTIONS = 3  # along which poses are put in order
FIRST = 1e3  # rad^2/s^2: where the search for modes begins at the first pose
FREE = 1e-4  # of the lowest mode (squared): what is below has no stiffness
AGAIN = 1  # start of the random numbers for poses that were not proved at once
WEAK = 1e-4  # of its value at home: what loops are not divided by, four digits being spare
SIDE_BY_SIDE = 16384  # poses whose entries are there at a time


@dataclass(frozen=True, eq=False, repr=False)
class FoundModes(Record):
    """Squares of circular frequencies (poses x modes), which poses are proved, and twists of the end effector."""

    x: Array
    ok: Array
    twists: Array
    steps: int


class ModeFinder:
    """Finds the lowest modes of a robot with its locked joints; raises NotCoveredError for robots that it cannot do."""

    def __init__(self, locked: Robot, modes: int, free: int = 0, designs: DesignNumbers | None = None) -> None:
        self.modes, self.free, self.designs = modes, free, designs
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
        x, ok = np.full((count, self.modes), np.nan), np.zeros(count, dtype=bool)
        twists, steps = np.full((count, self.modes, self.programs.twisted), np.nan), 0

        def solve(part: Array, seed: int = 0) -> int:
            own = None if features is None else features[part]
            x[part], ok[part], twists[part], more = self._some(
                q[part], None if rows is None else rows[part], shapes, own, seed
            )
            return more

        for start in range(0, count, SIDE_BY_SIDE):
            steps += solve(order[start : start + SIDE_BY_SIDE])
        failed = np.flatnonzero(~ok)
        if 0 < len(failed) < count:  # once more from other starts
            steps += solve(failed, AGAIN)
        return FoundModes(x, ok, twists, steps)

    def _entries(self, q: Array, rows: Array | None) -> Array:
        """What steps take of each pose."""
        own = np.zeros(len(q), dtype=np.int64) if rows is None else rows.astype(np.int64)
        return pose_rows(self.kernels[0], self.inputs, np.ascontiguousarray(q), np.arange(len(q)), self.values, own)

    def _some(
        self, q: Array, rows: Array | None, shapes: bool, features: Array | None, seed: int
    ) -> tuple[Array, Array, Array, int]:
        lanes = _Lanes(self, len(q), shapes, seed)
        entries, left = self._entries(q, rows), np.arange(len(q))
        if fit_pays(features, left):
            assert features is not None
            some = left[::APART].copy()
            lanes(entries, some)
            left = np.delete(left, slice(None, None, APART))
            known = some[lanes.proved[some]]
            guessed = guessed_changes(features, known, lanes.found[known])
            if guessed is not None:
                lanes.changes = guessed
                lanes.warm /= guessed[some[lanes.last]]
        lanes(entries, left)
        found, ok, twists = lanes.found, lanes.proved, lanes.twists
        twists[lanes.flags[:, 1] > 0] = np.nan
        if self.free:  # the motions without stiffness must be as many as at home, here too
            ok = ok & (self._count(entries, FREE * found[:, 0]) == self.free)
        if self.programs.closing is not None:
            ok = ok & self._closed(q, rows)
        return found, ok, twists, lanes.steps

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
        before = mode_loop.TWIST - 1 + programs.twisted  # rows of outputs in front of the shift: b is one place
        block = side_by_side((before + len(programs.step.inputs), lanes))
        self.x, self.y, self.work = block[before:], block[: len(programs.step.outputs)], self.kernel.workspace()
        self.kept = np.random.default_rng(seed).uniform(-1, 1, (lanes, modes + 1, programs.size))
        self.warm, self.changes = np.full((lanes, modes), FIRST), np.ones((count, modes))
        self.reals = np.full((lanes, 4), mode_loop.WIDEST)
        self.reals[:, mode_loop.FREE] = mode_loop.NEXT
        self.reals[:, mode_loop.POLE] = 0.0 if programs.condensed else math.inf
        self.found, self.twists = np.empty((count, modes)), np.empty((count, modes, programs.twisted))
        self.flags, self.pinned = np.zeros((count, 2), dtype=np.int64), np.zeros((count, modes), dtype=np.int64)
        self.steps = 0

    @property
    def proved(self) -> Array:
        """Poses that are."""
        return self.flags[:, 0] > 0

    def __call__(self, entries: Array, which: Array) -> None:
        """Modes of some poses, one after the other in each lane."""
        finder, lanes, modes = self.finder, self.kernel.lanes, self.finder.modes
        whole, bounds = np.zeros((lanes, 9), dtype=np.int64), np.zeros((lanes, 2, modes + 1))
        places = np.array([array.ctypes.data for array in (self.x, self.y, self.work)], dtype=np.int64)
        self.steps += mode_loop.find_modes(
            self.kernel.address("many_in"),
            places,
            finder.programs.unknowns,
            *(entries, which, self.changes),
            finder.free,
            self.turn,
            *(self.x, self.y, finder.units, self.reals, np.zeros(lanes), whole, bounds, np.zeros((lanes, modes, 4))),
            *(self.warm, self.kept, self.found, self.twists, self.pinned, self.flags),
        )
        self.last = np.maximum(whole[:, mode_loop.LAST] - 1, 0)  # where lanes ended


def ordered(values: Array) -> Array:
    """An order of poses in which neighbours are alike: a space-filling curve along the directions of most change."""
    if len(values) < 3 or not values.shape[1]:
        return np.arange(len(values))
    low, high = values.min(axis=0), values.max(axis=0)
    moving = np.flatnonzero(high > low)
    if not len(moving):
        return np.arange(len(values))
    scaled = (values[:, moving] - low[moving]) / (high - low)[moving]
    scaled -= scaled.mean(axis=0)
    main = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, :DIRECTIONS]
    along = main.T @ scaled.T
    low, high = along.min(axis=1, keepdims=True), along.max(axis=1, keepdims=True)
    cells = np.minimum((along - low) * (2**BITS / np.maximum(high - low, 1e-300)), 2**BITS - 1).astype(np.int16)
    apart = np.array([sum((k >> bit & 1) << bit * len(cells) for bit in range(BITS)) for k in range(2**BITS)], np.int16)
    code = sum(apart[own] << k for k, own in enumerate(cells))
    return np.argsort(code, kind="stable")
