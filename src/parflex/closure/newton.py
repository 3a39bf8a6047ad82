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
from parflex.spatial.batched import PLAIN_ROW_LIMIT, batched_entries, gathered
from parflex.tree.tree import Branch, Tree, branch

Array = np.ndarray
CLOSED = 1e-10  # of the typical length: Newton ends far below, an open loop far above
STALLED = 0.97  # of the squared opening: steps that leave more, five in a row, do not converge; double roots leave 1/16
NEARLY = 0.01  # of the squared opening: where screws turn many times, a step that leaves less is taken whole
REQUIRED_DECREASE = 0.5  # of the opening: whole steps from nearby leave less
STRIDE = 0.5  # longest Newton step, as an angle: longer ones jump to other assemblies
TRIALS = 12  # of a step, each a third of the one before
CORRECTIONS = 8  # steps of Newton's method after one of a way
NEAR = 1e-6  # of the typical length: points of a way, from which Newton closes the same assembly


Ends = list[tuple[Array, float]]  # of each start the positions that are reached, and the error there (typical lengths)
Slopes = Callable[[Array], Array]  # of the openings, at those points of an evaluation that are asked for


def newton(tree: Tree, starts: Sequence[Array], columns: Array, rows: Sequence[Rows], steps: int) -> Ends:
    """Gauss-Newton with short steps, from each start: the positions and the error where it ends.

    Starts are independent of each other, and their rows are evaluated together. A search ends where it is closed, where
    no step closes it further to first order, and where `TRIALS` of ever shorter steps come no closer.
    """
    screws, angle_scale = strides(tree, columns, rows)
    driven = [_as_if_closed(row) if screws else row for row in rows]
    q, r, slopes = _points(tree, columns, rows, driven, np.array(starts), None)
    count = len(q)
    error, square = _sizes(r)
    step, share, stretch = np.zeros((count, len(columns))), np.ones(count), np.zeros(count)
    taken, slow, polish, tries = np.zeros((4, count), dtype=int)
    batch = np.arange(count if steps and len(columns) else 0)
    moved, going = np.ones((2, len(batch)), dtype=bool)
    while len(batch):
        at_new = np.flatnonzero(moved)
        new, closed = batch[at_new], error[batch[at_new]] <= CLOSED
        polish[new] += closed  # near a singular leg the last digits come slowly
        # besides those that are closed, some are at a smallest opening that is not zero
        ends = (taken[new] == steps) | (polish[new] > 30) | np.where(closed, error[new] < 1e-15, slow[new] > 4)
        going[at_new[ends]] = False
        at_new, new, closed = at_new[~ends], new[~ends], closed[~ends]
        if len(new):
            J = slopes(at_new)
            change = -(np.linalg.pinv(J, rcond=1e-10) @ r[new][:, :, None])
            remaining = _sizes(r[new] + (J @ change)[:, :, 0])[1]
            going[at_new] = closed | screws | ~(remaining > STALLED * square[new])
            longest = np.abs(change[:, :, 0] * angle_scale).max(axis=1) / STRIDE
            step[new] = change[:, :, 0] / np.maximum(longest, 1.0)[:, None]
            stretch[new] = longest * (longest > 1) * screws  # where screws turn many times, a whole step is tried first
            tries[new] = np.where(closed, TRIALS - 1, 0)  # what is closed needs no shorter steps
            taken[new] += 1
        batch = batch[going]
        if not len(batch):
            break
        whole = stretch[batch] > 0
        length = np.where(whole, stretch[batch], share[batch])
        trial_q, trial_r, slopes = _points(tree, columns, rows, driven, q[batch], length[:, None] * step[batch])
        trial_error, trial_square = _sizes(trial_r)
        moved = trial_square < np.where(whole, NEARLY, 1.0) * square[batch]
        behind = batch[~moved]
        tries[behind] += ~whole[~moved]
        share[behind] /= np.where(whole[~moved], 1.0, 3.0)
        stretch[behind] = 0.0
        ahead = batch[moved]
        slow[ahead] = np.where((trial_square[moved] > STALLED * square[ahead]) & (not screws), slow[ahead] + 1, 0)
        share[ahead] = np.minimum(1.0, 3 * share[ahead])
        q[ahead], r[ahead] = trial_q[moved], trial_r[moved]
        error[ahead], square[ahead] = trial_error[moved], trial_square[moved]
        going = moved | (tries[batch] < TRIALS)
    return list(zip(q, error.tolist(), strict=True))


def newton_corrected(tree: Tree, starts: Sequence[Array], columns: Array, rows: Sequence[Rows]) -> Ends:
    """Newton with whole steps by the slopes at each start, to `NEAR`; what they do not close at once is given up.

    So it is after a step along a way: what would take short steps, or many, is too far.
    """
    q, r, slopes = _points(tree, columns, rows, rows, np.array(starts), None)
    left, before = np.arange(len(q)), np.full(len(q), np.inf)
    inverse, error = np.linalg.pinv(slopes(left), rcond=1e-10), _sizes(r)[0]
    for _ in range(CORRECTIONS):
        left = left[(error[left] > NEAR) & (error[left] < REQUIRED_DECREASE * before[left])]
        if not len(left):
            break
        before[left], change = error[left], -(inverse[left] @ r[left][:, :, None])[:, :, 0]
        q[left], r[left], _ = _points(tree, columns, rows, rows, q[left], change)
        error[left] = _sizes(r[left])[0]
    return list(zip(q, error.tolist(), strict=True))


def _sizes(r: Array) -> tuple[Array, Array]:
    """The largest opening of each point, and its squared opening."""
    return np.abs(r).max(axis=1, initial=0.0), (r * r).sum(axis=1)


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
    """Derivatives of the openings by rates without units."""
    return block(tree, rows, columns, at, jacobians(tree, at, columns))


def openings(tree: Tree, rows: Sequence[Rows], at: Pose) -> Array:
    """How far rows are from zero, in typical lengths."""
    return stack(row.residual(at, tree.length) for row in rows) / tree.length


def stepped(tree: Tree, q: Array, columns: Array, step: Array) -> Array:
    """Positions after a step of some rates without units."""
    increment: Array = np.zeros(tree.n, dtype=step.dtype)
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

    def newton(self, q: Array, columns: Array, rows: Sequence[Rows], steps: int = 60) -> tuple[Array, float]:
        """Gauss-Newton with short steps and backtracking; positions and the remaining error (in typical lengths)."""
        return self.newton_from([q], columns, rows, steps)[0]

    def newton_from(self, starts: Sequence[Array], columns: Array, rows: Sequence[Rows], steps: int) -> Ends:
        """The same from several starts."""
        return self._on_branch(newton, starts, columns, rows, steps)

    def corrected(self, starts: Sequence[Array], columns: Array, rows: Sequence[Rows]) -> Ends:
        """A few plain steps of Newton's method, for positions that are nearly closed."""
        return self._on_branch(newton_corrected, starts, columns, rows)

    def _on_branch(
        self, method: Callable[..., Ends], starts: Sequence[Array], columns: Array, rows: Sequence[Rows], *limits: int
    ) -> Ends:
        """What a method finds on the links that carry the rows; other rates change no row."""
        if not starts:
            return []
        small, results = self.branch(rows), [q.copy() for q in starts]
        local_columns = np.searchsorted(small.rates, np.intersect1d(small.rates, columns))
        local_rows, local_starts = [row.on(small) for row in rows], [q[small.positions] for q in starts]
        ends = method(small.tree, local_starts, local_columns, local_rows, *limits)
        for result, (end, _) in zip(results, ends, strict=True):
            result[small.positions] = end
        return [(result, error) for result, (_, error) in zip(results, ends, strict=True)]
