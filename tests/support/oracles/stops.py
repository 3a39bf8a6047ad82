"""Stops: a ball between two springs in closed form, and a five-bar linkage with a stop in any joint by its Lagrangian.

A stop pushes with K depth + C rate while its joint is beyond the limit and that is positive. Between two changes of who
pushes, the ball obeys a linear equation, solved exactly; the linkage is integrated by the explicit method of order
eight of Dormand and Prince with terminal events. Shares no code with the package.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

Array = np.ndarray
LOOK = 400  # points of a phase at which a change of sign is looked for


@dataclass(frozen=True)
class Met:
    joint: str
    side: str
    time: float
    speed: float


@dataclass(frozen=True)
class Ball:
    """A mass on a spring that rests at zero, with stops at both limits."""

    mass: float
    spring: float
    limits: tuple[float, float]
    stiffness: float
    damping: float = 0.0
    pull: float = 0.0  # a constant force

    def _phase(self, side: int, x: float, v: float) -> Callable[[float], tuple[float, float]]:
        """Position and velocity after a time, with the stop of a side (-1, 0 none, 1) pushing or not."""
        k = self.spring + (self.stiffness if side else 0.0)
        limit = self.limits[0] if side < 0 else self.limits[1]
        push = self.pull + (self.stiffness * limit if side else 0.0)
        m, c = self.mass, self.damping if side else 0.0
        if k == 0:
            a = push / m
            return lambda t: (x + v * t + a * t * t / 2, v + a * t)
        rest, decay = push / k, c / (2 * m)
        w = math.sqrt(k / m - decay * decay)
        A, B = x - rest, (v + decay * (x - rest)) / w

        def at(t: float) -> tuple[float, float]:
            e, s, o = math.exp(-decay * t), math.sin(w * t), math.cos(w * t)
            y = e * (A * o + B * s)
            return rest + y, -decay * y + w * e * (B * o - A * s)

        return at

    def _changes(self, side: int, x: float, v: float) -> float:
        """Positive while the phase goes on."""
        low, high = self.limits
        if not side:
            return min(high - x if v > 0 or x < high else 1.0, x - low if v < 0 or x > low else 1.0)
        depth, rate = (x - high, v) if side > 0 else (low - x, -v)
        return self.stiffness * depth + self.damping * rate

    def _left(self, t: float, side: int, at: Callable[[float], tuple[float, float]]) -> float:
        return self._changes(side, *at(t))

    def run(self, time: float, x: float, v: float) -> tuple[list[Met], Callable[[float], tuple[float, float]]]:
        """The stops that were met until a time, and position and velocity in time."""
        period = 2 * math.pi * math.sqrt(self.mass / (self.spring + self.stiffness))
        now, side, met = 0.0, 0, []
        parts: list[tuple[float, Callable[[float], tuple[float, float]]]] = []
        while now < time:
            at = self._phase(side, x, v)
            parts.append((now, at))
            step = period / LOOK if side else min(period, (time - now)) / 10
            t, first = step, self._changes(side, *at(step / 7))
            while now + t < time + step and self._changes(side, *at(t)) * first > 0:
                t += step
            if now + t >= time + step:
                break
            low = t - step + (step / 7 if t == step else 0)
            t = float(brentq(self._left, low, t, args=(side, at), xtol=1e-15, rtol=1e-15))
            x, v = at(t)
            now += t
            if side:
                side = 0
            else:
                side = 1 if v > 0 else -1
                met.append(Met("ball", "upper" if side > 0 else "lower", now, abs(v)))

        def state(when: float) -> tuple[float, float]:
            begin, at = [part for part in parts if part[0] <= when][-1]
            return at(when - begin)

        return [one for one in met if one.time <= time], state


@dataclass(frozen=True)
class FiveBar:
    """Two legs of two bars each that meet; angles (left, left, right, right) from the x axis, in the plane."""

    base: float = 0.12  # half the distance of the shoulders
    first: float = 0.3
    second: float = 0.4
    line_mass: float = 1.08
    motor: float = 0.01
    gravity: float = 9.81

    def _leg(self, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """Mass matrix and forces of a leg; Jacobian of its tip and what of its acceleration comes of the rates."""
        a, b = q
        l1, l2, m1, m2, g = self.first, self.second, self.line_mass * self.first, self.line_mass * self.second, 9.81
        mixed = m2 * l1 * l2 / 2
        M = np.array([[m1 * l1**2 / 3 + m2 * l1**2 + self.motor, mixed * math.cos(a - b)],
                      [mixed * math.cos(a - b), m2 * l2**2 / 3]])  # fmt: skip
        f = np.array([-mixed * math.sin(a - b) * v[1] ** 2 - (m1 / 2 + m2) * l1 * g * math.cos(a),
                      mixed * math.sin(a - b) * v[0] ** 2 - m2 * l2 / 2 * g * math.cos(b)])  # fmt: skip
        J = np.array([[-l1 * math.sin(a), -l2 * math.sin(b)], [l1 * math.cos(a), l2 * math.cos(b)]])
        bias = -np.array([l1 * math.cos(a) * v[0] ** 2 + l2 * math.cos(b) * v[1] ** 2,
                          l1 * math.sin(a) * v[0] ** 2 + l2 * math.sin(b) * v[1] ** 2])  # fmt: skip
        return M, f, J, bias

    def slope(self, q: Array, v: Array, push: Array) -> Array:
        """Accelerations of the four angles under forces along them, and the force at the tip on the right leg."""
        M, f, G = np.zeros((4, 4)), push.copy(), np.zeros((2, 4))
        bias = np.zeros(2)
        for part, sign in ((slice(0, 2), 1.0), (slice(2, 4), -1.0)):
            M[part, part], own, J, more = self._leg(q[part], v[part])
            f[part] += own
            G[:, part] = sign * J
            bias += sign * more
        whole = np.block([[M, G.T], [G, np.zeros((2, 2))]])
        return np.linalg.solve(whole, np.concatenate([f, -bias]))

    def carried(self, q: Array, v: Array) -> dict[str, Array]:
        """Without pushes: fx, fy, mz of the proximal on each body and, at the tip, of the left leg on the right one.

        Joints in axes of their own bar, about its first end; the tip in those of the second bar of the left leg. By
        Newton's and Euler's laws for each bar.
        """
        solved = self.slope(q, v, np.zeros(4))
        a, tip = solved[:4], solved[4:]  # on the right leg
        found = {"tip hinge": np.array([*(_turned(q[1]).T @ tip), 0.0])}
        for leg, k, pull in (("left", 0, -tip), ("right", 2, tip)):
            m1, m2, up = self.line_mass * self.first, self.line_mass * self.second, np.array([0.0, self.gravity])
            elbow = _swing(self.first, q[k], v[k], a[k])
            centre = elbow + _swing(self.second / 2, q[k + 1], v[k + 1], a[k + 1])
            second = m2 * (centre + up) - pull
            first = m1 * (_swing(self.first / 2, q[k], v[k], a[k]) + up) + second
            e1, e2 = (_turned(q[k + n])[:, 0] for n in (0, 1))
            turn2 = m2 * self.second**2 / 12 * a[k + 1] + _across(self.second / 2 * e2, m2 * (centre + up))
            turn2 -= _across(self.second * e2, pull)
            half = m1 * (_swing(self.first / 2, q[k], v[k], a[k]) + up)
            turn1 = m1 * self.first**2 / 12 * a[k] + _across(self.first / 2 * e1, half)
            turn1 += _across(self.first * e1, second) + turn2
            found[f"{leg}.1"] = np.array([*(_turned(q[k]).T @ first), turn1])
            found[f"{leg}.2"] = np.array([*(_turned(q[k + 1]).T @ second), turn2])
        return found


def _turned(angle: float) -> Array:
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def _across(one: Array, two: Array) -> float:
    return float(one[0] * two[1] - one[1] * two[0])


def _swing(length: float, angle: float, rate: float, acceleration: float) -> Array:
    """Acceleration of a point on a bar against its first end."""
    R = _turned(angle)
    return length * (acceleration * R[:, 1] - rate * rate * R[:, 0])


JOINTS = {  # of the linkage, as rows over the four angles
    "left.1": np.array([1.0, 0, 0, 0]),
    "left.2": np.array([-1.0, 1, 0, 0]),
    "right.1": np.array([0, 0, 1.0, 0]),
    "right.2": np.array([0, 0, -1.0, 1]),
}


def five_bar_with_stop(
    joint: str, limits: tuple[float, float], stiffness: float, damping: float, q: Array, v: Array, t: Array
) -> tuple[list[Met], Array]:
    """Times at which the joint met a stop, and the four angles at the times `t`, from angles and rates at zero."""
    bars, row, y = FiveBar(), JOINTS[joint], np.concatenate([q, v])
    now, side, met = 0.0, 0, []
    rows = np.zeros((len(t), 4))

    def deep(y: Array, of: int) -> tuple[float, float]:
        value, rate = row @ y[:4], row @ y[4:]
        return (value - limits[1], rate) if of > 0 else (limits[0] - value, -rate)

    while now < t[-1]:
        pressing = side

        def slope(_: float, y: Array, of: int = pressing) -> Array:
            depth, rate = deep(y, of)
            push = -of * row * (stiffness * depth + damping * rate) if of else np.zeros(4)
            return np.concatenate([y[4:], bars.slope(y[:4], y[4:], push)[:4]])

        if side:
            events = [lambda _, y, of=side: stiffness * deep(y, of)[0] + damping * deep(y, of)[1]]
            events[0].direction = -1
        else:
            events = [lambda _, y, of=of: deep(y, of)[0] for of in (-1, 1)]
            for event in events:
                event.direction = 1
        for event in events:
            event.terminal = True
        made = solve_ivp(slope, (now, t[-1]), y, "DOP853", rtol=1e-12, atol=1e-13, events=events, dense_output=True,
                         max_step=2e-3)  # fmt: skip
        inside = (t >= now) & (t <= made.t[-1])
        rows[inside] = made.sol(t[inside])[:4].T
        now, y = made.t[-1], made.y[:, -1]
        if made.status != 1:
            break
        if side:
            side = 0
        else:
            side = -1 if len(made.t_events[0]) else 1
            met.append(Met(joint, "upper" if side > 0 else "lower", now, deep(y, side)[1]))
    return met, rows
