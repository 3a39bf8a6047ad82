"""Step size of a run: fixed, error-controlled, and input breaks.

An input is a piecewise polynomial, and a step samples it as one quintic through six places. The window of the longest
step is cut at ends of pieces until the quintic fits each part. Steps end at these cuts: the begin of a motion after
rest, or a pulse in a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.integrators.driver import Grid, IntegratedRows, Method, grid_of
from parflex.integrators.tableaux import gauss_points, places_and_weights
from parflex.simulation.diagnostics import frame_difference
from parflex.simulation.discontinuities import jump_times
from parflex.simulation.problem import Problem
from parflex.trajectories.polynomials import Polynomials
from parflex.tree.tree import Tree

STEP = 5e-4  # s: the longest that is taken where nothing is said, or a twentieth of the run

TOLERANCE = {"dopri5": 1e-8}  # of one step, in typical lengths and radians; implicit methods iterate to:

ITERATION_TOLERANCE = 1e-12

IMPLICIT = ("gauss4", "gauss6", "generalized-alpha")

LEAST = 1e-12  # typical lengths: errors of steps below it are rounding

SHARE_OF_ITERATION, MOST_OF_ITERATION = 1e-3, 1e-10  # of the tolerance of a step, and in typical lengths

SHARE_OF_TIME, SHARE_OF_PIECE = 1 / 20, 1 / 4  # of a run, of a piece of what is given: the longest step

MANY_REJECTED = 0.02  # of the steps

LABOUR = 40  # evaluations a step, from which on steps a quarter as long take fewer

SHORT_PIECE = 0.2  # s: those of tables and sampled functions say nothing of how fast they change

Array = np.ndarray

MORE_STEPS = 1.5  # times the steps of a run: a second one with fewer is none with half the steps

LARGE = 2e-3  # of the range of the end effector: errors of a run that it tells of

AT_REST = 1e-9  # of the typical length, rad: errors of a frame that are no larger are those of a frame at rest

ORDERS = {"gauss4": 4, "gauss6": 6, "rk4": 4, "dopri5": 5, "generalized-alpha": 2}

MISSED = 1e-5  # of how much an input changes in all: parts of it that a quintic over a step may leave out

MOST_CUT, SHARE_CUT = 200, 0.01  # fixed steps that are cut, and of all of them: a faster input needs shorter steps

ROUNDING = 1e-12  # of the size of an input

SHORTEST = 1e-8  # s, or of the run where that is shorter: cuts that are nearer to each other are one

MOST_HALVINGS = 12  # of a step that is advised

PORTION = 20_000  # windows that are compared at once

TOLD = 2e-3  # of how much an input changes: what steps that miss more of it are warned for

NODES, WEIGHTS = gauss_points(6)


@dataclass(frozen=True)
class StepChoice:
    """Why steps are so long, and what they do not follow."""

    why: str = ""  # empty: they are not chosen yet
    diagnostics: tuple[Diagnostic, ...] = ()
    forces: str = ""  # frequency of forces that steps do not follow, and what to do
    unconverged: float | None = None  # s: the steps that did not converge
    given: bool = False

    @property
    def of_forces(self) -> list[Diagnostic]:
        """A diagnostic of forces and accelerations that steps do not follow."""
        text = f"forces and accelerations also vibrate {self.forces}"
        return [Diagnostic("unresolved-forces", text)] if self.forces else []


@dataclass(frozen=True)
class RequestedSteps:
    """Steps of a run, what an iteration converges to, and why the steps are as they are."""

    grid: Grid
    tolerance: float
    choice: StepChoice


def requested_steps(
    time: float, step: float | None, rows: float, tolerance: float | None, method: Method, length: float
) -> RequestedSteps:
    """Steps as a call asks for them, for a robot of a typical length; without a word those that are shortened later."""
    if method.name == "dopri5":
        step, tolerance = None, TOLERANCE["dopri5"] * length if tolerance is None else tolerance
    fixed = grid_of(time, min(STEP, SHARE_OF_TIME * time) if step is None else step, rows)
    choice = StepChoice() if step is None else StepChoice("given", given=True)
    if method.name == "rk4" and tolerance is not None and step is None:
        raise InputError(
            "the method 'rk4' does not estimate errors", key="tolerance", value=tolerance,
            hint="give a step, or the method gauss4 or dopri5",
        )  # fmt: skip
    if tolerance is None or method.name == "rk4":
        return RequestedSteps(fixed, ITERATION_TOLERANCE, choice)
    least = LEAST * length
    if tolerance < least and step is not None:  # no step has such an error: it is that of the iteration
        return RequestedSteps(fixed, tolerance, choice)
    if tolerance < least:
        raise InputError(
            f"rounding forbids the tolerance {tolerance:g} m of a step of a robot of about {length:.2g} m",
            key="tolerance", value=tolerance, hint=f"give at least {least:.1g}",
        )  # fmt: skip
    iterated = max(min(SHARE_OF_ITERATION * tolerance / length, MOST_OF_ITERATION), 0.1 * LEAST)
    if step is not None:
        return RequestedSteps(replace(fixed, aim=tolerance), iterated, choice)
    chosen = Grid(fixed.out_step, 1, fixed.rows, tolerance, min(STEP, fixed.out_step))
    return RequestedSteps(chosen, iterated, StepChoice(f"chosen by their errors, at most {tolerance:g} m each"))


def with_longest(grid: Grid, inputs: Polynomials) -> Grid:
    """Steps that miss nothing of what is given: parts of the run and of the pieces of the inputs."""
    if not grid.begin:
        return grid
    time = grid.rows * grid.out_step
    lengths = inputs.breaks[1:] - inputs.breaks[:-1]
    piece = max(SHORT_PIECE, float(lengths.min())) if len(lengths) else time
    most = min(SHARE_OF_TIME * time, SHARE_OF_PIECE * piece)
    return replace(grid, begin=min(grid.begin, most), most=most)


def step_summary(grid: Grid, choice: StepChoice, track: IntegratedRows) -> dict[str, Any]:
    """Lengths of steps, why they are so long, and what they err by where that was estimated."""
    summary: dict[str, Any] = {"step": None if grid.begin else grid.step, "step_choice": choice.why}
    if track.judged:
        error, shortest, longest = track.judged
        summary["step_error"] = {"tolerance": grid.aim, "largest": error, "shortest": shortest, "longest": longest}
    return summary


def step_warnings(step: float | None, counts: Mapping[str, int], method: str) -> list[Diagnostic]:
    """A diagnostic where many steps had to be made again, or found their stages with labour."""
    again, steps, evaluations = (
        counts.get(word, 0) - counts.get(f"left_{word}", 0) for word in ("rejected", "steps", "evaluations")
    )
    if not steps or method not in IMPLICIT or step is None:
        return []
    each = evaluations / steps
    if not (again > max(10, MANY_REJECTED * steps) or each > LABOUR):
        return []
    text = (
        f"steps of {step:.3g} s converge badly ({again} times they were made again, shorter; {each:.0f} "
        "evaluations a step): give a shorter step, or a tolerance"
    )
    return [Diagnostic("slow-convergence", text, "step", step)]


def checked_by_default(case: Any, tolerance: float | None, tree: Tree, sticks: Sequence[Any] | None) -> bool:
    """Whether nothing must be said for a second run: with a tolerance, and with friction in flexible robots.

    Each time a joint sticks or slides bodies begin to vibrate, and later events come at other times.
    """
    chosen = tolerance is not None and bool(case.grid.begin)
    return chosen or (bool(case.steps.why) and not case.steps.given and bool(tree.elastic) and bool(sticks))


def error_warnings(
    columns: Mapping[str, Array], error: Mapping[str, Any], length: float, tolerance: bool
) -> list[Diagnostic]:
    """A diagnostic where the error of a run is a visible part of what the end effector of a robot of a length does.

    One that does not move by what the run says, and might, is named too.
    """
    frame, kinds = error["frame"], (("metres", ("x", "y", "z"), "m", length), ("radians", ("theta",), "rad", 1.0))
    for kind, words, unit, typical in kinds:
        coordinates = [columns[f"{frame}.{word}"] for word in words if f"{frame}.{word}" in columns]
        travel = float(np.linalg.norm([np.ptp(column) for column in coordinates])) if coordinates else 0.0
        if coordinates and error[kind] > max(LARGE * travel, AT_REST * typical):
            share = (
                f"{error[kind] / travel:.1%} of its way" if error[kind] < travel else f"its way is {travel:.2g} {unit}"
            )
            cure = "a smaller tolerance" if tolerance else "a tolerance"
            text = (
                f"'{frame}' may err by {error[kind]:.2g} {unit} ({share}) by the length of the steps: give {cure}, or "
                "a shorter step"
            )
            return [Diagnostic("step-error", text, frame, error[kind])]
    return []


def with_halved_steps(case: Any, length: float) -> Any:
    """The case with steps half as long: where errors choose them, with an error that such steps have."""
    grid, less = case.grid, 2.0 ** -(ORDERS[case.method.name] + 1)
    if grid.begin:
        aim = max(grid.aim * less, LEAST * length)
        return replace(case, grid=replace(grid, aim=aim, begin=grid.begin / 2), tolerance=case.tolerance * 0.1)
    return replace(case, grid=replace(grid, step=grid.step / 2, every=grid.every * 2, aim=0.0))


def with_even_half_steps(case: Any, time: float, steps: int) -> Any:
    """The case with even steps of half the mean length: rows and events may end steps that errors would halve."""
    grid = case.grid
    if case.method.name == "dopri5":  # whose steps end at rows: at more of them
        return replace(case, grid=replace(grid, step=grid.out_step / 2, every=1, rows=2 * grid.rows))
    every = max(2, math.ceil(2 * steps * grid.out_step / time))
    return replace(case, grid=replace(grid, step=grid.out_step / every, every=every, begin=0.0, aim=0.0))


def estimated_error(
    columns: Mapping[str, Array], other: Mapping[str, Array], frame: str, case: Any, second: IntegratedRows
) -> dict[str, Any]:
    """What a run errs by: its difference to one with half the steps, and what that one errs by still."""
    between = (len(other["t"]) - 1) // max(1, len(columns["t"]) - 1)
    other = {name: column[::between] for name, column in other.items()} if between > 1 else other
    order = ORDERS[case.method.name]
    more = 1 / (1 - 0.5**order)
    metres, radians, shares = frame_difference(columns, other, frame)
    most = max(shares, key=lambda name: shares[name], default="")
    return {
        "frame": frame,
        "metres": more * metres,
        "radians": more * radians,
        "coordinate": {"coordinate": most, "share_of_range": more * shares.get(most, 0.0)},
        "how": f"a second run with half the steps ({second.counts['steps']}), order {order}",
        "seconds": second.seconds,
    }


def acting_inputs(inputs: Polynomials, motors: int) -> Polynomials:
    """What acts: accelerations of so many motors that follow a motion, efforts and wrenches as they are."""
    powers = np.arange(2, inputs.powers)
    coefficients = inputs.coefficients.copy()
    coefficients[:, :, :motors] = 0.0
    coefficients[:, : inputs.powers - 2, :motors] = (powers * (powers - 1))[:, None] * inputs.coefficients[
        :, 2:, :motors
    ]
    return Polynomials(inputs.breaks, coefficients)


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
        misfits = [self._misfit(a[k : k + PORTION], b[k : k + PORTION]) for k in range(0, len(a), PORTION)]
        return np.concatenate(misfits) if misfits else np.zeros(0)

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
        cuts = [np.zeros(0)]
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
            cuts.append(cut)
            a, b = np.concatenate([a, cut]), np.concatenate([cut, b])
            chosen = self.with_breaks(a, b)
            a, b = a[chosen], b[chosen]
            bad = self.misfit(a, b) > MISSED
            a, b = a[bad], b[bad]
        return np.concatenate(cuts)

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
    weights = np.ones((*share.shape, len(NODES)))
    for n, node in enumerate(NODES):
        for other in np.delete(NODES, n):
            weights[..., n] *= (share - other) / (node - other)
    return weights


def step_instants(inputs: Polynomials, motors: int, method: Method, grid: Grid, jumps: Array) -> Array:
    """Times at which steps end beside the jumps of the inputs, of which so many motors follow a motion."""
    windows = InputWindows(acting_inputs(inputs, motors), grid.rows * grid.out_step)
    if not len(windows.breaks) or not inputs.channels:
        return np.zeros(0)
    a, b = _windows(grid, method, windows, jumps)
    off = windows.misfit(a, b)
    bad = np.flatnonzero(off > MISSED)
    if not grid.begin and len(bad) > (most := max(MOST_CUT, int(SHARE_CUT * windows.time / grid.step))):
        bad = bad[np.argsort(off[bad])[-most:]]
    return np.unique(np.concatenate([a[bad], windows.cuts(a[bad], b[bad]), b[bad]]))


def ends_inside(problem: Problem, inputs: Polynomials, method: Method, grid: Grid) -> Array:
    """Times at which steps end so that they see all that is given; none where nothing is integrated."""
    if not len(problem.system(inputs).free):
        return np.zeros(0)
    motors = len(problem.robot.actuated) if problem.driven else 0
    return step_instants(inputs, motors, method, grid, jump_times(inputs, motors))


def input_warnings(problem: Problem, inputs: Polynomials, method: Method, grid: Grid) -> list[Diagnostic]:
    """A diagnostic where fixed steps do not add up what acts in them: a function or a table changes too fast."""
    if grid.begin or not len(problem.system(inputs).free):
        return []
    motors = len(problem.robot.actuated) if problem.driven else 0
    windows = InputWindows(acting_inputs(inputs, motors), grid.rows * grid.out_step)
    ends = np.concatenate([jump_times(inputs, motors), ends_inside(problem, inputs, method, grid)])
    rule = places_and_weights(method.tableau)
    share, when, channel = windows.missed(*_windows(grid, method, windows, ends), rule)
    if not share > TOLD:
        return []
    shorter, halvings = grid, 0
    while halvings < MOST_HALVINGS and windows.missed(*_windows(shorter, method, windows, ends), rule)[0] > TOLD:
        shorter, halvings = replace(shorter, step=shorter.step / 2, every=2 * shorter.every), halvings + 1
    text = (
        f"{_named(problem, channel)} changes too fast for steps of {grid.step:.3g} s: until t = {when:.4g} s its "
        f"impulse is off by {share:.1%} of how much that changes; give a step of {shorter.step:.2g}, or a tolerance"
    )
    return [Diagnostic("fast-input", text, _named(problem, channel), float(share))]


def _named(problem: Problem, channel: int) -> str:
    """Words for an input."""
    motors = problem.robot.actuated_names
    if problem.prescribed == "platform":
        return "the motion of the platform"
    if channel < len(motors):
        return f"the motion of '{motors[channel]}'" if problem.driven else f"the effort of '{motors[channel]}'"
    return f"the wrench on '{list(problem.wrenches)[(channel - len(motors)) // 6]}'"


def _windows(grid: Grid, method: Method, windows: InputWindows, ends: Array) -> tuple[Array, Array]:
    """Begins and ends of windows as long as steps may be, which end at some times too, if pieces end inside of them.

    Chosen steps may begin anywhere: their windows overlap.
    """
    length = grid.step
    ends = ends[(ends > 0) & (ends < windows.time)]
    if grid.begin:
        length = windows.time / max(1, math.ceil(windows.time / grid.most * (1 - 1e-9)))
    steps = np.floor(np.concatenate([windows.breaks, ends]) / length)
    steps = np.unique(np.concatenate([steps - 1, steps, steps + 1, steps + 2] if grid.begin else [steps, steps + 1]))
    inside = steps[(steps >= 0) & (steps <= round(windows.time / length))]
    edges = np.unique(np.concatenate([inside * length, ends]))
    a, b = edges[:-1], edges[1:]
    if grid.begin:  # windows of two halves, unless inputs jump between these
        joined = ~np.isin(edges[1:-1], ends)
        middles = (a + b) / 2
        a, b = np.concatenate([a, middles[:-1][joined]]), np.concatenate([b, middles[1:][joined]])
    chosen = (b - a > windows.shortest) & (b - a < length * (1 + 1e-6)) & windows.with_breaks(a, b)
    return a[chosen], b[chosen]
