"""Step size of a run: error control or fixed steps.

The tolerance of a step is a share of the motion so far, or a length in metres. Errors of fixed steps are estimated too,
and their sum is compared with the motion of the robot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parflex.diagnostics import Diagnostic
from parflex.errors import InputError
from parflex.integrators.driver import Grid, IntegratedRows, Method, grid_of, method_named, run_loop
from parflex.records import Record
from parflex.simulation.problem import Problem, metres_per_position
from parflex.simulation.quantities import frame_difference
from parflex.trajectories.trajectory import Trajectory
from parflex.tree.tree import Tree

Array = np.ndarray
STEP = 5e-4  # s, or a twentieth of the run: the first step

LEAST_MOTION = 1e-2  # typical lengths that count as moved, so that a robot that begins to move is not over-resolved
# of the motion so far: error of one step; the method of second order takes some hundred steps in a period
DEFAULT_SHARES = {"gauss4": 1e-8, "gauss6": 1e-8, "dopri5": 1e-8, "generalized-alpha": 1e-6}
FIXED_SHARE = 1e-5  # the same for a fixed step: 20 in a period of a vibration with `gauss4`
ITERATION_TOLERANCE = 1e-12
LEAST = 1e-12  # typical lengths: errors of steps below it are rounding
SHARE_OF_ITERATION, MOST_OF_ITERATION = 1e-3, 1e-10  # of the tolerance of a step, and in typical lengths
SHARE_OF_TIME, SHARE_OF_PIECE = 1 / 20, 1 / 4  # of a run, of a piece of the inputs: the longest step
SHORT_PIECE = 0.2  # s: shorter pieces of tables and sampled functions do not bound the steps
LARGE = 2e-3  # of the range of the end effector: larger errors of a run are reported
VISIBLE = 0.01  # of the motion: larger sums of errors of steps are reported, as of the energy balance
VISIBLE_MOTION = 1e-6  # typical lengths: a robot that moves by less is at rest but for rounding
AT_REST = 1e-9  # of the typical length, rad: errors of a frame that are no larger are those of a frame at rest
ORDERS = {"gauss4": 4, "gauss6": 6, "rk4": 4, "dopri5": 5, "generalized-alpha": 2}
PROBES = 10  # rows of the run that determines a fixed step


@dataclass(frozen=True)
class Steps:
    """Steps of a run: method, lengths, tolerance of the iteration, and how the steps were chosen."""

    method: Method
    grid: Grid
    tolerance: float
    choice: str

    def halved(self, length: float, longest: float) -> Steps:
        """Return steps half as long; under error control, with the tolerance for such steps.

        Rows and events end steps too: under error control no step is longer than half the `longest` one.
        """
        grid, less = self.grid, 2.0 ** -(ORDERS[self.method.name] + 1)
        if not grid.begin:
            return replace(self, grid=replace(grid, step=grid.step / 2, every=grid.every * 2, aim=0.0))
        aim, most = max(grid.aim * less, LEAST * length), longest / 2
        halved = replace(grid, aim=aim, begin=min(grid.begin / 2, most), most=most, share=grid.share * less)
        return replace(self, grid=halved, tolerance=self.tolerance * 0.1)

    def report(self, track: IntegratedRows) -> StepReport:
        """Return the requested steps and their errors."""
        grid = self.grid
        tolerance = grid.aim if 0 < grid.aim < math.inf and not grid.share else None
        return StepReport(None if grid.begin else grid.step, self.choice, tolerance, track.judged)


@dataclass(frozen=True, eq=False, repr=False)
class StepReport(Record):
    """Steps of a run: their length, or how it was chosen, and their estimated errors."""

    step: float | None  # s, of fixed steps
    choice: str
    tolerance: float | None  # m, of a step; None if it is a share of the motion, or not limited
    errors: tuple[float, ...] | None  # largest error of a step (m), shortest and longest step (s), sum of errors (m)

    @property
    def told(self) -> dict[str, Any]:
        """Return the entries of the summary of a run."""
        entries: dict[str, Any] = {"step": self.step, "step_choice": self.choice}
        if self.errors:
            words = ("largest", "shortest", "longest", "sum")
            entries["step_error"] = {"tolerance": self.tolerance, **dict(zip(words, self.errors, strict=True))}
        return entries

    def warnings(self, moved: float) -> list[Diagnostic]:
        """Return a diagnostic of fixed steps whose errors add up to a visible part of the motion (m)."""
        total = self.errors[3] if self.errors else 0.0
        if self.step is None or not total > VISIBLE * moved:
            return []
        text = (
            f"errors of the steps of {self.step:.3g} s add up to {total:.2g} m, where the robot moves by {moved:.2g} "
            "m: give a shorter step, or none"
        )
        return [Diagnostic("step-error", text, "step", total)]


def requested_steps(
    time: float, step: float | None, rows: float, tolerance: float | None, method: Method, tree: Tree
) -> Steps:
    """Return the steps of a call; by default errors choose them, as shares of the motion."""
    length, least = tree.length, LEAST * tree.length
    step = None if method.name == "dopri5" else step
    if step is None and method.name == "rk4":
        raise InputError(
            "the method 'rk4' does not estimate errors, so that its step cannot be chosen", key="step",
            hint="give a step, or the method gauss4 or dopri5",
        )  # fmt: skip
    if tolerance is not None and tolerance < least and step is None:
        raise InputError(
            f"rounding forbids the tolerance {tolerance:g} m of a step of a robot of about {length:.2g} m",
            key="tolerance", value=tolerance, hint=f"give at least {least:.1g}",
        )  # fmt: skip
    iterated = ITERATION_TOLERANCE
    if tolerance is not None and tolerance < least:  # below rounding: a tolerance of the iteration
        iterated, tolerance = tolerance, None
    elif tolerance is not None:
        iterated = max(min(SHARE_OF_ITERATION * tolerance / length, MOST_OF_ITERATION), 0.1 * LEAST)
    if step is not None:
        aim = 0.0 if method.name == "rk4" else tolerance or math.inf
        return Steps(method, replace(grid_of(time, step, rows), aim=aim), iterated, "given")
    first = min(STEP, SHARE_OF_TIME * time)
    fixed, share = grid_of(time, first, rows), DEFAULT_SHARES[method.name]
    chosen = Grid(fixed.out_step, 1, fixed.rows, tolerance or 0.0, min(first, fixed.out_step))
    if tolerance is not None:
        return Steps(method, chosen, iterated, f"chosen by their errors, at most {tolerance:g} m each")
    aim, farthest = max(least, LEAST_MOTION * share * length * tree.has_length), length if tree.has_length else math.inf
    words = f"chosen by their errors, at most {share:g} of how far the robot moves"
    return Steps(method, replace(chosen, aim=aim, share=share, farthest=farthest), iterated, words)


def needed_step(problem: Problem, method: Method, inputs: Trajectory, q: Array, qd: Array, time: float) -> float:
    """Return the fixed step (s) that a motion needs: the mean of those that errors choose."""
    tree, method = problem.robot.tree, method_named("dopri5") if method.name == "rk4" else method
    length, first = tree.length, min(STEP, time / PROBES)
    grid = Grid(time / PROBES, 1, PROBES, LEAST * length, first, share=FIXED_SHARE, farthest=length)
    track = run_loop(problem.system(inputs), method, grid, q, qd, problem.independent, ITERATION_TOLERANCE)
    return float(track.t[-1]) / max(track.counts["steps"], 1) if track.status == "ok" else math.inf


def with_longest(grid: Grid, inputs: Trajectory) -> Grid:
    """Return a grid whose longest step is a part of the run and of the pieces of the inputs."""
    if not grid.begin:
        return grid
    time = grid.rows * grid.out_step
    lengths = inputs.breaks[1:] - inputs.breaks[:-1]
    piece = max(SHORT_PIECE, float(lengths.min())) if len(lengths) else time
    most = min(SHARE_OF_TIME * time, SHARE_OF_PIECE * piece)
    return replace(grid, begin=min(grid.begin, most), most=most)


def extent(tree: Tree, q: Array) -> float:
    """Return how far a robot moves in rows of positions (m), its typical length at most."""
    farthest = tree.length if tree.has_length else math.inf
    return min(float((np.ptp(q, axis=0) * metres_per_position(tree)).max(initial=0.0)), farthest)


def error_warnings(
    columns: Mapping[str, Array], error: Mapping[str, Any], length: float, tolerance: bool
) -> list[Diagnostic]:
    """Return a diagnostic if the estimated error of a run is a visible part of the motion of the end effector."""
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


def estimated_error(
    columns: Mapping[str, Array], other: Mapping[str, Array], frame: str, method: Method, second: IntegratedRows
) -> dict[str, Any]:
    """Return the error of a run by its difference from a run with half the steps, extrapolated by the order."""
    between, order = (len(other["t"]) - 1) // max(1, len(columns["t"]) - 1), ORDERS[method.name]
    more = 1 / (1 - 0.5**order)
    other = {name: column[:: max(between, 1)] for name, column in other.items()}
    metres, radians, most = frame_difference(columns, other, frame)
    return {
        "frame": frame,
        "metres": more * metres,
        "radians": more * radians,
        "coordinate": {**most, "share_of_range": more * most["share_of_range"]},
        "how": f"a second run with half the steps ({second.counts['steps']}), order {order}",
        "seconds": second.seconds,
    }
