"""Joint motion of the modes that do not vibrate within a run: speeds and displacements of coordinates.

Away from an equilibrium the linear model has no symmetry, and modes of nearly equal frequency have nearly equal shapes.
Each alone moves the robot much farther than all of them together; they are added with their signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.records import Record

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class SlowMotion(Record):
    """Modes that do not vibrate: shapes (coordinate, mode), what causes put into each, and for how long that acts."""

    shapes: Array
    pushed: Array  # accelerations (cause, mode)
    thrown: Array  # jumps of velocity
    jerked: Array  # jumps of the slope of accelerations
    begun: Array  # rates of the start (mode)
    lasting: Array  # s (mode)
    gains: Array  # accelerations by inputs (mode, channel)

    def _of_coordinates(self, parts: Array, power: int) -> Array:
        """Of all causes, whose signs are not known to each other, over so many integrals in time."""
        return np.abs((parts * self.lasting**power) @ self.shapes.T).sum(axis=0)

    @property
    def speeds(self) -> Array:
        """What coordinates get."""
        return self._of_coordinates(self.pushed, 1) + self._of_coordinates(self.thrown, 0)

    @property
    def ways(self) -> Array:
        """How far that takes them."""
        return self._of_coordinates(self.pushed, 2) + self._of_coordinates(self.thrown, 1)

    @property
    def accelerations(self) -> Array:
        """What they feel: jumps of velocity spread over the time that they act for."""
        pushed, thrown, jerked = (
            self._of_coordinates(parts, power)
            for parts, power in ((self.pushed, 0), (self.thrown, -1), (self.jerked, 1))
        )
        return pushed + thrown + jerked

    @property
    def kept_speeds(self) -> Array:
        """With which coordinates begin and go on."""
        return self._of_coordinates(self.begun[None], 0)

    @property
    def coordinate_gains(self) -> Array:
        """Accelerations of coordinates by inputs (coordinate, channel)."""
        return (self.shapes @ self.gains).real
