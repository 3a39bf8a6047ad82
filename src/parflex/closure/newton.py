"""Gauss-Newton on closure residuals, and independent parts of the closures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from parflex.closure.constraints import Closures, Coupling, Loop
from parflex.closure.rows import Rows, block, connected, stack
from parflex.closure.targets import PoseRows, Target
from parflex.records import Record
from parflex.recursion.kinematics import Pose, jacobians, pose
from parflex.tree.tree import Branch, Tree, branch

Array = np.ndarray
CLOSED = 1e-10  # of the typical length: Newton ends far below, an open loop far above
STALLED = 0.97  # of the squared opening: steps that leave more, five in a row, do not converge; double roots leave 1/16
NEARLY = 0.01  # of the squared opening: where screws turn many times, a step that leaves less is taken whole
REQUIRED_DECREASE = 0.5  # of the opening: whole steps from nearby leave less
STRIDE = 0.5  # longest Newton step, as an angle: longer ones jump to other assemblies
TRIALS = 12  # of a step, each a third of the one before
CORRECTIONS = 8  # steps of Newton's method after one of a way


def newton(
    tree: Tree, q: Array, columns: Array, rows: Sequence[Rows], steps: int, trials: int = TRIALS
) -> tuple[Array, float]:
    """Newton on a tree that carries all rows; it ends where so many `trials` of ever shorter steps come no closer."""
    at = pose(tree, q)
    r = openings(tree, rows, at)
    error, polish, slow = largest_size(r), 0, 0
    if not len(columns):
        return q, error
    screws, angle_scale = strides(tree, columns, rows)
    driven = [_as_if_closed(row) if screws else row for row in rows]
    for _ in range(steps):
        if error <= CLOSED:
            polish += 1  # near a singular leg the last digits come slowly
            if polish > 30 or error < 1e-15:
                break
        J = block(tree, driven, columns, at, jacobians(tree, at, columns))
        step = np.linalg.lstsq(J, -r, rcond=1e-10)[0]
        remaining = r + J @ step
        if error > CLOSED and not screws and remaining @ remaining > STALLED * (r @ r):
            break  # no step closes it further, to first order
        longest = largest_size(step * angle_scale)
        if not (screws and _left(tree, stepped(tree, q, columns, step), rows, r) < NEARLY):
            step *= min(1.0, STRIDE / longest) if longest > 0 else 1.0
        for _ in range(trials if error > CLOSED else 1):  # what is closed needs no shorter steps
            trial = stepped(tree, q, columns, step)
            trial_at = pose(tree, trial)
            trial_r = openings(tree, rows, trial_at)
            if trial_r @ trial_r < r @ r:
                break
            step = step / 3
        else:
            break
        slow = slow + 1 if trial_r @ trial_r > STALLED * (r @ r) and not screws else 0
        q, at, r, error = trial, trial_at, trial_r, largest_size(trial_r)
        if slow > 4 and error > CLOSED:
            break  # at a smallest opening that is not zero
    return q, error


def newton_corrected(tree: Tree, q: Array, columns: Array, rows: Sequence[Rows]) -> tuple[Array, float]:
    """Newton with whole steps from nearby, to `CLOSED`; what they do not close at once is given up.

    So it is after a step along a way: what would take short steps, or many, is too far.
    """
    before = np.inf
    for _ in range(CORRECTIONS):
        at = pose(tree, q)
        r = openings(tree, rows, at)
        error = largest_size(r)
        if error <= CLOSED or not error < REQUIRED_DECREASE * before:
            return q, error
        J = block(tree, rows, columns, at, jacobians(tree, at, columns))
        q, before = stepped(tree, q, columns, np.linalg.lstsq(J, -r, rcond=1e-10)[0]), error
    return q, np.inf


def openings(tree: Tree, rows: Sequence[Rows], at: Pose) -> Array:
    """How far rows are from zero, in typical lengths."""
    return stack(row.residual(at, tree.length) for row in rows) / tree.length


def stepped(tree: Tree, q: Array, columns: Array, step: Array) -> Array:
    """Positions after a step of some rates without units."""
    increment = np.zeros(tree.n)
    increment[columns] = step * tree.rate_units[columns]
    return tree.moved(q, increment)


def strides(tree: Tree, columns: Array, rows: Sequence[Rows]) -> tuple[bool, Array]:
    """Whether screws turn in the rows, and how much of a step of each rate counts as one of an angle.

    Screws go far by many turns; rates that only couplings hold enter linearly, and no step of them is too long.
    """
    pitches = np.array([abs(tree.links[tree.link_of_rate[k]].joint.pitch) for k in columns])
    couplings = [row for row in rows if isinstance(row, Coupling)]
    for row in couplings:
        pitches = np.maximum(pitches, [0.0 if np.any(tree.rate_units[k] != 1) else row.lead_of(k) for k in columns])
    angle_scale = np.where(pitches, pitches / tree.length, 1.0)
    if couplings:
        loop_links = {j for row in rows if not isinstance(row, Coupling) for j in row.links(tree)}
        angle_scale = np.where([tree.link_of_rate[k] in loop_links for k in columns], angle_scale, 0.0)
    return bool(pitches.any()), angle_scale


def _as_if_closed(row: Rows) -> Rows:
    """A loop whose slopes do not turn the gap with its first end, which a screw would turn many times."""
    return replace(row, closed=True) if isinstance(row, Loop) and row.turning != "none" else row


def _left(tree: Tree, q: Array, rows: Sequence[Rows], r: Array) -> float:
    """Share of the squared opening `r` that is left at other positions."""
    remaining = openings(tree, rows, pose(tree, q))
    return float(remaining @ remaining) / float(r @ r)


def largest_size(values: Array) -> float:
    """Largest size; of none, zero."""
    return float(np.abs(values).max()) if len(values) else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class ClosurePart(Record):
    """A piece of the problem that stands alone: some rows and the rates that close them."""

    name: str
    rows: tuple[Rows, ...]
    columns: Array
    held: frozenset[int] = frozenset()  # links that the target places: loops that touch none are judged by themselves
    given: frozenset[int] = frozenset()  # rates of its links that the target gives


class ClosureParts:
    """The closures of a robot in pieces: which rates close which rows, and how far these are open."""

    def __init__(self, tree: Tree, closures: Closures) -> None:
        self.tree = tree
        self.closures = closures
        self._branches: dict[frozenset[int], Branch] = {}

    def parts(self, target: Target, locked: frozenset[int]) -> list[ClosurePart]:
        """Pieces that share no moving coordinate: with the platform given, the legs."""
        tree = self.tree
        fixed_rates = target.fixed | locked
        rows: list[Rows] = [*self.closures.rows, *target.frames]
        sets = [{k for j in row.links(tree) for k in self.rates_of(j)} - fixed_rates for row in rows]
        placed = {tree.link_of_rate[k] for k in target.fixed}
        placed |= {j for frame in target.frames for j in frame.links(tree)}
        result = []
        for members, columns in connected(sets):
            part = self.part([rows[i] for i in members], columns)
            links = {j for row in part.rows for j in row.links(tree)}
            given = frozenset(k for k in target.fixed if tree.link_of_rate[k] in links)
            result.append(replace(part, held=frozenset(placed), given=given))
        return result

    def moving_parts(self, target: Target, locked: frozenset[int]) -> list[ClosurePart]:
        """The pieces in which some rate is left."""
        return [part for part in self.parts(target, locked) if len(part.columns)]

    def sides(self, locked: frozenset[int]) -> list[ClosurePart]:
        """The two sides of each loop: its rows with the joints that carry one end."""
        tree, result = self.tree, []
        for loop in self.closures.loops:
            moving = set(loop.links(tree))
            for place, label in ((loop.first, "first"), (loop.second, "second")):
                links = sorted(moving & set(tree.path(place.link)))
                columns = {k for j in links for k in self.rates_of(j)} - locked
                part = self.part([loop], columns)
                name = part.name if part.name != loop.name else f"{loop.name} ({label} side)"
                result.append(ClosurePart(name, part.rows, part.columns))
        return result

    def part(self, rows: Sequence[Rows], columns: set[int]) -> ClosurePart:
        """Rows with the rates that close them, by the name of their leg."""
        tree = self.tree
        legs = {tree.links[tree.link_of_rate[k]].leg for k in columns}
        leg = legs.pop() if len(legs) == 1 else None
        name = leg or ", ".join(row.name for row in rows if not isinstance(row, PoseRows)) or rows[0].name
        return ClosurePart(name, tuple(rows), np.array(sorted(columns), dtype=int))

    def rates_of(self, link: int) -> range:
        """Rates of the joint of a link."""
        return range(self.tree.links[link].v.start, self.tree.links[link].v.stop)

    def positions(self, part: ClosurePart) -> list[int]:
        """Coordinates of the joints that close a part."""
        links = [self.tree.links[j] for j in sorted({self.tree.link_of_rate[k] for k in part.columns})]
        return [index for link in links for index in range(link.q.start, link.q.stop)]

    @cached_property
    def free_bodies(self) -> frozenset[int]:
        """Rates of bodies that stand on no joint: platforms."""
        bodies = [link for link in self.tree.links if link.joint.moves_freely]
        return frozenset(k for link in bodies for k in range(link.v.start, link.v.stop))

    def branch(self, rows: Sequence[Rows]) -> Branch:
        """The links that carry the rows, as a tree: a leg of a large robot is closed without the rest of it."""
        ends = frozenset(link for row in rows for link in row.ends)
        if ends not in self._branches:
            self._branches[ends] = branch(self.tree, ends)
        return self._branches[ends]

    def block(self, q: Array, part: ClosurePart) -> Array:
        """Rows of the part, without units, for its own rates."""
        at = pose(self.tree, q)
        return block(self.tree, part.rows, part.columns, at, jacobians(self.tree, at, part.columns))

    def opening(self, q: Array, rows: Sequence[Rows]) -> float:
        """Largest distance of rows from zero, in typical lengths."""
        small = self.branch(rows)
        at = pose(small.tree, q[small.positions])
        return largest_size(openings(small.tree, [row.on(small) for row in rows], at))

    def newton(
        self, q: Array, columns: Array, rows: Sequence[Rows], steps: int = 60, trials: int = TRIALS
    ) -> tuple[Array, float]:
        """Gauss-Newton with short steps and backtracking; positions and the remaining error (in typical lengths)."""
        return self._on_branch(newton, q, columns, rows, steps, trials)

    def corrected(self, q: Array, columns: Array, rows: Sequence[Rows]) -> tuple[Array, float]:
        """A few plain steps of Newton's method, for positions that are nearly closed."""
        return self._on_branch(newton_corrected, q, columns, rows)

    def _on_branch(
        self, method: Callable[..., tuple[Array, float]], q: Array, columns: Array, rows: Sequence[Rows], *limits: int
    ) -> tuple[Array, float]:
        small = self.branch(rows)
        branch_columns = np.searchsorted(small.rates, np.intersect1d(small.rates, columns))  # others change no row
        local_rows = [row.on(small) for row in rows]
        solution, error = method(small.tree, q[small.positions], branch_columns, local_rows, *limits)
        result = q.copy()
        result[small.positions] = solution
        return result, error
