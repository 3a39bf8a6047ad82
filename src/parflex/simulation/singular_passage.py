"""Passage through singular poses: steps over all rates of the tree, projected onto the closures.

Near a pose where the closures lose rank no choice of independent rates determines the others well, but the motion is
smooth: the tangent of its branch rotates steadily while the closures determine it less and less. Nothing is reduced:
the accelerations of all rates are those along the closures (least norm) and, in the free directions, those of the
forces, theory (39). Stages of an explicit method whose errors lie along the branch stay on it. The step is shortened
where a correction is not small against the distance to the singular pose.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from parflex.closure import mobility
from parflex.closure.continuation import with_unit_quaternions
from parflex.codegen.outputs import loses_power
from parflex.integrators.tableaux import dopri5, gauss
from parflex.records import Record
from parflex.simulation.discontinuities import Discontinuity
from parflex.simulation.problem import Problem
from parflex.trajectories.polynomials import Polynomials

Array = np.ndarray
TOLERANCE = 1e-11  # of a step, in units of length and angle: less than any method of a run
CLOSED = 1e-13  # of the last correction of positions
ROUNDING = 8e-15  # of the opening of the loops: the nearer the singular pose, the less it says of the positions
MOST_CORRECTIONS = 8
SMALL = 0.2  # of the distance to the singular pose: what a correction may be at most
TURN = 0.1  # of the speed: what the closures may take of rates that an explicit stage predicts
STAGES = 8  # of a leap: the points nearest to its middle lie 0.18 of its half from there
FARTHEST = 0.6  # rad of a typical length: longest leap
AHEAD = 1e-3  # rad of a typical length: how far ahead it is searched
MOST_SWEEPS = 60
SETTLED = 1e-13  # of the rates at the points of a leap, between two sweeps
ON_BRANCH = 1e-7  # what the closures may correct of the points of a leap
CLEAR = 1e-2  # of the distance to the singular pose: there the closures say where a state is to twelve digits
SHORTEST = 1e-6  # of the time between two rows: shorter steps find nothing either
MOST_STEPS = 500  # between two rows
MOST_STEPS_BENT = 5_000  # the same for flexible bodies
START = 1e-4  # distance from the singular pose at which a state on a branch can still be told from one on another
KEPT = 1e-7  # of the kinetic energy: what a passage may lose or win of all energy


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
    given: Polynomials
    steps: list[int] = field(default_factory=lambda: [0])  # that were made

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
            position, velocity, acceleration = (self.given.at(t, order)[:motors] for order in range(3))
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

    @property
    def most_steps(self) -> int:
        """Between two rows: deformations oscillate many times."""
        return MOST_STEPS_BENT if self.problem.robot.tree.elastic else MOST_STEPS

    def distance(self, t: float, q: Array) -> float:
        """From the singular pose, as an angle."""
        return self._distance(self._tied(t, q, np.zeros(self.problem.robot.tree.n))[1])

    def onto(self, t: float, q: Array, qd: Array, strict: bool = True) -> PassageState:
        """The state on the closures nearest to one beside them, and its accelerations.

        A state is refused (`strict`) whose corrections are not small: it may come onto another branch.
        """
        robot, tree = self.problem.robot, self.problem.robot.tree
        units, free = self._scales[1], robot.free
        for _ in range(MOST_CORRECTIONS):
            _, parts, opening, speed, _ = self._tied(t, q, qd)
            step = np.zeros(tree.n)
            step[free] = units * self._least(parts, -opening)
            size = float(np.abs(step[free] / units).max(initial=0.0))
            distance = self._distance(parts)
            if not size <= (SMALL if strict else 1.0) * distance:
                raise UndeterminedBranchError
            if size <= max(CLOSED, ROUNDING / distance):
                break
            q = tree.moved(q, step)
        else:
            raise UndeterminedBranchError
        scaled_rates = qd[free] / units
        change = self._least(parts, speed - self._times(parts, scaled_rates))
        if strict and not np.linalg.norm(change) <= TURN * max(float(np.linalg.norm(scaled_rates)), TOLERANCE):
            raise UndeterminedBranchError
        rates = np.zeros(tree.n)
        rates[free] = units * (scaled_rates + change)
        outputs, parts, _, _, bias = self._tied(t, q, rates)
        return self._accelerations(t, q, rates, outputs, parts, bias)

    @staticmethod
    def _times(parts: Any, values: Array) -> Array:
        """The conditions times rates."""
        U, s, Vt = parts
        return U[:, : len(s)] @ (s * (Vt[: len(s)] @ values))

    def _accelerations(self, t: float, q: Array, qd: Array, outputs: Any, parts: Any, bias: Array) -> PassageState:
        """Along the conditions as they say, in all other directions as the forces say."""
        problem, robot = self.problem, self.problem.robot
        tree, free, units = robot.tree, robot.free, self._scales[1]
        motors = list(robot.actuated)
        M = units[:, None] * outputs["mass_matrix"][np.ix_(free, free)] * units
        push = -outputs["forces"]
        if not problem.driven:
            push[motors] += self.given.at(t)[: len(motors)]
        f = units * push[free]
        along, N = self._least(parts, bias), parts[2][self._rank :].T
        a = along + N @ np.linalg.solve(N.T @ M @ N, N.T @ (f - M @ along))
        qdd = np.zeros(tree.n)
        qdd[free] = units * a
        effort = self.given.at(t)[: len(motors)]
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
        loads = self.given.at(t)[len(self.problem.robot.actuated) :].reshape(-1, 6)
        return {f"wrench_{name}": load for name, load in zip(self.problem.wrenches, loads, strict=True)}

    def derivative(self, at: PassageState) -> tuple[Array, Array]:
        """Of positions and rates in time."""
        tree = self.problem.robot.tree
        return tree.position_rates(at.q, at.qd), tree.rate_changes(at.qd, at.qdd)

    def enter(self, t: float, q: Array, qd: Array, worked: Array) -> PassageState:
        """The state with which a passage begins; refused where it lies so near that its branch cannot be told."""
        if self.distance(t, q) < START:
            raise UndeterminedBranchError
        return replace(self.onto(t, q, qd), worked=worked)

    def with_given(self, inputs: Polynomials) -> SingularPassage:
        """The same with other inputs."""
        return replace(self, given=inputs)

    def behind(self, corner: Discontinuity, at: PassageState) -> PassageState:
        """The state behind a jump of the inputs."""
        qd, work = at.qd, 0.0
        if corner.cross is not None:
            qd = np.zeros_like(at.qd)
            qd[self.problem.robot.free], work = corner.cross(at.q, self.problem.robot.tree.position_rates(at.q, at.qd))
        return replace(self.onto(corner.time, at.q, qd), worked=at.worked + np.array([work, 0.0]))

    def keeps_energy(self, t: float, before: PassageState, after: PassageState, share: float = KEPT) -> bool:
        """Whether the energy of two states differs by what was put in and lost between them."""
        first, last = (self._tied(t, at.q, at.qd)[0]["energy"] for at in (before, after))
        gained = (after.worked - before.worked) @ np.array([1.0, -1.0])
        size = max(first[0], last[0], abs(last[1] - first[1]))
        return bool(abs(last.sum() - first.sum() - gained) <= share * size)

    def span(self, at: PassageState, t: float) -> float | None:
        """How long a leap over the singular pose ahead would be, with that in its middle; None where none is near."""
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
        if inside < 0 or not root > 0:  # no pose ahead
            return None
        h = 2 * (2 * s0 / root)
        return h if h * (speed + push * h / 2) < FARTHEST else None

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
            nodes = [self.onto(s, self.unit(q), qd, strict=False) for s, q, qd in zip(times, Q, V, strict=True)]
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
        if not self.keeps_energy(t, at, leap.at(t + h), KEPT / 10):
            raise UndeterminedBranchError
        self.steps[0] += 1
        return leap

    def forward(self, at: PassageState, t: float, end: float) -> PassageState:
        """The state at the end."""
        method = dopri5()
        h, now, tried = end - t, t, 0
        while now < end:
            h, tried = min(h, end - now), tried + 1
            if h < SHORTEST * (end - t) or tried > self.most_steps:
                raise UndeterminedBranchError
            try:
                after, error = self._step(method, at, now, h)
            except UndeterminedBranchError:
                h *= 0.37  # another part of the way, so that its stages lie elsewhere
                continue
            if error > TOLERANCE:
                h *= max(0.2, 0.9 * (TOLERANCE / error) ** (1 / method.order))
                continue
            now = end if h == end - now else now + h
            at = after
            self.steps[0] += 1
            h *= min(5.0, 0.9 * (TOLERANCE / max(error, 1e-300)) ** (1 / method.order))
        return at

    def _step(self, method: Any, at: PassageState, t: float, h: float) -> tuple[PassageState, float]:
        changes, powers = [self.derivative(at)], [self.power(t, at)]
        stage = at
        for i in range(1, len(method.c)):
            q, qd = at.q.copy(), at.qd.copy()
            for weight, (dq, dqd) in zip(method.A[i, :i], changes, strict=True):
                q, qd = q + h * weight * dq, qd + h * weight * dqd
            stage = self.onto(t + method.c[i] * h, self.unit(q), qd)
            changes.append(self.derivative(stage))
            powers.append(self.power(t + method.c[i] * h, stage))
        worked = at.worked + h * sum(w * part for w, part in zip(method.b, powers, strict=True))
        wrong = h * sum(w * change[1] for w, change in zip(method.error, changes, strict=True))
        units = self.problem.robot.tree.rate_units
        error = float(np.abs(wrong / (units + np.abs(at.qd))).max())
        return replace(stage, worked=worked), error  # the last stage is the end of the step

    def unit(self, q: Array) -> Array:
        """Unit quaternions."""
        return with_unit_quaternions(self.problem.robot.tree, q)

    def loosest(self, q: Array) -> str:
        """Name of the coordinate that the closures are about to let go."""
        robot = self.problem.robot
        parts = self._tied(0.0, q, np.zeros(robot.tree.n))[1]
        return robot.tree.rate_names[robot.free[int(np.argmax(np.abs(parts[2][self._rank - 1])))]]
