"""Couplings with play at rest: on which flank each of them is loaded, for many rows at once.

As `equilibrium` finds it for one pose: without play the loads say which way each coupling is stretched, with that
flank alone, which pushes and pulls, they rest on it. A row counts where all its couplings then press their flanks.
"""

from __future__ import annotations

import numpy as np

from parflex.maps.rest.rest_solver import AtRest, RestSolver
from parflex.statics.equilibrium import FINE, agrees_with_tangent

Array = np.ndarray


class Flanks:
    """Rows of positions with the flanks that loads press; `begun` are these at rest on them."""

    def __init__(self, solver: RestSolver, start: Array, w: Array, plays: Array) -> None:
        self.solver, self.half, self.count = solver, plays / 2, plays.shape[1]
        stretch = self._stretch(start)
        side = np.sign(stretch) * self.half
        inside = np.abs(stretch) <= self.half
        self.flank = np.where(inside, 0.0, side)
        self.begun, self.sure = start.copy(), np.ones(len(start), dtype=bool)
        self._put()
        some = inside.any(axis=1)
        for last in (False, True):  # which flanks are pressed, then where they come to rest
            rows = np.flatnonzero(some & self.sure)
            if not len(rows):
                return
            rest = solver(self.begun[rows], w[rows])
            self.sure[rows] = rest.ok
            self.begun[rows[rest.ok]] = rest.q[rest.ok]
            if not last:
                stretch = self._stretch(self.begun)
                self.sure &= ~some | (np.abs(stretch) > FINE).any(axis=1)  # else gears may rest in their play
                self.flank = np.where(inside, np.sign(stretch) * self.half, self.flank)
                self._put()

    def _put(self) -> None:
        self.begun[:, -self.count :] = self.flank

    def _stretch(self, wide: Array) -> Array:
        """From the middle of the play."""
        return np.asarray(self.solver.programs.stretches(wide)[:, 0] + wide[:, -self.count :])

    def hold(self, rest: AtRest) -> Array:
        """Rows that rest where their couplings press the flanks that were taken, by few steps through stable states."""
        pressed = np.sign(self.flank) * self._stretch(rest.q) - self.half
        near = rest.ok & rest.steady & agrees_with_tangent(self.begun, rest.told, rest.q)
        return np.asarray(self.sure & near & (pressed > FINE).all(axis=1))
