"""Instants of the given inputs at which steps end, so that none goes over what it cannot see.

An input is polynomials in pieces. Over a window as long as a step may be it is compared with one quintic through six
places: what a step sees is no more than that. Where they differ the window is cut at ends of pieces until each part
fits, and these cuts are ends of steps: the begin of a motion behind a rest, a pulse in a table.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from parflex.integrators.driver import Grid, Method
from parflex.integrators.tableaux import gauss_points, places_and_weights
from parflex.simulation.inputs.corners import jump_times
from parflex.simulation.problem import Problem
from parflex.trajectories.polynomials import Polynomials

Array = np.ndarray
MISSED = 1e-5  # of how much an input changes in all: parts of it that a quintic over a step may leave out
MOST_CUT, SHARE_CUT = 200, 0.01  # fixed steps that are cut, and of all of them: a faster input needs shorter steps
ROUNDING = 1e-12  # of the size of an input
SHORTEST = 1e-8  # s, or of the run where that is shorter: cuts that are nearer to each other are one
MOST_HALVINGS = 12  # of a step that is advised
PORTION = 20_000  # windows that are compared at once
TOLD = 2e-3  # of how much an input changes: what steps that miss more of it are warned for
NODES, WEIGHTS = gauss_points(6)


def pushing(given: Polynomials, motors: int) -> Polynomials:
    """What acts: accelerations of so many motors that follow a motion, efforts and wrenches as they are."""
    powers = np.arange(2, given.powers)
    coefficients = given.coefficients.copy()
    coefficients[:, :, :motors] = 0.0
    coefficients[:, : given.powers - 2, :motors] = (powers * (powers - 1))[:, None] * given.coefficients[:, 2:, :motors]
    return Polynomials(given.breaks, coefficients)


class InputWindows:
    """An input from 0 to a time, and how much of it windows see that steps are."""

    def __init__(self, push: Polynomials, time: float) -> None:
        self.push, self.time, self.shortest = push, time, SHORTEST * min(1.0, time)
        self.breaks = push.breaks[(push.breaks > self.shortest) & (push.breaks < time - self.shortest)]
        edges = np.concatenate([[0.0], self.breaks, [time]])
        values, lengths = self._inside(edges[:-1], edges[1:]), np.diff(edges)[:, None, None] * WEIGHTS[None, :, None]
        mean = (values * lengths).sum(axis=(0, 1)) / time
        size = (np.abs(values) * lengths).sum(axis=(0, 1))
        # how much each channel changes; what is constant but for rounding is not missed
        self.change = np.maximum((np.abs(values - mean) * lengths).sum(axis=(0, 1)), ROUNDING / MISSED * size)
        self.sums = np.cumsum((values * lengths).sum(axis=1), axis=0)

    def _inside(self, a: Array, b: Array) -> Array:
        """Values (window, place, channel)."""
        times = a[:, None] + (b - a)[:, None] * NODES
        return self.push.at(times.ravel()).reshape(*times.shape, self.push.channels)

    def with_breaks(self, a: Array, b: Array) -> Array:
        """Whether pieces end inside of windows."""
        first, last = np.searchsorted(self.breaks, a + self.shortest), np.searchsorted(self.breaks, b - self.shortest)
        return last > first

    def misfit(self, a: Array, b: Array) -> Array:
        """Of each window: the largest share of an input's change by which a quintic is off in it."""
        found = [self._misfit(a[k : k + PORTION], b[k : k + PORTION]) for k in range(0, len(a), PORTION)]
        return np.concatenate(found) if found else np.zeros(0)

    def _misfit(self, a: Array, b: Array) -> Array:
        first, last = np.searchsorted(self.breaks, a + self.shortest), np.searchsorted(self.breaks, b - self.shortest)
        counts = np.maximum(last - first, 0) + 1
        window = np.repeat(np.arange(len(a)), counts)
        place = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts)  # of a part in its window
        inner = first[window] + place
        known = np.append(self.breaks, np.inf)
        begin = np.where(place == 0, a[window], known[np.maximum(inner - 1, 0)])
        end = np.where(place == counts[window] - 1, b[window], known[np.minimum(inner, len(self.breaks))])
        values, through = self._inside(begin, end), self._inside(a, b)
        share = ((begin[:, None] + (end - begin)[:, None] * NODES) - a[window, None]) / (b - a)[window, None]
        fitted = np.einsum("wpn,wnc->wpc", _lagrange(share), through[window])
        off = np.einsum("wpc,p,w->wc", np.abs(values - fitted), WEIGHTS, end - begin)
        total = np.zeros((len(a), self.push.channels))
        np.add.at(total, window, off)
        return np.divide(total, self.change, out=np.zeros_like(total), where=self.change > 0).max(axis=1, initial=0.0)

    def cuts(self, a: Array, b: Array) -> Array:
        """Ends of pieces at which windows that do not fit are cut until all parts do: the nearest to their middles."""
        found = [np.zeros(0)]
        while len(a):
            low, high = (
                np.searchsorted(self.breaks, a + self.shortest),
                np.searchsorted(self.breaks, b - self.shortest) - 1,
            )
            middles = (a + b) / 2
            behind = np.clip(np.searchsorted(self.breaks, middles), low, high)
            before = np.maximum(behind - 1, low)
            nearer = np.abs(self.breaks[before] - middles) < np.abs(self.breaks[behind] - middles)
            cut = self.breaks[np.where(nearer, before, behind)]
            found.append(cut)
            a, b = np.concatenate([a, cut]), np.concatenate([cut, b])
            chosen = self.with_breaks(a, b)
            a, b = a[chosen], b[chosen]
            bad = self.misfit(a, b) > MISSED
            a, b = a[bad], b[bad]
        return np.concatenate(found)

    def missed(self, a: Array, b: Array, rule: tuple[Array, Array]) -> tuple[float, float, int]:
        """How far the sum of an input over steps is off at most, of its change; when, and which channel it is."""
        if not len(a) or not self.push.channels:
            return 0.0, 0.0, 0
        whole = self._sum_to(b) - self._sum_to(a)
        inset = (b - a)[:, None] * 1e-9  # ends of a step belong to it
        times = np.clip(a[:, None] + (b - a)[:, None] * rule[0], a[:, None] + inset, b[:, None] - inset)
        values = self.push.at(times.ravel()).reshape(*times.shape, self.push.channels)
        off = np.abs(np.cumsum(whole - (b - a)[:, None] * np.einsum("wpc,p->wc", values, rule[1]), axis=0))
        ends = np.concatenate([[0.0], self.breaks, [self.time]])[:, None]
        sums = np.concatenate([np.zeros((1, self.push.channels)), self.sums])
        ranges = np.ptp(sums - sums[-1] * ends / self.time, axis=0)  # of what is beside the mean
        ranges = np.maximum(ranges, ROUNDING / MISSED * np.abs(sums).max(axis=0))
        shares = np.divide(off, ranges, out=np.zeros_like(off), where=ranges > 0)
        k, channel = np.unravel_index(int(np.argmax(shares)), shares.shape)
        return float(shares[k, channel]), float(b[k]), int(channel)

    def _sum_to(self, t: Array) -> Array:
        """Integral of the input from 0."""
        edges = np.concatenate([[0.0], self.breaks])
        k = np.clip(np.searchsorted(edges, t, side="right") - 1, 0, None)
        before = np.concatenate([np.zeros((1, self.push.channels)), self.sums])[k]
        return before + np.einsum("wpc,p,w->wc", self._inside(edges[k], t), WEIGHTS, t - edges[k])


def _lagrange(share: Array) -> Array:
    """Weights (window, place, node) of the quintic through the nodes at shares of a window."""
    found = np.ones((*share.shape, len(NODES)))
    for n, node in enumerate(NODES):
        for other in np.delete(NODES, n):
            found[..., n] *= (share - other) / (node - other)
    return found


def instants(given: Polynomials, motors: int, method: Method, grid: Grid, jumps: Array) -> Array:
    """Times at which steps end beside the jumps of the inputs, of which so many motors follow a motion."""
    seen = InputWindows(pushing(given, motors), grid.rows * grid.out_step)
    if not len(seen.breaks) or not given.channels:
        return np.zeros(0)
    a, b = _windows(grid, method, seen, jumps)
    off = seen.misfit(a, b)
    bad = np.flatnonzero(off > MISSED)
    if not grid.begin and len(bad) > (most := max(MOST_CUT, int(SHARE_CUT * seen.time / grid.step))):
        bad = bad[np.argsort(off[bad])[-most:]]
    return np.unique(np.concatenate([a[bad], seen.cuts(a[bad], b[bad]), b[bad]]))


def ends_inside(problem: Problem, given: Polynomials, method: Method, grid: Grid) -> Array:
    """Times at which steps end so that they see all that is given; none where nothing is integrated."""
    if not len(problem.system(given).free):
        return np.zeros(0)
    motors = len(problem.robot.actuated) if problem.driven else 0
    return instants(given, motors, method, grid, jump_times(given, motors))


def input_warnings(problem: Problem, given: Polynomials, method: Method, grid: Grid) -> list[str]:
    """A sentence where fixed steps do not add up what acts in them: a function or a table changes too fast."""
    if grid.begin or method.name == "dopri5" or not len(problem.system(given).free):
        return []
    motors = len(problem.robot.actuated) if problem.driven else 0
    seen = InputWindows(pushing(given, motors), grid.rows * grid.out_step)
    ends = np.concatenate([jump_times(given, motors), ends_inside(problem, given, method, grid)])
    rule = places_and_weights(method.tableau)
    share, when, channel = seen.missed(*_windows(grid, method, seen, ends), rule)
    if not share > TOLD:
        return []
    shorter, halvings = grid, 0
    while halvings < MOST_HALVINGS and seen.missed(*_windows(shorter, method, seen, ends), rule)[0] > TOLD:
        shorter, halvings = replace(shorter, step=shorter.step / 2, every=2 * shorter.every), halvings + 1
    return [
        f"{_named(problem, channel)} changes too fast for steps of {grid.step:.3g} s: until t = {when:.4g} s its "
        f"impulse is off by {share:.1%} of how much that changes; give a step of {shorter.step:.2g}, or a tolerance"
    ]


def _named(problem: Problem, channel: int) -> str:
    """Words for an input."""
    motors = problem.robot.actuated_names
    if problem.prescribed == "platform":
        return "the motion of the platform"
    if channel < len(motors):
        return f"the motion of '{motors[channel]}'" if problem.driven else f"the effort of '{motors[channel]}'"
    return f"the wrench on '{list(problem.wrenches)[(channel - len(motors)) // 6]}'"


def _windows(grid: Grid, method: Method, seen: InputWindows, ends: Array) -> tuple[Array, Array]:
    """Begins and ends of windows as long as steps may be, which end at some times too, if pieces end inside of them.

    Chosen steps may begin anywhere: their windows overlap.
    """
    length = grid.out_step if method.name == "dopri5" else grid.step
    ends = ends[(ends > 0) & (ends < seen.time)]
    if grid.begin:
        length = seen.time / max(1, math.ceil(seen.time / grid.most * (1 - 1e-9)))
    steps = np.floor(np.concatenate([seen.breaks, ends]) / length)
    steps = np.unique(np.concatenate([steps - 1, steps, steps + 1, steps + 2] if grid.begin else [steps, steps + 1]))
    inside = steps[(steps >= 0) & (steps <= round(seen.time / length))]
    edges = np.unique(np.concatenate([inside * length, ends]))
    a, b = edges[:-1], edges[1:]
    if grid.begin:  # windows of two halves, unless inputs jump between these
        joined = ~np.isin(edges[1:-1], ends)
        middles = (a + b) / 2
        a, b = np.concatenate([a, middles[:-1][joined]]), np.concatenate([b, middles[1:][joined]])
    chosen = (b - a > seen.shortest) & (b - a < length * (1 + 1e-6)) & seen.with_breaks(a, b)
    return a[chosen], b[chosen]
