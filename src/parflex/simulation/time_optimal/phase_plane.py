"""The highest speed along a path: speeds from which the end can be reached, then the fastest among them.

Between two places the path acceleration u is constant, so that y^2 grows by 2 u ds. Rows that hold at a place bound u
by parabolas of y; all conditions on y at one place are quadratic, whatever the friction, and speeds that meet them are
intervals between roots: no linear program, no step size, and islands in the phase plane are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parflex.records import Record

Array = np.ndarray
Intervals = list[tuple[float, float]]  # of speeds
FLAT = 1e-9  # of the largest: rows with a smaller factor of u say nothing of it
NEAR = 1e-9  # relative: speeds that differ by rounding


class ExcludedError(Exception):
    """No speed is left at a place: `why` is "limits" there, "later" for what follows, "start" or "end"."""

    def __init__(self, place: int, why: str, allowed: Intervals) -> None:
        super().__init__(why)
        self.place, self.why, self.allowed = place, why, allowed


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Record):
    """Speeds at places and constant accelerations between them, and the highest speed that limits allow anywhere."""

    s: Array
    y: Array
    u: Array
    most: Array


class _Place:
    """Rows at one place, in the form lower <= u <= upper, each a parabola of y."""

    def __init__(self, rows: Array, slack: Array, top: float) -> None:
        a = rows[:, 0]
        size = np.abs(a).max(initial=0.0)
        flat = np.abs(a) <= FLAT * size
        curve = rows[:, [1, 2, 3]].copy()  # of y^2, y and 1
        curve[:, 2] -= slack
        self.lower = curve[~flat & (a < 0)] / -a[~flat & (a < 0)][:, None]
        self.upper = -curve[~flat & (a > 0)] / a[~flat & (a > 0)][:, None]
        self.pure = curve[flat]
        self.top = top
        pairs = (self.lower[:, None] - self.upper[None]).reshape(-1, 3)
        self.roots = _roots(np.concatenate([pairs, self.pure]))
        self.allowed = self._where(self.roots, None, 0.0)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        """Lowest and highest acceleration at speeds."""
        powers = np.stack([y**2, y, np.ones_like(y)])
        low = (self.lower @ powers).max(axis=0, initial=-np.inf)
        high = (self.upper @ powers).min(axis=0, initial=np.inf)
        return low, high

    def _where(self, roots: Array, ahead: Intervals | None, ds: float) -> Intervals:
        """Intervals of speeds between roots on which every condition holds."""
        top = min(self.top, 4 * float(roots.max(initial=0.0)) + 1.0) if not np.isfinite(self.top) else self.top
        edges = np.unique(np.concatenate([[0.0], roots[(roots > 0) & (roots < top)], [top]]))
        middle = (edges[1:] + edges[:-1]) / 2
        good = self._holds(middle, ahead, ds)
        found: Intervals = []
        for low, high, fine in zip(edges[:-1], edges[1:], good, strict=True):
            if fine and found and found[-1][1] == low:
                found[-1] = (found[-1][0], float(high))
            elif fine:
                found.append((float(low), float(high)))
        return found

    def _holds(self, y: Array, ahead: Intervals | None, ds: float) -> Array:
        low, high = self.bounds(y)
        pure = self.pure @ np.stack([y**2, y, np.ones_like(y)])
        good = (low <= high) & (pure <= 0).all(axis=0)
        if ahead is None:
            return good
        reached = [(y**2 + 2 * ds * low <= h**2) & (y**2 + 2 * ds * high >= l**2) for l, h in ahead]
        return good & np.any(reached, axis=0)

    def before(self, ahead: Intervals, ds: float) -> Intervals:
        """Speeds from which one of those ahead can be reached."""
        square = np.array([1.0, 0.0, 0.0])
        edges = []
        for low, high in ahead:
            edges += [square + 2 * ds * self.lower - [0, 0, high**2], square + 2 * ds * self.upper - [0, 0, low**2]]
        ends = np.array([end for interval in self.allowed for end in interval])
        return self._where(np.concatenate([_roots(np.concatenate(edges)), ends]), ahead, ds)


def _roots(parabolas: Array) -> Array:
    """All real roots of rows c2 y^2 + c1 y + c0."""
    c2, c1, c0 = parabolas.T
    disc = c1**2 - 4 * c2 * c0
    real = disc >= 0
    c2, c1, c0, root = c2[real], c1[real], c0[real], np.sqrt(disc[real])
    q = -(c1 + np.where(c1 >= 0, root, -root)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.concatenate([q / c2, c0 / q])
    return found[np.isfinite(found)]


def highest_speeds(s: Array, rows: Array, slack: Array, top: Array, ends: tuple[float, float]) -> Profile:
    """The fastest profile for rows (place, row, [a b d g]) that are at most `slack` (place, row), and largest speeds.

    `ends` are the speeds at both ends.
    """
    steps = np.diff(s)
    places = [_Place(*each) for each in zip(rows, slack, top, strict=True)]
    for k, place in enumerate(places):
        if not place.allowed:
            raise ExcludedError(k, "limits", [])
    for k, why in ((0, "start"), (len(s) - 1, "end")):
        if not _within(places[k].allowed, ends[k > 0]):
            raise ExcludedError(k, why, places[k].allowed)
    sets: list[Intervals] = [[]] * len(s)
    sets[-1] = [(ends[1], ends[1])]
    for k in range(len(s) - 2, -1, -1):
        sets[k] = places[k].before(sets[k + 1], float(steps[k]))
        if not sets[k]:
            raise ExcludedError(k, "later", places[k].allowed)
    if not _within(sets[0], ends[0]):
        raise ExcludedError(0, "start", sets[0])
    y, u = np.zeros(len(s)), np.zeros(len(s) - 1)
    y[0] = ends[0]
    for k, ds in enumerate(steps):
        low, high = (float(bound[0]) for bound in places[k].bounds(y[k : k + 1]))
        y[k + 1] = _highest(sets[k + 1], y[k] ** 2 + 2 * ds * low, y[k] ** 2 + 2 * ds * high)
        u[k] = (y[k + 1] ** 2 - y[k] ** 2) / (2 * ds)
    most = np.array([place.allowed[-1][1] if place.allowed else 0.0 for place in places])
    return Profile(s, y, u, most)


def _within(sets: Intervals, y: float) -> bool:
    return any(low * (1 - NEAR) <= y <= high * (1 + NEAR) for low, high in sets)


def _highest(sets: Intervals, low: float, high: float) -> float:
    """The highest speed ahead whose square lies between two values; the nearest one where rounding leaves none."""
    for first, last in reversed(sets):
        if min(last**2, high) >= max(first**2, low) - NEAR * max(last**2, 1e-300):
            return float(np.sqrt(max(min(last**2, high), first**2)))
    edges = [edge for interval in sets for edge in interval]
    return min(edges, key=lambda edge: max(low - edge**2, edge**2 - high))
