"""Passage through singular poses: steps over all rates of the tree, projected onto the closures.

Near a pose where the closures lose rank no choice of independent rates determines the others well, but the motion is
smooth. Accelerations of all rates are those along the closures (least norm) and, in the free directions, those of the
forces, theory (39). One long step of Gauss collocation of high order has the singular pose between its points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from parflex.closure import mobility
from parflex.closure.continuation import with_unit_quaternions
from parflex.codegen.outputs import loses_power
from parflex.integrators.driver import NEAR
from parflex.integrators.tableaux import gauss
from parflex.simulation.input_breaks import Discontinuity
from parflex.simulation.problem import Problem
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
CLOSED = 1e-13  # of the last correction of positions
ROUNDING = 8e-15  # of the opening of the loops: the nearer the singular pose, the less it says of the positions
MOST_CORRECTIONS = 8
STAGES = 8  # of a step: the points nearest to its middle lie 0.18 of its half from there
FARTHEST = 0.6  # rad of a typical length: how far ahead a singular pose is searched, in the middle of the longest step
AHEAD = 1e-3  # rad of a typical length: over which its distance is extrapolated
LONGER = 1.2  # times: a step that ends at the next row, so that its middle is not quite at the singular pose
MOST_SWEEPS = 60
SETTLED = 1e-13  # of the rates at the points of a step, between two sweeps
ON_BRANCH = 1e-7  # what the closures may correct of the points of a step
CLEAR = 1e-2  # of the distance to the singular pose: there the closures say where a state is to twelve digits
START = 1e-4  # distance from the singular pose at which a state on a branch can still be told from one on another
KEPT = 1e-8  # of the kinetic energy: what a step may lose or win of all energy


class UndeterminedBranchError(Exception):
    """The closures do not say on which branch the motion goes on."""


class PassageState(NamedTuple):
    """A state on the closures with all accelerations, the efforts of motors, and the work put in and lost so far."""

    q: Array
    qd: Array
    qdd: Array
    effort: Array
    worked: Array


def passage_rows(
    problem: Problem, given: Trajectory, corners: list[Discontinuity], state: PassageState, row: int, rows: int,
    step: float, sample: Callable[[int, PassageState], None] | None,
) -> Iterator[tuple[int, PassageState]]:  # fmt: skip
    """Yield rows, `step` apart, until no singular pose is ahead; inputs jump at `corners`, or `sample` writes them."""
    passage, t = SingularPassage(problem, given), row * step
    # the model takes no efforts that hold joints, and losses of gears need efforts in them, which are open here
    if problem.sticking or loses_power(problem.robot) or passage.distance(t, state.q) < START:
        raise UndeterminedBranchError
    state = passage.onto(t, state)
    yield row, state
    while row < rows:
        pose = passage.pose_ahead(state, t)
        if pose == np.inf and abs(t - row * step) <= NEAR * step:
            return
        if corners and corners[0].time <= t + NEAR * step:
            corner = corners.pop(0)
            passage = SingularPassage(problem, Trajectory(corner.behind.breaks, corner.behind.coefficients))
            state = passage.onto(corner.time, _crossed(problem, corner, state))
            continue
        limit = corners[0].time if corners else rows * step
        if sample is not None:
            sample(row, state)
            limit = (row + 1) * step
        t, state_at = passage.step(state, t, pose, (row + 1) * step, step, limit)
        for row in range(row + 1, min(rows, int(t / step + NEAR)) + 1):  # noqa: B020
            yield row, state_at(row * step)
        state = state_at(t)


def _crossed(problem: Problem, corner: Discontinuity, state: PassageState) -> PassageState:
    """Return the state behind the impulse of motors whose velocities jump."""
    if corner.cross is None:
        return state
    qd = np.zeros_like(state.qd)
    qd[problem.robot.free], work = corner.cross(state.q, problem.robot.tree.position_rates(state.q, state.qd))
    return state._replace(qd=qd, worked=state.worked + np.array([work, 0.0]))


@dataclass(frozen=True)
class SingularPassage:
    """A robot near a singular pose, with what is given in time."""

    problem: Problem
    given: Trajectory

    @cached_property
    def _motors(self) -> list[int]:
        """Return the motors with a prescribed motion."""
        return list(self.problem.robot.actuated) if self.problem.driven else []

    @cached_property
    def _scales(self) -> tuple[Array, Array]:
        """Return scales of all rows and of the free rates, which make them comparable."""
        robot, units = self.problem.robot, self.problem.robot.tree.rate_units
        rows = np.concatenate([robot.closures.row_units(), robot.tree.length / units[self._motors]])
        return rows / robot.tree.length, units[robot.free]

    @cached_property
    def _rank(self) -> int:
        return self.problem.robot.mobility.rank + len(self._motors)

    def _conditions(self, t: float, q: Array, qd: Array) -> tuple[dict[str, Array], Any, Array, Array, Array]:
        """Return outputs of the program, singular values of all conditions, and their right sides at three levels."""
        robot, motors = self.problem.robot, self._motors
        outputs = self.problem.tree_model(q=q, qd=qd, **self._wrenches(t))
        if not all(np.isfinite(part).all() for part in outputs.values()):
            raise UndeterminedBranchError
        places = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in motors]
        motion = [self.given.value(t, order)[: len(motors)] for order in range(3)]
        J = np.concatenate([outputs["rows"], np.eye(robot.tree.n)[motors]])
        opening = np.concatenate([outputs["opening"], q[places] - motion[0]])
        speed = np.concatenate([np.zeros(len(outputs["bias"])), motion[1]])
        bias = np.concatenate([-outputs["bias"], motion[2]])
        rows, units = self._scales
        parts = np.linalg.svd(rows[:, None] * J[:, robot.free] * units)
        return outputs, parts, rows * opening, rows * speed, rows * bias

    def _least(self, parts: Any, right: Array) -> Array:
        """Return the least change of the free rates, in their units, with these values."""
        U, s, Vt = parts
        return Vt[: self._rank].T @ ((U.T @ right)[: self._rank] / s[: self._rank])

    def _distance(self, parts: Any) -> float:
        value = float(parts[1][self._rank - 1] / mobility.largest(parts[1], self.problem.robot.regular_closure_norm))
        if not value > 1e-10:
            raise UndeterminedBranchError
        return value

    def distance(self, t: float, q: Array) -> float:
        """Return the distance from the singular pose, as an angle."""
        return self._distance(self._conditions(t, q, np.zeros(self.problem.robot.tree.n))[1])

    def onto(self, t: float, state: PassageState) -> PassageState:
        """Return the nearest state on the closures, and its accelerations."""
        tree, units, free = self.problem.robot.tree, self._scales[1], self.problem.robot.free
        q, rates = state.q, np.zeros(tree.n)
        for _ in range(MOST_CORRECTIONS):
            _, parts, opening, speed, _ = self._conditions(t, q, state.qd)
            step, change, distance = np.zeros(tree.n), self._least(parts, -opening), self._distance(parts)
            size = float(np.abs(change).max(initial=0.0))
            if not size <= distance:
                raise UndeterminedBranchError
            if size <= max(CLOSED, ROUNDING / distance):
                break
            step[free] = units * change
            q = tree.moved(q, step)
        else:
            raise UndeterminedBranchError
        U, s, Vt = parts
        scaled_rates = state.qd[free] / units
        missing = speed - U[:, : len(s)] @ (s * (Vt[: len(s)] @ scaled_rates))
        rates[free] = units * (scaled_rates + self._least(parts, missing))
        return PassageState(q, rates, *self._accelerations(t, q, rates), state.worked)

    def _accelerations(self, t: float, q: Array, qd: Array) -> tuple[Array, Array]:
        """Return accelerations by the conditions, and by the forces in all other directions, and efforts of motors."""
        robot, (rows, units) = self.problem.robot, self._scales
        outputs, (U, s, Vt), *_, bias = self._conditions(t, q, qd)
        M = units[:, None] * outputs["mass_matrix"][np.ix_(robot.free, robot.free)] * units
        push, effort = -outputs["forces"], self.given.value(t)[: len(robot.actuated)]
        if not self._motors:
            push[list(robot.actuated)] += effort
        f, along, N = units * push[robot.free], self._least((U, s, Vt), bias), Vt[self._rank :].T
        a = along + N @ np.linalg.solve(N.T @ M @ N, N.T @ (f - M @ along))
        qdd = np.zeros(robot.tree.n)
        qdd[robot.free] = units * a
        if self._motors:
            multipliers = U[:, : self._rank] @ ((Vt[: self._rank] @ (M @ a - f)) / s[: self._rank])
            effort = (rows * multipliers)[-len(self._motors) :]
        return qdd, effort

    def _wrenches(self, t: float) -> dict[str, Array]:
        loads = self.given.value(t)[len(self.problem.robot.actuated) :].reshape(-1, 6)
        return {f"wrench_{name}": load for name, load in zip(self.problem.wrenches, loads, strict=True)}

    def _changes(self, t: float, state: PassageState) -> tuple[Array, Array, Array]:
        """Return rates of change of positions and rates, and powers of inputs and losses."""
        tree, power = self.problem.robot.tree, self.problem.power
        dq, dqd = tree.position_rates(state.q, state.qd), tree.rate_changes(state.qd, state.qdd)
        if power is None:
            return dq, dqd, np.zeros(2)
        return dq, dqd, power(q=state.q, position_rates=dq, effort=state.effort, **self._wrenches(t))["power"]

    def pose_ahead(self, state: PassageState, t: float) -> float:
        """Return when the robot reaches the singular pose ahead; infinite if none is near."""
        tree = self.problem.robot.tree
        dq, dqd, _ = self._changes(t, state)
        bend = tree.position_rates(state.q, dqd)
        speed, push = (float(np.abs(part / tree.rate_units).max(initial=0.0)) for part in (state.qd, dqd))
        look = min(AHEAD, self.distance(t, state.q) / 4)  # not beyond the pose
        ahead = min(look / max(speed, 1e-300), np.sqrt(2 * look / max(push, 1e-300)))
        times = (0.0, ahead, 2 * ahead)
        s0, s1, s2 = (self.distance(t + u, self._unit(state.q + u * dq + u * u / 2 * bend)) for u in times)
        slope, curve = (4 * s1 - 3 * s0 - s2) / (2 * ahead), (s2 - 2 * s1 + s0) / ahead**2
        inside = slope**2 - 2 * s0 * curve
        root = -slope + np.sqrt(max(inside, 0.0))
        h = 2 * s0 / root if inside >= 0 and root > 0 else np.inf
        return t + h if h * (speed + push * h) < FARTHEST else np.inf

    def step(
        self, state: PassageState, t: float, pose: float, following: float, row: float, limit: float
    ) -> tuple[float, Callable[[float], PassageState]]:
        """End of a step over the pose ahead, or to the `following` row, and its states; inputs jump at the limit."""
        end = min(limit, following)
        if pose < limit:
            behind = 2 * pose - t
            aligned = np.ceil(behind / row * (1 - NEAR)) * row
            behind = aligned if aligned - t < LONGER * (behind - t) else behind
            end = behind if behind <= limit else 2 * pose - limit if 2 * pose - limit > t else limit
        elif pose < np.inf:
            end = limit
        try:
            return end, self._leap(state, t, end - t)
        except UndeterminedBranchError:  # from nearer
            if not pose < end:
                raise
            return (t + pose) / 2, self._leap(state, t, (pose - t) / 2)

    def _leap(self, before: PassageState, t: float, h: float) -> Callable[[float], PassageState]:
        """Return states in one step of Gauss collocation of high order, whose points are on the closures.

        Raise unless the step stays on its branch: closures hardly correct the polynomial, and energy is kept.
        """
        method, tree, units = gauss(STAGES), self.problem.robot.tree, self.problem.robot.tree.rate_units
        _, change, _ = self._changes(t, before)
        dq = np.array([tree.position_rates(before.q, before.qd + u * h * change) for u in method.c])
        dqd, last, speed = np.tile(change, (STAGES, 1)), np.inf, float(np.abs(before.qd / units).max())
        for _ in range(MOST_SWEEPS):
            Q = [self._unit(q) for q in before.q + h * method.A @ dq]
            V = before.qd + h * method.A @ dqd
            times = t + method.c * h
            nodes = [self.onto(s, before._replace(q=q, qd=qd)) for s, q, qd in zip(times, Q, V, strict=True)]
            old, (dq, dqd, powers) = (dq, dqd), map(np.array, zip(*map(self._changes, times, nodes), strict=True))
            turns = float(np.abs(h * (dqd - old[1]) / units).max()) / (1 + speed)
            size = max(turns, h * float(np.abs(dq - old[0]).max()))
            if size < SETTLED or last <= size < ON_BRANCH:  # rounding remains
                break
            last = size
        else:
            raise UndeterminedBranchError
        off = max(np.abs(q - node.q).max() for q, node in zip(Q, nodes, strict=True))
        turned = max(np.abs((qd - node.qd) / units).max() for qd, node in zip(V, nodes, strict=True))
        if not (off < ON_BRANCH and turned < ON_BRANCH * (1 + speed)):
            raise UndeterminedBranchError
        exponents, inverse = np.arange(1, STAGES + 1), np.linalg.inv(np.vander(method.c, STAGES, increasing=True))
        qdd, effort = (np.array([node[k] for node in nodes]) for k in (2, 3))

        def state_at(time: float) -> PassageState:
            """Return the state of the polynomial, moved onto the closures if these are well conditioned."""
            u = (time - t) / h
            integral, value = h * (u**exponents / exponents) @ inverse, u ** (exponents - 1) @ inverse
            q, qd, worked = self._unit(before.q + integral @ dq), before.qd + integral @ dqd, integral @ powers
            state = PassageState(q, qd, value @ qdd, value @ effort, before.worked + worked)
            return self.onto(time, state) if self.distance(time, q) > CLEAR else state

        after = state_at(t + h)
        first, final = (self._conditions(t, each.q, each.qd)[0]["energy"] for each in (before, after))
        gained = (after.worked - before.worked) @ np.array([1.0, -1.0])
        if not abs(final.sum() - first.sum() - gained) <= KEPT * max(first[0], final[0], abs(final[1] - first[1])):
            raise UndeterminedBranchError
        return state_at

    def _unit(self, q: Array) -> Array:
        return with_unit_quaternions(self.problem.robot.tree, q)

    def loosest(self, q: Array) -> str:
        """Return the coordinate that the closures are about to release."""
        robot = self.problem.robot
        parts = self._conditions(0.0, q, np.zeros(robot.tree.n))[1]
        return robot.tree.rate_names[robot.free[int(np.argmax(np.abs(parts[2][self._rank - 1])))]]
