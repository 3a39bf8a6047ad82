"""Lowest modes of a robot at many poses, each with its own design if need be: arrays around the compiled loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from parflex.codegen.compile import BLOCK
from parflex.designs.design_numbers import DesignNumbers
from parflex.maps.batches import BatchProgram
from parflex.maps.engine import mode_loop
from parflex.maps.engine.kept_steps import step_kernels
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
        self.numbers = [int(name[7:-1]) for name in names if name.startswith("design[")]
        self.placed = [k for k, name in enumerate(names) if name.startswith("q[")]
        self.varied = [k for k, name in enumerate(names) if name.startswith("design[")]

    def __call__(self, q: Array, rows: Array | None = None, shapes: bool = False) -> FoundModes:
        """Modes at positions of the rigid tree; `rows` are the numbers of the designs of the poses.

        Without `shapes` the twists are rough.
        """
        count, order = len(q), ordered(q[:, self.positions])
        x, ok = np.full((count, self.modes), np.nan), np.zeros(count, dtype=bool)
        twists, steps = np.full((count, self.modes, self.programs.twisted), np.nan), 0
        for start in range(0, count, SIDE_BY_SIDE):
            part = order[start : start + SIDE_BY_SIDE]
            x[part], ok[part], twists[part], more = self._some(q[part], None if rows is None else rows[part], shapes)
            steps += more
        failed = np.flatnonzero(~ok)
        if 0 < len(failed) < count:  # once more from other starts
            own = self._some(q[failed], None if rows is None else rows[failed], shapes, AGAIN)
            x[failed], ok[failed], twists[failed] = own[:3]
            steps += own[3]
        return FoundModes(x, ok, twists, steps)

    def _entries(self, q: Array, rows: Array | None) -> Array:
        """What steps take of each pose; in blocks that stay in the cache."""
        kernel, count = self.kernels[0], len(q)
        entries = np.empty((count, len(self.programs.pose.outputs)))
        some = kernel.lanes * BLOCK
        for start in range(0, count, some):
            here = slice(start, min(start + some, count))
            inputs = np.empty((here.stop - start, len(self.programs.pose.inputs)))
            inputs[:, self.placed] = q[here][:, self.positions]
            if self.designs is not None:
                assert rows is not None
                inputs[:, self.varied] = self.designs.values[rows[here]][:, self.numbers]
            entries[here] = kernel.many(inputs)
        return entries

    def _some(self, q: Array, rows: Array | None, shapes: bool, seed: int = 0) -> tuple[Array, Array, Array, int]:
        programs, kernel = self.programs, self.kernels[1]
        lanes, size, count = kernel.lanes, programs.size, len(q)
        entries = self._entries(q, rows)
        before = mode_loop.TWIST - 1 + programs.twisted  # rows of outputs in front of the shift: b is one place
        block = np.zeros((before + len(programs.step.inputs), lanes))
        x, y = block[before:], block[: len(programs.step.outputs)]
        kept = np.random.default_rng(seed).uniform(-1, 1, (lanes, self.modes + 1, size))
        warm = np.full((lanes, self.modes), FIRST)
        found, twists = np.empty((count, self.modes)), np.empty((count, self.modes, programs.twisted))
        flags, pinned = np.zeros((count, 2), dtype=np.int64), np.zeros((count, self.modes), dtype=np.int64)
        whole, bounds = np.zeros((lanes, 8), dtype=np.int64), np.zeros((lanes, 2, self.modes + 1))
        reals = np.full((lanes, 3), mode_loop.WIDEST)
        reals[:, mode_loop.POLE] = 0.0 if programs.condensed else math.inf
        work = kernel.workspace()
        places = np.array([array.ctypes.data for array in (x, y, work)], dtype=np.int64)
        steps = mode_loop.find_modes(
            kernel.address("many_in"),
            places,
            programs.unknowns,
            entries,
            self.free,
            mode_loop.TURNED if shapes else math.inf,
            *(x, y, self.units, reals, np.zeros(lanes), whole, bounds, warm, kept, found, twists, pinned, flags),
        )
        twists[flags[:, 1] > 0] = np.nan
        ok = flags[:, 0] > 0
        if self.free:  # the motions without stiffness must be as many as at home, here too
            ok = ok & (self._count(entries, FREE * found[:, 0]) == self.free)
        if programs.closing is not None:
            ok = ok & self._closed(q, rows)
        return found, ok, twists, steps

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


def ordered(values: Array) -> Array:
    """An order of poses in which neighbours are alike: a space-filling curve along the directions of most change."""
    if len(values) < 3 or not values.shape[1]:
        return np.arange(len(values))
    size = np.ptp(values, axis=0)
    scaled = (values - values.mean(axis=0))[:, size > 0] / size[size > 0]
    if not scaled.shape[1]:
        return np.arange(len(values))
    main = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, :DIRECTIONS]
    along = scaled @ main
    span = np.maximum(np.ptp(along, axis=0), 1e-300)
    cells = np.minimum((along - along.min(axis=0)) / span * 2**BITS, 2**BITS - 1).astype(np.int64)
    code = np.zeros(len(values), dtype=np.int64)
    for bit in range(BITS):
        for k in range(cells.shape[1]):
            code |= ((cells[:, k] >> bit) & 1) << (bit * cells.shape[1] + k)
    return np.argsort(code, kind="stable")
