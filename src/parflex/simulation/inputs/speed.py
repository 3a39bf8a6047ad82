"""Way along a path in time: smooth ramps up and down, and stops between stretches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.simulation.inputs.quintics import smooth_step, smooth_step_integral

Array = np.ndarray


@dataclass(frozen=True)
class Stretch:
    """From rest at `begin` over a length (infinite: without end) at a speed, with ramps that are smooth steps."""

    begin: float
    length: float
    speed: float
    ramp: float

    @property
    def top(self) -> float:
        """Speed between the ramps; less than asked where the stretch is shorter than they are."""
        return min(self.speed, self.length / self.ramp)

    @property
    def end(self) -> float:
        """When it comes to rest: each ramp covers half the way it would at full speed."""
        return self.begin + self.length / self.top + self.ramp

    def times(self) -> list[float]:
        """Ends of its parts."""
        ramps = [self.begin, self.begin + self.ramp]
        return [*ramps, self.end - self.ramp, self.end] if np.isfinite(self.length) else ramps

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Way, speed and acceleration."""
        way, speed, acceleration = _ramp(t - self.begin, self.ramp, self.top)
        if not np.isfinite(self.length):
            return way, speed, acceleration
        back = _ramp(t - (self.end - self.ramp), self.ramp, self.top)
        return way - back[0], speed - back[1], acceleration - back[2]


def _ramp(t: Array, ramp: float, top: float) -> tuple[Array, Array, Array]:
    """From rest at t = 0 to a speed, which is kept."""
    u = np.clip(t / ramp, 0.0, 1.0)
    share, rate, _ = smooth_step(u, ramp)
    way = top * ramp * smooth_step_integral(u) + top * np.maximum(t - ramp, 0.0)
    return way, top * share, top * rate
