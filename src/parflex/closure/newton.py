"""Solve closures by Gauss-Newton, and split them into independent parts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import NamedTuple

import numpy as np

from parflex.closure.constraints import Closures, Coupling, Loop
from parflex.closure.rows import Rows, block, connected, stack
from parflex.closure.targets import PoseRows, Target
from parflex.records import Record
from parflex.recursion.kinematics import Pose, jacobians, pose
from parflex.spatial.batched import PLAIN_ROW_LIMIT, batched_entries, gathered
from parflex.tree.tree import Branch, Tree, branch

Array = np.ndarray
CLOSED = 1e-10  # of the typical length: Newton ends far below, an open loop far above
STALLED = 0.97  # of the squared opening: steps that leave more, five in a row, do not converge; double roots leave 1/16
NEARLY = 0.01  # of the squared opening: where screws turn many times, a step that leaves less is taken whole
REQUIRED_DECREASE = 0.5  # of the opening: whole steps from nearby leave less
STRIDE = 0.5  # longest Newton step, as an angle: longer ones jump to other assemblies
TRIALS = 12  # of a step, each a third of the one before
DEPENDENT = 1e-10  # of the largest singular value of the slopes: smaller ones are rounding
CORRECTIONS = 8  # steps of Newton's method after one of a way
NEAR = 1e-6  # of the typical length: points of a way, from which Newton closes the same assembly


class _Point(NamedTuple):
    """Positions that a search has reached, with their largest and squared openings (typical lengths)."""

    q: Array
    error: float
    square: float
    step: Callable[[], tuple[Array, float]]  # the shortest one that closes most, and the squared opening that it leaves


Ends = list[tuple[Array, float]]  # of each start the positions that are reached, and the error there (typical lengths)
Step = tuple[Array, Array | None]  # positions, and a step of the rates from there
Search = Generator[Step, _Point, _Point]  # asks for the point after a step, and returns the last one
Slopes = Callable[[Array], Array]  # of the openings, at those points of an evaluation that are asked for


def newton(tree: Tree, starts: Sequence[Array], columns: Array, rows: Sequence[Rows], steps: int) -> Ends:
    """Newton on a tree that carries all rows, from each start: the positions and the error where it ends.

    Starts are independent of each other: their rows are evaluated, and their steps found, for all of them at once.
    """
    screws, angle_scale = strides(tree, columns, rows)
    driven = [_as_if_closed(row) if screws else row for row in rows]
    searches = [_search(q, steps if len(columns) else 0, screws, angle_scale) for q in starts]
    requests = dict(enumerate(map(next, searches)))
    ends: Ends = [(q, np.inf) for q, _ in requests.values()]
    while requests:
        positions, changes = zip(*requests.values(), strict=True)
        first = changes[0] is None
        q, r, slopes = _points(tree, columns, rows, driven, np.array(positions), None if first else np.array(changes))
        step_at, (error, square) = _least_steps(slopes, r), _sizes(r)
        for n, k in enumerate(list(requests)):
            try:
                requests[k] = searches[k].send(_Point(q[n], float(error[n]), float(square[n]), partial(step_at, n)))
            except StopIteration as end:
                ends[k] = end.value.q, end.value.error
                del requests[k]
    return ends


def _search(q: Array, steps: int, screws: bool, angle_scale: Array) -> Search:
    """Take Gauss-Newton steps with backtracking; end if `TRIALS` shorter steps do not reduce the error."""
    point = yield q, None
    polish, slow, share = 0, 0, 1.0
    for _ in range(steps):
        closed = point.error <= CLOSED
        polish += closed  # near a singular leg the last digits come slowly
        if polish > 30 or (closed and point.error < 1e-15):
            break
        step, remaining = point.step()
        if not closed and not screws and remaining > STALLED * point.square:
            break  # no step closes it further, to first order
        longest = largest_size(step * angle_scale)
        if longest > STRIDE and not (screws and (yield point.q, step).square < NEARLY * point.square):
            step = step * (STRIDE / longest)
        for _ in range(1 if closed else TRIALS):  # what is closed needs no shorter steps
            trial = yield point.q, share * step
            if trial.square < point.square:
                break
            share /= 3
        else:
            break
        slow = slow + 1 if trial.square > STALLED * point.square and not screws else 0
        point, share = trial, min(1.0, 3 * share)
        if slow > 4 and point.error > CLOSED:
            break  # at a smallest opening that is not zero
    return point


def newton_corrected(tree: Tree, starts: Sequence[Array], columns: Array, rows: Sequence[Rows]) -> Ends:
    """Take full Newton steps with the slopes of each start, down to `NEAR`; give up otherwise.

    After a step along a path, a point that needs short or many steps is too far.
    """
    q, r, slopes = _points(tree, columns, rows, rows, np.array(starts), None)
    left, before = np.arange(len(q)), np.full(len(q), np.inf)
    inverse, error = np.linalg.pinv(slopes(left), rcond=DEPENDENT), _sizes(r)[0]
    for _ in range(CORRECTIONS):
        left = left[(error[left] > NEAR) & (error[left] < REQUIRED_DECREASE * before[left])]
        if not len(left):
            break
        before[left], change = error[left], -(inverse[left] @ r[left][:, :, None])[:, :, 0]
        q[left], r[left], _ = _points(tree, columns, rows, rows, q[left], change)
        error[left] = _sizes(r[left])[0]
    return list(zip(q, error.tolist(), strict=True))


def _least_steps(slopes: Slopes, r: Array) -> Callable[[int], tuple[Array, float]]:
    """The shortest step that closes most of the openings of a point, and the squared opening that it leaves.

    Those of many points are found together.
    """

    def found(chosen: Array) -> tuple[Array, Array]:
        U, values, Vt = np.linalg.svd(slopes(chosen), full_matrices=False)
        used = values > DEPENDENT * values[:, :1]
        along = (r[chosen, None] @ U)[:, 0] * used
        steps = -((along / np.where(used, values, 1.0))[:, None] @ Vt)[:, 0]
        return steps, _sizes(r[chosen])[1] - _sizes(along)[1]

    if len(r) <= PLAIN_ROW_LIMIT:
        return lambda n: next(zip(*found(np.array([n])), strict=True))
    together = cache(lambda: list(zip(*found(np.arange(len(r))), strict=True)))
    return lambda n: together()[n]


def _sizes(r: Array) -> tuple[Array, Array]:
    """The largest opening of each point, and its squared opening."""
    return np.maximum.reduce(np.abs(r), axis=1, initial=0.0), np.einsum("ij,ij->i", r, r)


def _points(
    tree: Tree, columns: Array, rows: Sequence[Rows], driven: Sequence[Rows], q: Array, steps: Array | None
) -> tuple[Array, Array, Slopes]:
    """Positions after steps, the openings there (typical lengths), and their slopes.

    Many points are evaluated in batched numbers, which take as long as few plain ones.
    """
    count = len(q)
    if count <= PLAIN_ROW_LIMIT or not all(row.batched for row in rows):
        moved = q if steps is None else [stepped(tree, at, columns, step) for at, step in zip(q, steps, strict=True)]
        poses = [pose(tree, positions) for positions in moved]
        r = np.array([openings(tree, rows, at) for at in poses])
        return np.array(moved), r, lambda chosen: np.array([_slopes(tree, columns, driven, poses[k]) for k in chosen])
    numbers, differing = q[0].astype(object), np.flatnonzero((q != q[0]).any(axis=0))
    numbers[differing] = batched_entries(q[:, differing])
    if steps is not None:
        numbers = stepped(tree, numbers, columns, batched_entries(steps))
    at = pose(tree, numbers)
    r = gathered(openings(tree, rows, at), count)
    return gathered(numbers, count), r, lambda chosen: gathered(_slopes(tree, columns, driven, at), count)[chosen]


def _slopes(tree: Tree, columns: Array, rows: Sequence[Rows], at: Pose) -> Array:
    """Return derivatives of the openings by rates without units."""
    return block(tree, rows, columns, at, jacobians(tree, at, columns))


def openings(tree: Tree, rows: Sequence[Rows], at: Pose) -> Array:
    """Return residuals of rows in characteristic lengths."""
    return stack(row.residual(at, tree.length) for row in rows) / tree.length


def stepped(tree: Tree, q: Array, columns: Array, step: Array) -> Array:
    """Return positions after a step of some rates without units."""
    increment: Array = np.zeros(tree.n, dtype=step.dtype)
    increment[columns] = step * tree.rate_units[columns]
    return tree.moved(q, increment)


def strides(tree: Tree, columns: Array, rows: Sequence[Rows]) -> tuple[bool, Array]:
    """Return whether rows contain screws, and the size of a step of each rate relative to an angle.

    Screws move far over many turns; rates in couplings only are linear, and their steps are not limited.
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
    """Return a loop whose slopes omit the rotation of the gap with its first end, large for screws."""
    return replace(row, closed=True) if isinstance(row, Loop) and row.turning != "none" else row


def largest_size(values: Array) -> float:
    """Return the largest magnitude, zero for no values."""
    return float(np.abs(values).max()) if len(values) else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class ClosurePart(Record):
    """An independent part of the problem: some rows and the rates that close them."""

    name: str
    rows: tuple[Rows, ...]
    columns: Array
    held: frozenset[int] = frozenset()  # links that the target places: loops that touch none are judged by themselves
    given: frozenset[int] = frozenset()  # rates of its links that the target gives


class ClosureParts:
    """The closures of a robot in parts: rates, rows and openings."""

    def __init__(self, tree: Tree, closures: Closures) -> None:
        self.tree = tree
        self.closures = closures
        self._branches: dict[frozenset[int], Branch] = {}

    def parts(self, target: Target, locked: frozenset[int]) -> list[ClosurePart]:
        """Return parts without common moving coordinates: with a fixed platform, the legs."""
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
        """Return the parts with free rates."""
        return [part for part in self.parts(target, locked) if len(part.columns)]

    def sides(self, locked: frozenset[int]) -> list[ClosurePart]:
        """Return the two sides of each loop: its rows with the joints that carry one end."""
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
        """Return rows with the rates that close them, by the name of their leg."""
        tree = self.tree
        legs = {tree.links[tree.link_of_rate[k]].leg for k in columns}
        leg = legs.pop() if len(legs) == 1 else None
        name = leg or ", ".join(row.name for row in rows if not isinstance(row, PoseRows)) or rows[0].name
        return ClosurePart(name, tuple(rows), np.array(sorted(columns), dtype=int))

    def rates_of(self, link: int) -> range:
        """Return rates of the joint of a link."""
        return range(self.tree.links[link].v.start, self.tree.links[link].v.stop)

    def positions(self, part: ClosurePart) -> list[int]:
        """Return coordinates of the joints that close a part."""
        links = [self.tree.links[j] for j in sorted({self.tree.link_of_rate[k] for k in part.columns})]
        return [index for link in links for index in range(link.q.start, link.q.stop)]

    @cached_property
    def free_bodies(self) -> frozenset[int]:
        """Rates of bodies without joints: platforms."""
        bodies = [link for link in self.tree.links if link.joint.moves_freely]
        return frozenset(k for link in bodies for k in range(link.v.start, link.v.stop))

    def branch(self, rows: Sequence[Rows]) -> Branch:
        """Return the subtree of links that carry the rows, so that a leg is closed without the whole robot."""
        ends = frozenset(link for row in rows for link in row.ends)
        if ends not in self._branches:
            self._branches[ends] = branch(self.tree, ends)
        return self._branches[ends]

    def block(self, q: Array, part: ClosurePart) -> Array:
        """Return rows of the part, without units, for its own rates."""
        at = pose(self.tree, q)
        return block(self.tree, part.rows, part.columns, at, jacobians(self.tree, at, part.columns))

    def opening(self, q: Array, rows: Sequence[Rows]) -> float:
        """Return the largest residual of rows in characteristic lengths."""
        small = self.branch(rows)
        at = pose(small.tree, q[small.positions])
        return largest_size(openings(small.tree, [row.on(small) for row in rows], at))

    def newton(self, q: Array, columns: Array, rows: Sequence[Rows], steps: int = 60) -> tuple[Array, float]:
        """Solve by Gauss-Newton with backtracking; return positions and error (characteristic lengths)."""
        return self.newton_from([q], columns, rows, steps)[0]

    def newton_from(self, starts: Sequence[Array], columns: Array, rows: Sequence[Rows], steps: int) -> Ends:
        """Solve by Gauss-Newton from several starts."""
        return self._on_branch(newton, starts, columns, rows, steps)

    def corrected(self, starts: Sequence[Array], columns: Array, rows: Sequence[Rows]) -> Ends:
        """Take a few full Newton steps from nearly closed positions."""
        return self._on_branch(newton_corrected, starts, columns, rows)

    def _on_branch(
        self, method: Callable[..., Ends], starts: Sequence[Array], columns: Array, rows: Sequence[Rows], *limits: int
    ) -> Ends:
        """Return results of a method on the subtree that carries the rows; other rates change no row."""
        if not starts:
            return []
        small, results = self.branch(rows), [q.copy() for q in starts]
        local_columns = np.searchsorted(small.rates, np.intersect1d(small.rates, columns))
        local_rows, local_starts = [row.on(small) for row in rows], [q[small.positions] for q in starts]
        ends = method(small.tree, local_starts, local_columns, local_rows, *limits)
        for result, (end, _) in zip(results, ends, strict=True):
            result[small.positions] = end
        return [(result, error) for result, (_, error) in zip(results, ends, strict=True)]
