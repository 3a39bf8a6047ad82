"""Errors between a record and the robot file, with another unit, sign or zero."""

from __future__ import annotations

import numpy as np

from parflex.errors import ParflexError
from parflex.identification.hypotheses import Hypothesis
from parflex.identification.payloads import payload_parameters
from parflex.identification.preprocess import STICKS, FilterChoice, butterworth, filtered_motion, motors_with_friction
from parflex.identification.recordings import Recording
from parflex.identification.regressor import Regressor
from parflex.identification.regressor_columns import BaseColumns

Array = np.ndarray
FAINT = 0.05  # of the largest efforts: those of a motor count as so large at least
INSTANTS, FEWER = 300, 80  # of a record, and of it without those at which motors may stick


class FileTrial:
    """A record, and how far the file is from it with any hypothesis."""

    def __init__(self, regressor: Regressor, base: BaseColumns, record: Recording, choice: FilterChoice) -> None:
        self.regressor, self.base, self.record = regressor, base, record
        smooth = filtered_motion(record, choice)
        instants = _sliding(regressor, smooth.rate)
        chosen = instants[np.unique(np.linspace(0, len(instants) - 1, INSTANTS).astype(int))]
        effort = choice.inside(butterworth(record.effort, 2 * choice.cutoff * record.step))
        self.position, self.rate, self.acceleration, self.effort = (
            part[chosen] for part in (smooth.position, smooth.rate, smooth.acceleration, effort)
        )
        self.theta = np.array([one.value for one in regressor.unknowns])
        for column, more in (payload_parameters(regressor, record.payload) if record.payload else {}).items():
            self.theta[column] += more

    def rows(self, given: Hypothesis) -> tuple[Array, Array, Array] | None:
        """Rows of the base parameters, what is measured and what the file says; None where loops do not close."""
        own = slice(None) if given.positions_of is None else given.positions_of
        position, rate, acceleration = (values[:, own] for values in (self.position, self.rate, self.acceleration))
        effort = self.effort[:, slice(None) if given.efforts_of is None else given.efforts_of]
        q = (position - self.record.offset) * given.position + self.record.offset + given.offset
        factor = given.position / given.time
        try:
            moving = self.regressor.moving(q, rate * factor, acceleration * factor / given.time)
        except ParflexError:
            return None
        W, known = self.regressor.of(moving)
        if not np.isfinite(W).all():
            return None
        return (
            W[:, :, self.base.kept],
            self.regressor.measured(moving, effort * given.effort) - known,
            W @ self.theta,
        )

    def off(self, given: Hypothesis) -> float:
        """Share of the efforts that the file does not explain, root mean square over motors."""
        found = self.rows(given)
        return np.inf if found is None else float(np.linalg.norm((found[1] - found[2]) / _sizes(found[1])))

    def unexplained(self, given: Hypothesis) -> float:
        """Share of the efforts that no parameters explain."""
        found = self.rows(given)
        if found is None:
            return np.inf
        W, y, _ = found
        sizes = _sizes(y)
        flat, column = (W / sizes[:, None]).reshape(-1, W.shape[2]), (y / sizes).ravel()
        length = np.maximum(np.linalg.norm(flat, axis=0), 1e-300)
        found_values = np.linalg.lstsq(flat / length, column, rcond=1e-10)[0]
        return float(np.linalg.norm(column - flat / length @ found_values))


def _sliding(regressor: Regressor, rate: Array) -> Array:
    """Instants at which no motor with Coulomb friction is slow, where it may stick; all, where these are too few."""
    rubbing, speed = motors_with_friction(regressor), np.abs(rate)
    fast = np.flatnonzero((speed >= STICKS * speed.max(axis=0))[:, rubbing].all(axis=1))
    return fast if len(fast) >= FEWER else np.arange(len(rate))


def _sizes(effort: Array) -> Array:
    """Norm of each motor's efforts, times the root of their number: shares of motors count alike."""
    sizes = np.linalg.norm(effort, axis=0)
    return np.maximum(sizes, max(FAINT * float(sizes.max()), 1e-300)) * np.sqrt(effort.shape[1])
