"""A cubic beam on a joint with dry friction, to first order, from event to event in modes: clamped while it sticks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.optimize import brentq

Array = np.ndarray


@dataclass(frozen=True)
class RubbingBeam:
    """Mass per length, bending stiffness, length, friction of the joint in motion and at rest, force at the tip."""

    weight: float
    stiffness: float
    length: float
    coulomb: float
    static: float
    force: float

    @property
    def matrices(self) -> tuple[Array, Array, Array]:
        """Mass, stiffness and load of (angle, deflection of the tip, slope of the tip)."""
        L, m = self.length, self.weight
        own = m * L / 420 * np.array([[156, -22 * L], [-22 * L, 4 * L * L]])
        # moments of the shape functions of the tip, x N(x): of deflection 7 L^2/20, of slope -L^3/20
        with_angle = m * np.array([7 * L**2 / 20, -(L**3) / 20])
        M = np.block([[np.array([[m * L**3 / 3]]), with_angle[None]], [with_angle[:, None], own]])
        K = np.zeros((3, 3))
        K[1:, 1:] = self.stiffness / L**3 * np.array([[12, -6 * L], [-6 * L, 4 * L * L]])
        return M, K, self.force * np.array([L, 1.0, 0.0])

    def run(self, times: Array) -> tuple[Array, list[tuple[float, float | None]]]:
        """Angles at times from rest, undeformed, and when the joint stuck and broke away."""
        M, K, f = self.matrices
        q, v, t, found = np.zeros(3), np.zeros(3), 0.0, np.zeros(len(times))
        sticks: list[tuple[float, float | None]] = []
        fine = 0.02 * 2 * np.pi / np.sqrt(scipy.linalg.eigh(K, M, eigvals_only=True).max())
        side = self._begins(M, K, f, q)
        while True:
            motion = _Sines(M, K, f, q, v, side * self.coulomb, clamped=side == 0)
            end = _root(partial(self._ends, motion, side), times[-1] - t, fine)
            rows = (times >= t) & (times <= t + (np.inf if end is None else end))
            found[rows] = [motion(s - t)[0][0] for s in times[rows]]
            if side == 0:
                sticks.append((t, None if end is None else t + end))
            if end is None:
                return found, sticks
            (q, v), t = motion(end), t + end
            v[0] = 0.0
            side = np.sign(motion.moment(end)) if side == 0 else self._begins(M, K, f, q)

    def _ends(self, motion: _Sines, side: float, s: float) -> float:
        """Positive where the joint breaks away, or has turned."""
        return abs(motion.moment(s)) - self.static if side == 0 else -side * motion(s)[1][0]

    def _begins(self, M: Array, K: Array, f: Array, q: Array) -> float:
        """Side to which a joint at rest slides; 0: it sticks."""
        moment = _clamped_moment(M, K, f, q)
        return 0.0 if abs(moment) <= self.static else float(np.sign(moment))


def _clamped_moment(M: Array, K: Array, f: Array, q: Array) -> float:
    """What friction has to bear while the joint does not turn."""
    bent = np.linalg.solve(M[1:, 1:], f[1:] - (K @ q)[1:])
    return float(f[0] - M[0, 1:] @ bent)


class _Sines:
    """Motion from a state under a constant moment of friction, or clamped."""

    def __init__(self, M: Array, K: Array, f: Array, q: Array, v: Array, moment: float, clamped: bool) -> None:
        self.free = slice(1, 3) if clamped else slice(0, 3)
        self.all, self.q = (M, K, f), q
        load = (f - np.array([moment, 0, 0]))[self.free]
        squares, self.shapes = scipy.linalg.eigh(K[self.free, self.free], M[self.free, self.free])
        self.w = np.sqrt(np.where(squares > 1e-6 * squares.max(), squares, 0.0))
        m = M[self.free, self.free]
        self.first, self.rate = self.shapes.T @ m @ q[self.free], self.shapes.T @ m @ v[self.free]
        self.push = self.shapes.T @ load

    def __call__(self, s: float) -> tuple[Array, Array]:
        x, xd = np.zeros(len(self.w)), np.zeros(len(self.w))
        for k, w in enumerate(self.w):
            if w == 0:
                x[k] = self.first[k] + self.rate[k] * s + self.push[k] * s * s / 2
                xd[k] = self.rate[k] + self.push[k] * s
            else:
                mean = self.push[k] / w**2
                a, b = self.first[k] - mean, self.rate[k] / w
                x[k] = mean + a * np.cos(w * s) + b * np.sin(w * s)
                xd[k] = w * (b * np.cos(w * s) - a * np.sin(w * s))
        q, v = self.q.copy(), np.zeros(3)
        q[self.free], v[self.free] = self.shapes @ x, self.shapes @ xd
        return q, v

    def moment(self, s: float) -> float:
        return _clamped_moment(*self.all, self(s)[0])


def _root(event: Any, end: float, fine: float) -> float | None:
    """The first time behind the start at which the event is positive."""
    last = min(1e-3 * fine, end)
    for s in np.arange(fine, end + fine, fine):
        s = min(s, end)
        if event(s) > 0:
            return float(brentq(event, last, s, xtol=1e-15)) if event(last) <= 0 else last
        last = s
    return None
