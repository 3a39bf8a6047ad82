"""Dry friction with sticking: a mass on a spring and a mass on a belt in closed form, and linkages event by event.

Between events joints slide with friction of known sign or stick. At an event, friction within its bounds makes the
accelerations of joints at rest as small as possible in the metric of the inertia (bounded least squares). Dormand and
Prince's method of order eight; independent of the package.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import linprog, lsq_linear

Array = np.ndarray
REST = 1e-9  # rate of a joint at rest
MOVES = 1e-9  # acceleration of a joint that begins to move
BEHIND = 1e-9  # s: how long after its bounds are reached a joint moves


def spring_turns(amplitude: float, stiffness: float, friction: float) -> tuple[list[float], float]:
    """Where a mass on a spring turns from an amplitude at rest, and where it stays; one half period between each."""
    turns, x = [amplitude], amplitude
    while abs(x) * stiffness > friction:
        x = -x + math.copysign(2 * friction / stiffness, x)
        turns.append(x)
    return turns, x


@dataclass(frozen=True)
class Belt:
    """A mass on a moving belt, held by a spring: it sticks to the belt, and slips back."""

    mass: float
    stiffness: float
    speed: float
    static: float
    coulomb: float

    @property
    def slips(self) -> float:
        w = math.sqrt(self.stiffness / self.mass)
        return 2 * (math.pi - math.atan((self.static - self.coulomb) / self.stiffness * w / self.speed)) / w

    @property
    def sticks(self) -> float:
        return 2 * (self.static - self.coulomb) / (self.stiffness * self.speed)

    def at(self, t: float) -> float:
        """Stretch of the spring, from the beginning of a time on the belt."""
        t, drop, middle = t % (self.sticks + self.slips), self.static - self.coulomb, self.coulomb / self.stiffness
        if t < self.sticks:
            return middle - drop / self.stiffness + self.speed * t
        w, t = math.sqrt(self.stiffness / self.mass), t - self.sticks
        return middle + drop / self.stiffness * math.cos(w * t) + self.speed / w * math.sin(w * t)


@dataclass(frozen=True)
class Arm:
    """Two uniform bars in the plane, one on the other; angles from the x axis; weight along -y."""

    lengths: tuple[float, float] = (0.4, 0.3)
    masses: tuple[float, float] = (1.2, 0.8)
    gravity: float = 9.81

    def __call__(self, q: Array, v: Array, push: Array) -> Array:
        """Accelerations under forces along the angles."""
        (l1, l2), (m1, m2), g = self.lengths, self.masses, self.gravity
        mixed, turn = m2 * l1 * l2 / 2, q[0] - q[1]
        M = np.array([[(m1 / 3 + m2) * l1**2, mixed * math.cos(turn)], [mixed * math.cos(turn), m2 * l2**2 / 3]])
        f = np.array([-mixed * math.sin(turn) * v[1] ** 2 - (m1 / 2 + m2) * l1 * g * math.cos(q[0]),
                      mixed * math.sin(turn) * v[0] ** 2 - m2 * l2 / 2 * g * math.cos(q[1])])  # fmt: skip
        return np.linalg.solve(M, f + push)


@dataclass(frozen=True)
class Rubbing:
    """A linkage with friction in joints: rows over its angles, and for each of them three numbers."""

    accelerations: Callable[[Array, Array, Array], Array]
    rows: Array
    coulomb: Array
    static: Array
    viscous: Array
    push: Callable[[float], Array]

    def _felt(self, t: float, y: Array, sliding: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
        """Accelerations of the joints with friction of those that slide alone, what friction of 1 takes from each."""
        n, R = len(y) // 2, self.rows
        q, v = y[:n], y[n:]
        own = self.push(t) - R.T @ (self.viscous * (R @ v) + self.coulomb * sliding)
        free = self.accelerations(q, v, own)
        per = np.array([free - self.accelerations(q, v, own - row) for row in R]).T
        return R @ free, R @ per, lambda lam: free - per @ lam

    def decide(self, t: float, y: Array) -> Array:
        """What each joint does: its sign, or 0 where it sticks."""
        n = len(y) // 2
        rates = self.rows @ y[n:]
        does = np.where(np.abs(rates) > REST, np.sign(rates), 0.0)
        while True:
            resting = np.flatnonzero(does == 0)
            if not len(resting):
                return does
            a, A, _ = self._felt(t, y, does)
            a, A = a[resting], A[np.ix_(resting, resting)]
            values, vectors = np.linalg.eigh((A + A.T) / 2)
            good = values > 1e-10 * values.max()
            root = np.sqrt(values[good])[:, None] * vectors[:, good].T
            bounds = self.static[resting]
            found = lsq_linear(root, np.linalg.lstsq(root.T, a, rcond=None)[0], (-bounds, bounds), "bvls", tol=1e-15)
            left = a - A @ found.x
            if np.abs(left).max() < MOVES:
                return does
            most = int(np.argmax(np.abs(left))) if (self.static > self.coulomb).any() else slice(None)
            signs = np.where(np.abs(left) > MOVES, np.sign(left), 0.0)
            does[resting[most]] = signs[most]

    def share(self, t: float, y: Array, does: Array) -> float:
        """How near the sticking joints are to their bounds: the least over all efforts that hold them; 1 at most."""
        held = np.flatnonzero(does == 0)
        if not len(held):
            return 0.0
        a, A, _ = self._felt(t, y, does)
        a, A = a[held], A[np.ix_(held, held)]
        if np.linalg.cond(A) < 1e9:
            return float(np.abs(np.linalg.solve(A, a) / self.static[held]).max())
        values, vectors = np.linalg.eigh((A + A.T) / 2)
        good = values > 1e-10 * values.max()
        rows = vectors[:, good].T
        k = len(held)
        bound = np.vstack([np.hstack([s * np.eye(k), -self.static[held][:, None]]) for s in (1.0, -1.0)])
        made = linprog([0.0] * k + [1.0], bound, np.zeros(2 * k), np.hstack([rows @ A, np.zeros((len(rows), 1))]),
                       rows @ a, [(None, None)] * (k + 1), method="highs-ds")  # fmt: skip
        return float(made.fun)

    def run(self, q: Array, v: Array, t: Array, limit: float = 2e-3) -> tuple[list[tuple[int, float, float]], Array]:
        """Every rest (joint, from, until), and the angles at the times `t`."""
        n, y, now = len(q), np.concatenate([q, v]), 0.0
        rows, since, rests = np.zeros((len(t), n)), dict[int, float](), []
        while True:
            does = self.decide(now, y)
            for j, sign in enumerate(does):
                if sign == 0:
                    since.setdefault(j, now)
                elif j in since:
                    rests.append((j, since.pop(j), now))
            if now >= t[-1]:
                break

            def slope(at: float, y: Array, does: Array = does) -> Array:
                a, A, moved = self._felt(at, y, does)
                held, lam = np.flatnonzero(does == 0), np.zeros(len(does))
                if len(held):
                    lam[held] = np.linalg.lstsq(A[np.ix_(held, held)], a[held], rcond=1e-10)[0]
                return np.concatenate([y[n:], moved(lam)])

            events = [lambda at, y, does=does: 1.0 - self.share(at, y, does)]
            sliding = np.flatnonzero(does)
            events += [lambda _, y, j=j, sign=does[j]: sign * (self.rows[j] @ y[n:]) for j in sliding]
            for event in events:
                event.terminal, event.direction = True, -1
            made = solve_ivp(slope, (now, t[-1]), y, "DOP853", rtol=1e-12, atol=1e-13, events=events,
                             dense_output=True, max_step=limit, first_step=1e-7)  # fmt: skip
            inside = (t >= now) & (t <= made.t[-1])
            rows[inside] = made.sol(t[inside])[:n].T
            now, y = float(made.t[-1]), made.y[:, -1]
            stopped = [int(j) for j, at in zip(sliding, made.t_events[1:], strict=True) if len(at)]
            if len(made.t_events[0]):  # at its bounds, friction is just not enough behind it
                now, y = now + BEHIND, y + BEHIND * slope(now, y)
            if stopped or (does == 0).any():  # rates of joints that come to rest are rounding
                held = np.array(sorted({*stopped, *np.flatnonzero(does == 0)}))
                R = self.rows[held]
                y[n:] -= np.linalg.lstsq(R, R @ y[n:], rcond=1e-10)[0]
        return [*rests, *((j, begin, math.inf) for j, begin in since.items())], rows
