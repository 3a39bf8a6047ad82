"""Times at which steps end because of the inputs: jumps, and pieces that one quintic over a step does not follow.

A row at a jump has the values just before it: position, velocity, acceleration, effort and energy. A jump in a motor
velocity applies an impulse.

A step samples an input, a piecewise polynomial, as one quintic through six points. The window of the longest step is
cut at ends of pieces until the quintic fits each part; steps end at these cuts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from parflex.errors import InputError
from parflex.forces.forces import impulse_of_motors
from parflex.integrators.driver import Grid, System
from parflex.integrators.tableaux import gauss_points
from parflex.records import Record
from parflex.robot.configuration import Configuration
from parflex.simulation.problem import Problem
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
SAME_TIME = 1e-9  # s, or of the run where that is shorter: jumps that are nearer to each other are one
MISSED = 1e-5  # of the total change of an input: misfit of a quintic over a step
MOST_CUT, SHARE_CUT = 200, 0.01  # fixed steps that are cut, and share of all: a faster input needs shorter steps
ROUNDING = 1e-12  # of the size of an input
SHORTEST = 1e-8  # s, or of the run where that is shorter: cuts that are nearer to each other are one
PORTION = 20_000  # windows that are compared in one array
NODES, WEIGHTS = gauss_points(6)


@dataclass(frozen=True, eq=False, repr=False)
class Discontinuity(Record):
    """A time at which inputs jump, the system with the inputs behind it, and the effect on the state.

    `cross` takes closed positions and their rates of change, and returns independent rates and the work of the impulse.
    """

    time: float
    behind: System
    cross: Callable[[Array, Array], tuple[Array, float]] | None


@dataclass(frozen=True)
class InputSegments:
    """The system at the start, the corners on the way, and the jumps of velocity among them, which runs fill in."""

    first: System
    corners: tuple[Discontinuity, ...]
    jumps: list[dict[str, Any]]


def jump_times(inputs: Trajectory, motors: int) -> Array:
    """Return when velocities or accelerations of driven motors, the first inputs, or values of other inputs jump."""
    motion, others = inputs.selected(range(motors)), inputs.selected(range(motors, inputs.channels))
    return np.concatenate([motion.jumps(1)[0], motion.jumps(2)[0], others.jumps(0)[0]])


def input_segments(
    problem: Problem, inputs: Trajectory, time: float, near: float, begin: float, instants: Array
) -> InputSegments:
    """Return the inputs of a run from one time to another, divided at their jumps and at the `instants`.

    A run starts behind a jump at t = 0; one that continues from a later row crosses it.
    """
    system, names = problem.system(inputs), problem.robot.actuated_names
    count = len(names) if problem.driven else 0
    motion = inputs.selected(range(count))
    for t, size in zip(*motion.jumps(0), strict=True):
        if 0 < t < time:
            k = int(np.argmax(np.abs(size)))
            text = f"the position of '{names[k]}' jumps by {size[k]:.3g} at t = {t:.6g} s"
            raise InputError(text, key="motion", value=names[k], hint="make the motion continuous")
    times, sizes = motion.jumps(1)
    after, same = near if begin == 0 else begin - near, SAME_TIME * min(1.0, time)
    all_ends = np.sort(np.concatenate([jump_times(inputs, count), instants]))
    all_ends = all_ends[(all_ends > after) & (all_ends < time - near)]
    ends: list[float] = all_ends[np.diff(all_ends, prepend=-np.inf) > same].tolist()

    def between(first: float, last: float) -> System:
        pieces = inputs.between(first, last)
        return system._replace(
            breaks=np.ascontiguousarray(pieces.breaks), coefficients=np.ascontiguousarray(pieces.coefficients)
        )

    jumps: list[dict[str, Any]] = []
    corners = []
    for moment, end in pairwise([*ends, time]):
        here = np.abs(times - moment) <= same
        cross = _crossing(problem, motion, moment, sizes[here].sum(axis=0), jumps) if here.any() else None
        corners.append(Discontinuity(moment, between(moment, end), cross))
    return InputSegments(between(min(begin, after), ends[0] if ends else time), tuple(corners), jumps)


def _crossing(
    problem: Problem, motion: Trajectory, time: float, size: Array, jumps: list[dict[str, Any]]
) -> Callable[[Array, Array], tuple[Array, float]]:
    """Return the effect of the motors' impulse at a time, which it appends to `jumps`."""
    tree = problem.robot.tree
    motors, behind = list(problem.robot.actuated), motion.value(time, 1, behind=True)

    def cross(q: Array, position_rates: Array) -> tuple[Array, float]:
        before = tree.rates(q, position_rates)
        after, push = impulse_of_motors(Configuration(problem.robot, q), before, behind)
        for k, name in enumerate(problem.robot.actuated_names):
            if size[k]:
                jumps.append({"time": time, "joint": name, "jump": float(size[k]), "impulse": float(push[k])})
        return after[problem.places], float(push @ (before + after)[motors] / 2)

    return cross


class InputWindows:
    """Inputs from 0 to a time, with accelerations of driven motors, and their misfit by one quintic in a window."""

    def __init__(self, inputs: Trajectory, motors: int, time: float) -> None:
        self.inputs, self.motors, self.time, self.shortest = inputs, motors, time, SHORTEST * min(1.0, time)
        self.breaks = inputs.breaks[(inputs.breaks > self.shortest) & (inputs.breaks < time - self.shortest)]
        edges = np.concatenate([[0.0], self.breaks, [time]])
        values, lengths = self._values(edges[:-1], edges[1:]), np.diff(edges)[:, None, None] * WEIGHTS[None, :, None]
        mean = (values * lengths).sum(axis=(0, 1)) / time
        size = (np.abs(values) * lengths).sum(axis=(0, 1))
        # the total change of each channel; one that is constant but for rounding fits any quintic
        self.change = np.maximum((np.abs(values - mean) * lengths).sum(axis=(0, 1)), ROUNDING / MISSED * size)

    def _values(self, a: Array, b: Array) -> Array:
        """Return values (window, point, channel)."""
        times = a[:, None] + (b - a)[:, None] * NODES
        values = self.inputs.value(times)
        values[..., : self.motors] = self.inputs.value(times, 2)[..., : self.motors]
        return values

    def inside(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return the numbers of the first break inside each window and of the first break behind it."""
        return np.searchsorted(self.breaks, a + self.shortest), np.searchsorted(self.breaks, b - self.shortest)

    def misfit(self, a: Array, b: Array) -> Array:
        """Return the largest misfit of an input in each window, as a share of its total change."""
        misfits = [self._misfit(a[k : k + PORTION], b[k : k + PORTION]) for k in range(0, len(a), PORTION)]
        return np.concatenate(misfits) if misfits else np.zeros(0)

    def _misfit(self, a: Array, b: Array) -> Array:
        first, last = self.inside(a, b)
        counts = np.maximum(last - first, 0) + 1
        window = np.repeat(np.arange(len(a)), counts)
        place = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts)  # of a part in its window
        inner, known = first[window] + place, np.append(self.breaks, np.inf)
        begin = np.where(place == 0, a[window], known[np.maximum(inner - 1, 0)])
        end = np.where(place == counts[window] - 1, b[window], known[np.minimum(inner, len(self.breaks))])
        share = ((begin[:, None] + (end - begin)[:, None] * NODES) - a[window, None]) / (b - a)[window, None]
        fitted = np.einsum("wpn,wnc->wpc", _lagrange(share), self._values(a, b)[window])
        off = np.einsum("wpc,p,w->wc", np.abs(self._values(begin, end) - fitted), WEIGHTS, end - begin)
        total = np.zeros((len(a), self.inputs.channels))
        np.add.at(total, window, off)
        return np.divide(total, self.change, out=np.zeros_like(total), where=self.change > 0).max(axis=1, initial=0.0)

    def cuts(self, a: Array, b: Array) -> Array:
        """Return edges of windows, cut at the break nearest to their middle until quintics fit all parts."""
        cuts = [a, b]
        while len(a):
            (low, high), middles = self.inside(a, b), (a + b) / 2
            behind = np.clip(np.searchsorted(self.breaks, middles), low, high - 1)
            before = np.maximum(behind - 1, low)
            nearer = np.abs(self.breaks[before] - middles) < np.abs(self.breaks[behind] - middles)
            cut = self.breaks[np.where(nearer, before, behind)]
            cuts.append(cut)
            a, b = np.concatenate([a, cut]), np.concatenate([cut, b])
            low, high = self.inside(a, b)
            a, b = a[high > low], b[high > low]
            bad = self.misfit(a, b) > MISSED
            a, b = a[bad], b[bad]
        return np.unique(np.concatenate(cuts))


def _lagrange(share: Array) -> Array:
    """Return weights (window, point, node) of the quintic through the nodes at shares of a window."""
    weights = np.ones((*share.shape, len(NODES)))
    for n, node in enumerate(NODES):
        for other in np.delete(NODES, n):
            weights[..., n] *= (share - other) / (node - other)
    return weights


def ends_inside(problem: Problem, inputs: Trajectory, grid: Grid) -> Array:
    """Return the times, besides jumps of the inputs, at which steps end so that they resolve the inputs."""
    if not inputs.channels or not len(problem.system(inputs).free):
        return np.zeros(0)
    motors = len(problem.robot.actuated) if problem.driven else 0
    windows = InputWindows(inputs, motors, grid.rows * grid.out_step)
    a, b = _windows(grid, windows, jump_times(inputs, motors))
    off = windows.misfit(a, b)
    bad = np.flatnonzero(off > MISSED)
    if not grid.begin and len(bad) > (most := max(MOST_CUT, int(SHARE_CUT * windows.time / grid.step))):
        bad = bad[np.argsort(off[bad])[-most:]]
    return windows.cuts(a[bad], b[bad])


def _windows(grid: Grid, windows: InputWindows, ends: Array) -> tuple[Array, Array]:
    """Return begins and ends of windows of the longest step, between given ends, if pieces end inside of them.

    Steps under error control may begin anywhere: their windows overlap.
    """
    near: tuple[int, ...] = (0, 1)
    ends, length = ends[(ends > 0) & (ends < windows.time)], grid.step
    if grid.begin:
        length, near = windows.time / max(1, math.ceil(windows.time / grid.most * (1 - 1e-9))), (-1, 0, 1, 2)
    steps = np.floor(np.concatenate([windows.breaks, ends]) / length)
    steps = np.unique([steps + k for k in near])
    inside = steps[(steps >= 0) & (steps <= round(windows.time / length))]
    edges = np.unique(np.concatenate([inside * length, ends]))
    a, b = edges[:-1], edges[1:]
    if grid.begin:  # windows of two halves, unless inputs jump between these
        joined, middles = ~np.isin(edges[1:-1], ends), (a + b) / 2
        a, b = np.concatenate([a, middles[:-1][joined]]), np.concatenate([b, middles[1:][joined]])
    first, last = windows.inside(a, b)
    chosen = (b - a > windows.shortest) & (b - a < length * (1 + 1e-6)) & (last > first)
    return a[chosen], b[chosen]
