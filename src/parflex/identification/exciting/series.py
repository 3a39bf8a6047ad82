"""Fourier series of the motors that begin and end at rest, and are linear in free numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from parflex.records import Record

Array = np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class FourierSeries(Record):
    """q = start + sum a sin(2 pi k t/T) + b (cos(2 pi k t/T) - 1), of `motors`, with rates and accelerations zero at 0.

    Free numbers are (motors x (1 + 2 harmonics - 2)): the start, and coordinates of a and b in the plane of both
    conditions, in which a unit has the same acceleration whatever its harmonic.
    """

    time: float
    harmonics: int
    motors: int

    @property
    def free(self) -> int:
        """Free numbers of a motor."""
        return 2 * self.harmonics - 1

    @property
    def plane(self) -> Array:
        """Harmonics a and b (2N) per free number but the start."""
        k = np.arange(1, self.harmonics + 1)
        zero = np.zeros(self.harmonics)
        # in units of accelerations: sum k a = sum (k^2 a)/k, sum k^2 b
        conditions = np.array([np.concatenate([1 / k, zero]), np.concatenate([zero, np.ones(self.harmonics)])])
        return scipy.linalg.null_space(conditions) / np.tile(k**2, 2)[:, None]

    def rows(self, t: Array) -> tuple[Array, Array, Array]:
        """Positions, rates and accelerations of a motor at instants per free number."""
        w = 2 * np.pi * np.arange(1, self.harmonics + 1) / self.time
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        plane = self.plane

        def with_start(part: Array, start: float) -> Array:
            return np.concatenate([np.full((len(t), 1), start), part @ plane], axis=1)

        return (
            with_start(np.concatenate([s, c - 1], axis=1), 1.0),
            with_start(np.concatenate([w * c, -w * s], axis=1), 0.0),
            with_start(np.concatenate([-(w**2) * s, -(w**2) * c], axis=1), 0.0),
        )

    def moved(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """Positions, rates and accelerations of all motors (instants x motors)."""
        values = x.reshape(self.motors, self.free).T
        position, rate, acceleration = self.rows(t)
        return position @ values, rate @ values, acceleration @ values

    def back(self, t: Array, position: Array, rate: Array, acceleration: Array) -> Array:
        """Slopes by the free numbers, from those by positions, rates and accelerations."""
        p, v, a = self.rows(t)
        return (p.T @ position + v.T @ rate + a.T @ acceleration).T.ravel()

    def amplitudes(self, x: Array) -> tuple[Array, Array, Array]:
        """Start, sines and cosines of all motors."""
        values = x.reshape(self.motors, self.free)
        both = values[:, 1:] @ self.plane.T
        return values[:, 0], both[:, : self.harmonics], both[:, self.harmonics :]

    def shrunk(self, x: Array, factor: float) -> Array:
        """The same about the mean of the motion, so much smaller."""
        values = x.reshape(self.motors, self.free).copy()
        middle = values[:, 0] - (values[:, 1:] @ self.plane.T)[:, self.harmonics :].sum(axis=1)
        values[:, 1:] *= factor
        values[:, 0] = middle + (values[:, 1:] @ self.plane.T)[:, self.harmonics :].sum(axis=1)
        return values.ravel()
