"""Segments of a run: changes of the independent rates, and passages through singular poses.

A segment has one model; its last row is the first row of the next segment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from parflex.closure.constraints import Distance
from parflex.errors import ParflexError
from parflex.integrators.driver import NEAR, Grid, IntegratedRows, System, run_loop
from parflex.recursion.energy import contact_depths, distance
from parflex.recursion.kinematics import pose
from parflex.simulation.input_breaks import InputSegments, ends_inside, input_segments
from parflex.simulation.problem import BETTER, POOR, PartitionEvent, PartitionWatch, Problem, with_independent_rates
from parflex.simulation.singular_passage import (
    STAGES,
    PassageState,
    SingularPassage,
    UndeterminedBranchError,
    passage_rows,
)
from parflex.simulation.step_control import Steps
from parflex.trajectories.trajectory import Trajectory
from parflex.tree.tree import Tree

Array = np.ndarray
Control = Callable[[int, Array, Array], None]
OFTEN = 2e-3  # s, or of the run where that is shorter: checked rows lie no farther apart, or two steps
MOST_TRIES = 3  # at one row


@dataclass(frozen=True)
class Segment:
    """Rows of one model."""

    problem: Problem
    track: IntegratedRows


@dataclass
class Segments:
    """All segments of a run, and how it went."""

    per: int  # rows in an interval of output
    out_step: float
    parts: list[Segment] = field(default_factory=list)
    jumps: list[dict[str, Any]] = field(default_factory=list)  # of velocity, where a motion has such
    changes: list[dict[str, Any]] = field(default_factory=list)  # of independent rates, and passages, with their times

    def kept(self) -> list[Array]:
        """Return which rows of each part are rows of output; a row that two parts share is that of the later one."""
        masks, after = [], np.inf
        for part in reversed(self.parts):
            rows = np.rint(part.track.t / self.out_step * self.per).astype(int)
            keep = (rows % self.per == 0) & (rows < after)
            after = rows[0]
            masks.append(keep)
        return masks[::-1]

    @property
    def t(self) -> Array:
        """Return times of the rows of output."""
        times = [part.track.t[keep] for part, keep in zip(self.parts, self.kept(), strict=True)]
        return np.rint(np.concatenate(times) / self.out_step) * self.out_step

    @property
    def track(self) -> IntegratedRows:
        """Return how the whole run went; its rows are those of the last part."""
        tracks = [part.track for part in self.parts]
        counts = {name: sum(track.counts.get(name, 0) for track in tracks) for name in tracks[0].counts}
        known = [track.judged for track in tracks if track.judged and track.judged[2]]
        picks: tuple[Callable[[tuple[float, ...]], float], ...] = (max, min, max, sum)
        judged = tuple(pick(values) for pick, values in zip(picks, zip(*known, strict=True), strict=False))
        seconds, events = sum(track.seconds for track in tracks), np.concatenate([track.events for track in tracks])
        return replace(tracks[-1], t=self.t, counts=counts, seconds=seconds, events=events, judged=judged or None)


def inner_grid(grid: Grid) -> Grid:
    """Return a grid with rows every few steps, a whole number of them between two rows of output."""
    often = OFTEN * min(1.0, grid.rows * grid.out_step)
    if grid.begin:
        parts = max(1, int(np.ceil(grid.step / often * (1 - 1e-9))))
        return replace(grid, step=grid.step / parts, rows=grid.rows * parts)
    most = max(2, int(often / grid.step))
    every = max(k for k in range(1, grid.every + 1) if grid.every % k == 0 and k <= most)
    return replace(grid, every=every, rows=grid.rows * (grid.every // every))


class Runner:
    """Integrate a run from segment to segment."""

    def __init__(
        self, problem: Problem, inputs: Trajectory, steps: Steps, control: Control | None,
        shown: Callable[[float], None] | None,
    ) -> None:  # fmt: skip
        self.problem, self.steps, self.shown, grid = problem, steps, shown, steps.grid
        self.given = Trajectory(inputs.breaks, inputs.coefficients)  # into which a controller may write efforts
        self.control = control
        loops = bool(problem.robot.closures.size) and problem.prescribed != "platform"
        loops = loops and problem.robot.mobility.rank > 0
        self.watch = PartitionWatch(problem) if loops else None
        self.grid = inner_grid(grid) if loops and control is None else grid
        self.per = self.grid.rows // grid.rows
        self.instants = ends_inside(problem, self.given, self.grid)
        self.event: PartitionEvent | None = None
        self.worked = np.zeros(2)
        self.ranges: Array | None = None  # of all positions so far
        self.done = Segments(self.per, grid.out_step)

    def run(self, q: Array, qd: Array) -> Segments:
        """Return the run from a state of the model."""
        row, tries = 0, 0
        start = None if self.watch is None else self.watch.at_start(q, self.problem.independent)
        while True:
            track = self._stretch(q, qd, row, start)
            start = None
            before, row = row, row + len(track.t) - 1
            tries = 0 if row > before else tries + 1
            if self.watch is None or track.status == "interrupted" or row >= self.grid.rows:
                track.status = "ok" if track.status == "left" else track.status
                self.done.parts.append(Segment(self.problem, track))
                return self.done
            event = self.event or PartitionEvent(row, "fail")
            self.watch.closely = self.watch.closely or track.counts["rejected"] > 0
            nq = self.problem.robot.tree.nq
            q, change = track.y[-1, :nq].copy(), track.y[-1, nq : 2 * nq]
            all_rates = self.problem.robot.tree.rates(q, change)
            self.done.parts.append(Segment(self.problem, track))
            if not np.isfinite(track.y[-1]).all() or tries > MOST_TRIES:
                return self._failed(track)
            # a pose at which a step failed, or the loops jumped, may be singular
            farthest = self.watch.near * (3.0 if event.kind in ("fail", "jump") else 1.0)
            near = self.watch.spread_at(self.watch.at(q)) < farthest
            if near or event.kind == "cross":
                crossed = self._cross(q, all_rates, row, near)
                if crossed is None:
                    return self.done
                row, q, all_rates = crossed
                if row >= self.grid.rows:
                    return self.done
            if not (self._choose(q, row) or near or event.kind == "cross"):
                return self._failed(track)
            qd = all_rates[self.problem.places]

    def _stretch(self, q: Array, qd: Array, row: int, event: PartitionEvent | None) -> IntegratedRows:
        """Integrate with one model until the run ends, fails or leaves it; with an event, the first row alone."""
        self.event = event
        near, segments = NEAR * self.grid.out_step, self._inputs_from(self.problem, row)
        systems = [segments.first, *(corner.behind for corner in segments.corners)]
        track = run_loop(
            segments.first, self.steps.method, self.grid if event is None else replace(self.grid, rows=row), q, qd,
            self.problem.independent, self.steps.tolerance, self._writing(systems), self.shown, segments.corners, row,
            self.worked, None if self.watch is None else self._looked, self.ranges,
        )  # fmt: skip
        self.worked, known = track.work[-1], track.y[:, : len(q)]
        known = known if self.ranges is None else np.vstack([self.ranges, known])
        self.ranges = np.array([known.min(axis=0), known.max(axis=0)])
        self.done.jumps += [jump for jump in segments.jumps if jump["time"] < track.t[-1] - near]
        return track

    def _inputs_from(self, problem: Problem, row: int) -> InputSegments:
        """Return the inputs from a row on."""
        step = self.grid.out_step
        return input_segments(problem, self.given, self.grid.rows * step, NEAR * step, row * step, self.instants)

    def _writing(self, systems: list[System]) -> Control | None:
        """Return the controller, whose efforts act in all segments of the inputs."""
        control, motors = self.control, len(self.problem.robot.actuated)
        if control is None:
            return None

        def written(row: int, x: Array, y: Array) -> None:
            control(row, x, y)
            for system in systems:
                system.coefficients[:, 0, :motors] = self.given.coefficients[0, 0, :motors]

        return written

    def _looked(self, y: Array) -> tuple[int | None, int]:
        """Return the first of new rows with an event, if any, and the number of rows until the next check."""
        nq = self.problem.robot.tree.nq
        assert self.watch is not None
        self.event = self.watch.first_event(y[:, :nq], y[:, nq : 2 * nq], self.grid.out_step, self.problem.independent)
        return None if self.event is None else self.event.row, self.watch.rows_ahead(y[:, :nq])

    def _choose(self, q: Array, row: int) -> bool:
        """Change to the best independent rates; return False if the present ones are as good."""
        assert self.watch is not None
        J = self.watch.at(q)
        try:
            names, quality = self.watch.best(J)
        except ParflexError:
            return False
        present = self.watch.quality(J, self.problem.independent)
        if present >= POOR or not quality > BETTER * present:
            return False
        self.problem = with_independent_rates(self.problem, names, q)
        self.done.changes.append({"time": row * self.grid.out_step, "independent": list(names)})
        return True

    def _cross(self, q: Array, qd: Array, row: int, near: bool) -> tuple[int, Array, Array] | None:
        """Pass a singular pose, if one is ahead; return row, positions and rates behind it, None if the run ends.

        If the pose is not `near`, the run may go on without a passage.
        """
        begin, step, robot, why = perf_counter(), self.grid.out_step, self.problem.robot, ""
        whole = replace(self.problem, names=tuple(robot.tree.rate_names[k] for k in robot.free), rows=())
        inputs, rows, control = self._inputs_from(whole, row), list[tuple[int, PassageState]](), self.control
        given, corners, sample = Trajectory(inputs.first.breaks, inputs.first.coefficients), list(inputs.corners), None
        if control is not None:  # its efforts are constant from row to row
            given, corners, sample = self.given, [], lambda k, state: control(k, *self._flat(k, state))
        state = PassageState(q, qd, qd, np.zeros(0), self.worked)
        try:
            for each in passage_rows(self.problem, given, corners, state, row, self.grid.rows, step, sample):
                rows.append(each)
        except UndeterminedBranchError:
            why = self._why(rows[-1][0] if rows else row, inputs) if near else ""
        here, state = rows[-1] if rows else (row, state)
        self.done.jumps += [jump for jump in inputs.jumps if jump["time"] < (here - NEAR) * step]
        if why or here > row:
            self.done.changes.append({"time": row * step, "singular_until": here * step})
        if here > row:
            self.done.parts.append(Segment(whole, self._passed(rows, perf_counter() - begin)))
        track = self.done.parts[-1].track
        if why:
            where = SingularPassage(self.problem, self.given).loosest(state.q)
            track.status, track.stopped = "diverged", float(here * step)
            track.why, track.coordinate = f"{why} ('{where}' becomes free)", where
        elif here >= self.grid.rows:
            track.status = "ok"
        return None if why else (here, state.q, state.qd)

    def _why(self, row: int, inputs: InputSegments) -> str:
        """Return why a passage is not determined."""
        if self.problem.robot.tree.elastic:
            return "the robot reaches a singular pose, where runs of flexible robots end"
        if self.problem.sticking:
            return "the robot reaches a singular pose, where runs with stiction end: with a friction_width they go on"
        if not self.problem.driven:
            return "the robot is at a singular pose, where its closures do not determine how it moves on"
        begin, end = (np.array([0, 2 * self.per]) + row) * self.grid.out_step
        jumps = [corner.time for corner in inputs.corners if corner.cross and begin <= corner.time <= end]
        if jumps:
            return f"the velocity of a motor jumps too near a singular pose, at t = {jumps[0]:.6g} s"
        return "the loops cannot be closed: the motors drive the robot to a singular pose"

    def _flat(self, row: int, state: PassageState) -> tuple[Array, Array]:
        """Return inputs and outputs of a row as those of a model whose rates are all free ones."""
        robot, tree, (q, qd, qdd, effort, _) = self.problem.robot, self.problem.robot.tree, state
        inputs, driven = self.given.value(row * self.grid.out_step), self.problem.driven
        if driven:
            inputs[: len(robot.actuated)] = self.given.value(row * self.grid.out_step, 2)[: len(robot.actuated)]
        gates = gates_at(tree, q, qd) if self.problem.gate_inputs else np.zeros(0)
        y = [q, tree.position_rates(q, qd), tree.rate_changes(qd, qdd)[robot.free], qdd[robot.free]]
        return np.concatenate([q, qd[robot.free], inputs, gates]), np.concatenate(y + [effort] * driven)

    def _passed(self, rows: list[tuple[int, PassageState]], seconds: float) -> IntegratedRows:
        """Return the rows of a passage."""
        x, y = (np.array(part) for part in zip(*(self._flat(*each) for each in rows), strict=True))
        t, work = np.array([row for row, _ in rows]) * self.grid.out_step, np.array([state.worked for _, state in rows])
        self.worked, steps, tree = work[-1], len(rows) - 1, self.problem.robot.tree
        states = [] if self.problem.gaps is None else [(state.q, state.qd) for _, state in rows]
        counts, events = {"evaluations": STAGES * steps, "steps": steps}, events_between(tree, t, states)
        return IntegratedRows(t, x, y, work, seconds, counts, "left", events=events)

    def _met(self, track: IntegratedRows) -> str:
        """Return why the run ends if the points of a rod or strut meet, where its direction is undefined."""
        robot = self.problem.robot
        for row in robot.closures.constraints if len(track.y) else ():
            if isinstance(row, Distance):
                lengths = [distance(pose(robot.tree, y[: robot.tree.nq]), row.places) for y in track.y[-2:]]
                if lengths[-1] <= 2 * (lengths[0] - lengths[-1]):  # within two rows at this speed
                    return f"the two points of the element '{row.name}' meet: its length cannot pass zero"
        return ""

    def _failed(self, track: IntegratedRows) -> Segments:
        """End the run: no known state continues it."""
        track.status = "diverged"
        jumped = "the loops close in another assembly mode than before, so the robot jumps"
        track.why = self._met(track) or track.why or jumped
        self.done.parts[-1] = Segment(self.problem, track)
        return self.done


def gates_at(tree: Tree, q: Array, qd: Array) -> Array:
    """Return the gates of contacts at a state of a passage."""
    gates: list[float] = []
    for contact, depth, rate in contact_depths(tree, pose(tree, q), qd):
        inside = depth > 0
        pushes = inside and contact.stiffness * depth + contact.damping * rate > 0
        gates += [float(pushes), float(inside)][: contact.count] if contact.damping else [float(inside)]
    return np.array(gates)


def events_between(tree: Tree, times: Array, states: Sequence[tuple[Array, Array]]) -> Array:
    """Return contacts that begin between rows of a passage, at roots of the cubics through depths and rates."""
    from scipy.interpolate import CubicHermiteSpline  # slow to import, and seldom needed

    rows = [list(contact_depths(tree, pose(tree, q), qd)) for q, qd in states]
    opened: list[list[float]] = []
    for contacts in zip(*rows, strict=True):
        depth = CubicHermiteSpline(times, *np.array([each[1:] for each in contacts]).T)
        rates = [(time, depth(time, 1)) for time in depth.roots(extrapolate=False)]
        opened += [[contacts[0][0].told, 1.0, time, rate] for time, rate in rates if rate > 0]
    return np.array(opened, dtype=float).reshape(-1, 4)
