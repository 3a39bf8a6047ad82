"""From speeds along a path to s as a function of time: constant accelerations, averaged over a short window.

The mean of s over a window stays on the path and makes its acceleration continuous; the motion takes the width of the
window longer. Efforts become means too, up to the square of the width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.records import Record
from parflex.simulation.inputs.polynomials import Polynomials
from parflex.simulation.inputs.quintics import quintic_powers
from parflex.simulation.time_optimal.phase_plane import Profile

Array = np.ndarray
TINY = 1e-9  # of the time: knots that are nearer to each other are one


@dataclass(frozen=True, eq=False, repr=False)
class TimeLaw(Record):
    """s with speed and acceleration at times from 0 to `end`."""

    t: Array  # knots of the profile
    s: Array
    y: Array
    u: Array
    width: float

    @property
    def end(self) -> float:
        """Duration."""
        return float(self.t[-1]) + self.width

    def knots(self) -> Array:
        """Times between which s is a cubic."""
        if not self.width:
            return self.t
        every = np.sort(np.concatenate([self.t, self.t + self.width]))
        return every[np.concatenate([[True], np.diff(every) > TINY * self.end])]

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Place, speed and acceleration; without a window the acceleration is that behind a knot."""
        if not self.width:
            s, y, _ = self._raw(t)
            inside = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.u) - 1)
            return s, y, self.u[inside]
        (s1, y1, S1), (s0, y0, S0) = self._raw(t), self._raw(t - self.width)
        return (S1 - S0) / self.width, (s1 - s0) / self.width, (y1 - y0) / self.width

    def _raw(self, t: Array) -> tuple[Array, Array, Array]:
        """Place, speed and integral of the place, at rest before the start and behind the end where it has no speed."""
        k = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.u) - 1)
        inside = np.clip(t, 0.0, self.t[-1])
        h = inside - self.t[k]
        s = self.s[k] + h * (self.y[k] + h * self.u[k] / 2)
        S = self._area[k] + h * (self.s[k] + h * (self.y[k] / 2 + h * self.u[k] / 6))
        return s, self.y[k] + h * self.u[k], S + (t - inside) * s

    @property
    def _area(self) -> Array:
        h = np.diff(self.t)
        parts = h * (self.s[:-1] + h * (self.y[:-1] / 2 + h * self.u / 6))
        return np.concatenate([[0.0], np.cumsum(parts)])

    def when(self, s: Array) -> Array:
        """Times at which places are passed."""
        t = np.interp(s, self.s, self.t + self.width / 2)
        low, high = np.zeros_like(t), np.full_like(t, self.end)
        for _ in range(60):  # bisection with Newton steps inside: near the ends the speed vanishes
            place, speed, _ = self.at(t)
            low, high = np.where(place <= s, t, low), np.where(place <= s, high, t)
            step = t + np.divide(s - place, speed, out=np.zeros_like(t), where=speed > 0)
            t = np.where((step > low) & (step < high), step, (low + high) / 2)
        return t


def law_of(profile: Profile, share: float, width: float | None) -> TimeLaw:
    """The law of a profile; `width` of the window in s, or a share of the time. Only from rest to rest there is one."""
    y = profile.y
    t = np.concatenate([[0.0], np.cumsum(2 * np.diff(profile.s) / (y[1:] + y[:-1]))])
    resting = y[0] == 0 and y[-1] == 0
    chosen = (share * float(t[-1]) if width is None else width) if resting else 0.0
    return TimeLaw(t, profile.s, y, profile.u, chosen)


def motors_in_time(law: TimeLaw, motors: Polynomials) -> Polynomials:
    """Motors along the path as quintics of time, exact up to accelerations at both ends of pieces."""
    knots = law.knots()
    h = np.diff(knots)
    middle = law.at(knots[:-1] + h / 2)[2]  # constant in a piece where there is no window
    ends = []
    for t in (knots[:-1], knots[1:]):
        s, y, u = law.at(t)
        u = u if law.width else middle
        Q, Q1, Q2 = (motors.at(s, order) for order in range(3))
        ends.append((Q, Q1 * y[:, None], Q2 * (y**2)[:, None] + Q1 * u[:, None]))
    size = h[:, None]
    pairs = [(first * size**k, last * size**k) for k, (first, last) in enumerate(zip(*ends, strict=True))]
    coefficients = np.zeros((len(knots), 6, motors.channels))
    for power, values in enumerate(quintic_powers(*pairs)):
        coefficients[:-1, power] = values / size**power
    coefficients[-1, 0] = motors.at(np.array([law.s[-1]]))[0]
    return Polynomials(knots, coefficients)
