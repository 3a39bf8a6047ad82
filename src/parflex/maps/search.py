"""Modes of one block of the small problem at many poses: arrays for the compiled loops, and what they found."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from parflex.codegen.compile import Kernel
from parflex.codegen.program import Program

Array = np.ndarray
ACCURATE = 1e-9  # relative half width in x of the interval that is proved to hold a mode: 2.5e-8 Hz at 50 Hz
GRID = 14  # values of x, evenly spaced in frequency, at which modes are counted first
TYPICAL = 64  # poses whose pivots tell how large pivots are


class Elimination:
    """The program of a block: x, entries of poses and scales in; signs, determinant and pivots out."""

    def __init__(self, size: int, where: Array, program: Program) -> None:
        self.size, self.where, self.program = size, where, program

    @cached_property
    def kernel(self) -> Kernel:
        """Machine code; kept on disk."""
        return Kernel(self.program)

    def for_loops(self, rows: Array) -> tuple[Any, ...]:
        """What compiled loops take: address, space, which entries of a pose go in, number of unknowns, inputs, outputs.

        Pivots are scaled by what they are at x = 0 in a typical pose.
        """
        kernel, some = self.kernel, rows[:: max(1, len(rows) // TYPICAL)]
        inputs = np.concatenate(
            [np.zeros((len(some), 1)), some[:, self.where], np.ones((len(some), self.size))], axis=1
        )
        pivots = kernel.many(inputs)[:, 2:]
        x, y = (np.zeros((count, kernel.lanes)) for count in (inputs.shape[1], 2 + self.size))
        x[1 + len(self.where) :] = 1.0 / np.median(np.abs(pivots), axis=0)[:, None]
        return kernel.address("many_in"), kernel.workspace(), self.where, self.size, x, y


class Search:
    """Modes of one block at some poses, given by rows of entries."""

    def __init__(self, block: Elimination, rows: Array, top: float) -> None:
        from parflex.maps import root_loop  # numba takes a third of a second to load

        self.loops, self.rows, self.program = root_loop, rows, block.for_loops(rows)
        self.sizes = 1.0 / self.program[4][-block.size :, 0]  # typical pivots
        self.points = np.maximum(top * (np.arange(GRID + 1) / GRID) ** 2, 1e-9 * top)
        self.numbers = np.zeros((len(rows), GRID + 1), dtype=np.int64)
        self.values = np.zeros((len(rows), GRID + 1))
        root_loop.grid(self.program, rows, self.points, self.numbers, self.values)

    def upper(self, modes: int) -> Array:
        """Values of x that the modes do not exceed (poses x modes); infinite beyond the band."""
        reached = [self.numbers > j for j in range(modes)]
        return np.stack([np.where(one[:, -1], self.points[one.argmax(axis=1)], np.inf) for one in reached], axis=1)

    def roots(self, modes: int, limit: Array) -> Array:
        """The modes that can be below the limit (poses x modes): infinite beyond, not a number if one is not sure."""
        found = np.full((len(self.rows), modes), np.inf)
        self.evaluations = self.loops.roots(
            self.program, self.rows, self.points, self.numbers, self.values, limit, ACCURATE, found
        )
        return found
