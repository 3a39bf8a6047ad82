"""Passage through singular poses: steps over all rates of the tree, projected onto the closures.

Near a pose where the closures lose rank no choice of independent rates determines the others well, but the motion is
smooth: the tangent of its branch rotates steadily while the closures determine it less and less. Nothing is reduced:
the accelerations of all rates are those along the closures (least norm) and, in the free directions, those of the
forces, theory (39). One long step of Gauss collocation of high order has the singular pose in its middle, where none of
its points lies.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.closure import mobility
from parflex.closure.continuation import with_unit_quaternions
from parflex.codegen.outputs import loses_power
from parflex.integrators.tableaux import gauss
from parflex.records import Record
from parflex.simulation.discontinuities import Discontinuity
from parflex.simulation.problem import Problem
from parflex.trajectories.trajectory import Trajectory

Array = np.ndarray
CLOSED = 1e-13  # of the last correction of positions
ROUNDING = 8e-15  # of the opening of the loops: the nearer the singular pose, the less it says of the positions
MOST_CORRECTIONS = 8
STAGES = 8  # of a step: the points nearest to its middle lie 0.18 of its half from there
FARTHEST = 1.2  # rad of a typical length: longest step
AHEAD = 1e-3  # rad of a typical length: how far ahead a singular pose is searched
LONGER = 1.2  # times: a step that ends at the next row, so that its middle is not quite at the singular pose
SAME = 1e-9  # of the time between two rows: times that are one
MOST_SWEEPS = 60
SETTLED = 1e-13  # of the rates at the points of a step, between two sweeps
ON_BRANCH = 1e-7  # what the closures may correct of the points of a step
CLEAR = 1e-2  # of the distance to the singular pose: there the closures say where a state is to twelve digits
START = 1e-4  # distance from the singular pose at which a state on a branch can still be told from one on another
KEPT = 1e-8  # of the kinetic energy: what a step may lose or win of all energy


class UndeterminedBranchError(Exception):
    """The closures do not say on which branch the motion goes on."""


@dataclass(frozen=True, eq=False, repr=False)
class PassageState(Record):
    """A state on the closures with all accelerations, the efforts of motors, and the work put in and lost so far."""

    q: Array
    qd: Array
    qdd: Array
    effort: Array
    worked: Array = field(default_factory=lambda: np.zeros(2))


@dataclass(frozen=True)
class SingularStep:
    """One long step over a singular pose: states at the Gauss points, none of them near it, and the state behind it."""

    passage: SingularPassage
    before: PassageState
    t: float
    h: float
    nodes: tuple[PassageState, ...]

    @property
    def end(self) -> float:
        """When it ends."""
        return self.t + self.h

    def at(self, t: float) -> PassageState:
        """The state at a time in between, on the polynomial; brought onto the closures where these are clear."""
        u = (t - self.t) / self.h
        exponents = np.arange(1, STAGES + 1)
        inverse = np.linalg.inv(np.vander(gauss(STAGES).c, STAGES, increasing=True))
        integral, value = (u**exponents / exponents) @ inverse, u ** (exponents - 1) @ inverse
        changes, rate_changes, powers = self._changes
        q = self.passage.unit(self.before.q + self.h * integral @ changes)
        qd, worked = self.before.qd + self.h * integral @ rate_changes, self.before.worked + self.h * integral @ powers
        if self.passage.distance(t, q) > CLEAR:
            return replace(self.passage.onto(t, q, qd), worked=worked)
        qdd, effort = (
            sum(w * getattr(node, name) for w, node in zip(value, self.nodes, strict=True))
            for name in ("qdd", "effort")
        )
        return PassageState(q, qd, qdd, effort, worked)

    @cached_property
    def _changes(self) -> tuple[Array, Array, Array]:
        """Of positions, rates and work at the points."""
        derivatives = [self.passage.derivative(node) for node in self.nodes]
        times = self.t + self.h * gauss(STAGES).c
        powers = [self.passage.power(t, node) for t, node in zip(times, self.nodes, strict=True)]
        return (
            np.array([part[0] for part in derivatives]),
            np.array([part[1] for part in derivatives]),
            np.array(powers),
        )


@dataclass(frozen=True)
class SingularPassage:
    """A robot near a singular pose, with what is given in time."""

    problem: Problem
    given: Trajectory

    @cached_property
    def _scales(self) -> tuple[Array, Array]:
        """Of all rows and of the free rates, so that both compare."""
        robot = self.problem.robot
        motors = len(robot.actuated) if self.problem.driven else 0
        units = robot.tree.rate_units
        rows = np.concatenate([robot.closures.row_units(), robot.tree.length / units[list(robot.actuated)][:motors]])
        return rows / robot.tree.length, units[robot.free]

    @cached_property
    def _rank(self) -> int:
        robot = self.problem.robot
        return robot.mobility.rank + (len(robot.actuated) if self.problem.driven else 0)

    def _tied(self, t: float, q: Array, qd: Array) -> tuple[dict[str, Array], Any, Array, Array, Array]:
        """What the program says, the singular values of all conditions, and their right sides at three levels."""
        problem, robot = self.problem, self.problem.robot
        motors = len(robot.actuated)
        if loses_power(robot):  # what gears lose needs efforts in them, which are open here
            raise UndeterminedBranchError
        outputs = self.problem.tree_model(q=q, qd=qd, **self._wrenches(t))
        if not all(np.isfinite(part).all() for part in outputs.values()):  # sweeps of a leap that grow
            raise UndeterminedBranchError
        J, opening, speed, bias = outputs["rows"], outputs["opening"], np.zeros(len(outputs["bias"])), -outputs["bias"]
        if problem.driven:
            places = [robot.tree.links[robot.tree.link_of_rate[k]].q.start for k in robot.actuated]
            position, velocity, acceleration = (self.given.value(t, order)[:motors] for order in range(3))
            J = np.concatenate([J, np.eye(robot.tree.n)[list(robot.actuated)]])
            opening = np.concatenate([opening, q[places] - position])
            speed, bias = np.concatenate([speed, velocity]), np.concatenate([bias, acceleration])
        rows, units = self._scales
        parts = np.linalg.svd(rows[:, None] * J[:, robot.free] * units)
        return outputs, parts, rows * opening, rows * speed, rows * bias

    def _least(self, parts: Any, right: Array) -> Array:
        """The least change of the free rates, in their units, that has these values."""
        U, s, Vt = parts
        return Vt[: self._rank].T @ ((U.T @ right)[: self._rank] / s[: self._rank])

    def _distance(self, parts: Any) -> float:
        """From the singular pose, as an angle."""
        value = float(parts[1][self._rank - 1] / mobility.largest(parts[1], self.problem.robot.regular_closure_norm))
        if not value > 1e-10:
            raise UndeterminedBranchError
        return value

    def distance(self, t: float, q: Array) -> float:
        """From the singular pose, as an angle."""
        return self._distance(self._tied(t, q, np.zeros(self.problem.robot.tree.n))[1])

    def onto(self, t: float, q: Array, qd: Array) -> PassageState:
        """The state on the closures nearest to one beside them, and its accelerations."""
        tree, (units, free) = self.problem.robot.tree, (self._scales[1], self.problem.robot.free)
        for _ in range(MOST_CORRECTIONS):
            _, parts, opening, speed, _ = self._tied(t, q, qd)
            step = np.zeros(tree.n)
            step[free] = units * self._least(parts, -opening)
            size, distance = float(np.abs(step[free] / units).max(initial=0.0)), self._distance(parts)
            if not size <= distance:
                raise UndeterminedBranchError
            if size <= max(CLOSED, ROUNDING / distance):
                break
            q = tree.moved(q, step)
        else:
            raise UndeterminedBranchError
        U, s, Vt = parts
        scaled_rates, rates = qd[free] / units, np.zeros(tree.n)
        missing = speed - U[:, : len(s)] @ (s * (Vt[: len(s)] @ scaled_rates))
        rates[free] = units * (scaled_rates + self._least(parts, missing))
        outputs, parts, _, _, bias = self._tied(t, q, rates)
        return self._accelerations(t, q, rates, outputs, parts, bias)

    def _accelerations(self, t: float, q: Array, qd: Array, outputs: Any, parts: Any, bias: Array) -> PassageState:
        """Along the conditions as they say, in all other directions as the forces say."""
        problem, robot = self.problem, self.problem.robot
        tree, free, units = robot.tree, robot.free, self._scales[1]
        motors = list(robot.actuated)
        M = units[:, None] * outputs["mass_matrix"][np.ix_(free, free)] * units
        push = -outputs["forces"]
        if not problem.driven:
            push[motors] += self.given.value(t)[: len(motors)]
        f = units * push[free]
        along, N = self._least(parts, bias), parts[2][self._rank :].T
        a = along + N @ np.linalg.solve(N.T @ M @ N, N.T @ (f - M @ along))
        qdd = np.zeros(tree.n)
        qdd[free] = units * a
        effort = self.given.value(t)[: len(motors)]
        if problem.driven:
            U, s, Vt = parts
            multipliers = U[:, : self._rank] @ ((Vt[: self._rank] @ (M @ a - f)) / s[: self._rank])
            effort = (self._scales[0] * multipliers)[-len(motors) :]
        return PassageState(q, qd, qdd, effort)

    def power(self, t: float, at: PassageState) -> Array:
        """Of inputs and of losses."""
        problem, tree = self.problem, self.problem.robot.tree
        if problem.power is None:
            return np.zeros(2)
        change = tree.position_rates(at.q, at.qd)
        return problem.power(q=at.q, position_rates=change, effort=at.effort, **self._wrenches(t))["power"]

    def _wrenches(self, t: float) -> dict[str, Array]:
        loads = self.given.value(t)[len(self.problem.robot.actuated) :].reshape(-1, 6)
        return {f"wrench_{name}": load for name, load in zip(self.problem.wrenches, loads, strict=True)}

    def derivative(self, at: PassageState) -> tuple[Array, Array]:
        """Of positions and rates in time."""
        tree = self.problem.robot.tree
        return tree.position_rates(at.q, at.qd), tree.rate_changes(at.qd, at.qdd)

    def enter(self, t: float, q: Array, qd: Array, worked: Array) -> PassageState:
        """The state with which a passage begins; refused where it lies so near that its branch cannot be told."""
        if self.problem.sticking or self.distance(t, q) < START:  # the model takes no efforts that hold joints
            raise UndeterminedBranchError
        return replace(self.onto(t, q, qd), worked=worked)

    def behind(self, corner: Discontinuity, at: PassageState) -> PassageState:
        """The state behind a jump of the inputs."""
        qd, work = at.qd, 0.0
        if corner.cross is not None:
            qd = np.zeros_like(at.qd)
            qd[self.problem.robot.free], work = corner.cross(at.q, self.problem.robot.tree.position_rates(at.q, at.qd))
        return replace(self.onto(corner.time, at.q, qd), worked=at.worked + np.array([work, 0.0]))

    def keeps_energy(self, t: float, before: PassageState, after: PassageState) -> bool:
        """Whether the energy of two states differs by what was put in and lost between them."""
        first, last = (self._tied(t, at.q, at.qd)[0]["energy"] for at in (before, after))
        gained = (after.worked - before.worked) @ np.array([1.0, -1.0])
        size = max(first[0], last[0], abs(last[1] - first[1]))
        return bool(abs(last.sum() - first.sum() - gained) <= KEPT * size)

    def pose_ahead(self, at: PassageState, t: float) -> float:
        """When the robot comes to the singular pose ahead; never, if none is near."""
        tree = self.problem.robot.tree
        dq, dqd = self.derivative(at)
        bend = tree.position_rates(at.q, dqd)
        speed, push = (float(np.abs(part / tree.rate_units).max(initial=0.0)) for part in (at.qd, dqd))
        look = min(AHEAD, self.distance(t, at.q) / 4)  # not beyond the pose
        ahead = min(look / max(speed, 1e-300), np.sqrt(2 * look / max(push, 1e-300)))
        times = (0.0, ahead, 2 * ahead)
        s0, s1, s2 = (self.distance(t + u, self.unit(at.q + u * dq + u * u / 2 * bend)) for u in times)
        slope, curve = (4 * s1 - 3 * s0 - s2) / (2 * ahead), (s2 - 2 * s1 + s0) / ahead**2
        inside = slope**2 - 2 * s0 * curve
        root = -slope + np.sqrt(max(inside, 0.0))
        if inside < 0 or not root > 0:
            return np.inf
        h = 2 * s0 / root
        return t + h if 2 * h * (speed + push * h) < FARTHEST else np.inf

    def is_over(self, at: PassageState, t: float, row: float) -> bool:
        """Whether no singular pose is ahead at a row; rows are `row` apart."""
        return abs(t / row - round(t / row)) <= SAME * max(1.0, t / row) and self.pose_ahead(at, t) == np.inf

    def step(self, at: PassageState, t: float, row: float, limit: float) -> SingularStep:
        """A step over the singular pose ahead, or to the next row; none goes over the limit, where inputs jump."""
        middle, end = self.pose_ahead(at, t), limit
        if middle == np.inf:
            end = min(limit, (np.floor(t / row * (1 + SAME) + SAME) + 1) * row)
        elif middle < limit:
            behind = 2 * middle - t
            aligned = np.ceil(behind / row * (1 - SAME)) * row
            behind = aligned if aligned - t < LONGER * (behind - t) else behind
            end = behind if behind <= limit else 2 * middle - limit if 2 * middle - limit > t else limit
        try:
            return self.leap(at, t, end - t)
        except UndeterminedBranchError:  # from nearer
            if not middle < end:
                raise
            return self.leap(at, t, (middle - t) / 2)

    def leap(self, at: PassageState, t: float, h: float) -> SingularStep:
        """One step of Gauss collocation of high order, the states at its points on the closures.

        That it stays on its branch shows in the end: what the closures correct of the polynomial is then next to
        nothing, in positions and in rates.
        """
        method, units = gauss(STAGES), self.problem.robot.tree.rate_units
        _, change = self.derivative(at)
        rates = at.qd + h * np.outer(method.c, change)
        dq = np.array([self.problem.robot.tree.position_rates(at.q, qd) for qd in rates])
        dqd = np.tile(change, (STAGES, 1))
        before, speed = np.inf, float(np.abs(at.qd / units).max())
        for _ in range(MOST_SWEEPS):
            Q, V = at.q + h * method.A @ dq, at.qd + h * method.A @ dqd
            times = t + method.c * h
            nodes = [self.onto(s, self.unit(q), qd) for s, q, qd in zip(times, Q, V, strict=True)]
            derivatives = [self.derivative(node) for node in nodes]
            new_q, new_qd = (np.array([part[level] for part in derivatives]) for level in (0, 1))
            turns = float(np.abs(h * (new_qd - dqd) / units).max()) / (1 + speed)
            size = max(turns, h * float(np.abs(new_q - dq).max()))
            dq, dqd = new_q, new_qd
            if size < SETTLED or (size < 1e4 * SETTLED and size > before / 2):
                break
            before = size
        else:
            raise UndeterminedBranchError
        off = max(np.abs(self.unit(q) - node.q).max() for q, node in zip(Q, nodes, strict=True))
        turned = max(np.abs((qd - node.qd) / units).max() for qd, node in zip(V, nodes, strict=True))
        if not (off < ON_BRANCH and turned < ON_BRANCH * (1 + speed)):
            raise UndeterminedBranchError
        leap = SingularStep(self, at, t, h, tuple(nodes))
        if not self.keeps_energy(t, at, leap.at(t + h)):
            raise UndeterminedBranchError
        return leap

    def unit(self, q: Array) -> Array:
        """Unit quaternions."""
        return with_unit_quaternions(self.problem.robot.tree, q)

    def loosest(self, q: Array) -> str:
        """Name of the coordinate that the closures are about to let go."""
        robot = self.problem.robot
        parts = self._tied(0.0, q, np.zeros(robot.tree.n))[1]
        return robot.tree.rate_names[robot.free[int(np.argmax(np.abs(parts[2][self._rank - 1])))]]
