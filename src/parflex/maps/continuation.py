"""Continuation of rows of positions: Newton's method from closed poses, along lines and along paths from home.

Each row stays on the side of home of its singularities. Robots with several assembly modes follow paths in strides that
are too short to change the mode.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.spatial import cKDTree

from parflex.closure.continuation import waypoints
from parflex.closure.newton import STRIDE, ClosurePart
from parflex.maps.coordinates import PoseCoordinates, RequestedPoses
from parflex.maps.newton import POLISH, JoinedSteps, NewtonStepper, judged_rows, jumping_rows
from parflex.robot.coordinate_names import joint_named

if TYPE_CHECKING:
    from parflex.maps.positions import PositionSolver

Array = np.ndarray
OK, UNREACHABLE, SINGULAR, OUTSIDE = 0, 1, 2, 4  # outside the limits of a joint; 3 is a design that makes no robot
CLOSED = 1e-9  # opening, in typical lengths, from which a loop counts as open: Newton ends far below
FLAT = 1e-6  # determinant of a leg, beside that at home, below which the pose counts as singular
NEARBY = 12  # steps from a neighbouring pose: poses that need more are tried from home
LONG = 40  # steps of Newton's method from a pose that may be far
LENGTHY = 400  # instructions from which a step is compiled for paths: interpreted it takes milliseconds
MANY_STRIDES = 24  # to poses of robots with several assembly modes, at most
TURN = 1.0  # rad of a specified joint in a stride that winds springs: longer strides could lose a turn
TURNED = 6  # strides for each TURN, at most
LONGEST, SHORTEST = 1 / 3, 1 / 60  # longest and shortest stride, as shares of a line
SHORT = 8  # steps of Newton's method after a stride: what needs more has left the path
FEW = 64  # poses that are compared with all others one by one
SIDE_BY_SIDE = 256  # poses whose distances are there at a time: they stay in the cache


SHORTEST_ON_PATHS = 1e-3  # shortest stride, as share of the line between two waypoints
FEW_PATHS = 4  # tried where signs tell assembly modes apart: then only Newton's method can fail
STARTS = 8  # from which unreached poses are closed in any assembly mode
SPREAD = 1.0  # rad or typical lengths, of these starts
WIDE_STARTS, WIDE_SPREAD = 16, 2.5  # where signs tell assembly modes apart: in other modes elbows are turned over
MANY, FEW_STARTS = 1024, 16  # rows up to which all starts are tried that single poses have, and how many of more


class ClosedRows(RequestedPoses):
    """Rows of positions of a robot that close by the same programs."""

    steppers: list[NewtonStepper]  # of parts that close by themselves
    judges: list[NewtonStepper]  # which move nothing
    joined: JoinedSteps | None  # all of them as one program

    def _newton(self, q: Array, steps: int = LONG) -> tuple[Array, Array]:
        """Newton's method in place; rows that a part of the robot does not reach are left out by the next parts."""
        if len(q) <= FEW and self._is_joined(q):  # calls take longer than steps
            return self._together(q, steps)
        status, todo = np.full(len(q), OK), np.arange(len(q))
        for one in self.steppers:
            opening, side = one.solve(q, todo, steps)
            todo = self._judge(status, todo, one, (opening < CLOSED) & (side > 0), side)
        for one in self.judges:
            _, side = one.judge(q, todo)
            todo = self._judge(status, todo, one, side > 0, side)
        return q, status

    @staticmethod
    def is_unreached(status: Array) -> Array:
        """Return which poses are not reached."""
        return np.asarray(status == UNREACHABLE)

    def with_compiled_steps(self) -> Self:
        """Return the solver with compiled steps if these are long: paths take hundreds, however few the poses."""
        if self.geometry.compiled or sum(len(one.program.program.instructions) for one in self.steppers) < LENGTHY:
            return self
        made = copy.copy(self)
        made.steppers = [replace(one, program=one.program.with_choice(True)) for one in self.steppers]
        made.judges = [replace(one, program=one.program.with_choice(True)) for one in self.judges]
        return made

    def closed(self, q: Array) -> Array:
        """Return which rows Newton's method closes, on any side of their singularities, in place."""
        found = [one.solve(q, np.arange(len(q)), LONG)[0] < CLOSED for one in self.steppers]
        return np.all(found, axis=0)

    def _together(self, q: Array, steps: int | None = None) -> tuple[Array, Array]:
        """Newton's method in place on all parts of the robot at once, from positions nearby."""
        if not self._is_joined(q):
            return self._newton(q, steps or LONG)
        assert self.joined is not None
        outputs = self.joined(q, steps or NEARBY, POLISH)
        columns, signs, sizes = self._signed
        self._put_determinants(outputs)
        closed, flat = judged_rows(outputs, self.joined.openings, CLOSED**2, columns, signs, FLAT * sizes)
        return q, np.where(closed, np.where(flat, SINGULAR, OK), UNREACHABLE)

    @cached_property
    def _signed(self) -> tuple[Array, Array, Array]:
        """Of what the joined program tells: columns with determinants of all parts, their signs and sizes at home."""
        assert self.joined is not None
        parts = [*self.steppers, *self.judges]
        columns = np.array([own.stop - 1 for own in self.joined.told], dtype=np.int64)
        signs = np.array([1.0 if one.rows else one.side for one in parts], dtype=float)
        return columns, signs, np.array([one.size for one in parts], dtype=float)

    def _put_determinants(self, outputs: Array) -> None:
        """Determinants in the place of the last entry of matrices, signed, in place."""
        assert self.joined is not None
        for one, own in zip((*self.steppers, *self.judges), self.joined.told, strict=True):
            if one.rows:
                outputs[:, own.stop - 1] = one.sided(outputs[:, own])

    def _is_joined(self, q: Array) -> bool:
        """Whether one compiled program moves all parts of the robot."""
        return self.joined is not None and all(one.program.kernel(len(q)) is not None for one in self.steppers)

    @staticmethod
    def _judge(status: Array, todo: Array, one: NewtonStepper, good: Array, side: Array) -> Array:
        """Mark rows by the closure of a part of the robot; return those that go on."""
        reached = good[todo]
        status[todo[~reached]] = UNREACHABLE
        todo = todo[reached]
        flat = todo[side[todo] < FLAT * one.size]
        status[flat] = SINGULAR
        return todo


class StridingRows(ClosedRows):
    """Rows of positions that follow specified coordinates from closed positions."""

    given: PoseCoordinates

    @cached_property
    def unsettled(self) -> Array:
        """Positions of parts that have several assembly modes on the side of home."""
        return np.concatenate([np.zeros(0, dtype=int), *(one.columns for one in self.steppers if not one.settled)])

    def _turned(self, begun: Array, values: Array) -> Array:
        """Return the rotation of specified joints along a line, where the rotation winds springs."""
        if not self._winding:
            return np.zeros(len(values))
        return np.abs(values[:, self._winding] - begun[:, self._winding]).max(axis=1, initial=0.0)

    @cached_property
    def _winding(self) -> list[int]:
        """Coordinates that turn joints, where this winds springs."""
        links = {link.q.start: link for link in self.geometry.tree.links if link.joint.one_axis}
        if not self.counts_turns:
            return []
        own = [k for k, name in enumerate(self.names) if joint_named(self.geometry.tree, name) is not None]
        return [k for k in own if links[self.given.where[self.names[k]]].joint.periodic]

    @cached_property
    def counts_turns(self) -> bool:
        """Whether paths wind springs of joints."""
        wound = {link.q.start for link in self.geometry.tree.links if link.joint.one_axis and link.wound}
        return bool(wound & set(self.unsettled.tolist()))

    @cached_property
    def _units(self) -> Array:
        return self.geometry.position_units[self.unsettled]

    @cached_property
    def _turning(self) -> Array:
        periodic = {link.q.start for link in self.geometry.tree.links if link.periodic and not link.wound}
        return np.array([k in periodic for k in self.unsettled], dtype=bool)

    def jumped(self, before: Array, after: Array) -> Array:
        """Return which rows moved so far that Newton's method may have left their assembly mode."""
        far = jumping_rows(before, after, self.unsettled, STRIDE * self._units)
        if far.any():  # few: whole turns are no way
            own = after[far][:, self.unsettled] - before[far][:, self.unsettled]
            own[:, self._turning] = np.arctan2(np.sin(own[:, self._turning]), np.cos(own[:, self._turning]))
            far[far] = (np.abs(own) > STRIDE * self._units).any(axis=1)
        return np.asarray(far)

    def follow_lines(
        self, values: Array, own: Array, begun: Array, begin: Array, shortest: float = SHORTEST
    ) -> tuple[Array, Array]:
        """Follow lines in strides, shortened where Newton's method fails or jumps; return positions and status."""
        status, going, q = np.full(len(values), UNREACHABLE), np.arange(len(values)), begin.copy()
        longest = np.minimum(1.0, TURN / np.maximum(self._turned(begun, values), TURN))
        share, stride = np.zeros(len(values)), np.minimum(LONGEST, longest)
        turns = TURNED * int(1.0 / longest.min(initial=1.0))
        for _ in range(MANY_STRIDES + turns + int(np.log2(SHORTEST / shortest))):
            if not len(going):
                break
            ahead = np.minimum(share[going] + stride[going], 1.0)
            now = begun[going] + ahead[:, None] * (values[going] - begun[going])
            start = self.given.start(now, self.geometry.rows(q[going, : self.geometry.kept.size], own[going]))
            before = start.copy()
            here, state = self._together(start, SHORT)
            gained = (state == OK) & ~self.jumped(before, here)
            q[going[gained]], share[going[gained]] = here[gained], ahead[gained]
            stride[going] = np.minimum(stride[going] * np.where(gained, 2.0, 1.0 / 3.0), longest[going])
            status[going[gained & (ahead == 1.0)]] = OK
            going = going[(share[going] < 1.0) & (stride[going] >= shortest * longest[going])]
        return q, status


def nearest_point(points: Array, values: Array) -> Array:
    """The nearest of some points to each value, about: by products of single precision, which few points allow."""
    middle = values.mean(axis=0)
    a, b = (points - middle).astype(np.float32), (values - middle).astype(np.float32)
    lengths, ways = (a * a).sum(axis=1), np.ascontiguousarray(-2.0 * a.T)
    found = np.empty(len(b), dtype=np.int64)
    for start in range(0, len(b), SIDE_BY_SIDE):
        far = b[start : start + SIDE_BY_SIDE] @ ways
        far += lengths
        np.argmin(far, axis=1, out=found[start : start + SIDE_BY_SIDE])
    return found


def neighbours(points: Array, values: Array, count: int) -> tuple[Array, Array]:
    """Distances of some of the points to each value, nearest first, and which these are."""
    if len(values) > FEW:
        return cKDTree(points).query(values, k=list(range(1, count + 1)))
    far = np.zeros((len(values), len(points)))
    for own, given in zip(points.T, values.T, strict=True):  # for so few a tree takes longer to grow
        far += (given[:, None] - own) ** 2
    nearest = np.argpartition(far, count - 1, axis=1)[:, :count]
    chosen = np.take_along_axis(far, nearest, axis=1)
    order = np.argsort(chosen, axis=1, kind="stable")
    return np.sqrt(np.take_along_axis(chosen, order, axis=1)), np.take_along_axis(nearest, order, axis=1)


def follow_paths(solver: PositionSolver, values: Array, designs: Array, q: Array, status: Array) -> None:
    """Follow paths from home to poses that were not reached, in place: straight, then around singular poses."""
    unreached = np.flatnonzero(solver.is_unreached(status))
    if not len(unreached):
        return
    home, units, turning = solver.given.at_home, _units(solver), _turning(solver)
    most = None if solver.unsettled.size else FEW_PATHS
    paths = {int(row): list(islice(waypoints(home, values[row], units, turning), most)) for row in unreached}
    # the home of each row is that of its design
    at_home, state = solver.from_home(np.repeat(home[None], len(unreached), axis=0), designs[unreached])
    blocked = dict(zip(unreached.tolist(), solver.is_unreached(state).tolist(), strict=True))
    paths = {row: found for row, found in paths.items() if not blocked[row]}
    size = solver.geometry.home.size
    for number in range(max((len(found) for found in paths.values()), default=0)):
        going = np.array([row for row, found in paths.items() if number < len(found)], dtype=int)
        here, begun = at_home[np.searchsorted(unreached, going), :size], np.repeat(home[None], len(going), axis=0)
        for point in range(max((len(paths[row][number]) for row in going.tolist()), default=0)):
            on = np.flatnonzero([point < len(paths[row][number]) for row in going.tolist()])
            if not len(on):
                break
            goal = np.array([paths[row][number][point] for row in going[on].tolist()])
            start = solver.given.start(begun[on], solver.geometry.rows(here[on], designs[going[on]]))
            found, state = solver.follow_lines(goal, designs[going[on]], begun[on], start, SHORTEST_ON_PATHS)
            begun[on], here[on] = goal, found[:, :size]
            left = np.ones(len(going), dtype=bool)
            left[on[solver.is_unreached(state)]] = False
            going, here, begun = going[left], here[left], begun[left]
        if len(going):
            found, state = solver.refined_positions(values[going], designs[going], here)
            reached = ~solver.is_unreached(state)
            q[going[reached]], status[going[reached]] = found[reached], state[reached]
            for row in going[reached].tolist():
                del paths[row]
        if not paths:
            return


def close_anywhere(solver: PositionSolver, values: Array, designs: Array) -> Array:
    """Return which poses close in any assembly mode, by Newton's method from home and random starts around home."""
    spread, found = np.random.default_rng(0), np.zeros(len(values), dtype=bool)  # the same starts every time
    moved = np.unique(np.concatenate([one.columns for one in solver.steppers]))
    units = solver.geometry.position_units
    starts, far = (STARTS, SPREAD) if solver.unsettled.size else (WIDE_STARTS, WIDE_SPREAD)
    for number in range(starts):
        todo = np.flatnonzero(~found)
        if not len(todo):
            break
        begin = np.repeat(solver.geometry.home[None], len(todo), axis=0)
        if number:
            begin[:, moved] += far * units[moved] * spread.uniform(-1, 1, len(moved))
        rows = solver.given.start(values[todo], solver.geometry.rows(begin, designs[todo]))
        found[todo] = solver.closed(rows)
    return found


def _units(solver: PositionSolver) -> Array:
    """Return the units of coordinates: rad, characteristic lengths."""
    tree = solver.geometry.tree
    joints, lengths = solver.geometry.position_units, {"x", "y", "z"}
    own = [joint_named(tree, name) for name in solver.names]
    return np.array(
        [
            tree.length if joint is None and name in lengths else 1.0 if joint is None else joints[joint.q.start]
            for name, joint in zip(solver.names, own, strict=True)
        ]
    )


def _turning(solver: PositionSolver) -> Array:
    """Return which coordinates are joints whose whole turns do not matter."""
    if solver.counts_turns:
        return np.zeros(len(solver.names), dtype=bool)
    own = [joint_named(solver.geometry.tree, name) for name in solver.names]
    return np.array([joint is not None and joint.periodic and not joint.wound for joint in own], dtype=bool)


def close_beyond_folds(solver: PositionSolver, values: Array, designs: Array, q: Array, states: Array) -> None:
    """Close poses that were not reached on the side of home, in place, at the nearest position in its working mode.

    A pose by motors and coordinates of the platform together closes on both sides of a fold of these coordinates,
    beyond which no path along them leads. Home determines the side as long as a pose exists there; otherwise the legs
    alone determine the working mode, as for a single pose.
    """
    folding = [one for one in solver.steppers if one.folds]
    unreached = np.flatnonzero(solver.is_unreached(states))
    if not folding or not len(unreached):
        return
    solver, geometry, assembler = solver.with_compiled_steps(), solver.geometry, solver.robot.assembler
    moved = np.unique(np.concatenate([one.columns for one in folding]))
    positions = geometry.kept[moved]
    turning, counted = (np.isin(positions, sorted(one)) for one in (assembler.periodic, assembler.counted))
    rates = [
        k for link in geometry.robot.tree.links if link.q.start in positions for k in range(link.v.start, link.v.stop)
    ]
    starts = assembler.starts(geometry.robot.home, ClosurePart("", (), np.array(rates, dtype=int)))
    best, every = np.full(len(unreached), np.inf), np.arange(len(unreached))
    for start in islice(starts, None if len(unreached) <= MANY else FEW_STARTS):
        begin = np.repeat(start[geometry.kept][None], len(unreached), axis=0)
        rows = solver.given.start(values[unreached], geometry.rows(begin, designs[unreached]))
        good = solver.closed(rows)
        singular, strict = np.zeros(len(unreached), dtype=bool), np.ones(len(unreached), dtype=bool)
        with np.errstate(invalid="ignore"):
            for one in (*solver.steppers, *solver.judges):
                side = one.judge(rows, every)[1]
                if one.folds:
                    strict &= side > 0
                else:
                    good &= side > 0
                    singular |= side < FLAT * one.size
        off = rows[:, moved] - geometry.home[moved]
        turns = np.where(turning, np.round(off / (2 * np.pi)), 0.0)
        rows[:, moved] -= 2 * np.pi * turns
        off = (off - 2 * np.pi * turns) / np.where(turning | counted, 1.0, geometry.tree.length)
        far = np.abs(off).max(axis=1) + np.where(strict, 0.0, 1e3)  # the side of home first
        nearer = good & (far < best)
        best[nearer] = far[nearer]
        q[unreached[nearer]], states[unreached[nearer]] = rows[nearer], np.where(singular[nearer], SINGULAR, OK)
