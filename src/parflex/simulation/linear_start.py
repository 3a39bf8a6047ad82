"""The linear model at the start of a run, by differences: stiffness, damping, and accelerations by inputs."""

from __future__ import annotations

import numpy as np

from parflex.integrators.driver import System, new_work
from parflex.trajectories.polynomials import Polynomials

Array = np.ndarray
WAY = 1e-6  # of differences, in units of the rates
FAST = 1e3  # rates of differences, in their units: friction that is the same at any speed damps nothing beside it
ALL_HOLD = 1e30  # times what joints bear at rest


class LinearStart:
    """The model about a state, at rest and with the inputs of the start, by differences.

    Joints with friction slide without it, or are `stuck`.
    """

    def __init__(self, system: System, q: Array, qd: Array, stuck: bool = False) -> None:
        self.system, self.q, self.qd = system, q, qd
        self.work = new_work(system, 1, 1)
        if stuck:
            self._stick()
        self.first = np.zeros((1, 6, system.coefficients.shape[2]))
        self.first[0, 0] = Polynomials(system.breaks, system.coefficients).at(0.0, behind=True)
        self.held = self._with(self.first)
        self.rest = self._evaluated(q, np.zeros_like(qd), self.held)

    def _stick(self) -> None:
        """Let all joints with friction stick, whatever they bear."""
        from parflex.integrators.events import settle

        self.system = self.system._replace(friction=self.system.friction * ALL_HOLD)
        settle(self.system, self.work, 0.0, self.q.copy(), np.zeros_like(self.qd))

    def _with(self, inputs: Array) -> System:
        """The system with constant inputs."""
        return self.system._replace(breaks=np.zeros(1), coefficients=inputs)

    def _evaluated(self, q: Array, qd: Array, system: System) -> Array:
        """Closed positions, their rates of change, and free accelerations behind them, at t = 0."""
        from parflex.integrators.common import record

        x = np.empty(self.work.x.shape[1] - len(system.constants))
        y = np.empty(system.outputs + 2)
        record(system, self.work, 0.0, q.copy(), qd.copy(), x, y)
        nq = system.positions
        return np.concatenate([y[: 2 * nq], y[2 * nq + system.free]])

    def stiffness(self) -> Array:
        """d(acceleration)/d(position), each position along all that its rate moves."""
        system, nq, still = self.system, self.system.positions, np.zeros_like(self.qd)
        columns = []
        for k, place in enumerate(system.free):
            rate = still.copy()
            rate[place] = 1.0
            way = system.units[k] * WAY * self._evaluated(self.q, rate, self.held)[nq : 2 * nq]
            there, back = (self._evaluated(self.rest[:nq] + side * way, still, self.held) for side in (1, -1))
            columns.append((there - back)[2 * nq :] / (2 * WAY * system.units[k]))
        found = np.array(columns).T
        return np.where(np.isfinite(found), found, 0.0)

    def damping(self, shapes: Array, which: Array) -> Array:
        """d(acceleration)/d(rate) between some of the modes, at rates beside which a constant friction is nothing.

        What grows with the square of the rates is the same in both directions and drops out.
        """
        if not len(which):
            return np.zeros((0, 0))
        system, nq, columns = self.system, self.system.positions, []
        for k, place in enumerate(system.free):
            rate = np.zeros_like(self.qd)
            rate[place] = FAST * system.units[k]
            there, back = (self._evaluated(self.q, side * rate, self.held) for side in (1, -1))
            columns.append((there - back)[2 * nq :] / (2 * FAST * system.units[k]))
        found = np.array(columns).T
        return np.linalg.solve(shapes, np.where(np.isfinite(found), found, 0.0) @ shapes[:, which])[which]

    def effects(self, channels: int, motors: int) -> Array:
        """Free accelerations by one unit of each input: by accelerations of so many motors that follow a motion."""
        nq, still, found = self.system.positions, np.zeros_like(self.qd), []
        for j in range(channels):
            unit = self.first.copy()
            unit[0, 2 if j < motors else 0, j] += 0.5 if j < motors else 1.0
            found.append((self._evaluated(self.q, still, self._with(unit)) - self.rest)[2 * nq :])
        effects = np.array(found).reshape(channels, len(self.system.free))
        return np.where(np.isfinite(effects), effects, 0.0)

    def pushes(self, effects: Array, given: Polynomials, motors: int, time: float) -> tuple[Array, Array, Array]:
        """Accelerations that jump, jumps of velocity, and accelerations whose slope jumps, one row for each cause."""
        start = self._evaluated(self.q, self.qd, self.system)[2 * self.system.positions :]
        accelerations = [np.where(np.isfinite(start), start, 0.0)]
        velocities, slopes = [np.zeros(len(start))], [np.zeros(len(start))]
        for j, effect in enumerate(effects):
            moved = j < motors
            accelerations.append(effect * _largest(given, 2 if moved else 0, j, time))
            velocities.append(effect * (_largest(given, 1, j, time) if moved else 0.0))
            slopes.append(effect * _largest(given, 3 if moved else 1, j, time))
        return np.array(accelerations), np.array(velocities), np.array(slopes)


def _largest(given: Polynomials, order: int, channel: int, time: float) -> float:
    """The largest jump of a derivative on the way."""
    one = Polynomials(given.breaks, given.coefficients[:, :, channel : channel + 1])
    times, sizes = one.jumps(order)
    inside = sizes[(times > 0) & (times < time)]
    return float(np.abs(inside).max(initial=0.0))
